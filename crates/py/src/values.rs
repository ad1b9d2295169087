//! Python's values as TOML.

use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple};
use toml::{Table, Value};

use crate::errors;

/// Deepest nesting of a value.
const DEEPEST: usize = 64;

/// A value as `--set` takes it: a text as it is, unless it would be read as something else.
#[pyfunction]
pub fn toml_value(value: &Bound<'_, PyAny>, key: &str) -> PyResult<String> {
    let value = converted(value, key, 0)?;
    Ok(match &value {
        Value::String(text) if is_plain(text) => text.clone(),
        other => other.to_string(),
    })
}

/// A dictionary of tables as the text of a scenario.
#[pyfunction]
pub fn toml_document(tables: &Bound<'_, PyAny>) -> PyResult<String> {
    match converted(tables, "", 0)? {
        Value::Table(table) => toml::to_string(&table).map_err(|e| {
            errors::of_argument(tables.py(), format!("the scenario cannot be written: {e}"), None, "")
        }),
        _ => Err(errors::of_argument(
            tables.py(),
            format!("expected a dictionary of tables, found {}", kind(tables)),
            None,
            "pass a dictionary such as {\"topology\": {\"kind\": \"ring\"}}",
        )),
    }
}

/// Whether `--set` reads this as a text.
fn is_plain(text: &str) -> bool {
    let read = format!("v = {text}").parse::<Table>();
    read.is_err() && !text.is_empty() && text == text.trim()
}

fn kind(value: &Bound<'_, PyAny>) -> String {
    value.get_type().name().map_or_else(|_| "a value".into(), |name| name.to_string())
}

/// A value of Python's, or of NumPy's by `item()`.
fn converted(value: &Bound<'_, PyAny>, key: &str, depth: usize) -> PyResult<Value> {
    let py = value.py();
    let wrong = |why: String| {
        let remedy =
            "allowed are truth values, whole numbers of 64 bits, numbers, texts, lists and dictionaries";
        Err(errors::of_argument(py, format!("`{key}`: {why}"), Some(key).filter(|k| !k.is_empty()), remedy))
    };
    if depth > DEEPEST {
        return wrong(format!("the value is nested more than {DEEPEST} times"));
    }
    if value.is_instance_of::<PyBool>() {
        return Ok(Value::Boolean(value.extract()?));
    }
    if value.is_instance_of::<PyInt>() {
        return match value.extract::<i64>() {
            Ok(number) => Ok(Value::Integer(number)),
            Err(_) => wrong(format!("{value} has more than 64 bits")),
        };
    }
    if value.is_instance_of::<PyFloat>() {
        return Ok(Value::Float(value.extract()?));
    }
    if value.is_instance_of::<PyString>() {
        return match value.extract::<String>() {
            Ok(text) => Ok(Value::String(text)),
            Err(_) => wrong("the text is not valid Unicode".into()),
        };
    }
    if let Ok(dictionary) = value.cast::<PyDict>() {
        let mut table = Table::new();
        for (name, inner) in dictionary {
            let Ok(name) = name.extract::<String>() else {
                return wrong(format!("the key {name} is not a text"));
            };
            let below = if key.is_empty() { name.clone() } else { format!("{key}.{name}") };
            table.insert(name, converted(&inner, &below, depth + 1)?);
        }
        return Ok(Value::Table(table));
    }
    if value.is_instance_of::<PyList>() || value.is_instance_of::<PyTuple>() {
        let below = |(i, item): (usize, PyResult<Bound<'_, PyAny>>)| {
            converted(&item?, &format!("{key}.{i}"), depth + 1)
        };
        return Ok(Value::Array(value.try_iter()?.enumerate().map(below).collect::<PyResult<_>>()?));
    }
    match value.call_method0("item") {
        Ok(item) if !item.is(value) => converted(&item, key, depth + 1),
        _ => wrong(format!("a value of type {} has no form in a scenario", kind(value))),
    }
}
