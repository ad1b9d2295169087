//! Queues against queueing theory.

use crate::common;

use common::{fcts, plan, run};

/// Single-packet flows, Poisson, one sender at 400 Gbit/s into a 100 Gbit/s link. With deterministic service
/// and the faster server first, the waits of both queues add up to that of the slow queue without the other
/// on every sample path: an M/D/1 queue. Lindley's recursion gives their sum to the picosecond, and the theory
/// their mean, ρ·s / (2(1 − ρ)), with a relative standard error of about sqrt(2 / (ρ (1 − ρ)² n)) for n waits.
#[test]
fn m_d_1_waiting_times() {
    for (rho, seeds) in [(0.3f64, 1..=5u64), (0.6, 1..=8), (0.9, 1..=8)] {
        let service = 84_960;
        let (mut waits, mut flows) = (0, 0);
        for seed in seeds {
            let plan = plan(&format!(
                "[topology]\nkind = \"custom\"\nhosts = [\"A\", \"B\"]\nswitches = [\"X\"]\n\
                 links = [{{a=\"A\", b=\"X\", rate=\"400Gbps\", delay=\"1us\"}}, {{a=\"X\", b=\"B\", rate=\"100Gbps\", delay=\"1us\"}}]\n\
                 [transport]\nmtu = \"1000B\"\nheader = \"62B\"\n\
                 [[traffic]]\nkind = \"poisson\"\nfrom = [\"A\"]\nto = [\"B\"]\nsizes = \"1000B\"\nload = {rho}\n\
                 [run]\nduration = \"{}ps\"\ndrain = \"1ms\"\nseed = {seed}\n",
                (250_000.0 * service as f64 / rho) as u64
            ));
            let outcome = run(&plan);
            let measured: u64 =
                fcts(&plan, &outcome).iter().zip(&plan.flows).map(|(fct, f)| fct - f.ideal).sum();
            let (mut free, mut lindley) = (0, 0);
            for f in &plan.flows {
                let begins = f.start.max(free);
                lindley += begins - f.start;
                free = begins + service;
            }
            assert_eq!(measured, lindley, "load {rho}, seed {seed}");
            waits += measured;
            flows += plan.flows.len();
        }
        let mean = waits as f64 / flows as f64;
        let expected = rho * service as f64 / (2.0 * (1.0 - rho));
        let error = (2.0 / (rho * (1.0 - rho) * (1.0 - rho) * flows as f64)).sqrt();
        println!(
            "load {rho}: {flows} flows, mean wait {:.1} ns, theory {:.1} ns",
            mean / 1e3,
            expected / 1e3
        );
        assert!(
            (mean / expected - 1.0).abs() < 3.0 * error,
            "load {rho}: {mean} for {expected} of the theory"
        );
    }
}

/// Flows of several hosts, or of one host, share a link equally.
#[test]
fn equal_flows_share_a_link() {
    for (left, per_host, scheme) in [(4, 1, "pfc"), (2, 3, "pfc"), (1, 8, "none"), (8, 1, "pfc")] {
        let mut text = format!(
            "[topology]\nkind = \"dumbbell\"\nleft = {left}\nright = {left}\n\
             link = {{rate=\"100Gbps\", delay=\"1us\"}}\nbottleneck = {{rate=\"100Gbps\", delay=\"1us\"}}\n\
             [flow_control]\nscheme = \"{scheme}\"\n[run]\nduration = \"5ms\"\n"
        );
        for host in 0..left {
            for _ in 0..per_host {
                text += &format!(
                    "[[traffic]]\nkind = \"flow\"\nsrc = \"H{host}\"\ndst = \"H{}\"\nsize = \"1GB\"\n",
                    left + host
                );
            }
        }
        let plan = plan(&text);
        let outcome = run(&plan);
        let bytes: Vec<f64> = outcome.flows.iter().map(|f| f.delivered_bytes as f64).collect();
        let mean = bytes.iter().sum::<f64>() / bytes.len() as f64;
        for share in &bytes {
            assert!((share / mean - 1.0).abs() < 0.01, "{scheme}, {left} hosts, {per_host} each: {bytes:?}");
        }
        // Together they fill it: payload over wire bytes, less the first microseconds.
        let full = 100e9 / 8.0 * 5e-3 * 1000.0 / 1062.0;
        let total = bytes.iter().sum::<f64>();
        assert!(total > 0.99 * full && total <= full, "{total} of {full}");
    }
}
