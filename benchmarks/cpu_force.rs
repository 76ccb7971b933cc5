//! Interactions per second of the CPU backends: `cargo bench`.
//!
//! Kernels are timed by `allpairs bench`, on the GPU's own clock; here it is the CPU's own code,
//! with Criterion's statistics: did a change make it slower? A wrong force fails the benchmark.

use allpairs::machine::Machine;
use allpairs::physics::ForceLaw;
use allpairs::selection::Place;
use allpairs::variants::{Method, VARIANTS};
use allpairs_lab::verify::large_case;
use criterion::{
    BenchmarkId, Criterion, SamplingMode, Throughput, criterion_group, criterion_main,
};
use std::time::Duration;

/// Numbers of bodies: in the first-level cache, and beyond it.
const BODIES: [usize; 2] = [1024, 16_384];

fn forces(criterion: &mut Criterion) {
    let machine = Machine::new(Place::Cpu);
    let mut group = criterion.benchmark_group("cpu_force");
    group
        .sampling_mode(SamplingMode::Flat)
        .sample_size(20)
        .warm_up_time(Duration::from_secs(1))
        .measurement_time(Duration::from_secs(3));
    let is_on_cpu = |method| matches!(method, Method::Cpu { .. });
    for n in BODIES {
        let (case, _) = large_case(n, ForceLaw::Gravity);
        group.throughput(Throughput::Elements((n * n) as u64));
        for variant in VARIANTS.iter().filter(|v| is_on_cpu(v.method)) {
            let mut backend = machine
                .backend(variant, &case.bodies, case.physics)
                .expect("the CPU refuses nothing");
            let mut accelerate = || backend.accelerate().expect("the CPU refuses nothing");
            group.bench_function(BenchmarkId::new(variant.name, n), |b| {
                b.iter(&mut accelerate)
            });
            let computed = backend.accelerations().expect("the CPU refuses nothing");
            case.check(variant, &computed).expect("right forces");
        }
    }
    group.finish();
}

criterion_group!(benches, forces);
criterion_main!(benches);
