//! The experiment with a disk galaxy.

use super::{Rig, take};
use allpairs::backend::ForceError;
use allpairs::bodies::{Bodies, BodyKind};
use allpairs::diagnostics::largest;
use allpairs::initial_conditions::disk_galaxy;

/// Of a star at 2.2 scale lengths, where the disk's own curve has its maximum.
const ROTATION: f64 = 43.0;
/// Rings between these radii, of half a scale length each.
const RINGS: usize = 6;
const INNERMOST: f64 = 1.0;
const WIDTH: f64 = 0.5;

/// Some rotations: the largest relative change of the mean speed of rotation in six rings, and the
/// energy's error.
pub(super) fn rotation(rig: &Rig<'_>) -> Result<Vec<f64>, ForceError> {
    let bodies = disk_galaxy(rig.bodies, 1, 1.5).expect("in range");
    let rotations = rig.either(1.0, 3.0);
    let steps = rig.either(430, 1290);
    let before = curve(&bodies);
    let mut galaxy = rig.simulate(&bodies, 0.1, rotations * ROTATION / steps as f64)?;
    let origin = galaxy.conserved()?;
    take(&mut galaxy, steps)?;
    let energy = galaxy.conserved()?.drift_since(&origin).energy;
    let after = curve(galaxy.bodies()?);
    let changes = before.iter().zip(after);
    let changes = changes.map(|(before, after)| (after / before - 1.0).abs());
    Ok(vec![largest(changes), energy])
}

/// Mean speed of rotation of the disk's stars in each ring, about their centre.
fn curve(bodies: &Bodies) -> [f64; RINGS] {
    // The disk's bodies come first, the bulge's are stars as well.
    let stars = bodies.kind.iter().filter(|kind| **kind == BodyKind::Star);
    let disk = stars.count() * 4 / 5;
    let mean = |column: &[f64]| column[..disk].iter().sum::<f64>() / disk as f64;
    let Bodies { x, y, vx, vy, .. } = bodies;
    let [cx, cy, cvx, cvy] = [x, y, vx, vy].map(|column| mean(column));
    let (mut sums, mut counts) = ([0.0; RINGS], [0.0; RINGS]);
    for i in 0..disk {
        let (x, y) = (x[i] - cx, y[i] - cy);
        let radius = x.hypot(y);
        let ring = ((radius - INNERMOST) / WIDTH).floor();
        if (0.0..RINGS as f64).contains(&ring) {
            sums[ring as usize] += (x * (vy[i] - cvy) - y * (vx[i] - cvx)) / radius;
            counts[ring as usize] += 1.0;
        }
    }
    std::array::from_fn(|ring| sums[ring] / counts[ring])
}
