//! The needs of a run, and the offer of a place and a kernel, as plain data.

use gpu_kernels::schedule::block_steps::DigitsName;

use crate::encounters::{Encounters, OnCollision, OnEscape};
use crate::fields::{ExternalField, Fields};
use crate::integrator::{Integrator, TimeSteps};
use crate::physics::ForceLaw;
use crate::variants::Variant;
use crate::variants::preferred::{self, ForceAccuracy};

/// Needs of a run, as far as they can collide with each other or with an [`Offer`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Needs {
    /// Force law.
    pub law: ForceLaw,
    /// Integrator; `None` where it is not known.
    pub integrator: Option<Integrator>,
    /// True if an integrator of the caller takes the steps.
    pub own_integrator: bool,
    /// Sharing of the steps.
    pub stepping: TimeSteps,
    /// True if steps follow an accuracy of Aarseth's criterion.
    pub is_adaptive: bool,
    /// True if the run ends after a number of steps, not at a time.
    pub is_counted: bool,
    /// Digits of pairs in block time steps on a device, where there are some.
    pub digits: Option<DigitsName>,
    /// True for a neighbour scheme.
    pub neighbours: bool,
    /// True if pairs and multiples are followed apart.
    pub groups: bool,
    /// True if the run is refused where they cannot be.
    pub must_have_groups: bool,
    /// External fields.
    pub fields: FieldNeeds,
    /// Encounters.
    pub encounters: EncounterNeeds,
    /// Number of independent systems.
    pub systems: u32,
}

/// Needs of external fields.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FieldNeeds {
    /// True if there is a field.
    pub any: bool,
    /// Name of a field that depends on velocities.
    pub of_velocities: Option<&'static str>,
    /// Name of a field in a frame that turns.
    pub turning: Option<&'static str>,
    /// Index of the body of the post-Newtonian term.
    pub relativity: Option<usize>,
    /// Derivatives in time that are known of a field that the host computes.
    pub of_host: Option<usize>,
    /// True if a field accelerates the origin of coordinates.
    pub moves_origin: bool,
    /// True if the origin is on an orbit.
    pub orbit: bool,
}

impl FieldNeeds {
    fn of(fields: &Fields) -> Self {
        let name_of = |is: fn(&ExternalField) -> bool| {
            let found = fields.iter().find(|&field| is(field));
            found.map(ExternalField::name)
        };
        Self {
            any: !fields.is_empty(),
            of_velocities: name_of(ExternalField::needs_velocity),
            turning: name_of(ExternalField::turns),
            relativity: fields.iter().find_map(ExternalField::dominant_body),
            of_host: fields
                .iter()
                .filter_map(ExternalField::known_derivatives)
                .min(),
            moves_origin: fields.iter().any(|field| field.dominant_body().is_none()),
            orbit: fields.orbit().is_some(),
        }
    }
}

/// Needs of encounters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EncounterNeeds {
    /// True if bodies may collide.
    pub collide: bool,
    /// True if escapes are looked for.
    pub escape: bool,
    /// True if bodies merge.
    pub merge: bool,
    /// True if bodies that escape are removed.
    pub remove: bool,
}

impl Needs {
    /// Forces of this law, and nothing else that is known.
    pub const fn new(law: ForceLaw) -> Self {
        Self {
            law,
            integrator: None,
            own_integrator: false,
            stepping: TimeSteps::Shared,
            is_adaptive: false,
            is_counted: false,
            digits: None,
            neighbours: false,
            groups: false,
            must_have_groups: false,
            fields: FieldNeeds {
                any: false,
                of_velocities: None,
                turning: None,
                relativity: None,
                of_host: None,
                moves_origin: false,
                orbit: false,
            },
            encounters: EncounterNeeds {
                collide: false,
                escape: false,
                merge: false,
                remove: false,
            },
            systems: 1,
        }
    }

    /// With steps of this integrator, to the accuracy `eta` if they vary; `accuracy` is the error that forces
    /// may have.
    #[must_use]
    pub fn steps(
        self,
        integrator: Integrator,
        stepping: TimeSteps,
        eta: Option<f64>,
        accuracy: Option<ForceAccuracy>,
    ) -> Self {
        let of_blocks = eta.filter(|_| stepping == TimeSteps::Blocks);
        let digits = |eta| preferred::block_digits(integrator.order(), eta, accuracy);
        Self {
            integrator: Some(integrator),
            stepping,
            is_adaptive: eta.is_some() || stepping == TimeSteps::Blocks,
            digits: of_blocks.map(digits),
            ..self
        }
    }

