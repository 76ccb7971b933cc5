//! Ranks: processes that an MPI launcher started, which compute one run together.

#[cfg(not(target_os = "linux"))]
pub(super) use self::alone::{asked_to_stop, name_of, take_part};
#[cfg(target_os = "linux")]
pub(super) use self::of_mpi::{asked_to_stop, name_of, take_part};

/// Elsewhere each process is a run of its own.
#[cfg(not(target_os = "linux"))]
mod alone {
    use std::ffi::OsString;
    use std::sync::Arc;

    use allpairs::ranks::Team;

    pub(crate) fn take_part(_: &[OsString], _: impl FnOnce(&Arc<Team>) -> u8) -> Option<u8> {
        None
    }

    pub(crate) fn asked_to_stop() {}

    pub(crate) fn name_of(team: &Team) -> String {
        format!("rank {} of {}", team.rank(), team.size())
    }
}

#[cfg(target_os = "linux")]
mod of_mpi {
    use std::ffi::OsString;
    use std::sync::Arc;
    use std::thread;
    use std::time::Duration;

    use allpairs::force::ranked;
    use allpairs::ranks::mpi::{self, Cores, Launcher, Processes, Refused};
    use allpairs::ranks::{Member, Ranks, Team};
    use anyhow::anyhow;

    use crate::exit;
    use crate::say::{self, counted};
    use crate::signals;
    use crate::threads;
    use crate::version::COMMIT;

    /// Commands that ranks share, or refuse; others are done by each process for itself.
    const SHARED: [&str; 3] = ["run", "resume", "systems"];

    /// Launchers lose what was written just before an end with an error.
    const TIME_TO_READ: Duration = Duration::from_millis(200);

    /// Name of this process among the ranks of `team`, for messages.
    pub(crate) fn name_of(team: &Team) -> String {
        format!(
            "rank {} of {} on {}",
            team.rank(),
            team.size(),
            mpi::machine()
        )
    }

    /// Notes that the run is to stop.
    pub(crate) fn asked_to_stop() {
        mpi::asked_to_stop();
    }

    /// Takes part in a run of several ranks, if this process is one of them, and returns its exit code.
    /// Rank 0 does `work`; the others carry out what rank 0 sends them.
    pub(crate) fn take_part(
        arguments: &[OsString],
        work: impl FnOnce(&Arc<Team>) -> u8,
    ) -> Option<u8> {
        let command = arguments.get(1).map(|command| command.to_string_lossy());
        if command.is_some_and(|command| !SHARED.contains(&&*command)) {
            return None;
        }
        let launcher = Launcher::find()?;
        mpi::supervise(&launcher);
        let processes = match Processes::join(&launcher) {
            Ok(processes) => processes,
            Err(Refused::AsOthersSay) => return Some(exit::UNAVAILABLE),
            Err(why) => {
                exit::report(&anyhow!(why).context("cannot run on several ranks"), None);
                return Some(exit::UNAVAILABLE);
            }
        };
        let code = join(processes, arguments, work);
        if code != exit::SUCCESS {
            thread::sleep(TIME_TO_READ);
        }
        Processes::finish();
        Some(code)
    }

    fn join(
        processes: Processes,
        arguments: &[OsString],
        work: impl FnOnce(&Arc<Team>) -> u8,
    ) -> u8 {
        let (cores, library) = (processes.cores(), processes.library().to_owned());
        let is_first = processes.rank() == 0;
        let asked = threads::asked_for();
        let number = asked
            .as_ref()
            .ok()
            .copied()
            .flatten()
            .unwrap_or(cores.threads);
        let text = |argument: &OsString| argument.to_string_lossy().into_owned();
        let arguments: Vec<String> = arguments.iter().skip(1).map(text).collect();
        let member = Member {
            version: format!(
                "{} (commit {COMMIT}, {})",
                env!("CARGO_PKG_VERSION"),
                std::env::consts::ARCH
            ),
            arguments: arguments.join(" "),
            threads: number,
        };
        let team = match Team::new(Box::new(processes), &member) {
            Ok(team) => Arc::new(team),
            // The first speaks for all.
            Err(differs) if is_first => return exit::report(&anyhow!(differs), None),
            Err(_) => return exit::SUCCESS,
        };
        if let Err(error) = asked.and_then(|_| threads::start(Some(number))) {
            team.abort(exit::USAGE, &format!("{error:#}"));
        }
        if !is_first {
            // What the first is asked to do it does with the others, which therefore stay.
            return match signals::on_stop(asked_to_stop) {
                Ok(()) => {
                    ranked::follow(&team);
                    exit::SUCCESS // what became of the run the first says
                }
                Err(why) => team.abort(
                    exit::UNAVAILABLE,
                    &format!("cannot listen for signals: {why}"),
                ),
            };
        }
        say::tell(format_args!("{}", summary(&team, cores, &library)));
        ranked::keep_in_touch(&team);
        let code = work(&team);
        ranked::part(&team);
        code
    }

    fn summary(team: &Team, cores: Cores, library: &str) -> String {
        let (mut threads, size) = (team.threads().to_vec(), team.size());
        threads.sort_unstable();
        threads.dedup();
        let threads = match threads[..] {
            [each] => counted(each, "thread", "threads"),
            [least, .., most] => format!("{least} to {most} threads"),
            [] => unreachable!("there are ranks"),
        };
        let machines = counted(cores.machines, "machine", "machines");
        format!("{size} ranks with {threads} each on {machines}, by {library}")
    }
}
