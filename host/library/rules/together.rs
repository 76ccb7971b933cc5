//! The table of features and places for people, made from the rules.

use super::{Needs, Offer, Processor, refusals};
use crate::integrator::{Integrator, TimeSteps};
use crate::physics::ForceLaw;
use crate::variants::VARIANTS;

/// A feature of a run.
struct Feature {
    name: &'static str,
    /// Features of a group exclude each other, or are special cases of each other.
    group: &'static str,
    add: fn(Needs) -> Needs,
}

const fn feature(name: &'static str, group: &'static str, add: fn(Needs) -> Needs) -> Feature {
    Feature { name, group, add }
}

fn blocks(needs: Needs, neighbours: bool) -> Needs {
    let needs = needs.neighbours(neighbours);
    needs.steps(Integrator::Hermite4, TimeSteps::Blocks, Some(0.02), None)
}

fn fixed(needs: Needs, integrator: Integrator) -> Needs {
    needs.steps(integrator, TimeSteps::Shared, None, None)
}

fn in_field(mut needs: Needs) -> Needs {
    needs.fields.any = true;
    needs.fields.moves_origin = true;
    needs
}

const FEATURES: &[Feature] = &[
    feature("leapfrog and other kicks", "steps", |n| {
        fixed(n, Integrator::Leapfrog)
    }),
    feature("hermite4", "steps", |n| fixed(n, Integrator::Hermite4)),
    feature("hermite6, one step for all bodies", "steps", |n| {
        fixed(n, Integrator::Hermite6)
    }),
    feature("block time steps", "steps", |n| blocks(n, false)),
    feature("neighbour scheme", "steps", |n| blocks(n, true)),
    feature("groups in block time steps", "steps", |n| {
        blocks(n, false).with_groups()
    }),
    feature("independent systems", "systems", |n| n.systems(2)),
    feature("law attract-repel", "law", |n| Needs {
        law: ForceLaw::ATTRACT_REPEL,
        ..n
    }),
    feature("external fields", "fields", in_field),
    feature("field tide", "fields", |n| {
        let mut n = in_field(n);
        (n.fields.of_velocities, n.fields.turning) = (Some("tide"), Some("tide"));
        n
    }),
    feature("field 1pn", "fields", |mut n| {
        (n.fields.any, n.fields.of_velocities) = (true, Some("1pn"));
        n.fields.relativity = Some(0);
        n
    }),
    feature("field of your own", "fields", |n| {
        let mut n = in_field(n);
        n.fields.of_host = Some(1);
        n
    }),
    feature("orbit of the origin", "frame", |n| {
        let mut n = in_field(n);
        n.fields.orbit = true;
        n
    }),
    feature("collisions", "encounters", |mut n| {
        (n.encounters.collide, n.encounters.merge) = (true, true);
        n
    }),
    feature("escapes", "encounters", |mut n| {
        (n.encounters.escape, n.encounters.remove) = (true, true);
        n
    }),
];

/// Places of the table: name, processor, devices and processes.
const PLACES: [(&str, Processor, usize, usize); 5] = [
    ("CPU", Processor::Cpu, 1, 1),
    ("a GPU", Processor::Gpu, 1, 1),
    ("several GPUs", Processor::Gpu, 2, 1),
    ("ranks on CPUs", Processor::Cpu, 1, 2),
    ("ranks on GPUs", Processor::Gpu, 2, 2),
];

/// The places with a kernel that meets these needs.
fn places(needs: &Needs) -> [bool; PLACES.len()] {
    PLACES.map(|(_, processor, devices, ranks)| {
        VARIANTS.iter().any(|kernel| {
            let offer = Offer {
                processor,
                devices,
                ranks,
                kernel: Some(kernel),
                is_named: true,
            };
            refusals(needs, &offer).is_empty()
        })
    })
}

/// Restrictions of a feature together with others: features that no place computes with it, and places
/// for those that fewer places compute with it than either alone.
fn restrictions(feature: &Feature, plain: &Needs) -> String {
    let alone = places(&(feature.add)(*plain));
    let others = FEATURES.iter().filter(|other| other.group != feature.group);
    let (mut never, mut sometimes) = (vec![], vec![]);
    for other in others {
        let apart = places(&(other.add)(*plain));
        let both = places(&(other.add)((feature.add)(*plain)));
        let possible = |place: &usize| alone[*place] && apart[*place];
        let runs: Vec<&str> = (0..PLACES.len())
            .filter(|&k| both[k])
            .map(|k| PLACES[k].0)
            .collect();
        match (0..PLACES.len()).filter(possible).count() {
            _ if runs.is_empty() => never.push(other.name.to_owned()),
            most if runs.len() < most => {
                sometimes.push(format!("{}: {}", other.name, runs.join(", ")))
            }
            _ => {}
        }
    }
    let never = (!never.is_empty()).then(|| format!("not with {}", never.join(", ")));
    let parts: Vec<String> = never.into_iter().chain(sometimes).collect();
    parts.join("; ")
}

/// The table of what goes together, in Markdown: each feature, the places that compute it, and its
/// restrictions together with other features.
pub fn together() -> String {
    let plain = Needs::new(ForceLaw::Gravity);
    let head = [
        &["feature"][..],
        &PLACES.map(|place| place.0),
        &["together with others"],
    ]
    .concat();
    let mut rows = vec![head.into_iter().map(str::to_owned).collect::<Vec<String>>()];
    for feature in FEATURES {
        let runs = places(&(feature.add)(plain)).map(|runs| if runs { "yes" } else { "no" });
        let mut row = vec![feature.name.to_owned()];
        row.extend(runs.map(str::to_owned));
        row.push(restrictions(feature, &plain));
        rows.push(row);
    }
    let line = |row: &Vec<String>| format!("| {} |\n", row.join(" | "));
    let rule = format!("|{}\n", "---|".repeat(PLACES.len() + 2));
    let body: String = rows[1..].iter().map(line).collect();
    line(&rows[0]) + &rule + &body
}
