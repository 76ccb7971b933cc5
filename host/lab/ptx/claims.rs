//! Is the compiled code what its description says?
//!
//! The lists say what a kernel is made of: an unroll factor, fused multiply–adds, an approximate or
//! exact 1/√, a layout. Each is a claim about the code, and the differences in speed that people
//! read off the variants rest on them. [`check`] compares them with the PTX; what it expects is read
//! off the entry, so a new line in a list is a new claim.

use super::{Access, Denormals, EntryReport, InteractionLoop, Kind, Precision, Space, Transfer};
use allpairs::ptx::{PtxError, PtxModule};
use allpairs::variants::{Masses, Variant};
use gpu_kernels::entries::{self, Entry, Work};
use gpu_kernels::interaction::{Formula, Law};
use gpu_kernels::layout::LayoutName;
use gpu_kernels::numerics::{NumericsPolicy, Precision as Scalar};
use gpu_kernels::operations::Operations;
use gpu_kernels::schedule::{ScheduleName, SourcesIn, Stepping, test_particles};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{Debug, Display};

/// A claim that the PTX does not bear out.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{entry}, {module}: {what}: {expected} by the lists, {found} in the PTX")]
pub struct BrokenClaim {
    /// Symbol of the kernel.
    pub entry: String,
    /// The module, `sm_90 (ftz)`.
    pub module: String,
    /// Subject of the claim.
    pub what: String,
    /// Value according to the lists.
    pub expected: String,
    /// Value according to the PTX.
    pub found: String,
}

/// Checks a module as a whole: its kernels are exactly the listed ones, and none of them keeps
/// anything in local memory, calls a function, or accesses memory without knowing which.
///
/// # Errors
/// Every claim that does not hold.
pub fn check_module(module: &PtxModule) -> Result<(), Vec<BrokenClaim>> {
    let mut checks = Checks::of(module);
    let compiled: BTreeSet<&str> = module.entries().collect();
    let listed: BTreeSet<&str> = entries::all()
        .filter(|entry| entry.since <= module.sm)
        .map(|entry| entry.symbol)
        .collect();
    for symbol in listed.union(&compiled) {
        let (expected, found) = (listed.contains(symbol), compiled.contains(symbol));
        checks.equal(symbol, "is a kernel", expected, found);
        if !found {
            continue;
        }
        let Some(report) = checks.report(symbol) else {
            continue;
        };
        let whole = &report.whole;
        checks.equal(symbol, "bytes of local memory", 0, report.local_bytes);
        for space in [Space::Local, Space::Generic] {
            let what = format!("accesses to {space:?} memory");
            checks.equal(symbol, what, 0, whole.touches(space));
        }
        checks.equal(symbol, "calls", 0, whole.of(Kind::Call));
    }
    checks.done()
}

/// Checks the force kernels of a variant, for both laws, softened and not, in a module of either
/// build, as far as the module's GPUs can run them. A variant that has no kernels claims nothing.
///
/// # Errors
/// Every claim that does not hold.
pub fn check(variant: &Variant, module: &PtxModule) -> Result<(), Vec<BrokenClaim>> {
    let mut checks = Checks::of(module);
    for law in variant.laws() {
        for unsoftened in [false, true] {
            for masses in Masses::KINDS {
                match variant.force_for(law, unsoftened, masses) {
                    Some(entry) if entry.since > module.sm => {}
                    Some(entry) if variant.is_tensor() => checks.tensor(entry, &[3, 4], None),
                    // The leaves that take no polynomial. And two roots for the scale of a leaf.
                    Some(entry) if variant.is_separated() => {
                        checks.tensor(entry, &[4], Some((2, 0)));
                    }
                    Some(entry) => {
                        checks.force(entry);
                        if variant.has_sources_apart() {
                            checks.steps(entry, unsoftened);
                        }
                    }
                    None => {}
                }
            }
        }
    }
    checks.done()
}

