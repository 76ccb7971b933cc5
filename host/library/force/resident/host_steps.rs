//! Bodies in host memory, which takes their block time steps, by forces that a device computes.
//!
//! The device keeps the beginnings of steps, and predicts bodies. At each time the host tells it which bodies begin a
//! step, and on which it wants forces. Both, and the forces, are in memory of the host that kernels reach.

use std::cell::RefCell;

use cuda_driver::Graph;
use gpu_kernels::abi::Params;
use gpu_kernels::schedule::block_steps::{
    DigitsName, Fourth, Phase, Sixth, TOLD_HEAD, told_of_body,
};
use rayon::prelude::*;

use super::Resident;
use crate::backend::{ForceError, GUARD, HighestDerivative, Neighbours, Targets};
use crate::bodies::Bodies;
use crate::fields::External;
use crate::force::device::Device;
use crate::force::groups;
use crate::force::host_state::{Beginning, HostState};
use crate::force::in_memory::{Block, Forces, InMemory, order};
use crate::force::pack;
use crate::frame::Frame;
use crate::physics::Physics;
use crate::plan::block_steps::{BlockKernels, BlockScheme, Part};
use crate::variants::Bus;

/// Distance, in units of length of the frame, at which bodies without mass are: they must be near nobody.
const AWAY: f64 = (1_u64 << 40) as f64;

/// A body that is at the origin and stays there.
const AT_REST: Beginning = Beginning {
    x: [0.0; 3],
    v: [0.0; 3],
    a: [0.0; 3],
    j: [0.0; 3],
    s: [0.0; 3],
    c: [0.0; 3],
};

/// The part of a force that rounding may change where pairs are in f32 and positions in two: 32 of its units, because
/// forces of nearby bodies cancel. With 4 of them a heavy star of a cluster takes ten times as many steps as in f64. With
/// 16 it takes a few more.
const ROUNDING_OF_MIXED: f64 = 1.0 / (1 << 19) as f64;

/// Records that one thread writes sooner than others are woken.
const RECORDS_OF_A_TASK: usize = 256;

/// Vector and another number of a record.
type Told = [f64; 4];

/// Bodies in host memory, with forces that a device computes.
pub(crate) struct HostSteps<D: Device> {
    state: HostState,
    resident: Resident<D>,
    digits: DigitsName,
    told: D::Buffer,
    forces: D::Buffer,
    /// Launches of a force of fourth order, and of sixth.
    records: RefCell<[Option<Graph>; 2]>,
}

impl<D: Device> Resident<D> {
    /// Takes block time steps on the host, by forces of these bodies that the device computes.
    ///
    /// # Errors
    /// As [`with_block_steps`](Self::with_block_steps).
    pub(crate) fn with_host_steps(
        self,
        scheme: BlockScheme,
        bodies: &Bodies,
    ) -> Result<HostSteps<D>, ForceError> {
        let digits = scheme.digits;
        let resident = self.with_part_of_block_steps(scheme, Part::Forces, GUARD)?;
        let plan = resident.blocks()?.plan;
        let on_host = |bytes| resident.device.allocate_for_host(bytes, Bus::Mapped);
        Ok(HostSteps {
            state: HostState::new(bodies),
            digits,
            told: on_host(plan.told)?,
            forces: on_host(plan.row)?,
            records: RefCell::default(),
            resident,
        })
    }

    /// Forces on what the host tells.
    fn launch_told_force(
        &self,
        kernels: &BlockKernels,
        told: &D::Buffer,
        forces: &D::Buffer,
    ) -> Result<(), ForceError> {
        let blocks = self.blocks()?;
        let (entry, launch) = kernels.take_over.ok_or(ForceError::NoBlockSteps)?;
        let [state, acceleration, jerk, higher, begun] = self.of_bodies()?;
        let buffers = [
            told,
            state,
            acceleration,
            jerk,
            higher,
            begun,
            &blocks.targets,
            &blocks.posts,
            &blocks.time,
        ];
        let params = self.block_params(kernels, Phase::Step, 0)?;
        // SAFETY: state and vectors in f64, of which `higher` has twice as many, and the buffers that the plan sized
        // for both orders; `told` has at most n bodies, each once, and at most n targets.
        unsafe { self.device.launch(entry, launch, &buffers, params)? };
        self.launch_block_force(kernels, 0)?;
        self.launch_block_gather(kernels, 0, forces)
    }
}

impl<D: Device> HostSteps<D> {
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

