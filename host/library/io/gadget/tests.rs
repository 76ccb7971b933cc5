//! Tests of the reader of Gadget's binary formats.

use std::fs;
use std::io::Cursor;

use super::super::{Format, ReadError, load, read_from};
use super::*;

/// How a file is laid out.
#[derive(Clone, Copy, Debug)]
struct Layout {
    labelled: bool,
    big: bool,
    double: bool,
    long_ids: bool,
}

const PLAIN: Layout = Layout {
    labelled: false,
    big: false,
    double: false,
    long_ids: false,
};

impl Layout {
    fn u32(self, value: u32) -> [u8; 4] {
        match self.big {
            true => value.to_be_bytes(),
            false => value.to_le_bytes(),
        }
    }

    fn f64(self, value: f64) -> [u8; 8] {
        match self.big {
            true => value.to_be_bytes(),
            false => value.to_le_bytes(),
        }
    }

    fn reals(self, values: impl IntoIterator<Item = f64>) -> Vec<u8> {
        let bytes = |value: f64| match self.double {
            true => self.f64(value).to_vec(),
            false => self.u32((value as f32).to_bits()).to_vec(),
        };
        values.into_iter().flat_map(bytes).collect()
    }

    fn ids(self, values: impl IntoIterator<Item = u32>) -> Vec<u8> {
        let bytes = |value: u32| match (self.long_ids, self.big) {
            (false, _) => self.u32(value).to_vec(),
            (true, true) => u64::from(value).to_be_bytes().to_vec(),
            (true, false) => u64::from(value).to_le_bytes().to_vec(),
        };
        values.into_iter().flat_map(bytes).collect()
    }

    fn record(self, name: &[u8; 4], content: &[u8]) -> Vec<u8> {
        let wrap = |content: &[u8]| {
            let length = self.u32(content.len() as u32);
            [&length, content, &length].concat()
        };
        let mut record = vec![];
        if self.labelled {
            let next = self.u32(content.len() as u32 + 8);
            record.extend(wrap(&[&name[..], &next].concat()));
        }
        record.extend(wrap(content));
        record
    }

    fn header(self, counts: [u32; 6], masses: [f64; 6], totals: [u32; 6], files: u32) -> Vec<u8> {
        let mut bytes = vec![0; 256];
        for k in 0..6 {
            bytes[4 * k..][..4].copy_from_slice(&self.u32(counts[k]));
            bytes[24 + 8 * k..][..8].copy_from_slice(&self.f64(masses[k]));
            bytes[96 + 4 * k..][..4].copy_from_slice(&self.u32(totals[k]));
        }
        bytes[72..80].copy_from_slice(&self.f64(0.5));
        bytes[124..128].copy_from_slice(&self.u32(files));
        bytes
    }

    /// Two bodies of gas and two stars with masses of their own, and three of dark matter that share one.
    fn file(self) -> Vec<u8> {
        let counts = [2, 3, 0, 0, 2, 0];
        let masses = [0.0, 0.25, 0.0, 0.0, 0.0, 0.0];
        [
            self.record(b"HEAD", &self.header(counts, masses, counts, 1)),
            self.record(b"POS ", &self.reals((0..21).map(f64::from))),
            self.record(b"VEL ", &self.reals((0..21).map(|k| -f64::from(k)))),
            self.record(b"ID  ", &self.ids(11..18)),
            self.record(b"MASS", &self.reals([1.0, 2.0, 8.0, 9.0])),
            self.record(b"U   ", &self.reals([5.0, 6.0])),
        ]
        .concat()
    }
}

fn layouts() -> impl Iterator<Item = Layout> {
    (0..16).map(|bits| Layout {
        labelled: bits & 1 > 0,
        big: bits & 2 > 0,
        double: bits & 4 > 0,
        long_ids: bits & 8 > 0,
    })
}

fn parse(bytes: &[u8]) -> Result<Snapshot, ReadError> {
    read_from(Cursor::new(bytes), Path::new("snapshot_000"), None).map(|(snapshot, _)| snapshot)
}

#[test]
fn both_formats_are_read_in_all_sizes() {
    for layout in layouts() {
        let (snapshot, format) =
            read_from(Cursor::new(layout.file()), Path::new("a.bin"), None).unwrap();
        assert_eq!(format, Format::Gadget);
        let bodies = &snapshot.bodies;
        assert_eq!(snapshot.time, 0.5);
        assert_eq!(
            bodies.mass,
            [1.0, 2.0, 0.25, 0.25, 0.25, 8.0, 9.0],
            "{layout:?}"
        );
        assert_eq!(bodies.id, [11, 12, 13, 14, 15, 16, 17]);
        assert_eq!(bodies.body(6).position, [18.0, 19.0, 20.0]);
        assert_eq!(bodies.body(1).velocity, [-3.0, -4.0, -5.0]);
        let kinds = [BodyKind::Gas, BodyKind::Dark, BodyKind::Star];
        let expected = [2, 3, 2].into_iter().zip(kinds);
        let expected: Vec<_> = expected.flat_map(|(n, kind)| vec![kind; n]).collect();
        assert_eq!(bodies.kind, expected);
    }
}

