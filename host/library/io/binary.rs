//! Allpairs's own binary format, which loses nothing: f64, ids, kinds, units.
//! ```text
//! offset  bytes
//!      0      8  "ALLPAIRS"
//!      8      4  u32 version of the format: 1
//!     12      4  u32 offset of the first column: 128
//!     16      8  u64 number of bodies N
//!     24      8  f64 time
//!     32     24  f64 unit of length in m, of mass in kg, of time in s; zeros where not known
//!     56     36  u32 CRC-32 of each of the nine columns
//!     92     32  zeros
//!    124      4  u32 CRC-32 of the 124 bytes before
//!    128         the columns x, y, z, vx, vy, vz, mass (f64), id (u64), kind (u8: 0 gas, 1 dark,
//!                2 star): each begins at the next multiple of 64 and has N elements; the last
//!                element ends the file
//! ```
//! All numbers are little-endian. Columns are aligned and in one piece, so that a program can map
//! the file into memory and use them in place. The CRC is the usual one (zlib, PNG), taken of a
//! column's elements without the zeros between columns. `docs/format.md` has a reader in ten lines
//! of Python.

use std::io::{self, Read, Write};

use crc32fast::Hasher;
use thiserror::Error;

use super::{Contents, ReadFault, Snapshot, WriteFault};
use crate::bodies::{Bodies, BodyKind, COORDINATES};
use crate::units::Units;

const MAGIC: [u8; 8] = *b"ALLPAIRS";
const VERSION: u32 = 1;
const HEADER: usize = 128;
const HEADER_CRC: usize = HEADER - 4;
const CRCS: usize = 56;
const ALIGNMENT: u64 = 64;
/// Number of elements that are converted in one batch.
const CHUNK: usize = 8192;

/// Fault of a file in Allpairs's own format.
#[derive(Clone, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum BinaryFault {
    /// It begins with something else.
    #[error("it does not begin with `ALLPAIRS`; give the format if it is another one")]
    Magic,
    /// A later version.
    #[error("byte offset 8: it is of version {0}, this program knows version 1; use a newer one")]
    Version(u32),
    /// The header is not what was written.
    #[error("the header's checksum is wrong: the file is damaged, copy or write it again")]
    HeaderChecksum,
    /// A sound header with impossible numbers.
    #[error("byte offset {offset}: {what} cannot be; the writer of this file is at fault")]
    Header {
        /// Byte offset of the field.
        offset: usize,
        /// The field and its value.
        what: String,
    },
    /// The file's size is not what its header asks for.
    #[error(
        "the file ends after {actual} bytes, but {bodies} bodies need {expected}; it was cut short \
         or added to: copy or write it again"
    )]
    Size {
        /// Size of the file in bytes.
        actual: u64,
        /// Size that the number of bodies asks for; the greatest there is if it is beyond.
        expected: u64,
        /// The number of bodies.
        bodies: u64,
    },
    /// A column is not what was written.
    #[error(
        "the checksum of column `{column}` (from byte offset {offset}) is wrong: the file is \
         damaged, copy or write it again"
    )]
    ColumnChecksum {
        /// Name of the column.
        column: &'static str,
        /// Byte offset of its first element.
        offset: u64,
    },
    /// A kind that there is not.
    #[error(
        "byte offset {offset}: body {body} is of kind {kind}, not 0 (gas), 1 (dark) or 2 (star)"
    )]
    BodyKind {
        /// Byte offset of the kind.
        offset: u64,
        /// Index of the body.
        body: usize,
        /// The value found.
        kind: u8,
    },
}

/// Names of the columns, in the order of the file.
const COLUMNS: [&str; 9] = {
    let [x, y, z, vx, vy, vz] = COORDINATES;
    [x, y, z, vx, vy, vz, "mass", "id", "kind"]
};

