//! Experiments: the files of the repository, the errors of a file, and verdicts on numbers that were made by
//! hand.

use std::cell::OnceCell;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use crate::common::{RATIO, experiment, text, unmeasured};
use xoff_plan::plan::{AckQueue, Red, Setup};
use xoff_repro::evaluate;
use xoff_repro::experiment::{Claim, SCENARIO};
use xoff_repro::library;
use xoff_repro::metrics::Value;
use xoff_repro::read::{self, Base};
use xoff_repro::report::{Decision, ExperimentResult, PaperResult, Results};
use xoff_repro::runs::written;
use xoff_repro::verdict::Verdict;
use xoff_repro::{answer, discussion, equal, page, site};
use xoff_schemes::congestion_control::dctcp::DctcpParams;
use xoff_schemes::congestion_control::{CongestionControlParams, Step};

#[test]
fn every_claim_of_the_five_papers_has_a_measurement_or_a_reason() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments");
    let mut found: Vec<String> = Vec::new();
    for paper in library::load(&dir).unwrap() {
        let built = paper.experiments.iter().flat_map(|i| &i.read.experiment.claim);
        for claim in built.chain(paper.claims.iter().flat_map(|c| &c.claim)) {
            // Which is checked when it is read: one of these, and no other.
            let reason = claim.not_simulated.is_some() || claim.analysis.is_some() || claim.later.is_some();
            assert_eq!(reason, claim.measure.is_empty(), "{}", claim.id);
            // Other sources are no papers of the list.
            let other = paper.claims.as_ref().is_some_and(|c| c.sources.is_some());
            if !other {
                found.push(format!("{} {}", paper.name, claim.id));
            }
        }
    }
    // Expectations of ours beside the papers' claims, for which no claim is listed.
    found.retain(|claim| !claim.contains(".own-"));
    let mut known: Vec<&str> = include_str!("claims.txt").lines().collect();
    assert_eq!(known.len(), 322);
    known.sort_unstable();
    found.sort_unstable();
    assert_eq!(found, known);
}

#[test]
fn the_program_contains_the_experiments() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments");
    let bundled = library::load_from(&library::Place::Bundled).unwrap();
    let (texts, disk) = (
        |papers: &[library::Paper]| {
            let items =
                papers.iter().flat_map(|p| p.experiments.iter().map(|i| (p.claims.clone(), i.text.clone())));
            items.collect::<Vec<_>>()
        },
        library::load(&dir).unwrap(),
    );
    assert!(texts(&bundled).len() > 90 && texts(&bundled) == texts(&disk));
    let mut count = 0;
    for (path, content) in library::BUNDLED {
        assert!(std::fs::read(dir.join(path)).unwrap() == *content, "{path}");
        count += 1;
    }
    assert!(count > texts(&disk).len());
    let beside = library::bundled_beside(Path::new("experiments/pyrrha/scenarios/clos.toml"));
    assert!(beside.contains_key(Path::new("../data/r5-incast.csv")));
    assert!(beside.contains_key(Path::new("clos.toml")) && beside.contains_key(Path::new("../r5.toml")));
    assert!(beside.keys().all(|path| !path.starts_with("../../")));
}

/// Sweeps are beside the claims of the papers, and have no claims of them.
#[test]
fn sweeps_are_read_and_their_expectations_are_ours() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../sweeps");
    let papers = library::load(&dir).unwrap();
    let claims = papers.iter().flat_map(|p| &p.experiments).flat_map(|i| &i.read.experiment.claim);
    let ids: Vec<&str> = claims.map(|c| c.id.as_str()).collect();
    assert!(!ids.is_empty() && ids.iter().all(|id| id.contains(".own-")), "{ids:?}");
}

/// Judges the claim. Runs: ours at 0.4 and 0.8, theirs at 0.4 and 0.8, two seeds each.
fn judge(claim: &str, fct: [f64; 8]) -> (Verdict, Vec<Verdict>) {
    let e = experiment(claim);
    let value = |v: f64| Value { value: (!v.is_nan()).then_some(v), ..Value::default() };
    let measured: Vec<_> = fct.iter().map(|&v| Some(vec![value(v), value(0.0)])).collect();
    let found = evaluate::claims(&e, false, &e.grid(false, &[]), &measured, 0);
    (found[0].verdict, found[0].measures.iter().map(|m| m.verdict).collect())
}

#[test]
fn a_claim_is_tested_at_every_point_that_it_leaves_open() {
    // Twice as long at 0.4, thrice at 0.8: 2 is reproduced, 3 has the same direction.
    let fct = [20.0, 40.0, 30.0, 60.0, 10.0, 20.0, 10.0, 20.0];
    use Verdict::{Reproduced, SameDirection};
    assert_eq!(judge(RATIO, fct), (SameDirection, vec![Reproduced, SameDirection]));
    let at = RATIO.replace("metric = \"fct\" }", "metric = \"fct\", at = { \"traffic.0.load\" = 0.4 } }");
    assert_eq!(judge(&at, fct), (Reproduced, vec![Reproduced]));
    let across = RATIO.replace(
        "against = \"theirs\", metric = \"fct\" }",
        "metric = \"fct\", at = { \"traffic.0.load\" = 0.8 }, against_at = { \"traffic.0.load\" = 0.4 } }",
    );
    assert_eq!(judge(&across, fct).0, SameDirection, "1.5 of 2 is beyond a fifth");
}

