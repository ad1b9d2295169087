//! Chakra execution traces (MLCommons), as bytes: what one rank of a job did.
//!
//! A trace is a sequence of protobuf messages, each after its length as a varint: [`Metadata`], then a [`Node`] for
//! each. It may be compressed with gzip. Field numbers are those of `schema/protobuf/et_def.proto` in
//! <https://github.com/mlcommons/chakra>; fields that no rule here needs are skipped.

use flate2::read::MultiGzDecoder;
use prost::Message;
use std::io::Read;

/// Most bytes of a trace after decompression, 1 GiB.
const LARGEST: u64 = 1 << 30;

/// The first message of a trace.
#[derive(Clone, PartialEq, Message)]
pub struct Metadata {
    /// Of the schema.
    #[prost(string, tag = "1")]
    pub version: String,
}

/// What a rank does at a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, prost::Enumeration)]
#[repr(i32)]
pub enum Kind {
    /// Nothing.
    Invalid = 0,
    /// Nothing; its inputs can name groups of ranks.
    Metadata = 1,
    /// Loads from a remote memory.
    MemLoad = 2,
    /// Stores to a remote memory.
    MemStore = 3,
    /// Computes.
    Comp = 4,
    /// Sends a message.
    CommSend = 5,
    /// Waits for a message.
    CommRecv = 6,
    /// Takes part in a collective.
    CommColl = 7,
}

/// The collectives, by the values of the attribute `comm_type`.
pub const COLLECTIVES: [&str; 10] = [
    "ALL_REDUCE",
    "REDUCE",
    "ALL_GATHER",
    "GATHER",
    "SCATTER",
    "BROADCAST",
    "ALL_TO_ALL",
    "REDUCE_SCATTER",
    "REDUCE_SCATTER_BLOCK",
    "BARRIER",
];

/// A node of a trace.
#[derive(Clone, PartialEq, Message)]
pub struct Node {
    /// Different for each node of a trace.
    #[prost(uint64, tag = "1")]
    pub id: u64,
    /// Of the operation.
    #[prost(string, tag = "2")]
    pub name: String,
    /// What it does.
    #[prost(enumeration = "Kind", tag = "3")]
    pub kind: i32,
    /// Nodes that are done before it.
    #[prost(uint64, repeated, tag = "4")]
    pub ctrl_deps: Vec<u64>,
    /// The same.
    #[prost(uint64, repeated, tag = "5")]
    pub data_deps: Vec<u64>,
    /// How long it took, in microseconds.
    #[prost(uint64, tag = "7")]
    pub duration_micros: u64,
    /// What it read.
    #[prost(message, optional, tag = "8")]
    pub inputs: Option<Values>,
    /// Further properties.
    #[prost(message, repeated, tag = "10")]
    pub attr: Vec<Attribute>,
}

/// Inputs of a node.
#[derive(Clone, PartialEq, Message)]
pub struct Values {
    /// As Python prints them.
    #[prost(string, tag = "1")]
    pub values: String,
}

/// A property of a node.
#[derive(Clone, PartialEq, Message)]
pub struct Attribute {
    /// Such as `comm_size`.
    #[prost(string, tag = "1")]
    pub name: String,
    /// Its value; `None` if it is a list of other than truth values.
    #[prost(oneof = "Value", tags = "3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 28, 29")]
    pub value: Option<Value>,
}

