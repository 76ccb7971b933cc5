//! A smooth surface density from scattered bodies.
//!
//! A map of counts per pixel would be speckled. Here every body is spread over a Gaussian with a width
//! that follows the density around it (adaptive kernel estimate: Silverman 1986, section 5.3). So the
//! centre stays sharp and the outskirts smooth:
//! ```text
//! first      spread all bodies alike
//! twice      density Σ at each body ─► its width σ ∝ Σ^(−1/2);
//!            spread bodies of like σ together, add up
//! ```
//! Spreading is three passes of a running mean in each direction: a Gaussian for the eye, at the
//! same cost for any width.

use crate::parallel;
use std::f64::consts::{PI, SQRT_2};
use std::ops::RangeInclusive;

/// A body as it falls on a picture.
pub(super) struct Splat {
    /// Pixels from the left edge.
    pub(super) x: f64,
    /// Pixels from the upper edge.
    pub(super) y: f64,
    /// Contribution to the sum over all pixels.
    pub(super) weight: f64,
}

/// Approximate number of bodies within 2σ of a body: fewer show more detail and more noise.
const NEIGHBOURS: f64 = 64.0;

/// Weight per pixel on a picture of `size` (width, height) pixels; as `points` of this width, if one is
/// given.
pub(super) fn surface_density(
    mut splats: Vec<Splat>,
    size: [usize; 2],
    points: Option<f64>,
) -> Grid {
    let side = size[0].min(size[1]) as f64;
    let (narrowest, widest) = ((side / 500.0).max(SQRT_2), (side / 16.0).max(SQRT_2));
    // Room around the picture for the bodies just outside, which shine into it.
    let margin = (3.0 * widest).ceil() as usize;
    let mut pilot = Grid::new(size.map(|pixels| pixels + 2 * margin));
    splats.retain_mut(|splat| {
        splat.x += margin as f64;
        splat.y += margin as f64;
        pilot.contains(splat)
    });
    let count = |_: &Splat| 1.0;
    splats
        .iter()
        .for_each(|splat| pilot.deposit(splat, count(splat)));
    let room = &mut Room::default();
    let widths = match points {
        Some(width) => width.max(SQRT_2)..=width.max(SQRT_2),
        None => narrowest..=widest,
    };
    // Points all have one width.
    if points.is_none() {
        pilot.blur((side / 80.0).ceil() as usize, room);
        pilot = spread(&splats, count, &pilot, &widths, room);
    }
    spread(&splats, |splat| splat.weight, &pilot, &widths, room).without_margin(margin)
}

/// Spreads every splat over a width, within `widths`, that suits the number of bodies per pixel
/// around it.
fn spread(
    splats: &[Splat],
    weight: impl Fn(&Splat) -> f64,
    density: &Grid,
    widths: &RangeInclusive<f64>,
    room: &mut Room,
) -> Grid {
    let radii: Vec<usize> =
        std::iter::successors(Some(1), |r: &usize| Some((r * 3 / 2).max(r + 1)))
            .take_while(|r| sigma(*r) < SQRT_2 * widths.end())
            .collect();
    // A width between two levels belongs to both in part: no seams where the level changes.
    let share = |level: usize, width: f64| {
        let at = |level: usize| radii.get(level).map(|radius| sigma(*radius));
        match (level.checked_sub(1).and_then(at), at(level), at(level + 1)) {
            (Some(below), Some(here), _) if width < here => (width - below) / (here - below),
            (_, Some(here), Some(above)) if width > here => (above - width) / (above - here),
            _ => 1.0,
        }
        .max(0.0)
    };
    let width_of = |splat: &Splat| {
        let around = density.at(splat).max(f64::MIN_POSITIVE);
        let width = (NEIGHBOURS / (4.0 * PI * around)).sqrt();
        width.clamp(*widths.start(), *widths.end())
    };
    let wanted: Vec<f64> = splats.iter().map(width_of).collect();

    let mut sum = Grid::new(density.size);
    let mut grid = Grid::new(density.size);
    for (level, radius) in radii.iter().enumerate() {
        grid.cells.fill(0.0);
        let mut is_empty = true;
        for (splat, width) in splats.iter().zip(&wanted) {
            let share = share(level, *width);
            if share > 0.0 {
                grid.deposit(splat, share * weight(splat));
                is_empty = false;
            }
        }
        if is_empty {
            continue; // few bodies have few widths, and a level costs the same for any number
        }
        grid.blur(*radius, room);
        let cells = sum.cells.iter_mut().zip(&grid.cells);
        cells.for_each(|(sum, value)| *sum += value);
    }
    sum
}

