//! A scenario as data: its tables, and the files that it names.

use std::collections::BTreeMap;
use std::path::Path;
use std::{fs, io};

use toml::Table;
use xoff_plan::{Error, Loaded};

/// A scenario with its files.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Scenario {
    pub table: Table,
    /// Contents of the files that it names, by path.
    pub files: BTreeMap<String, Vec<u8>>,
}

impl Scenario {
    /// The scenario as a file.
    ///
    /// # Panics
    /// Never: tables of values can be written.
    pub fn text(&self) -> String {
        toml::to_string(&self.table).expect("a table of values is TOML")
    }

    /// Loads it, as the program does.
    ///
    /// # Errors
    /// The scenario is refused.
    pub fn load(&self) -> Result<Loaded, Error> {
        let files = |path: &Path| match self.files.get(path.to_string_lossy().as_ref()) {
            Some(bytes) => Ok(bytes.clone()),
            None => Err(io::Error::from(io::ErrorKind::NotFound)),
        };
        xoff_plan::load("swarm.toml", self.text().as_bytes(), &[], &files)
    }

    /// Whether two keys of a table have these values: `is("topology", "kind", "zeropod")`.
    pub fn is(&self, table: &str, key: &str, value: &str) -> bool {
        self.table.get(table).and_then(|t| t.get(key)).and_then(|v| v.as_str()) == Some(value)
    }

    /// Writes it to `path` with `head` as comment, and its files beside it.
    ///
    /// # Errors
    /// The file system refuses.
    pub fn save(&self, path: &Path, head: &str) -> io::Result<()> {
        let dir = path.parent().unwrap_or(Path::new(""));
        fs::create_dir_all(dir)?;
        for (name, bytes) in &self.files {
            fs::write(dir.join(name), bytes)?;
        }
        let head: String = head.lines().map(|line| format!("# {line}\n")).collect();
        fs::write(path, head + &self.text())
    }
}
