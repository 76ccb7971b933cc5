//! Pictures for papers: panels with axes, scale bar, time and colour bar.

use std::path::Path;

use thiserror::Error;

use super::chart::axis::{Axis, power_of_ten, short};
use super::chart::{Colour, INK, Raster, Side, text_width};
use super::density::{Panels, Tone, point_size};
use super::{Chart, ChartError, DensityPicture, PictureError, Shades, Weight};
use crate::io::{Overwrite, Snapshot};
use crate::units::{Shown, Units};

/// Pixels of a panel per unit of the chart: what its PNG has.
const PIXELS: f64 = 2.0;
/// Least width and height of a panel in pixels: its labels need room.
const LEAST_PANEL: u32 = 240;
/// Sizes of letters.
const LABEL: f64 = 14.0;
const NUMBER: f64 = 12.0;
/// Width of the colour bar.
const BAR: f64 = 14.0;
/// Text on a map of densities, which is dark at the edges.
const LIGHT: Colour = [255, 255, 255];

/// A picture with all that a reader needs to measure in it.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// Picture within the axes; its size is the size of the panels without axes. A thousand bodies or fewer
    /// are points on white.
    pub picture: DensityPicture,
    /// Units of the bodies, if they are known: axes, time and densities then have named units.
    pub units: Option<Units>,
}

/// Reason why there is no figure.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum FigureError {
    /// The bodies cannot be drawn.
    #[error("{0}")]
    Picture(#[from] PictureError),
    /// The chart around them cannot.
    #[error("{0}")]
    Chart(#[from] ChartError),
    /// No room for labels.
    #[error(
        "panels of {width} × {height} pixels are too small for axes, which need {LEAST_PANEL} each way: give a \
         larger size, or leave the axes out"
    )]
    Small {
        /// Width of a panel in pixels.
        width: u32,
        /// Height in pixels.
        height: u32,
    },
}

/// Place of a panel in the chart, and of its middle in space.
struct Place {
    left: f64,
    top: f64,
    width: f64,
    height: f64,
    /// Half of each axis, in the units of the bodies.
    half: [f64; 2],
}

impl Figure {
    /// Draws the bodies of a snapshot.
    ///
    /// # Errors
    /// Errors of [`DensityPicture::render`], and panels too small for labels.
    pub fn chart(&self, snapshot: &Snapshot) -> Result<Chart, FigureError> {
        let picture = &self.picture;
        let panels = picture.panels(&snapshot.bodies)?;
        let number = picture.projections.len() as u32;
        let [width, height] = [picture.width / number, picture.height];
        if width < LEAST_PANEL || height < LEAST_PANEL {
            return Err(FigureError::Small { width, height });
        }
        let extent = panels.frame.half_width;
        let length = self.units.map(|units| units.shown_length(extent));
        let points = point_size(panels.chosen.len());

        const TOP: f64 = 12.0;
        const LEFT: f64 = 76.0;
        const BELOW: f64 = 56.0;
        let tone = picture.tone(&panels.grids);
        let right = if points.is_none() { 100.0 } else { 20.0 };
        let high = f64::from(height) / PIXELS;
        let mut places = vec![];
        let mut left = LEFT;
        for grid in &panels.grids {
            let pixels = [grid.size()[0] as f64, f64::from(height)];
            let scale = extent / pixels[0].min(pixels[1]);
            places.push(Place {
                left,
                top: TOP,
                width: pixels[0] / PIXELS,
                height: high,
                half: pixels.map(|pixels| scale * pixels),
            });
            left += pixels[0] / PIXELS + LEFT;
        }
        let mut chart = Chart::new(left - LEFT + right, TOP + high + BELOW);
        for (place, (grid, projection)) in places
            .iter()
            .zip(panels.grids.iter().zip(&picture.projections))
        {
            let axes = projection.axes();
            match points {
                None => {
                    let [columns, rows] = grid.size();
                    let shades = Shades {
                        width: columns as u32,
                        height: rows as u32,
                        values: grid
                            .cells
                            .iter()
                            .map(|value| tone.shade(*value) as f32)
                            .collect(),
                    };
                    chart.rasters.push(Raster {
                        corners: place.corners(),
                        image: shades.image(picture.colour_map),
                    });
                }
                Some(size) => {
                    let radius = 1.5 * size * place.width.min(place.height);
                    self.dots(&mut chart, place, snapshot, &panels, axes, radius);
                }
            }
            self.axes(&mut chart, place, panels.frame.centre, axes, length);
        }
        let ink = if points.is_none() { LIGHT } else { INK };
        self.stamps(&mut chart, &places[0], snapshot.time, length, ink);
        if points.is_none() {
            let last = &places[places.len() - 1];
            self.colour_bar(&mut chart, last, tone, length);
        }
        Ok(chart)
    }

