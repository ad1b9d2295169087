//! Reading files of lines.

/// The lines of a file with their numbers, from 1, trimmed; empty lines and
/// those that begin with `#` are skipped.
pub(crate) fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    (1..)
        .zip(text.lines())
        .map(|(line, content)| (line, content.trim()))
        .filter(|(_, content)| !content.is_empty() && !content.starts_with('#'))
}

/// Foreign text, cut to what an error can show.
pub(crate) fn shown(text: &str) -> String {
    let cut: String = text.chars().take(40).collect();
    if cut.len() < text.len() { format!("{cut}…") } else { cut }
}

/// A number of things in words; `what` is one of them.
pub(crate) fn count(n: u64, what: &str) -> String {
    let plural = if what.ends_with("ch") { "es" } else { "s" };
    format!("{n} {what}{}", if n == 1 { "" } else { plural })
}
