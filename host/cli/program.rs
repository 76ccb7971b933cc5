//! The program; all of it is in the library beside it, which the Python package runs as well.

use std::process::ExitCode;

fn main() -> ExitCode {
    ExitCode::from(allpairs_cli::main(std::env::args_os()))
}
