//! Cosmological snapshots: comoving numbers with factors of a and h, which are made physical at their time.
//! ```text
//! physical = number · a^p · h^q
//!            Gadget, GIZMO, Arepo   lengths p = 1, q = −1; masses q = −1; velocities p = ½
//!            SWIFT                  lengths p = 1
//! ```
//! Datasets may tell p and q themselves. Space does not expand here, so the expansion is a part of velocities in
//! Newton's law: v = v_peculiar + H (r − r_c), with r_c the centre of mass.

use std::str::FromStr;

use thiserror::Error;

use super::{Contents, Malformed, ReadFault};
use crate::settings::Setting;
use crate::units::{PARSEC, YEAR};

/// Velocities of the bodies of a cosmological snapshot that is made physical.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Velocities {
    /// Relative to the expansion of space, as programs for pictures show them.
    Peculiar,
    /// With the expansion of space about the centre of mass, as Newton's law needs them.
    Proper,
}

impl Velocities {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::Peculiar, Self::Proper];

    /// The name by which [`FromStr`] knows it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Peculiar => "peculiar",
            Self::Proper => "proper",
        }
    }
}

/// A name that is none of [`Velocities`].
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "velocities are `proper` (with the expansion of space about the centre of mass) or `peculiar` (without it), not \
     `{0}`"
)]
pub struct UnknownVelocities(String);

impl FromStr for Velocities {
    type Err = UnknownVelocities;

    fn from_str(name: &str) -> Result<Self, UnknownVelocities> {
        let found = Self::ALL
            .into_iter()
            .find(|known| known.name().eq_ignore_ascii_case(name));
        found.ok_or_else(|| UnknownVelocities(name.to_owned()))
    }
}

/// Powers of a and h.
pub(super) type Powers = [f64; 2];

/// Powers in the numbers of a file.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Scaling {
    pub(super) length: Powers,
    pub(super) speed: Powers,
    pub(super) mass: Powers,
}

impl Scaling {
    pub(super) const GADGET: Self = Self {
        length: [1.0, -1.0],
        speed: [0.5, 0.0],
        mass: [0.0, -1.0],
    };
    pub(super) const SWIFT: Self = Self {
        length: [1.0, 0.0],
        speed: [0.0, 0.0],
        mass: [0.0, 0.0],
    };
}

/// Numbers of a header that make a snapshot cosmological.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Told {
    pub(super) time: f64,
    /// SWIFT's `Scale-factor`; the time is then counted from the beginning.
    pub(super) scale_factor: Option<f64>,
    pub(super) redshift: Option<f64>,
    pub(super) h: Option<f64>,
    /// True or false if the file says whether numbers are comoving.
    pub(super) is_comoving: Option<bool>,
    pub(super) matter: Option<f64>,
    pub(super) lambda: Option<f64>,
}

/// The cosmology of a snapshot, as its file tells it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Cosmology {
    /// Place and value of the number by which it is cosmological.
    pub(super) because: (String, f64),
    pub(super) told: Told,
    pub(super) scaling: Scaling,
}

impl Cosmology {
    /// The fault that a snapshot is read as it is.
    pub(super) fn refusal(&self) -> ReadFault {
        let (place, value) = &self.because;
        let problem = format!(
            "it is {value}: the snapshot is cosmological. Space does not expand here, and numbers are taken as they are, \
             without factors of h and a: {} makes them physical at their time",
            Setting::Physical.with("proper")
        );
        Malformed::new(place.clone(), problem).into()
    }
}

/// A universe at one time, and the numbers in which a snapshot has it.
#[derive(Clone, Debug, PartialEq)]
struct Universe {
    a: f64,
    h: f64,
    matter: Option<f64>,
    lambda: Option<f64>,
    is_comoving: bool,
    /// True if the time of the file is a time, not a.
    has_time: bool,
}

