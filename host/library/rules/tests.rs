//! Every combination of features and places: what is refused is advised well, and what is not refused runs.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::sync::Arc;

use rayon::prelude::*;

use super::*;
use crate::bodies::Bodies;
use crate::encounters::{Encounters, OnCollision, OnEscape};
use crate::fields::{ExternalField, Fields, HostField, Orbit};
use crate::force::ranked::tests::led;
use crate::initial_conditions::plummer;
use crate::integrator::{Integrator, Pace, TimeSteps};
use crate::machine::Machine;
use crate::physics::{ForceLaw, Physics};
use crate::ranks::Team;
use crate::refusals::Change;
use crate::selection::{DeviceChoice, Request, Selection, SelectionError, select_for};
use crate::settings::Setting;
use crate::simulation::Simulation;
use crate::variants;
use crate::variants::preferred::ForceAccuracy;

/// A field of the host that hermite4 can follow.
#[derive(Debug)]
struct Spring;

impl HostField for Spring {
    fn acceleration(&self, _: f64, position: [f64; 3]) -> [f64; 3] {
        position.map(|x| -x)
    }

    fn jerk(&self, _: f64, _: [f64; 3], velocity: [f64; 3]) -> Option<[f64; 3]> {
        Some(velocity.map(|v| -v))
    }
}

/// Settings of a run of few bodies.
#[derive(Clone, Debug)]
struct Case {
    law: ForceLaw,
    integrator: Integrator,
    eta: Option<f64>,
    stepping: TimeSteps,
    counted: bool,
    neighbours: bool,
    groups: bool,
    fields: Vec<&'static str>,
    orbit: bool,
    collide: Option<OnCollision>,
    escape: Option<OnEscape>,
    systems: u32,
    device: DeviceChoice,
    kernel: Option<&'static str>,
    accuracy: Option<ForceAccuracy>,
    ranks: usize,
}

const PLAIN: Case = Case {
    law: ForceLaw::Gravity,
    integrator: Integrator::Leapfrog,
    eta: None,
    stepping: TimeSteps::Shared,
    counted: false,
    neighbours: false,
    groups: false,
    fields: vec![],
    orbit: false,
    collide: None,
    escape: None,
    systems: 1,
    device: DeviceChoice::Cpu,
    kernel: None,
    accuracy: None,
    ranks: 1,
};

impl Case {
    fn fields(&self) -> Fields {
        let fields = self.fields.iter().map(|&name| match name {
            "point" => ExternalField::point(1.0).at([9.0, 0.0, 0.0]),
            "tide" => ExternalField::tide(0.1, 0.1, 0.1),
            "1pn" => ExternalField::first_post_newtonian(self.dominant(), 1e4),
            _ => ExternalField::own(Spring),
        });
        let fields: Fields = fields.collect();
        match self.orbit {
            true => fields.on_orbit(Orbit::new([5.0, 0.0, 0.0], [0.0, 0.1, 0.0])),
            false => fields,
        }
    }

    /// Body of the post-Newtonian term: not the first where bodies collide and merge.
    fn dominant(&self) -> usize {
        usize::from(self.collide == Some(OnCollision::Merge))
    }

    fn bodies(&self) -> Bodies {
        let mut bodies = plummer(8, 1).expect("in range");
        if self.fields.contains(&"1pn") {
            bodies.mass[self.dominant()] *= 1e3;
        }
        bodies
    }

    fn encounters(&self) -> Option<Encounters> {
        let radius = if self.collide.is_some() { 1e-6 } else { 0.0 };
        let is_any = self.collide.is_some() || self.escape.is_some();
        is_any.then(|| Encounters {
            radii: vec![radius; 8],
            on_collision: self.collide.unwrap_or(OnCollision::Log),
            escape: self.escape.map(|what| (1e3, what)),
        })
    }

    fn eta(&self) -> Option<f64> {
        let of_blocks = (self.stepping == TimeSteps::Blocks).then_some(0.1);
        self.eta.or(of_blocks)
    }

    fn needs(&self) -> Needs {
        let needs = Needs::new(self.law);
        let needs = match self.groups {
            true => needs.with_groups(),
            false => needs,
        };
        needs
            .steps(self.integrator, self.stepping, self.eta(), self.accuracy)
            .counted(self.counted)
            .neighbours(self.neighbours)
            .fields(&self.fields())
            .encounters(self.encounters().as_ref())
            .systems(self.systems)
    }

