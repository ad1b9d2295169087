//! Ethernet and IPv4 headers, and the addresses that devices have.
//!
//! ```text
//! byte  0  destination, source: 6 bytes each
//!      12  EtherType 0x0800
//!      14  version and header length (0x45), DSCP (6 bits) and ECN (2 bits)
//!      16  length from byte 14 on, 16 bits; identification 0
//!      20  "don't fragment"; time to live 64; protocol; header checksum
//!      26  source, destination: 4 bytes each
//!      34  what the protocol says
//! ```

use crate::{CHECKED, IPV4, NotFrame, array_at, u16_at};

/// Bytes of both headers; the check sequence at the end of the frame is not among them.
pub const HEADERS: usize = 14 + IPV4 as usize;

const ETHERTYPE: [u8; 2] = [0x08, 0x00];
const VERSION_AND_LENGTH: u8 = 0x45;
const DONT_FRAGMENT: [u8; 2] = [0x40, 0x00];
const TIME_TO_LIVE: u8 = 64;

/// The MAC address of a port: locally administered, the number of its node below 2^24 and then
/// its own number there.
pub fn mac(node: u32, port: u16) -> [u8; 6] {
    let [_, a, b, c] = node.to_be_bytes();
    let [d, e] = port.to_be_bytes();
    [0x02, a, b, c, d, e]
}

/// The IPv4 address of a node: 10.0.0.0 plus its number, which is below 2^24.
pub fn address(node: u32) -> [u8; 4] {
    (0x0a00_0000 | node & 0x00ff_ffff).to_be_bytes()
}

/// The congestion bits of a packet (RFC 3168).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Ecn {
    /// Its transport does not understand marks.
    NotCapable = 0,
    /// ECT(1).
    Capable1 = 1,
    /// ECT(0).
    Capable0 = 2,
    /// CE: marked.
    Congested = 3,
}

/// Both headers, but for lengths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Headers {
    /// MAC addresses of the ports at both ends of the link.
    pub source_port: [u8; 6],
    pub destination_port: [u8; 6],
    /// IPv4 addresses of the hosts at both ends of the route.
    pub source: [u8; 4],
    pub destination: [u8; 4],
    /// DSCP, below 64.
    pub dscp: u8,
    pub ecn: Ecn,
    /// 17 is UDP, 6 TCP.
    pub protocol: u8,
}

/// The sum of 16-bit words that checksums of IPv4, UDP and TCP are made of (RFC 1071).
pub(crate) fn sum(bytes: &[u8]) -> u32 {
    bytes.chunks(2).fold(0, |sum, pair| {
        sum + u32::from(u16::from_be_bytes([pair[0], pair.get(1).copied().unwrap_or(0)]))
    })
}

/// The checksum that a sum gives.
pub(crate) fn folded(mut sum: u32) -> u16 {
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

impl Headers {
    /// Both headers in front of `length` bytes.
    ///
    /// # Panics
    /// If that is more than a packet of IPv4 holds.
    pub fn emit(&self, length: usize) -> Vec<u8> {
        let total = u16::try_from(length + IPV4 as usize).expect("a packet of IPv4 is below 64 KiB");
        let mut bytes = Vec::with_capacity(HEADERS + length + 4);
        bytes.extend(self.destination_port);
        bytes.extend(self.source_port);
        bytes.extend(ETHERTYPE);
        bytes.extend([VERSION_AND_LENGTH, self.dscp << 2 | self.ecn as u8]);
        bytes.extend(total.to_be_bytes());
        bytes.extend([0, 0]);
        bytes.extend(DONT_FRAGMENT);
        bytes.extend([TIME_TO_LIVE, self.protocol, 0, 0]);
        bytes.extend(self.source);
        bytes.extend(self.destination);
        let checksum = folded(sum(&bytes[14..HEADERS]));
        bytes[24..26].copy_from_slice(&checksum.to_be_bytes());
        bytes
    }

    /// Reads both headers; returns them and the payload, without a frame's padding.
    pub fn parse(bytes: &[u8]) -> Result<(Self, &[u8]), NotFrame> {
        if bytes.len() < HEADERS {
            return Err(NotFrame::Short);
        }
        if bytes[12..14] != ETHERTYPE || bytes[14] != VERSION_AND_LENGTH || bytes[20..22] != DONT_FRAGMENT {
            return Err(NotFrame::Other);
        }
        if folded(sum(&bytes[14..HEADERS])) != 0 && CHECKED {
            return Err(NotFrame::Damaged);
        }
        let total = usize::from(u16_at(bytes, 16));
        let behind = bytes.get(HEADERS..14 + total).ok_or(NotFrame::Short)?;
        let headers = Self {
            destination_port: array_at(bytes, 0),
            source_port: array_at(bytes, 6),
            source: array_at(bytes, 26),
            destination: array_at(bytes, 30),
            dscp: bytes[15] >> 2,
            ecn: [Ecn::NotCapable, Ecn::Capable1, Ecn::Capable0, Ecn::Congested][usize::from(bytes[15] & 3)],
            protocol: bytes[23],
        };
        Ok((headers, behind))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADERS_OF_ONE: Headers = Headers {
        source_port: [2, 0, 0, 1, 0, 3],
        destination_port: [2, 0, 1, 0, 0, 9],
        source: [10, 0, 0, 1],
        destination: [10, 1, 2, 3],
        dscp: 24,
        ecn: Ecn::Congested,
        protocol: 17,
    };

    /// The example of a checksum in RFC 1071, section 3.
    #[test]
    fn the_sum_is_that_of_the_rfc() {
        let sum = sum(&[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7]);
        assert_eq!((sum, folded(sum)), (0x2_ddf0, !0xddf2));
    }

    #[test]
    fn headers_survive_the_wire_and_padding_is_left_out() {
        for ecn in [Ecn::NotCapable, Ecn::Capable1, Ecn::Capable0, Ecn::Congested] {
            let headers = Headers { ecn, ..HEADERS_OF_ONE };
            let mut bytes = headers.emit(3);
            bytes.extend([7, 8, 9, 0, 0, 0]);
            assert_eq!(Headers::parse(&bytes), Ok((headers, &[7, 8, 9][..])));
        }
        assert_eq!(mac(0x01_0203, 0x0405), [2, 1, 2, 3, 4, 5]);
        assert_eq!(address(0x01_0203), [10, 1, 2, 3]);
    }

    #[test]
    fn other_bytes_are_refused() {
        let good = HEADERS_OF_ONE.emit(0);
        assert_eq!(Headers::parse(&good[..33]), Err(NotFrame::Short));
        assert_eq!(Headers::parse(&HEADERS_OF_ONE.emit(1)), Err(NotFrame::Short));
        for (at, why) in
            [(12, NotFrame::Other), (14, NotFrame::Other), (20, NotFrame::Other), (26, NotFrame::Damaged)]
        {
            let mut bad = good.clone();
            bad[at] ^= 0x20;
            assert_eq!(Headers::parse(&bad), Err(why), "byte {at}");
        }
    }
}