#[test]
fn seeds_are_paired_and_missing_values_decide_nothing() {
    // Seed by seed always twice, though the seeds differ a hundredfold.
    let fct = [2.0, 200.0, 2.0, 200.0, 1.0, 100.0, 1.0, 100.0];
    assert_eq!(judge(RATIO, fct).0, Verdict::Reproduced);
    let mut missing = fct;
    missing[1] = f64::NAN;
    assert_eq!(judge(RATIO, missing), (Verdict::Undecided, vec![Verdict::Undecided, Verdict::Reproduced]));
    let mut zero = fct;
    zero[4] = 0.0;
    assert_eq!(judge(RATIO, zero).1[0], Verdict::Undecided, "nothing is divided by 0");
    let e = experiment(RATIO);
    let found = evaluate::claims(&e, false, &e.grid(false, &[]), &vec![None; 8], 0);
    assert_eq!(found[0].verdict, Verdict::Undecided);
    assert!(found[0].measures[0].notes.contains(&"some runs are missing".to_string()));
}

#[test]
fn a_lower_bound_can_reproduce_an_order_and_contradicts_none() {
    let judge = |claim: (&str, String), ours: Value, theirs: Value| {
        let measure = "measure = [{ run = \"ours\", against = \"theirs\", metric = \"fct\"";
        let e = experiment(&format!("{}\n{measure}{}", claim.0, claim.1));
        let of = |v: &Value| Some(vec![v.clone(), Value::default()]);
        let measured: Vec<_> = (0..8).map(|run| of(if run < 4 { &ours } else { &theirs })).collect();
        let found = evaluate::claims(&e, false, &e.grid(false, &[]), &measured, 0).remove(0);
        (found.verdict, found.measures[0].values[0], found.measures[0].notes.join("; "))
    };
    let known = |v| Value { value: Some(v), ..Value::default() };
    let at_least = |v| Value { at_least: Some(v), note: Some("unfinished".into()), ..Value::default() };
    let ordering = |side: &str| ("relation = \"ordering\"", format!(", expect = \"{side}\" }}]"));
    use Verdict::{Reproduced, Undecided};
    let found = judge(ordering("greater"), at_least(30.0), known(20.0));
    assert_eq!((found.0, found.1), (Reproduced, Some(10.0)));
    assert!(found.2.contains("seed 1: unfinished, counted until the end of the run"), "{}", found.2);
    assert_eq!(judge(ordering("less"), known(20.0), at_least(30.0)).1, Some(-10.0));
    // It may be 25 at last.
    assert_eq!(judge(ordering("greater"), at_least(15.0), known(20.0)).0, Undecided);
}

#[test]
fn a_missing_seed_does_not_hide_that_it_happened() {
    const NAN: f64 = f64::NAN;
    let never = "relation = \"equals\"\nlow = 0\nhigh = 0\nmeasure = [{ run = \"ours\", metric = \"fct\", at = { \"traffic.0.load\" = 0.4 } }]";
    let with = |claim: &str, a: f64, b: f64| judge(claim, [a, b, NAN, NAN, NAN, NAN, NAN, NAN]).0;
    assert_eq!(with(never, NAN, 1.0), Verdict::Contradicted);
    assert_eq!(with(never, NAN, 0.0), Verdict::Undecided);
    assert_eq!(with(never, 0.0, 0.0), Verdict::Reproduced);
    let at_most = never.replace("equals", "at_most").replace("low = 0\n", "");
    assert_eq!(with(&at_most, 1.0, NAN), Verdict::Contradicted);
    // Of a mean the missing one could turn it.
    let one = never.replace("low = 0", "low = 1").replace("high = 0", "high = 1");
    assert_eq!(with(&one, 9.0, NAN), Verdict::Undecided);
}

#[test]
fn the_largest_of_the_values_of_a_key_is_taken() {
    // Lower by 0.1 at 0.4, by 0.5 at 0.8: at most by 0.5 is meant of the larger one.
    let fct = [9.0, 9.0, 5.0, 5.0, 10.0, 10.0, 10.0, 10.0];
    let text = "relation = \"reduction\"\nlow = 0.5\nhigh = 0.5\nmeasure = [{ run = \"ours\", against = \"theirs\", metric = \"fct\", largest_over = \"traffic.0.load\" }]";
    assert_eq!(judge(text, fct), (Verdict::Reproduced, vec![Verdict::Reproduced]));
    let e = experiment(text);
    let value = |v: f64| {
        Some(vec![Value { value: (!v.is_nan()).then_some(v), ..Value::default() }, Value::default()])
    };
    let of = |fct: [f64; 8]| {
        evaluate::claims(&e, false, &e.grid(false, &[]), &fct.map(value), 0)[0].measures[0].clone()
    };
    let found = of(fct);
    assert_eq!((found.mean, found.at["traffic.0.load"].as_str()), (Some(0.5), "0.8"));
    assert!(found.ours().ends_with("at 0.8"), "{}", found.ours());
    let two = "relation = \"ratio\"\nlow = 1\nhigh = 1\nmeasure = [{ run = \"ours\", against = \"theirs\", metric = \"fct\", largest_over = \"traffic.0.load\" }]";
    assert_eq!(judge(two, fct).1.len(), 1, "the smaller one does not count");
    // A measurement without a value might have been the largest.
    let mut missing = fct;
    missing[0] = f64::NAN;
    assert_eq!((of(missing).verdict, of(missing).at["traffic.0.load"].as_str()), (Verdict::Undecided, "0.4"));
    for (from, to, key, message) in [
        (
            "largest_over = \"traffic.0.load\"",
            "largest_over = \"traffic.1.load\"",
            "largest_over",
            "not varied",
        ),
        (
            "metric = \"fct\",",
            "metric = \"fct\", at = { \"traffic.0.load\" = 0.4 },",
            "largest_over",
            "one value",
        ),
        ("metric = \"fct\",", "metric = \"fct\", expect = \"less\",", "largest_over", "no effect"),
    ] {
        let error = read::read("e.toml", self::text(text).replacen(from, to, 1).as_bytes());
        let error = error.unwrap_err();
        assert!(error.message().contains(message), "{to}: {}", error.one_line());
        assert!(error.key().is_some_and(|k| k.ends_with(key)), "{}", error.one_line());
    }
    let shape = "relation = \"shape\"\nmeasure = [{ run = \"ours\", against = \"theirs\", metric = \"fct\", combine = \"ratio\", says = \"s\", expect = \"less\", largest_over = \"traffic.0.load\" }]";
    let error = read::read("e.toml", self::text(shape).as_bytes()).unwrap_err();
    assert!(error.message().contains("no effect with `expect`"), "{}", error.one_line());
}

