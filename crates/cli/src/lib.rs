//! The command line of xoff: arguments, progress, printing. Everything else
//! happens in the crates beneath; each verb is a file here. [`library`] has the
//! verbs as functions, for programs.

mod check;
mod completions;
mod examples;
mod explain;
mod file;
mod grid;
mod grid_progress;
mod import;
mod init;
mod interrupt;
pub mod library;
mod live;
mod load;
mod man;
#[doc(hidden)] // For its tests.
pub mod measure;
mod memory;
mod output;
mod pool;
mod progress;
mod queue_map;
mod report;
mod repro;
mod run;
mod schema;
mod schemes;
mod size;
#[cfg(target_os = "linux")]
mod spill;
mod store;
mod topo;
mod traffic;
mod vary;

use std::sync::LazyLock;
use std::{ffi::OsString, num::NonZeroUsize, path::PathBuf, process::ExitCode};

use clap::{ArgGroup, Parser, Subcommand, ValueEnum};
use xoff_check::certificate::Failing;
use xoff_repro::report as report_format;
use xoff_results::grid::{Axis, directory, interval::Interval};
use xoff_results::layout;

use store::{GridVerb, work::WorkArgs};
use vary::Seeds;
use xoff_net::units::Bytes;
use xoff_schemes::flow_control::own::{self, OwnScheme};

#[global_allocator]
static ALLOCATOR: memory::Counted = memory::Counted;

/// Exit status: invalid input, unwritable output, or too little memory.
const FAILED: u8 = 1;

/// What an exit status means, and the verbs that have it, if not all of them.
const EXIT_STATUS: [(u8, &str, &[&str]); 11] = [
    (0, "success; a deadlock or a contradicted claim is a finding, not a failure", &[]),
    (FAILED, "invalid input, unwritable output, or too little memory", &[]),
    (FAILED, "a run of a grid failed", &["run", "repro", "work"]),
    (2, "invalid usage", &[]),
    (run::LOST, "a run dropped packets of a lossless priority", &["run", "repro", "live"]),
    (run::LOST, "`xoff size`: the buffer of a link can overflow", &["size"]),
    (
        memory::SPENT,
        "the memory budget is exhausted; results until then are written",
        &["run", "work", "live"],
    ),
    (check::REFUSED, "`xoff check --fail-on`: the verdict is one that it names", &["check"]),
    (
        live::INVALID,
        "`xoff live`: events were processed too late, or a device died; results are written and marked invalid",
        &["live"],
    ),
    (
        interrupt::INTERRUPTED,
        "interrupted by Ctrl-C or a termination signal; results until then are written",
        &["run", "repro", "work", "live"],
    ),
    (interrupt::INTERRUPTED, "`xoff check`: interrupted; nothing is written", &["check"]),
];

/// The exit statuses of a verb and their meanings; all of them without a verb.
fn exit_statuses(verb: Option<&str>) -> impl Iterator<Item = (u8, &'static str)> {
    let of = move |verbs: &[&str]| verbs.is_empty() || verb.is_none_or(|verb| verbs.contains(&verb));
    let found = EXIT_STATUS.iter().filter(move |(.., verbs)| of(verbs));
    found.map(|&(status, meaning, _)| (status, meaning))
}

/// The exit statuses of a verb, for its help; all of them without a verb.
fn exit_status(verb: Option<&str>) -> String {
    let lines = exit_statuses(verb).map(|(status, meaning)| format!("\n  {status:<3}  {meaning}"));
    format!("Exit status:{}", lines.collect::<String>())
}

/// The version of the program, of the formats that it writes and reads, and its build. A build may name its commit
/// by the variable XOFF_COMMIT.
static VERSION: LazyLock<String> = LazyLock::new(|| {
    let (run, grid, results) =
        (layout::FORMAT_VERSION, directory::FORMAT_VERSION, report_format::FORMAT_VERSION);
    let kind = if cfg!(debug_assertions) { "debug" } else { "release" };
    let commit = option_env!("XOFF_COMMIT").map(|commit| format!(", commit {commit}")).unwrap_or_default();
    format!(
        "{}\nformats: run {run}, grid {grid}, results of repro {results}\nbuild: {kind}, {}, {}{commit}",
        run::VERSION,
        env!("XOFF_TARGET"),
        env!("XOFF_RUSTC"),
    )
});

