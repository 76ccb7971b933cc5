//! `allpairs list`.

use std::io::Write;

use allpairs::rules::together;
use allpairs::selection::library;
use allpairs::variants::{VARIANTS, Variant};
use allpairs_lab::choices::differences as differences_of;
use allpairs_lab::studies::{self, STUDIES, Study};

use crate::tables;

/// Kernels to list.
#[derive(Debug, clap::Args)]
pub(super) struct Options {
    /// Only the rungs of this study's ladder: venus, gtx1060, galaxies, gtx980 or ecl.
    #[arg(long)]
    study: Option<String>,
    /// Features of runs instead, with the devices that compute each and the features that it cannot be
    /// combined with.
    #[arg(long, conflicts_with = "study")]
    together: bool,
}

pub(super) fn list(options: &Options, out: &mut impl Write) -> anyhow::Result<()> {
    if options.together {
        write!(out, "{}", together())?;
        return Ok(());
    }
    if let Some(name) = &options.study {
        return ladder(studies::find(name)?, out);
    }
    let mut table = tables::table(&["kernel", "after", "differs in", "what it is"]);
    for variant in VARIANTS {
        table.add_row([
            variant.name,
            variant.predecessor.unwrap_or_default(),
            &differences(variant),
            variant.summary,
        ]);
    }
    tables::wrap_sentences(&mut table);
    writeln!(out, "{table}")?;
    writeln!(
        out,
        "and the ladders of studies, which `allpairs list --study NAME` shows:"
    )?;
    for study in STUDIES {
        writeln!(out, "  {}: {}", study.name, study.summary)?;
    }
    Ok(())
}

fn ladder(study: &Study, out: &mut impl Write) -> anyhow::Result<()> {
    writeln!(
        out,
        "{}: {}; law {}, integrator {}",
        study.name,
        study.summary,
        study.law,
        study.integrator.name()
    )?;
    let mut table = tables::table(&["kernel", "after", "differs in", "what it is", "reported"]);
    for rung in study.rungs {
        let predecessor = rung.variant.predecessor.unwrap_or_default();
        table.add_row([
            rung.variant.name,
            predecessor.rsplit('/').next().unwrap_or_default(),
            &differences(&rung.variant),
            rung.variant.summary,
            rung.reported,
        ]);
    }
    tables::wrap_sentences(&mut table);
    writeln!(out, "{table}")?;
    for rung in study.rungs {
        if let Err(why) = library(&rung.variant) {
            writeln!(out, "on a GPU, {why}")?;
        }
    }
    Ok(())
}

fn differences(variant: &Variant) -> String {
    let differences = differences_of(variant).into_iter();
    let differences = differences.map(|choice| format!("{}: {}", choice.axis, choice.value));
    differences.collect::<Vec<_>>().join("; ")
}
