//! Slots that are near a slot now, found by places where slots were some time ago.

use super::Course;
use crate::groups::Vector;
use crate::neighbours::Tree;
use crate::vectors::{difference, dot};

/// Points that are looked at before a tree is built anew, as a multiple of the live slots. The older the tree, the more
/// points are looked at.
const LOOKED: usize = 16;

/// Live slots where they were.
pub(super) struct Places {
    tree: Tree<Vec<Vector>>,
    /// The most by which a slot has left its place when its step ends.
    moved: f64,
    /// Points that were looked at.
    looked: usize,
}

impl Course<'_> {
    /// Live slots nearer to a slot than a distance, in their order, without it.
    pub(super) fn near(&mut self, slot: usize, within: f64) -> Vec<usize> {
        let [at, _] = self.phase(slot);
        let mut places = match self.places.take() {
            Some(places) if places.looked < LOOKED * self.live.len() => places,
            _ => self.find_places(),
        };
        let mut found = vec![];
        places.looked += places.tree.near(at, within + places.moved, &mut found);
        self.places = Some(places);
        found.retain(|&other| {
            let d = difference(self.phase(other)[0], at);
            other != slot && dot(d, d) < within * within
        });
        found.sort_unstable();
        found
    }

    fn find_places(&self) -> Places {
        let mut points = vec![[0.0; 3]; self.gm.len()];
        for &slot in &self.live {
            [points[slot], _] = self.phase(slot);
        }
        let moved = |&slot: &usize| self.path(slot);
        Places {
            moved: self.live.iter().map(moved).fold(0.0, f64::max),
            tree: Tree::of(points, self.live.clone()),
            looked: 0,
        }
    }

    /// The most by which a slot moves from now to the end of its step.
    fn path(&self, slot: usize) -> f64 {
        let length = |v: Vector| dot(v, v).sqrt();
        let begun = &self.backend.state().beginnings[slot];
        let left = (self.ends.of(slot)).map_or(0.0, |end| self.time(end - self.now));
        // From the beginning of the step, which is at least as long.
        let step = left + self.time(self.now - self.begun[slot]);
        let bend = length(begun.a) + length(begun.j) * step / 2.0;
        left * (length(begun.v) + bend * step)
    }

    /// Notes that the step of a slot begins now.
    pub(super) fn note_step(&mut self, slot: usize) {
        let path = self.path(slot);
        if let Some(places) = &mut self.places {
            let here = self.backend.state().beginnings[slot].x;
            let d = difference(here, places.tree.points()[slot]);
            places.moved = places.moved.max(dot(d, d).sqrt() + path);
        }
    }
}
