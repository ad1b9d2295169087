//! Lanes: the priorities in use, and how egress queues treat each.

use super::tags::Layout;
use super::{Context, alpha_q16, bytes, congestion};
use crate::error::Error;
use crate::plan::{Lane, Limit, PacketFormat, Red};
use crate::scenario::{Ecn, FlowControl, MarkAt, Priority};
use std::collections::BTreeMap;

/// The priorities that the scenario declares, by number, with their table's index.
pub(super) fn declared<'s>(cx: &Context<'s>) -> Result<BTreeMap<u8, (usize, &'s Priority)>, Error> {
    let mut out = BTreeMap::new();
    for (i, p) in cx.scenario.priority.iter().enumerate() {
        let at = |key: &str| format!("priority[{i}].{key}");
        check_priority(cx, &at("id"), p.id)?;
        if let Some((first, _)) = out.insert(p.id, (i, p)) {
            let message = format!("priority {} was described before, in priority[{first}]", p.id);
            return Err(cx.doc.error(&at("id"), message, "merge the two [[priority]] tables"));
        }
        if !(1..=1000).contains(&p.weight) {
            let message = format!("a weight of {} is out of range", p.weight);
            return Err(cx.doc.error(&at("weight"), message, "write a whole number from 1 to 1000"));
        }
        if p.egress_limit.is_some() && p.alpha.is_some() {
            let message = "`alpha` and `egress_limit` exclude each other: a queue has one limit";
            return Err(cx.doc.error(&at("alpha"), message, "remove one of the two keys"));
        }
        if let Some(ecn) = &p.ecn {
            check_ecn(cx, &at("ecn"), ecn)?;
        }
    }
    Ok(out)
}

/// Refuses a priority above 7.
pub(super) fn check_priority(cx: &Context<'_>, path: &str, priority: u8) -> Result<(), Error> {
    if priority <= 7 {
        return Ok(());
    }
    Err(cx.doc.error(path, format!("priority {priority} does not exist"), "802.1p has the priorities 0 to 7"))
}

fn check_ecn(cx: &Context<'_>, path: &str, ecn: &Ecn) -> Result<(), Error> {
    if ecn.k_min > ecn.k_max {
        let message = format!("k_min = {} is above k_max = {}", ecn.k_min, ecn.k_max);
        return Err(cx.doc.error(
            &format!("{path}.k_min"),
            message,
            "exchange them, or make them equal to mark from one length on",
        ));
    }
    if !(0.0..=1.0).contains(&ecn.p_max) {
        let message = format!("{} is not a probability", ecn.p_max);
        return Err(cx.doc.error(&format!("{path}.p_max"), message, "write a number from 0 to 1"));
    }
    Ok(())
}

/// The lanes of the priorities in `used`, in the order of service; where there
/// are `tags`, they say which are lossless.
pub(super) fn build(
    cx: &mut Context<'_>,
    used: &[u8],
    packet: &PacketFormat,
    tags: Option<&Layout>,
) -> Result<Vec<Lane>, Error> {
    let declared = declared(cx)?;
    for (&id, &(i, _)) in &declared {
        if !used.contains(&id) {
            cx.warn(format!("priority[{i}]"), format!("had no effect: no traffic has priority {id}"));
        }
    }
    if let Some(ecn) = &cx.scenario.ecn {
        check_ecn(cx, "ecn", ecn)?;
    }
    let covered = match tags {
        Some(layout) => layout.lossless.iter().copied().collect(),
        None => covered(cx, used)?,
    };
    let by_flow = matches!(
        cx.scenario.flow_control,
        FlowControl::Bfc(_) | FlowControl::PerFlowQueue(_) | FlowControl::PortFc(_) | FlowControl::Pyrrha(_)
    );
    let mut lanes = Vec::new();
    for &id in used {
        let table = declared.get(&id).copied();
        let lossless = lossless(cx, id, table, covered.contains(&id))?;
        let (path, alpha) = match table {
            Some((i, p)) => (format!("priority[{i}].alpha"), p.alpha),
            None => (String::new(), None),
        };
        let egress_limit = match table.and_then(|(_, p)| p.egress_limit) {
            _ if lossless => Limit::Unlimited,
            Some(limit) => Limit::Static(limit.0),
            None if by_flow && alpha.is_none() => Limit::Unlimited,
            None => Limit::Dynamic { alpha_q16: alpha_q16(cx, &path, alpha.unwrap_or(1.0))?, cap: u64::MAX },
        };
        if let Limit::Static(limit) = egress_limit
            && limit < u64::from(packet.largest())
        {
            let path = path.replace("alpha", "egress_limit");
            let message =
                format!("{} is less than one packet of {}", bytes(limit), bytes(u64::from(packet.largest())));
            return Err(cx.doc.error(&path, message, "a queue must be able to hold a packet"));
        }
        let ecn = table.and_then(|(_, p)| p.ecn).or(cx.scenario.ecn).or(congestion::default_ecn(cx.scenario));
        lanes.push(Lane {
            priority: id,
            tier: table.and_then(|(_, p)| p.tier).unwrap_or(7 - id),
            quantum: table.map_or(1, |(_, p)| p.weight) * packet.largest(),
            lossless,
            egress_limit,
            ecn: ecn.map(|e| Red {
                k_min: e.k_min.0,
                k_max: e.k_max.0,
                p_max: e.p_max,
                per: e.per.map_or(0, |r| r.0),
                at_dequeue: e.at == MarkAt::Dequeue,
            }),
        });
    }
    lanes.sort_by_key(|l| (l.tier, std::cmp::Reverse(l.priority)));
    let mut tiers: Vec<u8> = lanes.iter().map(|l| l.tier).collect();
    tiers.dedup();
    for (i, (&id, &(index, p))) in declared.iter().enumerate() {
        let alone = lanes.iter().filter(|l| Some(l.tier) == p.tier).count() < 2;
        debug_assert!(i < 8, "{id} is one of eight");
        if p.weight != 1 && alone && used.contains(&id) {
            cx.warn(
                format!("priority[{index}].weight"),
                "had no effect: no other priority in use shares its tier".to_string(),
            );
        }
    }
    for lane in &mut lanes {
        lane.tier = tiers.iter().position(|&t| t == lane.tier).expect("from this list") as u8;
    }
    Ok(lanes)
}

