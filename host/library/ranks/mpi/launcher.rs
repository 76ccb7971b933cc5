//! The MPI launcher that started this process, if one did.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process;

/// Environment variable for the library to use.
pub(super) const LIBRARY: &str = "ALLPAIRS_LIBMPI";
/// Value of that variable for no MPI: each process is a separate run.
const NO_LIBRARY: &str = "none";

/// Kind of a launcher, which decides what libraries may be its.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// `mpirun` of Open MPI.
    OpenMpi,
    /// Hydra: `mpiexec` of MPICH, Intel MPI, MVAPICH.
    Hydra,
    /// Slurm's `srun`, Flux, PALS, …, which start programs of any library.
    Other,
}

/// A launcher that started this process, by what it says in the environment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Launcher {
    pub(super) kind: Kind,
    /// Number of processes, if it is known.
    pub(super) size: Option<usize>,
    /// This process among them, if it is known.
    pub(super) rank: Option<usize>,
    /// Number of this process among the processes of its machine, if it is known.
    local_rank: Option<usize>,
    /// Evidence of the launcher, for messages.
    pub(super) evidence: String,
    /// Folder that it is installed under, if it is known.
    pub(super) prefix: Option<PathBuf>,
}

/// Variables for the number of processes and the number of this one. The first that is set counts: an
/// `mpirun` within a step of `srun` sets the variables of both.
const VARIABLES: [(Kind, &str, &str); 8] = [
    (
        Kind::OpenMpi,
        "OMPI_COMM_WORLD_SIZE",
        "OMPI_COMM_WORLD_RANK",
    ),
    (Kind::Hydra, "MV2_COMM_WORLD_SIZE", "MV2_COMM_WORLD_RANK"),
    (Kind::Hydra, "PMI_SIZE", "PMI_RANK"),
    (Kind::Other, "PALS_SIZE", "PALS_RANKID"),
    (Kind::Other, "FLUX_JOB_SIZE", "FLUX_TASK_RANK"),
    (Kind::Other, "JSM_NAMESPACE_SIZE", "JSM_NAMESPACE_RANK"),
    // Not `SLURM_NTASKS`, which a batch script has too.
    (Kind::Other, "SLURM_STEP_NUM_TASKS", "SLURM_PROCID"),
    (Kind::Other, "PMIX_SIZE", "PMIX_RANK"),
];

/// Variables for the number of this process among the processes of its machine.
const LOCAL_RANKS: [&str; 6] = [
    "OMPI_COMM_WORLD_LOCAL_RANK",
    "MPI_LOCALRANKID",
    "MV2_COMM_WORLD_LOCAL_RANK",
    "PALS_LOCAL_RANKID",
    "FLUX_TASK_LOCAL_ID",
    "SLURM_LOCALID",
];

/// Variables that Hydra sets, and others that use its protocol do not.
const MARKS_OF_HYDRA: [&str; 3] = ["HYDI_CONTROL_FD", "MPI_LOCALNRANKS", "MV2_COMM_WORLD_SIZE"];

/// Programs of launchers, one of which is an ancestor of every process that they start.
const PROGRAMS: [&str; 11] = [
    "orterun",
    "orted",
    "prterun",
    "prte",
    "prted",
    "hydra_pmi_proxy",
    "hydra_bstrap_proxy",
    "mpiexec.hydra",
    "mpiexec.gforker",
    "mpiexec",
    "mpirun",
];

impl Launcher {
    /// The launcher of several processes that started this one, if there is one, and no run of its own was
    /// asked for.
    pub fn find() -> Option<Self> {
        if env::var_os(LIBRARY).is_some_and(|library| library == NO_LIBRARY) {
            return None;
        }
        let mut found = Self::in_environment(|name| env::var_os(name))?;
        if let Some(program) = ancestor() {
            found.evidence = format!("{}, started by {}", found.evidence, program.display());
            let prefix = program.parent().and_then(Path::parent);
            found.prefix = prefix.map(Path::to_path_buf);
        }
        Some(found)
    }

