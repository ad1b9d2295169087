//! Pairs of senders and receivers, drawn by share.

use super::{other, position, positions};
use crate::error::SpecError;
use crate::topology::{NodeId, Topology};
use xoff_kernel::random::Stream;

/// A distribution of pairs. Drawn and expected values come from the same data.
#[derive(Clone, Debug)]
pub struct Pairs(Law);

#[derive(Clone, Debug)]
enum Law {
    Blocks(Blocks),
    Nested(Nested),
}

/// Blocks of a traffic matrix: the block by its share, within it the sender
/// uniformly, then the receiver uniformly among the others.
#[derive(Clone, Debug)]
struct Blocks {
    blocks: Vec<Block>,
    /// Sums of the shares up to each block.
    cumulative: Vec<f64>,
    /// The chance of each pair by `(source << 32) | destination`; for several blocks only.
    chances: Vec<(u64, f64)>,
}

#[derive(Clone, Debug)]
struct Block {
    sources: Vec<NodeId>,
    destinations: Vec<NodeId>,
    /// Positions among the destinations, by node.
    positions: Vec<(NodeId, usize)>,
}

/// Most pairs of hosts that a traffic matrix may name.
pub const MAX_PAIRS: u64 = 1 << 24;

impl Block {
    fn new(sources: &[NodeId], destinations: &[NodeId]) -> Result<Self, SpecError> {
        positions("sources", sources)?;
        let positions = positions("destinations", destinations)?;
        if let [only] = destinations
            && sources.contains(only)
        {
            let message = "the only destination is also a source: it would send to itself";
            let help = "add destinations, or remove it from the sources";
            return Err(SpecError::new("destinations", message, help));
        }
        Ok(Self { sources: sources.to_vec(), destinations: destinations.to_vec(), positions })
    }

    fn draw(&self, stream: &mut Stream) -> (NodeId, NodeId) {
        let src = self.sources[stream.below(self.sources.len() as u64) as usize];
        (src, other(&self.destinations, position(&self.positions, src), stream))
    }

    /// The chance of a pair of this block, which must contain it.
    fn chance(&self, src: NodeId) -> f64 {
        let others = self.destinations.len() - usize::from(position(&self.positions, src).is_some());
        1.0 / (self.sources.len() as f64 * others as f64)
    }
}

impl Pairs {
    /// The source uniform among `sources`, the destination uniform among the others of `destinations`.
    pub fn uniform(sources: &[NodeId], destinations: &[NodeId]) -> Result<Self, SpecError> {
        let block = Block::new(sources, destinations)?;
        Ok(Self(Law::Blocks(Blocks { blocks: vec![block], cumulative: vec![1.0], chances: Vec::new() })))
    }

    /// A traffic matrix: blocks of sources and destinations with the share that
    /// each has of all flows. Shares are relative to their sum.
    /// Errors have the block's index as key, or nothing if they are about all blocks.
    pub fn matrix(blocks: &[(Vec<NodeId>, Vec<NodeId>, f64)]) -> Result<Self, SpecError> {
        let mut law = Blocks { blocks: Vec::new(), cumulative: Vec::new(), chances: Vec::new() };
        let mut total = 0.0;
        let pairs: u64 = blocks.iter().map(|(from, to, _)| from.len() as u64 * to.len() as u64).sum();
        if pairs > MAX_PAIRS {
            let message = format!("the matrix names too many pairs of hosts: {pairs}");
            return Err(SpecError::new("", message, format!("the maximum is {MAX_PAIRS}: name fewer hosts")));
        }
        for (i, (from, to, share)) in blocks.iter().enumerate() {
            if !(share.is_finite() && *share >= 0.0) {
                let message = format!("a share of {share} is out of range");
                return Err(SpecError::new(i.to_string(), message, "write a number, 0 or more"));
            }
            let block = Block::new(from, to).map_err(|e| SpecError::new(i.to_string(), e.message, e.help))?;
            if *share > 0.0 {
                total += share;
                law.cumulative.push(total);
                law.blocks.push(block);
            }
        }
        if total <= 0.0 || !total.is_finite() {
            let help = "write a share above 0 for at least one block";
            return Err(SpecError::new("", "every share of the matrix is 0", help));
        }
        let mut before = 0.0;
        for (block, &sum) in law.blocks.iter().zip(&law.cumulative) {
            let share = (sum - before) / total;
            before = sum;
            for &src in &block.sources {
                let chance = share * block.chance(src);
                let others = block.destinations.iter().filter(|&&dst| dst != src);
                law.chances.extend(others.map(|&dst| (pair(src, dst), chance)));
            }
        }
        law.chances.sort_by_key(|&(pair, _)| pair);
        law.chances.dedup_by(|next, keep_edge| {
            let same = next.0 == keep_edge.0;
            if same {
                keep_edge.1 += next.1;
            }
            same
        });
        Ok(Self(Law::Blocks(law)))
    }

