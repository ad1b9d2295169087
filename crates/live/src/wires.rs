//! Packet sockets on veth pairs: the wires of a run.
//!
//! Each device has a namespace, in which each of its ports is one end of a veth pair. A thread for each device
//! reads the sockets of its ports, so that no frame waits in the kernel for a device that is busy. The priority of a
//! frame is in its DSCP, so there is no VLAN tag, which the kernel would take out of the frame.

use crate::namespaces::Namespace;
use crate::netlink::{End, Inside, LARGEST, Netlink};
use crate::trailer::{self, Trailed};
use nix::errno::Errno;
use nix::libc::{AF_PACKET, ETH_P_ALL, sockaddr, sockaddr_ll};
use nix::net::if_::if_nametoindex;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{AddressFamily, LinkAddr, MsgFlags, MultiHeaders, SockFlag, SockType, SockaddrLike};
use nix::sys::socket::{bind, recv, recvmmsg, send, sendmmsg, setsockopt, socket, sockopt};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{IoSlice, IoSliceMut};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use xoff_net::topology::{NodeId, PortId};
use xoff_plan::plan::Plan;
use xoff_results::capture;
use xoff_sim::{Delivery, Wires};
use xoff_wire::experimental;

/// Bytes that a socket holds, if the system permits so many.
const BUFFER: usize = 8 << 20;
/// Bytes of the longest frame.
const LONGEST: usize = 14 + LARGEST as usize;
/// Frames that one system call sends or reads.
const BATCH: usize = 16;
/// How soon a reader sees that the run has ended.
const LOOK: u16 = 50;
/// The kind of a frame that no scheme has.
const PROBE: u8 = 0;
/// The longest time that a link takes to come up.
const PATIENCE: Duration = Duration::from_secs(10);
/// In nanoseconds: by default the kernel wakes a thread up to 50 us late.
const TIMER_SLACK: u64 = 1;

/// The frames that have come to a device.
#[derive(Default)]
struct Inbox {
    frames: Mutex<Vec<(PortId, Vec<u8>)>>,
    came: Condvar,
    /// Why no more will come.
    failure: Mutex<Option<String>>,
}

/// The name of a port in its namespace.
fn interface(plan: &Plan, port: PortId) -> String {
    format!("p{}", plan.topology.ports[port as usize].index)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether a port leads to another device, and not to the inside of a slow receiver.
fn is_outer(plan: &Plan, port: PortId) -> bool {
    plan.topology.ports[port as usize].node != plan.topology.neighbour(port)
}

fn failed(what: &str, error: std::io::Error) -> String {
    format!("{what}: {error}")
}

/// Makes a veth pair for each link between the namespaces of devices.
pub fn link<'n>(plan: &Plan, namespace: impl Fn(NodeId) -> Inside<'n>) -> Result<(), String> {
    let topology = &plan.topology;
    let netlink = Netlink::new().map_err(|e| failed("rtnetlink cannot be used", e))?;
    for port in (0..topology.ports.len() as PortId).filter(|&port| is_outer(plan, port)) {
        let peer = topology.ports[port as usize].peer;
        if port < peer {
            let names = [port, peer].map(|port| interface(plan, port));
            let end = |i: usize, port: PortId| End {
                name: &names[i],
                mac: capture::mac(plan, port),
                namespace: namespace(topology.ports[port as usize].node),
            };
            let pair = netlink.pair([&end(0, port), &end(1, peer)]);
            pair.map_err(|e| failed("a veth pair cannot be made", e))?;
        }
    }
    Ok(())
}

