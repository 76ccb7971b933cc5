//! Direct summation on the CPU: all cores, and the widest vectors that the machine has.
//!
//! The state (positions, velocities) is kept in f64, and so are the steps of the integrator.
//! [`Cpu<f32>`](Cpu) converts to f32 once per force evaluation, O(N) beside O(N²), in a
//! [`Frame`] found anew from the current positions: it pays single precision for the forces and
//! nothing for the orbit. Because the frame depends on the state alone, a restarted run computes
//! the same bits. The number of threads does not enter them either, nor does the instruction set
//! among those with fused multiply-add.

mod instruction_set;
mod kernel;
#[cfg(test)]
pub(crate) mod samples;
mod state;

use gpu_kernels::numerics::{Precision, Real};
use rayon::prelude::*;

pub use instruction_set::InstructionSet;
pub(crate) use kernel::BLOCK;
pub(super) use state::HostState;

use self::kernel::{Group, LANES, Potential, Pull, Source};
use super::{Backend, ForceError, Physics, StepOf};
use crate::bodies::Bodies;
use crate::diagnostics::{CompensatedSum, Energy, kinetic};
use crate::frame::Frame;

/// Forces on the CPU in single (`Cpu<f32>`) or double precision (`Cpu<f64>`).
///
/// Runs in the rayon pool it is called from. Without softening, bodies closer than 2⁻⁴² (f32) or
/// 2⁻³⁴⁰ (f64) of the system's size count as coincident: they do not pull each other.
#[derive(Clone, Debug)]
pub struct Cpu<R> {
    physics: Physics,
    instructions: InstructionSet,
    state: HostState,
    packed: Packed<R>,
}

impl<R: Real + Send + Sync> Cpu<R> {
    /// Takes a copy of the bodies and uses the best instructions of this machine. Accelerations
    /// are zero until the first [`accelerate`](Backend::accelerate).
    pub fn new(bodies: &Bodies, physics: Physics) -> Self {
        Self::with_instructions(bodies, physics, InstructionSet::detect())
    }

    /// As [`new`](Self::new), with chosen instructions.
    pub fn with_instructions(
        bodies: &Bodies,
        physics: Physics,
        instructions: InstructionSet,
    ) -> Self {
        let state = HostState::new(bodies);
        Self {
            physics,
            instructions,
            state,
            packed: Packed::new(),
        }
    }

    /// The instructions in use.
    pub fn instructions(&self) -> InstructionSet {
        self.instructions
    }
}

impl<R: Real + Send + Sync> Backend for Cpu<R> {
    fn accelerate(&mut self) -> Result<(), ForceError> {
        let bodies = &self.state.bodies;
        let frame = frame::<R>(bodies, &self.physics);
        self.packed.fill(bodies, &self.physics, &frame);
        let sums = self.packed.pulls(self.instructions);
        let coupling = frame.coupling_to_local(&self.physics);
        for (i, acceleration) in self.state.accelerations.iter_mut().enumerate() {
            let [x, y, z] = &sums[i / LANES];
            let lane = i % LANES;
            let local = [x[lane], y[lane], z[lane]].map(|sum| coupling * sum);
            *acceleration = frame.acceleration_from_local(local);
        }
        Ok(())
    }

    fn kick(&mut self, dt: f64) -> Result<(), ForceError> {
        self.state.kick(dt);
        Ok(())
    }

    fn drift(&mut self, dt: f64) -> Result<(), ForceError> {
        self.state.drift(dt);
        Ok(())
    }

    fn repeat(&mut self, times: u64, step: &mut StepOf<'_>) -> Result<(), ForceError> {
        (0..times).try_for_each(|_| step(self))
    }

    fn download(&mut self, bodies: &mut Bodies) -> Result<(), ForceError> {
        self.state.download(bodies);
        Ok(())
    }

    fn accelerations(&mut self) -> Result<Vec<[f64; 3]>, ForceError> {
        Ok(self.state.accelerations.clone())
    }

    fn energy(&mut self) -> Result<Energy, ForceError> {
        Ok(Energy {
            kinetic: kinetic(&self.state.bodies, &self.physics),
            potential: potential_energy(&self.state.bodies, &self.physics, self.instructions),
        })
    }

    fn synchronize(&mut self) -> Result<(), ForceError> {
        Ok(())
    }
}

