//! The sweep: every kernel that may win, in every shape that fits.

use crate::bench::{Cases, Outcome, Protocol, Timed, measure, unless_broken};
use crate::bench_record::BenchRow;
use crate::studies::{Start, Statistic, catalogue};
use crate::verify::{cloud, edge_cases, judge, large_case};
use allpairs::backend::ForceError;
use allpairs::machine::Machine;
use allpairs::physics::{ForceLaw, Physics};
use allpairs::selection::{Place, eligible, fits};
use allpairs::tuning::{Wanted, may_win};
use allpairs::variants::Split;
use allpairs::variants::{Method, Shape, Variant};

/// Threads of a block that are tried.
const BLOCKS: [u32; 6] = [32, 64, 128, 256, 512, 1024];
/// Threads per target that are tried, of two-dimensional blocks.
const LENS: [u32; 4] = [1, 2, 4, 8];
/// Sources per thread that are tried, of two-dimensional blocks.
const LUFS: [u32; 6] = [32, 64, 128, 256, 512, 1024];

/// Fewest bodies that a kernel is judged by before it is tried with all.
const FEWEST: usize = 1024;
/// Ratio to the best time that a kernel may need at a quarter of the bodies to be tried with all.
const QUALIFIED: f64 = 1.5;
/// Number of the fastest that are timed again, to find the winner.
const FINALISTS: usize = 6;
/// Speedup over the untuned choice that a winner must have: less may be noise.
const WORTH: f64 = 1.01;

/// All that may win at a place, in all shapes that fit; or `only` one.
pub fn candidates(place: &Place, wanted: &Wanted, only: Option<&Variant>) -> Vec<Variant> {
    let Wanted {
        law,
        accuracy,
        bodies,
    } = *wanted;
    let mut candidates: Vec<Variant> = vec![];
    let asked = |v: &Variant| only.is_none_or(|only| shapeless(only) == shapeless(v));
    let fitting = catalogue()
        .all()
        .filter(|v| asked(v) && may_win(v, accuracy) && eligible(v, place, law).is_ok());
    for variant in fitting {
        for shape in shapes(variant) {
            let Some(shaped) = variant.shaped(shape) else {
                continue;
            };
            let known = candidates.iter().any(|c| c.method == shaped.method);
            if !known && fits(&shaped, place, law, bodies).is_ok() {
                candidates.push(shaped);
            }
        }
    }
    candidates
}

/// The method, but for its shape.
fn shapeless(variant: &Variant) -> Method {
    let mut method = variant.method.in_blocks_of(0);
    if let Some(split) = variant.split() {
        method = method.split(Split {
            len: 0,
            luf: 0,
            ..split
        });
    }
    method
}

fn shapes(variant: &Variant) -> Vec<Shape> {
    let blocks = match variant.method {
        Method::Kernel { .. } => BLOCKS.map(Some).to_vec(),
        _ => return vec![Shape::default()],
    };
    let block = |block| Shape {
        block,
        ..Shape::default()
    };
    let Some(_) = variant.split() else {
        return blocks.into_iter().map(block).collect();
    };
    let splits = LENS
        .iter()
        .flat_map(|&len| LUFS.iter().map(move |&luf| (len, luf)));
    let splits: Vec<(u32, u32)> = splits.collect();
    let split = |at: Option<u32>| {
        splits.iter().map(move |&(len, luf)| Shape {
            len: Some(len),
            luf: Some(luf),
            ..block(at)
        })
    };
    blocks.into_iter().flat_map(split).collect()
}

/// The name and, where it is not the variant's own, the shape.
pub fn label(variant: &Variant) -> String {
    let own = catalogue().find(variant.name).expect("listed");
    let Method::Kernel { block, .. } = variant.method else {
        return variant.name.to_owned();
    };
    let mut label = variant.name.to_owned();
    if own.method != variant.method {
        label += &format!(", block {block}");
        if let Some(split) = variant.split() {
            label += &format!(", len {}, luf {}", split.len, split.luf);
        }
    }
    label
}

/// Result of a sweep at a number of bodies.
#[derive(Debug)]
pub struct Found {
    /// The fastest that is right in all cases, with its final time.
    pub winner: Option<(Variant, f64)>,
    /// The final time of the untuned choice, if that is right and fast enough to be timed.
    pub untuned: Option<f64>,
    /// All that were timed with all the bodies, named by [`label`], fastest first.
    pub rows: Vec<BenchRow>,
    /// Variants that are wrong or do not run, and why: none of these may win.
    pub wrong: Vec<String>,
    /// Number of candidates.
    pub candidates: usize,
}

