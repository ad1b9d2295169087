//! Errors of a scenario, with their places.

use miette::{
    Diagnostic, LabeledSpan, MietteError, MietteSpanContents, SourceCode, SourceSpan, SpanContents,
};
use std::borrow::Cow;
use std::fmt;
use std::ops::Range;
use xoff_net::error::SpecError;
use xoff_net::text::is_hidden;
pub use xoff_schemes::flow_control::keys::Warning;

/// Most characters of an error's text: more is foreign text that was quoted whole.
const LONGEST_TEXT: usize = 600;
/// Most bytes of a line that are shown whole; of a longer one, the part around the fault.
const LONGEST_LINE: usize = 200;
/// Most bytes that are underlined.
const LONGEST_MARK: usize = 80;

/// The first error of a scenario: problem, place, and correction.
///
/// Printed with `miette` it shows the line; [`Error::one_line`] is for logs.
#[derive(Debug, Clone)]
pub struct Error(Box<Content>);

#[derive(Debug, Clone)]
struct Content {
    message: String,
    help: Option<String>,
    key: Option<String>,
    source: Source,
    span: Option<Range<usize>>,
}

#[derive(Debug, Clone)]
struct Source {
    name: String,
    text: String,
    /// The text and the fault's place as they are shown, if hidden characters of the text are escaped there.
    shown: Option<(String, Range<usize>)>,
    /// The fault's column in bytes, from 0.
    column: usize,
}

impl Source {
    fn new(name: &str, text: &str, span: Option<&Range<usize>>) -> Self {
        let start = span.map_or(0, |s| s.start);
        let column = start - text.get(..start).and_then(|t| t.rfind('\n')).map_or(0, |i| i + 1);
        let shown = span.and_then(|span| escaped(text, span));
        Self { name: printable(name).into_owned(), text: text.to_string(), shown, column }
    }
}

/// A text with its hidden characters escaped, and where `span` of it is then; `None` if it
/// has none. Line ends stay, so that lines keep their numbers.
fn escaped(text: &str, span: &Range<usize>) -> Option<(String, Range<usize>)> {
    let stays = |at: usize, c: char| match c {
        '\n' | '\t' => true,
        '\r' => text[at + 1..].starts_with('\n'),
        _ => !is_hidden(c),
    };
    if text.char_indices().all(|(at, c)| stays(at, c)) {
        return None;
    }
    let mut out = String::with_capacity(text.len() + 16);
    let mut place = [None; 2];
    for (at, c) in text.char_indices() {
        for (bound, place) in [span.start, span.end].into_iter().zip(&mut place) {
            if at >= bound && place.is_none() {
                *place = Some(out.len());
            }
        }
        if stays(at, c) {
            out.push(c);
        } else {
            out.extend(c.escape_default());
        }
    }
    let [start, end] = place.map(|place| place.unwrap_or(out.len()));
    Some((out, start..end))
}

/// The bytes of line `line` (from 1) of `text`.
fn line_span(text: &str, line: usize) -> Range<usize> {
    let start = text.split_inclusive('\n').take(line.saturating_sub(1)).map(str::len).sum();
    let len = text[start..].lines().next().map_or(0, str::len);
    start..start + len
}

impl SourceCode for Source {
    fn read_span<'a>(
        &'a self,
        span: &SourceSpan,
        before: usize,
        after: usize,
    ) -> Result<Box<dyn SpanContents<'a> + 'a>, MietteError> {
        let text = self.shown.as_ref().map_or(&self.text, |(text, _)| text);
        let whole = text.read_span(span, before, after)?;
        let long = whole.data().split(|&b| b == b'\n').any(|line| line.len() > LONGEST_LINE);
        let (data, shown, mut column) = if long {
            let cut = around(text, span.offset(), span.len());
            let line_start = text[..cut.start].rfind('\n').map_or(0, |i| i + 1);
            (text[cut.clone()].as_bytes(), cut.clone(), cut.start - line_start)
        } else {
            let at = whole.span();
            (whole.data(), at.offset()..at.offset() + at.len(), whole.column())
        };
        // Escapes are longer than the characters that they replace; the column is that of the file.
        if self.shown.as_ref().is_some_and(|(_, fault)| !long && before == 0 && fault.start == span.offset())
        {
            column = self.column;
        }
        // Lines are counted here, so that a cut keeps the number of its line.
        let line = text[..shown.start].matches('\n').count();
        let shown = SourceSpan::from(shown);
        let contents = MietteSpanContents::new_named(self.name.clone(), data, shown, line, column, 1);
        Ok(Box::new(contents))
    }
}

