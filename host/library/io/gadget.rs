//! The binary snapshots of Gadget, formats 1 and 2, which many programs for initial conditions write.
//! ```text
//! records      u32 length, content, u32 length again; either byte order
//! format 2     before each: a record of 8 bytes, 4 letters and u32 bytes to the next
//! HEAD   256   u32 counts[6]; f64 masses[6], time, redshift; i32 flags[2]; u32 totals[6]; i32 flag; u32 files;
//!              f64 box, Ω₀, Ω_Λ, h; i32 flags[2]; u32 high words of totals[6]; …
//! POS          f32 or f64 [N, 3], the particle types one after the other
//! VEL          f32 or f64 [N, 3]
//! ID           u32 or u64 [N]
//! MASS         f32 or f64, of the types with a mass of 0 in the header
//! …            properties of gas, potentials: not used
//! ```
//! In format 1 records have this order; in format 2 they are found by their letters. Sizes of records tell
//! the sizes of numbers. A snapshot of several files (`snap.0`, `snap.1`, …) is read whole, whichever is named.
//! Cosmological snapshots are refused, or made physical, as in [HDF5](super::hdf5).
//! Layout: Gadget-2's user's guide, "Structure of a snapshot file".

use std::fs::File;
use std::io::{BufReader, Read, Seek, SeekFrom};
use std::path::Path;

use super::column::{
    Class, IDS, Malformed, Numbers, left_out, read_integers, read_reals, room_for,
};
use super::cosmology::{Cosmology, Scaling, Told};
use super::pieces::{Piece, join};
use super::{Contents, ReadFault, Snapshot};
use crate::bodies::{Bodies, BodyKind};

/// The kind of each particle type.
pub(super) const KINDS: [BodyKind; 6] = [
    BodyKind::Gas,
    BodyKind::Dark,
    BodyKind::Star,
    BodyKind::Star,
    BodyKind::Star,
    BodyKind::Star,
];

/// Bytes of the header.
const HEADER: u32 = 256;

/// Letters of a record in front of the header, and its length.
const HEAD: &[u8; 4] = b"HEAD";
const LABEL: u32 = 8;

fn malformed(place: &str, problem: impl Into<String>) -> ReadFault {
    Malformed::new(place, problem).into()
}

/// Returns whether a file begins as one of these.
pub(super) fn is_header(start: &[u8]) -> bool {
    let word = |at: usize| start.get(at..at + 4);
    let is_length = |length: [u8; 4]| word(0) == Some(&length) && word(260) == Some(&length);
    is_length(HEADER.to_le_bytes())
        || is_length(HEADER.to_be_bytes())
        || [LABEL.to_le_bytes(), LABEL.to_be_bytes()]
            .map(Some)
            .contains(&start.first_chunk().copied())
            && word(4) == Some(HEAD)
}

/// A record: its letters, as far as it is known which it is, and where its content is.
struct Record {
    name: String,
    offset: u64,
    bytes: u64,
}

struct Header {
    counts: [u64; 6],
    masses: [f64; 6],
    time: f64,
    /// Bodies in all files.
    totals: [u64; 6],
    files: u32,
    box_size: f64,
    cosmology: Option<Cosmology>,
}

/// Reads a snapshot of one file.
pub(super) fn read(reader: &mut (impl Read + Seek), size: u64) -> Result<Contents, ReadFault> {
    join(read_piece(reader, size)?, None, of_file)
}

/// Reads the snapshot that the file at `path` belongs to: alone, or with the others in its folder.
pub(super) fn read_file(path: &Path, file: File, size: u64) -> Result<Contents, ReadFault> {
    join(of_file(file, size)?, Some(path), of_file)
}

fn of_file(file: File, size: u64) -> Result<Piece, ReadFault> {
    read_piece(&mut BufReader::with_capacity(1 << 16, file), size)
}

