//! Block time steps of fourth or sixth order with [groups](crate::groups): pairs and multiples that are one body for
//! the steps.
//!
//! A group stands in the slot of its first member, with the mass of all. Slots of its other members are free: they
//! have no mass and no steps. Forces are computed as without groups, on and by centres of mass; corrections for
//! members are added for the few bodies that are near a group. A group follows its members whenever it or a partner
//! needs them, and chooses its partners anew at the end of each of its steps. Who becomes a group, and who is single
//! again, is decided between blocks.

mod begin;
mod contacts;
mod corrections;
mod levels;
mod looks;
mod members;
mod neighbourhood;
mod partners;
mod paths;
mod perturbed;
mod places;
mod regroup;
mod slots;
mod steps;
#[cfg(test)]
pub(super) mod tests;

pub(crate) use begin::pairs_at_start;
pub(super) use begin::{begin, correct_for_members};

use gpu_kernels::schedule::block_steps::SPAN;

use self::corrections::Correction;
use self::levels::Levels;
use self::neighbourhood::Neighbourhood;
use self::perturbed::Perturbed;
use self::places::Places;
use crate::backend::{BlockCounts, ForceError};
use crate::fields::BODIES_OF_A_TASK;
use crate::force::block_steps::{SinceQuestion, Way, all_go_on, level};
use crate::force::hermite_order::Order;
use crate::force::in_memory::{Block, Forces, InMemory, order, time_in};
use crate::frame::Frame;
use crate::groups::{Groups, Vector, heavy_above};
use crate::parallel;
use crate::simd::InstructionSet;

/// Factor by which distances are taken for more than they are, because they are rounded.
const MARGIN: f64 = 1.01;

/// No impulses that a slot is owed: sums of Δv and of −t Δv.
const NO_IMPULSES: [Vector; 2] = [[0.0; 3]; 2];

/// A span of block time steps on its way.
struct Course<'a> {
    backend: &'a mut dyn InMemory,
    groups: Groups,
    order: Order,
    frame: Frame,
    span: f64,
    eta: f64,
    /// Time of external fields where the span begins.
    start: f64,
    /// Ticks that are done.
    now: u64,
    /// Masses times G of the slots.
    gm: Vec<f64>,
    /// Cube roots of the masses times G.
    roots: Vec<f64>,
    /// Slots with a body or group.
    live: Vec<usize>,
    /// Largest mass times G.
    heaviest: f64,
    /// All masses times G.
    total: f64,
    /// Mass times G above which a body is heavy.
    heavy: f64,
    /// [`InMemory::rounding`]
    rounding: f64,
    /// Ticks at which the steps of slots began.
    begun: Vec<u64>,
    levels: Levels,
    /// Impulses that a slot has not been given yet: sums of Δv and of −t Δv.
    impulses: Vec<[Vector; 2]>,
    /// Slots with a new content or step since forces were last computed.
    changed: Vec<usize>,
    corrections: Vec<Correction>,
    /// Distances of slots within which there is nobody where their steps begin; 0 where no distance is known.
    nearest: Vec<f64>,
    /// Slots with a correction.
    corrected: Vec<usize>,
    /// True for slots whose force is wanted.
    is_due: Vec<bool>,
    /// True if the backend has predicted all slots in its state.
    is_predicted: bool,
    perturbed: Perturbed,
    /// None until they are wanted.
    places: Option<Places>,
    /// None where all slots give each force.
    neighbourhood: Option<Neighbourhood>,
    instructions: InstructionSet,
    counts: BlockCounts,
}

/// Takes block time steps for a span: [`BlockSteps::advance`](crate::backend::BlockSteps::advance). None if it is
/// left on its way.
pub(super) fn advance(
    backend: &mut dyn InMemory,
    span: f64,
    eta: f64,
    way: Way<'_, '_>,
) -> Result<Option<BlockCounts>, ForceError> {
    let Some(groups) = backend.state_mut().groups.take() else {
        return Ok(Some(BlockCounts::NONE));
    };
    let wanted = backend.state().neighbours;
    let mut course = Course::new(backend, *groups, span, eta);
    let bodies = course.begun.len();
    course.neighbourhood = wanted.map(|wanted| Neighbourhood::new(wanted, eta, bodies));
    let ended = course.run(way);
    let Course {
        backend, groups, ..
    } = course;
    backend.state_mut().groups = Some(Box::new(groups));
    ended
}

/// Level of the longest steps that may begin at a tick within the span.
const fn coarsest_from(now: u64) -> u32 {
    (SPAN.trailing_zeros()).saturating_sub(now.trailing_zeros())
}

/// Level of the step that may begin at a tick, where one of this level is wanted.
fn level_from(now: u64, wanted: u32) -> u32 {
    match now < SPAN {
        true => wanted.max(coarsest_from(now)),
        false => wanted,
    }
}

/// Results for a `count` of things. From `several` of them on, more than one thread computes: to wake threads takes as
/// long as a few results.
fn of_each<T: Send>(count: usize, several: usize, of: impl Fn(usize) -> T + Send + Sync) -> Vec<T> {
    match count < several {
        true => (0..count).map(of).collect(),
        false => parallel::each(count, several / 4, of),
    }
}

