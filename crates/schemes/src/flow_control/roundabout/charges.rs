//! Which account pays for the packets of a loop (section IV-C; [`super::dissolve`] says how its audit is
//! read).
//!
//! Bytes that leave a loop's queue become free for the account in the loop, whatever account the packet had:
//! in its headroom, or, if that is empty, by a charge that it *keeps* without a packet. If the packet's own
//! account had only headroom, that stays charged: the account in the loop *owes* it, and repays it with its
//! own packets that leave, or when it leaves the loop.

use super::Roundabout;
use crate::flow_control::device::Loops;
use crate::flow_control::{Crossing, Scheme};
use std::collections::{BTreeMap, VecDeque};

/// A port and a lane.
type Account = (u32, u8);

/// The bytes that accounts in loops reserve, and the bytes of their packets that other accounts are charged.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Charges {
    /// Bytes that an account is charged for packets that have left: room for those that come.
    pub(super) reserved: BTreeMap<Account, u64>,
    /// Bytes of its packets that other accounts are charged, in their order.
    pub(super) owed: BTreeMap<Account, VecDeque<(Account, u64)>>,
}

impl Charges {
    pub(super) fn reserved(&self, port: u32, lane: u8) -> u64 {
        self.reserved.get(&(port, lane)).copied().unwrap_or(0)
    }
}

impl Roundabout {
    /// The device asks about charges as long as any account keeps or owes something, or may.
    pub(super) fn follows_charges(&self, device: &mut impl Loops) {
        let Charges { reserved, owed } = &self.charges;
        device.follow_charges(!self.seats.is_empty() || !reserved.is_empty() || !owed.is_empty());
    }

    /// Releases `bytes` of an account's charge, or of others' for it: first its headroom, as upstream waits.
    pub(super) fn repay(&mut self, device: &mut impl Loops, port: u32, lane: u8, bytes: u64) {
        let own = bytes.min(device.headroom(port, lane).1);
        self.release_charge(device, port, lane, own);
        let mut rest = bytes - own;
        while rest > 0
            && let Some(debts) = self.charges.owed.get_mut(&(port, lane))
        {
            let (lender, owed) = &mut debts[0];
            let (lender, paid) = (*lender, rest.min(*owed));
            *owed -= paid;
            if *owed == 0 {
                debts.pop_front();
            }
            if debts.is_empty() {
                self.charges.owed.remove(&(port, lane));
            }
            // The lender may owe others in its turn.
            self.repay(device, lender.0, lender.1, paid);
            rest -= paid;
        }
        self.release_charge(device, port, lane, rest);
    }

    /// An account that leaves its loop settles after all events of this time, as it may resume upstream.
    pub(super) fn settles_later(&self, device: &mut impl Loops, port: u32, lane: u8) {
        let Charges { reserved, owed } = &self.charges;
        if reserved.contains_key(&(port, lane)) || owed.contains_key(&(port, lane)) {
            device.settle(port, lane);
        }
    }

    /// It releases its kept bytes, and takes over the charges of other accounts for it. These accounts would
    /// otherwise wait for packets that none of their frames mentions.
    pub(super) fn settles(&mut self, device: &mut impl Loops, port: u32, lane: u8) {
        let reserved = self.charges.reserved.remove(&(port, lane)).unwrap_or(0);
        self.repay(device, port, lane, reserved);
        for (lender, owed) in self.charges.owed.remove(&(port, lane)).unwrap_or_default() {
            let (taken, crossing) = device.charge(port, lane, owed);
            if taken < owed {
                let debts = self.charges.owed.entry((port, lane)).or_default();
                debts.push_back((lender, owed - taken));
            }
            self.report(device, port, lane, crossing);
            self.repay(device, lender.0, lender.1, taken);
            self.freed(device, lender.0, lender.0, lender.1, 0);
        }
        self.follows_charges(device);
    }

    pub(super) fn release_charge(&mut self, device: &mut impl Loops, port: u32, lane: u8, bytes: u64) {
        let crossing = device.release_charge(port, lane, bytes);
        self.report(device, port, lane, crossing);
    }

    fn report(&mut self, device: &mut impl Loops, port: u32, lane: u8, crossing: Option<Crossing>) {
        if let Some(crossing) = crossing {
            self.crossed(device, port, lane, crossing);
        }
    }
}
