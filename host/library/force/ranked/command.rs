//! Commands that rank 0 gives to the others, as 64-bit words.

use gpu_kernels::entries::Row;
use gpu_kernels::numerics::Precision;
use gpu_kernels::schedule::block_steps::DigitsName;

use crate::backend::{COLUMNS, HighestDerivative, Operation, SavedState};
use crate::bodies::{Bodies, BodyKind};
use crate::force::cpu::Choices;
use crate::frame::Frame;
use crate::physics::{ForceLaw, Physics};
use crate::plan::block_steps::BlockScheme;
use crate::ranks::{Team, Way};
use crate::variants::{
    self, Build, Gpus, Method, PairsName, Positions, Queues, RootName, SystemsPath, Threads,
    Transfers, Variant,
};

/// Something that all ranks are to do together.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Command {
    /// Nothing: rank 0 is there, and busy with other things.
    Wait,
    /// Part.
    Part,
    /// Take a system over.
    Begin(Box<Begin>),
    /// [`Backend::set_time`](crate::backend::Backend::set_time).
    SetTime(f64),
    /// [`Backend::reach`](crate::backend::Backend::reach).
    Reach(f64, f64),
    /// [`Backend::repeat`](crate::backend::Backend::repeat).
    Repeat(u64, Vec<Operation>),
    /// [`Hermite::first_step`](crate::backend::Hermite::first_step) with η and the longest step.
    FirstStep(f64, f64),
    /// [`BlockSteps::advance`](crate::backend::BlockSteps::advance) by a span with η.
    Advance(f64, f64),
    /// [`Backend::energy`](crate::backend::Backend::energy).
    Energy,
    /// [`Backend::restore`](crate::backend::Backend::restore).
    Restore(Box<SavedState>),
    /// Say what GPUs there are.
    Gpus,
    /// Say this of independent systems, of which each rank has its own.
    Gathered(Asked),
}

/// Something that all ranks have a part of.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Asked {
    /// [`Backend::save`](crate::backend::Backend::save).
    State,
    /// [`Backend::download`](crate::backend::Backend::download), of so many bodies.
    Bodies(u64),
    /// [`Backend::accelerations`](crate::backend::Backend::accelerations).
    Accelerations,
    /// [`Backend::synchronize`](crate::backend::Backend::synchronize).
    End,
    /// [`Pipeline::seconds`](crate::backend::Pipeline::seconds) of steps of this length, and so many.
    Seconds(f64, u32),
}

/// A system, or several independent ones, and how they are computed. What the forces do not depend on is left out
/// of the bodies.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Begin {
    pub(super) physics: Physics,
    pub(super) means: Means,
    pub(super) bodies: Bodies,
    /// Independent systems of equal size that these are, one after another.
    pub(super) systems: u32,
    /// External fields, [as numbers](crate::fields::Fields::to_numbers).
    pub(super) fields: Vec<f64>,
}

/// Means to compute forces.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Means {
    /// The CPU of each rank; with so many neighbours in block time steps, if it is a scheme with these.
    Cpu(Precision, Choices, Option<u32>),
    /// A device of each rank, which compute one system together.
    Devices(Kernel, Frame, Devices),
    /// A device of each rank, which computes systems of its own.
    Systems(SystemsPath, Frame, Devices),
}

/// A variant of kernels that can be shared, without its name.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Kernel {
    row: Row,
    build: Build,
    block: u32,
    by_masses: bool,
    /// Block time steps, if they are taken.
    pub(super) blocks: Option<BlockScheme>,
}

/// A device for each rank.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Devices {
    /// An emulator, which runs threads in the order of this seed.
    Emulators(u64),
    /// The GPU of this number, and the way between them.
    Gpus(Vec<u32>, Way),
}

/// Words of a command that are broadcast at once; the first is their number.
const AT_ONCE: usize = 16;

