//! Buffer accounting: who is charged for which packet, and when an ingress account crosses its thresholds.
//!
//! A packet that waits is charged to the account of the (ingress port, lane) through which it came. An
//! account has a *main* part (its guaranteed reserve, then a share of the device's shared pool) and, on a
//! lossless lane, *headroom*. While it is not over, packets go to the main part; the packet that brings it to
//! its threshold still does, and puts it over (XOFF). While it is over, packets go to headroom. Releases
//! empty this first. It is under again (XON) with its headroom empty and the main part at the resume level.
//!
//! A lossy lane has no headroom and no reserve: it takes free bytes of the shared pool, and a packet that
//! does not fit there is dropped. So it can never use the memory that lossless accounts need.
//!
//! Why nothing is lost with enough headroom: every account adds at most one packet to the shared pool after
//! the pool is used up (that packet puts it over), and the plan keeps one packet per account out of the pool.

use xoff_plan::plan::{self, Limit};
use xoff_schemes::flow_control::Crossing;

#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
pub struct Memory {
    pub(super) total: u64,
    pub(super) shared: u64,
    pub used: u64,
    pub(super) shared_used: u64,
    /// Most bytes ever used.
    pub peak: u64,
}

impl Memory {
    pub fn new(buffer: &plan::Buffer) -> Self {
        Self { total: buffer.total, shared: buffer.shared, used: 0, shared_used: 0, peak: 0 }
    }

    /// `size` bytes more, in the memory itself or in a buffer within it, which bounds them by itself.
    #[inline]
    pub fn hold(&mut self, size: u64) {
        self.used += size;
        self.peak = self.peak.max(self.used);
    }

    #[inline]
    pub fn let_go(&mut self, size: u64) {
        self.used -= size;
    }

    /// The bytes that `limit` allows to one queue or account, if `free` bytes remain.
    #[inline]
    pub(super) fn share(limit: Limit, free: u64) -> u64 {
        match limit {
            Limit::Unlimited => u64::MAX,
            Limit::Static(bytes) => bytes,
            Limit::Dynamic { alpha_q16, cap } => match free.checked_mul(alpha_q16) {
                Some(share) => (share >> 16).min(cap),
                None => ((u128::from(free) * u128::from(alpha_q16)) >> 16).min(u128::from(cap)) as u64,
            },
        }
    }

    /// The free bytes of the shared pool.
    #[inline]
    pub(super) fn free(&self) -> u64 {
        self.shared.saturating_sub(self.shared_used)
    }

    /// The maximum of an egress queue: a dynamic limit shares the free pool.
    #[inline]
    pub fn egress_share(&self, limit: Limit) -> u64 {
        Self::share(limit, self.free())
    }
}

/// The parameters that accounts have in common.
#[derive(Clone, Debug, PartialEq)]
pub struct Profile {
    pub(super) reserve: u64,
    pub(super) limit: Limit,
    pub(super) resume: u64,
    pub(super) resume_offset: u64,
    /// Bytes of headroom (4 GiB at most are used); `None` on a lossy lane, which is never over.
    pub(super) headroom: Option<u32>,
}

impl Profile {
    pub fn new(account: &plan::Account) -> Self {
        Self {
            reserve: if account.headroom.is_some() { account.reserve } else { 0 },
            limit: account.limit,
            resume: account.resume,
            resume_offset: account.resume_offset,
            headroom: account.headroom.as_ref().map(|h| u32::try_from(h.total).unwrap_or(u32::MAX)),
        }
    }

    /// Bytes of headroom; none on a lossy lane.
    pub fn headroom(&self) -> u64 {
        self.headroom.map_or(0, u64::from)
    }

    /// The threshold beyond the reserve. A used-up pool has nothing to share, for any limit.
    #[inline]
    pub(super) fn threshold(&self, free: u64) -> u64 {
        if free == 0 { 0 } else { Memory::share(self.limit, free) }
    }

    /// Whether so many bytes, with so many free in the shared pool, are at or below the resume level.
    fn resumes_at(&self, main: u64, headroom: u64, free: u64) -> bool {
        let shared = main.saturating_sub(self.reserve);
        let threshold = self.threshold(free);
        headroom == 0
            && (shared == 0
                || match self.limit {
                    Limit::Dynamic { .. } => shared.saturating_add(self.resume_offset) <= threshold,
                    Limit::Static(_) | Limit::Unlimited => threshold > 0 && shared <= self.resume,
                })
    }
}

