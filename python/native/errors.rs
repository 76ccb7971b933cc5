//! Errors of the library as exceptions, and panics too.

use std::any::Any;
use std::io;

use allpairs::backend::ForceError;
use allpairs::bodies::BodyFault;
use allpairs::initial_conditions::{GenerateError, SizeError};
use allpairs::io::{ReadError, WriteError};
use allpairs::output::run_log::LogFault;
use allpairs::output::viewer::ViewError;
use allpairs::output::{ChartError, PictureError};
use allpairs::plan::PlanError;
use allpairs::refusals::Refusals;
use allpairs::selection::{Ineligible, SelectionError};
use allpairs::simulation::{BuildError, ChangeError};
use allpairs::suggest::NoStandardUnits;
use allpairs::units::UnknownUnits;
use pyo3::prelude::*;

/// The exception that a failure becomes, of those in `allpairs/_errors.py`.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Kind {
    Argument,
    File,
    Device,
    Compute,
    Closed,
    Internal,
}

/// Reason why there is no result.
#[derive(Clone, Debug)]
pub(crate) struct Failure {
    pub(crate) kind: Kind,
    /// The argument at fault, if it is one.
    pub(crate) argument: Option<&'static str>,
    pub(crate) text: String,
}

impl Failure {
    pub(crate) fn new(kind: Kind, error: impl ToString) -> Self {
        let (argument, text) = (None, error.to_string());
        Self {
            kind,
            argument,
            text,
        }
    }

    /// Of an argument.
    pub(crate) fn of(name: &'static str, error: impl ToString) -> Self {
        Self {
            argument: Some(name),
            ..Self::new(Kind::Argument, error)
        }
    }

    pub(crate) fn panicked(panic: &(dyn Any + Send)) -> Self {
        let text = panic.downcast_ref::<&str>().copied();
        let text = text.or(panic.downcast_ref::<String>().map(String::as_str));
        Self::new(Kind::Internal, text.unwrap_or("a panic without a message"))
    }

    /// The exception.
    pub(crate) fn raise(self, py: Python<'_>) -> PyErr {
        let name = match self.kind {
            Kind::Argument => "ArgumentError",
            Kind::File => "FileError",
            Kind::Device => "DeviceError",
            Kind::Compute => "ComputeError",
            Kind::Closed => "ClosedError",
            Kind::Internal => "InternalError",
        };
        let made = py
            .import("allpairs._errors")
            .and_then(|module| module.call_method1("made", (name, self.argument, self.text)));
        match made {
            Ok(exception) => PyErr::from_value(exception),
            Err(error) => error,
        }
    }
}

impl From<BodyFault> for Failure {
    fn from(fault: BodyFault) -> Self {
        let field = match fault {
            BodyFault::Length { field, .. } | BodyFault::NotFinite { field, .. } => field,
            _ => "mass",
        };
        let argument = match field {
            "x" | "y" | "z" => "pos",
            "vx" | "vy" | "vz" => "vel",
            "mass" => "m",
            other => other,
        };
        Self::of(argument, fault)
    }
}

impl From<BuildError> for Failure {
    fn from(error: BuildError) -> Self {
        match error {
            BuildError::Bodies(fault) => fault.into(),
            BuildError::Value { name, .. } => Self::of(name.argument(), error),
            BuildError::ConstantsOfAttractRepel => Self::of("law", error),
            BuildError::NoConstantOfUnitLaw(_) => Self::of("G", error),
            BuildError::NotDamped(_) => Self::of("damping", error),
            BuildError::NoTimeStep => Self::of("dt", error),
            BuildError::Groups(_) => Self::of("groups", error),
            BuildError::Selection(error) => error.into(),
            BuildError::Plan(error) => error.into(),
            BuildError::Force(error) => error.into(),
            error => Self::new(Kind::Argument, error),
        }
    }
}

impl From<ChangeError> for Failure {
    fn from(error: ChangeError) -> Self {
        let argument = match &error {
            ChangeError::Number { values, .. } | ChangeError::NotFinite { values, .. } => {
                match *values {
                    "masses" => "m",
                    "positions" => "pos",
                    "velocities" => "vel",
                    other => other,
                }
            }
            ChangeError::UnknownId(_)
            | ChangeError::GivenTwice(_)
            | ChangeError::Ambiguous(_)
            | ChangeError::IdTaken(_)
            | ChangeError::NoneLeft
            | ChangeError::OtherDominant(_) => "ids",
            ChangeError::NegativeMass { .. } | ChangeError::MasslessInGroups(_) => "m",
            ChangeError::SamePlace(..) => "pos",
            ChangeError::NoWayBack(_) => "t",
            ChangeError::NoEncounters | ChangeError::Encounters(_) | ChangeError::Overlap(..) => {
                "radii"
            }
            _ => {
                return match error {
                    ChangeError::Bodies(fault) => fault.into(),
                    ChangeError::Force(error) => error.into(),
                    ChangeError::Build(error) => error.into(),
                    error => Self::new(Kind::Argument, error),
                };
            }
        };
        Self::of(argument, error)
    }
}

impl From<Refusals> for Failure {
    fn from(refusals: Refusals) -> Self {
        match refusals.setting() {
            Some(setting) => Self::of(setting.argument(), refusals),
            None => Self::new(Kind::Argument, refusals),
        }
    }
}

impl From<SelectionError> for Failure {
    fn from(error: SelectionError) -> Self {
        match error {
            SelectionError::Refused(refusals)
            | SelectionError::Ineligible(Ineligible::Refused(refusals)) => refusals.into(),
            error => Self::new(Kind::Device, error),
        }
    }
}

impl From<ForceError> for Failure {
    fn from(error: ForceError) -> Self {
        let kind = match error {
            ForceError::Field(_) => return Self::of("field", error),
            ForceError::Refused(refusals) => return refusals.into(),
            ForceError::NoGpu(_) | ForceError::Driver(_) | ForceError::Plan(_) => Kind::Device,
            ForceError::OutOfRange(_) | ForceError::NoJerks | ForceError::NoBlockSteps => {
                Kind::Argument
            }
            _ => Kind::Compute,
        };
        Self::new(kind, error)
    }
}

impl From<PictureError> for Failure {
    fn from(error: PictureError) -> Self {
        let kind = match error {
            PictureError::File { .. } => Kind::File,
            _ => Kind::Argument,
        };
        Self::new(kind, error)
    }
}

/// Errors that are of one kind whatever they say.
macro_rules! kinds {
    ($($error:ty => $kind:ident,)*) => {
        $(impl From<$error> for Failure {
            fn from(error: $error) -> Self {
                Self::new(Kind::$kind, error)
            }
        })*
    };
}

kinds! {
    PlanError => Device,
    ReadError => File,
    WriteError => File,
    io::Error => File,
    ViewError => File,
    ChartError => File,
    LogFault => Argument,
    GenerateError => Argument,
    SizeError => Argument,
    UnknownUnits => Argument,
    NoStandardUnits => Argument,
}
