//! Block time steps on a device: what they keep beside the state, and the launches of a span.

mod kept;
pub(super) mod neighbours;
mod regular;

use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use cuda_driver::Graph;
use gpu_kernels::abi::Params;
use gpu_kernels::entries::Buffer;
use gpu_kernels::layout::LayoutName;
use gpu_kernels::numerics::Precision;
use gpu_kernels::schedule::block_steps::neighbours::clock as neighbour_clock;
use gpu_kernels::schedule::block_steps::{DigitsName, Phase, SPAN, clock};

use self::neighbours::{NeighbourLaunches, Neighbours};
use super::Resident;
use crate::backend::{BlockCounts, BlockSteps, Column, ForceError, SavedState};
use crate::encounters::{Paths, StepOfBody};
use crate::force::device::Device;
use crate::physics::ForceLaw;
use crate::plan::block_steps::{
    self as plan, BlockKernels, BlockPlan, BlockScheme, CLOCK_WORDS, Part,
};

/// Block time steps of a device: their launches, and what it knows of them.
pub(super) struct Blocks {
    pub(super) plan: BlockPlan,
    /// A neighbour scheme, if they have one.
    neighbours: Option<Neighbours>,
    /// See [`BlockSteps`]; infinite for none.
    guard: f64,
    /// Mass above which bodies take a part of η, in the frame's unit; infinite for none.
    heavy: f64,
    /// [`RECORDED`] block steps.
    record: Option<Graph>,
    /// True if bodies know what steps they are allowed.
    pub(super) has_steps: bool,
    /// The steps of bodies in the last span, where they are kept.
    kept: Option<Vec<StepOfBody>>,
}

/// The clock.
pub(super) type Words = [u64; CLOCK_WORDS];

impl Blocks {
    /// Slices that bodies are cut into.
    fn slices(&self) -> u32 {
        self.plan.steps.force.1.grid[0]
    }

    /// Lets the next block steps be recorded anew.
    pub(super) fn forget_record(&mut self) {
        self.record = None;
    }
}

/// Block steps that are launched together; an even number, for they take two places in turn.
pub(super) const RECORDED: u16 = 64;

/// How long the host lets the device work between two looks at the clock, about.
const LOOK: Duration = Duration::from_millis(40);

/// Most records between two looks.
pub(super) const MOST_RECORDS: u64 = 64;

impl<D: Device> Resident<D> {
    /// With block time steps of `scheme` and the guard `c`: no step in which a pair would change its
    /// distance by more than `c` of it; infinite for no such bound.
    ///
    /// # Errors
    /// If the kernels do not fit the device, or its memory is too small; or where there are no jerks,
    /// the force law is not gravity, or the state is not in f64, which block time steps need whatever
    /// the digits of pairs.
    ///
    /// # Panics
    /// If pairs of sixth order are in f32 alone, or there is a post-Newtonian term and they are not in f64.
    pub fn with_block_steps(self, scheme: BlockScheme, guard: f64) -> Result<Self, ForceError> {
        self.with_part_of_block_steps(scheme, Part::Alone, guard)
    }

    /// As [`with_block_steps`](Self::with_block_steps), of which this device may have a part.
    pub(super) fn with_part_of_block_steps(
        mut self,
        scheme: BlockScheme,
        part: Part,
        guard: f64,
    ) -> Result<Self, ForceError> {
        self.jerks()?;
        let layout = &self.layout;
        let of_f64 = (layout.stored, layout.vectors) == (Precision::F64, Precision::F64);
        if self.physics.law != ForceLaw::Gravity || layout.name != LayoutName::Float4 || !of_f64 {
            return Err(ForceError::NoBlockSteps);
        }
        // The step of sixth order follows from differences over dt⁵, in which forces rounded to f32 are noise.
        assert!(
            scheme.order < 6 || scheme.digits != DigitsName::Single,
            "sixth order takes more digits than f32 has"
        );
        let (device, n) = (&*self.device, self.params.n);
        let precision = scheme.digits.precision();
        let unsoftened = (self.frame).is_unsoftened(self.physics.softening, precision);
        let external = self.external.is_some();
        let mut plan = plan::plan(scheme, part, external, unsoftened, n, &device.limits())?;
        if self.memory.get(Buffer::centre).is_some() {
            assert_eq!(
                (scheme.digits, part),
                (DigitsName::Double, Part::Alone),
                "the term of relativity is computed in f64 on one device"
            );
            plan = plan.with_relativity();
        }
        for kernels in [plan.steps, plan.first] {
            for entry in kernels.entries() {
                device.prepare(entry)?;
            }
        }
        self.memory.allocate(device, &plan.buffers(n))?;
        device.zero(self.memory.of(Buffer::higher))?;
        self.blocks = Some(Blocks {
            plan,
            guard,
            heavy: match scheme.heavy_are_finer {
                true => self.heavy,
                false => f64::INFINITY,
            },
            neighbours: None,
            record: None,
            has_steps: false,
            kept: None,
        });
        Ok(self)
    }

    pub(super) fn blocks(&self) -> Result<&Blocks, ForceError> {
        self.blocks.as_ref().ok_or(ForceError::NoBlockSteps)
    }

