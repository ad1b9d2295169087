//! An experiment of two runs, and its results without a run.

use xoff_repro::evaluate;
use xoff_repro::experiment::{Experiment, Unequal};
use xoff_repro::read;
use xoff_repro::report::{self, ExperimentResult, FORMAT, FORMAT_VERSION, Results};

pub const RATIO: &str = "relation = \"ratio\"\nlow = 2\nhigh = 2\nmeasure = [{ run = \"ours\", against = \"theirs\", metric = \"fct\" }]";

/// An experiment of two runs and one varied key with the given claim.
pub fn text(claim: &str) -> String {
    format!(
        r#"paper = "p"
id = "e"
title = "t"
section = "1"
kind = "simulation"
seeds = [1, 2]

[scenario.topology]
kind = "line"

[[run]]
name = "ours"

[[run]]
name = "theirs"

[[vary]]
key = "traffic.0.load"
values = [0.4, 0.8]

[[metric]]
name = "fct"
of = "fct"
statistic = "mean"

[[metric]]
name = "drops"
of = "lossless-drops"

[[claim]]
id = "e.c"
statement = "s"
subject = "ours"
against = "theirs"
metric = "fct"
{claim}
"#
    )
}

pub fn experiment(claim: &str) -> Experiment {
    read::read("e.toml", text(claim).as_bytes()).unwrap().experiment
}

/// Results of this experiment without a run.
pub fn unmeasured(e: &Experiment) -> Results {
    let result = ExperimentResult {
        paper: e.paper.clone(),
        id: e.id.clone(),
        title: String::new(),
        section: String::new(),
        kind: e.kind,
        note: String::new(),
        runs_of: None,
        unequal: Unequal::default(),
        runs: 0,
        done: 0,
        lost: 0,
        failed: Vec::new(),
        seconds: None,
        seeds: Vec::new(),
        chosen: report::chosen(e),
        fixed: e.fixed.clone(),
        claims: evaluate::claims(e, false, &e.grid(false, &[]), &vec![None; 8], 0),
        plots: Vec::new(),
        values: Default::default(),
        sensitivity: None,
        as_chosen: None,
        commands: Vec::new(),
    };
    Results {
        format: FORMAT.into(),
        format_version: FORMAT_VERSION,
        xoff_version: "0".into(),
        quick: false,
        complete: true,
        experiments: vec![result],
        others: Vec::new(),
        papers: Vec::new(),
        counts: Vec::new(),
    }
    .counted()
}
