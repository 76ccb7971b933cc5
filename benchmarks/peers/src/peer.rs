//! The other programs, each in a process of its own.
//!
//! A peer reads G and ε, then position and mass of each body, a line each. It prints its version, a
//! line of the seconds that evaluations took, and the acceleration of each body, a line each.

use crate::ours::Row;
use allpairs_lab::verify::Case;
use std::env;
use std::ffi::OsString;
use std::fmt::Write as _;
use std::io::Write as _;
use std::process::{Command, Stdio};
use std::thread;

/// REBOUND as a peer.
const REBOUND: &str = include_str!("rebound.py");

/// A code to compare with.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Peer {
    /// The Rust library, of numbers of this type, compiled for this processor or not.
    Particular {
        /// `f32` or `f64`.
        precision: &'static str,
        /// With `-C target-cpu=native`.
        native: bool,
    },
    /// The Python package.
    Rebound,
}

/// All of them.
pub(crate) fn all() -> impl Iterator<Item = Peer> {
    let builds = [false, true].into_iter();
    builds
        .flat_map(|native| ["f32", "f64"].map(|precision| Peer::Particular { precision, native }))
        .chain([Peer::Rebound])
}

impl Peer {
    /// Measures the code.
    ///
    /// # Errors
    /// How to install it, or what it said when it failed.
    pub(crate) fn row(self, case: &Case) -> Result<Row, String> {
        let mut command = self.command()?;
        let name = self.name();
        let mut input = format!("{:e} {:e}\n", case.physics.g, case.physics.softening);
        for body in case.bodies.iter() {
            let [x, y, z] = body.position;
            writeln!(input, "{x:e} {y:e} {z:e} {:e}", body.mass).expect("a string grows");
        }
        let failed = |why: &dyn std::fmt::Display| format!("{name} failed: {why}");
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| failed(&error))?;
        let mut stdin = child.stdin.take().expect("it is piped");
        let writer = thread::spawn(move || stdin.write_all(input.as_bytes()));
        let output = child.wait_with_output().map_err(|error| failed(&error))?;
        let written = writer.join().expect("writing does not panic");
        let said = String::from_utf8_lossy(&output.stdout);
        match (written, self.parse(case, &said)) {
            (Ok(()), Some(row)) if output.status.success() => Ok(row),
            _ => Err(failed(&String::from_utf8_lossy(&output.stderr))),
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Particular { native: false, .. } => "`particular`",
            Self::Particular { native: true, .. } => "`particular`, `-C target-cpu=native`",
            Self::Rebound => "REBOUND",
        }
    }

    fn precision(self) -> &'static str {
        match self {
            Self::Particular { precision, .. } => precision,
            Self::Rebound => "f64",
        }
    }

    fn command(self) -> Result<Command, String> {
        match self {
            Self::Particular { precision, native } => {
                let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
                let package = env!("CARGO_MANIFEST_DIR");
                let (flags, folder) = match native {
                    true => ("-C target-cpu=native", "native"),
                    false => ("", "default"),
                };
                let mut command = Command::new(cargo);
                command
                    .args(["run", "--quiet", "--release", "--locked", "--manifest-path"])
                    .arg(format!("{package}/particular/Cargo.toml"))
                    .arg("--target-dir")
                    .arg(format!("{package}/target/{folder}"))
                    .args(["--", precision])
                    .env("RUSTFLAGS", flags);
                Ok(command)
            }
            Self::Rebound => {
                let python = env::var_os("PYTHON").unwrap_or_else(|| OsString::from("python3"));
                let importable = Command::new(&python)
                    .args(["-c", "import rebound"])
                    .stderr(Stdio::null())
                    .status();
                if !importable.is_ok_and(|status| status.success()) {
                    let python = python.to_string_lossy();
                    return Err(format!(
                        "REBOUND is missing; to have it compared: {python} -m pip install rebound"
                    ));
                }
                let mut command = Command::new(&python);
                command.args(["-c", REBOUND]);
                Ok(command)
            }
        }
    }

    fn parse(self, case: &Case, said: &str) -> Option<Row> {
        let numbers = |line: &str| -> Option<Vec<f64>> {
            line.split(' ').map(|number| number.parse().ok()).collect()
        };
        let mut lines = said.lines();
        let code = format!("{} {}", self.name(), lines.next()?);
        let seconds = numbers(lines.next()?)?;
        let accelerations: Option<Vec<[f64; 3]>> =
            lines.map(|line| numbers(line)?.try_into().ok()).collect();
        let accelerations = accelerations?;
        let complete = !seconds.is_empty() && accelerations.len() == case.bodies.len();
        complete.then(|| Row::of(case, &code, self.precision(), seconds, &accelerations))
    }
}
