//! Every kernel on the emulator, against the f64 reference: in blocks of several sizes, with
//! threads in several orders. And whether a kernel that is wrong would be found.

use std::f64::consts::TAU;
use std::sync::Arc;
use std::time::Duration;

use crate::support::{Table, assert_none, repetition_failure, rms_error, softened};
use allpairs::backend::{Backend, ForceError};
use allpairs::bodies::{Bodies, Body};
use allpairs::force::device::Device;
use allpairs::force::emulated::{EmulatedMemory, Emulator};
use allpairs::force::resident::Resident;
use allpairs::frame::Frame;
use allpairs::initial_conditions::{plummer, two_body};
use allpairs::integrator::Integrator;
use allpairs::machine::Machine;
use allpairs::physics::{ForceLaw, Physics};
use allpairs::plan::{self, Launch, Limits, Recipe};
use allpairs::selection::Place;
use allpairs::variants::{Bus, Method, Variant};
use allpairs_lab::studies::catalogue;
use allpairs_lab::verify::{Case, cloud, edge_cases};
use cuda_driver::Columns;
use gpu_kernels::abi::Params;
use gpu_kernels::entries::{Entry, Work};
use rayon::prelude::*;

/// The kernels as they are offered.
fn kernels() -> Vec<Variant> {
    let is_kernel = |v: &&Variant| matches!(v.method, Method::Kernel { .. });
    catalogue().all().filter(is_kernel).copied().collect()
}

/// Kernels that are not known to be wrong.
fn right_kernels() -> Vec<Variant> {
    let mut kernels = kernels();
    kernels.retain(|kernel| kernel.wrong.is_none());
    kernels
}

/// The right kernels in blocks of `threads`, those that can be.
fn kernels_in_blocks_of(threads: u32) -> Vec<Variant> {
    let limits = Emulator::new(0).limits();
    let runs = |variant: &Variant| {
        variant
            .laws()
            .filter_map(|law| variant.force(law, false))
            .all(|entry| plan::force(entry, 1, threads, variant.split(), &limits).is_ok())
    };
    let kernels = right_kernels().into_iter();
    let kernels = kernels.map(|v| v.in_blocks_of(threads));
    kernels.filter(runs).collect()
}

/// Fails if any of `kernels` is wrong with the threads in this order.
fn verify(kernels: &[Variant], table: &Table, thread_order: u64) {
    assert!(!kernels.is_empty(), "nothing to verify");
    let failures = kernels
        .par_iter()
        .flat_map_iter(|kernel| table.failures(&Machine::emulator(thread_order), kernel));
    assert_none(&failures.collect::<Vec<_>>());
}

#[test]
fn offered_kernels_are_right() {
    verify(&kernels(), &Table::fewer(256, 530), 0);
    // More than a block, where it is the order of threads that may matter.
    let table = Table::new(64, 300).of_more_than(64);
    verify(&kernels(), &table, 20_260_101);
}

/// Error that tensor cores state for few bodies: the errors of N pairs average.
/// And what they refuse: an ε just below their range, unless told that the error does not matter,
/// and no softening in any case.
#[test]
fn tensor_cores_keep_to_their_error_and_range() {
    const BODIES: usize = 1024;
    let machine = Machine::emulator(0);
    let lenient = Machine::emulator(0).allow_inaccurate(true);
    for variant in kernels().iter().filter(|variant| variant.is_tensor()) {
        for case in [1.0 / 8.0, 1.0 / 31.0]
            .map(|part| softened(BODIES, part))
            .concat()
        {
            let error = rms_error(&machine, variant, &case);
            assert!(
                error <= variant.stated_error(BODIES),
                "{}, {}: {error:e}",
                variant.name,
                case.name
            );
        }
        for case in softened(64, 1.0 / 33.0) {
            let refusal = machine.backend(variant, &case.bodies, case.physics);
            let refusal = refusal.err().expect("out of range").to_string();
            assert!(refusal.contains("`allow_inaccurate`"), "{refusal}");
            assert!(rms_error(&lenient, variant, &case).is_finite());
            let unsoftened = Physics {
                softening: 0.0,
                ..case.physics
            };
            let refusal = lenient.backend(variant, &case.bodies, unsoftened);
            let refusal = refusal.err().expect("no such kernel").to_string();
            assert!(!refusal.contains("`allow_inaccurate`"), "{refusal}");
        }
    }
}

