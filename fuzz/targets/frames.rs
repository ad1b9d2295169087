//! For any bytes, every parser of frames returns a frame or an error. A frame that is written and read again
//! is the same. Check sequences are not compared under `cfg(fuzzing)`.

#![no_main]

use std::env;
use std::fs;
use std::path::PathBuf;

use libfuzzer_sys::fuzz_target;
use xoff_schemes::flow_control::bifrost::frame::FeedbackFrame;
use xoff_schemes::flow_control::breakers::frame::{Identifier, ProbeFrame, Word as ProbeWord};
use xoff_schemes::flow_control::cbfc::frame::{CreditPacket, Form};
use xoff_schemes::flow_control::gfc::frame::StageFrame;
use xoff_schemes::flow_control::itsy::frame::{Check, ItsyFrame};
use xoff_schemes::flow_control::portfc::frame::PortPauseFrame;
use xoff_schemes::flow_control::pyrrha::frame::{RootId, RootPauseFrame, Word as RootWord};
use xoff_schemes::flow_control::roundabout::frame::{Opcode, RoundaboutFrame, Triplet};
use xoff_schemes::flow_control::uec_cbfc::frame::{CcUpdate, CfUpdate};
use xoff_schemes::scheduling::zeropod::frame::{
    Account, Cell, Demand, Frame, Holds, Mice, Part, Rts, Schd, Target,
};
use xoff_wire::ip::{Ecn, Headers};
use xoff_wire::nodes::Nodes;
use xoff_wire::pfc::PfcFrame;
use xoff_wire::queue_pause::{QueuePauseFrame, Target as Paused};
use xoff_wire::roce::{Operation, RocePacket};
use xoff_wire::tcp::Segment;

/// The address that frames are sent from again; no parser keeps it.
const SOURCE: [u8; 6] = [2; 6];

/// A frame of each kind, in the directory `XOFF_FUZZ_SEEDS`: bytes at random hardly begin as one does.
fn seeds() {
    let Some(place) = env::var_os("XOFF_FUZZ_SEEDS").map(PathBuf::from) else { return };
    let headers = |protocol| Headers {
        source_port: [2, 0, 0, 1, 0, 3],
        destination_port: [2, 0, 1, 0, 0, 9],
        source: [10, 0, 0, 1],
        destination: [10, 1, 2, 3],
        dscp: 24,
        ecn: Ecn::Capable0,
        protocol,
    };
    let mut nodes = Nodes::default();
    assert!((1..5).all(|node| nodes.push_front(node)));
    let roce = |operation, payload| RocePacket {
        headers: headers(17),
        source_port: 0xc001,
        operation,
        queue_pair: 7,
        psn: 9,
        becn: false,
        payload,
    };
    let rts = Rts {
        sender: 1,
        epoch: 2,
        account: Some(Account::default()),
        demands: vec![Demand { target: Target::Host(3), asked: 4, served: 5 }; 2],
        mice: Some(vec![Mice { target: Target::Pod(1), served: 6, bytes: 7 }]),
        full: vec![8, 9],
    };
    let schd = Schd { sender: 1, epoch: 2, target: Target::Pod(3), aggregation: 4, core: Some(5), cells: 6 };
    let parts = [Holds::Data(1_000), Holds::Ack(2_000)].map(|holds| Part { flow: 1, holds, bytes: 64 });
    let cell = Cell { optimistic: false, source: 1, destination: 2, parts: parts.to_vec() };
    let triplet = Triplet { sid: 1, qid: 2, rand: 3, hops: 4 };
    let roots =
        [RootWord::Pause, RootWord::Resume, RootWord::Release, RootWord::Merge { into: RootId::default() }];
    let mut all = vec![
        CreditPacket::new(Form::Narrow, 1, 2, 3).emit_packet(),
        CreditPacket::new(Form::Wide, 1, 2, 3).emit_packet(),
        CreditPacket::new(Form::Wide, 1, 2, 3).emit(SOURCE),
        CfUpdate::new([(3, 1), (5, 2)]).emit(SOURCE).to_vec(),
        CcUpdate { consumed: [7; 8] }.emit(SOURCE).to_vec(),
        FeedbackFrame { enabled: 8, whole: false, total: 9, each: [7; 8] }.emit(SOURCE).to_vec(),
        ItsyFrame::alone(Check { priority: 3, sid: 1, qid: 2, number: 3 }).emit(SOURCE).to_vec(),
        PfcFrame::single(3, 65_535).emit(SOURCE).to_vec(),
        PortPauseFrame { pause: true, queue: 1, port: 2 }.emit(SOURCE).to_vec(),
        ProbeFrame { word: ProbeWord::Probe, priority: 3, id: Identifier { draw: 1, port: 2 }, ports: nodes }
            .emit(SOURCE),
        QueuePauseFrame { target: Paused::Queue(1), priority: 3, pause: true }.emit(SOURCE).to_vec(),
        QueuePauseFrame { target: Paused::Flow(1), priority: 3, pause: false }.emit(SOURCE).to_vec(),
        RoundaboutFrame { priority: 3, quanta: Some(9), opcode: Opcode::Collect, triplet, nodes }
            .emit(SOURCE),
        StageFrame::single(3, 2).emit(SOURCE).to_vec(),
        roce(Operation::WriteMiddle, 100).emit(),
        roce(Operation::Ack { msn: 5 }, 0).emit(),
        roce(Operation::Cnp, 0).emit(),
        Frame::Rts(rts).emit(SOURCE, 0),
        Frame::Schd(schd).emit(SOURCE, 0),
        Frame::Cell(cell).emit(SOURCE, 512),
        Segment {
            headers: headers(6),
            source_port: 1,
            destination_port: 2,
            sequence: 3,
            acknowledgement: 4,
            echo: true,
            payload: 5,
        }
        .emit(),
    ];
    all.extend(roots.map(|word| {
        RootPauseFrame { word, root: RootId::default(), priority: 3, sequence: 1 }.emit(SOURCE).to_vec()
    }));
    for (i, frame) in all.iter().enumerate() {
        fs::write(place.join(format!("seed-{i}")), frame).expect("a seed");
    }
}

