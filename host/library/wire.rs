//! Types of the kernels in serialised form. The package of the kernels itself knows no serde.

use gpu_kernels::entries::{self, Row};
use gpu_kernels::numerics::Precision;
use gpu_kernels::schedule::block_steps::DigitsName;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A [`Precision`], for `serde(with)`.
#[derive(Serialize, Deserialize)]
#[serde(remote = "Precision")]
pub(crate) enum WirePrecision {
    F16,
    F32,
    DoubleSingle,
    F64,
}

/// A [`DigitsName`], for `serde(with)`.
#[derive(Serialize, Deserialize)]
#[serde(remote = "DigitsName")]
pub(crate) enum WireDigits {
    Single,
    Mixed,
    Double,
}

/// A [`Row`] by its name, for `serde(with)`.
pub(crate) mod row {
    use super::*;

    /// Ends of the symbols of a row's kernels with softening, of which each row has one.
    const LAWS: [&str; 3] = ["_unit", "_gravity", "_attract_repel"];

    pub(crate) fn serialize<S: Serializer>(row: &Row, to: S) -> Result<S::Ok, S::Error> {
        row.name.serialize(to)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Row, D::Error> {
        let name = String::deserialize(from)?;
        // A row that is not there would end the process.
        let is_of_row = |symbol: &str| {
            let rest = symbol.strip_prefix("force_");
            let law = rest.and_then(|rest| rest.strip_prefix(&*name));
            law.is_some_and(|law| LAWS.contains(&law))
        };
        match entries::all().any(|entry| is_of_row(entry.symbol)) {
            true => Ok(Row::named(&name)),
            false => Err(D::Error::custom(format!("there are no kernels `{name}`"))),
        }
    }
}
