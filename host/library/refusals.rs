//! Refusals of what does not go together, with advice as data, which a test can follow.

use std::fmt;

use crate::settings::{Front, Setting};

/// A change of one setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// Leaves the setting out.
    Drop(Setting),
    /// Leaves this value of the setting out, which may have several.
    DropValue(Setting, &'static str),
    /// Gives the setting this value.
    Set(Setting, &'static str),
    /// Adds a setting without a value, or with one that the user chooses.
    Add(Setting),
    /// Starts one process instead of several ranks.
    OneProcess,
}

/// Changes that together remove a refusal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remedy(pub Vec<Change>);

/// Reason why a combination cannot be, and changes of settings that each remove it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The two sides that do not go together.
    pub sides: [&'static str; 2],
    /// Reason, for people.
    pub reason: String,
    /// Changes of settings. Each remedy alone removes the refusal.
    pub remedies: Vec<Remedy>,
}

/// All refusals of a run, at least one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", lines(.0))]
pub struct Refusals(pub Vec<Refusal>);

impl Refusals {
    /// The setting that the first remedy changes, if it changes one.
    pub fn setting(&self) -> Option<Setting> {
        let mut remedies = self.0.iter().flat_map(|refusal| &refusal.remedies);
        match *remedies.next()?.0.first()? {
            Change::Drop(setting)
            | Change::DropValue(setting, _)
            | Change::Set(setting, _)
            | Change::Add(setting) => Some(setting),
            Change::OneProcess => None,
        }
    }
}

/// A line for each refusal.
fn lines(refusals: &[Refusal]) -> String {
    let lines: Vec<String> = refusals.iter().map(Refusal::to_string).collect();
    lines.join("\nand ")
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.reason)?;
        for (k, remedy) in self.remedies.iter().enumerate() {
            let before = if k == 0 { ": " } else { ", or " };
            write!(f, "{before}{remedy}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Remedy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (k, change) in self.0.iter().enumerate() {
            match (k, k.checked_sub(1).map(|before| self.0[before]), change) {
                (_, Some(Change::Drop(_)), Change::Drop(setting)) => write!(f, " and {setting}")?,
                (0, ..) => write!(f, "{change}")?,
                _ => write!(f, " and {change}")?,
            }
        }
        Ok(())
    }
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Drop(setting) => write!(f, "leave out {setting}"),
            Self::DropValue(setting, value) => write!(f, "leave out {}", setting.with(value)),
            Self::Set(setting, value) => write!(f, "choose {}", setting.with(value)),
            Self::Add(setting) => write!(f, "add {setting}"),
            Self::OneProcess if Front::current() == Front::CommandLine => {
                f.write_str("start without the MPI launcher")
            }
            Self::OneProcess => f.write_str("start one process"),
        }
    }
}