/// Potential energy `−G Σ_{i<j} m_i m_j / d` in f64, each pair once; agrees with
/// [`reference::potential_energy`](super::reference::potential_energy) to rounding, much faster.
pub fn potential_energy(bodies: &Bodies, physics: &Physics, instructions: InstructionSet) -> f64 {
    let frame = frame::<f64>(bodies, physics);
    let mut packed = Packed::<f64>::new();
    packed.fill(bodies, physics, &frame);
    let sums = packed.potentials(instructions);
    let weight_unit = physics.weight(frame.mass);
    let terms = sums.as_flattened().iter().zip(&bodies.mass);
    let sum: CompensatedSum = terms
        .map(|(sum, &mass)| physics.weight(mass) * (sum * weight_unit / frame.length))
        .collect();
    -physics.coupling() * sum.value()
}

/// Scaled units in every precision, a shifted origin only where digits are short: scaling is
/// exact, so f64 keeps its bits and gains range.
fn frame<R: Real>(bodies: &Bodies, physics: &Physics) -> Frame {
    let frame = Frame::of(bodies, physics);
    match R::PRECISION {
        Precision::F64 => Frame {
            centre: [0.0; 3],
            ..frame
        },
        Precision::F32 | Precision::F16 => frame,
    }
}

/// Groups of targets in one rayon task. Many groups share the sources that are in the cache; with
/// few bodies every thread must still find several tasks.
fn groups_per_task(groups: usize) -> usize {
    (groups / (4 * rayon::current_num_threads())).clamp(1, 16)
}

/// Bodies and softening in the units of a frame and the layout of the kernels.
#[derive(Clone, Debug)]
struct Packed<R> {
    targets: Vec<Group<R>>,
    sources: Vec<Source<R>>,
    softening_squared: R,
}

impl<R: Real + Send + Sync> Packed<R> {
    fn new() -> Self {
        Self {
            targets: Vec::new(),
            sources: Vec::new(),
            softening_squared: R::from_f64(0.0),
        }
    }

    fn fill(&mut self, bodies: &Bodies, physics: &Physics, frame: &Frame) {
        let softening = frame.length_to_local(physics.softening);
        self.softening_squared = R::from_f64(softening * softening);
        self.targets.clear();
        // Lanes past the last body compute on zeros and are never read.
        let groups = bodies.len().div_ceil(LANES);
        self.targets.resize(groups, [[R::from_f64(0.0); LANES]; 3]);
        self.sources.clear();
        for (i, &mass) in bodies.mass.iter().enumerate() {
            let position = frame.position_to_local([bodies.x[i], bodies.y[i], bodies.z[i]]);
            let [x, y, z] = position.map(R::from_f64);
            let weight = R::from_f64(physics.weight(frame.mass_to_local(mass)));
            for (axis, value) in [x, y, z].into_iter().enumerate() {
                self.targets[i / LANES][axis][i % LANES] = value;
            }
            self.sources.push([x, y, z, weight]);
        }
    }

    /// `Σ_j w_j r / d³` for every target.
    fn pulls(&self, instructions: InstructionSet) -> Vec<[[f64; LANES]; 3]> {
        let mut sums = vec![[[0.0; LANES]; 3]; self.targets.len()];
        let task = groups_per_task(self.targets.len());
        let tasks = sums.par_chunks_mut(task).zip(self.targets.par_chunks(task));
        tasks.for_each(|(sums, targets)| {
            instructions.run(Pull {
                targets,
                sources: &self.sources,
                softening_squared: self.softening_squared,
                sums,
            });
        });
        sums
    }
}

impl Packed<f64> {
    /// `Σ_{j<i} w_j / d` for every target i.
    fn potentials(&self, instructions: InstructionSet) -> Vec<[f64; LANES]> {
        let mut sums = vec![[0.0; LANES]; self.targets.len()];
        let task = groups_per_task(self.targets.len());
        let tasks = sums.par_chunks_mut(task).zip(self.targets.par_chunks(task));
        tasks.enumerate().for_each(|(index, (sums, targets))| {
            instructions.run(Potential {
                targets,
                first: index * task * LANES,
                sources: &self.sources,
                softening_squared: self.softening_squared,
                sums,
            });
        });
        sums
    }
}

#[cfg(test)]
mod tests;
