//! Units as programs spell them in files.

use super::{ASTRONOMICAL_UNIT, DAY, Dimension, G, PARSEC, YEAR, unit};

/// In m, exact.
const LIGHT_YEAR: f64 = 299_792_458.0 * YEAR;

/// Units that files have and options have not: sizes in SI's.
const FURTHER: [(&str, Dimension, f64); 22] = [
    ("M_earth", Dimension::Mass, 3.986_004e14 / G),
    ("Mearth", Dimension::Mass, 3.986_004e14 / G),
    ("earthMass", Dimension::Mass, 3.986_004e14 / G),
    ("M_jup", Dimension::Mass, 1.266_865_3e17 / G),
    ("Mjup", Dimension::Mass, 1.266_865_3e17 / G),
    ("MJup", Dimension::Mass, 1.266_865_3e17 / G),
    ("MEarth", Dimension::Mass, 3.986_004e14 / G),
    ("jupiterMass", Dimension::Mass, 1.266_865_3e17 / G),
    ("MJupiter", Dimension::Mass, 1.266_865_3e17 / G),
    ("ly", Dimension::Length, LIGHT_YEAR),
    ("lightyear", Dimension::Length, LIGHT_YEAR),
    ("lightyears", Dimension::Length, LIGHT_YEAR),
    ("Gpc", Dimension::Length, 1e9 * PARSEC),
    ("AUd", Dimension::Speed, ASTRONOMICAL_UNIT / DAY),
    ("Rsun", Dimension::Length, 6.957e8),
    ("RSun", Dimension::Length, 6.957e8),
    ("R_sun", Dimension::Length, 6.957e8),
    ("solRad", Dimension::Length, 6.957e8),
    ("mm", Dimension::Length, 1e-3),
    ("kyr", Dimension::Time, 1e3 * YEAR),
    ("julianyr", Dimension::Time, YEAR),
    ("hour", Dimension::Time, 3600.0),
];

/// Size and dimension of a unit, however programs write it; `None` for one that is not known.
pub(crate) fn spelled(text: &str) -> Option<(Dimension, f64)> {
    let text = text.replace("**", "^").replace("⁻¹", "^-1");
    if let Some((length, time)) = over(&text)
        && let (Some((Dimension::Length, length)), Some((Dimension::Time, time))) =
            (simple(length), simple(time))
    {
        return Some((Dimension::Speed, length / time));
    }
    simple(&text)
}

/// A length and a time, of `pc/Myr`, `pc Myr^-1` or `pc Myr-1`.
fn over(text: &str) -> Option<(&str, &str)> {
    if let Some((length, time)) = text.split_once('/') {
        return Some((length, time.trim().trim_matches(['(', ')'])));
    }
    let (length, time) = text.trim().rsplit_once([' ', '*', '.'])?;
    let time = time.trim_matches(['(', ')', '{', '}', '$']);
    let power = ["^-1", "^{-1", "^(-1", "-1"];
    let time = power.iter().find_map(|power| time.strip_suffix(power))?;
    Some((length.trim_end_matches(['*', '(']), time))
}

