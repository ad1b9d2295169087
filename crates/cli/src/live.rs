//! `xoff live`: runs a scenario on real frames, with the run directory and the output of `xoff run`.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;

use miette::miette;
use serde::Serialize;
use xoff_outcome::report::{Level, Note};
use xoff_outcome::{Outcome, tap::Tap};
use xoff_plan::plan::Plan;
use xoff_results::human;
use xoff_sim::Watch;

use crate::{RunArgs, ScenarioArgs, run, whole};

/// Exit status: events were processed so late that the results are invalid.
pub const INVALID: u8 = 6;

#[derive(clap::Args)]
pub struct LiveArgs {
    #[command(flatten)]
    scenario: ScenarioArgs,
    /// Slow simulated time down N times, 1 to 1,000,000,000
    #[arg(long, value_name = "N", default_value = "10000", value_parser = whole::<u64>(1, 1_000_000_000))]
    dilate: u64,
    /// Follow no clock: all devices wait for each other, and the results are those of `xoff run`
    #[arg(long, conflicts_with = "dilate")]
    lockstep: bool,
    /// Run all devices as threads of one process, instead of a process for each
    #[arg(long)]
    one_process: bool,
    /// Run a shell command in the namespace of a device until the end, such as S0.0='tcpdump -i p1 -w s.pcap'; port
    /// S0.0:1 is interface p1. The run begins when the command captures, or after 5 s. At the end it gets SIGINT.
    /// Repeat the option for more commands
    #[arg(long = "in", value_name = "DEVICE=COMMAND", value_parser = device_command)]
    commands: Vec<(String, String)>,
    /// Directory for the results [default: xoff-runs/NAME]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Print the results and write no files
    #[arg(long, conflicts_with = "out")]
    no_out: bool,
    /// Replace an older run in the directory
    #[arg(long, conflicts_with = "no_out")]
    overwrite: bool,
    /// Print JSON instead of tables
    #[arg(long)]
    json: bool,
    /// Print no progress and no timing
    #[arg(long, short)]
    quiet: bool,
    /// Capture the packets of these ports in capture.pcapng, as xoff run does: in simulated time, and without
    /// the trailers that real frames have
    #[arg(long, value_name = "PORT,...", value_delimiter = ',', conflicts_with = "no_out")]
    pcap: Vec<String>,
}

fn device_command(text: &str) -> Result<(String, String), String> {
    let (device, command) = text.split_once('=').unwrap_or_default();
    if device.is_empty() || command.trim().is_empty() {
        return Err("expected DEVICE=COMMAND, such as S0.0='tcpdump -i p1'".into());
    }
    Ok((device.into(), command.into()))
}

pub fn live(args: LiveArgs) -> miette::Result<ExitCode> {
    let LiveArgs { scenario, dilate, lockstep, one_process, commands, out, no_out, overwrite, json, .. } =
        args;
    let LiveArgs { quiet, pcap, .. } = args;
    let live = Live { dilate: (!lockstep).then_some(dilate), one_process, commands };
    run::make(
        RunArgs { scenario, out, no_out, overwrite, json, quiet, pcap, ..RunArgs::default() },
        Some(&live),
    )
}

/// How a run on real frames is made.
pub struct Live {
    /// `None` in lockstep.
    dilate: Option<u64>,
    /// Devices are threads of this process.
    one_process: bool,
    /// Devices and the commands that run in their namespaces.
    commands: Vec<(String, String)>,
}

/// The clock and the lateness of a run, as its manifest has them. Times are simulated ones, in picoseconds.
#[derive(Serialize)]
pub struct Facts {
    clock: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    dilate: Option<u64>,
    pub valid: bool,
    /// The largest lateness of an event, and when that was due.
    latest_ps: u64,
    latest_due_ps: u64,
    mean_ps: u64,
    /// The most lateness of a valid run: the smallest delay of a link.
    bound_ps: u64,
    /// Frames that came after the receiver's clock had passed the time at which they were due.
    overtaken: u64,
    /// Frames that crossed veth pairs.
    frames: u64,
    /// The same for the device that sent the most, per second of the clock.
    busiest_device_frames_per_second: u64,
    /// By device: the number of its process. Absent if all devices are threads of one process.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    processes: BTreeMap<String, u32>,
    /// Devices whose processes died in the run.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub died: Vec<Died>,
    /// Devices whose processes were stopped for a while.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    stopped: Vec<Stopped>,
}

/// A device whose process died.
#[derive(Serialize)]
pub struct Died {
    device: String,
    /// When its links failed, in simulated time.
    at_ps: u64,
    /// How: the rest of a sentence.
    how: String,
}

