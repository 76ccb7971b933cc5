//! Points with names, those that no other beats joined by a line.

use super::axis::{Axis, Scale};
use super::lines::{Plot, label_width};
use super::{Chart, ChartError, Colour, FAINT, INK, Side, text_width};

/// A point.
#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    /// Label.
    pub name: String,
    /// Place.
    pub at: [f64; 2],
    /// Colour.
    pub colour: Colour,
}

/// A chart of points on logarithmic axes, where left and up is better.
#[derive(Clone, Debug, PartialEq)]
pub struct Scatter {
    /// Title.
    pub title: String,
    /// Line below the title.
    pub subtitle: String,
    /// Labels of both axes.
    pub axes: [String; 2],
    /// Points.
    pub points: Vec<Point>,
    /// Colours and what they stand for.
    pub legend: Vec<(String, Colour)>,
}

const LABEL: f64 = 11.0;

impl Scatter {
    /// The points that none beats in both values, from left to right.
    fn front(&self) -> Vec<&Point> {
        let beats = |a: &Point, b: &Point| a.at[0] <= b.at[0] && a.at[1] >= b.at[1] && a.at != b.at;
        let mut front: Vec<&Point> = self
            .points
            .iter()
            .filter(|p| p.at.iter().all(|v| v.is_finite() && *v > 0.0))
            .filter(|p| !self.points.iter().any(|other| beats(other, p)))
            .collect();
        front.sort_by(|a, b| a.at[0].total_cmp(&b.at[0]));
        front
    }

    /// Draws the chart.
    ///
    /// # Errors
    /// There is nothing to draw.
    pub fn chart(&self) -> Result<Chart, ChartError> {
        let axis = |k: usize| {
            Axis::over(
                &self.axes[k],
                Scale::Log,
                self.points.iter().map(|p| p.at[k]),
            )
            .ok_or_else(|| ChartError::Empty(self.title.clone()))
        };
        let (across, up) = (axis(0)?, axis(1)?);
        let (width, height) = (980.0, 620.0);
        let mut chart = Chart::new(width, height);
        let top = chart.heading(&self.title, &self.subtitle);
        let top = chart.legend(top, &self.legend) + 8.0;
        let plot = Plot {
            left: 30.0 + label_width(&up),
            right: width - 24.0,
            top,
            bottom: height - 52.0,
        };
        plot.grid(&mut chart, &across, &up);

        let front = self.front();
        let place = |point: &Point| plot.place(&across, &up, point.at);
        let corners: Vec<[f64; 2]> = front.iter().filter_map(|p| place(p)).collect();
        // Between two of them no kernel is: a step, not a slope.
        let mut steps = vec![];
        for pair in corners.windows(2) {
            steps.extend([pair[0], [pair[1][0], pair[0][1]], pair[1]]);
        }
        let mut taken = OccupiedAreas::within(&plot);
        for pair in steps.windows(2) {
            let [low, high] =
                [f64::min, f64::max].map(|of| [0, 1].map(|k| of(pair[0][k], pair[1][k])));
            taken.add([low[0], low[1] - 1.0], [high[0], high[1] + 1.0]);
        }
        if !steps.is_empty() {
            chart.dashed(steps, FAINT, 1.2);
        }
        let dots: Vec<(&Point, [f64; 2])> = self
            .points
            .iter()
            .filter_map(|p| Some((p, place(p)?)))
            .collect();
        for (point, at) in &dots {
            taken.add([at[0] - 5.0, at[1] - 5.0], [at[0] + 5.0, at[1] + 5.0]);
            chart.dot(*at, 5.0, point.colour);
        }
        // The best are named first: where there is no room for all names, others do without.
        let is_front = |point: &Point| front.iter().any(|f| std::ptr::eq(*f, point));
        let (best, others): (Vec<_>, Vec<_>) = dots.iter().partition(|(point, _)| is_front(point));
        for &&(point, at) in best.iter().chain(&others) {
            let colour = if is_front(point) { INK } else { FAINT };
            if let Some((text_at, side)) = taken.room(at, text_width(&point.name, LABEL)) {
                chart.text(text_at, &point.name, LABEL, side, colour);
            }
        }
        Ok(chart)
    }
}

