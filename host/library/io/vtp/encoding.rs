//! The encodings of VTK's arrays, each as a reader of plain numbers.

use std::io::{self, BufRead, Read};

use flate2::read::ZlibDecoder;

use super::super::column::{Class, Numbers};

fn invalid(problem: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, problem)
}

/// A reader of what base64 stands for: groups of four characters, blanks between them, and padding
/// at the end of each part (VTK encodes an array's header and its data one after the other).
pub(super) struct Base64<R> {
    inner: R,
    /// Bytes of a group, of which those from `next` on are to be handed out.
    group: [u8; 3],
    next: usize,
    end: usize,
}

impl<R: BufRead> Base64<R> {
    pub(super) fn new(inner: R) -> Self {
        Self {
            inner,
            group: [0; 3],
            next: 0,
            end: 0,
        }
    }

    /// The next character that is not blank; `None` at the end of the text.
    fn character(&mut self) -> io::Result<Option<u8>> {
        loop {
            let Some(byte) = self.inner.fill_buf()?.first().copied() else {
                return Ok(None);
            };
            if byte == b'<' {
                return Ok(None);
            }
            self.inner.consume(1);
            if !byte.is_ascii_whitespace() {
                return Ok(Some(byte));
            }
        }
    }

    fn decode_group(&mut self) -> io::Result<()> {
        let (mut bits, mut digits, mut padding) = (0_u32, 0, 0);
        while digits + padding < 4 {
            let value = match self.character()? {
                None if digits == 0 => return Ok(()),
                None => return Err(invalid("its base64 text is cut short")),
                Some(b'=') if digits >= 2 => {
                    padding += 1;
                    continue;
                }
                Some(byte) if padding == 0 => match byte {
                    b'A'..=b'Z' => byte - b'A',
                    b'a'..=b'z' => byte - b'a' + 26,
                    b'0'..=b'9' => byte - b'0' + 52,
                    b'+' => 62,
                    b'/' => 63,
                    _ => return Err(invalid("its text is not base64")),
                },
                Some(_) => return Err(invalid("its text is not base64")),
            };
            bits = bits << 6 | u32::from(value);
            digits += 1;
        }
        let [_, bytes @ ..] = (bits << (6 * padding)).to_be_bytes();
        (self.group, self.next, self.end) = (bytes, 0, 3 - padding);
        Ok(())
    }
}

impl<R: BufRead> Read for Base64<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut read = 0;
        while read < buffer.len() {
            if self.next == self.end {
                self.decode_group()?;
                if self.next == self.end {
                    break;
                }
            }
            buffer[read] = self.group[self.next];
            self.next += 1;
            read += 1;
        }
        Ok(read)
    }
}

/// A reader of blocks that are compressed by zlib, one after the other.
pub(super) struct Blocks<R> {
    inner: R,
    /// Compressed and plain sizes of the blocks to come, the next one last.
    sizes: Vec<(u64, u64)>,
    block: io::Cursor<Vec<u8>>,
}

impl<R: Read> Blocks<R> {
    /// Reads the sizes of the blocks of `bytes` bytes: `number` takes the numbers of the header
    /// from the reader. A file of `size` bytes holds no more than so many.
    pub(super) fn new(
        mut inner: R,
        mut number: impl FnMut(&mut R) -> io::Result<u64>,
        bytes: u64,
        size: u64,
    ) -> io::Result<Self> {
        /// VTK's own blocks have 32 kB.
        const LARGEST: u64 = 16 << 20;
        let damaged = || invalid("its list of compressed blocks does not suit its size");
        let (count, plain, last) = (
            number(&mut inner)?,
            number(&mut inner)?,
            number(&mut inner)?,
        );
        let whole = if last == 0 {
            count
        } else {
            count.saturating_sub(1)
        };
        let total = whole
            .checked_mul(plain)
            .and_then(|bytes| bytes.checked_add(last));
        if total != Some(bytes) || plain > LARGEST || last > plain || count > size {
            return Err(damaged());
        }
        let mut sizes = Vec::new();
        let mut stored = 0_u64;
        for index in 0..count {
            let compressed = number(&mut inner)?;
            stored = stored.saturating_add(compressed);
            if stored > size {
                return Err(damaged());
            }
            sizes.push((compressed, if index < whole { plain } else { last }));
        }
        sizes.reverse();
        Ok(Self {
            inner,
            sizes,
            block: io::Cursor::default(),
        })
    }
}

