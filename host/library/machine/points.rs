//! Fields at points, on a device or the CPU.

use std::time::Instant;

use gpu_kernels::numerics::Precision;
use gpu_kernels::schedule::points::QuantityName;

use super::Machine;
use crate::backend::ForceError;
use crate::bodies::Bodies;
use crate::force::at_points::Task;
use crate::force::cpu;
use crate::force::emulated::Emulator;
use crate::physics::{ForceLaw, Physics};
use crate::test_particles::Kinds;
use crate::variants::Build;
use crate::variants::preferred::ForceAccuracy;
use crate::vectors::axes;

/// A way to compute a quantity at points.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KernelAtPoints {
    /// Name of the kernel.
    pub name: &'static str,
    /// The quantity.
    pub quantity: QuantityName,
    /// Precision of the pairs.
    pub precision: Precision,
}

impl KernelAtPoints {
    /// Kernels of devices.
    pub const OF_DEVICES: [Self; 4] = [
        Self::new("field-at-points", QuantityName::Field, Precision::F32),
        Self::new("field-at-points-f64", QuantityName::Field, Precision::F64),
        Self::new("tides-at-points", QuantityName::Tides, Precision::F32),
        Self::new("tides-at-points-f64", QuantityName::Tides, Precision::F64),
    ];

    const fn new(name: &'static str, quantity: QuantityName, precision: Precision) -> Self {
        Self {
            name,
            quantity,
            precision,
        }
    }

    fn of_device(quantity: QuantityName, precision: Precision) -> Self {
        let mut all = Self::OF_DEVICES.into_iter();
        let found = all.find(|each| (each.quantity, each.precision) == (quantity, precision));
        found.expect("a kernel for each")
    }

    const fn of_cpu(quantity: QuantityName) -> Self {
        Self::new("cpu-f64", quantity, Precision::F64)
    }

    /// Accuracy that it has.
    pub fn accuracy(&self) -> ForceAccuracy {
        match self.precision {
            Precision::F64 => ForceAccuracy::Double,
            _ => ForceAccuracy::Single,
        }
    }
}

/// Values at points.
#[derive(Clone, Debug, PartialEq)]
pub struct AtPoints<T> {
    /// The values, in the order of the points.
    pub values: T,
    /// The kernel that computed them.
    pub kernel: KernelAtPoints,
    /// Interactions: points times bodies with mass.
    pub interactions: f64,
    /// Seconds that these took, without copies.
    pub seconds: f64,
}

impl Machine {
    /// As [`cpu::field_at`], on this machine: accelerations and potentials at points. On a device in single
    /// precision, or double where that is asked for or points lie too far out for single; on the CPU
    /// always in double.
    ///
    /// # Errors
    /// If the place refuses, or has too little memory, or is several devices.
    ///
    /// # Panics
    /// If the law is neither gravity nor that of unit masses.
    #[expect(clippy::type_complexity, reason = "that of the CPU")]
    pub fn field_at(
        &self,
        bodies: &Bodies,
        physics: &Physics,
        points: &[[f64; 3]],
        accuracy: ForceAccuracy,
    ) -> Result<AtPoints<(Vec<[f64; 3]>, Vec<f64>)>, ForceError> {
        let of_sums = |task: &Task<'_>, sums: &[f64]| {
            let field = |sums: &[f64]| {
                let [x, y, z] = axes(|axis| task.of_sum(sums[axis], 2, physics));
                ([x, y, z], -task.of_sum(sums[3], 1, physics))
            };
            let sums = sums.chunks_exact(QuantityName::Field.sums() as usize);
            sums.map(field).unzip()
        };
        let on_cpu = || cpu::field_at(bodies, physics, points);
        let task = (bodies, physics, points, accuracy);
        self.at_points(QuantityName::Field, task, on_cpu, of_sums)
    }

    /// As [`cpu::tides_at`], where and as exactly as [`field_at`](Self::field_at) computes.
    ///
    /// # Errors
    /// As [`field_at`](Self::field_at).
    ///
    /// # Panics
    /// As [`field_at`](Self::field_at).
    pub fn tides_at(
        &self,
        bodies: &Bodies,
        physics: &Physics,
        points: &[[f64; 3]],
        accuracy: ForceAccuracy,
    ) -> Result<AtPoints<Vec<[[f64; 3]; 3]>>, ForceError> {
        let of_sums = |task: &Task<'_>, sums: &[f64]| {
            let tensor = |sums: &[f64]| {
                let value = |product: usize, isotropic: f64| {
                    task.of_sum(3.0 * sums[product] - isotropic, 3, physics)
                };
                let [xx, yy, zz] = [0, 1, 2].map(|product| value(product, sums[6]));
                let [xy, xz, yz] = [3, 4, 5].map(|product| value(product, 0.0));
                [[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]
            };
            let sums = sums.chunks_exact(QuantityName::Tides.sums() as usize);
            sums.map(tensor).collect()
        };
        let on_cpu = || cpu::tides_at(bodies, physics, points);
        let task = (bodies, physics, points, accuracy);
        self.at_points(QuantityName::Tides, task, on_cpu, of_sums)
    }

    fn at_points<T>(
        &self,
        quantity: QuantityName,
        (bodies, physics, points, accuracy): (&Bodies, &Physics, &[[f64; 3]], ForceAccuracy),
        on_cpu: impl FnOnce() -> T,
        of_sums: impl FnOnce(&Task<'_>, &[f64]) -> T,
    ) -> Result<AtPoints<T>, ForceError> {
        assert!(
            !matches!(physics.law, ForceLaw::AttractRepel { .. }),
            "the field of attract-repel depends on the bodies in it"
        );
        let interactions = |sources: usize| sources as f64 * points.len() as f64;
        let precision = match accuracy {
            ForceAccuracy::Fast | ForceAccuracy::Single => Precision::F32,
            ForceAccuracy::Double => Precision::F64,
        };
        if self.place.is_cpu() {
            let began = Instant::now();
            return Ok(AtPoints {
                values: on_cpu(),
                kernel: KernelAtPoints::of_cpu(quantity),
                interactions: interactions(Kinds::of(bodies, physics).massive),
                seconds: began.elapsed().as_secs_f64(),
            });
        }
        let task = Task::new(bodies, physics, points, precision);
        let (sums, seconds) = match self.one_gpu("fields at points are computed")? {
            Some(info) => {
                // Flushed are terms that are nothing beside others; and 1/√ is faster so.
                let build = match task.precision() {
                    Precision::F64 => Build::Precise,
                    _ => Build::Ftz,
                };
                task.compute(&*self.gpu(info, build)?, quantity)?
            }
            None => task.compute(&Emulator::new(self.thread_order), quantity)?,
        };
        Ok(AtPoints {
            values: of_sums(&task, &sums),
            kernel: KernelAtPoints::of_device(quantity, task.precision()),
            interactions: interactions(task.sources()),
            seconds,
        })
    }
}