/// Checks the kernels that no variant has, for fields at points and for sums over pairs, in a module of either build.
///
/// # Errors
/// Every claim that does not hold.
pub fn check_no_variants(module: &PtxModule) -> Result<(), Vec<BrokenClaim>> {
    let mut checks = Checks::of(module);
    let kernels = entries::AT_POINTS.iter().chain(entries::PAIR_SUMS);
    kernels.for_each(|entry| checks.no_variant(entry));
    let once = entries::PAIR_SUMS_ONCE.iter();
    once.for_each(|entry| checks.sum_once(entry));
    checks.done()
}

struct Checks<'a> {
    module: &'a PtxModule,
    broken: Vec<BrokenClaim>,
}

impl<'a> Checks<'a> {
    fn of(module: &'a PtxModule) -> Self {
        Self {
            module,
            broken: vec![],
        }
    }

    fn done(self) -> Result<(), Vec<BrokenClaim>> {
        if self.broken.is_empty() {
            Ok(())
        } else {
            Err(self.broken)
        }
    }

    fn equal<T: PartialEq + Debug>(
        &mut self,
        entry: &str,
        what: impl Display,
        expected: T,
        found: T,
    ) {
        if expected != found {
            let flushing = if self.module.ftz { " (ftz)" } else { "" };
            self.broken.push(BrokenClaim {
                entry: entry.to_owned(),
                module: format!("sm_{}{flushing}", self.module.sm),
                what: what.to_string(),
                expected: format!("{expected:?}"),
                found: format!("{found:?}"),
            });
        }
    }

    /// The kernel's report; that there is one is a claim as well.
    fn report(&mut self, entry: &str) -> Option<EntryReport> {
        match EntryReport::of(self.module, entry) {
            Ok(report) => Some(report),
            Err(fault) => {
                self.equal::<Result<(), PtxError>>(entry, "is readable", Ok(()), Err(fault));
                None
            }
        }
    }

    fn force(&mut self, entry: &Entry) {
        let Work::Force {
            schedule,
            law,
            formula,
            numerics,
            unroll,
            lane,
            ..
        } = entry.work
        else {
            unreachable!("`{}` is no force", entry.symbol)
        };
        let Some(report) = self.report(entry.symbol) else {
            return;
        };
        self.denormals(entry, numerics, &report);
        // Sums of sources go to shared memory and back instead of from lane to lane.
        let takes_steps = |by: Stepping| matches!(schedule, ScheduleName::Systems { stepping, .. } if stepping == by);
        let in_block = takes_steps(Stepping::InBlock);
        let main = report.main_loop().map(|main| main.interactions);
        let what = "interactions in the main loop";
        self.equal(entry.symbol, what, Ok(unroll as usize), main);
        // Sums of forces are divided by masses, through roots as well, where global memory is; one root at a
        // time, where a block keeps the bodies.
        let of_pairs = |each: &&InteractionLoop| {
            let mut accesses = each.counts.accesses();
            match formula {
                Formula::Forces if in_block => each.interactions > 1,
                Formula::Forces => accesses.all(|(access, _)| access.space == Space::Shared),
                Formula::Powers | Formula::Divisions => true,
            }
        };
        let loops: Vec<&InteractionLoop> = report.loops.iter().filter(of_pairs).collect();
        for each in &loops {
            let sources = each.interactions / lane as usize;
            let mut wanted: BTreeMap<_, _> = source_loads(entry, law, schedule)
                .into_iter()
                .map(|(load, count)| (load, count * sources))
                .collect();
            if in_block {
                wanted.extend(kept_sums(entry).map(|access| (access, 3 * sources)));
            }
            let wanted = list(wanted);
            let found = list(each.counts.accesses());
            let what = format!("memory accesses in loop {}", each.label);
            self.equal(entry.symbol, what, wanted, found);
            // The last row of a warp's sources is for some of its lanes.
            let may_be_last_row = takes_steps(Stepping::ByWarps) && each.interactions == 1;
            if !numerics.unsoftened && !numerics.skips_self && !may_be_last_row {
                // Half of the pairs, and those of a target with its like, where these are the last of a group with itself.
                let fewest = (lane * (lane + 1) / 2) as usize;
                let all = if in_block { fewest } else { each.interactions };
                let certain = each.fewest_interactions;
                let what = format!("interactions without a guard in loop {}", each.label);
                self.equal(entry.symbol, what, all, certain);
            }
            // A source's sum moves on, in words of 32 bits.
            let shuffles = each.counts.of(Kind::Shuffle);
            let moves = schedule.takes_pairs_once() && shuffles > 0;
            let words = 3 * entry.layout.precision.bytes() as usize / 4;
            let expected = if moves { words * sources } else { 0 };
            let what = format!("shuffles in loop {}", each.label);
            self.equal(entry.symbol, what, expected, shuffles);
            let operations = if schedule == ScheduleName::TiledJerks {
                law.jerk_operations(numerics.fused) + numerics.refinement()
            } else if moves || in_block {
                numerics.of_pair(law)
            } else {
                formula.operations(law, numerics.fused) + numerics.refinement()
            };
            let singles = numerics.precision == Scalar::DoubleSingle;
            let doubles = each.counts.arithmetic(Precision::Double);
            if singles {
                let what = format!("double-precision instructions in loop {}", each.label);
                self.equal(entry.symbol, what, 0, doubles);
            }
            if singles && !moves {
                // A tile with itself: few pairs, and not counted.
                continue;
            }
            let sums = if in_block { 3 * sources } else { 0 };
            self.arithmetic(entry, operations, sums, formula, numerics, each);
        }
        self.read_only(entry, &report);
        if schedule.takes_pairs_once() && !in_block {
            let moving = |each: &&&InteractionLoop| each.counts.of(Kind::Shuffle) > 0;
            let found = (loops.iter().filter(moving).count(), loops.len());
            let what = "loops for both bodies of a pair, of all";
            self.equal(entry.symbol, what, (1, 2), found);
        }
    }

