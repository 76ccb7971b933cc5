//! Sums over pairs and their derivatives on a device, of independent systems: for arrays on the host, and for arrays
//! that another library has on the device.

use std::sync::Arc;

use gpu_kernels::abi::Params;
use gpu_kernels::entries::{Buffer, Entry, SumStage};
use gpu_kernels::numerics::Precision;
use gpu_kernels::schedule::pair_sums::{Scalar, SumName};

use super::cpu::gradients::{Asked, Trajectory};
use super::device::Device;
use super::in_place::Shared;
use super::memory::Memory;
use crate::backend::ForceError;
use crate::integrator::Stage;
use crate::plan::pair_sums::{self as plan, KernelLaunch};
pub use crate::plan::pair_sums::{Sweep, SystemsShape};

/// A value of bodies, or a derivative, to be computed. Its arguments are positions, masses and softening lengths, and
/// then those that are named here.
#[derive(Clone, Copy, Debug)]
pub enum SumTask {
    /// Accelerations.
    Accelerations,
    /// Rates of accelerations along rates of positions, masses and softening, which are the arguments.
    Tangent,
    /// Derivatives of `Σ λ·a` by positions, and by masses and softening where asked for. The argument is λ.
    Pull {
        /// Derivatives that are asked for.
        asked: Asked,
        /// The accelerations are the first result.
        with_accelerations: bool,
    },
    /// Potentials.
    Potentials,
    /// Rates of potentials, as of [`Tangent`](SumTask::Tangent).
    PotentialTangent,
    /// Derivatives of `Σ λ φ` by positions, masses and softening. The argument is λ.
    PotentialPull,
    /// Last positions and velocities, and what rounding to the arrays takes from both. The arguments are velocities and
    /// the time step.
    Trajectory(Trajectory),
    /// Derivatives of a function of the last state by positions, masses, softening, velocities and the time step. The
    /// arguments are velocities and the time step, the results of [`Trajectory`](SumTask::Trajectory), and derivatives by
    /// the last positions and velocities. What is not asked for is 0.
    TrajectoryPull {
        /// The trajectory.
        trajectory: Trajectory,
        /// Derivatives that are asked for.
        asked: Asked,
        /// The largest derivative by positions and velocities on the way is the last result.
        with_largest: bool,
    },
}

/// A task for some bodies.
#[derive(Clone, Copy, Debug)]
pub struct Call {
    /// The task.
    pub task: SumTask,
    /// The bodies.
    pub shape: SystemsShape,
    /// Precision of the pairs: f32 or f64.
    pub pairs: Precision,
    /// Precision of the arrays: f32 or f64.
    pub arrays: Precision,
    /// The way through the pairs.
    pub way: Sweep,
}

/// Sums over pairs on a device. Where bodies coincide and there is no softening, a derivative is no number.
pub trait PairSums: Send {
    /// Results of a call, of arrays of f64 on the host: the numbers of all systems, one after another.
    ///
    /// # Errors
    /// The machine's refusal, or too little memory.
    ///
    /// # Panics
    /// If arrays have other lengths than the call says, or are not of f64.
    fn compute(&mut self, call: &Call, arguments: &[Vec<f64>])
    -> Result<Vec<Vec<f64>>, ForceError>;

    /// Queues a call of arrays on the device, by their addresses: after all work that is in `stream`, and before all
    /// that follows there.
    ///
    /// # Safety
    /// Arguments and results are memory of the device, as long as the call says. They stay there until the work that follows
    /// in the stream. `stream` is a stream of the device, or the driver's number of a default stream.
    ///
    /// # Errors
    /// The machine's refusal, or too little memory.
    unsafe fn compute_in_place(
        &mut self,
        call: &Call,
        arguments: &[u64],
        results: &[u64],
        stream: u64,
    ) -> Result<(), ForceError>;
}

/// Place of an array's numbers: in the planes of a buffer from `first` on.
#[derive(Clone, Copy, Debug)]
struct Column {
    place: Buffer,
    first: u32,
    /// Numbers of a body; 0 for one number of a system.
    width: u32,
    /// True if the array is what rounding takes from the numbers.
    is_rest: bool,
}

