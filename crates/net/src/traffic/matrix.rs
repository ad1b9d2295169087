//! Traffic matrices from CSV files.

use crate::error::LineError;
use crate::text::shown;

/// A share of all flows, from some hosts to others, as a file writes it.
#[derive(Clone, Debug, PartialEq)]
pub struct MatrixEntry {
    /// Line, from 1.
    pub line: usize,
    /// The senders: a host or a group of hosts.
    pub from: String,
    /// The receivers: a host or a group of hosts.
    pub to: String,
    /// Share of the flows, from 0, relative to the sum of all.
    pub share: f64,
}

/// Reads a traffic matrix in one of two forms. A list has the header `from,to,share` and an entry in each
/// line. A square has the receivers in its first line, after an empty field, and in each further line a
/// sender and its shares. Empty lines and lines that begin with `#` are skipped; entries of share 0 are left
/// out.
pub fn matrix_csv(text: &str) -> Result<Vec<MatrixEntry>, LineError> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut lines = (1..)
        .zip(text.lines())
        .map(|(line, content)| (line, content.trim_end_matches('\r')))
        .filter(|(_, content)| !content.trim().is_empty() && !content.starts_with('#'));
    let (header_line, header) = lines.next().ok_or_else(|| LineError {
        line: 1,
        message: "the file is empty: write the header from,to,share".to_string(),
    })?;
    let header: Vec<&str> = header.split(',').map(str::trim).collect();
    let list = header == ["from", "to", "share"];
    let square = header.len() > 1 && header[0].is_empty();
    if !(list || square) {
        let message = "the header is from,to,share, or an empty field and then the receivers".to_string();
        return Err(LineError { line: header_line, message });
    }
    let mut entries = Vec::new();
    for (line, content) in lines {
        let fields: Vec<&str> = content.split(',').map(str::trim).collect();
        if fields.len() != header.len() {
            let message =
                format!("this line has {} fields, but the header has {}", fields.len(), header.len());
            return Err(LineError { line, message });
        }
        let mut add = |from: &str, to: &str, share: &str| {
            let value =
                share.parse().ok().filter(|s: &f64| s.is_finite() && *s >= 0.0).ok_or_else(|| LineError {
                    line,
                    message: format!("`{}` is not a share: write a number, 0 or more", shown(share)),
                })?;
            if value > 0.0 {
                entries.push(MatrixEntry { line, from: from.to_string(), to: to.to_string(), share: value });
            }
            Ok(())
        };
        if list {
            add(fields[0], fields[1], fields[2])?;
        } else {
            for (to, share) in header[1..].iter().zip(&fields[1..]) {
                add(fields[0], to, share)?;
            }
        }
    }
    if entries.is_empty() {
        let message = "the file has no share above 0".to_string();
        return Err(LineError { line: header_line, message });
    }
    Ok(entries)
}
