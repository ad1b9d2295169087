//! Code that tests of the documentation share: pages, and their Markdown structure.

use crate::common::root;
use std::fs;
use std::ops::Range;

use pulldown_cmark::{CodeBlockKind, Event, HeadingLevel, Options, Parser, Tag, TagEnd};

/// The text of a page, by its path from the root.
pub fn page(name: &str) -> String {
    fs::read_to_string(root().join(name)).unwrap_or_else(|e| panic!("{name}: {e}"))
}

/// Paths from the root of the pages below `docs`, in order, without the table of contents.
pub fn docs() -> Vec<String> {
    fn below(folder: &str, into: &mut Vec<String>) {
        for entry in fs::read_dir(root().join(folder)).unwrap() {
            let entry = entry.unwrap();
            let path = format!("{folder}/{}", entry.file_name().to_str().unwrap());
            if entry.file_type().unwrap().is_dir() {
                below(&path, into);
            } else if path.ends_with(".md") && path != "docs/SUMMARY.md" {
                into.push(path);
            }
        }
    }
    let mut found = Vec::new();
    below("docs", &mut found);
    found.sort();
    found
}

/// These and the pages at the root.
pub fn pages() -> Vec<String> {
    let mut found = docs();
    found.extend(["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"].map(String::from));
    found
}

fn events(text: &str) -> impl Iterator<Item = (Event<'_>, Range<usize>)> {
    Parser::new_ext(text, Options::ENABLE_TABLES).into_offset_iter()
}

/// The line of a place in a text, from 1.
pub fn line(text: &str, at: usize) -> usize {
    text[..at].matches('\n').count() + 1
}

/// Where links and images lead, and the line of each.
pub fn links(text: &str) -> Vec<(String, usize)> {
    events(text)
        .filter_map(|(event, place)| match event {
            Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
                Some((dest_url.to_string(), line(text, place.start)))
            }
            _ => None,
        })
        .collect()
}

/// The lines of the headings of the first level.
pub fn titles(text: &str) -> Vec<usize> {
    let title = |event: &Event| matches!(event, Event::Start(Tag::Heading { level: HeadingLevel::H1, .. }));
    events(text).filter(|(event, _)| title(event)).map(|(_, place)| line(text, place.start)).collect()
}

/// The anchors of a page's headings, as GitHub and mdBook name them.
pub fn anchors(text: &str) -> Vec<String> {
    let (mut found, mut heading) = (Vec::<String>::new(), None);
    let mut plain = Vec::<String>::new();
    for (event, _) in events(text) {
        match event {
            Event::Start(Tag::Heading { .. }) => heading = Some(String::new()),
            Event::Text(t) | Event::Code(t) => {
                if let Some(h) = &mut heading {
                    h.push_str(&t);
                }
            }
            Event::End(TagEnd::Heading(_)) => {
                let id: String = heading
                    .take()
                    .unwrap()
                    .trim()
                    .to_lowercase()
                    .chars()
                    .filter(|c| c.is_alphanumeric() || " -_".contains(*c))
                    .map(|c| if c == ' ' { '-' } else { c })
                    .collect();
                // The second heading of a name is numbered, from 1.
                let before = plain.iter().filter(|p| **p == id).count();
                plain.push(id.clone());
                found.push(if before == 0 { id } else { format!("{id}-{before}") });
            }
            _ => {}
        }
    }
    found
}

/// A fenced block of code, and the comment just before it that says how it is tested.
#[derive(Debug)]
pub struct Block {
    /// The text after the fence.
    pub language: String,
    /// The text between the fences.
    pub text: String,
    /// The line of the opening fence.
    pub line: usize,
    /// The directives of `<!-- test: … -->`, one a line.
    pub test: Vec<String>,
}

/// The blocks of code of a page.
pub fn blocks(text: &str) -> Vec<Block> {
    let (mut found, mut test, mut open) = (Vec::new(), Vec::new(), None::<Block>);
    let mut inside_test = false;
    for (event, place) in events(text) {
        match event {
            Event::Html(html) => {
                inside_test |= html.starts_with("<!-- test:");
                let inside = html.trim().trim_start_matches("<!--").trim_end_matches("-->").trim();
                if inside_test {
                    let line = inside.strip_prefix("test:").unwrap_or(inside).trim();
                    test.extend((!line.is_empty()).then(|| line.to_string()));
                    inside_test = !html.contains("-->");
                }
            }
            Event::Start(Tag::HtmlBlock) | Event::End(TagEnd::HtmlBlock) => {}
            Event::Start(Tag::CodeBlock(kind)) => {
                let language = match kind {
                    CodeBlockKind::Fenced(language) => language.to_string(),
                    CodeBlockKind::Indented => "indented".into(),
                };
                let test = std::mem::take(&mut test);
                open = Some(Block { language, text: String::new(), line: line(text, place.start), test });
            }
            Event::Text(t) if open.is_some() => open.as_mut().unwrap().text.push_str(&t),
            Event::End(TagEnd::CodeBlock) => found.extend(open.take()),
            // Any element between a comment and a block separates them.
            _ => assert!(test.is_empty(), "line {}: a test comment before no block", line(text, place.start)),
        }
    }
    assert!(test.is_empty(), "a test comment before no block: {test:?}");
    found
}
