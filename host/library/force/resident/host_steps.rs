//! Bodies in host memory, which takes their block time steps, by forces that devices compute.
//!
//! A device keeps the beginnings of steps, and predicts bodies. At each time the host tells it which bodies begin a
//! step, and on which it wants forces. Both, and the forces, are in memory of the host that kernels reach.
//!
//! Several devices share out the bodies that forces are wanted on, where there are enough of them. Each device has all
//! bodies as sources. Each of several ranks takes all steps, and has one device. It computes small numbers of forces
//! itself, so devices of ranks must compute the same bits.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use gpu_kernels::abi::Params;
use gpu_kernels::entries::Buffer;
use gpu_kernels::schedule::block_steps::{DigitsName, Fourth, Sixth};

use super::Resident;
use super::force_device::{AT_REST, AWAY, ForceDevice};
use crate::backend::{ForceError, HighestDerivative, Neighbours, Targets};
use crate::bodies::Bodies;
use crate::fields::External;
use crate::force::device::Device;
use crate::force::groups;
use crate::force::host_state::{Beginning, HostState};
use crate::force::in_memory::{Block, Forces, InMemory};
use crate::force::pack;
use crate::frame::Frame;
use crate::physics::Physics;
use crate::plan::block_steps::BlockScheme;
use crate::ranks::Team;
use crate::simd::InstructionSet;

/// Bodies in host memory, with forces that devices compute.
pub(crate) struct HostSteps<D: Device> {
    state: HostState,
    digits: DigitsName,
    /// Devices of this process, at least one.
    devices: Vec<ForceDevice<D>>,
    /// Of each device, the slots that changed since it was told last.
    untold: Vec<Slots>,
    /// Ranks that compute together; each of several has one device.
    team: Arc<Team>,
    instructions: InstructionSet,
}

/// Slots, each once.
struct Slots {
    all: Vec<usize>,
    is_in: Vec<bool>,
}

impl Slots {
    fn none(n: usize) -> Self {
        Self {
            all: vec![],
            is_in: vec![false; n],
        }
    }

    fn add(&mut self, slots: &[usize]) {
        for &i in slots {
            if !std::mem::replace(&mut self.is_in[i], true) {
                self.all.push(i);
            }
        }
    }

    /// All of them, in order; none are left.
    fn take(&mut self) -> Vec<usize> {
        let mut all = std::mem::take(&mut self.all);
        all.sort_unstable();
        all.iter().for_each(|&i| self.is_in[i] = false);
        all
    }
}

/// The parts of a number of slots that forces are wanted on.
struct Shares {
    /// Of each device of this process.
    own: Vec<Range<usize>>,
    /// Number of each rank, where these exchange forces; none where each rank computes all.
    of_ranks: Option<Vec<usize>>,
}

impl<D: Device> HostSteps<D> {
    /// Takes block time steps of these bodies on the host, by forces that devices with the same bodies compute.
    ///
    /// # Errors
    /// As [`with_block_steps`](Resident::with_block_steps).
    ///
    /// # Panics
    /// If there is no device.
    pub(crate) fn new(
        devices: Vec<Resident<D>>,
        scheme: BlockScheme,
        bodies: &Bodies,
    ) -> Result<Self, ForceError> {
        assert!(!devices.is_empty(), "somebody has to compute");
        let devices = devices.into_iter();
        let devices = devices.map(|device| ForceDevice::new(device, scheme));
        let devices = devices.collect::<Result<Vec<_>, _>>()?;
        Ok(Self {
            state: HostState::new(bodies),
            digits: scheme.digits,
            untold: devices.iter().map(|_| Slots::none(bodies.len())).collect(),
            devices,
            team: Arc::new(Team::alone()),
            instructions: InstructionSet::detect(),
        })
    }

    /// Shared out among ranks, which have these vector instructions.
    #[must_use]
    pub(crate) fn shared_out(self, team: Arc<Team>, instructions: InstructionSet) -> Self {
        assert_eq!(self.devices.len(), 1, "each rank has one device");
        Self {
            team,
            instructions,
            ..self
        }
    }

    /// In these external fields, which the host computes.
    #[must_use]
    pub(crate) fn in_fields(mut self, external: External) -> Self {
        self.state.external = external;
        self
    }

    /// With groups, and a neighbour scheme if one is asked for: see [`groups`].
    #[must_use]
    pub(crate) fn in_groups(mut self, neighbours: Option<Neighbours>) -> Self {
        groups::begin(&mut self, neighbours);
        self
    }

