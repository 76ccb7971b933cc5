//! Fastest variants on this very machine, kept between runs: the winners of
//! `allpairs tune`, which `auto` takes instead of the general preference.
//!
//! Winners are kept for a device, its driver and the kernels of this program: another driver may
//! compile better, other kernels may be faster. What cannot be read or does not fit is ignored, with
//! a message: a cache is there to help.

use std::io::Write;
use std::path::{Path, PathBuf};

use gpu_kernels::numerics::Precision;
use gpu_kernels::schedule::ScheduleName;
use serde::{Deserialize, Serialize};

use crate::io::{Overwrite, Printable, write_atomically};
use crate::physics::ForceLaw;
use crate::ptx;
use crate::selection::{self, Place, Request, Selection};
use crate::variants::preferred::ForceAccuracy;
use crate::variants::{Catalogue, Method, Positions, Shape, Variant};
use crate::variants::{RootName, Threads};

/// Environment variable that says where the cache lies.
pub const FOLDER_VARIABLE: &str = "ALLPAIRS_CACHE_DIR";

/// The version of the file's form.
const VERSION: u32 = 1;

/// Factor by which a run may have more, or fewer, bodies than a winner was found at.
const REACH: f64 = 2.0;

/// The file's name in its folder.
const FILE: &str = "tuned.json";

/// Path of the cache: in the folder that `ALLPAIRS_CACHE_DIR` names, or `allpairs` in the user's
/// cache folder; `None` where there is no such thing.
pub fn path() -> Option<PathBuf> {
    let variable = |name| std::env::var_os(name).filter(|value| !value.is_empty());
    let folder = variable(FOLDER_VARIABLE).map(PathBuf::from).or_else(|| {
        let user = variable("XDG_CACHE_HOME")
            .map(PathBuf::from)
            .or_else(|| Some(PathBuf::from(variable("HOME")?).join(".cache")))
            .or_else(|| variable("LOCALAPPDATA").map(PathBuf::from))?;
        Some(user.join("allpairs"))
    })?;
    Some(folder.join(FILE))
}

/// Forces to compute.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Wanted {
    /// The law.
    pub law: ForceLaw,
    /// Error that forces may have.
    pub accuracy: ForceAccuracy,
    /// Of how many bodies.
    pub bodies: usize,
}

/// Key under which winners are kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Key {
    /// The device.
    pub device: String,
    /// Driver of the device, where there is one.
    pub driver: Option<String>,
    /// The program and its kernels.
    pub kernels: String,
    /// The law.
    pub law: String,
    /// Error that forces may have.
    #[serde(default)]
    pub accuracy: ForceAccuracy,
}

impl Key {
    /// Of a place, a law and an accuracy, for the kernels of this program.
    pub fn of(place: &Place, law: ForceLaw, accuracy: ForceAccuracy) -> Self {
        let version = env!("CARGO_PKG_VERSION");
        let kernels = match place {
            place if place.gpus().is_empty() => version.to_owned(),
            _ => format!("{version}-{:08x}", ptx::checksum()),
        };
        Self {
            device: place.device(),
            driver: place.driver(),
            kernels,
            law: format!("{:?}", law.of_kernels()),
            accuracy,
        }
    }

    /// Returns whether another key is for the same forces on the same device.
    fn rivals(&self, other: &Self) -> bool {
        let of = |key: &Self| (key.device.clone(), key.law.clone(), key.accuracy);
        of(self) == of(other)
    }
}

/// The fastest at a number of bodies.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Winner {
    /// Number of bodies.
    pub bodies: u64,
    /// The variant.
    pub kernel: String,
    /// Launch geometry.
    pub shape: Shape,
    /// Seconds that one evaluation took.
    pub seconds: f64,
}

/// Winners of one device.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Tuned {
    #[serde(flatten)]
    key: Key,
    winners: Vec<Winner>,
}

/// The winners of all devices that were tuned.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Cache {
    tuned: Vec<Tuned>,
}