/// Areas that are occupied already.
pub(super) struct OccupiedAreas {
    bounds: [[f64; 2]; 2],
    boxes: Vec<[[f64; 2]; 2]>,
}

impl OccupiedAreas {
    pub(super) fn within(plot: &Plot) -> Self {
        Self {
            bounds: [[plot.left, plot.top], [plot.right, plot.bottom]],
            boxes: vec![],
        }
    }

    pub(super) fn add(&mut self, low: [f64; 2], high: [f64; 2]) {
        self.boxes.push([low, high]);
    }

    /// Room for a text of this width by a point, the nearest first, which is then taken.
    pub(super) fn room(&mut self, at: [f64; 2], width: f64) -> Option<([f64; 2], Side)> {
        let offsets = [0.0, -8.0, 8.0, -14.0, 14.0];
        let sides = [(Side::Right, -9.0), (Side::Left, 9.0)];
        let candidates = offsets.into_iter().flat_map(|dy| {
            sides
                .into_iter()
                .map(move |(side, dx)| (side, [at[0] + dx, at[1] + dy]))
        });
        for (side, text) in candidates {
            let low = match side {
                Side::Right => text[0] - width,
                _ => text[0],
            };
            let found = [[low, text[1] - 6.5], [low + width, text[1] + 6.5]];
            let inside = [0, 1]
                .into_iter()
                .all(|k| found[0][k] >= self.bounds[0][k] && found[1][k] <= self.bounds[1][k]);
            let meets = |other: &[[f64; 2]; 2]| {
                (0..2).all(|k| found[0][k] < other[1][k] && other[0][k] < found[1][k])
            };
            if inside && !self.boxes.iter().any(meets) {
                self.boxes.push(found);
                return Some((text, side));
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::chart::{SERIES, Shape};

    fn scatter(points: &[[f64; 2]]) -> Scatter {
        let point = |(i, at): (usize, &[f64; 2])| Point {
            name: format!("kernel-{i}"),
            at: *at,
            colour: SERIES[0],
        };
        Scatter {
            title: "t".into(),
            subtitle: String::new(),
            axes: ["error".into(), "rate".into()],
            points: points.iter().enumerate().map(point).collect(),
            legend: vec![],
        }
    }

    #[test]
    fn the_front_is_what_none_beats() {
        let chart = scatter(&[
            [1e-7, 5.0],
            [1e-7, 4.0],
            [1e-15, 1.0],
            [1e-6, 4.5],
            [f64::NAN, 9.0],
        ]);
        let names: Vec<_> = chart.front().iter().map(|p| p.name.as_str()).collect();
        assert_eq!(names, ["kernel-2", "kernel-0"]);
    }

    #[test]
    fn names_do_not_cover_each_other() {
        let crowd: Vec<[f64; 2]> = (0..60)
            .map(|i| {
                [
                    1e-7 * (1.0 + 0.01 * f64::from(i)),
                    1e12 * (1.0 + f64::from(i % 7)),
                ]
            })
            .collect();
        let chart = scatter(&crowd).chart().unwrap();
        let boxes: Vec<[[f64; 2]; 2]> = chart
            .shapes
            .iter()
            .filter_map(|shape| match shape {
                Shape::Text { at, text, side, .. } if text.starts_with("kernel") => {
                    let width = text_width(text, LABEL);
                    let low = if *side == Side::Right {
                        at[0] - width
                    } else {
                        at[0]
                    };
                    Some([[low, at[1] - 6.0], [low + width, at[1] + 6.0]])
                }
                _ => None,
            })
            .collect();
        assert!(boxes.len() > 5);
        for (i, a) in boxes.iter().enumerate() {
            for b in &boxes[i + 1..] {
                assert!((0..2).any(|k| a[0][k] >= b[1][k] || b[0][k] >= a[1][k]));
            }
        }
    }
}
