//! The wall clock of a run over wires: simulated time passes `dilate` times as slowly as the clock's.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use xoff_kernel::time::Time;

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

/// The clock, and the data of all parts that its end depends on.
pub struct Pace {
    dilate: u64,
    began: OnceLock<Instant>,
    pub flows_done: AtomicUsize,
    pub last_done: AtomicU64,
}

impl Pace {
    pub fn new(dilate: u64) -> Self {
        Self { dilate, began: OnceLock::new(), flows_done: AtomicUsize::new(0), last_done: AtomicU64::new(0) }
    }

    fn began(&self) -> Instant {
        *self.began.get_or_init(|| Instant::now() + WARM_UP)
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
