//! The compiled kernels as text.
//!
//! The kernels in `gpu-kernels` are compiled to one PTX module per GPU generation, and the library
//! embeds them all, packed kernel by kernel. This module picks the one that a device can run
//! ([`module_for`]) and unpacks kernels of it ([`PtxModule::entry_text`]). None of it needs a GPU.

mod packed;
pub mod text;

use std::collections::BTreeMap;
use std::sync::LazyLock;

use cuda_driver::DeviceInfo;

use self::packed::{Archive, Packed};

/// PTX modules, from the oldest GPU generation to the newest, each precise and flushing.
pub static PTX_MODULES: LazyLock<Vec<PtxModule>> = LazyLock::new(|| {
    let generations = ARCHIVE.generations.iter().enumerate();
    let modules = generations.flat_map(|(generation, &sm)| {
        [false, true].map(|ftz| PtxModule {
            sm,
            ftz,
            version: text::version(&ARCHIVE.records[HEAD].text(generation)),
            kernels: Kernels::Embedded { generation },
        })
    });
    modules.collect()
});

static ARCHIVE: LazyLock<Archive> = LazyLock::new(|| Archive::read(EMBEDDED));

/// The file that the build script chose.
static EMBEDDED: &[u8] = include_bytes!(env!("ALLPAIRS_KERNELS"));

/// Versions of PTX, and the CUDA version that brought each: NVIDIA's manual of PTX, "Release Notes".
const CUDA_OF_PTX: [((u32, u32), (u32, u32)); 25] = [
    ((6, 0), (9, 0)),
    ((6, 1), (9, 1)),
    ((6, 2), (9, 2)),
    ((6, 3), (10, 0)),
    ((6, 4), (10, 1)),
    ((6, 5), (10, 2)),
    ((7, 0), (11, 0)),
    ((7, 1), (11, 1)),
    ((7, 2), (11, 2)),
    ((7, 3), (11, 3)),
    ((7, 4), (11, 4)),
    ((7, 5), (11, 5)),
    ((7, 6), (11, 6)),
    ((7, 7), (11, 7)),
    ((7, 8), (11, 8)),
    ((8, 0), (12, 0)),
    ((8, 1), (12, 1)),
    ((8, 2), (12, 2)),
    ((8, 3), (12, 3)),
    ((8, 4), (12, 4)),
    ((8, 5), (12, 5)),
    ((8, 6), (12, 7)),
    ((8, 7), (12, 8)),
    ((8, 8), (12, 9)),
    ((9, 0), (13, 0)),
];

/// Character in the embedded texts where `ftz` adds a modifier.
const FLUSH: char = '\u{1}';

/// Name, in the embedded file, of what stands before the first kernel of a module.
const HEAD: &str = "";

/// The kernels, compiled for one GPU generation and one treatment of denormal numbers.
#[derive(Debug)]
pub struct PtxModule {
    /// The oldest compute capability that can run it, as 10 · major + minor (sm_90 is 90).
    pub sm: u32,
    /// True if f32 arithmetic flushes denormal numbers to zero (the `ftz` build) or keeps them.
    pub ftz: bool,
    /// Version of PTX that it is written in, if it says.
    version: Option<(u32, u32)>,
    kernels: Kernels,
}

#[derive(Debug)]
enum Kernels {
    /// In the embedded file.
    Embedded {
        /// Counted from the oldest.
        generation: usize,
    },
    /// Compiled elsewhere.
    Given {
        head: String,
        /// The text of each kernel, from its name's line up to the next kernel.
        kernels: BTreeMap<String, String>,
    },
}

impl PtxModule {
    /// A module of this text, compiled elsewhere.
    pub fn from_text(sm: u32, ftz: bool, text: &str) -> Self {
        let (head, kernels) = text::parts(text);
        let version = text::version(&head);
        let kernels = Kernels::Given { head, kernels };
        Self {
            sm,
            ftz,
            version,
            kernels,
        }
    }

    /// Oldest CUDA version (major, minor) with a driver that compiles it. `None` where it is not known: the
    /// module is in a version of PTX that is newer than this program.
    pub fn oldest_cuda(&self) -> Option<(u32, u32)> {
        let version = self.version?;
        let known = CUDA_OF_PTX.iter().find(|(ptx, _)| *ptx == version);
        known.map(|(_, cuda)| *cuda)
    }

