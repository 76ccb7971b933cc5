//! `allpairs tune`.

use std::io::Write;
use std::path::PathBuf;

use allpairs::io::Overwrite;
use allpairs::machine::Machine;
use allpairs::physics::ForceLaw;
use allpairs::selection::{Request, SelectionError, eligible, select};
use allpairs::tuning::{self, Cache, Key, Wanted, Winner};
use allpairs::variants::preferred::ForceAccuracy;
use allpairs::variants::{Method, Shape, Variant};
use allpairs_lab::bench::{self, Outcome};
use allpairs_lab::studies::catalogue;
use allpairs_lab::sweep::{self, Found};
use anyhow::{Context, ensure};

use crate::bodies;
use crate::choices::{DeviceOption, Named};
use crate::say;
use crate::tables;

/// Numbers of bodies for a GPU where nothing else is said: each is used for half to twice as many.
const BODIES: [u32; 5] = [1_024, 4_096, 16_384, 65_536, 262_144];
/// Numbers of bodies for a CPU.
const BODIES_CPU: [u32; 3] = [1_024, 4_096, 16_384];
/// Rows of a table.
const SHOWN: usize = 6;

/// Device to tune, and for how long.
#[derive(Debug, clap::Args)]
pub(super) struct Options {
    #[command(flatten)]
    place: DeviceOption,
    /// Numbers of bodies, separated by commas [default: 1024 to 262144 on a GPU, to 16384 on a CPU]
    #[arg(long, value_delimiter = ',', value_parser = bodies::number_of_bodies)]
    bodies: Vec<u32>,
    /// Only this kernel, in all its shapes; the winner is shown and not kept, for others may be faster.
    #[arg(long)]
    kernel: Option<String>,
    /// The law of the force.
    #[arg(long, default_value = "gravity")]
    law: Named<ForceLaw>,
    /// Accepted error of forces, as for a run; each accuracy has its own winners.
    #[arg(long, default_value = "single", conflicts_with = "kernel")]
    accuracy: Named<ForceAccuracy>,
    /// Seconds that a kernel may take at one number of bodies: those that need more cannot win.
    #[arg(long, value_name = "SECONDS", default_value_t = 10.0)]
    budget: f64,
    /// Write all times as JSON, which `allpairs plot bench` draws as sweeps.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Do not keep the winners.
    #[arg(long)]
    no_cache: bool,
    /// Replace the file of --json.
    #[arg(long)]
    overwrite: bool,
}

