//! Points in space from files, and tables of numbers at them.
//!
//! Points come from
//!
//! * a table of `x y z`, a row per line, with commas or white space between numbers;
//! * a table with the names of its columns in the first line, including x, y and z;
//! * an array of shape `[M, 3]` as NumPy saves it (`.npy`);
//! * any snapshot: the points are the positions of its bodies.
//!
//! Tables are written as CSV or as `.npy`.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::Path;

use super::column::left_out;
use super::{
    Format, Malformed, Overwrite, Printable, ReadError, ReadFault, at_path, format_of, load, open,
    write_atomically,
};
use crate::names::{tells_of_columns, tells_of_units};
use crate::units::Units;

/// Points of a file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Points {
    /// The points; one at least.
    pub positions: Vec<[f64; 3]>,
    /// Units of their coordinates, if the file records them.
    pub units: Option<Units>,
    /// Remarks on unused content of the file, as for a [snapshot](super::Loaded).
    pub notes: Vec<String>,
}

impl From<Vec<[f64; 3]>> for Points {
    fn from(positions: Vec<[f64; 3]>) -> Self {
        Self {
            positions,
            ..Self::default()
        }
    }
}

/// Reads points.
///
/// # Errors
/// If the file is no table of points, no array of NumPy's and no snapshot, or has no points, or a number is
/// not finite.
pub fn read_points(path: &Path) -> Result<Points, ReadError> {
    let points = any_points(path)?;
    match points.positions.is_empty() {
        true => at_path(path, || {
            Err(Malformed::new("the table", "there are no points in it").into())
        }),
        false => Ok(points),
    }
}

fn any_points(path: &Path) -> Result<Points, ReadError> {
    let found = at_path(path, || {
        let (mut file, size) = open(path)?;
        let format = format_of(&mut file, size, path, None)?;
        let is_array = format == Format::Npz && is_array(&mut file)?;
        Ok((format, is_array))
    })?;
    match found {
        (_, true) => at_path(path, || read_array(path)).map(Points::from),
        (format, _) if format != Format::Csv => {
            let loaded = load(path, None)?;
            let bodies = loaded.snapshot.bodies.iter();
            Ok(Points {
                positions: bodies.map(|body| body.position).collect(),
                units: loaded.units,
                notes: loaded.notes,
            })
        }
        _ => at_path(path, || {
            let (_, _) = open(path)?;
            let text = String::from_utf8(fs::read(path)?)
                .map_err(|_| Malformed::new("the table", "it is not text"))?;
            let (positions, others) = parse(&text, ["x", "y", "z"])?;
            let note = (!others.is_empty()).then(|| left_out("columns", &others));
            Ok(Points {
                positions,
                units: None,
                notes: note
                    .map(|note| Printable(note).to_string())
                    .into_iter()
                    .collect(),
            })
        }),
    }
}

/// A column of numbers.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NumberColumn {
    /// The numbers.
    pub numbers: Vec<f64>,
    /// Ids of the bodies that they belong to, if the table has a column `id`.
    pub ids: Option<Vec<u64>>,
}

/// Reads a list of numbers: a text file with one number in each line, or a table with the names of its
/// columns in the first line, including this one. A column `id` tells the bodies that the numbers belong to.
///
/// # Errors
/// If the file is no such list, if a number is not finite, or if a comment tells other names or units.
pub fn read_column(path: &Path, name: &str) -> Result<NumberColumn, ReadError> {
    at_path(path, || {
        let (_, _) = open(path)?;
        let text = String::from_utf8(fs::read(path)?)
            .map_err(|_| Malformed::new("the table", "it is not text"))?;
        let (numbers, others) = parse(&text, [name])?;
        let numbers = numbers.into_iter().flatten().collect();
        if !others.iter().any(|other| other == "id") {
            return Ok(NumberColumn { numbers, ids: None });
        }
        let whole = |[id]: [f64; 1]| (id >= 0.0 && id.fract() == 0.0).then_some(id as u64);
        let ids: Option<Vec<u64>> = parse(&text, ["id"])?.0.into_iter().map(whole).collect();
        let problem = "it has something that is no whole number from 0 on";
        let ids = ids.ok_or_else(|| Malformed::new("the column id", problem))?;
        Ok(NumberColumn {
            numbers,
            ids: Some(ids),
        })
    })
}