const fn column(place: Buffer, first: u32, width: u32) -> Column {
    Column {
        place,
        first,
        width,
        is_rest: false,
    }
}

const fn scalar(scalar: Scalar) -> Column {
    column(Buffer::scalars, scalar as u32, 0)
}

const POSITIONS: Column = column(Buffer::planes, 0, 3);
const MASSES: Column = column(Buffer::planes, 3, 1);
const VECTOR: Column = column(Buffer::planes, 4, 3);
const VELOCITIES: Column = column(Buffer::velocities, 0, 3);

impl Column {
    const fn rest(self) -> Self {
        Self {
            is_rest: true,
            ..self
        }
    }

    /// Numbers of its array.
    fn numbers(self, shape: SystemsShape) -> usize {
        match self.width {
            0 => shape.systems,
            width => shape.total() * width as usize,
        }
    }
}

impl SumTask {
    fn sum(self) -> Option<SumName> {
        Some(match self {
            Self::Accelerations => SumName::Force,
            Self::Tangent => SumName::Tangent,
            Self::Pull { asked, .. } => pull(asked),
            Self::Potentials => SumName::Potential,
            Self::PotentialTangent => SumName::PotentialTangent,
            Self::PotentialPull => SumName::PotentialPull,
            Self::Trajectory(_) | Self::TrajectoryPull { .. } => return None,
        })
    }

    /// Places of the arguments; none where they are not needed.
    fn arguments(self) -> Vec<Option<Column>> {
        let begun = [POSITIONS, MASSES, scalar(Scalar::Softening)];
        let rate = column(Buffer::planes, 7, 1);
        let more = match self {
            Self::Accelerations | Self::Potentials => vec![],
            Self::Tangent | Self::PotentialTangent => {
                vec![VECTOR, rate, scalar(Scalar::SofteningRate)]
            }
            Self::Pull { .. } => vec![VECTOR],
            Self::PotentialPull => vec![column(Buffer::planes, 4, 1)],
            Self::Trajectory(_) => vec![VELOCITIES, scalar(Scalar::Step)],
            Self::TrajectoryPull { .. } => {
                let [_, mass, softening] = begun;
                let last = [
                    POSITIONS,
                    VELOCITIES,
                    POSITIONS.rest(),
                    VELOCITIES.rest(),
                    column(Buffer::derivatives, 0, 3),
                    VECTOR,
                ];
                // The way back begins at the last state.
                let begun = [
                    None,
                    Some(mass),
                    Some(softening),
                    None,
                    Some(scalar(Scalar::Step)),
                ];
                return begun.into_iter().chain(last.map(Some)).collect();
            }
        };
        begun.into_iter().chain(more).map(Some).collect()
    }

    /// Places of the results. One number of a system is the sum of a plane, if it is no scalar.
    fn results(self) -> Vec<Column> {
        let of = |first, width| column(Buffer::results, first, width);
        match self {
            Self::Accelerations | Self::Tangent => vec![of(0, 3)],
            Self::Potentials | Self::PotentialTangent => vec![of(0, 1)],
            Self::PotentialPull => vec![of(0, 3), of(3, 1), of(4, 0)],
            Self::Pull {
                asked,
                with_accelerations,
            } => {
                let all = [
                    (with_accelerations, of(0, 3)),
                    (true, of(3, 3)),
                    (asked.masses, of(6, 1)),
                    (asked.softening, of(7, 0)),
                ];
                let wanted = all.into_iter().filter(|&(wanted, _)| wanted);
                wanted.map(|(_, column)| column).collect()
            }
            Self::Trajectory(_) => vec![POSITIONS, VELOCITIES, POSITIONS.rest(), VELOCITIES.rest()],
            Self::TrajectoryPull { with_largest, .. } => {
                let by = |first, width| column(Buffer::derivatives, first, width);
                let mut all = vec![by(0, 3), by(3, 1), by(4, 0), VECTOR, by(5, 0)];
                all.extend(with_largest.then_some(scalar(Scalar::Largest)));
                all
            }
        }
    }
}