/// `double-single` states an error of 1e-10: in a dense cluster beside bodies a thousand times its
/// size away, with masses over twelve decades, and without softening.
#[test]
fn double_single_keeps_ten_digits() {
    const BODIES: usize = 700;
    let mut bodies = Bodies::with_capacity(BODIES);
    for (i, body) in plummer(BODIES, 5).expect("in range").iter().enumerate() {
        let away = if i % 100 == 99 { 1000.0 } else { 1.0 };
        bodies.push(Body {
            position: body.position.map(|x| x * away),
            mass: 10f64.powf(-((i % 13) as f64)),
            ..body
        });
    }
    let physics = Physics {
        law: ForceLaw::Gravity,
        g: 1.0,
        softening: 0.0,
    };
    let case = Case::new("a cluster and bodies far away", bodies, physics);
    let machine = Machine::emulator(0);
    let errors = ["double-single", "symmetric-f64"].map(|name| {
        let variant = catalogue().find(name).expect("listed");
        let mut backend = machine
            .backend(variant, &case.bodies, physics)
            .expect("runs");
        backend.accelerate().expect("runs");
        let computed = backend.accelerations().expect("runs");
        case.check(variant, &computed).expect("within its bound");
        case.accuracy(&computed).max_relative
    });
    assert!(errors[0] <= 1e-10 && errors[1] < errors[0], "{errors:?}");
}

/// Far pairs on tensor cores are as stated: a root mean square error of 10⁻⁵ and at most 1 % of
/// the bodies off by 10⁻⁴, without softening, for unequal masses and far from the origin. Two
/// clusters, for in so few bodies little else is far.
#[test]
fn separated_pairs_keep_to_their_error() {
    const BODIES: usize = 3072;
    let cluster = plummer(BODIES / 2, 3).expect("in range");
    let mut bodies = Bodies::with_capacity(BODIES);
    for (i, body) in cluster.iter().chain(cluster.iter()).enumerate() {
        let [x, y, z] = body.position;
        let side = if i < BODIES / 2 { 10.0 } else { -10.0 };
        bodies.push(Body {
            position: [x + side + 1e6, y, 2.0 * z],
            mass: 10f64.powf(-((i % 13) as f64)),
            id: i as u64,
            ..body
        });
    }
    let physics = Physics {
        law: ForceLaw::Gravity,
        g: 1.0,
        softening: 0.0,
    };
    let case = Case::new("two clusters", bodies, physics);
    let variant = catalogue().find("tensor").expect("listed");
    let machine = Machine::emulator(0);
    let mut backend = machine
        .backend(variant, &case.bodies, physics)
        .expect("runs");
    backend.accelerate().expect("runs");
    let computed = backend.accelerations().expect("runs");
    let error = case.accuracy(&computed).rms_relative;
    assert!(error <= variant.stated_error(BODIES), "{error:e}");
    let digits = case.right_digits(&computed);
    let worse: u64 = digits[..4].iter().sum();
    assert!(100 * worse <= digits.iter().sum(), "{digits:?}");
}

/// The same where d² varies little, more and much between a block and the leaves far from it, so that
/// 1/d³ comes from each of the polynomials and from roots: clumps of a block each in a row, larger and
/// larger beside their distance. What rounded positions cost within a clump, they cost `symmetric` too.
#[test]
fn every_class_of_far_leaves_keeps_to_the_error() {
    const CLUMPS: usize = 12;
    let physics = Physics {
        law: ForceLaw::Gravity,
        g: 1.0,
        softening: 0.0,
    };
    for size in [0.05, 0.3, 0.5, 0.8] {
        let cloud = cloud(CLUMPS * 256);
        let mut bodies = Bodies::with_capacity(cloud.len());
        for (i, body) in cloud.iter().enumerate() {
            let [x, y, z] = body.position.map(|x| 0.5 * size * x);
            let position = [x + (i % CLUMPS) as f64, y, z];
            bodies.push(Body { position, ..body });
        }
        let case = Case::new("clumps in a row", bodies, physics);
        let machine = Machine::emulator(0);
        let tensor = catalogue().find("tensor").expect("listed");
        let stated = tensor.stated_error(case.bodies.len());
        let [error, of_positions] = ["tensor", "symmetric"].map(|name| {
            let variant = catalogue().find(name).expect("listed");
            let mut backend = machine
                .backend(variant, &case.bodies, physics)
                .expect("runs");
            backend.accelerate().expect("runs");
            let computed = backend.accelerations().expect("runs");
            case.check(variant, &computed).expect("within its bound");
            case.accuracy(&computed).rms_relative
        });
        assert!(
            error <= of_positions.hypot(stated),
            "size {size}: {error:e}, {of_positions:e}"
        );
    }
}

