//! The format of a file, by its first bytes.
//!
//! A name such as `dat.10` or `x.bin` says nothing that its content would not say better. It is asked
//! for two things only: whether text is VTK's, and which reader is to explain what is wrong with a
//! file that no format fits. Content that is known and not read is called by its own name.

use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

use super::{Format, ReadFault, TipsyDialect, gadget, nemo, petar, rebound, tipsy};

/// Bytes that are looked at.
const START: u64 = 1024;

/// Content that is known and not read: its first bytes, its name, and what makes it readable.
const FOREIGN: [(&[&[u8]], &str, &str); 27] = [
    (
        &[b"ALLPAIRS-RESUME"],
        "a checkpoint of Allpairs",
        "give its folder to `allpairs resume`, or name a snapshot of the run",
    ),
    (
        &[b"SIMPLE  =", b"XTENSION="],
        "a FITS file",
        "in Python: astropy.table.Table.read(file).write('bodies.ecsv')",
    ),
    (
        &[b"\x1f\x8b"],
        "compressed by gzip",
        "unpack it with gunzip",
    ),
    (&[b"BZh"], "compressed by bzip2", "unpack it with bunzip2"),
    (&[b"\xfd7zXZ\0"], "compressed by xz", "unpack it with unxz"),
    (
        &[b"\x28\xb5\x2f\xfd"],
        "compressed by Zstandard",
        "unpack it with unzstd",
    ),
    (
        &[b"\x04\x22\x4d\x18"],
        "compressed by LZ4",
        "unpack it with unlz4",
    ),
    (&[b"7z\xbc\xaf\x27\x1c"], "an archive of 7-Zip", "unpack it"),
    (
        &[b"\x80\x02", b"\x80\x03", b"\x80\x04", b"\x80\x05"],
        "a pickle of Python",
        SAVEZ,
    ),
    // Without a number of their protocol: dictionaries, lists, arrays.
    (
        &[
            b"}q\0",
            b"]q\0",
            b"(dp",
            b"(lp",
            b"cnumpy",
            b"ccopy_reg\n",
            b"c__builtin__\n",
        ],
        "a pickle of Python",
        SAVEZ,
    ),
    (
        &[b"\x1f\x9d"],
        "compressed by compress",
        "unpack it with uncompress",
    ),
    (&[b"\x0e\x03\x13\x01"], "an HDF4 file", SAVEZ),
    (&[b"FEA1"], "a Feather file", SAVEZ),
    (&[b"MATLAB 5.0", b"MATLAB 7.3"], "a MATLAB file", SAVEZ),
    (&[b"PAR1"], "a Parquet file", SAVEZ),
    (&[b"ARROW1"], "an Arrow file", SAVEZ),
    (
        &[b"CDF\x01", b"CDF\x02", b"CDF\x05"],
        "a NetCDF file",
        SAVEZ,
    ),
    (&[b"SQLite format 3"], "a SQLite database", SAVEZ),
    (&[b"#ASDF"], "an ASDF file", SAVEZ),
    (
        &[b"\x89PNG", b"GIF8", b"\xff\xd8\xff"],
        "a picture",
        NOT_BODIES,
    ),
    (&[b"%PDF"], "a PDF", NOT_BODIES),
    (&[b"\x7fELF"], "a program", NOT_BODIES),
    (
        &[b"# vtk DataFile"],
        "a VTK file of the old kind",
        "write it as VTK XML PolyData (.vtp), in ParaView by Save Data",
    ),
    (
        &[b"(Particle"],
        "a snapshot of Starlab",
        "write it as a table: m x y z vx vy vz, a body in each line",
    ),
    (
        &[b"version https://git-lfs"],
        "a pointer of Git LFS, which stands for the file",
        "fetch the file itself with git lfs pull",
    ),
    (&[b"\xff\xfe", b"\xfe\xff"], "text in UTF-16", UTF_8),
    (&[b"Rar!"], "an archive of RAR", "unpack it"),
];

const SAVEZ: &str = "in Python: numpy.savez('bodies.npz', mass=m, position=x, velocity=v), with x and v of shape [N, 3]";
const UTF_8: &str = "save it as UTF-8: iconv -f UTF-16 -t UTF-8";
const NOT_BODIES: &str = "name a file of bodies";

/// Content of a file, by its first bytes.
enum Content {
    Snapshot(Format),
    /// A name, and advice.
    Foreign(&'static str, &'static str),
    Text,
    Unknown,
}