impl Universe {
    /// The universe of a header.
    ///
    /// # Errors
    /// If its numbers contradict each other.
    fn of(cosmology: &Cosmology) -> Result<Self, ReadFault> {
        let (place, told) = (&cosmology.because.0, cosmology.told);
        let fault = |problem: String| ReadFault::from(Malformed::new(place.clone(), problem));
        let told_redshift = told.redshift.filter(|z| *z != 0.0);
        let seems_comoving = told_redshift.is_some()
            || told.redshift.is_none() && told.matter.is_some_and(|matter| matter > 0.0);
        let is_comoving = told.is_comoving.unwrap_or(seems_comoving);
        let of_redshift = told_redshift.map(|z| 1.0 / (1.0 + z));
        let a = match (is_comoving, told.scale_factor, of_redshift) {
            (false, ..) => 1.0,
            (true, Some(a), _) | (true, None, Some(a)) => a,
            (true, None, None) => told.time,
        };
        let h = told.h.filter(|h| *h != 0.0).unwrap_or(1.0);
        for (name, number, most) in [
            ("the scale factor", a, 10.0),
            ("the Hubble parameter", h, 1e3),
        ] {
            if !(number > 0.0 && number <= most) {
                return Err(fault(format!(
                    "{name} would be {number}: the snapshot is cosmological, and damaged"
                )));
            }
        }
        if is_comoving && told.scale_factor.is_none() && (told.time / a - 1.0).abs() > 1e-3 {
            return Err(fault(format!(
                "the time is {}, and should be the scale factor {a} of redshift {}: correct the one that is wrong",
                told.time,
                told.redshift.unwrap_or(0.0)
            )));
        }
        Ok(Self {
            a,
            h,
            matter: told.matter,
            lambda: told.lambda,
            is_comoving,
            has_time: !is_comoving || told.scale_factor.is_some(),
        })
    }

    fn factor(&self, [of_a, of_h]: Powers) -> f64 {
        self.a.powf(of_a) * self.h.powf(of_h)
    }

    /// Density of matter and of Λ, and the rest of curvature.
    fn densities(&self) -> Option<[f64; 3]> {
        let (matter, lambda) = self.matter.zip(self.lambda)?;
        (matter > 0.0).then_some([matter, lambda, 1.0 - matter - lambda])
    }

    /// H at this time in 1/s.
    fn hubble(&self) -> Option<f64> {
        let [matter, lambda, curvature] = self.densities()?;
        let squared = matter / self.a.powi(3) + curvature / self.a.powi(2) + lambda;
        (squared > 0.0).then(|| self.hubble_now() * squared.sqrt())
    }

    /// H today in 1/s: 100 h km/s in a Mpc.
    fn hubble_now(&self) -> f64 {
        self.h * 1e5 / (1e6 * PARSEC)
    }

    /// Time since the beginning in s, without radiation.
    ///
    /// With u = a^(3/2) it is 2/(3 H₀) ∫ du / √(Ωm + Ωk u^(2/3) + ΩΛ u²), by Simpson's rule.
    fn age(&self) -> Option<f64> {
        const INTERVALS: u32 = 4096;
        let [matter, lambda, curvature] = self.densities()?;
        let end = self.a.powf(1.5);
        let width = end / f64::from(INTERVALS);
        let mut sum = 0.0;
        for k in 0..=INTERVALS {
            let u = width * f64::from(k);
            let weight = match k {
                0 | INTERVALS => 1.0,
                k if k % 2 == 1 => 4.0,
                _ => 2.0,
            };
            let squared = matter + curvature * u.powf(2.0 / 3.0) + lambda * u * u;
            sum += weight / squared.sqrt();
        }
        let age = 2.0 / (3.0 * self.hubble_now()) * sum * width / 3.0;
        age.is_finite().then_some(age)
    }
}