/// The part of a long line that shows the `len` bytes from `start` on.
fn around(text: &str, start: usize, len: usize) -> Range<usize> {
    let line_start = text[..start].rfind('\n').map_or(0, |i| i + 1);
    let line_end = text[start..].find('\n').map_or(text.len(), |i| start + i);
    let room = LONGEST_LINE.saturating_sub(len) / 2;
    let from = start.saturating_sub(room).max(line_start);
    let to = (start + len + room).min(line_end).max(start + len).min(text.len());
    text.floor_char_boundary(from)..text.ceil_char_boundary(to)
}

/// Text that may quote foreign text, made safe for a terminal: hidden characters and line ends are escaped,
/// and a long text loses its middle.
fn printable(text: &str) -> Cow<'_, str> {
    let harmful = is_hidden;
    let mut out = Cow::Borrowed(text);
    if text.contains(harmful) {
        let escaped = |c: char| if harmful(c) { c.escape_default().to_string() } else { c.to_string() };
        out = Cow::Owned(text.chars().map(escaped).collect());
    }
    let count = out.chars().count();
    if count > LONGEST_TEXT {
        let half = LONGEST_TEXT / 2;
        let head: String = out.chars().take(half).collect();
        let tail: String = out.chars().skip(count - half).collect();
        out = Cow::Owned(format!("{head} … {tail}"));
    }
    out
}

impl Error {
    /// An error in the text called `name`. `span` counts bytes of `text`; without it the whole text is meant.
    pub fn new(name: &str, text: &str, span: Option<Range<usize>>, message: impl Into<String>) -> Self {
        // A long range is marked at its beginning.
        let span = span.map(|s| {
            let end = s.end.min(s.start + LONGEST_MARK).min(text.len());
            s.start.min(text.len())..text.ceil_char_boundary(end)
        });
        Self(Box::new(Content {
            message: printable(&message.into()).into_owned(),
            help: None,
            key: None,
            source: Source::new(name, text, span.as_ref()),
            span,
        }))
    }

    /// An error in a line (from 1) of the text called `name`.
    pub(crate) fn in_line(name: &str, text: &str, line: usize, message: impl Into<String>) -> Self {
        Self::new(name, text, Some(line_span(text, line)), message)
    }

    /// An error of a file that describes a network, at its line and column, or of the whole file.
    pub fn in_file(name: &str, text: &str, e: SpecError) -> Self {
        let span = e.line.map(|line| {
            let span = line_span(text, line);
            let start =
                e.column.map_or(span.start, |column| (span.start + column.saturating_sub(1)).min(span.end));
            // A field of a table ends at its delimiter, or at its quotation mark.
            let field = |column: usize| {
                let rest = &text[column..span.end];
                let quoted = rest.strip_prefix('"').and_then(|rest| rest.find('"')).map(|n| column + n + 2);
                quoted.or_else(|| rest.find([',', ';', '\t']).map(|n| column + n)).unwrap_or(span.end)
            };
            let start = text.floor_char_boundary(start);
            start..if e.column.is_some() { field(start) } else { span.end }
        });
        Self::new(name, text, span, e.message).with_help(e.help)
    }

    /// Adds the correction; an empty text adds nothing.
    pub fn with_help(mut self, help: impl Into<String>) -> Self {
        self.0.help = Some(printable(&help.into()).into_owned()).filter(|h| !h.is_empty());
        self
    }

