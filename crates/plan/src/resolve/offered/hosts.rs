//! Hosts as traffic tables name them: one by one, in ranges, in groups.

use super::super::{Context, host};
use crate::error::Error;
use std::collections::BTreeMap;
use xoff_net::topology::{NodeId, Topology};
use xoff_net::traffic::{self, Level};

/// The hosts of a topology and their groups, if they were needed.
pub(super) struct HostSets<'t> {
    topology: &'t Topology,
    /// Every host, in order.
    pub(super) all: Vec<NodeId>,
    groups: BTreeMap<Level, Option<Grouping>>,
}

/// The groups of one kind.
struct Grouping {
    of: Vec<u32>,
    members: Vec<Vec<NodeId>>,
}

impl<'t> HostSets<'t> {
    pub(super) fn new(topology: &'t Topology) -> Self {
        Self { topology, all: topology.hosts().collect(), groups: BTreeMap::new() }
    }

    pub(super) fn name(&self, host: NodeId) -> &'t str {
        &self.topology.nodes[host as usize].name
    }

    fn grouping(&mut self, cx: &Context<'_>, path: &str, level: Level) -> Result<&Grouping, Error> {
        let (topology, all) = (self.topology, &self.all);
        let known = self.groups.entry(level).or_insert_with(|| {
            let of = traffic::groups(topology, level)?;
            let mut members = Vec::new();
            for &host in all {
                let group = of[host as usize] as usize;
                members.resize(members.len().max(group + 1), Vec::new());
                members[group].push(host);
            }
            Some(Grouping { of, members })
        });
        known.as_ref().ok_or_else(|| {
            let message = format!("this topology has no groups of the kind `{}`", level.name());
            cx.doc.error(path, message, "write hosts or ranges of hosts instead, such as \"H0..H7\"")
        })
    }

    /// The group of each host, by node.
    pub(super) fn groups(&mut self, cx: &Context<'_>, path: &str, level: Level) -> Result<&[u32], Error> {
        self.grouping(cx, path, level).map(|g| &g.of[..])
    }

    /// The hosts that `text` at the key `path` means: `H3`, `H0..H7` (both ends included), `rack:2`, `pod:0`,
    /// `dc:1`, or `all`.
    pub(super) fn expression(
        &mut self,
        cx: &Context<'_>,
        path: &str,
        text: &str,
    ) -> Result<Vec<NodeId>, Error> {
        if self.topology.find(text).is_some() {
            return Ok(vec![host(cx, self.topology, path, text)?]);
        }
        if text == "all" {
            return Ok(self.all.clone());
        }
        if let Some((first, last)) = text.split_once("..") {
            let [first, last] = [first, last].map(|name| host(cx, self.topology, path, name.trim()));
            let (first, last) = (first?, last?);
            if first > last {
                let message = format!("the range `{text}` ends before it begins");
                return cx.refuse(path, message, "write the host with the lower number first");
            }
            return Ok(self.all.iter().copied().filter(|h| (first..=last).contains(h)).collect());
        }
        if let Some((kind, index)) = text.split_once(':')
            && let Some(level) = Level::ALL.into_iter().find(|l| l.name() == kind)
        {
            let members = &self.grouping(cx, path, level)?.members;
            let group = index.parse::<usize>().ok().and_then(|i| members.get(i));
            return group.cloned().ok_or_else(|| {
                let message = format!("the group `{text}` does not exist");
                cx.doc.error(path, message, format!("write {kind}:0 to {kind}:{}", members.len() - 1))
            });
        }
        host(cx, self.topology, path, text).map(|host| vec![host])
    }

    /// The hosts of the list at `path`, in its order, or all.
    pub(super) fn list(
        &mut self,
        cx: &Context<'_>,
        path: &str,
        list: Option<&Vec<String>>,
    ) -> Result<Vec<NodeId>, Error> {
        let Some(list) = list else { return Ok(self.all.clone()) };
        if list.is_empty() {
            let help = "write at least one host, or remove the key to use all hosts";
            return cx.refuse(path, "the list of hosts is empty", help);
        }
        let mut seen = vec![false; self.topology.nodes.len()];
        let mut out = Vec::new();
        for (i, text) in list.iter().enumerate() {
            let at = format!("{path}[{i}]");
            for node in self.expression(cx, &at, text)? {
                if std::mem::replace(&mut seen[node as usize], true) {
                    let message = format!("{} is listed twice", self.name(node));
                    return cx.refuse(&at, message, "remove one of the two");
                }
                out.push(node);
            }
        }
        Ok(out)
    }
}
