//! `[flow_control]` of Bifrost and BifrostX.

use super::super::fabric::{Account, Buffer, Fabric, Lane, Limit, UNBOUNDED};
use super::super::keys::{
    Complaint, Keys, LARGEST, LARGEST_ALLOWED, OnPfc, Setting, at_most, bytes, default_keys, defaults, link,
    shown, time,
};
use super::super::pfc::keys::PfcKeys;
use super::super::{FlowControlParams, Headroom};
use super::BifrostParams;
use super::size::{self, MOST_QUANTA, SLOTS_PER_DELAY};
use super::slots::SlotParams;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use xoff_kernel::time::serialisation;
use xoff_net::topology::{NodeId, NodeKind, PortId, Topology};
use xoff_net::units::{Bytes, Span, Threshold};
use xoff_wire::SMALLEST_FRAME;

/// Slots in a round trip: a port keeps the grant of each, in 8 bytes.
const MOST_SLOTS: u64 = 1 << 20;

/// Bifrost: keys of its own for long links, and those of PFC for all others.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Bifrost")]
pub struct BifrostKeys {
    /// T: the time between two frames of the downstream port. Each frame states how long its peer
    /// must pause in the next slot. Longer than `processing` and than 64 B on the link; at most a
    /// quarter of the one-way delay, and at most 65535 quanta.
    #[serde(default = "slot")]
    pub slot: Span,
    /// H: the buffer on which the port bases its grants. Each lossless priority has its own H; under
    /// `bifrostx` all priorities share one. In bytes, or in BDP (rate times *one-way* delay; the
    /// paper's BDP is `"2bdp"`). Default: the smallest H without loss of throughput, Δ + 2·R·T plus
    /// packets and late frames.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-default" = "derived: the least with full throughput, Δ + 2·R·T + room for packets and late frames"))]
    pub buffer: Option<Threshold>,
    /// k: slots between two checks for leaks, 1 to 1000. The port has room for k largest packets
    /// beyond H.
    #[serde(default = "defaults::one")]
    #[schemars(range(min = 1, max = 1000))]
    #[schemars(extend("x-unit" = "slots"))]
    pub repair_every: u32,
    /// How much longer a pause lasts than its grant requires: it covers packets just begun and late
    /// frames. Default: the time of two largest packets plus `jitter`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-default" = "derived: the time of two largest packets + `jitter`"))]
    pub margin: Option<Span>,
    /// Room beyond H for packets beyond the grant. Default: k largest packets, and the bytes that
    /// arrive while a frame is late; with `bifrostx` one packet more.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-default" = "derived: `repair_every` largest packets + what arrives within `jitter`"))]
    pub spare: Option<Bytes>,
    /// Time from the end of a slot until its frame is sent.
    #[serde(default = "processing")]
    pub processing: Span,
    /// Largest delay of a frame; delays are uniform from 0.
    #[serde(default = "defaults::zero_time")]
    pub jitter: Span,
    /// How a check for leaks corrects the grant: lines 11 to 13 of the paper's Algorithm 1.
    #[serde(default)]
    pub repair: Repair,
    /// How F, the bytes that can still arrive, is calculated.
    #[serde(default)]
    pub history: History,
    /// Links that use Bifrost. `response_time` and `priorities` apply to all links, `quanta` only
    /// to links with PFC. `flow_control.long` has no effect.
    #[serde(default)]
    pub links: BifrostLinks,
    /// `bifrostx`: what happens to the tokens that a priority does not use in its slot.
    #[serde(default)]
    pub leftover: Leftover,
    /// Accepts a `buffer` that is too small for full throughput.
    #[serde(default)]
    pub undersized: bool,
}

/// The estimate of the bytes that can still arrive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(rename = "BifrostHistory")]
pub enum History {
    /// From the grants of the last RTT + T.
    #[default]
    Grants,
    /// By the recurrence in the paper's Algorithm 1.
    Recurrence,
}

/// What a check for leaks does with the grant c.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(rename = "BifrostRepair")]
pub enum Repair {
    /// It subtracts the bytes of L + F beyond H. Where there are any, c is 0 already.
    #[default]
    Excess,
    /// It subtracts L + F − H, also when it is negative, as printed: below H the check raises the
    /// grant, and packets can be lost.
    Printed,
}

/// Which links Bifrost grants.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum BifrostLinks {
    /// Long links.
    #[default]
    Long,
    /// All links to a switch.
    All,
}

/// The fate of tokens that a priority does not use in its slot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(rename = "BifrostLeftover")]
pub enum Leftover {
    /// Any priority may use them until the slot ends.
    #[default]
    Pooled,
    /// They are lost: a priority gets tokens for the bytes in its queue when the frame arrives, as
    /// in the paper's Algorithm 3.
    Reserved,
}

default_keys!(BifrostKeys);

