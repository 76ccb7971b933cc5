//! Splits PTX text into statements.
//!
//! A statement ends at `;`, a block opens with `{`; inside an instruction braces group operands
//! (`ld.global.v4.b32 {%r1, %r2, %r3, %r4}, [%rd1];`). Nothing else of the language is assumed.

use std::ops::Range;
use thiserror::Error;

/// Fault of a PTX module.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum PtxError {
    /// Text that is no PTX statement.
    #[error("PTX line {line}: `{found}` is not understood as the start of a PTX statement")]
    Unexpected {
        /// Line in the PTX text, from 1.
        line: usize,
        /// The text found there.
        found: String,
    },
    /// The text ends within a statement, a comment, a string or a block.
    #[error("PTX line {line}: the text ends before what begins here is closed")]
    Unterminated {
        /// Line in the PTX text, from 1.
        line: usize,
    },
    /// The driver can resolve no symbol outside the module.
    #[error(
        "the PTX refers to what it does not contain, so the driver would reject it: {}. \
         Make functions of device libraries `#[inline(always)]`; a memory copy or a formula of the \
         C library (memcpy, sinf, …) must be spelled out in the kernel",
        names.join(", ")
    )]
    External {
        /// The functions and statics, demangled.
        names: Vec<String>,
    },
    /// A function was compiled as a call.
    #[error(
        "functions of the device code were not inlined: {}. Mark them `#[inline(always)]`: a call \
         in a kernel costs its registers, and the mangled names change from build to build",
        names.join(", ")
    )]
    NotInlined {
        /// The functions, demangled.
        names: Vec<String>,
    },
    /// A module without kernels is of no use.
    #[error("the PTX has no entry point; is a function marked `#[kernel]` and public?")]
    NoEntries,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    Directive,
    Instruction,
    Label,
    Open,
    Close,
}

/// A statement and the bytes it covers, without comments and blanks around it. An instruction
/// begins at its opcode: the guard (`@%p1`) before it is left out.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Statement {
    pub(crate) kind: Kind,
    pub(crate) range: Range<usize>,
}

/// Directives that end with their line, not with a semicolon.
const LINE_DIRECTIVES: &[&str] = &[".version", ".target", ".address_size", ".file", ".loc"];

pub(crate) fn statements(text: &str) -> Result<Vec<Statement>, PtxError> {
    let scanner = Scanner { text };
    let bytes = text.as_bytes();
    let mut found = Vec::new();
    let mut at = 0;
    loop {
        at = scanner.skip_trivia(at)?;
        let start = at;
        let Some(&first) = bytes.get(at) else {
            return Ok(found);
        };
        let kind = match first {
            b';' => {
                at += 1;
                continue;
            }
            b'{' | b'}' => {
                at += 1;
                if first == b'{' {
                    Kind::Open
                } else {
                    Kind::Close
                }
            }
            b'.' => {
                at = scanner.directive_end(start)?;
                Kind::Directive
            }
            b'@' => {
                at = scanner.skip_trivia(at + 1)?;
                if bytes.get(at) == Some(&b'!') {
                    at = scanner.skip_trivia(at + 1)?;
                }
                at = scanner.word_end(at);
                continue;
            }
            _ if is_word(first) && !first.is_ascii_digit() => {
                let after = scanner.skip_trivia(scanner.word_end(at))?;
                if bytes.get(after) == Some(&b':') && bytes.get(after + 1) != Some(&b':') {
                    at = after + 1;
                    Kind::Label
                } else {
                    at = scanner.find(at, b";")? + 1;
                    Kind::Instruction
                }
            }
            _ => {
                let found = text[at..]
                    .lines()
                    .next()
                    .unwrap_or_default()
                    .trim_end()
                    .to_owned();
                return Err(PtxError::Unexpected {
                    line: line_of(text, at),
                    found,
                });
            }
        };
        found.push(Statement {
            kind,
            range: start..at,
        });
    }
}

struct Scanner<'a> {
    text: &'a str,
}

