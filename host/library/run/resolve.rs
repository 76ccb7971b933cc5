//! A specification, the bodies and the machine make a run, with the reason for every choice.

use std::sync::Arc;

use super::groups::{CLUSTER, Close, Kind, Pairs, next_to_pairs};
use super::{BuildError, End, RunSpec};
use crate::bodies::Bodies;
use crate::encounters::Encounters;
use crate::fields::External;
use crate::integrator::{Integrator, TimeSteps};
use crate::machine::Machine;
use crate::physics::{ForceLaw, Physics};
use crate::plan::PlanError;
use crate::plan::systems::bodies_each;
use crate::ranks::Team;
use crate::rules::Needs;
use crate::selection::{Request, Selection, fits, is_for_cpu, select_for};
use crate::settings::Setting;
use crate::suggest::{self, Advice, BlockSettings, Known};
use crate::test_particles::Kinds;
use crate::units::Units;
use crate::variants::preferred::ForceAccuracy;
use crate::variants::{Catalogue, Method, Queues, Shape, Variant};
use gpu_kernels::numerics::Precision;

/// Law and integrator that a study runs its kernels with.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Custom {
    /// Force law.
    pub law: ForceLaw,
    /// Integrator.
    pub integrator: Integrator,
}

/// Everything next to the bodies that a run is resolved by.
#[derive(Clone)]
pub struct Surroundings {
    /// Kernels that can be named.
    pub catalogue: Catalogue,
    /// Custom of the study that a kernel belongs to, if it belongs to one.
    pub custom: fn(&'static Variant) -> Option<Custom>,
    /// Ranks that compute together, if there are several.
    pub team: Option<Arc<Team>>,
}

impl Surroundings {
    /// The kernels of general use, in one process.
    pub fn general() -> Self {
        Self {
            catalogue: Catalogue::general(),
            custom: |_| None,
            team: None,
        }
    }

    /// With a kernel that is found before all others of its name.
    pub(crate) fn preferring(self, kernel: &'static Variant) -> Self {
        let rest: Vec<_> = self.catalogue.all().collect();
        let catalogue = Catalogue::of(kernel).with(rest);
        Self { catalogue, ..self }
    }
}

/// A setting that was chosen, and the reason.
#[derive(Clone, Debug, PartialEq)]
pub struct Choice {
    /// The setting.
    pub setting: Setting,
    /// Value that was chosen.
    pub value: String,
    /// Reason, as the rest of a sentence; empty where the choice says all.
    pub why: String,
}

/// A run whose every setting is decided, but for the length of steps that follows from the first forces.
#[derive(Clone)]
pub struct Run {
    /// The specification with what was chosen: it resolves to this run again.
    pub spec: RunSpec,
    /// Force law and constants.
    pub physics: Physics,
    /// Integrator.
    pub integrator: Integrator,
    /// Kernel and place, with the reason.
    pub selection: Selection,
    /// The kernel in the shape and for the number of systems that it runs with.
    pub variant: Variant,
    /// Settings that were chosen, and the reasons.
    pub choices: Vec<Choice>,
    /// Remark on kernels that were tuned, if there is one.
    pub remark: Option<String>,
    /// Warnings of forces that single precision does not compute as well as others, and of a softening beyond radii or orbits.
    pub warnings: Vec<String>,
    pub(crate) team: Option<Arc<Team>>,
    pub(crate) advice: Advice,
}

impl RunSpec {
    /// Force between bodies: law, G and softening, as given or as suits the bodies.
    ///
    /// # Errors
    /// If a number makes no sense, or constants belong to another law.
    pub fn physics(&self, bodies: &Bodies, around: &Surroundings) -> Result<Physics, BuildError> {
        let (_, physics) = self.with_physics(bodies, around, &mut vec![])?;
        Ok(physics)
    }

    /// This specification with the force between bodies, which is returned too.
    fn with_physics(
        &self,
        bodies: &Bodies,
        around: &Surroundings,
        choices: &mut Vec<Choice>,
    ) -> Result<(Self, Physics), BuildError> {
        let law = self.force_law(around)?;
        let mut spec = Self {
            law: Some(law),
            ..self.clone()
        };
        spec.check_numbers()?;
        // Fields have it under every law; and the constant that is chosen is 1.
        if let Some(g) = spec.g.filter(|&g| law == ForceLaw::Unit && g != 1.0)
            && spec.fields.is_empty()
        {
            return Err(BuildError::NoConstantOfUnitLaw(g));
        }
        let physics = spec.choose_physics(law, bodies, choices);
        Ok((spec, physics))
    }

