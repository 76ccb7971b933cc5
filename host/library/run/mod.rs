//! A run: what is asked for ([`RunSpec`]), and what that means for given bodies on a given machine ([`Run`]).

mod fault;
mod groups;
mod pace;
mod resolve;
mod spec;

pub use fault::BuildError;
pub use groups::GroupsFault;
pub use resolve::{Choice, Custom, Run, Surroundings, remark_on_single};
pub use spec::{End, RunSpec};
