//! Pairs and multiples that block time steps follow apart.
//!
//! A *group* is a pair or a multiple whose members move under regularised equations. For all others it is one body
//! at its centre of mass, but for the few that are near: its *partners*. Formulas and radii were measured for
//! fourth order, and serve sixth order too (Kustaanheimo & Stiefel 1965; Mikkola & Aarseth 1993; Mikkola & Tanikawa 1999).
//!
//! No backend is used here. Groups are coupled to block steps in `force/groups/`.

mod approach;
mod chain;
mod composition;
mod extrapolation;
mod group;
mod kepler;
mod ks;
mod measure;
mod multiple;
mod ring;
mod saved;
mod scales;
mod vector;

pub(crate) use chain::{Alone, CAPACITY, Chain, External, TOLERANCE};
pub(crate) use composition::Scheme;
pub(crate) use group::{
    Few, Group, Inner, Partner, SEEN, Tight, Zone, crowding, united_within, zone_in,
};
pub(crate) use ks::{Pair, Perturbation, about_centre, reduced_mass};
pub(crate) use measure::{a_pair_holds_much, heavy_above, pairs_of, some_are_heavy};
pub(crate) use multiple::Multiple;
pub(crate) use ring::Ring;
pub(crate) use scales::{Orbit, Scales};
pub(crate) use vector::Vector;

/// All groups of a run, and what they are judged by.
#[derive(Clone, Debug)]
pub(crate) struct Groups {
    /// Lengths and times by which groups are formed and broken.
    pub(crate) scales: Scales,
    /// Groups in the order of their slots.
    pub(crate) all: Vec<Group>,
    /// G.
    pub(crate) coupling: f64,
    /// Masses of the bodies; a slot of a group has the mass of all its members, or none.
    pub(crate) masses: Vec<f64>,
    /// Number of the group in each slot.
    numbers: Vec<Option<usize>>,
}

impl Groups {
    /// Groups, in the order of their slots, of bodies with these masses.
    pub(crate) fn new(scales: Scales, all: Vec<Group>, coupling: f64, masses: Vec<f64>) -> Self {
        let mut groups = Self {
            scales,
            all,
            coupling,
            numbers: vec![None; masses.len()],
            masses,
        };
        groups.count_from(0);
        groups
    }

    /// Number of the group in a slot.
    pub(crate) fn in_slot(&self, slot: usize) -> Option<usize> {
        self.numbers[slot]
    }

    /// Adds a group.
    pub(crate) fn add(&mut self, group: Group) {
        let place = self.all.partition_point(|other| other.slot < group.slot);
        self.all.insert(place, group);
        self.count_from(place);
    }

    /// Takes a group away.
    pub(crate) fn remove(&mut self, number: usize) -> Group {
        let group = self.all.remove(number);
        self.numbers[group.slot] = None;
        self.count_from(number);
        group
    }

    /// Takes the group in a slot away, if there is one.
    pub(crate) fn take(&mut self, slot: usize) -> Option<Group> {
        self.in_slot(slot).map(|number| self.remove(number))
    }

    /// Numbers groups anew, from this one on.
    fn count_from(&mut self, first: usize) {
        for (number, group) in self.all.iter().enumerate().skip(first) {
            self.numbers[group.slot] = Some(number);
        }
    }
}
