//! The compiled kernels as text.
//!
//! The build script compiles `gpu-kernels` to one PTX module per GPU generation and denormal
//! mode and embeds them all. This module picks the one that a device can run
//! ([`module_for`]) and finds the kernels in it ([`PtxModule::entry_text`]). None of it needs a GPU.

pub mod text;

use std::collections::BTreeMap;
use std::io;
use std::sync::OnceLock;

use cuda_driver::DeviceInfo;
use flate2::read::DeflateDecoder;

use self::text::Start;

// `PTX_MODULES`, and `FLUSH`: the character where `.ftz` goes.
include!(concat!(env!("OUT_DIR"), "/ptx.rs"));

/// The kernels, compiled for one GPU generation and one treatment of denormal numbers.
#[derive(Debug)]
pub struct PtxModule {
    /// The oldest compute capability that can run it, as 10 · major + minor (sm_90 is 90).
    pub sm: u32,
    /// True if f32 arithmetic flushes denormal numbers to zero (the `ftz` build) or keeps them.
    pub ftz: bool,
    /// The text as the program carries it (RFC 1951), with a [`FLUSH`] where `ftz` adds a modifier.
    deflated: &'static [u8],
    text: OnceLock<String>,
    /// Places where its kernels begin: searched once, as there are hundreds in megabytes.
    starts: OnceLock<BTreeMap<String, Start>>,
}

impl PtxModule {
    const fn new(sm: u32, ftz: bool, deflated: &'static [u8]) -> Self {
        Self {
            sm,
            ftz,
            deflated,
            text: OnceLock::new(),
            starts: OnceLock::new(),
        }
    }

    /// The PTX itself.
    pub fn text(&self) -> &str {
        self.text.get_or_init(|| {
            let marked = io::read_to_string(DeflateDecoder::new(self.deflated))
                .expect("the build script deflated a text");
            marked.replace(FLUSH, if self.ftz { ".ftz" } else { "" })
        })
    }

    /// A module of the kernel `entry` alone, for a driver to compile: a run needs half a dozen of
    /// some 300.
    ///
    /// # Errors
    /// See [`entry_text`](Self::entry_text).
    pub fn alone(&self, entry: &str) -> Result<String, PtxError> {
        let kernel = self.entry_text(entry)?;
        let first = self.starts().values().map(|start| start.at).min();
        let before_all = &self.text()[..first.expect("one was found")];
        Ok(format!("{before_all}{kernel}\n"))
    }

    /// The names of its kernels, sorted.
    pub fn entries(&self) -> impl Iterator<Item = &str> {
        self.starts().keys().map(String::as_str)
    }

    /// The text of one kernel, from its `.visible .entry` to its closing brace.
    ///
    /// # Errors
    /// [`PtxError::EntryNotFound`], or [`PtxError::Malformed`] where the module ends inside the
    /// kernel.
    pub fn entry_text(&self, entry: &str) -> Result<&str, PtxError> {
        self.entry(entry).map(|(text, _)| text)
    }

    /// [`entry_text`](Self::entry_text), and the line in the module that it begins with.
    ///
    /// # Errors
    /// See [`entry_text`](Self::entry_text).
    pub fn entry(&self, entry: &str) -> Result<(&str, usize), PtxError> {
        let start = self.starts().get(entry);
        let Start { at, line } = *start.ok_or_else(|| PtxError::EntryNotFound {
            entry: entry.into(),
        })?;
        let text = text::up_to_closing_brace(&self.text()[at..]);
        let text = text.ok_or_else(|| PtxError::Malformed {
            entry: entry.into(),
            line: text::line_of(self.text(), self.text().len()),
            reason: "the module ends before the kernel's closing brace".into(),
        })?;
        Ok((text, line))
    }

    fn starts(&self) -> &BTreeMap<String, Start> {
        self.starts.get_or_init(|| text::entry_starts(self.text()))
    }

    /// A module of this text, compiled elsewhere.
    pub fn from_text(sm: u32, ftz: bool, text: String) -> Self {
        Self {
            text: text.into(),
            ..Self::new(sm, ftz, &[])
        }
    }

    /// A number that tells modules of other sources apart.
    pub fn checksum(&self) -> u32 {
        crc32fast::hash(self.deflated)
    }
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
    newest(PTX_MODULES, compute_capability, ftz)
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
    #[error("kernel `{entry}`, line {line} of the PTX module: {reason}")]
    Malformed {
        /// The kernel being read.
        entry: String,
        /// Line in the module's text, counted from 1.
        line: usize,
        /// Fault found there.
        reason: String,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn module(sm: u32, ftz: bool) -> PtxModule {
        PtxModule::new(sm, ftz, &[])
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
