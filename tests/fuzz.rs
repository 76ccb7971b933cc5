//! Readers against files that nobody wrote: damaged, cut, invented.
//!
//! Each input is a sound file, or one of `tests/data`, changed at random; the random
//! numbers are the same in every run. A reader may refuse it or read it. It may not panic, take
//! more memory than 64 MB and ten times the input, take seconds, or return bodies that cannot be
//! simulated.
//!
//! ```text
//! cargo test --test fuzz                                     some seconds
//! ALLPAIRS_FUZZ_SECONDS=36000 ALLPAIRS_FUZZ_SEED=7 cargo test --test fuzz -- --nocapture
//! ```
//! An input that breaks a rule is kept in the folder for temporary files, and named. Those that
//! broke one in the past belong into `tests/data/damaged`.

use std::alloc::{GlobalAlloc, Layout, System};
use std::fs;
use std::io::{Cursor, Read, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use allpairs::bodies::{Bodies, Body, Kind};
use allpairs::io::{Format, Overwrite, Snapshot, load, read_from, read_units, write_in_units};
use allpairs::units::Units;

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

/// Xorshift64*: the same numbers on every machine.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    fn below(&mut self, limit: usize) -> usize {
        ((self.next() >> 11) % limit.max(1) as u64) as usize
    }

    fn of<T: Copy>(&mut self, items: &[T]) -> T {
        items[self.below(items.len())]
    }
}

/// Numbers at the edges of types.
const EDGES: [u64; 16] = [
    0,
    1,
    2,
    0x7f,
    0x80,
    0xff,
    0xffff,
    0x7fff_ffff,
    0x8000_0000,
    0xffff_ffff,
    0x1_0000_0000,
    i64::MAX as u64,
    1 << 63,
    u64::MAX,
    0x7ff8_0000_0000_0000,
    0x7ff0_0000_0000_0000,
];

/// What means something in one of the formats.
const WORDS: [&str; 16] = [
    "nan",
    "-1",
    "1e999",
    "18446744073709551616",
    "\"",
    ",",
    ";",
    "\n",
    "#",
    "# bodies = 99\n",
    "<DataArray ",
    "</VTKFile>",
    "NumberOfPoints=\"18446744073709551615\"",
    "offset=\"9223372036854775807\"",
    "format=\"ascii\"",
    "99999999999",
];

/// Changes a file in one to four places.
fn change(random: &mut Random, seed: &[u8], other: &[u8]) -> Vec<u8> {
    let mut bytes = seed.to_vec();
    for _ in 0..=random.below(4) {
        if bytes.is_empty() {
            bytes.push(random.next() as u8);
        }
        let length = bytes.len();
        // Headers are at the beginning: every third change is there.
        let at = match random.below(3) {
            0 => random.below(length.min(512)),
            _ => random.below(length),
        };
        let width = random.of(&[1, 2, 4, 8]).min(length - at);
        match random.below(12) {
            0 | 1 => bytes[at] ^= 1 << random.below(8),
            2 => bytes[at] = random.next() as u8,
            3 => bytes.truncate(at),
            4 => {
                let edge = random.of(&EDGES).to_le_bytes();
                bytes[at..at + width].copy_from_slice(&edge[..width]);
                if random.below(2) == 0 {
                    bytes[at..at + width].reverse();
                }
            }
            5 => {
                let mut number = [0; 8];
                number[..width].copy_from_slice(&bytes[at..at + width]);
                let step = (random.below(33) as u64).wrapping_sub(16);
                let number = u64::from_le_bytes(number).wrapping_add(step).to_le_bytes();
                bytes[at..at + width].copy_from_slice(&number[..width]);
            }
            6 => drop(bytes.drain(at..at + random.below(64).min(length - at))),
            7 => {
                let part = bytes[at..at + random.below(128).min(length - at)].to_vec();
                let to = random.below(length + 1);
                drop(bytes.splice(to..to, part));
            }
            8 => drop(bytes.splice(at..at, random.of(&WORDS).bytes())),
            9 => {
                let from = random.below(other.len());
                let part = &other[from..from + random.below(256).min(other.len() - from)];
                let end = (at + part.len()).min(length);
                drop(bytes.splice(at..end, part.iter().copied()));
            }
            10 => bytes[at..]
                .iter_mut()
                .take(16)
                .for_each(|byte| *byte = 0xff),
            _ => bytes[at..].iter_mut().take(16).for_each(|byte| *byte = 0),
        }
    }
    bytes.truncate(1 << 20);
    bytes
}

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
                        kind: Kind::ALL[i as usize % 3],
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

