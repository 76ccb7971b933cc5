//! Snapshots: the state of all bodies at one time, as files.
//!
//! | format | for |
//! |---|---|
//! | [Allpairs's own](binary) | runs: lossless, checksummed, mappable into memory |
//! | [HDF5](hdf5) in Gadget's layout, [Tipsy](tipsy) | astrophysics programs; pynbody, yt |
//! | [Gadget's binary formats](gadget), [NEMO](nemo), [REBOUND](rebound) | read only: what other programs wrote |
//! | [tables](peers) of PeTar and NBODY6 | codes for star clusters go on with them |
//! | [NumPy archives](npz), [CSV](csv) | Python; everything else |
//! | [VTK](vtp) | ParaView, VisIt |
//!
//! ```text
//! read(path, None)                  format by the content
//! read(path, Some(format))          exactly this format, or a fault that says why not
//! load(path, None)                  the same, with units and with notes on what was left out
//! write(path, format, &snapshot, Overwrite::Refuse)
//! ```
//! Files are read and written as streams: besides the bodies (and a copy of their ids while it is
//! settled whether they are distinct, or for Tipsy whether they are ids; for HDF5, the file that is written and one chunk of
//! the file that is read), memory stays constant. Nothing is allocated on the word of a header
//! before the file's size has confirmed it. `tests/fuzz.rs` holds the readers to this.

mod atomic;
pub mod binary;
mod column;
mod cosmology;
#[cfg(feature = "csv")]
pub mod csv;
pub mod gadget;
#[cfg(feature = "hdf5")]
pub mod hdf5;
pub mod nemo;
#[cfg(feature = "npz")]
pub mod npz;
pub mod peers;
pub mod petar;
mod pieces;
mod points;
mod printable;
pub mod rebound;
mod recognise;
mod streams;
pub mod tipsy;
pub mod vtp;

use std::fmt;
use std::fs::{self, File};
use std::io::{self, BufReader, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use thiserror::Error;

use crate::bodies::{Bodies, BodyFault};
use crate::units::Units;

pub use atomic::{Overwrite, is_partial, remove_abandoned, write_atomically};
#[cfg(feature = "pictures")]
pub(crate) use atomic::{folder_of, temporary_file};
pub use binary::BinaryFault;
pub use column::Malformed;
pub use cosmology::{UnknownVelocities, Velocities};
#[cfg(feature = "csv")]
pub use csv::CsvFault;
pub use points::{
    NumberColumn, Points, check_units, finite_number, read_column, read_points, write_table,
};
pub use printable::Printable;
pub use streams::{is_pipe, read_stream};
pub use tipsy::{TipsyDialect, TipsyFault};

/// The bodies at one time.
#[derive(Clone, Debug, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Snapshot {
    /// Simulation time, in the units of the bodies.
    pub time: f64,
    /// The bodies.
    pub bodies: Bodies,
}

/// A snapshot with all that its file records about it.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Loaded {
    /// The bodies and their time.
    pub snapshot: Snapshot,
    /// The format; of Tipsy's dialects, the one found.
    pub format: Format,
    /// Program that gave the layout of the file, where the format has several and the file tells.
    pub program: Option<&'static str>,
    /// Units of the numbers, if the format can record them and the file does.
    pub units: Option<Units>,
    /// Remarks on what the file holds and is not simulated: softening lengths of single bodies,
    /// properties of gas, a periodic box. Each is a sentence to be shown to the user; text from
    /// the file is in it with its control characters escaped.
    pub notes: Vec<String>,
}

impl Loaded {
    /// Name and layout of what was read, by the [format](Format::summary) or by the program that wrote it.
    pub fn summary(&self) -> String {
        match (self.format, self.program) {
            (Format::Hdf5 | Format::Hdf5Gzip, Some(program)) => format!("HDF5 of {program}"),
            _ => self.format.summary().to_owned(),
        }
    }
}

