//! A scenario's text as a tree that knows the position of each key.
//!
//! Overrides (`--set key=value`) are appended to the file's text, and their values are parsed in place there.
//! So one byte position determines the source of any value: the file, or an override.

use crate::choices;
use crate::error::{Error, quoted, suggest};
use crate::scenario::LoadBalancingKeys;
use schemars::{JsonSchema, Schema, schema_for};
use serde::de::DeserializeOwned;
use std::borrow::Cow;
use std::ops::Range;
use toml::Spanned;
use toml::de::{DeString, DeTable, DeValue, ValueDeserializer};

/// A value of the tree, with the bytes that it spans.
pub type Value<'t> = Spanned<DeValue<'t>>;

/// The text of a scenario: the file, then each override after a line end.
pub struct Source {
    name: String,
    text: String,
    file_len: usize,
    overrides: Vec<Override>,
}

/// Where an override lies in [`Source::text`]: `key=value`.
struct Override {
    whole: Range<usize>,
    key: Range<usize>,
    value: Range<usize>,
}

impl Source {
    pub fn new(name: &str, bytes: &[u8], overrides: &[(String, String)]) -> Result<Self, Error> {
        let refuse = |message: String, help: &str| Err(Error::new(name, "", None, message).with_help(help));
        let remedy = "a scenario is a TOML text file: check the path";
        let file = match std::str::from_utf8(bytes) {
            Ok(file) => file,
            Err(e) => {
                let message = format!("this is not a text file: byte {} is not UTF-8", e.valid_up_to());
                return refuse(message, remedy);
            }
        };
        if let Some(at) = file.find('\0') {
            return refuse(format!("this is not a text file: byte {at} is zero"), remedy);
        }
        if file.lines().all(|l| l.trim().is_empty() || l.trim_start().starts_with('#')) {
            let help =
                "write at least [topology] and one [[traffic]] table; examples/hello.toml is a short example";
            return refuse("the scenario is empty".to_string(), help);
        }
        let (name, text) = (name.to_string(), file.to_string());
        let mut source = Source { name, text, file_len: file.len(), overrides: Vec::new() };
        for (key, value) in overrides {
            let start = source.text.len() + 1;
            source.text.push_str(&format!("\n{key}={value}"));
            let (equals, end) = (start + key.len(), source.text.len());
            source.overrides.push(Override { whole: start..end, key: start..equals, value: equals + 1..end });
        }
        Ok(source)
    }

    fn error_at(&self, span: Option<Range<usize>>, message: String) -> Error {
        let within = |s: &Range<usize>, o: &Override| s.start >= o.whole.start && s.end <= o.whole.end;
        if let Some(o) = span.as_ref().and_then(|s| self.overrides.iter().find(|o| within(s, o))) {
            return Error::new(&format!("--set {}", &self.text[o.whole.clone()]), "", None, message);
        }
        // One line is enough to show a range of several.
        let span = span.map(|s| {
            let end = self.text[s.clone()].find('\n').map_or(s.end, |i| s.start + i);
            s.start..end
        });
        Error::new(&self.name, &self.text[..self.file_len], span, message)
    }
}

/// Keys that hold a table of keys, with an example.
const TABLES: [(&str, &str); 6] = [
    ("link", LINK),
    ("host_link", LINK),
    ("fabric_link", LINK),
    ("bottleneck", LINK),
    ("ecn", "{ k_min = \"100kB\", k_max = \"400kB\", p_max = 0.2 }"),
    ("locality", "{ rack = 0.5, other = 0.5 }"),
];
const LINK: &str = "{ rate = \"100Gbps\", delay = \"1us\" }";

/// Keys that hold a list of such tables, with an example of an entry.
const TABLE_LISTS: [(&str, &str); 6] = [
    ("links", "{ a = \"H0\", b = \"S0\", rate = \"100Gbps\", delay = \"1us\" }"),
    ("overrides", "{ at = \"S0.0\", to = \"H1\", via = \"S0.1\" }"),
    ("matrix", "{ from = \"rack:0\", to = \"rack:1\", share = 0.2 }"),
    ("slow_receiver", "{ host = \"H1\", rate = \"10Gbps\" }"),
    ("priority", "{ id = 3, weight = 2 }"),
    ("traffic", "{ kind = \"flow\", src = \"H0\", dst = \"H1\", size = \"1MB\" }"),
];