/// Finds the fastest, of all kernels or `only` one: who does well with a quarter of the bodies is
/// timed with all, the best again beside the `untuned` choice, and the fastest of those that passes
/// the whole table of cases in its shape wins.
///
/// # Errors
/// If the device fails.
pub fn sweep(
    machine: &Machine,
    wanted: &Wanted,
    budget: f64,
    untuned: &Variant,
    only: Option<&Variant>,
) -> Result<Found, ForceError> {
    let Wanted { law, bodies, .. } = *wanted;
    let all = candidates(machine.place(), wanted, only);
    let count = all.len();
    let is_untuned = |variant: &Variant| variant.method == untuned.method;
    let qualified = qualify(machine, law, bodies / 4, all, is_untuned)?;

    let mut cases = Cases::new(Start::Cube);
    let mut protocol = Protocol {
        timed: Timed::Force,
        repetitions: 3,
        statistic: Statistic::Median,
        budget,
    };
    let (mut timed, mut wrong) = (vec![], vec![]);
    let mut time = |variant: &Variant, protocol: &Protocol| {
        let outcome = measure(machine, variant, &mut cases, (bodies, law), protocol)?;
        Ok::<_, ForceError>(match outcome {
            Outcome::Timed(mut row) => {
                row.kernel = label(variant);
                Ok(row)
            }
            Outcome::Wrong(failure) => Err(format!("{}: {}", label(variant), failure.why)),
        })
    };
    for variant in qualified {
        match time(&variant, &protocol)? {
            // Times at fewer bodies than these do not tell.
            Ok(row) if row.asked.is_some() => {}
            Ok(row) => timed.push((variant, row)),
            Err(why) => wrong.push(why),
        }
    }
    timed.sort_by(|(_, a), (_, b)| a.seconds.total_cmp(&b.seconds));

    protocol.repetitions = 9;
    let mut finalists = vec![];
    let best = timed.iter().take(FINALISTS);
    let rest = timed.iter().skip(FINALISTS);
    for (variant, _) in best.chain(rest.filter(|(variant, _)| is_untuned(variant))) {
        match time(variant, &protocol)? {
            Ok(row) => finalists.push((*variant, row.seconds)),
            Err(why) => wrong.push(why),
        }
    }
    let untuned = finalists.iter().find(|(variant, _)| is_untuned(variant));
    let untuned = untuned.map(|(_, seconds)| *seconds);
    // Among what is about as fast, nothing is changed.
    let handicapped = |(variant, seconds): &(Variant, f64)| match is_untuned(variant) {
        true => seconds / WORTH,
        false => *seconds,
    };
    finalists.sort_by(|a, b| handicapped(a).total_cmp(&handicapped(b)));
    let mut winner = None;
    for (variant, seconds) in finalists {
        match flaw(machine, &variant, law)? {
            None => {
                winner = Some((variant, seconds));
                break;
            }
            Some(why) => wrong.push(format!("{}: {why}", label(&variant))),
        }
    }
    Ok(Found {
        winner,
        untuned,
        rows: timed.into_iter().map(|(_, row)| row).collect(),
        wrong,
        candidates: count,
    })
}

/// Selects candidates that are not much slower than the best with this number of bodies.
fn qualify(
    machine: &Machine,
    law: ForceLaw,
    bodies: usize,
    candidates: Vec<Variant>,
    always: impl Fn(&Variant) -> bool,
) -> Result<Vec<Variant>, ForceError> {
    if bodies < FEWEST {
        return Ok(candidates);
    }
    let physics = Physics {
        law,
        g: 1.0,
        softening: 0.05,
    };
    let start = cloud(bodies);
    let mut timed = vec![];
    for variant in candidates {
        let time = || -> Result<f64, ForceError> {
            let mut backend = machine.backend(&variant, &start, physics)?;
            backend.accelerate()?; // loads it
            Ok(backend
                .time_acceleration()?
                .min(backend.time_acceleration()?))
        };
        match time() {
            Ok(seconds) => timed.push((variant, seconds)),
            // Its registers leave no room for so large a block, say.
            Err(refusal) => drop(unless_broken(refusal)?),
        }
    }
    let best = timed.iter().map(|(_, s)| *s).fold(f64::INFINITY, f64::min);
    timed.retain(|(variant, seconds)| *seconds <= QUALIFIED * best || always(variant));
    Ok(timed.into_iter().map(|(variant, _)| variant).collect())
}

