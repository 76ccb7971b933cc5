//! Denormal flushing: turns a precise module into one that treats f32 denormals as zero.
//!
//! `rustc` has no flag for it, and on this target it is a property of every single instruction
//! (the `.ftz` modifier). So the module's text is rewritten: each f32 instruction that has a
//! `.ftz` form takes it, as `nvcc -ftz=true` does. f64 and f16 instructions keep their denormals.
//!
//! An f32 instruction that is not in the lists below is an error: it might compute with
//! denormals, and a module must not be half flushed.
//!
//! Source: PTX ISA 8.1, the syntax of each instruction in chapters "Floating-Point
//! Instructions", "Comparison and Selection Instructions" and "Data Movement and Conversion".

use crate::ptx::{Kind, PtxError, line_of, statements};
use thiserror::Error;

/// Why a module could not be flushed.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum FtzError {
    /// The text is no PTX.
    #[error(transparent)]
    Ptx(#[from] PtxError),
    /// An f32 instruction in none of the lists.
    #[error(
        "PTX line {line}: whether `{instruction}` takes `.ftz` is not known; add it to the lists \
         in cuda_builder's ftz.rs (PTX ISA, syntax of that instruction)"
    )]
    Unknown {
        /// Line in the PTX text, from 1.
        line: usize,
        /// The instruction with its modifiers.
        instruction: String,
    },
}

/// An instruction with a `.ftz` form: `opcode {before} .ftz {after} types`.
struct Form {
    opcodes: &'static [&'static str],
    before: &'static [&'static str],
    after: &'static [&'static str],
    types: Types,
}

#[derive(Clone, Copy)]
enum Types {
    /// `.f32`, or two at once.
    One,
    /// `.dtype.f32`: flushing concerns the operands, whatever the result is.
    ResultAndSource,
    /// `.dtype.atype` of a conversion.
    Conversion,
}

const FORMS: &[Form] = &[
    Form {
        opcodes: &["add", "sub", "mul", "mad", "fma"],
        before: &["rn", "rz", "rm", "rp"],
        after: &["sat"],
        types: Types::One,
    },
    Form {
        opcodes: &["div", "rcp", "sqrt", "rsqrt", "sin", "cos", "lg2", "ex2"],
        before: &["approx", "full", "rn", "rz", "rm", "rp"],
        after: &[],
        types: Types::One,
    },
    Form {
        opcodes: &["abs", "neg"],
        before: &[],
        after: &[],
        types: Types::One,
    },
    Form {
        opcodes: &["min", "max"],
        before: &[],
        after: &["NaN", "xorsign", "abs"],
        types: Types::One,
    },
    Form {
        opcodes: &["setp"],
        before: COMPARISONS,
        after: &[],
        types: Types::One,
    },
    Form {
        opcodes: &["set"],
        before: COMPARISONS,
        after: &[],
        types: Types::ResultAndSource,
    },
    Form {
        opcodes: &["slct"],
        before: &[],
        after: &[],
        types: Types::ResultAndSource,
    },
    Form {
        opcodes: &["cvt"],
        before: &["rn", "rz", "rm", "rp", "rni", "rzi", "rmi", "rpi"],
        after: &["sat"],
        types: Types::Conversion,
    },
];

const COMPARISONS: &[&str] = &[
    "eq", "ne", "lt", "le", "gt", "ge", "equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan",
    "and", "or", "xor",
];

/// f32 instructions without a `.ftz` form: they move bits (`ld` … `selp`), look at or set the
/// sign or class of a number (`copysign`, `testp`), or have rounding fixed by the hardware
/// (`tanh`, atomics, matrix instructions).
const UNTOUCHED: &[&str] = &[
    "ld", "ldu", "st", "mov", "selp", "copysign", "testp", "tanh", "atom", "red", "mma", "wmma",
    "wgmma",
];

const INTEGERS: &[&str] = &["u8", "u16", "u32", "u64", "s8", "s16", "s32", "s64"];

/// Conversions between f32 and these have no `.ftz` form, or none that matters: an f32 denormal
/// is zero in f16 anyway, and no f16 number becomes an f32 denormal.
const NARROW: &[&str] = &["f16", "bf16", "f16x2", "bf16x2", "tf32", "e4m3x2", "e5m2x2"];

/// Character that PTX does not have, where [`mark_flushes`] says that `.ftz` goes.
pub const FLUSH: char = '\u{1}';

/// Gives every f32 instruction of the module that has one its `.ftz` form.
///
/// Everything else stays as it was, byte for byte, and flushing twice changes nothing.
///
/// # Errors
/// [`FtzError::Unknown`] for an f32 instruction that is in no list; broken PTX.
pub fn flush_denormals(module: &str) -> Result<String, FtzError> {
    Ok(mark_flushes(module)?.replace(FLUSH, ".ftz"))
}

