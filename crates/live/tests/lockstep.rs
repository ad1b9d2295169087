//! Lockstep equals the simulator on 50 random small fabrics under every scheme, whose devices are processes, and on
//! some of them as threads, too; a valid run by the wall clock equals it, too. The kernel permits an ordinary user's namespaces only
//! to a process with one thread, so this test has its own `main`. Where the system forbids namespaces it counts as
//! ignored.

#[cfg(target_os = "linux")]
fn main() -> std::process::ExitCode {
    linux::main()
}

#[cfg(not(target_os = "linux"))]
fn main() {}

#[cfg(target_os = "linux")]
mod linux {
    use nix::sys::signal::{Signal, kill};
    use nix::unistd::Pid;
    use std::any::Any;
    use std::collections::{BTreeMap, BTreeSet};
    use std::path::Path;
    use std::process::ExitCode;
    use std::time::Duration;
    use xoff_live::{Clock, refuse};
    use xoff_plan::plan::{Flow, Plan};
    use xoff_schemes::flow_control::registry::FlowControlKeys;
    use xoff_sim::outcome::{FlowOutcome, Outcome, Pause, Stop};
    use xoff_swarm::generate;

    /// Devices in processes share their memory with the test.
    #[global_allocator]
    static ALLOCATOR: xoff_live::memory::Allocator = xoff_live::memory::Allocator;

    const FABRICS: usize = 50;
    const MOST_SEEDS: u64 = 10_000;
    /// So many of them at most have the same scheme.
    const MOST_OF_A_SCHEME: usize = 4;
    /// The devices of so many of them are threads of one process as well.
    const THREADED: usize = 20;
    /// Larger runs are left out: the test takes seconds.
    const MOST_EVENTS: u64 = 20_000;
    /// Windows of the smallest delay, in each of which all devices wait for each other.
    const MOST_WINDOWS: u64 = 1_000;
    const MOST_DEVICES: usize = 16;

    /// Nothing runs in the namespaces of devices but the devices.
    fn nothing(_: &dyn Fn(u32) -> Result<(), String>) -> Result<Box<dyn Any>, String> {
        Ok(Box::new(()))
    }

    /// What it has compared; nothing if this machine is too busy.
    type Test = fn() -> Result<Option<String>, String>;

