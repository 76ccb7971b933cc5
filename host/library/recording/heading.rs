//! First lines of tables: the units of their columns, where the units of the run are known.

use super::Plan;
use crate::units::{ColumnUnits, Measured};

/// A column: its name, and what its numbers are.
pub(super) type Column = (&'static str, Measured);

/// Units of the columns of a table; none where the units of the run are not known, and in tables of earlier versions.
#[derive(Clone, Debug)]
pub(super) struct Heading(Option<ColumnUnits>);

impl Heading {
    /// Numbers as they are.
    pub(super) const BARE: Self = Self(None);

    /// Units for new tables of a run.
    pub(super) fn of(plan: &Plan) -> Self {
        Self(plan.units.map(|units| {
            let typical = || units.shown_time(plan.until.unwrap_or(1.0));
            ColumnUnits::of(&units, plan.time_unit.unwrap_or_else(typical))
        }))
    }

    /// Names of columns, with units where they have such.
    pub(super) fn names(&self, columns: &[Column]) -> Vec<String> {
        let name = |&(name, what): &Column| match &self.0 {
            Some(units) => units.heading(name, what),
            None => name.to_owned(),
        };
        columns.iter().map(name).collect()
    }

    /// Factors from numbers in the units of the run to numbers in columns.
    pub(super) fn factors(&self, columns: &[Column]) -> Vec<f64> {
        let factor = |&(_, what): &Column| self.0.as_ref().map_or(1.0, |units| units.factor(what));
        columns.iter().map(factor).collect()
    }

    /// Units that a table has already, by its first line, which begins with the steps.
    pub(super) fn of_first_line(&self, columns: &[Column], line: &str) -> Self {
        let cells: Vec<&str> = line.split(',').skip(1).collect();
        self.of_table(columns, |at, name| cells.get(at) == Some(&name))
    }

    /// Units that a table has already, of which it is told which names it has. A table goes on as it began, also if
    /// its run is asked for times in another unit later, or an earlier version began it. Most names decide, as one
    /// may be damaged; a table without any of them has the units of new ones.
    pub(super) fn of_table(&self, columns: &[Column], has: impl Fn(usize, &str) -> bool) -> Self {
        let in_all_times = self.0.iter().flat_map(ColumnUnits::in_all_times);
        let others = in_all_times.map(|units| Self(Some(units)));
        let mut best = (self.clone(), 0);
        for heading in std::iter::once(self.clone())
            .chain(others)
            .chain([Self(None)])
        {
            let names = heading.names(columns);
            let found = (0..).zip(&names).filter(|(at, name)| has(*at, name));
            let found = found.count();
            if found > best.1 {
                best = (heading, found);
            }
        }
        best.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recording::tests::PLAN;

    const COLUMNS: [Column; 3] = [
        ("time", Measured::Time),
        ("outcome", Measured::Bare),
        ("energy", Measured::Energy),
    ];

    #[test]
    fn tables_go_on_in_the_units_that_they_have() {
        let units = "pc".parse().ok();
        let new = Heading::of(&Plan { units, ..PLAN });
        assert_eq!(
            new.names(&COLUMNS),
            ["time [Myr]", "outcome", "energy [Msun km2/s2]"]
        );
        let of = |header: &str| {
            let found = new.of_first_line(&COLUMNS, &format!("step,{header}"));
            found.names(&COLUMNS)[0].clone()
        };
        for (header, time) in [
            ("time [Myr],outcome,energy [Msun km2/s2]", "time [Myr]"),
            ("time [yr],outcome,energy [Msun km2/s2]", "time [yr]"),
            ("time,outcome,energy", "time"),
            ("time [Gyr],outcome,enerhy [Msun km2/s2]", "time [Gyr]"),
            ("time [Myr],outcome,enerhy", "time [Myr]"),
            ("", "time [Myr]"),
        ] {
            assert_eq!(of(header), time, "{header}");
        }
        let unknown = Heading::of(&PLAN);
        assert_eq!(unknown.names(&COLUMNS), ["time", "outcome", "energy"]);
        assert_eq!(unknown.factors(&COLUMNS), [1.0; 3]);
    }
}
