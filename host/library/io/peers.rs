//! Tables that codes for star clusters begin with.
//! ```text
//! PeTar    0 N time
//!          m x y z vx vy vz 0 0 id 0 0 0 0 0 0 0 0 0 0          N lines
//! NBODY6   m x y z vx vy vz                                     N lines
//! ```
//! PeTar's is as `petar.init` writes it for a PeTar without stellar evolution and external fields. NBODY6 and
//! NBODY6++GPU read `dat.10`; petar.init and other programs take the same table.
//! Both are read as [tables](super::csv).

use std::io::Write;

use super::{Format, Snapshot, TipsyDialect, WriteFault};
use crate::bodies::{Bodies, Body, BodyKind};
use crate::units::Units;

/// Units in which PeTar computes with its option `-u 1`: pc, Msun, Myr.
fn units_of_petar() -> Units {
    use crate::units::{PARSEC, SOLAR_MASS, YEAR};
    Units {
        length: PARSEC,
        mass: SOLAR_MASS,
        time: 1e6 * YEAR,
    }
}

/// The first number that is an id in PeTar's files, minus the first here; `None` if PeTar cannot hold the ids.
fn shift(bodies: &Bodies) -> Option<u64> {
    let least = bodies.id.iter().min()?;
    let most = bodies.id.iter().max()?;
    let shift = u64::from(*least == 0);
    most.checked_add(shift)
        .filter(|id| i64::try_from(*id).is_ok())
        .map(|_| shift)
}

/// Writes PeTar's input, in pc, Msun and Myr if the units are known.
pub(super) fn write_petar(
    file: &mut impl Write,
    snapshot: &Snapshot,
    units: Option<Units>,
) -> Result<(), WriteFault> {
    let mut changed;
    let snapshot = match units {
        Some(units) => {
            let factors = units.factors_to(&units_of_petar());
            changed = snapshot.clone();
            factors.apply(&mut changed.bodies);
            changed.time *= factors.time;
            changed.bodies.check()?;
            &changed
        }
        None => snapshot,
    };
    let bodies = &snapshot.bodies;
    writeln!(file, "0 {} {:?}", bodies.len(), snapshot.time)?;
    let shift = shift(bodies);
    for (body, number) in bodies.iter().zip(1..) {
        write_row(file, &body)?;
        let id = shift.map_or(number, |shift| body.id + shift);
        writeln!(file, " 0 0 {id} 0 0 0 0 0 0 0 0 0 0")?;
    }
    Ok(())
}

/// Writes NBODY6's table.
pub(super) fn write_nbody6(file: &mut impl Write, snapshot: &Snapshot) -> Result<(), WriteFault> {
    for body in snapshot.bodies.iter() {
        write_row(file, &body)?;
        writeln!(file)?;
    }
    Ok(())
}

/// Mass, place and velocity, without the end of the line.
fn write_row(file: &mut impl Write, body: &Body) -> Result<(), WriteFault> {
    let ([x, y, z], [vx, vy, vz]) = (body.position, body.velocity);
    write!(
        file,
        "{:?} {x:?} {y:?} {z:?} {vx:?} {vy:?} {vz:?}",
        body.mass
    )?;
    Ok(())
}

/// Remarks on what a file of this format does not keep of a snapshot, or changes.
pub(super) fn remarks(format: Format, snapshot: &Snapshot, units: Option<Units>) -> Vec<String> {
    let bodies = &snapshot.bodies;
    let mut remarks = vec![];
    let in_units = |units: Units| {
        format!(
            "numbers are in units of {}, which the file does not record: give them when it is read",
            units.names()
        )
    };
    let mut lost: Vec<&str> = vec![];
    match format {
        Format::Petar => {
            remarks.push(match units {
                Some(_) => "numbers are in pc, Msun and Myr: give petar its option -u 1".to_owned(),
                None => {
                    "numbers are as they are: PeTar takes G = 1 without its option -u".to_owned()
                }
            });
            match shift(bodies) {
                Some(0) => {}
                Some(_) => {
                    remarks.push("ids are larger by 1, because PeTar's begin with 1".to_owned())
                }
                None => remarks.push(
                    "bodies are numbered anew from 1 on, because PeTar's ids end at 2^63"
                        .to_owned(),
                ),
            }
            remarks.push("for a PeTar without stellar evolution and external fields".to_owned());
        }
        Format::Nbody6 => {
            remarks.extend(units.map(in_units));
            if snapshot.time != 0.0 {
                lost.push("the time");
            }
            if !bodies.id.iter().copied().eq(0..bodies.len() as u64) {
                lost.push("ids");
            }
        }
        Format::Vtp => {
            remarks.extend(units.map(in_units));
            return remarks;
        }
        Format::Tipsy(dialect) => {
            remarks.extend(units.map(in_units));
            let are_told = dialect == TipsyDialect::WithIds;
            if !are_told && !bodies.id.iter().copied().eq(0..bodies.len() as u64) {
                lost.push("ids");
            }
        }
        _ => return remarks,
    }
    let has_kinds = matches!(format, Format::Tipsy(_));
    if !has_kinds && bodies.kind.iter().any(|kind| *kind != BodyKind::Star) {
        lost.push("kinds");
    }
    if !lost.is_empty() {
        remarks.push(format!("not kept: {}", lost.join(", ")));
    }
    remarks
}