    /// Adds the key that is wrong, such as `traffic[1].load`.
    pub fn with_key(mut self, key: impl Into<String>) -> Self {
        self.0.key = Some(printable(&key.into()).into_owned()).filter(|k| !k.is_empty());
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

    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// The allowed values, or the correction.
    pub fn remedy(&self) -> Option<&str> {
        self.0.help.as_deref()
    }

    pub fn key(&self) -> Option<&str> {
        self.0.key.as_deref()
    }

    /// The file, or `--set key=value` for an override.
    pub fn file(&self) -> &str {
        &self.0.source.name
    }

    /// Line and column, both from 1; `None` if the text as a whole is wrong.
    pub fn position(&self) -> Option<(usize, usize)> {
        let start = self.0.span.as_ref()?.start;
        let before = self.0.source.text.get(..start)?;
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
        let span = self.0.source.shown.as_ref().map_or(span, |(_, shown)| shown.clone());
        let label = LabeledSpan::new_with_span(None, SourceSpan::from(span));
        Some(Box::new(std::iter::once(label)))
    }
}

/// `` `a`, `b` ``.
pub(crate) fn quoted(items: &[&str]) -> String {
    items.iter().map(|item| format!("`{item}`")).collect::<Vec<_>>().join(", ")
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

/// "did you mean `x`?", then the allowed values.
pub fn suggest(word: &str, what: &str, candidates: &[&str]) -> String {
    let list = quoted(candidates);
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
    fn foreign_text_cannot_write_to_the_terminal() {
        let e = Error::new("a\nb", "", None, "`\u{1b}[31mred\r\n\u{202e}x` \u{fc}").with_help("\u{7}");
        assert_eq!(e.message(), "`\\u{1b}[31mred\\r\\n\\u{202e}x` \u{fc}");
        assert_eq!((e.file(), e.remedy()), ("a\\nb", Some("\\u{7}")));
        let long = Error::new("a", "", None, "9".repeat(5_000));
        assert!(long.message().len() < 610, "{}", long.message().len());
    }

    #[test]
    fn hidden_characters_of_a_file_are_shown_and_the_fault_is_marked_where_it_is() {
        let text = "a = 1\r\nn = \"\u{1b}[31m\u{202e}\" # \u{200b}\u{7f}\nb = 2";
        let start = text.find("[31m").unwrap();
        let e = Error::new("a.toml", text, Some(start..start + 4), "wrong");
        let printer = miette::GraphicalReportHandler::new_themed(miette::GraphicalTheme::none());
        let mut shown = String::new();
        printer.render_report(&mut shown, &e).unwrap();
        let foreign = |c: char| is_hidden(c) && c != '\n' && c != '\r';
        assert!(!shown.contains(foreign), "{shown:?}");
        assert!(shown.contains(r#"n = "\u{1b}[31m\u{202e}" # \u{200b}\u{7f}"#), "{shown}");
        // The column of the file, and a mark below the wrong part.
        assert!(shown.contains("a.toml:2:7"), "{shown}");
        assert_eq!(e.position(), Some((2, 7)));
        let line = |what: &str| shown.lines().find(|l| l.contains(what)).unwrap().to_string();
        let column = |line: &str, what: &str| line[..line.find(what).unwrap()].chars().count();
        assert_eq!(column(&line("n = "), "[31m"), column(&line("^^^^"), "^^^^"), "{shown}");
    }

    #[test]
    fn a_long_line_is_shown_around_the_fault() {
        let printer = miette::GraphicalReportHandler::new_themed(miette::GraphicalTheme::none());
        for (text, at) in [
            (format!("x = 1\ny = \"{}\"\n", "\u{b5}".repeat(5_000)), 10..10_012),
            (format!("x = 1\n# {}!", "a".repeat(9_000)), 9_008..9_009),
            ("a".repeat(9_000), 9_000..9_000),
        ] {
            let mut shown = String::new();
            printer.render_report(&mut shown, &Error::new("a.toml", &text, Some(at), "wrong")).unwrap();
            assert!(shown.len() < 1_500, "{shown}");
            let line = 1 + text.matches('\n').count().min(1);
            assert!(
                shown.contains(&format!("a.toml:{line}:")) && shown.contains(&format!("{line} |")),
                "{shown}"
            );
        }
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
