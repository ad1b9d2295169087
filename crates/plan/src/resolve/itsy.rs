//! ITSY's parameters.

use super::{Context, LARGEST};
use crate::error::Error;
use crate::plan::PacketFormat;
use crate::scenario::{Itsy, ItsyResolution, Relay as RelayKey};
use xoff_net::topology::{Port, Topology};
use xoff_net::units::{Bytes, Threshold};
use xoff_schemes::flow_control::itsy::{ItsyParams, Resolution};

/// Room unless the scenario says otherwise: what a link carries until a pause is obeyed, as under
/// `deadlock-breaker`.
const ROOM: Threshold = Threshold::Bdp(2_000);

/// Refuses values out of range, and keys that contradict each other.
pub(super) fn check(cx: &mut Context<'_>, itsy: &Itsy, packet: &PacketFormat) -> Result<(), Error> {
    let at = |key: &str| format!("flow_control.{key}");
    let largest = u64::from(packet.largest());
    if let Some(Threshold::Bytes(bytes)) = itsy.keys.room
        && !(largest..=LARGEST).contains(&bytes.0)
    {
        let message = format!("room = {bytes} is out of range");
        let help = format!("write \"{largest}B\" to {}: what goes on is whole packets", Bytes(LARGEST));
        return Err(cx.doc.error(&at("room"), message, help));
    }
    if itsy.pfc.relay == RelayKey::Blind {
        let message = "hosts that pass pauses on blindly have no queue whose packets a check could follow";
        return Err(cx.doc.error(&at("relay"), message, "remove the key"));
    }
    if cx.scenario.measure.blocking || cx.scenario.measure.explain {
        let key = if cx.scenario.measure.blocking { "blocking" } else { "explain" };
        let message = format!("`{key}` does not know yet what `itsy` does to queues and packets");
        return Err(cx.doc.error(&format!("measure.{key}"), message, "remove the key"));
    }
    if itsy.keys.room.is_some() && itsy.keys.resolution == ItsyResolution::Lossy {
        let message = "had no effect: room is given with resolution = \"lossless\" alone".to_string();
        cx.warn(at("room"), message);
    }
    Ok(())
}

/// The parameters.
pub(super) fn params(itsy: &Itsy, topology: &Topology, packet: &PacketFormat) -> ItsyParams {
    let most = |p: &Port| itsy.keys.room.unwrap_or(ROOM).resolve(p.rate, p.delay);
    let room = topology.ports.iter().map(most).max().unwrap_or(0).max(packet.largest().into());
    ItsyParams {
        pfc: super::memory::params(&itsy.pfc),
        numbers: topology.ports.iter().map(|p| p.index).collect(),
        resolution: match itsy.keys.resolution {
            ItsyResolution::Lossy => Resolution::Lossy,
            ItsyResolution::Lossless => Resolution::Lossless { room },
        },
    }
}
