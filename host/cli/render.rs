//! `allpairs render`.

use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};

use allpairs::io::{Overwrite, Snapshot};
use allpairs::output::movie::{Movie, MovieFormat, ffmpeg_is_there};
use allpairs::output::{
    ColourMap, DensityPicture, Figure, PictureError, Projection, Section, Subset, Weight,
};
use allpairs::units::{Measure, Units};
use anyhow::{Context, bail, ensure};
use indicatif::ProgressBar;

use crate::files;
use crate::series::Series;

/// Snapshots that settle the frame and the brightness of a series: enough to see all of it.
const SAMPLES: usize = 16;

/// Snapshots to draw, and how.
#[derive(Debug, clap::Args)]
pub(super) struct Options {
    #[command(flatten)]
    series: Series,
    /// File to write: a .png, .svg or .pdf (of several snapshots: numbered ones), or a movie: .mp4, .webm
    /// (by ffmpeg), .gif or .apng. Without it: a .png of the snapshot's name, or movie.mp4.
    #[arg(short, long, alias = "out", value_name = "FILE")]
    output: Option<PathBuf>,
    /// Write a movie: .mp4, .webm (by ffmpeg), .gif, .apng, or .png for an animated one.
    #[arg(long, value_name = "FILE", conflicts_with = "output")]
    movie: Option<PathBuf>,
    /// The panels from left to right, seen along the axis that is not named.
    #[arg(long, value_delimiter = ',', default_value = "xy,xz")]
    axes: Vec<Projection>,
    /// Leave out axes, scale bar, time and colour bar of a .png, and draw few bodies as light too; leave out
    /// the time and the scale of a movie, which has no more.
    #[arg(long)]
    bare: bool,
    /// Width and height of all panels together in pixels, without axes [default: 800 per panel; 400 for a
    /// gif]
    #[arg(long, value_name = "WIDTHxHEIGHT", value_parser = size)]
    size: Option<[u32; 2]>,
    /// inferno, magma, plasma, viridis, cividis, cubehelix, turbo or grey.
    #[arg(long, value_name = "NAME", default_value_t)]
    colour_map: ColourMap,
    /// Bodies to draw: luminous (gas and stars, if there are any), all, gas, dark or star.
    #[arg(long, value_name = "WHICH", default_value = "luminous")]
    select: Subset,
    /// Weight of a body: count (each the same) or mass.
    #[arg(long, value_name = "WHAT", default_value = "count")]
    weight: Weight,
    /// Magnification of the picture, in addition to the one chosen automatically.
    #[arg(
        long,
        value_name = "FACTOR",
        default_value_t = 1.0,
        conflicts_with = "half_width"
    )]
    zoom: f64,
    /// Length from the middle of a panel to its nearest edge, in the unit of the positions or with its own
    /// (5kpc); chosen from the bodies where not given.
    #[arg(long, value_name = "LENGTH")]
    half_width: Option<Measure>,
    /// The point in the middle of each panel, three such lengths; chosen from the bodies where not given.
    #[arg(long, value_name = "X,Y,Z", value_parser = point, allow_hyphen_values = true)]
    centre: Option<Point>,
    /// Powers of ten between the brightest and the darkest shades.
    #[arg(long, default_value_t = 3.0)]
    decades: f64,
    /// Pictures a second of a movie.
    #[arg(long, value_name = "RATE", default_value_t = 25)]
    fps: u16,
    /// Replace what is there.
    #[arg(long)]
    overwrite: bool,
}

/// `1600x800`.
fn size(text: &str) -> anyhow::Result<[u32; 2]> {
    let (width, height) = text
        .split_once('x')
        .context("use WIDTHxHEIGHT, as 1600x800")?;
    Ok([width.parse()?, height.parse()?])
}

/// Three coordinates: `0,-1.5,2kpc`.
type Point = [Measure; 3];

fn point(text: &str) -> anyhow::Result<Point> {
    let numbers: Vec<Measure> = text.split(',').map(str::parse).collect::<Result<_, _>>()?;
    let count = numbers.len();
    numbers
        .try_into()
        .map_err(|_| anyhow::anyhow!("{count} numbers instead of three"))
}

/// Files to be written.
enum Target {
    Picture(PathBuf),
    /// Numbered ones.
    Pictures(PathBuf),
    Movie(PathBuf, MovieFormat),
}

pub(super) fn render(options: &Options, out: &mut impl Write) -> anyhow::Result<()> {
    let files = options.series.files()?;
    let target = target(options, &files, out)?;
    let (picture, units) = picture(options, &files, &target)?;
    let overwrite = Overwrite::from(options.overwrite);
    let (Target::Picture(path) | Target::Pictures(path) | Target::Movie(path, _)) = &target;
    files::remove_abandoned(path);
    let read = |file: &Path| options.series.read(file);
    let figure = (!options.bare).then(|| Figure {
        picture: picture.clone(),
        units,
    });
    let draw = |path: &Path, file: &Path| -> anyhow::Result<()> {
        let snapshot = read(file)?;
        match &figure {
            Some(figure) => figure.write(path, &snapshot, overwrite)?,
            None => picture.write(path, &snapshot.bodies, overwrite)?,
        }
        Ok(())
    };
    let path = match target {
        Target::Picture(path) => {
            draw(&path, &files[0])?;
            path
        }
        Target::Pictures(path) => {
            let bar = progress(files.len());
            for (index, file) in files.iter().enumerate() {
                draw(&numbered(&path, index), file)?;
                bar.inc(1);
            }
            bar.finish_and_clear();
            let (first, last) = (numbered(&path, 0), numbered(&path, files.len() - 1));
            let (first, last) = (first.display(), last.display());
            writeln!(out, "wrote {first} to {last}, {} pictures", files.len())?;
            return Ok(());
        }
        Target::Movie(path, format) => {
            let bar = progress(files.len());
            let movie = Movie {
                format,
                pictures_per_second: options.fps,
                colour_map: options.colour_map,
            };
            movie.write(
                &path,
                overwrite,
                files.len(),
                |index| -> anyhow::Result<_> {
                    bar.set_position(index as u64);
                    let snapshot = read(&files[index])?;
                    Ok(match &figure {
                        Some(figure) => figure.stamped(&snapshot)?,
                        None => picture.shades(&snapshot.bodies)?,
                    })
                },
            )?;
            bar.finish_and_clear();
            path
        }
    };
    writeln!(out, "wrote {}", path.display())?;
    Ok(())
}

