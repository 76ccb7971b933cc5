//! Series of pictures as one file that plays.
//!
//! MP4 and WebM are made by the program `ffmpeg`, which reads raw pictures from a pipe; GIF and
//! APNG need nothing. A movie appears whole or not at all, like every other file.

use std::fmt;
use std::fs::File;
use std::io::{self, BufWriter, Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use thiserror::Error;

use super::{ColourMap, Shades};
use crate::io::{Overwrite, folder_of, temporary_file, write_atomically};

/// File type of a movie.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MovieFormat {
    /// H.264; plays everywhere; by ffmpeg.
    Mp4,
    /// VP9; by ffmpeg.
    WebM,
    /// 256 colours, the colours of the colour map, so nothing is lost but space.
    Gif,
    /// Animated PNG: like GIF, smaller, known to browsers and few others.
    Apng,
}

impl MovieFormat {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Mp4, Self::WebM, Self::Gif, Self::Apng];

    /// The extension of its files.
    pub fn extension(self) -> &'static str {
        match self {
            Self::Mp4 => "mp4",
            Self::WebM => "webm",
            Self::Gif => "gif",
            Self::Apng => "apng",
        }
    }

    /// The format that a file name asks for, if one.
    pub fn from_path(path: &Path) -> Option<Self> {
        let extension = path.extension()?;
        Self::ALL
            .into_iter()
            .find(|format| extension.eq_ignore_ascii_case(format.extension()))
    }

    /// Returns whether it takes ffmpeg.
    pub fn needs_ffmpeg(self) -> bool {
        matches!(self, Self::Mp4 | Self::WebM)
    }

    /// Options of ffmpeg for the pictures.
    fn ffmpeg_options(self) -> &'static [&'static str] {
        match self {
            Self::WebM => &[
                "-c:v",
                "libvpx-vp9",
                "-crf",
                "28",
                "-b:v",
                "0",
                "-f",
                "webm",
            ],
            _ => &[
                "-c:v",
                "libx264",
                "-crf",
                "18",
                "-preset",
                "medium",
                "-movflags",
                "+faststart",
                "-f",
                "mp4",
            ],
        }
    }
}

impl fmt::Display for MovieFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.extension())
    }
}

/// Reason why there is no movie.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum MovieError {
    /// No pictures.
    #[error("a movie needs at least one picture")]
    NoPictures,
    /// A speed that the format cannot tell.
    #[error("{0} pictures a second: a movie has 1 to 50")]
    Speed(u16),
    /// The format needs ffmpeg.
    #[error("{0} is made by `ffmpeg`, which is not on PATH; install it or write gif or apng")]
    NoFfmpeg(MovieFormat),
    /// ffmpeg failed.
    #[error("ffmpeg could not make `{}`: {said}", path.display())]
    Ffmpeg {
        /// The movie.
        path: PathBuf,
        /// Message of ffmpeg.
        said: String,
    },
    /// Pictures of different sizes.
    #[error("picture {index} has {found:?} pixels where the first has {first:?}")]
    Size {
        /// Number of the picture, from 0.
        index: usize,
        /// Width and height of the picture.
        found: [u32; 2],
        /// Width and height of the first picture.
        first: [u32; 2],
    },
    /// The file could not be written.
    #[error("cannot write movie `{}`: {fault}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The reason; `AlreadyExists` under [`Overwrite::Refuse`].
        fault: io::Error,
    },
}

/// Writer of a movie.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Movie {
    /// The kind of file.
    pub format: MovieFormat,
    /// Pictures a second, 1 to 50. GIF rounds the time of each to 1/100 s.
    pub pictures_per_second: u16,
    /// The colours.
    pub colour_map: ColourMap,
}

