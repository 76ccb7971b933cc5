//! The vector registers of x86-64: SSE2, AVX2 with FMA, AVX-512.

use std::arch::x86_64::*;

use gpu_kernels::numerics::{Fused, Separate};

use super::{Registers, Vector, vector};

/// SSE2, which every x86-64 has.
pub(crate) enum Sse2 {}

impl Registers for Sse2 {
    type F32 = F32x4;
    type F64 = F64x2;
    // The compiler, not this file, decides whether `a * b + c` is contracted: it never is.
    type MultiplyAdd = Separate;
}

/// AVX2 and FMA: since Haswell (2013) and Excavator (2015).
pub(crate) enum Avx2 {}

impl Registers for Avx2 {
    type F32 = F32x8;
    type F64 = F64x4;
    type MultiplyAdd = Fused;
}

/// AVX-512 F.
pub(crate) enum Avx512 {}

impl Registers for Avx512 {
    type F32 = F32x16;
    type F64 = F64x8;
    type MultiplyAdd = Fused;
}

/// Relative error of `rsqrtps` (Intel's Software Developer's Manual).
const RSQRTPS: f64 = 1.5 / 4096.0;
/// Relative error of `vrsqrt14ps` and `vrsqrt14pd`.
const RSQRT14: f64 = 1.0 / 16384.0;

vector! {
    /// Sixteen f32.
    F32x16(__m512): [f32; 16], 32 registers,
    _mm512_set1_ps, _mm512_loadu_ps, _mm512_storeu_ps,
    _mm512_add_ps, _mm512_sub_ps, _mm512_mul_ps, neg_ps512,
    mul_add _mm512_fmadd_ps, exact exact_ps512, zero zero_ps512, larger _mm512_max_ps,
    estimate _mm512_rsqrt14_ps, off by RSQRT14, 1 terms
}

vector! {
    /// Eight f64.
    F64x8(__m512d): [f64; 8], 32 registers,
    _mm512_set1_pd, _mm512_loadu_pd, _mm512_storeu_pd,
    _mm512_add_pd, _mm512_sub_pd, _mm512_mul_pd, neg_pd512,
    mul_add _mm512_fmadd_pd, exact exact_pd512, zero zero_pd512, larger _mm512_max_pd,
    estimate _mm512_rsqrt14_pd, off by RSQRT14, 3 terms
}

vector! {
    /// Eight f32.
    F32x8(__m256): [f32; 8], 16 registers,
    _mm256_set1_ps, _mm256_loadu_ps, _mm256_storeu_ps,
    _mm256_add_ps, _mm256_sub_ps, _mm256_mul_ps, neg_ps256,
    mul_add _mm256_fmadd_ps, exact exact_ps256, zero zero_ps256, larger _mm256_max_ps,
    estimate _mm256_rsqrt_ps, off by RSQRTPS, 2 terms
}

vector! {
    /// Four f64. No estimate: the instruction is for f32 and has its range, and a guess by halving
    /// the exponent, refined twice, was slower on Zen 4 than the root (0.95 to 1.00).
    F64x4(__m256d): [f64; 4], 16 registers,
    _mm256_set1_pd, _mm256_loadu_pd, _mm256_storeu_pd,
    _mm256_add_pd, _mm256_sub_pd, _mm256_mul_pd, neg_pd256,
    mul_add _mm256_fmadd_pd, exact exact_pd256, zero zero_pd256, larger _mm256_max_pd,
    estimate exact_pd256, off by 2.0 * f64::EPSILON, 0 terms
}

vector! {
    /// Four f32.
    F32x4(__m128): [f32; 4], 16 registers,
    _mm_set1_ps, _mm_loadu_ps, _mm_storeu_ps,
    _mm_add_ps, _mm_sub_ps, _mm_mul_ps, neg_ps128,
    mul_add mul_add_ps128, exact exact_ps128, zero zero_ps128, larger _mm_max_ps,
    estimate _mm_rsqrt_ps, off by RSQRTPS, 2 terms
}

vector! {
    /// Two f64. No estimate: without fused multiply–adds, refining one costs as much as the root.
    F64x2(__m128d): [f64; 2], 16 registers,
    _mm_set1_pd, _mm_loadu_pd, _mm_storeu_pd,
    _mm_add_pd, _mm_sub_pd, _mm_mul_pd, neg_pd128,
    mul_add mul_add_pd128, exact exact_pd128, zero zero_pd128, larger _mm_max_pd,
    estimate exact_pd128, off by 2.0 * f64::EPSILON, 0 terms
}

