//! Snapshots of PeTar in its binary format.
//! ```text
//! head     i64 number of the file, i64 N, f64 time; with an external field f64 x y z vx vy vz of the frame
//! N times  f64 m x y z vx vy vz, i64 binary state, f64 radius and three times with stellar evolution, a star's own
//!          10 numbers with SSE and BSE, f64 r_search, i64 id, i64 mass_bk, i64 status, f64 r_in, f64 r_out,
//!          f64 acceleration[3], f64 potentials[2], or [3] in an external field, i64 number of neighbours
//! ```
//! Little-endian, 8 bytes for each number. The bytes of a body tell which of them there are. PeTar writes this
//! format on request, and the same as [text](super::csv) otherwise.
//! Layout: PeTar's manual, "Data Format for snapshots".

use std::io::{Read, Seek, SeekFrom};

use super::column::{Malformed, left_out, room_for};
use super::{Contents, ReadFault, Snapshot};
use crate::bodies::{Body, BodyKind};

/// Bytes of the head: alone, and with a frame.
const HEADS: [u64; 2] = [24, 72];

/// Numbers of a body without and with an external field, and the index of the id among them.
pub(super) const BODIES: [(u64, u64, usize); 3] = [(20, 21, 9), (24, 25, 13), (34, 35, 23)];

/// Bytes by which a file is known: the head, and the first body to its id.
pub(super) const START: u64 = 512;

/// The head of a file, and the layout of its bodies.
struct Layout {
    head: u64,
    time: f64,
    bodies: u64,
    columns: u64,
    id: usize,
}

impl Layout {
    /// The layout of a file of `size` bytes that begins with these, if it is one of these.
    fn of(start: &[u8], size: u64) -> Option<Self> {
        let ([file, bodies, time], _) = start.as_chunks::<8>().0.split_first_chunk()?;
        let (file, bodies) = (i64::from_le_bytes(*file), u64::from_le_bytes(*bodies));
        let time = f64::from_le_bytes(*time);
        if !(0..1 << 32).contains(&file) || !time.is_finite() {
            return None;
        }
        let mut layouts = BODIES
            .into_iter()
            .flat_map(|(alone, in_field, id)| [(HEADS[0], alone, id), (HEADS[1], in_field, id)]);
        layouts.find_map(|(head, columns, id)| {
            let all = bodies.checked_mul(8 * columns)?.checked_add(head)?;
            // Sizes of a few bodies suit two layouts, of which one has an id in the place of ids.
            let at = head as usize + 8 * id;
            let first = i64::from_le_bytes(*start.get(at..)?.first_chunk()?);
            (all == size && bodies > 0 && is_id(first)).then_some(Self {
                head,
                time,
                bodies,
                columns,
                id,
            })
        })
    }
}

/// Returns whether a file of `size` bytes begins as one of these.
pub(super) fn is_header(start: &[u8], size: u64) -> bool {
    Layout::of(start, size).is_some()
}

/// Reads a snapshot of `size` bytes.
pub(super) fn read(reader: &mut (impl Read + Seek), size: u64) -> Result<Contents, ReadFault> {
    let mut start = vec![];
    reader.take(START).read_to_end(&mut start)?;
    let layout = Layout::of(&start, size).ok_or_else(|| {
        let problem =
            "this is not the head of a binary snapshot of PeTar, or the file was cut short";
        Malformed::new("byte offset 0", problem)
    })?;
    let frame = &start[HEADS[0] as usize..layout.head as usize];
    reader.seek(SeekFrom::Start(layout.head))?;
    let n = usize::try_from(layout.bodies)
        .map_err(|_| ReadFault::OutOfMemory { bodies: usize::MAX })?;
    let mut bodies = room_for(n)?;
    let mut row = vec![[0; 8]; layout.columns as usize];
    for body in 0..n {
        reader.read_exact(row.as_flattened_mut())?;
        let real = |column: usize| f64::from_le_bytes(row[column]);
        let id = i64::from_le_bytes(row[layout.id]);
        bodies.push(Body {
            position: [real(1), real(2), real(3)],
            velocity: [real(4), real(5), real(6)],
            mass: real(0),
            id: checked_id(id, body)?,
            kind: BodyKind::Star,
        });
    }
    bodies.check()?;
    let others = ["binary states, radii, times, accelerations and potentials of PeTar"];
    let mut note = left_out("numbers", &others);
    let (frame, _) = frame.as_chunks::<8>();
    let frame: Vec<f64> = frame
        .iter()
        .map(|bytes| f64::from_le_bytes(*bytes))
        .collect();
    if frame.iter().any(|number| *number != 0.0) {
        note += &format!("; bodies are in a frame of place and velocity {frame:?}");
    }
    note += NO_UNITS;
    Ok(Contents {
        snapshot: Snapshot {
            time: layout.time,
            bodies,
        },
        notes: vec![note],
        ..Contents::default()
    })
}

