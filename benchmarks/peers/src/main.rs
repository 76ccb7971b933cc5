//! Allpairs' CPU kernels beside those of other programs, on the same bodies, in one run:
//!
//! ```text
//! cargo run --release --manifest-path benchmarks/peers/Cargo.toml -- [BODIES]
//! ```
//!
//! * `particular`, a Rust library, compiled twice: as Cargo does by default, and with
//!   `-C target-cpu=native`, which asks for all that this processor has. Allpairs needs no such flag.
//! * REBOUND, through its Python package, where `python3` (or the interpreter that the environment
//!   variable `PYTHON` names) can import it.
//!
//! Each code computes the accelerations of all bodies, with masses and softening, a few times; the
//! first time is not counted. Errors are those of the forces, against the f64 reference, root mean
//! square.

mod ours;
mod peer;

use ours::{Row, system};
use std::env;
use std::process::ExitCode;
use std::time::Duration;

/// Bodies, if nothing else is said.
const BODIES: usize = 16_384;

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let bodies = match arguments.as_slice() {
        [] => Some(BODIES),
        [bodies] => bodies.parse().ok().filter(|&n| n >= 2),
        _ => None,
    };
    let Some(bodies) = bodies else {
        eprintln!("usage: peers [BODIES], a number of bodies from 2 on, {BODIES} by default");
        return ExitCode::FAILURE;
    };
    let case = system(bodies);
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    println!("{bodies} bodies, {threads} threads; medians of several evaluations\n");
    println!("{}", Row::HEADER);
    let mut missing = vec![];
    ours::rows(&case, Duration::from_secs(1), |row| println!("{row}"));
    for peer in peer::all() {
        match peer.row(&case) {
            Ok(row) => println!("{row}"),
            Err(why) => missing.push(why),
        }
    }
    for why in missing {
        println!("\n{why}");
    }
    ExitCode::SUCCESS
}
