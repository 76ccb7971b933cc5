//! Records that bodies are predicted from as sources: 64 bytes, two sectors of memory.

use cuda_std::vector::Vec4;
use cuda_std::{GpuFloat, global};

use super::{Elapsed, RECORD};

/// The record of a body, from which all predict it alike: the position is f64, all else f32, and of the
/// jerk two components have 16 bits and the third 24.
#[derive(Clone, Copy)]
pub(super) struct Record {
    pub(super) x: [f64; 3],
    pub(super) v: [f32; 3],
    pub(super) a: [f32; 3],
    pub(super) j: [f32; 3],
    pub(super) mass: f32,
    /// Beginning of its step, in ticks.
    pub(super) begun: u64,
}

/// Position and velocity.
#[derive(Clone, Copy)]
pub(super) struct Predicted {
    pub(super) x: [f64; 3],
    pub(super) v: [f32; 3],
}

/// The upper bits of a number, rounded to them.
#[inline(always)]
fn upper(x: f32, lower: u32) -> u32 {
    let half = 1 << (lower - 1);
    (x.to_bits() + half) >> lower << lower
}

#[inline(always)]
fn words(x: f64) -> (u32, u32) {
    let bits = x.to_bits();
    (bits as u32, (bits >> 32) as u32)
}

#[inline(always)]
fn number(low: u32, high: u32) -> f64 {
    f64::from_bits(u64::from(high) << 32 | u64::from(low))
}

impl Record {
    /// A body without mass.
    pub(super) const NOTHING: Self = Self {
        x: [0.0; 3],
        v: [0.0; 3],
        a: [0.0; 3],
        j: [0.0; 3],
        mass: 0.0,
        begun: 0,
    };

    /// The record at a place.
    ///
    /// # Safety
    /// `records` has it, and nobody writes it in this launch, or only this thread.
    #[inline(always)]
    pub(super) unsafe fn load(records: *const Vec4<u32>, place: u32) -> Self {
        let records = records.wrapping_add(place as usize * RECORD as usize);
        // SAFETY: the caller's promise.
        Self::unpacked([0, 1, 2, 3].map(|k| unsafe { global::load(records, k) }))
    }

    /// Inverse of [`load`](Self::load), but for digits of the jerk.
    ///
    /// # Safety
    /// As there, and no other thread accesses it.
    #[inline(always)]
    pub(super) unsafe fn store(&self, records: *mut Vec4<u32>, place: u32) {
        let records = records.wrapping_add(place as usize * RECORD as usize);
        let [p, q, r, s] = self.packed();
        // SAFETY: the caller's promise.
        unsafe {
            global::store(records, 0, p);
            global::store(records, 1, q);
            global::store(records, 2, r);
            global::store(records, 3, s);
        }
    }

    #[inline(always)]
    fn unpacked([p, q, r, s]: [Vec4<u32>; 4]) -> Self {
        let f = f32::from_bits;
        Self {
            x: [number(p.x, p.y), number(p.z, p.w), number(q.x, q.y)],
            v: [f(q.z), f(q.w), f(r.x)],
            a: [f(r.y), f(r.z), f(r.w)],
            j: [f(s.x & 0xffff_0000), f(s.x << 16), f(s.y & 0xffff_ff00)],
            mass: f(s.z),
            begun: u64::from(s.y & 0xff) << 32 | u64::from(s.w),
        }
    }

    #[inline(always)]
    fn packed(&self) -> [Vec4<u32>; 4] {
        let Self { x, v, a, j, .. } = self;
        let [x0, x1, x2] = [words(x[0]), words(x[1]), words(x[2])];
        let f = f32::to_bits;
        let both = upper(j[0], 16) | upper(j[1], 16) >> 16;
        // At the end of a span nothing is predicted any more, and its time has a bit too many.
        let third = upper(j[2], 8) | (self.begun >> 32) as u32 & 0xff;
        [
            [x0.0, x0.1, x1.0, x1.1].into(),
            [x2.0, x2.1, f(v[0]), f(v[1])].into(),
            [f(v[2]), f(a[0]), f(a[1]), f(a[2])].into(),
            [both, third, f(self.mass), self.begun as u32].into(),
        ]
    }

    /// Position and velocity at a time.
    #[inline(always)]
    pub(super) fn predicted(&self, now: u64, elapsed: Elapsed) -> Predicted {
        let (dx, v) = self.moved(elapsed.between(self.begun, now));
        let x = self.x;
        Predicted {
            x: [
                x[0] + f64::from(dx[0]),
                x[1] + f64::from(dx[1]),
                x[2] + f64::from(dx[2]),
            ],
            v,
        }
    }

    /// Distance that it moves in `dt`, and its velocity then.
    #[inline(always)]
    pub(super) fn moved(&self, dt: f32) -> ([f32; 3], [f32; 3]) {
        let Self { v, a, j, .. } = self;
        let (half, third) = (0.5 * dt, dt * (1.0 / 3.0));
        let fma = <f32 as GpuFloat>::mul_add;
        let dx = |k: usize| dt * fma(half, fma(third, j[k], a[k]), v[k]);
        let v1 = |k: usize| fma(dt, fma(half, j[k], a[k]), v[k]);
        ([dx(0), dx(1), dx(2)], [v1(0), v1(1), v1(2)])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedule::block_steps::SPAN;

    #[test]
    fn records_keep_what_they_say() {
        let record = Record {
            x: [1.0 / 3.0, -2e10, 5e-300],
            v: [0.1, -0.2, 3e8],
            a: [7.0, 1e-20, -4.0],
            j: [1.2345678, -9.876_543, 1.357_911],
            mass: 0.25,
            begun: SPAN - 3,
        };
        let kept = Record::unpacked(record.packed());
        assert_eq!(kept.packed(), record.packed(), "a copy has the same words");
        assert_eq!((kept.x, kept.v, kept.a), (record.x, record.v, record.a));
        assert_eq!((kept.mass, kept.begun), (record.mass, record.begun));
        for (k, most) in [1.0 / 256.0, 1.0 / 256.0, 1.0 / 65536.0]
            .into_iter()
            .enumerate()
        {
            let off = (kept.j[k] / record.j[k] - 1.0).abs();
            assert!(off > 0.0 && off <= most, "{off}");
        }
    }
}
