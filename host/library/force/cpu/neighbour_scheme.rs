//! The neighbour scheme of Ahmad & Cohen (1973, J. Comput. Phys. 12, 389) with Hermite's scheme of
//! fourth order and block time steps (Makino & Aarseth 1992, PASJ 44, 141).
//!
//! The force on a body has two parts: the *irregular* one, of the bodies in a sphere about it, and
//! the *regular* one, of all others. The irregular one is computed in each step of the body. Regular
//! steps are longer, by whole halvings of the span like the others; in between, the regular part is
//! extrapolated linearly. At the end of a regular step the body is corrected by what the extrapolation
//! missed, and takes the neighbours that its sphere has now.
//!
//! Forces before and after that belong to different lists. One sweep over all bodies gives the sum
//! outside of the new list; the regular force of the old one is that, plus the irregular force of the
//! new list, minus that of the old, all at the same predicted places. So nothing is compared, and no
//! derivative needs a correction.
//!
//! A span begins with lists from the spheres, and with the regular force as what the whole one of where
//! bodies are leaves: a radius and a regular step of each body are all that must be kept from span to
//! span.
//!
//! Ranks share the bodies whose forces are computed: each has the lists of [its own](crate::ranks::Team), and hands on
//! sums over them.

use bytemuck::{Pod, Zeroable};
use gpu_kernels::hermite;
use gpu_kernels::hermite6::first_step;
use gpu_kernels::neighbour_scheme::{
    FIRST_REGULAR, Force, LARGEST_REGULAR, Regular, difference, extrapolated, growth, next_step,
    norm, sum,
};
use gpu_kernels::schedule::block_steps::{Fourth, SPAN, Scheme};

use super::derivatives::{ALONE, Group, Source, Sums};
use super::kernel::LANES;
use super::near_and_far::{Far, Inside, ListSums, Squares, noise};
use super::{Choices, Cpu, put};
use crate::backend::{
    Backend, BlockCounts, ForceError, HighestDerivative, Operation, Sphere, Targets,
};
use crate::fields::External;
use crate::force::block_steps::{SinceQuestion, Way, all_go_on, guarded, level, next_level};
use crate::force::host_state::Beginning;
use crate::force::in_memory::{Forces, InMemory};
use crate::frame::Frame;
use crate::parallel::{self, ELEMENTWISE};
use crate::simd::Lane;
use crate::vectors::axes;

/// Parts of the force on a body where its steps began, and the steps.
#[derive(Clone, Debug, Default)]
struct Parts {
    /// Indices of the bodies with mass in its sphere; empty where another rank has the list.
    list: Vec<u32>,
    /// How many these are.
    listed: u64,
    irregular: Force,
    /// That of external fields.
    field: Force,
    /// Where the regular step began.
    regular: Force,
    /// In ticks of the span.
    begun: u64,
    level: u32,
    regular_begun: u64,
    regular_level: u32,
}

/// Forces that are computed for a body whose step ends.
struct Ends {
    irregular: Forces,
    /// At the end of a regular step.
    regular: Option<(NewForces, Vec<u32>)>,
}

/// Forces at the end of a regular step.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
struct NewForces {
    /// The regular one, outside of the new list.
    outside: Forces,
    /// The irregular one of that.
    inside: Forces,
    /// Bodies on it.
    listed: u64,
}

/// A body where a span begins.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
struct Begun {
    /// Radius of its sphere.
    radius: f64,
    /// The irregular force.
    near: Force,
    /// Bodies on its list.
    listed: u64,
}

/// Sums over lists, and over all others.
struct Sum<'a, R> {
    cpu: &'a Cpu<R>,
    of_lists: ListSums<'a>,
}

impl<'a, R: Lane> Sum<'a, R> {
    fn new(cpu: &'a Cpu<R>, frame: &'a Frame) -> Self {
        let Choices {
            root, instructions, ..
        } = cpu.choices;
        Self {
            cpu,
            of_lists: ListSums::new(&cpu.physics, root, instructions, frame),
        }
    }

