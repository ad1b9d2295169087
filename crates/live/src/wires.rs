//! Packet sockets on veth pairs: the wires of a run.
//!
//! Each device has a namespace, in which each of its ports is one end of a veth pair. A thread for each device
//! reads the sockets of its ports, so that no frame waits in the kernel for a device that is busy.

use crate::namespaces::Namespace;
use crate::netlink::{End, LARGEST, Netlink};
use crate::trailer::{self, Trailed};
use nix::errno::Errno;
use nix::libc::{AF_PACKET, ETH_P_ALL, sockaddr, sockaddr_ll};
use nix::net::if_::if_nametoindex;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{AddressFamily, LinkAddr, MsgFlags, SockFlag, SockType, SockaddrLike};
use nix::sys::socket::{bind, recv, send, setsockopt, socket, sockopt};
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

/// The veth pairs of a plan, and their sockets.
pub struct Veths<'p> {
    plan: &'p Plan,
    namespaces: Vec<Namespace>,
    /// By port; none inside a slow receiver.
    sockets: Vec<Option<Arc<OwnedFd>>>,
    inboxes: Vec<Arc<Inbox>>,
    readers: Vec<JoinHandle<()>>,
    ended: Arc<AtomicBool>,
    /// By device: the frames that it has sent.
    sent: Vec<AtomicU64>,
}

/// The name of a port in its namespace.
fn interface(plan: &Plan, port: PortId) -> String {
    format!("p{}", plan.topology.ports[port as usize].index)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<'p> Veths<'p> {
    /// Makes a namespace for each device and a veth pair for each link. The calling thread joins the
    /// namespaces one after the other.
    pub fn new(plan: &'p Plan) -> Result<Self, String> {
        let topology = &plan.topology;
        let namespaces = topology.nodes.iter().map(|_| Namespace::new()).collect::<Result<Vec<_>, _>>()?;
        let failed = |what: &str, e: std::io::Error| format!("{what}: {e}");
        let netlink = Netlink::new().map_err(|e| failed("rtnetlink cannot be used", e))?;
        let outer = |port: PortId| topology.ports[port as usize].node != topology.neighbour(port);
        let ports = topology.ports.len() as PortId;
        for port in (0..ports).filter(|&port| outer(port)) {
            let peer = topology.ports[port as usize].peer;
            if port < peer {
                let names = [port, peer].map(|port| interface(plan, port));
                let end = |i: usize, port: PortId| End {
                    name: &names[i],
                    mac: capture::mac(plan, port),
                    namespace: namespaces[topology.ports[port as usize].node as usize].fd(),
                };
                let pair = netlink.pair([&end(0, port), &end(1, peer)]);
                pair.map_err(|e| failed("a veth pair cannot be made", e))?;
            }
        }
        let mut veths = Self {
            plan,
            sockets: topology.ports.iter().map(|_| None).collect(),
            inboxes: namespaces.iter().map(|_| Arc::default()).collect(),
            sent: namespaces.iter().map(|_| AtomicU64::new(0)).collect(),
            namespaces,
            readers: Vec::new(),
            ended: Arc::default(),
        };
        for (node, namespace) in veths.namespaces.iter().enumerate() {
            namespace.join()?;
            let netlink = Netlink::new().map_err(|e| failed("rtnetlink cannot be used", e))?;
            for &port in topology.nodes[node].ports.iter().filter(|&&port| outer(port)) {
                let made = open(&netlink, &interface(plan, port));
                let made = made.map_err(|e| failed("a packet socket cannot be opened", e))?;
                veths.sockets[port as usize] = Some(Arc::new(made));
            }
        }
        veths.wait_for_links()?;
        for (node, about) in topology.nodes.iter().enumerate() {
            let socket = |&port: &PortId| Some((port, Arc::clone(veths.sockets[port as usize].as_ref()?)));
            let sockets: Vec<_> = about.ports.iter().filter_map(socket).collect();
            let (inbox, ended) = (Arc::clone(&veths.inboxes[node]), Arc::clone(&veths.ended));
            let reader = std::thread::Builder::new().spawn(move || {
                if let Err(error) = read(&sockets, &inbox, &ended) {
                    // Under the lock of who waits: otherwise the notice could come just before the wait.
                    let _frames = lock(&inbox.frames);
                    *lock(&inbox.failure) = Some(format!("a packet socket cannot be read: {error}"));
                    inbox.came.notify_all();
                }
            });
            veths.readers.push(reader.map_err(|e| failed("the system refuses a thread", e))?);
        }
        Ok(veths)
    }

    /// A link that is new drops frames without an error for a while: sends probes over each until one arrives.
    fn wait_for_links(&self) -> Result<(), String> {
        let began = Instant::now();
        let mut bytes = [0; 64];
        for (port, socket) in (0..).zip(&self.sockets) {
            let Some(socket) = socket else { continue };
            let port = &self.plan.topology.ports[port as usize];
            let peer = self.sockets[port.peer as usize].as_ref().expect("both ends are outside");
            let probe = experimental::emit(
                PROBE,
                capture::mac(self.plan, self.plan.topology.ports[port.peer as usize].peer),
            );
            loop {
                let sent = send(socket.as_raw_fd(), &probe, MsgFlags::empty());
                let came = recv(peer.as_raw_fd(), &mut bytes, MsgFlags::MSG_DONTWAIT);
                if came.is_ok_and(|length| bytes[..length] == probe) {
                    break;
                }
                if began.elapsed() > PATIENCE {
                    let name = self.plan.topology.port_name(port.peer);
                    return Err(format!(
                        "no frame reaches {name} within 10 s of its creation (sent: {sent:?})"
                    ));
                }
                std::thread::sleep(Duration::from_millis(1));
            }
        }
        Ok(())
    }

    /// The calling thread joins the namespace of a device.
    pub fn join(&self, node: NodeId) -> Result<(), String> {
        self.namespaces[node as usize].join()
    }

    /// Frames that each device has sent.
    pub fn sent(&self) -> Vec<u64> {
        self.sent.iter().map(|sent| sent.load(Ordering::Relaxed)).collect()
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

impl Drop for Veths<'_> {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Release);
        for reader in self.readers.drain(..) {
            let _ = reader.join();
        }
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

/// Puts the frames of a device's sockets into its inbox until the run has ended.
fn read(sockets: &[(PortId, Arc<OwnedFd>)], inbox: &Inbox, ended: &AtomicBool) -> Result<(), Errno> {
    let mut polled: Vec<PollFd> =
        sockets.iter().map(|(_, socket)| PollFd::new(socket.as_fd(), PollFlags::POLLIN)).collect();
    let mut bytes = vec![0; 14 + LARGEST as usize];
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
                match recv(socket.as_raw_fd(), &mut bytes, MsgFlags::MSG_DONTWAIT) {
                    Ok(length) => lock(&inbox.frames).push((*port, bytes[..length].to_vec())),
                    Err(Errno::EAGAIN) => break,
                    Err(Errno::EINTR) => {}
                    Err(error) => return Err(error),
                }
                came = true;
            }
        }
        if came {
            inbox.came.notify_all();
        }
    }
    Ok(())
}

