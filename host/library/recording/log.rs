//! The diagnostics of a run as files that grow: CSV for tables, JSON lines for programs.
//!
//! A row is written in one piece and appended. A run that was killed may leave half a row, and rows
//! of steps after its last checkpoint: on resuming, both are cut off, so that the files end as they
//! would have without the stop.

use std::fmt::Write as _;
use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Seek, SeekFrom, Write};
use std::path::Path;

use super::heading::{Column, Heading};
use crate::diagnostics::Sample;

/// The files' names in a run's folder.
pub(super) const NAMES: [&str; 2] = ["diagnostics.csv", "diagnostics.jsonl"];

/// Both files, open at their ends.
#[derive(Debug)]
pub(super) struct Log {
    csv: File,
    jsonl: File,
    /// Factors of the columns of the table.
    of_csv: Vec<f64>,
    /// Names and factors of the members of the lines.
    of_jsonl: (Vec<String>, Vec<f64>),
}

/// Columns after the steps.
fn columns() -> Vec<Column> {
    Sample::COLUMNS.into_iter().zip(Sample::MEASURED).collect()
}

impl Log {
    /// New files in `folder`.
    pub(super) fn create(folder: &Path, heading: &Heading) -> io::Result<Self> {
        let [csv, jsonl] = NAMES.map(|name| {
            OpenOptions::new()
                .append(true)
                .create_new(true)
                .open(folder.join(name))
        });
        let (mut csv, jsonl) = (csv?, jsonl?);
        write_header(&mut csv, heading)?;
        Ok(Self::of([csv, jsonl], [heading, heading]))
    }

    /// The files of `folder`, without what comes after `steps`; new where they are not there. Also
    /// names the rows before that are damaged, which stay.
    pub(super) fn resume(
        folder: &Path,
        steps: u64,
        heading: &Heading,
    ) -> io::Result<(Self, Vec<String>)> {
        let (mut csv, mut jsonl) = (open(folder, NAMES[0])?, open(folder, NAMES[1])?);
        let of_csv = cut(&mut csv, 1, steps, |row| {
            row.split(',').next()?.parse().ok()
        })?;
        let of_jsonl = cut(&mut jsonl, 0, steps, |row| {
            let rest = row.strip_prefix("{\"step\":")?;
            rest.split(',').next()?.parse().ok()
        })?;
        let (header, row) = (first_line(&mut csv)?, first_line(&mut jsonl)?);
        let of_row = |_, name: &str| row.contains(&format!("\"{name}\":"));
        // A file that is lost begins again in the units of the other.
        let other = match header.is_empty() {
            true => heading.of_table(&columns(), of_row),
            false => heading.of_first_line(&columns(), &header),
        };
        let headings = [
            other.of_first_line(&columns(), &header),
            other.of_table(&columns(), of_row),
        ];
        if header.is_empty() {
            write_header(&mut csv, &headings[0])?;
        }
        let damaged = [(NAMES[0], of_csv), (NAMES[1], of_jsonl)].map(|(name, lines)| {
            let first = lines.first()?;
            let others = match lines.len() - 1 {
                0 => String::new(),
                others => format!(" and {others} more"),
            };
            Some(format!(
                "{name}: line {first}{others} cannot be read, and stays as it is"
            ))
        });
        let log = Self::of([csv, jsonl], headings.each_ref());
        Ok((log, damaged.into_iter().flatten().collect()))
    }

    fn of([csv, jsonl]: [File; 2], [of_csv, of_jsonl]: [&Heading; 2]) -> Self {
        let columns = columns();
        Self {
            csv,
            jsonl,
            of_csv: of_csv.factors(&columns),
            of_jsonl: (of_jsonl.names(&columns), of_jsonl.factors(&columns)),
        }
    }

    /// Factors from the values of a sample to the numbers in the table.
    pub(super) fn factors(&self) -> &[f64] {
        &self.of_csv
    }

    /// Appends a row to both.
    pub(super) fn append(&mut self, sample: &Sample) -> io::Result<()> {
        let numbers = |factors: &[f64]| -> Vec<f64> {
            let values = sample.values().into_iter().zip(factors);
            values.map(|(value, factor)| factor * value).collect()
        };
        let row = csv_row(sample.steps, &numbers(&self.of_csv));
        self.csv.write_all(row.as_bytes())?;
        let (names, factors) = &self.of_jsonl;
        let row = json_row(sample.steps, names, &numbers(factors));
        self.jsonl.write_all(row.as_bytes())
    }

