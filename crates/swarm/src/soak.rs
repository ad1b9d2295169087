//! Many seeds on all cores: counts their results, and saves the findings.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use std::{fs, io, thread};

use crate::generate;
use crate::invariants::Broken;
use crate::scenario::Scenario;
use crate::shrink::shrink;
use crate::trial::{Seen, Verdict, trial};

/// Scenarios that are tried to make a finding smaller.
const TRIALS: usize = 400;
/// No further one is begun after this time.
const LONGEST: Duration = Duration::from_secs(60);

/// The results of the seeds.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    pub done: u64,
    /// Scenarios that held everything.
    pub held: u64,
    /// Runs that were cut short, and violated no invariant.
    pub cut: u64,
    /// Scenarios that were refused, by the key and the message of the error.
    pub refused: BTreeMap<String, u64>,
    /// Of the runs that held everything: how many completed flows, paused, dropped, deadlocked, or
    /// kept critical paths.
    pub seen: [u64; 5],
    /// Findings: the seed, and the violated invariant.
    pub findings: Vec<(u64, Broken)>,
}

impl Tally {
    pub fn count(&mut self, seed: u64, verdict: Verdict) {
        self.done += 1;
        match verdict {
            Verdict::Refused(why) => *self.refused.entry(why).or_default() += 1,
            Verdict::Held(seen) => {
                self.held += 1;
                let Seen { completed, pauses, dropped, deadlock, shares, .. } = seen;
                for (sum, there) in
                    self.seen.iter_mut().zip([completed > 0, pauses > 0, dropped > 0, deadlock, shares > 0])
                {
                    *sum += u64::from(there);
                }
            }
            Verdict::Cut(_) => self.cut += 1,
            Verdict::Finding(broken) => self.findings.push((seed, broken)),
        }
    }

    /// Scenarios that were refused.
    pub fn refusals(&self) -> u64 {
        self.refused.values().sum()
    }

    /// A line with the present state.
    pub fn line(&self) -> String {
        let [completed, pauses, dropped, deadlock, shares] = self.seen;
        format!(
            "{} seeds: {} hold ({completed} completed flows, {pauses} paused, {dropped} dropped, {deadlock} deadlocked, \
             {shares} have critical paths), {} cut short, {} refused, {} findings",
            self.done,
            self.held,
            self.cut,
            self.refusals(),
            self.findings.len()
        )
    }
}

/// Sees every seed when it begins, and again with its verdict and the time it took.
pub type Watcher<'a> = dyn Fn(u64, &Scenario, Option<(&Verdict, Duration)>) + Sync + 'a;

/// Tries seeds from `from` on, on `threads` threads, until there are `count` of them or `goes_on`
/// says no; `each` sees every seed when it begins, and again with its verdict and the time it took.
pub fn seeds(
    from: u64,
    count: u64,
    threads: usize,
    goes_on: &(dyn Fn() -> bool + Sync),
    each: &Watcher<'_>,
) -> Tally {
    let next = AtomicU64::new(from);
    let tally = Mutex::new(Tally::default());
    thread::scope(|scope| {
        for _ in 0..threads.max(1) {
            scope.spawn(|| {
                while goes_on() {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed - from >= count {
                        break;
                    }
                    let begun = Instant::now();
                    let scenario = generate::scenario(seed);
                    each(seed, &scenario, None);
                    let verdict = trial(&scenario);
                    each(seed, &scenario, Some((&verdict, begun.elapsed())));
                    tally.lock().unwrap_or_else(|e| e.into_inner()).count(seed, verdict);
                }
            });
        }
    });
    let mut tally = tally.into_inner().unwrap_or_else(|e| e.into_inner());
    tally.findings.sort_by_key(|f| f.0);
    tally
}

/// Makes a finding smaller and writes it into `dir`; returns where.
///
/// # Errors
/// The file system refuses.
pub fn save(dir: &Path, seed: u64, scenario: &Scenario, broken: &Broken) -> io::Result<PathBuf> {
    let small = shrink(scenario, &broken.invariant, TRIALS, LONGEST);
    let detail = match trial(&small) {
        Verdict::Finding(broken) => broken.detail,
        // Details that depend on chance beside the seed remain as they were observed.
        _ => broken.detail.clone(),
    };
    let dir = dir.join(format!("seed-{seed}"));
    fs::create_dir_all(&dir)?;
    let path = dir.join("scenario.toml");
    let detail: String = detail.lines().take(12).map(|l| format!("{l:.600}\n")).collect();
    small.save(&path, &format!("Seed {seed} breaks the invariant: {}\n{detail}", broken.invariant))?;
    Ok(path)
}

/// Calls `report` every few seconds until dropped.
pub struct Ticker(std::sync::Arc<AtomicBool>, Option<thread::JoinHandle<()>>);

impl Ticker {
    pub fn new(every: Duration, report: impl Fn() + Send + 'static) -> Self {
        let over = std::sync::Arc::new(AtomicBool::new(false));
        let seen = over.clone();
        let thread = thread::spawn(move || {
            let mut waited = Duration::ZERO;
            while !seen.load(Ordering::Relaxed) {
                thread::sleep(Duration::from_millis(100));
                waited += Duration::from_millis(100);
                if waited >= every {
                    waited = Duration::ZERO;
                    report();
                }
            }
        });
        Self(over, Some(thread))
    }
}

impl Drop for Ticker {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
        if let Some(thread) = self.1.take() {
            // A panic there was printed already.
            let _ = thread.join();
        }
    }
}
