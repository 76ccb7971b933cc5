//! A chart as a PDF of one page: lines, areas and letters as paths, rasters as images.
//!
//! Letters are outlines, so that no viewer needs the font. A page has 0.75 points per unit: 96 units to
//! the inch, as SVG has them.

use std::fmt::Write as _;
use std::io::{self, Write};

use ab_glyph::{Font, FontRef, OutlineCurve, Point};
use flate2::Compression;
use flate2::write::ZlibEncoder;

use super::{Chart, Colour, FONT, Shape, Side, dashes};
use crate::output::Image;

/// Points of a unit.
const POINTS: f64 = 0.75;
/// Distance of four points of a Bézier curve that is nearly a quarter of a circle, from its ends.
const ROUND: f64 = 0.552_284_75;
/// Half the height of capital letters, as a part of the size.
const HALF_HEIGHT: f64 = 0.365;

/// The file of a chart.
pub(super) fn file(chart: &Chart) -> io::Result<Vec<u8>> {
    let mut page = String::new();
    // From units with y down to points with y up.
    let height = POINTS * chart.height;
    line(
        &mut page,
        format_args!("{POINTS} 0 0 -{POINTS} 0 {height} cm 1 J 1 j"),
    );
    for (i, raster) in chart.rasters.iter().enumerate() {
        let [[left, top], [right, bottom]] = raster.corners;
        let (wide, high) = (right - left, bottom - top);
        line(
            &mut page,
            format_args!("q {wide} 0 0 -{high} {left} {bottom} cm /I{i} Do Q"),
        );
    }
    for shape in &chart.shapes {
        draw(&mut page, shape);
    }

    let mut file = File::default();
    let images = (0..chart.rasters.len()).map(|i| format!("/I{i} {} 0 R", 5 + i));
    let images = images.collect::<Vec<_>>().join(" ");
    let size = [chart.width, chart.height].map(|side| POINTS * side);
    file.object("<< /Type /Catalog /Pages 2 0 R >>", None)?;
    file.object("<< /Type /Pages /Kids [3 0 R] /Count 1 >>", None)?;
    file.object(
        &format!(
            "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 {} {}] /Contents 4 0 R /Resources << /XObject << \
             {images} >> >> >>",
            size[0], size[1]
        ),
        None,
    )?;
    file.object("", Some(page.as_bytes()))?;
    for raster in &chart.rasters {
        let Image { width, height, rgb } = &raster.image;
        let about = format!(
            "/Type /XObject /Subtype /Image /Width {width} /Height {height} /ColorSpace /DeviceRGB \
             /BitsPerComponent 8 /Interpolate true "
        );
        file.object(&about, Some(rgb))?;
    }
    Ok(file.end())
}

fn line(page: &mut String, text: std::fmt::Arguments<'_>) {
    writeln!(page, "{text}").expect("a string takes all");
}

fn colour(page: &mut String, colour: Colour, operator: &str) {
    let [r, g, b] = colour.map(|part| f64::from(part) / 255.0);
    line(page, format_args!("{r:.3} {g:.3} {b:.3} {operator}"));
}

fn draw(page: &mut String, shape: &Shape) {
    match shape {
        Shape::Line {
            points,
            colour: ink,
            width,
            dashed,
        } => {
            colour(page, *ink, "RG");
            line(page, format_args!("{width} w"));
            let strokes = match dashed {
                true => dashes(points),
                false => vec![points.clone()],
            };
            for points in strokes {
                for (i, [x, y]) in points.iter().enumerate() {
                    let operator = if i == 0 { "m" } else { "l" };
                    line(page, format_args!("{x:.3} {y:.3} {operator}"));
                }
                line(page, format_args!("S"));
            }
        }
        Shape::Bar {
            corners: [[a, b], [c, d]],
            colour: ink,
        } => {
            colour(page, *ink, "rg");
            let (wide, high) = (c - a, d - b);
            line(page, format_args!("{a:.3} {b:.3} {wide:.3} {high:.3} re f"));
        }
        Shape::Dot {
            at: [x, y],
            radius,
            colour: ink,
        } => {
            colour(page, *ink, "rg");
            line(page, format_args!("{:.3} {y:.3} m", x + radius));
            for ([c, s], [d, t]) in [
                ([1.0, 0.0], [0.0, 1.0]),
                ([0.0, 1.0], [-1.0, 0.0]),
                ([-1.0, 0.0], [0.0, -1.0]),
                ([0.0, -1.0], [1.0, 0.0]),
            ] {
                let place = |along: f64, across: f64| {
                    [
                        x + radius * (along * c + across * d),
                        y + radius * (along * s + across * t),
                    ]
                };
                curve(
                    page,
                    [place(1.0, ROUND), place(ROUND, 1.0), place(0.0, 1.0)],
                );
            }
            line(page, format_args!("f"));
        }
        Shape::Text {
            at,
            text,
            size,
            side,
            colour: ink,
            upright,
        } => {
            colour(page, *ink, "rg");
            write_text(page, *at, text, *size, *side, *upright);
        }
    }
}

fn curve(page: &mut String, [a, b, c]: [[f64; 2]; 3]) {
    let [[ax, ay], [bx, by], [cx, cy]] = [a, b, c];
    line(
        page,
        format_args!("{ax:.3} {ay:.3} {bx:.3} {by:.3} {cx:.3} {cy:.3} c"),
    );
}

