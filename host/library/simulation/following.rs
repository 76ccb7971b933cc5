//! Pairs that form while a device takes the steps of all bodies: the simulation follows them apart from then on, until there are
//! none.

use super::start::remade_on;
use super::step::reach;
use super::{Remake, Simulation};
use crate::backend::{ForceError, SavedState};
use crate::binaries::Census;
use crate::force::groups::pairs_at_start;
use crate::groups::{a_pair_holds_much, some_are_heavy};
use crate::integrator::{Integrator, Pace, TimeSteps};
use crate::run::Run;

/// Shortest step, in longest ones by the number of bodies, below which the simulation looks for pairs. By default it is a
/// sixteenth of the time of an encounter that needs no regularisation, and a hard pair has shorter steps. Steps of sixth order
/// lose less in pairs before than groups lose in encounters.
const SHORT: f64 = 0.25;

/// Like [`SHORT`], of fourth order: a pair that is hardly hard loses energy.
const SHORT_OF_FOURTH: f64 = 1.0;

/// Longest steps between two looks whether pairs that are followed apart have gone. A look takes as long as some blocks.
const LOOKS: u64 = 8;

/// Times in which a simulation follows pairs apart that began without them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Followed {
    /// Time from which on it followed pairs first.
    pub first: f64,
    /// Number of times that it began to follow pairs.
    pub times: u64,
    /// Time from which on it follows pairs now; none where there are none.
    pub since: Option<f64>,
    /// Time in which it followed pairs, before it began to do so last.
    pub before: f64,
}

impl Followed {
    /// Times after a change, at this time: to steps that follow pairs, and back.
    fn changed(of: Option<Self>, time: f64) -> Self {
        let of = of.unwrap_or(Self {
            first: time,
            times: 0,
            since: None,
            before: 0.0,
        });
        match of.since {
            None => Self {
                times: of.times + 1,
                since: Some(time),
                ..of
            },
            Some(since) => Self {
                since: None,
                before: of.before + (time - since),
                ..of
            },
        }
    }

    /// Time in which it followed pairs until now.
    pub fn until(&self, time: f64) -> f64 {
        self.before + self.since.map_or(0.0, |since| time - since)
    }
}

/// Means to follow pairs apart while there are hard ones.
pub(super) enum Follow {
    /// They are followed all the time, or never.
    Always,
    /// Pairs will be followed by these steps.
    Later(OtherSteps),
    /// Pairs are followed. These steps do not follow them.
    Now(OtherSteps),
}

/// Steps that a simulation changes to, and backends that take them.
pub(super) struct OtherSteps {
    remake: Remake,
    integrator: Integrator,
    /// None where bodies share a step.
    eta: Option<f64>,
}

impl Simulation {
    /// Follows pairs apart while there are hard ones, where this run says so.
    #[must_use]
    pub(super) fn following(self, run: &Run) -> Self {
        if run.spec.groups.is_some() {
            return self;
        }
        let are_followed = self.followed_from().is_some();
        let run = match are_followed {
            true => run.clone(),
            false => run.followed(self.bodies.len()),
        };
        let make = remade_on(run.machine(), run.variant, run.physics);
        let other = OtherSteps {
            remake: Remake {
                make: Box::new(make),
                has_frames: true,
            },
            integrator: run.integrator,
            eta: run.spec.eta,
        };
        let follow = match are_followed {
            true => Follow::Now(other),
            false => Follow::Later(other),
        };
        Self { follow, ..self }
    }

    /// Changes to other steps, and returns the steps of before. The backend is still theirs.
    fn change_to(&mut self, other: OtherSteps) -> Option<OtherSteps> {
        let remake = self.remake.replace(other.remake);
        let integrator = std::mem::replace(&mut self.integrator, other.integrator);
        let mut before = None;
        if let (Pace::Adaptive { eta, .. }, Some(other)) = (&mut self.pace, other.eta) {
            before = Some(std::mem::replace(eta, other));
        }
        remake.map(|remake| OtherSteps {
            remake,
            integrator,
            eta: before,
        })
    }

    /// Has the steps that follow pairs apart, if it had the others, or these. The backend is another one already.
    fn swap_steps(&mut self) {
        self.follow = match std::mem::replace(&mut self.follow, Follow::Always) {
            Follow::Always => Follow::Always,
            Follow::Later(other) => (self.change_to(other)).map_or(Follow::Always, Follow::Now),
            Follow::Now(other) => (self.change_to(other)).map_or(Follow::Always, Follow::Later),
        };
        self.keep_paths();
    }

    /// Time from which on pairs are followed apart, if there were none at the beginning and there are hard ones now.
    pub fn followed_from(&self) -> Option<f64> {
        self.clock.followed?.since
    }

