//! Many systems at once.

use super::{DEFAULT_BODIES, GenerateError, Options, Parameter, Random, Values, find, room_for};
use crate::bodies::Bodies;
use crate::vectors::axes;

/// The number of bodies of each system where none is given: as many in eight as elsewhere in one.
pub(super) const DEFAULT_EACH: usize = DEFAULT_BODIES / 8;

/// Generator of the systems where none is named.
const DEFAULT_MODEL: &str = "plummer";

/// `systems` systems of equal size, each what the generator called [`Options::of`] makes (a Plummer
/// sphere where none is named), with the `options` for it, and a seed of its own.
///
/// **Which body is of which system:** a system's bodies lie together, and ids count them: with n
/// bodies each, system s has the bodies and the ids s·n to s·n + n − 1. The system is `id / n`,
/// rounded down, in any file and after any sorting. The first systems are the same however many
/// there are.
///
/// **Where:** on a cubic grid, filled row by row, at rest to one another; neighbours are `spacing`
/// times the radius apart that holds 9 of 10 of the bodies of the largest system. They do attract
/// each other: at 20 radii a neighbour's tide is some 10⁻⁴ of a system's own field at that radius,
/// and systems begin to fall towards each other after some hundred of their own dynamical times.
/// The centre of mass of all bodies rests at the origin. The units are the units of the systems.
///
/// # Errors
/// No systems, a spacing that is not above zero, systems of systems; what the model refuses; no
/// memory.
pub fn many_galaxies(
    systems: usize,
    spacing: f64,
    options: &Options,
) -> Result<Bodies, GenerateError> {
    let of = find(options.of.unwrap_or(DEFAULT_MODEL))?;
    if of.has_systems() {
        return Err(GenerateError::Nested);
    }
    let refuse = |parameter, value, range| {
        Err(GenerateError::OutOfRange {
            parameter,
            value,
            range,
        })
    };
    if systems == 0 {
        return refuse(Parameter::Systems, 0.0, "at least 1");
    }
    if !(spacing > 0.0 && spacing.is_finite()) {
        return refuse(Parameter::Spacing, spacing, "above 0 and finite");
    }
    let mut seeds = Random::new(options.seed);
    let mut next = || {
        let mut own = *options;
        (own.seed, own.of) = (seeds.next_seed(), None);
        of.generate(&own)
    };
    let first = next()?;
    let each = first.len();
    let total = systems.saturating_mul(each);
    let mut bodies = room_for(total)?;
    let mut radius = 0.0_f64;
    for system in 0..systems {
        let made = if system == 0 { first.clone() } else { next()? };
        radius = radius.max(radius_of_most(&made));
        for (index, body) in made.iter().enumerate() {
            let id = (system * each + index) as u64;
            bodies.push(crate::bodies::Body { id, ..body });
        }
    }
    // One body has no radius; it stands a unit of length from its neighbours then.
    let distance = spacing * if radius > 0.0 { radius } else { 1.0 };
    let side = (1..).find(|side: &usize| side.saturating_pow(3) >= systems);
    let side = side.expect("some cube is large enough");
    for system in 0..systems {
        let place = [system % side, system / side % side, system / (side * side)];
        let range = system * each..(system + 1) * each;
        let columns = [&mut bodies.x, &mut bodies.y, &mut bodies.z];
        for (column, place) in columns.into_iter().zip(place) {
            let offset = distance * place as f64;
            column[range.clone()].iter_mut().for_each(|x| *x += offset);
        }
    }
    bodies.to_centre_of_mass_frame();
    Ok(bodies)
}

/// Like [`many_galaxies`], but with the options of this generator and the options of its model.
pub(super) fn by_options(values: &Values) -> Result<Bodies, GenerateError> {
    let given = values.options();
    let of = find(given.of.unwrap_or(DEFAULT_MODEL))?;
    let mut inner = Options::new(given.seed);
    inner.of = Some(of.name);
    inner.masses = given.masses;
    let takes_bodies = of.parameters.iter().any(|(p, _)| *p == Parameter::Bodies);
    for parameter in Parameter::ALL {
        let value = match parameter {
            Parameter::Systems | Parameter::Spacing | Parameter::Bodies => continue,
            Parameter::Each if takes_bodies => {
                inner = inner.with(Parameter::Bodies, values.get(Parameter::Each));
                continue;
            }
            other => given.get(other),
        };
        if let Some(value) = value {
            inner = inner.with(parameter, value);
        }
    }
    let systems = values.get(Parameter::Systems) as usize;
    many_galaxies(systems, values.get(Parameter::Spacing), &inner)
}

