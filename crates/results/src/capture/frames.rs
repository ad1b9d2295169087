//! The packets and frames that cross a port, as the bytes of an Ethernet frame without its check sequence.

use xoff_net::topology::PortId;
use xoff_outcome::tap::{Carries, Crosser};
use xoff_plan::plan::{Lane, Plan};
use xoff_schemes::transport::keys::Nacks;
use xoff_wire::CHECK;
use xoff_wire::ip::{self, Ecn, Headers};
use xoff_wire::roce::{self, NUMBERS, Operation, Reth, RocePacket, Trimmed};
use xoff_wire::tcp::{self, Segment};

/// Queue pairs have the numbers of flows, with this bit: 0 and 1 are for management.
const QUEUE_PAIR: u32 = 1 << 23;
/// The first of the ephemeral ports, which distinguish flows.
const EPHEMERAL: u16 = 0xc000;
/// The TCP port that discards its input (RFC 863): zeros belong to no protocol.
const DISCARD: u16 = 9;
/// The bit of the DSCP of trimmed data which says that the last switch before the receiver has trimmed it.
const LAST_HOP: u8 = 1;
/// Ultra Ethernet's codes of the NACK of a trimmed packet: UET_TRIMMED and UET_TRIMMED_LASTHOP.
const NACK_CODES: [u32; 2] = [1, 2];
/// Number of the first byte of a TCP flow: 0 was the SYN's.
const FIRST_BYTE: u32 = 1;

/// The frame that `from` sends.
pub fn frame(plan: &Plan, from: PortId, what: &Crosser) -> Vec<u8> {
    match what {
        Crosser::Frame(frame) => {
            let mut bytes = frame.to_vec();
            bytes[6..12].copy_from_slice(&mac(plan, from));
            bytes
        }
        &Crosser::Packet { flow, lane, carries, marked, label } => {
            packet(plan, from, (flow, lane, carries, marked), label)
        }
    }
}

/// The content of a frame that [`frame`] has written; `None` if it is another. The numbers of packets are those
/// modulo 2^24, and under TCP those of bytes modulo 2^32; 2^14 flows have ports of their own.
pub fn parse(plan: &Plan, bytes: &[u8]) -> Option<Crosser> {
    if bytes.get(12..14)? != [0x08, 0x00] {
        let mut bytes = bytes.to_vec();
        bytes[6..12].fill(0);
        return Some(Crosser::Frame(bytes.into()));
    }
    let traits = plan.transport.kind.traits();
    match traits.segments {
        true => {
            let segment = Segment::parse(bytes).ok()?;
            let is_data = segment.source_port != DISCARD;
            let port = if is_data { segment.source_port } else { segment.destination_port };
            let packets = |number: u32| number.wrapping_sub(FIRST_BYTE).div_ceil(plan.packet.mtu);
            let carries = match is_data {
                true => Carries::Data { psn: packets(segment.sequence) },
                false => Carries::Ack { expected: packets(segment.acknowledgement), arrived: None },
            };
            let flow = u32::from(port & !EPHEMERAL);
            known(plan, segment.headers, (flow, port), carries, segment.echo)
        }
        false => {
            let Ok(packet) = RocePacket::parse(bytes) else {
                let Trimmed { headers, source_port, queue_pair, psn } =
                    RocePacket::parse_trimmed(bytes).ok()?;
                let carries = Carries::Header { psn, last_hop: headers.dscp & LAST_HOP != 0 };
                return known(plan, headers, (queue_pair & !QUEUE_PAIR, source_port), carries, false);
            };
            let carries = match packet.operation {
                Operation::Ack { msn } => Carries::Ack {
                    expected: (packet.psn + 1) % NUMBERS,
                    arrived: traits.acks_name_arrival.then_some(msn),
                },
                Operation::Nak { msn } => match traits.nacks {
                    Nacks::Missing => Carries::Nack { expected: packet.psn, arrived: None },
                    Nacks::MissingAndArrived => Carries::Nack { expected: packet.psn, arrived: Some(msn) },
                    Nacks::Trimmed => {
                        let last_hop = NACK_CODES.iter().position(|code| *code == msn)? == 1;
                        Carries::Trimmed { psn: packet.psn, last_hop }
                    }
                },
                Operation::Cnp => Carries::Cnp,
                Operation::Pull { count } => Carries::Pull { count },
                Operation::Credit { number } => Carries::Credit { number },
                Operation::Probe { number } => Carries::Probe { number },
                Operation::ProbeAck { number, bits } => {
                    Carries::ProbeAck { expected: (packet.psn + 1) % NUMBERS, bits, number }
                }
                Operation::CreditedAck { first, bits, number: credit } => {
                    Carries::CreditedAck { expected: (packet.psn + 1) % NUMBERS, first, bits, credit }
                }
                Operation::Sack { first, bits } => {
                    Carries::Sack { expected: (packet.psn + 1) % NUMBERS, first, bits }
                }
                _ => Carries::Data { psn: packet.psn },
            };
            let echo = packet.becn && carries != Carries::Cnp;
            let flow = packet.queue_pair & !QUEUE_PAIR;
            known(plan, packet.headers, (flow, packet.source_port), carries, echo)
        }
    }
}

