//! Hermite's schemes with a step for each body: block time steps.
//!
//! Steps are a span of time halved so many times over, so that bodies end their steps together in
//! blocks, and all of them at the end of the span. In between, a block is corrected with the forces
//! of all other bodies where Taylor's series predicts them (McMillan 1986; Makino 1991, PASJ 43,
//! 859).

use std::cell::{Cell, RefCell};
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use gpu_kernels::hermite6;
use gpu_kernels::schedule::block_steps::{Ended, SPAN, Scheme, StepAccuracy, TOO_FINE, level_of};

use super::cancelled::Pulled;
use super::groups;
use super::hermite_order::Order;
use super::host_state::{Beginning, Kept};
use super::in_memory::{Forces, InMemory};
use crate::backend::{
    BlockCounts, BlockSteps, ForceError, GUARD, HighestDerivative, Sphere, Targets,
};
use crate::encounters::Paths;
use crate::frame::Frame;
use crate::parallel;
use crate::ranks::Team;

/// Time between two looks at a span on its way.
const LOOK: Duration = Duration::from_millis(50);

/// Time for which a thread waits for work of a block before it sleeps: longer than what one thread or a device does of a
/// block by itself. To wake it takes some 10 µs, several times in a block of 200.
const PATIENCE: Duration = Duration::from_millis(1);

/// Bodies whose first steps one thread chooses sooner than others are woken.
const SEVERAL: usize = 128;

/// The fewest bodies for whose blocks threads wait awake: those of fewer are soon done by one.
const FEWEST_TO_WAIT_FOR: usize = 1024;

/// Interactions of each thread after which ranks ask whether they go on with a span: some hundredths of a second.
const BETWEEN_QUESTIONS: u64 = 1 << 23;

/// Blocks after which they ask in any case: those of few bodies have few interactions, and take long all the same.
const BLOCKS_BETWEEN_QUESTIONS: u64 = 256;

/// A span on its way: what those who compute it and those who wait for its end tell each other.
#[derive(Debug, Default)]
struct OnItsWay {
    /// Ticks that are done.
    done: AtomicU64,
    is_left: AtomicBool,
    has_ended: AtomicBool,
    /// Threads that wait for work, or were asked to.
    waiting: AtomicUsize,
}

impl OnItsWay {
    /// The part of the span that is done.
    fn share(&self) -> f64 {
        self.done.load(Ordering::Relaxed) as f64 / SPAN as f64
    }