    /// Returns whether a driver for this CUDA version compiles it. A driver is asked where nothing is known.
    pub fn is_compiled_by(&self, driver: (u32, u32)) -> bool {
        self.oldest_cuda().is_none_or(|oldest| driver >= oldest)
    }

    /// The newest embedded module of an older generation that has this kernel in the same build.
    pub fn older(&self, entry: &str) -> Option<&'static PtxModule> {
        let has = |module: &&PtxModule| {
            module.sm < self.sm
                && module.ftz == self.ftz
                && module.entries().any(|known| known == entry)
        };
        let modules = PTX_MODULES.iter().filter(has);
        modules.max_by_key(|module| module.sm)
    }

    /// The PTX itself, which is megabytes.
    pub fn text(&self) -> String {
        let kernels = self.entries().map(|entry| self.part(entry));
        let texts = [self.head()]
            .into_iter()
            .chain(kernels.map(|text| text.expect("listed")));
        texts.collect()
    }

    /// A module of the kernel `entry` alone, for a driver to compile: a run needs half a dozen of
    /// some 300.
    ///
    /// # Errors
    /// See [`entry_text`](Self::entry_text).
    pub fn alone(&self, entry: &str) -> Result<String, PtxError> {
        Ok(format!("{}{}\n", self.head(), self.entry_text(entry)?))
    }

    /// The names of its kernels, sorted.
    pub fn entries(&self) -> impl Iterator<Item = &str> {
        let names: Vec<&str> = match &self.kernels {
            Kernels::Embedded { generation } => {
                let all = ARCHIVE.records.iter();
                let mine = all.filter(|(name, packed)| **name != HEAD && packed.is_of(*generation));
                mine.map(|(name, _)| *name).collect()
            }
            Kernels::Given { kernels, .. } => kernels.keys().map(String::as_str).collect(),
        };
        names.into_iter()
    }

    /// The text of one kernel, from its `.visible .entry` to its closing brace.
    ///
    /// # Errors
    /// [`PtxError::EntryNotFound`], or [`PtxError::Malformed`] where the module ends inside the
    /// kernel.
    pub fn entry_text(&self, entry: &str) -> Result<String, PtxError> {
        let part = self.part(entry).ok_or_else(|| PtxError::EntryNotFound {
            entry: entry.into(),
        })?;
        let text = text::entry(&part).ok_or_else(|| PtxError::Malformed {
            entry: entry.into(),
            line: text::line_of(&part, part.len()),
            reason: "the module ends before the kernel's closing brace".into(),
        })?;
        Ok(text.to_owned())
    }

    /// The text before the first kernel.
    fn head(&self) -> String {
        match &self.kernels {
            Kernels::Embedded { generation } => self.unpacked(&ARCHIVE.records[HEAD], *generation),
            Kernels::Given { head, .. } => head.clone(),
        }
    }

    /// The text of one kernel, and what stands between it and its neighbours.
    fn part(&self, entry: &str) -> Option<String> {
        match &self.kernels {
            Kernels::Embedded { generation } => {
                let packed = ARCHIVE.records.get(entry).filter(|_| entry != HEAD)?;
                let is_mine = packed.is_of(*generation);
                is_mine.then(|| self.unpacked(packed, *generation))
            }
            Kernels::Given { kernels, .. } => kernels.get(entry).cloned(),
        }
    }

    fn unpacked(&self, packed: &Packed, generation: usize) -> String {
        let flush = if self.ftz { ".ftz" } else { "" };
        packed.text(generation).replace(FLUSH, flush)
    }
}

/// A number that tells embedded modules of other kernels apart.
pub(crate) fn checksum() -> u32 {
    crc32fast::hash(EMBEDDED)
}

/// Compute capability as PTX targets count it: 90 for 9.0.
pub(crate) fn capability(info: &DeviceInfo) -> u32 {
    info.compute_capability.0 * 10 + info.compute_capability.1
}

/// The newest embedded module that a device can run and its driver compiles. `None` where the device or
/// the driver is older than all of them.
///
/// PTX is forward compatible: a module for an older generation runs on every newer one, without what
/// the newer one added.
pub fn module_for(info: &DeviceInfo, ftz: bool) -> Option<&'static PtxModule> {
    newest(&PTX_MODULES, capability(info), info.driver_version, ftz)
}

/// Like [`module_for`], but by a driver of any age.
pub fn module_of_generation(info: &DeviceInfo, ftz: bool) -> Option<&'static PtxModule> {
    newest(&PTX_MODULES, capability(info), (u32::MAX, 0), ftz)
}

