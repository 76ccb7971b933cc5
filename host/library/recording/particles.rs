//! The log of test particles, `test-particles.csv`.

use std::io;
use std::path::Path;
use std::sync::Arc;

use super::heading::{Column, Heading};
use super::rows::{Cell, Rows};
use crate::bodies::Bodies;
use crate::fields::External;
use crate::physics::Physics;
use crate::test_particles::{Account, Look, Origin};
use crate::units::Measured;

/// Name of the log in a run's folder.
pub(super) const NAME: &str = "test-particles.csv";

/// Test particles of a run, and their log if diagnostics are planned.
#[derive(Clone, Debug)]
pub(super) struct Particles {
    pub(super) account: Arc<Account>,
    rows: Option<Rows>,
}

impl Particles {
    /// Opens the account at the beginning of a run, if there are test particles, and their log.
    pub(super) fn begin(
        folder: &Path,
        heading: Option<&Heading>,
        account: Option<Account>,
    ) -> io::Result<Option<Self>> {
        let Some(account) = account else {
            return Ok(None);
        };
        let rows = heading.map(|heading| Rows::create(folder, NAME, &columns(), heading));
        Ok(Some(Self {
            account: Arc::new(account),
            rows: rows.transpose()?,
        }))
    }

    /// Continues the table of a run that was stopped after `steps`.
    pub(super) fn resume(
        folder: &Path,
        heading: Option<&Heading>,
        origins: Vec<Origin>,
        steps: u64,
    ) -> io::Result<Option<Self>> {
        let Some(account) = Account::resume(origins) else {
            return Ok(None);
        };
        let rows = heading.map(|heading| Rows::resume(folder, NAME, &columns(), steps, heading));
        Ok(Some(Self {
            account: Arc::new(account),
            rows: rows.transpose()?,
        }))
    }

    /// Appends a look, where there is a log.
    pub(super) fn append(
        &self,
        (steps, time): (u64, f64),
        bodies: &Bodies,
        physics: &Physics,
        external: &External,
    ) -> io::Result<()> {
        let Some(rows) = &self.rows else {
            return Ok(());
        };
        let look = self.account.look(bodies, physics, external);
        let [mean, spread, change, jacobi] = look.values();
        rows.append(
            steps,
            &[time, mean, spread, change, jacobi].map(Cell::Number),
        )
    }

    pub(super) fn sync(&self) -> io::Result<()> {
        self.rows.as_ref().map_or(Ok(()), Rows::sync)
    }
}

fn columns() -> Vec<Column> {
    let mut columns = vec![("time", Measured::Time)];
    columns.extend(Look::COLUMNS.into_iter().zip(Look::MEASURED));
    columns
}
