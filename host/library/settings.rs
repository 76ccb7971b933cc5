//! Names of settings in messages, spelled for the front that the user sees.

use std::fmt;
use std::sync::atomic::{AtomicU8, Ordering};

/// Front of a process: the way in which its user gives settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Front {
    /// Calls of a builder: `` `block_steps` ``.
    Builder,
    /// Options of the program: `--block-steps`.
    CommandLine,
    /// Arguments of Python's functions: `` `block` ``.
    Python,
}

/// Front of this process, as its number.
static FRONT: AtomicU8 = AtomicU8::new(Front::Builder as u8);

impl Front {
    /// Makes this the front of the process. Messages that are made afterwards spell settings for it.
    pub fn speak(self) {
        FRONT.store(self as u8, Ordering::Relaxed);
    }

    /// Front of this process: the builder until another one [speaks](Self::speak).
    pub fn current() -> Self {
        match FRONT.load(Ordering::Relaxed) {
            number if number == Self::CommandLine as u8 => Self::CommandLine,
            number if number == Self::Python as u8 => Self::Python,
            _ => Self::Builder,
        }
    }
}

/// A setting of a run, of the bodies' units or of initial conditions.
///
/// It displays its name as the [front](Front) of the process spells it.
///
/// ```
/// use allpairs::settings::{Front, Setting};
///
/// let setting = Setting::BlockSteps;
/// assert_eq!(setting.spelled(Front::Builder), "`block_steps`");
/// assert_eq!(setting.spelled(Front::CommandLine), "--block-steps");
/// assert_eq!(setting.spelled(Front::Python), "`block`");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[expect(missing_docs, reason = "each is named like the setting of the builder")]
pub enum Setting {
    Accuracy,
    AllowInaccurate,
    Block,
    BlockSteps,
    Damping,
    Device,
    Drag,
    Dt,
    Epoch,
    EscapeRadius,
    Eta,
    Field,
    G,
    Groups,
    Independent,
    Integrator,
    Kernel,
    Law,
    Len,
    Luf,
    Mass,
    Masses,
    Moon,
    Neighbours,
    Of,
    OnCollision,
    OnEscape,
    Orbit,
    Physical,
    Radii,
    Radius,
    Repulsion,
    Softening,
    Start,
    Steps,
    Streams,
    Systems,
    Tile,
    Units,
    Until,
}

impl Setting {
    /// All settings.
    pub const ALL: [Self; 40] = [
        Self::Accuracy,
        Self::AllowInaccurate,
        Self::Block,
        Self::BlockSteps,
        Self::Damping,
        Self::Device,
        Self::Drag,
        Self::Dt,
        Self::Epoch,
        Self::EscapeRadius,
        Self::Eta,
        Self::Field,
        Self::G,
        Self::Groups,
        Self::Independent,
        Self::Integrator,
        Self::Kernel,
        Self::Law,
        Self::Len,
        Self::Luf,
        Self::Mass,
        Self::Masses,
        Self::Moon,
        Self::Neighbours,
        Self::Of,
        Self::OnCollision,
        Self::OnEscape,
        Self::Orbit,
        Self::Physical,
        Self::Radii,
        Self::Radius,
        Self::Repulsion,
        Self::Softening,
        Self::Start,
        Self::Steps,
        Self::Streams,
        Self::Systems,
        Self::Tile,
        Self::Units,
        Self::Until,
    ];

    /// Name that the builder has for it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Accuracy => "accuracy",
            Self::AllowInaccurate => "allow_inaccurate",
            Self::Block => "block",
            Self::BlockSteps => "block_steps",
            Self::Damping => "damping",
            Self::Device => "device",
            Self::Drag => "drag",
            Self::Dt => "dt",
            Self::Epoch => "epoch",
            Self::EscapeRadius => "escape_radius",
            Self::Eta => "eta",
            Self::Field => "field",
            Self::G => "g",
            Self::Groups => "groups",
            Self::Independent => "independent",
            Self::Integrator => "integrator",
            Self::Kernel => "kernel",
            Self::Law => "law",
            Self::Len => "len",
            Self::Luf => "luf",
            Self::Mass => "mass",
            Self::Masses => "masses",
            Self::Moon => "moon",
            Self::Neighbours => "neighbours",
            Self::Of => "of",
            Self::OnCollision => "on_collision",
            Self::OnEscape => "on_escape",
            Self::Orbit => "orbit",
            Self::Physical => "physical",
            Self::Radii => "radii",
            Self::Radius => "radius",
            Self::Repulsion => "repulsion",
            Self::Softening => "softening",
            Self::Start => "start",
            Self::Steps => "steps",
            Self::Streams => "streams",
            Self::Systems => "systems",
            Self::Tile => "tile",
            Self::Units => "units",
            Self::Until => "until",
        }
    }

    /// Option of `allpairs run`, without its dashes.
    pub fn option(self) -> String {
        match self {
            Self::G => "gravity".to_owned(),
            Self::Radii => "radius-of-bodies".to_owned(),
            other => other.name().replace('_', "-"),
        }
    }

    /// Argument in Python.
    pub const fn argument(self) -> &'static str {
        match self {
            Self::Block | Self::Len | Self::Luf => "shape",
            Self::BlockSteps => "block",
            Self::G => "G",
            Self::Until => "t",
            other => other.name(),
        }
    }

    /// Name as a front spells it.
    pub fn spelled(self, front: Front) -> String {
        match front {
            Front::Builder => format!("`{}`", self.name()),
            Front::CommandLine => format!("--{}", self.option()),
            Front::Python => format!("`{}`", self.argument()),
        }
    }

    /// Name in backticks, as the [front](Front::current) of the process spells it: the subject of a sentence
    /// about the number that it was given.
    pub fn quoted(self) -> String {
        match Front::current() {
            Front::CommandLine => format!("`{self}`"),
            Front::Builder | Front::Python => self.to_string(),
        }
    }

    /// Name with a value, as the [front](Front::current) of the process spells both: ``the `device` cuda``,
    /// `--device cuda` or `` `device="cuda"` ``.
    pub fn with(self, value: impl fmt::Display) -> String {
        match Front::current() {
            Front::Builder => format!("the {self} {value}"),
            Front::CommandLine => format!("{self} {value}"),
            Front::Python => {
                let value = value.to_string();
                let argument = self.argument();
                match value.parse::<f64>() {
                    Ok(_) => format!("`{argument}={value}`"),
                    Err(_) => format!("`{argument}=\"{value}\"`"),
                }
            }
        }
    }
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.spelled(Front::current()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_settings_are_listed_once_in_order() {
        assert!(Setting::ALL.windows(2).all(|pair| pair[0] < pair[1]));
        let last = Setting::Until as usize;
        assert_eq!(Setting::ALL.len(), last + 1);
    }

    #[test]
    fn settings_are_spelled_for_each_front() {
        let spelled = |setting: Setting| {
            [Front::Builder, Front::CommandLine, Front::Python].map(|f| setting.spelled(f))
        };
        assert_eq!(
            spelled(Setting::BlockSteps),
            ["`block_steps`", "--block-steps", "`block`"]
        );
        assert_eq!(spelled(Setting::G), ["`g`", "--gravity", "`G`"]);
        assert_eq!(spelled(Setting::Eta), ["`eta`", "--eta", "`eta`"]);
    }
}
