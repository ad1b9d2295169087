//! Speed: packet-hops per CPU second on one core.
//!
//! A packet-hop is one packet of any kind that crosses one link. Besides Criterion's timing of a whole run,
//! each case prints its best speed in CPU seconds (wall time includes other processes), data packet-hops
//! apart, events per packet-hop, and the memory of the process.

use criterion::{Criterion, SamplingMode, Throughput, criterion_group, criterion_main};
use std::time::Duration;
use xoff_plan::plan::Plan;

/// 160 hosts under ten leaves and four spines; web search at half of the fabric's capacity, for 1 ms, then
/// until every flow is complete.
const LEAF_SPINE: &str = r#"
[topology]
kind = "leaf-spine"
leaves = 10
spines = 4
hosts_per_leaf = 16
host_link = { rate = "100Gbps", delay = "1us" }
fabric_link = { rate = "400Gbps", delay = "1us" }
[flow_control]
scheme = "pfc"
[[traffic]]
kind = "poisson"
sizes = "websearch"
load = 0.5
[run]
duration = "1ms"
"#;

/// 1,024 hosts, each sending 2 MB to another at once.
const FAT_TREE: &str = r#"
[topology]
kind = "fat-tree"
k = 16
link = { rate = "100Gbps", delay = "1us" }
[flow_control]
scheme = "pfc"
[[traffic]]
kind = "permutation"
size = "2MB"
"#;

/// Zeropod's pod of 256 hosts, web search at 0.8 of the capacity of the hosts' links.
const ZEROPOD: &str = r#"
[topology]
kind = "zeropod"
racks = 16
hosts_per_rack = 16
aggs = 16
link = { rate = "100Gbps", delay = "1us" }
[[traffic]]
kind = "poisson"
sizes = "websearch"
load = 0.8
load_of = "host-links"
[run]
duration = "5ms"
"#;

fn plan(text: &str, whole_flows: bool) -> Plan {
    let files = |_: &std::path::Path| Err(std::io::Error::other("no files"));
    let mut plan = xoff_plan::load("bench.toml", text.as_bytes(), &[], &files).expect("it loads").plan;
    if whole_flows {
        plan.end = None;
    }
    plan.measure = xoff_plan::plan::Measure::default();
    plan
}

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

fn cases(criterion: &mut Criterion) {
    // The same under PFC and under Pyrrha, at a load at which many wait.
    let busy =
        LEAF_SPINE.replace("load = 0.5", "load = 0.8").replace("[run]", "[switch]\nbuffer = \"20MB\"\n[run]");
    let pyrrha = busy.replace("\"pfc\"", "\"pyrrha\"");
    for (name, text, whole) in [
        ("leaf-spine 160, websearch 0.5", LEAF_SPINE, true),
        ("fat-tree 1024, permutation", FAT_TREE, false),
        ("leaf-spine 160, websearch 0.8", &busy, false),
        ("the same under Pyrrha", &pyrrha, false),
        ("Zeropod's pod 256, websearch 0.8", ZEROPOD, false),
    ] {
        let plan = plan(text, whole);
        let mut best = f64::INFINITY;
        let mut counters = xoff_sim::outcome::Counters::default();
        for _ in 0..3 {
            let begin = cpu_seconds();
            counters = xoff_sim::run(&plan, &mut |_| true).counters;
            best = best.min(cpu_seconds() - begin);
        }
        println!(
            "{name}: {:.2} M packet-hops per CPU second ({} packet-hops, {} of data; {:.2} s), {:.3} events per packet-hop, peak {} MiB",
            counters.packet_hops as f64 / best / 1e6,
            counters.packet_hops,
            counters.data_hops,
            best,
            counters.events as f64 / counters.packet_hops as f64,
            memory_peak().map_or("?".to_owned(), |m| m.to_string()),
        );
        let mut group = criterion.benchmark_group("packet-hops");
        group
            .throughput(Throughput::Elements(counters.packet_hops))
            .sampling_mode(SamplingMode::Flat)
            .sample_size(10)
            .warm_up_time(Duration::from_millis(1))
            .measurement_time(Duration::from_secs(10));
        group.bench_function(name, |b| b.iter(|| xoff_sim::run(&plan, &mut |_| true).counters.packet_hops));
        group.finish();
    }
}

criterion_group!(benches, cases);
criterion_main!(benches);