impl<'a> Course<'a> {
    fn new(backend: &'a mut dyn InMemory, groups: Groups, span: f64, eta: f64) -> Self {
        let frame = backend.frame();
        let state = backend.state_mut();
        let (n, order) = (state.bodies.len(), state.order());
        state.begin();
        let start = state.external.time();
        let perturbed = Perturbed::of(&groups, n);
        let heavy = backend.physics().coupling() * heavy_above(&groups.masses);
        let total = groups.coupling * groups.masses.iter().sum::<f64>();
        let (instructions, rounding) = (backend.instructions(), backend.rounding());
        let mut course = Self {
            backend,
            groups,
            order,
            frame,
            span,
            eta,
            start,
            now: 0,
            gm: vec![0.0; n],
            roots: vec![0.0; n],
            live: vec![],
            heaviest: 0.0,
            total,
            heavy,
            rounding,
            begun: vec![0; n],
            levels: Levels::none(n),
            impulses: vec![NO_IMPULSES; n],
            changed: (0..n).collect(),
            corrections: vec![Correction::NONE; n],
            nearest: vec![0.0; n],
            corrected: vec![],
            is_due: vec![false; n],
            is_predicted: false,
            perturbed,
            places: None,
            neighbourhood: None,
            instructions,
            counts: BlockCounts::NONE,
        };
        course.find_live(&Vec::from_iter(0..n));
        course
    }

    /// Takes the steps.
    fn run(&mut self, way: Way<'_, '_>) -> Result<Option<BlockCounts>, ForceError> {
        self.begin_neighbourhoods()?;
        if !self.groups.all.is_empty() {
            self.shorten_steps()?;
        }
        for k in 0..self.live.len() {
            let i = self.live[k];
            let level = level(self.backend.state().own_steps[i], self.span, i)?;
            let level = self.begin_within_regular(i, level);
            self.levels.set(i, level);
        }
        let mut since_question = SinceQuestion::default();
        while self.now < SPAN {
            let goes_on = way.goes_on(self.now);
            if !all_go_on(goes_on, self.backend.team(), &mut since_question) {
                return Ok(None);
            }
            let Some((now, block)) = self.levels.next(self.now) else {
                break;
            };
            self.now = now;
            self.counts.blocks += 1;
            since_question.add((block.len() * self.live.len()) as u64);
            let time = self.start + self.time(self.now);
            self.backend.state_mut().external.set_time(time);
            self.is_predicted = false;
            // Of a few bodies in a neighbour scheme, others are predicted where they are wanted.
            let near = self.neighbourhood.as_ref();
            if near.is_none_or(|near| near.reaches_all(block.len(), self.live.len())) {
                self.predict();
            }
            self.take_steps(&block)?;
            self.after(&block)?;
        }
        self.end()?;
        Ok(Some(self.counts))
    }

    /// Time since the span began.
    fn time(&self, ticks: u64) -> f64 {
        time_in(self.span, ticks)
    }

    /// Lets the backend predict all live slots.
    fn predict(&mut self) {
        let (span, now, begun) = (self.span, self.now, &self.begun);
        let since = |i: usize| time_in(span, now - begun[i]);
        self.is_predicted = self.backend.predict_in_block(&self.live, &since);
    }

    /// Lets a backend begin with forces of all on slots.
    fn begin_forces(&mut self, slots: &[usize]) -> Result<(), ForceError> {
        self.changed.sort_unstable();
        self.changed.dedup();
        let (frame, changed) = (self.frame, std::mem::take(&mut self.changed));
        let block = Block {
            frame: &frame,
            span: self.span,
            now: self.now,
            begun: &self.begun,
        };
        self.backend.begin_forces(block, &changed, slots)
    }

    /// Forces of all on slots.
    fn end_forces(&mut self, slots: &[usize]) -> Result<Vec<Forces>, ForceError> {
        let frame = self.frame;
        self.backend.end_forces(&frame, slots)
    }

    /// Forces on slots, with corrections for members.
    fn forces(&mut self, slots: &[usize]) -> Result<Vec<Forces>, ForceError> {
        let mut forces = match self.neighbourhood {
            Some(_) => self.forces_by_parts(slots)?,
            None => {
                self.begin_forces(slots)?;
                // While a device computes.
                self.correct(slots)?;
                self.end_forces(slots)?
            }
        };
        self.add_fields(slots, &mut forces);
        if !self.corrected.is_empty() {
            // All others have none.
            for (&i, force) in slots.iter().zip(&mut forces) {
                if self.perturbed.meets(i) {
                    self.corrections[i].add_to(force);
                }
            }
        }
        Ok(forces)
    }

    /// Adds external fields.
    fn add_fields(&self, slots: &[usize], forces: &mut [Forces]) {
        let (view, external) = (self.view(), &self.backend.state().external);
        if external.is_none() {
            return;
        }
        let derivatives = order(self.order.highest());
        parallel::change(forces, BODIES_OF_A_TASK, |k, force| {
            let i = slots[k];
            let [x, v] = view.phase(i);
            let moving = [x, v, view.acceleration(i)];
            force.derivatives = external.add_up_to(derivatives, moving, force.derivatives);
        });
    }
}