/// A new link drops frames without an error for a while: calls `probe`, which returns a port that no frame has
/// reached yet, until there is none.
pub fn wait_for_links(
    plan: &Plan,
    mut probe: impl FnMut() -> Result<Option<PortId>, String>,
) -> Result<(), String> {
    let began = Instant::now();
    while let Some(port) = probe()? {
        if began.elapsed() > PATIENCE {
            let name = plan.topology.port_name(port);
            return Err(format!("no frame reaches {name} within 10 s of its creation"));
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    Ok(())
}

/// The packet sockets of a device.
pub struct Nic<'p> {
    plan: &'p Plan,
    name: &'p str,
    /// By port; none inside a slow receiver.
    sockets: BTreeMap<PortId, Arc<OwnedFd>>,
    /// Ports that no probe has reached.
    silent: Mutex<BTreeSet<PortId>>,
    inbox: Arc<Inbox>,
    reader: Mutex<Option<JoinHandle<()>>>,
    ended: Arc<AtomicBool>,
    /// Frames that it has sent.
    pub sent: AtomicU64,
}

impl<'p> Nic<'p> {
    /// Sets the interfaces of a device up, and opens their sockets, in the namespace of the calling thread.
    pub fn open(plan: &'p Plan, node: NodeId) -> Result<Self, String> {
        let netlink = Netlink::new().map_err(|e| failed("rtnetlink cannot be used", e))?;
        let about = &plan.topology.nodes[node as usize];
        let mut sockets = BTreeMap::new();
        for &port in about.ports.iter().filter(|&&port| is_outer(plan, port)) {
            let made = open(&netlink, &interface(plan, port));
            let made = made.map_err(|e| failed("a packet socket cannot be opened", e))?;
            sockets.insert(port, Arc::new(made));
        }
        Ok(Self {
            plan,
            name: &about.name,
            silent: Mutex::new(sockets.keys().copied().collect()),
            sockets,
            inbox: Arc::default(),
            reader: Mutex::new(None),
            ended: Arc::default(),
            sent: AtomicU64::new(0),
        })
    }

    /// Sends a probe over each port, and takes those that have come. Returns a port that none has reached yet.
    pub fn probe(&self) -> Option<PortId> {
        let mut bytes = [0; 64];
        let mut silent = lock(&self.silent);
        for (&port, socket) in &self.sockets {
            let peer = self.plan.topology.ports[port as usize].peer;
            let probe = experimental::emit(PROBE, capture::mac(self.plan, peer));
            let expected = experimental::emit(PROBE, capture::mac(self.plan, port));
            // Its peer may not be up.
            let _ = send(socket.as_raw_fd(), &probe, MsgFlags::empty());
            while let Ok(length) = recv(socket.as_raw_fd(), &mut bytes, MsgFlags::MSG_DONTWAIT) {
                if bytes[..length] == expected {
                    silent.remove(&port);
                }
            }
        }
        silent.first().copied()
    }

    /// Begins to read frames.
    pub fn listen(&self) -> Result<(), String> {
        let sockets: Vec<_> = self.sockets.iter().map(|(&port, s)| (port, Arc::clone(s))).collect();
        let (inbox, ended) = (Arc::clone(&self.inbox), Arc::clone(&self.ended));
        let reader = std::thread::Builder::new().spawn(move || {
            if let Err(error) = read(&sockets, &inbox, &ended) {
                // Under the lock of who waits: otherwise the notice could come just before the wait.
                let _frames = lock(&inbox.frames);
                *lock(&inbox.failure) = Some(format!("a packet socket cannot be read: {error}"));
                inbox.came.notify_all();
            }
        });
        *lock(&self.reader) = Some(reader.map_err(|e| failed("the system refuses a thread", e))?);
        Ok(())
    }

    /// A frame that `port` sends.
    fn frame(&self, port: PortId, delivery: &Delivery) -> Result<Vec<u8>, String> {
        let mut bytes = capture::frame(self.plan, port, &delivery.what);
        let fits = trailer::append(&mut bytes, delivery).filter(|()| bytes.len() <= LONGEST);
        fits.map(|()| bytes).ok_or_else(|| {
            format!(
                "{} cannot send a frame: the oracles' notes about it are longer than a frame; remove measure.explain",
                self.plan.topology.port_name(port)
            )
        })
    }

    fn delivery(&self, port: PortId, bytes: &[u8]) -> Option<Result<Delivery, String>> {
        // Frames of others have no trailer.
        let Trailed { frame, time, kind, label } = trailer::split(bytes)?;
        let what = capture::parse(self.plan, frame);
        let name = || self.plan.topology.port_name(port);
        Some(
            what.ok_or_else(|| format!("{} received a frame that cannot be read: {frame:02x?}", name()))
                .map(|what| Delivery { time, kind, port, what, label: label.to_vec() }),
        )
    }
}

impl Drop for Nic<'_> {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Release);
        if let Some(reader) = lock(&self.reader).take() {
            let _ = reader.join();
        }
    }
}