    fn denormals(&mut self, entry: &Entry, numerics: NumericsPolicy, report: &EntryReport) {
        let expected = match numerics.precision {
            Scalar::F64 => Denormals::NoArithmetic,
            _ if self.module.ftz => Denormals::Flushed,
            _ => Denormals::Kept,
        };
        let found = report.whole.denormals();
        self.equal(entry.symbol, "denormals of f32", expected, found);
    }

    /// A source is fetched once for all targets of a thread.
    fn no_variant(&mut self, entry: &Entry) {
        // Instructions of a pair, and halves of rows that are read of a source.
        let (operations, halves, numerics, unroll, lane) = match entry.work {
            Work::AtPoints {
                quantity,
                numerics,
                unroll,
                lane,
            } => (quantity.operations(), 2, numerics, unroll, lane),
            Work::PairSum {
                name,
                numerics,
                unroll,
                lane,
                ..
            } => {
                let halves = match name.numbers() {
                    ..=4 => 2,
                    5..=6 => 3,
                    _ => 4,
                };
                (name.operations(), halves, numerics, unroll, lane)
            }
            _ => unreachable!("`{}` is a variant's", entry.symbol),
        };
        let Some(report) = self.report(entry.symbol) else {
            return;
        };
        self.denormals(entry, numerics, &report);
        let main = report.main_loop().map(|main| main.interactions);
        let what = "interactions in the main loop";
        self.equal(entry.symbol, what, Ok((unroll * lane) as usize), main);
        for each in &report.loops {
            let sources = each.interactions / lane as usize;
            let loads = source_loads(entry, Law::Gravity, ScheduleName::Tiled).into_iter();
            let wanted =
                list(loads.map(|(load, count)| (load, (count * halves).div_ceil(2) * sources)));
            let found = list(each.counts.accesses());
            let what = format!("memory accesses in loop {}", each.label);
            self.equal(entry.symbol, what, wanted, found);
            let all = operations + numerics.refinement();
            self.arithmetic(entry, all, 0, Formula::Powers, numerics, each);
        }
    }

