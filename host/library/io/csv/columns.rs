//! Which column of a table is which quantity, and the body in a line.

use csv::StringRecord;

use super::super::column::{ID, KIND, MASS};
use super::names::{self, Name, PLACES};
use super::numbers::{number, whole};
use super::{CsvFault, UNNAMED, beginning};
use crate::bodies::{Body, BodyFault, BodyKind, COORDINATES};
use crate::units::Units;

/// The column of the ids among eight columns without names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum IdColumn {
    First,
    Last,
    /// Both have whole numbers, of which the last ones follow each other.
    Either,
}

impl IdColumn {
    /// By the first two lines.
    pub(super) fn of(lines: &[u8]) -> Self {
        let lines = String::from_utf8_lossy(lines);
        let rows = lines.lines().map(|line| {
            let fields = line
                .split([' ', '\t', ',', ';'])
                .filter(|field| !field.is_empty());
            fields.map(whole).collect::<Vec<_>>()
        });
        let rows: Vec<Vec<Option<u64>>> = rows.take(2).collect();
        let ids = |of: fn(&[Option<u64>]) -> Option<&Option<u64>>| {
            let ids: Option<Vec<u64>> = rows.iter().map(|row| *of(row)?).collect();
            ids.and_then(|ids| <[u64; 2]>::try_from(ids).ok())
        };
        let follow = |[a, b]: [u64; 2]| b == a.wrapping_add(1);
        match (ids(|row| row.first()), ids(|row| row.last())) {
            (None, Some([a, b])) if a != b => Self::Last,
            // Whole numbers of which the last follow each other are no chance, unless the first do too.
            (Some(first), Some(last)) if follow(last) && !follow(first) => Self::Either,
            _ => Self::First,
        }
    }
}

/// The field that is no number in a line of numbers, such as the stars that Fortran writes for a number without room.
fn strange_among_numbers(line: &[Name]) -> Option<CsvFault> {
    let is_number = |name: &Name| number(&name.name).is_some();
    let numbers = line.iter().filter(|name| is_number(name)).count();
    let strange = line.iter().position(|name| !is_number(name))?;
    (2 * numbers > line.len()).then(|| CsvFault::NoNumber {
        column: strange + 1,
        text: listed(&line[strange..=strange]),
    })
}

/// Position of each quantity, as an index into the fields of a line.
pub(super) struct Columns {
    coordinates: [usize; 6],
    mass: usize,
    id: Option<usize>,
    kind: Option<usize>,
    /// Column of the time of the snapshot that a body belongs to, if the file has one.
    pub(super) time: Option<usize>,
    /// True if the file names them.
    are_named: bool,
    /// Factors that turn the numbers of each coordinate to the units of the table.
    factors: [f64; 6],
}

