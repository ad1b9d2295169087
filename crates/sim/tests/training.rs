//! Training steps: pipelines and collectives against closed forms, on one switch with links of 100 Gbit/s and 1 us.

use crate::common;
use crate::gates::check_gates;

use common::{plan, run};
use proptest::prelude::*;
use xoff_sim::outcome::{Outcome, Stop};

/// Picoseconds that a byte takes at 100 Gbit/s.
const BYTE: u64 = 80;
const DELAY: u64 = 1_000_000;
const US: u64 = 1_000_000;

fn star(hosts: usize, rest: &str) -> String {
    format!(
        "[topology]\nkind = \"line\"\nswitches = 1\nhosts_per_switch = {hosts}\n\
         link = {{ rate = \"100Gbps\", delay = \"1us\" }}\n[[traffic]]\nkind = \"training-step\"\n{rest}"
    )
}

/// When each step ended at its last host: what the outcome's deliveries and the computations after them say.
fn ends(plan: &xoff_plan::plan::Plan, outcome: &Outcome) -> Vec<u64> {
    let mut opened = vec![0; plan.gates.len()];
    let mut waits = xoff_plan::plan::Waits::new(&plan.gates);
    waits.begin(&plan.gates, &mut |gate, at| opened[gate as usize] = at);
    for (flow, result) in plan.flows.iter().zip(&outcome.flows) {
        if let Some(gate) = flow.opens {
            let at = result.delivered.expect("every flow is delivered");
            waits.count_down(&plan.gates, gate, at, &mut |gate, at| opened[gate as usize] = at);
        }
    }
    let latest = |gates: &Vec<u32>| gates.iter().map(|&g| opened[g as usize]).max().unwrap();
    plan.jobs[0].iterations.iter().map(latest).collect()
}

/// One micro-batch goes through all stages and back. No computation overlaps another.
#[test]
fn one_micro_batch_visits_the_stages_in_turn() {
    for stages in [2, 4, 8] {
        // An activation of one packet: 10 × 50 × 2 B.
        let plan = plan(&star(
            stages,
            &format!(
                "layers = 8\nhidden = 10\nsequence = 50\nmicro_batches = 1\nparameters = 8\npipeline = {stages}\n\
                 forward = \"100us\"\nbackward = \"250us\"\n"
            ),
        ));
        let outcome = run(&plan);
        assert_eq!(outcome.stop, Stop::AllDone);
        check_gates(&plan, &outcome);
        let hop = 2 * (DELAY + 1062 * BYTE);
        let stages = stages as u64;
        assert_eq!(plan.flows.len() as u64, 2 * (stages - 1));
        assert_eq!(ends(&plan, &outcome), [stages * 350 * US + 2 * (stages - 1) * hop]);
    }
}

/// 1F1B: m + p − 1 slots of a forward and a backward, if messages take no time (Narayanan et al., SC 2021, §2.2).
#[test]
fn a_pipeline_has_its_bubble() {
    for (stages, micro_batches) in [(2u64, 1u64), (2, 8), (4, 4), (4, 16), (8, 3)] {
        let plan = plan(&star(
            stages as usize,
            &format!(
                "layers = 8\nhidden = 10\nsequence = 50\nmicro_batches = {micro_batches}\nparameters = 8\n\
                 pipeline = {stages}\nforward = \"1ms\"\nsteps = 3\noptimizer = \"5ms\"\n"
            ),
        ));
        let outcome = run(&plan);
        check_gates(&plan, &outcome);
        let hop = 3 * US;
        let ends = ends(&plan, &outcome);
        let step = (micro_batches + stages - 1) * 3000 * US + 5000 * US;
        let late = 2 * (micro_batches + stages) * hop;
        // The first stage is the last one that ends a step, and the first of the next one.
        for (index, &end) in (1..).zip(&ends) {
            assert!((index * step..index * (step + late)).contains(&end), "{ends:?}");
        }
    }
}

/// Replicas compute at the same time, then reduce-scatter the gradients and all-gather the parameters: in each step
/// of the rings, a host sends and receives a chunk at line rate.
#[test]
fn gradients_take_the_time_of_their_rings() {
    for replicas in [2u64, 4, 8] {
        let parameters = 4_000_000;
        let plan = plan(&star(
            replicas as usize,
            &format!(
                "layers = 2\nhidden = 10\nsequence = 50\nmicro_batches = 4\nparameters = {parameters}\n\
                 forward = \"100us\"\n"
            ),
        ));
        let outcome = run(&plan);
        check_gates(&plan, &outcome);
        assert_eq!(plan.flows.len() as u64, 2 * replicas * (replicas - 1));
        let compute = 4 * 300 * US;
        let chunk = |element: u64| {
            let packets = (parameters * element / replicas).div_ceil(1000);
            (packets + 1) * 1062 * BYTE + 2 * DELAY
        };
        let rings = (replicas - 1) * (chunk(4) + chunk(2));
        let took = ends(&plan, &outcome)[0] - compute;
        // ACKs share the links: 66 B for each packet at most.
        assert!((rings..rings + rings / 15).contains(&took), "{replicas}: {took} against {rings}");
    }
}

