//! `allpairs completions` and `allpairs man`: made of the command line's own definitions.

use std::fs;
use std::io::Write;
use std::path::PathBuf;

use anyhow::Context;
use clap::Command;
use clap_complete::Shell;

/// Completions for which shell.
#[derive(Debug, clap::Args)]
pub(super) struct CompletionOptions {
    /// The shell.
    shell: Shell,
}

/// Man pages where.
#[derive(Debug, clap::Args)]
pub(super) struct ManOptions {
    /// Folder for the pages, one a command; made where it is missing.
    folder: PathBuf,
}

pub(super) fn completions(
    options: &CompletionOptions,
    mut program: Command,
    out: &mut impl Write,
) -> anyhow::Result<()> {
    // Into memory first: the generator cannot hand on a closed pipe.
    let mut script = vec![];
    clap_complete::generate(options.shell, &mut program, "allpairs", &mut script);
    Ok(out.write_all(&script)?)
}

pub(super) fn man(
    options: &ManOptions,
    program: Command,
    out: &mut impl Write,
) -> anyhow::Result<()> {
    let folder = &options.folder;
    fs::create_dir_all(folder)
        .and_then(|()| clap_mangen::generate_to(program, folder))
        .with_context(|| format!("cannot write man pages to {}", folder.display()))?;
    writeln!(out, "wrote the man pages to {}", folder.display())?;
    Ok(())
}
