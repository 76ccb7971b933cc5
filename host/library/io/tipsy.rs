//! The Tipsy binary format.
//! ```text
//! header   f64 time; i32 bodies, dimensions, gas, dark, stars; usually 4 bytes of padding
//! gas      f32 mass, x, y, z, vx, vy, vz, density, temperature, smoothing, metals, last
//! dark     f32 mass, x, y, z, vx, vy, vz, softening, last
//! star     f32 mass, x, y, z, vx, vy, vz, metals, formation time, softening, last
//! ```
//! All gas comes first, then all dark matter, then all stars. Read are time, mass, position,
//! velocity and ids; notes say where a file has softening lengths or gas. Written are zeros for
//! the rest, and 32-byte headers.
//! Layout: PKDGRAV3 manual, "File Formats"; NEMO, `tipsy(5)`.
//!
//! # Which dialect?
//! The file does not say, so it is inferred:
//! * **Byte order.** `dimensions` is 1, 2 or 3 in one byte order and above 16 million in the other.
//! * **Header length.** 28 or 32 bytes, whichever makes the file's size come out exactly. The
//!   padding's content is ignored: writers leave rubbish there. A file of 32 bytes that lost its
//!   last 4 has the size of one of 28, so the latter is believed only if what would be the first
//!   mass is not zero or subnormal, as paddings are.
//! * **`last` of little-endian files: potential or id?** Ids, if all are distinct and, read as
//!   i32, lie in `0..=`[`MAX_ID`]. Read as f32, such words are positive and below 10⁻⁶, and a
//!   gravitational potential is negative; all potentials zero (a writer that did not compute them)
//!   are not distinct. The rule fails for a file of distinct, positive, tiny potentials, and for
//!   ids that are negative, repeated or above the limit: give the dialect for those. One body whose
//!   word is zero counts as without ids; it gets id 0 either way.

use std::collections::HashSet;
use std::io::{self, Read, Write};

use thiserror::Error;

use super::{Contents, Format, ReadFault, Snapshot, WriteFault};
use crate::bodies::{Bodies, Body, BodyFault, BodyKind, COORDINATES};

/// The flavours of Tipsy: byte order, and what the last word of a record means.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TipsyDialect {
    /// Big-endian, potentials: the portable form ("standard" or "XDR" Tipsy).
    Standard,
    /// Little-endian, potentials: what programs on today's machines dump.
    Native,
    /// Little-endian, i32 ids in place of potentials: Bonsai and NVIDIA's galaxy files.
    WithIds,
}

/// The largest id that a file with ids is allowed to hold, 897 988 540: as f32 its bits are just
/// below 10⁻⁶. See the module's rule for telling ids from potentials.
pub const MAX_ID: u32 = 1e-6_f32.to_bits() - 1;

/// Fault of a Tipsy file. Bodies are counted from 0 in file order.
#[derive(Clone, Copy, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum TipsyFault {
    /// Too short for a header.
    #[error(
        "the file ends after {size} bytes, inside the 28-byte Tipsy header; it was cut short or is \
         not Tipsy"
    )]
    HeaderCut {
        /// Size of the file in bytes.
        size: u64,
    },
    /// The number of dimensions makes sense in neither byte order.
    #[error(
        "byte offset 12: the number of dimensions is {little} little-endian and {big} big-endian, \
         not 1 to 3; this is not a Tipsy file, give the format if it is another one"
    )]
    Dimensions {
        /// The word as a little-endian number.
        little: i32,
        /// The word as a big-endian number.
        big: i32,
    },
    /// The byte order of the dialect differs from the byte order of the file.
    #[error(
        "byte offset 12: the file is {found}-endian, not what `{}` means; leave the format out to \
         have it detected", Format::Tipsy(*asked)
    )]
    ByteOrder {
        /// The dialect asked for.
        asked: TipsyDialect,
        /// The file's byte order, "big" or "little".
        found: &'static str,
    },
    /// The header contradicts itself.
    #[error(
        "byte offset 8: {total} bodies are not {gas} gas + {dark} dark + {star} stars, each from 0 \
         to 2147483647; the header is damaged or this is not a Tipsy file"
    )]
    Counts {
        /// Number of bodies.
        total: i32,
        /// Number of gas bodies.
        gas: i32,
        /// Number of dark bodies.
        dark: i32,
        /// Number of stars.
        star: i32,
    },
    /// The file's size is not what the header asks for.
    #[error(
        "the file ends after {actual} bytes, but {gas} gas, {dark} dark and {star} stars need \
         {expected}; {}", size_advice(*actual, *expected)
    )]
    Size {
        /// Size of the file in bytes.
        actual: u64,
        /// Size that the counts ask for, with a 32-byte header.
        expected: u64,
        /// Number of gas bodies.
        gas: u32,
        /// Number of dark bodies.
        dark: u32,
        /// Number of stars.
        star: u32,
    },
    /// The time is infinite or not a number.
    #[error("byte offset 0: the time is {0}, not a finite number; the header is damaged")]
    Time(f64),
    /// A body that cannot be simulated.
    #[error("byte offset {offset}: {fault}; repair or leave out this body")]
    Body {
        /// Byte offset of the value.
        offset: u64,
        /// The fault.
        fault: BodyFault,
    },
    /// A negative id in a file that was said to hold ids.
    #[error(
        "byte offset {offset}: body {body} has the negative id {id}; if the file holds potentials, \
         read it as `{}`",
        Format::Tipsy(TipsyDialect::Native)
    )]
    NegativeId {
        /// Byte offset of the id.
        offset: u64,
        /// Index of the body.
        body: usize,
        /// The id.
        id: i32,
    },
}

