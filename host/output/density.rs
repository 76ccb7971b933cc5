//! Pictures of the surface density.
//!
//! Each panel shows the bodies along one axis, as `ln(1 + Σ/Σ₀)` of the surface density Σ on the
//! inferno colour map.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use thiserror::Error;

use super::smoothing::{Grid, Splat, surface_density};
use crate::bodies::{Bodies, BodyFault, Kind};
use crate::io::{Overwrite, write_atomically};

/// What a picture shows, and how. The default is a face-on and an edge-on panel of a disk in the
/// xy plane, 1600 × 800 pixels.
#[derive(Clone, Debug, PartialEq)]
pub struct DensityPicture {
    /// Width of the whole picture in pixels; the panels share it equally.
    pub width: u32,
    /// Height of the picture in pixels.
    pub height: u32,
    /// The panels from left to right.
    pub projections: Vec<Projection>,
    /// Which bodies are shown.
    pub selection: Selection,
    /// What a body counts for.
    pub weight: Weight,
    /// The section of space that is shown; `None` frames the selected bodies ([`Frame::around`]).
    pub frame: Option<Frame>,
    /// How many powers of ten lie between the brightest and the darkest shades.
    pub decades: f64,
}

impl Default for DensityPicture {
    fn default() -> Self {
        Self {
            width: 1600,
            height: 800,
            projections: vec![Projection::Xy, Projection::Xz],
            selection: Selection::Luminous,
            weight: Weight::Count,
            frame: None,
            decades: 3.0,
        }
    }
}

/// Which plane a panel shows; the first axis points right, the second up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Projection {
    /// Seen along z.
    Xy,
    /// Seen along y.
    Xz,
    /// Seen along x.
    Yz,
}

impl Projection {
    /// Numbers of the axes to the right and up.
    fn axes(self) -> [usize; 2] {
        match self {
            Projection::Xy => [0, 1],
            Projection::Xz => [0, 2],
            Projection::Yz => [1, 2],
        }
    }
}

/// Which bodies are shown.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Selection {
    /// What would shine: gas and stars; dark matter only where there is nothing else. A halo of
    /// massive dark bodies would hide the disk within.
    Luminous,
    /// Every body.
    All,
    /// Bodies of one kind.
    Only(Kind),
}

/// What a body counts for in the density.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Weight {
    /// Every body the same.
    Count,
    /// By mass.
    Mass,
}

/// The section of space that a picture shows.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Frame {
    /// The point in the middle of each panel.
    pub centre: [f64; 3],
    /// Length from the middle to the nearest edge of a panel, above zero. Both axes have the same
    /// scale.
    pub half_width: f64,
}

impl Frame {
    /// The frame that shows 95 of 100 of the bodies numbered `chosen`, with a margin: around the
    /// median of each coordinate, which stragglers do not move.
    fn around_chosen(bodies: &Bodies, chosen: &[usize]) -> Self {
        let centre = [&bodies.x, &bodies.y, &bodies.z].map(|column| {
            quantile(chosen.iter().map(|&i| column[i]).collect(), 0.5).unwrap_or_default()
        });
        let distances = chosen.iter().map(|&i| {
            let position = bodies.body(i).position;
            [0, 1, 2]
                .into_iter()
                .map(|k| (position[k] - centre[k]).powi(2))
                .sum::<f64>()
                .sqrt()
        });
        let radius = quantile(distances.collect(), 0.95).unwrap_or_default();
        // One body, or several in one place, have no extent of their own.
        let half_width = if radius > 0.0 { 1.35 * radius } else { 1.0 };
        Self { centre, half_width }
    }

    /// The frame that shows 95 of 100 of the selected bodies, with a margin: around the median of
    /// each coordinate, which stragglers do not move. Take it from one snapshot and give it to all
    /// pictures of a series.
    pub fn around(bodies: &Bodies, selection: Selection) -> Self {
        Self::around_chosen(bodies, &choose(bodies, selection))
    }
}

/// A finished picture: rows from top to bottom, three bytes (red, green, blue) a pixel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    /// Width in pixels.
    pub width: u32,
    /// Height in pixels.
    pub height: u32,
    /// `3 × width × height` bytes.
    pub rgb: Vec<u8>,
}