/// Simulates lossless datacenter fabrics packet by packet.
#[derive(Parser)]
#[command(version = VERSION.as_str(), after_help = exit_status(None))]
struct Cli {
    #[command(subcommand)]
    verb: Verb,
    /// Memory budget, such as 8GB; a run that exceeds it stops and keeps the results until then
    /// [default: three quarters of the available memory]
    #[arg(long, value_name = "SIZE", global = true)]
    memory: Option<Bytes>,
    /// Keep tables of 16 MiB or more in files in this directory, outside of the budget: for runs larger than
    /// the memory
    #[arg(long, value_name = "DIR", global = true)]
    spill: Option<PathBuf>,
}

#[derive(Subcommand)]
enum Verb {
    /// Write a scenario to begin with: a small fabric, with a comment at each key
    #[command(after_help = exit_status(Some("init")))]
    Init(init::InitArgs),
    /// List the examples that xoff contains, print one, or write it to a directory
    #[command(after_help = exit_status(Some("examples")))]
    Examples(examples::ExamplesArgs),
    /// Simulate a scenario, or a grid of its variants, and report the results
    #[command(after_help = exit_status(Some("run")))]
    Run(RunArgs),
    /// Run a scenario on real Ethernet frames between network namespaces of this Linux machine
    #[command(after_help = exit_status(Some("live")))]
    Live(live::LiveArgs),
    /// Plan a grid of runs for many workers, and show its state and results
    #[command(subcommand)]
    Grid(GridVerb),
    /// Make runs of a store, beside any number of other workers
    #[command(after_help = exit_status(Some("work")))]
    Work(WorkArgs),
    /// Read a network from files of other programs, and print it as a scenario
    Import(import::ImportArgs),
    /// Show the network of a scenario: devices, links, buffers and headroom
    Topo(TopoArgs),
    /// Show the traffic of a scenario: flows, sizes, and the load of each link
    Traffic(TrafficArgs),
    /// Explain the delays of a run: the time of its flows, and the congested ports that blocked them
    Explain(ExplainArgs),
    /// Write an HTML page for a run or a grid: charts, tables, and the fabric over time
    Report(ReportArgs),
    /// Reproduce papers: run their experiments and compare the results with the claims
    #[command(after_help = exit_status(Some("repro")))]
    Repro(repro::ReproArgs),
    /// Decide without a simulation whether a scenario can deadlock, with a proof or an example
    #[command(after_help = exit_status(Some("check")))]
    Check(CheckArgs),
    /// List all schemes and their parameters, or the queues of a scheme at a port
    Schemes(SchemesArgs),
    /// Compute the buffer, headroom and thresholds that a link needs, or find the links of a scenario
    /// whose buffers can overflow
    #[command(after_help = exit_status(Some("size")))]
    Size(size::SizeArgs),
    /// Print the JSON Schema of scenario files
    Schema {
        /// Print a Markdown page of all tables and keys instead
        #[arg(long)]
        markdown: bool,
    },
    /// Print a script that completes the commands of xoff in a shell
    #[command(after_help = exit_status(Some("completions")))]
    Completions(completions::CompletionsArgs),
    /// Print the manual page of xoff or of a verb, or write all pages
    #[command(after_help = exit_status(Some("man")))]
    Man(man::ManArgs),
}

