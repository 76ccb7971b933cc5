//! `allpairs cite`.

use std::io::Write;
use std::path::{Path, PathBuf};

use allpairs::initial_conditions::GENERATORS;
use allpairs::output::RunLog;
use anyhow::ensure;
use toml::{Table, Value};

use crate::config::{self, MADE_BY};
use crate::outputs::CONFIG;
use crate::version;

/// Citation of which run, and in which form.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "BibTeX takes the whole output as a file of references: it skips the text after the \
                  entries, which is for the section on methods."
)]
pub(super) struct Options {
    /// Folder of a run: the text then has its version, settings and largest error of the energy.
    #[arg(long, value_name = "FOLDER")]
    run: Option<PathBuf>,
    /// Print CITATION.cff, in the Citation File Format, instead.
    #[arg(long, conflicts_with = "run")]
    cff: bool,
}

pub(super) fn cite(options: &Options, out: &mut impl Write) -> anyhow::Result<()> {
    if options.cff {
        return Ok(out.write_all(cff().as_bytes())?);
    }
    let Some(folder) = &options.run else {
        let program = Program::running();
        write!(out, "{}\n{}", program.entry(), program.sentence())?;
        writeln!(
            out,
            "\n% `allpairs cite --run FOLDER` adds the settings of a run."
        )?;
        return Ok(());
    };
    let table = config::read(&folder.join(CONFIG))?;
    let log = folder.join("diagnostics.csv");
    let log = log.exists().then(|| RunLog::read(&log)).transpose()?;
    let drift = log.as_ref().and_then(largest_drift);
    write!(out, "{}", of_run(folder, &table, drift)?)?;
    Ok(())
}

/// The largest relative error of the energy in a log.
fn largest_drift(log: &RunLog) -> Option<f64> {
    let drifts = log.column("energy_drift")?.iter().map(|drift| drift.abs());
    // A drift that is no number is larger than any.
    drifts.reduce(|a, b| if a.is_nan() || a > b { a } else { b })
}

/// CITATION.cff: a test compares the file in the repository.
fn cff() -> String {
    let licences = env!("CARGO_PKG_LICENSE").split(" OR ");
    let licences: String = licences.map(|name| format!("  - {name}\n")).collect();
    format!(
        "# Written by `allpairs cite --cff`.\n\
         cff-version: 1.2.0\n\
         message: If you use Allpairs, please cite it with the version that you used.\n\
         type: software\n\
         title: \"{TITLE}\"\n\
         authors:\n  - name: {}\n\
         version: {}\n\
         date-released: \"{}\"\n\
         license:\n{licences}\
         keywords:\n  - astronomy\n  - n-body simulation\n  - gravity\n  - gpu\n",
        env!("CARGO_PKG_AUTHORS"),
        env!("CARGO_PKG_VERSION"),
        version::RELEASED,
    )
}

const TITLE: &str = "Allpairs: direct-summation gravitational N-body simulation";

/// The program that is cited.
struct Program {
    version: String,
    commit: Option<String>,
}

impl Program {
    fn running() -> Self {
        Self::new(env!("CARGO_PKG_VERSION"), version::COMMIT)
    }

    fn new(version: &str, commit: &str) -> Self {
        Self {
            version: version.to_owned(),
            commit: (commit != "unknown").then(|| commit.to_owned()),
        }
    }

    /// The program that made a run.
    fn of(table: &Table) -> Self {
        let made_by = table.get(MADE_BY).and_then(Value::as_table);
        let entry = |key| made_by?.get(key)?.as_str();
        let program = entry("program").and_then(|text| text.strip_prefix("allpairs "));
        program.map_or_else(Self::running, |version| {
            Self::new(version, entry("commit").unwrap_or("unknown"))
        })
    }

    /// `version 0.2.0, commit abc`.
    fn described(&self) -> String {
        let commit = self.commit.as_deref();
        let commit = commit.map_or_else(String::new, |commit| format!(", commit {commit}"));
        format!("version {}{commit}", self.version)
    }

    /// Entry for BibTeX, with the year where this program knows it.
    fn entry(&self) -> String {
        let is_this = self.version == env!("CARGO_PKG_VERSION");
        let year = version::RELEASED.split('-').next().filter(|_| is_this);
        let year = year.map_or_else(String::new, |year| format!("  year = {{{year}}},\n"));
        let first = self.described().replacen('v', "V", 1);
        format!(
            "@misc{{allpairs,\n  author = {{{{{}}}}},\n  title = {{{{{TITLE}}}}},\n{year}  note = {{{first}}}\n}}\n",
            env!("CARGO_PKG_AUTHORS"),
        )
    }

