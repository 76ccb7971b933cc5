//! Slots that are near a slot now, found by places where slots were some time ago.

use super::levels::Levels;
use super::slots::{Pull, View};
use super::{Course, MARGIN, of_each};
use crate::groups::Vector;
use crate::neighbours::Tree;
use crate::parallel;
use crate::vectors::{difference, dot};

/// Points that are looked at before a tree is built anew, as a multiple of the live slots. The older the tree, the more
/// points are looked at in a search. With 16 cores to search, trees of 100 000 stars are best this old; one core does
/// not mind.
const LOOKED: usize = 256;

/// Classes of masses, the heaviest first. Bodies are searched in the tree of their class: most are light, and act
/// from near by only.
const CLASSES: usize = 4;

/// Factor in mass from class to class.
const FACTOR: f64 = 8.0;

/// The part of all slots, by its inverse, from which on the farthest are found anew in whole trees.
const MANY: usize = 16;

/// Steps for which slots may go on as they move now before the farthest of their part of a tree are found anew.
const STEPS_AHEAD: f64 = 4.0;

/// Slots that one thread looks at sooner than others are woken.
const SLOTS_OF_A_TASK: usize = 256;

/// Slots where they were.
pub(super) struct Places {
    classes: Vec<Class>,
    /// Where slots were.
    points: Vec<Vector>,
    /// The most by which slots have left their points when their steps end, or more.
    moved: Vec<f64>,
    /// The class of each slot, and its place in the tree.
    in_trees: Vec<(usize, usize)>,
    /// Slots that begin another step since it is known how far they move, and true for them. Of [many](MANY) some are left
    /// out.
    stale: Vec<usize>,
    is_stale: Vec<bool>,
    /// Points that were looked at.
    looked: usize,
}

/// Slots that had about the same mass.
struct Class {
    heaviest: Pull,
    tree: Tree,
    /// The most by which slots of each part of the tree have left their points, or more.
    farthest: Vec<f64>,
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
            let moved = (&self.moved[..], &class.farthest[..]);
            let within = within(class.heaviest);
            looked += class.tree.near_moved(at, within, moved, &mut found);
        }
        found.retain(|&other| {
            let is_near = || {
                let d = difference(view.phase(other)[0], at);
                dot(d, d) < within(view.pull(other)).powi(2)
            };
            other != slot && view.gm[other] != 0.0 && is_near()
        });
        found.sort_unstable();
        (found, looked)
    }

    /// Notes that points were looked at.
    pub(super) const fn note_looks(&mut self, looked: usize) {
        self.looked += looked;
    }

    /// Finds again how far slots move that have another content or step.
    fn refresh(&mut self, view: View<'_>, levels: &Levels) {
        let points = &self.points;
        let moves = |slot: usize, known: f64| {
            let d = difference(view.phase(slot)[0], points[slot]);
            let (distance, path) = (dot(d, d).sqrt(), view.path(slot, levels));
            match MARGIN * (distance + path) <= known {
                true => known,
                false => MARGIN * (distance + STEPS_AHEAD * path),
            }
        };
        let stale = std::mem::take(&mut self.stale);
        if stale.len() < self.many() {
            let known = &self.moved;
            let moved =
                parallel::each_of(&stale, SLOTS_OF_A_TASK, |&slot| moves(slot, known[slot]));
            for (slot, moved) in stale.into_iter().zip(moved) {
                self.is_stale[slot] = false;
                if moved != std::mem::replace(&mut self.moved[slot], moved) {
                    let (class, place) = self.in_trees[slot];
                    Tree::raise(place, moved, &mut self.classes[class].farthest);
                }
            }
            return;
        }
        let is_stale = &self.is_stale;
        parallel::change(&mut self.moved, SLOTS_OF_A_TASK, |slot, moved| {
            if is_stale[slot] {
                *moved = moves(slot, *moved);
            }
        });
        for class in &mut self.classes {
            class.farthest = class.tree.largest(&self.moved);
        }
        self.is_stale.fill(false);
    }

    /// Stale slots from which on the farthest are found anew in whole trees.
    const fn many(&self) -> usize {
        self.in_trees.len() / MANY
    }
}

