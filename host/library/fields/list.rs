//! The external fields of a run.

use std::sync::Arc;

use gpu_kernels::fields::Kind;

use super::{ExternalField, FieldFault, HostField, Orbit, Path, Shape};

/// The external fields of a run.
#[derive(Clone, Debug, Default)]
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
    pub(crate) fn have_relativity(&self) -> bool {
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
    pub(super) fn check_numbers(&self) -> Result<(), FieldFault> {
        self.iter().try_for_each(ExternalField::check)?;
        let Some(orbit) = &self.orbit else {
            return Ok(());
        };
        orbit.check()?;
        let turns = |field: &&ExternalField| field.is(Kind::Tide);
        if let Some(field) = self.iter().find(turns) {
            return Err(FieldFault::OrbitInTurningFrame(field.name()));
        }
        // The relativistic term is of one of the bodies, and does not move the origin.
        match self
            .iter()
            .all(|field| field.own_field().is_none() && !field.is_formula())
        {
            true => Err(FieldFault::OrbitInNoField),
            false => Ok(()),
        }
    }

    /// Checks that the fields make sense, and that an integrator can follow them. The integrator uses this
    /// number of time derivatives of accelerations: none if it is made of kicks.
    ///
    /// # Errors
    /// The reason why not.
    pub fn check(&self, integrator: &'static str, derivatives: usize) -> Result<(), FieldFault> {
        self.check_numbers()?;
        for field in self.iter() {
            if field.needs_velocity() && derivatives == 0 {
                return Err(FieldFault::NeedsHermite {
                    field: field.name(),
                    integrator,
                });
            }
            let is_known = |own: &Arc<dyn HostField>| match derivatives {
                0 => true,
                1 => own.jerk(0.0, [0.0; 3], [0.0; 3]).is_some(),
                _ => false,
            };
            if !field.own_field().is_none_or(is_known) {
                return Err(FieldFault::NoDerivatives(integrator));
            }
        }
        Ok(())
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
