//! `xoff size`: the memory that a link needs under each scheme, and the links of a scenario that have too
//! little.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use std::{io, path::PathBuf, process::ExitCode};

use clap::builder::{PossibleValue, PossibleValuesParser};
use miette::{IntoDiagnostic, WrapErr, miette};
use serde_json::json;
use xoff_net::units::{Bandwidth, Bytes, Length, Span};
use xoff_plan::size::links::Report;
use xoff_plan::size::response::{ASICS, Asic};
use xoff_plan::size::{self, Question, Refusal, SCHEMES};
use xoff_plan::{Loaded, Needs};
use xoff_results::size::{Request, Response, curve::Range};
use xoff_results::{size as answer, temporary::put};
use xoff_schemes::flow_control::registry::size_help;

use crate::measure::{self, Effort, Measured};
use crate::{file, interrupt, key_value, load, output};

/// Distance of lines about the progress.
const PROGRESS: Duration = Duration::from_secs(3);
/// Exit status: a link of the scenario is too small.
const TOO_SMALL: u8 = 3;

const PARAMETERS: &str = "Parameters of the schemes";
const LINKS: &str = "Links of a scenario";

/// Arguments of `size`. Defaults are those of [`Question::new`].
#[derive(clap::Args)]
pub struct SizeArgs {
    /// Rate of the link, such as 400Gbps
    #[arg(long, value_name = "RATE", allow_hyphen_values = true, required_unless_present = "scenario")]
    pub rate: Option<Bandwidth>,
    /// Length of the link, such as 600km; the delay is 5 us per km
    #[arg(long, value_name = "LENGTH", allow_hyphen_values = true, required_unless_present_any = ["scenario", "curve"])]
    pub distance: Option<Length>,
    /// Also compute the distance that this buffer at one end supports, such as 64MiB
    #[arg(long, value_name = "SIZE", requires = "distance", conflicts_with = "scenario")]
    pub buffer: Option<Bytes>,
    #[arg(long, help = size_help::SCHEME, value_name = "NAME", value_delimiter = ',', value_parser = PossibleValuesParser::new(SCHEMES),
        conflicts_with = "scenario")]
    scheme: Vec<String>,
    /// Print a table of all schemes, with thresholds, formulas and sources
    #[arg(long, requires = "distance", conflicts_with_all = ["scheme", "scenario"])]
    all: bool,
    /// Write an SVG chart of buffer over distance to this file (- for standard output): from 0 to about twice
    /// --distance, or from 10 km to 2,000 km
    #[arg(long, value_name = "FILE", conflicts_with = "scenario")]
    curve: Option<PathBuf>,
    /// Add measured buffers to the chart: a CSV file with the columns distance_km, scheme and
    /// measured_B; the optional column formula_B replaces the lines
    #[arg(long, value_name = "FILE", requires = "curve", conflicts_with = "scheme")]
    points: Option<PathBuf>,
    #[arg(long, help = size_help::MEASURE, requires = "distance", conflicts_with = "scenario")]
    measure: bool,
    /// Print JSON instead of text
    #[arg(long)]
    json: bool,
    /// Largest packet, headers included [default: 1500B]
    #[arg(long, value_name = "SIZE", conflicts_with = "scenario", help_heading = PARAMETERS)]
    mtu: Option<Bytes>,
    /// Lossless priorities, 1 to 8 [default: 1]
    #[arg(long, value_name = "N", conflicts_with = "scenario", help_heading = PARAMETERS)]
    priorities: Option<u8>,
    /// Time from the arrival of a control frame until it takes effect [default: 0ps]
    #[arg(long, value_name = "TIME", conflicts_with = "scenario", help_heading = PARAMETERS)]
    response_time: Option<Span>,
    /// Use the response time of this chip at the rate of the link
    #[arg(long, value_name = "NAME", value_parser = asics(), conflicts_with_all = ["scenario", "response_time"],
        help_heading = PARAMETERS)]
    asic: Option<String>,
    #[arg(long, help = size_help::SLOT, value_name = "TIME", conflicts_with = "scenario", help_heading = PARAMETERS)]
    slot: Option<Span>,
    #[arg(long, help = size_help::PROCESSING, value_name = "TIME", conflicts_with = "scenario", help_heading = PARAMETERS)]
    processing: Option<Span>,
    #[arg(long, help = size_help::JITTER, value_name = "TIME", conflicts_with = "scenario", help_heading = PARAMETERS)]
    jitter: Option<Span>,
    #[arg(long, help = size_help::REPAIR_EVERY, value_name = "K", conflicts_with = "scenario", help_heading = PARAMETERS)]
    repair_every: Option<u16>,
    #[arg(long, help = size_help::XOFF, value_name = "SIZE", conflicts_with = "scenario", help_heading = PARAMETERS)]
    xoff: Option<Bytes>,
    #[arg(long, help = size_help::UPDATE, value_name = "TIME", conflicts_with = "scenario", help_heading = PARAMETERS)]
    update: Option<Span>,
    #[arg(long, help = size_help::FAN_IN, value_name = "M", conflicts_with = "scenario", help_heading = PARAMETERS)]
    fan_in: Option<u16>,
    /// Check the links of this scenario, with its own scheme
    #[arg(long, value_name = "FILE", conflicts_with_all = ["rate", "distance"], help_heading = LINKS)]
    scenario: Option<PathBuf>,
    /// Override a key of the scenario, such as flow_control.headroom=1MB; repeat the option for more keys
    #[arg(long, value_name = "KEY=VALUE", value_parser = key_value, requires = "scenario",
        conflicts_with_all = ["rate", "distance"], help_heading = LINKS)]
    set: Vec<(String, String)>,
    /// Treat warnings about the scenario as errors
    #[arg(long, requires = "scenario", conflicts_with_all = ["rate", "distance"], help_heading = LINKS)]
    strict: bool,
}

