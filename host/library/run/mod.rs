//! A run: what is asked for ([`RunSpec`]), and what that means for given bodies on a given machine ([`Run`]).

mod fault;
mod pace;
mod resolve;
mod spec;

pub use fault::BuildError;
pub use resolve::{Choice, Custom, Run, Surroundings};
pub use spec::{End, RunSpec};
