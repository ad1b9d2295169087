//! The sums of `xoff traffic`, against sums by hand.

use std::path::Path;
use xoff_plan::{Loaded, load};
use xoff_results::offered::{Offered, offered, render};

const LINE: &str = "[topology]\nkind = \"line\"\nswitches = 1\nhosts_per_switch = 4\n\
                    link = { rate = \"100Gbps\", delay = \"1us\" }\n";

fn loaded(rest: &str) -> Loaded {
    let files = |_: &Path| Err(std::io::Error::other("no files here"));
    load("test.toml", format!("{LINE}{rest}").as_bytes(), &[], &files)
        .unwrap_or_else(|e| panic!("{}", e.one_line()))
}

fn of(rest: &str) -> Offered {
    offered("test", &loaded(rest))
}

/// Data bytes (all classes), bytes of ACKs, time busy, of the port called `port`.
fn link(offered: &Offered, port: &str) -> (u64, u64, u64) {
    let link = offered.links.iter().find(|l| l.port == port).unwrap();
    (link.data_bytes.iter().sum(), link.ack_bytes, link.busy_ps)
}

#[test]
fn links_carry_what_their_flows_weigh() {
    // H0 to H1: 10 packets; H2 to H1: 2 packets, 1,500 B; H1 to H0: 1 packet of 1 B.
    let flow = |src: &str, dst: &str, size: &str| {
        format!("[[traffic]]\nkind = \"flow\"\nsrc = \"{src}\"\ndst = \"{dst}\"\nsize = \"{size}\"\n")
    };
    let text = [flow("H0", "H1", "10kB"), flow("H2", "H1", "1500B"), flow("H1", "H0", "1B")].concat();
    let offered = of(&format!("{text}[transport]\nack_every = 4\n[run]\nduration = \"10us\"\n"));
    // ACKs: 3 (of 10 packets by fours), 1 and 1, of 66 B.
    let bytes = 80;
    assert_eq!(link(&offered, "H0:0"), (10_620, 66, (10_620 + 66) * bytes));
    assert_eq!(link(&offered, "S0.0:1"), (10_620 + 1_624, 66, (12_244 + 66) * bytes));
    assert_eq!(link(&offered, "H1:0"), (63, 4 * 66, (63 + 264) * bytes));
    assert_eq!(link(&offered, "S0.0:0"), (63, 3 * 66, (63 + 198) * bytes));
    assert_eq!(link(&offered, "S0.0:2"), (0, 66, 66 * bytes));
    // Both directions of three links, the fullest first, by class.
    assert_eq!(offered.links.len(), 6);
    assert_eq!((offered.links[0].port.as_str(), offered.links[0].to.as_str()), ("S0.0:1", "H1"));
    assert_eq!(offered.links[0].data_bytes, [10_620, 1_624, 0]);
    assert_eq!(offered.links[0].utilisation, Some(12_310.0 * 80.0 / 10e6));
    assert!(offered.links.is_sorted_by(|a, b| a.busy_ps >= b.busy_ps));
    assert_eq!((offered.all.flows, offered.all.bytes, offered.all.wire_bytes), (3, 11_501, 12_307));
    assert_eq!(offered.all.load_bps, Some(12_307.0 * 8.0 / 10e-6));
    assert_eq!(offered.all.mean_size, Some(11_501.0 / 3.0));
    let sizes = offered.all.sizes.unwrap();
    assert_eq!((sizes.min, sizes.p25, sizes.p50, sizes.p90, sizes.max), (1, 1, 1_500, 10_000, 10_000));
}

#[test]
fn what_is_drawn_stands_beside_what_is_expected() {
    let offered = of(
        "[[traffic]]\nkind = \"poisson\"\nsizes = { uniform = [\"1B\", \"999B\"] }\nload = 0.5\nload_of = \"host-links\"\n\
         [run]\nduration = \"1ms\"\n",
    );
    let class = &offered.classes[0];
    // A packet each, of 562 B in the mean: 200 Gbit/s for 1 ms.
    let expected = 0.5 * 4e11 * 1e-3 / (8.0 * 562.0);
    assert!((class.expected_flows.unwrap() - expected).abs() < 1e-6 * expected);
    assert!((class.flows as f64 - expected).abs() < 4.0 * expected.sqrt(), "{}", class.flows);
    assert_eq!(class.expected_mean_size, Some(500.0));
    // The variance of a uniform size is (n² − 1)/12.
    let deviation = (999.0f64 * 999.0 / 12.0 / expected).sqrt();
    assert!((class.mean_size.unwrap() - 500.0).abs() < 4.0 * deviation);
    assert!((class.load_bps.unwrap() / 2e11 - 1.0).abs() < 0.03);
    let text = render(&offered);
    assert!(text.contains("(500 B)") && text.contains("In brackets"), "{text}");
}

