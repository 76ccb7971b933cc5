//! Many systems on the CPU: a backend for each, all of them at work at a time, or one after another.

use rayon::prelude::*;

use crate::backend::{Backend, ForceError, Operation, SavedState};
use crate::bodies::Bodies;
use crate::diagnostics::Energy;
use crate::frame::Frame;
use crate::plan::PlanError;
use crate::plan::systems::bodies_each;
use crate::variants::Threads;

/// Independent systems of equal size, one after another.
#[derive(Debug)]
pub struct Independent<B> {
    systems: Vec<B>,
    /// Bodies of each.
    n: usize,
    threads: Threads,
}

impl<B: Backend> Independent<B> {
    /// A backend for each of `systems` that the bodies are.
    ///
    /// # Errors
    /// If they do not make so many.
    pub fn new(
        bodies: &Bodies,
        systems: u32,
        backend: impl Fn(&Bodies) -> B,
    ) -> Result<Self, PlanError> {
        let n = bodies_each(bodies.len(), systems)?;
        let systems = match systems {
            1 => vec![backend(bodies)],
            _ => (0..systems as usize)
                .map(|s| backend(&bodies.part(s * n..(s + 1) * n)))
                .collect(),
        };
        Ok(Self {
            systems,
            n,
            threads: Threads::All,
        })
    }

    /// At work on these threads.
    #[must_use]
    pub fn on(self, threads: Threads) -> Self {
        Self { threads, ..self }
    }

    /// As a backend; that of the one system itself, if there is but one.
    pub fn into_backend(mut self) -> Box<dyn Backend>
    where
        B: 'static,
    {
        match self.systems.len() {
            1 => Box::new(self.systems.remove(0)),
            _ => Box::new(self),
        }
    }

    fn all(
        &mut self,
        work: impl Fn(&mut B) -> Result<(), ForceError> + Sync + Send,
    ) -> Result<(), ForceError> {
        match self.threads {
            Threads::All => self.systems.par_iter_mut().try_for_each(work),
            Threads::One => self.systems.iter_mut().try_for_each(work),
        }
    }
}

impl<B: Backend> Backend for Independent<B> {
    fn systems(&self) -> usize {
        self.systems.len()
    }

    fn perform(&mut self, operation: Operation) -> Result<(), ForceError> {
        self.all(|system| system.perform(operation))
    }

    fn save(&mut self) -> Result<SavedState, ForceError> {
        let mut systems = self.systems.iter_mut();
        let first = systems.next().expect("at least one system");
        let mut all = first.save()?;
        for system in systems {
            all.append(system.save()?); // the CPU keeps the units of the bodies
        }
        Ok(all)
    }

    fn restore(&mut self, saved: &SavedState) -> Result<(), ForceError> {
        saved.fits(self.n * self.systems.len(), &Frame::IDENTITY, false)?;
        for (s, system) in self.systems.iter_mut().enumerate() {
            system.restore(&saved.part(s * self.n..(s + 1) * self.n))?;
        }
        Ok(())
    }

    fn download(&mut self, bodies: &mut Bodies) -> Result<(), ForceError> {
        for (s, system) in self.systems.iter_mut().enumerate() {
            let mut part = bodies.part(s * self.n..(s + 1) * self.n);
            system.download(&mut part)?;
            bodies.set_part(s * self.n, &part);
        }
        Ok(())
    }

    fn accelerations(&mut self) -> Result<Vec<[f64; 3]>, ForceError> {
        let mut all = vec![];
        for system in &mut self.systems {
            all.extend(system.accelerations()?);
        }
        Ok(all)
    }

    fn energy(&mut self) -> Result<Energy, ForceError> {
        Ok(self.energies()?.into_iter().sum())
    }

    fn energies(&mut self) -> Result<Vec<Energy>, ForceError> {
        self.systems.iter_mut().map(B::energy).collect()
    }

    fn synchronize(&mut self) -> Result<(), ForceError> {
        self.all(B::synchronize)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::thread::ThreadId;

    use super::*;
    use crate::force::reference::Reference;
    use crate::initial_conditions::plummer;
    use crate::physics::{ForceLaw, Physics};

    /// The threads that work on twelve systems.
    fn at_work(threads: Threads) -> Vec<ThreadId> {
        let bodies = plummer(24, 1).expect("in range");
        let physics = Physics {
            law: ForceLaw::Gravity,
            g: 1.0,
            softening: 0.1,
        };
        let reference = |part: &Bodies| Reference::new(part, physics);
        let many = Independent::new(&bodies, 12, reference).expect("two each");
        let seen = Mutex::new(vec![]);
        many.on(threads)
            .all(|_| {
                seen.lock()
                    .expect("no panic")
                    .push(std::thread::current().id());
                Ok(())
            })
            .expect("nothing is done");
        seen.into_inner().expect("no panic")
    }

    #[test]
    fn one_thread_is_the_one_that_asks() {
        let me = std::thread::current().id();
        assert_eq!(at_work(Threads::One), [me; 12]);
        assert_eq!(at_work(Threads::All).len(), 12);
    }
}
