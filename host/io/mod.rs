//! Snapshots: the state of all bodies at one time, as files.
//!
//! Two formats: [Tipsy](tipsy), the binary format that astrophysics readers such as pynbody and
//! yt know, and [CSV](csv), which everything else knows.
//! ```text
//! read(path, None)                  format by the name, Tipsy dialect by the content
//! read(path, Some(format))          exactly this format, or a fault that says why not
//! write(path, format, &snapshot, Overwrite::Refuse)
//! ```
//! Files are read as streams: besides the bodies (and, for Tipsy, a set of their ids while it is
//! settled whether they are ids), memory stays constant. Nothing is allocated on
//! the word of a header before the file's size has confirmed it.

mod atomic;
pub mod csv;
pub mod tipsy;

use std::fmt;
use std::fs::{self, File};
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use thiserror::Error;

use crate::bodies::{Bodies, BodyFault};

pub use atomic::{Overwrite, write_atomically};
pub use csv::CsvFault;
pub use tipsy::{TipsyDialect, TipsyFault};

/// The bodies at one time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Snapshot {
    /// Simulation time, in the units of the bodies.
    pub time: f64,
    /// The bodies.
    pub bodies: Bodies,
}

/// A snapshot file format.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Format {
    /// Tipsy in single precision, see [`tipsy`].
    Tipsy(TipsyDialect),
    /// Text in double precision, see [`csv`].
    Csv,
}

impl Format {
    /// All formats.
    pub const ALL: [Format; 4] = [
        Format::Tipsy(TipsyDialect::Standard),
        Format::Tipsy(TipsyDialect::Native),
        Format::Tipsy(TipsyDialect::WithIds),
        Format::Csv,
    ];

    /// The name by which [`FromStr`] knows the format.
    pub fn name(self) -> &'static str {
        match self {
            Format::Tipsy(TipsyDialect::Standard) => "tipsy",
            Format::Tipsy(TipsyDialect::Native) => "tipsy-native",
            Format::Tipsy(TipsyDialect::WithIds) => "tipsy-ids",
            Format::Csv => "csv",
        }
    }

    /// One line on what the format holds.
    pub fn summary(self) -> &'static str {
        match self {
            Format::Tipsy(TipsyDialect::Standard) => "Tipsy, big-endian f32, no ids",
            Format::Tipsy(TipsyDialect::Native) => "Tipsy, little-endian f32, no ids",
            Format::Tipsy(TipsyDialect::WithIds) => {
                "Tipsy, little-endian f32, an i32 id in the place of the potential"
            }
            Format::Csv => "text, f64 without loss: x,y,z,vx,vy,vz,mass[,id][,kind]",
        }
    }

    /// The extension of file names by which [`Format::from_path`] knows the format, or, of
    /// Tipsy's dialects, the reader.
    pub fn extension(self) -> &'static str {
        match self {
            Format::Tipsy(TipsyDialect::WithIds) => "bin",
            Format::Tipsy(_) => "tipsy",
            Format::Csv => "csv",
        }
    }

    /// The format that a file name asks for: `.csv`; `.tipsy`, `.tip`, `.std` and step numbers
    /// such as `run.00128` (standard Tipsy); `.bin` (Tipsy with ids). `None` for other names.
    ///
    /// When reading, a Tipsy dialect found here is only a name: the content decides.
    pub fn from_path(path: &Path) -> Option<Format> {
        let extension = path.extension()?.to_str()?.to_ascii_lowercase();
        match extension.as_str() {
            "csv" => Some(Format::Csv),
            "tipsy" | "tip" | "std" => Some(Format::Tipsy(TipsyDialect::Standard)),
            "bin" => Some(Format::Tipsy(TipsyDialect::WithIds)),
            step if step.bytes().all(|byte| byte.is_ascii_digit()) => {
                Some(Format::Tipsy(TipsyDialect::Standard))
            }
            _ => None,
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A format name that is not in [`Format::ALL`].
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "no snapshot format is called `{0}`; there are {names}",
    names = Format::ALL.map(Format::name).join(", ")
)]
pub struct UnknownFormatName(String);

impl FromStr for Format {
    type Err = UnknownFormatName;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        Format::ALL
            .into_iter()
            .find(|format| format.name().eq_ignore_ascii_case(name))
            .ok_or_else(|| UnknownFormatName(name.to_owned()))
    }
}

