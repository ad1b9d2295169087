//! The seam between the simulator and load balancing: rules by which switches choose paths, and rules by which senders
//! label their packets.

use xoff_kernel::time::Time;
use xoff_outcome::report::{Facts, Records};

/// A packet whose route forks.
#[derive(Clone, Copy, Debug)]
pub struct Arrival {
    pub flow: u32,
    pub now: Time,
}

/// The paths that a device chooses among, in a fixed order: at least 1 and at most 2^16 − 1.
#[derive(Clone, Copy, Debug)]
pub struct Offer<'a> {
    pub paths: usize,
    /// So many of them, the first ones, are minimal. After failures there may be none.
    pub minimal: usize,
    /// Under rules with non-minimal paths: the links between switches on each path. Else empty.
    pub links: &'a [u8],
}

/// A rule by which devices choose a path for each data packet.
pub trait SwitchRule: Copy {
    /// The name of the devices' random streams.
    const STREAM: &'static str;

    /// Whether packets may take non-minimal paths.
    const NON_MINIMAL: bool = false;

    /// What a device remembers of a set of equal ports, in so many places.
    type Place: Copy;
    const EMPTY: Self::Place;

    fn places(&self) -> usize {
        0
    }

    /// The number of the chosen path. `memory` is that of its set of ports; `draw(n)` is a uniform number below n;
    /// `load` is the bytes in the egress queues of all priorities at the first port of a path, without the packet on
    /// the wire.
    fn choose(
        &self,
        memory: &mut [Self::Place],
        packet: Arrival,
        offer: Offer<'_>,
        draw: impl FnMut(u64) -> u64,
        load: impl Fn(usize) -> u64,
    ) -> usize;

    /// How it chooses, after "devices choose a path for each data packet, ".
    fn describe(&self) -> String;
}

/// How the network treated a packet with a label.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Label {
    pub number: u16,
    /// It was marked, or trimmed.
    pub congested: bool,
}

/// What receivers return to senders.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ack {
    pub now: Time,
    /// Packets that it acknowledges for the first time.
    pub newly_acknowledged: u32,
    /// Under rules that count marks: marked packets since the last ACK.
    pub marked: u32,
    /// Under rules with a label for each packet: that of the packet that it answers.
    pub label: Option<Label>,
    /// All packets below these numbers are acknowledged now, and have been sent.
    pub acknowledged: u32,
    pub sent: u32,
}

/// A rule by which a sender labels its packets. The hash maps each label to a path.
pub trait SenderRule: Copy {
    /// The name of the flows' random streams.
    const STREAM: &'static str;

    /// Whether each packet can have another label, which its ACK returns. Otherwise a flow has one label for some time,
    /// and its ACKs return the number of marked packets.
    const EACH_PACKET: bool;

    /// What it reports about a run.
    const FACTS: &'static Facts;

    /// The sender of a flow. Its first label is 0, unless each packet has one.
    type Sender: Clone + Default;

    /// Labels of a flow, at least 2 and at most 2^16.
    fn labels(&self) -> u32;

    /// The label of a packet that leaves, if each packet has one. `draw(n)` is a uniform number below n.
    fn next(&self, sender: &mut Self::Sender, draw: impl FnMut(u64) -> u64) -> u32;

    /// An ACK or NACK has arrived. Returns the label of all further packets, if it changes.
    fn on_ack(&self, sender: &mut Self::Sender, ack: &Ack, draw: impl FnMut(u64) -> u64) -> Option<u32>;

    /// The flow has timed out. Returns the same.
    fn on_timeout(&self, sender: &mut Self::Sender, now: Time, draw: impl FnMut(u64) -> u64) -> Option<u32>;

    /// The last label leads to another route than the one before.
    fn on_move(&self, sender: &mut Self::Sender);

    /// The record of all flows, of which so many have more than one route.
    fn records(senders: &[Self::Sender], with_choice: u64) -> Records;

    /// What its senders do, and its parameters: the ends of two lines.
    fn describe(&self) -> [String; 2];
}