/// The account of one ingress port for one lane: half a cache line.
#[derive(Clone, Copy, Debug, Default)]
#[repr(align(32))]
pub struct Account {
    /// Bytes outside headroom.
    pub main: u64,
    /// Most bytes ever in the main part.
    pub main_peak: u64,
    /// Bytes in headroom.
    pub(super) headroom: u32,
    pub headroom_peak: u32,
    /// The memory that it is charged to: the device's, or one of its own.
    pub memory: u32,
    pub profile: u16,
    /// Over its threshold: XOFF was crossed, XON not yet.
    pub over: bool,
}

/// Why there is no room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The headroom falls short by so many bytes.
    Headroom(u64),
    Memory(u64),
    /// The limit of the egress queue does, by so many bytes.
    Limit(u64),
}

impl Account {
    pub fn new(memory: u32, profile: u16) -> Self {
        Self { memory, profile, ..Self::default() }
    }

    /// Charges a packet of `size` bytes.
    #[inline]
    pub fn admit(
        &mut self,
        size: u64,
        memory: &mut Memory,
        profile: &Profile,
    ) -> Result<Option<Crossing>, Refusal> {
        if memory.used + size > memory.total {
            return Err(Refusal::Memory(memory.used + size - memory.total));
        }
        let mut crossing = None;
        if self.over {
            let room = u64::from(profile.headroom.unwrap_or(0));
            let filled = u64::from(self.headroom) + size;
            if filled > room {
                return Err(Refusal::Headroom(filled - room));
            }
            // At most `room`, which has 32 bits.
            self.headroom = filled as u32;
            self.headroom_peak = self.headroom_peak.max(self.headroom);
        } else if profile.headroom.is_none() && size > memory.free() {
            return Err(Refusal::Memory(size - memory.free()));
        } else {
            memory.shared_used += (self.main + size).saturating_sub(profile.reserve.max(self.main));
            self.main += size;
            self.main_peak = self.main_peak.max(self.main);
            if profile.headroom.is_some()
                && self.main >= profile.reserve.saturating_add(profile.threshold(memory.free()))
            {
                self.over = true;
                crossing = Some(Crossing::Over);
            }
        }
        memory.hold(size);
        Ok(crossing)
    }

    /// Releases the charge of a packet of `size` bytes.
    #[inline]
    pub fn release(&mut self, size: u64, memory: &mut Memory, profile: &Profile) -> Option<Crossing> {
        let from_headroom = size.min(u64::from(self.headroom));
        let from_main = size - from_headroom;
        self.headroom -= from_headroom as u32;
        memory.let_go(size);
        memory.shared_used -= from_main.min(self.main.saturating_sub(profile.reserve));
        self.main -= from_main;
        if self.over && profile.resumes_at(self.main, u64::from(self.headroom), memory.free()) {
            self.over = false;
            return Some(Crossing::Under);
        }
        None
    }

    /// Releases at most `size` bytes of its charge on the shared pool; returns how many.
    pub fn release_shared(&mut self, size: u64, memory: &mut Memory, profile: &Profile) -> u64 {
        let shared = size.min(self.main.saturating_sub(profile.reserve));
        memory.let_go(shared);
        memory.shared_used -= shared;
        self.main -= shared;
        shared
    }

    /// Charges `bytes` outside headroom, for any threshold.
    pub fn take_over(&mut self, bytes: u64, memory: &mut Memory, profile: &Profile) {
        memory.shared_used += (self.main + bytes).saturating_sub(profile.reserve.max(self.main));
        self.main += bytes;
        self.main_peak = self.main_peak.max(self.main);
        memory.hold(bytes);
    }

    /// Takes over at most `size` bytes of other accounts' charges for it: in headroom if it is over,
    /// otherwise from the free bytes of the shared pool. Returns how many.
    pub fn recharge(&mut self, size: u64, memory: &mut Memory, profile: &Profile) -> (u64, Option<Crossing>) {
        if self.over {
            let taken = size.min(profile.headroom().saturating_sub(u64::from(self.headroom)));
            self.headroom += taken as u32; // at most the headroom, which has 32 bits
            self.headroom_peak = self.headroom_peak.max(self.headroom);
            memory.hold(taken);
            return (taken, None);
        }
        let taken = size.min(memory.free());
        self.take_over(taken, memory, profile);
        let over = self.main >= profile.reserve.saturating_add(profile.threshold(memory.free()));
        self.over = over;
        (taken, over.then_some(Crossing::Over))
    }