/// The format of a file of `size` bytes. The reader stands at its beginning, before and after.
pub(super) fn format_of(
    reader: &mut (impl Read + Seek),
    size: u64,
    name: &Path,
) -> Result<Format, ReadFault> {
    let mut start = vec![];
    reader.by_ref().take(START).read_to_end(&mut start)?;
    let content = match content(&start, size) {
        Content::Unknown if petar::is_header(&start, size) => Content::Snapshot(Format::Petar),
        Content::Unknown if is_petars(&start, size) => Content::Foreign(
            "a snapshot of PeTar in a binary format with other numbers of a body than are known here",
            "write it as text: petar.format.transfer -b",
        ),
        Content::Unknown if has_user_block(reader, size)? => Content::Foreign(
            "HDF5 with a block of a user's before it",
            "take it out with h5unjam -i FILE -o NEW",
        ),
        Content::Unknown if start.iter().all(|byte| *byte == 0) => Content::Foreign(
            "a file that begins with zeros alone",
            "its content was never written, or is damaged: write or copy it again",
        ),
        Content::Unknown if are_numbers(&start, size) => Content::Foreign(
            "an array of numbers without a header, as numpy.tofile and Fortran's streams are",
            "in Python: numpy.fromfile(file) reads it; numpy.savez('bodies.npz', mass=m, position=x, velocity=v) is read \
             here",
        ),
        Content::Unknown if has_records(reader, &start, size)? => Content::Foreign(
            "a file of Fortran's unformatted records, as NBODY6's OUT3 or conf.3 and Phantom's dumps are",
            "write a table with the program that made it: m x y z vx vy vz, a body in each line",
        ),
        content => content,
    };
    reader.rewind()?;
    let named = Format::to_read(name);
    match content {
        Content::Snapshot(format) => Ok(format),
        Content::Foreign(what, advice) => Err(ReadFault::Foreign { what, advice }),
        Content::Text if named == Some(Format::Vtp) => Ok(Format::Vtp),
        Content::Text => Ok(Format::Csv),
        Content::Unknown => named.ok_or(ReadFault::UnknownFormat),
    }
}

/// Refuses the beginning of a stream, of many bytes, if it is known that no snapshot begins so.
pub(super) fn check_beginning(bytes: &[u8]) -> Result<(), ReadFault> {
    if bytes.iter().all(|byte| *byte == 0) {
        return Err(ReadFault::UnknownFormat);
    }
    let start = &bytes[..bytes.len().min(START as usize)];
    match content(start, u64::MAX) {
        Content::Foreign(what, advice) => Err(ReadFault::Foreign { what, advice }),
        #[cfg(feature = "csv")]
        Content::Text => super::csv::read_units(&mut std::io::Cursor::new(bytes)).map(drop),
        _ => Ok(()),
    }
}

fn content(start: &[u8], size: u64) -> Content {
    if start.starts_with(b"ALLPAIRS\x01\0\0\0") {
        return Content::Snapshot(Format::Allpairs);
    }
    if start.starts_with(HDF5) {
        return Content::Snapshot(Format::Hdf5);
    }
    if start.starts_with(b"\x93NUMPY") || start.starts_with(b"PK\x03\x04") {
        return of_archive(start);
    }
    if gadget::is_header(start) {
        return Content::Snapshot(Format::Gadget);
    }
    if nemo::is_header(start) {
        return Content::Snapshot(Format::Nemo);
    }
    if rebound::is_header(start) {
        return Content::Snapshot(Format::Rebound);
    }
    if tipsy::is_header(start, size) {
        // The reader finds the dialect.
        return Content::Snapshot(Format::Tipsy(TipsyDialect::Standard));
    }
    if start.get(257..262) == Some(b"ustar") {
        return Content::Foreign("an archive of tar", "unpack it with tar -xf");
    }
    // After Tipsy: its first bytes are any number.
    let is_its =
        |(magics, ..): &&(&[&[u8]], _, _)| magics.iter().any(|magic| start.starts_with(magic));
    match FOREIGN.iter().find(is_its) {
        Some((_, what, advice)) => Content::Foreign(what, advice),
        None => of_text(start),
    }
}

/// An archive of arrays, or what else is kept in zip archives.
fn of_archive(start: &[u8]) -> Content {
    const NAME: usize = 30;
    let first = start.get(NAME..).unwrap_or_default();
    let is_office = [&b"[Content_Types]"[..], b"_rels/", b"mimetype"]
        .iter()
        .any(|name| first.starts_with(name));
    match is_office {
        true => Content::Foreign("a spreadsheet", "save it as CSV"),
        false => Content::Snapshot(Format::Npz),
    }
}

fn of_text(start: &[u8]) -> Content {
    let text = start.trim_ascii_start();
    let begins = |with: &[u8]| {
        let beginning = text.get(..with.len());
        beginning.is_some_and(|beginning| beginning.eq_ignore_ascii_case(with))
    };
    let has = |word: &[u8]| text.windows(word.len()).any(|window| window == word);
    if begins(b"<?xml") || begins(b"<VTKFile") || begins(b"<VOTABLE") {
        return match () {
            () if has(b"<VOTABLE") => Content::Foreign(
                "a VOTable",
                "in Python: astropy.table.Table.read(file).write('bodies.ecsv')",
            ),
            () if has(b"<VTKFile") => Content::Snapshot(Format::Vtp),
            // A comment may be as long.
            () => Content::Text,
        };
    }
    if begins(b"<!DOCTYPE html") || begins(b"<html") {
        let advice = "this is what a server sends in the place of a file: download it again";
        return Content::Foreign("a web page", advice);
    }
    let is_control = |byte: &u8| byte.is_ascii_control() && !b"\t\n\r\x0c".contains(byte);
    // A letter may be cut at the end of what is looked at.
    let is_text =
        |start| str::from_utf8(start).map_or_else(|fault| fault.error_len().is_none(), |_| true);
    match start.is_empty() || start.iter().any(is_control) || !is_text(start) {
        true if is_utf_16(start) => Content::Foreign("text in UTF-16", UTF_8),
        true => Content::Unknown,
        false if begins(b"{") || begins(b"[") => Content::Foreign("JSON", SAVEZ),
        false => Content::Text,
    }
}

