//! Charts of a benchmark, as reports of GPU optimisation draw them.

use std::collections::BTreeMap;

use crate::bench_record::{BenchRecord, BenchRow};
use allpairs::output::ColourMap;
use allpairs::output::NamedChart;
use allpairs::output::chart::axis::{Scale, short};
use allpairs::output::chart::bars::{Bar, Bars};
use allpairs::output::chart::lines::{Line, Lines, Marks};
use allpairs::output::chart::scatter::{Point, Scatter};
use allpairs::output::chart::{Chart, ChartError, Colour, SERIES};

/// Lines that a chart can hold and people still tell apart.
const MOST_LINES: usize = 8;

/// All charts that a record allows: `time` and `speedup` (of every study in it, too), `rate`,
/// `pareto`, `position-digits`, `force-digits`, and `sweep-…` of each choice that was varied by number.
///
/// Where a chart shows one number of bodies, it is the largest that most kernels were timed at.
///
/// # Errors
/// The record has no rows, or the drawing fails.
pub fn bench_charts(record: &BenchRecord) -> Result<Vec<NamedChart>, ChartError> {
    let bodies = common_bodies(record)
        .ok_or_else(|| ChartError::Empty(format!("benchmark on {}", record.device)))?;
    let rows: Vec<&BenchRow> = record
        .rows
        .iter()
        .filter(|row| row.asked() == bodies)
        .collect();
    let about = format!("{} · N = {bodies}", record.device);

    let mut charts = vec![];
    let mut add = |name: String, chart: Result<Chart, ChartError>| match chart {
        Ok(chart) => {
            charts.push((name, chart));
            Ok(())
        }
        Err(ChartError::Empty(_)) => Ok(()), // the record does not say
        Err(error) => Err(error),
    };
    add("time".into(), time(&rows, "Time of one evaluation", &about))?;
    add("speedup".into(), speedup(record, &rows, "Speedup", &about))?;
    let mut studies: Vec<&str> = rows.iter().filter_map(|row| row.study.as_deref()).collect();
    studies.sort_unstable();
    studies.dedup();
    for study in studies {
        let rungs: Vec<&BenchRow> = rows
            .iter()
            .copied()
            .filter(|row| row.study.as_deref() == Some(study))
            .collect();
        let title = |what: &str| format!("Study {study}: {what}");
        add(
            format!("time-{study}"),
            time(&rungs, &title("time of each rung"), &about),
        )?;
        add(
            format!("speedup-{study}"),
            speedup(record, &rungs, &title("speedup"), &about),
        )?;
    }
    add("rate".into(), rate(record))?;
    add("pareto".into(), pareto(&rows, &about))?;
    add("position-digits".into(), position_digits(&rows, &about))?;
    add("force-digits".into(), force_digits(&rows, &about))?;
    for (axis, lines) in sweeps(&rows) {
        let chart = Lines {
            title: format!("Sweep: {axis}"),
            subtitle: about.clone(),
            axes: [
                (axis.clone(), Scale::Log),
                ("interactions/s".into(), Scale::Linear),
            ],
            ticks: values_across(&lines),
            lines,
            map: false,
        };
        add(format!("sweep-{}", file_name(&axis)), chart.chart())?;
    }
    Ok(charts)
}

/// The number of bodies that most kernels were to be timed at; of several such, the largest.
fn common_bodies(record: &BenchRecord) -> Option<u64> {
    let mut counts: BTreeMap<u64, usize> = BTreeMap::new();
    for row in &record.rows {
        *counts.entry(row.asked()).or_default() += 1;
    }
    counts
        .into_iter()
        .max_by_key(|(bodies, count)| (*count, *bodies))
        .map(|(bodies, _)| bodies)
}

fn precision(row: &BenchRow) -> &str {
    row.choices.get("precision").map_or("", String::as_str)
}