impl SizeArgs {
    /// Whether they ask for more than numbers about one link.
    pub fn writes(&self) -> bool {
        self.measure
            || self.curve.is_some()
            || self.points.is_some()
            || self.json
            || self.all
            || self.scenario.is_some()
    }
}

pub fn size(args: &SizeArgs) -> miette::Result<ExitCode> {
    if args.scenario.is_some() {
        return links(args);
    }
    let question = question(args)?;
    if args.json && args.distance.is_none() {
        return Err(miette!(help = "add --distance, or remove --json", "--json requires --distance"));
    }
    if args.distance.is_some() && args.curve.as_ref().is_some_and(|path| path.as_os_str() == "-") {
        let help = "write the chart to a file, or remove --distance";
        return Err(miette!(help = help, "--curve - and --distance both use standard output"));
    }
    if let Some(path) = &args.curve {
        if path.extension().is_some_and(|e| e != "svg") {
            let help = format!("write --curve {}", path.with_extension("svg").display());
            return Err(miette!(
                help = help,
                "--curve draws an SVG picture, and {} is named otherwise",
                path.display()
            ));
        }
        let svg = match &args.points {
            None => chart(args, &question),
            Some(points) => {
                let table = file::read(points)
                    .and_then(|text| String::from_utf8(text).map_err(io::Error::other))
                    .into_diagnostic()
                    .wrap_err_with(|| format!("{} cannot be read", points.display()))?;
                let help = "expected a header row with distance_km, scheme and measured_B, and one row for each point";
                let refused = |why: String| miette!(help = help, "--points: {}: {why}", points.display());
                let (figure, marks) = answer::curve::measured(&question, &table).map_err(refused)?;
                figure.svg_with(&marks)
            }
        };
        if path.as_os_str() == "-" {
            output::print(&svg)?;
        } else {
            output::sweep_beside(path);
            put(path, &svg).map_err(crate::run::report)?;
            output::complain(&format!("written to {}", path.display()));
        }
    }
    if let Some(distance) = args.distance {
        let schemes = schemes(args);
        let request = request(args, &question, distance, &schemes);
        if args.json {
            let mut answer = answer::json(&request);
            if args.measure {
                let Some((found, left_out)) = measured(args, &request)? else { return Ok(interrupted()) };
                answer["measured"] = found.iter().map(measure::json).collect();
                answer["not_measured"] =
                    left_out.iter().map(|(scheme, why)| json!({ "scheme": scheme, "why": why })).collect();
            }
            output::print(&output::json(&answer)?)?;
            return Ok(ExitCode::SUCCESS);
        }
        output::print(&if args.all { answer::render_all(&request) } else { answer::render(&request) })?;
        if args.measure {
            let Some((found, left_out)) = measured(args, &request)? else { return Ok(interrupted()) };
            output::print(&measure::render(&found, &left_out))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

type Searched = (Vec<Measured>, Vec<(&'static str, String)>);

/// Searches the memories of the printed schemes by simulation. `None` if the user interrupts it.
fn measured(args: &SizeArgs, request: &Request<'_>) -> miette::Result<Option<Searched>> {
    let asked = match request.schemes {
        [] if args.json || args.all => &SCHEMES[..],
        [] => &answer::DEFAULT[..],
        named => named,
    };
    let (interrupted, mut shown, mut simulation) = (interrupt::flag()?, Instant::now(), 0);
    let mut searched = Searched::default();
    for &scheme in asked {
        let mut go_on = || {
            simulation += 1;
            if shown.elapsed() >= PROGRESS {
                shown = Instant::now();
                output::complain(&format!("--measure: {scheme}, simulation {simulation}"));
            }
            !interrupted.load(Ordering::Relaxed)
        };
        match measure::measure(request.question, scheme, request.distance, Effort::WHOLE, &mut go_on)? {
            None => return Ok(None),
            Some(Ok(found)) => searched.0.extend(found),
            Some(Err(why)) => searched.1.push((scheme, why)),
        }
    }
    Ok(Some(searched))
}

fn interrupted() -> ExitCode {
    output::complain("interrupted: the search was not finished");
    ExitCode::from(interrupt::INTERRUPTED)
}

/// The chips, with their descriptions.
fn asics() -> PossibleValuesParser {
    PossibleValuesParser::new(ASICS.iter().map(|asic| PossibleValue::new(asic.name).help(asic.what)))
}

/// The schemes that the arguments name, each once.
pub fn schemes(args: &SizeArgs) -> Vec<&'static str> {
    let mut named = Vec::new();
    for scheme in args.scheme.iter().filter_map(|name| SCHEMES.into_iter().find(|scheme| scheme == name)) {
        if !named.contains(&scheme) {
            named.push(scheme);
        }
    }
    named
}

/// The request that the arguments make about a link of length `distance`.
pub fn request<'a>(
    args: &SizeArgs,
    question: &'a Question,
    distance: Length,
    schemes: &'a [&'static str],
) -> Request<'a> {
    let response = match (args.response_time, asic(args)) {
        (Some(_), _) => Response::Given,
        (None, Some(asic)) => Response::Asic(asic),
        (None, None) => Response::NotGiven,
    };
    Request { question, distance, buffer: args.buffer, schemes, response }
}

fn asic(args: &SizeArgs) -> Option<&'static Asic> {
    args.asic.as_deref().and_then(Asic::find)
}

