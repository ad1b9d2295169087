//! Every protocol as a sans-IO state machine. Nothing here knows the simulator:
//! a scheme sees the narrow view of its own device and no more.

// Where a name says it all, there is no more to say.
#![allow(missing_docs)]

pub mod congestion_control;
pub mod flow_control;
pub mod link_layer;
pub mod load_balancing;
pub mod names;
pub mod scheduling;
pub mod transport;

use xoff_outcome::report::Facts;

/// The facts that the mechanisms here report about a run.
pub fn facts() -> Vec<&'static Facts> {
    let mut facts = vec![&load_balancing::ate::report::FACTS];
    facts.extend(load_balancing::facts());
    facts.extend(flow_control::registry::facts());
    facts.extend(link_layer::facts());
    facts.push(&scheduling::zeropod::report::FACTS);
    facts
}
