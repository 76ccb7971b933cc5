//! A machine that is ready to compute: variants become backends here.

mod blocks;
mod in_place;
mod many;
mod pair_sums;
mod points;
mod ranked;

pub use pair_sums::KernelOfPairs;
pub use points::{AtPoints, KernelAtPoints};

use crate::backend::{Backend, ForceError, Neighbours};
use crate::bodies::Bodies;
use crate::fields::{External, Fields};
use crate::force::cpu::{Choices, Cpu};
use crate::force::cuda::Cuda;
use crate::force::emulated::Emulator;
use crate::force::independent::Independent;
use crate::force::reference::Reference;
use crate::frame::Frame;
use crate::physics::{ForceLaw, Physics};
use crate::plan::{self, Recipe, total};
use crate::ptx;
use crate::ranks::Team;
use crate::rules::{self, Needs};
use crate::selection::{Place, Processors, loads};
use crate::variants::{Build, Method, OutOfRange, Variant};
use cuda_driver::DeviceInfo;
use gpu_kernels::numerics::Precision;
use gpu_kernels::schedule::block_steps::DigitsName;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Arc, Mutex, PoisonError};

/// A place, ready to run variants: a GPU is opened, and each module compiled for it, once.
pub struct Machine {
    place: Place,
    allow_inaccurate: bool,
    /// GPUs that were opened, by number and whether denormals are flushed.
    gpus: Mutex<HashMap<(u32, bool), Cuda>>,
    /// Seed of the order in which the emulator runs threads.
    thread_order: u64,
    /// The order and the digits of block time steps on a device, if a run takes them.
    block_steps: Option<(u32, DigitsName)>,
    fields: Fields,
    /// Needs of the run, but for law and number of systems.
    needs: Needs,
    /// Number of neighbours in block time steps, if these are of a neighbour scheme.
    neighbours: Option<Neighbours>,
    /// True if pairs and multiples are followed apart in block time steps.
    groups: bool,
    /// True if heavy bodies take shorter block time steps on devices.
    heavy_are_finer: bool,
    /// Ranks that compute together, if there are several.
    team: Option<Arc<Team>>,
}

impl Machine {
    /// The machine at a place.
    pub fn new(place: Place) -> Self {
        Self {
            place,
            allow_inaccurate: false,
            gpus: Mutex::default(),
            thread_order: 0,
            block_steps: None,
            fields: Fields::NONE,
            needs: Needs::new(ForceLaw::Gravity),
            neighbours: None,
            groups: false,
            heavy_are_finer: false,
            team: None,
        }
    }

    /// Accelerates bodies by these external fields too.
    #[must_use]
    pub fn fields(self, fields: Fields) -> Self {
        let needs = self.needs.fields(&fields);
        Self {
            fields,
            needs,
            ..self
        }
    }

    /// Follows pairs and multiples apart in block time steps, or does not. It has a meaning for f64 on the CPU, and on
    /// one device.
    #[must_use]
    pub(crate) fn groups(self, groups: bool) -> Self {
        Self {
            groups,
            needs: self.needs.groups(groups),
            ..self
        }
    }

    /// The emulator, running threads in the order that belongs to `thread_order`; 0 is the natural
    /// one. Results must not depend on it, beyond the rounding of atomic additions.
    pub fn emulator(thread_order: u64) -> Self {
        Self {
            thread_order,
            ..Self::new(Place::EMULATOR)
        }
    }

    /// As many [emulators](Self::emulator), which compute one system together.
    pub fn emulators(count: u32, thread_order: u64) -> Self {
        Self {
            thread_order,
            ..Self::new(Place::of_emulators(count))
        }
    }

    /// Allows variants to compute forces whose error has no bound, or not.
    pub fn allow_inaccurate(self, allow: bool) -> Self {
        Self {
            allow_inaccurate: allow,
            ..self
        }
    }

    /// Location.
    pub fn place(&self) -> &Place {
        &self.place
    }

    /// As [`backend`](Self::backend), in the frame of an earlier run of the same variant.
    ///
    /// # Errors
    /// As [`backend`](Self::backend).
    ///
    /// # Panics
    /// As [`backend`](Self::backend).
    pub fn backend_in_frame(
        &self,
        variant: &Variant,
        bodies: &Bodies,
        physics: Physics,
        frame: Frame,
    ) -> Result<Box<dyn Backend>, ForceError> {
        self.make(variant, bodies, physics, Some(frame))
    }

    /// Puts bodies there, to be accelerated by a variant.
    ///
    /// # Errors
    /// [`ForceError::Refused`] if that cannot be; or if the place has too little memory, or the variant
    /// bounds no error of these bodies' forces.
    ///
    /// # Panics
    /// If a GPU does not load the variant, which [`eligible`](crate::selection::eligible) says.
    pub fn backend(
        &self,
        variant: &Variant,
        bodies: &Bodies,
        physics: Physics,
    ) -> Result<Box<dyn Backend>, ForceError> {
        self.make(variant, bodies, physics, None)
    }

    /// Checks that a variant goes together with this place and the needs of the run.
    fn check(&self, variant: &Variant, law: ForceLaw) -> Result<(), ForceError> {
        let ranks = self.team.as_ref().map_or(1, |team| team.size());
        let needs = Needs { law, ..self.needs }.systems(variant.systems);
        rules::check(&needs, &self.place.offer(ranks, Some(variant), true))?;
        if let Err(why) = loads(variant, &self.place) {
            panic!("{why}");
        }
        Ok(())
    }

