//! Runs the threads of one block as fibres, from barrier to barrier.

use corosensei::stack::DefaultStack;
use corosensei::{Coroutine, CoroutineResult};

use super::context::{Context, Wait};
use super::fault::{Collective, Fault, Whereabouts};
use super::order::Order;
use super::stacks::Stacks;
use super::warp::WARP;

type Fibre<'a> = Coroutine<(), Wait, (), &'a mut DefaultStack>;

/// How far a thread has come.
#[derive(Clone, Copy)]
enum State {
    /// It can run.
    Ready,
    Waiting(Wait),
    Returned,
}

impl State {
    fn collective(self) -> Option<Collective> {
        match self {
            Self::Waiting(wait) => Some(wait.collective),
            Self::Ready | Self::Returned => None,
        }
    }

    /// The warp collective where it waits, if it waits at one.
    fn warp_collective(self) -> Option<Collective> {
        self.collective()
            .filter(|collective| !collective.is_block_wide())
    }
}

/// Runs one block to its end. After a fault the fibres that are left are unwound, so that what
/// their kernels own is dropped.
pub(super) fn run_block(
    context: &Context<'_>,
    kernel: &dyn Fn(),
    stacks: &mut Stacks,
    order: &mut Order,
) -> Result<(), Fault> {
    let fibres = stacks
        .iter_mut()
        .map(|stack| {
            let body = |suspender: &_, ()| context.run_kernel(suspender, kernel);
            // SAFETY: the fibres, with all they borrow, are dropped before this function returns,
            // and never forgotten.
            unsafe { Coroutine::with_stack_unchecked(stack, body) }
        })
        .collect::<Vec<Fibre<'_>>>();
    let states = vec![State::Ready; fibres.len()];
    let warps = (0..fibres.len()).step_by(WARP).collect();
    Block {
        context,
        fibres,
        states,
        warps,
    }
    .run(order)
}

struct Block<'a> {
    context: &'a Context<'a>,
    fibres: Vec<Fibre<'a>>,
    states: Vec<State>,
    /// The first thread of every warp, in their order of execution.
    warps: Vec<usize>,
}

impl Block<'_> {
    fn run(&mut self, order: &mut Order) -> Result<(), Fault> {
        loop {
            order.shuffle(&mut self.warps);
            for turn in 0..self.warps.len() {
                self.run_warp(self.warps[turn], order)?;
            }
            let Some(waiting) = self.states.iter().find_map(|state| state.collective()) else {
                return Ok(());
            };
            self.require_all(0..self.states.len(), waiting)?;
            self.context.complete_block(waiting)?;
            self.states.fill(State::Ready);
        }
    }

    /// Runs a warp until each of its threads has returned or waits for the block.
    fn run_warp(&mut self, first: usize, order: &mut Order) -> Result<(), Fault> {
        let threads = first..self.states.len().min(first + WARP);
        let mut lanes = [0; WARP];
        let lanes = &mut lanes[..threads.len()];
        loop {
            lanes
                .iter_mut()
                .zip(threads.clone())
                .for_each(|(lane, thread)| *lane = thread);
            order.shuffle(lanes);
            for &mut thread in &mut *lanes {
                let fibre = &mut self.fibres[thread];
                self.states[thread] = match self.context.run(thread, || fibre.resume(()))? {
                    CoroutineResult::Yield(wait) => State::Waiting(wait),
                    CoroutineResult::Return(()) => State::Returned,
                };
            }
            let states = &mut self.states[threads.clone()];
            let Some(waiting) = states.iter().find_map(|state| state.warp_collective()) else {
                return Ok(());
            };
            self.require_all(threads.clone(), waiting)?;
            self.context.complete_warp(first / WARP)?;
            self.states[threads.clone()].fill(State::Ready);
        }
    }

    /// A fault unless all of `threads`, of which one waits at `collective`, do so.
    fn require_all(
        &self,
        threads: std::ops::Range<usize>,
        collective: Collective,
    ) -> Result<(), Fault> {
        let mut waiting = None;
        let mut elsewhere = None;
        for thread in threads {
            match self.states[thread] {
                State::Waiting(wait) if wait.collective == collective => {
                    waiting = waiting.or(Some((thread, wait.at)));
                }
                State::Waiting(Wait { collective, at }) => {
                    elsewhere =
                        elsewhere.or(Some((thread, Whereabouts::Waiting { collective, at })));
                }
                State::Ready | State::Returned => {
                    elsewhere = elsewhere.or(Some((thread, Whereabouts::Returned)));
                }
            }
        }
        let (Some((waiting, at)), Some((other, whereabouts))) = (waiting, elsewhere) else {
            return Ok(());
        };
        Err(Fault::Divergence {
            place: Box::new(self.context.place(waiting, at.to_string())),
            collective,
            other: self.context.coordinates(other),
            whereabouts,
        })
    }
}
