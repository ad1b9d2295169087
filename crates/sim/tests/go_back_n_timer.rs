//! The retransmission timer of go-back-N goes off to the picosecond: one `rto` after the last
//! progress, after the last timeout, or after the first packet in flight.

use crate::common;

use common::{fcts, plan, run};

/// Packets of 1000 B and ACKs of 64 B at 100 Gbit/s, over two links of 1 us each.
const PACKET: u64 = 80_000;
const ACK: u64 = 5_120;
const DELAY: u64 = 1_000_000;
/// From the start of a packet to its ACK, with nothing else on the links.
const ROUND_TRIP: u64 = 2 * PACKET + 2 * ACK + 4 * DELAY;

/// Completion time and timeouts of a flow of `packets` packets. The frames that begin to leave the
/// sender at `lost` are lost: the first link fails for 10 ns when they are about to arrive.
fn run_with(packets: u64, rto: u64, lost: &[u64], flow: &str) -> (u64, u32) {
    let mut text = format!(
        "[topology]\nkind = \"custom\"\nhosts = [\"A\", \"B\"]\nswitches = [\"X\"]\n\
         links = [{{a=\"A\", b=\"X\", rate=\"100Gbps\", delay=\"1us\"}}, {{a=\"X\", b=\"B\", rate=\"100Gbps\", delay=\"1us\"}}]\n\
         [routing]\nreconvergence = \"1s\"\n[flow_control]\nscheme = \"none\"\n\
         [transport]\nkind = \"go-back-n\"\nrto = \"{rto}ps\"\nmtu = \"1000B\"\nheader = \"0B\"\nack = \"64B\"\n\
         [[traffic]]\nkind = \"flow\"\nsrc = \"A\"\ndst = \"B\"\nsize = \"{packets}kB\"\n{flow}\n"
    );
    for sent in lost {
        let until = sent + PACKET + DELAY - 1_000;
        text +=
            &format!("[[failure]]\nlink = \"A-X\"\nat = \"{}ps\"\nuntil = \"{until}ps\"\n", until - 10_000);
    }
    let plan = plan(&text);
    let outcome = run(&plan);
    assert_eq!(outcome.flows[0].dropped, lost.len() as u64, "exactly those frames are lost");
    (fcts(&plan, &outcome)[0], outcome.flows[0].timeouts)
}

#[test]
fn one_timeout_after_the_first_packet_in_flight() {
    for rto in [6 * DELAY, 20 * DELAY, 20 * DELAY + 1] {
        assert_eq!(run_with(1, rto, &[0], ""), (rto + ROUND_TRIP, 1));
    }
}

/// The ACK of the first of two packets moves the timer: the second one, which is lost, is retransmitted one
/// `rto` after that ACK.
#[test]
fn one_timeout_after_the_last_progress() {
    for rto in [6 * DELAY, 20 * DELAY, 20 * DELAY + 1] {
        assert_eq!(run_with(2, rto, &[PACKET], ""), (ROUND_TRIP + rto + ROUND_TRIP, 1));
    }
}

/// Timeouts in a row are one `rto` apart; go-back-N does not back off.
///
/// The first retransmitted packet sets the timer. The timer that the timeout itself sets matters only if no
/// packet can be sent for that long, and then no packet in flight could be lost: a mutation of it has no
/// effect to test.
#[test]
fn one_timeout_after_the_last_timeout() {
    for rto in [6 * DELAY, 20 * DELAY, 20 * DELAY + 1] {
        let lost = [PACKET, ROUND_TRIP + rto, ROUND_TRIP + 2 * rto];
        assert_eq!(run_with(2, rto, &lost, ""), (ROUND_TRIP + 3 * rto + ROUND_TRIP, 3));
    }
}

/// At one packet per 30 us nothing is in flight between two packets: the timer runs anew from each.
#[test]
fn an_idle_flow_restarts_the_timer() {
    let pace = 30 * DELAY;
    // The second packet is lost. The timer of the first one goes off before it, or after it.
    for rto in [pace - 3 * DELAY, pace + DELAY] {
        let again = (pace + rto).max(2 * pace);
        let flow = "rate = \"266666666bps\"";
        // Packets of 1000 B at 266,666,666 bit/s: 30.000000075 us apart, rounded up to picoseconds.
        let late = 8_000_000_000_000_000u64.div_ceil(266_666_666) - pace;
        let expected = if rto < pace { again + 2 * late } else { again + late };
        assert_eq!(run_with(2, rto, &[pace + late], flow), (expected + ROUND_TRIP, 1));
    }
}