#[test]
fn differences_from_the_mean_over_seeds_are_compared() {
    let claim = "relation = \"ordering\"\nmeasure = [{ run = \"ours\", against = \"theirs\", metric = \"fct\", deviation = true, expect = \"greater\" }]";
    // At each load two seeds: 8 and 12 differ by 2 from 10, 99 and 101 by 1 from 100.
    let fct = [8.0, 12.0, 8.0, 12.0, 99.0, 101.0, 99.0, 101.0];
    assert_eq!(judge(claim, fct).0, Verdict::Reproduced);
    let one = text(claim).replace("seeds = [1, 2]", "seeds = [1]");
    let error = read::read("e.toml", one.as_bytes()).unwrap_err();
    assert!(error.message().contains("requires at least two seeds"), "{}", error.one_line());
}

#[test]
fn two_comparisons_are_compared() {
    let claim = "relation = \"shape\"\nmeasure = [{ says = \"s\", run = \"ours\", against = \"theirs\", metric = \"fct\", combine = \"reduction\", at = { \"traffic.0.load\" = 0.8 }, than_at = { \"traffic.0.load\" = 0.4 }, expect = \"less\" }]";
    // Lower by 0.5 and 0.25 at 0.4, by 0.25 and 0 at 0.8.
    let fct = [4.0, 6.0, 6.0, 8.0, 8.0, 8.0, 8.0, 8.0];
    assert_eq!(judge(claim, fct).0, Verdict::Reproduced);
    assert_eq!(judge(&claim.replace("less", "greater"), fct).0, Verdict::Contradicted);
    // By 0.25 less in one seed, and by as much more in the other.
    assert_eq!(judge(claim, [4.0, 6.0, 6.0, 4.0, 8.0, 8.0, 8.0, 8.0]).0, Verdict::Undecided);
    let bounds = claim.replace("expect = \"less\"", "low = -0.25, high = -0.25");
    assert_eq!(judge(&bounds, fct).0, Verdict::Reproduced);
    let one = claim.replace("against = \"theirs\", ", "").replace("reduction", "value");
    let error = read::read("e.toml", self::text(&one).as_bytes()).unwrap_err();
    assert!(error.message().contains("the comparison is missing"), "{}", error.one_line());
    assert!(error.key().is_some_and(|k| k.ends_with("than_at")), "{}", error.one_line());
}

#[test]
fn only_seeds_with_the_event_count() {
    let claim = "relation = \"equals\"\nlow = 2\nhigh = 2\nmeasure = [{ run = \"ours\", metric = \"fct\", at = { \"traffic.0.load\" = 0.4 }, seeds_with = \"fct\" }]";
    let with = |a: f64, b: f64| judge(claim, [a, b, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0]).0;
    assert_eq!(with(0.0, 2.0), Verdict::Reproduced);
    assert_eq!(with(1.0, 3.0), Verdict::Undecided);
    // No seed has it, or it is not known whether one has it.
    assert_eq!(with(0.0, 0.0), Verdict::Undecided);
    assert_eq!(with(f64::NAN, 2.0), Verdict::Undecided);
    let other = claim.replace("seeds_with = \"fct\"", "seeds_with = \"fcd\"");
    let error = read::read("e.toml", self::text(&other).as_bytes()).unwrap_err();
    assert!(error.key().is_some_and(|k| k.ends_with("seeds_with")), "{}", error.one_line());
    let deviation = claim.replace("seeds_with", "deviation = true, seeds_with");
    let error = read::read("e.toml", self::text(&deviation).as_bytes()).unwrap_err();
    assert!(error.message().contains("`seeds_with` excludes `deviation`"), "{}", error.one_line());
}

/// A set-up with 1 MB in each switch, and no marks.
fn setup() -> Setup {
    let congestion_control = CongestionControlParams::None;
    Setup { acks: AckQueue::Data, marking: Vec::new(), buffers: vec![1_000_000], congestion_control }
}

