//! `render`, `view` and `plot` from the command line: what they write, and what they refuse.

use std::fs;
use std::path::Path;

use crate::support::program::{Ended, allpairs, galaxy};

/// Snapshots of two bodies that move apart.
fn series(folder: &Path) {
    for i in 0..3 {
        let text = format!("x,y,z,vx,vy,vz,mass,id\n{i},0,0,1,0,0,1,7\n-{i},1,0,-1,0,0,1,9\n");
        fs::write(folder.join(format!("snapshot-{i}.csv")), text).unwrap();
    }
}

/// Decodes a GIF of 64 × 32 pixels and counts its pictures.
fn gif_pictures(bytes: &[u8]) -> u32 {
    let mut reader = gif::Decoder::new(bytes).unwrap();
    let mut count = 0;
    while let Some(frame) = reader.read_next_frame().unwrap() {
        assert_eq!((frame.width, frame.height), (64, 32));
        assert_eq!(frame.buffer.len(), 64 * 32);
        count += 1;
    }
    count
}

/// The same of an animated PNG.
fn png_pictures(bytes: &[u8]) -> u32 {
    let mut reader = png::Decoder::new(std::io::Cursor::new(bytes))
        .read_info()
        .unwrap();
    let count = reader.info().animation_control.unwrap().num_frames;
    let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
    for _ in 0..count {
        let picture = reader.next_frame(&mut pixels).unwrap();
        assert_eq!((picture.width, picture.height), (64, 32));
    }
    assert!(
        reader.next_frame(&mut pixels).is_err(),
        "more pictures than it says"
    );
    count
}

/// The pictures of a movie, as ffmpeg decodes them to raw pixels.
fn decoded_by_ffmpeg(path: &Path) -> usize {
    let output = std::process::Command::new("ffmpeg")
        .args(["-v", "error", "-i"])
        .arg(path)
        .args(["-f", "rawvideo", "-pix_fmt", "rgb24", "-"])
        .output()
        .unwrap();
    assert!(
        output.status.success() && output.stderr.is_empty(),
        "{output:?}"
    );
    assert_eq!(output.stdout.len() % (64 * 32 * 3), 0);
    output.stdout.len() / (64 * 32 * 3)
}

#[test]
fn pictures_movies_and_pages() {
    let folder = tempfile::tempdir().unwrap();
    let run = |arguments: &str| {
        let mut command = allpairs(folder.path());
        Ended::of(command.args(arguments.split(' ')).output().unwrap())
    };
    let there = |name: &str| fs::read(folder.path().join(name)).unwrap_or_default();
    series(folder.path());

    run("render snapshot-1.csv --bare --size 64x32 --centre -0.5,0,0 --half-width 2")
        .expect(0, &["wrote snapshot-1.png"]);
    assert!(there("snapshot-1.png").starts_with(b"\x89PNG"));
    run("render snapshot-1.csv --bare --size 64x32").expect(74, &["already exists"]);
    run("render . --bare --size 64x32 --axes yz -o p.png")
        .expect(0, &["wrote p-0000.png to p-0002.png, 3 pictures"]);
    assert!(there("p-0002.png").starts_with(b"\x89PNG"));
    run("render . --size 64x32 -o m.gif").expect(0, &["wrote m.gif"]);
    assert!(there("m.gif").starts_with(b"GIF89a"));
    run("render . -o m.avi").expect(2, &["m.avi", ".mp4"]);
    run("render . --axes zx -o m.gif").expect(2, &["must be one of xy, xz, yz, got `zx`"]);
    run("render . --centre 1,2 -o m.gif").expect(2, &["2 numbers instead of three"]);
    run("render none.csv").expect(65, &["none.csv", "no such file"]);

    // Movies, by whom they are made: GIF and animated PNG by nobody else.
    for name in ["a.gif", "a.apng", "a.png"] {
        run(&format!("render . --size 64x32 --movie {name}")).expect(0, &["wrote", name]);
        let bytes = there(name);
        let pictures = if name.ends_with("gif") {
            gif_pictures(&bytes)
        } else {
            png_pictures(&bytes)
        };
        assert_eq!(pictures, 3, "{name}");
    }
    run("render . --movie m.avi").expect(2, &["m.avi", ".gif, .apng or .png"]);
    let mut command = allpairs(folder.path());
    command
        .env("PATH", "")
        .args(["render", ".", "--movie", "none.mp4"]);
    Ended::of(command.output().unwrap()).expect(2, &["made by ffmpeg", ".gif or .apng"]);
    if allpairs::output::movie::ffmpeg_is_there() {
        for name in ["a.mp4", "a.webm"] {
            run(&format!("render . --size 64x32 --movie {name}")).expect(0, &["wrote", name]);
            assert_eq!(decoded_by_ffmpeg(&folder.path().join(name)), 3, "{name}");
        }
    } else {
        eprintln!("not tested, for there is no ffmpeg here: .mp4 and .webm");
    }

    run("view . -o v.html").expect(0, &["wrote v.html", "kB"]);
    assert!(there("v.html").starts_with(b"<!doctype html>"));

    run("plot orbits . --out c --types svg").expect(0, &["wrote c/orbits.svg"]);
    assert!(String::from_utf8_lossy(&there("c/orbits.svg")).contains("body 9"));
    let chart = |ids: &str, folder: &str| {
        run(&format!(
            "plot orbits . --ids {ids} --out {folder} --types svg"
        ))
        .expect(0, &[]);
        there(&format!("{folder}/orbits.svg"))
    };
    assert!(
        chart("9,9", "twice") == chart("9", "once"),
        "a body named twice has one path"
    );
    run("plot orbits . --ids 8").expect(2, &["no body of id 8", "snapshot-0.csv"]);
}

