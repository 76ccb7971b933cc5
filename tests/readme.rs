//! Tests that the documents are true: commands run, figures are the recorded ones, paths and links lead
//! somewhere. (The Rust code in README.md and docs/tutorial.md is tested with the library's
//! documentation; what the pages of the studies say besides, by tests/studies.rs.)
//!
//! An HTML comment on the line before says what cannot be seen from what follows:
//! * `<!-- not run: reason -->` before a code block: its commands are only parsed;
//! * `<!-- record: path -->` before a code block: its rows are rows of that file;
//! * `<!-- figures: path path … -->` before a table: its numbers like 1.5e12 are in those files.

use std::fs;
use std::path::{Path, PathBuf};

use crate::support::program::{allpairs, galaxy, run};

fn root() -> &'static Path {
    crate::support::root()
}

fn read(path: impl AsRef<Path>) -> String {
    let path = root().join(path);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The documents at or below a folder, relative to the root.
fn documents_in(folder: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(root().join(folder)).expect("a readable folder");
    let entries = entries.map(|entry| entry.expect("a readable folder"));
    let found = entries.flat_map(|entry| {
        let name = format!("{folder}/{}", entry.file_name().to_string_lossy());
        if entry.path().is_dir() {
            documents_in(&name)
        } else {
            vec![name.into()]
        }
    });
    let mut found: Vec<PathBuf> = found
        .filter(|path| path.extension().is_some_and(|e| e == "md"))
        .collect();
    found.sort();
    found
}

/// The documents that tell what is so now; records tell what was.
fn documents() -> Vec<PathBuf> {
    let first = [
        "README.md",
        "ARCHITECTURE.md",
        "CHANGELOG.md",
        "CONTRIBUTING.md",
    ]
    .map(PathBuf::from);
    [first.to_vec(), documents_in("docs")].concat()
}

/// A fenced code block.
#[derive(Debug, PartialEq)]
struct Block<'a> {
    language: &'a str,
    /// Remark in a comment on the line before: `("not run", "reason")`.
    remark: Option<(&'a str, &'a str)>,
    lines: Vec<&'a str>,
}

fn blocks(text: &str) -> Vec<Block<'_>> {
    let mut blocks = vec![];
    let mut before = "";
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if let Some(language) = line.strip_prefix("```") {
            let remark = before
                .strip_prefix("<!-- ")
                .and_then(|comment| comment.strip_suffix(" -->"))
                .and_then(|comment| comment.split_once(": "));
            let lines = lines.by_ref().take_while(|line| *line != "```").collect();
            blocks.push(Block {
                language,
                remark,
                lines,
            });
        }
        before = line;
    }
    blocks
}

/// The arguments of the commands in a console block that start this program.
fn commands<'a>(block: &Block<'a>) -> Vec<Vec<&'a str>> {
    let lines = block
        .lines
        .iter()
        .filter_map(|line| line.strip_prefix("$ "));
    let arguments = lines.filter_map(|line| {
        let command = line.split('#').next().unwrap_or_default();
        let words: Vec<&str> = command.split_whitespace().collect();
        match words.as_slice() {
            ["cargo", "run", "--release"] => Some(vec![]),
            ["cargo", "run", "--release", "--", arguments @ ..] => Some(arguments.to_vec()),
            ["allpairs", arguments @ ..] => Some(arguments.to_vec()),
            _ => None,
        }
    });
    arguments.collect()
}

#[test]
fn commands_are_found_in_a_text() {
    let text = "
```text
$ allpairs not console
```
<!-- not run: slow -->
```console
$ cargo run --release -- run a.bin --steps 5  # five
5 steps
$ ls
$ allpairs list
```
```console
$ cargo run --release
```";
    let blocks = blocks(text);
    let remarks: Vec<_> = blocks
        .iter()
        .map(|block| (block.language, block.remark))
        .collect();
    let slow = Some(("not run", "slow"));
    assert_eq!(
        remarks,
        [("text", None), ("console", slow), ("console", None)]
    );
    assert_eq!(
        commands(&blocks[1]),
        [vec!["run", "a.bin", "--steps", "5"], vec!["list"]]
    );
    assert_eq!(commands(&blocks[2]), [vec![""; 0]]);
}

#[test]
fn the_commands_of_the_documents_run() {
    let mut count = 0;
    for document in documents() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        fs::copy(galaxy(), folder.path().join("galaxy.bin")).expect("a writable folder");
        let text = read(&document);
        for block in blocks(&text) {
            if block.language != "console" {
                continue;
            }
            let is_run = !matches!(block.remark, Some(("not run", _)));
            for arguments in commands(&block) {
                count += 1;
                let mut program = allpairs(folder.path());
                program.args(&arguments);
                if !is_run {
                    program.arg("--help"); // whatever is wrong before it is refused all the same
                }
                eprintln!("{}: allpairs {}", document.display(), arguments.join(" "));
                run(&mut program).expect(0, &[]);
            }
        }
    }
    assert!(count >= 20, "only {count} commands found");
}

