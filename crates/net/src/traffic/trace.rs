//! Jobs as recorded traces have them: from one [Chakra trace](super::chakra) for each rank to a [`Program`].
//!
//! Of each rank:
//!
//! - A node begins after all nodes of its `ctrl_deps` and `data_deps`.
//! - The computations of a GPU follow each other, as do those of a CPU (ASTRA-sim's `HardwareResource`), in the order
//!   of [`Program::take_turns`].
//! - The collectives of a group follow each other, as those of an NCCL communicator, in the order of the nodes' ids
//!   where the dependencies leave it open. The k-th collective of a group at one member belongs to the k-th at the
//!   others.
//! - All else overlaps: computations with messages, messages with each other, collectives of several groups.

use super::chakra::{self, COLLECTIVES, Kind, Node as Recorded, Value};
use super::program::{Members, Node, Pattern, Program, Work};
use crate::error::SpecError;
use crate::text::shown;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use xoff_kernel::time::{MICROSECOND, Time};

/// Groups of ranks by name.
pub type Groups = BTreeMap<String, Vec<u32>>;

/// The key of the scenario that names the traces.
const KEY: &str = "files";

/// Collectives that have a pattern here, for help.
const KNOWN: &str = "ALL_REDUCE, ALL_GATHER, REDUCE_SCATTER, ALL_TO_ALL and BARRIER can be sent";
const RECORDED: &str =
    "with other_collectives = \"recorded-time\" others take their recorded time, without messages";

/// The units of a rank that compute one node at a time.
const GPU: u8 = 0;
const CPU: u8 = 1;

/// How traces are replayed.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Factor of all computation.
    pub scale: f64,
    /// Most computation of a rank.
    pub longest: Time,
    /// Whether a collective that has no pattern here takes its recorded time, without messages.
    pub recorded_time: bool,
}

/// Traces of a job's ranks, as they are read.
pub struct Replay {
    ranks: u32,
    /// Groups of a file; they come before those that the traces name.
    groups: Groups,
    settings: Settings,
    program: Program,
    known: BTreeMap<(String, Vec<u32>), u32>,
    names: Names,
    units: Vec<Vec<Option<u8>>>,
    /// Nodes without a duration that computed, or moved memory, and the first of them.
    untimed: u64,
    first_untimed: String,
}

/// What the nodes of each rank are called.
#[derive(Default)]
struct Names(Vec<Named>);

/// The file of a rank, and id and name of its nodes.
struct Named {
    file: String,
    nodes: Vec<(u64, Box<str>)>,
}

impl Names {
    /// Each step has all nodes, and one more for its end.
    fn label(&self, rank: u32, node: u32) -> String {
        let Named { file, nodes } = &self.0[rank as usize];
        match nodes.get(node as usize % (nodes.len() + 1)) {
            Some((id, name)) => called(*id, name, file),
            None => format!("the end of `{file}`"),
        }
    }
}

fn called(id: u64, name: &str, file: &str) -> String {
    format!("node {id} (`{}`) of `{file}`", shown(name))
}

/// The result of [`Replay::finish`].
pub struct Replayed {
    pub program: Program,
    names: Names,
    /// Nodes that should take time, but have no duration, with an example; in words.
    pub untimed: Option<String>,
}

impl Replayed {
    /// What a node of the program is called in errors.
    pub fn label(&self) -> impl Fn(u32, u32) -> String + '_ {
        |rank, node| self.names.label(rank, node)
    }
}

/// The groups of a JSON file, as ASTRA-sim reads it: `{"1": [0, 1], "2": [2, 3]}`.
///
/// # Errors
///
/// What is wrong, at its line. The key is `groups`.
pub fn group_file(text: &str) -> Result<Groups, SpecError> {
    serde_json::from_str(text).map_err(|e| {
        let help = "write the ranks of each group: {\"1\": [0, 1], \"2\": [2, 3]}";
        let message = e.to_string();
        let message = message.split(" at line ").next().unwrap_or_default();
        SpecError::new("groups", format!("these are not groups of ranks: {message}"), help)
            .in_line(e.line().max(1))
    })
}

/// A rank's node, with what the program needs of it.
struct Raw {
    id: u64,
    name: Box<str>,
    deps: Vec<u64>,
    work: Option<Work>,
    /// The group of a collective, by name.
    group: Option<String>,
    unit: Option<u8>,
}

