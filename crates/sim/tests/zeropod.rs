//! Pods without buffers.

mod common;

use xoff_plan::plan::{Collision, Plan, Zeropod};
use xoff_schemes::scheduling::zeropod::slots::Slots;
use xoff_schemes::scheduling::zeropod::{Params, Pod};

fn pod(text: &str, racks: u16, per: u16, aggs: u16) -> Plan {
    let mut plan = common::plan(text);
    plan.zeropod = Some(Zeropod {
        pod: Pod { racks, hosts_per_rack: per, aggs, cores: 0, pods: 1 },
        scheduler: Params { cells: 16, payload: 512, iterations: 6, requests: 1, mice_cores: 0 },
        slots: Slots { cells: 16, data: 44_160, control: 3_200, guard: 0, hop: 1_000_000 },
        header: 40,
        control: 40,
        delay: 15_000_000,
        top_k: 16,
        levels: vec![100_000, 1_108_140, 1_652_720, 2_125_760],
        optimistic: 5,
        scheduled: true,
        collision: Collision::Later,
        core_buffer: 32_000_000,
        backpressure: 320,
        clocks: vec![0],
        clock_errors: vec![0; 256],
        acks: None,
        retry: 1_000_000_000,
        scheduler_failures: Vec::new(),
        scheduler_links: Vec::new(),
    });
    plan
}

#[test]
fn it_runs() {
    for load in [0.1, 0.5, 0.8, 1.0] {
        let text = format!(
            "[topology]\nkind = \"leaf-spine\"\nleaves = 16\nspines = 16\nhosts_per_leaf = 16\nhost_link = {{ rate = \"100Gbps\", delay = \"1us\" }}\nfabric_link = {{ rate = \"100Gbps\", delay = \"1us\" }}\n[[traffic]]\nkind = \"poisson\"\nsizes = \"websearch\"\nload = {load}\n[run]\nduration = \"10ms\"\ndrain = \"5ms\"\n[measure]\ninterval=\"500us\"\n"
        );
        let plan = pod(&text, 16, 16, 16);
        let began = std::time::Instant::now();
        let outcome = xoff_sim::run(&plan, &mut |_| true);
        let took = began.elapsed().as_secs_f64();
        let done = outcome.flows.iter().filter(|f| f.completed.is_some()).count();
        let mut mice: Vec<u64> = plan
            .flows
            .iter()
            .zip(&outcome.flows)
            .filter(|(f, _)| f.size <= 100_000)
            .filter_map(|(_, o)| Some(o.completed? - o.started?))
            .collect();
        mice.sort_unstable();
        let z = outcome.zeropod.clone().unwrap();
        let bytes: u64 = outcome.flows.iter().map(|f| f.delivered_bytes).sum();
        eprintln!(
            "load {load}: {} flows, {done} done, mice p50 {:.1} p99 {:.1} us, {took:.2} s, {:.1} M cell-hops/s, {z:?} {:?} {bytes}",
            plan.flows.len(),
            mice[mice.len() / 2] as f64 / 1e6,
            mice[mice.len() * 99 / 100] as f64 / 1e6,
            outcome.counters.data_hops as f64 / took / 1e6,
            outcome.counters,
        );
    }
}
