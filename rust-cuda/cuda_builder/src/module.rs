//! Definitions in a PTX module, and the module made of the compiler's output.

use crate::ptx::{Kind, PtxError, Statement, is_word, line_of, statements};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// A definition or declaration at the top level of a module.
struct Item<'a> {
    directive: &'a str,
    /// The directive and, for a function, its body.
    range: Range<usize>,
}

impl<'a> Item<'a> {
    fn words(&self) -> impl Iterator<Item = &'a str> + use<'a> {
        self.directive
            .split(|c: char| !(c == '.' || c.is_ascii() && is_word(c as u8)))
            .filter(|word| !word.is_empty())
    }

    fn has(&self, wanted: &str) -> bool {
        self.words().any(|word| word == wanted)
    }

    /// `.entry name(…)`, `.func name(…)`, or `.func (.param .b32 result) name(…)`.
    fn function_name(&self, keyword: &str) -> Option<&'a str> {
        let offset = self.directive.find(keyword)? + keyword.len();
        let mut rest = self.directive[offset..].trim_start();
        if let Some(results) = rest.strip_prefix('(') {
            rest = results.split_once(')')?.1.trim_start();
        }
        rest.split(|c: char| !(c.is_ascii() && is_word(c as u8)))
            .next()
    }

    /// The symbol of `.global .align 4 .b8 name[20] = {…};`, where it is one.
    fn data_name(&self) -> Option<&'a str> {
        if !(self.has(".global") || self.has(".const") || self.has(".shared")) {
            return None;
        }
        let declaration = self.directive.split(['=', '[', ';']).next()?;
        declaration.split_ascii_whitespace().next_back()
    }
}

fn items(text: &str) -> Result<Vec<Item<'_>>, PtxError> {
    let mut items: Vec<Item<'_>> = Vec::new();
    let mut depth = 0_usize;
    let mut opened = 0;
    for Statement { kind, range } in statements(text)? {
        match kind {
            Kind::Open => {
                if depth == 0 {
                    opened = range.start;
                }
                depth += 1;
            }
            Kind::Close => {
                depth = depth.checked_sub(1).ok_or_else(|| PtxError::Unexpected {
                    line: line_of(text, range.start),
                    found: "}".to_owned(),
                })?;
                if depth == 0
                    && let Some(item) = items.last_mut()
                {
                    item.range.end = range.end;
                }
            }
            Kind::Directive if depth == 0 => {
                items.push(Item {
                    directive: &text[range.clone()],
                    range,
                });
            }
            _ => {}
        }
    }
    if depth > 0 {
        return Err(PtxError::Unterminated {
            line: line_of(text, opened),
        });
    }
    Ok(items)
}

/// The entry points of a module.
///
/// # Errors
/// Text that is not PTX.
pub fn entries(text: &str) -> Result<BTreeSet<String>, PtxError> {
    let items = items(text)?;
    let names = items.iter().filter_map(|item| item.function_name(".entry"));
    Ok(names.map(str::to_owned).collect())
}

/// A module taken apart; all parts together are the module.
pub(crate) struct Parts<'a> {
    /// Text before the first kernel.
    pub(crate) head: &'a str,
    /// The text of each kernel, with all that follows it up to the next kernel.
    pub(crate) kernels: BTreeMap<&'a str, &'a str>,
}

impl<'a> Parts<'a> {
    /// Takes a module apart.
    ///
    /// # Errors
    /// Text that is not PTX.
    pub(crate) fn of(text: &'a str) -> Result<Self, PtxError> {
        let items = items(text)?;
        let starts: Vec<(&str, usize)> = items
            .iter()
            .filter_map(|item| Some((item.function_name(".entry")?, item.range.start)))
            .map(|(name, start)| (name, before_comment(text, start)))
            .collect();
        let ends = starts.iter().skip(1).map(|&(_, start)| start);
        let ends = ends.chain([text.len()]);
        let first = starts.first().map_or(text.len(), |&(_, start)| start);
        Ok(Self {
            head: &text[..first],
            kernels: starts
                .iter()
                .zip(ends)
                .map(|(&(name, start), end)| (name, &text[start..end]))
                .collect(),
        })
    }
}

/// Start of the comment with the kernel's name that the compiler writes before each, if it is there.
fn before_comment(text: &str, start: usize) -> usize {
    let before = &text[..start];
    let line = before
        .trim_end()
        .rfind('\n')
        .map_or(0, |newline| newline + 1);
    if before[line..].starts_with("\t// .globl\t") {
        line
    } else {
        start
    }
}

