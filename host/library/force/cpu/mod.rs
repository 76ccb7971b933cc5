//! Direct summation on the CPU: all cores, and the widest vectors that the machine has.
//!
//! The state (positions, velocities) is kept in f64, and so are the steps of the integrator.
//! [`Cpu<f32>`](Cpu) converts to f32 once per force evaluation, O(N) beside O(N²), in a
//! [`Frame`] found anew from the current positions: it pays single precision for the forces and
//! nothing for the orbit. Because the frame depends on the state alone, a restarted run computes
//! the same bits. The number of threads does not enter them either. The processor does, because its
//! estimate of 1/√ starts the roots, unless they are [`RootName::Exact`] and each pair is computed
//! [`PairsName::Twice`]: then all instruction sets with fused multiply-add agree.

mod derivatives;
pub mod gradients;
mod kernel;
mod near_and_far;
mod neighbour_scheme;
mod once;
mod points;
#[cfg(test)]
pub(crate) mod samples;
mod test_particles;

use std::ops::Range;
use std::sync::Arc;

use gpu_kernels::numerics::Precision;
use gpu_kernels::schedule::block_steps::{Fourth, Sixth};

pub(super) use near_and_far::{Inside, ListSums, noise};
pub use points::{field_at, potentials, tides_at};

use self::kernel::{BLOCK, Distance, Group, LANES, Potential, Pull, Source};
use self::test_particles::Kinds;
use super::block_steps::Way;
use super::groups;
use super::hermite_order::Order;
use super::host_state::HostState;
use super::in_memory::{Forces, InMemory};
use crate::backend::{BlockCounts, ForceError, HighestDerivative, Neighbours, Operation, Targets};
use crate::bodies::Bodies;
use crate::diagnostics::CompensatedSum;
use crate::fields::External;
use crate::frame::Frame;
use crate::parallel;
use crate::physics::Physics;
use crate::ranks::Team;
use crate::simd::InstructionSet;
pub use crate::simd::Lane;
use crate::variants::{CpuPath, PairsName, RootName, Threads};

/// Returns whether each pair of n bodies is computed once.
fn computes_once(pairs: PairsName, n: usize, precision: Precision) -> bool {
    match pairs {
        PairsName::Twice => false,
        PairsName::Once => true,
        PairsName::ByNumber => n >= once::pays_from(precision),
    }
}

/// The choices of a CPU path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Choices {
    /// Source of 1/√.
    pub root: RootName,
    /// Number of times a pair is computed: once, or for each of its bodies.
    pub pairs: PairsName,
    /// Vector instructions used.
    pub instructions: InstructionSet,
    /// Threads that compute.
    pub threads: Threads,
}

/// The fastest that are right to rounding, on this machine.
impl Default for Choices {
    fn default() -> Self {
        Self {
            root: RootName::Refined,
            pairs: PairsName::ByNumber,
            instructions: InstructionSet::detect(),
            threads: Threads::All,
        }
    }
}

/// A variant's, with the widest vector instructions of this machine.
impl From<CpuPath> for Choices {
    fn from(path: CpuPath) -> Self {
        let CpuPath {
            precision: _, // a type of the backend
            root,
            pairs,
            threads,
        } = path;
        Self {
            root,
            pairs,
            threads,
            ..Self::default()
        }
    }
}

/// The longest chain of additions in the type of the pairs that a pair's force goes through, for n bodies.
/// Sums of blocks are added in f64, which costs pairs of another type nothing.
pub fn additions(pairs: PairsName, precision: Precision, n: usize) -> usize {
    let parts = match (precision, pairs) {
        (Precision::F64, PairsName::Twice) => n.div_ceil(BLOCK),
        (Precision::F64, PairsName::Once | PairsName::ByNumber) => once::parts(n),
        (Precision::F32 | Precision::DoubleSingle | Precision::F16, _) => 0,
    };
    BLOCK.min(n) + parts
}

/// Forces on the CPU in single (`Cpu<f32>`) or double precision (`Cpu<f64>`).
///
/// Runs in the rayon pool it is called from. Without softening, bodies closer than 2⁻⁴² (f32) or
/// 2⁻³⁴⁰ (f64) of the system's size count as coincident: they do not attract each other.
#[derive(Clone, Debug)]
pub struct Cpu<R> {
    physics: Physics,
    choices: Choices,
    state: HostState,
    /// Bodies with mass and without, if there are any without.
    kinds: Option<Arc<Kinds>>,
    packed: Packed<R>,
    team: Arc<Team>,
}

