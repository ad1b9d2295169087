//! The directory of experiments: `PAPER/FIGURE.toml`, and `PAPER/claims.toml` for the claims whose experiment
//! has no file. Directories within that of a paper are ignored: they contain scenarios, flow sizes and the
//! like. xoff contains such a directory, for those who have only the program.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};
use std::{fs, io};

use xoff_plan::{Error, error::suggest};

use crate::experiment::{Claim, Claims, Measure};
use crate::read::{self, Read};
use crate::runs::written;

/// The file of claims whose experiment has no file.
pub const CLAIMS: &str = "claims.toml";

/// The directory of experiments in the current one, and the name of that in the program.
pub const EXPERIMENTS: &str = "experiments";

/// Path and content of each file that the program contains, as `build.rs` lists them.
pub const BUNDLED: &[(&str, &[u8])] = include!(concat!(env!("OUT_DIR"), "/experiments.rs"));

/// Where experiments are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    Directory(PathBuf),
    /// In the program. Their paths begin with [`EXPERIMENTS`].
    Bundled,
}

impl Place {
    /// The given directory. Without one, [`EXPERIMENTS`] in the current directory if it contains experiments, or
    /// else those of the program.
    pub fn found(given: Option<&Path>) -> Self {
        let dir = given.unwrap_or(Path::new(EXPERIMENTS));
        let toml = |path: &Path| path.extension().is_some_and(|e| e == "toml");
        let entries =
            |dir: &Path| fs::read_dir(dir).into_iter().flatten().flatten().map(|entry| entry.path());
        let has_some = || entries(dir).any(|paper| entries(&paper).any(|path| toml(&path)));
        if given.is_some() || has_some() { Self::Directory(dir.into()) } else { Self::Bundled }
    }

    fn root(&self) -> &Path {
        match self {
            Self::Directory(dir) => dir,
            Self::Bundled => Path::new(EXPERIMENTS),
        }
    }

    /// Reads a file below the folder of the experiments.
    pub fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        match self {
            Self::Directory(_) => fs::read(path),
            Self::Bundled => {
                let found = BUNDLED.iter().find(|(name, _)| Path::new(EXPERIMENTS).join(name) == path);
                found.map(|(_, content)| content.to_vec()).ok_or(io::ErrorKind::NotFound.into())
            }
        }
    }

    fn is_file(&self, path: &Path) -> bool {
        match self {
            Self::Directory(_) => path.is_file(),
            Self::Bundled => self.read(path).is_ok(),
        }
    }

    /// Names of the directories, or of the files, in a directory, in alphabetical order.
    fn names(&self, dir: &Path, directories: bool) -> Result<Vec<String>, Error> {
        let mut names = Vec::new();
        match self {
            Self::Directory(_) => {
                for entry in fs::read_dir(dir).map_err(|e| unreadable(dir, &e))? {
                    let path = entry.map_err(|e| unreadable(dir, &e))?.path();
                    if if directories { path.is_dir() } else { path.is_file() } {
                        names.extend(path.file_name().map(|n| n.to_string_lossy().into_owned()));
                    }
                }
            }
            Self::Bundled => {
                for (name, _) in BUNDLED {
                    let path = Path::new(EXPERIMENTS).join(name);
                    let mut rest = path.strip_prefix(dir).into_iter().flat_map(Path::components);
                    let first = rest.next();
                    names.extend(
                        first
                            .filter(|_| rest.next().is_some() == directories)
                            .map(|name| name.as_os_str().to_string_lossy().into_owned()),
                    );
                }
            }
        }
        names.sort_unstable();
        names.dedup();
        Ok(names)
    }
}

/// The files that the program contains for a paper, by their paths from the directory of `path`, which is one of them.
pub fn bundled_beside(path: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let inner = path.strip_prefix(EXPERIMENTS).unwrap_or(path);
    let paper = inner.components().next();
    let depth = inner.components().count().saturating_sub(1);
    let mut files = BTreeMap::new();
    for (name, text) in BUNDLED.iter().filter(|(name, _)| Path::new(name).components().next() == paper) {
        let from: Vec<Component<'_>> = inner.components().take(depth).collect();
        let to: Vec<Component<'_>> = Path::new(name).components().collect();
        let common = from.iter().zip(&to).take_while(|(a, b)| a == b).count();
        let up = std::iter::repeat_n(Component::ParentDir, depth - common);
        files.insert(up.chain(to[common..].iter().copied()).collect(), text.to_vec());
    }
    files
}

