//! Values that can be written in several forms: their text by hand.

use super::{LoadOf, PortSet, Retries, Sizes, SizesTable};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{Error as _, MapAccess, SeqAccess, Unexpected, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use std::borrow::Cow;
use std::fmt;
use xoff_net::units::Bandwidth;

impl Serialize for LoadOf {
    fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        match self {
            LoadOf::Saturation => s.serialize_str("saturation"),
            LoadOf::HostLinks => s.serialize_str("host-links"),
            LoadOf::Each(rate) => rate.serialize(s),
        }
    }
}

impl<'de> Deserialize<'de> for LoadOf {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        let text = String::deserialize(d)?;
        match text.as_str() {
            "saturation" => Ok(LoadOf::Saturation),
            "host-links" => Ok(LoadOf::HostLinks),
            other => other
                .parse()
                .map(LoadOf::Each)
                .map_err(|e| D::Error::custom(format!("{e}; or write \"saturation\" or \"host-links\""))),
        }
    }
}

impl JsonSchema for LoadOf {
    fn schema_name() -> Cow<'static, str> {
        "LoadOf".into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        json_schema!({ "anyOf": [
            { "enum": ["saturation", "host-links"] },
            generator.subschema_for::<Bandwidth>()
        ] })
    }
}

impl<'de> Deserialize<'de> for Sizes {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        struct V;
        impl<'de> Visitor<'de> for V {
            type Value = Sizes;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a name such as \"websearch\", a size such as \"1MB\", or a table with `uniform` or `file`")
            }
            fn visit_str<E>(self, v: &str) -> Result<Sizes, E> {
                Ok(Sizes::Text(v.to_string()))
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Sizes, A::Error> {
                SizesTable::deserialize(MapAccessDeserializer::new(map)).map(Sizes::Table)
            }
        }
        d.deserialize_any(V)
    }
}

impl Serialize for PortSet {
    fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        match self {
            PortSet::None => s.serialize_str("none"),
            PortSet::All => s.serialize_str("all"),
            PortSet::Switches => s.serialize_str("switches"),
            PortSet::Named(names) => names.serialize(s),
        }
    }
}

impl<'de> Deserialize<'de> for PortSet {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        struct V;
        impl<'de> Visitor<'de> for V {
            type Value = PortSet;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("\"all\", \"switches\", \"none\" or a list of ports such as [\"S0.0:1\"]")
            }
            fn visit_str<E: serde::de::Error>(self, v: &str) -> Result<PortSet, E> {
                match v {
                    "none" => Ok(PortSet::None),
                    "all" => Ok(PortSet::All),
                    "switches" => Ok(PortSet::Switches),
                    _ => Err(E::unknown_variant(v, &["all", "switches", "none"])),
                }
            }
            fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<PortSet, A::Error> {
                Vec::deserialize(SeqAccessDeserializer::new(seq)).map(PortSet::Named)
            }
        }
        d.deserialize_any(V)
    }
}

impl JsonSchema for PortSet {
    fn schema_name() -> Cow<'static, str> {
        "PortSet".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "anyOf": [
            { "enum": ["all", "switches", "none"] },
            { "type": "array", "items": { "type": "string" } }
        ] })
    }
}

impl Serialize for Retries {
    fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        match self {
            Retries::Limit(retries) => s.serialize_u64(*retries),
            Retries::Unlimited => s.serialize_str("unlimited"),
        }
    }
}

impl<'de> Deserialize<'de> for Retries {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        struct V;
        impl Visitor<'_> for V {
            type Value = Retries;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a whole number such as 7, or \"unlimited\"")
            }
            fn visit_str<E: serde::de::Error>(self, v: &str) -> Result<Retries, E> {
                match v {
                    "unlimited" => Ok(Retries::Unlimited),
                    _ => Err(E::unknown_variant(v, &["unlimited"])),
                }
            }
            fn visit_i64<E: serde::de::Error>(self, v: i64) -> Result<Retries, E> {
                let retries = u64::try_from(v);
                retries.map(Retries::Limit).map_err(|_| E::invalid_value(Unexpected::Signed(v), &self))
            }
            fn visit_u64<E>(self, v: u64) -> Result<Retries, E> {
                Ok(Retries::Limit(v))
            }
        }
        d.deserialize_any(V)
    }
}

impl JsonSchema for Retries {
    fn schema_name() -> Cow<'static, str> {
        "Retries".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "anyOf": [
            { "type": "integer", "minimum": 0, "maximum": 100 },
            { "enum": ["unlimited"] }
        ] })
    }
}