#[derive(clap::Args, Default)]
#[command(group = ArgGroup::new("grid").args(["vary", "seeds", "variant"]).multiple(true))]
struct RunArgs {
    #[command(flatten)]
    scenario: ScenarioArgs,
    /// Directory for the results [default: xoff-runs/NAME, for a grid xoff-runs/NAME-grid]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Print the results and write no files
    #[arg(long, conflicts_with = "out")]
    no_out: bool,
    /// Replace an older run in the directory
    #[arg(long, conflicts_with_all = ["no_out", "grid"])]
    overwrite: bool,
    /// Print JSON instead of tables
    #[arg(long)]
    json: bool,
    /// Print no progress and no timing
    #[arg(long, short)]
    quiet: bool,
    /// Seed of the run; the same as --set run.seed=N
    #[arg(long, value_name = "N", value_parser = whole::<u64>(0, vary::LARGEST_SEED))]
    seed: Option<u64>,
    /// Threads of one run; the results do not depend on it [default: 2 for a long run on two cores or more, 1
    /// in a grid]
    #[arg(long, value_name = "N", value_parser = whole::<u16>(1, 1024))]
    threads: Option<u16>,
    /// Capture the packets of these ports in capture.pcapng: a port (S0.0:3), a device (S0.0),
    /// `switches` or `all`
    #[arg(long, value_name = "PORT,...", value_delimiter = ',', conflicts_with_all = ["no_out", "grid"],
        help_heading = "Captures")]
    pcap: Vec<String>,
    /// Store at most this many bytes of each packet, 14 to 65,535 [default: all]
    #[arg(long, value_name = "BYTES", requires = "pcap", help_heading = "Captures",
        value_parser = whole::<u32>(14, 65_535))]
    pcap_snaplen: Option<u32>,
    /// Run a grid: one run for each value of the key; repeat the option for all combinations
    #[arg(long, value_name = "KEY=A,B,...", value_parser = vary::axis, help_heading = "Grids of runs")]
    vary: Vec<Axis>,
    /// Run variants of the scenario: names of its [[variant]] tables, or all
    #[arg(long, value_name = "NAME,...", value_delimiter = ',', help_heading = "Grids of runs")]
    variant: Vec<String>,
    /// Compare with this variant, or this value of a varied key [default: the first of several variants]
    #[arg(long, value_name = "VALUE", requires = "grid", help_heading = "Grids of runs")]
    baseline: Option<String>,
    /// Run each point of the grid with these seeds, such as 1..5 or 1,3,9
    #[arg(long, value_name = "SEEDS", value_parser = vary::seeds, conflicts_with = "seed",
        help_heading = "Grids of runs")]
    seeds: Option<Seeds>,
    /// Runs in parallel; each needs its own memory [default: the number of cores divided by --threads]
    #[arg(long, value_name = "N", requires = "grid", value_parser = jobs, help_heading = "Grids of runs")]
    jobs: Option<NonZeroUsize>,
    /// Spread to print with each mean over seeds [default: range]
    #[arg(long, value_enum, requires = "grid", help_heading = "Grids of runs")]
    interval: Option<IntervalArg>,
    /// Continue an interrupted grid, given the same arguments and directory
    #[arg(long, requires = "grid", conflicts_with = "no_out", help_heading = "Grids of runs")]
    resume: bool,
}

impl RunArgs {
    /// `--set` and `--seed` as overrides, in this order.
    fn overrides(&self) -> Vec<(String, String)> {
        let seed = self.seed.iter().map(|s| ("run.seed".to_string(), s.to_string()));
        self.scenario.set.iter().cloned().chain(seed).collect()
    }

    fn is_grid(&self) -> bool {
        !self.vary.is_empty() || !self.variant.is_empty() || self.seeds.is_some()
    }

    fn interval(&self) -> Interval {
        interval(self.interval)
    }
}

fn interval(argument: Option<IntervalArg>) -> Interval {
    match argument {
        None | Some(IntervalArg::Range) => Interval::Range,
        Some(IntervalArg::Ci95) => Interval::Ci95,
    }
}

/// A choice of [`Interval`].
#[derive(Clone, Copy, ValueEnum)]
enum IntervalArg {
    /// Minimum and maximum
    Range,
    /// The 95% confidence interval of the mean (Student's t)
    Ci95,
}

