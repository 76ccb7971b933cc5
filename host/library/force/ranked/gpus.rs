//! GPUs that ranks see, and which of them each takes.

use std::collections::HashSet;

use cuda_driver::{DeviceInfo, NcclVersion, devices, nccl_version};

use super::command::Command;
#[cfg(feature = "ranks")]
use super::forms;
use crate::ranks::{self, Team, Way};
use crate::settings::Setting;

/// Means that a rank has to compute with.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "ranks", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct Seen {
    /// GPUs, or why there are none.
    pub(crate) gpus: Result<Vec<SeenGpu>, String>,
    /// Number of NCCL's version, or why there is none.
    nccl: Result<u32, String>,
    /// Name of the machine as NCCL is told it; mostly none.
    host: String,
    /// Name by which NCCL tells machines apart: the same, or where there is none their own.
    machine: String,
}

/// GPU that a rank sees.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "ranks", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct SeenGpu(
    #[cfg_attr(feature = "ranks", serde(with = "forms::GpuForm"))] DeviceInfo,
);

/// Environment variable by which NCCL tells machines apart, where it is set.
const NCCL_HOST: &str = "NCCL_HOSTID";

/// Reason why there is no GPU for a rank.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NoGpuOfRank {
    /// It sees none.
    #[error(
        "{cuda} needs a GPU on the machine of each rank, and rank {rank} has none: {why}",
        cuda = Setting::Device.with("cuda")
    )]
    None {
        /// The rank.
        rank: usize,
        /// Reason.
        why: String,
    },
    /// Ranks before it have all that it sees.
    #[error(
        "{cuda} gives each rank a GPU of its own, and ranks before rank {rank} have all that it sees \
         ({count}): start as many ranks per machine as it has GPUs; or let them share one with \
         {one}, or choose {cpu}",
        cuda = Setting::Device.with("cuda"), one = Setting::Device.with("cuda:0"), cpu = Setting::Device.with("cpu")
    )]
    Taken {
        /// The rank.
        rank: usize,
        /// GPUs that it sees.
        count: usize,
    },
    /// A number was asked for that it does not have.
    #[error(
        "there is no GPU {asked} on the machine of rank {rank}: it has {count}, counted from 0"
    )]
    Number {
        /// The rank.
        rank: usize,
        /// The number.
        asked: u32,
        /// GPUs that it sees.
        count: usize,
    },
}

/// GPUs that each rank sees, as rank 0.
pub(crate) fn seen_by_all(team: &Team) -> Vec<Seen> {
    let _turn = team.turn();
    team.tell(&Command::Gpus);
    gathered(team)
}

/// GPUs that each rank sees, as all ranks.
pub(super) fn gathered(team: &Team) -> Vec<Seen> {
    let gpus = devices().map_err(|why| why.to_string());
    let host = std::env::var(NCCL_HOST).unwrap_or_default();
    let seen = Seen {
        nccl: match &gpus {
            Ok(_) => nccl_version()
                .map(|version| version.0)
                .map_err(|why| why.to_string()),
            Err(why) => Err(why.clone()),
        },
        gpus: gpus.map(|gpus| gpus.into_iter().map(SeenGpu).collect()),
        machine: match &*host {
            "" => String::from_utf8_lossy(&ranks::host()).into_owned(),
            host => host.to_owned(),
        },
        host,
    };
    team.told_by_all(seen)
}

/// A GPU for each rank: the first that it sees, of those that ranks before it have not.
///
/// # Errors
/// If there is none.
pub(crate) fn one_each(seen: &[Seen]) -> Result<Vec<DeviceInfo>, NoGpuOfRank> {
    let mut taken = HashSet::new();
    let one = |(rank, seen): (usize, &Seen)| {
        let gpus = of_rank(rank, seen)?;
        let free = gpus.iter().find(|gpu| taken.insert(gpu.0.uuid));
        let (free, count) = (free.map(|gpu| gpu.0.clone()), gpus.len());
        free.ok_or(NoGpuOfRank::Taken { rank, count })
    };
    seen.iter().enumerate().map(one).collect()
}