/// A finite number of a plain table, also as Fortran writes it.
pub fn finite_number(word: &str) -> Option<f64> {
    let number = word.replace(['d', 'D'], "e").parse().ok();
    number.filter(|number: &f64| number.is_finite())
}

/// Refuses a table with units in its heading, up to the first line that is no comment: for readers that would not heed
/// them.
///
/// # Errors
/// The line that tells them.
pub fn check_units(text: &str) -> Result<(), Malformed> {
    check_heading(text, tells_of_units)
}

/// Refuses what [`check_units`] does, of tables without a line of names too: a comment that names columns is a fault.
fn check_heading(text: &str, tells: impl Fn(&str) -> bool) -> Result<(), Malformed> {
    for (line, text) in (1..).zip(text.lines()) {
        let text = text.trim();
        let (is_comment, is_row) = (text.starts_with('#'), !text.is_empty());
        let is_unheeded = match is_comment {
            true => tells(text),
            false => text.contains(['[', '(']),
        };
        if is_unheeded {
            let problem = format!(
                "units, and names in a comment, are not read here (`{}`): put the names alone into a line of their own, \
                 and give numbers in the units of the bodies",
                text.trim_start_matches('#').trim()
            );
            return Err(Malformed::new(format!("line {line}"), problem));
        }
        if is_row && !is_comment {
            break;
        }
    }
    Ok(())
}

/// These columns of a table, and the names of the others.
fn parse<const N: usize>(
    text: &str,
    names: [&str; N],
) -> Result<(Vec<[f64; N]>, Vec<String>), ReadFault> {
    let mut columns: Option<[usize; N]> = None;
    let (mut points, mut others) = (vec![], vec![]);
    let wanted = names.join(" ");
    check_heading(text, |comment| tells_of_columns(comment, &names))?;
    for (line, text) in (1..).zip(text.lines()) {
        let text = text.trim();
        if text.is_empty() || text.starts_with('#') {
            continue;
        }
        let words = text.split(|c: char| c == ',' || c == ';' || c.is_whitespace());
        let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
        let malformed = |problem: String| Malformed::new(format!("line {line}"), problem);
        if columns.is_none() && words.iter().all(|word| word.parse::<f64>().is_err()) {
            let mut found = [0; N];
            for (found, name) in found.iter_mut().zip(names) {
                let column = words.iter().position(|word| *word == name);
                *found = column.ok_or_else(|| malformed(format!("no column {name}: `{text}`")))?;
            }
            columns = Some(found);
            let others_here = words.iter().filter(|word| !names.contains(*word));
            others = others_here.map(|&word| word.to_owned()).collect();
            continue;
        }
        if columns.is_none() && words.len() != N {
            let problem = format!("a row should be {wanted}, or columns be named: `{text}`");
            return Err(malformed(problem).into());
        }
        let mut point = [0.0; N];
        let columns = *columns.get_or_insert(std::array::from_fn(|k| k));
        for (x, column) in point.iter_mut().zip(columns) {
            let word = words.get(column).copied().unwrap_or_default();
            *x = finite_number(word)
                .ok_or_else(|| malformed(format!("`{word}` is not a finite number")))?;
        }
        points.push(point);
    }
    Ok((points, others))
}

/// Returns whether the file is a single array of NumPy's.
fn is_array(file: &mut File) -> io::Result<bool> {
    let mut start = [0; 6];
    let read = file.read_exact(&mut start);
    Ok(read.is_ok() && start == *b"\x93NUMPY")
}

#[cfg(feature = "npz")]
fn read_array(path: &Path) -> Result<Vec<[f64; 3]>, ReadFault> {
    let (file, size) = open(path)?;
    super::npz::read_points(io::BufReader::new(file), size)
}

#[cfg(not(feature = "npz"))]
fn read_array(_: &Path) -> Result<Vec<[f64; 3]>, ReadFault> {
    Err(ReadFault::NotBuilt(Format::Npz))
}

