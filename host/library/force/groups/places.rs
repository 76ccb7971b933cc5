//! Slots that are near a slot now, found by places where slots were some time ago.

use std::sync::Arc;

use rayon::prelude::*;

use super::slots::{Pull, View};
use super::{Course, of_each};
use crate::groups::Vector;
use crate::neighbours::Tree;
use crate::vectors::{difference, dot};

/// Points that are looked at before a tree is built anew, as a multiple of the live slots. The older the tree, the more
/// points are looked at.
const LOOKED: usize = 16;

/// Classes of masses, the heaviest first. Bodies are searched in the tree of their class: most are light, and act
/// from near by only.
const CLASSES: usize = 4;

/// Factor in mass from class to class.
const FACTOR: f64 = 8.0;

/// Slots that one thread looks at sooner than others are woken.
const SLOTS_OF_A_TASK: usize = 256;

/// Live slots where they were.
pub(super) struct Places {
    /// By slot.
    points: Arc<[Vector]>,
    classes: Vec<Class>,
    /// The most by which each slot has left its place when its step ends.
    moved: Vec<f64>,
    /// The largest of them since the trees were built.
    farthest: f64,
    /// Points that were looked at.
    looked: usize,
}

/// Slots of about the same mass.
struct Class {
    heaviest: Pull,
    tree: Tree<Arc<[Vector]>>,
}

impl Places {
    /// Live slots nearer to a slot than a distance, in their order, without it. The distance depends on the other
    /// slot, and is no less for a heavier one. Also the number of points that were looked at.
    pub(super) fn near(
        &self,
        view: View<'_>,
        slot: usize,
        within: impl Fn(Pull) -> f64,
    ) -> (Vec<usize>, usize) {
        let [at, _] = view.phase(slot);
        let (mut found, mut looked) = (vec![], 0);
        for class in &self.classes {
            let farthest = within(class.heaviest) + self.farthest;
            looked += class.tree.near(at, farthest, &mut found);
        }
        found.retain(|&other| {
            let within = within(view.pull(other));
            let is_nearer = |place: Vector, limit: f64| {
                let d = difference(place, at);
                dot(d, d) < limit * limit
            };
            // Where it was is at hand sooner than where it is.
            other != slot
                && is_nearer(self.points[other], 1.01 * (within + self.moved[other]))
                && is_nearer(view.phase(other)[0], within)
        });
        found.sort_unstable();
        (found, looked)
    }

    /// Notes that points were looked at.
    pub(super) const fn note_looks(&mut self, looked: usize) {
        self.looked += looked;
    }
}

impl Course<'_> {
    /// Takes the places to search in, or finds them. They are to be put back.
    pub(super) fn take_places(&mut self) -> Places {
        match self.places.take() {
            Some(places) if places.looked < LOOKED * self.live.len() => places,
            _ => self.find_places(),
        }
    }

    /// As [`Places::near`].
    pub(super) fn near(&mut self, slot: usize, within: impl Fn(Pull) -> f64) -> Vec<usize> {
        let mut places = self.take_places();
        let (found, looked) = places.near(self.view(), slot, within);
        places.note_looks(looked);
        self.places = Some(places);
        found
    }

    fn find_places(&self) -> Places {
        let slots = self.gm.len();
        let (view, ends) = (self.view(), &self.ends);
        let place = |&slot: &usize| (view.phase(slot)[0], view.path(slot, ends));
        let of_live = self.live.par_iter().with_min_len(SLOTS_OF_A_TASK);
        let of_live: Vec<(Vector, f64)> = of_live.map(place).collect();
        let (mut points, mut moved) = (vec![[0.0; 3]; slots], vec![0.0; slots]);
        let mut classes = vec![vec![]; CLASSES];
        for (&slot, place) in self.live.iter().zip(of_live) {
            (points[slot], moved[slot]) = place;
            // Without mass, the last.
            let class = (self.heaviest / self.gm[slot]).log(FACTOR) as usize;
            classes[class.min(CLASSES - 1)].push(slot);
        }
        let points: Arc<[Vector]> = points.into();
        let none = Pull { gm: 0.0, root: 0.0 };
        let heavier = |one: Pull, other: Pull| if other.gm > one.gm { other } else { one };
        let class = |slots: Vec<usize>| Class {
            heaviest: slots
                .iter()
                .map(|&slot| view.pull(slot))
                .fold(none, heavier),
            tree: Tree::of(points.clone(), slots),
        };
        Places {
            farthest: moved.iter().copied().fold(0.0, f64::max),
            moved,
            classes: (classes.into_iter().filter(|slots| !slots.is_empty()))
                .map(class)
                .collect(),
            points,
            looked: 0,
        }
    }

    /// Notes that the steps of slots begin now.
    pub(super) fn note_steps(&mut self, slots: &[usize]) {
        let Some(mut places) = self.places.take() else {
            return;
        };
        let (view, ends) = (self.view(), &self.ends);
        let moved = of_each(slots.len(), SLOTS_OF_A_TASK, |k| {
            let slot = slots[k];
            let d = difference(view.state.beginnings[slot].x, places.points[slot]);
            dot(d, d).sqrt() + view.path(slot, ends)
        });
        for (&slot, moved) in slots.iter().zip(moved) {
            places.moved[slot] = moved;
            places.farthest = places.farthest.max(moved);
        }
        self.places = Some(places);
    }
}
