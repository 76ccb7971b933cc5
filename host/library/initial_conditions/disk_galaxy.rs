//! A disk galaxy.

use std::f64::consts::{PI, TAU};

use super::equilibrium::{Hernquist, Isotropic, Sphere};
use super::{GenerateError, Parameter, Random, norm_squared, room_for};
use crate::bodies::{Bodies, Body, BodyKind};

// The model in units of the disk's scale length, of the whole mass and G = 1. The halo weighs
// enough within the disk that it does not buckle into a bar for several turns (Efstathiou, Lake &
// Negroponte 1982: V_max / √(G M_disk/R_d) = 1.1).
const DISK_MASS: f64 = 0.08;
const BULGE_MASS: f64 = 0.04;
const HALO_MASS: f64 = 1.0 - DISK_MASS - BULGE_MASS;
const BULGE_SCALE: f64 = 0.2;
const HALO_SCALE: f64 = 4.0;
/// Part of the unlimited spheres' mass that is made: their bodies end at 18.5 scale radii.
const PART: f64 = 0.9;
/// The disk ends here, with 0.0005 of its mass beyond.
const EDGE: f64 = 10.0;
/// Scale height of the disk, `ρ ∝ sech²(z/h)`.
const HEIGHT: f64 = 0.15;
/// Radius at which the disk has the stability that is asked for.
const REFERENCE_RADIUS: f64 = 2.5;
/// Shares of the number of bodies: more for the disk than its mass is worth, to have it smooth.
const DISK_SHARE: f64 = 0.4;
const BULGE_SHARE: f64 = 0.1;

/// A spiral galaxy of `n` bodies, in equilibrium: an exponential disk with a bulge in a dark halo.
///
/// Units: G = 1, total mass 1, scale length of the disk 1; with 5·10¹¹ solar masses and 3 kpc they
/// are 3.5 million years and 850 km/s. The disk (0.08 of the mass, `Σ ∝ e^(−R)`, height
/// `sech²(z/0.15)`) lies in the xy plane and turns counter-clockwise, in 43 units of time at R =
/// 2.2. Bulge (0.04, scale radius 0.2) and halo (0.88, scale radius 4) are Hernquist spheres that
/// end at 18.5 scale radii. Disk and bulge are stars, the halo is dark matter; 0.4 of the bodies
/// (ids first) are the disk's, 0.1 the bulge's, so bodies of different parts have different
/// masses. Soften with 0.05 to 0.1. The centre of mass rests at the origin.
///
/// `toomre_q`, from 0.5 to 5, is the disk's Toomre parameter at R = 2.5: below 1 it falls apart
/// into clumps, at 1.2 it makes spirals, at 2 it is smooth.
///
/// Method: spheres from Eddington's formula in the potential of all three parts, the disk's made
/// round; the disk with Gaussian velocities from the epicyclic approximation, `σ_R² ∝ Σ`, and the
/// asymmetric drift (Hernquist 1993, ApJS 86, 389; Binney & Tremaine, Galactic Dynamics, 2nd ed.,
/// eqs. 2.165, 3.80, 4.228).
///
/// # Errors
/// A `toomre_q` out of range; no bodies, or too little memory for them.
pub fn disk_galaxy(n: usize, seed: u64, toomre_q: f64) -> Result<Bodies, GenerateError> {
    if !(0.5..=5.0).contains(&toomre_q) {
        return Err(GenerateError::OutOfRange {
            parameter: Parameter::ToomreQ,
            value: toomre_q,
            range: "from 0.5 to 5",
        });
    }
    let mut bodies = room_for(n)?;
    let mut random = Random::new(seed);
    let galaxy = Galaxy::new();
    let in_disk = (DISK_SHARE * n as f64) as usize;
    let in_bulge = (BULGE_SHARE * n as f64) as usize;
    let in_halo = n - in_disk - in_bulge;

    let disk = Disk::new(&galaxy, toomre_q);
    for _ in 0..in_disk {
        let [position, velocity] = disk.star(&mut random, &galaxy);
        push(
            &mut bodies,
            position,
            velocity,
            DISK_MASS / in_disk as f64,
            BodyKind::Star,
        );
    }
    // Parts too small to have a body leave their mass to the halo.
    let mut left = 1.0 - if in_disk > 0 { DISK_MASS } else { 0.0 };
    if in_bulge > 0 {
        left -= BULGE_MASS;
        let mass = BULGE_MASS / in_bulge as f64;
        galaxy.sphere(
            galaxy.bulge,
            in_bulge,
            mass,
            BodyKind::Star,
            &mut random,
            &mut bodies,
        );
    }
    let mass = left / in_halo as f64;
    galaxy.sphere(
        galaxy.halo,
        in_halo,
        mass,
        BodyKind::Dark,
        &mut random,
        &mut bodies,
    );
    bodies.to_centre_of_mass_frame();
    Ok(bodies)
}

