//! Charts as lists of shapes, drawn as SVG, PDF or smooth PNG, in a font that comes along.
//!
//! `lines`, `bars` and `scatter` lay out; here the shapes become pixels or SVG, by plotters. Its
//! bitmaps have hard edges and its coordinates are whole pixels, so everything is drawn several
//! times as large: PNG is averaged down, SVG is scaled by its view box.

pub mod axis;
pub mod bars;
pub mod lines;
mod pdf;
pub mod scatter;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Once;

use plotters::prelude::{
    BitMapBackend, Circle, DrawingBackend, IntoDrawingArea, IntoFont, PathElement, RGBColor,
    Rectangle, SVGBackend, ShapeStyle, TextStyle, WHITE,
};
use plotters::style::text_anchor::{HPos, Pos, VPos};
use plotters::style::{Color, FontStyle, FontTransform, register_font};
use thiserror::Error;

use super::Image;
use super::viewer::base64;
use crate::io::{Overwrite, write_atomically};

/// Drawn pixels a unit of length; the units of an SVG.
const FINE: f64 = 4.0;
/// Drawn pixels of each pixel of a PNG: that has two pixels a unit.
const AVERAGED: usize = 2;

/// The drawing library centres the line box of a bitmap's text, not its letters as in SVG: so much
/// of the size are those too high.
const BITMAP_DROP: f64 = 0.15;

/// The family as SVG names it, for viewers that have the font, or one as wide.
const FAMILY: &str = "DejaVu Sans, Verdana, sans-serif";
static FONT: &[u8] = include_bytes!("../assets/DejaVuSans-subset.ttf");

/// Reason why there is no chart.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ChartError {
    /// No point that could be drawn.
    #[error("there is nothing to draw in the chart `{0}`")]
    Empty(String),
    /// Neither PNG nor SVG nor PDF.
    #[error("`{}`: a chart is a .png, an .svg or a .pdf", .0.display())]
    Format(PathBuf),
    /// The drawing library failed.
    #[error("cannot draw a chart: {0}")]
    Drawing(String),
    /// The file could not be written.
    #[error("cannot write chart `{}`: {fault}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The reason; `AlreadyExists` under [`Overwrite::Refuse`].
        fault: io::Error,
    },
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Target {
    Svg,
    Bitmap,
}

/// Red, green, blue.
pub type Colour = [u8; 3];

pub(super) const INK: Colour = [34, 34, 38];
pub(super) const FAINT: Colour = [110, 110, 118];
pub(super) const GRID: Colour = [228, 228, 232];

/// Colours that the colour-blind can tell apart (M. Okabe and K. Ito, Color Universal Design, 2008),
/// the yellow darkened to be seen on white.
pub const SERIES: [Colour; 8] = [
    [0, 114, 178],
    [213, 94, 0],
    [0, 158, 115],
    [204, 121, 167],
    [86, 180, 233],
    [230, 159, 0],
    [90, 90, 96],
    [190, 170, 20],
];

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Side {
    Left,
    Middle,
    Right,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Shape {
    Line {
        points: Vec<[f64; 2]>,
        colour: Colour,
        width: f64,
        dashed: bool,
    },
    Bar {
        corners: [[f64; 2]; 2],
        colour: Colour,
    },
    Dot {
        at: [f64; 2],
        radius: f64,
        colour: Colour,
    },
    /// `at` is the middle of its height and its left end, middle or right end.
    Text {
        at: [f64; 2],
        text: String,
        size: f64,
        side: Side,
        colour: Colour,
        /// Read from below.
        upright: bool,
    },
}

/// Pixels under the shapes.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Raster {
    /// The upper left and the lower right.
    pub(super) corners: [[f64; 2]; 2],
    pub(super) image: Image,
}

/// A laid-out chart.
#[derive(Clone, Debug, PartialEq)]
pub struct Chart {
    width: f64,
    height: f64,
    pub(super) rasters: Vec<Raster>,
    pub(super) shapes: Vec<Shape>,
}

impl Chart {
    pub(super) fn new(width: f64, height: f64) -> Self {
        Self {
            width,
            height,
            rasters: vec![],
            shapes: vec![],
        }
    }

    pub(super) fn line(&mut self, points: Vec<[f64; 2]>, colour: Colour, width: f64) {
        self.shapes.push(Shape::Line {
            points,
            colour,
            width,
            dashed: false,
        });
    }

    pub(super) fn dashed(&mut self, points: Vec<[f64; 2]>, colour: Colour, width: f64) {
        self.shapes.push(Shape::Line {
            points,
            colour,
            width,
            dashed: true,
        });
    }

