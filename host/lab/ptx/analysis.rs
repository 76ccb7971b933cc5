//! Work of a kernel's generated code per interaction.
//!
//! An *interaction loop* is an innermost loop that holds a square root, reciprocal or not. Its
//! counts follow one trip: the way through the body that evaluates the most interactions (and
//! among those the longest), so the two arms of an `if` are not added up. A kernel can have
//! several, such as an unrolled loop and one for the remainder.

use super::counts::{Counts, Denormals, Kind, Space, Transfer};
use super::flow::{Graph, Loop};
use super::syntax::{self, Listing};
use allpairs::ptx::{PtxError, PtxModule};
use std::fmt;

/// Contents of one kernel's PTX.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EntryReport {
    /// The kernel's name.
    pub entry: String,
    /// Interaction loops in the order of the text; none for a kernel that evaluates no
    /// forces, or that was unrolled altogether.
    pub loops: Vec<InteractionLoop>,
    /// Interactions that are evaluated outside of all loops: unrolled remainders.
    pub interactions_outside_loops: usize,
    /// All instructions of the kernel, each counted once.
    pub whole: Counts,
    /// Bytes of local memory that a thread declares because an array could not be kept in
    /// registers.
    pub local_bytes: u64,
}

/// One interaction loop.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InteractionLoop {
    /// Label of its first block, or `line N` of the kernel where it has none.
    pub label: String,
    /// Line of its first instruction in the kernel's text, counted from 1.
    pub line: usize,
    /// Number of loops that contain it, itself included: 1 for a loop that is in no other.
    pub depth: usize,
    /// Interactions that one trip evaluates, at least 1: the unroll factor times the bodies in
    /// registers.
    pub interactions: usize,
    /// Interactions on the way through the body that evaluates fewest: less than
    /// `interactions` where a branch guards some of them.
    pub fewest_interactions: usize,
    /// Loops inside this one. Their instructions are not in `counts`, since it is not known how
    /// often they run.
    pub inner_loops: usize,
    /// Instructions of one trip.
    pub counts: Counts,
}

/// The counts of a loop, divided by its interactions.
#[derive(Debug, Clone, Copy)]
pub struct PerInteraction<'a> {
    of: &'a InteractionLoop,
}

/// The kernel evaluates no interaction inside a loop.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "kernel `{entry}` has no interaction loop: none of its loops holds a square root \
     ({outside_loops} outside of loops)"
)]
pub struct NoInteractionLoop {
    /// The kernel.
    pub entry: String,
    /// Number of interactions that its straight-line code evaluates.
    pub outside_loops: usize,
}

impl EntryReport {
    /// Reads the kernel `entry` of a module.
    ///
    /// # Errors
    /// [`PtxError::EntryNotFound`], or [`PtxError::Malformed`] with the line that could not be
    /// understood.
    pub fn of(module: &PtxModule, entry: &str) -> Result<Self, PtxError> {
        let text = module.entry_text(entry)?;
        let malformed = |fault: syntax::Fault| PtxError::Malformed {
            entry: entry.into(),
            line: 1 + fault.line,
            reason: fault.reason,
        };
        let text = syntax::without_comments(&text);
        let listing = Listing::parse(&text).map_err(malformed)?;
        let graph = Graph::of(&listing).map_err(malformed)?;
        let innermost: Vec<Option<usize>> = (0..graph.blocks.len())
            .map(|block| graph.innermost(block))
            .collect();
        let outside = graph
            .blocks
            .iter()
            .zip(&innermost)
            .filter(|(_, around)| around.is_none());
        let outside: Counts = outside
            .flat_map(|(block, _)| &listing.instructions[block.clone()])
            .collect();
        let mut loops = vec![];
        for (at, natural) in graph.loops.iter().enumerate() {
            let is_own = |block: usize| innermost[block] == Some(at);
            loops.extend(interaction_loop(&listing, &graph, natural, is_own));
        }
        loops.sort_by_key(|found| found.line);
        Ok(EntryReport {
            entry: entry.into(),
            loops,
            interactions_outside_loops: outside.interactions(),
            whole: listing.instructions.iter().collect(),
            local_bytes: listing.local_bytes,
        })
    }

