//! Reasons why a run cannot be.

use super::GroupsFault;
use crate::backend::ForceError;
use crate::bodies::BodyFault;
use crate::encounters::EncounterFault;
use crate::fields::FieldFault;
use crate::plan::PlanError;
use crate::selection::SelectionError;
use crate::settings::Setting;
use crate::variants::UnknownVariant;

/// Reason why a run cannot be resolved or begun.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// There are no bodies.
    #[error("there are no bodies to simulate")]
    NoBodies,
    /// A column of the bodies is of another length, or a number in it is none.
    #[error(transparent)]
    Bodies(#[from] BodyFault),
    /// A number that makes no sense.
    #[error("{} must be {allowed}, got {}", .name.quoted(), number(*.value))]
    Value {
        /// Name of the setting.
        name: Setting,
        /// Values that the setting may have.
        allowed: &'static str,
        /// Value that the setting was given.
        value: f64,
    },
    /// Constants of another force law.
    #[error(
        "{} must be attract-repel for {} and {}",
        Setting::Law,
        Setting::Repulsion,
        Setting::Drag
    )]
    ConstantsOfAttractRepel,
    /// A gravitational constant for a law without.
    #[error(
        "{} has no effect under {}, in which all bodies attract alike: leave it out, got {}",
        Setting::G,
        Setting::Law.with("unit"),
        .0
    )]
    NoConstantOfUnitLaw(f64),
    /// Damping for an integrator without.
    #[error(
        "{} is for {}, not {}",
        Setting::Damping,
        Setting::Integrator.with("damped-euler"),
        .0
    )]
    NotDamped(&'static str),
    /// No time step follows from the bodies.
    #[error(
        "nothing is accelerated, so no time step follows: give one with {}",
        Setting::Dt
    )]
    NoTimeStep,
    /// A step that time cannot advance by.
    #[error(
        "{} must be long enough to get on from time {start}, got {dt:e}",
        Setting::Dt.quoted()
    )]
    StepTooShort {
        /// The step.
        dt: f64,
        /// Time at the beginning.
        start: f64,
    },
    /// Steps that lead away from the end, or never reach it.
    #[error(
        "steps of {dt:?} do not lead from time {start:?} to {}",
        Setting::Until.with(format!("{end:?}"))
    )]
    WrongWay {
        /// The step.
        dt: f64,
        /// Time at the beginning.
        start: f64,
        /// Time at the end.
        end: f64,
    },
    /// Steps of varying length cannot go back in time.
    #[error(
        "steps that follow the motion ({}, {}) go forward: not from time {start} to {end}; steps of one length ({}) \
         go back too",
        Setting::Eta,
        Setting::BlockSteps,
        Setting::Dt
    )]
    Backwards {
        /// Time at the beginning.
        start: f64,
        /// Time at the end.
        end: f64,
    },
    /// An end that is the beginning.
    #[error(
        "bodies are at time {time} already, so {} leaves nothing to do: give another time",
        Setting::Until.with(.time)
    )]
    NothingToDo {
        /// Time at the beginning, and at the end.
        time: f64,
    },
    /// Pairs and multiples that cannot be followed apart.
    #[error("{} needs {}", Setting::Groups.quoted(), .0)]
    Groups(#[from] GroupsFault),
    /// Unknown kernel.
    #[error(transparent)]
    Kernel(#[from] UnknownVariant),
    /// Launch geometry of blocks in one dimension that only blocks in two dimensions have.
    #[error(
        "{} and {} are for kernels with two-dimensional blocks, such as gtx980/2d",
        Setting::Len,
        Setting::Luf
    )]
    NoTwoDimensionalBlocks,
    /// Launch geometry for a kernel without blocks.
    #[error("{} is for GPU kernels, not for {}", Setting::Block, .0)]
    NoBlocks(&'static str),
    /// Tiles or streams for a kernel of one system.
    #[error(
        "{} and {} are for kernels of independent systems, such as galaxies/streams",
        Setting::Tile,
        Setting::Streams
    )]
    OneSystemAtATime,
    /// Tiles for a kernel without.
    #[error(
        "kernel `{}` has no tiles: {} is for kernels that do, such as galaxies/tiled-512",
        .0,
        Setting::Tile
    )]
    NoTiles(&'static str),
    /// Streams for a kernel of one stream.
    #[error(
        "kernel `{}` computes all systems in one stream: {} is for kernels that use several, such as \
         galaxies/streams",
        .0,
        Setting::Streams
    )]
    OneStream(&'static str),
    /// An unavailable device or kernel.
    #[error(transparent)]
    Selection(#[from] SelectionError),
    /// A launch that does not fit the device.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// An external field that makes no sense, or that the integrator cannot follow.
    #[error(transparent)]
    Field(#[from] FieldFault),
    /// Encounters that make no sense, or that cannot be looked for.
    #[error(transparent)]
    Encounter(#[from] EncounterFault),
    /// The backend refused.
    #[error(transparent)]
    Force(#[from] ForceError),
}

/// A number as people write it: with an exponent where it would have many zeros.
fn number(value: f64) -> String {
    match value.abs() {
        0.0 | 1e-5..1e15 => value.to_string(),
        _ => format!("{value:e}"),
    }
}
