//! Charts of a run: what its log says over time, and the paths of bodies.

use super::chart::axis::Scale;
use super::chart::lines::{Line, Lines, Marks};
use super::chart::{Chart, ChartError};
use super::figure::labelled;
use super::{Projection, RunLog};
use crate::units::{Shown, Units};

/// A chart, and a name for its file.
pub type NamedChart = (String, Chart);

/// The charts that the columns of a log allow: `energy-drift`, `energy`, `virial-ratio`,
/// `lagrangian-radii` and `momentum-drift`. `subtitle` says which run it was.
///
/// Times and radii have the units of their columns. Where columns do not tell any, they have named ones if the units
/// of the run are known.
///
/// # Errors
/// There is no column `time`, or the drawing fails.
pub fn run_charts(
    log: &RunLog,
    subtitle: &str,
    units: Option<Units>,
) -> Result<Vec<NamedChart>, ChartError> {
    let time = log
        .column("time")
        .ok_or_else(|| ChartError::Empty("a log without a column `time`".into()))?;
    let latest = time
        .iter()
        .fold(0.0_f64, |latest, time| latest.max(time.abs()));
    let shown = units.map(|units| units.shown_time(latest));
    let (time_label, time) = match log.unit("time") {
        Some(unit) => (labelled("time", Some(unit), None), time.to_vec()),
        None => in_unit("time", time, shown),
    };
    let half = log.column("r50").and_then(|radii| radii.first().copied());
    let length = units.map(|units| units.shown_length(half.unwrap_or_default()));
    let radii = "radius that holds this share of the mass";
    let (radius_label, radius) = match log.unit("r50") {
        Some(unit) => (labelled(radii, Some(unit), None), 1.0),
        None => (
            in_unit(radii, &[], length).0,
            length.map_or(1.0, |length| length.factor),
        ),
    };
    let over_time = |values: &[f64]| -> Vec<[f64; 2]> {
        time.iter().zip(values).map(|(t, v)| [*t, *v]).collect()
    };
    let columns = |names: &[(&str, &str)]| -> Vec<Line> {
        names
            .iter()
            .filter_map(|(column, name)| Some(Line::new(*name, over_time(log.column(column)?))))
            .collect()
    };
    let drift = |lines: &mut Vec<Line>, name: &str, values: Option<Vec<f64>>| {
        lines.extend(values.map(|values| Line::new(name, over_time(&values))));
    };

    let mut energy_drift = vec![];
    drift(&mut energy_drift, "energy", energy_drift_of(log));
    let mut momentum = vec![];
    let angular = vector_change(log, ["lx", "ly", "lz"], true);
    drift(&mut momentum, "angular momentum, |L − L₀| / |L₀|", angular);
    let linear = vector_change(log, ["px", "py", "pz"], false);
    drift(&mut momentum, "momentum, |p − p₀|", linear);

    let wanted = [
        (
            "energy-drift",
            "Energy drift",
            "|E − E₀| / |E₀|",
            Scale::Log,
            energy_drift,
        ),
        (
            "energy",
            "Energy",
            "energy",
            Scale::Linear,
            columns(&[
                ("kinetic", "kinetic"),
                ("potential", "potential"),
                ("energy", "total"),
            ]),
        ),
        (
            "virial-ratio",
            "Virial ratio",
            "2K / |U|",
            Scale::Linear,
            columns(&[("virial_ratio", "2K / |U|")]),
        ),
        (
            "lagrangian-radii",
            "Lagrangian radii",
            &radius_label,
            Scale::Log,
            scaled(
                columns(&[("r90", "90 %"), ("r50", "50 %"), ("r10", "10 %")]),
                radius,
            ),
        ),
        (
            "momentum-drift",
            "Momentum drift",
            "change since the start",
            Scale::Log,
            momentum,
        ),
    ];
    let mut charts = vec![];
    for (name, title, label, scale, lines) in wanted {
        let lines = Lines {
            title: title.into(),
            subtitle: subtitle.into(),
            axes: [(time_label.clone(), Scale::Linear), (label.into(), scale)],
            lines,
            map: false,
            ticks: vec![],
        };
        match lines.chart() {
            Ok(chart) => charts.push((name.to_owned(), chart)),
            // The log lacks the columns, or nothing has drifted at all.
            Err(ChartError::Empty(_)) => {}
            Err(error) => return Err(error),
        }
    }
    if charts.is_empty() {
        return Err(ChartError::Empty(subtitle.to_owned()));
    }
    Ok(charts)
}

/// A label with its unit, and numbers in it.
fn in_unit(quantity: &str, values: &[f64], unit: Option<Shown>) -> (String, Vec<f64>) {
    let factor = unit.map_or(1.0, |unit| unit.factor);
    let label = labelled(quantity, unit.map(|unit| unit.name), None);
    (label, values.iter().map(|value| factor * value).collect())
}

