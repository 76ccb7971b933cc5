//! Settings and counts of block time steps.

use std::fmt;
use std::num::NonZeroU32;
use std::str::FromStr;

/// The most by which a pair may change its distance in a [block time step](super::BlockSteps), as a part of
/// the distance. It takes a few steps in a thousand, and most of the error that rare fast encounters
/// make, which the criterion of a body's own derivatives notices when they are over.
pub const GUARD: f64 = 0.4;

/// Number of neighbours of a body in a neighbour scheme (Ahmad & Cohen 1973, J. Comput. Phys. 12, 389):
/// their force, the *irregular* one, is computed in each [block time step](super::BlockSteps) of the body, and
/// that of all others, the *regular* one, in longer steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Neighbours {
    /// The root of the number of bodies, but at most a 256th of it and at least [`LEAST`](Self::LEAST).
    Auto,
    /// So many.
    Number(NonZeroU32),
}

impl Neighbours {
    /// Least number of [`Auto`](Self::Auto).
    pub const LEAST: usize = 64;

    /// The number among so many bodies: at most all others.
    pub fn number(self, bodies: usize) -> usize {
        match self {
            Self::Auto => bodies.isqrt().min(bodies / 256).max(Self::LEAST),
            Self::Number(number) => (number.get() as usize).min(bodies.saturating_sub(1).max(1)),
        }
    }
}

/// As [`FromStr`] reads it.
impl fmt::Display for Neighbours {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Auto => f.write_str("auto"),
            Self::Number(number) => number.fmt(f),
        }
    }
}

impl FromStr for Neighbours {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "auto" => Ok(Self::Auto),
            number => match number.parse() {
                Ok(number) => Ok(Self::Number(number)),
                Err(_) => Err(format!("must be `auto` or a number from 1 on, got {text}")),
            },
        }
    }
}

/// Counts of block time steps.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BlockCounts {
    /// Blocks: times at which some bodies ended their steps together.
    pub blocks: u64,
    /// Steps of single bodies; a force was computed for each.
    pub steps: u64,
    /// The shortest of these steps, in the unit of the run; infinite where there were none.
    pub shortest: f64,
    /// Regular steps of a [neighbour scheme](Neighbours), for each of which a force of all bodies was
    /// computed; none without one.
    pub regular: u64,
    /// Neighbours whose force was computed, summed over all steps.
    pub neighbours: u64,
    /// Times that bodies or groups became one [group](crate::simulation::SimulationBuilder::groups).
    pub formed: u64,
    /// Times that a group was divided.
    pub broken: u64,
}

impl BlockCounts {
    /// No steps.
    pub const NONE: Self = Self {
        blocks: 0,
        steps: 0,
        shortest: f64::INFINITY,
        regular: 0,
        neighbours: 0,
        formed: 0,
        broken: 0,
    };

    /// Interactions computed, where so many bodies exert forces.
    pub fn interactions(&self, sources: f64) -> f64 {
        match self.regular {
            0 => sources * self.steps as f64,
            regular => sources * regular as f64 + self.neighbours as f64,
        }
    }
}

impl std::ops::AddAssign for BlockCounts {
    fn add_assign(&mut self, more: Self) {
        self.blocks += more.blocks;
        self.steps += more.steps;
        self.shortest = self.shortest.min(more.shortest);
        self.regular += more.regular;
        self.neighbours += more.neighbours;
        self.formed += more.formed;
        self.broken += more.broken;
    }
}
