//! `allpairs inspect`.

use std::io::Write;

use allpairs::physics::ForceLaw;
use allpairs::ptx::{self, PtxModule};
use allpairs::variants::Build;
use allpairs_lab::ptx::{EntryReport, Ptxas, claims};
use allpairs_lab::studies::{self, catalogue};
use anyhow::{Context, bail};

use crate::choices::Named;
use crate::exit;

/// Kernel to inspect, and how.
#[derive(Debug, clap::Args)]
pub(super) struct Options {
    /// The kernel, as `allpairs list` names it.
    #[arg(required_unless_present = "check")]
    kernel: Option<String>,
    /// Force law of the kernel; if not given, gravity or the law of the study.
    #[arg(long)]
    law: Option<Named<ForceLaw>>,
    /// The kernel for ε = 0, which tests for pairs at distance zero.
    #[arg(long)]
    unsoftened: bool,
    /// GPU generation: 75, 80 or 90.
    #[arg(long, default_value_t = 90)]
    sm: u32,
    /// Print the PTX instead.
    #[arg(long)]
    ptx: bool,
    /// Instead of showing anything, check that the code is what the lists of kernels claim: of this
    /// kernel or, without one, of all; for every GPU generation, both laws, any softening.
    #[arg(long, conflicts_with_all = ["ptx", "law", "unsoftened", "sm"])]
    check: bool,
}

pub(super) fn inspect(options: &Options, out: &mut impl Write) -> anyhow::Result<()> {
    match &options.kernel {
        Some(kernel) if !options.check => show(kernel, options, out),
        kernel => check(kernel.as_deref(), out),
    }
}

fn check(kernel: Option<&str>, out: &mut impl Write) -> anyhow::Result<()> {
    let mut broken = vec![];
    let chosen: Vec<_> = match kernel {
        Some(name) => vec![catalogue().find(name)?],
        None => {
            for module in ptx::PTX_MODULES.iter() {
                broken.extend(claims::check_module(module).err().unwrap_or_default());
                broken.extend(claims::check_no_variants(module).err().unwrap_or_default());
            }
            catalogue().all().collect()
        }
    };
    for variant in chosen {
        let Some(build) = variant.method.build() else {
            continue;
        };
        let before = broken.len();
        let flushing = build == Build::Ftz;
        for module in ptx::PTX_MODULES.iter().filter(|m| m.ftz == flushing) {
            broken.extend(claims::check(variant, module).err().unwrap_or_default());
        }
        let verdict = match broken.len() - before {
            0 => "as claimed".to_owned(),
            count => format!("{count} claims broken"),
        };
        writeln!(out, "{}: {verdict}", variant.name)?;
    }
    exit::report_failures(&broken, out)
}

fn show(kernel: &str, options: &Options, out: &mut impl Write) -> anyhow::Result<()> {
    let variant = catalogue().find(kernel)?;
    let Some(build) = variant.method.build() else {
        bail!("kernel `{}` is CPU code: it has no PTX", variant.name);
    };
    let preferred = studies::of(variant).map_or(ForceLaw::Gravity, |study| study.law);
    let law = options.law.map_or(preferred, |named| named.0);
    let entry = variant
        .force(law, options.unsoftened)
        .with_context(|| format!("kernel `{}` is not compiled for this law", variant.name))?;
    let of_build = |module: &&PtxModule| module.ftz == (build == Build::Ftz);
    let modules = || ptx::PTX_MODULES.iter().filter(of_build);
    let module = modules()
        .find(|module| module.sm == options.sm)
        .with_context(|| {
            let there: Vec<String> = modules().map(|m| m.sm.to_string()).collect();
            format!(
                "there is no module for sm_{}; there are {}",
                options.sm,
                there.join(", ")
            )
        })?;
    if options.ptx {
        writeln!(out, "{}", module.entry_text(entry.symbol)?)?;
        return Ok(());
    }
    writeln!(
        out,
        "{} is {} in the module for sm_{}",
        variant.name, entry.symbol, module.sm
    )?;
    let report = EntryReport::of(module, entry.symbol)?;
    writeln!(out, "{report}")?;
    match Ptxas::find() {
        Ok(ptxas) => {
            let resources = ptxas.resources(&module.alone(entry.symbol)?, module.sm)?;
            let mine = resources.iter().find(|r| r.entry == entry.symbol);
            let mine = mine.context("ptxas did not report on this kernel")?;
            writeln!(
                out,
                "registers {}, spilled bytes {} stored and {} loaded, stack {} bytes",
                mine.registers, mine.spill_store_bytes, mine.spill_load_bytes, mine.stack_bytes
            )?;
        }
        Err(why) => writeln!(out, "registers and spills: not known, {why}")?,
    }
    Ok(())
}
