//! Bodies for the tests of this crate's forces.

use crate::bodies::{Bodies, Body, BodyKind};

/// Random numbers, the same for the same seed: SplitMix64 (Steele, Lea & Flood, OOPSLA 2014), upper 53 bits.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    /// A number in [0, 1).
    pub(crate) fn unit(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
    }
}

/// A body at rest.
pub(crate) fn body(position: [f64; 3], mass: f64) -> Body {
    Body {
        position,
        velocity: [0.0; 3],
        mass,
        id: 0,
        kind: BodyKind::Star,
    }
}

/// `n` bodies with coordinates and velocities in [−1, 1) and a total mass near 1; the same for
/// the same seed.
pub(crate) fn cloud(n: usize, seed: u64) -> Bodies {
    let mut random = Random(seed);
    let mut bodies = Bodies::with_capacity(n);
    for id in 0..n as u64 {
        let mut coordinates = || [0; 3].map(|_| 2.0 * random.unit() - 1.0);
        let (position, velocity) = (coordinates(), coordinates());
        let mass = (0.5 + random.unit()) / n as f64;
        bodies.push(Body {
            position,
            velocity,
            mass,
            id,
            kind: BodyKind::Star,
        });
    }
    bodies
}
