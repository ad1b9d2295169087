//! The requests of schemes to a device, to end deadlocks or storms, as data.

use crate::switch::modes::Modes;
use std::collections::BTreeMap;
use xoff_outcome::report::Cause;

#[derive(Default)]
pub struct Repairs {
    pub modes: Modes,
    pub enlarged: Enlarged,
    /// Packets to be dropped once the flow control has returned: ingress port, egress port, lane, cause.
    pub evictions: Vec<(u32, u32, u8, &'static Cause)>,
}

/// Accounts whose threshold has been raised.
#[derive(Default)]
pub struct Enlarged {
    /// By account: the profile that it had, and the one of its own that it has now.
    pub profiles: BTreeMap<u32, [u16; 2]>,
    pub free: Vec<u16>,
}
