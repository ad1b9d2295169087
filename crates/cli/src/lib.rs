//! The command line of xoff: arguments, progress, printing. Everything else
//! happens in the crates beneath; each verb is a file here.

mod check;
mod explain;
mod file;
mod grid;
mod grid_progress;
mod interrupt;
mod load;
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
mod topo;
mod traffic;
mod vary;

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{ArgGroup, Parser, Subcommand, ValueEnum};
use xoff_results::grid::Axis;
use xoff_results::grid::interval::Interval;

use vary::Seeds;
use xoff_net::units::Bytes;
use xoff_schemes::flow_control::own::{self, OwnScheme};

#[global_allocator]
static ALLOCATOR: memory::Counted = memory::Counted;

/// Exit status: wrong input, output that cannot be written, or too little memory.
const FAILED: u8 = 1;

const EXIT_STATUS: &str = "\
Exit status:
  0    done (a deadlock is a finding, not a failure)
  1    wrong input, output that cannot be written, or too little memory for the scenario
  2    wrong usage
  3    the run lost packets in a lossless priority; a link is too small not to (size --scenario)
  4    the memory budget ended the run; the results up to then are written
  130  interrupted by Ctrl-C or a signal to end; the results up to then are written
Of a grid: 1 if a run failed, else 3 if one lost packets in a lossless priority.";

/// Simulates lossless datacenter fabrics packet by packet.
#[derive(Parser)]
#[command(version, after_help = EXIT_STATUS)]
struct Cli {
    #[command(subcommand)]
    verb: Verb,
    /// Memory that xoff may use, such as 8GB; a run that needs more ends with the results up to then
    /// [default: three quarters of what is available]
    #[arg(long, value_name = "SIZE", global = true)]
    memory: Option<Bytes>,
}

#[derive(Subcommand)]
enum Verb {
    /// Run a scenario, or a grid of variants of it, and say what happened
    #[command(after_help = EXIT_STATUS)]
    Run(RunArgs),
    /// Show what a scenario builds: devices, links, buffers and headroom
    Topo(TopoArgs),
    /// Show what a scenario sends: flows, sizes, and the load of each link
    Traffic(TrafficArgs),
    /// Say where the time of a run's flows went, and which congested port held them up
    #[command(after_help = EXIT_STATUS)]
    Explain(ExplainArgs),
    /// Write a page of HTML for a run or a grid: charts, tables, and the fabric over time
    #[command(after_help = EXIT_STATUS)]
    Report(ReportArgs),
    /// Run a paper's experiments and hold them against what it claims
    #[command(after_help = EXIT_STATUS)]
    Repro(repro::ReproArgs),
    /// Say, without running it, whether a scenario can deadlock, with a proof or an example
    #[command(after_help = EXIT_STATUS)]
    Check(CheckArgs),
    /// List every scheme with its parameters, or show the queues that one makes at a port
    Schemes(SchemesArgs),
    /// Say what buffer, headroom and thresholds a link needs under each scheme, or which links of
    /// a scenario have too little
    #[command(after_help = EXIT_STATUS)]
    Size(size::SizeArgs),
    /// Print the JSON Schema of scenario files, or its keys as a page
    Schema {
        /// Print every table and key in Markdown instead
        #[arg(long)]
        markdown: bool,
    },
}

#[derive(clap::Args)]
#[command(group = ArgGroup::new("grid").args(["vary", "seeds"]).multiple(true))]
struct RunArgs {
    #[command(flatten)]
    scenario: ScenarioArgs,
    /// Directory of the results [default: xoff-runs/ and the scenario's name, of a grid with -grid]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Write no results, only print them
    #[arg(long, conflicts_with = "out")]
    no_out: bool,
    /// Print the summary as JSON instead of tables
    #[arg(long)]
    json: bool,
    /// No progress and no timing
    #[arg(long, short)]
    quiet: bool,
    /// The run's seed, short for --set run.seed=N
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(..=vary::LARGEST_SEED))]
    seed: Option<u64>,
    /// Threads of the run; the results are the same for any number
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: u16,
    /// Capture what crosses these ports, in capture.pcapng: S0.0:3, a node for all of its ports,
    /// `switches` or `all`
    #[arg(long, value_name = "PORT,...", value_delimiter = ',', conflicts_with_all = ["no_out", "grid"],
        help_heading = "Captures")]
    pcap: Vec<String>,
    /// Store no more than so many bytes of each packet
    #[arg(long, value_name = "BYTES", requires = "pcap", help_heading = "Captures",
        value_parser = clap::value_parser!(u32).range(14..=65_535))]
    pcap_snaplen: Option<u32>,
    /// Run a grid: this key with each of the values; repeated, every combination
    #[arg(long, value_name = "KEY=A,B,...", value_parser = vary::axis, help_heading = "Grids of runs")]
    vary: Vec<Axis>,
    /// Run each point of the grid under these seeds, such as 1..5 or 1,3,9
    #[arg(long, value_name = "SEEDS", value_parser = vary::seeds, conflicts_with = "seed",
        help_heading = "Grids of runs")]
    seeds: Option<Seeds>,
    /// Runs made at a time, each with its plan in memory [default: the number of cores over --threads]
    #[arg(long, value_name = "N", requires = "grid", help_heading = "Grids of runs")]
    jobs: Option<NonZeroUsize>,
    /// What stands beside a mean over seeds [default: range]
    #[arg(long, value_enum, requires = "grid", help_heading = "Grids of runs")]
    interval: Option<IntervalArg>,
    /// Go on with an interrupted grid: same arguments, same directory
    #[arg(long, requires = "grid", conflicts_with = "no_out", help_heading = "Grids of runs")]
    resume: bool,
}

