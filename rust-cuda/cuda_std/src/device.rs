//! The backend on the device: intrinsics where LLVM has them (it knows which are convergent),
//! inline PTX for the rest.

use crate::shared::SharedWord;
use crate::vector::{Vec2, Vec4};
use core::arch::asm;
use core::arch::nvptx as ptx;

/// IEEE half precision: the native type here, `half::f16` off the device.
pub type Half = f16;

unsafe extern "C" {
    #[link_name = "llvm.nvvm.barrier0.popc"]
    fn barrier_count(predicate: i32) -> i32;
    #[link_name = "llvm.nvvm.bar.warp.sync"]
    fn bar_warp_sync(mask: u32);
    #[link_name = "llvm.nvvm.shfl.sync.idx.i32"]
    fn shfl_sync_idx(mask: u32, value: i32, lane: i32, clamp: i32) -> i32;
    #[link_name = "llvm.nvvm.read.ptx.sreg.laneid"]
    fn read_lane_id() -> u32;
    #[link_name = "llvm.nvvm.vote.ballot.sync"]
    fn vote_ballot_sync(mask: u32, predicate: bool) -> i32;
}

const FULL_WARP: u32 = u32::MAX;

#[inline(always)]
pub(crate) fn thread_idx(axis: usize) -> u32 {
    // SAFETY: reads a special register.
    unsafe { [ptx::_thread_idx_x, ptx::_thread_idx_y, ptx::_thread_idx_z][axis]() as u32 }
}

#[inline(always)]
pub(crate) fn block_idx(axis: usize) -> u32 {
    // SAFETY: reads a special register.
    unsafe { [ptx::_block_idx_x, ptx::_block_idx_y, ptx::_block_idx_z][axis]() as u32 }
}

#[inline(always)]
pub(crate) fn block_dim(axis: usize) -> u32 {
    // SAFETY: reads a special register.
    unsafe { [ptx::_block_dim_x, ptx::_block_dim_y, ptx::_block_dim_z][axis]() as u32 }
}

#[inline(always)]
pub(crate) fn grid_dim(axis: usize) -> u32 {
    // SAFETY: reads a special register.
    unsafe { [ptx::_grid_dim_x, ptx::_grid_dim_y, ptx::_grid_dim_z][axis]() as u32 }
}

#[inline(always)]
pub(crate) fn lane_id() -> u32 {
    // SAFETY: reads a special register.
    unsafe { read_lane_id() }
}

/// Blocks are not asked here: the emulator has refused the kernel.
#[inline(always)]
pub(crate) fn check_one_dimensional() {}

/// A directive for the entry cannot be said from its inside: this is a note that `cuda_builder` moves
/// to where it belongs.
#[inline(always)]
pub(crate) fn limit_registers<const MOST: u32>() {
    // SAFETY: a comment.
    unsafe { asm!("// entry directive: .maxnreg {}", const MOST, options(nomem, nostack)) }
}

#[inline(always)]
pub(crate) fn sync_threads() {
    // SAFETY: all threads of the block reach it, which is the kernel's duty (see `thread`) and vouched
    // for by its launch.
    unsafe { ptx::_syncthreads() }
}

#[inline(always)]
pub(crate) fn sync_threads_count(predicate: bool) -> u32 {
    // SAFETY: as `sync_threads`.
    unsafe { barrier_count(i32::from(predicate)) as u32 }
}

#[inline(always)]
pub(crate) fn sync_warp() {
    // SAFETY: all lanes reach it, which is the kernel's duty (see `warp`) and vouched for by its
    // launch.
    unsafe { bar_warp_sync(FULL_WARP) }
}

#[inline(always)]
pub(crate) fn shuffle_idx(value: u32, lane: u32) -> u32 {
    // SAFETY: as `sync_warp`. The clamp 0x1f makes the whole warp one segment.
    unsafe { shfl_sync_idx(FULL_WARP, value as i32, lane as i32, 0x1f) as u32 }
}

