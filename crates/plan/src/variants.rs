//! The `[[variant]]` tables of a scenario: changes with a name, for grids of runs.

use crate::document::{Document, Value};
use crate::error::{Error, suggest};

/// Most characters of a variant's name.
const LONGEST_NAME: usize = 64;
/// Means every variant, where names are expected.
pub const ALL: &str = "all";

/// A change of a scenario.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Variant {
    pub name: String,
    /// Keys such as `flow_control.scheme`, and their values as TOML.
    pub set: Vec<(String, String)>,
}

/// The variants of a scenario in the order of the file, with their names and keys checked. Whether a key exists is
/// seen when it is set.
pub(crate) fn read(doc: &Document<'_>) -> Result<Vec<Variant>, Error> {
    let mut all: Vec<Variant> = Vec::new();
    for i in 0..doc.len("variant") {
        let at = |key: &str| format!("variant[{i}].{key}");
        let known = ["name", "set"];
        if let Some(key) =
            doc.keys(&format!("variant[{i}]")).iter().find(|key| !known.contains(&key.as_str()))
        {
            let help = suggest(key, "the keys of a variant", &known);
            return Err(doc.key_error(&at(key), format!("unknown key `{key}`"), help));
        }
        let example = "write name = \"irn\" and set = { transport.kind = \"irn\" }";
        let Some(name) = doc.get(&at("name")) else {
            return Err(doc.error(&at("name"), "the name of the variant is missing", example));
        };
        let name = name.get_ref().as_str().unwrap_or_default().to_string();
        let plain = |c: char| c.is_alphanumeric() || "-_+.* ".contains(c);
        if name.is_empty() || name == ALL || name.chars().count() > LONGEST_NAME || !name.chars().all(plain) {
            let help = format!(
                "write a text of 1 to {LONGEST_NAME} letters, digits, blanks and the characters - _ + . * except `{ALL}`"
            );
            return Err(doc.error(&at("name"), "the name of the variant is not possible", help));
        }
        if let Some(first) = all.iter().position(|v| v.name == name) {
            let message = format!("the name `{name}` is used twice, first in variant[{first}]");
            return Err(doc.error(&at("name"), message, "give each [[variant]] table a different name"));
        }
        let Some(keys) = doc.get(&at("set")).filter(|keys| keys.get_ref().is_table()) else {
            return Err(doc.error(&at("set"), "`set` must be a table of keys", example));
        };
        let mut set = Vec::new();
        flatten(doc, keys, "", &mut set);
        if set.is_empty() {
            return Err(doc.error(&at("set"), "the variant sets no key", example));
        }
        all.push(Variant { name, set });
    }
    Ok(all)
}

/// The keys in `table`, which are those of the scenario below `key`. A table in braces is a value.
fn flatten<'t>(doc: &Document<'t>, table: &Value<'t>, key: &str, set: &mut Vec<(String, String)>) {
    let Some(table) = table.get_ref().as_table() else { return };
    for (name, value) in table {
        let name = name.get_ref();
        let key = if key.is_empty() { name.to_string() } else { format!("{key}.{name}") };
        let text = doc.text(value);
        if value.get_ref().is_table() && !text.starts_with('{') {
            // Written with dots: `flow_control.scheme = "none"`.
            flatten(doc, value, &key, set);
        } else {
            set.push((key, text.to_string()));
        }
    }
}
