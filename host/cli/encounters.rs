//! Options of encounters: collisions of bodies with radii, and escapes.

use std::collections::HashMap;
use std::path::Path;

use allpairs::encounters::{Encounters, OnCollision, OnEscape};
use allpairs::io::{NumberColumn, read_column};
use allpairs::units::{Measure, Units};
use anyhow::{Context, ensure};

use crate::choices::Named;
use crate::say;

const HEADING: &str = "Encounters";

/// Radii, and what follows from collisions and escapes.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = HEADING)]
pub(super) struct EncounterOptions {
    /// Radius of every body, in the unit of length or with a unit (6371km); or a file with one radius per
    /// body: a number per line, or a table with a column `radius`. Two bodies collide if their distance
    /// falls to the sum of their radii at any time of a step, unless both radii are 0.
    #[arg(long, value_name = "LENGTH|FILE")]
    radius_of_bodies: Option<String>,
    /// Consequence of a collision. Each is recorded in collisions.csv; log if not given.
    #[arg(long, requires = "radius_of_bodies")]
    on_collision: Option<Named<OnCollision>>,
    /// Distance beyond which a body has escaped, from the centre of mass of those that have not. Escapes are recorded in
    /// escapers.csv.
    #[arg(long, value_name = "LENGTH")]
    escape_radius: Option<Measure>,
    /// Consequence of an escape; log if not given.
    #[arg(long, requires = "escape_radius")]
    on_escape: Option<Named<OnEscape>>,
}

impl EncounterOptions {
    /// Encounters of a run that begins with bodies of these ids, if any are to be looked for.
    pub(super) fn begin(
        &self,
        units: Option<&Units>,
        ids: &[u64],
    ) -> anyhow::Result<Option<Encounters>> {
        let radii = match &self.radius_of_bodies {
            None => vec![],
            Some(text) => match text.parse::<Measure>() {
                Ok(radius) => {
                    let radius = radius.length(units);
                    vec![radius.context("in --radius-of-bodies")?; ids.len()]
                }
                Err(_) => {
                    let column = read_column(Path::new(text), "radius");
                    let column = column.with_context(|| {
                        format!(
                            "`--radius-of-bodies` is neither a length nor a list of radii: {text}"
                        )
                    })?;
                    of_bodies(column, ids).with_context(|| format!("in {text}"))?
                }
            },
        };
        self.resume(units, radii)
    }

    /// Encounters of a run that goes on with bodies of these radii.
    pub(super) fn resume(
        &self,
        units: Option<&Units>,
        radii: Vec<f64>,
    ) -> anyhow::Result<Option<Encounters>> {
        let on_collision = self.on_collision.map_or(OnCollision::Log, |named| named.0);
        let on_escape = self.on_escape.map_or(OnEscape::Log, |named| named.0);
        let escape = self.escape_radius.as_ref();
        let escape = escape.map(|radius| radius.length(units));
        let escape = escape.transpose().context("in --escape-radius")?;
        let escape = escape.map(|radius| (radius, on_escape));
        Ok(self.are_looked_for().then_some(Encounters {
            radii,
            on_collision,
            escape,
        }))
    }

    /// Returns whether any are looked for.
    pub(super) fn are_looked_for(&self) -> bool {
        self.radius_of_bodies.is_some() || self.escape_radius.is_some()
    }

    /// File of radii, if they are in one.
    pub(super) fn file(&self) -> Option<&str> {
        let text = self.radius_of_bodies.as_deref();
        text.filter(|text| text.parse::<Measure>().is_err())
    }
}

/// The numbers in the order of bodies of these ids.
fn of_bodies(column: NumberColumn, ids: &[u64]) -> anyhow::Result<Vec<f64>> {
    let Some(theirs) = column.ids else {
        return Ok(column.numbers);
    };
    let by_id: HashMap<u64, f64> = theirs.iter().copied().zip(column.numbers).collect();
    ensure!(by_id.len() == theirs.len(), "several rows have the same id");
    let radius = |id: &u64| {
        let found = by_id.get(id).copied();
        found.with_context(|| format!("there is no radius of the body with the id {id}"))
    };
    let radii: Vec<f64> = ids.iter().map(radius).collect::<anyhow::Result<_>>()?;
    ensure!(
        by_id.len() == radii.len(),
        "there are {} radii, more than the {} bodies",
        by_id.len(),
        radii.len()
    );
    Ok(radii)
}

/// Warning where bounces, which lose nothing, changed the energy by more than this share of it.
pub(super) fn lost_in_bounces(
    encounters: &Encounters,
    [before, lost]: [f64; 2],
    bound: f64,
) -> Option<String> {
    let others = matches!(encounters.escape, Some((_, OnEscape::Remove)));
    let share = (lost / before).abs();
    (encounters.on_collision == OnCollision::Bounce && !others && share > bound).then(|| {
        format!(
            "bounces are elastic, and changed the energy by {} of it, more than --max-drift {}: shorter steps \
             would change it less",
            say::scientific(share),
            say::plain(bound)
        )
    })
}

/// Line that a run prints about its encounters before it starts.
pub(super) fn header(encounters: &Encounters, units: Option<&Units>) -> String {
    let unit = say::of_length(units);
    let largest = encounters.radii.iter().copied().fold(0.0, f64::max);
    let collisions = (largest > 0.0).then(|| {
        let what = match encounters.on_collision {
            OnCollision::Log => "are logged",
            OnCollision::Stop => "stop the run",
            OnCollision::Merge => "merge",
            OnCollision::Bounce => "bounce",
        };
        format!(
            "bodies of radii up to {}{unit} that collide {what}",
            say::plain(largest)
        )
    });
    let escapes = encounters.escape.map(|(radius, action)| {
        let what = match action {
            OnEscape::Log => "are logged",
            OnEscape::Stop => "stop the run",
            OnEscape::Remove => "are taken away",
        };
        let radius = say::plain(radius);
        format!("bodies beyond {radius}{unit} from the centre of mass {what}")
    });
    let parts: Vec<String> = collisions.into_iter().chain(escapes).collect();
    match parts.is_empty() {
        true => "no body has a radius: none collide".to_owned(),
        false => parts.join("; "),
    }
}

/// How many there were.
pub(super) fn count([collisions, escapes]: [u64; 2]) -> Option<String> {
    let told = [
        (collisions, "collision", "collisions", "collisions.csv"),
        (escapes, "escape", "escapes", "escapers.csv"),
    ];
    let told = told.into_iter().filter(|(number, ..)| *number > 0);
    let told: Vec<String> = told
        .map(|(number, one, many, file)| format!("{} ({file})", say::counted(number, one, many)))
        .collect();
    (!told.is_empty()).then(|| told.join(", "))
}
