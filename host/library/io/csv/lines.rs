//! Input of the CSV parser: lines of a bounded length, with one separator.

use std::cell::Cell;
use std::io::{self, Read};
use std::rc::Rc;

use super::preamble::Preamble;

/// No line of a table of bodies is longer.
pub(super) const LONGEST_LINE: u64 = 1 << 20;

/// A reader that refuses a line of more than [`LONGEST_LINE`] bytes, which the parser would hold
/// in memory with an index of its fields, several times the line's own size.
pub(super) struct Bounded<R> {
    inner: R,
    /// Bytes of the line so far.
    line: u64,
}

impl<R> Bounded<R> {
    pub(super) fn new(inner: R) -> Self {
        Self { inner, line: 0 }
    }
}

impl<R: Read> Read for Bounded<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        for piece in buffer[..read].split_inclusive(|byte| *byte == b'\n') {
            self.line += piece.len() as u64;
            if self.line > LONGEST_LINE {
                let problem = "a line is longer than 1 MiB; this is not a table of bodies";
                return Err(io::Error::new(io::ErrorKind::InvalidData, problem));
            }
            if piece.ends_with(b"\n") {
                self.line = 0;
            }
        }
        Ok(read)
    }
}

/// A reader that looks for the beginning of a second snapshot: behind bodies, a comment that tells a time, or more
/// bodies after two empty lines.
pub(super) struct Snapshots<R> {
    inner: R,
    /// Bytes that have passed.
    passed: u64,
    /// Byte at which the line begins.
    start: u64,
    /// The line so far: all of a comment, else its first byte.
    line: Vec<u8>,
    /// Lines that are neither empty nor comments.
    rows: usize,
    /// Lines of these before the first body.
    heads: usize,
    /// Empty lines since the last that is not.
    empty: usize,
    /// Byte at which a comment with a time begins, behind bodies.
    time: Option<u64>,
    /// Byte at which a second snapshot begins, if there is one.
    second: Rc<Cell<Option<u64>>>,
}

impl<R> Snapshots<R> {
    pub(super) fn new(inner: R, heads: usize, second: &Rc<Cell<Option<u64>>>) -> Self {
        Self {
            inner,
            passed: 0,
            start: 0,
            line: vec![],
            rows: 0,
            heads,
            empty: 0,
            time: None,
            second: Rc::clone(second),
        }
    }

    /// Looks at a piece of a line.
    fn look(&mut self, piece: &[u8]) {
        let is_comment = self.line.first().or(piece.first()) == Some(&b'#');
        match is_comment {
            true => self.line.extend(piece),
            false if self.line.is_empty() => self.line.extend(piece.trim_ascii_start().first()),
            false => {}
        }
        if !piece.ends_with(b"\n") {
            return;
        }
        let line = std::mem::take(&mut self.line);
        let has_bodies = self.rows > self.heads;
        match line.first() {
            None => self.empty += 1,
            Some(b'#') => {
                self.empty = 0;
                let comment = String::from_utf8_lossy(&line);
                if has_bodies && Preamble::tells_time(comment.trim_start_matches('#').trim()) {
                    self.time.get_or_insert(self.start);
                }
            }
            Some(_) => {
                let is_apart = std::mem::take(&mut self.empty) > 1;
                let begins = self.time.or(is_apart.then_some(self.start));
                if has_bodies && self.second.get().is_none() {
                    self.second.set(begins);
                }
                self.rows += 1;
            }
        }
    }
}

impl<R: Read> Read for Snapshots<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        for piece in buffer[..read].split_inclusive(|byte| *byte == b'\n') {
            self.look(piece);
            self.passed += piece.len() as u64;
            if piece.ends_with(b"\n") {
                self.start = self.passed;
            }
        }
        Ok(read)
    }
}

/// A reader that makes a comma of the last blank between two fields; all bytes keep their places.
pub(super) struct Blanks<R> {
    inner: R,
    /// Bytes to be handed out, from `next` on.
    ready: Vec<u8>,
    next: usize,
    /// A blank before a byte that is not known yet.
    held: Option<u8>,
    /// True if the line has had a field.
    in_line: bool,
}

impl<R> Blanks<R> {
    pub(super) fn new(inner: R) -> Self {
        Self {
            inner,
            ready: Vec::new(),
            next: 0,
            held: None,
            in_line: false,
        }
    }

    fn take(&mut self, byte: u8) {
        let is_end = matches!(byte, b'\r' | b'\n');
        if let Some(blank) = self.held.take() {
            let is_between = self.in_line && !is_end && !matches!(byte, b' ' | b'\t');
            self.ready.push(if is_between { b',' } else { blank });
        }
        match byte {
            b' ' | b'\t' => self.held = Some(byte),
            _ => {
                self.ready.push(byte);
                self.in_line = !is_end;
            }
        }
    }
}

impl<R: Read> Read for Blanks<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.next == self.ready.len() {
            self.ready.clear();
            self.next = 0;
            let mut block = [0; 4096];
            while self.ready.is_empty() {
                let read = self.inner.read(&mut block)?;
                if read == 0 {
                    self.ready.extend(self.held.take());
                    break;
                }
                block[..read].iter().for_each(|byte| self.take(*byte));
            }
        }
        let read = (&self.ready[self.next..]).read(buffer)?;
        self.next += read;
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the bytes one by one.
    struct Drop<'a>(&'a [u8]);

    impl Read for Drop<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let one = buffer.len().min(1);
            self.0.read(&mut buffer[..one])
        }
    }

    #[test]
    fn blanks_become_commas_in_their_places() {
        for (text, commas) in [
            ("a b\n", "a,b\n"),
            ("  a   b\t\tc  \n d e", "  a  ,b\t,c  \n d,e"),
            ("a b\r\n\r\n c \r\n", "a,b\r\n\r\n c \r\n"),
            (" ", " "),
            ("", ""),
        ] {
            let mut whole = String::new();
            Blanks::new(text.as_bytes())
                .read_to_string(&mut whole)
                .unwrap();
            assert_eq!(whole, commas);
            let mut dropwise = String::new();
            Blanks::new(Drop(text.as_bytes()))
                .read_to_string(&mut dropwise)
                .unwrap();
            assert_eq!(dropwise, commas);
        }
    }

    #[test]
    fn long_lines_are_refused() {
        let read = |text: &[u8]| io::copy(&mut Bounded::new(text), &mut io::sink());
        let longest = LONGEST_LINE as usize;
        let mut text = vec![b'x'; longest - 1];
        text.push(b'\n');
        text.extend(text.clone());
        assert_eq!(read(&text).unwrap(), 2 * LONGEST_LINE);
        text[longest - 1] = b'x';
        assert!(read(&text).is_err());
    }
}