#[derive(clap::Args)]
struct TopoArgs {
    #[command(flatten)]
    scenario: ScenarioArgs,
    /// Print devices and links as JSON
    #[arg(long)]
    json: bool,
}

#[derive(clap::Args)]
struct TrafficArgs {
    #[command(flatten)]
    scenario: ScenarioArgs,
    /// Print classes and every link as JSON
    #[arg(long)]
    json: bool,
}

#[derive(clap::Args)]
struct CheckArgs {
    #[command(flatten)]
    scenario: ScenarioArgs,
    /// Check all routes between all hosts, instead of those of the flows. Up to so many links, or switches, also
    /// fail at the same time: links=2,switches=1, or a number of links [default without traffic: 0]
    #[arg(long, value_name = "N", value_parser = check::failing)]
    failures: Option<Failing>,
    /// End with exit status 5 if a deadlock was shown, or already if no proof was found
    #[arg(long, value_name = "VERDICT", value_enum)]
    fail_on: Option<check::FailOn>,
    /// If it may deadlock, also find changes after which the same check proves it deadlock-free: another routing, or
    /// another scheme
    #[arg(long)]
    suggest: bool,
    /// Directory for the proof (certificate.json) or the example (witness.toml) and the pictures
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Only verify this certificate for the scenario
    #[arg(long, value_name = "FILE", conflicts_with_all = ["failures", "fail_on", "suggest", "out", "json"])]
    verify: Option<PathBuf>,
    /// Print JSON instead of text
    #[arg(long)]
    json: bool,
    /// Print no progress
    #[arg(long, short)]
    quiet: bool,
}

#[derive(clap::Args)]
struct ExplainArgs {
    /// Directory of a run, such as xoff-runs/NAME; a long run needs measure.explain = true
    #[arg(value_name = "RUN")]
    run: PathBuf,
    /// Explain one flow, by its id in flows.parquet
    #[arg(long, value_name = "ID", conflicts_with = "port", value_parser = whole::<usize>(0, u32::MAX.into()))]
    flow: Option<usize>,
    /// Explain one congested port, such as S0.1:3, and the flows that waited for it
    #[arg(long, value_name = "PORT")]
    port: Option<String>,
    /// Explain only the flows of this class (the name of a [[traffic]] table)
    #[arg(long, value_name = "CLASS", conflicts_with = "flow")]
    class: Option<String>,
    /// Explain only the flows from this host
    #[arg(long, value_name = "HOST", conflicts_with = "flow")]
    src: Option<String>,
    /// Explain only the flows to this host
    #[arg(long, value_name = "HOST", conflicts_with = "flow")]
    dst: Option<String>,
    /// List so many of the slowest flows, by slowdown [default: 5]
    #[arg(long, value_name = "N", conflicts_with_all = ["flow", "port"], value_parser = whole::<usize>(0, u32::MAX.into()))]
    slowest: Option<usize>,
    /// Print JSON instead of text
    #[arg(long)]
    json: bool,
}

#[derive(clap::Args)]
struct ReportArgs {
    /// Directory of a run, a grid or a reproduction (xoff-repro); two runs are shown beside each other
    #[arg(value_name = "RUN", required = true, num_args = 1..=2)]
    runs: Vec<PathBuf>,
    /// File for the page [default: report.html in that directory; with two runs beside.html in the first]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Write the pages of all runs of a grid, too, with links from its page
    #[arg(long, conflicts_with = "out")]
    pages: bool,
}

#[derive(clap::Args)]
struct SchemesArgs {
    /// List only this scheme, such as pfc, irn or dcqcn
    scheme: Option<String>,
    /// Show the queues of the scheme in this network: ndc(4,1), or a scenario file, which also gives
    /// the flows
    #[arg(long, value_name = "NETWORK", requires = "scheme")]
    topology: Option<String>,
    /// Show only the queues of this port, such as H0:1 or S1.3:2
    #[arg(long, value_name = "PORT", requires = "topology")]
    port: Option<String>,
}

