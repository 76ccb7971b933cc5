//! Columns of vectors in ECSV: cells such as `"[1.0,2.0,3.0]"`, which become one field for each number.

use std::io::{self, BufRead, BufReader, Read};
use std::ops::Range;

use super::CsvFault;
use super::names::places;

/// A column that has vectors as cells.
#[derive(Debug)]
pub(super) struct Vector {
    name: String,
    /// Names of the columns that its numbers become.
    pub(super) parts: Vec<String>,
}

impl Vector {
    /// The column of this name, with cells of a type such as `float64[3]`.
    pub(super) fn of(name: &str, subtype: &str) -> Result<Self, CsvFault> {
        let length = || {
            let (kind, length) = subtype.strip_suffix(']')?.split_once('[')?;
            let is_number = ["float", "int", "uint"]
                .iter()
                .any(|known| kind.starts_with(known));
            let length = length
                .parse()
                .ok()
                .filter(|length| is_number && *length > 0)?;
            (length <= LONGEST).then_some(length)
        };
        let parts: Option<Vec<String>> = match (length(), places(name)) {
            (Some(length), Some(places)) => (length == places.len()).then(|| {
                places
                    .iter()
                    .map(|[known, ..]| (*known).to_owned())
                    .collect()
            }),
            (Some(length), None) => Some((0..length).map(|k| format!("{name}_{k}")).collect()),
            (None, _) => None,
        };
        let name = name.to_owned();
        match parts {
            Some(parts) => Ok(Self { name, parts }),
            None => Err(CsvFault::Subtype {
                name,
                subtype: super::beginning(subtype),
            }),
        }
    }
}

/// Numbers of a vector, at most.
const LONGEST: usize = 1000;

/// Puts the names of the parts of vectors into a line of names. Returns the number of parts of each column. A column
/// that is no vector has 0.
pub(super) fn expand_names(line: &mut Vec<u8>, separator: u8, vectors: &[Vector]) -> Vec<usize> {
    let mut widths = vec![];
    for field in fields(line, separator, &[]).into_iter().rev() {
        let name = String::from_utf8_lossy(&line[field.clone()]);
        let name = name.trim().trim_matches('"');
        let vector = vectors.iter().find(|vector| vector.name == name);
        widths.push(vector.map_or(0, |vector| vector.parts.len()));
        if let Some(vector) = vector {
            let names = vector.parts.join(&*String::from(char::from(separator)));
            line.splice(field, names.into_bytes());
        }
    }
    widths.reverse();
    widths
}

/// A reader of rows in which each number of a vector is a field; all bytes keep their places.
pub(super) struct Expanded<R> {
    inner: BufReader<R>,
    separator: u8,
    /// Parts of each column, 0 of one that is no vector.
    widths: Vec<usize>,
    line: Vec<u8>,
    /// The next byte of the line to be handed out.
    next: usize,
}

impl<R: Read> Expanded<R> {
    pub(super) fn new(inner: R, separator: u8, widths: Vec<usize>) -> Self {
        Self {
            inner: BufReader::new(inner),
            separator,
            widths,
            line: vec![],
            next: 0,
        }
    }
}

impl<R: Read> Read for Expanded<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.next == self.line.len() {
            self.line.clear();
            self.next = 0;
            self.inner.read_until(b'\n', &mut self.line)?;
            if self.line.first() != Some(&b'#') {
                let all = fields(&self.line, self.separator, &self.widths);
                for (field, width) in all.into_iter().zip(&self.widths) {
                    for byte in &mut self.line[field] {
                        match byte {
                            b'[' | b']' | b'"' if *width > 0 => *byte = b' ',
                            b',' if *width > 0 => *byte = self.separator,
                            _ => {}
                        }
                    }
                }
            }
        }
        let read = (&self.line[self.next..]).read(buffer)?;
        self.next += read;
        Ok(read)
    }
}

/// Places of the fields of a line. A separator within quotes separates nothing. Neither does one within brackets of a
/// column that is a vector by these `widths`.
fn fields(line: &[u8], separator: u8, widths: &[usize]) -> Vec<Range<usize>> {
    let mut fields = vec![];
    let (mut start, mut is_quoted, mut depth) = (0, false, 0_usize);
    let end = line.trim_ascii_end().len();
    let are_blanks = separator == b' ';
    for at in 0..=end {
        let byte = *line.get(at).filter(|_| at < end).unwrap_or(&separator);
        let is_vector = widths.get(fields.len()).is_some_and(|width| *width > 0);
        match byte {
            b'"' => is_quoted = !is_quoted,
            b'[' if is_vector => depth += 1,
            b']' if is_vector => depth = depth.saturating_sub(1),
            _ if byte != separator || (at < end && (is_quoted || depth > 0)) => {}
            // Several blanks separate as one does.
            _ if are_blanks && start == at => start = at + 1,
            _ => {
                fields.push(start..at);
                start = at + 1;
            }
        }
    }
    fields
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vectors_become_fields_in_their_places() {
        let vectors = [
            Vector::of("pos", "float64[3]").unwrap(),
            Vector::of("spin", "int64[2]").unwrap(),
        ];
        for (separator, names, expanded, rows, wanted) in [
            (
                b' ',
                "m pos name spin\n",
                "m x y z name spin_0 spin_1\n",
                "1 [1.0,-2.0,3e5] \"[a, b]\" [1,2]\n# [1,2]\n  2  \"[1, 2, 3]\"  b [3,4]",
                "1  1.0 -2.0 3e5  \"[a, b]\"  1 2 \n# [1,2]\n  2    1  2  3    b  3 4 ",
            ),
            (
                b',',
                "pos,\"spin\",m\n",
                "x,y,z,spin_0,spin_1,m\n",
                "\"[1.0, 2.0,3.0]\",\"[1,2]\",\"a,b\"\n",
                "  1.0, 2.0,3.0  ,  1,2  ,\"a,b\"\n",
            ),
        ] {
            let mut line = names.as_bytes().to_vec();
            let widths = expand_names(&mut line, separator, &vectors);
            assert_eq!(String::from_utf8(line).unwrap(), expanded);
            let mut found = String::new();
            Expanded::new(rows.as_bytes(), separator, widths)
                .read_to_string(&mut found)
                .unwrap();
            assert_eq!(found, wanted);
        }
    }

    #[test]
    fn other_cells_are_refused_by_the_name_of_their_column() {
        for (name, subtype) in [
            ("pos", "float64[2]"),
            ("vel", "float64[3,3]"),
            ("tags", "string[3]"),
            ("track", "float64[null]"),
            ("all", "json"),
            ("long", "float64[1000000]"),
        ] {
            let fault = Vector::of(name, subtype).unwrap_err().to_string();
            assert!(fault.contains(&format!("`{name}`")), "{fault}");
        }
    }
}