#[derive(Clone, Debug)]
pub struct Paper {
    /// Its short name, that of the directory.
    pub name: String,
    /// Its experiments, in the order of their names, numbers by size.
    pub experiments: Vec<Item>,
    pub claims: Option<Claims>,
}

#[derive(Clone, Debug)]
pub struct Item {
    pub path: PathBuf,
    pub text: Vec<u8>,
    pub read: Read,
    /// The experiment whose runs it looks at, if not its own.
    pub owner: Option<Box<Item>>,
}

impl Item {
    /// The experiment that has the runs.
    pub fn owner(&self) -> &Item {
        self.owner.as_deref().unwrap_or(self)
    }

    /// Leaves only what a claim needs: runs, values of varied keys, metrics. Its directory has the claim's
    /// name.
    fn narrow(&mut self, claim: &Claim) {
        if let Some(owner) = &mut self.owner {
            owner.narrow(claim);
        }
        let e = &mut self.read.experiment;
        let measures = claim.all_measures();
        let runs: Vec<&String> = measures.iter().flat_map(|m| m.against.iter().chain([&m.run])).collect();
        let keep: Vec<bool> = e.run.iter().map(|run| runs.contains(&&run.name)).collect();
        let mut kept = keep.iter();
        e.run.retain(|_| kept.next() == Some(&true));
        let mut kept = keep.iter();
        self.read.bases.retain(|_| kept.next() == Some(&true));
        for axis in e.vary.iter_mut().chain(e.quick.iter_mut().flat_map(|quick| &mut quick.vary)) {
            let places = |m: &'_ Measure| {
                let at = m.at.get(&axis.key).cloned();
                let others = [&m.against_at, &m.than_at].map(|other| other.get(&axis.key).cloned());
                at.map(|at| [at].into_iter().chain(others.into_iter().flatten()).collect::<Vec<_>>())
            };
            // A measure that does not name the key needs all of its values.
            let Some(needed) = measures.iter().map(places).collect::<Option<Vec<_>>>() else { continue };
            let fits = |value: &toml::Value| needed.iter().flatten().any(|n| written(n) == written(value));
            if axis.values.iter().any(fits) {
                axis.values.retain(fits);
            }
        }
        let names =
            measures.iter().flat_map(|m| [Some(&m.metric), m.against_metric.as_ref(), m.seeds_with.as_ref()]);
        let names: Vec<&String> = names.flatten().collect();
        e.metric.retain(|metric| names.contains(&&metric.name));
        e.plot.clear();
        e.chosen.retain(|c| c.runs.is_empty() || c.runs.iter().any(|name| runs.contains(&name)));
        e.id.clone_from(&claim.id);
    }
}

/// Reads all experiments below `dir`, papers in alphabetical order.
pub fn load(dir: &Path) -> Result<Vec<Paper>, Error> {
    load_from(&Place::Directory(dir.into()))
}

/// The same of the experiments in a place.
pub fn load_from(place: &Place) -> Result<Vec<Paper>, Error> {
    let dir = place.root();
    let names = place.names(dir, true)?;
    let mut papers = Vec::new();
    for name in names.iter().filter(|n| !n.starts_with('.')) {
        papers.push(paper(place, &dir.join(name), name)?);
    }
    papers.retain(|p| !p.experiments.is_empty() || p.claims.is_some());
    if papers.is_empty() {
        let help = "add files PAPER/FIGURE.toml to it, or choose another directory with --experiments DIR";
        return Err(about(dir, "the directory has no experiments").with_help(help));
    }
    Ok(papers)
}

