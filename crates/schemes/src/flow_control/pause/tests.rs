//! One device of it, crossing by crossing and frame by frame.

use super::super::notes::Notes;
use super::*;
use proptest::prelude::*;

fn pause(quanta: u16) -> Pause {
    Pause::new(quanta, 4, 2)
}

fn frame(quanta: u16) -> ControlFrame {
    MacControlFrame::new(PAUSE, &quanta.to_be_bytes(), Effect::Link { pause: quanta > 0 }).into()
}

#[test]
fn the_first_account_closes_the_link_and_the_last_one_opens_it() {
    let (mut scheme, mut device) = (pause(1000), Notes::default());
    for (lane, crossing) in [(0, Crossing::Over), (1, Crossing::Over), (0, Crossing::Under)] {
        scheme.crossed(&mut device, 2, lane, crossing);
    }
    // 1,000 quanta last 5.12 us at 100 Gbit/s; the pause is repeated after half of that.
    assert_eq!(device.log, ["send 2 0x0001 1000", "arm 4 2560000"]);
    device.now = 2_560_000;
    scheme.timer(&mut device, Pause::refresh(2));
    scheme.crossed(&mut device, 2, 1, Crossing::Under);
    assert_eq!(device.log[2..], ["send 2 0x0001 1000", "arm 4 5120000", "send 2 0x0001 0", "cancel 4"]);
}

#[test]
fn a_frame_stops_every_lane_until_it_runs_out_or_is_taken_back() {
    let (mut scheme, mut device) = (pause(1000), Notes::default());
    scheme.received(&mut device, 1, &frame(1000));
    assert_eq!(device.log, ["pause 1/0", "pause 1/1", "arm 3 5120000"]);
    device.log.clear();
    scheme.timer(&mut device, Pause::expiry(1));
    scheme.received(&mut device, 1, &frame(0));
    let resumed = ["cancel 3", "resume 1/0", "resume 1/1"];
    assert_eq!(device.log, [resumed, resumed].concat());
}

/// The peer has forgotten the pause, and may be about to send one.
#[test]
fn a_recovered_link_gets_its_pause_again() {
    let (mut scheme, mut device) = (pause(1000), Notes::default());
    scheme.crossed(&mut device, 1, 0, Crossing::Over);
    scheme.link_failed(&mut device, 1, 0);
    scheme.link_failed(&mut device, 1, 1);
    device.log.clear();
    scheme.link_recovered(&mut device, 1, 0, true, 7_000);
    scheme.link_recovered(&mut device, 1, 1, false, 7_000);
    scheme.link_reset(&mut device, 1);
    let held = ["hold 1/0", "arm 3 12120", "hold 1/1", "arm 3 12120"];
    assert_eq!(device.log, [&held[..], &["send 1 0x0001 1000", "arm 2 2560000"]].concat());
}

/// The bytes of Annex 31B.
#[test]
fn the_frame_is_that_of_the_standard() {
    let bytes = frame(0x1234).emit([2; 6]);
    assert_eq!(bytes[..6], [0x01, 0x80, 0xc2, 0x00, 0x00, 0x01]);
    assert_eq!(bytes[12..20], [0x88, 0x08, 0x00, 0x01, 0x12, 0x34, 0, 0]);
    assert_eq!((bytes.len(), frame(1).length()), (60, 64));
}

proptest! {
    /// For any order in which accounts cross: the last frame stops the link if one of its accounts is over,
    /// and resumes it if none is.
    #[test]
    fn the_last_frame_has_the_present_state(steps in prop::collection::vec((0u32..4, 0u8..2), 1..60)) {
        let (mut scheme, mut device) = (pause(9), Notes::default());
        let (mut over, mut closed) = ([[false; 2]; 4], [false; 4]);
        for (port, lane) in steps {
            // The device reports only transitions.
            let account = &mut over[port as usize][usize::from(lane)];
            *account = !*account;
            let crossing = if *account { Crossing::Over } else { Crossing::Under };
            scheme.crossed(&mut device, port, lane, crossing);
            for line in device.log.drain(..).filter(|line| line.starts_with("send")) {
                closed[port as usize] = line.ends_with(" 9");
            }
            for (closed, accounts) in closed.iter().zip(&over) {
                prop_assert_eq!(*closed, accounts.contains(&true));
            }
        }
    }
}
