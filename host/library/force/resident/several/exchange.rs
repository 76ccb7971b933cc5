//! One system on the devices of several ranks, of which each has one: what devices of one process copy
//! from each other, ranks exchange through the memory of their hosts.

use std::cell::RefCell;
use std::ops::Range;
use std::sync::Arc;

use super::{Adder, Several};
use crate::backend::ForceError;
use crate::bodies::Bodies;
use crate::force::device::{Peers, Streams};
use crate::force::pack;
use crate::force::resident::Resident;
use crate::plan::shares::{SharedRecipe, Union};
use crate::plan::{Limits, Recipe};
use crate::ranks::{Team, UNAVAILABLE};

/// The way from this rank's device to those of the others.
pub(super) struct Exchange<D: Streams> {
    team: Arc<Team>,
    /// Host memory of what is sent, at the places that it has on the device.
    sent: RefCell<D::HostMemory>,
    /// Host memory of what is received.
    received: RefCell<D::HostMemory>,
    /// Ranks that have terms of a sum that goes from one to the next.
    chain: Vec<usize>,
    /// Numbers of sums that make up the energy, of each rank.
    energies: Vec<usize>,
}

impl<D: Peers> Several<D> {
    /// Puts `bodies` on this rank's device, to be moved as `recipe` says together with those of the other
    /// ranks, of which each calls this with the same bodies, recipe and limits.
    ///
    /// # Errors
    /// If this rank's driver refuses a kernel, or memory is too small.
    ///
    /// # Panics
    /// If the force kernel cannot be shared: see [`eligible`](crate::selection::eligible).
    pub(crate) fn on_ranks(
        device: Arc<D>,
        team: &Arc<Team>,
        (recipe, limits): (&Recipe, &Limits),
        bodies: &Bodies,
    ) -> Result<Self, ForceError> {
        let (rank, size) = (team.rank(), team.size());
        let SharedRecipe { parts, union } = recipe.shared(size, limits)?;
        let has_terms = |part: &Recipe| part.params.share.first < part.params.share.end;
        let chain = (0..size).filter(|&rank| has_terms(&parts[rank])).collect();
        let energies = parts.iter().map(|part| part.energy_launch.grid[0] as usize);
        let energies = energies.collect();
        let part = Resident::new(Arc::clone(&device), parts[rank].clone(), bodies)?;
        let (mut adders, mut to_add) = (vec![], 0);
        if let Union::Sums { bodies, add } = &union {
            let most = bodies.iter().map(|slice| slice.end - slice.start).max();
            let (mine, most) = (&bodies[rank], most.unwrap_or(0));
            let adder = Adder::new(&part, add, [mine.end - mine.start, most], size)?;
            to_add = size * adder.part_bytes;
            adders.push(adder);
        }
        let all = part.bytes_of(0..part.params.n).len();
        let exchange = Exchange {
            team: Arc::clone(team),
            sent: RefCell::new(device.host_memory(all, true)?),
            received: RefCell::new(device.host_memory(all.max(to_add), true)?),
            chain,
            energies,
        };
        Ok(Self {
            devices: vec![device],
            parts: vec![part],
            union,
            adders,
            rows: vec![],
            exchange: Some(exchange),
        })
    }
}

impl<D: Peers> Exchange<D> {
    /// The force without external fields. Where this rank's device fails, all ranks end: the others wait
    /// for what it was to send.
    pub(super) fn pairs(&self, several: &Several<D>) {
        let part = &several.parts[0];
        let computed = match &several.union {
            Union::Bodies(bodies) => self.bodies(part, bodies),
            Union::Sums { bodies, .. } => self.sums(part, &several.adders[0], bodies),
            Union::Chain => self.chain(part),
        };
        self.or_end(computed);
    }

    /// The sums of all ranks that make up the energy. Checks that all hold the same bodies.
    pub(super) fn energy_sums(&self, part: &Resident<D>) -> Vec<[f64; 2]> {
        let computed = part.launch_energy().and_then(|()| part.energy_sums());
        let mine = self.or_end(computed);
        let state = pack::empty_state(&part.layout, part.params.stride);
        let state = self.or_end(part.fetch(&part.state, state));
        self.team.check_bodies(crc32fast::hash(state.bytes()));
        self.team.gather(&mine, &self.energies)
    }

    fn or_end<T>(&self, result: Result<T, ForceError>) -> T {
        result.unwrap_or_else(|error| self.team.abort(UNAVAILABLE, &error.to_string()))
    }

    /// As [`Union::Bodies`].
    fn bodies(&self, part: &Resident<D>, bodies: &[Range<u32>]) -> Result<(), ForceError> {
        part.launch_pairs()?;
        let slices = slices(part, bodies);
        self.complete(&part.device, &part.acceleration, &slices)?;
        match &part.jerks {
            Some(jerks) => self.complete(&part.device, jerks.jerk(), &slices),
            None => Ok(()),
        }
    }