impl Replay {
    /// # Errors
    ///
    /// A group with a rank that does not exist, or twice the same. The key is `groups`.
    pub fn new(ranks: u32, groups: Groups, settings: Settings) -> Result<Self, SpecError> {
        for (name, members) in &groups {
            check_group(name, members, ranks).map_err(|(what, help)| SpecError::new("groups", what, help))?;
        }
        let mut replay = Self {
            ranks,
            groups,
            settings,
            program: Program::default(),
            known: BTreeMap::new(),
            names: Names::default(),
            units: Vec::new(),
            untimed: 0,
            first_untimed: String::new(),
        };
        replay.group(String::new(), (0..ranks).collect());
        Ok(replay)
    }

    /// Nodes of all traces so far.
    pub fn nodes(&self) -> u64 {
        self.program.ranks.iter().map(|nodes| nodes.len() as u64).sum()
    }

    /// Messages of all traces so far.
    pub fn messages(&self) -> u64 {
        self.program.messages()
    }

    /// Adds the trace of the next rank.
    ///
    /// # Errors
    ///
    /// What is wrong with the file, with the node. The key is `files`.
    pub fn add(&mut self, file: &str, bytes: &[u8]) -> Result<(), SpecError> {
        let rank = self.program.ranks.len() as u32;
        let mut raw: Vec<Raw> = Vec::new();
        let mut own: Groups = BTreeMap::new();
        let mut computed: Time = 0;
        chakra::read(bytes, &mut |node: Recorded| {
            let label = || called(node.id, &node.name, file);
            let refuse =
                |(message, help): Refusal| Refused::Node(SpecError::new(KEY, format!("{} {message}", label()), help));
            if Kind::try_from(node.kind) == Ok(Kind::Metadata) {
                for (name, ranks) in process_groups(&node, self.ranks).map_err(refuse)? {
                    own.insert(name, ranks);
                }
            }
            let one = self.node(rank, &node).map_err(refuse)?;
            if let Some(Work::Compute(time)) = one.work {
                computed = computed.saturating_add(time);
                if time == 0 && (node.value("num_ops").is_some() || is_memory(&node)) {
                    if self.untimed == 0 {
                        self.first_untimed = label();
                    }
                    self.untimed += 1;
                }
            }
            raw.push(one);
            Ok(())
        })
        .map_err(|e| match e {
            Refused::Node(e) => e,
            Refused::File(what) => {
                let help = "write Chakra traces: length-delimited protobuf, as chakra_converter does, or this with gzip";
                SpecError::new(KEY, format!("`{file}` {what}"), help)
            }
        })?;
        let longest = self.settings.longest;
        if computed > longest {
            let message = format!("`{file}` computes for {}", crate::units::Span(computed));
            let help = format!("the maximum is {}", crate::units::Span(longest));
            return Err(SpecError::new(KEY, message, help));
        }
        self.order(file, raw, own)
    }

    /// Adds the nodes of a rank, in an order in which each comes after those that it waits for.
    fn order(&mut self, file: &str, mut raw: Vec<Raw>, own: Groups) -> Result<(), SpecError> {
        let rank = self.program.ranks.len() as u32;
        raw.sort_by_key(|node| node.id);
        let fault = |node: &Raw, message: String, help: &str| {
            Err(SpecError::new(KEY, format!("{} {message}", called(node.id, &node.name, file)), help))
        };
        if let Some(twice) = raw.windows(2).find(|pair| pair[0].id == pair[1].id) {
            return fault(&twice[1], "has the id of another node".into(), "give each node its own id");
        }
        let mut left = vec![0u32; raw.len()];
        let mut next: Vec<Vec<u32>> = vec![Vec::new(); raw.len()];
        for (index, node) in raw.iter().enumerate() {
            for before in node.deps.iter().collect::<BTreeSet<_>>() {
                let Ok(before) = raw.binary_search_by_key(before, |other| other.id) else {
                    let message = format!("waits for node {before}, which does not exist");
                    return fault(node, message, "name ids of nodes of the same file");
                };
                next[before].push(index as u32);
                left[index] += 1;
            }
        }
        let mut ready: BinaryHeap<Reverse<u32>> =
            (0..).zip(&left).filter(|&(_, &left)| left == 0).map(|(index, _)| Reverse(index)).collect();
        let mut place = vec![u32::MAX; raw.len()];
        let mut order = Vec::with_capacity(raw.len());
        while let Some(Reverse(index)) = ready.pop() {
            place[index as usize] = order.len() as u32;
            order.push(index as usize);
            for &next in &next[index as usize] {
                left[next as usize] -= 1;
                if left[next as usize] == 0 {
                    ready.push(Reverse(next));
                }
            }
        }
        if let Some(node) = in_cycle(&left, &next) {
            return fault(&raw[node], "waits for itself".into(), "remove the cycle of dependencies");
        }
        let mut nodes: Vec<Node> = Vec::with_capacity(raw.len());
        let mut last: BTreeMap<u32, u32> = BTreeMap::new();
        for (index, &old) in (0..).zip(&order) {
            let node = &raw[old];
            let position =
                |id: &u64| place[raw.binary_search_by_key(id, |other| other.id).expect("it exists")];
            let mut after: Vec<u32> = node.deps.iter().map(position).collect();
            let mut work = node.work.clone().unwrap_or(Work::Compute(0));
            if let (Some(name), Work::Collective { pattern, group, size }) = (&node.group, &mut work) {
                match self.members(name, &own) {
                    Some(Ok(found)) => *group = found,
                    Some(Err((message, help))) => return fault(node, message, &help),
                    None => {
                        let message = format!("names the group `{name}`, which is unknown");
                        let help = "write its ranks in the file `groups`, or name a group of the trace";
                        return fault(node, message, help);
                    }
                }
                let members = self.program.groups[*group as usize].ranks.len() as u64;
                if *pattern == Pattern::AllGather {
                    *size = size.saturating_mul(members);
                }
                after.extend(last.insert(*group, index));
            }
            after.sort_unstable();
            after.dedup();
            nodes.push(Node { after, work });
        }
        self.units.push(order.iter().map(|&old| raw[old].unit).collect());
        self.program.ranks.push(nodes);
        let mut named: Vec<(u64, Box<str>)> = raw.into_iter().map(|node| (node.id, node.name)).collect();
        let nodes = order.iter().map(|&old| std::mem::take(&mut named[old])).collect();
        self.names.0.push(Named { file: file.into(), nodes });
        debug_assert_eq!(self.names.0.len() as u32, rank + 1);
        Ok(())
    }

