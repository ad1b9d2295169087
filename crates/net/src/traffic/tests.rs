use super::*;
use crate::builders::Ndc;
use crate::topology::{LinkSpec, Topology};
use crate::units::{Bandwidth, Span};
use std::collections::{BTreeMap, BTreeSet};
use xoff_kernel::time::{MICROSECOND, MILLISECOND};

const HOSTS: [NodeId; 5] = [0, 1, 2, 3, 4];
const SIZES: SizeDistribution = SizeDistribution::Fixed(1000);

/// Independent flows that arrive as one Poisson process.
#[derive(Clone, Copy, Debug)]
struct Poisson<'a> {
    /// Senders; each flow draws one uniformly.
    sources: &'a [NodeId],
    /// Receivers; each flow draws one uniformly among those that are not its sender.
    destinations: &'a [NodeId],
    sizes: &'a SizeDistribution,
    /// Flows per second, of all sources together.
    rate: f64,
    /// No flow starts before.
    from: Time,
    /// No flow starts at or after.
    until: Time,
}

/// Draws the flows of a Poisson process, in the order of time.
fn poisson(spec: &Poisson<'_>, seed: u64, element: u64) -> Result<Vec<Demand>, SpecError> {
    let pairs = Pairs::uniform(spec.sources, spec.destinations)?;
    let Poisson { sizes, rate, from, until, .. } = *spec;
    poisson_among(&pairs, &Arrivals { sizes, rate, from, until, most: u64::MAX }, seed, element)
}

fn flows(sources: &[NodeId], destinations: &[NodeId], rate: f64, until: Time) -> Vec<Demand> {
    let spec = Poisson { sources, destinations, sizes: &SIZES, rate, from: 0, until };
    poisson(&spec, 3, 0).unwrap()
}

#[test]
fn poisson_has_its_rate_and_variance() {
    // 100,000 flows expected: the standard deviation of the count is 316.
    let drawn = flows(&HOSTS, &HOSTS, 1e8, MILLISECOND);
    assert!((drawn.len() as f64 - 1e5).abs() < 3.0 * 316.0, "{}", drawn.len());
    assert!(drawn.is_sorted_by_key(|flow| flow.start));
    // Counts in 1,000 windows: variance over mean is 1, up to 3 * sqrt(2 / 1000).
    let mut counts = vec![0f64; 1000];
    for flow in &drawn {
        counts[(flow.start / MICROSECOND) as usize] += 1.0;
    }
    let mean = drawn.len() as f64 / 1000.0;
    let dispersion = counts.iter().map(|c| (c - mean) * (c - mean)).sum::<f64>() / 999.0 / mean;
    assert!((dispersion - 1.0).abs() < 0.135, "{dispersion}");
}

#[test]
fn poisson_pairs_are_uniform_without_the_source() {
    for (sources, destinations) in [(&HOSTS[..], &HOSTS[..]), (&[7, 3, 0], &HOSTS[..]), (&[9], &[1, 0])] {
        let drawn = flows(sources, destinations, 1e8, MILLISECOND);
        let mut counts: BTreeMap<(NodeId, NodeId), f64> = BTreeMap::new();
        for flow in &drawn {
            *counts.entry((flow.src, flow.dst)).or_default() += 1.0;
        }
        let mut pairs = 0;
        for &src in sources {
            let others: Vec<NodeId> = destinations.iter().copied().filter(|&dst| dst != src).collect();
            for &dst in &others {
                let share = 1.0 / (sources.len() * others.len()) as f64;
                let expected = drawn.len() as f64 * share;
                let found = counts.get(&(src, dst)).copied().unwrap_or_default();
                assert!(
                    (found - expected).abs() < 4.0 * (expected * (1.0 - share)).sqrt(),
                    "{src} {dst} {found}"
                );
                pairs += 1;
            }
        }
        assert_eq!(counts.len(), pairs, "no other pairs");
    }
}

#[test]
fn streams_do_not_disturb_each_other() {
    let draw = |sizes: &SizeDistribution, destinations: &[NodeId], element| {
        let spec = Poisson { sources: &HOSTS, destinations, sizes, rate: 1e6, from: 0, until: MILLISECOND };
        poisson(&spec, 3, element).unwrap()
    };
    let base = draw(&SIZES, &HOSTS, 0);
    let resized = draw(&SizeDistribution::named("websearch").unwrap(), &HOSTS, 0);
    let moved = draw(&SIZES, &[10, 11], 0);
    assert!(base.iter().zip(&resized).all(|(a, b)| (a.src, a.dst, a.start) == (b.src, b.dst, b.start)));
    assert!(base.iter().zip(&moved).all(|(a, b)| (a.size, a.start) == (b.size, b.start)));
    assert!(base.len() == resized.len() && base.len() == moved.len());
    assert_eq!(base, draw(&SIZES, &HOSTS, 0));
    assert_ne!(base, draw(&SIZES, &HOSTS, 1));
    // A longer run begins with the shorter one.
    let spec = Poisson {
        sources: &HOSTS,
        destinations: &HOSTS,
        sizes: &SIZES,
        rate: 1e6,
        from: 0,
        until: 2 * MILLISECOND,
    };
    assert_eq!(poisson(&spec, 3, 0).unwrap()[..base.len()], base[..]);
}

