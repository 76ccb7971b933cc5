//! Kepler motion in regularised time: universal functions, and Kepler's equation.
//!
//! Time passes as dt = r ds, with r the distance of two bodies. With β = 2μ/r − v² and
//! `G_k = s^k c_k(β s²)`, one formula serves ellipses (β > 0), parabolas and hyperbolas (β < 0).
//! The functions `c_k` are from Stumpff; names of G as in Rein & Tamayo (2015, MNRAS 452, 376).
//! Only sums, products, quotients and square roots are used: any machine computes the same bits.

/// Functions of an interval `h` of s.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Functions {
    /// cos(√β h/2), or cosh(√−β h/2).
    pub(crate) c0: f64,
    /// sin(√β h/2)/(√β/2), or sinh(√−β h/2)/(√−β/2).
    pub(crate) c1: f64,
    /// G₂ of the whole interval: (1 − cos(√β h))/β.
    pub(crate) g2: f64,
    /// G₃ of the whole interval: (h − sin(√β h)/√β)/β.
    pub(crate) g3: f64,
}

/// Largest |βh²/4| that the series serve: then the first term left out is below 1e-18.
const SERIES: f64 = 0.5;

/// Halvings of an interval at most. Functions of longer ones are not finite.
const HALVINGS: u32 = 60;

/// 1/17!, 1/15!, ... 1/3!: coefficients of c₃, the highest first.
const ODD: [f64; 8] = [
    1.0 / 355_687_428_096_000.0,
    1.0 / 1_307_674_368_000.0,
    1.0 / 6_227_020_800.0,
    1.0 / 39_916_800.0,
    1.0 / 362_880.0,
    1.0 / 5_040.0,
    1.0 / 120.0,
    1.0 / 6.0,
];

/// 1/16!, 1/14!, ... 1/2!: coefficients of c₂, the highest first.
const EVEN: [f64; 8] = [
    1.0 / 20_922_789_888_000.0,
    1.0 / 87_178_291_200.0,
    1.0 / 479_001_600.0,
    1.0 / 3_628_800.0,
    1.0 / 40_320.0,
    1.0 / 720.0,
    1.0 / 24.0,
    1.0 / 2.0,
];

impl Functions {
    /// Functions of the interval `h` on an orbit with β: by halving until the series serve, then by
    /// the doubling formulas of Mikkola & Aarseth (1998, New Astron. 3, 309).
    #[inline]
    pub(crate) fn new(beta: f64, h: f64) -> Self {
        let mut z = 0.25 * beta * h * h;
        let mut halvings = 0;
        while z.abs() > SERIES && halvings < HALVINGS {
            z *= 0.25;
            halvings += 1;
        }
        let (mut c3, mut c2) = (ODD[0], EVEN[0]);
        for k in 1..8 {
            c3 = ODD[k] - z * c3;
            c2 = EVEN[k] - z * c2;
        }
        let (mut c1, mut c0) = (1.0 - z * c3, 1.0 - z * c2);
        for _ in 0..halvings {
            c3 = 0.25 * (c2 + c0 * c3);
            c2 = 0.5 * c1 * c1;
            c1 *= c0;
            c0 = 2.0 * c0 * c0 - 1.0;
        }
        let square = h * h;
        Self {
            c0,
            c1: h * c1,
            g2: 0.5 * c1 * c1 * square,
            g3: 0.25 * (c2 + c0 * c3) * (square * h),
        }
    }

    /// G₁ of the whole interval: sin(√β h)/√β.
    #[inline]
    pub(crate) fn g1(&self) -> f64 {
        self.c0 * self.c1
    }
}

/// Where on a Kepler orbit an interval begins.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Start {
    /// β = 2μ/r − v².
    pub(crate) beta: f64,
    /// Gravitational parameter μ.
    pub(crate) mu: f64,
    /// Distance r of the bodies.
    pub(crate) radius: f64,
    /// `r · v`, which is dr/ds.
    pub(crate) slope: f64,
}

/// Solution of Kepler's equation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Interval {
    /// Interval of s.
    pub(crate) h: f64,
    /// Evaluations of the functions that it took.
    pub(crate) evaluations: u32,
}

/// Relative change of the interval that is the last: the method triples the number of right digits.
const LAST_CHANGE: f64 = 1e-8;

/// Evaluations of Kepler's equation at most. Bisection ends within them wherever a solution exists.
const EVALUATIONS: u32 = 80;

impl Start {
    /// μ − β r, which is d²r/ds².
    #[inline]
    fn curvature(&self) -> f64 {
        self.mu - self.beta * self.radius
    }

    /// Time that passes in the interval with these functions.
    #[inline]
    pub(crate) fn time(&self, h: f64, of: &Functions) -> f64 {
        self.radius * h + self.slope * of.g2 + self.curvature() * of.g3
    }

