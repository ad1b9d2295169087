//! The seam between a scheme and the reader of scenarios: the keys of `[flow_control]`, the parameters that a
//! scheme makes of them, and its view of the rest of the scenario.

use super::fabric::{Account, Buffer, Fabric, Lane, Layout, Memory, PacketFormat, Routes};
use super::pfc::keys::PfcKeys;
use super::registry::FlowControlParams;
use super::seam::{Headroom, LinkFacts};
use crate::load_balancing::LoadBalancing;
use schemars::{JsonSchema, Schema, SchemaGenerator, schema_for};
use serde::Serialize;
use serde::de::{DeserializeOwned, Deserializer, Error as _, Visitor, value};
use serde::forward_to_deserialize_any;
use std::any::Any;
use std::borrow::Cow;
use std::fmt;
use toml::de::ValueDeserializer;
use xoff_kernel::time::{MICROSECOND, SECOND, Time};
use xoff_net::topology::{NodeId, Port, PortId, Topology};
use xoff_net::units::{Bandwidth, Bytes, Span, Threshold};

/// Most memory that a plan may need: 16 GiB.
pub const MEMORY: u64 = 16 << 30;
/// Longest one-way delay of a link and longest response time: 1000 s.
pub const LONGEST: Time = 1_000 * SECOND;
/// Shortest period of a timer: 100 ns.
pub const SHORTEST_TIMER: Time = MICROSECOND / 10;
/// Last time of the clock: 100 days. The sum of two times then fits 63 bits, as in the files of a run.
pub const LAST: Time = 100 * 86_400 * SECOND;
/// Largest buffer: 1 EB. Sums over the accounts of a device fit 64 bits.
pub const LARGEST: u64 = 1_000_000_000_000_000_000;
/// The remedy of a value above it.
pub const LARGEST_ALLOWED: &str = "the maximum is 1 EB";

/// The keys of a scheme: their errors, and their resolved parameters.
///
/// A scheme writes the hooks that it uses. The others are PFC's where it rests on PFC, and else do nothing.
#[allow(unused_variables)]
pub trait Keys {
    /// PFC's, where the scheme rests on PFC.
    fn pfc(&self) -> Option<&PfcKeys> {
        None
    }

    /// Refuses values out of range, and keys that contradict each other or the rest of the scenario.
    fn check(&self, cx: &mut Setting<'_>) -> Result<(), Complaint> {
        Ok(())
    }

    /// Adds the devices that the scheme brings; an error if there is no place for them.
    fn extend(&self, topology: &mut Topology) -> Result<(), Complaint> {
        Ok(())
    }

    /// Refuses keys that the topology does not suit.
    fn check_topology(&self, cx: &mut Setting<'_>, topology: &Topology) -> Result<(), Complaint> {
        self.pfc().map_or(Ok(()), |pfc| pfc.check_relay(cx, topology))
    }

    /// Why the load balancing, which is not ECMP, does not go with the scheme.
    fn refuses_balancing(&self, balancing: LoadBalancing) -> Option<String> {
        None
    }

    /// Priority of ACKs and CNPs where the scenario gives none; that of their flow if `None`.
    fn default_ack_priority(&self) -> Option<u8> {
        None
    }

    /// A priority that packets of the scheme have, beside those of data, ACKs and CNPs.
    fn brings_priority(&self) -> Option<u8> {
        None
    }

    /// Whether devices trim packets: then receivers get headers, and the transport must know them.
    fn trims(&self) -> bool {
        false
    }

    /// Refuses priorities of `data` that do not go together.
    fn check_priorities(&self, cx: &Setting<'_>, data: &[u8]) -> Result<(), Complaint> {
        Ok(())
    }

    /// Whether its pauses stop one priority of a port, whichever priorities packets came in: then routing may give
    /// packets further priorities on their path (`routing.virtual_channels`).
    fn allows_channels(&self) -> bool {
        false
    }

    /// Whether packets change their priority on their path; then [`Keys::tags`] defines how.
    fn changes_priorities(&self) -> bool {
        false
    }

    /// The priorities that packets change to on `routes`; an error if there are too few. `starts` are those that
    /// are lossless before. `inner` ports of slow hosts come after those of `topology`.
    fn tags(
        &self,
        cx: &mut Setting<'_>,
        topology: &Topology,
        inner: usize,
        routes: &Routes<'_>,
        starts: &[u8],
        used: &[u8],
    ) -> Result<Option<Layout>, Complaint> {
        Ok(None)
    }

