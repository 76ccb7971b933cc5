//! Plain English by a rule that can be checked: marked words and long sentences become fewer.
//!
//! `english.txt` has a row for each part of the repository. The test fails if a part has more of either
//! than its row says. Whoever mends a text lowers the numbers; the test prints the new ones.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::{all_rust_files, files, read};

/// Words that stand for a noun somewhere else, or that mean something else to most readers.
const MARKED: [&str; 8] = [
    "so many",
    "as there",
    "those of",
    "that of",
    "whose",
    "beside",
    "at a time",
    "of its own",
];
const LONGEST_SENTENCE: usize = 25;

/// Marked words, and sentences that are too long.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Faults {
    marked: usize,
    long: usize,
}

/// Contiguous documentation of a source file, or the paragraphs, items and cells of a page.
fn pieces(path: &Path, text: &str) -> Vec<String> {
    match path.extension().and_then(|extension| extension.to_str()) {
        Some("md") => pieces_of_a_page(text),
        Some("py") => {
            let docstrings = text.split("\"\"\"").skip(1).step_by(2);
            docstrings.flat_map(pieces_of_a_page).collect()
        }
        _ => {
            let documentation: Vec<&str> = text
                .lines()
                .map(|line| {
                    let line = line.trim_start();
                    let marks = ["/// ", "//! "];
                    let inner = marks.iter().find_map(|mark| line.strip_prefix(mark));
                    inner.unwrap_or_default()
                })
                .collect();
            pieces_of_a_page(&documentation.join("\n"))
        }
    }
}

fn pieces_of_a_page(text: &str) -> Vec<String> {
    let mut pieces = vec![String::new()];
    let mut is_code = false;
    for line in text.lines().map(str::trim) {
        if line.starts_with("```") {
            is_code = !is_code;
        }
        let is_item = ["* ", "- ", "#", "|", "```"]
            .iter()
            .any(|mark| line.starts_with(mark));
        if line.is_empty() || is_item {
            pieces.push(String::new());
        }
        if is_code || line.starts_with("<!--") {
            continue;
        }
        if line.starts_with('|') {
            pieces.extend(line.split('|').map(str::to_owned));
            continue;
        }
        let piece = pieces.last_mut().expect("there is one");
        piece.push(' ');
        piece.push_str(line);
    }
    pieces
}

/// Numbers of words of the sentences. What stands in backticks is one word.
fn sentences(piece: &str) -> Vec<usize> {
    let mut lengths = vec![0];
    for (index, part) in piece.split('`').enumerate() {
        if index % 2 == 1 {
            *lengths.last_mut().expect("there is one") += 1;
            continue;
        }
        for word in part.split_whitespace() {
            *lengths.last_mut().expect("there is one") +=
                usize::from(word.contains(char::is_alphanumeric));
            let end = word.trim_end_matches(['"', ')', '*', '”', '_']);
            if end.ends_with(['.', '!', '?', ':']) {
                lengths.push(0);
            }
        }
    }
    lengths
}

fn faults(path: &Path, text: &str) -> Faults {
    // Lines are joined without the marks of comments, so that phrases across two lines are found.
    let words: Vec<&str> = text
        .split_whitespace()
        .filter(|word| !["///", "//!", "//", "\\"].contains(word))
        .collect();
    let text_in_words = words.join(" ").to_lowercase();
    let is_in_a_word = |c: char| c.is_alphanumeric() || c == '_';
    let marked = MARKED.iter().flat_map(|phrase| {
        text_in_words
            .match_indices(phrase)
            .filter(|(start, found)| {
                let before = text_in_words[..*start].chars().next_back();
                let after = text_in_words[start + found.len()..].chars().next();
                !before.is_some_and(is_in_a_word) && !after.is_some_and(is_in_a_word)
            })
    });
    let by_reference = super::documentation(path, text)
        .iter()
        .filter(|(_, first)| first.starts_with("As [") || first.starts_with("As `"))
        .count();
    let long = pieces(path, text)
        .iter()
        .flat_map(|piece| sentences(piece))
        .filter(|words| *words > LONGEST_SENTENCE)
        .count();
    Faults {
        marked: marked.count() + by_reference,
        long,
    }
}

