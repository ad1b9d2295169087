//! Rates, lengths and delays as inventories write them.

use crate::units::{Bandwidth, Span, scaled};

/// A rate, such as `100Gbps`, `100G`, `100 Gbit/s`, `25GE` or `100gbase-x-qsfp28`. A bare number counts in `unit`,
/// bits per second.
pub(super) fn rate(text: &str, unit: Option<u64>) -> Result<Bandwidth, String> {
    let (number, suffix) = split(text);
    let wrong = || format!("`{}` is not a rate: write a number with a unit, such as 100Gbps", text.trim());
    if suffix.contains("B/") || suffix.contains("Byte") || suffix.contains("Bps") {
        return Err(format!(
            "`{}` is in bytes per second: write bits per second, such as 100Gbps",
            text.trim()
        ));
    }
    if matches!(suffix, "kB" | "MB" | "GB" | "TB") {
        return Err(format!(
            "`{}` is a number of bytes: write bits per second, such as 100Gbps",
            text.trim()
        ));
    }
    let lower = suffix.to_ascii_lowercase();
    let factor = match (lower.as_str(), unit) {
        ("", Some(unit)) => unit,
        ("", None) => return Err(format!("`{}` has no unit: write a rate such as 100Gbps", text.trim())),
        (suffix, _) => {
            let (scale, rest) = suffix.split_at(usize::from(suffix.starts_with(['k', 'm', 'g', 't'])));
            // Ethernet's names: 25GE, 25GbE, 100GBASE-SR4, 25gige.
            let known = ["", "b", "bps", "b/s", "bit", "bits", "bit/s", "bits/s", "e", "be", "ige"];
            if !(known.contains(&rest) || rest.starts_with("base-") || rest.starts_with("base")) {
                return Err(wrong());
            }
            match scale {
                "k" => 1_000,
                "m" => 1_000_000,
                "g" => 1_000_000_000,
                "t" => 1_000_000_000_000,
                _ if rest.is_empty() => return Err(wrong()),
                _ => 1,
            }
        }
    };
    match scaled(number, factor) {
        Some(bits @ 1..) => Ok(Bandwidth(bits)),
        _ => Err(wrong()),
    }
}

/// Picoseconds of the units of a delay, and of a cable's length at 5 ns per metre.
pub(super) fn delay_unit(name: &str) -> Option<u64> {
    Some(match name.to_ascii_lowercase().as_str() {
        "ps" => 1,
        "ns" => 1_000,
        "us" | "\u{b5}s" | "\u{3bc}s" | "usec" => 1_000_000,
        "ms" | "msec" => 1_000_000_000,
        "s" | "sec" => 1_000_000_000_000,
        "mm" => 5,
        "cm" => 50,
        "m" | "meter" | "meters" | "metre" | "metres" => 5_000,
        "km" | "kilometer" | "kilometers" | "kilometre" | "kilometres" => 5_000_000,
        "in" | "inch" | "inches" => 127,
        "ft" | "foot" | "feet" => 1_524,
        "mi" | "mile" | "miles" => 8_046_720,
        _ => return None,
    })
}

/// A delay or a length, such as `1.5us`, `20m` or `100 ft`. A bare number counts in `unit`, picoseconds.
pub(super) fn delay(text: &str, unit: Option<u64>) -> Result<Span, String> {
    let (number, suffix) = split(text);
    let factor = if suffix.is_empty() { unit } else { delay_unit(suffix) };
    let Some(factor) = factor else {
        let why = if suffix.is_empty() { "has no unit" } else { "is neither a delay nor a length" };
        return Err(format!("`{}` {why}: write a number with a unit, such as 20m or 100ns", text.trim()));
    };
    scaled(number, factor).map(Span).ok_or_else(|| {
        format!("`{}` is not a delay: write a number with a unit, such as 20m or 100ns", text.trim())
    })
}

/// The number at the beginning, and the rest.
fn split(text: &str) -> (&str, &str) {
    let text = text.trim();
    let end = text.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(text.len());
    (&text[..end], text[end..].trim())
}