fn size_advice(actual: u64, expected: u64) -> &'static str {
    if actual + 4 == expected {
        "it lost its last 4 bytes, or its header is 28 bytes long and its first body has no mass: \
         copy it again, or pad the header to 32 bytes"
    } else if actual < expected {
        "it was cut short: copy or write it again"
    } else {
        "it holds something else as well: only single snapshots in single precision can be read"
    }
}

impl From<TipsyFault> for ReadFault {
    fn from(fault: TipsyFault) -> Self {
        ReadFault::Tipsy(fault)
    }
}

/// Words of 4 bytes before and including the velocity, the same in all records.
const COMMON_WORDS: usize = 7;

/// The word of a record with the softening length of the body, where there is one.
const fn softening_word(kind: BodyKind) -> Option<usize> {
    match kind {
        BodyKind::Gas => None,
        BodyKind::Dark => Some(7),
        BodyKind::Star => Some(9),
    }
}

/// Words of 4 bytes in the record of a body.
const fn record_words(kind: BodyKind) -> usize {
    match kind {
        BodyKind::Gas => 12,
        BodyKind::Dark => 9,
        BodyKind::Star => 11,
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum ByteOrder {
    Big,
    Little,
}

impl ByteOrder {
    fn of(dialect: TipsyDialect) -> Self {
        match dialect {
            TipsyDialect::Standard => ByteOrder::Big,
            TipsyDialect::Native | TipsyDialect::WithIds => ByteOrder::Little,
        }
    }

    fn word(self, bytes: [u8; 4]) -> u32 {
        match self {
            ByteOrder::Big => u32::from_be_bytes(bytes),
            ByteOrder::Little => u32::from_le_bytes(bytes),
        }
    }

    fn word_bytes(self, word: u32) -> [u8; 4] {
        match self {
            ByteOrder::Big => word.to_be_bytes(),
            ByteOrder::Little => word.to_le_bytes(),
        }
    }
}

/// A header that agrees with the size of its file.
struct Header {
    order: ByteOrder,
    time: f64,
    /// Bodies of each kind, in the order of [`BodyKind::ALL`].
    counts: [u32; 3],
    /// Byte offset of the first record: 28 or 32.
    length: u64,
}

impl Header {
    const SHORT: u64 = 28;
    const LONG: u64 = 32;

    /// Takes a header apart, given the first 32 bytes (zeros beyond the end) and the size of the
    /// whole file.
    fn parse(bytes: &[u8; Self::LONG as usize], size: u64) -> Result<Self, TipsyFault> {
        let [
            time_low,
            time_high,
            total,
            dimensions,
            gas,
            dark,
            star,
            next,
        ] = std::array::from_fn(|i| [0, 1, 2, 3].map(|byte| bytes[4 * i + byte]));

        let (little, big) = (
            i32::from_le_bytes(dimensions),
            i32::from_be_bytes(dimensions),
        );
        let order = match (little, big) {
            (1..=3, _) => ByteOrder::Little,
            (_, 1..=3) => ByteOrder::Big,
            _ => return Err(TipsyFault::Dimensions { little, big }),
        };
        let [total, gas, dark, star] =
            [total, gas, dark, star].map(|bytes| order.word(bytes) as i32);
        // Beyond i32, PKDGRAV3 spreads the counts over the padding as well; such files (75 GB and
        // more) are not read here.
        let sum = [gas, dark, star].into_iter().map(i64::from).sum::<i64>();
        let [Ok(gas), Ok(dark), Ok(star)] = [gas, dark, star].map(u32::try_from) else {
            return Err(TipsyFault::Counts {
                total,
                gas,
                dark,
                star,
            });
        };
        if sum != i64::from(total) {
            let [gas, dark, star] = [gas, dark, star].map(|count| count as i32);
            return Err(TipsyFault::Counts {
                total,
                gas,
                dark,
                star,
            });
        }

        // At most 2³¹ bodies of 48 bytes: far from overflow.
        let records: u64 = BodyKind::ALL
            .into_iter()
            .zip([gas, dark, star])
            .map(|(kind, count)| 4 * record_words(kind) as u64 * u64::from(count))
            .sum();
        let length = size.wrapping_sub(records);
        let next = f32::from_bits(order.word(next));
        let is_mass = next != 0.0 && !next.is_subnormal();
        if length != Self::LONG && !(length == Self::SHORT && is_mass) {
            let expected = Self::LONG + records;
            return Err(TipsyFault::Size {
                actual: size,
                expected,
                gas,
                dark,
                star,
            });
        }

        let (first, second) = (
            u64::from(order.word(time_low)),
            u64::from(order.word(time_high)),
        );
        let time = f64::from_bits(match order {
            ByteOrder::Big => first << 32 | second,
            ByteOrder::Little => second << 32 | first,
        });
        if !time.is_finite() {
            return Err(TipsyFault::Time(time));
        }
        Ok(Self {
            order,
            time,
            counts: [gas, dark, star],
            length,
        })
    }
}

/// Returns whether a file of `size` bytes begins with a header of bodies, damaged as the rest may be.
pub(super) fn is_header(start: &[u8], size: u64) -> bool {
    let mut bytes = [0; Header::LONG as usize];
    let length = start.len().min(bytes.len());
    bytes[..length].copy_from_slice(&start[..length]);
    let is_other = |fault: TipsyFault| {
        matches!(
            fault,
            TipsyFault::Dimensions { .. } | TipsyFault::Counts { .. }
        )
    };
    length >= Header::SHORT as usize
        && bytes[8..12] != [0; 4]
        && !Header::parse(&bytes, size).is_err_and(is_other)
}

/// Reads a Tipsy file of `size` bytes from its beginning, in `dialect` if one is given.
pub(super) fn read(
    reader: &mut impl Read,
    size: u64,
    dialect: Option<TipsyDialect>,
) -> Result<(Contents, TipsyDialect), ReadFault> {
    if size < Header::SHORT {
        return Err(TipsyFault::HeaderCut { size }.into());
    }
    let mut bytes = [0; Header::LONG as usize];
    reader.read_exact(&mut bytes[..size.min(Header::LONG) as usize])?;
    let header = Header::parse(&bytes, size)?;
    let order = header.order;
    if let Some(asked) = dialect.filter(|asked| ByteOrder::of(*asked) != order) {
        let found = if order == ByteOrder::Big {
            "big"
        } else {
            "little"
        };
        return Err(TipsyFault::ByteOrder { asked, found }.into());
    }
    // What was taken beyond a short header is the beginning of the first record.
    let mut reader = bytes[header.length as usize..].chain(reader);

    let total = header.counts.iter().map(|count| *count as usize).sum();
    if total == 0 {
        return Err(ReadFault::NoBodies);
    }
    // The counts are those of the file's real size by now.
    let mut bodies = Bodies::default();
    bodies
        .try_reserve(total)
        .map_err(|_| ReadFault::OutOfMemory { bodies: total })?;

    // Until the dialect is settled, `id` holds the last word of each record.
    let mut offset = header.length;
    let mut softenings: Option<(f64, f64)> = None;
    for (kind, count) in BodyKind::ALL.into_iter().zip(header.counts) {
        let mut record = [0; 4 * 12];
        let record = &mut record[..4 * record_words(kind)];
        for _ in 0..count {
            reader.read_exact(record)?;
            let (words, _) = record.as_chunks::<4>();
            let value = |i: usize| f64::from(f32::from_bits(order.word(words[i])));
            let last = order.word(words[words.len() - 1]);
            let body = Body {
                mass: value(0),
                position: [value(1), value(2), value(3)],
                velocity: [value(4), value(5), value(6)],
                id: u64::from(last),
                kind,
            };
            body.check(bodies.len()).map_err(|fault| TipsyFault::Body {
                offset: offset + field_offset(fault),
                fault,
            })?;
            if dialect == Some(TipsyDialect::WithIds) && (last as i32) < 0 {
                let offset = offset + record.len() as u64 - 4;
                let (body, id) = (bodies.len(), last as i32);
                return Err(TipsyFault::NegativeId { offset, body, id }.into());
            }
            if let Some(length) = softening_word(kind).map(value).filter(|eps| *eps > 0.0) {
                let (least, most) = softenings.unwrap_or((length, length));
                softenings = Some((least.min(length), most.max(length)));
            }
            bodies.push(body);
            offset += record.len() as u64;
        }
    }

    let dialect = dialect.unwrap_or_else(|| match order {
        ByteOrder::Big => TipsyDialect::Standard,
        ByteOrder::Little if are_ids(&bodies.id) => TipsyDialect::WithIds,
        ByteOrder::Little => TipsyDialect::Native,
    });
    if dialect != TipsyDialect::WithIds {
        bodies.number_ids();
    }
    let mut notes = Vec::new();
    if let Some((least, most)) = softenings {
        notes.push(format!(
            "bodies have softening lengths of their own ({} to {}), which are not used: one \
             length softens all forces here",
            least as f32, most as f32
        ));
    }
    let gas = header.counts[0];
    if gas > 0 {
        notes.push(format!(
            "{gas} bodies are gas, which is moved by gravity alone here; density, temperature and \
             smoothing lengths are not used"
        ));
    }
    let contents = Contents {
        snapshot: Snapshot {
            time: header.time,
            bodies,
        },
        units: None,
        notes,
        ..Contents::default()
    };
    Ok((contents, dialect))
}

/// The module's rule: whether the last words of all records are ids.
fn are_ids(words: &[u64]) -> bool {
    let mut seen = HashSet::new();
    words != [0]
        && words
            .iter()
            .all(|word| *word <= u64::from(MAX_ID) && seen.insert(*word))
}

/// Offset within a record of the field that `fault` names.
fn field_offset(fault: BodyFault) -> u64 {
    let coordinate = match fault {
        BodyFault::NotFinite { field, .. } => COORDINATES.iter().position(|name| *name == field),
        BodyFault::Length { .. } | BodyFault::NegativeMass { .. } => None,
    };
    coordinate.map_or(0, |index| 4 * (1 + index as u64))
}

/// Writes `snapshot`, which has passed [`Bodies::check`], with a header of 32 bytes.
pub(super) fn write(
    file: &mut impl Write,
    dialect: TipsyDialect,
    snapshot: &Snapshot,
) -> Result<(), WriteFault> {
    let bodies = &snapshot.bodies;
    if dialect == TipsyDialect::WithIds {
        check_ids(&bodies.id)?;
    }
    let count = |kind: BodyKind| bodies.kind.iter().filter(|other| **other == kind).count();
    let [gas, dark, star] = BodyKind::ALL.map(count);
    if bodies.len() > i32::MAX as usize {
        return Err(WriteFault::TooManyBodies {
            bodies: bodies.len(),
        });
    }

    let order = ByteOrder::of(dialect);
    let mut put = |word: u32| -> io::Result<()> { file.write_all(&order.word_bytes(word)) };
    let time = snapshot.time.to_bits();
    let (high, low) = ((time >> 32) as u32, time as u32);
    let time = if order == ByteOrder::Big {
        [high, low]
    } else {
        [low, high]
    };
    let [total, gas, dark, star] = [bodies.len(), gas, dark, star].map(|count| count as u32);
    for word in time.into_iter().chain([total, 3, gas, dark, star, 0]) {
        put(word)?;
    }

    for kind in BodyKind::ALL {
        let group = bodies
            .iter()
            .enumerate()
            .filter(|(_, body)| body.kind == kind);
        for (index, body) in group {
            put(single("mass", body.mass, index)?)?;
            let coordinates = body.position.into_iter().chain(body.velocity);
            for (field, value) in COORDINATES.into_iter().zip(coordinates) {
                put(single(field, value, index)?)?;
            }
            for _ in COMMON_WORDS..record_words(kind) - 1 {
                put(0)?;
            }
            // Not computed here: a potential of zero.
            put(if dialect == TipsyDialect::WithIds {
                body.id as u32
            } else {
                0
            })?;
        }
    }
    Ok(())
}

/// The bits of `value` in single precision.
fn single(field: &'static str, value: f64, body: usize) -> Result<u32, WriteFault> {
    let narrow = value as f32;
    // A coordinate may underflow, that is mere rounding; a body without its mass is another one.
    let vanished = field == "mass" && narrow == 0.0 && value != 0.0;
    if !narrow.is_finite() || vanished {
        return Err(WriteFault::SinglePrecision { body, field, value });
    }
    Ok(narrow.to_bits())
}

/// Returns whether a reader that follows the module's rule would recognise these ids.
fn check_ids(ids: &[u64]) -> Result<(), WriteFault> {
    let mut seen = HashSet::new();
    for (body, &id) in ids.iter().enumerate() {
        if id > u64::from(MAX_ID) {
            return Err(WriteFault::IdTooLarge { body, id });
        }
        if !seen.insert(id) {
            return Err(WriteFault::DuplicateId { id });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
