//! External fields: in the words of the program, or objects of Python's.

use std::cell::RefCell;
use std::sync::{Arc, Mutex, PoisonError};

use allpairs::fields::{self, ExternalField, HostField};
use allpairs::units::Units;
use pyo3::call::PyCallArgs;
use pyo3::exceptions::PyArithmeticError;
use pyo3::prelude::*;

use crate::errors::Failure;

/// Faults of a simulation's fields of Python's, until they can be raised.
#[derive(Clone, Debug, Default)]
pub(crate) struct Faults(Arc<Mutex<Found>>);

#[derive(Debug, Default)]
struct Found {
    /// The first exception that a field raised.
    raised: Option<PyErr>,
    /// The last arithmetic error that a field raised, until it is known whether there is a body.
    arithmetic: Option<PyErr>,
    /// Words about the first result that was not finite, and the arithmetic error that it stands for.
    strange: Option<(String, Option<PyErr>)>,
    /// The arithmetic error of the words that were asked for last.
    cause: Option<PyErr>,
}

thread_local! {
    /// Simulations that wait for what this thread does in their fields just now, the last one at the end: addresses of
    /// what they found.
    static WITHIN: RefCell<Vec<usize>> = const { RefCell::new(vec![]) };
}

/// Simulations that wait for what a thread does.
pub(crate) struct Waiting(Vec<usize>);

impl Waiting {
    /// For this thread.
    pub(crate) fn here() -> Self {
        Self(WITHIN.with_borrow(Clone::clone))
    }

    /// Does work in this thread that the other one waits for.
    pub(crate) fn during<T>(self, work: impl FnOnce() -> T) -> T {
        let _before = Before(WITHIN.replace(self.0));
        work()
    }
}

/// Simulations that waited for this thread before, and do so again.
struct Before(Vec<usize>);

impl Drop for Before {
    fn drop(&mut self) {
        WITHIN.set(std::mem::take(&mut self.0));
    }
}

impl Faults {
    /// This outcome, unless there is an exception: that is the reason then. An error in words about a result has the
    /// arithmetic error of the field as its cause.
    pub(crate) fn or<T>(&self, outcome: PyResult<T>) -> PyResult<T> {
        let (raised, cause) = self.change(|found| (found.raised.take(), found.cause.take()));
        match (raised, outcome) {
            (Some(raised), _) => Err(raised),
            (None, Err(error)) if cause.is_some() => {
                Python::attach(|py| error.set_cause(py, cause));
                Err(error)
            }
            (None, outcome) => outcome,
        }
    }

    /// Returns whether a field raised an exception that is not raised again yet.
    pub(crate) fn has_raised(&self) -> bool {
        self.change(|found| found.raised.is_some())
    }

    /// Words about the first result that was not finite since this was last asked, if there was one.
    pub(crate) fn take_strange(&self) -> Option<String> {
        self.change(|found| {
            let (text, cause) = found.strange.take()?;
            found.cause = cause;
            Some(text)
        })
    }

    /// Forgets results that were not finite.
    pub(crate) fn forget_strange(&self) {
        self.change(|found| (found.strange, found.cause, found.arithmetic) = (None, None, None));
    }

    /// Refuses to use a simulation within one of the simulation's fields, which would wait for itself.
    pub(crate) fn refuse_within(&self) -> Result<(), Failure> {
        let own = self.address();
        match WITHIN.with_borrow(|within| within.contains(&own)) {
            true => Err(Failure::of(
                "field",
                "`field` uses its own simulation, which waits for the field: compute from the time and the \
                 position that the field is given",
            )),
            false => Ok(()),
        }
    }

    fn address(&self) -> usize {
        Arc::as_ptr(&self.0).addr()
    }