/// Makes a module of what the compiler wrote: checks that it stands alone, and removes what
/// would differ between builds or serves nothing.
///
/// * The compiler's banner goes; a header takes its place.
/// * The panic handler goes: panics abort at once, so nothing calls it.
/// * Data get names by order instead of the compiler's, which hold a hash of the package version.
///
/// # Errors
/// Functions that are not in the module or were not inlined, no entry point, or broken PTX.
pub(crate) fn tidy(text: &str) -> Result<String, PtxError> {
    let mut external = Vec::new();
    let mut not_inlined = Vec::new();
    let mut renamed = BTreeMap::new();
    let mut handler = None;
    let items = items(text)?;
    for item in &items {
        if let Some(name) = item.function_name(".func") {
            if name.ends_with("rust_begin_unwind") {
                handler = Some((name, item.range.clone()));
            } else if item.has(".extern") {
                external.push(demangled(name));
            } else if is_mangled(name) {
                not_inlined.push(demangled(name));
            }
        } else if let Some(name) = item.data_name() {
            // Dynamic shared memory is declared `.extern`, its size comes with the launch.
            if item.has(".extern") && !item.has(".shared") {
                external.push(demangled(name));
            } else if is_mangled(name) {
                renamed.insert(name, format!("data_{}", renamed.len()));
            }
        }
    }
    let names_entry = |item: &Item<'_>| item.function_name(".entry").is_some();
    if !external.is_empty() {
        return Err(PtxError::External { names: external });
    }
    if !not_inlined.is_empty() {
        return Err(PtxError::NotInlined { names: not_inlined });
    }
    if !items.iter().any(names_entry) {
        return Err(PtxError::NoEntries);
    }
    let mut kept = text.to_owned();
    if let Some((name, range)) = handler {
        kept.replace_range(range, "");
        kept = kept.replace(&format!("\t// .globl\t{name}\n"), "");
    }
    let module = kept
        .find(".version")
        .map_or(kept.as_str(), |start| &kept[start..]);
    Ok(hoist_directives(&rename(module, &renamed)))
}

/// Comment that `cuda_std` writes inside an entry in place of a directive that belongs before its body.
const DIRECTIVE_NOTE: &str = "// entry directive: ";

/// Moves directives noted in the body of an entry to its head; each is kept once.
fn hoist_directives(text: &str) -> String {
    let mut lines: Vec<&str> = Vec::new();
    let mut body = 0;
    for line in text.lines() {
        if line == "{" {
            body = lines.len();
        }
        match line.trim_start().strip_prefix(DIRECTIVE_NOTE) {
            Some(directive) if lines[..body].last() == Some(&directive) => {}
            Some(directive) => {
                lines.insert(body, directive);
                body += 1;
            }
            None => lines.push(line),
        }
    }
    let mut output = lines.join("\n");
    if text.ends_with('\n') {
        output.push('\n');
    }
    output
}

/// Names made by the compiler (in its current and its older scheme, and of unnamed constants).
fn is_mangled(name: &str) -> bool {
    ["_R", "_ZN", "anon_$_", "alloc_"]
        .iter()
        .any(|prefix| name.starts_with(prefix))
}

fn demangled(name: &str) -> String {
    format!("{:#}", rustc_demangle::demangle(name))
}

fn rename(text: &str, names: &BTreeMap<&str, String>) -> String {
    let mut output = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find(|c: char| c.is_ascii() && is_word(c as u8)) {
        let length = rest[start..].find(|c: char| !(c.is_ascii() && is_word(c as u8)));
        let end = length.map_or(rest.len(), |length| start + length);
        let word = &rest[start..end];
        output.push_str(&rest[..start]);
        output.push_str(names.get(word).map_or(word, String::as_str));
        rest = &rest[end..];
    }
    output + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn noted_directives_move_to_the_head_of_their_entry() {
        let text = "\
.visible .entry a(
)
{
\tret;
}
.visible .entry b(
)
{
\t// begin inline asm
\t// entry directive: .maxnreg 32
\t// end inline asm
\tret;
}
";
        let hoisted = hoist_directives(text);
        assert!(hoisted.contains(".entry a(\n)\n{"), "{hoisted}");
        assert!(
            hoisted.contains(".entry b(\n)\n.maxnreg 32\n{\n"),
            "{hoisted}"
        );
        assert_eq!(hoisted.len() + "\t// entry directive: ".len(), text.len());
        assert_eq!(hoist_directives(&hoisted), hoisted);
    }

    const MODULE: &str = "//
