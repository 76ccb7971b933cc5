//! Lines over a common pair of axes.

use super::axis::{Axis, Scale, power_of_ten};
use super::scatter::OccupiedAreas;
use super::{Chart, ChartError, Colour, FAINT, GRID, INK, SERIES, Side, text_width};

/// Points of a line that have a dot.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Marks {
    /// Lines alone.
    None,
    /// All: there are few, and between them nothing was measured.
    All,
    /// The last: where a body is now.
    End,
}

/// One line.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    /// Label.
    pub name: String,
    /// Points, from left to right.
    pub points: Vec<[f64; 2]>,
    /// Points that have a dot.
    pub marks: Marks,
    /// For what is no measurement: a limit, a goal. It carries its name itself.
    pub dashed: bool,
}

impl Line {
    /// A line through points.
    pub fn new(name: impl Into<String>, points: Vec<[f64; 2]>) -> Self {
        Self {
            name: name.into(),
            points,
            marks: Marks::None,
            dashed: false,
        }
    }
}

/// A chart of lines.
#[derive(Clone, Debug, PartialEq)]
pub struct Lines {
    /// Title.
    pub title: String,
    /// Line below the title.
    pub subtitle: String,
    /// Labels and scales, across and up.
    pub axes: [(String, Scale); 2],
    /// Lines, in the order of the legend.
    pub lines: Vec<Line>,
    /// True if both axes have the same scale, as on a map.
    pub map: bool,
    /// The values across that have a grid line; none for a choice by the axis.
    pub ticks: Vec<f64>,
}

impl Lines {
    /// Draws the chart.
    ///
    /// # Errors
    /// There is nothing to draw.
    pub fn chart(&self) -> Result<Chart, ChartError> {
        let axis = |k: usize| {
            let (label, scale) = &self.axes[k];
            let other = 1 - k;
            let drawn = |point: &&[f64; 2]| {
                point[other].is_finite()
                    && (self.axes[other].1 == Scale::Linear || point[other] > 0.0)
            };
            let values = self
                .lines
                .iter()
                .flat_map(|line| line.points.iter().filter(drawn));
            Axis::over(label, *scale, values.map(|point| point[k]))
                .ok_or_else(|| ChartError::Empty(self.title.clone()))
        };
        let (mut across, mut up) = (axis(0)?, axis(1)?);
        let (width, height) = if self.map {
            (680.0, 720.0)
        } else {
            (900.0, 540.0)
        };
        let mut chart = Chart::new(width, height);
        let top = chart.heading(&self.title, &self.subtitle);
        let single = self.lines.len() == 1;
        let mut colours = SERIES.iter().cycle();
        let colours: Vec<Colour> = self
            .lines
            .iter()
            .map(|line| {
                if line.dashed {
                    FAINT
                } else {
                    *colours.next().expect("endless")
                }
            })
            .collect();
        let entries: Vec<_> = self
            .lines
            .iter()
            .zip(&colours)
            .filter(|(line, _)| !single && !line.dashed && !line.name.is_empty())
            .map(|(line, colour)| (line.name.clone(), *colour))
            .collect();
        let top = chart.legend(top, &entries) + 8.0;
        let bottom = height - 52.0;
        let left = 34.0 + label_width(&up);
        let plot = Plot {
            left,
            right: width - 24.0,
            top,
            bottom,
        };
        if self.map {
            (across, up) = same_scale(&across, &up, &plot);
        }
        if !self.ticks.is_empty() {
            across = across.with_ticks(&self.ticks);
        }
        plot.grid(&mut chart, &across, &up);
        for (line, colour) in self.lines.iter().zip(&colours) {
            plot.line(&mut chart, &across, &up, line, *colour);
        }
        // Names where the lines end, as far as there is room: more lines than colours have them.
        let ends = self
            .lines
            .iter()
            .zip(&colours)
            .filter(|(line, _)| line.marks == Marks::End);
        let ends: Vec<_> = ends
            .filter_map(|(line, colour)| {
                let at = plot.place(&across, &up, *line.points.last()?)?;
                Some((at, line.name.as_str(), *colour))
            })
            .collect();
        let mut taken = OccupiedAreas::within(&plot);
        for ([x, y], ..) in &ends {
            taken.add([x - 5.0, y - 5.0], [x + 5.0, y + 5.0]);
        }
        for (at, name, colour) in ends {
            if let Some((at, side)) = taken.room(at, text_width(name, 11.5)) {
                chart.text(at, name, 11.5, side, colour);
            }
        }
        Ok(chart)
    }
}