    /// The picture without axes, for movies: with the time and the scale where there is room for letters.
    ///
    /// # Errors
    /// Errors of [`DensityPicture::render`].
    pub fn stamped(&self, snapshot: &Snapshot) -> Result<Shades, PictureError> {
        let mut shades = self.picture.shades(&snapshot.bodies)?;
        let width = self.picture.width / self.picture.projections.len() as u32;
        let size = [width, self.picture.height];
        let Some(frame) = self
            .picture
            .frame
            .filter(|_| size.into_iter().all(|side| side >= LEAST_PANEL))
        else {
            return Ok(shades);
        };
        let [width, height] = size.map(f64::from);
        let scale = frame.half_width / width.min(height);
        let place = Place {
            left: 0.0,
            top: 0.0,
            width: width / PIXELS,
            height: height / PIXELS,
            half: [scale * width, scale * height],
        };
        let mut chart = Chart::new(f64::from(shades.width) / PIXELS, place.height);
        let length = self.units.map(|units| units.shown_length(frame.half_width));
        self.stamps(&mut chart, &place, snapshot.time, length, [0; 3]);
        // Black letters on white become light ones on what is there; without letters, so be it.
        let Ok(letters) = chart.image() else {
            return Ok(shades);
        };
        for (shade, pixel) in shades.values.iter_mut().zip(letters.rgb.chunks_exact(3)) {
            *shade = shade.max(1.0 - f32::from(pixel[0]) / 255.0);
        }
        Ok(shades)
    }

    /// Draws the bodies of a snapshot into a PNG, SVG or PDF file, by its name; whole or not at all.
    ///
    /// # Errors
    /// Errors of [`Figure::chart`], and failures of the file system.
    pub fn write(
        &self,
        path: &Path,
        snapshot: &Snapshot,
        overwrite: Overwrite,
    ) -> Result<(), FigureError> {
        Ok(self.chart(snapshot)?.write(path, overwrite)?)
    }

    /// The bodies as dots, those that fall on the panel.
    fn dots(
        &self,
        chart: &mut Chart,
        place: &Place,
        snapshot: &Snapshot,
        panels: &Panels,
        axes: [usize; 2],
        radius: f64,
    ) {
        for &i in &panels.chosen {
            let position = snapshot.bodies.body(i).position;
            let [x, y] =
                [0, 1].map(|k| (position[axes[k]] - panels.frame.centre[axes[k]]) / place.half[k]);
            let at = [
                place.left + 0.5 * place.width * (1.0 + x),
                place.top + 0.5 * place.height * (1.0 - y),
            ];
            let [[left, top], [right, bottom]] = place.corners();
            let inside = |low: f64, x: f64, high: f64| x - radius >= low && x + radius <= high;
            if inside(left, at[0], right) && inside(top, at[1], bottom) {
                chart.dot(at, radius, INK);
            }
        }
    }

