//! The flows of all runs as one dataset: `flows/load=0.3/seed=1/flows.parquet`. Each file is that of the run's own
//! directory under a second name. Polars, pyarrow, DuckDB and Spark read such Hive partitions as columns.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::path::Path;

use parquet::file::reader::{FileReader, SerializedFileReader};
use serde_json::Value;

use super::compare::Entry;
use super::directory::Directory;
use super::{Grid, typed};
use crate::columns::read::guarded;
use crate::data::DataFile;
use crate::storage::{Error, failed};
use crate::temporary::{Temporary, sync};

/// The directory of the dataset.
pub const FLOWS: &str = "flows";
/// The partition of the seeds.
const SEED: &str = "seed";

/// Makes the dataset of the runs that are done, in the directory of their grid. An older one is replaced.
///
/// # Errors
/// A file of a run cannot be read, or the dataset cannot be written.
pub fn write(directory: &Directory, grid: &Grid, entries: &[Entry]) -> Result<(), Error> {
    let done: Vec<(usize, u64)> =
        entries.iter().enumerate().filter_map(|(run, e)| Some((run, e.row.as_ref()?.seed))).collect();
    let file = DataFile::Flows.name();
    let of_run = |run: usize| directory.run(&grid.name(run)).join(file);
    let Some(&(first, _)) = done.first() else { return Ok(()) };
    let keys = keys(grid, &columns(&of_run(first))?);
    let target = directory.path().join(FLOWS);
    let temporary = Temporary::beside(&target)?;
    let new = temporary.place();
    let mut made = BTreeSet::new();
    for (run, seed) in done {
        let values = grid.values(grid.point_of(run));
        let parts = keys.iter().zip(values).map(|(key, value)| partition(key, value));
        let place = parts.chain([format!("{SEED}={seed}")]).fold(new.clone(), |path, part| path.join(part));
        fs::create_dir_all(&place).map_err(|e| failed(&place, "cannot be created as a directory", &e))?;
        let (from, to) = (of_run(run), place.join(file));
        // Some file systems know no second name.
        let linked = fs::hard_link(&from, &to).or_else(|_| fs::copy(&from, &to).map(drop));
        linked.map_err(|e| failed(&to, "cannot be written", &e))?;
        made.extend(place.ancestors().take_while(|path| path.starts_with(&new)).map(Path::to_path_buf));
    }
    made.iter().try_for_each(|directory| sync(directory))?;
    temporary.put_directory(|_| Ok(()))
}

/// A partition: a folder with the flows that have this value of a key.
pub fn partition(key: &str, value: &str) -> String {
    format!("{key}={}", escaped(&text(value)))
}

/// The names of the partitions: short ones, but none that the flows have as a column.
pub fn keys(grid: &Grid, columns: &BTreeSet<String>) -> Vec<String> {
    let taken = |head: &String| columns.contains(head) || head == SEED;
    let heads = grid.heads().into_iter().zip(&grid.axes);
    heads.map(|(head, axis)| if taken(&head) { axis.key.clone() } else { head }).collect()
}

fn columns(path: &Path) -> Result<BTreeSet<String>, Error> {
    let read = || {
        let file = SerializedFileReader::new(File::open(path)?)?;
        let columns = file.metadata().file_metadata().schema_descr().columns().iter();
        Ok(columns.map(|column| column.name().to_string()).collect())
    };
    guarded(read).map_err(|why| Error::new(path, format!("is damaged: {why}"), super::directory::RESUME))
}

/// A value without its quotes.
fn text(value: &str) -> String {
    match typed(value) {
        Value::String(text) => text,
        other => other.to_string(),
    }
}

/// A value as a part of a path: what not every file system and reader takes is written as `%20`.
fn escaped(value: &str) -> String {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"-_.+".contains(&b);
    value.bytes().map(|b| if plain(b) { char::from(b).to_string() } else { format!("%{b:02X}") }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grid::Axis;

    #[test]
    fn names_of_partitions_are_short_and_no_columns() {
        let axis = |key: &str| Axis { key: key.into(), values: vec!["1".into()], named: false };
        let grid = Grid {
            axes: vec![axis("traffic.0.load"), axis("traffic.0.size"), axis("run.seed")],
            seeds: vec![],
        };
        let columns = BTreeSet::from(["size".to_string()]);
        assert_eq!(keys(&grid, &columns), ["load", "traffic.0.size", "run.seed"]);
    }

    #[test]
    fn values_are_parts_of_paths() {
        let of = |value: &str| escaped(&text(value));
        assert_eq!(of("0.3"), "0.3");
        assert_eq!(of("\"none\""), "none");
        assert_eq!(of("none"), "none");
        assert_eq!(of("{ a = \"b/c\" }"), "%7B%20a%20%3D%20%22b%2Fc%22%20%7D");
        assert_eq!(of("é"), "%C3%A9");
        assert_eq!(of("true"), "true");
    }
}