    fn source(&self, i: usize, phase: [[f64; 3]; 2]) -> Source<f64, 2> {
        self.of_lists.source(phase, self.cpu.state.bodies.mass[i])
    }

    /// All bodies as they are.
    fn sources(&self) -> Vec<Source<f64, 2>> {
        let source = |i| self.source(i, self.cpu.state.phase(i).into());
        parallel::each(self.cpu.state.bodies.len(), ELEMENTWISE, source)
    }

    /// The force on bodies, at most [`LANES`], of all outside of their spheres, and who is inside.
    fn far(
        &self,
        bodies: &[usize],
        all: &[Source<f64, 2>],
        sources: &[Source<f64, 2>],
    ) -> Vec<(Forces, Vec<u32>)> {
        let ListSums {
            frame,
            coupling,
            distance,
            ..
        } = self.of_lists;
        let mut targets: Group<f64, 2> = [[[0.0; LANES]; 3]; 2];
        let mut limits = [0.0; LANES];
        for (lane, &i) in bodies.iter().enumerate() {
            for (group, vector) in targets.iter_mut().zip(all[i].0) {
                put(group, lane, vector);
            }
            limits[lane] = self.limit(i) + distance.softening_squared;
        }
        let mut sums = Sums::NONE;
        let mut inside: [Vec<u32>; LANES] = Default::default();
        self.cpu.choices.instructions.run(Far {
            targets: &targets,
            count: bodies.len(),
            limits,
            sources,
            distance,
            sums: &mut sums,
            inside: &mut inside,
        });
        let of_body = |(lane, (&i, inside)): (usize, (&usize, Vec<u32>))| {
            let force = sums.force(lane, frame, coupling);
            (force, self.others(i, inside))
        };
        let all = bodies.iter().zip(inside).enumerate();
        all.map(of_body).collect()
    }

    /// The squared radius of a body's sphere.
    fn limit(&self, i: usize) -> f64 {
        let radius = self.cpu.state.spheres[i].radius;
        self.of_lists.frame.length_to_local(radius).powi(2)
    }

    /// Numbers of sources as indices of bodies, without the body itself.
    fn others(&self, i: usize, mut sources: Vec<u32>) -> Vec<u32> {
        if let Some(massive) = self.cpu.sources() {
            sources
                .iter_mut()
                .for_each(|k| *k = massive[*k as usize] as u32);
        }
        sources.retain(|&k| k as usize != i);
        sources
    }

    /// The neighbours of these bodies, about `wanted` of each, and the radii of the spheres. A sphere with
    /// less than half or more than twice as many is chosen anew.
    fn lists(&self, wanted: usize, all: &[Source<f64, 2>], own: &[usize]) -> Vec<(f64, Vec<u32>)> {
        let n = all.len();
        let massive = self.cpu.sources();
        let count = massive.map_or(n, <[usize]>::len);
        let every = || (0..count as u32).collect::<Vec<u32>>();
        if count <= wanted + 1 {
            let list = |&i: &usize| (f64::INFINITY, self.others(i, every()));
            return own.iter().map(list).collect();
        }
        let mut columns = [(); 3].map(|()| vec![0.0; count]);
        for k in 0..count {
            let [x, _] = all[massive.map_or(k, |massive| massive[k])].0;
            columns
                .iter_mut()
                .zip(x)
                .for_each(|(column, x)| column[k] = x);
        }
        let columns = columns.each_ref().map(|column| &column[..]);
        let run = self.cpu.choices.instructions;
        let list = |&i: &usize| {
            let [at, _] = all[i].0;
            let inside = |limit: f64| self.others(i, run.run(Inside { columns, at, limit }));
            let radius = self.cpu.state.spheres[i].radius;
            if radius.is_finite() {
                let kept = inside(self.limit(i));
                if kept.len() >= wanted.div_ceil(2) && kept.len() <= 2 * wanted {
                    return (radius, kept);
                }
            }
            let mut squares = vec![0.0; count];
            run.run(Squares {
                columns,
                at,
                squares: &mut squares,
            });
            // A body with mass is itself the nearest of the sources.
            let (_, square, _) = squares.select_nth_unstable_by(wanted, f64::total_cmp);
            // A little more, so that this one is inside.
            let radius = square.sqrt() * (1.0 + 1e-9) * self.of_lists.frame.length;
            let local = self.of_lists.frame.length_to_local(radius);
            match local * local {
                0.0 => (f64::INFINITY, self.others(i, every())), // so many stand where this one is
                limit => (radius, inside(limit)),
            }
        };
        parallel::each_of(own, 1, list)
    }
}

