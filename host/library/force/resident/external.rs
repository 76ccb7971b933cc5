//! External fields on a device: a launch after that of the forces.

use std::mem;

use gpu_kernels::abi::Params;
use gpu_kernels::entries::{Entry, Work};

use super::Resident;
use crate::backend::{Backend, ForceError};
use crate::bodies::Bodies;
use crate::fields::{External, FieldFault, Relativity};
use crate::force::device::Device;

/// Fields, and where a device has them.
pub(super) struct Fielded<D: Device> {
    external: External,
    kernel: &'static Entry,
    numbers: D::Buffer,
    /// The term of relativity, if it is one of the fields.
    relativity: Option<Term<D>>,
    /// With the masses, for the energy.
    bodies: Bodies,
}

/// A term of relativity on a device.
struct Term<D: Device> {
    kernel: &'static Entry,
    /// The dominant body and its constants.
    centre: D::Buffer,
}

impl<D: Device> Fielded<D> {
    pub(super) fn external(&self) -> &External {
        &self.external
    }

    pub(super) fn numbers(&self) -> &D::Buffer {
        &self.numbers
    }

    /// The dominant body of the term of relativity and its constants, if it is one of the fields.
    pub(super) fn centre(&self) -> Option<&D::Buffer> {
        self.relativity.as_ref().map(|term| &term.centre)
    }

    pub(super) fn changes(&self) -> bool {
        self.external.changes_with_time()
    }

    pub(super) fn set_time(&mut self, time: f64) {
        self.external.set_time(time);
    }
}

impl<D: Device> Resident<D> {
    /// In these external fields too; `bodies` are those that it was made from.
    ///
    /// # Errors
    /// If the device has no room, or a field is the host's alone.
    pub fn in_fields(mut self, external: External, bodies: &Bodies) -> Result<Self, ForceError> {
        if external.is_none() {
            return Ok(self);
        }
        if let Some(field) = external.of_host() {
            return Err(FieldFault::OnDevice(field.name()).into());
        }
        let work = match self.jerks {
            Some(_) => Work::ExternalJerks,
            None => Work::External,
        };
        let kernel = self.kernels.force.partner(work);
        let kernel = kernel.expect("every layout has it");
        self.device.prepare(kernel)?;
        let numbers = external.numbers(&self.frame);
        let buffer = self.device.allocate(size_of_val(&*numbers))?;
        self.device.upload(&buffer, &numbers)?;
        let relativity = external
            .relativity()
            .map(|relativity| self.term(relativity));
        self.external = Some(Fielded {
            relativity: relativity.transpose()?,
            external,
            kernel,
            numbers: buffer,
            bodies: bodies.clone(),
        });
        Ok(self)
    }

    fn term(&self, relativity: &Relativity) -> Result<Term<D>, ForceError> {
        self.jerks()?;
        let kernel = self.kernels.force.partner(Work::Relativity);
        let kernel = kernel.ok_or(FieldFault::RelativityInSingle)?;
        self.device.prepare(kernel)?;
        let numbers = relativity.numbers(&self.frame);
        let centre = self.device.allocate(size_of_val(&numbers))?;
        self.device.upload(&centre, &numbers)?;
        Ok(Term { kernel, centre })
    }

    /// The dominant body of the term of relativity and its constants, if it is one of the fields.
    pub(super) fn centre(&self) -> Option<&D::Buffer> {
        self.external.as_ref().and_then(Fielded::centre)
    }

    /// Lets the orbit of the origin be known on the device from one time to another.
    pub(super) fn extend_orbit(&mut self, from: f64, to: f64) -> Result<(), ForceError> {
        let Some(fielded) = &mut self.external else {
            return Ok(());
        };
        if fielded.external.reaches(from, to) {
            return Ok(());
        }
        fielded.external.extend(from, to)?;
        let numbers = fielded.external.numbers(&self.frame);
        // Launches that take the old numbers may be under way.
        self.device.synchronize()?;
        fielded.numbers = self.device.allocate(size_of_val(&*numbers))?;
        self.device.upload(&fielded.numbers, &numbers)?;
        Ok(())
    }

    /// Moves the time of the fields on.
    pub(super) fn pass(&mut self, dt: f64) {
        if let Some(Fielded { external, .. }) = &mut self.external {
            external.set_time(external.time() + dt);
        }
    }

    /// Time of the fields; 0 where there are none.
    pub(super) fn field_time(&self) -> f64 {
        let external = self.external.as_ref().map(Fielded::external);
        external.map_or(0.0, External::time)
    }

    /// Adds the fields to the forces.
    pub(super) fn launch_external(&self) -> Result<(), ForceError> {
        let Some(fielded) = &self.external else {
            return Ok(());
        };
        let mut buffers = vec![&self.state, &self.acceleration];
        if self.jerks.is_some() {
            buffers.push(self.jerks()?.jerk());
        }
        buffers.push(&fielded.numbers);
        let params = Params {
            time: fielded.external.time(),
            ..self.params
        };
        let launch = self.elementwise_launch;
        // SAFETY: state and vectors of the kernel's layout and stride, and a buffer of fields in the frame
        // of both.
        unsafe {
            self.device
                .launch(fielded.kernel, launch, &buffers, params)?
        };
        let Some(Term { kernel, centre }) = &fielded.relativity else {
            return Ok(());
        };
        let jerk = self.jerks()?.jerk();
        let buffers = [&self.state, &self.acceleration, jerk, centre];
        // SAFETY: as above, and the numbers of one of the bodies, in their units.
        unsafe { self.device.launch(kernel, launch, &buffers, params) }
    }

    /// Energy of the bodies in the fields, by the host.
    pub(super) fn external_energy(&mut self) -> Result<f64, ForceError> {
        let Some(fielded) = &mut self.external else {
            return Ok(0.0);
        };
        let mut bodies = mem::take(&mut fielded.bodies);
        let downloaded = self.download(&mut bodies);
        let fielded = self.external.as_mut().expect("as above");
        let energy = fielded.external.energy(&bodies, &self.physics);
        fielded.bodies = bodies;
        downloaded.map(|()| energy)
    }
}
