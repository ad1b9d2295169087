//! The devices as processes, one for each.
//!
//! Each process is a fork of the coordinator, made before the coordinator starts threads. A new program would have
//! other addresses (see [`Apart`]). The process makes its network namespace, takes its memory from its own
//! [region](Regions), and then obeys orders that come over a socket. It dies with the coordinator, however the
//! coordinator ends. Its namespace and veth pairs vanish with it. `ps` and `pkill` show it as `xoff:S0.0`.
//!
//! A request is three numbers, and the answer two, or a text after them. No device has more than one request at a
//! time. The end of the stream says that the process has ended.

use crate::memory::{self, Regions};
use crate::namespaces::{self, Namespace};
use crate::netlink::Inside;
use crate::wires::{self, Nic};
use nix::errno::Errno;
use nix::libc;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::prctl;
use nix::sys::signal::{SigHandler, Signal, kill, signal};
use nix::sys::socket::{AddressFamily, MsgFlags, SockFlag, SockType, recv, send, socketpair};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::{ForkResult, Pid, fork, getpid, getppid};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::ffi::CString;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use xoff_net::topology::{NodeId, PortId};
use xoff_outcome::Outcome;
use xoff_outcome::tap::Tap;
use xoff_plan::plan::Plan;
use xoff_sim::{Answer, Apart, Carrier, Crew, Death, Lateness, Order, Pace, Station, Watch, Wires};

/// How often the coordinator looks for processes that were stopped.
const LOOK: Duration = Duration::from_millis(20);
/// The longest wait for a device while the run is set up.
const PATIENCE: Duration = Duration::from_secs(20);
/// The longest text of an error.
const TEXT: usize = 4096;

/// The first number of a request; an [`Order`] follows.
const ORDER: u64 = 0;
/// Open the sockets. The answer has the address of the [`Device`].
const OPEN: u64 = 1;
/// Send probes. The answer has a port that none has reached, plus 1; or 0.
const PROBE: u64 = 2;
/// Read frames from now on.
const LISTEN: u64 = 3;

const DONE: u64 = 0;
const FAILED: u64 = 1;

/// What all processes see.
struct Board {
    /// `None` in lockstep.
    pace: Option<Pace>,
    carrier: Carrier,
}

/// A device, in its own memory.
struct Device<'a> {
    station: Station<'a>,
    nic: &'a Nic<'a>,
}

/// A device whose process was stopped in a run, and continued.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stopped {
    /// Its number.
    pub device: NodeId,
    /// The simulated time then, by the wall clock.
    pub at: Option<u64>,
    /// How long, by the clock of the machine.
    pub lasted: Duration,
}

/// A process of a device.
struct Process {
    pid: Pid,
    socket: OwnedFd,
    /// How it has ended.
    ended: Option<WaitStatus>,
    /// It was sent a request and has not answered.
    busy: bool,
    /// It is stopped since then.
    stopped: Option<(Option<u64>, Instant)>,
}

/// The processes of a run.
struct Processes<'a> {
    plan: &'a Plan,
    board: &'a Board,
    all: RefCell<Vec<Process>>,
    answers: RefCell<VecDeque<(NodeId, Reply)>>,
    stops: RefCell<Vec<Stopped>>,
}

/// What a process has answered.
enum Reply {
    Done(u64),
    Failed(String),
    Died(String),
}

/// A run of devices in processes.
pub struct Ran {
    pub outcome: Outcome,
    pub lateness: Lateness,
    /// Frames that each device has sent.
    pub sent: Vec<u64>,
    /// The numbers of the processes.
    pub processes: Vec<u32>,
    pub deaths: Vec<Death>,
    pub stops: Vec<Stopped>,
    pub took: Duration,
}