    /// Goes on with pairs followed apart, if hard ones have formed, and without, if there are none any more. It depends on the
    /// state and the number of steps alone, so that a resumed simulation does the same.
    pub(super) fn look_at_pairs(&mut self) -> Result<(), ForceError> {
        let Pace::Adaptive {
            longest,
            steps: TimeSteps::Blocks,
            ..
        } = self.pace
        else {
            return Ok(());
        };
        let are_followed = match self.follow {
            Follow::Later(_) => false,
            Follow::Now(_) if self.clock.steps.is_multiple_of(LOOKS) => true,
            Follow::Always | Follow::Now(_) => return Ok(()),
        };
        self.backend.download(&mut self.bodies)?;
        if self.bodies.mass.contains(&0.0) {
            return Ok(());
        }
        let changes = match are_followed {
            true => !self.has_pairs(),
            false => self.has_hard_pairs(longest)?,
        };
        match changes {
            true => self.change_steps(),
            false => Ok(()),
        }
    }

    /// Goes on with pairs followed apart, from the last look for them, if it ends at this error: two bodies came so near
    /// each other that the device has no digits for their forces, and will be a pair. Other errors are returned.
    pub(super) fn follow_after(&mut self, why: ForceError) -> Result<(), ForceError> {
        let is_near = matches!(
            why,
            ForceError::StepTooShort { .. } | ForceError::NotFinite { .. }
        );
        let may_follow = self.encounters.is_none() && !self.bodies.mass.contains(&0.0);
        match is_near && may_follow && matches!(self.follow, Follow::Later(_)) {
            true => self.change_steps(),
            false => Err(why),
        }
    }

    /// Goes on with the other steps, from the bodies as they are here.
    fn change_steps(&mut self) -> Result<(), ForceError> {
        let (Follow::Later(other) | Follow::Now(other)) = &mut self.follow else {
            return Ok(());
        };
        let time = self.clock.time;
        let mut backend = (other.remake.make)(&self.bodies, None)?;
        reach(&mut *backend, time, time)?;
        backend.set_time(time);
        other.integrator.prepare(&mut *backend)?;
        self.backend = backend;
        self.swap_steps();
        self.clock.followed = Some(Followed::changed(self.clock.followed, time));
        Ok(())
    }

    /// Returns whether there are pairs that groups would begin with, or that hold much of the energy.
    fn has_pairs(&self) -> bool {
        let (bodies, physics) = (&self.bodies, &self.physics);
        pairs_at_start(bodies, physics) > 0 || a_pair_holds_much(bodies, physics)
    }

    /// Returns whether there are pairs that block steps without groups would take long for, or lose energy in.
    fn has_hard_pairs(&mut self, longest: f64) -> Result<bool, ForceError> {
        let steps = self.own_steps()?;
        let shortest = steps.into_iter().fold(f64::INFINITY, f64::min);
        let short = match self.integrator.order() {
            6.. => SHORT,
            _ => SHORT_OF_FOURTH,
        };
        let are_short = shortest < short * longest / self.bodies.len() as f64;
        if !are_short && !some_are_heavy(&self.bodies.mass) {
            return Ok(false);
        }
        let (bodies, physics) = (&self.bodies, &self.physics);
        // Bodies that pass each other have short steps too, for a while.
        let are_hard = are_short
            && pairs_at_start(bodies, physics) > 0
            && Census::of(bodies, physics).hard() > 0;
        Ok(are_hard || a_pair_holds_much(bodies, physics))
    }

