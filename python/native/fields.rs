//! External fields: in the words of the program, or objects of Python's.

use std::sync::{Arc, Mutex, PoisonError};

use allpairs::fields::{self, ExternalField, HostField};
use allpairs::units::Units;
use pyo3::call::PyCallArgs;
use pyo3::exceptions::PyArithmeticError;
use pyo3::prelude::*;

use crate::errors::Failure;

/// The first exception that a field of Python's raised, until it can be raised again.
#[derive(Clone, Debug, Default)]
pub(crate) struct Raised(Arc<Mutex<Option<PyErr>>>);

impl Raised {
    /// This outcome, unless there is an exception: that is the reason then.
    pub(crate) fn or<T>(&self, outcome: PyResult<T>) -> PyResult<T> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.take().map_or(outcome, Err)
    }

    fn keep(&self, error: PyErr) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.get_or_insert(error);
    }
}

/// A field as Python gives it.
pub(crate) enum Given {
    /// In the words of the program.
    Text(String),
    Own(Own),
}

/// A field that an object of Python's computes, on the host.
#[derive(Debug)]
pub(crate) struct Own {
    object: Py<PyAny>,
    raised: Raised,
}

impl Given {
    pub(crate) fn new(object: &Bound<'_, PyAny>, raised: &Raised) -> Self {
        match object.extract() {
            Ok(text) => Self::Text(text),
            Err(_) => Self::Own(Own {
                object: object.clone().unbind(),
                raised: raised.clone(),
            }),
        }
    }

    /// The fields, for a run in these units and with this G.
    pub(crate) fn fields(
        self,
        units: Option<&Units>,
        g: f64,
    ) -> Result<Vec<ExternalField>, Failure> {
        match self {
            Self::Text(text) => {
                let fields = fields::parse(&text, units, g);
                let fields = fields
                    .map_err(|fault| Failure::of("field", format!("`field` {text}: {fault}")))?;
                Ok(fields.iter().cloned().collect())
            }
            Self::Own(own) => Ok(vec![ExternalField::own(own)]),
        }
    }
}

impl Own {
    /// The result of a method, if there is such a method; numbers that are none after an exception.
    fn call<'py, T: for<'a> FromPyObject<'a, 'py>>(
        &self,
        py: Python<'py>,
        method: &str,
        arguments: impl PyCallArgs<'py>,
        none: T,
    ) -> Option<T> {
        let object = self.object.bind(py);
        if !object.hasattr(method).unwrap_or(false) {
            return None;
        }
        let called = object
            .getattr(method)
            .and_then(|method| method.call1(arguments))
            .and_then(|found| found.extract().map_err(Into::into));
        Some(called.unwrap_or_else(|error| {
            // A division by zero is no number anywhere else either, and there may be no body at the origin.
            if !error.is_instance_of::<PyArithmeticError>(py) {
                self.raised.keep(error);
            }
            none
        }))
    }
}

impl HostField for Own {
    fn acceleration(&self, time: f64, position: [f64; 3]) -> [f64; 3] {
        let none = [f64::NAN; 3];
        let found = Python::attach(|py| self.call(py, "acceleration", (time, position), none));
        found.unwrap_or(none)
    }

    fn jerk(&self, time: f64, position: [f64; 3], velocity: [f64; 3]) -> Option<[f64; 3]> {
        let arguments = (time, position, velocity);
        Python::attach(|py| self.call(py, "jerk", arguments, [f64::NAN; 3]))
    }

    fn potential(&self, time: f64, position: [f64; 3]) -> Option<f64> {
        Python::attach(|py| self.call(py, "potential", (time, position), f64::NAN))
    }
}
