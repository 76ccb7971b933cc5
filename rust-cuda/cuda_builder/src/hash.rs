//! A fingerprint of the device sources, to tell whether checked-in PTX is up to date.
//!
//! It must agree between checkouts, so it sees file names relative to their crate (with `/`),
//! contents with `\n` line endings, and no dates, absolute paths or directory order.

use crate::BuilderError;
use std::fs;
use std::path::{Path, PathBuf};

/// Hashes `Cargo.toml` and everything under `src` of each crate, and the flags it is built with.
///
/// # Errors
/// A crate without `Cargo.toml` or `src`, or a file that cannot be read; the error names it.
pub fn source_hash(crates: &[PathBuf], flags: &[String]) -> Result<u64, BuilderError> {
    let mut hasher = Hasher::default();
    for directory in crates {
        let mut files = Vec::new();
        collect(&directory.join("src"), "src", &mut files)?;
        files.push(("Cargo.toml".to_owned(), directory.join("Cargo.toml")));
        files.sort();
        frame(&mut hasher, &(files.len() as u64).to_le_bytes());
        for (name, path) in &files {
            let content =
                fs::read(path).map_err(|source| BuilderError::file("read", path, source))?;
            frame(&mut hasher, name.as_bytes());
            frame(&mut hasher, &unix_line_endings(&content));
        }
    }
    for flag in flags {
        frame(&mut hasher, flag.as_bytes());
    }
    Ok(hasher.0)
}

/// Adds the length too, so that text moved from one file to the next changes the hash.
fn frame(hasher: &mut Hasher, bytes: &[u8]) {
    hasher.write(&(bytes.len() as u64).to_le_bytes());
    hasher.write(bytes);
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
}

fn unix_line_endings(content: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(content.len());
    for (index, &byte) in content.iter().enumerate() {
        if byte != b'\r' || content.get(index + 1) != Some(&b'\n') {
            bytes.push(byte);
        }
    }
    bytes
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

    fn hash_of(files: &[(&str, &str)], flags: &[&str]) -> u64 {
        let directory = tempfile::tempdir().unwrap();
        for (name, content) in files {
            let path = directory.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }
        let flags: Vec<String> = flags.iter().map(|&flag| flag.to_owned()).collect();
        source_hash(&[directory.path().to_owned()], &flags).unwrap()
    }

    const MANIFEST: (&str, &str) = ("Cargo.toml", "[package]\n");

    #[test]
    fn the_place_order_and_line_endings_do_not_matter() {
        let unix = hash_of(
            &[MANIFEST, ("src/lib.rs", "a\nb\n"), ("src/deep/x.rs", "c\n")],
            &["-O"],
        );
        let dos = hash_of(
            &[
                ("src/deep/x.rs", "c\r\n"),
                ("src/lib.rs", "a\r\nb\r\n"),
                ("src/.lib.rs.swp", "editor"),
                ("Cargo.toml", "[package]\r\n"),
            ],
            &["-O"],
        );
        assert_eq!(unix, dos);
    }

    #[test]
    fn every_other_change_matters() {
        let hashes = BTreeSet::from([
            hash_of(&[MANIFEST, ("src/a.rs", "x"), ("src/b.rs", "y")], &["-O"]),
            hash_of(&[MANIFEST, ("src/a.rs", "xy"), ("src/b.rs", "")], &["-O"]),
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
            hash_of(&[MANIFEST, ("src/a.rs", "x\r"), ("src/b.rs", "y")], &["-O"]),
        ]);
        assert_eq!(hashes.len(), 8);
    }

    #[test]
    fn published_values_are_met() {
        let hash = |text: &str| {
            let mut hasher = Hasher::default();
            hasher.write(text.as_bytes());
            hasher.0
        };
        assert_eq!(hash("a"), 0xaf63_dc4c_8601_ec8c);
        assert_eq!(hash("foobar"), 0x8594_4171_f739_67e8);
    }

    #[test]
    fn a_missing_source_is_named() {
        let empty = tempfile::tempdir().unwrap();
        let message = source_hash(&[empty.path().to_owned()], &[])
            .unwrap_err()
            .to_string();
        assert!(message.contains("src"), "{message}");
    }
}
