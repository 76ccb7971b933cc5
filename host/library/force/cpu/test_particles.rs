//! Massless bodies: test particles, which are accelerated and accelerate nothing.
//!
//! Sources are the bodies with mass alone, so that a force costs N_massive × N. In f64 many test particles
//! are moved through many steps at a time while they stay in registers: first the bodies with mass take
//! the steps, and their positions at each evaluation are kept; then test particles take all of them, some
//! at a time. What is computed is the same, operation by operation, as in steps that are taken one after
//! another, and so are the bits.

#![expect(
    clippy::needless_range_loop,
    reason = "vector loops count an index: see `simd::Kernel`"
)]

use std::ops::Range;

use gpu_kernels::interaction::interact;
use gpu_kernels::numerics::{Closest, Precision};

use super::kernel::{BLOCK, Distance, Group, LANES, Loop, Pull, Source, load, splat};
use super::{Choices, Cpu, INTERACTIONS_ALONE, Packed, in_tasks, lanes_of, put};
use crate::backend::{HighestDerivative, Operation};
use crate::bodies::Bodies;
use crate::force::host_state::HostState;
use crate::force::in_memory::InMemory;
use crate::frame::Frame;
use crate::parallel::{self, ELEMENTWISE};
use crate::physics::Physics;
use crate::ranks::Team;
use crate::simd::Kernel;
use crate::simd::{Lane, Lanes, Registers, Root, Vector};
use crate::variants::{RootName, Threads};

/// Bodies of both kinds, by their indices.
#[derive(Clone, Debug)]
pub(super) struct Kinds {
    pub(super) massive: Vec<usize>,
    pub(super) massless: Vec<usize>,
}

impl Kinds {
    /// The kinds, if there are massless bodies.
    pub(super) fn of(bodies: &Bodies, physics: &Physics) -> Option<Self> {
        let has_mass = |mass: f64| physics.weight(mass) != 0.0;
        if bodies.mass.iter().copied().all(has_mass) {
            return None;
        }
        let (massive, massless) = (0..bodies.len()).partition(|&i| has_mass(bodies.mass[i]));
        Some(Self { massive, massless })
    }

    /// The bodies with mass alone.
    pub(super) fn massive_of(&self, bodies: &Bodies) -> Bodies {
        self.massive.iter().map(|&i| bodies.body(i)).collect()
    }
}

/// Groups of test particles that a thread takes at a time.
const TILE: usize = 8;

/// Sources that are kept at a time, of all evaluations, so that they stay in the second-level cache.
const SOURCES_KEPT: usize = 1 << 12;

/// There are so many test particles to a body with mass, or more, where they take many steps at a time:
/// in the lanes of bodies with mass nothing is computed that is of use.
const MANY: usize = 8;

/// Ranks share test particles from so many interactions of each on: fewer take no longer than sending where
/// it went.
const SHARED_FROM: usize = 1 << 11;

/// Test particles of each rank, whole pieces of so many; `None` where each rank computes all of them.
fn shares(
    team: &Team,
    count: usize,
    piece: usize,
    interactions_each: usize,
) -> Option<Vec<Range<usize>>> {
    let pays = !team.is_alone() && interactions_each >= SHARED_FROM;
    let bodies = |pieces: Range<usize>| {
        let [start, end] = [pieces.start, pieces.end].map(|at| (at * piece).min(count));
        start..end
    };
    let of_all = || team.shares(count.div_ceil(piece)).into_iter().map(bodies);
    pays.then(|| of_all().collect())
}

/// The bodies with mass at an evaluation, and the units of the result.
struct Evaluation {
    sources: Vec<Source<f64>>,
    softening_squared: f64,
    /// 1 over the unit of length, a power of two.
    to_local: f64,
    /// The acceleration of a sum of 1.
    unit: f64,
}

impl Evaluation {
    fn new<R: Lane>(packed: &Packed<R>, physics: &Physics, frame: &Frame) -> Self {
        let sources = packed.sources.iter();
        Self {
            sources: sources.map(|source| source.map(R::to_f64)).collect(),
            softening_squared: packed.softening_squared.to_f64(),
            to_local: 1.0 / frame.length,
            unit: unit(physics, frame),
        }
    }
}

/// The acceleration of a sum of 1. Units are powers of two, so that it does not matter whether they are
/// multiplied before or after the sum.
fn unit(physics: &Physics, frame: &Frame) -> f64 {
    let [unit, ..] = frame.acceleration_from_local([frame.coupling_to_local(physics), 0.0, 0.0]);
    unit
}

/// An operation on test particles.
#[derive(Clone, Copy)]
enum Move {
    Damp(f64),
    Kick(f64),
    Drift(f64),
    /// By its number.
    Evaluate(usize),
}

