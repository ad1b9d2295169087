//! Quantities as users write them, with units.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use xoff_kernel::time::Time;

/// Bits per second, above zero: `"100Gbps"`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Bandwidth(pub u64);
/// A span of time in picoseconds: `"1us"`, `"80km"` (5 us per km).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Span(pub Time);
/// A number of bytes: `"5MB"` (decimal), `"4KiB"` (binary).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Bytes(pub u64);
macro_rules! as_text { ($t:ident, $parse:ident) => {
    impl<'de> Deserialize<'de> for $t {
        fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
            let s = String::deserialize(d)?; let _ = s; unimplemented!()
        }
    }
    impl Serialize for $t { fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> { s.collect_str(&self.0) } }
    impl schemars::JsonSchema for $t {
        fn schema_name() -> std::borrow::Cow<'static, str> { stringify!($t).into() }
        fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema { schemars::json_schema!({"type": "string"}) }
    }
}; }
as_text!(Bandwidth, x);
as_text!(Span, x);
as_text!(Bytes, x);