    /// The source uniform among `sources`; the destination by nearness: each of `levels` is a group for every
    /// node (outer groups contain inner ones, the innermost comes first) and the share of flows that stay in
    /// the source's group, but not in that of the level before; `beyond` is the share of those that leave all
    /// of them. Uniform within these. Errors have the key `level.N`, where N counts `levels` and then
    /// `beyond`; or `level`.
    pub fn nested(
        topology: &Topology,
        sources: &[NodeId],
        destinations: &[NodeId],
        levels: &[(&[u32], f64)],
        beyond: f64,
    ) -> Result<Self, SpecError> {
        Block::new(sources, destinations)?;
        let shares: Vec<f64> = levels.iter().map(|l| l.1).chain([beyond]).collect();
        let mut total = 0.0;
        let mut cumulative = Vec::new();
        for (i, share) in shares.iter().enumerate() {
            if !(share.is_finite() && *share >= 0.0) {
                let message = format!("a share of {share} is out of range");
                return Err(SpecError::new(format!("level.{i}"), message, "write a number, 0 or more"));
            }
            total += share;
            cumulative.push(total);
        }
        if total <= 0.0 || !total.is_finite() {
            let help = "write a share above 0 for at least one level";
            return Err(SpecError::new("level", "every share is 0", help));
        }
        // In this order every group of every level is a run.
        let key = |node: NodeId| levels.iter().rev().map(move |(group, _)| group[node as usize]);
        let mut order = destinations.to_vec();
        order.sort_by(|&a, &b| key(a).cmp(key(b)).then(a.cmp(&b)));
        let mut runs = Vec::with_capacity(sources.len());
        for &src in sources {
            let mut own = vec![(0, order.len())];
            for (group, _) in levels.iter().rev() {
                let (from, to) = own[own.len() - 1];
                let mine = group[src as usize];
                let begin = from + order[from..to].partition_point(|&n| group[n as usize] < mine);
                let end = from + order[from..to].partition_point(|&n| group[n as usize] <= mine);
                own.push((begin, end));
            }
            let (from, to) = own[own.len() - 1];
            let itself = from + order[from..to].partition_point(|&n| n < src);
            own.push((itself, itself + usize::from(order.get(itself) == Some(&src) && itself < to)));
            own.reverse();
            for (i, share) in shares.iter().enumerate() {
                if *share > 0.0 && own[i + 1].1 - own[i + 1].0 == own[i].1 - own[i].0 {
                    let message =
                        format!("{} has no receiver of this level", topology.nodes[src as usize].name);
                    let help =
                        "remove the share, or change `from` and `to`: each sender needs such a receiver";
                    return Err(SpecError::new(format!("level.{i}"), message, help));
                }
            }
            runs.push(own);
        }
        let by_source = positions("sources", sources)?;
        let positions = positions("destinations", &order)?;
        let sources = sources.to_vec();
        Ok(Self(Law::Nested(Nested { sources, by_source, order, positions, runs, cumulative })))
    }

    /// Draws a source and a destination, which differ.
    pub fn draw(&self, stream: &mut Stream) -> (NodeId, NodeId) {
        match &self.0 {
            Law::Blocks(law) => {
                // One block needs no draw.
                let block = match &law.blocks[..] {
                    [only] => only,
                    several => &several[by_share(&law.cumulative, stream)],
                };
                block.draw(stream)
            }
            Law::Nested(law) => law.draw(stream),
        }
    }

