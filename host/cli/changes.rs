//! Tables of changes that bodies make on the way: the option `--changes`.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

use allpairs::bodies::Bodies;
use allpairs::io::{check_units, finite_number};
use allpairs::recording::{ChangeTable, Recording};
use allpairs::run::RunSpec;
use allpairs::simulation::BodyChange;
use allpairs::units::{Measure, Units};
use anyhow::{Context, anyhow, bail, ensure};
use serde::Deserialize;

use crate::say;
use crate::times::Times;

/// Names of the columns of a [`Row`].
const COLUMNS: [&str; 8] = [
    "time", "id", "mass", "kick_x", "kick_y", "kick_z", "radius", "remove",
];

/// A row of the file. Values that are left out stay.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    time: String,
    id: String,
    mass: Option<String>,
    kick_x: Option<String>,
    kick_y: Option<String>,
    kick_z: Option<String>,
    radius: Option<String>,
    /// `true` to take the body out.
    remove: Option<bool>,
}

/// A [finite number](finite_number) of this name.
fn number(name: &str, text: &str) -> anyhow::Result<f64> {
    finite_number(text).with_context(|| format!("the {name} `{text}` is not a finite number"))
}

/// A table of changes, and its file.
pub(super) struct Given {
    path: PathBuf,
    table: ChangeTable,
}

impl Row {
    fn change(&self, units: Option<&Units>) -> anyhow::Result<(f64, u64, BodyChange)> {
        let measure = |name: &str, text: &str| match number(name, text) {
            Ok(number) => Ok(Measure::from(number)),
            Err(_) => text.parse::<Measure>(),
        };
        let time = measure("time", &self.time)?.time(units)?;
        let id = (self.id.parse().ok())
            .with_context(|| format!("the id `{}` is no whole number from 0 on", self.id))?;
        let radius = self.radius.as_ref().map(|text| {
            let radius = measure("radius", text)?.length(units)?;
            ensure!(radius >= 0.0, "the radius {text} is negative");
            Ok(radius)
        });
        let of = |name: &str, text: &Option<String>| {
            text.as_ref().map(|text| number(name, text)).transpose()
        };
        let kick = [
            of("kick_x", &self.kick_x)?,
            of("kick_y", &self.kick_y)?,
            of("kick_z", &self.kick_z)?,
        ];
        let mass = of("mass", &self.mass)?;
        if let Some(mass) = mass {
            ensure!(mass >= 0.0, "the mass {mass} is negative");
        }
        let is_kicked = kick.iter().any(Option::is_some);
        let change = BodyChange {
            mass,
            kick: is_kicked.then(|| kick.map(Option::unwrap_or_default)),
            radius: radius.transpose()?,
            is_removed: self.remove.unwrap_or_default(),
            next: None,
        };
        ensure!(
            change != BodyChange::default(),
            "the row changes nothing: give a mass, a kick, a radius or `remove`"
        );
        Ok((time, id, change))
    }
}

/// Reads a table of changes for a run of bodies in these units.
pub(super) fn read(path: &Path, units: Option<&Units>) -> anyhow::Result<Given> {
    let whole =
        || -> anyhow::Result<ChangeTable> {
            let text = fs::read_to_string(path).map_err(|fault| anyhow!("{fault}"))?;
            check_units(&text)?;
            let text = with_commas(&text)?;
            let mut reader = csv::ReaderBuilder::new()
                .comment(Some(b'#'))
                .trim(csv::Trim::All)
                .from_reader(text.as_bytes());
            let mut rows = vec![];
            for row in reader.deserialize::<Row>() {
                let row = row?;
                let line = rows.len() + 1;
                let change = row.change(units);
                rows.push(change.with_context(|| {
                    format!("row {line}, of the body {} at {}", row.id, row.time)
                })?);
            }
            Ok(ChangeTable::new(rows)?)
        };
    let table = whole().with_context(|| format!("in --changes {}", path.display()))?;
    Ok(Given {
        path: path.to_owned(),
        table,
    })
}

