//! Lockstep equals the simulator on 50 random small fabrics. The kernel permits an ordinary user's namespaces
//! only to a process with one thread, so this test has its own `main`. Where the system forbids namespaces it
//! counts as ignored.

#[cfg(target_os = "linux")]
fn main() -> std::process::ExitCode {
    linux::main()
}

#[cfg(not(target_os = "linux"))]
fn main() {}

#[cfg(target_os = "linux")]
mod linux {
    use std::collections::BTreeMap;
    use std::process::ExitCode;
    use xoff_live::{Clock, refuse};
    use xoff_sim::outcome::{Outcome, Stop};
    use xoff_swarm::generate;

    const FABRICS: usize = 50;
    /// Larger runs are left out: the test takes seconds.
    const MOST_EVENTS: u64 = 20_000;
    /// Windows of the smallest delay, in each of which all devices wait for each other.
    const MOST_WINDOWS: u64 = 1_000;
    const MOST_DEVICES: usize = 16;

    pub fn main() -> ExitCode {
        let listed = std::env::args().any(|argument| argument == "--list");
        if listed {
            println!("lockstep: test");
            return ExitCode::SUCCESS;
        }
        println!("\nrunning 1 test");
        let [passed, failed, ignored] = match xoff_live::enter() {
            Err(why) => {
                println!("test lockstep ... ignored, {why}");
                [0, 0, 1]
            }
            Ok(()) => match compare() {
                Ok(schemes) => {
                    println!("test lockstep ... ok ({schemes:?})");
                    [1, 0, 0]
                }
                Err(why) => {
                    println!("test lockstep ... FAILED\n\n{why}");
                    [0, 1, 0]
                }
            },
        };
        let verdict = if failed == 0 { "ok" } else { "FAILED" };
        println!(
            "\ntest result: {verdict}. {passed} passed; {failed} failed; {ignored} ignored; 0 measured\n"
        );
        if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
    }

    /// Compares runs; returns the number of fabrics of each scheme.
    fn compare() -> Result<BTreeMap<String, usize>, String> {
        let mut schemes = BTreeMap::new();
        let first: u64 = std::env::var("LIVE_SEED").map_or(0, |seed| seed.parse().unwrap_or(0));
        let mut fabrics = 0;
        for seed in first.. {
            if fabrics == FABRICS {
                break;
            }
            let Ok(loaded) = generate::scenario(seed).load() else { continue };
            let plan = &loaded.plan;
            let fits = refuse::refusal(plan, Clock::Lockstep).is_none()
                && plan.topology.nodes.len() <= MOST_DEVICES
                && !plan.flows.is_empty();
            if !fits {
                continue;
            }
            let simulated = xoff_sim::run(plan, &mut |progress| progress.counters.events < MOST_EVENTS);
            let windows = simulated.end / refuse::least_delay(plan).min(1_000_000);
            if simulated.stop == Stop::Interrupted
                || simulated.counters.events > MOST_EVENTS
                || simulated.counters.packet_hops < 100
                || windows > MOST_WINDOWS
            {
                continue;
            }
            let scheme = plan.flow_control.name().to_string();
            let made = xoff_live::run(plan, Clock::Lockstep, None, &mut |_| Ok(()), &mut |_| true).map_err(
                |why| format!("seed {seed} ({scheme}): {why}\n{}", generate::scenario(seed).text()),
            )?;
            // Every packet but those inside slow receivers was a frame.
            let sent: u64 = made.sent.iter().sum();
            if sent != simulated.counters.packet_hops {
                let hops = simulated.counters.packet_hops;
                return Err(format!("seed {seed} ({scheme}): {sent} frames for {hops} packet-hops"));
            }
            same(&simulated, &made.outcome)
                .map_err(|what| format!("seed {seed} ({scheme}): {what} differ"))?;
            *schemes.entry(scheme).or_insert(0) += 1;
            fabrics += 1;
        }
        Ok(schemes)
    }

    fn same(simulated: &Outcome, live: &Outcome) -> Result<(), &'static str> {
        for (what, equal) in [
            ("flows", simulated.flows == live.flows),
            ("pauses", simulated.pauses == live.pauses),
            ("outcomes", simulated == live),
        ] {
            if !equal {
                return Err(what);
            }
        }
        Ok(())
    }
}