fn newest(
    modules: &[PtxModule],
    compute_capability: u32,
    driver: (u32, u32),
    ftz: bool,
) -> Option<&PtxModule> {
    let runs = |module: &&PtxModule| {
        module.sm <= compute_capability && module.ftz == ftz && module.is_compiled_by(driver)
    };
    modules.iter().filter(runs).max_by_key(|module| module.sm)
}

/// Reason why a kernel's PTX could not be described.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PtxError {
    /// The module has no kernel of this name.
    #[error("this PTX module has no kernel `{entry}`")]
    EntryNotFound {
        /// The name that was asked for.
        entry: String,
    },
    /// The text is not PTX as this module knows it.
    #[error("kernel `{entry}`, line {line} of its PTX: {reason}")]
    Malformed {
        /// The kernel being read.
        entry: String,
        /// Line in the kernel's text, counted from 1.
        line: usize,
        /// Fault found there.
        reason: String,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    fn module(sm: u32, ftz: bool) -> PtxModule {
        PtxModule::from_text(sm, ftz, "")
    }

    const NEW: (u32, u32) = (13, 0);

    #[test]
    fn a_driver_takes_the_newest_module_that_it_compiles() {
        let of_sm = |sm: u32| {
            let of_sm = |module: &&PtxModule| module.sm == sm && !module.ftz;
            PTX_MODULES.iter().find(of_sm).expect("embedded")
        };
        let oldest = |sm| of_sm(sm).oldest_cuda();
        assert_eq!(oldest(75), Some((10, 0)));
        assert_eq!(oldest(80), Some((11, 8)));
        assert_eq!(oldest(90), Some((12, 1)));
        let taken = |device, driver| newest(&PTX_MODULES, device, driver, true).map(|m| m.sm);
        assert_eq!(taken(90, (12, 1)), Some(90));
        assert_eq!(taken(90, (12, 0)), Some(80));
        assert_eq!(taken(90, (11, 8)), Some(80));
        assert_eq!(taken(80, (11, 4)), Some(75));
        assert_eq!(taken(75, (9, 2)), None);
        // By a kernel that all generations have, and one that needs Ampere's matrix instructions.
        let everywhere = of_sm(75).entries().next().expect("some");
        let older = |sm: u32, entry: &str| of_sm(sm).older(entry).map(|m| (m.sm, m.ftz));
        assert_eq!(older(90, everywhere), Some((80, false)));
        assert_eq!(older(80, everywhere), Some((75, false)));
        assert_eq!(older(75, everywhere), None);
        let is_newer = |entry: &&str| of_sm(75).entries().all(|known| known != *entry);
        let newer = of_sm(80).entries().find(is_newer).expect("some");
        assert_eq!(older(90, newer), Some((80, false)));
        assert_eq!(older(80, newer), None);
    }

    #[test]
    fn ptx_of_an_unknown_version_is_for_the_driver_to_judge() {
        let of = |version: &str| PtxModule::from_text(90, false, &format!(".version {version}\n"));
        assert_eq!(of("8.1").oldest_cuda(), Some((12, 1)));
        assert!(!of("8.1").is_compiled_by((12, 0)) && of("8.1").is_compiled_by((12, 1)));
        assert_eq!(of("99.0").oldest_cuda(), None);
        assert!(of("99.0").is_compiled_by((9, 0)) && module(90, false).is_compiled_by((9, 0)));
    }

    #[test]
    fn the_oldest_generation_runs_kernels_without_special_needs() {
        let oldest = PTX_MODULES.iter().map(|module| module.sm).min();
        assert_eq!(oldest, Some(gpu_kernels::entries::OLDEST));
    }

    #[test]
    fn the_newest_module_that_a_device_can_run() {
        let modules = [
            module(90, false),
            module(75, false),
            module(80, true),
            module(80, false),
        ];
        let newest = |device, ftz| newest(&modules, device, NEW, ftz).map(|module| module.sm);
        assert_eq!(newest(90, false), Some(90));
        assert_eq!(newest(120, false), Some(90));
        assert_eq!(newest(89, false), Some(80));
        assert_eq!(newest(75, false), Some(75));
        assert_eq!(newest(90, true), Some(80));
        assert_eq!(newest(75, true), None);
        assert_eq!(newest(70, false), None);
    }
}