/// State of the test particles of a tile, of all the lanes of each group.
#[derive(Clone, Copy)]
struct Tile {
    x: [Group<f64>; TILE],
    v: [Group<f64>; TILE],
    a: [Group<f64>; TILE],
}

const NOTHING: [Group<f64>; TILE] = [[[0.0; LANES]; 3]; TILE];

/// Moves a tile.
struct Follow<'a> {
    tile: &'a mut Tile,
    /// Groups of it that have bodies.
    groups: usize,
    moves: &'a [Move],
    evaluations: &'a [Evaluation],
    root: RootName,
}

impl Kernel for Follow<'_> {
    type Output = ();
    #[inline(always)]
    fn run<S: Registers>(self) {
        // The least: what is asked of distances that may be zero changes no others.
        let mut softening_squared = f64::INFINITY;
        for evaluation in self.evaluations {
            softening_squared = softening_squared.min(evaluation.softening_squared);
        }
        let distance = Distance {
            root: self.root,
            softening_squared,
        };
        distance.run::<S::F64>(self);
    }
}

impl Loop<f64> for Follow<'_> {
    #[inline(always)]
    fn run<V: Vector<Lane = f64>, S: Root, C: Closest>(self) {
        for group in 0..self.groups {
            // Two registers share a source that has been read, if there is room for them.
            if V::REGISTERS >= 32 && LANES.is_multiple_of(2 * V::LANES) {
                for lane in (0..LANES).step_by(2 * V::LANES) {
                    follow::<V, S, C, 2>(self.tile, group, lane, self.moves, self.evaluations);
                }
            } else {
                for lane in (0..LANES).step_by(V::LANES) {
                    follow::<V, S, C, 1>(self.tile, group, lane, self.moves, self.evaluations);
                }
            }
        }
    }
}

/// Vectors of the test particles that fill `COUNT` registers.
type Vectors<V, const COUNT: usize> = [[V; 3]; COUNT];

/// Makes all moves of the test particles of a group that fill `COUNT` registers, from this lane on, and
/// stay in them.
#[inline(always)]
fn follow<V: Vector<Lane = f64>, S: Root, C: Closest, const COUNT: usize>(
    tile: &mut Tile,
    group: usize,
    lane: usize,
    moves: &[Move],
    evaluations: &[Evaluation],
) {
    let mut x = load_all::<V, COUNT>(&tile.x[group], lane);
    let mut v = load_all::<V, COUNT>(&tile.v[group], lane);
    let mut a = load_all::<V, COUNT>(&tile.a[group], lane);
    for &step in moves {
        match step {
            Move::Damp(factor) => {
                for register in 0..COUNT {
                    for axis in 0..3 {
                        v[register][axis] = v[register][axis] * V::splat(factor);
                    }
                }
            }
            Move::Kick(dt) => advance(&mut v, dt, &a),
            Move::Drift(dt) => advance(&mut x, dt, &v),
            Move::Evaluate(number) => a = attract::<V, S, C, COUNT>(&x, &evaluations[number]),
        }
    }
    store(x, &mut tile.x[group], lane);
    store(v, &mut tile.v[group], lane);
    store(a, &mut tile.a[group], lane);
}

#[inline(always)]
fn load_all<V: Vector<Lane = f64>, const COUNT: usize>(
    group: &Group<f64>,
    first: usize,
) -> Vectors<V, COUNT> {
    let mut vectors = [[V::splat(0.0); 3]; COUNT];
    for register in 0..COUNT {
        vectors[register] = load(group, first + register * V::LANES);
    }
    vectors
}

#[inline(always)]
fn store<V: Vector<Lane = f64>, const COUNT: usize>(
    vectors: Vectors<V, COUNT>,
    group: &mut Group<f64>,
    first: usize,
) {
    for register in 0..COUNT {
        for axis in 0..3 {
            vectors[register][axis].store(&mut group[axis][first + register * V::LANES..]);
        }
    }
}

/// `state += dt · rate`, product and sum rounded apart as everywhere.
#[inline(always)]
fn advance<V: Vector<Lane = f64>, const COUNT: usize>(
    state: &mut Vectors<V, COUNT>,
    dt: f64,
    rate: &Vectors<V, COUNT>,
) {
    for register in 0..COUNT {
        for axis in 0..3 {
            let step = V::splat(dt) * rate[register][axis];
            state[register][axis] = state[register][axis] + step;
        }
    }
}

