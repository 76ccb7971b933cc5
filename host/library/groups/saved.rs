//! Groups as numbers, for states that are saved.

use super::multiple::{Body, HardPair, Multiple};
use super::{CAPACITY, Chain, Group, Groups, Inner, Pair, Partner, Ring, Scales, Tight, Zone};

const ZONES: [Zone; 4] = [Zone::Felt, Zone::Mean, Zone::Impulses, Zone::Close];

/// Numbers that are read in turn.
struct Reader<'a>(std::slice::Iter<'a, f64>);

impl Reader<'_> {
    fn number(&mut self) -> Option<f64> {
        self.0.next().copied()
    }

    fn numbers<const N: usize>(&mut self) -> Option<[f64; N]> {
        let mut numbers = [0.0; N];
        for number in &mut numbers {
            *number = self.number()?;
        }
        Some(numbers)
    }

    fn index(&mut self, below: usize) -> Option<usize> {
        let number = self.number()?;
        let is_index = number >= 0.0 && number < below as f64 && number.fract() == 0.0;
        is_index.then_some(number as usize)
    }

    fn peek(&self) -> Option<f64> {
        self.0.clone().next().copied()
    }

    /// A number of things, with the sign that says that they come.
    fn opposite(&mut self, below: usize) -> Option<usize> {
        let number = -self.number()?;
        let is_count = number < below as f64 && number.fract() == 0.0;
        is_count.then_some(number as usize)
    }

    fn flag(&mut self) -> Option<bool> {
        Some(self.index(2)? == 1)
    }
}

impl Groups {
    /// The groups as numbers, with the position and velocity of each as a whole.
    pub(crate) fn numbers(&self, phase: impl Fn(usize) -> ([f64; 3], [f64; 3])) -> Vec<f64> {
        let mut numbers = vec![
            self.scales.time,
            self.scales.speed_squared,
            self.all.len() as f64,
        ];
        for group in &self.all {
            let (x, v) = phase(group.slot);
            numbers.extend(x.into_iter().chain(v));
            group.put(&mut numbers);
        }
        numbers
    }

    /// The groups that have these numbers, among bodies of these masses; their masses times G are `coupling` times
    /// as much. Also the place of each as a whole. None where the numbers are no groups.
    pub(crate) fn of_numbers(
        numbers: &[f64],
        masses: Vec<f64>,
        coupling: f64,
    ) -> Option<(Self, Vec<[[f64; 3]; 2]>)> {
        let mut reader = Reader(numbers.iter());
        let [time, speed_squared] = reader.numbers()?;
        let massive = masses.iter().filter(|&&mass| mass != 0.0).count();
        let gm = coupling * masses.iter().sum::<f64>();
        let scales = Scales::new(time, speed_squared, massive, gm);
        let count = reader.index(masses.len())?;
        let (mut all, mut phases) = (vec![], vec![]);
        for _ in 0..count {
            phases.push([reader.numbers()?, reader.numbers()?]);
            all.push(Group::read(&mut reader, &masses, coupling)?);
        }
        let is_sorted = all.is_sorted_by_key(|group: &Group| group.slot);
        let mut seen = vec![false; masses.len()];
        let members = all.iter().flat_map(|group| &group.members);
        let is_disjoint = members
            .copied()
            .all(|i| !std::mem::replace(&mut seen[i], true));
        let is_whole = is_sorted && is_disjoint && reader.0.next().is_none();
        is_whole.then(|| (Self::new(scales, all, coupling, masses), phases))
    }
}

impl Group {
    fn put(&self, numbers: &mut Vec<f64>) {
        let flag = |is_set: bool| f64::from(u8::from(is_set));
        let count = self.members.len() as f64;
        numbers.push(if self.is_nested() { -count } else { count });
        numbers.extend(self.members.iter().map(|&i| i as f64));
        if self.is_nested() {
            numbers.extend(self.tight.map(|tight| flag(tight.is_some())));
            for tight in self.tight.iter().flatten() {
                put_pair(&tight.pair, numbers);
            }
        }
        match &self.inner {
            Inner::Pair(pair) => put_pair(pair, numbers),
            Inner::Multiple(multiple) => put_multiple(multiple, numbers),
        }
        numbers.extend([
            self.slowdown,
            self.size,
            self.period,
            flag(self.is_passing),
            self.nearest_by_tide,
            self.nearest,
            self.owed,
            flag(self.is_new),
            flag(self.ring.is_some()),
        ]);
        numbers.extend(self.ring.iter().flat_map(Ring::numbers));
        numbers.push(self.partners.len() as f64);
        for partner in &self.partners {
            numbers.extend([partner.slot as f64, partner.zone as u8 as f64]);
        }
    }

