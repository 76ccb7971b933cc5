//! Snapshot files against readers and writers that are not ours: Python packages (numpy, h5py,
//! vtk). A test whose package is missing says so and passes. `ALLPAIRS_PYTHON` names the interpreter
//! where it is not `python3`.

use std::fs;
use std::io::Cursor;
use std::path::Path;
use std::process::Command;

use allpairs::bodies::{Body, BodyKind};
use allpairs::io::{self, Format, Overwrite, ReadFault, Snapshot, TipsyDialect, TipsyFault};
use allpairs::units::Units;

use crate::support::program::galaxy;

/// Bodies of all kinds with values that need all 64 bits.
fn snapshot(n: u64) -> Snapshot {
    let bodies = (0..n)
        .map(|i| {
            let t = i as f64;
            Body {
                position: [t / 3.0, -t, 1.0 + 0.1 * t],
                velocity: [0.7 * t, -1e-200, 1.0 / (t + 1.0)],
                mass: t / 7.0 + 1.0,
                id: (1 << 60) + 3 * i,
                kind: BodyKind::ALL[(i % 3) as usize],
            }
        })
        .collect();
    Snapshot { time: 0.1, bodies }
}

/// The galaxy of the demonstration, which another program wrote.
#[test]
fn the_galaxy_is_read_and_written_back_to_the_bit() {
    let bytes = fs::read(galaxy()).expect("it is part of the program");
    let read = |bytes: &[u8], dialect: Option<TipsyDialect>| {
        let file = Cursor::new(bytes);
        io::read_from(file, &galaxy(), dialect.map(Format::Tipsy))
    };
    let (snapshot, format) = read(&bytes, None).unwrap();
    assert_eq!(format, Format::Tipsy(TipsyDialect::WithIds));
    assert_eq!(snapshot.time, 0.0);
    let bodies = &snapshot.bodies;
    assert_eq!(bodies.len(), 20_000);
    let dark = bodies.iter().filter(|body| body.kind == BodyKind::Dark);
    assert_eq!(dark.count(), 2_500);
    assert_eq!(
        (bodies.id[0], bodies.id[2_500], bodies.id[19_999]),
        (2e8 as u64, 1e8 as u64, 14_999)
    );
    assert_eq!(bodies.mass[0], f64::from(0.042_704_78_f32));
    assert_eq!(bodies.x[0], f64::from(0.471_853_73_f32));
    let native = read(&bytes, Some(TipsyDialect::Native)).unwrap().0;
    assert!(native.bodies.id.iter().copied().eq(0..20_000));
    let notes = io::load(&galaxy(), None).unwrap().notes;
    assert_eq!(notes.len(), 1, "{notes:?}");
    assert!(
        notes[0].contains("softening") && notes[0].contains(" to 0.44"),
        "{notes:?}"
    );

    // Softening, metals and the padding are not kept; the rest of the file must be.
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join("galaxy.tipsy");
    io::write(&copy, format, &snapshot, Overwrite::Refuse).unwrap();
    let again = fs::read(copy).unwrap();
    assert_eq!(again.len(), bytes.len());
    assert_eq!(read(&again, None).unwrap(), (snapshot, format));
    assert_eq!(again[..28], bytes[..28]);
    assert_eq!(again[32..32 + 28], bytes[32..32 + 28]);

    for cut in [1, 3, 4, 44, 4_097, 770_001] {
        let fault = read(&bytes[..bytes.len() - cut], None).unwrap_err().fault;
        assert!(matches!(
            fault,
            ReadFault::Tipsy(TipsyFault::Size { actual, expected: 860_032, .. })
                if actual == 860_032 - cut as u64
        ));
    }
}

/// The same in Python: `expected` with position, velocity, mass, id and kind by column.
const EXPECTED: &str = r#"
import sys, numpy as np
n = 100
t = np.arange(n, dtype=float)
position = np.stack([t / 3, -t, 1 + 0.1 * t], 1)
velocity = np.stack([0.7 * t, np.full(n, -1e-200), 1 / (t + 1)], 1)
mass, ids, kind = t / 7 + 1, (1 << 60) + 3 * np.arange(n, dtype="u8"), np.arange(n) % 3
def check(found, expected):
    found = np.asarray(found)
    assert found.dtype == expected.dtype and found.shape == expected.shape, (found.dtype, found.shape)
    assert (found == expected).all(), (found, expected)
"#;

/// Runs a script in `folder`; `false` if Python or one of the packages is missing.
fn python(packages: &str, script: &str, folder: &Path) -> bool {
    let interpreter = std::env::var_os("ALLPAIRS_PYTHON").unwrap_or_else(|| "python3".into());
    let run = |script: &str| {
        let mut command = Command::new(&interpreter);
        command.args(["-c", script]).current_dir(folder).output()
    };
    match run(&format!("import {packages}")) {
        Ok(output) if output.status.success() => {}
        _ => {
            let name = Path::new(&interpreter).display();
            eprintln!("SKIPPED: {name} has not all of {packages}; nothing was tested against them");
            return false;
        }
    }
    let output = run(script).expect("it ran a moment ago");
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}");
    true
}

fn write(folder: &Path, name: &str, units: Option<Units>) {
    let path = folder.join(name);
    let format = Format::from_path(&path).expect("a known name");
    io::write_in_units(&path, format, &snapshot(100), units, Overwrite::Refuse).unwrap();
}

