//! Accounts whose headroom is in the shared pool, and the insurance of each port behind it.
//!
//! An account that is over still charges its packets to the shared pool. The lossless accounts of a port
//! together have a threshold, too ([`PortLevel`]). While they are over, packets go to the port's insurance,
//! which empties first.
//!
//! Why nothing is lost with enough insurance: a port is examined at each of its packets, and with a used-up
//! pool its threshold is 0. So after the pool is used up, each port adds at most one packet to it, and the plan
//! keeps one packet per port out of the pool. What arrives later fits the insurance, which is empty whenever
//! the port crosses its threshold.

use super::buffer::{Account, Memory, Profile, Refusal};
use crate::core::Core;
use xoff_plan::plan::Plan;
use xoff_schemes::flow_control::{Crossing, FlowControl, PortLevel, Scheme};

/// The lossless accounts of a port together.
#[derive(Clone, Debug)]
pub struct Room {
    level: PortLevel,
    /// Bytes of the accounts in the shared pool.
    shared: u64,
    /// Bytes in the insurance.
    insured: u64,
    pub over: bool,
    /// A crossing that the flow control does not know yet.
    crossed: Option<Crossing>,
    /// The insurance got a packet that the flow control does not know yet.
    grew: bool,
}

impl Room {
    /// The rooms of a plan's ports; none if accounts have headroom of their own.
    pub fn all(plan: &Plan) -> Vec<Self> {
        let empty = |&level| Self { level, shared: 0, insured: 0, over: false, crossed: None, grew: false };
        plan.flow_control.port_levels().iter().map(empty).collect()
    }

    /// The level at which an account resumes, and the one that it exceeds when it is over.
    fn of_account(&self, threshold: u64, offset: u64) -> (u64, u64) {
        let off = threshold.saturating_sub(self.level.margin);
        (off.saturating_sub(offset), off)
    }

    fn resumes_at(&self, shared: u64, insured: u64, threshold: u64) -> bool {
        let off = threshold.saturating_mul(self.level.queues);
        insured == 0 && (shared == 0 || shared < off.saturating_sub(self.level.offset))
    }

    fn account_resumes_at(&self, shared: u64, threshold: u64, profile: &Profile) -> bool {
        shared == 0 || shared < self.of_account(threshold, profile.resume_offset).0
    }

    /// Charges a packet of `size` bytes to an account of the port.
    pub fn admit(
        &mut self,
        account: &mut Account,
        size: u64,
        memory: &mut Memory,
        profile: &Profile,
    ) -> Result<Option<Crossing>, Refusal> {
        let Some(insurance) = profile.headroom else { return account.admit(size, memory, profile) };
        if memory.used + size > memory.total {
            return Err(Refusal::Memory(memory.used + size - memory.total));
        }
        if self.over {
            let filled = self.insured + size;
            if filled > u64::from(insurance) {
                return Err(Refusal::Headroom(filled - u64::from(insurance)));
            }
            self.insured = filled;
            self.grew = true;
            // At most the insurance, which has 32 bits.
            account.headroom += size as u32;
            account.headroom_peak = account.headroom_peak.max(account.headroom);
            memory.hold(size);
            return Ok(None);
        }
        let before = account.main.saturating_sub(profile.reserve);
        account.take_over(size, memory, profile);
        let shared = account.main.saturating_sub(profile.reserve);
        self.shared += shared - before;
        let threshold = profile.threshold(memory.free());
        if self.shared > threshold.saturating_mul(self.level.queues) {
            self.over = true;
            self.crossed = Some(Crossing::Over);
        }
        if !account.over && shared > self.of_account(threshold, 0).1 {
            account.over = true;
            return Ok(Some(Crossing::Over));
        }
        Ok(None)
    }

    /// Releases the charge of a packet of `size` bytes of an account of the port.
    pub fn release(
        &mut self,
        account: &mut Account,
        size: u64,
        memory: &mut Memory,
        profile: &Profile,
    ) -> Option<Crossing> {
        if profile.headroom.is_none() {
            return account.release(size, memory, profile);
        }
        let from_insurance = size.min(account.in_headroom());
        let from_main = size - from_insurance;
        let before = account.main.saturating_sub(profile.reserve);
        account.headroom -= from_insurance as u32;
        account.main -= from_main;
        let shared = account.main.saturating_sub(profile.reserve);
        memory.let_go(size);
        memory.shared_used -= before - shared;
        self.insured -= from_insurance;
        self.shared -= before - shared;
        let threshold = profile.threshold(memory.free());
        if self.over && self.resumes_at(self.shared, self.insured, threshold) {
            self.over = false;
            self.crossed = Some(Crossing::Under);
        }
        if account.over && self.account_resumes_at(shared, threshold, profile) {
            account.over = false;
            return Some(Crossing::Under);
        }
        None
    }