#[test]
fn incast_draws_different_senders_for_each_event() {
    let senders: Vec<NodeId> = (0..16).collect();
    let spec = Incast {
        receivers: &senders,
        order: Order::Random,
        senders: &senders,
        fan_in: 8,
        flows_per_sender: 1,
        sizes: &SIZES,
        first: 5 * MICROSECOND,
        period: Some(10 * MICROSECOND),
        until: 10 * MILLISECOND,
    };
    let drawn = incast(&spec, 1, 0).unwrap();
    assert_eq!(drawn.len(), 8 * 1000);
    let (mut sent, mut received) = ([0f64; 16], [0f64; 16]);
    for (event, flows) in (0..).zip(drawn.chunks(8)) {
        let dst = flows[0].dst;
        received[dst as usize] += 1.0;
        let different: BTreeSet<NodeId> = flows.iter().map(|flow| flow.src).collect();
        assert!(different.len() == 8 && !different.contains(&dst));
        for flow in flows {
            assert_eq!((flow.dst, flow.start), (dst, (5 + 10 * event) * MICROSECOND));
            sent[flow.src as usize] += 1.0;
        }
    }
    // Binomial: 62.5 ± 7.7 events as receiver, 500 ± 15.8 as sender.
    assert!(received.iter().all(|&n| (n - 62.5).abs() < 4.0 * 7.7), "{received:?}");
    assert!(sent.iter().all(|&n| (n - 500.0).abs() < 4.0 * 15.8), "{sent:?}");

    let once = Incast { receivers: &[3], fan_in: 15, period: None, ..spec };
    let drawn = incast(&once, 1, 0).unwrap();
    let senders: BTreeSet<NodeId> = drawn.iter().map(|flow| flow.src).collect();
    assert_eq!(senders.len(), 15);
    assert!(drawn.iter().all(|flow| flow.dst == 3 && flow.start == 5 * MICROSECOND));
    assert_eq!(incast(&Incast { until: 5 * MICROSECOND, ..once }, 1, 0).unwrap(), []);
}

#[test]
fn senders_of_an_incast_can_send_several_flows_at_once() {
    let senders: Vec<NodeId> = (0..16).collect();
    let range = SizeDistribution::Uniform { min: 1000, max: 2000 };
    let spec = Incast {
        receivers: &[3],
        order: Order::Random,
        senders: &senders,
        fan_in: 15,
        flows_per_sender: 5,
        sizes: &range,
        first: 5 * MICROSECOND,
        period: None,
        until: MILLISECOND,
    };
    let drawn = incast(&spec, 1, 0).unwrap();
    assert_eq!(drawn.len(), 75);
    for host in senders.iter().filter(|&&host| host != 3) {
        let own: Vec<_> = drawn.iter().filter(|flow| flow.src == *host).collect();
        assert!(own.len() == 5 && own.iter().all(|f| f.dst == 3 && f.start == 5 * MICROSECOND));
    }
    // 75 draws from 1001 sizes: each flow has one of its own.
    let sizes: BTreeSet<u64> = drawn.iter().map(|flow| flow.size).collect();
    assert!(sizes.len() > 60, "{}", sizes.len());
    // The senders are those that one flow of each would have.
    let single = incast(&Incast { flows_per_sender: 1, ..spec }, 1, 0).unwrap();
    assert!(single.iter().zip(drawn.chunks(5)).all(|(one, five)| one.src == five[0].src));
}

#[test]
fn permutations_are_without_fixed_points() {
    for seed in 0..50 {
        let drawn = permutation(&HOSTS, &SIZES, 7, seed, 0).unwrap();
        let sources: BTreeSet<NodeId> = drawn.iter().map(|flow| flow.src).collect();
        let destinations: BTreeSet<NodeId> = drawn.iter().map(|flow| flow.dst).collect();
        assert!(sources.len() == 5 && destinations.len() == 5);
        assert!(drawn.iter().all(|flow| flow.src != flow.dst && flow.start == 7));
    }
}

