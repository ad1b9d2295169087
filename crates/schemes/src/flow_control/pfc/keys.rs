//! `[flow_control]` of PFC, and of schemes based on it.

use super::super::fabric::{Account, Fabric, Limit, UNBOUNDED};
use super::super::keys::{
    Complaint, Keys, LARGEST, LARGEST_ALLOWED, LONGEST, Setting, Whole, alpha_q16, at_most, bytes,
    check_priority, default_keys, defaults, link, shown,
};
use super::super::{FlowControlParams, Headroom, LinkFacts};
use super::{PfcParams, headroom, least_quanta};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use std::borrow::Cow;
use xoff_net::topology::{PortId, Topology};
use xoff_net::units::{Bytes, Span, Threshold};

/// How far below a dynamic threshold an account resumes, if not given.
const XON_OFFSET: u64 = 3_000;
/// Reserve under a dynamic threshold, if not given.
const RESERVE: u64 = 4_000;
/// Default of the dynamic threshold's share of the free bytes.
pub(in super::super) const ALPHA: f64 = 0.125;

/// PFC. The threshold is static (`xoff`) or dynamic (`alpha`, `cap`).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PfcKeys {
    /// Static XOFF threshold: an ingress pauses its peer when it holds this much of the shared
    /// buffer, beyond its reserve. In bytes, or in the link's BDP (rate times one-way delay):
    /// `"6bdp"`. Cannot be combined with `alpha` or `cap`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-default" = "none: the threshold is dynamic"))]
    pub xoff: Option<Threshold>,
    /// Static XON threshold: the ingress resumes its peer when it holds no more than this. Default:
    /// `xon_offset` below `xoff`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-default" = "derived: `xoff` − `xon_offset`"))]
    pub xon: Option<Threshold>,
    /// Dynamic threshold: an ingress pauses at this multiple of the free shared buffer, 1/65536 to
    /// 1024. The shared buffer is the buffer without headrooms, reserves and one largest packet for
    /// each ingress account. Default: 0.125.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-unit" = "ratio"))]
    #[schemars(extend("default" = ALPHA))]
    pub alpha: Option<f64>,
    /// The ingress resumes its peer this many bytes below the XOFF threshold (the current one, if
    /// dynamic). Default: 3 kB.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = Bytes(XON_OFFSET)))]
    pub xon_offset: Option<Bytes>,
    /// Dynamic threshold: its maximum.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-default" = "none: no limit"))]
    pub cap: Option<Bytes>,
    /// Bytes guaranteed to each ingress account before it uses the shared buffer. Default: 4 kB
    /// with a dynamic threshold, 0 with a static one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-default" = format!("`\"{}\"` if dynamic, `\"0B\"` if static", Bytes(RESERVE))))]
    pub reserve: Option<Bytes>,
    /// Headroom of each ingress account: room for packets that arrive after the pause. `"auto"`
    /// (from the link's rate and delay, the largest packet and the response time), or bytes.
    #[serde(default)]
    pub headroom: HeadroomRule,
    /// Time from the arrival of a pause frame until it takes effect.
    #[serde(default = "defaults::zero_time")]
    pub response_time: Span,
    /// Length of a pause in quanta of 512 bit times, 1 to 65535. The pause is repeated before it
    /// expires.
    #[serde(default = "defaults::quanta")]
    #[schemars(range(min = 1))]
    #[schemars(extend("x-unit" = "quanta"))]
    pub quanta: u16,
    /// The lossless priorities. Default: all priorities in use.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-unit" = "802.1p priority"))]
    #[schemars(extend("x-default" = "all priorities in use"))]
    pub priorities: Option<Vec<u8>>,
    /// When hosts that relay pause their neighbours.
    #[serde(default, skip_serializing_if = "Relay::is_accounts")]
    #[schemars(extend("default" = Relay::default()))]
    pub relay: Relay,
    /// Thresholds on long links, at both ends. With this table or `gateway`, a device with a long
    /// link shares no buffer: each of its ingress accounts has its own. The memory of such a device
    /// is the sum of its accounts; lossy priorities use `switch.buffer` in addition.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-default" = "none: the keys of `[flow_control]`"))]
    pub long: Option<LinkThresholds>,
    /// Thresholds on the other links of devices with a long link, at that end. The memory of these
    /// devices is as with `long`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-default" = "none: the keys of `[flow_control]`"))]
    pub gateway: Option<LinkThresholds>,
}

