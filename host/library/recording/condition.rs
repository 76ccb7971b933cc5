//! Conditions that end a run: what a look must find, or the time that the run has taken.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use thiserror::Error;

use super::Every;
use crate::diagnostics::Sample;
use crate::names::nearest;

/// A condition such as `r10 < 0.05` or `wall > 2h`.
#[derive(Clone, Debug, PartialEq)]
pub struct Condition {
    text: String,
    what: What,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum What {
    /// A column of the diagnostics, below a number or above it.
    Look {
        column: usize,
        below: bool,
        bound: f64,
    },
    /// The time on the clock on the wall.
    Wall(Duration),
}

/// A text that is no condition.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "`{text}` is not a condition, such as \"r10 < 0.05\" or \"wall > 2h\": a name{near}, < or >, and a number; there \
     are {names} and wall",
    near = near.map(|near| format!(" (did you mean `{near}`?)")).unwrap_or_default(),
    names = Sample::COLUMNS.join(", ")
)]
pub struct NoCondition {
    text: String,
    near: Option<&'static str>,
}

impl Condition {
    /// Returns whether it is about what looks find.
    pub fn needs_looks(&self) -> bool {
        matches!(self.what, What::Look { .. })
    }

    /// Returns whether a look meets it. Its columns in the log have these factors.
    pub(super) fn is_met(&self, sample: &Sample, factors: &[f64]) -> bool {
        match self.what {
            What::Look {
                column,
                below,
                bound,
            } => {
                let value = factors.get(column).unwrap_or(&1.0) * sample.values()[column];
                if below { value < bound } else { value > bound }
            }
            What::Wall(_) => false,
        }
    }

    /// Returns whether a run that has taken so long meets it.
    pub(super) fn is_over(&self, taken: Duration) -> bool {
        matches!(self.what, What::Wall(limit) if taken > limit)
    }
}

/// As it was given.
impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl FromStr for Condition {
    type Err = NoCondition;

    fn from_str(text: &str) -> Result<Self, NoCondition> {
        let fault = |near| NoCondition {
            text: text.to_owned(),
            near,
        };
        let at = text.find(['<', '>']).ok_or_else(|| fault(None))?;
        let (name, bound) = (text[..at].trim(), text[at + 1..].trim());
        let below = text[at..].starts_with('<');
        let what = if name == "wall" && !below {
            match bound.parse() {
                Ok(Every::Wall(limit)) => What::Wall(limit),
                _ => return Err(fault(None)),
            }
        } else {
            let column = Sample::COLUMNS.iter().position(|column| *column == name);
            let column = column.ok_or_else(|| fault(nearest(name, Sample::COLUMNS)))?;
            let bound = bound.parse().ok().filter(|bound: &f64| bound.is_finite());
            let bound = bound.ok_or_else(|| fault(None))?;
            What::Look {
                column,
                below,
                bound,
            }
        };
        Ok(Self {
            text: text.trim().to_owned(),
            what,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_are_read() {
        for text in [
            "r10 < 0.05",
            "energy_drift>1e-3",
            " virial_ratio < -1 ",
            "wall > 2h",
        ] {
            let condition: Condition = text.parse().unwrap();
            assert_eq!(condition.to_string(), text.trim());
            assert_eq!(condition.needs_looks(), !text.contains("wall"));
        }
        let wall: Condition = "wall>90s".parse().unwrap();
        assert!(wall.is_over(Duration::from_secs(91)) && !wall.is_over(Duration::from_secs(89)));
        for (text, part) in [
            ("r10", "`r10` is not a condition"),
            ("r11 < 1", "did you mean `r10`?"),
            ("r10 < small", "there are time, kinetic"),
            ("r10 < nan", "not a condition"),
            ("wall > 2", "`wall > 2`"),
            ("wall < 2h", "`wall < 2h`"),
        ] {
            let told = text.parse::<Condition>().unwrap_err().to_string();
            assert!(told.contains(part), "{told}");
        }
    }
}
