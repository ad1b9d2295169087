use super::*;
use proptest::prelude::*;

fn curve(name: &str) -> (SizeDistribution, Curve) {
    let distribution = SizeDistribution::named(name).unwrap();
    let SizeDistribution::Empirical(curve) = distribution.clone() else { panic!("{name}") };
    (distribution, curve)
}

#[test]
fn computed_means_are_the_published_ones() {
    for (name, mean) in [
        ("websearch", 1_711_250.0),
        ("ali-storage", 40_870.0),
        ("fb-hadoop-hpcc", 120_421.0),
        ("fb-hadoop", 122_296.0),
        ("web-server", 62_400.0),
        ("cache-follower", 688_368.0),
        ("memcached", 186.0),
    ] {
        let computed = curve(name).0.mean();
        assert!((computed - mean).abs() <= 0.5, "{name} {computed}");
    }
    assert_eq!(NAMED.len(), 7);
    assert!(NAMED.iter().all(|named| named.text.contains(&named.source[..20])));
    assert_eq!(SizeDistribution::named("hadoop"), None);
    assert_eq!(SizeDistribution::Uniform { min: 10, max: 20 }.mean(), 15.0);
}

#[test]
fn sample_means_lie_within_three_standard_errors() {
    for (element, named) in (0..).zip(NAMED) {
        let (distribution, _) = curve(named.name);
        let mut stream = Stream::new(11, "flow sizes", element);
        let n = 200_000;
        let (mut sum, mut squares, mut packets) = (0.0, 0.0, 0.0);
        for _ in 0..n {
            let size = distribution.sample(&mut stream);
            assert!(size >= 1 && size <= distribution.largest());
            sum += size as f64;
            squares += size as f64 * size as f64;
            packets += size.div_ceil(1000) as f64;
        }
        let n = f64::from(n);
        let (mean, packets) = (sum / n, packets / n);
        let error = ((squares / n - mean * mean) / n).sqrt();
        assert!((mean - distribution.mean()).abs() < 3.0 * error, "{} {mean}", named.name);
        let expected = distribution.mean_packets(1000);
        assert!(
            (packets - expected).abs() < 3.0 * error / 1000.0 + 0.003,
            "{} {packets} {expected}",
            named.name
        );
    }
}

#[test]
fn quantiles_pass_through_the_knots() {
    for named in NAMED {
        let (_, curve) = curve(named.name);
        for pair in curve.points.windows(2) {
            let [(a, p), (b, q)] = [pair[0], pair[1]];
            assert_eq!(curve.quantile(p), a.max(1), "{}", named.name);
            let middle = curve.quantile((p + q) / 2.0) as f64;
            assert!((middle - (a + b) as f64 / 2.0).abs() <= 0.5 || a == 0, "{} {a} {b}", named.name);
        }
        let last = curve.points.last().unwrap().0;
        let end = curve.quantile(1.0 - f64::EPSILON / 2.0);
        assert!(end <= last && end as f64 > last as f64 * 0.999_999);
    }
    // The share of the first knot has exactly its size.
    assert_eq!(curve("memcached").1.quantile(0.0), 1);
    assert_eq!(curve("memcached").1.quantile(0.0058), 1);
}

#[test]
fn uniform_sizes_take_every_value() {
    let mut stream = Stream::new(1, "flow sizes", 0);
    let mut seen = [false; 3];
    for _ in 0..200 {
        seen[(SizeDistribution::Uniform { min: 7, max: 9 }.sample(&mut stream) - 7) as usize] = true;
    }
    assert_eq!(seen, [true; 3]);
    assert!(SizeDistribution::Uniform { min: 0, max: u64::MAX }.sample(&mut stream) > 0);
    assert_eq!(SizeDistribution::Fixed(1_000_000).sample(&mut stream), 1_000_000);
}

