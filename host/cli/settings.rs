//! Settings that decide the physics of a run, as its checkpoints keep them, and changes since.

use std::fmt::Write;
use std::fs;
use std::path::Path;

use allpairs::fields;
use anyhow::{Context, ensure};
use toml::Table;

use crate::asked::Asked;

/// Options that may change while a run goes on: its end, its record, and where it is computed.
const FREE: [&str; 11] = [
    "steps",
    "until",
    "diagnostics",
    "max-drift",
    "snapshot-every",
    "checkpoint-every",
    "stop-if",
    "snapshot-format",
    "no-picture",
    "format",
    "device",
];

/// The settings of a run's table of options, a line each.
pub(super) fn of(table: &Table) -> anyhow::Result<String> {
    // As they are when the file that has them is read.
    let Asked { options, table } = Asked::of_table(table, None)?;
    let mut paths = String::new();
    for text in &options.force.fields {
        if let Some(file) = fields::file_of(text) {
            let digest = fields::Path::read(Path::new(file))?.digest();
            writeln!(paths, "path {file} = {digest:08x}")?;
        }
    }
    if let Some(file) = &options.changes {
        let text = fs::read(file).with_context(|| format!("in --changes {}", file.display()))?;
        writeln!(
            paths,
            "contents of {} = {:08x}",
            file.display(),
            crc32fast::hash(&text)
        )?;
    }
    let kept = table
        .iter()
        .filter(|(key, _)| !FREE.contains(&key.as_str()));
    let kept: String = kept
        .map(|(key, value)| format!("{key} = {value}\n"))
        .collect();
    Ok(kept + &paths)
}

/// Refuses settings `now` that are not those `then`, when the run was made.
pub(super) fn check(config: &str, now: &str, then: &str) -> anyhow::Result<()> {
    let key = |line: &str| line.split(" = ").next().unwrap_or_default().to_owned();
    let counterpart = |line: &str, text: &str| {
        let found = text.lines().find(|other| key(other) == key(line));
        found.map_or_else(|| format!("no {}", key(line)), str::to_owned)
    };
    let differs = |(now, then): &(String, String)| now != then;
    let of_now = now
        .lines()
        .map(|line| (line.to_owned(), counterpart(line, then)));
    let of_then = then
        .lines()
        .map(|line| (counterpart(line, now), line.to_owned()));
    let only_then = of_then.filter(|(now, _)| now.starts_with("no "));
    let told: Vec<String> = of_now
        .chain(only_then)
        .filter(differs)
        .map(|(now, then)| format!("{config} says {now}, but the run was made with {then}"))
        .collect();
    ensure!(
        told.is_empty(),
        "{}: put that back, for a run keeps its physics and its steps; `allpairs run` with its last \
         snapshot begins another",
        told.join("; ")
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_difference_is_told() {
        let then = "dt = 0.01\ninput = \"plummer\"\nseed = \"3\"\n";
        assert!(check("run.toml", then, then).is_ok());
        let now = "dt = 0.02\neta = 0.1\ninput = \"plummer\"\n";
        let told = check("run.toml", now, then).unwrap_err().to_string();
        for part in [
            "says dt = 0.02, but the run was made with dt = 0.01;",
            "says eta = 0.1, but the run was made with no eta;",
            "says no seed, but the run was made with seed = \"3\":",
        ] {
            assert!(told.contains(part), "{told}");
        }
        assert!(!told.contains("plummer"), "{told}");
    }

    #[test]
    fn the_end_and_the_record_are_free() {
        let table = |text: &str| of(&text.parse().unwrap()).unwrap();
        let run = "input = \"plummer\"\ndt = 1.0\n";
        let other =
            format!("{run}steps = 7\ndiagnostics = 3\nno-picture = true\ndevice = \"cpu\"\n");
        assert_eq!(table(run), table(&other));
        assert!(table(run).contains("dt = 1.0"), "{}", table(run));
    }
}