#[test]
fn what_waits_is_counted_and_said() {
    let offered = of("[[traffic]]\nkind = \"ring-all-reduce\"\nsize = \"40kB\"\n");
    let class = &offered.classes[0];
    assert_eq!((class.flows, class.waiting_flows, class.gates, class.bytes), (24, 20, 20, 6 * 40_000));
    assert_eq!((offered.duration_ps, class.load_bps, offered.links[0].utilisation), (None, None, None));
    // Every host sends six chunks of ten packets, and as many ACKs.
    assert_eq!(link(&offered, "H3:0"), (60 * 1062, 60 * 66, 60 * 1128 * 80));
    let text = render(&offered);
    assert!(text.contains("20 of 24 flows start only after"), "{text}");
    assert!(text.contains("without run.duration"), "{text}");
}

#[test]
fn traffic_without_flows_has_no_sizes() {
    let offered =
        of("[[traffic]]\nkind = \"poisson\"\nsizes = \"100MB\"\nload = 0.001\n[run]\nduration = \"1ps\"\n");
    assert_eq!((offered.all.flows, offered.all.mean_size, offered.all.sizes), (0, None, None));
    assert!(render(&offered).contains("0 link directions in use"));
}

/// Two racks with a spine between them, and a failure.
fn racks(traffic: &str, failure: &str) -> Offered {
    let text = format!(
        "[topology]\nkind = \"leaf-spine\"\nleaves = 2\nspines = 1\nhosts_per_leaf = 2\n\
         host_link = {{ rate = \"100Gbps\", delay = \"1us\" }}\nfabric_link = {{ rate = \"100Gbps\", delay = \"1us\" }}\n\
         [run]\nduration = \"1ms\"\n[transport]\nrto = \"1ms\"\n[routing]\nreconvergence = \"5us\"\n{traffic}{failure}"
    );
    let files = |_: &Path| Err(std::io::Error::other("no files here"));
    offered(
        "test",
        &load("test.toml", text.as_bytes(), &[], &files).unwrap_or_else(|e| panic!("{}", e.one_line())),
    )
}

/// A flow that cannot be sent is on no link, neither as data nor as ACKs; a flow that begins after the
/// recovery is.
#[test]
fn flows_without_a_way_are_named_and_not_counted() {
    let flow = |src: &str, dst: &str, start: &str, more: &str| {
        format!(
            "[[traffic]]\nkind = \"flow\"\nsrc = \"{src}\"\ndst = \"{dst}\"\nsize = \"1kB\"\nstart = \"{start}\"\n{more}"
        )
    };
    // Cut off at first, within a rack, before and after routes follow the recovery.
    let traffic = [
        flow("H0", "H2", "0us", ""),
        flow("H0", "H1", "0us", ""),
        flow("H3", "H0", "54us", ""),
        flow("H3", "H0", "55us", ""),
    ]
    .concat();
    let cut = "[[failure]]\nlink = \"S0.0-S1.0\"\nat = \"0us\"\nuntil = \"50us\"\n";
    let offered = racks(&traffic, cut);
    let flows: Vec<(u32, bool)> = offered.unreachable.iter().map(|u| (u.flow, u.acks_only)).collect();
    assert_eq!(flows, [(0, false), (2, false)]);
    assert_eq!((offered.all.flows, offered.all.bytes), (4, 4_000), "they are offered all the same");
    assert_eq!(link(&offered, "H0:0").0, 1_062, "to H1 alone");
    assert_eq!(link(&offered, "H0:0").1, 66, "for the last flow alone");
    assert_eq!((link(&offered, "H3:0").0, link(&offered, "H3:0").1), (1_062, 0));
    assert!(offered.links.iter().all(|l| l.port != "H2:0"), "it gets nothing to answer");
    let text = render(&offered);
    assert!(text.contains("2 of 4 flows have no path"), "{text}");
    assert!(text.contains("flow 0: H0 -> H2 (flow-1) and 1 more"), "{text}");
    // Written routes stay as they are: over a link that stays down nothing comes.
    let written = "path = [\"H0\", \"S0.0\", \"S1.0\", \"S0.1\", \"H2\"]\n";
    let traffic = [flow("H0", "H2", "10us", written), flow("H0", "H1", "0us", "")].concat();
    let dead =
        |until: &str| racks(&traffic, &format!("[[failure]]\nlink = \"S0.0-S1.0\"\nat = \"5us\"\n{until}"));
    // Flows are in the order of their starts.
    let flows: Vec<u32> = dead("").unreachable.iter().map(|u| u.flow).collect();
    assert_eq!(flows, [1]);
    assert_eq!(dead("until = \"20us\"\n").unreachable, []);
}

