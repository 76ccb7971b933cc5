//! Checkpoints: all that a run needs to continue as if it had never stopped. Their bytes are in `format.rs`.
//!
//! A new checkpoint is complete and on disk before it replaces the last one, which is kept as
//! `checkpoint.previous`: whenever a run is killed, one of them is whole.

mod format;

use std::fs::{self, File};
use std::io::{self, BufReader};
use std::path::{Path, PathBuf};

use thiserror::Error;

use self::format::VERSION;
use crate::backend::SavedState;
use crate::bodies::{Bodies, Body, BodyFault, BodyKind};
use crate::diagnostics::{Brought, Conserved, Lost};
use crate::io::{Overwrite, write_atomically};
use crate::simulation::Clock;
use crate::test_particles::Origin;

/// The names under which checkpoints lie in a run's folder, in the order in which to look.
const NAMES: [&str; 3] = ["checkpoint.new", "checkpoint", "checkpoint.previous"];

/// A run, stopped between two steps.
#[derive(Clone, Debug, PartialEq)]
pub struct Checkpoint {
    /// Time and steps reached.
    pub clock: Clock,
    /// The conserved quantities of its beginning, for the drift.
    pub origin: Conserved,
    /// The largest [drift of the energy](crate::diagnostics::Sample::energy_drift) so far.
    pub largest_drift: f64,
    /// Settings of the run that decide its physics, as [the recording was told](crate::recording::Recording::of_settings).
    pub settings: String,
    /// The bodies, as they are now.
    pub bodies: Bodies,
    /// The backend's state.
    pub state: SavedState,
    /// State that the run keeps beside its bodies.
    pub kept: Kept,
}

/// State that a run keeps beside its bodies.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Kept {
    /// Numbers of [test particles](crate::test_particles) at the beginning, one for each body; empty where
    /// there are none.
    pub particles: Vec<Origin>,
    /// Radii of the bodies; empty where no [encounters](crate::encounters) are looked for.
    pub radii: Vec<f64>,
    /// Quantities that mergers and removed bodies took with them.
    pub lost: Lost,
    /// Quantities that changes from outside brought.
    pub brought: Brought,
    /// Steps of a leapfrog that a step is worth, if it was chosen for the bodies at the start and stays.
    pub chosen_step: Option<f64>,
}

