//! The processors that the threads of a run use. Each thread has its own share, so two never wait for one
//! processor. With more processors than threads a share has several of them, and the system may move the
//! thread within its share. On systems other than Linux there are no shares.

#[cfg(target_os = "linux")]
pub use linux::{Cpus, all_free, least_time};
#[cfg(not(target_os = "linux"))]
pub use other::{Cpus, all_free, least_time};

/// Part of the time of its processors that a thread loses to the other threads of its run.
const LOST: f64 = 0.25;

/// `threads`, or 1 if other processes leave them so little time that one thread is as fast.
pub fn free(threads: usize) -> usize {
    match threads {
        1 => 1,
        _ => least_time(threads).map_or(threads, |least| faster(threads, least)),
    }
}

/// The same, if each thread gets its processors for `least` of the time. All threads are as slow as the
/// slowest one; a single thread is put where it gets all of the time.
fn faster(threads: usize, least: f64) -> usize {
    if threads as f64 * least * (1.0 - LOST) > 1.0 { threads } else { 1 }
}

#[cfg(test)]
mod tests {
    use super::faster;

    #[test]
    fn one_thread_is_enough_where_processors_are_busy() {
        assert_eq!([1.0, 0.8, 0.7, 0.6, 0.1].map(|least| faster(2, least)), [2, 2, 2, 1, 1]);
        assert_eq!([1.0, 0.5, 0.4, 0.3].map(|least| faster(4, least)), [4, 4, 4, 1]);
    }
}

#[cfg(target_os = "linux")]
mod linux {
    use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
    use nix::time::{ClockId, clock_gettime};
    use nix::unistd::Pid;
    use std::time::{Duration, Instant};

    /// How long each thread is busy to measure its share of its processors: some time slices of a busy system.
    const PROBE: Duration = Duration::from_millis(20);

    pub struct Cpus {
        all: CpuSet,
        shares: Vec<CpuSet>,
    }

    impl Cpus {
        /// Deals out this thread's processors to `threads` threads; `None` if there are too few, or unknown.
        pub fn new(threads: usize) -> Option<Self> {
            let all = sched_getaffinity(Pid::from_raw(0)).ok()?;
            let mut cpus = members(&all);
            // Processors of one core come together, so that threads get cores of their own.
            cpus.sort_by_key(|&cpu| (core_of(cpu), cpu));
            let bounds: Vec<usize> = (0..=threads).map(|i| i * cpus.len() / threads).collect();
            let share = |bounds: &[usize]| {
                let mut share = CpuSet::new();
                cpus[bounds[0]..bounds[1]].iter().try_for_each(|&cpu| share.set(cpu)).ok()?;
                Some(share)
            };
            let shares = bounds.windows(2).map(share).collect::<Option<_>>()?;
            (cpus.len() >= threads).then_some(Self { all, shares })
        }