/// A snapshot that could not be read: which file, and why.
#[derive(Debug, Error)]
#[error("cannot read snapshot `{}`: {fault}", path.display())]
pub struct ReadError {
    /// The file, or what [`read_from`] was told to call it.
    pub path: PathBuf,
    /// The reason.
    pub fault: ReadFault,
}

/// Why a snapshot could not be read.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ReadFault {
    /// There is no such file.
    #[error("there is no such file; check the name and the current folder")]
    NotFound,
    /// The path leads to a folder or a device. Readers need to know a file's size.
    #[error("this is a folder or a device, not a regular file; name a snapshot file")]
    NotAFile,
    /// The file has no content.
    #[error("the file is empty (0 bytes); it was never written or its writer failed")]
    Empty,
    /// Neither was a format given nor does the file's name tell it.
    #[error(
        "the file name does not tell the format (known are .csv, .tipsy, .tip, .std, .bin and step \
         numbers such as .00128); rename the file or give the format"
    )]
    UnknownFormat,
    /// The file is well-formed but holds no bodies.
    #[error("the snapshot holds no bodies, there is nothing to simulate")]
    NoBodies,
    /// More bodies than memory.
    #[error("there is no memory for {bodies} bodies; use a machine with more or fewer bodies")]
    OutOfMemory {
        /// The number of bodies, as confirmed by the file's size.
        bodies: usize,
    },
    /// Not a sound Tipsy file.
    #[error("{0}")]
    Tipsy(TipsyFault),
    /// Not a sound CSV file.
    #[error("line {line}: {fault}")]
    Csv {
        /// Line of the file, counted from 1.
        line: u64,
        /// What is wrong there.
        fault: CsvFault,
    },
    /// The file system failed.
    #[error("{0}")]
    Io(#[from] io::Error),
}

/// A snapshot that could not be written: which file, and why. What was there before still is.
#[derive(Debug, Error)]
#[error("cannot write snapshot `{}`: {fault}", path.display())]
pub struct WriteError {
    /// The file.
    pub path: PathBuf,
    /// The reason.
    pub fault: WriteFault,
}

/// Why a snapshot could not be written. Bodies are counted from 0.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum WriteFault {
    /// No bodies: a file without any could not be read again.
    #[error("the snapshot holds no bodies, there is nothing to write")]
    NoBodies,
    /// The time is infinite or not a number.
    #[error("the snapshot's time = {0} is not a finite number")]
    Time(f64),
    /// The state itself is broken.
    #[error("{0}; the simulation went wrong before this snapshot")]
    Bodies(#[from] BodyFault),
    /// A value that the format's single precision cannot hold: one that would become infinite, or
    /// a mass that would vanish.
    #[error(
        "body {body}: {field} = {value:e} does not fit single precision; change the units or write \
         csv"
    )]
    SinglePrecision {
        /// Index of the body.
        body: usize,
        /// Name of the field.
        field: &'static str,
        /// The value in double precision.
        value: f64,
    },
    /// An id that the format cannot hold.
    #[error(
        "body {body}: id {id} is too large, {format} holds ids up to {max}; renumber the bodies or \
         write csv",
        format = Format::Tipsy(TipsyDialect::WithIds),
        max = tipsy::MAX_ID
    )]
    IdTooLarge {
        /// Index of the body.
        body: usize,
        /// Its id.
        id: u64,
    },
    /// Two bodies of one id, by which a reader could not tell ids from potentials.
    #[error(
        "id {id} belongs to more than one body, {format} needs distinct ids; renumber the bodies \
         or write csv",
        format = Format::Tipsy(TipsyDialect::WithIds)
    )]
    DuplicateId {
        /// The id.
        id: u64,
    },
    /// More bodies than the format's counters can tell.
    #[error("{bodies} bodies are more than a Tipsy header can count (2147483647); write csv")]
    TooManyBodies {
        /// The number of bodies.
        bodies: usize,
    },
    /// The file system failed, or the file is there and [`Overwrite::Refuse`] was asked for.
    #[error("{0}")]
    Io(#[from] io::Error),
}