    fn select(&self, team: Option<&Team>) -> Result<Selection, Vec<Refusal>> {
        let kernel = self
            .kernel
            .map(|name| variants::find(name).expect("listed"));
        let request = Request {
            device: self.device,
            kernel,
            systems: self.systems,
            accuracy: self.accuracy,
            integrator: self.integrator,
            steps: self.stepping,
            steps_alone: self.fields.is_empty() && self.encounters().is_none(),
            ..Request::new(8).law(self.law)
        };
        match select_for(&request, &self.needs(), team.filter(|_| self.ranks > 1)) {
            Ok(selection) => Ok(selection),
            Err(SelectionError::Refused(refusals)) => Err(refusals.0),
            Err(error) => panic!("{self:?}: {error}"),
        }
    }

    /// Takes two steps.
    fn run(&self, selection: Selection, team: Option<&Arc<Team>>) -> Result<(), String> {
        let error = |error: &dyn std::fmt::Display| format!("{self:?}: {error}");
        let mut machine = Machine::new(selection.place)
            .fields(self.fields())
            .neighbours(self.neighbours.then_some(crate::backend::Neighbours::Auto))
            .groups(self.groups)
            .block_steps(self.integrator, self.stepping, self.eta(), self.accuracy);
        if let Some(team) = team.filter(|_| self.ranks > 1) {
            machine = machine.ranks(Arc::clone(team));
        }
        let variant = selection.variant.of_systems(self.systems);
        let (bodies, dt) = (self.bodies(), 1e-3);
        let physics = Physics {
            law: self.law,
            g: 1.0,
            softening: if self.groups { 0.0 } else { 0.1 },
        };
        let backend = machine.backend(&variant, &bodies, physics);
        let backend = backend.map_err(|why| error(&why))?;
        let pace = match self.eta() {
            Some(eta) => Pace::Adaptive {
                eta,
                longest: dt,
                end: f64::INFINITY,
                steps: self.stepping,
            },
            None => Pace::Fixed(dt),
        };
        let run = Simulation::new(backend, bodies, physics, self.integrator, pace, 0.0);
        let mut run = (run.map_err(|why| error(&why))?)
            .remade_by(move |bodies| machine.backend(&variant, bodies, physics));
        if let Some(encounters) = self.encounters() {
            run.look_for(encounters).map_err(|why| error(&why))?;
        }
        let ended = run.run(2, |_| ControlFlow::Continue(()));
        let _ = ended.map_err(|why| error(&why))?;
        match run.clock().steps {
            2 => Ok(()),
            steps => Err(format!("{self:?}: {steps} steps")),
        }
    }

    fn apply(&mut self, change: &Change) {
        match *change {
            Change::OneProcess => self.ranks = 1,
            Change::Add(Setting::BlockSteps) => self.stepping = TimeSteps::Blocks,
            Change::Add(Setting::Until) => self.counted = false,
            Change::Add(Setting::Field) => self.fields.push("point"),
            Change::Drop(Setting::Steps) => {}
            Change::Drop(Setting::Eta) => self.eta = None,
            Change::Drop(Setting::BlockSteps) => self.stepping = TimeSteps::Shared,
            Change::Drop(Setting::Neighbours) => self.neighbours = false,
            Change::Drop(Setting::Groups) => self.groups = false,
            Change::Drop(Setting::Field) => self.fields.clear(),
            Change::Drop(Setting::Orbit) => self.orbit = false,
            Change::Drop(Setting::Kernel) => self.kernel = None,
            Change::Drop(Setting::Radii) => self.collide = None,
            Change::Drop(Setting::EscapeRadius) => self.escape = None,
            Change::DropValue(Setting::Field, name) => self.fields.retain(|field| *field != name),
            Change::Set(Setting::Systems, "1") => self.systems = 1,
            Change::Set(Setting::OnCollision, "log") => self.collide = Some(OnCollision::Log),
            Change::Set(Setting::OnEscape, "log") => self.escape = Some(OnEscape::Log),
            Change::Set(Setting::Accuracy, "double") => self.accuracy = Some(ForceAccuracy::Double),
            Change::Set(Setting::Integrator, name) => {
                let mut all = Integrator::ALL.into_iter();
                self.integrator = all.find(|of| of.name() == name).expect("an integrator");
            }
            Change::Set(Setting::Device, "cpu") => self.device = DeviceChoice::Cpu,
            Change::Set(Setting::Device, "emulator" | "cuda" | "cuda:0") => {
                self.device = DeviceChoice::Emulator; // in the place of a GPU
            }
            other => panic!("no such change: {other:?}"),
        }
    }
}