fn paper(place: &Place, dir: &Path, name: &str) -> Result<Paper, Error> {
    let mut files = place.names(dir, false)?;
    files.retain(|name| name.ends_with(".toml"));
    files.sort_by_key(|f| natural(f.trim_end_matches(".toml")));
    let mut found = Paper { name: name.into(), experiments: Vec::new(), claims: None };
    let mut known: Vec<(String, PathBuf)> = Vec::new();
    for file in files {
        let path = dir.join(&file);
        let text = place.read(&path).map_err(|e| unreadable(&path, &e))?;
        let shown = path.display().to_string();
        let (paper, ids) = if file == CLAIMS {
            let claims = read::read_claims(&shown, &text)?;
            let said = (claims.paper.clone(), claims.claim.iter().map(|c| c.id.clone()).collect::<Vec<_>>());
            found.claims = Some(claims);
            said
        } else {
            let read = read::read_beside(&shown, &text, &|id| beside(place, dir, id))?;
            let e = &read.experiment;
            if file != format!("{}.toml", e.id) {
                let help = format!("write id = \"{}\", or rename the file", file.trim_end_matches(".toml"));
                return Err(about(&path, &format!("its id is `{}`", e.id)).with_help(help));
            }
            let said = (e.paper.clone(), e.claim.iter().map(|c| c.id.clone()).collect());
            found.experiments.push(Item { path: path.clone(), text, read, owner: None });
            said
        };
        if paper != name {
            let help = format!("write paper = \"{name}\", or move the file");
            return Err(about(&path, &format!("its paper is `{paper}`")).with_help(help));
        }
        for id in ids {
            if let Some((_, other)) = known.iter().find(|(k, _)| *k == id) {
                let message = format!("the claim {id} is also in {}", other.display());
                return Err(about(&path, &message).with_help("remove it from one of the two"));
            }
            known.push((id, path.clone()));
        }
    }
    let all = found.experiments.clone();
    for item in &mut found.experiments {
        let Some(owner) = &item.read.experiment.runs_of else { continue };
        let owner = all.iter().find(|o| o.read.experiment.id == *owner);
        item.owner = Some(Box::new(owner.expect("it was read beside").clone()));
    }
    Ok(found)
}

/// The experiment `id` of the paper in `dir`, if it has a file; whose runs it looks at is not followed.
fn beside(place: &Place, dir: &Path, id: &str) -> Result<Option<Read>, Error> {
    let path = dir.join(format!("{id}.toml"));
    if id == CLAIMS.trim_end_matches(".toml") || !place.is_file(&path) {
        return Ok(None);
    }
    let text = place.read(&path).map_err(|e| unreadable(&path, &e))?;
    let shown = path.display().to_string();
    read::read_beside(&shown, &text, &|third| {
        let message = format!("`{id}` has no runs: it uses the runs of `{third}`");
        Err(Error::new(&shown, "runs_of", None, message).with_help(format!("write runs_of = \"{third}\"")))
    })
    .map(Some)
}

/// The claim that `what` names, as in `PAPER/CLAIM`; only names of claims have a full stop.
pub fn claim(what: &str) -> Option<&str> {
    let (_, name) = what.trim_end_matches('/').split_once('/')?;
    Some(name).filter(|name| name.trim_end_matches(".toml").contains('.'))
}

/// The experiments of the names `what`: each is `PAPER`, `PAPER/FIGURE` or `PAPER/CLAIM`; without names, all. Papers
/// keep their claims only if all of their experiments are meant; of a claim its experiment keeps what it needs.
///
/// # Errors
/// A name is unknown, or a claim is not the only name.
pub fn choose(papers: &[Paper], what: &[String]) -> Result<Vec<Paper>, Error> {
    if what.is_empty() {
        return Ok(papers.to_vec());
    }
    if let Some(claim) = what.iter().find(|w| claim(w).is_some()).filter(|_| what.len() > 1) {
        let help = "name its experiment, or name only the claim";
        return Err(Error::new(claim, "", None, "a claim must be the only name".to_string()).with_help(help));
    }
    let named = what.iter().map(|w| named(papers, w)).collect::<Result<Vec<_>, _>>()?;
    let of = |paper: &Paper| {
        let named: Vec<&Paper> = named.iter().filter(|n| n.name == paper.name).collect();
        let mut experiments: Vec<Item> = named.iter().flat_map(|n| &n.experiments).cloned().collect();
        experiments.sort_by_key(|item| paper.experiments.iter().position(|i| i.path == item.path));
        experiments.dedup_by(|a, b| a.path == b.path);
        let claims = named.iter().find_map(|n| n.claims.clone());
        (!named.is_empty()).then(|| Paper { experiments, claims, ..paper.clone() })
    };
    Ok(papers.iter().filter_map(of).collect())
}