    /// Whether the scheme makes every priority in use lossless that the scenario does not declare lossy.
    fn covers_all(&self) -> bool {
        false
    }

    /// Which priorities of `used` the scheme makes lossless; an error if the scenario names them wrongly.
    fn covered(&self, cx: &mut Setting<'_>, used: &[u8]) -> Result<Vec<u8>, Complaint> {
        if self.covers_all() {
            return Ok(used.to_vec());
        }
        self.pfc().map_or(Ok(Vec::new()), |pfc| pfc.covered(cx, used))
    }

    /// Whether priority `id`, which the scheme makes lossless or not as `covered` says, is lossless if
    /// the scenario wants it so at `key`; an error if it cannot be.
    fn lossless(
        &self,
        cx: &mut Setting<'_>,
        id: u8,
        key: &str,
        wanted: Option<bool>,
        covered: bool,
    ) -> Result<bool, Complaint> {
        if let Some(pfc) = self.pfc() {
            return pfc.lossless(id, key, wanted, covered);
        }
        if self.covers_all() {
            return Ok(wanted.unwrap_or(covered));
        }
        if wanted == Some(true) {
            let why = "had no effect: a flow control without headroom makes no priority lossless";
            cx.warn(key.into(), why.into());
        }
        Ok(false)
    }

    /// Whether a scenario may make a lossless priority lossy.
    fn may_be_lossy(&self) -> bool {
        true
    }

    /// Whether egress queues of lossy priorities have no limit but the one that a scenario gives.
    fn lifts_limits(&self) -> bool {
        false
    }

    /// Queues of a port and priority that the scheme adds, and bytes that a run needs for each.
    fn queues(&self) -> Option<(u32, u64)> {
        None
    }

    /// All buffers and accounts, if the scheme lays them out whole; an error if they do not fit.
    fn memory(
        &self,
        cx: &mut Setting<'_>,
        topology: &Topology,
        lanes: &[Lane],
    ) -> Result<Option<Memory>, Complaint> {
        Ok(None)
    }

    /// PFC only on some links, for every priority: its keys, and by port whether its link is one; an error if
    /// the scenario names them wrongly.
    fn pfc_links(
        &self,
        cx: &Setting<'_>,
        topology: &Topology,
    ) -> Result<Option<(PfcKeys, Vec<bool>)>, Complaint> {
        Ok(None)
    }

    /// The account of a lossless lane at `port`, where it is not PFC's; an error if link and keys do not match.
    fn account(
        &self,
        cx: &Setting<'_>,
        topology: &Topology,
        port: PortId,
        lanes: &[Lane],
    ) -> Result<Option<Account>, Complaint> {
        Ok(None)
    }

    /// Whether the device of `port` shares no buffer: each of its accounts has its own.
    fn sets_apart(&self, topology: &Topology, port: PortId) -> bool {
        false
    }

    /// Bytes of the longest frame that a pause may have to wait for, if they exceed those of packets.
    fn longest_frame(&self) -> u32 {
        0
    }