#[inline]
#[target_feature(enable = "avx512f")]
fn neg_ps512(x: __m512) -> __m512 {
    _mm512_sub_ps(_mm512_set1_ps(-0.0), x)
}

#[inline]
#[target_feature(enable = "avx512f")]
fn neg_pd512(x: __m512d) -> __m512d {
    _mm512_sub_pd(_mm512_set1_pd(-0.0), x)
}

#[inline]
#[target_feature(enable = "avx2,fma")]
fn neg_ps256(x: __m256) -> __m256 {
    _mm256_sub_ps(_mm256_set1_ps(-0.0), x)
}

#[inline]
#[target_feature(enable = "avx2,fma")]
fn neg_pd256(x: __m256d) -> __m256d {
    _mm256_sub_pd(_mm256_set1_pd(-0.0), x)
}

#[inline]
#[target_feature(enable = "sse2")]
fn neg_ps128(x: __m128) -> __m128 {
    _mm_sub_ps(_mm_set1_ps(-0.0), x)
}

#[inline]
#[target_feature(enable = "sse2")]
fn neg_pd128(x: __m128d) -> __m128d {
    _mm_sub_pd(_mm_set1_pd(-0.0), x)
}

#[inline]
#[target_feature(enable = "sse2")]
fn mul_add_ps128(a: __m128, b: __m128, c: __m128) -> __m128 {
    _mm_add_ps(_mm_mul_ps(a, b), c)
}

#[inline]
#[target_feature(enable = "sse2")]
fn mul_add_pd128(a: __m128d, b: __m128d, c: __m128d) -> __m128d {
    _mm_add_pd(_mm_mul_pd(a, b), c)
}

#[inline]
#[target_feature(enable = "avx512f")]
fn exact_ps512(x: __m512) -> __m512 {
    _mm512_div_ps(_mm512_set1_ps(1.0), _mm512_sqrt_ps(x))
}

#[inline]
#[target_feature(enable = "avx512f")]
fn exact_pd512(x: __m512d) -> __m512d {
    _mm512_div_pd(_mm512_set1_pd(1.0), _mm512_sqrt_pd(x))
}

#[inline]
#[target_feature(enable = "avx2,fma")]
fn exact_ps256(x: __m256) -> __m256 {
    _mm256_div_ps(_mm256_set1_ps(1.0), _mm256_sqrt_ps(x))
}

#[inline]
#[target_feature(enable = "avx2,fma")]
fn exact_pd256(x: __m256d) -> __m256d {
    _mm256_div_pd(_mm256_set1_pd(1.0), _mm256_sqrt_pd(x))
}

#[inline]
#[target_feature(enable = "sse2")]
fn exact_ps128(x: __m128) -> __m128 {
    _mm_div_ps(_mm_set1_ps(1.0), _mm_sqrt_ps(x))
}

#[inline]
#[target_feature(enable = "sse2")]
fn exact_pd128(x: __m128d) -> __m128d {
    _mm_div_pd(_mm_set1_pd(1.0), _mm_sqrt_pd(x))
}

#[inline]
#[target_feature(enable = "avx512f")]
fn zero_ps512(value: __m512, x: __m512, limit: __m512) -> __m512 {
    _mm512_maskz_mov_ps(_mm512_cmp_ps_mask::<_CMP_NLT_UQ>(x, limit), value)
}

#[inline]
#[target_feature(enable = "avx512f")]
fn zero_pd512(value: __m512d, x: __m512d, limit: __m512d) -> __m512d {
    _mm512_maskz_mov_pd(_mm512_cmp_pd_mask::<_CMP_NLT_UQ>(x, limit), value)
}

#[inline]
#[target_feature(enable = "avx2,fma")]
fn zero_ps256(value: __m256, x: __m256, limit: __m256) -> __m256 {
    _mm256_andnot_ps(_mm256_cmp_ps::<_CMP_LT_OQ>(x, limit), value)
}

#[inline]
#[target_feature(enable = "avx2,fma")]
fn zero_pd256(value: __m256d, x: __m256d, limit: __m256d) -> __m256d {
    _mm256_andnot_pd(_mm256_cmp_pd::<_CMP_LT_OQ>(x, limit), value)
}

#[inline]
#[target_feature(enable = "sse2")]
fn zero_ps128(value: __m128, x: __m128, limit: __m128) -> __m128 {
    _mm_andnot_ps(_mm_cmplt_ps(x, limit), value)
}

#[inline]
#[target_feature(enable = "sse2")]
fn zero_pd128(value: __m128d, x: __m128d, limit: __m128d) -> __m128d {
    _mm_andnot_pd(_mm_cmplt_pd(x, limit), value)
}