const LAWS: usize = 3;
const PRECISIONS: [Precision; 2] = [Precision::F64, Precision::F32];
const ROOTS: [RootName; 3] = [RootName::Exact, RootName::Refined, RootName::Estimated];
const PAIRS: [PairsName; 3] = [PairsName::Twice, PairsName::Once, PairsName::ByNumber];
const THREADS: [Threads; 2] = [Threads::All, Threads::One];
const DIGITS: [DigitsName; 3] = [DigitsName::Single, DigitsName::Mixed, DigitsName::Double];
const WAYS: [Way; 2] = [Way::Hosts, Way::Nccl];
const BUILDS: [Build; 2] = [Build::Precise, Build::Ftz];
const TRANSFERS: [Transfers; 3] = [
    Transfers::Apart,
    Transfers::DepthFirst,
    Transfers::BreadthFirst,
];
const GPUS: [Gpus; 2] = [Gpus::One, Gpus::All];
const DERIVATIVES: [HighestDerivative; 3] = [
    HighestDerivative::None,
    HighestDerivative::Jerk,
    HighestDerivative::Snap,
];

impl Command {
    /// Tells the other ranks, as rank 0.
    pub(super) fn tell(&self, team: &Team) {
        let words = self.to_words();
        let mut first = [0; AT_ONCE];
        first[0] = words.len() as u64;
        let at_once = words.len().min(AT_ONCE - 1);
        first[1..=at_once].copy_from_slice(&words[..at_once]);
        team.broadcast(&mut first);
        if let Some(rest) = words.get(AT_ONCE - 1..).filter(|rest| !rest.is_empty()) {
            team.broadcast(&mut rest.to_vec());
        }
    }

    /// Waits for what rank 0 tells.
    pub(super) fn hear(team: &Team) -> Self {
        let mut first = [0_u64; AT_ONCE];
        team.broadcast(&mut first);
        let count = first[0] as usize;
        let mut words = first[1..].to_vec();
        words.resize(count, 0);
        if count >= AT_ONCE {
            team.broadcast(&mut words[AT_ONCE - 1..]);
        }
        Self::from_words(&mut Reader(&words))
    }

    fn to_words(&self) -> Vec<u64> {
        let mut words = Writer(vec![]);
        match self {
            Self::Wait => words.number(0),
            Self::Part => words.number(1),
            Self::Begin(begin) => {
                words.number(2);
                begin.write(&mut words);
            }
            Self::SetTime(time) => {
                words.number(3);
                words.real(*time);
            }
            Self::Repeat(times, step) => {
                words.number(4);
                words.number(*times);
                words.number(step.len() as u64);
                step.iter()
                    .for_each(|&part| write_operation(part, &mut words));
            }
            Self::FirstStep(eta, longest) => {
                words.number(5);
                words.reals(&[*eta, *longest]);
            }
            Self::Advance(span, eta) => {
                words.number(6);
                words.reals(&[*span, *eta]);
            }
            Self::Energy => words.number(7),
            Self::Restore(saved) => {
                words.number(8);
                write_state(saved, &mut words);
            }
            Self::Gpus => words.number(9),
            Self::Reach(from, to) => {
                words.number(10);
                words.reals(&[*from, *to]);
            }
            Self::Gathered(asked) => {
                words.number(11);
                asked.write(&mut words);
            }
        }
        words.0
    }

    fn from_words(words: &mut Reader<'_>) -> Self {
        match words.number() {
            0 => Self::Wait,
            1 => Self::Part,
            2 => Self::Begin(Box::new(Begin::read(words))),
            3 => Self::SetTime(words.real()),
            4 => {
                let (times, count) = (words.number(), words.number());
                Self::Repeat(times, (0..count).map(|_| read_operation(words)).collect())
            }
            5 => Self::FirstStep(words.real(), words.real()),
            6 => Self::Advance(words.real(), words.real()),
            7 => Self::Energy,
            8 => Self::Restore(Box::new(read_state(words))),
            9 => Self::Gpus,
            10 => Self::Reach(words.real(), words.real()),
            11 => Self::Gathered(Asked::read(words)),
            other => unreachable!("ranks of one version know no command {other}"),
        }
    }
}

impl Asked {
    fn write(self, words: &mut Writer) {
        match self {
            Self::State => words.number(0),
            Self::Bodies(count) => {
                words.number(1);
                words.number(count);
            }
            Self::Accelerations => words.number(2),
            Self::End => words.number(3),
            Self::Seconds(dt, steps) => {
                words.number(4);
                words.real(dt);
                words.number(steps.into());
            }
        }
    }

