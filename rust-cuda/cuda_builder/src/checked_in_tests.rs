//! The four modes, with a compiler that is none.

use super::*;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use tempfile::TempDir;

struct FakeCompiler {
    identity: Option<&'static str>,
    entry: &'static str,
    compiled: AtomicUsize,
}

impl Compile for FakeCompiler {
    fn identity(&self) -> Result<String, BuilderError> {
        self.identity
            .map(str::to_owned)
            .ok_or(BuilderError::NoTargetDir)
    }

    fn description(&self) -> Result<String, BuilderError> {
        Ok(format!("{} in /somewhere", self.identity()?))
    }

    fn compile(&self, arch: NvptxArch) -> Result<String, BuilderError> {
        self.compiled.fetch_add(1, Relaxed);
        Ok(format!(
            ".version 7.0\n.target {arch}\n.visible .entry {}()\n{{\n\
             \tadd.rn.f32 \t%r1, %r1, %r1;\n}}\n",
            self.entry
        ))
    }
}

/// A kernel crate with checked-in modules.
struct Project {
    directory: TempDir,
    modules: KernelModules,
}

impl Project {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let kernels = directory.path().join("kernels");
        fs::create_dir_all(kernels.join("src")).unwrap();
        fs::write(kernels.join("Cargo.toml"), "[package]\n").unwrap();
        fs::write(kernels.join("src/lib.rs"), "fn kernel() {}\n").unwrap();
        let modules = KernelModules::new("program kernels", kernels)
            .generations(&[NvptxArch::Sm75, NvptxArch::Sm90]);
        let project = Self { directory, modules };
        project
            .run(Mode::Write, Some("rustc 1"), "kernel")
            .0
            .unwrap();
        project
    }

    /// The outcome, and how often the compiler ran.
    fn run(
        &self,
        mode: Mode,
        identity: Option<&'static str>,
        entry: &'static str,
    ) -> (Result<Provided, ModulesError>, usize) {
        let compiler = FakeCompiler {
            identity,
            entry,
            compiled: AtomicUsize::new(0),
        };
        let outcome = self.modules.provide_with(mode, &self.out_dir(), &compiler);
        (outcome, compiler.compiled.into_inner())
    }

    fn refusal(&self, mode: Mode, identity: Option<&'static str>, entry: &'static str) -> String {
        self.run(mode, identity, entry).0.unwrap_err().to_string()
    }

    fn out_dir(&self) -> PathBuf {
        self.directory.path().join("out")
    }

    fn packed(&self) -> PathBuf {
        self.directory.path().join("kernels/ptx/kernels.bin")
    }

    fn table(&self) -> PathBuf {
        self.directory.path().join("kernels/ptx/kernels.txt")
    }

    fn lines(&self) -> Vec<String> {
        let text = fs::read_to_string(self.table()).unwrap();
        text.lines().map(str::to_owned).collect()
    }

    fn write_sources(&self, code: &str) {
        fs::write(self.directory.path().join("kernels/src/lib.rs"), code).unwrap();
    }

    fn change_sources(&self) {
        self.write_sources("fn other() {}\n");
    }
}

#[test]
fn modules_that_are_up_to_date_are_embedded_as_they_are_without_a_compiler() {
    let project = Project::new();
    let (outcome, compiled) = project.run(Mode::UpToDate, None, "");
    let expected = Provided {
        packed: project.packed(),
        notes: Vec::new(),
    };
    assert_eq!((outcome.unwrap(), compiled), (expected, 0));
    assert!(!project.out_dir().exists());
}

#[test]
fn a_comment_leaves_modules_up_to_date() {
    let project = Project::new();
    project.write_sources("//! Kernels.\n\n/// One.\nfn kernel() {\n    // Nothing.\n}\n");
    let (outcome, compiled) = project.run(Mode::UpToDate, None, "");
    assert_eq!((outcome.unwrap().packed, compiled), (project.packed(), 0));
}

#[test]
fn a_checkout_with_other_line_endings_is_up_to_date() {
    let project = Project::new();
    let unix = fs::read_to_string(project.table()).unwrap();
    fs::write(project.table(), unix.replace('\n', "\r\n")).unwrap();
    project.run(Mode::UpToDate, None, "").0.unwrap();
    let (outcome, _) = project.run(Mode::Check, Some("rustc 1"), "kernel");
    assert_eq!(outcome.unwrap().notes.len(), 1);
}

#[test]
fn modules_of_other_sources_are_never_embedded() {
    let project = Project::new();
    project.change_sources();
    let message = project.refusal(Mode::UpToDate, None, "");
    assert!(
        message.contains("kernels.txt is missing or was made of other sources"),
        "{message}"
    );

    let before = [project.table(), project.packed()].map(|path| fs::read(path).unwrap());
    let (outcome, compiled) = project.run(Mode::UpToDate, Some("rustc 1"), "other");
    let Provided { packed, notes } = outcome.unwrap();
    assert_eq!((notes.len(), compiled), (1, 2));
    for expected in [
        "sm_75, sm_90 with rustc 1 in /somewhere",
        "ALLPAIRS_PTX=write cargo build",
    ] {
        assert!(notes[0].contains(expected), "{}", notes[0]);
    }
    assert_eq!(packed, project.out_dir().join("kernels.bin"));
    let after = [project.table(), project.packed()].map(|path| fs::read(path).unwrap());
    assert_eq!(before, after);

    // The same bytes as those that are checked in once they are renewed.
    let fresh = fs::read(packed).unwrap();
    project
        .run(Mode::Write, Some("rustc 1"), "other")
        .0
        .unwrap();
    assert_eq!(fs::read(project.packed()).unwrap(), fresh);
}

