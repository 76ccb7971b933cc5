//! Messages that rank 0 sends to the others.

use gpu_kernels::entries::Row;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::backend::Command;
use crate::bodies::Bodies;
use crate::frame::Frame;
use crate::physics::Physics;
use crate::plan::block_steps::BlockScheme;
use crate::ranks::{Team, UNAVAILABLE, Way};
use crate::variants::{self, Build, CpuPath, Method, Positions, SystemsPath, Variant};

/// A message to all ranks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) enum Message<'a> {
    /// Rank 0 is there, and busy with other things.
    Wait,
    /// The ranks part.
    Part,
    /// Take a system over.
    Begin(Box<Begin>),
    /// Say what GPUs there are.
    Gpus,
    /// Carry out a command, together with all ranks.
    Run(Command<'a>),
}

/// A system, or several independent ones, and how they are computed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Begin {
    pub(super) physics: Physics,
    pub(super) means: Means,
    pub(super) bodies: Bodies,
    /// Independent systems of equal size that these are, one after another.
    pub(super) systems: u32,
    /// External fields, [as numbers](crate::fields::Fields::to_numbers).
    pub(super) fields: Vec<f64>,
}

/// Means to compute forces.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) enum Means {
    /// The CPU of each rank; with so many neighbours in block time steps, if it is a scheme with these.
    Cpu(CpuPath, Option<u32>),
    /// A device of each rank, which compute one system together.
    Devices(Kernel, Frame, Devices),
    /// A device of each rank, which computes systems of its own.
    Systems(SystemsPath, Frame, Devices),
}

/// A variant of kernels that can be shared, without its name.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Kernel {
    #[serde(with = "crate::wire::row")]
    row: Row,
    build: Build,
    block: u32,
    by_masses: bool,
    /// Block time steps, if they are taken.
    pub(super) blocks: Option<BlockScheme>,
}

/// A device for each rank.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum Devices {
    /// An emulator, which runs threads in the order of this seed.
    Emulators(u64),
    /// The GPU of this number, and the way between them.
    Gpus(Vec<u32>, Way),
}

/// Bytes of a message that are broadcast at once: the length, and the beginning of the message.
const AT_ONCE: usize = 128;
/// Bytes of the length.
const LENGTH: usize = size_of::<u64>();

impl Message<'_> {
    /// Sends the message to the other ranks, as rank 0.
    pub(super) fn tell(&self, team: &Team) {
        let bytes = to_bytes(self);
        let mut first = [0; AT_ONCE];
        first[..LENGTH].copy_from_slice(&(bytes.len() as u64).to_le_bytes());
        let at_once = bytes.len().min(AT_ONCE - LENGTH);
        first[LENGTH..][..at_once].copy_from_slice(&bytes[..at_once]);
        team.broadcast(&mut first);
        if at_once < bytes.len() {
            team.broadcast(&mut bytes[at_once..].to_vec());
        }
    }
}

impl Message<'static> {
    /// Waits for the next message of rank 0.
    pub(super) fn hear(team: &Team) -> Self {
        let mut first = [0; AT_ONCE];
        team.broadcast(&mut first);
        let [length, rest] = [&first[..LENGTH], &first[LENGTH..]];
        let length = length.iter().rev();
        let length = length.fold(0, |length, &byte| length << 8 | usize::from(byte));
        let mut bytes = rest.to_vec();
        bytes.resize(length, 0);
        if length > rest.len() {
            team.broadcast(&mut bytes[AT_ONCE - LENGTH..]);
        }
        of_bytes(&bytes, team)
    }
}

/// A value as bytes for other ranks.
pub(super) fn to_bytes(value: &impl Serialize) -> Vec<u8> {
    postcard::to_allocvec(value).expect("memory is all that it takes")
}

/// The value that another rank has sent. Bytes that are none end all ranks.
pub(super) fn of_bytes<T: DeserializeOwned>(bytes: &[u8], team: &Team) -> T {
    postcard::from_bytes(bytes).unwrap_or_else(|why| {
        let why = format!("the message of another rank is damaged: {why}");
        team.abort(UNAVAILABLE, &why)
    })
}

impl Kernel {
    /// That of a variant, if ranks can compute by it together.
    pub(super) fn of(variant: &Variant) -> Option<Self> {
        match variant.method {
            Method::Kernel {
                row,
                build,
                block,
                positions: Positions::Device,
                split: None,
                fitted: _, // which says how to split
                by_masses,
            } if variant.can_be_shared() && variant.systems == 1 => Some(Self {
                row,
                build,
                block,
                by_masses,
                blocks: None,
            }),
            _ => None,
        }
    }

