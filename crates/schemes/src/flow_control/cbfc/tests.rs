use super::super::notes::Notes;
use super::*;
use proptest::prelude::*;
use std::collections::VecDeque;

fn params(form: Form, buffer: u64, response_time: Time) -> CbfcParams {
    CbfcParams {
        form,
        buffer: vec![buffer; 2],
        ahead: vec![buffer; 2],
        update: vec![1_000, 2_000],
        lanes: vec![true, false],
        response_time,
    }
}

#[test]
fn packets_go_while_their_blocks_fit_and_wait_until_they_do() {
    let mut cbfc = Cbfc::new(&params(Form::Narrow, 20, 0), &[3, 5]);
    let mut device = Notes::default();
    // 1000 B are 16 blocks, 65 B two: the second large one does not fit, small ones do.
    assert!(cbfc.may_leave(&mut device, 0, 0, 1_000));
    assert!(cbfc.may_leave(&mut device, 0, 0, 65));
    assert!(!cbfc.may_leave(&mut device, 0, 0, 1_000));
    assert_eq!((device.log.pop().as_deref(), cbfc.wanted(0, 0)), (Some("pause 0/0"), 16));
    // Another lane, which runs without credit, and a port after those of links.
    assert!((0..100).all(|_| cbfc.may_leave(&mut device, 0, 1, 1_000)));
    assert!((0..100).all(|_| cbfc.may_leave(&mut device, 7, 0, 1_000)));
    // 33 blocks are not enough for 18 and 16, and 34 are. Credit of another lane or port does not matter.
    for (port, lane, limit, resumed) in
        [(0, 3, 33, false), (1, 3, 34, false), (0, 5, 34, false), (0, 3, 34, true)]
    {
        cbfc.received(&mut device, port, &CreditPacket::new(Form::Narrow, lane, 0, limit).into());
        assert_eq!(device.log.pop().as_deref() == Some("resume 0/0"), resumed, "{port} {lane} {limit}");
    }
    assert!(cbfc.may_leave(&mut device, 0, 0, 1_000));
    assert!(!cbfc.may_leave(&mut device, 0, 0, 1));
}

#[test]
fn flow_control_packets_report_both_directions() {
    let mut cbfc = Cbfc::new(&params(Form::Narrow, 5_000, 0), &[3, 5]);
    let mut device = Notes { now: 70, ..Notes::default() };
    assert!(cbfc.may_leave(&mut device, 1, 0, 6_400));
    device.received.insert((1, 0), 64 * 4_000);
    device.stored.insert((1, 0), 64 * 2_900);
    cbfc.timer(&mut device, 2);
    // 2100 blocks are free; in 12 bits 2048 can be granted, and 4000 + 2048 is 1952.
    assert_eq!(device.log.drain(..).collect::<Vec<_>>(), ["credit 1 v3 100 1952", "arm 2 2070"]);
    device.stored.insert((1, 0), 64 * 4_000);
    cbfc.timer(&mut device, 2);
    assert_eq!(device.log.drain(..).collect::<Vec<_>>(), ["credit 1 v3 100 904", "arm 2 2070"]);
    let mut wide = Cbfc::new(&params(Form::Wide, 5_000, 0), &[3, 5]);
    wide.timer(&mut device, 2);
    assert_eq!(device.log.drain(..).collect::<Vec<_>>(), ["credit 1 v3 0 5000", "arm 2 2070"]);
}

#[test]
fn lost_packets_are_room_again() {
    for lost in [1u64, 100, 2_047, 2_048] {
        let mut cbfc = Cbfc::new(&params(Form::Narrow, 2_048, 0), &[3, 5]);
        let mut device = Notes::default();
        // 3000 blocks have come; the peer says that it has sent more.
        device.received.insert((0, 0), 64 * 3_000);
        cbfc.received(&mut device, 0, &CreditPacket::new(Form::Narrow, 3, 3_000 + lost, 2_048).into());
        cbfc.timer(&mut device, 0);
        assert_eq!(device.log[0], format!("credit 0 v3 0 {}", (3_000 + lost + 2_048) % 4_096), "{lost}");
    }
    // With a response time more may have come since the packet did: that is no loss.
    let mut cbfc = Cbfc::new(&params(Form::Narrow, 2_048, 1), &[3, 5]);
    let mut device = Notes::default();
    device.received.insert((0, 0), 64 * 3_000);
    cbfc.received(&mut device, 0, &CreditPacket::new(Form::Narrow, 3, 2_950, 2_048).into());
    cbfc.timer(&mut device, 0);
    assert_eq!(device.log[0], format!("credit 0 v3 0 {}", (3_000 + 2_047) % 4_096));
}