default_keys!(PfcKeys);

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HeadroomRule {
    #[default]
    Auto,
    Fixed(Bytes),
}

/// Static PFC thresholds for some of the links.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LinkThresholds {
    /// XOFF threshold on these links. Default: `flow_control.xoff`, or `flow_control.reserve`, or
    /// `"2bdp"`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-default" = "`flow_control.xoff`, else `flow_control.reserve`, else `\"2bdp\"`"))]
    pub xoff: Option<Threshold>,
    /// XON threshold on these links. Default: `flow_control.xon` if `xoff` is not written here,
    /// otherwise `xon_offset` below `xoff`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-default" = "`flow_control.xon` if this table has no `xoff`, else derived: `xoff` − `xon_offset`"))]
    pub xon: Option<Threshold>,
    /// Headroom on these links. Default: `flow_control.headroom`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-default" = "`flow_control.headroom`"))]
    pub headroom: Option<HeadroomRule>,
}

/// When hosts that relay pause their neighbours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Relay {
    /// As switches do, by the ingress account of each port.
    #[default]
    Accounts,
    /// Also, a host that is paused on one port immediately pauses all other neighbours, even if no
    /// packet waits. It obeys pauses, keeps its accounts, and repeats its own pauses. It resumes a
    /// neighbour when no other port is paused and its ingress account for that neighbour requires
    /// no pause. Only for topologies whose hosts relay.
    Blind,
}

impl Relay {
    /// Whether it is the default, which has a meaning only where hosts relay.
    fn is_accounts(&self) -> bool {
        *self == Self::Accounts
    }
}

impl Serialize for HeadroomRule {
    fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        match self {
            HeadroomRule::Auto => s.serialize_str("auto"),
            HeadroomRule::Fixed(bytes) => bytes.serialize(s),
        }
    }
}

impl<'de> Deserialize<'de> for HeadroomRule {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        let text = String::deserialize(d)?;
        match text.as_str() {
            "auto" => Ok(HeadroomRule::Auto),
            other => other.parse().map(HeadroomRule::Fixed).map_err(D::Error::custom),
        }
    }
}

impl JsonSchema for HeadroomRule {
    fn schema_name() -> Cow<'static, str> {
        "HeadroomRule".into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        json_schema!({ "anyOf": [{ "const": "auto" }, generator.subschema_for::<Bytes>()] })
    }
}

impl Whole for PfcKeys {}

impl Keys for PfcKeys {
    fn allows_channels(&self) -> bool {
        true
    }

    fn pfc(&self) -> Option<&PfcKeys> {
        Some(self)
    }

    fn suits_arbiter(&self) -> bool {
        true
    }

    fn params(&self, _: &mut Setting<'_>, _: Fabric<'_>) -> Result<FlowControlParams, Complaint> {
        Ok(FlowControlParams::Pfc(self.params()))
    }
}

impl PfcKeys {
    /// Refuses keys that contradict each other.
    pub fn check_values(&self, cx: &Setting<'_>) -> Result<(), Complaint> {
        if self.xoff.is_some() {
            let dynamic = [("alpha", self.alpha.is_some()), ("cap", self.cap.is_some())];
            if let Some((key, _)) = dynamic.into_iter().find(|(_, given)| *given) {
                let message = format!(
                    "`{key}` and `xoff` cannot be combined: `{key}` sets a dynamic threshold, `xoff` a static one"
                );
                let help = format!("remove `{key}`, or remove `xoff` and `xon`");
                return Err(Complaint::of_key(key, message, help));
            }
            if self.xon.is_some() && self.xon_offset.is_some() {
                let message = "`xon_offset` and `xon` cannot be combined: both set the XON threshold";
                return Err(Complaint::of_key("xon_offset", message, "remove one of the two keys"));
            }
        } else if self.xon.is_some() {
            let message = "`xon` requires `xoff`: a static threshold needs both";
            let help = "add `xoff`, or write `xon_offset` for a dynamic threshold";
            return Err(Complaint::of_key("xon", message, help));
        }
        if let Some(alpha) = self.alpha {
            alpha_q16("flow_control.alpha", alpha)?;
        }
        at_most("xon_offset", self.xon_offset)?;
        at_most("reserve", self.reserve)?;
        let headrooms = [
            ("headroom", Some(self.headroom)),
            ("long.headroom", self.long.and_then(|t| t.headroom)),
            ("gateway.headroom", self.gateway.and_then(|t| t.headroom)),
        ];
        for (key, rule) in headrooms {
            if let Some(HeadroomRule::Fixed(value)) = rule
                && value.0 > LARGEST
            {
                let message = format!("a headroom of {value} is out of range");
                return Err(Complaint::of_key(key, message, LARGEST_ALLOWED));
            }
        }
        if self.response_time.0 > LONGEST {
            let message = format!("a response time of {} is out of range", self.response_time);
            let help = format!("the maximum is {}", Span(LONGEST));
            return Err(Complaint::of_key("response_time", message, help));
        }
        let (quanta, largest) = (self.quanta, cx.packet.largest());
        let least = least_quanta(largest);
        if u64::from(quanta) < least {
            let message =
                format!("quanta = {quanta} is too small: a pause expires before it can be repeated");
            let help = format!("write {least} to 65535 with packets of {}", bytes(largest.into()));
            return Err(Complaint::of_key("quanta", message, help));
        }
        Ok(())
    }

