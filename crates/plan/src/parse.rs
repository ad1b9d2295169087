//! From a document to a [`Scenario`]: which table is read as which type.

use crate::document::{Document, with_article};
use crate::error::{Error, Warning, listed, suggest};
use crate::scenario::{
    Bifrost, DeadlockBreaker, FlowControl, Itsy, LoopBreaker, Pfc, PfcWatchdog, Roundabout, Scenario, Swing,
    Tagger, Traffic,
};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use xoff_net::builders::TopologySpec;

const TABLES: [&str; 22] = [
    "topology",
    "routing",
    "switch",
    "host",
    "slow_receiver",
    "failure",
    "loss",
    "priority",
    "ecn",
    "flow_control",
    "transport",
    "irn",
    "tcp-newreno",
    "tcp-dctcp",
    "dcqcn",
    "timely",
    "hpcc",
    "dctcp",
    "zeropod",
    "traffic",
    "run",
    "measure",
];
const LISTS: [&str; 5] = ["slow_receiver", "failure", "loss", "priority", "traffic"];
const TRAFFIC: [&str; 12] = [
    "poisson",
    "incast",
    "permutation",
    "flow",
    "flows",
    "all-to-all",
    "ring-all-reduce",
    "parameter-server",
    "moe",
    "probe",
    "burst",
    "loop",
];
const SCHEMES: [&str; 16] = [
    "pfc",
    "tagger",
    "bfc",
    "per-flow-queue",
    "portfc",
    "pyrrha",
    "bifrost",
    "bifrostx",
    "cbfc",
    "swing",
    "pfc-watchdog",
    "roundabout",
    "loop-breaker",
    "deadlock-breaker",
    "itsy",
    "none",
];

/// The keys of PFC, and of every scheme that rests on it.
const PFC: [&str; 13] = [
    "xoff",
    "xon",
    "alpha",
    "xon_offset",
    "cap",
    "reserve",
    "headroom",
    "response_time",
    "quanta",
    "priorities",
    "relay",
    "long",
    "gateway",
];
/// Bifrost's own, and BifrostX's.
const BIFROST: [&str; 11] = [
    "slot",
    "buffer",
    "repair_every",
    "margin",
    "spare",
    "processing",
    "jitter",
    "history",
    "links",
    "leftover",
    "undersized",
];

/// The keys of `[flow_control]` by scheme: its own, then PFC's if it rests on PFC.
const KEYS: [(&str, &[&str], &[&str]); 16] = [
    ("pfc", &[], &PFC),
    ("tagger", &["rule", "lossless", "lossy"], &PFC),
    (
        "bfc",
        &[
            "queues",
            "virtual_flows",
            "hop_rtt",
            "keep",
            "reuse_kept",
            "resume_interval",
            "acks",
            "response_time",
            "pause_time",
        ],
        &[],
    ),
    ("per-flow-queue", &["xoff", "xon", "response_time", "pause_time"], &[]),
    (
        "portfc",
        &["xoff", "xon", "ddq_xoff", "ddq_xon", "relay_queue", "flags", "relay_signals", "response_time"],
        &[],
    ),
    (
        "pyrrha",
        &[
            "organisation",
            "queues",
            "k_pause",
            "k_resume",
            "merging",
            "hosts",
            "acks",
            "variants",
            "legacy",
            "response_time",
        ],
        &[],
    ),
    ("bifrost", &BIFROST, &PFC),
    ("bifrostx", &BIFROST, &PFC),
    ("cbfc", &["buffer", "long_buffer", "gateway_buffer", "update", "unlimited", "response_time"], &[]),
    (
        "swing",
        &["relay_buffer", "relay_limit", "relay_xoff", "relay_xon", "switch_side", "relay_delay"],
        &PFC,
    ),
    ("pfc-watchdog", &["action", "detection_time", "restoration_time", "poll"], &PFC),
    ("roundabout", &["spare", "patience", "audit", "dissolve"], &PFC),
    ("loop-breaker", &["period", "latency"], &PFC),
    ("deadlock-breaker", &["period", "latency", "room"], &PFC),
    ("itsy", &["resolution", "room"], &PFC),
    ("none", &[], &[]),
];