/// Writes a table of numbers: CSV with these columns, or an array of shape `[rows, columns]` where the
/// name ends with `.npy`.
///
/// # Errors
/// The file system's refusal; or that a file is there already.
///
/// # Panics
/// If there are not as many numbers as rows of these columns.
pub fn write_table(
    path: &Path,
    columns: &[&str],
    numbers: &[f64],
    overwrite: Overwrite,
) -> io::Result<()> {
    assert!(numbers.len().is_multiple_of(columns.len()), "whole rows");
    let is_array = path.extension().is_some_and(|extension| extension == "npy");
    write_atomically(path, overwrite, |file| -> io::Result<()> {
        if is_array {
            return write_array(file, columns.len(), numbers);
        }
        writeln!(file, "{}", columns.join(","))?;
        let mut text = String::new();
        for row in numbers.chunks(columns.len()) {
            text.clear();
            for (k, number) in row.iter().enumerate() {
                let comma = if k > 0 { "," } else { "" };
                write!(text, "{comma}{number:?}").expect("a string takes all");
            }
            text.push('\n');
            file.write_all(text.as_bytes())?;
        }
        Ok(())
    })
}

#[cfg(feature = "npz")]
fn write_array(file: &mut impl Write, columns: usize, numbers: &[f64]) -> io::Result<()> {
    super::npz::write_array(file, columns, numbers)
}

#[cfg(not(feature = "npz"))]
fn write_array(_: &mut impl Write, _: usize, _: &[f64]) -> io::Result<()> {
    Err(io::Error::new(
        io::ErrorKind::Unsupported,
        "this build cannot write .npy: build Allpairs with the feature `npz`",
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_read() {
        let points = vec![[1.0, 2.0, 3.0], [-4.0, 5e3, 0.0]];
        for text in [
            "1 2 3\n-4 5e3 0\n",
            "# points\n1,2,3\n\n-4, 5e3, 0",
            "x,y,z\n1,2,3\n-4,5000,0\n",
            "id,z,y,x\n1,3,2,1\n2,0,5000,-4\n",
            "# x y z\n1;2;3\n-4;5D3;0\n",
        ] {
            assert_eq!(parse(text, ["x", "y", "z"]).unwrap().0, points, "{text}");
        }
        assert!(parse("", ["x", "y", "z"]).unwrap().0.is_empty());
        let (radii, others) = parse("x,radius\n3,4\n", ["radius"]).unwrap();
        assert_eq!((radii, others), (vec![[4.0]], vec!["x".to_owned()]));
        for (text, part) in [
            ("1 2\n", "line 1: a row should be x y z"),
            ("# z y x\n1 2 3\n", "line 1: units, and names in a comment"),
            (
                "# units: kpc\n1 2 3\n",
                "line 1: units, and names in a comment",
            ),
            (
                "x [kpc],y [kpc],z [kpc]\n1,2,3\n",
                "line 1: units, and names in a comment",
            ),
            ("1 2 3\n1 2 q\n", "line 2: `q` is not a finite number"),
            ("x,y\n1,2\n", "no column z"),
            ("1 2 3\n1 2\n", "line 2: `` is not"),
            ("1 2 nan\n", "`nan` is not a finite number"),
        ] {
            let fault = parse(text, ["x", "y", "z"]).unwrap_err().to_string();
            assert!(fault.contains(part), "{text}: {fault}");
        }
    }

    #[cfg(feature = "npz")]
    #[test]
    fn arrays_come_back() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("points.npy");
        let points = vec![[1.0, 2.0, 3.0], [-4.0, 5e3, 0.0]];
        let columns = ["x", "y", "z"];
        write_table(&path, &columns, points.as_flattened(), Overwrite::Refuse).unwrap();
        assert_eq!(read_points(&path).unwrap(), Points::from(points));
        let whole = fs::read(&path).unwrap();
        assert_eq!(whole.len(), 128 + 48);
        for cut in 0..whole.len() {
            fs::write(&path, &whole[..cut]).unwrap();
            assert!(read_points(&path).is_err(), "{cut}");
        }
        fs::write(&path, [&whole[..], &[0]].concat()).unwrap();
        assert!(read_points(&path).is_err());
        let four = [0.0; 8];
        write_table(&path, &["a"; 4], &four, Overwrite::Allow).unwrap();
        let fault = read_points(&path).unwrap_err().to_string();
        assert!(fault.contains("[2, 4]"), "{fault}");
        write_table(&path, &columns, &[1.0, f64::NAN, 0.0], Overwrite::Allow).unwrap();
        assert!(read_points(&path).is_err());
    }
}
