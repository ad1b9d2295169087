//! Quantities as users write them, with units.
//!
//! Every quantity is parsed by exact decimal arithmetic: `"1.5us"` is 1,500,000 picoseconds, and a value that
//! falls between two picoseconds (or bytes, or bits per second) is an error instead of being rounded.

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use std::fmt;
use std::str::FromStr;
use xoff_kernel::time::Time;

/// Bits per second, above zero: `"100Gbps"`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bandwidth(pub u64);

/// A span of time in picoseconds: `"1us"`, `"80km"` (5 us per km).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span(pub Time);

/// The length of a cable in millimetres: `"600km"`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Length(pub u64);

impl Length {
    /// How long light takes through fibre of this length, at 5 us per km as the field counts it: exact, as a
    /// millimetre is 5 ps. Beyond 64 bits of picoseconds it is the largest span.
    pub fn delay(self) -> Span {
        Span(self.0.saturating_mul(5))
    }
}

/// A number of bytes: `"5MB"` (decimal), `"4KiB"` (binary).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bytes(pub u64);

/// A queue or buffer threshold: bytes, or a multiple of the link's one-hop
/// bandwidth-delay product (rate × one-way delay), `"6bdp"`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Threshold {
    Bytes(Bytes),
    /// So many thousandths of a one-hop BDP.
    Bdp(u64),
}

impl Threshold {
    /// The threshold in bytes on a link of `rate_bps` bits per second and `delay_ps` picoseconds one way,
    /// rounded down to whole bytes. A product beyond 64 bits becomes `u64::MAX`, more than any buffer.
    pub fn resolve(&self, rate_bps: u64, delay_ps: Time) -> u64 {
        /// Bit-picoseconds of a thousandth of a byte-second.
        const UNIT: u128 = 8 * 1_000_000_000_000 * 1_000;
        match *self {
            Threshold::Bytes(bytes) => bytes.0,
            Threshold::Bdp(milli) => {
                let product = u128::from(rate_bps) * u128::from(delay_ps);
                let milli = u128::from(milli);
                // Split, so that no intermediate product outgrows 128 bits unless the result outgrows 64.
                milli
                    .checked_mul(product / UNIT)
                    .and_then(|whole| whole.checked_add(milli * (product % UNIT) / UNIT))
                    .and_then(|bytes| u64::try_from(bytes).ok())
                    .unwrap_or(u64::MAX)
            }
        }
    }
}

/// Why a text is not the quantity that it should be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuantityError {
    pub text: String,
    pub problem: Problem,
    quantity: &'static Quantity,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Problem {
    Empty,
    Negative,
    /// No digits, or digits in a form that is not read (`1e9`, `.5`, `1__0`, NaN).
    NotANumber,
    MissingUnit,
    UnknownUnit(String),
    /// Zero, where it makes no sense.
    Zero,
    /// Beyond 64 bits of the finest unit.
    TooLarge,
    /// Not a whole number of the finest unit.
    TooFine,
}

/// The name of a quantity and its units, finest first.
#[derive(Debug, PartialEq, Eq)]
struct Quantity {
    /// With its article.
    noun: &'static str,
    /// Names and factors; of two names for one factor the first is printed.
    units: &'static [(&'static str, u64)],
    /// The units as an error lists them.
    list: &'static str,
    /// As an error shows it.
    example: &'static str,
    /// The finest step, in words.
    step: &'static str,
    /// In the JSON Schema: what it is, its units as a regular expression, and examples.
    description: &'static str,
    pattern: &'static str,
    examples: &'static [&'static str],
}

static RATE: Quantity = Quantity {
    noun: "a rate",
    units: &[
        ("bps", 1),
        ("kbps", 1_000),
        ("Mbps", 1_000_000),
        ("Gbps", 1_000_000_000),
        ("Tbps", 1_000_000_000_000),
    ],
    list: "bps, kbps, Mbps, Gbps or Tbps",
    example: "100Gbps",
    step: "1 bps",
    description: "A rate above zero: a number with bps, kbps, Mbps, Gbps or Tbps.",
    pattern: "bps|kbps|Mbps|Gbps|Tbps",
    examples: &["100Gbps", "2.5Gbps"],
};

