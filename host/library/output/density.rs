//! Pictures of the surface density.
//!
//! Each panel shows the bodies along one axis, as `ln(1 + Σ/Σ₀)` of the surface density Σ on a
//! colour map.

use std::io;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use rayon::prelude::*;
use thiserror::Error;

use super::framing::{choose, quantile};
use super::smoothing::{Grid, Splat, surface_density};
use super::{ColourMap, Image, Section, Shades, Subset, UnknownChoice};
use crate::bodies::{Bodies, BodyFault};
use crate::io::{Overwrite, write_atomically};

/// Content and style of a picture. The default is a face-on and an edge-on panel of a disk in the
/// xy plane, 1600 × 800 pixels.
#[derive(Clone, Debug, PartialEq)]
pub struct DensityPicture {
    /// Width of the whole picture in pixels; the panels share it equally.
    pub width: u32,
    /// Height of the picture in pixels.
    pub height: u32,
    /// The panels from left to right.
    pub projections: Vec<Projection>,
    /// Bodies that are shown.
    pub selection: Subset,
    /// Weight of a body.
    pub weight: Weight,
    /// The section of space that is shown; `None` frames the selected bodies ([`Section::around`]).
    pub frame: Option<Section>,
    /// Powers of ten between the brightest and the darkest shades.
    pub decades: f64,
    /// The surface density of the brightest shade, in bodies (or mass) per pixel; `None` takes the
    /// picture's own ([`DensityPicture::brightness`]).
    pub brightest: Option<f64>,
    /// The colours.
    pub colour_map: ColourMap,
}

impl Default for DensityPicture {
    fn default() -> Self {
        Self {
            width: 1600,
            height: 800,
            projections: vec![Projection::Xy, Projection::Xz],
            selection: Subset::Luminous,
            weight: Weight::Count,
            frame: None,
            decades: 3.0,
            brightest: None,
            colour_map: ColourMap::default(),
        }
    }
}

/// Plane that a panel shows; the first axis points right, the second up.
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
    pub(super) fn axes(self) -> [usize; 2] {
        match self {
            Projection::Xy => [0, 1],
            Projection::Xz => [0, 2],
            Projection::Yz => [1, 2],
        }
    }
}

/// `xy`, `xz` or `yz`.
impl FromStr for Projection {
    type Err = UnknownChoice;

    fn from_str(name: &str) -> Result<Self, UnknownChoice> {
        match name {
            "xy" => Ok(Self::Xy),
            "xz" => Ok(Self::Xz),
            "yz" => Ok(Self::Yz),
            _ => Err(UnknownChoice::new(name, "xy, xz, yz")),
        }
    }
}

/// Weight of a body in the density.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Weight {
    /// Every body the same.
    Count,
    /// By mass.
    Mass,
}

/// `count` or `mass`.
impl FromStr for Weight {
    type Err = UnknownChoice;

    fn from_str(name: &str) -> Result<Self, UnknownChoice> {
        match name {
            "count" => Ok(Self::Count),
            "mass" => Ok(Self::Mass),
            _ => Err(UnknownChoice::new(name, "count, mass")),
        }
    }
}

/// Reason why there is no picture.
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
        /// Description.
        name: &'static str,
        /// Value.
        value: f64,
        /// True if it has to be above zero.
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
        Ok(self.shades(bodies)?.image(self.colour_map))
    }

    /// Draws the bodies, but for the colours.
    ///
    /// # Errors
    /// Errors of [`DensityPicture::render`].
    pub fn shades(&self, bodies: &Bodies) -> Result<Shades, PictureError> {
        let panels = self.panels(bodies)?.grids;
        let tone = self.tone(&panels);
        let shade = |value: &f64| tone.shade(*value) as f32;
        let rows = 0..self.height as usize;
        Ok(Shades {
            width: self.width,
            height: self.height,
            values: rows
                .flat_map(|row| panels.iter().flat_map(move |panel| panel.row(row)))
                .map(shade)
                .collect(),
        })
    }

    /// The surface density that this picture of the bodies would show in its brightest shade. Give
    /// one to all pictures of a series, that they do not flicker.
    ///
    /// # Errors
    /// Errors of [`DensityPicture::render`].
    pub fn brightness(&self, bodies: &Bodies) -> Result<f64, PictureError> {
        Ok(brightness(&self.panels(bodies)?.grids))
    }

    /// Shades of the surface densities of these panels.
    pub(super) fn tone(&self, panels: &[Grid]) -> Tone {
        let brightest = self.brightest.unwrap_or_else(|| brightness(panels));
        let darkest = brightest / 10.0_f64.powf(self.decades);
        Tone {
            brightest,
            darkest,
            range: (1.0 + brightest / darkest).ln(),
        }
    }

    /// The surface density of each panel.
    pub(super) fn panels(&self, bodies: &Bodies) -> Result<Panels, PictureError> {
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
            .unwrap_or_else(|| Section::around_chosen(bodies, &chosen));

        // Panels differ by a pixel where the width does not divide.
        let edges: Vec<usize> = (0..=self.projections.len())
            .map(|i| self.width as usize * i / self.projections.len())
            .collect();
        let panel = |(projection, edge): (&Projection, &[usize])| {
            let size = [edge[1] - edge[0], self.height as usize];
            let splats = self.splats(bodies, &chosen, frame, *projection, size);
            let side = size[0].min(size[1]) as f64;
            surface_density(
                splats,
                size,
                point_size(chosen.len()).map(|part| part * side),
            )
        };
        let grids = self.projections.par_iter().zip(edges.par_windows(2));
        Ok(Panels {
            grids: grids.map(panel).collect(),
            frame,
            chosen,
        })
    }

    /// Draws the bodies into a PNG file, which appears whole or not at all.
    ///
    /// # Errors
    /// Errors of [`DensityPicture::render`], and failures of the file system.
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
        numbers.extend(self.brightest.map(|value| ("brightest", value, true)));
        if let Some(Section { centre, half_width }) = self.frame {
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
        frame: Section,
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
}