    fn read(words: &mut Reader<'_>) -> Self {
        match words.number() {
            0 => Self::State,
            1 => Self::Bodies(words.number()),
            2 => Self::Accelerations,
            3 => Self::End,
            4 => Self::Seconds(words.real(), words.number() as u32),
            other => unreachable!("ranks of one version ask for no {other}"),
        }
    }
}

impl Begin {
    fn write(&self, words: &mut Writer) {
        let Physics { law, g, softening } = self.physics;
        let (law, constants) = match law {
            ForceLaw::Unit => (0, [0.0; 2]),
            ForceLaw::Gravity => (1, [0.0; 2]),
            ForceLaw::AttractRepel { repulsion, damping } => (2, [repulsion, damping]),
        };
        words.number(law);
        words.reals(&constants);
        words.reals(&[g, softening]);
        self.means.write(words);
        let Bodies {
            x,
            y,
            z,
            vx,
            vy,
            vz,
            mass,
            id: _,
            kind: _,
        } = &self.bodies;
        words.number(mass.len() as u64);
        for column in [x, y, z, vx, vy, vz, mass] {
            words.reals(column);
        }
        words.number(self.systems.into());
        words.number(self.fields.len() as u64);
        words.reals(&self.fields);
    }

    fn read(words: &mut Reader<'_>) -> Self {
        let law = words.number() as usize;
        let [repulsion, damping] = [words.real(), words.real()];
        let laws: [ForceLaw; LAWS] = [
            ForceLaw::Unit,
            ForceLaw::Gravity,
            ForceLaw::AttractRepel { repulsion, damping },
        ];
        let physics = Physics {
            law: laws[law],
            g: words.real(),
            softening: words.real(),
        };
        let means = Means::read(words);
        let n = words.number() as usize;
        let mut column = || words.reals(n).to_vec();
        let [x, y, z, vx, vy, vz, mass] = [(); 7].map(|()| column());
        let bodies = Bodies {
            x,
            y,
            z,
            vx,
            vy,
            vz,
            mass,
            id: (0..n as u64).collect(),
            kind: vec![BodyKind::Star; n],
        };
        let systems = words.number() as u32;
        let count = words.number() as usize;
        let fields = words.reals(count).to_vec();
        Self {
            physics,
            means,
            bodies,
            systems,
            fields,
        }
    }
}

impl Means {
    fn write(&self, words: &mut Writer) {
        match self {
            Self::Cpu(precision, choices, wanted) => {
                words.number(0);
                words.number(place(&PRECISIONS, *precision));
                words.number(place(&ROOTS, choices.root));
                words.number(place(&PAIRS, choices.pairs));
                words.number(place(&THREADS, choices.threads));
                words.number_if_any(*wanted);
            }
            Self::Devices(kernel, frame, devices) => {
                words.number(1);
                words.text(kernel.row.name);
                words.number(place(&BUILDS, kernel.build));
                words.number(kernel.block.into());
                words.number(kernel.by_masses.into());
                write_scheme(kernel.blocks, words);
                write_frame(frame, words);
                devices.write(words);
            }
            Self::Systems(path, frame, devices) => {
                words.number(2);
                write_path(path, words);
                write_frame(frame, words);
                devices.write(words);
            }
        }
    }

    fn read(words: &mut Reader<'_>) -> Self {
        match words.number() {
            0 => {
                let precision = PRECISIONS[words.number() as usize];
                let choices = Choices {
                    root: ROOTS[words.number() as usize],
                    pairs: PAIRS[words.number() as usize],
                    threads: THREADS[words.number() as usize],
                    ..Choices::default()
                };
                Self::Cpu(precision, choices, words.number_if_any())
            }
            1 => {
                let kernel = Kernel {
                    row: Row::named(&words.text()),
                    build: BUILDS[words.number() as usize],
                    block: words.number() as u32,
                    by_masses: words.number() != 0,
                    blocks: read_scheme(words),
                };
                Self::Devices(kernel, read_frame(words), Devices::read(words))
            }
            2 => Self::Systems(read_path(words), read_frame(words), Devices::read(words)),
            other => unreachable!("ranks of one version know no means {other}"),
        }
    }
}

impl Devices {
    fn write(&self, words: &mut Writer) {
        match self {
            Self::Emulators(seed) => {
                words.number(0);
                words.number(*seed);
            }
            Self::Gpus(numbers, way) => {
                words.number(numbers.len() as u64);
                numbers.iter().for_each(|&gpu| words.number(gpu.into()));
                words.number(place(&WAYS, *way));
            }
        }
    }

