//! Pyrrha (Zhang et al., *Analysis of Pyrrha: Congestion-Root-Based Flow Control Is Most Cost-Effective to
//! Eliminate Head-of-Line Blocking*, IEEE Transactions on Networking 2026): only packets through one
//! congested port wait separately, at every hop before it.
//!
//! **Queues** (section IV-C). An egress port has an output queue, the *OQ*, which is never paused, and
//! *isolation queues*, *IQs*, one for each congestion root that lies ahead ([`Organisation::Hiq`]) or for
//! each set of such roots ([`Organisation::SingleTier`]). A packet's levels are the roots on its own onward
//! path, the nearest first. It joins the IQ of the nearest one; when its turn comes there it goes on to the
//! IQ of the next, and from the last one to the OQ. The schedulers of the levels serve their queues by round
//! robin with equal weights, and so does the wire: one turn of deficit round robin for the OQ and one for
//! each IQ that may send (`pyrrha.scheduling`). Queues are *pulled*: a packet leaves an IQ when the wire is
//! free and it is this IQ's turn. It then goes behind the OQ's packets and the OQ's first packet is sent in
//! its place, so that a flow's earlier packets there stay before it, while the OQ keeps its length and no
//! port is congested by its own IQs. A packet whose next IQ is paused moves there and uses no wire time: it
//! blocks nobody behind it.
//!
//! **Roots** (section IV-A), at the OQ of port p, of which *len* is the length:
//!
//! ```text
//!              packet arrives, len > K_pause, armed:  claim; epoch + 1
//!     no root ──────────────────────────────────────────────────────► root
//!             ◄──────────────────────────────────────────────────────
//!              len ≤ K_resume and no IQ upstream is assigned to p
//!             ◄──────────────────────────────────────────────────────
//!              PAUSE of a root r ahead that p did not know:
//!              abdicate; MERGE(p → r) to all upstream; not armed
//!
//!     root, each further packet from port i, len > K_pause:  PAUSE(p) to i, once
//!     a packet leaves, len ≤ K_resume:  RESUME(p) to all that are paused;  armed
//! ```
//!
//! A port that has abdicated with a full OQ would claim again with the next packet; it is armed again when
//! *len* has been down to K_resume, or when the bytes that arrived since then exceed K_pause
//! (`pyrrha.reclaim-after-merge`).
//!
//! **Isolation queues** (Figure 6), at port p for a root r ahead:
//!
//! ```text
//!     unassigned ── PAUSE(r) ──► paused ── RESUME(r) ──► resumed
//!                                  ▲ ◄── PAUSE(r) ──────── │
//!        paused or resumed ── MERGE(r → s) ──► soft-merging
//!        soft-merging ── PAUSE(r) of a later epoch ──► paused
//!        resumed or soft-merging, and empty, and no IQ upstream assigned to r:
//!                                              RELEASE(r) downstream ──► unassigned
//!
//!     a packet from port i joins, length > K_pause, not soft-merging: PAUSE(r) to i, once
//!     a packet leaves, length ≤ K_resume: RESUME(r) to all that it has paused
//!     MERGE(r → s) goes on to all upstream that are assigned to r
//! ```
//!
//! A soft-merging IQ waits only for its port's own wire: when it is longer than K_pause, the port is
//! congested as by its OQ, and claims and pauses for itself. A MERGE names the new root and pauses no port
//! for it: only a packet through it that joins a too long queue causes a pause. (In the paper the new root's
//! entry is made at once. Then ports wait for roots that none of their packets cross, and such waits form
//! cycles.) Nor does a root abdicate for a MERGE, of which its own packets need not be part.
//!
//! A PAUSE after a MERGE whose epoch is old is ignored (`pyrrha.merge-in-flight`). Packets that match a
//! soft-merging root keep joining its IQ while it holds any, so that none overtakes those inside
//! (`pyrrha.reorder-single-tier`); from there the congested ones go on to the IQ of the new root, where that
//! is known by then, and the others to the OQ. A device can reach a root through several of its ports: it
//! pauses an upstream neighbour while the queue of any of them asks for it, and resumes it when none does.
//!
//! **Release** (`pyrrha.unassign-signal`). In the paper a root ends when all IQs upstream are unassigned, but
//! no frame reports this. RELEASE does, hop by hop from the leaves. It repeats the sequence number of the
//! last frame that has paused its sender, and one that crosses a newer PAUSE on the wire is ignored.
//!
//! **A port's own root.** A port ignores a PAUSE that names itself (section IV-E, `pyrrha.own-root-pause`),
//! and sends a RELEASE.
//!
//! **When IQs run out**, a hash of the root (or set) picks one, which is paused while any of its roots is
//! (`pyrrha.iq-exhaustion`). In a single tier a packet whose new queue holds later ones of its flow goes to
//! the OQ.
//!
//! **Hosts** hold queue pairs back: each waits in the IQ of the nearest paused root on its path. So a paused
//! root stops its flows and no others. Or they take no notice ([`PyrrhaParams::hosts_obey`]).
//!
//! **Single tier.** There is one queue for each set of roots that packets match, which may send while none of
//! the set is paused. A packet joins the queue that holds its flow's last packet; without one, that of the
//! paused roots on its path. When its turn comes, and its path by then has other roots that are paused than
//! the queue's, it moves to the queue of these; later packets of its flow follow while it is there, so none
//! overtakes it (`pyrrha.reorder-single-tier`). A queue that is too long pauses for those of its roots that
//! are paused, or for all.
//!
//! **Lost frames.** The paper sends each frame once. A frame that a link loses is lost.