#[cfg(test)]
mod tests {
    use super::super::{load_from, remarks, write_to};
    use super::*;
    use std::io::Cursor;
    use std::path::Path;

    fn snapshot(first: u64) -> Snapshot {
        let bodies = (0..3_u8).map(|k| {
            let t = f64::from(k);
            Body {
                position: [t / 3.0, -t, 1e-7 * t],
                velocity: [0.1 + t, -0.0, 1e20],
                mass: 0.1 + t,
                id: first + u64::from(k),
                kind: BodyKind::Star,
            }
        });
        Snapshot {
            time: 2.5,
            bodies: bodies.collect(),
        }
    }

    fn written(format: Format, snapshot: &Snapshot, units: Option<Units>) -> Snapshot {
        let mut text = vec![];
        write_to(&mut text, format, snapshot, units).unwrap();
        let text = Cursor::new(text);
        load_from(text, Path::new("a"), None).unwrap().snapshot
    }

    #[test]
    fn petar_reads_what_is_written() {
        let mut text = vec![];
        write_to(&mut text, Format::Petar, &snapshot(7), None).unwrap();
        let text = String::from_utf8(text).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!((lines.len(), lines[0]), (4, "0 3 2.5"));
        // As petar.init has them.
        let ends = lines[1].ends_with(" 0 0 7 0 0 0 0 0 0 0 0 0 0");
        assert!(ends && lines[1].split(' ').count() == 20, "{}", lines[1]);
        assert_eq!(written(Format::Petar, &snapshot(7), None), snapshot(7));
        assert_eq!(written(Format::Petar, &snapshot(0), None), snapshot(1));
        let said = remarks(Format::Petar, &snapshot(0), None).concat();
        assert!(
            said.contains("G = 1") && said.contains("larger by 1"),
            "{said}"
        );
        let huge = written(Format::Petar, &snapshot(u64::MAX - 2), None);
        assert_eq!(huge.bodies.id, [1, 2, 3]);
    }

    #[test]
    fn petars_numbers_are_in_its_units() {
        let units: Units = "kpc,1e10Msun,km/s".parse().unwrap();
        let (old, new) = (
            snapshot(1),
            written(Format::Petar, &snapshot(1), Some(units)),
        );
        let near = |found: f64, expected: f64| {
            assert!((found / expected - 1.0).abs() < 1e-12, "{found} {expected}")
        };
        // 1 km/s = 1.022712165045695 pc/Myr, as petar.init has it.
        const SPEED: f64 = 1.022_712_165_045_695;
        near(new.bodies.x[1], 1e3 * old.bodies.x[1]);
        near(new.bodies.mass[2], 1e10 * old.bodies.mass[2]);
        near(new.bodies.vx[2], SPEED * old.bodies.vx[2]);
        near(new.time, 1e3 / SPEED * old.time);
        let said = remarks(Format::Petar, &old, Some(units)).concat();
        assert!(said.contains("-u 1"), "{said}");
    }

    #[test]
    fn nbody6_reads_what_is_written() {
        let found = written(Format::Nbody6, &snapshot(7), None);
        let expected = Snapshot {
            time: 0.0,
            ..snapshot(0)
        };
        assert_eq!(found, expected);
        let said = remarks(Format::Nbody6, &snapshot(7), "pc".parse().ok()).concat();
        assert!(
            said.contains("not kept: the time, ids") && said.contains("pc, Msun"),
            "{said}"
        );
        assert_eq!(remarks(Format::Nbody6, &expected, None), [""; 0]);
        for format in [
            Format::Npz,
            Format::Vtp,
            Format::Tipsy(TipsyDialect::WithIds),
        ] {
            assert_eq!(remarks(format, &snapshot(7), None), [""; 0]);
        }
        let units = "kpc".parse().ok();
        assert_eq!(remarks(Format::Npz, &snapshot(7), units), [""; 0]);
        for format in [Format::Vtp, Format::Tipsy(TipsyDialect::WithIds)] {
            let said = remarks(format, &snapshot(7), units);
            assert!(
                said.len() == 1 && said[0].contains("does not record"),
                "{said:?}"
            );
        }
        let said = remarks(Format::Tipsy(TipsyDialect::Standard), &snapshot(7), units).concat();
        assert!(
            said.contains("does not record") && said.ends_with("not kept: ids"),
            "{said}"
        );
    }
}
