//! Decision whether pairs and multiples are followed apart.

use gpu_kernels::schedule::block_steps::{Fourth, Scheme, Sixth};

use super::resolve::Choice;
use super::{BuildError, End, RunSpec};
use crate::binaries::Census;
use crate::bodies::Bodies;
use crate::encounters::Encounters;
use crate::fields::{External, ExternalField};
use crate::force::groups::pairs_at_start;
use crate::groups::{a_pair_holds_much, some_are_heavy};
use crate::integrator::{Integrator, TimeSteps};
use crate::physics::{ForceLaw, Physics};
use crate::rules::{self, Needs, Offer};
use crate::selection::{DeviceChoice, Selection};
use crate::settings::Setting;
use crate::suggest::{self, Advice, BlockSettings, FEW};
use crate::variants::preferred::ForceAccuracy;

/// Number of bodies from which on groups are followed without being asked for.
pub(super) const CLUSTER: usize = 16;

/// Reason why pairs and multiples of these bodies cannot be followed apart, as the rest of "groups need ...". Settings that
/// do not go together with groups are [rules](rules).
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum GroupsFault {
    /// The force is softened.
    #[error("{}", Setting::Softening.with(0))]
    Softening,
    /// Bodies do not attract each other.
    #[error("bodies that attract each other")]
    NoAttraction,
    /// Bodies without mass.
    #[error("bodies with mass, and some have none")]
    Massless,
    /// A body that all others revolve about.
    #[error("bodies of which none has most of the mass")]
    Dominated,
}

/// Pairs that a run begins with, and whether it may follow them apart.
pub(super) struct Pairs {
    /// Number of pairs that would be followed; 0 where nobody asks.
    pub(super) count: usize,
    /// Number of pairs that are hard.
    hard: usize,
    /// True if some bodies are so much heavier than others that they soon find each other.
    has_heavy: bool,
    /// True if the bodies are a cluster without softening, where pairs form sooner or later.
    are_stars: bool,
    /// Reason why fewer bodies take the same steps.
    pub(super) few: Option<&'static str>,
    /// Reason why pairs of these bodies cannot be followed apart, whatever the settings.
    fault: Option<GroupsFault>,
    /// True if nobody asked for other steps, and pairs are worth the steps that follow them.
    pub(super) suit: bool,
    /// True if pairs are followed apart while there are hard ones: a device takes all steps at other times.
    pub(super) come_later: bool,
    /// True if a scheme with neighbours can go next to the groups: on a CPU, in double precision.
    pub(super) allow_neighbours: bool,
    /// Kind of bodies that are not softened, which decides on the steps of few.
    pub(super) kind: Kind,
    /// Reason for steps of single bodies where no pairs are followed apart.
    pub(super) close: Option<Close>,
}

/// Reason why some bodies need shorter steps than others, which no steps of one length follow.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Close {
    /// Bodies on orbits about one that has most of the mass come near each other.
    Orbits,
    /// The softening that was given lets bodies come so near each other that it hardly matters.
    Softening,
    /// Bodies fall far into a field.
    Fields,
    /// Bodies without softening come near each other, for this reason.
    Near(&'static str),
}

impl Close {
    fn why(self) -> &'static str {
        match self {
            Self::Orbits => "bodies on orbits come near each other",
            Self::Softening => "bodies pass each other nearer than softening keeps them apart",
            Self::Fields => "bodies fall far into a field",
            Self::Near(why) => why,
        }
    }
}

/// Kinds of bodies that are not softened.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Kind {
    /// Two bodies, or bodies about one that has most of the mass, or test particles of few.
    Orbits,
    /// Few bodies that all attract each other.
    Few,
    /// Two bodies, or bodies about one that has most of the mass, that pass each other or fall onto it.
    Plunging,
    /// Any others.
    Others,
}

/// Decision on groups.
pub(super) struct Decision {
    /// True if they are followed apart, and false if not; none if while there are hard ones.
    pub(super) groups: Option<bool>,
    /// Line about it for the user.
    pub(super) choice: Option<Choice>,
}

