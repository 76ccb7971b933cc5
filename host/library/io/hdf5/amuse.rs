//! Particles as AMUSE writes them to HDF5.
//! ```text
//! /particles/0000000001   a group for each time that they were written, of which the last is read;
//!                         attributes timestamp and timestamp_unit
//!   keys                  [N]
//!   attributes/mass       [N], and x, y, z, vx, vy, vz; each has an attribute `units`, such as
//!                         (1.98e+30 * system.get('S.I.').base('mass'))
//! ```
//! Layout: AMUSE's module `store_v2`.

use std::collections::HashSet;

use hdf5_reader::group::Group;
use hdf5_reader::{Attribute, Dataset, Hdf5File};

use super::super::column::{left_out, room_for};
use super::super::pieces::Piece;
use super::super::{Contents, ReadFault, Snapshot};
use super::dataset::{Table, values};
use super::read::{dataset, group};
use super::{fault, malformed};
use crate::bodies::{Bodies, BodyKind, COORDINATES};
use crate::units::Units;

/// Reads the particles of a file, if it has any.
pub(super) fn read(file: &Hdf5File, root: &Group, size: u64) -> Result<Option<Piece>, ReadFault> {
    let Some(all) = group(root, "particles")? else {
        return Ok(None);
    };
    let place = "/particles";
    let (groups, _) = all.member_names().map_err(|error| fault(place, error))?;
    let last = groups.iter().max();
    let last = last.ok_or_else(|| malformed(place, "there are no particles in it"))?;
    let place = format!("{place}/{last}");
    let missing = || malformed(&place, "there is no such group with attributes");
    let set = group(&all, last)?.ok_or_else(missing)?;
    let attributes = group(&set, "attributes")?.ok_or_else(missing)?;
    refuse_other_sets(file, &all, &groups, last, size)?;
    let table = |name: &str, dimension: Dimension| -> Result<(Table, Scale), ReadFault> {
        let place = format!("{place}/attributes/{name}");
        let dataset = dataset(&attributes, name, &place)?
            .ok_or_else(|| malformed(&place, "there is no such dataset"))?;
        let scale = Scale::of(&dataset, &place, dimension)?;
        Ok((Table::of(file, dataset, place, size)?, scale))
    };
    let (masses, of_mass) = table("mass", MASS)?;
    let rows = masses.rows();
    let n = usize::try_from(rows).map_err(|_| ReadFault::OutOfMemory { bodies: usize::MAX })?;
    let mut bodies = room_for(n)?;
    let Bodies {
        x,
        y,
        z,
        vx,
        vy,
        vz,
        mass,
        id,
        kind,
    } = &mut bodies;
    mass.resize(n, 0.0);
    masses.expect(rows, 1)?;
    masses.reals(0, &mut [mass])?;
    let mut first = [of_mass; 2];
    for (k, column) in [x, y, z, vx, vy, vz].into_iter().enumerate() {
        let (table, scale) = table(COORDINATES[k], if k < 3 { LENGTH } else { SPEED })?;
        table.expect(rows, 1)?;
        column.resize(n, 0.0);
        table.reals(0, &mut [&mut *column])?;
        if k % 3 == 0 {
            first[k / 3] = scale;
        }
        // Numbers of all axes in the units of the first.
        let factor = scale.size / first[k / 3].size;
        if factor != 1.0 {
            column.iter_mut().for_each(|value| *value *= factor);
        }
        if scale.is_si != of_mass.is_si {
            let problem = "units of SI and of N bodies are mixed in it: write it in one of them";
            return Err(malformed(&place, problem));
        }
    }
    let [of_length, of_speed] = first;
    id.resize(n, 0);
    kind.resize(n, BodyKind::Star);
    let keys_place = format!("{place}/keys");
    match dataset(&set, "keys", &keys_place)? {
        Some(keys) => {
            let keys = Table::of(file, keys, keys_place, size)?;
            keys.expect(rows, 1)?;
            keys.ids(0, id)?;
        }
        None => (0..).zip(id).for_each(|(number, id)| *id = number),
    }
    let units = Units {
        length: of_length.size,
        mass: of_mass.size,
        time: of_length.size / of_speed.size,
    };
    let told = time(&set, &place)?;
    let is_of_bodies = |scale: Scale| scale.is_si == of_mass.is_si;
    let time = told.filter(|(_, scale)| is_of_bodies(*scale));
    let time = time.map_or(0.0, |(time, scale)| time * scale.size / units.time);
    let units = of_mass.is_si.then_some(units);

    let (_, mut others) = attributes
        .member_names()
        .map_err(|error| fault(&place, error))?;
    others.retain(|name| name != "mass" && !COORDINATES.contains(&name.as_str()));
    let mut notes = vec![];
    if let Some((number, scale)) = told
        && !is_of_bodies(scale)
    {
        let systems = match scale.is_si {
            true => ["SI", "N bodies"],
            false => ["N bodies", "SI"],
        };
        let [of_time, of_bodies] = systems;
        notes.push(format!(
            "the timestamp, {number}, is in units of {of_time}, and the particles are in units of {of_bodies}: the time is \
             taken as 0"
        ));
    }
    if !others.is_empty() {
        notes.push(left_out("attributes", &others));
    }
    if groups.len() > 1 {
        notes.push(format!(
            "the file holds {} states of the particles: the last is read",
            groups.len()
        ));
    }
    Ok(Some(Piece {
        files: 1,
        totals: vec![],
        counts: vec![rows],
        contents: Contents {
            snapshot: Snapshot { time, bodies },
            units,
            program: Some("AMUSE"),
            notes,
            ..Contents::default()
        },
    }))
}

