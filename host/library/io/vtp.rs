//! VTK XML PolyData, for ParaView and VisIt.
//! ```text
//! Points     position          Float64, 3 components
//! PointData  velocity          Float64, 3 components
//!            mass              Float64
//!            id                UInt64
//!            kind              UInt8      0 gas, 1 dark, 2 star
//! Verts      one vertex per body
//! FieldData  TimeValue         Float64    ParaView takes the time from here
//! ```
//! Data follow the XML as raw little-endian blocks, each after its length in bytes. Read are the
//! other encodings too (in the XML or after it, text, base64, compressed by zlib),
//! other number types, other programs' names for the arrays, and files without time (0), id
//! (numbers in the file's order) or kind (stars); a note names the arrays that are left out.
//! Layout: VTK User's Guide, "XML File Formats".

mod encoding;

use std::io::{self, BufRead, Read, Seek, SeekFrom, Write};

use super::column::{
    Class, EXPANSION, ID, IDS, KIND, KINDS, MASS, Malformed, Numbers, VELOCITY, left_out,
    read_integers, read_reals, room_for, write_all, write_triples,
};
use super::{Contents, ReadFault, Snapshot, WriteFault};
use crate::bodies::BodyKind;
use encoding::{Ascii, Base64, Blocks};

/// The tags of a sane file are shorter, all of them together.
const LONGEST_XML: u64 = 1 << 20;
/// The elements of a sane file are not nested deeper.
const DEEPEST: usize = 32;

/// Writes `snapshot`, which has passed [`Bodies::check`](crate::bodies::Bodies::check).
pub(super) fn write(file: &mut impl Write, snapshot: &Snapshot) -> Result<(), WriteFault> {
    let bodies = &snapshot.bodies;
    let n = bodies.len() as u64;
    let mut offset = 0;
    let mut array = |kind: &str, name: &str, components: &str, bytes: u64| {
        let tag = format!(
            "<DataArray type=\"{kind}\" Name=\"{name}\"{components} format=\"appended\" \
             offset=\"{offset}\"/>"
        );
        offset += 8 + bytes;
        tag
    };
    let three = " NumberOfComponents=\"3\"";
    let time = array("Float64", "TimeValue", " NumberOfTuples=\"1\"", 8);
    let position = array("Float64", "position", three, 24 * n);
    let connectivity = array("Int64", "connectivity", "", 8 * n);
    let offsets = array("Int64", "offsets", "", 8 * n);
    let velocity = array("Float64", "velocity", three, 24 * n);
    let mass = array("Float64", "mass", "", 8 * n);
    let id = array("UInt64", "id", "", 8 * n);
    let kind = array("UInt8", "kind", "", n);
    write!(
        file,
        r#"<?xml version="1.0"?>
<VTKFile type="PolyData" version="1.0" byte_order="LittleEndian" header_type="UInt64">
<PolyData>
<FieldData>{time}</FieldData>
<Piece NumberOfPoints="{n}" NumberOfVerts="{n}">
<Points>{position}</Points>
<Verts>{connectivity}{offsets}</Verts>
<PointData Scalars="mass" Vectors="velocity">{velocity}{mass}{id}{kind}</PointData>
</Piece>
</PolyData>
<AppendedData encoding="raw">
_"#
    )?;
    let length = |file: &mut dyn Write, bytes: u64| file.write_all(&bytes.to_le_bytes());
    length(file, 8)?;
    file.write_all(&snapshot.time.to_le_bytes())?;
    length(file, 24 * n)?;
    write_triples(file, [&bodies.x, &bodies.y, &bodies.z])?;
    length(file, 8 * n)?;
    write_all(file, 0..n, u64::to_le_bytes)?;
    length(file, 8 * n)?;
    write_all(file, 1..=n, u64::to_le_bytes)?;
    length(file, 24 * n)?;
    write_triples(file, [&bodies.vx, &bodies.vy, &bodies.vz])?;
    length(file, 8 * n)?;
    write_all(file, bodies.mass.iter().copied(), f64::to_le_bytes)?;
    length(file, 8 * n)?;
    write_all(file, bodies.id.iter().copied(), u64::to_le_bytes)?;
    length(file, n)?;
    let codes = bodies.kind.iter().map(|kind| kind.number());
    write_all(file, codes, |code| [code])?;
    file.write_all(b"\n</AppendedData>\n</VTKFile>\n")?;
    Ok(())
}

/// An array of the file, and where its data are.
#[derive(Clone, Debug)]
struct Array {
    /// The element it stands in: `Points`, `PointData`, `FieldData`, …
    section: String,
    name: String,
    numbers: Numbers,
    components: u64,
    place: Place,
}

