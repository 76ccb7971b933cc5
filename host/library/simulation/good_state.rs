//! States of a simulation to go back to.

use super::{Clock, Simulation};
use crate::backend::{ForceError, SavedState};
use crate::bodies::Bodies;
use crate::diagnostics::Lost;

/// A state of a simulation in which all numbers are finite.
#[derive(Clone, Debug)]
pub struct GoodState {
    pub(crate) clock: Clock,
    pub(crate) state: SavedState,
    /// Where encounters change the bodies: these, their radii, and what was lost.
    pub(crate) bodies: Option<(Bodies, Vec<f64>, Lost)>,
    /// Encounters that were found, and nobody has asked for yet.
    events: [usize; 2],
    /// Number of changes from outside before.
    changes: u64,
}

impl Simulation {
    /// The present state, to go back to.
    ///
    /// # Errors
    /// [`ForceError::NotFinite`] if a number of it is not finite; errors of the backend.
    pub fn good_state(&mut self) -> Result<GoodState, ForceError> {
        let (clock, state) = self.save()?;
        if let Some(body) = state.first_not_finite() {
            return Err(ForceError::NotFinite { body });
        }
        let encounters = self.encounters();
        let radii = encounters.filter(|encounters| encounters.changes_bodies());
        let bodies = match radii.map(|encounters| encounters.radii.clone()) {
            Some(radii) => Some((self.bodies()?.clone(), radii, self.lost())),
            None => None,
        };
        Ok(GoodState {
            clock,
            state,
            bodies,
            events: self.waiting_events(),
            changes: self.changes,
        })
    }

    /// Goes back to a state of this simulation. Encounters that were found since then are forgotten.
    ///
    /// # Errors
    /// [`ForceError::OtherState`] if the simulation was changed from outside since then; errors of the backend.
    pub fn go_back_to(&mut self, good: &GoodState) -> Result<(), ForceError> {
        if good.changes != self.changes {
            return Err(ForceError::OtherState(
                "the simulation was changed since then",
            ));
        }
        if let Some((bodies, radii, lost)) = &good.bodies {
            self.have_again(bodies, radii, *lost)?;
        }
        self.follow_as_in(&good.state)?;
        self.go_back(&good.state, good.clock)?;
        self.forget_events(good.events);
        Ok(())
    }
}
