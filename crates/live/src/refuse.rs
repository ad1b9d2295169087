//! Plans that do not fit real frames, found before anything runs.

use crate::Clock;
use xoff_kernel::time::{SECOND, Time};
use xoff_plan::plan::Plan;
use xoff_results::capture::LARGEST_PAYLOAD;
use xoff_schemes::flow_control::FlowControlParams;
use xoff_sim::Carrier;

/// Each device has two threads and a namespace.
pub const MOST_DEVICES: usize = Carrier::DEVICES;
/// Flows have ports of their own, which are 14 bits.
const MOST_FLOWS: usize = 1 << 14;
/// Packets of a flow have numbers of 24 bits.
const MOST_PACKETS: u64 = 1 << 24;
/// Bytes of a TCP flow have numbers of 32 bits, and the first one is 1.
const MOST_BYTES: u64 = (1 << 32) - 2;
/// The label of a packet holds this much telemetry beside its payload.
const MOST_PAYLOAD: u32 = LARGEST_PAYLOAD - 12_288;
/// The longest run by the wall clock, in seconds.
const LONGEST: u64 = 3_600;

/// Why a plan cannot run on real frames, and a remedy.
#[derive(Debug, PartialEq, Eq)]
pub struct Refusal {
    /// What does not fit.
    pub why: String,
    /// What to type.
    pub help: String,
}

/// The smallest delay of a link between two devices.
pub fn least_delay(plan: &Plan) -> Time {
    let topology = &plan.topology;
    let outer = (0..).zip(&topology.ports).filter(|(port, p)| topology.neighbour(*port) != p.node);
    outer.map(|(_, port)| port.delay).min().unwrap_or(Time::MAX)
}

/// Why `plan` cannot run on real frames, if so.
pub fn refusal(plan: &Plan, clock: Clock) -> Option<Refusal> {
    let refuse = |why: String, help: &str| Some(Refusal { why, help: help.into() });
    let devices = plan.topology.nodes.len();
    let packets = plan.flows.iter().map(|f| plan.packet.packets(f.size)).max().unwrap_or(0);
    if plan.pods.is_some() {
        return refuse("pods without buffers have no queues that a device could run".into(), "use xoff run");
    }
    if devices > MOST_DEVICES {
        let why = format!("the scenario has {devices} devices; at most {MOST_DEVICES} run live");
        return refuse(why, "make the topology smaller, or use xoff run");
    }
    if plan.link_layer.is_some() {
        let why = "`link_layer` numbers frames in their preamble, and real interfaces do not show preambles";
        return refuse(why.into(), "remove [link_layer], or use xoff run");
    }
    if plan.arbiter.is_some() {
        return refuse("`transport.arbiter` sees all devices at once".into(), "remove transport.arbiter");
    }
    if let FlowControlParams::Own(_) = plan.flow_control {
        let why = format!("the frames of `{}` cannot be read: it is not built in", plan.flow_control.name());
        return refuse(why, "use a scheme of xoff schemes");
    }
    if least_delay(plan) == 0 {
        return refuse(
            "a link has no delay, so no clock separates its ends".into(),
            "set a delay of 1ns or more",
        );
    }
    if plan.flows.len() > MOST_FLOWS {
        let why = format!("the scenario has {} flows; at most {MOST_FLOWS} run live", plan.flows.len());
        return refuse(why, "lower the load or the duration");
    }
    if packets >= MOST_PACKETS {
        let why = format!("a flow has {packets} packets; packets have numbers below {MOST_PACKETS}");
        return refuse(why, "lower the size of the flows");
    }
    let largest = plan.flows.iter().map(|f| f.size).max().unwrap_or(0);
    if plan.transport.kind.traits().segments && largest > MOST_BYTES {
        let why = format!("a flow has {largest} B; TCP numbers bytes below {MOST_BYTES}");
        return refuse(why, "lower the size of the flows");
    }
    if plan.packet.mtu > MOST_PAYLOAD {
        let why = format!("transport.mtu = {}B does not fit into a frame with its trailer", plan.packet.mtu);
        return refuse(why, &format!("lower transport.mtu to {MOST_PAYLOAD}B or less"));
    }
    let (Clock::Wall { dilate }, Some(end)) = (clock, plan.end) else { return None };
    let seconds = u128::from(end) * u128::from(dilate) / u128::from(SECOND);
    if seconds > LONGEST.into() {
        let most = u128::from(LONGEST) * u128::from(SECOND) / u128::from(end);
        let why =
            format!("the run would take {seconds} s at a dilation of {dilate}; the limit is {LONGEST} s");
        return refuse(why, &format!("use --dilate {most} or less, or lower run.duration"));
    }
    None
}
