//! Statements in the text of a PTX kernel.
//!
//! A reader for the subset that LLVM's NVPTX back end writes, and for the blocks of inline
//! assembly inside it: those may put several statements on a line and open a scope of their own
//! with `{ }`, in which registers and labels hide the outer ones.

use allpairs::ptx::text::{identifier_len, line_of, significant_bytes};

/// Returns the text with comments and strings blanked, offsets and lines unchanged.
pub(super) fn without_comments(text: &str) -> String {
    let mut blank: Vec<u8> = text
        .bytes()
        .map(|byte| if byte == b'\n' { b'\n' } else { b' ' })
        .collect();
    for (at, byte) in significant_bytes(text) {
        blank[at] = if byte.is_ascii() { byte } else { b'?' };
    }
    String::from_utf8(blank).expect("every byte was made ASCII")
}

/// One instruction, as written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Instruction<'a> {
    /// Line within the kernel's text, counted from 0.
    pub(super) line: usize,
    /// True if a guard (`@%p1`, `@!%p1`) decides if it takes effect.
    pub(super) predicated: bool,
    /// Operation with all its modifiers, `ld.global.v4.f32`.
    pub(super) opcode: &'a str,
    operands: &'a str,
    scope: usize,
}

impl Instruction<'_> {
    /// The operation without modifiers, `ld`.
    pub(super) fn base(&self) -> &str {
        self.opcode.split('.').next().unwrap_or_default()
    }
}

#[derive(Debug)]
struct Label<'a> {
    name: &'a str,
    scope: usize,
    instruction: usize,
    /// Labels listed by a `.branchtargets` that stands here, for `brx.idx`.
    table: Vec<&'a str>,
}

/// Fault, and its line in the kernel's text (from 0).
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Fault {
    pub(super) line: usize,
    pub(super) reason: String,
}

/// The instructions of a kernel with the labels that branches refer to.
#[derive(Debug)]
pub(super) struct Listing<'a> {
    pub(super) instructions: Vec<Instruction<'a>>,
    /// Bytes of per-thread local memory that the kernel declares: what LLVM could not keep in
    /// registers.
    pub(super) local_bytes: u64,
    labels: Vec<Label<'a>>,
    /// The enclosing scope of each scope; the outermost encloses itself.
    scopes: Vec<usize>,
}

impl<'a> Listing<'a> {
    /// Reads a kernel's text from which comments were removed by [`without_comments`].
    pub(super) fn parse(text: &'a str) -> Result<Self, Fault> {
        let mut listing = Listing {
            instructions: vec![],
            local_bytes: 0,
            labels: vec![],
            scopes: vec![0],
        };
        let body_start = text.find('{').map_or(text.len(), |brace| brace + 1);
        let body_end = text.rfind('}').unwrap_or(text.len()).max(body_start);
        let mut scope = 0;
        let mut line = line_of(text, body_start) - 1;
        let mut rest = &text[body_start..body_end];
        loop {
            let statement = rest.trim_start();
            line += rest[..rest.len() - statement.len()].matches('\n').count();
            let Some(first) = statement.chars().next() else {
                break;
            };
            let fault = |reason: String| Fault { line, reason };
            let label = identifier_len(statement);
            let after_label = statement[label..].trim_start();
            let length = if first == '{' {
                listing.scopes.push(scope);
                scope = listing.scopes.len() - 1;
                1
            } else if first == '}' {
                scope = listing.scopes[scope];
                1
            } else if label > 0 && after_label.starts_with(':') {
                listing.labels.push(Label {
                    name: &statement[..label],
                    scope,
                    instruction: listing.instructions.len(),
                    table: vec![],
                });
                statement.len() - after_label.len() + 1
            } else if is_line_directive(statement) {
                statement.find('\n').unwrap_or(statement.len())
            } else {
                let end = statement
                    .find(';')
                    .ok_or_else(|| fault("a statement lacks its semicolon".into()))?;
                match first {
                    '.' => listing.directive(&statement[..end]),
                    _ => listing
                        .instruction(&statement[..end], line, scope)
                        .map_err(fault)?,
                }
                end + 1
            };
            line += statement[..length].matches('\n').count();
            rest = &statement[length..];
        }
        Ok(listing)
    }

