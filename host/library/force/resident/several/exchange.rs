//! One system on the devices of several ranks, of which each has one: what devices of one process copy
//! from each other, ranks exchange from device to device where they can, else through the memory of their hosts.

use std::cell::RefCell;
use std::iter;
use std::ops::{ControlFlow, Range};
use std::sync::Arc;

use gpu_kernels::abi::Share;
use gpu_kernels::entries::Buffer;
use gpu_kernels::schedule::block_steps::neighbours::RegularProgress;
use gpu_kernels::schedule::block_steps::{SPAN, clock, neighbours, targets, targets_by_block};

use super::{Adder, Several};
use crate::backend::ForceError;
use crate::bodies::Bodies;
use crate::force::device::{Peers, Streams};
use crate::force::pack;
use crate::force::resident::Resident;
use crate::force::resident::block_steps::neighbours::FirstStep;
use crate::plan::neighbours::sums_of_parity;
use crate::plan::shares::{SharedRecipe, Union};
use crate::plan::{Limits, Recipe};
use crate::ranks::{Team, UNAVAILABLE};

/// The way from this rank's device to those of the others.
pub(super) struct Exchange<D: Streams> {
    team: Arc<Team>,
    /// Host memory of what is sent, at the places that it has on the device.
    sent: RefCell<Room<D>>,
    /// Host memory of what is received, at the places that it will have on the device.
    received: RefCell<Room<D>>,
    /// Ranks that have terms of a sum that goes from one to the next.
    chain: Vec<usize>,
    /// Numbers of sums that make up the energy, of each rank.
    energies: Vec<usize>,
    /// Buffers of block time steps, where these are taken.
    blocks: Option<BlockExchange<D>>,
}

/// Page-locked memory that grows as it is needed.
struct Room<D: Streams>(Option<(D::HostMemory, usize)>);

/// Bytes of a device's buffer for each rank, or of each; what is this rank's own does not count.
#[derive(Clone, Copy)]
struct Pieces<'a, D: Streams> {
    buffer: &'a D::Buffer,
    of_ranks: &'a [Range<usize>],
}

/// Buffers that an exchange of block time steps needs.
struct BlockExchange<D: Streams> {
    /// Sums over the sources of each rank, with room for so many bytes; not this rank's. None in a neighbour scheme.
    rows: Option<D::Buffer>,
    row: usize,
    /// Host memory of posts and of the clock.
    posts: RefCell<D::HostMemory>,
    time: RefCell<D::HostMemory>,
}