/// A tensor group inside a server takes the time of a ring on its links, 2(n − 1)/n of the activations, in each half
/// of each layer and both ways, and sends nothing.
#[test]
fn tensor_groups_inside_a_server_send_nothing() {
    let plan = plan(&star(
        2,
        "layers = 3\nhidden = 1000\nsequence = 500\nmicro_batches = 2\nparameters = 800\ntensor = 8\n\
         scale_up = \"800Gbps\"\nforward = \"100us\"\n",
    ));
    // Only the two rings of the data groups, of two hosts each.
    assert_eq!(plan.flows.len(), 4);
    let outcome = run(&plan);
    check_gates(&plan, &outcome);
    let group = 1_000_000 * 8 * 10 / 8 * 14 / 8;
    let compute = 2 * (300 * US + 2 * 3 * 2 * group);
    let first = outcome.flows.iter().filter_map(|f| f.started).min();
    assert_eq!(first, Some(compute));
}

/// The hosts of each message, and how much is sent, of a model with all kinds of groups.
#[test]
fn groups_are_those_of_their_ranks() {
    let plan = plan(&star(
        16,
        "layers = 4\nhidden = 100\nsequence = 100\nmicro_batches = 3\nparameters = 8000\nexpert_parameters = 32000\n\
         tensor = 2\npipeline = 2\nexpert = 2\nexperts_per_token = 2\nforward = \"100us\"\nsteps = 2\n",
    ));
    let job = &plan.jobs[0];
    let (mut counts, mut bytes) = (std::collections::BTreeMap::new(), std::collections::BTreeMap::new());
    for operation in &job.operations {
        *counts.entry(job.names[operation.name].as_str()).or_insert(0) += 1;
        let flows = operation.flows.iter().map(|&f| &plan.flows[f as usize]);
        let sent: u64 = flows.clone().map(|f| f.size).sum();
        *bytes.entry(job.names[operation.name].as_str()).or_insert(0) += sent;
        for flow in flows {
            // Rank = (stage × 4 + replica) × 2 + tensor.
            let apart = flow.src ^ flow.dst;
            match job.names[operation.name].as_str() {
                "tensor all-reduce" => assert_eq!(apart, 1),
                "expert all-to-all" => assert_eq!(apart, 2),
                name if name.starts_with("expert data") => assert_eq!(apart, 4),
                _ => assert_eq!((flow.src & 1, flow.src & 8), (flow.dst & 1, flow.dst & 8)),
            }
        }
    }
    let steps = 2;
    // Two stages of two layers; in each layer of a micro-batch, two halves forward and two backward.
    let passes = steps * 3 * 2;
    assert_eq!(counts["tensor all-reduce"], 8 * passes * 2 * 2);
    assert_eq!(counts["expert all-to-all"], 8 * passes * 2 * 2);
    assert_eq!(counts["data reduce-scatter"], 4 * steps);
    assert_eq!(counts["expert data all-gather"], 8 * steps);
    // An all-reduce of two sends each buffer twice in all; an all-to-all half of each member's.
    let activations = 100 * 100 * 2;
    assert_eq!(bytes["tensor all-reduce"], counts["tensor all-reduce"] as u64 * 2 * activations);
    assert_eq!(bytes["expert all-to-all"], counts["expert all-to-all"] as u64 * (activations * 2 / 2));
    // A rank has 8000 / 2 / 2 parameters of 4 B; a ring of four sends them three times in all.
    assert_eq!(bytes["data reduce-scatter"], 4 * 2 * 3 * 2000 * 4);
    assert_eq!(bytes["expert data all-gather"], 8 * 2 * 32000 / 8 * 2);
    let outcome = run(&plan);
    assert_eq!(outcome.stop, Stop::AllDone);
    check_gates(&plan, &outcome);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Any mixture of groups ends, its gates open when they should, and two threads give the same result.
    #[test]
    fn every_training_step_ends(
        tensor in 1u32..3, pipeline in 1u32..4, experts in 1u32..3, blocks in 1u32..3, micro_batches in 1u32..5,
        steps in 1u32..3, hidden in 1u64..3000, parameters in 1u64..300_000, seed in 0u64..1000,
    ) {
        let hosts = tensor * pipeline * experts * blocks;
        prop_assume!(hosts > 1);
        let expert = if experts > 1 { format!("expert = {experts}\nexpert_parameters = {parameters}\n") } else { String::new() };
        let text = format!(
            "run.seed = {seed}\n[topology]\nkind = \"leaf-spine\"\nleaves = {hosts}\nspines = 2\nhosts_per_leaf = 1\n\
             host_link = {{ rate = \"100Gbps\", delay = \"1us\" }}\n\
             fabric_link = {{ rate = \"100Gbps\", delay = \"1us\" }}\n\
             [[traffic]]\nkind = \"training-step\"\nlayers = {}\nhidden = {hidden}\nsequence = 10\n\
             micro_batches = {micro_batches}\nparameters = {parameters}\ntensor = {tensor}\npipeline = {pipeline}\n\
             {expert}forward = \"3us\"\nsteps = {steps}\noptimizer = \"1us\"\n",
            pipeline * 2,
        );
        let plan = plan(&text);
        let outcome = run(&plan);
        prop_assert_eq!(outcome.stop, Stop::AllDone);
        check_gates(&plan, &outcome);
        let two = xoff_sim::run_on(&plan, 2, &mut |_| true);
        prop_assert!(two == outcome);
    }
}
