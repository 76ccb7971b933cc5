//! Force between two bodies: force law and constants.

use std::fmt;

use gpu_kernels::interaction::Law as LawName;

/// Force law.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Law {
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

impl Law {
    /// `attract-repel` with constants that suit systems of size and mass 1 with G = 1.
    pub const ATTRACT_REPEL: Self = Self::AttractRepel {
        repulsion: 1e-3,
        damping: 0.0,
    };

    /// The kernels' name for it.
    pub const fn name(self) -> LawName {
        match self {
            Self::Unit => LawName::Unit,
            Self::Gravity => LawName::Gravity,
            Self::AttractRepel { .. } => LawName::AttractRepel,
        }
    }
}

/// As the command line calls it, without its constants.
impl fmt::Display for Law {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unit => "unit",
            Self::Gravity => "gravity",
            Self::AttractRepel { .. } => "attract-repel",
        })
    }
}

/// Force law and its constants.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Physics {
    /// Force law.
    pub law: Law,
    /// Gravitational constant, in the units of the bodies. Not used by [`Law::Unit`].
    pub g: f64,
    /// Softening length ε ≥ 0, in the unit of the positions.
    pub softening: f64,
}

impl Physics {
    /// Weight of a body of this mass as a source: its mass, or 1 under [`Law::Unit`].
    pub fn weight(&self, mass: f64) -> f64 {
        match self.law {
            Law::Gravity | Law::AttractRepel { .. } => mass,
            Law::Unit => 1.0,
        }
    }

    /// The constant before the sum: G, or 1 under [`Law::Unit`].
    pub fn coupling(&self) -> f64 {
        match self.law {
            Law::Gravity | Law::AttractRepel { .. } => self.g,
            Law::Unit => 1.0,
        }
    }

    /// H of `attract-repel`, and 0 of the other laws.
    pub fn repulsion(&self) -> f64 {
        match self.law {
            Law::AttractRepel { repulsion, .. } => repulsion,
            Law::Unit | Law::Gravity => 0.0,
        }
    }

    /// γ of `attract-repel`, and 0 of the other laws.
    pub fn damping(&self) -> f64 {
        match self.law {
            Law::AttractRepel { damping, .. } => damping,
            Law::Unit | Law::Gravity => 0.0,
        }
    }
}