/// Numbers that a device has told its host of a block step before it is done.
struct Told {
    /// Posts of all blocks.
    posts: Vec<u64>,
    /// True if regular sums are joined in it.
    is_swept: bool,
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
        let mut adders = vec![];
        if let Union::Sums { bodies, add } = &union {
            let most = bodies.iter().map(|slice| slice.end - slice.start).max();
            let (mine, most) = (&bodies[rank], most.unwrap_or(0));
            let adder = Adder::new(&part, add, [mine.end - mine.start, most], size)?;
            adders.push(adder);
        }
        let exchange = Exchange {
            team: Arc::clone(team),
            sent: RefCell::new(Room(None)),
            received: RefCell::new(Room(None)),
            chain,
            energies,
            blocks: None,
        };
        Ok(Self {
            devices: vec![device],
            parts: vec![part],
            union,
            adders,
            rows: vec![],
            addresses: vec![],
            record: None,
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
        let state = self.or_end(part.fetch(part.of(Buffer::state), state));
        self.team.check_bodies(crc32fast::hash(state.bytes()));
        self.team.gather(&mine, &self.energies)
    }

    /// Ends all ranks where this one's device fails.
    pub(super) fn or_end<T>(&self, result: Result<T, ForceError>) -> T {
        result.unwrap_or_else(|error| self.team.abort(UNAVAILABLE, &error.to_string()))
    }

    /// As [`Union::Bodies`].
    fn bodies(&self, part: &Resident<D>, bodies: &[Range<u32>]) -> Result<(), ForceError> {
        part.launch_pairs()?;
        let slices = slices(part, bodies);
        let vectors = [Buffer::acceleration, Buffer::jerk];
        let mut vectors = vectors.into_iter().filter_map(|name| part.memory.get(name));
        vectors.try_for_each(|buffer| self.complete(&part.device, buffer, &slices))
    }

    /// As [`Union::Sums`].
    fn sums(
        &self,
        part: &Resident<D>,
        adder: &Adder<D>,
        bodies: &[Range<u32>],
    ) -> Result<(), ForceError> {
        let (rank, device) = (self.team.rank(), &*part.device);
        let slices = slices(part, bodies);
        let mine = slices[rank].clone();
        let place = |from: usize| {
            let at = from * adder.part_bytes;
            at..at + mine.len()
        };
        let places: Vec<_> = (0..slices.len()).map(place).collect();
        part.launch_pairs()?;
        let acceleration = part.of(Buffer::acceleration);
        let sent = Pieces::new(acceleration, &slices);
        self.swap(device, sent, Pieces::new(adder.parts(), &places))?;
        let own = places[rank].start;
        device.copy_from(adder.parts(), own, acceleration, mine.clone())?;
        adder.launch(device)?;
        device.copy_from(acceleration, mine.start, adder.sums(), 0..mine.len())?;
        self.complete(device, acceleration, &slices)
    }

    /// As [`Union::Chain`].
    fn chain(&self, part: &Resident<D>) -> Result<(), ForceError> {
        let (rank, device) = (self.team.rank(), &*part.device);
        let all = part.bytes_of(0..part.params.n);
        let hand = |to: Option<usize>, from: Option<usize>| {
            let only = |other: Option<usize>| -> Vec<_> {
                let bytes = |of| match Some(of) == other {
                    true => all.clone(),
                    false => 0..0,
                };
                (0..self.team.size()).map(bytes).collect()
            };
            let (to, from) = (only(to), only(from));
            let sums = part.of(Buffer::acceleration);
            self.swap(device, Pieces::new(sums, &to), Pieces::new(sums, &from))
        };
        if let Some(place) = self.chain.iter().position(|&of| of == rank) {
            let (terms, sum) = part.terms_and_sum();
            part.carry_out(terms, part.force_params())?;
            if place > 0 {
                hand(None, Some(self.chain[place - 1]))?;
            }
            part.carry_out(sum, part.force_params())?;
            if let Some(&next) = self.chain.get(place + 1) {
                hand(Some(next), None)?;
            }
        }
        let Some(&last) = self.chain.last() else {
            return Ok(());
        };
        let slice = |of: usize| match of == last {
            true => all.clone(),
            false => 0..0,
        };
        let slices: Vec<_> = (0..self.team.size()).map(slice).collect();
        self.complete(device, part.of(Buffer::acceleration), &slices)
    }

    /// Completes a buffer of which each rank's device has such a slice of bytes.
    fn complete(
        &self,
        device: &D,
        buffer: &D::Buffer,
        slices: &[Range<usize>],
    ) -> Result<(), ForceError> {
        let mine = vec![slices[self.team.rank()].clone(); slices.len()];
        self.swap(
            device,
            Pieces::new(buffer, &mine),
            Pieces::new(buffer, slices),
        )
    }

    /// Sends each other rank its piece, and receives its own from each. Two ranks that have nothing for each other
    /// do not exchange.
    fn swap(
        &self,
        device: &D,
        sent: Pieces<'_, D>,
        received: Pieces<'_, D>,
    ) -> Result<(), ForceError> {
        let (rank, size) = (self.team.rank(), self.team.size());
        // In each round a rank has one partner, which has it.
        let partners = (0..size).map(|round| (round + size - rank) % size);
        let partners = partners.filter(|&partner| partner != rank);
        let (to, from) = (
            sent.of_partners(partners.clone()),
            received.of_partners(partners.clone()),
        );
        if to.is_empty() && from.is_empty() {
            return Ok(());
        }
        device.synchronize()?; // what this rank computes is no waiting for others
        let swapped = self.team.waiting("an exchange between GPUs", || {
            device.swap_directly((sent.buffer, &to), (received.buffer, &from))
        });
        if swapped? {
            return Ok(());
        }
        let queue = device.own_stream();
        let (mut out, mut room) = (self.sent.borrow_mut(), self.received.borrow_mut());
        let hulls = [&to, &from].map(|pieces| {
            let bytes = pieces.iter().map(|(_, bytes)| bytes.clone());
            bytes.reduce(hull).unwrap_or_default()
        });
        let [sending, receiving] = hulls;
        let out = out.at_least(device, sending.end)?;
        if !sending.is_empty() {
            device.copy_out(sent.buffer, out, sending, queue)?;
        }
        let room = room.at_least(device, receiving.end)?;
        {
            let (out, room) = (device.read(out)?, device.write(room)?);
            for partner in partners {
                let [sent, received] = [&sent, &received].map(|all| all.of(partner));
                if !(sent.is_empty() && received.is_empty()) {
                    let (sent, received) = (&out[sent], &mut room[received]);
                    self.team.exchange(partner, sent, partner, received);
                }
            }
        }
        for (_, bytes) in from {
            device.copy_in(room, received.buffer, bytes, queue)?;
        }
        Ok(())
    }

    /// Makes room for block time steps on this rank's device.
    pub(super) fn with_blocks(mut self, part: &Resident<D>) -> Result<Self, ForceError> {
        let (device, plan, size) = (&*part.device, part.blocks()?.plan, self.team.size());
        self.blocks = Some(BlockExchange {
            rows: match plan.row {
                0 => None,
                row => Some(device.allocate(size * row)?),
            },
            row: plan.row,
            posts: RefCell::new(device.host_memory(plan.posts, true)?),
            time: RefCell::new(device.host_memory(plan.time, true)?),
        });
        Ok(self)
    }

    fn blocks(&self) -> Result<&BlockExchange<D>, ForceError> {
        self.blocks.as_ref().ok_or(ForceError::NoBlockSteps)
    }

    /// The number of this rank and how many there are.
    pub(super) fn place(&self) -> (usize, usize) {
        (self.team.rank(), self.team.size())
    }

    /// Tells all ranks what rank 0 is told.
    pub(super) fn as_rank_0_says(&self, told: ControlFlow<()>) -> ControlFlow<()> {
        match self.team.as_rank_0_says(told.is_continue()) {
            true => ControlFlow::Continue(()),
            false => ControlFlow::Break(()),
        }
    }

    /// The sums of the other ranks over their sources.
    pub(super) fn rows(&self) -> Result<&D::Buffer, ForceError> {
        self.blocks()?.rows.as_ref().ok_or(ForceError::NoBlockSteps)
    }

    /// Addresses of the sums of all ranks, this one's being in `own`.
    pub(super) fn addresses(&self, device: &D, own: &D::Buffer) -> Result<Vec<u64>, ForceError> {
        let (rows, row) = (self.rows()?, self.blocks()?.row);
        let address = |rank: usize| match rank == self.team.rank() {
            true => device.kept_address(own),
            false => device.kept_address(rows) + (rank * row) as u64,
        };
        Ok((0..self.team.size()).map(address).collect())
    }

    /// Asks this rank's device for the targets of the block step that is about to be launched.
    pub(super) fn ask_for_targets(&self, part: &Resident<D>) -> Result<(), ForceError> {
        let (told, device, plan) = (self.blocks()?, &*part.device, part.blocks()?.plan);
        let ask = |name: Buffer, to: &RefCell<D::HostMemory>, bytes: usize| {
            let (from, stream) = (part.of(name), device.own_stream());
            device.copy_out(from, &mut to.borrow_mut(), 0..bytes, stream)
        };
        ask(Buffer::posts, &told.posts, plan.posts)?;
        ask(Buffer::time, &told.time, plan.time)
    }

    /// Number of those targets, the same on all ranks; none where the span is over.
    pub(super) fn number_of_targets(
        &self,
        part: &Resident<D>,
        parity: u16,
    ) -> Result<Option<usize>, ForceError> {
        let told = self.told(part, parity)?;
        Ok(told.map(|told| targets(&told.posts) as usize))
    }

    /// Numbers that the device has told, the same on all ranks; none where the span is over.
    fn told(&self, part: &Resident<D>, parity: u16) -> Result<Option<Told>, ForceError> {
        let (told, device, parity) = (self.blocks()?, &*part.device, usize::from(parity));
        let words = |memory: &RefCell<D::HostMemory>| -> Result<Vec<u64>, ForceError> {
            let memory = memory.borrow();
            let words = device.read(&memory)?.as_chunks().0.iter();
            Ok(words.map(|&word| u64::from_ne_bytes(word)).collect())
        };
        let time = words(&told.time)?;
        if time[clock::NOW as usize + parity] >= SPAN {
            return Ok(None);
        }
        let posts = words(&told.posts)?;
        let of_parity = posts.chunks(posts.len() / 2).nth(parity);
        Ok(of_parity.map(|posts| Told {
            posts: posts.to_vec(),
            is_swept: RegularProgress::from(time[neighbours::clock::PROGRESS as usize + parity])
                == RegularProgress::Swept,
        }))
    }

    /// Completes the sums of a neighbour scheme, of which each rank has computed those of its bodies. False where
    /// the span is over.
    pub(super) fn complete_sums(
        &self,
        part: &Resident<D>,
        phase: neighbours::Phase,
        parity: u16,
    ) -> Result<bool, ForceError> {
        let of_all = phase == neighbours::Phase::Join;
        if !of_all && phase != neighbours::Phase::Step {
            return Ok(true); // there are no sums yet
        }
        let Some(Told { posts, is_swept }) = self.told(part, parity)? else {
            return Ok(false);
        };
        let (device, own) = (&*part.device, part.neighbours()?);
        let [irregular, regular] = sums_of_parity(parity).map(|name| part.of(name));
        let begins = |which: usize| -> Vec<usize> {
            let counts = targets_by_block(&posts).map(|counts| counts[which] as usize);
            let before = |sum: &mut usize, count| {
                *sum += count;
                Some(*sum)
            };
            iter::once(0).chain(counts.scan(0, before)).collect()
        };
        let complete = |sums: &D::Buffer, begins: &[usize], numbers: u32| {
            let size = self.team.size() as u8;
            let of_rank = |rank: u8| {
                let Share { first: from, end } = own.plan.share_of(rank, size);
                let each = numbers as usize * size_of::<f64>();
                let at = |slice: u32| begins[slice as usize] * each;
                at(from)..at(end)
            };
            self.complete(device, sums, &(0..size).map(of_rank).collect::<Vec<_>>())
        };
        if !of_all {
            // Where regular steps end, sums are read once those are joined: this launch's are handed on until then.
            let waits = !is_swept && begins(1).last() > Some(&0);
            if targets(&posts) == 0 || waits {
                return Ok(true);
            }
            complete(irregular, &begins(0), neighbours::IRREGULAR_SUMS)?;
        }
        if of_all || is_swept {
            complete(regular, &begins(1), neighbours::REGULAR_SUMS)?;
        }
        Ok(true)
    }

    /// The first steps of all bodies, of which this rank has chosen these.
    pub(super) fn all_first_steps(&self, own: &[FirstStep]) -> Vec<FirstStep> {
        self.team.gather_ragged(own).concat()
    }

    /// Exchanges the sums of so many bytes that each rank has computed, this one to `own`.
    pub(super) fn swap_rows(
        &self,
        device: &D,
        own: &D::Buffer,
        bytes: usize,
    ) -> Result<(), ForceError> {
        let (rows, row) = (self.rows()?, self.blocks()?.row);
        let size = self.team.size();
        let (sent, received) = (
            vec![0..bytes; size],
            (0..size).map(|rank| rank * row..rank * row + bytes),
        );
        let received: Vec<_> = received.collect();
        let (sent, received) = (Pieces::new(own, &sent), Pieces::new(rows, &received));
        self.swap(device, sent, received)
    }
}

impl<'a, D: Streams> Pieces<'a, D> {
    const fn new(buffer: &'a D::Buffer, of_ranks: &'a [Range<usize>]) -> Self {
        Self { buffer, of_ranks }
    }