/// A snapshot as a format's reader returns it.
#[derive(Debug, Default)]
struct Contents {
    snapshot: Snapshot,
    /// Program that gave its layout, where the format has several.
    program: Option<&'static str>,
    units: Option<Units>,
    notes: Vec<String>,
    /// The universe, if numbers have factors of a or h.
    cosmology: Option<cosmology::Cosmology>,
}

impl From<Snapshot> for Contents {
    fn from(snapshot: Snapshot) -> Self {
        Self {
            snapshot,
            ..Self::default()
        }
    }
}

/// A snapshot file format.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Format {
    /// Allpairs's own, in double precision, see [`binary`].
    Allpairs,
    /// Tipsy in single precision, see [`tipsy`].
    Tipsy(TipsyDialect),
    /// Text in double precision, see [`csv`].
    Csv,
    /// A NumPy archive in double precision, see [`npz`].
    Npz,
    /// HDF5 in Gadget's layout and double precision, see [`hdf5`].
    Hdf5,
    /// The same, compressed as `h5py` does it with `compression="gzip"`; read as [`Format::Hdf5`].
    Hdf5Gzip,
    /// VTK XML PolyData in double precision, see [`vtp`].
    Vtp,
    /// Gadget's binary formats 1 and 2, see [`gadget`]; read, and not written.
    Gadget,
    /// Snapshots of NEMO, see [`nemo`]; read, and not written.
    Nemo,
    /// Archives of REBOUND, see [`rebound`]; read, and not written.
    Rebound,
    /// PeTar's: its input is written, see [`peers`]; this and its [binary](petar) snapshots are read.
    Petar,
    /// The table that NBODY6 reads as `dat.10`, see [`peers`].
    Nbody6,
}

impl Format {
    /// The formats that are written for other programs, and do not keep all of a snapshot.
    pub const FOR_PEERS: [Format; 2] = [Format::Petar, Format::Nbody6];

    /// All formats that are read and written, and keep all that a snapshot has, as far as numbers of their
    /// precision can.
    pub const ALL: [Format; 9] = [
        Format::Allpairs,
        Format::Tipsy(TipsyDialect::Standard),
        Format::Tipsy(TipsyDialect::Native),
        Format::Tipsy(TipsyDialect::WithIds),
        Format::Csv,
        Format::Npz,
        Format::Hdf5,
        Format::Hdf5Gzip,
        Format::Vtp,
    ];

