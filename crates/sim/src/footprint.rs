//! What a run keeps in memory, by purpose: told where a memory budget ends a run.

use crate::outcome::footprint::{of, sorted};
use crate::outcome::{MemoryUse, Sample};
use crate::world::World;

/// What a run and its plan keep, the largest first; what is small or held by a flow control is left
/// out.
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
