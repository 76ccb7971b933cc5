//! Bodies to and from the buffers of a layout, in the frame's local units.

use bytemuck::Pod;
use cuda_std::f16;
use gpu_kernels::entries::LayoutDescription;
use gpu_kernels::layout::Field;
use gpu_kernels::numerics::Precision;

use super::order::Slots;
use crate::bodies::Bodies;
use crate::frame::Frame;
use crate::parallel::{self, ELEMENTWISE};

/// The scalars of a buffer, in the layout's own precision.
pub(super) enum Scalars {
    F16(Vec<f16>),
    F32(Vec<f32>),
    F64(Vec<f64>),
}

impl Scalars {
    /// `count` scalars that are not numbers, so that using one that was never set shows.
    pub(super) fn unset(precision: Precision, count: usize) -> Self {
        match precision {
            Precision::F16 => Self::F16(vec![f16::NAN; count]),
            Precision::F32 => Self::F32(vec![f32::NAN; count]),
            Precision::F64 => Self::F64(vec![f64::NAN; count]),
            Precision::DoubleSingle => unreachable!("stored as f64"),
        }
    }

    pub(super) fn set(&mut self, index: usize, value: f64) {
        match self {
            Self::F16(scalars) => scalars[index] = f16::from_f64(value),
            Self::F32(scalars) => scalars[index] = value as f32,
            Self::F64(scalars) => scalars[index] = value,
        }
    }

    pub(super) fn get(&self, index: usize) -> f64 {
        match self {
            Self::F16(scalars) => f64::from(scalars[index]),
            Self::F32(scalars) => f64::from(scalars[index]),
            Self::F64(scalars) => scalars[index],
        }
    }

    /// Adds `scale · step` with one rounding, as kernels do.
    pub(super) fn add_scaled(&mut self, index: usize, scale: f64, step: f64) {
        match self {
            Self::F16(scalars) => {
                let old = &mut scalars[index];
                let [scale, step] = [scale, step].map(f16::from_f64);
                *old = f16::from_f64(scale.to_f64().mul_add(step.to_f64(), old.to_f64()));
            }
            Self::F32(scalars) => {
                let old = &mut scalars[index];
                *old = (scale as f32).mul_add(step as f32, *old);
            }
            Self::F64(scalars) => scalars[index] = scale.mul_add(step, scalars[index]),
        }
    }

    pub(super) fn bytes(&self) -> &[u8] {
        match self {
            Self::F16(scalars) => bytemuck::cast_slice(scalars),
            Self::F32(scalars) => bytemuck::cast_slice(scalars),
            Self::F64(scalars) => bytemuck::cast_slice(scalars),
        }
    }

    pub(super) fn bytes_mut(&mut self) -> &mut [u8] {
        match self {
            Self::F16(scalars) => bytemuck::cast_slice_mut(scalars),
            Self::F32(scalars) => bytemuck::cast_slice_mut(scalars),
            Self::F64(scalars) => bytemuck::cast_slice_mut(scalars),
        }
    }
}

/// The state buffer of `bodies`, in their order.
pub(super) fn state(
    layout: &LayoutDescription,
    stride: u32,
    frame: &Frame,
    bodies: &Bodies,
) -> Scalars {
    let mut scalars = empty_state(layout, stride);
    for (i, body) in (0..).zip(bodies.iter()) {
        let [x, y, z] = frame.position_to_local(body.position);
        let [vx, vy, vz] = frame.velocity_to_local(body.velocity);
        let values = [x, y, z, frame.mass_to_local(body.mass), vx, vy, vz];
        for (field, value) in Field::ALL.into_iter().zip(values) {
            scalars.set((layout.scalar)(field, stride, i), value);
        }
    }
    scalars
}

/// A state buffer to download into.
pub(super) fn empty_state(layout: &LayoutDescription, stride: u32) -> Scalars {
    Scalars::unset(
        layout.stored,
        layout.state_scalars as usize * stride as usize,
    )
}

/// The beginning of a state buffer to download into, as far as positions and masses reach.
pub(super) fn empty_sources(layout: &LayoutDescription, stride: u32) -> Scalars {
    let [x, y, z] = POSITION;
    let last = [x, y, z, Field::Mass].map(|field| (layout.scalar)(field, stride, stride - 1));
    Scalars::unset(
        layout.stored,
        last.into_iter().max().map_or(0, |last| last + 1),
    )
}

/// An acceleration buffer to download into.
pub(super) fn empty_vectors(layout: &LayoutDescription, stride: u32) -> Scalars {
    Scalars::unset(
        layout.vectors,
        layout.vector_scalars as usize * stride as usize,
    )
}

/// Positions and velocities of a state buffer, into `bodies`; masses are the bodies' own.
pub(super) fn read_state(
    layout: &LayoutDescription,
    stride: u32,
    frame: &Frame,
    slots: &Slots,
    scalars: &Scalars,
    bodies: &mut Bodies,
) {
    let slots = slots.by_body();
    let mut parts = bodies.phase_parts(0..bodies.len(), ELEMENTWISE);
    parallel::change(&mut parts, 1, |number, columns| {
        for k in 0..columns[0].len() {
            let slot = slots[number * ELEMENTWISE + k];
            let local = |fields| local_vector(layout, stride, scalars, fields, slot);
            let x = frame.position_from_local(local(POSITION));
            let v = frame.velocity_from_local(local(VELOCITY));
            for (column, value) in columns.iter_mut().zip(x.into_iter().chain(v)) {
                column[k] = value;
            }
        }
    });
}