fn read_piece(reader: &mut (impl Read + Seek), size: u64) -> Result<Piece, ReadFault> {
    let mut file = Records::open(reader, size)?;
    let header = file.header()?;
    let total: u64 = header.counts.iter().sum();
    // Positions and velocities of single precision need as much.
    if total.saturating_mul(24) > size {
        let problem =
            format!("it counts {total} bodies, more than a file of {size} bytes can hold");
        return Err(malformed("the header", problem));
    }
    let is_single = |kind: usize| header.counts[kind] > 0 && header.masses[kind] == 0.0;
    let single: u64 = (0..6)
        .filter(|kind| is_single(*kind))
        .map(|kind| header.counts[kind])
        .sum();
    let records = file.records(total, single)?;
    if total == 0 {
        // One of several files may have none.
        return Ok(header.piece(Bodies::default(), vec![]));
    }
    let n = total as usize;
    let mut bodies = room_for(n)?;
    let Bodies {
        x,
        y,
        z,
        vx,
        vy,
        vz,
        mass,
        id,
        kind,
    } = &mut bodies;
    let numbers = |class: Class, record: &Record, count: u64| Numbers {
        class,
        bytes: (record.bytes / count) as usize,
        big_endian: file.big_endian,
    };
    let find = |name: &str| records.iter().find(|record| record.name == name);
    let need = |name: &str| {
        find(name).ok_or_else(|| {
            malformed(
                &format!("the block {name}"),
                "it is missing: the file was cut short or is damaged",
            )
        })
    };
    for (name, columns) in [("POS", [x, y, z]), ("VEL", [vx, vy, vz])] {
        let record = need(name)?;
        file.reader.seek(SeekFrom::Start(record.offset))?;
        read_reals(
            file.reader,
            numbers(Class::Real, record, 3 * total),
            n,
            &mut columns.map(|c| c),
            false,
        )?;
    }
    let mut notes = vec![];
    match find("ID") {
        Some(record) => {
            file.reader.seek(SeekFrom::Start(record.offset))?;
            let numbers = numbers(Class::Unsigned, record, total);
            read_integers(file.reader, numbers, n, id, "the block ID", (Some, IDS))?;
        }
        None => {
            id.extend(0..total);
            notes.push("there is no block of ids: bodies are numbered from 0 on".to_owned());
        }
    }
    let masses = (single > 0).then(|| need("MASS")).transpose()?;
    if let Some(record) = masses {
        file.reader.seek(SeekFrom::Start(record.offset))?;
    }
    for (number, of_type) in KINDS.into_iter().enumerate() {
        let count = header.counts[number] as usize;
        kind.resize(kind.len() + count, of_type);
        match masses.filter(|_| is_single(number)) {
            Some(record) => {
                let numbers = numbers(Class::Real, record, single);
                read_reals(file.reader, numbers, count, &mut [&mut *mass], false)?;
            }
            None => mass.resize(mass.len() + count, header.masses[number]),
        }
    }
    let is_used = |name: &str| ["HEAD", "POS", "VEL", "ID", "MASS"].contains(&name);
    let others: Vec<&str> = records
        .iter()
        .map(|record| record.name.as_str())
        .filter(|name| !is_used(name))
        .collect();
    if !others.is_empty() {
        notes.push(left_out("blocks", &others));
    }
    if header.box_size != 0.0 {
        notes.push(format!(
            "the file has a box (BoxSize = {}): it is not periodic here, nothing happens at its walls",
            header.box_size
        ));
    }
    notes.push(
        "Gadget's binary files record no units; Gadget's own are kpc,1e10Msun,km/s".to_owned(),
    );
    Ok(header.piece(bodies, notes))
}

/// The cosmology of a header, if its redshift or h tell of one. Zero is what programs leave there that know of no
/// cosmology.
fn cosmology(time: f64, redshift: f64, [matter, lambda, h]: [f64; 3]) -> Option<Cosmology> {
    let because = [
        ("the redshift", redshift, &[0.0][..]),
        ("HubbleParam", h, &[0.0, 1.0]),
    ];
    let mut because = because.into_iter();
    let (name, value, _) = because.find(|(_, value, plain)| !plain.contains(value))?;
    Some(Cosmology {
        because: (name.to_owned(), value),
        told: Told {
            time,
            redshift: Some(redshift),
            h: Some(h),
            matter: Some(matter),
            lambda: Some(lambda),
            ..Told::default()
        },
        scaling: Scaling::GADGET,
    })
}

impl Header {
    fn piece(&self, bodies: Bodies, notes: Vec<String>) -> Piece {
        let snapshot = Snapshot {
            time: self.time,
            bodies,
        };
        Piece {
            files: self.files,
            totals: self.totals.to_vec(),
            counts: self.counts.to_vec(),
            contents: Contents {
                snapshot,
                program: None,
                units: None,
                notes,
                cosmology: self.cosmology.clone(),
            },
        }
    }
}

/// A file of records that is being read.
struct Records<'a, R> {
    reader: &'a mut R,
    size: u64,
    big_endian: bool,
    /// True in format 2.
    are_labelled: bool,
}

impl<'a, R: Read + Seek> Records<'a, R> {
    fn open(reader: &'a mut R, size: u64) -> Result<Self, ReadFault> {
        let mut start = vec![];
        reader.by_ref().take(264).read_to_end(&mut start)?;
        if !is_header(&start) {
            let problem = "there is no record of 256 bytes, nor one with the letters HEAD: this is not a binary \
                           snapshot of Gadget, or damaged";
            return Err(malformed("byte offset 0", problem));
        }
        let are_labelled = start.get(4..8) == Some(HEAD);
        let big_endian = [HEADER, LABEL]
            .map(u32::to_be_bytes)
            .contains(&[start[0], start[1], start[2], start[3]]);
        Ok(Self {
            reader,
            size,
            big_endian,
            are_labelled,
        })
    }

    fn word(&self, bytes: [u8; 4]) -> u32 {
        match self.big_endian {
            true => u32::from_be_bytes(bytes),
            false => u32::from_le_bytes(bytes),
        }
    }

