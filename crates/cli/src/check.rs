//! `xoff check`: can it deadlock? The proof, or a scenario in which it does.

use std::time::{Duration, Instant};
use std::{fs, io, path::Path, process::ExitCode, sync::atomic::Ordering};

use miette::{IntoDiagnostic, WrapErr, miette};
use xoff_check::certificate::{Certificate, Failing, Routes};
use xoff_check::witness::{Budget, Candidate, EVENTS};
use xoff_check::{Analysis, Progress, Report, Suggestion, Verdict, Witness, text};
use xoff_net::routing::RoutingKind;
use xoff_plan::{Loaded, Needs};
use xoff_results::temporary::{make_directories, put};

use xoff_schemes::flow_control::{FlowControlKeys, PauseScope};

use crate::{CheckArgs, file, interrupt, load, output, vary};

/// Distance of lines about the progress.
const LINES: Duration = Duration::from_secs(3);

/// The files that a check may write to a directory.
const FILES: [&str; 4] = ["certificate.json", "witness.toml", "cycle.svg", "blocking.svg"];
const UNFINISHED: &str = "interrupted: a cycle was found, but the search for a deadlock was not finished";
/// Each of these files contains one of these marks.
const MARKS: [&str; 2] = ["xoff check", xoff_check::certificate::FORMAT];

pub fn check(args: &CheckArgs) -> miette::Result<ExitCode> {
    let loaded = load::load(&args.scenario.path, &args.scenario.set, args.scenario.strict, Needs::Network)?;
    let name = load::name(&args.scenario.path);
    if let Some(path) = &args.verify {
        output::print(&verify(&loaded, path)?)?;
        return Ok(ExitCode::SUCCESS);
    }
    if let Some(dir) = &args.out {
        clear(dir, &args.scenario.path)?;
    }
    let routes = routes(args.failures, &loaded);
    let interrupted = interrupt::flag()?;
    let mut shown = Instant::now();
    let mut report_progress = |line: &dyn Fn() -> String| {
        if !args.quiet && shown.elapsed() >= LINES {
            shown = Instant::now();
            output::complain(&line());
        }
        !interrupted.load(Ordering::Relaxed)
    };
    let (mut report, files) = match decide(&loaded, &name, routes, &mut report_progress)? {
        Decision::Made { report, files } => (report, files),
        Decision::Interrupted(why) => {
            output::complain(why);
            return Ok(ExitCode::from(interrupt::INTERRUPTED));
        }
    };
    if args.suggest && !matches!(report.verdict, Verdict::Safe { .. }) {
        let Some(found) = suggestions(args, &loaded, routes, &mut report_progress)? else {
            output::complain("interrupted: no result for this scenario");
            return Ok(ExitCode::from(interrupt::INTERRUPTED));
        };
        report.suggestions = Some(found);
    }
    if let Some(dir) = &args.out {
        write(dir, &files)?;
    }
    let answer = if args.json { output::json(&report)? } else { text::render(&report) };
    output::print(&answer)?;
    output::warnings(&loaded);
    if !args.quiet {
        for (file, _) in &files {
            output::complain(&match &args.out {
                Some(dir) => format!("written to {}", dir.join(file).display()),
                None => format!("to write {file}: --out DIR"),
            });
        }
    }
    let fails = args.fail_on.is_some_and(|on| match report.verdict {
        Verdict::Safe { .. } => {
            on == FailOn::Unproved && report.failures.as_ref().is_some_and(|f| !f.is_exhaustive())
        }
        Verdict::CanDeadlock { .. } => true,
        Verdict::CycleWithoutWitness { .. } => on == FailOn::Unproved,
    });
    Ok(output::status(&[(fails, REFUSED)]))
}