    /// Returns whether this process may be the first of its machine.
    pub(super) fn is_first_of_machine(&self) -> bool {
        matches!(self.local_rank, Some(0) | None)
    }

    fn in_environment(variable: impl Fn(&str) -> Option<OsString>) -> Option<Self> {
        let number = |name: &str| variable(name)?.to_str()?.trim().parse::<usize>().ok();
        let told =
            VARIABLES
                .iter()
                .find_map(|&(kind, size, rank)| match (number(size), number(rank)) {
                    (Some(count), of) => Some((kind, Some(count), of, format!("{size}={count}"))),
                    (None, Some(of)) if rank == "PMIX_RANK" => {
                        Some((kind, None, Some(of), format!("{rank}={of}")))
                    }
                    _ => None,
                });
        let (mut kind, size, rank, evidence) = told?;
        if kind == Kind::Hydra && MARKS_OF_HYDRA.iter().all(|mark| variable(mark).is_none()) {
            kind = Kind::Other;
        }
        // One process is a run alone: it needs no library.
        (size != Some(1)).then_some(Self {
            kind,
            size,
            rank,
            local_rank: LOCAL_RANKS.iter().find_map(|name| number(name)),
            evidence,
            prefix: None,
        })
    }
}

/// The launcher's program, if it is an ancestor of this process.
fn ancestor() -> Option<PathBuf> {
    const GENERATIONS: usize = 8;
    let mut pid = process::id();
    for _ in 0..GENERATIONS {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // The name of the program, in brackets, may hold anything.
        let (_, after) = stat.rsplit_once(')')?;
        pid = after.split_whitespace().nth(1)?.parse().ok()?;
        if pid <= 1 {
            return None;
        }
        let Ok(program) = fs::read_link(format!("/proc/{pid}/exe")) else {
            continue; // another user's
        };
        let name = program.file_name()?.to_string_lossy();
        if PROGRAMS.iter().any(|known| name == *known) {
            return Some(program);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(variables: &[(&str, &str)]) -> Option<(Kind, Option<usize>, Option<usize>)> {
        let variable = |name: &str| {
            let mut set = variables.iter().filter(|(set, _)| *set == name);
            set.next().map(|(_, value)| value.into())
        };
        let found = Launcher::in_environment(variable)?;
        Some((found.kind, found.size, found.rank))
    }

    #[test]
    fn launchers_are_known_by_their_variables() {
        let open = [("OMPI_COMM_WORLD_SIZE", "4"), ("OMPI_COMM_WORLD_RANK", "3")];
        assert_eq!(told(&open), Some((Kind::OpenMpi, Some(4), Some(3))));
        let pmi = [("PMI_SIZE", "2"), ("PMI_RANK", "1")];
        assert_eq!(told(&pmi), Some((Kind::Other, Some(2), Some(1))));
        let hydra = [&pmi[..], &[("MPI_LOCALNRANKS", "2")]].concat();
        assert_eq!(told(&hydra), Some((Kind::Hydra, Some(2), Some(1))));
        let slurm = [("SLURM_STEP_NUM_TASKS", "8"), ("SLURM_PROCID", "0")];
        assert_eq!(told(&slurm), Some((Kind::Other, Some(8), Some(0))));
        let both = [&slurm[..], &open].concat();
        assert_eq!(told(&both), Some((Kind::OpenMpi, Some(4), Some(3))));
        let pmix = [("PMIX_RANK", "5")];
        assert_eq!(told(&pmix), Some((Kind::Other, None, Some(5))));
    }

    #[test]
    fn one_process_and_a_batch_script_are_no_ranks() {
        assert_eq!(told(&[]), None);
        assert_eq!(told(&[("SLURM_NTASKS", "8"), ("SLURM_PROCID", "0")]), None);
        assert_eq!(told(&[("OMPI_COMM_WORLD_SIZE", "1")]), None);
        assert_eq!(told(&[("SLURM_STEP_NUM_TASKS", "1")]), None);
        assert_eq!(told(&[("PMI_SIZE", "many")]), None);
    }
}