#[inline(always)]
pub(crate) fn ballot(predicate: bool) -> u32 {
    // SAFETY: as `sync_warp`.
    unsafe { vote_ballot_sync(FULL_WARP, predicate) as u32 }
}

/// Address, in the shared space, of the launch's dynamic shared memory, which `module!` declares.
#[inline(always)]
pub(crate) fn shared_base() -> u32 {
    let address: u32;
    // SAFETY: takes an address.
    unsafe {
        asm!("mov.u32 {}, dynamic_shared_memory;", out(reg32) address, options(pure, nomem, nostack));
    }
    address
}

// Loads are `pure, readonly`: the compiler may drop the ones whose result is not used, and may not
// move them across the stores and barriers, which it knows to write memory.

// SAFETY: one 4-byte access.
unsafe impl SharedWord for f32 {
    #[inline(always)]
    unsafe fn read(address: u32) -> Self {
        let v;
        // SAFETY: the caller's promise.
        unsafe {
            asm!("ld.shared.f32 {}, [{}];", out(reg32) v, in(reg32) address, options(pure, readonly, nostack));
        }
        v
    }
    #[inline(always)]
    unsafe fn write(address: u32, v: Self) {
        // SAFETY: the caller's promise.
        unsafe { asm!("st.shared.f32 [{}], {};", in(reg32) address, in(reg32) v, options(nostack)) }
    }
}

// SAFETY: one 4-byte access.
unsafe impl SharedWord for u32 {
    #[inline(always)]
    unsafe fn read(address: u32) -> Self {
        let v;
        // SAFETY: the caller's promise.
        unsafe {
            asm!("ld.shared.u32 {}, [{}];", out(reg32) v, in(reg32) address, options(pure, readonly, nostack));
        }
        v
    }
    #[inline(always)]
    unsafe fn write(address: u32, v: Self) {
        // SAFETY: the caller's promise.
        unsafe { asm!("st.shared.u32 [{}], {};", in(reg32) address, in(reg32) v, options(nostack)) }
    }
}

// SAFETY: one 8-byte access.
unsafe impl SharedWord for f64 {
    #[inline(always)]
    unsafe fn read(address: u32) -> Self {
        let v;
        // SAFETY: the caller's promise.
        unsafe {
            asm!("ld.shared.f64 {}, [{}];", out(reg64) v, in(reg32) address, options(pure, readonly, nostack));
        }
        v
    }
    #[inline(always)]
    unsafe fn write(address: u32, v: Self) {
        // SAFETY: the caller's promise.
        unsafe { asm!("st.shared.f64 [{}], {};", in(reg32) address, in(reg64) v, options(nostack)) }
    }
}

// SAFETY: one 16-byte access.
unsafe impl SharedWord for Vec4<f32> {
    #[inline(always)]
    unsafe fn read(address: u32) -> Self {
        let (x, y, z, w);
        // SAFETY: the caller's promise.
        unsafe {
            asm!("ld.shared.v4.f32 {{{}, {}, {}, {}}}, [{}];",
                out(reg32) x, out(reg32) y, out(reg32) z, out(reg32) w, in(reg32) address,
                options(pure, readonly, nostack));
        }
        Vec4 { x, y, z, w }
    }
    #[inline(always)]
    unsafe fn write(address: u32, v: Self) {
        // SAFETY: the caller's promise.
        unsafe {
            asm!("st.shared.v4.f32 [{}], {{{}, {}, {}, {}}};", in(reg32) address,
                in(reg32) v.x, in(reg32) v.y, in(reg32) v.z, in(reg32) v.w, options(nostack));
        }
    }
}

