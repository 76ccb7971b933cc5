//! The pages in docs/studies tell what is so: tables and charts are made from the list of rungs and from
//! what was recorded, code that they (and docs/kernels.md) quote is in the sources, and what they say of
//! measurements holds.
//!
//! `ALLPAIRS_DOCS=write cargo test --test it studies::` renews tables and charts. What is between
//! `<!-- table -->` and `<!-- end -->` is made; of the rest are checked
//! * `<!-- source: path -->` before a code block: its lines are lines of that file, in this order, `…`
//!   standing for others;
//! * `<!-- measured: a / b at N: low to high -->`: the ratio of their interactions/s in the record.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use allpairs::io::Overwrite;
use allpairs_lab::bench::study::Speedups;
use allpairs_lab::bench_charts::bench_charts;
use allpairs_lab::bench_record::{BenchRecord, BenchRow};
use allpairs_lab::choices::{choices, differences};
use allpairs_lab::studies::{STUDIES, Study};

use crate::support::program::{allpairs, run};

/// Folder of the records that the tables are made of.
const RECORDS: &str = "benchmarks/record/nvidia-h200/studies";

fn root() -> &'static Path {
    crate::support::root()
}

fn page(study: &Study) -> PathBuf {
    root()
        .join("docs/studies")
        .join(study.name)
        .with_extension("md")
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Record of a study at its numbers of bodies, if there is one.
fn record(study: &Study) -> Option<BenchRecord> {
    let path = root().join(RECORDS).join(study.name).with_extension("json");
    let record = path.exists().then(|| BenchRecord::read(&path));
    let mut record = record.map(|record| record.expect("a sound record"))?;
    let sizes = study.measured.bodies;
    record
        .rows
        .retain(|row| sizes.iter().any(|&n| u64::from(n) == row.asked()));
    Some(record)
}

fn is_writing() -> bool {
    std::env::var("ALLPAIRS_DOCS").is_ok_and(|value| value == "write")
}

/// Fails if a file is not what it should be; or makes it so, if that was asked for.
fn expect_file(path: &Path, content: &str) {
    if is_writing() {
        fs::write(path, content).expect("a writable file");
    } else {
        let there = fs::read_to_string(path).unwrap_or_default();
        assert!(
            there == content,
            "{} is not what it was made from: renew it with ALLPAIRS_DOCS=write cargo test --test it \
             studies::",
            path.display()
        );
    }
}

fn short(name: &str) -> &str {
    name.rsplit('/').next().unwrap_or_default()
}

fn digits(value: f64) -> String {
    match value {
        100.0.. => format!("{value:.0}"),
        10.0.. => format!("{value:.1}"),
        0.1.. => format!("{value:.2}"),
        _ => format!("{value:.4}"),
    }
}

/// Milliseconds of a step and, in brackets, how many times as fast as before.
fn cell(row: &BenchRow, study: &Study, record: &BenchRecord) -> String {
    let growth = (row.asked() as f64 / row.bodies as f64).powi(2);
    let about = if row.asked.is_some() { "≈ " } else { "" };
    let milliseconds = match 1e3 * row.seconds * growth {
        ms @ 1.0.. => digits(ms),
        ms => format!("{ms:.4}"),
    };
    let before = row.predecessor.as_deref();
    let before = before.and_then(|kernel| record.row(kernel, row.asked()));
    let gain = Speedups::of(row, study, &record.rows).predecessor;
    let gain = match (gain, before) {
        (Some(gain), Some(before)) if before.bodies == row.bodies => {
            format!(" ({}×)", digits(gain))
        }
        (Some(gain), _) => format!(" (≈ {}×)", digits(gain)),
        (None, _) => String::new(),
    };
    format!("{about}{milliseconds}{gain}")
}

/// The rungs in order: what changes, what was reported, what was measured here.
fn table(study: &Study, record: Option<&BenchRecord>) -> String {
    let mut sizes: Vec<u64> = record.map_or_else(Vec::new, |record| {
        record.rows.iter().map(BenchRow::asked).collect()
    });
    sizes.sort_unstable();
    sizes.dedup();
    let mut text = String::new();
    let mut line = |cells: &[String]| writeln!(text, "| {} |", cells.join(" | ")).expect("memory");
    let mut header: Vec<String> = ["rung", "after", "what changes", "reported"]
        .map(str::to_owned)
        .to_vec();
    header.extend(sizes.iter().map(|n| format!("N = {n}")));
    if !sizes.is_empty() {
        header.extend(["of limit".to_owned(), "rms error".to_owned()]);
    }
    line(&header);
    line(&vec!["---".to_owned(); header.len()]);
    for rung in study.rungs {
        let variant = &rung.variant;
        let differences = differences(variant);
        let changes = differences
            .iter()
            .map(|c| format!("{}: {}", c.axis, c.value));
        let changes = changes.collect::<Vec<_>>().join("; ");
        let mut cells = vec![
            format!("`{}`", short(variant.name)),
            variant
                .predecessor
                .map_or_else(String::new, |p| format!("`{}`", short(p))),
            if changes.is_empty() {
                variant.summary.to_owned()
            } else {
                changes
            },
            rung.reported.to_owned(),
        ];
        let row = |n: u64| record.and_then(|record| record.row(variant.name, n));
        for &n in &sizes {
            let failed = record.is_some_and(|record| {
                let mut failures = record.failures.iter();
                failures.any(|f| f.kernel == variant.name && f.bodies == n)
            });
            cells.push(match (row(n), record) {
                (Some(row), Some(record)) => cell(row, study, record),
                _ if failed => "wrong".to_owned(),
                _ => String::new(),
            });
        }
        if let Some(&largest) = sizes.last() {
            let row = row(largest);
            let limit = row.and_then(|row| Some(100.0 * row.rate / row.limit?));
            cells.push(limit.map_or_else(String::new, |share| format!("{share:.0} %")));
            cells.push(row.map_or_else(String::new, |row| format!("{:.1e}", row.error)));
        }
        line(&cells);
    }
    let measured = &study.measured;
    let several = record.and_then(|record| {
        let counts = record.rows.iter().filter_map(|row| row.choices.get("GPUs"));
        counts.filter_map(|n| n.parse::<u32>().ok()).max()
    });
    let several = several
        .filter(|n| *n > 1)
        .map_or_else(String::new, |n| format!(", {n} of them where all are used"));
    let note = match record {
        Some(record) => format!(
            "Measured: milliseconds a step on one {}{several} ({}; the rungs of the CPU on its host: {}); {} of {} \
             runs of at most {} steps. In brackets: how many times as fast as the rung named under “after”. ≈ marks what \
             was not timed with all bodies, as that would take too long: times scaled up by N² from fewer bodies, and ratios \
             to such times. [More on the columns](README.md#how-to-read-the-tables).\n\n![Speedup of each rung over the \
             first]({}.svg)\n",
            record.device,
            record.driver.as_deref().unwrap_or("no driver"),
            record.host.as_deref().unwrap_or("unknown"),
            measured.statistic.name(),
            measured.repetitions,
            measured.steps,
            study.name
        ),
        None => "There is no record of this study yet.\n".to_owned(),
    };
    format!("\n{text}\n{note}\n")
}

const FROM: &str = "<!-- table -->\n";
const TO: &str = "<!-- end -->";

#[test]
fn tables_are_made_from_rungs_and_records() {
    for study in STUDIES {
        let path = page(study);
        let text = read(&path);
        let parts = text.split_once(FROM).and_then(|(before, rest)| {
            let (_, after) = rest.split_once(TO)?;
            Some((before, after))
        });
        let (before, after) = parts.unwrap_or_else(|| panic!("{}: no table", path.display()));
        let table = table(study, record(study).as_ref());
        expect_file(&path, &format!("{before}{FROM}{table}{TO}{after}"));
    }
}

#[test]
fn charts_are_made_from_records() {
    for study in STUDIES {
        let Some(record) = record(study) else {
            continue;
        };
        let name = format!("speedup-{}", study.name);
        let charts = bench_charts(&record).expect("charts");
        let (_, chart) = charts.iter().find(|(n, _)| *n == name).expect("a ladder");
        let folder = tempfile::tempdir().expect("a temporary folder");
        let drawn = folder.path().join("chart.svg");
        chart.write(&drawn, Overwrite::Refuse).expect("drawn");
        let drawn = read(&drawn);
        assert!(drawn.len() < 60_000, "{name}: {} bytes", drawn.len());
        expect_file(&page(study).with_extension("svg"), &drawn);
    }
}

/// Words of a command, of which some are in single quotes.
fn words(command: &str) -> Vec<String> {
    let parts = command.split('\'').enumerate();
    let words = parts.flat_map(|(i, part)| match i % 2 {
        0 => part.split_whitespace().map(str::to_owned).collect(),
        _ => vec![part.to_owned()],
    });
    words.collect()
}

#[test]
fn charts_of_records_are_made_by_their_commands() {
    let records = root().join("benchmarks/record/nvidia-h200");
    let mut charts = 0;
    for entry in fs::read_dir(&records).expect("a readable folder") {
        let record = entry.expect("a readable folder").path();
        if record.extension().is_none_or(|extension| extension != "md") {
            continue;
        }
        let text = read(&record).replace("\\\n", " ");
        for command in text
            .lines()
            .filter_map(|line| line.strip_prefix("$ allpairs plot table "))
        {
            let folder = tempfile::tempdir().expect("a temporary folder");
            let mut program = allpairs(&records);
            program.args(["plot", "table"]).args(words(command));
            run(program.arg("--out").arg(folder.path())).expect(0, &["wrote"]);
            for drawn in fs::read_dir(folder.path()).expect("a readable folder") {
                let drawn = drawn.expect("a readable folder");
                expect_file(&records.join(drawn.file_name()), &read(&drawn.path()));
                charts += 1;
            }
        }
    }
    assert!(charts > 0, "no charts found");
}

/// Shapes that are chosen by the number of bodies are those that a recorded sweep found.
#[test]
fn fitted_shapes_are_those_that_were_found() {
    for study in STUDIES {
        let Some(record) = record(study) else {
            continue;
        };
        for rung in study.rungs.iter().filter(|rung| rung.variant.is_fitted()) {
            for row in record.rows.iter().filter(|r| r.kernel == rung.variant.name) {
                let listed = choices(&rung.variant.fitted(row.bodies as usize));
                for axis in ["block", "threads a target", "sources a thread"] {
                    let listed = listed.iter().find(|choice| choice.axis == axis);
                    let listed = listed.map(|choice| choice.value.as_str());
                    let found = row.choices.get(axis).map(String::as_str);
                    let (name, n) = (rung.variant.name, row.bodies);
                    assert_eq!(listed, found, "{name} at {n} bodies, {axis}: listed, found");
                }
            }
        }
    }
}

/// Every rung has a heading that names it.
#[test]
fn every_rung_is_explained() {
    for study in STUDIES {
        let text = read(&page(study));
        for rung in study.rungs {
            let name = format!("`{}`", short(rung.variant.name));
            let mut headings = text.lines().filter(|line| line.starts_with("### "));
            assert!(
                headings.any(|line| line.contains(&name)),
                "{}",
                rung.variant.name
            );
        }
    }
}

/// Texts of comments of this kind, and what follows each.
fn remarks<'a>(text: &'a str, kind: &str) -> Vec<(&'a str, &'a str)> {
    let start = format!("<!-- {kind}: ");
    let found = text.match_indices(&start).map(|(at, _)| {
        let (remark, rest) = text[at + start.len()..]
            .split_once(" -->")
            .expect("a whole comment");
        (remark, rest)
    });
    found.collect()
}

