//! Options of the force: force law, constants, and the units of the bodies that it is computed in.

use allpairs::fields::{self, Fields};
use allpairs::physics::{ForceLaw, Physics};
use allpairs::run::RunSpec;
use allpairs::units::{Measure, Units};
use anyhow::Context;
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
    /// The external fields, in the units of the run and with its G.
    pub(super) fn fields(&self, g: f64) -> anyhow::Result<Fields> {
        let mut all = Fields::NONE;
        for text in &self.fields {
            let fields = fields::parse(text, self.units.as_ref(), g);
            let fields = fields.with_context(|| format!("in --field {text}"))?;
            fields.iter().for_each(|field| all.push(field.clone()));
        }
        Ok(all)
    }

    /// Specification of a run with these options, without the fields.
    pub(super) fn spec(&self) -> anyhow::Result<RunSpec> {
        let softening = self.softening.as_ref();
        let softening = softening.map(|given| given.length(self.units.as_ref()));
        Ok(RunSpec {
            units: self.units,
            law: self.law.map(|named| named.0),
            repulsion: self.repulsion,
            drag: self.drag,
            g: self.g,
            softening: softening.transpose().context("in --softening")?,
            ..RunSpec::default()
        })
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
                let (names, own) = (units.names(), say::figure(units.gravity()));
                Some(format!(
                    "in units of {names}, with {}, where these have G = {own}",
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
}