/// Why there is no picture.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum PictureError {
    /// The bodies are broken.
    #[error("cannot draw the bodies: {0}")]
    Bodies(#[from] BodyFault),
    /// Nothing to draw.
    #[error("none of the {bodies} bodies is of the selected kind; draw all of them")]
    NothingSelected {
        /// The number of bodies of any kind.
        bodies: usize,
    },
    /// A size that no picture can have.
    #[error(
        "a picture of {width} × {height} pixels with {panels} panels cannot be drawn; each panel \
         needs at least 16 pixels each way, and a side has at most 8192"
    )]
    Size {
        /// Width asked for.
        width: u32,
        /// Height asked for.
        height: u32,
        /// Number of panels asked for.
        panels: usize,
    },
    /// A frame or contrast that is not a finite number above zero.
    #[error(
        "{name} = {value} must be a finite number{}",
        if *positive { " above zero" } else { "" }
    )]
    Number {
        /// What it is.
        name: &'static str,
        /// Its value.
        value: f64,
        /// Whether it has to be above zero.
        positive: bool,
    },
    /// The file could not be written.
    #[error("cannot write picture `{}`: {fault}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The reason; `AlreadyExists` under [`Overwrite::Refuse`].
        fault: io::Error,
    },
}

impl DensityPicture {
    /// Draws the bodies.
    ///
    /// # Errors
    /// Bodies that fail [`Bodies::check`], nothing selected, or settings out of range.
    pub fn render(&self, bodies: &Bodies) -> Result<Image, PictureError> {
        self.check()?;
        bodies.check()?;
        let chosen = choose(bodies, self.selection);
        if chosen.is_empty() {
            return Err(PictureError::NothingSelected {
                bodies: bodies.len(),
            });
        }
        let frame = self
            .frame
            .unwrap_or_else(|| Frame::around_chosen(bodies, &chosen));

        // Panels differ by a pixel where the width does not divide.
        let edges: Vec<usize> = (0..=self.projections.len())
            .map(|i| self.width as usize * i / self.projections.len())
            .collect();
        let panels: Vec<Grid> = self
            .projections
            .iter()
            .zip(edges.windows(2))
            .map(|(projection, edge)| {
                let size = [edge[1] - edge[0], self.height as usize];
                surface_density(self.splats(bodies, &chosen, frame, *projection, size), size)
            })
            .collect();
        Ok(self.colour(&panels))
    }

    /// Draws the bodies into a PNG file, which appears whole or not at all.
    ///
    /// # Errors
    /// Those of [`DensityPicture::render`], and failures of the file system.
    pub fn write(
        &self,
        path: &Path,
        bodies: &Bodies,
        overwrite: Overwrite,
    ) -> Result<(), PictureError> {
        let image = self.render(bodies)?;
        write_atomically(path, overwrite, |file| image.write_png(file)).map_err(|fault| {
            PictureError::File {
                path: path.to_owned(),
                fault,
            }
        })
    }

    fn check(&self) -> Result<(), PictureError> {
        let (width, height, panels) = (self.width, self.height, self.projections.len());
        let smallest = 16;
        let fits = |side: u32| (smallest..=8_192).contains(&side);
        if !fits(width) || !fits(height) || !(1..=(width / smallest) as usize).contains(&panels) {
            return Err(PictureError::Size {
                width,
                height,
                panels,
            });
        }
        let mut numbers = vec![("decades", self.decades, true)];
        if let Some(Frame { centre, half_width }) = self.frame {
            numbers.push(("half_width", half_width, true));
            numbers.extend(centre.map(|coordinate| ("centre", coordinate, false)));
        }
        match numbers
            .into_iter()
            .find(|(_, v, positive)| !v.is_finite() || *positive && *v <= 0.0)
        {
            Some((name, value, positive)) => Err(PictureError::Number {
                name,
                value,
                positive,
            }),
            None => Ok(()),
        }
    }

    /// The bodies as they fall on a panel of `size` pixels.
    fn splats(
        &self,
        bodies: &Bodies,
        chosen: &[usize],
        frame: Frame,
        projection: Projection,
        [width, height]: [usize; 2],
    ) -> Vec<Splat> {
        let pixels_per_length = width.min(height) as f64 / (2.0 * frame.half_width);
        let [right, up] = projection.axes();
        let splat = |&i: &usize| {
            let body = bodies.body(i);
            Splat {
                x: width as f64 / 2.0
                    + pixels_per_length * (body.position[right] - frame.centre[right]),
                y: height as f64 / 2.0 - pixels_per_length * (body.position[up] - frame.centre[up]),
                weight: match self.weight {
                    Weight::Count => 1.0,
                    Weight::Mass => body.mass,
                },
            }
        };
        chosen.iter().map(splat).collect()
    }

