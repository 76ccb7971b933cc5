//! Options of the force: force law, constants, and the units of the bodies that it is computed in.

use allpairs::bodies::Bodies;
use allpairs::fields::{self, Fields};
use allpairs::initial_conditions::{Generator, Options};
use allpairs::integrator::Integrator;
use allpairs::physics::{ForceLaw, Physics};
use allpairs::suggest::{self, Chosen, Known};
use allpairs::units::{Measure, Units};
use anyhow::{Context, ensure};
use clap::ArgAction;

use crate::choices::Named;
use crate::say;

/// Force law, constants and units.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct ForceOptions {
    /// Softening length ε. If not given, 0 for planets, rings, test particles and fewer than 100 bodies,
    /// otherwise half the mean distance of bodies. Lengths may have a unit, such as 0.01pc, if the bodies
    /// have units (m, cm, km, au, pc, kpc, Mpc).
    #[arg(long, value_name = "LENGTH")]
    pub(super) softening: Option<Measure>,
    /// Gravitational constant, in the units of the bodies. If not given, it follows from the units; if the
    /// units are unknown, it is 1.
    #[arg(long = "gravity", value_name = "G")]
    g: Option<f64>,
    /// Units of the bodies, as for `allpairs convert`: kpc, or pc,Msun,km/s. If not given, the units that
    /// are recorded in the file. G follows from them, and snapshots record them.
    #[arg(long, value_name = "SYSTEM")]
    pub(super) units: Option<Units>,
    /// Force law. If not given, gravity, or the law of the kernel's study.
    #[arg(long)]
    law: Option<Named<ForceLaw>>,
    /// H of the law attract-repel, which repels at distances below √(H/G); 0.001 if not given.
    #[arg(long)]
    repulsion: Option<f64>,
    /// Drag coefficient γ of the law attract-repel: a body of mass m loses the fraction γ/m of
    /// its velocity per unit time; 0 if not given.
    #[arg(long)]
    drag: Option<f64>,
    /// External field, such as nfw:mass=1e12Msun,scale=16kpc,x=8kpc; may be given several times. Fields
    /// are point, plummer, hernquist, nfw, miyamoto-nagai, isochrone, logarithmic, power-law, tide,
    /// mwpotential2014 and 1pn. path=FILE instead of x, y and z moves the centre along a table of t x y z.
    #[arg(long = "field", value_name = "FIELD", action = ArgAction::Append)]
    pub(super) fields: Vec<String>,
}

impl ForceOptions {
    /// The external fields, in the units of the run and with its G; checked for an integrator.
    pub(super) fn fields(
        &self,
        physics: &Physics,
        integrator: Integrator,
    ) -> anyhow::Result<Fields> {
        let mut all = Fields::NONE;
        for text in &self.fields {
            let fields = fields::parse(text, self.units.as_ref(), physics.g);
            let fields = fields.with_context(|| format!("in --field {text}"))?;
            fields.iter().for_each(|field| all.push(field.clone()));
        }
        all.check(integrator.name(), integrator.derivatives())?;
        Ok(all)
    }

    /// The force between `bodies`, which are so many independent systems, under the `preferred` law
    /// where none was asked for; and how its softening was chosen, if it was.
    pub(super) fn physics(
        &self,
        preferred: ForceLaw,
        bodies: &Bodies,
        systems: u32,
        made_by: Option<(&Generator, &Options)>,
    ) -> anyhow::Result<(Physics, Option<Chosen>)> {
        let law = self.law(preferred)?;
        let g = match (self.g, self.units_of_g(law)) {
            (Some(g), _) => g,
            (None, Some(units)) => units.gravity(),
            (None, None) => 1.0,
        };
        ensure!(g.is_finite(), "`--gravity` must be finite, got {g}");
        let given = self.softening.as_ref();
        let given = given.map(|given| given.length(self.units.as_ref()));
        let given = given.transpose().context("in --softening")?;
        let chosen = match given {
            Some(_) => None,
            None => Some(suggest::choose_softening(
                bodies,
                &Known {
                    law,
                    systems: systems as usize,
                    units: self.units,
                    g,
                    made_by: made_by.map(|(g, options)| (g.name, g.advice_of(options))),
                },
            )),
        };
        let softening = match (given, &chosen) {
            (Some(given), _) => given,
            (None, chosen) => chosen.as_ref().map_or(0.0, |chosen| chosen.value),
        };
        ensure!(
            softening >= 0.0 && softening.is_finite(),
            "`--softening` must be ≥ 0 and finite, got {}",
            say::plain(softening)
        );
        Ok((Physics { law, g, softening }, chosen))
    }

    /// The units that G follows from, if it does.
    fn units_of_g(&self, law: ForceLaw) -> Option<Units> {
        self.units
            .filter(|_| self.g.is_none() && law != ForceLaw::Unit)
    }

    /// Line about the units of the bodies and G. Bodies that were `made` here need none where they are in
    /// N-body units with G = 1.
    pub(super) fn units_line(&self, physics: &Physics, made: bool) -> Option<String> {
        let (law, g) = (physics.law, physics.g);
        if law == ForceLaw::Unit {
            return None;
        }
        let given = |g: f64| {
            let what = match g {
                ..0.0 => ": bodies repel each other",
                0.0 => ": bodies do not attract each other",
                _ => "",
            };
            format!("G = {} as given{what}", say::plain(g))
        };
        match (self.g, self.units) {
            (_, Some(units)) if g == units.gravity() => Some(format!("in units of {units}")),
            (_, Some(units)) => {
                let Units { length, mass, time } = units;
                let own = say::figure(units.gravity());
                Some(format!(
                    "in units of {length:.6e} m, {mass:.6e} kg, {time:.6e} s, with {}, where these have \
                     G = {own}",
                    given(g)
                ))
            }
            (Some(g), None) if made => (g != 1.0).then(|| given(g)),
            (Some(g), None) => Some(format!("units unknown, {}", given(g))),
            (None, None) => {
                (!made && law == ForceLaw::Gravity).then(|| "units unknown, G = 1".to_owned())
            }
        }
    }

    fn law(&self, preferred: ForceLaw) -> anyhow::Result<ForceLaw> {
        let mut law = self.law.map_or(preferred, |named| named.0);
        if let ForceLaw::AttractRepel { repulsion, damping } = &mut law {
            *repulsion = self.repulsion.unwrap_or(*repulsion);
            *damping = self.drag.unwrap_or(*damping);
            ensure!(
                repulsion.is_finite(),
                "`--repulsion` must be finite, got {repulsion}"
            );
            ensure!(
                *damping >= 0.0 && damping.is_finite(),
                "`--drag` must be ≥ 0 and finite, got {}",
                say::plain(*damping)
            );
        } else {
            ensure!(
                self.repulsion.is_none() && self.drag.is_none(),
                "--repulsion and --drag are for --law attract-repel"
            );
        }
        Ok(law)
    }
}
