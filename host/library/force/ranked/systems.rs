//! Independent systems dealt out to ranks: each computes its own, and nothing is exchanged until somebody asks
//! for their bodies.

use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

use super::command::{of_bytes, to_bytes};
use super::of_all;
use crate::backend::{Backend, Command, Facts, ForceError, Reply, Watch, timed_by_the_host};
use crate::bodies::Bodies;
use crate::frame::Frame;
use crate::ranks::Team;

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

    /// The reply about all systems, from the replies of all ranks about their own. Where one fails or
    /// has failed, all do.
    fn gathered(&mut self, command: &Command<'_>) -> Result<Reply, ForceError> {
        let mut said = None;
        if let (None, Some(mine)) = (&self.failure, self.mine.as_deref_mut()) {
            match mine.run(command, None) {
                Ok(reply) => said = Some(reply),
                Err(why) => self.failure = Some(why.to_string()),
            }
        }
        let rank = self.team.rank();
        let said = match self.failure.clone() {
            Some(why) => Err(ForceError::OfRank { rank, why }),
            None => Ok(said),
        };
        let said: Option<Reply> = of_all(said, &self.team)?;
        let all = self.team.gather_ragged(&to_bytes(&said));
        let replies = all.iter().map(|bytes| of_bytes(bytes, &self.team));
        Ok(Reply::joined(
            replies.flat_map(|reply: Option<Reply>| reply),
        ))
    }
}

impl Backend for Dealt {
    fn facts(&self) -> Facts<'_> {
        Facts {
            systems: self.systems,
            times_copies: self.on_devices,
            ..Facts::default()
        }
    }

    fn run(
        &mut self,
        command: &Command<'_>,
        _: Option<&mut Watch<'_>>,
    ) -> Result<Reply, ForceError> {
        command.check_for_systems()?;
        match command {
            Command::Perform(_) | Command::Repeat(..) => {
                self.each(|mine| mine.run(command, None).map(drop))?;
            }
            Command::Restore(saved) => {
                saved.fits(self.bodies, &self.frame, false)?;
                let part = saved.part(self.share.clone());
                self.each(|mine| mine.restore(&part))?;
            }
            Command::Reach { .. } | Command::SetTime(_) => {} // there are no fields
            Command::TimeAcceleration => return Ok(Reply::Number(timed_by_the_host(self)?)),
            Command::TimeSteps { .. } => {
                let start = Instant::now();
                self.gathered(command)?; // until the last rank has done its part
                return Ok(Reply::Number(start.elapsed().as_secs_f64()));
            }
            // Clocks of several processes do not tell what was at the same time.
            Command::Timeline { .. } => return Ok(Reply::Spans(vec![])),
            _ => return self.gathered(command),
        }
        Ok(Reply::Done)
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