    /// The number of a group.
    fn group(&mut self, name: String, ranks: Vec<u32>) -> u32 {
        let groups = &mut self.program.groups;
        *self.known.entry((name, ranks)).or_insert_with_key(|(name, ranks)| {
            groups.push(Members { name: name.clone(), ranks: ranks.clone() });
            groups.len() as u32 - 1
        })
    }

    /// The group of a name, in the file of groups or else in a trace. No name, and `0` unless it is defined, are all
    /// ranks.
    fn members(&mut self, name: &str, own: &Groups) -> Option<Result<u32, Refusal>> {
        let Some(ranks) = self.groups.get(name).or_else(|| own.get(name)) else {
            return matches!(name, "" | "0").then_some(Ok(0));
        };
        if let Err((what, help)) = check_group(name, ranks, self.ranks) {
            return Some(Err((format!("cannot use its group: {what}"), help)));
        }
        // A number says nothing in a table of results.
        let digits = name.bytes().all(|b| b.is_ascii_digit());
        let title = if digits { format!("pg {name}") } else { name.to_string() };
        let ranks = ranks.clone();
        Some(Ok(self.group(title, ranks)))
    }

    /// What the program needs of a node.
    fn node(&self, rank: u32, node: &Recorded) -> Result<Raw, Refusal> {
        let kind = Kind::try_from(node.kind).map_err(|_| {
            (
                format!("has the unknown type {}", node.kind),
                "the types are 0 to 7 of Chakra's NodeType".to_string(),
            )
        })?;
        let cpu = integer(node, "is_cpu_op")?.is_some_and(|cpu| cpu != 0);
        let mut unit = None;
        let mut group = None;
        let work = match kind {
            Kind::Invalid | Kind::Metadata => None,
            Kind::Comp => {
                unit = Some(if cpu { CPU } else { GPU });
                Some(Work::Compute(self.time(node.duration_micros)))
            }
            Kind::MemLoad | Kind::MemStore => Some(Work::Compute(self.time(node.duration_micros))),
            Kind::CommSend => {
                let (to, tag) = (self.peer(node, rank, "comm_dst", "comm_src")?, tag(node)?);
                Some(Work::Send { to, size: size(node)?, tag })
            }
            Kind::CommRecv => {
                let from = self.peer(node, rank, "comm_src", "comm_dst")?;
                Some(Work::Receive { from, tag: tag(node)? })
            }
            Kind::CommColl if self.settings.recorded_time && (cpu || collective(node).is_err()) => {
                unit = cpu.then_some(CPU);
                Some(Work::Compute(self.time(node.duration_micros)))
            }
            Kind::CommColl => {
                if cpu {
                    let message = "is a collective of a CPU (`is_cpu_op`)";
                    return Err((message.into(), format!("{KNOWN} by a GPU; {RECORDED}")));
                }
                group = Some(match node.value("pg_name") {
                    None => String::new(),
                    Some(Value::Text(name)) => name.clone(),
                    Some(other) => other.integer().map(|i| i.to_string()).unwrap_or_default(),
                });
                if let Some(Value::Bools(dims)) = node.value("involved_dim")
                    && dims.values.contains(&false)
                {
                    let message =
                        "has an `involved_dim` without all dimensions, which only ASTRA-sim's networks have";
                    let help = "name the group in `pg_name`, and its ranks in the file `groups`";
                    return Err((message.into(), help.into()));
                }
                let (pattern, size) = collective(node)?;
                Some(Work::Collective { pattern, group: 0, size })
            }
        };
        let deps = node.ctrl_deps.iter().chain(&node.data_deps).copied().collect();
        Ok(Raw { id: node.id, name: node.name.as_str().into(), deps, work, group, unit })
    }

