//! All parts of a run at once, for oracles and samples, which read everything and change nothing. The data of
//! a device is read from the part that runs it.

use crate::packet::{NONE, Packet};
use crate::switch::buffer::{Account, Memory};
use crate::switch::port::{Port, Queue};
use crate::{core::Core, outcome::Pause, parallel::partition::Partition};
use xoff_kernel::time::Time;
use xoff_net::topology::NodeId;
use xoff_plan::plan::{Flow, Plan};
use xoff_schemes::flow_control::{FlowControl, seen::Roots};

/// A run between two windows.
pub struct World<'w, 'a> {
    pub plan: &'a Plan,
    pub cores: Vec<&'w Core<'a>>,
    pub flow_controls: Vec<&'w FlowControl>,
    pub partition: &'w Partition,
}

impl<'w, 'a> World<'w, 'a> {
    pub fn lanes(&self) -> u32 {
        self.plan.lanes.len() as u32
    }

    pub fn home(&self, node: NodeId) -> &'w Core<'a> {
        self.cores[self.partition.of(node)]
    }

    pub fn home_of_port(&self, port: u32) -> &'w Core<'a> {
        self.home(self.plan.topology.ports[port as usize].node)
    }

    pub fn flow_control(&self, port: u32) -> &'w FlowControl {
        self.flow_controls[self.partition.of(self.plan.topology.ports[port as usize].node)]
    }

    /// The state of a port's device about roots, if its scheme pauses by root.
    pub fn roots(&self, port: u32) -> Option<&'w dyn Roots> {
        self.flow_control(port).roots()
    }

    pub fn peer(&self, port: u32) -> u32 {
        self.plan.topology.ports[port as usize].peer
    }

    pub fn port(&self, port: u32) -> &'w Port {
        &self.home_of_port(port).egress.ports[port as usize]
    }

    pub fn queues(&self, port: u32) -> &'w [Queue] {
        let core = self.home_of_port(port);
        &core.egress.queues[core.egress.ports[port as usize].first_queue as usize..][..1 + 2 * core.lanes]
    }

    /// Bytes that wait at a port: control frames and forwarded packets.
    pub fn waiting_bytes(&self, port: u32) -> u64 {
        self.queues(port)[..1 + self.plan.lanes.len()].iter().map(|q| q.bytes).sum()
    }

    pub fn account(&self, account: u32) -> &'w Account {
        &self.home_of_port(account / self.lanes()).ingress.accounts[account as usize]
    }

    pub fn memory(&self, node: NodeId) -> &'w Memory {
        &self.home(node).ingress.memories[node as usize]
    }

    /// Bytes that a packet is charged.
    pub fn in_cells(&self, packet: &Packet) -> u64 {
        self.cores[0].ingress.in_cells(packet.size)
    }

    /// Whether the bytes of `account` keep its upstream stopped. Under credit-based flow control they do not
    /// if the upstream waits for less than the free room: then it continues when that credit arrives.
    pub fn closes(&self, account: u32) -> bool {
        self.short_of_room(account, |account| self.account(account).held()).unwrap_or(true)
    }

    /// With credits: whether the upstream of `account` waits for more than has room beside `kept` bytes of the
    /// accounts of its port.
    fn short_of_room(&self, account: u32, kept: impl Fn(u32) -> u64) -> Option<bool> {
        let (port, lane) = (account / self.lanes(), (account % self.lanes()) as u8);
        let here = self.flow_control(port).credits()?;
        let peer = self.peer(port);
        let upstream = self.flow_control(peer).credits()?;
        let mut bytes = [0; 8];
        let first = port * self.lanes();
        (first..first + self.lanes()).zip(&mut bytes).for_each(|(account, bytes)| *bytes = kept(account));
        let short = |lane: u8| upstream.wanted(peer, lane) > here.room(port, lane, &bytes).iter().sum();
        // A lane that needs what all share waits for those whose turn comes first, too.
        let before = upstream.before(peer, lane);
        let needs = upstream.wanted(peer, lane) > here.room(port, lane, &bytes)[0];
        Some(short(lane) || needs && (0..8).any(|other| before >> other & 1 == 1 && short(other)))
    }

    /// Whether a lane of the port of `account` can wait for packets of its other lanes: they share credit, or
    /// are over together.
    pub fn waits_as_port(&self, account: u32) -> bool {
        let port = account / self.lanes();
        let room = self.home_of_port(port).ingress.rooms.get(port as usize);
        self.plan.flow_control.traits().shares_credit || room.is_some_and(|room| room.over)
    }

    /// Whether releases that leave the accounts of its port with `kept` bytes could bring an account under.
    pub fn could_resume(&self, account: u32, kept: impl Fn(u32) -> u64) -> bool {
        let reserved = kept(account);
        if let Some(short) = self.short_of_room(account, &kept) {
            return !short;
        }
        let ingress = &self.home_of_port(account / self.lanes()).ingress;
        let a = &ingress.accounts[account as usize];
        let (memory, profile) =
            (&ingress.memories[a.memory as usize], &ingress.profiles[usize::from(a.profile)]);
        let port = account / self.lanes();
        if let Some(room) = ingress.rooms.get(port as usize) {
            let lossless = |account: &u32| self.plan.lanes[(account % self.lanes()) as usize].lossless;
            let all = (port * self.lanes()..(port + 1) * self.lanes()).filter(lossless);
            let all = all.map(|account| (&ingress.accounts[account as usize], kept(account)));
            return room.could_resume(a, all, memory, profile);
        }
        a.could_resume(reserved, memory, profile)
    }

    /// Where lanes share credit: the accounts whose upstream waits for room that there is not, with the time
    /// since when. None elsewhere.
    pub fn short_of_credit(&self) -> impl Iterator<Item = (u32, Time)> + '_ {
        let shares = self.plan.flow_control.traits().shares_credit;
        let pauses = self.open_pauses().filter(move |_| shares);
        let waits =
            pauses.map(|pause| (self.peer(pause.port) * self.lanes() + u32::from(pause.lane), pause.from));
        waits.filter(|&(account, _)| self.closes(account))
    }

    /// Since when the upstream of an account has waited for credit; `None` if it needs none, or does not wait.
    pub fn out_of_credit(&self, account: u32) -> Option<Time> {
        let (port, lane) = (account / self.lanes(), (account % self.lanes()) as u8);
        self.flow_control(port).credits()?;
        Some(self.standing(self.peer(port), lane)?.from)
    }

    /// Whether an account has crossed XOFF, and not XON since.
    pub fn is_over(&self, account: u32) -> bool {
        self.home_of_port(account / self.lanes()).observed.over_since.contains_key(&account)
    }

    /// The accounts that are over, with the time of their XOFF.
    pub fn over_since(&self) -> impl Iterator<Item = (u32, Time)> + '_ {
        self.cores.iter().flat_map(|core| core.observed.over_since.iter().map(|(&a, &t)| (a, t)))
    }

    pub fn standing(&self, port: u32, lane: u8) -> Option<&'w Pause> {
        self.home_of_port(port).observed.standing(port, lane)
    }

    /// All standing pauses, in no order of meaning.
    pub fn open_pauses(&self) -> impl Iterator<Item = &'w Pause> + use<'w, 'a, '_> {
        let seen = self.cores.iter().map(|core| &core.observed);
        seen.flat_map(|seen| seen.open.iter().map(|&i| &seen.pauses[i as usize]))
    }

    /// The standing pauses that hosts pass on to their other neighbours, in no order of meaning.
    pub fn passed_on(&self) -> impl Iterator<Item = &'w Pause> + '_ {
        self.open_pauses()
            .filter(|p| self.plan.passes_pauses_on(self.plan.topology.ports[p.port as usize].node))
    }

    /// The ports that a host passes the pauses of `port` on to.
    pub fn others(&self, port: u32) -> impl Iterator<Item = u32> + use<'a> {
        let plan = self.plan;
        let ports = plan.topology.relay_ports(plan.topology.ports[port as usize].node);
        ports.iter().copied().filter(move |&other| other != port)
    }

    pub fn flows_done(&self) -> usize {
        self.cores.iter().map(|core| core.observed.flows_done).sum()
    }

    pub fn data_hops(&self) -> u64 {
        self.cores.iter().map(|core| core.observed.counters.data_hops).sum()
    }

    /// Packets delivered in order and acknowledged; retransmissions alone add only to [`World::data_hops`].
    pub fn progress(&self) -> u64 {
        let progress = self.cores.iter().map(|core| core.observed.progress).sum();
        debug_assert_eq!(progress, self.progress_of_flows());
        progress
    }

    fn progress_of_flows(&self) -> u64 {
        let of = |(index, flow): (usize, &Flow)| {
            let acknowledged = self.home(flow.src).hosts.senders[index].transport.una;
            let delivered = self.home(flow.dst).hosts.receivers[index].transport.expected;
            u64::from(acknowledged) + u64::from(delivered)
        };
        self.plan.flows.iter().enumerate().map(of).sum()
    }

    /// The packets in a forwarding queue, those in its numbered leaves included.
    pub fn queued(&self, port: u32, lane: u32) -> impl Iterator<Item = &'w Packet> + use<'w, 'a> {
        let core = self.home_of_port(port);
        let own = (core.egress.ports[port as usize].first_queue + 1 + lane) as usize;
        let leaves = core.forwarding_leaves(port, lane as u8).map(|leaf| core.egress.leaves.list(leaf));
        let lists = std::iter::once(own).chain(leaves.filter(move |&list| list != own));
        lists.flat_map(move |list| packets_of(core, list))
    }

    /// The packets in a list of the device of `port`.
    pub fn packets_of(&self, port: u32, list: usize) -> impl Iterator<Item = &'w Packet> + use<'w, 'a> {
        packets_of(self.home_of_port(port), list)
    }
}

/// The packets in a list.
fn packets_of<'w, 'a>(core: &'w Core<'a>, list: usize) -> impl Iterator<Item = &'w Packet> + use<'w, 'a> {
    let mut next = core.egress.queues[list].head;
    std::iter::from_fn(move || {
        let packet = (next != NONE).then(|| &core.packets[next])?;
        next = packet.next;
        Some(packet)
    })
}
