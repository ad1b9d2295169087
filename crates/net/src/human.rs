//! Numbers as people read them: three or four significant digits and a unit.
//!
//! Decimal prefixes throughout (1 kB = 1000 bytes), as in scenarios.

use xoff_kernel::time::Time;

/// `1234567` as `1,234,567`; from ten million on three digits, as `12.3M`.
pub fn count(n: u64) -> String {
    if n < 10_000_000 { grouped(n) } else { short(n as f64) }
}

/// All digits, in groups of three.
pub fn grouped(n: u64) -> String {
    let digits = n.to_string();
    let mut text = String::new();
    for (i, c) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(c);
    }
    text
}

/// A number with three digits and a prefix: `6.43M`.
pub fn short(x: f64) -> String {
    scaled(x, 3, &["", "k", "M", "G", "T", "P", "E"])
}

/// Bytes: `900 B`, `34.2 kB`, `5 MB`.
pub fn bytes(n: u64) -> String {
    scaled(n as f64, 3, &[" B", " kB", " MB", " GB", " TB", " PB", " EB"])
}

/// Bits per second: `12.3 Gbps`.
pub fn rate(bits_per_second: f64) -> String {
    scaled(bits_per_second, 3, &[" bps", " kbps", " Mbps", " Gbps", " Tbps", " Pbps"])
}

/// A time or span, in picoseconds: `84.16 ns`, `1.234 ms`.
pub fn time(ps: Time) -> String {
    if ps == 0 {
        return "0 s".into();
    }
    scaled(ps as f64, 4, &[" ps", " ns", " us", " ms", " s"])
}

/// A ratio such as a slowdown, three significant digits: `1.00`, `12.3`, `1234`.
pub fn ratio(x: f64) -> String {
    if x < 9.995 {
        format!("{x:.2}")
    } else if x < 99.95 {
        format!("{x:.1}")
    } else if x < 99_999.5 {
        format!("{x:.0}")
    } else {
        scaled(x, 3, &["", "k", "M", "G", "T"])
    }
}

/// `1 flow`, `2 flows`: a count with its noun.
pub fn counted(n: u64, singular: &str) -> String {
    if n == 1 { format!("1 {singular}") } else { format!("{} {singular}s", count(n)) }
}

/// `a, b and c`.
pub fn listed<S: AsRef<str>>(items: &[S]) -> String {
    joined(items, "and")
}

/// `a, b or c`.
pub fn either<S: AsRef<str>>(items: &[S]) -> String {
    joined(items, "or")
}

fn joined<S: AsRef<str>>(items: &[S], last_by: &str) -> String {
    let items: Vec<&str> = items.iter().map(AsRef::as_ref).collect();
    match items.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} {last_by} {last}", rest.join(", ")),
        _ => items.concat(),
    }
}

/// `value` with `digits` significant digits in the largest unit that leaves at least 1, without trailing
/// zeros. The last unit takes the rest.
fn scaled(mut value: f64, digits: usize, units: &[&str]) -> String {
    let mut unit = 0;
    loop {
        let whole = 1 + usize::from(value >= 10.0) + usize::from(value >= 100.0);
        let mut text = format!("{value:.*}", digits.saturating_sub(whole));
        // Rounding may have carried into the next unit: 999.96 kB is 1 MB.
        let carried = text.parse::<f64>().is_ok_and(|v| v >= 1000.0);
        if (value >= 1000.0 || carried) && unit + 1 < units.len() {
            value /= 1000.0;
            unit += 1;
            continue;
        }
        if text.contains('.') {
            text.truncate(text.trim_end_matches('0').trim_end_matches('.').len());
        }
        return text + units[unit];
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_have_separators_and_then_prefixes() {
        assert_eq!(count(0), "0");
        assert_eq!(count(999), "999");
        assert_eq!(count(1000), "1,000");
        assert_eq!(count(9_999_999), "9,999,999");
        assert_eq!(count(12_345_678), "12.3M");
        assert_eq!(count(u64::MAX), "18.4E");
    }

    #[test]
    fn the_unit_follows_the_rounded_value() {
        assert_eq!(bytes(0), "0 B");
        assert_eq!(bytes(999), "999 B");
        assert_eq!(bytes(1_000), "1 kB");
        assert_eq!(bytes(34_249), "34.2 kB");
        assert_eq!(bytes(999_960), "1 MB");
        assert_eq!(time(84_160), "84.16 ns");
        assert_eq!(time(10_000_000_000), "10 ms");
        assert_eq!(time(3_600 * 1_000_000_000_000), "3600 s");
        assert_eq!(rate(12_345_000_000.0), "12.3 Gbps");
    }

    #[test]
    fn ratios_keep_three_digits() {
        let cases = [(1.0, "1.00"), (9.996, "10.0"), (99.96, "100"), (1234.4, "1234"), (1.5e5, "150k")];
        for (x, text) in cases {
            assert_eq!(ratio(x), text);
        }
    }

    #[test]
    fn lists_and_plurals() {
        let l = |s: &[&str]| listed(&s.iter().map(|s| s.to_string()).collect::<Vec<_>>());
        assert_eq!(
            (l(&["a"]), l(&["a", "b"]), l(&["a", "b", "c"])),
            ("a".into(), "a and b".into(), "a, b and c".into())
        );
        assert_eq!((counted(1, "flow"), counted(1234, "flow")), ("1 flow".into(), "1,234 flows".into()));
    }
}
