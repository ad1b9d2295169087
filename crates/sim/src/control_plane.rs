//! What control planes do about deadlocks: packets get another way, ingress accounts more
//! room. Rare, so that all is kept apart.

use crate::core::Core;
use crate::packet::{Kind, NONE};
use std::collections::BTreeMap;
use xoff_plan::plan::Limit;

/// Accounts whose threshold has been raised.
#[derive(Default)]
pub struct Enlarged {
    /// By account: the profile that it had, and the one of its own that it has now.
    profiles: BTreeMap<u32, [u16; 2]>,
    /// Profiles that accounts had of their own once.
    free: Vec<u16>,
}

impl Core<'_> {
    /// See [`Device::reroute`](xoff_schemes::flow_control::Device::reroute). Charges stay as
    /// they are, so that nobody upstream is told.
    #[cold]
    pub fn give_other_ways(&mut self, ingress: u32, port: u32, lane: u8) -> (u64, u64) {
        let queue = 1 + usize::from(lane);
        let at = self.ports[port as usize].first_queue as usize + queue;
        let mut waiting = Vec::new();
        while self.queues[at].head != NONE {
            let id = self.unlink(port, queue);
            // It left the queue, but not the port.
            self.queues[at].data_packets -= u64::from(self.packets[id].kind == Kind::Data);
            waiting.push(id);
        }
        let (mut moved, mut stayed) = (0, 0);
        for id in waiting {
            let account = self.packets[id].account;
            let theirs = account / self.lanes as u32 == ingress;
            let Some((place, other)) = self.other_way(id).filter(|_| theirs) else {
                self.append(port, queue, id);
                stayed += u64::from(theirs);
                continue;
            };
            self.packets[id].hop = place;
            self.append(other, queue, id);
            let index = |port: u32| self.plan.topology.ports[port as usize].index;
            self.causes.leaves(account, index(port));
            self.causes.joins(account, index(other));
            self.post_decision(other);
            moved += 1;
        }
        (moved, stayed)
    }

    /// Where a packet that waits in this device can go instead: the place on a route, and the
    /// port there, if that one's queue goes and has room.
    fn other_way(&self, id: u32) -> Option<(u32, u32)> {
        let packet = &self.packets[id];
        let (lane, size) = (usize::from(packet.lane), u64::from(packet.size));
        let detours = &self.plan.detours;
        let place = detours[detours.binary_search_by_key(&packet.hop, |d| d.0).ok()?].1;
        let other = self.hops[place as usize];
        let p = &self.ports[other as usize];
        let memory = &self.memories[self.accounts[packet.account as usize].memory as usize];
        let queued = self.queues[p.first_queue as usize + 1 + lane].bytes;
        let limit = self.egress[lane].limit;
        let fits = limit == Limit::Unlimited || queued + size <= memory.egress_share(limit);
        let goes = p.paused >> (1 + lane) & 1 == 0 && !self.is_down(other);
        (fits && goes).then_some((place, other))
    }

    /// See [`Device::enlarge`](xoff_schemes::flow_control::Device::enlarge).
    #[cold]
    pub fn give_room(&mut self, port: u32, lane: u8, bytes: u64) -> Option<u64> {
        let at = port * self.lanes as u32 + u32::from(lane);
        let account = &mut self.accounts[at as usize];
        let memory = &mut self.memories[account.memory as usize];
        let (taken, profile) =
            account.enlarge(bytes, memory, &self.profiles[usize::from(account.profile)])?;
        let enlarged = &mut self.enlarged;
        let [_, own] = *enlarged.profiles.entry(at).or_insert_with(|| {
            let new = enlarged.free.pop().unwrap_or_else(|| {
                self.profiles.push(profile.clone());
                u16::try_from(self.profiles.len() - 1).expect("at most 65536 kinds of accounts")
            });
            [account.profile, new]
        });
        self.profiles[usize::from(own)] = profile;
        account.profile = own;
        self.observed.over_since.remove(&at);
        Some(taken)
    }

    /// See [`Device::shrink`](xoff_schemes::flow_control::Device::shrink).
    #[cold]
    pub fn take_room_back(&mut self, port: u32, lane: u8) -> bool {
        let at = port * self.lanes as u32 + u32::from(lane);
        let Some(&[before, own]) = self.enlarged.profiles.get(&at) else { return true };
        let account = &mut self.accounts[at as usize];
        let memory = &self.memories[account.memory as usize];
        if account.over || !account.resumes(memory, &self.profiles[usize::from(before)]) {
            return false;
        }
        account.profile = before;
        self.enlarged.profiles.remove(&at);
        self.enlarged.free.push(own);
        true
    }
}