#[test]
fn kernels_are_right_in_small_blocks() {
    for threads in [32, 64] {
        let table = Table::fewer(threads, 200);
        for thread_order in [0, 1, 2] {
            verify(&kernels_in_blocks_of(threads), &table, thread_order);
        }
    }
}

#[test]
fn repeated_steps_are_single_steps() {
    let kernels = right_kernels();
    let failures = kernels
        .par_iter()
        .filter_map(|kernel| repetition_failure(&Machine::emulator(0), kernel));
    assert_none(&failures.collect::<Vec<_>>());
}

/// A quarter of an eccentric orbit by Hermite's scheme, with steps and with half as long ones: the
/// ratio of the errors is 2 to the order. The end is known from far smaller steps on the CPU.
#[test]
fn errors_of_hermite_fall_with_its_order() {
    let bodies = two_body(0.5, 0.3).expect("bound");
    let physics = Physics {
        law: ForceLaw::Gravity,
        g: 1.0,
        softening: 0.0,
    };
    let end = |machine: &Machine, kernel: &str, integrator: Integrator, steps: u32| {
        let variant = catalogue().find(kernel).expect("listed");
        let mut backend = machine
            .backend(variant, &bodies, physics)
            .expect("runs there");
        integrator.prepare(&mut *backend).expect("jerks");
        for _ in 0..steps {
            let dt = TAU / 4.0 / f64::from(steps);
            integrator.step(&mut *backend, dt).expect("jerks");
        }
        let mut end = bodies.clone();
        backend.download(&mut end).expect("there");
        end
    };
    let cpu = Machine::new(Place::CPU);
    let exact = end(&cpu, "cpu-f64", Integrator::Yoshida6, 1000);
    // The fifth order takes 0.06 of the slope at 64 steps, 0.2 at 4; there rounding in f32, 3·10⁻⁷ by
    // the end, is an eighth of the smaller error: log₂ 1.12 = 0.16 more.
    for (kernel, steps, allowed) in [("hermite-f64", 64, 0.1), ("hermite", 4, 0.4)] {
        let error = |steps| {
            let end = end(&Machine::emulator(0), kernel, Integrator::Hermite4, steps);
            let off = |i: usize| (end.x[i] - exact.x[i]).hypot(end.y[i] - exact.y[i]);
            off(0) + off(1)
        };
        let order = (error(steps) / error(2 * steps)).log2();
        assert!((order - 4.0).abs() <= allowed, "{kernel}: slope {order}");
    }
}

/// The criterion of the steps on a device is that of the CPU.
#[test]
fn steps_on_a_device_are_the_steps_on_the_cpu() {
    let bodies = plummer(100, 4).expect("in range");
    let physics = Physics {
        law: ForceLaw::Gravity,
        g: 1.0,
        softening: 0.05,
    };
    let steps = |machine: &Machine, kernel: &str| {
        let variant = catalogue().find(kernel).expect("listed");
        let mut backend = machine
            .backend(variant, &bodies, physics)
            .expect("runs there");
        let hermite = Integrator::Hermite4;
        hermite.prepare(&mut *backend).expect("jerks");
        let before = backend.save().expect("there");
        let first = hermite
            .first_step(&mut *backend, 0.01, 1.0)
            .expect("a step");
        // However long a step is tried: in f32 this one overflows.
        let tried = hermite.first_step(&mut *backend, 0.01, 1e12);
        assert!(tried.expect("a step") <= 0.1);
        assert_eq!(backend.save().expect("there"), before);
        hermite.step(&mut *backend, first).expect("jerks");
        let next = hermite
            .next_step(&mut *backend, 0.01, first)
            .expect("a step");
        [first, next]
    };
    let cpu = steps(&Machine::new(Place::CPU), "cpu-f64");
    // Third differences lose what dt³ is short of the time in which pulls change: √η cubed.
    for (kernel, bound) in [("hermite-f64", 1e-10), ("hermite", 2e-2)] {
        let device = steps(&Machine::emulator(0), kernel);
        for (device, cpu) in device.into_iter().zip(cpu) {
            let off = (device / cpu - 1.0).abs();
            assert!(off <= bound, "{kernel}: {device} for {cpu}");
        }
    }
}

/// An emulator that launches forces with something changed.
struct Mutant {
    emulator: Emulator,
    change: fn(&mut Launch, &mut Params),
}

impl Device for Mutant {
    type Buffer = EmulatedMemory;

    fn limits(&self) -> Limits {
        self.emulator.limits()
    }