/// 5 ns per metre: light in fibre, as the field counts it.
static SPAN: Quantity = Quantity {
    noun: "a time",
    units: &[
        ("ps", 1),
        ("ns", 1_000),
        ("us", 1_000_000),
        ("\u{b5}s", 1_000_000),
        ("\u{3bc}s", 1_000_000),
        ("ms", 1_000_000_000),
        ("s", 1_000_000_000_000),
        ("m", 5_000),
        ("km", 5_000_000),
    ],
    list: "ps, ns, us, ms or s (or a cable's length in m or km, at 5 ns per metre)",
    example: "1.5us",
    step: "1 ps",
    description: "A time: a number with ps, ns, us, ms or s; or a cable's length in m or km, at 5 ns per metre.",
    pattern: "ps|ns|us|\u{b5}s|\u{3bc}s|ms|s|m|km",
    examples: &["1us", "1.5ms", "80km"],
};

static LENGTH: Quantity = Quantity {
    noun: "a length",
    units: &[("mm", 1), ("m", 1_000), ("km", 1_000_000)],
    list: "mm, m or km",
    example: "600km",
    step: "1 mm",
    description: "A cable's length: a number with mm, m or km.",
    pattern: "mm|m|km",
    examples: &["600km", "80m"],
};

static SIZE: Quantity = Quantity {
    noun: "a size",
    units: BYTE_UNITS,
    list: "B, kB, MB, GB, KiB, MiB or GiB",
    example: "5MB",
    step: "1 byte",
    description: "A size: a number with B, kB, MB, GB (powers of 1000), KiB, MiB or GiB (powers of 1024).",
    pattern: "B|kB|MB|GB|KiB|MiB|GiB",
    examples: &["5MB", "4KiB"],
};

static THRESHOLD: Quantity = Quantity {
    noun: "a threshold",
    units: BYTE_UNITS,
    list: "B, kB, MB, GB, KiB, MiB, GiB or bdp",
    example: "6bdp",
    step: "1 byte or 0.001bdp",
    description: "A threshold: a size (\"75kB\"), or a multiple of the link's one-hop bandwidth-delay product (\"6bdp\").",
    pattern: "B|kB|MB|GB|KiB|MiB|GiB|bdp",
    examples: &["6bdp", "75kB"],
};

const BYTE_UNITS: &[(&str, u64)] = &[
    ("B", 1),
    ("kB", 1_000),
    ("KiB", 1 << 10),
    ("MB", 1_000_000),
    ("MiB", 1 << 20),
    ("GB", 1_000_000_000),
    ("GiB", 1 << 30),
];

impl fmt::Display for QuantityError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Quantity { noun, list, example, step, units, .. } = self.quantity;
        let text = &self.text;
        let remedy = format!("write a number with {list}, such as \"{example}\"");
        match &self.problem {
            Problem::Empty => write!(f, "this value is empty, expected {noun}: {remedy}"),
            Problem::Negative => write!(f, "`{text}` is negative, but {noun} cannot be; {remedy}"),
            Problem::NotANumber => write!(
                f,
                "`{text}` is not {noun}: it must begin with a decimal number (digits, `_` between \
                 digits, a point); {remedy}"
            ),
            Problem::MissingUnit => write!(f, "`{text}` has no unit: {remedy}"),
            Problem::UnknownUnit(unit) => {
                write!(f, "`{text}` is not {noun}: unknown unit `{unit}`")?;
                let near = |name: &str| name.eq_ignore_ascii_case(unit) || name == format!("{unit}ps");
                if let Some((name, _)) = units.iter().find(|(name, _)| near(name)) {
                    write!(f, " (did you mean `{name}`?)")?;
                }
                write!(f, "; {remedy}")
            }
            Problem::Zero => write!(f, "`{text}` is zero: {noun} must be positive, such as \"{example}\""),
            Problem::TooLarge => {
                write!(f, "`{text}` is too large: the maximum is {}{}", u64::MAX, self.quantity.units[0].0)
            }
            Problem::TooFine => write!(f, "`{text}` is too precise: write a whole multiple of {step}"),
        }
    }
}