impl<R: Lane> Cpu<R> {
    /// Takes a copy of the bodies, and makes the best [`Choices`] for this machine. Accelerations
    /// are zero until the first [`accelerate`](crate::backend::Backend::accelerate).
    pub fn new(bodies: &Bodies, physics: Physics) -> Self {
        Self::with(bodies, physics, Choices::default())
    }

    /// As [`new`](Self::new), with other choices.
    pub fn with(bodies: &Bodies, physics: Physics, choices: Choices) -> Self {
        Self {
            physics,
            choices,
            state: HostState::new(bodies),
            kinds: Kinds::of(bodies, &physics).map(Arc::new),
            packed: Packed::new(),
            team: Arc::new(Team::alone()),
        }
    }

    /// With forces shared out among ranks, all of which have the same bodies and do the same with them.
    #[must_use]
    pub(crate) fn shared_out(self, team: Arc<Team>) -> Self {
        Self { team, ..self }
    }

    /// A number that tells the bodies of ranks apart.
    fn checksum(&self) -> u32 {
        let bodies = &self.state.bodies;
        let mut hasher = crc32fast::Hasher::new();
        for column in [
            &bodies.x, &bodies.y, &bodies.z, &bodies.vx, &bodies.vy, &bodies.vz,
        ] {
            hasher.update(bytemuck::cast_slice(column));
        }
        hasher.finalize()
    }

    /// In these external fields too.
    #[must_use]
    pub fn in_fields(mut self, external: External) -> Self {
        self.state.external = external;
        self
    }

    /// The choices made.
    pub fn choices(&self) -> Choices {
        self.choices
    }
}

impl Cpu<f64> {
    /// With block time steps of a neighbour scheme, if one is asked for.
    ///
    /// # Panics
    /// If there is a post-Newtonian term, which the scheme does not compute.
    #[must_use]
    pub fn in_neighbour_scheme(mut self, neighbours: Option<Neighbours>) -> Self {
        assert!(neighbours.is_none() || self.state.external.relativity().is_none());
        self.state.have_neighbours(neighbours);
        self
    }

    /// With groups, and a neighbour scheme if one is asked for: see [`groups`](super::groups).
    #[must_use]
    pub(crate) fn in_groups(mut self, neighbours: Option<Neighbours>) -> Self {
        groups::begin(&mut self, neighbours);
        self
    }
}

impl<R: Lane> InMemory for Cpu<R> {
    type Fourth = Fourth;
    type Sixth = Sixth;

    fn physics(&self) -> &Physics {
        &self.physics
    }

    fn state(&self) -> &HostState {
        &self.state
    }

    fn state_mut(&mut self) -> &mut HostState {
        &mut self.state
    }

    fn sources(&self) -> Option<&[usize]> {
        self.kinds.as_ref().map(|kinds| &kinds.massive[..])
    }

    fn repeat_at_once(&mut self, times: u64, step: &[Operation]) -> bool {
        self.follow(times, step)
    }

    fn advance_with_neighbours(
        &mut self,
        neighbours: usize,
        span: f64,
        eta: f64,
        way: Way<'_, '_>,
    ) -> Result<Option<BlockCounts>, ForceError> {
        assert_eq!(
            self.state.order(),
            Order::Fourth,
            "of which neighbour schemes are"
        );
        neighbour_scheme::advance(self, neighbours, (span, eta), way)
    }

    fn find_sources(&mut self) {
        self.kinds = Kinds::of(&self.state.bodies, &self.physics).map(Arc::new);
    }

    fn instructions(&self) -> InstructionSet {
        self.choices.instructions
    }

    fn team(&self) -> Option<&Team> {
        Some(&*self.team).filter(|team| !team.is_alone())
    }