/// Refuses a file with other sets of particles than the last: sets that have none of the keys of the last one. States of one
/// set share keys.
fn refuse_other_sets(
    file: &Hdf5File,
    all: &Group,
    groups: &[String],
    last: &str,
    size: u64,
) -> Result<(), ReadFault> {
    /// Keys of each group that are looked for in the last: all of many states would take long to read.
    const FIRST: u64 = 64;
    let keys = |name: &str, most: u64| -> Result<Option<Vec<u64>>, ReadFault> {
        let Some(set) = group(all, name)? else {
            return Ok(None);
        };
        let place = format!("/particles/{name}/keys");
        let Some(keys) = dataset(&set, "keys", &place)? else {
            return Ok(None);
        };
        let keys = Table::of(file, keys, place, size)?;
        let n = usize::try_from(keys.rows().min(most));
        let n = n.map_err(|_| ReadFault::OutOfMemory { bodies: usize::MAX })?;
        let mut ids = vec![0; n];
        keys.ids(0, &mut ids)?;
        Ok(Some(ids))
    };
    let earlier: Vec<&String> = groups.iter().filter(|name| *name != last).collect();
    if earlier.is_empty() {
        return Ok(());
    }
    let Some(of_last) = keys(last, u64::MAX)? else {
        return Ok(());
    };
    let of_last: HashSet<u64> = of_last.into_iter().collect();
    for name in earlier {
        let some = keys(name, FIRST)?.unwrap_or_default();
        if !some.is_empty() && !some.iter().any(|key| of_last.contains(key)) {
            let problem = format!(
                "it holds several sets of particles: `{name}` and `{last}` have no key in common. Write each set into another file"
            );
            return Err(malformed("/particles", problem));
        }
    }
    Ok(())
}

/// The time of a set, and the unit that it is in.
fn time(set: &Group, place: &str) -> Result<Option<(f64, Scale)>, ReadFault> {
    let attributes = set.attributes().map_err(|error| fault(place, error))?;
    let find = |name: &str| attributes.iter().find(|attribute| attribute.name == name);
    let (Some(time), Some(unit)) = (find("timestamp"), find("timestamp_unit")) else {
        return Ok(None);
    };
    let place = format!("{place}/timestamp");
    let number = values(&time.datatype, &time.raw_data);
    match number.as_deref() {
        Some([time]) if time.is_finite() => Ok(Some((*time, Scale::parse(unit, &place, TIME)?))),
        _ => Err(malformed(&place, "it is not a finite number")),
    }
}

/// Exponents of a length, a mass and a time in a unit.
type Exponents = [f64; 3];

/// A dimension, and what a quantity of it is called.
type Dimension = (Exponents, &'static str);

const LENGTH: Dimension = ([1.0, 0.0, 0.0], "length");
const MASS: Dimension = ([0.0, 1.0, 0.0], "mass");
const TIME: Dimension = ([0.0, 0.0, 1.0], "time");
const SPEED: Dimension = ([1.0, 0.0, -1.0], "speed");

/// The size of a unit, in units of SI or of N bodies.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Scale {
    size: f64,
    is_si: bool,
}

impl Scale {
    fn of(dataset: &Dataset, place: &str, dimension: Dimension) -> Result<Self, ReadFault> {
        let attributes = dataset.attributes();
        let units = attributes
            .iter()
            .find(|attribute| attribute.name == "units");
        match units {
            Some(units) => Self::parse(units, place, dimension),
            None => Err(malformed(place, "there is no attribute `units`")),
        }
    }

    fn parse(
        attribute: &Attribute,
        place: &str,
        (exponents, name): Dimension,
    ) -> Result<Self, ReadFault> {
        let text = attribute
            .read_string()
            .map_err(|error| fault(place, error))?;
        let mut rest = Expression {
            rest: text.trim(),
            system: None,
        };
        let unit = rest
            .product(0)
            .filter(|unit| unit.size.is_normal() && unit.size > 0.0);
        match (unit, rest.system) {
            (Some(unit), system) if rest.rest.is_empty() && unit.exponents == exponents => {
                Ok(Self {
                    size: unit.size,
                    is_si: system == Some("S.I."),
                })
            }
            (Some(_), _) if rest.rest.is_empty() => {
                let problem = format!("its unit `{text}` is not of a {name}");
                Err(malformed(place, problem))
            }
            _ => {
                let problem = format!("its unit `{text}` is not understood");
                Err(malformed(place, problem))
            }
        }
    }
}