// Generated by LLVM NVPTX Back-End
//

.version 7.0
.target sm_80
.address_size 64

\t// .globl\t_RNvCsfgHYwM92fyn_7___rustc17rust_begin_unwind
.extern .shared .align 16 .b8 dyn_smem[];
.global .align 4 .b8 _RNvNtCs5I6r77QRQNX_1k5TABLE[4] = {0, 0, 128, 63};
.global .align 4 .b8 anon_$_b96bb639_$_0[4] = {0, 0, 0, 63};

.visible .func _RNvCsfgHYwM92fyn_7___rustc17rust_begin_unwind(
\t.param .b64 _RNvCsfgHYwM92fyn_7___rustc17rust_begin_unwind_param_0
)
.noreturn
{
$L__BB0_1:
\tbra.uni \t$L__BB0_1;
}
\t// .globl\tfirst
.visible .entry first(
\t.param .u64 .ptr .align 1 first_param_0
)
.maxntid 256, 1, 1
{
\t.reg .b32 \t%r<5>;
\t{ // callseq 0, 0
\t@!%p1 bra \t$L__BB1_2; /* a ; in a comment */ ret;
\t}
\tld.global.v2.b32 \t{%r1, %r2}, [%rd1]; // and one ; here
\t.pragma \"nounroll;\";
\tmov.b64 \t%rd4, _RNvNtCs5I6r77QRQNX_1k5TABLE;
\tmov.b64 \t%rd4, anon_$_b96bb639_$_0;
$L__BB1_2: ret;
}
.visible .entry second() { ret; }
";

    #[test]
    fn a_module_is_left_without_what_the_compiler_adds() {
        let module = tidy(MODULE).unwrap();
        assert!(module.starts_with(".version 7.0\n"), "{module}");
        assert!(
            !module.contains("_RN") && !module.contains("anon"),
            "{module}"
        );
        for expected in [
            "b8 data_0[4] = {0, 0, 128, 63};",
            "%rd4, data_0;",
            "%rd4, data_1;",
            "b8 dyn_smem[];",
        ] {
            assert!(module.contains(expected), "{expected} is not in {module}");
        }
        let names = BTreeSet::from(["first".to_owned(), "second".to_owned()]);
        assert_eq!(entries(&module).unwrap(), names);
    }

    #[test]
    fn the_parts_of_a_module_are_the_module() {
        let module = tidy(MODULE).unwrap();
        let parts = Parts::of(&module).unwrap();
        assert!(parts.kernels.keys().eq(&["first", "second"]));
        assert!(
            parts.head.trim_end().ends_with("{0, 0, 0, 63};"),
            "{}",
            parts.head
        );
        assert!(parts.kernels["first"].starts_with("\t// .globl\tfirst\n.visible .entry first("));
        let together = [parts.head, parts.kernels["first"], parts.kernels["second"]].concat();
        assert_eq!(together, module);
    }

    #[test]
    fn functions_that_remain_are_named() {
        let call = ".func  (.param .b32 func_retval0) _RNvNtCs5I6r77QRQNX_11gpu_kernels1t6called(
\t.param .b32 p0\n)\n{ ret; }\n";
        let message = tidy(&format!("{MODULE}{call}")).unwrap_err().to_string();
        assert!(message.contains("gpu_kernels::t::called"), "{message}");
        let missing = ".extern .func (.param .b64 r) memcpy(\n\t.param .b64 p0\n)\n;\n";
        let message = tidy(&format!("{MODULE}{missing}")).unwrap_err().to_string();
        assert!(
            message.contains("does not contain") && message.contains("memcpy"),
            "{message}"
        );
        let elsewhere = ".extern .global .align 4 .b8 _RNvCs5I6r_8cuda_std5TABLE[20];\n";
        let message = tidy(&format!("{MODULE}{elsewhere}"))
            .unwrap_err()
            .to_string();
        assert!(message.contains("cuda_std::TABLE"), "{message}");
        let empty = ".version 7.0\n.target sm_80\n.address_size 64\n";
        assert!(matches!(tidy(empty), Err(PtxError::NoEntries)));
    }

    #[test]
    fn unbalanced_braces_are_refused_with_their_line() {
        for (text, line) in [
            (".version 7.0\n.visible .entry k() {\nret;\n", "line 2"),
            ("ret;\n}\n", "line 2"),
        ] {
            let message = entries(text).unwrap_err().to_string();
            assert!(message.contains(line), "{text:?}: {message}");
        }
    }
}