    /// Section, ticks, numbers and labels of a panel.
    fn axes(
        &self,
        chart: &mut Chart,
        place: &Place,
        centre: [f64; 3],
        axes: [usize; 2],
        length: Option<Shown>,
    ) {
        const TICK: f64 = 5.0;
        let [[left, top], [right, bottom]] = place.corners();
        frame(chart, place.corners());
        let factor = length.map_or(1.0, |length| length.factor);
        let unit = length.map(|length| length.name);
        let axis = |k: usize| {
            let (middle, half) = (centre[axes[k]], place.half[k]);
            let name = ["x", "y", "z"][axes[k]];
            Axis::exactly(name, factor * (middle - half), factor * (middle + half))
        };
        let (across, up) = (axis(0), axis(1));
        let (ticks, shift) = across.ticks(6);
        for tick in ticks {
            let Some(part) = across.place(tick.value) else {
                continue;
            };
            let x = left + part * place.width;
            chart.line(vec![[x, bottom], [x, bottom + TICK]], INK, 1.0);
            chart.text([x, bottom + 16.0], tick.text, NUMBER, Side::Middle, INK);
        }
        let middle = [(left + right) / 2.0, bottom + 39.0];
        chart.text(
            middle,
            labelled(&across.label, unit, shift),
            LABEL,
            Side::Middle,
            INK,
        );
        let (ticks, shift) = up.ticks(6);
        let mut widest = 0.0_f64;
        for tick in ticks {
            let Some(part) = up.place(tick.value) else {
                continue;
            };
            let y = bottom - part * place.height;
            chart.line(vec![[left - TICK, y], [left, y]], INK, 1.0);
            widest = widest.max(text_width(&tick.text, NUMBER));
            chart.text([left - 8.0, y], tick.text, NUMBER, Side::Right, INK);
        }
        let x = left - 20.0 - widest;
        chart.upright(
            [x.max(left - 66.0), (top + bottom) / 2.0],
            labelled(&up.label, unit, shift),
            LABEL,
        );
    }

    /// The time, and a bar of a round length.
    fn stamps(
        &self,
        chart: &mut Chart,
        place: &Place,
        time: f64,
        length: Option<Shown>,
        ink: Colour,
    ) {
        const INSET: f64 = 14.0;
        let [[left, top], [_, bottom]] = place.corners();
        let text = match self.units.map(|units| units.shown_time(time)) {
            Some(unit) => format!("t = {} {}", short(unit.factor * time), unit.name),
            None => format!("t = {}", short(time)),
        };
        chart.text(
            [left + INSET, top + INSET + 4.0],
            text,
            LABEL,
            Side::Left,
            ink,
        );
        let factor = length.map_or(1.0, |length| length.factor);
        let width = 2.0 * factor * place.half[0];
        let bar = round_below(0.3 * width);
        let pixels = bar / width * place.width;
        let y = bottom - INSET;
        let (from, to) = (left + INSET, left + INSET + pixels);
        chart.line(vec![[from, y], [to, y]], ink, 2.0);
        for x in [from, to] {
            chart.line(vec![[x, y - 4.0], [x, y + 4.0]], ink, 2.0);
        }
        let unit = length.map_or(String::new(), |length| format!(" {}", length.name));
        let text = format!("{}{unit}", short(bar));
        chart.text(
            [(from + to) / 2.0, y - 14.0],
            text,
            NUMBER,
            Side::Middle,
            ink,
        );
    }