    /// The loop in which a large system spends its time: the one with the most interactions a
    /// trip, among equals the least guarded, the first in the text.
    ///
    /// # Errors
    /// [`NoInteractionLoop`] if the kernel has none.
    pub(crate) fn main_loop(&self) -> Result<&InteractionLoop, NoInteractionLoop> {
        // Of equal elements `max_by_key` returns the last.
        let key = |found: &&InteractionLoop| (found.interactions, found.fewest_interactions);
        self.loops
            .iter()
            .rev()
            .max_by_key(key)
            .ok_or_else(|| NoInteractionLoop {
                entry: self.entry.clone(),
                outside_loops: self.interactions_outside_loops,
            })
    }

    /// Returns whether anything of the kernel lives in local memory.
    pub(crate) fn uses_local_memory(&self) -> bool {
        self.local_bytes > 0 || self.whole.touches(Space::Local) > 0
    }
}

/// Describes a loop, `None` if its own blocks, those in no inner loop, evaluate no interaction.
fn interaction_loop(
    listing: &Listing<'_>,
    graph: &Graph,
    natural: &Loop,
    is_own: impl Fn(usize) -> bool,
) -> Option<InteractionLoop> {
    let count = |blocks: &[usize]| -> Counts {
        let own = blocks.iter().filter(|block| is_own(**block));
        own.flat_map(|block| &listing.instructions[graph.blocks[*block].clone()])
            .collect()
    };
    let all = count(&natural.blocks.iter().copied().collect::<Vec<_>>());
    let root = if all.of(Kind::Rsqrt) > 0 {
        Kind::Rsqrt
    } else {
        Kind::Sqrt
    };
    let trip = graph.trip(natural, |block| {
        let counts = count(&[block]);
        (counts.of(root), counts.instructions())
    });
    let counts = count(&trip.blocks);
    if counts.of(root) == 0 {
        return None;
    }
    let start = graph.blocks[natural.header].start;
    let line = 1 + listing.instructions[start].line;
    let within = |other: &&Loop| natural.blocks.contains(&other.header);
    Some(InteractionLoop {
        label: listing
            .label_at(start)
            .map_or_else(|| format!("line {line}"), str::to_string),
        line,
        depth: natural.depth,
        interactions: counts.of(root),
        fewest_interactions: trip.fewest,
        inner_loops: graph.loops.iter().filter(within).count() - 1,
        counts,
    })
}

impl InteractionLoop {
    /// Counts per interaction.
    pub(crate) fn per_interaction(&self) -> PerInteraction<'_> {
        PerInteraction { of: self }
    }
}

impl PerInteraction<'_> {
    /// Instructions of a kind.
    pub fn of(&self, kind: Kind) -> f64 {
        self.share(self.of.counts.of(kind))
    }

    /// Accesses of one direction to one space.
    pub fn transfers(&self, transfer: Transfer, space: Space) -> f64 {
        self.share(self.of.counts.transfers(transfer, space))
    }

    /// Bytes that they move.
    pub fn bytes(&self, transfer: Transfer, space: Space) -> f64 {
        self.share(self.of.counts.bytes(transfer, space))
    }

    /// All instructions.
    pub fn instructions(&self) -> f64 {
        self.share(self.of.counts.instructions())
    }

    fn share(&self, count: usize) -> f64 {
        count as f64 / self.of.interactions as f64
    }
}

impl fmt::Display for EntryReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let denormals = match self.whole.denormals() {
            Denormals::NoArithmetic => "no f32 arithmetic",
            Denormals::Kept => "kept by all f32 arithmetic",
            Denormals::Mixed => "flushed to zero by a part of the f32 arithmetic",
            Denormals::Flushed => "flushed to zero by all f32 arithmetic",
        };
        let local = match self.uses_local_memory() {
            true => format!(
                "{} bytes per thread, {} accesses",
                self.local_bytes,
                self.whole.touches(Space::Local)
            ),
            false => "none".to_string(),
        };
        writeln!(f, "kernel {}", self.entry)?;
        for (what, value) in [
            ("instructions", self.whole.instructions().to_string()),
            ("denormals", denormals.to_string()),
            ("local memory", local),
            (
                "generic accesses",
                self.whole.touches(Space::Generic).to_string(),
            ),
            (
                "interactions outside loops",
                self.interactions_outside_loops.to_string(),
            ),
        ] {
            writeln!(f, "  {what:<28}{value}")?;
        }
        let main = self.main_loop().ok();
        for found in &self.loops {
            let is_main = main.is_some_and(|main| std::ptr::eq(main, found));
            let role = if is_main {
                "main interaction loop"
            } else {
                "interaction loop"
            };
            write!(f, "\n{role} {found}")?;
        }
        Ok(())
    }
}