    /// Refuses pauses that are passed on where no host relays.
    pub(in super::super) fn check_relay(&self, cx: &mut Setting<'_>, on: &Topology) -> Result<(), Complaint> {
        let relays = on.relay_hosts && on.hosts().any(|h| on.nodes[h as usize].ports.len() > 1);
        let key = "flow_control.relay";
        if relays || !cx.written(key) {
            return Ok(());
        }
        if self.relay == Relay::Accounts {
            cx.warn(key.into(), "had no effect: no host of this topology relays".into());
            return Ok(());
        }
        let help = "remove the key, or choose `ndc`, `rail-only`, or `custom` with relay_hosts = true";
        Err(Complaint::new(key, "`relay` requires hosts that relay, and this topology has none", help))
    }

    /// The lossless priorities: those of the list if there is one, else all of `used`.
    pub(in super::super) fn covered(&self, cx: &mut Setting<'_>, used: &[u8]) -> Result<Vec<u8>, Complaint> {
        let Some(list) = &self.priorities else { return Ok(used.to_vec()) };
        for (i, &p) in list.iter().enumerate() {
            let path = format!("flow_control.priorities[{i}]");
            check_priority(&path, p)?;
            if list[..i].contains(&p) {
                let message = format!("priority {p} is listed twice");
                return Err(Complaint::new(&path, message, "remove one of the two"));
            }
            if !used.contains(&p) {
                cx.warn(path, format!("had no effect: no traffic uses priority {p}"));
            }
        }
        Ok(list.clone())
    }

    pub(in super::super) fn lossless(
        &self,
        id: u8,
        key: &str,
        wanted: Option<bool>,
        covered: bool,
    ) -> Result<bool, Complaint> {
        match wanted {
            Some(true) if !covered => {
                let message =
                    format!("priority {id} is lossless here, but flow_control.priorities does not list it");
                let help = format!("add {id} to flow_control.priorities, or remove `lossless`");
                Err(Complaint::new(key, message, help))
            }
            Some(false) if self.priorities.is_some() && covered => {
                let message = format!("priority {id} is lossy here, but flow_control.priorities lists it");
                let help = format!("remove {id} from flow_control.priorities, or remove `lossless`");
                Err(Complaint::new(key, message, help))
            }
            given => Ok(given.unwrap_or(covered)),
        }
    }

    /// Names tables of thresholds that rule no link, where `long` links have none.
    pub(in super::super) fn warn_of_unused(&self, cx: &mut Setting<'_>, topology: &Topology, granted: bool) {
        let no_link = topology.ports.iter().all(|p| !p.long);
        let why = if no_link {
            "this topology has no long link"
        } else if topology.relays > 0 {
            "under this scheme each end of a long link has a relay"
        } else if granted {
            "long links have no thresholds under this scheme"
        } else {
            return;
        };
        for (key, unused) in [("long", self.long.is_some()), ("gateway", self.gateway.is_some() && no_link)] {
            if unused {
                cx.warn(format!("flow_control.{key}"), format!("had no effect: {why}"));
            }
        }
    }

    pub fn params(&self) -> PfcParams {
        let relay = match self.relay {
            Relay::Accounts => super::Relay::Accounts,
            Relay::Blind => super::Relay::Blind,
        };
        PfcParams { quanta: self.quanta, response_time: self.response_time.0, relay }
    }

