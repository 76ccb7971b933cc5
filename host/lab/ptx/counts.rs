//! Kinds of PTX instructions, and their counts.

use super::syntax::{Instruction, type_bits};
use std::collections::BTreeMap;
use std::fmt;

/// A kind of instruction that is no load or store (for those see [`Access`]).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// Fused multiply–add of floating-point numbers.
    Fma,
    /// Floating-point multiplication.
    Mul,
    /// Floating-point addition or subtraction.
    Add,
    /// Reciprocal square root.
    Rsqrt,
    /// Square root.
    Sqrt,
    /// Floating-point reciprocal.
    Rcp,
    /// Floating-point division.
    Div,
    /// Exponential, logarithm, sine, cosine, hyperbolic tangent.
    Transcendental,
    /// Sign change, absolute value, minimum, maximum: exact, mostly folded into a neighbour.
    FloatOther,
    /// Matrix multiply–accumulate on tensor cores.
    Mma,
    /// Exchange of registers in a warp: shuffles, matrix transposition.
    Shuffle,
    /// Votes, matches and reductions of a warp.
    Vote,
    /// Barrier of a thread block.
    Barrier,
    /// Barrier of a warp.
    WarpBarrier,
    /// Memory fence.
    Fence,
    /// Asynchronous copy between memories, and waiting for it.
    AsyncCopy,
    /// Conversion between number formats.
    Convert,
    /// Integer arithmetic, logic and addresses.
    Integer,
    /// Comparison, selection and logic of predicates.
    Predicate,
    /// Branch, return, exit and trap.
    Branch,
    /// Call of a function that was not inlined.
    Call,
    /// Copy between registers; the assembler removes most of them.
    Move,
    /// Anything else.
    Other,
}

impl Kind {
    /// Returns whether it rounds, so that precision and treatment of denormals matter.
    fn is_arithmetic(self) -> bool {
        self <= Kind::Transcendental
    }

    fn name(self) -> &'static str {
        match self {
            Kind::Fma => "fma",
            Kind::Mul => "mul",
            Kind::Add => "add, sub",
            Kind::Rsqrt => "rsqrt",
            Kind::Sqrt => "sqrt",
            Kind::Rcp => "rcp",
            Kind::Div => "div",
            Kind::Transcendental => "exp, log, sin, cos, tanh",
            Kind::FloatOther => "neg, abs, min, max",
            Kind::Mma => "mma",
            Kind::Shuffle => "shuffle",
            Kind::Vote => "vote",
            Kind::Barrier => "block barrier",
            Kind::WarpBarrier => "warp barrier",
            Kind::Fence => "fence",
            Kind::AsyncCopy => "asynchronous copy",
            Kind::Convert => "convert",
            Kind::Integer => "integer",
            Kind::Predicate => "predicate",
            Kind::Branch => "branch",
            Kind::Call => "call",
            Kind::Move => "move",
            Kind::Other => "other",
        }
    }
}

/// Precision of a floating-point operation; packed pairs (`f16x2`) belong to their element.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Precision {
    /// `f16` and `bf16`.
    Half,
    /// `f32`.
    Single,
    /// `f64`.
    Double,
}

impl Precision {
    fn of(type_name: &str) -> Option<Self> {
        match type_name {
            "f16" | "f16x2" | "bf16" | "bf16x2" => Some(Precision::Half),
            "f32" | "f32x2" => Some(Precision::Single),
            "f64" => Some(Precision::Double),
            _ => None,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Precision::Half => "f16",
            Precision::Single => "f32",
            Precision::Double => "f64",
        }
    }
}

/// Direction of a memory access.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Transfer {
    /// `ld`.
    Load,
    /// `st`.
    Store,
    /// `red`: an atomic update that does not return the old value.
    Reduction,
    /// `atom`.
    Atomic,
}

/// State space of a memory access.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Space {
    /// Device memory.
    Global,
    /// Memory of the thread block.
    Shared,
    /// Constant memory.
    Const,
    /// Kernel arguments.
    Param,
    /// Memory of the thread: what did not fit into registers.
    Local,
    /// Unknown before run time: the hardware looks at every address. Slower, and a sign that a
    /// pointer lost its space.
    Generic,
}

