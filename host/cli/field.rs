//! `allpairs field`.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use allpairs::bodies::Bodies;
use allpairs::fields::External;
use allpairs::io::{Format, Overwrite, Points, Printable, Reading, read_points, write_table};
use allpairs::machine::{AtPoints, Machine};
use allpairs::physics::ForceLaw;
use allpairs::run::Surroundings;
use allpairs::selection::{Request, select};
use allpairs::units::Units;
use allpairs::variants::preferred::ForceAccuracy;
use anyhow::{Context, bail, ensure};

use crate::bodies;
use crate::choices::{Cosmological, DeviceOption, Named};
use crate::files;
use crate::physics::ForceOptions;
use crate::say;

/// Snapshot to compute the field of, points, and the file to write.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Columns: the point x, y, z; the acceleration ax, ay, az and the potential of a body there; \
                  and the tidal tensor Tij = dai/dxj, which is symmetric. A body of the snapshot at a point \
                  adds nothing to its acceleration. On the CPU all is computed in double precision. On a \
                  GPU --accuracy single rounds coordinates to 1e-7 of the extent of the bodies, and values \
                  to some 1e-6; for points very far out double is taken. The seconds of each kernel \
                  include its interactions, but no copies."
)]
pub(super) struct Options {
    /// Snapshot file.
    input: PathBuf,
    /// Points: a table of x y z, or one with a header; an array of shape [M, 3] as .npy; or any
    /// snapshot, for the positions of its bodies.
    #[arg(long, value_name = "POINTS")]
    at: PathBuf,
    /// File to write: .csv, or .npy for an array of shape [M, 13].
    #[arg(short, long, alias = "output", value_name = "FILE")]
    out: PathBuf,
    /// Format of the snapshot, if its content is not to decide.
    #[arg(long)]
    format: Option<Format>,
    #[command(flatten)]
    cosmological: Cosmological,
    /// Replace the file if it exists.
    #[arg(long)]
    overwrite: bool,
    #[command(flatten)]
    place: DeviceOption,
    /// Accepted error of values on a GPU; fast means single, and the CPU computes in double.
    #[arg(long, default_value = "single")]
    accuracy: Named<ForceAccuracy>,
    #[command(flatten)]
    force: ForceOptions,
}

/// Columns of the table.
const COLUMNS: [&str; 13] = [
    "x",
    "y",
    "z",
    "ax",
    "ay",
    "az",
    "potential",
    "Txx",
    "Tyy",
    "Tzz",
    "Txy",
    "Txz",
    "Tyz",
];

