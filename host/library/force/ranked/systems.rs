//! Independent systems dealt out to ranks: each computes its own, and nothing is exchanged until somebody asks
//! for their bodies.

use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

use bytemuck::Pod;

use super::of_all;
use crate::backend::{Backend, ForceError, Operation, Pipeline, SavedState};
use crate::bodies::{Bodies, Body};
use crate::diagnostics::Energy;
use crate::frame::Frame;
use crate::ranks::Team;
use crate::timeline::Span;

/// Independent systems of equal size, of which this rank has its share. All ranks ask for bodies, states and
/// energies together, and get those of all.
pub(super) struct Dealt {
    team: Arc<Team>,
    /// Number of all systems.
    systems: usize,
    /// Number of all bodies.
    bodies: usize,
    /// Range of this rank's bodies.
    share: Range<usize>,
    /// This rank's bodies, as they were last seen.
    own: Bodies,
    /// Backend of this rank's systems; none where it has none.
    mine: Option<Box<dyn Backend>>,
    frame: Frame,
    /// True if the systems are on devices, to which they are copied and back.
    on_devices: bool,
    /// First failure of this rank: from then on its bodies are not to be had.
    failure: Option<String>,
}

impl Dealt {
    /// Takes this rank's share of `systems` that the bodies are; `backend` makes a backend of so many. Where
    /// one fails, all do.
    pub(super) fn new(
        team: &Arc<Team>,
        bodies: &Bodies,
        (systems, share): (usize, Range<usize>),
        (frame, on_devices): (Frame, bool),
        backend: impl FnOnce(&Bodies, u32) -> Result<Box<dyn Backend>, ForceError>,
    ) -> Result<Self, ForceError> {
        let each = bodies.len() / systems;
        let count = share.len() as u32; // of systems that are counted in u32
        let share = share.start * each..share.end * each;
        let own = bodies.part(share.clone());
        let mine = match count {
            0 => Ok(None),
            count => backend(&own, count).map(Some),
        };
        Ok(Self {
            mine: of_all(mine, team)?,
            team: Arc::clone(team),
            systems,
            bodies: bodies.len(),
            share,
            own,
            frame,
            on_devices,
            failure: None,
        })
    }

    /// Does something with this rank's systems. Others learn of a failure when bodies are asked for.
    fn each(
        &mut self,
        work: impl FnOnce(&mut dyn Backend) -> Result<(), ForceError>,
    ) -> Result<(), ForceError> {
        let Some(mine) = self.mine.as_deref_mut() else {
            return Ok(());
        };
        let done = work(mine);
        if let Err(why) = &done {
            self.failure.get_or_insert_with(|| why.to_string());
        }
        done
    }

    /// Answer of this rank about its systems and bodies, if it has any. Where one fails or has failed, all do.
    fn asked<T>(
        &mut self,
        ask: impl FnOnce(&mut dyn Backend, &mut Bodies) -> Result<T, ForceError>,
    ) -> Result<Option<T>, ForceError> {
        let mut said = None;
        if let (None, Some(mine)) = (&self.failure, self.mine.as_deref_mut()) {
            match ask(mine, &mut self.own) {
                Ok(answer) => said = Some(answer),
                Err(why) => self.failure = Some(why.to_string()),
            }
        }
        let rank = self.team.rank();
        let said = match self.failure.clone() {
            Some(why) => Err(ForceError::OfRank { rank, why }),
            None => Ok(said),
        };
        of_all(said, &self.team)
    }

    /// Answers of all ranks, one after another.
    fn gathered<T: Pod>(
        &mut self,
        ask: impl FnOnce(&mut dyn Backend, &mut Bodies) -> Result<Vec<T>, ForceError>,
    ) -> Result<Vec<T>, ForceError> {
        let said = self.asked(ask)?.unwrap_or_default();
        Ok(self.team.gather_ragged(&said).concat())
    }
}

impl Backend for Dealt {
    fn systems(&self) -> usize {
        self.systems
    }

    fn perform(&mut self, operation: Operation) -> Result<(), ForceError> {
        self.each(|mine| mine.perform(operation))
    }

    fn pipeline(&mut self) -> Option<&mut dyn Pipeline> {
        self.on_devices.then_some(self)
    }

