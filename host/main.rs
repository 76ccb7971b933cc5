//! The program `allpairs`: argument parsing and calls into the library.

mod cli;

fn main() -> std::process::ExitCode {
    cli::main()
}
