//! Variants on several ranks.

use std::sync::Arc;

use cuda_driver::DeviceInfo;

use super::Machine;
use crate::backend::{Backend, ForceError, Neighbours};
use crate::bodies::Bodies;
use crate::force::ranked::{Devices, OnCpu, lead, lead_on_devices};
use crate::frame::Frame;
use crate::physics::Physics;
use crate::ranks::Team;
use crate::selection::Processors;
use crate::variants::{Method, Variant};

impl Machine {
    /// Has all ranks of a team compute together, as rank 0: the others
    /// [follow](crate::force::ranked::follow).
    #[must_use]
    pub fn ranks(self, team: Arc<Team>) -> Self {
        let team = Some(team);
        Self { team, ..self }
    }

    pub(super) fn ranked(
        &self,
        variant: &Variant,
        bodies: &Bodies,
        physics: Physics,
        frame: Option<Frame>,
        team: &Arc<Team>,
    ) -> Result<Box<dyn Backend>, ForceError> {
        let in_fields = (bodies, &self.fields);
        if let Method::Cpu(path) = variant.method {
            let wanted = |neighbours: Neighbours| neighbours.number(bodies.len()) as u32;
            let on_cpu = OnCpu {
                path,
                neighbours: self.neighbours.map(wanted),
                groups: self.groups,
            };
            return lead(team, in_fields, physics, on_cpu, variant.systems);
        }
        let of_ranks = self.place.ranks();
        let of_ranks = of_ranks.filter(|_| self.place.devices() == team.size());
        let devices = match (self.place.processors(), of_ranks) {
            (Processors::Gpus(infos), Some(way)) => {
                let numbers = infos.iter().map(|info| info.ordinal).collect();
                Devices::Gpus(numbers, way)
            }
            (Processors::Emulators(_), Some(_)) => Devices::Emulators(self.thread_order),
            _ => return Err(self.other_ranks()),
        };
        if self.block_steps.is_some() {
            self.check_one_kind()?;
        }
        let frame = frame.unwrap_or_else(|| Frame::of(bodies, &physics));
        let kernel = (variant, self.scheme(bodies.len()), self.groups);
        lead_on_devices(team, in_fields, physics, kernel, (frame, devices))
    }

    /// Checks that GPUs of all ranks compute the same bits: in block time steps each says for itself how many bodies
    /// are active. Drivers of other versions may compile other code.
    fn check_one_kind(&self) -> Result<(), ForceError> {
        let gpus = self.place.gpus();
        let kind = |gpu: &DeviceInfo| (gpu.compute_capability, gpu.driver_version);
        match gpus.iter().position(|gpu| kind(gpu) != kind(&gpus[0])) {
            None => Ok(()),
            Some(other) => Err(ForceError::OtherGpusOfRanks {
                work: "block time steps are taken",
                gpus: [0, other].map(|rank| {
                    let DeviceInfo {
                        name,
                        driver_version: (major, minor),
                        ..
                    } = &gpus[rank];
                    (rank, format!("{name} (CUDA {major}.{minor})"))
                }),
            }),
        }
    }

    /// The refusal of a place of other ranks.
    pub(super) fn other_ranks(&self) -> ForceError {
        ForceError::OtherRanks {
            chosen: self.place.devices(),
            there: self.team.as_ref().map_or(1, |team| team.size()),
        }
    }
}
