//! `[flow_control]` of DSH.

use super::super::fabric::{Account, Buffer, Fabric, Lane, Limit, UNBOUNDED, at_buffer, default_switch};
use super::super::keys::{
    Complaint, Keys, LARGEST, LARGEST_ALLOWED, Setting, Whole, alpha_q16, at_most, bytes, default_keys,
    defaults,
};
use super::super::pfc::PfcParams;
use super::super::pfc::keys::PfcKeys;
use super::super::{FlowControlParams, Headroom, PortLevel};
use super::{DshParams, insurance, longest_pause};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use xoff_net::topology::{NodeId, NodeKind, PortId, Topology};
use xoff_net::units::{Bytes, Span};

/// α of section V.
fn alpha() -> f64 {
    1.0 / 16.0
}

/// φ of section V: 672 KB for 32 ports with 7 queues.
fn private() -> Bytes {
    Bytes(3_000)
}

fn zero() -> Bytes {
    Bytes(0)
}

/// Dynamic and shared headroom: all ingress queues share one segment of memory for footroom and headroom. Behind
/// it each port has an insurance. A queue pauses its peer, and a port pauses all lossless priorities of its peer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DshKeys {
    /// α: the dynamic threshold T is α times the free bytes of the shared part of the buffer, 1/65536 to
    /// 1024. The paper has 1/16 (section V).
    #[serde(default = "alpha")]
    #[schemars(extend("x-unit" = "ratio"))]
    pub alpha: f64,
    /// φ: private memory of each ingress queue. The paper has 672 KB for 32 ports with 7 queues
    /// (section V).
    #[serde(default = "private")]
    pub private: Bytes,
    /// η: insurance of each port, and the distance of Xqoff below T. Default: equation 1 of the paper,
    /// `2·(rate·delay + packet) + 3840B`. With less, packets of lossless priorities can be lost.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-default" = "derived: `2·(rate·delay + packet) + 3840B` of the link"))]
    pub insurance: Option<Bytes>,
    /// Nq: lossless queues of a port, up to 8. Each has private memory, and Xpoff is Nq·T. A number above
    /// that of the lossless priorities in use represents a switch that is configured for more. Default:
    /// the lossless priorities in use.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 8))]
    #[schemars(extend("x-unit" = "queues"))]
    #[schemars(extend("x-default" = "derived: the lossless priorities in use"))]
    pub queues: Option<u8>,
    /// δq: a queue resumes this many bytes below Xqoff.
    #[serde(default = "zero")]
    pub delta_queue: Bytes,
    /// δp: a port resumes this many bytes below Xpoff.
    #[serde(default = "zero")]
    pub delta_port: Bytes,
    /// Length of a pause in quanta of 512 bit times, 1 to 65535. The pause is repeated before it
    /// expires.
    #[serde(default = "defaults::quanta")]
    #[schemars(range(min = 1))]
    #[schemars(extend("x-unit" = "quanta"))]
    pub quanta: u16,
    /// Time from the arrival of a pause frame until it takes effect. If it is longer than 3,776 bytes at
    /// the rate of a link, the default of `insurance` grows with it.
    #[serde(default = "defaults::zero_time")]
    pub response_time: Span,
}

default_keys!(DshKeys);

impl Whole for DshKeys {}

impl DshKeys {
    fn pauses(&self) -> PfcParams {
        PfcParams { quanta: self.quanta, response_time: self.response_time.0, relay: Default::default() }
    }

    /// η of a port.
    fn insurance(&self, cx: &Setting<'_>, topology: &Topology, port: PortId) -> Headroom {
        match self.insurance {
            Some(Bytes(total)) => Headroom { terms: Vec::new(), total },
            None => insurance(&cx.facts(topology, port), self.response_time.0),
        }
    }

    /// Nq.
    fn queues(&self, lanes: &[Lane]) -> u64 {
        self.queues.map_or_else(|| lanes.iter().filter(|l| l.lossless).count() as u64, u64::from)
    }
}

impl Keys for DshKeys {
    fn check(&self, cx: &mut Setting<'_>) -> Result<(), Complaint> {
        alpha_q16("flow_control.alpha", self.alpha)?;
        at_most("private", Some(self.private))?;
        at_most("insurance", self.insurance)?;
        at_most("delta_queue", Some(self.delta_queue))?;
        at_most("delta_port", Some(self.delta_port))?;
        if let Some(queues) = self.queues.filter(|queues| !(1..=8).contains(queues)) {
            return Err(Complaint::out_of_range("queues", queues, "write 1 to 8"));
        }
        // Both levels pause as PFC does.
        let pauses = PfcKeys { quanta: self.quanta, response_time: self.response_time, ..PfcKeys::default() };
        pauses.check_values(cx)
    }

