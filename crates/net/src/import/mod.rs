//! Files that describe a network for other programs: its devices, and the links between them.
//!
//! [`Inventory::add`] reads a file: names of devices and ports as the file writes them, and the rate and the delay of
//! each link, where the file has them. [`roles`] decides which devices are hosts.

mod containerlab;
mod csv;
mod dot;
mod graphml;
mod lldp;
mod mininet;
mod netbox;
mod quantities;
pub mod roles;
mod routes;
mod sonic;
#[cfg(test)]
mod tests;
mod tree;

pub use routes::{StaticRoute, static_routes};

use crate::builders::fault;
use crate::error::SpecError;
use crate::text::{count, is_in_node_name, is_in_port_name, shown};
use crate::units::{Bandwidth, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

/// The format of a file that describes a network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Format {
    /// A table with one line for each link, also as NetBox exports its cables and as SONiC's
    /// tests list theirs.
    Csv,
    /// `config_db.json` of a SONiC switch, or an object of several by the names of the switches.
    Sonic,
    /// The output of `show lldp table` of a SONiC switch.
    Lldp,
    /// Cables from the REST API of NetBox, JSON.
    Netbox,
    /// A graph of Graphviz.
    Dot,
    /// A graph in GraphML, as Topology Zoo has them.
    Graphml,
    /// A topology of containerlab, YAML.
    Containerlab,
    /// A script of Mininet with `addLink`, or the output of its command `links`.
    Mininet,
    /// A topology file of the HPCC simulator.
    Hpcc,
}

impl Format {
    /// All formats: the value of the key `format`, and words for it.
    pub const ALL: [(Self, &str, &str); 9] = [
        (Self::Csv, "csv", "CSV of links"),
        (Self::Sonic, "sonic", "SONiC config_db.json"),
        (Self::Lldp, "lldp", "SONiC LLDP table"),
        (Self::Netbox, "netbox", "NetBox cables, JSON"),
        (Self::Dot, "dot", "Graphviz DOT"),
        (Self::Graphml, "graphml", "GraphML"),
        (Self::Containerlab, "containerlab", "containerlab YAML"),
        (Self::Mininet, "mininet", "Mininet links"),
        (Self::Hpcc, "hpcc", "HPCC topology"),
    ];

    /// The format in words.
    pub fn words(self) -> &'static str {
        Self::ALL.iter().find(|(format, ..)| *format == self).map_or("", |(_, _, words)| words)
    }

    /// The format that a text seems to have, by its first lines.
    pub fn detect(text: &str) -> Result<Self, SpecError> {
        let start = text.trim_start();
        let first = start.lines().map(str::trim).find(|l| !l.is_empty() && !l.starts_with('#')).unwrap_or("");
        let word = start.split(|c: char| !c.is_ascii_alphabetic()).next().unwrap_or("");
        let lldp = |line: &str| line.starts_with("Capability codes") || line.starts_with("LocalPort");
        Ok(if first.is_empty() {
            return Err(fault(1, "the file is empty", csv::EXAMPLE));
        } else if start.starts_with('{')
            || start.strip_prefix('[').is_some_and(|rest| rest.trim_start().starts_with('{'))
        {
            match start.contains("\"a_terminations\"") || start.contains("\"termination_a\"") {
                true => Self::Netbox,
                false => Self::Sonic,
            }
        } else if start.starts_with('<') {
            Self::Graphml
        } else if matches!(word, "graph" | "digraph" | "strict") && start.contains('{') {
            Self::Dot
        } else if start.contains("addLink(") || start.lines().any(mininet::is_link) {
            Self::Mininet
        } else if start.lines().any(|line| line.trim_end() == "topology:") {
            Self::Containerlab
        } else if lldp(first) {
            Self::Lldp
        } else if first.split_whitespace().count() == 3
            && first.split_whitespace().all(|field| field.bytes().all(|b| b.is_ascii_digit()))
        {
            Self::Hpcc
        } else if first.contains([',', ';', '\t']) {
            Self::Csv
        } else {
            let line = text.lines().position(|l| l.trim() == first).unwrap_or(0) + 1;
            let known: Vec<&str> = Self::ALL.iter().map(|(_, key, _)| *key).collect();
            let message = format!("`{}` begins no known format of a network", shown(first));
            let help = format!("the formats are {}; {}", known.join(", "), csv::EXAMPLE);
            return Err(fault(line, message, help));
        })
    }
}