    /// The names by which [`FromStr`] knows formats.
    pub fn known_names() -> impl Iterator<Item = &'static str> {
        Self::all_known().map(Format::name)
    }

    fn all_known() -> impl Iterator<Item = Format> {
        Self::ALL.into_iter().chain(Self::FOR_PEERS)
    }

    /// The format to write what was read in this one: itself, or HDF5 where it is read only or does not keep all.
    pub fn to_write(self) -> Format {
        match self {
            Format::Gadget | Format::Nemo | Format::Rebound | Format::Petar | Format::Nbody6 => {
                Format::Hdf5
            }
            format => format,
        }
    }

    /// The name by which [`FromStr`] knows the format, if it is written.
    pub fn name(self) -> &'static str {
        match self {
            Format::Allpairs => "allpairs",
            Format::Tipsy(TipsyDialect::Standard) => "tipsy",
            Format::Tipsy(TipsyDialect::Native) => "tipsy-native",
            Format::Tipsy(TipsyDialect::WithIds) => "tipsy-ids",
            Format::Csv => "csv",
            Format::Npz => "npz",
            Format::Hdf5 => "hdf5",
            Format::Hdf5Gzip => "hdf5-gzip",
            Format::Vtp => "vtp",
            Format::Gadget => "gadget",
            Format::Nemo => "nemo",
            Format::Rebound => "rebound",
            Format::Petar => "petar",
            Format::Nbody6 => "nbody6",
        }
    }

    /// Name and layout of the format, as far as all its files share them.
    pub fn summary(self) -> &'static str {
        match self {
            Format::Allpairs => "Allpairs's own format",
            Format::Tipsy(TipsyDialect::Standard) => "Tipsy, big-endian f32",
            Format::Tipsy(TipsyDialect::Native) => "Tipsy, little-endian f32",
            Format::Tipsy(TipsyDialect::WithIds) => {
                "Tipsy, little-endian f32, ids in the place of the potential"
            }
            Format::Csv => "a table of text (CSV)",
            Format::Npz => "NumPy",
            Format::Hdf5 => "HDF5 in Gadget's layout",
            Format::Hdf5Gzip => "HDF5 in Gadget's layout, compressed",
            Format::Vtp => "VTK PolyData",
            Format::Gadget => "Gadget's binary format",
            Format::Nemo => "NEMO",
            Format::Rebound => "REBOUND's archive",
            Format::Petar => "PeTar's format",
            Format::Nbody6 => "NBODY6's table",
        }
    }

    /// Returns whether files of the format can record the units of their numbers.
    pub fn records_units(self) -> bool {
        matches!(
            self,
            Self::Allpairs | Self::Csv | Self::Npz | Self::Hdf5 | Self::Hdf5Gzip
        )
    }

    /// The extension of file names by which [`Format::from_path`] knows the format, or, of
    /// Tipsy's dialects, the reader.
    pub fn extension(self) -> &'static str {
        match self {
            Format::Allpairs => "allpairs",
            Format::Tipsy(TipsyDialect::WithIds) => "bin",
            Format::Tipsy(_) => "tipsy",
            Format::Csv => "csv",
            Format::Npz => "npz",
            Format::Hdf5 | Format::Hdf5Gzip => "hdf5",
            Format::Vtp => "vtp",
            Format::Gadget => "gadget",
            Format::Nemo => "nemo",
            Format::Rebound => "rebound",
            Format::Petar => "petar",
            Format::Nbody6 => "nbody6",
        }
    }

    /// The format that a file name asks for: `.allpairs`; `.csv`; `.npz`; `.hdf5` and `.h5`;
    /// `.vtp`; `.tipsy`, `.tip`, `.std` and step numbers such as `run.00128` (standard Tipsy);
    /// `.bin` (Tipsy with ids). `None` for other names.
    ///
    /// For PeTar's input there are `.petar` and `.input`, for NBODY6's table `.nbody6`, `dat.10` and `fort.10`.
    ///
    /// This is for files to write. When reading, the content decides.
    pub fn from_path(path: &Path) -> Option<Format> {
        let extension = path.extension()?.to_str()?.to_ascii_lowercase();
        let name = path.file_name()?.to_str()?.to_ascii_lowercase();
        match extension.as_str() {
            "10" if ["dat.10", "fort.10"].contains(&name.as_str()) => Some(Format::Nbody6),
            "petar" | "input" => Some(Format::Petar),
            "nbody6" => Some(Format::Nbody6),
            "allpairs" => Some(Format::Allpairs),
            "csv" => Some(Format::Csv),
            "npz" => Some(Format::Npz),
            "hdf5" | "h5" => Some(Format::Hdf5),
            "vtp" => Some(Format::Vtp),
            "tipsy" | "tip" | "std" => Some(Format::Tipsy(TipsyDialect::Standard)),
            "bin" => Some(Format::Tipsy(TipsyDialect::WithIds)),
            step if step.bytes().all(|byte| byte.is_ascii_digit()) => {
                Some(Format::Tipsy(TipsyDialect::Standard))
            }
            _ => None,
        }
    }

    /// The format that the name of a file to read leads to expect. This includes formats that are read but not
    /// written: tables of numbers (`.txt`, `.dat`) and single arrays (`.npy`).
    fn to_read(path: &Path) -> Option<Format> {
        let extension = path.extension().unwrap_or_default().to_str()?;
        match extension.to_ascii_lowercase().as_str() {
            "txt" | "dat" => Some(Format::Csv),
            "npy" => Some(Format::Npz),
            _ => Self::from_path(path),
        }
    }
}