    /// Takes work of the pool's threads as it comes, until there has been none for a while. It ends then, and after
    /// [`LOOK`] in any case, for it may stand before work of another span on the same thread. The thread that has this span must not
    /// wait: nobody else would bring work.
    fn wait_for_work(&self, owner: Option<usize>) {
        let began = Instant::now();
        let mut idle = began;
        while rayon::current_thread_index() != owner
            && !self.has_ended.load(Ordering::Relaxed)
            && idle.elapsed() < PATIENCE
            && began.elapsed() < LOOK
        {
            match rayon::yield_now() {
                Some(rayon::Yield::Executed) => idle = Instant::now(),
                _ => std::thread::yield_now(),
            }
        }
        self.waiting.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A span on its way, for the thread of a pool that computes it.
#[derive(Clone, Copy)]
pub(super) struct Way<'way, 'scope> {
    told: &'scope OnItsWay,
    /// Looks after each block, where no other thread does.
    look: Option<&'way dyn Fn()>,
    scope: &'way rayon::Scope<'scope>,
    /// Threads that are to wait for work.
    waiting: usize,
}

impl Way<'_, '_> {
    /// Tells that the span has come so far, and keeps the pool's other threads awake for the next block; returns whether
    /// it is to go on.
    pub(super) fn goes_on(&self, now: u64) -> bool {
        let (told, owner) = (self.told, rayon::current_thread_index());
        told.done.store(now, Ordering::Relaxed);
        if let Some(look) = self.look {
            look();
        }
        while told.waiting.load(Ordering::Relaxed) < self.waiting {
            told.waiting.fetch_add(1, Ordering::Relaxed);
            self.scope.spawn(move |_| told.wait_for_work(owner));
        }
        !told.is_left.load(Ordering::Relaxed)
    }
}

/// Takes the block steps of a span; none if it is left on its way.
fn span_of<'scope, B: InMemory>(
    backend: &mut B,
    span: f64,
    eta: f64,
    told: &'scope OnItsWay,
    look: Option<&dyn Fn()>,
    scope: &rayon::Scope<'scope>,
) -> Result<Option<BlockCounts>, ForceError> {
    let waiting = match backend.state().bodies.len() {
        ..FEWEST_TO_WAIT_FOR => 0,
        _ => rayon::current_num_threads() - 1,
    };
    let way = Way {
        told,
        look,
        scope,
        waiting,
    };
    let counts = steps_of(backend, span, eta, way);
    told.has_ended.store(true, Ordering::Relaxed);
    counts
}

/// As [`span_of`], on its way.
fn steps_of<B: InMemory>(
    backend: &mut B,
    span: f64,
    eta: f64,
    way: Way<'_, '_>,
) -> Result<Option<BlockCounts>, ForceError> {
    let has_groups = backend.state().groups.is_some();
    if let Some(neighbours) = backend.state().neighbours.filter(|_| !has_groups) {
        return backend.advance_with_neighbours(neighbours, span, eta, way);
    }
    if backend.state().own_steps.is_empty() {
        backend.state_mut().own_steps = first_steps(backend, span, eta, Targets::All)?;
    }
    if has_groups {
        return groups::advance(backend, span, eta, way);
    }
    match backend.state().order() {
        Order::Sixth => advance::<B::Sixth>(backend, span, eta, way),
        Order::Fourth => advance::<B::Fourth>(backend, span, eta, way),
    }
}

// All of a span is computed by a thread of the pool: one outside would sleep and be woken in each block.
impl<B: InMemory> BlockSteps for B {
    fn advance(&mut self, span: f64, eta: f64) -> Result<BlockCounts, ForceError> {
        let way = OnItsWay::default();
        let counts = rayon::scope(|scope| span_of(self, span, eta, &way, None, scope))?;
        Ok(counts.expect("nobody leaves it"))
    }

    fn advance_unless(
        &mut self,
        span: f64,
        eta: f64,
        watch: &mut dyn FnMut(f64) -> ControlFlow<()>,
    ) -> Result<Option<BlockCounts>, ForceError> {
        let way = &OnItsWay::default();
        let is_left = || way.is_left.load(Ordering::Relaxed);
        if rayon::current_thread_index().is_some() {
            // This thread is one of the pool's. It does not wait for another, because all of them may wait so.
            let (asked, watch) = (Cell::new(Instant::now()), RefCell::new(watch));
            let look = || {
                if asked.get().elapsed() >= LOOK && !is_left() {
                    let leaves = (watch.borrow_mut())(way.share()).is_break();
                    way.is_left.store(leaves, Ordering::Relaxed);
                    asked.set(Instant::now());
                }
            };
            let counts =
                rayon::in_place_scope(|scope| span_of(self, span, eta, way, Some(&look), scope));
            return Ok(counts?.filter(|_| !is_left()));
        }
        let (sender, receiver) = mpsc::channel();
        rayon::in_place_scope(|scope| {
            scope.spawn(move |scope| {
                // Refused by nobody: the receiver waits for it.
                let _ = sender.send(span_of(self, span, eta, way, None, scope));
            });
            loop {
                match receiver.recv_timeout(LOOK) {
                    // Left also where the end came first: the caller, who broke off, is not told to go on.
                    Ok(ended) => return ended.map(|counts| counts.filter(|_| !is_left())),
                    Err(RecvTimeoutError::Timeout) if is_left() => {} // until the next block
                    Err(RecvTimeoutError::Timeout) => {
                        if watch(way.share()).is_break() {
                            way.is_left.store(true, Ordering::Relaxed);
                        }
                    }
                    // It panicked, and so does the end of the scope.
                    Err(RecvTimeoutError::Disconnected) => return Ok(None),
                }
            }
        })
    }

    fn own_steps(&mut self) -> Result<Vec<f64>, ForceError> {
        Ok(self.state().own_steps.clone())
    }