/// The sum that gives accelerations and what is asked for.
fn pull(asked: Asked) -> SumName {
    match asked.masses || asked.softening {
        true => SumName::PullAll,
        false => SumName::Pull,
    }
}

/// Arrays of a call on the way to a device and back.
trait Arrays<D: Device> {
    /// Copies an argument to the beginning of a buffer.
    fn take(
        &mut self,
        device: &D,
        argument: usize,
        bytes: usize,
        to: &D::Buffer,
    ) -> Result<(), ForceError>;
    /// Copies a result from the beginning of a buffer.
    fn give(
        &mut self,
        device: &D,
        result: usize,
        bytes: usize,
        from: &D::Buffer,
    ) -> Result<(), ForceError>;
}

/// Arrays of f64 on the host.
struct OnHost<'a> {
    arguments: &'a [Vec<f64>],
    results: Vec<Vec<f64>>,
}

impl<D: Device> Arrays<D> for OnHost<'_> {
    fn take(
        &mut self,
        device: &D,
        argument: usize,
        bytes: usize,
        to: &D::Buffer,
    ) -> Result<(), ForceError> {
        let numbers = &self.arguments[argument];
        assert_eq!(size_of_val(&numbers[..]), bytes, "argument {argument}");
        device.upload(to, numbers)
    }

    fn give(
        &mut self,
        device: &D,
        _: usize,
        bytes: usize,
        from: &D::Buffer,
    ) -> Result<(), ForceError> {
        let mut numbers = vec![0.0; bytes / size_of::<f64>()];
        device.download(from, &mut numbers)?;
        self.results.push(numbers);
        Ok(())
    }
}

/// Arrays on the device.
struct InPlace<'a> {
    arguments: &'a [u64],
    results: &'a [u64],
}

impl<D: Shared> Arrays<D> for InPlace<'_> {
    fn take(
        &mut self,
        device: &D,
        argument: usize,
        bytes: usize,
        to: &D::Buffer,
    ) -> Result<(), ForceError> {
        // SAFETY: the caller of `compute_in_place` says that the argument is as long.
        unsafe { device.copy_from_address(self.arguments[argument], bytes, to) }
    }

    fn give(
        &mut self,
        device: &D,
        result: usize,
        bytes: usize,
        from: &D::Buffer,
    ) -> Result<(), ForceError> {
        // SAFETY: the caller of `compute_in_place` says that the result has room.
        unsafe { device.copy_to_address(from, self.results[result], bytes) }
    }
}

/// Rooms that are kept for calls to come, at most: they hold memory of the device.
const MOST_ROOMS: usize = 4;

/// A device with room for some shapes.
pub(crate) struct OnDevice<D: Device> {
    devices: Devices<D>,
    /// The last used at the end.
    rooms: Vec<Room<D>>,
}

/// The same device, by the precision of pairs: kernels of f32 may be compiled otherwise.
pub(crate) struct Devices<D> {
    /// For pairs in f32.
    pub(crate) single: Arc<D>,
    /// For pairs in f64.
    pub(crate) double: Arc<D>,
}

impl<D> Devices<D> {
    fn of(&self, pairs: Precision) -> Arc<D> {
        Arc::clone(match pairs {
            Precision::F64 => &self.double,
            _ => &self.single,
        })
    }
}

/// Buffers for bodies of a shape.
struct Room<D: Device> {
    shape: SystemsShape,
    pairs: Precision,
    way: Sweep,
    params: Params,
    memory: Memory<D>,
    /// Bytes of the [partial sums](Buffer::sums) that there is room for.
    partial: usize,
}

impl<D: Device> Room<D> {
    fn new(device: &D, call: &Call) -> Result<Self, ForceError> {
        let Call {
            shape, pairs, way, ..
        } = *call;
        let params = plan::params(shape)?;
        let mut memory = Memory::new();
        memory.allocate(device, &plan::buffers(shape, pairs))?;
        Ok(Self {
            shape,
            pairs,
            way,
            params,
            memory,
            partial: 0,
        })
    }