/// Accelerations by the sources of an evaluation, as [`Pull`] computes them.
#[inline(always)]
fn attract<V: Vector<Lane = f64>, S: Root, C: Closest, const COUNT: usize>(
    x: &Vectors<V, COUNT>,
    evaluation: &Evaluation,
) -> Vectors<V, COUNT> {
    let nothing = [[V::splat(0.0); 3]; COUNT];
    let to_local = V::splat(evaluation.to_local);
    let mut at = nothing;
    for register in 0..COUNT {
        for axis in 0..3 {
            at[register][axis] = x[register][axis] * to_local;
        }
    }
    let softening_squared = V::splat(evaluation.softening_squared);
    let mut sums = nothing;
    for block in evaluation.sources.chunks(BLOCK) {
        let mut pulls = nothing;
        for &[x, y, z, weight] in block {
            let (source, weight) = (splat(x, y, z), V::splat(weight));
            for register in 0..COUNT {
                let pull = &mut pulls[register];
                interact::<Lanes<V, S, C>>(at[register], source, weight, softening_squared, pull);
            }
        }
        for register in 0..COUNT {
            for axis in 0..3 {
                sums[register][axis] = sums[register][axis] + pulls[register][axis];
            }
        }
    }
    let unit = V::splat(evaluation.unit);
    for register in 0..COUNT {
        for axis in 0..3 {
            sums[register][axis] = unit * sums[register][axis];
        }
    }
    sums
}

impl<R: Lane> Cpu<R> {
    /// Accelerations by pairs: of bodies with mass as if there were no others, and of the others by them.
    pub(super) fn pull_by_massive(&mut self, kinds: &Kinds) {
        let frame = self.frame();
        let massive = kinds.massive_of(&self.state.bodies);
        self.packed.fill(&massive, &self.physics, &frame);
        let coupling = frame.coupling_to_local(&self.physics);
        let pulls = self.packed.pulls(self.choices, &self.team);
        for (&i, pull) in kinds.massive.iter().zip(pulls) {
            self.state.accelerations[i] =
                frame.acceleration_from_local(pull.map(|sum| coupling * sum));
        }
        let bodies = &self.state.bodies;
        let (count, sources) = (kinds.massless.len(), &self.packed.sources);
        let shares = shares(&self.team, count, LANES, sources.len());
        let mine = match &shares {
            Some(shares) => shares[self.team.rank()].clone(),
            None => 0..count,
        };
        let massless = &kinds.massless[mine.clone()];
        let groups = massless.len().div_ceil(LANES);
        let targets: Vec<Group<R>> = parallel::each(groups, ELEMENTWISE / LANES, |number| {
            let mut group = [[R::default(); LANES]; 3];
            let indices = massless[number * LANES..].iter().take(LANES);
            for (lane, &i) in indices.enumerate() {
                let position = frame.position_to_local([bodies.x[i], bodies.y[i], bodies.z[i]]);
                put(&mut group, lane, position.map(R::from_f64));
            }
            group
        });
        let Choices {
            root,
            instructions,
            threads,
            ..
        } = self.choices;
        let mut sums = vec![[[0.0; LANES]; 3]; targets.len()];
        let pull = |_, sums: &mut [_], targets: &[_]| {
            instructions.run(Pull {
                targets,
                sources,
                distance: Distance {
                    root,
                    softening_squared: self.packed.softening_squared,
                },
                sums,
            });
        };
        let interactions = mine.len() * sources.len();
        if threads == Threads::One || interactions <= INTERACTIONS_ALONE {
            pull(0, &mut sums, &targets);
        } else {
            in_tasks(&mut sums, &targets, pull);
        }
        let mut pulls: Vec<[f64; 3]> = lanes_of(&sums).take(mine.len()).collect();
        if let Some(shares) = shares {
            let counts: Vec<usize> = shares.iter().map(Range::len).collect();
            pulls = self.team.gather(&pulls, &counts);
        }
        let unit = unit(&self.physics, &frame);
        for (&i, pull) in kinds.massless.iter().zip(pulls) {
            self.state.accelerations[i] = pull.map(|sum| unit * sum);
        }
    }

    /// Takes steps of kicks and drifts, many at a time, where there are many test particles and nothing
    /// else than bodies accelerates them. Returns whether it did.
    pub(super) fn follow(&mut self, times: u64, step: &[Operation]) -> bool {
        let (Some(kinds), Some(moves)) = (self.kinds.clone(), moves_of(step)) else {
            return false;
        };
        let suits = R::PRECISION == Precision::F64
            && self.choices.threads == Threads::All
            && self.state.external.is_none()
            && kinds.massive.len() * MANY <= self.state.bodies.len();
        if !suits {
            return false;
        }
        let is_evaluation = |step: &&Move| matches!(step, Move::Evaluate(_));
        let evaluations = moves.iter().filter(is_evaluation).count();
        let sources = (evaluations * kinds.massive.len()).max(1);
        let at_once = (SOURCES_KEPT / sources).max(1) as u64;
        let mut left = times;
        while left > 0 {
            let now = left.min(at_once);
            self.take_steps(&kinds, now, &moves);
            left -= now;
        }
        true
    }

