//! The ladders that GPU studies of this problem have climbed, rung by rung: each a variant under the
//! study's own name for it, run with the study's law and integrator unless told otherwise.
//!
//! A rung is a line that names an entry, as the variants of general use do; two rungs, or a rung
//! and such a variant, that are the same share the entry. What a rung changes is not written here
//! but found by comparing its choices with its predecessor's.

mod ecl;
mod galaxies;
mod gtx1060;
mod gtx980;
mod venus;

use std::sync::{Arc, LazyLock};

use allpairs::integrator::Integrator;
use allpairs::physics::ForceLaw;
use allpairs::ranks::Team;
use allpairs::run::{Custom, Surroundings};
use allpairs::variants::{Catalogue, Method, Variant, first, variant};

/// A study and its ladder.
#[derive(Clone, Copy, Debug)]
pub struct Study {
    /// Name.
    pub name: &'static str,
    /// Subject.
    pub summary: &'static str,
    /// Force law.
    pub law: ForceLaw,
    /// Integrator.
    pub integrator: Integrator,
    /// Method of measurement.
    pub measured: Measured,
    /// Rungs, in the study's own order.
    pub rungs: &'static [Rung],
}

/// Method of a study's measurements.
#[derive(Clone, Copy, Debug)]
pub struct Measured {
    /// Numbers of bodies.
    pub bodies: &'static [u32],
    /// Number of independent systems that they are.
    pub systems: u32,
    /// Positions of the bodies at the start.
    pub start: Start,
    /// Steps of a run.
    pub steps: u32,
    /// Runs, of which the statistic is taken.
    pub repetitions: u32,
    /// Statistic of the runs' times.
    pub statistic: Statistic,
    /// Remark on what the study says and leaves open.
    pub note: &'static str,
}

/// Positions of bodies at the start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// Spread evenly over a cube, of several masses.
    Cube,
    /// Bodies of a cube, all of one mass.
    CubeOfEqualMasses,
    /// Plummer's model of a star cluster.
    Plummer,
}

/// Statistic of many times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Statistic {
    /// Mean.
    Mean,
    /// The middle one.
    Median,
}

impl Statistic {
    /// Name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Mean => "mean",
            Self::Median => "median",
        }
    }

    /// Of these times, which are sorted.
    ///
    /// # Panics
    /// If there are none.
    pub fn of(self, sorted: &[f64]) -> f64 {
        match self {
            Self::Mean => sorted.iter().sum::<f64>() / sorted.len() as f64,
            Self::Median => sorted[sorted.len() / 2],
        }
    }
}

/// A rung of a ladder.
#[derive(Clone, Copy, Debug)]
pub struct Rung {
    /// The variant that it is; its name is the study's and the rung's, its predecessor another rung.
    pub variant: Variant,
    /// Result that the study reported.
    pub reported: &'static str,
}

const fn base(name: &'static str, method: Method, summary: &'static str) -> Rung {
    Rung {
        variant: first(name, method, summary),
        reported: "",
    }
}

const fn rung(
    name: &'static str,
    after: &'static str,
    method: Method,
    summary: &'static str,
) -> Rung {
    Rung {
        variant: variant(name, after, method, summary),
        reported: "",
    }
}

impl Rung {
    const fn reported(mut self, reported: &'static str) -> Self {
        self.reported = reported;
        self
    }

    const fn wrong(mut self, why: &'static str) -> Self {
        self.variant.wrong = Some(why);
        self
    }
}

/// All studies.
pub const STUDIES: &[Study] = &[
    venus::STUDY,
    gtx1060::STUDY,
    galaxies::STUDY,
    gtx980::STUDY,
    ecl::STUDY,
];

/// The study of this name.
///
/// # Errors
/// If there is none.
pub fn find(name: &str) -> Result<&'static Study, UnknownStudy> {
    STUDIES
        .iter()
        .find(|study| study.name == name)
        .ok_or_else(|| UnknownStudy(name.to_owned()))
}

/// All variants: variants of general use, then the rungs of the studies.
pub fn catalogue() -> &'static Catalogue {
    static ALL: LazyLock<Catalogue> = LazyLock::new(|| Catalogue::general().with(rungs()));
    &ALL
}

/// Surroundings of a run, by the ranks of a team if there is one, that may name any of them: a rung is run
/// with its study's law and integrator.
pub fn surroundings(team: Option<&Arc<Team>>) -> Surroundings {
    Surroundings {
        catalogue: catalogue().clone(),
        custom: |variant| {
            let study = of(variant)?;
            let (law, integrator) = (study.law, study.integrator);
            Some(Custom { law, integrator })
        },
        team: team.cloned(),
    }
}

/// All rungs, study by study.
pub fn rungs() -> impl Iterator<Item = &'static Variant> {
    let rungs = STUDIES.iter().flat_map(|study| study.rungs);
    rungs.map(|rung| &rung.variant)
}

/// Returns whether a variant is made for many systems: those of its bodies that are told apart are
/// then independent of each other.
pub fn is_of_many(variant: &Variant) -> bool {
    matches!(variant.method, Method::Systems(_)) || variant.study() == Some("galaxies")
}

/// The study that a variant is a rung of.
pub fn of(variant: &Variant) -> Option<&'static Study> {
    find(variant.study()?).ok()
}

/// No study has this name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownStudy(pub String);

impl std::error::Error for UnknownStudy {}

impl std::fmt::Display for UnknownStudy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let known: Vec<&str> = STUDIES.iter().map(|study| study.name).collect();
        write!(
            f,
            "there is no study `{}`; there are {}",
            self.0,
            known.join(", ")
        )
    }
}

#[cfg(test)]
mod tests {
    use std::mem::discriminant;

    use super::*;

    #[test]
    fn rungs_stand_on_their_own_ladder() {
        for study in STUDIES {
            for (k, rung) in study.rungs.iter().enumerate() {
                let v = &rung.variant;
                assert_eq!(v.study(), Some(study.name), "{}", v.name);
                assert!(v.computes(study.law), "{}", v.name);
                let before = |name| study.rungs[..k].iter().any(|r| r.variant.name == name);
                assert!(v.predecessor.is_none_or(before), "{}", v.name);
                assert_eq!(v.predecessor.is_none(), k == 0, "{}", v.name);
            }
        }
    }

    /// Rungs in which a study changed more than one thing at a time, or one that shows in several
    /// choices.
    const SEVERAL: &[&str] = &[
        "venus/fp16-pure", // precision, and so storage is no longer narrower than it
        "gtx1060/direct",
        "galaxies/streams", // several blocks a system, which only kernels of a step allow
        "galaxies/fast-math",
        "galaxies/soa",
        "gtx980/2d",
        "gtx980/2d-tuned",
        "ecl/two-loops", // which never pair a body with itself
    ];

    #[test]
    fn a_rung_differs_from_its_predecessor_in_one_choice() {
        for rung in rungs() {
            let Some(predecessor) = rung.predecessor else {
                continue;
            };
            let before = catalogue().find(predecessor).expect("listed");
            if discriminant(&before.method) != discriminant(&rung.method) {
                continue; // from the CPU to a GPU
            }
            let differences = crate::choices::differences(rung);
            if SEVERAL.contains(&rung.name) {
                assert!(differences.len() > 1, "{}: {differences:?}", rung.name);
            } else {
                assert_eq!(differences.len(), 1, "{}: {differences:?}", rung.name);
            }
        }
    }

    #[test]
    fn unknown_studies_are_refused_with_those_there_are() {
        assert!(
            find("mars")
                .expect_err("none")
                .to_string()
                .contains("venus, ")
        );
    }
}