/// Position of the axes.
pub(super) struct Plot {
    pub(super) left: f64,
    pub(super) right: f64,
    pub(super) top: f64,
    pub(super) bottom: f64,
}

impl Plot {
    pub(super) fn place(&self, across: &Axis, up: &Axis, [x, y]: [f64; 2]) -> Option<[f64; 2]> {
        Some([
            self.left + (self.right - self.left) * across.place(x)?,
            self.bottom - (self.bottom - self.top) * up.place(y)?,
        ])
    }

    /// Grid lines, numbers and labels.
    pub(super) fn grid(&self, chart: &mut Chart, across: &Axis, up: &Axis) {
        let (ticks, shift) = up.ticks(6);
        for tick in ticks {
            let Some(place) = up.place(tick.value) else {
                continue;
            };
            let y = self.bottom - (self.bottom - self.top) * place;
            chart.line(vec![[self.left, y], [self.right, y]], GRID, 1.0);
            chart.text([self.left - 8.0, y], tick.text, 11.5, Side::Right, FAINT);
        }
        let middle = (self.top + self.bottom) / 2.0;
        chart.upright([14.0, middle], shifted(&up.label, shift), 12.5);

        let (ticks, shift) = across.ticks(8);
        for tick in ticks {
            let Some(place) = across.place(tick.value) else {
                continue;
            };
            let x = self.left + (self.right - self.left) * place;
            chart.line(vec![[x, self.top], [x, self.bottom]], GRID, 1.0);
            chart.text(
                [x, self.bottom + 15.0],
                tick.text,
                11.5,
                Side::Middle,
                FAINT,
            );
        }
        chart.line(
            vec![[self.left, self.bottom], [self.right, self.bottom]],
            FAINT,
            1.0,
        );
        let middle = (self.left + self.right) / 2.0;
        let label = shifted(&across.label, shift);
        chart.text([middle, self.bottom + 38.0], label, 12.5, Side::Middle, INK);
    }

    fn line(&self, chart: &mut Chart, across: &Axis, up: &Axis, line: &Line, colour: Colour) {
        // What has no place, such as a zero on a logarithmic axis, breaks the line.
        let places: Vec<Option<[f64; 2]>> = line
            .points
            .iter()
            .map(|point| self.place(across, up, *point))
            .collect();
        for run in places.split(Option::is_none) {
            let run: Vec<[f64; 2]> = run.iter().flatten().copied().collect();
            let run = thinned(run);
            if line.marks == Marks::All || run.len() == 1 {
                run.iter().for_each(|at| chart.dot(*at, 3.4, colour));
            }
            if run.len() > 1 && line.dashed {
                let end = run[run.len() - 1];
                chart.text([end[0], end[1] - 9.0], &line.name, 11.5, Side::Right, FAINT);
                chart.dashed(run, colour, 1.6);
            } else if run.len() > 1 {
                chart.line(run, colour, 1.8);
            }
        }
        if let (Marks::End, Some(Some(end))) = (line.marks, places.last()) {
            chart.dot(*end, 5.0, colour);
        }
    }
}

fn shifted(label: &str, shift: Option<i32>) -> String {
    match shift {
        Some(power) => format!("{label}  ({})", power_of_ten(power)),
        None => label.to_owned(),
    }
}

/// Width of the widest label of an upright axis.
pub(super) fn label_width(up: &Axis) -> f64 {
    let (ticks, _) = up.ticks(6);
    ticks
        .iter()
        .map(|tick| text_width(&tick.text, 11.5))
        .fold(0.0, f64::max)
}

