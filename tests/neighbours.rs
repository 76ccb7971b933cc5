//! The neighbour scheme through the program.

use std::fs;

use crate::support::program::{code, new_folder, try_in};

const RUN: &str = "run plummer --bodies 120 --seed 1 --softening 0.01 --integrator hermite4 --eta 0.04 --dt 0.125";

#[test]
fn a_run_with_neighbours_says_so_and_goes_on_with_its_bits() {
    let at = new_folder();
    let run = format!("{RUN} --device cpu --block-steps --neighbours 20 --checkpoint-every 1");
    try_in(&at, &format!("{run} --until 0.5 --out whole")).expect(
        0,
        &[
            "about 20 neighbours of each body",
            "neighbours on average",
            "regular steps",
        ],
    );
    try_in(&at, &format!("{run} --until 0.25 --out part")).expect(0, &[]);
    try_in(&at, "resume part --until 0.5").expect(0, &["regular steps"]);
    // By its options, which the run has kept.
    try_in(&at, "run whole/run.toml --out again").expect(0, &["about 20 neighbours"]);
    let end = |folder: &str| {
        let path = at.path().join(folder).join("final.allpairs");
        fs::read(path).expect("a snapshot")
    };
    assert_eq!(end("whole"), end("part"));
    assert_eq!(end("whole"), end("again"));
    // Another number is another run.
    let config = at.path().join("part/run.toml");
    let text = fs::read_to_string(&config).expect("options");
    let text = text.replace("neighbours = \"20\"", "neighbours = 21");
    fs::write(&config, text).expect("written");
    try_in(&at, "resume part --until 0.75").expect(code::USAGE, &["says neighbours = \"21\""]);
}

#[test]
fn devices_have_neighbours() {
    let at = new_folder();
    let run = "run plummer --bodies 60 --seed 1 --softening 0.01 --integrator hermite4 --eta 0.04 --dt 0.0625 \
               --device emulator --block-steps --neighbours 10 --checkpoint-every 1";
    try_in(&at, &format!("{run} --until 0.125 --out whole")).expect(
        0,
        &[
            "pairs in f32, differences of neighbours' positions in f64",
            "regular steps",
        ],
    );
    try_in(&at, &format!("{run} --until 0.0625 --out part")).expect(0, &[]);
    try_in(&at, "resume part --until 0.125").expect(0, &["regular steps"]);
    let several = run.replace("--device emulator", "--device emulator:3");
    let several = format!("{several} --until 0.125 --out several");
    try_in(&at, &several).expect(0, &["each of 3 devices", "regular steps"]);
    let end = |folder: &str| {
        let path = at.path().join(folder).join("final.allpairs");
        fs::read(path).expect("a snapshot")
    };
    assert_eq!(end("whole"), end("part"));
    assert_eq!(end("whole"), end("several"));
}

#[test]
fn what_is_left_out_of_block_time_steps_is_chosen_and_told() {
    let at = new_folder();
    let run = "run plummer --bodies 100 --seed 1 --softening 0 --dt 0.03125 --block-steps --checkpoint-every 1";
    let chosen = "block time steps by hermite6 with --eta 0.36 (chosen: as suits pairs that are followed apart)";
    try_in(
        &at,
        &format!("{run} --device cpu --until 0.125 --out whole"),
    )
    .expect(0, &[chosen]);
    try_in(
        &at,
        &format!("{run} --device cpu --until 0.0625 --out part"),
    )
    .expect(0, &[chosen]);
    let options = fs::read_to_string(at.path().join("part/run.toml")).expect("options");
    assert!(options.contains("eta = 0.36") && options.contains("\"hermite6\""));
    try_in(&at, "resume part --until 0.125").expect(0, &[]);
    let end = |folder: &str| {
        let path = at.path().join(folder).join("final.allpairs");
        fs::read(path).expect("a snapshot")
    };
    assert_eq!(end("whole"), end("part"));
    let fourth =
        "block time steps by hermite4 with --eta 0.04 and about 64 neighbours (chosen: as suits";
    let run = "run plummer --bodies 100 --block-steps --device cpu";
    try_in(
        &at,
        &format!("{run} --until 0.01 --neighbours auto --out near"),
    )
    .expect(0, &[fourth]);
    let with_groups = [
        "block time steps by hermite6 with --eta 0.36 (chosen: as suits pairs that are followed apart)",
        "groups on: 0 pairs followed apart",
    ];
    try_in(&at, &format!("{run} --until 4 --softening 0 --out long")).expect(0, &with_groups);
}

/// Two bodies that come near each other for long have derivatives of their forces that f32 cannot hold. They do not if pairs
/// are followed apart once they are hard.
#[test]
fn unsoftened_bodies_take_f64_where_pairs_are_not_followed() {
    let at = new_folder();
    let run = "run plummer --bodies 40 --seed 1 --softening 0 --dt 0.015625 --block-steps --device emulator";
    let later = format!("{run} --until 0.015625");
    let groups = "groups later: no pairs yet";
    try_in(&at, &format!("{later} --out later"))
        .expect(0, &["pairs in f32, positions in two", groups]);
    let near = [
        "pairs in f32, differences of neighbours' positions in f64",
        groups,
        "by hermite4 with --eta 0.01 and the forces of all bodies",
        "regular steps",
    ];
    try_in(&at, &format!("{later} --neighbours 10 --out near")).expect(0, &near);
    let run = format!("{run} --groups off");
    try_in(&at, &format!("{run} --until 0.015625 --out out")).expect(0, &["pairs in f64"]);
    try_in(
        &at,
        &format!("{run} --until 0.01 --neighbours 10 --out other"),
    )
    .expect(code::USAGE, &["not softened", "--device cpu"]);
}

#[test]
fn what_has_no_neighbours_is_refused() {
    let at = new_folder();
    for (options, code, texts) in [
        (
            "--neighbours auto",
            code::USAGE,
            ["--neighbours needs --block-steps", ""],
        ),
        (
            "--block-steps --neighbours auto --integrator hermite6",
            code::USAGE,
            ["--neighbours needs --integrator hermite4", "not hermite6"],
        ),
        (
            "--block-steps --neighbours 0",
            code::USAGE,
            ["`auto` or a number from 1 on", "0"],
        ),
        (
            "--block-steps --neighbours auto --device emulator --accuracy double",
            code::USAGE,
            ["computes pairs in f32", "--device cpu"],
        ),
        (
            "--block-steps --neighbours auto --device cpu --accuracy single",
            code::USAGE,
            [
                "CPU computes pairs in double precision",
                "--accuracy double",
            ],
        ),
        (
            "--block-steps --neighbours auto --device cpu --field 1pn:c=1000",
            code::USAGE,
            ["leave out --neighbours", "leave out --field 1pn"],
        ),
    ] {
        let options = format!("{RUN} --until 0.125 --out none {options}");
        let options = match options.matches("--integrator").count() {
            2 => options.replace("--integrator hermite4 ", ""),
            _ => options,
        };
        try_in(&at, &options).expect(code, &texts);
    }
}
