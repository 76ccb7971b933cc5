//! Direct-summation gravitational N-body simulation, with GPU kernels written in Rust.
//!
//! ```text
//! initial conditions / snapshot file ─► Bodies (f64, host) ─► packed to the variant's layout ─► upload
//!                          ▲                                                          │
//!                          │                                          force variant on a backend:
//!                     integrator ◄── accelerations ◄── download ◄── GPU | CPU | emulator | reference
//!                          │
//!                          └─► diagnostics (energy, momentum, force error) ─► snapshots, tables, pictures
//! ```
//!
//! On a GPU the whole loop — force, integrator, energy — stays on the device; the host sees data
//! only when somebody asks for them.
//!
//! | to | look at |
//! |---|---|
//! | begin | the [`tutorial`] |
//! | read, write or make bodies | [`io`], [`initial_conditions`], [`bodies`], [`units`] |
//! | choose what computes the forces, and where | [`variants`], [`studies`], [`selection`] |
//! | compute forces | [`force`] |
//! | run | [`simulation`], [`integrator`] |
//! | keep a run: logs, snapshots, checkpoints | [`recording`], [`checkpoint`] |
//! | find the fastest variant for this machine, and keep it | [`tuning`] |
//! | judge a run, a variant, or the whole | [`diagnostics`], [`verify`], [`mod@bench`], [`validate`] |
//! | see it | [`output`] |
//! | see what a kernel was compiled to | [`ptx`] |
//!
//! It is the library behind the program `allpairs`. It does not do trees, gas, collisions or
//! cosmology: every pair of bodies is computed, and gravity is all there is.

mod accelerations;
pub mod backend;
pub mod bodies;
pub mod checkpoint;
pub mod diagnostics;
pub mod force;
pub mod frame;
pub mod initial_conditions;
pub mod integrator;
pub mod io;
pub mod limits;
pub mod machine;
#[cfg(feature = "pictures")]
pub mod output;
pub mod physics;
pub mod plan;
pub mod ptx;
pub mod recording;
pub mod selection;
pub mod simulation;
pub mod suggest;
pub mod timeline;
#[cfg(feature = "tuning")]
pub mod tuning;
pub mod units;
pub mod variants;

pub use accelerations::accelerations;
pub use backend::{Backend, ForceError, Operation};
pub use bodies::{Bodies, Body, Kind};
pub use diagnostics::{Conserved, Energy, Sample};
pub use initial_conditions::plummer;
pub use integrator::{Integrator, Pace, Stepping};
pub use io::{Format, Overwrite, Snapshot};
pub use machine::Machine;
pub use physics::{Law, Physics};
pub use selection::{DeviceChoice, Place, Request, Selection, select};
pub use simulation::{BuildError, Scheme, Simulation, SimulationBuilder};
pub use units::Units;
pub use variants::preferred::ForceAccuracy;
pub use variants::{Catalogue, Variant};

/// Crates whose types stand in signatures here.
pub use {cuda_driver, cuda_std, gpu_kernels};

// Of two definitions of a link the first counts: these lead to the documentation, those in the file,
// for who reads it as it is, to the sources.
/// [`Bodies`]: crate::bodies::Bodies
/// [file]: crate::io
/// [generator]: crate::initial_conditions
/// [`units`]: crate::units
/// [`Physics`]: crate::physics::Physics
/// [`select`]: crate::selection::select
/// [`Backend`]: crate::backend::Backend
/// [`Simulation`]: crate::simulation::Simulation
/// [`Integrator`]: crate::integrator::Integrator
/// [`run`]: crate::simulation::Simulation::run
/// [`suggest`]: crate::suggest
/// [`Recording`]: crate::recording::Recording
/// [`DensityPicture`]: crate::output::DensityPicture
/// [`Viewer`]: crate::output::Viewer
/// [`run_charts`]: crate::output::run_charts
/// [`verify`]: crate::verify
/// [`validate`]: crate::validate
/// [drift]: crate::diagnostics::Conserved::drift_since
///
#[doc = include_str!("../../docs/tutorial.md")]
pub mod tutorial {}

/// README's example, compiled and run with the documentation's.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
struct Readme;
