//! A picture of a galaxy, and a movie of a few steps of it.
//!
//! `cargo run --release --example 06_pictures`

use std::error::Error;
use std::ops::ControlFlow;

use allpairs::force::cpu::Cpu;
use allpairs::initial_conditions::disk_galaxy;
use allpairs::integrator::Integrator;
use allpairs::io::Overwrite;
use allpairs::output::movie::{Movie, MovieError, MovieFormat};
use allpairs::output::{ColourMap, DensityPicture, Projection, Section, Subset};
use allpairs::physics::{ForceLaw, Physics};
use allpairs::simulation::Simulation;

pub(crate) fn main() -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let bodies = disk_galaxy(2000, 1, 1.5)?;

    // Stars face-on, in one frame and one brightness for all pictures.
    let mut picture = DensityPicture {
        width: 200,
        height: 200,
        projections: vec![Projection::Xy],
        frame: Some(Section::around(&bodies, Subset::Luminous)),
        ..DensityPicture::default()
    };
    picture.brightest = Some(picture.brightness(&bodies)?);
    let path = folder.path().join("galaxy.png");
    picture.write(&path, &bodies, Overwrite::Refuse)?;
    let image = picture.render(&bodies)?;
    // The light of a square of 20 × 20 pixels.
    let light = |left: usize, top: usize| -> u32 {
        let rows = image.rgb.chunks(3 * 200).skip(top).take(20);
        let pixels = rows.flat_map(|row| &row[3 * left..3 * (left + 20)]);
        pixels.map(|&c| u32::from(c)).sum()
    };
    assert!(
        light(90, 90) > 4 * light(0, 0),
        "bright in the middle, dark in a corner"
    );

    let physics = Physics {
        law: ForceLaw::Gravity,
        g: 1.0,
        softening: 0.1,
    };
    let backend = Box::new(Cpu::<f32>::new(&bodies, physics));
    let mut galaxy = Simulation::new(backend, bodies, physics, Integrator::Leapfrog, 0.5, 0.0)?;
    let movie = Movie {
        format: MovieFormat::Gif, // MP4 and WebM take ffmpeg
        pictures_per_second: 10,
        colour_map: ColourMap::default(),
    };
    let path = folder.path().join("galaxy.gif");
    movie.write(
        &path,
        Overwrite::Refuse,
        5,
        |_| -> Result<_, Box<dyn Error>> {
            let _ = galaxy.run(2, |_| ControlFlow::Continue(()))?;
            Ok(picture.shades(galaxy.bodies()?)?)
        },
    )?;
    assert!(std::fs::read(&path)?.starts_with(b"GIF89a"));
    assert!(matches!(
        movie.write(&path, Overwrite::Refuse, 0, |_| unreachable!(
            "there are no pictures"
        )),
        Err(MovieError::NoPictures)
    ));
    Ok(())
}