    pub(super) fn bar(&mut self, corners: [[f64; 2]; 2], colour: Colour) {
        self.shapes.push(Shape::Bar { corners, colour });
    }

    pub(super) fn dot(&mut self, at: [f64; 2], radius: f64, colour: Colour) {
        self.shapes.push(Shape::Dot { at, radius, colour });
    }

    pub(super) fn text(
        &mut self,
        at: [f64; 2],
        text: impl Into<String>,
        size: f64,
        side: Side,
        colour: Colour,
    ) {
        self.shapes.push(Shape::Text {
            at,
            text: text.into(),
            size,
            side,
            colour,
            upright: false,
        });
    }

    pub(super) fn upright(&mut self, at: [f64; 2], text: impl Into<String>, size: f64) {
        self.shapes.push(Shape::Text {
            at,
            text: text.into(),
            size,
            side: Side::Middle,
            colour: INK,
            upright: true,
        });
    }

    /// The title, and below it a line that says more. Returns where the rest may begin.
    pub(super) fn heading(&mut self, title: &str, subtitle: &str) -> f64 {
        self.text([16.0, 24.0], title, 17.0, Side::Left, INK);
        if subtitle.is_empty() {
            return 42.0;
        }
        self.text([16.0, 46.0], subtitle, 12.0, Side::Left, FAINT);
        62.0
    }

    /// Names and their colours, in as many rows as it takes. Returns where the rest may begin.
    pub(super) fn legend(&mut self, top: f64, entries: &[(String, Colour)]) -> f64 {
        let (mut x, mut y) = (16.0, top + 8.0);
        for (name, colour) in entries {
            let width = 22.0 + text_width(name, 12.0) + 22.0;
            if x + width > self.width && x > 16.0 {
                (x, y) = (16.0, y + 20.0);
            }
            self.line(vec![[x, y], [x + 17.0, y]], *colour, 3.0);
            self.text([x + 22.0, y], name, 12.0, Side::Left, INK);
            x += width;
        }
        if entries.is_empty() { top } else { y + 14.0 }
    }

    /// The chart as SVG.
    ///
    /// # Errors
    /// [`ChartError::Drawing`].
    pub fn svg(&self) -> Result<String, ChartError> {
        let [width, height] = self.fine_size();
        let mut text = String::new();
        self.paint(
            SVGBackend::with_string(&mut text, (width, height)),
            Target::Svg,
        )?;
        // Its own size, instead of that of the fine units within.
        let fine = format!("width=\"{width}\" height=\"{height}\"");
        let own = format!("width=\"{}\" height=\"{}\"", self.width, self.height);
        let mut text = text.replacen(&fine, &own, 1);
        // Behind the shapes, and before the page's white.
        let page = text
            .find("<rect")
            .and_then(|at| Some(at + text[at..].find("/>")? + 2));
        text.insert_str(page.unwrap_or_default(), &self.embedded()?);
        Ok(text)
    }

    /// The rasters as elements of SVG.
    fn embedded(&self) -> Result<String, ChartError> {
        let mut elements = String::new();
        for Raster { corners, image } in &self.rasters {
            let mut png = vec![];
            image
                .write_png(&mut png)
                .map_err(|fault| ChartError::Drawing(fault.to_string()))?;
            let [[x, y], [right, bottom]] = corners.map(|corner| corner.map(|x| FINE * x));
            let (width, height, data) = (right - x, bottom - y, base64(&png));
            elements += &format!(
                "\n<image x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" \
                 preserveAspectRatio=\"none\" href=\"data:image/png;base64,{data}\"/>"
            );
        }
        Ok(elements)
    }

    /// The chart as PDF.
    ///
    /// # Errors
    /// [`ChartError::Drawing`].
    pub fn pdf(&self) -> Result<Vec<u8>, ChartError> {
        pdf::file(self).map_err(|fault| ChartError::Drawing(fault.to_string()))
    }

    /// The chart as pixels, two a unit.
    ///
    /// # Errors
    /// [`ChartError::Drawing`].
    pub fn image(&self) -> Result<Image, ChartError> {
        let [width, height] = self.fine_size().map(|side| side as usize);
        let mut fine = vec![255; 3 * width * height];
        for raster in &self.rasters {
            raster.draw(&mut fine, [width, height]);
        }
        let bitmap = BitMapBackend::with_buffer(&mut fine, (width as u32, height as u32));
        self.paint(bitmap, Target::Bitmap)?;
        let (small_width, small_height) = (width / AVERAGED, height / AVERAGED);
        let mut rgb = Vec::with_capacity(3 * small_width * small_height);
        for y in 0..small_height {
            for x in 0..small_width {
                for channel in 0..3 {
                    let mut sum = 0;
                    for dy in 0..AVERAGED {
                        for dx in 0..AVERAGED {
                            let pixel = (AVERAGED * y + dy) * width + AVERAGED * x + dx;
                            sum += u32::from(fine[3 * pixel + channel]);
                        }
                    }
                    rgb.push((sum / (AVERAGED * AVERAGED) as u32) as u8);
                }
            }
        }
        Ok(Image {
            width: small_width as u32,
            height: small_height as u32,
            rgb,
        })
    }