/// The value of an attribute. Generators differ in the variant that they use for a number.
#[derive(Clone, PartialEq, prost::Oneof)]
pub enum Value {
    /// A float.
    #[prost(double, tag = "3")]
    Double(f64),
    /// A float.
    #[prost(float, tag = "5")]
    Float(f32),
    /// An integer, as all up to [`Value::Sfixed64`].
    #[prost(int32, tag = "7")]
    Int32(i32),
    /// An integer.
    #[prost(int64, tag = "9")]
    Int64(i64),
    /// An integer.
    #[prost(uint32, tag = "11")]
    Uint32(u32),
    /// An integer.
    #[prost(uint64, tag = "13")]
    Uint64(u64),
    /// An integer.
    #[prost(sint32, tag = "15")]
    Sint32(i32),
    /// An integer.
    #[prost(sint64, tag = "17")]
    Sint64(i64),
    /// An integer.
    #[prost(fixed32, tag = "19")]
    Fixed32(u32),
    /// An integer.
    #[prost(fixed64, tag = "21")]
    Fixed64(u64),
    /// An integer.
    #[prost(sfixed32, tag = "23")]
    Sfixed32(i32),
    /// An integer.
    #[prost(sfixed64, tag = "25")]
    Sfixed64(i64),
    /// A truth value.
    #[prost(bool, tag = "27")]
    Bool(bool),
    /// Several.
    #[prost(message, tag = "28")]
    Bools(Bools),
    /// Text.
    #[prost(string, tag = "29")]
    Text(String),
}

/// A list of truth values.
#[derive(Clone, PartialEq, Message)]
pub struct Bools {
    /// In order.
    #[prost(bool, repeated, tag = "1")]
    pub values: Vec<bool>,
}

impl Value {
    /// The integer or truth value.
    pub fn integer(&self) -> Option<i128> {
        Some(match *self {
            Value::Int32(v) | Value::Sint32(v) | Value::Sfixed32(v) => v.into(),
            Value::Int64(v) | Value::Sint64(v) | Value::Sfixed64(v) => v.into(),
            Value::Uint32(v) | Value::Fixed32(v) => v.into(),
            Value::Uint64(v) | Value::Fixed64(v) => v.into(),
            Value::Bool(v) => v.into(),
            Value::Double(_) | Value::Float(_) | Value::Bools(_) | Value::Text(_) => return None,
        })
    }
}

impl Node {
    /// The value of an attribute.
    pub fn value(&self, name: &str) -> Option<&Value> {
        self.attr.iter().find(|a| a.name == name).and_then(|a| a.value.as_ref())
    }
}

/// Passes on each node of a trace, in the order of the file.
///
/// # Errors
///
/// What is wrong with the bytes, as a sentence after the name of the file; or an error of `each`.
pub fn read<E: From<String>>(bytes: &[u8], each: &mut dyn FnMut(Node) -> Result<(), E>) -> Result<(), E> {
    let unpacked;
    let mut rest = bytes;
    if bytes.starts_with(&[0x1f, 0x8b]) {
        let mut out = Vec::new();
        MultiGzDecoder::new(bytes)
            .take(LARGEST + 1)
            .read_to_end(&mut out)
            .map_err(|e| format!("cannot be decompressed: {e}"))?;
        if out.len() as u64 > LARGEST {
            return Err(format!("is larger than {} GiB after decompression", LARGEST >> 30).into());
        }
        unpacked = out;
        rest = &unpacked;
    }
    let all = rest.len();
    let mut messages = 0u64;
    while !rest.is_empty() || messages == 0 {
        let at = all - rest.len();
        let fault = |what: &str| format!("{what} at byte {at} (message {})", messages + 1);
        let message = next(&mut rest).ok_or_else(|| fault("ends within a message"))?;
        if messages == 0 {
            Metadata::decode(message)
                .map_err(|e| fault(&format!("does not begin with its metadata: {e}")))?;
        } else {
            let node = Node::decode(message).map_err(|e| fault(&format!("has an invalid node: {e}")))?;
            each(node)?;
        }
        messages += 1;
    }
    Ok(())
}

/// The next message after its length.
fn next<'b>(rest: &mut &'b [u8]) -> Option<&'b [u8]> {
    let length = prost::encoding::decode_varint(rest).ok()?;
    let (message, after) = rest.split_at_checked(usize::try_from(length).ok()?)?;
    *rest = after;
    Some(message)
}