/// The files in `folder` of `format`.
fn of_folder(folder: &Path, format: Format) -> Vec<Vec<u8>> {
    let mut paths: Vec<PathBuf> = fs::read_dir(folder)
        .expect("it comes with the sources")
        .map(|entry| entry.expect("it is listed").path())
        .filter(|path| Format::from_path(path) == Some(format))
        .collect();
    paths.sort();
    paths
        .iter()
        .map(|path| fs::read(path).expect("it is there"))
        .collect()
}

/// Reads `bytes` in every way there is; says which rule was broken.
fn judge(format: Format, bytes: &[u8], path: &Path) -> Result<bool, String> {
    fs::write(path, bytes).map_err(|fault| fault.to_string())?;
    let before = NOW.load(Ordering::Relaxed);
    MOST.store(before, Ordering::Relaxed);
    let start = Instant::now();
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        let in_memory = read_from(Cursor::new(bytes), Path::new("memory"), Some(format));
        let in_file = load(path, Some(format));
        let told = read_units(path, Some(format));
        (in_memory, in_file, told)
    }));
    let (took, memory) = (start.elapsed(), MOST.load(Ordering::Relaxed) - before);
    let (in_memory, in_file, told) = outcome.map_err(|_| "a panic".to_owned())?;
    if took > Duration::from_secs(5) {
        return Err(format!("{took:?}"));
    }
    if memory > 10 * bytes.len() + (64 << 20) {
        return Err(format!("{memory} bytes of memory for {}", bytes.len()));
    }
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
        (Err(fault), Err(_)) => {
            let message = fault.to_string();
            if message.chars().any(char::is_control) || message.len() > 4000 {
                return Err(format!("a message that is no message: {message:?}"));
            }
            Ok(false)
        }
        (in_memory, in_file) => Err(format!(
            "file and memory differ: {:?}, {:?}",
            in_memory.err().map(|fault| fault.to_string()),
            in_file.err().map(|fault| fault.to_string())
        )),
    }
}

fn number(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    Some(text.parse().expect("ALLPAIRS_FUZZ_… are whole numbers"))
}

/// One test, for the memory is counted for the whole process.
#[test]
fn readers_survive_what_is_no_snapshot() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("input");
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    let seconds = number("ALLPAIRS_FUZZ_SECONDS");
    let seed = number("ALLPAIRS_FUZZ_SEED").unwrap_or(1);
    /// Inputs of each format, if no time is asked for.
    const INPUTS: u64 = 1000;
    let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);

    for format in Format::ALL {
        let sound = sound(folder.path(), format);
        for bytes in &sound {
            assert_eq!(judge(format, bytes, &path), Ok(true), "{format}");
        }
        let mut seeds: Vec<_> = ["damaged", "h5py", "numpy", "vtk"]
            .iter()
            .flat_map(|folder| of_folder(&data.join(folder), format))
            .collect();
        for bytes in &seeds {
            let judged = judge(format, bytes, &path);
            assert!(judged.is_ok(), "{format}: {judged:?}");
        }
        seeds.retain(|bytes| bytes.len() < 1 << 15);
        seeds.extend(sound);
        let share = seconds.map(|all| Duration::from_secs(all) / Format::ALL.len() as u32);
        let start = Instant::now();
        let (mut inputs, mut read) = (0_u64, 0);
        while share.map_or(inputs < INPUTS, |share| start.elapsed() < share) {
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
            match judge(format, &input, &path) {
                Ok(was_read) => read += u64::from(was_read),
                Err(broken) => {
                    let kept = std::env::temp_dir().join(format!("allpairs-fuzz-{inputs}"));
                    let kept = kept.with_extension(format.extension());
                    fs::write(&kept, &input).expect("room for the input");
                    panic!(
                        "{format}: {broken}; the input is kept as {}",
                        kept.display()
                    );
                }
            }
            inputs += 1;
        }
        println!(
            "{format}: {inputs} inputs, {read} of them read, {:?}",
            start.elapsed()
        );
        assert!(read > 0, "{format}: no input was read");
    }
}