/// The distance from the mean position within which 9 of 10 bodies lie.
fn radius_of_most(bodies: &Bodies) -> f64 {
    let n = bodies.len() as f64;
    let columns = [&bodies.x, &bodies.y, &bodies.z];
    let mean = columns.map(|column| column.iter().sum::<f64>() / n);
    let mut distances: Vec<f64> = bodies
        .iter()
        .map(|body| {
            let from_mean = axes(|k| body.position[k] - mean[k]);
            super::norm_squared(from_mean).sqrt()
        })
        .collect();
    distances.sort_by(f64::total_cmp);
    distances[(bodies.len() - 1) * 9 / 10]
}

#[cfg(test)]
mod tests {
    use super::super::{MANY, plummer, tests::assert_centred};
    use super::*;

    fn each(n: usize, seed: u64) -> Options {
        Options::new(seed).with(Parameter::Bodies, n as f64)
    }

    #[test]
    fn each_system_is_the_model_and_can_be_told_by_its_ids() {
        let (systems, n) = (11, 60);
        let bodies = many_galaxies(systems, 20.0, &each(n, 5)).unwrap();
        assert_eq!(bodies.id, Vec::from_iter(0..(systems * n) as u64));
        assert_centred(&bodies, 1e3);
        let mut seeds = Random::new(5);
        let mut centres = vec![];
        for system in 0..systems {
            let alone = plummer(n, seeds.next_seed()).unwrap();
            let shift = |i: usize| {
                let (body, own) = (bodies.body(system * n + i), alone.body(i));
                assert_eq!(body.mass, own.mass);
                // But for the rounding of the centre's velocity, which is taken away.
                let off = axes(|k| (body.velocity[k] - own.velocity[k]).abs());
                assert!(off.iter().all(|off| *off <= 1e-15), "{off:?}");
                axes(|k| body.position[k] - own.position[k])
            };
            let centre = shift(0);
            for i in 1..n {
                let same = (0..3).all(|k| (shift(i)[k] - centre[k]).abs() <= 1e-11);
                assert!(same, "system {system}, body {i}");
            }
            centres.push(centre);
        }
        // Systems are 20 radii apart: no two are nearer, and some are that near.
        let mut nearest = f64::INFINITY;
        for (i, a) in centres.iter().enumerate() {
            for b in &centres[..i] {
                let d = axes(|k| a[k] - b[k]);
                nearest = nearest.min(super::super::norm_squared(d).sqrt());
            }
        }
        assert!((20.0..100.0).contains(&nearest), "{nearest}");
        // The first are the same however many there are.
        let fewer = many_galaxies(2, 20.0, &each(n, 5)).unwrap();
        for (a, b) in fewer.vx.iter().zip(&bodies.vx) {
            assert!((a - b).abs() <= 1e-15);
        }
    }

    #[test]
    fn any_other_model_will_do() {
        let many = find(MANY).unwrap();
        let options = |of: &str| {
            let options = Options::new(1).of(of).unwrap();
            options.with(Parameter::Systems, 3.0)
        };
        for of in super::super::GENERATORS {
            let takes_bodies = of.parameters.iter().any(|(p, _)| *p == Parameter::Bodies);
            let mut options = options(of.name);
            if takes_bodies {
                options = options.with(Parameter::Each, 50.0);
            }
            let made = many.generate(&options);
            if of.has_systems() {
                assert_eq!(made, Err(GenerateError::Nested));
                continue;
            }
            let made = made.unwrap();
            assert!(
                made.check().is_ok() && made.len().is_multiple_of(3),
                "{}",
                of.name
            );
            assert_eq!(many.units_of(&options), of.units);
        }
        // Options of the model are the model's.
        let king = options("king").with(Parameter::Each, 20.0);
        assert!(many.generate(&king.with(Parameter::W0, 3.0)).is_ok());
        let refused = |options: &Options, parameter| {
            let error = many.generate(options).unwrap_err();
            let named = match error {
                GenerateError::NotAParameter { parameter, .. }
                | GenerateError::OutOfRange { parameter, .. } => parameter,
                other => panic!("{other}"),
            };
            assert_eq!(named, parameter);
        };
        refused(&king.with(Parameter::ToomreQ, 3.0), Parameter::ToomreQ);
        refused(&king.with(Parameter::Bodies, 3.0), Parameter::Bodies);
        refused(&king.with(Parameter::Systems, 0.0), Parameter::Systems);
        refused(&king.with(Parameter::Systems, 1.5), Parameter::Systems);
        refused(&king.with(Parameter::Spacing, 0.0), Parameter::Spacing);
        let eight = options("figure-eight").with(Parameter::Each, 9.0);
        refused(&eight, Parameter::Each);
        let plummer = Options::new(0).of("king").unwrap();
        let one = find("plummer").unwrap().generate(&plummer);
        assert_eq!(one, Err(GenerateError::NoSystems("plummer")));
        let memory = many_galaxies(usize::MAX, 1.0, &each(2, 0));
        assert!(memory.is_err_and(|error| error.is_of_memory()));
    }
}
