//! Units in which lengths and times are shown: named ones, in which numbers are handy.

use super::{Dimension, UNITS, Units};

/// A named unit, and the factor from numbers in the units of the bodies to numbers in it.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(any(feature = "serde", feature = "pictures"), derive(serde::Serialize))]
pub struct Shown {
    /// Name, such as `kpc`.
    pub name: &'static str,
    /// Factor.
    pub factor: f64,
}

impl Units {
    /// The unit for lengths of about this one, a number in these units.
    pub(crate) fn shown_length(&self, typical: f64) -> Shown {
        shown(Dimension::Length, self.length, typical)
    }

    /// The unit for times of about this one, a number in these units.
    pub fn shown_time(&self, typical: f64) -> Shown {
        shown(Dimension::Time, self.time, typical)
    }

    /// The unit for speeds: metres per second where a typical one is below a kilometre per second.
    pub(crate) fn shown_speed(&self, typical: f64) -> Shown {
        shown(Dimension::Speed, self.speed(), typical)
    }
}

fn shown(dimension: Dimension, unit: f64, typical: f64) -> Shown {
    let of = |&(name, _, size): &(&'static str, Dimension, f64)| Shown {
        name,
        factor: unit / size,
    };
    let named = || {
        let named = UNITS.iter().filter(|(_, of, _)| *of == dimension);
        named.filter(|(name, ..)| !name.starts_with("cm"))
    };
    // Of nothing, as of one.
    let typical = if typical == 0.0 { 1.0 } else { typical.abs() };
    // The unit of the numbers themselves, where it is a named one and they are handy in it.
    let own = named().find(|(.., size)| (unit / size - 1.0).abs() < 1e-9);
    if let Some(own) = own.filter(|_| (0.01..1e3).contains(&typical)) {
        return of(own);
    }
    // The largest of which there is a tenth at least. They are in the order of their sizes.
    let fitting = named().rfind(|(.., size)| typical * unit >= 0.1 * size);
    of(fitting
        .or(named().next())
        .expect("each dimension has units"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_handy() {
        let units = |text: &str| text.parse::<Units>().unwrap();
        let (pc, au) = (units("pc"), units("au"));
        assert_eq!(
            pc.shown_length(3.0),
            Shown {
                name: "pc",
                factor: 1.0
            }
        );
        assert_eq!(pc.shown_length(3e4).name, "kpc");
        assert_eq!(pc.shown_length(1e-5).name, "au");
        assert_eq!(au.shown_length(30.0).name, "au");
        // Units of time without a name: 0.98 million years, and a year divided by 2π.
        assert_eq!(pc.shown_time(10.0).name, "Myr");
        assert!((pc.shown_time(10.0).factor - 0.977_79).abs() < 1e-5);
        assert_eq!(
            [1e-3, 0.1, 6.0, 1e6].map(|time| au.shown_time(time).name),
            ["s", "day", "yr", "Myr"]
        );
        assert_eq!(pc.shown_speed(5.0).name, "km/s");
        assert_eq!(Units::SI.shown_speed(5.0).name, "m/s");
        assert_eq!(Units::SI.shown_length(0.0).name, "m");
    }
}
