//! Units in the names of arrays and fields: `x_pc`, `pos [kpc]`, `vx/(km/s)`.

use super::super::column::{MASS, POSITION, TIME, VELOCITY};
use crate::bodies::{Bodies, COORDINATES};
use crate::units::{Dimension, Units, spelled};

/// The dimension of what an array or a field of this name has, if it is one that bodies have.
fn dimension_of(name: &str) -> Option<Dimension> {
    let is_one = |names: &[&str], more: &str| {
        name == more || names.iter().any(|one| name.eq_ignore_ascii_case(one))
    };
    match () {
        () if is_one(&MASS, "M") => Some(Dimension::Mass),
        () if is_one(&POSITION, "r") || is_one(&COORDINATES[..3], "R") => Some(Dimension::Length),
        () if is_one(&VELOCITY, "V") || is_one(&COORDINATES[3..], "V") => Some(Dimension::Speed),
        () if is_one(&TIME, "Time") => Some(Dimension::Time),
        () => None,
    }
}

/// The name of a quantity of bodies and the unit behind it, where a name has both.
pub(super) fn parts(text: &str) -> Option<(&str, &str)> {
    let text = text.trim();
    let bracketed = [('[', ']'), ('(', ')')]
        .into_iter()
        .find_map(|(open, close)| {
            let (name, unit) = text.strip_suffix(close)?.rsplit_once(open)?;
            // As `pos[0]`, which is one of several.
            let is_number = unit.bytes().all(|byte| byte.is_ascii_digit());
            let name = name.trim_end_matches(['_', ' ', '/']);
            (!is_number && dimension_of(name).is_some()).then_some((name, unit.trim()))
        });
    // Behind the name of a quantity only, because other names have such words too.
    let behind = |at: usize| {
        let (name, unit) = (&text[..at], text[at + 1..].trim_matches(['(', ')']));
        let dimension = dimension_of(name)?;
        // No number comes before it.
        let begins = unit.starts_with(|c: char| c.is_ascii_alphabetic());
        (begins && size(unit, dimension).is_some()).then_some((name, unit))
    };
    let mut ends = text.match_indices(['_', '/', ' ']).map(|(at, _)| at);
    ends.find_map(behind).or(bracketed)
}

/// The size of a unit that has this dimension, as names have it: `km_s` too.
pub(super) fn size(unit: &str, wanted: Dimension) -> Option<f64> {
    let of = |text: &str| match spelled(text) {
        Some((dimension, size)) if dimension == wanted => Some(size),
        _ => None,
    };
    of(unit).or_else(|| of(&unit.replace('_', "/")))
}

/// Units that names tell, and factors that turn coordinates and their velocities to the first unit of each.
pub(super) type System = (Units, [f64; 6]);

/// The system that units of the mass, of coordinates and of velocities make.
///
/// # Errors
/// The note that there are units and they make no system.
pub(super) fn system(
    mass: Option<&str>,
    coordinates: [Option<&str>; 6],
) -> Result<Option<System>, String> {
    let all = || coordinates.into_iter().chain([mass]).flatten();
    if all().next().is_none() {
        return Ok(None);
    }
    let of = |unit: Option<&str>, dimension| size(unit?, dimension);
    let system = || {
        let mut sizes = [0.0; 6];
        for (k, size) in sizes.iter_mut().enumerate() {
            let dimension = match k {
                0..3 => Dimension::Length,
                _ => Dimension::Speed,
            };
            *size = of(coordinates[k], dimension)?;
        }
        let units = Units {
            length: sizes[0],
            mass: of(mass, Dimension::Mass)?,
            time: sizes[0] / sizes[3],
        };
        Some((units, std::array::from_fn(|k| sizes[k] / sizes[k - k % 3])))
    };
    system().map(Some).ok_or_else(|| {
        let mut told: Vec<&str> = all().collect();
        told.dedup();
        format!(
            "the units that names tell ({}) make no system of mass, length and speed: numbers are taken as they are, \
             without units",
            told.join(", ")
        )
    })
}

/// Multiplies coordinates and their velocities.
pub(super) fn scale(bodies: &mut Bodies, factors: [f64; 6]) {
    let Bodies {
        x,
        y,
        z,
        vx,
        vy,
        vz,
        ..
    } = bodies;
    for (column, factor) in [x, y, z, vx, vy, vz].into_iter().zip(factors) {
        if factor != 1.0 {
            column.iter_mut().for_each(|value| *value *= factor);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_stand_behind_names() {
        for (text, expected) in [
            ("x_pc", Some(("x", "pc"))),
            ("x [pc]", Some(("x", "pc"))),
            ("pos[kpc]", Some(("pos", "kpc"))),
            ("vx/(km/s)", Some(("vx", "km/s"))),
            ("vx_km_s", Some(("vx", "km_s"))),
            ("mass (furlong)", Some(("mass", "furlong"))),
            ("m_msun", Some(("m", "msun"))),
            ("time_Myr", Some(("time", "Myr"))),
            ("mass [1e10 Msun]", Some(("mass", "1e10 Msun"))),
            ("pos[0]", None),
            ("x", None),
            ("x_err", None),
            ("mass_pc", None),
            ("phi_pc", None),
        ] {
            assert_eq!(parts(text), expected, "{text}");
        }
    }

    #[test]
    fn units_make_a_system_or_are_told() {
        let [pc, kpc, kms] = [Some("pc"), Some("kpc"), Some("km/s")];
        let (units, factors) = system(Some("Msun"), [pc, kpc, pc, kms, kms, kms])
            .expect("a system")
            .expect("units");
        assert_eq!(units.names(), "pc, Msun, km/s");
        assert_eq!(factors.map(f64::round), [1.0, 1000.0, 1.0, 1.0, 1.0, 1.0]);
        assert_eq!(system(None, [None; 6]), Ok(None));
        let note = system(None, [pc, pc, pc, None, None, None]).expect_err("no mass");
        assert!(note.contains("(pc)"), "{note}");
    }
}
