//! Facts about the masses of a system, by which some variants choose their kernel.

use crate::bodies::Bodies;

/// Masses of bodies.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Masses {
    /// Any masses ≥ 0.
    Any,
    /// The smallest is at least 2⁻⁴⁰ of the largest: in units of the largest their products,
    /// divided by cubes of distances, stay far from the smallest f32, 2⁻¹²⁶.
    Comparable,
    /// Bodies of one mass, this one.
    Equal(f64),
}

/// See [`Masses::Comparable`].
const SMALLEST_RATIO: f64 = 1.0 / (1_u64 << 40) as f64;

impl Masses {
    /// One of each kind.
    pub const KINDS: [Self; 3] = [Self::Any, Self::Comparable, Self::Equal(1.0)];

    /// Examines the masses of `bodies`.
    pub fn of(bodies: &Bodies) -> Self {
        let Some(&first) = bodies.mass.first() else {
            return Self::Any;
        };
        let (least, most) = bodies
            .mass
            .iter()
            .fold((first, first), |(least, most), &m| {
                (least.min(m), most.max(m))
            });
        if least == most {
            Self::Equal(first)
        } else if least >= SMALLEST_RATIO * most {
            Self::Comparable
        } else {
            Self::Any
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(masses: &[f64]) -> Masses {
        Masses::of(&Bodies {
            mass: masses.to_vec(),
            ..Bodies::default()
        })
    }

    #[test]
    fn masses_are_told_apart() {
        assert_eq!(of(&[]), Masses::Any);
        assert_eq!(of(&[3.0]), Masses::Equal(3.0));
        assert_eq!(of(&[0.0, 0.0]), Masses::Equal(0.0));
        assert_eq!(of(&[2e30, 2e30]), Masses::Equal(2e30));
        assert_eq!(of(&[1.0, 2.0]), Masses::Comparable);
        assert_eq!(of(&[1e-12, 1.0]), Masses::Comparable);
        assert_eq!(of(&[1e-13, 1.0]), Masses::Any);
        assert_eq!(of(&[1.0, 0.0]), Masses::Any);
    }
}
