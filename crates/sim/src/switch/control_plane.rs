//! Rare actions of control planes against deadlocks: packets get another path, ingress accounts more room.

use crate::core::Core;
use crate::packet::{Kind, NONE};
use xoff_outcome::report::Cause;
use xoff_plan::plan::Limit;
use xoff_schemes::flow_control::{Mode, device::Repair};

impl Repair for Core<'_> {
    fn set_mode(&mut self, port: u32, lane: u8, mode: Mode) {
        self.check_place(port, lane);
        self.change_mode(port, lane, mode);
    }

    fn drop_waiting(&mut self, ingress: u32, egress: u32, lane: u8, cause: &'static Cause) {
        self.check_place(ingress, lane);
        self.check_place(egress, lane);
        self.repairs.evictions.push((ingress, egress, lane, cause));
    }

    /// Charges do not change, so no upstream neighbour is informed.
    #[cold]
    fn reroute(&mut self, ingress: u32, port: u32, lane: u8) -> (u64, u64) {
        self.check_place(ingress, lane);
        self.check_place(port, lane);
        let queue = 1 + usize::from(lane);
        let at = self.egress.at(port, queue);
        let mut waiting = Vec::new();
        while self.egress.queues[at].head != NONE {
            let id = self.egress.unlink(&self.packets, port, queue);
            // It left the queue, but not the port.
            self.egress.queues[at].data_packets -= u64::from(self.packets[id].kind == Kind::Data);
            waiting.push(id);
        }
        let (mut moved, mut stayed) = (0, 0);
        for id in waiting {
            let account = self.packets[id].account;
            // (A host's own packets have no ingress.)
            let theirs = account / self.lanes as u32 == ingress;
            let Some((place, other)) = theirs.then(|| self.other_route(id)).flatten() else {
                self.egress.append(&mut self.packets, port, queue, id);
                stayed += u64::from(theirs);
                continue;
            };
            self.packets[id].hop = place;
            self.egress.append(&mut self.packets, other, queue, id);
            let index = |port: u32| self.plan.topology.ports[port as usize].index;
            self.ingress.causes.leaves(account, index(port));
            self.ingress.causes.joins(account, index(other));
            self.post_decision(other);
            moved += 1;
        }
        (moved, stayed)
    }

    #[cold]
    fn enlarge(&mut self, port: u32, lane: u8, bytes: u64) -> Option<u64> {
        self.check_place(port, lane);
        let at = port * self.lanes as u32 + u32::from(lane);
        let account = &mut self.ingress.accounts[at as usize];
        let memory = &mut self.ingress.memories[account.memory as usize];
        let (taken, profile) =
            account.enlarge(bytes, memory, &self.ingress.profiles[usize::from(account.profile)])?;
        let enlarged = &mut self.repairs.enlarged;
        let [_, own] = *enlarged.profiles.entry(at).or_insert_with(|| {
            let new = enlarged.free.pop().unwrap_or_else(|| {
                self.ingress.profiles.push(profile.clone());
                u16::try_from(self.ingress.profiles.len() - 1).expect("at most 65536 kinds of accounts")
            });
            [account.profile, new]
        });
        self.ingress.profiles[usize::from(own)] = profile;
        account.profile = own;
        self.observed.over_since.remove(&at);
        Some(taken)
    }

    #[cold]
    fn shrink(&mut self, port: u32, lane: u8) -> bool {
        self.check_place(port, lane);
        let at = port * self.lanes as u32 + u32::from(lane);
        let Some(&[before, own]) = self.repairs.enlarged.profiles.get(&at) else { return true };
        let account = &mut self.ingress.accounts[at as usize];
        let memory = &self.ingress.memories[account.memory as usize];
        if account.over || !account.resumes(memory, &self.ingress.profiles[usize::from(before)]) {
            return false;
        }
        account.profile = before;
        self.repairs.enlarged.profiles.remove(&at);
        self.repairs.enlarged.free.push(own);
        true
    }
}