/// Reads the whole scenario; the first error ends it.
pub(crate) fn scenario(doc: &Document<'_>, warnings: &mut Vec<Warning>) -> Result<Scenario, Error> {
    for key in doc.keys("") {
        let value = doc.get(&key).map(|v| v.get_ref());
        if !TABLES.contains(&key.as_str()) {
            let what = if value.is_some_and(|v| v.is_table() || v.is_array()) { "table" } else { "key" };
            let help = suggest(&key, "the tables of a scenario", &TABLES);
            return Err(doc.key_error(&key, format!("unknown {what} `{key}`"), help));
        }
        let list = LISTS.contains(&key.as_str());
        if value.is_some_and(|v| if list { !v.is_array() } else { !v.is_table() }) {
            let header = if list { format!("[[{key}]]") } else { format!("[{key}]") };
            let message = format!("`{key}` is {}", if list { "a list of tables" } else { "a table" });
            return Err(doc.error(
                &key,
                message,
                format!("write {header} on a line of its own, and its keys below"),
            ));
        }
    }
    doc.check_lists()?;
    for (key, header, example) in [
        ("topology", "[topology]", "[topology] with kind = \"leaf-spine\""),
        ("traffic", "[[traffic]]", "[[traffic]] with kind = \"poisson\""),
    ] {
        if doc.get(key).is_none() {
            let message = format!("the table {header} is missing");
            return Err(doc.error("", message, format!("a scenario needs at least {example}")).with_key(key));
        }
    }
    let topology = topology(doc)?;
    let flow_control = flow_control(doc, warnings)?;
    let traffic = (0..doc.len("traffic")).map(|i| traffic(doc, i)).collect::<Result<Vec<_>, _>>()?;
    if traffic.is_empty() {
        return Err(doc.error("traffic", "nothing is sent", "add a [[traffic]] table"));
    }
    let mut scenario = Scenario {
        topology,
        routing: table(doc, "routing")?,
        switch: table(doc, "switch")?,
        host: table(doc, "host")?,
        slow_receiver: table(doc, "slow_receiver")?,
        failure: table(doc, "failure")?,
        loss: table(doc, "loss")?,
        priority: table(doc, "priority")?,
        ecn: doc.read_documented("ecn", &[])?,
        flow_control,
        transport: table(doc, "transport")?,
        irn: doc.read_documented("irn", &[])?,
        tcp_newreno: doc.read_documented("tcp-newreno", &[])?,
        tcp_dctcp: doc.read_documented("tcp-dctcp", &[])?,
        dcqcn: doc.read_documented("dcqcn", &[])?,
        timely: doc.read_documented("timely", &[])?,
        hpcc: doc.read_documented("hpcc", &[])?,
        dctcp: doc.read_documented("dctcp", &[])?,
        zeropod: doc.read_documented("zeropod", &[])?,
        traffic,
        run: table(doc, "run")?,
        measure: table(doc, "measure")?,
    };
    if matches!(scenario.topology, TopologySpec::Zeropod(_)) {
        scenario.forget_queues();
    }
    doc.check_integers()?;
    Ok(scenario)
}

fn table<T: DeserializeOwned + JsonSchema + Default>(doc: &Document<'_>, key: &str) -> Result<T, Error> {
    Ok(doc.read_documented(key, &[])?.unwrap_or_default())
}

/// The text of `table.key`, which must be one of `allowed`.
fn choice<'d>(
    doc: &'d Document<'_>,
    table: &str,
    key: &str,
    allowed: &[&str],
) -> Result<Option<&'d str>, Error> {
    let path = format!("{table}.{key}");
    let Some(value) = doc.get(&path) else { return Ok(None) };
    let Some(text) = value.get_ref().as_str() else {
        let message = format!("{} does not belong here", with_article(value.get_ref().type_str()));
        return Err(doc.error(&path, message, suggest("", "allowed", allowed)));
    };
    if !allowed.contains(&text) {
        let message = format!("`{text}` is not known here");
        return Err(doc.error(&path, message, suggest(text, "allowed", allowed)));
    }
    Ok(Some(text))
}

fn kind<'d>(doc: &'d Document<'_>, table: &str, allowed: &[&str]) -> Result<&'d str, Error> {
    choice(doc, table, "kind", allowed)?.ok_or_else(|| {
        let path = format!("{table}.kind");
        doc.error(&path, "`kind` is missing", suggest("", "write kind = one of", allowed))
    })
}