    fn directive(&mut self, statement: &'a str) {
        let mut words = statement.split_whitespace();
        match words.next() {
            Some(".branchtargets") => {
                let targets = statement[".branchtargets".len()..]
                    .split(',')
                    .map(str::trim);
                if let Some(label) = self.labels.last_mut() {
                    label.table = targets.collect();
                }
            }
            Some(".local") => {
                let declared = declared_bytes(statement);
                self.local_bytes = self.local_bytes.saturating_add(declared);
            }
            _ => {}
        }
    }

    fn instruction(&mut self, text: &'a str, line: usize, scope: usize) -> Result<(), String> {
        let unguarded = match text.strip_prefix('@') {
            Some(guard) => guard
                .split_once(char::is_whitespace)
                .unwrap_or_default()
                .1
                .trim_start(),
            None => text,
        };
        let in_opcode = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | ':');
        let end = unguarded.find(|c| !in_opcode(c)).unwrap_or(unguarded.len());
        let (opcode, operands) = unguarded.split_at(end);
        if !opcode.starts_with(|c: char| c.is_ascii_alphabetic()) {
            return Err(format!("`{}` is not an instruction", text.trim()));
        }
        let predicated = unguarded.len() < text.len();
        let operands = operands.trim();
        self.instructions.push(Instruction {
            line,
            predicated,
            opcode,
            operands,
            scope,
        });
        Ok(())
    }

    /// The instructions that a branch may jump to, as indices; the number of instructions means
    /// the end of the kernel. Empty for anything but a branch.
    pub(super) fn targets(&self, branch: &Instruction<'_>) -> Result<Vec<usize>, Fault> {
        let resolve = |name: &str| {
            self.label(name, branch.scope).ok_or_else(|| Fault {
                line: branch.line,
                reason: format!("a branch goes to `{name}`, a label that does not exist"),
            })
        };
        match branch.base() {
            "bra" => Ok(vec![resolve(branch.operands)?.instruction]),
            "brx" => {
                let table = branch
                    .operands
                    .rsplit(',')
                    .next()
                    .unwrap_or_default()
                    .trim();
                let names = &resolve(table)?.table;
                names
                    .iter()
                    .map(|name| Ok(resolve(name)?.instruction))
                    .collect()
            }
            _ => Ok(vec![]),
        }
    }

    fn label(&self, name: &str, mut scope: usize) -> Option<&Label<'a>> {
        loop {
            let here = |label: &&Label<'_>| label.scope == scope && label.name == name;
            match self.labels.iter().find(here) {
                None if scope != self.scopes[scope] => scope = self.scopes[scope],
                found => return found,
            }
        }
    }

    /// The label in front of an instruction, the last one if there are several.
    pub(super) fn label_at(&self, instruction: usize) -> Option<&'a str> {
        let here = |label: &&Label<'_>| label.instruction == instruction;
        self.labels.iter().rev().find(here).map(|label| label.name)
    }
}

/// Debugging directives end with their line; all others with a semicolon.
fn is_line_directive(statement: &str) -> bool {
    matches!(statement.split_whitespace().next(), Some(".loc" | ".file"))
}

/// Bytes of `.local .align 4 .b8 depot[256]`, and of a scalar `.local .f64 x`.
fn declared_bytes(declaration: &str) -> u64 {
    let element = declaration
        .split(|c: char| c.is_whitespace() || c == '.')
        .filter_map(type_bits)
        .next()
        .map_or(1, |bits| u64::from(bits) / 8);
    let mut elements = 1u64;
    for part in declaration.split('[').skip(1) {
        let length = part
            .split(']')
            .next()
            .and_then(|digits| digits.trim().parse().ok());
        elements = elements.saturating_mul(length.unwrap_or(1));
    }
    elements.saturating_mul(element)
}

