//! Every built-in scheme: a line with its name, its keys, its parameters and its state machine. Those
//! that are not built in are the variant `Own` of each enum: see [`own`].

use super::device::WholeDevice;
use super::keys::{Keys, OnPfc, Reader, Table, Unread};
use super::mac_control::MacControlFrame;
use super::own::{self, AnyMachine, OwnKeys, OwnParams};
use super::seam::{Crossing, LoopDecision, LoopPacket, Machine, Parameters, Pulled, QueueEntry, Scheme};
use super::seen::{Credits, Roots};
use super::size::question::{Question, Refusal, SizeEntry};
use super::{
    bfc, bifrost, breakers, cbfc, dsh, gfc, itsy, none, pause, per_flow_queue, pfc, portfc, pyrrha,
    roundabout,
};
use super::{swing, tagger, trimming, uec_cbfc, watchdog};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Serialize;
use std::borrow::Cow;
use std::ops::Deref;
use xoff_kernel::time::Time;
use xoff_outcome::report::{Facts, Records};
use xoff_wire::pfc::PfcFrame;
use xoff_wire::queue_pause::QueuePauseFrame;

/// From a line for each scheme: the enums of keys, parameters and state machines, and the dispatch of calls
/// to their scheme. A scheme that shares its parameters or its state machine with one above has none.
macro_rules! registry {
    ($($(#[$about:meta])* $scheme:ident = $name:literal: $keys:ty $(=> $params:ty $(=> $machine:ty)?)?;)*) => {
        /// The facts that schemes report about a run.
        pub fn facts() -> impl Iterator<Item = &'static Facts> {
            [$($($(<$machine as Machine>::FACTS,)?)?)*].into_iter().flatten().chain(own::facts())
        }

        /// The flow control of every link.
        #[derive(Clone, Debug, PartialEq, Serialize)]
        #[serde(tag = "scheme")]
        pub enum FlowControlKeys {
            $($(#[$about])* #[serde(rename = $name)] $scheme($keys),)*
            /// Of a scheme that is not built in.
            #[serde(untagged)]
            Own(OwnKeys),
        }

        impl FlowControlKeys {
            /// The names by which scenarios ask for schemes.
            pub fn names() -> Vec<&'static str> {
                [$($name),*].into_iter().chain(own::schemes().iter().map(|own| own.name)).collect()
            }

            /// The name by which the scenario asks for it.
            pub fn name(&self) -> &'static str {
                match self { $(Self::$scheme(_) => $name,)* Self::Own(own) => own.name }
            }

            /// The keys of the scheme called `name`: its own, and those of PFC if it rests on PFC.
            pub fn of(name: &str) -> [&'static [&'static str]; 2] {
                match name {
                    $($name => <$keys>::names(),)*
                    other => own::find(other).map_or([&[], &[]], |own| own.names()),
                }
            }

            /// Reads the table of the scheme called `name`, but for the keys in `passed`.
            pub fn read(name: &str, reader: &dyn Reader, passed: &[&'static str]) -> Result<Self, Unread> {
                Ok(match name {
                    $($name => Self::$scheme(<$keys>::read(reader, passed)?),)*
                    other => Self::Own(own::find(other).expect("one of the names").read(reader, passed)?),
                })
            }
        }

        impl JsonSchema for FlowControlKeys {
            fn schema_name() -> Cow<'static, str> {
                "FlowControl".into()
            }

            fn json_schema(generator: &mut SchemaGenerator) -> Schema {
                /// The flow control of every link.
                #[derive(JsonSchema)]
                #[serde(tag = "scheme")]
                #[expect(dead_code, reason = "only its schema is used")]
                enum BuiltIn {
                    $($(#[$about])* #[serde(rename = $name)] $scheme($keys),)*
                }
                let mut schema = BuiltIn::json_schema(generator);
                own::add_schemas(&mut schema, generator);
                schema
            }
        }

        impl Default for FlowControlKeys {
            fn default() -> Self {
                Self::Pfc(pfc::keys::PfcKeys::default())
            }
        }

        impl Deref for FlowControlKeys {
            type Target = dyn Keys;

            fn deref(&self) -> &Self::Target {
                match self { $(Self::$scheme(keys) => keys,)* Self::Own(own) => &*own.keys }
            }
        }

        /// The flow control of a run, with its resolved parameters.
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub enum FlowControlParams {
            $($(#[doc = concat!("Under `", $name, "`.")] $scheme($params),)?)*
            /// Under a scheme that is not built in.
            Own(OwnParams),
        }

        impl FlowControlParams {
            /// The name by which scenarios ask for it.
            pub fn name(&self) -> &'static str {
                match self {
                    $($(Self::$scheme(params) => <$params as Parameters>::alias(params).unwrap_or($name),)?)*
                    Self::Own(own) => own.name,
                }
            }
        }

        impl Deref for FlowControlParams {
            type Target = dyn Parameters;

            fn deref(&self) -> &Self::Target {
                match self {
                    $($(Self::$scheme(params) => { let params: &$params = params; params })?)*
                    Self::Own(own) => &*own.params,
                }
            }
        }

        /// The flow control of all devices of a run; each port's state is independent.
        #[derive(Debug)]
        pub enum FlowControl {
            $($($(#[doc = concat!("Under `", $name, "`.")] $scheme($machine),)?)?)*
            /// Under a scheme that is not built in.
            Own(Box<dyn AnyMachine>),
        }

        impl FlowControl {
            hooks! { @asks [$($($({ $scheme $machine })?)?)*]
                /// Number of timers that it arms, counted from 0.
                timers -> usize;
                /// Its records for the report of the run.
                records -> Records;
                /// Its state about credit, if its upstream sends on credit.
                credits -> Option<&dyn Credits>;
                /// Its device's data about its queues, if they are pulled.
                pulled -> Option<&Pulled>;
                /// Its state about roots, if it pauses by root.
                roots -> Option<&dyn Roots>;
            }
        }

        impl<D: WholeDevice> Scheme<D> for FlowControl {
            hooks! { [$($($({ $scheme $machine })?)?)*]
                fn begins(port: u32);
                fn crossed(port: u32, lane: u8, crossing: Crossing);
                fn port_crossed(port: u32, crossing: Crossing);
                fn insured(port: u32, used: u64);
                fn received(port: u32, frame: &ControlFrame);
                fn timer(timer: u32);
                fn link_failed(port: u32, lane: u8);
                fn link_recovered(port: u32, lane: u8, over: bool, settled: Time);
                fn link_reset(port: u32);
                fn may_leave(port: u32, lane: u8, size: u32) -> bool;
                fn classify(packet: &mut QueueEntry) -> u16;
                fn onward(packet: &mut QueueEntry) -> u16;
                fn enqueued(packet: &mut QueueEntry);
                fn left(packet: &mut QueueEntry);
                fn waits(ingress: u32, egress: u32, lane: u8);
                fn passes(packet: &LoopPacket) -> LoopDecision;
                fn stored(ingress: u32, lane: u8, size: u32);
                fn charged(ingress: u32, lane: u8, bytes: u64) -> u64;
                fn on_release(ingress: u32, egress: u32, lane: u8, bytes: u64);
                fn settles(port: u32, lane: u8);
                fn freed(ingress: u32, egress: u32, lane: u8, size: u32);
                fn barrier_leaves(port: u32, frame: &ControlFrame) -> bool;
            }
        }
    };
}

macro_rules! hooks {
    (@asks $states:tt $($(#[$about:meta])* $ask:ident -> $out:ty;)*) => {
        $(hooks! { @ask $states $(#[$about])* $ask -> $out })*
    };
    (@ask [$({ $state:ident $machine:ty })*] $(#[$about:meta])* $ask:ident -> $out:ty) => {
        $(#[$about])*
        #[inline]
        pub fn $ask(&self) -> $out {
            match self {
                $(Self::$state(machine) => <$machine as Machine>::$ask(machine),)*
                Self::Own(machine) => machine.$ask(),
            }
        }
    };
    ($states:tt $(fn $hook:ident $args:tt $(-> $out:ty)?;)*) => {
        $(hooks! { @hook $states $hook $args ($($out)?) })*
    };
    (@hook [$({ $state:ident $machine:ty })*] $hook:ident ($($arg:ident: $type:ty),*) ($($out:ty)?)) => {
        #[inline]
        fn $hook(&mut self, device: &mut D, $($arg: $type),*) $(-> $out)? {
            hooks! { @match self device $hook ($($arg),*) $({ $state $machine })* }
        }
    };
    (@match $self:ident $device:ident $hook:ident $args:tt $({ $state:ident $machine:ty })*) => {
        match $self {
            $(Self::$state(machine) => hooks! { @call $machine, machine $device $hook $args },)*
            Self::Own(machine) => hooks! { @own machine $device $hook $args },
        }
    };
    (@call $type:ty, $machine:ident $device:ident $hook:ident ($($arg:ident),*)) => {
        <$type as Scheme<D>>::$hook($machine, $device, $($arg),*)
    };
    (@own $machine:ident $device:ident $hook:ident ($($arg:ident),*)) => {
        $machine.$hook($device as &mut dyn WholeDevice, $($arg),*)
    };
}

registry! {
    /// Priority-based flow control, IEEE 802.1Qbb.
    Pfc = "pfc": pfc::keys::PfcKeys => pfc::PfcParams => pfc::Pfc;
    /// PFC whose packets change to a higher priority, their tag, before their routes can form a
    /// cycle of pauses (CoNEXT 2017). PortFC calls it PFC*. Above the last lossless tag packets are
    /// lossy.
    Tagger = "tagger": OnPfc<tagger::keys::TaggerKeys> => tagger::TaggerParams;
    /// Backpressure flow control (NSDI 2022): flows are assigned to a limited number of queues, and
    /// a growing queue pauses the upstream queues that fill it. No buffer is reserved: packets that
    /// do not fit are dropped.
    Bfc = "bfc": bfc::keys::BfcKeys => bfc::BfcParams => bfc::Bfc;
    /// Each flow has its own queue on every port and is paused separately: the ideal without
    /// head-of-line blocking. No buffer is reserved.
    PerFlowQueue = "per-flow-queue": per_flow_queue::keys::PerFlowQueueKeys
        => per_flow_queue::PerFlowQueueParams => per_flow_queue::PerFlowQueue;
    /// Per-port flow control for networks whose hosts relay (2026): one queue for each port through
    /// which packets leave the next switch. The next switch pauses it.
    PortFc = "portfc": portfc::keys::PortFcKeys => portfc::PortFcParams => portfc::PortFc;
    /// Congestion-root flow control (2026): what goes through a congested port waits in
    /// queues of its own at every hop before it, which that port pauses. Nothing is
    /// reserved: what does not fit is dropped.
    Pyrrha = "pyrrha": pyrrha::keys::PyrrhaKeys => pyrrha::PyrrhaParams => pyrrha::Pyrrha;
    /// Pauses long links slot by slot, by the stored bytes and the bytes that can still arrive
    /// (2024): lossless at full throughput with little more than one BDP of buffer. All other links
    /// run PFC.
    Bifrost = "bifrost": OnPfc<bifrost::keys::BifrostKeys> => bifrost::BifrostParams => bifrost::Bifrost;
    /// Bifrost for several priorities: in each slot tokens for each priority, and for all together.
    /// They share one buffer of little more than one BDP.
    BifrostX = "bifrostx": OnPfc<bifrost::keys::BifrostKeys>;
    /// Credit-based flow control as in InfiniBand: a sender sends only packets for which the
    /// receiver has granted room.
    Cbfc = "cbfc": cbfc::keys::CbfcKeys => cbfc::CbfcParams => cbfc::Cbfc;
    /// Credit-based flow control of Ultra Ethernet: a sender sends only packets for which the receiver has
    /// free cells, and says which cells lost packets would have taken.
    UecCbfc = "uec-cbfc": uec_cbfc::keys::UecCbfcKeys => uec_cbfc::UecCbfcParams => uec_cbfc::UecCbfc;
    /// Gentle flow control (SIGCOMM 2019): a full ingress lowers the rate of its neighbour step by
    /// step, and never stops it.
    Gfc = "gfc": gfc::keys::GfcKeys => gfc::GfcParams => gfc::Gfc;
    /// PFC with a relay at both ends of each long link: the relay has a buffer for one round trip
    /// and forwards pauses (SWING, TPDS 2023).
    Swing = "swing": OnPfc<swing::keys::SwingKeys> => swing::SwingParams;
    /// PFC with the watchdog of datacenter switches: a queue that is paused for too long is
    /// drained.
    Watchdog = "pfc-watchdog": OnPfc<watchdog::keys::WatchdogKeys>
        => watchdog::WatchdogParams => watchdog::Watchdog;
    /// PFC whose frames carry probes: switches find deadlocks with them and dissolve them with
    /// spare headroom (2025). Packets move around the loop until they reach their exit, in order
    /// and without loss.
    Roundabout = "roundabout": OnPfc<roundabout::keys::RoundaboutKeys>
        => roundabout::RoundaboutParams => roundabout::Roundabout;
    /// PFC with control planes that find deadlocks with probes and reroute their packets (Shpiner
    /// et al., HotNets 2016).
    Breaker = "loop-breaker": OnPfc<breakers::keys::LoopBreakerKeys>
        => breakers::BreakerParams => breakers::Breaker;
    /// The same, but the control planes give the ingress queues of a deadlock more room.
    DeadlockBreaker = "deadlock-breaker": OnPfc<breakers::keys::DeadlockBreakerKeys>;
    /// PFC whose first pauses carry a check: a queue finds a deadlock when its own check returns.
    /// The queue then drops packets or gets room (ITSY, INFOCOM 2022).
    Itsy = "itsy": OnPfc<itsy::keys::ItsyKeys> => itsy::ItsyParams => itsy::Itsy;
    /// PAUSE of the whole link, IEEE 802.3 Annex 31B: an account above its threshold pauses every
    /// priority of its peer.
    Pause = "pause": pause::keys::PauseKeys => pause::PauseParams => pause::Pause;
    /// Dynamic and shared headroom (ICDCS 2023): the headroom of all queues is part of the shared buffer,
    /// and each port has an insurance for its lossless priorities together.
    Dsh = "dsh": dsh::keys::DshKeys => dsh::DshParams => dsh::Dsh;
    /// Packet trimming (NDP, SIGCOMM 2017; SAI; Ultra Ethernet), without flow control. A data packet that
    /// does not fit is cut to its header. The header goes on in its own queue.
    Trimming = "trimming": trimming::keys::TrimmingKeys => trimming::TrimmingParams => trimming::Trimming;
    /// No flow control: packets that do not fit are dropped.
    None = "none": none::NoKeys => none::NoParams => none::NoFlowControl;
}

/// From a line for each control frame, with its parser: the enum of them, and the dispatch.
macro_rules! frames {
    ($($variant:ident($frame:ty) = $parse:expr,)*) => {
        /// A control frame between neighbours, of any scheme.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[expect(missing_docs, reason = "the frame says it")]
        pub enum ControlFrame {
            $($variant($frame),)*
        }

        impl ControlFrame {
            /// Reads a frame of a built-in scheme, as `emit` writes it. PFC comes last: the frames of schemes
            /// that extend it are also PFC's.
            pub fn parse(bytes: &[u8]) -> Option<Self> {
                let parsers: &[fn(&[u8]) -> Option<Self>] = &[$(|bytes| {
                    let parse: fn(&[u8]) -> Option<$frame> = $parse;
                    parse(bytes).map(Self::from)
                }),*];
                parsers.iter().rev().find_map(|parse| parse(bytes))
            }
        }

        $(impl From<$frame> for ControlFrame {
            fn from(frame: $frame) -> Self {
                Self::$variant(frame)
            }
        })*

        /// The value of `$result` for a control frame, with the name `$name` there, of any kind.
        macro_rules! each {
            ($self:expr, $name:ident => $result:expr) => {
                match $self { $(ControlFrame::$variant($name) => $result,)* }
            };
        }
        pub(super) use each;
    };
}

frames! {
    Pfc(PfcFrame) = |bytes| PfcFrame::parse(bytes).ok(),
    Level(dsh::frame::LevelFrame) = dsh::frame::LevelFrame::parse,
    QueuePause(QueuePauseFrame) = |bytes| QueuePauseFrame::parse(bytes).ok(),
    PortPause(portfc::frame::PortPauseFrame) = |bytes| portfc::frame::PortPauseFrame::parse(bytes).ok(),
    RootPause(pyrrha::frame::RootPauseFrame) = |bytes| pyrrha::frame::RootPauseFrame::parse(bytes).ok(),
    Feedback(bifrost::frame::FeedbackFrame) = |bytes| bifrost::frame::FeedbackFrame::parse(bytes).ok(),
    Credit(cbfc::frame::CreditPacket) = |bytes| cbfc::frame::CreditPacket::parse(bytes).ok(),
    CfUpdate(uec_cbfc::frame::CfUpdate) = |bytes| uec_cbfc::frame::CfUpdate::parse(bytes).ok(),
    CcUpdate(uec_cbfc::frame::CcUpdate) = |bytes| uec_cbfc::frame::CcUpdate::parse(bytes).ok(),
    Stages(gfc::frame::StageFrame) = |bytes| gfc::frame::StageFrame::parse(bytes).ok(),
    Stored(gfc::frame::StoredFrame) = |bytes| gfc::frame::StoredFrame::parse(bytes).ok(),
    Roundabout(roundabout::frame::RoundaboutFrame) = |bytes| roundabout::frame::RoundaboutFrame::parse(bytes).ok(),
    Itsy(itsy::frame::ItsyFrame) = |bytes| itsy::frame::ItsyFrame::parse(bytes).ok(),
    Probe(breakers::frame::ProbeFrame) = |bytes| breakers::frame::ProbeFrame::parse(bytes).ok(),
    MacControl(MacControlFrame) = pause::parse,
}

/// A scheme whose queues depend on the network.
pub struct QueueMap {
    /// The name by which scenarios ask for it.
    pub name: &'static str,
    /// The same as texts call it.
    pub title: &'static str,
    /// The numbers of queues in an NDC(n, k) that cannot be run.
    pub counted: Counted,
}

/// From n, k and whether the queues of a port are requested: a text, or the problem and the correction.
pub type Counted = fn(u32, u32, bool) -> Result<String, (String, &'static str)>;

pub const QUEUE_MAPS: [QueueMap; 1] =
    [QueueMap { name: "portfc", title: "PortFC", counted: portfc::queues::counted }];

/// The schemes that `xoff size` answers for, if the question names none.
pub const SIZE_STANDARD: [&str; 2] = ["pfc", "cbfc"];

/// Schemes under which some memory of a scenario's links is known to suffice.
pub const SIZED: [&str; 12] = [
    "pfc",
    "dsh",
    "tagger",
    "bifrost",
    "bifrostx",
    "cbfc",
    "uec-cbfc",
    "gfc",
    "swing",
    "portfc",
    "pyrrha",
    "pfc-watchdog",
];

/// The keys of slots, whose defaults `xoff size` asks with.
pub(super) type SlotKeys = bifrost::keys::BifrostKeys;

/// Returns an error for settings of a question that a scheme cannot use.
pub(super) const CHECK: fn(&Question) -> Result<(), Refusal> = bifrost::size::check;

/// The schemes of `xoff size`, in the order of its output. The last is a link layer, which runs beside each of them.
pub(super) const SIZE_FUNCTIONS: &[&[SizeEntry]] = &[
    &pfc::size::ENTRIES,
    &dsh::size::ENTRIES,
    &bifrost::size::ENTRIES,
    &cbfc::size::ENTRIES,
    &uec_cbfc::size::ENTRIES,
    &gfc::size::ENTRIES,
    &swing::size::ENTRIES,
    &pyrrha::size::ENTRIES,
    &portfc::size::ENTRIES,
    &crate::link_layer::ENTRIES,
];

#[cfg(test)]
mod tests {
    use super::super::bifrost::frame::FeedbackFrame;
    use super::super::breakers::frame::{Identifier, ProbeFrame, Word as ProbeWord};
    use super::super::cbfc::frame::{CreditPacket, Form};
    use super::super::frame::Effect;
    use super::super::gfc::frame::{StageFrame, StoredFrame};
    use super::super::itsy::frame::{Check, ItsyFrame};
    use super::super::none::NoParams;
    use super::super::notes::Notes;
    use super::super::pfc::{PfcParams, Relay};
    use super::super::portfc::frame::PortPauseFrame;
    use super::super::pyrrha::frame::{RootId, RootPauseFrame, Word};
    use super::super::roundabout::frame::{Opcode, RoundaboutFrame, Triplet};
    use super::super::uec_cbfc::frame::{CcUpdate, CfUpdate};
    use super::super::watchdog::{Action, WatchdogParams};
    use super::*;
    use xoff_wire::nodes::Nodes;
    use xoff_wire::queue_pause::Target;

    const PFC: PfcParams = PfcParams { quanta: 1_000, response_time: 0, relay: Relay::Accounts };

    fn watchdog() -> WatchdogParams {
        WatchdogParams {
            pfc: PFC,
            action: Action::Drop,
            detection: 5,
            restoration: 7,
            poll: 11,
            first: vec![],
        }
    }

    /// A call or a record that a scheme does not use is neither made nor kept: it would cost every packet.
    #[test]
    fn a_scheme_gets_only_the_calls_that_it_uses() {
        for (scheme, patience, asks, knows) in [
            (FlowControlParams::None(NoParams), 0, false, false),
            (FlowControlParams::Pfc(PFC), 0, false, false),
            (FlowControlParams::Watchdog(watchdog()), 5 + 7 + 3 * 11, false, false),
        ] {
            let traits = scheme.traits();
            assert_eq!((traits.patience, traits.asks_to_leave, traits.knows_causes), (patience, asks, knows));
        }
    }

    #[test]
    fn own_keys_come_in_their_order_and_are_none_of_pfcs() {
        for name in FlowControlKeys::names() {
            let [own, pfc] = FlowControlKeys::of(name);
            assert!(own.iter().all(|key| !pfc.contains(key)), "{name}");
            assert!(pfc.is_empty() || pfc == FlowControlKeys::of("pfc")[0], "{name}");
        }
        assert_eq!(FlowControlKeys::of("loop-breaker")[0], ["period", "latency"]);
        assert_eq!(FlowControlKeys::of("none"), [&[] as &[&str], &[]]);
    }

    #[test]
    fn a_frame_reaches_its_scheme() {
        let mut pfc = FlowControlParams::Pfc(PFC).start(2, &[3]);
        let mut device = Notes::default();
        pfc.received(&mut device, 1, &ControlFrame::Pfc(PfcFrame::single(3, 9)));
        assert!(device.log.contains(&"pause 1/0".to_string()), "{:?}", device.log);
    }

    fn credit(lane: u8, limit: u64) -> ControlFrame {
        CreditPacket::new(Form::Narrow, lane, 0, limit).into()
    }

    fn roundabout(quanta: Option<u16>) -> ControlFrame {
        let (opcode, triplet, nodes) = (Opcode::Probe, Triplet::default(), Nodes::default());
        RoundaboutFrame { priority: 3, quanta, opcode, triplet, nodes }.into()
    }

    #[test]
    fn credits_of_two_lanes_do_not_merge() {
        let mut waiting = credit(3, 10);
        assert!(!waiting.merge(&credit(5, 20)));
        assert_eq!(waiting, credit(3, 10));
        assert!(waiting.merge(&credit(3, 20)));
        assert_eq!(waiting, credit(3, 20));
    }

    #[test]
    fn a_frame_of_roundabout_pauses_by_its_quanta() {
        assert_eq!(
            [None, Some(0), Some(1)].map(|quanta| roundabout(quanta).pauses()),
            [None, Some(false), Some(true)]
        );
    }

    /// No parser accepts the frame of another scheme; that of PFC accepts a frame that carries a PFC frame.
    #[test]
    fn parsers_refuse_frames_of_other_schemes() {
        let frames: [ControlFrame; 14] = [
            PfcFrame::single(3, 9).into(),
            QueuePauseFrame { target: Target::Queue(1), priority: 3, pause: true }.into(),
            PortPauseFrame { pause: true, queue: 1, port: 2 }.into(),
            RootPauseFrame { word: Word::Pause, root: RootId::default(), priority: 3, sequence: 0 }.into(),
            FeedbackFrame::default().into(),
            credit(3, 10),
            CfUpdate::new([(3, 1), (5, 2)]).into(),
            CcUpdate { consumed: [3; 8] }.into(),
            StageFrame::single(3, 2).into(),
            StoredFrame::single(3, 2).into(),
            roundabout(None),
            ItsyFrame::alone(Check::default()).into(),
            ProbeFrame {
                word: ProbeWord::Probe,
                priority: 3,
                id: Identifier { draw: 0, port: 1 },
                ports: Nodes::default(),
            }
            .into(),
            MacControlFrame::new(1, &[0, 9], Effect::Nothing).into(),
        ];
        for frame in frames {
            let bytes = frame.emit([2; 6]);
            let read = [
                PfcFrame::parse(&bytes).ok().map(ControlFrame::from),
                QueuePauseFrame::parse(&bytes).ok().map(ControlFrame::from),
                PortPauseFrame::parse(&bytes).ok().map(ControlFrame::from),
                RootPauseFrame::parse(&bytes).ok().map(ControlFrame::from),
                FeedbackFrame::parse(&bytes).ok().map(ControlFrame::from),
                CreditPacket::parse(&bytes).ok().map(ControlFrame::from),
                CfUpdate::parse(&bytes).ok().map(ControlFrame::from),
                CcUpdate::parse(&bytes).ok().map(ControlFrame::from),
                StageFrame::parse(&bytes).ok().map(ControlFrame::from),
                StoredFrame::parse(&bytes).ok().map(ControlFrame::from),
                RoundaboutFrame::parse(&bytes).ok().map(ControlFrame::from),
                ItsyFrame::parse(&bytes).ok().map(ControlFrame::from),
                ProbeFrame::parse(&bytes).ok().map(ControlFrame::from),
                MacControlFrame::parse(&bytes, 1, |_| Effect::Nothing).map(ControlFrame::from),
            ];
            let on_pfc = matches!(frame, ControlFrame::Roundabout(_) | ControlFrame::Itsy(_));
            let read: Vec<_> = read.into_iter().skip(usize::from(on_pfc)).flatten().collect();
            assert_eq!(read, [frame]);
            let whole = match frame {
                ControlFrame::MacControl(_) => {
                    MacControlFrame::new(1, &[0, 9], Effect::Link { pause: true }).into()
                }
                frame => frame,
            };
            assert_eq!(ControlFrame::parse(&bytes), Some(whole));
        }
        assert_eq!(ControlFrame::parse(&[0; 60]), None);
    }
}

/// Help texts of the command line's options that set schemes for `xoff size`.
pub mod size_help {
    pub const SCHEME: &str =
        "Compute the needs of these schemes, such as pfc,cbfc [default: pfc,cbfc; all schemes with --json]";
    pub const MEASURE: &str =
        "Also search the least memory of each scheme by simulation of the worst cases of a link";
    pub use super::super::bifrost::size::help::*;
    pub use super::super::cbfc::size::help::*;
    pub use super::super::pfc::size::help::*;
    pub const FAN_IN: &str = "Pyrrha: neighbours that feed a congested port; PortFC: other ports of the switch; 1 to 256 [default: 1]";
}