/// Compression of HDF5: h5py's default.
#[cfg(feature = "hdf5")]
const GZIP_LEVEL: u32 = 4;

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A name that is none of a format that is written.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "no snapshot format is called `{0}`; there are {names}",
    names = Format::known_names().collect::<Vec<_>>().join(", ")
)]
pub struct UnknownFormatName(String);

impl FromStr for Format {
    type Err = UnknownFormatName;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        Format::all_known()
            .find(|format| format.name().eq_ignore_ascii_case(name))
            .ok_or_else(|| UnknownFormatName(name.to_owned()))
    }
}

/// A snapshot that could not be read: which file, and why.
#[derive(Debug, Error)]
#[error("cannot read snapshot `{}`: {}", Printable(path.display()), Printable(fault))]
pub struct ReadError {
    /// The file, or what [`read_from`] was told to call it.
    pub path: PathBuf,
    /// The reason.
    pub fault: ReadFault,
}

/// Reason why a snapshot could not be read.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ReadFault {
    /// There is no such file.
    #[error("there is no such file; check the name and the current folder")]
    NotFound,
    /// The path leads to a folder or a device. Readers need to know a file's size; pipes are read to their end.
    #[error("this is a folder or a device, not a regular file; name a snapshot file")]
    NotAFile,
    /// The file has no content.
    #[error("the file is empty (0 bytes); it was never written or its writer failed")]
    Empty,
    /// Neither was a format given nor does the file's content or name tell it.
    #[error(
        "this is a binary file of no format that is known here by its first bytes; write it as a table of \
         text (m x y z vx vy vz, a body in each line), as HDF5 in Gadget's layout or with numpy.savez"
    )]
    UnknownFormat,
    /// Content that is known by its first bytes, and not read.
    #[error("this is {what}, which is not read here; {advice}")]
    Foreign {
        /// Name of the content.
        what: &'static str,
        /// How it can be made readable.
        advice: &'static str,
    },
    /// The file is well-formed but holds no bodies.
    #[error("the snapshot holds no bodies, there is nothing to simulate")]
    NoBodies,
    /// More bodies than memory.
    #[error("there is no memory for {bodies} bodies; use a machine with more or fewer bodies")]
    OutOfMemory {
        /// The number of bodies, as confirmed by the file's size.
        bodies: usize,
    },
    /// Not a sound file of Allpairs's own format.
    #[error("{0}")]
    Binary(#[from] BinaryFault),
    /// Not a sound NumPy, HDF5 or VTK file, or not a snapshot.
    #[error("{0}")]
    Malformed(#[from] Malformed),
    /// A body that cannot be simulated, in a file without line numbers or names for its values.
    #[error("{0}; repair or leave out this body")]
    Body(#[from] BodyFault),
    /// Not a sound Tipsy file.
    #[error("{0}")]
    Tipsy(TipsyFault),
    /// Not a sound CSV file.
    #[cfg(feature = "csv")]
    #[error("line {line}: {fault}")]
    Csv {
        /// Line of the file, counted from 1.
        line: u64,
        /// Fault found there.
        fault: CsvFault,
    },
    /// This build of the library does not know the format.
    #[error("this build cannot read it: build Allpairs with the feature `{0}`")]
    NotBuilt(Format),
    /// The file system failed.
    #[error("{0}")]
    Io(#[from] io::Error),
}

/// A snapshot that could not be written: which file, and why. What was there before still is.
#[derive(Debug, Error)]
#[error("cannot write snapshot `{}`: {fault}", Printable(path.display()))]
pub struct WriteError {
    /// The file.
    pub path: PathBuf,
    /// The reason.
    pub fault: WriteFault,
}

/// Reason why a snapshot could not be written. Bodies are counted from 0.
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
         another format"
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
         write another format",
        format = Format::Tipsy(TipsyDialect::WithIds),
        max = tipsy::MAX_ID
    )]
    IdTooLarge {
        /// Index of the body.
        body: usize,
        /// Id of the body.
        id: u64,
    },
    /// Two bodies of one id, by which a reader could not tell ids from potentials.
    #[error(
        "id {id} belongs to more than one body, {format} needs distinct ids; renumber the bodies \
         or write another format",
        format = Format::Tipsy(TipsyDialect::WithIds)
    )]
    DuplicateId {
        /// The id.
        id: u64,
    },
    /// More bodies than the format's counters can tell.
    #[error(
        "{bodies} bodies are more than a Tipsy header can count (2147483647); write another format"
    )]
    TooManyBodies {
        /// The number of bodies.
        bodies: usize,
    },
    /// More bodies than one file of this layout can count.
    #[error(
        "{bodies} bodies are more than one HDF5 file can count (4294967295); write another format"
    )]
    TooManyForHdf5 {
        /// The number of bodies.
        bodies: usize,
    },
    /// The library for HDF5 refused.
    #[error("HDF5: {0}; write another format")]
    Hdf5(String),
    /// The format is for files of other programs.
    #[error(
        "files of the format `{0}` are read and not written; write hdf5, which the same programs read"
    )]
    ReadOnly(Format),
    /// This build of the library does not know the format.
    #[error(
        "this build cannot write it: build Allpairs with the feature `{0}`, or write another format"
    )]
    NotBuilt(Format),
    /// The file system failed, or the file is there and [`Overwrite::Refuse`] was asked for.
    #[error("{0}")]
    Io(#[from] io::Error),
}

