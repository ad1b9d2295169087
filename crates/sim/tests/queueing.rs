//! Queues against queueing theory.

use crate::common;

use common::{fcts, plan, run};

/// Single-packet flows, Poisson, one sender at 400 Gbit/s into a 100 Gbit/s link. With deterministic service
/// and the faster server first, the waits of both queues add up to that of the slow queue without the other
/// on every sample path: an M/D/1 queue, whose mean wait is ρ·s / (2(1 − ρ)).
///
/// The mean of n waits has a relative standard error of about
/// sqrt(2 / (ρ (1 − ρ)² n)); the runs are long enough that 1% is three of them.
#[test]
fn m_d_1_waiting_times() {
    for (rho, runs) in [(0.3f64, 5u64), (0.6, 8), (0.9, 80)] {
        let flows_per_run = 250_000.0;
        let service = 84_960.0;
        let samples = flows_per_run * runs as f64;
        assert!(3.0 * (2.0 / (rho * (1.0 - rho) * (1.0 - rho) * samples)).sqrt() < 0.011);
        let one = |seed: u64| {
            let plan = plan(&format!(
                "[topology]\nkind = \"custom\"\nhosts = [\"A\", \"B\"]\nswitches = [\"X\"]\n\
                 links = [{{a=\"A\", b=\"X\", rate=\"400Gbps\", delay=\"1us\"}}, {{a=\"X\", b=\"B\", rate=\"100Gbps\", delay=\"1us\"}}]\n\
                 [transport]\nmtu = \"1000B\"\nheader = \"62B\"\n\
                 [[traffic]]\nkind = \"poisson\"\nfrom = [\"A\"]\nto = [\"B\"]\nsizes = \"1000B\"\nload = {rho}\n\
                 [run]\nduration = \"{}ps\"\ndrain = \"1ms\"\nseed = {seed}\n",
                (flows_per_run * service / rho) as u64
            ));
            let outcome = run(&plan);
            let waits: u64 =
                fcts(&plan, &outcome).iter().zip(&plan.flows).map(|(fct, f)| fct - f.ideal).sum();
            (waits as f64, plan.flows.len() as f64)
        };
        // Two threads, each with its own seeds: sums do not depend on who is first.
        let (mut waits, mut flows) = (0.0, 0.0);
        std::thread::scope(|scope| {
            let half = |parity| {
                scope.spawn(move || (0..runs).filter(|s| s % 2 == parity).map(one).collect::<Vec<_>>())
            };
            for thread in [half(0), half(1)] {
                for (w, n) in thread.join().expect("no panic") {
                    waits += w;
                    flows += n;
                }
            }
        });
        let expected = rho * service / (2.0 * (1.0 - rho));
        let ratio = waits / flows / expected;
        println!(
            "load {rho}: {flows} flows, mean wait {:.1} ns, theory {:.1} ns",
            waits / flows / 1e3,
            expected / 1e3
        );
        assert!((ratio - 1.0).abs() < 0.01, "load {rho}: mean wait is {ratio} of the theory");
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