    fn launch(&self, device: &D, step: KernelLaunch) -> Result<(), ForceError> {
        let kernel = (step.entry, step.launch);
        self.memory.launch(device, kernel, step.params)
    }

    fn array(&self) -> &D::Buffer {
        self.memory.of(Buffer::array)
    }

    /// Launches a stage for the rows of a column, which lies in `place` from `first` on.
    fn of_column(
        &self,
        device: &D,
        stage: &'static Entry,
        column: Column,
        (place, first): (Buffer, u32),
    ) -> Result<(), ForceError> {
        let rows = self.rows(column);
        let mut params = Params {
            stride: rows,
            partials: column.width.max(1),
            ..self.params
        };
        params.share.first = first;
        params.share.end = column.is_rest.into();
        let step = plan::elementwise(stage, rows, params, &device.limits())?;
        let renamed = [(Buffer::planes, place)];
        self.memory
            .launch_renamed(device, (step.entry, step.launch), &renamed, step.params)
    }

    /// Puts the array that is on its way into its place.
    fn load(&self, device: &D, column: Column, arrays: Precision) -> Result<(), ForceError> {
        let stage = plan::stage(SumStage::Load, arrays);
        self.of_column(device, stage, column, (column.place, column.first))
    }

    /// Puts what is in a place into the array that goes out.
    fn store(&self, device: &D, column: Column, arrays: Precision) -> Result<(), ForceError> {
        let stage = plan::stage(SumStage::Store, arrays);
        if column.width > 0 || column.place == Buffer::scalars {
            return self.of_column(device, stage, column, (column.place, column.first));
        }
        let mut params = self.params;
        params.share.first = column.first;
        let step = plan::by_system(SumStage::BySystem, params);
        let renamed = [(Buffer::planes, column.place)];
        self.memory
            .launch_renamed(device, (step.entry, step.launch), &renamed, step.params)?;
        self.of_column(device, stage, column, (Buffer::by_system, 0))
    }

    fn rows(&self, column: Column) -> u32 {
        match column.width {
            0 => self.shape.systems as u32,
            _ => self.params.stride,
        }
    }

    /// Computes a sum of the numbers that are there.
    fn sum(&mut self, device: &D, name: SumName) -> Result<(), ForceError> {
        let (limits, multiprocessors) = (device.limits(), device.multiprocessors());
        let (shape, pairs, way) = (self.shape, self.pairs, self.way);
        let plan = plan::plan(name, shape, pairs, way, multiprocessors, &limits)?;
        let bytes = plan.partial_sums() * size_of::<f64>();
        if self.partial < bytes {
            self.memory.remove(Buffer::sums); // before there are two
            self.partial = 0;
            self.memory.allocate(device, &[(Buffer::sums, bytes)])?;
            self.partial = bytes;
        }
        let mut steps = [plan.frames, plan.pack, plan.sums, plan.total].into_iter();
        steps.try_for_each(|step| self.launch(device, step))
    }

    /// Launches a part of a trajectory's step, for a share of the time step.
    fn part(&self, device: &D, stage: SumStage, share: f64) -> Result<(), ForceError> {
        let params = Params {
            dt: share,
            ..self.params
        };
        let entry = plan::stage(stage, Precision::F64);
        let step = plan::elementwise(entry, params.stride, params, &device.limits())?;
        self.launch(device, step)
    }

    /// Takes the bodies through a trajectory.
    fn advance(&mut self, device: &D, trajectory: Trajectory) -> Result<(), ForceError> {
        for stage in trajectory.stages() {
            match stage {
                Stage::Kick(share) => {
                    self.sum(device, SumName::Force)?;
                    self.part(device, SumStage::Kick, share)?;
                }
                Stage::Drift(share) => self.part(device, SumStage::Drift, share)?,
            }
        }
        Ok(())
    }