/// Width of a PTX type name (`f32`, `b64`, `bf16x2`), in bits.
pub(super) fn type_bits(name: &str) -> Option<u32> {
    let (element, factor) = match name.strip_suffix("x2") {
        Some(element) => (element, 2),
        None => (name, 1),
    };
    let digits = ["bf", "tf", "f", "b", "s", "u"]
        .iter()
        .find_map(|p| element.strip_prefix(p))?;
    let bits: u32 = digits.parse().ok()?;
    matches!(bits, 8 | 16 | 32 | 64 | 128).then_some(bits * factor)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn opcodes<'a>(listing: &Listing<'a>) -> Vec<&'a str> {
        listing
            .instructions
            .iter()
            .map(|instruction| instruction.opcode)
            .collect()
    }

    #[test]
    fn statements_guards_and_directives() {
        let text = without_comments(
            ".entry k() .maxntid 256 {\n .reg .pred %p<3>; .local .align 8 .b8 depot[2][64];\n\
             .local .f64 one;\n .loc 1 2 3\n @%p1 bra $L1;\n /* ; */ @!%p2 add.f32 %f1,%f2,%f3;\n\
             // nothing;\n$L1: ld.global.v4.f32 {%f1,%f2,%f3,%f4}, [%rd1];\n ret;\n}",
        );
        let listing = Listing::parse(&text).unwrap();
        assert_eq!(
            opcodes(&listing),
            ["bra", "add.f32", "ld.global.v4.f32", "ret"]
        );
        let guards: Vec<bool> = listing.instructions.iter().map(|i| i.predicated).collect();
        assert_eq!(guards, [true, true, false, false]);
        assert_eq!(listing.local_bytes, 128 + 8);
        assert_eq!(listing.targets(&listing.instructions[0]).unwrap(), [2]);
        assert_eq!(listing.instructions[2].line, 7);
        assert_eq!(listing.label_at(2), Some("$L1"));
    }

    #[test]
    fn inline_assembly_opens_scopes_with_labels_of_their_own() {
        let text = "{ L: nop; { .reg .u64 %t; mov.u64 %t, x; bra L; } bra L;\n\
                    { L: mov.u64 a, b; bra L; bra END; } END: ret; }";
        let listing = Listing::parse(text).unwrap();
        assert_eq!(
            opcodes(&listing),
            [
                "nop", "mov.u64", "bra", "bra", "mov.u64", "bra", "bra", "ret"
            ]
        );
        let target = |at: usize| listing.targets(&listing.instructions[at]).unwrap();
        assert_eq!(
            [target(2), target(3), target(5), target(6)],
            [[0], [0], [4], [7]]
        );
    }

    #[test]
    fn indirect_branches_reach_every_target_of_their_table() {
        let text = "{ T: .branchtargets A, B;\n brx.idx %r1, T; A: ret; B: ret; }";
        let listing = Listing::parse(text).unwrap();
        assert_eq!(listing.targets(&listing.instructions[0]).unwrap(), [1, 2]);
    }

    #[test]
    fn malformed_text_is_refused_with_its_line() {
        let fault = |text| Listing::parse(text).unwrap_err();
        assert_eq!(fault("{ ret;\n add.f32 a, b }").line, 1);
        assert_eq!(fault("{ ret;\n\n = 3; }").line, 2);
        let listing = Listing::parse("{ bra NOWHERE; }").unwrap();
        let fault = listing.targets(&listing.instructions[0]).unwrap_err();
        assert!(fault.reason.contains("NOWHERE"), "{}", fault.reason);
    }

    #[test]
    fn widths_of_types() {
        let widths = [
            "f32", "b8", "bf16x2", "tf32", "f16x2", "b128", "pred", "m8n8", "s", "f33",
        ];
        let bits = [32, 8, 32, 32, 32, 128, 0, 0, 0, 0];
        assert_eq!(widths.map(|name| type_bits(name).unwrap_or(0)), bits);
    }
}