/// The GPU of this number for each rank.
///
/// # Errors
/// If a rank does not have it.
pub(crate) fn numbered(seen: &[Seen], asked: u32) -> Result<Vec<DeviceInfo>, NoGpuOfRank> {
    let one = |(rank, seen): (usize, &Seen)| {
        let gpus = of_rank(rank, seen)?;
        let gpu = gpus.iter().find(|gpu| gpu.0.ordinal == asked);
        let (gpu, count) = (gpu.map(|gpu| gpu.0.clone()), gpus.len());
        gpu.ok_or(NoGpuOfRank::Number { rank, asked, count })
    };
    seen.iter().enumerate().map(one).collect()
}

fn of_rank(rank: usize, seen: &Seen) -> Result<&[SeenGpu], NoGpuOfRank> {
    let none = |why: &String| NoGpuOfRank::None {
        rank,
        why: why.clone(),
    };
    seen.gpus.as_deref().map_err(none)
}

/// Way by which the GPUs that ranks take exchange what they compute, and why, for people.
///
/// By NCCL, if all ranks have it in one version, and none share a GPU or have parts of one, which it refuses.
pub(crate) fn way(seen: &[Seen], taken: &[DeviceInfo]) -> (Way, String) {
    match version_of_all(seen, taken) {
        Ok(version) => {
            let by = format!("exchanged by NCCL {version}, which all ranks have");
            (Way::Nccl, by)
        }
        Err(why) => {
            let by = format!("exchanged through the hosts' memory ({why})");
            (Way::Hosts, by)
        }
    }
}