    /// Has steps of the kind of a state, before it goes back to the state.
    pub(super) fn follow_as_in(&mut self, state: &SavedState) -> Result<(), ForceError> {
        let other = match &mut self.follow {
            Follow::Later(other) if !state.groups.is_empty() => other,
            Follow::Now(other) if state.groups.is_empty() => other,
            Follow::Always | Follow::Later(_) | Follow::Now(_) => return Ok(()),
        };
        self.backend = (other.remake.make)(&self.bodies, Some(state.frame))?;
        self.swap_steps();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use super::*;
    use crate::backend::Neighbours;
    use crate::bodies::{Bodies, Body, BodyKind};
    use crate::initial_conditions::plummer;
    use crate::integrator::Integrator;
    use crate::selection::DeviceChoice;
    use crate::simulation::SimulationBuilder;

    fn stars(bodies: Bodies) -> SimulationBuilder {
        Simulation::builder(bodies)
            .softening(0.0)
            .integrator(Integrator::Hermite6)
            .block_steps()
            .eta(0.36)
            .dt(0.0625)
            .device(DeviceChoice::Emulator)
    }

    /// Two bodies on a circle, with some ten times the energy of a star.
    fn hard_pair() -> Bodies {
        pair(0.05, 0.004, 1.0)
    }

    /// Two bodies of this mass each, at a distance, with a multiple of the velocity on a circle.
    fn pair(mass: f64, apart: f64, times: f64) -> Bodies {
        let speed = times * (mass / (2.0 * apart)).sqrt();
        let body = |id: u64, side: f64| Body {
            position: [0.5 + 0.5 * side * apart, 0.3, 0.0],
            velocity: [0.0, side * speed, 0.0],
            mass,
            id,
            kind: BodyKind::Star,
        };
        [body(100, -1.0), body(101, 1.0)].into_iter().collect()
    }

    fn phases(simulation: &mut Simulation) -> Bodies {
        simulation.bodies().expect("there").clone()
    }

    /// With groups or without, if somebody asks for one of them.
    fn with_groups(builder: SimulationBuilder, groups: Option<bool>) -> SimulationBuilder {
        match groups {
            None => builder,
            Some(groups) => builder.groups(groups),
        }
    }

    /// Some of the stars in a neighbour scheme.
    fn with_neighbours(bodies: Bodies) -> SimulationBuilder {
        stars(bodies)
            .integrator(Integrator::Hermite4)
            .eta(0.02)
            .neighbours(Neighbours::Number(NonZeroU32::new(6).expect("some")))
    }

    /// The device takes the steps of all, until a hard pair is there. Whoever goes back before that time, or resumes
    /// after it, comes to the same bits.
    #[test]
    fn a_hard_pair_that_comes_later_is_followed() {
        let run = comes_later(stars, 2e-6);
        assert_eq!(run.followed(18).integrator, Integrator::Hermite6);
    }

    /// The neighbour scheme ends there.
    #[test]
    fn a_hard_pair_that_comes_later_ends_the_neighbour_scheme() {
        let followed = comes_later(with_neighbours, 2e-5).followed(2_000);
        assert_eq!(followed.spec.neighbours, None);
        assert_eq!(
            (followed.integrator, followed.spec.eta),
            (Integrator::Hermite6, Some(0.36))
        );
    }

    /// Once the hard pair has gone, the device takes the steps of all again, until another one comes. Whoever goes back or resumes
    /// comes to the same bits.
    #[test]
    fn pairs_that_have_gone_are_not_followed() {
        let mut simulation = stars(plummer(16, 3).expect("in range"))
            .build()
            .expect("sound");
        simulation.run_until(0.0625).expect("steps are taken");
        simulation.add(&hard_pair(), &[]).expect("there is room");
        simulation.run_until(0.125).expect("steps are taken");
        assert_eq!(simulation.followed_from(), Some(0.0625));
        simulation.remove(&[100, 101]).expect("it is there");
        simulation.run_until(0.25).expect("steps are taken");
        assert_eq!(simulation.followed_from(), Some(0.0625));
        let before = simulation.energy().expect("computed").total();
        let good = simulation.good_state().expect("finite");
        let (clock, state) = simulation.save().expect("saved");
        let again = stars(phases(&mut simulation)).resume(clock, &state);
        let mut again = again.expect("sound");

        let without = |simulation: &mut Simulation| {
            while simulation.followed_from().is_some() {
                let end = simulation.time() + 0.0625;
                assert!(end < 8.0, "pairs are always there");
                simulation.run_until(end).expect("steps are taken");
            }
            (simulation.clock(), phases(simulation))
        };
        let first = without(&mut simulation);
        simulation.go_back_to(&good).expect("it was there");
        assert_eq!(simulation.followed_from(), Some(0.0625));
        assert_eq!(without(&mut simulation), first);
        assert_eq!(without(&mut again), first);
        assert!(simulation.save().expect("saved").1.groups.is_empty());
        let after = simulation.energy().expect("computed").total();
        assert!((after / before - 1.0).abs() < 2e-6, "{before} {after}");

        let (clock, _) = first;
        let Some(Followed {
            before, times: 1, ..
        }) = clock.followed
        else {
            panic!("{clock:?}")
        };
        // It looked before the last step.
        assert_eq!(before, clock.time - 0.0625 - 0.0625);
        assert_eq!(clock.steps % LOOKS, 1);
        simulation.add(&hard_pair(), &[]).expect("there is room");
        simulation
            .run_until(clock.time + 0.0625)
            .expect("steps are taken");
        let followed = simulation.clock().followed.expect("again");
        assert_eq!((followed.times, followed.since), (2, Some(clock.time)));
        assert_eq!(followed.until(simulation.time()), before + 0.0625);
    }

    fn comes_later(stars: fn(Bodies) -> SimulationBuilder, most: f64) -> Run {
        let begin = stars(plummer(16, 3).expect("in range"));
        let run = begin.resolve().expect("sound");
        assert_eq!(run.spec.groups, None);
        let mut simulation = begin.build().expect("sound");
        simulation.run_until(0.25).expect("steps are taken");
        assert_eq!(simulation.followed_from(), None);
        assert!(simulation.save().expect("saved").1.groups.is_empty());

        simulation.add(&hard_pair(), &[]).expect("there is room");
        let before = simulation.energy().expect("computed").total();
        let good = simulation.good_state().expect("finite");
        let mut ends = vec![];
        for _ in 0..2 {
            simulation.run_until(0.3125).expect("steps are taken");
            assert_eq!(simulation.followed_from(), Some(0.25));
            let (_, state) = simulation.save().expect("saved");
            assert!(!state.groups.is_empty());
            ends.push(phases(&mut simulation));
            if ends.len() < 2 {
                simulation.go_back_to(&good).expect("it was there");
                assert_eq!(simulation.followed_from(), None);
            }
        }
        assert_eq!(ends[0], ends[1]);
        let after = simulation.energy().expect("computed").total();
        assert!((after / before - 1.0).abs() < most, "{before} {after}");

        let (clock, state) = simulation.save().expect("saved");
        let again = stars(phases(&mut simulation)).resume(clock, &state);
        let mut again = again.expect("sound");
        for simulation in [&mut simulation, &mut again] {
            simulation.run_until(0.375).expect("steps are taken");
        }
        assert_eq!(phases(&mut simulation), phases(&mut again));
        run
    }

    /// Two bodies leave each other that are so near that the device has no digits for their forces.
    #[test]
    fn bodies_that_are_too_near_for_the_device_are_followed() {
        let single = plummer(16, 3).expect("in range");
        let mut both = pair(1e-9, 1e-12, 0.0);
        (both.vx[0], both.vx[1]) = (-50.0, 50.0);
        for (groups, from) in [(None, Some(0.0625)), (Some(false), None)] {
            let builder = with_groups(stars(single.clone()), groups);
            let mut simulation = builder.build().expect("sound");
            simulation.run_until(0.0625).expect("steps are taken");
            simulation.add(&both, &[]).expect("there is room");
            let taken = simulation.run_until(0.125);
            assert_eq!(simulation.followed_from(), from);
            assert_eq!(taken.is_ok(), from.is_some(), "{taken:?}");
        }
    }

    /// A wide pair of heavy bodies is followed though its steps are not short, and a light one is not.
    #[test]
    fn a_pair_that_holds_much_of_the_energy_is_followed() {
        for (mass, times, from) in [
            (0.25, 1.0, Some(0.0625)),
            (0.25, 2.0, None),
            (0.01, 1.0, None),
        ] {
            let single = plummer(64, 3).expect("in range");
            let pair = pair(mass, 0.2, times);
            let mut simulation = stars(single.clone()).build().expect("sound");
            simulation.run_until(0.0625).expect("steps are taken");
            simulation.add(&pair, &[]).expect("there is room");
            simulation.run_until(0.125).expect("steps are taken");
            assert_eq!(simulation.followed_from(), from, "{mass} {times}");

            let both: Bodies = single.iter().chain(pair.iter()).collect();
            let run = stars(both).resolve().expect("sound");
            assert_eq!(run.spec.groups, from.map(|_| true), "{mass} {times}");
        }
    }

    /// A heavy body takes a part of η while pairs may come.
    #[test]
    fn heavy_bodies_have_shorter_steps_before_pairs_come() {
        let mut bodies = plummer(64, 3).expect("in range");
        bodies.mass[0] = 20.0 / 64.0;
        let steps = [None, Some(false)].map(|groups| {
            let builder = with_groups(stars(bodies.clone()), groups);
            let mut simulation = builder.build().expect("sound");
            simulation.run_until(0.0625).expect("steps are taken");
            assert_eq!(simulation.followed_from(), None);
            simulation.own_steps().expect("computed")
        });
        let ratio = |i: usize| steps[0][i] / steps[1][i];
        let others = (1..64).map(ratio).sum::<f64>() / 63.0;
        assert!((others - 1.0).abs() < 0.1, "{others}");
        assert!((0.4..0.7).contains(&ratio(0)), "{}", ratio(0));
    }

    /// A device that must not follow pairs takes all steps itself.
    #[test]
    fn pairs_are_not_followed_where_that_is_switched_off() {
        let run = stars(plummer(16, 3).expect("in range")).groups(false);
        let mut simulation = run.build().expect("sound");
        simulation.add(&hard_pair(), &[]).expect("there is room");
        simulation.run_until(0.0625).expect("steps are taken");
        assert_eq!(simulation.followed_from(), None);
        assert!(simulation.save().expect("saved").1.groups.is_empty());
    }
}
