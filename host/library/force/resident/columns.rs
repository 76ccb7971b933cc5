//! Columns of a saved state, on a device and back.

use gpu_kernels::abi::Params;
use gpu_kernels::entries::Buffer;
use gpu_kernels::layout::Field;
use gpu_kernels::schedule::block_steps::HIGHER_VECTORS;

use super::Resident;
use crate::backend::{COLUMNS, Column, ForceError, SavedState};
use crate::force::device::Device;
use crate::force::order::Slots;
use crate::force::pack::{self, POSITION, Scalars, VELOCITY};

/// Place of a column on a device.
enum Place<'a, D: Device> {
    /// Fields of the state.
    State([Field; 3]),
    /// Buffer with one array of vectors or several, one after another.
    Vectors(&'a D::Buffer, u32),
    /// Buffer with f64 numbers of each body.
    Numbers(&'a D::Buffer),
}

impl<D: Device> Resident<D> {
    fn place_of(&self, column: Column) -> Option<Place<'_, D>> {
        Some(match column {
            Column::Positions => Place::State(POSITION),
            Column::Velocities => Place::State(VELOCITY),
            Column::Accelerations => Place::Vectors(self.of(Buffer::acceleration), 1),
            Column::Jerks => Place::Vectors(self.memory.get(Buffer::jerk)?, 1),
            Column::Higher => Place::Vectors(self.memory.get(Buffer::higher)?, HIGHER_VECTORS),
            Column::OwnSteps => Place::Numbers(self.memory.get(Buffer::steps)?),
            Column::Spheres => Place::Numbers(self.memory.get(Buffer::spheres)?),
        })
    }

    /// Returns whether the next step depends on what stands in the place of a column.
    fn is_known(&self, column: Column) -> bool {
        let blocks = self.blocks.as_ref().filter(|blocks| blocks.has_steps);
        match column {
            Column::Higher => blocks.is_some_and(|blocks| blocks.plan.order == 6),
            Column::OwnSteps | Column::Spheres => blocks.is_some(),
            _ => true,
        }
    }

    /// The state in local units, with times and radii in the units of the run.
    pub(super) fn saved(&self) -> Result<SavedState, ForceError> {
        let (layout, stride) = (&self.layout, self.params.stride);
        let slots = self.slots()?;
        let state = self.fetch(self.of(Buffer::state), pack::empty_state(layout, stride))?;
        SavedState::try_of(self.frame, |column| {
            match self.place_of(column).filter(|_| self.is_known(column)) {
                None => Ok(vec![]),
                Some(Place::State(fields)) => {
                    let by_slot = pack::local_fields(layout, stride, &state, fields, self.params.n);
                    Ok(slots.to_bodies(&by_slot).into_flattened())
                }
                Some(Place::Vectors(buffer, arrays)) => self.vectors(buffer, arrays, &slots),
                Some(Place::Numbers(buffer)) => self.numbers(column, buffer),
            }
        })
    }

    /// The steps that bodies are allowed, in the unit of the run; none where none were chosen.
    pub(super) fn saved_own_steps(&self) -> Result<Vec<f64>, ForceError> {
        let column = Column::OwnSteps;
        match self.place_of(column).filter(|_| self.is_known(column)) {
            Some(Place::Numbers(buffer)) => self.numbers(column, buffer),
            _ => Ok(vec![]),
        }
    }

    fn vectors(
        &self,
        buffer: &D::Buffer,
        arrays: u32,
        slots: &Slots,
    ) -> Result<Vec<f64>, ForceError> {
        let (layout, stride) = (&self.layout, self.params.stride);
        let all = arrays * stride;
        let vectors = self.fetch(buffer, pack::empty_vectors(layout, all))?;
        let vectors = pack::local_vectors(layout, all, &vectors, all);
        let slots = slots.by_body().into_iter();
        let of_body = |slot: u32| (0..arrays).flat_map(move |k| [k * stride + slot]);
        let by_body = slots.flat_map(of_body).flat_map(|at| vectors[at as usize]);
        Ok(by_body.collect())
    }

    fn numbers(&self, column: Column, buffer: &D::Buffer) -> Result<Vec<f64>, ForceError> {
        let units = column.units();
        let mut numbers = vec![f64::NAN; units.len() * self.params.n as usize];
        self.device.download(buffer, &mut numbers)?;
        for (number, unit) in numbers.iter_mut().zip(units.iter().cycle()) {
            *number *= unit.of_device(&self.frame);
        }
        Ok(numbers)
    }

    /// Inverse of [`saved`](Self::saved).
    pub(super) fn set_saved(&mut self, saved: &SavedState) -> Result<(), ForceError> {
        let Params { n, stride, .. } = self.params;
        saved.fits(n as usize, &self.frame, self.has_neighbours())?;
        let slots = self.slots()?;
        let mut state = self.fetch(
            self.of(Buffer::state),
            pack::empty_state(&self.layout, stride),
        )?;
        for row in &COLUMNS {
            let numbers = saved.column(row.column);
            match self.place_of(row.column) {
                None => {}
                Some(Place::State(fields)) => {
                    let by_slot = slots.to_slots(bytemuck::cast_slice(numbers));
                    pack::set_local_fields(&self.layout, stride, &mut state, fields, &by_slot);
                }
                Some(Place::Vectors(buffer, arrays)) => {
                    let vectors = self.packed(bytemuck::cast_slice(numbers), arrays, &slots);
                    self.device.upload(buffer, vectors.bytes())?;
                }
                Some(Place::Numbers(buffer)) => {
                    let units = row.units.iter().cycle();
                    let local = numbers.iter().zip(units);
                    let local: Vec<f64> = local
                        .map(|(number, unit)| number / unit.of_device(&self.frame))
                        .collect();
                    self.device.upload(buffer, &local)?;
                }
            }
        }
        self.device.upload(self.of(Buffer::state), state.bytes())?;
        if let Some(of_fields) = self.memory.get(Buffer::of_fields) {
            self.device.zero(of_fields)?;
        }
        let has_spheres = saved.has(Column::Spheres) || !self.has_neighbours();
        if let Some(blocks) = &mut self.blocks {
            blocks.has_steps = has_spheres && saved.has(Column::OwnSteps);
        }
        Ok(())
    }

    /// Vectors of each body as arrays one after another, which are zero where the column is empty.
    fn packed(&self, by_body: &[[f64; 3]], arrays: u32, slots: &Slots) -> Scalars {
        let (each, stride) = (arrays as usize, self.params.stride as usize);
        let mut vectors = vec![[0.0; 3]; each * stride];
        for (slot, body) in slots.bodies().enumerate() {
            let of_body = by_body.iter().skip(body * each).take(each);
            for (k, vector) in of_body.enumerate() {
                vectors[k * stride + slot] = *vector;
            }
        }
        let all = arrays * self.params.stride;
        let mut packed = pack::empty_vectors(&self.layout, all);
        pack::set_local_vectors(&self.layout, all, &mut packed, &vectors);
        packed
    }
}
