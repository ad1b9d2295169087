//! `[flow_control]` of Pyrrha.

use super::super::fabric::{Buffer, Fabric};
use super::super::keys::{
    Complaint, Keys, Setting, Whole, alpha_q16, bytes, default_keys, defaults, link, shown, time,
};
use super::super::pfc::keys::PfcKeys;
use super::super::registry::FlowControlParams;
use super::{Places, PyrrhaParams, Variant, size};
use crate::load_balancing::LoadBalancing;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use xoff_net::topology::{NodeKind, PortId, Topology};
use xoff_net::units::{Span, Threshold};

/// Pyrrha, flow control by congestion roots (2026). Nothing is reserved: what does not
/// fit is dropped, and a transport that repeats selectively (`irn`) suits it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PyrrhaKeys {
    /// Organisation of isolation queues.
    #[serde(default)]
    pub organisation: Organisation,
    /// Isolation queues of each port and priority, 1 to 1024. If there are more roots, they share
    /// queues.
    #[serde(default = "pyrrha_queues")]
    #[schemars(range(min = 1, max = 1024))]
    #[schemars(extend("x-unit" = "queues"))]
    pub queues: u32,
    /// K_pause: a queue that holds more than this pauses its senders. In bytes, or in BDP (rate
    /// times one-way delay) of its port's link. The paper's value is two BDPs of a hop's round
    /// trip: `"4bdp"`.
    #[serde(default = "four_bdp")]
    pub k_pause: Threshold,
    /// K_resume: the senders are resumed when the queue holds no more than this. Default: half of
    /// `k_pause`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-default" = "derived: `k_pause` / 2"))]
    pub k_resume: Option<Threshold>,
    /// What happens to the tree of a port that is not a root after all.
    #[serde(default)]
    pub merging: Merging,
    /// Whether hosts stop flows that cross a paused root.
    #[serde(default)]
    pub hosts: PyrrhaHosts,
    /// Where ACKs wait.
    #[serde(default)]
    pub acks: PyrrhaAcks,
    /// Other readings of the paper's rules, for comparison.
    #[serde(default)]
    pub variants: Vec<PyrrhaVariant>,
    /// Switches without Pyrrha: all of their links run PFC. Cannot be combined with `[[failure]]`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-default" = "none: every switch runs Pyrrha"))]
    pub legacy: Option<PyrrhaLegacy>,
    /// Time from the arrival of a frame until it takes effect. A frame has 64 B and is sent before
    /// all data.
    #[serde(default = "defaults::zero_time")]
    pub response_time: Span,
}

/// A rule of Pyrrha that is read otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PyrrhaVariant {
    /// While the link is busy, every isolation queue that may send adds one packet to the output
    /// queue for each packet sent, instead of taking turns. The paper's public simulator does this.
    Push,
    /// A port that has abdicated may claim to be a root again with the next packet.
    ReclaimAtOnce,
    /// Switches do not wait for releases of hosts, and hosts send none.
    HostsAreNoLeaves,
    /// An isolation queue pauses and resumes a neighbour by the bytes from that neighbour, instead
    /// of by its length.
    CountByIngress,
    /// Isolation queues pause and resume by the bytes for their root at all ports of the switch.
    CountOverPorts,
    /// Only ports that lead down, to a device nearer to hosts, abdicate; others stay roots.
    MergeDownOnly,
    /// A MERGE assigns a resumed isolation queue to the new root.
    MergeEntersResumed,
    /// An isolation queue that is merged away pauses no neighbour, however long it is.
    MergingNeverPauses,
}

impl PyrrhaVariant {
    fn needs_merging(self) -> bool {
        match self {
            Self::Push | Self::HostsAreNoLeaves | Self::CountByIngress | Self::CountOverPorts => false,
            Self::ReclaimAtOnce
            | Self::MergeDownOnly
            | Self::MergeEntersResumed
            | Self::MergingNeverPauses => true,
        }
    }
}

/// Switches without Pyrrha, which run PFC.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PyrrhaLegacy {
    /// Names of these switches.
    pub switches: Vec<String>,
    /// PFC on their links: an ingress pauses its peer at this multiple of the free shared buffer.
    /// Default: 0.125.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-unit" = "ratio"))]
    #[schemars(extend("default" = super::super::pfc::keys::ALPHA))]
    pub alpha: Option<f64>,
}

/// Organisation of isolation queues.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(rename = "PyrrhaOrganisation")]
pub enum Organisation {
    /// Hierarchical: one for each root; packets pass through them from the nearest root to the
    /// farthest.
    #[default]
    Hiq,
    /// One for each set of roots.
    SingleTier,
}

/// What happens to the tree of a port that is not a root after all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(rename = "PyrrhaMerging")]
pub enum Merging {
    /// It is merged into the tree of the true root; waiting packets are moved in order.
    #[default]
    Soft,
    /// It is merged too, but later packets do not wait for the moved packets: flows can be
    /// reordered.
    Hard,
    /// The tree stays.
    Off,
}

/// Whether hosts stop flows that cross a paused root.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PyrrhaHosts {
    /// They stop these flows and no others.
    #[default]
    Obey,
    /// They ignore the frames.
    Ignore,
}