    /// Writes the chart as PNG, SVG or PDF, by the name's extension; whole or not at all.
    ///
    /// # Errors
    /// Another extension, or failures of the file system.
    pub fn write(&self, path: &Path, overwrite: Overwrite) -> Result<(), ChartError> {
        let is = |extension| {
            path.extension()
                .is_some_and(|e| e.eq_ignore_ascii_case(extension))
        };
        let outcome = if is("svg") {
            let svg = self.svg()?;
            write_atomically(path, overwrite, |file| {
                io::Write::write_all(file, svg.as_bytes())
            })
        } else if is("pdf") {
            let pdf = self.pdf()?;
            write_atomically(path, overwrite, |file| io::Write::write_all(file, &pdf))
        } else if is("png") {
            let image = self.image()?;
            write_atomically(path, overwrite, |file| image.write_png(file))
        } else {
            return Err(ChartError::Format(path.to_owned()));
        };
        outcome.map_err(|fault| ChartError::File {
            path: path.to_owned(),
            fault,
        })
    }

    fn fine_size(&self) -> [u32; 2] {
        [self.width, self.height].map(|side| (FINE * side).round() as u32)
    }

    fn paint<B: DrawingBackend>(&self, backend: B, target: Target) -> Result<(), ChartError> {
        let drop = match target {
            Target::Svg => 0.0,
            Target::Bitmap => BITMAP_DROP,
        };
        embed_font();
        let area = backend.into_drawing_area();
        let drawn = || -> Result<(), plotters::drawing::DrawingAreaErrorKind<B::ErrorType>> {
            if target == Target::Svg {
                area.fill(&WHITE)?; // a bitmap is white, but for its rasters
            }
            for shape in &self.shapes {
                match shape {
                    Shape::Line {
                        points,
                        colour,
                        width,
                        dashed,
                    } => {
                        let style = stroke(*colour, *width);
                        let strokes = if *dashed {
                            dashes(points)
                        } else {
                            vec![points.clone()]
                        };
                        for points in strokes {
                            let points: Vec<_> = points.into_iter().map(fine).collect();
                            if target == Target::Svg {
                                area.draw(&PathElement::new(points, style))?;
                                continue;
                            }
                            // Its bitmaps join strokes in points that shoot far beyond sharp
                            // turns: stroke by stroke, with round joints, instead.
                            let radius = (FINE * width / 2.0) as i32;
                            for pair in points.windows(2) {
                                area.draw(&PathElement::new(pair.to_vec(), style))?;
                                area.draw(&Circle::new(pair[1], radius, rgb(*colour).filled()))?;
                            }
                        }
                    }
                    Shape::Bar { corners, colour } => {
                        area.draw(&Rectangle::new(corners.map(fine), rgb(*colour).filled()))?;
                    }
                    Shape::Dot { at, radius, colour } => {
                        let radius = (FINE * radius).round() as i32;
                        area.draw(&Circle::new(fine(*at), radius, rgb(*colour).filled()))?;
                    }
                    Shape::Text {
                        at,
                        text,
                        size,
                        side,
                        colour,
                        upright,
                    } => {
                        let side = match side {
                            Side::Left => HPos::Left,
                            Side::Middle => HPos::Center,
                            Side::Right => HPos::Right,
                        };
                        let turn = if *upright {
                            FontTransform::Rotate270
                        } else {
                            FontTransform::None
                        };
                        let font = (FAMILY, FINE * size).into_font().transform(turn);
                        let colour = rgb(*colour);
                        let style = TextStyle::from(font)
                            .color(&colour)
                            .pos(Pos::new(side, VPos::Center));
                        let at = if *upright {
                            [at[0] + drop * size, at[1]]
                        } else {
                            [at[0], at[1] + drop * size]
                        };
                        area.draw_text(text, &style, fine(at))?;
                    }
                }
            }
            area.present()
        };
        drawn().map_err(|error| ChartError::Drawing(error.to_string()))
    }
}

