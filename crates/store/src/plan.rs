//! What is to be run.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use twox_hash::XxHash3_128;
use xoff_results::checksum::{Unsealed, sealed, unsealed};
use xoff_results::grid::{Axis, Grid};

use crate::bucket::{Bucket, Error};

/// Value of `format` in `plan.json`.
pub const FORMAT: &str = "xoff store";
/// Version of the store's layout; grows when an object changes its meaning.
pub const FORMAT_VERSION: u32 = 1;
/// The object with the plan.
pub const PLAN: &str = "plan.json";

/// The runs of a grid, and everything that they are made of.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    pub format: String,
    pub format_version: u32,
    /// Version of the program. Workers have the same one.
    pub xoff_version: String,
    pub name: String,
    /// The path of the scenario's file, for messages, and its text.
    pub path: String,
    pub text: String,
    /// Whether the scenario is a table of the text, as in an experiment.
    pub in_table: bool,
    /// The files that the scenario names: path as written, and content.
    pub files: BTreeMap<String, String>,
    /// The same of files that are not text: content in hexadecimal digits.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub binary_files: BTreeMap<String, String>,
    /// Keys and values of every run.
    pub overrides: Vec<(String, String)>,
    pub variants: Vec<Variant>,
    pub axes: Vec<Axis>,
    /// First and last seed of each range; empty if the scenario says it.
    pub seeds: Vec<(u64, u64)>,
    /// Most runs of a chunk.
    pub chunk: usize,
    /// Whether the whole directory of each run is kept.
    pub keep: bool,
}

/// A variant: its name, and the keys that it sets.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Variant {
    pub name: String,
    pub set: Vec<(String, String)>,
}

impl Plan {
    pub fn grid(&self) -> Grid {
        let seeds = self.seeds.iter().flat_map(|&(first, last)| first..=last).collect();
        Grid { axes: self.axes.clone(), seeds }
    }

    /// Writes the plan and returns true, or returns false if the store has the same plan.
    ///
    /// # Errors
    /// The store has another plan, or cannot be written.
    pub fn put(&self, bucket: &Bucket) -> Result<bool, Error> {
        let text = sealed(self).map_err(|e| bucket.error(PLAN, format!("cannot be written: {e}"), ""))?;
        if bucket.put_new(PLAN, text.as_bytes())? {
            return Ok(true);
        }
        if Self::get(bucket)? == *self {
            return Ok(false);
        }
        Err(bucket.error(PLAN, "is of another grid", "choose another store, or remove this one"))
    }

    /// Reads the plan of a store.
    ///
    /// # Errors
    /// There is none, it is damaged, or of another format.
    pub fn get(bucket: &Bucket) -> Result<Self, Error> {
        let help = "type the store of `xoff grid plan`";
        let Some(text) = bucket.get(PLAN)? else {
            return Err(bucket.error("", format!("is no store: it has no {PLAN}"), help));
        };
        let found = match unsealed(&text) {
            Ok(found) => found,
            Err(Unsealed::Damaged) => {
                let help = "write the plan again, into another store";
                return Err(bucket.error(PLAN, "is damaged: it does not match its checksum", help));
            }
            Err(Unsealed::Without(_)) => return Err(bucket.error(PLAN, "is no plan of a store", help)),
        };
        if found["format"] != FORMAT || found["format_version"] != FORMAT_VERSION {
            let message = format!(
                "is in format {} of {}, and this version of xoff reads format {FORMAT_VERSION} of `{FORMAT}`",
                found["format_version"], found["format"]
            );
            return Err(bucket.error(PLAN, message, help));
        }
        serde_json::from_value(found).map_err(|e| bucket.error(PLAN, format!("is damaged: {e}"), help))
    }

    /// The hash of a run, by which the same run of another grid is known: 32 hexadecimal digits of version, scenario,
    /// files, overrides.
    pub fn hash(&self, overrides: &[(String, String)]) -> String {
        let mut sum = XxHash3_128::new();
        let mut part = |bytes: &[u8]| {
            sum.write(&(bytes.len() as u64).to_le_bytes());
            sum.write(bytes);
        };
        part(self.xoff_version.as_bytes());
        part(self.text.as_bytes());
        for (path, content) in &self.files {
            part(path.as_bytes());
            part(content.as_bytes());
        }
        for (path, content) in &self.binary_files {
            part(b"hexadecimal");
            part(path.as_bytes());
            part(content.as_bytes());
        }
        let mut overrides: Vec<_> = overrides.iter().collect();
        overrides.sort_unstable();
        for (key, value) in overrides {
            part(key.as_bytes());
            part(value.as_bytes());
        }
        format!("{:032x}", sum.finish_128())
    }

    /// The files that the scenario names: path as written, and content.
    ///
    /// # Errors
    ///
    /// The path of a file whose digits are damaged.
    pub fn named_files(&self) -> Result<BTreeMap<PathBuf, Vec<u8>>, String> {
        let text = self.files.iter().map(|(path, text)| (PathBuf::from(path), text.clone().into_bytes()));
        let mut all: BTreeMap<PathBuf, Vec<u8>> = text.collect();
        for (path, digits) in &self.binary_files {
            let byte = |two: &[u8]| u8::from_str_radix(std::str::from_utf8(two).ok()?, 16).ok();
            let bytes: Option<Vec<u8>> = digits.as_bytes().chunks(2).map(byte).collect();
            let bytes = bytes.filter(|_| digits.len().is_multiple_of(2));
            all.insert(path.into(), bytes.ok_or_else(|| path.clone())?);
        }
        Ok(all)
    }