/// Reads a table whose `kind` has been read before.
fn rest<T: DeserializeOwned + JsonSchema>(doc: &Document<'_>, path: &str, kind: &str) -> Result<T, Error> {
    let read = doc.read_documented(path, &["kind"]).map_err(|e| e.of_kind(path, kind))?;
    Ok(read.expect("a table that has a kind is there"))
}

fn topology(doc: &Document<'_>) -> Result<TopologySpec, Error> {
    let kind = kind(doc, "topology", &TopologySpec::KINDS)?;
    Ok(match kind {
        "ndc" => TopologySpec::Ndc(rest(doc, "topology", kind)?),
        "leaf-spine" => TopologySpec::LeafSpine(rest(doc, "topology", kind)?),
        "fat-tree" => TopologySpec::FatTree(rest(doc, "topology", kind)?),
        "dumbbell" => TopologySpec::Dumbbell(rest(doc, "topology", kind)?),
        "line" => TopologySpec::Line(rest(doc, "topology", kind)?),
        "ring" => TopologySpec::Ring(rest(doc, "topology", kind)?),
        "rail-only" => TopologySpec::RailOnly(rest(doc, "topology", kind)?),
        "full-mesh" => TopologySpec::FullMesh(rest(doc, "topology", kind)?),
        "torus-2d" => TopologySpec::Torus2d(rest(doc, "topology", kind)?),
        "dci" => TopologySpec::Dci(rest(doc, "topology", kind)?),
        "pods" => TopologySpec::Pods(rest(doc, "topology", kind)?),
        "zeropod" => TopologySpec::Zeropod(rest(doc, "topology", kind)?),
        "hpcc" => TopologySpec::Hpcc(rest(doc, "topology", kind)?),
        _ => TopologySpec::Custom(rest(doc, "topology", kind)?),
    })
}

fn traffic(doc: &Document<'_>, index: usize) -> Result<Traffic, Error> {
    let path = format!("traffic[{index}]");
    let kind = kind(doc, &path, &TRAFFIC)?;
    Ok(match kind {
        "poisson" => Traffic::Poisson(rest(doc, &path, kind)?),
        "incast" => Traffic::Incast(rest(doc, &path, kind)?),
        "permutation" => Traffic::Permutation(rest(doc, &path, kind)?),
        "flow" => Traffic::Flow(rest(doc, &path, kind)?),
        "flows" => Traffic::Flows(rest(doc, &path, kind)?),
        "all-to-all" => Traffic::AllToAll(rest(doc, &path, kind)?),
        "ring-all-reduce" => Traffic::RingAllReduce(rest(doc, &path, kind)?),
        "parameter-server" => Traffic::ParameterServer(rest(doc, &path, kind)?),
        "moe" => Traffic::Moe(rest(doc, &path, kind)?),
        "probe" => Traffic::Probe(rest(doc, &path, kind)?),
        "burst" => Traffic::Burst(rest(doc, &path, kind)?),
        _ => Traffic::Loop(rest(doc, &path, kind)?),
    })
}