/// Reads the snapshot at `path`: in `format` if one is given, else in the one that the file's first
/// bytes tell, whatever its name. Returns the format as well: of Tipsy's dialects, the one found.
///
/// [`load`] reads units and notes too.
///
/// # Errors
/// [`ReadError`] names the file, the place and the body.
pub fn read(path: &Path, format: Option<Format>) -> Result<(Snapshot, Format), ReadError> {
    load(path, format).map(|loaded| (loaded.snapshot, loaded.format))
}

/// How a file is to be read.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Reading {
    /// The format, if the content is not to decide.
    pub format: Option<Format>,
    /// Velocities of a cosmological snapshot that is to be made physical at its time. Without these, such a snapshot
    /// is refused.
    pub physical: Option<Velocities>,
    /// Units of the numbers if the file records none, for a time that it tells with a unit.
    pub units: Option<Units>,
}

/// In this format.
impl From<Option<Format>> for Reading {
    fn from(format: Option<Format>) -> Self {
        Self {
            format,
            ..Self::default()
        }
    }
}

/// Like [`read`], but also returns the units, and notes on content of the file that is not in the
/// snapshot. Takes a format too, or other choices.
///
/// # Errors
/// See [`read`].
pub fn load(path: &Path, reading: impl Into<Reading>) -> Result<Loaded, ReadError> {
    let reading = reading.into();
    let Reading {
        format, physical, ..
    } = reading;
    if is_pipe(path) {
        let bytes = at_path(path, || read_stream(&mut File::open(path)?))?;
        return load_from(io::Cursor::new(bytes), path, reading);
    }
    at_path(path, || {
        let (mut file, size) = open(path)?;
        let found = format_of(&mut buffered(&mut file), size, path, format)?;
        if found == Format::Gadget {
            return loaded(gadget::read_file(path, file, size)?, found, physical);
        }
        if let Format::Hdf5 | Format::Hdf5Gzip = found {
            #[cfg(feature = "hdf5")]
            return loaded(hdf5::read_file(path, file, size)?, found, physical);
            #[cfg(not(feature = "hdf5"))]
            return Err(ReadFault::NotBuilt(found));
        }
        parse(buffered(&mut file), size, path, reading)
    })
}

/// Bytes with a beginning and an end. Readers of formats take them by reference, and so are compiled once.
trait Source: Read + Seek {}

impl<R: Read + Seek> Source for R {}

fn buffered(source: &mut dyn Source) -> BufReader<&mut dyn Source> {
    BufReader::with_capacity(1 << 16, source)
}