/// A parsed scenario, overrides applied, not yet interpreted.
pub struct Document<'t> {
    source: &'t Source,
    root: Value<'t>,
}

impl<'t> Document<'t> {
    /// Parses the file and applies the overrides in order.
    pub fn parse(source: &'t Source) -> Result<Self, Error> {
        Self::parse_table(source, "")
    }

    /// The same of a file that holds a scenario in its table `table`, if that
    /// is not empty: keys count from there, places from the file's beginning.
    pub(crate) fn parse_table(source: &'t Source, table: &str) -> Result<Self, Error> {
        let root = DeTable::parse(&source.text[..source.file_len]).map_err(|e| {
            let help = "this line is not valid TOML; text needs quotes, as in rate = \"100Gbps\"";
            let Some(span) = e.span() else {
                // The parser keeps the place of every error but one: too deep a header or key.
                let file = &source.text[..source.file_len];
                let start = |line: &str| line.as_ptr() as usize - file.as_ptr() as usize;
                let deepest = file.lines().max_by_key(|line| line.matches('.').count());
                let span = deepest.map(|line| start(line)..start(line) + line.len());
                let key = deepest
                    .map_or("", |line| line.trim_matches(['[', ']', ' ']).split('=').next().unwrap_or(""));
                let message = "the key has too many parts";
                let help = "no key of a scenario has so many parts";
                return source.error_at(span, message.to_string()).with_key(key).with_help(help);
            };
            if e.message() == "duplicate key" {
                let (key, help) = (&source.text[span.clone()], "write it once, with all of its keys");
                let message = "defined twice".to_string();
                return source.error_at(Some(span.clone()), message).with_key(key).with_help(help);
            }
            source.error_at(Some(span), e.message().to_string()).with_help(help)
        })?;
        let span = root.span();
        let mut doc = Document { source, root: Spanned::new(span, DeValue::Table(root.into_inner())) };
        if !table.is_empty() {
            let Some(inner) = doc.get(table).filter(|v| v.get_ref().is_table()) else {
                let help = format!("write [{table}] above the scenario's tables");
                return Err(doc.error(table, format!("there is no table `{table}`"), help));
            };
            doc.root = inner.clone();
        }
        for o in &source.overrides {
            doc.set(o)?;
        }
        Ok(doc)
    }

    fn set(&mut self, o: &Override) -> Result<(), Error> {
        let source = self.source;
        let key = &source.text[o.key.clone()];
        let text = &source.text[o.value.clone()];
        let fail =
            |message: String, help: &str| source.error_at(Some(o.whole.clone()), message).with_help(help);
        let steps = steps(key).ok_or_else(|| {
            let help = "write the path of a key, such as flow_control.scheme or traffic[0].load";
            fail(format!("`{key}` is not a key"), help)
        })?;
        // A value that is not TOML is text: quotes around 100Gbps would not survive a shell.
        let value = match DeValue::parse(text) {
            Ok(v) if !text.is_empty() => shifted(v, o.value.start),
            _ => Spanned::new(o.value.clone(), DeValue::String(Cow::Borrowed(text))),
        };
        let mut node = &mut self.root;
        let mut path = String::new();
        for (i, step) in steps.iter().enumerate() {
            node = match (step, node.get_mut()) {
                (Step::Key(k), DeValue::Table(table)) => {
                    join(&mut path, k);
                    if !table.contains_key(k.as_str()) {
                        if let Some(Step::Index(n)) = steps.get(i + 1) {
                            let message = format!("`{path}` has no entry [{n}]: the file has no such list");
                            let whole = format!("set the whole list: {path}='[{{ … }}]'");
                            return Err(fail(message, &format!("write [[{path}]] in the file, or {whole}")));
                        }
                        let empty = Spanned::new(o.whole.clone(), DeValue::Table(DeTable::new()));
                        let name: DeString<'t> = Cow::Owned(k.clone());
                        table.insert(Spanned::new(o.key.clone(), name), empty);
                    }
                    table.get_mut(k.as_str()).expect("present or just inserted")
                }
                (Step::Index(n), DeValue::Array(array)) => {
                    let message = format!("`{path}` has no entry [{n}]");
                    let help = format!("its last entry is [{}]", array.len().saturating_sub(1));
                    path.push_str(&format!("[{n}]"));
                    array.get_mut(*n).ok_or_else(|| fail(message, &help))?
                }
                (Step::Key(k), DeValue::Array(_)) => {
                    let help = format!("write the entry, such as {path}[0].{k}");
                    return Err(fail(format!("`{path}` is a list of tables"), &help));
                }
                (Step::Index(n), DeValue::Table(_)) => {
                    let message = format!("`{path}` has no entry [{n}]: it is one table, not a list");
                    return Err(fail(message, "write the name of a key after the point"));
                }
                (_, other) => {
                    let message = format!("`{path}` has no keys: it is a {}", other.type_str());
                    return Err(fail(message, &format!("set `{path}` itself")));
                }
            };
        }
        *node = value;
        Ok(())
    }

