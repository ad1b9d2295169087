//! The keys of `port-pause` in `[flow_control]`.

use crate::port_pause::PortPauseParams;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use xoff_net::topology::{PortId, Topology};
use xoff_net::units::{Bytes, Threshold};
use xoff_schemes::flow_control::FlowControlParams;
use xoff_schemes::flow_control::fabric::{Account, Fabric, Lane, Limit};
use xoff_schemes::flow_control::keys::{Complaint, Keys, Setting, Whole};
use xoff_schemes::flow_control::own::OwnParams;
use xoff_schemes::flow_control::pfc::{headroom, least_quanta};

/// Pauses a whole link by the bytes that a whole port stores.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PortPauseKeys {
    /// A port pauses its neighbour when its lossless priorities together store this much. In bytes,
    /// or in BDP (rate times one-way delay) of the link.
    #[serde(default = "two_bdp")]
    pub xoff: Threshold,
    /// It resumes the neighbour when they store no more than this. Default: half of `xoff`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub xon: Option<Threshold>,
    /// Quanta (of 512 bit times) that a pause lasts, 1 to 65535; it is repeated after half of them.
    #[serde(default = "longest")]
    #[schemars(range(min = 1))]
    pub quanta: u16,
}

fn two_bdp() -> Threshold {
    Threshold::Bdp(2_000)
}

fn longest() -> u16 {
    u16::MAX
}

impl Default for PortPauseKeys {
    fn default() -> Self {
        Self { xoff: two_bdp(), xon: None, quanta: longest() }
    }
}

impl Whole for PortPauseKeys {}

impl PortPauseKeys {
    /// XOFF and XON of a port, in bytes.
    fn thresholds(&self, topology: &Topology, port: PortId) -> (u64, u64) {
        let port = &topology.ports[port as usize];
        let xoff = self.xoff.resolve(port.rate, port.delay);
        (xoff, self.xon.map_or(xoff / 2, |xon| xon.resolve(port.rate, port.delay)))
    }
}

impl Keys for PortPauseKeys {
    fn check(&self, cx: &mut Setting<'_>) -> Result<(), Complaint> {
        let least = least_quanta(cx.packet.largest());
        if u64::from(self.quanta) < least {
            let message =
                format!("a pause of {} quanta would run out before it can be repeated", self.quanta);
            return Err(Complaint::new("flow_control.quanta", message, format!("write {least} to 65535")));
        }
        Ok(())
    }

    fn covers_all(&self) -> bool {
        true
    }

    /// Each lane may store as much as the port, and has headroom for all that can still arrive.
    fn account(
        &self,
        cx: &Setting<'_>,
        topology: &Topology,
        port: PortId,
        _: &[Lane],
    ) -> Result<Option<Account>, Complaint> {
        let (xoff, xon) = self.thresholds(topology, port);
        if xoff == 0 || xon > xoff {
            let message =
                format!("xoff = {} and xon = {} at {}", Bytes(xoff), Bytes(xon), topology.port_name(port));
            let help = "choose `xoff` above 0, and `xon` no larger than `xoff`";
            return Err(Complaint::new("flow_control.xoff", message, help));
        }
        Ok(Some(Account {
            reserve: 0,
            limit: Limit::Static(xoff),
            resume: xon,
            resume_offset: 0,
            headroom: Some(headroom(&cx.facts(topology, port), 0)),
            pool: None,
        }))
    }

    fn params(&self, cx: &mut Setting<'_>, fabric: Fabric<'_>) -> Result<FlowControlParams, Complaint> {
        let ports = 0..fabric.topology.ports.len() as PortId;
        let (xoff, xon) = ports.map(|port| self.thresholds(fabric.topology, port)).unzip();
        let lossless = fabric.lanes.iter().map(|lane| lane.lossless).collect();
        let params = PortPauseParams { xoff, xon, quanta: self.quanta, lossless };
        Ok(FlowControlParams::Own(OwnParams::new(cx.scheme, params)))
    }
}
