//! A table of static routes.

use crate::builders::fault;
use crate::error::SpecError;

const EXAMPLE: &str = "the file has the header `at,to,via` and lines such as `leaf1,srv-2*,spine1`";

/// A line of the table: at `at`, packets for the hosts `to` go to `via`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StaticRoute {
    pub at: String,
    /// A pattern, as of [`super::roles::matches`].
    pub to: String,
    pub via: String,
    /// From 1.
    pub line: usize,
}

/// Reads a CSV with the columns `at`, `to` and `via`, in any order.
pub fn static_routes(text: &str) -> Result<Vec<StaticRoute>, SpecError> {
    let mut rows = ::csv::ReaderBuilder::new()
        .has_headers(false)
        .comment(Some(b'#'))
        .trim(::csv::Trim::All)
        .flexible(true)
        .from_reader(text.as_bytes());
    let mut columns: Option<[usize; 3]> = None;
    let mut routes = Vec::new();
    for record in rows.records() {
        let record = record.map_err(|_| fault(1, "this file is no CSV file", EXAMPLE))?;
        let line = record.position().map_or(1, |p| p.line() as usize);
        let Some(places) = &columns else {
            let place = |name: &str| record.iter().position(|field| field == name);
            let (Some(at), Some(to), Some(via), 3) = (place("at"), place("to"), place("via"), record.len())
            else {
                return Err(fault(line, "the header must be at,to,via", EXAMPLE));
            };
            columns = Some([at, to, via]);
            continue;
        };
        if record.len() != 3 || record.iter().any(str::is_empty) {
            return Err(fault(line, "a line must have the three fields at, to and via", EXAMPLE));
        }
        let [at, to, via] = places.map(|i| record[i].to_string());
        routes.push(StaticRoute { at, to, via, line });
    }
    match routes.is_empty() {
        true => Err(fault(1, "the file has no routes", EXAMPLE)),
        false => Ok(routes),
    }
}
