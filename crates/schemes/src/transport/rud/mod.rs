//! RUD, the reliable unordered delivery of Ultra Ethernet (specification 1.0.x, section 3.5) for one message: each
//! packet has its place at the receiver, so a packet that is overtaken costs nothing. Congestion control gives the
//! window; see [`super::super::congestion_control::nscc`].
//!
//! Sender, over packets `0 .. total`: `inflight` counts the packets that were sent and have no answer yet, `asking`
//! those of them that ask for an ACK. `rtx` has the packets to retransmit, in the order in which they were found.
//!
//! ```text
//!   inflight < cwnd    send the first packet of rtx, or else the next new packet; inflight += 1
//!   or asking = 0      (under RCCC instead: credit > 0; under NSCC and RCCC: both).
//!                      AR (the packet asks for an ACK): it is retransmitted, or the last one, or fills
//!                      the window, or cwnd < ack_every (under RCCC instead: uses up the credit; under NSCC and
//!                      RCCC: one of them)
//!   ACK(n, s, bits)    everything below n has arrived, and s + i for each bit i that is set:
//!                      inflight −= 1 for each that was in flight
//!   NACK(p)            p was trimmed: inflight −= 1, append p to rtx, nacks += 1.
//!                      nacks > nack_retries: give up
//!   RTO                no answer for RTO_INIT·2^retry after p was sent: inflight −= 1, append p to rtx,
//!                      retry += 1.  retry > retries: give up
//!   complete           una = total
//! ```
//!
//! With loss inference, `ooo` counts the acknowledged packets beyond `una`, and MaxWnd is the largest window so far:
//!
//! ```text
//!   after each ACK     una ≥ recover: recovery ends
//!                      no recovery, rtx empty, ooo ≥ max(min(1.5·cwnd, MaxWnd), 5):
//!                      recovery begins, recover = highest
//!                      in recovery: each packet in flight from max(una, inferred) to
//!                      min(recover, una + cwnd) is lost: inflight −= 1, append it to rtx.
//!                      inferred = the end of these packets
//!   in recovery        retransmissions leave whatever the window is
//! ```
//!
//! With probes, where `base` is the round trip without load and `target` the delay of queues that counts as none:
//!
//! ```text
//!   after each ACK     the next probe is due after base + target if all has been sent, else after 3·base
//!   probe due          and something is in flight:  PROBE(k), which no window stops, k += 1;
//!                      the next one is due after 5·base
//!   PROBE(k)           the receiver: ACK at once, with k
//!   ACK of the last probe, less than base + target after it has left:
//!                      each packet in flight that left before it is lost: inflight −= 1, append it to
//!                      rtx.  If there are any, recovery begins, recover = inferred = highest
//! ```
//!
//! These are the rules of uet-htsim (`runSleek`, `sendProbe`), with two differences. There an ACK of a probe shows
//! the loss of a window of packets, whenever they left. And ACKs there have a field with the number of packets out of
//! order (ooo_count); here the sender counts those that the bitmaps have named: fewer, if ACKs were lost. Without
//! probes a retransmission that is lost again waits for its timeout. Under RCCC (ours) one packet may leave without
//! credit after an inferred loss, and tells the receiver what the sender wants.
//!
//! Receiver: `expected` is the next packet in order, `count` the packets since the last ACK.
//!
//! ```text
//!   packet p           keep it; count += 1. ACK at once if it is marked, asks for an ACK, has arrived
//!                      before or is the first one; if count = ack_every; and if a packet has asked
//!                      for an ACK since the last time without a gap, and no gap is left
//!   ACK                (expected, s, bits): s = max(p − 63, expected + 1), bits for s .. s + 64
//!   header p           NACK(p); ACK if p has arrived before
//! ```
//!
//! A gap causes no NACK. The credits of receivers are in [`super::super::congestion_control::rccc`].
//!
//! The text of the specification was not at hand. The rules come from public notes on it, and where these are silent
//! (AR, the ACKs, `s`) from the simulator uet-htsim. A retransmission after a NACK does not count as a retry: the
//! network has answered. A sender that gives up (the specification closes the context with an error after
//! Max_RTO_Retx_Cnt retries of one packet, and after Max_NACK_Retx_Cnt retransmissions because of NACKs) sends nothing
//! more.
//!
//! `asking = 0` is a rule of ours. If the window shrinks after the last packet left, fewer packets than `ack_every` may
//! be in flight, and none of them asks for an ACK. One packet beyond the window then does, instead of a timeout.

pub mod ends;
mod keys;
mod receiver;
mod source;
#[cfg(test)]
pub mod tests;

pub use keys::RudKeys;
pub use receiver::{Receiver, Reception};
pub use source::Source;

use xoff_kernel::time::{SECOND, Time};

/// Largest RTO.
const LONGEST: Time = 8 * SECOND;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RudParams {
    /// RTO_INIT, in picoseconds.
    pub rto: Time,
    /// Windows below so many packets make each packet ask for an ACK.
    pub ack_every: u32,
    /// Max_RTO_Retx_Cnt: most retries of a packet after timeouts; `None` is no limit.
    pub retries: Option<u8>,
    /// Max_NACK_Retx_Cnt: most retransmissions of a packet after NACKs; `None` is no limit.
    pub nack_retries: Option<u8>,
    /// Losses are inferred from packets that arrive out of order.
    pub infers_losses: bool,
    /// Losses are inferred from the ACKs of probes, too.
    pub probes: Option<Probes>,
}

/// When a sender probes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Probes {
    /// The round trip without load, in picoseconds, above 0.
    pub base: Time,
    /// The delay of queues that an ACK of a probe may have met, in picoseconds.
    pub target: Time,
}

/// Probes are numbered modulo this.
pub const PROBES: u32 = 1 << 24;

impl RudParams {
    /// After so many timeouts.
    pub fn timeout(&self, retry: u8) -> Time {
        let doubled = u64::from(retry.min(63));
        self.rto.saturating_mul(1 << doubled).min(LONGEST.max(self.rto))
    }
}
