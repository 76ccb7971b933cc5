//! Forms that values have in messages, where serde does not know their types or less than all is told.

use cuda_driver::DeviceInfo;
use gpu_kernels::entries::Row;
use serde::{Deserialize, Serialize};

use crate::variants::{Build, Gpus, Queues, SystemsPath, Transfers};

/// A row of kernels: its name.
pub(super) mod row {
    use super::*;
    use serde::{Deserializer, Serializer};

    pub(crate) fn serialize<S: Serializer>(row: &Row, to: S) -> Result<S::Ok, S::Error> {
        row.name.serialize(to)
    }

    /// # Panics
    /// If no row has the name: ranks of one version have the same rows.
    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Row, D::Error> {
        String::deserialize(from).map(|name| Row::named(&name))
    }
}

/// Bodies: all that forces depend on.
pub(super) mod bodies {
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use crate::bodies::{Bodies, BodyKind};

    pub(crate) fn serialize<S: Serializer>(bodies: &Bodies, to: S) -> Result<S::Ok, S::Error> {
        let Bodies {
            x,
            y,
            z,
            vx,
            vy,
            vz,
            mass,
            id: _,
            kind: _,
        } = bodies;
        [x, y, z, vx, vy, vz, mass].serialize(to)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Bodies, D::Error> {
        let columns: [Vec<f64>; 7] = Deserialize::deserialize(from)?;
        let n = columns[0].len();
        if columns.iter().any(|column| column.len() != n) {
            return Err(D::Error::custom("columns of bodies are not of one length"));
        }
        let [x, y, z, vx, vy, vz, mass] = columns;
        Ok(Bodies {
            x,
            y,
            z,
            vx,
            vy,
            vz,
            mass,
            id: (0..n as u64).collect(),
            kind: vec![BodyKind::Star; n],
        })
    }
}

/// A saved state: its frame, its columns and its groups.
pub(super) mod state {
    use std::mem::take;

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use crate::backend::{COLUMNS, SavedState};

    pub(crate) fn serialize<S: Serializer>(saved: &SavedState, to: S) -> Result<S::Ok, S::Error> {
        let columns = COLUMNS.map(|row| saved.column(row.column));
        (saved.frame, columns, &saved.groups).serialize(to)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Box<SavedState>, D::Error> {
        let (frame, columns, groups) = Deserialize::deserialize(from)?;
        let mut columns: [Vec<f64>; COLUMNS.len()] = columns;
        let mut saved = SavedState::of(frame, |column| take(&mut columns[column as usize]));
        saved.groups = groups;
        Ok(Box::new(saved))
    }
}

#[derive(Deserialize, Serialize)]
#[serde(remote = "SystemsPath")]
pub(super) struct PathForm {
    #[serde(with = "row")]
    row: Row,
    build: Build,
    block: u32,
    tile: Option<u32>,
    queues: Queues,
    transfers: Transfers,
    gpus: Gpus,
    by_masses: bool,
}

#[derive(Deserialize, Serialize)]
#[serde(remote = "DeviceInfo")]
pub(super) struct GpuForm {
    ordinal: u32,
    name: String,
    uuid: [u8; 16],
    pci: (u32, u32, u32),
    compute_capability: (u32, u32),
    sm_count: u32,
    sm_clock_khz: u32,
    memory_clock_khz: u32,
    memory_bus_bits: u32,
    memory_bytes: usize,
    l2_bytes: u32,
    warp_size: u32,
    max_threads_per_block: u32,
    max_threads_per_sm: u32,
    registers_per_sm: u32,
    shared_bytes_per_sm: u32,
    max_shared_bytes_per_block: u32,
    driver_version: (u32, u32),
}