/// Byte offsets of the nine columns and of the end, for `n` bodies; `None` beyond 2⁶⁴.
fn offsets(n: u64) -> Option<[u64; 10]> {
    let mut offsets = [HEADER as u64; 10];
    for column in 0..9 {
        let element = if column == 8 { 1 } else { 8 };
        let end = offsets[column].checked_add(n.checked_mul(element)?)?;
        offsets[column + 1] = if column == 8 {
            end
        } else {
            end.checked_next_multiple_of(ALIGNMENT)?
        };
    }
    Some(offsets)
}

struct Header {
    bodies: u64,
    time: f64,
    units: Option<Units>,
    crcs: [u32; 9],
}

impl Header {
    fn read(reader: &mut impl Read, size: u64) -> Result<Self, ReadFault> {
        let mut bytes = [0; HEADER];
        let there = size.min(HEADER as u64) as usize;
        reader.read_exact(&mut bytes[..there])?;
        if bytes[..8] != MAGIC {
            return Err(BinaryFault::Magic.into());
        }
        let word = |at: usize| u32::from_le_bytes([0, 1, 2, 3].map(|i| bytes[at + i]));
        let long = |at: usize| u64::from(word(at)) | u64::from(word(at + 4)) << 32;
        let real = |at: usize| f64::from_bits(long(at));
        if word(8) != VERSION && there == HEADER {
            return Err(BinaryFault::Version(word(8)).into());
        }
        if word(HEADER_CRC) != crc32fast::hash(&bytes[..HEADER_CRC]) {
            return Err(BinaryFault::HeaderChecksum.into());
        }
        let impossible = |offset, what| Err(BinaryFault::Header { offset, what }.into());
        if word(12) != HEADER as u32 {
            return impossible(12, format!("a first column at {}", word(12)));
        }
        if !real(24).is_finite() {
            return impossible(24, format!("time = {}", real(24)));
        }
        let sizes = [32, 40, 48].map(real);
        let units = match sizes {
            [0.0, 0.0, 0.0] => None,
            [length, mass, time] if sizes.iter().all(|s| s.is_finite() && *s > 0.0) => {
                Some(Units { length, mass, time })
            }
            _ => return impossible(32, format!("units of {sizes:?}")),
        };
        Ok(Self {
            bodies: long(16),
            time: real(24),
            units,
            crcs: std::array::from_fn(|column| word(CRCS + 4 * column)),
        })
    }

    fn bytes(&self) -> [u8; HEADER] {
        let mut bytes = [0; HEADER];
        let mut put = |at: usize, value: &[u8]| bytes[at..at + value.len()].copy_from_slice(value);
        put(0, &MAGIC);
        put(8, &VERSION.to_le_bytes());
        put(12, &(HEADER as u32).to_le_bytes());
        put(16, &self.bodies.to_le_bytes());
        put(24, &self.time.to_le_bytes());
        if let Some(units) = self.units {
            for (i, size) in [units.length, units.mass, units.time].iter().enumerate() {
                put(32 + 8 * i, &size.to_le_bytes());
            }
        }
        for (column, crc) in self.crcs.iter().enumerate() {
            put(CRCS + 4 * column, &crc.to_le_bytes());
        }
        let crc = crc32fast::hash(&bytes[..HEADER_CRC]);
        bytes[HEADER_CRC..].copy_from_slice(&crc.to_le_bytes());
        bytes
    }
}

/// The units recorded in a file.
pub(super) fn read_units(reader: &mut impl Read, size: u64) -> Result<Option<Units>, ReadFault> {
    Ok(Header::read(reader, size)?.units)
}

