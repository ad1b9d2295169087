//! Reading files of lines, and showing foreign text.

use std::borrow::Cow;

/// Whether a character acts on a terminal or on the text around it instead of being seen: controls (C0, DEL,
/// C1), marks of the direction of writing, characters without width, and separators of lines and paragraphs.
pub fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(
            c,
            '\u{ad}'
                | '\u{61c}'
                | '\u{180e}'
                | '\u{200b}'..='\u{200f}'
                | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}'
                | '\u{feff}'
                | '\u{fff9}'..='\u{fffb}'
                | '\u{e0000}'..='\u{e007f}'
        )
}

/// Whether the name of a node may have this character.
pub(crate) fn is_in_node_name(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '.' | '_' | '-')
}

/// Whether the name of a port may have this character.
pub(crate) fn is_in_port_name(c: char) -> bool {
    !(c.is_whitespace() || is_hidden(c) || matches!(c, '"' | '\'' | '\\'))
}

/// Text for a terminal: hidden characters become visible escapes such as `\u{1b}`. Line ends and tabs stay.
pub fn visible(text: &str) -> Cow<'_, str> {
    with_escapes(text, |c, out| out.extend(c.escape_default()))
}

/// The same of JSON, whose strings have escapes of their own: `\u001b`.
pub fn visible_json(json: &str) -> Cow<'_, str> {
    with_escapes(json, |c, out| {
        c.encode_utf16(&mut [0; 2]).iter().for_each(|unit| out.push_str(&format!("\\u{unit:04x}")));
    })
}

fn with_escapes(text: &str, escape: impl Fn(char, &mut String)) -> Cow<'_, str> {
    let escaped = |c: char| is_hidden(c) && !matches!(c, '\n' | '\t');
    if !text.contains(escaped) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if escaped(c) { escape(c, &mut out) } else { out.push(c) }
    }
    Cow::Owned(out)
}

/// The lines of a file with their numbers, from 1, trimmed; empty lines and
/// those that begin with `#` are skipped.
pub(crate) fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    (1..)
        .zip(text.lines())
        .map(|(line, content)| (line, content.trim()))
        .filter(|(_, content)| !content.is_empty() && !content.starts_with('#'))
}

/// Foreign text, cut to the length that an error can show.
pub(crate) fn shown(text: &str) -> String {
    let cut: String = text.chars().take(40).collect();
    if cut.len() < text.len() { format!("{cut}…") } else { cut }
}

/// A number of things in words; `what` is the singular.
pub fn count(n: u64, what: &str) -> String {
    let plural = if what.ends_with("tch") { "es" } else { "s" };
    format!("{n} {what}{}", if n == 1 { "" } else { plural })
}

/// Names that [`sample`] shows of a list before it cuts it.
pub const SAMPLE: usize = 6;

/// Names in a row; of many, the first and the last.
pub fn sample(names: &[&str]) -> String {
    match names {
        [] => "none".to_string(),
        few if few.len() <= SAMPLE => few.join(", "),
        many => format!("{}, … {}", many[..SAMPLE - 1].join(", "), many[many.len() - 1]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hidden_characters_become_visible() {
        for c in [
            '\u{1b}', '\u{7f}', '\u{9b}', '\u{61c}', '\u{200b}', '\u{200e}', '\u{2028}', '\u{202e}',
            '\u{2066}',
        ] {
            let text = format!("a{c}b\n\tü");
            assert_eq!(visible(&text), format!("a\\u{{{:x}}}b\n\tü", u32::from(c)));
            let json = serde_json::to_string(&text).unwrap();
            let shown = visible_json(&json);
            assert!(!shown.contains(is_hidden), "{shown}");
            assert_eq!(serde_json::from_str::<String>(&shown).unwrap(), text);
        }
        assert_eq!(visible("a\rb"), "a\\rb");
        assert!(matches!(visible("plain\n\tü"), Cow::Borrowed(_)));
        assert_eq!(visible_json("\u{e0041}"), "\\udb40\\udc41");
    }
}