    fn read(words: &mut Reader<'_>) -> Self {
        match words.number() {
            0 => Self::Emulators(words.number()),
            ranks => {
                let numbers = (0..ranks).map(|_| words.number() as u32).collect();
                Self::Gpus(numbers, WAYS[words.number() as usize])
            }
        }
    }
}

fn write_scheme(scheme: Option<BlockScheme>, words: &mut Writer) {
    let Some(scheme) = scheme else {
        words.number(0);
        return;
    };
    let BlockScheme {
        order,
        digits,
        slices,
        neighbours,
    } = scheme;
    words.number(order.into());
    words.number(place(&DIGITS, digits));
    words.number(slices.into());
    words.number_if_any(neighbours);
}

fn read_scheme(words: &mut Reader<'_>) -> Option<BlockScheme> {
    match words.number() {
        0 => None,
        order => Some(BlockScheme {
            order: order as u32,
            digits: DIGITS[words.number() as usize],
            slices: words.number() as u32,
            neighbours: words.number_if_any(),
        }),
    }
}

fn write_path(path: &SystemsPath, words: &mut Writer) {
    let SystemsPath {
        row,
        build,
        block,
        tile,
        queues,
        transfers,
        gpus,
        by_masses,
    } = *path;
    words.text(row.name);
    words.number(place(&BUILDS, build));
    words.number(block.into());
    words.number_if_any(tile);
    let (queues, streams) = match queues {
        Queues::Together => (0, 1),
        Queues::UpTo(streams) => (1, streams),
        Queues::Exactly(streams) => (2, streams),
    };
    words.number(queues);
    words.number(streams.into());
    words.number(place(&TRANSFERS, transfers));
    words.number(place(&GPUS, gpus));
    words.number(by_masses.into());
}

fn read_path(words: &mut Reader<'_>) -> SystemsPath {
    SystemsPath {
        row: Row::named(&words.text()),
        build: BUILDS[words.number() as usize],
        block: words.number() as u32,
        tile: words.number_if_any(),
        queues: match (words.number(), words.number() as u32) {
            (0, _) => Queues::Together,
            (1, streams) => Queues::UpTo(streams),
            (2, streams) => Queues::Exactly(streams),
            (other, _) => unreachable!("ranks of one version know no queues {other}"),
        },
        transfers: TRANSFERS[words.number() as usize],
        gpus: GPUS[words.number() as usize],
        by_masses: words.number() != 0,
    }
}

impl Kernel {
    /// That of a variant, if ranks can compute by it together.
    pub(super) fn of(variant: &Variant) -> Option<Self> {
        match variant.method {
            Method::Kernel {
                row,
                build,
                block,
                positions: Positions::Device,
                split: None,
                fitted: _, // which says how to split
                by_masses,
            } if variant.can_be_shared() && variant.systems == 1 => Some(Self {
                row,
                build,
                block,
                by_masses,
                blocks: None,
            }),
            _ => None,
        }
    }

    /// With block time steps, if there is a scheme.
    #[must_use]
    pub(super) fn with_blocks(self, blocks: Option<BlockScheme>) -> Self {
        Self { blocks, ..self }
    }

    /// The build that its steps take.
    pub(super) fn build(&self) -> Build {
        match self.blocks {
            Some(scheme) => self.build.of_blocks(scheme.digits),
            None => self.build,
        }
    }

    /// The variant.
    pub(super) fn variant(self) -> Variant {
        let method = Method::Kernel {
            row: self.row,
            build: self.build,
            block: self.block,
            positions: Positions::Device,
            split: None,
            fitted: &[],
            by_masses: self.by_masses,
        };
        variants::first("", method, "")
    }
}

/// Place of a value in a list that has it.
fn place<T: Copy + PartialEq>(list: &[T], value: T) -> u64 {
    let place = list.iter().position(|&listed| listed == value);
    place.expect("the list is complete") as u64
}

