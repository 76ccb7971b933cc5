//! Pictures, movies, pages and charts of bodies, runs and benchmarks.

pub mod chart;
mod colour_map;
pub mod density;
pub mod figure;
mod framing;
mod image;
pub mod movie;
mod run_charts;
pub mod run_log;
mod smoothing;
mod terminal;
mod timeline;
pub mod viewer;

pub use chart::{Chart, ChartError};
pub use colour_map::{ColourMap, UnknownColourMap};
pub use density::{DensityPicture, PictureError, Projection, Weight};
pub use figure::{Figure, FigureError};
pub use framing::{Section, Subset};
pub use image::{Image, Shades};
pub use run_charts::{NamedChart, PathOfBody, orbit_chart, run_charts};
pub use run_log::RunLog;
pub use terminal::TerminalColours;
pub use timeline::timeline_chart;
pub use viewer::Viewer;

/// A word that names none of the choices there are.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("must be one of {choices}, got `{word}`")]
pub struct UnknownChoice {
    word: String,
    choices: &'static str,
}

impl UnknownChoice {
    fn new(word: &str, choices: &'static str) -> Self {
        Self {
            word: word.to_owned(),
            choices,
        }
    }
}
