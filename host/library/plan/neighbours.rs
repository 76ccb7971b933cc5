//! The plan of block time steps with a neighbour scheme on one device or several.

use std::ops::Range;

use gpu_kernels::abi::{BlockStep, Share};
use gpu_kernels::entries::{self, Entry, Work};
use gpu_kernels::schedule::block_steps::neighbours::{
    IRREGULAR_SUMS, MOST_THREADS, Phase, RECORD, REGULAR_SUMS, REGULAR_TARGET, ROOMS,
    control_bytes, force_bytes, segment_bytes, source_bytes, step_bytes,
};
use gpu_kernels::schedule::block_steps::{MOST_REGULAR, most_of_a_slice};

use super::block_steps::{Part, threads_of};
use super::regular::RegularPlan;
use super::{Buffer, Kernel, Launch, Limits, PlanError, Sizes};

/// Kernels, launches and buffers of block time steps with neighbours.
#[derive(Clone, Copy, Debug)]
pub struct NeighbourPlan {
    /// Number of neighbours wanted for each body.
    pub wanted: u32,
    /// Slices that all bodies are cut into.
    pub slices: u32,
    /// Slices of the bodies that this device computes.
    pub share: Share,
    /// Forces.
    pub force: Kernel,
    /// Lists at the beginning of a span.
    pub search: Kernel,
    /// Ends of steps.
    pub correct: Kernel,
    /// Block steps without regular ones, in one launch: where slices are swept on one device.
    pub step: Option<Kernel>,
    /// First steps.
    pub first: Kernel,
    /// Neighbours in a slice that there is room for.
    pub room: u32,
    /// Entries of a list of neighbours.
    pub entries: u32,
    /// Number of sources that a block loads into shared memory in one batch.
    chunk: u32,
    /// How the host launches regular forces, where it does.
    pub regular: Option<RegularPlan>,
}

/// How the forces of regular steps are computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RegularForces {
    /// All pairs with jerks, by blocks that sweep their slices.
    Swept,
    /// Far pairs without jerks, on tensor cores, by kernels that the host launches.
    ByHost,
}

impl RegularForces {
    /// The faster way for n bodies, on one device that has them all or on several.
    pub fn fastest(is_alone: bool, n: u32) -> Self {
        match is_alone && n >= BY_HOST_FROM {
            true => Self::ByHost,
            false => Self::Swept,
        }
    }
}

/// Bodies from which on the host launches the kernels of regular forces. Runs on an H200 then take 0.91, 0.76 and
/// 0.61 times as long as with sweeps, for 98 304, 131 072 and 262 144 bodies.
pub const BY_HOST_FROM: u32 = 98_304;

/// Irregular and regular sums of a block step of this parity.
pub const fn sums_of_parity(parity: u16) -> [Buffer; 2] {
    match parity {
        0 => [Buffer::irregular_sums, Buffer::regular_sums],
        _ => [Buffer::irregular_before, Buffer::regular_before],
    }
}

/// Names under which kernels find the sums of this parity, in place of the names of their parameters. The sums of one
/// parity are read while the sums of the next are written.
pub fn of_parity(parity: u16) -> Vec<(Buffer, Buffer)> {
    let parities = if parity == 0 { [0, 1] } else { [1, 0] };
    let buffers = parities.into_iter().flat_map(sums_of_parity);
    let parameters = [0, 1].into_iter().flat_map(sums_of_parity);
    parameters.zip(buffers).collect()
}

impl NeighbourPlan {
    /// The scalars of a launch; `devices` is the number of devices with sums to read by address, or 0.
    pub const fn params(&self, phase: Phase, parity: u16, devices: u8) -> BlockStep {
        BlockStep {
            parity,
            phase: phase as u8,
            devices,
            chunk: self.chunk,
        }
    }

    /// The bodies of `n` in the order of their places.
    pub fn by_places(&self, n: u32) -> impl Iterator<Item = u32> + use<> {
        let slices = self.slices;
        (0..slices).flat_map(move |slice| (slice..n).step_by(slices as usize))
    }

    /// Slices of the bodies that one of `devices` devices computes.
    pub fn share_of(&self, device: u8, devices: u8) -> Share {
        share_of(self.slices, device, devices)
    }

    /// Places of the bodies that this device computes.
    pub fn places(&self, n: u32) -> Range<usize> {
        let Share { first, end } = self.share;
        first_place(first, self.slices, n) as usize..first_place(end, self.slices, n) as usize
    }