/// Takes block time steps for a span, with `wanted` neighbours of each body:
/// [`BlockSteps::advance`](crate::backend::BlockSteps::advance). None if it is left on its way.
pub(super) fn advance<R: Lane>(
    cpu: &mut Cpu<R>,
    wanted: usize,
    (span, eta): (f64, f64),
    way: Way<'_, '_>,
) -> Result<Option<BlockCounts>, ForceError> {
    let n = cpu.state.bodies.len();
    let frame = cpu.frame();
    let regular_eta = eta.min(LARGEST_REGULAR * LARGEST_REGULAR);
    if !cpu.state.own_steps.is_empty() {
        // The forces that the last steps left are of where bodies were predicted; by how much that of a
        // near pair differs, their regular forces would be wrong for a whole regular step.
        cpu.perform(Operation::Evaluate(HighestDerivative::Jerk))?;
    }
    let mut parts = begin(cpu, wanted, &frame, eta, regular_eta)?;
    cpu.state.begin();
    for (i, part) in parts.iter_mut().enumerate() {
        part.regular_level = level(cpu.state.spheres[i].regular_step, span, i)?;
        part.level = level(cpu.state.own_steps[i], span, i)?.max(part.regular_level);
    }
    let total: f64 = {
        let bodies = cpu.state.bodies.mass.iter();
        let weights = bodies.map(|&mass| cpu.physics.weight(mass).abs());
        weights.sum::<f64>() * cpu.physics.coupling().abs()
    };
    let start = cpu.state.external.time();
    let refines = cpu.state.external.turns();
    let time = |ticks: u64| span * (ticks as f64 / SPAN as f64);
    let (mut now, mut counts) = (0, BlockCounts::NONE);
    let mut block = vec![];
    let mut since_question = SinceQuestion::default();
    while now < SPAN {
        if !all_go_on(way.goes_on(now), cpu.team(), &mut since_question) {
            return Ok(None);
        }
        let end = |part: &Parts| part.begun + (SPAN >> part.level);
        now = parts.iter().map(end).min().unwrap_or(SPAN);
        block.clear();
        block.extend((0..n).filter(|&i| end(&parts[i]) == now));
        cpu.state.external.set_time(start + time(now));
        let ended = ends(cpu, &frame, wanted, (&parts, &block), (now, time));
        counts.blocks += 1;
        counts.steps += block.len() as u64;
        let regular = ended.iter().filter(|ended| ended.regular.is_some()).count();
        let interactions = block.len() * wanted + regular * n;
        since_question.add(interactions as u64);
        for (&i, ended) in block.iter().zip(ended) {
            let part = &mut parts[i];
            let dt = time(SPAN >> part.level);
            counts.shortest = counts.shortest.min(dt.abs());
            counts.neighbours += part.listed;
            let state = &mut cpu.state;
            let (x, v) = state.phase(i);
            let [irregular, jerk, _] = ended.irregular.derivatives;
            let irregular = [irregular, jerk];
            let outer = extrapolated(part.regular, time(now - part.regular_begun));
            let [others, _] = sum([irregular, outer, Force::default()]);
            let begun = fourth(&state.beginnings[i]);
            let corrected = |field: Force| {
                let [a, j] = sum([irregular, field, outer]);
                ([a, j], begun.corrected(dt, a, j))
            };
            let mut field = field(&state.external, [x, v], others);
            if refines {
                // Velocities are predicted to second order, which is too little.
                field = self::field(&state.external, corrected(field).1, others);
            }
            let ([a, j], [mut x, mut v]) = corrected(field);
            let allowed = next_step(eta, dt, part.irregular, irregular)
                .min(next_step(eta, dt, part.field, field));
            state.own_steps[i] = guarded(allowed, ended.irregular.approach).min(2.0 * dt);
            let ticks = [part.begun, now];
            (part.irregular, part.field, part.begun) = (irregular, field, now);
            let mut whole = [a, j];
            if let Some((forces, list)) = ended.regular {
                counts.regular += 1;
                let [new, new_jerk, _] = forces.outside.derivatives;
                let [inside, inside_jerk, _] = forces.inside.derivatives;
                let (new, inside) = ([new, new_jerk], [inside, inside_jerk]);
                let step = Regular {
                    begun: part.regular,
                    ended: sum([new, difference(inside, irregular), Force::default()]),
                    dt: time(SPAN >> part.regular_level),
                };
                let [dx, dv] = step.corrections();
                x = each(|k| x[k] + dx[k]);
                v = each(|k| v[k] + dv[k]);
                let radius = state.spheres[i].radius;
                let noise = noise(total, radius, step.dt, [irregular, inside]);
                let allowed = step
                    .next_step(regular_eta, noise)
                    .min(regular_eta.sqrt() / forces.outside.approach)
                    .min(2.0 * step.dt);
                let grown = growth(wanted as f64, forces.listed as f64, 2.0);
                state.spheres[i] = Sphere {
                    radius: radius * grown,
                    regular_step: allowed,
                };
                let wanted = level(allowed, span, i)?;
                part.regular_level = next_level(part.regular_level, wanted, now);
                (part.list, part.listed, part.regular_begun) = (list, forces.listed, now);
                (part.irregular, part.regular) = (inside, new);
                whole = sum([inside, field, new]);
            }
            let [a, j] = whole;
            state.set_phase(i, x, v);
            state.keep_step(i, ticks, [state.begun_from(i), [x, v]]);
            let [s, c] = [[0.0; 3]; 2];
            state.beginnings[i] = Beginning { x, v, a, j, s, c };
            (state.accelerations[i], state.jerks[i]) = (a, j);
            // Never longer than the regular step.
            let wanted = level(state.own_steps[i], span, i)?.max(part.regular_level);
            part.level = next_level(part.level, wanted, now);
        }
    }
    Ok(Some(counts))
}