/// Makes the numbers of a cosmological snapshot physical.
///
/// # Errors
/// If there is no number for the expansion that velocities shall have.
pub(super) fn make_physical(
    contents: &mut Contents,
    velocities: Velocities,
) -> Result<(), ReadFault> {
    let Some(cosmology) = contents.cosmology.take() else {
        let note = "the file tells no redshift and no h: its numbers are taken as they are";
        contents.notes.push(note.to_owned());
        return Ok(());
    };
    let (scaling, units) = (cosmology.scaling, contents.units);
    let cosmology = Universe::of(&cosmology)?;
    let [length, speed, mass] =
        [scaling.length, scaling.speed, scaling.mass].map(|powers| cosmology.factor(powers));
    let bodies = &mut contents.snapshot.bodies;
    let scale =
        |column: &mut Vec<f64>, factor: f64| column.iter_mut().for_each(|value| *value *= factor);
    for column in [&mut bodies.x, &mut bodies.y, &mut bodies.z] {
        scale(column, length);
    }
    for column in [&mut bodies.vx, &mut bodies.vy, &mut bodies.vz] {
        scale(column, speed);
    }
    scale(&mut bodies.mass, mass);

    let (a, h) = (cosmology.a, cosmology.h);
    let mut told = format!(
        "cosmological, with a = {a:?} (redshift {:.6}) and h = {h:?}: made physical, lengths by a factor of {length:.6}, \
         velocities {speed:.6}, masses {mass:.6}",
        1.0 / a - 1.0
    );
    let time = &mut contents.snapshot.time;
    if cosmology.has_time {
        // Lengths over velocities, of which both may have factors of h.
        *time *= h.powf(scaling.length[1] - scaling.speed[1]);
    } else {
        let age = cosmology.age();
        *time = age.zip(units).map_or(0.0, |(age, units)| age / units.time);
        told += &match (age, units) {
            (Some(age), Some(_)) => format!(
                "; its time is {:.6} Gyr since the beginning",
                age / (1e9 * YEAR)
            ),
            _ => "; its time is taken for 0, because units or densities are not told".to_owned(),
        };
    }
    let hubble = cosmology.hubble().filter(|_| cosmology.is_comoving);
    let in_words = |hubble: f64| format!("{:.6} km/s in a Mpc", hubble * PARSEC * 1e3);
    match (velocities, hubble, units) {
        (Velocities::Peculiar, Some(hubble), _) => {
            told += &format!(
                "; velocities are peculiar, without the expansion of space, {}, which Newton's law needs: {} adds it",
                in_words(hubble),
                Setting::Physical.with("proper")
            );
        }
        (Velocities::Proper, Some(hubble), Some(units)) => {
            let total = bodies.mass.iter().sum::<f64>();
            let rate = hubble * units.time;
            for (places, speeds) in [
                (&bodies.x, &mut bodies.vx),
                (&bodies.y, &mut bodies.vy),
                (&bodies.z, &mut bodies.vz),
            ] {
                let moment: f64 = places.iter().zip(&bodies.mass).map(|(x, m)| x * m).sum();
                let centre = if total > 0.0 { moment / total } else { 0.0 };
                for (speed, place) in speeds.iter_mut().zip(places) {
                    *speed += rate * (place - centre);
                }
            }
            told += &format!(
                "; velocities have the expansion of space about the centre of mass, {}",
                in_words(hubble)
            );
        }
        (Velocities::Proper, ..) if cosmology.is_comoving => {
            let problem = "proper velocities need units and densities of matter and Λ, which the file does not tell: \
                           take peculiar ones";
            return Err(Malformed::new("the header", problem).into());
        }
        _ => {}
    }
    bodies.check()?;
    contents.notes.push(told);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::Snapshot;
    use super::*;
    use crate::bodies::{Body, BodyKind};

    fn header(told: Told, scaling: Scaling) -> Cosmology {
        Cosmology {
            because: ("/Header/Redshift".to_owned(), 1.0),
            told,
            scaling,
        }
    }

    const TOLD: Told = Told {
        time: 0.5,
        scale_factor: None,
        redshift: Some(1.0),
        h: Some(0.7),
        is_comoving: None,
        matter: Some(0.3),
        lambda: Some(0.7),
    };

    fn contents(told: Told, scaling: Scaling, units: &str) -> Contents {
        let body = |x: f64, mass: f64| Body {
            position: [x, 2.0, -3.0],
            velocity: [4.0, 5.0, x],
            mass,
            id: 0,
            kind: BodyKind::Dark,
        };
        Contents {
            snapshot: Snapshot {
                time: told.time,
                bodies: [body(1.0, 3.0), body(5.0, 1.0)].into_iter().collect(),
            },
            units: units.parse().ok(),
            cosmology: Some(header(told, scaling)),
            ..Contents::default()
        }
    }

    fn near(found: f64, expected: f64) {
        assert!((found / expected - 1.0).abs() < 1e-9, "{found} {expected}");
    }

    #[test]
    fn numbers_lose_their_factors() {
        let mut found = contents(TOLD, Scaling::GADGET, "kpc");
        make_physical(&mut found, Velocities::Peculiar).unwrap();
        let bodies = &found.snapshot.bodies;
        near(bodies.x[1], 5.0 * 0.5 / 0.7);
        near(bodies.vy[0], 5.0 * 0.5_f64.sqrt());
        near(bodies.mass[0], 3.0 / 0.7);
        // 2/(3 H₀ √ΩΛ) asinh √(ΩΛ a³/Ωm), with 1/H₀ = 977.792 221 km/s kpc⁻¹ Gyr over 70.
        let age =
            2.0 / (3.0 * 0.7_f64.sqrt()) * (0.7_f64 * 0.125 / 0.3).sqrt().asinh() * 977.792_221_3
                / 70.0;
        near(found.snapshot.time, age / 0.977_792_221_3);
        assert!(found.notes[0].contains("5.75"), "{:?}", found.notes);
        assert!(found.notes[0].contains("peculiar"), "{:?}", found.notes);

        let swift = Told {
            time: 9.0,
            scale_factor: Some(0.5),
            ..TOLD
        };
        let mut found = contents(swift, Scaling::SWIFT, "kpc");
        make_physical(&mut found, Velocities::Peculiar).unwrap();
        let bodies = &found.snapshot.bodies;
        assert_eq!((bodies.x[1], bodies.vy[0], bodies.mass[0]), (2.5, 5.0, 3.0));
        assert_eq!(found.snapshot.time, 9.0);
    }

    #[test]
    fn space_expands_about_the_centre_of_mass() {
        let mut found = contents(TOLD, Scaling::GADGET, "kpc");
        make_physical(&mut found, Velocities::Proper).unwrap();
        let bodies = &found.snapshot.bodies;
        // The centre is at x = 2; 70 km/s in a Mpc times √(0.3 · 8 + 0.7).
        let rate = 0.07 * 3.1_f64.sqrt() * 0.5 / 0.7;
        near(bodies.vx[0], 4.0 * 0.5_f64.sqrt() - rate);
        near(bodies.vx[1], 4.0 * 0.5_f64.sqrt() + 3.0 * rate);
        near(bodies.vy[1], 5.0 * 0.5_f64.sqrt());

        let mut unknown = contents(TOLD, Scaling::GADGET, "?");
        assert!(make_physical(&mut unknown, Velocities::Proper).is_err());
        let mut unknown = contents(TOLD, Scaling::GADGET, "?");
        make_physical(&mut unknown, Velocities::Peculiar).unwrap();
        assert_eq!(unknown.snapshot.time, 0.0);
        assert!(
            unknown.notes[0].contains("taken for 0"),
            "{:?}",
            unknown.notes
        );
    }

    #[test]
    fn numbers_with_h_alone_keep_their_time() {
        let told = Told {
            time: 2.8,
            redshift: Some(0.0),
            ..TOLD
        };
        let mut found = contents(told, Scaling::GADGET, "kpc");
        make_physical(&mut found, Velocities::Proper).unwrap();
        near(found.snapshot.time, 4.0);
        near(found.snapshot.bodies.x[0], 1.0 / 0.7);
        assert_eq!(found.snapshot.bodies.vx[1], 4.0);
        let mut plain = Contents::default();
        make_physical(&mut plain, Velocities::Peculiar).unwrap();
        assert!(plain.notes[0].contains("no redshift"), "{:?}", plain.notes);
    }

    #[test]
    fn contradictions_are_refused() {
        for told in [
            Told { time: 0.6, ..TOLD },
            Told {
                redshift: Some(f64::NAN),
                ..TOLD
            },
            Told {
                redshift: Some(-2.0),
                ..TOLD
            },
            Told {
                h: Some(-0.7),
                ..TOLD
            },
            Told {
                h: Some(f64::NAN),
                ..TOLD
            },
            Told {
                redshift: None,
                time: 0.0,
                ..TOLD
            },
        ] {
            assert!(
                Universe::of(&header(told, Scaling::GADGET)).is_err(),
                "{told:?}"
            );
        }
        let alone = Told {
            redshift: None,
            is_comoving: Some(true),
            ..TOLD
        };
        assert_eq!(
            Universe::of(&header(alone, Scaling::GADGET)).unwrap().a,
            0.5
        );
    }
}