    /// The account of a lossless lane at port `id`; a pause may have to wait for a frame of `longest_frame`
    /// bytes. An error if the thresholds do not suit the link.
    pub fn account(
        &self,
        cx: &Setting<'_>,
        topology: &Topology,
        id: PortId,
        place: Place,
        longest_frame: u32,
    ) -> Result<Account, Complaint> {
        let (pfc, path) = place.keys(self);
        let port = &topology.ports[id as usize];
        // Where the table that rules here does not have the key, the scheme's does.
        let at = |key: &str| match format!("{path}.{key}") {
            own if cx.written(&own) => own,
            _ => format!("flow_control.{key}"),
        };
        let facts = LinkFacts { largest: cx.packet.largest().max(longest_frame), ..cx.facts(topology, id) };
        let headroom = match pfc.headroom {
            HeadroomRule::Auto => headroom(&facts, pfc.response_time.0),
            HeadroomRule::Fixed(Bytes(total)) => Headroom { terms: Vec::new(), total },
        };
        let xon_offset = pfc.xon_offset.map_or(XON_OFFSET, |b| b.0);
        let Some(threshold) = pfc.xoff else {
            let alpha_q16 = alpha_q16(&at("alpha"), pfc.alpha.unwrap_or(ALPHA))?;
            return Ok(Account {
                reserve: pfc.reserve.map_or(RESERVE, |b| b.0),
                limit: Limit::Dynamic { alpha_q16, cap: pfc.cap.map_or(u64::MAX, |b| b.0) },
                resume_offset: xon_offset,
                headroom: Some(headroom),
                ..UNBOUNDED
            });
        };
        let link = link(topology, id);
        let xoff = threshold.resolve(port.rate, port.delay);
        let shown_xoff = shown(threshold, xoff);
        if xoff == 0 {
            let message = format!("{shown_xoff} is not a valid threshold on {link}");
            let help = "write a number of bytes above 0: a link without delay has no BDP";
            return Err(Complaint::new(&at("xoff"), message, help));
        }
        let resume = match pfc.xon {
            None if pfc.xon_offset.is_some() && xon_offset > xoff => {
                let message =
                    format!("xon_offset = {} is above xoff = {shown_xoff} on {link}", Bytes(xon_offset));
                let help = "choose `xon_offset` no larger than `xoff`";
                return Err(Complaint::new(&at("xon_offset"), message, help));
            }
            None => xoff.saturating_sub(xon_offset),
            Some(t) => {
                let xon = t.resolve(port.rate, port.delay);
                if xon > xoff {
                    let message = format!("xon = {} is above xoff = {shown_xoff} on {link}", shown(t, xon));
                    return Err(Complaint::new(&at("xon"), message, "choose `xon` no larger than `xoff`"));
                }
                xon
            }
        };
        Ok(Account { reserve: pfc.reserve.map_or(0, |b| b.0), ..Account::fixed(xoff, resume, headroom) })
    }
}

/// The device whose ingress an account is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// Of a device that shares its buffer.
    Shared,
    /// Of a long link, at a device that shares none.
    Long,
    /// Of another link there.
    Gateway,
}

impl Place {
    /// PFC's keys there. Without a pool to share, all thresholds are static.
    fn keys<'p>(self, pfc: &'p PfcKeys) -> (Cow<'p, PfcKeys>, &'static str) {
        let (table, path) = match self {
            Self::Shared => return (Cow::Borrowed(pfc), "flow_control"),
            Self::Long => (pfc.long, "flow_control.long"),
            Self::Gateway => (pfc.gateway, "flow_control.gateway"),
        };
        let table = table.unwrap_or_default();
        // Where nothing is said, the round trip that keeps the egress busy after a pause.
        let own = pfc.xoff.or(pfc.reserve.map(Threshold::Bytes));
        let xon = table.xon.or(pfc.xon.filter(|_| table.xoff.is_none() && pfc.xoff.is_some()));
        // A reserve has no resume level of its own.
        let at_xoff = xon.is_some() || own.is_some() && pfc.xoff.is_none() && table.xoff.is_none();
        let keys = PfcKeys {
            xoff: table.xoff.or(own).or(Some(Threshold::Bdp(2_000))),
            xon,
            xon_offset: if at_xoff { Some(Bytes(0)) } else { pfc.xon_offset },
            headroom: table.headroom.unwrap_or(pfc.headroom),
            alpha: None,
            cap: None,
            reserve: None,
            ..pfc.clone()
        };
        (Cow::Owned(keys), path)
    }
}
