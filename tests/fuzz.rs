//! Readers against files that no program wrote: damaged, cut, invented. Snapshots of all formats,
//! checkpoints, logs that a run goes on with, and the winners of `allpairs tune`; `run.toml` is the
//! program's, whose unit tests do the same.
//!
//! Each input is a sound file, or one of `tests/data`, changed at random; the random
//! numbers are the same in every run. A reader may refuse it or read it. It may not panic, take
//! more memory than 64 MB and ten times the input, take seconds, or return what cannot be
//! simulated.
//!
//! ```text
//! cargo test --test fuzz                                     some seconds
//! ALLPAIRS_FUZZ_SECONDS=36000 ALLPAIRS_FUZZ_SEED=7 cargo test --test fuzz -- --nocapture
//! ```
//! With `ALLPAIRS_FUZZ_ONLY=hdf5` only inputs of that kind; a `TMPDIR` in memory, such as `/dev/shm`, makes
//! it some twenty times as many.
//!
//! An input that breaks a rule is kept in the folder for temporary files, and named. Those that
//! broke one in the past belong into `tests/data/damaged`.

use std::alloc::{GlobalAlloc, Layout, System};
use std::fmt::Display;
use std::fs;
use std::io::{Cursor, Read, Write};
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use allpairs::backend::ForceError;
use allpairs::bodies::{Bodies, Body, BodyKind};
use allpairs::checkpoint::{self, Checkpoint};
use allpairs::initial_conditions::plummer;
use allpairs::integrator::{Integrator, Pace};
use allpairs::io::{Format, Overwrite, Snapshot, load, read_from, read_units, write_in_units};
use allpairs::machine::Machine;
use allpairs::output::run_log::RunLog;
use allpairs::physics::{ForceLaw, Physics};
use allpairs::recording::{Every, Plan, Recording};
use allpairs::selection::Place;
use allpairs::simulation::Simulation;
use allpairs::tuning::{Cache, Key, Winner};
use allpairs::units::Units;
use allpairs::variants::preferred::ForceAccuracy;
use allpairs::variants::{self, Shape};

mod damage;

use damage::{Random, change};

/// The system's allocator, which counts bytes.
struct Counting;

static NOW: AtomicUsize = AtomicUsize::new(0);
static MOST: AtomicUsize = AtomicUsize::new(0);

fn count(bytes: usize) {
    let now = NOW.fetch_add(bytes, Ordering::Relaxed) + bytes;
    MOST.fetch_max(now, Ordering::Relaxed);
}

