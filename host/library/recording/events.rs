//! Logs of encounters: `collisions.csv` and `escapers.csv`.

use std::io;
use std::path::Path;

use super::rows::{Cell, Rows};
use crate::encounters::{Event, Happening};

/// Names of the logs in a run's folder.
pub(super) const NAMES: [&str; 2] = ["collisions.csv", "escapers.csv"];

const COLLISIONS: [&str; 10] = [
    "time", "id_a", "id_b", "mass_a", "mass_b", "x", "y", "z", "speed", "outcome",
];
const ESCAPERS: [&str; 8] = ["time", "id", "mass", "x", "y", "z", "speed", "outcome"];

/// The logs, as far as there is something that they could have.
#[derive(Clone, Debug)]
pub(super) struct Events {
    collisions: Rows,
    escapers: Rows,
}

impl Events {
    pub(super) fn begin(folder: &Path) -> io::Result<Self> {
        Ok(Self {
            collisions: Rows::create(folder, NAMES[0], &COLLISIONS)?,
            escapers: Rows::create(folder, NAMES[1], &ESCAPERS)?,
        })
    }

    /// Continues the logs of a run that was stopped after `steps`.
    pub(super) fn resume(folder: &Path, steps: u64) -> io::Result<Self> {
        Ok(Self {
            collisions: Rows::resume(folder, NAMES[0], &COLLISIONS, steps)?,
            escapers: Rows::resume(folder, NAMES[1], &ESCAPERS, steps)?,
        })
    }

    pub(super) fn append(&self, event: &Event) -> io::Result<()> {
        use Cell::{Id, Number, Word};
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
                self.collisions.append(event.step, &row)
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
                self.escapers.append(event.step, &row)
            }
        }
    }

    pub(super) fn sync(&self) -> io::Result<()> {
        self.collisions.sync()?;
        self.escapers.sync()
    }
}