    fn pull(&mut self) -> Result<(), ForceError> {
        if let Some(kinds) = self.kinds.clone() {
            self.pull_by_massive(&kinds);
            return Ok(());
        }
        let bodies = &self.state.bodies;
        let frame = frame::<R>(bodies, &self.physics);
        self.packed.fill(bodies, &self.physics, &frame);
        let pulls = self.packed.pulls(self.choices, &self.team);
        let coupling = frame.coupling_to_local(&self.physics);
        for (acceleration, pull) in self.state.accelerations.iter_mut().zip(pulls) {
            *acceleration = frame.acceleration_from_local(pull.map(|sum| coupling * sum));
        }
        Ok(())
    }

    fn frame(&self) -> Frame {
        let bodies = &self.state.bodies;
        match &self.kinds {
            // That of the sources, so that test particles leave no trace in their orbits. In f32 all bodies
            // must be in range.
            Some(kinds) if R::PRECISION == Precision::F64 => {
                frame::<R>(&kinds.massive_of(bodies), &self.physics)
            }
            _ => frame::<R>(bodies, &self.physics),
        }
    }

    fn pair_forces(
        &self,
        frame: &Frame,
        targets: Targets<'_>,
        asked: HighestDerivative,
    ) -> Result<Vec<Forces>, ForceError> {
        let forces = |targets| match asked {
            HighestDerivative::None | HighestDerivative::Jerk => {
                derivatives::forces::<R, 2>(self, frame, targets)
            }
            HighestDerivative::Snap => derivatives::forces::<R, 3>(self, frame, targets),
        };
        if self.team.is_alone() {
            return Ok(forces(targets));
        }
        let indices = targets.indices(self.state.bodies.len());
        let shares = self.team.shares(indices.len());
        let share = &indices[shares[self.team.rank()].clone()];
        let counts: Vec<usize> = shares.iter().map(Range::len).collect();
        Ok(self.team.gather(&forces(Targets::Active(share)), &counts))
    }

    fn potential_energy(&self) -> Result<f64, ForceError> {
        if !self.team.is_alone() {
            self.team.check_bodies(self.checksum());
        }
        let (bodies, instructions) = (&self.state.bodies, self.choices.instructions);
        Ok(shared_potential_energy(
            bodies,
            &self.physics,
            instructions,
            &self.team,
        ))
    }
}

/// Potential energy `−G Σ_{i<j} m_i m_j / d` in f64, each pair once; agrees with
/// [`reference::potential_energy`](super::reference::potential_energy) to rounding, much faster.
pub fn potential_energy(bodies: &Bodies, physics: &Physics, instructions: InstructionSet) -> f64 {
    shared_potential_energy(bodies, physics, instructions, &Team::alone())
}

fn shared_potential_energy(
    bodies: &Bodies,
    physics: &Physics,
    instructions: InstructionSet,
    team: &Team,
) -> f64 {
    // Of those with mass alone: the others add nothing.
    let massive = Kinds::of(bodies, physics).map(|kinds| kinds.massive_of(bodies));
    let bodies = massive.as_ref().unwrap_or(bodies);
    let frame = frame::<f64>(bodies, physics);
    let mut packed = Packed::<f64>::new();
    packed.fill(bodies, physics, &frame);
    let sums = packed.potentials(instructions, team);
    let weight_unit = physics.weight(frame.mass);
    let terms = sums.as_flattened().iter().zip(&bodies.mass);
    let sum: CompensatedSum = terms
        .map(|(sum, &mass)| physics.weight(mass) * (sum * weight_unit / frame.length))
        .collect();
    -physics.coupling() * sum.value()
}

/// Scaled units in every precision, a shifted origin only where digits are short: scaling is
/// exact, so f64 keeps its bits and gains range.
fn frame<R: Lane>(bodies: &Bodies, physics: &Physics) -> Frame {
    let frame = Frame::of(bodies, physics);
    match R::PRECISION {
        Precision::F64 => Frame {
            centre: [0.0; 3],
            ..frame
        },
        Precision::F32 | Precision::DoubleSingle | Precision::F16 => frame,
    }
}

/// Groups of targets in one rayon task. Many groups share the sources that are in the cache; with
/// few bodies every thread must still find several tasks. Even, for kernels that take two at once.
fn groups_per_task(groups: usize) -> usize {
    (groups / (8 * rayon::current_num_threads()))
        .next_multiple_of(2)
        .clamp(2, 16)
}