#[test]
fn ten_lines_of_python_read_our_own_format() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), "a.allpairs", None);
    let text = fs::read_to_string(crate::support::root().join("docs/format.md"));
    let text = text.unwrap();
    let (_, reader) = text.split_once("```python\n").unwrap();
    let (reader, _) = reader.split_once("```").unwrap();
    let lines = reader
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with("import"));
    assert!(lines.count() <= 12, "the document promises a short reader");
    let script = format!(
        "{EXPECTED}{reader}
columns = read('a.allpairs')
assert columns['time'] == 0.1
check(np.stack([columns[name] for name in ('x', 'y', 'z')], 1), position)
check(np.stack([columns[name] for name in ('vx', 'vy', 'vz')], 1), velocity)
check(columns['mass'], mass)
check(columns['id'], ids)
check(columns['kind'], kind.astype('u1'))
"
    );
    python("numpy", &script, folder.path());
}

#[test]
fn numpy_reads_and_writes_archives() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    write(folder, "a.npz", Some(Units::SI));
    let script = format!(
        "{EXPECTED}
file = np.load('a.npz')
assert file['time'] == 0.1 and file['time'].shape == ()
check(file['position'], position)
check(file['velocity'], velocity)
check(file['mass'], mass)
check(file['id'], ids)
check(file['kind'], kind.astype('u1'))
check(file['units'], np.ones(3))
np.savez_compressed('b.npz', pos=np.asfortranarray(position), vel=velocity, mass=mass, id=ids, kind=kind, time=0.1)
np.savez('c.npz', **{{name: column for part, names in ((position, 'xyz'), (velocity, ('vx', 'vy', 'vz'))) for name, column in zip(names, part.T)}}, masses=mass.astype('>f4'))
"
    );
    if python("numpy", &script, folder) {
        let (compressed, _) = io::read(&folder.join("b.npz"), None).unwrap();
        assert_eq!(compressed, snapshot(100));
        let (columns, _) = io::read(&folder.join("c.npz"), None).unwrap();
        assert_eq!(columns.bodies.vz, snapshot(100).bodies.vz);
        assert_eq!(columns.bodies.mass[1], f64::from(8.0_f32 / 7.0));
    }
}

#[test]
fn h5py_reads_and_writes_snapshots() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    write(folder, "a.hdf5", Some("kpc".parse().unwrap()));
    let script = format!(
        "{EXPECTED}import h5py
with h5py.File('a.hdf5') as file:
    header = file['Header'].attrs
    assert list(header['NumPart_ThisFile']) == [34, 33, 0, 0, 33, 0], list(header['NumPart_ThisFile'])
    assert header['Time'] == 0.1 and header['BoxSize'] == 0
    assert header['Code'] == b'Allpairs' and header['NumPart_Total'].dtype == 'u4'
    assert abs(file['Units'].attrs['UnitVelocity_in_cm_per_s'] / 1e5 - 1) < 1e-12
    assert abs(header['UnitMass_in_g'] / 1.988409870698051e43 - 1) < 1e-9
    for k, part in enumerate(('PartType0', 'PartType1', 'PartType4')):
        of = kind == k
        check(file[part]['Coordinates'][:], position[of])
        check(file[part]['Velocities'][:], velocity[of])
        check(file[part]['Masses'][:], mass[of])
        check(file[part]['ParticleIDs'][:], ids[of])
with h5py.File('b.h5', 'w') as file:
    header = file.create_group('Header').attrs
    header['NumPart_ThisFile'] = np.array([0, 100, 0, 0, 0, 0], 'u4')
    header['MassTable'] = np.array([0, 0.25, 0, 0, 0, 0])
    header['Time'] = np.array([2.0])
    part = file.create_group('PartType1')
    part.create_dataset('Coordinates', data=position.astype('f4'), chunks=(7, 3), compression='gzip', shuffle=True)
    part.create_dataset('Velocities', data=velocity.astype('>f8'))
    part.create_dataset('ParticleIDs', data=ids.astype('u4') + 5)
"
    );
    if python("numpy, h5py", &script, folder) {
        let path = folder.join("b.h5");
        let (found, _) = io::read(&path, None).unwrap();
        let expected = snapshot(100).bodies;
        assert_eq!(found.time, 2.0);
        assert_eq!(found.bodies.mass, [0.25; 100]);
        assert_eq!(found.bodies.vx, expected.vx);
        let single = |column: &[f64]| -> Vec<f64> {
            column
                .iter()
                .map(|value| f64::from(*value as f32))
                .collect()
        };
        assert_eq!(found.bodies.x, single(&expected.x));
        assert_eq!(
            (found.bodies.id[1], found.bodies.kind[1]),
            (8, BodyKind::Dark)
        );
        assert_eq!(io::read_units(&path, None).unwrap(), None);
    }
}

#[test]
fn vtk_reads_and_writes_polydata() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    write(folder, "a.vtp", None);
    let script = format!(
        "{EXPECTED}import vtk
from vtk.util.numpy_support import vtk_to_numpy
reader = vtk.vtkXMLPolyDataReader()
reader.SetFileName('a.vtp')
reader.Update()
data = reader.GetOutput()
assert data.GetNumberOfPoints() == 100 and data.GetNumberOfVerts() == 100
array = lambda name: vtk_to_numpy(data.GetPointData().GetArray(name))
check(vtk_to_numpy(data.GetPoints().GetData()), position)
check(array('velocity'), velocity)
check(array('mass'), mass)
check(array('id').astype('u8'), ids)
check(array('kind'), kind.astype('u1'))
assert data.GetFieldData().GetArray('TimeValue').GetValue(0) == 0.1
writer = vtk.vtkXMLPolyDataWriter()
writer.SetFileName('b.vtp')
writer.SetInputData(data)
writer.SetDataModeToAppended()
writer.EncodeAppendedDataOff()
writer.SetCompressorTypeToNone()
writer.Write()
"
    );
    if python("numpy, vtk", &script, folder) {
        let (found, _) = io::read(&folder.join("b.vtp"), None).unwrap();
        assert_eq!(found, snapshot(100));
    }
}