/// Size of a body as a part of a panel's side where bodies are so few that each is seen by itself: of more
/// than a thousand, most would touch another.
pub(super) fn point_size(bodies: usize) -> Option<f64> {
    match bodies {
        0..=100 => Some(1.0 / 160.0),
        101..=1000 => Some(1.0 / 400.0),
        _ => None,
    }
}

/// Panels before they are coloured.
pub(super) struct Panels {
    pub(super) grids: Vec<Grid>,
    pub(super) frame: Section,
    /// Indices of the bodies that are shown.
    pub(super) chosen: Vec<usize>,
}

/// Shades of surface densities: 0 of nothing, 1 of the brightest.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tone {
    pub(super) brightest: f64,
    /// Below it shades are even in the density, above in its logarithm.
    darkest: f64,
    /// Logarithm of the brightest in these terms.
    range: f64,
}

impl Tone {
    pub(super) fn shade(self, density: f64) -> f64 {
        ((1.0 + density / self.darkest).ln() / self.range).min(1.0)
    }
}

/// The surface density that but a few pixels of an extreme centre exceed: those shall not darken
/// all others.
fn brightness(panels: &[Grid]) -> f64 {
    let lit = panels
        .iter()
        .flat_map(|panel| &panel.cells)
        .copied()
        .filter(|v| *v > 0.0);
    quantile(lit.collect(), 0.9995).unwrap_or(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bodies::BodyKind;
    use crate::initial_conditions::plummer;
    use std::io::Cursor;

    /// A small square picture of one panel.
    fn small() -> DensityPicture {
        DensityPicture {
            width: 64,
            height: 64,
            projections: vec![Projection::Xy],
            frame: Some(Section {
                centre: [0.0; 3],
                half_width: 1.0,
            }),
            ..DensityPicture::default()
        }
    }

    fn body_at(position: [f64; 3], kind: BodyKind) -> crate::bodies::Body {
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
        let bodies: Bodies = [body_at([0.5, 0.25, -0.75], BodyKind::Star)]
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
        let shown = |selection, kinds: [BodyKind; 2]| {
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
        let mixed = [BodyKind::Dark, BodyKind::Gas];
        assert_eq!(shown(Subset::Luminous, mixed), [false, true]);
        assert_eq!(shown(Subset::All, mixed), [true, true]);
        assert_eq!(shown(Subset::Only(BodyKind::Dark), mixed), [true, false]);
        assert_eq!(shown(Subset::Luminous, [BodyKind::Dark; 2]), [true, true]);
    }

    #[test]
    fn weights_are_counts_or_masses() {
        let mut bodies: Bodies = [-0.5, 0.5]
            .map(|x| body_at([x, 0.0, 0.0], BodyKind::Star))
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

    /// With a brightness of its own, half of the bodies would look like all of them.
    #[test]
    fn a_common_brightness_makes_pictures_comparable() {
        let bodies = plummer(2_000, 1).unwrap();
        let half: Bodies = bodies.iter().step_by(2).collect();
        let light = |picture: &DensityPicture, bodies: &Bodies| {
            let shades = picture.shades(bodies).unwrap().values;
            f64::from(shades.iter().sum::<f32>())
        };
        let common = DensityPicture {
            brightest: Some(small().brightness(&bodies).unwrap()),
            ..small()
        };
        assert_eq!(light(&common, &bodies), light(&small(), &bodies));
        let of_all = light(&common, &bodies);
        assert!(light(&common, &half) < 0.95 * of_all, "{of_all}");
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
        let picture = DensityPicture {
            brightest: Some(0.0),
            ..small()
        };
        assert!(matches!(refusal(picture), PictureError::Number { .. }));
        for (half_width, centre) in [(0.0, 0.0), (f64::INFINITY, 0.0), (1.0, f64::NAN)] {
            let frame = Some(Section {
                centre: [centre; 3],
                half_width,
            });
            let picture = DensityPicture { frame, ..small() };
            assert!(matches!(refusal(picture), PictureError::Number { .. }));
        }
        let picture = DensityPicture {
            selection: Subset::Only(BodyKind::Gas),
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