/// The devices of a plan as threads of one process, with a namespace each.
pub struct Veths<'p> {
    namespaces: Vec<Namespace>,
    nics: Vec<Nic<'p>>,
}

impl<'p> Veths<'p> {
    /// Makes a namespace for each device and a veth pair for each link. The calling thread joins the
    /// namespaces one after the other.
    pub fn new(plan: &'p Plan) -> Result<Self, String> {
        let devices = plan.topology.nodes.len() as NodeId;
        let namespaces = (0..devices).map(|_| Namespace::new()).collect::<Result<Vec<_>, _>>()?;
        link(plan, |node| Inside::Fd(namespaces[node as usize].fd()))?;
        let open = |node: NodeId| {
            namespaces[node as usize].join()?;
            Nic::open(plan, node)
        };
        let nics = (0..devices).map(open).collect::<Result<Vec<_>, _>>()?;
        wait_for_links(plan, || Ok(nics.iter().map(Nic::probe).fold(None, Option::or)))?;
        nics.iter().try_for_each(Nic::listen)?;
        Ok(Self { namespaces, nics })
    }

    /// The calling thread joins the namespace of a device.
    pub fn join(&self, node: NodeId) -> Result<(), String> {
        self.namespaces[node as usize].join()
    }

    /// Frames that each device has sent.
    pub fn sent(&self) -> Vec<u64> {
        self.nics.iter().map(|nic| nic.sent.load(Ordering::Relaxed)).collect()
    }
}

impl Wires for Veths<'_> {
    fn begin(&self, node: NodeId) -> Result<(), String> {
        self.nics[node as usize].begin(node)?;
        self.join(node)
    }

    fn send(&self, node: NodeId, deliveries: Vec<Delivery>) -> Result<(), String> {
        self.nics[node as usize].send(node, deliveries)
    }

    fn take(&self, node: NodeId, least: usize, until: Instant) -> Result<Vec<Delivery>, String> {
        self.nics[node as usize].take(node, least, until)
    }
}

/// Sets an interface up, and opens a socket for all of its frames.
fn open(netlink: &Netlink, name: &str) -> std::io::Result<OwnedFd> {
    let index = if_nametoindex(name)?;
    netlink.up(index)?;
    let socket = socket(AddressFamily::Packet, SockType::Raw, SockFlag::SOCK_CLOEXEC, None)?;
    // Only root may exceed the system's bound; what the bound permits is enough on an idle machine.
    if setsockopt(&socket, sockopt::RcvBufForce, &BUFFER).is_err() {
        let _ = setsockopt(&socket, sockopt::RcvBuf, &BUFFER);
    }
    let address = sockaddr_ll {
        sll_family: AF_PACKET as u16,
        sll_protocol: (ETH_P_ALL as u16).to_be(),
        sll_ifindex: index as i32,
        sll_hatype: 0,
        sll_pkttype: 0,
        sll_halen: 0,
        sll_addr: [0; 8],
    };
    let length = size_of::<sockaddr_ll>() as u32;
    // SAFETY: the address is whole, of the family and length that it says, and lives until the call returns.
    let address = unsafe { LinkAddr::from_raw((&raw const address).cast::<sockaddr>(), Some(length)) };
    bind(socket.as_raw_fd(), &address.expect("the family is that of packet sockets"))?;
    Ok(socket)
}

/// Sends at most so many frames as fit into a batch. Returns how many.
fn send_some(socket: &OwnedFd, frames: &[Vec<u8>]) -> Result<usize, Errno> {
    let slices: Vec<[IoSlice; 1]> = frames.iter().take(BATCH).map(|frame| [IoSlice::new(frame)]).collect();
    let mut headers = MultiHeaders::<()>::preallocate(slices.len(), None);
    let to = vec![None; slices.len()];
    sendmmsg(socket.as_raw_fd(), &mut headers, &slices, &to, [], MsgFlags::empty()).map(Iterator::count)
}

