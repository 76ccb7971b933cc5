//! Horizontal bars: one a name, each in one or several parts.

use super::axis::{Axis, Scale};
use super::{Chart, ChartError, Colour, FAINT, GRID, INK, Side, text_width};

/// One bar.
#[derive(Clone, Debug, PartialEq)]
pub struct Bar {
    /// Label.
    pub name: String,
    /// Lengths and colours, from the left. On a logarithmic axis there is only one.
    pub parts: Vec<(f64, Colour)>,
    /// Text to the right of it.
    pub note: String,
}

/// A chart of bars.
#[derive(Clone, Debug, PartialEq)]
pub struct Bars {
    /// Title.
    pub title: String,
    /// Line below the title.
    pub subtitle: String,
    /// Label of the lengths.
    pub label: String,
    /// Scale of the values.
    pub scale: Scale,
    /// Bars, from top to bottom.
    pub bars: Vec<Bar>,
    /// Colours and what they stand for.
    pub legend: Vec<(String, Colour)>,
}

const ROW: f64 = 24.0;
const THICKNESS: f64 = 15.0;

impl Bars {
    /// Draws the chart.
    ///
    /// # Errors
    /// There is nothing to draw.
    pub fn chart(&self) -> Result<Chart, ChartError> {
        let length = |bar: &Bar| bar.parts.iter().map(|(length, _)| length).sum::<f64>();
        let axis = Axis::over(&self.label, self.scale, self.bars.iter().map(length))
            .ok_or_else(|| ChartError::Empty(self.title.clone()))?;
        let axis = match self.scale {
            // Lengths are compared, so it begins at zero.
            Scale::Linear => {
                let longest = self.bars.iter().map(length).filter(|l| l.is_finite());
                Axis::exactly(&self.label, 0.0, longest.fold(f64::MIN_POSITIVE, f64::max))
            }
            Scale::Log => axis,
        };
        let widest = |text: &dyn Fn(&Bar) -> f64| self.bars.iter().map(text).fold(0.0, f64::max);
        let left = 26.0 + widest(&|bar| text_width(&bar.name, 12.0));
        let notes = widest(&|bar| text_width(&bar.note, 11.5));
        let width = 900.0_f64.max(left + notes + 320.0);
        let right = width - 30.0 - notes;

        let rows = self.bars.len() as f64;
        // Laid out twice: how tall it is, is known once the legend has its rows.
        let top = {
            let mut trial = Chart::new(width, 0.0);
            let below = trial.heading(&self.title, &self.subtitle);
            trial.legend(below, &self.legend) + 8.0
        };
        let bottom = top + ROW * rows;
        let mut chart = Chart::new(width, bottom + 58.0);
        let below = chart.heading(&self.title, &self.subtitle);
        chart.legend(below, &self.legend);

        let at = |value: f64| axis.place(value).map(|place| left + (right - left) * place);
        let (ticks, shift) = axis.ticks(6);
        for tick in ticks {
            if let Some(x) = at(tick.value).filter(|x| (left..=right + 1.0).contains(x)) {
                chart.line(vec![[x, top], [x, bottom]], GRID, 1.0);
                chart.text([x, bottom + 15.0], tick.text, 11.5, Side::Middle, FAINT);
            }
        }
        let label = match shift {
            Some(power) => format!("{}  ({})", self.label, super::axis::power_of_ten(power)),
            None => self.label.clone(),
        };
        let middle = (left + right) / 2.0;
        chart.text([middle, bottom + 38.0], label, 12.5, Side::Middle, INK);

        for (row, bar) in self.bars.iter().enumerate() {
            let y = top + ROW * (row as f64 + 0.5);
            chart.text([left - 10.0, y], &bar.name, 12.0, Side::Right, INK);
            let (mut end, mut sum) = (left, 0.0);
            for (length, colour) in &bar.parts {
                sum += length;
                let Some(x) = at(sum) else { continue };
                let x = x.min(right);
                if x > end {
                    let corners = [[end, y - THICKNESS / 2.0], [x, y + THICKNESS / 2.0]];
                    chart.bar(corners, *colour);
                }
                end = end.max(x);
            }
            chart.text([end + 7.0, y], &bar.note, 11.5, Side::Left, FAINT);
        }
        chart.line(vec![[left, top], [left, bottom]], FAINT, 1.0);
        Ok(chart)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::chart::{SERIES, Shape};

    #[test]
    fn lengths_are_in_proportion_and_start_at_zero() {
        let bar = |name: &str, length: f64| Bar {
            name: name.into(),
            parts: vec![(length / 2.0, SERIES[0]), (length / 2.0, SERIES[1])],
            note: String::new(),
        };
        let bars = Bars {
            title: "t".into(),
            subtitle: String::new(),
            label: "ms".into(),
            scale: Scale::Linear,
            bars: vec![bar("a", 3.0), bar("b", 1.0), bar("failed", f64::NAN)],
            legend: vec![],
        };
        let chart = bars.chart().unwrap();
        let widths: Vec<f64> = chart
            .shapes
            .iter()
            .filter_map(|shape| match shape {
                Shape::Bar { corners, .. } => Some(corners[1][0] - corners[0][0]),
                _ => None,
            })
            .collect();
        assert_eq!(widths.len(), 4);
        assert!((widths[0] / widths[2] - 3.0).abs() < 1e-9 && (widths[0] - widths[1]).abs() < 1e-9);
    }
}