pub mod frame;
pub mod keys;
mod port;
mod queues;
pub mod report;
mod seen;
pub mod size;
mod trees;
mod words;

use super::device::Queues;
use super::pfc::{self, Pfc, PfcParams};
use super::registry::FlowControl;
use super::remarks;
use super::seam::range;
use super::seen::{RootQueues, Roots};
use super::size::links::{self, Links};
use super::{
    ControlFrame, Machine, Numbers, Parameters, PauseScope, Pulled, QueueEntry, Queueing, Scheme, Seen,
    Traits,
};
use frame::RootId;
pub use keys::{Merging, Organisation};
use port::{FlowPlaces, PortState};
use std::sync::Arc;
use trees::Trees;
use xoff_kernel::time::Time;
use xoff_net::units::{Bytes, Span};
use xoff_outcome::report::{Facts, Note, Ran, Records};

/// Other readings of rules: [`keys::PyrrhaVariant`] explains them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Variant {
    pub push: bool,
    pub reclaim_at_once: bool,
    pub hosts_are_no_leaves: bool,
    pub count_by_ingress: bool,
    pub count_over_ports: bool,
    pub merge_down_only: bool,
    pub merge_enters_resumed: bool,
    pub merging_never_pauses: bool,
}

/// Most fields are the keys of the same names ([`keys::PyrrhaKeys`]); thresholds are by port, in bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PyrrhaParams {
    pub organisation: Organisation,
    pub merging: Merging,
    pub queues: u16,
    pub k_pause: Vec<u64>,
    pub k_resume: Vec<u64>,
    pub hosts_obey: bool,
    pub acks_in_queues: bool,
    pub variant: Variant,
    /// By port: whether the link is one of a switch that supports only PFC. Empty if there is none.
    pub deaf: Vec<bool>,
    /// PFC on those links.
    pub pfc: Option<PfcParams>,
    pub places: Arc<Places>,
    /// From the arrival of a frame's last bit until it takes effect.
    pub response_time: Time,
}

impl PyrrhaParams {
    /// Whether a root stays one because a queue that is emptied into its OQ is long.
    fn waits_for_merging(&self, port: u32, state: &PortState) -> bool {
        !self.variant.merging_never_pauses && state.long_merging(self.k_resume[port as usize])
    }
}

impl Parameters for PyrrhaParams {
    fn traits(&self) -> Traits {
        // The OQ and the IQs.
        let all = 1 + self.queues;
        let numbers = Numbers { switch: all, relayed: (0, all), own: (all, all) };
        Traits {
            response_time: self.response_time,
            pause_scope: PauseScope::Root,
            also_by_lane: self.pfc.is_some(),
            queueing: Queueing::Numbered { numbers, acks: self.acks_in_queues, pulls: true, lowest: false },
            ..Traits::NONE
        }
    }