/// A device of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Device {
    /// The file's name of it; characters that names must not have are `_`.
    pub name: String,
    /// What the file says it is, such as `ToRRouter` or `server`.
    pub role: Option<String>,
}

/// One end of a link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct End {
    /// Index in [`Inventory::devices`].
    pub device: usize,
    /// The name of the port, where the file has one.
    pub port: Option<String>,
}

/// A link of a file.
#[derive(Clone, Debug, PartialEq)]
pub struct Cable {
    pub ends: [End; 2],
    pub rate: Option<Bandwidth>,
    pub delay: Option<Span>,
    /// Probability that a frame is lost, 0 to 1.
    pub loss: f64,
    /// The line of its file, from 1.
    pub line: usize,
}

/// What a file says about a network.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Inventory {
    /// In the order of the file.
    pub devices: Vec<Device>,
    pub cables: Vec<Cable>,
    /// What was read otherwise than a reader may expect, such as lines without a second end.
    pub remarks: Vec<String>,
    /// Indices of devices by their names in the file.
    by_name: BTreeMap<String, usize>,
    /// Cables by port: index of the device, and name.
    by_port: BTreeMap<(usize, String), usize>,
    /// The files that were read.
    files: Vec<String>,
    /// By cable: the index of its file.
    origins: Vec<usize>,
    /// Names of devices in the file that could not stay, with the names that they have.
    renamed: Vec<(String, String)>,
}

impl Inventory {
    /// Adds the devices and links of the file called `name`; a link that both ends report is one. `device` is the
    /// device that a file of a single switch comes from.
    pub fn add(&mut self, name: &str, text: &str, format: Format, device: &str) -> Result<(), SpecError> {
        self.files.push(name.to_string());
        match format {
            Format::Csv => csv::read(text, self),
            Format::Sonic => sonic::read(text, device, self),
            Format::Lldp => lldp::read(text, device, self),
            Format::Netbox => netbox::read(text, self),
            Format::Dot => dot::read(text, self),
            Format::Graphml => graphml::read(text, self),
            Format::Containerlab => containerlab::read(text, self),
            Format::Mininet => mininet::read(text, self),
            Format::Hpcc => unreachable!("Hpcc reads its own format"),
        }
    }

    /// What to say of devices whose names could not stay.
    pub fn renamed(&self) -> Option<String> {
        let (name, used) = self.renamed.first()?;
        let names = count(self.renamed.len() as u64, "name");
        Some(format!(
            "{names} changed, because a name has only letters, digits, `.`, `_` and `-`: `{}` is called {used}",
            shown(name)
        ))
    }

    /// The line where a link was read, with its file if that is another one.
    fn place(&self, cable: usize) -> String {
        let (file, line) = (self.origins[cable], self.cables[cable].line);
        match file + 1 == self.files.len() {
            true => format!("line {line}"),
            false => format!("line {line} of {}", self.files[file]),
        }
    }

    /// Refuses an inventory without links.
    pub fn check(&self) -> Result<(), SpecError> {
        match self.cables.is_empty() {
            true => Err(fault(1, "the file has no links", csv::EXAMPLE)),
            false => Ok(()),
        }
    }

    /// The index of the device called `name`, which is added if it is new.
    fn device(&mut self, name: &str) -> usize {
        match self.by_name.entry(name.to_string()) {
            Entry::Occupied(known) => *known.get(),
            Entry::Vacant(new) => {
                let index = self.devices.len();
                let used = usable(name);
                if used != name {
                    self.renamed.push((name.to_string(), used.clone()));
                }
                self.devices.push(Device { name: used, role: None });
                *new.insert(index)
            }
        }
    }

    fn set_role(&mut self, name: &str, role: &str) {
        let device = self.device(name);
        if !role.trim().is_empty() {
            self.devices[device].role = Some(role.trim().to_string());
        }
    }

    fn end(&mut self, device: &str, port: Option<&str>) -> End {
        let port = port.map(str::trim).filter(|port| !port.is_empty());
        End { device: self.device(device), port: port.map(usable_port) }
    }

    fn end_name(&self, end: &End) -> String {
        let device = &self.devices[end.device].name;
        end.port.as_ref().map_or_else(|| device.clone(), |port| format!("{device}:{port}"))
    }

