//! Regular forces of a neighbour scheme that the host launches, where block steps wait for them.

use std::slice;

use gpu_kernels::abi::Params;
use gpu_kernels::entries::Buffer;
use gpu_kernels::schedule::block_steps::neighbours::{Phase, RegularProgress, clock};

use super::{Resident, Words};
use crate::backend::ForceError;
use crate::force::device::Device;
use crate::force::{order, pack};
use crate::plan::regular::RegularPlan;

impl<D: Device> Resident<D> {
    /// Regular forces on tensor cores where the device has them, with kernels that are ready.
    pub(super) fn prepared(&self, plan: RegularPlan) -> Result<RegularPlan, ForceError> {
        let plan = plan.with_tensor_cores(self.device.has(RegularPlan::tensor()));
        for entry in plan.entries() {
            self.device.prepare(entry)?;
        }
        Ok(plan)
    }

    /// Returns whether block steps wait for regular forces that the host launches.
    pub(super) fn waits_for_host(&self) -> bool {
        self.scheme()
            .is_some_and(|scheme| scheme.plan.regular.is_some())
    }

    /// Puts the cube around the bodies, in which the launches of regular forces put them in order. The cube is of the
    /// bodies at the beginning of a span, so that a resumed run has the same cube.
    pub(super) fn set_cube(&self) -> Result<(), ForceError> {
        if !self.waits_for_host() {
            return Ok(());
        }
        let (layout, Params { n, stride, .. }) = (&self.layout, self.params);
        let state = pack::empty_sources(layout, stride);
        let state = self.fetch(self.of(Buffer::state), state)?;
        let (positions, masses) = pack::local_sources(layout, stride, &state, n);
        let softening = self.params.softening_squared.sqrt();
        let (_, cube) = order::measured(&positions, &masses, self.physics.law, softening);
        self.device.upload(self.of(Buffer::bounds), &cube)
    }

    /// Launches the regular forces that block steps wait for, by the words of the clock after a block step. The step
    /// leaves this parity.
    pub(super) fn launch_awaited_forces(
        &self,
        words: &Words,
        parity: u16,
    ) -> Result<(), ForceError> {
        let word = words[(clock::PROGRESS + u32::from(parity)) as usize];
        match RegularProgress::from(word) {
            RegularProgress::Awaited { targets, .. } => {
                self.launch_regular_forces(targets, Phase::Step, parity)
            }
            RegularProgress::Nothing | RegularProgress::Swept | RegularProgress::Done { .. } => {
                Ok(())
            }
        }
    }