    fn multiprocessors(&self) -> u32 {
        self.emulator.multiprocessors()
    }

    fn few_pairs(&self) -> u64 {
        self.emulator.few_pairs()
    }

    fn allocate(&self, bytes: usize) -> Result<EmulatedMemory, ForceError> {
        self.emulator.allocate(bytes)
    }

    fn allocate_for_host(&self, bytes: usize, bus: Bus) -> Result<EmulatedMemory, ForceError> {
        self.emulator.allocate_for_host(bytes, bus)
    }

    fn on_host(
        &self,
        buffer: &EmulatedMemory,
        work: &mut dyn FnMut(&mut [u8]),
    ) -> Result<Duration, ForceError> {
        self.emulator.on_host(buffer, work)
    }

    fn multiply(
        &self,
        shape: Columns,
        matrix: &EmulatedMemory,
        x: &EmulatedMemory,
        y: &EmulatedMemory,
    ) -> Result<(), ForceError> {
        self.emulator.multiply(shape, matrix, x, y)
    }

    fn zero(&self, buffer: &EmulatedMemory) -> Result<(), ForceError> {
        self.emulator.zero(buffer)
    }

    fn upload<T: bytemuck::Pod>(&self, to: &EmulatedMemory, from: &[T]) -> Result<(), ForceError> {
        self.emulator.upload(to, from)
    }

    fn download<T: bytemuck::Pod>(
        &self,
        from: &EmulatedMemory,
        to: &mut [T],
    ) -> Result<(), ForceError> {
        self.emulator.download(from, to)
    }

    unsafe fn launch(
        &self,
        entry: &'static Entry,
        mut launch: Launch,
        buffers: &[&EmulatedMemory],
        mut params: Params,
    ) -> Result<(), ForceError> {
        if matches!(entry.work, Work::Force { .. }) {
            (self.change)(&mut launch, &mut params);
        }
        // SAFETY: the caller's promise, as far as `change` keeps it; the emulator checks every
        // access against the buffers.
        unsafe { self.emulator.launch(entry, launch, buffers, params) }
    }

    fn synchronize(&self) -> Result<(), ForceError> {
        self.emulator.synchronize()
    }

    fn seconds_of(&self, work: impl FnOnce() -> Result<(), ForceError>) -> Result<f64, ForceError> {
        self.emulator.seconds_of(work)
    }
}

/// Returns whether a case tells a changed kernel from the right one, by a fault or by its forces.
fn is_found(case: &Case, variant: &Variant, change: fn(&mut Launch, &mut Params)) -> bool {
    let emulator = Emulator::new(0);
    let mutant = Arc::new(Mutant { emulator, change });
    let variant = &variant.in_blocks_of(32);
    let frame = Frame::of(&case.bodies, &case.physics);
    let limits = Limits::EVERYWHERE;
    let recipe = Recipe::new(variant, &case.bodies, case.physics, frame, &limits);
    let recipe = recipe.expect("fits the emulator");
    let mut backend = Resident::new(mutant, recipe, &case.bodies).expect("fits the emulator");
    match backend.accelerate() {
        Err(ForceError::Kernel(_)) => true,
        Err(other) => panic!("{other}"),
        Ok(()) => {
            let computed = backend.accelerations().expect("the launch succeeded");
            case.check(variant, &computed).is_err()
        }
    }
}

#[test]
fn planted_errors_are_found() {
    type Change = (&'static str, fn(&mut Launch, &mut Params));
    let changes: [Change; 8] = [
        ("the last body is left out", |_, p| p.n -= 1),
        ("a body too many", |_, p| p.n += 1),
        ("bodies are looked for elsewhere", |_, p| p.stride -= 32),
        ("softening 1 % off", |_, p| p.softening_squared *= 1.02),
        ("G 3·10⁻⁶ off", |_, p| p.g *= 1.000_003),
        ("G of the other sign", |_, p| p.g = -p.g),
        ("a block too few", |l, _| l.grid[0] -= 1),
        ("half of the shared memory", |l, _| l.shared_bytes /= 2),
    ];
    let cases: Vec<Case> = edge_cases(32)
        .into_iter()
        .filter(|case| case.name == "cloud, N = 65")
        .collect();
    assert_eq!(cases.len(), 1);
    for name in ["tiled-soa", "tiled-soa-rsqrt"] {
        let variant = catalogue().find(name).expect("listed").in_blocks_of(32);
        assert!(!is_found(&cases[0], &variant, |_, _| {}));
        for (what, change) in changes {
            assert!(is_found(&cases[0], &variant, change), "{name}: {what}");
        }
    }
}
