//! External fields on a device: accelerations beside those of the bodies, or added to them.

use std::mem;

use gpu_kernels::abi::Params;
use gpu_kernels::entries::{Entry, Work};

use super::Resident;
use crate::backend::{Backend, ForceError};
use crate::bodies::Bodies;
use crate::fields::{External, Relativity};
use crate::force::device::Device;
use crate::force::pack;

/// Fields, and where a device has them.
pub(super) struct Fielded<D: Device> {
    external: External,
    numbers: D::Buffer,
    launches: Launches<D>,
    /// With the masses, for the energy.
    bodies: Bodies,
}

/// Launches of the kernels of fields.
enum Launches<D: Device> {
    /// Of accelerations, which wait for no forces.
    Beside(Apart<D>),
    /// Of accelerations and jerks, some of which depend on the forces; and of the term of relativity, if it
    /// is one of the fields.
    After(&'static Entry, Option<Term<D>>),
}

/// Accelerations of fields apart from those of the bodies, so that they can be computed beside them: what
/// accelerates a body is the sum.
pub(super) struct Apart<D: Device> {
    pub(super) accelerations: D::Buffer,
    fields: &'static Entry,
    kick: &'static Entry,
    unite: &'static Entry,
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
        match &self.launches {
            Launches::After(_, Some(term)) => Some(&term.centre),
            Launches::After(_, None) | Launches::Beside(_) => None,
        }
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
    /// If the device has no room.
    ///
    /// # Panics
    /// If a field is computed by the host alone, or the post-Newtonian term is not by these kernels.
    pub fn in_fields(mut self, external: External, bodies: &Bodies) -> Result<Self, ForceError> {
        if external.is_none() {
            return Ok(self);
        }
        assert!(
            external.of_host().is_none(),
            "a device has no code of the host"
        );
        let prepared = |work| -> Result<&'static Entry, ForceError> {
            let kernel = self.kernels.force.partner(work);
            let kernel = kernel.expect("every layout has it");
            self.device.prepare(kernel)?;
            Ok(kernel)
        };
        let relativity = external
            .relativity()
            .map(|relativity| self.term(relativity))
            .transpose()?;
        let launches = match self.jerks {
            Some(_) => Launches::After(prepared(Work::ExternalJerks)?, relativity),
            None => {
                let vectors = pack::empty_vectors(&self.layout, self.params.stride);
                let accelerations = self.device.allocate(vectors.bytes().len())?;
                self.device.zero(&accelerations)?;
                Launches::Beside(Apart {
                    accelerations,
                    fields: prepared(Work::External)?,
                    kick: prepared(Work::KickInFields)?,
                    unite: prepared(Work::Unite)?,
                })
            }
        };
        let numbers = external.numbers(&self.frame);
        let buffer = self.device.allocate(size_of_val(&*numbers))?;
        self.device.upload(&buffer, &numbers)?;
        self.external = Some(Fielded {
            external,
            numbers: buffer,
            launches,
            bodies: bodies.clone(),
        });
        Ok(self)
    }

    fn term(&self, relativity: &Relativity) -> Result<Term<D>, ForceError> {
        self.jerks()?;
        let kernel = self.kernels.force.partner(Work::Relativity);
        let kernel = kernel.expect("kernels in f64 have the term");
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

    /// Accelerations of the fields, where they are apart from those of the bodies.
    pub(super) fn apart(&self) -> Option<&Apart<D>> {
        match &self.external.as_ref()?.launches {
            Launches::Beside(apart) => Some(apart),
            Launches::After(..) => None,
        }
    }

    /// Scalars of launches of the fields.
    fn external_params(&self) -> Params {
        Params {
            time: self.field_time(),
            ..self.params
        }
    }

    /// Begins to compute the fields that do not wait for the forces, which are launched next.
    pub(super) fn begin_external(&self) -> Result<(), ForceError> {
        let (Some(Fielded { numbers, .. }), Some(apart)) = (&self.external, self.apart()) else {
            return Ok(());
        };
        let (launch, params) = (self.elementwise_launch, self.external_params());
        let buffers = [&self.state, &apart.accelerations, numbers];
        // SAFETY: a state and vectors of the kernel's layout and stride, and a buffer of fields in the frame
        // of both; no other launch touches these vectors until `end_external` has joined this one.
        unsafe {
            self.device
                .launch_beside(apart.fields, launch, &buffers, params)
        }
    }

    /// Makes the fields part of what accelerates the bodies, after their own forces.
    pub(super) fn end_external(&self) -> Result<(), ForceError> {
        let Some(Fielded {
            launches, numbers, ..
        }) = &self.external
        else {
            return Ok(());
        };
        let (kernel, relativity) = match launches {
            Launches::Beside(_) => return self.device.join_beside(),
            Launches::After(kernel, relativity) => (kernel, relativity),
        };
        let (launch, params) = (self.elementwise_launch, self.external_params());
        let jerk = self.jerks()?.jerk();
        let buffers = [&self.state, &self.acceleration, jerk, numbers];
        // SAFETY: state and vectors of the kernel's layout and stride, and a buffer of fields in the frame
        // of both.
        unsafe { self.device.launch(kernel, launch, &buffers, params)? };
        let Some(Term { kernel, centre }) = relativity else {
            return Ok(());
        };
        let buffers = [&self.state, &self.acceleration, jerk, centre];
        // SAFETY: as above, and the numbers of one of the bodies, in their units.
        unsafe { self.device.launch(kernel, launch, &buffers, params) }
    }

    pub(super) fn kick_in_fields(&self, apart: &Apart<D>, dt: f64) -> Result<(), ForceError> {
        let buffers = [&self.state, &self.acceleration, &apart.accelerations];
        let (launch, params) = (self.elementwise_launch, self.stepping(dt));
        // SAFETY: a state and vectors of the kernel's layout and stride.
        unsafe { self.device.launch(apart.kick, launch, &buffers, params) }
    }

    /// Adds the accelerations of the fields to those of the bodies, where they are apart.
    pub(super) fn unite(&self) -> Result<(), ForceError> {
        let Some(apart) = self.apart() else {
            return Ok(());
        };
        let buffers = [&self.acceleration, &apart.accelerations];
        let launch = self.elementwise_launch;
        // SAFETY: two buffers of vectors of the kernel's layout and stride.
        unsafe {
            self.device
                .launch(apart.unite, launch, &buffers, self.params)
        }
    }

    /// Lets the host know the bodies as they are now, where it computes their energy in fields.
    pub(super) fn fetch_fielded(&mut self) -> Result<(), ForceError> {
        let Some(fielded) = &mut self.external else {
            return Ok(());
        };
        let mut bodies = mem::take(&mut fielded.bodies);
        let downloaded = self.download(&mut bodies);
        if let Some(fielded) = &mut self.external {
            fielded.bodies = bodies;
        }
        downloaded
    }

    /// Energy in the fields of the bodies as they were last fetched, by the host.
    pub(super) fn external_energy(&self) -> f64 {
        let fielded = self.external.as_ref();
        fielded.map_or(
            0.0,
            |Fielded {
                 external, bodies, ..
             }| { external.energy(bodies, &self.physics) },
        )
    }
}
