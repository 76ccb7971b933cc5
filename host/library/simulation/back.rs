//! Back in time with steps that vary: velocities are turned round, and the same steps lead back.

use std::ops::ControlFlow;

use super::changes::ChangeError;
use super::{Progress, Simulation};
use crate::fields::ExternalField;
use crate::integrator::Pace;

impl Simulation {
    /// Goes back to `time` with steps that follow the motion, and stands there exactly, unless `watch`, called several
    /// times a second, breaks off. Where the simulation is there or before, nothing is done.
    ///
    /// Velocities are turned round, for gravity does not know the direction of time. Steps are chosen anew on the way. So
    /// the bodies come to where they were to within the errors of the steps. A simulation with steps of a [fixed length](Pace::Fixed) goes back with a negative one.
    ///
    /// ```
    /// use allpairs::{Simulation, plummer};
    /// use std::ops::ControlFlow;
    ///
    /// let bodies = plummer(100, 1)?;
    /// let builder = Simulation::builder(bodies.clone()).softening(0.05);
    /// let mut cluster = builder.integrator(allpairs::Integrator::Hermite4).eta(0.01).build()?;
    /// cluster.run_until(0.25)?;
    /// cluster.run_back_until(0.0, |_| ControlFlow::Continue(()))?;
    /// assert!((cluster.bodies()?.x[7] - bodies.x[7]).abs() < 1e-4);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`ChangeError::NoWayBack`] for a force that knows the direction of time, or a field that changes with it; errors
    /// of the backend.
    ///
    /// # Panics
    /// If the time is not finite.
    pub fn run_back_until(
        &mut self,
        time: f64,
        mut watch: impl FnMut(Progress) -> ControlFlow<()>,
    ) -> Result<ControlFlow<()>, ChangeError> {
        let now = self.clock.time;
        if time >= now {
            return Ok(ControlFlow::Continue(()));
        }
        self.check_way_back()?;
        // To turn round brings nothing, though momenta that a field changes meanwhile are booked.
        let brought = self.brought;
        self.reverse()?;
        let turned = |of: f64| now - (of - now);
        let end = turned(time);
        let told = self.run_until_with(end, |progress| {
            watch(Progress {
                time: turned(progress.time),
                ..progress
            })
        });
        let reached = self.clock.time;
        self.clock.time = match reached == end {
            true => time,
            false => turned(reached),
        };
        self.reverse()?;
        self.brought = brought;
        Ok(told?)
    }

    fn check_way_back(&self) -> Result<(), ChangeError> {
        let external = self.backend.external();
        let feels_velocities = external
            .is_some_and(|external| external.fields().iter().any(ExternalField::needs_velocity));
        let why = match self.pace {
            Pace::Fixed(_) => Some("steps of a fixed length lead back if they are negative"),
            _ if self.physics.damping() != 0.0 => Some("drag knows the direction of time"),
            _ if self.changes_with_time() => Some("a field changes with time"),
            _ if feels_velocities => Some("a field depends on velocities"),
            _ if self.encounters.is_some() => Some("encounters are found forward in time alone"),
            _ => None,
        };
        why.map_or(Ok(()), |why| Err(ChangeError::NoWayBack(why)))
    }