    pub(super) fn block_params(
        &self,
        kernels: &BlockKernels,
        phase: Phase,
        parity: u16,
    ) -> Result<Params, ForceError> {
        let BlockPlan { share, slices, .. } = self.blocks()?.plan;
        Ok(Params {
            blocks: kernels.params(phase, parity),
            share,
            partials: slices,
            ..self.params
        })
    }

    pub(super) fn launch_block_force(
        &self,
        kernels: &BlockKernels,
        parity: u16,
    ) -> Result<(), ForceError> {
        let params = self.block_params(kernels, Phase::Step, parity)?;
        self.launch(kernels.force, params)
    }

    /// Adds the term of relativity to the sums, if it is one of the fields.
    fn launch_block_relativity(
        &self,
        kernels: &BlockKernels,
        phase: Phase,
        parity: u16,
    ) -> Result<(), ForceError> {
        match kernels.relativity {
            Some(kernel) => self.launch(kernel, self.block_params(kernels, phase, parity)?),
            None => Ok(()),
        }
    }

    fn launch_block_correct(
        &self,
        kernels: &BlockKernels,
        phase: Phase,
        parity: u16,
    ) -> Result<(), ForceError> {
        let params = self.block_params(kernels, phase, parity)?;
        self.launch(kernels.correct, params)
    }

    /// The sums over this device's sources alone, to a row.
    pub(super) fn launch_block_gather(
        &self,
        kernels: &BlockKernels,
        parity: u16,
        to_row: Buffer,
    ) -> Result<(), ForceError> {
        let Some(kernel) = kernels.gather else {
            return Ok(());
        };
        let params = self.block_params(kernels, Phase::Step, parity)?;
        let renamed = [(Buffer::row, to_row)];
        self.memory
            .launch_renamed(&self.device, kernel, &renamed, params)
    }

    /// Starts the clock of a span.
    pub(super) fn set_clock(&self, span: f64, eta: f64) -> Result<(), ForceError> {
        let blocks = self.blocks()?;
        let mut words = [0_u64; CLOCK_WORDS];
        words[clock::SPAN as usize] = span.to_bits();
        words[clock::ETA as usize] = eta.to_bits();
        words[clock::GUARD as usize] = blocks.guard.to_bits();
        words[clock::HEAVY as usize] = blocks.heavy.to_bits();
        words[clock::START as usize] = self.field_time().to_bits();
        self.set_neighbour_words(&mut words, eta);
        self.device.upload(self.of(Buffer::time), &words)?;
        self.set_cube()
    }

    pub(super) fn look(&self) -> Result<Words, ForceError> {
        let mut words = [0; CLOCK_WORDS];
        self.device.download(self.of(Buffer::time), &mut words)?;
        Ok(words)
    }

    /// Launches block steps until the clock has gone through a span; returns its words then, or none if
    /// `watch` broke off.
    fn run_span(
        &mut self,
        watch: &mut dyn FnMut(f64) -> ControlFlow<()>,
    ) -> Result<Option<Words>, ForceError> {
        if self.keeps_steps() {
            return self.run_kept_span(watch);
        }
        let mut record = self.blocks.as_mut().and_then(|blocks| blocks.record.take());
        // SAFETY: `self` holds the buffers as long as the record.
        let mut recorded = || unsafe {
            let mut all = || (0..RECORDED).try_for_each(|number| self.launch_block_step(number));
            self.device.again(&mut record, &mut all)
        };
        let most_records = match self.waits_for_host() {
            true => 1,
            false => MOST_RECORDS,
        };
        let look = || {
            let words = self.look()?;
            self.launch_awaited_forces(&words, 0)?;
            Ok(words)
        };
        let words = run_span(&mut recorded, most_records, &look, watch)?;
        if let Some(blocks) = &mut self.blocks {
            blocks.record = record;
        }
        Ok(words)
    }

    /// Chooses first steps, by forces and derivatives that are computed for that.
    pub(super) fn launch_first_steps(&self) -> Result<(), ForceError> {
        let first = self.blocks()?.plan.first;
        self.launch_block_correct(&first, Phase::All, 1)?;
        self.launch_block_force(&first, 0)?;
        self.launch_block_relativity(&first, Phase::First, 0)?;
        self.launch_block_correct(&first, Phase::First, 0)
    }

    /// Chooses the first steps of all bodies, and their spheres in a neighbour scheme.
    fn begin_steps(&mut self) -> Result<(), ForceError> {
        self.launch_first_steps()?;
        match self.has_neighbours() {
            true => self.begin_neighbours(),
            false => Ok(()),
        }
    }

    /// Block step `number` of those that are launched one after another.
    fn launch_block_step(&self, number: u16) -> Result<(), ForceError> {
        let parity = number % 2;
        if self.launch_plain_step(number)? {
            return Ok(());
        }
        if self.has_neighbours() {
            return self.launch_neighbour_step(parity).map(drop);
        }
        let steps = self.blocks()?.plan.steps;
        self.launch_block_force(&steps, parity)?;
        self.launch_block_relativity(&steps, Phase::Step, parity)?;
        self.launch_block_correct(&steps, Phase::Step, parity)
    }