/// Figures for papers have axes with units, a scale and the time, as pixels, SVG and PDF.
#[test]
fn figures_have_axes() {
    let folder = tempfile::tempdir().unwrap();
    let run = |arguments: &str| {
        let mut command = allpairs(folder.path());
        Ended::of(command.args(arguments.split(' ')).output().unwrap())
    };
    let there = |name: &str| fs::read(folder.path().join(name)).unwrap();
    series(folder.path());
    let figure = "render snapshot-1.csv --size 260x260 --axes xz";
    run(&format!("{figure} --units pc --half-width 2000pc -o f.svg")).expect(0, &["wrote f.svg"]);
    let svg = String::from_utf8(there("f.svg")).unwrap();
    for text in ["x [kpc]", "z [kpc]", "1 kpc", "t = 0 "] {
        assert!(svg.contains(text), "{text}: {svg}");
    }
    assert!(
        svg.matches("<circle").count() == 2 && !svg.contains("<image"),
        "{svg}"
    );
    run(&format!("{figure} -o f.pdf")).expect(0, &["wrote f.pdf"]);
    assert!(there("f.pdf").starts_with(b"%PDF-1.4"));
    run(&format!("{figure} -o f.png")).expect(0, &["wrote f.png"]);
    let png = png::Decoder::new(std::io::Cursor::new(there("f.png")));
    let size = png.read_info().unwrap().info().size();
    assert!(size.0 > 300 && size.1 > 300, "{size:?}");
    run("render snapshot-1.csv --size 64x32 -o g.png").expect(2, &["too small for axes"]);
    run("render snapshot-1.csv --bare -o g.svg").expect(2, &["a picture that is --bare is a .png"]);
    run("render snapshot-1.csv --half-width 1pc -o g.png")
        .expect(2, &["in --half-width: `1pc` has a unit"]);
    // Many bodies are a map of densities, with a bar of its colours.
    let mut command = allpairs(folder.path());
    let options = ["--axes", "xy", "--size", "260x260", "-o", "map.svg"];
    command.arg("render").arg(galaxy()).args(options);
    Ended::of(command.output().unwrap()).expect(0, &[]);
    let svg = String::from_utf8(there("map.svg")).unwrap();
    assert_eq!(svg.matches("<image").count(), 2);
    assert!(
        svg.contains("surface density [bodies per unit area]"),
        "{svg}"
    );

    run("plot orbits . --names Sun,Earth --units au --out c --types svg,pdf")
        .expect(0, &["orbits.pdf"]);
    let svg = String::from_utf8(there("c/orbits.svg")).unwrap();
    assert!(svg.contains("Earth") && svg.contains("x [au]"), "{svg}");
    run("plot orbits . --names Sun --out d").expect(2, &["1 names for 2 bodies"]);
    // Tables tell no units, and the run does.
    let of_run = "input = \"two-body\"\nunits = \"au,Msun,yr\"\n";
    fs::write(folder.path().join("run.toml"), of_run).unwrap();
    run("plot orbits . --out e --types svg").expect(0, &["orbits.svg"]);
    let svg = String::from_utf8(there("e/orbits.svg")).unwrap();
    assert!(svg.contains("x [au]"), "{svg}");
}