/// Reads the snapshot at `path`: in `format` if one is given, else in the one that the file's name
/// tells ([`Format::from_path`]). Returns the format as well: of Tipsy's dialects, the one found.
///
/// # Errors
/// [`ReadError`] names the file, the place and the body.
pub fn read(path: &Path, format: Option<Format>) -> Result<(Snapshot, Format), ReadError> {
    let open = || match fs::metadata(path) {
        Ok(metadata) if metadata.is_file() => Ok(File::open(path)?),
        Ok(_) => Err(ReadFault::NotAFile),
        Err(fault) if fault.kind() == io::ErrorKind::NotFound => Err(ReadFault::NotFound),
        Err(fault) => Err(fault.into()),
    };
    match open() {
        Ok(file) => read_from(file, path, format),
        Err(fault) => Err(ReadError {
            path: path.to_owned(),
            fault,
        }),
    }
}

/// Reads a snapshot from anything with a beginning and an end, for instance an embedded file:
/// `read_from(io::Cursor::new(bytes), Path::new("galaxy.bin"), None)`. `name` stands for the path
/// in faults, and its extension for the format if none is given. Reading starts at the beginning,
/// wherever the reader stands.
///
/// # Errors
/// See [`read`].
pub fn read_from<R: Read + Seek>(
    reader: R,
    name: &Path,
    format: Option<Format>,
) -> Result<(Snapshot, Format), ReadError> {
    let mut reader = BufReader::with_capacity(1 << 16, reader);
    let mut parse = || {
        let size = reader.seek(SeekFrom::End(0))?;
        reader.rewind()?;
        if size == 0 {
            return Err(ReadFault::Empty);
        }
        match format.or(Format::from_path(name)) {
            Some(Format::Tipsy(dialect)) => {
                let (snapshot, dialect) =
                    tipsy::read(&mut reader, size, format.is_some().then_some(dialect))?;
                Ok((snapshot, Format::Tipsy(dialect)))
            }
            Some(Format::Csv) => Ok((csv::read(&mut reader)?, Format::Csv)),
            None => Err(ReadFault::UnknownFormat),
        }
    };
    parse().map_err(|fault| ReadError {
        path: name.to_owned(),
        fault,
    })
}

