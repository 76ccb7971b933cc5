//! Options of a run, from the command line and from a file, and the file that a run leaves.

use std::fs;

use allpairs::fields;
use allpairs::integrator::TimeSteps;
use allpairs::io::Format;
use allpairs::run::{End, Run};
use allpairs::variants::Shape;
use anyhow::Context;
use clap::{ArgMatches, CommandFactory, FromArgMatches};

use crate::config;
use crate::options::Options;

/// The options of a run, as the program takes them and as a file would have them.
pub(super) struct Asked {
    pub(super) options: Options,
    pub(super) table: toml::Table,
}

impl Asked {
    pub(super) fn parse<const N: usize>(arguments: [&str; N]) -> anyhow::Result<Self> {
        Self::of(&Options::command().try_get_matches_from(arguments)?)
    }

    pub(super) fn of(matches: &ArgMatches) -> anyhow::Result<Self> {
        let options = Options::from_arg_matches(matches)?;
        let file = &options.input;
        if file.extension().is_none_or(|extension| extension != "toml") {
            let table = config::table(matches);
            return Ok(Self { options, table });
        }
        let table = config::read(file)?;
        Self::of_table(&table, Some(matches))
            .with_context(|| format!("in the configuration {}", file.display()))
    }

    /// Options of a file, overridden by those that were `given`.
    pub(super) fn of_table(
        table: &toml::Table,
        given: Option<&ArgMatches>,
    ) -> anyhow::Result<Self> {
        let matches = config::matches(table, given)?;
        let (options, table) = (
            Options::from_arg_matches(&matches)?,
            config::table(&matches),
        );
        Ok(Self { options, table })
    }

    /// The table, with what was chosen: it holds for runs and resumptions of this table.
    pub(super) fn with_choices(&self, run: &Run, format: Format) -> toml::Table {
        let spec = &run.spec;
        let is_of_blocks = spec.time_steps() == TimeSteps::Blocks;
        let mut table = self.table.clone();
        if spec.accuracy.is_none() {
            table.remove("accuracy"); // the kernel has it
        }
        let mut set = |key: &str, value: toml::Value| drop(table.insert(key.into(), value));
        set("softening", run.physics.softening.into());
        set("gravity", run.physics.g.into());
        if let Some(units) = spec.units {
            set("units", units.list().into());
        }
        set("snapshot-format", format.name().into());
        set("integrator", run.integrator.name().into());
        if is_of_blocks {
            set("block-steps", true.into());
            // Without a value they are followed later.
            if let Some(groups) = spec.groups {
                set("groups", if groups { "on" } else { "off" }.into());
            }
        }
        if let Some(eta) = spec.eta {
            set("eta", eta.into());
        }
        if let Some(neighbours) = spec.neighbours.filter(|_| is_of_blocks) {
            set("neighbours", neighbours.to_string().into());
        }
        if self.options.generator().is_some() {
            let seed = self.options.made.options.seed;
            let whole = i64::try_from(seed).map(toml::Value::from);
            set("seed", whole.unwrap_or_else(|_| seed.to_string().into()));
        }
        set("kernel", run.selection.variant.name.into());
        // For a kernel of the CPU that is named, as it is here, computes one system otherwise.
        if spec.systems > 1 {
            set("independent", true.into());
        }
        set("device", spec.device.to_string().into());
        let Shape { block, len, luf } = spec.shape;
        for (key, tuned) in [("block", block), ("len", len), ("luf", luf)] {
            if let Some(tuned) = tuned.filter(|_| !self.table.contains_key(key)) {
                set(key, i64::from(tuned).into());
            }
        }
        if let Some(dt) = spec.dt {
            set("dt", dt.into());
        }
        if let End::Steps(steps) = spec.end
            && let Ok(steps) = i64::try_from(steps)
        {
            set("steps", steps.into());
        }
        let fields = self.options.force.fields.iter();
        let fields: Vec<toml::Value> = fields.map(|text| whole_path(text).into()).collect();
        if !fields.is_empty() {
            set("field", fields.into());
        }
        let radii = self.options.encounters.file();
        if let Some(path) = radii.and_then(|file| fs::canonicalize(file).ok()) {
            set(
                "radius-of-bodies",
                path.to_string_lossy().into_owned().into(),
            );
        }
        let changes = self.options.changes.as_ref();
        if let Some(path) = changes.and_then(|file| fs::canonicalize(file).ok()) {
            set("changes", path.to_string_lossy().into_owned().into());
        }
        if let Ok(path) = fs::canonicalize(&self.options.input) {
            set("input", path.to_string_lossy().into_owned().into());
        }
        table
    }
}

/// A field with the whole path of its file, if it has one.
fn whole_path(field: &str) -> String {
    let file = fields::file_of(field);
    let whole = file.and_then(|file| Some((file, fs::canonicalize(file).ok()?)));
    match whole {
        Some((file, whole)) => field.replacen(file, &whole.to_string_lossy(), 1),
        None => field.to_owned(),
    }
}
