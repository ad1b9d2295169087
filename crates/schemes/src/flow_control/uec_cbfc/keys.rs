//! `[flow_control]` of UEC CBFC.

use super::super::FlowControlParams;
use super::super::Headroom;
use super::super::fabric::{
    Account, Buffer, Fabric, Lane, Limit, Memory, PacketFormat, UNBOUNDED, partitioned,
};
use super::super::keys::{
    Complaint, Keys, LARGEST, LARGEST_ALLOWED, Setting, Whole, default_keys, defaults, link, shown, time,
};
use super::{Limits, MOST, UecCbfcParams, credits, full_throughput};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use xoff_kernel::time::{MICROSECOND, Time, serialisation};
use xoff_net::topology::{NodeId, Port, PortId, Topology};
use xoff_net::units::{Bytes, Span, Threshold};

/// Bytes of a credit, without a key.
pub(super) const CREDIT: u32 = 128;
/// Least and most bytes of line time between two CF_Updates, without keys.
pub(super) const SPACING: [u64; 2] = [800, 65_536];
/// Longest and shortest time between CC_Updates.
const PERIODS: [Time; 2] = [MICROSECOND, 250_000 * MICROSECOND];
/// CF_Updates that may be lost in a row without an error in the counts, where limits exceed 15 bits.
const LOST: u64 = 32;

/// Credit-based flow control of Ultra Ethernet. A lossless priority is a virtual channel (VC). A sender
/// sends only packets for which the buffer at the other end of the link has cells.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct UecCbfcKeys {
    /// CreditSize: bytes of a credit, a cell of the buffer. 32, 64, 128, 256, 512, 1024 or 2048 B.
    #[serde(default = "credit_size")]
    pub credit_size: Bytes,
    /// PktOvhd: bytes that each packet takes in the buffer beside its own, -16 to 127. A packet takes
    /// its bytes and these, in whole credits.
    #[serde(default)]
    #[schemars(range(min = -16, max = 127), extend("x-unit" = "bytes"))]
    pub packet_overhead: i16,
    /// Which limits of credit a port has.
    #[serde(default)]
    pub limit: LimitMethod,
    /// Buffer of each port: under `per-vc` for each priority, under `total` for all of them. In bytes, or
    /// in BDP (rate times one-way delay) of its link, rounded down to whole credits; at least a largest
    /// packet, at most 524,287 credits. Default: enough to keep the link busy. Lossy priorities use the
    /// rest of the device's memory. That memory grows to the port buffers if `switch.buffer` or
    /// `host.buffer` is not written, and always at switches with long links.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-default" = "derived: the least that keeps the link busy, with one priority; under `total` with the reserves of the others"))]
    pub buffer: Option<Threshold>,
    /// Under `total`: the part of `buffer` that is reserved for each priority, in whole credits, rounded up. All
    /// priorities share the rest. With less than a largest packet, priorities can wait for each other.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-default" = "none"))]
    pub reserve: Option<Bytes>,
    /// Least distance of two CF_Updates of a link, as line time of so many bytes, 768 B to 131,072 B.
    #[serde(default = "cf_min_spacing")]
    pub cf_min_spacing: Bytes,
    /// Most distance of two CF_Updates, even if no credit has been freed, 16,384 B to 1,048,576 B.
    #[serde(default = "cf_max_spacing")]
    pub cf_max_spacing: Bytes,
    /// Time between two CC_Updates of a link, which return the credits of lost packets, 1 us to 250 ms.
    #[serde(default = "cc_period")]
    pub cc_period: Span,
    /// Time from the arrival of a message until it takes effect.
    #[serde(default = "defaults::zero_time")]
    pub response_time: Span,
}

fn credit_size() -> Bytes {
    Bytes(CREDIT.into())
}

fn cf_min_spacing() -> Bytes {
    Bytes(SPACING[0])
}

fn cf_max_spacing() -> Bytes {
    Bytes(SPACING[1])
}

fn cc_period() -> Span {
    Span(256 * MICROSECOND)
}

default_keys!(UecCbfcKeys);

/// Which limits of credit a port has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LimitMethod {
    /// Each priority has its own limit.
    #[default]
    PerVc,
    /// One limit for all priorities of a port, which share it beyond their reserves.
    Total,
}

impl Whole for UecCbfcKeys {}

impl Keys for UecCbfcKeys {
    /// Channels break cycles of waits only if they do not wait for each other.
    fn allows_channels(&self) -> bool {
        self.limit == LimitMethod::PerVc
    }

