//! `xoff report`: one page of HTML for a run or a grid, only from its directory.
//!
//! This side reads the directory and makes one [`Document`] of it, of limited size for any run. Time is
//! divided into [`clock::BINS`] bins. Of long lists only the worst entries are kept, and the rest is counted
//! in `left_out`. The words are those of `xoff run` and `xoff explain`. `viewer/` draws it: its bundle is
//! embedded, so this crate builds with only Rust.

pub mod banner;
pub mod clock;
pub mod fabric;
pub mod flows;
pub mod grid;
pub mod html;
pub mod pauses;
pub mod rankings;
pub mod run;
pub mod sentence;
pub mod series;
pub mod stories;

use std::path::{Path, PathBuf};

use serde::Serialize;
use serde_json::Value as Json;

use crate::layout::PAGE;
use crate::storage::Error;
use crate::{explain, grid as grids, integrity, temporary};

/// The content of a page.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Document {
    Run(Box<run::Run>),
    Grid(Box<grid::Grid>),
}

/// Reads the directory of a run or a grid.
pub fn document(path: &Path) -> Result<Document, Error> {
    integrity::guarded(path, || {
        if path.join(grids::directory::MANIFEST).exists() {
            return Ok(Document::Grid(Box::new(grid::read(path)?)));
        }
        let manifest = explain::read::manifest(path)?;
        Ok(Document::Run(Box::new(run::read(path, &manifest)?)))
    })
}

/// Writes the page of the run or grid at `path` to `out`, or to [`PAGE`] in it; returns the
/// page's place. It is there whole or not at all.
pub fn write(path: &Path, out: Option<&Path>) -> Result<PathBuf, Error> {
    let page = html::page(&document(path)?);
    let target = out.map_or_else(|| path.join(PAGE), Path::to_path_buf);
    put(&page, &target)?;
    Ok(target)
}

/// Writes a page to a file.
pub fn put(page: &str, target: &Path) -> Result<(), Error> {
    let refused =
        |message| Err(Error::new(target, message, "Type the file of the page, such as --out report.html."));
    if target.is_dir() {
        return refused("is a directory");
    }
    if target.file_name().is_none() {
        return refused("is not the name of a file");
    }
    temporary::put(target, page)
}

/// A text of a JSON object; empty if it has none.
fn text<'j>(json: &'j Json, pointer: &str) -> &'j str {
    json.pointer(pointer).and_then(Json::as_str).unwrap_or_default()
}

/// A whole number of a JSON object; 0 if it has none.
fn int(json: &Json, pointer: &str) -> u64 {
    json.pointer(pointer).and_then(Json::as_u64).unwrap_or(0)
}