impl std::error::Error for QuantityError {}

/// A decimal number: digits before the point, digits after it (no trailing zeros).
struct Decimal<'a> {
    whole: &'a str,
    fraction: &'a str,
}

fn split(text: &str) -> Result<(Decimal<'_>, &str), Problem> {
    let text = text.trim();
    if text.is_empty() {
        return Err(Problem::Empty);
    }
    if text.starts_with(['-', '\u{2212}']) {
        return Err(Problem::Negative);
    }
    let end = text.find(|c: char| !(c.is_ascii_digit() || c == '_' || c == '.')).unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
    let plain = |digits: &str| {
        digits.split('_').all(|run| !run.is_empty() && run.bytes().all(|b| b.is_ascii_digit()))
    };
    // `1e9bps` would otherwise be reported as the strange unit `e9bps`.
    let exponent =
        unit.starts_with(['e', 'E']) && unit[1..].starts_with(|c: char| "+-0123456789".contains(c));
    if !plain(whole) || !plain(fraction) || exponent {
        return Err(Problem::NotANumber);
    }
    let unit = unit.trim_start();
    if unit.is_empty() {
        return Err(Problem::MissingUnit);
    }
    let fraction = fraction.trim_end_matches(['0', '_']);
    Ok((Decimal { whole, fraction }, unit))
}

impl Decimal<'_> {
    /// The number times `factor`, exactly.
    fn times(&self, factor: u64) -> Result<u64, Problem> {
        let digits = |text: &str| {
            text.bytes()
                .filter(u8::is_ascii_digit)
                .try_fold(0u128, |sum, b| sum.checked_mul(10)?.checked_add(u128::from(b - b'0')))
        };
        let factor = u128::from(factor);
        let places = self.fraction.bytes().filter(u8::is_ascii_digit).count() as u32;
        let (Some(scale), Some(part)) = (10u128.checked_pow(places), digits(self.fraction)) else {
            return Err(Problem::TooFine);
        };
        // Reduced first: then the fraction is exact if and only if the rest of
        // the scale divides it, and no product overflows.
        let common = gcd(scale, factor);
        let (scale, step) = (scale / common, factor / common);
        if !part.is_multiple_of(scale) {
            return Err(Problem::TooFine);
        }
        digits(self.whole)
            .and_then(|whole| whole.checked_mul(factor)?.checked_add(part / scale * step))
            .and_then(|value| u64::try_from(value).ok())
            .ok_or(Problem::TooLarge)
    }
}

/// A plain number such as `1.5` times `factor`, exactly; `None` for other texts, and for results that are not whole
/// or do not fit.
pub(crate) fn scaled(number: &str, factor: u64) -> Option<u64> {
    let with_unit = format!("{number}x");
    split(&with_unit).and_then(|(number, _)| number.times(factor)).ok()
}

fn gcd(mut a: u128, mut b: u128) -> u128 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

fn parse(quantity: &'static Quantity, text: &str) -> Result<u64, QuantityError> {
    split(text)
        .and_then(|(number, unit)| match quantity.units.iter().find(|(name, _)| *name == unit) {
            Some(&(_, factor)) => match number.times(factor)? {
                0 if *quantity == RATE => Err(Problem::Zero),
                value => Ok(value),
            },
            None => Err(Problem::UnknownUnit(unit.to_string())),
        })
        .map_err(|problem| QuantityError { text: text.trim().to_string(), problem, quantity })
}