    fn check(&self, cx: &mut Setting<'_>) -> Result<(), Complaint> {
        time("response_time", self.response_time)?;
        let size = self.credit_size;
        if !size.0.is_power_of_two() || !(32..=2_048).contains(&size.0) {
            let help = "write 32B, 64B, 128B, 256B, 512B, 1024B or 2048B";
            return Err(Complaint::out_of_range("credit_size", size, help));
        }
        let overhead = self.packet_overhead;
        if !(-16..=127).contains(&overhead) {
            let help = "write a number of bytes from -16 to 127";
            return Err(Complaint::out_of_range("packet_overhead", overhead, help));
        }
        let smallest = (cx.packet.header + 1).min(cx.packet.ack);
        if smallest.checked_add_signed(overhead.into()).is_none_or(|bytes| bytes == 0) {
            let message =
                format!("packet_overhead = {overhead} leaves nothing of the smallest packet, {smallest} B");
            let help = format!("write {} or more", 1 - i64::from(smallest));
            return Err(Complaint::of_key("packet_overhead", message, help));
        }
        if self.limit == LimitMethod::PerVc && self.reserve.is_some() {
            let message =
                "reserve has no meaning under limit = \"per-vc\": each priority has its buffer alone";
            return Err(Complaint::of_key("reserve", message, "remove it, or write limit = \"total\""));
        }
        if self.limit == LimitMethod::Total && cx.written("routing.virtual_channels") {
            let message = "limit = \"total\" is incompatible with routing.virtual_channels: channels that share credit \
                           wait for each other";
            return Err(Complaint::of_key(
                "limit",
                message,
                "write limit = \"per-vc\", or remove the channels",
            ));
        }
        for (key, value, least, most) in [
            ("cf_min_spacing", self.cf_min_spacing, 768, 131_072),
            ("cf_max_spacing", self.cf_max_spacing, 16_384, 1_048_576),
        ] {
            if !(least..=most).contains(&value.0) {
                return Err(Complaint::out_of_range(key, value, format!("write {least}B to {most}B")));
            }
        }
        if self.cf_max_spacing < self.cf_min_spacing {
            let message = format!(
                "cf_max_spacing = {} is less than cf_min_spacing = {}",
                self.cf_max_spacing, self.cf_min_spacing
            );
            let help = format!("write {} or more", self.cf_min_spacing);
            return Err(Complaint::of_key("cf_max_spacing", message, help));
        }
        if !(PERIODS[0]..=PERIODS[1]).contains(&self.cc_period.0) {
            let help = format!("write {} to {}", Span(PERIODS[0]), Span(PERIODS[1]));
            return Err(Complaint::out_of_range("cc_period", self.cc_period, help));
        }
        Ok(())
    }

    fn covers_all(&self) -> bool {
        true
    }

    /// Buffer of every node and accounts of every port.
    ///
    /// Under `per-vc` an account is a separate partition, and over while it stores so much that less credit is
    /// left than keeps the link busy: oracles use this. Under `total` the accounts of a port share a buffer of
    /// their own. Their reserves are those of the VCs. They are never over: the shared part has a byte more
    /// than they use.
    fn memory(
        &self,
        cx: &mut Setting<'_>,
        topology: &Topology,
        lanes: &[Lane],
    ) -> Result<Option<Memory>, Complaint> {
        let packet = cx.packet;
        let largest = self.credits(packet.largest());
        let cell = self.credit_size.0;
        let channels = lanes.iter().filter(|l| l.lossless).count() as u64;
        let ports = 0..topology.ports.len() as PortId;
        let limits = ports
            .map(|id| limits(self, topology, id, &packet, channels))
            .collect::<Result<Vec<Limits>, _>>()?;
        let account = |limits: Limits, id: PortId| {
            let headroom = |total| Headroom { terms: Vec::new(), total };
            match self.limit {
                LimitMethod::PerVc => {
                    let needed = needed(self, &topology.ports[id as usize], &packet, channels);
                    let spare = limits.reserve.saturating_sub(needed);
                    // One byte beyond: accounts count whole credits, and cross at the next one.
                    let rest = headroom((limits.reserve - spare - 1) * cell);
                    Account { reserve: spare * cell + 1, ..Account::fixed(0, 0, rest) }
                }
                LimitMethod::Total => Account {
                    reserve: limits.reserve * cell,
                    limit: Limit::Unlimited,
                    headroom: Some(headroom(0)),
                    pool: Some(topology.nodes.len() as u32 + id),
                    ..UNBOUNDED
                },
            }
        };
        let mut accounts = Vec::with_capacity(limits.len() * lanes.len());
        for (&limits, id) in limits.iter().zip(0..) {
            let of_lane = |lane: &Lane| match lane.lossless {
                true => account(limits, id),
                false => UNBOUNDED,
            };
            accounts.extend(lanes.iter().map(of_lane));
        }
        let mut buffers = (0..topology.nodes.len() as NodeId)
            .map(|node| {
                let ports = &topology.nodes[node as usize].ports;
                let each = ports.iter().map(|&p| limits[p as usize].of_all(channels) * cell);
                // Lossy priorities share room for one packet at least, charged in whole credits.
                let rest = if channels < lanes.len() as u64 { largest * cell } else { 0 };
                let taken = if channels == 0 { 0 } else { each.fold(0, u64::saturating_add) };
                partitioned(cx, topology, node, taken, rest, "flow_control.buffer")
            })
            .collect::<Result<Vec<Buffer>, _>>()?;
        if self.limit == LimitMethod::Total && channels > 0 {
            buffers.extend(limits.iter().map(|limits| Buffer {
                total: limits.of_all(channels) * cell,
                shared: limits.shared * cell + 1,
            }));
        }
        Ok(Some((buffers, accounts)))
    }

