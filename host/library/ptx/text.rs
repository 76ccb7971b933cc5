//! Finding kernels in the text of a PTX module.

use std::collections::BTreeMap;

/// Place where a kernel begins in the text of its module.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Start {
    /// Byte offset.
    pub(super) at: usize,
    /// Line, counted from 1.
    pub(super) line: usize,
}

/// The kernels (`.entry`) of a PTX module.
pub(super) fn entry_starts(ptx: &str) -> BTreeMap<String, Start> {
    let mut before = Start { at: 0, line: 1 };
    entry_headers(ptx)
        .map(|(at, name)| {
            let line = before.line + line_of(&ptx[before.at..], at - before.at) - 1;
            before = Start { at, line };
            (name.to_owned(), before)
        })
        .collect()
}

/// The text up to the brace that closes its first one, if one does.
pub(super) fn up_to_closing_brace(text: &str) -> Option<&str> {
    let mut depth = 0usize;
    for (at, byte) in significant_bytes(text) {
        match byte {
            b'{' => depth += 1,
            b'}' if depth == 1 => return Some(&text[..=at]),
            b'}' if depth > 1 => depth -= 1,
            _ => {}
        }
    }
    None
}

/// Line of a byte offset, counted from 1.
pub fn line_of(text: &str, at: usize) -> usize {
    1 + text
        .as_bytes()
        .iter()
        .take(at)
        .filter(|byte| **byte == b'\n')
        .count()
}

/// Start of the linkage directive or of `.entry`, and name, of every kernel.
fn entry_headers(ptx: &str) -> impl Iterator<Item = (usize, &str)> {
    ptx.match_indices(".entry").filter_map(|(at, directive)| {
        let line_start = ptx[..at].rfind('\n').map_or(0, |newline| newline + 1);
        let before = &ptx[line_start..at];
        let after = &ptx[at + directive.len()..];
        let name = &after.trim_start()[..identifier_len(after.trim_start())];
        let linkage = before.trim();
        let is_header = matches!(linkage, "" | ".visible" | ".weak")
            && after.starts_with(char::is_whitespace)
            && !name.is_empty();
        is_header.then(|| (at - before.trim_start().len(), name))
    })
}

/// Length of the identifier that `text` starts with, zero if with none.
pub fn identifier_len(text: &str) -> usize {
    let within = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '$' | '%');
    match text.chars().next() {
        Some(first) if within(first) && !first.is_ascii_digit() => {
            text.find(|c| !within(c)).unwrap_or(text.len())
        }
        _ => 0,
    }
}

/// The bytes that are outside of comments and strings, with their offsets.
pub fn significant_bytes(text: &str) -> impl Iterator<Item = (usize, u8)> {
    let bytes = text.as_bytes();
    let mut at = 0;
    std::iter::from_fn(move || {
        loop {
            let rest = &bytes[at..];
            let skipped = match rest {
                [] => return None,
                [b'/', b'/', ..] => rest.iter().position(|byte| *byte == b'\n'),
                [b'/', b'*', ..] => rest[2..]
                    .windows(2)
                    .position(|pair| pair == b"*/")
                    .map(|end| end + 4),
                [b'"', tail @ ..] => tail
                    .iter()
                    .position(|byte| *byte == b'"')
                    .map(|end| end + 2),
                [byte, ..] => {
                    at += 1;
                    return Some((at - 1, *byte));
                }
            };
            at = skipped.map_or(bytes.len(), |length| at + length);
        }
    })
}

#[cfg(test)]
mod tests {
    use super::super::{PtxError, PtxModule};

    fn module(ptx: &str) -> PtxModule {
        PtxModule::from_text(75, false, ptx.into())
    }

    #[test]
    fn entries_are_found_by_name_and_cut_at_their_brace() {
        let ptx = ".version 8.1\n// .globl first .entry ghost(\n.visible .entry first(\n\
                   .param .u32 n\n)\n{ // }\n .pragma \"}\";\n { ret; }\n}\n\
                   .entry second() { ret; }\n.visible .func third() { ret; }";
        let module = module(ptx);
        assert!(module.entries().eq(["first", "second"]));
        let (first, line) = module.entry("first").unwrap();
        assert!(first.starts_with(".visible .entry first("));
        assert!(first.ends_with("{ ret; }\n}"), "{first}");
        assert_eq!(line, 3);
        let second = ".entry second() { ret; }";
        assert_eq!(module.entry("second").unwrap(), (second, 10));
        let alone = module.alone("second").unwrap();
        assert!(alone.starts_with(".version 8.1\n"));
        assert!(
            PtxModule::from_text(75, false, alone)
                .entries()
                .eq(["second"])
        );
        assert!(module.alone("third").is_err());
    }

    #[test]
    fn a_missing_entry_is_named() {
        let error = module(".entry tiled() {ret;}")
            .entry_text("tile")
            .unwrap_err()
            .to_string();
        assert_eq!(error, "this PTX module has no kernel `tile`");
    }

    #[test]
    fn a_truncated_entry_is_malformed() {
        let module = module(".entry cut()\n{ ret;\n");
        let error = module.entry_text("cut").unwrap_err();
        assert!(
            matches!(error, PtxError::Malformed { line: 3, .. }),
            "{error:?}"
        );
    }
}
