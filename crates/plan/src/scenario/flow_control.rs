//! The `[flow_control]` table of the schemes that queue by flow.

use super::defaults;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use xoff_kernel::time::MILLISECOND;
use xoff_net::units::{Bytes, Span, Threshold};

/// BFC, after Goyal et al., Backpressure Flow Control, NSDI 2022.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Bfc {
    /// Queues of a port and priority, 2 to 1024. Number 0 is for ACKs; flows
    /// are assigned to the others. The papers use 32 and 128.
    #[serde(default = "bfc_queues")]
    #[schemars(range(min = 2, max = 1024))]
    pub queues: u32,
    /// Numbers that flows are hashed to, 1 to 16777216; flows of one number are
    /// one to BFC.
    #[serde(default = "virtual_flows")]
    #[schemars(range(min = 1, max = 16_777_216))]
    pub virtual_flows: u32,
    /// Hop round trip. A packet that finds its queue longer than the egress
    /// rate times this, divided by the port's active queues, pauses the upstream
    /// queue. Twice the delay of the link it came through if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hop_rtt: Option<Span>,
    /// A flow keeps its queue for so many hop round trips after its last packet
    /// has left, 0 to 1000.
    #[serde(default = "keep")]
    #[schemars(range(max = 1000))]
    pub keep: u32,
    /// A queue that is empty and only being kept may be given to another flow.
    #[serde(default)]
    pub reuse_kept: bool,
    /// Least time between two resume frames that one egress queue causes; 0
    /// resumes at once.
    #[serde(default = "defaults::zero_time")]
    pub resume_interval: Span,
    /// Where ACKs wait.
    #[serde(default)]
    pub acks: BfcAcks,
    /// From the arrival of a pause or resume frame until it takes effect.
    #[serde(default = "defaults::zero_time")]
    pub response_time: Span,
    /// A pause lasts so long, 1 us or more, and is repeated after half of it: so a
    /// lost resume does not pause for ever. Default: none in a run without failures
    /// and losses, where a pause holds until its resume; else 100 us.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pause_time: Option<Span>,
}

/// Where ACKs wait under BFC.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum BfcAcks {
    /// In queue 0, served first and never paused.
    #[default]
    Control,
    /// In queues 1 and up, as flows of their own.
    Queues,
}

/// Per-flow queues. ACKs have a queue that is served first and never paused.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PerFlowQueue {
    /// A flow is paused at its previous hop when its queue holds this much. In
    /// bytes, or in BDP (rate times one-way delay) of the link it comes through;
    /// at least one largest packet is meant in any case.
    #[serde(default = "two_bdp")]
    pub xoff: Threshold,
    /// It is resumed when its queue holds no more than this. Default: half of `xoff`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub xon: Option<Threshold>,
    /// From the arrival of a pause or resume frame until it takes effect.
    #[serde(default = "defaults::zero_time")]
    pub response_time: Span,
    /// A pause lasts so long, 1 us or more, and is repeated after half of it: so a
    /// lost resume does not pause for ever. Default: none in a run without failures
    /// and losses, where a pause holds until its resume; else 100 us.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pause_time: Option<Span>,
}

fn bfc_queues() -> u32 {
    32
}

fn virtual_flows() -> u32 {
    16_384
}

fn keep() -> u32 {
    2
}

fn two_bdp() -> Threshold {
    "2bdp".parse().expect("a threshold")
}

impl Default for SwingKeys {
    fn default() -> Self {
        SwingKeys {
            relay_buffer: None,
            relay_limit: None,
            relay_xoff: None,
            relay_xon: None,
            switch_side: SwitchSide::default(),
            relay_delay: defaults::zero_time(),
        }
    }
}

impl Default for Bfc {
    fn default() -> Self {
        Bfc {
            queues: bfc_queues(),
            virtual_flows: virtual_flows(),
            hop_rtt: None,
            keep: keep(),
            reuse_kept: false,
            resume_interval: defaults::zero_time(),
            acks: BfcAcks::default(),
            response_time: defaults::zero_time(),
            pause_time: None,
        }
    }
}

