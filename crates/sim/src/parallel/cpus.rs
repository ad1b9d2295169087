//! The processors that the threads of a run use. Each thread has its own share, so two never wait for one
//! processor. With more processors than threads a share has several of them, and the system may move the
//! thread within its share. On systems other than Linux there are no shares.

#[cfg(target_os = "linux")]
pub use linux::Cpus;
#[cfg(not(target_os = "linux"))]
pub use other::Cpus;

#[cfg(target_os = "linux")]
mod linux {
    use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
    use nix::unistd::Pid;

    pub struct Cpus {
        all: CpuSet,
        shares: Vec<CpuSet>,
    }

    impl Cpus {
        /// Deals out this thread's processors to `threads` threads; `None` if there are too few, or unknown.
        pub fn new(threads: usize) -> Option<Self> {
            let all = sched_getaffinity(Pid::from_raw(0)).ok()?;
            let mut cpus: Vec<usize> =
                (0..CpuSet::count()).filter(|&cpu| all.is_set(cpu).unwrap_or(false)).collect();
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

        /// Shares are of equal size, apart, and together all; a thread that keeps to one runs there.
        #[test]
        fn each_thread_has_processors_of_its_own() {
            let all = std::thread::available_parallelism().map_or(1, |n| n.get());
            assert!(Cpus::new(CpuSet::count() + 1).is_none());
            for threads in 1..=all {
                let Some(cpus) = Cpus::new(threads) else { continue };
                let members = |set: &CpuSet| {
                    (0..CpuSet::count()).filter(|&cpu| set.is_set(cpu).unwrap()).collect::<Vec<_>>()
                };
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

    impl Cpus {
        pub fn new(_: usize) -> Option<Self> {
            None
        }

        pub fn keep_to(&self, _: usize) {}
    }
}