/// Reads a file of `size` bytes from its beginning.
pub(super) fn read(reader: &mut impl Read, size: u64) -> Result<Contents, ReadFault> {
    let header = Header::read(reader, size)?;
    let offsets = offsets(header.bodies).filter(|offsets| offsets[9] == size);
    let (Some(offsets), Ok(n)) = (offsets, usize::try_from(header.bodies)) else {
        return Err(BinaryFault::Size {
            actual: size,
            expected: self::offsets(header.bodies).map_or(u64::MAX, |offsets| offsets[9]),
            bodies: header.bodies,
        }
        .into());
    };
    if n == 0 {
        return Err(ReadFault::NoBodies);
    }
    // The number is that of the file's real size by now.
    let mut bodies = Bodies::default();
    bodies
        .try_reserve(n)
        .map_err(|_| ReadFault::OutOfMemory { bodies: n })?;
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

    let mut source = Source {
        reader,
        at: HEADER as u64,
    };
    for (index, column) in [x, y, z, vx, vy, vz, mass].into_iter().enumerate() {
        let crc = source.elements(offsets[index], n, |bytes: [u8; 8]| {
            column.push(f64::from_le_bytes(bytes));
        })?;
        header.check(index, crc, offsets[index])?;
    }
    let crc = source.elements(offsets[7], n, |bytes| id.push(u64::from_le_bytes(bytes)))?;
    header.check(7, crc, offsets[7])?;
    let mut unknown = None;
    let crc = source.elements(offsets[8], n, |[code]: [u8; 1]| {
        let known = BodyKind::of_number(code.into());
        if known.is_none() && unknown.is_none() {
            unknown = Some((kind.len(), code));
        }
        kind.push(known.unwrap_or(BodyKind::Star));
    })?;
    header.check(8, crc, offsets[8])?;
    if let Some((body, kind)) = unknown {
        let offset = offsets[8] + body as u64;
        return Err(BinaryFault::BodyKind { offset, body, kind }.into());
    }
    bodies.check()?;
    Ok(Contents {
        snapshot: Snapshot {
            time: header.time,
            bodies,
        },
        units: header.units,
        notes: Vec::new(),
        ..Contents::default()
    })
}

impl Header {
    fn check(&self, column: usize, crc: u32, offset: u64) -> Result<(), BinaryFault> {
        if crc == self.crcs[column] {
            return Ok(());
        }
        let column = COLUMNS[column];
        Err(BinaryFault::ColumnChecksum { column, offset })
    }
}

struct Source<'a, R> {
    reader: &'a mut R,
    at: u64,
}

impl<R: Read> Source<'_, R> {
    /// Hands the `n` elements from `offset` on to `take`; returns their CRC.
    fn elements<const BYTES: usize>(
        &mut self,
        offset: u64,
        n: usize,
        mut take: impl FnMut([u8; BYTES]),
    ) -> io::Result<u32> {
        let padding = offset - self.at;
        io::copy(&mut self.reader.by_ref().take(padding), &mut io::sink())?;
        let mut crc = Hasher::new();
        let mut buffer = vec![0; BYTES * CHUNK.min(n)];
        let mut left = n;
        while left > 0 {
            let now = left.min(CHUNK);
            let bytes = &mut buffer[..BYTES * now];
            self.reader.read_exact(bytes)?;
            crc.update(bytes);
            bytes
                .as_chunks::<BYTES>()
                .0
                .iter()
                .copied()
                .for_each(&mut take);
            left -= now;
        }
        self.at = offset + (BYTES * n) as u64;
        Ok(crc.finalize())
    }
}

/// Writes `snapshot`, which has passed [`Bodies::check`].
pub(super) fn write(
    file: &mut impl Write,
    snapshot: &Snapshot,
    units: Option<Units>,
) -> Result<(), WriteFault> {
    let bodies = &snapshot.bodies;
    let n = bodies.len() as u64;
    let offsets = offsets(n).expect("bodies in memory have fewer than 2^64 bytes");
    let mut crcs = [0; 9];
    for (column, crc) in crcs.iter_mut().enumerate() {
        let mut hasher = Hasher::new();
        each_chunk(bodies, column, |bytes| {
            hasher.update(bytes);
            Ok(())
        })?;
        *crc = hasher.finalize();
    }
    let header = Header {
        bodies: n,
        time: snapshot.time,
        units,
        crcs,
    };
    file.write_all(&header.bytes())?;
    let mut at = HEADER as u64;
    for (column, offset) in offsets.into_iter().take(9).enumerate() {
        file.write_all(&[0; ALIGNMENT as usize][..(offset - at) as usize])?;
        each_chunk(bodies, column, |bytes| file.write_all(bytes))?;
        at = offset + n * if column == 8 { 1 } else { 8 };
    }
    Ok(())
}

