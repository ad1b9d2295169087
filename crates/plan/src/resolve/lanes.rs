//! Lanes: the priorities in use, and how egress queues treat each.

use super::{Context, bytes, channels::Channels, congestion};
use crate::error::Error;
use crate::plan::{Lane, Limit, Red};
use crate::scenario::{Ecn, MarkAt, MarkOf, Priority};
use std::collections::{BTreeMap, BTreeSet};
use xoff_schemes::flow_control::fabric::Layout;
use xoff_schemes::flow_control::keys::{self, alpha_q16};

/// The priorities that the scenario declares, by number, with their table's index.
pub(super) fn declared<'s>(cx: &Context<'s>) -> Result<BTreeMap<u8, (usize, &'s Priority)>, Error> {
    let mut out = BTreeMap::new();
    for (i, p) in cx.scenario.priority.iter().enumerate() {
        let at = |key: &str| format!("priority[{i}].{key}");
        check_priority(cx, &at("id"), p.id)?;
        if let Some((first, _)) = out.insert(p.id, (i, p)) {
            let message = format!("priority {} is defined twice, first in priority[{first}]", p.id);
            return cx.refuse(&at("id"), message, "merge the two [[priority]] tables");
        }
        if !(1..=1000).contains(&p.weight) {
            let message = format!("a weight of {} is out of range", p.weight);
            return cx.refuse(&at("weight"), message, "write a whole number from 1 to 1000");
        }
        if p.egress_limit.is_some() && p.alpha.is_some() {
            let message = "`alpha` and `egress_limit` cannot be combined: a queue has one limit";
            return cx.refuse(&at("alpha"), message, "remove one of the two keys");
        }
        if let Some(ecn) = &p.ecn {
            check_ecn(cx, &at("ecn"), ecn)?;
        }
    }
    Ok(out)
}

pub(super) fn check_priority(cx: &Context<'_>, path: &str, priority: u8) -> Result<(), Error> {
    keys::check_priority(path, priority).map_err(|c| cx.located(c))
}

fn check_ecn(cx: &Context<'_>, path: &str, ecn: &Ecn) -> Result<(), Error> {
    if ecn.k_min > ecn.k_max {
        let message = format!("k_min = {} is above k_max = {}", ecn.k_min, ecn.k_max);
        let help = "swap the two, or make them equal to mark every packet above that length";
        return cx.refuse(&format!("{path}.k_min"), message, help);
    }
    if !(0.0..=1.0).contains(&ecn.p_max) {
        let message = format!("{} is not a probability", ecn.p_max);
        return cx.refuse(&format!("{path}.p_max"), message, "write a number from 0 to 1");
    }
    Ok(())
}

/// The lanes of the priorities in `used`, in the order of service; where there
/// are `tags`, those are lossless. A channel has the keys of the priority in which its packets begin.
pub(super) fn build(
    cx: &mut Context<'_>,
    used: &[u8],
    tags: Option<&Layout>,
    channels: Option<&Channels>,
) -> Result<Vec<Lane>, Error> {
    let declared = declared(cx)?;
    for (&id, &(i, _)) in &declared {
        if !used.contains(&id) {
            cx.warn(format!("priority[{i}]"), format!("had no effect: no traffic uses priority {id}"));
        }
    }
    if let Some(ecn) = &cx.scenario.ecn {
        check_ecn(cx, "ecn", ecn)?;
    }
    let covered: BTreeSet<u8> = match (tags, channels) {
        (Some(tags), _) => tags.lossless.clone(),
        (None, Some(channels)) => channels.lossless(),
        (None, None) => cx.ask(|keys, cx| keys.covered(cx, used))?.into_iter().collect(),
    };
    let first = |id: u8| channels.map_or(id, |channels| channels.first(id));
    let unlimited = cx.scenario.flow_control.lifts_limits();
    let (mut lanes, packet) = (Vec::new(), cx.packet);
    for &id in used {
        let table = declared.get(&first(id)).copied();
        let lossless = lossless(cx, id, table, covered.contains(&id))?;
        let (path, alpha) = match table {
            Some((i, p)) => (format!("priority[{i}].alpha"), p.alpha),
            None => (String::new(), None),
        };
        let egress_limit = match table.and_then(|(_, p)| p.egress_limit) {
            _ if lossless => Limit::Unlimited,
            Some(limit) => Limit::Static(limit.0),
            None if unlimited && alpha.is_none() => Limit::Unlimited,
            None => {
                let alpha_q16 =
                    alpha_q16(&path, alpha.unwrap_or(Priority::ALPHA)).map_err(|c| cx.located(c))?;
                Limit::Dynamic { alpha_q16, cap: u64::MAX }
            }
        };
        if let Limit::Static(limit) = egress_limit
            && limit < u64::from(packet.largest())
        {
            let path = path.replace("alpha", "egress_limit");
            let message =
                format!("{} is less than one packet of {}", bytes(limit), bytes(u64::from(packet.largest())));
            return cx.refuse(&path, message, "write at least the size of one packet");
        }
        let ecn = table.and_then(|(_, p)| p.ecn).or(cx.scenario.ecn).or(congestion::default_ecn(cx));
        lanes.push(Lane {
            priority: id,
            tier: table.and_then(|(_, p)| p.tier).unwrap_or(7 - first(id)),
            quantum: table.map_or(1, |(_, p)| p.weight) * packet.largest(),
            lossless,
            egress_limit,
            ecn: ecn.map(|e| Red {
                k_min: e.k_min.0,
                k_max: e.k_max.0,
                p_max: e.p_max,
                per: e.per.map_or(0, |r| r.0),
                at_dequeue: e.at == MarkAt::Dequeue,
                of_port: e.of == MarkOf::Port,
                last_hop: e.last_hop,
                hosts: e.hosts,
            }),
        });
    }
    lanes.sort_by_key(|l| (l.tier, std::cmp::Reverse(l.priority)));
    let mut tiers: Vec<u8> = lanes.iter().map(|l| l.tier).collect();
    tiers.dedup();
    for (id, &(i, p)) in &declared {
        let tier = p.tier.unwrap_or(7 - id);
        let alone = lanes.iter().filter(|l| l.tier == tier).count() < 2;
        if p.weight != 1 && alone && used.contains(id) {
            let message = "had no effect: no other priority in use shares its tier";
            cx.warn(format!("priority[{i}].weight"), message);
        }
    }
    for lane in &mut lanes {
        lane.tier = tiers.iter().position(|&t| t == lane.tier).expect("from this list") as u8;
    }
    Ok(lanes)
}

/// Whether the priority `id` is lossless; then its egress queues have no limits.
fn lossless(
    cx: &mut Context<'_>,
    id: u8,
    table: Option<(usize, &Priority)>,
    covered: bool,
) -> Result<bool, Error> {
    let Some((i, p)) = table else { return Ok(covered) };
    let key = format!("priority[{i}].lossless");
    let lossless = cx.ask(|keys, cx| keys.lossless(cx, id, &key, p.lossless, covered))?;
    for (key, given) in [("egress_limit", p.egress_limit.is_some()), ("alpha", p.alpha.is_some())] {
        if lossless && given {
            let message =
                format!("priority {id} is lossless, so its egress queues cannot drop packets at a limit");
            let help = match cx.scenario.flow_control.may_be_lossy() {
                true => format!("remove `{key}`, or write lossless = false"),
                false => format!("remove `{key}`"),
            };
            return cx.refuse(&format!("priority[{i}].{key}"), message, help);
        }
    }
    Ok(lossless)
}
