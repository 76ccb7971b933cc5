//! How a command ends: its exit code, after BSD's sysexits, and its message.

use std::fmt::Display;
use std::io::{self, Write};

use allpairs::backend::ForceError;
use allpairs::io::{ReadError, WriteError};
use allpairs::output::movie::MovieError;
use allpairs::output::run_log::LogError;
use allpairs::output::viewer::ViewError;
use allpairs::output::{ChartError, FigureError, PictureError};
use allpairs::plan::PlanError;
use allpairs::recording::RecordingError;
use allpairs::refusals::Refusals;
use allpairs::run::BuildError;
use allpairs::selection::{Ineligible, SelectionError};
use allpairs_lab::bench_record::RecordError;

use crate::config;
use crate::flags;
use crate::say;

pub(super) const SUCCESS: u8 = 0;
pub(super) const FAILED: u8 = 1;
pub(super) const USAGE: u8 = 2;
pub(super) const DATA: u8 = 65;
pub(super) const UNAVAILABLE: u8 = 69;
pub(super) const IO: u8 = 74;
/// 128 and the number of SIGINT, as shells say it.
pub(super) const INTERRUPTED: u8 = 130;

/// A failed check, which has been reported: only the exit code is left to give.
#[derive(Debug, thiserror::Error)]
#[error("the checks failed")]
pub(super) struct ChecksFailed;

/// Interrupted by Ctrl-C before the end; outputs have been written.
#[derive(Debug, thiserror::Error)]
#[error("interrupted")]
pub(super) struct Interrupted;

/// Reports failures; an error if there are any.
pub(super) fn report_failures(
    failures: &[impl Display],
    out: &mut impl Write,
) -> anyhow::Result<()> {
    for failure in failures {
        writeln!(out, "FAILED {failure}")?;
    }
    if failures.is_empty() {
        Ok(())
    } else {
        Err(ChecksFailed.into())
    }
}

/// Prints why a command failed, as `rank` of a run of several, and returns the exit code.
pub(super) fn report(error: &anyhow::Error, rank: Option<&str>) -> u8 {
    let code = code_of(error);
    if let (USAGE, Some(clap)) = (code, error.downcast_ref::<clap::Error>()) {
        let place = error.to_string();
        if place != clap.to_string() {
            say::tell(format_args!("{place}:")); // such as a file that has the option
        }
        let _ = clap.print(); // in colour, with suggestions
        return code;
    }
    // Which machine's disk is full, or has no such file.
    let of_files = matches!(code, IO | DATA);
    let message = flags::message(error);
    match rank.filter(|_| of_files) {
        Some(rank) => say::tell(format_args!("{rank}: {message}")),
        None => say::tell(format_args!("{message}")),
    }
    code
}

/// The exit code of a failure.
fn code_of(error: &anyhow::Error) -> u8 {
    if error.is::<ReadError>()
        || error.is::<config::Unreadable>()
        || error.is::<LogError>()
        || error.is::<RecordError>()
    {
        DATA
    } else if error.is::<clap::Error>()
        || is_refusal(error)
        || matches!(error.downcast_ref(), Some(ForceError::Field(_)))
        || matches!(
            error.downcast_ref(),
            Some(BuildError::Force(ForceError::Field(_)) | BuildError::Plan(PlanError::Systems(_)))
        )
    {
        USAGE
    } else if error.is::<SelectionError>()
        || matches!(
            error.downcast_ref(),
            Some(BuildError::Selection(_) | BuildError::Plan(_) | BuildError::Force(_))
        )
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

/// Returns whether settings do not go together.
fn is_refusal(error: &anyhow::Error) -> bool {
    let by_force = |error: &ForceError| matches!(error, ForceError::Refused(_));
    let by_selection = |error: &SelectionError| {
        matches!(
            error,
            SelectionError::Refused(_) | SelectionError::Ineligible(Ineligible::Refused(_))
        )
    };
    let by_run = |error: &BuildError| match error {
        BuildError::Selection(error) => by_selection(error),
        BuildError::Force(error) => by_force(error),
        _ => false,
    };
    error.is::<Refusals>()
        || matches!(error.downcast_ref(), Some(Ineligible::Refused(_)))
        || error.downcast_ref().is_some_and(by_force)
        || error.downcast_ref().is_some_and(by_selection)
        || error.downcast_ref().is_some_and(by_run)
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
