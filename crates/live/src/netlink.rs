//! Links between network namespaces: requests to the kernel over rtnetlink (rtnetlink(7), veth(4)).

use nix::net::if_::InterfaceFlags;
use nix::sys::socket::{AddressFamily, MsgFlags, NetlinkAddr, SockFlag, SockProtocol, SockType};
use nix::sys::socket::{bind, recv, send, socket};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};

const NEW_LINK: u16 = 16;
const ERROR: u16 = 2;
/// Flags of a request that asks for an answer, and of one that makes an object, which must not exist yet.
const REQUEST: u16 = 0x01 | 0x04;
const CREATE: u16 = 0x200 | 0x400;
const NESTED: u16 = 0x8000;

const ADDRESS: u16 = 1;
const NAME: u16 = 3;
const MTU: u16 = 4;
const LINK_INFO: u16 = 18;
const NAMESPACE_OF: u16 = 19;
const NAMESPACE: u16 = 28;
const TX_QUEUES: u16 = 31;
const RX_QUEUES: u16 = 32;
const INFO_KIND: u16 = 1;
const INFO_DATA: u16 = 2;
const VETH_PEER: u16 = 1;

/// The most that a veth pair carries.
pub const LARGEST: u32 = 65_535;
/// Bytes of the header of a message.
const HEADER: usize = 16;

/// One end of a veth pair.
pub struct End<'a> {
    pub name: &'a str,
    pub mac: [u8; 6],
    pub namespace: Inside<'a>,
}

/// A namespace.
#[derive(Clone, Copy)]
pub enum Inside<'a> {
    /// That of a process.
    Of(u32),
    Fd(BorrowedFd<'a>),
}

/// A socket for requests, in the namespace of the thread that made it.
pub struct Netlink(OwnedFd);

impl Netlink {
    pub fn new() -> io::Result<Self> {
        let socket = socket(
            AddressFamily::Netlink,
            SockType::Raw,
            SockFlag::SOCK_CLOEXEC,
            SockProtocol::NetlinkRoute,
        )?;
        bind(socket.as_raw_fd(), &NetlinkAddr::new(0, 0))?;
        Ok(Self(socket))
    }

    /// Makes a veth pair.
    pub fn pair(&self, [one, other]: [&End; 2]) -> io::Result<()> {
        let mut body = link(0, 0);
        end(&mut body, one);
        let mut peer = link(0, 0);
        end(&mut peer, other);
        let mut data = Vec::new();
        attribute(&mut data, VETH_PEER | NESTED, &peer);
        let mut info = Vec::new();
        attribute(&mut info, INFO_KIND, b"veth");
        attribute(&mut info, INFO_DATA | NESTED, &data);
        attribute(&mut body, LINK_INFO | NESTED, &info);
        self.request(REQUEST | CREATE, &body)
    }

    /// Sets the interface `index` up.
    pub fn up(&self, index: u32) -> io::Result<()> {
        self.request(REQUEST, &link(index, InterfaceFlags::IFF_UP.bits() as u32))
    }

    fn request(&self, flags: u16, body: &[u8]) -> io::Result<()> {
        let mut message = ((HEADER + body.len()) as u32).to_ne_bytes().to_vec();
        message.extend([NEW_LINK, flags].map(u16::to_ne_bytes).as_flattened());
        message.extend([0; 8]);
        message.extend(body);
        send(self.0.as_raw_fd(), &message, MsgFlags::empty())?;
        let mut answer = [0; 4096];
        let length = recv(self.0.as_raw_fd(), &mut answer, MsgFlags::empty())?;
        let kind = u16::from_ne_bytes([answer[4], answer[5]]);
        if length < HEADER + 4 || kind != ERROR {
            return Err(io::Error::other(format!("rtnetlink returned a message of type {kind}")));
        }
        match i32::from_ne_bytes(std::array::from_fn(|i| answer[HEADER + i])) {
            0 => Ok(()),
            error => Err(io::Error::from_raw_os_error(-error)),
        }
    }
}

/// The fixed part of a message about a link: its number, and the flags to set.
fn link(index: u32, flags: u32) -> Vec<u8> {
    [0, index, flags, flags].map(u32::to_ne_bytes).concat()
}

fn attribute(message: &mut Vec<u8>, kind: u16, value: &[u8]) {
    message.extend([(4 + value.len()) as u16, kind].map(u16::to_ne_bytes).as_flattened());
    message.extend(value);
    message.resize(message.len().next_multiple_of(4), 0);
}

fn end(message: &mut Vec<u8>, end: &End) {
    attribute(message, NAME, &[end.name.as_bytes(), &[0]].concat());
    attribute(message, ADDRESS, &end.mac);
    attribute(message, MTU, &LARGEST.to_ne_bytes());
    // By default each processor has its own, and a probe over one says nothing about the others.
    attribute(message, TX_QUEUES, &1u32.to_ne_bytes());
    attribute(message, RX_QUEUES, &1u32.to_ne_bytes());
    match end.namespace {
        Inside::Of(process) => attribute(message, NAMESPACE_OF, &process.to_ne_bytes()),
        Inside::Fd(fd) => attribute(message, NAMESPACE, &fd.as_raw_fd().to_ne_bytes()),
    }
}
