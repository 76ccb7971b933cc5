//! Exit codes, after BSD's sysexits.

use std::io;

use allpairs::backend::ForceError;
use allpairs::io::{ReadError, WriteError};
use allpairs::output::movie::MovieError;
use allpairs::output::run_log::LogError;
use allpairs::output::viewer::ViewError;
use allpairs::output::{ChartError, FigureError, PictureError};
use allpairs::recording::RecordingError;
use allpairs::selection::SelectionError;
use allpairs_lab::bench_record::RecordError;

use super::{ChecksFailed, Interrupted, config};

pub(super) const SUCCESS: u8 = 0;
pub(super) const FAILED: u8 = 1;
pub(super) const USAGE: u8 = 2;
pub(super) const DATA: u8 = 65;
pub(super) const UNAVAILABLE: u8 = 69;
pub(super) const IO: u8 = 74;
/// 128 and the number of SIGINT, as shells say it.
pub(super) const INTERRUPTED: u8 = 130;

/// The exit code of a failure.
pub(super) fn of(error: &anyhow::Error) -> u8 {
    if error.is::<ReadError>()
        || error.is::<config::Unreadable>()
        || error.is::<LogError>()
        || error.is::<RecordError>()
    {
        DATA
    } else if error.is::<clap::Error>()
        || matches!(error.downcast_ref(), Some(ForceError::Field(_)))
    {
        USAGE
    } else if error.is::<SelectionError>()
        || error.is::<ForceError>()
        || matches!(
            error.downcast_ref(),
            Some(RecordingError::Force(_) | RecordingError::Stopped(_))
        )
    {
        UNAVAILABLE
    } else if let Some(code) = of_output(error) {
        code
    } else if error.is::<WriteError>() || error.is::<io::Error>() || error.is::<RecordingError>() {
        IO
    } else if error.is::<ChecksFailed>() {
        FAILED
    } else if error.is::<Interrupted>() {
        INTERRUPTED
    } else {
        USAGE
    }
}

/// The exit code of a picture, chart, movie or page that could not be made.
fn of_output(error: &anyhow::Error) -> Option<u8> {
    let picture = |error: &PictureError| match error {
        PictureError::File { .. } => IO,
        PictureError::Bodies(_) => DATA,
        _ => USAGE,
    };
    let chart = |error: &ChartError| match error {
        ChartError::File { .. } | ChartError::Drawing(_) => IO,
        _ => USAGE,
    };
    let figure = |error: &FigureError| match error {
        FigureError::Picture(error) => picture(error),
        FigureError::Chart(error) => chart(error),
        _ => USAGE,
    };
    let movie = |error: &MovieError| match error {
        MovieError::File { .. } | MovieError::Ffmpeg { .. } => IO,
        MovieError::NoFfmpeg(_) => UNAVAILABLE,
        _ => USAGE,
    };
    let view = |error: &ViewError| match error {
        ViewError::File { .. } => IO,
        ViewError::Bodies(_) => DATA,
        _ => USAGE,
    };
    (error.downcast_ref().map(picture))
        .or_else(|| error.downcast_ref().map(chart))
        .or_else(|| error.downcast_ref().map(figure))
        .or_else(|| error.downcast_ref().map(movie))
        .or_else(|| error.downcast_ref().map(view))
}