/// One scenario serves with several schemes: keys that belong to other schemes
/// than the chosen one are passed over, and each is named as having no effect.
fn flow_control(doc: &Document<'_>, warnings: &mut Vec<Warning>) -> Result<FlowControl, Error> {
    let scheme = choice(doc, "flow_control", "scheme", &SCHEMES)?.unwrap_or("pfc");
    let has = |keys: &[&str], key: &str| keys.contains(&key);
    let of_scheme = KEYS.iter().find(|(name, ..)| *name == scheme).expect("each scheme has a row");
    let own = of_scheme.1;
    let all = [own, of_scheme.2].concat();
    let mut passed = vec!["scheme"];
    for key in doc.keys("flow_control") {
        let owners: Vec<String> = KEYS
            .iter()
            .filter(|(_, a, b)| has(a, &key) || has(b, &key))
            .map(|(name, ..)| format!("`{name}`"))
            .collect();
        let known = KEYS.iter().flat_map(|(_, a, b)| a.iter().chain(*b)).find(|k| **k == key);
        let Some(known) = known.filter(|k| !has(&all, k)) else { continue };
        passed.push(known);
        let message =
            format!("had no effect: it belongs to {}, and this run has `{scheme}`", listed(&owners));
        warnings.push(Warning { key: format!("flow_control.{key}"), message });
    }
    Ok(match scheme {
        "pfc" => FlowControl::Pfc(doc.read_documented("flow_control", &passed)?.unwrap_or_default()),
        "tagger" => {
            let (tags, pfc) = with_pfc(doc, own, &passed)?;
            FlowControl::Tagger(Tagger { tags, pfc })
        }
        "bifrost" | "bifrostx" => {
            let (keys, pfc) = with_pfc(doc, own, &passed)?;
            let both = Bifrost { keys, pfc };
            if scheme == "bifrost" { FlowControl::Bifrost(both) } else { FlowControl::BifrostX(both) }
        }
        "swing" => {
            let (relays, pfc) = with_pfc(doc, own, &passed)?;
            FlowControl::Swing(Swing { relays, pfc })
        }
        "pfc-watchdog" => {
            let (watch, pfc) = with_pfc(doc, own, &passed)?;
            FlowControl::PfcWatchdog(PfcWatchdog { watch, pfc })
        }
        "roundabout" => {
            let (keys, pfc) = with_pfc(doc, own, &passed)?;
            FlowControl::Roundabout(Roundabout { keys, pfc })
        }
        "loop-breaker" => {
            let (keys, pfc) = with_pfc(doc, own, &passed)?;
            FlowControl::LoopBreaker(LoopBreaker { keys, pfc })
        }
        "deadlock-breaker" => {
            let (keys, pfc) = with_pfc(doc, own, &passed)?;
            FlowControl::DeadlockBreaker(DeadlockBreaker { keys, pfc })
        }
        "itsy" => {
            let (keys, pfc) = with_pfc(doc, own, &passed)?;
            FlowControl::Itsy(Itsy { keys, pfc })
        }
        "bfc" => FlowControl::Bfc(doc.read_documented("flow_control", &passed)?.unwrap_or_default()),
        "per-flow-queue" => {
            FlowControl::PerFlowQueue(doc.read_documented("flow_control", &passed)?.unwrap_or_default())
        }
        "portfc" => FlowControl::PortFc(doc.read_documented("flow_control", &passed)?.unwrap_or_default()),
        "pyrrha" => FlowControl::Pyrrha(doc.read_documented("flow_control", &passed)?.unwrap_or_default()),
        "cbfc" => FlowControl::Cbfc(doc.read_documented("flow_control", &passed)?.unwrap_or_default()),
        _ => {
            // The keys of PFC, the default, are checked even where they do nothing.
            passed.retain(|key| !has(&PFC, key));
            doc.read_documented::<Pfc>("flow_control", &passed)?;
            FlowControl::None
        }
    })
}

/// A scheme's `own` keys and those of PFC: read in two parts, neither of which knows what
/// else is allowed.
fn with_pfc<T: DeserializeOwned + Default + JsonSchema>(
    doc: &Document<'_>,
    own: &[&'static str],
    passed: &[&'static str],
) -> Result<(T, Pfc), Error> {
    let known = |key: &str| own.contains(&key) || PFC.contains(&key) || passed.contains(&key);
    if let Some(key) = doc.keys("flow_control").iter().find(|key| !known(key)) {
        let help = suggest(key, "allowed here", &[own, &PFC].concat());
        let path = format!("flow_control.{key}");
        return Err(doc.key_error(&path, format!("unknown key `{key}`"), help));
    }
    Ok((
        doc.read_documented("flow_control", &[passed, &PFC].concat())?.unwrap_or_default(),
        doc.read_documented("flow_control", &[passed, own].concat())?.unwrap_or_default(),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_keys_of_each_scheme_are_those_of_its_type() {
        let schema = serde_json::to_value(crate::schema::schema()).expect("JSON");
        let variants = schema["$defs"]["FlowControl"]["oneOf"].as_array().expect("schemes");
        assert_eq!(variants.len(), KEYS.len());
        for (variant, (name, own, shared)) in variants.iter().zip(KEYS) {
            assert_eq!(variant["properties"]["scheme"]["const"], name);
            let named = variant["$ref"].as_str().and_then(|r| r.rsplit('/').next());
            let table = named.map_or(variant, |name| &schema["$defs"][name]);
            let properties = table["properties"].as_object().into_iter().flat_map(|p| p.keys());
            let mut known: Vec<&str> = properties.map(String::as_str).filter(|k| *k != "scheme").collect();
            let mut keys = [own, shared].concat();
            keys.sort_unstable();
            known.sort_unstable();
            assert_eq!(keys, known, "{name}");
        }
    }
}
