//! `xoff schemes`: every scheme with its parameters.
//!
//! The list is read from the scenario's JSON Schema, which is made from the types that parse a scenario. So
//! the list has exactly the keys that a scenario can have.

use std::process::ExitCode;

use miette::{IntoDiagnostic, miette};
use serde_json::{Map, Value};
use xoff_results::table::{Align, WIDTH, aligned, wrapped, wrapped_to};

use crate::{SchemesArgs, output, queue_map};

pub fn schemes(args: &SchemesArgs) -> miette::Result<ExitCode> {
    let text = match &args.topology {
        Some(topology) => queue_map::describe(args.scheme.as_deref(), topology, args.port.as_deref())?,
        None => list(args.scheme.as_deref())?,
    };
    output::print(&text)?;
    Ok(ExitCode::SUCCESS)
}

/// All schemes, or one, as text.
pub fn list(scheme: Option<&str>) -> miette::Result<String> {
    let schema = serde_json::to_value(xoff_plan::schema::schema()).into_diagnostic()?;
    let text = render(&schema)
        .ok_or_else(|| miette!("the schema of scenarios has an unexpected structure (bug in xoff)"))?;
    match scheme {
        Some(scheme) => one(&text, scheme),
        None => Ok(text),
    }
}

/// The part of the list that is about one scheme.
fn one(list: &str, scheme: &str) -> miette::Result<String> {
    let begins = |line: &str| line.starts_with("  ") && !line.starts_with("   ");
    let of = |line: &str| line.trim_start().split(':').next().unwrap_or("").to_string();
    let (mut text, mut names, mut inside) = (String::new(), Vec::new(), false);
    for line in list.lines() {
        if begins(line) {
            inside = of(line) == scheme;
            names.push(of(line));
        } else if !line.starts_with(' ') {
            inside = false;
        }
        if inside {
            text += line;
            text.push('\n');
        }
    }
    if text.is_empty() {
        return Err(miette!(
            help = format!("the schemes are {}", names.join(", ")),
            "unknown scheme `{scheme}`"
        ));
    }
    Ok(text)
}

/// All schemes as text; `None` if the schema lacks one of the tables.
fn render(schema: &Value) -> Option<String> {
    let top = schema["properties"].as_object()?;
    let mut text = String::from("flow_control.scheme\n");
    for variant in resolve(schema, top.get("flow_control")?)["oneOf"].as_array()? {
        let name = variant["properties"]["scheme"]["const"].as_str()?;
        let table = resolve(schema, variant);
        text += &heading(name, describe(variant));
        let empty = Map::new();
        let keys = table["properties"].as_object().unwrap_or(&empty);
        text += &parameters(schema, "", keys, &["scheme"]);
    }
    let transport = resolve(schema, top.get("transport")?)["properties"].as_object()?;
    text += "transport.kind\n";
    for (name, meaning) in choices(schema, transport.get("kind")?)? {
        text += &heading(name, meaning);
        // Go-back-N has one timeout, here; others have tables of their own.
        let own = top.get(name);
        let without = ["kind", "congestion_control", "rto"];
        text += &parameters(schema, "", transport, &without[..if own.is_some() { 3 } else { 2 }]);
        text += &own_table(schema, name, own)?;
    }
    text += "transport.congestion_control\n";
    for (name, meaning) in choices(schema, transport.get("congestion_control")?)? {
        text += &heading(name, meaning);
        text += &own_table(schema, name, top.get(name))?;
    }
    Some(text)
}

/// The parameters of a scheme's own table, and of those within it; nothing if it has none.
fn own_table(schema: &Value, name: &str, table: Option<&Value>) -> Option<String> {
    let Some(table) = table else { return Some(String::new()) };
    let keys = resolve(schema, table)["properties"].as_object()?;
    let nested = |v: &Value| resolve(schema, v)["properties"].is_object();
    let tables: Vec<&str> = keys.iter().filter(|(_, v)| nested(v)).map(|(k, _)| k.as_str()).collect();
    let mut text = parameters(schema, &format!("{name}."), keys, &tables);
    for key in tables {
        text += &own_table(schema, &format!("{name}.{key}"), keys.get(key))?;
    }
    Some(text)
}