/// The experiments of one name.
fn named(papers: &[Paper], what: &str) -> Result<Paper, Error> {
    let (name, figure) = match what.trim_end_matches('/').split_once('/') {
        Some((name, figure)) => (name, Some(figure.trim_end_matches(".toml"))),
        None => (what.trim_end_matches('/'), None),
    };
    let names: Vec<&str> = papers.iter().map(|p| p.name.as_str()).collect();
    let Some(at) = names.iter().position(|n| *n == name) else {
        let help = suggest(name, "the papers", &names);
        return Err(Error::new(what, "", None, format!("unknown paper `{name}`")).with_help(help));
    };
    let mut paper = papers[at].clone();
    if let Some(claim) = claim(what) {
        only(&mut paper, claim).ok_or_else(|| {
            let experiments = paper.experiments.iter().flat_map(|item| &item.read.experiment.claim);
            let all = experiments.chain(paper.claims.iter().flat_map(|c| &c.claim));
            let figure = |id: &str| id.split('.').next().map(str::to_string);
            let beside = all.map(|c| c.id.as_str()).filter(|id| figure(id) == figure(claim));
            let help = match beside.collect::<Vec<_>>() {
                ids if ids.is_empty() => format!("`xoff repro {name} --list` lists the experiments"),
                ids => suggest(claim, "its claims", &ids),
            };
            Error::new(what, "", None, format!("unknown claim `{claim}` of {name}")).with_help(help)
        })?;
    } else if let Some(figure) = figure {
        let ids: Vec<&str> = paper.experiments.iter().map(|e| e.read.experiment.id.as_str()).collect();
        let Some(at) = ids.iter().position(|id| *id == figure) else {
            let help = suggest(figure, "the experiments", &ids);
            let message = format!("unknown experiment `{figure}` of {name}");
            return Err(Error::new(what, "", None, message).with_help(help));
        };
        paper.experiments = vec![paper.experiments[at].clone()];
        paper.claims = None;
    }
    Ok(paper)
}

/// Leaves one claim of a paper, and what it needs of its experiment; `None` if there is no such claim.
fn only(paper: &mut Paper, id: &str) -> Option<()> {
    let of = |claims: &[Claim]| claims.iter().position(|c| c.id == id);
    let found = paper.experiments.iter().position(|item| of(&item.read.experiment.claim).is_some());
    let claim = match found {
        Some(at) => {
            let mut item = paper.experiments.swap_remove(at);
            let claims = std::mem::take(&mut item.read.experiment.claim);
            let claim = claims.into_iter().find(|c| c.id == id)?;
            paper.experiments.clear();
            if !claim.measure.is_empty() {
                item.narrow(&claim);
                item.read.experiment.claim.push(claim);
                paper.experiments.push(item);
                paper.claims = None;
                return Some(());
            }
            claim
        }
        None => paper.claims.as_ref()?.claim.iter().find(|c| c.id == id)?.clone(),
    };
    paper.experiments.clear();
    if let Some(claims) = &mut paper.claims {
        claims.claim = vec![claim];
    }
    Some(())
}

fn about(path: &Path, message: &str) -> Error {
    Error::new(&path.display().to_string(), "", None, message)
}

fn unreadable(path: &Path, e: &io::Error) -> Error {
    let help = if e.kind() == io::ErrorKind::NotFound {
        "without --experiments xoff uses the experiments that it contains; `xoff repro --write DIR` writes their files"
    } else {
        ""
    };
    about(path, &format!("cannot be read: {e}")).with_help(help)
}

/// A key by which `fig2` comes before `fig13`.
fn natural(name: &str) -> Vec<(String, u64)> {
    let mut parts = Vec::new();
    let mut rest = name;
    while !rest.is_empty() {
        let text = rest.find(|c: char| c.is_ascii_digit()).unwrap_or(rest.len());
        let (head, tail) = rest.split_at(text);
        let digits = tail.find(|c: char| !c.is_ascii_digit()).unwrap_or(tail.len());
        let (number, tail) = tail.split_at(digits);
        parts.push((head.to_string(), number.parse().unwrap_or(0)));
        rest = tail;
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_ordered_by_size() {
        let mut names = ["fig13", "fig2b", "fig2a", "table1", "fig2", "deadlock"];
        names.sort_by_key(|n| natural(n));
        assert_eq!(names, ["deadlock", "fig2", "fig2a", "fig2b", "fig13", "table1"]);
    }
}
