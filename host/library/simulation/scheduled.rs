//! Changes of bodies at times that are known before: a star loses mass, or a supernova kicks what it leaves.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use thiserror::Error;

use super::changes::ChangeError;
use super::{Progress, Simulation};
use crate::backend::ForceError;
use crate::binaries::{Pair, pair};
use crate::integrator::Pace;

/// A body at the time of its change.
#[derive(Clone, Debug, PartialEq)]
pub struct DueBody {
    /// Id.
    pub id: u64,
    /// The time, which the simulation has reached exactly.
    pub time: f64,
    /// Mass.
    pub mass: f64,
    /// Position.
    pub position: [f64; 3],
    /// Velocity.
    pub velocity: [f64; 3],
    /// Radius, where encounters are looked for.
    pub radius: Option<f64>,
    /// The pair of this body and the one that it is bound to most tightly, if there is one: the pair with the
    /// shortest semi-major axis.
    pub pair: Option<Pair>,
}

/// A change of one body. Values that are left out stay.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct BodyChange {
    /// New mass.
    pub mass: Option<f64>,
    /// Velocity that the body gains.
    pub kick: Option<[f64; 3]>,
    /// New radius.
    pub radius: Option<f64>,
    /// True if nothing is left of the body.
    pub is_removed: bool,
    /// Time of its next change.
    pub next: Option<f64>,
}

/// Times at which bodies change.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Schedule {
    /// Keys that are ordered as the times are, and ids.
    due: BTreeSet<(i64, u64)>,
}

/// Scheduled changes that a run came to.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ScheduledChanges {
    /// Number of changes.
    pub done: u64,
    /// Times and ids of bodies that are not there any more: they merged, escaped or were removed before.
    pub missed: Vec<(f64, u64)>,
}

/// Reason why a run with scheduled changes does not go on. A change that failed is still due, and the simulation
/// stands at its time.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ScheduleError<E> {
    /// A step failed.
    #[error(transparent)]
    Force(#[from] ForceError),
    /// A change that should have been made before the present time.
    #[error(
        "the change of the body with the id {id} was due at time {time:?}, and the simulation is at {now:?} already"
    )]
    Past {
        /// Id of the body.
        id: u64,
        /// Time of the change.
        time: f64,
        /// Time reached.
        now: f64,
    },
    /// A simulation that goes back in time.
    #[error(
        "bodies change at times to come, and the simulation goes back in time: its step is negative"
    )]
    Backward,
    /// The change of a body cannot be made.
    #[error("the change of the body with the id {id} at time {time:?}: {why}")]
    Change {
        /// Id of the body, the first of several.
        id: u64,
        /// The time.
        time: f64,
        /// Reason.
        why: Box<ChangeError>,
    },
    /// The caller's function failed.
    #[error("the change of the body with the id {id} at time {time:?}: {why}")]
    Function {
        /// Id of the body.
        id: u64,
        /// The time.
        time: f64,
        /// Error of the function.
        why: E,
    },
    /// The next change of a body is not later than this one.
    #[error(
        "the body with the id {id} changes at time {time:?}, and its next change cannot be at {next:?}: give a later \
         time"
    )]
    NotLater {
        /// Id of the body.
        id: u64,
        /// The time.
        time: f64,
        /// Time of the next change.
        next: f64,
    },
}

impl Schedule {
    /// No changes.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a change of a body.
    ///
    /// # Panics
    /// If the time is not finite.
    pub fn insert(&mut self, id: u64, time: f64) {
        assert!(time.is_finite(), "a change is at a finite time, not {time}");
        self.due.insert((key(time), id));
    }

    /// Takes out all changes of a body.
    pub fn remove(&mut self, id: u64) {
        self.due.retain(|&(_, other)| other != id);
    }

    /// Changes to come, in the order of their times: time and id of each.
    pub fn iter(&self) -> impl Iterator<Item = (f64, u64)> {
        self.due.iter().map(|&(key, id)| (time(key), id))
    }

    /// Time of the next change.
    pub fn next_time(&self) -> Option<f64> {
        self.iter().next().map(|(time, _)| time)
    }

    /// Ids of bodies that change at the time of the next change.
    fn next_ids(&self) -> Vec<u64> {
        let first = self.due.first().map(|&(key, _)| key);
        let same = self.due.iter().take_while(|&&(key, _)| Some(key) == first);
        same.map(|&(_, id)| id).collect()
    }
}

/// Integer that is ordered as finite times are.
fn key(time: f64) -> i64 {
    let bits = (time + 0.0).to_bits() as i64; // −0 is 0
    bits ^ (((bits >> 63) as u64) >> 1) as i64
}

fn time(key: i64) -> f64 {
    f64::from_bits((key ^ (((key >> 63) as u64) >> 1) as i64) as u64)
}