    fn params(&self, cx: &mut Setting<'_>, fabric: Fabric<'_>) -> Result<FlowControlParams, Complaint> {
        let topology = fabric.topology;
        // Ports of links come first.
        let is_link = |&(id, port): &(PortId, &Port)| topology.neighbour(id) != port.node;
        let links: Vec<(PortId, &Port)> = (0..).zip(&topology.ports).take_while(is_link).collect();
        let lanes: Vec<bool> = fabric.lanes.iter().map(|l| l.lossless).collect();
        let channels = lanes.iter().filter(|on| **on).count() as u64;
        let own = links.iter().map(|&(id, _)| limits(self, topology, id, &cx.packet, channels));
        let limits = own.collect::<Result<Vec<Limits>, _>>()?;
        check_counts(self, topology, &cx.packet, &limits, channels)?;
        let spacing = |port: &Port| [self.cf_min_spacing, self.cf_max_spacing].map(|b| line_time(b, port));
        Ok(FlowControlParams::UecCbfc(UecCbfcParams {
            credit: self.credit_size.0 as u32,
            overhead: self.packet_overhead.into(),
            couples: self.limit == LimitMethod::Total
                && channels > 1
                && limits.iter().any(|limits| limits.reserve < self.credits(cx.packet.largest())),
            ahead: links.iter().map(|(_, port)| limits[port.peer as usize]).collect(),
            spacing: links.iter().map(|(_, port)| spacing(port)).collect(),
            limits,
            period: self.cc_period.0,
            // Some CC_Updates may be lost, too.
            patience: if fabric.loses { 4 * self.cc_period.0 } else { 0 },
            lanes,
            response_time: self.response_time.0,
        }))
    }
}

impl UecCbfcKeys {
    /// Credits of a packet of `size` bytes.
    fn credits(&self, size: u32) -> u64 {
        credits(size, self.packet_overhead.into(), self.credit_size.0 as u32)
    }
}

fn line_time(bytes: Bytes, port: &Port) -> Time {
    serialisation(bytes.0, port.rate).max(1)
}

/// Credits that keep the link of a port busy.
fn needed(keys: &UecCbfcKeys, port: &Port, packet: &PacketFormat, channels: u64) -> u64 {
    let spacing = line_time(keys.cf_min_spacing, port);
    let packets = full_throughput(&packet.facts(port, 0), spacing, channels, keys.response_time.0);
    packets.saturating_mul(keys.credits(packet.largest()))
}

