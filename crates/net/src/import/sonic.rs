//! `config_db.json` of SONiC: tables `PORT`, `DEVICE_NEIGHBOR` and `DEVICE_NEIGHBOR_METADATA`.

use super::tree::{self, Value};
use super::{Cable, Inventory, quantities};
use crate::error::SpecError;

const FORM: &str = "expected config_db.json of a SONiC switch, with a table DEVICE_NEIGHBOR such as {\"Ethernet0\": {\"name\": \"spine1\", \"port\": \"Ethernet4\"}}; or an object of such files by the names of the switches";

pub(super) fn read(text: &str, device: &str, inventory: &mut Inventory) -> Result<(), SpecError> {
    let text = text.replace('\t', " ");
    let documents = tree::parse(&text)?;
    let root = tree::first(&documents)?;
    if root.get("DEVICE_NEIGHBOR").is_some() || root.get("PORT").is_some() {
        return switch(root, device, inventory);
    }
    let switches: Vec<(&str, Value<'_>)> =
        root.entries().filter(|(_, of)| of.get("DEVICE_NEIGHBOR").is_some()).collect();
    if switches.is_empty() {
        return Err(root.refused("this JSON file has no table DEVICE_NEIGHBOR", FORM));
    }
    switches.into_iter().try_for_each(|(name, of)| switch(of, name, inventory))
}

/// The links of one switch. Its name is that of its metadata, or else `named`.
fn switch(config: Value<'_>, named: &str, inventory: &mut Inventory) -> Result<(), SpecError> {
    let own = config.get("DEVICE_METADATA").and_then(|m| m.get("localhost"));
    let name = own.and_then(|own| own.get("hostname")?.text()).unwrap_or_else(|| named.to_string());
    inventory.device(&name);
    if let Some(role) = own.and_then(|own| own.get("type")?.text()) {
        inventory.set_role(&name, &role);
    }
    let Some(neighbours) = config.get("DEVICE_NEIGHBOR") else {
        return Err(config.refused(format!("`{name}` has no table DEVICE_NEIGHBOR"), FORM));
    };
    for (port, neighbour) in neighbours.entries() {
        let Some(other) = neighbour.get("name").and_then(Value::text) else {
            return Err(neighbour.refused(format!("the neighbour of {port} has no name"), FORM));
        };
        let remote = neighbour.get("port").and_then(Value::text);
        let speed = config.get("PORT").and_then(|ports| ports.get(port)?.get("speed"));
        // In Mbit/s.
        let rate = speed
            .and_then(|speed| Some((speed, speed.text()?)))
            .map(|(at, speed)| quantities::rate(&speed, Some(1_000_000)).map_err(|e| at.refused(e, FORM)))
            .transpose()?;
        let ends = [inventory.end(&name, Some(port)), inventory.end(&other, remote.as_deref())];
        inventory.connect(Cable { ends, rate, delay: None, loss: 0.0, line: neighbour.line() })?;
    }
    for (other, about) in config.get("DEVICE_NEIGHBOR_METADATA").into_iter().flat_map(Value::entries) {
        if let (Some(role), true) =
            (about.get("type").and_then(Value::text), inventory.by_name.contains_key(other))
        {
            inventory.set_role(other, &role);
        }
    }
    Ok(())
}