impl Core<'_> {
    /// Where a packet that waits in this device can go instead: the place on a route, and the port there, if
    /// that one's queue goes and has room.
    fn other_route(&self, id: u32) -> Option<(u32, u32)> {
        let packet = &self.packets[id];
        let (lane, size) = (usize::from(packet.lane), u64::from(packet.size));
        let detours = &self.plan.detours;
        let place = detours[detours.binary_search_by_key(&packet.hop, |d| d.0).ok()?].1;
        let other = self.hops[place as usize];
        let memory = &self.ingress.memories[self.ingress.accounts[packet.account as usize].memory as usize];
        let queued = self.egress.queues[self.egress.at(other, 1 + lane)].bytes;
        let limit = self.egress.rules[lane].limit;
        let fits = limit == Limit::Unlimited || queued + size <= memory.egress_share(limit);
        let goes = self.egress.ports[other as usize].paused >> (1 + lane) & 1 == 0 && !self.is_down(other);
        (fits && goes).then_some((place, other))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parallel::partition::Partition;
    use xoff_plan::plan::Plan;
    use xoff_schemes::flow_control::Device;
    use xoff_schemes::flow_control::breakers::{Identifier, ProbeFrame, Word};
    use xoff_schemes::flow_control::{ControlFrame, Crossing, Scheme};

    fn plan() -> Plan {
        let text = "[topology]\nkind=\"ring\"\nswitches=3\nhosts_per_switch=1\nlink={rate=\"100Gbps\",delay=\"1us\"}\n\
            [flow_control]\nscheme=\"deadlock-breaker\"\nxoff=\"3kB\"\nxon=\"2kB\"\n\
            [[traffic]]\nkind=\"flow\"\nsrc=\"H0\"\ndst=\"H1\"\nsize=\"1MB\"\n";
        let read = |_: &std::path::Path| Err(std::io::ErrorKind::NotFound.into());
        xoff_plan::load("test.toml", text.as_bytes(), &[], &read).expect("a scenario").plan
    }

    /// Pauses go before messages of control planes, which keep their order; and as one frame.
    #[test]
    fn pauses_overtake_probes() {
        let plan = plan();
        let partition = Partition::new(&plan, 1);
        let mut flow_control = plan.flow_control.start(plan.topology.ports.len(), &[3]);
        let probe = |port| {
            let id = Identifier { draw: 0, port };
            ControlFrame::Probe(ProbeFrame { word: Word::Probe, priority: 3, id, ports: Default::default() })
        };
        let mut core = Core::new(&plan, &partition, 0, flow_control.timers());
        core.send_control(0, probe(1));
        core.send_control(0, probe(2));
        flow_control.crossed(&mut core, 0, 0, Crossing::Over);
        core.send_control(0, probe(3));
        flow_control.crossed(&mut core, 0, 0, Crossing::Under);
        let queue = core.egress.ports[0].first_queue as usize;
        let (mut next, mut said) = (core.egress.queues[queue].head, Vec::new());
        while next != NONE {
            said.push(*core.frame_of(next));
            next = core.packets[next].next;
        }
        assert_eq!((said[0].pauses(), &said[1..]), (Some(false), &[probe(1), probe(2), probe(3)][..]));
        assert_eq!(core.egress.queues[queue].bytes, 4 * 64);
    }

    #[test]
    fn room_is_given_once_and_taken_back() {
        let plan = plan();
        let partition = Partition::new(&plan, 1);
        let mut core = Core::new(&plan, &partition, 0, 0);
        let kinds = core.ingress.profiles.len();
        let change = |core: &mut Core, size: i64| {
            let account = &mut core.ingress.accounts[0];
            let memory = &mut core.ingress.memories[account.memory as usize];
            let profile = &core.ingress.profiles[usize::from(account.profile)];
            match size > 0 {
                true => account.admit(size as u64, memory, profile).expect("room"),
                false => account.release(-size as u64, memory, profile),
            }
        };
        for _ in 0..2 {
            let before = core.ingress.accounts[0].profile;
            for _ in 0..5 {
                change(&mut core, 1_000);
            }
            // Two of the five are in headroom.
            assert_eq!(
                (core.ingress.accounts[0].over, core.ingress.accounts[0].in_headroom()),
                (true, 2_000)
            );
            assert_eq!(core.enlarge(0, 0, 4_000), Some(6_000));
            assert_eq!((core.ingress.accounts[0].over, core.ingress.accounts[0].in_headroom()), (false, 0));
            for crossing in [None, None, None, Some(Crossing::Over)] {
                assert_eq!(change(&mut core, 1_000), crossing);
            }
            // More on top of it; the account keeps one profile of its own.
            assert_eq!(core.enlarge(0, 0, 1_000), Some(1_000));
            assert_eq!((core.ingress.profiles.len(), core.ingress.accounts[0].held()), (kinds + 1, 9_000));
            assert!(!core.shrink(0, 0));
            for _ in 0..7 {
                assert_eq!(change(&mut core, -1_000), None);
            }
            assert!(core.shrink(0, 0));
            assert_eq!(core.ingress.accounts[0].profile, before);
            change(&mut core, -2_000);
        }
        // More room than a pool can have is not given.
        for _ in 0..5 {
            change(&mut core, 1_000);
        }
        assert_eq!(core.enlarge(0, 0, 1 << 40), None);
        assert_eq!((core.ingress.accounts[0].over, core.ingress.accounts[0].in_headroom()), (true, 2_000));
    }
}
