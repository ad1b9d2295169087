//! What is wrong with a scenario, and where.

use miette::{Diagnostic, LabeledSpan, NamedSource, SourceCode, SourceSpan};
use std::fmt;
use std::ops::Range;

/// The first thing that is wrong with a scenario: what, where, and what to do.
///
/// Printed with `miette` it shows the line; [`Error::one_line`] is for logs.
#[derive(Debug, Clone)]
pub struct Error(Box<Content>);

#[derive(Debug, Clone)]
struct Content {
    message: String,
    help: Option<String>,
    key: Option<String>,
    source: NamedSource<String>,
    span: Option<Range<usize>>,
}

impl Error {
    /// An error in the text called `name`. `span` counts bytes of `text`;
    /// without it the whole text is meant.
    pub fn new(name: &str, text: &str, span: Option<Range<usize>>, message: impl Into<String>) -> Self {
        Self(Box::new(Content {
            message: message.into(),
            help: None,
            key: None,
            source: NamedSource::new(name, text.to_string()),
            span,
        }))
    }

    /// Adds what to do about it; an empty text adds nothing.
    pub fn with_help(mut self, help: impl Into<String>) -> Self {
        self.0.help = Some(help.into()).filter(|h| !h.is_empty());
        self
    }

    /// Adds the key that is wrong, such as `traffic[1].load`.
    pub fn with_key(mut self, key: impl Into<String>) -> Self {
        self.0.key = Some(key.into()).filter(|k| !k.is_empty());
        self
    }

    /// Says of an unknown key of `table` which `kind` of table does not have it.
    pub(crate) fn of_kind(mut self, table: &str, kind: &str) -> Self {
        let inside = self.key().and_then(|k| k.strip_prefix(table)).is_some_and(|k| k.rfind('.') == Some(0));
        if inside && self.0.message.starts_with("unknown key") {
            self.0.message.push_str(&format!(" for kind `{kind}`"));
        }
        self
    }

    /// What is wrong.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// What is allowed, or how to repair it.
    pub fn remedy(&self) -> Option<&str> {
        self.0.help.as_deref()
    }

    /// The key that is wrong, such as `traffic[1].load`.
    pub fn key(&self) -> Option<&str> {
        self.0.key.as_deref()
    }

    /// The file, or `--set key=value` for an override.
    pub fn file(&self) -> &str {
        self.0.source.name()
    }

    /// Line and column, both from 1; `None` if the text as a whole is wrong.
    pub fn position(&self) -> Option<(usize, usize)> {
        let start = self.0.span.as_ref()?.start;
        let before = self.0.source.inner().get(..start)?;
        let line_start = before.rfind('\n').map_or(0, |i| i + 1);
        Some((before.matches('\n').count() + 1, before[line_start..].chars().count() + 1))
    }

    /// `file:line:column: key: message (help)`.
    pub fn one_line(&self) -> String {
        let place = match self.position() {
            Some((line, column)) => format!("{}:{line}:{column}", self.file()),
            None => self.file().to_string(),
        };
        let key = self.key().map(|k| format!("{k}: ")).unwrap_or_default();
        let help = self.remedy().map(|h| format!(" ({h})")).unwrap_or_default();
        format!("{place}: {key}{}{help}", self.0.message)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.span.is_none() {
            write!(f, "{}: ", self.file())?;
        }
        if let Some(key) = self.key() {
            write!(f, "`{key}`: ")?;
        }
        f.write_str(&self.0.message)
    }
}

impl std::error::Error for Error {}

impl Diagnostic for Error {
    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        self.remedy().map(|h| Box::new(h) as Box<dyn fmt::Display>)
    }

    fn source_code(&self) -> Option<&dyn SourceCode> {
        self.0.span.as_ref().map(|_| &self.0.source as &dyn SourceCode)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        let span = self.0.span.clone()?;
        let label = LabeledSpan::new_with_span(None, SourceSpan::from(span));
        Some(Box::new(std::iter::once(label)))
    }
}

/// Something in a scenario that is allowed but does not do what its author may expect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    /// The key it is about, such as `flow_control.xoff`; empty for the whole.
    pub key: String,
    /// What is the matter, as a sentence without its full stop.
    pub message: String,
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.key.is_empty() {
            write!(f, "`{}`: ", self.key)?;
        }
        f.write_str(&self.message)
    }
}

/// The one of `candidates` that `word` was most likely meant to be.
pub(crate) fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    candidates
        .into_iter()
        .map(|c| (strsim::damerau_levenshtein(&word.to_lowercase(), &c.to_lowercase()), c))
        .filter(|&(distance, c)| distance <= 1 + word.len().max(c.len()) / 4)
        .min_by_key(|&(distance, c)| {
            let same = c.bytes().zip(word.bytes()).take_while(|(a, b)| a.eq_ignore_ascii_case(b)).count();
            (distance, std::cmp::Reverse(same))
        })
        .map(|(_, c)| c)
}

/// "did you mean `x`?", then what is allowed.
pub(crate) fn suggest(word: &str, what: &str, candidates: &[&str]) -> String {
    let list = candidates.iter().map(|c| format!("`{c}`")).collect::<Vec<_>>().join(", ");
    match nearest(word, candidates.iter().copied()) {
        Some(best) => format!("did you mean `{best}`? {what}: {list}"),
        None => format!("{what}: {list}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_count_lines_and_characters_from_one() {
        let e = Error::new("a.toml", "x = 1\nµé = 2\n", Some(11..12), "wrong").with_key("µé");
        assert_eq!(e.position(), Some((2, 4)));
        assert_eq!(e.one_line(), "a.toml:2:4: µé: wrong");
        assert_eq!(Error::new("b", "", None, "empty").to_string(), "b: empty");
    }

    #[test]
    fn suggestions_are_near() {
        assert_eq!(nearest("lod", ["load", "size"]), Some("load"));
        assert_eq!(nearest("bufer", ["buffer", "alpha"]), Some("buffer"));
        assert_eq!(nearest("h3", ["H3", "H13"]), Some("H3"));
        assert_eq!(nearest("H50", ["H0", "H5", "H1"]), Some("H5"));
        assert_eq!(nearest("quux", ["load", "size"]), None);
    }
}
