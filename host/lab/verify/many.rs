//! Cases of many systems.

use super::stated::are_independent;
use super::{Case, MOST_TARGETS, altered};
use allpairs::backend::{Backend, ForceError};
use allpairs::bodies::Bodies;
use allpairs::force::cpu::Cpu;
use allpairs::force::independent::Independent;
use allpairs::force::reference;
use allpairs::integrator::Integrator;
use allpairs::physics::{ForceLaw, Physics};
use allpairs::plan::systems::bodies_each;

impl Case {
    /// Like [`new`](Self::new), but for bodies of several independent systems.
    ///
    /// # Panics
    /// If they are not.
    pub fn of_systems(
        name: impl Into<String>,
        bodies: Bodies,
        physics: Physics,
        systems: u32,
    ) -> Self {
        let n = bodies_each(bodies.len(), systems).expect("as many systems as said");
        let every = bodies.len().div_ceil(MOST_TARGETS).max(1);
        let targets: Vec<usize> = (0..bodies.len()).step_by(every).collect();
        let expected = (0..systems as usize).flat_map(|system| {
            let range = system * n..(system + 1) * n;
            let own = targets.iter().filter(|&i| range.contains(i));
            let own: Vec<usize> = own.map(|i| i - range.start).collect();
            reference::accelerations_of(&bodies.part(range), &physics, &own)
        });
        Self {
            expected: expected.collect(),
            independent: are_independent(&bodies),
            name: name.into(),
            bodies,
            physics,
            systems,
            targets,
        }
    }
}

/// Systems of few bodies and of many, as many as streams divide and not.
pub(super) fn cases(block: usize) -> impl Iterator<Item = Case> {
    let sizes = [
        (1, 5),
        (33, 1),
        (16, 32),
        (17, 33),
        (5, block + 1),
        (3, 2 * block + 1),
    ];
    let softened = sizes.map(|size| (size, 0.05, ForceLaw::Unit)).into_iter();
    let sizes = softened.chain([
        ((33, 3), 0.0, ForceLaw::Unit),
        ((5, block - 1), 0.0, ForceLaw::Unit),
        ((33, 3), 0.0, ForceLaw::Gravity),
        ((5, block + 1), 0.05, ForceLaw::Gravity),
    ]);
    sizes.map(|((systems, n), softening, law)| {
        let physics = Physics {
            law,
            g: 1.0,
            softening,
        };
        let bodies = shapes(systems, n);
        let without = if softening == 0.0 {
            " without softening"
        } else {
            ""
        };
        let name = format!("{systems} systems{without}, law `{law}`, N = {n} each");
        Case::of_systems(name, bodies, physics, systems as u32)
    })
}

/// So many systems of n bodies each, of three sizes.
fn shapes(systems: usize, n: usize) -> Bodies {
    altered(systems * n, |b, i| {
        let size = 1.0 + (i / n % 3) as f64 / 2.0;
        b.position = b.position.map(|x| size * x);
        b.velocity = b.velocity.map(|v| size * v);
    })
}

/// So many systems of n bodies each under a law, and a step that follows their motion: a twentieth of
/// the time in which a system of size 1 falls together.
pub fn many_systems(systems: u32, n: usize, law: ForceLaw) -> (Case, f64) {
    let physics = Physics {
        law,
        g: 1.0,
        softening: 0.05,
    };
    let mut bodies = shapes(systems as usize, n);
    if law != ForceLaw::Unit {
        let share = f64::from(systems);
        bodies.mass.iter_mut().for_each(|mass| *mass *= share); // of mass 1 each
    }
    let weight = match law {
        ForceLaw::Unit => n as f64,
        ForceLaw::Gravity | ForceLaw::AttractRepel { .. } => 1.0,
    };
    let name = format!("{systems} systems, N = {n} each");
    let case = Case::of_systems(name, bodies, physics, systems);
    (case, 0.05 / weight.sqrt())
}

/// The bodies of a case after some steps of semi-implicit Euler in double precision.
///
/// # Errors
/// None: the CPU computes any of them.
pub fn steps_by_reference(case: &Case, dt: f64, steps: u64) -> Result<Bodies, ForceError> {
    let cpu = |part: &Bodies| Cpu::<f64>::new(part, case.physics);
    let mut backend = Independent::new(&case.bodies, case.systems, cpu)?;
    let integrator = Integrator::SemiImplicitEuler;
    integrator.prepare(&mut backend)?;
    for _ in 0..steps {
        integrator.step(&mut backend, dt)?;
    }
    let mut bodies = case.bodies.clone();
    backend.download(&mut bodies)?;
    Ok(bodies)
}
