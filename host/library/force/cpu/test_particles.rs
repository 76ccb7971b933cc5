//! Massless bodies: test particles, which are accelerated and accelerate nothing.
//!
//! Sources are the bodies with mass alone, so that a force costs N_massive × N. In f64 many test particles
//! are moved through many steps at a time while they lie in the first-level cache: first the bodies
//! with mass take the steps, and their positions at each evaluation are kept; then each tile of test
//! particles takes all of them. What is computed is the same, operation by operation, as in steps that are
//! taken one after another, and so are the bits.

use std::ops::Range;

use gpu_kernels::interaction::interact;
use gpu_kernels::numerics::{Closest, Precision};
use rayon::prelude::*;

use super::instruction_set::Kernel;
use super::kernel::{BLOCK, Distance, Group, LANES, Loop, Pull, Source, splat};
use super::vector::{Lane, Lanes, Registers, Root, Vector};
use super::{Choices, Cpu, ELEMENTWISE, INTERACTIONS_ALONE, Packed, in_tasks, lanes_of, put};
use crate::backend::{Derivatives, Operation};
use crate::bodies::Bodies;
use crate::force::host_state::HostState;
use crate::force::in_memory::InMemory;
use crate::frame::Frame;
use crate::physics::Physics;
use crate::ranks::Team;
use crate::variants::{RootName, Threads};

/// Bodies of both kinds, by their indices.
#[derive(Clone, Debug)]
pub(super) struct Kinds {
    pub(super) massive: Vec<usize>,
    massless: Vec<usize>,
}

impl Kinds {
    /// The kinds, if there are massless bodies.
    pub(super) fn of(bodies: &Bodies, physics: &Physics) -> Option<Self> {
        let has_mass = |&i: &usize| physics.weight(bodies.mass[i]) != 0.0;
        let (massive, massless): (Vec<_>, Vec<_>) = (0..bodies.len()).partition(has_mass);
        (!massless.is_empty()).then_some(Self { massive, massless })
    }

    /// The bodies with mass alone.
    pub(super) fn massive_of(&self, bodies: &Bodies) -> Bodies {
        self.massive.iter().map(|&i| bodies.body(i)).collect()
    }
}

/// Groups of test particles that take many steps together: positions, velocities, accelerations and what
/// is in between are 18 KB.
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
        let Tile { x, v, a } = self.tile;
        let (x, v, a) = (
            &mut x[..self.groups],
            &mut v[..self.groups],
            &mut a[..self.groups],
        );
        for &step in self.moves {
            match step {
                Move::Damp(factor) => damp::<S::F64>(v, factor),
                Move::Kick(dt) => advance::<S::F64>(v, dt, a),
                Move::Drift(dt) => advance::<S::F64>(x, dt, v),
                Move::Evaluate(number) => {
                    let evaluation = &self.evaluations[number];
                    let distance = Distance {
                        root: self.root,
                        softening_squared: evaluation.softening_squared,
                    };
                    distance.run::<S::F64>(Attract { x, a, evaluation });
                }
            }
        }
    }
}

/// Accelerations of groups by the sources of an evaluation, as [`Pull`] computes them.
struct Attract<'a> {
    x: &'a [Group<f64>],
    a: &'a mut [Group<f64>],
    evaluation: &'a Evaluation,
}

impl Loop<f64> for Attract<'_> {
    #[inline(always)]
    fn run<V: Vector<Lane = f64>, S: Root, C: Closest>(self) {
        for (x, a) in self.x.iter().zip(self.a) {
            // Two registers share a source that has been read, if there is room for them.
            if V::REGISTERS >= 32 && LANES.is_multiple_of(2 * V::LANES) {
                for lane in (0..LANES).step_by(2 * V::LANES) {
                    attract::<V, S, C, 2>(x, a, lane, self.evaluation);
                }
            } else {
                for lane in (0..LANES).step_by(V::LANES) {
                    attract::<V, S, C, 1>(x, a, lane, self.evaluation);
                }
            }
        }
    }
}