/// The parts of the repository, and the files in each. Records and the change log tell what was.
fn parts() -> BTreeMap<&'static str, Vec<PathBuf>> {
    const PAGES: [&str; 3] = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"];
    let root = crate::support::root();
    let mut parts: BTreeMap<&str, Vec<PathBuf>> = BTreeMap::new();
    for path in all_rust_files() {
        let inner = path.strip_prefix(root).expect("a file of the repository");
        let folder = inner.components().next().expect("a name").as_os_str();
        let part = match folder.to_str().expect("UTF-8") {
            "host" => "host",
            "gpu-kernels" => "gpu-kernels",
            "rust-cuda" => "rust-cuda",
            "python" => "python",
            _ => "tests",
        };
        parts.entry(part).or_default().push(path);
    }
    let python = files(&root.join("python"), "py");
    parts.entry("python").or_default().extend(python);
    let mut pages = files(&root.join("docs"), "md");
    pages.extend(PAGES.iter().map(|page| root.join(page)));
    parts.insert("pages", pages);
    parts
}

#[test]
fn marked_words_and_long_sentences_become_fewer() {
    let allowed = read(&crate::support::root().join("tests/tidy/english.txt"));
    let allowed: BTreeMap<&str, Faults> = allowed
        .lines()
        .filter(|line| !line.starts_with('#'))
        .map(|line| {
            let row: Vec<&str> = line.split_whitespace().collect();
            let number = |index: usize| row[index].parse().expect("a number");
            let (marked, long) = (number(1), number(2));
            (row[0], Faults { marked, long })
        })
        .collect();
    let parts = parts();
    assert!(parts.keys().eq(allowed.keys()), "{allowed:?}");
    let mut grown = vec![];
    for (part, paths) in parts {
        let (mut found, mut worst) = (Faults::default(), vec![]);
        for path in paths {
            let of_file = faults(&path, &read(&path));
            found.marked += of_file.marked;
            found.long += of_file.long;
            worst.push((of_file.marked + of_file.long, path));
        }
        let allowed = allowed[part];
        if found.marked > allowed.marked || found.long > allowed.long {
            worst.sort();
            let worst: Vec<_> = worst.iter().rev().take(5).collect();
            grown.push(format!(
                "{part}: {found:?}, allowed {allowed:?}, most in {worst:?}"
            ));
        } else if found != allowed {
            println!("lower the numbers: {part} {} {}", found.marked, found.long);
        }
    }
    assert!(
        grown.is_empty(),
        "CONTRIBUTING.md, Plain English: write the new texts without {MARKED:?}, doc comments that \
         begin \"As [`…`]\" and sentences of more than {LONGEST_SENTENCE} words\n{}",
        grown.join("\n")
    );
}

#[test]
fn faults_of_a_text_are_found() {
    let words = |count| vec!["word"; count].join(" ");
    let page = format!(
        "{}.\n\n* {}\n* {}\n\n| {} | {} |\n\n```sh\n{}\n```\nwhose so\nmany\n",
        words(26),
        words(25),
        words(20),
        words(13),
        words(13),
        words(30)
    );
    let page = faults(Path::new("a.md"), &page);
    assert_eq!(page, Faults { marked: 2, long: 1 });
    let code = format!(
        "/// As [`b`], but faster: {}\n/// {}.\nfn besides(whose: u8) {{}}\n// those\n// of {}",
        words(13),
        words(13),
        words(30)
    );
    let code = faults(Path::new("a.rs"), &code);
    assert_eq!(code, Faults { marked: 3, long: 1 });
    assert_eq!(
        sentences("One `a b. c` two (three). Four: five / six?"),
        [4, 1, 2, 0]
    );
}
