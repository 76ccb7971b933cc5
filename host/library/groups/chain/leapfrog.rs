//! Leapfrog in the logarithmic Hamiltonian.

use super::super::vector::{add, add_scaled, difference, dot};
use super::{Bodies, CAPACITY, Chain, External, LENGTH};

/// Leapfrog from a chain. Changes are summed apart from what they change: fewer digits are lost.
pub(super) struct Path<'a> {
    begin: &'a Chain,
    chain: Chain,
    /// Changes of the time, the binding energy, and of each link and its rate.
    pub(super) changes: [f64; LENGTH],
}

impl<'a> Path<'a> {
    pub(super) fn new(begin: &'a Chain) -> Self {
        Self {
            begin,
            chain: *begin,
            changes: [0.0; LENGTH],
        }
    }

    /// Moves over the interval `h` in equal substeps.
    pub(super) fn leapfrog(&mut self, h: f64, count: usize, external: &mut impl External) {
        let part = h / count as f64;
        self.drift(0.5 * part);
        for k in 0..count {
            self.kick(part, external);
            let is_last = k + 1 == count;
            self.drift(if is_last { 0.5 * part } else { part });
        }
    }

    /// Moves bodies at fixed velocities.
    fn drift(&mut self, h: f64) {
        let chain = &mut self.chain;
        let time = h / (chain.kinetic() + chain.binding);
        for k in 0..chain.count() - 1 {
            for x in 0..3 {
                let change = &mut self.changes[2 + 6 * k + x];
                *change += time * chain.rates[k][x];
                chain.links[k][x] = self.begin.links[k][x] + *change;
            }
        }
        self.changes[0] += time;
        chain.time = self.begin.time + self.changes[0];
    }

    /// Changes velocities at fixed positions.
    fn kick<E: External>(&mut self, h: f64, external: &mut E) {
        let chain = &self.chain;
        let x = chain.place(&chain.links);
        let mut inner = [[0.0; 3]; CAPACITY];
        let mut potential = 0.0;
        for i in 0..chain.count() {
            for j in i + 1..chain.count() {
                let d = chain.between(&x, i, j);
                let inverse = 1.0 / dot(d, d);
                let root = inverse.sqrt();
                potential += chain.masses[i] * chain.masses[j] * root;
                let factor = inverse * root;
                inner[i] = add_scaled(inner[i], chain.masses[j] * factor, d);
                inner[j] = add_scaled(inner[j], -chain.masses[i] * factor, d);
            }
        }
        let duration = h / potential;
        if !E::ANY {
            self.change_rates(duration, &inner);
            return;
        }
        let mut given = [[0.0; 3]; CAPACITY];
        let positions = chain.unordered(x);
        let count = chain.count();
        external.accelerations(chain.time, &positions[..count], &mut given[..count]);
        let mut all = inner;
        for (k, &body) in chain.order().iter().enumerate() {
            all[k] = add(inner[k], given[body]);
        }
        let before = chain.place(&chain.rates);
        self.change_rates(duration, &all);
        // The work of what is outside, with the mean of both velocities.
        let chain = &mut self.chain;
        let after = chain.place(&chain.rates);
        for k in 0..count {
            let work = dot(add(before[k], after[k]), given[chain.order[k]]);
            self.changes[1] -= 0.5 * duration * chain.masses[k] * work;
        }
        chain.binding = self.begin.binding + self.changes[1];
    }

    fn change_rates(&mut self, duration: f64, accelerations: &Bodies) {
        for k in 0..self.chain.count() - 1 {
            let relative = difference(accelerations[k + 1], accelerations[k]);
            for (x, acceleration) in relative.into_iter().enumerate() {
                let change = &mut self.changes[5 + 6 * k + x];
                *change += duration * acceleration;
                self.chain.rates[k][x] = self.begin.rates[k][x] + *change;
            }
        }
    }
}
