//! Direct-summation gravitational N-body simulation, with GPU kernels written in Rust.
//!
//! ```
//! use allpairs::{Simulation, plummer};
//!
//! let mut cluster = Simulation::builder(plummer(500, 1)?).build()?;
//! cluster.run_until(0.1)?;
//! println!("the first body is at x = {}", cluster.bodies()?.x[0]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! | to | look at |
//! |---|---|
//! | begin | the [`tutorial`] |
//! | read, write or make bodies | [`io`], [`initial_conditions`], [`bodies`], [`units`] |
//! | run | [`simulation`], [`integrator`] |
//! | compute forces alone | [`accelerations()`], [`physics`], [`force`] |
//! | choose what computes the forces, and where | [`variants`], [`selection`], [`machine`] |
//! | keep a run: logs, snapshots, checkpoints | [`recording`], [`checkpoint`] |
//! | find the fastest variant for this machine, and keep it | [`tuning`] |
//! | add a galaxy, a tide, a field of your own | [`fields`] |
//! | find collisions, escapes and bound pairs | [`encounters`], [`binaries`] |
//! | choose softening, steps and integrator | [`suggest`] |
//! | judge a run | [`diagnostics`], [`test_particles`] |
//! | see it | [`output`] |
//! | see what a kernel was compiled to | [`ptx`] |
//!
//! Every pair of bodies is computed. There are no trees, no gas and no cosmology.
//!
//! On a GPU, bodies stay on the device between steps, and the host sees them when it asks for them.
//! Verification of kernels, validation of whole runs, studies and benchmarks are in the package
//! `allpairs-lab`.

mod accelerations;
pub mod backend;
pub mod binaries;
pub mod bodies;
pub mod checkpoint;
pub mod diagnostics;
pub mod encounters;
pub mod fields;
pub mod force;
pub mod frame;
mod groups;
pub mod initial_conditions;
pub mod integrator;
pub mod io;
pub mod limits;
pub mod machine;
pub mod memory;
pub mod names;
pub mod neighbours;
#[cfg(feature = "pictures")]
pub mod output;
mod parallel;
pub mod physics;
pub mod plan;
pub mod ptx;
pub mod ranks;
pub mod recording;
pub mod refusals;
pub mod rules;
pub mod run;
pub mod selection;
pub mod settings;
pub mod simd;
pub mod simulation;
pub mod suggest;
pub mod test_particles;
pub mod threads;
pub mod timeline;
#[cfg(feature = "tuning")]
pub mod tuning;
pub mod units;
pub mod variants;
mod vectors;

pub use accelerations::accelerations;
pub use backend::{Backend, ForceError, Operation};
pub use bodies::{Bodies, Body, BodyKind};
pub use diagnostics::{Conserved, Energy, Sample};
pub use initial_conditions::plummer;
pub use integrator::{Integrator, Pace, TimeSteps};
pub use io::{Format, Overwrite, Snapshot};
pub use machine::Machine;
pub use physics::{ForceLaw, Physics};
pub use run::{BuildError, End, Run, RunSpec, Surroundings};
pub use selection::{DeviceChoice, Place, Request, Selection, select};
pub use simulation::{IntegrationScheme, Simulation, SimulationBuilder};
pub use units::Units;
pub use variants::preferred::ForceAccuracy;
pub use variants::{Catalogue, Variant};

/// Crates whose types occur in signatures here.
pub use {cuda_driver, cuda_std, gpu_kernels};

// Of two definitions of a link the first counts: these lead to the documentation, those in the file
// to the sources.
/// [`Bodies`]: crate::bodies::Bodies
/// [file]: crate::io
/// [generator]: crate::initial_conditions
/// [`units`]: crate::units
/// [`Physics`]: crate::physics::Physics
/// [`select`]: crate::selection::select
/// [`Backend`]: crate::backend::Backend
/// [`Simulation`]: crate::simulation::Simulation
/// [`Simulation::builder`]: crate::simulation::Simulation::builder
/// [`Integrator`]: crate::integrator::Integrator
/// [`run`]: crate::simulation::Simulation::run
/// [`suggest`]: crate::suggest
/// [`Recording`]: crate::recording::Recording
/// [`DensityPicture`]: crate::output::DensityPicture
/// [`Viewer`]: crate::output::Viewer
/// [`run_charts`]: crate::output::run_charts
/// [drift]: crate::diagnostics::Conserved::drift_since
///
#[doc = include_str!("../../docs/tutorial.md")]
pub mod tutorial {}

/// README's example, compiled and run with the documentation's.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
struct Readme;
