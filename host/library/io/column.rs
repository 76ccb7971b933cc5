//! Common parts of the formats that hold named arrays: NPZ, HDF5 and VTK.

use std::io::{self, Read, Write};

use thiserror::Error;

use super::ReadFault;
use crate::bodies::Bodies;

/// Number of elements that are converted in one batch.
pub(super) const CHUNK: usize = 8192;

/// Deflate expands data up to 1032-fold, and no other compression of HDF5 does more: a file cannot
/// hold more than this many times its size, and what claims to is not believed.
pub(super) const EXPANSION: u64 = 1100;

/// A file that is not what its format asks for, or not what a snapshot asks for.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{place}: {problem}")]
pub struct Malformed {
    /// Place: an array, an attribute, a byte offset.
    pub place: String,
    /// Fault found there.
    pub problem: String,
}

impl Malformed {
    pub(super) fn new(place: impl Into<String>, problem: impl Into<String>) -> Self {
        let (place, problem) = (place.into(), problem.into());
        Self { place, problem }
    }
}

/// A little-endian or big-endian number type of an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Numbers {
    pub(super) class: Class,
    pub(super) bytes: usize,
    pub(super) big_endian: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Class {
    Real,
    Signed,
    Unsigned,
}

impl Numbers {
    /// Returns whether there is such a type.
    pub(super) fn is_known(self) -> bool {
        match self.class {
            Class::Real => matches!(self.bytes, 4 | 8),
            Class::Signed | Class::Unsigned => matches!(self.bytes, 1 | 2 | 4 | 8),
        }
    }

    /// The bits of an element, the sign of a signed one extended.
    fn bits(self, element: &[u8]) -> u64 {
        let mut bytes = [0; 8];
        for (i, byte) in bytes.iter_mut().take(self.bytes).enumerate() {
            *byte = element[if self.big_endian {
                self.bytes - 1 - i
            } else {
                i
            }];
        }
        let bits = u64::from_le_bytes(bytes);
        if self.class == Class::Signed {
            let unused = 64 - 8 * self.bytes as u32;
            ((bits << unused) as i64 >> unused) as u64
        } else {
            bits
        }
    }

    /// An element as a real number: exact, but for integers beyond 2⁵³.
    pub(super) fn real(self, element: &[u8]) -> f64 {
        let bits = self.bits(element);
        match (self.class, self.bytes) {
            (Class::Real, 4) => f64::from(f32::from_bits(bits as u32)),
            (Class::Real, _) => f64::from_bits(bits),
            (Class::Signed, _) => bits as i64 as f64,
            (Class::Unsigned, _) => bits as f64,
        }
    }

    /// An element as an id; `None` for a negative one, or a real number that is no such integer.
    pub(super) fn id(self, element: &[u8]) -> Option<u64> {
        let bits = self.bits(element);
        match self.class {
            Class::Unsigned => Some(bits),
            Class::Signed => u64::try_from(bits as i64).ok(),
            Class::Real => {
                let value = self.real(element);
                let exact =
                    (0.0..=9_007_199_254_740_992.0).contains(&value) && value.trunc() == value;
                exact.then_some(value as u64)
            }
        }
    }
}

/// Empty arrays with room for `n` bodies, a number that the file's size has confirmed.
pub(super) fn room_for(n: usize) -> Result<Bodies, ReadFault> {
    if n == 0 {
        return Err(ReadFault::NoBodies);
    }
    let mut bodies = Bodies::default();
    bodies
        .try_reserve(n)
        .map_err(|_| ReadFault::OutOfMemory { bodies: n })?;
    Ok(bodies)
}

/// Names under which programs store the quantities of a body; the first is the one written here.
#[cfg(feature = "npz")]
pub(super) const POSITION: [&str; 8] = [
    "position",
    "pos",
    "POS",
    "positions",
    "Position",
    "Positions",
    "Coordinates",
    "coordinates",
];
pub(super) const VELOCITY: [&str; 7] = [
    "velocity",
    "vel",
    "VEL",
    "velocities",
    "Velocity",
    "Velocities",
    "v",
];
pub(super) const MASS: [&str; 6] = ["mass", "masses", "Mass", "Masses", "MASS", "m"];
/// Names of the time of a snapshot.
pub(super) const TIME: [&str; 4] = ["time", "Time", "TIME", "t"];
pub(super) const ID: [&str; 4] = ["id", "ids", "ParticleIDs", "iord"];
pub(super) const KIND: [&str; 1] = ["kind"];

/// Ids and kinds that there are.
pub(super) const IDS: &str =
    "an id is a whole number ≥ 0, up to 2⁶⁴ − 1, or as a floating-point number to 2⁵³";
pub(super) const KINDS: &str = "a kind is 0 (gas), 1 (dark matter) or 2 (star)";

/// The note on what a file holds and a snapshot has no place for: columns, arrays, datasets.
pub(super) fn left_out(what: &str, names: &[impl AsRef<str>]) -> String {
    const SHOWN: usize = 12;
    let shown: Vec<&str> = names.iter().take(SHOWN).map(AsRef::as_ref).collect();
    let more = if names.len() > SHOWN { ", …" } else { "" };
    format!("{what} that are not used here: {}{more}", shown.join(", "))
}

/// Reads rows of `columns.len()` real numbers, `n` of them, row after row or column after column.
pub(super) fn read_reals(
    reader: &mut impl Read,
    numbers: Numbers,
    n: usize,
    columns: &mut [&mut Vec<f64>],
    column_after_column: bool,
) -> io::Result<()> {
    if column_after_column {
        for column in columns {
            each_element(reader, numbers, n, |element| {
                column.push(numbers.real(element))
            })?;
        }
        return Ok(());
    }
    let mut next = 0;
    each_element(reader, numbers, n * columns.len(), |element| {
        columns[next].push(numbers.real(element));
        next = (next + 1) % columns.len();
    })
}