    /// Adds the spare bytes of a lossless account of `port` to PFC's headroom.
    fn spare(&self, cx: &Setting<'_>, port: &Port, headroom: &mut Headroom) {}

    /// Makes some of the accounts share a buffer of their own; returns those buffers and whose they are.
    fn pool(
        &self,
        cx: &Setting<'_>,
        topology: &Topology,
        accounts: &mut [Account],
        lanes: usize,
    ) -> Vec<(NodeId, Buffer)> {
        Vec::new()
    }

    /// The memory of `node`, where it is not laid out as under PFC; an error if its size does not suffice.
    fn buffer(
        &self,
        cx: &Setting<'_>,
        topology: &Topology,
        node: NodeId,
        lanes: &[Lane],
        accounts: &[Account],
    ) -> Result<Option<Buffer>, Complaint> {
        Ok(None)
    }

    /// Refuses keys that do not suit links and lanes, and warns about keys with unexpected effects.
    fn check_links(
        &self,
        cx: &mut Setting<'_>,
        topology: &Topology,
        lanes: &[Lane],
    ) -> Result<(), Complaint> {
        Ok(())
    }

    /// Names tables of thresholds that rule no link.
    fn warn_of_unused(&self, cx: &mut Setting<'_>, topology: &Topology) {
        if let Some(pfc) = self.pfc() {
            pfc.warn_of_unused(cx, topology, false);
        }
    }

    /// Whether the scheme gives packets that wait another path, which the plan is to work out.
    fn reroutes(&self) -> bool {
        false
    }

    /// Whether it is compatible with an arbiter of flows.
    fn suits_arbiter(&self) -> bool {
        false
    }

    /// The parameters; an error if the keys and the fabric do not go together.
    fn params(&self, cx: &mut Setting<'_>, fabric: Fabric<'_>) -> Result<FlowControlParams, Complaint>;
}

/// The node of a name; otherwise the error of the name, and the existing names.
pub type FindNode = fn(&Topology, &str) -> Result<NodeId, (String, String)>;

/// The view of a scheme on the rest of the scenario.
pub struct Setting<'s> {
    /// The name by which the scenario asks for the scheme.
    pub scheme: &'static str,
    /// Whether the scenario writes a key, such as `flow_control.xoff`.
    pub is_written: &'s dyn Fn(&str) -> bool,
    pub node: FindNode,
    pub packet: PacketFormat,
    /// By port: bytes that can arrive after a pause because a link layer repairs packets and pauses. Empty without one.
    pub retries: &'s [u64],
    pub seed: u64,
    /// Priorities of data, as far as they are known.
    pub data: &'s [u8],
    /// `transport.ack_priority`.
    pub ack_priority: Option<u8>,
    /// The priority of congestion notifications, and its key, if it is given.
    pub cnp_priority: Option<(u8, &'static str)>,
    /// The key of `measure` that switches the blame oracle on.
    pub blames: Option<&'static str>,
    /// Devices choose the next hop packet by packet.
    pub by_packet: bool,
    /// Links or switches fail.
    pub failures: bool,
    /// A congestion control, a window or the transport slows senders.
    pub slows: bool,
    /// Names of the hosts of `[[slow_receiver]]`.
    pub slow_receivers: Vec<&'s str>,
    /// `host.buffer`, in bytes.
    pub host_buffer: u64,
    /// `switch.buffer`, in bytes.
    pub switch_buffer: Option<u64>,
    /// Allowed settings that may have another effect than the author expects.
    pub warnings: Vec<Warning>,
}

impl Setting<'_> {
    /// Whether the scenario writes `key`, such as `flow_control.xoff`.
    pub fn written(&self, key: &str) -> bool {
        (self.is_written)(key)
    }

    /// [`Setting::retries`] of a port.
    pub fn retries_at(&self, port: PortId) -> u64 {
        self.retries.get(port as usize).copied().unwrap_or(0)
    }

    /// The facts of the link of a port, for the formulas of [`super::pfc`] and others.
    pub fn facts(&self, topology: &Topology, port: PortId) -> LinkFacts {
        self.packet.facts(&topology.ports[port as usize], self.retries_at(port))
    }

    pub fn warn(&mut self, key: String, message: String) {
        self.warnings.push(Warning { key, message });
    }
}

/// Refuses times above [`LONGEST`].
pub(super) fn time(key: &str, value: Span) -> Result<(), Complaint> {
    if value.0 <= LONGEST {
        return Ok(());
    }
    Err(Complaint::out_of_range(key, value, format!("the maximum is {}", Span(LONGEST))))
}

/// Refuses more than [`LARGEST`] bytes.
pub(super) fn at_most(key: &str, value: Option<Bytes>) -> Result<(), Complaint> {
    let Some(value) = value.filter(|value| value.0 > LARGEST) else { return Ok(()) };
    Err(Complaint::out_of_range(key, value, LARGEST_ALLOWED))
}

/// Refuses a priority above 7.
pub fn check_priority(key: &str, priority: u8) -> Result<(), Complaint> {
    if priority <= 7 {
        return Ok(());
    }
    let help = "write 0 to 7, the 802.1p priorities";
    Err(Complaint::new(key, format!("priority {priority} does not exist"), help))
}

/// α in 1/65536; an error if it is out of range.
pub fn alpha_q16(key: &str, alpha: f64) -> Result<u64, Complaint> {
    if !(1.0 / 65_536.0..=1_024.0).contains(&alpha) {
        let help = "write a number from 0.0000153 (1/65536) to 1024, such as 0.125";
        return Err(Complaint::new(key, format!("alpha = {alpha} is out of range"), help));
    }
    Ok((alpha * 65_536.0).round() as u64)
}