// SAFETY: one 16-byte access.
unsafe impl SharedWord for Vec4<u32> {
    #[inline(always)]
    unsafe fn read(address: u32) -> Self {
        let (x, y, z, w);
        // SAFETY: the caller's promise.
        unsafe {
            asm!("ld.shared.v4.u32 {{{}, {}, {}, {}}}, [{}];",
                out(reg32) x, out(reg32) y, out(reg32) z, out(reg32) w, in(reg32) address,
                options(pure, readonly, nostack));
        }
        Vec4 { x, y, z, w }
    }
    #[inline(always)]
    unsafe fn write(address: u32, v: Self) {
        // SAFETY: the caller's promise.
        unsafe {
            asm!("st.shared.v4.u32 [{}], {{{}, {}, {}, {}}};", in(reg32) address,
                in(reg32) v.x, in(reg32) v.y, in(reg32) v.z, in(reg32) v.w, options(nostack));
        }
    }
}

// SAFETY: one 8-byte access.
unsafe impl SharedWord for Vec2<u32> {
    #[inline(always)]
    unsafe fn read(address: u32) -> Self {
        let (x, y);
        // SAFETY: the caller's promise.
        unsafe {
            asm!("ld.shared.v2.u32 {{{}, {}}}, [{}];",
                out(reg32) x, out(reg32) y, in(reg32) address, options(pure, readonly, nostack));
        }
        Vec2 { x, y }
    }
    #[inline(always)]
    unsafe fn write(address: u32, v: Self) {
        // SAFETY: the caller's promise.
        unsafe {
            asm!("st.shared.v2.u32 [{}], {{{}, {}}};", in(reg32) address,
                in(reg32) v.x, in(reg32) v.y, options(nostack));
        }
    }
}

// SAFETY: one 8-byte access.
unsafe impl SharedWord for Vec2<f32> {
    #[inline(always)]
    unsafe fn read(address: u32) -> Self {
        let (x, y);
        // SAFETY: the caller's promise.
        unsafe {
            asm!("ld.shared.v2.f32 {{{}, {}}}, [{}];",
                out(reg32) x, out(reg32) y, in(reg32) address, options(pure, readonly, nostack));
        }
        Vec2 { x, y }
    }
    #[inline(always)]
    unsafe fn write(address: u32, v: Self) {
        // SAFETY: the caller's promise.
        unsafe {
            asm!("st.shared.v2.f32 [{}], {{{}, {}}};", in(reg32) address,
                in(reg32) v.x, in(reg32) v.y, options(nostack));
        }
    }
}

// SAFETY: two 8-byte accesses, as the type is aligned.
unsafe impl SharedWord for Vec2<f64> {
    #[inline(always)]
    unsafe fn read(address: u32) -> Self {
        let (x, y);
        // SAFETY: the caller's promise.
        unsafe {
            asm!("ld.shared.f64 {}, [{}];",
                out(reg64) x, in(reg32) address, options(pure, readonly, nostack));
            asm!("ld.shared.f64 {}, [{} + 8];",
                out(reg64) y, in(reg32) address, options(pure, readonly, nostack));
        }
        Vec2 { x, y }
    }
    #[inline(always)]
    unsafe fn write(address: u32, v: Self) {
        // SAFETY: the caller's promise.
        unsafe {
            asm!("st.shared.f64 [{}], {};", in(reg32) address, in(reg64) v.x, options(nostack));
            asm!("st.shared.f64 [{} + 8], {};", in(reg32) address, in(reg64) v.y, options(nostack));
        }
    }
}

// SAFETY: two 16-byte accesses, the widest there are.
unsafe impl SharedWord for Vec4<f64> {
    #[inline(always)]
    unsafe fn read(address: u32) -> Self {
        let (x, y, z, w);
        // SAFETY: the caller's promise.
        unsafe {
            asm!("ld.shared.v2.f64 {{{}, {}}}, [{}];",
                out(reg64) x, out(reg64) y, in(reg32) address, options(pure, readonly, nostack));
            asm!("ld.shared.v2.f64 {{{}, {}}}, [{} + 16];",
                out(reg64) z, out(reg64) w, in(reg32) address, options(pure, readonly, nostack));
        }
        Vec4 { x, y, z, w }
    }
    #[inline(always)]
    unsafe fn write(address: u32, v: Self) {
        // SAFETY: the caller's promise.
        unsafe {
            asm!("st.shared.v2.f64 [{}], {{{}, {}}};", in(reg32) address,
                in(reg64) v.x, in(reg64) v.y, options(nostack));
            asm!("st.shared.v2.f64 [{} + 16], {{{}, {}}};", in(reg32) address,
                in(reg64) v.z, in(reg64) v.w, options(nostack));
        }
    }
}

