//! The error of a scenario's table.

/// A value of a table that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpecError {
    /// The key inside its table, such as `k` or `links[3].a`.
    pub key: String,
    pub message: String,
    pub help: String,
    /// If the value names a file and the fault is in it: its line there, from 1.
    pub line: Option<usize>,
    /// The column in that line, from 1, where it is known.
    pub column: Option<usize>,
}

impl SpecError {
    pub fn new(key: impl Into<String>, message: impl Into<String>, help: impl Into<String>) -> Self {
        Self { key: key.into(), message: message.into(), help: help.into(), line: None, column: None }
    }

    /// The same, in line `line` of the file that the key names.
    pub fn in_line(self, line: usize) -> Self {
        Self { line: Some(line), ..self }
    }

    /// The same at a column of its line.
    pub fn in_column(self, column: usize) -> Self {
        Self { column: Some(column), ..self }
    }
}

/// What is wrong in a line of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LineError {
    pub line: usize,
    pub message: String,
}