/// A colour for each precision, and the legend where there are several.
fn precisions(rows: &[&BenchRow]) -> (impl Fn(&BenchRow) -> Colour, Vec<(String, Colour)>) {
    let mut names: Vec<String> = rows.iter().map(|row| precision(row).to_owned()).collect();
    names.sort_unstable();
    names.dedup();
    let named: Vec<(String, Colour)> = names.into_iter().zip(SERIES.into_iter().cycle()).collect();
    let legend = match named.len() {
        0 | 1 => vec![],
        _ => named
            .iter()
            .filter(|(name, _)| !name.is_empty())
            .cloned()
            .collect(),
    };
    let colour = move |row: &BenchRow| {
        let found = named.iter().find(|(name, _)| name == precision(row));
        found.map_or(SERIES[0], |(_, colour)| *colour)
    };
    (colour, legend)
}

/// Linear, unless the smallest of these would not be seen.
fn scale_for(values: impl Iterator<Item = f64>) -> Scale {
    let [low, high] = values
        .filter(|v| v.is_finite() && *v > 0.0)
        .fold([f64::INFINITY, 0.0_f64], |[low, high], v| {
            [low.min(v), high.max(v)]
        });
    if high / low > 60.0 {
        Scale::Log
    } else {
        Scale::Linear
    }
}

/// Seconds for the bodies that were asked for, and how they are known where fewer were timed.
fn seconds(row: &BenchRow) -> (f64, String) {
    match row.asked {
        None => (row.seconds, String::new()),
        Some(asked) => {
            let seconds = (asked as f64).powi(2) / row.rate;
            (seconds, format!(", from N = {}", row.bodies))
        }
    }
}

fn time(rows: &[&BenchRow], title: &str, about: &str) -> Result<Chart, ChartError> {
    let (colour, legend) = precisions(rows);
    let bar = |row: &&BenchRow| {
        let (seconds, known) = seconds(row);
        let of_limit = row
            .limit
            .map(|limit| format!(" · {:.0} % of limit", 100.0 * row.rate / limit));
        Bar {
            name: row.kernel.clone(),
            parts: vec![(1e3 * seconds, colour(row))],
            note: format!(
                "{} ms{}{known}",
                short(1e3 * seconds),
                of_limit.unwrap_or_default()
            ),
        }
    };
    Bars {
        title: title.into(),
        subtitle: format!("{about} · shorter is better"),
        label: "ms".into(),
        scale: scale_for(rows.iter().map(|row| seconds(row).0)),
        bars: rows.iter().map(bar).collect(),
        legend,
    }
    .chart()
}

/// The ladder: each rung's speedup over the first, and in words over its predecessor.
fn speedup(
    record: &BenchRecord,
    rows: &[&BenchRow],
    title: &str,
    about: &str,
) -> Result<Chart, ChartError> {
    let (colour, legend) = precisions(rows);
    let Some(first) = rows.first() else {
        return Err(ChartError::Empty(title.to_owned()));
    };
    let over_first = |row: &BenchRow| row.rate / first.rate;
    let bar = |row: &&BenchRow| {
        let before = row.predecessor.as_deref();
        let before = before.and_then(|kernel| record.row(kernel, row.asked()));
        let gain = before.map(|before| {
            let gain = row.rate / before.rate;
            format!("  ({}× {})", short(gain), before.kernel)
        });
        Bar {
            name: row.kernel.clone(),
            parts: vec![(over_first(row), colour(row))],
            note: format!("{}×{}", short(over_first(row)), gain.unwrap_or_default()),
        }
    };
    Bars {
        title: title.into(),
        subtitle: format!(
            "{about} · over {}; in brackets over the predecessor",
            first.kernel
        ),
        label: format!("times as fast as {}", first.kernel),
        scale: scale_for(rows.iter().map(|row| over_first(row))),
        bars: rows.iter().map(bar).collect(),
        legend,
    }
    .chart()
}

