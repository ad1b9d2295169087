//! From a document to a [`Scenario`]: which table is read as which type.

use crate::Needs;
use crate::choices;
use crate::document::{Document, unknown_name, with_article};
use crate::error::{Error, Warning, suggest};
use crate::scenario::{CongestionControlKeys, LoadBalancingKeys, Routing, Scenario, Traffic, TransportKeys};
use crate::variants;
use schemars::{JsonSchema, Schema};
use serde::de::DeserializeOwned;
use strsim::damerau_levenshtein;
use toml::de::ValueDeserializer;
use xoff_net::builders::{Table, TopologySpec};
use xoff_net::human::listed;
use xoff_schemes::flow_control::FlowControlKeys;
use xoff_schemes::flow_control::keys::{Reader, Unread};
use xoff_schemes::names::Tables;
use xoff_schemes::scheduling::PodsKeys;

/// Without those of transports and congestion controls.
const TABLES: [&str; 17] = [
    "topology",
    "routing",
    "switch",
    "host",
    "link_layer",
    "slow_receiver",
    "failure",
    "loss",
    "priority",
    "ecn",
    "flow_control",
    "transport",
    PodsKeys::NAME,
    "traffic",
    "run",
    "measure",
    "variant",
];
const LISTS: [&str; 6] = ["slow_receiver", "failure", "loss", "priority", "traffic", "variant"];

pub(crate) fn scenario(
    doc: &Document<'_>,
    needs: Needs,
    warnings: &mut Vec<Warning>,
) -> Result<Scenario, Error> {
    let tables = [&TABLES[..], TransportKeys::NAMES, CongestionControlKeys::NAMES].concat();
    for key in doc.keys("") {
        let value = doc.get(&key).map(|v| v.get_ref());
        if !tables.contains(&key.as_str()) {
            let what = if value.is_some_and(|v| v.is_table() || v.is_array()) { "table" } else { "key" };
            let help = choices::elsewhere(&key, &key)
                .unwrap_or_else(|| suggest(&key, "the tables of a scenario", &tables));
            return Err(doc.key_error(&key, format!("unknown {what} `{key}`"), help));
        }
        let list = LISTS.contains(&key.as_str());
        if value.is_some_and(|v| if list { !v.is_array() } else { !v.is_table() }) {
            let header = if list { format!("[[{key}]]") } else { format!("[{key}]") };
            let message = format!("`{key}` must be {}", if list { "a list of tables" } else { "a table" });
            let help = format!("write {header} on a separate line, and its keys below");
            return Err(doc.error(&key, message, help));
        }
    }
    doc.check_lists()?;
    variants::read(doc)?;
    for (key, header, example) in [
        ("topology", "[topology]", "[topology] with kind = \"leaf-spine\""),
        ("traffic", "[[traffic]]", "[[traffic]] with kind = \"flow\", src, dst and size"),
    ] {
        if doc.get(key).is_none() && (key != "traffic" || needs == Needs::Traffic) {
            let message = format!("the table {header} is missing");
            return Err(doc.error("", message, format!("a scenario needs at least {example}")).with_key(key));
        }
    }
    let topology = topology(doc)?;
    let flow_control = flow_control(doc, warnings)?;
    let traffic = (0..doc.len("traffic")).map(|i| traffic(doc, i)).collect::<Result<Vec<_>, _>>()?;
    if traffic.is_empty() && needs == Needs::Traffic {
        return Err(doc.error("traffic", "the scenario sends no traffic", "add a [[traffic]] table"));
    }
    let mut scenario = Scenario {
        topology,
        link_layer: optional(doc, "link_layer")?,
        routing: routing(doc)?,
        switch: table(doc, "switch")?,
        host: table(doc, "host")?,
        slow_receiver: table(doc, "slow_receiver")?,
        failure: table(doc, "failure")?,
        loss: table(doc, "loss")?,
        priority: table(doc, "priority")?,
        ecn: optional(doc, "ecn")?,
        flow_control,
        transport: table(doc, "transport")?,
        transports: TransportKeys::read(doc)?,
        congestion: CongestionControlKeys::read(doc)?,
        pods: optional(doc, PodsKeys::NAME)?,
        traffic,
        run: table(doc, "run")?,
        measure: table(doc, "measure")?,
        variant: Vec::new(),
    };
    if scenario.topology.is_bufferless() {
        scenario.forget_queues();
    }
    doc.check_integers()?;
    Ok(scenario)
}

fn table<T: DeserializeOwned + JsonSchema + Default>(doc: &Document<'_>, key: &str) -> Result<T, Error> {
    Ok(optional(doc, key)?.unwrap_or_default())
}

fn optional<T: DeserializeOwned + JsonSchema>(doc: &Document<'_>, key: &str) -> Result<Option<T>, Error> {
    doc.read_documented(key, &[])
}

impl Tables for Document<'_> {
    type Error = Error;

    fn table<T: DeserializeOwned + JsonSchema>(&self, name: &str) -> Result<Option<T>, Error> {
        optional(self, name)
    }
}

