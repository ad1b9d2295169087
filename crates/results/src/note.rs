//! What a note is. Whoever has something to say of a run makes them; `notes`
//! collects them.

use serde::Serialize;

/// How much a note matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// A promise was broken, such as a drop in a lossless priority.
    Error,
    /// What the run has shown, such as a deadlock.
    Finding,
    /// The figures need care, such as flows that did not finish.
    Warning,
    /// Good to know, such as an option without effect.
    Note,
}

/// One remark about a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Note {
    /// How much it matters.
    pub level: Level,
    /// What is the case, in one or two sentences.
    pub text: String,
    /// Particulars, a line each.
    pub details: Vec<String>,
    /// What to do about it.
    pub help: Option<String>,
}

impl Note {
    /// A note without details and help.
    pub fn new(level: Level, text: impl Into<String>) -> Self {
        Self { level, text: text.into(), details: Vec::new(), help: None }
    }

    /// The same note with advice.
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }
}