/// A run's snapshots are numbered, listed, and one file on request; conditions end it.
#[test]
fn snapshots_are_numbered() {
    let folder = tempfile::tempdir().unwrap();
    let run = |arguments: &str| {
        let mut command = allpairs(folder.path());
        Ended::of(command.args(arguments.split(' ')).output().unwrap())
    };
    let there = |name: &str| fs::read(folder.path().join(name)).unwrap();
    let begin = "run plummer --bodies 20 --softening 0.1 --dt 0.125 --snapshot-every 0.5 --checkpoint-every 2";
    run(&format!(
        "{begin} --until 1 --snapshot-format hdf5-gzip --out R"
    ))
    .expect(0, &[]);
    run("resume R --until 1.5").expect(0, &[]);
    let index = String::from_utf8(there("R/index.csv")).unwrap();
    assert_eq!(
        index,
        "step,number,time\n0,0,0.0\n4,1,0.5\n8,2,1.0\n12,3,1.5\n"
    );
    assert!(there("R/snapshot-00003.hdf5").starts_with(b"\x89HDF"));
    run("convert R all.npz").expect(0, &["4 snapshots of 20 bodies"]);
    assert!(there("all.npz").starts_with(b"PK"));
    run("convert R all.csv").expect(2, &["one .npz"]);

    run(&format!(
        "{begin} --until 9 --diagnostics 4 --out S --stop-if time>0.9"
    ))
    .expect(
        0,
        &[
            "stopped after step 8 by \"time>0.9\"",
            "`allpairs resume S`",
        ],
    );
    run(&format!("{begin} --until 9 --stop-if time>0.9")).expect(2, &["add --diagnostics STEPS"]);
    run(&format!("{begin} --until 9 --stop-if r11<0.9")).expect(2, &["did you mean `r10`"]);
    run("run plummer --bodies 20 --format hdf5").expect(2, &["--snapshot-format chooses"]);
}

#[test]
fn a_benchmark_becomes_a_record_and_charts() {
    let folder = tempfile::tempdir().unwrap();
    let run = |arguments: &str| {
        let mut command = allpairs(folder.path());
        Ended::of(command.args(arguments.split(' ')).output().unwrap())
    };
    run("bench --device cpu --bodies 64,128 --repetitions 2 --json b.json --csv b.csv")
        .expect(0, &["wrote b.json", "wrote b.csv"]);
    run("bench --device cpu --bodies 64 --json b.json").expect(2, &["b.json is there already"]);
    run("plot bench b.json --out c --types svg").expect(
        0,
        &[
            "c/time.svg",
            "c/speedup.svg",
            "c/rate.svg",
            "c/pareto.svg",
            "c/force-digits.svg",
        ],
    );
    run("plot bench b.csv --out c").expect(65, &["b.csv"]);
    run("plot log . --out c").expect(65, &["has no diagnostics", "--diagnostics"]);
    fs::write(
        folder.path().join("diagnostics.csv"),
        "time,energy\n0,-1\n1,-1.5\n",
    )
    .unwrap();
    run("plot log . --out c --types png").expect(0, &["c/energy-drift.png", "c/energy.png"]);
}

/// Commands that draw, too, say what a file holds that is not used, and of many files once.
#[test]
fn notes_of_readers_are_told() {
    let at = tempfile::tempdir().unwrap();
    let mut command = allpairs(at.path());
    let galaxy = galaxy();
    command.arg("render").args([&galaxy, &galaxy]);
    command.args(["--bare", "--size", "64x32", "--output", "p.png"]);
    let ended = Ended::of(command.output().unwrap());
    ended.expect(0, &["wrote"]);
    let notes = ended.complained.matches("note:").count();
    assert_eq!(notes, 1, "{ended}");
}