#[test]
fn blocks_are_found_by_their_letters() {
    let layout = Layout {
        labelled: true,
        ..PLAIN
    };
    let counts = [0, 1, 0, 0, 0, 0];
    let bytes = [
        layout.record(b"HEAD", &layout.header(counts, [0.0; 6], [0; 6], 0)),
        layout.record(b"POT ", &layout.reals([7.0])),
        layout.record(b"MASS", &layout.reals([3.0])),
        layout.record(b"VEL ", &layout.reals([4.0, 5.0, 6.0])),
        layout.record(b"POS ", &layout.reals([1.0, 2.0, 3.0])),
    ]
    .concat();
    let body = parse(&bytes).unwrap().bodies.body(0);
    assert_eq!(
        (body.position, body.mass, body.id),
        ([1.0, 2.0, 3.0], 3.0, 0)
    );
}

#[test]
fn damage_is_located() {
    for layout in layouts() {
        let whole = layout.file();
        let first = if layout.labelled { 16 } else { 0 };
        for cut in 1..whole.len() {
            let cut = &whole[..cut];
            // A file can end after a block that is not needed.
            let is_sound = parse(cut).is_ok();
            let further = whole.len() - layout.record(b"U   ", &layout.reals([5.0, 6.0])).len();
            assert_eq!(is_sound, cut.len() == further, "{layout:?} {}", cut.len());
        }
        let changed = |at: usize, bytes: &[u8]| {
            let mut file = whole.clone();
            file[at..at + bytes.len()].copy_from_slice(bytes);
            parse(&file).unwrap_err().to_string()
        };
        let at = first + 4;
        for (place, bytes, part) in [
            (at, &layout.u32(1 << 31)[..], "more than a file of"),
            (at, &layout.u32(3), "the header's counts"),
            (at + 72, &layout.f64(f64::NAN), "the time is NaN"),
            (at + 80, &layout.f64(f64::NAN), "cosmological"),
            (at + 152, &layout.f64(0.7), "HubbleParam: it is 0.7"),
            (at + 96, &layout.u32(9), "files are missing"),
            (at + 124, &layout.u32(2), "2 files"),
            (at + 32, &layout.f64(-1.0), "mass"),
        ] {
            let told = changed(place, bytes);
            assert!(told.contains(part), "{layout:?} {part}: {told}");
        }
    }
}

#[test]
fn several_files_are_one_snapshot() {
    let folder = tempfile::tempdir().unwrap();
    let path = |k: u32| folder.path().join(format!("snap_003.{k}"));
    let totals = [0, 3, 0, 0, 0, 0];
    let masses = [0.0, 0.5, 0.0, 0.0, 0.0, 0.0];
    let piece = |count: u32, first: u32| {
        let counts = [0, count, 0, 0, 0, 0];
        let places = (0..3 * count).map(|k| f64::from(3 * first + k));
        [
            PLAIN.record(b"HEAD", &PLAIN.header(counts, masses, totals, 2)),
            PLAIN.record(b"POS ", &PLAIN.reals(places.clone())),
            PLAIN.record(b"VEL ", &PLAIN.reals(places)),
            PLAIN.record(b"ID  ", &PLAIN.ids(first..first + count)),
        ]
        .concat()
    };
    fs::write(path(0), piece(2, 0)).unwrap();
    let told = load(&path(0), None).unwrap_err().to_string();
    assert!(
        told.contains("snap_003.1") && told.contains("no such file"),
        "{told}"
    );
    fs::write(path(1), piece(1, 2)).unwrap();
    for k in [0, 1] {
        let snapshot = load(&path(k), None).unwrap().snapshot;
        assert_eq!(snapshot.bodies.id, [0, 1, 2]);
        assert_eq!(snapshot.bodies.z, [2.0, 5.0, 8.0]);
    }
    fs::write(path(1), piece(2, 2)).unwrap();
    let told = load(&path(1), None).unwrap_err().to_string();
    assert!(told.contains("files are missing"), "{told}");
    let odd = folder.path().join("snapshot");
    fs::write(&odd, piece(2, 0)).unwrap();
    let told = load(&odd, None).unwrap_err().to_string();
    assert!(told.contains("NAME.0 to NAME.1 or"), "{told}");
}