#[test]
fn unequal_setups_need_a_reason() {
    let compared_of = |whole: bool, reason: &str, ours: &Setup, theirs: &Setup| {
        let text = text(RATIO).replacen("seeds =", &format!("{reason}seeds ="), 1);
        let e = read::read("e.toml", text.as_bytes()).unwrap().experiment;
        let of = |run: usize| Some(if e.run[run].name == "ours" { ours } else { theirs });
        equal::check(&e, whole, &of).err().map(|(message, _)| message)
    };
    let compared = |reason: &str, ours: &Setup, theirs: &Setup| compared_of(true, reason, ours, theirs);
    let red = |k_max| Red {
        k_min: 100,
        k_max,
        p_max: 0.2,
        per: 0,
        at_dequeue: false,
        of_port: false,
        last_hop: true,
        hosts: true,
    };
    let marks = |k_max| Setup { marking: vec![red(k_max)], ..setup() };
    let step = Step::Rate(1);
    let dctcp = CongestionControlParams::Dctcp(DctcpParams {
        gain: 0.5,
        additive_increase: step,
        minimum_rate: step,
    });
    for (part, a, b) in [
        ("acks", setup(), Setup { acks: AckQueue::Own, ..setup() }),
        ("marking", marks(200), marks(300)),
        ("buffers", setup(), Setup { buffers: vec![2_000_000], ..setup() }),
        ("congestion_control", setup(), Setup { congestion_control: dctcp, ..setup() }),
    ] {
        let message = compared("", &a, &b).unwrap();
        assert!(message.contains("differs between ours and theirs"), "{message}");
        assert!(message.contains(part), "{message}");
        let why = format!("unequal.{part} = \"the paper has it so\"\n");
        assert_eq!(compared(&why, &a, &b), None);
        assert_eq!(compared("", &a, &a), None);
        assert!(compared(&why, &a, &a).unwrap().contains("no effect"));
        // Another claim, which is not asked for, may need it.
        assert_eq!(compared_of(false, &why, &a, &a), None);
        assert!(compared_of(false, "", &a, &b).is_some());
    }
    // Where no sender reacts to marks, they do not differ.
    assert_eq!(compared("", &setup(), &marks(200)), None);
}

/// The set-up of a run is that of its first point, in its shorter version.
#[test]
fn the_stored_experiments_compare_equal_setups_or_say_why_not() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments");
    let mut wrong = Vec::new();
    for item in library::load(&dir).unwrap().iter().flat_map(|paper| &paper.experiments) {
        let (owner, e) = (item.owner(), &item.read.experiment);
        let setup = |run: usize| {
            let runs = &owner.read.experiment;
            let mut overrides = runs.overrides(run, true, None);
            overrides.extend(runs.vary(true).iter().map(|v| (v.key.clone(), written(&v.values[0]))));
            let folder = owner.path.parent().unwrap();
            let (text, table, base) = match &owner.read.bases[run] {
                Base::Inline => (owner.text.clone(), SCENARIO, folder.to_path_buf()),
                Base::File(file) => {
                    let path = folder.join(file);
                    (fs::read(&path).unwrap(), "", path.parent().unwrap().to_path_buf())
                }
            };
            let files = |path: &Path| fs::read(base.join(path));
            xoff_plan::load_table(
                &e.id,
                &text,
                table,
                &overrides,
                xoff_plan::Needs::Traffic,
                &files,
                &|_| Ok(()),
                None,
            )
            .unwrap()
            .plan
            .setup()
        };
        let known: Vec<OnceCell<Option<Setup>>> = vec![OnceCell::new(); e.run.len()];
        let found = equal::check(e, true, &|run| known[run].get_or_init(|| setup(run)).as_ref());
        wrong.extend(found.err().map(|(message, _)| format!("{}/{}: {message}", e.paper, e.id)));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Another reading has the measures of the claim, with other runs, metrics or points.
#[test]
fn a_reading_is_judged_as_its_claim_is() {
    let at = RATIO.replace("metric = \"fct\" }", "metric = \"fct\", at = { \"traffic.0.load\" = 0.4 } }");
    let with = |reading: &str| {
        let e = experiment(&format!("{at}\n[[claim.reading]]\nchoice = \"another\"\n{reading}"));
        // Ours 30 and 20, theirs 10 and 10, at loads of 0.4 and 0.8.
        let fct = [30.0, 30.0, 20.0, 20.0, 10.0, 10.0, 10.0, 10.0];
        let value = |value| Value { value: Some(value), ..Value::default() };
        let measured: Vec<_> = fct.iter().map(|&v| Some(vec![value(v), value(0.0)])).collect();
        let found = evaluate::claims(&e, false, &e.grid(false, &[]), &measured, 0);
        assert_eq!(found[0].verdict, Verdict::SameDirection, "the claim itself is not changed");
        let reading = found[0].readings[0].clone();
        let result = ExperimentResult { claims: found, ..unmeasured(&e).experiments.remove(0) };
        (reading.verdict, reading.measures[0].mean, result.decision(&result.claims[0]))
    };
    let found = |mean| (Some(Verdict::Reproduced), Some(mean), Decision::Found);
    assert_eq!(with("at = { \"traffic.0.load\" = 0.8 }"), found(2.0));
    let not_found = (Some(Verdict::Contradicted), Some(1.0), Decision::NotFound);
    assert_eq!(with("runs = { \"ours\" = \"theirs\" }"), not_found);
}

#[test]
fn a_reading_names_what_exists_and_what_differs() {
    let refused = |reading: &str| {
        let text = text(&format!("{RATIO}\n[[claim.reading]]\nchoice = \"another\"\n{reading}"));
        read::read("e.toml", text.as_bytes()).unwrap_err().message().to_string()
    };
    assert!(refused("").contains("changes nothing"));
    assert!(refused("runs = { \"ours\" = \"their\" }").contains("`their`"));
    assert!(refused("runs = { \"others\" = \"ours\" }").contains("does not measure the run `others`"));
    assert!(refused("metrics = { \"fct\" = \"drops\" }").contains("different units"));
    assert!(refused("at = { \"traffic.0.load\" = 0.5 }").contains("0.5"));
}

#[test]
fn a_reference_names_a_run_a_metric_and_a_point() {
    let read = |reference: &str| {
        let text = text(&format!("{RATIO}\ndiscussion = \"It is {{{reference}}}.\""));
        read::read("e.toml", text.as_bytes()).map(|read| read.experiment)
    };
    let refused = |reference: &str| read(reference).unwrap_err().message().to_string();
    assert!(refused("their/fct at load=0.4").contains("unknown run `their`"));
    assert!(refused("ours/fcd at load=0.4").contains("unknown metric `fcd`"));
    assert!(refused("ours/fct").contains("the value of `traffic.0.load` is missing"));
    assert!(refused("ours/fct at load=0.5").contains("does not have the value 0.5"));
    let e = read("ours/fct over theirs/fct at load=0.8").unwrap();
    let value = |value| Value { value: Some(value), ..Value::default() };
    let fct = [1.0, 1.0, 3.0, 5.0, 1.0, 1.0, 2.0, 2.0];
    let measured: Vec<_> = fct.iter().map(|&v| Some(vec![value(v), value(0.0)])).collect();
    let values = evaluate::references(&e, false, &e.grid(false, &[]), &measured);
    let result = ExperimentResult { values, ..unmeasured(&e).experiments.remove(0) };
    assert_eq!(result.expanded(e.claim[0].discussion.as_ref().unwrap()), "It is 2.");
}

/// A cause that no run shows is named as open, not as likely.
#[test]
fn no_discussion_guesses_at_a_cause() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments");
    let mut guesses = Vec::new();
    for item in library::load(&dir).unwrap().iter().flat_map(|paper| &paper.experiments) {
        let e = &item.read.experiment;
        let texts = e.claim.iter().filter_map(|c| c.discussion.as_deref()).chain([e.note.as_str()]);
        let found = texts.flat_map(discussion::guesses);
        guesses.extend(found.map(|sentence| format!("{}/{}: {sentence}", e.paper, e.id)));
    }
    assert!(guesses.is_empty(), "{}", guesses.join("\n"));
}

