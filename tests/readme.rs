//! What README.md and ARCHITECTURE.md tell is so: commands run, figures are the recorded ones, paths
//! exist. (The Rust code in README.md is a documentation test of the library.)
//!
//! An HTML comment on the line before a code block says what cannot be seen from it:
//! * `<!-- not run: reason -->`: its commands are only parsed;
//! * `<!-- record: path -->`: its rows are rows of that file.

#[path = "support/program.rs"]
mod program;

use std::fs;
use std::path::Path;

use program::{allpairs, galaxy, run};

fn read(path: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// A fenced code block.
#[derive(Debug, PartialEq)]
struct Block<'a> {
    language: &'a str,
    /// What a comment on the line before says: `("not run", "reason")`.
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
fn the_commands_of_the_readme_run() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    fs::copy(galaxy(), folder.path().join("galaxy.bin")).expect("a writable folder");
    let readme = read("README.md");
    let mut count = 0;
    for block in blocks(&readme) {
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
            eprintln!("allpairs {}", arguments.join(" "));
            run(&mut program).expect(0, &[]);
        }
    }
    assert!(count >= 3, "only {count} commands found");
}

#[test]
fn the_figures_of_the_readme_are_recorded() {
    let readme = read("README.md");
    let mut rows = 0;
    for block in blocks(&readme) {
        if let Some(("record", path)) = block.remark {
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

/// Targets of links, and inline code that looks like a path from the repository's root.
fn paths(text: &str) -> Vec<&str> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let after_links = text.split("](").skip(1);
    let targets = after_links.filter_map(|rest| rest.split(')').next());
    let targets = targets.filter(|target| !target.contains("://"));
    // Between the first and second backtick, the third and fourth, …
    let code = text.split('`').skip(1).step_by(2);
    let code = code.filter(|code| {
        let is_path = |c: char| c.is_ascii_alphanumeric() || "/._-".contains(c);
        let folder = code.split_once('/').map(|(folder, _)| folder);
        folder.is_some_and(|folder| root.join(folder).is_dir()) && code.chars().all(is_path)
    });
    targets.chain(code).collect()
}

#[test]
fn paths_that_the_texts_name_exist() {
    let text =
        "`host/io/` `mod.rs` `a/b c` `1/√` [map](ARCHITECTURE.md) <https://x/y> [z](https://z)";
    assert_eq!(paths(text), ["ARCHITECTURE.md", "host/io/"]);
    let mut count = 0;
    for document in ["README.md", "ARCHITECTURE.md", "CHANGELOG.md"] {
        let text = read(document);
        for path in paths(&text) {
            count += 1;
            let exists = Path::new(env!("CARGO_MANIFEST_DIR")).join(path).exists();
            assert!(exists, "{document} names {path}");
        }
    }
    assert!(count >= 20, "only {count} paths found");
}
