//! Numbers of GPUs that compute together.

use std::fmt;

/// Most devices that compute one system together.
pub const MOST_DEVICES: usize = 16;

/// Numbers of at least two GPUs, in the order in which they were named. A GPU that is named twice computes
/// two parts.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct GpuNumbers {
    numbers: [u32; MOST_DEVICES],
    count: usize,
}

impl GpuNumbers {
    /// These; `None` if they are fewer than two, or more than [`MOST_DEVICES`].
    pub fn new(given: &[u32]) -> Option<Self> {
        let mut numbers = [0; MOST_DEVICES];
        if given.len() < 2 {
            return None;
        }
        numbers.get_mut(..given.len())?.copy_from_slice(given);
        let count = given.len();
        Some(Self { numbers, count })
    }

    /// The numbers.
    pub fn as_slice(&self) -> &[u32] {
        &self.numbers[..self.count]
    }
}

impl fmt::Debug for GpuNumbers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_slice().fmt(f)
    }
}

/// As a user writes them: `0,1`.
impl fmt::Display for GpuNumbers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let numbers: Vec<_> = self.as_slice().iter().map(u32::to_string).collect();
        f.write_str(&numbers.join(","))
    }
}