// SAFETY: one 2-byte access.
unsafe impl SharedWord for f16 {
    #[inline(always)]
    unsafe fn read(address: u32) -> Self {
        let v: u16;
        // SAFETY: the caller's promise.
        unsafe {
            asm!("ld.shared.u16 {}, [{}];", out(reg16) v, in(reg32) address, options(pure, readonly, nostack));
        }
        Self::from_bits(v)
    }
    #[inline(always)]
    unsafe fn write(address: u32, v: Self) {
        // SAFETY: the caller's promise.
        unsafe {
            asm!("st.shared.u16 [{}], {};", in(reg32) address, in(reg16) v.to_bits(), options(nostack));
        }
    }
}

/// The first bytes of the constant memory that `module!` declares.
#[inline(always)]
pub(crate) unsafe fn constant_load<T: Copy>() -> T {
    let mut value = core::mem::MaybeUninit::<T>::uninit();
    let words = value.as_mut_ptr().cast::<u32>();
    let mut copy = |k: usize| {
        let word: u32;
        // SAFETY: word k of both, and the host stored a `T` there.
        unsafe {
            asm!(
                "{{ .reg .b64 at; mov.u64 at, constant_memory; add.u64 at, at, {}; ld.const.u32 {}, [at]; }}",
                in(reg64) 4 * k, out(reg32) word, options(pure, nomem, nostack)
            );
            words.add(k).write(word);
        }
    };
    // Loops of so few steps are unrolled, and nothing goes to local memory.
    const STEPS: usize = 16;
    let (mut low, mut high) = (0, STEPS);
    while low < STEPS && low < size_of::<T>() / 4 {
        copy(low);
        low += 1;
    }
    while high < size_of::<T>() / 4 {
        copy(high);
        high += 1;
    }
    // SAFETY: all of its words are written.
    unsafe { value.assume_init() }
}

#[inline(always)]
pub(crate) fn opaque(x: u32) -> u32 {
    let y;
    // SAFETY: moves a register.
    unsafe {
        asm!("mov.u32 {}, {};", out(reg32) y, in(reg32) x, options(pure, nomem, nostack));
    }
    y
}

#[inline(always)]
pub(crate) unsafe fn global_load<T: Copy>(place: *const T) -> T {
    // SAFETY: the caller's promise.
    unsafe { *place }
}

#[inline(always)]
pub(crate) unsafe fn global_load_read_only(place: *const f32) -> f32 {
    let v;
    // SAFETY: the caller's promise.
    unsafe {
        asm!("ld.global.nc.f32 {}, [{}];", out(reg32) v, in(reg64) place, options(pure, readonly, nostack));
    }
    v
}

/// Reads by an instruction of its own: of a pointer that comes from memory the compiler would not know that it
/// is to global memory.
#[inline(always)]
pub(crate) unsafe fn global_load_by_address(address: u64) -> Vec4<f64> {
    let (x, y, z, w);
    // SAFETY: the caller's promise.
    unsafe {
        asm!("ld.global.v2.f64 {{{}, {}}}, [{at}];", "ld.global.v2.f64 {{{}, {}}}, [{at}+16];",
            out(reg64) x, out(reg64) y, out(reg64) z, out(reg64) w, at = in(reg64) address,
            options(pure, readonly, nostack));
    }
    Vec4 { x, y, z, w }
}

#[inline(always)]
pub(crate) unsafe fn global_store<T: Copy>(place: *mut T, value: T) {
    // SAFETY: the caller's promise.
    unsafe { *place = value }
}

#[inline(always)]
pub(crate) unsafe fn atomic_add_shared(address: u32, value: u32) -> u32 {
    let before;
    // SAFETY: the caller's promise.
    unsafe {
        asm!("atom.shared.add.u32 {}, [{}], {};", out(reg32) before, in(reg32) address, in(reg32) value,
            options(nostack));
    }
    before
}