/// Of two slots the one with more mass.
fn heavier(one: Pull, other: Pull) -> Pull {
    if other.gm > one.gm { other } else { one }
}

impl Course<'_> {
    /// Takes the places to search in, or finds them. They are to be put back.
    pub(super) fn take_places(&mut self) -> Places {
        match self.places.take() {
            Some(mut places) if places.looked < LOOKED * self.live.len() => {
                places.refresh(self.view(), &self.levels);
                places
            }
            _ => self.find_places(),
        }
    }

    /// Results for a `count` of searches, with the numbers of points that were looked at. From `several` of them on, more
    /// than one thread searches.
    pub(super) fn search<T: Send>(
        &mut self,
        (count, several): (usize, usize),
        of: impl Fn(View<'_>, &Places, usize) -> (T, usize) + Send + Sync,
    ) -> Vec<T> {
        let mut places = self.take_places();
        let view = self.view();
        let (found, looked): (Vec<T>, Vec<usize>) =
            of_each(count, several, |k| of(view, &places, k))
                .into_iter()
                .unzip();
        places.note_looks(looked.into_iter().sum());
        self.places = Some(places);
        found
    }

    /// As [`Places::near`].
    pub(super) fn near(
        &mut self,
        slot: usize,
        within: impl Fn(Pull) -> f64 + Send + Sync,
    ) -> Vec<usize> {
        let found = self.search((1, 2), |view, places, _| places.near(view, slot, &within));
        found.into_iter().flatten().collect()
    }

    /// Free slots are where they were left: they may have a body before places are found again.
    fn find_places(&self) -> Places {
        let slots = self.gm.len();
        let (view, levels) = (self.view(), &self.levels);
        let points: Vec<Vector> =
            parallel::each(slots, SLOTS_OF_A_TASK, |slot| view.phase(slot)[0]);
        let moved = parallel::each(slots, SLOTS_OF_A_TASK, |slot| {
            MARGIN * view.path(slot, levels)
        });
        let mut classes = vec![vec![]; CLASSES];
        let factors = (1..).take(CLASSES - 1).map(|class| FACTOR.powi(class));
        let heaviest: Vec<f64> = factors.map(|factor| self.heaviest / factor).collect();
        for (slot, gm) in self.gm.iter().enumerate() {
            let class = heaviest.iter().filter(|&limit| gm <= limit).count();
            classes[class].push(slot);
        }
        let class = |slots: Vec<usize>| {
            let pulls = slots.iter().map(|&slot| view.pull(slot));
            let heaviest = pulls.fold(Pull { gm: 0.0, root: 0.0 }, heavier);
            let tree = Tree::of(&points, slots.into_iter());
            Class {
                heaviest,
                farthest: tree.largest(&moved),
                tree,
            }
        };
        let classes: Vec<Class> = classes.into_iter().map(class).collect();
        let mut in_trees = vec![(0, 0); slots];
        for (number, class) in classes.iter().enumerate() {
            for (place, slot) in class.tree.indices().enumerate() {
                in_trees[slot] = (number, place);
            }
        }
        Places {
            classes,
            points,
            moved,
            in_trees,
            stale: vec![],
            is_stale: vec![false; slots],
            looked: 0,
        }
    }

    /// Notes that slots have another content, and with it perhaps more mass.
    pub(super) fn note_contents(&mut self, slots: &[usize]) {
        self.note_steps(slots);
        let pulls: Vec<Pull> = slots.iter().map(|&slot| self.view().pull(slot)).collect();
        if let Some(places) = &mut self.places {
            for (&slot, pull) in slots.iter().zip(pulls) {
                let class = &mut places.classes[places.in_trees[slot].0];
                class.heaviest = heavier(class.heaviest, pull);
            }
        }
    }

    /// Notes that the steps of slots begin now.
    pub(super) fn note_steps(&mut self, slots: &[usize]) {
        let Some(places) = &mut self.places else {
            return;
        };
        let many = places.many();
        for &slot in slots {
            let was_stale = std::mem::replace(&mut places.is_stale[slot], true);
            if !was_stale && places.stale.len() < many {
                places.stale.push(slot);
            }
        }
    }
}