/// Runs a plan with a process for each device.
pub fn run(
    plan: &Plan,
    dilate: Option<u64>,
    tap: Option<Tap<'_>>,
    ready: crate::Ready,
    watch: &mut Watch,
) -> Result<Ran, String> {
    let ports = tap.as_ref().map_or(&[][..], |tap| tap.ports);
    let apart = Apart::new(plan, ports);
    let regions = Regions::new(plan.topology.nodes.len())?;
    const { assert!(size_of::<Board>() <= memory::PAGE) };
    let page = regions.page().cast::<Board>();
    // SAFETY: the page is large enough, aligned, and mapped as long as `regions` exist.
    let board = unsafe {
        page.write(Board { pace: dilate.map(Pace::new), carrier: Carrier::default() });
        &*page
    };
    let processes = Processes::begin(plan, &apart, &regions, board)?;
    wires::link(plan, |node| Inside::Of(processes.pid(node)))?;
    let devices: Vec<*mut Device> =
        processes.ask_all(OPEN)?.into_iter().map(|at| at as usize as *mut Device).collect();
    wires::wait_for_links(plan, || {
        let silent = processes.ask_all(PROBE)?;
        Ok(silent.into_iter().find_map(|port| port.checked_sub(1)).map(|port| port as PortId))
    })?;
    processes.ask_all(LISTEN)?;
    let own = namespaces::own()?;
    let guest = ready(&|node| namespaces::of(processes.pid(node))?.join())?;
    // A namespace that this process is in would outlive its device.
    own.join()?;
    let began = Instant::now();
    // SAFETY: the devices are in the regions, and change only between a request and its answer.
    let (made, sent) = unsafe {
        let stations: Vec<*mut Station> = devices.iter().map(|&d| &raw mut (*d).station).collect();
        let made = apart.direct(&stations, &processes, (board.pace.as_ref(), &board.carrier), tap, watch);
        let sent = |&device: &*mut Device| (&*device).nic.sent.load(Ordering::Relaxed);
        (made, devices.iter().map(sent).collect())
    };
    let took = began.elapsed();
    let (inside, lateness, deaths) = made.map_err(|why| processes.cause(why))?;
    // Its parts are in the regions.
    let outcome = inside.clone();
    drop(inside);
    drop(guest);
    let stops = processes.stops();
    let numbers = (0..devices.len() as NodeId).map(|node| processes.pid(node)).collect();
    drop(processes);
    Ok(Ran { outcome, lateness, sent, processes: numbers, deaths, stops, took })
}

impl<'a> Processes<'a> {
    /// Forks a process for each device; each makes its namespace.
    fn begin(
        plan: &'a Plan,
        apart: &'a Apart<'a>,
        regions: &'a Regions,
        board: &'a Board,
    ) -> Result<Self, String> {
        let (all, answers, stops) = Default::default();
        let processes = Self { plan, board, all, answers, stops };
        let parent = getpid();
        for node in 0..plan.topology.nodes.len() {
            let refused = |e: Errno| format!("the system refuses a process for each device ({e})");
            let (own, other) =
                socketpair(AddressFamily::Unix, SockType::SeqPacket, None, SockFlag::SOCK_CLOEXEC)
                    .map_err(refused)?;
            // SAFETY: the child uses nothing that another thread may have locked, but the allocator, which the
            // C library unlocks.
            match unsafe { fork() }.map_err(refused)? {
                ForkResult::Child => {
                    drop(own);
                    // Not their processes: these are the parent's.
                    processes.all.borrow_mut().drain(..).for_each(|process| drop(process.socket));
                    let begun = catch_unwind(AssertUnwindSafe(|| {
                        live(plan, apart, regions, board, (node, &other, parent))
                    }));
                    let status = match begun {
                        Ok(Ok(())) => 0,
                        Ok(Err(why)) => fail(&other, &why),
                        Err(_) => fail(&other, &format!("{} has panicked", plan.topology.nodes[node].name)),
                    };
                    // SAFETY: it ends the process at once, without what the parent has planned for its end.
                    unsafe { libc::_exit(status) }
                }
                ForkResult::Parent { child } => {
                    let process = Process { pid: child, socket: own, ended: None, busy: true, stopped: None };
                    processes.all.borrow_mut().push(process);
                }
            }
        }
        // Each says that it has a namespace.
        processes.collect()?;
        Ok(processes)
    }

    fn pid(&self, node: NodeId) -> u32 {
        self.all.borrow()[node as usize].pid.as_raw() as u32
    }

    fn name(&self, node: NodeId) -> &str {
        &self.plan.topology.nodes[node as usize].name
    }

    /// Sends a request to all devices, and waits for their answers.
    fn ask_all(&self, request: u64) -> Result<Vec<u64>, String> {
        let devices = self.all.borrow().len() as NodeId;
        (0..devices).for_each(|node| self.request(node, [request, 0, 0]));
        self.collect()
    }

    /// The answers of all devices. A process that dies now is an error.
    fn collect(&self) -> Result<Vec<u64>, String> {
        let mut values = vec![None; self.all.borrow().len()];
        let until = Instant::now() + PATIENCE;
        while let Some(missing) = values.iter().position(Option::is_none) {
            match self.reply(until) {
                Some((node, Reply::Done(value))) => values[node as usize] = Some(value),
                Some((_, Reply::Failed(why))) => return Err(self.cause(why)),
                Some((node, Reply::Died(how))) => return Err(format!("{} {how}", self.name(node))),
                None => {
                    let name = self.name(missing as NodeId);
                    return Err(format!("{name} does not answer within 20 s"));
                }
            }
        }
        Ok(values.into_iter().flatten().collect())
    }