    fn save(&mut self) -> Result<SavedState, ForceError> {
        let mine = self.asked(|mine, _| mine.save())?;
        if let Some(mine) = &mine {
            assert_eq!(mine.frame, self.frame, "in the same units");
        }
        Ok(SavedState::of(self.frame, |column| {
            let mine = mine.as_ref().map(|mine| mine.column(column));
            self.team.gather_ragged(mine.unwrap_or_default()).concat()
        }))
    }

    fn restore(&mut self, saved: &SavedState) -> Result<(), ForceError> {
        saved.fits(self.bodies, &self.frame, false)?;
        let part = saved.part(self.share.clone());
        self.each(|mine| mine.restore(&part))
    }

    fn download(&mut self, bodies: &mut Bodies) -> Result<(), ForceError> {
        let all = self.gathered(|mine, own| {
            mine.download(own)?;
            let state = |body: Body| [body.position, body.velocity];
            Ok(own.iter().map(state).collect())
        })?;
        for (i, [position, velocity]) in all.into_iter().enumerate() {
            [bodies.x[i], bodies.y[i], bodies.z[i]] = position;
            [bodies.vx[i], bodies.vy[i], bodies.vz[i]] = velocity;
        }
        Ok(())
    }

    fn accelerations(&mut self) -> Result<Vec<[f64; 3]>, ForceError> {
        self.gathered(|mine, _| mine.accelerations())
    }

    fn energies(&mut self) -> Result<Vec<Energy>, ForceError> {
        let energies = self.gathered(|mine, _| {
            let energies = mine.energies()?.into_iter();
            let numbers = |energy: Energy| [energy.kinetic, energy.potential];
            Ok(energies.map(numbers).collect())
        })?;
        let energy = |[kinetic, potential]: [f64; 2]| Energy {
            kinetic,
            potential,
            ..Energy::default()
        };
        Ok(energies.into_iter().map(energy).collect())
    }

    fn energy(&mut self) -> Result<Energy, ForceError> {
        Ok(self.energies()?.into_iter().sum())
    }

    fn synchronize(&mut self) -> Result<(), ForceError> {
        self.asked(|mine, _| mine.synchronize()).map(drop)
    }
}

impl Pipeline for Dealt {
    /// Until the last rank has done its part.
    fn seconds(&mut self, dt: f64, steps: u32) -> Result<f64, ForceError> {
        let start = Instant::now();
        self.asked(|mine, _| {
            let pipeline = mine.pipeline().expect("systems on devices have one");
            pipeline.seconds(dt, steps)
        })?;
        Ok(start.elapsed().as_secs_f64())
    }

    /// None: clocks of several processes do not tell what was at the same time.
    fn timeline(&mut self, _: f64, _: u32) -> Result<Vec<Span>, ForceError> {
        Ok(vec![])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::force::cpu::Cpu;
    use crate::force::cpu::samples::cloud;
    use crate::physics::{ForceLaw, Physics};
    use crate::ranks::threads::together_with;

    /// A failure of one rank in a step is known to all when they ask for bodies, and from then on.
    #[test]
    fn a_failure_is_known_to_all() {
        let bodies = cloud(12, 1);
        let physics = Physics {
            law: ForceLaw::Gravity,
            g: 1.0,
            softening: 0.1,
        };
        together_with(&[1, 1, 1], |team| {
            let share = [0..1, 1..2, 2..2][team.rank()].clone();
            let cpu = |part: &Bodies, _| -> Result<Box<dyn Backend>, ForceError> {
                Ok(Box::new(Cpu::<f64>::new(part, physics)))
            };
            let in_frame = (Frame::IDENTITY, false);
            let dealt = Dealt::new(&team, &bodies, (2, share), in_frame, cpu);
            let mut dealt = dealt.expect("CPUs do not refuse");
            dealt.kick(0.1).expect("runs");
            assert_eq!(dealt.save().expect("there").positions().len(), 12);
            let done = dealt.each(|_| match team.rank() {
                1 => Err(ForceError::NoSnaps),
                _ => Ok(()),
            });
            assert_eq!(done.is_err(), team.rank() == 1);
            let mut room = bodies.clone();
            for asked in [
                dealt.save().map(drop),
                dealt.energy().map(drop),
                dealt.download(&mut room),
            ] {
                match asked {
                    Err(ForceError::OfRank { rank: 1, why }) => {
                        assert_eq!(why, ForceError::NoSnaps.to_string());
                    }
                    other => panic!("rank 1 failed, not {other:?}"),
                }
            }
        });
    }
}