/// A unit: its size, and its exponents of base units.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Unit {
    size: f64,
    exponents: Exponents,
}

impl Unit {
    const fn number(size: f64) -> Self {
        let exponents = [0.0; 3];
        Self { size, exponents }
    }

    /// A base unit; none of temperature and the like.
    fn base(name: &str) -> Option<Self> {
        let (exponents, _) = [LENGTH, MASS, TIME]
            .into_iter()
            .find(|(_, known)| *known == name)?;
        let size = 1.0;
        Some(Self { size, exponents })
    }

    /// The product with a power of another unit.
    fn times(self, other: Self, power: f64) -> Self {
        Self {
            size: self.size * other.size.powf(power),
            exponents: [0, 1, 2].map(|k| self.exponents[k] + power * other.exponents[k]),
        }
    }
}

/// A product of numbers and base units, as AMUSE writes units.
struct Expression<'a> {
    rest: &'a str,
    /// System of the base units.
    system: Option<&'a str>,
}

impl<'a> Expression<'a> {
    fn takes(&mut self, token: &str) -> bool {
        let found = self.rest.strip_prefix(token);
        self.rest = found.unwrap_or(self.rest).trim_start();
        found.is_some()
    }

    fn product(&mut self, depth: u32) -> Option<Unit> {
        let mut product = self.power(depth)?;
        loop {
            if self.takes("*") {
                product = product.times(self.power(depth)?, 1.0);
            } else if self.takes("/") {
                product = product.times(self.power(depth)?, -1.0);
            } else {
                return Some(product);
            }
        }
    }

    fn power(&mut self, depth: u32) -> Option<Unit> {
        let base = self.factor(depth)?;
        if !self.takes("**") {
            return Some(base);
        }
        let power = self.factor(depth)?;
        let is_number = power.exponents == [0.0; 3];
        is_number.then(|| Unit::number(1.0).times(base, power.size))
    }

    fn factor(&mut self, depth: u32) -> Option<Unit> {
        /// No unit has more parentheses within parentheses.
        const DEEPEST: u32 = 50;
        if self.takes("(") {
            let product = (depth < DEEPEST).then(|| self.product(depth + 1))??;
            return self.takes(")").then_some(product);
        }
        if let Some(rest) = self.rest.strip_prefix("system.get('") {
            let (system, rest) = rest.split_once("').base('")?;
            let (base, rest) = rest.split_once("')")?;
            self.rest = rest.trim_start();
            let is_same = self.system.is_none_or(|known| known == system);
            self.system = Some(system);
            return Unit::base(base).filter(|_| is_same);
        }
        let ends = |(at, c): &(usize, char)| {
            let is_exponent = self.rest[..*at].ends_with(['e', 'E']);
            let is_sign = matches!(c, '-' | '+') && (*at == 0 || is_exponent);
            !(c.is_ascii_digit() || matches!(c, '.' | 'e' | 'E') || is_sign)
        };
        let end = self.rest.char_indices().find(ends);
        let (number, rest) = self
            .rest
            .split_at(end.map_or(self.rest.len(), |(at, _)| at));
        self.rest = rest.trim_start();
        number.parse().ok().map(Unit::number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_products() {
        for (text, size, exponents, system) in [
            (
                "(1.5e+30 * system.get('S.I.').base('mass'))",
                1.5e30,
                MASS.0,
                Some("S.I."),
            ),
            (
                "(1000.0 * (system.get('S.I.').base('length') * (system.get('S.I.').base('time')**-1)))",
                1000.0,
                SPEED.0,
                Some("S.I."),
            ),
            (
                "system.get('n-body').base('time') / 2.0",
                0.5,
                TIME.0,
                Some("n-body"),
            ),
            ("2.0**-1.0", 0.5, [0.0; 3], None),
        ] {
            let mut read = Expression {
                rest: text,
                system: None,
            };
            assert_eq!(read.product(0), Some(Unit { size, exponents }), "{text}");
            assert_eq!((read.rest, read.system), ("", system));
        }
        for text in [
            "",
            "(2.0",
            "2 *",
            "none",
            "system.get('S.I.').base('temperature')",
            "2.0**system.get('S.I.').base('mass')",
            "system.get('S.I.').base('mass') * system.get('n-body').base('mass')",
            &"(".repeat(100_000),
        ] {
            let mut read = Expression {
                rest: text,
                system: None,
            };
            assert_eq!(read.product(0), None, "{text}");
        }
    }
}
