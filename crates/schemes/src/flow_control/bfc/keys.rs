//! `[flow_control]` of BFC.

use super::super::fabric::{Fabric, Lane};
use super::super::keys::{Complaint, Keys, Setting, Whole, default_keys, defaults, time};
use super::super::pause_time::{PAUSE_TIME, check_pause_time, check_pauses, pause_time};
use super::super::registry::FlowControlParams;
use super::BfcParams;
use crate::names::default_values;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use xoff_net::{topology::Topology, units::Span};

/// BFC, after Goyal et al., Backpressure Flow Control, NSDI 2022.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BfcKeys {
    /// Queues of each port and priority, 2 to 1024. Queue 0 is for ACKs and is served first. Flows
    /// are assigned to the others, which share by deficit round robin. The papers use 32 and 128.
    #[serde(default = "bfc_queues")]
    #[schemars(range(min = 2, max = 1024))]
    #[schemars(extend("x-unit" = "queues"))]
    pub queues: u32,
    /// Queues of a host for its own flows, 1 to 16384. If a host has fewer flows at a time, each
    /// flow has its own queue and is paused alone, as in a public simulator with BFC. The numbers
    /// of these queues follow those of the `queues` for forwarded packets.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 16_384))]
    #[schemars(extend("x-unit" = "queues"))]
    #[schemars(extend("x-default" = "derived: `queues` less the queue of ACKs"))]
    pub host_queues: Option<u32>,
    /// Number of hash values for flows, 1 to 16777216. BFC treats flows with the same value as one
    /// flow.
    #[serde(default = "virtual_flows")]
    #[schemars(range(min = 1, max = 16_777_216))]
    #[schemars(extend("x-unit" = "hash values"))]
    pub virtual_flows: u32,
    /// Round trip of one hop. A packet pauses its upstream queue if its own queue is longer than
    /// the egress rate times this, divided by the port's active queues. Default: twice the delay of
    /// the ingress link.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-default" = "derived: 2 × the delay of the packet's ingress link"))]
    pub hop_rtt: Option<Span>,
    /// Hop round trips for which a flow keeps its queue after its last packet has left, 0 to 1000.
    #[serde(default = "keep")]
    #[schemars(range(max = 1000))]
    #[schemars(extend("x-unit" = "hop round trips"))]
    pub keep: u32,
    /// Whether an empty queue that a flow still keeps may be given to another flow.
    #[serde(default)]
    pub reuse_kept: bool,
    /// Shortest time between two resume frames of one egress queue; 0 resumes immediately.
    #[serde(default = "defaults::zero_time")]
    pub resume_interval: Span,
    /// Where ACKs wait.
    #[serde(default)]
    pub acks: BfcAcks,
    /// Which queue of forwarded packets is served next. A host's own queues always take turns.
    #[serde(default)]
    pub service: BfcService,
    /// Time from the arrival of a pause or resume frame until it takes effect. A frame has 64 B and
    /// is sent before all data.
    #[serde(default = "defaults::zero_time")]
    pub response_time: Span,
    /// Length of a pause, 1 us or more; on the slowest link it must cover two largest packets and
    /// two pause frames. All pauses that a port has in force are repeated together after half of
    /// this time, in at most a quarter of the link. A lost resume cannot pause a queue permanently.
    /// Default: unlimited in a run without failures and losses, otherwise 100 us, or more if the
    /// slowest link requires it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-default" = format!("none, or `\"{}\"` if links fail or lose frames", PAUSE_TIME)))]
    pub pause_time: Option<Span>,
}

/// Where ACKs wait under BFC.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum BfcAcks {
    /// In queue 0, served first and never paused.
    #[default]
    Control,
    /// In queues 1 and above, as separate flows.
    Queues,
}

/// Which queue BFC serves next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum BfcService {
    /// All that may send take turns (deficit round robin), as in BFC's paper.
    #[default]
    RoundRobin,
    /// The one with the lowest number that may send, as in a public simulator with BFC.
    LowestFirst,
}

default_keys!(BfcKeys);

default_values! {
    bfc_queues: u32 = 32;
    virtual_flows: u32 = 16_384;
    keep: u32 = 2;
}

impl BfcKeys {
    fn host_queues(&self) -> u32 {
        self.host_queues.unwrap_or(self.queues.max(2) - 1)
    }
}

impl Whole for BfcKeys {}

impl Keys for BfcKeys {
    fn check(&self, cx: &mut Setting<'_>) -> Result<(), Complaint> {
        for (key, value, least, most) in [
            ("queues", self.queues, 2, 1_024),
            ("host_queues", self.host_queues(), 1, 16_384),
            ("virtual_flows", self.virtual_flows, 1, 1 << 24),
            ("keep", self.keep, 0, 1_000),
        ] {
            if !(least..=most).contains(&value) {
                let message = format!("{key} = {value} is out of range");
                let help = format!("write a whole number from {least} to {most}");
                return Err(Complaint::new(&format!("flow_control.{key}"), message, help));
            }
        }
        time("resume_interval", self.resume_interval)?;
        time("response_time", self.response_time)?;
        self.hop_rtt.map_or(Ok(()), |hop_rtt| time("hop_rtt", hop_rtt))?;
        check_pause_time(self.pause_time)?;
        if self.keep == 0 && self.reuse_kept {
            cx.warn("flow_control.reuse_kept".into(), "had no effect: with keep = 0 no queue is kept".into());
        }
        Ok(())
    }

    fn lifts_limits(&self) -> bool {
        true
    }

    /// Lists and states of a port's queues and of its host's, and counters against its neighbour's.
    fn queues(&self) -> Option<(u32, u64)> {
        Some((self.queues + 1 + self.host_queues(), 32 + 32 + 24 + 8))
    }

    fn check_links(&self, cx: &mut Setting<'_>, topology: &Topology, _: &[Lane]) -> Result<(), Complaint> {
        check_pauses(self.pause_time, topology, &cx.packet)
    }

    fn params(&self, cx: &mut Setting<'_>, fabric: Fabric<'_>) -> Result<FlowControlParams, Complaint> {
        let topology = fabric.topology;
        let hop_rtt = |delay: u64| self.hop_rtt.map_or(2 * delay, |t| t.0);
        Ok(FlowControlParams::Bfc(BfcParams {
            queues: self.queues as u16,
            host_queues: self.host_queues() as u16,
            virtual_flows: self.virtual_flows,
            hop_rtt: topology.ports.iter().map(|p| hop_rtt(p.delay)).collect(),
            keep: self.keep,
            reuse_kept: self.reuse_kept,
            resume_interval: self.resume_interval.0,
            acks_in_queues: self.acks == BfcAcks::Queues,
            lowest_first: self.service == BfcService::LowestFirst,
            response_time: self.response_time.0,
            pause_time: pause_time(self.pause_time, topology, &cx.packet, fabric.fails || fabric.loses),
        }))
    }
}