fn slot() -> Span {
    "10us".parse().expect("a time")
}

fn processing() -> Span {
    "1us".parse().expect("a time")
}

impl Keys for OnPfc<BifrostKeys> {
    fn pfc(&self) -> Option<&PfcKeys> {
        Some(&self.pfc)
    }

    fn check(&self, cx: &mut Setting<'_>) -> Result<(), Complaint> {
        let keys = &self.keys;
        time("slot", keys.slot)?;
        time("processing", keys.processing)?;
        time("jitter", keys.jitter)?;
        keys.margin.map_or(Ok(()), |margin| time("margin", margin))?;
        at_most("spare", keys.spare)?;
        if !(1..=1_000).contains(&keys.repair_every) {
            let help = "write a whole number from 1 to 1000";
            return Err(Complaint::out_of_range("repair_every", keys.repair_every, help));
        }
        let (slot, sent) = (keys.slot, Span(keys.processing.0 + keys.jitter.0));
        if slot.0 <= sent.0 {
            let message =
                format!("a slot of {slot} is too short: its control frame reaches the wire after {sent}");
            let help = "write a slot longer than `processing` plus `jitter`";
            return Err(Complaint::of_key("slot", message, help));
        }
        if keys.undersized && keys.buffer.is_none() {
            let message = "had no effect: without `buffer` the buffer has the recommended size";
            cx.warn("flow_control.undersized".into(), message.into());
        }
        if !counted(cx) && cx.written("flow_control.leftover") {
            let message = "had no effect: it is a key of `bifrostx`, and this run uses `bifrost`";
            cx.warn("flow_control.leftover".into(), message.into());
        }
        Ok(())
    }

    /// It counts as over where nothing can be granted, even with nothing in flight.
    fn account(
        &self,
        cx: &Setting<'_>,
        topology: &Topology,
        port: PortId,
        _: &[Lane],
    ) -> Result<Option<Account>, Complaint> {
        if !grants(&self.keys, topology, port) {
            return Ok(None);
        }
        let keys = &self.keys;
        let resume = slots(cx, self, topology, port)?.buffer - u64::from(cx.packet.largest());
        let link = cx.facts(topology, port);
        let headroom = match keys.spare {
            Some(Bytes(total)) => Headroom { terms: Vec::new(), total },
            None => size::spare(&link, keys.jitter.0, keys.repair_every, counted(cx)),
        };
        Ok(Some(Account::fixed(resume + 1, resume, headroom)))
    }

    fn sets_apart(&self, topology: &Topology, port: PortId) -> bool {
        topology.ports[port as usize].long || grants(&self.keys, topology, port)
    }

    /// Under BifrostX the lossless accounts of a port that grants share the buffer of a single one.
    fn pool(
        &self,
        cx: &Setting<'_>,
        topology: &Topology,
        accounts: &mut [Account],
        lanes: usize,
    ) -> Vec<(NodeId, Buffer)> {
        if !counted(cx) {
            return Vec::new();
        }
        let largest = u64::from(cx.packet.largest());
        let mut pools = Vec::new();
        for port in (0..topology.ports.len() as PortId).filter(|&p| grants(&self.keys, topology, p)) {
            let index = (topology.nodes.len() + pools.len()) as u32;
            let mut pool = None;
            for account in &mut accounts[port as usize * lanes..][..lanes] {
                let (Some(headroom), Limit::Static(shared)) = (&account.headroom, account.limit) else {
                    continue;
                };
                let total = account.resume + largest + headroom.total;
                pool = Some(Buffer { total, shared });
                // Each may use all that is left, whichever of them fills it: the buffer is the bound.
                *account = Account {
                    resume: u64::MAX,
                    headroom: Some(Headroom { terms: Vec::new(), total }),
                    pool: Some(index),
                    ..UNBOUNDED
                };
            }
            pools.extend(pool.map(|pool| (topology.ports[port as usize].node, pool)));
        }
        pools
    }

    fn warn_of_unused(&self, cx: &mut Setting<'_>, topology: &Topology) {
        self.pfc.warn_of_unused(cx, topology, true);
        if self.keys.links == BifrostLinks::Long && topology.ports.iter().all(|p| !p.long) {
            let message = "Bifrost grants nothing: this topology has no long link, and all links run PFC";
            cx.warn("flow_control.scheme".into(), message.into());
        }
    }