fn write_operation(operation: Operation, words: &mut Writer) {
    let (code, number) = match operation {
        Operation::Damp(factor) => (0, factor.to_bits()),
        Operation::Evaluate(derivatives) => (1, place(&DERIVATIVES, derivatives)),
        Operation::Kick(dt) => (2, dt.to_bits()),
        Operation::Drift(dt) => (3, dt.to_bits()),
        Operation::Predict(dt) => (4, dt.to_bits()),
        Operation::Correct(dt) => (5, dt.to_bits()),
    };
    words.number(code);
    words.number(number);
}

fn read_operation(words: &mut Reader<'_>) -> Operation {
    let (code, number) = (words.number(), words.number());
    let real = f64::from_bits(number);
    match code {
        0 => Operation::Damp(real),
        1 => Operation::Evaluate(DERIVATIVES[number as usize]),
        2 => Operation::Kick(real),
        3 => Operation::Drift(real),
        4 => Operation::Predict(real),
        5 => Operation::Correct(real),
        other => unreachable!("ranks of one version know no operation {other}"),
    }
}

pub(super) fn write_state(saved: &SavedState, words: &mut Writer) {
    write_frame(&saved.frame, words);
    for row in &COLUMNS {
        let numbers = saved.column(row.column);
        words.number(numbers.len() as u64);
        words.reals(numbers);
    }
}

fn write_frame(frame: &Frame, words: &mut Writer) {
    words.reals(&frame.centre);
    words.reals(&[frame.length, frame.mass, frame.time]);
}

fn read_frame(words: &mut Reader<'_>) -> Frame {
    Frame {
        centre: [words.real(), words.real(), words.real()],
        length: words.real(),
        mass: words.real(),
        time: words.real(),
    }
}

pub(super) fn read_state(words: &mut Reader<'_>) -> SavedState {
    SavedState::of(read_frame(words), |_| {
        let count = words.number() as usize;
        words.reals(count).to_vec()
    })
}

pub(super) struct Writer(pub(super) Vec<u64>);

impl Writer {
    pub(super) fn number(&mut self, number: u64) {
        self.0.push(number);
    }

    /// A number, or none.
    fn number_if_any(&mut self, number: Option<u32>) {
        self.number(number.is_some().into());
        self.number(number.unwrap_or(0).into());
    }

    pub(super) fn text(&mut self, text: &str) {
        self.number(text.len() as u64);
        self.0.extend(text.bytes().map(u64::from));
    }

    fn real(&mut self, real: f64) {
        self.0.push(real.to_bits());
    }

    fn reals(&mut self, reals: &[f64]) {
        self.0.extend_from_slice(bytemuck::cast_slice(reals));
    }
}

/// Words that are left to read. They were written by the same version of the program.
pub(super) struct Reader<'a>(pub(super) &'a [u64]);

impl<'a> Reader<'a> {
    pub(super) fn number(&mut self) -> u64 {
        self.take(1)[0]
    }

    /// Inverse of [`Writer::number_if_any`].
    fn number_if_any(&mut self) -> Option<u32> {
        let (is_some, number) = (self.number() != 0, self.number() as u32);
        is_some.then_some(number)
    }

    pub(super) fn text(&mut self) -> String {
        let length = self.number() as usize;
        let bytes = self.take(length).iter().map(|&byte| byte as u8).collect();
        String::from_utf8(bytes).expect("it was a text")
    }

    fn real(&mut self) -> f64 {
        f64::from_bits(self.number())
    }

