//! Tests of the Tipsy reader and writer.

use super::super::{ReadError, read_from};
use super::*;
use std::io::Cursor;
use std::path::Path;

fn parse(bytes: &[u8], dialect: Option<TipsyDialect>) -> Result<(Snapshot, Format), ReadError> {
    read_from(
        Cursor::new(bytes),
        Path::new("test.tipsy"),
        dialect.map(Format::Tipsy),
    )
}

fn fault(bytes: &[u8], dialect: Option<TipsyDialect>) -> TipsyFault {
    match parse(bytes, dialect).unwrap_err().fault {
        ReadFault::Tipsy(fault) => fault,
        other => panic!("{other}"),
    }
}

/// Two gas bodies, three dark ones, four stars; ids from 50 on.
fn small(dialect: TipsyDialect) -> Vec<u8> {
    let bodies = (0..9_u64)
        .map(|i| Body {
            position: [i as f64, 0.5, -1.0],
            velocity: [0.0, i as f64 / 4.0, 2.0],
            mass: 1.0,
            id: 50 + i,
            kind: [
                BodyKind::Gas,
                BodyKind::Gas,
                BodyKind::Dark,
                BodyKind::Dark,
                BodyKind::Dark,
            ]
            .get(i as usize)
            .copied()
            .unwrap_or(BodyKind::Star),
        })
        .collect();
    let mut bytes = Vec::new();
    write(&mut bytes, dialect, &Snapshot { time: 1.5, bodies }).unwrap();
    assert_eq!(bytes.len(), 32 + 2 * 48 + 3 * 36 + 4 * 44);
    bytes
}

#[test]
fn short_headers_are_read() {
    for dialect in [
        TipsyDialect::Standard,
        TipsyDialect::Native,
        TipsyDialect::WithIds,
    ] {
        let long = small(dialect);
        let short = [&long[..28], &long[32..]].concat();
        assert_eq!(parse(&short, None).unwrap(), parse(&long, None).unwrap());
        assert_eq!(parse(&short, None).unwrap().1, Format::Tipsy(dialect));
    }
}

#[test]
fn potentials_are_not_taken_for_ids() {
    assert_eq!(MAX_ID, 897_988_540);
    let negative: Vec<u64> = (1..9)
        .map(|i| u64::from((-0.1 * i as f32).to_bits()))
        .collect();
    assert!(!are_ids(&negative));
    let positive: Vec<u64> = (1..9)
        .map(|i| u64::from((0.1 * i as f32).to_bits()))
        .collect();
    assert!(!are_ids(&positive));
    assert!(!are_ids(&[0, 0, 0]));
    assert!(!are_ids(&[0]));
    assert!(!are_ids(&[7, 8, u64::from(MAX_ID) + 1]));
    assert!(are_ids(&[7, 0, u64::from(MAX_ID)]));
}

#[test]
fn a_given_dialect_is_binding() {
    let with_ids = small(TipsyDialect::WithIds);
    let native = parse(&with_ids, Some(TipsyDialect::Native)).unwrap().0;
    assert!(native.bodies.id.iter().copied().eq(0..9));

    assert_eq!(
        fault(&with_ids, Some(TipsyDialect::Standard)),
        TipsyFault::ByteOrder {
            asked: TipsyDialect::Standard,
            found: "little"
        }
    );
    assert_eq!(
        fault(&small(TipsyDialect::Standard), Some(TipsyDialect::WithIds)),
        TipsyFault::ByteOrder {
            asked: TipsyDialect::WithIds,
            found: "big"
        }
    );

    let mut bytes = small(TipsyDialect::Native);
    let last = bytes.len() - 4;
    bytes[last..].copy_from_slice(&(-1.0_f32).to_le_bytes());
    let id = (-1.0_f32).to_bits() as i32;
    assert_eq!(
        fault(&bytes, Some(TipsyDialect::WithIds)),
        TipsyFault::NegativeId {
            offset: last as u64,
            body: 8,
            id
        }
    );
}

#[test]
fn bad_values_are_located() {
    let good = small(TipsyDialect::Native);
    let put = |at: usize, bytes: &[u8]| {
        let mut bad = good.clone();
        bad[at..at + bytes.len()].copy_from_slice(bytes);
        fault(&bad, None)
    };
    // Body 3 is the second dark one.
    let body_3 = 32 + 2 * 48 + 36;
    assert!(matches!(
        put(body_3 + 4 * 5, &f32::NAN.to_le_bytes()),
        TipsyFault::Body { offset, fault: BodyFault::NotFinite { body: 3, field: "vy", .. } }
            if offset == body_3 as u64 + 20
    ));
    assert_eq!(
        put(body_3, &(-2.0_f32).to_le_bytes()),
        TipsyFault::Body {
            offset: body_3 as u64,
            fault: BodyFault::NegativeMass {
                body: 3,
                mass: -2.0
            }
        }
    );
    assert_eq!(
        put(0, &f64::INFINITY.to_le_bytes()),
        TipsyFault::Time(f64::INFINITY)
    );
    assert_eq!(
        put(12, b"HDF\n"),
        TipsyFault::Dimensions {
            little: i32::from_le_bytes(*b"HDF\n"),
            big: i32::from_be_bytes(*b"HDF\n"),
        }
    );
}