impl RunSpec {
    /// Counts the pairs that a run begins with, where it may matter.
    pub(super) fn pairs(
        &self,
        bodies: &Bodies,
        physics: &Physics,
        has_ranks: bool,
        on_cpu: impl Fn() -> bool,
    ) -> Pairs {
        let collide = self
            .encounters
            .as_ref()
            .is_some_and(Encounters::may_collide);
        let collide_on_several = collide && (has_ranks || self.names_devices()) && !on_cpu();
        let fault = self.bodies_fault(bodies, physics);
        let can_be = fault.is_none() && !self.refuses_groups(physics.law);
        let newtonian = matches!(physics.law, ForceLaw::Gravity) && self.systems == 1;
        let blocks = self.stepping == Some(TimeSteps::Blocks);
        let is_asked = match blocks {
            true => newtonian && fault != Some(GroupsFault::Dominated),
            false => can_be && self.leaves_steps_open(),
        };
        let count = match is_asked && bodies.len() > 1 {
            true => pairs_at_start(bodies, physics),
            false => 0,
        };
        let hard = match count > 0 && !blocks {
            true => Census::of(bodies, physics).hard(),
            false => 0,
        };
        let has_heavy = some_are_heavy(&bodies.mass);
        let kind = self.kind(bodies, physics);
        let near = self.why_near(kind);
        let few = near.filter(|_| can_be && on_cpu());
        let are_many = can_be && (bodies.len() >= CLUSTER || few.is_some());
        let are_stars = !blocks && is_asked && are_many;
        let is_wanted = self.groups == Some(true) || collide_on_several;
        let has_reason = count > 0 || is_wanted;
        let is_open = blocks && self.neighbours.is_none() && self.leaves_integrator_open();
        let may_suit = are_many && self.groups != Some(false);
        let on_cpu = may_suit && self.stepping != Some(TimeSteps::Shared) && on_cpu();
        // On a device only pairs that are there are worth what groups cost.
        let suit = may_suit && (has_reason || has_heavy || are_stars || (is_open && on_cpu));
        let may_come = may_suit && self.groups.is_none() && bodies.len() >= CLUSTER;
        Pairs {
            count,
            hard,
            has_heavy,
            are_stars,
            few,
            fault,
            suit,
            come_later: may_come && !on_cpu && !has_reason && !a_pair_holds_much(bodies, physics),
            allow_neighbours: on_cpu && self.kernel.is_none() && self.is_precise(),
            kind,
            close: (self.close(bodies, physics))
                .or(near.map(Close::Near))
                .filter(|_| !collide_on_several),
        }
    }

    /// Returns whether the device that was asked for is several.
    fn names_devices(&self) -> bool {
        matches!(
            self.device,
            DeviceChoice::Emulators(_) | DeviceChoice::Gpus(_) | DeviceChoice::AllGpus
        )
    }

    /// Reason for steps of single bodies, if there is one and nobody asks for others.
    fn close(&self, bodies: &Bodies, physics: &Physics) -> Option<Close> {
        let attract = matches!(physics.law, ForceLaw::Gravity) && physics.g > 0.0;
        let needs_velocity = self.fields.iter().any(ExternalField::needs_velocity);
        let is_open = self.leaves_steps_open() && !self.has_scheme;
        if !attract || needs_velocity || !is_open || self.systems != 1 {
            return None;
        }
        let n = bodies.len();
        let (softened, heaviest) = (
            physics.softening > 0.0,
            bodies.mass.iter().copied().fold(0.0, f64::max),
        );
        let are_about_one = heaviest > 0.5 * bodies.total_mass();
        if !self.fields.is_empty() {
            let own = self
                .fields
                .iter()
                .any(|field| field.known_derivatives().is_some());
            if own {
                return None; // too few of its derivatives are known
            }
            let external = External::of_bodies(&self.fields, bodies, physics).ok()?;
            return suggest::fall_into_fields(bodies, &external, self.span())
                .then_some(Close::Fields);
        }
        let may_be_orbits = n > 2 && !self.is_planetary() && are_about_one;
        if may_be_orbits && suggest::orbits_are_close(bodies, physics) {
            return Some(Close::Orbits);
        }
        let hardly_matters = softened && n >= CLUSTER && suggest::turn_each_other(bodies, physics);
        hardly_matters.then_some(Close::Softening)
    }

    /// Kind of the bodies.
    fn kind(&self, bodies: &Bodies, physics: &Physics) -> Kind {
        let attract = matches!(physics.law, ForceLaw::Gravity) && physics.g > 0.0;
        let (n, mass) = (bodies.len(), bodies.total_mass());
        if !attract || physics.softening != 0.0 || self.systems != 1 || n < 2 || mass <= 0.0 {
            return Kind::Others;
        }
        let massive = bodies.mass.iter().filter(|mass| **mass > 0.0).count();
        let is_dominated = bodies.mass.iter().any(|m| *m > 0.5 * mass);
        let are_about_one = n == 2 || is_dominated;
        let are_orbits = !are_about_one || suggest::are_on_orbits(bodies, physics);
        if are_orbits && (are_about_one || (massive < FEW && massive < n)) {
            // A step that is given is one of the leapfrog.
            return match self.dt.is_none() && self.kernel.is_none() {
                true => Kind::Orbits,
                false => Kind::Others,
            };
        }
        match (self.leaves_steps_open(), are_orbits) {
            (true, false) => Kind::Plunging,
            (true, true) if n < CLUSTER => Kind::Few,
            _ => Kind::Others,
        }
    }