/// Lists and parts of the forces where all bodies stand at the same time; chooses first steps, if there
/// are none yet.
fn begin<R: Lane>(
    cpu: &mut Cpu<R>,
    wanted: usize,
    frame: &Frame,
    eta: f64,
    regular_eta: f64,
) -> Result<Vec<Parts>, ForceError> {
    let n = cpu.state.bodies.len();
    let is_first = cpu.state.own_steps.is_empty();
    if is_first {
        let unknown = Sphere {
            radius: f64::INFINITY,
            regular_step: 0.0,
        };
        cpu.state.spheres = vec![unknown; n];
    }
    let sum_of = Sum::new(cpu, frame);
    let all = sum_of.sources();
    let bodies: Vec<usize> = (0..n).collect();
    let own = cpu.team.own(&bodies);
    let lists = sum_of.lists(wanted, &all, &own);
    let begun = |(&i, (radius, list)): (&usize, &(f64, Vec<u32>))| {
        let neighbours = list.iter().map(|&k| all[k as usize]);
        let [a, j, _] = sum_of.of_lists.force(all[i].0, neighbours).derivatives;
        Begun {
            radius: *radius,
            near: [a, j],
            listed: list.len() as u64,
        }
    };
    let begun = parallel::each(own.len(), 1, |k| begun((&own[k], &lists[k])));
    let begun = cpu.team.of_all(&bodies, &begun);
    let part = |i: usize| {
        let begun = &begun[i];
        let whole = [cpu.state.accelerations[i], cpu.state.jerks[i]];
        let field = field_of_whole(&cpu.state.external, cpu.state.phase(i).into(), whole[0]);
        let regular = match begun.radius == f64::INFINITY {
            true => Force::default(), // no body is outside
            false => difference(whole, sum([begun.near, field, Force::default()])),
        };
        Parts {
            listed: begun.listed,
            irregular: begun.near,
            field,
            regular,
            ..Parts::default()
        }
    };
    let mut parts = parallel::each(n, ELEMENTWISE, part);
    for (&i, (_, list)) in own.iter().zip(lists) {
        parts[i].list = list;
    }
    for (sphere, begun) in cpu.state.spheres.iter_mut().zip(&begun) {
        sphere.radius = begun.radius;
    }
    if is_first {
        let steps = first_steps(cpu, frame, &parts, [eta, regular_eta])?;
        for (sphere, [_, regular]) in cpu.state.spheres.iter_mut().zip(&steps) {
            sphere.regular_step = *regular;
        }
        cpu.state.own_steps = steps.into_iter().map(|[step, _]| step).collect();
    }
    Ok(parts)
}