fn push(bodies: &mut Bodies, position: [f64; 3], velocity: [f64; 3], mass: f64, kind: BodyKind) {
    let id = bodies.len() as u64;
    bodies.push(Body {
        position,
        velocity,
        mass,
        id,
        kind,
    });
}

/// The three parts; as a [`Sphere`], with the disk's mass spread over spheres.
struct Galaxy {
    bulge: Hernquist,
    halo: Hernquist,
}

impl Sphere for Galaxy {
    fn mass_within(&self, r: f64) -> f64 {
        // The disk's mass within the cylinder of radius r.
        let disk = DISK_MASS * (1.0 - (1.0 + r) * libm::exp(-r));
        self.bulge.mass_within(r) + self.halo.mass_within(r) + disk
    }

    fn depth(&self, r: f64) -> f64 {
        let disk = -DISK_MASS * libm::expm1(-r) / r;
        self.bulge.depth(r) + self.halo.depth(r) + disk
    }

    fn density(&self, r: f64) -> f64 {
        let disk = DISK_MASS * libm::exp(-r) / (4.0 * PI * r);
        self.bulge.density(r) + self.halo.density(r) + disk
    }
}

impl Galaxy {
    fn new() -> Self {
        let sphere = |mass: f64, scale| Hernquist {
            mass: mass / PART,
            scale,
        };
        Self {
            bulge: sphere(BULGE_MASS, BULGE_SCALE),
            halo: sphere(HALO_MASS, HALO_SCALE),
        }
    }

    /// Adds `n` bodies of a spherical part.
    fn sphere(
        &self,
        part: Hernquist,
        n: usize,
        mass: f64,
        kind: BodyKind,
        random: &mut Random,
        bodies: &mut Bodies,
    ) {
        let velocities = Isotropic::new(part, self);
        let root = PART.sqrt();
        let limit = part.scale * root / (1.0 - root);
        for _ in 0..n {
            let radius = part.radius(random, limit);
            let speed = velocities.speed(random, radius);
            push(
                bodies,
                random.on_sphere(radius),
                random.on_sphere(speed),
                mass,
                kind,
            );
        }
    }

    /// Square of the speed on a circle of radius `r` in the plane of the disk.
    fn circular_speed_squared(&self, r: f64) -> f64 {
        let spheres = (self.bulge.mass_within(r) + self.halo.mass_within(r)) / r;
        // Freeman 1970: the thin exponential disk.
        let y = 0.5 * r;
        let [i0, i1, k0, k1] = bessel(y);
        spheres + 2.0 * DISK_MASS * y * y * (i0 * k0 - i1 * k1)
    }
}