/// `x += dt v` on a state buffer, in its own precision's f64 image: what a study's kernel leaves to
/// the host.
///
/// # Panics
/// If the bytes are not aligned for scalars, as memory for bodies is.
pub(super) fn drift(layout: &LayoutDescription, stride: u32, n: u32, dt: f64, state: &mut [u8]) {
    match layout.stored {
        Precision::F16 => drift_of(layout, stride, n, dt, state, f64::from, f16::from_f64),
        Precision::F32 => drift_of(layout, stride, n, dt, state, f64::from, |x| x as f32),
        Precision::F64 => drift_of(layout, stride, n, dt, state, |x| x, |x| x),
        Precision::DoubleSingle => unreachable!("stored as f64"),
    }
}

/// [`drift`], of scalars of this type.
fn drift_of<T: Pod>(
    layout: &LayoutDescription,
    stride: u32,
    n: u32,
    dt: f64,
    state: &mut [u8],
    widen: impl Fn(T) -> f64,
    narrow: impl Fn(f64) -> T,
) {
    let state: &mut [T] = bytemuck::cast_slice_mut(state);
    for i in 0..n {
        for (position, velocity) in POSITION.into_iter().zip(VELOCITY) {
            let v = widen(state[(layout.scalar)(velocity, stride, i)]);
            let at = (layout.scalar)(position, stride, i);
            state[at] = narrow(dt.mul_add(v, widen(state[at])));
        }
    }
}

/// The first `n` vectors of an acceleration buffer.
pub(super) fn read_vectors(
    layout: &LayoutDescription,
    stride: u32,
    frame: &Frame,
    scalars: &Scalars,
    n: u32,
) -> Vec<[f64; 3]> {
    let vectors = local_vectors(layout, stride, scalars, n);
    let global = vectors.into_iter();
    global.map(|a| frame.acceleration_from_local(a)).collect()
}

pub(super) const POSITION: [Field; 3] = [Field::X, Field::Y, Field::Z];
pub(super) const VELOCITY: [Field; 3] = [Field::Vx, Field::Vy, Field::Vz];

/// Three fields of the first `n` bodies of a state buffer, in local units.
pub(super) fn local_fields(
    layout: &LayoutDescription,
    stride: u32,
    scalars: &Scalars,
    fields: [Field; 3],
    n: u32,
) -> Vec<[f64; 3]> {
    parallel::each(n as usize, ELEMENTWISE, |i| {
        local_vector(layout, stride, scalars, fields, i as u32)
    })
}

/// Three scalars of a slot, in local units.
fn local_vector(
    layout: &LayoutDescription,
    stride: u32,
    scalars: &Scalars,
    fields: [Field; 3],
    slot: u32,
) -> [f64; 3] {
    fields.map(|field| scalars.get((layout.scalar)(field, stride, slot)))
}

/// Positions and masses of the first `n` bodies of a state buffer, in local units.
pub(super) fn local_sources(
    layout: &LayoutDescription,
    stride: u32,
    scalars: &Scalars,
    n: u32,
) -> (Vec<[f64; 3]>, Vec<f64>) {
    let value = |field, i| scalars.get((layout.scalar)(field, stride, i));
    (
        local_fields(layout, stride, scalars, POSITION, n),
        parallel::each(n as usize, ELEMENTWISE, |i| value(Field::Mass, i as u32)),
    )
}

/// Inverse of [`local_fields`].
pub(super) fn set_local_fields(
    layout: &LayoutDescription,
    stride: u32,
    scalars: &mut Scalars,
    fields: [Field; 3],
    vectors: &[[f64; 3]],
) {
    for (i, vector) in (0..).zip(vectors) {
        for (field, &value) in fields.into_iter().zip(vector) {
            scalars.set((layout.scalar)(field, stride, i), value);
        }
    }
}

/// The first `n` vectors of an acceleration buffer, in local units.
pub(super) fn local_vectors(
    layout: &LayoutDescription,
    stride: u32,
    scalars: &Scalars,
    n: u32,
) -> Vec<[f64; 3]> {
    let value = |axis, i| scalars.get((layout.vector_scalar)(axis, stride, i));
    parallel::each(n as usize, ELEMENTWISE, |i| {
        [0, 1, 2].map(|axis| value(axis, i as u32))
    })
}

/// Inverse of [`local_vectors`].
pub(super) fn set_local_vectors(
    layout: &LayoutDescription,
    stride: u32,
    scalars: &mut Scalars,
    vectors: &[[f64; 3]],
) {
    for (i, vector) in (0..).zip(vectors) {
        for (axis, &value) in (0..).zip(vector) {
            scalars.set((layout.vector_scalar)(axis, stride, i), value);
        }
    }
}