    fn request(&self, node: NodeId, words: [u64; 3]) {
        let process = &mut self.all.borrow_mut()[node as usize];
        process.busy = true;
        let bytes = words.map(u64::to_ne_bytes);
        // If it has died, the end of its stream says so.
        let _ = send(process.socket.as_raw_fd(), bytes.as_flattened(), MsgFlags::MSG_NOSIGNAL);
    }

    /// Waits until `until` for an answer.
    fn reply(&self, until: Instant) -> Option<(NodeId, Reply)> {
        loop {
            if let Some(answer) = self.answers.borrow_mut().pop_front() {
                return Some(answer);
            }
            let left = until.saturating_duration_since(Instant::now());
            let came = self.poll(left.min(LOOK));
            if !came {
                self.look();
                if left.is_zero() {
                    return None;
                }
            }
        }
    }

    /// Puts what devices have answered into `answers`. Returns whether there was anything.
    fn poll(&self, wait: Duration) -> bool {
        let mut all = self.all.borrow_mut();
        let busy: Vec<usize> = (0..all.len()).filter(|&node| all[node].busy).collect();
        let mut polled: Vec<PollFd> =
            busy.iter().map(|&node| PollFd::new(all[node].socket.as_fd(), PollFlags::POLLIN)).collect();
        let wait = PollTimeout::try_from(wait.as_millis() as i32 + 1).unwrap_or(PollTimeout::ZERO);
        if poll(&mut polled, wait).unwrap_or(0) == 0 {
            return false;
        }
        let came: Vec<bool> = polled.iter().map(|polled| polled.any().unwrap_or(false)).collect();
        let mut bytes = [0; 16 + TEXT];
        for (node, _) in busy.into_iter().zip(came).filter(|(_, came)| *came) {
            let process = &mut all[node];
            let length = match recv(process.socket.as_raw_fd(), &mut bytes, MsgFlags::empty()) {
                Err(Errno::EINTR) => continue,
                other => other.unwrap_or(0),
            };
            process.busy = false;
            let word = |i: usize| u64::from_ne_bytes(std::array::from_fn(|at| bytes[8 * i + at]));
            let reply = match length {
                0..16 => Reply::Died(process.describe()),
                _ if word(0) == DONE => Reply::Done(word(1)),
                _ => Reply::Failed(String::from_utf8_lossy(&bytes[16..length]).into_owned()),
            };
            self.answers.borrow_mut().push_back((node as NodeId, reply));
        }
        true
    }

    /// Sees which processes have been stopped or have continued.
    fn look(&self) {
        let flags = WaitPidFlag::WNOHANG | WaitPidFlag::WUNTRACED | WaitPidFlag::WCONTINUED;
        for (node, process) in self.all.borrow_mut().iter_mut().enumerate() {
            if process.ended.is_some() {
                continue;
            }
            match waitpid(process.pid, Some(flags)) {
                Ok(WaitStatus::Stopped(..)) if process.stopped.is_none() => {
                    process.stopped = Some((self.board.pace.as_ref().map(Pace::now), Instant::now()));
                }
                Ok(WaitStatus::Continued(_)) => {
                    let Some((at, since)) = process.stopped.take() else { continue };
                    let lasted = since.elapsed();
                    self.stops.borrow_mut().push(Stopped { device: node as NodeId, at, lasted });
                }
                // It is waited for only once. Its stream may still have an answer.
                Ok(status @ (WaitStatus::Exited(..) | WaitStatus::Signaled(..))) => {
                    process.ended = Some(status);
                }
                _ => {}
            }
        }
    }

    /// All stops so far.
    fn stops(&self) -> Vec<Stopped> {
        self.look();
        let mut stops = self.stops.borrow().clone();
        for (node, process) in self.all.borrow().iter().enumerate() {
            if let Some((at, since)) = process.stopped {
                stops.push(Stopped { device: node as NodeId, at, lasted: since.elapsed() });
            }
        }
        stops
    }

    /// The reason of a failure: a device that died, if one did, since its neighbours fail then.
    fn cause(&self, why: String) -> String {
        let until = Instant::now() + 5 * LOOK;
        while let Some((node, reply)) = self.reply(until) {
            if let Reply::Died(how) = reply {
                return format!("{} {how}", self.name(node));
            }
        }
        why
    }
}