fn routing(doc: &Document<'_>) -> Result<Routing, Error> {
    let routing = doc.read_documented("routing", LoadBalancingKeys::NAMES)?.unwrap_or_default();
    Ok(Routing { balancing: LoadBalancingKeys::read(&Within { doc, path: "routing" })?, ..routing })
}

/// The tables in the table at `path`.
struct Within<'d, 's> {
    doc: &'d Document<'s>,
    path: &'d str,
}

impl Tables for Within<'_, '_> {
    type Error = Error;

    fn table<T: DeserializeOwned + JsonSchema>(&self, name: &str) -> Result<Option<T>, Error> {
        optional(self.doc, &format!("{}.{name}", self.path))
    }
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
        let message = format!("expected text, found {}", with_article(value.get_ref().type_str()));
        return Err(doc.error(&path, message, suggest("", "allowed values", allowed)));
    };
    if !allowed.contains(&text) {
        let (message, help) = unknown_name(&path, text, allowed);
        return Err(doc.error(&path, message, help));
    }
    Ok(Some(text))
}

fn kind<'d>(doc: &'d Document<'_>, table: &str, allowed: &[&str]) -> Result<&'d str, Error> {
    choice(doc, table, "kind", allowed)?.ok_or_else(|| {
        let allowed = suggest("", "allowed values of `kind`", allowed);
        let keys = doc.keys(table);
        let meant = |key: &&String| *key == "type" || damerau_levenshtein(key, "kind") == 1;
        match keys.iter().find(meant) {
            Some(key) => {
                let help = format!("did you mean `kind`? {allowed}");
                doc.key_error(&format!("{table}.{key}"), format!("unknown key `{key}`"), help)
            }
            None => doc.error(&format!("{table}.kind"), "the key `kind` is missing", allowed),
        }
    })
}

/// The content of the table at `path` beside its `kind`.
struct Kind<'d, 's> {
    doc: &'d Document<'s>,
    path: &'d str,
    kind: &'d str,
}

impl Table for Kind<'_, '_> {
    type Error = Error;

    fn read<T: DeserializeOwned + JsonSchema>(&self) -> Result<T, Error> {
        let read =
            self.doc.read_documented(self.path, &["kind"]).map_err(|e| e.of_kind(self.path, self.kind))?;
        Ok(read.expect("a table that has a kind is there"))
    }
}

fn topology(doc: &Document<'_>) -> Result<TopologySpec, Error> {
    let kind = kind(doc, "topology", TopologySpec::KINDS)?;
    TopologySpec::read(kind, &Kind { doc, path: "topology", kind })
}

fn traffic(doc: &Document<'_>, index: usize) -> Result<Traffic, Error> {
    let path = format!("traffic[{index}]");
    let kind = kind(doc, &path, Traffic::KINDS)?;
    Traffic::read(kind, &Kind { doc, path: &path, kind })
}

/// One scenario serves with several schemes: keys that belong to other schemes
/// than the chosen one are passed over, and each is named as having no effect.
fn flow_control(doc: &Document<'_>, warnings: &mut Vec<Warning>) -> Result<FlowControlKeys, Error> {
    let all = FlowControlKeys::names();
    let scheme = choice(doc, "flow_control", "scheme", &all)?.unwrap_or(FlowControlKeys::default().name());
    let keys = |name: &str| FlowControlKeys::of(name).concat();
    let own = keys(scheme);
    let mut passed = vec!["scheme"];
    for key in doc.keys("flow_control") {
        let owners: Vec<&str> =
            all.iter().copied().filter(|name| keys(name).contains(&key.as_str())).collect();
        let known = owners.first().and_then(|name| keys(name).into_iter().find(|known| *known == key));
        let Some(known) = known.filter(|known| !own.contains(known)) else { continue };
        passed.push(known);
        let owners: Vec<String> = owners.iter().map(|name| format!("`{name}`")).collect();
        let message =
            format!("had no effect: it is a key of {}, and this run uses `{scheme}`", listed(&owners));
        warnings.push(Warning { key: format!("flow_control.{key}"), message });
    }
    FlowControlKeys::read(scheme, &FlowControlTable(doc), &passed)
        .map_err(|e| *e.0.downcast().expect("the table's errors are of this type"))
}

struct FlowControlTable<'d, 's>(&'d Document<'s>);

impl Reader for FlowControlTable<'_, '_> {
    fn keys(&self) -> Vec<String> {
        self.0.keys("flow_control")
    }

    fn parse(
        &self,
        without: &[&str],
        schema: fn() -> Schema,
        parse: &mut dyn FnMut(ValueDeserializer<'_>) -> Result<(), toml::de::Error>,
    ) -> Result<(), Unread> {
        self.0.parse_with("flow_control", without, schema, parse).map_err(|e| Unread(Box::new(e)))
    }

    fn unknown(&self, key: &str, allowed: &[&str]) -> Unread {
        let help = suggest(key, "allowed keys", &[&["scheme"], allowed].concat());
        let path = format!("flow_control.{key}");
        Unread(Box::new(self.0.key_error(&path, format!("unknown key `{key}`"), help)))
    }
}