    /// Returns whether the bodies are planets.
    fn is_planetary(&self) -> bool {
        !matches!(self.advice(), Advice::MANY | Advice::INDIVIDUALS)
    }

    /// Reason why steps follow bodies of this kind closely, if they do.
    fn why_near(&self, kind: Kind) -> Option<&'static str> {
        match kind {
            _ if !self.fields.is_empty() || self.has_scheme => None,
            Kind::Few if !self.is_planetary() => Some("few bodies, which come near each other"),
            Kind::Plunging if self.made_by.is_none() || !self.is_planetary() => {
                Some("bodies pass each other, or fall onto one")
            }
            _ => None,
        }
    }

    /// Returns whether no setting asks for steps of another kind than those that follow pairs apart.
    fn leaves_steps_open(&self) -> bool {
        self.stepping.is_none() && self.dt.is_none() && self.leaves_integrator_open()
    }

    /// Returns whether the user asked for block time steps that follow pairs if nothing is softened, and for nothing that
    /// keeps them from it. As many bodies as a neighbour scheme is chosen for stand for more, and on devices neighbour
    /// schemes are several times as fast without pairs.
    pub(super) fn may_follow_pairs(&self, law: ForceLaw, bodies: &Bodies) -> bool {
        let unsoftened = Physics {
            law,
            g: self.gravity(law),
            softening: 0.0,
        };
        let on_a_device = self.device != DeviceChoice::Cpu;
        self.stepping == Some(TimeSteps::Blocks)
            && self.kernel.is_none()
            && self.groups != Some(false)
            && self.is_precise()
            && (self.groups.is_some() || bodies.len() < suggest::MANY)
            && (self.groups.is_some() || self.neighbours.is_none() || !on_a_device)
            && self.bodies_fault(bodies, &unsoftened).is_none()
            && !self.refuses_groups(law)
    }

    /// Returns whether no setting asks for another integrator, or for a device or a time that it does not suit.
    fn leaves_integrator_open(&self) -> bool {
        (self.integrator, self.eta) == (None, None)
            && self.kernel.is_none()
            && self.groups != Some(false)
            && self.is_precise()
            && !matches!(self.end, End::Steps(_))
            && !matches!(self.end, End::Time(end) if end < self.start)
    }

    /// Returns whether no setting asks for forces in fewer digits than double precision.
    fn is_precise(&self) -> bool {
        matches!(self.accuracy, None | Some(ForceAccuracy::Double))
    }

    /// Chooses one step for all bodies, or block time steps where hard pairs can be followed apart.
    pub(super) fn choose_stepping(&mut self, pairs: &Pairs, choices: &mut Vec<Choice>) {
        if self.stepping.is_some() {
            return;
        }
        let of_pairs = pairs.suit && (pairs.hard > 0 || pairs.has_heavy || pairs.are_stars);
        let why = match (of_pairs, pairs.hard, pairs.has_heavy) {
            (false, ..) => pairs.close.map(|close| close.why().to_owned()),
            (true, 0, true) => {
                Some("some bodies have ten mean masses, and find each other".to_owned())
            }
            (true, 0, false) => {
                let why = pairs.few.unwrap_or("bodies without softening form pairs");
                Some(why.to_owned())
            }
            (true, hard, _) => Some(format!(
                "{} to be followed apart",
                counted(hard, "hard pair")
            )),
        };
        self.stepping = Some(match why {
            Some(_) => TimeSteps::Blocks,
            None => TimeSteps::Shared,
        });
        choices.extend(why.map(|why| Choice {
            setting: Setting::BlockSteps,
            value: "on".to_owned(),
            why,
        }));
    }

    /// Decides whether pairs and multiples are followed apart, and tells how many pairs there are.
    pub(super) fn decide_groups(
        &self,
        bodies: &Bodies,
        pairs: &Pairs,
        selection: &Selection,
        needs: &Needs,
    ) -> Result<Decision, BuildError> {
        if let (Some(true), Some(fault)) = (self.groups, pairs.fault) {
            return Err(fault.into());
        }
        if self.stepping != Some(TimeSteps::Blocks) || bodies.len() < 2 {
            return Ok(Decision {
                groups: Some(false),
                choice: None,
            });
        }
        // Whoever asks for groups was refused by rules before.
        let offer = selection.place.offer(1, Some(selection.variant), true);
        let of_bodies = pairs.fault.map(|fault| BuildError::from(fault).to_string());
        let fault = of_bodies.or_else(|| match pairs.come_later {
            true => None, // other steps follow them
            false => rules::refusal_of_groups(needs, &offer),
        });
        // On a device the host takes the steps if there are groups, which costs bodies without pairs several times
        // as long.
        if pairs.come_later && fault.is_none() && !selection.place.is_cpu() {
            let steps = match self.neighbours {
                Some(_) => {
                    let (integrator, eta) = next_to_pairs(bodies.len());
                    let (name, eta) = (integrator.name(), Setting::Eta.with(eta));
                    format!(", by {name} with {eta} and the forces of all bodies")
                }
                None if pairs.has_heavy => {
                    let part = match self.integrator {
                        Some(Integrator::Hermite6) => Sixth::OF_HEAVY,
                        _ => Fourth::OF_HEAVY,
                    };
                    let eta = Setting::Eta;
                    format!("; bodies of more than ten mean masses have {part} of {eta}")
                }
                None => String::new(),
            };
            return Ok(Decision {
                groups: None,
                choice: Some(Choice {
                    setting: Setting::Groups,
                    value: "later".to_owned(),
                    why: format!(
                        "no pairs yet; while there are hard ones, all are followed apart{steps}"
                    ),
                }),
            });
        }
        let pays = bodies.len() >= CLUSTER || pairs.few.is_some();
        let groups = fault.is_none() && self.groups.unwrap_or(pays);
        let count = pairs.count;
        let counted = counted(count, "pair");
        let why = match (groups, &fault) {
            (true, _) => format!(
                "{counted} followed apart, as one body each; others will be when bodies meet"
            ),
            (false, _) if count == 0 => {
                return Ok(Decision {
                    groups: Some(groups),
                    choice: None,
                });
            }
            (false, None) => {
                format!("{counted} in short steps, which take long and lose energy")
            }
            (false, Some(fault)) => {
                format!("{counted} in short steps, which take long and lose energy: {fault}")
            }
        };
        Ok(Decision {
            groups: Some(groups),
            choice: Some(Choice {
                setting: Setting::Groups,
                value: if groups { "on" } else { "off" }.to_owned(),
                why,
            }),
        })
    }

    /// Returns whether settings under this law refuse groups, whatever the steps and the device.
    fn refuses_groups(&self, law: ForceLaw) -> bool {
        let needs = Needs {
            stepping: TimeSteps::Blocks,
            ..Needs::new(law)
        };
        let needs = needs.fields(&self.fields).systems(self.systems);
        rules::refusal_of_groups(&needs, &Offer::ANY).is_some()
    }

    /// Reason why pairs of these bodies cannot be followed apart, whatever the settings.
    fn bodies_fault(&self, bodies: &Bodies, physics: &Physics) -> Option<GroupsFault> {
        let heaviest = bodies.mass.iter().copied().fold(0.0, f64::max);
        let is_dominated = bodies.len() > 2 && heaviest > 0.5 * bodies.total_mass();
        let has_no_mass = |mass: &f64| physics.weight(*mass) <= 0.0;
        first([
            (physics.softening != 0.0, GroupsFault::Softening),
            (physics.g <= 0.0, GroupsFault::NoAttraction),
            (bodies.mass.iter().any(has_no_mass), GroupsFault::Massless),
            (is_dominated, GroupsFault::Dominated),
        ])
    }
}

/// Integrator and η of block time steps without neighbours, for this number of bodies with pairs that are followed apart.
pub(super) fn next_to_pairs(bodies: usize) -> (Integrator, f64) {
    let settings = BlockSettings::default().with_groups(bodies, true, false);
    let both = settings.integrator.zip(settings.eta);
    both.expect("those that were left out are chosen")
}

/// The first of these faults that is there.
fn first<const N: usize>(faults: [(bool, GroupsFault); N]) -> Option<GroupsFault> {
    let mut faults = faults.into_iter();
    faults.find_map(|(is_so, fault)| is_so.then_some(fault))
}

fn counted(count: usize, one: &str) -> String {
    match count {
        1 => format!("1 {one}"),
        more => format!("{more} {one}s"),
    }
}
