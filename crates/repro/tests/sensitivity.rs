//! `--sensitivity`: the changes of an experiment, and what their table says.

use std::path::Path;

use crate::common::{RATIO, experiment, text, unmeasured};
use xoff_repro::metrics::Value;
use xoff_repro::report::{AsChosen, ChangeResult, ChangedClaim, Decision};
use xoff_repro::verdict::Verdict;
use xoff_repro::{evaluate, library, page, read, sensitivity};

/// `--sensitivity` can change each chosen value of the stored experiments.
#[test]
fn every_choice_of_the_stored_experiments_has_changes() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments");
    let mut wrong = Vec::new();
    for item in library::load(&dir).unwrap().iter().flat_map(|paper| &paper.experiments) {
        let e = &item.read.experiment;
        if let Err(why) = sensitivity::changes(e, false) {
            wrong.push(format!("{}/{}: {why}", e.paper, e.id));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The shorter version overwrites some keys: their choices change nothing in it.
#[test]
fn a_choice_that_quick_overwrites_is_not_changed_in_it() {
    let more = "[quick]\nset = { \"transport.mtu\" = \"4kB\" }\n\n[[chosen]]\nkey = \"transport.mtu\"\nvalue = \"1kB\"\nreason = \"r\"\n\n[[claim]]";
    let e = read::read("e.toml", text(RATIO).replace("[[claim]]", more).as_bytes()).unwrap().experiment;
    let changes = |quick| sensitivity::changes(&e, quick).unwrap().len();
    assert_eq!((changes(false), changes(true)), (2, 0));
}

/// A change of `--sensitivity` that reproduces a claim decides it, unless the claim holds without the change,
/// as it may in the shorter version.
#[test]
fn a_table_decides_a_claim_that_fails_in_it() {
    let decision = |as_chosen| {
        let mut result = unmeasured(&experiment(RATIO)).experiments.remove(0);
        let found = |verdict| vec![ChangedClaim { claim: "e.c".into(), means: vec![Some(2.0)], verdict }];
        let change =
            ChangeResult { change: "a=1".into(), flips: Vec::new(), claims: found(Verdict::Reproduced) };
        result.sensitivity = Some(vec![change]);
        result.as_chosen = Some(AsChosen { quick: true, claims: found(as_chosen) });
        result.decision(&result.claims[0])
    };
    assert_eq!(decision(Verdict::Contradicted), Decision::Found);
    assert_eq!(decision(Verdict::Reproduced), Decision::NotTried);
}

/// A table of the shorter version does not depend on the number of seeds, one of the full version does.
#[test]
fn a_table_stays_while_its_runs_give_the_same() {
    let with = |seeds: &[u64], values: &[f64], quick| {
        let mut result = unmeasured(&experiment(RATIO)).experiments.remove(0);
        result.seeds = seeds.to_vec();
        result.claims[0].measures[0].values = values.iter().copied().map(Some).collect();
        result.claims[0].measures[0].mean = Some(values[0]);
        result.sensitivity = Some(Vec::new());
        result.as_chosen = Some(AsChosen { quick, claims: Vec::new() });
        result
    };
    let kept = |quick, seeds: &[u64], values: &[f64]| {
        let mut now = with(seeds, values, quick);
        (now.sensitivity, now.as_chosen) = (None, None);
        now.keep_table(&with(&[1, 2], &[2.0, 3.0], quick));
        now.sensitivity.is_some()
    };
    for quick in [true, false] {
        assert!(kept(quick, &[1, 2], &[2.0, 3.0]));
        assert_eq!(kept(quick, &[1, 2, 3], &[2.0, 3.0, 4.0]), quick);
        assert_eq!(kept(quick, &[1], &[2.0]), quick);
        assert!(!kept(quick, &[1, 2, 3], &[2.0, 3.5, 4.0]));
        assert!(!kept(quick, &[3, 2, 1], &[2.0, 3.0, 4.0]));
    }
}

/// A choice without an alternative is refused. Pages list points that have no other value.
#[test]
fn what_has_no_other_value_is_no_choice() {
    let moon = |table: &str| {
        let made = format!("[[{table}]]\nwhat = \"the moon\"\nreason = \"r\"\n\n[[claim]]");
        read::read("e.toml", text(RATIO).replace("[[claim]]", &made).as_bytes())
    };
    let refused = moon("chosen").unwrap_err();
    assert!(refused.message().contains("the choice has no alternative"), "{}", refused.message());
    let mut results = unmeasured(&moon("fixed").unwrap().experiment);
    results.experiments[0].sensitivity = Some(Vec::new());
    let page = &page::render(&results)[0].text;
    assert!(page.contains("Points that have no other value:\n\n- `the moon`: r\n"), "{page}");
    assert!(page.contains("No alternative was tried."), "{page}");
}

/// Keys that are set instead of a choice in words come after those of the run, in the runs of the choice.
#[test]
fn other_keys_take_the_place_of_a_choice_in_words() {
    let chosen = "[[chosen]]\nwhat = \"the moon\"\nreason = \"r\"\nruns = [\"theirs\"]\n\
                  instead = [{ choice = \"the sun\", set = { \"transport.mtu\" = \"2kB\" } }]\n\n[[claim]]";
    let quick = "[quick]\nset = { \"transport.mtu\" = \"4kB\" }\n\n";
    let run = "name = \"theirs\"\nset = { \"transport.mtu\" = \"1kB\" }";
    let made =
        text(RATIO).replace("name = \"theirs\"", run).replace("[[claim]]", &format!("{quick}{chosen}"));
    let e = read::read("e.toml", made.as_bytes()).unwrap().experiment;
    assert!(sensitivity::changes(&e, true).unwrap().is_empty());
    let changes = sensitivity::changes(&e, false).unwrap();
    assert_eq!(e.grid(false, &changes).axes[0].values, ["the sun"]);
    let set = |run, change| {
        let all = e.overrides(run, false, change).into_iter();
        all.map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>()
    };
    let own = "transport.mtu=\"1kB\"";
    assert_eq!(set(1, Some(&changes[0])), [own, "transport.mtu=\"2kB\""]);
    assert_eq!(set(1, None), [own]);
    assert!(set(0, Some(&changes[0])).is_empty());
}

/// A choice in words, and what is done instead of it.
fn instead(of: &str, claim: &str) -> String {
    let chosen = format!(
        "[[chosen]]\nwhat = \"the moon\"\nreason = \"r\"\ninstead = [{{ choice = \"the sun\", {of} }}]\n\n[[claim]]"
    );
    text(claim).replace("[[claim]]", &chosen)
}

/// Other readings of a choice need no run: they are judged by the same runs.
#[test]
fn another_reading_of_a_choice_is_judged_by_the_same_runs() {
    let at = RATIO.replace("metric = \"fct\" }", "metric = \"fct\", at = { \"traffic.0.load\" = 0.4 } }");
    let with = |of: &str, quick| {
        let made = instead(of, &at).replace(
            "[[claim]]",
            "[quick]\nseeds = [1]\nvary = [{ key = \"traffic.0.load\", values = [0.4] }]\n\n[[claim]]",
        );
        let e = read::read("e.toml", made.as_bytes()).unwrap().experiment;
        assert!(sensitivity::changes(&e, quick).unwrap().is_empty());
        // Ours 30 and 31, and 20 and 20, theirs 10: at loads of 0.4 and 0.8, two seeds each.
        let fct: &[f64] =
            if quick { &[30.0, 10.0] } else { &[30.0, 31.0, 20.0, 20.0, 10.0, 10.0, 10.0, 10.0] };
        let value = |value| Value { value: Some(value), ..Value::default() };
        let measured: Vec<_> = fct.iter().map(|&v| Some(vec![value(v), value(0.0)])).collect();
        let grid = e.grid(quick, &[]);
        let claims = evaluate::claims(&e, quick, &grid, &measured, 0);
        let table = sensitivity::readings(&e, quick, &grid, &measured, &claims);
        table
            .into_iter()
            .map(|c| (c.change, c.claims[0].means[0].unwrap(), c.flips.len()))
            .collect::<Vec<_>>()
    };
    let sun = |mean, flips| vec![("the sun".to_string(), mean, flips)];
    assert_eq!(with("at = { \"traffic.0.load\" = 0.8 }", false), sun(2.0, 1));
    assert_eq!(with("runs = { ours = \"theirs\" }", false), sun(1.0, 1));
    assert_eq!(with("seeds = [1]", false), sun(3.0, 0));
    let vary = "vary = [{ key = \"traffic.0.load\", values = [0.4] }]";
    assert_eq!(with(&format!("{vary}, seeds = [2]"), false), sun(3.1, 0));
    // The shorter version lacks the point and the seed, and has the run.
    assert_eq!(with("at = { \"traffic.0.load\" = 0.8 }", true), []);
    assert_eq!(with("seeds = [2]", true), []);
    assert_eq!(with("runs = { ours = \"theirs\" }", true), sun(1.0, 1));
}

#[test]
fn what_is_done_instead_of_a_choice_exists_and_changes_something() {
    let refused = |of: &str| {
        let made = instead(of, RATIO);
        read::read("e.toml", made.as_bytes()).unwrap_err().message().to_string()
    };
    let set = "set = { \"transport.mtu\" = \"2kB\" }";
    for (of, message) in [
        ("set = {}", "changes nothing"),
        (&format!("{set}, seeds = [1]"), "`set` excludes the other keys"),
        ("set = { \"traffic.0.load\" = 0.5 }", "also varied"),
        ("runs = { ours = \"their\" }", "unknown run `their`"),
        ("runs = { others = \"ours\" }", "no claim measures the run `others`"),
        ("metrics = { fct = \"drops\" }", "different units"),
        ("metrics = { drops = \"fct\" }", "no claim measures `drops`"),
        ("at = { \"traffic.0.load\" = 0.4 }", "no claim has a value of `traffic.0.load` in `at`"),
        ("vary = [{ key = \"load\", values = [0.4] }]", "`load` is not varied"),
        ("vary = [{ key = \"traffic.0.load\", values = [0.5] }]", "does not have the value 0.5"),
        ("vary = [{ key = \"traffic.0.load\", values = [] }]", "`traffic.0.load` has no value"),
        ("seeds = [1, 2]", "changes nothing"),
        ("seeds = [3]", "3 is no seed of the experiment"),
        ("seeds = [1, 1]", "seed 1 is given twice"),
        (&format!("{set} }}, {{ choice = \"the sun\", {set}"), "the choice is given twice"),
        (&format!("{set} }}, {{ choice = \"\", {set}"), "not one line"),
    ] {
        let found = refused(of);
        assert!(found.contains(message), "{of}: {found}");
    }
    let keyed = instead(set, RATIO).replace("what = \"the moon\"", "key = \"run.drain\"\nvalue = \"1ms\"");
    let found = read::read("e.toml", keyed.as_bytes()).unwrap_err();
    assert!(found.message().contains("only for a choice in words"), "{}", found.message());
}