    /// Puts the panels side by side in colour, on one scale.
    fn colour(&self, panels: &[Grid]) -> Image {
        // A few pixels of an extreme centre shall not darken all others.
        let lit = panels
            .iter()
            .flat_map(|panel| &panel.cells)
            .copied()
            .filter(|v| *v > 0.0);
        let brightest = quantile(lit.collect(), 0.9995).unwrap_or(1.0);
        let darkest = brightest / 10.0_f64.powf(self.decades);
        let range = (1.0 + brightest / darkest).ln();

        let palette: Vec<[u8; 3]> = (0..1024)
            .map(|i| {
                colorous::INFERNO
                    .eval_continuous(i as f64 / 1023.0)
                    .as_array()
            })
            .collect();
        let mut rgb = Vec::with_capacity(3 * self.width as usize * self.height as usize);
        for row in 0..self.height as usize {
            for value in panels.iter().flat_map(|panel| panel.row(row)) {
                let shade = (1.0 + value / darkest).ln() / range;
                rgb.extend(palette[(1023.0 * shade.min(1.0)) as usize]);
            }
        }
        Image {
            width: self.width,
            height: self.height,
            rgb,
        }
    }
}

impl Image {
    /// Writes the picture as PNG.
    ///
    /// # Errors
    /// Those of the writer.
    pub fn write_png(&self, file: &mut impl Write) -> io::Result<()> {
        let mut encoder = png::Encoder::new(file, self.width, self.height);
        encoder.set_color(png::ColorType::Rgb);
        encoder.set_depth(png::BitDepth::Eight);
        let mut writer = encoder.write_header()?;
        writer.write_image_data(&self.rgb)?;
        Ok(writer.finish()?)
    }
}

/// The numbers of the selected bodies.
fn choose(bodies: &Bodies, selection: Selection) -> Vec<usize> {
    let of = |wanted: &dyn Fn(Kind) -> bool| -> Vec<usize> {
        (0..bodies.len())
            .filter(|i| wanted(bodies.kind[*i]))
            .collect()
    };
    match selection {
        Selection::All => of(&|_| true),
        Selection::Only(kind) => of(&|other| other == kind),
        Selection::Luminous => {
            let luminous = of(&|kind| kind != Kind::Dark);
            if luminous.is_empty() {
                of(&|_| true)
            } else {
                luminous
            }
        }
    }
}

