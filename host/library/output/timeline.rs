//! When copies and kernels were under way, stream by stream.

use super::chart::axis::Axis;
use super::chart::{Chart, ChartError, Colour, FAINT, GRID, INK, SERIES, Side, text_width};
use crate::timeline::{Span, What};

const ROW: f64 = 16.0;
const THICKNESS: f64 = 11.0;

/// A row for each stream, with a bar for each copy and kernel.
///
/// # Errors
/// There are no spans.
pub fn timeline_chart(title: &str, subtitle: &str, spans: &[Span]) -> Result<Chart, ChartError> {
    let end = spans.iter().map(|span| span.end).fold(0.0, f64::max);
    if end <= 0.0 || !end.is_finite() {
        return Err(ChartError::Empty(title.to_owned()));
    }
    let mut rows: Vec<(usize, u32)> = spans.iter().map(|span| (span.gpu, span.stream)).collect();
    rows.sort_unstable();
    rows.dedup();
    let several = rows.iter().any(|(gpu, _)| *gpu > 0);
    let name = |(gpu, stream): (usize, u32)| {
        if several {
            format!("GPU {gpu}, stream {stream}")
        } else {
            format!("stream {stream}")
        }
    };
    let [copy_in, kernel, copy_out] = [SERIES[0], SERIES[1], SERIES[2]];
    let legend = [
        ("copy in".to_owned(), copy_in),
        ("kernels".to_owned(), kernel),
        ("copy out".to_owned(), copy_out),
    ];
    let colour = |what: What| -> Colour {
        match what {
            What::CopyIn => copy_in,
            What::Kernel(_) => kernel,
            What::CopyOut => copy_out,
        }
    };

    let width = 900.0;
    let names = rows.iter().map(|&row| text_width(&name(row), 11.5));
    let left = 26.0 + names.fold(0.0, f64::max);
    let right = width - 30.0;
    // Laid out twice: how tall it is, is known once the legend has its rows.
    let top = {
        let mut trial = Chart::new(width, 0.0);
        let below = trial.heading(title, subtitle);
        trial.legend(below, &legend) + 8.0
    };
    let bottom = top + ROW * rows.len() as f64;
    let mut chart = Chart::new(width, bottom + 58.0);
    let below = chart.heading(title, subtitle);
    chart.legend(below, &legend);
    let axis = Axis::exactly("milliseconds", 0.0, 1e3 * end);
    let at = |seconds: f64| {
        let place = axis.place(1e3 * seconds).unwrap_or(0.0);
        left + (right - left) * place.clamp(0.0, 1.0)
    };
    let (ticks, shift) = axis.ticks(8);
    for tick in ticks {
        let x = at(1e-3 * tick.value);
        chart.line(vec![[x, top], [x, bottom]], GRID, 1.0);
        chart.text([x, bottom + 15.0], tick.text, 11.5, Side::Middle, FAINT);
    }
    let label = match shift {
        Some(power) => format!(
            "{}  ({})",
            axis.label,
            super::chart::axis::power_of_ten(power)
        ),
        None => axis.label.clone(),
    };
    let middle = (left + right) / 2.0;
    chart.text([middle, bottom + 38.0], label, 12.5, Side::Middle, INK);
    for (k, &row) in rows.iter().enumerate() {
        let y = top + ROW * (k as f64 + 0.5);
        chart.text([left - 10.0, y], name(row), 11.5, Side::Right, INK);
        for span in spans.iter().filter(|s| (s.gpu, s.stream) == row) {
            // The gap between neighbours of one kind would not be seen: half a unit shows it.
            let [from, to] = [
                at(span.start),
                (at(span.end) - 0.5).max(at(span.start) + 0.5),
            ];
            let corners = [[from, y - THICKNESS / 2.0], [to, y + THICKNESS / 2.0]];
            chart.bar(corners, colour(span.what));
        }
    }
    chart.line(vec![[left, top], [left, bottom]], FAINT, 1.0);
    Ok(chart)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::chart::Shape;

    #[test]
    fn a_bar_a_span_in_its_streams_row() {
        let span = |stream, what, start, end| Span {
            gpu: 0,
            stream,
            systems: 0..1,
            what,
            start,
            end,
        };
        let spans = [
            span(0, What::CopyIn, 0.0, 1e-3),
            span(0, What::Kernel("k"), 1e-3, 4e-3),
            span(2, What::CopyOut, 2e-3, 3e-3),
        ];
        let chart = timeline_chart("t", "", &spans).expect("a chart");
        let bars: Vec<_> = chart
            .shapes
            .iter()
            .filter_map(|shape| match shape {
                Shape::Bar { corners, .. } => Some(*corners),
                _ => None,
            })
            .collect();
        assert_eq!(bars.len(), 3);
        assert_eq!(bars[0][0][1], bars[1][0][1]);
        assert!(bars[2][0][1] > bars[0][1][1], "another row");
        let widths = [0, 1, 2].map(|k: usize| bars[k][1][0] - bars[k][0][0] + 0.5);
        assert!((widths[1] / widths[0] - 3.0).abs() < 1e-9, "{widths:?}");
        assert!(timeline_chart("t", "", &[]).is_err());
    }
}