/// Writes `snapshot` to `path` in `format`, whole or not at all. [`Format::from_path`] tells the
/// format that suits a name.
///
/// Tipsy holds f32 and groups bodies by kind; only [`TipsyDialect::WithIds`] and CSV keep ids.
///
/// # Errors
/// [`WriteError`] names the file and the body.
pub fn write(
    path: &Path,
    format: Format,
    snapshot: &Snapshot,
    overwrite: Overwrite,
) -> Result<(), WriteError> {
    let attempt = || {
        snapshot.bodies.check()?;
        if snapshot.bodies.is_empty() {
            return Err(WriteFault::NoBodies);
        }
        if !snapshot.time.is_finite() {
            return Err(WriteFault::Time(snapshot.time));
        }
        write_atomically(path, overwrite, |file| match format {
            Format::Tipsy(dialect) => tipsy::write(file, dialect, snapshot),
            Format::Csv => csv::write(file, snapshot),
        })
    };
    attempt().map_err(|fault| WriteError {
        path: path.to_owned(),
        fault,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bodies::{Body, Kind};

    /// Bodies of all kinds, in mixed order, whose values are exact in f32.
    fn snapshot(n: u64) -> Snapshot {
        let bodies = (0..n)
            .map(|i| {
                let t = i as f64;
                Body {
                    position: [t / 8.0, -t, 1.0 + t / 1024.0],
                    velocity: [0.25 * t, -0.0, -3.0],
                    mass: t / 2.0,
                    id: 3 * i + 1_000,
                    kind: Kind::ALL[(i % 3) as usize],
                }
            })
            .collect();
        Snapshot { time: -2.5, bodies }
    }

    /// What Tipsy makes of it: grouped by kind and, without ids, renumbered.
    fn as_tipsy_sees(snapshot: &Snapshot, dialect: TipsyDialect) -> Snapshot {
        let of = |kind| snapshot.bodies.iter().filter(move |body| body.kind == kind);
        let mut bodies: Bodies = Kind::ALL.into_iter().flat_map(of).collect();
        if dialect != TipsyDialect::WithIds {
            bodies.number_ids();
        }
        Snapshot {
            time: snapshot.time,
            bodies,
        }
    }

    #[test]
    fn every_format_round_trips_through_a_file() {
        let folder = tempfile::tempdir().unwrap();
        for format in Format::ALL {
            for n in [1, 2, 3, 100] {
                let path = folder.path().join(format!("{n}.{}", format.name()));
                let written = snapshot(n);
                write(&path, format, &written, Overwrite::Refuse).unwrap();
                let expected = match format {
                    Format::Tipsy(dialect) => as_tipsy_sees(&written, dialect),
                    Format::Csv => written,
                };
                assert_eq!(
                    read(&path, Some(format)).unwrap(),
                    (expected, format),
                    "{format} {n}"
                );
            }
        }
    }

    #[test]
    fn dialects_are_detected() {
        let folder = tempfile::tempdir().unwrap();
        for format in Format::ALL {
            // A single id 0 is the same file as a single potential 0: see `tipsy`.
            for n in [2, 3, 100] {
                let name = if format == Format::Csv {
                    "a.csv"
                } else {
                    "a.00001"
                };
                let path = folder.path().join(name);
                write(&path, format, &snapshot(n), Overwrite::Allow).unwrap();
                assert_eq!(read(&path, None).unwrap().1, format);
            }
        }
    }

    #[test]
    fn names_tell_formats() {
        let standard = Some(Format::Tipsy(TipsyDialect::Standard));
        for (name, format) in [
            ("a.csv", Some(Format::Csv)),
            ("a.CSV", Some(Format::Csv)),
            ("b/run.00128", standard),
            ("a.std", standard),
            ("galaxy_20K.bin", Some(Format::Tipsy(TipsyDialect::WithIds))),
            ("a.hdf5", None),
            ("csv", None),
            ("", None),
        ] {
            assert_eq!(Format::from_path(Path::new(name)), format, "{name}");
        }
        for format in Format::ALL {
            assert_eq!(format.name().parse(), Ok(format));
        }
        let message = "hdf5".parse::<Format>().unwrap_err().to_string();
        assert!(
            message.contains("`hdf5`") && message.contains("tipsy-ids"),
            "{message}"
        );
    }

    #[test]
    fn paths_that_hold_no_snapshot_are_explained() {
        let folder = tempfile::tempdir().unwrap();
        let fault = |path: &Path| read(path, None).unwrap_err().fault;
        assert!(matches!(
            fault(&folder.path().join("none.bin")),
            ReadFault::NotFound
        ));
        assert!(matches!(fault(folder.path()), ReadFault::NotAFile));

        let path = folder.path().join("a.bin");
        File::create(&path).unwrap();
        assert!(matches!(fault(&path), ReadFault::Empty));

        let path = folder.path().join("a.dat");
        fs::write(&path, "x").unwrap();
        let error = read(&path, None).unwrap_err();
        assert!(matches!(error.fault, ReadFault::UnknownFormat));
        assert!(error.to_string().contains("a.dat"));
    }

    #[test]
    fn what_cannot_be_written_leaves_no_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        let fault = |format, snapshot: &Snapshot| {
            let fault = write(&path, format, snapshot, Overwrite::Allow)
                .unwrap_err()
                .fault;
            assert!(!path.exists());
            fault
        };
        let mut broken = snapshot(5);
        broken.bodies.z[4] = f64::NAN;
        let mut timeless = snapshot(5);
        timeless.time = f64::NAN;
        for format in Format::ALL {
            assert!(matches!(
                fault(format, &Snapshot::default()),
                WriteFault::NoBodies
            ));
            assert!(matches!(fault(format, &timeless), WriteFault::Time(_)));
            let found = fault(format, &broken);
            assert!(matches!(
                found,
                WriteFault::Bodies(BodyFault::NotFinite {
                    body: 4,
                    field: "z",
                    ..
                })
            ));
        }
    }

    #[test]
    fn nothing_is_overwritten_unasked() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.csv");
        fs::write(&path, "precious").unwrap();
        let error = write(&path, Format::Csv, &snapshot(2), Overwrite::Refuse).unwrap_err();
        assert!(matches!(&error.fault, WriteFault::Io(fault)
            if fault.kind() == io::ErrorKind::AlreadyExists));
        assert_eq!(fs::read_to_string(&path).unwrap(), "precious");
    }
}
