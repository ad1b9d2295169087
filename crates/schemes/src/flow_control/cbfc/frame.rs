//! Flow-control packets of InfiniBand's credits, the frames of `cbfc`.
//!
//! A link packet (InfiniBand Architecture Specification vol. 1, §7.9.4) concerns one virtual lane, and has
//! two numbers for the neighbour: the blocks that were sent to it, and its limit for sending. On the wire it
//! is eight symbols of a byte each:
//!
//! ```text
//! byte  0  start delimiter of a link packet (SLP)
//!       1  operand, 4 bits: 0 in operation, 1 while the link begins
//!          FCTBS, 12 bits: blocks sent, modulo 4096
//!       3  virtual lane, 4 bits
//!          FCCL, 12 bits: blocks up to which the neighbour may send, modulo 4096
//!       5  LPCRC, 16 bits, over bytes 1 to 4
//!       7  end of a good packet (EGP)
//! ```
//!
//! The LPCRC has the polynomial of the variant CRC, x^16 + x^12 + x^3 + x + 1 (0x100B), and begins with ones;
//! bits enter by bytes in order, the lowest bit of each first, and the remainder is complemented.
//!
//! Twelve bits let 2,048 blocks of 64 B be outstanding, 131,072 B: links with more per round trip are never
//! full. The *wide* form, which no standard has, has counters of 64 bits, which never wrap:
//!
//! ```text
//! byte  0  SLP
//!       1  operand 2 and virtual lane, 4 bits each
//!       2  zeros
//!       4  FCTBS, 64 bits
//!      12  FCCL, 64 bits
//!      20  LPCRC, 16 bits, over bytes 1 to 19
//!      22  zero
//!      23  EGP
//! ```
//!
//! Ethernet has no link packets, and its smallest frame is eight times as long; these have the bytes above on
//! every link. In captures they lie in a frame of the EtherType of [`xoff_wire::experimental`]:
//!
//! ```text
//! byte  0  destination 01-80-C2-00-00-01
//!       6  source
//!      12  EtherType 0x88B5
//!      14  7: a link packet
//!      15  its bytes: 8 or 24
//!      16  the packet
//!          zeros up to the smallest frame
//! ```

use crate::flow_control::frame::{ControlFrame, Effect, Frame};
use xoff_wire::experimental::{self, NotFrame};
use xoff_wire::{CHECKED, u16_at};

const KIND: u8 = 7;

/// Bytes of a block, the unit of credit (InfiniBand vol. 1, §7.9.4).
pub const BLOCK: u32 = 64;
/// Counters of the narrow form are modulo this.
pub const MODULUS: u64 = 4096;
/// Most blocks that the narrow form lets be outstanding.
pub const MOST: u64 = MODULUS / 2;

/// K28.2 of 8b/10b, which begins a link packet.
const SLP: u8 = 0x5c;
/// K29.7 of 8b/10b, which ends a packet that is good.
const EGP: u8 = 0xfd;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// InfiniBand's, of 12 bits.
    Narrow,
    /// Of 64 bits, an extension of this project.
    Wide,
}

