//! Packets that are dropped, in no queue any more.

use crate::outcome::{DropReason, Drops};
use crate::{core::Core, packet::Kind, switch::buffer::Refusal};

/// Drops a packet that arrived at `ingress` and that there is no room for.
#[cold]
pub fn refuse(core: &mut Core, ingress: u32, id: u32, refusal: Refusal) {
    let (reason, by) = match refusal {
        Refusal::Headroom(by) => (DropReason::HeadroomFull, by),
        Refusal::Memory(by) => (DropReason::BufferFull, by),
        Refusal::Limit(by) => (DropReason::QueueLimit, by),
    };
    if core.packets[id].kind == Kind::Header
        && let Some(trim) = core.trims
    {
        return discard(core, ingress, id, DropReason::Scheme(trim.lost), by);
    }
    let is_limit = matches!(refusal, Refusal::Limit(_));
    let overrun = core.plan.flow_control.traits().overrun;
    let overrun = overrun.filter(|_| !is_limit && core.packets[id].against(ingress));
    discard(core, ingress, id, overrun.map_or(reason, DropReason::Scheme), by);
}

/// Drops a packet that arrived at `ingress`, in no queue any more.
#[cold]
pub fn discard(core: &mut Core, ingress: u32, id: u32, reason: DropReason, shortfall: u64) {
    let packet = core.packets[id];
    if packet.kind == Kind::Control {
        core.take_frame(id);
    } else {
        core.packets.remove(id);
    }
    let drop = Drops {
        ingress,
        lane: packet.lane,
        lossless: core.egress.rules[usize::from(packet.lane)].lossless,
        reason,
        packets: 1,
        bytes: u64::from(packet.size),
        first: core.now,
        shortfall,
    };
    core.observed.dropped(drop, (packet.kind == Kind::Data).then_some(packet.flow));
}