/// A device whose process was stopped, and continued.
#[derive(Serialize)]
struct Stopped {
    device: String,
    /// When, in simulated time; absent in lockstep.
    #[serde(skip_serializing_if = "Option::is_none")]
    at_ps: Option<u64>,
    /// How long, by the clock of the machine.
    seconds: f64,
}

impl Facts {
    /// The remarks about the clock and the processes.
    pub fn notes(&self) -> Vec<Note> {
        let died = self.died.iter().map(|died| {
            let at = human::time(died.at_ps);
            let text = format!(
                "{} {} at {at}. Its links failed then. The results lack its pauses, its drops and what its ports sent. \
                 Packets that it had count as in flight.",
                died.device, died.how
            );
            Note::new(Level::Error, text)
        });
        let stopped = self.stopped.iter().map(|stopped| {
            let at = stopped.at_ps.map_or(String::new(), |at| format!(" from {} on", human::time(at)));
            let text = format!("{} was stopped for {:.1} s{at}.", stopped.device, stopped.seconds);
            Note::new(Level::Warning, text)
        });
        died.chain(stopped).chain([self.clock_note()]).collect()
    }

    fn clock_note(&self) -> Note {
        let frames = human::grouped(self.frames);
        let Some(dilate) = self.dilate else {
            return Note::new(
                Level::Note,
                format!("Live in lockstep: {frames} real frames crossed veth pairs."),
            );
        };
        let [latest, mean, bound] = [self.latest_ps, self.mean_ps, self.bound_ps].map(human::time);
        let text = format!(
            "events were at most {latest} late and {mean} on average, in simulated time; the limit is the smallest delay, \
             {bound}"
        );
        let dilate = human::grouped(dilate);
        if self.valid || !self.died.is_empty() {
            return Note::new(
                Level::Note,
                format!("Live at a dilation of {dilate}: {frames} real frames crossed veth pairs; {text}."),
            );
        }
        let late = human::counted(self.overtaken, "frame");
        let mut note = Note::new(
            Level::Warning,
            format!(
                "Invalid: devices were too slow for a dilation of {dilate}: {text}; {late} came too late."
            ),
        );
        note.help = Some("use a larger --dilate, or a machine with less other work".into());
        note
    }
}

#[cfg(target_os = "linux")]
mod linux {
    use super::*;
    use crate::{memory, output};
    use nix::sys::prctl::set_pdeathsig;
    use nix::sys::signal::{Signal, killpg};
    use nix::unistd::Pid;
    use std::any::Any;
    use std::os::unix::process::CommandExt;
    use std::process::{Child, Command, Stdio};
    use std::time::{Duration, Instant};
    use std::{fs, thread};
    use xoff_live::{Clock, Made, refuse};

    /// The longest wait for a command of `--in` to capture, and to end.
    const PATIENCE: Duration = Duration::from_secs(5);
    /// Captures read frames in blocks, some time after these have come, and lose the last block at SIGINT.
    const BLOCK: Duration = Duration::from_millis(500);

    impl Live {
        fn clock(&self) -> Clock {
            self.dilate.map_or(Clock::Lockstep, |dilate| Clock::Wall { dilate })
        }

        /// Refuses a plan that does not fit, and permits this process to make namespaces.
        pub fn begin(&self, plan: &Plan) -> miette::Result<()> {
            if let Some(refuse::Refusal { why, help }) = refuse::refusal(plan, self.clock()) {
                return Err(miette!(help = help, "xoff live: {why}"));
            }
            for (device, _) in &self.commands {
                self.device(plan, device)?;
            }
            let help = "run it as root, or allow them: sysctl kernel.unprivileged_userns_clone=1, or \
                kernel.apparmor_restrict_unprivileged_userns=0";
            xoff_live::enter().map_err(|why| miette!(help = help, "xoff live: {why}"))
        }

        fn device(&self, plan: &Plan, name: &str) -> miette::Result<u32> {
            let nodes = &plan.topology.nodes;
            let found = nodes.iter().position(|node| node.name == name).map(|node| node as u32);
            let names = || nodes.iter().map(|node| node.name.as_str()).collect::<Vec<_>>().join(", ");
            found.ok_or_else(|| miette!(help = format!("devices: {}", names()), "--in: no device `{name}`"))
        }