    /// Launches regular forces of a number of targets.
    pub(super) fn launch_regular_forces(
        &self,
        targets: u32,
        phase: Phase,
        parity: u16,
    ) -> Result<(), ForceError> {
        let plan = &self.neighbours()?.plan;
        let Some(regular) = &plan.regular else {
            return Ok(());
        };
        let steps = regular.launches(plan, targets, (phase, parity), self.params)?;
        let mut steps = steps.iter();
        steps.try_for_each(|(step, params)| self.carry_out(slice::from_ref(step), *params))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use gpu_kernels::schedule::block_steps::DigitsName;

    use super::*;
    use crate::backend::{Backend, BlockCounts, BlockSteps, GUARD, SavedState};
    use crate::bodies::Bodies;
    use crate::diagnostics::Energy;
    use crate::force::emulated::Emulator;
    use crate::frame::Frame;
    use crate::initial_conditions::plummer;
    use crate::integrator::Integrator;
    use crate::physics::{ForceLaw, Physics};
    use crate::plan::block_steps::{BlockScheme, Part};
    use crate::plan::neighbours::RegularForces;
    use crate::plan::{Limits, Recipe};
    use crate::variants;

    const ETA: f64 = 0.04;

    /// A span of these tests.
    const SPAN: f64 = 1.0 / 64.0;

    fn resident(
        bodies: &Bodies,
        softening: f64,
        wanted: u32,
        forces: RegularForces,
    ) -> Resident<Emulator> {
        let variant = variants::find("hermite-f64").expect("listed");
        let physics = Physics {
            law: ForceLaw::Gravity,
            g: 1.0,
            softening,
        };
        let limits = Limits::EVERYWHERE;
        let recipe = Recipe::new(variant, bodies, physics, Frame::IDENTITY, &limits);
        let emulator = Arc::new(Emulator::new(0));
        let resident = Resident::new(emulator, recipe.expect("fits"), bodies).expect("fits");
        let scheme = BlockScheme {
            order: 4,
            digits: DigitsName::Mixed,
            slices: 3,
            neighbours: Some(wanted),
            heavy_are_finer: false,
        };
        let resident = resident.with_block_steps(scheme, GUARD).expect("fits");
        let resident = resident.with_part_of_neighbours((wanted, forces), Part::Alone, bodies);
        let mut resident = resident.expect("fits");
        Integrator::Hermite4
            .prepare(&mut resident)
            .expect("emulated");
        resident
    }

    /// Where some spans end, the energy there, and the counts.
    fn ended(resident: &mut Resident<Emulator>, spans: usize) -> (SavedState, Energy, BlockCounts) {
        let mut counts = BlockCounts::NONE;
        for _ in 0..spans {
            counts += resident.advance(SPAN, ETA).expect("emulated");
        }
        let energy = resident.energy().expect("emulated");
        (resident.save().expect("there"), energy, counts)
    }

    /// Bodies of different masses, of which some have none.
    fn unlike(n: usize) -> Bodies {
        let mut bodies = plummer(n, 5).expect("in range");
        for (body, mass) in bodies.mass.iter_mut().enumerate() {
            *mass *= [1.0, 0.0, 3.0, 0.1][body % 4];
        }
        bodies
    }

    /// Lengths of lists, regular accelerations and jerks.
    type Begun = (Vec<u32>, [Vec<[f64; 3]>; 2]);

    /// A run at the beginning of a span.
    fn begun(resident: &mut Resident<Emulator>) -> Begun {
        let n = resident.params.n as usize;
        resident.set_clock(SPAN, ETA).expect("emulated");
        resident.launch_first_steps().expect("emulated");
        resident.begin_neighbours().expect("emulated");
        use super::super::neighbours::NeighbourLaunches;
        resident.begin_span_of_neighbours().expect("emulated");
        let device = &*resident.device;
        let mut counts = vec![0_u32; n];
        device
            .download(resident.of(Buffer::counts), &mut counts)
            .expect("emulated");
        let stride = resident.params.stride as usize;
        let mut vectors = vec![[0.0_f64; 4]; 2 * stride];
        let higher = resident.of(Buffer::higher);
        device.download(higher, &mut vectors).expect("emulated");
        let of = |from: usize| {
            let vectors = vectors[from..from + n].iter();
            vectors.map(|&[x, y, z, _]| [x, y, z]).collect()
        };
        (counts, [of(0), of(stride)])
    }

    /// Largest and root of the mean squared difference of vectors, by the root of their mean square.
    fn differences(a: &[[f64; 3]], b: &[[f64; 3]]) -> [f64; 2] {
        let square = |v: [f64; 3]| v.iter().map(|x| x * x).sum::<f64>();
        let of = |(a, b): (&[f64; 3], &[f64; 3])| square([0, 1, 2].map(|k| a[k] - b[k]));
        let mean = |sum: f64| sum / a.len() as f64;
        let size = mean(b.iter().map(|&v| square(v)).sum());
        let all: Vec<f64> = a.iter().zip(b).map(of).collect();
        let largest = all.iter().copied().fold(0.0, f64::max);
        [largest, mean(all.iter().sum())].map(|x| (x / size).sqrt())
    }

    /// Lists of the same length, accelerations but for the rounding of f32 or of halves, and jerks but for leaves that
    /// are one body.
    #[test]
    fn forces_are_those_of_a_sweep() {
        for (n, wanted, softening) in [(1_100, 12, 1e-2), (700, 30, 0.0), (33, 4, 1e-2)] {
            let bodies = unlike(n);
            let of = |forces, on_tensor| {
                let mut resident = resident(&bodies, softening, wanted, forces);
                let blocks = resident.blocks.as_mut().expect("there");
                let neighbours = blocks.neighbours.as_mut().expect("there");
                if let Some(regular) = &mut neighbours.plan.regular {
                    *regular = regular.with_tensor_cores(on_tensor);
                }
                begun(&mut resident)
            };
            let (swept_counts, [swept_a, swept_j]) = of(RegularForces::Swept, false);
            let within = |(counts, [a, j]): &Begun, bound: f64| {
                assert_eq!(*counts, swept_counts);
                let ([largest, _], [_, jerks]) =
                    (differences(a, &swept_a), differences(j, &swept_j));
                assert!(
                    largest < bound && jerks < 5e-2,
                    "{n}: {largest:e} {jerks:e}"
                );
                assert!(n < 700 || jerks > 1e-6, "{jerks:e}: nothing was far");
            };
            let halves = of(RegularForces::ByHost, true);
            let singles = of(RegularForces::ByHost, false);
            within(&halves, 2e-5);
            within(&singles, 2e-6);
            let used = halves.1[0] != singles.1[0];
            assert!(n < 700 || used, "{n}: nothing was on tensor cores");
        }
    }

    #[test]
    fn runs_end_as_with_sweeps() {
        for (n, wanted) in [(700, 16), (40, 39), (2, 1), (1, 1)] {
            let bodies = match n {
                1 => Bodies::at_rest(&[[0.25; 3]], &[1.0]),
                2 => plummer(2, 7).expect("in range"),
                _ => unlike(n),
            };
            let of = |forces| ended(&mut resident(&bodies, 1e-2, wanted, forces), 2);
            let (by_host, energy, counts) = of(RegularForces::ByHost);
            let (swept, swept_energy, swept_counts) = of(RegularForces::Swept);
            let [largest, _] = differences(by_host.positions(), swept.positions());
            assert!(largest < 1e-6, "{n}: {largest:e}");
            let change = energy.total() - swept_energy.total();
            assert!(change.abs() <= 1e-6 * swept_energy.total().abs());
            // Jerks of leaves of as many bodies as neighbours make steps shorter.
            assert!(2 * counts.regular <= 3 * swept_counts.regular);
            assert!(n < 3 || counts.regular >= n as u64);
        }
    }

    /// Bodies of all blocks need shorter steps than there are.
    #[test]
    fn runs_stop_where_steps_are_too_short() {
        for forces in [RegularForces::ByHost, RegularForces::Swept] {
            let mut resident = resident(&unlike(300), 0.0, 12, forces);
            let stopped = resident.advance(SPAN, 1e-30);
            assert!(
                matches!(stopped, Err(ForceError::StepTooShort { .. })),
                "{stopped:?}"
            );
        }
    }

    /// A resumed run, and a run that keeps steps, have the same bits.
    #[test]
    fn runs_go_on_with_the_same_bits() {
        for (n, forces) in [(300, RegularForces::ByHost), (100, RegularForces::Swept)] {
            let bodies = unlike(n);
            let begin = || resident(&bodies, 1e-2, 8, forces);
            let (whole, _, counts) = ended(&mut begin(), 2);
            let (saved, ..) = ended(&mut begin(), 1);
            let mut resumed = begin();
            resumed.restore(&saved).expect("the same bodies");
            assert!(ended(&mut resumed, 1).0 == whole);
            let mut kept = begin();
            assert!(kept.keep_paths(&[]));
            assert!(ended(&mut kept, 2).0 == whole);
            let steps = kept.take_paths().steps.len() as u64;
            assert!(n as u64 <= steps && steps <= counts.steps + n as u64);
        }
    }
}