    fn read(reader: &mut Reader<'_>, masses: &[f64], coupling: f64) -> Option<Self> {
        let n = masses.len();
        let is_nested = reader.peek()? < 0.0;
        let count = match is_nested {
            true => reader.opposite(CAPACITY + 1)?,
            false => reader.index(CAPACITY + 1)?,
        };
        let members: Vec<usize> = (0..count).map(|_| reader.index(n)).collect::<Option<_>>()?;
        let mut gm: Vec<f64> = members.iter().map(|&i| coupling * masses[i]).collect();
        let mut tight = [None; 2];
        if is_nested {
            (tight, gm) = read_tight(reader, &gm)?;
        }
        let inner = match gm.len() {
            0 | 1 => return None,
            2 => Inner::Pair(read_pair(reader)?),
            _ => Inner::Multiple(Box::new(read_multiple(reader, &gm)?)),
        };
        let [slowdown, size, period] = reader.numbers()?;
        let is_passing = reader.flag()?;
        let [nearest_by_tide, nearest, owed] = reader.numbers()?;
        let is_new = reader.flag()?;
        let ring = match reader.flag()? {
            true => Some(Ring::of_numbers(reader.numbers()?)),
            false => None,
        };
        let partners = reader.index(n)?;
        let partners = (0..partners).map(|_| {
            Some(Partner {
                slot: reader.index(n)?,
                zone: ZONES[reader.index(ZONES.len())?],
            })
        });
        Some(Self {
            slot: *members.iter().min()?,
            partners: partners.collect::<Option<_>>()?,
            members,
            gm,
            inner,
            tight,
            slowdown,
            size,
            period,
            is_passing,
            ring,
            nearest_by_tide,
            nearest,
            owed,
            is_new,
        })
    }
}

/// The tight pairs among the bodies of a pair whose members have these masses times G, and the masses of the bodies.
fn read_tight(reader: &mut Reader<'_>, gm: &[f64]) -> Option<([Option<Tight>; 2], Vec<f64>)> {
    let are_tight = [reader.flag()?, reader.flag()?];
    let (mut tight, mut of_bodies, mut members) = ([None; 2], vec![], gm);
    for (tight, is_tight) in tight.iter_mut().zip(are_tight) {
        let of_body = members.split_off(..1 + usize::from(is_tight))?;
        of_bodies.push(of_body.iter().sum());
        if let &[one, other] = of_body {
            *tight = Some(Tight {
                gm: [one, other],
                pair: read_pair(reader)?,
            });
        }
    }
    let is_whole = members.is_empty() && are_tight != [false; 2];
    is_whole.then_some((tight, of_bodies))
}

fn put_pair(pair: &Pair, numbers: &mut Vec<f64>) {
    numbers.extend(pair.u.iter().chain(&pair.p));
    numbers.extend([pair.beta, pair.mu, pair.time, pair.step]);
}

fn read_pair(reader: &mut Reader<'_>) -> Option<Pair> {
    let [u, p] = [reader.numbers()?, reader.numbers()?];
    let [beta, mu, time, step] = reader.numbers()?;
    Some(Pair {
        u,
        p,
        beta,
        mu,
        time,
        step,
    })
}

/// Hard pairs of a multiple come before its chain, and before them their number with a sign: older states, which
/// have none, begin with the chain.
fn put_multiple(multiple: &Multiple, numbers: &mut Vec<f64>) {
    let hard = || multiple.hard_pairs();
    if hard().next().is_some() {
        numbers.push(-(hard().count() as f64));
    }
    for HardPair { members, pair } in hard() {
        numbers.extend(members.map(|k| k as f64));
        put_pair(pair, numbers);
    }
    put_chain(&multiple.chain, numbers);
}

fn read_multiple(reader: &mut Reader<'_>, gm: &[f64]) -> Option<Multiple> {
    let mut bodies: Vec<Body> = (0..gm.len()).map(Body::One).collect();
    if reader.peek().is_some_and(|number| number < 0.0) {
        for _ in 0..reader.opposite(CAPACITY / 2 + 1)? {
            let [one, other] = [reader.index(gm.len())?, reader.index(gm.len())?];
            let place = |member: usize| bodies.iter().position(|body| *body == Body::One(member));
            let places = [place(one)?, place(other)?];
            (one != other).then_some(())?;
            let members = [one, other];
            let pair = read_pair(reader)?;
            bodies[places[0]] = Body::Hard(HardPair { members, pair });
            bodies.remove(places[1]);
        }
    }
    let masses: Vec<f64> = bodies.iter().map(|body| body.gm(gm)).collect();
    (masses.len() >= 2).then_some(())?;
    Some(Multiple {
        chain: read_chain(reader, &masses)?,
        bodies,
    })
}

fn put_chain(chain: &Chain, numbers: &mut Vec<f64>) {
    let links = chain.count - 1;
    numbers.extend(chain.order().iter().map(|&k| k as f64));
    for vectors in [&chain.links, &chain.rates] {
        numbers.extend(vectors[..links].as_flattened());
    }
    numbers.extend([chain.binding, chain.time, chain.step]);
}

fn read_chain(reader: &mut Reader<'_>, gm: &[f64]) -> Option<Chain> {
    let count = gm.len();
    let mut chain = Chain {
        count,
        order: [0; CAPACITY],
        masses: [0.0; CAPACITY],
        links: [[0.0; 3]; CAPACITY],
        rates: [[0.0; 3]; CAPACITY],
        binding: 0.0,
        time: 0.0,
        step: 0.0,
    };
    let mut seen = [false; CAPACITY];
    for k in 0..count {
        let number = reader.index(count)?;
        if std::mem::replace(&mut seen[number], true) {
            return None;
        }
        chain.order[k] = number;
        chain.masses[k] = gm[number];
    }
    for k in 0..count - 1 {
        chain.links[k] = reader.numbers()?;
    }
    for k in 0..count - 1 {
        chain.rates[k] = reader.numbers()?;
    }
    [chain.binding, chain.time, chain.step] = reader.numbers()?;
    Some(chain)
}
