//! The reference of scenario files as Markdown, from their JSON Schema, which editors and the parser use too.

use std::fmt::Write;

use serde_json::{Map, Value};

use crate::schema::schema;

/// Quantities: their definition in the schema, how the page calls them, and their unit.
const QUANTITIES: [(&str, &str, &str); 5] = [
    ("Bandwidth", "rate", "bit/s"),
    ("Span", "time", "s"),
    ("Length", "length", "m"),
    ("Bytes", "size", "bytes"),
    ("Threshold", "threshold", "bytes or BDP"),
];
/// The default of a key, in words: an annotation of its schema beside `default`, for values that are derived
/// or come from elsewhere.
const DEFAULT: &str = "x-default";
/// The unit of a number, or the things that it counts: another annotation.
const UNIT: &str = "x-unit";

/// Every table and key of a scenario with type, range, default and meaning.
pub fn reference() -> String {
    let schema = serde_json::to_value(schema()).expect("a schema is JSON");
    Page { definitions: &schema["$defs"], text: String::new(), nested: Vec::new() }.write(&schema)
}

struct Page<'a> {
    definitions: &'a Value,
    text: String,
    /// Definitions of tables within tables, in the order in which the page comes to them.
    nested: Vec<&'a str>,
}

impl<'a> Page<'a> {
    fn write(mut self, schema: &'a Value) -> String {
        self.text.push_str(
            "# Scenario reference\n\n\
             Every table and key of a scenario file. `xoff schema --markdown` generates this page from the JSON \
             Schema. [The scenario file](SCENARIO.md) explains how the tables work together.\n\n\
             ## Values\n\n| kind | unit | written as | for example |\n|---|---|---|---|\n",
        );
        for (definition, name, unit) in QUANTITIES {
            let of = &self.definitions[definition];
            let examples: Vec<String> = list(&of["examples"]).iter().map(|e| format!("`{e}`")).collect();
            let _ =
                writeln!(self.text, "| {name} | {unit} | {} | {} |", description(of), examples.join(", "));
        }
        self.text.push_str(
            "\nWrite these values in quotes, and numbers without quotes. After the type of a number, parentheses \
             contain its unit or the things that it counts.\n\n\
             The column *default* contains the value that applies if the key is absent:\n\n\
             - *required*: the key must be present. Of several names, exactly one must be present.\n\
             - *derived*: xoff computes the value.\n\
             - *none*: there is no such limit, time or feature.\n\
             - A name is another key, whose value applies.\n",
        );
        let required = list(&schema["required"]);
        for (key, table) in object(&schema["properties"]) {
            let (header, definition) = match table["items"]["$ref"].as_str() {
                Some(of) => (format!("[[{key}]]"), of),
                None => (format!("[{key}]"), reference_of(table).expect("a table")),
            };
            let must = if required.contains(&Value::from(key.as_str())) { " *Required.*" } else { "" };
            let _ = write!(self.text, "\n## `{header}`\n\n{}{must}\n", description(table));
            let of = self.resolve(definition);
            match list(&of["oneOf"]) {
                [] => self.keys(of, &[]),
                kinds => self.kinds(key, kinds),
            }
        }
        self.text.push_str("\n## Tables within tables\n");
        let mut done = 0;
        while done < self.nested.len() {
            let name = self.nested[done];
            let of = &self.definitions[name];
            let _ = write!(self.text, "\n### {}\n\n{}\n", title(name), description(of));
            self.keys(of, &[]);
            done += 1;
        }
        self.text
    }