    /// Whether it is over its threshold, and would be still without `bytes` of those outside headroom.
    pub fn over_without(&self, bytes: u64, memory: &Memory, profile: &Profile) -> bool {
        let shared = self.main.saturating_sub(profile.reserve).min(bytes);
        let free = memory.free() + shared;
        self.over && !profile.resumes_at(self.main.saturating_sub(bytes), u64::from(self.headroom), free)
    }

    /// Raises the threshold of an account that is over to its present bytes and `bytes` more, if the pool has
    /// room: its headroom is empty then, and it is under. Returns the bytes that it takes of the pool, and
    /// its new profile, which resumes where the present one does.
    pub fn enlarge(&mut self, bytes: u64, memory: &mut Memory, profile: &Profile) -> Option<(u64, Profile)> {
        let taken = u64::from(self.headroom).saturating_add(bytes);
        if memory.free() < taken {
            return None;
        }
        let now = profile.threshold(memory.free());
        let moved = u64::from(std::mem::take(&mut self.headroom));
        memory.let_go(moved);
        self.take_over(moved, memory, profile);
        self.over = false;
        let held = self.main.saturating_sub(profile.reserve);
        let resume = match profile.limit {
            Limit::Dynamic { .. } => now.saturating_sub(profile.resume_offset),
            Limit::Static(_) | Limit::Unlimited => profile.resume,
        };
        let limit = Limit::Static(held.saturating_add(bytes));
        Some((taken, Profile { limit, resume: resume.min(held), ..profile.clone() }))
    }

    /// Whether it is at or below its resume level.
    pub fn resumes(&self, memory: &Memory, profile: &Profile) -> bool {
        profile.resumes_at(self.main, u64::from(self.headroom), memory.free())
    }

    /// All bytes charged to it.
    pub fn held(&self) -> u64 {
        self.main + u64::from(self.headroom)
    }

    pub fn in_headroom(&self) -> u64 {
        u64::from(self.headroom)
    }

