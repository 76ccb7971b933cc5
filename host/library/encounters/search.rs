//! Pairs of bodies that may have come close in a step.

use super::contact::Motion;
use crate::parallel;
use crate::vectors::axes;

/// A body that has a radius, or may meet one that has.
#[derive(Clone, Copy)]
struct Swept {
    body: usize,
    least: [f64; 3],
    most: [f64; 3],
}

/// Bodies that a thread takes.
const BODIES_OF_A_TASK: usize = 256;

/// Pairs of bodies, of which one has a radius, that come within the boxes around their paths; the lesser
/// index first, in order. Along the longest axis only those are compared that overlap there.
pub(super) fn close_pairs(motion: &Motion, radii: &[f64]) -> Vec<(usize, usize)> {
    let swept = |body: usize| {
        let path = motion.hull(body);
        if path.is_empty() {
            return None;
        }
        let radius = radii[body];
        let of = |choose: fn(f64, f64) -> f64, k: usize| {
            path.iter().map(|x| x[k]).reduce(choose).unwrap_or_default()
        };
        Some(Swept {
            body,
            least: axes(|k| of(f64::min, k) - radius),
            most: axes(|k| of(f64::max, k) + radius),
        })
    };
    let all = parallel::each(radii.len(), BODIES_OF_A_TASK, swept);
    let all: Vec<Swept> = all.into_iter().flatten().collect();
    let axis = longest_axis(&all);
    let mut targets: Vec<Swept> = all
        .iter()
        .filter(|swept| radii[swept.body] > 0.0)
        .copied()
        .collect();
    targets.sort_by(|a, b| a.least[axis].total_cmp(&b.least[axis]));
    // How far the targets up to each one reach.
    let mut reach = f64::NEG_INFINITY;
    let reaches = targets.iter().map(|target| {
        reach = reach.max(target.most[axis]);
        reach
    });
    let reaches: Vec<f64> = reaches.collect();
    let pairs_of = |a: &Swept| {
        let end = targets.partition_point(|target| target.least[axis] <= a.most[axis]);
        let near = (0..end).rev().take_while(|&k| reaches[k] >= a.least[axis]);
        let meets = near.map(|k| &targets[k]).filter(|b| {
            // A pair in which both have a radius is found twice.
            let once = radii[a.body] == 0.0 || a.body < b.body;
            let apart = |k: usize| a.least[k] > b.most[k] || b.least[k] > a.most[k];
            once && !(0..3).any(apart)
        });
        let pairs = meets.map(|b| (a.body.min(b.body), a.body.max(b.body)));
        pairs.collect::<Vec<_>>()
    };
    let mut pairs = parallel::each_of(&all, BODIES_OF_A_TASK, pairs_of).concat();
    pairs.sort_unstable();
    pairs
}

fn longest_axis(all: &[Swept]) -> usize {
    let length = |k: usize| {
        let least = all.iter().map(|s| s.least[k]).fold(f64::INFINITY, f64::min);
        let most = all
            .iter()
            .map(|s| s.most[k])
            .fold(f64::NEG_INFINITY, f64::max);
        most - least
    };
    let lengths = axes(length);
    (0..3).fold(
        0,
        |best, k| if lengths[k] > lengths[best] { k } else { best },
    )
}
