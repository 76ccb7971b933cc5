//! Accelerations of bodies that another library of Python keeps on a GPU.

use std::sync::{Mutex, PoisonError};

use allpairs::Machine;
use allpairs::force::in_place::{Extent, InPlace as Force};
use allpairs::gpu_kernels::numerics::Precision;
use allpairs::selection::{Request, fits, select};
use allpairs::variants::preferred::ForceAccuracy;
use cuda_driver::keeping_context;
use pyo3::prelude::*;

use crate::errors::{Failure, Kind};
use crate::forces::{device, gravity, kernel, machine};
use crate::work::caught;

/// Room for bodies on a device, which others write and read: see `allpairs/_in_place.py`.
#[pyclass(frozen, module = "allpairs._native")]
pub(crate) struct InPlace(Mutex<Option<Box<dyn Force>>>);

/// Memory is given back in the context of its GPU.
impl Drop for InPlace {
    fn drop(&mut self) {
        let force = self.0.get_mut().unwrap_or_else(PoisonError::into_inner);
        keeping_context(|| drop(force.take()));
    }
}

/// Does work on a device without the interpreter's lock, and leaves the thread with its context.
fn on_device<T: Send>(
    py: Python<'_>,
    work: impl FnOnce() -> Result<T, Failure> + Send,
) -> PyResult<T> {
    let outcome = py.detach(|| keeping_context(|| caught(work)));
    outcome.map_err(|failure| failure.raise(py))
}

impl InPlace {
    fn with<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut dyn Force) -> Result<T, Failure> + Send,
    ) -> PyResult<T> {
        on_device(py, || {
            let mut force = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            match force.as_deref_mut() {
                Some(force) => work(force),
                None => Err(Failure::new(Kind::Closed, "the room is given back")),
            }
        })
    }
}

#[pymethods]
impl InPlace {
    /// Room for `n` bodies whose numbers go as far as `extent`: the largest coordinate, and the smallest and
    /// the largest mass.
    #[new]
    #[expect(clippy::too_many_arguments, reason = "one for each option")]
    fn new(
        py: Python<'_>,
        n: usize,
        double: bool,
        device: &str,
        kernel: Option<&str>,
        extent: (f64, f64, f64),
        eps: f64,
        g: f64,
    ) -> PyResult<Self> {
        let force = on_device(py, || {
            let physics = gravity(g, eps)?;
            let accuracy = match double {
                true => ForceAccuracy::Double,
                false => ForceAccuracy::Single,
            };
            let request = Request {
                accuracy: Some(accuracy),
                ..Request::new(n)
            };
            let request = request.on(self::device(device)?).by(self::kernel(kernel)?);
            let selection = select(&request)?;
            let variant = selection.variant;
            let stored = match double {
                true => Precision::F64,
                false => Precision::F32,
            };
            if !Machine::computes_in_place(variant) || variant.stored() != stored {
                let text = format!(
                    "`kernel`: {} does not compute arrays of {} where they lie: leave `kernel` out, or \
                     hand over arrays on the host",
                    variant.name,
                    if double { "float64" } else { "float32" },
                );
                return Err(Failure::of("kernel", text));
            }
            fits(variant, &selection.place, physics.law, n)?;
            let machine = machine(selection.place);
            Ok(machine.in_place(variant, n, extent_of(extent), physics)?)
        })?;
        Ok(Self(Mutex::new(Some(force))))
    }

    /// Addresses of the bodies and of the accelerations, in rows of four numbers; and the stream.
    fn buffers(&self, py: Python<'_>) -> PyResult<(u64, u64, u64)> {
        self.with(py, |force| {
            let buffers = force.buffers();
            let stream = force.stream_handle();
            Ok((buffers.bodies, buffers.accelerations, stream))
        })
    }

    /// Factors by which positions, masses and accelerations are to be multiplied, and what it takes the
    /// masses for; if it can compute bodies that go so far.
    fn prepare(
        &self,
        py: Python<'_>,
        extent: (f64, f64, f64),
        eps: f64,
        g: f64,
    ) -> PyResult<Option<(f64, f64, f64, String)>> {
        self.with(py, |force| {
            if !force.prepare(extent_of(extent), gravity(g, eps)?)? {
                return Ok(None);
            }
            let frame = force.frame();
            let [acceleration, ..] = frame.acceleration_from_local([1.0; 3]);
            let masses = format!("{:?}", force.masses());
            Ok(Some((
                1.0 / frame.length,
                1.0 / frame.mass,
                acceleration,
                masses,
            )))
        })
    }

    /// Queues the force in its stream.
    fn accelerate(&self, py: Python<'_>) -> PyResult<()> {
        self.with(py, |force| Ok(force.accelerate()?))
    }

    /// Lets another stream wait for it: a number as `__dlpack__` takes it.
    fn hold_up(&self, py: Python<'_>, stream: u64) -> PyResult<()> {
        self.with(py, |force| {
            // SAFETY: a consumer of DLPack names a stream of its own, or a default stream by its number,
            // on the device that it was told.
            unsafe { force.hold_up(stream)? };
            Ok(())
        })
    }
}

fn extent_of((reach, least, heaviest): (f64, f64, f64)) -> Extent {
    Extent {
        reach,
        least,
        heaviest,
    }
}