/// Reason why a file is not a checkpoint to continue from.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum CheckpointFault {
    /// It is something else, or of a later version.
    #[error("it is not a checkpoint of this version of the program")]
    Foreign,
    /// It is of an earlier version.
    #[error(
        "it is of format {0}, of an earlier version of the program, and this one reads format \
         {VERSION}: finish the run with that version, or begin another from its last snapshot"
    )]
    Earlier(u32),
    /// It is a folder, a device or a pipe.
    #[error("it is not a regular file")]
    NotAFile,
    /// It is shorter or longer than its number of bodies asks for.
    #[error("it has {found} bytes and should have {expected}: it was cut off or is damaged")]
    Size {
        /// Bytes by its header.
        expected: u64,
        /// Bytes that there are.
        found: u64,
    },
    /// The checksum is not that of the content.
    #[error("its checksum is wrong: it is damaged")]
    Checksum,
    /// Times, steps or a frame that no run has.
    #[error("its header has {0} that no run has: it is damaged")]
    Impossible(&'static str),
    /// A number that no run has.
    #[error("{0}; the run went wrong before this checkpoint")]
    Body(#[from] BodyFault),
    /// The file system failed.
    #[error("{0}")]
    Io(#[from] io::Error),
}

/// The checkpoint of a folder, and what had to be passed over to find it.
#[derive(Debug)]
pub struct Found {
    /// The latest sound checkpoint, and its file.
    pub checkpoint: Option<(Checkpoint, PathBuf)>,
    /// Files that are no sound checkpoints.
    pub unsound: Vec<(PathBuf, CheckpointFault)>,
}

/// Looks for the latest sound checkpoint in `folder`.
pub fn find(folder: &Path) -> Found {
    let mut unsound = vec![];
    for path in NAMES.map(|name| folder.join(name)) {
        match read(&path) {
            Ok(checkpoint) => {
                return Found {
                    checkpoint: Some((checkpoint, path)),
                    unsound,
                };
            }
            Err(CheckpointFault::Io(fault)) if fault.kind() == io::ErrorKind::NotFound => {}
            Err(fault) => unsound.push((path, fault)),
        }
    }
    Found {
        checkpoint: None,
        unsound,
    }
}

/// Returns whether a folder has files that may be checkpoints.
pub fn exists(folder: &Path) -> bool {
    NAMES.iter().any(|name| folder.join(name).exists())
}

/// Writes a checkpoint into `folder`; the one before stays as `checkpoint.previous`.
///
/// # Errors
/// The file system's refusal; the checkpoint before is still there then.
pub fn write(folder: &Path, checkpoint: &Checkpoint) -> io::Result<()> {
    let [new, ..] = NAMES.map(|name| folder.join(name));
    write_atomically(&new, Overwrite::Allow, |file| checkpoint.write_to(file))?;
    take_place(folder)
}

/// Gives the latest checkpoint of `folder` its name, which a process that was killed may not have come
/// to do.
///
/// # Errors
/// The file system's refusal.
pub(crate) fn tidy(folder: &Path) -> io::Result<()> {
    let [new, ..] = NAMES.map(|name| folder.join(name));
    match new.exists() && read(&new).is_ok() {
        true => take_place(folder),
        false => Ok(()),
    }
}

/// Puts the new checkpoint in the place of the last one.
fn take_place(folder: &Path) -> io::Result<()> {
    let [new, current, previous] = NAMES.map(|name| folder.join(name));
    match fs::rename(&current, &previous) {
        Err(fault) if fault.kind() != io::ErrorKind::NotFound => return Err(fault),
        _ => {}
    }
    fs::rename(&new, &current)
}

/// Reads a checkpoint.
///
/// # Errors
/// The reason why it is not one to continue from.
pub fn read(path: &Path) -> Result<Checkpoint, CheckpointFault> {
    // Before it is opened: a pipe would be waited for.
    if !fs::metadata(path)?.is_file() {
        return Err(CheckpointFault::NotAFile);
    }
    let file = File::open(path)?;
    let found = file.metadata()?.len();
    Checkpoint::read_from(BufReader::with_capacity(1 << 16, file), found)
}

/// The bodies of a backend's state.
fn bodies_of(state: &SavedState, mass: &[f64], id: &[u64], kind: &[BodyKind]) -> Bodies {
    let (positions, velocities) = (state.positions(), state.velocities());
    let mut bodies = Bodies::with_capacity(mass.len());
    for i in 0..mass.len() {
        bodies.push(Body {
            position: state.frame.position_from_local(positions[i]),
            velocity: state.frame.velocity_from_local(velocities[i]),
            mass: mass[i],
            id: id[i],
            kind: kind[i],
        });
    }
    bodies
}

impl SavedState {
    /// The bodies at this state, which are `bodies` otherwise.
    pub(crate) fn bodies_like(&self, bodies: &Bodies) -> Bodies {
        bodies_of(self, &bodies.mass, &bodies.id, &bodies.kind)
    }

    /// The first body of which a coordinate or the acceleration is not finite.
    pub(crate) fn first_not_finite(&self) -> Option<usize> {
        let is_finite = |vector: &[f64; 3]| vector.iter().all(|x| x.is_finite());
        let columns = [self.positions(), self.velocities(), self.accelerations()];
        let firsts = columns.map(|column| column.iter().position(|vector| !is_finite(vector)));
        firsts.into_iter().flatten().min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::Column;
    use crate::diagnostics::Energy;
    use crate::force::cpu::samples::cloud;
    use crate::frame::Frame;
    use crate::simulation::Followed;

    fn checkpoint(n: usize, steps: u64) -> Checkpoint {
        let mut bodies = cloud(n, steps);
        (0..n).for_each(|i| bodies.kind[i] = BodyKind::ALL[i % 3]);
        let vectors = |seed| {
            let c = cloud(n, seed);
            (0..n).map(|i| [c.x[i], c.y[i], c.z[i]]).collect::<Vec<_>>()
        };
        let frame = Frame {
            centre: [0.0; 3],
            length: 4.0,
            mass: 0.5,
            time: 2.0,
        };
        let of_vectors = |seed| vectors(seed).into_flattened();
        let mut state = SavedState::of(frame, |column| match column {
            Column::Positions => of_vectors(1),
            Column::Velocities => of_vectors(2),
            Column::Accelerations => of_vectors(3),
            Column::Jerks if steps.is_multiple_of(2) => of_vectors(4),
            Column::Higher if steps.is_multiple_of(4) => [of_vectors(5), of_vectors(6)].concat(),
            Column::OwnSteps if steps.is_multiple_of(4) => bodies.x.clone(),
            Column::Spheres if steps.is_multiple_of(4) => {
                let radius = |i: usize| match i % 2 {
                    0 => bodies.x[i].abs(),
                    _ => f64::INFINITY,
                };
                let spheres = (0..n).flat_map(|i| [radius(i), 2.0 * bodies.x[i]]);
                spheres.collect()
            }
            _ => vec![],
        });
        if steps.is_multiple_of(3) {
            state.groups = vec![1.0, -0.5, steps as f64];
        }
        for i in 0..n {
            [bodies.x[i], bodies.y[i], bodies.z[i]] =
                frame.position_from_local(state.positions()[i]);
            [bodies.vx[i], bodies.vy[i], bodies.vz[i]] =
                frame.velocity_from_local(state.velocities()[i]);
        }
        let energy = Energy {
            kinetic: 0.25,
            potential: -1.0 / 3.0,
            external: 0.0,
            lost: 0.0,
            brought: 0.0,
        };
        let physics = crate::physics::Physics {
            law: crate::physics::ForceLaw::Gravity,
            g: 1.0,
            softening: 0.0,
        };
        Checkpoint {
            clock: Clock {
                start: 1.0,
                time: 1.0 + 0.1 * steps as f64,
                steps,
                dt: 0.1,
                counted_from: (1.25, steps / 2),
                followed: None,
            },
            origin: Conserved::measure(1.0, &bodies, &physics, energy),
            largest_drift: 1e-9 * steps as f64,
            settings: "softening = 0.1\n".repeat(steps as usize % 3),
            kept: Kept {
                particles: if steps.is_multiple_of(3) {
                    vectors(7)
                } else {
                    vec![]
                },
                radii: if steps.is_multiple_of(5) {
                    vec![0.5; n]
                } else {
                    vec![]
                },
                lost: if steps.is_multiple_of(5) {
                    Lost {
                        energy: 0.5,
                        momentum: [1.0, 2.0, 3.0],
                        angular_momentum: [4.0, 5.0, 6.0],
                    }
                } else {
                    Lost::default()
                },
                brought: if steps.is_multiple_of(7) {
                    Brought {
                        energy: -0.5,
                        mass: 0.25,
                        momentum: [1.0, -2.0, 3.0],
                        angular_momentum: [4.0, 5.0, -6.0],
                    }
                } else {
                    Brought::default()
                },
                chosen_step: steps.is_multiple_of(7).then_some(5.0),
            },
            bodies,
            state,
        }
    }

    fn found(folder: &Path) -> (u64, usize) {
        let found = find(folder);
        let steps = found.checkpoint.map_or(0, |(c, _)| c.clock.steps);
        (steps, found.unsound.len())
    }

    #[test]
    fn nothing_is_lost() {
        let folder = tempfile::tempdir().unwrap();
        assert!(!exists(folder.path()) && find(folder.path()).checkpoint.is_none());
        for (n, steps) in [(9, 35), (7, 4), (1, 5), (100, 6)] {
            let written = checkpoint(n, steps);
            write(folder.path(), &written).unwrap();
            let mut bytes = vec![];
            written.write_to(&mut bytes).unwrap();
            assert_eq!(bytes, fs::read(folder.path().join("checkpoint")).unwrap());
            let (read, path) = find(folder.path()).checkpoint.unwrap();
            assert_eq!(read, written);
            assert!(path.ends_with("checkpoint"));
        }
        assert_eq!(
            read(&folder.path().join("checkpoint.previous")).unwrap(),
            checkpoint(1, 5)
        );
        assert!(exists(folder.path()));
    }

    /// The columns of a state stand in the file as the description says.
    #[test]
    fn columns_have_their_order_and_flags() {
        let mut written = checkpoint(2, 4);
        written.origin.kinetic_of_whole = 0.0;
        let (mut bytes, state) = (vec![], &written.state);
        written.write_to(&mut bytes).unwrap();
        assert_eq!(bytes[20..24], (1_u32 + 2 + 4 + 64).to_le_bytes());
        let mut columns = vec![];
        let vectors = [state.positions(), state.velocities(), state.accelerations()];
        columns.extend(vectors.concat().as_flattened());
        columns.extend(state.jerks().as_flattened());
        columns.extend(state.higher().as_flattened().as_flattened());
        columns.extend(state.own_steps());
        let [first, second] = state.spheres() else {
            panic!("two bodies")
        };
        assert_eq!(second.radius, f64::INFINITY);
        columns.extend([first.radius, first.regular_step, 0.0, second.regular_step]);
        let columns: Vec<u8> = columns.iter().flat_map(|x| x.to_le_bytes()).collect();
        let begin = 232 + written.settings.len() + 2 * 17;
        assert_eq!(bytes[begin..bytes.len() - 4], columns);
    }

    /// Runs go on from files of earlier versions, so a checkpoint keeps its bytes: with all parts, and with none.
    #[test]
    fn files_keep_their_bytes() {
        let all = [0.75, 0.5];
        let followed = |since| {
            Some(Followed {
                first: 1.125,
                times: 3,
                since,
                before: 0.25,
            })
        };
        let parts = [
            (420, all, Some(5.0), followed(Some(1.5))),
            (420, all, Some(5.0), followed(None)),
            (420, all, Some(5.0), None),
            (420, all, None, None),
            (421, [0.0; 2], None, None),
        ];
        let found = parts.map(|(steps, energies, chosen_step, followed)| {
            let mut written = checkpoint(2, steps);
            written.kept.chosen_step = chosen_step;
            written.clock.followed = followed;
            [
                written.origin.energy.external,
                written.origin.kinetic_of_whole,
            ] = energies;
            let mut bytes = vec![];
            written.write_to(&mut bytes).unwrap();
            let read = Checkpoint::read_from(&*bytes, bytes.len() as u64);
            assert_eq!(read.unwrap(), written);
            let (_, checksum) = bytes.split_last_chunk().unwrap();
            let flags = bytes[20..].first_chunk().unwrap();
            let numbers = [flags, checksum].map(|bytes| u32::from_le_bytes(*bytes));
            (bytes.len(), numbers)
        });
        let of_parts = [
            (878, [4095, 0xf728_4eba]),
            (878, [4095, 0x29ba_4dbd]),
            (846, [2047, 0x0561_2f11]),
            (838, [1023, 0xd58f_6de2]),
            (430, [0, 0xead1_68ee]),
        ];
        assert_eq!(found, of_parts);
    }

    /// Every byte counts: one that is changed or missing is noticed, and the checkpoint before is
    /// taken instead.
    #[test]
    fn damage_is_noticed_and_the_one_before_taken() {
        let folder = tempfile::tempdir().unwrap();
        let current = folder.path().join("checkpoint");
        write(folder.path(), &checkpoint(3, 1)).unwrap();
        write(folder.path(), &checkpoint(3, 2)).unwrap();
        let whole = fs::read(&current).unwrap();
        for at in 0..whole.len() {
            let mut damaged = whole.clone();
            damaged[at] ^= 0x10;
            fs::write(&current, &damaged).unwrap();
            assert_eq!(found(folder.path()), (1, 1), "byte {at} changed");
            fs::write(&current, &whole[..at]).unwrap();
            assert_eq!(found(folder.path()), (1, 1), "cut off at {at}");
        }
        fs::write(&current, &whole).unwrap();
        assert_eq!(found(folder.path()), (2, 0));
    }

    /// Killed between the steps of writing: after the new one is complete, and after the old one is
    /// renamed.
    #[test]
    fn killed_while_writing() {
        let folder = tempfile::tempdir().unwrap();
        write(folder.path(), &checkpoint(3, 1)).unwrap();
        let other = tempfile::tempdir().unwrap();
        write(other.path(), &checkpoint(3, 2)).unwrap();
        let new = folder.path().join("checkpoint.new");
        fs::copy(other.path().join("checkpoint"), new).unwrap();
        assert_eq!(found(folder.path()), (2, 0));
        let [current, previous] =
            ["checkpoint", "checkpoint.previous"].map(|n| folder.path().join(n));
        fs::rename(current, previous).unwrap();
        assert_eq!(found(folder.path()), (2, 0));
        write(folder.path(), &checkpoint(3, 3)).unwrap();
        assert_eq!(found(folder.path()), (3, 0));
    }
    #[test]
    fn of_another_format_it_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        write(folder.path(), &checkpoint(3, 1)).unwrap();
        let path = folder.path().join("checkpoint");
        let mut bytes = fs::read(&path).unwrap();
        for (version, part) in [
            (1_u32, "of format 1"),
            (3, "not a checkpoint of this version"),
        ] {
            bytes[16..20].copy_from_slice(&version.to_le_bytes());
            fs::write(&path, &bytes).unwrap();
            let fault = read(&path).unwrap_err().to_string();
            assert!(fault.contains(part), "{fault}");
        }
        fs::remove_file(&path).unwrap();
        fs::create_dir(&path).unwrap();
        assert!(matches!(read(&path), Err(CheckpointFault::NotAFile)));
    }
}