impl Space {
    fn name(self) -> &'static str {
        match self {
            Space::Global => "global",
            Space::Shared => "shared",
            Space::Const => "const",
            Space::Param => "param",
            Space::Local => "local",
            Space::Generic => "generic",
        }
    }
}

/// The form of a load, a store or an atomic update.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Access {
    /// Direction.
    pub transfer: Transfer,
    /// State space.
    pub space: Space,
    /// True if a load goes through the read-only cache (`ld.global.nc`).
    pub read_only: bool,
    /// Elements an instruction moves for each thread: 1, or 2, 4 or 8 for a vector.
    pub elements: u32,
    /// Bits of an element.
    pub bits: u32,
}

impl Access {
    /// Bytes moved for each thread.
    pub fn bytes(&self) -> u32 {
        self.elements * self.bits / 8
    }
}

impl fmt::Display for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let transfer = match self.transfer {
            Transfer::Load => "ld",
            Transfer::Store => "st",
            Transfer::Reduction => "red",
            Transfer::Atomic => "atom",
        };
        write!(f, "{transfer}.{}", self.space.name())?;
        if self.read_only {
            f.write_str(".nc")?;
        }
        if self.elements > 1 {
            write!(f, ".v{}", self.elements)?;
        }
        write!(f, ".b{}", self.bits)
    }
}

/// Treatment of denormal numbers in f32 arithmetic.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Denormals {
    /// There is no f32 arithmetic.
    NoArithmetic,
    /// No instruction flushes them.
    Kept,
    /// Some instructions flush them, some do not.
    Mixed,
    /// Every instruction flushes them to zero (`.ftz`).
    Flushed,
}

/// Numbers of instructions of each kind in a piece of code.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Counts {
    kinds: BTreeMap<(Kind, Option<Precision>), usize>,
    accesses: BTreeMap<Access, usize>,
    flushed: usize,
}

impl Counts {
    /// Instructions of a kind, in any precision.
    pub fn of(&self, kind: Kind) -> usize {
        self.sum_kinds(|(counted, _)| counted == kind)
    }

    /// Floating-point instructions of a kind in one precision.
    pub(crate) fn of_precision(&self, kind: Kind, precision: Precision) -> usize {
        self.kinds
            .get(&(kind, Some(precision)))
            .copied()
            .unwrap_or(0)
    }

    /// All rounding floating-point instructions in one precision, conversions and matrix
    /// operations apart.
    pub(crate) fn arithmetic(&self, precision: Precision) -> usize {
        self.sum_kinds(|(kind, counted)| kind.is_arithmetic() && counted == Some(precision))
    }