    fn resolve(&self, reference: &str) -> &'a Value {
        &self.definitions[definition(reference)]
    }

    /// A table whose first key chooses the others.
    fn kinds(&mut self, key: &str, kinds: &'a [Value]) {
        let mut before: Vec<(String, Map<String, Value>)> = Vec::new();
        for kind in kinds {
            let mut all = object(&kind["properties"]).clone();
            let (tag, name) = all
                .iter()
                .find_map(|(key, p)| Some((key.clone(), p["const"].as_str()?.to_string())))
                .expect("a kind has a name");
            all.remove(&tag);
            let mut whole = kind.clone();
            if let Some(of) = kind["$ref"].as_str() {
                // Its keys are in a definition of their own.
                let of = self.resolve(of);
                all.extend(object(&of["properties"]).clone());
                whole["required"] =
                    list(&kind["required"]).iter().chain(list(&of["required"])).cloned().collect();
            }
            whole["properties"] = Value::Object(all.clone());
            let _ = write!(self.text, "\n### `{key}.{tag} = \"{name}\"`\n\n{}\n", description(kind));
            // Of another one, all of whose keys it has, they are not repeated.
            let base = before
                .iter()
                .filter(|(_, keys)| keys.len() >= 3 && keys.iter().all(|(k, p)| all.get(k) == Some(p)))
                .max_by_key(|(_, keys)| keys.len());
            let skipped: Vec<&str> =
                base.map_or(Vec::new(), |(_, keys)| keys.keys().map(String::as_str).collect());
            self.keys(&whole, &skipped);
            if let Some((base, _)) = base {
                let heading = format!("{key}.{tag} = \"{base}\"");
                let also = if skipped.len() < all.len() { " also" } else { "" };
                let _ = writeln!(self.text, "\nIt{also} has all keys of [`{base}`](#{}).", anchor(&heading));
            }
            before.push((name, all));
        }
    }

    fn keys(&mut self, of: &Value, skipped: &[&str]) {
        let required = list(&of["required"]);
        let mut rows = String::new();
        for (key, property) in object(&of["properties"]) {
            if skipped.contains(&key.as_str()) {
                continue;
            }
            let default = self.default(property, required.contains(&Value::from(key.as_str())));
            let (value, meanings) = self.value(property, property[UNIT].as_str());
            let meaning = without_default(&description(property), &default);
            let _ = writeln!(rows, "| `{key}` | {value} | {default} | {meaning}{meanings} |");
        }
        if !rows.is_empty() {
            let _ = write!(self.text, "\n| key | value | default | meaning |\n|---|---|---|---|\n{rows}");
        }
    }

    fn default(&self, property: &Value, required: bool) -> String {
        if let Some(words) = property[DEFAULT].as_str() {
            return words.into();
        }
        match &property["default"] {
            Value::Null if required => "required".into(),
            Value::Null if property["type"] == "array" => "`[]`".into(),
            Value::Null if self.is_table(property) => "its own defaults".into(),
            Value::Null => String::new(),
            value => format!("`{}`", toml(value)),
        }
    }

    fn is_table(&self, property: &Value) -> bool {
        property["$ref"].as_str().is_some_and(|of| self.resolve(of).get("properties").is_some())
    }

    /// The allowed values, and the meaning of each name.
    fn value(&mut self, of: &Value, unit: Option<&str>) -> (String, String) {
        if let Some(reference) = of["$ref"].as_str() {
            return self.named(definition(reference), unit);
        }
        if let Some(value) = of.get("const") {
            return (format!("`{}`", toml(value)), String::new());
        }
        let names = list(&of["enum"]);
        if !names.is_empty() {
            return (
                names.iter().map(|n| format!("`{}`", toml(n))).collect::<Vec<_>>().join(", "),
                String::new(),
            );
        }
        let choices = list(&of["anyOf"]);
        if !choices.is_empty() {
            let (mut values, mut meanings) = (Vec::new(), String::new());
            for choice in choices.iter().filter(|c| c["type"] != "null") {
                let (value, meaning) = self.value(choice, unit);
                values.push(value);
                meanings.push_str(&meaning);
            }
            return (values.join(" or "), meanings);
        }
        let types = match &of["type"] {
            Value::Array(types) => types.iter().filter_map(Value::as_str).find(|t| *t != "null"),
            one => one.as_str(),
        };
        match types {
            Some("array") => {
                let (value, meanings) = self.value(&of["items"], unit);
                match of["maxItems"].as_u64() {
                    Some(n) => (format!("list of {n}: {value}"), meanings),
                    None => (format!("list of {value}"), meanings),
                }
            }
            Some("object") if of["additionalProperties"] == true => ("table of keys".into(), String::new()),
            Some("object") => {
                let (value, meanings) = self.value(&of["additionalProperties"], unit);
                (format!("table of names, each with {value}"), meanings)
            }
            Some("string") => ("text".into(), String::new()),
            Some(number) => (range(number, unit, of), String::new()),
            None => unreachable!("a value without a type: {of}"),
        }
    }

    fn named(&mut self, name: &str, unit: Option<&str>) -> (String, String) {
        if let Some((_, quantity, unit)) = QUANTITIES.iter().find(|(definition, ..)| *definition == name) {
            return (format!("[{quantity}](#values) ({unit})"), String::new());
        }
        let (name, of) =
            self.definitions.as_object().and_then(|d| d.get_key_value(name)).expect("a definition");
        let names = list(&of["oneOf"]);
        if !names.is_empty() {
            let values: Vec<String> = names.iter().map(|n| format!("`{}`", toml(&n["const"]))).collect();
            let mut meanings = String::new();
            for (value, name) in values.iter().zip(names) {
                let _ = write!(meanings, "<br>{value}: {}", description(name));
            }
            return (values.join(", "), meanings);
        }
        if of.get("properties").is_some() {
            if !self.nested.contains(&name.as_str()) {
                self.nested.push(name);
            }
            let title = title(name);
            return (format!("[{}](#{})", title.to_lowercase(), anchor(&title)), String::new());
        }
        self.value(of, unit)
    }
}