impl fmt::Display for InteractionLoop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            label,
            line,
            depth,
            interactions,
            fewest_interactions,
            ..
        } = self;
        write!(
            f,
            "{label} (line {line}, depth {depth}), interactions a trip: "
        )?;
        if fewest_interactions < interactions {
            write!(f, "{fewest_interactions} to ")?;
        }
        writeln!(f, "{interactions}")?;
        if self.inner_loops > 0 {
            writeln!(
                f,
                "  loops inside it, not counted here: {}",
                self.inner_loops
            )?;
        }
        writeln!(
            f,
            "  {:<28}{:>8}{:>17}",
            "instruction", "a trip", "an interaction"
        )?;
        let all = ("all".to_string(), self.counts.instructions());
        for (name, count) in self.counts.rows().chain([all]) {
            let share = self.per_interaction().share(count);
            writeln!(f, "  {name:<28}{count:>8}{share:>17.3}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ptx::Precision;

    /// A kernel with these statements as its body.
    fn report(body: &str) -> EntryReport {
        let ptx = format!(".version 8.1\n.visible .entry k(\n.param .u64 p\n)\n{{\n{body}\n}}\n");
        EntryReport::of(&PtxModule::from_text(75, false, &ptx), "k").unwrap()
    }

    /// One interaction with unit masses, as a compiler writes it around inline assembly.
    const PAIR: &str = "
        sub.rn.f32 %r1, %r2, %r3;
        fma.rn.f32 %r4, %r1, %r1, %r5;
        // begin inline asm
        rsqrt.approx.ftz.f32 %r6, %r4;
        // end inline asm
        mul.rn.f32 %r7, %r6, %r6;
        fma.rn.f32 %r8, %r1, %r7, %r8;\n";

    fn tiled(pairs: usize) -> String {
        let body =
            format!("ld.shared.v4.f32 {{%r2, %r9, %r10, %r11}}, [%r12];{PAIR}").repeat(pairs);
        format!(
            "$L__BB0_1: ld.global.v4.f32 {{%r1, %r2, %r3, %r4}}, [%rd1];
            {{ .reg .u32 %t; mov.u32 %t, smem; st.shared.v4.f32 [%t], {{%r1, %r2, %r3, %r4}}; }}
            bar.sync 0;
            $L__BB0_2: {body} add.s32 %r12, %r12, 16; setp.lt.u32 %p1, %r12, %r13;
            @%p1 bra $L__BB0_2;
            bar.sync 0; setp.lt.u32 %p2, %r14, %r15; @%p2 bra $L__BB0_1;"
        )
    }

    #[test]
    fn the_inner_loop_of_a_tiled_kernel_is_its_interaction_loop() {
        let report = report(&format!("{} st.global.f32 [%rd2], %r8; ret;", tiled(4)));
        assert_eq!(report.loops.len(), 1);
        let main = report.main_loop().unwrap();
        assert_eq!(
            (main.label.as_str(), main.depth, main.inner_loops),
            ("$L__BB0_2", 2, 0)
        );
        assert_eq!((main.interactions, main.fewest_interactions), (4, 4));
        assert_eq!(main.counts.of(Kind::Fma), 8);
        assert_eq!(main.counts.of(Kind::Barrier), 0);
        let each = main.per_interaction();
        assert_eq!(each.of(Kind::Rsqrt), 1.0);
        assert_eq!(main.counts.of_precision(Kind::Mul, Precision::Single), 4);
        assert_eq!(each.transfers(Transfer::Load, Space::Shared), 1.0);
        assert_eq!(each.bytes(Transfer::Load, Space::Shared), 16.0);
        assert_eq!(each.of(Kind::Integer), 0.25);
        assert_eq!(each.instructions(), 6.0 + 0.75);
        assert_eq!(report.whole.transfers(Transfer::Store, Space::Shared), 1);
        assert_eq!(report.whole.of(Kind::Barrier), 2);
        assert!(!report.uses_local_memory() && report.whole.touches(Space::Generic) == 0);
        // Only the reciprocal root, inline assembly, flushes.
        assert_eq!(report.whole.denormals(), Denormals::Mixed);
    }

    #[test]
    fn the_unrolled_loop_and_its_remainder_are_reported_apart() {
        let one = format!("REST: {PAIR} @%p3 bra REST;");
        let report = report(&format!(
            "{one} MAIN: {} @%p4 bra MAIN; {PAIR} ret;",
            PAIR.repeat(8)
        ));
        let interactions: Vec<usize> = report.loops.iter().map(|l| l.interactions).collect();
        assert_eq!(interactions, [1, 8]);
        assert_eq!(report.main_loop().unwrap().label, "MAIN");
        assert_eq!(report.interactions_outside_loops, 1);
    }

    #[test]
    fn a_guarded_interaction_is_seen_as_such() {
        let report = report(&format!(
            "TOP: setp.eq.s32 %p1, %r20, %r21; @%p1 bra SKIP; {PAIR} SKIP: add.s32 %r20, %r20, 1; \
             setp.ne.s32 %p2, %r20, %r22; @%p2 bra TOP; ret;"
        ));
        let main = report.main_loop().unwrap();
        assert_eq!((main.interactions, main.fewest_interactions), (1, 0));
        assert_eq!(
            (
                main.counts.of(Kind::Branch),
                main.counts.of(Kind::Predicate)
            ),
            (2, 2)
        );
    }

    #[test]
    fn the_arms_of_a_branch_are_not_added_up() {
        let two = PAIR.repeat(2);
        let report = report(&format!(
            "TOP: @%p1 bra DIAGONAL; {two} mov.b32 %r1, %r2; bra.uni JOIN; \
             DIAGONAL: {two} JOIN: @%p2 bra TOP; ret;"
        ));
        let main = report.main_loop().unwrap();
        assert_eq!((main.interactions, main.fewest_interactions), (2, 2));
        assert_eq!(main.counts.of(Kind::Move), 1);
        assert_eq!(report.whole.interactions(), 4);
    }

    #[test]
    fn among_equal_loops_the_unguarded_one_is_the_main_one() {
        let report = report(&format!(
            "A: @%p1 bra SKIP; {PAIR} SKIP: @%p2 bra A; B: {PAIR} @%p3 bra B; \
             C: {PAIR} @%p4 bra C; ret;"
        ));
        assert_eq!(report.main_loop().unwrap().label, "B");
    }

    #[test]
    fn predicated_instructions_belong_to_the_body() {
        let report = report(&format!(
            "TOP: @%p1 ld.global.f32 %r2, [%rd1]; {PAIR} @!%p2 bra TOP; ret;"
        ));
        let main = report.main_loop().unwrap();
        let loads = main.counts.transfers(Transfer::Load, Space::Global);
        assert_eq!((loads, main.counts.of(Kind::Branch)), (1, 1));
    }

    #[test]
    fn square_roots_stand_for_interactions_where_none_is_reciprocal() {
        let report =
            report("TOP: sqrt.rn.ftz.f32 %r1, %r2; rcp.rn.ftz.f32 %r1, %r1; @%p1 bra TOP; ret;");
        let main = report.main_loop().unwrap();
        assert_eq!((main.interactions, main.counts.of(Kind::Rcp)), (1, 1));
        assert_eq!(main.counts.denormals(), Denormals::Flushed);
    }

    #[test]
    fn local_memory_and_generic_addresses_are_noticed() {
        let report = report(
            ".local .align 4 .b8 __local_depot0[256]; .reg .b64 %SPL; mov.b64 %SPL, __local_depot0; \
             st.local.b32 [%SPL], 0; ld.v4.b32 {%r1, %r2, %r3, %r4}, [%rd1]; ret;",
        );
        assert_eq!(report.local_bytes, 256);
        assert!(report.uses_local_memory() && report.whole.touches(Space::Generic) > 0);
    }

    #[test]
    fn a_kernel_without_interaction_loop_says_so() {
        let error = report(&format!("{PAIR} ret;")).main_loop().unwrap_err();
        assert_eq!(
            error,
            NoInteractionLoop {
                entry: "k".into(),
                outside_loops: 1
            },
        );
    }

    #[test]
    fn faults_name_their_line_in_the_kernel() {
        let ptx = "// module\n.visible .entry k()\n{\n bra $L1;\n}\n";
        let error = EntryReport::of(&PtxModule::from_text(75, false, ptx), "k").unwrap_err();
        assert!(
            matches!(error, PtxError::Malformed { line: 3, .. }),
            "{error:?}"
        );
    }

    #[test]
    fn reports_read_as_tables() {
        let text = report(&format!("TOP: {PAIR}{PAIR} @%p1 bra TOP; ret;")).to_string();
        assert!(
            text.contains("main interaction loop TOP (line 6, depth 1), interactions a trip: 2")
        );
        assert!(
            text.contains("  fma (f32)                          4            2.000\n"),
            "{text}"
        );
        assert!(
            text.contains("  all                               11            5.500\n"),
            "{text}"
        );
    }
}
