//! The small experiments of the papers, in their shorter versions: verdicts as
//! they are known. A verdict that changes on purpose is changed here, with the
//! note in the experiment's file.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

/// Runs `xoff repro WHAT --quick`. Returns verdicts by claim, and the measured means of each.
fn repro(what: &str) -> BTreeMap<String, (String, Vec<f64>)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let out = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("repro-{}", what.replace('/', "-")));
    if out.exists() {
        fs::remove_dir_all(&out).unwrap();
    }
    let answer = Command::new(env!("CARGO_BIN_EXE_xoff"))
        .args(["repro", what, "--quick", "--quiet", "--json", "--jobs", "2", "--out"])
        .arg(&out)
        .current_dir(&root)
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&answer.stderr);
    assert!(answer.status.success(), "{what}: {errors}");
    let results: Value = serde_json::from_slice(&answer.stdout).unwrap();
    assert_eq!((&results["quick"], &results["complete"]), (&Value::Bool(true), &Value::Bool(true)), "{what}");
    let mut claims = BTreeMap::new();
    for experiment in results["experiments"].as_array().unwrap() {
        assert_eq!(
            (experiment["lost"].as_u64(), experiment["done"].as_u64()),
            (Some(0), experiment["runs"].as_u64())
        );
        for claim in experiment["claims"].as_array().unwrap() {
            let measures = claim["measures"].as_array().unwrap();
            let means = measures.iter().map(|m| m["mean"].as_f64().unwrap()).collect();
            let verdict = claim["verdict"].as_str().unwrap().to_string();
            claims.insert(claim["id"].as_str().unwrap().to_string(), (verdict, means));
        }
    }
    claims
}

fn verdicts(claims: &BTreeMap<String, (String, Vec<f64>)>) -> Vec<(&str, &str)> {
    claims.iter().map(|(id, (verdict, _))| (id.as_str(), verdict.as_str())).collect()
}

/// `xoff repro CLAIM` in the repository: what it prints.
fn claim(what: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let out = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("claim-{}", what.replace('/', "-")));
    let _ = fs::remove_dir_all(&out);
    let mut command = Command::new(env!("CARGO_BIN_EXE_xoff"));
    let answer =
        command.args(["repro", what, "--quiet", "--out"]).arg(&out).current_dir(&root).output().unwrap();
    let text = String::from_utf8(answer.stdout).unwrap();
    if answer.status.success() { text } else { String::from_utf8(answer.stderr).unwrap() }
}

#[test]
fn one_claim_has_its_runs_and_the_command_of_each() {
    let text = claim("pyrrha/fig13.pfc");
    assert!(text.starts_with("pyrrha/fig13.pfc: reproduced\n  The paper (§ VII: "), "{text}");
    // One run of four: the others are about other claims.
    let commands: Vec<&str> = text.lines().filter_map(|l| l.trim().strip_prefix("xoff run ")).collect();
    let [command] = commands[..] else { panic!("{text}") };
    let results = Path::new(env!("CARGO_TARGET_TMPDIR")).join("claim-pyrrha-fig13.pfc/results.json");
    let results: Value = serde_json::from_slice(&fs::read(results).unwrap()).unwrap();
    let listed = json!([{ "run": "run=pfc", "command": format!("xoff run {command}") }]);
    assert_eq!(results["experiments"][0]["commands"], listed);
    // By itself it is the same run: a deadlock.
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join("claim-commands");
    let _ = fs::remove_dir_all(&dir);
    fs::create_dir_all(&dir).unwrap();
    for name in ["experiments", "examples"] {
        std::os::unix::fs::symlink(root.join(name), dir.join(name)).unwrap();
    }
    let run = |command: &str| -> Value {
        let shell = format!("\"$XOFF\" run {command} --quiet --json");
        let mut run = Command::new("sh");
        let run = run.args(["-c", &shell]).env("XOFF", env!("CARGO_BIN_EXE_xoff")).current_dir(&dir);
        let run = run.output().unwrap();
        assert!(run.status.success(), "{command}: {}", String::from_utf8_lossy(&run.stderr));
        serde_json::from_slice(&run.stdout).unwrap()
    };
    assert!(run(command)["deadlock"].is_object(), "{text}");
    // Several commands write to directories of their own, each named as its run.
    let text = claim("bifrost/fig7.buffer");
    let commands: Vec<&str> = text.lines().filter_map(|l| l.trim().strip_prefix("xoff run ")).collect();
    assert_eq!(commands.len(), 2, "{text}");
    commands.iter().for_each(|command| drop(run(command)));
    let names: Vec<&str> =
        commands.iter().filter_map(|command| command.rsplit_once('=')).map(|c| c.1).collect();
    assert_eq!(names, ["bifrost", "pfc-deep"], "{text}");
    // Of a varied key only the value that it needs.
    let text = claim("bifrost/fig2.xon");
    assert_eq!(text.matches("xoff run ").count(), 1, "{text}");
    assert!(text.contains("'flow_control.long.xoff=\"20kB\"'"), "{text}");
}

