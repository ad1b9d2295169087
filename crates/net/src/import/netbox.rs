//! Cables from NetBox's REST API (`/api/dcim/cables/`), in JSON.

use super::tree::{self, Value};
use super::{Cable, Inventory, quantities};
use crate::error::SpecError;
use crate::text::count;

const FORM: &str = "expected the answer of /api/dcim/cables/: a list `results` of cables with `a_terminations` and `b_terminations`";

pub(super) fn read(text: &str, inventory: &mut Inventory) -> Result<(), SpecError> {
    let text = text.replace('\t', " ");
    let documents = tree::parse(&text)?;
    let root = tree::first(&documents)?;
    let cables = if root.is_list() { Some(root) } else { root.get("results").filter(|r| r.is_list()) };
    let Some(cables) = cables else { return Err(root.refused("this file has no list of cables", FORM)) };
    let mut left_out = 0;
    for cable in cables.list() {
        let (Some(a), Some(b)) = (end(cable, "a"), end(cable, "b")) else {
            left_out += 1;
            continue;
        };
        let unit = cable.get("length_unit").and_then(|unit| unit.get("value").unwrap_or(unit).text());
        let delay = cable
            .get("length")
            .and_then(|length| Some((length, length.text()?)))
            .map(|(at, length)| {
                let unit = unit.as_deref().and_then(quantities::delay_unit);
                quantities::delay(&length, unit).map_err(|e| at.refused(e, FORM))
            })
            .transpose()?;
        let ends = [&a, &b].map(|(device, port)| inventory.end(device, port.as_deref()));
        inventory.connect(Cable { ends, rate: None, delay, loss: 0.0, line: cable.line() })?;
    }
    if left_out > 0 {
        let cables = count(left_out, "cable");
        inventory.remarks.push(format!("{cables} left out: a link needs a port of a device at both ends"));
    }
    Ok(())
}

/// Device and port of an end: of a list of terminations, or of one as older versions have it.
fn end(cable: Value<'_>, side: &str) -> Option<(String, Option<String>)> {
    let listed =
        cable.get(&format!("{side}_terminations")).and_then(|list| list.list().next()?.get("object"));
    let port = listed.or_else(|| cable.get(&format!("termination_{side}")))?;
    Some((port.get("device")?.get("name")?.text()?, port.get("name").and_then(Value::text)))
}
