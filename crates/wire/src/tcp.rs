//! TCP segments over IPv4 (RFC 9293), without options.
//!
//! ```text
//! byte 34  source port, destination port
//!      38  sequence number, 32 bits
//!      42  acknowledgement number, 32 bits
//!      46  header length (5 words); flags: CWR, ECE, URG, ACK, PSH, RST, SYN, FIN
//!      48  window, checksum, urgent pointer
//!      54  payload
//!          zeros up to the smallest frame
//! ```

use crate::ip::{Headers, folded, sum};
use crate::{CHECKED, NotFrame, SMALLEST_FRAME, u16_at, u32_at};

/// Protocol number of TCP.
pub const PROTOCOL: u8 = 6;
/// Header without options, in bytes.
pub const HEADER: u32 = 20;

const LENGTH: u8 = 5 << 4;
const ACK: u8 = 0x10;
const ECE: u8 = 0x40;

/// A segment of a connection that is up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    pub headers: Headers,
    pub source_port: u16,
    pub destination_port: u16,
    /// Number of its first byte, modulo 2^32.
    pub sequence: u32,
    /// Number of the next byte expected, modulo 2^32.
    pub acknowledgement: u32,
    /// ECN echo (RFC 3168): marked data have come.
    pub echo: bool,
    /// Bytes of payload, all of them zeros.
    pub payload: u32,
}

/// The checksum of a segment, or 0 if one that is in place fits.
fn checksum(headers: &Headers, segment: &[u8]) -> u16 {
    let length = segment.len() as u32;
    let pseudo = sum(&headers.source) + sum(&headers.destination) + u32::from(PROTOCOL) + length;
    folded(pseudo + sum(segment))
}

impl Segment {
    /// The frame, without its check sequence.
    pub fn emit(&self) -> Vec<u8> {
        let mut bytes = self.headers.emit((HEADER + self.payload) as usize);
        let begin = bytes.len();
        bytes.extend(self.source_port.to_be_bytes());
        bytes.extend(self.destination_port.to_be_bytes());
        bytes.extend(self.sequence.to_be_bytes());
        bytes.extend(self.acknowledgement.to_be_bytes());
        bytes.extend([LENGTH, if self.echo { ACK | ECE } else { ACK }]);
        // The largest window; no checksum yet; nothing urgent.
        bytes.extend([0xff, 0xff, 0, 0, 0, 0]);
        bytes.resize(bytes.len() + self.payload as usize, 0);
        let check = checksum(&self.headers, &bytes[begin..]);
        bytes[begin + 16..begin + 18].copy_from_slice(&check.to_be_bytes());
        bytes.resize(bytes.len().max(SMALLEST_FRAME as usize - 4), 0);
        bytes
    }

    /// Reads a frame, whose payload is taken for zeros.
    pub fn parse(bytes: &[u8]) -> Result<Self, NotFrame> {
        let (headers, segment) = Headers::parse(bytes)?;
        if headers.protocol != PROTOCOL
            || segment.len() < HEADER as usize
            || segment[12] != LENGTH
            || segment[13] & !ECE != ACK
        {
            return Err(NotFrame::Other);
        }
        if checksum(&headers, segment) != 0 && CHECKED {
            return Err(NotFrame::Damaged);
        }
        Ok(Self {
            headers,
            source_port: u16_at(segment, 0),
            destination_port: u16_at(segment, 2),
            sequence: u32_at(segment, 4),
            acknowledgement: u32_at(segment, 8),
            echo: segment[13] & ECE != 0,
            payload: segment.len() as u32 - HEADER,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ip::Ecn;

    const SEGMENT: Segment = Segment {
        headers: Headers {
            source_port: [2, 0, 0, 1, 0, 3],
            destination_port: [2, 0, 1, 0, 0, 9],
            source: [10, 0, 0, 1],
            destination: [10, 1, 2, 3],
            dscp: 24,
            ecn: Ecn::Capable0,
            protocol: PROTOCOL,
        },
        source_port: 0xc001,
        destination_port: 9,
        sequence: 0xffff_ff00,
        acknowledgement: 1,
        echo: false,
        payload: 1_000,
    };

    #[test]
    fn segments_survive_the_wire() {
        for (payload, echo, length) in [(0, true, 60), (1, false, 60), (7, false, 61), (9_000, false, 9_054)]
        {
            let segment = Segment { payload, echo, ..SEGMENT };
            let bytes = segment.emit();
            assert_eq!(bytes.len(), length);
            assert_eq!(Segment::parse(&bytes), Ok(segment));
        }
    }

    #[test]
    fn other_bytes_are_refused() {
        let good = SEGMENT.emit();
        for (at, why) in [
            (26, NotFrame::Damaged),
            (46, NotFrame::Other),
            (47, NotFrame::Other),
            (38, NotFrame::Damaged),
            (500, NotFrame::Damaged),
        ] {
            let mut bad = good.clone();
            bad[at] ^= 1;
            assert_eq!(Segment::parse(&bad), Err(why), "byte {at}");
        }
    }
}