/// Every size is a point of the distribution, and of many sizes a thousand are.
#[test]
fn the_distribution_of_sizes_is_given_by_points() {
    let flow =
        |size: u32| format!("[[traffic]]\nkind = \"flow\"\nsrc = \"H0\"\ndst = \"H1\"\nsize = \"{size}B\"\n");
    let offered = of(&[500, 7, 500, 9_000].map(flow).concat());
    let points: Vec<(u64, f64)> = offered.all.cdf.iter().map(|p| (p.size, p.share)).collect();
    assert_eq!(points, [(7, 0.25), (500, 0.75), (9_000, 1.0)]);
    // Sizes 1 B to 1 MB, far more than a thousand of them: against the flows themselves.
    let text = "[[traffic]]\nkind = \"poisson\"\nsizes = { uniform = [\"1B\", \"1MB\"] }\nload = 0.9\n\
                load_of = \"host-links\"\n[run]\nduration = \"60ms\"\n";
    let loaded = loaded(text);
    let sizes: Vec<u64> = loaded.plan.flows.iter().map(|f| f.size).collect();
    let offered = offered_of(&loaded);
    let cdf = &offered.classes[0].cdf;
    assert!(sizes.len() > 4_000 && (900..=1_000).contains(&cdf.len()), "{} {}", sizes.len(), cdf.len());
    assert!(cdf.is_sorted_by(|a, b| a.size < b.size && a.share < b.share));
    for point in cdf {
        let below = sizes.iter().filter(|&&s| s <= point.size).count();
        assert_eq!(point.share, below as f64 / sizes.len() as f64);
    }
    assert_eq!((cdf[cdf.len() - 1].size, cdf[cdf.len() - 1].share), (*sizes.iter().max().unwrap(), 1.0));
}

fn offered_of(loaded: &Loaded) -> Offered {
    offered("test", loaded)
}

/// Where a source chooses between two routes, a flow counts on both, by the rates of
/// their first links; ACKs count on the hash's.
#[test]
fn chosen_routes_share_by_the_rates_of_their_first_links() {
    let text = "[topology]\nkind = \"rail-only\"\nn = 2\ndomain_link = { rate = \"300Gbps\", delay = \"1us\" }\n\
                rail_link = { rate = \"100Gbps\", delay = \"1us\" }\n[routing.ate]\n\
                [[traffic]]\nkind = \"flow\"\nsrc = \"H0\"\ndst = \"H3\"\nsize = \"100kB\"\n\
                [[traffic]]\nkind = \"flow\"\nsrc = \"H0\"\ndst = \"H1\"\nsize = \"10kB\"\n";
    let files = |_: &Path| Err(std::io::Error::other("no files here"));
    let loaded =
        load("test.toml", text.as_bytes(), &[], &files).unwrap_or_else(|e| panic!("{}", e.one_line()));
    let offered = offered("test", &loaded);
    // 100 packets of 1,062 B: three quarters over S0.0, H1 and S1.1, a quarter over
    // S1.0, H2 and S0.1. The other flow is 10 packets.
    let data = |port: &str| offered.links.iter().find(|l| l.port == port).map(|l| l.data_bytes.iter().sum());
    let bytes: [(&str, u64); 7] = [
        ("H0:0", 79_650 + 10_620),
        ("S0.0:1", 79_650 + 10_620),
        ("H1:1", 79_650),
        ("S1.1:1", 79_650),
        ("H0:1", 26_550),
        ("H2:0", 26_550),
        ("S0.1:1", 26_550),
    ];
    for (port, bytes) in bytes {
        assert_eq!(data(port), Some(bytes), "{port}");
    }
    let acks: u64 = offered.links.iter().map(|l| l.ack_bytes).sum();
    assert_eq!(acks, 66 * (100 * 4 + 10 * 2));
    assert!(render(&offered).contains("routing.ate"));
}
