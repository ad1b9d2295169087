//! The command line of xoff: arguments, progress, printing. Everything else
//! happens in the crates beneath; each verb is a file here.

mod load;
mod output;
mod progress;
mod run;
mod schema;
mod schemes;
mod topo;
mod traffic;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Exit status: wrong input, or output that cannot be written.
const FAILED: u8 = 1;

const EXIT_STATUS: &str = "\
Exit status:
  0    done (a deadlock is a finding, not a failure)
  1    wrong input, or output that cannot be written
  2    wrong usage
  3    the run lost packets in a lossless priority
  130  interrupted by Ctrl-C; the results up to then are written";

/// Simulates lossless datacenter fabrics packet by packet.
#[derive(Parser)]
#[command(version, after_help = EXIT_STATUS)]
struct Cli {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Run a scenario and say what happened
    #[command(after_help = EXIT_STATUS)]
    Run(RunArgs),
    /// Show what a scenario builds: devices, links, buffers and headroom
    Topo(TopoArgs),
    /// Show what a scenario sends: flows, sizes, and the load of each link
    Traffic(TrafficArgs),
    /// List every scheme with its parameters
    Schemes,
    /// Print the JSON Schema of scenario files
    Schema,
}

#[derive(clap::Args)]
struct RunArgs {
    #[command(flatten)]
    scenario: ScenarioArgs,
    /// Directory of the results [default: xoff-runs/ and the scenario's name]
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
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
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
struct ScenarioArgs {
    /// The scenario file (TOML)
    #[arg(value_name = "SCENARIO")]
    path: PathBuf,
    /// Set a key of the scenario, such as traffic.0.load=0.8; may be repeated
    #[arg(long, value_name = "KEY=VALUE", value_parser = key_value)]
    set: Vec<(String, String)>,
}

/// Splits `key=value` at the first `=`.
fn key_value(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.trim().is_empty() => Ok((key.trim().into(), value.into())),
        _ => Err("write KEY=VALUE, such as run.seed=7".into()),
    }
}

fn main() -> ExitCode {
    // Paths in errors stay whole, so that they can be copied.
    miette::set_hook(Box::new(|_| Box::new(miette::MietteHandlerOpts::new().wrap_lines(false).build())))
        .expect("the hook is set once");
    let done = match Cli::parse().verb {
        Verb::Run(args) => run::run(args),
        Verb::Topo(args) => topo::topo(&args),
        Verb::Traffic(args) => traffic::traffic(&args),
        Verb::Schemes => schemes::schemes(),
        Verb::Schema => schema::schema(),
    };
    done.unwrap_or_else(|report| {
        output::complain(&format!("{report:?}"));
        ExitCode::from(FAILED)
    })
}