    fn covers_all(&self) -> bool {
        true
    }

    fn account(
        &self,
        cx: &Setting<'_>,
        topology: &Topology,
        port: PortId,
        lanes: &[Lane],
    ) -> Result<Option<Account>, Complaint> {
        let used = lanes.iter().filter(|l| l.lossless).count() as u64;
        if let Some(queues) = self.queues.filter(|queues| u64::from(*queues) < used) {
            let message = format!("queues = {queues} is too small: {used} lossless priorities are in use");
            let help = format!("write {used} to 8, or remove the key");
            return Err(Complaint::of_key("queues", message, help));
        }
        Ok(Some(Account {
            reserve: self.private.0,
            limit: Limit::Dynamic { alpha_q16: alpha_q16("flow_control.alpha", self.alpha)?, cap: u64::MAX },
            resume_offset: self.delta_queue.0,
            headroom: Some(self.insurance(cx, topology, port)),
            ..UNBOUNDED
        }))
    }

    /// Insurance, private memory and a packet of each port; the rest is shared.
    fn buffer(
        &self,
        cx: &Setting<'_>,
        topology: &Topology,
        node: NodeId,
        lanes: &[Lane],
        accounts: &[Account],
    ) -> Result<Option<Buffer>, Complaint> {
        let n = &topology.nodes[node as usize];
        if n.ports.is_empty() || !lanes.iter().any(|l| l.lossless) {
            return Ok(None);
        }
        let (key, total) = match n.kind {
            NodeKind::Host => ("host.buffer", cx.host_buffer),
            NodeKind::Switch => {
                ("switch.buffer", cx.switch_buffer.unwrap_or_else(|| default_switch(topology, node)))
            }
        };
        if total > LARGEST {
            let message = format!("a buffer of {} is out of range", Bytes(total));
            return Err(at_buffer(cx, key, message, LARGEST_ALLOWED));
        }
        let (count, largest) = (n.ports.len() as u64, u64::from(cx.packet.largest()));
        let insurance = |&port: &PortId| {
            let accounts = &accounts[port as usize * lanes.len()..][..lanes.len()];
            accounts.iter().filter_map(|a| a.headroom.as_ref()).map(|h| h.total).max().unwrap_or(0)
        };
        let insurances = n.ports.iter().map(insurance).fold(0, u64::saturating_add);
        let private = self.private.0.saturating_mul(self.queues(lanes)).saturating_mul(count);
        let packets = count * largest;
        let taken = insurances.saturating_add(private).saturating_add(packets);
        let Some(shared) = total.checked_sub(taken).filter(|shared| *shared >= largest) else {
            let message = format!(
                "the buffer of {} is {}, but its ports ({count}) need {}: {} of insurance, {} of private memory and {} for \
                 a packet each",
                n.name,
                bytes(total),
                bytes(taken),
                bytes(insurances),
                bytes(private),
                bytes(packets),
            );
            let help = format!(
                "raise {key} to {}B or more, or lower flow_control.insurance, flow_control.private or flow_control.queues",
                taken.saturating_add(largest)
            );
            let mut complaint = at_buffer(cx, key, message, &help);
            // If the buffer is a default, a written key of its parts is shown.
            let parts = ["insurance", "private", "queues"].map(|key| format!("flow_control.{key}"));
            if !cx.written(key)
                && let Some(part) = parts.into_iter().find(|part| cx.written(part))
            {
                complaint.shown = part;
            }
            return Err(complaint);
        };
        Ok(Some(Buffer { total, shared }))
    }

    fn params(&self, cx: &mut Setting<'_>, fabric: Fabric<'_>) -> Result<FlowControlParams, Complaint> {
        let topology = fabric.topology;
        let queues = self.queues(fabric.lanes).max(1);
        let level = |port: PortId| PortLevel {
            queues,
            margin: self.insurance(cx, topology, port).total,
            offset: self.delta_port.0,
        };
        Ok(FlowControlParams::Dsh(DshParams {
            pfc: self.pauses(),
            alpha_q16: alpha_q16("flow_control.alpha", self.alpha)?,
            private: self.private.0,
            levels: (0..topology.ports.len() as PortId).map(level).collect(),
            lossless: fabric.lanes.iter().map(|l| l.lossless).collect(),
            longest: longest_pause(self.quanta, topology.ports.iter().map(|p| p.rate)),
        }))
    }
}