    fn params(&self, cx: &mut Setting<'_>, fabric: Fabric<'_>) -> Result<FlowControlParams, Complaint> {
        let (cx, topology) = (&*cx, fabric.topology);
        let granting = |port| {
            let link = topology.neighbour(port) != topology.ports[port as usize].node;
            (link && grants(&self.keys, topology, port)).then(|| slots(cx, self, topology, port)).transpose()
        };
        let ports = (0..topology.ports.len() as PortId).map(granting).collect::<Result<Vec<_>, _>>()?;
        Ok(FlowControlParams::Bifrost(BifrostParams {
            pfc: self.pfc.params(),
            granted: topology.ports.iter().map(|p| ports[p.peer as usize]).collect(),
            ports,
            lossless: fabric.lanes.iter().map(|lane| lane.lossless).collect(),
            processing: self.keys.processing.0,
            jitter: self.keys.jitter.0,
            seed: cx.seed,
            tokens: counted(cx).then_some(self.keys.leftover),
        }))
    }
}

/// Whether grants are counted as tokens: BifrostX.
fn counted(cx: &Setting<'_>) -> bool {
    cx.scheme == "bifrostx"
}

/// Whether the ingress of `port` grants its peer.
fn grants(keys: &BifrostKeys, topology: &Topology, port: PortId) -> bool {
    let p = &topology.ports[port as usize];
    match keys.links {
        BifrostLinks::Long => p.long,
        BifrostLinks::All => topology.nodes[p.node as usize].kind == NodeKind::Switch,
    }
}

/// The parameters of the downstream port of a link.
fn slots(
    cx: &Setting<'_>,
    bifrost: &OnPfc<BifrostKeys>,
    topology: &Topology,
    port: PortId,
) -> Result<SlotParams, Complaint> {
    let keys = &bifrost.keys;
    let p = &topology.ports[port as usize];
    let facts = cx.facts(topology, port);
    let (slot, name) = (keys.slot, link(topology, port));
    if !size::far_below(&facts, slot.0) {
        let message =
            format!("a slot of {slot} is too long for {name}: it must be far below the one-way delay");
        let help = format!("write {} or less, a quarter of the delay", Span(p.delay / SLOTS_PER_DELAY));
        return Err(Complaint::of_key("slot", message, help));
    }
    let ask = size::Ask {
        slot: slot.0,
        processing: keys.processing.0,
        jitter: keys.jitter.0,
        margin: keys.margin.map(|margin| margin.0),
        response_time: bifrost.pfc.response_time.0,
        repair_every: keys.repair_every,
        counted: counted(cx),
        history: keys.history,
        repair: keys.repair,
    };
    let params = size::params(&facts, &ask);
    let longest = size::longest_pause(&params);
    if longest > MOST_QUANTA {
        let message = format!(
            "a slot of {slot} and its margin ({}) on {name} need a pause of {longest} quanta of 512 bit times: a frame \
             holds at most {MOST_QUANTA}",
            bytes(params.margin)
        );
        // By itself the slot may fit, and the given value may be the reason that it does not.
        let fits = size::longest_pause(&SlotParams { margin: 0, ..params }) <= MOST_QUANTA;
        let (key, help) = match keys.margin.is_some() && fits {
            true => ("flow_control.margin", "write a smaller margin, or a shorter slot"),
            false => ("flow_control.slot", "write a shorter slot"),
        };
        return Err(Complaint::new(key, message, help));
    }
    let history = params.round_trip / params.slot;
    if history > MOST_SLOTS {
        let message = format!(
            "a round trip of {} on {name} has {history} slots of {slot}: a port cannot store so many grants",
            Span(params.round_trip)
        );
        let help = format!("choose a faster link or a longer slot: the maximum is {MOST_SLOTS} slots");
        return Err(Complaint::of_key("slot", message, help));
    }
    let frame = Span(serialisation(u64::from(SMALLEST_FRAME), p.rate));
    if slot.0 <= frame.0 {
        let message = format!(
            "a slot of {slot} is too short: its control frame of {SMALLEST_FRAME} B takes {frame} on {name}, and \
             data could never be sent"
        );
        return Err(Complaint::of_key("slot", message, format!("write more than {frame}")));
    }
    let least = params.least_buffer();
    let Some(given) = keys.buffer else { return Ok(SlotParams { buffer: least, ..params }) };
    let buffer = given.resolve(p.rate, p.delay);
    // With less an idle link is never let go (`bifrost.min-H`).
    let dead = params.bdp() + params.of_slot() + params.margin + 2 * u64::from(facts.largest);
    let (short, help) = if buffer > LARGEST {
        return Err(Complaint::out_of_range("buffer", given, LARGEST_ALLOWED));
    } else if buffer < dead {
        ("never grants a packet on", format!("write {dead}B or more; from {least}B no throughput is lost"))
    } else if buffer < least && !keys.undersized {
        let help = "remove `buffer`, or add undersized = true to simulate the loss";
        ("loses throughput on", format!("write {least}B or more, {help}"))
    } else {
        return Ok(SlotParams { buffer, ..params });
    };
    let shown = shown(given, buffer);
    Err(Complaint::of_key("buffer", format!("buffer = {shown} {short} {name}"), help))
}