/// Where ACKs wait under Pyrrha.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PyrrhaAcks {
    /// In the same queues as data; a root on their own path can block them.
    #[default]
    Queues,
    /// In a separate queue, served first and never paused.
    Control,
}

default_keys!(PyrrhaKeys);

fn pyrrha_queues() -> u32 {
    100
}

fn four_bdp() -> Threshold {
    "4bdp".parse().expect("a threshold")
}

impl Whole for PyrrhaKeys {}

impl Keys for PyrrhaKeys {
    fn check(&self, cx: &mut Setting<'_>) -> Result<(), Complaint> {
        if !(1..=1_024).contains(&self.queues) {
            let message = format!("queues = {} is out of range", self.queues);
            return Err(Complaint::of_key("queues", message, "write a whole number from 1 to 1024"));
        }
        if let Some(legacy) = &self.legacy {
            if legacy.switches.is_empty() {
                let help = "write at least one switch, or remove the table";
                return Err(Complaint::of_key("legacy.switches", "the list of switches is empty", help));
            }
            if let Some(alpha) = legacy.alpha {
                alpha_q16("flow_control.legacy.alpha", alpha)?;
            }
            if cx.failures {
                let message = "incompatible with [[failure]]";
                let help = "remove [[failure]], or flow_control.legacy";
                return Err(Complaint::of_key("legacy", message, help));
            }
        }
        time("response_time", self.response_time)
    }

    /// A host's flow waits in the queue of a root on its path, before its next packet has a path.
    fn refuses_balancing(&self, balancing: LoadBalancing) -> Option<String> {
        let name = balancing.name();
        let message = || {
            format!("`pyrrha` is incompatible with `{name}`: hosts queue flows by the paths of their packets")
        };
        balancing.labels_packets().then(message)
    }

    fn lifts_limits(&self) -> bool {
        true
    }

    fn queues(&self) -> Option<(u32, u64)> {
        Some((1 + self.queues, 2 * (32 + 32)))
    }

    fn pfc_links(
        &self,
        cx: &Setting<'_>,
        topology: &Topology,
    ) -> Result<Option<(PfcKeys, Vec<bool>)>, Complaint> {
        Ok(legacy(self, cx, topology)?.map(|legacy| (legacy.pfc, legacy.link)))
    }

    fn params(&self, cx: &mut Setting<'_>, fabric: Fabric<'_>) -> Result<FlowControlParams, Complaint> {
        let (topology, receivers) = (fabric.topology, fabric.receivers);
        let legacy = legacy(self, cx, topology)?;
        let is_legacy = |port: PortId| legacy.as_ref().is_some_and(|l| l.switch[port as usize]);
        let (mut k_pause, mut k_resume) = (Vec::new(), Vec::new());
        for (id, port) in (0..).zip(&topology.ports) {
            // A slow host pauses by its stored bytes: its inner port has no delay, so it has the thresholds
            // of the host's link.
            let inner = receivers.iter().find(|(_, rx)| *rx == id || topology.ports[*rx as usize].peer == id);
            let at = inner
                .map_or(port, |(host, _)| &topology.ports[topology.nodes[*host as usize].ports[0] as usize]);
            let pause = self.k_pause.resolve(at.rate, at.delay);
            let resume =
                self.k_resume.map_or_else(|| size::k_resume(pause), |t| t.resolve(at.rate, at.delay));
            if let Some(given) = self.k_resume.filter(|_| resume > pause) {
                let (on, off) = (shown(given, resume), shown(self.k_pause, pause));
                let message = format!("k_resume = {on} is above k_pause = {off} on {}", link(topology, id));
                let help = "choose `k_resume` no larger than `k_pause`";
                return Err(Complaint::of_key("k_resume", message, help));
            }
            // A switch that supports only PFC is never a root.
            k_pause.push(if is_legacy(id) { u64::MAX } else { pause });
            k_resume.push(resume);
        }
        let kind = |node: u32| topology.nodes[node as usize].kind;
        let levels = topology.levels();
        let level = |node: u32| levels[node as usize];
        let places = Places {
            of: topology.ports.iter().map(|p| (p.node, p.index)).collect(),
            ports: topology.nodes.iter().map(|n| n.ports.clone()).collect(),
            host: topology.ports.iter().map(|p| kind(p.node) == NodeKind::Host).collect(),
            to_host: (0..topology.ports.len() as PortId)
                .map(|p| kind(topology.neighbour(p)) == NodeKind::Host)
                .collect(),
            down: (0..)
                .zip(&topology.ports)
                .map(|(id, port)| level(topology.neighbour(id)) < level(port.node))
                .collect(),
        };
        let params = PyrrhaParams {
            organisation: self.organisation,
            merging: self.merging,
            queues: self.queues as u16,
            k_pause,
            k_resume,
            hosts_obey: self.hosts == PyrrhaHosts::Obey,
            acks_in_queues: self.acks == PyrrhaAcks::Queues,
            variant: Variant {
                push: self.variants.contains(&PyrrhaVariant::Push),
                reclaim_at_once: self.variants.contains(&PyrrhaVariant::ReclaimAtOnce),
                hosts_are_no_leaves: self.variants.contains(&PyrrhaVariant::HostsAreNoLeaves),
                count_by_ingress: self.variants.contains(&PyrrhaVariant::CountByIngress),
                count_over_ports: self.variants.contains(&PyrrhaVariant::CountOverPorts),
                merge_down_only: self.variants.contains(&PyrrhaVariant::MergeDownOnly),
                merge_enters_resumed: self.variants.contains(&PyrrhaVariant::MergeEntersResumed),
                merging_never_pauses: self.variants.contains(&PyrrhaVariant::MergingNeverPauses),
            },
            deaf: legacy.as_ref().map_or_else(Vec::new, |l| l.link.clone()),
            pfc: legacy.map(|l| l.pfc.params()),
            places: Arc::new(places),
            response_time: self.response_time.0,
        };
        warn(cx, self, &params, topology, fabric.buffers);
        Ok(FlowControlParams::Pyrrha(params))
    }
}