#[test]
fn files_that_do_not_belong_together_count_as_of_other_sources() {
    let project = Project::new();
    let table = fs::read(project.table()).unwrap();
    let headless = project.lines()[1..3].join("\n");
    let packed = fs::read(project.packed()).unwrap();
    let refuses = || {
        let message = project.refusal(Mode::UpToDate, None, "");
        assert!(message.contains("made of other sources"), "{message}");
        let message = project.refusal(Mode::Check, Some("rustc 1"), "kernel");
        assert!(message.contains("are not both there"), "{message}");
    };
    for text in ["", "by hand\n", &headless] {
        fs::write(project.table(), text).unwrap();
        refuses();
    }
    fs::write(project.table(), table).unwrap();
    fs::write(project.packed(), &packed[1..]).unwrap();
    refuses();
    fs::remove_file(project.packed()).unwrap();
    refuses();
    fs::write(project.packed(), packed).unwrap();
    assert_eq!(project.run(Mode::UpToDate, None, "").1, 0);
}

#[test]
fn write_renews_what_is_checked_in() {
    let project = Project::new();
    let before = project.lines();
    project.change_sources();
    project
        .run(Mode::Write, Some("rustc 2"), "other")
        .0
        .unwrap();
    let lines = project.lines();
    assert!(lines[0].starts_with("# program kernels: "), "{}", lines[0]);
    assert_eq!(lines[1], "# compiler: rustc 2");
    assert!(lines[2].starts_with("# flags: sm_75 -Ctarget-cpu=sm_75 "));
    assert!(
        lines[5].starts_with("other sm_75: 1 instructions (1 f32, "),
        "{}",
        lines[5]
    );
    assert!(lines[6].starts_with("other sm_90: "), "{}", lines[6]);
    assert_eq!(lines.len(), 8);
    assert!(lines.iter().zip(&before).all(|(new, old)| (new == old) == new.contains("flags")
        || new.starts_with("# program")));
    assert_eq!(project.run(Mode::UpToDate, None, "").1, 0);
    let (outcome, _) = project.run(Mode::Check, Some("rustc 2"), "other");
    assert_eq!(outcome.unwrap().notes.len(), 1);
}

#[test]
fn fresh_ignores_what_is_checked_in() {
    let project = Project::new();
    let (outcome, compiled) = project.run(Mode::Fresh, Some("rustc 2"), "other");
    assert_eq!(
        outcome.unwrap().packed,
        project.out_dir().join("kernels.bin")
    );
    assert_eq!(compiled, 2);
    assert!(project.refusal(Mode::Fresh, None, "").contains("OUT_DIR"));
}

#[test]
fn check_names_the_first_kernel_that_differs() {
    let project = Project::new();
    let message = project.refusal(Mode::Check, Some("rustc 1"), "other");
    for expected in ["kernels.txt", "line 6", "kernel sm_75: ", "other sm_75: "] {
        assert!(
            message.contains(expected),
            "{expected} is not in: {message}"
        );
    }
    project.change_sources();
    let message = project.refusal(Mode::Check, Some("rustc 1"), "kernel");
    assert!(
        message.contains("line 5") && message.contains("sources"),
        "{message}"
    );
}

#[test]
fn check_with_another_compiler_compares_what_can_be_compared_and_says_so() {
    let project = Project::new();
    let (outcome, _) = project.run(Mode::Check, Some("rustc 2"), "kernel");
    let notes = outcome.unwrap().notes;
    assert_eq!(notes.len(), 2);
    for expected in ["kernels.txt", "rustc 1", "rustc 2", "names of 2 kernels"] {
        assert!(
            notes[1].contains(expected),
            "{expected} is not in: {}",
            notes[1]
        );
    }
    let message = project.refusal(Mode::Check, Some("rustc 2"), "other");
    assert!(
        message.contains("lacks the kernels [\"other sm_75\", \"other sm_90\"]"),
        "{message}"
    );
    project.change_sources();
    let message = project.refusal(Mode::Check, Some("rustc 2"), "kernel");
    assert!(message.contains("made of other sources"), "{message}");
}

#[test]
fn a_missing_last_line_is_a_difference() {
    assert_eq!(first_difference("a\nb\n", "a\nb\n"), None);
    let (line, texts) = first_difference("a\nb\n", "a\nb").unwrap();
    assert_eq!(
        (line, texts),
        (3, [String::new(), "(end of file)".to_owned()])
    );
}

#[test]
fn cargo_is_told_of_every_source_and_variable() {
    let project = Project::new();
    let lines = project.modules.directives().join("\n");
    for expected in [
        "=ALLPAIRS_PTX",
        "DEVICE_RUSTC",
        "kernels/src",
        "kernels/Cargo.toml",
        "kernels/ptx",
    ] {
        assert!(lines.contains(expected), "{expected} is not in:\n{lines}");
    }
}

#[test]
fn a_mode_is_one_of_four() {
    assert_eq!("".parse::<Mode>().unwrap(), Mode::UpToDate);
    assert_eq!("check".parse::<Mode>().unwrap(), Mode::Check);
    assert!(
        "yes"
            .parse::<Mode>()
            .unwrap_err()
            .to_string()
            .contains("ALLPAIRS_PTX=yes")
    );
}
