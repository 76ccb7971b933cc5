//! Spatial sort of a device's bodies along the Hilbert curve.

use std::panic;
use std::slice;
use std::thread::{self, JoinHandle};

use gpu_kernels::abi::{Params, Separation};
use gpu_kernels::entries::{Buffer, LayoutDescription};
use rayon::ThreadPoolBuilder;

use super::Resident;
use crate::backend::ForceError;
use crate::force::device::Device;
use crate::force::memory::Memory;
use crate::force::order::{self, Slots};
use crate::force::pack::{self, Scalars};
use crate::physics::ForceLaw;
use crate::plan::Step;
use crate::plan::spatial_sort as plan;

/// The most steps for which an order is kept.
const MOST_STEPS_IN_ORDER: u64 = 4;

/// So many bodies or more are put in order after every step.
const IN_ORDER_EACH_STEP: u32 = 1 << 18;

/// Steps from one look at all bodies together to the next: how large their system is, and what is
/// far in it.
const STEPS_MEASURED: u64 = 64;

/// Steps which the device takes while the host works on a look. Results come into use after so many
/// and not when they are there, which would be different each time.
const STEPS_TO_MEASURE: u64 = 2 * MOST_STEPS_IN_ORDER;

/// Steps for which an order of so many bodies is kept: what sorting them costs grows as their number, what it costs
/// that they have moved on as its square. A power of two.
fn steps_in_order(n: u32) -> u64 {
    let steps = (IN_ORDER_EACH_STEP / n.max(1)).max(1);
    MOST_STEPS_IN_ORDER.min(1 << steps.ilog2())
}

const _: () =
    assert!(STEPS_TO_MEASURE < STEPS_MEASURED && STEPS_MEASURED.is_multiple_of(STEPS_TO_MEASURE));

/// State of the spatial sort.
pub(super) struct SpatialSort {
    steps: Vec<Step>,
    /// Steps for which an order is kept.
    steps_in_order: u64,
    /// Steps since the last look.
    age: u64,
    /// The last look, until its results are in use.
    look: Option<JoinHandle<Measured>>,
}

/// Result of a look at all bodies: what is far, and the cube around them.
type Measured = (Separation, [f32; 4]);

/// Bodies as a look finds them.
struct Seen {
    layout: LayoutDescription,
    state: Scalars,
    params: Params,
    law: ForceLaw,
}

impl Seen {
    fn measured(&self) -> Measured {
        let (stride, n) = (self.params.stride, self.params.n);
        let (positions, masses) = pack::local_sources(&self.layout, stride, &self.state, n);
        let softening = self.params.softening_squared.sqrt();
        order::measured(&positions, &masses, self.law, softening)
    }
}

impl SpatialSort {
    /// With bodies in the slots of their numbers.
    pub(super) fn new<D: Device>(
        device: &D,
        memory: &Memory<D>,
        plan: plan::SpatialSort,
        n: u32,
    ) -> Result<Self, ForceError> {
        let slots = Slots::as_given(n);
        device.upload(memory.of(Buffer::numbers), slots.numbers())?;
        Ok(Self {
            steps: plan.steps,
            steps_in_order: steps_in_order(n),
            age: 0,
            look: None,
        })
    }

    /// Returns whether the step just taken is the one after which a look's results come into use.
    const fn has_results(&self) -> bool {
        self.age == STEPS_TO_MEASURE && self.look.is_some()
    }

    /// Steps until a look begins, or until its results come into use.
    const fn until_look(&self) -> u64 {
        match self.look {
            Some(_) => STEPS_TO_MEASURE - self.age,
            None => STEPS_MEASURED - self.age,
        }
    }
}

impl<D: Device> Resident<D> {
    /// Returns the map from slots to bodies.
    pub(super) fn slots(&self) -> Result<Slots, ForceError> {
        let n = self.params.n;
        if self.spatial_sort.is_none() {
            return Ok(Slots::as_given(n));
        }
        let mut numbers = vec![0_u32; n as usize];
        self.device
            .download(self.of(Buffer::numbers), &mut numbers)?;
        Ok(Slots::of(numbers))
    }