    fn take_steps(&mut self, kinds: &Kinds, times: u64, step: &[Move]) {
        let mut massive = HostState::new(&kinds.massive_of(&self.state.bodies));
        for (k, &i) in kinds.massive.iter().enumerate() {
            massive.accelerations[k] = self.state.accelerations[i];
        }
        let (mut moves, mut evaluations) = (vec![], vec![]);
        for &step in (0..times).flat_map(|_| step) {
            let mut told = step;
            match step {
                Move::Damp(factor) => massive.damp(factor),
                Move::Kick(dt) => massive.kick(dt),
                Move::Drift(dt) => massive.drift(dt),
                Move::Evaluate(_) => {
                    let frame = super::frame::<R>(&massive.bodies, &self.physics);
                    self.packed.fill(&massive.bodies, &self.physics, &frame);
                    let coupling = frame.coupling_to_local(&self.physics);
                    let pulls = self.packed.pulls(self.choices, &self.team);
                    for (acceleration, pull) in massive.accelerations.iter_mut().zip(pulls) {
                        *acceleration =
                            frame.acceleration_from_local(pull.map(|sum| coupling * sum));
                    }
                    told = Move::Evaluate(evaluations.len());
                    evaluations.push(Evaluation::new(&self.packed, &self.physics, &frame));
                }
            }
            moves.push(told);
        }
        self.follow_evaluations(&moves, &evaluations);
        let mut time = self.state.external.time();
        for step in &moves {
            if let Move::Drift(dt) = step {
                time += dt;
            }
        }
        self.state.external.set_time(time);
        for (k, &i) in kinds.massive.iter().enumerate() {
            let (x, v) = massive.phase(k);
            self.state.set_phase(i, x, v);
            self.state.accelerations[i] = massive.accelerations[k];
        }
    }

    /// Moves all bodies as test particles; those with mass must be put in their places afterwards.
    fn follow_evaluations(&mut self, moves: &[Move], evaluations: &[Evaluation]) {
        const BODIES: usize = TILE * LANES;
        let Choices {
            root, instructions, ..
        } = self.choices;
        let HostState {
            bodies: b,
            accelerations,
            ..
        } = &mut self.state;
        let interactions = evaluations.iter().map(|at| at.sources.len()).sum();
        let shares = shares(&self.team, accelerations.len(), BODIES, interactions);
        let mine = match &shares {
            Some(shares) => shares[self.team.rank()].clone(),
            None => 0..accelerations.len(),
        };
        let columns = b.phase_parts(mine.clone(), BODIES).into_iter();
        let mut parts: Vec<_> = columns
            .zip(accelerations[mine].chunks_mut(BODIES))
            .collect();
        parallel::change(&mut parts, 1, |_, (columns, accelerations)| {
            let mut tile = Tile {
                x: NOTHING,
                v: NOTHING,
                a: NOTHING,
            };
            let (positions, velocities) = columns.split_at_mut(3);
            let columns = [positions, velocities];
            for (state, columns) in [&mut tile.x, &mut tile.v].into_iter().zip(&columns) {
                for (axis, column) in columns.iter().enumerate() {
                    for (k, value) in column.iter().enumerate() {
                        state[k / LANES][axis][k % LANES] = *value;
                    }
                }
            }
            for (k, &a) in accelerations.iter().enumerate() {
                put(&mut tile.a[k / LANES], k % LANES, a);
            }
            instructions.run(Follow {
                tile: &mut tile,
                groups: accelerations.len().div_ceil(LANES),
                moves,
                evaluations,
                root,
            });
            for (state, columns) in [&tile.x, &tile.v].into_iter().zip(columns) {
                for (axis, column) in columns.iter_mut().enumerate() {
                    for (k, value) in column.iter_mut().enumerate() {
                        *value = state[k / LANES][axis][k % LANES];
                    }
                }
            }
            for (a, of_lane) in accelerations.iter_mut().zip(lanes_of(&tile.a)) {
                *a = of_lane;
            }
        });
        if let Some(shares) = shares {
            for column in [
                &mut b.x, &mut b.y, &mut b.z, &mut b.vx, &mut b.vy, &mut b.vz,
            ] {
                self.team.complete(column, &shares);
            }
            self.team.complete(accelerations, &shares);
        }
    }
}

/// The moves of a step that is made of kicks and drifts.
fn moves_of(step: &[Operation]) -> Option<Vec<Move>> {
    let moves = step.iter().map(|operation| match *operation {
        Operation::Damp(factor) => Some(Move::Damp(factor)),
        Operation::Kick(dt) => Some(Move::Kick(dt)),
        Operation::Drift(dt) => Some(Move::Drift(dt)),
        Operation::Evaluate(HighestDerivative::None) => Some(Move::Evaluate(0)),
        _ => None,
    });
    moves.collect()
}

#[cfg(test)]
mod tests;
