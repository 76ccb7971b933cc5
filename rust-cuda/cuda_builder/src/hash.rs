//! A fingerprint of the device sources, to tell whether checked-in PTX is up to date.
//!
//! It sees what the compiler sees: the tokens of Rust files. A comment, a doc comment, a blank line
//! or another indentation changes nothing, because PTX holds no positions in sources: a panic aborts
//! without a message. A comma that `rustfmt` adds where it breaks a list is a token.
//!
//! It must agree between checkouts, so it sees file names relative to their crate (with `/`),
//! and no dates, absolute paths, line endings or directory order.

use crate::BuilderError;
use proc_macro2::{Delimiter, Spacing, TokenStream, TokenTree};
use std::fs;
use std::path::{Path, PathBuf};

/// Hashes `Cargo.toml`, `build.rs` where there is one and everything under `src` of each crate, and the
/// flags it is built with.
///
/// # Errors
/// A crate without `Cargo.toml` or `src`, a file that cannot be read, or one that ends in `.rs` and
/// is no Rust; the error names it.
pub fn source_hash(crates: &[PathBuf], flags: &[String]) -> Result<u64, BuilderError> {
    let mut hasher = Hasher::default();
    for directory in crates {
        let mut files = Vec::new();
        collect(&directory.join("src"), "src", &mut files)?;
        files.push(("Cargo.toml".to_owned(), directory.join("Cargo.toml")));
        if let Some(script) = build_script(directory) {
            files.push((BUILD_SCRIPT.to_owned(), script));
        }
        files.sort();
        hasher.frame(&(files.len() as u64).to_le_bytes());
        for (name, path) in &files {
            let content =
                fs::read(path).map_err(|source| BuilderError::file("read", path, source))?;
            hasher.frame(name.as_bytes());
            match path.extension().and_then(|extension| extension.to_str()) {
                Some("rs") => hasher.frame(&of_rust(&content, path)?.to_le_bytes()),
                Some("toml") => hasher.frame(&of_toml(&content).to_le_bytes()),
                _ => hasher.frame(&content),
            }
        }
    }
    for flag in flags {
        hasher.frame(flag.as_bytes());
    }
    Ok(hasher.0)
}

const BUILD_SCRIPT: &str = "build.rs";

/// The build script of a crate, if it has one.
pub(crate) fn build_script(directory: &Path) -> Option<PathBuf> {
    let script = directory.join(BUILD_SCRIPT);
    script.is_file().then_some(script)
}

/// Hashes bytes as they are.
pub(crate) fn bytes_hash(bytes: &[u8]) -> u64 {
    let mut hasher = Hasher::default();
    hasher.write(bytes);
    hasher.0
}

/// Hashes the tokens of a Rust file.
fn of_rust(content: &[u8], path: &Path) -> Result<u64, BuilderError> {
    let no_rust = |reason: String| BuilderError::NoRust {
        path: path.to_owned(),
        reason,
    };
    let text = std::str::from_utf8(content).map_err(|error| no_rust(error.to_string()))?;
    // Left to itself the parser of tokens takes a carriage return at the end of a line in a string
    // literal for a part of it, which the compiler does not.
    let text = text.replace("\r\n", "\n");
    let tokens = text
        .parse()
        .map_err(|error: proc_macro2::LexError| no_rust(error.to_string()))?;
    let mut hasher = Hasher::default();
    hasher.tokens(tokens);
    Ok(hasher.0)
}

/// Keys of a manifest's `[package]` that Cargo and registries read, and no compiler sees: the crate's
/// name in the code stands in `[lib]`, if it is another.
const UNSEEN: [&[u8]; 7] = [
    b"categories",
    b"description",
    b"include",
    b"keywords",
    b"links",
    b"name",
    b"readme",
];

/// Hashes a manifest without its comments, its blank lines and what is [`UNSEEN`].
fn of_toml(content: &[u8]) -> u64 {
    let mut hasher = Hasher::default();
    let mut in_package = false;
    for line in content.split(|&byte| byte == b'\n') {
        let line = line.trim_ascii();
        if line.starts_with(b"[") {
            in_package = line == b"[package]";
        }
        let key = line.split(|byte| b" .=".contains(byte)).next();
        let unseen = in_package && key.is_some_and(|key| UNSEEN.contains(&key));
        if !line.is_empty() && !line.starts_with(b"#") && !unseen {
            hasher.frame(line);
        }
    }
    hasher.0
}

/// Fowler, Noll and Vo's hash 1a of 64 bits: the same in every version of the compiler, which the
/// standard library's are not.
struct Hasher(u64);