#[test]
fn impossible_traffic_is_refused_at_its_key() {
    let spec = Poisson {
        sources: &HOSTS,
        destinations: &HOSTS,
        sizes: &SIZES,
        rate: 1e6,
        from: 0,
        until: MILLISECOND,
    };
    let key = |spec: Poisson<'_>| poisson(&spec, 1, 0).unwrap_err().key;
    assert_eq!(key(Poisson { sources: &[], ..spec }), "sources");
    assert_eq!(key(Poisson { sources: &[2, 1, 2], ..spec }), "sources[2]");
    assert_eq!(key(Poisson { destinations: &[4], ..spec }), "destinations");
    assert_eq!(key(Poisson { rate: 0.0, ..spec }), "rate");
    assert_eq!(key(Poisson { rate: f64::NAN, ..spec }), "rate");
    assert_eq!(key(Poisson { rate: 1e12, ..spec }), "rate");

    let spec = Incast {
        receivers: &[0],
        order: Order::Random,
        senders: &HOSTS,
        fan_in: 4,
        flows_per_sender: 1,
        sizes: &SIZES,
        first: 0,
        period: None,
        until: MILLISECOND,
    };
    assert_eq!(incast(&spec, 1, 0).unwrap().len(), 4);
    let error = |spec: Incast<'_>| incast(&spec, 1, 0).unwrap_err();
    assert!(error(Incast { fan_in: 5, ..spec }).message.contains("only 4 hosts"));
    assert_eq!(error(Incast { fan_in: 0, ..spec }).key, "fan_in");
    assert_eq!(error(Incast { flows_per_sender: 0, ..spec }).key, "flows_per_sender");
    assert_eq!(error(Incast { flows_per_sender: u32::MAX, ..spec }).key, "flows_per_sender");
    assert_eq!(error(Incast { period: Some(0), ..spec }).key, "period");
    assert_eq!(error(Incast { period: Some(1), ..spec }).key, "period");
    assert_eq!(error(Incast { receivers: &[], ..spec }).key, "receivers");
    assert_eq!(permutation(&[3], &SIZES, 0, 1, 0).unwrap_err().key, "hosts");
}

fn ndc() -> Topology {
    let link = LinkSpec { rate: Bandwidth(1_000_000_000), delay: Span(0) };
    Ndc { n: 4, k: 1, link }.build().unwrap()
}

#[test]
fn csv_flows_are_read_and_ordered() {
    let flow = |src, dst, size, start| Demand { src, dst, size, start };
    let expected =
        Ok(vec![flow(3, 0, 5, 99_500), flow(1, 15, 1_000_000, 1_000_000), flow(2, 15, 7, 1_000_000)]);
    let text = "# three\nsrc,dst,bytes,start\nH1,H15,1000000,1us\n\n2,15,7,1us\r\n3, H0, 5, 99.5ns\n";
    assert_eq!(flows_csv(text, &ndc()), expected);
    let text = "\u{feff}start_ns,bytes,dst,src\n1000,1000000,H15,H1\n1_000,7,15,2\n99.5,5,0,3";
    assert_eq!(flows_csv(text, &ndc()), expected);
}

#[test]
fn faults_in_csv_files_are_named_with_their_line() {
    for (text, line, part) in [
        ("", 1, "empty"),
        ("# only\n\n", 1, "empty"),
        ("src,dst,bytes,start\n", 1, "no flows"),
        ("0,1,100,0\n", 1, "unknown column `0`"),
        ("src,dst,bytes,start,class\n", 1, "unknown column `class`"),
        ("src,dst,bytes\n", 1, "`start`"),
        ("src,src,bytes,start\n", 1, "defined twice"),
        ("src,bytes,start\n", 1, "`dst` is missing"),
        ("src,dst,bytes,start,start_ns\n", 1, "cannot be combined"),
        ("src,dst,bytes,start\n0,1,5\n", 2, "has 3 fields"),
        ("src,dst,bytes,start\n0,1,5,1us\nH16,1,5,1us\n", 3, "no host is called `H16`"),
        ("src,dst,bytes,start\n16,1,5,1us\n", 2, "from 0 to 15"),
        ("src,dst,bytes,start\n0,S0.1,5,1us\n", 2, "is a switch"),
        ("src,dst,bytes,start\n0,H0,5,1us\n", 2, "to itself"),
        ("src,dst,bytes,start\n0,1,0,1us\n", 2, "at least 1 byte"),
        ("src,dst,bytes,start\n0,1,-5,1us\n", 2, "not a whole number"),
        ("src,dst,bytes,start\n0,1,5,100\n", 2, "has no unit"),
        ("src,dst,bytes,start\n0,1,5,-1us\n", 2, "negative"),
        ("src,dst,bytes,start_ns\n0,1,5,1us\n", 2, "not a number of nanoseconds"),
        ("src,dst,bytes,start_ns\n0,1,5,0.0001\n", 2, "too precise"),
    ] {
        let error = flows_csv(text, &ndc()).unwrap_err();
        assert_eq!(error.line, line, "{text:?} {error:?}");
        assert!(error.message.contains(part), "{text:?} {error:?}");
    }
}