/// Puts a [`FLUSH`] where [`flush_denormals`] puts `.ftz`: one text for both treatments of denormals.
///
/// # Errors
/// As [`flush_denormals`].
pub fn mark_flushes(module: &str) -> Result<String, FtzError> {
    let mut output = String::with_capacity(module.len() + module.len() / 16);
    let mut copied = 0;
    for statement in statements(module)? {
        if statement.kind != Kind::Instruction {
            continue;
        }
        let start = statement.range.start;
        let instruction = mnemonic(&module[statement.range]);
        match insertion(instruction) {
            Treatment::Flush(offset) => {
                output.push_str(&module[copied..start + offset]);
                output.push(FLUSH);
                copied = start + offset;
            }
            Treatment::Leave => {}
            Treatment::Unknown => {
                return Err(FtzError::Unknown {
                    line: line_of(module, start),
                    instruction: instruction.to_owned(),
                });
            }
        }
    }
    output.push_str(&module[copied..]);
    Ok(output)
}

/// The opcode with its modifiers: what stands before the operands.
pub(crate) fn mnemonic(statement: &str) -> &str {
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | ':');
    statement.split(|c| !is_part(c)).next().unwrap_or_default()
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Treatment {
    /// `.ftz` belongs at this byte of the mnemonic.
    Flush(usize),
    Leave,
    Unknown,
}