impl Default for PerFlowQueue {
    fn default() -> Self {
        PerFlowQueue { xoff: two_bdp(), xon: None, response_time: defaults::zero_time(), pause_time: None }
    }
}

/// When hosts that relay pause their neighbours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Relay {
    /// As switches do: by what each ingress has brought.
    #[default]
    Accounts,
    /// Besides, a host that is paused on one port pauses all its other
    /// neighbours at once, whether or not anything has to wait.
    Blind,
}

impl Relay {
    /// Whether it is the default, which has a meaning only where hosts relay.
    pub(super) fn is_accounts(&self) -> bool {
        *self == Self::Accounts
    }
}

/// SWING: keys of its relays, and those of PFC on all other links.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Swing {
    /// Relays.
    #[serde(flatten)]
    pub relays: SwingKeys,
    /// Links that lead to no relay. `relay` is `"accounts"`.
    #[serde(flatten)]
    pub pfc: super::Pfc,
}

/// Relays, one in each end of each long link.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SwingKeys {
    /// Memory of a relay for what comes in over its long link, for each lossless
    /// priority. Default: PFC's headroom of the long link (a round trip, the response
    /// time, packets) and two largest packets; and that headroom once more where there
    /// are data of several lossless priorities.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub relay_buffer: Option<Bytes>,
    /// A relay pauses its peer of its own accord while it holds so much of what came
    /// in over its long link. Default: `relay_buffer`, which pauses that are passed on
    /// do not let it exceed; where there are data of several lossless priorities, PFC's
    /// headroom of the long link below it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub relay_limit: Option<Bytes>,
    /// Between a relay and its switch each of the two pauses the other when it holds
    /// so much of what came from there. Default 198 KiB.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub relay_xoff: Option<Bytes>,
    /// It resumes the other when it holds no more than this. Default: 16 largest packets
    /// below `relay_xoff`, or half of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub relay_xon: Option<Bytes>,
    /// What rules at the switch's end of the cable to its relay.
    #[serde(default, skip_serializing_if = "SwitchSide::is_default")]
    #[schemars(extend("default" = SwitchSide::default()))]
    pub switch_side: SwitchSide,
    /// Delay of the cable between a relay and its switch, which has the rate of the
    /// long link.
    #[serde(default = "defaults::zero_time")]
    pub relay_delay: Span,
}

/// When a switch pauses the relay beside it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SwitchSide {
    /// At the relay's own thresholds, `relay_xoff` and `relay_xon`.
    #[default]
    Relay,
    /// As it pauses its other neighbours, by PFC's keys.
    Pfc,
}

impl SwitchSide {
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// The PFC watchdog: keys of its own, and those of PFC.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct PfcWatchdog {
    /// When queues are taken for the victims of storms, and what is done.
    #[serde(flatten)]
    pub watch: WatchdogKeys,
    /// Pauses.
    #[serde(flatten)]
    pub pfc: super::Pfc,
}

/// When a queue that is paused is taken for the victim of a storm of pauses.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WatchdogKeys {
    /// What is done about a storm.
    #[serde(default)]
    pub action: WatchdogAction,
    /// A queue that has been paused without a break for so long, with something to
    /// send, is in a storm. Default as in SONiC and in Roundabout's paper, section VI-E.
    #[serde(default = "watchdog_time")]
    pub detection_time: Span,
    /// A storm is over when no pause frame has come for so long.
    #[serde(default = "watchdog_time")]
    pub restoration_time: Span,
    /// A device looks at its queues so often, beginning at a random time of its own; no
    /// longer than either of the other two. Default: 200 ms as there, or the shorter of
    /// the other two if that is less.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub poll: Option<Span>,
}

/// What is done about a storm.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum WatchdogAction {
    /// What waits in the queue and what comes for it is dropped.
    #[default]
    Drop,
    /// The queue sends although it is paused; what the peer has no room for is lost.
    Forward,
    /// The storm is only told of.
    Alert,
}

