//! Block time steps that the host takes, with forces that the device computes.

use crate::abi::Params;
use crate::layout::{Layout, Source};
use cuda_std::vector::Vec4;
use cuda_std::{global, thread};

use super::correct::{begun, set_ends};
use super::posts::Post;
use super::records::{self, Digits};
use super::scheme::{Begun, Scheme};
use super::{Bodies, BodyBuffers, DEEPEST, MOST_REGISTERS, SPAN, clock, most_of_a_slice};

/// Vectors of what the host tells before the first body.
pub const TOLD_HEAD: u32 = 1;

/// Vectors that the host tells about a body.
pub const fn told_of_body(order: u32) -> u32 {
    if order == 6 { 6 } else { 4 }
}

/// Takes over what the host tells: bodies that begin a step, the next time, and the targets there.
///
/// # Formula
/// None.
///
/// # Arguments
/// `told`: read, in the order written here. Numbers of bodies and of targets, time before the next in ticks, and
/// the span. For each body: position and mass; velocity and the body's number; acceleration and beginning of its step
/// in ticks; jerk; at sixth order snap and crackle. For each target one number: the number of a body that is not told
/// now, or −1 − k for the k-th body that is. `bodies`: written where the host tells, and read where it does not.
/// `targets`, `posts`, `time`: written for parity 0.
///
/// # Thread mapping
/// One-dimensional; a thread takes a body, a target, or the post of a block, then the next.
///
/// # Safety
/// The buffers are as said and do not overlap. No body is told twice, and a target that is told now is not given by its
/// own number.
///
/// # Source
/// This project. That the host takes steps and a device computes forces is the way of GRAPE (Sugimoto et al.
/// 1990, Nature 345, 33).
#[inline(always)]
pub unsafe fn take_over<S: Scheme, D: Digits>(
    told: *const Vec4<f64>,
    bodies: BodyBuffers,
    targets: *mut Vec4<D::Real>,
    posts: *mut u64,
    time: *mut u64,
    params: Params,
) {
    thread::limit_registers::<MOST_REGISTERS>();
    let Params {
        n,
        stride,
        partials: slices,
        ..
    } = params;
    let threads = thread::block_dim_x() * thread::grid_dim_x();
    // SAFETY: the head.
    let head = unsafe { global::load(told, 0) };
    let (changed, active) = (head.x as u32, head.y as u32);
    let (now, tick) = (head.z as u64, head.w / SPAN as f64);
    let next = now + (SPAN >> DEEPEST);
    let mut item = thread::index_1d();
    if item == 0 {
        // SAFETY: words of the clock that this thread alone writes.
        unsafe {
            global::store(time, clock::NOW, now);
            global::store(time, clock::SPAN, head.w.to_bits());
        }
    }
    while item < changed + active + slices {
        if item < changed {
            // SAFETY: what is told of a body, which no other thread has.
            unsafe {
                let body = Told::fetch::<S>(told, item);
                let number = body.number;
                let source = Source {
                    position: body.begun.x,
                    mass: body.mass,
                };
                Bodies::set_source(bodies.state, stride, number, source);
                Bodies::set_velocity(bodies.state, stride, number, body.begun.v);
                global::store(bodies.begun, number, body.begun_at);
                let Begun { a, j, s, c, .. } = body.begun;
                set_ends::<S>(&bodies, stride, number, [a, j, s], c);
            }
        } else if item < changed + active {
            // SAFETY: the place of a target, which no other thread has. Its body is told, or is one that no thread writes.
            unsafe {
                // Predicted as the source that it is: a body is at no distance from itself.
                let place = item - changed;
                let number = target::<S>(told, changed, place);
                let (begun, begun_at) = if number < 0.0 {
                    let body = Told::fetch::<S>(told, (-1.0 - number) as u32);
                    (body.begun, body.begun_at)
                } else {
                    let body = number as u32;
                    let begun = begun::<S>(&bodies, stride, body);
                    (begun, global::load(bodies.begun, body))
                };
                let dt = (next - begun_at) as f64 * tick;
                let moving = S::predicted(&begun, dt);
                records::rounded::<D>(moving).put::<S, D>(targets, place);
            }
        } else {
            // Blocks have all targets in order, each as many as it has room for.
            let block = item - changed - active;
            let most = most_of_a_slice(n, slices);
            let post = Post {
                finest: DEEPEST,
                guess: DEEPEST,
                count: active.saturating_sub(block * most).min(most),
                regular: 0,
            };
            // SAFETY: the post of a block, which no other thread has.
            unsafe { global::store(posts, block, post.into()) };
        }
        item += threads;
    }
}

/// Number that the host tells for the target at a place, after this number of bodies.
///
/// # Safety
/// It is told, for a scheme of this order.
#[inline(always)]
unsafe fn target<S: Scheme>(told: *const Vec4<f64>, bodies: u32, place: u32) -> f64 {
    let vectors = TOLD_HEAD + bodies * const { told_of_body(S::ORDER) };
    // SAFETY: the caller's promise.
    unsafe { global::load(told.cast::<f64>(), 4 * vectors + place) }
}

/// A body that the host tells.
struct Told {
    number: u32,
    mass: f64,
    begun: Begun,
    begun_at: u64,
}

impl Told {
    /// Body `index`.
    ///
    /// # Safety
    /// It is told, for a scheme of this order.
    #[inline(always)]
    unsafe fn fetch<S: Scheme>(told: *const Vec4<f64>, index: u32) -> Self {
        let first = TOLD_HEAD + index * const { told_of_body(S::ORDER) };
        // SAFETY: the caller's promise.
        let vector = |k: u32| unsafe { global::load(told, first + k) };
        let (position, velocity, acceleration) = (vector(0), vector(1), vector(2));
        let [s, c] = if S::SNAP {
            [xyz(vector(4)), xyz(vector(5))]
        } else {
            [[0.0; 3]; 2]
        };
        Self {
            number: velocity.w as u32,
            mass: position.w,
            begun: Begun {
                x: xyz(position),
                v: xyz(velocity),
                a: xyz(acceleration),
                j: xyz(vector(3)),
                s,
                c,
            },
            begun_at: acceleration.w as u64,
        }
    }
}

#[inline(always)]
fn xyz(Vec4 { x, y, z, .. }: Vec4<f64>) -> [f64; 3] {
    [x, y, z]
}