/// Standard deviation of three running means over `2 × radius + 1` cells.
fn sigma(radius: usize) -> f64 {
    // Each has the variance ((2r + 1)² − 1)/12 = r(r + 1)/3.
    ((radius * (radius + 1)) as f64).sqrt()
}

/// A value for each pixel, row by row from the top.
pub(super) struct Grid {
    size: [usize; 2],
    pub(super) cells: Vec<f64>,
}

impl Grid {
    /// Columns and rows.
    pub(super) fn size(&self) -> [usize; 2] {
        self.size
    }

    fn new(size: [usize; 2]) -> Self {
        Self {
            size,
            cells: vec![0.0; size[0] * size[1]],
        }
    }

    pub(super) fn row(&self, row: usize) -> &[f64] {
        &self.cells[row * self.size[0]..][..self.size[0]]
    }

    /// Returns whether all four pixels to which `splat` belongs are there.
    fn contains(&self, splat: &Splat) -> bool {
        let inside = |at: f64, pixels: usize| (0.5..pixels as f64 - 0.5).contains(&at);
        inside(splat.x, self.size[0]) && inside(splat.y, self.size[1])
    }

    fn at(&self, splat: &Splat) -> f64 {
        self.cells[splat.y as usize * self.size[0] + splat.x as usize]
    }

    /// Adds `weight` to the four pixels around the splat, by nearness of their centres.
    fn deposit(&mut self, splat: &Splat, weight: f64) {
        let (x, y) = (splat.x - 0.5, splat.y - 0.5);
        let corner = y as usize * self.size[0] + x as usize;
        let (right, down) = (x.fract(), y.fract());
        for (step, share) in [
            (0, (1.0 - right) * (1.0 - down)),
            (1, right * (1.0 - down)),
            (self.size[0], (1.0 - right) * down),
            (self.size[0] + 1, right * down),
        ] {
            // On the last row or column the share of the pixel beyond is zero.
            if let Some(cell) = self.cells.get_mut(corner + step) {
                *cell += share * weight;
            }
        }
    }

    /// Spreads every cell over a near-Gaussian of width [`sigma`]; what goes over the edge is lost.
    fn blur(&mut self, radius: usize, room: &mut Room) {
        let [width, height] = self.size;
        let Room { bands, turned } = room;
        blur_rows_and_transpose(&self.cells, [width, height], radius, bands, turned);
        blur_rows_and_transpose(turned, [height, width], radius, bands, &mut self.cells);
    }

    fn without_margin(&self, margin: usize) -> Self {
        let size = self.size.map(|pixels| pixels - 2 * margin);
        let rows = margin..margin + size[1];
        let cells = rows
            .flat_map(|row| &self.row(row)[margin..][..size[0]])
            .copied()
            .collect();
        Self { size, cells }
    }
}

/// Rows that [`running_mean`] takes side by side: its sums depend each on the one before, and a
/// processor does eight of them in the time of one.
const LANES: usize = 8;

/// Memory for blurring, used again and again: a picture takes dozens of blurs.
#[derive(Default)]
struct Room {
    /// [`LANES`] rows after [`LANES`] rows, side by side.
    bands: Vec<[f64; LANES]>,
    turned: Vec<f64>,
}

/// The rows of `cells` (width, height), blurred, as the columns of `turned`.
fn blur_rows_and_transpose(
    cells: &[f64],
    [width, height]: [usize; 2],
    radius: usize,
    bands: &mut Vec<[f64; LANES]>,
    turned: &mut Vec<f64>,
) {
    bands.resize(height.div_ceil(LANES) * width, [0.0; LANES]);
    let rows = cells.chunks(LANES * width);
    let mut lines: Vec<_> = bands.chunks_exact_mut(width).zip(rows).collect();
    parallel::change(&mut lines, 1, |_, (line, rows)| {
        let mut means = vec![[0.0; LANES]; width];
        for (lane, row) in rows.chunks_exact(width).enumerate() {
            let row = means.iter_mut().zip(row);
            row.for_each(|(values, value)| values[lane] = *value);
        }
        running_mean(&means, radius, line);
        running_mean(line, radius, &mut means);
        running_mean(&means, radius, line);
    });
    turned.resize(width * height, 0.0);
    // Several columns at a time, whose values lie side by side in a band.
    let mut columns: Vec<_> = turned.chunks_mut(LANES * height).collect();
    parallel::change(&mut columns, 1, |first, columns| {
        for (row, band) in (0..height).step_by(LANES).zip(bands.chunks_exact(width)) {
            let values = &band[LANES * first..];
            for (column, values) in columns.chunks_exact_mut(height).zip(values) {
                match column[row..].first_chunk_mut::<LANES>() {
                    Some(part) => *part = *values,
                    None => column[row..].copy_from_slice(&values[..height - row]),
                }
            }
        }
    });
}

