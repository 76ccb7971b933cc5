//! `allpairs list`.

use std::io::Write;

use allpairs::variants::VARIANTS;

/// What to list.
#[derive(Debug, clap::Args)]
pub(super) struct Options {
    /// Only the rungs of this study's ladder.
    #[arg(long)]
    study: Option<String>,
}

pub(super) fn list(options: &Options, out: &mut impl Write) -> anyhow::Result<()> {
    let mut table = super::table(&["kernel", "study", "after", "differs in", "what it is"]);
    let wanted = |study: Option<&str>| options.study.is_none() || study == options.study.as_deref();
    let mut rungs = VARIANTS
        .iter()
        .filter(|variant| wanted(variant.study))
        .peekable();
    if rungs.peek().is_none() {
        let mut studies: Vec<&str> = VARIANTS.iter().filter_map(|v| v.study).collect();
        studies.dedup();
        anyhow::bail!(
            "no kernel is of study `{}`; there are {}",
            options.study.as_deref().unwrap_or_default(),
            studies.join(", ")
        );
    }
    for variant in rungs {
        let difference = variant.difference().map_or_else(String::new, |choice| {
            format!("{}: {}", choice.axis, choice.value)
        });
        table.add_row([
            variant.name,
            variant.study.unwrap_or_default(),
            variant.predecessor.unwrap_or_default(),
            &difference,
            variant.summary,
        ]);
    }
    writeln!(out, "{table}")?;
    Ok(())
}