/// Returns whether it can be an id: PeTar's begin with 1, and the bits of most real numbers are larger.
fn is_id(number: i64) -> bool {
    (1..=1 << 52).contains(&number)
}

/// The id of a body.
fn checked_id(id: i64, body: usize) -> Result<u64, Malformed> {
    match is_id(id) {
        true => Ok(id as u64),
        false => {
            let problem = format!(
                "the id of body {body} is {id}, and PeTar's begin with 1: the file is damaged"
            );
            Err(Malformed::new("the bodies", problem))
        }
    }
}

/// End of a note on files of PeTar.
pub(super) const NO_UNITS: &str =
    "; PeTar's files record no units: they are pc,Msun,Myr if it was run with -u 1";

#[cfg(test)]
mod tests {
    use super::super::{Format, load_from};
    use super::*;
    use std::io::Cursor;
    use std::path::Path;

    /// A file with two bodies, each of this count of numbers.
    fn file(columns: usize, id: usize, in_field: bool) -> Vec<u8> {
        let mut bytes = [3_i64, 2].map(i64::to_le_bytes).concat();
        bytes.extend(0.75_f64.to_le_bytes());
        if in_field {
            bytes.extend(
                [8e3, 0.0, 0.0, 0.0, 220.0, 0.0]
                    .map(f64::to_le_bytes)
                    .concat(),
            );
        }
        for body in 1..=2_u8 {
            let mut row = vec![[0; 8]; columns];
            for (k, number) in row.iter_mut().take(7).enumerate() {
                *number = (f64::from(body) + k as f64 / 3.0).to_le_bytes();
            }
            row[id - 1] = 1e-3_f64.to_le_bytes();
            row[id] = (100 + i64::from(body)).to_le_bytes();
            row[columns - 1] = 5_i64.to_le_bytes();
            bytes.extend(row.as_flattened());
        }
        bytes
    }

    #[test]
    fn all_layouts_are_read_by_their_content() {
        for (alone, in_field, id) in BODIES {
            for (columns, in_field) in [(alone, false), (in_field, true)] {
                let bytes = file(columns as usize, id, in_field);
                let read = |bytes: &[u8]| load_from(Cursor::new(bytes), Path::new("data.3"), None);
                let loaded = read(&bytes).unwrap();
                assert_eq!(loaded.format, Format::Petar);
                let Snapshot { time, bodies } = &loaded.snapshot;
                assert_eq!((*time, &bodies.id[..]), (0.75, &[101, 102][..]));
                assert_eq!(bodies.mass, [1.0, 2.0]);
                let [third, two] = [1.0 / 3.0, 2.0 / 3.0];
                assert_eq!(bodies.body(1).position, [2.0 + third, 2.0 + two, 3.0]);
                assert_eq!(
                    bodies.body(0).velocity,
                    [1.0 + 4.0 / 3.0, 1.0 + 5.0 / 3.0, 3.0]
                );
                let note = loaded.notes.concat();
                assert_eq!(
                    note.contains("8000.0, 0.0, 0.0, 0.0, 220.0, 0.0"),
                    in_field,
                    "{note}"
                );
                assert!(note.contains("no units"), "{note}");
                for cut in 0..bytes.len() {
                    assert!(read(&bytes[..cut]).is_err(), "{cut}");
                }
            }
        }
    }

    #[test]
    fn what_is_no_body_is_refused() {
        let mut bytes = file(20, 9, false);
        let read = |bytes: &[u8]| read(&mut Cursor::new(bytes), bytes.len() as u64);
        let at = 24 + 8 * (20 + 9);
        bytes[at..at + 8].copy_from_slice(&(-1_i64).to_le_bytes());
        let told = read(&bytes).unwrap_err().to_string();
        assert!(told.contains("the id of body 1 is -1"), "{told}");
        let mut bytes = file(20, 9, false);
        bytes[24..32].copy_from_slice(&f64::NAN.to_le_bytes());
        assert!(read(&bytes).is_err());
    }
}