impl Simulation {
    /// Goes on until `time`, as [`run_until_with`](Self::run_until_with), and changes bodies at exactly the times of
    /// a schedule: `change` gets each body when it is due, and says what becomes of it.
    ///
    /// Changes at one time are made at once, after all of them are known. Their energy is
    /// [booked](Self::brought).
    ///
    /// ```
    /// use allpairs::simulation::{BodyChange, Schedule};
    /// use allpairs::{Simulation, plummer};
    /// use std::convert::Infallible;
    /// use std::ops::ControlFlow;
    ///
    /// let mut cluster = Simulation::builder(plummer(100, 1)?).softening(0.05).dt(0.01).build()?;
    /// let mut schedule = Schedule::new();
    /// schedule.insert(7, 0.123);
    /// let halved = |body: &allpairs::simulation::DueBody| {
    ///     assert_eq!((body.id, body.time), (7, 0.123));
    ///     Ok::<_, Infallible>(BodyChange {
    ///         mass: Some(body.mass / 2.0),
    ///         ..BodyChange::default()
    ///     })
    /// };
    /// let (_, changes) =
    ///     cluster.run_scheduled(0.2, &mut schedule, halved, |_| ControlFlow::Continue(()))?;
    /// assert_eq!(changes.done, 1);
    /// assert!((cluster.bodies()?.mass[7] - 0.005).abs() < 1e-12);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`ScheduleError`].
    ///
    /// # Panics
    /// If the time is not finite.
    pub fn run_scheduled<E>(
        &mut self,
        time: f64,
        schedule: &mut Schedule,
        mut change: impl FnMut(&DueBody) -> Result<BodyChange, E>,
        mut watch: impl FnMut(Progress) -> ControlFlow<()>,
    ) -> Result<(ControlFlow<()>, ScheduledChanges), ScheduleError<E>> {
        if matches!(self.pace, Pace::Fixed(dt) if dt < 0.0) {
            return Err(ScheduleError::Backward);
        }
        if let Some((time, id)) = schedule.iter().next()
            && time < self.time()
        {
            let now = self.time();
            return Err(ScheduleError::Past { id, time, now });
        }
        let mut changes = ScheduledChanges::default();
        loop {
            let due = schedule.next_time().filter(|&due| due <= time);
            let target = due.unwrap_or(time);
            let told = self.run_within(u64::MAX, target, &mut watch)?;
            if due.is_some_and(|due| self.time() >= due) {
                self.change_due(schedule, &mut change, &mut changes)?;
            } else {
                return Ok((told, changes));
            }
            if told.is_break() {
                return Ok((told, changes));
            }
        }
    }

    /// Makes the changes that are next in a schedule.
    fn change_due<E>(
        &mut self,
        schedule: &mut Schedule,
        change: &mut impl FnMut(&DueBody) -> Result<BodyChange, E>,
        counted: &mut ScheduledChanges,
    ) -> Result<(), ScheduleError<E>> {
        let time = self.time();
        let ids = schedule.next_ids();
        let (present, gone): (Vec<u64>, Vec<u64>) =
            ids.iter().partition(|id| self.bodies.id.contains(id));
        let first = present.first().copied().unwrap_or_default();
        let failed = |why| ScheduleError::Change {
            id: first,
            time,
            why: Box::new(why),
        };
        let mut changes = vec![];
        let mut next = vec![];
        for body in self.due(&present).map_err(failed)? {
            let id = body.id;
            let change = change(&body).map_err(|why| ScheduleError::Function { id, time, why })?;
            if let Some(later) = change.next {
                if !(later > time && later.is_finite()) {
                    return Err(ScheduleError::NotLater {
                        id,
                        time,
                        next: later,
                    });
                }
                next.push((id, later));
            }
            changes.push((id, change));
        }
        self.change_bodies(&changes).map_err(failed)?;
        for _ in &ids {
            schedule.due.pop_first();
        }
        for (id, time) in next {
            schedule.insert(id, time);
        }
        counted.done += changes.len() as u64;
        counted.missed.extend(gone.into_iter().map(|id| (time, id)));
        Ok(())
    }

    /// Bodies with these ids as they are now, for changes of them.
    ///
    /// # Errors
    /// [`ChangeError::UnknownId`] and the like; errors of the backend.
    pub fn due(&mut self, ids: &[u64]) -> Result<Vec<DueBody>, ChangeError> {
        let indices = self.indices(ids)?;
        self.backend.download(&mut self.bodies)?;
        let (bodies, time) = (&self.bodies, self.clock.time);
        let radii = self.encounters.as_ref().map(|all| &all.radii);
        let each = bodies.len() / self.backend.systems().max(1);
        let due = |i: usize| {
            let body = bodies.body(i);
            let system = i / each * each;
            let bound = (system..system + each)
                .filter(|&k| k != i)
                .filter_map(|k| pair(bodies, &self.physics, [i, k]));
            DueBody {
                id: body.id,
                time,
                mass: body.mass,
                position: body.position,
                velocity: body.velocity,
                radius: radii.map(|radii| radii[i]),
                pair: bound.min_by(|a, b| a.semi_major_axis.total_cmp(&b.semi_major_axis)),
            }
        };
        Ok(indices.into_iter().map(due).collect())
    }

    /// Makes changes of bodies at the present time, all at once. When a body [changes next](BodyChange::next) is
    /// the caller's.
    ///
    /// # Errors
    /// Every [`ChangeError`] leaves the simulation as it was.
    pub fn change_bodies(&mut self, changes: &[(u64, BodyChange)]) -> Result<(), ChangeError> {
        let ids: Vec<u64> = changes.iter().map(|&(id, _)| id).collect();
        let indices = self.indices(&ids)?;
        self.backend.download(&mut self.bodies)?;
        let mut changed = self.unchanged();
        for (&i, &(_, change)) in indices.iter().zip(changes) {
            if let Some(mass) = change.mass {
                changed.set_mass(i, mass)?;
            }
            if let Some(kick) = change.kick {
                changed.kick(i, kick)?;
            }
            if let Some(radius) = change.radius {
                let radii = changed.radii.as_mut().ok_or(ChangeError::NoEncounters)?;
                radii[i] = radius;
            }
        }
        let removed = indices.iter().zip(changes);
        let removed = removed.filter(|(_, (_, change))| change.is_removed);
        let removed: Vec<usize> = removed.map(|(&i, _)| i).collect();
        if !removed.is_empty() {
            self.check_removal(&removed)?;
            changed.remove(&removed);
        }
        self.change(changed)
    }
}

#[cfg(test)]
mod tests;