/// Switches that support only PFC, and their effect on others.
struct Legacy {
    /// PFC on their links.
    pfc: PfcKeys,
    /// By port: its link is one of theirs, and runs PFC.
    link: Vec<bool>,
    /// By port: it is one of theirs.
    switch: Vec<bool>,
}

/// Those that the scenario names, if it does.
fn legacy(pyrrha: &PyrrhaKeys, cx: &Setting<'_>, topology: &Topology) -> Result<Option<Legacy>, Complaint> {
    let Some(keys) = &pyrrha.legacy else { return Ok(None) };
    let mut named = vec![false; topology.nodes.len()];
    for (i, name) in keys.switches.iter().enumerate() {
        let path = format!("flow_control.legacy.switches[{i}]");
        let node =
            (cx.node)(topology, name).map_err(|(message, help)| Complaint::new(&path, message, help))?;
        if topology.nodes[node as usize].kind == NodeKind::Host {
            return Err(Complaint::new(&path, format!("`{name}` is a host"), "write the name of a switch"));
        }
        if std::mem::replace(&mut named[node as usize], true) {
            return Err(Complaint::new(&path, format!("`{name}` is listed twice"), "remove one of the two"));
        }
    }
    let is = |port: PortId| named[topology.ports[port as usize].node as usize];
    let ports = 0..topology.ports.len() as PortId;
    Ok(Some(Legacy {
        pfc: PfcKeys { alpha: keys.alpha, response_time: pyrrha.response_time, ..PfcKeys::default() },
        link: ports.clone().map(|p| is(p) || is(topology.ports[p as usize].peer)).collect(),
        switch: ports.map(is).collect(),
    }))
}

/// Warns about written keys that cannot have an effect.
fn warn(
    cx: &mut Setting<'_>,
    pyrrha: &PyrrhaKeys,
    params: &PyrrhaParams,
    topology: &Topology,
    buffers: &[Buffer],
) {
    for (i, variant) in pyrrha.variants.iter().enumerate() {
        let key = format!("flow_control.variants[{i}]");
        if pyrrha.variants[..i].contains(variant) {
            cx.warn(key, "had no effect: it is listed already".into());
        } else if variant.needs_merging() && pyrrha.merging == Merging::Off {
            cx.warn(key, "had no effect: with merging = \"off\" no port abdicates".into());
        }
    }
    if !params.deaf.is_empty() && params.deaf.iter().take(topology.ports.len()).all(|&deaf| deaf) {
        let message = "Pyrrha has no effect: every switch is listed, and all links run PFC";
        cx.warn("flow_control.legacy.switches".into(), message.into());
        return;
    }
    unreachable_thresholds(cx, params, topology, buffers);
}

/// Ports of switches whose buffer is too small to make them roots.
fn unreachable_thresholds(
    cx: &mut Setting<'_>,
    params: &PyrrhaParams,
    topology: &Topology,
    buffers: &[Buffer],
) {
    let of_switches: Vec<PortId> = (0..topology.ports.len() as PortId)
        .filter(|&p| topology.nodes[topology.ports[p as usize].node as usize].kind == NodeKind::Switch)
        .filter(|&p| params.k_pause[p as usize] < u64::MAX)
        .collect();
    let buffer = |p: PortId| buffers[topology.ports[p as usize].node as usize].total;
    let never: Vec<PortId> =
        of_switches.iter().copied().filter(|&p| params.k_pause[p as usize] >= buffer(p)).collect();
    let Some(&first) = never.first() else { return };
    let which = match (never.len(), of_switches.len()) {
        (never, all) if never == all => "no port of a switch can become a root, for example".to_string(),
        (1, _) => "one port of a switch cannot become a root:".to_string(),
        (never, all) => format!("{never} of {all} ports of switches cannot become roots, for example"),
    };
    let message = format!(
        "exceeds the buffer: {which} {} (K_pause {}, buffer {})",
        topology.port_name(first),
        bytes(params.k_pause[first as usize]),
        bytes(buffer(first))
    );
    cx.warn("flow_control.k_pause".into(), message);
}
