//! `allpairs info`.

use std::io::{self, Write};
use std::path::PathBuf;

use allpairs::binaries::{Census, Pair};
use allpairs::bodies::{Bodies, BodyKind};
use allpairs::io::{Format, Printable, Reading};
use allpairs::run::Surroundings;
use allpairs::test_particles::Kinds;
use allpairs::units::Units;

use crate::choices::Cosmological;
use crate::files;
use crate::physics::ForceOptions;
use crate::say;
use crate::tables;
use crate::times::Times;

/// Snapshot to describe.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "A bound pair is two bodies with mass, each the nearest neighbour of the other, with a \
                  negative relative energy. It is hard if its binding energy exceeds the \
                  mean kinetic energy of single bodies and of pairs as a whole."
)]
pub(super) struct Options {
    /// Snapshot file.
    input: PathBuf,
    /// Format of the file, if its content is not to decide.
    #[arg(long)]
    format: Option<Format>,
    #[command(flatten)]
    cosmological: Cosmological,
    /// Number of bound pairs to list, the most bound first.
    #[arg(long, value_name = "COUNT", default_value_t = 10)]
    pairs: usize,
    #[command(flatten)]
    force: ForceOptions,
}

pub(super) fn info(options: &Options, out: &mut impl Write) -> anyhow::Result<()> {
    let reading = Reading {
        format: options.format,
        physical: options.cosmological.physical,
        units: options.force.units,
    };
    let loaded = files::load(&options.input, reading)?;
    let mut force = options.force.clone();
    force.units = files::units_of(&options.input, loaded.units, force.units)?;
    // Pairs are of bodies that stand for themselves.
    force.softening = force.softening.or(Some(0.0.into()));
    let layout = loaded.summary();
    let (time, bodies) = (loaded.snapshot.time, loaded.snapshot.bodies);
    let physics = force.spec()?.physics(&bodies, &Surroundings::general())?;
    writeln!(
        out,
        "{}: {} of total mass {}, at time {}, {}",
        Printable(options.input.display()),
        say::counted(bodies.len(), "body", "bodies"),
        say::fixed(bodies.total_mass(), 6),
        Times::of(force.units.as_ref(), &[], time.abs()).text(time),
        layout
    )?;
    if let Some(line) = force.units_line(&physics, false) {
        writeln!(out, "{line}")?;
    }
    writeln!(out, "{}", ids_and_kinds(&bodies))?;
    let Kinds { massive, massless } = Kinds::of(&bodies, &physics);
    if massless > 0 {
        writeln!(
            out,
            "{}, {}",
            say::counted(massive, "massive body", "massive bodies"),
            say::counted(massless, "test particle", "test particles")
        )?;
    }
    let census = Census::of(&bodies, &physics);
    if massive > 1 {
        writeln!(
            out,
            "nearest neighbours: {} apart at least, {} in the median",
            say::length(census.least_distance, force.units.as_ref()),
            say::length(census.median_distance, force.units.as_ref())
        )?;
    }
    let (pairs, hard) = (census.pairs.len(), census.hard());
    let pairs = say::counted(pairs, "bound pair", "bound pairs");
    writeln!(out, "{pairs}, {hard} of them hard")?;
    if census.pairs.is_empty() || options.pairs == 0 {
        return Ok(());
    }
    writeln!(
        out,
        "{}",
        table_of_pairs(&census, options.pairs, force.units.as_ref())
    )?;
    Ok(())
}

/// Table of the most bound pairs, at most `most`.
fn table_of_pairs(census: &Census, most: usize, units: Option<&Units>) -> comfy_table::Table {
    let named = |what: &str, unit: Option<String>| match unit {
        Some(unit) => format!("#{what} [{unit}]"),
        None => format!("#{what}"),
    };
    let shown = (census.pairs.first()).and_then(|pair| Some(units?.shown_time(pair.period)));
    let columns = [
        "#ids",
        &named("masses", units.and_then(Units::name_of_mass)),
        &named("semi-major axis", units.and_then(Units::name_of_length)),
        "#eccentricity",
        &named("period", shown.map(|shown| shown.name.to_owned())),
        "#binding energy",
        "",
    ];
    let mut table = tables::table(&columns);
    for pair in census.pairs.iter().take(most) {
        let [a, b] = pair.ids;
        let [m, n] = pair.masses.map(say::figure);
        table.add_row([
            format!("{a} {b}"),
            format!("{m} {n}"),
            say::figure(pair.semi_major_axis),
            format!("{:.4}", pair.eccentricity),
            say::figure(pair.period * shown.map_or(1.0, |shown| shown.factor)),
            say::figure(pair.binding_energy),
            if pair.is_hard { "hard" } else { "" }.to_owned(),
        ]);
    }
    table
}

/// Ids and kinds of bodies, of which there is one at least.
fn ids_and_kinds(bodies: &Bodies) -> String {
    let (least, most) = (bodies.id.iter().min(), bodies.id.iter().max());
    let ids = least
        .zip(most)
        .map_or_else(String::new, |(least, most)| match least == most {
            true => format!("id {least}"),
            false => format!("ids {least} to {most}"),
        });
    let kinds = [
        (BodyKind::Gas, "gas"),
        (BodyKind::Dark, "dark"),
        (BodyKind::Star, "stars"),
    ];
    let kinds = kinds.map(|(kind, name)| {
        let number = bodies.kind.iter().filter(|of| **of == kind).count();
        (number > 0).then(|| format!("{number} {name}"))
    });
    let kinds: Vec<String> = kinds.into_iter().flatten().collect();
    format!("{ids}; {}", kinds.join(", "))
}

/// A pair in a line.
pub(super) fn described(pair: &Pair, units: Option<&Units>) -> String {
    let [a, b] = pair.ids;
    format!(
        "ids {a} and {b}, semi-major axis {}, eccentricity {:.4}, period {}, binding energy {}{}",
        say::length(pair.semi_major_axis, units),
        pair.eccentricity,
        Times::of(units, &[], pair.period).figure(pair.period),
        say::figure(pair.binding_energy),
        if pair.is_hard { ", hard" } else { "" }
    )
}

/// Hard pairs that are listed at the end of a run.
const LISTED: usize = 10;

/// Tells of the hard pairs at the end of a run.
pub(super) fn pairs_at_end(
    census: &Census,
    units: Option<&Units>,
    out: &mut impl Write,
) -> io::Result<()> {
    let hard = census.hard();
    let counted = say::counted(hard, "hard pair", "hard pairs");
    match hard > LISTED {
        true => writeln!(out, "{counted} at the end, the {LISTED} most bound:")?,
        false => writeln!(out, "{counted} at the end:")?,
    }
    writeln!(out, "{}", table_of_pairs(census, hard.min(LISTED), units))
}