/// The version of NCCL by which the GPUs that ranks take can exchange, or why there is none.
fn version_of_all(seen: &[Seen], taken: &[DeviceInfo]) -> Result<NcclVersion, String> {
    let of_rank = |rank: usize| {
        let version = seen[rank].nccl.as_ref().map(|&number| NcclVersion(number));
        version.map_err(|why| format!("rank {rank}: {why}"))
    };
    let first = of_rank(0)?;
    for rank in 1..seen.len() {
        let its = of_rank(rank)?;
        if its != first {
            return Err(format!("rank {rank} has NCCL {its}, and rank 0 {first}"));
        }
    }
    let (mut there, mut slots) = (HashSet::new(), HashSet::new());
    let mut all = taken.iter().zip(seen);
    let are_apart = all.all(|(gpu, seen)| {
        // NCCL takes what is at one address of a machine for one GPU.
        there.insert((gpu.uuid, &seen.host)) && slots.insert((gpu.pci, &seen.machine))
    });
    match are_apart {
        true => Ok(first),
        false => Err("ranks share a GPU, or parts of one".to_owned()),
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::ranks::threads::together_with;

    pub(in crate::force::ranked) fn gpu(ordinal: u32, identity: u8) -> DeviceInfo {
        DeviceInfo {
            ordinal,
            name: format!("GPU {identity}"),
            uuid: [identity; 16],
            pci: (17, identity.into(), 18),
            compute_capability: (9, 1),
            sm_count: 2,
            sm_clock_khz: 3,
            memory_clock_khz: 4,
            memory_bus_bits: 5,
            memory_bytes: 1 << 40,
            l2_bytes: 6,
            warp_size: 7,
            max_threads_per_block: 8,
            max_threads_per_sm: 10,
            registers_per_sm: 11,
            shared_bytes_per_sm: 12,
            max_shared_bytes_per_block: 13,
            driver_version: (14, 15),
        }
    }

    /// GPUs that a rank sees, by their identities.
    fn seen(identities: &[u8]) -> Seen {
        let gpus = (0..).zip(identities).map(|(n, &of)| SeenGpu(gpu(n, of)));
        Seen {
            gpus: Ok(gpus.collect()),
            nccl: Ok(22703),
            host: String::new(),
            machine: "here".to_owned(),
        }
    }

    fn seeing_none(why: &str) -> Seen {
        Seen {
            gpus: Err(why.to_owned()),
            nccl: Err("no NCCL either".to_owned()),
            host: "elsewhere".to_owned(),
            machine: "elsewhere".to_owned(),
        }
    }

    fn identities(taken: Result<Vec<DeviceInfo>, NoGpuOfRank>) -> Result<Vec<u8>, NoGpuOfRank> {
        Ok(taken?.iter().map(|gpu| gpu.uuid[0]).collect())
    }

    #[test]
    fn each_rank_takes_a_gpu_of_its_own() {
        let one_machine = vec![seen(&[1, 2, 3]); 3];
        assert_eq!(identities(one_each(&one_machine)), Ok(vec![1, 2, 3]));
        // Two machines; and a scheduler that shows each rank its own.
        let two = [seen(&[1, 2]), seen(&[1, 2]), seen(&[7, 8]), seen(&[7, 8])];
        assert_eq!(identities(one_each(&two)), Ok(vec![1, 2, 7, 8]));
        let apart = [seen(&[2]), seen(&[1]), seen(&[3])];
        assert_eq!(identities(one_each(&apart)), Ok(vec![2, 1, 3]));
        let (rank, count) = (2, 2);
        let taken = NoGpuOfRank::Taken { rank, count };
        assert_eq!(one_each(&vec![seen(&[1, 2]); 3]), Err(taken));
        let (rank, why) = (1, "no driver".to_owned());
        let without = [seen(&[1, 2]), seeing_none(&why)];
        assert_eq!(one_each(&without), Err(NoGpuOfRank::None { rank, why }));
    }

    #[test]
    fn a_number_is_each_ranks_own() {
        let all = [seen(&[1, 2]), seen(&[1, 2]), seen(&[7, 8])];
        assert_eq!(identities(numbered(&all, 1)), Ok(vec![2, 2, 8]));
        let (rank, asked, count) = (1, 1, 1);
        let missing = NoGpuOfRank::Number { rank, asked, count };
        assert_eq!(numbered(&[seen(&[1, 2]), seen(&[3])], 1), Err(missing));
    }

    #[test]
    fn exchanges_are_by_nccl_where_all_have_it() {
        let two = [seen(&[1, 2]), seen(&[1, 2])];
        let way_of = |seen: &[Seen], taken: &[u8]| {
            let taken: Vec<_> = (0..).zip(taken).map(|(n, &of)| gpu(n, of)).collect();
            way(seen, &taken)
        };
        let (way, by) = way_of(&two, &[1, 2]);
        assert_eq!(way, Way::Nccl);
        assert!(by.contains("by NCCL 2.27.3"), "{by}");
        let (way, by) = way_of(&two, &[1, 1]);
        assert_eq!(way, Way::Hosts);
        assert!(by.contains("ranks share a GPU, or parts of one"), "{by}");
        let apart = ["a", "b"].map(|host| Seen {
            host: host.to_owned(),
            machine: host.to_owned(),
            ..seen(&[1, 2])
        });
        assert_eq!(way_of(&apart, &[1, 1]).0, Way::Nccl);
        // Two parts of a GPU, and two GPUs in the same places of two machines.
        let parts = [1, 2].map(|part| DeviceInfo {
            pci: (0, 3, 0),
            ..gpu(0, part)
        });
        assert_eq!(super::way(&two, &parts).0, Way::Hosts);
        let machines = ["a", "b"].map(|machine| Seen {
            machine: machine.to_owned(),
            ..seen(&[1])
        });
        assert_eq!(super::way(&machines, &parts).0, Way::Nccl);
        let older = Seen {
            nccl: Ok(21805),
            ..seen(&[1])
        };
        let (way, by) = way_of(&[seen(&[1]), older], &[1, 2]);
        assert_eq!(way, Way::Hosts);
        assert!(
            by.contains("rank 1 has NCCL 2.18.5, and rank 0 2.27.3"),
            "{by}"
        );
        let without = Seen {
            nccl: Err("there is no NCCL".to_owned()),
            ..seen(&[2])
        };
        let (way, by) = way_of(&[seen(&[1]), without], &[1, 2]);
        assert_eq!(way, Way::Hosts);
        assert!(by.contains("rank 1: there is no NCCL"), "{by}");
    }

    #[test]
    fn what_is_seen_is_told() {
        let all = [seen(&[]), seen(&[200, 3]), seeing_none("keiner — none")];
        let told = together_with(&[1, 1, 1], |team| {
            team.told_by_all(all[team.rank()].clone())
        });
        assert!(told.iter().all(|told| *told == all));
    }
}