/// The chart of the named schemes, or of all that have a line, as SVG.
pub fn chart(args: &SizeArgs, question: &Question) -> String {
    let named = schemes(args);
    let lines = if named.is_empty() { answer::curve::drawn() } else { named };
    let range = args.distance.map_or(Range::WIDE, Range::around);
    let (figure, marks) = answer::curve::curve(question, &lines, range, args.distance);
    figure.svg_with(&marks)
}

/// The response time of the arguments, if they give one.
fn response_time(args: &SizeArgs, rate: Bandwidth) -> miette::Result<Option<Span>> {
    let Some(asic) = asic(args) else { return Ok(args.response_time) };
    let time = asic.response_time(rate).ok_or_else(|| {
        let rates: Vec<String> = asic.rates().map(|rate| rate.to_string()).collect();
        miette!(
            help = format!(
                "--asic {} is for {}; for other rates use --response-time",
                asic.name,
                rates.join(", ")
            ),
            "--asic: the source of `{}` has no response time for {rate}",
            asic.name
        )
    })?;
    Ok(Some(time))
}

/// The question about a link that the arguments ask; refused values are errors.
pub fn question(args: &SizeArgs) -> miette::Result<Question> {
    let Some(rate) = args.rate else { return Err(miette!("--rate is missing")) };
    let standard = Question::new(rate);
    let response_time = response_time(args, rate)?;
    let question = Question {
        mtu: args.mtu.unwrap_or(standard.mtu),
        priorities: args.priorities.unwrap_or(standard.priorities),
        response_time: response_time.unwrap_or(standard.response_time),
        slot: args.slot.unwrap_or(standard.slot),
        processing: args.processing.unwrap_or(standard.processing),
        jitter: args.jitter.unwrap_or(standard.jitter),
        repair_every: args.repair_every.unwrap_or(standard.repair_every),
        xoff: args.xoff.unwrap_or(standard.xoff),
        fan_in: args.fan_in.unwrap_or(standard.fan_in),
        update: args.update,
        ..standard
    };
    question.check().map_err(refused)?;
    if let Some(distance) = args.distance {
        size::check_distance(distance).map_err(refused)?;
    }
    Ok(question)
}

fn refused(refusal: Refusal) -> miette::Report {
    miette!(help = refusal.help, "--{}: {}", refusal.key, refusal.message)
}

fn links(args: &SizeArgs) -> miette::Result<ExitCode> {
    let Some(path) = &args.scenario else { return Err(miette!("--scenario is missing")) };
    let loaded = load::load(path, &args.set, args.strict, Needs::Network)?;
    let report = compared(&loaded)?;
    output::print(&match args.json {
        true => output::json(&report)?,
        false => answer::links::render(&load::name(path), &report),
    })?;
    output::warnings(&loaded);
    Ok(output::status(&[(!report.too_small.is_empty(), TOO_SMALL)]))
}

/// Compares the links of a scenario with what its scheme needs.
pub fn compared(loaded: &Loaded) -> miette::Result<Report> {
    size::links::links(&loaded.plan).map_err(|scheme| {
        miette!(
            help = format!("size --scenario supports {}", size::links::SCHEMES.join(", ")),
            "there is no formula for the buffers of `{scheme}`"
        )
    })
}
