//! Work on several cores. The results lie in the order of the items, however the items were spread.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

/// Does `work(worker, item)` for the items 0 to `items`, at most `jobs` in parallel; `worker` is below
/// `jobs`, and the calling thread is one of them. Items begin in order, and none begins after `stop` is set.
/// Returns the result of each item, `None` for items that did not begin. If the system refuses a thread,
/// there are fewer workers. Panics if `work` does.
pub fn each<T: Send>(
    jobs: usize,
    items: usize,
    stop: impl Fn() -> bool + Sync,
    work: impl Fn(usize, usize) -> T + Sync,
) -> Vec<Option<T>> {
    let next = AtomicUsize::new(0);
    let results: Mutex<Vec<Option<T>>> = Mutex::new((0..items).map(|_| None).collect());
    let worker = |worker| {
        while !stop() {
            let item = next.fetch_add(1, Ordering::Relaxed);
            if item >= items {
                break;
            }
            let result = work(worker, item);
            results.lock().unwrap_or_else(PoisonError::into_inner)[item] = Some(result);
        }
    };
    match jobs.min(items) {
        // No thread is needed.
        0 | 1 => worker(0),
        workers => thread::scope(|scope| {
            let worker = &worker;
            let begin = |me| thread::Builder::new().spawn_scoped(scope, move || worker(me));
            let _threads: Result<Vec<_>, _> = (1..workers).map(begin).collect();
            worker(0);
        }),
    }
    results.into_inner().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicBool;

    #[test]
    fn results_lie_in_order_for_any_number_of_workers() {
        for jobs in [0, 1, 2, 3, 50] {
            let squares = each(
                jobs,
                20,
                || false,
                |worker, i| {
                    assert!(worker < jobs.max(1));
                    i * i
                },
            );
            assert_eq!(squares, (0..20).map(|i| Some(i * i)).collect::<Vec<_>>());
        }
        assert!(each(4, 0, || false, |_, i| i).is_empty());
    }

    #[test]
    fn nothing_begins_after_the_stop() {
        let stop = AtomicBool::new(false);
        let done = each(1, 10, || stop.load(Ordering::Relaxed), |_, i| stop.store(i == 3, Ordering::Relaxed));
        assert_eq!(done.iter().filter(|d| d.is_some()).count(), 4);
        assert!(done[4..].iter().all(Option::is_none));
    }

    #[test]
    fn workers_work_at_once() {
        // Each waits for the other: a single worker would never return.
        let both = std::sync::Barrier::new(2);
        each(2, 2, || false, |_, _| both.wait());
    }
}
