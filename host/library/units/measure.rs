//! Times and lengths as people give them.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

use super::{Dimension, Shown, UNITS, Units, UnknownUnits};
use crate::settings::Setting;

/// A time or a length: a number in the units of the bodies (`0.5`), or one with a unit of its own
/// (`10Myr`, `0.01pc`).
#[derive(Clone, Debug, PartialEq)]
pub struct Measure {
    text: String,
    number: f64,
    unit: Option<(Dimension, f64)>,
}

/// Reason why a measure is no number in the units of the bodies.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum MeasureError {
    /// Some other quantity, where a time is wanted.
    #[error(
        "`{0}` is not a time: give a number, or one such as 10Myr, with s, day, yr, Myr or Gyr"
    )]
    NoTime(String),
    /// Some other quantity, where a length is wanted.
    #[error(
        "`{0}` is not a length: give a number, or one such as 0.1pc, with m, cm, km, au, pc, kpc or Mpc"
    )]
    NoLength(String),
    /// A unit, although the units of the bodies are unknown.
    #[error(
        "`{0}` has a unit, and the units of the bodies are unknown: give their {units}, or a model in N-body \
         units its {mass} and {radius}; or leave out the unit of `{0}`",
        units = Setting::Units, mass = Setting::Mass, radius = Setting::Radius
    )]
    NoUnits(String),
    /// A unit, where the length that is 1 in a model is unknown.
    #[error(
        "`{0}` has a unit, and the model has no size: give its {radius}, the length that is 1 in it; or \
         leave out the unit of `{0}`",
        radius = Setting::Radius
    )]
    NoRadius(String),
    /// Too large or too small in the units of the bodies.
    #[error("`{0}` is out of the range of numbers in the units of the bodies")]
    Range(String),
}

impl Measure {
    /// The time in the units of the bodies, if these are known.
    ///
    /// # Errors
    /// It is not a time, or has a unit although the units of the bodies are not known.
    pub fn time(&self, units: Option<&Units>) -> Result<f64, MeasureError> {
        self.in_units(Dimension::Time, units)
    }

    /// The length in the units of the bodies, if these are known.
    ///
    /// # Errors
    /// It is not a length, or has a unit although the units of the bodies are not known.
    pub fn length(&self, units: Option<&Units>) -> Result<f64, MeasureError> {
        self.in_units(Dimension::Length, units)
    }

    /// The unit that the time was given with, if it has one, for numbers in the units of the bodies.
    pub fn shown_time(&self, units: &Units) -> Option<Shown> {
        let given = self
            .unit
            .filter(|(dimension, _)| *dimension == Dimension::Time)?;
        let (name, _, size) = UNITS
            .iter()
            .find(|(_, dimension, size)| (*dimension, *size) == given)?;
        let factor = units.time / size;
        Some(Shown { name, factor })
    }

    fn in_units(&self, wanted: Dimension, units: Option<&Units>) -> Result<f64, MeasureError> {
        let Some((dimension, size)) = self.unit else {
            return Ok(self.number);
        };
        let text = || self.text.clone();
        let unit = match (wanted, units) {
            _ if dimension != wanted && wanted == Dimension::Time => {
                return Err(MeasureError::NoTime(text()));
            }
            _ if dimension != wanted => return Err(MeasureError::NoLength(text())),
            (_, None) => return Err(MeasureError::NoUnits(text())),
            (Dimension::Time, Some(units)) => units.time,
            (_, Some(units)) => units.length,
        };
        let number = self.number * size / unit;
        match number.is_finite() && (number != 0.0 || self.number == 0.0) {
            true => Ok(number),
            false => Err(MeasureError::Range(text())),
        }
    }
}

impl From<f64> for Measure {
    fn from(number: f64) -> Self {
        Self {
            text: format!("{number:?}"),
            number,
            unit: None,
        }
    }
}

impl FromStr for Measure {
    type Err = UnknownUnits;

    fn from_str(text: &str) -> Result<Self, UnknownUnits> {
        let text = text.trim();
        if let Ok(number) = text.parse::<f64>() {
            return Ok(number.into());
        }
        // The name that leaves a number: `1pc` ends in `pc`, not in a number and `c`.
        let found = UNITS.iter().find_map(|(name, dimension, size)| {
            let number: f64 = text.strip_suffix(name)?.trim().parse().ok()?;
            let is_measure = matches!(dimension, Dimension::Length | Dimension::Time);
            (number.is_finite() && is_measure).then_some((number, (*dimension, *size)))
        });
        let (number, unit) = found.ok_or_else(|| UnknownUnits::NoMeasure(text.to_owned()))?;
        Ok(Self {
            text: text.to_owned(),
            number,
            unit: Some(unit),
        })
    }
}

/// As it was given.
impl fmt::Display for Measure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn measures_are_numbers_in_the_units_of_the_bodies() {
        let pc: Units = "pc".parse().unwrap();
        let measure = |text: &str| text.parse::<Measure>().unwrap();
        for (text, number) in [("0.5", 0.5), ("-1e-3", -1e-3), ("7", 7.0)] {
            assert_eq!(measure(text).time(None), Ok(number));
            assert_eq!(measure(text).length(Some(&pc)), Ok(number));
        }
        // A unit of time of 0.978 million years.
        let ten = measure("10 Myr").time(Some(&pc)).unwrap();
        assert!((ten - 10.227).abs() < 1e-3, "{ten}");
        assert_eq!(measure("-10Myr").time(Some(&pc)), Ok(-ten));
        assert_eq!(measure("0.25pc").length(Some(&pc)), Ok(0.25));
        assert_eq!(measure("0pc").length(Some(&pc)), Ok(0.0));
        assert_eq!(measure("10Myr").to_string(), "10Myr");
        let text = |text: &str| text.to_owned();
        assert_eq!(
            measure("1pc").time(Some(&pc)),
            Err(MeasureError::NoTime(text("1pc")))
        );
        assert_eq!(
            measure("1s").length(None),
            Err(MeasureError::NoLength(text("1s")))
        );
        assert_eq!(
            measure("1s").time(None),
            Err(MeasureError::NoUnits(text("1s")))
        );
        let tiny = Units {
            time: 1e-300,
            ..Units::SI
        };
        assert_eq!(
            measure("1e9Gyr").time(Some(&tiny)),
            Err(MeasureError::Range(text("1e9Gyr")))
        );
        for text in [
            "", "pc", "1Msun", "5km/s", "nanpc", "infyr", "1 parsec", "1e999pc",
        ] {
            let refused = Err(UnknownUnits::NoMeasure(text.to_owned()));
            assert_eq!(text.parse::<Measure>(), refused, "{text}");
        }
    }
}