/// Examines routes without valleys, those over a tree, and the other schemes with their default keys. A change that the
/// scenario cannot have is no suggestion. `None` if the user interrupted it.
fn suggestions(
    args: &CheckArgs,
    loaded: &Loaded,
    routes: Routes,
    report_progress: Lines<'_>,
) -> miette::Result<Option<Vec<Suggestion>>> {
    let routings = [RoutingKind::ValleyFree, RoutingKind::UpDown];
    let mut changes = routings.map(|kind| ["routing.kind".to_string(), kind.name().to_string()]).to_vec();
    let schemes = FlowControlKeys::names();
    let others = schemes.iter().filter(|&&name| name != loaded.scenario.flow_control.name());
    changes.extend(others.map(|name| ["flow_control".to_string(), format!("{{ scheme = \"{name}\" }}")]));
    let source = load::Source::read(&args.scenario.path, false)?.with_needs(Needs::Network);
    let mut found = Vec::new();
    for set in changes {
        let mut overrides = args.scenario.set.clone();
        overrides.retain(|(key, _)| !vary::replaces(&set[0], key));
        overrides.push((set[0].clone(), set[1].clone()));
        let Ok(changed) = source.load(&overrides, &mut |_, _| {}, &|| false) else { continue };
        // What never pauses drops instead, or its rates can fall to any value.
        if changed.plan.flow_control.traits().pause_scope == PauseScope::Nothing {
            continue;
        }
        let mut watch = |p: Progress| report_progress(&|| format!("{} = {}: {}", set[0], set[1], p.what));
        match xoff_check::check(&changed, "", routes, &mut watch) {
            Ok(None) => return Ok(None),
            Ok(Some(analysis)) => {
                let exhaustive = analysis.report.failures.as_ref().is_none_or(|f| f.is_exhaustive());
                let proved = matches!(analysis.report.verdict, Verdict::Safe { .. }) && exhaustive;
                found.push(Suggestion { set, proved });
            }
            // Such as routes that the scheme cannot have.
            Err(_) => {}
        }
    }
    Ok(Some(found))
}

/// Exit status: the verdict is one that `--fail-on` names.
pub const REFUSED: u8 = 5;

/// The verdicts that end a check with an error status.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum FailOn {
    /// A deadlock was shown
    Deadlock,
    /// No proof was found: a deadlock was shown, a cycle is possible, or only a sample of failures was examined
    Unproved,
}

/// Reads `--failures`: `links=2,switches=1`, or the number of links.
pub fn failing(text: &str) -> Result<Failing, String> {
    const MOST: [u8; 2] = [3, 2];
    let wrong =
        || format!("expected links=0..{} and switches=0..{}, such as links=2,switches=1", MOST[0], MOST[1]);
    if let Ok(links) = text.parse::<u8>() {
        return if links <= MOST[0] { Ok(Failing { links, switches: 0 }) } else { Err(wrong()) };
    }
    let mut found = [None; 2];
    for part in text.split(',') {
        let (key, value) = part.split_once('=').ok_or_else(wrong)?;
        let place = ["links", "switches"].iter().position(|name| *name == key.trim()).ok_or_else(wrong)?;
        let value = value.trim().parse::<u8>().ok().filter(|n| *n <= MOST[place]).ok_or_else(wrong)?;
        if found[place].replace(value).is_some() {
            return Err(wrong());
        }
    }
    let [links, switches] = found.map(|n| n.unwrap_or(0));
    Ok(Failing { links, switches })
}

/// The routes that are examined, by `--failures`: without traffic, all.
pub fn routes(failures: Option<Failing>, loaded: &Loaded) -> Routes {
    match failures {
        None if loaded.scenario.traffic.is_empty() => Routes::ALL,
        None => Routes::Scenario,
        Some(failing) => Routes::All(failing),
    }
}