#[test]
fn a_claim_of_our_own_may_have_another_tolerance() {
    // 1.5 of 1.45: within a fifth of the effect, not within 2% of 1.45.
    let fct = [15.0, 15.0, 15.0, 15.0, 10.0, 10.0, 10.0, 10.0];
    let claim = |id: &str, within: &str| {
        let ratio = RATIO.replace("= 2", "= 1.45").replace("\nmeasure", &format!("{within}\nmeasure"));
        text(&ratio).replace("e.c\"", &format!("{id}\""))
    };
    let judged = |text: &str| {
        let e = read::read("e.toml", text.as_bytes()).unwrap().experiment;
        let measured: Vec<_> = fct
            .iter()
            .map(|&v| Some(vec![Value { value: Some(v), ..Value::default() }, Value::default()]))
            .collect();
        evaluate::claims(&e, false, &e.grid(false, &[]), &measured, 0)[0].verdict
    };
    assert_eq!(judged(&claim("e.own-c", "")), Verdict::Reproduced);
    assert_eq!(judged(&claim("e.own-c", "\nwithin = 0.02")), Verdict::SameDirection);
    for (id, within, message) in [
        ("e.c", "\nwithin = 0.1", "only for claims named own-"),
        ("e.own-c", "\nwithin = 1.5", "out of range"),
        ("e.own-c", "\nwithin = -0.1", "out of range"),
    ] {
        let error = read::read("e.toml", claim(id, within).as_bytes()).unwrap_err();
        assert!(error.message().contains(message), "{}", error.one_line());
        assert!(error.key().is_some_and(|k| k.ends_with("within")), "{}", error.one_line());
    }
}

/// An experiment that looks at the runs of `e`.
const LOOKS: &str = r#"paper = "p"
id = "f"
title = "t"
section = "1"
kind = "simulation"
runs_of = "e"

[[metric]]
name = "rate"
of = "flow-rate"
statistic = "mean"

[[claim]]
id = "f.c"
statement = "s"
subject = "ours"
against = "theirs"
metric = "rate"
relation = "ordering"
measure = [{ run = "ours", against = "theirs", metric = "rate", expect = "greater" }]
"#;

#[test]
fn an_experiment_can_use_the_runs_of_another() {
    let owner = read::read("e.toml", text(RATIO).as_bytes()).unwrap();
    let other = |id: &str| Ok((id == "e").then(|| owner.clone()));
    let read = |text: &str| read::read_beside("f.toml", text.as_bytes(), &other);
    let e = read(LOOKS).unwrap().experiment;
    assert_eq!(e.runs_of.as_deref(), Some("e"));
    assert_eq!(e.grid(false, &[]), owner.experiment.grid(false, &[]));
    // Its own metric, at every point of the other's grid.
    let measured = [2.0, 2.0, 2.0, 2.0, 1.0, 1.0, 3.0, 3.0];
    let measured = measured.map(|v| Some(vec![Value { value: Some(v), ..Value::default() }]));
    let found = evaluate::claims(&e, false, &e.grid(false, &[]), &measured, 0);
    let verdicts: Vec<Verdict> = found[0].measures.iter().map(|m| m.verdict).collect();
    assert_eq!(verdicts, [Verdict::Reproduced, Verdict::Contradicted]);
    let fixed = "runs_of = \"e\"\n\n[[fixed]]\nwhat = \"w\"\nreason = \"r\"\n";
    read(&LOOKS.replace("runs_of = \"e\"\n", fixed)).unwrap();
    for (from, to, key, message) in [
        ("runs_of = \"e\"", "runs_of = \"x\"", "runs_of", "unknown experiment `x`"),
        ("runs_of = \"e\"", "runs_of = \"e\"\nseeds = [1]", "seeds", "those of `e`"),
        ("[[metric]]", "[[run]]\nname = \"a\"\n[[metric]]", "run", "those of `e`"),
        ("[[metric]]", "[[vary]]\nkey = \"a\"\nvalues = [1]\n[[metric]]", "vary", "those of `e`"),
        ("[[metric]]", "[quick]\nseeds = [1]\n[[metric]]", "quick", "those of `e`"),
        ("[[metric]]", "[scenario.run]\nseed = 1\n[[metric]]", "scenario", "those of `e`"),
        (
            "[[metric]]",
            "[[chosen]]\nkey = \"a\"\nvalue = 1\nreason = \"r\"\n[[metric]]",
            "chosen[0].key",
            "those of `e`",
        ),
        ("run = \"ours\"", "run = \"our\"", "claim[0].measure[0].run", "unknown run `our`"),
    ] {
        let error = read(&LOOKS.replacen(from, to, 1)).unwrap_err();
        assert!(error.message().contains(message), "{to}: {}", error.one_line());
        assert_eq!(error.key(), Some(key), "{}", error.one_line());
        assert!(error.remedy().is_some(), "{}", error.one_line());
    }
    assert!(read::read("f.toml", LOOKS.as_bytes()).is_err(), "it stands beside nothing");
}

