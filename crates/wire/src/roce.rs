//! RoCEv2 packets (InfiniBand Annex A17): RDMA writes, their ACKs, and congestion notifications, in UDP to
//! port 4791. Also four that Annex A17 does not have: requests for data, credit, ACKs with a bitmap, and writes
//! that a switch has trimmed.
//!
//! ```text
//! byte 34  UDP: source port, destination port 4791, length, no checksum
//!      42  BTH: opcode
//!      43       solicited event (1 bit), MigReq (1), pad count (2), version (4)
//!      44       partition key 0xFFFF
//!      46       FECN (1 bit), BECN (1), zeros
//!      47       destination queue pair, 24 bits
//!      50       acknowledgement requested (1 bit), zeros
//!      51       PSN, 24 bits
//!      54  First and Only of a write: RETH: address (64 bits), key (32), length of the message (32)
//!          an answer: AETH: syndrome (8 bits), MSN (24)
//!          a congestion notification: 16 zeros
//!          a request for data: zeros (8 bits), requests so far (24)
//!          credit: zeros (8 bits), credit so far in units of 256 B (24)
//!          an ACK with a bitmap: zeros (8 bits), the PSN of its first bit (24), and 64 bits, the first one last
//!          payload, and up to three zeros that make it whole words
//!          invariant CRC
//! ```
//!
//! A request for data, credit and an ACK with a bitmap have opcodes of those that manufacturers define. A trimmed
//! write ends anywhere after the BTH, without CRC. The switch has updated the length and the checksum of the IPv4 header, as SAI requires; the
//! UDP length is still that of the whole packet.

use crate::ip::{HEADERS, Headers};
use crate::{AETH, CHECKED, NotFrame, UDP, array_at, u16_at, u32_at, u64_at};

/// The UDP port that RoCEv2 packets are sent to, as IANA has assigned it.
pub const PORT: u16 = 4791;
/// Protocol number of UDP.
pub const PROTOCOL: u8 = 17;
/// PSNs, MSNs and numbers of queue pairs are below this.
pub const NUMBERS: u32 = 1 << 24;

const BTH: usize = 12;
const ICRC: usize = 4;
const MIGRATED: u8 = 0x40;
const BECN: u8 = 0x40;
const ACK_REQUESTED: u8 = 0x80;
/// An ACK without credits.
const ACK: u8 = 0x1f;
/// A NAK: PSN sequence error.
const SEQUENCE_ERROR: u8 = 0x60;
/// The opcode of a request for data.
const PULL: u8 = 0xc0;
/// The opcode of an ACK with a bitmap.
const SACK: u8 = 0xc1;
/// The opcode of credit.
const CREDIT: u8 = 0xc2;
/// The opcode of a probe.
const PROBE: u8 = 0xc3;
/// The opcode of the ACK of a probe.
const PROBE_ACK: u8 = 0xc4;
/// The opcode of an ACK with a bitmap and credit.
const CREDITED_ACK: u8 = 0xc5;
/// Least length of a trimmed packet, without the frame's check sequence.
pub const LEAST_TRIMMED: usize = HEADERS + UDP as usize + BTH;
/// Length of a congestion notification after its BTH.
const RESERVED: usize = 16;

/// Where a write goes, in its first packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reth {
    /// Virtual address at the receiver.
    pub address: u64,
    /// The receiver's key.
    pub key: u32,
    /// Bytes of the whole message.
    pub length: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// RDMA WRITE First: more packets of the message follow.
    WriteFirst(Reth),
    WriteMiddle,
    WriteLast,
    /// RDMA WRITE Only: all of the message.
    WriteOnly(Reth),
    /// Acknowledge; the MSN, below 2^24, counts the messages that are complete.
    Ack {
        msn: u32,
    },
    /// Acknowledge that says "PSN sequence error": from its PSN on something is missing.
    Nak {
        msn: u32,
    },
    Cnp,
    /// Acknowledges the packets up to its PSN, and packet `first` + i for each bit i.
    Sack {
        /// Below 2^24.
        first: u32,
        bits: u64,
    },
    /// The same with credit: `number` as in [`Operation::Credit`].
    CreditedAck {
        /// Below 2^24.
        first: u32,
        bits: u64,
        number: u32,
    },
    /// Asks for an ACK at once; `number`, below 2^24, counts the probes of its flow.
    Probe {
        number: u32,
    },
    /// Acknowledges a probe, the packets up to its PSN, and the packet with the PSN + 2 + i for each bit i.
    ProbeAck {
        /// Below 2^24.
        number: u32,
        bits: u64,
    },
    /// Asks for a packet; `count`, below 2^24, counts the requests of its flow.
    Pull {
        count: u32,
    },
    /// Grants credit; `number`, below 2^24, counts that of its flow in units of 256 B.
    Credit {
        number: u32,
    },
}