/// Returns the line without points that cannot be told apart: a million of them would be an SVG of
/// many megabytes. Of those within a third of a unit across, the first, lowest, highest and last.
fn thinned(run: Vec<[f64; 2]>) -> Vec<[f64; 2]> {
    let mut kept: Vec<[f64; 2]> = vec![];
    let mut rest = &run[..];
    while let Some(first) = rest.first() {
        let same = |p: &&[f64; 2]| (p[0] - first[0]).abs() < 0.33 && (p[1] - first[1]).abs() < 40.0;
        let count = rest.iter().take_while(same).count();
        let (group, others) = rest.split_at(count);
        if count <= 4 {
            kept.extend(group);
        } else {
            let by_height = |i: &usize, j: &usize| group[*i][1].total_cmp(&group[*j][1]);
            let mut chosen = [
                0,
                (0..count).min_by(by_height).unwrap_or(0),
                (0..count).max_by(by_height).unwrap_or(0),
                count - 1,
            ];
            chosen.sort_unstable();
            kept.extend(chosen.map(|i| group[i]));
        }
        rest = others;
    }
    kept
}

/// Both axes at as many units of length a value as the narrower allows, around the same middles.
fn same_scale(across: &Axis, up: &Axis, plot: &Plot) -> (Axis, Axis) {
    let half = |axis: &Axis| (axis.range()[1] - axis.range()[0]) / 2.0;
    let middle = |axis: &Axis| (axis.range()[1] + axis.range()[0]) / 2.0;
    let (width, height) = (plot.right - plot.left, plot.bottom - plot.top);
    let value_a_unit = (2.0 * half(across) / width).max(2.0 * half(up) / height);
    let widened = |axis: &Axis, length: f64| {
        let half = value_a_unit * length / 2.0;
        Axis::exactly(&axis.label, middle(axis) - half, middle(axis) + half)
    };
    (widened(across, width), widened(up, height))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::chart::Shape;

    fn lines(points: Vec<[f64; 2]>, scale: Scale) -> Lines {
        Lines {
            title: "t".into(),
            subtitle: String::new(),
            axes: [("x".into(), Scale::Linear), ("y".into(), scale)],
            lines: vec![Line::new("a", points)],
            map: false,
            ticks: vec![],
        }
    }

    /// The strokes of the line itself.
    fn strokes(chart: &Chart) -> Vec<usize> {
        let of_line = |shape: &Shape| match shape {
            Shape::Line { points, colour, .. } if *colour == SERIES[0] => Some(points.len()),
            _ => None,
        };
        chart.shapes.iter().filter_map(of_line).collect()
    }

    #[test]
    fn what_has_no_place_breaks_the_line() {
        let points = vec![
            [0.0, 1.0],
            [1.0, 2.0],
            [2.0, 0.0],
            [3.0, 1.0],
            [4.0, 2.0],
            [5.0, 3.0],
        ];
        let linear = lines(points.clone(), Scale::Linear).chart().unwrap();
        assert_eq!(strokes(&linear), [6]);
        let log = lines(points, Scale::Log).chart().unwrap();
        assert_eq!(strokes(&log), [2, 3]);
        let nothing = lines(vec![[0.0, 0.0], [1.0, f64::NAN]], Scale::Log).chart();
        assert!(matches!(nothing, Err(ChartError::Empty(_))));
    }

    #[test]
    fn many_points_keep_their_peaks() {
        let run: Vec<[f64; 2]> = (0..100_000)
            .map(|i| [i as f64 / 100.0, if i == 54_321 { 30.0 } else { 1.0 }])
            .collect();
        let thin = thinned(run);
        assert!(thin.len() < 20_000, "{}", thin.len());
        assert!(thin.iter().any(|p| p[1] == 30.0));
    }

    #[test]
    fn a_map_is_not_distorted() {
        let circle = |i: usize| {
            let angle = i as f64 / 10.0;
            [10.0 + angle.cos(), 0.1 * angle.sin()]
        };
        let mut map = lines((0..64).map(circle).collect(), Scale::Linear);
        map.map = true;
        let chart = map.chart().unwrap();
        let Some(Shape::Line { points, .. }) = chart
            .shapes
            .iter()
            .find(|s| matches!(s, Shape::Line { colour, .. } if *colour == SERIES[0]))
        else {
            panic!()
        };
        let extent = |k: usize| {
            let column = || points.iter().map(|p| p[k]);
            column().fold(f64::MIN, f64::max) - column().fold(f64::MAX, f64::min)
        };
        assert!((extent(0) / extent(1) - 10.0).abs() < 0.2);
    }
}
