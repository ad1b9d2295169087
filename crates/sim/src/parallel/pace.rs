//! The wall clock of a run over wires: simulated time passes `dilate` times as slowly as the clock's.

use crate::parallel::executor::TICK;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use xoff_kernel::time::Time;
use xoff_plan::plan::Plan;

/// From the first thread's look at the clock to the beginning of the run: the others begin meanwhile.
const WARM_UP: Duration = Duration::from_millis(50);
/// Picoseconds in a nanosecond.
const NANOSECOND: u128 = 1000;

/// How late the events of a run over the wall clock were processed, in simulated time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lateness {
    /// The latest event.
    pub latest: Time,
    /// When it was due.
    pub due: Time,
    /// Sum over all events.
    pub sum: u128,
    /// Times at which a device had events.
    pub steps: u64,
    /// Packets that came after the receiver's clock had passed the time at which they were due.
    pub overtaken: u64,
}

impl Lateness {
    pub fn record(&mut self, due: Time, late: Time) {
        if late > self.latest {
            (self.latest, self.due) = (late, due);
        }
        self.sum += u128::from(late);
        self.steps += 1;
    }

    pub fn add(&mut self, other: &Self) {
        if other.latest > self.latest {
            (self.latest, self.due) = (other.latest, other.due);
        }
        self.sum += other.sum;
        self.steps += other.steps;
        self.overtaken += other.overtaken;
    }

    /// The mean over steps.
    pub fn mean(&self) -> Time {
        (self.sum / u128::from(self.steps.max(1))) as Time
    }
}

/// The clock, and the data of all parts that its end depends on. It has no pointer: processes may share it.
pub struct Pace {
    dilate: u64,
    made: Instant,
    /// Nanoseconds from then to the beginning of the run; [`UNKNOWN`] before someone looks.
    began: AtomicU64,
    flows_done: AtomicUsize,
    last_done: AtomicU64,
    /// The run ends now.
    stops: AtomicBool,
}

const UNKNOWN: u64 = u64::MAX;

impl Pace {
    /// A clock on which time passes `dilate` times as slowly.
    pub fn new(dilate: u64) -> Self {
        Self {
            dilate,
            made: Instant::now(),
            began: AtomicU64::new(UNKNOWN),
            flows_done: AtomicUsize::new(0),
            last_done: AtomicU64::new(0),
            stops: AtomicBool::new(false),
        }
    }

    fn began(&self) -> Instant {
        let mut began = self.began.load(Ordering::Acquire);
        if began == UNKNOWN {
            let now = (self.made.elapsed() + WARM_UP).as_nanos() as u64;
            let set = self.began.compare_exchange(UNKNOWN, now, Ordering::AcqRel, Ordering::Acquire);
            began = set.map_or_else(|earlier| earlier, |_| now);
        }
        self.made + Duration::from_nanos(began)
    }

    /// Flows that all parts have completed.
    pub fn flows_done(&self) -> usize {
        self.flows_done.load(Ordering::Acquire)
    }

    /// All devices end.
    pub fn stop(&self) {
        self.stops.store(true, Ordering::Release);
    }

    pub fn has_stopped(&self) -> bool {
        self.stops.load(Ordering::Acquire)
    }

    /// When a run without an end time ends, if all of its flows are done.
    pub fn end(&self, plan: &Plan) -> Option<Time> {
        let done = plan.end.is_none() && self.flows_done() == plan.flows.len();
        done.then(|| (self.last_done.load(Ordering::Acquire) / TICK + 1) * TICK)
    }

    /// The simulated time now.
    pub fn now(&self) -> Time {
        let passed = Instant::now().saturating_duration_since(self.began());
        (passed.as_nanos() * NANOSECOND / u128::from(self.dilate)) as Time
    }

    /// When the clock shows `time`, or after `most`, whichever is first.
    pub fn when(&self, time: Time, most: Duration) -> Instant {
        let nanoseconds = u128::from(time) * u128::from(self.dilate) / NANOSECOND + 1;
        let then =
            u64::try_from(nanoseconds).ok().and_then(|n| self.began().checked_add(Duration::from_nanos(n)));
        let latest = Instant::now() + most;
        then.map_or(latest, |then| then.min(latest))
    }

    /// A part has completed `flows` more flows, the last one at `at`.
    pub fn completes(&self, flows: usize, at: Time) {
        self.last_done.fetch_max(at, Ordering::AcqRel);
        self.flows_done.fetch_add(flows, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lateness_keeps_the_latest_event_and_the_mean() {
        let (mut all, mut other) = (Lateness::default(), Lateness::default());
        all.record(10, 4);
        all.record(20, 1);
        other.record(30, 7);
        all.add(&other);
        assert_eq!((all.latest, all.due, all.steps, all.mean()), (7, 30, 3, 4));
    }

    /// 2 us of simulated time at a dilation of 1,000 are 2 ms of the clock.
    #[test]
    fn time_is_dilated() {
        let pace = Pace::new(1_000);
        let at = pace.when(2_000_000, Duration::from_secs(9));
        let after = at.duration_since(pace.began());
        assert!((2_000..2_001).contains(&(after.as_micros() as u64)), "{after:?}");
        assert!(pace.when(Time::MAX, Duration::from_secs(9)) > at);
        assert!(pace.now() < 2_000_000);
    }
}