/// Puts the frames of a device's sockets into its inbox until the run has ended.
fn read(sockets: &[(PortId, Arc<OwnedFd>)], inbox: &Inbox, ended: &AtomicBool) -> Result<(), Errno> {
    let mut polled: Vec<PollFd> =
        sockets.iter().map(|(_, socket)| PollFd::new(socket.as_fd(), PollFlags::POLLIN)).collect();
    let mut bytes = vec![[0; LONGEST]; BATCH];
    let mut headers = MultiHeaders::<()>::preallocate(BATCH, None);
    while !ended.load(Ordering::Acquire) {
        match poll(&mut polled, PollTimeout::from(LOOK)) {
            Ok(0) | Err(Errno::EINTR) => continue,
            other => other?,
        };
        let mut came = false;
        for ((port, socket), polled) in sockets.iter().zip(&polled) {
            if !polled.any().unwrap_or(false) {
                continue;
            }
            loop {
                let mut slices: Vec<_> = bytes.iter_mut().map(|bytes| [IoSliceMut::new(bytes)]).collect();
                let read =
                    recvmmsg(socket.as_raw_fd(), &mut headers, &mut slices, MsgFlags::MSG_DONTWAIT, None);
                let lengths = read.map(|read| read.map(|message| message.bytes).collect::<Vec<_>>());
                match lengths {
                    Ok(lengths) => {
                        let frames = lengths
                            .iter()
                            .zip(&bytes)
                            .map(|(&length, bytes)| (*port, bytes[..length].to_vec()));
                        lock(&inbox.frames).extend(frames);
                        came = true;
                        if lengths.len() < BATCH {
                            break;
                        }
                    }
                    Err(Errno::EAGAIN) => break,
                    // The interface has vanished with the device at its other end. What came before is still there.
                    Err(Errno::EINTR | Errno::ENETDOWN) => {}
                    Err(error) => return Err(error),
                }
            }
        }
        if came {
            inbox.came.notify_all();
        }
    }
    Ok(())
}

