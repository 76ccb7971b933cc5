//! Hermite's scheme with a step for each body: block time steps.
//!
//! Steps are a span of time halved so many times over, so that bodies end their steps together in
//! blocks, and all of them at the end of the span. In between, a block is corrected with the forces
//! of all other bodies where Taylor's series predicts them (McMillan 1986; Makino 1991, PASJ 43,
//! 859).

use super::hermite::first_steps;
use super::host_state::Beginning;
use super::in_memory::InMemory;
use crate::backend::{BlockSteps, ForceError, Targets};

/// Number of times a span can be halved. Halves of this depth are whole numbers of ticks.
const DEEPEST: u32 = 40;
const SPAN: u64 = 1 << DEEPEST;

impl<B: InMemory> BlockSteps for B {
    fn advance(&mut self, span: f64, eta: f64) -> Result<u64, ForceError> {
        advance(self, span, eta)
    }
}

/// Advances all bodies by `span`, with steps that accuracy `eta` allows each of them; returns how
/// many times a body's force was computed. Accelerations and jerks must be those of the current
/// state, and are so again at the end.
fn advance(backend: &mut impl InMemory, span: f64, eta: f64) -> Result<u64, ForceError> {
    let n = backend.state().bodies.len();
    if backend.state().own_steps.is_empty() {
        backend.state_mut().own_steps = first_steps(backend, eta, span)?.1;
    }
    let state = backend.state_mut();
    state.begin();
    let levels = (0..n).map(|i| level(state.own_steps[i], span, i));
    let mut levels = levels.collect::<Result<Vec<u32>, ForceError>>()?;
    let mut begun = vec![0; n]; // in ticks of the span
    let time = |ticks: u64| span * (ticks as f64 / SPAN as f64);
    let (mut now, mut evaluations) = (0, 0);
    let mut block = vec![];
    while now < SPAN {
        let end = |i: usize| begun[i] + (SPAN >> levels[i]);
        now = (0..n).map(end).min().unwrap_or(SPAN);
        block.clear();
        block.extend((0..n).filter(|&i| end(i) == now));
        let state = backend.state_mut();
        for (i, &begun) in begun.iter().enumerate() {
            let [x, v] = state.beginnings[i].predicted(time(now - begun));
            state.set_phase(i, x, v);
        }
        let [accelerations, jerks] = backend.accelerations_and_jerks(Targets::Active(&block));
        evaluations += block.len() as u64;
        let state = backend.state_mut();
        for ((&i, a), j) in block.iter().zip(accelerations).zip(jerks) {
            let dt = time(SPAN >> levels[i]);
            let beginning = state.beginnings[i];
            let [x, v] = beginning.corrected(dt, a, j);
            let allowed = beginning.next_step(eta, dt, a, j);
            state.set_phase(i, x, v);
            state.beginnings[i] = Beginning { x, v, a, j };
            (state.accelerations[i], state.jerks[i]) = (a, j);
            state.own_steps[i] = allowed.min(2.0 * dt);
            begun[i] = now;
            let wanted = level(state.own_steps[i], span, i)?;
            // A longer step must begin where steps of its length begin.
            if wanted > levels[i] || now.is_multiple_of(SPAN >> wanted) {
                levels[i] = wanted;
            }
        }
    }
    Ok(evaluations)
}

/// Number of times a span must be halved to be no longer than the step that body `i` allows.
fn level(allowed: f64, span: f64, i: usize) -> Result<u32, ForceError> {
    let mut step = span.abs();
    for level in 0..=DEEPEST {
        if step <= allowed {
            return Ok(level);
        }
        step /= 2.0;
    }
    Err(ForceError::StepTooShort {
        body: i,
        allowed,
        shortest: span.abs() / SPAN as f64,
    })
}