    pub fn main() -> ExitCode {
        let listed = std::env::args().any(|argument| argument == "--list");
        if listed {
            println!("lockstep: test\nwall: test\nwall_of_threads: test\nkilled: test\nstopped: test");
            return ExitCode::SUCCESS;
        }
        println!("\nrunning 5 tests");
        let tests: [(&str, Test); 5] = [
            ("lockstep", compare),
            ("wall", || follow_the_clock(false)),
            ("wall_of_threads", || follow_the_clock(true)),
            ("killed", kill_a_device),
            ("stopped", stop_a_device),
        ];
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

    fn ring(text: &str) -> Result<Plan, String> {
        let files = |path: &Path| Err(std::io::Error::other(format!("{path:?} in a test")));
        Ok(xoff_plan::load("ring.toml", text.as_bytes(), &[], &files).map_err(|e| e.one_line())?.plan)
    }

    /// The processes of this one, by their names.
    fn children() -> BTreeMap<String, Pid> {
        let mut children = BTreeMap::new();
        let list = std::fs::read_to_string("/proc/thread-self/children").unwrap_or_default();
        for pid in list.split_whitespace().filter_map(|pid| pid.parse().ok()) {
            let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
            children.insert(name.trim_end().into(), Pid::from_raw(pid));
        }
        children
    }

    /// Three racks and two spines under a scheme. The run has an end in the middle of traffic.
    fn racks(scheme: &str, more: &str) -> Result<Plan, String> {
        ring(&format!(
            "[topology]\nkind = \"leaf-spine\"\nleaves = 3\nspines = 2\nhosts_per_leaf = 2\n\
            host_link = {{ rate = \"100Gbps\", delay = \"1us\" }}\nfabric_link = {{ rate = \"100Gbps\", delay = \"1us\" }}\n\
            [flow_control]\nscheme = \"{scheme}\"\n[run]\nduration = \"60us\"\n\
            [[traffic]]\nkind = \"all-to-all\"\nsize = \"100kB\"\n{more}"
        ))
    }

    /// Runs a plan, and kills the process of a device in the watch after some.
    fn kill_in(plan: &Plan, clock: Clock, device: &str, watches: u32) -> Result<xoff_live::Made, String> {
        let (mut seen, mut killed) = (0, None);
        let made = xoff_live::run(plan, clock, false, None, &mut nothing, &mut |progress| {
            seen += u32::from(progress.now > 0);
            if killed.is_none() && seen == watches {
                killed = children().get(&format!("xoff:{device}")).copied();
                let _ = killed.map(|pid| kill(pid, Signal::SIGKILL));
            }
            true
        })?;
        let pid = killed.ok_or(format!("no process is called xoff:{device}"))?;
        let [death] = &made.deaths[..] else { return Err(format!("{:?} died", made.deaths)) };
        let how = format!("(process {pid}) was killed by SIGKILL");
        if plan.topology.nodes[death.device as usize].name != device || death.how != how {
            return Err(format!("{death:?} and not {device} {how}"));
        }
        if made.is_valid() {
            return Err("a run with a dead device is valid".into());
        }
        if !children().is_empty() {
            return Err(format!("{:?} are left", children()));
        }
        Ok(made)
    }

    /// What the devices that live have seen of their flows, apart from drops, which the dead one cannot count; and
    /// their pauses.
    fn seen_by_the_living(plan: &Plan, dead: u32, outcome: &Outcome) -> (Vec<FlowOutcome>, Vec<Pause>) {
        let of_living = |(_, flow): &(&FlowOutcome, &Flow)| flow.src != dead && flow.dst != dead;
        let flows = outcome.flows.iter().zip(&plan.flows).filter(of_living);
        let flows = flows.map(|(seen, _)| FlowOutcome { dropped: 0, ..*seen }).collect();
        let of_dead = |port: u32| plan.topology.ports[port as usize].node == dead;
        (flows, outcome.pauses.iter().filter(|pause| !of_dead(pause.port)).cloned().collect())
    }

    /// A device is killed, and the others go on as if its links had failed: in lockstep exactly as simulated, by the
    /// wall clock to the end of the run. Both name the device.
    fn kill_a_device() -> Result<Option<String>, String> {
        let mut deaths = BTreeMap::new();
        for (i, scheme) in FlowControlKeys::names().into_iter().enumerate() {
            let device = ["S1.1", "S0.2", "H3"][i % 3];
            let Ok(plan) = &racks(scheme, "") else { continue };
            if refuse::refusal(plan, Clock::Lockstep).is_some() {
                continue;
            }
            let made = kill_in(plan, Clock::Lockstep, device, 1 + 4 * (i as u32 % 5))?;
            let (dead, at) = (made.deaths[0].device, made.deaths[0].at);
            let links = match device.starts_with('S') {
                true => format!("switch = \"{device}\""),
                false => format!("link = \"{device}:0\""),
            };
            let failure =
                format!("[[failure]]\n{links}\nat = \"{at}ps\"\n[routing]\nreconvergence = \"1s\"\n");
            let simulated = xoff_sim::run(&racks(scheme, &failure)?, &mut |_| true);
            let [here, there] = [&made.outcome, &simulated]
                .map(|outcome| (outcome.end, seen_by_the_living(plan, dead, outcome)));
            if here != there {
                let what = if here.1.0 == there.1.0 { "pauses" } else { "flows" };
                return Err(format!(
                    "{scheme}: without {device} from {at} ps on, {what} differ from those simulated"
                ));
            }
            deaths.insert(scheme, format!("{device} at {} us", at / 1_000_000));
        }
        if deaths.len() < 10 {
            return Err(format!("only {deaths:?}"));
        }
        let plan = &ring(&format!("{RING}[measure]\nexplain = true\n").replacen(
            "[measure]\ninterval = \"10us\"\n",
            "",
            1,
        ))?;
        let made = kill_in(plan, Clock::Wall { dilate: 40_000 }, "S0.1", 1)?;
        if made.outcome.stop != Stop::EndTime || made.outcome.end != 60_000_000 {
            return Err(format!("{:?} at {}", made.outcome.stop, made.outcome.end));
        }
        Ok(Some(format!("in lockstep {deaths:?}, and by the wall clock")))
    }

    /// A host of a ring is stopped for a while: the run by the wall clock is invalid, and that in lockstep is as
    /// simulated. Both name the host.
    fn stop_a_device() -> Result<Option<String>, String> {
        let plan = &ring(RING)?;
        let simulated = xoff_sim::run(plan, &mut |_| true);
        for clock in [Clock::Lockstep, Clock::Wall { dilate: 20_000 }] {
            let mut stopped = false;
            let made = xoff_live::run(plan, clock, false, None, &mut nothing, &mut |progress| {
                if !stopped && progress.now > 0 {
                    stopped = true;
                    let pid = children()["xoff:H0"];
                    let _ = kill(pid, Signal::SIGSTOP);
                    std::thread::spawn(move || {
                        std::thread::sleep(Duration::from_millis(400));
                        kill(pid, Signal::SIGCONT)
                    });
                }
                true
            })?;
            let [stop] = &made.stops[..] else { return Err(format!("{:?} were stopped", made.stops)) };
            let name = &plan.topology.nodes[stop.device as usize].name;
            if name != "H0" || !(0.3..0.6).contains(&stop.lasted.as_secs_f64()) {
                return Err(format!("{name} was stopped for {:?}", stop.lasted));
            }
            if clock == Clock::Lockstep {
                same(&simulated, &made.outcome).map_err(|what| format!("{what} differ"))?;
            } else if made.is_valid() {
                return Err(format!("{:?}", made.lateness));
            }
        }
        Ok(Some("in lockstep and by the wall clock".into()))
    }

    /// Compares the first valid run of a ring by the wall clock; `None` if none is valid.
    fn follow_the_clock(one_process: bool) -> Result<Option<String>, String> {
        let plan = &ring(RING)?;
        let simulated = xoff_sim::run(plan, &mut |_| true);
        for dilate in [20_000, 80_000] {
            let clock = Clock::Wall { dilate };
            let made = xoff_live::run(plan, clock, one_process, None, &mut nothing, &mut |_| true)?;
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
        // The devices of SWING are beside switches, on links without delay.
        let names = FlowControlKeys::names().into_iter().filter(|name| *name != "swing");
        let mut missing: BTreeSet<&str> = names.collect();
        for seed in first..first + MOST_SEEDS {
            if fabrics >= FABRICS && missing.is_empty() {
                break;
            }
            let Ok(loaded) = generate::scenario(seed).load() else { continue };
            let plan = &loaded.plan;
            let fits = refuse::refusal(plan, Clock::Lockstep).is_none()
                && plan.topology.nodes.len() <= MOST_DEVICES
                && !plan.flows.is_empty();
            let scheme = plan.flow_control.name().to_string();
            if !fits || schemes.get(&scheme).is_some_and(|&fabrics| fabrics == MOST_OF_A_SCHEME) {
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
            let ways: &[bool] = if fabrics < THREADED { &[false, true] } else { &[false] };
            for &one_process in ways {
                let lockstep = Clock::Lockstep;
                let made = xoff_live::run(plan, lockstep, one_process, None, &mut nothing, &mut |_| true);
                let made = made.map_err(|why| {
                    format!("seed {seed} ({scheme}): {why}\n{}", generate::scenario(seed).text())
                })?;
                // Every packet but those inside slow receivers was a frame.
                let sent: u64 = made.sent.iter().sum();
                if sent != simulated.counters.packet_hops {
                    let hops = simulated.counters.packet_hops;
                    return Err(format!("seed {seed} ({scheme}): {sent} frames for {hops} packet-hops"));
                }
                same(&simulated, &made.outcome)
                    .map_err(|what| format!("seed {seed} ({scheme}): {what} differ"))?;
            }
            missing.remove(&scheme[..]);
            *schemes.entry(scheme).or_insert(0) += 1;
            fabrics += 1;
        }
        if !missing.is_empty() {
            return Err(format!("no fabric has {missing:?}"));
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