/// Returns whether the file has PeTar's head, i64 number of the file, i64 N, f64 time, and perhaps six f64 more,
/// and as many numbers of eight bytes for each body as PeTar writes.
fn is_petars(start: &[u8], size: u64) -> bool {
    const HEADS: [u64; 2] = [24, 72];
    const BODY: std::ops::Range<u64> = 7 * 8..64 * 8;
    let Some(([file, bodies, time], _)) = start.as_chunks::<8>().0.split_first_chunk() else {
        return false;
    };
    let (file, bodies) = (i64::from_le_bytes(*file), u64::from_le_bytes(*bodies));
    let has_bodies = |head: u64| {
        let of_body = size.checked_sub(head)?.checked_div(bodies)?;
        let is_all = of_body.checked_mul(bodies)?.checked_add(head)? == size;
        Some(is_all && of_body % 8 == 0 && BODY.contains(&of_body))
    };
    (0..1 << 32).contains(&file)
        && f64::from_le_bytes(*time).is_finite()
        && HEADS.into_iter().any(|head| has_bodies(head) == Some(true))
}

/// Returns whether the file begins with a record of Fortran's: its length stands before and after it, in 4 bytes or 8.
fn has_records(
    reader: &mut (impl Read + Seek),
    start: &[u8],
    size: u64,
) -> Result<bool, ReadFault> {
    for width in [4, 8] {
        let Some(before) = start.get(..width) else {
            continue;
        };
        let number = |bytes: &mut dyn Iterator<Item = &u8>| {
            bytes.fold(0, |number, byte| number << 8 | u64::from(*byte))
        };
        for length in [number(&mut before.iter().rev()), number(&mut before.iter())] {
            let after = length.saturating_add(width as u64);
            if length > 0 && after.saturating_add(width as u64) <= size {
                reader.seek(SeekFrom::Start(after))?;
                let mut found = vec![0; width];
                reader.read_exact(&mut found)?;
                if found == before {
                    return Ok(true);
                }
            }
        }
    }
    Ok(false)
}

/// Returns whether the signature of HDF5 stands where it may behind a user's block: at 512 bytes, or twice as many, and so on.
fn has_user_block(reader: &mut (impl Read + Seek), size: u64) -> Result<bool, ReadFault> {
    let mut at = 512;
    while at + HDF5.len() as u64 <= size {
        reader.seek(SeekFrom::Start(at))?;
        let mut found = [0; HDF5.len()];
        reader.read_exact(&mut found)?;
        if found == *HDF5 {
            return Ok(true);
        }
        at *= 2;
    }
    Ok(false)
}

const HDF5: &[u8; 8] = b"\x89HDF\r\n\x1a\n";

/// Returns whether all of a file seems to be numbers, in f64 or in f32, of sizes that people have.
fn are_numbers(start: &[u8], size: u64) -> bool {
    /// Fewer may be numbers by chance.
    const ENOUGH: usize = 64;
    let is_usual = |number: f64| number == 0.0 || (1e-30..1e30).contains(&number.abs());
    let (wide, narrow) = (start.as_chunks::<8>().0, start.as_chunks::<4>().0);
    let are_wide = wide
        .iter()
        .all(|bytes| is_usual(f64::from_le_bytes(*bytes)));
    let are_narrow = narrow
        .iter()
        .all(|bytes| is_usual(f32::from_le_bytes(*bytes).into()));
    // One number again and again is no array of anything.
    let differ = narrow.windows(2).any(|pair| pair[0] != pair[1]);
    start.len() >= ENOUGH
        && differ
        && ((size.is_multiple_of(8) && are_wide) || (size.is_multiple_of(4) && are_narrow))
}

/// Returns whether every other byte is zero, and the others are text.
fn is_utf_16(start: &[u8]) -> bool {
    let pairs = start.as_chunks::<2>().0;
    let is_text = |byte: u8| byte.is_ascii_graphic() || byte.is_ascii_whitespace();
    let all = |of: fn(&[u8; 2]) -> [u8; 2]| {
        pairs
            .iter()
            .map(of)
            .all(|[text, zero]| zero == 0 && is_text(text))
    };
    !pairs.is_empty() && (all(|pair| *pair) || all(|[zero, text]| [*text, *zero]))
}
