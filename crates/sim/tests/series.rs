//! Series over time against the total bytes of ports.

use crate::common;

use common::{plan, run};
use xoff_sim::outcome::Quantity;

/// At intervals shorter than a packet's time on the wire no sample is above the rate of the port, and all
/// samples add up to its sent bytes.
#[test]
fn throughput_never_exceeds_the_rate_and_adds_up() {
    // 100 Gbit/s has a whole number of picoseconds per byte, 7 and 33 have none.
    for rate in ["100Gbps", "7Gbps", "33Gbps"] {
        for interval in ["1ns", "13ns", "100ns", "700ns", "5us"] {
            let text = format!(
                "[topology]\nkind = \"line\"\nswitches = 1\nhosts_per_switch = 2\n\
                 link = {{ rate = \"{rate}\", delay = \"100ns\" }}\n[transport]\nmtu = \"4000B\"\n\
                 [[traffic]]\nkind = \"flow\"\nsrc = \"H0\"\ndst = \"H1\"\nsize = \"20kB\"\n\
                 [measure]\ninterval = \"{interval}\"\nports = \"all\"\n"
            );
            let plan = plan(&text);
            let outcome = run(&plan);
            let (from, to) = (plan.topology.find("H0").unwrap(), plan.topology.find("H1").unwrap());
            let mut fastest = 0;
            for &port in &plan.measure.ports {
                let p = &plan.topology.ports[port as usize];
                let (mut last, mut sum) = (0u64, 0u128);
                for sample in outcome.series.iter().filter(|s| s.what == Quantity::Throughput(port)) {
                    assert!(sample.value <= p.rate, "{rate} {interval}: {} bit/s", sample.value);
                    fastest = fastest.max(sample.value);
                    sum += u128::from(sample.value) * u128::from(sample.at - last);
                    last = sample.at;
                }
                // Ports away from the sender are idle before the ACK arrives.
                if p.node == from || plan.topology.neighbour(port) == to {
                    let bytes = outcome.ports[port as usize].bytes;
                    let sum = (sum as f64) / 8e12;
                    assert!((sum - bytes as f64).abs() < 1.0, "{rate} {interval}: {sum} of {bytes}");
                }
            }
            if interval == "100ns" {
                let rate = plan.topology.ports[0].rate;
                assert!(fastest >= rate - 1, "a busy port is at its rate: {fastest} of {rate}");
            }
        }
    }
}