#[test]
fn the_owner_of_runs_is_found_in_the_directory() {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join("repro-owner");
    let _ = std::fs::remove_dir_all(&dir);
    std::fs::create_dir_all(dir.join("p")).unwrap();
    let put = |id: &str, text: &str| std::fs::write(dir.join(format!("p/{id}.toml")), text).unwrap();
    put("e", &text(RATIO));
    put("f", LOOKS);
    let papers = library::load(&dir).unwrap();
    let ids: Vec<_> = papers[0].experiments.iter().map(|i| i.owner().read.experiment.id.as_str()).collect();
    assert_eq!(ids, ["e", "e"]);
    // A single experiment still has them.
    let chosen =
        |what: &[&str]| library::choose(&papers, &what.iter().map(|w| (*w).to_string()).collect::<Vec<_>>());
    assert_eq!(chosen(&["p/f"]).unwrap()[0].experiments[0].owner().path, dir.join("p/e.toml"));
    // Several names, in any order, are one paper; each experiment is there once.
    for what in [&["p/f", "p/e"][..], &["p/e", "p/f", "p/e.toml"], &["p", "p/f"], &[]] {
        let chosen = chosen(what).unwrap();
        let ids: Vec<_> = chosen[0].experiments.iter().map(|i| i.read.experiment.id.as_str()).collect();
        assert_eq!((chosen.len(), ids), (1, vec!["e", "f"]), "{what:?}");
    }
    let error = chosen(&["p/f", "p/e.ratio"]).unwrap_err();
    assert!(error.message().contains("a claim must be the only name"), "{}", error.one_line());
    assert!(answer::list(&papers).contains("same as e"));
    put("g", &LOOKS.replace("id = \"f", "id = \"g").replace("runs_of = \"e\"", "runs_of = \"f\""));
    let error = library::load(&dir).unwrap_err();
    assert!(error.message().contains("`f` has no runs: it uses the runs of `e`"), "{}", error.one_line());
}

#[test]
fn every_relation_is_judged_by_its_own_rule() {
    let fct = [8.0, 8.0, 6.0, 6.0, 10.0, 10.0, 10.0, 10.0];
    let of = |relation: &str, measure: &str| judge(&format!("relation = \"{relation}\"\n{measure}"), fct).0;
    let two = "run = \"ours\", against = \"theirs\", metric = \"fct\"";
    let cases = format!(
        "per_case = {{ low = 0.2, high = 0.4 }}\nmeasure = [{{ case = \"low\", {two}, at = {{ \"traffic.0.load\" = 0.4 }} }}, {{ case = \"high\", {two}, at = {{ \"traffic.0.load\" = 0.8 }} }}]"
    );
    assert_eq!(of("reduction", &cases), Verdict::Reproduced);
    assert_eq!(of("reduction", &cases.replace("high = 0.4", "high = 0.8")), Verdict::SameDirection);
    assert_eq!(of("reduction", &cases.replace("high = 0.4", "high = -0.4")), Verdict::Contradicted);
    let ordering = format!("measure = [{{ {two}, expect = \"less\" }}]");
    assert_eq!(of("ordering", &ordering), Verdict::Reproduced);
    assert_eq!(of("ordering", &ordering.replace("less", "greater")), Verdict::Contradicted);
    let one = "measure = [{ run = \"ours\", metric = \"fct\" }]";
    assert_eq!(of("at_least", &format!("low = 6\n{one}")), Verdict::Reproduced);
    assert_eq!(
        of("at_least", &format!("low = 8\n{one}")),
        Verdict::Contradicted,
        "6 of 8 at the higher load"
    );
    assert_eq!(of("at_most", &format!("high = 8\n{one}")), Verdict::Reproduced);
    // 8 and 6: a second bound counts as well, widened like the first.
    for relation in ["at_most", "at_least"] {
        for (bounds, verdict) in [
            ("low = 6\nhigh = 8", Verdict::Reproduced),
            ("low = 7.6\nhigh = 9", Verdict::Contradicted),
            ("low = 3\nhigh = 6.5", Verdict::Contradicted),
        ] {
            assert_eq!(of(relation, &format!("{bounds}\n{one}")), verdict, "{relation} {bounds}");
        }
    }
    // The number of a case, and a bound on the other side, follow the relation.
    let case = "per_case = { c = 6 }\nmeasure = [{ case = \"c\", run = \"ours\", metric = \"fct\" }]";
    assert_eq!(of("at_least", case), Verdict::Reproduced);
    assert_eq!(of("at_most", case), Verdict::Contradicted);
    assert_eq!(of("equals", case), Verdict::Contradicted);
    assert_eq!(of("at_least", &format!("high = 3\n{one}")), Verdict::Reproduced);
    assert_eq!(of("at_most", &format!("low = 20\n{one}")), Verdict::Reproduced);
    let never = "measure = [{ run = \"ours\", metric = \"drops\" }]";
    assert_eq!(of("equals", &format!("low = 0\nhigh = 0\n{never}")), Verdict::Reproduced);
    let shape = "measure = [{ run = \"ours\", metric = \"fct\", says = \"it is short\", high = 9 }]";
    assert_eq!(of("shape", shape), Verdict::Reproduced);
    assert_eq!(of("shape", &shape.replace("high = 9", "low = 9")), Verdict::Contradicted);
}