    /// As [`Union::Sums`].
    fn sums(
        &self,
        part: &Resident<D>,
        adder: &Adder<D>,
        bodies: &[Range<u32>],
    ) -> Result<(), ForceError> {
        let (rank, size, device) = (self.team.rank(), self.team.size(), &*part.device);
        let slices = slices(part, bodies);
        let mine = slices[rank].clone();
        let places = |from: usize| {
            let at = from * adder.part_bytes;
            at..at + mine.len()
        };
        part.launch_pairs()?;
        {
            let (mut sent, mut received) = (self.sent.borrow_mut(), self.received.borrow_mut());
            let all = part.bytes_of(0..part.params.n);
            device.copy_out(&part.acceleration, &mut sent, all, device.own_stream())?;
            let (sent, into) = (device.read(&sent)?, device.write(&mut received)?);
            for step in 1..size {
                let (to, from) = ((rank + step) % size, (rank + size - step) % size);
                let sent = &sent[slices[to].clone()];
                self.team.exchange(to, sent, from, &mut into[places(from)]);
            }
            for from in (0..size).filter(|&from| from != rank && !mine.is_empty()) {
                let (parts, queue) = (&adder.parts, device.own_stream());
                device.copy_in(&received, parts, places(from), queue)?;
            }
        }
        let own = places(rank).start;
        device.copy_from(&adder.parts, own, &part.acceleration, mine.clone())?;
        adder.launch(device)?;
        device.copy_from(&part.acceleration, mine.start, &adder.sums, 0..mine.len())?;
        self.complete(device, &part.acceleration, &slices)
    }

    /// As [`Union::Chain`].
    fn chain(&self, part: &Resident<D>) -> Result<(), ForceError> {
        let (rank, device) = (self.team.rank(), &*part.device);
        let all = part.bytes_of(0..part.params.n);
        if let Some(place) = self.chain.iter().position(|&of| of == rank) {
            let (terms, sum) = part.terms_and_sum();
            part.carry_out(terms, &part.scratch, part.force_params())?;
            if let Some(before) = place.checked_sub(1).map(|before| self.chain[before]) {
                let mut received = self.received.borrow_mut();
                let into = &mut device.write(&mut received)?[all.clone()];
                self.team.exchange::<u8>(before, &[], before, into);
                let queue = device.own_stream();
                device.copy_in(&received, &part.acceleration, all.clone(), queue)?;
            }
            part.carry_out(sum, &part.scratch, part.force_params())?;
            if let Some(&next) = self.chain.get(place + 1) {
                let mut sent = self.sent.borrow_mut();
                let queue = device.own_stream();
                device.copy_out(&part.acceleration, &mut sent, all.clone(), queue)?;
                let sent = &device.read(&sent)?[all.clone()];
                self.team.exchange::<u8>(next, sent, next, &mut []);
            }
        }
        let Some(&last) = self.chain.last() else {
            return Ok(());
        };
        let slice = |of: usize| match of.cmp(&last) {
            std::cmp::Ordering::Less => 0..0,
            std::cmp::Ordering::Equal => all.clone(),
            std::cmp::Ordering::Greater => all.end..all.end,
        };
        let slices: Vec<_> = (0..self.team.size()).map(slice).collect();
        self.complete(device, &part.acceleration, &slices)
    }

    /// Completes a buffer of which each rank's device has such a slice of bytes; they follow one another.
    fn complete(
        &self,
        device: &D,
        buffer: &D::Buffer,
        slices: &[Range<usize>],
    ) -> Result<(), ForceError> {
        let mine = slices[self.team.rank()].clone();
        let counts: Vec<usize> = slices.iter().map(Range::len).collect();
        let all = counts.iter().sum();
        let (mut sent, mut received) = (self.sent.borrow_mut(), self.received.borrow_mut());
        let queue = device.own_stream();
        if !mine.is_empty() {
            device.copy_out(buffer, &mut sent, mine.clone(), queue)?;
        }
        let (own, into) = (
            &device.read(&sent)?[mine.clone()],
            device.write(&mut received)?,
        );
        self.team.gather_bytes(own, &mut into[..all], &counts);
        for others in [0..mine.start, mine.end..all] {
            if !others.is_empty() {
                device.copy_in(&received, buffer, others, queue)?;
            }
        }
        Ok(())
    }
}

/// Places of the bodies of all ranks in a buffer of vectors.
fn slices<D: Peers>(part: &Resident<D>, bodies: &[Range<u32>]) -> Vec<Range<usize>> {
    let slices = bodies.iter().map(|bodies| part.bytes_of(bodies.clone()));
    slices.collect()
}