impl Default for Hasher {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Hasher {
    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }

    /// Adds the length too, so that text moved from one file to the next changes the hash.
    fn frame(&mut self, bytes: &[u8]) {
        self.write(&(bytes.len() as u64).to_le_bytes());
        self.write(bytes);
    }

    /// Adds all but attributes `doc`, which is what doc comments are.
    fn tokens(&mut self, tokens: TokenStream) {
        let tokens: Vec<TokenTree> = tokens.into_iter().collect();
        let mut at = 0;
        while at < tokens.len() {
            if let Some(length) = documentation(&tokens[at..]) {
                at += length;
                continue;
            }
            match &tokens[at] {
                TokenTree::Ident(name) => self.frame(name.to_string().as_bytes()),
                TokenTree::Literal(literal) => self.frame(literal.to_string().as_bytes()),
                TokenTree::Punct(punct) => {
                    let joint = punct.spacing() == Spacing::Joint;
                    self.frame(format!("{}{}", punct.as_char(), u8::from(joint)).as_bytes());
                }
                TokenTree::Group(group) => {
                    let [open, close] = match group.delimiter() {
                        Delimiter::Parenthesis => ["(", ")"],
                        Delimiter::Brace => ["{", "}"],
                        Delimiter::Bracket => ["[", "]"],
                        Delimiter::None => ["", ""],
                    };
                    self.frame(open.as_bytes());
                    self.tokens(group.stream());
                    self.frame(close.as_bytes());
                }
            }
            at += 1;
        }
    }
}

/// How many tokens the attribute `doc` takes that the tokens begin with, `#[doc = "…"]` or
/// `#![doc = "…"]`, if they do.
fn documentation(tokens: &[TokenTree]) -> Option<usize> {
    let is = |at: usize, wanted: char| matches!(tokens.get(at), Some(TokenTree::Punct(punct)) if punct.as_char() == wanted);
    let brackets = if is(1, '!') { 2 } else { 1 };
    let Some(TokenTree::Group(group)) = tokens.get(brackets) else {
        return None;
    };
    let attribute = is(0, '#') && group.delimiter() == Delimiter::Bracket;
    let first = group.stream().into_iter().next();
    let is_doc = matches!(first, Some(TokenTree::Ident(name)) if name == "doc");
    (attribute && is_doc).then_some(brackets + 1)
}

