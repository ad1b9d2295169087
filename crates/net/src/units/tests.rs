use super::*;
use proptest::prelude::*;

fn problem<T: FromStr<Err = QuantityError> + fmt::Debug>(text: &str) -> Problem {
    text.parse::<T>().expect_err(text).problem
}

#[test]
fn values_are_exact() {
    for (text, bps) in [
        ("100Gbps", 100_000_000_000),
        ("1_000 Mbps", 1_000_000_000),
        ("2.5Gbps", 2_500_000_000),
        (" 0.001kbps ", 1),
        ("1.600Tbps", 1_600_000_000_000),
    ] {
        assert_eq!(text.parse(), Ok(Bandwidth(bps)), "{text}");
    }
    for (text, ps) in [
        ("0s", 0),
        ("1.5us", 1_500_000),
        ("1.5\u{b5}s", 1_500_000),
        ("1.5\u{3bc}s", 1_500_000),
        ("80km", 400_000_000),
        ("3m", 15_000),
        ("0.0002m", 1),
        ("0.000_000_000_001s", 1),
        ("18446744073709551615ps", u64::MAX),
    ] {
        assert_eq!(text.parse(), Ok(Span(ps)), "{text}");
    }
    for (text, bytes) in [
        ("5MB", 5_000_000),
        ("4KiB", 4_096),
        ("1.5MiB", 1_572_864),
        // Thirty decimals, each of them needed.
        ("0.999999999068677425384521484375GiB", (1 << 30) - 1),
    ] {
        assert_eq!(text.parse(), Ok(Bytes(bytes)), "{text}");
    }
}

#[test]
fn every_fault_has_its_name() {
    let unknown = |unit: &str| Problem::UnknownUnit(unit.to_string());
    for (text, expected) in [
        ("", Problem::Empty),
        ("  ", Problem::Empty),
        ("-1Gbps", Problem::Negative),
        ("NaN", Problem::NotANumber),
        ("Gbps", Problem::NotANumber),
        ("1e9bps", Problem::NotANumber),
        ("1.2.3Gbps", Problem::NotANumber),
        (".5Gbps", Problem::NotANumber),
        ("5.Gbps", Problem::NotANumber),
        ("1__0Gbps", Problem::NotANumber),
        ("_1Gbps", Problem::NotANumber),
        ("100", Problem::MissingUnit),
        ("100Gb", unknown("Gb")),
        ("100 gbps", unknown("gbps")),
        ("0Gbps", Problem::Zero),
        ("0.000bps", Problem::Zero),
        ("18446744073709551616bps", Problem::TooLarge),
        ("99999999999999999999999999999999999999999Gbps", Problem::TooLarge),
        ("0.5bps", Problem::TooFine),
        ("1.0000000000000000000000000000000000000000000001Gbps", Problem::TooFine),
    ] {
        assert_eq!(problem::<Bandwidth>(text), expected, "{text}");
    }
    assert_eq!(problem::<Span>("0.5ps"), Problem::TooFine);
    assert_eq!(problem::<Span>("300days"), unknown("days"));
    assert_eq!(problem::<Span>("20000000s"), Problem::TooLarge);
    assert_eq!(problem::<Bytes>("0.1B"), Problem::TooFine);
    assert_eq!(problem::<Bytes>("0.3KiB"), Problem::TooFine);
    assert_eq!(problem::<Threshold>("6"), Problem::MissingUnit);
    assert_eq!(problem::<Threshold>("0.0005bdp"), Problem::TooFine);
    assert_eq!(problem::<Threshold>("-1bdp"), Problem::Negative);
}

#[test]
fn messages_name_the_fault_and_the_remedy() {
    let message = |text: &str| text.parse::<Bandwidth>().unwrap_err().to_string();
    assert_eq!(
        message("100Gb"),
        "`100Gb` is not a rate: unknown unit `Gb` (did you mean `Gbps`?); write a number with \
         bps, kbps, Mbps, Gbps or Tbps, such as \"100Gbps\""
    );
    assert_eq!(message("0bps"), "`0bps` is zero: a rate must be positive, such as \"100Gbps\"");
    assert_eq!(
        "6".parse::<Threshold>().unwrap_err().to_string(),
        "`6` has no unit: write a number with B, kB, MB, GB, KiB, MiB, GiB or bdp, such as \"6bdp\""
    );
}

