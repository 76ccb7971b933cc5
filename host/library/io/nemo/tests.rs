//! Tests of the reader of NEMO's snapshots.

use std::io::Cursor;
use std::path::Path;

use super::super::{Format, ReadError, read_from};
use super::*;

/// How a file is laid out.
#[derive(Clone, Copy, Debug)]
struct Layout {
    big: bool,
    double: bool,
}

impl Layout {
    fn order<const N: usize>(self, mut bytes: [u8; N]) -> Vec<u8> {
        if self.big {
            bytes.reverse();
        }
        bytes.to_vec()
    }

    fn item(self, letter: &str, name: &str, dimensions: &[u32], elements: &[u8]) -> Vec<u8> {
        let magic = if dimensions.is_empty() { ONE } else { SEVERAL };
        let mut item = self.order(magic.to_le_bytes());
        item.extend(letter.bytes().chain([0]));
        if letter != ")" {
            item.extend(name.bytes().chain([0]));
        }
        if !dimensions.is_empty() {
            for dimension in dimensions.iter().chain(&[0]) {
                item.extend(self.order(dimension.to_le_bytes()));
            }
        }
        item.extend(elements);
        item
    }

    fn set(self, name: &str, items: &[Vec<u8>]) -> Vec<u8> {
        [
            self.item("(", name, &[], &[]),
            items.concat(),
            self.item(")", "", &[], &[]),
        ]
        .concat()
    }

    fn reals(self, name: &str, dimensions: &[u32], values: &[f64]) -> Vec<u8> {
        let element = |value: &f64| match self.double {
            true => self.order(value.to_le_bytes()),
            false => self.order((*value as f32).to_le_bytes()),
        };
        let elements: Vec<u8> = values.iter().flat_map(element).collect();
        self.item(
            if self.double { "d" } else { "f" },
            name,
            dimensions,
            &elements,
        )
    }

    fn integers(self, name: &str, dimensions: &[u32], values: &[i32]) -> Vec<u8> {
        let elements: Vec<u8> = values
            .iter()
            .flat_map(|value| self.order(value.to_le_bytes()))
            .collect();
        self.item("i", name, dimensions, &elements)
    }

    fn snapshot(self, time: f64, particles: &[Vec<u8>]) -> Vec<u8> {
        let parameters = [
            self.integers("Nobj", &[], &[2]),
            self.reals("Time", &[], &[time]),
        ];
        self.set(
            "SnapShot",
            &[
                self.set("Parameters", &parameters),
                self.set("Particles", particles),
            ],
        )
    }

    fn headline(self) -> Vec<u8> {
        self.item("c", "Headline", &[4], b"abc\0")
    }

    /// Two bodies with masses and keys.
    fn file(self) -> Vec<u8> {
        let phases: Vec<f64> = (0..12).map(f64::from).collect();
        let particles = [
            self.integers("CoordSystem", &[], &[66306]),
            self.reals("Mass", &[2], &[0.25, 0.75]),
            self.reals("PhaseSpace", &[2, 2, 3], &phases),
            self.reals("Potential", &[2], &[-1.0, -2.0]),
            self.integers("Key", &[2], &[7, 8]),
        ];
        [self.headline(), self.snapshot(0.5, &particles)].concat()
    }
}

const LAYOUTS: [Layout; 4] = [
    Layout {
        big: false,
        double: false,
    },
    Layout {
        big: false,
        double: true,
    },
    Layout {
        big: true,
        double: false,
    },
    Layout {
        big: true,
        double: true,
    },
];

fn parse(bytes: &[u8]) -> Result<Snapshot, ReadError> {
    let (snapshot, format) = read_from(Cursor::new(bytes), Path::new("model.10"), None)?;
    assert_eq!(format, Format::Nemo);
    Ok(snapshot)
}