/// Lines with values in another unit.
fn scaled(mut lines: Vec<Line>, factor: f64) -> Vec<Line> {
    for point in lines.iter_mut().flat_map(|line| &mut line.points) {
        point[1] *= factor;
    }
    lines
}

/// The drift as logged, else from the energies.
fn energy_drift_of(log: &RunLog) -> Option<Vec<f64>> {
    if let Some(drift) = log.column("energy_drift").or(log.column("drift")) {
        return Some(drift.iter().map(|drift| drift.abs()).collect());
    }
    let energy = log.column("energy")?;
    let first = *energy.first()?;
    Some(energy.iter().map(|e| ((e - first) / first).abs()).collect())
}

/// Length of the change of a vector since the first row, by its first length if `relative`.
fn vector_change(log: &RunLog, names: [&str; 3], relative: bool) -> Option<Vec<f64>> {
    let [x, y, z] = names.map(|name| log.column(name));
    let (x, y, z) = (x?, y?, z?);
    let norm = |[a, b, c]: [f64; 3]| a.hypot(b).hypot(c);
    let first = [*x.first()?, *y.first()?, *z.first()?];
    let unit = if relative { norm(first) } else { 1.0 };
    let change = |i: usize| norm([x[i] - first[0], y[i] - first[1], z[i] - first[2]]) / unit;
    Some((0..x.len()).map(change).collect())
}

/// The path of a body: its name and its places in the order of time.
#[derive(Clone, Debug, PartialEq)]
pub struct PathOfBody {
    /// Name of the body; without one it is not in the legend.
    pub name: String,
    /// Places.
    pub places: Vec<[f64; 3]>,
}

/// The paths of bodies as a map: both axes at one scale, a dot and its name where each body is at the end.
/// Lengths have a named unit if the units of the bodies are known.
///
/// # Errors
/// No places, or the drawing fails.
pub fn orbit_chart(
    paths: &[PathOfBody],
    projection: Projection,
    subtitle: &str,
    units: Option<Units>,
) -> Result<Chart, ChartError> {
    let [right, up] = projection.axes();
    let places = paths.iter().flat_map(|path| &path.places);
    let extent = places.flat_map(|place| [place[right], place[up]]);
    let extent = extent.fold(0.0_f64, |extent, x| extent.max(x.abs()));
    let unit = units.map(|units| units.shown_length(extent));
    let factor = unit.map_or(1.0, |unit| unit.factor);
    let label = |axis: usize| in_unit(["x", "y", "z"][axis], &[], unit).0;
    let line = |path: &PathOfBody| Line {
        name: path.name.clone(),
        points: path
            .places
            .iter()
            .map(|place| [factor * place[right], factor * place[up]])
            .collect(),
        marks: Marks::End,
        dashed: false,
    };
    Lines {
        title: "Orbits".into(),
        subtitle: subtitle.into(),
        axes: [(label(right), Scale::Linear), (label(up), Scale::Linear)],
        lines: paths.iter().map(line).collect(),
        map: true,
        ticks: vec![],
    }
    .chart()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_gives_the_charts_that_it_can() {
        let text =
            "time,energy,r50,lx,ly,lz\n0,-1,2,0,0,1\n1,-1.001,2.1,0,0,1\n2,-0.999,2.2,0,1e-6,1\n";
        let names = |text: &str| -> Vec<String> {
            let log = RunLog::parse(text).unwrap();
            let charts = run_charts(&log, "a run", None).unwrap();
            charts.into_iter().map(|(name, _)| name).collect()
        };
        assert_eq!(
            names(text),
            [
                "energy-drift",
                "energy",
                "lagrangian-radii",
                "momentum-drift"
            ]
        );
        // The units of columns are told as they are.
        let in_units = RunLog::parse("time [yr],r50 [au]\n0,1\n2000,3\n").unwrap();
        let pc = "pc".parse().ok();
        let (_, chart) = run_charts(&in_units, "a run", pc).unwrap().remove(0);
        let svg = chart.svg().unwrap();
        for label in ["time [yr]", "share of the mass [au]", "2000"] {
            assert!(svg.contains(label), "{label}: {svg}");
        }
        let still = "time,energy\n0,-1\n1,-1\n"; // no drift: nothing to draw on a logarithmic axis
        assert_eq!(names(still), ["energy"]);
        for useless in ["energy\n1\n", "time,what\n1,2\n"] {
            let log = RunLog::parse(useless).unwrap();
            assert!(matches!(
                run_charts(&log, "", None),
                Err(ChartError::Empty(_))
            ));
        }
    }

    #[test]
    fn changes_of_vectors() {
        let log = RunLog::parse("px,py,pz\n0,3,4\n0,3,4\n0,6,8\n").unwrap();
        let change = |relative| vector_change(&log, ["px", "py", "pz"], relative).unwrap();
        assert_eq!(change(false), [0.0, 0.0, 5.0]);
        assert_eq!(change(true), [0.0, 0.0, 1.0]);
        assert_eq!(vector_change(&log, ["px", "py", "no"], true), None);
    }
}