/// Modified Bessel functions `[I₀, I₁, K₀, K₁]` of x from 0.001 to 10, from their integrals
/// `I_n = 1/π ∫₀^π e^(x cos θ) cos nθ dθ` and `K_n = ∫₀^∞ e^(−x cosh t) cosh nt dt`: the
/// trapezoidal rule converges exponentially for both.
fn bessel(x: f64) -> [f64; 4] {
    const INTERVALS: usize = 40;
    let (mut i0, mut i1) = (0.0, 0.0);
    for k in 0..=INTERVALS {
        let weight = if k == 0 || k == INTERVALS { 0.5 } else { 1.0 };
        let cos = libm::cos(PI * k as f64 / INTERVALS as f64);
        let term = weight / INTERVALS as f64 * libm::exp(x * cos);
        i0 += term;
        i1 += term * cos;
    }
    let step = 0.1;
    let (mut k0, mut k1) = (0.5 * step * libm::exp(-x), 0.5 * step * libm::exp(-x));
    for k in 1.. {
        let cosh = libm::cosh(step * f64::from(k));
        let term = step * libm::exp(-x * cosh);
        k0 += term;
        k1 += term * cosh;
        if term * cosh <= 1e-18 * k0 {
            break;
        }
    }
    [i0, i1, k0, k1]
}

/// Motion in the disk by radius.
struct Disk {
    /// Mean speed of rotation, and dispersions along R, φ and z.
    table: Vec<[f64; 4]>,
}

/// Spacing of the disk's table.
const SPACING: f64 = 0.02;

impl Disk {
    fn new(galaxy: &Galaxy, toomre_q: f64) -> Self {
        let surface = |r: f64| DISK_MASS / TAU * libm::exp(-r);
        // Ω² and κ² = R d(Ω²)/dR + 4Ω².
        let frequencies = |r: f64| {
            let omega2 = |r: f64| galaxy.circular_speed_squared(r) / (r * r);
            let h = 1e-3 * r;
            let slope = (omega2(r + h) - omega2(r - h)) / (2.0 * h);
            [omega2(r), 4.0 * omega2(r) + r * slope]
        };
        let [_, kappa2] = frequencies(REFERENCE_RADIUS);
        // Q = σ κ / (3.36 G Σ).
        let reference = toomre_q * 3.36 * surface(REFERENCE_RADIUS) / kappa2.sqrt();
        let rows = (EDGE / SPACING) as usize + 2;
        let table = (0..rows)
            .map(|i| {
                let r = SPACING * (i as f64).max(0.5);
                let [omega2, kappa2] = frequencies(r);
                let circular2 = omega2 * r * r;
                // Where the bulge rules, σ_R² ∝ Σ would be hotter than rotation allows.
                let sigma_r = (reference * libm::exp(-0.5 * (r - REFERENCE_RADIUS)))
                    .min((0.5 * circular2).sqrt());
                let ratio2 = 0.25 * kappa2 / omega2;
                let drift = sigma_r * sigma_r * (1.0 - ratio2 - 2.0 * r);
                let mean = (circular2 + drift).max(0.0).sqrt();
                let sigma_z = (PI * surface(r) * HEIGHT).sqrt();
                [mean, sigma_r, sigma_r * ratio2.sqrt(), sigma_z]
            })
            .collect();
        Self { table }
    }

    fn at(&self, r: f64) -> [f64; 4] {
        let place = r / SPACING;
        let i = (place as usize).min(self.table.len() - 2);
        let part = place - i as f64;
        [0, 1, 2, 3].map(|k| self.table[i][k] + part * (self.table[i + 1][k] - self.table[i][k]))
    }