    fn choose_steps(&mut self, span: f64, eta: f64, some: &[usize]) -> Result<bool, ForceError> {
        let steps = first_steps(self, span, eta, Targets::Active(some))?;
        let state = self.state_mut();
        for (&i, step) in some.iter().zip(steps) {
            state.own_steps[i] = step;
            if let Some(sphere) = state.spheres.get_mut(i) {
                // A new sphere, and regular steps that grow from here.
                *sphere = Sphere {
                    radius: f64::INFINITY,
                    regular_step: step,
                };
            }
        }
        Ok(true)
    }

    fn keep_paths(&mut self, radii: &[f64]) -> bool {
        self.state_mut().kept = Some(Kept {
            radii: radii.to_vec(),
            paths: Paths::default(),
        });
        true
    }

    fn take_paths(&mut self) -> Paths {
        let kept = self.state_mut().kept.as_mut();
        kept.map(|kept| std::mem::take(&mut kept.paths))
            .unwrap_or_default()
    }
}

/// Work of a span since ranks last asked whether they go on with it; all have the same.
#[derive(Default)]
pub(super) struct SinceQuestion {
    interactions: u64,
    blocks: u64,
}

impl SinceQuestion {
    /// Adds a block of so many interactions.
    pub(super) fn add(&mut self, interactions: u64) {
        self.blocks += 1;
        self.interactions += interactions;
    }
}

/// Returns whether a span goes on: where there are ranks, as rank 0 says, which is asked from time to time.
pub(super) fn all_go_on(goes_on: bool, team: Option<&Team>, since: &mut SinceQuestion) -> bool {
    let Some(team) = team else {
        return goes_on;
    };
    let threads: usize = team.threads().iter().sum();
    if since.interactions < threads as u64 * BETWEEN_QUESTIONS
        && since.blocks < BLOCKS_BETWEEN_QUESTIONS
    {
        return true;
    }
    *since = SinceQuestion::default();
    team.as_rank_0_says(goes_on)
}

/// Steps with which bodies begin a run of either order, in a span.
fn first_steps(
    backend: &impl InMemory,
    span: f64,
    eta: f64,
    targets: Targets<'_>,
) -> Result<Vec<f64>, ForceError> {
    let forces = backend.forces(&backend.frame(), targets, HighestDerivative::Snap)?;
    let (physics, state) = (backend.physics(), backend.state());
    let bodies = targets.indices(state.bodies.len());
    Ok(parallel::each(bodies.len(), SEVERAL, |k| {
        let (body, force) = (bodies[k], &forces[k]);
        let pulled = Pulled {
            body,
            acceleration: force.derivatives[0],
            eta,
        };
        let allowed = hermite6::first_step(eta, force.derivatives);
        let allowed = pulled.first_step(allowed, span, &(physics, state));
        guarded(allowed, force.approach)
    }))
}

/// The step that is allowed, and in which no pair changes its distance by more than [`GUARD`] of it.
pub(super) fn guarded(allowed: f64, approach: f64) -> f64 {
    allowed.min(GUARD / approach)
}

/// Advances all bodies by `span`, with steps that accuracy `eta` allows each of them. Accelerations and
/// their derivatives must be those of the current state, and are so again at the end, if that is
/// reached.
fn advance<S: Scheme>(
    backend: &mut impl InMemory,
    span: f64,
    eta: f64,
    way: Way<'_, '_>,
) -> Result<Option<BlockCounts>, ForceError> {
    let n = backend.state().bodies.len();
    let frame = backend.frame();
    let derivatives = if S::SNAP {
        HighestDerivative::Snap
    } else {
        HighestDerivative::Jerk
    };
    let physics = *backend.physics();
    let state = backend.state_mut();
    state.begin();
    let start = state.external.time();
    let refines = !S::SNAP && state.external.turns();
    let levels = (0..n).map(|i| level(state.own_steps[i], span, i));
    let mut levels = levels.collect::<Result<Vec<u32>, ForceError>>()?;
    let sources = backend.sources().map(<[usize]>::to_vec);
    let mut begun = vec![0; n]; // in ticks of the span
    let mut ends: Vec<u64> = levels.iter().map(|&level| SPAN >> level).collect();
    let time = |ticks: u64| span * (ticks as f64 / SPAN as f64);
    let (mut now, mut counts) = (0, BlockCounts::NONE);
    let mut block = vec![];
    let mut since_question = SinceQuestion::default();
    while now < SPAN {
        if !all_go_on(way.goes_on(now), backend.team(), &mut since_question) {
            return Ok(None);
        }
        now = ends.iter().copied().min().unwrap_or(SPAN);
        block.clear();
        block.extend((0..n).filter(|&i| ends[i] == now));
        since_question.add((block.len() * n) as u64);
        let state = backend.state_mut();
        state.external.set_time(start + time(now));
        let since = |i: usize| time(now - begun[i]);
        match &sources {
            None => state.predict::<S>(since),
            Some(sources) => {
                // Test particles wait for their own blocks: nothing depends on them.
                state.predict_some::<S>(sources, since);
                state.predict_some::<S>(&block, since);
            }
        }
        let forces = match refines {
            true => refined::<S>(backend, &frame, &block, |i| time(SPAN >> levels[i]))?,
            false => backend.forces(&frame, Targets::Active(&block), derivatives)?,
        };
        counts.blocks += 1;
        counts.steps += block.len() as u64;
        let state = backend.state_mut();
        for (&i, force) in block.iter().zip(forces) {
            let dt = time(SPAN >> levels[i]);
            counts.shortest = counts.shortest.min(dt.abs());
            let Ended {
                x,
                v,
                crackle: c,
                allowed,
            } = S::ended(
                &state.beginnings[i],
                dt,
                StepAccuracy::of_exact(eta),
                force.derivatives,
            );
            let [a, j, s] = force.derivatives;
            let pulled = Pulled {
                body: i,
                acceleration: a,
                eta,
            };
            let allowed = pulled.next_step(allowed, [dt, counts.shortest], &(&physics, &*state));
            state.set_phase(i, x, v);
            let phases = [state.begun_from(i), [x, v]];
            state.keep_step(i, [begun[i], now], phases);
            state.begin_at(i, Beginning { x, v, a, j, s, c });
            state.own_steps[i] = guarded(allowed, force.approach).min(2.0 * dt);
            begun[i] = now;
            levels[i] = next_level(levels[i], level(state.own_steps[i], span, i)?, now);
            ends[i] = now + (SPAN >> levels[i]);
        }
    }
    Ok(Some(counts))
}

/// Forces at the ends of the steps of a block, where fields depend on velocities. Velocities are predicted to second order,
/// which is too little for steps of fourth order. So positions and velocities are corrected once, and fields are computed
/// there.
fn refined<S: Scheme>(
    backend: &mut impl InMemory,
    frame: &Frame,
    block: &[usize],
    dt: impl Fn(usize) -> f64,
) -> Result<Vec<Forces>, ForceError> {
    let targets = Targets::Active(block);
    let by_pairs = backend.pair_forces(frame, targets, HighestDerivative::Jerk)?;
    let predicted = backend.with_fields(by_pairs.clone(), targets, HighestDerivative::Jerk);
    let state = backend.state_mut();
    for (&i, force) in block.iter().zip(predicted) {
        // η plays no part in where a step ends.
        let accuracy = StepAccuracy::of_exact(1.0);
        let ended = S::ended(&state.beginnings[i], dt(i), accuracy, force.derivatives);
        state.set_phase(i, ended.x, ended.v);
    }
    Ok(backend.with_fields(by_pairs, targets, HighestDerivative::Jerk))
}

/// Number of times a span must be halved to be no longer than the step that body `i` allows.
pub(super) fn level(allowed: f64, span: f64, i: usize) -> Result<u32, ForceError> {
    match level_of(allowed, span.abs()) {
        TOO_FINE => Err(ForceError::StepTooShort {
            body: i,
            allowed,
            shortest: span.abs() / SPAN as f64,
        }),
        level => Ok(level),
    }
}

/// Level of the step that begins where a step of a level ends, at a tick, if another one is wanted. A longer step must
/// begin where steps of its length begin.
pub(super) const fn next_level(level: u32, wanted: u32, now: u64) -> u32 {
    match wanted > level || now.is_multiple_of(SPAN >> wanted) {
        true => wanted,
        false => level,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fields::{External, ExternalField, Fields};
    use crate::force::cpu::samples::cloud;
    use crate::force::cpu::{Choices, Cpu};
    use crate::integrator::{Integrator, Pace, TimeSteps};
    use crate::physics::{ForceLaw, Physics};
    use crate::simulation::Simulation;

    /// Fields that depend on velocities leave steps of fourth order at their order: a sixteenth of η is a quarter of the
    /// step.
    #[test]
    fn coriolis_forces_keep_the_order_of_block_steps() {
        let physics = Physics {
            law: ForceLaw::Gravity,
            g: 1.0,
            softening: 0.1,
        };
        let tide = Fields::from_iter([ExternalField::tide(3.0, 3.0, 3.0)]);
        let bodies = cloud(24, 8);
        let drift = |eta: f64| {
            let external = External::of_bodies(&tide, &bodies, &physics).expect("a field");
            let backend = Cpu::<f64>::new(&bodies, physics).in_fields(external);
            let pace = Pace::Adaptive {
                eta,
                longest: 0.125,
                end: f64::INFINITY,
                steps: TimeSteps::Blocks,
            };
            let run = Simulation::new(
                Box::new(backend),
                bodies.clone(),
                physics,
                Integrator::Hermite4,
                pace,
                0.0,
            );
            let mut run = run.expect("a run");
            let start = run.energy().expect("an energy");
            run.run_until(1.0).expect("a run");
            (run.energy().expect("an energy").total() - start.total()).abs()
        };
        let [coarse, fine] = [0.04, 0.0025].map(drift);
        assert!(fine <= coarse / 100.0, "{coarse:e} {fine:e}");
    }

    /// A loop of a user's over many simulations may leave no other thread.
    #[test]
    fn the_only_thread_of_a_pool_takes_a_span_and_is_watched() {
        let physics = Physics {
            law: ForceLaw::Gravity,
            g: 1.0,
            softening: 1e-4,
        };
        let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build();
        pool.expect("a thread").install(|| {
            let mut cpu = Cpu::<f64>::with(&cloud(256, 7), physics, Choices::default());
            Integrator::Hermite4
                .prepare(&mut cpu)
                .expect("a CPU does not refuse");
            let ended = cpu.advance_unless(1e-6, 0.01, &mut |_| ControlFlow::Continue(()));
            assert!(ended.expect("a CPU does not refuse").is_some());
            // Some 1e5 blocks, left at the first look.
            let mut looks = vec![];
            let left = cpu.advance_unless(1.0, 1e-8, &mut |share| {
                looks.push(share);
                ControlFlow::Break(())
            });
            assert!(left.expect("a CPU does not refuse").is_none());
            assert!(looks.len() == 1 && looks[0] > 0.0, "{looks:?}");
        });
    }

    /// In spans of one block, which cannot be left, of twice as many bodies until one takes long.
    #[test]
    fn a_watch_that_breaks_off_is_asked_once_and_heard() {
        let physics = Physics {
            law: ForceLaw::Gravity,
            g: 1.0,
            softening: 0.05,
        };
        for bodies in (10..).map(|k| cloud(1 << k, k)) {
            let mut cpu = Cpu::<f64>::with(&bodies, physics, Choices::default());
            Integrator::Hermite4
                .prepare(&mut cpu)
                .expect("a CPU does not refuse");
            let (span, eta) = (1e-9, 0.01);
            let first = cpu.advance(span, eta).expect("a CPU does not refuse");
            assert_eq!(first.blocks, 1);
            let (began, mut looks) = (Instant::now(), 0);
            let left = cpu.advance_unless(span, eta, &mut |_| {
                looks += 1;
                ControlFlow::Break(())
            });
            let left = left.expect("a CPU does not refuse").is_none();
            assert_eq!((left, looks), (looks > 0, looks.min(1)));
            if began.elapsed() > 4 * LOOK {
                break;
            }
        }
    }
}
