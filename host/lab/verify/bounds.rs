//! Error bounds: how far rounding may put a variant's forces off.

use gpu_kernels::numerics::Precision;
use gpu_kernels::schedule::{ScheduleName, separated, tensor};

use super::Case;
use allpairs::diagnostics;
use allpairs::force::cpu;
use allpairs::frame::Frame;
use allpairs::physics::ForceLaw;
use allpairs::plan;
use allpairs::simd::InstructionSet;
use allpairs::variants::{CpuPath, Method, RootName, Split, SystemsPath, Variant};

impl Case {
    /// Relative error of the sums, and absolute error of a separation, that the variant's
    /// arithmetic explains.
    pub(super) fn allowance(&self, variant: &Variant) -> (f64, f64) {
        if variant.is_tensor() {
            return self.tensor_allowance(variant);
        }
        if variant.is_separated() && self.bodies.len() > separated::TARGETS as usize {
            return self.separated_allowance(variant);
        }
        // Bodies in halves may cost what rounding them costs; arithmetic in halves is held to the
        // standard of single precision, for a sum of halves bounds nothing.
        let computed = match variant.precision() {
            Precision::F16 => Precision::F32,
            precision => precision,
        };
        // Bodies in f64 are cut to 48 bits for sums of two f32.
        let stored = match computed {
            Precision::DoubleSingle => computed.unit_roundoff(),
            _ => variant.stored().unit_roundoff(),
        };
        let additions = additions(variant, self.bodies.len() / self.systems as usize);
        let ulps = pair_ulps(variant, self.physics.law);
        let mut tolerance = diagnostics::tolerance(computed.unit_roundoff(), additions, ulps);
        if stored > computed.unit_roundoff() {
            tolerance += ROUNDED_MASS_AND_VELOCITY * stored;
        }
        // A stored coordinate is off by u·length/2, a separation by √3 times two of them, and
        // moving the origin costs one such rounding more.
        let position_error = match variant.method {
            Method::Reference => 0.0,
            _ => 2.0 * stored * Frame::of(&self.bodies, &self.physics).length,
        };
        (tolerance, position_error)
    }
}

impl Case {
    /// Like [`allowance`](Self::allowance), but for sums on tensor cores.
    ///
    /// The weight 1/d³ of a pair is rounded to a half. d² is a sum of terms that add up to at most
    /// 12 times the squared extent: truncated at 2⁻²³, twice, and packed to 2⁻²³ of each coordinate
    /// and 2⁻²⁵ of the scaled squares, which are at least 2⁻¹⁰. What happens to m x_j is an error of its
    /// position: 2⁻²² of packing, and the truncated sums.
    fn tensor_allowance(&self, variant: &Variant) -> (f64, f64) {
        let frame = Frame::of(&self.bodies, &self.physics);
        let extent = frame.extent(&self.bodies);
        let half = Precision::F16.unit_roundoff();
        let bit = 2.0 * Precision::F32.unit_roundoff();
        let square = 3.0 * 12.0 * bit * (extent / self.physics.softening).powi(2)
            + half.powi(2) * 2f64.powi(-3 + 10);
        let pair = half + 1.5 * square;
        let sums = additions(variant, self.bodies.len()) as f64 * bit;
        let position_error = 3f64.sqrt() * (sums + 4.0 * bit) * extent;
        (3f64.sqrt() * pair, position_error)
    }
}

impl Case {
    /// Like [`allowance`](Self::allowance), but for far pairs on tensor cores.
    ///
    /// As in [`tensor_allowance`](Self::tensor_allowance), but d² is a sum of terms that add up to
    /// [`separated::LARGEST_TERMS`] of itself at most, truncated twice and packed, and at least the
    /// square of [`separated::SCALED_GAP`] in units where the squares' last parts are good to 2⁻²⁵, half
    /// of the smallest half. So is 1/d³, and d is at most [`separated::REACH`]. Where 1/d³ is a
    /// polynomial, that is off by [`separated::LARGEST_ERROR`] at most.
    fn separated_allowance(&self, variant: &Variant) -> (f64, f64) {
        let frame = Frame::of(&self.bodies, &self.physics);
        let half = Precision::F16.unit_roundoff();
        let bit = 2.0 * Precision::F32.unit_roundoff();
        let [terms, gap, reach] = [
            separated::LARGEST_TERMS,
            separated::SCALED_GAP,
            separated::REACH,
        ]
        .map(f64::from);
        let last = 2f64.powi(-25);
        let square = 3.0 * terms * bit + 2.0 * last / gap.powi(2);
        let root = half + last * reach.powi(3);
        let pair = root.max(separated::LARGEST_ERROR) + 1.5 * square;
        let sums = additions(variant, self.bodies.len()) as f64 * bit;
        let position_error = 3f64.sqrt() * (sums + 4.0 * bit) * frame.length;
        (3f64.sqrt() * pair, position_error)
    }
}