const STEPS: [(Integrator, TimeSteps, Option<f64>, bool); 8] = [
    (Integrator::Leapfrog, TimeSteps::Shared, None, false),
    (Integrator::Leapfrog, TimeSteps::Blocks, Some(0.1), false),
    (Integrator::Hermite4, TimeSteps::Shared, None, false),
    (Integrator::Hermite4, TimeSteps::Shared, Some(0.1), false),
    (Integrator::Hermite4, TimeSteps::Blocks, Some(0.1), false),
    (Integrator::Hermite4, TimeSteps::Blocks, Some(0.1), true),
    (Integrator::Hermite6, TimeSteps::Shared, None, false),
    (Integrator::Hermite6, TimeSteps::Blocks, Some(0.1), false),
];

const PLACES: [DeviceChoice; 3] = [
    DeviceChoice::Cpu,
    DeviceChoice::Emulator,
    DeviceChoice::Emulators(2),
];

const KERNELS: [&str; 12] = [
    "reference",
    "cpu-f32",
    "cpu-f64",
    "tiled",
    "symmetric",
    "tensor",
    "hybrid",
    "few-bodies",
    "test-particles",
    "hermite",
    "hermite-f64",
    "many-systems",
];

/// Combinations of steps, places and numbers of systems with each of these.
fn each(places: &[DeviceChoice], base: &[Case]) -> Vec<Case> {
    let mut all = vec![];
    for case in base {
        for (integrator, stepping, eta, neighbours) in STEPS {
            for &device in places {
                for systems in [1, 2] {
                    all.push(Case {
                        integrator,
                        stepping,
                        eta,
                        neighbours,
                        device,
                        systems,
                        ..case.clone()
                    });
                }
            }
        }
    }
    all
}

/// Fields and encounters, alone and together.
fn beside_pairs() -> Vec<Case> {
    let mut all = vec![];
    for (fields, orbit) in [
        (&[][..], false),
        (&["point"], false),
        (&["tide"], false),
        (&["1pn"], false),
        (&["own"], false),
        (&["point"], true),
        (&["tide"], true),
        (&[], true),
    ] {
        for (collide, escape) in [
            (None, None),
            (Some(OnCollision::Merge), None),
            (None, Some(OnEscape::Remove)),
        ] {
            all.push(Case {
                fields: fields.to_vec(),
                orbit,
                collide,
                escape,
                ..PLAIN
            });
        }
    }
    all
}

/// These cases, with pairs followed apart.
fn with_groups(cases: Vec<Case>) -> impl Iterator<Item = Case> {
    let of_groups = |case| Case {
        groups: true,
        ..case
    };
    cases.into_iter().map(of_groups)
}

/// Cases of one process.
fn cases() -> Vec<Case> {
    let mut base = beside_pairs();
    for law in [ForceLaw::Unit, ForceLaw::ATTRACT_REPEL] {
        base.push(Case { law, ..PLAIN });
        let fields = vec!["point"];
        base.push(Case {
            law,
            fields,
            ..PLAIN
        });
    }
    for kernel in KERNELS {
        for (fields, law) in [
            (&[][..], ForceLaw::Gravity),
            (&["point"], ForceLaw::Gravity),
            (&["1pn"], ForceLaw::Gravity),
            (&[], ForceLaw::ATTRACT_REPEL),
        ] {
            let (kernel, fields) = (Some(kernel), fields.to_vec());
            base.push(Case {
                kernel,
                fields,
                law,
                ..PLAIN
            });
        }
    }
    for accuracy in ForceAccuracy::ALL {
        for fields in [&[][..], &["1pn"]] {
            let (accuracy, fields) = (Some(accuracy), fields.to_vec());
            base.push(Case {
                accuracy,
                fields,
                ..PLAIN
            });
        }
    }
    base.push(Case {
        counted: true,
        ..PLAIN
    });
    base.extend(with_groups(beside_pairs()));
    let others = [
        Case {
            kernel: Some("cpu-f32"),
            ..PLAIN
        },
        Case {
            law: ForceLaw::ATTRACT_REPEL,
            ..PLAIN
        },
        Case {
            accuracy: Some(ForceAccuracy::Single),
            ..PLAIN
        },
    ];
    base.extend(with_groups(others.into()));
    let mut all = each(&PLACES, &base);
    // Alone: these steps refuse a neighbour scheme whatever else is asked for.
    let steps = [
        (Integrator::Hermite4, TimeSteps::Shared, None),
        (Integrator::Hermite6, TimeSteps::Blocks, Some(0.1)),
    ];
    all.extend(steps.map(|(integrator, stepping, eta)| Case {
        integrator,
        stepping,
        eta,
        neighbours: true,
        ..PLAIN
    }));
    all
}