    /// Counts of the block steps of a span that has ended, by the words of the clock.
    ///
    /// # Errors
    /// If a body needed shorter steps than there are.
    pub(super) fn counts(&self, words: &Words, span: f64) -> Result<BlockCounts, ForceError> {
        let word = |which: u32| words[which as usize];
        if word(clock::NOW) == clock::STOPPED {
            let body = word(clock::BODY) as usize;
            let mut allowed = vec![f64::NAN; self.params.n as usize];
            self.device.download(self.of(Buffer::steps), &mut allowed)?;
            return Err(ForceError::StepTooShort {
                body,
                allowed: allowed[body] * self.frame.time,
                shortest: span / SPAN as f64,
            });
        }
        Ok(BlockCounts {
            blocks: word(clock::BLOCKS),
            steps: word(clock::EVALUATIONS),
            shortest: span.abs() / (1_u64 << word(clock::FINEST)) as f64,
            regular: word(neighbour_clock::REGULAR),
            neighbours: f64::from_bits(word(neighbour_clock::NEIGHBOURS)) as u64,
            ..BlockCounts::NONE
        })
    }

    /// Keeps in mind that a span has ended.
    pub(super) fn end_span(&mut self, span: f64) {
        if let Some(blocks) = &mut self.blocks {
            blocks.has_steps = true;
        }
        self.pass(span);
    }
}

/// Launches [`RECORDED`] block steps at a time by `launch`, `most_records` times at most between two looks, until the
/// clock, at which `look` looks, has gone through a span; returns its words then, or none if `watch` broke
/// off.
pub(super) fn run_span(
    launch: &mut dyn FnMut() -> Result<(), ForceError>,
    most_records: u64,
    look: &dyn Fn() -> Result<Words, ForceError>,
    watch: &mut dyn FnMut(f64) -> ControlFlow<()>,
) -> Result<Option<Words>, ForceError> {
    let (mut records, mut before) = (1, 0);
    loop {
        let asked = Instant::now();
        for _ in 0..records {
            launch()?;
        }
        let words = look()?;
        // An even number of block steps is done: the next would read the first place.
        let now = words[clock::NOW as usize];
        if now >= SPAN {
            return Ok(Some(words));
        }
        if watch(now as f64 / SPAN as f64).is_break() {
            return Ok(None);
        }
        // As many as the rest of the span may take, or twice as many if there is time.
        let each = (now - before).div_ceil(records).max(1);
        let rest = (SPAN - now).div_ceil(each);
        let longer = if asked.elapsed() < LOOK / 2 {
            2 * records
        } else {
            records
        };
        records = longer.min(rest).clamp(1, most_records);
        before = now;
    }
}

/// A state in which some bodies have newly chosen steps and spheres, and the others those that they have kept.
pub(super) fn with_chosen(kept: &SavedState, chosen: SavedState, some: &[usize]) -> SavedState {
    let is_chosen = {
        let mut is_chosen = vec![false; chosen.positions().len()];
        some.iter().for_each(|&i| is_chosen[i] = true);
        is_chosen
    };
    let others: Vec<usize> = (0..is_chosen.len()).filter(|&i| !is_chosen[i]).collect();
    let columns = [Column::OwnSteps, Column::Spheres].into_iter();
    columns.fold(chosen, |state, column| {
        state.with_some_of(kept, column, &others)
    })
}

impl<D: Device> BlockSteps for Resident<D> {
    fn advance_unless(
        &mut self,
        span: f64,
        eta: f64,
        watch: &mut dyn FnMut(f64) -> ControlFlow<()>,
    ) -> Result<Option<BlockCounts>, ForceError> {
        let BlockPlan { steps, .. } = self.blocks()?.plan;
        self.set_clock(self.frame.time_to_local(span), eta)?;
        if !self.blocks()?.has_steps {
            self.begin_steps()?;
        }
        match self.has_neighbours() {
            true => self.begin_span_of_neighbours()?,
            false => self.launch_block_correct(&steps, Phase::Begin, 1)?,
        }
        let Some(words) = self.run_span(watch)? else {
            return Ok(None);
        };
        let counts = self.counts(&words, span)?;
        self.end_span(span);
        Ok(Some(counts))
    }

    fn own_steps(&mut self) -> Result<Vec<f64>, ForceError> {
        self.saved_own_steps()
    }

    fn choose_steps(&mut self, span: f64, eta: f64, some: &[usize]) -> Result<bool, ForceError> {
        let kept = self.saved()?;
        self.set_clock(self.frame.time_to_local(span), eta)?;
        self.begin_steps()?;
        let chosen = self.saved()?;
        self.set_saved(&with_chosen(&kept, chosen, some))?;
        Ok(true)
    }

    fn keep_paths(&mut self, _radii: &[f64]) -> bool {
        self.begin_to_keep_steps()
    }

    fn take_paths(&mut self) -> Paths {
        Paths {
            steps: self.take_kept_steps(),
            contacts: vec![],
        }
    }
}