/// Rate against N of kernels that were timed at several, with the device's limits as lines.
fn rate(record: &BenchRecord) -> Result<Chart, ChartError> {
    let mut kernels: BTreeMap<&str, Vec<&BenchRow>> = BTreeMap::new();
    for row in &record.rows {
        kernels.entry(&row.kernel).or_default().push(row);
    }
    let mut kernels: Vec<(&str, Vec<&BenchRow>)> = kernels
        .into_iter()
        .filter(|(_, rows)| rows.len() > 1)
        .collect();
    for (_, rows) in &mut kernels {
        rows.sort_by_key(|row| row.bodies);
    }
    let best = |rows: &[&BenchRow]| rows.iter().map(|row| row.rate).fold(0.0, f64::max);
    kernels.sort_by(|(_, a), (_, b)| best(b).total_cmp(&best(a)));
    let all = kernels.len();
    // The fastest, the slowest, and an even choice between them.
    let shown = all.min(MOST_LINES);
    let chosen = (0..shown).map(|i| &kernels[i * (all - 1) / (shown - 1).max(1)]);
    let chosen: Vec<&(&str, Vec<&BenchRow>)> = chosen.collect();

    let mut lines: Vec<Line> = vec![];
    let mut limits: Vec<(f64, &str)> = vec![];
    for (kernel, rows) in &chosen {
        let points = rows
            .iter()
            .map(|row| [row.bodies as f64, row.rate])
            .collect();
        lines.push(Line {
            marks: Marks::All,
            ..Line::new(*kernel, points)
        });
        let new = rows
            .iter()
            .filter_map(|row| Some((row.limit?, precision(row))));
        limits.extend(new);
    }
    limits.sort_by(|a, b| b.0.total_cmp(&a.0));
    limits.dedup_by_key(|(limit, _)| *limit);
    let sizes = || {
        chosen
            .iter()
            .flat_map(|(_, rows)| rows.iter().map(|row| row.bodies as f64))
    };
    let (from, to) = (
        sizes().fold(f64::INFINITY, f64::min),
        sizes().fold(0.0, f64::max),
    );
    for (limit, precision) in limits {
        lines.push(Line {
            dashed: true,
            ..Line::new(
                format!("limit {precision}"),
                vec![[from, limit], [to, limit]],
            )
        });
    }
    let of_all = if shown < all {
        format!(" · {shown} of {all} kernels")
    } else {
        String::new()
    };
    let ticks = values_across(&lines);
    Lines {
        title: "Rate against number of bodies".into(),
        subtitle: format!("{}{of_all}", record.device),
        axes: [
            ("bodies".into(), Scale::Log),
            ("interactions/s".into(), Scale::Log),
        ],
        lines,
        map: false,
        ticks,
    }
    .chart()
}

/// The values that were measured at, if they are few enough to write them all.
fn values_across(lines: &[Line]) -> Vec<f64> {
    let points = lines
        .iter()
        .filter(|line| !line.dashed)
        .flat_map(|line| &line.points);
    let mut values: Vec<f64> = points.map(|point| point[0]).collect();
    values.sort_by(f64::total_cmp);
    values.dedup();
    if values.len() > 9 { vec![] } else { values }
}

fn pareto(rows: &[&BenchRow], about: &str) -> Result<Chart, ChartError> {
    let (colour, legend) = precisions(rows);
    let point = |row: &&BenchRow| Point {
        name: row.kernel.clone(),
        at: [row.error, row.rate],
        colour: colour(row),
    };
    Scatter {
        title: "Speed against error".into(),
        subtitle: format!("{about} · dashed: kernels that no other beats in both"),
        axes: [
            "rms relative error of the forces".into(),
            "interactions/s".into(),
        ],
        points: rows.iter().map(point).collect(),
        legend,
    }
    .chart()
}

/// Chart of the first wrong decimal of the positions, as shares of all coordinates.
fn position_digits(rows: &[&BenchRow], about: &str) -> Result<Chart, ChartError> {
    let counts = |row: &BenchRow| {
        let digits = row.digits.as_ref()?;
        let mut counts = vec![digits.whole + digits.not_finite];
        counts.extend(&digits.decimals);
        counts.push(digits.beyond);
        Some(counts)
    };
    let class = |class: usize, last: usize| match class {
        0 => "before the point".to_owned(),
        _ if class == last => "later, or nowhere".to_owned(),
        _ => format!("decimal {class}"),
    };
    shares(
        rows,
        "Where positions go wrong first",
        &format!("{about} · coordinates after two steps, against the f64 reference"),
        "% of the coordinates",
        counts,
        class,
    )
}