/// What a check found.
pub enum Decision {
    Made {
        report: Box<Report>,
        /// Proof or example, and the pictures: name and contents of each file.
        files: Vec<(&'static str, String)>,
    },
    /// What was missing until the result.
    Interrupted(&'static str),
}

/// Decides whether a scenario can deadlock: by its routes, then by running candidates.
pub fn decide(
    loaded: &Loaded,
    name: &str,
    routes: Routes,
    report_progress: Lines<'_>,
) -> miette::Result<Decision> {
    let mut watch = |p: Progress| report_progress(&|| format!("{}: {} of {}", p.what, p.done, p.of));
    let analysis = xoff_check::check(loaded, name, routes, &mut watch).map_err(|e| miette!("{e}"))?;
    let Some(Analysis { mut report, certificate, candidates, pictures }) = analysis else {
        return Ok(Decision::Interrupted("interrupted: no result for this scenario"));
    };
    let mut witness: Option<Candidate> = None;
    if let Verdict::CycleWithoutWitness { cycle, .. } = &report.verdict {
        match search(candidates, EVENTS, report_progress)? {
            Search::Interrupted => return Ok(Decision::Interrupted(UNFINISHED)),
            Search::Found(found, candidate) => {
                report.verdict = Verdict::CanDeadlock { cycle: cycle.clone(), witness: found };
                witness = Some(candidate);
            }
            Search::Nothing { tried, cut, events } => {
                report.verdict = Verdict::CycleWithoutWitness { cycle: cycle.clone(), tried, cut, events };
            }
        }
    }
    let certificate = certificate.map(|c| serde_json::to_string(&c)).transpose().into_diagnostic()?;
    let mut files: Vec<(&str, String)> = Vec::new();
    files.extend(certificate.map(|text| ("certificate.json", text)));
    files.extend(witness.map(|c| ("witness.toml", c.text)));
    files.extend(pictures);
    Ok(Decision::Made { report: Box::new(report), files })
}

/// Gets lines about the progress, and stops the work by `false`.
pub type Lines<'a> = &'a mut dyn FnMut(&dyn Fn() -> String) -> bool;

enum Search {
    Found(Witness, Candidate),
    Nothing { tried: Vec<String>, cut: usize, events: u64 },
    Interrupted,
}

/// Runs candidates, the gentlest first, until one deadlocks. All of them together have `events`.
fn search(candidates: Vec<Candidate>, events: u64, report_progress: Lines<'_>) -> miette::Result<Search> {
    let mut budget = Budget::new(events, candidates.len());
    let (mut tried, mut cut, mut all) = (Vec::new(), 0, 0);
    for candidate in candidates {
        let run = attempt(&candidate, budget.share(), report_progress)?;
        if let Some(found) = run.found {
            return Ok(Search::Found(found, candidate));
        }
        if run.interrupted {
            return Ok(Search::Interrupted);
        }
        budget.spend(run.events);
        all += run.events;
        cut += usize::from(run.cut);
        tried.push(candidate.about);
    }
    Ok(Search::Nothing { tried, cut, events: all })
}

struct Attempt {
    found: Option<Witness>,
    events: u64,
    /// It came to its last event before its time was over.
    cut: bool,
    interrupted: bool,
}

/// Runs a candidate for `most` events, or some more until the run looks up.
fn attempt(candidate: &Candidate, most: u64, report_progress: Lines<'_>) -> miette::Result<Attempt> {
    let files = |path: &Path| Err(std::io::Error::other(format!("{} is not there", path.display())));
    let loaded = xoff_plan::load("witness.toml", candidate.text.as_bytes(), &[], &files)
        .wrap_err("xoff generated an invalid scenario (bug in xoff)")?;
    let plan = &loaded.plan;
    let (mut cut, mut interrupted) = (false, false);
    let outcome = xoff_sim::run(plan, &mut |progress| {
        interrupted =
            !report_progress(&|| format!("simulating {}: {} us", candidate.about, progress.now / 1_000_000));
        cut = progress.counters.events >= most;
        !(interrupted || cut || progress.deadlocked)
    });
    let found = outcome.deadlock.map(|deadlock| Witness {
        about: candidate.about.clone(),
        closed_ps: deadlock.closed,
        ports: deadlock.cycle.iter().map(|held| plan.topology.port_name(held.port)).collect(),
    });
    Ok(Attempt { found, events: outcome.counters.events, cut, interrupted })
}

/// Verifies a certificate for a scenario; returns the result in words.
pub fn verify(loaded: &Loaded, path: &Path) -> miette::Result<String> {
    let shown = path.display();
    let text = file::read(path).into_diagnostic().wrap_err_with(|| format!("{shown} cannot be read"))?;
    let refused = |e: String| miette!("{shown} is not a proof for this scenario: {e}");
    let certificate = Certificate::parse(&text).map_err(refused)?;
    let mut router = xoff_check::router(loaded);
    let compared = xoff_check::verify::verify(loaded, &mut router, &certificate).map_err(refused)?;
    let waits = certificate.order.len();
    Ok(format!("The certificate is valid: {waits} waits in order, verified at {compared} steps of routes.\n"))
}

/// Refuses a directory with a file that the check would replace and did not write, or with the scenario.
pub fn clear(dir: &Path, scenario: &Path) -> miette::Result<()> {
    let same = |a: &Path, b: &Path| matches!((a.canonicalize(), b.canonicalize()), (Ok(a), Ok(b)) if a == b);
    for name in FILES {
        let path = dir.join(name);
        let text = match file::read(&path) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => continue,
            // Not to be read is not to be from a check.
            text => text.unwrap_or_default(),
        };
        if same(&path, scenario) {
            let help = "choose another directory with --out DIR";
            return Err(miette!(help = help, "--out would replace the scenario {}", path.display()));
        }
        if !MARKS.iter().any(|mark| text.windows(mark.len()).any(|w| w == mark.as_bytes())) {
            let (help, path) = ("move the file, or choose another directory with --out DIR", path.display());
            return Err(miette!(help = help, "--out would replace {path}, which xoff check did not write"));
        }
    }
    Ok(())
}

pub fn write(dir: &Path, files: &[(&str, String)]) -> miette::Result<()> {
    make_directories(dir).map_err(crate::run::report)?;
    output::sweep(dir);
    // Files of an earlier check would contradict this one.
    for path in FILES.map(|old| dir.join(old)).iter().filter(|path| path.is_file()) {
        let wrong = || format!("{} cannot be removed", path.display());
        fs::remove_file(path).into_diagnostic().wrap_err_with(wrong)?;
    }
    files.iter().try_for_each(|(name, text)| put(&dir.join(name), text)).map_err(crate::run::report)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A cycle of routes whose candidate never deadlocks: the buffers have room for all waiting packets.
    fn candidate(number: u32) -> Candidate {
        let text = "[topology]\nkind = \"ring\"\nswitches = 4\nhosts_per_switch = 2\n\
            link = { rate = \"100Gbps\", delay = \"1us\" }\n[run]\nduration = \"200ms\"\n\
            [[traffic]]\nkind = \"flow\"\nsrc = \"H0\"\ndst = \"H2\"\nsize = \"2GB\"\n";
        Candidate { about: format!("number {number}"), text: text.to_string() }
    }

    #[test]
    fn a_search_ends_after_a_count_of_events_and_notes_it() {
        let most = 600_000;
        let mut runs = Vec::new();
        for _ in 0..2 {
            let found = search((0..3).map(candidate).collect(), most, &mut |_| true).unwrap();
            let Search::Nothing { tried, cut, events } = found else {
                panic!("a flow alone never deadlocks")
            };
            assert_eq!((tried.len(), cut), (3, 3));
            // A run looks up every 65,536 events, and a little later where nothing halts it.
            assert!((most..most + 3 * 100_000).contains(&events), "{events}");
            runs.push(events);
        }
        assert_eq!(runs[0], runs[1], "the same work each time");
    }
}