    /// Loads, stores and atomic updates by their form.
    pub(crate) fn accesses(&self) -> impl Iterator<Item = (Access, usize)> + '_ {
        self.accesses
            .iter()
            .map(|(access, count)| (*access, *count))
    }

    /// Accesses of one direction to one space, of any width.
    pub fn transfers(&self, transfer: Transfer, space: Space) -> usize {
        self.sum_accesses(|access| {
            usize::from(access.transfer == transfer && access.space == space)
        })
    }

    /// Bytes that they move for each thread.
    pub fn bytes(&self, transfer: Transfer, space: Space) -> usize {
        self.sum_accesses(|access| {
            let wanted = access.transfer == transfer && access.space == space;
            usize::from(wanted) * access.bytes() as usize
        })
    }

    /// Accesses of any direction to one space.
    pub fn touches(&self, space: Space) -> usize {
        self.sum_accesses(|access| usize::from(access.space == space))
    }

    /// Interactions that the code evaluates: its reciprocal square roots, or its square roots
    /// where it has no reciprocal ones. A pair that serves both of its bodies counts once;
    /// roots replaced by polynomials do not count at all.
    pub fn interactions(&self) -> usize {
        match self.of(Kind::Rsqrt) {
            0 => self.of(Kind::Sqrt),
            roots => roots,
        }
    }

    /// Treatment of denormals by the f32 arithmetic. Matrix operations, conversions and the
    /// exact [`Kind::FloatOther`] are left out.
    pub(crate) fn denormals(&self) -> Denormals {
        match (self.arithmetic(Precision::Single), self.flushed) {
            (0, _) => Denormals::NoArithmetic,
            (_, 0) => Denormals::Kept,
            (all, flushed) if all == flushed => Denormals::Flushed,
            _ => Denormals::Mixed,
        }
    }

    /// All instructions.
    pub fn instructions(&self) -> usize {
        self.sum_kinds(|_| true) + self.sum_accesses(|_| 1)
    }

    /// Every kind of instruction that occurs, as named in tables, with its count.
    pub fn rows(&self) -> impl Iterator<Item = (String, usize)> + '_ {
        let kinds = self.kinds.iter().map(|((kind, precision), count)| {
            let name = match precision {
                Some(precision) => format!("{} ({})", kind.name(), precision.name()),
                None => kind.name().to_string(),
            };
            (name, *count)
        });
        kinds.chain(
            self.accesses()
                .map(|(access, count)| (access.to_string(), count)),
        )
    }

    fn sum_kinds(&self, wanted: impl Fn((Kind, Option<Precision>)) -> bool) -> usize {
        self.kinds
            .iter()
            .filter(|(key, _)| wanted(**key))
            .map(|(_, count)| count)
            .sum()
    }

    fn sum_accesses(&self, weight: impl Fn(&Access) -> usize) -> usize {
        let weighted = self
            .accesses
            .iter()
            .map(|(access, count)| weight(access) * count);
        weighted.sum()
    }

    fn add(&mut self, instruction: &Instruction<'_>) {
        if let Some(access) = access(instruction) {
            *self.accesses.entry(access).or_default() += 1;
        } else {
            let (kind, precision) = kind(instruction);
            *self.kinds.entry((kind, precision)).or_default() += 1;
            let is_single = kind.is_arithmetic() && precision == Some(Precision::Single);
            self.flushed += usize::from(is_single && has(instruction, "ftz"));
        }
    }
}

impl<'a> FromIterator<&'a Instruction<'a>> for Counts {
    fn from_iter<I: IntoIterator<Item = &'a Instruction<'a>>>(instructions: I) -> Self {
        let mut counts = Counts::default();
        instructions
            .into_iter()
            .for_each(|instruction| counts.add(instruction));
        counts
    }
}

fn has(instruction: &Instruction<'_>, modifier: &str) -> bool {
    instruction
        .opcode
        .split('.')
        .skip(1)
        .any(|present| present == modifier)
}

fn access(instruction: &Instruction<'_>) -> Option<Access> {
    let transfer = match instruction.base() {
        "ld" | "ldu" | "ldmatrix" => Transfer::Load,
        "st" | "stmatrix" => Transfer::Store,
        "red" => Transfer::Reduction,
        "atom" => Transfer::Atomic,
        _ => return None,
    };
    let is_matrix = instruction.base().ends_with("matrix");
    let mut access = Access {
        transfer,
        space: Space::Generic,
        read_only: false,
        elements: 1,
        bits: 0,
    };
    for modifier in instruction.opcode.split('.').skip(1) {
        // `shared::cta`, `param::entry`: the part after the colons narrows the space.
        match modifier.split("::").next().unwrap_or_default() {
            "global" => access.space = Space::Global,
            "shared" => access.space = Space::Shared,
            "const" => access.space = Space::Const,
            "param" => access.space = Space::Param,
            "local" => access.space = Space::Local,
            "nc" => access.read_only = true,
            "v2" | "x2" => access.elements = 2,
            "v4" | "x4" => access.elements = 4,
            "v8" => access.elements = 8,
            other => access.bits = type_bits(other).unwrap_or(access.bits),
        }
    }
    if is_matrix {
        // Each thread holds one 32-bit register of every 8 × 8 matrix of 16-bit elements.
        access.bits = 32;
    }
    Some(access)
}

