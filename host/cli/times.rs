//! Times for people: in the unit that was asked for.

use allpairs::units::{Measure, Shown, Units};

use crate::say;

/// The unit in which a run's times are printed; without one, they are in the unit of the bodies.
#[derive(Clone, Copy, Debug)]
pub(super) struct Times(Option<Shown>);

impl Times {
    /// The unit of the first of the times that were `asked` for with one. If none was, a unit in which a
    /// `typical` time is handy, as far as the units of the bodies are known.
    pub(super) fn of(units: Option<&Units>, asked: &[Option<&Measure>], typical: f64) -> Self {
        let shown = units.map(|units| {
            let mut asked = asked.iter().flatten();
            let asked = asked.find_map(|measure| measure.shown_time(units));
            asked.unwrap_or_else(|| units.shown_time(typical))
        });
        Self(shown)
    }

    /// The unit, where there is one.
    pub(super) fn unit(&self) -> Option<Shown> {
        self.0
    }

    /// A time: `12.5 Myr`, or all digits of a number where the units are unknown.
    pub(super) fn text(&self, time: f64) -> String {
        self.with(time, say::plain, 6)
    }

    /// The length of a step: `0.0479`, or `0.0479 Myr`.
    pub(super) fn figure(&self, time: f64) -> String {
        match self.0 {
            None => say::figure(time),
            Some(_) if time == 0.0 => "0".into(),
            Some(Shown { name, factor }) => format!("{} {name}", say::figure(time * factor)),
        }
    }

    /// A time on its way, in a line of progress.
    pub(super) fn passing(&self, time: f64) -> String {
        self.with(time, |time| format!("{time:.4}"), 4)
    }

    /// A time as a number in the unit, and the label of a row of these.
    pub(super) fn in_table(&self, time: f64) -> f64 {
        self.0.map_or(time, |shown| time * shown.factor)
    }

    /// Label of a row of times in a table.
    pub(super) fn label(&self) -> String {
        self.0
            .map_or("time".into(), |shown| format!("time [{}]", shown.name))
    }

    fn with(&self, time: f64, unknown: impl FnOnce(f64) -> String, digits: usize) -> String {
        match self.0 {
            None => unknown(time),
            Some(_) if time == 0.0 => "0".into(),
            Some(Shown { name, factor }) => {
                let number = time * factor;
                let rounded = format!("{number:.*e}", digits - 1)
                    .parse()
                    .unwrap_or(number);
                format!("{} {name}", say::plain(rounded))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_in_the_unit_that_was_asked_for() {
        let pc: Units = "pc".parse().unwrap();
        let measure = |text: &str| text.parse::<Measure>().unwrap();
        let (asked, number, length) = (measure("500 Myr"), measure("0.5"), measure("1pc"));
        let of = |asked: &[Option<&Measure>]| Times::of(Some(&pc), asked, 500.0);
        let half = asked.time(Some(&pc)).unwrap();
        assert_eq!(of(&[Some(&asked)]).text(half), "500 Myr");
        assert_eq!(
            of(&[None, Some(&number), Some(&length), Some(&asked)]).text(half),
            "500 Myr"
        );
        assert_eq!(of(&[None, Some(&number)]).text(half), "0.5 Gyr");
        assert_eq!(of(&[]).text(0.0), "0");
        assert_eq!(of(&[Some(&asked)]).passing(half / 3.0), "166.7 Myr");
        let unknown = Times::of(None, &[Some(&number)], 1.0);
        assert_eq!(unknown.text(0.125), "0.125");
        assert_eq!(unknown.passing(0.125), "0.1250");
        assert_eq!(
            (unknown.label(), of(&[]).label()),
            ("time".into(), "time [Gyr]".into())
        );
    }
}
