//! The vector registers of AArch64: NEON, which every AArch64 has.

use std::arch::aarch64::*;

use gpu_kernels::numerics::Fused;

use super::{Registers, Vector, vector};

/// NEON.
pub(crate) enum Neon {}

impl Registers for Neon {
    type F32 = F32x4;
    type F64 = F64x2;
    type MultiplyAdd = Fused;
}

/// Relative error of `frsqrte` (2⁻⁸, Arm Architecture Reference Manual), after one Newton step.
const AFTER_A_STEP: f64 = 1.6 / 65536.0;

vector! {
    /// Four f32.
    F32x4(float32x4_t): [f32; 4], 32 registers,
    vdupq_n_f32, vld1q_f32, vst1q_f32,
    vaddq_f32, vsubq_f32, vmulq_f32, vnegq_f32,
    mul_add mul_add_f32, exact exact_f32, zero zero_f32, larger vmaxnmq_f32,
    estimate estimate_f32, off by AFTER_A_STEP, 1 terms
}

vector! {
    /// Two f64.
    F64x2(float64x2_t): [f64; 2], 32 registers,
    vdupq_n_f64, vld1q_f64, vst1q_f64,
    vaddq_f64, vsubq_f64, vmulq_f64, vnegq_f64,
    mul_add mul_add_f64, exact exact_f64, zero zero_f64, larger vmaxnmq_f64,
    estimate estimate_f64, off by AFTER_A_STEP, 3 terms
}

#[inline]
#[target_feature(enable = "neon")]
fn mul_add_f32(a: float32x4_t, b: float32x4_t, c: float32x4_t) -> float32x4_t {
    vfmaq_f32(c, a, b)
}

#[inline]
#[target_feature(enable = "neon")]
fn mul_add_f64(a: float64x2_t, b: float64x2_t, c: float64x2_t) -> float64x2_t {
    vfmaq_f64(c, a, b)
}

#[inline]
#[target_feature(enable = "neon")]
fn exact_f32(x: float32x4_t) -> float32x4_t {
    vdivq_f32(vdupq_n_f32(1.0), vsqrtq_f32(x))
}

#[inline]
#[target_feature(enable = "neon")]
fn exact_f64(x: float64x2_t) -> float64x2_t {
    vdivq_f64(vdupq_n_f64(1.0), vsqrtq_f64(x))
}

#[inline]
#[target_feature(enable = "neon")]
fn zero_f32(value: float32x4_t, x: float32x4_t, limit: float32x4_t) -> float32x4_t {
    let bits = vreinterpretq_u32_f32(value);
    vreinterpretq_f32_u32(vbicq_u32(bits, vcltq_f32(x, limit)))
}

#[inline]
#[target_feature(enable = "neon")]
fn zero_f64(value: float64x2_t, x: float64x2_t, limit: float64x2_t) -> float64x2_t {
    let bits = vreinterpretq_u64_f64(value);
    vreinterpretq_f64_u64(vbicq_u64(bits, vcltq_f64(x, limit)))
}

/// `frsqrts` computes (3 − a·b)/2, the factor of a Newton step, in one instruction.
#[inline]
#[target_feature(enable = "neon")]
fn estimate_f32(x: float32x4_t) -> float32x4_t {
    let y = vrsqrteq_f32(x);
    vmulq_f32(y, vrsqrtsq_f32(vmulq_f32(x, y), y))
}

#[inline]
#[target_feature(enable = "neon")]
fn estimate_f64(x: float64x2_t) -> float64x2_t {
    let y = vrsqrteq_f64(x);
    vmulq_f64(y, vrsqrtsq_f64(vmulq_f64(x, y), y))
}