fn kind(instruction: &Instruction<'_>) -> (Kind, Option<Precision>) {
    let precision = instruction
        .opcode
        .split('.')
        .skip(1)
        .find_map(Precision::of);
    let or_integer = |kind| {
        if precision.is_some() {
            kind
        } else {
            Kind::Integer
        }
    };
    let kind = match instruction.base() {
        "fma" => Kind::Fma,
        // On floating-point numbers `mad` is another spelling of `fma`.
        "mad" => or_integer(Kind::Fma),
        "mul" => or_integer(Kind::Mul),
        "add" | "sub" => or_integer(Kind::Add),
        "div" => or_integer(Kind::Div),
        "neg" | "abs" | "min" | "max" | "copysign" => or_integer(Kind::FloatOther),
        "rsqrt" => Kind::Rsqrt,
        "sqrt" => Kind::Sqrt,
        "rcp" => Kind::Rcp,
        "ex2" | "lg2" | "sin" | "cos" | "tanh" => Kind::Transcendental,
        "mma" | "wmma" | "wgmma" | "tcgen05" => Kind::Mma,
        "shfl" | "movmatrix" => Kind::Shuffle,
        "vote" | "match" | "activemask" | "redux" | "elect" => Kind::Vote,
        "bar" if has(instruction, "warp") => Kind::WarpBarrier,
        "bar" | "barrier" | "mbarrier" => Kind::Barrier,
        "fence" | "membar" => Kind::Fence,
        "cp" => Kind::AsyncCopy,
        "cvt" => Kind::Convert,
        "and" | "or" | "xor" | "not" if has(instruction, "pred") => Kind::Predicate,
        "setp" | "set" | "selp" | "slct" | "testp" => Kind::Predicate,
        "bra" | "brx" | "ret" | "exit" | "trap" | "brkpt" => Kind::Branch,
        "call" => Kind::Call,
        "mov" => Kind::Move,
        "and" | "or" | "xor" | "not" | "cnot" | "lop3" | "shl" | "shr" | "shf" | "bfe" | "bfi"
        | "bfind" | "bmsk" | "brev" | "clz" | "popc" | "fns" | "szext" | "prmt" | "rem" | "sad"
        | "addc" | "subc" | "madc" | "mul24" | "mad24" | "dp2a" | "dp4a" | "cvta" | "isspacep"
        | "mapa" => Kind::Integer,
        _ => Kind::Other,
    };
    let shows_precision = kind.is_arithmetic() || kind == Kind::FloatOther;
    (kind, precision.filter(|_| shows_precision))
}

#[cfg(test)]
mod tests {
    use super::super::syntax::Listing;
    use super::*;

    fn counts(statements: &str) -> Counts {
        let text = format!("{{ {statements} }}");
        let listing = Listing::parse(&text).unwrap();
        listing.instructions.iter().collect()
    }

    #[test]
    fn floating_point_and_integer_forms_of_one_name_differ() {
        let c = counts(
            "add.rn.f32 a,b,c; sub.f64 a,b,c; add.s32 a,b,c; mul.wide.u32 a,b,c; mul.rn.f16 a,b,c; \
             mad.lo.s32 a,b,c,d; fma.rn.f32 a,b,c,d; div.u32 a,b,c; div.rn.f32 a,b,c; neg.f32 a,b; \
             min.s32 a,b,c; and.pred p,q,r; and.b32 a,b,c; fma.rn.bf16x2 a,b,c,d;",
        );
        assert_eq!(
            (c.of(Kind::Add), c.of(Kind::Mul), c.of(Kind::Fma)),
            (2, 1, 2)
        );
        assert_eq!(
            (c.of(Kind::Div), c.of(Kind::Integer), c.of(Kind::Predicate)),
            (1, 6, 1)
        );
        assert_eq!(c.of_precision(Kind::Fma, Precision::Half), 1);
        assert_eq!(c.arithmetic(Precision::Half), 2);
        assert_eq!(c.arithmetic(Precision::Single), 3);
        assert_eq!(c.arithmetic(Precision::Double), 1);
        assert_eq!(c.instructions(), 14);
    }