#[inline(always)]
pub(crate) unsafe fn atomic_add_u32(place: *mut u32, value: u32) {
    // SAFETY: the caller's promise.
    unsafe {
        asm!("red.global.add.u32 [{}], {};", in(reg64) place, in(reg32) value, options(nostack))
    }
}

#[inline(always)]
pub(crate) unsafe fn atomic_add_f32(place: *mut f32, value: f32) {
    // SAFETY: the caller's promise.
    unsafe {
        asm!("red.global.add.f32 [{}], {};", in(reg64) place, in(reg32) value, options(nostack))
    }
}

#[inline(always)]
pub(crate) unsafe fn atomic_add_f64(place: *mut f64, value: f64) {
    // SAFETY: the caller's promise.
    unsafe {
        asm!("red.global.add.f64 [{}], {};", in(reg64) place, in(reg64) value, options(nostack))
    }
}

#[inline(always)]
pub(crate) unsafe fn atomic_add_vec4(place: *mut Vec4<f32>, v: Vec4<f32>) {
    // SAFETY: the caller's promise.
    unsafe {
        if cfg!(target_feature = "sm_90") {
            asm!("red.global.add.v4.f32 [{}], {{{}, {}, {}, {}}};", in(reg64) place,
                in(reg32) v.x, in(reg32) v.y, in(reg32) v.z, in(reg32) v.w, options(nostack));
        } else {
            let place = place.cast::<f32>();
            atomic_add_f32(place, v.x);
            atomic_add_f32(place.add(1), v.y);
            atomic_add_f32(place.add(2), v.z);
            atomic_add_f32(place.add(3), v.w);
        }
    }
}

#[inline(always)]
pub(crate) fn fma_f32(a: f32, b: f32, c: f32) -> f32 {
    core::intrinsics::fmaf32(a, b, c)
}

#[inline(always)]
pub(crate) fn fma_f64(a: f64, b: f64, c: f64) -> f64 {
    core::intrinsics::fmaf64(a, b, c)
}

#[inline(always)]
pub(crate) fn fma_f16(a: f16, b: f16, c: f16) -> f16 {
    core::intrinsics::fmaf16(a, b, c)
}

#[inline(always)]
pub(crate) fn f16_from_f64(x: f64) -> f16 {
    x as f16
}

#[inline(always)]
pub(crate) fn sqrt_f32(x: f32) -> f32 {
    core::intrinsics::sqrtf32(x)
}

#[inline(always)]
pub(crate) fn sqrt_f64(x: f64) -> f64 {
    core::intrinsics::sqrtf64(x)
}

#[inline(always)]
pub(crate) fn sqrt_f16(x: f16) -> f16 {
    sqrt_f32(x as f32) as f16
}

#[inline(always)]
pub(crate) fn rsqrt_approx_f32(x: f32) -> f32 {
    let y;
    // SAFETY: arithmetic.
    unsafe {
        asm!("rsqrt.approx.f32 {}, {};", out(reg32) y, in(reg32) x, options(pure, nomem, nostack));
    }
    y
}

/// The only f64 form that is one instruction flushes denormals.
#[inline(always)]
pub(crate) fn rsqrt_seed_f64(x: f64) -> f64 {
    let y;
    // SAFETY: arithmetic.
    unsafe {
        asm!("rsqrt.approx.ftz.f64 {}, {};", out(reg64) y, in(reg64) x, options(pure, nomem, nostack));
    }
    y
}

// Neither `pure` nor convergent, which inline assembly cannot be declared: the compiler keeps such
// statements in order and does not move them into branches.

