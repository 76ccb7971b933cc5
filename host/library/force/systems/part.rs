//! The systems of one GPU: their memory, there and on the host, and the work of a plan of many systems.

use std::ops::Range;
use std::sync::Arc;

use gpu_kernels::entries::{Buffer, Entry};
use gpu_kernels::layout::Field;

use crate::backend::ForceError;
use crate::bodies::Bodies;
use crate::force::device::Streams;
use crate::force::memory::Memory;
use crate::force::pack::{self, POSITION, Scalars, VELOCITY};
use crate::frame::Frame;
use crate::plan::systems::{Item, SystemsPlan, Task};
use crate::timeline::{Span, What};
use crate::variants::SystemsPath;

/// Positions and velocities.
pub(super) type Vectors = (Vec<[f64; 3]>, Vec<[f64; 3]>);

/// A system's record, as its [constants](gpu_kernels::abi::SystemConstant) are numbered.
pub(super) type Record = [f64; gpu_kernels::abi::SYSTEM_CONSTANTS as usize];

/// Work that was queued, between two moments of its stream.
type Marked<M> = (Item, [M; 2]);

/// Some systems, on one GPU.
pub(super) struct Part<D: Streams> {
    device: Arc<D>,
    pub(super) plan: SystemsPlan,
    /// Range of the systems' bodies among all.
    pub(super) bodies: Range<usize>,
    streams: Vec<D::Stream>,
    /// On the device; two, if steps go from one to the other.
    states: Vec<D::Buffer>,
    /// [Records](Buffer::records), and [sums](Buffer::slabs) that one kernel leaves to the other.
    memory: Memory<D>,
    /// Contents of the records.
    recorded: Vec<Record>,
    /// The bodies' place between runs.
    host: D::HostMemory,
}

impl<D: Streams> Part<D> {
    /// Puts the bodies in `range`, which are so many systems, into host memory.
    pub(super) fn new(
        device: Arc<D>,
        entry: &'static Entry,
        path: &SystemsPath,
        systems: u32,
        (bodies, range): (&Bodies, Range<usize>),
        frame: &Frame,
    ) -> Result<Self, ForceError> {
        let n = range.len() / systems as usize;
        let plan = SystemsPlan::new(entry, path, systems, n, &device.limits())?;
        for entry in [Some(plan.force), plan.drift].into_iter().flatten() {
            device.prepare(entry)?;
        }
        let packed = pack::empty_state(&entry.layout, plan.stride);
        let bytes = packed.bytes().len();
        let states = 1 + usize::from(plan.is_double_buffered());
        let states = (0..states).map(|_| device.allocate(bytes));
        let states = states.collect::<Result<_, _>>()?;
        let mut memory = Memory::new();
        let records = systems as usize * size_of::<Record>();
        memory.allocate(&*device, &[(Buffer::records, records)])?;
        if let Some(bytes) = plan.slabs_bytes() {
            memory.allocate(&*device, &[(Buffer::slabs, bytes)])?;
        }
        let streams = (0..plan.streams).map(|_| device.stream());
        let streams = streams.collect::<Result<_, _>>()?;
        let host = device.host_memory(bytes, plan.copies_are_queued())?;
        let mut part = Self {
            device,
            plan,
            bodies: range.clone(),
            streams,
            states,
            memory,
            recorded: vec![],
            host,
        };
        part.store(&packed)?;
        part.change(|set, at| {
            for (k, i) in range.enumerate() {
                let body = bodies.body(i);
                let [x, y, z] = frame.position_to_local(body.position);
                let [vx, vy, vz] = frame.velocity_to_local(body.velocity);
                let values = [x, y, z, frame.mass_to_local(body.mass), vx, vy, vz];
                for (field, value) in Field::ALL.into_iter().zip(values) {
                    set.set(at(field, k), value);
                }
            }
        })?;
        Ok(part)
    }

    /// The state in host memory.
    pub(super) fn load(&self) -> Result<Scalars, ForceError> {
        let mut state = pack::empty_state(&self.plan.force.layout, self.plan.stride);
        let bytes = self.device.read(&self.host)?;
        state.bytes_mut().copy_from_slice(bytes);
        Ok(state)
    }

    /// The inverse of [`load`](Self::load).
    pub(super) fn store(&mut self, state: &Scalars) -> Result<(), ForceError> {
        let host = self.device.write(&mut self.host)?;
        host.copy_from_slice(state.bytes());
        Ok(())
    }

    /// Returns the place of a field of the part's body `k` in the state.
    pub(super) fn place(&self) -> impl Fn(Field, usize) -> usize + use<D> {
        let (scalar, stride) = (self.plan.force.layout.scalar, self.plan.stride);
        let (n, distance) = (self.plan.n as usize, self.plan.distance as usize);
        move |field, k| scalar(field, stride, (k / n * distance + k % n) as u32)
    }

    /// Changes the state in host memory.
    pub(super) fn change(
        &mut self,
        change: impl FnOnce(&mut Scalars, &dyn Fn(Field, usize) -> usize),
    ) -> Result<(), ForceError> {
        let mut state = self.load()?;
        change(&mut state, &self.place());
        self.store(&state)
    }