    /// With block time steps, if there is a scheme.
    #[must_use]
    pub(super) fn with_blocks(self, blocks: Option<BlockScheme>) -> Self {
        Self { blocks, ..self }
    }

    /// The build that its steps take.
    pub(super) fn build(&self) -> Build {
        match self.blocks {
            Some(scheme) => self.build.of_blocks(scheme.digits),
            None => self.build,
        }
    }

    /// The variant.
    pub(super) fn variant(self) -> Variant {
        let method = Method::Kernel {
            row: self.row,
            build: self.build,
            block: self.block,
            positions: Positions::Device,
            split: None,
            fitted: &[],
            by_masses: self.by_masses,
        };
        variants::first("", method, "")
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use gpu_kernels::numerics::Precision;
    use gpu_kernels::schedule::block_steps::DigitsName;

    use super::*;
    use crate::backend::{HighestDerivative, Operation};
    use crate::force::cpu::samples::cloud;
    use crate::physics::ForceLaw;
    use crate::ranks::threads::together_with;
    use crate::variants::{PairsName, RootName, Threads};

    fn begin(means: Means) -> Message<'static> {
        let physics = Physics {
            law: ForceLaw::AttractRepel {
                repulsion: 0.1,
                damping: f64::INFINITY,
            },
            g: 2.0,
            softening: 0.25,
        };
        Message::Begin(Box::new(Begin {
            physics,
            means,
            bodies: cloud(9, 1),
            systems: 3,
            fields: vec![0.5; 4],
        }))
    }

    /// Messages with all kinds of means.
    fn begins() -> Vec<Message<'static>> {
        let path = CpuPath {
            precision: Precision::F32,
            root: RootName::Exact,
            pairs: PairsName::Once,
            threads: Threads::One,
        };
        let mut all = vec![begin(Means::Cpu(path, Some(64)))];
        let digits = [DigitsName::Single, DigitsName::Mixed, DigitsName::Double];
        for (way, digits) in [Way::Hosts, Way::Nccl, Way::Hosts].into_iter().zip(digits) {
            let kernel = Kernel::of(variants::find("hermite-f64").expect("listed"));
            let blocks = BlockScheme {
                order: 6,
                digits,
                slices: 132,
                neighbours: (digits == DigitsName::Mixed).then_some(64),
            };
            let kernel = kernel.expect("shared").with_blocks(Some(blocks));
            let gpus = Devices::Gpus(vec![2, 0, 1], way);
            all.push(begin(Means::Devices(kernel, Frame::IDENTITY, gpus)));
        }
        for variant in variants::VARIANTS {
            if let Method::Systems(path) = variant.method {
                let frame = Frame::IDENTITY;
                all.push(begin(Means::Systems(path, frame, Devices::Emulators(7))));
            }
        }
        all
    }

    #[test]
    fn others_hear_what_was_told() {
        let mut messages = vec![Message::Wait, Message::Part, Message::Gpus];
        messages.extend(begins());
        // Lengths on both sides of what is told at once.
        for count in 0..20 {
            let kick = Operation::Kick(-0.5);
            let snap = Operation::Evaluate(HighestDerivative::Snap);
            let step: Vec<_> = [kick, snap].into_iter().cycle().take(count).collect();
            messages.push(Message::Run(Command::Repeat(u64::MAX, step.into())));
        }
        let messages = Arc::new(messages);
        let heard = together_with(&[1, 1, 1], |team| match team.rank() {
            0 => {
                messages.iter().for_each(|message| message.tell(&team));
                messages.to_vec()
            }
            _ => messages.iter().map(|_| Message::hear(&team)).collect(),
        });
        assert!(heard.iter().all(|heard| *heard == *messages));
    }

    /// Damaged messages are errors, or other messages: nothing panics, or is allocated for a length
    /// that is not there.
    #[test]
    fn damage_is_an_error() {
        for message in begins() {
            let whole = to_bytes(&message);
            for at in 0..whole.len() {
                let cut: Result<Message<'static>, _> = postcard::from_bytes(&whole[..at]);
                assert!(cut.is_err(), "cut off at {at}");
                for bit in [1, 0x10, 0x80] {
                    let mut damaged = whole.clone();
                    damaged[at] ^= bit;
                    let _: Result<Message<'static>, _> = postcard::from_bytes(&damaged);
                }
            }
        }
    }

    /// All variants that devices of one process share, ranks share too.
    #[test]
    fn variants_are_told() {
        for variant in variants::VARIANTS {
            let kernel = Kernel::of(variant);
            assert_eq!(
                kernel.is_some(),
                variant.can_be_shared(),
                "{}",
                variant.name
            );
            if let Some(kernel) = kernel {
                assert_eq!(kernel.variant().method, variant.method, "{}", variant.name);
            }
        }
    }
}