/// Whether it goes from the sender of the flow to its receiver.
fn is_data(carries: Carries) -> bool {
    matches!(carries, Carries::Data { .. } | Carries::Header { .. } | Carries::Probe { .. })
}

/// The class selector of the priority, and perhaps [`LAST_HOP`].
fn dscp(lane: &Lane, carries: Carries) -> u8 {
    let last_hop = matches!(carries, Carries::Header { last_hop: true, .. });
    lane.priority << 3 | if last_hop { LAST_HOP } else { 0 }
}

/// The packet of a flow with these headers and this source port, unless the plan has no such flow or priority.
fn known(
    plan: &Plan,
    headers: Headers,
    (flow, source_port): (u32, u16),
    carries: Carries,
    echo: bool,
) -> Option<Crosser> {
    let lane = plan.lanes.iter().position(|lane| dscp(lane, carries) == headers.dscp)?;
    let marked = if is_data(carries) { headers.ecn == Ecn::Congested } else { echo };
    let labelled = plan.labels_packets() && carries.has_label();
    ((flow as usize) < plan.flows.len()).then_some(Crosser::Packet {
        flow,
        lane: lane as u8,
        carries,
        marked,
        label: labelled.then_some(source_port & !EPHEMERAL),
    })
}

/// The MAC address of a port.
pub fn mac(plan: &Plan, port: PortId) -> [u8; 6] {
    let port = &plan.topology.ports[port as usize];
    ip::mac(port.node, port.index)
}