#[test]
fn claims_without_runs_have_their_reason() {
    let text = claim("bifrost/ib-range.bifrost");
    assert!(text.starts_with("bifrost/ib-range.bifrost: by analysis\n"), "{text}");
    assert!(text.contains("No run measures it: a frame describes one slot"), "{text}");
    assert!(claim("pyrrha/memory.units").contains("it is about hardware"));
    let wrong = claim("pyrrha/fig13.pcf");
    assert!(
        wrong.contains("unknown claim `fig13.pcf` of pyrrha") && wrong.contains("did you mean `fig13.pfc`?"),
        "{wrong}"
    );
    assert!(!wrong.contains("fig12"), "{wrong}");
}

#[test]
fn a_routing_loop_deadlocks_under_pfc_and_bfc_and_not_under_pyrrha() {
    let claims = repro("pyrrha/fig12");
    let expected = [
        ("fig12.bfc", "reproduced"),
        ("fig12.loss", "reproduced"),
        ("fig12.own-ignores", "reproduced"),
        ("fig12.pfc", "reproduced"),
        ("fig12.pyrrha", "reproduced"),
    ];
    assert_eq!(verdicts(&claims), expected);
    // Not by an empty measurement: pauses that name their own port come, and are ignored.
    assert!(claims["fig12.own-ignores"].1[0] >= 100.0 && claims["fig12.pyrrha"].1 == [0.0]);
}

#[test]
fn three_flows_in_a_ring_deadlock_but_in_distinct_queues() {
    let claims = repro("pyrrha/fig13");
    let expected = [
        ("fig13.bfc-collision", "reproduced"),
        ("fig13.bfc-isolated", "reproduced"),
        ("fig13.end-state", "reproduced"),
        ("fig13.pfc", "reproduced"),
        ("fig13.pyrrha", "reproduced"),
    ];
    assert_eq!(verdicts(&claims), expected);
    // Not by an empty measurement: one deadlock each, and none.
    assert_eq!(claims["fig13.pfc"].1, [1.0]);
    assert_eq!(claims["fig13.bfc-isolated"].1, [0.0]);
}

#[test]
fn the_testbed_s_flows_share_by_thirds_under_pyrrha() {
    let claims = repro("pyrrha/fig10");
    assert_eq!(claims["fig10.vulnerable"].0, "reproduced");
    assert_eq!(claims["fig10.incast"].0, "reproduced");
    // Two packets more in the thresholds, and the receiver's link is never idle.
    assert_eq!(claims["fig10.own-packets"].0, "reproduced");
    // Within 0.5% where the thresholds are long, under both organisations.
    assert_eq!(claims["fig10.own-split"].0, "reproduced");
    assert_eq!(claims["fig10.own-split"].1.len(), 2);
    assert_eq!(claims["fig10.own-no-victims"].0, "reproduced");
}

#[test]
fn an_incast_leaves_the_bytes_of_pyrrha_s_paper_at_the_receiver() {
    let claims = repro("pyrrha/design-properties");
    for id in ["incast-buffer", "in-order", "oq-free", "own-merges", "own-pauses"] {
        assert_eq!(claims[&format!("design-properties.{id}")].0, "reproduced", "{id}");
    }
    // A tree over two tiers ends with one root; false roots end within one path delay.
    for id in ["merge-time", "own-merged", "most-downstream", "own-false-roots", "own-levels"] {
        assert_eq!(claims[&format!("design-properties.{id}")].0, "reproduced", "{id}");
    }
    assert_eq!(claims["design-properties.most-downstream"].1, [1.0, 1.0]);
}