/// Files below `directory`; an editor's hidden and backup files are no sources.
fn collect(
    directory: &Path,
    name: &str,
    files: &mut Vec<(String, PathBuf)>,
) -> Result<(), BuilderError> {
    let unreadable = |source| BuilderError::file("read", directory, source);
    for entry in fs::read_dir(directory).map_err(unreadable)? {
        let entry = entry.map_err(unreadable)?;
        let file_name = entry.file_name().to_string_lossy().into_owned();
        if file_name.starts_with('.') || file_name.ends_with('~') {
            continue;
        }
        let relative = format!("{name}/{file_name}");
        let path = entry.path();
        if path.is_dir() {
            collect(&path, &relative, files)?;
        } else {
            files.push((relative, path));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn outcome(files: &[(&str, &str)], flags: &[&str]) -> Result<u64, BuilderError> {
        let directory = tempfile::tempdir().unwrap();
        for (name, content) in files {
            let path = directory.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }
        let flags: Vec<String> = flags.iter().map(|&flag| flag.to_owned()).collect();
        source_hash(&[directory.path().to_owned()], &flags)
    }

    fn hash_of(files: &[(&str, &str)], flags: &[&str]) -> u64 {
        outcome(files, flags).unwrap()
    }

    const MANIFEST: (&str, &str) = ("Cargo.toml", "[package]\n");

    fn hash_of_code(code: &str) -> u64 {
        hash_of(&[MANIFEST, ("src/lib.rs", code)], &[])
    }

    #[test]
    fn the_place_order_and_line_endings_do_not_matter() {
        let unix = hash_of(
            &[
                MANIFEST,
                ("src/lib.rs", "a\n\"b\nc\""),
                ("src/deep/x.rs", "c\n"),
            ],
            &["-O"],
        );
        let dos = hash_of(
            &[
                ("src/deep/x.rs", "c\r\n"),
                ("src/lib.rs", "a\r\n\"b\r\nc\""),
                ("src/.lib.rs.swp", "editor"),
                ("Cargo.toml", "[package]\r\n"),
            ],
            &["-O"],
        );
        assert_eq!(unix, dos);
    }

    #[test]
    fn comments_and_layout_do_not_matter() {
        let plain = "mod k { pub fn add(a: u32, b: &u32) -> u32 { a + *b } }";
        let dressed = "//! Sums.\n\n#![doc = \"More.\"]\nmod k {\n    /// Adds.\n    #[doc = \"Two.\"]\n    \
                       pub fn add(\n        a: u32, // one\n        b: &u32 /* other */) -> u32\n    {\n\n        \
                       // SAFETY: none.\n        a + *b\n    }\n}\n";
        assert_eq!(hash_of_code(plain), hash_of_code(dressed));
        let manifest = ("Cargo.toml", "# A crate.\n\n  [package]\n# Its end.\n");
        assert_eq!(
            hash_of(&[MANIFEST, ("src/a.rs", "x")], &[]),
            hash_of(&[manifest, ("src/a.rs", "x")], &[])
        );
    }

    #[test]
    fn the_package_s_name_and_texts_do_not_matter_and_the_library_s_name_does() {
        let hash = |manifest: &str| hash_of(&[("Cargo.toml", manifest), ("src/a.rs", "x")], &[]);
        let plain = hash("[package]\nedition = \"2024\"\n[lib]\nname = \"a\"\n");
        let dressed = "[package]\nname = \"b\"\ndescription = \"Sums.\"\nreadme.workspace = true\n\
                       edition = \"2024\"\n[lib]\nname = \"a\"\n";
        assert_eq!(hash(dressed), plain);
        assert_ne!(hash(&dressed.replace("\"a\"", "\"c\"")), plain);
        assert_ne!(hash(&dressed.replace("2024", "2021")), plain);
    }

    #[test]
    fn every_token_matters() {
        let codes = [
            "fn k() { a = b & &c; }",
            "fn k() { a = b && c; }",
            "fn k() { a = (b && c); }",
            "fn k() { a = [b && c]; }",
            "fn k() { a = b && c }",
            "fn k() { a = \"// b\"; }",
            "fn k() { a = \"// c\"; }",
            "fn k() { a = 1.0; }",
            "fn k() { a = 1.; }",
            "#[inline] fn k() { a = 1.; }",
            "#[cold] fn k() { a = 1.; }",
            "fn l() { a = 1.; }",
        ];
        let hashes: BTreeSet<u64> = codes.iter().map(|code| hash_of_code(code)).collect();
        assert_eq!(hashes.len(), codes.len());
    }

    #[test]
    fn every_other_change_matters() {
        let hashes = BTreeSet::from([
            hash_of(&[MANIFEST, ("src/a.rs", "x"), ("src/b.rs", "y")], &["-O"]),
            hash_of(&[MANIFEST, ("src/a.rs", "x y"), ("src/b.rs", "")], &["-O"]),
            hash_of(&[MANIFEST, ("src/a.rs", "y"), ("src/b.rs", "x")], &["-O"]),
            hash_of(&[MANIFEST, ("src/a.rs", "x"), ("src/c.rs", "y")], &["-O"]),
            hash_of(
                &[MANIFEST, ("src/a.rs", "x"), ("src/b.rs", "y")],
                &["-O", "-g"],
            ),
            hash_of(&[MANIFEST, ("src/a.rs", "x"), ("src/b.rs", "y")], &["-O-g"]),
            hash_of(
                &[
                    ("Cargo.toml", "[lib]"),
                    ("src/a.rs", "x"),
                    ("src/b.rs", "y"),
                ],
                &["-O"],
            ),
            hash_of(&[MANIFEST, ("src/a.bin", "x"), ("src/b.rs", "y")], &["-O"]),
            hash_of(&[MANIFEST, ("src/a.bin", "x "), ("src/b.rs", "y")], &["-O"]),
            hash_of(
                &[
                    MANIFEST,
                    ("src/a.bin", "x"),
                    ("src/b.rs", "y"),
                    ("build.rs", "z"),
                ],
                &["-O"],
            ),
        ]);
        assert_eq!(hashes.len(), 10);
    }

    #[test]
    fn published_values_are_met() {
        assert_eq!(bytes_hash(b"a"), 0xaf63_dc4c_8601_ec8c);
        assert_eq!(bytes_hash(b"foobar"), 0x8594_4171_f739_67e8);
    }

    #[test]
    fn a_missing_source_is_named() {
        let message = outcome(&[], &[]).unwrap_err().to_string();
        assert!(message.contains("src"), "{message}");
    }

    #[test]
    fn a_source_that_is_no_rust_is_named() {
        let files = [MANIFEST, ("src/deep/torn.rs", "fn k() {")];
        let message = outcome(&files, &[]).unwrap_err().to_string();
        assert!(message.contains("torn.rs"), "{message}");
    }
}
