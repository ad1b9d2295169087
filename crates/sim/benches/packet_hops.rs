//! Speed: packet-hops per CPU second on one core.
//!
//! A packet-hop is one packet of any kind that crosses one link. CPU seconds are measured, for wall time includes
//! other processes. The peak of memory is that of the process so far.
//!
//! `cargo bench --bench packet_hops -- Pyrrha` measures the cases whose name contains `Pyrrha`.

mod cases;

/// CPU seconds of this process, from the kernel's own accounts (Linux), in
/// clock ticks of 10 ms; elsewhere wall time.
fn cpu_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    match (fields.get(11), fields.get(12)) {
        (Some(user), Some(system)) => {
            (user.parse::<f64>().unwrap_or(0.0) + system.parse::<f64>().unwrap_or(0.0)) / 100.0
        }
        _ => std::time::SystemTime::now()
            .duration_since(std::time::UNIX_EPOCH)
            .map_or(0.0, |d| d.as_secs_f64()),
    }
}

/// Most memory that this process ever had, in MiB (Linux).
fn memory_peak() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|l| l.starts_with("VmHWM:"))?;
    Some(line.split_whitespace().nth(1)?.parse::<u64>().ok()? / 1024)
}

fn main() {
    let only: Vec<String> = std::env::args().skip(1).filter(|arg| !arg.starts_with("--")).collect();
    let mut all = cases::all("1ms");
    all.extend([cases::largest(), cases::pod()]);
    println!("millions of packet-hops per CPU second, the best of three runs on one thread:");
    for case in all {
        if !only.iter().all(|part| case.name.contains(part.as_str())) {
            continue;
        }
        let plan = case.plan();
        let mut best = f64::INFINITY;
        let mut counters = xoff_sim::outcome::Counters::default();
        for _ in 0..3 {
            let begin = cpu_seconds();
            counters = xoff_sim::run(&plan, &mut |_| true).counters;
            best = best.min(cpu_seconds() - begin);
        }
        println!(
            "{:7.2}  {}: {} packet-hops, {} of data; {best:.2} s; {:.3} events per packet-hop; peak {} MiB",
            counters.packet_hops as f64 / best / 1e6,
            case.name,
            counters.packet_hops,
            counters.data_hops,
            counters.events as f64 / counters.packet_hops as f64,
            memory_peak().map_or("?".to_owned(), |m| m.to_string()),
        );
    }
}