/// The mean of the `2 × radius + 1` values around each, zeros beyond the ends.
fn running_mean(line: &[[f64; LANES]], radius: usize, means: &mut [[f64; LANES]]) {
    let share = 1.0 / (2 * radius + 1) as f64;
    let mut sum = [0.0; LANES];
    let mut add = |sign: f64, values: &[f64; LANES]| {
        sum.iter_mut()
            .zip(values)
            .for_each(|(sum, value)| *sum += sign * value);
        // Sums that should have come back to zero may miss it by a rounding, on either side.
        sum.map(|sum| (share * sum).max(0.0))
    };
    line.iter()
        .take(radius)
        .for_each(|values| _ = add(1.0, values));
    for (i, mean) in means.iter_mut().enumerate() {
        *mean = add(1.0, line.get(i + radius).unwrap_or(&[0.0; LANES]));
        if let Some(leaving) = i.checked_sub(radius) {
            add(-1.0, &line[leaving]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn splat(x: f64, y: f64) -> Splat {
        Splat { x, y, weight: 2.0 }
    }

    /// Sum, and variance along x, of a grid.
    fn moments(grid: &Grid) -> (f64, f64) {
        let sum: f64 = grid.cells.iter().sum();
        let column = |i: usize| (i % grid.size[0]) as f64 + 0.5;
        let of = |power: i32, centre: f64| {
            let terms = grid.cells.iter().enumerate();
            terms
                .map(|(i, value)| value * (column(i) - centre).powi(power))
                .sum::<f64>()
                / sum
        };
        (sum, of(2, of(1, 0.0)))
    }

    #[test]
    fn spreading_keeps_the_sum_and_has_the_width_it_claims() {
        for radius in [1, 2, 5, 9] {
            let mut grid = Grid::new([80, 70]);
            grid.deposit(&splat(40.5, 35.5), 1.0);
            grid.blur(radius, &mut Room::default());
            let (sum, variance) = moments(&grid);
            // Six passes over at most 80 × 70 cells.
            let tolerance = 6.0 * 5_600.0 * f64::EPSILON;
            assert!((sum - 1.0).abs() <= tolerance, "{sum}");
            let wanted = sigma(radius).powi(2);
            assert!(
                (variance - wanted).abs() <= tolerance * 1_600.0,
                "{variance} {wanted}"
            );
            assert_eq!(grid.size, [80, 70]);
        }
    }

    #[test]
    fn a_deposit_is_centred_on_the_splat() {
        let mut grid = Grid::new([4, 3]);
        grid.deposit(&splat(1.75, 1.5), 1.0);
        let mut expected = [0.0; 12];
        (expected[5], expected[6]) = (0.75, 0.25);
        assert_eq!(grid.cells, expected);
    }

    #[test]
    fn dense_places_are_sharper_than_sparse_ones() {
        let size = [256, 256];
        let crowd = (0..2_000).map(|i| splat(64.0 + f64::from(i % 5), 64.0 + f64::from(i % 7)));
        let hermit = splat(192.0, 192.0);
        let grid = surface_density(crowd.chain([hermit]).collect(), size, None);
        let total: f64 = grid.cells.iter().sum();
        assert!((total - 2.0 * 2_001.0).abs() <= 1.0, "{total}");
        // The crowd stays within a few pixels, the hermit is a wide, faint patch.
        let value = |x: usize, y: usize| grid.row(y)[x];
        assert!(value(66, 67) > 1e3 * value(80, 67));
        assert!(value(192, 192) < 2.0 * value(200, 192));
        assert!(value(192, 192) > 0.0);
    }

    #[test]
    fn splats_outside_shine_in_but_do_not_count_in_full() {
        let size = [100, 100];
        let near = surface_density(vec![splat(-2.0, 50.0)], size, None);
        let (sum, _) = moments(&near);
        assert!(sum > 0.2 && sum < 1.0, "{sum}");
        for (x, y) in [(-1e300, 50.0), (1e9, 50.0), (50.0, -500.0), (50.0, 600.0)] {
            assert!(
                surface_density(vec![splat(x, y)], size, None)
                    .cells
                    .iter()
                    .all(|v| *v == 0.0)
            );
        }
    }
}