    #[test]
    fn vector_accesses_keep_space_and_width() {
        let c = counts(
            "ld.global.v4.f32 {a,b,c,d}, [x]; ld.shared.v4.f32 {a,b,c,d}, [y]; ld.global.nc.b64 a, [x]; \
             ld.v2.b64 {a,b}, [x]; st.shared::cta.b16 [y], a; red.global.add.v4.f32 [x], {a,b,c,d}; \
             atom.global.add.u32 r, [x], 1; ld.relaxed.gpu.global.L2::128B.f32 a, [x]; \
             ldmatrix.sync.aligned.m8n8.x4.shared.b16 {a,b,c,d}, [y]; ld.const.f32 a, [k];",
        );
        let seen: Vec<String> = c.accesses().map(|(access, _)| access.to_string()).collect();
        let expected = [
            "ld.global.b32",
            "ld.global.v4.b32",
            "ld.global.nc.b64",
            "ld.shared.v4.b32",
            "ld.const.b32",
            "ld.generic.v2.b64",
            "st.shared.b16",
            "red.global.v4.b32",
            "atom.global.b32",
        ];
        assert_eq!(seen, expected);
        assert_eq!(c.transfers(Transfer::Load, Space::Shared), 2);
        assert_eq!(c.bytes(Transfer::Load, Space::Global), 4 + 16 + 8);
        assert_eq!(c.touches(Space::Generic), 1);
        assert_eq!(c.touches(Space::Local), 0);
    }

    #[test]
    fn denormals_are_judged_on_f32_arithmetic_only() {
        let flushed = "fma.rn.ftz.f32 a,b,c,d; rsqrt.approx.ftz.f32 a,b; neg.f32 a,b; \
                       cvt.rn.f16.f32 h,a; mul.f64 x,y,z;";
        assert_eq!(counts(flushed).denormals(), Denormals::Flushed);
        assert_eq!(
            counts(&format!("{flushed} add.f32 a,b,c;")).denormals(),
            Denormals::Mixed
        );
        assert_eq!(counts("add.rn.f32 a,b,c;").denormals(), Denormals::Kept);
        assert_eq!(
            counts("rsqrt.approx.ftz.f64 a,b;").denormals(),
            Denormals::NoArithmetic
        );
    }

    #[test]
    fn interactions_are_reciprocal_roots_or_else_roots() {
        assert_eq!(
            counts("sqrt.rn.f32 a,b; rcp.rn.f32 a,a; sqrt.rn.f64 a,b;").interactions(),
            2
        );
        assert_eq!(
            counts("sqrt.rn.f32 a,b; rsqrt.approx.f32 a,b;").interactions(),
            1
        );
        assert_eq!(counts("mul.f32 a,b,c;").interactions(), 0);
    }

    #[test]
    fn warps_barriers_and_guards() {
        let c = counts(
            "bar.sync 0; bar.warp.sync -1; barrier.sync 0; shfl.sync.idx.b32 a,b,c,31,-1; \
             movmatrix.sync.aligned.m8n8.trans.b16 a,b; vote.sync.any.pred p,q,-1; \
             mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {a},{b},{c},{d}; cvt.u64.u32 a,b; \
             @%p1 st.global.f32 [x], a; @!%p1 bra END; @%p1 add.f32 a,b,c; END: frobnicate.b32 a;",
        );
        assert_eq!((c.of(Kind::Barrier), c.of(Kind::WarpBarrier)), (2, 1));
        assert_eq!(
            (c.of(Kind::Shuffle), c.of(Kind::Vote), c.of(Kind::Mma)),
            (2, 1, 1)
        );
        assert_eq!(
            (c.of(Kind::Convert), c.of(Kind::Branch), c.of(Kind::Other)),
            (1, 1, 1)
        );
        assert_eq!(c.transfers(Transfer::Store, Space::Global), 1);
        assert_eq!(c.of(Kind::Add), 1);
        assert_eq!(c.denormals(), Denormals::Kept);
    }
}
