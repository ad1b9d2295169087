//! Values of JSON and YAML with the places where they are written.

use crate::builders::fault;
use crate::error::SpecError;
use saphyr::{LoadableYamlNode, MarkedYaml, Scalar, YamlData};

/// A value of a document.
#[derive(Clone, Copy)]
pub(super) struct Value<'t>(&'t MarkedYaml<'t>);

/// The document of a text. JSON is YAML, but for tabs between its values.
pub(super) fn parse<'t>(text: &'t str) -> Result<Vec<MarkedYaml<'t>>, SpecError> {
    MarkedYaml::load_from_str(text).map_err(|e| {
        let at = e.marker();
        fault(at.line(), e.info(), "correct the syntax of the file").in_column(at.col() + 1)
    })
}

/// The first document.
pub(super) fn first<'t>(documents: &'t [MarkedYaml<'t>]) -> Result<Value<'t>, SpecError> {
    documents.first().map(Value).ok_or_else(|| fault(1, "the file is empty", "write the network into it"))
}

impl<'t> Value<'t> {
    pub(super) fn line(self) -> usize {
        self.0.span.start.line()
    }

    pub(super) fn refused(self, message: impl std::fmt::Display, help: impl Into<String>) -> SpecError {
        fault(self.line(), message, help).in_column(self.0.span.start.col() + 1)
    }

    /// The value of a key, if this is a table that has it and the value is not null.
    pub(super) fn get(self, key: &str) -> Option<Self> {
        self.entries().find_map(|(name, value)| (name == key && !value.is_null()).then_some(value))
    }

    fn is_null(self) -> bool {
        matches!(self.0.data, YamlData::Value(Scalar::Null))
    }

    /// The entries of a table, in the order of the file; none if this is not a table.
    pub(super) fn entries(self) -> impl Iterator<Item = (&'t str, Self)> {
        let YamlData::Mapping(map) = &self.0.data else { return Entries(None) };
        Entries(Some(map.iter()))
    }

    pub(super) fn items(self) -> &'t [MarkedYaml<'t>] {
        match &self.0.data {
            YamlData::Sequence(items) => items,
            _ => &[],
        }
    }

    pub(super) fn list(self) -> impl Iterator<Item = Self> {
        self.items().iter().map(Value)
    }

    pub(super) fn is_list(self) -> bool {
        matches!(self.0.data, YamlData::Sequence(_))
    }

    /// Text, or a number as text.
    pub(super) fn text(self) -> Option<String> {
        match &self.0.data {
            YamlData::Value(Scalar::String(text)) => Some(text.to_string()),
            YamlData::Value(Scalar::Integer(number)) => Some(number.to_string()),
            YamlData::Value(Scalar::FloatingPoint(number)) => Some(number.to_string()),
            _ => None,
        }
    }
}

/// Entries of a table whose keys are text.
struct Entries<I>(Option<I>);

impl<'t, I: Iterator<Item = (&'t MarkedYaml<'t>, &'t MarkedYaml<'t>)>> Iterator for Entries<I> {
    type Item = (&'t str, Value<'t>);

    fn next(&mut self) -> Option<Self::Item> {
        self.0.as_mut()?.find_map(|(key, value)| match &key.data {
            YamlData::Value(Scalar::String(name)) => Some((name.as_ref(), Value(value))),
            _ => None,
        })
    }
}