    /// Microseconds in picoseconds, scaled and to the nearest one.
    fn time(&self, micros: u64) -> Time {
        let exact = micros.saturating_mul(MICROSECOND);
        let scale = self.settings.scale;
        if scale == 1.0 { exact } else { (exact as f64 * scale + 0.5) as Time }
    }

    /// The other rank of a message.
    fn peer(&self, node: &Recorded, rank: u32, other: &str, own: &str) -> Result<u32, Refusal> {
        if let Some(found) = integer(node, own)?
            && found != i128::from(rank)
        {
            let message = format!("has {own} = {found} in the trace of rank {rank}");
            return Err((message, format!("write {rank}, or remove the attribute")));
        }
        let allowed = format!("write a rank of 0 to {}, but not {rank}", self.ranks.saturating_sub(1));
        let Some(found) = integer(node, other)? else {
            return Err((format!("has no `{other}`"), allowed));
        };
        match u32::try_from(found) {
            Ok(peer) if peer < self.ranks && peer != rank => Ok(peer),
            _ => Err((format!("has {other} = {found}, which is out of range"), allowed)),
        }
    }

    /// The whole, run `steps` times. A rank begins a step when all its nodes of the step before are done.
    ///
    /// # Errors
    ///
    /// Those of [`Program::schedule`], at the key `files`.
    pub fn finish(mut self, steps: u32) -> Result<Replayed, SpecError> {
        let label = |rank, node| self.names.label(rank, node);
        self.program.take_turns(&self.units, &label).map_err(|e| SpecError { key: KEY.into(), ..e })?;
        for nodes in &mut self.program.ranks {
            let mut is_last = vec![true; nodes.len()];
            nodes.iter().flat_map(|node| &node.after).for_each(|&before| is_last[before as usize] = false);
            let ends = || (0..).zip(&is_last).filter(|&(_, &last)| last).map(|(index, _)| index);
            let one = std::mem::take(nodes);
            for step in 0..steps {
                let from = nodes.len() as u32;
                nodes.extend(one.iter().map(|node| {
                    let mut after: Vec<u32> = node.after.iter().map(|&before| from + before).collect();
                    if after.is_empty() && step > 0 {
                        after.push(from - 1);
                    }
                    Node { after, work: node.work.clone() }
                }));
                let mut after: Vec<u32> = ends().map(|last| from + last).collect();
                if after.is_empty() && step > 0 {
                    after.push(from - 1);
                }
                nodes.push(Node { after, work: Work::Iteration(step) });
            }
        }
        let untimed = (self.untimed > 0).then(|| {
            let nodes = crate::text::count(self.untimed, "node");
            format!("{nodes} without a duration take no time, such as {}", self.first_untimed)
        });
        Ok(Replayed { program: self.program, names: self.names, untimed })
    }
}

/// What is wrong with a node, and what is allowed.
type Refusal = (String, String);

enum Refused {
    Node(SpecError),
    File(String),
}

impl From<String> for Refused {
    fn from(what: String) -> Self {
        Refused::File(what)
    }
}

fn is_memory(node: &Recorded) -> bool {
    matches!(Kind::try_from(node.kind), Ok(Kind::MemLoad | Kind::MemStore))
}

/// A node of a cycle among those that still wait, if there are any.
fn in_cycle(left: &[u32], next: &[Vec<u32>]) -> Option<usize> {
    let mut node = left.iter().position(|&left| left > 0)?;
    // Each waiting node waits for another: going back, a node comes again.
    let mut before = vec![usize::MAX; left.len()];
    for (index, next) in next.iter().enumerate().filter(|&(index, _)| left[index] > 0) {
        next.iter().for_each(|&next| before[next as usize] = index);
    }
    for _ in 0..left.len() {
        node = before[node];
    }
    Some(node)
}