    /// Makes what was appended survive a power cut.
    pub(super) fn sync(&self) -> io::Result<()> {
        self.csv.sync_data()?;
        self.jsonl.sync_data()
    }
}

/// A table of `folder`, to be read and appended to; a new one where it is not there.
pub(super) fn open(folder: &Path, name: &str) -> io::Result<File> {
    let path = folder.join(name);
    // A pipe would be waited for.
    if path.exists() && !path.is_file() {
        let why = format!("{} is not a regular file", path.display());
        return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
    }
    let mut options = OpenOptions::new();
    options.read(true).append(true).create(true).open(path)
}

fn write_header(csv: &mut File, heading: &Heading) -> io::Result<()> {
    let header = format!("step,{}\n", heading.names(&columns()).join(","));
    csv.write_all(header.as_bytes())
}

/// The first line of a table, as far as it can be read; the table is then at its end again.
pub(super) fn first_line(file: &mut File) -> io::Result<String> {
    file.seek(SeekFrom::Start(0))?;
    let mut line = vec![];
    BufReader::new(&mut *file).read_until(b'\n', &mut line)?;
    file.seek(SeekFrom::End(0))?;
    Ok(String::from_utf8_lossy(&line).trim_end().to_owned())
}

/// Keeps `header` rows and those after them up to `steps`. Returns the lines among them that are
/// damaged; half a row at the end is cut off.
pub(super) fn cut(
    file: &mut File,
    header: usize,
    steps: u64,
    step_of: impl Fn(&str) -> Option<u64>,
) -> io::Result<Vec<usize>> {
    let mut reader = BufReader::new(&mut *file);
    let (mut kept, mut read, mut row) = (0, 0, vec![]);
    let (mut damaged, mut not_yet) = (vec![], vec![]);
    for index in 0.. {
        row.clear();
        read += reader.read_until(b'\n', &mut row)? as u64;
        if row.last() != Some(&b'\n') {
            break;
        }
        match std::str::from_utf8(&row).ok().and_then(&step_of) {
            _ if index < header => kept = read,
            Some(step) if step > steps => break,
            Some(_) => {
                kept = read;
                damaged.append(&mut not_yet);
            }
            // Kept if a row follows that is.
            None => not_yet.push(index + 1),
        }
    }
    file.set_len(kept)?;
    file.seek(SeekFrom::End(0))?;
    Ok(damaged)
}

/// Numbers in the shortest form that reads back the same; nothing where there is no number.
fn csv_row(steps: u64, numbers: &[f64]) -> String {
    let mut row = steps.to_string();
    for value in numbers {
        if value.is_finite() {
            write!(row, ",{value:?}").expect("a string takes all");
        } else {
            row.push(',');
        }
    }
    row.push('\n');
    row
}

