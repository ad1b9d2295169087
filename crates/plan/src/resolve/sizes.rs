//! Flow sizes: the distribution of a scenario, and its bytes on the wire.

use super::Context;
use crate::error::{Error, suggest};
use crate::plan::PacketFormat;
use crate::scenario::Sizes;
use xoff_net::sizes::{NAMED, SizeDistribution};
use xoff_net::units::Bytes;

/// The distribution that the scenario writes at `path`.
pub(super) fn distribution(cx: &Context<'_>, path: &str, sizes: &Sizes) -> Result<SizeDistribution, Error> {
    match sizes {
        Sizes::Text(text)
            if text.trim_start().starts_with(|c: char| c.is_ascii_digit() || c == '-' || c == '.') =>
        {
            let size: Bytes = text.parse().map_err(|e: xoff_net::units::QuantityError| {
                let message = e.to_string();
                let (what, help) = message.split_once(": ").unwrap_or((&message, ""));
                cx.doc.error(path, what, help)
            })?;
            fixed(cx, path, size)
        }
        Sizes::Text(name) => SizeDistribution::named(name).ok_or_else(|| {
            let help =
                suggest(name, "write a size such as \"1MB\", or a distribution", &NAMED.map(|c| c.name));
            cx.doc.error(path, format!("unknown distribution `{name}`"), help)
        }),
        Sizes::Table(table) => match (&table.uniform, &table.file) {
            (Some([least, most]), None) => {
                let at = format!("{path}.uniform");
                if least.0 == 0 {
                    return cx.refuse(&at, "a flow must have at least 1 byte", "write 1B or more");
                }
                if least > most {
                    let message = format!("the range ends at {most}, below its beginning at {least}");
                    return cx.refuse(&at, message, "write the smaller size first");
                }
                match table.step {
                    None => Ok(SizeDistribution::Uniform { min: least.0, max: most.0 }),
                    Some(step) => steps(cx, &format!("{path}.step"), *least, *most, step),
                }
            }
            (None, Some(_)) if table.step.is_some() => {
                let message = "`step` and `file` cannot be combined: the file lists its own sizes";
                let help = "remove `step`, or write `uniform` instead of `file`";
                cx.refuse(&format!("{path}.step"), message, help)
            }
            (None, Some(name)) => {
                let text = cx.file(&format!("{path}.file"), name)?;
                SizeDistribution::from_cdf_text(name, &text).map_err(|e| {
                    let help =
                        "a CDF file has lines of bytes and percent, both increasing, and ends at 100 (or at 1)";
                    Error::in_line(name, &text, e.line, e.message).with_help(help)
                })
            }
            _ => {
                let help = "write either `uniform = [\"1kB\", \"2kB\"]` or `file = \"cdf.txt\"`";
                cx.refuse(path, "expected either `uniform` or `file`", help)
            }
        },
    }
}

const MOST_STEPS: u64 = 1_000_000;

fn steps(
    cx: &Context<'_>,
    path: &str,
    least: Bytes,
    most: Bytes,
    step: Bytes,
) -> Result<SizeDistribution, Error> {
    let range = most.0 - least.0;
    if step.0 == 0 || !range.is_multiple_of(step.0) {
        let message = format!("steps of {step} do not divide the range from {least} to {most}");
        let help = format!("write a divisor of {}, the length of the range", Bytes(range));
        return cx.refuse(path, message, help);
    }
    let count = range / step.0 + 1;
    if count > MOST_STEPS {
        let message = format!("steps of {step} make {count} sizes");
        let help =
            format!("the maximum is {MOST_STEPS}; without `step` every whole number of bytes is a size");
        return cx.refuse(path, message, help);
    }
    Ok(SizeDistribution::Steps { min: least.0, step: step.0, count })
}

pub(super) fn fixed(cx: &Context<'_>, path: &str, size: Bytes) -> Result<SizeDistribution, Error> {
    match size.0 {
        0 => cx.refuse(path, "a flow must have at least 1 byte", "write 1B or more"),
        size => Ok(SizeDistribution::Fixed(size)),
    }
}

/// Mean bytes of a flow's data packets on the wire.
pub(super) fn mean_wire_bytes(sizes: &SizeDistribution, packet: &PacketFormat) -> f64 {
    sizes.mean() + sizes.mean_packets(packet.mtu.into()) * f64::from(packet.header)
}