impl Form {
    /// A counter as this form has it.
    pub(super) fn encode(self, blocks: u64) -> u64 {
        if self == Self::Narrow { blocks % MODULUS } else { blocks }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CreditPacket {
    /// Its form; of the narrow one both counters are below [`MODULUS`].
    pub form: Form,
    /// The virtual lane, 0 to 15.
    pub lane: u8,
    /// FCTBS: blocks that its sender has sent on this lane since the link began.
    pub sent: u64,
    /// FCCL: blocks up to which its receiver may send on this lane.
    pub limit: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotCredit {
    /// Another number of bytes than either form has.
    Length,
    /// Delimiters or operand of something else.
    Other,
    /// The check sequence does not fit.
    Damaged,
}

fn lpcrc(bytes: &[u8]) -> u16 {
    // 0x100B with its bits in the order in which they are sent.
    const POLYNOMIAL: u16 = 0x100B_u16.reverse_bits();
    let mut rest = 0xFFFF_u16;
    for &byte in bytes {
        rest ^= u16::from(byte);
        for _ in 0..8 {
            rest = if rest & 1 == 1 { rest >> 1 ^ POLYNOMIAL } else { rest >> 1 };
        }
    }
    !rest
}

impl CreditPacket {
    /// Bytes of the two forms on the wire.
    pub const NARROW: u32 = 8;
    pub const WIDE: u32 = 24;

    /// A packet that says these numbers, as far as its form can.
    pub fn new(form: Form, lane: u8, sent: u64, limit: u64) -> Self {
        Self { form, lane, sent: form.encode(sent), limit: form.encode(limit) }
    }

    /// Bytes on the wire, delimiters included.
    pub fn length(&self) -> u32 {
        if self.form == Form::Narrow { Self::NARROW } else { Self::WIDE }
    }

    /// The packet with its delimiters.
    pub fn emit_packet(&self) -> Vec<u8> {
        let mut bytes = vec![SLP];
        match self.form {
            Form::Narrow => {
                bytes.extend((self.sent as u16 & 0xfff).to_be_bytes());
                bytes.extend((u16::from(self.lane) << 12 | self.limit as u16 & 0xfff).to_be_bytes());
                bytes.extend(lpcrc(&bytes[1..5]).to_le_bytes());
            }
            Form::Wide => {
                bytes.extend([2 << 4 | self.lane, 0, 0]);
                bytes.extend(self.sent.to_be_bytes());
                bytes.extend(self.limit.to_be_bytes());
                bytes.extend(lpcrc(&bytes[1..20]).to_le_bytes());
                bytes.push(0);
            }
        }
        bytes.push(EGP);
        bytes
    }

    /// The packet in an Ethernet frame, without that one's check sequence.
    pub fn emit(&self, source: [u8; 6]) -> Vec<u8> {
        let mut bytes = experimental::emit(KIND, source).to_vec();
        let packet = self.emit_packet();
        bytes[15] = packet.len() as u8;
        bytes[16..16 + packet.len()].copy_from_slice(&packet);
        bytes
    }

    /// Reads a packet in an Ethernet frame.
    pub fn parse(bytes: &[u8]) -> Result<Self, NotCredit> {
        experimental::expect(bytes, KIND, 16).map_err(|why| match why {
            NotFrame::Short => NotCredit::Length,
            _ => NotCredit::Other,
        })?;
        Self::parse_packet(bytes.get(16..16 + usize::from(bytes[15])).ok_or(NotCredit::Length)?)
    }

    /// Reads a packet with its delimiters.
    pub fn parse_packet(bytes: &[u8]) -> Result<Self, NotCredit> {
        let narrow = match bytes.len() as u32 {
            Self::NARROW => true,
            Self::WIDE => false,
            _ => return Err(NotCredit::Length),
        };
        if bytes[0] != SLP || bytes[bytes.len() - 1] != EGP {
            return Err(NotCredit::Other);
        }
        let end = if narrow { 5 } else { 20 };
        if lpcrc(&bytes[1..end]).to_le_bytes() != bytes[end..end + 2] && CHECKED {
            return Err(NotCredit::Damaged);
        }
        let operand = bytes[1] >> 4;
        if narrow {
            // A link that begins says the same in the same places.
            let (first, second) = (u16_at(bytes, 1), u16_at(bytes, 3));
            let number = |word: u16| u64::from(word & 0xfff);
            return match operand {
                0 | 1 => Ok(Self::new(Form::Narrow, (second >> 12) as u8, number(first), number(second))),
                _ => Err(NotCredit::Other),
            };
        }
        let number = |at: usize| bytes[at..at + 8].iter().fold(0, |n, &byte| n << 8 | u64::from(byte));
        match (operand, [bytes[2], bytes[3], bytes[22]]) {
            (2, [0, 0, 0]) => Ok(Self::new(Form::Wide, bytes[1] & 0xf, number(4), number(12))),
            _ => Err(NotCredit::Other),
        }
    }
}

impl Frame for CreditPacket {
    fn length(&self) -> u32 {
        self.length()
    }

    fn effect(&self) -> Effect {
        Effect::Credit { priorities: 1 << self.lane, limited: None }
    }

    /// The counters of the later packet hold for both.
    fn merge(&mut self, later: &ControlFrame) -> bool {
        let ControlFrame::Credit(later) = later else { return false };
        let same = later.lane == self.lane;
        if same {
            *self = *later;
        }
        same
    }

    #[cfg(test)]
    fn note(&self, port: u32) -> String {
        format!("credit {port} v{} {} {}", self.lane, self.sent, self.limit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_packet_survives_the_wire() {
        for lane in 0..16 {
            for (sent, limit) in [(0, 0), (1, 2049), (4095, 2047), (u64::MAX, 1 << 40)] {
                for form in [Form::Narrow, Form::Wide] {
                    let packet = CreditPacket::new(form, lane, sent, limit);
                    let bytes = packet.emit_packet();
                    assert_eq!(bytes.len() as u32, packet.length());
                    assert_eq!(CreditPacket::parse_packet(&bytes), Ok(packet));
                    let framed = packet.emit([2; 6]);
                    assert_eq!((framed.len(), CreditPacket::parse(&framed)), (60, Ok(packet)));
                    if form == Form::Narrow {
                        assert_eq!((packet.sent, packet.limit), (sent % 4096, limit % 4096));
                    }
                }
            }
        }
    }

    #[test]
    fn the_layout_is_as_described() {
        let bytes = CreditPacket::new(Form::Narrow, 0xb, 0x123, 0x456).emit_packet();
        assert_eq!(bytes[..5], [SLP, 0x01, 0x23, 0xb4, 0x56]);
        assert_eq!(bytes[7], EGP);
        let bytes = CreditPacket::new(Form::Wide, 0xb, 0x0102_0304_0506_0708, 9).emit_packet();
        assert_eq!(bytes[..12], [SLP, 0x2b, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8]);
        assert_eq!(bytes[12..20], [0, 0, 0, 0, 0, 0, 0, 9]);
    }

    /// The check sequence by long division of the polynomial, bit by bit.
    #[test]
    fn the_check_sequence_is_the_remainder_of_a_division() {
        for bytes in [&[0u8, 0, 0, 0][..], &[0x01, 0x23, 0xb4, 0x56], &[0xff; 19]] {
            let mut bits: Vec<bool> =
                bytes.iter().flat_map(|b| (0..8).map(move |i| b >> i & 1 == 1)).collect();
            bits.extend([false; 16]);
            // Ones to begin with.
            bits[..16].iter_mut().for_each(|bit| *bit = !*bit);
            for at in 0..bits.len() - 16 {
                if bits[at] {
                    for power in [16, 12, 3, 1, 0] {
                        bits[at + 16 - power] ^= true;
                    }
                }
            }
            // The highest power is sent first, in the lowest bit.
            let rest =
                bits[bits.len() - 16..].iter().enumerate().fold(0, |r, (i, &bit)| r | u16::from(bit) << i);
            assert_eq!(lpcrc(bytes), !rest);
        }
    }

    #[test]
    fn other_bytes_are_refused() {
        for form in [Form::Narrow, Form::Wide] {
            let good = CreditPacket::new(form, 3, 77, 99).emit_packet();
            assert_eq!(CreditPacket::parse_packet(&good[1..]), Err(NotCredit::Length));
            let framed = CreditPacket::new(form, 3, 77, 99).emit([2; 6]);
            for (at, why) in [(0, NotCredit::Other), (14, NotCredit::Other), (15, NotCredit::Length)] {
                let mut bad = framed.clone();
                bad[at] ^= 1;
                assert_eq!(CreditPacket::parse(&bad), Err(why), "byte {at}");
            }
            assert_eq!(CreditPacket::parse(&framed[..15]), Err(NotCredit::Length));
            for at in 0..good.len() {
                for bit in 0..8 {
                    let mut bad = good.clone();
                    bad[at] ^= 1 << bit;
                    assert!(CreditPacket::parse_packet(&bad).is_err(), "{form:?}: bit {bit} of byte {at}");
                }
            }
        }
    }
}
