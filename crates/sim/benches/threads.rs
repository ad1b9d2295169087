//! Two threads beside one: medians of alternating pairs by wall clock, on the machine as it is, then beside a
//! process of low priority (nice 10), and beside one of equal priority.
//!
//! `cargo bench --bench threads -- Pyrrha` measures the cases whose name contains `Pyrrha`; `PAIRS=10` is how many
//! pairs.

mod cases;

use std::process::{Child, Command, Stdio};
use std::time::Instant;
use xoff_plan::plan::Plan;

/// A process that is always busy, killed in the end.
struct Busy(Child);

impl Busy {
    fn new(nice: &str) -> Self {
        let endless = ["-n", nice, "sh", "-c", "while :; do :; done"];
        Self(Command::new("nice").args(endless).stdout(Stdio::null()).spawn().expect("nice and sh"))
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Wall-clock seconds of a run that asks for `threads` threads.
fn seconds(plan: &Plan, threads: usize) -> f64 {
    let begin = Instant::now();
    xoff_sim::run_on(plan, xoff_sim::threads_with_cores(plan, threads), &mut |_| true);
    begin.elapsed().as_secs_f64()
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    (values[(values.len() - 1) / 2] + values[values.len() / 2]) / 2.0
}

fn main() {
    let only: Vec<String> = std::env::args().skip(1).filter(|arg| !arg.starts_with("--")).collect();
    let pairs = std::env::var("PAIRS").ok().and_then(|n| n.parse().ok()).unwrap_or(10);
    for (beside, nice) in [("nothing", None), ("nice 10", Some("10")), ("equal priority", Some("0"))] {
        println!(
            "beside {beside}: seconds of one thread and of two, medians of {pairs} pairs, and their quotient"
        );
        let _busy = nice.map(Busy::new);
        for case in cases::all("4ms") {
            if !only.iter().all(|part| case.name.contains(part.as_str())) {
                continue;
            }
            let plan = case.plan();
            let (one, two): (Vec<_>, Vec<_>) =
                (0..pairs).map(|_| (seconds(&plan, 1), seconds(&plan, 2))).unzip();
            let (one, two) = (median(one), median(two));
            println!("{one:8.3} {two:8.3} {:6.2}  {}", one / two, case.name);
        }
    }
}