    /// Adds a link, or what a second report of it adds. Both ends of a link may report it, and a port has one link.
    fn connect(&mut self, cable: Cable) -> Result<(), SpecError> {
        let [a, b] = &cable.ends;
        if a.device == b.device {
            let message = format!("a link connects `{}` to itself", self.devices[a.device].name);
            return Err(fault(cable.line, message, "write two different devices, or remove the line"));
        }
        for end in &cable.ends {
            let Some(port) = &end.port else { continue };
            let Some(&known) = self.by_port.get(&(end.device, port.clone())) else { continue };
            let other = &self.cables[known];
            let same = |x: &End, y: &End| x.device == y.device && (x.port.is_none() || x.port == y.port);
            let again = (same(a, &other.ends[0]) && same(b, &other.ends[1]))
                || (same(a, &other.ends[1]) && same(b, &other.ends[0]));
            if !again {
                let (port, place) = (self.end_name(end), self.place(known));
                let [x, y] = other.ends.each_ref().map(|end| self.end_name(end));
                let message =
                    format!("port {port} has a second link: its first one, {x} - {y}, is in {place}");
                let help = "use each port for one link only; both ends must call a port by the same name";
                return Err(fault(cable.line, message, help));
            }
            return self.merge(known, cable);
        }
        let index = self.cables.len();
        for end in &cable.ends {
            if let Some(port) = &end.port {
                self.by_port.insert((end.device, port.clone()), index);
            }
        }
        self.origins.push(self.files.len().saturating_sub(1));
        self.cables.push(cable);
        Ok(())
    }

    /// Completes a known link by another report of it.
    fn merge(&mut self, known: usize, cable: Cable) -> Result<(), SpecError> {
        let name = format!("{} - {}", self.end_name(&cable.ends[0]), self.end_name(&cable.ends[1]));
        let place = self.place(known);
        let other = &mut self.cables[known];
        let differs = |what: &str, x: &dyn std::fmt::Display, y: &dyn std::fmt::Display| {
            let message = format!("the link {name} has two {what}: {x} here, and {y} in {place}");
            fault(cable.line, message, "write the same at both ends")
        };
        match (cable.rate, other.rate) {
            (Some(here), Some(there)) if here != there => return Err(differs("rates", &here, &there)),
            (here, there) => other.rate = there.or(here),
        }
        match (cable.delay, other.delay) {
            (Some(here), Some(there)) if here != there => return Err(differs("delays", &here, &there)),
            (here, there) => other.delay = there.or(here),
        }
        Ok(())
    }

    /// The index of the file that a cable was read from.
    pub fn file_of(&self, cable: usize) -> usize {
        self.origins[cable]
    }

    /// Joins links that the present file, a directed graph, has in both directions.
    fn join_directions(&mut self) {
        let present = self.files.len().saturating_sub(1);
        let mut open: BTreeMap<[usize; 2], usize> = BTreeMap::new();
        let (cables, origins) = (std::mem::take(&mut self.cables), std::mem::take(&mut self.origins));
        self.by_port.clear();
        for (cable, file) in cables.into_iter().zip(origins) {
            let [a, b] = cable.ends.each_ref().map(|end| end.device);
            if file == present && cable.ends.iter().all(|end| end.port.is_none()) {
                if let Some(count @ 1..) = open.get_mut(&[b, a]) {
                    *count -= 1;
                    continue;
                }
                *open.entry([a, b]).or_default() += 1;
            }
            for end in &cable.ends {
                if let Some(port) = &end.port {
                    self.by_port.insert((end.device, port.clone()), self.cables.len());
                }
            }
            self.cables.push(cable);
            self.origins.push(file);
        }
    }
}

/// A device's name in scenarios and results: letters, digits, `.`, `_` and `-`, and not only digits.
fn usable(name: &str) -> String {
    let plain = |c: char| if is_in_node_name(c) { c } else { '_' };
    let name: String = name.trim().chars().map(plain).collect();
    if name.bytes().all(|b| b.is_ascii_digit()) { format!("N{name}") } else { name }
}

/// A port's name: without white space, hidden characters and quotes.
fn usable_port(name: &str) -> String {
    name.chars().map(|c| if is_in_port_name(c) { c } else { '_' }).collect()
}