#[test]
fn snapshots_are_read_in_both_orders_and_precisions() {
    for layout in LAYOUTS {
        let snapshot = parse(&layout.file()).unwrap();
        let bodies = &snapshot.bodies;
        assert_eq!((snapshot.time, &bodies.mass[..]), (0.5, &[0.25, 0.75][..]));
        assert_eq!(
            (&bodies.x[..], &bodies.vz[..]),
            (&[0.0, 6.0][..], &[5.0, 11.0][..])
        );
        assert_eq!(bodies.id, [7, 8]);
        let places = layout.reals("Position", &[2, 3], &[0.0, 1.0, 2.0, 3.0, 4.0, 5.0]);
        let speeds = layout.reals("Velocity", &[2, 3], &[6.0, 7.0, 8.0, 9.0, 10.0, 11.0]);
        let apart = layout.snapshot(
            1.5,
            &[speeds, places, layout.reals("Mass", &[2], &[1.0; 2])],
        );
        let bodies = parse(&apart).unwrap().bodies;
        assert_eq!(bodies.body(1).position, [3.0, 4.0, 5.0]);
        assert_eq!(bodies.body(1).velocity, [9.0, 10.0, 11.0]);
        assert_eq!(bodies.id, [0, 1]);
    }
}

/// Programs of NEMO write masses once, and between snapshots sets that have energies alone.
#[test]
fn the_last_snapshot_is_read_with_masses_of_the_first() {
    let layout = LAYOUTS[0];
    let phases = |from: u32| layout.reals("PhaseSpace", &[2, 2, 3], &[f64::from(from); 12]);
    let file = [
        layout.file(),
        layout.snapshot(1.0, &[phases(1)]),
        layout.snapshot(2.0, &[phases(2)]),
        layout.set("SnapShot", &[layout.set("Diagnostics", &[])]),
    ]
    .concat();
    let contents = read(&mut Cursor::new(&file), file.len() as u64).unwrap();
    assert_eq!(contents.snapshot.time, 2.0);
    assert_eq!(contents.snapshot.bodies.mass, [0.25, 0.75]);
    assert_eq!(contents.snapshot.bodies.x, [2.0; 2]);
    assert!(
        contents.notes[0].contains("3 snapshots"),
        "{:?}",
        contents.notes
    );
}

#[test]
fn damage_is_located() {
    for layout in LAYOUTS {
        let whole = layout.file();
        for cut in layout.headline().len() + 1..whole.len() {
            assert!(parse(&whole[..cut]).is_err(), "{layout:?} {cut}");
        }
        let phases = layout.reals("PhaseSpace", &[2, 2, 3], &[1.0; 12]);
        let masses = layout.reals("Mass", &[2], &[1.0; 2]);
        for (bytes, part) in [
            (layout.headline(), "no set SnapShot"),
            (
                layout.snapshot(0.0, std::slice::from_ref(&phases)),
                "item Mass",
            ),
            (
                layout.snapshot(f64::NAN, &[phases.clone(), masses.clone()]),
                "not a finite number",
            ),
            (
                layout.snapshot(
                    0.0,
                    &[phases.clone(), layout.reals("Mass", &[3], &[1.0; 3])],
                ),
                "should be f or d and [2]",
            ),
            (
                layout.snapshot(
                    0.0,
                    &[
                        layout.reals("PhaseSpace", &[2, 2, 2], &[1.0; 8]),
                        masses.clone(),
                    ],
                ),
                "should be f or d and [2, 2, 3]",
            ),
            (
                layout.snapshot(
                    0.0,
                    &[layout.reals("Position", &[2, 3], &[1.0; 6]), masses.clone()],
                ),
                "item Velocity",
            ),
            (layout.item("(", "SnapShot", &[], &[]), "has no end"),
            (layout.item("(", "a", &[], &[]).repeat(17), "too many sets"),
            (
                [layout.headline(), layout.item(")", "", &[], &[])].concat(),
                "did not begin",
            ),
            (
                [layout.headline(), vec![1, 2, 3]].concat(),
                "no item begins here",
            ),
            (
                [
                    layout.headline(),
                    layout.item("d", "x", &[u32::MAX; 9], &[]),
                ]
                .concat(),
                "cut short",
            ),
        ] {
            let told = parse(&bytes).unwrap_err().to_string();
            assert!(told.contains(part), "{layout:?} {part}: {told}");
        }
    }
}