fn packet(
    plan: &Plan,
    from: PortId,
    (flow, lane, carries, marked): (u32, u8, Carries, bool),
    label: Option<u16>,
) -> Vec<u8> {
    let f = &plan.flows[flow as usize];
    let is_data = is_data(carries);
    let (source, destination) = if is_data { (f.src, f.dst) } else { (f.dst, f.src) };
    let lane = &plan.lanes[usize::from(lane)];
    // A switch that trims changes the priority, but not these bits.
    let first = if let Carries::Header { .. } = carries { &plan.lanes[usize::from(f.lane)] } else { lane };
    let ecn = match is_data {
        true if marked => Ecn::Congested,
        // Only data is marked.
        true if matches!(carries, Carries::Probe { .. }) => Ecn::NotCapable,
        true if first.ecn.is_some() => Ecn::Capable0,
        _ => Ecn::NotCapable,
    };
    let headers = Headers {
        source_port: mac(plan, from),
        destination_port: mac(plan, plan.topology.ports[from as usize].peer),
        source: ip::address(source),
        destination: ip::address(destination),
        dscp: dscp(lane, carries),
        ecn,
        protocol: roce::PROTOCOL,
    };
    let port = EPHEMERAL | flow as u16 & !EPHEMERAL;
    let mtu = u64::from(plan.packet.mtu);
    let begins = |psn: u32| u64::from(psn) * mtu;
    let payload = |psn: u32| (f.size - begins(psn)).min(mtu) as u32;
    let echo = marked && !is_data;
    if plan.transport.kind.traits().segments {
        // Modulo 2^32, as TCP counts.
        let number = |bytes: u64| FIRST_BYTE.wrapping_add(bytes as u32);
        let (sequence, acknowledgement, payload) = match carries {
            Carries::Data { psn } => (number(begins(psn)), FIRST_BYTE, payload(psn)),
            Carries::Ack { expected, .. } | Carries::Nack { expected, .. } => {
                (FIRST_BYTE, number(begins(expected).min(f.size)), 0)
            }
            Carries::Cnp
            | Carries::Header { .. }
            | Carries::Trimmed { .. }
            | Carries::Pull { .. }
            | Carries::Credit { .. }
            | Carries::Probe { .. }
            | Carries::ProbeAck { .. }
            | Carries::CreditedAck { .. }
            | Carries::Sack { .. } => {
                unreachable!("TCP has no such packets")
            }
        };
        let (source_port, destination_port) = if is_data { (port, DISCARD) } else { (DISCARD, port) };
        let headers = Headers { protocol: tcp::PROTOCOL, ..headers };
        return Segment { headers, source_port, destination_port, sequence, acknowledgement, echo, payload }
            .emit();
    }
    let last = plan.packet.packets(f.size) - 1;
    let complete = |expected: u32| u32::from(u64::from(expected) > last);
    let reth = || Reth { address: 0, key: flow, length: u32::try_from(f.size).unwrap_or(u32::MAX) };
    let (operation, psn, payload) = match carries {
        Carries::Data { psn } | Carries::Header { psn, .. } => {
            let operation = match (psn == 0, u64::from(psn) == last) {
                (true, true) => Operation::WriteOnly(reth()),
                (true, false) => Operation::WriteFirst(reth()),
                (false, false) => Operation::WriteMiddle,
                (false, true) => Operation::WriteLast,
            };
            (operation, psn, payload(psn))
        }
        // It names the last packet that has come, a NAK the one that is missing.
        Carries::Ack { expected, arrived } => {
            let msn = arrived.map_or(complete(expected), |arrived| arrived % NUMBERS);
            (Operation::Ack { msn }, expected.wrapping_sub(1), 0)
        }
        Carries::Sack { expected, first, bits } => {
            (Operation::Sack { first: first % NUMBERS, bits }, expected.wrapping_sub(1), 0)
        }
        Carries::CreditedAck { expected, first, bits, credit } => {
            let number = credit % NUMBERS;
            (Operation::CreditedAck { first: first % NUMBERS, bits, number }, expected.wrapping_sub(1), 0)
        }
        Carries::Probe { number } => (Operation::Probe { number: number % NUMBERS }, 0, 0),
        Carries::ProbeAck { expected, bits, number } => {
            (Operation::ProbeAck { number: number % NUMBERS, bits }, expected.wrapping_sub(1), 0)
        }
        Carries::Nack { expected, arrived } => {
            (Operation::Nak { msn: arrived.unwrap_or(0) % NUMBERS }, expected, 0)
        }
        Carries::Trimmed { psn, last_hop } => {
            (Operation::Nak { msn: NACK_CODES[usize::from(last_hop)] }, psn, 0)
        }
        Carries::Cnp => (Operation::Cnp, 0, 0),
        Carries::Pull { count } => (Operation::Pull { count: count % NUMBERS }, 0, 0),
        Carries::Credit { number } => (Operation::Credit { number: number % NUMBERS }, 0, 0),
    };
    let packet = RocePacket {
        headers,
        source_port: label.map_or(port, |label| EPHEMERAL | label),
        operation,
        queue_pair: QUEUE_PAIR | (flow % QUEUE_PAIR),
        psn: psn % NUMBERS,
        becn: echo || operation == Operation::Cnp,
        payload,
    };
    match (carries, plan.flow_control.traits().trims) {
        (Carries::Header { .. }, Some(trim)) => packet.emit_trimmed(trim.size as usize - CHECK),
        _ => packet.emit(),
    }
}