fn write_text(page: &mut String, at: [f64; 2], text: &str, size: f64, side: Side, upright: bool) {
    let font = FontRef::try_from_slice(FONT).expect("the embedded font is a font");
    let scale = size / f64::from(font.units_per_em().unwrap_or(2048.0));
    let advance = |c: char| scale * f64::from(font.h_advance_unscaled(font.glyph_id(c)));
    let width: f64 = text.chars().map(advance).sum();
    let mut along = match side {
        Side::Left => 0.0,
        Side::Middle => -0.5 * width,
        Side::Right => -width,
    };
    for c in text.chars() {
        let place = |point: Point| {
            let (x, y) = (
                along + scale * f64::from(point.x),
                scale * f64::from(point.y),
            );
            let (x, y) = (x, HALF_HEIGHT * size - y);
            match upright {
                true => [at[0] + y, at[1] - x],
                false => [at[0] + x, at[1] + y],
            }
        };
        let mut pen: Option<Point> = None;
        for part in font
            .outline(font.glyph_id(c))
            .map_or(vec![], |outline| outline.curves)
        {
            let (start, control, end) = match part {
                OutlineCurve::Line(a, b) => (a, None, b),
                OutlineCurve::Quad(a, b, c) => {
                    // The cubic curve that is the same.
                    let third = |from: Point| Point {
                        x: from.x + 2.0 / 3.0 * (b.x - from.x),
                        y: from.y + 2.0 / 3.0 * (b.y - from.y),
                    };
                    (a, Some([third(a), third(c)]), c)
                }
                OutlineCurve::Cubic(a, b, c, d) => (a, Some([b, c]), d),
            };
            if pen != Some(start) {
                let [x, y] = place(start);
                line(page, format_args!("{x:.3} {y:.3} m"));
            }
            match control {
                None => {
                    let [x, y] = place(end);
                    line(page, format_args!("{x:.3} {y:.3} l"));
                }
                Some([a, b]) => curve(page, [place(a), place(b), place(end)]),
            }
            pen = Some(end);
        }
        line(page, format_args!("f"));
        along += advance(c);
    }
}

/// Objects with their places.
struct File {
    bytes: Vec<u8>,
    places: Vec<usize>,
}

impl Default for File {
    fn default() -> Self {
        Self {
            // Bytes beyond ASCII tell programs that copy files that it is no text.
            bytes: b"%PDF-1.4\n%\xe2\xe3\xcf\xd3\n".to_vec(),
            places: vec![],
        }
    }
}

impl File {
    /// Adds the next object: a dictionary, or the entries of that of a stream.
    fn object(&mut self, about: &str, stream: Option<&[u8]>) -> io::Result<()> {
        self.places.push(self.bytes.len());
        writeln!(self.bytes, "{} 0 obj", self.places.len())?;
        match stream {
            None => writeln!(self.bytes, "{about}")?,
            Some(content) => {
                let mut packed = ZlibEncoder::new(vec![], Compression::default());
                packed.write_all(content)?;
                let packed = packed.finish()?;
                let length = packed.len();
                writeln!(
                    self.bytes,
                    "<< {about}/Filter /FlateDecode /Length {length} >>\nstream"
                )?;
                self.bytes.extend(packed);
                self.bytes.extend(b"\nendstream\n");
            }
        }
        self.bytes.extend(b"endobj\n");
        Ok(())
    }

    /// The whole file, with the table of places.
    fn end(mut self) -> Vec<u8> {
        let (table, count) = (self.bytes.len(), self.places.len() + 1);
        let mut end = format!("xref\n0 {count}\n0000000000 65535 f \n");
        for place in &self.places {
            writeln!(end, "{place:010} 00000 n ").expect("a string takes all");
        }
        write!(
            end,
            "trailer\n<< /Size {count} /Root 1 0 R >>\nstartxref\n{table}\n%%EOF\n"
        )
        .expect("a string takes all");
        self.bytes.extend(end.bytes());
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;
    use crate::output::chart::{INK, Raster};

    #[test]
    fn objects_are_where_the_table_says() {
        let mut chart = Chart::new(100.0, 50.0);
        let image = Image {
            width: 2,
            height: 1,
            rgb: vec![255, 0, 0, 0, 0, 255],
        };
        chart.rasters.push(Raster {
            corners: [[10.0, 10.0], [30.0, 20.0]],
            image: image.clone(),
        });
        chart.dot([50.0, 25.0], 4.0, INK);
        chart.text([75.0, 25.0], "kpc", 12.0, Side::Middle, INK);
        let bytes = file(&chart).unwrap();
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let (_, tail) = text.rsplit_once("startxref\n").unwrap();
        let table: usize = tail.lines().next().unwrap().parse().unwrap();
        let entries = str::from_utf8(&bytes[table..]).unwrap();
        let entries: Vec<&str> = entries.lines().skip(3).take(5).collect();
        let mut streams = vec![];
        for (number, entry) in (1..).zip(entries) {
            let place: usize = entry[..10].parse().unwrap();
            let object = &bytes[place..];
            assert!(
                object.starts_with(format!("{number} 0 obj\n").as_bytes()),
                "{entry}"
            );
            let mark = b"stream\n";
            let start = object.windows(mark.len()).position(|at| at == mark);
            let end = object.windows(6).position(|at| at == b"endobj").unwrap();
            if let Some(start) = start.filter(|start| *start < end) {
                let mut content = vec![];
                let packed = &object[start + mark.len()..];
                flate2::read::ZlibDecoder::new(packed)
                    .read_to_end(&mut content)
                    .unwrap();
                streams.push(content);
            }
        }
        assert_eq!(streams[1], image.rgb);
        let page = String::from_utf8(streams.remove(0)).unwrap();
        assert!(page.contains("q 20 0 0 -10 10 20 cm /I0 Do Q"), "{page}");
        // A circle of four curves; letters of many.
        assert!(
            page.matches(" c\n").count() > 10 && page.matches("\nf\n").count() == 4,
            "{page}"
        );
    }
}