#[test]
fn the_rows_of_the_documents_are_recorded() {
    let mut rows = 0;
    for document in documents() {
        let text = read(&document);
        for block in blocks(&text) {
            let Some(("record", path)) = block.remark else {
                continue;
            };
            let record = read(path);
            let words = |line: &str| -> Vec<String> {
                line.split_whitespace().map(str::to_owned).collect()
            };
            let recorded: Vec<_> = record.lines().map(words).collect();
            for row in block.lines.iter().filter(|row| !row.starts_with('─')) {
                rows += 1;
                assert!(recorded.contains(&words(row)), "{path} has no row `{row}`");
            }
        }
    }
    assert!(rows >= 3, "only {rows} rows found");
}

/// Numbers in scientific notation.
fn figures(text: &str) -> Vec<&str> {
    let of_number = |c: char| c.is_ascii_alphanumeric() || ".-".contains(c);
    let words = text.split(|c| !of_number(c));
    let is_figure = |word: &&str| {
        let digits = |part: &str| part.starts_with(|c: char| c.is_ascii_digit());
        let parts = word.split_once('e');
        parts.is_some_and(|(mantissa, exponent)| {
            mantissa.contains('.') && digits(mantissa) && digits(exponent.trim_start_matches('-'))
        })
    };
    words.filter(is_figure).collect()
}

#[test]
fn the_figures_of_the_documents_are_recorded() {
    assert_eq!(
        figures("`a-e2` | 3.67e12, **4.5e-16** |"),
        ["3.67e12", "4.5e-16"]
    );
    const START: &str = "<!-- figures: ";
    let mut count = 0;
    for document in documents() {
        let text = read(&document);
        for part in text.split(START).skip(1) {
            let (paths, rest) = part.split_once(" -->\n").expect("a whole comment");
            let records: Vec<String> = paths.split(' ').map(read).collect();
            let table = rest.split("\n\n").next().unwrap_or_default();
            for figure in figures(table) {
                count += 1;
                let recorded = records
                    .iter()
                    .any(|record| figures(record).contains(&figure));
                assert!(
                    recorded,
                    "{}: {figure} is in none of {paths}",
                    document.display()
                );
            }
        }
    }
    assert!(count >= 15, "only {count} figures found");
}

/// Targets of links.
fn links(text: &str) -> Vec<&str> {
    let after_links = text.split("](").skip(1);
    let inline = after_links.filter_map(|rest| rest.split(')').next());
    let defined = text.lines().filter_map(|line| {
        let (name, target) = line.split_once("]: ")?;
        name.starts_with('[').then_some(target)
    });
    let targets = inline.chain(defined);
    targets.filter(|target| !target.contains("://")).collect()
}

/// Inline code that looks like a path from the repository's root.
fn paths(text: &str) -> Vec<&str> {
    // Between the first and second backtick, the third and fourth, …
    let code = text.split('`').skip(1).step_by(2);
    let code = code.filter(|code| {
        let is_path = |c: char| c.is_ascii_alphanumeric() || "/._-".contains(c);
        let folder = code.split_once('/').map(|(folder, _)| folder);
        folder.is_some_and(|folder| root().join(folder).is_dir()) && code.chars().all(is_path)
    });
    code.collect()
}

/// Returns whether a document has a heading with this anchor, made as GitHub makes it.
fn has_anchor(text: &str, anchor: &str) -> bool {
    let headings = text.lines().filter(|line| line.starts_with('#'));
    let mut anchors = headings.map(|line| {
        let heading = line.trim_start_matches('#').trim().to_lowercase();
        let kept = heading
            .chars()
            .filter(|c| c.is_alphanumeric() || " -_".contains(*c));
        kept.collect::<String>().replace(' ', "-")
    });
    anchors.any(|found| found == anchor)
}

#[test]
fn paths_and_links_of_the_documents_lead_somewhere() {
    let text =
        "`host/library/io/` `mod.rs` `a/b c` `1/√` [map](ARCHITECTURE.md#x) <https://x/y> [z](https://z)
[`A`]: ../a.rs";
    assert_eq!(paths(text), ["host/library/io/"]);
    assert_eq!(links(text), ["ARCHITECTURE.md#x", "../a.rs"]);
    assert!(has_anchor("# How fast, how exact?", "how-fast-how-exact"));
    let mut count = 0;
    let others = ["benchmarks/record", "tests"].map(documents_in).concat();
    for document in [documents(), others].concat() {
        let text = read(&document);
        let folder = document.parent().expect("a file");
        for path in paths(&text) {
            count += 1;
            let exists = root().join(path).exists();
            assert!(exists, "{} names {path}", document.display());
        }
        for link in links(&text) {
            count += 1;
            let (path, anchor) = link.split_once('#').unwrap_or((link, ""));
            let target = match path {
                "" => document.clone(),
                path => folder.join(path),
            };
            let exists = root().join(&target).exists();
            assert!(exists, "{} links to {link}", document.display());
            let found = anchor.is_empty() || has_anchor(&read(&target), anchor);
            assert!(found, "{}: {link}: no such heading", document.display());
        }
    }
    assert!(count >= 100, "only {count} paths and links found");
}