#[test]
fn a_link_that_recovers_begins_with_the_first_packet() {
    let mut cbfc = Cbfc::new(&params(Form::Narrow, 100, 0), &[3, 5]);
    let mut device = Notes::default();
    device.received.insert((0, 0), 64 * 7);
    device.stored.insert((0, 0), 64 * 30);
    assert!(cbfc.may_leave(&mut device, 0, 0, 6_400));
    assert!(!cbfc.may_leave(&mut device, 0, 0, 64));
    cbfc.link_failed(&mut device, 0, 0);
    cbfc.link_recovered(&mut device, 0, 0, false, 0);
    // Nothing has been sent or received, and 70 blocks are free.
    let expected = ["pause 0/0", "cancel 0", "resume 0/0", "hold 0/0", "credit 0 v3 0 70", "arm 0 1000"];
    assert_eq!(device.log.drain(..).collect::<Vec<_>>(), expected);
    assert!(!cbfc.may_leave(&mut device, 0, 0, 64));
    device.log.clear();
    cbfc.received(&mut device, 0, &CreditPacket::new(Form::Narrow, 3, 0, 0).into());
    assert_eq!(device.log.len(), 0, "no room, no credit");
    cbfc.received(&mut device, 0, &CreditPacket::new(Form::Narrow, 3, 0, 2).into());
    assert_eq!(device.log, ["resume 0/0"]);
}

#[test]
fn phases_lie_apart_within_the_period() {
    let ports = 64;
    let params = CbfcParams {
        buffer: vec![100; ports],
        ahead: vec![100; ports],
        update: vec![64_000; ports],
        ..params(Form::Narrow, 100, 0)
    };
    let mut cbfc = Cbfc::new(&params, &[3, 5]);
    let mut device = Notes::default();
    (0..ports as u32).for_each(|port| cbfc.begins(&mut device, port));
    let mut at: Vec<u64> =
        device.log.iter().map(|line| line.split(' ').nth(2).unwrap().parse().unwrap()).collect();
    assert_eq!(at.len(), ports);
    at.sort_unstable();
    assert!(at[ports - 1] < 64_000);
    assert!(at.windows(2).all(|pair| pair[1] - pair[0] >= 300), "{at:?}");
}

#[test]
fn the_longest_update_is_that_of_65536_symbols_on_four_lanes() {
    assert_eq!(longest_update(100_000_000_000), 20_971_520);
    // Single data rate, 4x: 8 Gbit/s of data; a symbol of 2.5 Gbit/s lasts 4 ns.
    assert_eq!(longest_update(8_000_000_000), 65_536 * 4_000);
}

/// One direction of a link, by hand: packets in flight, stored packets, and flow-control packets in flight in
/// the other direction. Steps may lose anything.
#[derive(Clone, Copy, Debug)]
enum Step {
    Send(u32),
    Arrive {
        lost: bool,
    },
    Drain,
    Tell {
        lost: bool,
    },
    Hear,
    /// The sender's own flow-control packet, in line with its data.
    Say {
        lost: bool,
    },
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => (1u32..9_000).prop_map(Step::Send),
        8 => prop::bool::weighted(0.03).prop_map(|lost| Step::Arrive { lost }),
        8 => Just(Step::Drain),
        2 => prop::bool::weighted(0.2).prop_map(|lost| Step::Tell { lost }),
        2 => Just(Step::Hear),
        1 => prop::bool::weighted(0.2).prop_map(|lost| Step::Say { lost }),
    ]
}

#[derive(Clone, Copy)]
enum OnWire {
    Data(u64),
    Credit(CreditPacket),
}

