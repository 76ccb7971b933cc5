//! From orbital elements to positions and velocities.

use std::f64::consts::TAU;

/// An ellipse around a focus, and the place on it. Angles in radians.
#[derive(Clone, Copy, Debug)]
pub(super) struct Elements {
    pub(super) semi_major_axis: f64,
    pub(super) eccentricity: f64,
    pub(super) inclination: f64,
    /// Longitude of the ascending node.
    pub(super) node: f64,
    /// Argument of the pericentre, from the node.
    pub(super) argument: f64,
    pub(super) mean_anomaly: f64,
}

impl Elements {
    /// Position and velocity relative to the other body; `mu` is G times both masses.
    pub(super) fn state(&self, mu: f64) -> [[f64; 3]; 2] {
        let (a, e) = (self.semi_major_axis, self.eccentricity);
        let (sin, cos) = libm::sincos(self.eccentric_anomaly());
        let root = (1.0 - e * e).sqrt();
        // In the plane of the orbit, with the pericentre on the first axis.
        let rate = (mu / a).sqrt() / (1.0 - e * cos);
        let position = [a * (cos - e), a * root * sin];
        let velocity = [-rate * sin, rate * root * cos];
        [position, velocity].map(|vector| self.out_of_plane(vector))
    }

    /// Kepler's equation `M = E − e sin E`, by Newton's method.
    fn eccentric_anomaly(&self) -> f64 {
        let e = self.eccentricity;
        let mean = self.mean_anomaly - TAU * libm::round(self.mean_anomaly / TAU);
        let mut eccentric = mean + e * libm::sin(mean);
        // Quadratic convergence: planets need four or five.
        for _ in 0..50 {
            let (sin, cos) = libm::sincos(eccentric);
            let step = (eccentric - e * sin - mean) / (1.0 - e * cos);
            eccentric -= step;
            if step.abs() <= 1e-15 {
                break;
            }
        }
        eccentric
    }

    fn out_of_plane(&self, [x, y]: [f64; 2]) -> [f64; 3] {
        let (sin_w, cos_w) = libm::sincos(self.argument);
        let (sin_i, cos_i) = libm::sincos(self.inclination);
        let (sin_n, cos_n) = libm::sincos(self.node);
        let (x, y) = (cos_w * x - sin_w * y, sin_w * x + cos_w * y);
        let (y, z) = (cos_i * y, sin_i * y);
        [cos_n * x - sin_n * y, sin_n * x + cos_n * y, z]
    }
}

#[cfg(test)]
mod tests {
    use super::super::norm_squared;
    use super::*;

    #[test]
    fn the_state_has_the_elements() {
        for (e, mean) in [(0.0, 1.0), (0.2, 4.0), (0.9, 0.3), (0.6, -50.0)] {
            let elements = Elements {
                semi_major_axis: 2.0,
                eccentricity: e,
                inclination: 0.4,
                node: 1.1,
                argument: 2.2,
                mean_anomaly: mean,
            };
            let [r, v] = elements.state(3.0);
            let tolerance = 100.0 * f64::EPSILON / (1.0 - e);
            let distance = norm_squared(r).sqrt();
            let energy = 0.5 * norm_squared(v) - 3.0 / distance;
            assert!((energy + 0.75).abs() <= tolerance, "{energy}");
            let spin = [
                r[1] * v[2] - r[2] * v[1],
                r[2] * v[0] - r[0] * v[2],
                r[0] * v[1] - r[1] * v[0],
            ];
            let size = norm_squared(spin).sqrt();
            assert!(
                (size - (6.0 * (1.0 - e * e)).sqrt()).abs() <= tolerance,
                "{size}"
            );
            assert!((spin[2] / size - 0.4_f64.cos()).abs() <= tolerance);
            assert!((spin[0].atan2(-spin[1]) - 1.1).abs() <= tolerance);
            // Kepler's equation from the distance: r = a (1 − e cos E).
            let eccentric = elements.eccentric_anomaly();
            assert!((distance - 2.0 * (1.0 - e * eccentric.cos())).abs() <= tolerance);
            let back = (eccentric - e * eccentric.sin() - mean).rem_euclid(TAU);
            assert!(back.min(TAU - back) <= 1e-13, "{back}");
        }
    }
}
