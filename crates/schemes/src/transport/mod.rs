//! Transports: how a queue pair numbers, acknowledges and repeats its packets.

pub mod dctcp;
pub mod go_back_n;
pub mod irn;
pub mod ndp;
pub mod newreno;
pub mod retries;
pub mod rud;

use crate::names::names;
use irn::{Timeouts, Timer};
use ndp::NdpParams;
use newreno::NewRenoParams;
use rud::RudParams;
use xoff_kernel::time::Time;

names! {
/// Transports.
#[schemars(rename = "TransportKind")]
pub enum Transport {
    /// One NACK per gap; the sender then retransmits every packet from the gap on.
    #[default]
    GoBackN = "go-back-n",
    /// Selective retransmission with a window of one BDP (IRN, SIGCOMM 2018).
    Irn = "irn",
    /// TCP NewReno (RFCs 5681, 6582 and 6298): a loss halves the window, which otherwise increases.
    /// It is its own congestion control.
    TcpNewReno = "tcp-newreno",
    /// TCP NewReno that reduces its window by the share of marked packets (DCTCP,
    /// SIGCOMM 2010, and RFC 8257).
    TcpDctcp = "tcp-dctcp",
    /// The receiver requests each packet after the first window, and accepts packets in any order
    /// (NDP, SIGCOMM 2017). It is made for switches that trim packets.
    Ndp = "ndp",
    /// Accepts packets in any order; only trimmed packets and timeouts are retransmitted (RUD of Ultra
    /// Ethernet). The congestion control sets the window.
    Rud = "rud",
}
}

impl Transport {
    /// Whether its receivers understand what remains of a trimmed packet.
    pub fn understands_trimmed(self) -> bool {
        matches!(self, Self::Ndp | Self::Rud)
    }

    /// Whether its packets ask for credit.
    pub fn asks_for_credit(self) -> bool {
        self == Self::Rud
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TransportParams {
    pub kind: TransportKind,
    /// The receiver acknowledges every so many packets in order, and the last one. At least 1.
    pub ack_every: u32,
    /// Longest time without progress after which a sender repeats, in picoseconds.
    pub rto: Time,
    /// After so many retries a sender gives up; `None`: never. See [`retries`].
    pub retries: Option<u8>,
    /// Most payload bytes in flight; `None` is no bound. (IRN and RUD bound each flow by itself, TCP has a
    /// receive window, NDP a first window.)
    pub window: Option<u64>,
    /// With a congestion control: a flow's rate times this round trip, in picoseconds, bounds what it has in
    /// flight, too (see [`crate::congestion_control::window_at`]).
    pub variable_window: Option<Time>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransportKind {
    GoBackN,
    /// The timeouts are of flows within a datacenter, and of flows between datacenters.
    Irn {
        intra: Timeouts,
        inter: Timeouts,
        timer: Timer,
    },
    Tcp(NewRenoParams),
    Ndp(NdpParams),
    Rud(RudParams),
}

impl TransportParams {
    /// Time between two timeouts of one packet, at least, where each packet of a flow has its timer; otherwise 0.
    /// `inter` says whether the flow is between datacenters.
    pub fn timeouts_apart(&self, inter: bool) -> Time {
        match &self.kind {
            TransportKind::Irn { inter: timeouts, .. } if inter => timeouts.low,
            TransportKind::Irn { intra, .. } => intra.low,
            TransportKind::Ndp(ndp) => ndp.rto,
            _ => 0,
        }
    }

    /// The fewest packets that an ACK may be for.
    pub fn least_per_ack(&self) -> u32 {
        if let TransportKind::Rud(_) = self.kind { 1 } else { self.ack_every.max(1) }
    }
}

impl TransportKind {
    pub fn name(&self) -> &'static str {
        let transport = match self {
            Self::GoBackN => Transport::GoBackN,
            Self::Irn { .. } => Transport::Irn,
            Self::Tcp(tcp) if tcp.dctcp.is_some() => Transport::TcpDctcp,
            Self::Tcp(_) => Transport::TcpNewReno,
            Self::Ndp(_) => Transport::Ndp,
            Self::Rud(_) => Transport::Rud,
        };
        transport.name()
    }
}