    /// Decides what this specification leaves open, for a run that begins with these bodies. No device is
    /// opened.
    ///
    /// # Errors
    /// A fault of the bodies or of a setting; or an unavailable device or kernel.
    pub fn resolve(&self, bodies: &Bodies, around: &Surroundings) -> Result<Run, BuildError> {
        let run = self.resolve_resumed(bodies, around)?;
        if let Some(encounters) = &run.spec.encounters {
            encounters.check(bodies)?;
        }
        if let End::Time(end) = run.spec.end {
            run.spec.fields.check_times(run.spec.start, end)?;
        }
        Ok(run)
    }

    /// Like [`resolve`](Self::resolve), but for a run that goes on with these bodies: they may have escaped, and
    /// fields need not be known at its beginning any more.
    ///
    /// # Errors
    /// Like [`resolve`](Self::resolve).
    pub fn resolve_resumed(
        &self,
        bodies: &Bodies,
        around: &Surroundings,
    ) -> Result<Run, BuildError> {
        if bodies.is_empty() {
            return Err(BuildError::NoBodies);
        }
        bodies.check()?;
        bodies_each(bodies.len(), self.systems).map_err(PlanError::from)?;
        let kernel = self.named_kernel(around)?;
        let custom = kernel.and_then(around.custom);
        let mut choices = vec![];

        let (mut spec, physics) = self.with_physics(bodies, around, &mut choices)?;
        let team = around.team.as_deref();
        let on_cpu = || is_for_cpu(&spec.request_of_blocks(bodies, &physics, kernel), team);
        let pairs = spec.pairs(bodies, &physics, team.is_some(), on_cpu);
        let advice = match (spec.advice(), pairs.kind) {
            (Advice::MANY, Kind::Orbits) => Advice::PLANETS,
            (advice, _) => advice,
        };
        spec.choose_stepping(&pairs, &mut choices);
        spec.choose_steps(
            custom,
            &advice,
            (bodies.len(), &pairs),
            &physics,
            &mut choices,
        );
        let integrator = spec.damped(spec.integrator.unwrap_or(advice.integrator))?;
        spec.integrator = Some(integrator);
        spec.fields = spec.fields.starting(spec.start);
        spec.fields.check()?;
        spec.check_pace()?;

        let in_blocks = spec.stepping == Some(TimeSteps::Blocks);
        let follows_pairs = pairs.suit && !pairs.come_later && in_blocks;
        let request = Request {
            several_gpus: !follows_pairs,
            ..spec.request(bodies, &physics, integrator, kernel)
        };
        let accuracy = spec.accuracy_of_blocks(&physics, pairs.come_later);
        let needs = spec.needs(physics.law, integrator, accuracy);
        let needs = match spec.groups {
            Some(true) => needs.with_groups(),
            _ => needs.groups(follows_pairs),
        };
        let selection = select_for(&request, &needs, team)?;
        let (selection, remark) = spec.improved(selection, &request, &around.catalogue);
        let shape = Shape {
            block: spec.shape.block.or(selection.shape.block),
            len: spec.shape.len.or(selection.shape.len),
            luf: spec.shape.luf.or(selection.shape.luf),
        };
        let variant = spec.of_systems(shaped(selection.variant, shape)?)?;
        fits(&variant, &selection.place, physics.law, bodies.len())?;

        // A softening that is chosen suits single precision. In block time steps devices have more digits.
        let blocks_on_device =
            spec.stepping == Some(TimeSteps::Blocks) && !selection.place.is_cpu();
        let in_f32 = variant.stored() == Precision::F32 && !blocks_on_device;
        let imprecise = match self.softening.is_some() && in_f32 {
            true => remark_on_single(bodies, &physics, self.systems as usize),
            false => None,
        };
        let encounters = spec.encounters.as_ref();
        let blurred =
            encounters.and_then(|encounters| blurred(encounters, physics.softening, spec.units));
        let changed = match self.softening {
            Some(softening) if softening > 0.0 => changed(
                &suggest::changed_pairs(bodies, &physics, self.systems as usize),
                softening,
                spec.units,
            ),
            _ => None,
        };
        let decision = spec.decide_groups(bodies, &pairs, &selection, &needs)?;
        spec.groups = decision.groups;
        choices.extend(decision.choice);
        choices.push(Choice {
            setting: Setting::Kernel,
            value: selection.variant.name.to_owned(),
            why: selection.why.clone(),
        });
        spec.kernel = Some(selection.variant.name.to_owned());
        spec.shape = shape;
        spec.device = selection.place.choice();
        if spec.stepping != Some(TimeSteps::Blocks) {
            spec.accuracy = None; // the kernel has it
        }
        let too_fast = match spec.fields.have_relativity() {
            true => External::of_bodies(&spec.fields, bodies, &physics)?.beyond_first_order(bodies),
            false => None,
        };
        Ok(Run {
            spec,
            physics,
            integrator,
            selection,
            variant,
            choices,
            remark,
            warnings: too_fast
                .into_iter()
                .chain(imprecise)
                .chain(blurred)
                .chain(changed)
                .collect(),
            team: around.team.clone(),
            advice,
        })
    }