fn integer(node: &Recorded, name: &str) -> Result<Option<i128>, Refusal> {
    let Some(value) = node.value(name) else { return Ok(None) };
    match value.integer() {
        Some(value) => Ok(Some(value)),
        None => Err((format!("has a `{name}` that is no integer"), "write an integer".into())),
    }
}

/// Bytes of a message or collective.
fn size(node: &Recorded) -> Result<u64, Refusal> {
    let help = "write the bytes in `comm_size`";
    // Chakra's own generator writes `tensor_size` for messages.
    let found = match integer(node, "comm_size")? {
        Some(size) => size,
        None => integer(node, "tensor_size")?.ok_or(("has no `comm_size`".to_string(), help.to_string()))?,
    };
    u64::try_from(found).map_err(|_| (format!("has {found} B"), help.to_string()))
}

fn tag(node: &Recorded) -> Result<u64, Refusal> {
    let tag = integer(node, "comm_tag")?.unwrap_or_default();
    u64::try_from(tag).map_err(|_| (format!("has comm_tag = {tag}"), "write a number of 0 or more".into()))
}

/// The pattern of a collective, and its bytes of each rank's input.
fn collective(node: &Recorded) -> Result<(Pattern, u64), Refusal> {
    let Some(kind) = integer(node, "comm_type")? else {
        return Err(("has no `comm_type`".into(), format!("{KNOWN}; {RECORDED}")));
    };
    let name = usize::try_from(kind).ok().and_then(|kind| COLLECTIVES.get(kind).copied());
    let pattern = match name {
        Some("ALL_REDUCE") => Pattern::AllReduce,
        Some("ALL_GATHER") => Pattern::AllGather,
        Some("REDUCE_SCATTER") => Pattern::ReduceScatter,
        Some("ALL_TO_ALL") => Pattern::AllToAll,
        // As PyTorch does it with NCCL: an all-reduce of one element.
        Some("BARRIER") => return Ok((Pattern::AllReduce, 1)),
        Some(name) => {
            return Err((format!("is a collective of the type {name}"), format!("{KNOWN}; {RECORDED}")));
        }
        None => return Err((format!("has the unknown comm_type = {kind}"), KNOWN.into())),
    };
    Ok((pattern, size(node)?))
}

fn check_group(name: &str, members: &[u32], ranks: u32) -> Result<(), Refusal> {
    if let Some(rank) = members.iter().find(|&&rank| rank >= ranks) {
        let message = format!("group `{name}` has rank {rank}, but there are {ranks} ranks");
        return Err((message, format!("write ranks of 0 to {}", ranks.saturating_sub(1))));
    }
    let different: BTreeSet<u32> = members.iter().copied().collect();
    if different.len() < members.len() {
        return Err((format!("group `{name}` has a rank twice"), "write each rank once".into()));
    }
    if members.is_empty() {
        return Err((format!("group `{name}` has no ranks"), "write its ranks".into()));
    }
    Ok(())
}

/// The process groups of PyTorch that a metadata node lists: JSON, as the only string of a Python list.
fn process_groups(node: &Recorded, ranks: u32) -> Result<Vec<(String, Vec<u32>)>, Refusal> {
    let values = node.inputs.as_ref().map_or("", |inputs| inputs.values.trim());
    if !values.contains("pg_name") {
        return Ok(Vec::new());
    }
    let inner = values.strip_prefix("['").and_then(|rest| rest.strip_suffix("']"));
    let inner = inner.or_else(|| values.strip_prefix("[\"").and_then(|rest| rest.strip_suffix("\"]")));
    let help = "write [{\"pg_name\": \"0\", \"ranks\": [0, 1]}] in its inputs";
    let fault =
        |what: String| (format!("lists process groups that cannot be read: {what}"), help.to_string());
    let listed: Vec<serde_json::Value> =
        serde_json::from_str(inner.unwrap_or(values)).map_err(|e| fault(e.to_string()))?;
    let mut groups = Vec::new();
    for group in listed {
        let name = match &group["pg_name"] {
            serde_json::Value::String(name) => name.clone(),
            serde_json::Value::Number(name) => name.to_string(),
            _ => return Err(fault("a group has no `pg_name`".into())),
        };
        let members: Option<Vec<u32>> = group["ranks"]
            .as_array()
            .and_then(|all| all.iter().map(|rank| u32::try_from(rank.as_u64()?).ok()).collect());
        let mut members = members.ok_or_else(|| fault(format!("group `{name}` has no list of `ranks`")))?;
        if members.is_empty() {
            members = (0..ranks).collect();
        }
        groups.push((name, members));
    }
    Ok(groups)
}