    /// Interval of s in which a time passes: the solution of Kepler's equation.
    ///
    /// On an ellipse, `time` must be within a period. Laguerre's method with five roots (Conway
    /// 1986, Celest. Mech. 39, 199) converges from nearly any start; a bracket guards it.
    pub(crate) fn interval(&self, time: f64) -> Interval {
        if time == 0.0 {
            return Interval {
                h: 0.0,
                evaluations: 0,
            };
        }
        let zeta = self.curvature();
        let (mut low, mut high) = self.bracket(time);
        let mut h = self.guess(time).max(low).min(high);
        // Back from an exponential that was overshot, the method would crawl.
        let longest = 2.0 / self.beta.abs().sqrt();
        for evaluations in 1..=EVALUATIONS {
            let of = Functions::new(self.beta, h);
            let (linear, square, cube) = (self.radius * h, self.slope * of.g2, zeta * of.g3);
            let excess = linear + square + cube - time;
            let slope = self.radius + self.slope * of.g1() + zeta * of.g2;
            let bend = self.slope * (1.0 - self.beta * of.g2) + zeta * of.g1();
            if !excess.is_finite() {
                // The functions overflow: far too long.
                if time > 0.0 {
                    high = h
                } else {
                    low = h
                }
                h = 0.5 * (low + high);
                continue;
            }
            if excess > 0.0 {
                high = h
            } else {
                low = h
            }
            let root = (16.0 * slope * slope - 20.0 * excess * bend).abs().sqrt();
            let change = (-5.0 * excess / (slope + root)).max(-longest).min(longest);
            let next = h + change;
            let rounding = 16.0 * f64::EPSILON * (linear.abs() + square.abs() + cube.abs());
            if excess.abs() <= rounding || change.abs() <= LAST_CHANGE * h.abs() {
                return Interval {
                    h: next,
                    evaluations,
                };
            }
            // At the root `next` may be one of the limits: it is inside then.
            h = if next >= low && next <= high {
                next
            } else {
                0.5 * (low + high)
            };
        }
        Interval {
            h,
            evaluations: EVALUATIONS,
        }
    }

    /// Limits of the interval in which a time passes.
    fn bracket(&self, time: f64) -> (f64, f64) {
        let (low, high) = if self.beta > 0.0 {
            // Mean and eccentric anomaly differ by 1 at most, so their changes differ by 2.
            let mean = time * self.beta / self.mu;
            let margin = 2.001 / self.beta.sqrt();
            (mean - margin, mean + margin)
        } else {
            (f64::MIN, f64::MAX)
        };
        if time > 0.0 {
            (low.max(0.0), high)
        } else {
            (low, high.min(0.0))
        }
    }

    /// A first guess of the interval in which a time passes.
    fn guess(&self, time: f64) -> f64 {
        let size = self.beta.abs().sqrt();
        // The change of the mean anomaly serves an ellipse, unless it is small near a pericentre.
        let mean = time * self.beta / self.mu;
        let is_ellipse = self.beta > 0.0;
        if is_ellipse && (mean * size).abs() > 0.05 {
            return mean;
        }
        let h = self.parabolic(time);
        if h.abs() * size < 1.0 {
            return h;
        }
        if is_ellipse {
            return mean;
        }
        // On a hyperbola e sinh F = (r · v)√−β/μ, and it grows nearly in proportion to time.
        let zeta = self.curvature() / self.mu;
        let before = self.slope * size / self.mu;
        let after = before + time * size * size * size / self.mu;
        let e = (zeta * zeta - before * before).max(1.0).sqrt();
        (inverse_sinh(after / e) - inverse_sinh(before / e)) / size
    }

    /// The interval in which a time passes if the orbit is a parabola: nearly the root of
    /// a cubic.
    fn parabolic(&self, time: f64) -> f64 {
        let (zeta, eta) = (self.curvature(), self.slope);
        let mut h = time / self.radius;
        for _ in 0..6 {
            let excess = self.radius * h + h * h * (0.5 * eta + h * zeta / 6.0) - time;
            let slope = self.radius + h * (eta + 0.5 * h * zeta);
            let bend = eta + h * zeta;
            let root = (4.0 * slope * slope - 6.0 * excess * bend).abs().sqrt();
            let change = 3.0 * excess / (slope.abs() + root);
            h -= change;
            if change.abs() <= 1e-3 * h.abs() {
                break; // to 1e-9, since the method triples the number of right digits
            }
        }
        h
    }
}

/// The inverse hyperbolic sine, within 0.06: enough for a first guess.
fn inverse_sinh(x: f64) -> f64 {
    let grown = x.abs() + (x * x + 1.0).sqrt();
    // The exponent of a number, and the rest of it as if logarithms were straight between powers of 2.
    let bits = grown.to_bits();
    let exponent = (bits >> 52) as f64 - 1023.0;
    let rest = (bits & ((1 << 52) - 1)) as f64 / (1_u64 << 52) as f64;
    (core::f64::consts::LN_2 * (exponent + rest)).copysign(x)
}

#[cfg(test)]
mod tests;