pub(super) fn field(options: &Options, out: &mut impl Write) -> anyhow::Result<()> {
    let name = options.out.extension().unwrap_or_default();
    ensure!(
        name == "csv" || name == "npy",
        "the name {} should end with .csv or .npy",
        Printable(options.out.display())
    );
    for input in [&options.input, &options.at] {
        let [input, output] = [input, &options.out].map(fs::canonicalize);
        ensure!(
            input.is_err() || input.ok() != output.ok(),
            "--out {} is also read: choose another name",
            Printable(options.out.display())
        );
    }
    let reading = Reading {
        format: options.format,
        physical: options.cosmological.physical,
        units: options.force.units,
    };
    let loaded = files::load(&options.input, reading)?;
    let mut force = options.force.clone();
    force.units = files::units_of(&options.input, loaded.units, force.units)?;
    let (time, bodies) = (loaded.snapshot.time, loaded.snapshot.bodies);
    let physics = force.spec()?.physics(&bodies, &Surroundings::general())?;
    ensure!(
        !matches!(physics.law, ForceLaw::AttractRepel { .. }),
        "the field of --law attract-repel depends on the bodies in it: `field` has gravity and unit"
    );
    let fields = force.fields(physics.g)?;
    fields.check()?;
    if let Some(field) = fields.iter().find(|field| field.needs_velocity()) {
        anyhow::bail!("--field {field}: it depends on velocities, and points have none");
    }
    fields.check_times(time, time)?;
    let (points, said_of_points) = points(&options.at, force.units)?;
    bodies::check_memory((bodies.len() + points.len()) as u64)?;
    let mut external = External::of_bodies(&fields, &Bodies::default(), &physics)?;
    external.set_time(time);
    let request = Request::new(bodies.len()).on(options.place.device);
    let selection = select(&request)?;
    let machine = Machine::new(selection.place);
    let accuracy = options.accuracy.0;
    let field = machine.field_at(&bodies, &physics, &points, accuracy)?;
    let tides = machine.tides_at(&bodies, &physics, &points, accuracy)?;
    let said = [told("field", &field), told("tidal tensors", &tides)];
    let ((accelerations, potentials), tides) = (field.values, tides.values);
    let external_potential = external.potential();
    let mut numbers = Vec::with_capacity(COLUMNS.len() * points.len());
    for (k, &point) in points.iter().enumerate() {
        let (a, t) = (external.acceleration(point), external.tides(point));
        numbers.extend(point);
        numbers.extend([0, 1, 2].map(|i| accelerations[k][i] + a[i]));
        numbers.push(potentials[k] + external_potential.at(point));
        let tensor = |(i, j): (usize, usize)| tides[k][i][j] + t[i][j];
        numbers.extend([(0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2)].map(tensor));
    }
    let file = Printable(options.out.display());
    let overwrite = Overwrite::from(options.overwrite);
    write_table(&options.out, &COLUMNS, &numbers, overwrite)
        .with_context(|| format!("cannot write {file}"))?;
    writeln!(
        out,
        "wrote {file}: the field of {} at {}, softening {}",
        say::counted(bodies.len(), "body", "bodies"),
        say::counted(points.len(), "point", "points"),
        say::figure(physics.softening)
    )?;
    let is_broken = |row: &&[f64]| row.iter().any(|value| !value.is_finite());
    let mut broken = numbers.chunks_exact(COLUMNS.len()).filter(is_broken);
    if let Some([x, y, z, ..]) = broken.next() {
        let points = say::counted(1 + broken.count(), "point", "points");
        let at = [x, y, z]
            .map(|coordinate| say::figure(*coordinate))
            .join(", ");
        let note = format!(
            "the field is not finite at {points}, as at the centre of one without a core: first at {at}"
        );
        files::tell_note(&options.at, &note);
    }
    if let Some(line) = said_of_points {
        writeln!(out, "{line}")?;
    }
    writeln!(out, "on {}:", machine.place())?;
    said.iter().try_for_each(|line| writeln!(out, "  {line}"))?;
    Ok(())
}

/// Points in the units of the bodies, and what is to be said about those.
fn points(path: &Path, units: Option<Units>) -> anyhow::Result<(Vec<[f64; 3]>, Option<String>)> {
    let Points {
        mut positions,
        units: own,
        notes,
    } = read_points(path)?;
    for note in &notes {
        files::tell_note(path, note);
    }
    let file = Printable(path.display());
    let said = match (own, units) {
        (Some(own), Some(units)) if own.are_those_of(&units) => None,
        (Some(own), Some(units)) => {
            let factor = own.factors_to(&units).length;
            positions
                .as_flattened_mut()
                .iter_mut()
                .for_each(|x| *x *= factor);
            Some(format!(
                "points of {file} converted from units of {own} to the units of the bodies, {units}"
            ))
        }
        (Some(own), None) => bail!(
            "{file} records its units, {own}, and the units of the bodies are unknown: give them with --units"
        ),
        (None, Some(units)) => Some(format!(
            "points of {file}, without units, taken as in the units of the bodies, {units}"
        )),
        (None, None) => None,
    };
    Ok((positions, said))
}

/// The kernel that computed values, and how fast it was.
fn told<T>(what: &str, computed: &AtPoints<T>) -> String {
    let AtPoints {
        kernel,
        interactions,
        seconds,
        ..
    } = computed;
    let rate = interactions / seconds;
    format!(
        "{what}: {}, {interactions:.3e} interactions in {seconds:.4} s, {rate:.2e} per second",
        kernel.name
    )
}
