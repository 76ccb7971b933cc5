//! Fields at points on a device.

use bytemuck::Pod;
use gpu_kernels::abi::Params;
use gpu_kernels::entries::Buffer;
use gpu_kernels::numerics::Precision;
use gpu_kernels::schedule::points::QuantityName;

use super::device::Device;
use super::memory::Memory;
use crate::backend::ForceError;
use crate::bodies::Bodies;
use crate::frame::Frame;
use crate::physics::Physics;
use crate::plan::{self, points};

/// How much farther than all bodies a point may lie, for single precision: from much farther, 1/d³ would
/// vanish.
const FARTHEST_OF_SINGLES: f64 = (1 << 20) as f64;

/// Weights at places, whose field is sought at points, in units in which they are in range.
#[derive(Debug)]
pub(crate) struct Task<'a> {
    frame: Frame,
    unit_of_weight: f64,
    softening: f64,
    /// Place and weight of each body that has one; of none, one without.
    sources: Vec<[f64; 4]>,
    points: &'a [[f64; 3]],
    precision: Precision,
}

/// Sums of all points, one after another, and the seconds that a device took.
pub(crate) type Sums = (Vec<f64>, f64);

impl<'a> Task<'a> {
    /// A task in this precision, or in f64 if that is none for points so far out.
    pub(crate) fn new(
        bodies: &Bodies,
        physics: &Physics,
        points: &'a [[f64; 3]],
        precision: Precision,
    ) -> Self {
        let has_weight = |&i: &usize| physics.weight(bodies.mass[i]) != 0.0;
        let heavy = (0..bodies.len()).filter(has_weight);
        let mut heavy: Bodies = heavy.map(|i| bodies.body(i)).collect();
        let mut frame = Frame::of(&heavy, physics);
        if frame.extent(&heavy) == 0.0 && physics.softening == 0.0 {
            // Nothing but the points says which lengths matter.
            let count = heavy.len();
            heavy.extend(Bodies::at_rest(points, &vec![0.0; points.len()]).iter());
            frame = Frame::of(&heavy, physics);
            heavy = (0..count).map(|i| heavy.body(i)).collect();
        }
        let is_far = |x: &f64| x.abs() > FARTHEST_OF_SINGLES;
        let mut coordinates = points.iter().flat_map(|&x| frame.position_to_local(x));
        let precision = match coordinates.any(|x| is_far(&x)) {
            true => Precision::F64,
            false => precision,
        };
        let unit_of_weight = physics.weight(frame.mass);
        let sources = heavy.iter().map(|body| {
            let [x, y, z] = frame.position_to_local(body.position);
            [x, y, z, physics.weight(body.mass) / unit_of_weight]
        });
        let mut sources: Vec<_> = sources.collect();
        if sources.is_empty() {
            sources.push([0.0; 4]);
        }
        Self {
            frame,
            unit_of_weight,
            softening: physics.softening,
            sources,
            points,
            precision,
        }
    }

    /// Precision of the pairs.
    pub(crate) fn precision(&self) -> Precision {
        self.precision
    }

    /// Sources.
    pub(crate) fn sources(&self) -> usize {
        self.sources.len()
    }

    /// Value in the units of the run of a sum over `w/dᵏ`, times the coupling.
    pub(crate) fn of_sum(&self, sum: f64, power: u32, physics: &Physics) -> f64 {
        let length = self.frame.length;
        let sum = (0..power).fold(sum * self.unit_of_weight, |sum, _| sum / length);
        physics.coupling() * sum
    }

    /// Computes the sums.
    pub(crate) fn compute<D: Device>(
        &self,
        device: &D,
        quantity: QuantityName,
    ) -> Result<Sums, ForceError> {
        match self.precision {
            Precision::F32 => self.compute_in(device, quantity, |x| x as f32),
            Precision::F64 => self.compute_in(device, quantity, |x| x),
            Precision::F16 | Precision::DoubleSingle => unreachable!("`points::entry` has no such"),
        }
    }

    fn compute_in<D: Device, R: Pod>(
        &self,
        device: &D,
        quantity: QuantityName,
        round: impl Fn(f64) -> R,
    ) -> Result<Sums, ForceError> {
        let mut values = Vec::with_capacity(self.points.len() * quantity.sums() as usize);
        let mut seconds = 0.0;
        if self.points.is_empty() {
            return Ok((values, seconds));
        }
        let unsoftened = (self.frame).is_unsoftened(self.softening, self.precision);
        let entry = points::entry(quantity, self.precision, unsoftened);
        device.prepare(entry)?;
        let (limits, multiprocessors) = (device.limits(), device.multiprocessors());
        let rounded = |row: [f64; 4]| row.map(&round);
        let upload = |rows: Vec<[R; 4]>| -> Result<D::Buffer, ForceError> {
            let room = plan::stride(entry, rows.len())? as usize;
            let buffer = device.allocate(room * size_of::<[R; 4]>())?;
            device.upload(&buffer, rows.as_flattened())?;
            Ok(buffer)
        };
        let count = self.sources.len();
        let mut memory = Memory::new();
        let sources = self.sources.iter().copied().map(rounded);
        memory.put(Buffer::sources, upload(sources.collect())?);
        for chunk in self.points.chunks(points::MOST_POINTS) {
            for of_last in [Buffer::points, Buffer::partial, Buffer::total] {
                memory.remove(of_last);
            }
            let plan = points::plan(entry, chunk.len(), count, multiprocessors, &limits)?;
            let local = chunk.iter().map(|&x| self.frame.position_to_local(x));
            let places = local.map(|[x, y, z]| rounded([x, y, z, 0.0]));
            memory.put(Buffer::points, upload(places.collect())?);
            let sums = chunk.len() * quantity.sums() as usize;
            let bytes = sums * size_of::<f64>();
            memory.allocate(device, &[(Buffer::total, bytes)])?;
            let params = Params {
                softening_squared: self.frame.softening_squared(self.softening),
                ..plan.params
            };
            let sums_in = |memory: &Memory<D>, name| {
                let renamed = [(Buffer::sums, name)];
                memory.launch_renamed(device, (entry, plan.launch), &renamed, params)
            };
            seconds += match plan.sum {
                None => device.seconds_of(|| sums_in(&memory, Buffer::total)),
                Some((sum, launch, of_sums)) => {
                    device.prepare(sum)?;
                    memory.allocate(
                        device,
                        &[(Buffer::partial, params.partials as usize * bytes)],
                    )?;
                    device.seconds_of(|| {
                        sums_in(&memory, Buffer::partial)?;
                        memory.launch(device, (sum, launch), of_sums)
                    })
                }
            }?;
            let before = values.len();
            values.resize(before + sums, 0.0);
            device.download(memory.of(Buffer::total), &mut values[before..])?;
        }
        Ok((values, seconds))
    }
}
