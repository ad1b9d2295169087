//! Whether the rest of a packet's path crosses a port.

use std::collections::BTreeMap;
use xoff_plan::{balancing::LoadBalancing, plan::Plan};

/// Whether paths from a choice cross a port, as far as it was needed: by entry of the plan's hops, and port.
pub type Known = BTreeMap<(u32, u32), bool>;

/// Whether `root` is on the rest of a route; where that forks, on any path.
pub fn crosses(plan: &Plan, at: u32, root: u32, known: &mut Known) -> bool {
    match plan.load_balancing {
        LoadBalancing::Packets(_) => plan.may_cross(at, root, known),
        LoadBalancing::Ecmp | LoadBalancing::Labels(_) => plan.onward(at).known.contains(&root),
    }
}