impl Scanner<'_> {
    fn word_end(&self, start: usize) -> usize {
        let rest = &self.text.as_bytes()[start..];
        start
            + rest
                .iter()
                .position(|&byte| !is_word(byte))
                .unwrap_or(rest.len())
    }

    fn skip_trivia(&self, mut at: usize) -> Result<usize, PtxError> {
        loop {
            let rest = &self.text[at..];
            if rest.starts_with(|c: char| c.is_ascii_whitespace()) {
                at += 1;
            } else if rest.starts_with("//") {
                at += rest.find('\n').unwrap_or(rest.len());
            } else if let Some(comment) = rest.strip_prefix("/*") {
                let length = comment.find("*/").ok_or_else(|| self.unterminated(at))?;
                at += length + "/**/".len();
            } else {
                return Ok(at);
            }
        }
    }

    /// The first of `wanted` at or after `start` that is in no comment and no string.
    fn find(&self, start: usize, wanted: &[u8]) -> Result<usize, PtxError> {
        let bytes = self.text.as_bytes();
        let mut at = start;
        loop {
            match bytes.get(at) {
                None => return Err(self.unterminated(start)),
                Some(byte) if wanted.contains(byte) => return Ok(at),
                Some(b'"') => {
                    let close = self.text[at + 1..].find('"');
                    at += 2 + close.ok_or_else(|| self.unterminated(at))?;
                }
                Some(b'/') => {
                    let after = self.skip_trivia(at)?;
                    at = after.max(at + 1);
                }
                Some(_) => at += 1,
            }
        }
    }

    fn directive_end(&self, start: usize) -> Result<usize, PtxError> {
        let name = &self.text[start..self.word_end(start + 1)];
        if LINE_DIRECTIVES.contains(&name) {
            let rest = &self.text[start..];
            return Ok(start + rest.find('\n').unwrap_or(rest.len()));
        }
        let end = self.find(start, b";{}=")?;
        match self.text.as_bytes()[end] {
            b';' => Ok(end + 1),
            // The braces of an initialiser open no block.
            b'=' => Ok(self.find(end, b";")? + 1),
            _ => Ok(end),
        }
    }

    fn unterminated(&self, at: usize) -> PtxError {
        PtxError::Unterminated {
            line: line_of(self.text, at),
        }
    }
}

pub(crate) fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$' | b'%')
}

pub(crate) fn line_of(text: &str, offset: usize) -> usize {
    1 + text[..offset].matches('\n').count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_are_split_where_ptx_ends_them() {
        const MODULE: &str = "// Generated by LLVM NVPTX Back-End

.target sm_80
.global .align 4 .b8 data[4] = {0, 0, 128, 63};
.visible .entry first(
\t.param .u64 .ptr .align 1 first_param_0
)
.maxntid 256, 1, 1
{
\t{ // callseq 0, 0
\t@!%p1 bra \t$L__BB1_2; /* a ; in a comment */ ret;
\t}
\tld.global.v2.b32 \t{%r1, %r2}, [%rd1]; // and one ; here
\t.pragma \"nounroll;\";
$L__BB1_2: ret;
}
";
        let found: Vec<(Kind, &str)> = statements(MODULE)
            .unwrap()
            .into_iter()
            .map(|statement| (statement.kind, &MODULE[statement.range]))
            .collect();
        for expected in [
            (Kind::Directive, ".target sm_80"),
            (
                Kind::Directive,
                ".global .align 4 .b8 data[4] = {0, 0, 128, 63};",
            ),
            (Kind::Instruction, "bra \t$L__BB1_2;"),
            (Kind::Instruction, "ld.global.v2.b32 \t{%r1, %r2}, [%rd1];"),
            (Kind::Directive, ".pragma \"nounroll;\";"),
            (Kind::Label, "$L__BB1_2:"),
        ] {
            assert!(
                found.contains(&expected),
                "{expected:?} is not among {found:#?}"
            );
        }
        assert_eq!(found.iter().filter(|(_, text)| *text == "ret;").count(), 2);
    }

    #[test]
    fn broken_text_is_refused_with_its_line() {
        for (text, line) in [
            (".version 7.0\n\nret\n", "line 3"),
            ("/* never closed", "line 1"),
            ("ret;\n\n4 + 4;\n", "line 3"),
            (".pragma \"never closed;\n", "line 1"),
            ("été;", "line 1"),
        ] {
            let message = statements(text).err().unwrap().to_string();
            assert!(message.contains(line), "{text:?}: {message}");
        }
    }
}