proptest! {
    /// For any losses and delays, stored and outstanding blocks never exceed the buffer; both forms decide
    /// alike, over many wraps; and when the link falls silent, two flow-control packets return all of the
    /// buffer.
    #[test]
    fn no_more_is_outstanding_than_the_buffer_holds(
        steps in prop::collection::vec(step(), 1..3_000), buffer in 141u64..2_049, respond in any::<bool>(),
    ) {
        let respond = Time::from(respond);
        let mut ends = [Form::Narrow, Form::Wide].map(|form| Cbfc::new(&params(form, buffer.min(most(Form::Narrow, respond)), respond), &[3, 5]));
        let buffer = ends[0].buffer(0);
        let mut device = [Notes::default(), Notes::default()];
        let mut wire: VecDeque<[OnWire; 2]> = VecDeque::new();
        let mut back: VecDeque<[CreditPacket; 2]> = VecDeque::new();
        let (mut stored, mut received, mut on_wire): (VecDeque<u64>, u64, u64) = (VecDeque::new(), 0, 0);
        let mut sent_blocks = 0;
        // Port 0 of the first device sends to port 1 of the second.
        let mut forms: Vec<[Cbfc; 2]> = ends.iter_mut().map(|e| [e.clone(), e.clone()]).collect();
        let said = |cbfc: &mut Cbfc, device: &mut Notes, port: u32, form: Form| {
            cbfc.tell(device, port, 0);
            let line = device.log.iter().rev().find(|l| l.starts_with("credit")).unwrap();
            let numbers: Vec<u64> = line.split(' ').skip(3).map(|n| n.parse().unwrap()).collect();
            let packet = CreditPacket::new(form, 3, numbers[0], numbers[1]);
            device.log.clear();
            packet
        };
        let quiet = [Step::Tell { lost: false }, Step::Hear];
        let end = std::iter::repeat_n(Step::Arrive { lost: false }, 3_000)
            .chain(std::iter::repeat_n(Step::Drain, 3_000))
            .chain([Step::Say { lost: false }, Step::Arrive { lost: false }])
            .chain(std::iter::repeat_n(quiet, 300).flatten());
        for step in steps.iter().copied().chain(end) {
            match step {
                Step::Send(size) => {
                    let may: Vec<bool> = forms.iter_mut().map(|f| f[0].may_leave(&mut device[0], 0, 0, size)).collect();
                    prop_assert_eq!(may[0], may[1], "both forms decide alike");
                    if may[0] {
                        let taken = u64::from(size).div_ceil(64);
                        wire.push_back([OnWire::Data(taken); 2]);
                        on_wire += taken;
                        sent_blocks += taken;
                    }
                }
                Step::Arrive { lost } => match wire.pop_front() {
                    Some([OnWire::Data(taken), _]) => {
                        on_wire -= taken;
                        if !lost {
                            stored.push_back(taken);
                            received += taken;
                        }
                    }
                    Some(packets) => for (f, packet) in forms.iter_mut().zip(packets) {
                        if let (OnWire::Credit(packet), false) = (packet, lost) {
                            f[1].received(&mut device[1], 1, &packet.into());
                        }
                    },
                    None => {}
                },
                Step::Drain => drop(stored.pop_front()),
                Step::Tell { lost } => {
                    let packets = [Form::Narrow, Form::Wide].map(|form| {
                        let at = usize::from(form == Form::Wide);
                        said(&mut forms[at][1], &mut device[1], 1, form)
                    });
                    if !lost { back.push_back(packets); }
                }
                Step::Hear => if let Some(packets) = back.pop_front() {
                    for (f, packet) in forms.iter_mut().zip(packets) {
                        f[0].received(&mut device[0], 0, &packet.into());
                    }
                },
                Step::Say { lost } => {
                    let packets = [Form::Narrow, Form::Wide].map(|form| {
                        let at = usize::from(form == Form::Wide);
                        OnWire::Credit(said(&mut forms[at][0], &mut device[0], 0, form))
                    });
                    if !lost { wire.push_back(packets); }
                }
            }
            let held: u64 = stored.iter().sum();
            prop_assert!(held + on_wire <= buffer, "{held} stored, {on_wire} on the wire, of {buffer}");
            device[1].stored.insert((1, 0), held * 64);
            device[1].received.insert((1, 0), received * 64);
        }
        prop_assert_eq!(on_wire, 0);
        for f in &forms {
            let Ends { sent, limit, .. } = f[0].ends[f[0].place(0, 0).unwrap()];
            let credit = less(f[0].params.form, limit, sent);
            prop_assert_eq!(credit, buffer, "all of it, after {} blocks", sent_blocks);
        }
    }
}

#[test]
fn oracles_see_the_buffer_of_each_port() {
    let cbfc = Cbfc::new(&CbfcParams { buffer: vec![20, 40], ..params(Form::Narrow, 20, 0) }, &[3, 5]);
    assert_eq!([0, 1, 2].map(|port| cbfc.buffer(port)), [20, 40, u64::MAX]);
}
