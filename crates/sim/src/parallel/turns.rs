//! Whether the threads of a run work together, or one of them does all the work: which is faster is measured.
//!
//! Threads wait for the slowest one after each window. Where another process takes the processor of one of them
//! for a while, all others wait, and one thread by itself may be faster. So if they wait much, that is tried for a
//! short turn. The faster way gets a long turn. Working together is tried again after it: seldom, as long as it
//! stays slower.

use std::time::{Duration, Instant};

/// How long a way to work is tried: some time slices of a busy system.
const TRIAL: Duration = Duration::from_millis(40);
/// The first long turn …
const FIRST: Duration = Duration::from_millis(250);
/// … and the longest: each is twice the one before, as long as the same way stays faster.
const LONGEST: Duration = Duration::from_secs(2);
/// The share of their time that threads may wait for each other before one is tried alone: parts that differ
/// in work explain less.
const MUCH: f64 = 0.2;

/// Who works, and since when.
pub struct Turns {
    pub together: bool,
    threads: usize,
    began: Instant,
    /// Events of the run until then, and how long all threads had waited.
    before: (u64, Duration),
    lasts: Duration,
    /// Events per second of each way to work, alone and together, when it was measured last.
    speeds: [Option<f64>; 2],
    /// The next long turn.
    long: Duration,
    /// Turns are of so many windows, whatever is faster.
    #[cfg(test)]
    windows: Option<(u32, u32)>,
}

impl Turns {
    /// The threads begin together.
    pub fn new(now: Instant, threads: usize) -> Self {
        Self {
            together: threads > 1,
            threads,
            began: now,
            before: (0, Duration::ZERO),
            lasts: TRIAL,
            speeds: [None; 2],
            long: FIRST,
            #[cfg(test)]
            windows: None,
        }
    }

    /// Turns of `windows` windows each.
    #[cfg(test)]
    pub fn every(threads: usize, windows: u32) -> Self {
        Self { windows: Some((windows, 0)), ..Self::new(Instant::now(), threads) }
    }

    /// The run has processed `events` events at `now`, and its threads have waited for each other for `waited`
    /// in all. Returns whether the way to work changes.
    pub fn change(&mut self, now: Instant, events: u64, waited: Duration) -> bool {
        #[cfg(test)]
        if let Some((windows, count)) = &mut self.windows {
            *count += 1;
            let changes = self.threads > 1 && *count % *windows == 0;
            self.together ^= changes;
            return changes;
        }
        let took = now - self.began;
        if took < self.lasts || self.threads == 1 {
            return false;
        }
        let speed = (events - self.before.0) as f64 / took.as_secs_f64();
        let waits = (waited - self.before.1).as_secs_f64() > MUCH * took.as_secs_f64() * self.threads as f64;
        (self.began, self.before) = (now, (events, waited));
        if self.together && !waits {
            (self.lasts, self.long, self.speeds) = (FIRST, FIRST, [None; 2]);
            return false;
        }
        self.speeds[usize::from(self.together)] = Some(speed);
        let tried = self.lasts == TRIAL;
        let changes = match self.speeds[usize::from(!self.together)] {
            // The other way is tried.
            None => true,
            Some(_) if !tried => true,
            Some(other) => other > speed,
        };
        // A trial is over: it was the slower way again, or it becomes the one that lasts.
        if let (true, Some(_)) = (tried, self.speeds[usize::from(!self.together)]) {
            self.long = if changes { (2 * self.long).min(LONGEST) } else { FIRST };
            self.lasts = self.long;
        } else {
            self.lasts = TRIAL;
        }
        self.together ^= changes;
        changes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs 60 s of a system on which two threads together are `factors[0]` times as fast as one for 30 s, and
    /// `factors[1]` times from then on; they wait for the rest of the time. Returns the shares of both times in
    /// which they work together.
    fn shares(factors: [f64; 2]) -> [f64; 2] {
        let begin = Instant::now();
        let mut turns = Turns::new(begin, 2);
        let (mut events, mut waited, mut together) = (0.0, 0.0, [0.0; 2]);
        for millisecond in 0..60_000 {
            let late = millisecond / 30_000;
            if turns.together {
                events += factors[late] * 1e3;
                waited += (2.0 - factors[late]) / 1e3;
                together[late] += 1.0 / 30e3;
            } else {
                events += 1e3;
            }
            let now = begin + Duration::from_millis(millisecond as u64 + 1);
            turns.change(now, events as u64, Duration::from_secs_f64(waited));
        }
        together
    }

    #[test]
    fn the_faster_way_gets_nearly_all_of_the_time() {
        let close = |shares: [f64; 2], to: f64| shares.iter().all(|share| (share - to).abs() < 0.05);
        // They hardly wait, so one alone is never tried.
        assert!(shares([1.8; 2]).iter().all(|share| *share > 0.999_99));
        assert!(close(shares([1.3; 2]), 1.0));
        assert!(close(shares([0.8; 2]), 0.0));
        assert!(!Turns::new(Instant::now(), 1).together);
    }

    /// When other work begins or ends, the way changes after one long turn at most.
    #[test]
    fn the_way_changes_with_the_system() {
        let [before, after] = shares([1.8, 0.5]);
        assert!(before > 0.99 && after < 0.1, "{before} {after}");
        let [before, after] = shares([0.5, 1.8]);
        assert!(before < 0.1 && after > 0.9, "{before} {after}");
    }
}