/// The value below which the part `fraction` of `values` lies; `None` of none.
fn quantile(mut values: Vec<f64>, fraction: f64) -> Option<f64> {
    let last = values.len().checked_sub(1)?;
    let index = (fraction * last as f64).round() as usize;
    Some(*values.select_nth_unstable_by(index, f64::total_cmp).1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::initial_conditions::plummer;
    use std::io::Cursor;

    /// A small square picture of one panel.
    fn small() -> DensityPicture {
        DensityPicture {
            width: 64,
            height: 64,
            projections: vec![Projection::Xy],
            frame: Some(Frame {
                centre: [0.0; 3],
                half_width: 1.0,
            }),
            ..DensityPicture::default()
        }
    }

    fn body_at(position: [f64; 3], kind: Kind) -> crate::bodies::Body {
        crate::bodies::Body {
            position,
            velocity: [0.0; 3],
            mass: 1.0,
            id: 0,
            kind,
        }
    }

    fn brightness(image: &Image, x: u32, y: u32) -> u32 {
        let at = 3 * (y * image.width + x) as usize;
        image.rgb[at..at + 3]
            .iter()
            .map(|byte| u32::from(*byte))
            .sum()
    }

    /// The brightest pixel.
    fn peak(image: &Image) -> (u32, u32) {
        (0..image.height)
            .flat_map(|y| (0..image.width).map(move |x| (x, y)))
            .max_by_key(|(x, y)| brightness(image, *x, *y))
            .unwrap()
    }

    #[test]
    fn axes_point_right_and_up() {
        let bodies: Bodies = [body_at([0.5, 0.25, -0.75], Kind::Star)]
            .into_iter()
            .collect();
        // A unit is 32 pixels, the centre is between pixels 31 and 32.
        for (projection, x, y) in [
            (Projection::Xy, 48, 24),
            (Projection::Xz, 48, 56),
            (Projection::Yz, 40, 56),
        ] {
            let picture = DensityPicture {
                projections: vec![projection],
                ..small()
            };
            let (found_x, found_y) = peak(&picture.render(&bodies).unwrap());
            assert!(
                found_x.abs_diff(x) <= 1 && found_y.abs_diff(y) <= 1,
                "{found_x} {found_y}"
            );
        }
    }

    #[test]
    fn dark_bodies_show_only_where_nothing_shines() {
        let (left, right) = ([-0.5, 0.0, 0.0], [0.5, 0.0, 0.0]);
        let shown = |selection, kinds: [Kind; 2]| {
            let bodies = [body_at(left, kinds[0]), body_at(right, kinds[1])]
                .into_iter()
                .collect();
            let image = DensityPicture {
                selection,
                ..small()
            }
            .render(&bodies)
            .unwrap();
            [16, 48].map(|x| brightness(&image, x, 32) > 100)
        };
        let mixed = [Kind::Dark, Kind::Gas];
        assert_eq!(shown(Selection::Luminous, mixed), [false, true]);
        assert_eq!(shown(Selection::All, mixed), [true, true]);
        assert_eq!(shown(Selection::Only(Kind::Dark), mixed), [true, false]);
        assert_eq!(shown(Selection::Luminous, [Kind::Dark; 2]), [true, true]);
    }

    #[test]
    fn weights_are_counts_or_masses() {
        let mut bodies: Bodies = [-0.5, 0.5]
            .map(|x| body_at([x, 0.0, 0.0], Kind::Star))
            .into_iter()
            .collect();
        bodies.mass[0] = 0.01;
        let difference = |weight| {
            let image = DensityPicture { weight, ..small() }
                .render(&bodies)
                .unwrap();
            brightness(&image, 48, 32).abs_diff(brightness(&image, 15, 32))
        };
        assert!(difference(Weight::Count) <= 10);
        assert!(difference(Weight::Mass) > 200);
    }

    #[test]
    fn frames_ignore_stragglers() {
        let mut bodies = plummer(1_000, 1).unwrap();
        let frame = Frame::around(&bodies, Selection::Luminous);
        // 95 of 100 lie within 5.4 scale radii: 3.2 in standard units.
        assert!((3.0..6.0).contains(&frame.half_width), "{frame:?}");
        for i in 0..10 {
            bodies.x[i] = 1e6;
        }
        let moved = Frame::around(&bodies, Selection::Luminous);
        assert!(moved.half_width < 2.0 * frame.half_width && moved.centre[0].abs() < 0.1);

        let single: Bodies = [body_at([3.0; 3], Kind::Star)].into_iter().collect();
        let frame = Frame::around(&single, Selection::All);
        assert_eq!(
            frame,
            Frame {
                centre: [3.0; 3],
                half_width: 1.0
            }
        );
    }

    #[test]
    fn the_file_is_the_picture() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.png");
        let (bodies, picture) = (
            plummer(200, 1).unwrap(),
            DensityPicture {
                width: 101,
                height: 40,
                projections: vec![Projection::Xy, Projection::Xz, Projection::Yz],
                ..DensityPicture::default()
            },
        );
        picture.write(&path, &bodies, Overwrite::Refuse).unwrap();
        let mut reader = png::Decoder::new(Cursor::new(std::fs::read(&path).unwrap()))
            .read_info()
            .unwrap();
        let mut rgb = vec![0; reader.output_buffer_size().unwrap()];
        let info = reader.next_frame(&mut rgb).unwrap();
        assert_eq!((info.width, info.height), (101, 40));
        assert_eq!(rgb, picture.render(&bodies).unwrap().rgb);

        let refusal = picture
            .write(&path, &bodies, Overwrite::Refuse)
            .unwrap_err();
        assert!(matches!(refusal, PictureError::File { ref fault, .. }
            if fault.kind() == io::ErrorKind::AlreadyExists));
    }

    #[test]
    fn impossible_pictures_are_refused() {
        let mut bodies = plummer(10, 1).unwrap();
        let refusal = |picture: DensityPicture| picture.render(&bodies).unwrap_err();
        for (width, height, panels) in [
            (0, 64, 1),
            (64, 0, 1),
            (64, 64, 0),
            (64, 64, 5),
            (u32::MAX, 64, 1),
        ] {
            let projections = vec![Projection::Xy; panels];
            let picture = DensityPicture {
                width,
                height,
                projections,
                ..small()
            };
            assert!(matches!(refusal(picture), PictureError::Size { .. }));
        }
        for decades in [0.0, -1.0, f64::NAN] {
            let picture = DensityPicture { decades, ..small() };
            assert!(matches!(
                refusal(picture),
                PictureError::Number {
                    name: "decades",
                    ..
                }
            ));
        }
        for (half_width, centre) in [(0.0, 0.0), (f64::INFINITY, 0.0), (1.0, f64::NAN)] {
            let frame = Some(Frame {
                centre: [centre; 3],
                half_width,
            });
            let picture = DensityPicture { frame, ..small() };
            assert!(matches!(refusal(picture), PictureError::Number { .. }));
        }
        let picture = DensityPicture {
            selection: Selection::Only(Kind::Gas),
            ..small()
        };
        assert!(matches!(
            refusal(picture),
            PictureError::NothingSelected { bodies: 10 }
        ));

        bodies.x[3] = f64::NAN;
        assert!(matches!(
            small().render(&bodies),
            Err(PictureError::Bodies(_))
        ));
    }
}
