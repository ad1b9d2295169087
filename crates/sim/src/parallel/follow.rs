//! A device that follows the wall clock.

use crate::core::Core;
use crate::engine::Engine;
use crate::parallel::executor::{NAP, Reached};
use crate::parallel::pace::{Lateness, Pace};
use crate::parallel::wires::Wired;
use xoff_kernel::time::Time;

impl Wired<'_> {
    fn clock(&self) -> &Pace {
        self.pace.expect("only a run by the wall clock follows it")
    }

    /// Processes the events of a device before `halt` when the clock shows their time, until the clock shows
    /// `halt` or the run ends. `look` sees the state, the time and the number of complete flows of the run now
    /// and then.
    pub fn follow(&self, engine: &mut Engine, halt: Time, look: &mut dyn FnMut(&mut Core, Time, usize)) {
        let (pace, plan) = (self.clock(), engine.core.plan);
        let mut lateness = Lateness::default();
        loop {
            let limit = pace.end(plan).map_or(halt, |end| end.min(halt));
            let clock = pace.now();
            while let Some(due) = engine.core.wheel.next_time()
                && due < limit
                && due <= clock
            {
                lateness.record(due, pace.now() - due);
                let before = engine.core.observed.flows_done;
                engine.advance(due + 1);
                self.send(&mut engine.core);
                pace.completes(engine.core.observed.flows_done - before, engine.core.observed.last_done);
            }
            look(&mut engine.core, clock, pace.flows_done());
            if self.has_stopped() || clock >= limit {
                break;
            }
            let next = engine.core.wheel.next_time().unwrap_or(Time::MAX).min(limit);
            lateness.overtaken += self.take(&mut engine.core, 1, pace.when(next, NAP));
        }
        self.add(&lateness);
    }

    /// Takes what is on its way to a device when all devices have reached `halt`.
    pub fn settle(&self, engine: &mut Engine, halt: Time) -> Reached {
        let (pace, plan) = (self.clock(), engine.core.plan);
        self.take_all(&mut engine.core);
        let end = pace.end(plan);
        let limit = end.map_or(halt, |end| end.min(halt));
        // What comes only now came too late.
        let overtaken = u64::from(engine.core.wheel.next_time().is_some_and(|due| due < limit));
        self.add(&Lateness { overtaken, ..Lateness::default() });
        reached(self.has_stopped(), end, halt)
    }
}

/// What a run by the wall clock has reached, whose devices have settled at `halt`.
pub fn reached(stopped: bool, end: Option<Time>, halt: Time) -> Reached {
    match end {
        _ if stopped => Reached::Interrupted,
        Some(end) if end <= halt => Reached::Done(end),
        _ => Reached::Halt(halt),
    }
}