    fn reals(&mut self, count: usize) -> &'a [f64] {
        bytemuck::cast_slice(self.take(count))
    }

    fn take(&mut self, count: usize) -> &'a [u64] {
        let (taken, rest) = self.0.split_at(count);
        self.0 = rest;
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::Column;
    use crate::force::cpu::samples::cloud;
    use crate::ranks::threads::together_with;

    fn begin(law: ForceLaw, n: usize, means: Means) -> Command {
        let physics = Physics {
            law,
            g: 2.0,
            softening: 0.25,
        };
        Command::Begin(Box::new(Begin {
            physics,
            means,
            bodies: Bodies {
                id: (0..n as u64).collect(),
                ..cloud(n, 1)
            },
            systems: 1 + n as u32,
            fields: vec![0.5; n % 7],
        }))
    }

    #[test]
    fn others_hear_what_was_told() {
        let operations = [
            Operation::Damp(0.5),
            Operation::Evaluate(HighestDerivative::None),
            Operation::Evaluate(HighestDerivative::Snap),
            Operation::Kick(-0.5),
            Operation::Drift(f64::INFINITY),
            Operation::Predict(0.1),
            Operation::Correct(0.1),
        ];
        let repulsion = ForceLaw::AttractRepel {
            repulsion: 0.1,
            damping: 0.2,
        };
        let saved = |n: usize, jerks: usize| {
            SavedState::of(Frame::IDENTITY, |column| {
                let bodies = match column {
                    Column::Positions | Column::Velocities | Column::Accelerations => n,
                    _ => jerks,
                };
                let each = column.units().len();
                (0..each * bodies).map(|k| 1.0 / k as f64).collect()
            })
        };
        let choices = Choices {
            root: RootName::Exact,
            pairs: PairsName::Once,
            ..Choices::default()
        };
        let on_cpu = Means::Cpu(Precision::F32, choices, Some(64));
        let on = |kernel: &str, blocks, devices| {
            let kernel = Kernel::of(variants::find(kernel).expect("listed")).expect("shared");
            let frame = Frame {
                time: 0.5,
                ..Frame::IDENTITY
            };
            Means::Devices(Kernel { blocks, ..kernel }, frame, devices)
        };
        let blocks = |digits| {
            let (order, slices) = (6, 132);
            Some(BlockScheme {
                order,
                digits,
                slices,
                neighbours: (digits == DigitsName::Mixed).then_some(64),
            })
        };
        let mut commands = vec![
            Command::Wait,
            Command::Part,
            Command::Gpus,
            begin(ForceLaw::Gravity, 0, on_cpu),
            begin(
                ForceLaw::Unit,
                1,
                on("symmetric", None, Devices::Emulators(7)),
            ),
            begin(
                repulsion,
                100,
                on("hermite-f64", None, Devices::Gpus(vec![2, 0, 1], Way::Nccl)),
            ),
            Command::SetTime(-1.5),
            Command::FirstStep(0.02, f64::INFINITY),
            Command::Reach(-0.5, 2.0),
            Command::Advance(0.25, 0.01),
            Command::Energy,
            Command::Restore(Box::new(saved(3, 0))),
            Command::Restore(Box::new(saved(40, 40))),
            Command::Gathered(Asked::State),
            Command::Gathered(Asked::Bodies(u64::MAX)),
            Command::Gathered(Asked::Accelerations),
            Command::Gathered(Asked::End),
            Command::Gathered(Asked::Seconds(0.25, 7)),
        ];
        for digits in DIGITS {
            let means = on("hermite-f64", blocks(digits), Devices::Emulators(0));
            commands.push(begin(ForceLaw::Gravity, 3, means));
        }
        let of_systems = variants::VARIANTS.iter().filter_map(|v| match v.method {
            Method::Systems(path) => Some(path),
            _ => None,
        });
        let mut paths: Vec<_> = of_systems.collect();
        let of_tiles = *paths.first().expect("there are some");
        paths.push(of_tiles.tile(0).on_all_gpus());
        for queues in [Queues::UpTo(3), Queues::Exactly(5)] {
            paths.push(of_tiles.queued(queues).copied(Transfers::DepthFirst));
        }
        for path in paths {
            let means =
                Means::Systems(path, Frame::IDENTITY, Devices::Gpus(vec![0, 3], Way::Hosts));
            commands.push(begin(ForceLaw::Gravity, 2, means));
        }
        // Lengths on both sides of what is told at once.
        for count in 0..=operations.len() {
            commands.push(Command::Repeat(u64::MAX, operations[..count].to_vec()));
        }
        let heard = together_with(&[1, 1, 1], |team| match team.rank() {
            0 => {
                commands.iter().for_each(|command| command.tell(&team));
                commands.clone()
            }
            _ => commands.iter().map(|_| Command::hear(&team)).collect(),
        });
        assert!(heard.iter().all(|heard| *heard == commands));
    }

    /// All variants that devices of one process share, ranks share too.
    #[test]
    fn variants_are_told() {
        for variant in variants::VARIANTS {
            let kernel = Kernel::of(variant);
            assert_eq!(
                kernel.is_some(),
                variant.can_be_shared(),
                "{}",
                variant.name
            );
            if let Some(kernel) = kernel {
                assert_eq!(kernel.variant().method, variant.method, "{}", variant.name);
            }
        }
    }
}