    fn star(&self, random: &mut Random, galaxy: &Galaxy) -> [[f64; 3]; 2] {
        // ρ(R) ∝ R e^(−R): the sum of two exponentials.
        let radius = loop {
            let product = (1.0 - random.uniform()) * (1.0 - random.uniform());
            let radius = -libm::log(product);
            if radius > 0.0 && radius <= EDGE {
                break radius;
            }
        };
        // ∫ sech² = tanh.
        let z = HEIGHT * libm::atanh(random.uniform() * 1.999_999 - 0.999_999_5);
        let [cos, sin] = random.on_circle();
        let [mean, sigma_r, sigma_phi, sigma_z] = self.at(radius);
        let escape_squared = 2.0 * galaxy.depth((radius * radius + z * z).sqrt());
        loop {
            let [u, v, w] = [sigma_r, sigma_phi, sigma_z].map(|sigma| sigma * random.normal());
            let v = mean + v;
            if norm_squared([u, v, w]) < 0.9 * escape_squared {
                let velocity = [u * cos - v * sin, u * sin + v * cos, w];
                return [[radius * cos, radius * sin, z], velocity];
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::assert_centred;
    use super::*;
    use crate::force::cpu::Cpu;
    use crate::integrator::Integrator;
    use crate::physics::{ForceLaw, Physics};
    use crate::simulation::Simulation;
    use std::ops::ControlFlow;

    const PHYSICS: Physics = Physics {
        law: ForceLaw::Gravity,
        g: 1.0,
        softening: 0.08,
    };

    #[test]
    fn bessel_functions_have_their_wronskian_and_values() {
        for x in [0.001, 0.05, 0.5, 1.0, 3.0, 10.0] {
            let [i0, i1, k0, k1] = bessel(x);
            assert!(((i0 * k1 + i1 * k0) * x - 1.0).abs() <= 1e-12, "{x}");
        }
        // Abramowitz & Stegun, tables 9.8 and 9.11.
        let [i0, i1, k0, k1] = bessel(1.0);
        for (found, expected) in [
            (i0, 1.266_065_878),
            (i1, 0.565_159_104),
            (k0, 0.421_024_438),
            (k1, 0.601_907_230),
        ] {
            assert!((found - expected).abs() <= 1e-9, "{found} {expected}");
        }
    }

    #[test]
    fn parts_have_their_shares_and_profiles() {
        let n = 40_000;
        let bodies = disk_galaxy(n, 1, 1.5).unwrap();
        assert_centred(&bodies, 80.0);
        let mass_of = |kind: BodyKind| -> f64 {
            bodies
                .iter()
                .filter(|b| b.kind == kind)
                .map(|b| b.mass)
                .sum()
        };
        assert!((mass_of(BodyKind::Dark) - HALO_MASS).abs() <= 1e-12);
        assert!((mass_of(BodyKind::Star) - DISK_MASS - BULGE_MASS).abs() <= 1e-12);
        // The disk's mass within R: 1 − (1 + R) e^(−R); once in 10⁴ beyond 2.23/√n, and as much
        // for the shift of the centre.
        let in_disk = (DISK_SHARE * n as f64) as usize;
        let mut radii: Vec<_> = (0..in_disk)
            .map(|i| bodies.x[i].hypot(bodies.y[i]))
            .collect();
        radii.sort_by(f64::total_cmp);
        for (i, r) in radii.iter().enumerate() {
            let within = (1.0 - (1.0 + r) * (-r).exp()) / (1.0 - 11.0 * (-10.0_f64).exp());
            let distance = (within - (i as f64 + 0.5) / in_disk as f64).abs();
            assert!(
                distance <= 4.5 / (in_disk as f64).sqrt(),
                "{distance} at {r}"
            );
        }
    }

    /// Half-mass radius in the plane, mean rotation at 1.5 < R < 3, and half-mass radius of the
    /// halo.
    fn measure(bodies: &Bodies) -> [f64; 3] {
        let in_disk = (DISK_SHARE * bodies.len() as f64) as usize;
        let centre = bodies.centre_of_mass().unwrap();
        let place = |i: usize| [bodies.x[i] - centre[0], bodies.y[i] - centre[1]];
        let mut radii: Vec<_> = (0..in_disk)
            .map(|i| place(i)[0].hypot(place(i)[1]))
            .collect();
        let (mut sum, mut count) = (0.0, 0.0);
        for (i, r) in radii.iter().enumerate() {
            if (1.5..3.0).contains(r) {
                sum += (place(i)[0] * bodies.vy[i] - place(i)[1] * bodies.vx[i]) / r;
                count += 1.0;
            }
        }
        radii.sort_by(f64::total_cmp);
        let mut halo: Vec<_> = bodies
            .iter()
            .filter(|b| b.kind == BodyKind::Dark)
            .map(|b| norm_squared([0, 1, 2].map(|k| b.position[k] - centre[k])).sqrt())
            .collect();
        halo.sort_by(f64::total_cmp);
        [radii[in_disk / 2], sum / count, halo[halo.len() / 2]]
    }

    /// A turn with few bodies, which heat the disk: runs with more hold for more turns.
    #[test]
    fn it_holds_for_a_turn() {
        let bodies = disk_galaxy(6_000, 5, 1.8).unwrap();
        let backend = Box::new(Cpu::<f32>::new(&bodies, PHYSICS));
        let start = measure(&bodies);
        let dt = 0.3;
        let mut simulation =
            Simulation::new(backend, bodies, PHYSICS, Integrator::Leapfrog, dt, 0.0).unwrap();
        let before = simulation.conserved().unwrap();
        // 1 but for softening, and for the noise of the bulge, 0.05 of whose 600 bodies matter.
        let virial = before.energy.virial_ratio();
        assert!((virial - 1.0).abs() <= 0.05, "2K/|U| = {virial}");
        let steps = (43.0 / dt) as u64;
        let outcome = simulation
            .run(steps, |_| ControlFlow::Continue(()))
            .unwrap();
        assert!(outcome.is_continue());
        let drift = simulation.conserved().unwrap().drift_since(&before);
        assert!(drift.energy.abs() <= 5e-3, "{}", drift.energy);
        let end = measure(simulation.bodies().unwrap());
        // Sampling makes 2 to 3 %; encounters of 2400 stars with 3000 halo bodies of nine times
        // their mass heat the disk: dσ²/dt = 8π G² ρ m ln Λ/v ≈ 9·10⁻⁵ widens it by some 10 %. A
        // disk out of balance rearranges itself by factors.
        for (k, tolerance) in [(0, 0.15), (1, 0.10), (2, 0.08)] {
            let change = end[k] / start[k] - 1.0;
            assert!(change.abs() <= tolerance, "{k}: {start:?} became {end:?}");
        }
    }

    #[test]
    fn rotation_is_that_of_the_model() {
        let galaxy = Galaxy::new();
        let speed = galaxy.circular_speed_squared(2.2).sqrt();
        assert!(
            (TAU * 2.2 / speed - 43.0).abs() <= 0.5,
            "{}",
            TAU * 2.2 / speed
        );
        // A thin disk by itself peaks at 0.88 √(π G Σ₀ R_d) = 0.622 √(GM/R_d) at R = 2.15 (Freeman
        // 1970, ApJ 160, 811).
        let spheres = (galaxy.bulge.mass_within(2.15) + galaxy.halo.mass_within(2.15)) / 2.15;
        let alone = (galaxy.circular_speed_squared(2.15) - spheres) / DISK_MASS;
        assert!((alone.sqrt() - 0.622).abs() <= 1e-3, "{}", alone.sqrt());
        let flat = galaxy.circular_speed_squared(6.0).sqrt() / speed;
        assert!((0.8..1.05).contains(&flat), "{flat}");
    }

    #[test]
    fn small_numbers_and_bad_parameters() {
        for n in 1..20 {
            let bodies = disk_galaxy(n, 1, 1.5).unwrap();
            assert_eq!((bodies.len(), bodies.check()), (n, Ok(())));
            assert!((bodies.total_mass() - 1.0).abs() <= 1e-12);
        }
        for q in [0.4, 6.0, f64::NAN] {
            assert!(matches!(
                disk_galaxy(10, 0, q),
                Err(GenerateError::OutOfRange {
                    parameter: Parameter::ToomreQ,
                    ..
                })
            ));
        }
    }
}