/// Place at which the data of an array begin.
#[derive(Clone, Copy, Debug)]
enum Place {
    /// So many bytes after the underscore of the appended data.
    Appended(u64),
    /// At this byte of the file, between the tags of the array, in base64.
    Base64(u64),
    /// Data inline, as numbers in text.
    Ascii(u64),
}

struct Layout {
    points: u64,
    arrays: Vec<Array>,
    /// Bytes of a block's length.
    length_bytes: usize,
    big_endian: bool,
    /// True if data are in blocks that are compressed by zlib.
    is_compressed: bool,
    /// True if appended data are in base64.
    is_text: bool,
    /// Byte from which offsets count.
    data: u64,
    size: u64,
}

fn fault(place: &str, problem: impl Into<String>) -> ReadFault {
    Malformed::new(place, problem).into()
}

/// The value of an attribute of a tag (without its angle brackets).
fn attribute<'a>(tag: &'a str, name: &str) -> Option<&'a str> {
    let mut rest = tag;
    while let Some(at) = rest.find(name) {
        let before = rest[..at].chars().next_back();
        rest = &rest[at + name.len()..];
        let value = rest.trim_start().strip_prefix('=').map(str::trim_start);
        if let Some(value) = value
            && before.is_some_and(char::is_whitespace)
        {
            let quote = value.chars().next().filter(|c| matches!(c, '"' | '\''))?;
            return value[1..].split_once(quote).map(|(value, _)| value);
        }
    }
    None
}

impl Layout {
    fn read(reader: &mut (impl BufRead + Seek), size: u64) -> Result<Self, ReadFault> {
        let mut layout = Self {
            points: 0,
            arrays: Vec::new(),
            length_bytes: 4,
            big_endian: false,
            is_compressed: false,
            is_text: false,
            data: 0,
            size,
        };
        let mut open: Vec<String> = Vec::new();
        let (mut pieces, mut at, mut tags) = (0, 0, 0);
        let mut has_ended = false;
        while !has_ended {
            // The `<`, after text that is not looked at here.
            at += reader.skip_until(b'<')? as u64;
            let mut tag = Vec::new();
            let room = LONGEST_XML - tags;
            let length = reader.take(room).read_until(b'>', &mut tag)? as u64;
            (at, tags) = (at + length, tags + length);
            if tag.pop_if(|last| *last == b'>').is_none() {
                let problem = if length == room {
                    "there is more than 1 MiB of tags; this is not VTK"
                } else {
                    "it ends before <AppendedData> or </VTKFile>; this is not VTK, or cut short"
                };
                return Err(fault("the XML", problem));
            }
            let tag = String::from_utf8_lossy(&tag);
            let name = tag
                .trim_start_matches('/')
                .split(|c: char| c.is_whitespace() || c == '/')
                .next()
                .unwrap_or_default();
            if tag.starts_with('/') {
                open.pop();
                has_ended = name == "VTKFile";
                continue;
            }
            match name {
                "VTKFile" => layout.file(&tag)?,
                "Piece" => {
                    pieces += 1;
                    layout.points = attribute(&tag, "NumberOfPoints")
                        .and_then(|text| text.parse().ok())
                        .ok_or_else(|| fault("<Piece>", "it has no NumberOfPoints"))?;
                }
                "DataArray" => {
                    let section = open
                        .iter()
                        .rev()
                        .find(|name| *name != "DataArray")
                        .cloned()
                        .unwrap_or_default();
                    layout
                        .arrays
                        .extend(Array::parse(&tag, section, layout.big_endian, at));
                }
                "AppendedData" => {
                    layout.is_text = match attribute(&tag, "encoding") {
                        Some("raw") => false,
                        Some("base64") => true,
                        _ => return Err(fault("<AppendedData>", "its encoding is not known here")),
                    };
                    let mut underscore = Vec::new();
                    reader.take(256).read_until(b'_', &mut underscore)?;
                    if !underscore.ends_with(b"_") {
                        return Err(fault("<AppendedData>", "its data do not begin with `_`"));
                    }
                    layout.data = at + underscore.len() as u64;
                    has_ended = true;
                }
                _ => {}
            }
            if !tag.ends_with('/') && !tag.starts_with(['?', '!']) {
                open.push(name.to_owned());
            }
            if open.len() > DEEPEST {
                return Err(fault("the XML", "its elements are nested too deeply"));
            }
        }
        if pieces != 1 {
            let problem = format!("there are {pieces} of them, and one is read; merge them");
            return Err(fault("<Piece>", problem));
        }
        Ok(layout)
    }

