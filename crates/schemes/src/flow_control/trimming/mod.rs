//! Packet trimming (Handley et al., *Re-architecting datacenter networks and stacks for low latency and high
//! performance*, SIGCOMM 2017, §3.1; SAI's packet trimming): no flow control, but a data packet without room
//! leaves its header behind.
//!
//! ```text
//!   a data packet has room       it joins the queue of its priority
//!   it has no room               one packet is cut to `trim_size` bytes, and joins the queue of `priority`:
//!     trims = "arriving"           the one that arrives
//!     trims = "arriving-or-last"   with probability 1/2 the last one of its queue, whose place it takes
//!   this has no room either      it is dropped, as is any other packet without room
//! ```
//!
//! With `arriving-or-last` each egress port draws from its own random stream. It draws only if the arriving
//! packet has room in the place of the last one and both are longer than `trim_size`; otherwise the arriving packet
//! is cut. So the queue never exceeds its limit. The last packet releases its charge, the arriving one is charged and
//! may get an ECN mark as if it had come first, and the header is charged to the port where its packet came in.
//!
//! The device cuts packets by itself ([`Traits::trims`]), so the scheme has no hook. There is room under the
//! limit of the egress queue and in the memory of the device, as without flow control. A data packet that is no
//! longer than `trim_size` goes on whole in the queue of trimmed packets, as in SONiC.
//!
//! In the books of a run the data packet ends where it is cut: its drop has the cause [`report::TRIMMED`] and the
//! bytes that were cut off, as SAI counts it. The header is a control packet of its flow from there on. So sent
//! data packets are still delivered, dropped or in flight, and every byte on a wire belongs to one packet.

pub mod keys;
pub mod report;
#[cfg(test)]
mod tests;

use super::device::Device;
use super::registry::FlowControl;
use super::seam::{Machine, Parameters, Scheme, Seen, Traits, Trim};
use keys::Trimmed;
use report::{FACTS, HEADER_LOST, Report, TRIMMED};
use xoff_net::units::Bytes;
use xoff_outcome::report::{Facts, Records};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TrimmingParams {
    /// Bytes of a trimmed packet on the wire.
    pub size: u32,
    /// 802.1p priority of trimmed packets, and its lane.
    pub priority: u8,
    pub lane: u8,
    pub trims: Trimmed,
}

/// Nothing is ever paused.
#[derive(Clone, Copy, Debug)]
pub struct Trimming;

impl Parameters for TrimmingParams {
    fn traits(&self) -> Traits {
        let last = (self.trims == Trimmed::ArrivingOrLast).then_some("trimming");
        let trim = Trim { size: self.size, lane: self.lane, cause: &TRIMMED, lost: &HEADER_LOST, last };
        Traits { trims: Some(trim), ..Traits::NONE }
    }

    fn describe(&self, _: &Seen<'_>) -> String {
        let which = match self.trims {
            Trimmed::Arriving => "packets without room",
            Trimmed::ArrivingOrLast => "packets without room, or the last ones of their queues,",
        };
        format!("({which} are cut to {}, priority {})", Bytes(u64::from(self.size)), self.priority)
    }

    fn start(&self, _: usize, _: &[u8]) -> FlowControl {
        FlowControl::Trimming(Trimming)
    }
}

impl Machine for Trimming {
    const FACTS: Option<&'static Facts> = Some(&FACTS);

    fn records(&self) -> Records {
        Records::of(Report)
    }
}

impl<D: Device> Scheme<D> for Trimming {}
