//! When the copies and kernels of many systems ran, by the GPUs' own clocks.

use std::io::{self, Write};
use std::ops::Range;

/// A piece of work, and when its stream was at it.
#[derive(Clone, Debug, PartialEq)]
pub struct Span {
    /// Number of the GPU among those in use, from 0.
    pub gpu: usize,
    /// The stream, from 0 on each GPU.
    pub stream: u32,
    /// The systems it was about.
    pub systems: Range<u32>,
    /// Kind of work.
    pub what: What,
    /// When the stream had done what came before, seconds since its GPU was given its first work.
    pub start: f64,
    /// When it was done, likewise.
    pub end: f64,
}

/// Kind of a piece of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// A copy to the GPU.
    CopyIn,
    /// The kernel of this symbol.
    Kernel(&'static str),
    /// A copy from the GPU.
    CopyOut,
}

impl What {
    /// Returns whether it is a copy.
    pub fn is_copy(self) -> bool {
        matches!(self, Self::CopyIn | Self::CopyOut)
    }

    /// In a word, or the kernel's symbol.
    pub fn name(self) -> &'static str {
        match self {
            Self::CopyIn => "copy-in",
            Self::Kernel(symbol) => symbol,
            Self::CopyOut => "copy-out",
        }
    }
}

/// Seconds from the beginning of the first kernel to the end of the last, on the GPU that took longest.
pub fn kernel_seconds(spans: &[Span]) -> f64 {
    let gpus = spans.iter().map(|span| span.gpu).max().unwrap_or(0);
    let of_gpu = |gpu| {
        let kernels = || {
            spans
                .iter()
                .filter(move |span| span.gpu == gpu && !span.what.is_copy())
        };
        let start = kernels()
            .map(|span| span.start)
            .fold(f64::INFINITY, f64::min);
        kernels().map(|span| span.end - start).fold(0.0, f64::max)
    };
    (0..=gpus).map(of_gpu).fold(0.0, f64::max)
}

/// Seconds during which a copy and a kernel of another system ran on a GPU at the same time.
pub fn overlap(spans: &[Span]) -> f64 {
    // The copies' shares that lie within the union of the others' kernels.
    let shared = spans.iter().filter(|span| span.what.is_copy()).map(|copy| {
        let mut kernels: Vec<[f64; 2]> = spans
            .iter()
            .filter(|span| {
                span.gpu == copy.gpu && !span.what.is_copy() && span.systems != copy.systems
            })
            .map(|kernel| [kernel.start.max(copy.start), kernel.end.min(copy.end)])
            .filter(|[start, end]| start < end)
            .collect();
        kernels.sort_by(|a, b| a[0].total_cmp(&b[0]));
        let (mut covered, mut until) = (0.0, f64::NEG_INFINITY);
        for [start, end] in kernels {
            covered += (end - start.max(until)).max(0.0);
            until = until.max(end);
        }
        covered
    });
    shared.sum()
}

/// Writes spans as CSV, with a head.
///
/// # Errors
/// Errors of the writer.
pub fn write_csv(spans: &[Span], out: &mut impl Write) -> io::Result<()> {
    writeln!(out, "gpu,stream,first_system,systems,what,start_us,end_us")?;
    for span in spans {
        writeln!(
            out,
            "{},{},{},{},{},{:.3},{:.3}",
            span.gpu,
            span.stream,
            span.systems.start,
            span.systems.end - span.systems.start,
            span.what.name(),
            1e6 * span.start,
            1e6 * span.end
        )?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(system: u32, what: What, start: f64, end: f64) -> Span {
        Span {
            gpu: 0,
            stream: system,
            systems: system..system + 1,
            what,
            start,
            end,
        }
    }

    #[test]
    fn shared_time_is_counted_once() {
        let kernel = What::Kernel("k");
        let spans = [
            span(0, kernel, 0.0, 4.0),
            span(1, kernel, 1.0, 3.0), // within the first
            span(2, What::CopyIn, 2.0, 6.0),
            span(2, kernel, 6.0, 7.0),
            span(0, What::CopyOut, 4.0, 5.0), // no kernel runs
        ];
        assert_eq!(overlap(&spans), 2.0);
        assert_eq!(kernel_seconds(&spans), 7.0);
        assert_eq!(overlap(&spans[3..]), 0.0);
        let mut elsewhere = spans;
        elsewhere[2].gpu = 1;
        assert_eq!(overlap(&elsewhere), 0.0);
        // Its own system's kernels wait for a copy, whatever the marks say.
        assert_eq!(
            overlap(&[span(0, kernel, 0.0, 4.0), span(0, What::CopyIn, 0.0, 4.0)]),
            0.0
        );
    }

    #[test]
    fn a_line_a_span() {
        let mut text = vec![];
        write_csv(&[span(3, What::CopyIn, 1e-6, 2.5e-6)], &mut text).expect("memory");
        let text = String::from_utf8(text).expect("text");
        assert_eq!(text.lines().nth(1), Some("0,3,3,1,copy-in,1.000,2.500"));
    }
}
