//! One file of HTML around a document: nothing in it is fetched from anywhere.

use std::io::{self, Write};

use serde::Serialize;
use serde_json::ser::{CharEscape, Formatter};
use xoff_net::text::visible;

use super::Document;

/// The program that draws the page, as `make viewer` has built it.
const SCRIPT: &str = include_str!("viewer.js");
const STYLE: &str = include_str!("viewer.css");
/// Under which terms the libraries in it come.
const NOTICE: &str = include_str!("NOTICE.txt");

/// The page of a document.
pub fn page(document: &Document) -> String {
    let (title, headline) = match document {
        Document::Run(run) => (&run.name, &run.headline),
        Document::Pair(pair) => (&pair.name, &pair.headline),
        Document::Grid(grid) => (&grid.name, &grid.headline),
        Document::Papers(papers) => (&papers.name, &papers.headline),
    };
    let mut json = Vec::new();
    let mut writer = serde_json::Serializer::with_formatter(&mut json, Visible);
    document.serialize(&mut writer).expect("a document is plain data");
    let json = String::from_utf8(json).expect("JSON is text");
    // The text between the tags must not end them.
    let json = json.replace('<', "\\u003c");
    let notice = NOTICE.replace("--", "- -");
    format!(
        "<!doctype html>\n\
         <html lang=\"en\">\n\
         <head>\n\
         <meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; \
         script-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <title>{title} - xoff report</title>\n\
         <link rel=\"icon\" href=\"data:,\">\n\
         <style>{STYLE}</style>\n\
         </head>\n\
         <body>\n\
         <main id=\"page\">\n\
         <h1>{title}</h1>\n\
         <p class=\"headline\">{headline}</p>\n\
         <noscript><p>Charts, tables and the drawing need JavaScript, which is disabled. This file contains all data \
         and loads nothing from the network.</p></noscript>\n\
         </main>\n\
         <script type=\"application/json\" id=\"document\">{json}</script>\n\
         <!--\n{notice}-->\n\
         <script>{SCRIPT}</script>\n\
         </body>\n\
         </html>\n",
        title = escaped(title),
        headline = escaped(headline),
    )
}

/// Writes JSON whose texts have their hidden characters made visible: names come from outside, and a page
/// shows them unchanged.
struct Visible;

impl Formatter for Visible {
    fn write_string_fragment<W: ?Sized + Write>(&mut self, writer: &mut W, part: &str) -> io::Result<()> {
        // A part has no backslash of its own.
        writer.write_all(visible(part).replace('\\', "\\\\").as_bytes())
    }

    fn write_char_escape<W: ?Sized + Write>(&mut self, writer: &mut W, escape: CharEscape) -> io::Result<()> {
        match escape {
            CharEscape::AsciiControl(byte) => write!(writer, "\\\\u{{{byte:x}}}"),
            CharEscape::Backspace => writer.write_all(b"\\\\u{8}"),
            CharEscape::FormFeed => writer.write_all(b"\\\\u{c}"),
            CharEscape::CarriageReturn => writer.write_all(b"\\\\u{d}"),
            CharEscape::LineFeed => writer.write_all(b"\\n"),
            CharEscape::Tab => writer.write_all(b"\\t"),
            CharEscape::Quote => writer.write_all(b"\\\""),
            CharEscape::ReverseSolidus => writer.write_all(b"\\\\"),
            CharEscape::Solidus => writer.write_all(b"\\/"),
        }
    }
}

fn escaped(text: &str) -> String {
    visible(text).replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hidden_characters_of_texts_are_visible_on_the_page() {
        let text = "a\u{1b}[31m\u{8}\r\u{202e}\u{7f}\\ \"<\n\tü";
        let mut json = Vec::new();
        text.serialize(&mut serde_json::Serializer::with_formatter(&mut json, Visible)).unwrap();
        let back: String = serde_json::from_slice(&json).unwrap();
        assert_eq!(back, "a\\u{1b}[31m\\u{8}\\u{d}\\u{202e}\\u{7f}\\ \"<\n\tü");
        assert_eq!(escaped("\u{2066}<"), "\\u{2066}&lt;");
    }

    #[test]
    fn the_bundle_cannot_end_the_tags_around_it() {
        assert!(!SCRIPT.to_ascii_lowercase().contains("</script"));
        assert!(!SCRIPT.contains("<!--"));
        assert!(!STYLE.to_ascii_lowercase().contains("</style"));
        assert!(!STYLE.contains("url(") && !STYLE.contains("@import"));
    }
}
