//! The memory of a run, by purpose, for runs that a memory budget ends.

use crate::outcome::footprint::{of, sorted};
use crate::outcome::{MemoryUse, Sample};
use crate::switch::{egress::Egress, ingress::Ingress};
use crate::{core::Core, host::ends::Hosts, world::World};

/// The memory of a run and its plan, largest first, without small parts and the flow control's own.
pub fn footprint(world: &World, samples: &Vec<Sample>) -> Vec<MemoryUse> {
    let plan = world.plan;
    let sum = |bytes: &dyn Fn(&Core) -> u64| world.cores.iter().map(|core| bytes(core)).sum::<u64>();
    let ports = |e: &Egress, i: &Ingress| of(&e.ports) + of(&e.queues) + of(&i.accounts) + of(&i.received);
    let flows = |h: &Hosts| {
        of(&h.senders)
            + of(&h.receivers)
            + h.own_senders.memory()
            + h.own_receivers.memory()
            + of(&h.pulls)
            + h.credits.footprint()
    };
    sorted([
        ("recorded pauses", sum(&|c| of(&c.observed.pauses))),
        ("samples of series", of(samples)),
        ("packets in flight", sum(&|c| c.packets.footprint())),
        ("scheduled events", sum(&|c| c.wheel.footprint())),
        ("state of flows", of(&plan.flows) + sum(&|c| flows(&c.hosts) + of(&c.observed.flows))),
        ("ports and queues", sum(&|c| ports(&c.egress, &c.ingress) + c.links.footprint())),
        ("routes", of(&plan.hops)),
    ])
}
