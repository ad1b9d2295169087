//! Cases that other simulators have run: their results are here, and nothing is tuned to reach them. (R1 and
//! R2, one flow over one switch, are in `exact.rs`.)
//!
//! The peer is ns-3's RDMA stack. Known differences of model: it truncates each serialisation to whole
//! nanoseconds (84.16 ns to 84, 4.8 ns to 4), holds rates as whole bits per second, and its NIC serves queue
//! pairs by other rules (see [`r4_lies_within_the_spread_of_hash_seeds`]). It marks packets as they leave a
//! queue, and its ACKs say whether their data packet was marked; both are options here, and used.

use crate::common;

use common::{fcts, plan_with, run};
use std::path::Path;
use xoff_plan::plan::Plan;

/// Packets and PFC of the peer; headroom 2·rate·delay and two packets.
const PEER: &str = "[transport]\nmtu = \"1000B\"\nheader = \"52B\"\nack = \"60B\"\n\
    [flow_control]\nscheme = \"pfc\"\nalpha = 0.125\nreserve = \"4KiB\"\nxon_offset = \"3KiB\"\nheadroom = \"27104B\"\n";

/// DCQCN as the peer ran it.
const DCQCN: &str = "[dcqcn]\nincrease_timer = \"900us\"\nadditive_increase = \"50Mbps\"\n\
    hyper_increase = \"100Mbps\"\nminimum_rate = \"100Mbps\"\n\
    [ecn]\nk_min = \"400kB\"\nk_max = \"1600kB\"\np_max = 0.2\nper = \"100Gbps\"\nat = \"dequeue\"\n";

/// R3: eight hosts send 1 MB each to a ninth through one switch, at once.
/// Completion times in nanoseconds, sorted.
fn incast(buffer: &str, more: &str, overrides: &[(&str, &str)]) -> (Vec<f64>, usize) {
    let links: Vec<String> =
        (0..9).map(|i| format!("{{a=\"H{i}\", b=\"X\", rate=\"100Gbps\", delay=\"1us\"}}")).collect();
    let hosts: Vec<String> = (0..9).map(|i| format!("\"H{i}\"")).collect();
    let text = format!(
        "[topology]\nkind = \"custom\"\nhosts = [{}]\nswitches = [\"X\"]\nlinks = [{}]\n[switch]\nbuffer = \"{buffer}\"\n{PEER}{more}\
         [[traffic]]\nkind = \"incast\"\nfan_in = 8\nfrom = [{}]\nto = \"H8\"\nsize = \"1MB\"\n",
        hosts.join(", "),
        links.join(", "),
        hosts[..8].join(", ")
    );
    let plan = plan_with(&text, overrides);
    let outcome = run(&plan);
    let mut times: Vec<f64> = fcts(&plan, &outcome).iter().map(|&t| t as f64 / 1e3).collect();
    times.sort_by(f64::total_cmp);
    (times, outcome.pauses.len())
}

#[test]
fn r3_without_pauses() {
    let (times, pauses) = incast("32MiB", "", &[]);
    assert_eq!(pauses, 0);
    for (i, t) in times.iter().enumerate() {
        let peer = 675_504.0 + 84.0 * i as f64;
        assert!((t / peer - 1.0).abs() < 0.003, "flow {i}: {t} ns, {peer} ns there");
    }
}

/// Of the times with pauses only the first and the last are recorded.
#[test]
fn r3_with_pauses() {
    let (times, pauses) = incast("4MiB", "", &[]);
    assert!(pauses > 50, "{pauses} pauses");
    for (ours, peer) in [(times[0], 668_868.0), (times[7], 676_092.0)] {
        assert!((ours / peer - 1.0).abs() < 0.003, "{ours} ns, {peer} ns there");
    }
}

/// With DCQCN the peer's flows end in two groups, five of them after 1,380 to
/// 1,521 us and three after 2,395 to 2,431 us: which flows end in the first and
/// which are cut once more is left to the marking, which is random. Here, for
/// each of ten seeds, there are two groups, too, far apart, and the mean of
/// either is within 10% of its group's range there.
#[test]
fn r3_with_dcqcn_ends_in_two_groups() {
    for seed in 1..=10 {
        let dcqcn = ("transport.congestion_control", "dcqcn");
        let (times, pauses) = incast("32MiB", DCQCN, &[dcqcn, ("run.seed", &seed.to_string())]);
        assert_eq!(pauses, 0);
        let (first, second): (Vec<f64>, Vec<f64>) = times.iter().partition(|&&t| t < 1_900e3);
        assert!(second[0] - first[first.len() - 1] > 600e3, "seed {seed}: {times:?}");
        for (group, low, high) in [(first, 1_380e3, 1_521e3), (second, 2_395e3, 2_431e3)] {
            let mean = group.iter().sum::<f64>() / group.len() as f64;
            assert!((0.9 * low..=1.1 * high).contains(&mean), "seed {seed}: {times:?}");
        }
    }
}

/// A flow of R4: source, destination, bytes, start in ns, the peer's FCT and its
/// classic ideal (base round trip, and bytes with minimum headers over the
/// bottleneck's rate) in ns.
type Row = [u64; 6];

