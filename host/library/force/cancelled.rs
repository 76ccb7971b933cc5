//! Steps of bodies on which the pulls of all others cancel.
//!
//! In the middle of a symmetric system, the acceleration of a body and its derivatives are what rounding leaves of pulls.
//! Rounding changes as a whole from step to step. A criterion of steps takes it for a force that changes within a step, and
//! asks for shorter steps without end. Where the acceleration alone is zero, first steps are zero too. Such a body takes
//! steps of the time in which the pulls themselves change.

use super::host_state::HostState;
use crate::physics::Physics;
use crate::vectors::{difference, dot};

/// Acceleration, in the sum of the lengths of all pulls, below which pulls cancel. In f32 they are rounded by a tenth of it.
const CANCELLED: f64 = 1e-6;

/// The part of a step below which the next one is looked at: rounding asks for about √η of a step. Where it is not all of an
/// acceleration yet, for somewhat more.
const SUDDEN: f64 = 0.25;

/// The part of the longest step below which a first step is looked at.
const SHORT: f64 = 1.0 / (1 << 20) as f64;

/// First step in the time in which pulls change, which knows nothing of accelerations: as of
/// [`first_step`](gpu_kernels::hermite6::first_step).
const FIRST: f64 = 0.05;

/// Position and velocity.
type Phase = [[f64; 3]; 2];

/// A body for which a step is wanted.
#[derive(Clone, Copy)]
pub(super) struct Pulled {
    pub(super) body: usize,
    pub(super) acceleration: [f64; 3],
    pub(super) eta: f64,
}

impl Pulled {
    /// Returns whether pulls may cancel that together are no longer than this.
    pub(super) fn may_cancel(self, most: f64) -> bool {
        let acceleration = dot(self.acceleration, self.acceleration).sqrt();
        let is_left = acceleration >= CANCELLED * most;
        !is_left // as where one of them is no number
    }

    /// The step that is allowed after one of `dt`, or where pulls cancel, the step by the time in which they change. Of steps
    /// that are not much shorter than the last, only one is looked at that is shorter than `shortest`.
    pub(super) fn next_step(
        self,
        allowed: f64,
        [dt, shortest]: [f64; 2],
        others: &impl Others,
    ) -> f64 {
        match is_sudden(allowed, [dt, shortest]) {
            true => allowed.max(self.step_of_pulls(others)),
            false => allowed,
        }
    }

    /// The [step](Self::next_step) with which the body begins a run, in a span.
    pub(super) fn first_step(self, allowed: f64, span: f64, others: &impl Others) -> f64 {
        match allowed < SHORT * span {
            true => allowed.max(FIRST * self.step_of_pulls(others)),
            false => allowed,
        }
    }

    /// `√η τ` with the time τ in which pulls change, if they cancel; 0 otherwise. `τ⁻⁴` is the mean of `(v²/d² + G(m_i + m_j)/d³)²`
    /// over all pulls, by their lengths.
    fn step_of_pulls(self, others: &impl Others) -> f64 {
        let Self {
            body,
            acceleration,
            eta,
        } = self;
        let physics = others.physics();
        let (coupling, repulsion) = (physics.coupling().abs(), physics.repulsion().abs());
        let ([x, v], mass) = (others.phase(body), others.mass(body));
        let (mut all, mut changes) = (0.0, 0.0);
        for other in (0..others.len()).filter(|&other| other != body) {
            let weight = physics.weight(others.mass(other)).abs();
            if weight == 0.0 {
                continue;
            }
            let phase = others.phase(other);
            let (r, u) = (difference(phase[0], x), difference(phase[1], v));
            let square = dot(r, r);
            let d2 = square + physics.softening * physics.softening;
            // By a unit of mass, at a unit of distance.
            let strength = (coupling + repulsion / d2) / (d2 * d2.sqrt());
            let pull = weight * strength * square.sqrt();
            let change = dot(u, u) / d2 + (weight + physics.weight(mass).abs()) * strength;
            all += pull;
            changes += pull * (change * change);
        }
        let cancels = dot(acceleration, acceleration).sqrt() < CANCELLED * all;
        match cancels && changes > 0.0 && changes.is_finite() {
            true => eta.sqrt() / (changes / all).sqrt().sqrt(),
            false => 0.0,
        }
    }
}

