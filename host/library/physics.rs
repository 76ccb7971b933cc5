//! Force between two bodies: force law and constants.

use std::fmt;

use gpu_kernels::interaction;

/// Force law.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub enum ForceLaw {
    /// `a_i = Σ_j r / d³`: every source has weight 1.
    Unit,
    /// `a_i = G Σ_j m_j r / d³`.
    Gravity,
    /// `a_i = Σ_j m_j (G/d² − H/d⁴) r/d − γ v_i/m_i`: gravity that turns into repulsion at distances
    /// below √(H/G), and drag, which bodies without mass do not feel.
    AttractRepel {
        /// H, in the unit of G times an area.
        repulsion: f64,
        /// γ, in units of mass over time.
        damping: f64,
    },
}

impl ForceLaw {
    /// `attract-repel` with constants that suit systems of size and mass 1 with G = 1.
    pub const ATTRACT_REPEL: Self = Self::AttractRepel {
        repulsion: 1e-3,
        damping: 0.0,
    };

    /// All of them, with constants as of [`ATTRACT_REPEL`](Self::ATTRACT_REPEL).
    pub const ALL: [Self; 3] = [Self::Gravity, Self::Unit, Self::ATTRACT_REPEL];

    /// Name, as options have it, without its constants.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Unit => "unit",
            Self::Gravity => "gravity",
            Self::AttractRepel { .. } => "attract-repel",
        }
    }

    /// The law among those of the kernels.
    pub const fn of_kernels(self) -> interaction::Law {
        match self {
            Self::Unit => interaction::Law::Unit,
            Self::Gravity => interaction::Law::Gravity,
            Self::AttractRepel { .. } => interaction::Law::AttractRepel,
        }
    }
}

/// [`name`](ForceLaw::name)
impl fmt::Display for ForceLaw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Force law and its constants.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Physics {
    /// Force law.
    pub law: ForceLaw,
    /// Gravitational constant, in the units of the bodies. Not used by [`ForceLaw::Unit`].
    pub g: f64,
    /// Softening length ε ≥ 0, in the unit of the positions.
    pub softening: f64,
}

impl Physics {
    /// Weight of a body of this mass as a source: its mass, or 1 under [`ForceLaw::Unit`].
    pub fn weight(&self, mass: f64) -> f64 {
        match self.law {
            ForceLaw::Gravity | ForceLaw::AttractRepel { .. } => mass,
            ForceLaw::Unit => 1.0,
        }
    }

    /// The constant before the sum: G, or 1 under [`ForceLaw::Unit`].
    pub fn coupling(&self) -> f64 {
        match self.law {
            ForceLaw::Gravity | ForceLaw::AttractRepel { .. } => self.g,
            ForceLaw::Unit => 1.0,
        }
    }

    /// H of `attract-repel`, and 0 of the other laws.
    pub fn repulsion(&self) -> f64 {
        match self.law {
            ForceLaw::AttractRepel { repulsion, .. } => repulsion,
            ForceLaw::Unit | ForceLaw::Gravity => 0.0,
        }
    }

    /// γ of `attract-repel`, and 0 of the other laws.
    pub fn damping(&self) -> f64 {
        match self.law {
            ForceLaw::AttractRepel { damping, .. } => damping,
            ForceLaw::Unit | ForceLaw::Gravity => 0.0,
        }
    }
}
