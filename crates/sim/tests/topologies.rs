//! Runs over rail-only, full mesh, torus and two datacenters.

use crate::common;

use common::{fcts, plan, run};

const LINK: &str = "{ rate = \"100Gbps\", delay = \"1us\" }";

#[test]
fn every_permutation_completes() {
    for (topology, routing) in [
        (
            format!(
                "kind = \"rail-only\"\nn = 4\ndomain_link = {{ rate = \"160Gbps\", delay = \"200ns\" }}\nrail_link = {LINK}"
            ),
            "bcube",
        ),
        (
            format!("kind = \"rail-only\"\nn = 4\ndomains = 6\ndomain_link = {LINK}\nrail_link = {LINK}"),
            "shortest-path",
        ),
        (format!("kind = \"full-mesh\"\nswitches = 6\nhosts_per_switch = 3\nlink = {LINK}"), "shortest-path"),
        (
            format!("kind = \"torus-2d\"\nwidth = 4\nheight = 5\nhosts_per_switch = 1\nlink = {LINK}"),
            "shortest-path",
        ),
        (
            format!("kind = \"torus-2d\"\nwidth = 4\nheight = 5\nhosts_per_switch = 1\nlink = {LINK}"),
            "dimension-order",
        ),
    ] {
        for hash in ["crc32", "xor", "toeplitz"] {
            let plan = plan(&format!(
                "[topology]\n{topology}\n[routing]\nkind = \"{routing}\"\nhash = \"{hash}\"\n\
                 [[traffic]]\nkind = \"permutation\"\nsize = \"30kB\"\n"
            ));
            assert!(fcts(&plan, &run(&plan)).len() >= 16);
        }
    }
}

#[test]
fn a_flow_between_datacenters_takes_the_computed_time() {
    let plan = plan(&format!(
        "[topology]\nkind = \"dci\"\nk = 4\nlink = {LINK}\nlong_link = {{ rate = \"400Gbps\", length = \"600km\" }}\n\
         [switch]\nbuffer = \"400MB\"\n[transport]\nrto = \"20ms\"\n\
         [[traffic]]\nkind = \"flow\"\nsrc = \"H3\"\ndst = \"H20\"\nsize = \"100kB\"\n"
    ));
    // Eight short links and the long one, in both directions. The first of 100 packets of 1,062 B crosses all
    // nine, the others follow at the rate of the short ones; an ACK of 66 B returns.
    let cables = 2 * (8 * 1_000_000 + 3_000_000_000);
    let data = 8 * 84_960 + 21_240 + 99 * 84_960;
    let ack = 8 * 5_280 + 1_320;
    assert_eq!(fcts(&plan, &run(&plan)), [cables + data + ack]);
}

/// If a failed link leaves no path in dimension order, packets go around it.
#[test]
fn dimension_order_avoids_a_failed_link() {
    let plan = plan(
        "[topology]\nkind = \"torus-2d\"\nwidth = 4\nheight = 4\nhosts_per_switch = 1\nlink = {rate=\"100Gbps\", delay=\"1us\"}\n\
         [routing]\nkind = \"dimension-order\"\n[[traffic]]\nkind = \"all-to-all\"\nsize = \"10kB\"\n\
         [[failure]]\nlink = \"S0.0-S0.1\"\nat = \"0us\"\n",
    );
    let outcome = run(&plan);
    assert_eq!(outcome.drops, []);
    assert!(outcome.flows.iter().all(|f| f.completed.is_some()));
}
