//! Lockstep equals the simulator on 50 random small fabrics, and a valid run by the wall clock equals it, too. The kernel permits an ordinary user's namespaces
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
    use std::path::Path;
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

    /// What it has compared; nothing if this machine is too busy.
    type Test = fn() -> Result<Option<String>, String>;

    pub fn main() -> ExitCode {
        let listed = std::env::args().any(|argument| argument == "--list");
        if listed {
            println!("lockstep: test\nwall: test");
            return ExitCode::SUCCESS;
        }
        println!("\nrunning 2 tests");
        let tests: [(&str, Test); 2] = [("lockstep", compare), ("wall", follow_the_clock)];
        let permitted = xoff_live::enter();
        let [mut passed, mut failed, mut ignored] = [0, 0, 0];
        for (name, test) in tests {
            match permitted.clone().map(|()| test()) {
                Err(why) => {
                    println!("test {name} ... ignored, {why}");
                    ignored += 1;
                }
                Ok(Ok(None)) => {
                    println!("test {name} ... ignored, this machine is too busy for a valid run");
                    ignored += 1;
                }
                Ok(Ok(Some(about))) => {
                    println!("test {name} ... ok ({about})");
                    passed += 1;
                }
                Ok(Err(why)) => {
                    println!("test {name} ... FAILED\n\n{why}");
                    failed += 1;
                }
            }
        }
        let verdict = if failed == 0 { "ok" } else { "FAILED" };
        println!(
            "\ntest result: {verdict}. {passed} passed; {failed} failed; {ignored} ignored; 0 measured\n"
        );
        if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
    }

    /// A ring that deadlocks, with samples, a link that fails and recovers, and an end in the middle of traffic.
    const RING: &str = "[topology]\nkind = \"ring\"\nswitches = 3\nhosts_per_switch = 1\n\
        link = { rate = \"10Gbps\", delay = \"2us\" }\n[flow_control]\nscheme = \"pfc\"\nxoff = \"20kB\"\n\
        [measure]\ninterval = \"10us\"\n[run]\nduration = \"60us\"\n\
        [[failure]]\nlink = \"S0.0-S0.1\"\nat = \"20us\"\nuntil = \"40us\"\n\
        [[traffic]]\nkind = \"all-to-all\"\nsize = \"100kB\"\n";

    /// Compares the first valid run of a ring by the wall clock; `None` if none is valid.
    fn follow_the_clock() -> Result<Option<String>, String> {
        let files = |path: &Path| Err(std::io::Error::other(format!("{path:?} in a test")));
        let loaded = xoff_plan::load("ring.toml", RING.as_bytes(), &[], &files).map_err(|e| e.one_line())?;
        let plan = &loaded.plan;
        let simulated = xoff_sim::run(plan, &mut |_| true);
        for dilate in [20_000, 80_000] {
            let made = xoff_live::run(plan, Clock::Wall { dilate }, None, &mut |_| Ok(()), &mut |_| true)?;
            if made.is_valid() {
                same(&simulated, &made.outcome).map_err(|what| format!("{what} differ"))?;
                return Ok(Some(format!(
                    "at a dilation of {dilate}, at most {} ps late",
                    made.lateness.latest
                )));
            }
        }
        Ok(None)
    }

    /// Compares runs; returns the number of fabrics of each scheme.
    fn compare() -> Result<Option<String>, String> {
        let mut schemes: BTreeMap<String, usize> = BTreeMap::new();
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
        Ok(Some(format!("{schemes:?}")))
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
