//! The program `allpairs`: `dispatch.rs` reads the command line, each subcommand is a file, and other files are
//! what several of them use.

// `eprintln!` panics where nobody reads the standard error any more: `say::tell` does not.
#![cfg_attr(not(test), deny(clippy::print_stderr))]

mod asked;
mod bench;
mod bench_rows;
mod bench_study;
mod bodies;
mod changes;
mod choices;
mod cite;
mod config;
mod convert;
#[cfg(test)]
#[path = "../../tests/damage.rs"]
mod damage;
mod devices;
mod dispatch;
mod drift;
mod drive;
mod encounters;
mod exit;
mod field;
mod files;
mod flags;
mod header;
mod ic;
mod info;
mod inspect;
mod kernel;
mod list;
mod made;
mod manual;
mod many;
mod options;
mod outputs;
mod own_frame;
mod physics;
mod plot;
mod progress;
mod ranks;
mod render;
mod resume;
mod run;
mod say;
mod series;
mod settings;
mod signals;
mod size;
mod systems;
mod tables;
mod test_particles;
mod threads;
mod times;
mod tune;
mod validate;
mod verify;
mod version;
mod view;
mod watch;
mod while_read;

pub use dispatch::main;
pub use resume::{KeptRun, kept_run};
