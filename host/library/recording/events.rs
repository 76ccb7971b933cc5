//! Logs of encounters: `collisions.csv` and `escapers.csv`.

use std::io;
use std::path::{Path, PathBuf};

use super::heading::{Column, Heading};
use super::rows::{Cell, Rows};
use crate::encounters::{Encounters, Event, Happening};
use crate::units::Measured;

/// Names of the logs in a run's folder.
pub(super) const NAMES: [&str; 2] = ["collisions.csv", "escapers.csv"];

const COLLISIONS: [Column; 10] = [
    ("time", Measured::Time),
    ("id_a", Measured::Bare),
    ("id_b", Measured::Bare),
    ("mass_a", Measured::Mass),
    ("mass_b", Measured::Mass),
    ("x", Measured::Length),
    ("y", Measured::Length),
    ("z", Measured::Length),
    ("speed", Measured::Speed),
    ("outcome", Measured::Bare),
];
const ESCAPERS: [Column; 8] = [
    ("time", Measured::Time),
    ("id", Measured::Bare),
    ("mass", Measured::Mass),
    ("x", Measured::Length),
    ("y", Measured::Length),
    ("z", Measured::Length),
    ("speed", Measured::Speed),
    ("outcome", Measured::Bare),
];

/// The logs of the events that the run searches for.
#[derive(Clone, Debug)]
pub(super) struct Events {
    folder: PathBuf,
    heading: Heading,
    collisions: Option<Rows>,
    escapers: Option<Rows>,
}

impl Events {
    /// Logs of a run that looks for these encounters.
    pub(super) fn begin(
        folder: &Path,
        encounters: &Encounters,
        heading: &Heading,
    ) -> io::Result<Self> {
        let create = |is_wanted: bool, name: &str, columns: &[Column]| {
            let rows = is_wanted.then(|| Rows::create(folder, name, columns, heading));
            rows.transpose()
        };
        Ok(Self {
            folder: folder.to_owned(),
            heading: heading.clone(),
            collisions: create(encounters.may_collide(), NAMES[0], &COLLISIONS)?,
            escapers: create(encounters.escape.is_some(), NAMES[1], &ESCAPERS)?,
        })
    }

    /// Continues the logs of a run that was stopped after `steps`, as far as they are there.
    pub(super) fn resume(folder: &Path, steps: u64, heading: &Heading) -> io::Result<Self> {
        let resume = |name: &str, columns: &[Column]| {
            let is_there = folder.join(name).exists();
            let rows = is_there.then(|| Rows::resume(folder, name, columns, steps, heading));
            rows.transpose()
        };
        Ok(Self {
            folder: folder.to_owned(),
            heading: heading.clone(),
            collisions: resume(NAMES[0], &COLLISIONS)?,
            escapers: resume(NAMES[1], &ESCAPERS)?,
        })
    }

    /// A log; a new one where it was removed.
    fn opened<'a>(
        (folder, heading): (&Path, &Heading),
        rows: &'a mut Option<Rows>,
        name: &str,
        columns: &[Column],
    ) -> io::Result<&'a Rows> {
        if rows.is_none() {
            *rows = Some(Rows::create(folder, name, columns, heading)?);
        }
        Ok(rows.as_ref().expect("made above"))
    }

    pub(super) fn append(&mut self, event: &Event) -> io::Result<()> {
        use Cell::{Id, Number, Word};
        let place = (&*self.folder, &self.heading);
        let time = Number(event.time);
        match event.what {
            Happening::Collision {
                ids: [a, b],
                masses: [mass_a, mass_b],
                position: [x, y, z],
                speed,
                outcome,
            } => {
                let [mass_a, mass_b, x, y, z, speed] = [mass_a, mass_b, x, y, z, speed].map(Number);
                let row = [
                    time,
                    Id(a),
                    Id(b),
                    mass_a,
                    mass_b,
                    x,
                    y,
                    z,
                    speed,
                    Word(outcome.name()),
                ];
                Self::opened(place, &mut self.collisions, NAMES[0], &COLLISIONS)?
                    .append(event.step, &row)
            }
            Happening::Escape {
                id,
                mass,
                position: [x, y, z],
                speed,
                outcome,
            } => {
                let [mass, x, y, z, speed] = [mass, x, y, z, speed].map(Number);
                let row = [time, Id(id), mass, x, y, z, speed, Word(outcome.name())];
                Self::opened(place, &mut self.escapers, NAMES[1], &ESCAPERS)?
                    .append(event.step, &row)
            }
        }
    }

    pub(super) fn sync(&self) -> io::Result<()> {
        let logs = [&self.collisions, &self.escapers];
        logs.into_iter().flatten().try_for_each(Rows::sync)
    }
}