macro_rules! survives {
    ($bytes:expr, $($frame:ident: $emit:expr),* $(,)?) => {
        $(if let Ok(frame) = $frame::parse($bytes) {
            let again: fn(&$frame) -> Vec<u8> = $emit;
            assert_eq!($frame::parse(&again(&frame)), Ok(frame));
        })*
    };
}

fuzz_target!(init: seeds(), |bytes: &[u8]| {
    survives!(
        bytes,
        CcUpdate: |frame| frame.emit(SOURCE).to_vec(),
        CfUpdate: |frame| frame.emit(SOURCE).to_vec(),
        CreditPacket: |frame| frame.emit(SOURCE),
        FeedbackFrame: |frame| frame.emit(SOURCE).to_vec(),
        ItsyFrame: |frame| frame.emit(SOURCE).to_vec(),
        PfcFrame: |frame| frame.emit(SOURCE).to_vec(),
        PortPauseFrame: |frame| frame.emit(SOURCE).to_vec(),
        ProbeFrame: |frame| frame.emit(SOURCE),
        QueuePauseFrame: |frame| frame.emit(SOURCE).to_vec(),
        RocePacket: |frame| frame.emit(),
        RootPauseFrame: |frame| frame.emit(SOURCE).to_vec(),
        RoundaboutFrame: |frame| frame.emit(SOURCE),
        Segment: |frame| frame.emit(),
        StageFrame: |frame| frame.emit(SOURCE).to_vec(),
        Frame: |frame| frame.emit(SOURCE, 0),
    );
    if let Ok(packet) = CreditPacket::parse_packet(bytes) {
        assert_eq!(CreditPacket::parse_packet(&packet.emit_packet()), Ok(packet));
    }
    if let Ok((headers, behind)) = Headers::parse(bytes) {
        let mut again = headers.emit(behind.len());
        again.extend(behind);
        assert_eq!(Headers::parse(&again), Ok((headers, behind)));
    }
});