    /// A loop for both bodies of a pair has a root for both, and a source's sums move on after each of its steps. There are
    /// two: with tests of pairs at distance zero and, for ε > 0, without; or for any bodies, and for bodies that all have mass.
    fn sum_once(&mut self, entry: &Entry) {
        let Work::PairSum {
            name,
            numerics,
            unroll: steps,
            lane,
            ..
        } = entry.work
        else {
            unreachable!("`{}` is no sum", entry.symbol)
        };
        let Some(report) = self.report(entry.symbol) else {
            return;
        };
        self.denormals(entry, numerics, &report);
        let main = report.main_loop().map(|main| main.interactions);
        let what = "pairs in the main loop";
        self.equal(entry.symbol, what, Ok((steps * lane) as usize), main);
        let words = entry.layout.precision.bytes() / 4;
        let moving: Vec<usize> = (report.loops.iter())
            .map(|each| each.counts.of(Kind::Shuffle))
            .filter(|&shuffles| shuffles > 0)
            .collect();
        let expected = vec![(steps * words * name.reactions()) as usize; 2];
        self.equal(entry.symbol, "shuffles in the loops", expected, moving);
    }

    /// The kernels that take many steps compute what the force of test particles does, with other loops:
    /// that of all bodies reads its sources from global memory.
    fn steps(&mut self, force: &Entry, unsoftened: bool) {
        let like = |schedule| match force.work {
            Work::Force {
                law,
                formula,
                numerics,
                lane,
                order,
                max_registers,
                ..
            } => Work::Force {
                schedule,
                law,
                formula,
                numerics,
                unroll: test_particles::UNROLL_OF_STEPS,
                lane,
                order,
                max_registers,
            },
            _ => unreachable!("`{}` is no force", force.symbol),
        };
        for (work, schedule) in [
            (Work::Trace { unsoftened }, ScheduleName::Tiled),
            (Work::Follow { unsoftened }, ScheduleName::Direct),
        ] {
            let entry = force.partner(work).expect("of each layout");
            self.force(&Entry {
                work: like(schedule),
                ..*entry
            });
        }
    }

    /// Sources alone are read by the read-only path, or nothing is.
    /// What else such a kernel reads of the bodies, in words of their size, is a velocity to be
    /// kicked.
    fn read_only(&mut self, entry: &Entry, report: &EntryReport) {
        let is_load = |access: &Access| {
            access.transfer == Transfer::Load && access.space == Space::Global && access.bits == 32
        };
        let words = |read_only| -> u32 {
            let loads = report.whole.accesses();
            let loads = loads.filter(|(a, _)| is_load(a) && a.read_only == read_only);
            loads
                .map(|(access, count)| access.elements * count as u32)
                .sum()
        };
        let found = words(true) > 0;
        let what = "loads by the read-only path";
        self.equal(entry.symbol, what, entry.layout.read_only, found);
        if entry.layout.read_only {
            let what = "words of bodies that are loaded otherwise";
            self.equal(entry.symbol, what, 3, words(false));
        }
    }

    /// A tile of targets takes two products for its squared distances from a group of sources, 256
    /// inverse roots (8 per lane), one product for the targets' sums and, beyond the block's own
    /// bodies, one for the sources': `products` a tile in each of the loops. `beside`: the roots
    /// and products of a loop around them.
    fn tensor(&mut self, entry: &Entry, products: &[usize], beside: Option<(usize, usize)>) {
        let Work::Force { unroll: tiles, .. } = entry.work else {
            unreachable!("`{}` is no force", entry.symbol)
        };
        let Some(report) = self.report(entry.symbol) else {
            return;
        };
        let tiles = tiles as usize;
        let found: BTreeSet<(usize, usize)> = report
            .loops
            .iter()
            .map(|each| (each.interactions, each.counts.of(Kind::Mma)))
            .collect();
        let expected = products
            .iter()
            .map(|a_tile| (8 * tiles, a_tile * tiles))
            .chain(beside)
            .collect();
        let what = "inverse roots and matrix products in the loops";
        self.equal(entry.symbol, what, expected, found);
    }

