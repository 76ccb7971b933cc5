//! Units as programs spell them in files.

use super::{ASTRONOMICAL_UNIT, DAY, Dimension, G, PARSEC, YEAR, unit};

/// In m, exact.
const LIGHT_YEAR: f64 = 299_792_458.0 * YEAR;

/// In m.
const MEGAPARSEC: f64 = 1e6 * PARSEC;

/// Units that files have and options have not: sizes in SI's.
const FURTHER: [(&str, Dimension, f64); 24] = [
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
    ("Gpc", Dimension::Length, 1e3 * MEGAPARSEC),
    ("AUd", Dimension::Speed, ASTRONOMICAL_UNIT / DAY),
    ("Rsun", Dimension::Length, 6.957e8),
    ("RSun", Dimension::Length, 6.957e8),
    ("R_sun", Dimension::Length, 6.957e8),
    ("solRad", Dimension::Length, 6.957e8),
    ("solarradii", Dimension::Length, 6.957e8),
    ("solarradius", Dimension::Length, 6.957e8),
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
    const SPELLINGS: [(&[&str], &str); 17] = [
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
        (
            &["AU", "a.u.", "astronomicalunits", "astronomicalunit"],
            "au",
        ),
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
        (
            &["kilometers", "kilometres", "kilometer", "kilometre"],
            "km",
        ),
        (
            &["centimeters", "centimetres", "centimeter", "centimetre"],
            "cm",
        ),
        (&["meters", "metres", "meter", "metre"], "m"),
        (&["kilograms", "kilogram"], "kg"),
        (&["grams", "gram"], "g"),
        (&["ms^-1", "ms-1", "m(s^-1)", "ms^(-1)"], "m/s"),
        (&["cms^-1", "cms-1"], "cm/s"),
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

/// A word of a text that tells a unit, as far as it is understood: `None` of one such as `kpc/h`.
pub(crate) type UnitWord = Option<(Dimension, f64)>;

/// Words of a text that tell units of numbers: `kpc`, `solar masses`, `t/Myr` or `x_kpc`, without a number in front. Letters
/// and words of the language that are names of units as well, such as `day`, are none.
pub(crate) fn units_in(text: &str) -> Vec<UnitWord> {
    let ends = |c: char| c.is_whitespace() || ",;:=[](){}|\"'#".contains(c);
    let words = text.split(ends).map(|word| word.trim_end_matches('.'));
    let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
    let mut found = vec![];
    let mut at = 0;
    while at < words.len() {
        let is_value = at.checked_sub(1).is_some_and(|before| {
            let word = words[before].trim_start_matches(|c: char| !c.is_alphanumeric());
            word.starts_with(|c: char| c.is_ascii_digit())
        });
        let rest = &words[at..];
        let told = (1..=rest.len().min(3))
            .rev()
            .find_map(|count| Some((count, unit_of_words(&rest[..count])?)));
        let (count, told) = told.map_or((1, None), |(count, told)| (count, Some(told)));
        found.extend(told.filter(|_| !is_value));
        at += count;
    }
    found
}

/// The unit that these words tell together.
fn unit_of_words(words: &[&str]) -> Option<UnitWord> {
    /// Words that have another meaning as well.
    const PLAIN: [&str; 12] = [
        "day", "days", "year", "years", "hour", "second", "seconds", "sec", "meter", "gram", "PC",
        "MPC",
    ];
    let [word] = words else {
        let text = words.join(" ");
        let are_long = words.iter().all(|word| word.len() > 2);
        let is_quotient = text.contains('/') || text.ends_with("-1");
        let starts = text.starts_with(|c: char| c.is_alphabetic());
        return spelled(&text)
            .filter(|_| starts && (are_long || is_quotient))
            .map(Some);
    };
    let is_unit = |word: &str| {
        let is_plain = word.len() < 2 || PLAIN.contains(&word);
        spelled(word).filter(|_| !is_plain && word.starts_with(|c: char| c.is_alphabetic()))
    };
    if let Some(unit) = is_unit(word) {
        return Some(Some(unit));
    }
    let mut marks = word.match_indices(['/', '_']);
    marks.find_map(|(at, mark)| {
        let (before, unit) = (&word[..at], &word[at + 1..]);
        let is_over = mark == "/" && before.chars().all(char::is_alphanumeric);
        // As in `t/s`.
        let of_name = || spelled(unit).filter(|_| is_over && before.len() < 4 && before != "and");
        let told = is_unit(&unit.replace('_', "/")).or_else(of_name);
        match told {
            None if is_over && is_unit(before).is_some() => Some(None),
            told => told.map(Some),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_found_among_words() {
        for (text, count) in [
            ("kpc", 1),
            ("in pc, Msun and km/s.", 3),
            ("heliocentric, au and au/day, solar masses", 3),
            ("pc, solar masses, km s^-1", 3),
            ("Myr kpc kpc kpc", 4),
            ("t/Myr x/kpc m/kg", 3),
            ("t_myr, x_kpc, vx_km_s", 3),
            ("R in solar radii", 1),
            ("comoving kpc/h", 1),
            ("x [pc], vx [km / s]", 2),
            (
                "half-mass radius 3 pc, total mass 1000 Msun, 5 km/s, >1 Msun, 3pc",
                0,
            ),
            (
                "the second day of the year, by A. M. Smith, in all and/or none",
                0,
            ),
            ("1 pc = 3.086e18 cm", 0),
            ("made on a PC in m months", 0),
            ("-1 2 3 1d-3 2d", 0),
            ("x y z vx vy vz m", 0),
        ] {
            assert_eq!(units_in(text).len(), count, "{text}: {:?}", units_in(text));
        }
        assert_eq!(units_in("kpc/h"), [None]);
        assert_eq!(units_in("mass/Msun"), [spelled("Msun")]);
    }

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
            ("AUd", Dimension::Speed, 149_597_870_700.0 / 86_400.0),
            ("light years", Dimension::Length, 9.460_73e15),
            ("2 Gpc", Dimension::Length, 2e9 * PC),
            ("solar radii", Dimension::Length, 6.957e8),
            ("metres", Dimension::Length, 1.0),
            ("kilometers", Dimension::Length, 1e3),
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
