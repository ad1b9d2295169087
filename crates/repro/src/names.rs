//! Names by pattern: the restriction of a metric.

use std::{borrow::Cow, fmt};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, de::value::SeqAccessDeserializer};
use xoff_results::columns::read::Texts;

/// One name or several; `*` in a name matches any characters.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Names(pub Vec<String>);

impl Names {
    pub fn has(&self, name: &str) -> bool {
        self.0.iter().any(|pattern| matches(pattern, name))
    }
}

/// Which rows of a column have one of these names: a test of a row's number. Without names every row.
pub fn named<'a>(texts: &'a Texts, names: Option<&Names>) -> impl Fn(usize) -> bool + use<'a> {
    let one_of = names.map(|names| texts.select(&|text| names.has(text)));
    move |row| one_of.as_ref().is_none_or(|one_of| one_of(row))
}

/// Whether `pattern`, in which `*` matches any characters, matches the whole `name`.
fn matches(pattern: &str, name: &str) -> bool {
    let Some((head, rest)) = pattern.split_once('*') else { return pattern == name };
    let Some(mut left) = name.strip_prefix(head) else { return false };
    let mut parts: Vec<&str> = rest.split('*').collect();
    let tail = parts.pop().expect("a split has a part");
    // Each part as early as it comes leaves the most to the next.
    for part in parts {
        let Some(at) = left.find(part) else { return false };
        left = &left[at + part.len()..];
    }
    left.ends_with(tail)
}

impl<'de> Deserialize<'de> for Names {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        struct V;
        impl<'de> Visitor<'de> for V {
            type Value = Names;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a name such as \"S0.1:*\", or a list of names")
            }
            fn visit_str<E>(self, v: &str) -> Result<Names, E> {
                Ok(Names(vec![v.to_string()]))
            }
            fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<Names, A::Error> {
                Vec::<String>::deserialize(SeqAccessDeserializer::new(seq)).map(Names)
            }
        }
        d.deserialize_any(V)
    }
}

impl JsonSchema for Names {
    fn schema_name() -> Cow<'static, str> {
        "Names".into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        json_schema!({ "anyOf": [{ "type": "string" }, generator.subschema_for::<Vec<String>>()] })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_match_any_characters() {
        for (pattern, name, is) in [
            ("H1", "H1", true),
            ("H1", "H10", false),
            ("H*", "H10", true),
            ("*", "", true),
            ("S0.*:1", "S0.12:1", true),
            ("S0.*:1", "S0.12:11", false),
            ("S0.*:2", "S0.12:11", false),
            ("a*b*c", "abbc", true),
            ("a*b*c", "acb", false),
            ("a*a", "a", false),
            ("*ab*", "xaab", true),
        ] {
            assert_eq!(matches(pattern, name), is, "{pattern} {name}");
        }
        assert!(Names(vec!["x".into(), "y*".into()]).has("yes"));
    }
}
