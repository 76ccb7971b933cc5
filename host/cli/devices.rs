//! `allpairs devices`.

use std::io::Write;

use allpairs::limits;
use allpairs::ptx::{self, PtxModule};
use allpairs::selection::Place;
use cuda_driver::DeviceInfo;

use crate::say;
use crate::tables;

/// Lists the GPUs, or says why there is none; having none is no error.
pub(super) fn devices(out: &mut impl Write) -> anyhow::Result<()> {
    let gpus = match cuda_driver::devices() {
        Ok(gpus) => gpus,
        Err(no_gpu) => {
            writeln!(out, "no GPU: {no_gpu}")?;
            writeln!(out, "{}", Place::CPU)?;
            return Ok(());
        }
    };
    let mut table = tables::table(&[
        "device",
        "name",
        "capability",
        "#SMs",
        "#SM clock",
        "#memory",
        "#bandwidth",
        "driver",
        "kernels",
        "#f32 limit",
        "#f64 limit",
    ]);
    for gpu in &gpus {
        let rate = |limit: Option<f64>| limit.map_or_else(|| "unknown".into(), say::scientific);
        table.add_row([
            format!("cuda:{}", gpu.ordinal),
            gpu.name.clone(),
            format!("{}.{}", gpu.compute_capability.0, gpu.compute_capability.1),
            gpu.sm_count.to_string(),
            format!("{} MHz", gpu.sm_clock_khz / 1000),
            format!("{:.1} GiB", gpu.memory_bytes as f64 / f64::from(1 << 30)),
            format!("{:.2} TB/s", limits::memory_bandwidth(gpu) * 1e-12),
            cuda(gpu.driver_version),
            ptx::module_for(gpu, false).map_or_else(|| "none".into(), target),
            rate(limits::one_sided_f32(gpu)),
            rate(limits::one_sided_f64(gpu)),
        ]);
    }
    writeln!(out, "{table}")?;
    links(&gpus, out)?;
    kernels(&gpus, out)?;
    match cuda_driver::nccl_version() {
        Ok(version) => writeln!(
            out,
            "Ranks with GPUs exchange by NCCL {version}, where all have this version and a GPU of their own."
        )?,
        Err(why) => {
            writeln!(
                out,
                "Ranks with GPUs exchange through their hosts' memory: {why}."
            )?;
        }
    }
    writeln!(
        out,
        "Limits are interactions/s of a kernel that computes each pair for one body: 12 instructions \
         and an\ninverse square root in f32, 17 instructions in f64, at the highest clock."
    )?;
    Ok(())
}

/// Name of a CUDA version.
fn cuda((major, minor): (u32, u32)) -> String {
    format!("CUDA {major}.{minor}")
}

/// Name of a GPU generation that kernels are compiled for.
fn target(module: &PtxModule) -> String {
    format!("sm_{}", module.sm)
}

/// Tells which drivers the kernels of each generation need, and which GPUs have older kernels for that.
fn kernels(gpus: &[DeviceInfo], out: &mut impl Write) -> anyhow::Result<()> {
    let modules = ptx::PTX_MODULES.iter().filter(|module| !module.ftz);
    let needs = modules.map(|module| {
        let oldest = module.oldest_cuda().map(cuda);
        let oldest = oldest.unwrap_or_else(|| "an unknown version".into());
        format!("{} ({oldest})", target(module))
    });
    let needs: Vec<String> = needs.collect();
    writeln!(
        out,
        "Kernels are compiled for {}: in brackets the oldest driver.",
        needs.join(", ")
    )?;
    for gpu in gpus {
        let taken = ptx::module_for(gpu, false);
        let Some(best) = ptx::module_of_generation(gpu, false) else {
            continue; // its compute capability is too low, whatever the driver
        };
        if taken.is_some_and(|taken| taken.sm == best.sm) {
            continue;
        }
        writeln!(
            out,
            "cuda:{} runs {}, because its driver is for {}. Update the NVIDIA driver for the kernels of {}.",
            gpu.ordinal,
            taken.map_or_else(
                || "no kernels".into(),
                |taken| format!("kernels of {}", target(taken))
            ),
            cuda(gpu.driver_version),
            target(best)
        )?;
    }
    Ok(())
}

/// How each GPU reaches the memory of the others, where there are several.
fn links(gpus: &[DeviceInfo], out: &mut impl Write) -> anyhow::Result<()> {
    if gpus.len() < 2 {
        return Ok(());
    }
    let mut table = tables::table(&["from", "to", "copies", "atomics", "#rank"]);
    for from in gpus {
        for to in gpus.iter().filter(|to| to.ordinal != from.ordinal) {
            let link = cuda_driver::link(from.ordinal, to.ordinal)?;
            table.add_row([
                format!("cuda:{}", from.ordinal),
                format!("cuda:{}", to.ordinal),
                if link.direct { "direct" } else { "by the host" }.into(),
                if link.atomics { "yes" } else { "no" }.into(),
                link.rank.to_string(),
            ]);
        }
    }
    writeln!(out, "{table}")?;
    writeln!(
        out,
        "GPUs compute one system together with --device cuda:all or cuda:0,1. Atomics work over NVLink, and \
         not over\nPCI Express; rank 0 is the fastest way of this machine."
    )?;
    Ok(())
}
