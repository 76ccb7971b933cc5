//! The seal of an archive: a comment at its end, with the CRC-32 of all bytes before.
//!
//! The checksums of a zip archive cover the members' contents, not their names, sizes and places.
//! A name that has lost a bit would make an array that may be missing one that is: time 0, or
//! G = 1. Programs that know nothing of the seal see a comment.

use std::io::{self, Read, Seek, SeekFrom, Write};

use crc32fast::Hasher;

/// Beginning of the comment; eight hexadecimal digits follow.
const TITLE: &str = "Allpairs CRC-32 ";
const DIGITS: usize = 8;
const COMMENT: usize = TITLE.len() + DIGITS;

/// The comment to be written; [`Sealing`] puts the digits in.
pub(super) fn comment() -> String {
    format!("{TITLE}{:01$}", 0, DIGITS)
}

fn digits(crc: u32) -> String {
    format!("{crc:08x}")
}

/// A writer that replaces the last eight bytes by the checksum of those before.
pub(super) struct Sealing<W> {
    inner: W,
    crc: Hasher,
    held: Vec<u8>,
    /// True once a write has failed. The archive is lost then, and its writer, which would put its end behind it
    /// and complain by itself, is told nothing more.
    has_failed: bool,
}

impl<W: Write> Sealing<W> {
    pub(super) fn new(inner: W) -> Self {
        Self {
            inner,
            crc: Hasher::new(),
            held: Vec::new(),
            has_failed: false,
        }
    }

    /// Writes the digits in the place of the last bytes.
    pub(super) fn finish(mut self) -> io::Result<()> {
        if self.has_failed {
            return Err(io::Error::other(
                "a part of the archive could not be written",
            ));
        }
        let digits = digits(self.crc.clone().finalize());
        self.inner.write_all(digits.as_bytes())?;
        self.inner.flush()
    }
}

impl<W: Write> Write for Sealing<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.has_failed {
            return Ok(bytes.len());
        }
        self.held.extend_from_slice(bytes);
        let settled = self.held.len().saturating_sub(DIGITS);
        if let Err(fault) = self.inner.write_all(&self.held[..settled]) {
            self.has_failed = true;
            return Err(fault);
        }
        self.crc.update(&self.held[..settled]);
        self.held.drain(..settled);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        match self.has_failed {
            true => Ok(()),
            false => self.inner.flush(),
        }
    }
}

/// Seal found at the end of an archive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Seal {
    /// There is none.
    Absent,
    /// All bytes are those that were written.
    Sound,
    /// Some are not.
    Broken,
}

/// Compares the seal of an archive of `size` bytes with its content.
pub(super) fn check(reader: &mut (impl Read + Seek), size: u64) -> io::Result<Seal> {
    let Some(start) = size.checked_sub(COMMENT as u64) else {
        return Ok(Seal::Absent);
    };
    reader.seek(SeekFrom::Start(start))?;
    let mut comment = [0; COMMENT];
    reader.read_exact(&mut comment)?;
    if !comment.starts_with(TITLE.as_bytes()) {
        return Ok(Seal::Absent);
    }
    reader.rewind()?;
    let mut crc = Hasher::new();
    let mut left = size - DIGITS as u64;
    let mut buffer = vec![0; 1 << 16];
    while left > 0 {
        let block = &mut buffer[..left.min(1 << 16) as usize];
        reader.read_exact(block)?;
        crc.update(block);
        left -= block.len() as u64;
    }
    reader.rewind()?;
    let is_sound = comment[TITLE.len()..] == *digits(crc.finalize()).as_bytes();
    Ok(if is_sound { Seal::Sound } else { Seal::Broken })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_flipped_bit_breaks_the_seal_or_removes_it() {
        let mut file = Vec::new();
        let mut sealing = Sealing::new(&mut file);
        for piece in ["some ", "", "content", &comment()] {
            sealing.write_all(piece.as_bytes()).unwrap();
        }
        sealing.finish().unwrap();
        assert_eq!(file.len(), 12 + COMMENT);
        let seal = |bytes: &[u8]| check(&mut io::Cursor::new(bytes), bytes.len() as u64).unwrap();
        assert_eq!(seal(&file), Seal::Sound);
        for bit in 0..8 * file.len() {
            let mut changed = file.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            let title = 12..12 + TITLE.len();
            let expected = match title.contains(&(bit / 8)) {
                true => Seal::Absent,
                false => Seal::Broken,
            };
            assert_eq!(seal(&changed), expected, "bit {bit}");
        }
        assert_eq!(seal(&file[..3]), Seal::Absent);
    }

    /// Room for some bytes, as on a disk that fills up.
    struct Disk(usize);

    impl Write for Disk {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 = match self.0.checked_sub(bytes.len()) {
                Some(left) => left,
                None => return Err(io::ErrorKind::StorageFull.into()),
            };
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn after_a_failed_write_the_archive_is_left_alone() {
        let mut sealing = Sealing::new(Disk(20));
        sealing.write_all(&[0; 20]).unwrap();
        let fault = sealing.write_all(&[0; 20]).unwrap_err();
        assert_eq!(fault.kind(), io::ErrorKind::StorageFull);
        sealing.write_all(&[0; 20]).unwrap();
        sealing.flush().unwrap();
        assert!(sealing.finish().is_err());
    }
}
