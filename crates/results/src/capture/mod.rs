//! Captures: the packets and frames that cross some ports, as the pcapng file of a run directory.
//!
//! The file is written during the run, into the directory that is put in its place at the end.
//! `docs/CAPTURES.md` describes its content.

mod frames;
mod pcapng;

use std::fs::File;
use std::io::{self, BufWriter};
use std::path::PathBuf;

use crate::checksum::{Stored, Summing};
use crate::names;
use crate::storage::{Error, Sink, arrived, failed};
use pcapng::{Block, CRC_ERROR, INBOUND, Interface, OUTBOUND};
use xoff_net::topology::PortId;
use xoff_outcome::tap::Crossing;
use xoff_plan::plan::Plan;
use xoff_wire::{BTH_AND_ICRC, IPV4, UDP, ip};

pub use frames::{frame, mac, parse};

pub const CAPTURE: &str = "capture.pcapng";

/// Most payload of a packet that can be captured: IPv4 has 64 KiB for it and its headers, and words are whole.
pub const LARGEST_PAYLOAD: u32 = (u16::MAX as u32 - IPV4 - UDP - BTH_AND_ICRC - RETH) / 4 * 4;
const RETH: u32 = 16;

#[derive(Clone, Debug)]
pub struct What {
    /// The ports, each once, in the order of the file's interfaces.
    pub ports: Vec<PortId>,
    /// Most bytes of a packet that are stored; `None`: all.
    pub snap: Option<u32>,
    /// Version of the program.
    pub version: String,
}

/// A capture in the making.
#[derive(Debug)]
pub struct Capture {
    path: PathBuf,
    sink: Sink,
    /// By port: its interface.
    interfaces: Vec<u32>,
    snap: usize,
    block: Block,
    packets: usize,
    /// Why nothing more is written.
    failure: Option<io::Error>,
}

impl Capture {
    /// Begins a capture of a plan's run in a file at `path`.
    pub(crate) fn begin(path: PathBuf, plan: &Plan, what: &What) -> Result<Self, Error> {
        let file = File::create(&path).map_err(|e| failed(&path, "cannot be written", &e))?;
        let mut interfaces = vec![u32::MAX; plan.topology.ports.len()];
        for (interface, &port) in (0..).zip(&what.ports) {
            interfaces[port as usize] = interface;
        }
        let mut capture = Self {
            path,
            sink: BufWriter::with_capacity(1 << 16, Summing::new(file)),
            interfaces,
            snap: what.snap.map_or(usize::MAX, |snap| snap as usize),
            block: Block::default(),
            packets: 0,
            failure: None,
        };
        capture.head(plan, what).map_err(|e| failed(&capture.path, "cannot be written", &e))?;
        Ok(capture)
    }

    /// The blocks before the packets.
    fn head(&mut self, plan: &Plan, what: &What) -> io::Result<()> {
        let sink = &mut self.sink;
        self.block.section(&format!("xoff {}", what.version), sink)?;
        for &port in &what.ports {
            let peer = plan.topology.ports[port as usize].peer;
            let about = Interface {
                name: &names::port(plan, port),
                description: &format!("to {}", names::port(plan, peer)),
                mac: frames::mac(plan, port),
                speed: plan.topology.ports[port as usize].rate,
            };
            // 0 is no limit.
            self.block.interface(&about, what.snap.unwrap_or(0), sink)?;
        }
        let hosts = plan.topology.hosts().map(|host| (ip::address(host), names::node(plan, host)));
        self.block.names(hosts, sink)
    }

    /// Writes the crossings. Returns whether the caller should continue: not after a failure, which `finish`
    /// reports.
    pub fn write(&mut self, plan: &Plan, crossings: &[Crossing]) -> bool {
        if self.failure.is_none() {
            self.failure = crossings.iter().find_map(|crossing| self.write_one(plan, crossing).err());
        }
        self.failure.is_none()
    }

    fn write_one(&mut self, plan: &Plan, crossing: &Crossing) -> io::Result<()> {
        let sink = &mut self.sink;
        let port = crossing.port;
        let from = if crossing.sent { port } else { plan.topology.ports[port as usize].peer };
        let bytes = frames::frame(plan, from, &crossing.what);
        let direction = if crossing.sent { OUTBOUND } else { INBOUND };
        let flags = direction | if crossing.damaged { CRC_ERROR } else { 0 };
        let stored = &bytes[..bytes.len().min(self.snap)];
        // Payloads are below 64 KiB.
        let length = bytes.len() as u32;
        let about = (self.interfaces[port as usize], crossing.at, flags);
        self.block.packet(about, stored, length, sink)?;
        self.packets += 1;
        Ok(())
    }

    /// Ends the file; returns its content, and the number of its packets, or why a write failed before.
    pub(crate) fn finish(self) -> Result<(Stored, usize), Error> {
        let arrived = self.failure.map_or_else(|| arrived(self.sink), Err);
        let stored = arrived.map_err(|e| failed(&self.path, "cannot be written", &e))?;
        Ok((stored, self.packets))
    }
}