#[test]
fn steps_take_whole_packets_and_no_others() {
    // 30 to 40 packets of 1460 B: 35 on average, for any payload of the packets.
    let sizes = SizeDistribution::Steps { min: 43_800, step: 1_460, count: 11 };
    assert_eq!((sizes.mean(), sizes.largest()), (51_100.0, 58_400));
    assert_eq!(sizes.mean_packets(1_460), 35.0);
    // 44 to 59 packets of 1000 B, by hand: 44 46 47 49 50 52 53 55 56 57 59.
    let by_hand = [44, 46, 47, 49, 50, 52, 53, 55, 56, 57, 59];
    assert_eq!(sizes.mean_packets(1_000), f64::from(by_hand.iter().sum::<i32>()) / 11.0);
    let mut stream = Stream::new(1, "flow sizes", 0);
    let mut seen = [0; 11];
    for _ in 0..1_100 {
        let size = sizes.sample(&mut stream);
        assert_eq!(size % 1_460, 0);
        seen[(size / 1_460 - 30) as usize] += 1;
    }
    assert!(seen.iter().all(|&n| (60..150).contains(&n)), "{seen:?}");
}

fn parse(text: &str) -> Result<Vec<(u64, f64)>, LineError> {
    match SizeDistribution::from_cdf_text("test", text)? {
        SizeDistribution::Empirical(curve) => Ok(curve.points),
        other => panic!("{other:?}"),
    }
}

#[test]
fn cdf_files_come_in_percent_or_fractions() {
    let expected = Ok(vec![(0, 0.0), (1000, 0.25), (5000, 1.0)]);
    assert_eq!(parse("0 0\n1000 25\n5000 100\n"), expected);
    assert_eq!(parse("# sizes\r\n0,0\r\n1000 , 0.25 # a quarter\r\n\r\n5000\t1\r\n"), expected);
}

#[test]
fn faults_in_cdf_files_are_named_with_their_line() {
    for (text, line, part) in [
        ("", 1, "no points"),
        ("# nothing\n\n", 1, "no points"),
        ("0 0\n10 50 3\n", 2, "expected two numbers"),
        ("0 0\n10\n", 2, "expected two numbers"),
        ("0 0\nten 100\n", 2, "not a whole number of bytes"),
        ("0 0\n1.5 100\n", 2, "not a whole number of bytes"),
        ("0 0\n10 all\n", 2, "not a number"),
        ("0 0\n10 NaN\n", 2, "between 0 and 100"),
        ("0 0\n10 -1\n", 2, "between 0 and 100"),
        ("0 0\n10 101\n", 2, "between 0 and 100"),
        ("0 0\n20 50\n10 100\n", 3, "sizes must not decrease"),
        ("0 0\n20 50\n30 40\n40 100\n", 3, "must not decrease"),
        ("0 0\n20 50\n30 99.9\n", 3, "ends at 99.9"),
        ("0 0\n0 100\n", 2, "zero bytes"),
        ("99999999999999999 100\n", 1, "above the maximum"),
        ("\u{0}\u{1}\u{2}", 1, "expected two numbers"),
    ] {
        let error = parse(text).unwrap_err();
        assert_eq!(error.line, line, "{text:?} {error:?}");
        assert!(error.message.contains(part), "{text:?} {error:?}");
    }
}

proptest! {
    #[test]
    fn mean_packets_equal_the_sum_over_all_sizes(
        knots in proptest::collection::vec((0u64..40, 1u32..5), 1..5),
        mtu in 1u64..30,
        min in 1u64..50,
        more in 0u64..50,
    ) {
        let all: Vec<u64> = (min..=min + more).collect();
        let sum: u64 = all.iter().map(|size| size.div_ceil(mtu)).sum();
        let uniform = SizeDistribution::Uniform { min, max: min + more };
        prop_assert!((uniform.mean_packets(mtu) - sum as f64 / all.len() as f64).abs() < 1e-9);

        let (mut bytes, mut share) = (0, 0);
        let mut points: Vec<(u64, f64)> = Vec::new();
        for (step, part) in knots {
            (bytes, share) = (bytes + step, share + part);
            points.push((bytes, f64::from(share)));
        }
        prop_assume!(bytes > 0);
        points.iter_mut().for_each(|(_, p)| *p /= f64::from(share));
        let curve = Curve { name: String::new(), points };
        // A midpoint sum over the shares, independent of any knots.
        let n = 200_000;
        let sum: u64 = (0..n).map(|i| curve.quantile((f64::from(i) + 0.5) / f64::from(n)).div_ceil(mtu)).sum();
        let expected = SizeDistribution::Empirical(curve).mean_packets(mtu);
        prop_assert!((sum as f64 / f64::from(n) - expected).abs() < 1e-3, "{} {}", sum, expected);
    }
}