    /// Positions and velocities in host memory, in local units.
    pub(super) fn vectors(&self) -> Result<Vectors, ForceError> {
        let (state, place) = (self.load()?, self.place());
        let vector = |fields: [Field; 3], k| fields.map(|field| state.get(place(field, k)));
        let bodies = 0..self.bodies.len();
        Ok(bodies
            .map(|k| (vector(POSITION, k), vector(VELOCITY, k)))
            .unzip())
    }

    /// Queues some steps with these records; between marks, from `origin` on, if asked for.
    pub(super) fn queue(
        &mut self,
        records: Vec<Record>,
        steps: u32,
        marked: &mut Option<Vec<Marked<D::Mark>>>,
    ) -> Result<(), ForceError> {
        if self.recorded != records {
            self.device
                .upload(self.memory.of(Buffer::records), &records)?;
            self.recorded = records;
        }
        let items = self.plan.items(steps);
        if marked.is_none() && self.streams.len() == 1 {
            let same_kind = |a: &Item, b: &Item| is_launch(a) == is_launch(b);
            return items
                .chunk_by(same_kind)
                .try_for_each(|run| match is_launch(&run[0]) {
                    true => self.launch_all(run),
                    false => run.iter().try_for_each(|item| self.carry_out(item)),
                });
        }
        for item in items {
            let moment = |part: &Self| part.device.mark(&part.streams[item.stream as usize]);
            let before = marked.is_some().then(|| moment(self)).transpose()?;
            self.carry_out(&item)?;
            if let (Some(marked), Some(before)) = (marked.as_mut(), before) {
                let marks = [before, moment(self)?];
                marked.push((item, marks));
            }
        }
        Ok(())
    }

    /// Queues a piece of work.
    fn carry_out(&mut self, item: &Item) -> Result<(), ForceError> {
        let stream = &self.streams[item.stream as usize];
        match item.task {
            Task::CopyIn => {
                for bytes in self.plan.places(&item.systems) {
                    let to = &self.states[0];
                    self.device.copy_in(&self.host, to, bytes, stream)?;
                }
            }
            Task::CopyOut { from } => {
                for bytes in self.plan.places(&item.systems) {
                    let from = &self.states[from];
                    self.device.copy_out(from, &mut self.host, bytes, stream)?;
                }
            }
            Task::Launch { .. } => self.launch(item)?,
            Task::Join => self.join()?,
        }
        Ok(())
    }

    /// Queues a launch.
    fn launch(&self, item: &Item) -> Result<(), ForceError> {
        let Task::Launch { from, .. } = item.task else {
            unreachable!("{item:?} is no launch")
        };
        let stream = &self.streams[item.stream as usize];
        let (entry, launch, params) = self.plan.launch(item);
        let before = &self.states[from];
        let mut given = vec![(Buffer::state, before), (Buffer::from, before)];
        given.extend(self.states.get(1 - from).map(|after| (Buffer::to, after)));
        self.memory
            .launch_in(&self.device, stream, (entry, launch), &given, params)
    }

    /// Queues launches of the one stream, which may be recorded and replayed where they repeat themselves.
    fn launch_all(&self, run: &[Item]) -> Result<(), ForceError> {
        let once = period(run);
        let mut launch = || run[..once].iter().try_for_each(|item| self.launch(item));
        let times = (run.len() / once) as u64;
        self.device
            .repeat_in(&self.streams[0], times, &mut launch)?;
        let mut rest = run[run.len() - run.len() % once..].iter();
        rest.try_for_each(|item| self.launch(item))
    }

    /// A moment before anything that is queued next.
    pub(super) fn mark(&self) -> Result<D::Mark, ForceError> {
        self.device.mark(&self.streams[0])
    }

    /// Waits for everything.
    pub(super) fn join(&self) -> Result<(), ForceError> {
        let mut streams = self.streams.iter();
        streams.try_for_each(|stream| self.device.join(stream))
    }

    /// Times of work queued between marks, on GPU `gpu`, once it is done.
    pub(super) fn spans(
        &self,
        gpu: usize,
        origin: &D::Mark,
        marked: Vec<Marked<D::Mark>>,
    ) -> Result<Vec<Span>, ForceError> {
        let first = (self.bodies.start / self.plan.n as usize) as u32;
        let spans = marked.into_iter().filter_map(|(item, [start, end])| {
            let what = match item.task {
                Task::CopyIn => What::CopyIn,
                Task::CopyOut { .. } => What::CopyOut,
                Task::Launch { kernel, .. } => What::Kernel(kernel),
                Task::Join => return None,
            };
            let seconds = |mark| self.device.seconds(origin, mark);
            Some(seconds(&start).and_then(|start| {
                Ok(Span {
                    gpu,
                    stream: item.stream,
                    systems: first + item.systems.start..first + item.systems.end,
                    what,
                    start,
                    end: seconds(&end)?,
                })
            }))
        });
        spans.collect()
    }
}

fn is_launch(item: &Item) -> bool {
    matches!(item.task, Task::Launch { .. })
}

/// The least number of items after which a run of them repeats itself.
fn period(run: &[Item]) -> usize {
    let repeats = |period: &usize| run[*period..] == run[..run.len() - period];
    (1..run.len()).find(repeats).unwrap_or(run.len())
}