#[derive(clap::Args, Default)]
struct ScenarioArgs {
    /// The scenario file (TOML)
    #[arg(value_name = "SCENARIO")]
    path: PathBuf,
    /// Override a key of the scenario, such as traffic.0.load=0.8; repeat the option for more keys
    #[arg(long, value_name = "KEY=VALUE", value_parser = key_value)]
    set: Vec<(String, String)>,
    /// Treat warnings about the scenario as errors
    #[arg(long)]
    strict: bool,
}

/// Reads whole numbers from `least` to `most`.
fn whole<T: TryFrom<u64>>(least: u64, most: u64) -> impl Fn(&str) -> Result<T, String> + Clone {
    move |text| {
        let number = text.trim().parse().ok().filter(|n| (least..=most).contains(n));
        let value = number.and_then(|n: u64| T::try_from(n).ok());
        value.ok_or_else(|| format!("expected a whole number from {least} to {most}"))
    }
}

fn jobs(text: &str) -> Result<NonZeroUsize, String> {
    text.trim().parse().map_err(|_| "expected a whole number of at least 1".into())
}

fn key_value(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.trim().is_empty() => Ok((key.trim().into(), value.into())),
        _ => Err("expected KEY=VALUE, such as run.seed=7".into()),
    }
}

/// The program: runs the command of the process's arguments.
pub fn main() -> ExitCode {
    main_with(&[])
}

/// The program with `schemes` beside those that are built in.
///
/// # Panics
/// Two schemes have one name, or the process has called this before.
pub fn main_with(schemes: &[OwnScheme]) -> ExitCode {
    own::register(schemes);
    main_from(std::env::args_os())
}

/// The program with these arguments, the first of which is its name. It takes signals and the memory budget
/// for itself, and may end the process.
pub fn main_from(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    // Paths in errors stay whole, so that they can be copied.
    let hook: miette::ErrorHook =
        Box::new(|_| Box::new(miette::MietteHandlerOpts::new().wrap_lines(false).build()));
    // A process that has called this before has it.
    let _ = miette::set_hook(hook);
    let Cli { verb, memory, spill } =
        Cli::try_parse_from(&arguments).unwrap_or_else(|e| output::usage(e, &arguments));
    memory::enter(memory::Phase::Command);
    let ready = interrupt::ignore_file_limit().and_then(|()| memory::limit(memory, spill.as_deref()));
    let done = ready.and_then(|()| match verb {
        Verb::Init(args) => init::init(&args),
        Verb::Examples(args) => examples::examples(&args),
        Verb::Run(args) if args.is_grid() => grid::grid(&args),
        Verb::Run(args) => run::run(args),
        Verb::Live(args) => live::live(args),
        Verb::Grid(GridVerb::Plan(args)) => store::plan::plan(&args),
        Verb::Grid(GridVerb::Status(args)) => store::answer::status(&args),
        Verb::Grid(GridVerb::Table(args)) => store::answer::table(&args),
        Verb::Grid(GridVerb::Report(args)) => store::answer::report_page(&args),
        Verb::Grid(GridVerb::Slurm(args)) => store::slurm::slurm(&args),
        Verb::Work(args) => store::work::work(&args),
        Verb::Import(args) => import::import(&args),
        Verb::Topo(args) => topo::topo(&args),
        Verb::Traffic(args) => traffic::traffic(&args),
        Verb::Explain(args) => explain::explain(&args),
        Verb::Report(args) => report::report(&args),
        Verb::Repro(args) => repro::repro(&args),
        Verb::Check(args) => check::check(&args),
        Verb::Schemes(args) => schemes::schemes(&args),
        Verb::Size(args) => size::size(&args),
        Verb::Schema { markdown } => schema::schema(markdown),
        Verb::Completions(args) => completions::completions(&args),
        Verb::Man(args) => man::man(&args),
    });
    done.unwrap_or_else(|report| {
        output::fail(report);
        ExitCode::from(FAILED)
    })
}