    fn sentence(&self) -> String {
        format!(
            "The simulations were run with Allpairs \\citep{{allpairs}}, {}. It computes the force \
             between every pair of bodies by direct summation.\n",
            self.described()
        )
    }
}

/// Publications that a text may cite: key, author, title, journal, volume, page, year.
const SOURCES: [[&str; 7]; 6] = [
    [
        "AhmadCohen1973",
        "Ahmad, A. and Cohen, L.",
        "A numerical integration scheme for the N-body gravitational problem",
        "Journal of Computational Physics",
        "12",
        "389",
        "1973",
    ],
    [
        "KustaanheimoStiefel1965",
        "Kustaanheimo, P. and Stiefel, E.",
        "Perturbation theory of Kepler motion based on spinor regularization",
        "Journal f{\\\"u}r die reine und angewandte Mathematik",
        "218",
        "204",
        "1965",
    ],
    [
        "MakinoAarseth1992",
        "Makino, J. and Aarseth, S. J.",
        "On a Hermite integrator with Ahmad-Cohen scheme for gravitational many-body problems",
        "Publications of the Astronomical Society of Japan",
        "44",
        "141",
        "1992",
    ],
    [
        "MikkolaAarseth1993",
        "Mikkola, S. and Aarseth, S. J.",
        "An implementation of N-body chain regularization",
        "Celestial Mechanics and Dynamical Astronomy",
        "57",
        "439",
        "1993",
    ],
    [
        "NitadoriMakino2008",
        "Nitadori, K. and Makino, J.",
        "Sixth- and eighth-order Hermite integrator for N-body simulations",
        "New Astronomy",
        "13",
        "498",
        "2008",
    ],
    [
        "Yoshida1990",
        "Yoshida, H.",
        "Construction of higher order symplectic integrators",
        "Physics Letters A",
        "150",
        "262",
        "1990",
    ],
];

/// Entries for BibTeX of the sources that a text cites.
fn entries(text: &str) -> String {
    let cited = SOURCES.iter().filter(|source| text.contains(source[0]));
    let entry = |[key, author, title, journal, volume, page, year]: &[&str; 7]| {
        format!(
            "\n@article{{{key},\n  author = {{{author}}},\n  title = {{{{{title}}}}},\n  journal = {{{journal}}},\n  \
             volume = {{{volume}}},\n  pages = {{{page}}},\n  year = {{{year}}}\n}}\n"
        )
    };
    cited.map(entry).collect()
}

/// Options that a text about a run tells of, or that do not change results.
const TOLD: [&str; 25] = [
    "block-steps",
    "bodies",
    "checkpoint-every",
    "device",
    "diagnostics",
    "dt",
    "eta",
    "field",
    "gravity",
    "groups",
    "input",
    "integrator",
    "kernel",
    "law",
    "max-drift",
    "neighbours",
    "no-cache",
    "no-picture",
    "seed",
    "snapshot-every",
    "snapshot-format",
    "softening",
    "steps",
    "units",
    "until",
];

