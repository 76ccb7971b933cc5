//! Tests of the reader and writer of VTK's files.

use super::*;
use crate::bodies::Body;

fn file() -> Vec<u8> {
    let bodies = (0..3)
        .map(|i| Body {
            position: [f64::from(i), 0.1, -2.0],
            velocity: [0.0, f64::from(i), 1e-300],
            mass: 0.5,
            id: u64::MAX - i as u64,
            kind: BodyKind::ALL[i as usize],
        })
        .collect();
    let mut bytes = Vec::new();
    write(&mut bytes, &Snapshot { time: 0.25, bodies }).unwrap();
    bytes
}

fn parse(bytes: &[u8]) -> Result<Snapshot, ReadFault> {
    read(&mut io::Cursor::new(bytes), bytes.len() as u64).map(|contents| contents.snapshot)
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
fn other_encodings_are_read() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/vtk");
    for name in [
        "default",
        "base64-plain",
        "raw-zlib",
        "inline-zlib",
        "inline-plain",
        "ascii",
    ] {
        let bytes = std::fs::read(folder.join(name).with_extension("vtp")).unwrap();
        let contents = read(&mut io::Cursor::new(&bytes), bytes.len() as u64).unwrap();
        let Snapshot { time, bodies } = contents.snapshot;
        assert_eq!((time, bodies.len()), (-2.5, 9), "{name}");
        let last = Body {
            position: [1.0, -8.0, 1.0078125],
            velocity: [2.0, -0.5, -3.0],
            mass: 4.0,
            id: 1024,
            kind: BodyKind::Star,
        };
        assert_eq!(bodies.body(8), last, "{name}");
        assert_eq!(
            contents.notes,
            ["arrays that are not used here: speed of sound"]
        );
        // Cut anywhere, it is refused, or has lost nothing.
        for at in 0..bytes.len() {
            if let Ok(found) = parse(&bytes[..at]) {
                assert_eq!(found.bodies, bodies, "{name} cut at {at}");
            }
        }
    }
}

#[test]
fn what_is_not_read_is_named() {
    let text = String::from_utf8_lossy(&file()).into_owned();
    for (from, to, said) in [
        ("\"raw\"", "\"hex\"", "encoding"),
        (
            "header_type",
            "compressor=\"vtkLZ4DataCompressor\" header_type",
            "vtkLZ4DataCompressor",
        ),
        ("type=\"PolyData\"", "type=\"UnstructuredGrid\"", "PolyData"),
        ("\"mass\" f", "\"weight\" f", "mass"),
        ("</Piece>", "</Piece><Piece NumberOfPoints='0'>", "merge"),
    ] {
        let message = parse(text.replace(from, to).as_bytes())
            .unwrap_err()
            .to_string();
        assert!(message.contains(said), "{message}");
    }
}

/// 100 000 tags that are never closed took 13 s, and 30 MB of tags 553 MB.
#[test]
fn tags_are_bounded() {
    for tag in ["<DataArray>", "<a>", "<DataArray/>", "<?a?>"] {
        let text = format!("<VTKFile type=\"PolyData\">{}", tag.repeat(400_000));
        let start = std::time::Instant::now();
        let message = parse(text.as_bytes()).unwrap_err().to_string();
        assert!(
            message.contains("nested") || message.contains("1 MiB"),
            "{tag}: {message}"
        );
        assert!(
            start.elapsed().as_secs() < 2,
            "{tag}: {:?}",
            start.elapsed()
        );
    }
}
