//! Lines that a run prints about its test particles.

use allpairs::backend::ForceError;
use allpairs::recording::Recording;
use allpairs::simulation::Simulation;
use allpairs::test_particles::{Account, Kinds};

use crate::say;

/// How many bodies of each kind there are, and what a force costs, of so many `sources`; nothing where
/// all bodies have mass.
pub(super) fn header(kinds: Kinds, sources: usize) -> Option<String> {
    let Kinds { massive, massless } = kinds;
    if massless == 0 {
        return None;
    }
    let all = massive + massless;
    let cost = match sources < all {
        true => format!("{massive} × {all} interactions in a force"),
        false => format!(
            "{all} × {all} interactions in a force on this device, as if all had mass; --device cpu \
             computes {massive} × {all}"
        ),
    };
    Some(format!(
        "{}, {}: {cost}",
        say::counted(massive, "massive body", "massive bodies"),
        say::counted(massless, "test particle", "test particles"),
    ))
}

/// Energies of test particles at both ends, and their largest changes; nothing where there are none.
pub(super) fn lines(
    recording: &Recording,
    simulation: &mut Simulation,
) -> Result<Vec<String>, ForceError> {
    let Some((account, look)) = recording.test_particles(simulation)? else {
        return Ok(vec![]);
    };
    let physics = *simulation.physics();
    if Kinds::of(simulation.bodies()?, &physics).massless == 0 {
        return Ok(vec!["test particles: none are left".to_owned()]);
    }
    let (mean, spread) = account.at_start();
    let [mean, spread, now, spread_now] = [mean, spread, look.mean, look.spread].map(say::figure);
    let energies = format!(
        "test particles: energy per mass {mean} ± {spread} at the start, {now} ± {spread_now} at the end \
         (mean ± spread); the largest change of one is {} of its potential at the start",
        say::scientific(look.largest_change)
    );
    let external = simulation.external();
    let why = Account::no_jacobi(simulation.bodies()?, &physics, &external);
    let jacobi = match why {
        Some(why) => format!("no Jacobi constant: {why}"),
        None if look.jacobi_change.is_nan() => {
            "no Jacobi constant: there was none at the start".to_owned()
        }
        None => format!(
            "Jacobi constants: the largest change is {} of the potential at the start",
            say::scientific(look.jacobi_change)
        ),
    };
    Ok(vec![energies, jacobi])
}