/// Returns whether [`Pulled::next_step`] looks at the pulls.
pub(super) fn is_sudden(allowed: f64, [dt, shortest]: [f64; 2]) -> bool {
    allowed < SUDDEN * dt || allowed < dt.min(shortest)
}

/// Bodies at the time at which a body's step ends.
pub(super) trait Others {
    fn physics(&self) -> &Physics;

    fn len(&self) -> usize;

    fn mass(&self, body: usize) -> f64;

    fn phase(&self, body: usize) -> Phase;
}

/// Bodies that the state has predicted.
impl Others for (&Physics, &HostState) {
    fn physics(&self) -> &Physics {
        self.0
    }

    fn len(&self) -> usize {
        self.1.bodies.len()
    }

    fn mass(&self, body: usize) -> f64 {
        self.1.bodies.mass[body]
    }

    fn phase(&self, body: usize) -> Phase {
        self.1.phase(body).into()
    }
}

/// Lets no body shorten steps that all share because its pulls cancel: the shortest of these steps, and as long as one
/// is longer then, the next. A body's acceleration is that at the end of the step of `dt`.
pub(super) fn correct_shared(
    steps: &mut [f64],
    (dt, eta): (f64, f64),
    acceleration: impl Fn(usize) -> [f64; 3],
    others: &impl Others,
) {
    loop {
        let finite = steps
            .iter()
            .copied()
            .enumerate()
            .filter(|(_, step)| !step.is_nan());
        let Some((body, step)) = finite.min_by(|one, other| one.1.total_cmp(&other.1)) else {
            return;
        };
        let pulled = Pulled {
            body,
            acceleration: acceleration(body),
            eta,
        };
        let corrected = pulled.next_step(step, [dt; 2], others);
        if corrected <= step {
            return;
        }
        steps[body] = corrected;
    }
}

#[cfg(test)]
mod tests {
    use std::f64::consts::TAU;

    use super::*;
    use crate::bodies::{Bodies, Body};
    use crate::force::cpu::Cpu;
    use crate::force::cpu::samples::body;
    use crate::force::groups;
    use crate::integrator::{Integrator, Pace, TimeSteps};
    use crate::physics::ForceLaw;
    use crate::simulation::Simulation;

    const GRAVITY: Physics = Physics {
        law: ForceLaw::Gravity,
        g: 1.0,
        softening: 0.0,
    };

    /// A star, and bodies around it, all with this angular velocity. The first is moved by a part of its distance.
    fn ring(star: f64, (count, mass): (usize, f64), velocity: f64, moved: f64) -> Bodies {
        let around = (0..count).map(|k| {
            let (sin, cos) = (TAU * k as f64 / count as f64).sin_cos();
            let far = if k == 0 { 1.0 + moved } else { 1.0 };
            Body {
                velocity: [-velocity * sin, velocity * cos, 0.0],
                ..body([far * cos, far * sin, 0.0], mass)
            }
        });
        let mut bodies = Bodies::with_capacity(count + 1);
        [body([0.0; 3], star)]
            .into_iter()
            .chain(around)
            .for_each(|body| bodies.push(body));
        bodies
    }

    /// Shared steps, block steps, and block steps with groups.
    #[derive(Clone, Copy, Debug, PartialEq)]
    enum Steps {
        Shared,
        Blocks,
        WithGroups,
    }

    /// Relative change of the energy, and the steps that were taken.
    fn drift(bodies: &Bodies, integrator: Integrator, eta: f64, steps: Steps) -> (f64, f64) {
        let mut backend = Cpu::<f64>::new(bodies, GRAVITY);
        if steps == Steps::WithGroups {
            groups::begin(&mut backend, None);
        }
        let pace = Pace::Adaptive {
            eta,
            longest: 0.125,
            end: 7.0,
            steps: match steps {
                Steps::Shared => TimeSteps::Shared,
                Steps::Blocks | Steps::WithGroups => TimeSteps::Blocks,
            },
        };
        let backend = Box::new(backend);
        let run = Simulation::new(backend, bodies.clone(), GRAVITY, integrator, pace, 0.0);
        let mut run = run.expect("a run");
        let start = run.energy().expect("an energy").total();
        run.run_until(7.0)
            .unwrap_or_else(|error| panic!("{integrator:?} {steps:?}: {error}"));
        let end = run.energy().expect("an energy").total();
        let counts = run.block_counts();
        let taken = match steps {
            Steps::Shared => run.clock().steps * bodies.len() as u64,
            Steps::Blocks | Steps::WithGroups => counts.steps,
        };
        ((end / start - 1.0).abs(), taken as f64)
    }

