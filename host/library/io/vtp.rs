//! VTK XML PolyData, for ParaView and VisIt.
//! ```text
//! Points     position          Float64, 3 components
//! PointData  velocity          Float64, 3 components
//!            mass              Float64
//!            id                UInt64
//!            kind              UInt8      0 gas, 1 dark, 2 star
//! Verts      one vertex a body
//! FieldData  TimeValue         Float64    ParaView takes the time from here
//! ```
//! Data follow the XML as raw little-endian blocks, each after its length in bytes. Read are files
//! of this encoding (`appended`, `raw`, not compressed), other number types, other programs' names
//! for the arrays, and files without time (0), id (numbers in the file's order) or kind (stars).
//! Layout: VTK User's Guide, "XML File Formats".

use std::io::{BufRead, Read, Seek, SeekFrom, Write};

use super::column::{
    Class, ID, KIND, MASS, Malformed, Numbers, VELOCITY, read_integers, read_reals, room_for,
    write_all, write_triples,
};
use super::{ReadFault, Snapshot, WriteFault};
use crate::bodies::Kind;

/// The XML before the data of a sane file is shorter.
const LONGEST_XML: u64 = 1 << 20;

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

/// An array of the file, and where its block begins.
#[derive(Clone, Debug)]
struct Array {
    /// The element it stands in: `Points`, `PointData`, `FieldData`, …
    section: String,
    name: String,
    numbers: Numbers,
    components: u64,
    offset: u64,
}

struct Layout {
    points: u64,
    arrays: Vec<Array>,
    /// Bytes of a block's length.
    length_bytes: usize,
    big_endian: bool,
    /// Where offsets count from.
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
        const ADVICE: &str =
            "only PolyData with appended, raw, uncompressed data is read; save it that way";
        let mut layout = Self {
            points: 0,
            arrays: Vec::new(),
            length_bytes: 4,
            big_endian: false,
            data: 0,
            size,
        };
        let mut open: Vec<String> = Vec::new();
        let mut pieces = 0;
        loop {
            let mut text = Vec::new();
            reader.take(LONGEST_XML).read_until(b'>', &mut text)?;
            let text = String::from_utf8_lossy(&text).into_owned();
            let Some((_, tag)) = text.split_once('<') else {
                return Err(fault(
                    "the XML",
                    format!("it has no <AppendedData>; {ADVICE}"),
                ));
            };
            let Some(tag) = tag.strip_suffix('>') else {
                return Err(fault(
                    "the XML",
                    "it ends inside a tag; this is not VTK, or cut short",
                ));
            };
            let name = tag
                .trim_start_matches('/')
                .split(|c: char| c.is_whitespace() || c == '/')
                .next()
                .unwrap_or_default();
            let number = |key: &str| attribute(tag, key).and_then(|text| text.parse::<u64>().ok());
            match name {
                "VTKFile" if !tag.starts_with('/') => {
                    if attribute(tag, "type") != Some("PolyData")
                        || attribute(tag, "compressor").is_some()
                    {
                        return Err(fault("<VTKFile>", ADVICE));
                    }
                    layout.big_endian = attribute(tag, "byte_order") == Some("BigEndian");
                    if attribute(tag, "header_type") == Some("UInt64") {
                        layout.length_bytes = 8;
                    }
                }
                "Piece" if !tag.starts_with('/') => {
                    pieces += 1;
                    layout.points = number("NumberOfPoints")
                        .ok_or_else(|| fault("<Piece>", "it has no NumberOfPoints"))?;
                }
                "DataArray" if !tag.starts_with('/') => {
                    let section = open
                        .iter()
                        .rev()
                        .find(|name| *name != "DataArray")
                        .cloned()
                        .unwrap_or_default();
                    layout
                        .arrays
                        .extend(Array::parse(tag, section, layout.big_endian));
                }
                "AppendedData" => {
                    if attribute(tag, "encoding") != Some("raw") || pieces != 1 {
                        return Err(fault("<AppendedData>", ADVICE));
                    }
                    break;
                }
                _ => {}
            }
            if tag.starts_with('/') {
                open.pop();
            } else if !tag.ends_with('/') && !tag.starts_with(['?', '!']) {
                open.push(name.to_owned());
            }
        }
        let mut underscore = Vec::new();
        reader.take(256).read_until(b'_', &mut underscore)?;
        if !underscore.ends_with(b"_") {
            return Err(fault("<AppendedData>", "its data do not begin with `_`"));
        }
        layout.data = reader.stream_position()?;
        Ok(layout)
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

    /// Goes to the elements of an array of `tuples` of `components` numbers.
    fn seek(
        &self,
        reader: &mut (impl Read + Seek),
        array: &Array,
        tuples: u64,
        components: u64,
    ) -> Result<(), ReadFault> {
        let bytes = tuples
            .checked_mul(components * array.numbers.bytes as u64)
            .filter(|bytes| *bytes <= self.size);
        let start = self
            .data
            .checked_add(array.offset)
            .filter(|start| *start < self.size);
        let (Some(bytes), Some(start)) = (bytes, start) else {
            return Err(fault(
                &array.name,
                "it lies beyond the end of the file, which was cut short",
            ));
        };
        reader.seek(SeekFrom::Start(start))?;
        let mut length = [0; 8];
        reader.read_exact(&mut length[..self.length_bytes])?;
        let length = if self.big_endian {
            u64::from_be_bytes(length) >> (64 - 8 * self.length_bytes)
        } else {
            u64::from_le_bytes(length)
        };
        if array.components != components || length != bytes {
            let problem = format!(
                "it has {} components and {length} bytes, where {components} and {bytes} belong",
                array.components
            );
            return Err(fault(&array.name, problem));
        }
        Ok(())
    }
}