    /// With steps of the caller's own integrator, if there is one.
    #[must_use]
    pub const fn own_integrator(self, own_integrator: bool) -> Self {
        Self {
            own_integrator,
            ..self
        }
    }

    /// With an end after a number of steps, or else at a time or whenever the caller says.
    #[must_use]
    pub const fn counted(self, is_counted: bool) -> Self {
        Self { is_counted, ..self }
    }

    /// With a neighbour scheme, if one is asked for.
    #[must_use]
    pub const fn neighbours(self, neighbours: bool) -> Self {
        Self { neighbours, ..self }
    }

    /// With pairs and multiples followed apart, or not.
    #[must_use]
    pub const fn groups(self, groups: bool) -> Self {
        Self { groups, ..self }
    }

    /// With pairs and multiples followed apart, and refused where that cannot be.
    #[must_use]
    pub const fn with_groups(self) -> Self {
        Self {
            groups: true,
            must_have_groups: true,
            ..self
        }
    }

    /// In these fields.
    #[must_use]
    pub fn fields(self, fields: &Fields) -> Self {
        let fields = FieldNeeds::of(fields);
        Self { fields, ..self }
    }

    /// With these encounters, if there are some.
    #[must_use]
    pub fn encounters(self, encounters: Option<&Encounters>) -> Self {
        let encounters = encounters.map_or(EncounterNeeds::default(), |of| EncounterNeeds {
            collide: of.may_collide(),
            escape: of.escape.is_some(),
            merge: of.may_collide() && of.on_collision == OnCollision::Merge,
            remove: matches!(of.escape, Some((_, OnEscape::Remove))),
        });
        Self { encounters, ..self }
    }

    /// Of this number of independent systems.
    #[must_use]
    pub const fn systems(self, systems: u32) -> Self {
        Self { systems, ..self }
    }

    /// Name of the integrator.
    pub(super) fn integrator_name(&self) -> &'static str {
        match (self.own_integrator, self.integrator) {
            (true, _) => "an integrator of your own",
            (false, Some(integrator)) => integrator.name(),
            (false, None) => "this integrator",
        }
    }

    /// Derivatives of accelerations that the integrator needs; `None` where it is not known.
    pub(super) fn derivatives(&self) -> Option<usize> {
        match self.own_integrator {
            true => Some(0),
            false => self.integrator.map(Integrator::derivatives),
        }
    }

    /// Returns whether steps are made of kicks.
    pub(super) fn takes_kicks(&self) -> bool {
        self.derivatives() == Some(0)
    }

    /// Returns whether steps need jerks.
    pub(super) fn takes_jerks(&self) -> bool {
        self.derivatives()
            .is_some_and(|derivatives| derivatives > 0)
    }

    /// Returns whether bodies take block time steps.
    pub(super) fn takes_blocks(&self) -> bool {
        self.stepping == TimeSteps::Blocks
    }
}

/// Processor that computes forces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Processor {
    /// The CPU.
    Cpu,
    /// An emulated GPU.
    Emulator,
    /// A GPU.
    Gpu,
}

/// Offer of a place and a kernel.
#[derive(Clone, Copy, Debug)]
pub struct Offer<'a> {
    /// Processor.
    pub processor: Processor,
    /// Devices that compute together, those of all ranks.
    pub devices: usize,
    /// Processes that compute together.
    pub ranks: usize,
    /// Kernel; `None` where none is chosen yet.
    pub kernel: Option<&'a Variant>,
    /// True if the user named the kernel.
    pub is_named: bool,
}

impl Offer<'static> {
    /// The CPU in one process, with whatever kernel serves: needs that are refused there collide with each
    /// other.
    pub const ANY: Self = Self {
        processor: Processor::Cpu,
        devices: 1,
        ranks: 1,
        kernel: None,
        is_named: false,
    };
}

impl Offer<'_> {
    /// Returns whether a device computes, not the CPU.
    pub(super) fn on_device(&self) -> bool {
        self.processor != Processor::Cpu
    }

    /// Returns whether several devices compute together, or several processes.
    pub(super) fn is_shared(&self) -> bool {
        self.devices > 1 || self.ranks > 1
    }
}