    fn named_kernel(&self, around: &Surroundings) -> Result<Option<&'static Variant>, BuildError> {
        let kernel = self.kernel.as_deref();
        Ok(kernel.map(|name| around.catalogue.find(name)).transpose()?)
    }

    /// Force law with its constants: given, or the law of the kernel's study, or gravity.
    ///
    /// # Errors
    /// If there is no kernel of this name, or constants belong to another law.
    pub fn force_law(&self, around: &Surroundings) -> Result<ForceLaw, BuildError> {
        let custom = self.named_kernel(around)?.and_then(around.custom);
        let law = self.law.or(custom.map(|custom| custom.law));
        let mut law = law.unwrap_or(ForceLaw::Gravity);
        match &mut law {
            ForceLaw::AttractRepel { repulsion, damping } => {
                *repulsion = self.repulsion.unwrap_or(*repulsion);
                *damping = self.drag.unwrap_or(*damping);
            }
            _ if self.repulsion.is_some() || self.drag.is_some() => {
                return Err(BuildError::ConstantsOfAttractRepel);
            }
            _ => {}
        }
        Ok(law)
    }

    /// The integrator with its damping.
    fn damped(&self, integrator: Integrator) -> Result<Integrator, BuildError> {
        match (integrator, self.damping) {
            (Integrator::DampedEuler { .. }, Some(rate)) => Ok(Integrator::DampedEuler { rate }),
            (integrator, None) => Ok(integrator),
            (integrator, Some(_)) => Err(BuildError::NotDamped(integrator.name())),
        }
    }

    fn check_numbers(&self) -> Result<(), BuildError> {
        const NOT_NEGATIVE: &str = "≥ 0 and finite";
        let demand = |name, value: Option<f64>, is_allowed: fn(f64) -> bool, allowed| match value {
            Some(value) if !is_allowed(value) => Err(BuildError::Value {
                name,
                allowed,
                value,
            }),
            _ => Ok(()),
        };
        let not_negative = |x: f64| x.is_finite() && x >= 0.0;
        demand(Setting::G, self.g, f64::is_finite, "finite")?;
        demand(Setting::Start, Some(self.start), f64::is_finite, "finite")?;
        demand(
            Setting::Softening,
            self.softening,
            not_negative,
            NOT_NEGATIVE,
        )?;
        demand(Setting::Damping, self.damping, not_negative, NOT_NEGATIVE)?;
        if let Some(Integrator::DampedEuler { rate }) = self.integrator {
            demand(Setting::Damping, Some(rate), not_negative, NOT_NEGATIVE)?;
        }
        if let Some(ForceLaw::AttractRepel { repulsion, damping }) = self.law {
            demand(
                Setting::Repulsion,
                Some(repulsion),
                f64::is_finite,
                "finite",
            )?;
            demand(Setting::Drag, Some(damping), not_negative, NOT_NEGATIVE)?;
        }
        Ok(())
    }

