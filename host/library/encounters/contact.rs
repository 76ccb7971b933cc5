//! The paths of bodies in a step, and the contacts on them.

use std::ops::Range;

use super::{Contact, StepOfBody};
use crate::bodies::Bodies;
use crate::vectors::{axes, dot};

/// Control points of a cubic (Bézier's form), which lies within their hull.
pub(super) type Path = [[f64; 3]; 4];

/// Paths of all bodies in a step: of each, one after another, the cubics of its block time steps. Between them a
/// body has no path while it is a member of a group.
pub(super) struct Motion {
    paths: Vec<Path>,
    /// Shares of the step at which each path begins and ends.
    shares: Vec<[f64; 2]>,
    /// Which paths each body has.
    of_body: Vec<Range<usize>>,
    dt: f64,
}

impl Motion {
    /// The cubics through positions and velocities at both ends of a step that all bodies share.
    pub(super) fn of(before: &Bodies, after: &Bodies, dt: f64) -> Self {
        let path = |i: usize| {
            let (a, b) = (before.body(i), after.body(i));
            cubic([a.position, a.velocity], [b.position, b.velocity], dt)
        };
        let n = before.len();
        Self {
            paths: (0..n).map(path).collect(),
            shares: vec![[0.0, 1.0]; n],
            of_body: (0..n).map(|i| i..i + 1).collect(),
            dt,
        }
    }

    /// The cubics of the steps that `bodies` took in a span `dt`; the steps of a body are in order.
    pub(super) fn of_steps(bodies: usize, steps: &[StepOfBody], dt: f64) -> Self {
        let mut order: Vec<&StepOfBody> = steps.iter().collect();
        order.sort_by_key(|step| step.body); // stable
        let path = |step: &&StepOfBody| {
            let [start, end] = step.shares;
            cubic(step.from, step.to, dt * (end - start))
        };
        let mut first = 0;
        let of_body = (0..bodies).map(|body| {
            let count = order[first..].partition_point(|step| step.body == body);
            first += count;
            first - count..first
        });
        Self {
            of_body: of_body.collect(),
            paths: order.iter().map(path).collect(),
            shares: order.iter().map(|step| step.shares).collect(),
            dt,
        }
    }

    /// All points that a body's paths lie between.
    pub(super) fn hull(&self, i: usize) -> &[[f64; 3]] {
        self.paths[self.of_body[i].clone()].as_flattened()
    }

    /// Contacts of two bodies with this sum of radii, in order of time. Each step of either body has at most
    /// one.
    pub(super) fn contacts(&self, bodies: [usize; 2], radius: f64) -> Vec<Contact> {
        let mut contacts = vec![];
        let [of_a, of_b] = bodies.map(|body| self.of_body[body].clone());
        let (mut a, mut b) = (of_a.start, of_b.start);
        while a < of_a.end && b < of_b.end {
            let ([a_start, a_end], [b_start, b_end]) = (self.shares[a], self.shares[b]);
            let (start, end) = (a_start.max(b_start), a_end.min(b_end));
            if start < end {
                let [a_path, b_path] = [a, b].map(|k| self.part(k, [start, end]));
                let path = [0, 1, 2, 3].map(|p| axes(|k| b_path[p][k] - a_path[p][k]));
                if let Some((share, from_outside)) = first_contact(&path, radius) {
                    let share = start + (end - start) * share;
                    contacts.push(Contact {
                        bodies,
                        share,
                        from_outside,
                        phases: bodies.map(|body| self.at(body, share)),
                    });
                }
            }
            a += usize::from(a_end == end);
            b += usize::from(b_end == end);
        }
        contacts
    }

    /// The part of path k between two shares of the step. Where parts meet, they have the same bits, so that
    /// no contact is lost between them.
    fn part(&self, k: usize, shares: [f64; 2]) -> Path {
        let [begin, end] = self.shares[k];
        let [from, to] = shares.map(|share| (share - begin) / (end - begin));
        let whole = &self.paths[k];
        if [from, to] == [0.0, 1.0] {
            return *whole;
        }
        let (_, rest) = split(whole, from);
        let (mut part, _) = split(&rest, (to - from) / (1.0 - from));
        let [first, _, _, last] = &mut part;
        *first = point(whole, from);
        *last = point(whole, to);
        part
    }

    /// Position and velocity of a body, which has a path there, after a share of the step.
    fn at(&self, i: usize, share: f64) -> [[f64; 3]; 2] {
        let all = self.of_body[i].clone();
        let earlier = self.shares[all.clone()].partition_point(|&[_, end]| end < share);
        let k = (all.start + earlier).min(all.end - 1);
        let [begin, end] = self.shares[k];
        let width = end - begin;
        let (path, dt) = (&self.paths[k], self.dt * width);
        let share = (share - begin) / width;
        let (first, _) = split(path, share);
        let [_, _, before, here] = first;
        let velocity = match share > 0.0 && dt != 0.0 {
            true => axes(|k| 3.0 * (here[k] - before[k]) / (share * dt)),
            false => {
                let [here, after, ..] = *path;
                axes(|k| 3.0 * (after[k] - here[k]) / dt)
            }
        };
        [here, velocity]
    }
}

/// The cubic through positions and velocities at both ends of a time.
fn cubic([x, v]: [[f64; 3]; 2], [x1, v1]: [[f64; 3]; 2], dt: f64) -> Path {
    let third = dt / 3.0;
    [
        x,
        axes(|k| x[k] + third * v[k]),
        axes(|k| x1[k] - third * v1[k]),
        x1,
    ]
}

/// The point after a share of a path.
fn point(path: &Path, share: f64) -> [f64; 3] {
    match share {
        0.0 => path[0],
        1.0 => path[3],
        _ => split(path, share).0[3],
    }
}

/// Parts of a path before and after a share of it (de Casteljau).
fn split(path: &Path, share: f64) -> (Path, Path) {
    let between = |a: [f64; 3], b: [f64; 3]| axes(|k| (1.0 - share) * a[k] + share * b[k]);
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

/// The share of a step after which two bodies first touch on their relative path, and whether they
/// come from outside. At this contact, their distance is the sum of their radii and falls. Bodies that are within each other and
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

/// A lower bound of the squared distance of a path from the origin: the squared distance of a box
/// around the path, or of the plane in front of the path that faces the origin.
fn nearest(path: &Path) -> f64 {
    let [first, _, _, last] = *path;
    let middle = axes(|k| first[k] + last[k]);
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
    let of_box = axes(of_axis);
    dot(of_box, of_box).max(plane)
}