/// The table with commas between its columns, where there are semicolons or blanks. The first line that is no comment
/// must name the columns, and tells what stands between them.
fn with_commas(text: &str) -> anyhow::Result<String> {
    let is_row = |line: &&str| !line.trim().is_empty() && !line.trim().starts_with('#');
    let Some(names) = text.lines().find(is_row) else {
        return Ok(text.to_owned());
    };
    let is_between = |c: char| c == ',' || c == ';' || c.is_whitespace();
    ensure!(
        !names
            .split(is_between)
            .any(|word| finite_number(word).is_some()),
        "the first line, `{}`, does not name the columns: put a line such as time,id,mass above it. The columns are {}",
        names.trim(),
        COLUMNS.join(", ")
    );
    let unknown = (names.split(is_between))
        .map(|name| name.trim_matches('"'))
        .find(|name| !name.is_empty() && !COLUMNS.contains(name));
    if let Some(name) = unknown {
        bail!(
            "there is no column `{name}`: the columns are {}",
            COLUMNS.join(", ")
        );
    }
    let between = [',', ';'].into_iter().find(|&c| names.contains(c));
    let line = |line: &str| match between {
        _ if line.trim().starts_with('#') => line.to_owned(),
        Some(',') => line.to_owned(),
        Some(other) => line.replace(other, ","),
        None => line.split_whitespace().collect::<Vec<_>>().join(","),
    };
    let lines: Vec<String> = text.lines().map(line).collect();
    Ok(lines.join("\n") + "\n")
}

impl Given {
    /// Refuses a table that cannot be followed by a run of these bodies.
    pub(super) fn check(&self, bodies: &Bodies, spec: &RunSpec) -> anyhow::Result<()> {
        let start = spec.start;
        let file = self.path.display();
        let ids: HashSet<u64> = bodies.id.iter().copied().collect();
        for &(time, id, change) in self.table.rows() {
            ensure!(
                ids.contains(&id),
                "in --changes {file}: no body has the id {id}, which is to change at time {}",
                say::plain(time)
            );
            ensure!(
                time > start,
                "in --changes {file}: the body {id} is to change at time {}, and the run begins at {}: change the \
                 initial conditions themselves",
                say::plain(time),
                say::plain(start)
            );
            ensure!(
                change.radius.is_none() || spec.encounters.is_some(),
                "in --changes {file}: the body {id} gets a radius, and the run looks for no collisions: add \
                 --radius-of-bodies"
            );
            ensure!(
                change.mass != Some(0.0) || change.is_removed || spec.groups != Some(true),
                "in --changes {file}: the body {id} would have no mass, and groups need bodies with mass: remove the \
                 body, or add --groups off"
            );
        }
        let removed = self
            .table
            .rows()
            .iter()
            .filter(|(.., change)| change.is_removed);
        ensure!(
            removed.count() < bodies.len(),
            "in --changes {file}: no body would be left"
        );
        ensure!(
            spec.dt.is_none_or(|dt| dt > 0.0),
            "--changes has changes at times to come, and the run goes back in time: its --dt is negative"
        );
        Ok(())
    }

    /// Line of a run's header.
    pub(super) fn header(&self, times: &Times) -> String {
        let rows = self.table.rows();
        let counted = say::counted(rows.len() as u64, "change of a body", "changes of bodies");
        match (rows.first(), rows.last()) {
            (Some((first, ..)), Some((last, ..))) => format!(
                "{counted} by {}, at times from {} to {}",
                self.path.display(),
                times.text(*first),
                times.text(*last)
            ),
            _ => format!("no changes of bodies: {} is empty", self.path.display()),
        }
    }
}

/// Lets a run follow a table of changes, if there is one.
pub(super) fn follow(recording: Recording, given: Option<Given>) -> anyhow::Result<Recording> {
    Ok(match given {
        Some(given) => recording.with_changes(given.table)?,
        None => recording,
    })
}

/// Line at the end of a run, if bodies were to change.
pub(super) fn count(recording: &Recording, brought: f64) -> Option<String> {
    let [done, missed] = recording.changes()?;
    let missed = match missed {
        0 => String::new(),
        missed => format!(
            "; {} of bodies that had merged or gone before",
            say::counted(missed, "change was", "changes were")
        ),
    };
    Some(format!(
        "{} of bodies brought an energy of {}, in changes.csv{missed}",
        say::counted(done, "change", "changes"),
        say::scientific(brought)
    ))
}
