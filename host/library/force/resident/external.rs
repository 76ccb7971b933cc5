//! External fields on a device: accelerations beside those of the bodies, or added to them.

use std::mem;

use gpu_kernels::abi::Params;
use gpu_kernels::entries::{Buffer, Entry, Work};

use super::Resident;
use crate::backend::{Backend, ForceError};
use crate::bodies::Bodies;
use crate::fields::External;
use crate::force::device::Device;
use crate::plan;

/// Fields, and their kernels on a device.
pub(super) struct Fielded {
    external: External,
    launches: Launches,
    /// With the masses, for the energy.
    bodies: Bodies,
}

/// Launches of the kernels of fields.
enum Launches {
    /// Of accelerations, which wait for no forces.
    Beside(Apart),
    /// Of accelerations and jerks, some of which depend on the forces; and of the term of relativity, if it
    /// is one of the fields.
    After(&'static Entry, Option<&'static Entry>),
}

/// Kernels of [accelerations by fields](Buffer::of_fields), which a device computes at the same time as the accelerations
/// by bodies. A body is accelerated by the sum of both.
pub(super) struct Apart {
    fields: &'static Entry,
    pub(super) kick: &'static Entry,
    unite: &'static Entry,
}

impl Fielded {
    pub(super) fn external(&self) -> &External {
        &self.external
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
        let mut term = None;
        if let Some(relativity) = external.relativity() {
            self.jerks()?;
            self.put(Buffer::centre, &relativity.numbers(&self.frame))?;
            term = Some(self.partner(Work::Relativity)?);
        }
        let launches = match self.kernels.hermite {
            Some(_) => Launches::After(self.partner(Work::ExternalJerks)?, term),
            None => {
                let sizes = plan::buffers_of_fields(self.kernels.force, self.params.stride);
                self.memory.allocate(&self.device, &sizes)?;
                self.device.zero(self.of(Buffer::of_fields))?;
                Launches::Beside(Apart {
                    fields: self.partner(Work::External)?,
                    kick: self.partner(Work::KickInFields)?,
                    unite: self.partner(Work::Unite)?,
                })
            }
        };
        self.put(Buffer::fields, &external.numbers(&self.frame))?;
        self.external = Some(Fielded {
            external,
            launches,
            bodies: bodies.clone(),
        });
        Ok(self)
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
        // Launches that take the old numbers may be under way, and recorded.
        self.device.synchronize()?;
        if let Some(blocks) = &mut self.blocks {
            blocks.forget_record();
        }
        self.put(Buffer::fields, &numbers)
    }

    /// The kernel that does this work with bodies as the force has them, ready to be launched.
    fn partner(&self, work: Work) -> Result<&'static Entry, ForceError> {
        let kernel = self.kernels.force.partner(work);
        let kernel = kernel.expect("kernels for such bodies have it");
        self.device.prepare(kernel)?;
        Ok(kernel)
    }

    /// Allocates a buffer for numbers, and puts them there.
    fn put(&mut self, name: Buffer, numbers: &[f64]) -> Result<(), ForceError> {
        let buffer = self.device.allocate(size_of_val(numbers))?;
        self.device.upload(&buffer, numbers)?;
        self.memory.put(name, buffer);
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

    /// Kernels of the accelerations by fields, where these are apart from the accelerations by bodies.
    pub(super) fn apart(&self) -> Option<&Apart> {
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
        let Some(apart) = self.apart() else {
            return Ok(());
        };
        let (device, kernel) = (&*self.device, (apart.fields, self.elementwise_launch));
        let renamed = [(Buffer::acceleration, Buffer::of_fields)];
        // `end_external` joins it.
        self.memory
            .launch_beside(device, kernel, &renamed, self.external_params())
    }

    /// Makes the fields part of what accelerates the bodies, after their own forces.
    pub(super) fn end_external(&self) -> Result<(), ForceError> {
        let Some(Fielded { launches, .. }) = &self.external else {
            return Ok(());
        };
        let (fields, relativity) = match launches {
            Launches::Beside(_) => return self.device.join_beside(),
            Launches::After(fields, relativity) => (Some(fields), relativity),
        };
        let mut kernels = fields.into_iter().chain(relativity);
        kernels.try_for_each(|kernel| {
            self.launch((kernel, self.elementwise_launch), self.external_params())
        })
    }

    /// Adds the accelerations of the fields to those of the bodies, where they are apart.
    pub(super) fn unite(&self) -> Result<(), ForceError> {
        match self.apart() {
            Some(apart) => self.launch((apart.unite, self.elementwise_launch), self.params),
            None => Ok(()),
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