/// References and text about a run in this folder.
fn of_run(folder: &Path, table: &Table, drift: Option<f64>) -> anyhow::Result<String> {
    let program = Program::of(table);
    let mut text = program.sentence();
    let mut say = |sentence: String| text.push_str(&(sentence + "\n"));
    let setting = |key: &str| table.get(key).map(shown);
    let is_on = |key: &str| table.get(key).is_some_and(|on| on.as_bool() == Some(true));
    let required = |key: &str| {
        let found = setting(key);
        ensure!(
            found.is_some(),
            "{} lacks `{key}`, which Allpairs writes there: it is not the file of a run",
            folder.join(CONFIG).display()
        );
        Ok(found.unwrap_or_default())
    };

    let input = table.get("input").and_then(Value::as_str);
    let input = input.unwrap_or_default();
    let made = GENERATORS.iter().any(|generator| generator.name == input);
    let named = format!("\\texttt{{{}}}", escaped(input));
    say(match (made, setting("bodies")) {
        (true, Some(bodies)) => format!(
            "{bodies} bodies were generated as {named} with random seed {}.",
            setting("seed").unwrap_or_else(|| "0".into())
        ),
        (true, None) => format!("The bodies were generated as {named}."),
        (false, _) => format!("The bodies were read from {named}."),
    });

    let gravity = setting("gravity");
    match (setting("units"), gravity) {
        (Some(units), _) => say(format!("Units are {}.", escaped(&units))),
        (None, Some(g)) => say(format!("Numbers are in units with $G = {}$.", math(&g))),
        (None, None) => {}
    }

    say(motion(
        &required("integrator")?,
        &math(&required("dt")?),
        setting("eta").map(|eta| math(&eta)),
        is_on("block-steps"),
        setting("neighbours"),
    ));
    if setting("groups").as_deref() == Some("on") {
        say(
            "Close pairs and multiples were regularised \\citep{KustaanheimoStiefel1965,MikkolaAarseth1993}."
                .into(),
        );
    }

    let law = setting("law").filter(|law| law != "gravity");
    if let Some(law) = law {
        say(format!(
            "Forces had the law \\texttt{{{}}} of Allpairs.",
            escaped(&law)
        ));
    }
    let softening = required("softening")?;
    say(match softening.parse() {
        Ok(0.0) => "Forces were not softened.".into(),
        _ => format!(
            "Forces had a Plummer softening of length $\\epsilon = {}$.",
            math(&softening)
        ),
    });
    let fields = table.get("field").map(|field| match field {
        Value::Array(fields) => fields.iter().map(shown).collect::<Vec<_>>().join("; "),
        field => shown(field),
    });
    if let Some(fields) = fields {
        say(format!(
            "External fields were \\texttt{{{}}}.",
            escaped(&fields)
        ));
    }

    let place = table.get(MADE_BY).and_then(|made_by| made_by.get("device"));
    let place = place.or_else(|| table.get("device")).map(shown);
    let place = place.map_or_else(|| "an unknown device".into(), |place| escaped(&place));
    let article = if place.starts_with("CPU") { "a " } else { "" };
    say(format!(
        "Forces were computed by the kernel \\texttt{{{}}} on {article}{place}.",
        escaped(&required("kernel")?),
    ));
    match drift {
        Some(drift) if drift.is_finite() => say(format!(
            "The relative error of the total energy was at most ${}$.",
            math(&drift.to_string())
        )),
        Some(_) => say("% The energy was not a number somewhere in the log.".into()),
        None => say(
            "% No error of the energy is known: `allpairs run --diagnostics STEPS` logs it.".into(),
        ),
    }
    let others = table
        .iter()
        .filter(|(key, value)| !TOLD.contains(&key.as_str()) && !value.is_table());
    let others: Vec<String> = others
        .map(|(key, value)| format!("{key} = {}", shown(value)))
        .collect();
    if !others.is_empty() {
        say(format!("% Also set: {}", others.join(", ")));
    }
    Ok(format!("{}{}\n{text}", program.entry(), entries(&text)))
}

/// Sentence about the integrator and its steps.
fn motion(
    integrator: &str,
    dt: &str,
    eta: Option<String>,
    block_steps: bool,
    neighbours: Option<String>,
) -> String {
    let scheme = match integrator {
        "leapfrog" => "a leapfrog (kick, drift, kick)".into(),
        "leapfrog-dkd" => "a leapfrog (drift, kick, drift)".into(),
        "yoshida4" => "the fourth-order symplectic integrator of \\citet{Yoshida1990}".into(),
        "yoshida6" => "the sixth-order symplectic integrator of \\citet{Yoshida1990}".into(),
        "hermite4" => "the fourth-order Hermite scheme \\citep{MakinoAarseth1992}".into(),
        "hermite6" => "the sixth-order Hermite scheme \\citep{NitadoriMakino2008}".into(),
        other => format!("the integrator \\texttt{{{}}}", escaped(other)),
    };
    let steps = match (block_steps, &eta) {
        (true, _) => format!("with block time steps of at most {dt}"),
        (false, Some(_)) => format!("with a common time step, which varied and was at most {dt}"),
        (false, None) => format!("with a constant time step of {dt}"),
    };
    let eta = eta.map_or_else(String::new, |eta| {
        format!(" and the accuracy parameter $\\eta = {eta}$")
    });
    let neighbours = neighbours.map_or_else(String::new, |count| {
        let number = match count.as_str() {
            "auto" => "a number of neighbours that Allpairs chose".into(),
            count => format!("{count} neighbours"),
        };
        format!(
            " Forces of near and far bodies had different steps \\citep{{AhmadCohen1973}}, with {number}."
        )
    });
    format!("Orbits were integrated by {scheme} {steps}{eta}.{neighbours}")
}

/// A value as TOML has it, but texts without quotation marks.
fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// A number for LaTeX's mathematics, of four digits if it has many; any other text with its unit upright.
fn math(text: &str) -> String {
    let Ok(number) = text.parse::<f64>() else {
        let end = text.find(|c: char| c.is_alphabetic() && c != 'e');
        let (number, unit) = text.split_at(end.unwrap_or(text.len()));
        return format!("{number}\\,\\mathrm{{{}}}", escaped(unit.trim()));
    };
    let whole = number.to_string();
    if whole.len() <= 8 {
        return whole;
    }
    let rounded = format!("{number:.3e}");
    let (mantissa, exponent) = rounded.split_once('e').unwrap_or((&rounded, "0"));
    match number.abs() {
        1e-3..1e5 => rounded
            .parse()
            .map_or(whole, |number: f64| number.to_string()),
        _ => format!("{mantissa} \\times 10^{{{exponent}}}"),
    }
}

