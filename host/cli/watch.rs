//! `--watch`: the surface density in the terminal, drawn anew in place while a run goes on.

use std::io::{self, IsTerminal, Write};
use std::time::Duration;

use allpairs::bodies::Bodies;
use allpairs::output::{DensityPicture, PictureError, Section, Subset, TerminalColours};
use anyhow::{Context, ensure};
use terminal_size::{Height, Width, terminal_size_of};

/// As often as something new is worth looking at.
pub(super) const EVERY: Duration = Duration::from_millis(250);

/// A panel smaller than this shows nothing.
const LEAST_PIXELS: u32 = 16;

/// Terminal to draw on, and state kept from one picture to the next.
pub(super) struct Watch {
    colours: TerminalColours,
    frame: Option<Section>,
    brightest: Option<f64>,
    /// Lines of the last picture, over which the next is drawn.
    lines: usize,
}

impl Watch {
    /// A preview on the standard error.
    pub(super) fn new() -> anyhow::Result<Self> {
        ensure!(
            io::stderr().is_terminal(),
            "`--watch` needs a terminal as standard error: leave it out"
        );
        let colours = std::env::var("COLORTERM").unwrap_or_default();
        Ok(Self {
            colours: TerminalColours::of_variable(&colours),
            frame: None,
            brightest: None,
            lines: 0,
        })
    }

    /// Draws the bodies over what was drawn before, and `status` below them.
    pub(super) fn draw(&mut self, bodies: &Bodies, status: &str) -> anyhow::Result<()> {
        let (Width(columns), Height(rows)) =
            terminal_size_of(io::stderr()).context("the size of the terminal is unknown")?;
        let (columns, rows) = (u32::from(columns), u32::from(rows));
        // Two square panels side by side, two pixels a character; the status has a line of its own.
        let width = columns.min(4 * rows.saturating_sub(2));
        ensure!(
            width >= 2 * LEAST_PIXELS,
            "--watch needs a terminal of {} columns and {} lines, and this has {columns} and {rows}",
            2 * LEAST_PIXELS,
            LEAST_PIXELS / 2 + 2
        );
        let mut picture = DensityPicture {
            width,
            height: width / 2,
            frame: Some(self.frame(bodies)?),
            brightest: self.brightest,
            ..DensityPicture::default()
        };
        if self.brightest.is_none() {
            self.brightest = Some(picture.brightness(bodies)?);
            picture.brightest = self.brightest;
        }
        let lines = picture.render(bodies)?.terminal_lines(self.colours);
        let mut text = self.back();
        for line in &lines {
            text += line;
            text += "\x1b[K\n"; // what was wider before
        }
        let status: String = status.chars().take(columns as usize - 1).collect();
        text = text + &status + "\x1b[K\n";
        self.lines = lines.len() + 1;
        io::stderr().write_all(text.as_bytes())?;
        Ok(())
    }

    /// Takes the picture away, so that a message can be written; the next one is drawn below it.
    pub(super) fn clear(&mut self) -> io::Result<()> {
        let text = self.back() + "\x1b[J";
        self.lines = 0;
        io::stderr().write_all(text.as_bytes())
    }

    /// To the first line of the last picture.
    fn back(&self) -> String {
        match self.lines {
            0 => String::new(),
            lines => format!("\x1b[{lines}A\r"),
        }
    }

    /// The frame of the last picture, as long as it suits the bodies: pictures shall not tremble.
    fn frame(&mut self, bodies: &Bodies) -> Result<Section, PictureError> {
        bodies.check()?;
        let now = Section::around(bodies, Subset::Luminous);
        let suits = self.frame.is_some_and(|kept| {
            let width = now.half_width / kept.half_width;
            let moved = (0..3).map(|k| (now.centre[k] - kept.centre[k]).abs());
            (0.5..1.25).contains(&width) && moved.fold(0.0, f64::max) < kept.half_width / 2.0
        });
        if !suits {
            (self.frame, self.brightest) = (Some(now), None);
        }
        Ok(self.frame.unwrap_or(now))
    }
}