/// Describes what a variant gets wrong in the table of cases, if anything.
fn flaw(machine: &Machine, variant: &Variant, law: ForceLaw) -> Result<Option<String>, ForceError> {
    let block = match variant.method {
        Method::Kernel { block, .. } => block,
        _ => 256,
    };
    let mut cases = edge_cases(block as usize);
    let (large, steps) = large_case(FEWEST, law);
    cases.push(large);
    let verdict = judge(machine, variant, &cases, &[steps])?;
    let first = verdict.failures.into_iter().next();
    Ok(first.map(|(case, why)| format!("{case}: {why}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use allpairs::variants::preferred::{self, ForceAccuracy};

    fn wanted(accuracy: ForceAccuracy, bodies: usize) -> Wanted {
        Wanted {
            law: ForceLaw::Gravity,
            accuracy,
            bodies,
        }
    }

    #[test]
    fn candidates_fit_and_are_distinct() {
        let candidates = candidates(&Place::EMULATOR, &wanted(ForceAccuracy::Single, 4096), None);
        assert!(candidates.len() > 100, "{}", candidates.len());
        for (k, candidate) in candidates.iter().enumerate() {
            assert!(
                may_win(candidate, ForceAccuracy::Single),
                "{}",
                candidate.name
            );
            assert!(candidates[..k].iter().all(|c| c.method != candidate.method));
            let plan = fits(candidate, &Place::EMULATOR, ForceLaw::Gravity, 4096);
            assert_eq!(plan, Ok(()), "{}", label(candidate));
        }
        let named = |name: &str| candidates.iter().any(|c| label(c) == name);
        assert!(named("tiled") && named("tiled, block 64") && named("symmetric"));
        assert!(named("gtx980/2d-shared, block 128, len 2, luf 256"));
        let nobank = catalogue().find("gtx980/2d-nobank").expect("listed");
        let shapes = super::candidates(
            &Place::EMULATOR,
            &wanted(ForceAccuracy::Single, 4096),
            Some(nobank),
        );
        assert!(shapes.len() > 20 && shapes.iter().all(|c| c.name == nobank.name));
        let tuned = catalogue().find("gtx980/2d-tuned").expect("listed");
        let same = super::candidates(
            &Place::EMULATOR,
            &wanted(ForceAccuracy::Single, 4096),
            Some(tuned),
        );
        assert_eq!(same.len(), shapes.len());
        // 1024 threads of 8 targets would need more shared memory than there is.
        assert!(!named("symmetric, block 1024"));
        for name in [
            "venus/fp16-pure",
            "ecl/one-thread",
            "tensor-soft",
            "venus/naive",
        ] {
            assert!(candidates.iter().all(|c| c.name != name), "{name}");
        }
    }

    #[test]
    fn an_accuracy_has_its_candidates() {
        let names = |accuracy| -> Vec<&str> {
            let found = candidates(&Place::EMULATOR, &wanted(accuracy, 4096), None);
            found.iter().map(|variant| variant.name).collect()
        };
        let [fast, single, double] = ForceAccuracy::ALL.map(names);
        assert!(fast.contains(&"tensor") && fast.contains(&"symmetric"));
        assert!(!fast.contains(&"tensor-soft"), "right for every system");
        assert!(!single.contains(&"tensor") && single.contains(&"symmetric"));
        assert!(double.contains(&"symmetric-f64") && double.contains(&"double-single"));
        assert!(!double.contains(&"symmetric") && !single.contains(&"symmetric-f64"));
    }

    /// The fastest on this CPU is one that is right.
    #[test]
    fn a_cpu_has_a_winner() {
        let machine = Machine::new(Place::CPU);
        let untuned = catalogue()
            .find(preferred::cpu(ForceAccuracy::Single))
            .expect("listed");
        let found = sweep(
            &machine,
            &wanted(ForceAccuracy::Single, 600),
            5.0,
            untuned,
            None,
        )
        .unwrap();
        let (winner, seconds) = found.winner.expect("some are right");
        assert!(may_win(&winner, ForceAccuracy::Single) && seconds > 0.0);
        assert!(found.untuned.is_some_and(|untuned| seconds <= untuned));
        assert_eq!(found.wrong, [""; 0]);
        assert_eq!(found.rows.len(), found.candidates);
        assert!(found.rows.iter().all(|row| row.error < 1e-4));
    }
}