/// Like [`csv_row`], but as JSON, with `null` for missing numbers.
fn json_row(steps: u64, names: &[String], numbers: &[f64]) -> String {
    let mut row = format!("{{\"step\":{steps}");
    for (name, value) in names.iter().zip(numbers) {
        if value.is_finite() {
            write!(row, ",\"{name}\":{value:?}").expect("a string takes all");
        } else {
            write!(row, ",\"{name}\":null").expect("a string takes all");
        }
    }
    row.push_str("}\n");
    row
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnostics::Conserved;
    use crate::force::cpu::samples::cloud;
    use crate::physics::{ForceLaw, Physics};
    use std::fs;

    fn sample(steps: u64) -> Sample {
        let physics = Physics {
            law: ForceLaw::Gravity,
            g: 1.0,
            softening: 0.0,
        };
        let bodies = cloud(5, steps);
        let conserved =
            Conserved::measure(0.1 * steps as f64, &bodies, &physics, Default::default());
        Sample::measure(steps, conserved, &conserved, &bodies, &physics)
    }

    fn contents(folder: &Path) -> [String; 2] {
        NAMES.map(|name| fs::read_to_string(folder.join(name)).unwrap())
    }

    #[test]
    fn rows_read_back() {
        let folder = tempfile::tempdir().unwrap();
        let mut log = Log::create(folder.path(), &Heading::BARE).unwrap();
        log.append(&sample(10)).unwrap();
        let [csv, jsonl] = contents(folder.path());
        let (header, row) = csv.split_once('\n').unwrap();
        let cells: Vec<_> = row.trim_end().split(',').collect();
        assert_eq!(header.split(',').count(), cells.len());
        for (cell, value) in cells[1..].iter().zip(sample(10).values()) {
            assert!(
                cell.is_empty() && value.is_nan() || cell.parse() == Ok(value),
                "{cell}"
            );
        }
        assert!(
            jsonl.starts_with("{\"step\":10,\"time\":1.0,\"kinetic\":0.0,"),
            "{jsonl}"
        );
        assert!(
            jsonl.ends_with("}\n") && jsonl.contains("\"virial_ratio\":null"),
            "{jsonl}"
        );
        assert!(
            Log::create(folder.path(), &Heading::BARE).is_err(),
            "does not replace"
        );
    }

    #[test]
    fn a_file_that_is_lost_begins_again_and_the_other_goes_on() {
        for lost in [0, 1] {
            let folder = tempfile::tempdir().unwrap();
            let mut log = Log::create(folder.path(), &Heading::BARE).unwrap();
            log.append(&sample(0)).unwrap();
            fs::remove_file(folder.path().join(NAMES[lost])).unwrap();
            let (mut log, _) = Log::resume(folder.path(), 0, &Heading::BARE).unwrap();
            log.append(&sample(10)).unwrap();
            let rows = contents(folder.path()).map(|text| text.lines().count());
            assert_eq!(rows, [[2, 2], [3, 1]][lost]);
            assert!(contents(folder.path())[0].starts_with("step,time,"));
        }
    }

    #[test]
    fn what_comes_after_a_checkpoint_is_cut_off() {
        let folder = tempfile::tempdir().unwrap();
        let mut log = Log::create(folder.path(), &Heading::BARE).unwrap();
        log.append(&sample(0)).unwrap();
        log.append(&sample(10)).unwrap();
        let expected = contents(folder.path());
        log.append(&sample(20)).unwrap();
        let [mut csv, jsonl] = contents(folder.path());
        csv.push_str("30,1.5,0.2"); // killed while writing
        for torn in [expected[1].len() - 5, jsonl.len() - 3, jsonl.len()] {
            fs::write(folder.path().join(NAMES[0]), &csv).unwrap();
            fs::write(folder.path().join(NAMES[1]), &jsonl[..torn]).unwrap();
            let kept = if torn < expected[1].len() { 0 } else { 19 };
            drop(Log::resume(folder.path(), kept, &Heading::BARE).unwrap());
            let (mut log, _) = Log::resume(folder.path(), kept, &Heading::BARE).unwrap();
            if kept == 0 {
                log.append(&sample(10)).unwrap();
            }
            assert_eq!(contents(folder.path()), expected);
        }
    }
    #[test]
    fn damaged_rows_are_named_and_cost_no_others() {
        let folder = tempfile::tempdir().unwrap();
        let mut log = Log::create(folder.path(), &Heading::BARE).unwrap();
        (0..20).for_each(|i| log.append(&sample(10 * i)).unwrap());
        drop(log);
        let path = folder.path().join(NAMES[0]);
        let mut csv = fs::read(&path).unwrap();
        let starts: Vec<usize> = (0..csv.len()).filter(|&i| csv[i] == b'\n').collect();
        csv[starts[4] + 1] = b'x';
        csv[starts[7] + 1] = 0xff; // not UTF-8
        fs::write(&path, &csv).unwrap();
        let (_, found) = Log::resume(folder.path(), 150, &Heading::BARE).unwrap();
        let rows = fs::read(&path).unwrap();
        assert_eq!(rows.iter().filter(|&&byte| byte == b'\n').count(), 17);
        assert_eq!(rows, csv[..rows.len()]);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(
            found[0].contains("diagnostics.csv: line 6 and 1 more"),
            "{found:?}"
        );
    }
}
