//! `xoff report`: one page of HTML for a run, two runs or a grid, only from their directories.
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
pub mod jobs;
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
    Pair(Box<Pair>),
    Grid(Box<grid::Grid>),
    Papers(Box<Papers>),
}

/// A reproduction of papers. The crate that judges claims makes its content.
#[derive(Clone, Debug, Serialize)]
pub struct Papers {
    pub name: String,
    pub headline: String,
    pub site: Json,
}

/// Two runs beside each other.
#[derive(Clone, Debug, Serialize)]
pub struct Pair {
    pub name: String,
    pub headline: String,
    pub runs: [run::Run; 2],
}

/// Reads the directories of two runs.
pub fn pair(paths: [&Path; 2]) -> Result<Document, Error> {
    let read = |path: &Path| match document(path)? {
        Document::Run(run) => Ok(*run),
        _ => Err(Error::new(
            path,
            "is a grid, and only runs can be beside each other",
            "Type two of its runs.",
        )),
    };
    let runs = [read(paths[0])?, read(paths[1])?];
    let name = format!("{} and {}", runs[0].name, runs[1].name);
    let headline = runs.each_ref().map(|run| format!("{}: {}", run.name, run.headline)).join(" ");
    Ok(Document::Pair(Box::new(Pair { name, headline, runs })))
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

/// The pages of all runs of the grid at `path`, each in its directory; `wrote` is called after each one, with the
/// number of pages so far and of all. Returns how many there are.
pub fn write_runs(path: &Path, wrote: &mut dyn FnMut(usize, usize)) -> Result<usize, Error> {
    let names = grid::stored_runs(path)?;
    for (done, name) in names.iter().enumerate() {
        write(&path.join(name), None)?;
        wrote(done + 1, names.len());
    }
    Ok(names.len())
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
