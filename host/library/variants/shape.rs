//! Variants in other shapes, and of other numbers of systems.

use gpu_kernels::entries::Work;
use gpu_kernels::schedule::{ScheduleName, Stepping};

use super::{Fitted, Method, Shape, Variant};

impl Variant {
    /// Returns whether its shape is chosen by the number of bodies.
    pub fn is_fitted(&self) -> bool {
        matches!(self.method, Method::Kernel { fitted, .. } if !fitted.is_empty())
    }

    /// In the shape that it has for this many bodies, where it chooses its own.
    #[must_use]
    pub fn fitted(&self, bodies: usize) -> Self {
        let Method::Kernel {
            fitted,
            split: Some(mut split),
            ..
        } = self.method
        else {
            return *self;
        };
        let fits = |shape: &&Fitted| bodies <= shape.bodies as usize;
        let Some(shape) = fitted.iter().find(fits).or(fitted.last()) else {
            return *self;
        };
        (split.len, split.luf) = (shape.len, shape.luf);
        Self {
            method: self.method.in_blocks_of(shape.block).split(split),
            ..*self
        }
    }

    /// Returns the variant in another shape, if it has one to change.
    pub fn shaped(&self, shape: Shape) -> Option<Self> {
        let mut shaped = *self;
        if let Some(block) = shape.block {
            self.method.build()?; // only kernels have blocks
            shaped = shaped.in_blocks_of(block);
        }
        if shape.len.is_some() || shape.luf.is_some() {
            let mut split = self.split()?;
            split.len = shape.len.unwrap_or(split.len);
            split.luf = shape.luf.unwrap_or(split.luf);
            shaped.method = shaped.method.split(split);
        }
        Some(shaped)
    }

    /// Returns the variant for this many systems.
    #[must_use]
    pub fn of_systems(&self, systems: u32) -> Self {
        Self { systems, ..*self }
    }

    /// Returns whether a block keeps a system for all of its steps.
    pub fn keeps_systems_in_blocks(&self) -> bool {
        self.stepping() == Some(Stepping::InBlock)
    }

    /// Returns whether a warp takes the step of a body, one launch a step.
    pub fn takes_steps_by_warps(&self) -> bool {
        self.stepping() == Some(Stepping::ByWarps)
    }

    /// Part of a step that a launch does, if this is a variant of many systems.
    fn stepping(&self) -> Option<Stepping> {
        match (self.method, self.row()?.any().work) {
            (
                Method::Systems(_),
                Work::Force {
                    schedule: ScheduleName::Systems { stepping, .. },
                    ..
                },
            ) => Some(stepping),
            _ => None,
        }
    }

    /// Returns whether it can compute more systems than one.
    pub fn computes_many(&self) -> bool {
        !matches!(self.method, Method::Kernel { .. })
    }
}