    /// Colours and the surface densities that they stand for.
    fn colour_bar(&self, chart: &mut Chart, place: &Place, tone: Tone, length: Option<Shown>) {
        const STEPS: usize = 256;
        let [[_, top], [right, bottom]] = place.corners();
        let left = right + 14.0;
        let corners = [[left, top], [left + BAR, bottom]];
        let shades = Shades {
            width: 1,
            height: STEPS as u32,
            values: (0..STEPS)
                .rev()
                .map(|i| i as f32 / (STEPS - 1) as f32)
                .collect(),
        };
        chart.rasters.push(Raster {
            corners,
            image: shades.image(self.picture.colour_map),
        });
        let edge = left + BAR;
        frame(chart, corners);
        // From weight per pixel to weight per area.
        let pixel = 2.0 * place.half[0] / (PIXELS * place.width);
        let side = pixel * length.map_or(1.0, |length| length.factor);
        let (mass, mass_unit) = match (self.picture.weight, self.units) {
            (Weight::Mass, Some(units)) => (units.mass / crate::units::SOLAR_MASS, "Msun"),
            (Weight::Mass, None) => (1.0, "mass"),
            (Weight::Count, _) => (1.0, "bodies"),
        };
        let density = mass / (side * side);
        let mut tick = |value: f64, text: String| {
            let y = bottom - tone.shade(value) * place.height;
            chart.line(vec![[edge, y], [edge + 4.0, y]], INK, 1.0);
            chart.text([edge + 8.0, y], text, NUMBER, Side::Left, INK);
        };
        tick(0.0, "0".into());
        let highest = (density * tone.brightest).log10().floor() as i32;
        // Those that keep a distance from the zero.
        let powers = (highest.saturating_sub(12)..=highest).filter(|power| {
            tone.shade(10.0_f64.powi(*power) / density) * place.height > 1.5 * NUMBER
        });
        for power in powers {
            let text = match power {
                -2..=3 => short(10.0_f64.powi(power)),
                _ => power_of_ten(power),
            };
            tick(10.0_f64.powi(power) / density, text);
        }
        let area = match length {
            Some(length) => format!("{mass_unit} {}⁻²", length.name),
            None => format!("{mass_unit} per unit area"),
        };
        let middle = [edge + 56.0, (top + bottom) / 2.0];
        chart.upright(middle, format!("surface density [{area}]"), LABEL);
    }
}

impl Place {
    /// The upper left and the lower right.
    fn corners(&self) -> [[f64; 2]; 2] {
        let (right, bottom) = (self.left + self.width, self.top + self.height);
        [[self.left, self.top], [right, bottom]]
    }
}

/// Draws a rectangle by two of its corners.
fn frame(chart: &mut Chart, [[left, top], [right, bottom]]: [[f64; 2]; 2]) {
    let corners = [
        [left, top],
        [right, top],
        [right, bottom],
        [left, bottom],
        [left, top],
    ];
    chart.line(corners.to_vec(), INK, 1.0);
}

/// A quantity and its unit, which has a power of ten where the numbers of the axis were divided by one.
pub(super) fn labelled(quantity: &str, unit: Option<&str>, shift: Option<i32>) -> String {
    let power = shift.map(power_of_ten);
    let parts: Vec<&str> = power.as_deref().into_iter().chain(unit).collect();
    match parts.is_empty() {
        true => quantity.to_owned(),
        false => format!("{quantity} [{}]", parts.join(" ")),
    }
}

/// The largest of 1, 2 and 5 times a power of ten up to a value.
fn round_below(value: f64) -> f64 {
    let power = 10.0_f64.powf(value.log10().floor());
    let times = [5.0, 2.0, 1.0]
        .into_iter()
        .find(|times| times * power <= value);
    times.unwrap_or(1.0) * power
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::initial_conditions::plummer;
    use crate::output::{Projection, Section};

    /// Axes without a tick and a bar without a power of ten are drawn, too.
    #[test]
    fn frames_beyond_all_digits_are_drawn() {
        for (bodies, centre, half_width) in [(10, 1e20, 1.0), (1001, 0.0, 1e200)] {
            let frame = Section {
                centre: [centre, 0.0, 0.0],
                half_width,
            };
            let picture = DensityPicture {
                width: 300,
                height: 300,
                projections: vec![Projection::Xy],
                frame: Some(frame),
                ..DensityPicture::default()
            };
            let figure = Figure {
                picture,
                units: None,
            };
            let snapshot = Snapshot {
                time: 0.0,
                bodies: plummer(bodies, 1).unwrap(),
            };
            figure.chart(&snapshot).unwrap();
        }
    }
}
