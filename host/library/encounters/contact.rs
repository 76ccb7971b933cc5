//! The paths of bodies in a step, and the first contact on them.

use crate::bodies::Bodies;
use crate::vectors::dot;

/// Control points of a cubic (Bézier's form), which lies within their hull.
pub(super) type Path = [[f64; 3]; 4];

/// Paths of all bodies in a step.
pub(super) struct Motion {
    pub(super) paths: Vec<Path>,
    pub(super) dt: f64,
}

impl Motion {
    /// The cubics through positions and velocities at both ends of a step.
    pub(super) fn of(before: &Bodies, after: &Bodies, dt: f64) -> Self {
        let path = |i: usize| {
            let (a, b) = (before.body(i), after.body(i));
            let third = dt / 3.0;
            [
                a.position,
                [0, 1, 2].map(|k| a.position[k] + third * a.velocity[k]),
                [0, 1, 2].map(|k| b.position[k] - third * b.velocity[k]),
                b.position,
            ]
        };
        Self {
            paths: (0..before.len()).map(path).collect(),
            dt,
        }
    }

    /// The path of body j as body i sees it.
    pub(super) fn relative(&self, i: usize, j: usize) -> Path {
        let (a, b) = (&self.paths[i], &self.paths[j]);
        [0, 1, 2, 3].map(|p| [0, 1, 2].map(|k| b[p][k] - a[p][k]))
    }

    /// Position and velocity of a body after a share of the step.
    pub(super) fn at(&self, i: usize, share: f64) -> ([f64; 3], [f64; 3]) {
        let (first, _) = split(&self.paths[i], share);
        let [_, _, before, here] = first;
        let velocity = match share > 0.0 && self.dt != 0.0 {
            true => [0, 1, 2].map(|k| 3.0 * (here[k] - before[k]) / (share * self.dt)),
            false => {
                let [here, after, ..] = self.paths[i];
                [0, 1, 2].map(|k| 3.0 * (after[k] - here[k]) / self.dt)
            }
        };
        (here, velocity)
    }
}

/// Parts of a path before and after a share of it (de Casteljau).
fn split(path: &Path, share: f64) -> (Path, Path) {
    let between = |a: [f64; 3], b: [f64; 3]| [0, 1, 2].map(|k| (1.0 - share) * a[k] + share * b[k]);
    let [a, b, c, d] = *path;
    let (ab, bc, cd) = (between(a, b), between(b, c), between(c, d));
    let (abc, bcd) = (between(ab, bc), between(bc, cd));
    let middle = between(abc, bcd);
    ([a, ab, abc, middle], [middle, bcd, cd, d])
}

/// Halvings of a path after which a part of it is a point.
const DEEPEST: u32 = 30;
/// Parts of a path that are looked at before a path that stays at the radius counts as touching it.
const MOST_PARTS: u32 = 100_000;

/// The share of a step after which two bodies first touch on their relative path, whose distance then is the
/// sum of their radii and falls; and whether they come from outside. Bodies that are within each other and
/// move apart have touched before.
pub(super) fn first_contact(path: &Path, radius: f64) -> Option<(f64, bool)> {
    if !path.as_flattened().iter().all(|x| x.is_finite()) {
        return None; // the run has gone wrong, which others tell
    }
    let [first, second, ..] = *path;
    if dot(first, first) > radius * radius {
        return crossing(path, radius, true).map(|share| (share, true));
    }
    let falls = (0..3)
        .map(|k| first[k] * (second[k] - first[k]))
        .sum::<f64>()
        < 0.0;
    if falls {
        return Some((0.0, false));
    }
    let leaves = crossing(path, radius, false)?;
    let (_, rest) = split(path, leaves);
    let enters = crossing(&rest, radius, true)?;
    // Where it leaves, it is outside by rounding at most.
    (enters > 1e-9).then_some((leaves + (1.0 - leaves) * enters, true))
}

/// The first share of a path that is within the radius, or outside of it.
fn crossing(path: &Path, radius: f64, within: bool) -> Option<f64> {
    let limit = radius * radius;
    let mut parts = vec![(*path, 0.0, 0)];
    let mut looked_at = 0;
    while let Some((path, start, depth)) = parts.pop() {
        let is_there = (dot(path[0], path[0]) <= limit) == within;
        if is_there {
            return Some(start);
        }
        let excluded = match within {
            true => nearest(&path) > limit,
            false => path.iter().all(|&x| dot(x, x) <= limit),
        };
        if excluded {
            continue;
        }
        let width = 0.5_f64.powi(depth as i32);
        looked_at += 1;
        if depth == DEEPEST || looked_at == MOST_PARTS {
            // The path touches here, as far as numbers say.
            return Some(start);
        }
        let (before, after) = split(&path, 0.5);
        parts.push((after, start + 0.5 * width, depth + 1));
        parts.push((before, start, depth + 1));
    }
    ((dot(path[3], path[3]) <= limit) == within).then_some(1.0)
}

/// A lower bound of the squared distance of a path from the origin: that of a box about it, or of the plane
/// before it that faces the origin.
fn nearest(path: &Path) -> f64 {
    let [first, _, _, last] = *path;
    let middle = [0, 1, 2].map(|k| first[k] + last[k]);
    let length = dot(middle, middle).sqrt();
    let along = |x: &[f64; 3]| (0..3).map(|k| x[k] * middle[k]).sum::<f64>() / length;
    let plane = path.iter().map(along).fold(f64::INFINITY, f64::min);
    // Not a number where the middle is the origin.
    let plane = if plane > 0.0 { plane * plane } else { 0.0 };
    let of_axis = |k: usize| {
        let (least, most) = path
            .iter()
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), x| {
                (a.min(x[k]), b.max(x[k]))
            });
        least.max(-most).max(0.0)
    };
    let of_box = [0, 1, 2].map(of_axis);
    dot(of_box, of_box).max(plane)
}