    /// Whether releases that leave `kept` bytes of each of the port's lossless accounts, with the whole pool
    /// free, could end what keeps the lane of `account` stopped. (An account is only examined at its own
    /// releases, a port at those of all its accounts.)
    pub fn could_resume<'a>(
        &self,
        account: &Account,
        all: impl Iterator<Item = (&'a Account, u64)>,
        memory: &Memory,
        profile: &Profile,
    ) -> bool {
        let threshold = profile.threshold(memory.shared);
        let (mut shared, mut insured, mut released) = (0, 0, false);
        let mut own = true;
        for (other, kept) in all {
            let main = kept.min(other.main);
            let in_pool = main.saturating_sub(profile.reserve);
            shared += in_pool;
            insured += kept - main;
            released |= kept < other.held();
            if std::ptr::eq(other, account) {
                own = kept < other.held() && self.account_resumes_at(in_pool, threshold, profile);
            }
        }
        (!account.over || own) && (!self.over || released && self.resumes_at(shared, insured, threshold))
    }
}

/// Reports the news of the port of an account that a packet was charged to or released from.
#[inline(always)]
pub fn report(core: &mut Core, scheme: &mut FlowControl, port: u32) {
    let room = &mut core.ingress.rooms[port as usize];
    if room.crossed.is_some() || room.grew {
        tell(core, scheme, port);
    }
}