/// A number with its unit and its bounds; those of its machine type say nothing.
fn range(number: &str, unit: Option<&str>, of: &Value) -> String {
    let number = match unit {
        Some(unit) => format!("{number} ({unit})"),
        None => number.into(),
    };
    let (least, above) = (of["minimum"].as_f64(), of["exclusiveMinimum"].as_f64());
    let given = least.is_some_and(|least| least != 0.0);
    let most = of["maximum"].as_f64().filter(|m| ![255.0, 65535.0, 4294967295.0].contains(m) || given);
    match (above, least, most) {
        (Some(above), _, Some(most)) => format!("{number}, above {above}, at most {most}"),
        (Some(above), ..) => format!("{number}, above {above}"),
        (_, Some(least), Some(most)) => format!("{number}, {least} to {most}"),
        (_, Some(least), None) if given => format!("{number}, at least {least}"),
        (_, None, Some(most)) => format!("{number}, at most {most}"),
        _ => number,
    }
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn object(value: &Value) -> &Map<String, Value> {
    static NONE: std::sync::LazyLock<Map<String, Value>> = std::sync::LazyLock::new(Map::new);
    value.as_object().unwrap_or(&NONE)
}

/// The reference of a value that has one, and may be absent.
fn reference_of(value: &Value) -> Option<&str> {
    value["$ref"].as_str().or_else(|| list(&value["anyOf"]).iter().find_map(|v| v["$ref"].as_str()))
}

fn definition(reference: &str) -> &str {
    reference.rsplit('/').next().unwrap_or(reference)
}

/// A description in one line of a table.
fn description(of: &Value) -> String {
    let text = of["description"].as_str().unwrap_or_default();
    text.split_whitespace().collect::<Vec<_>>().join(" ").replace('|', "\\|")
}

/// A description without the sentence that only repeats the default.
fn without_default(meaning: &str, default: &str) -> String {
    let plain = |text: &str| text.replace(['`', '"', ' '], "").to_lowercase();
    for marker in ["Default: ", "Default "] {
        let Some((before, after)) = meaning.split_once(marker) else { continue };
        let (said, rest) = after.split_once(". ").unwrap_or((after.trim_end_matches('.'), ""));
        if plain(said) == plain(default) {
            return format!("{before}{rest}").trim_end().to_string();
        }
    }
    meaning.into()
}

/// The name of a definition in words: `SomeName` is "Some name".
fn title(name: &str) -> String {
    let mut title = String::new();
    for (i, c) in name.chars().enumerate() {
        if i > 0 && c.is_uppercase() {
            title.push(' ');
            title.extend(c.to_lowercase());
        } else {
            title.push(c);
        }
    }
    title
}

/// A value as TOML has it.
fn toml(value: &Value) -> String {
    match value {
        Value::Object(table) => {
            let keys: Vec<String> = table.iter().map(|(k, v)| format!("{k} = {}", toml(v))).collect();
            format!("{{ {} }}", keys.join(", "))
        }
        other => other.to_string(),
    }
}

/// The anchor of a heading, as GitHub and mdBook name it.
fn anchor(heading: &str) -> String {
    let kept = heading.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
    kept.map(|c| if c == ' ' { '-' } else { c.to_ascii_lowercase() }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The findings of `check` at each key of each table: the table's required keys, name, property.
    fn keys(value: &Value, check: &mut impl FnMut(&[Value], &str, &Value)) {
        if let Some(Value::Object(properties)) = value.get("properties") {
            properties.iter().for_each(|(name, p)| check(list(&value["required"]), name, p));
        }
        match value {
            Value::Object(map) => map.values().for_each(|v| keys(v, check)),
            Value::Array(values) => values.iter().for_each(|v| keys(v, check)),
            _ => {}
        }
    }

    #[test]
    fn every_key_of_the_schema_has_its_row() {
        let (page, schema) = (reference(), serde_json::to_value(schema()).unwrap());
        let mut count = 0;
        keys(&schema, &mut |_, name, property| {
            let table = ["items", "$ref"].iter().any(|k| property.get(k).is_some());
            let row = format!("| `{name}` | ");
            let shown = if property.get("const").is_some() {
                page.contains(&format!(".{name} = {}", property["const"]))
            } else {
                // A default may be only in its own column.
                page.contains(&row) && page.contains(description(property).split(" Default").next().unwrap())
                    || page.contains(&format!("[{name}]")) && table
                    || page.contains(&format!("## `[{name}]`"))
            };
            assert!(shown, "`{name}`: {property}");
            count += 1;
        });
        assert!(count > 500, "{count} keys");
        assert!(
            page.contains("### `flow_control.scheme = \"pfc\"`")
                && page.contains("(#flow_controlscheme--pfc)")
        );
    }

    /// The cells of each row of the tables of keys: key, value, default, meaning.
    fn rows(page: &str) -> Vec<[&str; 4]> {
        let rows = page.lines().filter(|line| line.starts_with("| `"));
        // Within a cell `|` is escaped.
        rows.map(|row| {
            let cells: Vec<&str> = row[2..].trim_end_matches(" |").splitn(4, " | ").collect();
            cells.try_into().unwrap_or_else(|_| panic!("{row}"))
        })
        .collect()
    }

    #[test]
    fn every_row_has_a_default_and_every_number_its_unit() {
        let page = reference();
        let rows = rows(&page);
        assert!(rows.len() > 400, "{} rows", rows.len());
        for [key, value, default, meaning] in rows {
            assert!(!default.trim().is_empty(), "{key} of {meaning:?} has no default: add `{DEFAULT}`");
            for number in ["integer", "number"] {
                let bare =
                    value.split(" or ").any(|v| v.ends_with(number) || v.contains(&format!("{number},")));
                assert!(!bare, "{key} of {meaning:?} has no unit: add `{UNIT}`");
            }
        }
    }

    #[test]
    fn required_keys_have_no_default() {
        let schema = serde_json::to_value(schema()).unwrap();
        keys(&schema, &mut |required, name, property| {
            let default = property.get("default").or(property.get(DEFAULT)).is_some();
            assert!(!(default && required.contains(&name.into())), "`{name}`: {property}");
        });
    }

    #[test]
    fn values_are_documented_with_their_units_and_ranges() {
        let description = |of: Value| range("integer", Some("hosts"), &of);
        assert_eq!(description(serde_json::json!({"minimum": 1, "maximum": 7})), "integer (hosts), 1 to 7");
        assert_eq!(description(serde_json::json!({"minimum": 0, "maximum": 7})), "integer (hosts), 0 to 7");
        assert_eq!(description(serde_json::json!({"minimum": 0, "maximum": 255})), "integer (hosts)");
        assert_eq!(description(serde_json::json!({"minimum": 2})), "integer (hosts), at least 2");
        let share = serde_json::json!({"exclusiveMinimum": 0, "maximum": 1});
        assert_eq!(range("number", None, &share), "number, above 0, at most 1");
        assert_eq!(without_default("A size. Default 3 kB.", "`\"3kB\"`"), "A size.");
        assert_eq!(without_default("A share. Default: 0.125. Above 0.", "`0.125`"), "A share. Above 0.");
        let sourced = "A share. Default: 0.125 (its paper).";
        assert_eq!(without_default(sourced, "`0.125`"), sourced);
        assert_eq!((title("SomeName"), anchor("`a.b = \"c\"`")), ("Some name".into(), "ab--c".into()));
    }
}
