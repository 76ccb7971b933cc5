//! Snapshots of runs in their own frame. Their bodies are relative to an origin on an orbit, which is in
//! the table next to the snapshots.

use std::fs;
use std::path::Path;

use allpairs::fields::Fields;
use allpairs::recording::ORBIT;

/// Remark on an input next to the table of an orbit, for a run with fields but without an orbit.
pub(super) fn remark(input: &Path, time: f64, fields: &Fields) -> Option<String> {
    if fields.is_empty() || fields.orbit().is_some() {
        return None;
    }
    let table = input.parent()?.join(ORBIT);
    let rows = fs::read_to_string(&table).ok()?;
    let row_of = |row: &str| {
        let numbers = row.split(',').skip(1).map(str::parse);
        let numbers: Vec<f64> = numbers.collect::<Result<_, _>>().ok()?;
        (numbers.first() == Some(&time)).then_some(numbers)
    };
    let origin = rows.lines().find_map(row_of);
    let option = origin.map(|numbers| {
        let names = ["x", "y", "z", "vx", "vy", "vz"].into_iter();
        let parts = names
            .zip(&numbers[1..])
            .map(|(name, n)| format!("{name}={n}"));
        let parts: Vec<String> = parts.collect();
        format!(": `--orbit {}` restores their place", parts.join(","))
    });
    Some(format!(
        "{} is next to the input: if its bodies are relative to an origin in that table, they now sit at the \
         origin of the fields{}",
        table.display(),
        option.unwrap_or_default()
    ))
}