/// Reason why a cache, or a winner in it, is of no use.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CacheFault {
    /// The file system failed.
    #[error(transparent)]
    Io(#[from] std::io::Error),
    /// Not JSON, or not of this form.
    #[error("{}", Printable(.0))]
    Json(#[from] serde_json::Error),
    /// Another version of the form.
    #[error("it is of version {0}, and this program knows {VERSION}")]
    Version(u32),
}

#[derive(Serialize, Deserialize)]
struct File<T> {
    version: u32,
    tuned: T,
}

impl Cache {
    /// Reads a cache; one that is not there is empty.
    ///
    /// # Errors
    /// The reason why it is ignored.
    pub fn read(path: &Path) -> Result<Self, CacheFault> {
        let text = match std::fs::read_to_string(path) {
            Err(fault) if fault.kind() == std::io::ErrorKind::NotFound => {
                return Ok(Self::default());
            }
            text => text?,
        };
        // The version decides whether the rest can be understood.
        let File { version, tuned } = serde_json::from_str::<File<serde_json::Value>>(&text)?;
        if version != VERSION {
            return Err(CacheFault::Version(version));
        }
        Ok(Self {
            tuned: serde_json::from_value(tuned)?,
        })
    }

    /// Writes it, whole or not at all.
    ///
    /// # Errors
    /// Failures of the file system.
    pub fn write(&self, path: &Path) -> Result<(), CacheFault> {
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder)?;
        }
        let file = File {
            version: VERSION,
            tuned: &self.tuned,
        };
        write_atomically(path, Overwrite::Allow, |target| {
            serde_json::to_writer_pretty(&mut *target, &file)?;
            Ok(target.write_all(b"\n")?)
        })
    }

    /// Keeps winners, in the place of those for the same numbers of bodies, and of those that other
    /// kernels or drivers had on the same device.
    pub fn keep(&mut self, key: &Key, winners: Vec<Winner>) {
        let mut kept = winners;
        for tuned in self.tuned.iter().filter(|tuned| tuned.key == *key) {
            for old in &tuned.winners {
                if kept.iter().all(|new| new.bodies != old.bodies) {
                    kept.push(old.clone());
                }
            }
        }
        kept.sort_by_key(|winner| winner.bodies);
        self.tuned.retain(|tuned| !tuned.key.rivals(key));
        self.tuned.push(Tuned {
            key: key.clone(),
            winners: kept,
        });
    }

    /// The winner for a number of bodies, if one was found near it.
    pub fn winner(&self, key: &Key, bodies: usize) -> Option<&Winner> {
        let tuned = self.tuned.iter().find(|tuned| tuned.key == *key)?;
        let distance = |winner: &&Winner| (winner.bodies as f64 / bodies as f64).ln().abs();
        let nearest = tuned
            .winners
            .iter()
            .min_by(|a, b| distance(a).total_cmp(&distance(b)));
        nearest.filter(|winner| distance(winner) <= REACH.ln())
    }

    /// Returns whether there are winners for this device that another program or driver found.
    fn is_outdated(&self, key: &Key) -> bool {
        let mut keys = self.tuned.iter().map(|tuned| &tuned.key);
        keys.any(|other| other.rivals(key) && other != key)
    }
}

/// Improves a choice that was left to the program by the cache at `path`; also returns what is to
/// be said about it. Winners are for one system of bodies that all have mass, without jerks. Other
/// choices, and kernels that the user named, are left as they are.
pub fn improve(
    chosen: Selection,
    path: &Path,
    request: &Request,
    catalogue: &Catalogue,
) -> (Selection, Option<String>) {
    let is_another = request.systems > 1
        || request.integrator.needs_jerks()
        || chosen.variant.has_sources_apart()
        || chosen.variant.takes_steps_by_warps();
    if request.kernel.is_some() || is_another {
        return (chosen, None);
    }
    let wanted = &Wanted {
        law: request.law,
        accuracy: request.accuracy.unwrap_or_default(),
        bodies: request.bodies,
    };
    let ignored = |why: String| format!("ignoring the tuned kernels in {}: {why}", path.display());
    let cache = match Cache::read(path) {
        Ok(cache) => cache,
        Err(fault) => return (chosen, Some(ignored(fault.to_string()))),
    };
    let key = Key::of(&chosen.place, wanted.law, wanted.accuracy);
    let Some(winner) = cache.winner(&key, wanted.bodies) else {
        let why = "another driver or other kernels were tuned";
        let message = cache.is_outdated(&key).then(|| ignored(why.to_owned()));
        return (chosen, message);
    };
    match usable(winner, &chosen.place, wanted, catalogue) {
        Ok(variant) => {
            let tuned = Selection {
                variant,
                shape: winner.shape,
                why: format!("{}, tuned at {} bodies", chosen.why, winner.bodies),
                place: chosen.place,
            };
            (tuned, None)
        }
        Err(why) => (chosen, Some(ignored(why))),
    }
}