#[test]
fn errors_are_named_with_their_place() {
    for (from, to, line, key, message) in [
        ("paper = \"p\"", "papr = \"p\"", 1, "papr", "unknown key"),
        ("kind = \"simulation\"", "kind = \"sim\"", 5, "kind", "unknown value"),
        ("seeds = [1, 2]", "seeds = [1, 1]", 6, "seeds[1]", "twice"),
        ("name = \"theirs\"", "name = \"ours\"", 15, "run[1].name", "twice"),
        ("values = [0.4, 0.8]", "values = []", 19, "vary[0].values", "is empty"),
        ("of = \"fct\"", "of = \"ftc\"", 23, "metric[0].of", "cannot be measured"),
        ("statistic = \"mean\"", "", 21, "metric[0].statistic", "missing"),
        (
            "of = \"lossless-drops\"",
            "of = \"lossless-drops\"\nclass = \"a\"",
            29,
            "metric[1].class",
            "no effect",
        ),
        ("statistic = \"mean\"", "statistic = \"mean\"\nunit = \"kB\"", 25, "metric[0].unit", "not a unit"),
        ("run = \"ours\"", "run = \"our\"", 39, "claim[0].measure[0].run", "unknown run `our`"),
        ("metric = \"fct\" }", "metric = \"x\" }", 39, "claim[0].measure[0].metric", "unknown metric"),
        ("against = \"theirs\", ", "", 39, "claim[0].measure[0].combine", "second value of the comparison"),
        ("id = \"e.c\"", "id = \"f.c\"", 31, "claim[0].id", "does not belong to this"),
        ("low = 2", "low = 3", 38, "claim[0].high", "less than `low`"),
        ("low = 2", "low = 2\ndiscussion = \" \"", 39, "claim[0].discussion", "empty"),
    ] {
        let text = text(RATIO);
        assert!(text.contains(from), "{from}");
        let error = read::read("e.toml", text.replacen(from, to, 1).as_bytes()).unwrap_err();
        let line_of = error.position().map(|p| p.0);
        assert!(error.message().contains(message), "{to}: {}", error.one_line());
        assert_eq!(error.key(), Some(key), "{}", error.one_line());
        assert!(line_of.is_some_and(|l| l.abs_diff(line) <= 1), "{line}: {}", error.one_line());
        assert!(error.remedy().is_some(), "{}", error.one_line());
    }
    let error = read::read("e.toml", b"# nothing\n").unwrap_err();
    assert!(error.message().contains("empty"));
}

#[test]
fn partial_and_short_results_are_marked_everywhere() {
    let mut results = unmeasured(&experiment(RATIO));
    for (quick, complete) in [(false, true), (true, true), (false, false)] {
        (results.quick, results.complete) = (quick, complete);
        let pages = page::render(&results).into_iter().map(|page| page.text);
        let texts: Vec<String> = pages.chain([answer::sum(&results)]).collect();
        assert_eq!(texts.len(), 3);
        for text in texts {
            assert_eq!(text.contains("quick version"), quick);
            assert_eq!(text.to_lowercase().contains("partial"), !complete);
        }
    }
    let again: Results = serde_json::from_str(&serde_json::to_string(&results).unwrap()).unwrap();
    assert_eq!(again, results);
}

/// The text about a claim or a paper is beside its verdict.
#[test]
fn words_are_on_the_page() {
    let mut results = unmeasured(&experiment(&format!("{RATIO}\ndiscussion = \"as the moon is full\"")));
    let words = |text: &str| text.to_string();
    let paper = PaperResult {
        name: words("p"),
        title: words("On tides"),
        sources: None,
        summary: words("Half of it came.\n"),
    };
    results.papers.push(paper);
    let pages = page::render(&results);
    let paths: Vec<&str> = pages.iter().map(|page| page.path.as_str()).collect();
    assert_eq!(paths, ["reproduction/p.md", "REPRODUCTION.md"]);
    let (details, scoreboard) = (&pages[0].text, &pages[1].text);
    assert!(details.contains("\n**`e.c`, undecided.** No reading tried. as the moon is full\n"), "{details}");
    assert!(details.starts_with("# p: claims and measurements\n\n*On tides*\n"), "{details}");
    assert!(details.contains("(../REPRODUCTION.md#p)") && details.contains("\n1 claim: 1 undecided.\n"));
    let summary =
        "\n## p\n\n*On tides*\n\nHalf of it came.\n\n[All claims](reproduction/p.md): 1 undecided.\n";
    assert!(scoreboard.contains(summary), "{scoreboard}");
    let row = "\n| [e](#e) |  |  | 1 undecided |\n";
    assert!(details.contains(row), "{details}");
}