    fn make(
        &self,
        variant: &Variant,
        bodies: &Bodies,
        physics: Physics,
        frame: Option<Frame>,
    ) -> Result<Box<dyn Backend>, ForceError> {
        self.check(variant, physics.law)?;
        match variant.in_range(bodies, &physics) {
            Err(OutOfRange {
                computable: true, ..
            }) if self.allow_inaccurate => {}
            checked => checked?,
        }
        if let Some(team) = &self.team {
            return self.ranked(variant, bodies, physics, frame, team);
        }
        let external = External::of_bodies(&self.fields, bodies, &physics)?;
        let variant = &variant.fitted(bodies.len());
        let build = match variant.method {
            Method::Reference => {
                let reference =
                    |part: &Bodies| Reference::new(part, physics).in_fields(external.clone());
                let many = Independent::new(bodies, variant.systems, reference)?;
                return Ok(many.into_backend());
            }
            Method::Cpu(path) => {
                let (choices, threads) = (Choices::from(path), path.threads);
                let systems = variant.systems;
                return Ok(match path.precision {
                    Precision::F64 => {
                        let cpu = |part: &Bodies| {
                            Cpu::<f64>::with(part, physics, choices).in_fields(external.clone())
                        };
                        if self.groups {
                            return Ok(Box::new(cpu(bodies).in_groups(self.neighbours)));
                        }
                        if self.neighbours.is_some() {
                            let cpu = cpu(bodies).in_neighbour_scheme(self.neighbours);
                            return Ok(Box::new(cpu));
                        }
                        let many = Independent::new(bodies, systems, cpu)?;
                        many.on(threads).into_backend()
                    }
                    _ => {
                        let cpu = |part: &Bodies| {
                            Cpu::<f32>::with(part, physics, choices).in_fields(external.clone())
                        };
                        let many = Independent::new(bodies, systems, cpu)?;
                        many.on(threads).into_backend()
                    }
                });
            }
            Method::Systems(path) => {
                let frame = frame.unwrap_or_else(|| Frame::of(bodies, &physics));
                return self.many(variant, path, bodies, physics, frame);
            }
            Method::Kernel { build, .. } => build,
        };
        let frame = frame.unwrap_or_else(|| Frame::of(bodies, &physics));
        let limits = self.place.limits();
        let recipe = Recipe::new(variant, bodies, physics, frame, &limits)?;
        let build = match self.block_digits() {
            Some(digits) => build.of_blocks(digits),
            None => build,
        };
        match self.processors()? {
            Processors::Gpus(infos) => {
                self.stepped(self.open(infos, build)?, recipe, (external, bodies))
            }
            Processors::Emulators(_) | Processors::Cpu => {
                let emulators = self.emulators_of(self.place.devices());
                self.stepped(emulators, recipe, (external, bodies))
            }
        }
    }

    /// Memory that each device needs, bytes, where several compute one system together.
    ///
    /// # Errors
    /// If the launches do not fit them.
    pub fn shared_bytes(
        &self,
        variant: &Variant,
        bodies: &Bodies,
        physics: Physics,
    ) -> Result<Option<u64>, ForceError> {
        let devices = self.place.devices();
        if devices < 2 || !variant.can_be_shared() || variant.systems != 1 {
            return Ok(None);
        }
        let (frame, limits) = (Frame::of(bodies, &physics), self.place.limits());
        let variant = variant.fitted(bodies.len());
        let recipe = Recipe::new(&variant, bodies, physics, frame, &limits)?;
        let bytes = recipe.shared(devices, &limits)?.device_bytes();
        let of_fields = match self.fields.is_empty() || recipe.kernels.hermite.is_some() {
            true => 0,
            false => total(&plan::buffers_of_fields(
                recipe.kernels.force,
                recipe.params.stride,
            )),
        };
        let of_blocks = self.shared_block_bytes(&recipe, devices, &limits)?;
        Ok(Some(bytes + of_fields + of_blocks))
    }

    /// The processors of this process.
    ///
    /// # Errors
    /// If each belongs to another rank.
    fn processors(&self) -> Result<&Processors, ForceError> {
        match self.place.ranks() {
            Some(_) => Err(self.other_ranks()),
            None => Ok(self.place.processors()),
        }
    }

    /// The GPU that does work which devices cannot share; none where an emulator does it.
    ///
    /// # Errors
    /// If there are several devices, or ranks.
    fn one_gpu(&self, work: &'static str) -> Result<Option<&DeviceInfo>, ForceError> {
        match self.processors()? {
            _ if self.place.devices() > 1 => Err(ForceError::OneDevice(work)),
            Processors::Gpus(infos) => Ok(infos.first()),
            Processors::Emulators(_) | Processors::Cpu => Ok(None),
        }
    }

    fn emulators_of(&self, count: usize) -> Vec<Arc<Emulator>> {
        let emulator = |_| Arc::new(Emulator::new(self.thread_order));
        (0..count).map(emulator).collect()
    }

    fn open(&self, infos: &[DeviceInfo], build: Build) -> Result<Vec<Arc<Cuda>>, ForceError> {
        infos.iter().map(|info| self.gpu(info, build)).collect()
    }

    fn gpu(&self, info: &DeviceInfo, build: Build) -> Result<Arc<Cuda>, ForceError> {
        let ftz = build == Build::Ftz;
        let mut gpus = self.gpus.lock().unwrap_or_else(PoisonError::into_inner);
        let opened = match gpus.entry((info.ordinal, ftz)) {
            Entry::Occupied(opened) => opened.into_mut(),
            Entry::Vacant(room) => {
                let module = ptx::module_for(info, ftz);
                let module = module.expect("an eligible variant has a module");
                room.insert(Cuda::open(info.ordinal, module)?)
            }
        };
        Ok(Arc::new(opened.with_stream_of_its_own()?))
    }
}