impl Operation {
    fn opcode(self) -> u8 {
        match self {
            Self::WriteFirst(_) => 0x06,
            Self::WriteMiddle => 0x07,
            Self::WriteLast => 0x08,
            Self::WriteOnly(_) => 0x0a,
            Self::Ack { .. } | Self::Nak { .. } => 0x11,
            Self::Cnp => 0x81,
            Self::Pull { .. } => PULL,
            Self::Sack { .. } => SACK,
            Self::Credit { .. } => CREDIT,
            Self::Probe { .. } => PROBE,
            Self::ProbeAck { .. } => PROBE_ACK,
            Self::CreditedAck { .. } => CREDITED_ACK,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RocePacket {
    pub headers: Headers,
    pub source_port: u16,
    pub operation: Operation,
    /// Destination queue pair, below 2^24.
    pub queue_pair: u32,
    /// Below 2^24.
    pub psn: u32,
    /// Backward explicit congestion notification.
    pub becn: bool,
    /// Bytes of payload, all of them zeros; only of writes.
    pub payload: u32,
}

impl RocePacket {
    /// The packet, without the frame's check sequence.
    pub fn emit(&self) -> Vec<u8> {
        let padding = self.payload.wrapping_neg() as usize % 4;
        let extended = extended(self.operation.opcode()).expect("an opcode of its own");
        let zeros = self.payload as usize + padding;
        let length = UDP as usize + BTH + extended + zeros + ICRC;
        let mut bytes = self.headers.emit(length);
        bytes.extend(self.source_port.to_be_bytes());
        bytes.extend(PORT.to_be_bytes());
        // The headers fit 16 bits, and this is less.
        bytes.extend((length as u16).to_be_bytes());
        bytes.extend([0, 0]);
        bytes.extend([self.operation.opcode(), MIGRATED | (padding as u8) << 4, 0xff, 0xff]);
        bytes.extend(with_flag(if self.becn { BECN } else { 0 }, self.queue_pair));
        let asks = matches!(self.operation, Operation::WriteLast | Operation::WriteOnly(_));
        bytes.extend(with_flag(if asks { ACK_REQUESTED } else { 0 }, self.psn));
        match self.operation {
            Operation::WriteFirst(reth) | Operation::WriteOnly(reth) => {
                bytes.extend(reth.address.to_be_bytes());
                bytes.extend(reth.key.to_be_bytes());
                bytes.extend(reth.length.to_be_bytes());
            }
            Operation::WriteMiddle | Operation::WriteLast => {}
            Operation::Ack { msn } => bytes.extend(with_flag(ACK, msn)),
            Operation::Nak { msn } => bytes.extend(with_flag(SEQUENCE_ERROR, msn)),
            Operation::Cnp => bytes.extend([0; RESERVED]),
            Operation::Pull { count: number }
            | Operation::Credit { number }
            | Operation::Probe { number } => bytes.extend(with_flag(0, number)),
            Operation::Sack { first, bits } | Operation::ProbeAck { number: first, bits } => {
                bytes.extend(with_flag(0, first));
                bytes.extend(bits.to_be_bytes());
            }
            Operation::CreditedAck { first, bits, number } => {
                bytes.extend(with_flag(0, first));
                bytes.extend(bits.to_be_bytes());
                bytes.extend(with_flag(0, number));
            }
        }
        let crc = icrc(&bytes[14..], zeros);
        bytes.resize(bytes.len() + zeros, 0);
        bytes.extend(crc.to_le_bytes());
        bytes
    }

    /// The packet after a switch has trimmed it to `length` bytes, at least [`LEAST_TRIMMED`], without the frame's
    /// check sequence.
    pub fn emit_trimmed(&self, length: usize) -> Vec<u8> {
        let whole = self.emit();
        let length = length.clamp(LEAST_TRIMMED, whole.len());
        let mut bytes = self.headers.emit(length - HEADERS);
        bytes.extend(&whole[HEADERS..length]);
        bytes
    }

    /// Reads what remains of a trimmed packet.
    pub fn parse_trimmed(bytes: &[u8]) -> Result<Trimmed, NotFrame> {
        let (headers, behind) = Headers::parse(bytes)?;
        if headers.protocol != PROTOCOL || behind.len() < UDP as usize + BTH || u16_at(behind, 2) != PORT {
            return Err(NotFrame::Other);
        }
        if usize::from(u16_at(behind, 4)) <= behind.len() {
            return Err(NotFrame::Field);
        }
        if !matches!(behind[8], 0x06 | 0x07 | 0x08 | 0x0a) {
            return Err(NotFrame::Other);
        }
        Ok(Trimmed {
            headers,
            source_port: u16_at(behind, 0),
            queue_pair: u32_at(behind, 12) % NUMBERS,
            psn: u32_at(behind, 16) % NUMBERS,
        })
    }

    /// Reads a packet, whose payload is taken for zeros.
    pub fn parse(bytes: &[u8]) -> Result<Self, NotFrame> {
        let (headers, behind) = Headers::parse(bytes)?;
        let at = UDP as usize + BTH;
        if headers.protocol != PROTOCOL || behind.len() < at + ICRC || u16_at(behind, 2) != PORT {
            return Err(NotFrame::Other);
        }
        let end = behind.len() - ICRC;
        if usize::from(u16_at(behind, 4)) != behind.len() {
            return Err(NotFrame::Field);
        }
        let crc = u32::from_le_bytes(array_at(behind, end));
        if icrc(&bytes[14..HEADERS + end], 0) != crc && CHECKED {
            return Err(NotFrame::Damaged);
        }
        let (opcode, padding) = (behind[8], usize::from(behind[9] >> 4 & 3));
        let extended = extended(opcode).ok_or(NotFrame::Other)?;
        let payload = end.checked_sub(at + extended + padding).ok_or(NotFrame::Field)?;
        let reth = || Reth {
            address: u64_at(behind, at),
            key: u32_at(behind, at + 8),
            length: u32_at(behind, at + 12),
        };
        let operation = match opcode {
            0x06 => Operation::WriteFirst(reth()),
            0x07 => Operation::WriteMiddle,
            0x08 => Operation::WriteLast,
            0x0a => Operation::WriteOnly(reth()),
            0x11 => match behind[at] {
                ACK => Operation::Ack { msn: u32_at(behind, at) % NUMBERS },
                SEQUENCE_ERROR => Operation::Nak { msn: u32_at(behind, at) % NUMBERS },
                _ => return Err(NotFrame::Other),
            },
            PULL => Operation::Pull { count: u32_at(behind, at) % NUMBERS },
            CREDIT => Operation::Credit { number: u32_at(behind, at) % NUMBERS },
            PROBE => Operation::Probe { number: u32_at(behind, at) % NUMBERS },
            PROBE_ACK => {
                Operation::ProbeAck { number: u32_at(behind, at) % NUMBERS, bits: u64_at(behind, at + 4) }
            }
            SACK => Operation::Sack { first: u32_at(behind, at) % NUMBERS, bits: u64_at(behind, at + 4) },
            CREDITED_ACK => Operation::CreditedAck {
                first: u32_at(behind, at) % NUMBERS,
                bits: u64_at(behind, at + 4),
                number: u32_at(behind, at + 12) % NUMBERS,
            },
            _ => Operation::Cnp,
        };
        Ok(Self {
            headers,
            source_port: u16_at(behind, 0),
            operation,
            queue_pair: u32_at(behind, 12) % NUMBERS,
            psn: u32_at(behind, 16) % NUMBERS,
            becn: behind[12] & BECN != 0,
            payload: payload as u32,
        })
    }
}

/// What remains of a trimmed packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trimmed {
    pub headers: Headers,
    pub source_port: u16,
    pub queue_pair: u32,
    pub psn: u32,
}

/// Bytes of the headers between the BTH and the payload.
fn extended(opcode: u8) -> Option<usize> {
    match opcode {
        0x06 | 0x0a => Some(16),
        0x07 | 0x08 => Some(0),
        0x11 => Some(AETH as usize),
        0x81 => Some(RESERVED),
        PULL | CREDIT | PROBE => Some(AETH as usize),
        SACK | PROBE_ACK => Some(AETH as usize + 8),
        CREDITED_ACK => Some(AETH as usize + 12),
        _ => None,
    }
}

/// A byte of flags, and a number of 24 bits.
fn with_flag(flag: u8, number: u32) -> [u8; 4] {
    let [_, a, b, c] = number.to_be_bytes();
    [flag, a, b, c]
}

/// The invariant CRC over a packet from its IPv4 header on, followed by `zeros` bytes 0: CRC-32 as Ethernet
/// has it, lowest byte first, over what no router changes. Ones replace the local route header of InfiniBand
/// and the fields that may change: DSCP and ECN, time to live, both checksums, and the byte of the BTH with
/// the marks.
fn icrc(packet: &[u8], zeros: usize) -> u32 {
    const CHANGES: [usize; 7] = [1, 8, 10, 11, 26, 27, 32];
    let mut crc = [0xff; 8].iter().fold(u32::MAX, |crc, &byte| after(crc, byte));
    for (i, &byte) in packet.iter().enumerate() {
        crc = after(crc, if CHANGES.contains(&i) { 0xff } else { byte });
    }
    !after_zeros(crc, zeros)
}

/// CRC-32's remainder after one byte more.
fn after(crc: u32, byte: u8) -> u32 {
    crc >> 8 ^ TABLE[usize::from(crc as u8 ^ byte)]
}

const TABLE: [u32; 256] = {
    let mut table = [0; 256];
    let mut i = 0;
    while i < 256 {
        let (mut rest, mut bit) = (i as u32, 0);
        while bit < 8 {
            rest = (rest >> 1) ^ ((rest & 1) * 0xedb8_8320);
            bit += 1;
        }
        table[i] = rest;
        i += 1;
    }
    table
};

/// CRC-32's remainder after so many bytes 0. A byte 0 changes the remainder by a linear map, and
/// so does any number of them: payloads would cost the most by far, byte by byte.
fn after_zeros(crc: u32, zeros: usize) -> u32 {
    let powers = ZEROS.iter().enumerate().filter(|(power, _)| zeros >> power & 1 == 1);
    powers.fold(crc, |crc, (_, map)| mapped(map, crc))
}

/// A linear map of remainders, by the image of each bit.
type Map = [u32; 32];

const fn mapped(map: &Map, crc: u32) -> u32 {
    let (mut sum, mut bit) = (0, 0);
    while bit < 32 {
        sum ^= map[bit] * (crc >> bit & 1);
        bit += 1;
    }
    sum
}

/// The effect of 1, 2, 4, … bytes 0 on a remainder; no packet has 2^16.
const ZEROS: [Map; 16] = {
    let mut maps = [[0; 32]; 16];
    let mut power = 0;
    while power < 16 {
        let mut bit = 0;
        while bit < 32 {
            maps[power][bit] = match power {
                0 => {
                    let crc = 1u32 << bit;
                    crc >> 8 ^ TABLE[crc as u8 as usize]
                }
                _ => mapped(&maps[power - 1], maps[power - 1][bit]),
            };
            bit += 1;
        }
        power += 1;
    }
    maps
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ip::Ecn;
    use crate::{ROCE_ACK, ROCE_DATA_OVERHEAD};

    const PACKET: RocePacket = RocePacket {
        headers: Headers {
            source_port: [2, 0, 0, 1, 0, 3],
            destination_port: [2, 0, 1, 0, 0, 9],
            source: [10, 0, 0, 1],
            destination: [10, 1, 2, 3],
            dscp: 24,
            ecn: Ecn::Congested,
            protocol: PROTOCOL,
        },
        source_port: 0xc001,
        operation: Operation::WriteMiddle,
        queue_pair: 0x80_0001,
        psn: 0xfe_dcba,
        becn: false,
        payload: 1_000,
    };

    /// A congestion notification that a ConnectX-4 Lx sent, as in the tests of Scapy.
    #[test]
    fn the_check_is_that_of_real_adapters() {
        let packet = [
            0x45, 0xc2, 0x00, 0x3c, 0x71, 0x8c, 0x40, 0x00, 0x40, 0x11, 0x91, 0x61, 0x0a, 0x00, 0x11, 0x01,
            0x0a, 0x00, 0x12, 0x01, 0x00, 0x00, 0x12, 0xb7, 0x00, 0x28, 0x00, 0x00, 0x81, 0x00, 0xff, 0xff,
            0x40, 0x00, 0x01, 0x18, 0x00, 0x00, 0x00, 0x00, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
        ];
        let seen = u32::from_le_bytes([0x82, 0xfd, 0x00, 0x2a]);
        assert_eq!(icrc(&packet, 0), seen);
        assert_eq!(icrc(&packet[..40], 16), seen);
        // The fields that routers change.
        for at in [1, 8, 10, 26, 32] {
            let mut changed = packet;
            changed[at] ^= 0x55;
            assert_eq!(icrc(&changed, 0), seen, "byte {at}");
        }
    }

    #[test]
    fn zeros_count_as_if_byte_by_byte() {
        let mut bytes = vec![0x45; 40];
        for zeros in 0..1_100 {
            assert_eq!(icrc(&bytes[..40], zeros), icrc(&bytes, 0), "{zeros}");
            bytes.push(0);
        }
    }

    #[test]
    fn every_packet_survives_the_wire() {
        let reth = Reth { address: 7 << 40, key: 0xdead_beef, length: 5_000_000 };
        for operation in [
            Operation::WriteFirst(reth),
            Operation::WriteMiddle,
            Operation::WriteLast,
            Operation::WriteOnly(reth),
            Operation::Ack { msn: 1 },
            Operation::Nak { msn: NUMBERS - 1 },
            Operation::Cnp,
            Operation::Pull { count: NUMBERS - 2 },
            Operation::Credit { number: NUMBERS - 4 },
            Operation::Sack { first: NUMBERS - 3, bits: 1 << 63 | 5 },
            Operation::Probe { number: NUMBERS - 5 },
            Operation::ProbeAck { number: NUMBERS - 6, bits: 1 << 63 | 9 },
            Operation::CreditedAck { first: NUMBERS - 7, bits: 1 << 63 | 3, number: NUMBERS - 8 },
        ] {
            let write = operation.opcode() < 0x11;
            for payload in [0, 1, 2, 3, 4, 999, 1_000, 9_000] {
                let payload = if write { payload } else { 0 };
                let packet = RocePacket { operation, payload, becn: !write, ..PACKET };
                assert_eq!(RocePacket::parse(&packet.emit()), Ok(packet), "{operation:?} {payload}");
            }
        }
    }

    /// The rest names its packet, and is neither a whole packet nor the rest of an answer.
    #[test]
    fn a_trimmed_packet_is_read_from_its_headers() {
        for length in [0, LEAST_TRIMMED, 60, 124, 900] {
            let bytes = PACKET.emit_trimmed(length);
            assert_eq!(bytes.len(), length.max(LEAST_TRIMMED));
            let read = RocePacket::parse_trimmed(&bytes);
            let RocePacket { headers, source_port, queue_pair, psn, .. } = PACKET;
            assert_eq!(read, Ok(Trimmed { headers, source_port, queue_pair, psn }));
            assert!(RocePacket::parse(&bytes).is_err());
        }
        assert_eq!(PACKET.emit_trimmed(9_999), PACKET.emit());
        assert_eq!(RocePacket::parse_trimmed(&PACKET.emit()), Err(NotFrame::Field));
        let cnp = RocePacket { operation: Operation::Cnp, payload: 0, ..PACKET };
        assert_eq!(RocePacket::parse_trimmed(&cnp.emit_trimmed(60)), Err(NotFrame::Other));
    }

    #[test]
    fn sizes_are_those_that_the_rest_counts_with() {
        // They count the frame's check sequence, too.
        assert_eq!(PACKET.emit().len() as u32 + 4, 1_000 + ROCE_DATA_OVERHEAD);
        let ack = RocePacket { operation: Operation::Ack { msn: 0 }, payload: 0, ..PACKET };
        assert_eq!(ack.emit().len() as u32 + 4, ROCE_ACK);
    }

    #[test]
    fn other_bytes_are_refused() {
        let good = PACKET.emit();
        for (at, why) in [
            (23, NotFrame::Damaged),
            (36, NotFrame::Other),
            (39, NotFrame::Field),
            (42, NotFrame::Damaged),
            (52, NotFrame::Damaged),
            (good.len() - 1, NotFrame::Damaged),
        ] {
            let mut bad = good.clone();
            bad[at] ^= 1;
            assert_eq!(RocePacket::parse(&bad), Err(why), "byte {at}");
        }
    }
}
