//! Mininet: calls of `addLink` in a script, and the output of the command `links`.

use super::{Cable, Inventory, quantities};
use crate::builders::fault;
use crate::error::SpecError;
use crate::text::shown;
use std::collections::BTreeMap;

const FORM: &str = "write each link out, such as self.addLink('h1', 's1', bw=10000, delay='5us'); or start the network and save the output of Mininet's command `links`";

/// Whether a line is one of the output of `links`: `h1-eth0<->s1-eth1 (OK OK)`.
pub(super) fn is_link(line: &str) -> bool {
    line.contains("<->") && !line.contains(',')
}

pub(super) fn read(text: &str, inventory: &mut Inventory) -> Result<(), SpecError> {
    // Variables of a script, and the names that they stand for.
    let mut names: BTreeMap<&str, String> = BTreeMap::new();
    for (line, content) in (1..).zip(text.lines()) {
        let content = content.trim();
        if content.starts_with('#') {
            continue;
        }
        if is_link(content) {
            printed(line, content, inventory)?;
        } else if let Some((call, arguments)) = calls(content) {
            match call {
                "addHost" | "addSwitch" => {
                    let Some(name) = arguments.first().and_then(|name| literal(name)) else {
                        return Err(fault(
                            line,
                            format!("the name in `{}` is not written out", shown(content)),
                            FORM,
                        ));
                    };
                    inventory.set_role(&name, if call == "addHost" { "host" } else { "switch" });
                    if let Some((variable, _)) =
                        content.split_once('=').filter(|(v, _)| is_variable(v.trim()))
                    {
                        names.insert(variable.trim(), name);
                    }
                }
                _ => link(line, content, &arguments, &names, inventory)?,
            }
        }
    }
    Ok(())
}

/// The call of a line, and its arguments.
fn calls(line: &str) -> Option<(&str, Vec<&str>)> {
    let call =
        ["addHost", "addSwitch", "addLink"].into_iter().find(|call| line.contains(&format!("{call}(")))?;
    let inside = line.split_once(&format!("{call}("))?.1;
    let inside = inside.rsplit_once(')').map_or(inside, |(inside, _)| inside);
    Some((call, inside.split(',').map(str::trim).filter(|argument| !argument.is_empty()).collect()))
}

fn literal(text: &str) -> Option<String> {
    let inner = ['\'', '"'].into_iter().find_map(|quote| text.strip_prefix(quote)?.strip_suffix(quote))?;
    (!inner.contains(['\'', '"', '%', '{'])).then(|| inner.to_string())
}

fn is_variable(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

fn link(
    line: usize,
    content: &str,
    arguments: &[&str],
    names: &BTreeMap<&str, String>,
    inventory: &mut Inventory,
) -> Result<(), SpecError> {
    let name = |text: &str| literal(text).or_else(|| names.get(text).cloned());
    let mut plain = arguments.iter().filter(|argument| !argument.contains('='));
    let (Some(a), Some(b)) = (plain.next().and_then(|a| name(a)), plain.next().and_then(|b| name(b))) else {
        let message = format!("the ends of `{}` are not written out", shown(content));
        return Err(fault(line, message, FORM));
    };
    let keyword = |key: &str| {
        arguments.iter().find_map(|argument| {
            let (name, value) = argument.split_once('=')?;
            (name.trim() == key).then(|| value.trim().trim_matches(['\'', '"']))
        })
    };
    let refused = |message: String| fault(line, message, FORM);
    // `bw` is in Mbit/s, `loss` in percent.
    let rate = keyword("bw").map(|bw| quantities::rate(bw, Some(1_000_000))).transpose().map_err(refused)?;
    let delay = keyword("delay")
        .map(|delay| quantities::delay(delay, Some(1_000_000)))
        .transpose()
        .map_err(refused)?;
    let loss = keyword("loss").map_or(Some(0.0), |loss| {
        loss.parse::<f64>().ok().filter(|loss| (0.0..=100.0).contains(loss)).map(|loss| loss / 100.0)
    });
    let Some(loss) = loss else { return Err(refused("`loss` must be 0 to 100 (percent)".to_string())) };
    let [port_a, port_b] = ["port1", "port2"].map(|key| keyword(key).map(|number| number.to_string()));
    let ends = [
        inventory.end(&a, port_a.map(|number| format!("{a}-eth{number}")).as_deref()),
        inventory.end(&b, port_b.map(|number| format!("{b}-eth{number}")).as_deref()),
    ];
    inventory.connect(Cable { ends, rate, delay, loss, line })
}

/// `h1-eth0<->s1-eth1 (OK OK)`.
fn printed(line: usize, content: &str, inventory: &mut Inventory) -> Result<(), SpecError> {
    let link = content.split_whitespace().next().unwrap_or("");
    let mut ends = Vec::new();
    for end in link.split("<->") {
        let Some((device, _)) = end.rsplit_once('-') else {
            return Err(fault(line, format!("`{}` is no interface such as s1-eth1", shown(end)), FORM));
        };
        ends.push((device, end));
    }
    let &[(a, port_a), (b, port_b)] = &ends[..] else {
        return Err(fault(line, format!("`{}` is no link such as h1-eth0<->s1-eth1", shown(content)), FORM));
    };
    let ends = [inventory.end(a, Some(port_a)), inventory.end(b, Some(port_b))];
    inventory.connect(Cable { ends, rate: None, delay: None, loss: 0.0, line })
}
