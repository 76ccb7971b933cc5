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
    ) -> (Result<Vec<String>, ModulesError>, usize) {
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

    fn checked_in(&self) -> PathBuf {
        self.directory.path().join("kernels/ptx/sm_75.ptx")
    }

    /// The embedded text, with marks where denormals are flushed.
    fn marked(&self, name: &str) -> String {
        let file = fs::File::open(self.out_dir().join(name)).unwrap();
        std::io::read_to_string(flate2::read::DeflateDecoder::new(file)).unwrap()
    }

    fn embedded(&self, name: &str) -> String {
        self.marked(name).replace(crate::FLUSH, "")
    }

    fn change_sources(&self) {
        fs::write(
            self.directory.path().join("kernels/src/lib.rs"),
            "fn other() {}\n",
        )
        .unwrap();
    }
}

#[test]
fn modules_that_are_up_to_date_are_embedded_without_a_compiler() {
    let project = Project::new();
    let (outcome, compiled) = project.run(Mode::UpToDate, None, "");
    assert!(outcome.unwrap().is_empty());
    assert_eq!(compiled, 0);
    assert_eq!(
        project.embedded("sm_75.ptx.deflated"),
        fs::read_to_string(project.checked_in()).unwrap()
    );

    let list = fs::read_to_string(project.out_dir().join("ptx.rs")).unwrap();
    for line in [
        "static SM_75: &[u8] = include_bytes!(concat!(env!(\"OUT_DIR\"), \"/sm_75.ptx.deflated\"));",
        "PtxModule::new(75, false, SM_75),",
        "PtxModule::new(75, true, SM_75),",
    ] {
        assert!(list.contains(line), "{list}");
    }
    assert_eq!(list.matches("PtxModule::new").count(), 4, "{list}");
    let flushed = project
        .marked("sm_90.ptx.deflated")
        .replace(crate::FLUSH, ".ftz");
    assert!(flushed.contains("add.rn.ftz.f32"), "{flushed}");
}

#[test]
fn a_checkout_with_other_line_endings_is_up_to_date() {
    let project = Project::new();
    let unix = fs::read_to_string(project.checked_in()).unwrap();
    fs::write(project.checked_in(), unix.replace('\n', "\r\n")).unwrap();
    project.run(Mode::UpToDate, None, "").0.unwrap();
    assert_eq!(project.embedded("sm_75.ptx.deflated"), unix);
    assert_eq!(
        project
            .run(Mode::Check, Some("rustc 1"), "kernel")
            .0
            .unwrap()
            .len(),
        1
    );
}

#[test]
fn modules_of_other_sources_are_never_embedded() {
    let project = Project::new();
    project.change_sources();
    let message = project.refusal(Mode::UpToDate, None, "");
    assert!(
        message.contains("sm_75.ptx is missing or was made of other sources"),
        "{message}"
    );

    let before = fs::read_to_string(project.checked_in()).unwrap();
    let (outcome, compiled) = project.run(Mode::UpToDate, Some("rustc 1"), "other");
    let notes = outcome.unwrap();
    assert_eq!((notes.len(), compiled), (1, 2));
    assert!(
        notes[0].contains("sm_75, sm_90 with rustc 1 in /somewhere"),
        "{}",
        notes[0]
    );
    assert!(
        notes[0].contains("ALLPAIRS_PTX=write cargo build"),
        "{}",
        notes[0]
    );
    assert!(
        project
            .embedded("sm_75.ptx.deflated")
            .contains(".entry other()")
    );
    assert_eq!(fs::read_to_string(project.checked_in()).unwrap(), before);
}

#[test]
fn a_module_without_a_header_counts_as_of_other_sources() {
    let project = Project::new();
    for text in [
        "",
        "// by hand\n.version 7.0\n",
        "// a sm_75 | b | flags c | sources no number\n",
    ] {
        fs::write(project.checked_in(), text).unwrap();
        assert!(
            project
                .refusal(Mode::UpToDate, None, "")
                .contains("made of other sources")
        );
        assert!(
            project
                .refusal(Mode::Check, Some("rustc 1"), "")
                .contains("no header line")
        );
    }
}

#[test]
fn write_renews_what_is_checked_in() {
    let project = Project::new();
    project.change_sources();
    project
        .run(Mode::Write, Some("rustc 2"), "other")
        .0
        .unwrap();
    let text = fs::read_to_string(project.checked_in()).unwrap();
    assert!(text.starts_with("// program kernels sm_75 | rustc 2 | flags -Ctarget-cpu=sm_75 "));
    assert_eq!(project.run(Mode::UpToDate, None, "").1, 0);
    assert_eq!(
        project
            .run(Mode::Check, Some("rustc 2"), "other")
            .0
            .unwrap()
            .len(),
        1
    );
}

#[test]
fn fresh_ignores_what_is_checked_in() {
    let project = Project::new();
    let (outcome, compiled) = project.run(Mode::Fresh, Some("rustc 2"), "other");
    outcome.unwrap();
    assert_eq!(compiled, 2);
    assert!(
        project
            .embedded("sm_75.ptx.deflated")
            .contains(".entry other()")
    );
    assert!(project.refusal(Mode::Fresh, None, "").contains("OUT_DIR"));
}

#[test]
fn check_names_the_first_line_that_differs() {
    let project = Project::new();
    let message = project.refusal(Mode::Check, Some("rustc 1"), "other");
    for expected in ["sm_75.ptx", "line 4", ".entry kernel()", ".entry other()"] {
        assert!(
            message.contains(expected),
            "{expected} is not in: {message}"
        );
    }
    project.change_sources();
    let message = project.refusal(Mode::Check, Some("rustc 1"), "kernel");
    assert!(
        message.contains("line 1") && message.contains("sources"),
        "{message}"
    );
}

#[test]
fn check_with_another_compiler_compares_what_can_be_compared_and_says_so() {
    let project = Project::new();
    let notes = project
        .run(Mode::Check, Some("rustc 2"), "kernel")
        .0
        .unwrap();
    assert_eq!(notes.len(), 3);
    for expected in ["sm_75.ptx", "rustc 1", "rustc 2", "1 entry points"] {
        assert!(
            notes[1].contains(expected),
            "{expected} is not in: {}",
            notes[1]
        );
    }
    let message = project.refusal(Mode::Check, Some("rustc 2"), "other");
    assert!(
        message.contains("lacks the entry points [\"other\"]"),
        "{message}"
    );
    project.change_sources();
    let message = project.refusal(Mode::Check, Some("rustc 2"), "kernel");
    assert!(message.contains("line 1"), "{message}");
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