    /// Shares out forces on so many slots: among as many devices as have more than a few pairs each.
    fn shares(&self, count: usize) -> Shares {
        let ranks = self.team.size();
        let most = ranks * self.devices.len();
        let pairs = (count * self.state.bodies.len()) as u64;
        let parts = (pairs / self.devices[0].few_pairs()).clamp(1, most as u64) as usize;
        let share = |k: usize| k.min(parts) * count / parts..(k + 1).min(parts) * count / parts;
        let exchange = parts > 1 && ranks > 1;
        let first = if exchange { self.team.rank() } else { 0 };
        Shares {
            own: (first..).take(self.devices.len()).map(share).collect(),
            of_ranks: exchange.then(|| (0..ranks).map(|rank| share(rank).len()).collect()),
        }
    }

    /// Waits for the forces on slots that were launched last.
    fn collect(
        &self,
        wanted: HighestDerivative,
        frame: &Frame,
        count: usize,
    ) -> Result<Vec<Forces>, ForceError> {
        let Shares { own, of_ranks } = self.shares(count);
        let mut forces = vec![];
        for (device, share) in self.devices.iter().zip(own) {
            if !share.is_empty() {
                let of_device = device.collect(wanted, frame, share.len())?;
                match forces.is_empty() {
                    true => forces = of_device,
                    false => forces.extend(of_device),
                }
            }
        }
        Ok(match of_ranks {
            Some(counts) => self.team.gather(&forces, &counts),
            None => forces,
        })
    }
}

impl<D: Device> InMemory for HostSteps<D> {
    type Fourth = Fourth;
    type Sixth = Sixth;

    fn physics(&self) -> &Physics {
        &self.devices[0].resident.physics
    }

    fn state(&self) -> &HostState {
        &self.state
    }

    fn state_mut(&mut self) -> &mut HostState {
        &mut self.state
    }

    fn frame(&self) -> Frame {
        Frame::of(&self.state.bodies, self.physics())
    }

    fn rounding(&self) -> f64 {
        self.digits.rounding()
    }

    fn instructions(&self) -> InstructionSet {
        self.instructions
    }

    fn team(&self) -> Option<&Team> {
        Some(&*self.team).filter(|team| !team.is_alone())
    }

    fn pair_forces(
        &self,
        frame: &Frame,
        targets: Targets<'_>,
        derivatives: HighestDerivative,
    ) -> Result<Vec<Forces>, ForceError> {
        let n = self.state.bodies.len();
        let block = Block {
            frame,
            span: 0.0,
            now: 0,
            begun: &vec![0; n],
        };
        let state = &self.state;
        let here = |i: usize| {
            let (x, v) = state.phase(i);
            Beginning {
                x,
                v,
                a: state.accelerations[i],
                ..AT_REST
            }
        };
        let all: Vec<usize> = (0..n).collect();
        let slots = targets.indices(n);
        let begun = (&state.bodies.mass[..], &here);
        for (device, share) in self.devices.iter().zip(self.shares(slots.len()).own) {
            device.launch(derivatives, block, &all, &slots[share], begun)?;
        }
        self.collect(derivatives, frame, slots.len())
    }

    /// Devices predict bodies.
    fn predict_in_block(
        &mut self,
        _live: &[usize],
        _since: &(dyn Fn(usize) -> f64 + Sync),
    ) -> bool {
        false
    }

    fn begin_forces(
        &mut self,
        block: Block<'_>,
        changed: &[usize],
        slots: &[usize],
    ) -> Result<(), ForceError> {
        let HostState {
            bodies, beginnings, ..
        } = &self.state;
        let highest = self.state.order().highest();
        let begun = |i: usize| beginnings[i];
        let begun = (&bodies.mass[..], &begun);
        let shares = self.shares(slots.len()).own;
        for ((device, untold), share) in self.devices.iter().zip(&mut self.untold).zip(shares) {
            if share.is_empty() {
                untold.add(changed);
                continue;
            }
            let all = match untold.all.is_empty() {
                true => Cow::Borrowed(changed),
                false => {
                    untold.add(changed);
                    Cow::Owned(untold.take())
                }
            };
            device.launch(highest, block, &all, &slots[share], begun)?;
        }
        Ok(())
    }

    fn end_forces(&mut self, frame: &Frame, slots: &[usize]) -> Result<Vec<Forces>, ForceError> {
        self.collect(self.state.order().highest(), frame, slots.len())
    }

    fn potential_energy(&self) -> Result<f64, ForceError> {
        let resident = &self.devices[0].resident;
        let frame = &resident.frame;
        let mut bodies = self.state.bodies.clone();
        let away = frame.position_from_local([AWAY, 0.0, 0.0]);
        for i in (0..bodies.len()).filter(|&i| self.state.bodies.mass[i] == 0.0) {
            [bodies.x[i], bodies.y[i], bodies.z[i]] = away;
        }
        let Params { stride, .. } = resident.params;
        let packed = pack::state(&resident.layout, stride, frame, &bodies);
        let state = resident.of(Buffer::state);
        resident.device.upload(state, packed.bytes())?;
        resident.launch_energy()?;
        Ok(resident
            .total_energy(&resident.energy_sums()?, 0.0)
            .potential)
    }
}