    fn change<T>(&self, change: impl FnOnce(&mut Found) -> T) -> T {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// The stay of this thread in a field.
struct Stay;

impl Stay {
    fn new(faults: &Faults) -> Self {
        WITHIN.with_borrow_mut(|within| within.push(faults.address()));
        Self
    }
}

impl Drop for Stay {
    fn drop(&mut self) {
        WITHIN.with_borrow_mut(|within| within.pop());
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
    faults: Faults,
}

impl Given {
    pub(crate) fn new(object: &Bound<'_, PyAny>, faults: &Faults) -> Self {
        match object.extract() {
            Ok(text) => Self::Text(text),
            Err(_) => Self::Own(Own {
                object: object.clone().unbind(),
                faults: faults.clone(),
            }),
        }
    }

    /// Returns whether this is a field of the user's own.
    pub(crate) fn is_own(&self) -> bool {
        matches!(self, Self::Own(_))
    }

    /// Returns whether this is a field of the user's own without a potential.
    pub(crate) fn lacks_potential(&self, py: Python<'_>) -> bool {
        match self {
            Self::Text(_) => false,
            Self::Own(own) => !own.has(py, "potential"),
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
    fn has(&self, py: Python<'_>, method: &str) -> bool {
        self.object.bind(py).hasattr(method).unwrap_or(false)
    }

    /// The result of a method, if there is such a method; `none`, numbers that are not finite, after an
    /// exception.
    fn call<'py, T>(
        &self,
        py: Python<'py>,
        method: &str,
        arguments: impl PyCallArgs<'py>,
        none: T,
    ) -> Option<T>
    where
        T: for<'a> FromPyObject<'a, 'py>,
    {
        if !self.has(py, method) {
            return None;
        }
        let _stay = Stay::new(&self.faults);
        let object = self.object.bind(py);
        let called = object
            .getattr(method)
            .and_then(|method| method.call1(arguments))
            .and_then(|found| found.extract().map_err(Into::into));
        Some(called.unwrap_or_else(|error| {
            // A division by zero is no number anywhere else either, and there may be no body at the origin.
            if error.is_instance_of::<PyArithmeticError>(py) {
                self.faults.change(|found| found.arithmetic = Some(error));
            } else {
                // Where Python has no notes, the traceback alone tells the place.
                let note = format!("in the method `{method}` of `field`");
                let _ = error.value(py).call_method1("add_note", (note,));
                self.faults.change(|found| {
                    found.raised.get_or_insert(error);
                });
            }
            none
        }))
    }

    /// Remembers the first vector that is not finite.
    fn note(&self, what: &str, vector: [f64; 3], time: f64, [x, y, z]: [f64; 3]) {
        if vector.iter().all(|part| part.is_finite()) {
            return;
        }
        self.faults.change(|found| {
            let cause = found.arithmetic.take();
            let is = match &cause {
                Some(error) => format!("raised {error}"),
                None => format!("is {vector:?}"),
            };
            let text = format!(
                "`field`: {what} {is} at time {time:?} and position ({x:?}, {y:?}, {z:?}): it must be finite \
                 wherever bodies are"
            );
            found.strange.get_or_insert((text, cause));
        });
    }
}

impl HostField for Own {
    fn acceleration(&self, time: f64, position: [f64; 3]) -> [f64; 3] {
        let none = [f64::NAN; 3];
        let found = Python::attach(|py| self.call(py, "acceleration", (time, position), none));
        let found = found.unwrap_or(none);
        self.note("the acceleration", found, time, position);
        found
    }

    fn jerk(&self, time: f64, position: [f64; 3], velocity: [f64; 3]) -> Option<[f64; 3]> {
        let arguments = (time, position, velocity);
        let found = Python::attach(|py| self.call(py, "jerk", arguments, [f64::NAN; 3]))?;
        self.note("the jerk", found, time, position);
        Some(found)
    }

    fn potential(&self, time: f64, position: [f64; 3]) -> Option<f64> {
        Python::attach(|py| self.call(py, "potential", (time, position), f64::NAN))
    }
}
