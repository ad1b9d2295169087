//! One device of it, crossing by crossing and frame by frame.

use super::super::notes::Notes;
use super::super::pfc::Relay;
use super::*;
use proptest::prelude::*;

/// 1,000 quanta last 5.12 us at 100 Gbit/s; a pause is repeated after half of that.
pub(super) const QUANTA: u16 = 1_000;

/// Four ports with priorities 3 and 5, which are lossless, and 0, which is not.
pub(super) fn dsh() -> Dsh {
    let params = DshParams {
        pfc: PfcParams { quanta: QUANTA, response_time: 0, relay: Relay::Accounts },
        alpha_q16: 4_096,
        private: 3_000,
        levels: vec![PortLevel { queues: 2, margin: 56_840, offset: 0 }; 4],
        lossless: vec![true, true, false],
        longest: 0,
    };
    Dsh::new(&params, 4, &[3, 5, 0])
}

fn received(scheme: &mut Dsh, device: &mut Notes, frame: LevelFrame) -> Vec<String> {
    device.log.clear();
    scheme.received(device, 1, &frame.into());
    device.log.drain(..).filter(|line| !line.starts_with("arm") && !line.starts_with("cancel")).collect()
}

/// Each level has its frame, and its own timer to repeat it. The port's timers come after those of 4 ports and 3 lanes.
#[test]
fn each_level_pauses_repeats_and_resumes() {
    let (mut scheme, mut device) = (dsh(), Notes::default());
    scheme.crossed(&mut device, 2, 1, Crossing::Over);
    assert_eq!(device.log, ["queues 2 [(5, 1000)]", "arm 14 2560000"]);
    device.log.clear();
    scheme.port_crossed(&mut device, 2, Crossing::Over);
    assert_eq!(device.log, ["port 2 1000", "arm 28 2560000"]);
    (device.now, device.log) = (2_560_000, Vec::new());
    scheme.timer(&mut device, 28);
    scheme.timer(&mut device, 14);
    assert_eq!(device.log, ["port 2 1000", "arm 28 5120000", "queues 2 [(5, 1000)]", "arm 14 5120000"]);
    device.log.clear();
    scheme.port_crossed(&mut device, 2, Crossing::Under);
    scheme.crossed(&mut device, 2, 1, Crossing::Under);
    assert_eq!(device.log, ["port 2 0", "cancel 28", "queues 2 [(5, 0)]", "cancel 14"]);
    assert_eq!((scheme.report.queue_pauses, scheme.report.port_pauses), (1, 1));
}

/// A queue may send if neither its own level nor that of the port stops it. A lossy queue is never stopped.
#[test]
fn a_queue_waits_for_both_levels() {
    let (mut scheme, mut device) = (dsh(), Notes::default());
    let mut get = |frame| received(&mut scheme, &mut device, frame);
    assert_eq!(get(LevelFrame::of_queue(3, QUANTA)), ["pause 1/0"]);
    assert_eq!(get(LevelFrame::of_port(QUANTA)), ["pause 1/0", "pause 1/1"]);
    assert_eq!(get(LevelFrame::of_queue(3, 0)), [""; 0]);
    assert_eq!(get(LevelFrame::of_queue(5, QUANTA)), ["pause 1/1"]);
    assert_eq!(get(LevelFrame::of_port(0)), ["resume 1/0"]);
    assert_eq!(get(LevelFrame::of_queue(5, 0)), ["resume 1/1"]);
}

/// The same frames as bytes: a live device reads PFC frames.
#[test]
fn frames_from_a_wire_have_the_same_meaning() {
    let (mut scheme, mut device) = (dsh(), Notes::default());
    for (frame, stopped) in [(LevelFrame::of_port(QUANTA), 2), (LevelFrame::of_queue(5, QUANTA), 1)] {
        device.log.clear();
        let read = ControlFrame::parse(&frame.emit([2; 6])).expect("a PFC frame");
        scheme.received(&mut device, 1, &read);
        assert_eq!(device.log.iter().filter(|line| line.starts_with("pause")).count(), stopped);
    }
}

/// A pause of the port runs out by itself; the queue's own pause stays.
#[test]
fn levels_run_out_one_by_one() {
    let (mut scheme, mut device) = (dsh(), Notes::default());
    received(&mut scheme, &mut device, LevelFrame::of_queue(3, QUANTA));
    device.now = 1_000_000;
    scheme.received(&mut device, 1, &LevelFrame::of_port(QUANTA).into());
    // Timers of the egress half: 2 · (1 · 3 + 0) + 1, and 24 + 2 · 1 + 1.
    assert_eq!(device.log, ["arm 27 6120000", "pause 1/0", "pause 1/1"]);
    device.log.clear();
    scheme.timer(&mut device, 27);
    assert_eq!(device.log, ["resume 1/1"]);
    device.log.clear();
    scheme.timer(&mut device, 7);
    assert_eq!(device.log, ["resume 1/0"]);
}

/// The peer has forgotten both pauses, and may be about to send its own.
#[test]
fn a_recovered_link_gets_both_pauses_again() {
    let (mut scheme, mut device) = (dsh(), Notes::default());
    scheme.crossed(&mut device, 1, 0, Crossing::Over);
    scheme.port_crossed(&mut device, 1, Crossing::Over);
    scheme.received(&mut device, 1, &LevelFrame::of_port(QUANTA).into());
    (0..3).for_each(|lane| scheme.link_failed(&mut device, 1, lane));
    assert_eq!(scheme.off, [0; 12]);
    device.log.clear();
    scheme.link_recovered(&mut device, 1, 0, true, 7_000);
    scheme.link_recovered(&mut device, 1, 1, false, 7_000);
    let queue = ["queues 1 [(3, 1000)]", "arm 6 2560000", "arm 7 12120", "hold 1/0"];
    let port = ["port 1 1000", "arm 26 2560000", "arm 27 12120", "hold 1/0", "hold 1/1"];
    assert_eq!(device.log, [&queue[..], &port, &["arm 9 12120", "hold 1/1"]].concat());
    // A port that went under while the link was down says nothing.
    (0..3).for_each(|lane| scheme.link_failed(&mut device, 1, lane));
    scheme.port_crossed(&mut device, 1, Crossing::Under);
    device.log.clear();
    scheme.link_recovered(&mut device, 1, 0, false, 7_000);
    assert!(device.log.iter().all(|line| !line.starts_with("port")), "{:?}", device.log);
}

proptest! {
    /// For any frames in any order, a queue is stopped exactly if its last frame, or the last one of the port,
    /// was a pause.
    #[test]
    fn the_or_gate_has_no_memory(steps in prop::collection::vec((0usize..3, any::<bool>()), 1..80)) {
        let (mut scheme, mut device) = (dsh(), Notes::default());
        let (mut last, mut stopped) = ([false; 3], [false; 2]);
        for (which, pause) in steps {
            last[which] = pause;
            let quanta = if pause { QUANTA } else { 0 };
            let frame = match which {
                2 => LevelFrame::of_port(quanta),
                lane => LevelFrame::of_queue([3, 5][lane], quanta),
            };
            for line in received(&mut scheme, &mut device, frame) {
                let (word, place) = line.split_once(' ').expect("a word and a place");
                let lane: usize = place.strip_prefix("1/").expect("port 1").parse().expect("a lane");
                stopped[lane] = word == "pause";
            }
            prop_assert_eq!(stopped, [last[0] || last[2], last[1] || last[2]]);
        }
    }
}
