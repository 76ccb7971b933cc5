//! `particular` as a peer: see `peer.rs` for what is read and printed. Its argument is the type of
//! its numbers. Brute force on all threads with vectors, as the library's documentation offers it.

use particular::math::{DVec3, Vec3};
use particular::prelude::*;
use std::io::{Read, Write};
use std::time::Instant;
use std::{env, io};

/// Evaluations that are timed.
const EVALUATIONS: usize = 9;

fn main() -> io::Result<()> {
    let mut input = String::new();
    io::stdin().read_to_string(&mut input)?;
    let mut numbers = input
        .split_ascii_whitespace()
        .map(|number| number.parse::<f64>().expect("numbers"));
    let mut next = || numbers.next();
    let (g, softening) = next().zip(next()).expect("G and ε come first");
    let mut bodies = vec![];
    while let Some(x) = next() {
        let mut next = || next().expect("four numbers a body");
        bodies.push(([x, next(), next()], g * next()));
    }
    let (seconds, accelerations): (Vec<f64>, Vec<[f64; 3]>) = match env::args().nth(1).as_deref() {
        Some("f32") => {
            let points: Vec<PointMass<Vec3, f32>> = bodies
                .iter()
                .map(|&(x, mass)| PointMass::new(Vec3::from(x.map(|x| x as f32)), mass as f32))
                .collect();
            let mut method = parallel::BruteForceSoftenedSIMD::<8, f32> {
                softening: softening as f32,
            };
            let (seconds, computed) = timed(|| method.compute(points.as_slice()));
            let wide = |a: &Vec3| [a.x, a.y, a.z].map(f64::from);
            (seconds, computed.iter().map(wide).collect())
        }
        Some("f64") => {
            let points: Vec<PointMass<DVec3, f64>> = bodies
                .iter()
                .map(|&(x, mass)| PointMass::new(DVec3::from(x), mass))
                .collect();
            let mut method = parallel::BruteForceSoftenedSIMD::<4, f64> { softening };
            let (seconds, computed) = timed(|| method.compute(points.as_slice()));
            (seconds, computed.iter().map(|a| [a.x, a.y, a.z]).collect())
        }
        _ => return Err(io::Error::other("the argument is f32 or f64")),
    };
    let mut output = io::stdout().lock();
    writeln!(output, "0.7.0")?;
    let seconds: Vec<String> = seconds.iter().map(f64::to_string).collect();
    writeln!(output, "{}", seconds.join(" "))?;
    for [x, y, z] in accelerations {
        writeln!(output, "{x:e} {y:e} {z:e}")?;
    }
    Ok(())
}

/// Seconds of each of several evaluations, the first not counted, and what it gives.
fn timed<T>(mut evaluate: impl FnMut() -> T) -> (Vec<f64>, T) {
    let computed = evaluate();
    let seconds = (0..EVALUATIONS).map(|_| {
        let start = Instant::now();
        std::hint::black_box(evaluate());
        start.elapsed().as_secs_f64()
    });
    (seconds.collect(), computed)
}