    /// A body in the middle of others takes steps like theirs, and energies change as little as where one of the others
    /// stands elsewhere.
    #[test]
    fn a_body_in_the_middle_takes_steps_like_the_others() {
        for (star, around, velocity) in [
            (1.0, (2, 1e-3), 1.0),
            (1.0, (4, 1e-2), 1.0),
            (1.0, (30, 1e-4), 1.0),
            (1e-3, (2, 1.0), 0.5),
            // The middle has most of the mass, and all begin at rest but for a little.
            (1.0, (2, 0.5), 1.3),
        ] {
            let [whole, moved] = [0.0, 0.01].map(|moved| ring(star, around, velocity, moved));
            for steps in [Steps::Shared, Steps::Blocks, Steps::WithGroups] {
                for (integrator, eta) in [
                    (Integrator::Hermite4, 0.02),
                    (Integrator::Hermite4, 1e-4),
                    (Integrator::Hermite6, 0.1),
                ] {
                    let (own, taken) = drift(&whole, integrator, eta, steps);
                    let (others, usual) = drift(&moved, integrator, eta, steps);
                    println!(
                        "{star} {around:?} {integrator:?} {eta} {steps:?}: {own:e} {others:e}, {taken} {usual} steps"
                    );
                    assert!(own <= 10.0 * others.max(1e-9), "{own:e} {others:e}");
                    assert!(taken <= 2.0 * usual, "{taken} {usual}");
                }
            }
        }
    }

    /// At rest, and where only the acceleration is zero.
    #[test]
    fn first_steps_follow_the_pulls() {
        let mut bodies = ring(1.0, (2, 0.5), 0.0, 0.0);
        for velocity in [0.0, 0.5] {
            // The other two move alike, so that the jerk of the middle one is not zero.
            bodies.vy = vec![0.0, velocity, velocity];
            for steps in [Steps::Blocks, Steps::WithGroups] {
                let mut backend = Cpu::<f64>::new(&bodies, GRAVITY);
                if steps == Steps::WithGroups {
                    groups::begin(&mut backend, None);
                }
                Integrator::Hermite4.prepare(&mut backend).expect("a CPU");
                let blocks = crate::backend::Backend::block_steps(&mut backend).expect("a CPU");
                blocks.advance(0.125, 0.01).expect("no short steps");
                let steps = blocks.own_steps().expect("a CPU");
                assert!(steps.iter().all(|&step| step > 1e-3), "{steps:?}");
            }
        }
    }

    /// Pulls that do not cancel leave a step as short as it is.
    #[test]
    fn other_steps_stay() {
        let mut backend = Cpu::<f64>::new(&ring(1.0, (2, 1e-3), 1.0, 1e-3), GRAVITY);
        Integrator::Hermite4.prepare(&mut backend).expect("a CPU");
        let state = crate::force::in_memory::InMemory::state(&backend);
        let others = (&GRAVITY, state);
        let pulled = Pulled {
            body: 0,
            acceleration: state.accelerations[0],
            eta: 0.01,
        };
        assert_eq!(pulled.next_step(1e-9, [0.1, 1e-3], &others), 1e-9);
        assert_eq!(pulled.first_step(1e-9, 0.1, &others), 1e-9);
        // With the acceleration of rounding, by the time √2/2 in which both pulls change.
        let cancelled = Pulled {
            acceleration: [1e-17; 3],
            ..pulled
        };
        let step = cancelled.next_step(1e-9, [0.1, 1e-3], &others);
        assert!((step / (0.1 / 2.0_f64.sqrt()) - 1.0).abs() < 0.01, "{step}");
        assert_eq!(cancelled.next_step(0.05, [0.1, 1e-3], &others), 0.05);
        assert_eq!(cancelled.next_step(0.2, [0.1, 1e-3], &others), 0.2);
    }
}
