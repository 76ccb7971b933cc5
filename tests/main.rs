//! All integration tests in one binary: the library is linked once.

mod block_steps;
mod browser;
mod cli;
mod convert;
mod defaults;
mod emulator;
mod examples;
mod fields;
mod first_steps;
mod formats;
mod gpu;
mod long_runs;
mod many;
mod measuring;
mod peers;
mod physics;
mod pictures;
mod ptx_claims;
mod readme;
mod run_folders;
mod several_devices;
mod studies;
mod support;
mod systems;
mod test_particles;
mod tidy;