    pub fn layout(&self) -> Layout {
        Layout::of(&self.grid(), self.chunk)
    }
}

/// How runs are divided into chunks. The runs with the same values of the first axes are a group, and no chunk has runs
/// of two groups: the flows of a group have a folder of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// How many axes, from the first, tell the groups apart.
    pub depth: usize,
    /// Runs of a group.
    group: usize,
    groups: usize,
    chunk: usize,
}

impl Layout {
    /// As many axes as leave at least one whole chunk in a group.
    fn of(grid: &Grid, chunk: usize) -> Self {
        let runs = grid.runs().unwrap_or(0);
        let (mut depth, mut groups) = (0, 1);
        for axis in &grid.axes {
            let more = groups * axis.values.len();
            if runs / more < chunk {
                break;
            }
            (depth, groups) = (depth + 1, more);
        }
        Self { depth, group: runs / groups, groups, chunk }
    }

    /// Chunks of a group.
    pub fn per_group(&self) -> usize {
        self.group.div_ceil(self.chunk)
    }

    /// Number of chunks.
    pub fn chunks(&self) -> usize {
        self.groups * self.per_group()
    }

    /// The runs of a chunk.
    pub fn runs(&self, chunk: usize) -> Range<usize> {
        let (group, at) = (chunk / self.per_group(), chunk % self.per_group());
        let first = group * self.group;
        first + at * self.chunk..first + ((at + 1) * self.chunk).min(self.group)
    }

    /// The name of a chunk.
    pub fn name(&self, chunk: usize) -> String {
        format!("{chunk:07}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grid(axes: &[usize], seeds: u64) -> Grid {
        let axis = |(i, &n): (usize, &usize)| Axis {
            key: format!("k{i}"),
            values: (0..n).map(|v| v.to_string()).collect(),
            named: false,
        };
        Grid { axes: axes.iter().enumerate().map(axis).collect(), seeds: (1..=seeds).collect() }
    }

    #[test]
    fn each_run_is_in_one_chunk_and_no_chunk_in_two_groups() {
        for (axes, seeds, chunk, depth) in [
            (&[3, 5][..], 100, 10, 2),
            (&[3, 5], 100, 101, 1),
            (&[3, 5], 7, 7, 2),
            (&[3, 5], 7, 35, 1),
            (&[3, 5], 7, 36, 0),
            (&[3, 5], 7, 1000, 0),
            (&[], 1, 4, 0),
            (&[1_000], 1_000, 50, 1),
            (&[1_000_000], 0, 100, 0),
        ] {
            let grid = grid(axes, seeds);
            let layout = Layout::of(&grid, chunk);
            assert_eq!(layout.depth, depth, "{axes:?} {seeds} {chunk}");
            let all: Vec<usize> = (0..layout.chunks()).flat_map(|c| layout.runs(c)).collect();
            assert_eq!(all, (0..grid.runs().unwrap()).collect::<Vec<_>>());
            for c in 0..layout.chunks() {
                let runs = layout.runs(c);
                assert!(!runs.is_empty() && runs.len() <= chunk);
                let group = |run: usize| grid.positions(grid.point_of(run))[..depth].to_vec();
                assert_eq!(group(runs.start), group(runs.end - 1));
            }
        }
    }

    #[test]
    fn every_part_of_a_run_counts_for_its_hash() {
        let plan = Plan {
            format: FORMAT.into(),
            format_version: FORMAT_VERSION,
            xoff_version: "1".into(),
            name: "n".into(),
            path: "n.toml".into(),
            text: "t".into(),
            in_table: false,
            files: BTreeMap::new(),
            binary_files: BTreeMap::new(),
            overrides: Vec::new(),
            variants: Vec::new(),
            axes: Vec::new(),
            seeds: Vec::new(),
            chunk: 1,
            keep: false,
        };
        let set = |pairs: &[(&str, &str)]| -> Vec<(String, String)> {
            pairs.iter().map(|(k, v)| (k.to_string(), v.to_string())).collect()
        };
        let one = plan.hash(&set(&[("a", "1"), ("b", "2")]));
        assert_eq!(one, plan.hash(&set(&[("b", "2"), ("a", "1")])), "the order says nothing");
        let others = [
            plan.hash(&set(&[("a", "1"), ("b", "3")])),
            plan.hash(&set(&[("a", "1b"), ("", "2")])),
            Plan { xoff_version: "2".into(), ..plan.clone() }.hash(&set(&[("a", "1"), ("b", "2")])),
            Plan { text: "u".into(), ..plan.clone() }.hash(&set(&[("a", "1"), ("b", "2")])),
            Plan { files: [("f".to_string(), "c".to_string())].into(), ..plan.clone() }
                .hash(&set(&[("a", "1"), ("b", "2")])),
            Plan { binary_files: [("f".to_string(), "ff".to_string())].into(), ..plan.clone() }
                .hash(&set(&[("a", "1"), ("b", "2")])),
        ];
        assert!(!others.contains(&one));
        let named = |digits: &str| {
            let binary_files = [("b".to_string(), digits.to_string())].into();
            Plan { files: [("t".to_string(), "c".to_string())].into(), binary_files, ..plan.clone() }
                .named_files()
        };
        let both = [("b".into(), vec![0x00, 0xfe]), ("t".into(), b"c".to_vec())].into();
        assert_eq!(named("00fe"), Ok(both));
        assert_eq!([named("00f"), named("0g")], ["b", "b"].map(|path| Err(path.to_string())));
        assert_eq!(one.len(), 32);
    }
}