/// Error of one pair's acceleration in units of the unit roundoff, its separation exact: the
/// separation 1, d² 6 more, its inverse root half of that and 1.5 of its own, cubed: 17; weight 1,
/// products 3, G and its product 2; and 15 of an f64 reference.
///
/// `rsqrt.approx` is off by 2⁻²²·⁹ (PTX ISA) instead of 1.5 roundings: 0.7 more, cubed 2.1. Its
/// double-precision form, refined, is off by less than 3. A product that is not fused with its
/// addition is rounded once more. In `attract-repel` the inverse root counts five times, or is
/// divided by five times, and the drag is another 4. Where sums are of forces, the product
/// with the body's own mass and its inverse are 4: the rounding of the stored mass cancels.
///
/// A CPU's estimate is off by what [`InstructionSet::estimate_error`] says, cubed three times that;
/// the terms of third order and beyond are less than a percent of it. Refined, its cube is off by
/// 3.5 roundings, one more without fused operations, and by less than 5 of what the series leaves
/// out, where exact ones have 6.5: 2 more.
pub(super) fn pair_ulps(variant: &Variant, law: ForceLaw) -> f64 {
    let ulps = match law {
        ForceLaw::Unit | ForceLaw::Gravity => 39.0,
        ForceLaw::AttractRepel { .. } => 59.0,
    };
    match variant.method {
        Method::Cpu(CpuPath {
            root: RootName::Refined,
            ..
        }) => ulps + 2.0,
        Method::Cpu(CpuPath {
            root: RootName::Estimated,
            precision,
            ..
        }) => {
            let error = InstructionSet::detect().estimate_error(precision);
            ulps + 3.03 * error / precision.unit_roundoff()
        }
        Method::Kernel { by_masses, .. } | Method::Systems(SystemsPath { by_masses, .. })
            if variant.is_approximate() =>
        {
            ulps + 4.5 + if by_masses { 4.0 } else { 0.0 }
        }
        _ => ulps,
    }
}

/// Of a term, in units of the roundoff of the type that bodies are stored in.
const ROUNDED_MASS_AND_VELOCITY: f64 = 2.0;

/// The longest chain of additions that a pair's force goes through, for n bodies of a system:
/// what the rounding error of its sums grows with.
pub fn additions(variant: &Variant, n: usize) -> usize {
    let in_blocks = |size: usize| size.min(n) + n.div_ceil(size);
    match variant.fitted(n).method {
        Method::Reference => 1,
        Method::Cpu(path) => cpu::additions(path.pairs, path.precision, n),
        Method::Systems(path) if variant.keeps_systems_in_blocks() => {
            plan::systems::additions_in_block(variant.any_force(), n as u32, path.block)
        }
        Method::Systems(path) if variant.schedule().takes_pairs_once() => {
            plan::symmetric::additions(variant.any_force(), n, path.block)
        }
        // Each lane's, and then those of the lanes in pairs.
        Method::Systems(_) if variant.takes_steps_by_warps() => n.div_ceil(32) + 5,
        Method::Systems(path) => path.tile.map_or(n, |tile| in_blocks(tile as usize)),
        Method::Kernel { block, split, .. } => match variant.schedule() {
            ScheduleName::Direct
            | ScheduleName::OneThread
            | ScheduleName::TwoLoops
            | ScheduleName::Guarded
            | ScheduleName::Hybrid => n,
            ScheduleName::Grid2d { .. } => {
                let Split { len, luf, .. } = split.expect("2-D blocks are split");
                luf as usize + n.div_ceil((len * luf) as usize) * len as usize
            }
            ScheduleName::Tiled | ScheduleName::TiledJerks | ScheduleName::TestParticles => {
                in_blocks(block as usize)
            }
            ScheduleName::Systems { .. } => unreachable!("a method of its own"),
            ScheduleName::Symmetric => plan::symmetric::additions(variant.any_force(), n, block),
            // In single precision or not, a leaf at a time, at most a span of leaves at once.
            ScheduleName::Separated => in_blocks((separated::SPAN * separated::LEAF) as usize),
            // As a target, in products of 16 sources and then in as many sums as there are
            // parts; as a source, once for each block of targets.
            ScheduleName::Tensor => {
                in_blocks(tensor::SOURCES_AT_ONCE as usize) + n.div_ceil(tensor::TILE as usize)
            }
        },
    }
}