/// The credits of a port.
fn limits(
    keys: &UecCbfcKeys,
    topology: &Topology,
    id: PortId,
    packet: &PacketFormat,
    channels: u64,
) -> Result<Limits, Complaint> {
    let port = &topology.ports[id as usize];
    let (largest, cell) = (keys.credits(packet.largest()), keys.credit_size.0);
    let total = keys.limit == LimitMethod::Total;
    let in_reserve = keys.reserve.unwrap_or(Bytes(0));
    let reserve = in_reserve.0.div_ceil(cell);
    let link = || link(topology, id);
    let too_many = |key: &str, what: String| {
        let most = MOST * cell;
        let message = format!("{what} is out of range on {}: a limit has at most {MOST} credits", link());
        Complaint::of_key(key, message, format!("write {most}B or less, or a larger credit_size"))
    };
    let given = match keys.buffer {
        Some(threshold) => {
            let resolved = threshold.resolve(port.rate, port.delay);
            let shown = shown(threshold, resolved);
            if resolved > LARGEST {
                let message = format!("a buffer of {shown} is out of range");
                return Err(Complaint::of_key("buffer", message, LARGEST_ALLOWED));
            }
            let credits = resolved / cell;
            if credits < largest {
                let message = format!(
                    "the largest packet could never be sent: {shown} is {credits} credits of {cell} B on {}, and it needs {largest}",
                    link()
                );
                return Err(Complaint::of_key(
                    "buffer",
                    message,
                    format!("write {}B or more", largest * cell),
                ));
            }
            if credits > MOST {
                return Err(too_many("buffer", format!("a buffer of {shown}")));
            }
            Some((credits, shown))
        }
        None => None,
    };
    if !total {
        let needed = || needed(keys, port, packet, channels).min(MOST);
        let credits = given.map_or_else(needed, |(credits, _)| credits);
        return Ok(Limits { reserve: credits, shared: 0 });
    }
    let reserves = reserve.saturating_mul(channels);
    let Some((credits, shown)) = given else {
        let shared = needed(keys, port, packet, channels).saturating_sub(reserve);
        if reserves > MOST - largest {
            return Err(too_many("reserve", format!("reserve = {in_reserve} for each lossless priority")));
        }
        return Ok(Limits { reserve, shared: shared.min(MOST - reserves) });
    };
    if reserves > credits {
        let message = format!(
            "the reserves of all lossless priorities need {reserves} credits of {cell} B, and a buffer of {shown} has {credits} on {}",
            link()
        );
        let help =
            format!("write {}B or less, or raise flow_control.buffer", credits / channels.max(1) * cell);
        return Err(Complaint::of_key("reserve", message, help));
    }
    if reserve + credits - reserves < largest {
        let message = format!(
            "the largest packet could never be sent: on {} a priority has its reserve of {reserve} credits and the shared {}, \
             and it needs {largest}",
            link(),
            credits - reserves
        );
        let help = "raise flow_control.buffer, or lower flow_control.reserve";
        return Err(Complaint::of_key("reserve", message, help));
    }
    Ok(Limits { reserve, shared: credits - reserves })
}

/// Refuses links on which the 15 bits of a CF_Update could be misread: where a limit has more credits, few enough
/// must be freed between two CF_Updates of a VC.
fn check_counts(
    keys: &UecCbfcKeys,
    topology: &Topology,
    packet: &PacketFormat,
    limits: &[Limits],
    channels: u64,
) -> Result<(), Complaint> {
    const COUNTS: u64 = 1 << 15;
    for (id, of_port) in (0..).zip(limits) {
        if of_port.of_one() < COUNTS {
            continue;
        }
        let port = &topology.ports[id as usize];
        let node = &topology.nodes[port.node as usize];
        let out: u128 = node.ports.iter().map(|&p| u128::from(topology.ports[p as usize].rate)).sum();
        // Each turn may also wait for a packet on the wire; and each egress may begin one packet at once.
        let turn = u128::from(keys.cf_min_spacing.0) + u128::from(packet.largest());
        let turns = u128::from(channels.div_ceil(2)) * turn * u128::from(LOST);
        let drained = turns * out / u128::from(port.rate.max(1));
        // Smaller packets take more credits for their bytes: one credit for each of the smallest at worst.
        let smallest = u128::from((packet.header + 1).min(packet.ack));
        let per_byte = u128::from(keys.credits(smallest as u32));
        let credits = drained / smallest * per_byte
            + node.ports.len() as u128 * u128::from(keys.credits(packet.largest()));
        if credits >= u128::from(COUNTS) {
            let message = format!(
                "the 15 bits of a CF_Update do not suffice on {}: up to {credits} credits are freed in the time of {LOST} \
                 CF_Updates",
                link(topology, id)
            );
            let help = "write a smaller cf_min_spacing, a larger credit_size, or a buffer of less than 32,768 credits";
            return Err(Complaint::of_key("buffer", message, help));
        }
    }
    Ok(())
}
