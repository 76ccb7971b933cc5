//! The header line of a checked-in module: what it was made of, by which compiler and how.

use crate::NvptxArch;
use std::fmt;

/// The first line of a checked-in module.
pub(crate) struct Header {
    pub(crate) label: String,
    pub(crate) arch: NvptxArch,
    pub(crate) compiler: String,
    pub(crate) flags: Vec<String>,
    pub(crate) sources: u64,
}

impl fmt::Display for Header {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            label,
            arch,
            compiler,
            flags,
            sources,
        } = self;
        let flags = flags.join(" ");
        write!(
            f,
            "// {label} {arch} | {compiler} | flags {flags} | sources {sources:016x}"
        )
    }
}

impl Header {
    /// `None` for text that does not begin with a header.
    pub(crate) fn read(module: &str) -> Option<Self> {
        let line = module.lines().next()?.strip_prefix("// ")?;
        let mut parts = line.split(" | ");
        let (label, arch) = parts.next()?.rsplit_once(' ')?;
        let compiler = parts.next()?;
        let flags = parts.next()?.strip_prefix("flags ")?;
        let sources = parts.next()?.strip_prefix("sources ")?;
        Some(Self {
            label: label.to_owned(),
            arch: arch.parse().ok()?,
            compiler: compiler.to_owned(),
            flags: flags.split(' ').map(str::to_owned).collect(),
            sources: u64::from_str_radix(sources, 16).ok()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_back() {
        let header = Header {
            label: "program kernels".to_owned(),
            arch: NvptxArch::Sm90,
            compiler: "rustc 1.97.0-nightly (012345678), LLVM 22.1".to_owned(),
            flags: vec![
                "-Ctarget-cpu=sm_90".to_owned(),
                "-Cllvm-args=-a -b".to_owned(),
            ],
            sources: 0x00ab_cdef,
        };
        let line = header.to_string();
        assert!(line.ends_with(" | sources 0000000000abcdef"), "{line}");
        let read = Header::read(&format!("{line}\n.version 8.1\n")).unwrap();
        assert_eq!(read.to_string(), line);
        assert_eq!((read.arch, read.sources), (header.arch, header.sources));
        assert_eq!((read.label, read.compiler), (header.label, header.compiler));
    }

    #[test]
    fn a_line_that_lacks_a_part_is_no_header() {
        for line in [
            "",
            ".version 8.1",
            "// program kernels sm_90 | rustc 1 | flags -O",
            "// program kernels sm_1 | rustc 1 | flags -O | sources 01",
            "// program kernels sm_90 | rustc 1 | flags -O | sources g",
        ] {
            assert!(Header::read(line).is_none(), "{line}");
        }
    }
}