    /// Whether releases that leave it with `reserved` bytes could bring it under, with the whole pool free.
    /// (An account is only looked at when it releases.)
    pub fn could_resume(&self, reserved: u64, memory: &Memory, profile: &Profile) -> bool {
        reserved < self.held()
            && profile.resumes_at(reserved.min(self.main), reserved.saturating_sub(self.main), memory.shared)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn profile(limit: Limit, reserve: u64, headroom: u32) -> Profile {
        Profile { reserve, limit, resume: 2_000, resume_offset: 1_000, headroom: Some(headroom) }
    }

    #[test]
    fn a_static_account_crosses_at_its_thresholds() {
        let mut memory = Memory::new(&plan::Buffer { total: 100_000, shared: 50_000 });
        let profile = profile(Limit::Static(5_000), 0, 3_000);
        let mut account = Account::default();
        let crossings: Vec<_> = (0..6).map(|_| account.admit(1_000, &mut memory, &profile)).collect();
        assert_eq!(crossings[..4], [Ok(None); 4]);
        assert_eq!(crossings[4..], [Ok(Some(Crossing::Over)), Ok(None)]);
        assert_eq!((account.main, account.headroom), (5_000, 1_000));
        assert_eq!(account.admit(2_001, &mut memory, &profile), Err(Refusal::Headroom(1)));
        let crossings: Vec<_> = (0..6).map(|_| account.release(1_000, &mut memory, &profile)).collect();
        assert_eq!(crossings, [None, None, None, Some(Crossing::Under), None, None]);
        assert_eq!(memory.used, 0);
    }

    /// 5,000 B with a resume level of 2,000 B: without 2,999 B the account is still over, without 3,000 B it is not.
    #[test]
    fn an_account_is_over_without_bytes_until_it_would_resume() {
        let mut memory = Memory::new(&plan::Buffer { total: 100_000, shared: 50_000 });
        let profile = profile(Limit::Static(5_000), 0, 3_000);
        let mut account = Account::default();
        account.admit(4_999, &mut memory, &profile).unwrap();
        assert!(!account.over_without(0, &memory, &profile));
        account.admit(1, &mut memory, &profile).unwrap();
        for (bytes, over) in [(0, true), (2_999, true), (3_000, false), (9_000, false)] {
            assert_eq!(account.over_without(bytes, &memory, &profile), over, "without {bytes} B");
        }
    }

    /// The last byte of the memory is used, and none beyond it, even if the headroom has more room.
    #[test]
    fn a_memory_holds_its_last_byte() {
        let mut memory = Memory::new(&plan::Buffer { total: 3_000, shared: 3_000 });
        let profile = profile(Limit::Static(1_000), 0, 50_000);
        let mut account = Account::default();
        assert_eq!(account.admit(1_000, &mut memory, &profile), Ok(Some(Crossing::Over)));
        assert_eq!(account.admit(2_700, &mut memory, &profile), Err(Refusal::Memory(700)));
        assert_eq!(account.admit(2_000, &mut memory, &profile), Ok(None));
        assert_eq!((memory.used, memory.peak), (3_000, 3_000));
        assert_eq!(account.admit(1, &mut memory, &profile), Err(Refusal::Memory(1)));
        account.release(500, &mut memory, &profile);
        assert_eq!((memory.used, memory.peak), (2_500, 3_000));
    }

    #[test]
    fn an_account_is_enlarged_by_free_bytes_of_the_pool() {
        let mut memory = Memory::new(&plan::Buffer { total: 100_000, shared: 10_000 });
        let profile = profile(Limit::Static(5_000), 1_000, 3_000);
        let mut account = Account::default();
        for _ in 0..8 {
            account.admit(1_000, &mut memory, &profile).unwrap();
        }
        assert_eq!((account.main, account.headroom, account.over), (6_000, 2_000, true));
        // The pool has 5,000 left, of which the headroom's content takes 2,000.
        assert_eq!(account.enlarge(3_001, &mut memory, &profile), None);
        let (taken, larger) = account.enlarge(3_000, &mut memory, &profile).unwrap();
        assert_eq!((taken, account.main, account.headroom, account.over), (5_000, 8_000, 0, false));
        assert_eq!(memory.shared_used, 7_000);
        let crossings: Vec<_> = (0..3).map(|_| account.admit(1_000, &mut memory, &larger)).collect();
        assert_eq!(crossings, [Ok(None), Ok(None), Ok(Some(Crossing::Over))]);
        // It resumes where it did before: at the reserve and 2,000.
        let crossings: Vec<_> = (0..8).map(|_| account.release(1_000, &mut memory, &larger)).collect();
        assert_eq!(crossings.iter().position(Option::is_some), Some(7));
        assert_eq!((account.main, account.resumes(&memory, &profile)), (3_000, true));
    }

    proptest! {
        /// N accounts that obey every XOFF at once never use more than the pool, the reserves and one packet
        /// each; all charges are released.
        #[test]
        fn the_pool_and_one_packet_each_are_enough(
            steps in prop::collection::vec((0usize..5, 1u64..1_500, any::<bool>()), 1..400),
            alpha_q16 in 1u64..600_000, reserve in 0u64..3_000, pool in 0u64..40_000, fixed in any::<bool>(),
        ) {
            let limit = if fixed { Limit::Static(alpha_q16 / 20) } else { Limit::Dynamic { alpha_q16, cap: u64::MAX } };
            let profile = profile(limit, reserve, 0);
            let mut memory = Memory::new(&plan::Buffer { total: pool + 5 * (reserve + 1_500), shared: pool });
            let mut accounts = [Account::default(); 5];
            let mut held: [Vec<u64>; 5] = Default::default();
            for (i, size, leave) in steps {
                if leave {
                    if let Some(size) = held[i].pop() {
                        accounts[i].release(size, &mut memory, &profile);
                    }
                } else if !accounts[i].over {
                    prop_assert!(accounts[i].admit(size, &mut memory, &profile).is_ok());
                    held[i].push(size);
                }
                for account in &accounts {
                    prop_assert!(!account.over || account.main > 0);
                }
                prop_assert_eq!(memory.used, held.iter().flatten().sum::<u64>());
                let shared: u64 = accounts.iter().map(|a| a.main.saturating_sub(reserve)).sum();
                prop_assert_eq!(memory.shared_used, shared);
            }
        }
    }

    /// A dynamic limit is alpha times the free bytes, and its cap at most.
    #[test]
    fn a_dynamic_limit_shares_the_free_bytes() {
        let half = |cap| Limit::Dynamic { alpha_q16: 1 << 15, cap };
        assert_eq!(Memory::share(half(u64::MAX), 1_000), 500);
        assert_eq!(Memory::share(half(300), 1_000), 300);
        assert_eq!(Memory::share(half(u64::MAX), 0), 0);
        // Products above 64 bits.
        let large = Limit::Dynamic { alpha_q16: 3 << 40, cap: u64::MAX };
        assert_eq!(Memory::share(large, 1 << 24), 3 << 48);
        assert_eq!(Memory::share(large, 1 << 62), u64::MAX);
        assert_eq!(Memory::share(half(7), 1 << 63), 7);
    }
}
