//! The table of bound pairs in the snapshots of runs without softening, `binaries.csv`.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use super::folder::last_snapshot;
use super::heading::{Column, Heading};
use super::pairs::elements;
use super::rows::{Cell, Rows};
use crate::binaries::Census;
use crate::bodies::Bodies;
use crate::physics::Physics;
use crate::units::Measured;

/// Name of the table in a run's folder.
pub(super) const NAME: &str = "binaries.csv";

/// Columns of the table. The last is the time of the snapshot from which on the two are a pair in each.
const COLUMNS: [Column; 11] = [
    ("time", Measured::Time),
    ("id_a", Measured::Bare),
    ("id_b", Measured::Bare),
    ("mass_a", Measured::Mass),
    ("mass_b", Measured::Mass),
    ("semi_major_axis", Measured::Length),
    ("eccentricity", Measured::Bare),
    ("period", Measured::Time),
    ("binding_energy", Measured::Energy),
    ("hard", Measured::Bare),
    ("since", Measured::Time),
];

/// Since when bodies with these ids are pairs, as the table has it: times that are read back keep their digits.
type Since = BTreeMap<[u64; 2], f64>;

/// The table, and the pairs of its last snapshot; clones share both.
#[derive(Clone, Debug)]
pub(super) struct Binaries {
    rows: Rows,
    since: Arc<Mutex<Since>>,
}

impl Binaries {
    /// Begins the table in a folder.
    pub(super) fn begin(folder: &Path, heading: &Heading) -> io::Result<Self> {
        Ok(Self {
            rows: Rows::create(folder, NAME, &COLUMNS, heading)?,
            since: Arc::default(),
        })
    }

    /// Continues the table of a run that was stopped after `steps`. The table of snapshots ends there.
    pub(super) fn resume(folder: &Path, steps: u64, heading: &Heading) -> io::Result<Self> {
        let rows = Rows::resume(folder, NAME, &COLUMNS, steps, heading)?;
        let last = last_snapshot(folder);
        let table = fs::read_to_string(folder.join(NAME))?;
        let of_row = |row: &str| {
            let cells: Vec<&str> = row.split(',').collect();
            let ids = [cells.get(2)?.parse().ok()?, cells.get(3)?.parse().ok()?];
            let is_last = cells[0].parse().ok() == last;
            Some((ids, cells.last()?.parse().ok()?)).filter(|_| is_last)
        };
        let since: Since = table.lines().filter_map(of_row).collect();
        Ok(Self {
            rows,
            since: Arc::new(Mutex::new(since)),
        })
    }

    /// Takes the census of the bodies of a snapshot and appends its pairs, those with the most binding energy
    /// first.
    pub(super) fn append(
        &self,
        (steps, time): (u64, f64),
        bodies: &Bodies,
        physics: &Physics,
    ) -> io::Result<()> {
        let mut before = self.since.lock().unwrap_or_else(PoisonError::into_inner);
        let mut now = Since::new();
        for pair in Census::of(bodies, physics).pairs {
            let since = before
                .get(&pair.ids)
                .copied()
                .unwrap_or_else(|| self.rows.in_column(0, time));
            now.insert(pair.ids, since);
            let mut cells = vec![Cell::Number(time)];
            cells.extend(pair.ids.map(Cell::Id));
            cells.extend(pair.masses.map(Cell::Number));
            cells.extend(elements(&pair));
            cells.push(Cell::Id(pair.is_hard.into()));
            cells.push(Cell::InColumn(since));
            self.rows.append(steps, &cells)?;
        }
        *before = now;
        Ok(())
    }

    pub(super) fn sync(&self) -> io::Result<()> {
        self.rows.sync()
    }
}

#[cfg(test)]
mod tests {
    use super::super::folder::{INDEX, OF_INDEX};
    use super::*;
    use crate::bodies::{Body, BodyKind};
    use crate::physics::ForceLaw;

    /// Two bodies on a circle, or apart.
    fn two(distance: f64) -> Bodies {
        let mut bodies = Bodies::default();
        for (id, side) in [(7, -0.5), (8, 0.5)] {
            bodies.push(Body {
                position: [side * distance, 0.0, 0.0],
                velocity: [0.0, side, 0.0],
                mass: 0.5,
                id,
                kind: BodyKind::Star,
            });
        }
        bodies
    }

    #[test]
    fn the_table_tells_since_when_a_pair_is_one_also_after_a_resumption() {
        let physics = Physics {
            law: ForceLaw::Gravity,
            g: 1.0,
            softening: 0.0,
        };
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        let index = Rows::create(folder, INDEX, &OF_INDEX, &Heading::BARE).unwrap();
        let table = Binaries::begin(folder, &Heading::BARE).unwrap();
        let add = |table: &Binaries, step: u64, distance: f64| {
            let time = step as f64;
            table
                .append((step, time), &two(distance), &physics)
                .unwrap();
            let cells = [Cell::Id(step), Cell::Number(time)];
            index.append(step, &cells).unwrap();
        };
        let since = || -> Vec<String> {
            let text = fs::read_to_string(folder.join(NAME)).unwrap();
            let ends = |row: &str| row.rsplit(',').next().map(str::to_owned);
            text.lines().skip(1).filter_map(ends).collect()
        };
        for (step, distance) in [(0, 1.0), (1, 1.0), (2, 100.0), (3, 1.0), (4, 1.0)] {
            add(&table, step, distance);
        }
        assert_eq!(since(), ["0.0", "0.0", "3.0", "3.0"]);
        let text = fs::read_to_string(folder.join(NAME)).unwrap();
        let first = "0,0.0,7,8,0.5,0.5,1.0,0.0,6.283185307179586,0.125,1,0.0";
        assert_eq!(text.lines().nth(1), Some(first));
        for (stopped, next) in [(3, "3.0"), (2, "4.0")] {
            drop(Rows::resume(folder, INDEX, &OF_INDEX, stopped, &Heading::BARE).unwrap());
            let table = Binaries::resume(folder, stopped, &Heading::BARE).unwrap();
            add(&table, 4, 1.0);
            assert_eq!(since().pop().as_deref(), Some(next));
        }
    }
}