impl Columns {
    pub(super) fn of(header: &[Name]) -> Result<Self, CsvFault> {
        let find = |name: &'static str| {
            let mut found =
                (0..header.len()).filter(|i| header[*i].name.eq_ignore_ascii_case(name));
            match (found.next(), found.next()) {
                (_, Some(second)) => Err(CsvFault::DuplicateColumn {
                    column: second + 1,
                    name,
                }),
                (first, None) => Ok(first),
            }
        };
        // The first of several names that is there.
        let one_of = |names: &[&'static str]| {
            let mut found = names.iter().map(|name| find(name));
            found.find_map(Result::transpose).transpose()
        };
        let need = |names: &[&'static str]| {
            one_of(names)?.ok_or_else(|| {
                strange_among_numbers(header).unwrap_or_else(|| CsvFault::MissingColumn {
                    missing: names[0],
                    header: listed(header),
                })
            })
        };
        let mut coordinates = [0; 6];
        for (column, names) in coordinates.iter_mut().zip(PLACES) {
            *column = need(&names)?;
        }
        Ok(Self {
            coordinates,
            mass: need(&MASS)?,
            id: one_of(&ID)?,
            kind: one_of(&KIND)?,
            time: header
                .iter()
                .position(|Name { name, .. }| name == "t" || name.eq_ignore_ascii_case("time")),
            are_named: true,
            factors: [1.0; 6],
        })
    }

    /// Columns of a table without names: place and velocity follow the mass.
    pub(super) fn from_mass(mass: usize, id: Option<usize>) -> Self {
        Self {
            coordinates: std::array::from_fn(|k| mass + 1 + k),
            mass,
            id,
            kind: None,
            time: None,
            are_named: false,
            factors: [1.0; 6],
        }
    }

    /// Columns of a table without names, from the count of numbers in a line; and a note on what they were
    /// taken for.
    pub(super) fn unnamed(found: usize, id: IdColumn) -> Result<(Self, String), CsvFault> {
        let (columns, read_as) = match (found, id) {
            (7, _) => (Self::from_mass(0, None), UNNAMED.to_owned()),
            (8, IdColumn::First) => (Self::from_mass(1, Some(0)), format!("id {UNNAMED}")),
            (8, IdColumn::Last) => (Self::from_mass(0, Some(7)), format!("{UNNAMED} id")),
            (8, IdColumn::Either) => return Err(CsvFault::TwoIds),
            (found, _) => return Err(CsvFault::Unnamed { found }),
        };
        let note = format!("without names of columns; read as {read_as}");
        Ok((columns, note))
    }

    /// Names of the columns that are passed over.
    pub(super) fn others(&self, header: &[Name]) -> Vec<String> {
        let is_used = |column: &usize| {
            self.coordinates.contains(column)
                || [Some(self.mass), self.id, self.kind, self.time].contains(&Some(*column))
                || header[*column].name.is_empty()
        };
        (0..header.len())
            .filter(|column| !is_used(column))
            .map(|column| beginning(&header[column].name))
            .collect()
    }

    /// The units that the names of columns tell. Columns of one dimension may have several: numbers are then
    /// turned to the first of them.
    ///
    /// # Errors
    /// The note that there are units and they make no system.
    pub(super) fn take_units(&mut self, header: &[Name]) -> Result<Option<Units>, String> {
        let unit = |column: usize| header[column].unit.as_str();
        let [x, y, z, vx, vy, vz] = self.coordinates.map(unit);
        let system = names::system(unit(self.mass), [x, y, z], [vx, vy, vz])?;
        Ok(system.map(|system| {
            self.factors = system.factors;
            system.units
        }))
    }

    /// Takes the body number `index` out of its line.
    pub(super) fn body(&self, record: &StringRecord, index: usize) -> Result<Body, CsvFault> {
        let not = |column: usize, name, wanted| CsvFault::Field {
            column: column + 1,
            name,
            body: index,
            text: beginning(&record[column]),
            wanted,
        };
        let real = |column: usize, name: &'static str| {
            number(&record[column]).ok_or_else(|| not(column, name, "a number"))
        };
        let mut coordinates = [0.0; 6];
        for ((value, column), name) in coordinates
            .iter_mut()
            .zip(self.coordinates)
            .zip(COORDINATES)
        {
            *value = real(column, name)?;
        }
        for (value, factor) in coordinates.iter_mut().zip(self.factors) {
            if factor != 1.0 {
                *value *= factor;
            }
        }
        let [x, y, z, vx, vy, vz] = coordinates;
        let id = match self.id {
            Some(column) => whole(&record[column])
                .ok_or_else(|| not(column, "id", "an integer from 0 to 18446744073709551615"))?,
            None => index as u64,
        };
        let kind = match self.kind {
            Some(column) => BodyKind::ALL
                .into_iter()
                .find(|kind| kind.name().eq_ignore_ascii_case(&record[column]))
                .ok_or_else(|| not(column, "kind", "gas, dark or star"))?,
            None => BodyKind::Star,
        };
        let mass = real(self.mass, "mass")?;
        let body = Body {
            position: [x, y, z],
            velocity: [vx, vy, vz],
            mass,
            id,
            kind,
        };
        if mass < 0.0 && !self.are_named {
            return Err(CsvFault::UnnamedMass {
                column: self.mass + 1,
                body: index,
                mass,
            });
        }
        body.check(index).map_err(|fault| CsvFault::Body {
            column: self.column_of(fault) + 1,
            fault,
        })?;
        Ok(body)
    }

    /// Index of the field that `fault` names.
    fn column_of(&self, fault: BodyFault) -> usize {
        let coordinate = match fault {
            BodyFault::NotFinite { field, .. } => {
                COORDINATES.iter().position(|name| *name == field)
            }
            BodyFault::Length { .. } | BodyFault::NegativeMass { .. } => None,
        };
        coordinate.map_or(self.mass, |index| self.coordinates[index])
    }
}

/// The names of a table, as far as a message can show them.
pub(super) fn listed(header: &[Name]) -> String {
    let names: Vec<&str> = header.iter().map(|name| name.name.as_str()).collect();
    beginning(&names.join(","))
}