impl Default for WatchdogKeys {
    fn default() -> Self {
        WatchdogKeys {
            action: WatchdogAction::default(),
            detection_time: watchdog_time(),
            restoration_time: watchdog_time(),
            poll: None,
        }
    }
}

impl WatchdogKeys {
    /// Between two polls.
    pub(crate) fn poll(&self) -> Span {
        let least = self.detection_time.0.min(self.restoration_time.0);
        self.poll.unwrap_or(Span(least.min(watchdog_time().0)))
    }
}

/// SONiC's default for all three times on switches of up to 32 ports (`pfcwd`).
fn watchdog_time() -> Span {
    Span(200 * MILLISECOND)
}

/// Tagger: keys of its own, and those of PFC.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Tagger {
    /// How tags grow.
    #[serde(flatten)]
    pub tags: TaggerKeys,
    /// Pauses of each tag. `priorities` are those that lossless packets start
    /// with; `relay` is `"accounts"`.
    #[serde(flatten)]
    pub pfc: super::Pfc,
}

/// How tags grow.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TaggerKeys {
    /// Where a tag grows by one.
    #[serde(default)]
    pub rule: TagRule,
    /// Lossless tags of a packet, its own priority included, 1 to 7. Default: as
    /// many as the routes need.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 7))]
    pub lossless: Option<u8>,
    /// Priority of packets whose tag has grown beyond the last lossless one.
    /// Default: the lowest that is no tag.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(max = 7))]
    pub lossy: Option<u8>,
}

/// Where a tag grows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TagRule {
    /// Where a packet that came down goes up again. Up leads away from the
    /// hosts; among switches equally far from them, to the one with the higher
    /// number.
    #[default]
    Bounce,
    /// At every device, but where a switch sends to a host: the tag counts the
    /// switches on the way.
    Hop,
}

/// PortFC, per-port flow control for networks whose hosts relay (2026). All data
/// has one priority; ACKs and notifications have a better one, 7 if
/// `transport.ack_priority` is not given.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PortFc {
    /// A switch port whose forwarding queues hold this much together pauses what
    /// feeds them. In bytes, or in BDP (rate times one-way delay) of its link.
    #[serde(default = "six_bdp")]
    pub xoff: Threshold,
    /// They are resumed when they hold no more than this. Default: two thirds of
    /// `xoff`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub xon: Option<Threshold>,
    /// The same of its destination-direct queue. Default: `xoff`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ddq_xoff: Option<Threshold>,
    /// The same of its destination-direct queue. Default: two thirds of
    /// `ddq_xoff`, or `xon` where neither is given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ddq_xon: Option<Threshold>,
    /// When a host serves what it relays, beside its own traffic.
    #[serde(default)]
    pub relay_queue: PortFcRelay,
    /// How many flags a switch port has.
    #[serde(default)]
    pub flags: PortFcFlags,
    /// Hosts pass frames about destination-direct queues on to their other ports.
    #[serde(default = "defaults::yes")]
    pub relay_signals: bool,
    /// From the arrival of a pause or resume frame until it takes effect.
    #[serde(default = "defaults::zero_time")]
    pub response_time: Span,
}

/// When a host serves what it relays.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PortFcRelay {
    /// Before its own traffic.
    #[default]
    First,
    /// In turn with it, half of the wire for each.
    Turns,
    /// Behind it.
    Last,
}

/// How many flags tell a switch port whom it has paused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PortFcFlags {
    /// One for its forwarding queues, one for its destination-direct queue.
    #[default]
    Two,
    /// One for both, as the paper's algorithms print it.
    One,
}