    /// Launches forces on slots. Steps of the bodies that changed begin from what `begun` says.
    fn launch(
        &self,
        derivatives: HighestDerivative,
        block: Block<'_>,
        changed: &[usize],
        slots: &[usize],
        begun: impl Fn(usize) -> Beginning + Sync,
    ) -> Result<(), ForceError> {
        let resident = &self.resident;
        let masses = &self.state.bodies.mass;
        let (kernels, which) = self.kernels(derivatives)?;
        let frame = block.frame;
        let [of_a, of_j, of_s, of_c] = [2, 3, 4, 5].map(|k| frame.time.powi(k) / frame.length);
        let record = |told: &mut [Told], i: usize| {
            let is_free = masses[i] == 0.0;
            let Beginning { x, v, a, j, s, c } = match is_free {
                true => AT_REST,
                false => begun(i),
            };
            let place = match is_free {
                true => [AWAY, 0.0, 0.0],
                false => frame.position_to_local(x),
            };
            let with = |[x, y, z]: [f64; 3], w| [x, y, z, w];
            let scaled = |[x, y, z]: [f64; 3], unit: f64, w| [x * unit, y * unit, z * unit, w];
            let mass = frame.mass_to_local(masses[i]);
            told[0] = with(place, mass);
            told[1] = with(frame.velocity_to_local(v), i as f64);
            told[2] = scaled(a, of_a, block.begun[i] as f64);
            told[3] = scaled(j, of_j, 0.0);
            if let [.., snap, crackle] = &mut told[4..] {
                *snap = scaled(s, of_s, 0.0);
                *crackle = scaled(c, of_c, 0.0);
            }
        };
        resident.device.on_host(&self.told, &mut |bytes| {
            let told: &mut [Told] = bytemuck::cast_slice_mut(bytes);
            let (head, bodies) = told.split_at_mut(TOLD_HEAD as usize);
            // Before the first tick all are where their steps begin.
            let (before, span) = match block.now {
                0 => (0, 0.0),
                now => (now - 1, frame.time_to_local(block.span)),
            };
            let counts = [changed.len(), slots.len()].map(|count| count as f64);
            head[0] = [counts[0], counts[1], before as f64, span];
            let size = told_of_body(kernels.order) as usize;
            let (changes, targets) = bodies.split_at_mut(size * changed.len());
            for (records, all) in [(changes, changed), (targets, slots)] {
                let records = records.par_chunks_exact_mut(size).zip(all);
                let records = records.with_min_len(RECORDS_OF_A_TASK);
                records.for_each(|(told, &i)| record(told, i));
            }
        })?;
        // SAFETY: `self` holds the buffers as long as the record.
        unsafe {
            let mut all = || resident.launch_told_force(&kernels, &self.told, &self.forces);
            let kept = &mut self.records.borrow_mut()[which];
            resident.device.again(kept, &mut all)
        }
    }

    /// Kernels that compute these derivatives, and the place of their record.
    fn kernels(&self, derivatives: HighestDerivative) -> Result<(BlockKernels, usize), ForceError> {
        let plan = self.resident.blocks()?.plan;
        Ok(match (derivatives, plan.order) {
            (HighestDerivative::Snap, _) | (_, 6) => (plan.first, 1),
            _ => (plan.steps, 0),
        })
    }

    /// Waits for the forces that were launched last.
    fn collect(
        &self,
        wanted: HighestDerivative,
        frame: &Frame,
        slots: &[usize],
    ) -> Result<Vec<Forces>, ForceError> {
        let resident = &self.resident;
        let (kernels, _) = self.kernels(wanted)?;
        let coupling = frame.coupling_to_local(&resident.physics);
        let units = [2, 3, 4].map(|k| coupling * frame.length / frame.time.powi(k));
        let each = kernels.row_bytes() / size_of::<Told>();
        let mut forces = vec![];
        resident.device.on_host(&self.forces, &mut |bytes| {
            let sums: &[Told] = bytemuck::cast_slice(bytes);
            let of = |sums: &[Told]| {
                let mut derivatives = [[0.0; 3]; 3];
                let vectors = derivatives[..=order(wanted)].iter_mut();
                for ((into, &[x, y, z, _]), unit) in vectors.zip(sums).zip(units) {
                    *into = [x, y, z].map(|sum| unit * sum);
                }
                Forces {
                    derivatives,
                    // The device has three times the rate.
                    approach: sums[0][3] / (3.0 * frame.time),
                    nearest: frame.length / sums[1][3].sqrt(),
                }
            };
            let all = sums.par_chunks_exact(each).take(slots.len());
            forces = all.with_min_len(RECORDS_OF_A_TASK).map(of).collect();
        })?;
        Ok(forces)
    }
}

impl<D: Device> InMemory for HostSteps<D> {
    type Fourth = Fourth;
    type Sixth = Sixth;

    fn physics(&self) -> &Physics {
        &self.resident.physics
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
        match self.digits {
            DigitsName::Double => 0.0,
            DigitsName::Single | DigitsName::Mixed => ROUNDING_OF_MIXED,
        }
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
        let (all, slots): (Vec<usize>, _) = ((0..n).collect(), targets.indices(n));
        self.launch(derivatives, block, &all, &slots, here)?;
        self.collect(derivatives, frame, &slots)
    }

    /// The device predicts bodies.
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
        let HostState { beginnings, .. } = &self.state;
        let highest = self.state.order().highest();
        self.launch(highest, block, changed, slots, |i| beginnings[i])
    }

    fn end_forces(&mut self, frame: &Frame, slots: &[usize]) -> Result<Vec<Forces>, ForceError> {
        self.collect(self.state.order().highest(), frame, slots)
    }

    fn potential_energy(&self) -> Result<f64, ForceError> {
        let resident = &self.resident;
        let frame = &resident.frame;
        let mut bodies = self.state.bodies.clone();
        let away = frame.position_from_local([AWAY, 0.0, 0.0]);
        for i in (0..bodies.len()).filter(|&i| self.state.bodies.mass[i] == 0.0) {
            [bodies.x[i], bodies.y[i], bodies.z[i]] = away;
        }
        let Params { stride, .. } = resident.params;
        let packed = pack::state(&resident.layout, stride, frame, &bodies);
        resident.device.upload(&resident.state, packed.bytes())?;
        resident.launch_energy()?;
        Ok(resident
            .total_energy(&resident.energy_sums()?, 0.0)
            .potential)
    }
}