impl Array {
    /// `None` for what cannot be part of a snapshot: strings, arrays that stand in the XML.
    fn parse(tag: &str, section: String, big_endian: bool) -> Option<Self> {
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
        (attribute(tag, "format") == Some("appended") && numbers.is_known()).then_some(Self {
            section,
            name: attribute(tag, "Name").unwrap_or_default().to_owned(),
            numbers,
            components: if components == 0 { 1 } else { components },
            offset: attribute(tag, "offset")?.parse().ok()?,
        })
    }
}

/// Reads a file of `size` bytes.
pub(super) fn read(reader: &mut (impl BufRead + Seek), size: u64) -> Result<Snapshot, ReadFault> {
    let layout = Layout::read(reader, size)?;
    let position = layout
        .arrays
        .iter()
        .find(|array| array.section == "Points")
        .ok_or_else(|| fault("<Points>", "there is no array of positions"))?;
    let (velocity, mass) = (layout.need(&VELOCITY)?, layout.need(&MASS)?);
    let points = layout.points;
    layout.seek(reader, position, points, 3)?;
    // The file has a byte for each, or it would have been refused by now.
    let n = usize::try_from(points).map_err(|_| ReadFault::OutOfMemory { bodies: usize::MAX })?;
    let mut bodies = room_for(n)?;
    let columns = &mut [&mut bodies.x, &mut bodies.y, &mut bodies.z];
    read_reals(reader, position.numbers, n, columns, false)?;
    layout.seek(reader, velocity, points, 3)?;
    let columns = &mut [&mut bodies.vx, &mut bodies.vy, &mut bodies.vz];
    read_reals(reader, velocity.numbers, n, columns, false)?;
    layout.seek(reader, mass, points, 1)?;
    read_reals(reader, mass.numbers, n, &mut [&mut bodies.mass], false)?;
    match layout.find("PointData", &ID) {
        Some(array) => {
            layout.seek(reader, array, points, 1)?;
            read_integers(reader, array.numbers, n, &mut bodies.id, "id", Some)?;
        }
        None => bodies.id.extend(0..points),
    }
    match layout.find("PointData", &KIND) {
        Some(array) => {
            layout.seek(reader, array, points, 1)?;
            read_integers(
                reader,
                array.numbers,
                n,
                &mut bodies.kind,
                "kind",
                Kind::of_number,
            )?;
        }
        None => bodies.kind.resize(n, Kind::Star),
    }
    let mut time = vec![0.0];
    if let Some(array) = layout.find("FieldData", &["TimeValue", "TIME", "time"]) {
        time.clear();
        layout.seek(reader, array, 1, 1)?;
        read_reals(reader, array.numbers, 1, &mut [&mut time], false)?;
    }
    if !time[0].is_finite() {
        return Err(fault("TimeValue", format!("the time is {}", time[0])));
    }
    bodies.check()?;
    Ok(Snapshot {
        time: time[0],
        bodies,
    })
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;
    use crate::bodies::Body;

    fn file() -> Vec<u8> {
        let bodies = (0..3)
            .map(|i| Body {
                position: [f64::from(i), 0.1, -2.0],
                velocity: [0.0, f64::from(i), 1e-300],
                mass: 0.5,
                id: u64::MAX - i as u64,
                kind: Kind::ALL[i as usize],
            })
            .collect();
        let mut bytes = Vec::new();
        write(&mut bytes, &Snapshot { time: 0.25, bodies }).unwrap();
        bytes
    }

    fn parse(bytes: &[u8]) -> Result<Snapshot, ReadFault> {
        read(&mut io::Cursor::new(bytes), bytes.len() as u64)
    }

    #[test]
    fn attributes_are_found_by_their_whole_name() {
        let tag = r#"DataArray type="Float64" MyName = 'no' Name='a b' offset="7"/"#;
        assert_eq!(attribute(tag, "Name"), Some("a b"));
        assert_eq!(attribute(tag, "offset"), Some("7"));
        assert_eq!(attribute(tag, "set"), None);
        assert_eq!(attribute(tag, "Data"), None);
    }

    #[test]
    fn no_cut_or_change_of_the_file_panics() {
        let bytes = file();
        let end = bytes.len() - b"\n</AppendedData>\n</VTKFile>\n".len();
        for at in 0..bytes.len() {
            assert_eq!(parse(&bytes[..at]).is_ok(), at >= end, "cut at {at}");
            for value in [0, b'<', b'9', 0xff] {
                let mut changed = bytes.clone();
                changed[at] = value;
                if let Ok(snapshot) = parse(&changed) {
                    assert_eq!(snapshot.bodies.check(), Ok(()));
                }
            }
        }
    }

    #[test]
    fn other_encodings_are_refused_with_advice() {
        let text = String::from_utf8_lossy(&file()).into_owned();
        for (from, to) in [
            ("\"raw\"", "\"base64\""),
            (
                "header_type",
                "compressor=\"vtkZLibDataCompressor\" header_type",
            ),
            ("type=\"PolyData\"", "type=\"UnstructuredGrid\""),
        ] {
            let message = parse(text.replace(from, to).as_bytes())
                .unwrap_err()
                .to_string();
            assert!(message.contains("save it that way"), "{message}");
        }
        let message = parse(text.replace("\"mass\" f", "\"weight\" f").as_bytes());
        assert!(message.unwrap_err().to_string().contains("mass"));
    }
}