/// Irregular and regular steps with which bodies begin a run.
fn first_steps<R: Lane>(
    cpu: &Cpu<R>,
    frame: &Frame,
    parts: &[Parts],
    [eta, regular_eta]: [f64; 2],
) -> Result<Vec<[f64; 2]>, ForceError> {
    let whole = cpu.forces(frame, Targets::All, HighestDerivative::Snap)?;
    let sum_of = Sum::new(cpu, frame);
    let all = sum_of.sources();
    let to_local = frame.time * frame.time / frame.length;
    let with_acceleration = |i: usize| {
        let ([x, v], weight) = all[i];
        let a = cpu.state.accelerations[i].map(|a| a * to_local);
        ([x, v, a], weight)
    };
    let step = |&i: &usize| {
        let part = &parts[i];
        let neighbours = part.list.iter().map(|&k| with_acceleration(k as usize));
        let near = sum_of.of_lists.force(with_acceleration(i).0, neighbours);
        let (x, v) = cpu.state.phase(i);
        let moving = [x, v, cpu.state.accelerations[i]];
        let field = cpu.state.external.add_up_to(2, moving, [[0.0; 3]; 3]);
        let snap = |k: usize| whole[i].derivatives[2][k] - near.derivatives[2][k] - field[2][k];
        let [a, j] = part.regular;
        // No body as fast as the neighbours may come far into the sphere.
        let speed = |&k: &u32| {
            let (_, other) = cpu.state.phase(k as usize);
            norm(each(|k| other[k] - v[k]))
        };
        let fastest = part.list.iter().map(speed).fold(0.0, f64::max);
        let bound = regular_eta.sqrt() * (cpu.state.spheres[i].radius / fastest);
        let regular = match a == [0.0; 3] && j == [0.0; 3] {
            true => f64::INFINITY,
            false => (FIRST_REGULAR * first_step(regular_eta, [a, j, each(snap)])).min(bound),
        };
        let allowed = first_step(eta, near.derivatives).min(first_step(eta, field));
        [guarded(allowed, near.approach), regular]
    };
    let bodies: Vec<usize> = (0..parts.len()).collect();
    let own = cpu.team.own(&bodies);
    let steps = parallel::each_of(&own, 1, step);
    Ok(cpu.team.of_all(&bodies, &steps))
}

