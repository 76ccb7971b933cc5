//! The table: every combination that is refused.

use std::fmt;

use gpu_kernels::entries::Work;
use gpu_kernels::numerics::Precision;
use gpu_kernels::schedule::block_steps::DigitsName;

use super::{Needs, Offer, Processor, Rule};
use crate::physics::ForceLaw;
use crate::refusals::Change::{self, Add, Drop, DropValue, OneProcess, Set};
use crate::refusals::Remedy;
use crate::settings::Setting;
use crate::variants::{CpuPath, Method, Variant};

const fn rule(
    sides: [&'static str; 2],
    applies: fn(&Needs, &Offer<'_>) -> bool,
    reason: fn(&Needs, &Offer<'_>) -> String,
    remedies: fn(&Needs, &Offer<'_>) -> Vec<Remedy>,
) -> Rule {
    Rule {
        sides,
        applies,
        reason,
        remedies,
    }
}

/// Pairs and multiples that are followed apart: the first side of all rules about them alone.
pub(super) const GROUPS: &str = "groups";

/// Every combination that is refused: needs that collide with each other, then needs that a place does not
/// meet, then needs that a kernel does not meet.
pub const RULES: &[Rule] = &[
    rule(
        ["steps that vary", "integrators without jerks"],
        |n, _| n.is_adaptive && n.takes_kicks(),
        |n, _| {
            let needing = needing_jerks(n);
            let name = n.integrator_name();
            format!("{needing} an integrator with jerks, not {name}")
        },
        |n, _| {
            vec![
                one(Set(Setting::Integrator, "hermite4")),
                one(Set(Setting::Integrator, "hermite6")),
                fixed_steps(n),
            ]
        },
    ),
    rule(
        ["steps that vary", "a number of steps"],
        |n, _| n.is_adaptive && n.is_counted,
        |n, _| {
            let steps = match n.takes_blocks() {
                true => "block time steps".to_owned(),
                false => format!("steps by {}", Setting::Eta),
            };
            let until = Setting::Until;
            format!("{steps} need {until}, the time to reach: their number is not known before")
        },
        |n, _| {
            let timed = Remedy(vec![Drop(Setting::Steps), Add(Setting::Until)]);
            vec![timed, fixed_steps(n)]
        },
    ),
    rule(
        ["neighbour schemes", "one step for all bodies"],
        |n, _| n.neighbours && n.integrator.is_some() && !n.takes_blocks(),
        |_, _| {
            let [neighbours, blocks] = [Setting::Neighbours, Setting::BlockSteps];
            format!(
                "{neighbours} needs {blocks}, because each force is the force of all bodies where all take one step"
            )
        },
        |_, _| {
            vec![
                one(Add(Setting::BlockSteps)),
                one(Drop(Setting::Neighbours)),
            ]
        },
    ),
    rule(
        ["neighbour schemes", "integrators other than hermite4"],
        |n, _| n.neighbours && n.derivatives().is_some_and(|derivatives| derivatives != 1),
        |n, _| {
            let hermite4 = Setting::Integrator.with("hermite4");
            let name = n.integrator_name();
            format!("{} needs {hermite4}, not {name}", Setting::Neighbours)
        },
        |_, _| {
            let hermite4 = one(Set(Setting::Integrator, "hermite4"));
            vec![hermite4, one(Drop(Setting::Neighbours))]
        },
    ),
    rule(
        [
            "neighbour schemes",
            "force laws other than gravity and unit",
        ],
        |n, _| n.neighbours && n.law != ForceLaw::Gravity && n.law != ForceLaw::Unit,
        |n, _| {
            format!(
                "a neighbour scheme does not compute the force law {}",
                n.law
            )
        },
        |_, _| vec![one(Drop(Setting::Neighbours))],
    ),
    rule(
        ["neighbour schemes", "field 1pn"],
        |n, _| n.neighbours && n.fields.relativity.is_some(),
        |_, _| "a neighbour scheme does not compute the post-Newtonian term".to_owned(),
        |_, _| vec![one(Drop(Setting::Neighbours)), without_1pn()],
    ),
    rule(
        ["neighbour schemes", "independent systems"],
        |n, _| n.neighbours && n.systems > 1,
        |n, _| {
            format!(
                "a neighbour scheme is computed for one system, not for {}",
                n.systems
            )
        },
        |_, o| vec![one(Drop(Setting::Neighbours)), one_system(o)],
    ),
    rule(
        [
            "Hermite's schemes and block time steps",
            "independent systems",
        ],
        |n, _| n.takes_jerks() && n.systems > 1,
        |n, _| {
            let steps = match n.takes_blocks() {
                true => "block time steps are".to_owned(),
                false => format!("steps of {} are", n.integrator_name()),
            };
            format!(
                "{steps} taken by one system, not by {} independent systems",
                n.systems
            )
        },
        |n, o| vec![one_system(o), kicks(n)],
    ),
    rule(
        ["external fields", "independent systems"],
        |n, o| n.fields.any && (n.systems > 1 || o.kernel.is_some_and(is_of_systems)),
        |n, o| match o.kernel {
            Some(kernel) if n.systems == 1 => {
                let name = kernel.name;
                format!(
                    "kernel `{name}` computes independent systems, which feel no external fields"
                )
            }
            _ => format!(
                "external fields act on one system, not on {} independent ones",
                n.systems
            ),
        },
        |n, o| vec![Remedy(without_fields(n)), one_system(o)],
    ),
    rule(
        ["encounters", "independent systems"],
        |n, _| (n.encounters.collide || n.encounters.escape) && n.systems > 1,
        |n, _| {
            let systems = n.systems;
            format!("encounters are looked for in one system, not in {systems} independent ones")
        },
        |n, o| vec![Remedy(without_encounters(n)), one_system(o)],
    ),
    rule(
        [
            "bodies that disappear",
            "field 1pn of another body than the first",
        ],
        |n, _| {
            let disappear = n.encounters.merge || n.encounters.remove;
            disappear && n.fields.relativity.is_some_and(|body| body > 0)
        },
        |n, _| {
            let body = n.fields.relativity.unwrap_or_default();
            format!(
                "bodies may disappear, and then body {body}, which has the field 1pn, may get another number \
                 (put it first to keep its number)"
            )
        },
        |n, _| {
            let merge = n
                .encounters
                .merge
                .then_some(Set(Setting::OnCollision, "log"));
            let remove = n.encounters.remove.then_some(Set(Setting::OnEscape, "log"));
            let stay = merge.into_iter().chain(remove).collect();
            vec![Remedy(stay), without_1pn()]
        },
    ),
    rule(
        [
            "fields of velocities (tide, 1pn)",
            "integrators without jerks",
        ],
        |n, _| n.fields.of_velocities.is_some() && n.takes_kicks(),
        |n, _| {
            let (field, name) = (
                n.fields.of_velocities.unwrap_or_default(),
                n.integrator_name(),
            );
            format!("the field {field} depends on velocities, which {name} cannot follow")
        },
        |n, _| {
            let without = n
                .fields
                .of_velocities
                .map(|name| one(DropValue(Setting::Field, name)));
            let hermite = ["hermite4", "hermite6"].map(|name| one(Set(Setting::Integrator, name)));
            hermite.into_iter().chain(without).collect()
        },
    ),
    rule(
        [
            "fields of your own",
            "integrators with derivatives that they lack",
        ],
        |n, _| match (n.fields.of_host, n.derivatives()) {
            (Some(known), Some(needed)) => known < needed,
            _ => false,
        },
        |n, _| {
            let name = n.integrator_name();
            format!(
                "a field of your own lacks a derivative that {name} needs (a `jerk` is for hermite4)"
            )
        },
        |n, _| {
            let hermite4 =
                (n.fields.of_host == Some(1)).then(|| one(Set(Setting::Integrator, "hermite4")));
            [kicks(n), Remedy(without_fields(n))]
                .into_iter()
                .chain(hermite4)
                .collect()
        },
    ),
    rule(
        ["orbit of the origin", "field tide"],
        |n, _| n.fields.orbit && n.fields.turning.is_some(),
        |n, _| {
            let field = n.fields.turning.unwrap_or_default();
            format!(
                "the field {field} turns with a circular orbit, and the frame of {} does not turn",
                Setting::Orbit
            )
        },
        |n, _| {
            let field = n.fields.turning.unwrap_or_default();
            vec![
                one(Drop(Setting::Orbit)),
                one(DropValue(Setting::Field, field)),
            ]
        },
    ),
    rule(
        ["orbit of the origin", "no field to fall in"],
        |n, _| n.fields.orbit && !n.fields.moves_origin,
        |_, _| "an orbit needs a field to fall in, such as mwpotential2014".to_owned(),
        |_, _| vec![one(Add(Setting::Field)), one(Drop(Setting::Orbit))],
    ),
    rule(
        ["neighbour schemes", "double precision on a GPU"],
        |n, o| {
            let in_double = n.digits == Some(DigitsName::Double) && n.fields.relativity.is_none();
            // Next to groups the host takes the steps, with forces in f64.
            n.neighbours && o.on_device() && in_double && !n.groups
        },
        |_, _| {
            format!(
                "{} on a GPU computes pairs in f32: too few digits for {}, for {} below 0.01, and for bodies that are not \
                 softened if pairs are not followed apart",
                Setting::Neighbours,
                Setting::Accuracy.with("double"),
                Setting::Eta
            )
        },
        |_, o| vec![on_cpu(o), one(Drop(Setting::Neighbours))],
    ),
    rule(
        [GROUPS, "one step for all bodies"],
        |n, _| n.must_have_groups && (!n.takes_blocks() || n.own_integrator),
        |_, _| groups_need(Setting::BlockSteps),
        |n, _| {
            let blocks = (!n.own_integrator).then(|| one(Add(Setting::BlockSteps)));
            blocks.into_iter().chain([without_groups()]).collect()
        },
    ),
    rule(
        [GROUPS, "force laws other than gravity"],
        |n, _| n.must_have_groups && n.law != ForceLaw::Gravity,
        |_, _| groups_need(Setting::Law.with("gravity")),
        |_, _| vec![without_groups()],
    ),
    rule(
        [GROUPS, "fields that depend on velocities"],
        |n, _| n.must_have_groups && n.fields.of_velocities.is_some(),
        |n, _| {
            let field = n.fields.of_velocities.unwrap_or_default();
            let depends = format!("bodies without the field {field}, which depends on velocities");
            groups_need(depends)
        },
        |n, _| {
            let field = n.fields.of_velocities.unwrap_or_default();
            vec![one(DropValue(Setting::Field, field)), without_groups()]
        },
    ),
    rule(
        [GROUPS, "independent systems"],
        |n, _| n.must_have_groups && n.systems > 1,
        |n, _| groups_need(format!("one system, not {}", n.systems)),
        |_, o| vec![one_system(o), without_groups()],
    ),
    rule(
        [GROUPS, "forces in f32 on a CPU"],
        |n, o| {
            let is_f64 = |kernel: &Variant| match kernel.method {
                Method::Cpu(CpuPath { precision, .. }) => precision == Precision::F64,
                Method::Kernel { .. } => true,
                _ => false,
            };
            let could_have = n.law == ForceLaw::Gravity && n.takes_blocks() && n.takes_jerks();
            n.must_have_groups && could_have && !o.kernel.is_none_or(is_f64)
        },
        |_, _| groups_need("forces in f64 on the CPU, or a GPU"),
        |_, o| {
            let double = match o.is_named {
                true => Drop(Setting::Kernel),
                false => Set(Setting::Accuracy, "double"),
            };
            vec![one(double), without_groups()]
        },
    ),
    rule(
        [GROUPS, "neighbour schemes in f32 on a GPU"],
        |n, o| {
            let in_f32 = n.digits != Some(DigitsName::Double);
            n.must_have_groups && n.neighbours && o.on_device() && in_f32
        },
        |_, _| {
            let [neighbours, double] = [
                Setting::Neighbours.to_string(),
                Setting::Accuracy.with("double"),
            ];
            groups_need(format!("steps without {neighbours}, or {double}"))
        },
        |_, _| {
            vec![
                one(Set(Setting::Accuracy, "double")),
                one(Drop(Setting::Neighbours)),
                without_groups(),
            ]
        },
    ),
    rule(
        ["hermite6 without block time steps", "a GPU"],
        |n, o| n.derivatives() == Some(2) && !n.takes_blocks() && o.on_device(),
        |n, _| {
            let name = n.integrator_name();
            format!("{name} on a GPU takes block time steps alone, not one step for all bodies")
        },
        |_, o| {
            let hermite4 = one(Set(Setting::Integrator, "hermite4"));
            vec![one(Add(Setting::BlockSteps)), on_cpu(o), hermite4]
        },
    ),
    rule(
        ["block time steps on a GPU", "force laws other than gravity"],
        |n, o| n.takes_blocks() && o.on_device() && n.law != ForceLaw::Gravity,
        |n, _| {
            format!(
                "a GPU takes block time steps under gravity alone, not under the law {}",
                n.law
            )
        },
        |n, o| vec![on_cpu(o), Remedy(without_blocks(n))],
    ),
    rule(
        ["block time steps in the field 1pn", "several GPUs"],
        |n, o| {
            let in_blocks = n.takes_blocks() && n.fields.relativity.is_some();
            in_blocks && o.on_device() && o.is_shared()
        },
        |_, _| {
            "block time steps with the field 1pn are taken by one device of one process".to_owned()
        },
        |n, o| vec![one(one_device(o)), Remedy(without_blocks(n)), without_1pn()],
    ),
    rule(
        ["collisions in block time steps", "several GPUs"],
        |n, o| {
            // Next to groups the host takes the steps, and knows all paths.
            let in_blocks = n.encounters.collide && n.takes_blocks() && !n.groups;
            in_blocks && o.on_device() && o.is_shared()
        },
        |_, _| {
            "collisions in block time steps without groups are looked for on one GPU of one process"
                .to_owned()
        },
        |n, o| {
            let (ranked, blocks) = (one(one_device(o)), Remedy(without_blocks(n)));
            vec![ranked, on_cpu(o), blocks, one(Drop(Setting::Radii))]
        },
    ),
    rule(
        ["fields of your own", "a GPU"],
        |n, o| n.fields.of_host.is_some() && o.on_device(),
        |_, _| "a field of your own is computed by the CPU alone".to_owned(),
        |n, o| vec![on_cpu(o), Remedy(without_fields(n))],
    ),
    rule(
        ["fields of your own", "several processes"],
        |n, o| n.fields.of_host.is_some() && o.ranks > 1,
        |_, _| "a field of your own is computed by one process alone".to_owned(),
        |n, _| vec![one(OneProcess), Remedy(without_fields(n))],
    ),
    rule(
        ["kernels of a GPU", "the CPU"],
        |_, o| !o.on_device() && o.kernel.is_some_and(|kernel| !is_cpu_code(kernel)),
        |_, o| format!("kernel `{}` is GPU code", name(o)),
        |_, o| {
            let devices = ["cuda", "emulator"].map(|name| one(Set(Setting::Device, name)));
            devices.into_iter().chain(without_kernel(o)).collect()
        },
    ),
    rule(
        ["kernels of the CPU", "a GPU"],
        |_, o| o.on_device() && o.kernel.is_some_and(is_cpu_code),
        |_, o| format!("kernel `{}` is CPU code", name(o)),
        |_, o| {
            let cpu = one(Set(Setting::Device, "cpu"));
            [cpu].into_iter().chain(without_kernel(o)).collect()
        },
    ),
    rule(
        ["kernels", "force laws that they do not compute"],
        |n, o| {
            // A neighbour scheme refuses the law by itself, and no kernel was chosen for both.
            let serves = o.is_named || o.on_device() || !n.neighbours;
            serves && o.kernel.is_some_and(|kernel| !kernel.computes(n.law))
        },
        |n, o| match o.is_named {
            true => format!(
                "kernel `{}` does not compute the force law {}, which `reference` does",
                name(o),
                n.law
            ),
            false => {
                let shared = if o.is_shared() {
                    " for several devices"
                } else {
                    ""
                };
                let systems = if n.systems > 1 {
                    " for independent systems"
                } else {
                    ""
                };
                let jerks = if n.takes_jerks() { " with jerks" } else { "" };
                format!(
                    "no kernel of a GPU{shared}{systems}{jerks} computes the force law {}",
                    n.law
                )
            }
        },
        |n, o| {
            let mut plain = vec![];
            if n.takes_jerks() {
                plain.extend(kicks(n).0);
            }
            if o.is_shared() {
                plain.push(one_device(o));
            }
            if n.systems > 1 {
                plain.extend(one_system(o).0);
            }
            let kernel = o.is_named.then_some(Drop(Setting::Kernel));
            let with = |changes: Vec<Change>| Remedy(kernel.into_iter().chain(changes).collect());
            // Of all CPU code `reference` alone computes every law, in one process.
            let process = (o.ranks > 1).then_some(Change::OneProcess);
            let cpu = Remedy(on_cpu(o).0.into_iter().chain(process).collect());
            match (o.on_device(), plain.is_empty()) {
                (false, _) => vec![with(process.into_iter().collect())],
                (true, true) if o.is_named => vec![with(vec![]), cpu],
                (true, true) => vec![cpu],
                (true, false) => vec![cpu, with(plain)],
            }
        },
    ),
    rule(
        ["kernels of one system", "independent systems"],
        |n, o| {
            // Steps with jerks refuse systems by themselves, and no kernel was chosen for both.
            let serves = o.is_named || !n.takes_jerks();
            n.systems > 1 && serves && o.kernel.is_some_and(is_of_one_system)
        },
        |n, o| {
            format!(
                "kernel `{}` computes one system, not {}",
                name(o),
                n.systems
            )
        },
        |_, o| {
            without_kernel(o)
                .into_iter()
                .chain([one_system(o)])
                .collect()
        },
    ),
    rule(
        ["kernels of one device", "several GPUs or processes"],
        |_, o| {
            let is_single = |kernel: &Variant| {
                is_of_one_system(kernel)
                    && !(kernel.can_be_shared() && (o.ranks == 1 || kernel.split().is_none()))
            };
            o.devices > 1 && o.kernel.is_some_and(is_single)
        },
        |_, o| {
            format!(
                "kernel `{}` computes one system on one device; symmetric, symmetric-deterministic, symmetric-f64, tensor \
                 and hermite-f64 are kernels that several devices share",
                name(o)
            )
        },
        |_, o| {
            without_kernel(o)
                .into_iter()
                .chain([one(one_device(o))])
                .collect()
        },
    ),
    rule(
        ["the kernel reference", "several processes"],
        |_, o| {
            o.ranks > 1
                && o.kernel
                    .is_some_and(|kernel| kernel.method == Method::Reference)
        },
        |_, o| format!("kernel `{}` is run by one process alone", name(o)),
        |_, o| {
            without_kernel(o)
                .into_iter()
                .chain([one(OneProcess)])
                .collect()
        },
    ),
    rule(
        ["kernels without jerks", "Hermite's schemes"],
        |n, o| {
            n.takes_jerks()
                && n.systems == 1
                && o.kernel.is_some_and(|kernel| !kernel.gives_jerks())
        },
        |n, o| {
            let integrator = n.integrator_name();
            match o.is_named {
                true => format!(
                    "kernel `{}` computes no jerks, which {integrator} needs",
                    name(o)
                ),
                false => format!("no kernel of a GPU computes jerks under the law {}", n.law),
            }
        },
        |n, o| {
            without_kernel(o)
                .into_iter()
                .chain([on_cpu(o), kicks(n)])
                .collect()
        },
    ),
    rule(
        ["block time steps on a GPU", "kernels without f64 state"],
        |n, o| {
            let is_single =
                |kernel: &Variant| !is_cpu_code(kernel) && kernel.stored() != Precision::F64;
            n.takes_blocks()
                && o.on_device()
                && o.kernel
                    .is_some_and(|kernel| kernel.gives_jerks() && is_single(kernel))
        },
        |_, o| {
            format!(
                "block time steps on a GPU keep positions in f64, and kernel `{}` does not",
                name(o)
            )
        },
        |n, o| {
            let blocks = Remedy(without_blocks(n));
            without_kernel(o)
                .into_iter()
                .chain([on_cpu(o), blocks])
                .collect()
        },
    ),
    rule(
        ["field 1pn on a GPU", "kernels in single precision"],
        |n, o| {
            let lacks_term = |kernel: &Variant| {
                !is_cpu_code(kernel)
                    && kernel.gives_jerks()
                    && kernel.any_force().partner(Work::Relativity).is_none()
            };
            n.fields.relativity.is_some() && o.kernel.is_some_and(lacks_term)
        },
        |_, _| "the field 1pn is far below what single precision rounds".to_owned(),
        |_, o| {
            let kernel = o.is_named.then_some(Drop(Setting::Kernel));
            let double = [Set(Setting::Accuracy, "double")].into_iter().chain(kernel);
            vec![Remedy(double.collect()), on_cpu(o), without_1pn()]
        },
    ),
    rule(
        [
            "neighbour schemes on the CPU",
            "kernels in single precision, and reference",
        ],
        |n, o| {
            let is_double = |kernel: &Variant| match kernel.method {
                Method::Cpu(path) => path.precision == Precision::F64,
                Method::Reference => false,
                Method::Kernel { .. } | Method::Systems(_) => true,
            };
            n.neighbours && !o.on_device() && o.kernel.is_some_and(|kernel| !is_double(kernel))
        },
        |_, _| {
            format!(
                "{} on the CPU computes pairs in double precision",
                Setting::Neighbours
            )
        },
        |_, o| {
            let kernel = o.is_named.then_some(Drop(Setting::Kernel));
            let double = [Set(Setting::Accuracy, "double")].into_iter().chain(kernel);
            vec![Remedy(double.collect()), one(Drop(Setting::Neighbours))]
        },
    ),
];

fn one(change: Change) -> Remedy {
    Remedy(vec![change])
}

fn name(offer: &Offer<'_>) -> &'static str {
    offer.kernel.map_or("none", |kernel| kernel.name)
}

fn is_cpu_code(kernel: &Variant) -> bool {
    matches!(kernel.method, Method::Reference | Method::Cpu(_))
}

fn is_of_systems(kernel: &Variant) -> bool {
    matches!(kernel.method, Method::Systems(_))
}

fn is_of_one_system(kernel: &Variant) -> bool {
    matches!(kernel.method, Method::Kernel { .. })
}

/// Settings that need jerks.
fn needing_jerks(needs: &Needs) -> String {
    match needs.takes_blocks() {
        true => format!("{} needs", Setting::BlockSteps),
        false => format!("{} needs", Setting::Eta),
    }
}

/// On the CPU, by a kernel that suits it.
fn on_cpu(offer: &Offer<'_>) -> Remedy {
    let kernel = offer.is_named.then_some(Drop(Setting::Kernel));
    Remedy(
        [Set(Setting::Device, "cpu")]
            .into_iter()
            .chain(kernel)
            .collect(),
    )
}

fn without_kernel(offer: &Offer<'_>) -> Option<Remedy> {
    offer.is_named.then(|| one(Drop(Setting::Kernel)))
}

/// One device of one process.
fn one_device(offer: &Offer<'_>) -> Change {
    match offer.processor {
        _ if offer.ranks > 1 => OneProcess,
        Processor::Emulator => Set(Setting::Device, "emulator"),
        Processor::Cpu | Processor::Gpu => Set(Setting::Device, "cuda:0"),
    }
}

/// All bodies in one system, by a kernel that computes one.
fn one_system(offer: &Offer<'_>) -> Remedy {
    let named = offer
        .kernel
        .filter(|kernel| offer.is_named && is_of_systems(kernel));
    let kernel = named.map(|_| Drop(Setting::Kernel));
    Remedy(
        [Set(Setting::Systems, "1")]
            .into_iter()
            .chain(kernel)
            .collect(),
    )
}

/// Steps made of kicks, of one length.
fn kicks(needs: &Needs) -> Remedy {
    let mut changes = vec![Set(Setting::Integrator, "leapfrog")];
    if needs.takes_blocks() {
        changes.extend(without_blocks(needs));
    }
    if needs.is_adaptive {
        changes.push(Drop(Setting::Eta));
    }
    Remedy(changes)
}

/// Steps of a fixed length.
fn fixed_steps(needs: &Needs) -> Remedy {
    let blocks = needs.takes_blocks().then(|| without_blocks(needs));
    let blocks = blocks.into_iter().flatten();
    Remedy(blocks.chain([Drop(Setting::Eta)]).collect())
}

/// One step for all bodies.
fn without_blocks(needs: &Needs) -> Vec<Change> {
    let neighbours = needs.neighbours.then_some(Drop(Setting::Neighbours));
    [Drop(Setting::BlockSteps)]
        .into_iter()
        .chain(neighbours)
        .collect()
}

fn groups_need(what: impl fmt::Display) -> String {
    format!("{} needs {what}", Setting::Groups.quoted())
}

fn without_groups() -> Remedy {
    one(Drop(Setting::Groups))
}

fn without_1pn() -> Remedy {
    one(DropValue(Setting::Field, "1pn"))
}

fn without_fields(needs: &Needs) -> Vec<Change> {
    let orbit = needs.fields.orbit.then_some(Drop(Setting::Orbit));
    [Drop(Setting::Field)].into_iter().chain(orbit).collect()
}

fn without_encounters(needs: &Needs) -> Vec<Change> {
    let collide = needs.encounters.collide.then_some(Drop(Setting::Radii));
    let escape = needs
        .encounters
        .escape
        .then_some(Drop(Setting::EscapeRadius));
    collide.into_iter().chain(escape).collect()
}