/// Chart of the right digits of the forces, as shares of the bodies.
fn force_digits(rows: &[&BenchRow], about: &str) -> Result<Chart, ChartError> {
    shares(
        rows,
        "Right digits of the force",
        &format!("{about} · against the f64 reference"),
        "% of the bodies",
        |row| (!row.force_digits.is_empty()).then(|| row.force_digits.clone()),
        |class, last| {
            if class == last {
                format!("{class} or all")
            } else {
                class.to_string()
            }
        },
    )
}

/// Bars of classes from bad to good: the more yellow, the better.
fn shares(
    rows: &[&BenchRow],
    title: &str,
    subtitle: &str,
    label: &str,
    counts: impl Fn(&BenchRow) -> Option<Vec<u64>>,
    class: impl Fn(usize, usize) -> String,
) -> Result<Chart, ChartError> {
    let counted: Vec<(&str, Vec<u64>)> = rows
        .iter()
        .filter_map(|row| Some((row.kernel.as_str(), counts(row)?)))
        .collect();
    let classes = counted
        .iter()
        .map(|(_, counts)| counts.len())
        .max()
        .unwrap_or(0);
    if classes < 2 {
        return Err(ChartError::Empty(title.to_owned()));
    }
    let occurs = |class: usize| {
        counted
            .iter()
            .any(|(_, counts)| counts.get(class).is_some_and(|n| *n > 0))
    };
    let there: Vec<usize> = (0..classes).filter(|class| occurs(*class)).collect();
    // Classes that occur share all the colours, to be told apart.
    let shade = |class: usize| {
        let rank = there.iter().position(|k| *k == class).unwrap_or(0);
        ColourMap::Plasma.colour(0.05 + 0.87 * (rank + 1) as f64 / there.len() as f64)
    };
    let bar = |(kernel, counts): &(&str, Vec<u64>)| {
        let total: u64 = counts.iter().sum();
        let share = |n: u64| 100.0 * n as f64 / total.max(1) as f64;
        // The class that the middle one of all values belongs to.
        let mut sum = 0;
        let median = counts.iter().position(|n| {
            sum += n;
            2 * sum >= total.max(1)
        });
        Bar {
            name: (*kernel).to_owned(),
            parts: counts
                .iter()
                .enumerate()
                .map(|(class, n)| (share(*n), shade(class)))
                .collect(),
            note: median.map_or_else(String::new, |m| {
                format!("median: {}", class(m, classes - 1))
            }),
        }
    };
    Bars {
        title: title.into(),
        subtitle: subtitle.into(),
        label: label.into(),
        scale: Scale::Linear,
        bars: counted.iter().map(bar).collect(),
        legend: there
            .iter()
            .map(|k| (class(*k, classes - 1), shade(*k)))
            .collect(),
    }
    .chart()
}