    pub fn chance(&self, src: NodeId, dst: NodeId) -> f64 {
        if src == dst {
            return 0.0;
        }
        match &self.0 {
            Law::Blocks(Blocks { blocks, chances, .. }) if chances.is_empty() => blocks[0].chance(src),
            Law::Blocks(law) => {
                let at = law.chances.binary_search_by_key(&pair(src, dst), |&(pair, _)| pair);
                at.map_or(0.0, |i| law.chances[i].1)
            }
            Law::Nested(law) => law.chance(src, dst),
        }
    }

    /// Every node that sends, and every one that receives, once and in order.
    pub fn ends(&self) -> (Vec<NodeId>, Vec<NodeId>) {
        let (mut from, mut to) = match &self.0 {
            Law::Blocks(law) => (
                law.blocks.iter().flat_map(|b| b.sources.iter().copied()).collect::<Vec<_>>(),
                law.blocks.iter().flat_map(|b| b.destinations.iter().copied()).collect::<Vec<_>>(),
            ),
            Law::Nested(law) => (law.sources.clone(), law.order.clone()),
        };
        for list in [&mut from, &mut to] {
            list.sort_unstable();
            list.dedup();
        }
        (from, to)
    }
}

fn pair(src: NodeId, dst: NodeId) -> u64 {
    u64::from(src) << 32 | u64::from(dst)
}

/// The sums of the first one, two, … shares.
pub(super) fn sums(shares: &[f64]) -> Vec<f64> {
    let mut sum = 0.0;
    let up_to = |share: &f64| {
        sum += share;
        sum
    };
    shares.iter().map(up_to).collect()
}

/// An index by its share, of which the sums are given.
pub(super) fn by_share(cumulative: &[f64], stream: &mut Stream) -> usize {
    let total = cumulative[cumulative.len() - 1];
    let drawn = stream.unit() * total;
    // Rounding may lead to the very end.
    let last = cumulative.partition_point(|&sum| sum < total);
    cumulative.partition_point(|&sum| sum <= drawn).min(last)
}

#[derive(Clone, Debug)]
struct Nested {
    sources: Vec<NodeId>,
    /// Positions among the sources, by node.
    by_source: Vec<(NodeId, usize)>,
    /// The receivers, so ordered that each group is a run.
    order: Vec<NodeId>,
    /// Positions in that order, by node.
    positions: Vec<(NodeId, usize)>,
    /// Of each source: the run of itself (empty if it does not receive), those
    /// of its groups from the innermost on, and all.
    runs: Vec<Vec<(usize, usize)>>,
    /// Sums of the shares up to each level.
    cumulative: Vec<f64>,
}

impl Nested {
    fn draw(&self, stream: &mut Stream) -> (NodeId, NodeId) {
        let source = stream.below(self.sources.len() as u64) as usize;
        let level = by_share(&self.cumulative, stream);
        let (inner, outer) = (self.runs[source][level], self.runs[source][level + 1]);
        let hole = inner.1 - inner.0;
        let at = outer.0 + stream.below((outer.1 - outer.0 - hole) as u64) as usize;
        (self.sources[source], self.order[at + if at >= inner.0 { hole } else { 0 }])
    }

    fn chance(&self, src: NodeId, dst: NodeId) -> f64 {
        let (Some(source), Some(at)) = (position(&self.by_source, src), position(&self.positions, dst))
        else {
            return 0.0;
        };
        let runs = &self.runs[source];
        let within = |run: &(usize, usize)| (run.0..run.1).contains(&at);
        let level = runs.iter().position(within).expect("the last run is everything") - 1;
        let (inner, outer) = (runs[level], runs[level + 1]);
        let before = if level == 0 { 0.0 } else { self.cumulative[level - 1] };
        let share = (self.cumulative[level] - before) / self.cumulative[self.cumulative.len() - 1];
        let others = (outer.1 - outer.0) - (inner.1 - inner.0);
        share / (self.sources.len() as f64 * others as f64)
    }
}