fn insertion(instruction: &str) -> Treatment {
    let mut parts = instruction.split('.');
    let opcode = parts.next().unwrap_or_default();
    let modifiers: Vec<&str> = parts.collect();
    let computes_f32 = modifiers
        .iter()
        .any(|part| matches!(*part, "f32" | "f32x2"));
    if !computes_f32 || UNTOUCHED.contains(&opcode) {
        return Treatment::Leave;
    }
    let Some(form) = FORMS.iter().find(|form| form.opcodes.contains(&opcode)) else {
        return Treatment::Unknown;
    };
    let type_count = if matches!(form.types, Types::One) {
        1
    } else {
        2
    };
    let Some(split) = modifiers.len().checked_sub(type_count) else {
        return Treatment::Unknown;
    };
    let (modifiers, types) = modifiers.split_at(split);
    let flushes = match (form.types, types) {
        (Types::One, ["f32" | "f32x2"]) => true,
        (Types::ResultAndSource, [_, "f32"]) => true,
        // A comparison of other types with an f32 result (1.0 or 0.0).
        (Types::ResultAndSource, ["f32", _]) => false,
        (Types::Conversion, ["f32", "f32" | "f64"] | ["f64", "f32"]) => true,
        (Types::Conversion, [integer, "f32"]) if INTEGERS.contains(integer) => true,
        (Types::Conversion, ["f32", other] | [other, "f32"])
            if INTEGERS.contains(other) || NARROW.contains(other) =>
        {
            false
        }
        _ => return Treatment::Unknown,
    };
    if !flushes || modifiers.contains(&"ftz") {
        return Treatment::Leave;
    }
    let leading = modifiers
        .iter()
        .take_while(|part| form.before.contains(part))
        .count();
    if !modifiers[leading..]
        .iter()
        .all(|part| form.after.contains(part))
    {
        return Treatment::Unknown;
    }
    Treatment::Flush(
        opcode.len()
            + modifiers[..leading]
                .iter()
                .map(|m| m.len() + 1)
                .sum::<usize>(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Precise form, and what `nvcc -ftz=true` writes in its place where nvcc has it.
    const FLUSHED: &[(&str, &str)] = &[
        ("add.f32", "add.ftz.f32"),
        ("add.rn.f32", "add.rn.ftz.f32"),
        ("sub.rz.sat.f32", "sub.rz.ftz.sat.f32"),
        ("mul.rn.f32", "mul.rn.ftz.f32"),
        ("mul.sat.f32", "mul.ftz.sat.f32"),
        ("mad.rn.f32", "mad.rn.ftz.f32"),
        ("fma.rn.f32", "fma.rn.ftz.f32"),
        ("fma.rp.sat.f32", "fma.rp.ftz.sat.f32"),
        ("fma.rn.f32x2", "fma.rn.ftz.f32x2"),
        ("div.full.f32", "div.full.ftz.f32"),
        ("div.approx.f32", "div.approx.ftz.f32"),
        ("div.rn.f32", "div.rn.ftz.f32"),
        ("rcp.rn.f32", "rcp.rn.ftz.f32"),
        ("rcp.approx.f32", "rcp.approx.ftz.f32"),
        ("sqrt.rn.f32", "sqrt.rn.ftz.f32"),
        ("sqrt.approx.f32", "sqrt.approx.ftz.f32"),
        ("rsqrt.approx.f32", "rsqrt.approx.ftz.f32"),
        ("sin.approx.f32", "sin.approx.ftz.f32"),
        ("cos.approx.f32", "cos.approx.ftz.f32"),
        ("lg2.approx.f32", "lg2.approx.ftz.f32"),
        ("ex2.approx.f32", "ex2.approx.ftz.f32"),
        ("abs.f32", "abs.ftz.f32"),
        ("neg.f32", "neg.ftz.f32"),
        ("min.f32", "min.ftz.f32"),
        ("max.NaN.f32", "max.ftz.NaN.f32"),
        ("min.NaN.xorsign.abs.f32", "min.ftz.NaN.xorsign.abs.f32"),
        ("setp.lt.f32", "setp.lt.ftz.f32"),
        ("setp.gtu.f32", "setp.gtu.ftz.f32"),
        ("setp.lt.and.f32", "setp.lt.and.ftz.f32"),
        ("set.ge.u32.f32", "set.ge.ftz.u32.f32"),
        ("set.ge.xor.f32.f32", "set.ge.xor.ftz.f32.f32"),
        ("slct.u64.f32", "slct.ftz.u64.f32"),
        ("cvt.sat.f32.f32", "cvt.ftz.sat.f32.f32"),
        ("cvt.rpi.f32.f32", "cvt.rpi.ftz.f32.f32"),
        ("cvt.rn.f32.f64", "cvt.rn.ftz.f32.f64"),
        ("cvt.f64.f32", "cvt.ftz.f64.f32"),
        ("cvt.rzi.s32.f32", "cvt.rzi.ftz.s32.f32"),
        ("cvt.rpi.u32.f32", "cvt.rpi.ftz.u32.f32"),
    ];

    const LEFT: &[&str] = &[
        "add.rn.ftz.f32",
        "add.rn.f64",
        "rsqrt.approx.ftz.f64",
        "rcp.approx.ftz.f64",
        "fma.rn.f16",
        "add.f16x2",
        "setp.lt.f16",
        "set.lt.f32.f16",
        "add.s32",
        "ld.global.v4.f32",
        "ld.param.f32",
        "st.shared.f32",
        "mov.f32",
        "selp.f32",
        "copysign.f32",
        "testp.finite.f32",
        "tanh.approx.f32",
        "shfl.sync.bfly.b32",
        "atom.global.add.f32",
        "red.global.add.v4.f32",
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32",
        "cvt.rn.f32.s32",
        "cvt.rn.f32.u64",
        "cvt.rn.f16.f32",
        "cvt.f32.f16",
        "cvt.rn.f16x2.f32",
        "cvt.rna.tf32.f32",
        "cvt.rn.relu.bf16x2.f32",
        "mbarrier.try_wait.parity.shared::cta.b64",
    ];

    const UNKNOWN: &[&str] = &[
        "warp.f32",
        "add.rn.relu.f32",
        "add.sat.rn.f32",
        "add.f32.f16",
        "neg.sat.f32",
        "cvt.rn.f32.e8m23",
        "cvt.f32",
        "setp.f32.f64",
    ];

    fn module(instruction: &str) -> String {
        format!(".version 7.0\n.visible .entry k()\n{{\n\t@%p1 {instruction} \t%r1, %r2;\n}}\n")
    }

    #[test]
    fn every_instruction_is_flushed_left_or_refused_as_the_isa_says() {
        for (precise, flushed) in FLUSHED {
            assert_eq!(flush_denormals(&module(precise)).unwrap(), module(flushed));
            assert_eq!(flush_denormals(&module(flushed)).unwrap(), module(flushed));
        }
        for instruction in LEFT {
            assert_eq!(
                flush_denormals(&module(instruction)).unwrap(),
                module(instruction)
            );
        }
        for instruction in UNKNOWN {
            let message = flush_denormals(&module(instruction))
                .unwrap_err()
                .to_string();
            assert!(
                message.contains(instruction) && message.contains("line 4"),
                "{message}"
            );
        }
    }

    #[test]
    fn declarations_comments_and_labels_are_no_instructions() {
        let text = ".version 7.0\n.global .f32 add.f32;\n// mul.f32 a, b;\n.visible .entry k(\n\
                    .param .f32 k_param_0\n)\n{\n.reg .f32 %f<4>;\n\
                    /* sub.f32 x; */ here: ret;\n}\n";
        assert_eq!(flush_denormals(text).unwrap(), text);
    }

    #[test]
    fn several_instructions_on_a_line_are_all_flushed() {
        let text = "{ .reg .f32 t; rsqrt.approx.f32 t, %r1; mul.rn.f32 %r0, t, t; }";
        let flushed = "{ .reg .f32 t; rsqrt.approx.ftz.f32 t, %r1; mul.rn.ftz.f32 %r0, t, t; }";
        assert_eq!(flush_denormals(text).unwrap(), flushed);
    }
}
