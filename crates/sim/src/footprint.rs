//! The memory of a run, by purpose, for runs that a memory budget ends.

use crate::outcome::footprint::{of, sorted};
use crate::outcome::{MemoryUse, Sample};
use crate::world::World;

/// The memory of a run and its plan, largest first, without small parts and without the flow control's own.
pub fn footprint(world: &World, samples: &Vec<Sample>) -> Vec<MemoryUse> {
    let plan = world.plan;
    let cores = &world.cores;
    let sum = |bytes: &dyn Fn(&crate::core::Core) -> u64| cores.iter().map(|core| bytes(core)).sum::<u64>();
    sorted([
        ("recorded pauses", sum(&|c| of(&c.observed.pauses))),
        ("samples of series", of(samples)),
        ("packets in flight", sum(&|c| c.packets.footprint())),
        ("scheduled events", sum(&|c| c.wheel.footprint())),
        (
            "state of flows",
            of(&plan.flows)
                + sum(&|c| {
                    let ends = of(&c.hosts.senders) + of(&c.hosts.receivers) + of(&c.observed.flows);
                    ends + of(&c.hosts.selective_senders) + of(&c.hosts.selective_receivers)
                }),
        ),
        (
            "ports and queues",
            sum(&|c| {
                of(&c.egress.ports) + of(&c.egress.queues) + of(&c.ingress.accounts) + of(&c.ingress.received)
            }),
        ),
        ("routes", of(&plan.hops)),
    ])
}