/// Pyrrha, flow control by congestion roots (2026). Nothing is reserved: what does not
/// fit is dropped, and a transport that repeats selectively (`irn`) suits it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Pyrrha {
    /// How isolation queues are organised.
    #[serde(default)]
    pub organisation: PyrrhaOrganisation,
    /// Isolation queues of a port and priority, 1 to 1024. When they run out, roots
    /// share them.
    #[serde(default = "pyrrha_queues")]
    #[schemars(range(min = 1, max = 1024))]
    pub queues: u32,
    /// A queue that holds more than this pauses who sends to it, K_pause. In bytes, or
    /// in BDP (rate times one-way delay) of its port's link: the paper's two hop BDPs,
    /// which are of a hop's round trip, are `"4bdp"`.
    #[serde(default = "four_bdp")]
    pub k_pause: Threshold,
    /// They are resumed when it holds no more than this, K_resume. Default: half of
    /// `k_pause`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub k_resume: Option<Threshold>,
    /// What becomes of the tree of a port that turns out to be no root.
    #[serde(default)]
    pub merging: PyrrhaMerging,
    /// Whether hosts hold back flows that go through a paused root.
    #[serde(default)]
    pub hosts: PyrrhaHosts,
    /// Where ACKs wait.
    #[serde(default)]
    pub acks: PyrrhaAcks,
    /// Rules that are read otherwise than here, to see what they do.
    #[serde(default)]
    pub variants: Vec<PyrrhaVariant>,
    /// Switches that know PFC and not Pyrrha: every link of theirs runs PFC.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub legacy: Option<PyrrhaLegacy>,
    /// From the arrival of a frame until it takes effect.
    #[serde(default = "defaults::zero_time")]
    pub response_time: Span,
}

/// A rule of Pyrrha that is read otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PyrrhaVariant {
    /// While the wire is busy every isolation queue that may send feeds the output queue
    /// a packet for each that is sent, rather than in turn with it.
    Push,
    /// A port that has abdicated may claim to be a root with the next packet.
    ReclaimAtOnce,
    /// Switches do not wait for what hosts release, and hosts release nothing.
    HostsAreNoLeaves,
    /// An isolation queue pauses and resumes a neighbour by what has come from it alone,
    /// rather than by its length.
    CountByIngress,
}

/// Switches that know PFC and not Pyrrha.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PyrrhaLegacy {
    /// Their names.
    pub switches: Vec<String>,
    /// PFC on their links: an ingress pauses its peer at this multiple of what is free of
    /// the shared buffer. Default 0.125.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub alpha: Option<f64>,
}

/// How isolation queues are organised.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PyrrhaOrganisation {
    /// Hierarchical: one for each root, which packets pass through from near to far.
    #[default]
    Hiq,
    /// One for each set of roots.
    SingleTier,
}

/// What becomes of the tree of a port that turns out to be no root.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PyrrhaMerging {
    /// It is merged into that of the root; packets that wait for the old one are sorted
    /// anew in order.
    #[default]
    Soft,
    /// The same, but later packets do not wait behind those: flows are reordered.
    Hard,
    /// It stays.
    Off,
}

/// Whether hosts hold back flows that go through a paused root.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PyrrhaHosts {
    /// They do, and hold back no others.
    #[default]
    Obey,
    /// They take no notice of frames.
    Ignore,
}

/// Where ACKs wait under Pyrrha.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PyrrhaAcks {
    /// As data do; they can be held back by a root on their own way.
    #[default]
    Queues,
    /// In a queue of their own, served first and never paused.
    Control,
}

fn pyrrha_queues() -> u32 {
    100
}

fn four_bdp() -> Threshold {
    "4bdp".parse().expect("a threshold")
}

impl Default for Pyrrha {
    fn default() -> Self {
        Pyrrha {
            organisation: PyrrhaOrganisation::default(),
            queues: pyrrha_queues(),
            k_pause: four_bdp(),
            k_resume: None,
            merging: PyrrhaMerging::default(),
            hosts: PyrrhaHosts::default(),
            acks: PyrrhaAcks::default(),
            variants: Vec::new(),
            legacy: None,
            response_time: defaults::zero_time(),
        }
    }
}

fn six_bdp() -> Threshold {
    "6bdp".parse().expect("a threshold")
}

impl Default for PortFc {
    fn default() -> Self {
        PortFc {
            xoff: six_bdp(),
            xon: None,
            ddq_xoff: None,
            ddq_xon: None,
            relay_queue: PortFcRelay::default(),
            flags: PortFcFlags::default(),
            relay_signals: true,
            response_time: defaults::zero_time(),
        }
    }
}
