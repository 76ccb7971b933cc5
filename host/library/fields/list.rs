//! The external fields of a run.

use std::sync::Arc;

use super::{ExternalField, FieldFault, HostField, Orbit, Path, Shape};

/// The external fields of a run.
#[derive(Clone, Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Fields {
    list: Vec<ExternalField>,
    orbit: Option<Orbit>,
}

impl Fields {
    /// No fields.
    pub const NONE: Self = Self {
        list: vec![],
        orbit: None,
    };

    /// The same fields, for bodies in a frame that does not rotate. The origin of the frame falls freely in
    /// the fields, on this orbit.
    #[must_use]
    pub fn on_orbit(self, orbit: Orbit) -> Self {
        let orbit = Some(orbit);
        Self { orbit, ..self }
    }

    /// The same fields of a run that begins at this time.
    pub(crate) fn starting(self, time: f64) -> Self {
        let orbit = self.orbit.map(|orbit| orbit.starting(time));
        Self { orbit, ..self }
    }

    /// The same fields about an origin that rests.
    pub(super) fn at_rest(self) -> Self {
        Self {
            orbit: None,
            ..self
        }
    }

    /// The orbit of the origin, if it does not rest.
    pub fn orbit(&self) -> Option<&Orbit> {
        self.orbit.as_ref()
    }

    /// Each of them.
    pub fn iter(&self) -> impl Iterator<Item = &ExternalField> {
        self.list.iter()
    }

    /// Returns whether the first post-Newtonian term of a dominant mass is among them.
    pub fn have_relativity(&self) -> bool {
        let is_term = |field: &ExternalField| matches!(field.shape, Shape::Relativity(..));
        self.iter().any(is_term)
    }

    /// Returns whether there are none.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Adds one.
    pub fn push(&mut self, field: ExternalField) {
        self.list.push(field);
    }

    /// Returns whether the energy of bodies in them is conserved, and known.
    pub fn conserve_energy(&self) -> bool {
        self.iter().all(|field| {
            let known = |own: &Arc<dyn HostField>| own.potential(0.0, [0.0; 3]).is_some();
            !field.changes_with_time() && field.own_field().is_none_or(known)
        })
    }

    /// Checks their numbers.
    ///
    /// # Errors
    /// The first that makes no sense.
    pub fn check(&self) -> Result<(), FieldFault> {
        self.iter().try_for_each(ExternalField::check)?;
        self.orbit.as_ref().map_or(Ok(()), Orbit::check)
    }

    /// Checks that paths reach from one time to another.
    ///
    /// # Errors
    /// The first that does not.
    pub fn check_times(&self, from: f64, to: f64) -> Result<(), FieldFault> {
        for field in self.iter() {
            let Some([first, last]) = field.path().map(Path::span) else {
                continue;
            };
            for time in [from, to] {
                if !(first..=last).contains(&time) {
                    return Err(FieldFault::BeyondPath {
                        field: field.name(),
                        first,
                        last,
                        time,
                    });
                }
            }
        }
        Ok(())
    }
}

impl FromIterator<ExternalField> for Fields {
    fn from_iter<I: IntoIterator<Item = ExternalField>>(fields: I) -> Self {
        Self {
            list: fields.into_iter().collect(),
            orbit: None,
        }
    }
}
