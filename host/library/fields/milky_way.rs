//! A model of the Milky Way.

use super::{External, ExternalField, Fields};
use crate::units::Units;

/// Radius that the model is scaled by, in m: 8 kpc.
const RADIUS: f64 = 8e3 * crate::units::PARSEC;
/// Speed of circular orbits there, in m/s.
const SPEED: f64 = 220e3;

/// MWPotential2014 of Bovy (2015, ApJS 216, 29, table 1): a bulge that is a power law with exponential
/// cutoff, a disc of Miyamoto & Nagai and a halo of Navarro, Frenk & White, which share the force at 8 kpc
/// from the centre, where circular orbits have 220 km/s, as 0.05 : 0.6 : 0.35; in these units, in which the
/// gravitational constant is `g`.
pub fn mwpotential2014(units: &Units, g: f64) -> [ExternalField; 3] {
    let kpc = 1e3 * crate::units::PARSEC / units.length;
    let radius = RADIUS / units.length;
    let speed = SPEED / units.speed();
    let parts: [(f64, &dyn Fn(f64) -> ExternalField); 3] = [
        (0.05, &|mass| ExternalField::power_law(mass, 1.9 * kpc, 1.8)),
        (0.6, &|mass| {
            ExternalField::miyamoto_nagai(mass, 3.0 * kpc, 0.28 * kpc)
        }),
        (0.35, &|mass| ExternalField::nfw(mass, 16.0 * kpc)),
    ];
    parts.map(|(share, part)| {
        let of_one = External::new(&Fields::from_iter([part(1.0)]), g);
        let [x, ..] = of_one.acceleration([radius, 0.0, 0.0]);
        part(-share * speed * speed / radius / x)
    })
}