    fn root_queues(&self) -> Option<RootQueues> {
        Some(RootQueues {
            queues: self.queues,
            by_set: self.organisation == Organisation::SingleTier,
            merges: self.merging != Merging::Off,
            also_by_lane: self.pfc.is_some(),
        })
    }

    fn describe(&self, seen: &Seen<'_>) -> String {
        let shown = |values: &[u64]| range(&values[..seen.links], |&b| Bytes(b).to_string());
        let organisation = match self.organisation {
            Organisation::Hiq => "one for each root",
            Organisation::SingleTier => "one for each set of roots",
        };
        let mut text = format!(
            "(K_pause {}, K_resume {}, response time {})\n  {} isolation queues of each port, {organisation}",
            shown(&self.k_pause),
            shown(&self.k_resume),
            Span(self.response_time),
            self.queues,
        );
        match self.merging {
            Merging::Soft => {}
            Merging::Hard => text += "; the queue of a merged root accepts no more packets",
            Merging::Off => text += "; trees are not merged",
        }
        if !self.hosts_obey {
            text += "; hosts ignore its frames";
        }
        text
    }

    fn compare(&self, links: &Links<'_>, report: &mut links::Report) -> bool {
        size::compare(links, self, report);
        links.accounts(|ingress| {
            pfc::size::compare(links, ingress, self.response_time, report);
            true
        });
        true
    }

    fn notes(&self, ran: &Ran<'_>) -> Vec<Note> {
        let note =
            || remarks::paused_permanently(ran, "Pyrrha sends each frame once, and a link can lose it");
        ran.loses_frames.then(note).flatten().into_iter().collect()
    }

    fn idle(&self, ran: &Ran<'_>) -> Option<Note> {
        let help = "To make it pause, raise the load or the fan-in, or lower flow_control.k_pause.";
        remarks::never_paused(ran, "Pyrrha", |_| true, "", help)
    }

    fn start(&self, ports: usize, priorities: &[u8]) -> FlowControl {
        FlowControl::Pyrrha(Pyrrha::new(self, ports, priorities))
    }
}

/// The ports of a network, as frames name them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Places {
    /// By port: its device, and its number there.
    pub of: Vec<(u32, u16)>,
    pub ports: Vec<Vec<u32>>,
    /// By port: whether its device is a host, and whether its neighbour is one.
    pub host: Vec<bool>,
    pub to_host: Vec<bool>,
    /// By port: whether its neighbour is nearer to hosts than its device.
    pub down: Vec<bool>,
}

impl Places {
    /// The root that `port` is, with its `epoch`.
    fn id(&self, port: u32, epoch: u16) -> RootId {
        let (switch, port) = self.of[port as usize];
        RootId { switch, port, epoch }
    }

    pub fn port(&self, root: RootId) -> Option<u32> {
        self.ports.get(root.switch as usize)?.get(usize::from(root.port)).copied()
    }
}

/// The counts of [`report::FACTS`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    pub claims: u64,
    pub abdications: u64,
    pub merges: u64,
    pub releases: u64,
    pub host_releases: u64,
    pub own_roots: u64,
    pub shared: u64,
    pub moves: u64,
    /// By port: most isolation queues in use at a time, over all priorities.
    pub peak_queues: Vec<u16>,
    /// The same of those that hold packets or queue pairs.
    pub peak_filled: Vec<u16>,
}

/// A port and lane, with the index of its state.
#[derive(Clone, Copy, Debug)]
struct At {
    port: u32,
    lane: u8,
    index: usize,
}

/// Pyrrha on every port of a run; each device's state is independent.
#[derive(Clone, Debug)]
pub struct Pyrrha {
    params: PyrrhaParams,
    priorities: Vec<u8>,
    /// By port and lane.
    ports: Vec<PortState>,
    pulled: Pulled,
    trees: Trees,
    /// Single tier: where the last packets of flows wait.
    flows: FlowPlaces,
    /// On the links of switches that know nothing else.
    pfc: Option<Pfc>,
    tally: Tally,
}