/// Hands the bytes of a column to `take`, piece by piece.
fn each_chunk(
    bodies: &Bodies,
    column: usize,
    mut take: impl FnMut(&[u8]) -> io::Result<()>,
) -> io::Result<()> {
    fn pieces<T: Copy, const BYTES: usize>(
        elements: &[T],
        bytes: impl Fn(T) -> [u8; BYTES],
        take: &mut impl FnMut(&[u8]) -> io::Result<()>,
    ) -> io::Result<()> {
        let mut buffer = Vec::with_capacity(BYTES * CHUNK.min(elements.len()));
        for chunk in elements.chunks(CHUNK) {
            buffer.clear();
            buffer.extend(chunk.iter().flat_map(|element| bytes(*element)));
            take(&buffer)?;
        }
        Ok(())
    }
    let real = match column {
        0 => &bodies.x,
        1 => &bodies.y,
        2 => &bodies.z,
        3 => &bodies.vx,
        4 => &bodies.vy,
        5 => &bodies.vz,
        6 => &bodies.mass,
        7 => return pieces(&bodies.id, u64::to_le_bytes, &mut take),
        _ => return pieces(&bodies.kind, |kind| [kind.number()], &mut take),
    };
    pieces(real, f64::to_le_bytes, &mut take)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bodies::{Body, BodyFault};

    fn file(n: u64) -> Vec<u8> {
        let bodies = (0..n)
            .map(|i| Body {
                position: [0.1 * i as f64, -1e300, 5e-324],
                velocity: [-0.0, 1.0 / 3.0, i as f64],
                mass: 0.7,
                id: u64::MAX - i,
                kind: BodyKind::ALL[i as usize % 3],
            })
            .collect();
        let mut bytes = Vec::new();
        let snapshot = Snapshot { time: 0.1, bodies };
        write(&mut bytes, &snapshot, Some(Units::SI)).unwrap();
        bytes
    }

    fn parse(bytes: &[u8]) -> Result<Snapshot, ReadFault> {
        read(&mut &bytes[..], bytes.len() as u64).map(|contents| contents.snapshot)
    }

    fn fault(bytes: &[u8]) -> BinaryFault {
        match parse(bytes) {
            Err(ReadFault::Binary(fault)) => fault,
            other => panic!("{other:?}"),
        }
    }

    /// Makes the checksums right again after a change.
    fn seal(bytes: &mut [u8], n: u64) {
        let offsets = offsets(n).unwrap();
        for column in 0..9 {
            let end = offsets[column] + n * if column == 8 { 1 } else { 8 };
            let crc = crc32fast::hash(&bytes[offsets[column] as usize..end as usize]);
            bytes[CRCS + 4 * column..][..4].copy_from_slice(&crc.to_le_bytes());
        }
        let crc = crc32fast::hash(&bytes[..HEADER_CRC]);
        bytes[HEADER_CRC..HEADER].copy_from_slice(&crc.to_le_bytes());
    }

    #[test]
    fn the_layout_is_the_documented_one() {
        let bytes = file(9);
        // 9 × 8 bytes take two units of 64; the ninth column is 9 bytes.
        assert_eq!(bytes.len(), 128 + 8 * 128 + 9);
        assert_eq!(&bytes[..8], b"ALLPAIRS");
        assert_eq!(bytes[16], 9);
        assert_eq!(bytes[24..32], 0.1_f64.to_le_bytes());
        assert_eq!(bytes[128 + 8..][..8], 0.1_f64.to_le_bytes());
        assert_eq!(
            bytes[128 + 7 * 128 + 8..][..8],
            (u64::MAX - 1).to_le_bytes()
        );
        assert_eq!(bytes[128 + 8 * 128..][..4], [0, 1, 2, 0]);
        let size = bytes.len() as u64;
        assert_eq!(read_units(&mut &bytes[..], size).unwrap(), Some(Units::SI));
    }

    #[test]
    fn more_than_one_chunk_round_trips() {
        let n = 2 * CHUNK as u64 + 5;
        let snapshot = parse(&file(n)).unwrap();
        assert_eq!(snapshot.bodies.len() as u64, n);
        assert_eq!(snapshot.bodies.id[n as usize - 1], u64::MAX - n + 1);
        assert_eq!(snapshot.bodies.y[7], -1e300);
    }

    #[test]
    fn every_changed_byte_and_every_cut_is_noticed() {
        let bytes = file(3);
        assert!(parse(&bytes).is_ok());
        let offsets = offsets(3).unwrap();
        let padding = |at: u64| {
            (0..8).any(|column| (offsets[column] + 24..offsets[column + 1]).contains(&at))
        };
        for at in 0..bytes.len() {
            assert!(parse(&bytes[..at]).is_err(), "cut at {at}");
            let mut changed = bytes.clone();
            changed[at] ^= 1;
            // Zeros between the columns belong to no column.
            assert_eq!(parse(&changed).is_err(), !padding(at as u64), "byte {at}");
        }
        let mut longer = bytes.clone();
        longer.push(0);
        assert!(matches!(fault(&longer), BinaryFault::Size { .. }));
    }

    #[test]
    fn faults_name_what_is_wrong() {
        let good = file(3);
        let offsets = offsets(3).unwrap();

        let mut bytes = good.clone();
        bytes[0] = b'a';
        assert_eq!(fault(&bytes), BinaryFault::Magic);

        let mut bytes = good.clone();
        bytes[8] = 2;
        assert_eq!(fault(&bytes), BinaryFault::Version(2));

        let mut bytes = good.clone();
        bytes[offsets[4] as usize] ^= 4;
        let (column, offset) = ("vy", offsets[4]);
        assert_eq!(
            fault(&bytes),
            BinaryFault::ColumnChecksum { column, offset }
        );

        // A number of bodies that would be an allocation of the whole memory.
        let mut bytes = good.clone();
        bytes[16..24].copy_from_slice(&(u64::MAX / 2).to_le_bytes());
        let crc = crc32fast::hash(&bytes[..HEADER_CRC]);
        bytes[HEADER_CRC..HEADER].copy_from_slice(&crc.to_le_bytes());
        assert!(matches!(fault(&bytes), BinaryFault::Size { .. }));

        for (at, value) in [(24, f64::NAN), (32, -1.0), (40, 0.0), (48, f64::INFINITY)] {
            let mut bytes = good.clone();
            bytes[at..at + 8].copy_from_slice(&value.to_le_bytes());
            seal(&mut bytes, 3);
            assert!(matches!(fault(&bytes), BinaryFault::Header { .. }), "{at}");
        }

        let mut bytes = good.clone();
        bytes[offsets[8] as usize + 1] = 9;
        seal(&mut bytes, 3);
        let (offset, body, kind) = (offsets[8] + 1, 1, 9);
        assert_eq!(fault(&bytes), BinaryFault::BodyKind { offset, body, kind });

        let mut bytes = good;
        bytes[offsets[6] as usize + 16..][..8].copy_from_slice(&f64::NAN.to_le_bytes());
        seal(&mut bytes, 3);
        assert!(matches!(
            parse(&bytes),
            Err(ReadFault::Body(BodyFault::NotFinite {
                body: 2,
                field: "mass",
                ..
            }))
        ));
    }
}