    /// Looks how large the system is and what is far in it, and puts the bodies in order, if that
    /// matters.
    pub(super) fn settle(&mut self) -> Result<(), ForceError> {
        self.measure()?;
        self.sort()
    }

    /// Looks, and puts the results into use at once.
    fn measure(&mut self) -> Result<(), ForceError> {
        match self.seen()? {
            Some(seen) => self.set_measured(&seen.measured()),
            None => Ok(()),
        }
    }

    /// Begins a look whose results come into use later.
    fn begin_to_measure(&mut self) -> Result<(), ForceError> {
        let look = self.seen()?.map(|seen| {
            thread::spawn(move || {
                // The global pool's threads may all be waiting for looks of their own.
                let pool = ThreadPoolBuilder::new().num_threads(1).build();
                pool.expect("there is a thread").install(|| seen.measured())
            })
        });
        if let Some(kept) = &mut self.spatial_sort {
            kept.look = look;
        }
        Ok(())
    }

    /// Downloads what a look needs; nothing where it does not matter.
    fn seen(&mut self) -> Result<Option<Seen>, ForceError> {
        let Some(kept) = &mut self.spatial_sort else {
            return Ok(None);
        };
        (kept.age, kept.look) = (0, None);
        let (layout, stride) = (self.layout, self.params.stride);
        let mut state = pack::empty_sources(&layout, stride);
        self.device
            .download(self.of(Buffer::state), state.bytes_mut())?;
        let (params, law) = (self.params, self.physics.law);
        Ok(Some(Seen {
            layout,
            state,
            params,
            law,
        }))
    }

    /// Waits for the results of the look that was begun, if one was.
    fn measured(&mut self) -> Option<Measured> {
        let look = self.spatial_sort.as_mut()?.look.take()?;
        Some(
            look.join()
                .unwrap_or_else(|panic| panic::resume_unwind(panic)),
        )
    }

    fn set_measured(&mut self, (separation, cube): &Measured) -> Result<(), ForceError> {
        if self.spatial_sort.is_none() {
            return Ok(());
        }
        self.device.upload(self.of(Buffer::bounds), cube)?;
        self.params.separation = *separation;
        Ok(())
    }

    /// As [`repeat_in_order`](Self::repeat_in_order) after each step, of devices that take the same step:
    /// puts the bodies in order now and then.
    pub(super) fn keep_in_order(parts: &mut [Self]) -> Result<(), ForceError> {
        for part in &mut *parts {
            let Some(kept) = &mut part.spatial_sort else {
                return Ok(());
            };
            kept.age += 1;
            if kept.age.is_multiple_of(kept.steps_in_order) {
                part.sort()?;
            }
        }
        Self::keep_measured(parts)
    }

    /// Begins a look at the bodies, which all parts have, and puts its results into use, where it is
    /// time.
    fn keep_measured(parts: &mut [Self]) -> Result<(), ForceError> {
        let Some(kept) = &parts[0].spatial_sort else {
            return Ok(());
        };
        if kept.has_results() {
            let results = parts[0].measured();
            return results.iter().try_for_each(|results| {
                let mut parts = parts.iter_mut();
                parts.try_for_each(|part| part.set_measured(results))
            });
        }
        if kept.age == STEPS_MEASURED {
            for kept in parts
                .iter_mut()
                .filter_map(|part| part.spatial_sort.as_mut())
            {
                kept.age = 0;
            }
            return parts[0].begin_to_measure();
        }
        Ok(())
    }

    /// Launches only: state, accelerations and numbers exchange places with their copies.
    fn sort(&mut self) -> Result<(), ForceError> {
        let Some(kept) = &self.spatial_sort else {
            return Ok(());
        };
        self.unite()?; // accelerations by fields are not sorted
        let sorted = self.carry_out(&kept.steps, self.params);
        for (of_now, of_sorted) in [
            (Buffer::state, Buffer::state_to),
            (Buffer::acceleration, Buffer::acceleration_to),
            (Buffer::numbers, Buffer::numbers_to),
        ] {
            self.memory.exchange(of_now, of_sorted);
        }
        sorted
    }