/// Writes `value` in the largest unit of which it is a whole multiple.
fn print(quantity: &Quantity, value: u64, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let mut best = quantity.units[0];
    let metric = |name: &str| name.ends_with('m');
    for &(name, factor) in quantity.units {
        // Lengths are read as times, but a span of time prints as time.
        let alike = metric(name) == metric(quantity.units[0].0);
        if value != 0 && value.is_multiple_of(factor) && factor > best.1 && alike {
            best = (name, factor);
        }
    }
    write!(f, "{}{}", value / best.1, best.0)
}

/// Text of a whole number of the finest units.
macro_rules! whole {
    ($($type:ident: $quantity:ident),*) => {$(
        impl FromStr for $type {
            type Err = QuantityError;

            fn from_str(text: &str) -> Result<Self, QuantityError> {
                parse(&$quantity, text).map($type)
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                print(&$quantity, self.0, f)
            }
        }
    )*};
}
whole!(Bandwidth: RATE, Span: SPAN, Length: LENGTH, Bytes: SIZE);

impl FromStr for Threshold {
    type Err = QuantityError;

    fn from_str(text: &str) -> Result<Self, QuantityError> {
        match split(text) {
            Ok((number, "bdp")) => number.times(1_000).map(Threshold::Bdp).map_err(|problem| QuantityError {
                text: text.trim().to_string(),
                problem,
                quantity: &THRESHOLD,
            }),
            _ => parse(&THRESHOLD, text).map(|bytes| Threshold::Bytes(Bytes(bytes))),
        }
    }
}

impl fmt::Display for Threshold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Threshold::Bytes(bytes) => bytes.fmt(f),
            Threshold::Bdp(milli) if milli.is_multiple_of(1_000) => write!(f, "{}bdp", milli / 1_000),
            Threshold::Bdp(milli) => {
                let fraction = format!("{:03}", milli % 1_000);
                write!(f, "{}.{}bdp", milli / 1_000, fraction.trim_end_matches('0'))
            }
        }
    }
}

/// Reads a quantity from text, and refuses anything else by naming the units.
struct TextVisitor<T> {
    quantity: &'static Quantity,
    parse: fn(&str) -> Result<T, QuantityError>,
}

impl<T> TextVisitor<T> {
    fn bare<E: de::Error>(&self, value: &dyn fmt::Display) -> E {
        let Quantity { list, example, .. } = self.quantity;
        E::custom(format!("{value} has no unit: write text in quotes with {list}, such as \"{example}\""))
    }
}

impl<T> de::Visitor<'_> for TextVisitor<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} as text, such as \"{}\"", self.quantity.noun, self.quantity.example)
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<T, E> {
        (self.parse)(text).map_err(E::custom)
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> Result<T, E> {
        Err(self.bare(&value))
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<T, E> {
        Err(self.bare(&value))
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<T, E> {
        Err(self.bare(&value))
    }
}

/// Text in files and schemas for a quantity: serde and schemars.
macro_rules! as_text {
    ($($type:ident: $quantity:ident),*) => {$(
        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                deserializer.deserialize_any(TextVisitor { quantity: &$quantity, parse: $type::from_str })
            }
        }

        impl Serialize for $type {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl schemars::JsonSchema for $type {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($type).into()
            }

            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                let Quantity { description, pattern, examples, .. } = $quantity;
                schemars::json_schema!({
                    "type": "string",
                    "description": description,
                    "pattern": format!(r"^\s*[0-9]+(_[0-9]+)*(\.[0-9]+(_[0-9]+)*)?\s*({pattern})\s*$"),
                    "examples": examples
                })
            }
        }
    )*};
}
as_text!(Bandwidth: RATE, Span: SPAN, Length: LENGTH, Bytes: SIZE, Threshold: THRESHOLD);

#[cfg(test)]
mod tests;
