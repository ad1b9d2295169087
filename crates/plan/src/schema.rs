//! The scenario's JSON Schema, from the types that parse it.

use crate::scenario::{Scenario, leave_out_nulls};
use schemars::{Schema, generate::SchemaSettings};
use serde_json::Value;

/// The JSON Schema (draft 2020-12) of a scenario, for editors and other tools.
pub fn schema() -> Schema {
    // Read and written forms have the same keys; this one says which may be left out.
    let settings = SchemaSettings::draft2020_12().for_deserialize();
    let mut schema = settings.into_generator().into_root_schema_for::<Scenario>();
    // A [flow_control] table without `scheme` is one of PFC.
    if let Some(required) =
        schema.pointer_mut("/$defs/FlowControl/oneOf/0/required").and_then(Value::as_array_mut)
    {
        required.retain(|key| key != "scheme");
    }
    schema.as_object_mut().into_iter().flat_map(|keys| keys.values_mut()).for_each(leave_out_nulls);
    schema
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

    #[test]
    fn the_scheme_may_be_left_out_of_pfc_only() {
        let schema = serde_json::to_value(schema()).unwrap();
        let variants = &schema["$defs"]["FlowControl"]["oneOf"];
        assert_eq!(variants[0]["properties"]["scheme"]["const"], "pfc");
        let needs =
            |i: usize| variants[i]["required"].as_array().is_some_and(|r| r.contains(&"scheme".into()));
        assert_eq!((needs(0), needs(1)), (false, true));
    }

    fn visit(value: &Value, keys: &mut usize) {
        match value {
            Value::Object(map) => {
                if let Some(Value::Object(properties)) = map.get("properties") {
                    for (name, property) in properties {
                        *keys += 1;
                        let tag = property.get("const").is_some();
                        let described = property.get("description").is_some();
                        assert!(tag || described, "`{name}` has no description: {property}");
                    }
                }
                map.values().for_each(|v| visit(v, keys));
            }
            Value::Array(list) => list.iter().for_each(|v| visit(v, keys)),
            _ => {}
        }
    }
}