#[cold]
fn tell(core: &mut Core, scheme: &mut FlowControl, port: u32) {
    let room = &mut core.ingress.rooms[port as usize];
    if std::mem::take(&mut room.grew) {
        let used = room.insured;
        scheme.insured(core, port, used);
    }
    let Some(crossing) = core.ingress.rooms[port as usize].crossed.take() else { return };
    // Each lossless lane of the port is stopped while the port or its own account is over.
    for lane in (0..core.lanes).filter(|&lane| core.egress.rules[lane].lossless).collect::<Vec<_>>() {
        let at = port as usize * core.lanes + lane;
        let since = &mut core.observed.over_since;
        match crossing {
            Crossing::Over => drop(since.entry(at as u32).or_insert(core.now)),
            Crossing::Under if !core.ingress.accounts[at].over => drop(since.remove(&(at as u32))),
            Crossing::Under => {}
        }
    }
    scheme.port_crossed(core, port, crossing);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use xoff_plan::plan::{Buffer, Limit};

    const PACKET: u64 = 1_500;

    fn profile(alpha_q16: u64, reserve: u64, insurance: u32) -> Profile {
        Profile {
            reserve,
            limit: Limit::Dynamic { alpha_q16, cap: u64::MAX },
            resume: 0,
            resume_offset: 0,
            headroom: Some(insurance),
        }
    }

    fn room(queues: u64, margin: u64, offset: u64) -> Room {
        let level = PortLevel { queues, margin, offset };
        Room { level, shared: 0, insured: 0, over: false, crossed: None, grew: false }
    }

    /// Alpha 1, a pool of 20,000 B, a margin of 4,000 B, one queue. With w bytes stored the threshold is 20,000 − w: the
    /// account is over from more than 8,000 B on, the port from more than 10,000 B on.
    #[test]
    fn an_account_goes_over_before_its_port_and_then_the_insurance_fills() {
        let mut memory = Memory::new(&Buffer { total: 30_000, shared: 20_000 });
        let profile = profile(1 << 16, 0, 3_000);
        let (mut room, mut account) = (room(1, 4_000, 0), Account::default());
        let mut admit = |room: &mut Room, account: &mut Account, size| {
            (room.admit(account, size, &mut memory, &profile), room.crossed.take(), account.headroom)
        };
        assert_eq!(admit(&mut room, &mut account, 8_000), (Ok(None), None, 0));
        assert_eq!(admit(&mut room, &mut account, 1), (Ok(Some(Crossing::Over)), None, 0));
        assert_eq!(admit(&mut room, &mut account, 1_999), (Ok(None), None, 0));
        assert_eq!(admit(&mut room, &mut account, 1), (Ok(None), Some(Crossing::Over), 0));
        assert_eq!(admit(&mut room, &mut account, 3_000), (Ok(None), None, 3_000));
        assert_eq!(admit(&mut room, &mut account, 1), (Err(Refusal::Headroom(1)), None, 3_000));
        let mut release = |size| {
            let crossing = room.release(&mut account, size, &mut memory, &profile);
            (crossing, room.crossed.take())
        };
        // The insurance empties first. The port is under again below its threshold, and then the account.
        assert_eq!(release(3_000), (None, None));
        assert_eq!(release(1), (None, None));
        assert_eq!(release(1), (None, Some(Crossing::Under)));
        assert_eq!(release(1_999), (None, None));
        assert_eq!(release(1), (Some(Crossing::Under), None));
        assert_eq!((room.shared, account.main, memory.used), (7_999, 7_999, 7_999));
    }

    /// A port with something in its insurance stays over: the next packets need all of it.
    #[test]
    fn a_port_stays_over_until_its_insurance_is_empty() {
        let mut memory = Memory::new(&Buffer { total: 40_000, shared: 20_000 });
        let profile = profile(1 << 16, 0, 3_000);
        let (mut room, mut accounts) = (room(1, 0, 0), [Account::default(); 2]);
        room.admit(&mut accounts[0], 10_001, &mut memory, &profile).unwrap();
        assert!(room.over);
        room.admit(&mut accounts[1], 500, &mut memory, &profile).unwrap();
        room.release(&mut accounts[0], 10_001, &mut memory, &profile);
        assert!(room.over);
        room.release(&mut accounts[1], 500, &mut memory, &profile);
        assert!(!room.over);
    }

    /// Both offsets lower the levels of resume.
    #[test]
    fn offsets_delay_the_resumes() {
        let mut memory = Memory::new(&Buffer { total: 40_000, shared: 20_000 });
        let profile = Profile { resume_offset: 2_000, ..profile(1 << 16, 0, 3_000) };
        let (mut room, mut account) = (room(1, 4_000, 6_000), Account::default());
        room.admit(&mut account, 10_001, &mut memory, &profile).unwrap();
        assert!(room.over && account.over);
        // With w bytes the account is under from w < 20,000 − w − 6,000 on, the port from w < 20,000 − w − 6,000 on.
        room.release(&mut account, 3_001, &mut memory, &profile);
        assert!(room.over && account.over);
        room.release(&mut account, 1, &mut memory, &profile);
        assert!(!room.over && !account.over);
    }

    proptest! {
        /// Ports that obey every crossing after at most their insurance lose nothing, for any threshold and
        /// any margin: the pool, the reserves and one packet for each port are enough.
        #[test]
        fn nothing_is_lost_and_sums_agree(
            steps in prop::collection::vec((0usize..4, 0usize..3, 1u64..=PACKET, any::<bool>()), 1..500),
            alpha_q16 in 1u64..400_000, reserve in 0u64..3_000, pool in 0u64..60_000,
            queues in 1u64..8, margin in 0u64..20_000, offset in 0u64..5_000, insurance in 0u32..10_000,
        ) {
            let profile = profile(alpha_q16, reserve, insurance);
            let total = pool + 4 * (3 * reserve + PACKET + u64::from(insurance));
            let mut memory = Memory::new(&Buffer { total, shared: pool });
            let mut rooms = vec![room(queues, margin, offset); 4];
            let mut accounts = [[Account::default(); 3]; 4];
            let mut held: [[Vec<u64>; 3]; 4] = Default::default();
            let mut after = [0u64; 4];
            for (port, lane, size, leave) in steps {
                let (room, account) = (&mut rooms[port], &mut accounts[port][lane]);
                let list = &mut held[port][lane];
                if leave {
                    if let Some(size) = list.pop() {
                        room.release(account, size, &mut memory, &profile);
                    }
                } else if !room.over || after[port] + size <= u64::from(insurance) {
                    if room.over {
                        after[port] += size;
                    }
                    prop_assert!(room.admit(account, size, &mut memory, &profile).is_ok());
                    list.push(size);
                }
                if !rooms[port].over {
                    after[port] = 0;
                }
                let sum = |f: fn(&Account) -> u64| accounts.iter().flatten().map(f).sum::<u64>();
                prop_assert_eq!(memory.used, held.iter().flatten().flatten().sum::<u64>());
                prop_assert_eq!(sum(Account::held), memory.used);
                let in_pool: u64 = accounts.iter().flatten().map(|a| a.main.saturating_sub(reserve)).sum();
                prop_assert_eq!(memory.shared_used, in_pool);
                prop_assert_eq!(rooms.iter().map(|r| r.shared).sum::<u64>(), in_pool);
                for (room, accounts) in rooms.iter().zip(&accounts) {
                    prop_assert_eq!(room.insured, accounts.iter().map(|a| a.in_headroom()).sum::<u64>());
                    prop_assert!(room.insured <= u64::from(insurance));
                    // A port or an account that is over holds something whose release ends that.
                    prop_assert!(!room.over || room.shared + room.insured > 0);
                    prop_assert!(accounts.iter().all(|a| !a.over || a.main > reserve));
                }
                prop_assert!(memory.shared_used <= pool + 4 * PACKET);
            }
        }
    }
}
