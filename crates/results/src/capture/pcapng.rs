//! The blocks of a pcapng file (draft-ietf-opsawg-pcapng), in the byte order of little-endian
//! machines on every machine.

use std::io::{self, Write};

const SECTION: u32 = 0x0a0d_0d0a;
const INTERFACE: u32 = 1;
const NAMES: u32 = 4;
const PACKET: u32 = 6;

const MAGIC: u32 = 0x1a2b_3c4d;
/// Major and minor version of the format.
const VERSION: [u16; 2] = [1, 0];
/// The length of a section that is not known.
const UNKNOWN: u64 = u64::MAX;
const ETHERNET: u16 = 1;
/// Timestamps count 10^-9 s. With picoseconds Wireshark 4.0 shows wrong times from 18 ms on: the fraction of
/// a second, times 10^9, exceeds 64 bits.
const NANOSECONDS: u8 = 9;
/// Picoseconds in one.
const NANOSECOND: u64 = 1000;

const END: u16 = 0;
const IF_NAME: u16 = 2;
const IF_DESCRIPTION: u16 = 3;
const IF_MAC_ADDRESS: u16 = 6;
const IF_SPEED: u16 = 8;
const IF_RESOLUTION: u16 = 9;
const SECTION_APPLICATION: u16 = 4;
const PACKET_FLAGS: u16 = 2;
/// A record that names an IPv4 address.
const NAMES_IPV4: u16 = 1;

/// Bits of a packet's flags.
pub const INBOUND: u32 = 1;
pub const OUTBOUND: u32 = 2;
/// Its check sequence did not fit.
pub const CRC_ERROR: u32 = 1 << 24;

pub struct Interface<'a> {
    pub name: &'a str,
    pub description: &'a str,
    pub mac: [u8; 6],
    pub speed: u64,
}

/// A block in the making; used again for the next one.
#[derive(Debug, Default)]
pub struct Block(Vec<u8>);

impl Block {
    fn padded(&mut self, bytes: &[u8]) {
        self.0.extend(bytes);
        self.0.resize(self.0.len().next_multiple_of(4), 0);
    }

    /// An option, or a record of names.
    fn option(&mut self, code: u16, value: &[u8]) {
        self.0.extend(code.to_le_bytes());
        let length = u16::try_from(value.len()).expect("names are below 64 KiB");
        self.0.extend(length.to_le_bytes());
        self.padded(value);
    }

    /// Writes the content as a block of type `kind`.
    fn write(&mut self, kind: u32, sink: &mut impl Write) -> io::Result<()> {
        let length = u32::try_from(self.0.len() + 12).expect("a block is below 4 GiB").to_le_bytes();
        sink.write_all(&kind.to_le_bytes())?;
        sink.write_all(&length)?;
        sink.write_all(&self.0)?;
        sink.write_all(&length)?;
        self.0.clear();
        Ok(())
    }

    /// The beginning of a file that `application` writes.
    pub fn section(&mut self, application: &str, sink: &mut impl Write) -> io::Result<()> {
        self.0.extend(MAGIC.to_le_bytes());
        self.0.extend(VERSION.map(u16::to_le_bytes).as_flattened());
        self.0.extend(UNKNOWN.to_le_bytes());
        self.option(SECTION_APPLICATION, application.as_bytes());
        self.option(END, &[]);
        self.write(SECTION, sink)
    }

    /// An interface, of whose packets at most `snap` bytes are stored; they are numbered from 0.
    pub fn interface(&mut self, about: &Interface, snap: u32, sink: &mut impl Write) -> io::Result<()> {
        self.0.extend(ETHERNET.to_le_bytes());
        self.0.extend([0; 2]);
        self.0.extend(snap.to_le_bytes());
        self.option(IF_NAME, about.name.as_bytes());
        self.option(IF_DESCRIPTION, about.description.as_bytes());
        self.option(IF_MAC_ADDRESS, &about.mac);
        self.option(IF_SPEED, &about.speed.to_le_bytes());
        self.option(IF_RESOLUTION, &[NANOSECONDS]);
        self.option(END, &[]);
        self.write(INTERFACE, sink)
    }

    /// Names of IPv4 addresses.
    pub fn names<'n>(
        &mut self,
        names: impl Iterator<Item = ([u8; 4], &'n str)>,
        sink: &mut impl Write,
    ) -> io::Result<()> {
        for (address, name) in names {
            let record: Vec<u8> = address.into_iter().chain(name.bytes()).chain([0]).collect();
            self.option(NAMES_IPV4, &record);
        }
        self.option(END, &[]);
        self.write(NAMES, sink)
    }

    /// A packet of `length` bytes that crossed an interface at `time` (ps), of which `bytes` are stored.
    pub fn packet(
        &mut self,
        (interface, time, flags): (u32, u64, u32),
        bytes: &[u8],
        length: u32,
        sink: &mut impl Write,
    ) -> io::Result<()> {
        let time = time / NANOSECOND;
        let stored = u32::try_from(bytes.len()).expect("a packet is below 64 KiB");
        for word in [interface, (time >> 32) as u32, time as u32, stored, length] {
            self.0.extend(word.to_le_bytes());
        }
        self.padded(bytes);
        self.option(PACKET_FLAGS, &flags.to_le_bytes());
        self.option(END, &[]);
        self.write(PACKET, sink)
    }
}