    /// Buffers that a neighbour scheme of `n` bodies adds to block time steps.
    pub fn buffers(&self, n: u32) -> Sizes {
        let (bodies, slices) = (n as usize, self.slices as usize);
        let places = slices * most_of_a_slice(n, self.slices) as usize;
        let own = self.places(n).len().max(1); // no device has a buffer of nothing
        let numbers = |count: u32| bodies * count as usize * size_of::<f64>();
        let vectors = |count: usize| count * 4 * size_of::<f32>();
        let records = vectors(bodies * RECORD as usize);
        let segment = segment_bytes(self.room) as usize;
        let mut all = vec![
            // Of both parities where block steps are in one launch.
            (
                Buffer::records,
                records * (1 + usize::from(self.step.is_some())),
            ),
            (
                Buffer::lists,
                own * self.entries as usize * size_of::<u32>(),
            ),
            (Buffer::counts, bodies * size_of::<u32>()),
            (Buffer::spheres, bodies * size_of::<[f64; 2]>()),
            (Buffer::regular_steps, bodies * size_of::<u64>()),
            (Buffer::irregular_targets, places * size_of::<u64>()),
            (
                Buffer::regular_targets,
                vectors(places * REGULAR_TARGET as usize),
            ),
            (Buffer::irregular_sums, numbers(IRREGULAR_SUMS)),
            (Buffer::irregular_before, numbers(IRREGULAR_SUMS)),
            (Buffer::regular_sums, numbers(REGULAR_SUMS)),
            (Buffer::regular_before, numbers(REGULAR_SUMS)),
            (
                Buffer::segments,
                match self.regular {
                    None => own * slices * segment,
                    Some(_) => segment, // no slice is swept
                },
            ),
        ];
        all.extend(self.regular.iter().flat_map(RegularPlan::buffers));
        all
    }
}

fn share_of(slices: u32, device: u8, devices: u8) -> Share {
    let (device, devices) = (u32::from(device), u32::from(devices));
    Share {
        first: device * slices / devices,
        end: (device + 1) * slices / devices,
    }
}

/// Place of the first body of a slice, or behind the last one, of `n` bodies in so many slices.
fn first_place(slice: u32, slices: u32, n: u32) -> u32 {
    slice * (n / slices) + slice.min(n % slices)
}

/// By how much lists grow beyond what is wanted, where many bodies come near at once: measured in
/// Plummer spheres, 2 to 2.6 times.
pub(super) const LONGEST: f64 = 2.6;

/// Room for neighbours in a slice: the mean of the longest lists and six standard deviations, or all
/// bodies. Those without room count as regular.
fn room(wanted: u32, slices: u32, most: u32) -> u32 {
    let mean = LONGEST * f64::from(wanted) / f64::from(slices);
    let room = (mean + 6.0 * mean.sqrt()).ceil() as u32;
    room.min(most).next_multiple_of(ROOMS)
}