/// For each choice that is a number: lines of kernels that differ in it alone.
fn sweeps(rows: &[&BenchRow]) -> BTreeMap<String, Vec<Line>> {
    type Others<'a> = Vec<(&'a str, &'a str)>;
    let mut families: BTreeMap<(&str, Others<'_>), Vec<(f64, &BenchRow)>> = BTreeMap::new();
    for row in rows {
        for (axis, value) in &row.choices {
            let Ok(value) = value.parse::<f64>() else {
                continue;
            };
            let others = row.choices.iter().filter(|(other, _)| *other != axis);
            let others = others
                .map(|(axis, value)| (axis.as_str(), value.as_str()))
                .collect();
            families
                .entry((axis, others))
                .or_default()
                .push((value, row));
        }
    }
    let mut sweeps: BTreeMap<String, Vec<Line>> = BTreeMap::new();
    for ((axis, _), mut members) in families {
        members.sort_by(|a, b| a.0.total_cmp(&b.0));
        members.dedup_by(|a, b| a.0 == b.0);
        if members.len() < 2 {
            continue;
        }
        sweeps.entry(axis.to_owned()).or_default().push(Line {
            marks: Marks::All,
            ..Line::new(
                members[0].1.kernel.clone(),
                members
                    .iter()
                    .map(|(value, row)| [*value, row.rate])
                    .collect(),
            )
        });
    }
    let best = |line: &Line| line.points.iter().map(|p| p[1]).fold(0.0, f64::max);
    for lines in sweeps.values_mut() {
        lines.sort_by(|a, b| {
            b.points
                .len()
                .cmp(&a.points.len())
                .then(best(b).total_cmp(&best(a)))
        });
        lines.truncate(MOST_LINES);
    }
    sweeps
}

fn file_name(axis: &str) -> String {
    let safe = |c: char| {
        if c.is_ascii_alphanumeric() {
            c.to_ascii_lowercase()
        } else {
            '-'
        }
    };
    axis.chars().map(safe).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench_record::Digits;
    use crate::bench_record::samples::{self, record};

    fn row(kernel: &str, unroll: &str, bodies: u64, seconds: f64) -> BenchRow {
        BenchRow {
            study: Some("s".into()),
            choices: [
                ("unroll".to_owned(), unroll.to_owned()),
                ("layout".to_owned(), kernel[..1].to_owned()),
            ]
            .into(),
            ..samples::row(kernel, bodies, seconds)
        }
    }

    fn names(record: &BenchRecord) -> Vec<String> {
        bench_charts(record)
            .unwrap()
            .into_iter()
            .map(|(name, _)| name)
            .collect()
    }

    #[test]
    fn a_record_gives_the_charts_that_it_can() {
        let mut rows = vec![
            row("a1", "1", 64, 0.1),
            row("a8", "8", 64, 0.05),
            row("b1", "1", 64, 0.2),
        ];
        let few = [
            "time",
            "speedup",
            "time-s",
            "speedup-s",
            "pareto",
            "sweep-unroll",
        ];
        assert_eq!(names(&record(rows.clone())), few);
        rows.push(row("a1", "1", 128, 0.3));
        rows[0].digits = Some(Digits {
            whole: 0,
            decimals: vec![1; 6],
            beyond: 3,
            not_finite: 0,
        });
        let all = names(&record(rows));
        for name in ["rate", "position-digits"] {
            assert!(all.iter().any(|found| found == name), "{all:?}");
        }
        assert!(matches!(
            bench_charts(&record(vec![])),
            Err(ChartError::Empty(_))
        ));
    }

    /// A kernel that was too slow stands beside the others with the time that it would take.
    #[test]
    fn what_was_timed_with_fewer_bodies_is_scaled() {
        let slow = BenchRow {
            asked: Some(640),
            ..row("a", "1", 64, 0.1)
        };
        assert_eq!(common_bodies(&record(vec![slow.clone()])), Some(640));
        let (there, known) = seconds(&slow);
        assert!((there / 10.0 - 1.0).abs() < 1e-12);
        assert_eq!(known, ", from N = 64");
    }

    #[test]
    fn a_sweep_joins_what_differs_in_one_choice() {
        let rows = [
            row("a1", "1", 64, 0.1),
            row("a8", "8", 64, 0.05),
            row("b4", "4", 64, 0.2),
        ];
        let found = sweeps(&rows.iter().collect::<Vec<_>>());
        assert_eq!(found.len(), 1);
        let lines = &found["unroll"];
        assert_eq!(lines.len(), 1);
        assert_eq!(lines[0].points, [[1.0, 40_960.0], [8.0, 81_920.0]]);
    }

    #[test]
    fn the_common_number_of_bodies() {
        let rows = vec![
            row("a", "1", 64, 1.0),
            row("b", "1", 64, 1.0),
            row("a", "1", 128, 1.0),
        ];
        assert_eq!(common_bodies(&record(rows)), Some(64));
        let rows = vec![row("a", "1", 64, 1.0), row("a", "1", 128, 1.0)];
        assert_eq!(common_bodies(&record(rows)), Some(128));
    }
}
