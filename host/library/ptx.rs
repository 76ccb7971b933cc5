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
            kernels: Kernels::Embedded { generation },
        })
    });
    modules.collect()
});

static ARCHIVE: LazyLock<Archive> = LazyLock::new(|| Archive::read(EMBEDDED));

/// The file that the build script chose.
static EMBEDDED: &[u8] = include_bytes!(env!("ALLPAIRS_KERNELS"));

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
        let kernels = Kernels::Given { head, kernels };
        Self { sm, ftz, kernels }
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

/// The newest embedded module that a device can run, or `None` where the device is older than
/// all of them.
///
/// `compute_capability` is 10 · major + minor. PTX is forward compatible: a module for an older
/// generation runs on every newer one, without what the newer one added.
pub fn module_for(compute_capability: u32, ftz: bool) -> Option<&'static PtxModule> {
    newest(&PTX_MODULES, compute_capability, ftz)
}

fn newest(modules: &[PtxModule], compute_capability: u32, ftz: bool) -> Option<&PtxModule> {
    let runs = |module: &&PtxModule| module.sm <= compute_capability && module.ftz == ftz;
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
        let newest = |device, ftz| newest(&modules, device, ftz).map(|module| module.sm);
        assert_eq!(newest(90, false), Some(90));
        assert_eq!(newest(120, false), Some(90));
        assert_eq!(newest(89, false), Some(80));
        assert_eq!(newest(75, false), Some(75));
        assert_eq!(newest(90, true), Some(80));
        assert_eq!(newest(75, true), None);
        assert_eq!(newest(70, false), None);
    }
}
