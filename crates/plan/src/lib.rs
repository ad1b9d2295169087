//! From a scenario file's text to a [`plan::Plan`]: parsing with errors that name line, key and correction;
//! traffic; loads; ideal completion times. It is pure: it runs nothing, and reads only the files that the
//! caller read for it.

// Where a name says it all, there is no more to say.
#![allow(missing_docs)]

pub mod balancing;
mod choices;
pub mod describe;
pub mod document;
pub mod error;
pub mod ideal;
mod known;
pub mod names;
mod parse;
pub mod plan;
pub mod reference;
mod resolve;
pub mod scenario;
pub mod schema;
pub mod size;
pub mod variants;

pub use error::{Error, Warning};
pub use known::Known;

use std::io;
use std::path::Path;
use xoff_net::routing::{Router, Saturation};

#[derive(Clone, Debug)]
pub struct Loaded {
    /// The scenario as written, with every default and override filled in.
    pub scenario: scenario::Scenario,
    pub plan: plan::Plan,
    /// Of each traffic class whose load is a fraction of it: the most that the
    /// network carries of that traffic.
    pub saturation: Vec<Option<Saturation>>,
    /// Of each traffic class, the expected values, if its distribution determines them.
    pub expected: Vec<Option<Expected>>,
    /// The router of the flows' routes in the intact network, for callers that need other routes.
    pub router: Router,
    /// Allowed settings that may have another effect than the author expects.
    pub warnings: Vec<Warning>,
}

/// The expected values of a traffic class, from its distribution.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Expected {
    /// Number of flows; `None` if it is set and not drawn.
    pub flows: Option<f64>,
    /// Mean payload of a flow in bytes.
    pub mean_size: f64,
}

/// What a scenario must have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Needs {
    /// At least one `[[traffic]]` table.
    Traffic,
    /// A network: traffic may be missing.
    Network,
}

/// Reads the scenario `text`, which has traffic, and works it out.
///
/// `name` is the file's name in errors. `overrides` are applied in order: a key such as `flow_control.xoff`,
/// `traffic[0].load` or `traffic.0.load`, and a value that is parsed as TOML or otherwise used as text.
/// `files` reads the files that the scenario names; it gets their paths as written.
pub fn load(
    name: &str,
    text: &[u8],
    overrides: &[(String, String)],
    files: &dyn Fn(&Path) -> io::Result<Vec<u8>>,
) -> Result<Loaded, Error> {
    load_table(name, text, "", overrides, Needs::Traffic, files, &|_| Ok(()), None)
}

/// The first error in the keys and values of a scenario, which is a table of `text` or all of it. Nothing is
/// worked out, so errors of values that do not fit together are left to [`load_table`].
pub fn look(
    name: &str,
    text: &[u8],
    table: &str,
    overrides: &[(String, String)],
    needs: Needs,
) -> Result<(), Error> {
    let source = document::Source::new(name, text, overrides)?;
    let doc = document::Document::parse_table(&source, table)?;
    parse::scenario(&doc, needs, &mut Vec::new()).map(drop)
}

/// The variants of a scenario, which is a table of `text` or all of it.
///
/// # Errors
/// A [`scenario::Variant`] is wrong, or the text is no TOML.
pub fn variants(name: &str, text: &[u8], table: &str) -> Result<Vec<variants::Variant>, Error> {
    let source = document::Source::new(name, text, &[])?;
    variants::read(&document::Document::parse_table(&source, table)?)
}

/// The same as [`load()`] of a text that holds the scenario in its table `table`, beside
/// other things; errors keep their places in that text.
///
/// `goes_on` is asked at least every few milliseconds of work on flows, and before large tables are made. It gets the
/// bytes that the next step needs, as far as they are known. What it refuses is the error.
///
/// `known` is what the last scenario has left, and keeps what this one leaves.
#[allow(clippy::too_many_arguments)]
pub fn load_table(
    name: &str,
    text: &[u8],
    table: &str,
    overrides: &[(String, String)],
    needs: Needs,
    files: &dyn Fn(&Path) -> io::Result<Vec<u8>>,
    goes_on: &dyn Fn(u64) -> Result<(), String>,
    known: Option<&mut Known>,
) -> Result<Loaded, Error> {
    let source = document::Source::new(name, text, overrides)?;
    let doc = document::Document::parse_table(&source, table)?;
    let mut warnings = Vec::new();
    let scenario = parse::scenario(&doc, needs, &mut warnings)?;
    let built = resolve::plan(&doc, &scenario, files, goes_on, known)?;
    warnings.extend(built.warnings);
    Ok(Loaded {
        scenario,
        plan: built.plan,
        saturation: built.saturation,
        expected: built.expected,
        router: built.router,
        warnings,
    })
}