    /// The value at a path such as `traffic[1].load`; the whole at the empty path.
    pub fn get(&self, path: &str) -> Option<&Value<'t>> {
        let mut node = &self.root;
        if path.is_empty() {
            return Some(node);
        }
        for step in steps(path)? {
            node = match step {
                Step::Key(k) => node.get_ref().get(k.as_str())?,
                Step::Index(n) => node.get_ref().get(n)?,
            };
        }
        Some(node)
    }

    /// A value as it was written.
    pub(crate) fn text(&self, value: &Value<'t>) -> &'t str {
        &self.source.text[value.span()]
    }

    pub fn len(&self, path: &str) -> usize {
        self.get(path).and_then(|v| v.get_ref().as_array()).map_or(0, |a| a.len())
    }

    /// The keys of the table at a path, in alphabetical order.
    pub fn keys(&self, path: &str) -> Vec<String> {
        let table = self.get(path).and_then(|v| v.get_ref().as_table());
        table.into_iter().flat_map(|t| t.keys()).map(|k| k.get_ref().to_string()).collect()
    }

    /// An error about the value at `path`, shown there or, if it was not
    /// written, at the nearest table around it.
    pub fn error(&self, path: &str, message: impl Into<String>, help: impl Into<String>) -> Error {
        let mut place = path;
        let span = loop {
            if place.is_empty() {
                break None;
            }
            if let Some(v) = self.get(place) {
                break Some(v.span());
            }
            place = &place[..place.rfind(['.', '[']).unwrap_or(0)];
        };
        self.source.error_at(span, message.into()).with_key(path).with_help(help)
    }

    /// An error about the name of the key at `path` rather than its value.
    pub fn key_error(&self, path: &str, message: impl Into<String>, help: impl Into<String>) -> Error {
        let (parent, key) = path.rsplit_once('.').unwrap_or(("", path));
        let table = self.get(parent).and_then(|v| v.get_ref().as_table());
        let span = table.and_then(|t| t.get_key_value(key)).map(|(k, _)| k.span());
        self.source.error_at(span, message.into()).with_key(path).with_help(help)
    }

    /// Reads the value at `path` as a `T`; `None` if there is none. Keys in
    /// `without` are left out (they were read before).
    pub fn read<T: DeserializeOwned>(&self, path: &str, without: &[&str]) -> Result<Option<T>, Error> {
        self.read_as(path, without, &|_| None)
    }

    /// The same for a type whose schema documents the range of its whole numbers.
    pub fn read_documented<T: DeserializeOwned + JsonSchema>(
        &self,
        path: &str,
        without: &[&str],
    ) -> Result<Option<T>, Error> {
        self.read_as(path, without, &|key| whole_numbers(&schema_for!(T), key))
    }

    fn read_as<T: DeserializeOwned>(
        &self,
        path: &str,
        without: &[&str],
        narrower: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Option<T>, Error> {
        let mut read = None;
        self.parse_as(path, without, narrower, &mut |value| {
            read = Some(T::deserialize(value)?);
            Ok(())
        })?;
        Ok(read)
    }

    /// Gives the value at `path` to `parse`, if there is one; keys in `without` are left out. `schema`
    /// documents the ranges of whole numbers in the value.
    pub fn parse_with(
        &self,
        path: &str,
        without: &[&str],
        schema: fn() -> Schema,
        parse: &mut dyn FnMut(ValueDeserializer<'_>) -> Result<(), toml::de::Error>,
    ) -> Result<(), Error> {
        self.parse_as(path, without, &|key| whole_numbers(&schema(), key), parse)
    }

    fn parse_as(
        &self,
        path: &str,
        without: &[&str],
        narrower: &dyn Fn(&str) -> Option<String>,
        parse: &mut dyn FnMut(ValueDeserializer<'_>) -> Result<(), toml::de::Error>,
    ) -> Result<(), Error> {
        let Some(value) = self.get(path) else { return Ok(()) };
        let mut value = value.clone();
        if let DeValue::Table(table) = value.get_mut() {
            for key in without {
                table.remove(*key);
            }
        }
        parse(ValueDeserializer::from(value)).map_err(|e| self.interpret(path, &e, narrower))
    }

    /// Refuses whole numbers that files of results cannot hold: those of TOML and Parquet
    /// have 64 bits with a sign.
    pub fn check_integers(&self) -> Result<(), Error> {
        self.check_integers_below(&self.root, "")
    }

    fn check_integers_below(&self, value: &Value<'_>, path: &str) -> Result<(), Error> {
        match value.get_ref() {
            DeValue::Table(table) => {
                for (k, v) in table {
                    let mut below = path.to_string();
                    join(&mut below, k.get_ref());
                    self.check_integers_below(v, &below)?;
                }
            }
            DeValue::Array(array) => {
                for (i, entry) in array.iter().enumerate() {
                    self.check_integers_below(entry, &format!("{path}[{i}]"))?;
                }
            }
            DeValue::Integer(n) if i64::from_str_radix(n.as_str(), n.radix()).is_err() => {
                let help = format!("write a whole number from 0 to {}", i64::MAX);
                return Err(self.error(path, format!("{n} is out of range"), help));
            }
            _ => {}
        }
        Ok(())
    }

    /// Returns an error for a list where a table of keys is expected, and for more than two ends of a range.
    /// The deserialiser would assign the entries in the order of the keys, and ignore the rest.
    pub(crate) fn check_lists(&self) -> Result<(), Error> {
        self.check_lists_below(&self.root, "", "")
    }

    fn check_lists_below(&self, value: &Value<'_>, path: &str, key: &str) -> Result<(), Error> {
        if path == "variant" {
            // Its values are checked where they are set.
            return Ok(());
        }
        match value.get_ref() {
            DeValue::Table(table) => {
                for (k, v) in table {
                    let mut below = path.to_string();
                    join(&mut below, k.get_ref());
                    self.check_lists_below(v, &below, k.get_ref())?;
                }
            }
            DeValue::Array(array) => {
                let message = "expected a table, found a list";
                // The links of failures and losses are names; they are checked with the topology.
                let named = path.starts_with("failure[") || path.starts_with("loss[");
                if named && key == "link" {
                    return Ok(());
                }
                if let Some((_, example)) = TABLES.iter().find(|(name, _)| *name == key) {
                    return Err(self.error(path, message, format!("write a table, such as {example}")));
                }
                if key == "uniform" && array.len() != 2 {
                    let message = format!("expected a range with two ends, found {} values", array.len());
                    return Err(self.error(path, message, "write [\"1kB\", \"2kB\"]"));
                }
                for (i, entry) in array.iter().enumerate() {
                    let below = format!("{path}[{i}]");
                    if entry.get_ref().is_array()
                        && let Some((_, example)) = TABLE_LISTS.iter().find(|(name, _)| *name == key)
                    {
                        return Err(self.error(&below, message, format!("write a table, such as {example}")));
                    }
                    self.check_lists_below(entry, &below, "")?;
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Turns a deserialiser's error into one with the allowed values. `narrower` returns the documented range
    /// of a key at `base` that takes whole numbers, if there is one.
    fn interpret(&self, base: &str, e: &toml::de::Error, narrower: &dyn Fn(&str) -> Option<String>) -> Error {
        let span = e.span();
        let mut path = span.as_ref().map_or_else(|| base.to_string(), |s| self.path_of(base, s));
        let message = e.message();
        let mut words = message.split('`').skip(1).step_by(2);
        let (message, help) = if message.starts_with("unknown field") {
            let word = words.next().unwrap_or_default();
            let mut allowed: Vec<&str> = words.collect();
            // Keys that are read apart.
            if path == format!("flow_control.{word}") {
                allowed.insert(0, "scheme");
            } else if base == "routing" && self.get(&format!("routing.{word}")).is_some() {
                allowed.extend(LoadBalancingKeys::NAMES);
            }
            (format!("unknown key `{word}`"), suggest(word, "allowed keys", &allowed))
        } else if message.starts_with("unknown variant") {
            let word = words.next().unwrap_or_default();
            let allowed: Vec<&str> = words.collect();
            unknown_name(&path, word, &allowed)
        } else if message.starts_with("missing field") {
            let word = words.next().unwrap_or_default();
            join(&mut path, word);
            (
                format!("the key `{word}` is missing"),
                match TABLES.iter().find(|(name, _)| *name == word) {
                    Some((_, example)) => format!("add a line such as {word} = {example}"),
                    None => format!("add a line `{word} = …`"),
                },
            )
        } else if let Some((found, expected)) = message
            .strip_prefix("invalid type: ")
            .or_else(|| message.strip_prefix("invalid value: "))
            .and_then(|m| m.split_once(", expected "))
        {
            let kind = self.get(&path).map(|v| v.get_ref().type_str());
            let (name, values) = expected_type(expected);
            let whole = name == "a whole number";
            let key = path.strip_prefix(base).and_then(|rest| rest.strip_prefix('.'));
            let allowed = key.filter(|_| whole).and_then(narrower).unwrap_or_else(|| values.to_string());
            let message = match found.strip_prefix("integer ") {
                Some(number) if whole => format!("{} is out of range", number.trim_matches('`')),
                _ => format!("expected {name}, found {}", value_of(found, kind)),
            };
            (message, format!("write {allowed}"))
        } else if let Some((_, expected)) =
            message.strip_prefix("invalid length ").and_then(|m| m.split_once(", expected "))
        {
            ("this list has the wrong length".to_string(), format!("write {expected}"))
        } else if message.contains("number overflowed") {
            ("the number is too large".to_string(), "write a smaller number".to_string())
        } else if let Some(i) = message.find("write a number") {
            (message[..i].trim_end_matches([' ', ':', ';']).to_string(), message[i..].to_string())
        } else if let Some((what, help)) = message.split_once(": ") {
            (what.to_string(), help.to_string())
        } else {
            (message.to_string(), "`xoff schema --markdown` lists the keys and their values".to_string())
        };
        self.source.error_at(span, message).with_key(path).with_help(help)
    }

    /// The path of the key or value that spans `span`, at or below `base`.
    fn path_of(&self, base: &str, span: &Range<usize>) -> String {
        fn visit(value: &Value<'_>, path: &str, span: &Range<usize>, best: &mut (usize, String)) {
            let mut offer = |s: Range<usize>, path: &str| {
                if s.start <= span.start && span.end <= s.end && s.len() < best.0 {
                    *best = (s.len(), path.to_string());
                }
            };
            match value.get_ref() {
                DeValue::Table(t) => {
                    offer(value.span(), path);
                    for (k, v) in t.iter() {
                        let mut below = path.to_string();
                        join(&mut below, k.get_ref());
                        if k.span() == *span {
                            *best = (0, below.clone());
                        }
                        visit(v, &below, span, best);
                    }
                }
                DeValue::Array(a) => {
                    offer(value.span(), path);
                    for (i, v) in a.iter().enumerate() {
                        visit(v, &format!("{path}[{i}]"), span, best);
                    }
                }
                _ => offer(value.span(), path),
            }
        }
        let mut best = (usize::MAX, base.to_string());
        if let Some(value) = self.get(base) {
            visit(value, base, span, &mut best);
        }
        best.1
    }
}

/// The error and the remedy of a name that is none of `allowed`.
pub(crate) fn unknown_name(path: &str, word: &str, allowed: &[&str]) -> (String, String) {
    let message = format!("unknown {} `{word}`", choices::noun(path));
    let help = match choices::elsewhere(path, word) {
        Some(place) => format!("{place}; allowed values here: {}", quoted(allowed)),
        None => suggest(word, "allowed values", allowed),
    };
    (message, help)
}

/// A type that serde expected, and its values, both in words.
fn expected_type(expected: &str) -> (&str, &str) {
    match expected {
        "u8" => ("a whole number", "a whole number from 0 to 255"),
        "u16" => ("a whole number", "a whole number from 0 to 65535"),
        "u32" => ("a whole number", "a whole number from 0 to 4294967295"),
        "u64" | "usize" => ("a whole number", "a whole number, 0 or more"),
        "f64" => ("a number", "a number without quotes, such as 0.5"),
        "a string" | "string" => ("text", "text in quotes"),
        "a boolean" => ("true or false", "true or false"),
        "a sequence" => ("a list", "a list in brackets"),
        "a map" => ("a table", "a table in braces"),
        e if e.starts_with("struct ") => {
            ("a table", "a table, such as { rate = \"100Gbps\", delay = \"1us\" }")
        }
        e => (e, e),
    }
}

/// A value that serde found, in words; `kind` is its TOML name. Serde calls tables maps, lists sequences, and
/// dates maps.
fn value_of(found: &str, kind: Option<&str>) -> String {
    let (name, value) = found.split_once(' ').unwrap_or((found, ""));
    let value = value.trim_matches('`');
    match (name, kind) {
        ("map" | "sequence", Some("array")) => "a list".into(),
        ("map" | "sequence", Some("datetime")) => "a date".into(),
        ("map" | "sequence", _) => "a table".into(),
        ("string", _) => format!("the text {value}"),
        ("integer", _) => format!("the number {value}"),
        ("floating", _) => format!("the number {}", value.trim_start_matches("point `")),
        ("boolean", _) => value.to_string(),
        _ => found.to_string(),
    }
}

/// The name of a kind of value with its article.
pub(crate) fn with_article(kind: &str) -> String {
    let article = if kind.starts_with(['a', 'e', 'i', 'o', 'u']) { "an" } else { "a" };
    format!("{article} {kind}")
}

/// The range of whole numbers that a schema documents for one of its keys.
fn whole_numbers(schema: &Schema, key: &str) -> Option<String> {
    let key = schema.get("properties")?.get(key)?;
    let end = |name: &str| key.get(name).and_then(serde_json::Value::as_u64);
    match (end("minimum").unwrap_or(0), end("maximum")) {
        (least, Some(most)) => Some(format!("a whole number from {least} to {most}")),
        (0, None) => None,
        (least, None) => Some(format!("a whole number, {least} or more")),
    }
}

enum Step {
    Key(String),
    Index(usize),
}

/// Splits `traffic[0].load` or `traffic.0.load`; `None` if malformed.
fn steps(path: &str) -> Option<Vec<Step>> {
    let mut out = Vec::new();
    for part in path.split('.') {
        let (name, mut rest) = part.split_at(part.find('[').unwrap_or(part.len()));
        if name.bytes().all(|b| b.is_ascii_digit()) && !name.is_empty() && !out.is_empty() {
            out.push(Step::Index(name.parse().ok()?));
        } else if !name.is_empty()
            && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-')
        {
            out.push(Step::Key(name.to_string()));
        } else {
            return None;
        }
        while !rest.is_empty() {
            let (digits, tail) = rest.strip_prefix('[')?.split_once(']')?;
            out.push(Step::Index(digits.parse().ok()?));
            rest = tail;
        }
    }
    Some(out)
}

fn join(path: &mut String, key: &str) {
    if !path.is_empty() {
        path.push('.');
    }
    path.push_str(key);
}

/// The same value, moved by `offset` bytes.
fn shifted(value: Value<'_>, offset: usize) -> Value<'_> {
    let shift = |s: Range<usize>| s.start + offset..s.end + offset;
    let span = shift(value.span());
    let inner = match value.into_inner() {
        DeValue::Table(t) => {
            let moved = t.into_iter().map(|(k, v)| {
                let at = shift(k.span());
                (Spanned::new(at, k.into_inner()), shifted(v, offset))
            });
            DeValue::Table(moved.collect())
        }
        DeValue::Array(a) => DeValue::Array(a.into_iter().map(|v| shifted(v, offset)).collect()),
        plain => plain,
    };
    Spanned::new(span, inner)
}
