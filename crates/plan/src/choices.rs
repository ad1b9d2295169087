//! The names among which a scenario chooses: the key that takes each name, and the kind of its object.

use crate::scenario::{CongestionControl, LoadBalancing, Traffic, TransportKind};
use schemars::{JsonSchema, Schema, schema_for};
use serde_json::Value;
use xoff_net::builders::TopologySpec;
use xoff_net::routing::RoutingKind;
use xoff_schemes::flow_control::FlowControlKeys;

struct Choice {
    /// The key, list positions left out.
    key: &'static str,
    noun: &'static str,
    names: Vec<String>,
}

/// All such choices; a name that is in several of them counts for the first.
fn choices() -> [Choice; 7] {
    let choice = |key, noun, names: Vec<String>| Choice { key, noun, names };
    let texts = |names: &[&str]| names.iter().map(ToString::to_string).collect();
    [
        choice("flow_control.scheme", "flow control", texts(&FlowControlKeys::names())),
        choice("transport.kind", "transport", names_of::<TransportKind>()),
        choice("transport.congestion_control", "congestion control", names_of::<CongestionControl>()),
        choice("routing.load_balancing", "load-balancing scheme", names_of::<LoadBalancing>()),
        choice("routing.kind", "routing scheme", names_of::<RoutingKind>()),
        choice("topology.kind", "topology", texts(TopologySpec::KINDS)),
        choice("traffic.kind", "traffic kind", texts(Traffic::KINDS)),
    ]
}

/// The names of an enumeration without contents.
fn names_of<T: JsonSchema>() -> Vec<String> {
    fn collect(value: &Value, names: &mut Vec<String>) {
        match value {
            Value::Object(entries) => {
                for (key, value) in entries {
                    match (key.as_str(), value) {
                        ("const", Value::String(name)) => names.push(name.clone()),
                        ("enum", Value::Array(all)) => {
                            names.extend(all.iter().filter_map(Value::as_str).map(String::from));
                        }
                        ("oneOf" | "anyOf", below) => collect(below, names),
                        _ => {}
                    }
                }
            }
            Value::Array(values) => values.iter().for_each(|value| collect(value, names)),
            _ => {}
        }
    }
    let schema: Schema = schema_for!(T);
    let mut names = Vec::new();
    collect(schema.as_value(), &mut names);
    names
}

/// A path without list positions: `traffic.kind` of `traffic[1].kind`.
fn key_of(path: &str) -> String {
    let (mut key, mut inside) = (String::new(), false);
    for c in path.chars() {
        inside = c == '[' || inside && c != ']';
        if !inside && c != ']' {
            key.push(c);
        }
    }
    key
}

/// The noun for the choices of the key at `path`, such as "transport".
pub(crate) fn noun(path: &str) -> &'static str {
    let key = key_of(path);
    choices().iter().find(|c| c.key == key).map_or("value", |c| c.noun)
}

/// Names the right key of `word`, if it is a name of another kind than the choices of `path`.
pub(crate) fn elsewhere(path: &str, word: &str) -> Option<String> {
    let (key, word) = (key_of(path), word.to_lowercase());
    let choice = choices().into_iter().find(|c| c.key != key && c.names.contains(&word))?;
    let article = crate::document::with_article(choice.noun);
    Some(match choice.key {
        "topology.kind" => format!("`{word}` is {article}: write kind = \"{word}\" in [topology]"),
        "traffic.kind" => format!("`{word}` is {article}: write kind = \"{word}\" in a [[traffic]] table"),
        key => format!("`{word}` is {article}: write {key} = \"{word}\""),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_choice_knows_its_names() {
        let known = |key: &str, name: &str| {
            choices().iter().any(|c| c.key == key && c.names.iter().any(|n| n == name))
        };
        for (key, name) in [
            ("flow_control.scheme", FlowControlKeys::default().name()),
            ("transport.kind", "go-back-n"),
            ("transport.kind", "irn"),
            ("transport.congestion_control", "dcqcn"),
            ("routing.load_balancing", "spray"),
            ("routing.kind", "shortest-path"),
            ("topology.kind", "fat-tree"),
            ("traffic.kind", "incast"),
        ] {
            assert!(known(key, name), "{key} = {name}");
        }
    }

    #[test]
    fn a_name_is_sent_to_its_key() {
        let irn = "`irn` is a transport: write transport.kind = \"irn\"";
        assert_eq!(elsewhere("flow_control.scheme", "irn").as_deref(), Some(irn));
        assert_eq!(elsewhere("transport.kind", "irn"), None);
        assert_eq!(elsewhere("transport.kind", "nothing"), None);
        let incast = "`incast` is a traffic kind: write kind = \"incast\" in a [[traffic]] table";
        assert_eq!(elsewhere("topology.kind", "incast").as_deref(), Some(incast));
        assert_eq!(noun("traffic[12].kind"), "traffic kind");
        assert_eq!(noun("dcqcn.preset"), "value");
    }
}
