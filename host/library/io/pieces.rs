//! Snapshots that are spread over several files: `snap.0`, `snap.1`, … or `snap.0.hdf5`, `snap.1.hdf5`, ….

use std::fs::File;
use std::path::{Path, PathBuf};

use super::column::Malformed;
use super::{Contents, ReadFault, open};
use crate::bodies::BodyKind;

/// The part of a snapshot that one file holds, and the whole that it tells of.
pub(super) struct Piece {
    /// Number of files.
    pub(super) files: u32,
    /// Bodies of each type in all files; none, or zeros, where it is not told.
    pub(super) totals: Vec<u64>,
    /// Bodies of each type in this file.
    pub(super) counts: Vec<u64>,
    /// Without bodies, if the file has none.
    pub(super) contents: Contents,
}

fn malformed(problem: String) -> ReadFault {
    Malformed::new("the header", problem).into()
}

/// The snapshot of which `first` is a piece, in the file at `path` if it is a file. Reads the others.
pub(super) fn join(
    first: Piece,
    path: Option<&Path>,
    read: impl Fn(File, u64) -> Result<Piece, ReadFault>,
) -> Result<Contents, ReadFault> {
    let files = first.files;
    if files <= 1 {
        return whole(vec![first]);
    }
    let Some((number, name)) = path.and_then(|path| numbered(path, files)) else {
        return Err(malformed(format!(
            "the snapshot is spread over {files} files, and the name of this one does not have its number: put all \
             of them into a folder, as NAME.0 to NAME.{} or NAME.0.hdf5 to NAME.{}.hdf5",
            files - 1,
            files - 1
        )));
    };
    let (mut pieces, mut this) = (vec![], Some(first));
    for index in 0..files {
        pieces.push(match this.take_if(|_| index == number) {
            Some(piece) => piece,
            None => {
                let path = name(index);
                let other = open(&path).and_then(|(file, size)| read(file, size));
                other.map_err(|fault| {
                    let place = format!("`{}`, which belongs to it", path.display());
                    Malformed::new(place, fault.to_string())
                })?
            }
        });
    }
    whole(pieces)
}

/// The number of a file in its name, and the names of the others.
fn numbered(path: &Path, files: u32) -> Option<(u32, impl Fn(u32) -> PathBuf)> {
    let parts: Vec<String> = path
        .file_name()?
        .to_str()?
        .split('.')
        .map(str::to_owned)
        .collect();
    let number = |at: usize| parts.get(at)?.parse::<u32>().ok();
    let last = parts.len().checked_sub(1)?;
    let at = [last, last.saturating_sub(1)]
        .into_iter()
        .find(|at| *at > 0 && number(*at).is_some_and(|number| number < files))?;
    let (number, path) = (number(at)?, path.to_owned());
    let name = move |index: u32| {
        let mut parts = parts.clone();
        parts[at] = index.to_string();
        path.with_file_name(parts.join("."))
    };
    Some((number, name))
}

/// The snapshot of these files.
fn whole(pieces: Vec<Piece>) -> Result<Contents, ReadFault> {
    let mut pieces = pieces.into_iter();
    let Piece {
        files,
        totals,
        mut counts,
        mut contents,
    } = pieces.next().ok_or(ReadFault::NoBodies)?;
    let bodies = &mut contents.snapshot.bodies;
    for (index, piece) in (1..).zip(pieces) {
        let other = piece.contents;
        let tells = (piece.files, &piece.totals, other.snapshot.time, other.units);
        if tells != (files, &totals, contents.snapshot.time, contents.units) {
            let problem =
                format!("file {index} is of another snapshot than file 0: their headers differ");
            return Err(malformed(problem));
        }
        for (count, here) in counts.iter_mut().zip(piece.counts) {
            *count += here;
        }
        let more = other.snapshot.bodies;
        let all = bodies.len() + more.len();
        let room = bodies.try_reserve(more.len());
        room.map_err(|_| ReadFault::OutOfMemory { bodies: all })?;
        more.iter().for_each(|body| bodies.push(body));
        contents.notes.extend(other.notes);
    }
    // All zero is what programs leave there that write one file.
    if totals.iter().any(|total| *total != 0) && totals != counts {
        let problem = format!(
            "it counts {totals:?} bodies of the types in all, and there are {counts:?}: files are missing, or it is \
             damaged"
        );
        return Err(malformed(problem));
    }
    if bodies.is_empty() {
        return Err(ReadFault::NoBodies);
    }
    bodies.check()?;
    let gas = bodies
        .kind
        .iter()
        .filter(|kind| **kind == BodyKind::Gas)
        .count();
    let notes = &mut contents.notes;
    if gas > 0 {
        notes.push(format!(
            "{gas} bodies are gas, which is moved by gravity alone here"
        ));
    }
    if files > 1 {
        notes.sort();
        notes.dedup();
    }
    Ok(contents)
}