/// Reads `n` ids or kinds; `allowed` says which those are.
pub(super) fn read_integers<T>(
    reader: &mut impl Read,
    numbers: Numbers,
    n: usize,
    column: &mut Vec<T>,
    place: &str,
    (convert, allowed): (impl Fn(u64) -> Option<T>, &str),
) -> Result<(), ReadFault> {
    let mut fault = None;
    each_element(reader, numbers, n, |element| {
        match numbers.id(element).and_then(&convert) {
            Some(value) => column.push(value),
            None => fault = fault.or(Some((column.len(), numbers.real(element)))),
        }
    })?;
    match fault {
        None => Ok(()),
        Some((body, value)) => Err(Malformed::new(
            place,
            format!("the value of body {body} is {value:?}, and {allowed}"),
        )
        .into()),
    }
}

fn each_element(
    reader: &mut impl Read,
    numbers: Numbers,
    n: usize,
    mut take: impl FnMut(&[u8]),
) -> io::Result<()> {
    let mut buffer = vec![0; numbers.bytes * CHUNK.min(n)];
    let mut left = n;
    while left > 0 {
        let now = left.min(CHUNK);
        let bytes = &mut buffer[..numbers.bytes * now];
        reader.read_exact(bytes)?;
        bytes.chunks_exact(numbers.bytes).for_each(&mut take);
        left -= now;
    }
    Ok(())
}

/// Writes triples, little-endian, body after body.
pub(super) fn write_triples(file: &mut impl Write, [x, y, z]: [&[f64]; 3]) -> io::Result<()> {
    for ((x, y), z) in x.iter().zip(y).zip(z) {
        let mut bytes = [0; 24];
        for (place, value) in bytes.as_chunks_mut::<8>().0.iter_mut().zip([x, y, z]) {
            *place = value.to_le_bytes();
        }
        file.write_all(&bytes)?;
    }
    Ok(())
}

/// Writes numbers, little-endian.
pub(super) fn write_all<T: Copy, const BYTES: usize>(
    file: &mut impl Write,
    elements: impl IntoIterator<Item = T>,
    bytes: impl Fn(T) -> [u8; BYTES],
) -> io::Result<()> {
    elements
        .into_iter()
        .try_for_each(|element| file.write_all(&bytes(element)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bodies::BodyKind;

    #[test]
    fn rows_and_columns_give_the_same() {
        let numbers = Numbers {
            class: Class::Unsigned,
            bytes: 1,
            big_endian: false,
        };
        for (bytes, columns_first) in [([1, 2, 3, 4, 5, 6], false), ([1, 3, 5, 2, 4, 6], true)] {
            let (mut a, mut b) = (Vec::new(), Vec::new());
            let columns = &mut [&mut a, &mut b];
            read_reals(&mut &bytes[..], numbers, 3, columns, columns_first).unwrap();
            assert_eq!((a, b), (vec![1.0, 3.0, 5.0], vec![2.0, 4.0, 6.0]));
        }
        let mut kinds = Vec::new();
        let fault = read_integers(
            &mut &[0, 2, 3][..],
            numbers,
            3,
            &mut kinds,
            "k",
            (BodyKind::of_number, KINDS),
        );
        let told = fault.unwrap_err().to_string();
        assert_eq!(
            told,
            "k: the value of body 2 is 3.0, and a kind is 0 (gas), 1 (dark matter) or 2 (star)"
        );
        let numbers = Numbers {
            class: Class::Real,
            bytes: 8,
            big_endian: false,
        };
        let ids = [1.0_f64, 1.5].map(f64::to_le_bytes);
        let ids = (&mut ids.as_flattened(), &mut Vec::new());
        let fault = read_integers(ids.0, numbers, 2, ids.1, "id", (Some, IDS));
        let told = fault.unwrap_err().to_string();
        assert!(
            told.contains("body 1 is 1.5, and an id is a whole number"),
            "{told}"
        );
    }

    #[test]
    fn numbers_of_all_types() {
        let of = |class, bytes, big_endian| Numbers {
            class,
            bytes,
            big_endian,
        };
        assert_eq!(of(Class::Real, 4, true).real(&1.5_f32.to_be_bytes()), 1.5);
        assert_eq!(of(Class::Real, 8, false).real(&0.1_f64.to_le_bytes()), 0.1);
        assert_eq!(
            of(Class::Signed, 2, true).real(&(-3_i16).to_be_bytes()),
            -3.0
        );
        assert_eq!(of(Class::Signed, 1, false).id(&[0xff]), None);
        assert_eq!(
            of(Class::Signed, 4, false).id(&7_i32.to_le_bytes()),
            Some(7)
        );
        let largest = u64::MAX.to_le_bytes();
        assert_eq!(of(Class::Unsigned, 8, false).id(&largest), Some(u64::MAX));
        assert_eq!(of(Class::Real, 8, false).id(&2.5_f64.to_le_bytes()), None);
        assert_eq!(of(Class::Real, 8, false).id(&f64::NAN.to_le_bytes()), None);
        assert_eq!(
            of(Class::Real, 8, false).id(&12.0_f64.to_le_bytes()),
            Some(12)
        );
        assert!(!of(Class::Real, 2, false).is_known());
        assert!(of(Class::Unsigned, 1, false).is_known());
    }
}