// SAFETY: each method hands its arguments on to the system's allocator, whose contract is the same
// as this one's, and returns what that returns; counting touches no memory but two atomics.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size());
        // SAFETY: the caller's promise about `layout`, handed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size());
        // SAFETY: the caller's promise about `layout`, handed on.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        NOW.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller's promise that `block` came from here with `layout`, and what comes
        // from here comes from the system's allocator.
        unsafe { System.dealloc(block, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Makes checksums right again, so that what is behind them is reached.
fn mend(format: Format, bytes: &mut [u8]) {
    const HEADER: usize = 128;
    fn put(bytes: &mut [u8], at: usize, crc: u32) {
        bytes[at..at + 4].copy_from_slice(&crc.to_le_bytes());
    }
    if format != Format::Allpairs || bytes.len() < HEADER {
        return;
    }
    let n = u64::from_le_bytes(std::array::from_fn(|i| bytes[16 + i]));
    let mut at = HEADER;
    for column in 0..9 {
        let length = usize::try_from(n).unwrap_or(usize::MAX);
        let length = length.saturating_mul(if column == 8 { 1 } else { 8 });
        let Some(elements) = bytes.get(at..at.saturating_add(length)) else {
            break;
        };
        let crc = crc32fast::hash(elements);
        put(bytes, 56 + 4 * column, crc);
        at = (at + length).next_multiple_of(64);
    }
    let crc = crc32fast::hash(&bytes[..HEADER - 4]);
    put(bytes, HEADER - 4, crc);
}

/// Changes the members of an archive and packs them again, with checksums that are right.
fn change_members(random: &mut Random, seed: &[u8]) -> Option<Vec<u8>> {
    let mut archive = zip::ZipArchive::new(Cursor::new(seed)).ok()?;
    let mut members = Vec::new();
    for index in 0..archive.len() {
        let mut member = archive.by_index(index).ok()?;
        let mut content = Vec::new();
        // The seeds include an archive that unpacks to gigabytes.
        member
            .by_ref()
            .take(1 << 16)
            .read_to_end(&mut content)
            .ok()?;
        members.push((member.name().ok()?.into_owned(), content));
    }
    for _ in 0..=random.below(3) {
        let index = random.below(members.len());
        match random.below(4) {
            0 => members[index].1 = members[random.below(members.len())].1.clone(),
            1 if members.len() > 1 => drop(members.remove(index)),
            _ => {
                let content = &members[index].1;
                members[index].1 = change(random, content, content);
            }
        }
    }
    let mut packed = zip::ZipWriter::new(Cursor::new(Vec::new()));
    for (name, content) in members {
        let method = random.of(&[
            zip::CompressionMethod::Stored,
            zip::CompressionMethod::Deflated,
        ]);
        let options = zip::write::SimpleFileOptions::default()
            .compression_method(method)
            .last_modified_time(zip::DateTime::default());
        packed.start_file(name, options).ok()?;
        packed.write_all(&content).ok()?;
    }
    Some(packed.finish().ok()?.into_inner())
}

/// Sound files of a format, as Allpairs writes them.
fn sound(folder: &Path, format: Format) -> Vec<Vec<u8>> {
    let units: Units = "kpc,1e10Msun,km/s".parse().expect("a system");
    [1, 12, 100]
        .into_iter()
        .map(|n: u32| {
            let bodies: Bodies = (0..n)
                .map(|i| {
                    let t = f64::from(i);
                    Body {
                        position: [t / 8.0, -t, 1.0],
                        velocity: [0.25 * t, -0.5, 3.0],
                        mass: t / 2.0,
                        id: u64::from(3 * i + 1000),
                        kind: BodyKind::ALL[i as usize % 3],
                    }
                })
                .collect();
            let path = folder.join("seed");
            let snapshot = Snapshot {
                time: 0.625,
                bodies,
            };
            write_in_units(&path, format, &snapshot, Some(units), Overwrite::Allow)
                .expect("a sound snapshot");
            fs::read(&path).expect("it was written")
        })
        .collect()
}

/// The files in `folder` with the extension of `format`.
fn of_folder(folder: &Path, format: Format) -> Vec<Vec<u8>> {
    let mut paths: Vec<PathBuf> = fs::read_dir(folder)
        .expect("it comes with the sources")
        .map(|entry| entry.expect("it is listed").path())
        .filter(|path| {
            path.extension()
                .is_some_and(|extension| extension == format.extension())
        })
        .collect();
    paths.sort();
    paths
        .iter()
        .map(|path| fs::read(path).expect("it is there"))
        .collect()
}

/// Judges a reader of `bytes` by what it `returned`, how long it took and how much memory; returns
/// whether the bytes were read.
fn guarded<T>(
    bytes: &[u8],
    read: impl FnOnce() -> T,
    returned: impl FnOnce(T) -> Result<bool, String>,
) -> Result<bool, String> {
    let before = NOW.load(Ordering::Relaxed);
    MOST.store(before, Ordering::Relaxed);
    let start = Instant::now();
    let outcome = catch_unwind(AssertUnwindSafe(read));
    let (took, memory) = (start.elapsed(), MOST.load(Ordering::Relaxed) - before);
    let outcome = outcome.map_err(|_| "a panic".to_owned())?;
    if took > Duration::from_secs(5) {
        return Err(format!("{took:?}"));
    }
    if memory > 10 * bytes.len() + (64 << 20) {
        return Err(format!("{memory} bytes of memory for {}", bytes.len()));
    }
    returned(outcome)
}

/// A refusal with a message.
fn refused(fault: impl Display) -> Result<bool, String> {
    let message = fault.to_string();
    if message.chars().any(char::is_control) || message.len() > 4000 {
        return Err(format!("a message that is no message: {message:?}"));
    }
    Ok(false)
}

/// Reads `bytes` as a snapshot in every way there is; says which rule was broken.
fn judge(format: Format, bytes: &[u8], path: &Path) -> Result<bool, String> {
    fs::write(path, bytes).map_err(|fault| fault.to_string())?;
    let read = || {
        let in_memory = read_from(Cursor::new(bytes), Path::new("memory"), Some(format));
        let in_file = load(path, Some(format));
        let told = read_units(path, Some(format));
        (in_memory, in_file, told)
    };
    guarded(bytes, read, |(in_memory, in_file, told)| {
        match (in_memory, in_file) {
            (Ok((snapshot, _)), Ok(loaded)) => {
                if loaded.snapshot != snapshot {
                    return Err("file and memory differ".into());
                }
                if told.map_err(|fault| fault.to_string())? != loaded.units {
                    return Err("units differ".into());
                }
                let sound = snapshot.bodies.check();
                sound.map_err(|fault| format!("bad bodies: {fault}"))?;
                if snapshot.bodies.is_empty() || !snapshot.time.is_finite() {
                    return Err("a snapshot without bodies or time".into());
                }
                Ok(true)
            }
            (Err(fault), Err(_)) => refused(fault),
            (in_memory, in_file) => Err(format!(
                "file and memory differ: {:?}, {:?}",
                in_memory.err().map(|fault| fault.to_string()),
                in_file.err().map(|fault| fault.to_string())
            )),
        }
    })
}

fn number(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    Some(text.parse().expect("ALLPAIRS_FUZZ_… are whole numbers"))
}

/// Judges changed inputs of one kind until the time, or their number where there is none, is over. An
/// input that breaks a rule is kept.
fn survive(
    what: &str,
    share: Option<Duration>,
    mut input: impl FnMut() -> Vec<u8>,
    judge: impl Fn(&[u8]) -> Result<bool, String>,
) {
    /// Inputs of each kind, if no time is asked for.
    const INPUTS: u64 = 1000;
    if std::env::var("ALLPAIRS_FUZZ_ONLY").is_ok_and(|only| only != what) {
        return;
    }
    let start = Instant::now();
    let (mut inputs, mut read) = (0_u64, 0);
    while share.map_or(inputs < INPUTS, |share| start.elapsed() < share) {
        let input = input();
        match judge(&input) {
            Ok(was_read) => read += u64::from(was_read),
            Err(broken) => {
                let kept = std::env::temp_dir().join(format!("allpairs-fuzz-{inputs}.{what}"));
                fs::write(&kept, &input).expect("room for the input");
                panic!("{what}: {broken}; the input is kept as {}", kept.display());
            }
        }
        inputs += 1;
    }
    println!(
        "{what}: {inputs} inputs, {read} of them read, {:?}",
        start.elapsed()
    );
    assert!(read > 0, "{what}: no input was read");
}

const PHYSICS: Physics = Physics {
    law: ForceLaw::Gravity,
    g: 1.0,
    softening: 0.1,
};

const PLAN: Plan = Plan {
    until: None,
    steps: 12,
    diagnostics_every: Some(1),
    snapshot_every: None,
    checkpoint_every: Some(Every::Steps(5)),
    format: Format::Allpairs,
    units: None,
    time_unit: None,
};

fn backend(of: &Bodies) -> Box<dyn allpairs::backend::Backend> {
    let kernel = variants::find("cpu-f64").expect("listed");
    let machine = Machine::new(Place::CPU);
    machine.backend(kernel, of, PHYSICS).expect("a few bodies")
}

/// Folder of a run that is over, with its checkpoints and its log.
fn run(folder: &Path, integrator: Integrator) {
    let bodies = plummer(9, 4).expect("in range");
    let pace = Pace::Fixed(0.01);
    let simulation = Simulation::new(backend(&bodies), bodies, PHYSICS, integrator, pace, 0.0);
    let mut simulation = simulation.expect("a few bodies");
    let recording = Recording::begin(folder, PLAN, &mut simulation, |_| ());
    let mut recording = recording.expect("an empty folder");
    let go_on = |_: allpairs::recording::RunEvent<'_>| ControlFlow::Continue(());
    let _ = recording
        .run(&mut simulation, go_on)
        .expect("room for a record");
}

/// Makes the checksum of a checkpoint right again.
fn mend_checkpoint(bytes: &mut [u8]) {
    if let Some(end) = bytes.len().checked_sub(4) {
        let crc = crc32fast::hash(&bytes[..end]);
        bytes[end..].copy_from_slice(&crc.to_le_bytes());
    }
}

/// Reads a checkpoint, and takes a step from it.
fn judge_checkpoint(bytes: &[u8], path: &Path) -> Result<bool, String> {
    fs::write(path, bytes).map_err(|fault| fault.to_string())?;
    let read = || {
        let read = checkpoint::read(path)?;
        let stepped = step_from(&read);
        Ok::<_, checkpoint::CheckpointFault>((read, stepped))
    };
    guarded(bytes, read, |read| match read {
        Ok((read, stepped)) => {
            let sound = read.bodies.check();
            sound.map_err(|fault| format!("bad bodies: {fault}"))?;
            match stepped {
                Ok(()) => Ok(true),
                Err(fault) => refused(fault),
            }
        }
        Err(fault) => refused(fault),
    })
}

/// Continues from a checkpoint by a step.
fn step_from(checkpoint: &Checkpoint) -> Result<(), ForceError> {
    let Checkpoint {
        bodies,
        clock,
        state,
        ..
    } = checkpoint;
    let integrator = match state.jerks().is_empty() {
        true => Integrator::Leapfrog,
        false => Integrator::Hermite4,
    };
    let kernel = variants::find("cpu-f64").expect("listed");
    let backend = Machine::new(Place::CPU).backend(kernel, bodies, PHYSICS)?;
    let saved = (*clock, state);
    let mut simulation = Simulation::resume(
        backend,
        bodies.clone(),
        PHYSICS,
        integrator,
        Pace::Fixed(0.01),
        saved,
    )?;
    simulation.step()
}

/// Reads a log as charts are drawn from it, and goes on with it from a checkpoint: it does not grow, and
/// no row after the checkpoint is left.
fn judge_log(name: &str, bytes: &[u8], folder: &Path, from: &Checkpoint) -> Result<bool, String> {
    let path = folder.join(name);
    fs::write(&path, bytes).map_err(|fault| fault.to_string())?;
    let read = || {
        let charted = RunLog::read(&path);
        (charted, Recording::resume(folder, PLAN, from).map(drop))
    };
    guarded(bytes, read, |(charted, resumed)| {
        if let Err(fault) = charted {
            refused(fault)?;
        }
        if let Err(fault) = resumed {
            return refused(fault);
        }
        let left = fs::read(&path).map_err(|fault| fault.to_string())?;
        let mut rows = left.split_inclusive(|&byte| byte == b'\n');
        if left.len() > bytes.len() + rows.next().map_or(0, <[u8]>::len) {
            return Err("the log has grown".into());
        }
        let step = from.clock.steps + 1;
        let later = match name {
            "diagnostics.csv" => format!("{step},"),
            _ => format!("{{\"step\":{step},"),
        };
        if rows.any(|row| row.starts_with(later.as_bytes())) {
            return Err("a row after the checkpoint is left".into());
        }
        Ok(!left.is_empty())
    })
}

/// Reads a cache of winners; what was read is written, and then read as the same.
fn judge_cache(bytes: &[u8], path: &Path) -> Result<bool, String> {
    fs::write(path, bytes).map_err(|fault| fault.to_string())?;
    let read = || {
        let read = Cache::read(path)?;
        read.write(path)?;
        Ok::<_, allpairs::tuning::CacheFault>((Cache::read(path)?, read))
    };
    guarded(bytes, read, |read| match read {
        Ok((again, read)) if again == read => Ok(true),
        Ok(_) => Err("it is another one when it is written".into()),
        Err(fault) => refused(fault),
    })
}

/// One test, for the memory is counted for the whole process.
#[test]
fn readers_survive_what_nobody_wrote() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("input");
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    let seconds = number("ALLPAIRS_FUZZ_SECONDS");
    let seed = number("ALLPAIRS_FUZZ_SEED").unwrap_or(1);
    let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let kinds = match std::env::var_os("ALLPAIRS_FUZZ_ONLY") {
        Some(_) => 1,
        None => Format::ALL.len() + 7,
    };
    let share = seconds.map(|all| Duration::from_secs(all) / kinds as u32);

    // Compressed HDF5 is among the files of h5py.
    let formats = Format::ALL.into_iter().chain([
        Format::Gadget,
        Format::Nemo,
        Format::Rebound,
        Format::Petar,
    ]);
    for format in formats.filter(|format| *format != Format::Hdf5Gzip) {
        let sound = match format.to_write() == format {
            true => sound(folder.path(), format),
            false => of_folder(&data.join("others"), format),
        };
        for bytes in &sound {
            assert_eq!(judge(format, bytes, &path), Ok(true), "{format}");
        }
        let mut seeds: Vec<_> = ["damaged", "h5py", "numpy", "others", "vtk"]
            .iter()
            .flat_map(|folder| of_folder(&data.join(folder), format))
            .collect();
        for bytes in &seeds {
            let judged = judge(format, bytes, &path);
            assert!(judged.is_ok(), "{format}: {judged:?}");
        }
        seeds.retain(|bytes| bytes.len() < 1 << 15);
        seeds.extend(sound);
        let input = || {
            let bytes = &seeds[random.below(seeds.len())];
            let other = &seeds[random.below(seeds.len())];
            let packed = match format {
                Format::Npz if random.below(2) == 0 => change_members(&mut random, bytes),
                _ => None,
            };
            let mut input = packed.unwrap_or_else(|| change(&mut random, bytes, other));
            if random.below(4) > 0 {
                mend(format, &mut input);
            }
            input
        };
        survive(format.extension(), share, input, |bytes| {
            judge(format, bytes, &path)
        });
    }

    let runs = [Integrator::Leapfrog, Integrator::Hermite4].map(|integrator| {
        let folder = tempfile::tempdir().expect("a temporary folder");
        run(folder.path(), integrator);
        folder
    });
    let seeds = runs.each_ref().map(|folder| {
        let file = |name: &str| fs::read(folder.path().join(name)).expect("a run leaves it");
        ["checkpoint", "diagnostics.csv", "diagnostics.jsonl"].map(file)
    });
    let input = || {
        let [[bytes, ..], [other, ..]] = &seeds;
        if random.below(8) == 0 {
            let mut flipped = bytes.clone();
            flipped[random.below(bytes.len())] ^= 1 << random.below(8);
            let judged = judge_checkpoint(&flipped, &path);
            assert_eq!(judged, Ok(false), "a changed bit is noticed");
        }
        let mut input = match random.below(2) {
            0 => change(&mut random, bytes, other),
            _ => change(&mut random, other, bytes),
        };
        if random.below(4) > 0 {
            mend_checkpoint(&mut input);
        }
        input
    };
    survive("checkpoint", share, input, |bytes| {
        judge_checkpoint(bytes, &path)
    });

    let run = runs[0].path();
    let from = checkpoint::find(run)
        .checkpoint
        .expect("of the tenth step")
        .0;
    for (index, name) in [(1, "diagnostics.csv"), (2, "diagnostics.jsonl")] {
        let bytes = &seeds[0][index];
        let input = || change(&mut random, bytes, &seeds[1][index]);
        survive(name, share, input, |bytes| {
            judge_log(name, bytes, run, &from)
        });
        fs::write(run.join(name), bytes).expect("it was there");
    }

    let mut cache = Cache::default();
    let key = Key::of(&Place::CPU, ForceLaw::Gravity, ForceAccuracy::Single);
    let winner = |bodies, kernel: &str| Winner {
        bodies,
        kernel: kernel.into(),
        shape: Shape::default(),
        seconds: 0.1,
    };
    cache.keep(
        &key,
        vec![winner(1000, "cpu-one-sided-f32"), winner(4000, "cpu-f32")],
    );
    cache.write(&path).expect("room for it");
    let bytes = fs::read(&path).expect("it was written");
    let input = || change(&mut random, &bytes, &bytes);
    survive("tuned.json", share, input, |bytes| {
        judge_cache(bytes, &path)
    });
}