fn r4_plan(rows: &[Row], seed: u64) -> Plan {
    let text = format!(
        "[topology]\nkind = \"leaf-spine\"\nleaves = 10\nspines = 4\nhosts_per_leaf = 16\n\
         host_link = {{ rate = \"100Gbps\", delay = \"1us\" }}\nfabric_link = {{ rate = \"400Gbps\", delay = \"1us\" }}\n\
         [switch]\nbuffer = \"32MiB\"\n{}{DCQCN}[run]\nseed = {seed}\n[[traffic]]\nkind = \"flows\"\nfile = \"flows\"\n",
        // Links differ in rate here: each gets the headroom that it needs.
        PEER.replace("headroom = \"27104B\"\n", "")
            .replace("[flow_control]", "congestion_control = \"dcqcn\"\n[flow_control]")
    );
    let csv: Vec<String> = rows.iter().map(|r| format!("{},{},{},{}", r[0], r[1], r[2], r[3])).collect();
    let csv = format!("src,dst,bytes,start_ns\n{}\n", csv.join("\n"));
    let files = |_: &Path| Ok(csv.clone().into_bytes());
    xoff_plan::load("r4.toml", text.as_bytes(), &[], &files).expect("a good scenario").plan
}

/// Mean and p99 of a group's slowdowns.
fn mean_and_p99(mut slowdowns: Vec<f64>) -> [f64; 2] {
    slowdowns.sort_by(f64::total_cmp);
    let n = slowdowns.len();
    [slowdowns.iter().sum::<f64>() / n as f64, slowdowns[(n * 99).div_ceil(100) - 1]]
}

/// R4: 409 flows of the web-search distribution at load 0.5 within 1 ms over 160
/// hosts, with DCQCN; FCT over classic ideal by size, over 20 seeds of the hashes
/// and of the marking.
///
/// The peer's mean and p99 lie within our spread for flows up to 1 MB, above
/// that, and all together (within 0.5% of its end, for the p99 of the largest),
/// and so does the p99 of the smallest.
///
/// The means of small flows do not: 1.388 up to 30 kB (ours 1.31 to 1.38) and
/// 1.502 up to 100 kB (1.36 to 1.42, its p99 5.2 against at most 5.0). The cause
/// is the peer's NIC. It serves queue pairs by token buckets that it refills in
/// rounds of 4,000 B, and has a single wake-up time for all of them, which a new
/// flow does not bring forward: a flow without tokens waits for an ACK of the
/// host or for the gap of a slowed flow beside it. So some 25 short flows take
/// one round trip or more longer there than alone in the network (34 kB from
/// host 135 to 82: 103 us, alone 11 us), though nothing is in their way; all of
/// them begin at hosts that have sent before. Among the flows that are the first
/// of their host, mean and p99 of the small ones lie within our spread, too.
/// (p99 of so few is their maximum.)
#[test]
fn r4_lies_within_the_spread_of_hash_seeds() {
    let csv = include_str!("reference/leafspine160-websearch-1ms.csv");
    let rows: Vec<Row> = csv
        .lines()
        .skip(1)
        .map(|l| {
            let values: Vec<u64> = l.split(',').map(|v| v.parse().expect("a number")).collect();
            values.try_into().expect("six columns")
        })
        .collect();
    assert_eq!(rows.len(), 409);
    let first: Vec<bool> =
        rows.iter().map(|r| !rows.iter().any(|other| other[0] == r[0] && other[3] < r[3])).collect();
    let slowdown = |row: &Row, ns: f64| ns / row[5] as f64;
    // (name, sizes above, up to, only first flows of their hosts)
    let groups = [
        ("all", 0, u64::MAX, false),
        ("up to 1 MB", 100_000, 1_000_000, false),
        ("above 1 MB", 1_000_000, u64::MAX, false),
        ("up to 30 kB, first", 0, 30_000, true),
        ("up to 100 kB, first", 30_000, 100_000, true),
    ];
    let grouped = |slowdowns: &[f64]| {
        groups.map(|(_, above, upto, only_first)| {
            let of_group =
                |i: &usize| (above + 1..=upto).contains(&rows[*i][2]) && (first[*i] || !only_first);
            mean_and_p99((0..rows.len()).filter(of_group).map(|i| slowdowns[i]).collect())
        })
    };
    let peer = grouped(&rows.iter().map(|r| slowdown(r, r[4] as f64)).collect::<Vec<_>>());
    let mut spread = [[[f64::MAX, 0.0]; 2]; 5];
    for seed in 1..=20 {
        let plan = r4_plan(&rows, seed);
        let outcome = run(&plan);
        assert!(outcome.pauses.is_empty(), "as there, PFC never fires");
        let times = fcts(&plan, &outcome);
        // The plan orders flows by start, as the file does.
        let ours: Vec<f64> = rows.iter().zip(&times).map(|(r, &t)| slowdown(r, t as f64 / 1e3)).collect();
        for (group, values) in spread.iter_mut().zip(grouped(&ours)) {
            for (range, value) in group.iter_mut().zip(values) {
                *range = [range[0].min(value), range[1].max(value)];
            }
        }
    }
    for (((name, ..), peer), ours) in groups.iter().zip(&peer).zip(&spread) {
        for (what, (&there, range)) in ["mean", "p99"].iter().zip(peer.iter().zip(ours)) {
            println!("{name}, {what}: {there:.3} there, {:.3} to {:.3} here", range[0], range[1]);
            assert!((range[0] * 0.995..=range[1] * 1.005).contains(&there), "{name}, {what}");
        }
    }
}