/// Predicts what is needed, and computes the forces on a block.
fn ends<R: Lane>(
    cpu: &mut Cpu<R>,
    frame: &Frame,
    wanted: usize,
    (parts, block): (&[Parts], &[usize]),
    (now, time): (u64, impl Fn(u64) -> f64 + Sync),
) -> Vec<Ends> {
    let n = parts.len();
    let since = |i: usize| time(now - parts[i].begun);
    let is_due = |i: usize| {
        let part = &parts[i];
        part.regular_begun + (SPAN >> part.regular_level) == now
    };
    let due: Vec<usize> = block.iter().copied().filter(|&i| is_due(i)).collect();
    let needs_all = !due.is_empty() || block.len().saturating_mul(wanted) >= n;
    match needs_all {
        true => cpu.state.predict::<Fourth>(since),
        false => cpu.state.predict_some::<Fourth>(block, since),
    }
    let sum_of = Sum::new(cpu, frame);
    let all = if needs_all { sum_of.sources() } else { vec![] };
    let source = |i: usize| match all.get(i) {
        Some(&source) => source,
        None => {
            let [x, v, _] = Fourth::predicted(&cpu.state.beginnings[i], since(i));
            sum_of.source(i, [x, v])
        }
    };
    let near = |i: usize, list: &[u32]| {
        sum_of
            .of_lists
            .force(source(i).0, list.iter().map(|&k| source(k as usize)))
    };
    let massive: Vec<Source<f64, 2>>;
    let sources = match cpu.sources() {
        Some(indices) if !due.is_empty() => {
            massive = indices.iter().map(|&i| all[i]).collect();
            &massive[..]
        }
        _ => &all[..],
    };
    let (own, own_due) = (cpu.team.own(block), cpu.team.own(&due));
    let groups: Vec<&[usize]> = own_due.chunks(LANES).collect();
    let far = parallel::each(groups.len(), 1, |k| sum_of.far(groups[k], &all, sources));
    let far: Vec<(Forces, Vec<u32>)> = far.into_iter().flatten().collect();
    let newly = |(&i, (outside, list)): (&usize, &(Forces, Vec<u32>))| NewForces {
        outside: *outside,
        inside: near(i, list),
        listed: list.len() as u64,
    };
    let regular = parallel::each(own_due.len(), 1, |k| newly((&own_due[k], &far[k])));
    let irregular = |&i: &usize| near(i, &parts[i].list);
    let irregular = parallel::each_of(&own, (ALONE / 2).div_ceil(wanted), irregular);
    let irregular = cpu.team.of_all(block, &irregular);
    let regular = match due.is_empty() {
        true => vec![],
        false => cpu.team.of_all(&due, &regular),
    };
    let mut regular = regular.into_iter();
    let mut lists = own_due.iter().zip(far).peekable();
    let mut list = |i: usize| {
        let own = lists.next_if(|(own, _)| **own == i);
        own.map(|(_, (_, list))| list).unwrap_or_default()
    };
    let mut regular = |i: usize| Some((regular.next()?, list(i)));
    let bodies = block.iter().zip(irregular);
    bodies
        .map(|(&i, irregular)| Ends {
            irregular,
            regular: if is_due(i) { regular(i) } else { None },
        })
        .collect()
}

/// Force of external fields where all others accelerate a body by `others`, which jerks of a rotating
/// frame depend on.
fn field(external: &External, [x, v]: [[f64; 3]; 2], others: [f64; 3]) -> Force {
    let [a, j, _] = external.add_up_to(1, [x, v, [0.0; 3]], [others, [0.0; 3], [0.0; 3]]);
    [each(|k| a[k] - others[k]), j]
}

/// As [`field`], where the whole acceleration is known, theirs included.
fn field_of_whole(external: &External, moving: [[f64; 3]; 2], whole: [f64; 3]) -> Force {
    let [own, _] = field(external, moving, [0.0; 3]);
    field(external, moving, each(|k| whole[k] - own[k]))
}

fn fourth(&Beginning { x, v, a, j, .. }: &Beginning) -> hermite::Beginning<f64> {
    hermite::Beginning { x, v, a, j }
}

fn each(component: impl Fn(usize) -> f64) -> [f64; 3] {
    axes(component)
}

#[cfg(test)]
mod tests;
