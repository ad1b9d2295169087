//! The mode of a run on several threads: all work together, or one works alone. The faster mode is measured.
//!
//! Threads wait for the slowest one after each window: if another process uses its core, one thread alone may
//! be faster. So if threads wait much, one works alone for a short trial. The faster mode then gets a long
//! turn. After a long turn alone, working together gets a new trial.

use std::time::{Duration, Instant};

/// Length of a trial: some time slices of a busy system.
const TRIAL: Duration = Duration::from_millis(40);
/// Length of the first long turn …
const FIRST: Duration = Duration::from_millis(250);
/// … and of the longest. Each is twice as long as the last one while the same mode stays faster.
const LONGEST: Duration = Duration::from_secs(2);
/// The share of waiting time from which one thread gets a trial. Parts of unequal work cause less.
const MUCH: f64 = 0.2;

/// The mode, and the rule by which it changes.
pub struct Turns {
    /// All threads work; else one does.
    pub together: bool,
    threads: usize,
    /// When the present turn began.
    began: Instant,
    /// Events of the run until then, and the waiting time of all threads until then.
    before: (u64, Duration),
    /// Length of the present turn.
    lasts: Duration,
    /// Events per second in the last turn alone, and in the last turn together.
    speeds: [Option<f64>; 2],
    /// Length of the last long turn.
    long: Duration,
    /// For tests: windows of each turn, and windows so far.
    #[cfg(test)]
    windows: Option<(u32, u32)>,
}

impl Turns {
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

    /// After `events` events of the run and a sum of the threads' waits `waited`: whether the mode changes.
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
        match self.speeds[usize::from(!self.together)] {
            // The end of a trial.
            Some(other) if self.lasts == TRIAL => {
                let changes = other > speed;
                self.long = if changes { (2 * self.long).min(LONGEST) } else { FIRST };
                self.lasts = self.long;
                self.together ^= changes;
                changes
            }
            // The other mode gets a trial.
            _ => {
                self.lasts = TRIAL;
                self.together = !self.together;
                true
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Simulates 60 s. Two threads are `factors[0]` times as fast as one for the first 30 s, then
    /// `factors[1]` times. Returns the shares of both halves in which the threads work together.
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
    fn the_faster_mode_gets_nearly_all_of_the_time() {
        let close = |shares: [f64; 2], to: f64| shares.iter().all(|share| (share - to).abs() < 0.05);
        // They wait little, so one thread never gets a trial.
        assert!(shares([1.8; 2]).iter().all(|share| *share > 0.999_99));
        assert!(close(shares([1.3; 2]), 1.0));
        assert!(close(shares([0.8; 2]), 0.0));
        assert!(!Turns::new(Instant::now(), 1).together);
    }

    /// When other work begins or ends, the mode changes after one long turn at most.
    #[test]
    fn the_mode_changes_with_the_system() {
        let [before, after] = shares([1.8, 0.5]);
        assert!(before > 0.99 && after < 0.1, "{before} {after}");
        let [before, after] = shares([0.5, 1.8]);
        assert!(before < 0.1 && after > 0.9, "{before} {after}");
    }
}