    /// Takes steps, and puts the bodies in order now and then.
    pub(super) fn repeat_in_order(
        &mut self,
        times: u64,
        step: &mut impl FnMut(&mut Self) -> Result<(), ForceError>,
    ) -> Result<(), ForceError> {
        let device = self.device.clone();
        let mut left = times;
        while let Some(kept) = &self.spatial_sort
            && left > 0
        {
            let (age, until_look, in_order) = (kept.age, kept.until_look(), kept.steps_in_order);
            let until_order = in_order - age % in_order;
            // After two orders everything is where it was, and what was launched can be repeated.
            let both = 2 * in_order;
            let rounds = left.min(until_look) / both;
            let taken = if until_order == in_order && rounds > 0 {
                device.repeat(rounds, &mut || {
                    for _ in 0..2 {
                        (0..in_order).try_for_each(|_| step(self))?;
                        self.sort()?;
                    }
                    Ok(())
                })?;
                rounds * both
            } else {
                let now = left.min(until_order);
                device.repeat(now, &mut || step(self))?;
                if now == until_order {
                    self.sort()?;
                }
                now
            };
            left -= taken;
            if let Some(kept) = &mut self.spatial_sort {
                kept.age += taken;
                Self::keep_measured(slice::from_mut(self))?;
            }
        }
        device.repeat(left, &mut || step(self))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::backend::{Backend, Operation};
    use crate::bodies::Bodies;
    use crate::fields::{External, ExternalField, Path};
    use crate::force::emulated::Emulator;
    use crate::frame::Frame;
    use crate::initial_conditions::plummer;
    use crate::physics::{ForceLaw, Physics};
    use crate::plan::Recipe;
    use crate::variants;

    fn resident(given: &Bodies) -> Resident<Emulator> {
        let variant = variants::find("tensor").expect("listed");
        let physics = Physics {
            law: ForceLaw::Gravity,
            g: 1.0,
            softening: 0.01,
        };
        let device = Arc::new(Emulator::new(1));
        let frame = Frame::of(given, &physics);
        let recipe = Recipe::new(variant, given, physics, frame, &device.limits()).expect("fits");
        Resident::new(device, recipe, given).expect("fits")
    }

    fn slots(resident: &Resident<Emulator>) -> Vec<usize> {
        resident.slots().expect("emulated").bodies().collect()
    }

    /// Bodies fly apart, and are sorted: memory changes, the bodies do not.
    #[test]
    fn bodies_stay_themselves_in_another_order() {
        let given = plummer(300, 5).expect("in range");
        let mut resident = resident(&given);
        resident.drift(3.0).expect("emulated");
        resident.accelerate().expect("emulated");
        let look = |resident: &mut Resident<Emulator>| -> (Bodies, Vec<[f64; 3]>) {
            let mut bodies = given.clone();
            resident.download(&mut bodies).expect("emulated");
            (bodies, resident.accelerations().expect("emulated"))
        };
        let (before, placed) = (look(&mut resident), slots(&resident));
        resident.settle().expect("emulated");
        let after = look(&mut resident);
        assert!(before == after);
        assert_ne!(placed, slots(&resident));
        // Masses went with them: the forces are the same but for rounding.
        resident.accelerate().expect("emulated");
        let (_, again) = look(&mut resident);
        for (i, (a, b)) in after.1.iter().zip(&again).enumerate() {
            let [off, size] = [[0, 1, 2].map(|axis| a[axis] - b[axis]), *a]
                .map(|v| v.iter().map(|x| x * x).sum::<f64>().sqrt());
            assert!(off <= 1e-4 * size, "body {i}: {a:?}, {b:?}");
        }
    }

    /// Whatever the number: part of a chunk, whole ones, part of a tile, and strangers far away.
    #[test]
    fn orders_are_permutations_and_compact() {
        for n in [1, 2, 31, 33, 2048, 2049, 5000] {
            let mut given = plummer(n, 7).expect("in range");
            if n > 2 {
                (given.x[1], given.y[2]) = (1e5, -1e5);
            }
            let mut resident = resident(&given);
            let placed = slots(&resident);
            let mut bodies = placed.clone();
            bodies.sort_unstable();
            assert_eq!(bodies, (0..n).collect::<Vec<_>>());
            if n < 5000 {
                continue;
            }
            // The median box of 32 bodies holds a small part of what as many as given span.
            let volume = |slots: &mut dyn Iterator<Item = usize>| {
                let slots: Vec<usize> = slots.collect();
                let mut volumes: Vec<f64> = slots
                    .chunks(32)
                    .map(|leaf| {
                        let side = |x: &[f64]| {
                            let at = || leaf.iter().map(|&body| x[body]);
                            at().fold(f64::MIN, f64::max) - at().fold(f64::MAX, f64::min)
                        };
                        side(&given.x) * side(&given.y) * side(&given.z)
                    })
                    .collect();
                volumes.sort_by(f64::total_cmp);
                volumes[volumes.len() / 2]
            };
            let (before, after) = (volume(&mut (0..n)), volume(&mut placed.into_iter()));
            assert!(after < before / 50.0, "{before} {after}");
            resident.settle().expect("emulated");
        }
    }

    /// A look is done although the pool's only thread waits for it.
    #[test]
    fn looks_need_no_thread_of_the_pool() {
        let pool = ThreadPoolBuilder::new().num_threads(1).build();
        let run = || {
            let mut resident = resident(&plummer(100, 3).expect("in range"));
            let steps = STEPS_MEASURED + STEPS_TO_MEASURE;
            resident.repeat(steps, &[Operation::Drift(0.1)])
        };
        pool.expect("a thread").install(run).expect("emulated");
    }

    #[test]
    fn many_bodies_are_sorted_more_often() {
        let numbers = [1, 65_536, 65_537, 131_072, 131_073, 1 << 18, u32::MAX];
        assert_eq!(numbers.map(steps_in_order), [4, 4, 2, 2, 1, 1, 1]);
    }

    /// Steps in a field that changes are taken one by one, and bodies are put in order all the same.
    #[test]
    fn bodies_in_a_changing_field_are_sorted() {
        let given = plummer(300, 5).expect("in range");
        let path = Path::through(&[(0.0, [9.0, 0.0, 0.0]), (90.0, [9.0, 1.0, 0.0])]);
        let moving = ExternalField::point(0.1).along(path.expect("a path"));
        let fields = [moving].into_iter().collect();
        let plain = resident(&given);
        let before = slots(&plain);
        let mut resident = plain
            .in_fields(External::new(&fields, 1.0), &given)
            .expect("emulated");
        for (steps, is_sorted) in [(3, false), (1, true)] {
            let step = [Operation::Drift(0.7)];
            resident.repeat(steps, &step).expect("emulated");
            assert_eq!(slots(&resident) != before, is_sorted, "after {steps} more");
        }
    }

    /// Steps with orders in between are the steps without, but for rounding.
    #[test]
    fn steps_are_counted_whatever_they_are_asked_in() {
        let given = plummer(100, 3).expect("in range");
        let asked = [
            (vec![21], 4),
            (vec![1; 21], 2),
            (vec![3, 8, 10], 1),
            (vec![70, 1], 4),
        ];
        for (parts, steps_in_order) in asked {
            let mut resident = resident(&given);
            let kept = resident.spatial_sort.as_mut().expect("of many bodies");
            kept.steps_in_order = steps_in_order;
            for &part in &parts {
                let step = [Operation::Drift(0.01)];
                resident.repeat(part, &step).expect("emulated");
            }
            let count: u64 = parts.iter().sum();
            let mut bodies = given.clone();
            resident.download(&mut bodies).expect("emulated");
            let moved = 0.01 * count as f64;
            for (i, (x, v)) in bodies.x.iter().zip(&given.vx).enumerate() {
                let wanted = given.x[i] + moved * v;
                // A rounding a step, in f32.
                let bound = count as f64 * f64::from(f32::EPSILON) * (wanted.abs() + 1.0);
                assert!((x - wanted).abs() <= bound, "body {i}: {x} {wanted}");
            }
        }
    }
}
