//! A packet leaves its device: its charge is released.

use crate::core::Core;
use crate::features::{All, Features};
use crate::switch::port_level;
use xoff_schemes::flow_control::{Crossing, FlowControl, Scheme};

/// Releases the charge of a packet of `size` bytes, which waited at `egress`.
#[inline(always)]
pub fn release<F: Features>(core: &mut Core, scheme: &mut FlowControl, account: u32, egress: u32, size: u32) {
    if F::EXTRAS
        && let Some(oracle) = &mut core.blocking
    {
        oracle.released(account, core.plan.topology.ports[egress as usize].index, size.into());
    }
    if F::EXTRAS && core.ingress.causes.used() {
        core.ingress.causes.leaves(account, core.plan.topology.ports[egress as usize].index);
    }
    let charge = core.ingress.in_cells(size);
    if F::EXTRAS && core.ingress.reports_storage {
        return frees(core, scheme, account, egress, charge);
    }
    let port = account / core.lanes as u32;
    if let Some(crossing) = core.ingress.release::<F>(core.plan, port, account, charge) {
        crossed(core, scheme, account, crossing);
    }
    if F::EXTRAS && !core.ingress.rooms.is_empty() {
        port_level::report(core, scheme, port);
    }
}

/// The same, with calls to the flow control.
#[cold]
fn frees(core: &mut Core, scheme: &mut FlowControl, account: u32, egress: u32, charge: u64) {
    let lanes = core.lanes as u32;
    let (ingress, lane) = (account / lanes, (account % lanes) as u8);
    if core.ingress.follows_charges {
        scheme.on_release(core, ingress, egress, lane, charge);
    } else if let Some(crossing) = core.ingress.release::<All>(core.plan, ingress, account, charge) {
        crossed(core, scheme, account, crossing);
    }
    if !core.ingress.rooms.is_empty() {
        port_level::report(core, scheme, ingress);
    }
    scheme.freed(core, ingress, egress, lane, charge as u32);
}

/// An account crossed a threshold.
#[cold]
pub fn crossed(core: &mut Core, scheme: &mut FlowControl, account: u32, crossing: Crossing) {
    let (port, lane) = (account / core.lanes as u32, account % core.lanes as u32);
    if let Some(crossing) = core.crosses(account, crossing) {
        scheme.crossed(core, port, lane as u8, crossing);
    }
}