        /// Runs a plan.
        pub fn run(
            &self,
            plan: &Plan,
            tap: Option<Tap<'_>>,
            watch: &mut Watch,
        ) -> miette::Result<(Outcome, Facts)> {
            let mut ready = |join: &dyn Fn(u32) -> Result<(), String>| -> Result<Box<dyn Any>, String> {
                let mut children = Children(Vec::new());
                for (device, command) in &self.commands {
                    join(self.device(plan, device).map_err(|e| e.to_string())?)?;
                    let before = packet_sockets();
                    let mut shell = Command::new("sh");
                    shell.args(["-c", command]).stdin(Stdio::null()).process_group(0);
                    // It would keep the namespace if this process is killed. SAFETY: it is one system call.
                    unsafe { shell.pre_exec(|| Ok(set_pdeathsig(Signal::SIGTERM)?)) };
                    let child = shell.spawn().map_err(|e| format!("`{command}` cannot be run: {e}"))?;
                    children.0.push((command.clone(), child));
                    wait_for_capture(before, &mut children.0.last_mut().expect("it was pushed").1);
                }
                Ok(Box::new(children))
            };
            memory::share();
            let made = xoff_live::run(plan, self.clock(), self.one_process, tap, &mut ready, watch);
            let made = made.map_err(|why| miette!("xoff live: {why}"))?;
            let facts = self.facts(plan, &made);
            Ok((made.outcome, facts))
        }

        fn facts(&self, plan: &Plan, made: &Made) -> Facts {
            let name = |node: u32| plan.topology.nodes[node as usize].name.clone();
            let died = made.deaths.iter().map(|death| Died {
                device: name(death.device),
                at_ps: death.at,
                how: death.how.clone(),
            });
            let stopped = made.stops.iter().map(|stop| super::Stopped {
                device: name(stop.device),
                at_ps: stop.at,
                seconds: stop.lasted.as_secs_f64(),
            });
            let lateness = &made.lateness;
            let busiest = made.sent.iter().max().map_or(0.0, |&most| most as f64 / made.took.as_secs_f64());
            Facts {
                clock: if self.dilate.is_some() { "wall" } else { "lockstep" },
                dilate: self.dilate,
                valid: made.is_valid(),
                latest_ps: lateness.latest,
                latest_due_ps: lateness.due,
                mean_ps: lateness.mean(),
                bound_ps: made.bound,
                overtaken: lateness.overtaken,
                frames: made.sent.iter().sum(),
                busiest_device_frames_per_second: busiest as u64,
                processes: (0..).zip(&made.processes).map(|(node, &pid)| (name(node), pid)).collect(),
                died: died.collect(),
                stopped: stopped.collect(),
            }
        }
    }

    /// Packet sockets in the namespace of this thread that receive frames already: column 6 of 9 is 1.
    fn packet_sockets() -> usize {
        let text = fs::read_to_string("/proc/thread-self/net/packet").unwrap_or_default();
        text.lines().filter(|line| line.split_whitespace().nth(5) == Some("1")).count()
    }

    /// Waits until a command captures, or has ended, or is one that captures nothing.
    fn wait_for_capture(before: usize, child: &mut Child) {
        let began = Instant::now();
        while packet_sockets() <= before && began.elapsed() < PATIENCE && matches!(child.try_wait(), Ok(None))
        {
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// Ends all processes of a command.
    fn end(child: &mut Child) {
        let group = Pid::from_raw(child.id() as i32);
        let _ = killpg(group, Signal::SIGINT);
        let began = Instant::now();
        while matches!(child.try_wait(), Ok(None)) {
            if began.elapsed() >= PATIENCE {
                let _ = killpg(group, Signal::SIGKILL);
            }
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// Commands that run in namespaces; they end with the run.
    struct Children(Vec<(String, Child)>);

    impl Drop for Children {
        fn drop(&mut self) {
            if self.0.iter_mut().any(|(_, child)| matches!(child.try_wait(), Ok(None))) {
                thread::sleep(BLOCK);
            }
            for (command, child) in &mut self.0 {
                match child.try_wait() {
                    Ok(Some(status)) if !status.success() => {
                        output::complain(&format!("--in: `{command}` has failed: {status}"));
                    }
                    Ok(Some(_)) => {}
                    _ => end(child),
                }
            }
        }
    }
}

#[cfg(not(target_os = "linux"))]
impl Live {
    /// Namespaces are Linux's.
    pub fn begin(&self, _: &Plan) -> miette::Result<()> {
        let _ = (&self.dilate, self.one_process, &self.commands);
        Err(miette!(help = "use xoff run", "xoff live needs the network namespaces of Linux"))
    }

    pub fn run(&self, _: &Plan, _: Option<Tap<'_>>, _: &mut Watch) -> miette::Result<(Outcome, Facts)> {
        unreachable!("`begin` has refused it")
    }
}