impl Wires for Veths<'_> {
    fn begin(&self, node: NodeId) -> Result<(), String> {
        let _ = nix::sys::prctl::set_timerslack(TIMER_SLACK);
        self.join(node)
    }

    fn send(&self, node: NodeId, delivery: Delivery) -> Result<(), String> {
        let from = self.plan.topology.ports[delivery.port as usize].peer;
        let mut bytes = capture::frame(self.plan, from, &delivery.what);
        trailer::append(&mut bytes, &delivery);
        let socket = self.sockets[from as usize].as_ref().expect("nothing is sent inside a slow receiver");
        loop {
            match send(socket.as_raw_fd(), &bytes, MsgFlags::empty()) {
                Ok(_) => break,
                // The kernel has no room for now.
                Err(Errno::ENOBUFS) => std::thread::yield_now(),
                Err(Errno::EINTR) => {}
                Err(e) => {
                    let name = self.plan.topology.port_name(from);
                    return Err(format!("{name} cannot send a frame of {} B: {e}", bytes.len()));
                }
            }
        }
        self.sent[node as usize].fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    fn take(&self, node: NodeId, least: usize, until: Instant) -> Result<Vec<Delivery>, String> {
        let inbox = &self.inboxes[node as usize];
        let mut taken = Vec::new();
        loop {
            let frames = {
                let mut frames = lock(&inbox.frames);
                if frames.is_empty() && taken.len() < least && lock(&inbox.failure).is_none() {
                    let left = until.saturating_duration_since(Instant::now());
                    if left > Duration::ZERO {
                        let waited = inbox.came.wait_timeout(frames, left);
                        frames = waited.unwrap_or_else(PoisonError::into_inner).0;
                    }
                }
                std::mem::take(&mut *frames)
            };
            let deliveries = frames.iter().filter_map(|(port, bytes)| self.delivery(*port, bytes));
            taken.extend(deliveries.collect::<Result<Vec<_>, _>>()?);
            if let Some(why) = lock(&inbox.failure).clone() {
                return Err(why);
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

    fn plan(transport: &str) -> Plan {
        let text = format!(
            "[topology]\nkind=\"leaf-spine\"\nleaves=2\nspines=1\nhosts_per_leaf=1\n\
            host_link={{rate=\"100Gbps\",delay=\"1us\"}}\nfabric_link={{rate=\"100Gbps\",delay=\"1us\"}}\n\
            [[priority]]\nid=2\n[[priority]]\nid=5\n[transport]\nkind=\"{transport}\"\n\
            [[traffic]]\nkind=\"flow\"\nsrc=\"H0\"\ndst=\"H1\"\nsize=\"9500B\"\npriority=2\n\
            [[traffic]]\nkind=\"flow\"\nsrc=\"H1\"\ndst=\"H0\"\nsize=\"1B\"\npriority=5\n"
        );
        let read = |_: &std::path::Path| Err(std::io::ErrorKind::NotFound.into());
        xoff_plan::load("test.toml", text.as_bytes(), &[], &read).unwrap().plan
    }

    /// Flow, lane, content and mark of a packet are read from its bytes; damaged bytes are refused.
    #[test]
    fn packets_are_read_from_their_bytes() {
        for transport in ["go-back-n", "irn", "tcp-newreno", "ndp", "rud"] {
            let plan = plan(transport);
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
                    contents.extend([nack(None), (0, sack), (0, Carries::Cnp)]);
                }
                "irn" => contents.push(nack(Some(7))),
                "ndp" => contents.extend([nack(Some(7)), (0, Carries::Pull { count: 5 })]),
                // TCP has an ACK for each gap.
                _ => {}
            }
            for (flow, carries) in contents {
                let marks = if matches!(carries, Carries::Cnp | Carries::Pull { .. }) {
                    &[false][..]
                } else {
                    &[false, true]
                };
                for (lane, &marked) in
                    [0, 1].into_iter().flat_map(|lane| marks.iter().map(move |m| (lane, m)))
                {
                    let what = Crosser::Packet { flow, lane, carries, marked };
                    let mut bytes = capture::frame(&plan, 0, &what);
                    assert_eq!(capture::parse(&plan, &bytes), Some(what), "{transport}");
                    bytes[30] ^= 1;
                    assert_eq!(capture::parse(&plan, &bytes), None, "{transport}");
                }
            }
        }
    }
}
