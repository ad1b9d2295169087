//! The scenario's JSON Schema, from the types that parse it.

use crate::scenario::Scenario;
use schemars::transform::RecursiveTransform;
use schemars::{Schema, generate::SchemaSettings};
use serde_json::Value;

/// The JSON Schema (draft 2020-12) of a scenario, for editors and other tools.
pub fn schema() -> Schema {
    // Serialised and parsed forms have the same keys; "deserialize" also says
    // which may be left out.
    let settings = SchemaSettings::draft2020_12().for_deserialize().with_transform(RecursiveTransform(close));
    settings.into_generator().into_root_schema_for::<Scenario>()
}

/// Objects of one variant of an enum allow no further keys either: each lists
/// its own tag beside the keys of the table it refers to.
fn close(schema: &mut Schema) {
    let Some(object) = schema.as_object_mut() else { return };
    if object.contains_key("$ref") && object.contains_key("properties") {
        object.insert("unevaluatedProperties".to_string(), Value::Bool(false));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_is_described() {
        let schema = serde_json::to_value(schema()).unwrap();
        let mut keys = 0;
        visit(&schema, &mut keys);
        assert!(keys > 60, "{keys} keys");
    }

    fn visit(value: &Value, keys: &mut usize) {
        match value {
            Value::Object(map) => {
                if let Some(Value::Object(properties)) = map.get("properties") {
                    for (name, property) in properties {
                        *keys += 1;
                        let tag = property.get("const").is_some();
                        let told = property.get("description").is_some();
                        assert!(tag || told, "`{name}` has no description: {property}");
                    }
                }
                map.values().for_each(|v| visit(v, keys));
            }
            Value::Array(list) => list.iter().for_each(|v| visit(v, keys)),
            _ => {}
        }
    }
}