    /// Takes the bodies back, and derivatives with them.
    fn take_back(
        &mut self,
        device: &D,
        trajectory: Trajectory,
        asked: Asked,
        with_largest: bool,
    ) -> Result<(), ForceError> {
        for stage in trajectory.stages().rev() {
            if with_largest {
                self.measure_largest(device)?;
            }
            match stage {
                Stage::Kick(share) => {
                    self.sum(device, pull(asked))?;
                    self.part(device, SumStage::KickBack, share)?;
                    // The sweep rounds its accelerations as the force on the way there did.
                    self.part(device, SumStage::Kick, -share)?;
                }
                Stage::Drift(share) => self.part(device, SumStage::DriftBack, share)?,
            }
        }
        match with_largest {
            true => self.measure_largest(device),
            false => Ok(()),
        }
    }

    fn measure_largest(&self, device: &D) -> Result<(), ForceError> {
        self.launch(device, plan::by_system(SumStage::Largest, self.params))
    }

    fn compute(
        &mut self,
        device: &D,
        call: &Call,
        arrays: &mut dyn Arrays<D>,
    ) -> Result<(), ForceError> {
        let bytes = |column: Column| column.numbers(call.shape) * call.arrays.bytes() as usize;
        if let SumTask::TrajectoryPull { .. } = call.task {
            device.zero(self.memory.of(Buffer::derivatives))?;
            device.zero(self.memory.of(Buffer::scalars))?;
        }
        for (argument, column) in call.task.arguments().into_iter().enumerate() {
            let Some(column) = column else { continue };
            arrays.take(device, argument, bytes(column), self.array())?;
            self.load(device, column, call.arrays)?;
        }
        match call.task {
            SumTask::Trajectory(trajectory) => self.advance(device, trajectory)?,
            SumTask::TrajectoryPull {
                trajectory,
                asked,
                with_largest,
            } => {
                self.take_back(device, trajectory, asked, with_largest)?;
            }
            task => {
                if let Some(name) = task.sum() {
                    self.sum(device, name)?;
                }
            }
        }
        for (result, column) in call.task.results().into_iter().enumerate() {
            self.store(device, column, call.arrays)?;
            arrays.give(device, result, bytes(column), self.array())?;
        }
        Ok(())
    }
}

impl<D: Device> OnDevice<D> {
    pub(crate) fn new(devices: Devices<D>) -> Self {
        Self {
            devices,
            rooms: vec![],
        }
    }

    fn compute_with(
        &mut self,
        device: &D,
        call: &Call,
        arrays: &mut dyn Arrays<D>,
    ) -> Result<(), ForceError> {
        let is_its = |room: &Room<D>| {
            (room.shape, room.pairs, room.way) == (call.shape, call.pairs, call.way)
        };
        let mut room = match self.rooms.iter().position(is_its) {
            Some(index) => self.rooms.remove(index),
            None => {
                if self.rooms.len() == MOST_ROOMS {
                    self.rooms.remove(0);
                }
                Room::new(device, call)?
            }
        };
        let computed = room.compute(device, call, arrays);
        self.rooms.push(room);
        computed
    }
}

impl<D: Shared> PairSums for OnDevice<D> {
    fn compute(
        &mut self,
        call: &Call,
        arguments: &[Vec<f64>],
    ) -> Result<Vec<Vec<f64>>, ForceError> {
        assert_eq!(call.arrays, Precision::F64, "arrays of the host");
        if call.shape.total() == 0 {
            let columns = call.task.results().into_iter();
            return Ok(columns
                .map(|column| vec![0.0; column.numbers(call.shape)])
                .collect());
        }
        let mut arrays = OnHost {
            arguments,
            results: vec![],
        };
        let device = self.devices.of(call.pairs);
        self.compute_with(&device, call, &mut arrays)?;
        Ok(arrays.results)
    }

    unsafe fn compute_in_place(
        &mut self,
        call: &Call,
        arguments: &[u64],
        results: &[u64],
        stream: u64,
    ) -> Result<(), ForceError> {
        if call.shape.total() == 0 {
            return Ok(());
        }
        let device = self.devices.of(call.pairs);
        // SAFETY: the caller's promise.
        unsafe { device.wait_for(stream)? };
        self.compute_with(&device, call, &mut InPlace { arguments, results })?;
        // SAFETY: as above.
        unsafe { device.hold_up(stream) }
    }
}

#[cfg(test)]
mod tests;