impl Pyrrha {
    pub(super) fn new(params: &PyrrhaParams, ports: usize, priorities: &[u8]) -> Self {
        Self {
            params: params.clone(),
            priorities: priorities.to_vec(),
            ports: vec![PortState::default(); ports * priorities.len()],
            pulled: Pulled {
                quiet: params.k_pause.iter().flat_map(|&k| priorities.iter().map(move |_| k)).collect(),
                lanes: priorities.len(),
                pushes: params.variant.push,
                free_pairs: params.queues + 1,
            },
            trees: Trees::default(),
            flows: FlowPlaces::default(),
            pfc: params.pfc.map(|pfc| Pfc::new(pfc, ports, priorities)),
            tally: Tally { peak_queues: vec![0; ports], peak_filled: vec![0; ports], ..Tally::default() },
        }
    }

    fn at(&self, port: u32, lane: u8) -> At {
        At { port, lane, index: port as usize * self.priorities.len() + usize::from(lane) }
    }

    /// Something may have begun or ended to matter at a port.
    fn settle_quiet(&mut self, at: At) {
        let quiet = self.ports[at.index].is_quiet();
        self.pulled.quiet[at.index] = if quiet { self.params.k_pause[at.port as usize] } else { 0 };
    }

    /// At a port the numbers of queues of packets come first, and from this one on those of queue pairs.
    fn own(&self) -> u16 {
        self.params.queues + 1
    }
}

impl Machine for Pyrrha {
    const FACTS: Option<&'static Facts> = Some(&report::FACTS);

    fn timers(&self) -> usize {
        self.pfc.as_ref().map_or(0, Pfc::timers)
    }

    fn records(&self) -> Records {
        Records::of(self.tally.clone())
    }

    fn pulled(&self) -> Option<&Pulled> {
        Some(&self.pulled)
    }

    fn roots(&self) -> Option<&dyn Roots> {
        Some(self)
    }
}

impl<D: Queues> Scheme<D> for Pyrrha {
    fn base(&mut self) -> Option<&mut Pfc> {
        self.pfc.as_mut()
    }

    /// The next queue of a packet that arrives (`packet.passed` is 0), or whose turn has come in an IQ. 0 is
    /// the OQ.
    fn classify(&mut self, device: &mut D, packet: &mut QueueEntry) -> u16 {
        let at = self.at(packet.port, packet.lane);
        if self.ports[at.index].entries.is_empty() {
            return if packet.own { self.own() } else { 0 };
        }
        match (self.params.organisation, packet.own) {
            (_, true) => self.own() + self.gate(device, at, packet),
            (Organisation::Hiq, _) => self.next_level(device, at, packet),
            (Organisation::SingleTier, _) => self.set_queue(device, at, packet),
        }
    }

    /// The queue that a packet goes on to whose turn has come; of a queue pair, the one that it belongs to
    /// now.
    fn onward(&mut self, device: &mut D, packet: &mut QueueEntry) -> u16 {
        let at = self.at(packet.port, packet.lane);
        if packet.own {
            return self.classify(device, packet);
        }
        let next = match self.params.organisation {
            Organisation::Hiq => self.classify(device, packet),
            Organisation::SingleTier => self.next_set(device, at, packet),
        };
        self.tally.moves += u64::from(next > 0);
        next
    }

    fn enqueued(&mut self, device: &mut D, packet: &mut QueueEntry) {
        self.enqueued(device, packet);
    }

    fn left(&mut self, device: &mut D, packet: &mut QueueEntry) {
        self.left(device, packet);
    }

    fn received(&mut self, device: &mut D, port: u32, frame: &ControlFrame) {
        if let ControlFrame::RootPause(frame) = frame {
            self.received(device, port, frame);
        } else if let Some(pfc) = &mut self.pfc {
            pfc.received(device, port, frame);
        }
    }

    fn link_failed(&mut self, device: &mut D, port: u32, lane: u8) {
        self.link_failed(device, port, lane);
    }

    /// Both ends of a link reset their state for it when it fails.
    fn link_recovered(&mut self, _: &mut D, _: u32, _: u8, _: bool, _: Time) {}
}

/// Whether the neighbour of `port` supports only PFC.
fn is_deaf(params: &PyrrhaParams, port: u32) -> bool {
    params.deaf.get(port as usize).is_some_and(|&deaf| deaf)
}

fn ports_of(device: &impl Queues, port: u32) -> Vec<u32> {
    (0..).map_while(|i| device.port_of(port, i)).collect()
}

#[cfg(test)]
mod explore;
#[cfg(test)]
mod tests;
