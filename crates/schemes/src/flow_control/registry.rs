//! Every built-in scheme: one line for its parameters, and one for its state where that is its own.

use super::bfc::{Bfc, BfcParams};
use super::bifrost::slots::SlotParams;
use super::bifrost::{Bifrost, BifrostParams};
use super::breakers::{Breaker, BreakerParams};
use super::cbfc::{Cbfc, CbfcParams};
use super::device::WholeDevice;
use super::frame::ControlFrame;
use super::itsy::{Itsy, ItsyParams};
use super::none::{NoFlowControl, NoParams};
use super::per_flow_queue::{PerFlowQueue, PerFlowQueueParams};
use super::pfc::{Pfc, PfcParams};
use super::portfc::{PortFc, PortFcParams};
use super::pyrrha::{Pyrrha, PyrrhaParams};
use super::roundabout::dissolve::{Passage, Passenger};
use super::roundabout::{Roundabout, RoundaboutParams};
use super::seam::{Crossing, Machine, Parameters, Passing, Scheme, Traits};
use super::seen::{Credits, Pausers, Roots};
use super::swing::SwingParams;
use super::tagger::TaggerParams;
use super::watchdog::{Watchdog, WatchdogParams};
use xoff_kernel::time::Time;
use xoff_outcome::report::{Facts, Records};