impl Wires for Nic<'_> {
    fn begin(&self, _: NodeId) -> Result<(), String> {
        let _ = nix::sys::prctl::set_timerslack(TIMER_SLACK);
        Ok(())
    }

    fn send(&self, _: NodeId, deliveries: Vec<Delivery>) -> Result<(), String> {
        for group in deliveries.chunk_by(|one, next| one.port == next.port) {
            let port = self.plan.topology.ports[group[0].port as usize].peer;
            let name = || self.plan.topology.port_name(port);
            let frames =
                group.iter().map(|delivery| self.frame(port, delivery)).collect::<Result<Vec<_>, _>>()?;
            let mut left = &frames[..];
            while !left.is_empty() {
                match send_some(&self.sockets[&port], left) {
                    Ok(sent) => left = &left[sent..],
                    // The kernel has no room for now.
                    Err(Errno::ENOBUFS) => std::thread::yield_now(),
                    Err(Errno::EINTR) => {}
                    // A device that died took the interface with it.
                    Err(Errno::ENETDOWN | Errno::ENXIO) => break,
                    Err(e) => {
                        return Err(format!("{} cannot send a frame of {} B: {e}", name(), left[0].len()));
                    }
                }
            }
            self.sent.fetch_add(frames.len() as u64, Ordering::Relaxed);
        }
        Ok(())
    }

    fn take(&self, _: NodeId, least: usize, until: Instant) -> Result<Vec<Delivery>, String> {
        let mut taken = Vec::new();
        loop {
            let frames = {
                let mut frames = lock(&self.inbox.frames);
                if frames.is_empty() && taken.len() < least && lock(&self.inbox.failure).is_none() {
                    let left = until.saturating_duration_since(Instant::now());
                    if left > Duration::ZERO {
                        let waited = self.inbox.came.wait_timeout(frames, left);
                        frames = waited.unwrap_or_else(PoisonError::into_inner).0;
                    }
                }
                std::mem::take(&mut *frames)
            };
            let deliveries = frames.iter().filter_map(|(port, bytes)| self.delivery(*port, bytes));
            taken.extend(deliveries.collect::<Result<Vec<_>, _>>()?);
            if let Some(why) = lock(&self.inbox.failure).clone() {
                return Err(format!("{}: {why}", self.name));
            }
            if taken.len() >= least || Instant::now() >= until {
                return Ok(taken);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use xoff_outcome::tap::{Carries, Crosser};
    use xoff_schemes::load_balancing::LoadBalancing;

    fn plan(transport: &str, routing: &str) -> Plan {
        let text = format!(
            "[topology]\nkind=\"leaf-spine\"\nleaves=2\nspines=1\nhosts_per_leaf=1\n\
            host_link={{rate=\"100Gbps\",delay=\"1us\"}}\nfabric_link={{rate=\"100Gbps\",delay=\"1us\"}}\n\
            {routing}[[priority]]\nid=2\n[[priority]]\nid=5\n[transport]\nkind=\"{transport}\"\n\
            [[traffic]]\nkind=\"flow\"\nsrc=\"H0\"\ndst=\"H1\"\nsize=\"9500B\"\npriority=2\n\
            [[traffic]]\nkind=\"flow\"\nsrc=\"H1\"\ndst=\"H0\"\nsize=\"1B\"\npriority=5\n"
        );
        let read = |_: &std::path::Path| Err(std::io::ErrorKind::NotFound.into());
        xoff_plan::load("test.toml", text.as_bytes(), &[], &read).unwrap().plan
    }

    /// Flow, lane, content and mark of a packet are read from its bytes; damaged bytes are refused.
    #[test]
    fn packets_are_read_from_their_bytes() {
        let transports = ["go-back-n", "irn", "tcp-newreno", "ndp", "rud"];
        let plain = transports.map(|transport| (transport, plan(transport, ""), None));
        // Where senders label each packet, data and what answers it have the label.
        let labelled = LoadBalancing::ALL.iter().filter(|kind| kind.labels_packets()).flat_map(|kind| {
            let routing = format!("[routing]\nload_balancing=\"{}\"\n", kind.name());
            let some = transports.into_iter().filter(|transport| !transport.starts_with("tcp"));
            some.map(move |transport| (transport, plan(transport, &routing), Some(4_095)))
        });
        for (transport, plan, label) in plain.into_iter().chain(labelled) {
            let pulls = transport == "ndp";
            let mut contents = vec![
                (0, Carries::Data { psn: 0 }),
                (0, Carries::Data { psn: 9 }),
                (1, Carries::Data { psn: 0 }),
                (0, Carries::Ack { expected: 4, arrived: pulls.then_some(4) }),
                (1, Carries::Ack { expected: 1, arrived: pulls.then_some(1) }),
            ];
            let nack = |arrived| (0, Carries::Nack { expected: 0, arrived });
            match transport {
                "go-back-n" => contents.extend([nack(None), (0, Carries::Cnp)]),
                "rud" => {
                    let sack = Carries::Sack { expected: 2, first: 3, bits: 1 << 63 | 5 };
                    let credit = (0, Carries::Credit { number: 0xff_fffe });
                    let with_credit =
                        Carries::CreditedAck { expected: 2, first: 3, bits: 9, credit: 0xff_fffd };
                    contents.extend([(0, sack), (0, Carries::Cnp), credit, (0, with_credit)]);
                    let trimmed = |last_hop| (0, Carries::Trimmed { psn: 0, last_hop });
                    contents.extend([trimmed(false), trimmed(true)]);
                    let acknowledged =
                        Carries::ProbeAck { expected: 2, bits: 1 << 63 | 9, number: 0xff_fffd };
                    contents.extend([(0, Carries::Probe { number: 0xff_fffd }), (1, acknowledged)]);
                }
                "irn" => contents.push(nack(Some(7))),
                "ndp" => contents.extend([nack(Some(7)), (0, Carries::Pull { count: 5 })]),
                // TCP has an ACK for each gap.
                _ => {}
            }
            for (flow, carries) in contents {
                let marks = if matches!(carries, Carries::Cnp | Carries::Pull { .. } | Carries::Credit { .. })
                {
                    &[false][..]
                } else {
                    &[false, true]
                };
                for (lane, &marked) in
                    [0, 1].into_iter().flat_map(|lane| marks.iter().map(move |m| (lane, m)))
                {
                    let label = label.filter(|_| carries.has_label());
                    let what = Crosser::Packet { flow, lane, carries, marked, label };
                    let mut bytes = capture::frame(&plan, 0, &what);
                    assert_eq!(capture::parse(&plan, &bytes), Some(what), "{transport}");
                    bytes[30] ^= 1;
                    assert_eq!(capture::parse(&plan, &bytes), None, "{transport}");
                }
            }
        }
    }
}