fn loaded(
    mut contents: Contents,
    format: Format,
    physical: Option<Velocities>,
) -> Result<Loaded, ReadFault> {
    match (physical, &contents.cosmology) {
        (Some(velocities), _) => cosmology::make_physical(&mut contents, velocities)?,
        (None, Some(cosmology)) => return Err(cosmology.refusal()),
        (None, None) => {}
    }
    let Contents {
        mut snapshot,
        program,
        units,
        mut notes,
        ..
    } = contents;
    notes.extend(number_anew(&mut snapshot.bodies));
    let notes = notes
        .into_iter()
        .map(|note| Printable(note).to_string())
        .collect();
    Ok(Loaded {
        snapshot,
        format,
        program,
        units,
        notes,
    })
}

/// Numbers bodies from 0 on, in the order of the file, if several have the same id: what names bodies by
/// their ids would mean several at once. Returns a note on that.
fn number_anew(bodies: &mut Bodies) -> Option<String> {
    if bodies.id.is_sorted_by(|a, b| a < b) {
        return None;
    }
    let mut ids = bodies.id.clone();
    ids.sort_unstable();
    let twice = ids.windows(2).find(|pair| pair[0] == pair[1])?[0];
    for (id, number) in bodies.id.iter_mut().zip(0..) {
        *id = number;
    }
    Some(format!(
        "several bodies have the id {twice}: all bodies are numbered anew, from 0 on in the order of the file"
    ))
}

/// The units of the snapshot at `path`, if its format can tell and the file does. The format is
/// found as by [`read`].
///
/// # Errors
/// Errors of [`read`], as far as they are in the parts of the file that are read here.
pub fn read_units(path: &Path, format: Option<Format>) -> Result<Option<Units>, ReadError> {
    at_path(path, || {
        let (mut file, size) = open(path)?;
        let mut reader = buffered(&mut file);
        match format_of(&mut reader, size, path, format)? {
            Format::Allpairs => binary::read_units(&mut reader, size),
            Format::Petar if is_binary(&mut reader, size)? => Ok(None),
            #[cfg(feature = "csv")]
            Format::Csv | Format::Petar | Format::Nbody6 => csv::read_units(&mut reader),
            #[cfg(feature = "npz")]
            Format::Npz => npz::read_units(reader, size),
            #[cfg(feature = "hdf5")]
            Format::Hdf5 | Format::Hdf5Gzip => hdf5::read_units(file, size),
            Format::Rebound => rebound::read(&mut reader, size).map(|contents| contents.units),
            Format::Tipsy(_) | Format::Vtp | Format::Gadget | Format::Nemo => Ok(None),
            #[cfg(not(all(feature = "csv", feature = "npz", feature = "hdf5")))]
            format => Err(ReadFault::NotBuilt(format)),
        }
    })
}

fn at_path<T>(path: &Path, read: impl FnOnce() -> Result<T, ReadFault>) -> Result<T, ReadError> {
    read().map_err(|fault| ReadError {
        path: path.to_owned(),
        fault,
    })
}

/// The format that was asked for, or the one found by the content.
fn format_of(
    reader: &mut (impl Read + Seek),
    size: u64,
    name: &Path,
    asked: Option<Format>,
) -> Result<Format, ReadFault> {
    match asked {
        Some(format) => Ok(format),
        None => recognise::format_of(reader, size, name),
    }
}

/// Reads a text file. A device or a pipe is refused, which may have no end.
///
/// # Errors
/// The file system's refusal; [`io::ErrorKind::InvalidInput`] for what is not a file, and
/// [`io::ErrorKind::InvalidData`] for what is not text.
pub fn read_text(path: &Path) -> io::Result<String> {
    match fs::metadata(path)?.is_file() {
        true => fs::read_to_string(path),
        false => Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "this is a folder, a device or a pipe, not a regular file",
        )),
    }
}

/// A regular file that is not empty, and its size.
fn open(path: &Path) -> Result<(File, u64), ReadFault> {
    match fs::metadata(path) {
        Ok(metadata) if !metadata.is_file() => Err(ReadFault::NotAFile),
        Ok(metadata) if metadata.len() == 0 => Err(ReadFault::Empty),
        Ok(metadata) => Ok((File::open(path)?, metadata.len())),
        Err(fault) if fault.kind() == io::ErrorKind::NotFound => Err(ReadFault::NotFound),
        Err(fault) => Err(fault.into()),
    }
}