pub(super) fn tune(options: &Options, out: &mut impl Write) -> anyhow::Result<()> {
    let law = options.law.0;
    let place = select(&Request::new(0).on(options.place.device).law(law))?.place;
    ensure!(
        !place.is_emulated(),
        "the emulator's times say nothing about a GPU: choose --device cuda or cpu"
    );
    ensure!(
        options.budget > 0.0 && options.budget.is_finite(),
        "`--budget` must be > 0 seconds, got {}",
        options.budget
    );
    let only = options.kernel.as_deref().map(|name| catalogue().find(name));
    let only = only.transpose()?;
    if let Some(only) = only {
        eligible(only, &place, law).map_err(SelectionError::from)?;
        ensure!(
            ForceAccuracy::ALL.iter().any(|&a| tuning::may_win(only, a)),
            "kernel `{}` is not tuned, because `auto` may not take it: it is wrong for some systems, \
             stores halves, or needs the host or a library",
            only.name
        );
    }
    if let Some(path) = &options.json {
        ensure!(
            options.overwrite || !path.exists(),
            "{} is there already: give another name, or --overwrite",
            path.display()
        );
    }
    let path = match options.no_cache || only.is_some() {
        true => None,
        false => Some(tuning::path().with_context(|| {
            format!(
                "there is no folder to keep winners in: name one in {}, or give --no-cache",
                tuning::FOLDER_VARIABLE
            )
        })?),
    };
    let sizes: &[u32] = match (options.bodies.as_slice(), place.gpus().is_empty()) {
        ([], false) => &BODIES,
        ([], true) => &BODIES_CPU,
        (asked, _) => asked,
    };
    bodies::check_memory(sizes.iter().copied().max().unwrap_or(0).into())?;
    writeln!(out, "On {place}, law {law}, force only:")?;
    let machine = Machine::new(place);
    // A kernel that was named has an accuracy of its own.
    let own = |kernel: &&Variant| {
        ForceAccuracy::ALL
            .into_iter()
            .find(|&a| tuning::may_win(kernel, a))
    };
    let accuracy = only.as_ref().and_then(own);
    let accuracy = accuracy.unwrap_or(options.accuracy.0);
    let (mut winners, mut rows) = (vec![], vec![]);
    for &n in sizes {
        let untuned = match only {
            Some(only) => only.fitted(n as usize),
            None => {
                let place = machine.place().choice();
                let request = Request {
                    accuracy: Some(accuracy),
                    ..Request::new(n as usize).on(place).law(law)
                };
                *select(&request)?.variant
            }
        };
        let wanted = Wanted {
            law,
            accuracy,
            bodies: n as usize,
        };
        let found = sweep::sweep(&machine, &wanted, options.budget, &untuned, only)?;
        show(&found, n, &untuned, out)?;
        if let Some((variant, seconds)) = found.winner {
            winners.push(Winner {
                bodies: n.into(),
                kernel: variant.name.to_owned(),
                shape: shape_of(&variant),
                seconds,
            });
        }
        rows.extend(found.rows.into_iter().map(Outcome::Timed));
        out.flush()?;
    }
    if let Some(file) = &options.json {
        let overwrite = Overwrite::from(options.overwrite);
        bench::record(machine.place(), rows).write_json(file, overwrite)?;
        writeln!(out, "wrote {}", file.display())?;
    }
    if let Some(path) = path {
        let mut cache = Cache::read(&path).or_else(|fault| {
            writeln!(out, "replacing {}: {fault}", path.display())?;
            Ok::<_, std::io::Error>(Cache::default())
        })?;
        cache.keep(&Key::of(machine.place(), law, accuracy), winners);
        cache
            .write(&path)
            .with_context(|| format!("cannot keep the winners in {}", path.display()))?;
        writeln!(
            out,
            "kept in {}: `auto` takes them from now on",
            path.display()
        )?;
    }
    Ok(())
}

fn shape_of(variant: &Variant) -> Shape {
    match variant.method {
        Method::Kernel { block, split, .. } => Shape {
            block: Some(block),
            len: split.map(|split| split.len),
            luf: split.map(|split| split.luf),
        },
        _ => Shape::default(),
    }
}

fn show(found: &Found, n: u32, untuned: &Variant, out: &mut impl Write) -> anyhow::Result<()> {
    let mut table = tables::table(&["kernel", "#ms", "#spread", "#interactions/s", "#rms error"]);
    for row in found.rows.iter().take(SHOWN) {
        table.add_row([
            row.kernel.clone(),
            format!("{:.4}", 1e3 * row.seconds),
            format!("{:.1} %", 100.0 * row.spread()),
            say::scientific(row.rate),
            say::scientific(row.error),
        ]);
    }
    let timed = found.rows.len();
    writeln!(
        out,
        "\nN = {n}: {} kernels and shapes, {timed} of them timed with all the bodies\n{table}",
        found.candidates
    )?;
    for why in &found.wrong {
        writeln!(out, "cannot win: {}", why)?;
    }
    let Some((winner, seconds)) = &found.winner else {
        writeln!(out, "nothing here is right and fast enough to win")?;
        return Ok(());
    };
    write!(
        out,
        "winner: {}, {:.4} ms",
        sweep::label(winner),
        1e3 * seconds
    )?;
    if let Some(before) = found.untuned {
        let gain = before / seconds;
        write!(out, "; {gain:.2} × the untuned choice, {}", untuned.name)?;
    }
    writeln!(out)?;
    Ok(())
}