    /// The number that stands before or after a record; `None` beyond the end.
    fn length_at(&mut self, at: u64) -> Result<Option<u32>, ReadFault> {
        if at.checked_add(4).is_none_or(|end| end > self.size) {
            return Ok(None);
        }
        self.reader.seek(SeekFrom::Start(at))?;
        let mut bytes = [0; 4];
        self.reader.read_exact(&mut bytes)?;
        Ok(Some(self.word(bytes)))
    }

    /// The record at a byte, which has one of these sizes, or any if there are none. Lengths are kept
    /// without their high words.
    fn record_at(&mut self, at: u64, name: String, sizes: &[u64]) -> Result<Record, ReadFault> {
        let place = format!("byte offset {at}: the block {name}");
        let cut = || malformed(&place, "it is cut short: copy or write the file again");
        let length = self.length_at(at)?.ok_or_else(cut)?;
        let any = [u64::from(length)];
        let sizes = if sizes.is_empty() { &any[..] } else { sizes };
        let mut fits = false;
        for bytes in sizes.iter().copied().filter(|size| *size as u32 == length) {
            fits = true;
            let Some(end) = at
                .checked_add(4)
                .and_then(|offset| offset.checked_add(bytes))
            else {
                continue;
            };
            if self.length_at(end)? == Some(length) {
                return Ok(Record {
                    name,
                    offset: at + 4,
                    bytes,
                });
            }
        }
        match fits {
            false => {
                let sizes: Vec<String> = sizes.iter().map(u64::to_string).collect();
                let problem = format!(
                    "it has {length} bytes, and by the header's counts it should have {}: the file is damaged or of \
                     another kind",
                    sizes.join(" or ")
                );
                Err(malformed(&place, problem))
            }
            true => {
                let problem = format!(
                    "its length, {length}, is not repeated at its end: the file was cut short or is damaged, copy or \
                     write it again"
                );
                Err(malformed(&place, problem))
            }
        }
    }

    /// The offset of the first record that is no label.
    fn first(&self) -> u64 {
        if self.are_labelled {
            u64::from(LABEL) + 8
        } else {
            0
        }
    }

    fn header(&mut self) -> Result<Header, ReadFault> {
        let record = self.record_at(self.first(), "HEAD".to_owned(), &[u64::from(HEADER)])?;
        self.reader.seek(SeekFrom::Start(record.offset))?;
        let mut bytes = [0; HEADER as usize];
        self.reader.read_exact(&mut bytes)?;
        let word = |at: usize| self.word([0, 1, 2, 3].map(|k| bytes[at + k]));
        let real = |at: usize| {
            let (first, second) = (u64::from(word(at)), u64::from(word(at + 4)));
            f64::from_bits(match self.big_endian {
                true => first << 32 | second,
                false => second << 32 | first,
            })
        };
        let six = |at: usize| -> [u64; 6] { std::array::from_fn(|k| u64::from(word(at + 4 * k))) };
        let (low, high) = (six(96), six(168));
        let header = Header {
            counts: six(0),
            masses: std::array::from_fn(|k| real(24 + 8 * k)),
            time: real(72),
            totals: std::array::from_fn(|k| low[k] | high[k] << 32),
            files: word(124),
            box_size: real(128),
            cosmology: cosmology(real(72), real(80), [real(136), real(144), real(152)]),
        };
        if !header.time.is_finite() {
            let problem = format!("the time is {}, not a finite number", header.time);
            return Err(malformed("the header", problem));
        }
        Ok(header)
    }

    /// All records, to the end of the file, of `total` bodies, of which `single` have masses of their own.
    fn records(&mut self, total: u64, single: u64) -> Result<Vec<Record>, ReadFault> {
        /// More blocks than any program writes.
        const MOST: usize = 1000;
        let order = ["HEAD", "POS", "VEL", "ID", "MASS"]
            .into_iter()
            .filter(|name| *name != "MASS" || single > 0);
        let mut order = order.chain(std::iter::repeat("further"));
        let (mut at, mut records) = (0, vec![]);
        while at < self.size && records.len() < MOST {
            let unlabelled = order.next().unwrap_or_default();
            let name = match self.are_labelled {
                true => self.label(&mut at)?,
                false => unlabelled.to_owned(),
            };
            let sizes = match name.as_str() {
                "HEAD" => vec![u64::from(HEADER)],
                "POS" | "VEL" => vec![12 * total, 24 * total],
                "ID" => vec![4 * total, 8 * total],
                "MASS" => vec![4 * single, 8 * single],
                _ => vec![],
            };
            let record = self.record_at(at, name, &sizes)?;
            at = record.offset + record.bytes + 4;
            records.push(record);
        }
        Ok(records)
    }

    /// The letters of the record after the label at a byte, which is moved to it.
    fn label(&mut self, at: &mut u64) -> Result<String, ReadFault> {
        let record = self.record_at(*at, "label".to_owned(), &[u64::from(LABEL)])?;
        self.reader.seek(SeekFrom::Start(record.offset))?;
        let mut letters = [0; 4];
        self.reader.read_exact(&mut letters)?;
        *at = record.offset + record.bytes + 4;
        Ok(String::from_utf8_lossy(&letters).trim().to_owned())
    }
}

#[cfg(test)]
mod tests;