#[test]
fn a_bare_number_in_a_file_is_refused_with_the_units() {
    for text in ["100", "-3", "2.5"] {
        let error = serde_json::from_str::<Bandwidth>(text).unwrap_err().to_string();
        assert!(error.contains("has no unit") && error.contains("Gbps"), "{error}");
    }
    assert_eq!(serde_json::from_str::<Span>("\"3ns\"").unwrap(), Span(3_000));
    assert_eq!(serde_json::to_string(&Bytes(5_000_000)).unwrap(), "\"5MB\"");
}

#[test]
fn quantities_print_in_their_largest_whole_unit() {
    assert_eq!(Bandwidth(100_000_000_000).to_string(), "100Gbps");
    assert_eq!(Bandwidth(2_500_000_000).to_string(), "2500Mbps");
    assert_eq!(Span(1_000_000).to_string(), "1us");
    assert_eq!(Span(5_000).to_string(), "5ns");
    assert_eq!(Span(0).to_string(), "0ps");
    assert_eq!(Bytes(4096).to_string(), "4KiB");
    assert_eq!(Bytes(75_000).to_string(), "75kB");
    assert_eq!(Threshold::Bdp(500).to_string(), "0.5bdp");
    assert_eq!(Threshold::Bdp(6_000).to_string(), "6bdp");
}

#[test]
fn thresholds_resolve_against_the_link() {
    let resolve = |text: &str, rate, delay| text.parse::<Threshold>().unwrap().resolve(rate, delay);
    // 100 Gbit/s times 1 us is 12,500 bytes.
    assert_eq!(resolve("6bdp", 100_000_000_000, 1_000_000), 75_000);
    assert_eq!(resolve("0.5bdp", 100_000_000_000, 1_000_000), 6_250);
    assert_eq!(resolve("0.001bdp", 100_000_000_000, 1_000_000), 12);
    assert_eq!(resolve("75kB", 1, 1), 75_000);
    assert_eq!(Threshold::Bdp(u64::MAX).resolve(u64::MAX, u64::MAX), u64::MAX);
}

proptest! {
    #[test]
    fn printed_quantities_are_read_back(value in any::<u64>(), zeros in 0u32..20) {
        let value = value / 10u64.pow(zeros) * 10u64.pow(zeros);
        prop_assert_eq!(Span(value).to_string().parse(), Ok(Span(value)));
        prop_assert_eq!(Bytes(value).to_string().parse(), Ok(Bytes(value)));
        prop_assert_eq!(Threshold::Bdp(value).to_string().parse(), Ok(Threshold::Bdp(value)));
        prop_assume!(value > 0);
        prop_assert_eq!(Bandwidth(value).to_string().parse(), Ok(Bandwidth(value)));
    }

    #[test]
    fn no_text_makes_the_parsers_panic(text in "\\PC{0,24}|[-0-9_. eE]{0,12}(Gbps|us|MB|bdp)?") {
        let _ = (text.parse::<Bandwidth>(), text.parse::<Span>(), text.parse::<Bytes>());
        let _ = text.parse::<Threshold>();
    }
}

#[test]
fn lengths_are_exact_and_take_five_microseconds_per_kilometre() {
    for (text, mm, ps) in [
        ("600km", 600_000_000, 3_000_000_000),
        ("80 km", 80_000_000, 400_000_000),
        ("1.5m", 1_500, 7_500),
        ("0.000001km", 1, 5),
        ("0mm", 0, 0),
        ("18446744073709551615mm", u64::MAX, u64::MAX),
    ] {
        let length: Length = text.parse().unwrap();
        assert_eq!((length.0, length.delay().0), (mm, ps), "{text}");
    }
    assert_eq!(problem::<Length>("600"), Problem::MissingUnit);
    assert_eq!(problem::<Length>("3ms"), Problem::UnknownUnit("ms".to_string()));
    assert_eq!(problem::<Length>("0.5mm"), Problem::TooFine);
    for text in ["600km", "80m", "7mm", "1500m", "0mm"] {
        assert_eq!(text.parse::<Length>().unwrap().to_string(), text);
    }
    // A time that is written as a length prints as a time.
    assert_eq!("80km".parse::<Span>().unwrap().to_string(), "400us");
}