    /// The pair formula, and nothing beside it, in the loop.
    fn arithmetic(
        &mut self,
        entry: &Entry,
        operations: Operations,
        additions_beside: usize,
        formula: Formula,
        numerics: NumericsPolicy,
        each: &InteractionLoop,
    ) {
        let precision = match numerics.precision {
            Scalar::F16 => Precision::Half,
            Scalar::F32 | Scalar::DoubleSingle => Precision::Single,
            Scalar::F64 => Precision::Double,
        };
        let exact = u32::from(!numerics.approximate);
        // There is no root of halves: it is taken in single precision.
        let rooted = match precision {
            Precision::Half => Precision::Single,
            other => other,
        };
        let count = |kinds: &[Kind]| -> usize {
            let counts = kinds.iter().map(|&kind| {
                let root = matches!(kind, Kind::Rsqrt | Kind::Sqrt | Kind::Rcp | Kind::Div);
                let precision = if root { rooted } else { precision };
                each.counts.of_precision(kind, precision)
            });
            counts.sum()
        };
        let mut all = 0;
        for (kinds, expected) in [
            (&[Kind::Fma][..], operations.multiply_adds),
            (&[Kind::Mul], operations.multiplications),
            (&[Kind::Add], operations.additions),
            (&[Kind::Rsqrt], 1 - exact),
            (&[Kind::Sqrt], exact),
            (&[Kind::Rcp, Kind::Div], exact * formula.divisions()),
        ] {
            let mut expected = expected as usize * each.interactions;
            if kinds == [Kind::Add] {
                expected += additions_beside;
            }
            all += expected;
            let what = format!("{kinds:?} instructions in loop {}", each.label);
            self.equal(entry.symbol, what, expected, count(kinds));
        }
        let found = [Precision::Half, Precision::Single, Precision::Double]
            .map(|any| each.counts.arithmetic(any))
            .iter()
            .sum();
        let what = format!("floating-point instructions in loop {}", each.label);
        self.equal(entry.symbol, what, all, found);
    }
}

/// The loads that fetch a source in the inner loop, and how many of each.
fn source_loads(entry: &Entry, law: Law, schedule: ScheduleName) -> BTreeMap<Access, usize> {
    let space = match schedule {
        ScheduleName::Direct
        | ScheduleName::OneThread
        | ScheduleName::TwoLoops
        | ScheduleName::Grid2d {
            sources: SourcesIn::Global,
        }
        | ScheduleName::Systems {
            sources: SourcesIn::Global,
            ..
        } => Space::Global,
        ScheduleName::Tiled
        | ScheduleName::TiledJerks
        | ScheduleName::TestParticles
        | ScheduleName::Guarded
        | ScheduleName::Hybrid
        | ScheduleName::Symmetric
        | ScheduleName::Grid2d {
            sources: SourcesIn::Shared | SourcesIn::SharedInterleaved,
        }
        | ScheduleName::Systems {
            sources: SourcesIn::Shared | SourcesIn::SharedInterleaved,
            ..
        } => Space::Shared,
        ScheduleName::Tensor | ScheduleName::Separated => {
            unreachable!("sources are packed, not fetched, in the inner loop")
        }
    };
    let bits = match entry.layout.stored {
        Scalar::F16 => 16,
        Scalar::F32 => 32,
        Scalar::F64 => 64,
        Scalar::DoubleSingle => unreachable!("stored as f64"),
    };
    let mut loads = BTreeMap::new();
    let mut load = |elements| {
        let access = Access {
            transfer: Transfer::Load,
            space,
            read_only: false,
            elements,
            bits,
        };
        *loads.entry(access).or_default() += 1;
    };
    let wanted = match law {
        Law::Gravity | Law::AttractRepel => 4,
        Law::Unit => 3, // no mass
    };
    match entry.layout.name {
        LayoutName::Aos | LayoutName::Soa | LayoutName::Float3 => (0..wanted).for_each(|_| load(1)),
        LayoutName::Float4 => {
            let widest = 128 / bits;
            for first in (0..4).step_by(widest as usize) {
                // Of two the compiler leaves out the one that is not read, where it sees the load.
                let one = space == Space::Global && wanted - first == 1;
                load(if one { 1 } else { widest });
            }
        }
    }
    if schedule == ScheduleName::TiledJerks {
        // A velocity lies in a tile like a position with its mass.
        loads.values_mut().for_each(|count| *count *= 2);
    }
    loads
}