    /// Chooses G and the softening.
    fn choose_physics(
        &mut self,
        law: ForceLaw,
        bodies: &Bodies,
        choices: &mut Vec<Choice>,
    ) -> Physics {
        let g = self.gravity(law);
        let softening = self.softening.unwrap_or_else(|| {
            let known = Known {
                follow_pairs: self.may_follow_pairs(law, bodies),
                law,
                systems: self.systems as usize,
                units: self.units,
                g,
                made_by: self.made_by,
                collide: self
                    .encounters
                    .as_ref()
                    .is_some_and(Encounters::may_collide),
            };
            let chosen = suggest::choose_softening(bodies, &known);
            choices.push(Choice {
                setting: Setting::Softening,
                value: chosen.value.to_string(),
                why: chosen.why,
            });
            chosen.value
        });
        (self.g, self.softening) = (Some(g), Some(softening));
        Physics { law, g, softening }
    }

    /// Chooses the integrator, and accuracy and neighbours of block time steps.
    fn choose_steps(
        &mut self,
        custom: Option<Custom>,
        advice: &Advice,
        (bodies, pairs): (usize, &Pairs),
        physics: &Physics,
        choices: &mut Vec<Choice>,
    ) {
        let mut chose = |setting: Setting, value: String, why: &str| {
            choices.push(Choice {
                setting,
                value,
                why: why.to_owned(),
            });
        };
        if self.has_scheme {
            self.integrator = Some(Integrator::Leapfrog); // its kernels suit kicks and drifts
            return;
        }
        if let (None, Some(custom)) = (self.integrator, custom) {
            self.integrator = Some(custom.integrator);
            let name = custom.integrator.name();
            chose(
                Setting::Integrator,
                name.to_owned(),
                "as the kernel's study has it",
            );
            return;
        }
        if self.stepping == Some(TimeSteps::Blocks) {
            let asked = BlockSettings {
                integrator: self.integrator,
                eta: self.eta,
                neighbours: self.neighbours,
            };
            let allowed =
                self.kernel.is_none() && self.systems == 1 && !self.fields.have_relativity();
            let is_hard = match pairs.close {
                Some(Close::Fields | Close::Near(_)) => true,
                Some(Close::Orbits | Close::Softening) => bodies < CLUSTER,
                None => false,
            };
            let (integrator, eta) = match (pairs.close, pairs.suit) {
                (Some(Close::Fields), _) | (_, false) => suggest::NEAR,
                (_, true) => (Integrator::Hermite4, suggest::ETA_OF_FEW),
            };
            let given = match is_hard {
                true => BlockSettings {
                    integrator: asked.integrator.or(Some(integrator)),
                    eta: asked.eta.or(Some(eta)),
                    ..asked
                },
                false => asked,
            };
            let (settings, why) = match pairs.suit && !pairs.come_later {
                true => (
                    given.with_groups(bodies, pairs.count > 0, pairs.allow_neighbours),
                    "as suits pairs that are followed apart",
                ),
                false => (
                    given.or_chosen(bodies, allowed, || {
                        self.accuracy_of_blocks(physics, pairs.come_later)
                    }),
                    "as suits block time steps of so many bodies",
                ),
            };
            if let (None, Some(integrator)) = (asked.integrator, settings.integrator) {
                chose(Setting::Integrator, integrator.name().to_owned(), why);
            }
            if let (None, Some(eta)) = (asked.eta, settings.eta) {
                chose(Setting::Eta, eta.to_string(), why);
            }
            if let (None, Some(neighbours)) = (asked.neighbours, settings.neighbours) {
                chose(Setting::Neighbours, neighbours.to_string(), why);
            }
            self.integrator = settings.integrator;
            (self.eta, self.neighbours) = (settings.eta, settings.neighbours);
        } else if self.integrator.is_none() {
            let name = advice.integrator.name();
            chose(
                Setting::Integrator,
                name.to_owned(),
                self.why_planets(advice),
            );
        }
    }