fn progress(count: usize) -> ProgressBar {
    if std::io::stderr().is_terminal() {
        ProgressBar::new(count as u64)
    } else {
        ProgressBar::hidden()
    }
}

/// `a-0000.png` for `a.png`.
fn numbered(path: &Path, index: usize) -> PathBuf {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let extension = path.extension().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!("{stem}-{index:04}.{extension}"))
}

fn target(options: &Options, files: &[PathBuf], out: &mut impl Write) -> anyhow::Result<Target> {
    let several = files.len() > 1;
    if let Some(path) = &options.movie {
        return match MovieFormat::from_path(path) {
            Some(format) if format.needs_ffmpeg() && !ffmpeg_is_there() => bail!(
                "a .{format} is made by ffmpeg, which is not on PATH: install it, or give the \
                 movie's name the ending .gif or .apng"
            ),
            Some(format) => Ok(Target::Movie(path.clone(), format)),
            None if is(path, "png") => Ok(Target::Movie(path.clone(), MovieFormat::Apng)),
            None => bail!(
                "{}: the name of a movie ends in .mp4, .webm, .gif, .apng or .png",
                path.display()
            ),
        };
    }
    let path = match &options.output {
        Some(path) => path.clone(),
        None if several => PathBuf::from("movie.mp4"),
        None => Path::new(files[0].file_name().unwrap_or_default()).with_extension("png"),
    };
    let is_drawing = is(&path, "svg") || is(&path, "pdf");
    ensure!(
        !(is_drawing && options.bare),
        "{}: a picture that is --bare is a .png",
        path.display()
    );
    if is(&path, "png") || is_drawing {
        return Ok(if several {
            Target::Pictures(path)
        } else {
            Target::Picture(path)
        });
    }
    match MovieFormat::from_path(&path) {
        Some(format) if format.needs_ffmpeg() && !ffmpeg_is_there() => {
            let path = path.with_extension("gif");
            writeln!(
                out,
                "a .{format} is made by ffmpeg, which is not on PATH: writing {} instead",
                path.display()
            )?;
            Ok(Target::Movie(path, MovieFormat::Gif))
        }
        Some(format) => Ok(Target::Movie(path, format)),
        None => bail!(
            "{}: the name of a picture ends in .png, .svg or .pdf, that of a movie in .mp4, .webm, .gif or \
             .apng",
            path.display()
        ),
    }
}

fn is(path: &Path, wanted: &str) -> bool {
    path.extension()
        .is_some_and(|extension| extension.eq_ignore_ascii_case(wanted))
}

/// The picture, with one frame and one brightness for the whole series; and the units of the bodies where
/// they are known.
fn picture(
    options: &Options,
    files: &[PathBuf],
    target: &Target,
) -> anyhow::Result<(DensityPicture, Option<Units>)> {
    ensure!(
        options.zoom.is_finite() && options.zoom > 0.0,
        "`--zoom` must be > 0 and finite, got {}",
        options.zoom
    );
    let side: u32 = match target {
        Target::Movie(_, MovieFormat::Gif) => 400,
        _ => 800,
    };
    let panels = u32::try_from(options.axes.len()).unwrap_or(u32::MAX);
    let [width, height] = options.size.unwrap_or([side.saturating_mul(panels), side]);
    let mut picture = DensityPicture {
        width,
        height,
        projections: options.axes.clone(),
        selection: options.select,
        weight: options.weight,
        frame: None,
        decades: options.decades,
        brightest: None,
        colour_map: options.colour_map,
    };
    let sample: Vec<&PathBuf> = (0..files.len().min(SAMPLES))
        .map(|i| &files[i * (files.len() - 1) / (SAMPLES.min(files.len()) - 1).max(1)])
        .collect();
    let (mut frames, mut units) = (vec![], None);
    for file in &sample {
        let (Snapshot { bodies, .. }, known) = options.series.load(file)?;
        units = units.or(known);
        bodies.check().map_err(PictureError::Bodies)?;
        frames.push(Section::around(&bodies, options.select));
    }
    let mut frame = Section::enclosing(&frames).context("no snapshots")?;
    let length = |option: &str, given: &Measure| -> anyhow::Result<f64> {
        let length = given.length(units.as_ref());
        length.with_context(|| format!("in --{option}"))
    };
    frame.half_width = match &options.half_width {
        Some(given) => length("half-width", given)?,
        None => frame.half_width / options.zoom,
    };
    if let Some(given) = &options.centre {
        for (coordinate, given) in frame.centre.iter_mut().zip(given) {
            *coordinate = length("centre", given)?;
        }
    }
    picture.frame = Some(frame);
    if files.len() > 1 {
        let mut brightest = 0.0_f64;
        for file in &sample {
            brightest = brightest.max(picture.brightness(&options.series.read(file)?.bodies)?);
        }
        picture.brightest = Some(brightest);
    }
    Ok((picture, units))
}