/// A scheme's name and meaning; the meaning may begin with the name itself.
fn heading(name: &str, meaning: &str) -> String {
    let meaning = match meaning.split_once(": ") {
        Some((first, rest)) if first.eq_ignore_ascii_case(name) => rest,
        _ => meaning,
    };
    wrapped(&format!("  {name}: "), "    ", meaning)
}

fn describe(value: &Value) -> &str {
    value["description"].as_str().unwrap_or("")
}

/// The target of a `$ref` in `value`, or `value` itself. An optional type is its only other choice.
pub fn resolve<'a>(schema: &'a Value, value: &'a Value) -> &'a Value {
    let value =
        value["anyOf"].as_array().and_then(|any| any.iter().find(|v| v["$ref"].is_string())).unwrap_or(value);
    if let Some(name) = value["$ref"].as_str().and_then(|r| r.strip_prefix("#/$defs/")) {
        return &schema["$defs"][name];
    }
    value
}

/// The names and meanings of an enumeration.
fn choices<'a>(schema: &'a Value, value: &'a Value) -> Option<Vec<(&'a str, &'a str)>> {
    let variants = resolve(schema, value)["oneOf"].as_array()?;
    variants.iter().map(|v| Some((v["const"].as_str()?, describe(v)))).collect()
}

/// A table of the parameters `keys`, which have the prefix `prefix` in the scenario.
fn parameters(schema: &Value, prefix: &str, keys: &Map<String, Value>, without: &[&str]) -> String {
    let row = |(key, value): (&String, &Value)| {
        let default = match &value["default"] {
            Value::Null => "-".into(),
            Value::String(s) => s.clone(),
            other => other.to_string(),
        };
        [format!("    {prefix}{key}"), default, unit(schema, value), describe(value).to_string()]
    };
    let mut rows: Vec<[String; 4]> = vec![["    parameter", "default", "unit", "meaning"].map(String::from)];
    rows.extend(keys.iter().filter(|(key, _)| !without.contains(&key.as_str())).map(row));
    if rows.len() == 1 {
        return String::new();
    }
    // Columns are two blanks apart; the last one gets the remaining width.
    let width = |column: usize| rows.iter().map(|r| r[column].chars().count()).max().unwrap_or(0) + 2;
    let room = WIDTH.saturating_sub((0..3).map(width).sum());
    let mut cells = Vec::new();
    for [key, default, unit, meaning] in rows {
        let meaning = wrapped_to(room, "", "", &meaning);
        let mut lines = meaning.lines().map(String::from);
        cells.push(vec![key, default, unit, lines.next().unwrap_or_default()]);
        cells.extend(lines.map(|l| vec![String::new(), String::new(), String::new(), l]));
    }
    aligned(&cells, &[Align::Left; 4])
}

/// The unit or kind of value that a key takes.
fn unit(schema: &Value, value: &Value) -> String {
    let inner =
        value["anyOf"].as_array().and_then(|any| any.iter().find(|v| v["type"] != "null")).unwrap_or(value);
    if let Some(name) = inner["$ref"].as_str().and_then(|r| r.strip_prefix("#/$defs/")) {
        return match name {
            "Bytes" => "bytes".into(),
            "Span" => "time".into(),
            "Bandwidth" => "bits/s".into(),
            "Threshold" => "bytes, BDP".into(),
            "HeadroomRule" => "bytes, auto".into(),
            _ => unit(schema, &schema["$defs"][name]),
        };
    }
    match &inner["type"] {
        Value::String(kind) => kind.clone(),
        Value::Array(kinds) => {
            kinds.iter().filter_map(Value::as_str).find(|k| *k != "null").unwrap_or("-").to_string()
        }
        _ => "-".into(),
    }
}