    fn file(&mut self, tag: &str) -> Result<(), ReadFault> {
        if attribute(tag, "type") != Some("PolyData") {
            let problem = "only PolyData is read; save points as that (.vtp)";
            return Err(fault("<VTKFile>", problem));
        }
        self.is_compressed = match attribute(tag, "compressor") {
            None => false,
            Some("vtkZLibDataCompressor") => true,
            Some(other) => {
                let problem = format!(
                    "data compressed by {other} are not read; save them with zlib or uncompressed"
                );
                return Err(fault("<VTKFile>", problem));
            }
        };
        self.big_endian = attribute(tag, "byte_order") == Some("BigEndian");
        if attribute(tag, "header_type") == Some("UInt64") {
            self.length_bytes = 8;
        }
        Ok(())
    }

    fn find(&self, section: &str, names: &[&str]) -> Option<&Array> {
        names.iter().find_map(|name| {
            let mut arrays = self.arrays.iter().filter(|array| array.section == section);
            arrays.find(|array| array.name == *name)
        })
    }

    fn need(&self, names: &[&str]) -> Result<&Array, ReadFault> {
        self.find("PointData", names).ok_or_else(|| {
            let problem =
                "there is no such array, and a snapshot needs position, velocity and mass";
            fault(names[0], problem)
        })
    }

    /// The bytes of an array of `tuples` of `components` numbers, and what they are.
    fn elements<'a, R: BufRead + Seek>(
        &self,
        reader: &'a mut R,
        array: &Array,
        tuples: u64,
        components: u64,
    ) -> Result<(Box<dyn Read + 'a>, Numbers), ReadFault> {
        if array.components != components {
            let problem = format!(
                "it has {} components, where {components} belong",
                array.components
            );
            return Err(fault(&array.name, problem));
        }
        let start = match array.place {
            Place::Appended(offset) => self.data.checked_add(offset),
            Place::Base64(at) | Place::Ascii(at) => Some(at),
        };
        // A number of eight bytes may be a digit and a blank.
        let expansion = match array.place {
            Place::Ascii(_) => 4,
            _ if self.is_compressed => EXPANSION,
            _ => 1,
        };
        let bytes = tuples
            .checked_mul(components * array.numbers.bytes as u64)
            .filter(|bytes| *bytes <= self.size.saturating_mul(expansion));
        let start = start.filter(|start| *start < self.size);
        let (Some(bytes), Some(start)) = (bytes, start) else {
            return Err(fault(
                &array.name,
                "it lies beyond the end of the file, which was cut short",
            ));
        };
        reader.seek(SeekFrom::Start(start))?;
        let mut plain: Box<dyn Read + 'a> = match array.place {
            Place::Ascii(_) => {
                let text = Ascii::new(reader, array.numbers.class);
                let numbers = text.numbers();
                return Ok((Box::new(text), numbers));
            }
            Place::Appended(_) if !self.is_text => Box::new(reader),
            Place::Appended(_) | Place::Base64(_) => Box::new(Base64::new(reader)),
        };
        let in_array = |error| in_array(&array.name, error);
        if self.is_compressed {
            let number = |plain: &mut _| self.length(plain);
            let blocks = Blocks::new(plain, number, bytes, self.size).map_err(in_array)?;
            return Ok((Box::new(blocks), array.numbers));
        }
        let length = self.length(&mut plain).map_err(in_array)?;
        if length != bytes {
            let problem = format!("it has {length} bytes, where {bytes} belong");
            return Err(fault(&array.name, problem));
        }
        Ok((plain, array.numbers))
    }

    /// A number of the headers of data.
    fn length(&self, reader: &mut impl Read) -> io::Result<u64> {
        let mut length = [0; 8];
        reader.read_exact(&mut length[..self.length_bytes])?;
        Ok(if self.big_endian {
            u64::from_be_bytes(length) >> (64 - 8 * self.length_bytes)
        } else {
            u64::from_le_bytes(length)
        })
    }

    fn reals(
        &self,
        reader: &mut (impl BufRead + Seek),
        array: &Array,
        n: usize,
        columns: &mut [&mut Vec<f64>],
    ) -> Result<(), ReadFault> {
        let components = columns.len() as u64;
        let (mut elements, numbers) = self.elements(reader, array, n as u64, components)?;
        read_reals(&mut elements, numbers, n, columns, false)
            .map_err(|error| in_array(&array.name, error))
    }

    fn integers<T>(
        &self,
        reader: &mut (impl BufRead + Seek),
        array: &Array,
        n: usize,
        column: &mut Vec<T>,
        allowed: (impl Fn(u64) -> Option<T>, &str),
    ) -> Result<(), ReadFault> {
        let (mut elements, numbers) = self.elements(reader, array, n as u64, 1)?;
        match read_integers(&mut elements, numbers, n, column, &array.name, allowed) {
            Err(ReadFault::Io(error)) => Err(in_array(&array.name, error)),
            other => other,
        }
    }
}