/// A number of bytes for errors: rounded to a few digits.
pub fn bytes(n: u64) -> String {
    let (unit, factor) = match n {
        0..10_000 => return format!("{n} B"),
        10_000..1_000_000 => ("kB", 1e3),
        1_000_000..1_000_000_000 => ("MB", 1e6),
        _ => ("GB", 1e9),
    };
    format!("{} {unit}", (n as f64 / factor * 100.0).round() / 100.0)
}

/// A threshold as errors show it, with its bytes on a link.
pub(super) fn shown(threshold: Threshold, resolved: u64) -> String {
    match threshold {
        Threshold::Bytes(b) => b.to_string(),
        bdp => format!("{bdp} ({})", bytes(resolved)),
    }
}

/// A link as errors name it.
pub(super) fn link(topology: &Topology, port: PortId) -> String {
    let p = &topology.ports[port as usize];
    format!("the link of {} ({}, {})", topology.port_name(port), Bandwidth(p.rate), Span(p.delay))
}

/// The bytes that a queue may take in beyond its present ones: `given` in bytes or BDP of the network's
/// longest link, and a largest packet at least.
pub(super) fn room(given: Option<Threshold>, topology: &Topology, packet: &PacketFormat) -> u64 {
    // The bytes that a link carries until a pause takes effect, so no packet of a round trip is stopped.
    let room = given.unwrap_or(Threshold::Bdp(2_000));
    let most = topology.ports.iter().map(|p| room.resolve(p.rate, p.delay)).max();
    most.unwrap_or(0).max(packet.largest().into())
}

/// Refuses a [`room`] for less than a packet.
pub(super) fn check_room(given: Option<Threshold>, packet: &PacketFormat) -> Result<(), Complaint> {
    let largest = u64::from(packet.largest());
    if let Some(Threshold::Bytes(bytes)) = given
        && !(largest..=LARGEST).contains(&bytes.0)
    {
        let help = format!("write \"{largest}B\", the largest packet, to 1 EB");
        return Err(Complaint::out_of_range("room", bytes, help));
    }
    Ok(())
}

/// Why a scenario cannot be planned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Complaint {
    /// The key that is shown, such as `flow_control.xoff`; if it is not written, the table around it is.
    pub shown: String,
    /// The key that is wrong.
    pub key: String,
    /// The problem.
    pub message: String,
    /// The allowed values.
    pub help: String,
}

impl Complaint {
    /// About `key`, which is shown.
    pub fn new(key: &str, message: impl Into<String>, help: impl Into<String>) -> Self {
        Self { shown: key.into(), key: key.into(), message: message.into(), help: help.into() }
    }

    /// About `flow_control.{key}`, which is shown.
    pub fn of_key(key: &str, message: impl Into<String>, help: impl Into<String>) -> Self {
        Self::new(&format!("flow_control.{key}"), message, help)
    }

    /// `flow_control.{key}` = `value` is out of range.
    pub(super) fn out_of_range(key: &str, value: impl fmt::Display, help: impl Into<String>) -> Self {
        Self::of_key(key, format!("{key} = {value} is out of range"), help)
    }

    /// The same about `key`, which is not the one that is shown.
    pub fn about(self, key: &str) -> Self {
        Self { key: key.into(), ..self }
    }
}

/// A setting that is allowed but may have another effect than the author expects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    /// The key it is about, such as `flow_control.xoff`; empty for the whole.
    pub key: String,
    /// The problem, as a sentence without its full stop.
    pub message: String,
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.key.is_empty() {
            write!(f, "`{}`: ", self.key)?;
        }
        f.write_str(&self.message)
    }
}

/// A scheme's own keys and those of PFC, on which it is based. Both are in one table.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct OnPfc<K> {
    /// The scheme's own.
    #[serde(flatten)]
    pub keys: K,
    /// PFC's.
    #[serde(flatten)]
    pub pfc: PfcKeys,
}

impl<K: JsonSchema> JsonSchema for OnPfc<K> {
    fn schema_name() -> Cow<'static, str> {
        K::schema_name()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let mut schema = K::json_schema(generator);
        schema.remove("additionalProperties");
        let mut pfc = PfcKeys::json_schema(generator);
        let properties =
            |schema: &mut Schema| schema.get_mut("properties")?.as_object_mut().map(std::mem::take);
        let shared = properties(&mut pfc).unwrap_or_default();
        if let Some(all) = schema.get_mut("properties").and_then(|p| p.as_object_mut()) {
            all.extend(shared);
        }
        schema
    }
}