/// Cases of two processes.
fn cases_of_ranks() -> Vec<Case> {
    let mut base = beside_pairs();
    base.push(Case {
        law: ForceLaw::ATTRACT_REPEL,
        ..PLAIN
    });
    base.extend(with_groups(beside_pairs()));
    base.extend(["reference", "tiled", "symmetric"].map(|kernel| Case {
        kernel: Some(kernel),
        ..PLAIN
    }));
    base.iter_mut().for_each(|case| case.ranks = 2);
    each(&PLACES[..2], &base)
}

/// Follows each piece of advice on a refused case: it removes the refusal, and the first of it leads to a run.
/// Adds the rules that refused to those `seen`, and the advice that did not help to the `useless`.
fn follow_advice(
    case: &Case,
    team: Option<&Team>,
    seen: &mut BTreeSet<[&'static str; 2]>,
    useless: &mut BTreeMap<String, Case>,
) {
    let Err(refusals) = case.select(team) else {
        return;
    };
    for refusal in &refusals {
        seen.insert(refusal.sides);
        assert!(!refusal.remedies.is_empty(), "{case:?}: {refusal}");
        for remedy in &refusal.remedies {
            let mut changed = case.clone();
            remedy.0.iter().for_each(|change| changed.apply(change));
            let left = changed.select(team).err().unwrap_or_default();
            let remains = left.iter().any(|other| other.sides == refusal.sides);
            if remains {
                let text = format!("{remedy} does not remove {refusal}");
                useless.insert(text, case.clone());
            }
        }
    }
    let mut changed = case.clone();
    for _ in 0..12 {
        let Err(refusals) = changed.select(team) else {
            return;
        };
        let first = &refusals[0].remedies[0].0;
        first.iter().for_each(|change| changed.apply(change));
    }
    let text = format!("the advice goes round in a circle: {}", Refusals(refusals));
    useless.insert(text, case.clone());
}

#[test]
fn advice_removes_refusals() {
    let (mut seen, mut useless) = (BTreeSet::new(), BTreeMap::new());
    for case in cases() {
        follow_advice(&case, None, &mut seen, &mut useless);
    }
    let (of_ranks, useless_to_ranks) = led(&[1, 1], |team| {
        let (mut seen, mut useless) = (BTreeSet::new(), BTreeMap::new());
        for case in cases_of_ranks() {
            follow_advice(&case, Some(team), &mut seen, &mut useless);
        }
        (seen, useless)
    });
    seen.extend(of_ranks);
    useless.extend(useless_to_ranks);
    let first: Vec<_> = useless.iter().take(12).collect();
    assert!(useless.is_empty(), "{}: {first:#?}", useless.len());
    let sides = RULES.iter().map(|rule| rule.sides);
    let unseen: Vec<_> = sides.filter(|sides| !seen.contains(sides)).collect();
    assert!(unseen.is_empty(), "nothing breaks {unseen:?}");
}

#[test]
fn what_no_rule_refuses_runs() {
    let all = cases();
    let number = all.len();
    let ran = all.into_par_iter().filter_map(|case| {
        let selection = case.select(None).ok()?;
        Some(case.run(selection, None))
    });
    let ran: Vec<Result<(), String>> = ran.collect();
    let failed: Vec<&String> = ran.iter().filter_map(|ran| ran.as_ref().err()).collect();
    assert!(
        failed.is_empty(),
        "{} of {}: {failed:#?}",
        failed.len(),
        ran.len()
    );
    println!("{} of {number} combinations run", ran.len());
    assert!(ran.len() > 500, "{}", ran.len());
}

#[test]
fn what_no_rule_refuses_runs_on_ranks() {
    let failed = led(&[1, 1], |team| {
        let run = |case: Case| {
            let selection = case.select(Some(team)).ok()?;
            case.run(selection, Some(team)).err()
        };
        cases_of_ranks()
            .into_iter()
            .filter_map(run)
            .collect::<Vec<_>>()
    });
    assert!(failed.is_empty(), "{}: {failed:#?}", failed.len());
}