impl<R: Read> Read for Blocks<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let read = self.block.read(buffer)?;
            if read > 0 || buffer.is_empty() {
                return Ok(read);
            }
            let Some((compressed, plain)) = self.sizes.pop() else {
                return Ok(0);
            };
            let mut stored = Vec::new();
            self.inner
                .by_ref()
                .take(compressed)
                .read_to_end(&mut stored)?;
            let block = self.block.get_mut();
            block.clear();
            // The checksum is compared at the end of the stream, beyond the last byte.
            ZlibDecoder::new(&stored[..])
                .take(plain + 1)
                .read_to_end(block)?;
            if block.len() as u64 != plain {
                return Err(invalid("a compressed block is damaged"));
            }
            self.block.set_position(0);
        }
    }
}

/// A reader of numbers in text, as little-endian numbers of eight bytes.
pub(super) struct Ascii<R> {
    inner: R,
    class: Class,
    number: io::Cursor<Vec<u8>>,
}

impl<R: BufRead> Ascii<R> {
    pub(super) fn new(inner: R, class: Class) -> Self {
        Self {
            inner,
            class,
            number: io::Cursor::default(),
        }
    }

    /// Type of the numbers in its bytes.
    pub(super) fn numbers(&self) -> Numbers {
        Numbers {
            class: self.class,
            bytes: 8,
            big_endian: false,
        }
    }

    fn word(&mut self) -> io::Result<String> {
        /// No number is longer.
        const LONGEST: usize = 400;
        let mut word = String::new();
        while let Some(&byte) = self.inner.fill_buf()?.first() {
            if byte == b'<' {
                break;
            }
            self.inner.consume(1);
            match (byte.is_ascii_whitespace(), word.is_empty()) {
                (true, true) => {}
                (true, false) => break,
                (false, _) => word.push(char::from(byte)),
            }
            if word.len() > LONGEST {
                return Err(invalid("its text is not a list of numbers"));
            }
        }
        Ok(word)
    }
}

impl<R: BufRead> Read for Ascii<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.number.read(buffer)?;
        if read > 0 || buffer.is_empty() {
            return Ok(read);
        }
        let word = self.word()?;
        if word.is_empty() {
            return Ok(0);
        }
        let bytes = match self.class {
            Class::Real => word.parse().ok().map(f64::to_le_bytes),
            Class::Signed => word.parse().ok().map(i64::to_le_bytes),
            Class::Unsigned => word.parse().ok().map(u64::to_le_bytes),
        };
        let bytes = bytes.ok_or_else(|| invalid(&format!("`{word}` in it is not a number")))?;
        self.number = io::Cursor::new(bytes.to_vec());
        self.number.read(buffer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_comes_in_parts() {
        let decode = |text: &str| {
            let mut bytes = Vec::new();
            let outcome = Base64::new(text.as_bytes()).read_to_end(&mut bytes);
            outcome.map(|_| bytes).map_err(|fault| fault.to_string())
        };
        assert_eq!(decode("SGVsbG8=").unwrap(), b"Hello");
        assert_eq!(
            decode("\n SGVs\nbG8=V29y bGQh</DataArray>").unwrap(),
            b"HelloWorld!"
        );
        assert_eq!(decode("+/8A").unwrap(), [0xfb, 0xff, 0]);
        assert_eq!(decode("QQ==Qg==").unwrap(), b"AB");
        assert_eq!(decode("").unwrap(), b"");
        for bad in ["SGV", "SG=s", "S===", "SG-s"] {
            assert!(decode(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn text_becomes_numbers() {
        let read = |text: &str, class| {
            let mut bytes = Vec::new();
            Ascii::new(text.as_bytes(), class)
                .read_to_end(&mut bytes)
                .map(|_| bytes.as_chunks::<8>().0.to_vec())
        };
        let reals = read(" 1.5\n-2e-3<", Class::Real).unwrap();
        assert_eq!(reals, [1.5_f64.to_le_bytes(), (-2e-3_f64).to_le_bytes()]);
        let ids = read("18446744073709551615 7", Class::Unsigned).unwrap();
        assert_eq!(ids, [u64::MAX.to_le_bytes(), 7_u64.to_le_bytes()]);
        assert!(read("1 x", Class::Signed).is_err());
        assert!(read("-1", Class::Unsigned).is_err());
        assert!(read(&"1".repeat(9000), Class::Real).is_err());
    }
}