    /// Piece of a rank; an empty one is `0..0`.
    fn of(&self, rank: usize) -> Range<usize> {
        let bytes = self.of_ranks[rank].clone();
        if bytes.is_empty() { 0..0 } else { bytes }
    }

    /// The pieces of these ranks that are not empty.
    fn of_partners(&self, partners: impl Iterator<Item = usize>) -> Vec<(usize, Range<usize>)> {
        let pieces = partners.map(|partner| (partner, self.of(partner)));
        pieces.filter(|(_, bytes)| !bytes.is_empty()).collect()
    }
}

impl<D: Streams> Room<D> {
    /// Memory with room for so many bytes.
    fn at_least(&mut self, device: &D, bytes: usize) -> Result<&mut D::HostMemory, ForceError> {
        let enough = self.0.take().filter(|(_, room)| *room >= bytes);
        let kept = match enough {
            Some(kept) => kept,
            None => {
                let room = bytes.next_power_of_two(); // or each block that is the largest so far would ask for more
                (device.host_memory(room, true)?, room)
            }
        };
        Ok(&mut self.0.insert(kept).0)
    }
}

/// Places of the bodies of all ranks in a buffer of vectors.
fn slices<D: Peers>(part: &Resident<D>, bodies: &[Range<u32>]) -> Vec<Range<usize>> {
    let slices = bodies.iter().map(|bodies| part.bytes_of(bodies.clone()));
    slices.collect()
}

/// The smallest range that has both.
fn hull(one: Range<usize>, other: Range<usize>) -> Range<usize> {
    one.start.min(other.start)..one.end.max(other.end)
}
