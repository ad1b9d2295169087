//! Data packets without room, in devices that trim packets.

use crate::features::Features;
use crate::outcome::{DropReason, Drops};
use crate::packet::{Kind, NONE, Packet};
use crate::{core::Core, switch::buffer::Memory, switch::release::release};
use xoff_schemes::flow_control::{FlowControl, Trim};

/// The packet to be cut because `id`, which arrived at `port`, has no room in `egress`: the ingress port and the slot.
/// If it is the last one of the queue, `id` has taken its place, and the slots have changed hands: so no list is
/// walked.
#[cold]
pub fn choose<F: Features>(
    core: &mut Core,
    scheme: &mut FlowControl,
    (port, id, egress): (u32, u32, u32),
) -> (u32, u32) {
    let Some(last) =
        core.trims.filter(|t| t.last.is_some()).and_then(|trim| core.replaceable(trim, port, id, egress))
    else {
        return (port, id);
    };
    if core.egress.cuts[egress as usize].below(2) == 0 {
        return (port, id);
    }
    let (lane, size) = (core.packets[id].lane, core.packets[id].size);
    let (account, cut) = (core.packets[last].account, core.packets[last].size);
    let queue = core.egress.at(egress, 1 + usize::from(lane));
    core.egress.queues[queue].bytes -= u64::from(cut);
    release::<F>(core, scheme, account, egress, cut);
    let at = core.account(port, lane);
    let charge = core.ingress.in_cells(size);
    let a = &mut core.ingress.accounts[at];
    let profile = &core.ingress.profiles[usize::from(a.profile)];
    let memory = &mut core.ingress.memories[a.memory as usize];
    let admitted = a.admit(charge, memory, profile);
    assert_eq!(admitted, Ok(None), "a lossy lane has room for it");
    let queued = core.egress.queues[queue].bytes;
    if core.egress.rules[usize::from(lane)].ecn.is_some_and(|red| !red.at_dequeue)
        && core.egress.marks(core.plan, egress, usize::from(lane), queued)
    {
        core.packets[id].marked = true;
        core.observed.control[egress as usize][2] += 1;
    }
    let q = &mut core.egress.queues[queue];
    q.bytes += u64::from(size);
    q.peak = q.peak.max(q.bytes);
    core.packets[id].account = at as u32;
    core.packets[last].account = NONE;
    core.packets.slots_mut().swap(id as usize, last as usize);
    core.packets[last].next = NONE;
    core.telemetry.swap(id, last);
    if let Some(oracle) = &mut core.blocking {
        oracle.charged(at as u32, core.plan.topology.ports[egress as usize].index, size.into());
        // It has no waits to change: a scheme that trims pauses no queue.
    }
    (account / core.lanes as u32, id)
}

impl Core<'_> {
    /// The last packet of the queue that `id` has no room in, if `id` has room in its place and both can be cut.
    fn replaceable(&self, trim: Trim, port: u32, id: u32, egress: u32) -> Option<u32> {
        let arriving = &self.packets[id];
        let cuts = |packet: &Packet| packet.kind == Kind::Data && packet.size > trim.size;
        if !cuts(arriving) || arriving.lane == trim.lane {
            return None;
        }
        let lane = usize::from(arriving.lane);
        let queue = &self.egress.queues[self.egress.at(egress, 1 + lane)];
        let last = self.packets.slots().get(queue.tail as usize).filter(|last| cuts(last))?;
        let memory = self.ingress.accounts[self.account(port, arriving.lane)].memory;
        debug_assert_eq!(memory, self.ingress.accounts[last.account as usize].memory, "all are the device's");
        let memory = &self.ingress.memories[memory as usize];
        // The header of the last packet has room, too.
        let [size, cut, rest] = [arriving.size, last.size, trim.size].map(|size| self.ingress.in_cells(size));
        let free = memory.free() + cut - rest;
        let fits = size <= free && memory.used + rest + size <= memory.total + cut;
        let queued = queue.bytes - u64::from(last.size) + u64::from(arriving.size);
        let limit = Memory::share(self.egress.rules[lane].limit, free);
        (fits && queued <= limit).then_some(queue.tail)
    }

    /// Cuts a data packet that arrived at `ingress` and has no room, if the device trims packets. The data packet
    /// ends here: its drop counts the bytes that were cut off, and the rest is a control packet of its flow. A
    /// packet without bytes to cut goes on whole. Returns whether something goes on, to `egress`.
    #[cold]
    pub fn trim(&mut self, ingress: u32, id: u32, egress: u32) -> bool {
        let last_hop = self.plan.topology.leads_to_host(egress);
        let packet = &mut self.packets[id];
        let Some(trim) = self.trims.filter(|t| packet.kind == Kind::Data && packet.lane != t.lane) else {
            return false;
        };
        if packet.size <= trim.size {
            packet.lane = trim.lane;
            return true;
        }
        let drop = Drops {
            ingress,
            lane: packet.lane,
            lossless: false,
            reason: DropReason::Scheme(trim.cause),
            packets: 1,
            bytes: u64::from(packet.size - trim.size),
            first: self.now,
            shortfall: 0,
        };
        self.observed.dropped(drop, Some(packet.flow));
        (packet.kind, packet.size, packet.lane) = (Kind::Header, trim.size, trim.lane);
        packet.set_last_hop(last_hop);
        true
    }
}