impl RunArgs {
    /// `--set` and `--seed` as overrides, in this order.
    fn overrides(&self) -> Vec<(String, String)> {
        let seed = self.seed.iter().map(|s| ("run.seed".to_string(), s.to_string()));
        self.scenario.set.iter().cloned().chain(seed).collect()
    }
}

/// A choice of [`Interval`].
#[derive(Clone, Copy, ValueEnum)]
enum IntervalArg {
    /// The least and the greatest value
    Range,
    /// The 95% confidence interval of the mean (Student's t)
    Ci95,
}

impl From<IntervalArg> for Interval {
    fn from(arg: IntervalArg) -> Self {
        match arg {
            IntervalArg::Range => Interval::Range,
            IntervalArg::Ci95 => Interval::Ci95,
        }
    }
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
    /// Check all routes between any two hosts instead of the flows' own: intact (0), and under any
    /// single failed link as well (1)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(0..=1))]
    failures: Option<u8>,
    /// Write the proof (certificate.json) or the example (witness.toml) into this directory
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Check this certificate against the scenario, and nothing else
    #[arg(long, value_name = "FILE", conflicts_with_all = ["failures", "out", "json"])]
    verify: Option<PathBuf>,
    /// Print the report as JSON
    #[arg(long)]
    json: bool,
    /// No progress
    #[arg(long, short)]
    quiet: bool,
}

#[derive(clap::Args)]
struct ExplainArgs {
    /// Directory of a run that was made with measure.explain = true, such as xoff-runs/NAME
    #[arg(value_name = "RUN")]
    run: PathBuf,
    /// Explain this flow: its id in flows.parquet
    #[arg(long, value_name = "ID", conflicts_with = "port")]
    flow: Option<usize>,
    /// Explain who waited for this congested port, such as S0.1:3
    #[arg(long, value_name = "PORT")]
    port: Option<String>,
    /// Look only at flows of this class, the name of a [[traffic]] table
    #[arg(long, value_name = "CLASS", conflicts_with = "flow")]
    class: Option<String>,
    /// Print the answer as JSON
    #[arg(long)]
    json: bool,
}

#[derive(clap::Args)]
struct ReportArgs {
    /// Directory of a run or a grid, such as xoff-runs/NAME
    #[arg(value_name = "RUN")]
    run: PathBuf,
    /// Where the page goes [default: report.html in that directory]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

#[derive(clap::Args)]
struct SchemesArgs {
    /// List this scheme only, such as pfc, irn or dcqcn
    scheme: Option<String>,
    /// The scheme's queues in this network: ndc(4,1), or a scenario file, whose flows are then
    /// named as well
    #[arg(long, value_name = "NETWORK", requires = "scheme")]
    topology: Option<String>,
    /// Those of this port, such as H0:1 or S1.3:2
    #[arg(long, value_name = "PORT", requires = "topology")]
    port: Option<String>,
}

#[derive(clap::Args)]
struct ScenarioArgs {
    /// The scenario file (TOML)
    #[arg(value_name = "SCENARIO")]
    path: PathBuf,
    /// Set a key of the scenario, such as traffic.0.load=0.8; may be repeated
    #[arg(long, value_name = "KEY=VALUE", value_parser = key_value)]
    set: Vec<(String, String)>,
    /// Take every warning about the scenario for an error
    #[arg(long)]
    strict: bool,
}

/// Splits `key=value` at the first `=`.
fn key_value(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.trim().is_empty() => Ok((key.trim().into(), value.into())),
        _ => Err("write KEY=VALUE, such as run.seed=7".into()),
    }
}

/// The program: does what the arguments of the process say.
pub fn main() -> ExitCode {
    main_with(&[])
}

/// The program with `schemes` beside those that are built in.
///
/// # Panics
/// Two schemes have one name, or the process has called this before.
pub fn main_with(schemes: &[OwnScheme]) -> ExitCode {
    own::register(schemes);
    // Paths in errors stay whole, so that they can be copied.
    miette::set_hook(Box::new(|_| Box::new(miette::MietteHandlerOpts::new().wrap_lines(false).build())))
        .expect("the hook is set once");
    let Cli { verb, memory } = Cli::try_parse().unwrap_or_else(|e| output::usage(e));
    memory::limit(memory);
    memory::enter(memory::Phase::Command);
    let done = interrupt::ignore_file_limit().and_then(|()| match verb {
        Verb::Run(args) if !args.vary.is_empty() || args.seeds.is_some() => grid::grid(&args),
        Verb::Run(args) => run::run(args),
        Verb::Topo(args) => topo::topo(&args),
        Verb::Traffic(args) => traffic::traffic(&args),
        Verb::Explain(args) => explain::explain(&args),
        Verb::Report(args) => report::report(&args),
        Verb::Repro(args) => repro::repro(&args),
        Verb::Check(args) => check::check(&args),
        Verb::Schemes(args) => schemes::schemes(&args),
        Verb::Size(args) => size::size(&args),
        Verb::Schema { markdown } => schema::schema(markdown),
    });
    done.unwrap_or_else(|report| {
        output::fail(report);
        ExitCode::from(FAILED)
    })
}