impl Raster {
    /// Draws itself on fine pixels of this size, a square of them for each of its own.
    fn draw(&self, fine: &mut [u8], [width, height]: [usize; 2]) {
        let Image {
            width: columns,
            height: rows,
            rgb,
        } = &self.image;
        let (columns, rows) = (*columns as usize, *rows as usize);
        let [[left, top], [right, bottom]] =
            self.corners.map(|c| c.map(|x| (FINE * x).round() as usize));
        for y in top..bottom.min(height) {
            let row = (y - top) * rows / (bottom - top);
            for x in left..right.min(width) {
                let column = (x - left) * columns / (right - left);
                let from = 3 * (row * columns + column);
                fine[3 * (y * width + x)..][..3].copy_from_slice(&rgb[from..from + 3]);
            }
        }
    }
}

fn fine([x, y]: [f64; 2]) -> (i32, i32) {
    ((FINE * x).round() as i32, (FINE * y).round() as i32)
}

fn rgb([r, g, b]: Colour) -> RGBColor {
    RGBColor(r, g, b)
}

fn stroke(colour: Colour, width: f64) -> ShapeStyle {
    rgb(colour).stroke_width((FINE * width).round() as u32)
}

/// A path as dashes of seven units with gaps of five.
fn dashes(points: &[[f64; 2]]) -> Vec<Vec<[f64; 2]>> {
    const DASH: f64 = 7.0;
    const PERIOD: f64 = 12.0;
    let mut dashes = vec![];
    let mut begun = 0.0;
    for pair in points.windows(2) {
        let [a, b] = [pair[0], pair[1]];
        let length = (b[0] - a[0]).hypot(b[1] - a[1]);
        let at = |s: f64| [0, 1].map(|k| a[k] + (b[k] - a[k]) * s / length);
        let mut s = -(begun % PERIOD);
        while s < length {
            let (from, to) = (s.max(0.0), (s + DASH).min(length));
            if to > from {
                dashes.push(vec![at(from), at(to)]);
            }
            s += PERIOD;
        }
        begun += length;
    }
    dashes
}

fn embed_font() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        assert!(
            register_font(FAMILY, FontStyle::Normal, FONT).is_ok(),
            "the embedded font is a font"
        );
    });
}

/// Width of a text of this size.
pub(super) fn text_width(text: &str, size: f64) -> f64 {
    embed_font();
    let font = (FAMILY, FINE * size).into_font();
    let width = font
        .layout_box(text)
        .map_or(0, |(low, high)| high.0 - low.0);
    f64::from(width) / FINE
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_become_pixels_and_svg() {
        let mut chart = Chart::new(100.0, 50.0);
        chart.bar([[0.0, 0.0], [50.0, 50.0]], [200, 0, 0]);
        chart.text([75.0, 25.0], "ΔE <&> 10⁻³", 12.0, Side::Middle, INK);
        let image = chart.image().unwrap();
        assert_eq!((image.width, image.height), (200, 100));
        let pixel = |x: usize, y: usize| &image.rgb[3 * (y * 200 + x)..][..3];
        assert_eq!(pixel(20, 50), [200, 0, 0]);
        assert_eq!(pixel(198, 2), [255, 255, 255]);
        let dark = |x: usize| (0..100).any(|y| pixel(x, y)[1] < 120);
        assert!(
            (110..190).filter(|x| dark(*x)).count() > 30,
            "there is text"
        );
        let svg = chart.svg().unwrap();
        assert!(svg.starts_with("<svg width=\"100\" height=\"50\" viewBox=\"0 0 400 200\""));
        assert!(svg.contains("ΔE &lt;&amp;&gt; 10⁻³"));
    }

    #[test]
    fn glyphs_are_there() {
        // A glyph that the subset lacks is as wide as the box that stands for it.
        let missing = text_width("\u{4e00}", 1e4);
        for c in "ΔΣεπ⊙⁰¹²³⁴⁵⁶⁷⁸⁹⁻×−·√≤≥∞…–—₅".chars()
        {
            let width = text_width(&c.to_string(), 1e4);
            assert!(width > 0.0 && width != missing, "{c}");
        }
    }

    #[test]
    fn dashes_go_on_around_corners() {
        let path = [[0.0, 0.0], [10.0, 0.0], [10.0, 10.0]];
        let length: f64 = dashes(&path)
            .iter()
            .map(|dash| (dash[1][0] - dash[0][0]).hypot(dash[1][1] - dash[0][1]))
            .sum();
        // 20 units: 0–7 and 12–19 are drawn.
        assert!((length - 14.0).abs() < 1e-9, "{length}");
    }

    #[test]
    fn other_files_are_refused() {
        let refusal = Chart::new(10.0, 10.0).write(Path::new("a.jpg"), Overwrite::Refuse);
        assert!(matches!(refusal, Err(ChartError::Format(_))));
    }
}