#[inline(always)]
pub(crate) fn mma_f16(a: [u32; 4], b: [u32; 2], c: [f32; 4]) -> [f32; 4] {
    let (d0, d1, d2, d3);
    // SAFETY: arithmetic; all lanes reach it, as the emulator's tests show for every kernel.
    unsafe {
        asm!("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 \
              {{{}, {}, {}, {}}}, {{{}, {}, {}, {}}}, {{{}, {}}}, {{{}, {}, {}, {}}};",
            out(reg32) d0, out(reg32) d1, out(reg32) d2, out(reg32) d3,
            in(reg32) a[0], in(reg32) a[1], in(reg32) a[2], in(reg32) a[3],
            in(reg32) b[0], in(reg32) b[1],
            in(reg32) c[0], in(reg32) c[1], in(reg32) c[2], in(reg32) c[3],
            options(nomem, nostack));
    }
    [d0, d1, d2, d3]
}

#[inline(always)]
pub(crate) fn mma_to_f16(a: [u32; 4], b: [u32; 2]) -> [u32; 2] {
    let (d0, d1);
    // SAFETY: as `mma_f16`.
    unsafe {
        asm!("mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 \
              {{{}, {}}}, {{{}, {}, {}, {}}}, {{{}, {}}}, {{{}, {}}};",
            out(reg32) d0, out(reg32) d1,
            in(reg32) a[0], in(reg32) a[1], in(reg32) a[2], in(reg32) a[3],
            in(reg32) b[0], in(reg32) b[1], in(reg32) 0_u32, in(reg32) 0_u32,
            options(nomem, nostack));
    }
    [d0, d1]
}

// Not `pure` either, as these are collective; they read what other lanes have stored.

#[inline(always)]
pub(crate) unsafe fn load_rows(address: u32) -> [u32; 4] {
    let (x, y, z, w);
    // SAFETY: the caller's promise; all lanes reach it, as the emulator's tests show.
    unsafe {
        asm!("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {{{}, {}, {}, {}}}, [{}];",
            out(reg32) x, out(reg32) y, out(reg32) z, out(reg32) w, in(reg32) address,
            options(readonly, nostack));
    }
    [x, y, z, w]
}

#[inline(always)]
pub(crate) unsafe fn load_columns(address: u32) -> [u32; 4] {
    let (x, y, z, w);
    // SAFETY: as `load_rows`.
    unsafe {
        asm!("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {{{}, {}, {}, {}}}, [{}];",
            out(reg32) x, out(reg32) y, out(reg32) z, out(reg32) w, in(reg32) address,
            options(readonly, nostack));
    }
    [x, y, z, w]
}

#[inline(always)]
pub(crate) fn fma_f16_pair(a: u32, b: u32, c: u32) -> u32 {
    let d;
    // SAFETY: arithmetic.
    unsafe {
        asm!("fma.rn.f16x2 {}, {}, {}, {};",
            out(reg32) d, in(reg32) a, in(reg32) b, in(reg32) c, options(pure, nomem, nostack));
    }
    d
}

#[inline(always)]
pub(crate) fn transpose_f16(fragment: u32) -> u32 {
    let transposed;
    // SAFETY: as `mma_f16`.
    unsafe {
        asm!("movmatrix.sync.aligned.m8n8.trans.b16 {}, {};",
            out(reg32) transposed, in(reg32) fragment, options(nomem, nostack));
    }
    transposed
}

#[inline(always)]
pub(crate) fn pack_f16(low: f32, high: f32) -> u32 {
    let pair;
    // SAFETY: arithmetic.
    unsafe {
        asm!("cvt.rn.f16x2.f32 {}, {}, {};",
            out(reg32) pair, in(reg32) high, in(reg32) low, options(pure, nomem, nostack));
    }
    pair
}

#[inline(always)]
pub(crate) fn unpack_f16(pair: u32) -> [f32; 2] {
    [pair as u16, (pair >> 16) as u16].map(|bits| f16::from_bits(bits) as f32)
}

#[inline(always)]
pub(crate) fn min_f16(a: u32, b: u32) -> u32 {
    let least;
    // SAFETY: arithmetic.
    unsafe {
        asm!("min.f16x2 {}, {}, {};",
            out(reg32) least, in(reg32) a, in(reg32) b, options(pure, nomem, nostack));
    }
    least
}
