//! Files: initial conditions written in one format, read and converted to another and to other
//! units, and nothing lost on the way.
//!
//! `cargo run --release --example 05_formats`

use std::error::Error;

use allpairs::initial_conditions::{J2000, solar_system};
use allpairs::io::{self, Format, Overwrite, Snapshot, TipsyDialect};
use allpairs::units::Units;

pub(crate) fn main() -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let planets = Snapshot {
        time: 0.0,
        bodies: solar_system(J2000)?,
    };

    // Every format that keeps f64 gives back the same bits; a name's ending tells which it is.
    for name in [
        "planets.allpairs",
        "planets.hdf5",
        "planets.npz",
        "planets.vtp",
        "planets.csv",
    ] {
        let path = folder.path().join(name);
        let format = Format::from_path(&path).expect("a known ending");
        io::write(&path, format, &planets, Overwrite::Refuse)?;
        let (back, _) = io::read(&path, None)?;
        assert_eq!(back, planets, "{name}");
        println!("{name}: {} bytes", std::fs::metadata(&path)?.len());
    }

    // Nothing is replaced unless told to.
    let path = folder.path().join("planets.csv");
    assert!(io::write(&path, Format::Csv, &planets, Overwrite::Refuse).is_err());

    // Tipsy is a format of single precision: seven digits.
    let path = folder.path().join("planets.tipsy");
    let tipsy = Format::Tipsy(TipsyDialect::Standard);
    io::write(&path, tipsy, &planets, Overwrite::Refuse)?;
    let (single, found) = io::read(&path, None)?;
    assert_eq!(found, tipsy);
    for (a, b) in single.bodies.x.iter().zip(&planets.bodies.x) {
        assert!((a - b).abs() <= 6e-8 * b.abs());
    }

    // Other units: the Earth's speed from G = 1 in au and solar masses to km/s.
    let earth = planets.bodies.body(3);
    let speed = earth.velocity.iter().map(|v| v * v).sum::<f64>().sqrt();
    let kilometres_a_second = speed * "au,Msun".parse::<Units>()?.speed() / 1000.0;
    println!("the Earth moves at {kilometres_a_second:.2} km/s in January");
    assert!(
        (kilometres_a_second - 30.28).abs() < 0.05,
        "near perihelion"
    );
    Ok(())
}