/// Claims of other sources are counted apart from those of the papers, and after them.
#[test]
fn other_sources_are_counted_apart() {
    let mut results = unmeasured(&experiment(RATIO));
    let mut other = results.experiments[0].clone();
    other.paper = "a".into();
    other.claims.iter_mut().for_each(|c| c.paper = "a".into());
    results.experiments.push(other);
    results.papers = ["a", "p"]
        .map(|name| PaperResult {
            name: name.into(),
            title: "t".into(),
            sources: (name == "a").then(|| "A test plan.".into()),
            summary: "s".into(),
        })
        .into();
    let results = results.counted();
    let pages = page::render(&results);
    let paths: Vec<&str> = pages.iter().map(|page| page.path.as_str()).collect();
    assert_eq!(paths, ["reproduction/p.md", "reproduction/a.md", "REPRODUCTION.md"]);
    assert!(pages[1].text.contains("\n**Sources:** A test plan.\n") && !pages[0].text.contains("Sources"));
    let text = &pages[2].text;
    let at = |part: &str| text.find(part).unwrap_or_else(|| panic!("no {part} in {text}"));
    let (papers, others) = (at("\n| claims of the paper |"), at("\n| claims of other sources |"));
    assert!(papers < others && at("\n## p\n") < at("\n## a\n"));
    let row = |name: &str| format!("\n| {name} | 0 | 0 | 0 | 1 | 0 | 0 | 0 | 0 | 1 |\n");
    assert!(text[papers..others].contains(&row("[p](#p)")) && text[papers..others].contains(&row("all")));
    assert!(text[others..].contains(&row("[a](#a)")) && text[others..].contains(&row("all")));
    let said = site::headline(&results);
    let said_first = "Of 1 claims of the papers: 1 undecided. Of 1 claims of other sources: 1 undecided.";
    assert!(said.starts_with(said_first), "{said}");
    assert!(answer::sum(&results).starts_with("1 undecided\nother sources: 1 undecided\n"));
}

/// Ten experiments are listed, the slowest first; not those that have no runs of their own.
#[test]
fn the_slowest_experiments_are_listed() {
    let mut results = unmeasured(&experiment(RATIO));
    assert!(!page::render(&results)[1].text.contains("Slowest") && answer::slowest(&results).is_empty());
    let one = results.experiments.remove(0);
    let timed = |i: u32| ExperimentResult {
        id: format!("e{i}"),
        seconds: (i != 3).then(|| f64::from(i * 7 % 13)),
        ..one.clone()
    };
    results.experiments = (0..13).map(timed).collect();
    let text = &page::render(&results)[1].text;
    let rows: Vec<&str> = text.split("\n## Slowest experiments\n").nth(1).unwrap().lines().skip(5).collect();
    assert_eq!(rows.len(), 10, "{text}");
    assert_eq!(rows[0], "| [p/e11](reproduction/p.md#e11) | 0 | 12.0 |");
    assert_eq!(rows[9], "| [p/e4](reproduction/p.md#e4) | 0 | 2.0 |");
    let said = xoff_repro::answer::slowest(&results);
    assert_eq!(said.lines().nth(1).unwrap().split_whitespace().collect::<Vec<_>>(), ["p/e11", "12.0"]);
}

/// The reason why a verdict is not final is beside it, on both pages.
#[test]
fn failed_and_missing_runs_are_on_the_pages() {
    let mut results = unmeasured(&experiment(RATIO));
    results.complete = false;
    let e = &mut results.experiments[0];
    (e.runs, e.done, e.lost, e.failed) = (4, 2, 1, vec!["seed 3: no memory".into()]);
    let pages = page::render(&results);
    let details = "Section . 4 runs, one seed. **Partial: 2 runs done.** **1 run lost packets of a lossless priority.** **Failed: seed 3: no memory.**";
    assert!(pages[0].text.contains(details), "{}", pages[0].text);
    let remarks =
        "**Partial: 2 of 4 runs done.** **1 run lost packets of a lossless priority.** **1 run failed.**";
    assert!(pages[0].text.contains(&format!("| 1 undecided. {remarks} |")), "{}", pages[0].text);
    let line = format!("\n- [e](reproduction/p.md#e) {remarks}\n");
    assert!(pages[1].text.contains(&line), "{}", pages[1].text);
}

/// `experiments/results.json` is made by `make repro`. If this fails, run it.
#[test]
fn the_stored_results_have_every_experiment_and_claim() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments");
    let stored = std::fs::read_to_string(dir.join("results.json")).unwrap();
    let stored: Results = serde_json::from_str(&stored).unwrap();
    assert!(stored.complete && !stored.quick, "make repro was interrupted, or run with --quick");
    let claims: BTreeSet<_> = stored.claims().map(|c| (c.paper.clone(), c.id.clone())).collect();
    let contradicted: BTreeSet<_> = stored
        .claims()
        .filter(|c| c.verdict == Verdict::Contradicted)
        .map(|c| (c.paper.clone(), c.id.clone()))
        .collect();
    let (mut missing, mut silent) = (Vec::new(), Vec::new());
    for paper in library::load(&dir).unwrap() {
        for e in paper.experiments.iter().map(|i| &i.read.experiment) {
            let unexplained = e.claim.iter().filter(|c| c.discussion.is_none());
            let unexplained = unexplained.filter(|c| contradicted.contains(&(e.paper.clone(), c.id.clone())));
            silent.extend(unexplained.map(|c| format!("{}/{}", e.paper, c.id)));
            let Some(found) = stored.experiments.iter().find(|s| s.paper == e.paper && s.id == e.id) else {
                missing.push(format!("{}/{}", e.paper, e.id));
                continue;
            };
            let lacks = |c: &&Claim| !found.claims.iter().any(|f| f.id == c.id);
            missing.extend(e.claim.iter().filter(lacks).map(|c| format!("{}/{}", e.paper, c.id)));
        }
        for c in paper.claims.iter().flat_map(|c| &c.claim) {
            if !claims.contains(&(paper.name.clone(), c.id.clone())) {
                missing.push(format!("{}/{}", paper.name, c.id));
            }
        }
    }
    assert!(missing.is_empty(), "experiments/results.json lacks {missing:?}: run `make repro`");
    assert!(
        silent.is_empty(),
        "contradicted, and without a `discussion` in the experiment's file: {silent:?}"
    );
}