        /// The calling thread runs on share `thread` only, until the result is dropped.
        pub fn keep_to(&self, thread: usize) -> Kept<'_> {
            // If the system refuses, the thread goes where it is put: that changes only the speed.
            let _ = sched_setaffinity(Pid::from_raw(0), &self.shares[thread]);
            Kept(self)
        }
    }

    fn members(set: &CpuSet) -> Vec<usize> {
        (0..CpuSet::count()).filter(|&cpu| set.is_set(cpu).unwrap_or(false)).collect()
    }

    /// Whether nothing else needs the processors now, if `threads` threads get one each. `None` if the system does
    /// not say how many threads run or wait for a processor.
    pub fn all_free(threads: usize) -> Option<bool> {
        let cpus = members(&sched_getaffinity(Pid::from_raw(0)).ok()?).len();
        Some(others(&std::fs::read_to_string("/proc/loadavg").ok()?)? + threads <= cpus)
    }

    /// The threads that run or wait for a processor besides the calling one, by `/proc/loadavg`.
    fn others(load: &str) -> Option<usize> {
        let running: usize = load.split([' ', '/']).nth(3)?.parse().ok()?;
        running.checked_sub(1)
    }

    /// How much of the time `threads` busy threads get their processors: the least of all threads, from 0
    /// to 1. `None` if it is unknown.
    pub fn least_time(threads: usize) -> Option<f64> {
        let cpus = &Cpus::new(threads)?;
        std::thread::scope(|scope| {
            let probe = |thread| {
                std::thread::Builder::new().spawn_scoped(scope, move || {
                    let _kept = cpus.keep_to(thread);
                    let used = || clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).map(Duration::from);
                    let (began, before) = (Instant::now(), used().ok()?);
                    while began.elapsed() < PROBE {
                        std::hint::spin_loop();
                    }
                    Some((used().ok()? - before).as_secs_f64() / began.elapsed().as_secs_f64())
                })
            };
            let probes: Vec<_> = (0..threads).map(probe).collect::<Result<_, _>>().ok()?;
            probes.into_iter().try_fold(1.0, |least: f64, probe| Some(least.min(probe.join().ok()??)))
        })
    }

    /// A thread that runs on its share.
    pub struct Kept<'c>(&'c Cpus);

    impl Drop for Kept<'_> {
        fn drop(&mut self) {
            let _ = sched_setaffinity(Pid::from_raw(0), &self.0.all);
        }
    }

    /// The first processor of the core of `cpu`; its own number where the system does not say.
    fn core_of(cpu: usize) -> usize {
        let list = format!("/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list");
        let first = std::fs::read_to_string(list).ok().and_then(|siblings| {
            siblings.split([',', '-', '\n']).next().and_then(|first| first.parse().ok())
        });
        first.unwrap_or(cpu)
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn threads_that_run_are_counted_without_the_calling_one() {
            assert_eq!(others("0.20 0.18 0.12 1/80 11206\n"), Some(0));
            assert_eq!(others("2.72 2.69 1.69 12/790 10036\n"), Some(11));
            // The calling thread runs, so this is no count; some sandboxes have it.
            assert_eq!(others("0.00 0.00 0.00 0/0 0\n"), None);
            assert_eq!(others(""), None);
            assert_ne!(all_free(CpuSet::count() + 1), Some(true));
        }

        /// A thread cannot be busy for longer than its probe takes.
        #[test]
        fn a_share_of_time_is_a_share() {
            let all = std::thread::available_parallelism().map_or(1, |n| n.get());
            assert_eq!(least_time(CpuSet::count() + 1), None);
            let least = least_time(all).expect("as many threads as processors");
            assert!(0.0 < least && least <= 1.0, "{least}");
        }

        /// Shares are of equal size, apart, and together all; a thread that keeps to one runs there.
        #[test]
        fn each_thread_has_processors_of_its_own() {
            let all = std::thread::available_parallelism().map_or(1, |n| n.get());
            assert!(Cpus::new(CpuSet::count() + 1).is_none());
            for threads in 1..=all {
                let Some(cpus) = Cpus::new(threads) else { continue };
                let mut seen: Vec<usize> = cpus.shares.iter().flat_map(members).collect();
                seen.sort_unstable();
                assert_eq!(seen, members(&cpus.all));
                for (thread, share) in cpus.shares.iter().enumerate() {
                    let kept = cpus.keep_to(thread);
                    assert_eq!(sched_getaffinity(Pid::from_raw(0)).unwrap(), *share);
                    drop(kept);
                    assert_eq!(sched_getaffinity(Pid::from_raw(0)).unwrap(), cpus.all);
                }
            }
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod other {
    /// No shares.
    pub struct Cpus;

    pub fn all_free(_: usize) -> Option<bool> {
        None
    }

    pub fn least_time(_: usize) -> Option<f64> {
        None
    }

    impl Cpus {
        pub fn new(_: usize) -> Option<Self> {
            None
        }

        pub fn keep_to(&self, _: usize) {}
    }
}
