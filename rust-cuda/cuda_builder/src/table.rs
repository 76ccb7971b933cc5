//! The modules as a text for people: a line for each kernel and generation.

use crate::NvptxArch;
use crate::ftz::mnemonic;
use crate::hash::bytes_hash;
use crate::module::Parts;
use crate::ptx::{Kind, PtxError, statements};
use std::collections::BTreeMap;
use std::fmt;

/// Describes every kernel of some modules in a line that depends on this kernel alone: what it
/// consists of, and a hash of its PTX. Lines are sorted by kernel, then by generation.
///
/// # Errors
/// Text that is not PTX.
pub fn describe(modules: &[(NvptxArch, &str)]) -> Result<String, PtxError> {
    let mut lines = BTreeMap::new();
    for (arch, module) in modules {
        for (name, text) in Parts::of(module)?.kernels {
            lines.insert(
                (name, arch),
                format!("{name} {arch}: {}\n", Summary::of(text)?),
            );
        }
    }
    Ok(lines.into_values().collect())
}

/// Kernels and generations of which a description has a line.
pub(crate) fn described(text: &str) -> impl Iterator<Item = &str> {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines.filter_map(|line| Some(line.split_once(": ")?.0))
}

/// Counts that describe a kernel.
#[derive(Default)]
struct Summary {
    instructions: usize,
    f32_arithmetic: usize,
    f64_arithmetic: usize,
    matrix: usize,
    global: usize,
    shared: usize,
    barriers: usize,
    /// Virtual registers of each width.
    predicates: usize,
    narrow: usize,
    wide: usize,
    local_bytes: usize,
    bytes: usize,
    hash: u64,
}

impl Summary {
    fn of(kernel: &str) -> Result<Self, PtxError> {
        let mut summary = Self {
            bytes: kernel.len(),
            hash: bytes_hash(kernel.as_bytes()),
            ..Self::default()
        };
        for statement in statements(kernel)? {
            let text = &kernel[statement.range];
            match statement.kind {
                Kind::Instruction => summary.add_instruction(mnemonic(text)),
                Kind::Directive => summary.add_declaration(text),
                Kind::Label | Kind::Open | Kind::Close => {}
            }
        }
        Ok(summary)
    }

    fn add_instruction(&mut self, mnemonic: &str) {
        self.instructions += 1;
        let mut parts = mnemonic.split('.');
        let opcode = parts.next().unwrap_or_default();
        let modifiers: Vec<&str> = parts.collect();
        match opcode {
            "mma" | "wmma" | "wgmma" => self.matrix += 1,
            "bar" | "barrier" => self.barriers += 1,
            "ld" | "ldu" | "st" | "atom" | "red" => {
                self.global += usize::from(modifiers.contains(&"global"));
                self.shared += usize::from(modifiers.contains(&"shared"));
            }
            "mov" | "selp" | "setp" | "cvt" | "shfl" => {}
            _ => match modifiers.last() {
                Some(&("f32" | "f32x2")) => self.f32_arithmetic += 1,
                Some(&"f64") => self.f64_arithmetic += 1,
                _ => {}
            },
        }
    }

    /// Adds `.reg .b32 %r<12>;`, with the registers `%r1` to `%r11`, `.reg .b32 one;`, or
    /// `.local .align 8 .b8 name[64];`.
    fn add_declaration(&mut self, directive: &str) {
        let within = |open: char, close: char| -> Option<usize> {
            let (inner, _) = directive.split_once(open)?.1.split_once(close)?;
            inner.parse().ok()
        };
        let mut words = directive.split_ascii_whitespace();
        match words.next() {
            Some(".reg") => {
                let count = within('<', '>').map_or(1, |end| end.saturating_sub(1));
                match words.next() {
                    Some(".pred") => self.predicates += count,
                    Some(".b64" | ".f64" | ".u64" | ".s64") => self.wide += count,
                    _ => self.narrow += count,
                }
            }
            Some(".local") => self.local_bytes += within('[', ']').unwrap_or(0),
            _ => {}
        }
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            instructions,
            f32_arithmetic,
            f64_arithmetic,
            matrix,
            global,
            shared,
            barriers,
            predicates,
            narrow,
            wide,
            local_bytes,
            bytes,
            hash,
        } = self;
        write!(
            f,
            "{instructions} instructions ({f32_arithmetic} f32, {f64_arithmetic} f64, {matrix} mma, \
             {global} global, {shared} shared, {barriers} bar), registers {predicates} pred \
             {narrow} b32 {wide} b64, local {local_bytes} bytes, PTX {bytes} bytes {hash:016x}"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KERNEL: &str = ".visible .entry k(
)
{
\t.local .align 8 .b8 \t__local_depot0[64];
\t.reg .pred \t%p<3>;
\t.reg .b16 \t%rs<2>;
\t.reg .b32 \t%r<6>;
\t.reg .b64 \t%rd<4>;
$L:
\t@%p1 bra \t$L;
\tld.global.nc.v4.b32 \t{%r1, %r2, %r3, %r4}, [%rd1];
\tst.shared.b32 \t[%rd2], %r1;
\tred.global.add.f32 \t[%rd2], %r1;
\tbar.sync \t0;
\tfma.rn.f32 \t%r1, %r1, %r1, %r1;
\tadd.rn.f64 \t%rd1, %rd1, %rd1;
\tcvt.f32.f64 \t%r1, %rd1;
\t{ .reg .b32 tmp; mov.b64 {tmp, %r5}, %rd1; }
\tmma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 \t{%r1}, {%r2}, {%r3}, {%r4};
\tret;
}
";

    #[test]
    fn a_kernel_is_summed_up() {
        let summary = Summary::of(KERNEL).unwrap().to_string();
        let expected = format!(
            "11 instructions (1 f32, 1 f64, 1 mma, 2 global, 1 shared, 1 bar), registers 2 pred 7 b32 \
             3 b64, local 64 bytes, PTX {} bytes {:016x}",
            KERNEL.len(),
            bytes_hash(KERNEL.as_bytes())
        );
        assert_eq!(summary, expected);
    }

    #[test]
    fn a_change_to_a_kernel_changes_its_line_alone() {
        let [old, new] = ["ret;", "trap;"].map(|end| {
            let module = format!(
                ".version 7.0\n.visible .entry b() {{ {end} }}\n.visible .entry a() {{ ret; }}\n"
            );
            describe(&[(NvptxArch::Sm90, &module), (NvptxArch::Sm75, &module)]).unwrap()
        });
        assert!(
            described(&old).eq(["a sm_75", "a sm_90", "b sm_75", "b sm_90"]),
            "{old}"
        );
        let changed: Vec<bool> = old.lines().zip(new.lines()).map(|(a, b)| a != b).collect();
        assert_eq!(changed, [false, false, true, true]);
    }
}