    /// Reason why bodies are taken for planets, if it is not the advice of their generator.
    fn why_planets(&self, advice: &Advice) -> &'static str {
        match (
            self.advice() == *advice,
            self.made_by,
            *advice == Advice::PLANETS,
        ) {
            (false, _, true) => "bodies are on orbits about few",
            (true, None, true) => "lengths are in au, as those of planets",
            _ => "",
        }
    }

    /// Error that forces may have: given, or as suits the softening.
    pub(crate) fn accuracy_under(&self, physics: &Physics) -> Option<ForceAccuracy> {
        self.accuracy.or(suggest::accuracy(physics.softening))
    }

    /// Like [`accuracy_under`](Self::accuracy_under), in block time steps on a device. Bodies without softening need f64 where
    /// they may come so near each other for long that derivatives of forces overflow f32. They do not if they are followed
    /// apart then.
    fn accuracy_of_blocks(&self, physics: &Physics, are_followed: bool) -> Option<ForceAccuracy> {
        match are_followed {
            true => self.accuracy.or(Some(ForceAccuracy::Single)),
            false => self.accuracy_under(physics),
        }
    }

    /// Needs that may not go together, or not with a place. Forces may have this error.
    fn needs(
        &self,
        law: ForceLaw,
        integrator: Integrator,
        accuracy: Option<ForceAccuracy>,
    ) -> Needs {
        Needs::new(law)
            .steps(integrator, self.time_steps(), self.eta, accuracy)
            .own_integrator(self.has_scheme)
            .counted(matches!(self.end, End::Steps(_)))
            .neighbours(self.neighbours.is_some())
            .fields(&self.fields)
            .encounters(self.encounters.as_ref())
            .systems(self.systems)
    }

    /// Request by which a kernel is selected.
    fn request(
        &self,
        bodies: &Bodies,
        physics: &Physics,
        integrator: Integrator,
        kernel: Option<&'static Variant>,
    ) -> Request {
        Request {
            device: self.device,
            kernel,
            law: physics.law,
            bodies: bodies.len(),
            systems: self.systems,
            sources: Kinds::of(bodies, physics).massive,
            accuracy: self.accuracy_under(physics),
            integrator,
            steps: self.time_steps(),
            steps_alone: !self.has_scheme && self.encounters.is_none() && self.fields.is_empty(),
            several_gpus: true,
        }
    }

    /// Request of block time steps of fourth order.
    fn request_of_blocks(
        &self,
        bodies: &Bodies,
        physics: &Physics,
        kernel: Option<&'static Variant>,
    ) -> Request {
        Request {
            steps: TimeSteps::Blocks,
            ..self.request(bodies, physics, Integrator::Hermite4, kernel)
        }
    }

    /// The selection, improved by the kernels that `allpairs tune` found here, and a remark on them.
    #[cfg(feature = "tuning")]
    fn improved(
        &self,
        selection: Selection,
        request: &Request,
        catalogue: &Catalogue,
    ) -> (Selection, Option<String>) {
        use crate::tuning;
        match tuning::path().filter(|_| self.tuned) {
            Some(path) => tuning::improve(selection, &path, request, catalogue),
            None => (selection, None),
        }
    }

    #[cfg(not(feature = "tuning"))]
    fn improved(
        &self,
        selection: Selection,
        _: &Request,
        _: &Catalogue,
    ) -> (Selection, Option<String>) {
        (selection, None)
    }

    /// The kernel for the number of systems, with the tile and the streams that were given.
    fn of_systems(&self, kernel: Variant) -> Result<Variant, BuildError> {
        let mut variant = kernel.of_systems(self.systems);
        if self.tile.is_none() && self.streams.is_none() {
            return Ok(variant);
        }
        let Method::Systems(path) = &mut variant.method else {
            return Err(BuildError::OneSystemAtATime);
        };
        if let Some(tile) = self.tile {
            if path.tile.is_none() {
                return Err(BuildError::NoTiles(variant.name));
            }
            *path = path.tile(tile);
        }
        if let Some(streams) = self.streams {
            if path.queues == Queues::Together {
                return Err(BuildError::OneStream(variant.name));
            }
            *path = path.queued(Queues::Exactly(streams));
        }
        Ok(variant)
    }
}