#[test]
fn counts_are_checked_against_each_other_and_the_size() {
    let header = |total: i32, gas: i32, dark: i32, star: i32| {
        let words = [0, 0, total, 3, gas, dark, star, 0];
        fault(&words.map(i32::to_le_bytes).concat(), None)
    };
    let many = i32::MAX;
    assert_eq!(
        header(7, 1, 2, 3),
        TipsyFault::Counts {
            total: 7,
            gas: 1,
            dark: 2,
            star: 3
        }
    );
    assert_eq!(
        header(0, -1, 1, 0),
        TipsyFault::Counts {
            total: 0,
            gas: -1,
            dark: 1,
            star: 0
        }
    );
    assert!(matches!(
        header(-2, many, many, 0),
        TipsyFault::Counts { .. }
    ));
    assert_eq!(
        header(many, many, 0, 0),
        TipsyFault::Size {
            actual: 32,
            expected: 32 + 48 * many as u64,
            gas: many as u32,
            dark: 0,
            star: 0
        }
    );
    let none = parse(
        &[0, 0, 0, 3, 0, 0, 0, 0].map(i32::to_le_bytes).concat(),
        None,
    );
    assert!(matches!(none.unwrap_err().fault, ReadFault::NoBodies));

    let long = [small(TipsyDialect::Standard), vec![0]].concat();
    assert!(fault(&long, None).to_string().contains("something else"));
}

#[test]
fn every_truncation_is_a_fault() {
    for dialect in [
        TipsyDialect::Standard,
        TipsyDialect::Native,
        TipsyDialect::WithIds,
    ] {
        let whole = small(dialect);
        for length in 0..whole.len() {
            // Of less than a header, content does not tell the format.
            let asked = (length < 28).then_some(dialect);
            let fault = parse(&whole[..length], asked).unwrap_err().fault;
            match length {
                0 => assert!(matches!(fault, ReadFault::Empty)),
                1..28 => assert!(matches!(
                    fault,
                    ReadFault::Tipsy(TipsyFault::HeaderCut { size }) if size == length as u64
                )),
                _ => {
                    assert!(matches!(fault, ReadFault::Tipsy(TipsyFault::Size { .. })));
                    let told = ["cut short", "lost its last 4 bytes"];
                    assert!(
                        told.iter().any(|text| fault.to_string().contains(text)),
                        "{fault}"
                    );
                }
            }
        }
    }
}

/// All single-byte corruptions of the header: whatever is accepted has as many bodies as there
/// are bytes for, and whatever a count says, nothing but a fault comes of it.
#[test]
fn every_corrupted_header_byte_is_survived() {
    for dialect in [TipsyDialect::Standard, TipsyDialect::WithIds] {
        let whole = small(dialect);
        for (at, value) in (0..32).flat_map(|at| (0..=255).map(move |value| (at, value))) {
            let mut bytes = whole.clone();
            bytes[at] = value;
            let outcome = parse(&bytes, None);
            let harmless = bytes == whole || !(8..28).contains(&at);
            match outcome {
                Ok((snapshot, _)) => {
                    // 1 and 2 are dimensions as well.
                    assert!(harmless || (12..16).contains(&at), "byte {at} = {value}");
                    assert_eq!(snapshot.bodies.len(), 9);
                    assert!(snapshot.time.is_finite());
                }
                Err(error) => assert!(at < 28, "byte {at} = {value}: {error}"),
            }
        }
    }
}

#[test]
fn what_single_precision_cannot_hold_is_refused() {
    let (good, _) = parse(&small(TipsyDialect::Standard), None).unwrap();
    let refusal = |change: fn(&mut Bodies)| {
        let mut bad = good.clone();
        change(&mut bad.bodies);
        write(&mut io::sink(), TipsyDialect::Standard, &bad).unwrap_err()
    };
    assert!(matches!(
        refusal(|bodies| bodies.vz[5] = -1e39),
        WriteFault::SinglePrecision { body: 5, field: "vz", value } if value == -1e39
    ));
    assert!(matches!(
        refusal(|bodies| bodies.mass[7] = 1e-60),
        WriteFault::SinglePrecision {
            body: 7,
            field: "mass",
            ..
        }
    ));
    let mut fine = good.clone();
    fine.bodies.x[0] = 1e-60;
    write(&mut io::sink(), TipsyDialect::Standard, &fine).unwrap();
}

#[test]
fn ids_that_would_not_be_recognised_are_refused() {
    assert!(matches!(
        check_ids(&[1, 2, u64::from(MAX_ID) + 1]),
        Err(WriteFault::IdTooLarge { body: 2, .. })
    ));
    assert!(matches!(
        check_ids(&[4, 5, 4]),
        Err(WriteFault::DuplicateId { id: 4 })
    ));
    assert!(check_ids(&[4, 5, u64::from(MAX_ID)]).is_ok());
}

/// Contents of a file that the simulation has no use for are not dropped without a word.
#[test]
fn notes_tell_of_gas() {
    let notes = |bytes: &[u8]| {
        let (contents, _) = read(&mut &bytes[..], bytes.len() as u64, None).unwrap();
        contents.notes
    };
    let small = notes(&small(TipsyDialect::Native));
    assert_eq!(small.len(), 1, "{small:?}");
    assert!(small[0].contains("2 bodies are gas"), "{small:?}");
}