/// Accesses by which a kernel that keeps a system in a block adds to a number of a partial sum.
fn kept_sums(entry: &Entry) -> [Access; 2] {
    [Transfer::Load, Transfer::Store].map(|transfer| Access {
        transfer,
        space: Space::Shared,
        read_only: false,
        elements: 1,
        bits: 8 * entry.layout.precision.bytes(),
    })
}

fn list(accesses: impl IntoIterator<Item = (Access, usize)>) -> Vec<String> {
    let accesses = accesses.into_iter();
    accesses
        .map(|(access, count)| format!("{count} {access}"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::studies::catalogue;
    use allpairs::physics::ForceLaw;
    use allpairs::ptx::PTX_MODULES;
    use allpairs::variants;

    const KERNEL: &str = "force_tiled_float4_f32_approximate_u16_gravity";

    fn precise() -> &'static PtxModule {
        PTX_MODULES
            .iter()
            .find(|module| !module.ftz)
            .expect("there is a precise module")
    }

    /// Claims that are broken after one instruction of the kernel was exchanged.
    fn broken_by(from: &str, to: &str) -> Vec<BrokenClaim> {
        let module = precise();
        let kernel = module.entry_text(KERNEL).expect("listed");
        assert!(kernel.contains(from), "{KERNEL} has `{from}`");
        let text = module
            .text()
            .replace(&kernel, &kernel.replacen(from, to, 1));
        let module = PtxModule::from_text(module.sm, module.ftz, &text);
        let variant = variants::find("tiled").expect("listed");
        let mut broken = check_module(&module).err().unwrap_or_default();
        broken.extend(check(variant, &module).err().unwrap_or_default());
        broken
    }

    /// A load that takes another way is noticed, in either direction.
    #[test]
    fn read_only_loads_are_a_claim() {
        let module = precise();
        let broken = |variant: &str, from: &str, to: &str| {
            let variant = catalogue().find(variant).expect("listed");
            assert!(check(variant, module).is_ok());
            let kernel = variant.force(ForceLaw::Unit, false).expect("compiled");
            let kernel = module.entry_text(kernel.symbol).expect("listed");
            assert!(kernel.contains(from), "{} has `{from}`", variant.name);
            let text = module
                .text()
                .replace(&kernel, &kernel.replacen(from, to, 1));
            check(variant, &PtxModule::from_text(module.sm, module.ftz, &text)).is_err()
        };
        assert!(broken(
            "galaxies/fast-math",
            "ld.global.nc.f32",
            "ld.global.f32"
        ));
        assert!(broken(
            "galaxies/streams",
            "ld.global.b32",
            "ld.global.nc.b32"
        ));
    }

    /// A check that could not fail would prove nothing.
    #[test]
    fn changed_code_breaks_a_claim() {
        assert_eq!(broken_by(KERNEL, KERNEL), []);
        for (from, to) in [
            ("fma.rn.f32", "add.rn.f32"),
            ("fma.rn.f32", "fma.rn.ftz.f32"),
            ("rsqrt.approx.f32", "sqrt.rn.f32"),
            ("rsqrt.approx.f32", "rcp.rn.f32"),
            ("mul.rn.f32", "mul.rn.f64"),
            ("ld.shared.v4.f32", "ld.global.v4.f32"),
            ("ld.shared.v4.f32", "ld.shared.f32"),
            ("ld.global.v4.b32", "ld.v4.b32"),
            ("st.global", "st.local"),
            ("bar.sync", "call.uni"),
            (KERNEL, "force_unheard_of"),
        ] {
            let broken = broken_by(from, to);
            assert!(!broken.is_empty(), "{from} → {to}");
            assert!(broken.iter().all(|b| !b.to_string().is_empty()));
        }
    }
}
