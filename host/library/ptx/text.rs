//! Finding kernels in the text of a PTX module.

use std::collections::BTreeMap;

/// Splits a PTX module into the text before its first kernel (`.entry`) and the text of each kernel by
/// name, up to the next kernel.
pub(super) fn parts(ptx: &str) -> (String, BTreeMap<String, String>) {
    let headers: Vec<(usize, &str)> = entry_headers(ptx).collect();
    let starts = headers.iter().map(|(at, _)| *at);
    let bounds: Vec<usize> = starts.chain([ptx.len()]).collect();
    let kernels = headers
        .iter()
        .zip(bounds.windows(2))
        .map(|((_, name), ends)| ((*name).to_owned(), ptx[ends[0]..ends[1]].to_owned()))
        .collect();
    let head = ptx[..bounds[0]].to_owned();
    (head, kernels)
}

/// Version of PTX (major, minor) that a module says it is written in.
pub(super) fn version(ptx: &str) -> Option<(u32, u32)> {
    let mut lines = ptx.lines().map(str::trim);
    let version = lines.find_map(|line| line.strip_prefix(".version "))?;
    let (major, minor) = version.trim().split_once('.')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

/// The first kernel in a text, from its linkage directive to its closing brace, if it has one.
pub(super) fn entry(text: &str) -> Option<&str> {
    let (at, _) = entry_headers(text).next()?;
    up_to_closing_brace(&text[at..])
}

/// The text up to the brace that closes its first one, if one does.
fn up_to_closing_brace(text: &str) -> Option<&str> {
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
        PtxModule::from_text(75, false, ptx)
    }

    #[test]
    fn entries_are_found_by_name_and_cut_at_their_brace() {
        let ptx = ".version 8.1\n// .globl first .entry ghost(\n.visible .entry first(\n\
                   .param .u32 n\n)\n{ // }\n .pragma \"}\";\n { ret; }\n}\n\
                   .entry second() { ret; }\n.visible .func third() { ret; }";
        let module = module(ptx);
        assert!(module.entries().eq(["first", "second"]));
        let first = module.entry_text("first").unwrap();
        assert!(first.starts_with(".visible .entry first("));
        assert!(first.ends_with("{ ret; }\n}"), "{first}");
        let second = ".entry second() { ret; }";
        assert_eq!(module.entry_text("second").unwrap(), second);
        assert_eq!(module.text(), ptx);
        let alone = module.alone("second").unwrap();
        assert!(alone.starts_with(".version 8.1\n"));
        assert!(
            PtxModule::from_text(75, false, &alone)
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
        let module = module(".entry cut()\n{ ret;");
        let error = module.entry_text("cut").unwrap_err();
        assert!(
            matches!(error, PtxError::Malformed { line: 2, .. }),
            "{error:?}"
        );
    }
}