/// Returns whether there is a program `ffmpeg` to run.
pub fn ffmpeg_is_there() -> bool {
    Command::new("ffmpeg")
        .arg("-version")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

impl Movie {
    /// Writes a movie of `count` pictures, made one at a time by `picture`, which is given their
    /// numbers in order. All must be of one size; give them one frame and one brightness.
    ///
    /// # Errors
    /// [`MovieError`], and those of `picture`.
    pub fn write<E: From<MovieError>>(
        &self,
        path: &Path,
        overwrite: Overwrite,
        count: usize,
        mut picture: impl FnMut(usize) -> Result<Shades, E>,
    ) -> Result<(), E> {
        if count == 0 {
            return Err(MovieError::NoPictures.into());
        }
        if !(1..=50).contains(&self.pictures_per_second) {
            return Err(MovieError::Speed(self.pictures_per_second).into());
        }
        if self.format.needs_ffmpeg() && !ffmpeg_is_there() {
            return Err(MovieError::NoFfmpeg(self.format).into());
        }
        let outcome = write_atomically(path, overwrite, |file| {
            let first = picture(0).map_err(Failure::Picture)?;
            let size = [first.width, first.height];
            let mut encoder = self.encoder(file, path, size, count)?;
            encoder.add(&first)?;
            for index in 1..count {
                let next = picture(index).map_err(Failure::Picture)?;
                let found = [next.width, next.height];
                if found != size {
                    let first = size;
                    return Err(Failure::Movie(MovieError::Size {
                        index,
                        found,
                        first,
                    }));
                }
                encoder.add(&next)?;
            }
            encoder.finish(path)
        });
        outcome.map_err(|failure| match failure {
            Failure::Picture(error) => error,
            Failure::Movie(error) => error.into(),
            Failure::File(fault) => MovieError::File {
                path: path.to_owned(),
                fault,
            }
            .into(),
        })
    }

    fn encoder<'f, 'd, E>(
        &self,
        file: &'f mut BufWriter<&'d mut File>,
        path: &Path,
        [width, height]: [u32; 2],
        count: usize,
    ) -> Result<Encoder<'f, 'd>, Failure<E>> {
        let palette = || self.colour_map.steps(256).concat();
        Ok(match self.format {
            MovieFormat::Gif => {
                let side = |pixels: u32| {
                    u16::try_from(pixels)
                        .map_err(|_| io::Error::other("a side of a GIF has at most 65535 pixels"))
                };
                let mut gif = gif::Encoder::new(file, side(width)?, side(height)?, &palette())
                    .map_err(gif_fault)?;
                gif.set_repeat(gif::Repeat::Infinite).map_err(gif_fault)?;
                let hundredths = (100 + self.pictures_per_second / 2) / self.pictures_per_second;
                Encoder::Gif { gif, hundredths }
            }
            MovieFormat::Apng => {
                let mut png = png::Encoder::new(file, width, height);
                png.set_color(png::ColorType::Indexed);
                png.set_depth(png::BitDepth::Eight);
                png.set_palette(palette());
                let count = u32::try_from(count).map_err(io::Error::other)?;
                png.set_animated(count, 0).map_err(io::Error::from)?;
                png.set_frame_delay(1, self.pictures_per_second)
                    .map_err(io::Error::from)?;
                Encoder::Apng(png.write_header().map_err(io::Error::from)?)
            }
            MovieFormat::Mp4 | MovieFormat::WebM => {
                Encoder::Ffmpeg(self.ffmpeg(file, path, [width, height])?)
            }
        })
    }

    fn ffmpeg<'f, 'd>(
        &self,
        target: &'f mut BufWriter<&'d mut File>,
        path: &Path,
        [width, height]: [u32; 2],
    ) -> io::Result<Ffmpeg<'f, 'd>> {
        // MP4 is not written from front to back, so ffmpeg needs a file of its own.
        let made = temporary_file(folder_of(path))?;
        let said = tempfile::tempfile()?;
        let child = Command::new("ffmpeg")
            .args(["-loglevel", "error", "-nostdin", "-y"])
            .args(["-f", "rawvideo", "-pix_fmt", "rgb24"])
            .args(["-s", &format!("{width}x{height}")])
            .args(["-r", &self.pictures_per_second.to_string()])
            .args(["-i", "-", "-an"])
            // Players want half as many colours as pixels each way, hence even sides.
            .args(["-vf", "pad=ceil(iw/2)*2:ceil(ih/2)*2"])
            .args(["-pix_fmt", "yuv420p"])
            .args(self.format.ffmpeg_options())
            .arg(made.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(said.try_clone()?)
            .spawn()?;
        Ok(Ffmpeg {
            child: Running(child),
            made,
            said,
            colour_map: self.colour_map,
            target,
        })
    }
}

enum Failure<E> {
    Picture(E),
    Movie(MovieError),
    File(io::Error),
}

impl<E> From<io::Error> for Failure<E> {
    fn from(fault: io::Error) -> Self {
        Self::File(fault)
    }
}

fn gif_fault(error: gif::EncodingError) -> io::Error {
    match error {
        gif::EncodingError::Io(fault) => fault,
        other => io::Error::other(other),
    }
}

enum Encoder<'f, 'd> {
    Gif {
        gif: gif::Encoder<&'f mut BufWriter<&'d mut File>>,
        hundredths: u16,
    },
    Apng(png::Writer<&'f mut BufWriter<&'d mut File>>),
    Ffmpeg(Ffmpeg<'f, 'd>),
}

struct Ffmpeg<'f, 'd> {
    child: Running,
    made: tempfile::NamedTempFile,
    said: File,
    colour_map: ColourMap,
    target: &'f mut BufWriter<&'d mut File>,
}

/// A program that does not outlive its owner, should pictures fail halfway.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // Errs where it has ended already, which is as good.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Encoder<'_, '_> {
    fn add<E>(&mut self, picture: &Shades) -> Result<(), Failure<E>> {
        match self {
            Self::Gif { gif, hundredths } => {
                let frame = gif::Frame {
                    width: picture.width as u16, // the encoder was made for this size
                    height: picture.height as u16,
                    delay: *hundredths,
                    buffer: picture.indices().into(),
                    ..gif::Frame::default()
                };
                gif.write_frame(&frame).map_err(gif_fault)?;
            }
            Self::Apng(png) => png
                .write_image_data(&picture.indices())
                .map_err(io::Error::from)?,
            Self::Ffmpeg(ffmpeg) => {
                let pipe = ffmpeg.child.0.stdin.as_mut().expect("piped");
                match pipe.write_all(&picture.image(ffmpeg.colour_map).rgb) {
                    // It gave up; why, it says when it is asked to finish.
                    Err(fault) if fault.kind() == io::ErrorKind::BrokenPipe => {}
                    other => other?,
                }
            }
        }
        Ok(())
    }

    fn finish<E>(self, path: &Path) -> Result<(), Failure<E>> {
        match self {
            Self::Gif { gif, .. } => {
                gif.into_inner().map_err(gif_fault)?; // writes the end
            }
            Self::Apng(png) => png.finish().map_err(io::Error::from)?,
            Self::Ffmpeg(mut ffmpeg) => {
                drop(ffmpeg.child.0.stdin.take());
                let status = ffmpeg.child.0.wait()?;
                if !status.success() {
                    let mut said = String::new();
                    ffmpeg.said.rewind()?;
                    ffmpeg.said.read_to_string(&mut said)?;
                    let said = match said.trim() {
                        "" => status.to_string(),
                        said => said.to_owned(),
                    };
                    let path = path.to_owned();
                    return Err(Failure::Movie(MovieError::Ffmpeg { path, said }));
                }
                io::copy(&mut ffmpeg.made.reopen()?, ffmpeg.target)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    const SIZE: [u32; 2] = [33, 17]; // odd, which H.264 has to be helped with

    /// A bar that moves to the right.
    fn picture(index: usize) -> Result<Shades, MovieError> {
        let [width, height] = SIZE;
        let shade = |x: u32| if x as usize / 3 == index { 1.0 } else { 0.25 };
        Ok(Shades {
            width,
            height,
            values: (0..height).flat_map(|_| (0..width).map(shade)).collect(),
        })
    }

    fn movie(format: MovieFormat) -> Movie {
        Movie {
            format,
            pictures_per_second: 20,
            colour_map: ColourMap::Viridis,
        }
    }

    #[test]
    fn a_gif_holds_the_pictures() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.gif");
        movie(MovieFormat::Gif)
            .write(&path, Overwrite::Refuse, 5, picture)
            .unwrap();
        let mut options = gif::DecodeOptions::new();
        options.set_color_output(gif::ColorOutput::Indexed);
        let mut reader = options.read_info(File::open(&path).unwrap()).unwrap();
        assert_eq!([reader.width(), reader.height()].map(u32::from), SIZE);
        assert_eq!(
            reader.global_palette().unwrap(),
            ColourMap::Viridis.steps(256).concat()
        );
        for index in 0..5 {
            let frame = reader.read_next_frame().unwrap().unwrap();
            assert_eq!(frame.delay, 5);
            assert_eq!(frame.buffer, picture(index).unwrap().indices());
        }
        assert!(reader.read_next_frame().unwrap().is_none());
    }

    #[test]
    fn an_apng_holds_the_pictures() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.apng");
        movie(MovieFormat::Apng)
            .write(&path, Overwrite::Refuse, 3, picture)
            .unwrap();
        let file = io::BufReader::new(File::open(&path).unwrap());
        let mut reader = png::Decoder::new(file).read_info().unwrap();
        assert_eq!(reader.info().animation_control.unwrap().num_frames, 3);
        let mut indices = vec![0; reader.output_buffer_size().unwrap()];
        for index in 0..3 {
            reader.next_frame(&mut indices).unwrap();
            assert_eq!(indices, picture(index).unwrap().indices());
        }
    }

    #[test]
    fn ffmpeg_makes_the_others() {
        if !ffmpeg_is_there() {
            eprintln!("skipped: there is no ffmpeg here");
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        for (format, magic) in [
            (MovieFormat::Mp4, &b"ftyp"[..]),
            (MovieFormat::WebM, &b"webm"[..]),
        ] {
            let path = folder.path().join("a").with_extension(format.extension());
            movie(format)
                .write(&path, Overwrite::Refuse, 4, picture)
                .unwrap();
            let bytes = fs::read(&path).unwrap();
            let head = &bytes[..64];
            assert!(head.windows(4).any(|part| part == magic), "{format}");
        }
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
    }

    #[test]
    fn a_picture_that_fails_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        for format in MovieFormat::ALL {
            if format.needs_ffmpeg() && !ffmpeg_is_there() {
                continue;
            }
            let path = folder.path().join("a").with_extension(format.extension());
            let fails = |index| match index {
                2 => Err(MovieError::NoPictures),
                _ => picture(index),
            };
            let error = movie(format).write(&path, Overwrite::Refuse, 4, fails);
            assert!(matches!(error, Err(MovieError::NoPictures)), "{format}");
            let grows = |index| {
                picture(index).map(|shades| Shades {
                    width: shades.width + index as u32,
                    ..shades
                })
            };
            let error = movie(format).write(&path, Overwrite::Refuse, 2, grows);
            assert!(matches!(error, Err(MovieError::Size { index: 1, .. })));
        }
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn impossible_movies_are_refused() {
        let path = Path::new("nowhere/a.gif");
        let none = movie(MovieFormat::Gif).write(path, Overwrite::Refuse, 0, picture);
        assert!(matches!(none, Err(MovieError::NoPictures)));
        for pictures_per_second in [0, 51] {
            let movie = Movie {
                pictures_per_second,
                ..movie(MovieFormat::Gif)
            };
            let error = movie.write(path, Overwrite::Refuse, 1, picture);
            assert!(matches!(error, Err(MovieError::Speed(_))));
        }
        let error = movie(MovieFormat::Gif).write(path, Overwrite::Refuse, 1, picture);
        assert!(matches!(error, Err(MovieError::File { .. })));
    }
}