/// Returns whether the lines of `quoted` are among those of `source`, together but for `…`.
fn quotes(quoted: &str, source: &str) -> bool {
    let lines: Vec<&str> = source.lines().map(str::trim).collect();
    let mut from = 0;
    quoted.split("\n…\n").all(|part| {
        let part: Vec<&str> = part.lines().map(str::trim).collect();
        let rest = lines.get(from..).unwrap_or_default();
        let found = rest.windows(part.len()).position(|window| window == part);
        from += found.unwrap_or_default() + part.len();
        found.is_some()
    })
}

#[test]
fn quotations_are_found_where_they_are() {
    let source = "fn a() {\n    let x = 1;\n    let y = 2;\n    x + y\n}";
    assert!(quotes("let x = 1;\nlet y = 2;", source));
    assert!(quotes("fn a() {\n…\n    x + y\n}", source));
    assert!(!quotes("let y = 2;\n…\nlet x = 1;", source));
    assert!(!quotes("let z = 1;", source));
}

#[test]
fn quoted_code_is_in_the_sources() {
    let mut count = 0;
    let others = ["docs/kernels.md", "docs/emulator.md"].map(|path| root().join(path));
    for page in STUDIES.iter().map(page).chain(others) {
        let text = read(&page);
        for (path, rest) in remarks(&text, "source") {
            let block = rest.trim_start().strip_prefix("```rust\n");
            let (code, _) = block
                .and_then(|b| b.split_once("\n```"))
                .expect("a block of Rust");
            let source = read(&root().join(path));
            assert!(quotes(code, &source), "{path} has no\n{code}");
            count += 1;
        }
    }
    assert!(count >= 8, "only {count} quotations");
}

#[test]
fn what_is_said_of_measurements_holds() {
    for study in STUDIES {
        let text = read(&page(study));
        for (claim, _) in remarks(&text, "measured") {
            let record = record(study).unwrap_or_else(|| panic!("{claim}: there is no record"));
            let (ratio, low, high) = measured(claim, &record)
                .unwrap_or_else(|| panic!("{}: cannot find `{claim}`", study.name));
            assert!(low <= ratio && ratio <= high, "{claim}: it is {ratio:.2}");
        }
    }
}

/// The ratio that a claim is about, and its bounds.
fn measured(claim: &str, record: &BenchRecord) -> Option<(f64, f64, f64)> {
    let (what, bounds) = claim.split_once(": ")?;
    let (kernels, bodies) = what.split_once(" at ")?;
    let (fast, slow) = kernels.split_once(" / ")?;
    let (low, high) = bounds.split_once(" to ")?;
    let rate = |kernel| Some(record.row(kernel, bodies.parse().ok()?)?.rate);
    Some((
        rate(fast)? / rate(slow)?,
        low.parse().ok()?,
        high.parse().ok()?,
    ))
}