/// A fault of the file system as it is, any other as one of the array.
fn in_array(name: &str, error: io::Error) -> ReadFault {
    match error.kind() {
        _ if error.raw_os_error().is_some() => error.into(),
        io::ErrorKind::UnexpectedEof => fault(name, "it ends too early; the file was cut short"),
        _ => fault(name, error.to_string()),
    }
}

impl Array {
    /// The array of a tag that ends before byte `at`. `None` for what cannot be part of a snapshot:
    /// strings, numbers of odd sizes.
    fn parse(tag: &str, section: String, big_endian: bool, at: u64) -> Option<Self> {
        let kind = attribute(tag, "type")?;
        let (class, bits) = kind.split_at(kind.find(|c: char| c.is_ascii_digit())?);
        let numbers = Numbers {
            class: match class {
                "Float" => Class::Real,
                "Int" => Class::Signed,
                "UInt" => Class::Unsigned,
                _ => return None,
            },
            bytes: bits.parse::<usize>().ok()? / 8,
            big_endian,
        };
        let components =
            attribute(tag, "NumberOfComponents").map_or(Some(1), |n| n.parse().ok())?;
        let place = match attribute(tag, "format")? {
            "appended" => Place::Appended(attribute(tag, "offset")?.parse().ok()?),
            "binary" => Place::Base64(at),
            "ascii" => Place::Ascii(at),
            _ => return None,
        };
        numbers.is_known().then_some(Self {
            section,
            name: attribute(tag, "Name").unwrap_or_default().to_owned(),
            numbers,
            components: if components == 0 { 1 } else { components },
            place,
        })
    }
}

/// Reads a file of `size` bytes.
pub(super) fn read(reader: &mut (impl BufRead + Seek), size: u64) -> Result<Contents, ReadFault> {
    let layout = Layout::read(reader, size)?;
    let position = layout
        .arrays
        .iter()
        .find(|array| array.section == "Points")
        .ok_or_else(|| fault("<Points>", "there is no array of positions"))?;
    let (velocity, mass) = (layout.need(&VELOCITY)?, layout.need(&MASS)?);
    let points = layout.points;
    // The file has bytes for each, or it is refused here.
    layout.elements(reader, position, points, 3)?;
    let n = usize::try_from(points).map_err(|_| ReadFault::OutOfMemory { bodies: usize::MAX })?;
    let mut bodies = room_for(n)?;
    let columns = &mut [&mut bodies.x, &mut bodies.y, &mut bodies.z];
    layout.reals(reader, position, n, columns)?;
    let columns = &mut [&mut bodies.vx, &mut bodies.vy, &mut bodies.vz];
    layout.reals(reader, velocity, n, columns)?;
    layout.reals(reader, mass, n, &mut [&mut bodies.mass])?;
    let (id, kind) = (
        layout.find("PointData", &ID),
        layout.find("PointData", &KIND),
    );
    match id {
        Some(array) => layout.integers(reader, array, n, &mut bodies.id, (Some, IDS))?,
        None => bodies.id.extend(0..points),
    }
    match kind {
        Some(array) => layout.integers(
            reader,
            array,
            n,
            &mut bodies.kind,
            (BodyKind::of_number, KINDS),
        )?,
        None => bodies.kind.resize(n, BodyKind::Star),
    }
    let mut time = vec![0.0];
    if let Some(array) = layout.find("FieldData", &["TimeValue", "TIME", "time"]) {
        time.clear();
        layout.reals(reader, array, 1, &mut [&mut time])?;
    }
    if !time[0].is_finite() {
        return Err(fault("TimeValue", format!("the time is {}", time[0])));
    }
    bodies.check()?;
    let used = [Some(velocity), Some(mass), id, kind].map(|array| array.map(|array| &array.name));
    let others: Vec<&String> = layout
        .arrays
        .iter()
        .filter(|array| array.section == "PointData")
        .map(|array| &array.name)
        .filter(|name| !used.contains(&Some(*name)))
        .collect();
    let mut contents = Contents::from(Snapshot {
        time: time[0],
        bodies,
    });
    if !others.is_empty() {
        contents.notes.push(left_out("arrays", &others));
    }
    Ok(contents)
}

#[cfg(test)]
mod tests;
