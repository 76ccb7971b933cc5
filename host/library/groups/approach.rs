//! When a pair that nothing perturbs is at its pericentre, and when within a distance.

use super::kepler::{Functions, Start};
use super::vector::dot;
use super::{Pair, Vector};

/// A pericentre of a pair's orbit.
#[derive(Clone, Copy, Debug)]
struct Pericentre {
    /// Distance there.
    distance: f64,
    /// μ e.
    curvature: f64,
    /// Time until then; before now if it is past.
    time: f64,
}

impl Pair {
    /// Least distance of the orbit: p/(1 + e), with p = h²/μ.
    pub(crate) fn pericentre(&self) -> f64 {
        let h: Vector = self.angular_momentum();
        dot(h, h) / (self.mu * (1.0 + self.eccentricity()))
    }

    /// The pericentre that is nearest in time.
    fn nearest_pericentre(&self) -> Pericentre {
        let start = self.start();
        let curvature = self.mu - self.beta * start.radius;
        let rate = self.beta.abs().sqrt();
        // The interval in which dr/ds = slope G₀ + curvature G₁ vanishes.
        let interval = if self.beta > 0.0 {
            (-start.slope * rate).atan2(curvature) / rate
        } else if self.beta < 0.0 {
            (-start.slope * rate / curvature).atanh() / rate
        } else {
            -start.slope / curvature
        };
        Pericentre {
            distance: self.pericentre(),
            curvature: self.mu * self.eccentricity(),
            time: start.time(interval, &Functions::new(self.beta, interval)),
        }
    }

    /// Time until the next pericentre; infinite for an unbound pair that is past it.
    pub(crate) fn until_pericentre(&self) -> f64 {
        let time = self.nearest_pericentre().time;
        match time > 0.0 {
            true => time,
            false => time + self.period(),
        }
    }

    /// Time, before or after now, at which the distance falls to `radius` on the way to the nearest pericentre;
    /// none if it does not.
    fn entry(&self, radius: f64) -> Option<f64> {
        let Pericentre {
            distance,
            curvature,
            time,
        } = self.nearest_pericentre();
        if distance.is_nan() || distance > radius {
            return None;
        }
        // r = q + μ e G₂, and G₂ = 2 sin²(√β s/2)/β.
        let rate = self.beta.abs().sqrt();
        let half = (0.5 * (radius - distance) / curvature).sqrt();
        let interval = if self.beta > 0.0 {
            let sine = rate * half;
            if sine >= 1.0 {
                return None; // within the radius all along the orbit
            }
            2.0 * sine.asin() / rate
        } else if self.beta < 0.0 {
            2.0 * (rate * half).asinh() / rate
        } else {
            2.0 * half
        };
        let start = Start {
            beta: self.beta,
            mu: self.mu,
            radius: distance,
            slope: 0.0,
        };
        Some(time - start.time(interval, &Functions::new(self.beta, interval)))
    }

    /// Time until the distance next falls to `radius`; none if it does not.
    pub(crate) fn until_within(&self, radius: f64) -> Option<f64> {
        let time = self.entry(radius)?;
        let next = match time > 0.0 {
            true => time,
            false => time + self.period(),
        };
        next.is_finite().then_some(next)
    }

    /// Time since the distance last fell to `radius`; none if it did not.
    pub(crate) fn since_within(&self, radius: f64) -> Option<f64> {
        let time = self.entry(radius)?;
        let last = match time <= 0.0 {
            true => -time,
            false => self.period() - time,
        };
        last.is_finite().then_some(last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MU: f64 = 1.7;

    /// Pairs at the pericentre 0.01, of these eccentricities.
    fn at_pericentre() -> impl Iterator<Item = (f64, Pair)> {
        let q: f64 = 0.01;
        let eccentricities = [1e-3, 0.3, 0.9, 1.0 - 1e-9, 1.0 + 1e-9, 1.5, 30.0];
        eccentricities.into_iter().map(move |e: f64| {
            let speed = (MU * (1.0 + e) / q).sqrt();
            let (sin, cos) = 0.4_f64.sin_cos();
            let velocity = [0.0, -speed * sin, speed * cos];
            (e, Pair::new(MU, 0.0, [q, 0.0, 0.0], velocity))
        })
    }

    #[test]
    fn the_pericentre_is_found_from_everywhere_on_the_orbit() {
        for (e, pair) in at_pericentre() {
            let scale = (0.01_f64.powi(3) / MU).sqrt();
            for before in [0.1, 1.0, 2.5, 20.0] {
                let time = before * scale;
                if 2.0 * time >= pair.period() {
                    continue;
                }
                let early = pair.at(-time);
                assert!((early.pericentre() / 0.01 - 1.0).abs() < 1e-9, "{e}");
                let off = early.until_pericentre() / time - 1.0;
                assert!(off.abs() < 1e-6, "{e} {before} {off:e}");
                let late = pair.at(time).until_pericentre();
                match e < 1.0 {
                    true => assert!((late + time) / pair.period() - 1.0 < 1e-6, "{e} {late}"),
                    false => assert_eq!(late, f64::INFINITY, "{e}"),
                }
            }
        }
    }

    /// The orbit itself judges: the distance is the radius there, and falls.
    #[test]
    fn a_pair_is_within_a_radius_from_the_time_that_is_told() {
        for (e, pair) in at_pericentre() {
            let scale = (0.01_f64.powi(3) / MU).sqrt();
            assert_eq!(pair.until_within(0.0099), None, "{e}");
            assert_eq!(pair.since_within(0.0099), None, "{e}");
            let radius = if e < 0.01 { 0.010_01 } else { 0.0105 };
            for now in [-30.0, -3.0, -0.5, 0.0, 0.5, 3.0, 30.0] {
                let there = pair.at(now * scale);
                let check = |time: Option<f64>, sign: f64| {
                    let time = time.expect("it comes within");
                    assert!(time >= 0.0, "{e} {now} {time}");
                    let then = there.at(there.time + sign * time);
                    let off = then.radius() / radius - 1.0;
                    assert!(off.abs() < 1e-7, "{e} {now} {off:e}");
                    assert!(dot(then.position(), then.velocity()) < 0.0, "{e} {now}");
                    time
                };
                // A period of 10¹¹ is no time in which the distance keeps its digits.
                if there.period() < 1e4 * scale {
                    let next = check(there.until_within(radius), 1.0);
                    let last = check(there.since_within(radius), -1.0);
                    let period = (next + last) / there.period() - 1.0;
                    assert!(period.abs() < 1e-6, "{e} {now} {period:e}");
                } else if now <= -3.0 {
                    check(there.until_within(radius), 1.0);
                    assert!(e < 1.0 || there.since_within(radius).is_none());
                } else if now >= 0.0 {
                    check(there.since_within(radius), -1.0);
                    assert!(e < 1.0 || there.until_within(radius).is_none());
                }
            }
        }
    }

    #[test]
    fn two_bodies_at_rest_fall_onto_each_other() {
        // From rest at r to a tenth of it: t = √(r³/2μ) (√(x(1 − x)) + acos √x).
        let pair = Pair::new(MU, 0.0, [0.3, 0.0, 0.0], [0.0; 3]);
        let x: f64 = 0.1;
        let expected =
            (0.3_f64.powi(3) / (2.0 * MU)).sqrt() * ((x * (1.0 - x)).sqrt() + x.sqrt().acos());
        let time = pair.until_within(0.03).expect("they meet");
        assert!((time / expected - 1.0).abs() < 1e-7, "{time} {expected}");
    }
}
