//! The beginning of a span: spheres, lists and steps that bodies begin with.

use crate::neighbour_scheme::{growth, sum};
use cuda_std::vector::Vec2;
use cuda_std::{GpuFloat, global};

use super::correct::Own;
use super::ends::{AllSums, External, NONE};
use super::{clock, regular_step, word};
use crate::schedule::block_steps::level_of;

/// Bodies found in a sphere, in those that are wanted, above which they are too many.
const TOO_MANY: f64 = 1.5;

/// Factor by which the volume of a sphere changes at most between two searches: where densities change
/// within a sphere, a larger one would lead too far.
const MOST_GROWTH: f64 = 8.0;

impl Own {
    /// Lets all bodies begin a span with the steps that they are allowed.
    ///
    /// # Safety
    /// All threads of the block call it, in a launch as [`correct`] says.
    #[inline(always)]
    pub(super) unsafe fn begin(&self) {
        let on = &self.on;
        self.each_body(|place, body| {
            // SAFETY: own bodies, each by one thread.
            unsafe {
                let Vec2 { y: regular, .. } = global::load(on.spheres, body);
                let regular = level_of(regular, self.span);
                let level = level_of(global::load(on.steps, body), self.span);
                global::store(on.levels, place, level.max(regular));
                global::store(on.regular_steps, place, regular_step(0, regular));
                self.renew_record(place, body, 0);
            }
        });
    }

    /// Changes the radii of spheres by how many bodies were found there; if `settled`, not to those yet
    /// to be tried. The numbers beside radii are the largest so far in which not too many were found.
    ///
    /// # Safety
    /// As [`begin`](Self::begin), with lists of all bodies.
    #[inline(always)]
    pub(super) unsafe fn fit_spheres(&self, sums: &AllSums, settled: bool) {
        let on = &self.on;
        self.each_body(|place, body| {
            // SAFETY: own bodies; bodies were handed out in the order of places.
            unsafe {
                let wanted = f64::from(word(on.time, clock::WANTED));
                let found = sums.regular(place).found;
                let Vec2 { x: radius, y } = global::load(on.spheres, body);
                let are_few = found <= TOO_MANY * wanted;
                let small = if are_few & (radius > y) { radius } else { y };
                let next = if settled {
                    radius
                } else {
                    radius * growth(wanted, found, MOST_GROWTH)
                };
                // About a body far out many may be found at once, where its sphere reaches the middle.
                let next = if are_few || small == 0.0 {
                    next
                } else if settled {
                    small
                } else {
                    (radius * small).sqrt_exact()
                };
                global::store(on.spheres, body, [next, small].into());
            }
        });
    }

    /// Takes the forces of all bodies where the span begins, from the sums over all others and over their
    /// lists.
    ///
    /// # Safety
    /// As [`fit_spheres`](Self::fit_spheres), with the sums of [`force`](super::force).
    #[inline(always)]
    pub(super) unsafe fn take_forces<const EXTERNAL: bool>(
        &self,
        sums: &AllSums,
        external: &External,
        g: f64,
    ) {
        self.each_body(|place, body| {
            // SAFETY: own bodies, handed out in the order of places.
            unsafe {
                let sums = sums.regular(place);
                let (regular, irregular) = (sums.others.force(g), sums.listed.force(g));
                let pairs = sum([regular, irregular, NONE]);
                let field = if EXTERNAL {
                    external.force(0, self.moving(body), pairs[0])
                } else {
                    NONE
                };
                self.set_whole(body, sum([pairs, field, NONE]));
                self.set_regular(body, regular);
                self.renew_record(place, body, 0);
            }
        });
    }
}