/// The winner's variant, if it can run there.
fn usable(
    winner: &Winner,
    place: &Place,
    wanted: &Wanted,
    catalogue: &Catalogue,
) -> Result<&'static Variant, String> {
    let variant = catalogue
        .find(&winner.kernel)
        .map_err(|why| why.to_string())?;
    selection::eligible(variant, place, wanted.law).map_err(|why| why.to_string())?;
    if variant.wrong.is_some() || !may_win(variant, wanted.accuracy) {
        return Err(format!("`auto` may not take kernel `{}`", variant.name));
    }
    let shaped = variant.shaped(winner.shape).ok_or_else(|| {
        format!(
            "kernel `{}` has no such shape as {:?}",
            variant.name, winner.shape
        )
    })?;
    let fits = selection::fits(&shaped, place, wanted.law, wanted.bodies);
    fits.map_err(|why| why.to_string()).map(|()| variant)
}

/// Returns whether `auto` may take it: forces of this accuracy, for every system, without copies
/// and libraries beside the driver.
pub fn may_win(variant: &Variant, accuracy: ForceAccuracy) -> bool {
    let computed = match accuracy {
        ForceAccuracy::Fast | ForceAccuracy::Single => [Precision::F32; 2],
        ForceAccuracy::Double => [Precision::F64, Precision::DoubleSingle],
    };
    let right = variant.wrong.is_none()
        && computed.contains(&variant.precision())
        && computed.contains(&variant.stored())
        && !variant.is_tensor()
        && (accuracy == ForceAccuracy::Fast || !variant.is_separated());
    right
        && match variant.method {
            Method::Reference | Method::Systems(_) => false,
            Method::Cpu(path) => path.root != RootName::Estimated && path.threads == Threads::All,
            Method::Kernel { positions, .. } => {
                positions == Positions::Device
                    && variant.schedule() != ScheduleName::OneThread
                    && !variant.needs_library()
                    && !variant.has_sources_apart()
            }
        }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::selection::{DeviceChoice, select};

    fn winner(bodies: u64, kernel: &str) -> Winner {
        Winner {
            bodies,
            kernel: kernel.into(),
            shape: Shape::default(),
            seconds: 0.1,
        }
    }

    fn on_cpu(bodies: usize) -> Selection {
        select(&Request::new(bodies).on(DeviceChoice::Cpu)).expect("there is a CPU")
    }

    /// Kernel that `auto` takes for 1000 bodies where the cache is this text, and what is said.
    fn with(text: &str) -> (&'static str, String) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tuned.json");
        std::fs::write(&path, text).unwrap();
        let (selection, said) = improve(
            on_cpu(1000),
            &path,
            &Request::new(1000),
            &Catalogue::general(),
        );
        (selection.variant.name, said.unwrap_or_default())
    }

    #[test]
    fn winners_are_kept_and_taken_near_their_number_of_bodies() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("new/tuned.json");
        assert_eq!(Cache::read(&path).unwrap(), Cache::default());
        let key = Key::of(&Place::CPU, ForceLaw::Gravity, ForceAccuracy::Single);
        let mut cache = Cache::default();
        cache.keep(
            &key,
            vec![winner(1000, "cpu-one-sided-f32"), winner(4000, "cpu-f32")],
        );
        cache.keep(&key, vec![winner(4000, "cpu-shared-edge-f32")]);
        cache.write(&path).unwrap();
        assert_eq!(Cache::read(&path).unwrap(), cache);

        let taken = |bodies| cache.winner(&key, bodies).map(|w| w.kernel.as_str());
        assert_eq!(taken(1000), Some("cpu-one-sided-f32"));
        assert_eq!(taken(500), Some("cpu-one-sided-f32"));
        assert_eq!(taken(499), None);
        assert_eq!(taken(2001), Some("cpu-shared-edge-f32"));
        assert_eq!(taken(8000), Some("cpu-shared-edge-f32"));
        assert_eq!(taken(8001), None);
        let other = Key::of(&Place::CPU, ForceLaw::Unit, ForceAccuracy::Single);
        assert_eq!(cache.winner(&other, 1000), None);

        let double = Key::of(&Place::CPU, ForceLaw::Gravity, ForceAccuracy::Double);
        assert_eq!(cache.winner(&double, 1000), None);
        assert!(!cache.is_outdated(&double));

        let (selection, said) = improve(
            on_cpu(900),
            &path,
            &Request::new(900),
            &Catalogue::general(),
        );
        assert_eq!((selection.variant.name, said), ("cpu-one-sided-f32", None));
        assert!(selection.why.contains("tuned at 1000 bodies"));

        let driver = Key {
            driver: Some("newer".into()),
            ..key.clone()
        };
        cache.keep(&driver, vec![]);
        assert_eq!(cache.winner(&key, 1000), None);
        assert!(cache.is_outdated(&key));
    }

    #[test]
    fn kernels_for_few_sources_are_not_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tuned.json");
        let taken = |sources| {
            let request = Request {
                sources,
                ..Request::new(1000).on(DeviceChoice::Emulator)
            };
            let chosen = select(&request).expect("there is an emulator");
            let key = Key::of(&chosen.place, ForceLaw::Gravity, ForceAccuracy::Single);
            let mut cache = Cache::default();
            cache.keep(&key, vec![winner(1000, "tiled")]);
            cache.write(&path).unwrap();
            let (chosen, said) = improve(chosen, &path, &request, &Catalogue::general());
            assert_eq!(said, None);
            chosen.variant
        };
        assert_eq!(taken(1000).name, "tiled");
        assert!(taken(10).has_sources_apart());
    }

    #[test]
    fn what_is_of_no_use_is_ignored_aloud() {
        let preferred = crate::variants::preferred::cpu(ForceAccuracy::Single);
        for (text, why) in [
            ("", "EOF"),
            ("{\"version\":1,\"tuned\":[", "EOF"),
            ("{\"version\":1,\"tuned\":7}", "invalid type"),
            ("{\"version\":9,\"tuned\":[]}", "version 9"),
            ("[1, 2]", "invalid"),
        ] {
            let (taken, said) = with(text);
            assert_eq!(taken, preferred, "{text}");
            assert!(said.contains(why) && said.contains("ignoring"), "{said}");
        }
        let key = serde_json::to_string(&Key::of(
            &Place::CPU,
            ForceLaw::Gravity,
            ForceAccuracy::Single,
        ))
        .unwrap();
        let of = |kernel: &str, shape: &str| {
            let key = key.trim_end_matches('}');
            format!(
                "{{\"version\":1,\"tuned\":[{key},\"winners\":[{{\"bodies\":1000,\
                 \"kernel\":\"{kernel}\",\"shape\":{shape},\"seconds\":1}}]}}]}}"
            )
        };
        let none = "{\"block\":null,\"len\":null,\"luf\":null}";
        for text in [
            of("cpu-f32", none).replace("\"single\"", "\"\u{7f}ingle\""),
            of("cpu-\\u001b[31m", none),
        ] {
            let (_, said) = with(&text);
            let is_shown = said.contains("\\u{7f}ingle") || said.contains("\\u{1b}[31m");
            assert!(
                is_shown && !said.trim_end().contains(char::is_control),
                "{said:?}"
            );
        }
        assert_eq!(
            with(&of("cpu-one-sided-f32", none)),
            ("cpu-one-sided-f32", String::new())
        );
        for (kernel, shape, why) in [
            ("gone", none, "no kernel `gone`"),
            ("tiled", none, "GPU code"),
            ("cpu-f32-approximate", none, "may not take"),
            (
                "cpu-f32",
                "{\"block\":64,\"len\":null,\"luf\":null}",
                "no such shape",
            ),
        ] {
            let (taken, said) = with(&of(kernel, shape));
            assert_eq!(taken, preferred, "{kernel}");
            assert!(said.contains(why), "{said}");
        }
    }
}