/// Reads a snapshot from anything with a beginning and an end, for instance an embedded file:
/// `read_from(io::Cursor::new(bytes), Path::new("galaxy.bin"), None)`. `name` stands for the path
/// in faults. Reading starts at the beginning, wherever the reader stands.
///
/// # Errors
/// See [`read`].
pub fn read_from<R: Read + Seek>(
    reader: R,
    name: &Path,
    format: Option<Format>,
) -> Result<(Snapshot, Format), ReadError> {
    load_from(reader, name, format).map(|loaded| (loaded.snapshot, loaded.format))
}

/// Reads a snapshot from anything with a beginning and an end as [`read_from`] does, and its units and notes. Takes a
/// format too, or other choices.
///
/// # Errors
/// See [`read`].
pub fn load_from<R: Read + Seek>(
    mut reader: R,
    name: &Path,
    reading: impl Into<Reading>,
) -> Result<Loaded, ReadError> {
    load_source(&mut reader, name, reading.into())
}

fn load_source(
    source: &mut dyn Source,
    name: &Path,
    reading: Reading,
) -> Result<Loaded, ReadError> {
    at_path(name, || {
        let mut reader = buffered(source);
        let size = reader.seek(SeekFrom::End(0))?;
        reader.rewind()?;
        if size == 0 {
            return Err(ReadFault::Empty);
        }
        parse(reader, size, name, reading)
    })
}

/// Returns whether a file of PeTar's is binary. The reader stands at its beginning, before and after.
fn is_binary(reader: &mut (impl Read + Seek), size: u64) -> io::Result<bool> {
    let mut start = vec![];
    reader.by_ref().take(petar::START).read_to_end(&mut start)?;
    reader.rewind()?;
    Ok(petar::is_header(&start, size))
}

/// Reads a snapshot of `size` bytes from a reader that stands at its beginning.
fn parse(
    mut reader: BufReader<&mut dyn Source>,
    size: u64,
    name: &Path,
    Reading {
        format,
        physical,
        units,
    }: Reading,
) -> Result<Loaded, ReadFault> {
    let found = format_of(&mut reader, size, name, format)?;
    let contents = match found {
        Format::Allpairs => binary::read(&mut reader, size)?,
        Format::Petar if is_binary(&mut reader, size)? => petar::read(&mut reader, size)?,
        #[cfg(feature = "csv")]
        Format::Csv | Format::Petar | Format::Nbody6 => csv::read(&mut reader, units)?,
        #[cfg(feature = "npz")]
        Format::Npz => npz::read(reader, size)?,
        #[cfg(feature = "hdf5")]
        Format::Hdf5 | Format::Hdf5Gzip => hdf5::read_bytes(&mut reader, size)?,
        Format::Vtp => vtp::read(&mut reader, size)?,
        Format::Gadget => gadget::read(&mut reader, size)?,
        Format::Nemo => nemo::read(&mut reader, size)?,
        Format::Rebound => rebound::read(&mut reader, size)?,
        Format::Tipsy(dialect) => {
            let asked = format.is_some().then_some(dialect);
            let (contents, dialect) = tipsy::read(&mut reader, size, asked)?;
            return loaded(contents, Format::Tipsy(dialect), physical);
        }
        #[cfg(not(all(feature = "csv", feature = "npz", feature = "hdf5")))]
        format => return Err(ReadFault::NotBuilt(format)),
    };
    loaded(contents, found, physical)
}

/// Writes `snapshot` to `path` in `format`, whole or not at all. [`Format::from_path`] tells the
/// format that suits a name.
///
/// Tipsy holds f32, and of its dialects only [`TipsyDialect::WithIds`] keeps ids. Tipsy and HDF5
/// group bodies by kind. [`remarks`] tells what a file does not keep.
///
/// # Errors
/// [`WriteError`] names the file and the body.
pub fn write(
    path: &Path,
    format: Format,
    snapshot: &Snapshot,
    overwrite: Overwrite,
) -> Result<(), WriteError> {
    write_in_units(path, format, snapshot, None, overwrite)
}