    /// Turns all velocities round.
    fn reverse(&mut self) -> Result<(), ChangeError> {
        let n = self.bodies.len();
        self.backend.download(&mut self.bodies)?;
        let mut changed = self.unchanged();
        for i in 0..n {
            let velocity = self.bodies.body(i).velocity;
            changed.set_velocity(i, velocity.map(|v| -v))?;
        }
        self.change(changed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Integrator;
    use crate::bodies::Bodies;
    use crate::diagnostics::Brought;
    use crate::encounters::Encounters;
    use crate::initial_conditions::plummer;
    use crate::selection::DeviceChoice::{self, Cpu, Emulator};
    use crate::simulation::SimulationBuilder;

    fn hermite(bodies: Bodies) -> SimulationBuilder {
        Simulation::builder(bodies)
            .softening(0.0)
            .integrator(Integrator::Hermite4)
            .eta(0.002)
            .dt(1.0 / 64.0)
            .groups(false)
    }

    type Kind = (
        &'static str,
        fn(Bodies) -> SimulationBuilder,
        DeviceChoice,
        f64,
    );

    #[test]
    fn the_way_back_leads_to_the_beginning() {
        let kinds: [Kind; 7] = [
            ("shared", hermite, Cpu, 1e-7),
            ("blocks", |b| hermite(b).block_steps(), Cpu, 1e-7),
            (
                "sixth order",
                |b| {
                    hermite(b)
                        .integrator(Integrator::Hermite6)
                        .eta(0.1)
                        .block_steps()
                },
                Cpu,
                1e-7,
            ),
            (
                "groups",
                |b| hermite(b).block_steps().groups(true),
                Cpu,
                1e-6,
            ),
            (
                "groups at sixth order",
                |b| {
                    let sixth = hermite(b).integrator(Integrator::Hermite6).eta(0.1);
                    sixth.block_steps().groups(true)
                },
                Cpu,
                1e-6,
            ),
            (
                "a field",
                |b| hermite(b).block_steps().field(ExternalField::nfw(3.0, 2.0)),
                Cpu,
                1e-7,
            ),
            ("a device", |b| hermite(b).block_steps(), Emulator, 1e-5),
        ];
        for (name, build, device, bound) in kinds {
            let bodies = plummer(24, 5).expect("in range");
            let mut simulation = build(bodies.clone()).device(device).build().expect(name);
            let before = simulation.conserved().expect("an energy");
            simulation.run_until(0.1).expect(name);
            let there = simulation.bodies().expect("bodies").clone();
            let mut times = vec![];
            let told = simulation.run_back_until(0.0, |progress| {
                times.push(progress.time);
                ControlFlow::Continue(())
            });
            assert!(told.expect(name).is_continue(), "{name}");
            assert!(
                times.iter().all(|time| (0.0..0.1).contains(time)),
                "{name}: {times:?}"
            );
            assert_eq!(simulation.time(), 0.0, "{name}");
            let now = simulation.bodies().expect("bodies").clone();
            let differ = |one: &Bodies, other: &Bodies| {
                let columns = [(&one.x, &other.x), (&one.y, &other.y), (&one.vx, &other.vx)];
                let pairs = columns.into_iter().flat_map(|(a, b)| a.iter().zip(b));
                pairs.map(|(a, b)| (a - b).abs()).fold(0.0, f64::max)
            };
            let error = differ(&now, &bodies);
            assert!(error < bound, "{name}: {error:e}");
            assert!(differ(&now, &there) > 1e-2, "{name}");
            // Nothing is booked for turning round twice.
            let after = simulation.conserved().expect("an energy");
            let drift = after.drift_since(&before).energy;
            assert!(drift.abs() < bound, "{name}: {drift:e}");
            assert_eq!(simulation.brought(), Brought::default(), "{name}");
            simulation.run_until(0.05).expect(name);
            assert_eq!(simulation.time(), 0.05, "{name}");
        }
    }

    #[test]
    fn a_run_that_is_broken_off_stands_between() {
        let builder = hermite(plummer(24, 5).expect("in range"))
            .block_steps()
            .device(Cpu);
        let mut simulation = builder.build().expect("sound");
        simulation.run_until(0.5).expect("steps");
        let told = simulation.run_back_until(0.0, |_| ControlFlow::Break(()));
        assert!(told.expect("steps").is_break());
        let time = simulation.time();
        assert!(0.0 < time && time < 0.5, "{time}");
        let _ = simulation
            .run_back_until(0.0, |_| ControlFlow::Continue(()))
            .expect("steps");
        assert_eq!(simulation.time(), 0.0);
    }

    #[test]
    fn what_knows_the_direction_of_time_is_refused() {
        let bodies = || plummer(24, 5).expect("in range");
        let builders = [
            Simulation::builder(bodies()).softening(0.1).dt(0.01),
            hermite(bodies()).field(ExternalField::tide(0.1, 0.1, 0.1)),
            hermite(bodies()).encounters(Encounters {
                escape: Some((50.0, crate::encounters::OnEscape::Log)),
                ..Encounters::none()
            }),
        ];
        for builder in builders {
            let mut simulation = builder.device(Cpu).build().expect("sound");
            simulation.run_until(0.02).expect("steps");
            let before = simulation.bodies().expect("bodies").clone();
            let refused = simulation.run_back_until(0.0, |_| ControlFlow::Continue(()));
            assert!(
                matches!(refused, Err(ChangeError::NoWayBack(_))),
                "{refused:?}"
            );
            assert!(*simulation.bodies().expect("bodies") == before);
        }
    }
}
