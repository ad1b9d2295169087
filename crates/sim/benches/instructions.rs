//! Instructions per packet-hop of the run alone, and the part of each group of source files. Each case runs
//! under callgrind, a tool of Valgrind, which must be installed. The counts do not vary.

mod cases;

use std::{collections::HashMap, process::Command};
use xoff_plan::plan::Plan;
use xoff_sim::outcome::Counters;

/// A group of source files: its name, and parts of their paths.
type Group = (&'static str, &'static [&'static str]);

/// The first group with a part of the path has the file; the last one has all others, which is mostly code of
/// the standard library that was inlined.
const GROUPS: [Group; 7] = [
    ("events", &["kernel/src/wheel.rs", "sim/src/engine.rs"]),
    ("buffers", &["switch/buffer.rs", "switch/ingress.rs", "switch/release.rs"]),
    ("flow queues", &["switch/leaves.rs", "switch/by_flow.rs", "switch/pull.rs", "switch/lists.rs"]),
    ("ports", &["sim/src/switch/", "sim/src/core.rs", "sim/src/packet.rs", "kernel/src/table.rs"]),
    ("hosts", &["sim/src/host/", "schemes/src/transport/", "schemes/src/congestion_control/"]),
    ("scheme", &["schemes/src/flow_control/"]),
    ("other", &[""]),
];

/// Instructions by group, from what callgrind wrote: `fl`, `fi` and `fe` name the file of the costs that follow,
/// `cfi` and `cfl` that of a call; each by number only, after the first time. Lines of two numbers are costs, and
/// the one after `calls` is the cost of a call, which is counted elsewhere.
fn by_group(counts: &str) -> [u64; GROUPS.len()] {
    let mut names = HashMap::new();
    let (mut sums, mut group, mut call) = ([0; GROUPS.len()], GROUPS.len() - 1, false);
    for line in counts.lines() {
        if let Some((key @ ("fl" | "fi" | "fe" | "cfi" | "cfl"), file)) = line.split_once('=') {
            let (number, name) = file.split_once(' ').unwrap_or((file, ""));
            let of = |(_, paths): &Group| paths.iter().any(|path| name.contains(path));
            let found = || GROUPS.iter().position(of).expect("the last group has all");
            let of_file = *names.entry(number).or_insert_with(found);
            if !key.starts_with('c') {
                group = of_file;
            }
        } else if line.starts_with("calls=") {
            call = true;
        } else if line.starts_with(['+', '-', '*']) || line.starts_with(|c: char| c.is_ascii_digit()) {
            let cost = line.split(' ').nth(1).map_or(0, |cost| cost.parse().expect("a number"));
            sums[group] += if std::mem::take(&mut call) { 0 } else { cost };
        }
    }
    sums
}

/// What is counted.
#[inline(never)]
fn counted(plan: &Plan) -> Counters {
    xoff_sim::run(plan, &mut |_| true).counters
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).filter(|arg| arg != "--bench").collect();
    if let [only] = &args[..]
        && let Ok(case) = only.parse::<usize>()
    {
        println!("{}", counted(&cases::all("1ms")[case].plan()).packet_hops);
        return;
    }
    let program = std::env::current_exe().expect("its own path");
    let out = std::env::temp_dir().join(format!("xoff-instructions-{}", std::process::id()));
    println!("instructions per packet-hop, and by group of source files:");
    let titles: String = GROUPS.iter().map(|(name, _)| format!("{name:>12}")).collect();
    println!("{:>7}{titles}", "all");
    for (i, case) in cases::all("1ms").iter().enumerate() {
        let result = Command::new("valgrind")
            .args(["--tool=callgrind", "--toggle-collect=instructions*::counted"])
            .arg(format!("--callgrind-out-file={}", out.display()))
            .arg(&program)
            .arg(i.to_string())
            .output();
        let Ok(result) = result else {
            println!("Valgrind is missing (Debian: apt-get install valgrind)");
            return;
        };
        let hops: f64 = String::from_utf8_lossy(&result.stdout).trim().parse().expect("packet-hops");
        let counts = std::fs::read_to_string(&out).expect("what callgrind wrote");
        let sum = counts.lines().find_map(|line| line.strip_prefix("summary: ")).expect("a sum");
        let sum: u64 = sum.trim().parse().expect("a number");
        let groups = by_group(&counts);
        assert_eq!(groups.iter().sum::<u64>(), sum, "every instruction belongs to a group");
        let groups: String = groups.iter().map(|count| format!("{:12.1}", *count as f64 / hops)).collect();
        println!("{:7.1}{groups}  {}", sum as f64 / hops, case.name);
    }
    let _ = std::fs::remove_file(out);
}