impl Crew for Processes<'_> {
    fn order(&self, node: NodeId, order: Order) {
        let [kind, time] = order.emit();
        self.request(node, [ORDER, kind, time]);
    }

    fn end(&self, node: NodeId) {
        let _ = kill(self.all.borrow()[node as usize].pid, Signal::SIGKILL);
    }

    fn answer(&self, until: Instant) -> Option<(NodeId, Answer)> {
        let (node, reply) = self.reply(until)?;
        let answer = match reply {
            Reply::Done(_) => Answer::Obeyed,
            Reply::Failed(why) => Answer::Failed(why),
            Reply::Died(how) => Answer::Died(how),
        };
        Some((node, answer))
    }
}

impl Drop for Processes<'_> {
    /// Ends all processes that are left.
    fn drop(&mut self) {
        let all = self.all.borrow();
        for process in all.iter().filter(|process| process.ended.is_none()) {
            let _ = kill(process.pid, Signal::SIGKILL);
            let _ = waitpid(process.pid, None);
        }
    }
}

impl Process {
    /// How it has ended, since its stream has.
    fn describe(&mut self) -> String {
        let wait = || waitpid(self.pid, None).unwrap_or(WaitStatus::StillAlive);
        let number = self.pid;
        match *self.ended.get_or_insert_with(wait) {
            WaitStatus::Signaled(_, signal, _) => format!("(process {number}) was killed by {signal}"),
            WaitStatus::Exited(_, code) => format!("(process {number}) ended with status {code}"),
            _ => format!("(process {number}) has closed its socket"),
        }
    }
}

/// Tells the coordinator of a failure. Returns the status of the process.
fn fail(socket: &OwnedFd, why: &str) -> i32 {
    let mut bytes = [FAILED, 0].map(u64::to_ne_bytes).as_flattened().to_vec();
    bytes.extend(why.bytes().take(TEXT));
    let _ = send(socket.as_raw_fd(), &bytes, MsgFlags::MSG_NOSIGNAL);
    1
}

/// The life of a device: `node`, with its socket and the coordinator's process.
fn live<'a>(
    plan: &'a Plan,
    apart: &'a Apart<'a>,
    regions: &Regions,
    board: &'a Board,
    (node, socket, parent): (usize, &OwnedFd, Pid),
) -> Result<(), String> {
    let refused = |e: Errno| format!("a device cannot begin: {e}");
    prctl::set_pdeathsig(Signal::SIGKILL).map_err(refused)?;
    if getppid() != parent {
        return Ok(());
    }
    // Only the coordinator decides what Ctrl-C means.
    for (of, handler) in [
        (Signal::SIGINT, SigHandler::SigIgn),
        (Signal::SIGHUP, SigHandler::SigIgn),
        (Signal::SIGTERM, SigHandler::SigDfl),
    ] {
        // SAFETY: no code of this process runs in the context of a signal.
        unsafe { signal(of, handler) }.map_err(refused)?;
    }
    let name = CString::new(format!("xoff:{}", plan.topology.nodes[node].name)).unwrap_or_default();
    prctl::set_name(&name).map_err(refused)?;
    regions.become_device(node)?;
    let namespace = Namespace::new()?;
    let done = |value: u64| {
        let bytes = [DONE, value].map(u64::to_ne_bytes);
        send(socket.as_raw_fd(), bytes.as_flattened(), MsgFlags::MSG_NOSIGNAL).map(|_| ()).map_err(refused)
    };
    done(0)?;
    // It lives until the process ends: the coordinator reads it after the last order.
    let mut device: Option<&'a mut Device<'a>> = None;
    let mut bytes = [0; 24];
    loop {
        match recv(socket.as_raw_fd(), &mut bytes, MsgFlags::empty()) {
            Ok(24) => {}
            Err(Errno::EINTR) => continue,
            // The coordinator has ended.
            _ => break,
        }
        let words: [u64; 3] =
            std::array::from_fn(|i| u64::from_ne_bytes(std::array::from_fn(|at| bytes[8 * i + at])));
        match (words[0], &mut device) {
            (OPEN, None) => {
                let nic: &'a Nic<'a> = Box::leak(Box::new(Nic::open(plan, node as NodeId)?));
                let station = apart.station(node as NodeId, nic, board.pace.as_ref(), &board.carrier);
                let made = device.insert(Box::leak(Box::new(Device { station, nic })));
                done(&raw const **made as usize as u64)?;
            }
            (PROBE, Some(device)) => done(device.nic.probe().map_or(0, |port| u64::from(port) + 1))?,
            (LISTEN, Some(device)) => {
                device.nic.begin(node as NodeId)?;
                device.nic.listen()?;
                done(0)?;
            }
            (ORDER, Some(device)) => {
                let order = Order::parse([words[1], words[2]]);
                device.station.obey(order.ok_or("an unknown order")?)?;
                done(0)?;
            }
            _ => return Err(format!("a request out of turn: {words:?}")),
        }
    }
    drop(namespace);
    Ok(())
}