/// A text for LaTeX, with its special characters as what they are.
fn escaped(text: &str) -> String {
    let mut escaped = String::new();
    for character in text.chars() {
        match character {
            '\\' => escaped.push_str("\\textbackslash{}"),
            '~' => escaped.push_str("\\textasciitilde{}"),
            '^' => escaped.push_str("\\textasciicircum{}"),
            '_' | '&' | '%' | '#' | '$' | '{' | '}' => escaped.extend(['\\', character]),
            other => escaped.push(other),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text_of(table: &str, drift: Option<f64>) -> String {
        of_run(Path::new("RUN"), &table.parse().unwrap(), drift).unwrap()
    }

    #[test]
    fn a_run_is_described() {
        let star_cluster = "
            block-steps = true
            bodies = 200
            dt = 0.08333333333333333
            eta = 0.02
            field = [\"nfw:mass=1,scale=2\", \"point:mass=3\"]
            groups = \"on\"
            input = \"plummer\"
            integrator = \"hermite4\"
            kernel = \"cpu-f64\"
            neighbours = 16
            on-collision = \"merge\"
            seed = 3
            softening = 0.0
            units = \"pc,Msun,km/s\"
            until = \"10Myr\"
            [made-by]
            commit = \"0123456789ab\"
            device = \"CPU (2 threads, AVX_512)\"
            kernel = \"cpu-f64\"
            program = \"allpairs 0.1.7\"";
        let text = text_of(star_cluster, Some(2.4268e-7));
        for part in [
            "@misc{allpairs,",
            "note = {Version 0.1.7, commit 0123456789ab}",
            "version 0.1.7, commit 0123456789ab.",
            "@article{MakinoAarseth1992,",
            "@article{AhmadCohen1973,",
            "200 bodies were generated as \\texttt{plummer} with random seed 3.",
            "Units are pc,Msun,km/s.",
            "block time steps of at most 0.08333 and the accuracy parameter $\\eta = 0.02$",
            "with 16 neighbours",
            "regularised",
            "not softened",
            "\\texttt{nfw:mass=1,scale=2; point:mass=3}",
            "the kernel \\texttt{cpu-f64} on a CPU (2 threads, AVX\\_512)",
            "at most $2.427 \\times 10^{-7}$",
            "% Also set: on-collision = merge",
        ] {
            assert!(text.contains(part), "{part} is not in\n{text}");
        }
        assert!(!text.contains("Yoshida1990"), "{text}");
        // The year of another version is not known.
        assert!(!text.contains("year = {2026}"), "{text}");
    }

    #[test]
    fn a_run_without_a_log_says_so() {
        let text = text_of(
            "dt = 0.5\ngravity = 1.0\ninput = \"a_b.csv\"\nintegrator = \"leapfrog\"\nkernel = \"cpu-f32\"\n\
             softening = \"0.01pc\"",
            None,
        );
        for part in [
            "read from \\texttt{a\\_b.csv}",
            "$G = 1$",
            "constant time step of 0.5.",
            "$\\epsilon = 0.01\\,\\mathrm{pc}$",
            "% No error of the energy is known",
        ] {
            assert!(text.contains(part), "{part} is not in\n{text}");
        }
        let lacking = "input = \"plummer\"".parse().unwrap();
        let error = of_run(Path::new("RUN"), &lacking, None).unwrap_err();
        assert!(error.to_string().contains("lacks `integrator`"), "{error}");
    }

    #[test]
    fn drifts_that_are_no_numbers_are_not_hidden() {
        let log = |rows: &str| RunLog::parse(&format!("energy_drift\n{rows}")).unwrap();
        assert_eq!(largest_drift(&log("0\n-3e-4\n1e-4\n")), Some(3e-4));
        assert!(largest_drift(&log("0\nNaN\n1e-4\n")).unwrap().is_nan());
        assert!(largest_drift(&log("0\n1e-4\nNaN\n")).unwrap().is_nan());
    }

    #[test]
    fn numbers_are_short_enough_to_read() {
        for (text, expected) in [
            ("0.047894751975572136", "0.04789"),
            ("0.001953125", "0.001953"),
            ("1.5e-12", "1.500 \\times 10^{-12}"),
            ("10Myr", "10\\,\\mathrm{Myr}"),
            ("86400", "86400"),
        ] {
            assert_eq!(math(text), expected);
        }
    }
}