/// Writes the enums of parameters and of state machines, and has each call reach its scheme.
macro_rules! registry {
    (
        parameters { $($(#[$about:meta])* $scheme:ident($params:ty),)* }
        machines { $($(#[$what:meta])* $state:ident($machine:ty) $(tells $facts:path)?,)* }
    ) => {
        /// What the schemes tell of a run.
        pub fn facts() -> Vec<&'static Facts> {
            vec![$($(&$facts,)?)*]
        }

        /// The flow control of a run, with its resolved parameters.
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub enum FlowControlParams {
            $($(#[$about])* $scheme($params),)*
        }

        impl FlowControlParams {
            /// The name by which scenarios ask for it.
            pub fn name(&self) -> &'static str {
                match self { $(Self::$scheme(params) => params.name(),)* }
            }

            /// What the scheme is, as plain data.
            pub fn traits(&self) -> Traits {
                match self { $(Self::$scheme(params) => params.traits(),)* }
            }

            /// The parameters of PFC, where it (or what rests on it) runs.
            pub fn pfc(&self) -> Option<&PfcParams> {
                match self { $(Self::$scheme(params) => params.pfc(),)* }
            }

            /// What the ingress of `port` grants its peer by, if it grants slots.
            pub fn slots(&self, port: u32) -> Option<&SlotParams> {
                match self { $(Self::$scheme(params) => params.slots(port),)* }
            }

            /// Where each pause names a port, the queues that keep queue `queue` of `port` paused.
            pub fn pausers(&self, port: u32, queue: u16) -> Option<Pausers> {
                match self { $(Self::$scheme(params) => params.pausers(port, queue),)* }
            }

            /// The state machines of `ports` ports with the given lanes' priorities.
            pub fn start(&self, ports: usize, priorities: &[u8]) -> FlowControl {
                match self { $(Self::$scheme(params) => params.start(ports, priorities),)* }
            }
        }

        /// The flow control of all devices of a run; each port's state stands alone.
        #[derive(Clone, Debug)]
        pub enum FlowControl {
            $($(#[$what])* $state($machine),)*
        }

        impl FlowControl {
            /// Number of timers that it arms, counted from 0.
            pub fn timers(&self) -> usize {
                match self { $(Self::$state(machine) => machine.timers(),)* }
            }

            /// What it has recorded for the report of the run.
            pub fn records(&self) -> Records {
                match self { $(Self::$state(machine) => machine.records(),)* }
            }
        }

        impl<D: WholeDevice> Scheme<D> for FlowControl {
            fn makes_room(&self, device: &D, ingress: u32, egress: u32, lane: u8) -> Option<u32> {
                match self { $(Self::$state(machine) => machine.makes_room(device, ingress, egress, lane),)* }
            }

            hooks! { [$($state)*]
                fn begins(port: u32);
                fn crossed(port: u32, lane: u8, crossing: Crossing);
                fn received(port: u32, frame: &ControlFrame);
                fn timer(timer: u32);
                fn link_failed(port: u32, lane: u8);
                fn link_recovered(port: u32, lane: u8, over: bool, settled: Time);
                fn link_reset(port: u32);
                fn may_leave(port: u32, lane: u8, size: u32) -> bool;
                fn classify(packet: &mut Passing) -> u16;
                fn onward(packet: &mut Passing) -> u16;
                fn enqueued(packet: &mut Passing);
                fn left(packet: &mut Passing);
                fn waits(ingress: u32, egress: u32, lane: u8);
                fn passes(packet: &Passenger) -> Passage;
                fn stored(ingress: u32, lane: u8, size: u32);
                fn freed(ingress: u32, egress: u32, lane: u8, size: u32);
                fn barrier_leaves(port: u32, frame: &ControlFrame) -> bool;
            }
        }
    };
}

macro_rules! hooks {
    ($states:tt $(fn $hook:ident $args:tt $(-> $out:ty)?;)*) => {
        $(hooks! { @hook $states $hook $args ($($out)?) })*
    };
    (@hook [$($state:ident)*] $hook:ident ($($arg:ident: $type:ty),*) ($($out:ty)?)) => {
        #[inline]
        fn $hook(&mut self, device: &mut D, $($arg: $type),*) $(-> $out)? {
            hooks! { @match self device $hook ($($arg),*) $($state)* }
        }
    };
    (@match $self:ident $device:ident $hook:ident $args:tt $($state:ident)*) => {
        match $self { $(Self::$state(machine) => hooks! { @call machine $device $hook $args },)* }
    };
    (@call $machine:ident $device:ident $hook:ident ($($arg:ident),*)) => {
        Scheme::<D>::$hook($machine, $device, $($arg),*)
    };
}

registry! {
    parameters {
        /// None: what does not fit is dropped.
        None(NoParams),
        /// IEEE 802.1Qbb.
        Pfc(PfcParams),
        /// The same with priorities that grow on the way.
        Tagger(TaggerParams),
        /// Backpressure flow control: pauses queues that flows are assigned to.
        Bfc(BfcParams),
        /// A queue and a pause of its own for every flow.
        PerFlowQueue(PerFlowQueueParams),
        /// Per-port flow control of networks whose nodes relay.
        PortFc(PortFcParams),
        /// Congestion-root flow control.
        Pyrrha(PyrrhaParams),
        /// Pauses by slots on long links, and PFC on all others.
        Bifrost(BifrostParams),
        /// InfiniBand's credits.
        Cbfc(CbfcParams),
        /// PFC, and relays in the ends of long links.
        Swing(SwingParams),
        /// PFC, and queues that are paused for too long are drained.
        Watchdog(WatchdogParams),
        /// PFC whose frames carry probes for deadlocks.
        Roundabout(RoundaboutParams),
        /// PFC whose first pauses carry checks for deadlocks.
        Itsy(ItsyParams),
        /// PFC, and control planes that look for deadlocks.
        Breaker(BreakerParams),
    }
    machines {
        /// Nothing is ever paused.
        None(NoFlowControl),
        /// 802.1Qbb; also under Tagger and SWING, where devices rewrite tags and relay.
        Pfc(Pfc),
        /// Backpressure flow control.
        Bfc(Bfc),
        /// A queue for each flow.
        PerFlowQueue(PerFlowQueue),
        /// Per-port flow control.
        PortFc(PortFc),
        /// Congestion-root flow control.
        Pyrrha(Pyrrha) tells super::pyrrha::report::FACTS,
        /// Pauses by slots on long links.
        Bifrost(Bifrost) tells super::bifrost::report::FACTS,
        /// InfiniBand's credits.
        Cbfc(Cbfc),
        /// 802.1Qbb, watched.
        Watchdog(Watchdog) tells super::watchdog::report::FACTS,
        /// Deadlocks found by election.
        Roundabout(Roundabout) tells super::roundabout::report::FACTS,
        /// Deadlocks found by those that began them.
        Itsy(Itsy) tells super::itsy::report::FACTS,
        /// Deadlocks found by control planes.
        Breaker(Breaker) tells super::breakers::report::FACTS,
    }
}

impl FlowControl {
    /// What it knows of credit, if its upstream sends on credit.
    pub fn credits(&self) -> Option<&dyn Credits> {
        match self {
            Self::Cbfc(cbfc) => Some(cbfc),
            _ => None,
        }
    }

    /// What it knows of roots, if it pauses by root.
    pub fn roots(&self) -> Option<&dyn Roots> {
        match self {
            Self::Pyrrha(pyrrha) => Some(pyrrha),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::notes::Notes;
    use super::super::pfc::{PfcParams, Relay};
    use super::super::watchdog::{Action, WatchdogParams};
    use super::*;
    use xoff_wire::pfc::PfcFrame;

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

    /// What a scheme has no use for is neither asked nor kept: it would cost every packet.
    #[test]
    fn a_scheme_is_asked_for_what_it_has_a_use_for() {
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
    fn a_frame_reaches_its_scheme() {
        let mut pfc = FlowControlParams::Pfc(PFC).start(2, &[3]);
        let mut device = Notes::default();
        pfc.received(&mut device, 1, &ControlFrame::Pfc(PfcFrame::single(3, 9)));
        assert!(device.log.contains(&"pause 1/0".to_string()), "{:?}", device.log);
    }
}