/// The plan of a device for `n` bodies in so many slices, which external fields accelerate too or not.
///
/// # Errors
/// If the kernels find no room on the device.
pub fn plan(
    (wanted, forces): (u32, RegularForces),
    part: Part,
    external: bool,
    n: u32,
    slices: u32,
    limits: &Limits,
) -> Result<NeighbourPlan, PlanError> {
    let force = entries::of(Work::NeighbourForce { search: false });
    if n == 0 {
        return Err(PlanError::NoBodies {
            kernel: force.symbol,
        });
    }
    let most = most_of_a_slice(n, slices);
    if most > MOST_REGULAR {
        return Err(PlanError::TooManyBodies {
            kernel: force.symbol,
            n: n as usize,
            most: MOST_REGULAR * slices,
        });
    }
    let source = source_bytes();
    let beside = |threads| force_bytes(threads, slices);
    let (threads, chunk) = threads_of((most, slices), (beside, source), limits);
    let launch = |kernel: &'static Entry, bytes: u32| {
        Launch::of_slices(kernel, (slices, threads), bytes, limits)
    };
    let of_forces = beside(threads) + chunk * source;
    let correct = entries::of(Work::NeighbourCorrect { external });
    if slices > MOST_THREADS {
        return Err(PlanError::TooManyThreads {
            kernel: correct.symbol,
            threads: slices,
            most: MOST_THREADS,
        });
    }
    let few = threads.min(MOST_THREADS);
    let of_few = (slices, few);
    let room = match wanted >= n - 1 {
        true => most.next_multiple_of(ROOMS), // all others are neighbours
        false => room(wanted, slices, most),
    };
    let share = match part {
        Part::Alone | Part::Forces => share_of(slices, 0, 1),
        Part::OfSeveral { device, devices } => share_of(slices, device, devices),
    };
    let regular = (forces == RegularForces::ByHost)
        .then(|| RegularPlan::new(wanted, n, (slices, few), limits));
    let is_in_one = part == Part::Alone && forces == RegularForces::Swept;
    let step = is_in_one.then(|| {
        let step = entries::of(Work::NeighbourStep { external });
        Launch::of_slices(step, of_few, step_bytes(few, slices), limits)
    });
    let entries = regular.map_or(room * slices, |plan| plan.room);
    Ok(NeighbourPlan {
        wanted,
        slices,
        share,
        force: launch(force, of_forces)?,
        search: launch(
            entries::of(Work::NeighbourForce { search: true }),
            of_forces,
        )?,
        correct: Launch::of_slices(correct, of_few, control_bytes(few, slices), limits)?,
        step: step.transpose()?,
        first: launch(entries::of(Work::NeighbourFirst), 0)?,
        room,
        entries,
        chunk,
        regular,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn launches_fit_every_gpu() {
        let h200 = Limits {
            block_threads: 1024,
            shared_bytes: 227 * 1024,
        };
        for (limits, slices) in [
            (Limits::EVERYWHERE, 4),
            (Limits::EVERYWHERE, 48),
            (h200, 132),
        ] {
            for n in [1_u32, 2, 100, 4_096, 65_536, 1 << 20] {
                let slices = slices.min(n);
                let most = n.div_ceil(slices);
                for wanted in [1, 64, 1_024] {
                    let planned = plan(
                        (wanted, RegularForces::Swept),
                        Part::Alone,
                        true,
                        n,
                        slices,
                        &limits,
                    );
                    if most > MOST_REGULAR {
                        assert!(matches!(planned, Err(PlanError::TooManyBodies { .. })));
                        continue;
                    }
                    let plan = planned.expect("it fits");
                    let step = plan.step.expect("one device that sweeps");
                    for (_, launch) in [plan.force, plan.search, plan.correct, step] {
                        let threads = launch.block[0];
                        assert!(threads.is_power_of_two() && threads >= launch.grid[0]);
                        assert!(launch.shared_bytes <= limits.shared_bytes);
                    }
                    assert!((1..=most).contains(&plan.chunk) && plan.room.is_multiple_of(ROOMS));
                }
            }
        }
    }

    /// On an H200: blocks as large as registers allow, and the room that was measured to suffice.
    #[test]
    fn an_h200_is_filled() {
        let limits = Limits {
            block_threads: 1024,
            shared_bytes: 227 * 1024,
        };
        let plan = plan(
            (1_024, RegularForces::Swept),
            Part::Alone,
            false,
            1 << 20,
            132,
            &limits,
        )
        .expect("it fits");
        assert_eq!((plan.force.1.block[0], plan.room), (512, 48));
    }

    /// Every body is computed by one device, which has memory for the lists of its bodies only.
    #[test]
    fn devices_share_the_bodies() {
        for (n, slices, devices) in [(1, 4, 2), (7, 4, 3), (1_001, 4, 5), (4_096, 132, 8)] {
            let plan = |part| {
                let planned = plan(
                    (8, RegularForces::Swept),
                    part,
                    false,
                    n,
                    slices.min(n),
                    &Limits::EVERYWHERE,
                );
                planned.expect("it fits")
            };
            let lists_of = |plan: &NeighbourPlan| {
                let buffers = plan.buffers(n).into_iter();
                let mut lists = buffers.filter(|(name, _)| *name == Buffer::lists);
                lists.next().map_or(0, |(_, bytes)| bytes)
            };
            let alone = plan(Part::Alone);
            assert_eq!(alone.places(n), 0..n as usize);
            let mut bodies: Vec<u32> = alone.by_places(n).collect();
            let (mut end, mut lists) = (0, 0);
            for device in 0..devices {
                let part = plan(Part::OfSeveral { device, devices });
                assert_eq!(part.places(n).start, end);
                end = part.places(n).end;
                lists += lists_of(&part);
            }
            assert_eq!(end, n as usize);
            // Devices without bodies have room for one.
            let of_a_body = lists_of(&alone) / n as usize;
            let empty = usize::from(devices).saturating_sub(alone.slices as usize);
            assert_eq!(lists, lists_of(&alone) + empty * of_a_body);
            bodies.sort_unstable();
            assert!(bodies.into_iter().eq(0..n));
        }
    }
}