/// Accelerations of the targets of a group that fill `COUNT` registers, from this lane on.
#[inline(always)]
fn attract<V: Vector<Lane = f64>, S: Root, C: Closest, const COUNT: usize>(
    x: &Group<f64>,
    a: &mut Group<f64>,
    first: usize,
    evaluation: &Evaluation,
) {
    let (zero, to_local) = (V::splat(0.0), V::splat(evaluation.to_local));
    let mut at = [[zero; 3]; COUNT];
    for (register, at) in at.iter_mut().enumerate() {
        for (at, x) in at.iter_mut().zip(x) {
            *at = V::load(&x[first + register * V::LANES..]) * to_local;
        }
    }
    let softening_squared = V::splat(evaluation.softening_squared);
    let mut sums = [[zero; 3]; COUNT];
    for block in evaluation.sources.chunks(BLOCK) {
        let mut pulls = [[zero; 3]; COUNT];
        for &[x, y, z, weight] in block {
            let (source, weight) = (splat(x, y, z), V::splat(weight));
            for (at, pull) in at.iter().zip(&mut pulls) {
                interact::<Lanes<V, S, C>>(*at, source, weight, softening_squared, pull);
            }
        }
        for (sums, pulls) in sums.iter_mut().zip(pulls) {
            for (sum, pull) in sums.iter_mut().zip(pulls) {
                *sum = *sum + pull;
            }
        }
    }
    let unit = V::splat(evaluation.unit);
    for (register, sums) in sums.into_iter().enumerate() {
        for (a, sum) in a.iter_mut().zip(sums) {
            (unit * sum).store(&mut a[first + register * V::LANES..]);
        }
    }
}

/// `state += dt · rate`, product and sum rounded apart as everywhere.
#[inline(always)]
fn advance<V: Vector<Lane = f64>>(state: &mut [Group<f64>], dt: f64, rate: &[Group<f64>]) {
    let dt = V::splat(dt);
    for (state, rate) in state.iter_mut().zip(rate) {
        for (state, rate) in state.iter_mut().zip(rate) {
            for lane in (0..LANES).step_by(V::LANES) {
                let moved = V::load(&state[lane..]) + dt * V::load(&rate[lane..]);
                moved.store(&mut state[lane..]);
            }
        }
    }
}

/// `v *= factor`
#[inline(always)]
fn damp<V: Vector<Lane = f64>>(v: &mut [Group<f64>], factor: f64) {
    let factor = V::splat(factor);
    for lanes in v.iter_mut().flatten() {
        for lane in (0..LANES).step_by(V::LANES) {
            (V::load(&lanes[lane..]) * factor).store(&mut lanes[lane..]);
        }
    }
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
        let groups = kinds.massless[mine.clone()]
            .par_chunks(LANES)
            .with_min_len(ELEMENTWISE / LANES);
        let groups = groups.map(|indices| {
            let mut group = [[R::default(); LANES]; 3];
            for (lane, &i) in indices.iter().enumerate() {
                let position = frame.position_to_local([bodies.x[i], bodies.y[i], bodies.z[i]]);
                put(&mut group, lane, position.map(R::from_f64));
            }
            group
        });
        let targets: Vec<Group<R>> = groups.collect();
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
        let columns = (
            b.x[mine.clone()].par_chunks_mut(BODIES),
            b.y[mine.clone()].par_chunks_mut(BODIES),
            b.z[mine.clone()].par_chunks_mut(BODIES),
            b.vx[mine.clone()].par_chunks_mut(BODIES),
            b.vy[mine.clone()].par_chunks_mut(BODIES),
            b.vz[mine.clone()].par_chunks_mut(BODIES),
            accelerations[mine].par_chunks_mut(BODIES),
        );
        columns
            .into_par_iter()
            .for_each(|(x, y, z, vx, vy, vz, accelerations)| {
                let mut tile = Tile {
                    x: NOTHING,
                    v: NOTHING,
                    a: NOTHING,
                };
                let columns = [[x, y, z], [vx, vy, vz]];
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
                    for (axis, column) in columns.into_iter().enumerate() {
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
        Operation::Evaluate(Derivatives::None) => Some(Move::Evaluate(0)),
        _ => None,
    });
    moves.collect()
}

#[cfg(test)]
mod tests;