/// Warning of close bodies, if their forces in single precision have an error that is large.
///
/// # Panics
/// If there are no systems.
pub fn remark_on_single(bodies: &Bodies, physics: &Physics, systems: usize) -> Option<String> {
    /// Ten times the error that single precision promises.
    const MUCH: f64 = 1e-5;
    let error = suggest::error_in_single(bodies, physics, systems);
    (error > MUCH).then(|| {
        format!(
            "forces of close bodies in single precision are off by some {error:.0e} of the typical force, for \
             positions are rounded: {} has more digits",
            Setting::Accuracy.with("double")
        )
    })
}

/// Warning of bound pairs with these semi-major axes, which softening changes.
fn changed(axes: &[f64], softening: f64, units: Option<Units>) -> Option<String> {
    let (least, greatest) = (axes.first()?, axes.last()?);
    let unit = unit_of_length(units);
    let (pairs, their) = match axes.len() {
        1 => (
            "a bound pair".to_owned(),
            format!("the semi-major axis {least:.3e}{unit}"),
        ),
        count => (
            format!("{count} bound pairs"),
            format!("semi-major axes from {least:.3e} to {greatest:.3e}{unit}"),
        ),
    };
    Some(format!(
        "the softening, {softening:.3e}{unit}, is more than a tenth of {their} of {pairs}: it changes the orbits, and parts \
         pairs closer than itself. Give {}, or a smaller one",
        Setting::Softening.with(0)
    ))
}

/// A blank and the name of the unit of length, if it has one.
fn unit_of_length(units: Option<Units>) -> String {
    let unit = units.and_then(|units| units.name_of_length());
    unit.map(|name| format!(" {name}")).unwrap_or_default()
}

/// Warning of collisions of bodies that softening lets pass each other.
fn blurred(encounters: &Encounters, softening: f64, units: Option<Units>) -> Option<String> {
    let mut radii = encounters.radii.clone();
    radii.sort_by(|a, b| b.total_cmp(a));
    let sum: f64 = radii.iter().take(2).sum();
    (encounters.may_collide() && softening > sum).then(|| {
        let unit = unit_of_length(units);
        format!(
            "the softening, {softening:.3e}{unit}, is more than the sum of the two largest radii, {sum:.3e}{unit}: bodies \
             that meet hardly attract each other at this distance. Give {}, or a smaller one",
            Setting::Softening.with(0)
        )
    })
}

/// The kernel in a shape.
fn shaped(variant: &Variant, shape: Shape) -> Result<Variant, BuildError> {
    variant.shaped(shape).ok_or({
        match (variant.split(), shape.len.or(shape.luf)) {
            (None, Some(_)) => BuildError::NoTwoDimensionalBlocks,
            _ => BuildError::NoBlocks(variant.name),
        }
    })
}

impl Run {
    /// Reason why a setting was chosen, if it was.
    pub fn choice(&self, setting: Setting) -> Option<&Choice> {
        self.choices.iter().find(|choice| choice.setting == setting)
    }

    /// This run from the time on at which pairs are followed apart, if it begins without. Next to pairs a neighbour scheme of a device
    /// takes several times as long as the forces of all bodies, because the host computes it.
    pub(crate) fn followed(&self, bodies: usize) -> Self {
        let mut run = self.clone();
        run.spec.groups = Some(true);
        if run.spec.neighbours.take().is_some() {
            let (integrator, eta) = next_to_pairs(bodies);
            run.integrator = integrator;
            (run.spec.integrator, run.spec.eta) = (Some(integrator), Some(eta));
        }
        run
    }

    /// The place, ready to make backends for this run.
    pub fn machine(&self) -> Machine {
        let spec = &self.spec;
        let are_followed = match spec.groups {
            Some(true) => self.integrator == Integrator::Hermite6,
            Some(false) => false,
            None => true, // once they are hard
        };
        let accuracy = spec.accuracy_of_blocks(&self.physics, are_followed);
        let machine = Machine::new(self.selection.place.clone())
            .allow_inaccurate(spec.allow_inaccurate)
            .fields(spec.fields.clone())
            .neighbours(spec.neighbours)
            .groups(spec.groups == Some(true))
            .heavy_are_finer(spec.groups.is_none())
            .block_steps(self.integrator, spec.time_steps(), spec.eta, accuracy);
        match &self.team {
            Some(team) => machine.ranks(Arc::clone(team)),
            None => machine,
        }
    }
}
