//! Accounts of the bytes that came in through each port, and the memories that hold them.

use crate::switch::buffer::{Account, Memory, Profile};
use crate::switch::port_level::Room;
use crate::{features::Features, indices::table, switch::causes::Causes};
use xoff_kernel::table::Table;
use xoff_plan::plan::Plan;
use xoff_schemes::flow_control::Crossing;

pub struct Ingress {
    pub accounts: Table<Vec<Account>>,
    pub profiles: Table<Vec<Profile>>,
    pub memories: Table<Vec<Memory>>,
    /// Bytes of the cells in which accounts count, less one …
    cell_mask: u32,
    /// … and with the bytes that a packet takes beside its own.
    cell_more: u32,
    /// By account: bytes that have arrived, in whole cells. Empty unless the flow control wants to know.
    pub received: Vec<u64>,
    pub causes: Causes,
    /// By port, where accounts have their headroom in the shared pool; else empty.
    pub rooms: Vec<Room>,
    /// Whether the flow control is called for stored and freed packets: always, or while there are loops.
    pub reports_storage: bool,
    /// Whether it is called about charges; then it is called about storage, too.
    pub follows_charges: bool,
}

impl Ingress {
    pub fn new(plan: &Plan) -> Self {
        let traits = plan.flow_control.traits();
        let lanes = plan.lanes.len();
        let mut profiles: Vec<Profile> = Vec::new();
        let account = |(i, a): (usize, &xoff_plan::plan::Account)| {
            let profile = Profile::new(a);
            let at = profiles.iter().position(|p| *p == profile).unwrap_or_else(|| {
                profiles.push(profile);
                profiles.len() - 1
            });
            let kind = u16::try_from(at).expect("at most 65536 kinds of accounts");
            Account::new(a.pool.unwrap_or(plan.topology.ports[i / lanes].node), kind)
        };
        let accounts: Vec<Account> = plan.accounts.iter().enumerate().map(account).collect();
        Self {
            received: vec![0; if traits.counts_arrivals { accounts.len() } else { 0 }],
            accounts: table(accounts),
            profiles: table(profiles),
            memories: table(plan.buffers.iter().map(Memory::new).collect()),
            cell_mask: traits.cell - 1,
            cell_more: (traits.cell - 1).wrapping_add_signed(traits.overhead),
            causes: if traits.knows_causes { Causes::new(plan) } else { Causes::default() },
            rooms: if traits.shares_headroom { Room::all(plan) } else { Vec::new() },
            reports_storage: traits.reports_storage,
            follows_charges: false,
        }
    }

    /// Bytes that a packet of `size` bytes is charged: whole cells.
    #[inline(always)]
    pub fn in_cells(&self, size: u32) -> u64 {
        u64::from(size.wrapping_add(self.cell_more) & !self.cell_mask)
    }

    /// Releases `bytes` of an account's charge at `port`, without a call about crossed thresholds.
    #[inline(always)]
    pub fn release<F: Features>(&mut self, plan: &Plan, port: u32, at: u32, bytes: u64) -> Option<Crossing> {
        let a = &mut self.accounts[at as usize];
        let profile = &self.profiles[usize::from(a.profile)];
        let memory = &mut self.memories[a.memory as usize];
        let crossing = match F::EXTRAS && !self.rooms.is_empty() {
            true => self.rooms[port as usize].release(a, bytes, memory, profile),
            false => a.release(bytes, memory, profile),
        };
        if F::EXTRAS
            && let Some(whole) = around(&mut self.memories, plan, a, port)
        {
            whole.let_go(bytes);
        }
        crossing
    }

    /// Charges account `to` instead of `from`: see `Loops::transfer_charge`.
    pub fn transfer_charge(&mut self, from: usize, to: usize, bytes: u64) -> u64 {
        let own = &mut self.accounts[from];
        let at = own.memory;
        let memory = &mut self.memories[at as usize];
        let shared = own.release_shared(bytes, memory, &self.profiles[usize::from(own.profile)]);
        let other = &mut self.accounts[to];
        debug_assert!(other.memory == at, "accounts of a device with loops share its memory");
        other.take_over(shared, memory, &self.profiles[usize::from(other.profile)]);
        shared
    }

    /// Moves at most `bytes` of other accounts' charges for it to an account: see [`Account::recharge`].
    pub fn recharge(&mut self, account: usize, bytes: u64) -> (u64, Option<Crossing>) {
        let a = &mut self.accounts[account];
        let profile = &self.profiles[usize::from(a.profile)];
        a.recharge(bytes, &mut self.memories[a.memory as usize], profile)
    }

    /// Whether an account is over, and would be if it gave back `bytes` that it has outside headroom.
    pub fn is_over(&self, account: usize, bytes: u64) -> bool {
        let a = &self.accounts[account];
        a.over_without(bytes, &self.memories[a.memory as usize], &self.profiles[usize::from(a.profile)])
    }
}

/// The memory of the device of `port`, if the account `a` is charged to a buffer within it.
#[inline(always)]
pub fn around<'m>(memories: &'m mut [Memory], plan: &Plan, a: &Account, port: u32) -> Option<&'m mut Memory> {
    let topology = &plan.topology;
    let within = a.memory as usize >= topology.nodes.len();
    within.then(|| &mut memories[topology.ports[port as usize].node as usize])
}