#[test]
fn pyrrha_s_pauses_close_no_cycle_in_a_torus() {
    let claims = repro("pyrrha/deadlock-general");
    assert_eq!(claims["deadlock-general.chain"], ("reproduced".to_string(), vec![0.0, 0.0]));
    assert_eq!(claims["deadlock-general.own-all-arrive"].0, "reproduced");
}

#[test]
fn pfc_pauses_between_its_thresholds_and_loses_nothing() {
    let claims = repro("portfc/fig3");
    assert_eq!(verdicts(&claims), [("fig3.own-no-overflow", "reproduced"), ("fig3.own-pause", "reproduced")]);
}

#[test]
fn a_pause_in_bcube_stops_a_flow_without_a_part_in_the_congestion() {
    let claims = repro("portfc/fig4");
    let expected = [
        ("fig4.pfc-victim", "reproduced"),
        ("fig4.portfc-no-victim-pause", "contradicted"),
        ("fig4.portfc-victim", "contradicted"),
    ];
    assert_eq!(verdicts(&claims), expected);
    assert!(claims["fig4.pfc-victim"].1.iter().all(|&n| n >= 1.0));
}

#[test]
fn networks_have_the_hosts_and_switches_of_the_paper() {
    let claims = repro("portfc/struct");
    assert!(claims.values().all(|(verdict, _)| verdict == "reproduced"));
    assert_eq!(claims["struct.counts"].1, [16.0, 8.0, 64.0, 16.0, 4.0, 4.0]);
}

#[test]
fn pauses_of_portfc_reach_three_links_and_the_queues_that_the_equations_name() {
    let claims = repro("portfc/deadlock-proof");
    let but = ["deadlock-proof.own-pfcstar-farther"];
    for (id, (verdict, _)) in &claims {
        assert_eq!(verdict, if but.contains(&id.as_str()) { "contradicted" } else { "reproduced" }, "{id}");
    }
    // Three links are reached, and not passed; PFC's pauses go farther.
    assert_eq!(claims["deadlock-proof.three-hops"].1, [3.0, 3.0]);
    assert_eq!(claims["deadlock-proof.one-hop"].1, [1.0]);
    assert!(claims["deadlock-proof.own-pfc-farther"].1[0] > 3.0);
}

#[test]
fn two_flows_deadlock_bcube_where_hosts_forward_pauses_blindly() {
    let claims = repro("portfc/fig5");
    let expected = [
        ("fig5.bfc", "reproduced"),
        ("fig5.own-four-flows", "contradicted"),
        ("fig5.pfc-deadlocks", "reproduced"),
        ("fig5.pfc-zero", "reproduced"),
        ("fig5.portfc-none", "reproduced"),
    ];
    assert_eq!(verdicts(&claims), expected);
    assert_eq!(claims["fig5.pfc-zero"].1, [0.0], "no byte was delivered in the last millisecond");
}

#[test]
fn sources_that_choose_their_first_hop_come_to_rest_at_the_threshold() {
    let claims = repro("portfc/ate");
    assert!(claims.values().all(|(verdict, _)| verdict == "reproduced"), "{:?}", verdicts(&claims));
    assert_eq!(claims.len(), 10);
    // Not by an empty measurement: the weight moves where there is traffic.
    assert!(claims["ate.own-weight-moves"].1[0] > 0.1);
}

/// SONiC's test plans of LLR: all cases hold but two, whose numbers no link of this rate can reach.
#[test]
fn llr_meets_its_test_plans() {
    let claims = repro("ultra-ethernet/llr");
    let contradicted: Vec<&str> =
        verdicts(&claims).into_iter().filter(|(_, v)| *v == "contradicted").map(|(id, _)| id).collect();
    assert_eq!(contradicted, ["llr.llr05-large", "llr.tc11-throughput"]);
    assert_eq!(claims["llr.llr05-frames"].1, [3000.0]);
    assert_eq!(claims["llr.llr07-duplicates"].1, [30.0; 4]);
}

/// The rates that csg-htsim prints of NDP's Figure 21.
#[test]
fn ndp_shares_two_links() {
    let claims = repro("ndp/fig21");
    assert_eq!(claims.len(), 6);
    assert!(verdicts(&claims).iter().all(|(_, v)| *v == "reproduced"), "{claims:?}");
}