/// The table `[flow_control]` of a scenario.
pub trait Reader {
    /// Its keys.
    fn keys(&self) -> Vec<String>;

    /// Gives the table, except the keys in `without`, to `parse`, and returns its error; does nothing if
    /// there is no table. `schema` is that of the parsed type.
    fn parse(
        &self,
        without: &[&str],
        schema: fn() -> Schema,
        parse: &mut dyn FnMut(ValueDeserializer<'_>) -> Result<(), toml::de::Error>,
    ) -> Result<(), Unread>;

    /// Returns an error for `key`, which no scheme has, with the keys in `allowed`.
    fn unknown(&self, key: &str, allowed: &[&str]) -> Unread;
}

impl dyn Reader + '_ {
    /// Reads the table as a `T`, but for the keys in `without`; the default if there is no table.
    pub fn read<T: DeserializeOwned + Default + JsonSchema>(&self, without: &[&str]) -> Result<T, Unread> {
        let mut read = None;
        self.parse(without, || schema_for!(T), &mut |table| {
            read = Some(T::deserialize(table)?);
            Ok(())
        })?;
        Ok(read.unwrap_or_default())
    }
}

/// A [`Reader`]'s error about a table, as a separate type.
#[derive(Debug)]
pub struct Unread(pub Box<dyn Any>);

/// A type that a table can be read as.
pub trait Table: Sized {
    /// The keys of the scheme's own, and those of PFC if it rests on PFC.
    fn names() -> [&'static [&'static str]; 2];

    /// Reads the table, but for the keys in `passed`, which are those of other schemes.
    fn read(reader: &dyn Reader, passed: &[&'static str]) -> Result<Self, Unread>;
}

/// A table that is read in one piece.
pub trait Whole: DeserializeOwned + Default + JsonSchema {}

impl<T: Whole> Table for T {
    fn names() -> [&'static [&'static str]; 2] {
        [names::<Self>(), &[]]
    }

    fn read(reader: &dyn Reader, passed: &[&'static str]) -> Result<Self, Unread> {
        reader.read(passed)
    }
}

impl<K: DeserializeOwned + Default + JsonSchema> Table for OnPfc<K> {
    fn names() -> [&'static [&'static str]; 2] {
        [names::<K>(), names::<PfcKeys>()]
    }

    /// In two parts, neither of which knows the other allowed keys.
    fn read(reader: &dyn Reader, passed: &[&'static str]) -> Result<Self, Unread> {
        let [own, shared] = Self::names();
        let known = |key: &str| own.contains(&key) || shared.contains(&key) || passed.contains(&key);
        if let Some(key) = reader.keys().iter().find(|key| !known(key)) {
            return Err(reader.unknown(key, &[own, shared].concat()));
        }
        let keys = reader.read(&[passed, shared].concat())?;
        Ok(Self { keys, pfc: reader.read(&[passed, own].concat())? })
    }
}

/// The default of keys is the value of an empty table.
macro_rules! default_keys {
    ($($keys:ident),*) => {
        $(impl Default for $keys {
            fn default() -> Self {
                toml::from_str("").expect("each key has a default")
            }
        })*
    };
}
pub(crate) use default_keys;

/// The names of the fields of `T` in their order, as its deserialiser asks for them.
pub fn names<T: DeserializeOwned>() -> &'static [&'static str] {
    struct Asked<'a>(&'a mut &'static [&'static str]);

    impl<'de> Deserializer<'de> for Asked<'_> {
        type Error = value::Error;

        fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, value::Error> {
            Err(value::Error::custom("no table"))
        }

        fn deserialize_struct<V: Visitor<'de>>(
            self,
            _: &'static str,
            fields: &'static [&'static str],
            visitor: V,
        ) -> Result<V::Value, value::Error> {
            *self.0 = fields;
            self.deserialize_any(visitor)
        }

        forward_to_deserialize_any! {
            bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit
            unit_struct newtype_struct seq tuple tuple_struct map enum identifier ignored_any
        }
    }

    let mut fields: &[&str] = &[];
    let _ = T::deserialize(Asked(&mut fields));
    fields
}

/// Values of keys that are not given.
pub(super) mod defaults {
    use xoff_net::units::Span;

    pub fn yes() -> bool {
        true
    }
    pub fn one() -> u32 {
        1
    }
    pub fn quanta() -> u16 {
        u16::MAX
    }
    pub fn zero_time() -> Span {
        Span(0)
    }
}
