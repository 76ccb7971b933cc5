//! The files of a run that the program itself writes: the configuration, the final snapshot and its
//! picture.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use allpairs::bodies::Bodies;
use allpairs::checkpoint;
use allpairs::io::{Format, Overwrite, Snapshot, is_partial};
use allpairs::output::{DensityPicture, Figure};
use allpairs::recording::{self, Lock};
use allpairs::selection::Selection;
use allpairs::units::Units;
use anyhow::{Context, ensure};

use crate::config;
use crate::options::Options;
use crate::say;

/// Name of the file with a run's options, in its folder.
pub(super) const CONFIG: &str = "run.toml";

/// Folder for outputs if none is given.
const OUT: &str = "allpairs-out";

/// The files that a run will write; known before it starts, so that it does not end in a refusal.
pub(super) struct Outputs {
    pub(super) folder: PathBuf,
    snapshot: PathBuf,
    picture: PathBuf,
    /// False if the picture is left out.
    draws: bool,
    format: Format,
    pub(super) units: Option<Units>,
    overwrite: Overwrite,
}

impl Outputs {
    /// Prepares the outputs of a run that is to begin.
    pub(super) fn prepare(options: &Options, format: Format) -> anyhow::Result<Self> {
        let out = options.out.clone();
        let folder = out.unwrap_or_else(|| unused_folder(&options.input));
        let snapshot = folder.join("final").with_extension(format.extension());
        let picture = folder.join("final.png");
        for path in [&snapshot, &picture, &folder.join(CONFIG)] {
            ensure!(
                options.overwrite || !path.exists(),
                "{} is there already{}: give another folder with --out, or --overwrite",
                path.display(),
                or_continue(&folder)
            );
        }
        Ok(Self {
            folder,
            snapshot,
            picture,
            draws: !options.kept.no_picture,
            format,
            units: options.force.units,
            overwrite: Overwrite::from(options.overwrite),
        })
    }

    /// Returns an error if the folder could not be made, or written to, before the first force is computed. Leaves no
    /// trace.
    pub(super) fn check_folder(&self) -> anyhow::Result<()> {
        let whole = std::path::absolute(&self.folder)?;
        let there = whole.ancestors().find(|path| path.exists());
        let there = there.unwrap_or(&whole);
        let file = tempfile::tempfile_in(there);
        file.map(drop).with_context(|| {
            let folder = self.folder.display();
            match there == whole {
                true => format!("cannot write to the folder {folder}"),
                false => format!("cannot make the folder {folder}"),
            }
        })
    }

    /// Makes their folder. Nothing before this writes: a run that is refused leaves no trace.
    pub(super) fn make_folder(&self) -> anyhow::Result<()> {
        fs::create_dir_all(&self.folder)
            .with_context(|| format!("cannot make the folder {}", self.folder.display()))
    }

    /// The files of a run that lies in `folder`, to be replaced at its end.
    pub(super) fn of_run(folder: &Path, options: &Options, format: Format) -> Self {
        Self {
            folder: folder.to_owned(),
            snapshot: folder.join("final").with_extension(format.extension()),
            picture: folder.join("final.png"),
            draws: !options.kept.no_picture,
            format,
            units: options.force.units,
            overwrite: Overwrite::Allow,
        }
    }

    /// Claims the folder for this process, until the claim is dropped.
    pub(super) fn claim(&self) -> anyhow::Result<Lock> {
        recording::lock(&self.folder)
            .with_context(|| format!("cannot use {}", self.folder.display()))
    }

    /// Removes what an earlier run left, if that was asked for, and what was never finished.
    pub(super) fn clear(&self, out: &mut impl Write) -> anyhow::Result<()> {
        let mut files = recording::leftovers(&self.folder)?;
        files.extend(finals(&self.folder)?);
        files.extend(Some(self.folder.join(CONFIG)).filter(|path| path.exists()));
        for path in files {
            ensure!(
                self.overwrite == Overwrite::Allow || is_partial(&path),
                "{} is there already: give another folder with --out, or --overwrite",
                path.display()
            );
            remove(&path, "of an earlier run", out)?;
        }
        Ok(())
    }

    pub(super) fn write_config(
        &self,
        table: &toml::Table,
        selection: &Selection,
    ) -> anyhow::Result<()> {
        let kernel = selection.variant.name;
        let text = config::text(table, kernel, &selection.place.to_string());
        let path = self.folder.join(CONFIG);
        allpairs::io::write_atomically(&path, self.overwrite, |file| {
            file.write_all(text.as_bytes())
        })
        .with_context(|| format!("cannot write {}", path.display()))
    }

    /// Writes the final snapshot and its picture. Where the picture is left out, none of an earlier snapshot stays.
    pub(super) fn write(
        &self,
        time: f64,
        bodies: &Bodies,
        out: &mut impl Write,
    ) -> anyhow::Result<()> {
        let snapshot = Snapshot {
            time,
            bodies: bodies.clone(),
        };
        let (path, format) = (&self.snapshot, self.format);
        allpairs::io::write_in_units(path, format, &snapshot, self.units, self.overwrite)?;
        writeln!(out, "wrote {}", self.snapshot.display())?;
        if !self.draws {
            if self.picture.exists() {
                remove(&self.picture, "of an earlier snapshot", out)?;
            }
            return Ok(());
        }
        let figure = Figure {
            picture: DensityPicture::default(),
            units: self.units,
        };
        figure.write(&self.picture, &snapshot, self.overwrite)?;
        writeln!(out, "wrote {}", self.picture.display())?;
        Ok(())
    }
}

/// Removes a file, and says so.
fn remove(path: &Path, which: &str, out: &mut impl Write) -> anyhow::Result<()> {
    fs::remove_file(path).with_context(|| format!("cannot remove {}", path.display()))?;
    writeln!(out, "removed {}, {which}", path.display())?;
    Ok(())
}

/// Units of the run that lies in a folder, if they are known.
pub(super) fn units_of_run(folder: &Path) -> Option<Units> {
    config::units(&config::read(&folder.join(CONFIG)).ok()?)
}

/// Returns whether a file has the name of a run's snapshot.
pub(super) fn is_of_run(path: &Path) -> bool {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    stem == "final" || stem.starts_with("snapshot")
}

/// Final snapshots of a run in this folder, in whatever formats, and their picture.
pub(super) fn finals(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let is_final = |path: &PathBuf| {
        let is_picture = path.extension().is_some_and(|extension| extension == "png");
        path.file_stem().is_some_and(|stem| stem == "final")
            && (is_picture || Format::from_path(path).is_some())
    };
    let paths = fs::read_dir(folder)?.map(|entry| Ok(entry?.path()));
    let paths = paths.collect::<anyhow::Result<Vec<_>>>()?;
    Ok(paths.into_iter().filter(is_final).collect())
}

/// `allpairs-out/galaxy`, or `galaxy-2`, … if that is there.
fn unused_folder(input: &Path) -> PathBuf {
    let stem = input
        .file_stem()
        .unwrap_or(input.as_os_str())
        .to_string_lossy();
    let numbered = (2..).map(|k| Path::new(OUT).join(format!("{stem}-{k}")));
    std::iter::once(Path::new(OUT).join(&*stem))
        .chain(numbered)
        .find(|folder| !folder.exists())
        .expect("some number is free")
}

/// Hint that a folder holds a run that can be continued, if it does.
fn or_continue(folder: &Path) -> String {
    if checkpoint::exists(folder) {
        let folder = say::as_argument(folder);
        format!(" (`allpairs resume {folder}` continues that run)")
    } else {
        String::new()
    }
}