/// Like [`write()`], but also writes the units of the numbers if the format has a place for them
/// (Allpairs's own, CSV, NumPy, HDF5).
///
/// # Errors
/// See [`write()`].
pub fn write_in_units(
    path: &Path,
    format: Format,
    snapshot: &Snapshot,
    units: Option<Units>,
    overwrite: Overwrite,
) -> Result<(), WriteError> {
    let attempt = || {
        check_to_write(snapshot)?;
        write_atomically(path, overwrite, |file| {
            write_checked(file, format, snapshot, units)
        })
    };
    attempt().map_err(|fault| WriteError {
        path: path.to_owned(),
        fault,
    })
}

/// Writes `snapshot` to anything that takes bytes, as [`write_in_units`] does to a file.
///
/// # Errors
/// See [`write()`].
pub fn write_to(
    file: &mut impl Write,
    format: Format,
    snapshot: &Snapshot,
    units: Option<Units>,
) -> Result<(), WriteFault> {
    check_to_write(snapshot)?;
    write_checked(file, format, snapshot, units)
}

/// Remarks on what a file of this format would not keep of a snapshot, or change.
pub fn remarks(format: Format, snapshot: &Snapshot, units: Option<Units>) -> Vec<String> {
    peers::remarks(format, snapshot, units)
}

fn check_to_write(snapshot: &Snapshot) -> Result<(), WriteFault> {
    snapshot.bodies.check()?;
    if snapshot.bodies.is_empty() {
        return Err(WriteFault::NoBodies);
    }
    match snapshot.time.is_finite() {
        true => Ok(()),
        false => Err(WriteFault::Time(snapshot.time)),
    }
}

fn write_checked(
    mut file: &mut dyn Write,
    format: Format,
    snapshot: &Snapshot,
    units: Option<Units>,
) -> Result<(), WriteFault> {
    let file = &mut file;
    match format {
        Format::Tipsy(dialect) => tipsy::write(file, dialect, snapshot),
        Format::Allpairs => binary::write(file, snapshot, units),
        #[cfg(feature = "csv")]
        Format::Csv => csv::write(file, snapshot, units),
        #[cfg(feature = "npz")]
        Format::Npz => npz::write(file, snapshot, units),
        #[cfg(feature = "hdf5")]
        Format::Hdf5 => hdf5::write(file, snapshot, units, None),
        #[cfg(feature = "hdf5")]
        Format::Hdf5Gzip => hdf5::write(file, snapshot, units, Some(GZIP_LEVEL)),
        Format::Vtp => vtp::write(file, snapshot),
        Format::Petar => peers::write_petar(file, snapshot, units),
        Format::Nbody6 => peers::write_nbody6(file, snapshot),
        Format::Gadget | Format::Nemo | Format::Rebound => Err(WriteFault::ReadOnly(format)),
        #[cfg(not(all(feature = "csv", feature = "npz", feature = "hdf5")))]
        format => Err(WriteFault::NotBuilt(format)),
    }
}

/// Writes snapshots of `n` bodies each into one NumPy archive. Time is the first dimension of its arrays:
/// `time` has the shape (S), `position` and `velocity` (S, N, 3), `mass`, `id` and `kind` (S, N). Each
/// snapshot is `read` more than once, so that no two are in memory at the same time.
///
/// # Errors
/// Errors of `read`, and of the file system.
#[cfg(feature = "npz")]
pub fn write_series<E: From<io::Error>>(
    path: &Path,
    size: (usize, usize),
    units: Option<Units>,
    overwrite: Overwrite,
    read: impl FnMut(usize) -> Result<Snapshot, E>,
) -> Result<(), E> {
    write_atomically(path, overwrite, |file| {
        npz::write_series(file, size, units, read)
    })
}

#[cfg(test)]
mod tests;