/// The priorities that the flow control makes lossless.
pub(super) fn covered(cx: &mut Context<'_>, used: &[u8]) -> Result<Vec<u8>, Error> {
    if super::portfc::chosen(cx).is_some() {
        let answers = [super::portfc::answers(cx), cx.scenario.dcqcn.and_then(|d| d.cnp_priority)];
        return Ok(used.iter().copied().filter(|&p| !answers.contains(&Some(p))).collect());
    }
    if let FlowControl::Cbfc(_) = cx.scenario.flow_control {
        return Ok(used.to_vec());
    }
    let Some(pfc) = cx.scenario.flow_control.pfc() else { return Ok(Vec::new()) };
    let Some(list) = &pfc.priorities else { return Ok(used.to_vec()) };
    for (i, &p) in list.iter().enumerate() {
        let path = format!("flow_control.priorities[{i}]");
        check_priority(cx, &path, p)?;
        if list[..i].contains(&p) {
            return Err(cx.doc.error(
                &path,
                format!("priority {p} is listed twice"),
                "remove one of the two",
            ));
        }
        if !used.contains(&p) {
            cx.warn(path, format!("had no effect: no traffic has priority {p}"));
        }
    }
    Ok(list.clone())
}

fn lossless(
    cx: &mut Context<'_>,
    id: u8,
    table: Option<(usize, &Priority)>,
    covered: bool,
) -> Result<bool, Error> {
    let Some((i, p)) = table else { return Ok(covered) };
    let pfc = match &cx.scenario.flow_control {
        FlowControl::Pfc(pfc) => pfc,
        FlowControl::Swing(swing) => &swing.pfc,
        FlowControl::PfcWatchdog(watched) => &watched.pfc,
        FlowControl::Roundabout(roundabout) => &roundabout.pfc,
        FlowControl::LoopBreaker(breaker) => &breaker.pfc,
        FlowControl::DeadlockBreaker(breaker) => &breaker.pfc,
        FlowControl::Itsy(itsy) => &itsy.pfc,
        FlowControl::Bifrost(bifrost) | FlowControl::BifrostX(bifrost) => &bifrost.pfc,
        FlowControl::Tagger(tagger) => {
            if let Some(wanted) = p.lossless.filter(|&wanted| wanted != covered) {
                let (is, not) = if wanted { ("lossy", "lossless") } else { ("lossless", "lossy") };
                let message = format!("priority {id} is {is} here, by its tag, and cannot be {not}");
                let help = "remove `lossless`: under `tagger` flow_control.lossless and priorities decide";
                return Err(cx.doc.error(&format!("priority[{i}].lossless"), message, help));
            }
            &tagger.pfc
        }
        FlowControl::PortFc(_) => {
            if let Some(wanted) = p.lossless.filter(|&wanted| wanted != covered) {
                let what =
                    if covered { "data, which PortFC keeps lossless" } else { "ACKs, which nothing pauses" };
                let message = format!("priority {id} is that of {what}: it cannot be lossless = {wanted}");
                let help = "remove `lossless`";
                return Err(cx.doc.error(&format!("priority[{i}].lossless"), message, help));
            }
            return no_limit(cx, i, p, id, covered);
        }
        FlowControl::Cbfc(_) => return no_limit(cx, i, p, id, p.lossless.unwrap_or(covered)),
        other => {
            if p.lossless == Some(true) {
                let why = match other {
                    FlowControl::None => "without flow control",
                    _ => "under a flow control that reserves no headroom",
                };
                let message = format!("had no effect: {why} no priority is lossless");
                cx.warn(format!("priority[{i}].lossless"), message);
            }
            return Ok(false);
        }
    };
    let path = format!("priority[{i}].lossless");
    let lossless = match p.lossless {
        Some(true) if !covered => {
            let message =
                format!("priority {id} is lossless here, but flow_control.priorities leaves it out");
            return Err(cx.doc.error(
                &path,
                message,
                format!("add {id} to flow_control.priorities, or remove `lossless`"),
            ));
        }
        Some(false) if pfc.priorities.is_some() && covered => {
            let message = format!("priority {id} is lossy here, but flow_control.priorities lists it");
            return Err(cx.doc.error(
                &path,
                message,
                format!("remove {id} from flow_control.priorities, or remove `lossless`"),
            ));
        }
        given => given.unwrap_or(covered),
    };
    no_limit(cx, i, p, id, lossless)
}

/// Refuses limits of the egress queues of a lossless priority.
fn no_limit(cx: &Context<'_>, i: usize, p: &Priority, id: u8, lossless: bool) -> Result<bool, Error> {
    for (key, given) in [("egress_limit", p.egress_limit.is_some()), ("alpha", p.alpha.is_some())] {
        if lossless && given {
            let message = format!("priority {id} is lossless: its egress queues have no limit that drops");
            let help = match super::portfc::chosen(cx) {
                Some(_) => format!("remove `{key}`"),
                None => format!("remove `{key}`, or write lossless = false"),
            };
            return Err(cx.doc.error(&format!("priority[{i}].{key}"), message, help));
        }
    }
    Ok(lossless)
}
