//! The steps of single bodies, which encounters are looked for in: the device is asked for the bodies after
//! each block step.

use std::ops::ControlFlow;
use std::time::Instant;

use gpu_kernels::entries::Buffer;
use gpu_kernels::schedule::block_steps::{SPAN, clock};

use super::{LOOK, Words};
use crate::backend::ForceError;
use crate::encounters::StepOfBody;
use crate::force::device::Device;
use crate::force::pack::{self, POSITION, VELOCITY};
use crate::force::resident::Resident;

/// Position and velocity in local units.
type Local = [[f64; 3]; 2];

impl<D: Device> Resident<D> {
    /// Keeps the steps of bodies from now on.
    pub(super) fn begin_to_keep_steps(&mut self) -> bool {
        match &mut self.blocks {
            Some(blocks) => {
                blocks.kept = Some(vec![]);
                true
            }
            None => false,
        }
    }

    /// Takes the steps that were kept.
    pub(super) fn take_kept_steps(&mut self) -> Vec<StepOfBody> {
        let kept = self.blocks.as_mut().and_then(|blocks| blocks.kept.as_mut());
        kept.map(std::mem::take).unwrap_or_default()
    }

    /// Returns whether steps are kept.
    pub(super) fn keeps_steps(&self) -> bool {
        let blocks = self.blocks.as_ref();
        blocks.is_some_and(|blocks| blocks.kept.is_some())
    }

    /// Goes through a span as [`run_span`](Self::run_span) does, and keeps the steps of bodies.
    ///
    /// A body whose position and velocity a block step leaves as they are, to the bit, has not ended a step in
    /// it, or one on which its path does not depend.
    pub(super) fn run_kept_span(
        &mut self,
        watch: &mut dyn FnMut(f64) -> ControlFlow<()>,
    ) -> Result<Option<Words>, ForceError> {
        let mut bodies = self.local_bodies()?;
        let mut begun = vec![0; bodies.len()];
        let mut steps = vec![];
        let (mut number, mut done, mut asked) = (0_u16, 0, Instant::now());
        let words = loop {
            self.launch_block_step(number)?;
            number = number.wrapping_add(1);
            let parity = number % 2;
            let words = self.look()?;
            self.launch_awaited_forces(&words, parity)?;
            let now = words[(clock::NOW + u32::from(parity)) as usize];
            if now > done && now <= SPAN {
                let after = self.local_bodies()?;
                for (body, (from, to)) in bodies.iter().zip(&after).enumerate() {
                    // No part of a path is missing at the end.
                    if from != to || now == SPAN {
                        steps.push(self.step_of_body(body, [begun[body], now], [from, to]));
                        begun[body] = now;
                    }
                }
                (bodies, done) = (after, now);
            }
            if parity == 0 && words[clock::NOW as usize] >= SPAN {
                break words;
            }
            if asked.elapsed() >= LOOK {
                asked = Instant::now();
                if watch(done as f64 / SPAN as f64).is_break() {
                    return Ok(None);
                }
            }
        };
        if let Some(blocks) = &mut self.blocks {
            blocks.kept = Some(steps);
        }
        Ok(Some(words))
    }

    fn step_of_body(&self, body: usize, ticks: [u64; 2], ends: [&Local; 2]) -> StepOfBody {
        let frame = &self.frame;
        let [from, to] =
            ends.map(|&[x, v]| [frame.position_from_local(x), frame.velocity_from_local(v)]);
        StepOfBody {
            body,
            shares: ticks.map(|tick| tick as f64 / SPAN as f64),
            from,
            to,
        }
    }

    fn local_bodies(&self) -> Result<Vec<Local>, ForceError> {
        let (layout, stride) = (&self.layout, self.params.stride);
        let state = self.fetch(self.of(Buffer::state), pack::empty_state(layout, stride))?;
        let fields = |fields| pack::local_fields(layout, stride, &state, fields, self.params.n);
        let both = fields(POSITION).into_iter().zip(fields(VELOCITY));
        Ok(both.map(|(x, v)| [x, v]).collect())
    }
}