/// Shares groups of targets and their sums out among the threads; `work` is also told the number of the
/// first target.
fn in_tasks<S: Send, T: Sync>(
    sums: &mut [S],
    targets: &[T],
    work: impl Fn(usize, &mut [S], &[T]) + Sync,
) {
    let task = groups_per_task(targets.len());
    let tasks = sums.chunks_mut(task).zip(targets.chunks(task));
    let mut tasks: Vec<_> = tasks.collect();
    parallel::change(&mut tasks, 1, |index, (sums, targets)| {
        work(index * task * LANES, sums, targets);
    });
}

/// Puts a vector into a lane of a group.
fn put<R>(group: &mut Group<R>, lane: usize, vector: [R; 3]) {
    for (component, value) in group.iter_mut().zip(vector) {
        component[lane] = value;
    }
}

/// The vectors in the lanes of groups, in order.
fn lanes_of<R: Copy>(groups: &[Group<R>]) -> impl Iterator<Item = [R; 3]> {
    let lanes = |group: &Group<R>| {
        let [x, y, z] = *group;
        (0..LANES).map(move |lane| [x[lane], y[lane], z[lane]])
    };
    groups.iter().flat_map(lanes)
}

/// Interactions that are computed sooner than other threads are woken and waited for, which takes
/// some 10 µs.
const INTERACTIONS_ALONE: usize = 1 << 17;

/// Bodies and softening in the units of a frame and the layout of the kernels.
#[derive(Clone, Debug)]
struct Packed<R> {
    targets: Vec<Group<R>>,
    sources: Vec<Source<R>>,
    softening_squared: R,
}

impl<R: Lane> Packed<R> {
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
        self.sources.reserve(bodies.len());
        for (i, &mass) in bodies.mass.iter().enumerate() {
            let position = frame.position_to_local([bodies.x[i], bodies.y[i], bodies.z[i]]);
            let [x, y, z] = position.map(R::from_f64);
            let weight = R::from_f64(physics.weight(frame.mass_to_local(mass)));
            put(&mut self.targets[i / LANES], i % LANES, [x, y, z]);
            self.sources.push([x, y, z, weight]);
        }
    }

    /// `Σ_j w_j r / d³` for every body.
    fn pulls(&self, choices: Choices, team: &Team) -> Vec<[f64; 3]> {
        let Choices {
            root,
            pairs,
            instructions,
            threads,
        } = choices;
        let n = self.sources.len();
        let distance = Distance {
            root,
            softening_squared: self.softening_squared,
        };
        if threads == Threads::All && computes_once(pairs, n, R::PRECISION) {
            return once::pulls(&self.targets, &self.sources, distance, instructions, team);
        }
        let mut sums = vec![[[0.0; LANES]; 3]; self.targets.len()];
        let shares = team.shares(sums.len());
        let mine = shares[team.rank()].clone();
        let (of_mine, targets) = (&mut sums[mine.clone()], &self.targets[mine]);
        let pull = |_, sums: &mut [_], targets: &[_]| {
            instructions.run(Pull {
                targets,
                sources: &self.sources,
                distance,
                sums,
            });
        };
        if threads == Threads::One || n * targets.len() * LANES <= INTERACTIONS_ALONE {
            pull(0, of_mine, targets);
        } else {
            in_tasks(of_mine, targets, pull);
        }
        team.complete(&mut sums, &shares);
        lanes_of(&sums).take(n).collect()
    }
}

impl Packed<f64> {
    /// `Σ_{j<i} w_j / d` for every target i.
    fn potentials(&self, instructions: InstructionSet, team: &Team) -> Vec<[f64; LANES]> {
        let mut sums = vec![[0.0; LANES]; self.targets.len()];
        let shares = team.shares_of_triangle(sums.len());
        let mine = shares[team.rank()].clone();
        let targets = &self.targets[mine.clone()];
        in_tasks(&mut sums[mine.clone()], targets, |first, sums, targets| {
            instructions.run(Potential {
                targets,
                first: mine.start * LANES + first,
                sources: &self.sources,
                softening_squared: self.softening_squared,
                sums,
            });
        });
        team.complete(&mut sums, &shares);
        sums
    }
}

#[cfg(test)]
mod tests;
