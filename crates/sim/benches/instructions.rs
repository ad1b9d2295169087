//! Instructions per packet-hop, of the run alone: each case runs under callgrind (of Valgrind, which must be
//! installed). The counts do not vary.

mod cases;

use std::process::Command;
use xoff_plan::plan::Plan;
use xoff_sim::outcome::Counters;

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
    println!("instructions per packet-hop:");
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
        println!("{:7.1}  {}", sum.trim().parse::<f64>().expect("a number") / hops, case.name);
    }
    let _ = std::fs::remove_file(out);
}