/// A unit that is no quotient, or a speed that has a name.
fn simple(text: &str) -> Option<(Dimension, f64)> {
    let text: String = text.chars().filter(|c| !c.is_whitespace()).collect();
    let text = text.replace(['*', '{', '}', '$'], "");
    const SPELLINGS: [(&[&str], &str); 16] = [
        (
            &[
                "MSun",
                "msun",
                "M_sun",
                "Msol",
                "solMass",
                "M_⊙",
                "M⊙",
                "M☉",
                "m_sun",
                "M_Sun",
                "msol",
                "Solar_Mass",
                "MSUN",
                "MSol",
                "M_\\odot",
                "M\\odot",
                "M_\\sun",
                "solarmasses",
                "solarmass",
            ],
            "Msun",
        ),
        (&["AU", "a.u.", "astronomicalunits"], "au"),
        (&["kiloparsecs", "kiloparsec", "KPC", "Kpc"], "kpc"),
        (&["megaparsecs", "megaparsec", "MPC"], "Mpc"),
        (&["parsecs", "parsec", "PC"], "pc"),
        (
            &[
                "kms",
                "kms^-1",
                "kms-1",
                "km/sec",
                "kms^(-1)",
                "km(s^-1)",
                "kmps",
                "KMS",
                "KM/S",
                "kilometerspersecond",
                "kilometrespersecond",
            ],
            "km/s",
        ),
        (&["ms^-1", "ms-1", "m(s^-1)", "ms^(-1)"], "m/s"),
        (&["cms^-1", "cms-1"], "cm/s"),
        (
            &["kilometres", "kilometers", "kilometre", "kilometer"],
            "km",
        ),
        (&["centimetres", "centimeters"], "cm"),
        (&["metres", "meters", "metre", "meter"], "m"),
        (&["kilograms", "kilogram"], "kg"),
        (&["years", "year", "yrs"], "yr"),
        (&["MYR", "Myrs", "myr"], "Myr"),
        (&["seconds", "second", "sec"], "s"),
        (&["days", "d"], "day"),
    ];
    // A number before the unit, if there is one.
    let number = |before: &str| match before {
        "" => Some(1.0),
        number => match number.strip_prefix("10^") {
            Some(power) => Some(10_f64.powi(power.parse().ok()?)),
            None => number.parse().ok(),
        },
    };
    for (name, dimension, size) in FURTHER {
        if let Some(number) = text.strip_suffix(name).and_then(number) {
            return Some((dimension, number * size)).filter(|(_, size)| size.is_normal());
        }
    }
    let spelled = SPELLINGS.iter().find_map(|(others, known)| {
        let before = others
            .iter()
            .find_map(|other| number(text.strip_suffix(other)?));
        before.map(|before: f64| (before, *known))
    });
    // A power of ten is a number that the library's units do not have.
    let (before, name) = spelled
        .or_else(|| {
            let (power, name) = text.strip_prefix("10^")?.split_at_checked(
                text["10^".len()..].find(|c: char| !c.is_ascii_digit() && c != '-')?,
            )?;
            Some((10_f64.powi(power.parse().ok()?), name))
        })
        .unwrap_or((1.0, &text));
    let (dimension, size) = unit(name).ok()?;
    Some((dimension, before * size)).filter(|(_, size)| size.is_normal())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_known_however_they_are_spelled() {
        const PC: f64 = 3.085_677_581_491_367e16;
        for (text, dimension, size) in [
            ("pc/Myr", Dimension::Speed, PC / 3.155_76e13),
            ("pc Myr^-1", Dimension::Speed, PC / 3.155_76e13),
            ("pc Myr-1", Dimension::Speed, PC / 3.155_76e13),
            ("AU/day", Dimension::Speed, 149_597_870_700.0 / 86_400.0),
            ("au d**-1", Dimension::Speed, 149_597_870_700.0 / 86_400.0),
            ("km / s", Dimension::Speed, 1e3),
            ("km s-1", Dimension::Speed, 1e3),
            ("1e5 cm/s", Dimension::Speed, 1e3),
            ("2 kyr", Dimension::Time, 2e3 * 31_557_600.0),
            ("M_earth", Dimension::Mass, 5.972_168e24),
            ("1e-3 Mjup", Dimension::Mass, 1.898_125e24),
            ("10^10 Msun", Dimension::Mass, 1.988_41e40),
            ("10**3 M_\\odot", Dimension::Mass, 1.988_41e33),
            ("1.00e+10 Msol", Dimension::Mass, 1.988_41e40),
            ("solar masses", Dimension::Mass, 1.988_41e30),
            ("2 kiloparsec", Dimension::Length, 2e3 * PC),
            ("km s⁻¹", Dimension::Speed, 1e3),
            ("KM/S", Dimension::Speed, 1e3),
            ("light years", Dimension::Length, 9.460_730_472_580_8e15),
            ("kilometres", Dimension::Length, 1e3),
            ("2 meters", Dimension::Length, 2.0),
            ("Gpc", Dimension::Length, 1e9 * PC),
            ("AUd", Dimension::Speed, 149_597_870_700.0 / 86_400.0),
        ] {
            let (found, value) = spelled(text).unwrap_or_else(|| panic!("{text}"));
            assert_eq!(found, dimension, "{text}");
            assert!((value / size - 1.0).abs() < 1e-6, "{text}: {value}");
        }
        for text in [
            "furlong", "pc/pc", "Myr/pc", "", "/", "pc^2", "1e400pc", "x-1", "10^", "10^4",
            "10^x pc", "10^999pc",
        ] {
            assert_eq!(spelled(text), None, "{text}");
        }
    }
}
