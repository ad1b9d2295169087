//! Which keys of a scenario file, and which of their choices, a scenario uses; and all there are,
//! from the JSON Schema.

use std::collections::BTreeSet;

use serde_json::Value;
use xoff_plan::schema::schema;

use crate::scenario::Scenario;

/// The schema, with its definitions.
pub struct Keys {
    schema: Value,
}

impl Default for Keys {
    fn default() -> Self {
        Self { schema: schema().to_value() }
    }
}

impl Keys {
    /// Every key and every choice: `traffic[poisson].load`, `transport.kind = irn`.
    pub fn all(&self) -> BTreeSet<String> {
        let mut out = BTreeSet::new();
        self.list(&self.schema, "", &mut out);
        out
    }

    /// Those that a scenario uses.
    pub fn used(&self, scenario: &Scenario) -> BTreeSet<String> {
        let mut out = BTreeSet::new();
        let table = serde_json::to_value(&scenario.table).unwrap_or_default();
        self.follow(&self.schema, &table, "", &mut out);
        out
    }

    /// The schema that a reference leads to, and those beside it.
    fn resolve<'s>(&'s self, schema: &'s Value) -> Vec<&'s Value> {
        let mut out = vec![schema];
        if let Some(name) = schema["$ref"].as_str().and_then(|r| r.strip_prefix("#/$defs/")) {
            out.extend(self.resolve(&self.schema["$defs"][name]));
        }
        for key in ["anyOf", "allOf"] {
            for part in schema[key].as_array().into_iter().flatten().filter(|p| p["type"] != "null") {
                out.extend(self.resolve(part));
            }
        }
        out
    }

    /// Variants of a table by the value of the key that distinguishes them; and that key.
    fn variants<'s>(&self, parts: &[&'s Value]) -> Vec<(&'s str, &'s str, &'s Value)> {
        let all = parts.iter().flat_map(|p| p["oneOf"].as_array().into_iter().flatten());
        all.filter_map(|variant| {
            let (key, tag) =
                variant["properties"].as_object()?.iter().find(|(_, p)| p["const"].is_string())?;
            Some((key.as_str(), tag["const"].as_str()?, variant))
        })
        .collect()
    }

    /// Plain choices: an enumeration of texts.
    fn choices<'s>(&self, parts: &[&'s Value]) -> BTreeSet<&'s str> {
        let mut out = BTreeSet::new();
        for part in parts {
            out.extend(part["enum"].as_array().into_iter().flatten().filter_map(Value::as_str));
            for one in part["oneOf"].as_array().into_iter().flatten() {
                out.extend(one["const"].as_str());
                out.extend(one["enum"].as_array().into_iter().flatten().filter_map(Value::as_str));
            }
        }
        out
    }

    fn list(&self, schema: &Value, at: &str, out: &mut BTreeSet<String>) {
        let parts = self.resolve(schema);
        out.extend(self.choices(&parts).iter().map(|choice| format!("{at} = {choice}")));
        for (_, tag, variant) in self.variants(&parts) {
            self.list(variant, &format!("{at}[{tag}]"), out);
        }
        for part in parts {
            self.list_items(part, at, out);
            for (key, property) in part["properties"].as_object().into_iter().flatten() {
                let here = join(at, key);
                out.insert(here.clone());
                self.list(property, &here, out);
            }
        }
    }

    fn list_items(&self, part: &Value, at: &str, out: &mut BTreeSet<String>) {
        if part["items"].is_object() {
            self.list(&part["items"], at, out);
        }
    }

    fn follow(&self, schema: &Value, value: &Value, at: &str, out: &mut BTreeSet<String>) {
        let parts = self.resolve(schema);
        if let Some(items) = value.as_array() {
            for part in parts.iter().filter(|p| p["items"].is_object()) {
                items.iter().for_each(|item| self.follow(&part["items"], item, at, out));
            }
            return;
        }
        if let Some(text) = value.as_str() {
            if self.choices(&parts).contains(text) {
                out.insert(format!("{at} = {text}"));
            }
            return;
        }
        let Some(table) = value.as_object() else { return };
        for (key, tag, variant) in self.variants(&parts) {
            // The first variant is the default where its key is left out.
            let written = table.get(key).and_then(Value::as_str);
            if written == Some(tag) {
                self.follow(variant, value, &format!("{at}[{tag}]"), out);
            }
        }
        for part in parts {
            for (key, property) in part["properties"].as_object().into_iter().flatten() {
                if let Some(inner) = table.get(key) {
                    let here = join(at, key);
                    out.insert(here.clone());
                    self.follow(property, inner, &here, out);
                }
            }
        }
    }
}

fn join(at: &str, key: &str) -> String {
    if at.is_empty() { key.to_string() } else { format!("{at}.{key}") }
}
