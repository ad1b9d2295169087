//! A topology from a file of another program.

use super::{Estimate, Hpcc, MAX_RADIX, fault};
use crate::error::SpecError;
use crate::import::roles::{self, Found};
use crate::import::{self, Format, Inventory};
use crate::text::{count, sample};
use crate::topology::{LinkSpec, NodeId, NodeKind, Topology};
use crate::units::{Bandwidth, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// A file that describes the network for another program: a CSV of links, SONiC, NetBox, Graphviz,
/// GraphML, containerlab, Mininet or HPCC. Devices and ports keep the names of the file. In a
/// device's name, characters other than letters, digits, `.`, `_` and `-` become `_`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct File {
    /// Path of the file, relative to the scenario.
    pub file: String,
    /// The format. Default: detected from the contents.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-default" = "derived: detected from the contents"))]
    pub format: Option<Format>,
    /// Rate of the links without a rate in the file. Default: none, and such a link is an error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-default" = "none: each link needs a rate"))]
    pub rate: Option<Bandwidth>,
    /// One-way delay of the links without a length or a delay in the file, also as a length. The
    /// default is a cable of 10 m.
    #[serde(default = "ten_metres")]
    pub delay: Span,
    /// Names of the hosts; `*` is any text and `?` one character. All other devices are switches.
    /// Default: a device is a host by its role in the file, else by its name, else if it has links
    /// to one device only.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-default" = "derived: by roles, names and links"))]
    pub hosts: Vec<String>,
    /// Names of devices that are left out with their links, such as consoles; `*` and `?` as in
    /// `hosts`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub exclude: Vec<String>,
    /// Links with this one-way delay or more are long links between sites. Default: no link is
    /// long.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-default" = "none: no link is long"))]
    pub long_delay: Option<Span>,
}

/// The default of `delay`.
pub fn ten_metres() -> Span {
    Span(50_000)
}

/// A network that was read, and how.
pub struct Imported {
    pub topology: Topology,
    pub formats: Vec<Format>,
    /// How the hosts were found; `None` where the format has their roles itself.
    pub hosts: Option<Found>,
}

impl File {
    /// A file with the default of every other key.
    pub fn new(file: String) -> Self {
        let (hosts, exclude) = Default::default();
        Self { file, format: None, rate: None, delay: ten_metres(), hosts, exclude, long_delay: None }
    }

    /// Reads the content `text` of the file.
    pub fn read(&self, text: &str) -> Result<Imported, SpecError> {
        self.read_all(&[(&self.file, text)]).map_err(|(_, e)| e)
    }

    /// Reads one network from several files, by their names: each end of a link may be in another one. The error has
    /// the index of its file.
    pub fn read_all(&self, files: &[(&str, &str)]) -> Result<Imported, (usize, SpecError)> {
        let mut inventory = Inventory::default();
        let mut formats: Vec<Format> = Vec::new();
        for (i, (name, text)) in files.iter().enumerate() {
            let used = self.format.map_or_else(|| Format::detect(text), Ok).map_err(|e| (i, e))?;
            if !formats.contains(&used) {
                formats.push(used);
            }
            if used == Format::Hpcc {
                if files.len() > 1 {
                    let help = "give one file: its format has all links of a network";
                    return Err((
                        i,
                        fault(1, "a topology of HPCC cannot be combined with other files", help),
                    ));
                }
                return self.hpcc(text).map_err(|e| (i, e));
            }
            inventory.add(name, text, used, device_of(name)).map_err(|e| (i, e))?;
        }
        inventory.check().map_err(|e| (0, e))?;
        self.assemble(&inventory, formats)
    }

    fn hpcc(&self, text: &str) -> Result<Imported, SpecError> {
        let topology = Hpcc { file: self.file.clone(), long_delay: self.long_delay }.build(text)?;
        Ok(Imported { topology, formats: vec![Format::Hpcc], hosts: None })
    }

    /// Builds the network of an inventory. The error has the index of its file.
    fn assemble(&self, inventory: &Inventory, formats: Vec<Format>) -> Result<Imported, (usize, SpecError)> {
        let Inventory { devices, cables, .. } = inventory;
        let whole = |e: SpecError| (0, e);
        let size =
            Estimate { key: "file", hosts: devices.len() as u64, links: cables.len() as u64, radix: 0 };
        size.admit().map_err(|e| whole(fault(1, e.message, "choose a smaller network")))?;
        self.check_patterns("hosts", &self.hosts, inventory).map_err(whole)?;
        self.check_patterns("exclude", &self.exclude, inventory).map_err(whole)?;
        let (is_host, found) = roles::hosts(inventory, &self.hosts);
        let excluded: Vec<bool> =
            devices.iter().map(|d| self.exclude.iter().any(|p| roles::matches(p, &d.name))).collect();
        let kept =
            || cables.iter().enumerate().filter(|(_, c)| c.ends.iter().all(|end| !excluded[end.device]));
        let mut degree = vec![0u64; devices.len()];
        for (i, cable) in kept() {
            for end in &cable.ends {
                degree[end.device] += 1;
                if degree[end.device] > MAX_RADIX {
                    let message = format!("`{}` has more than {MAX_RADIX} links", devices[end.device].name);
                    let e = fault(cable.line, message, "spread its links over several switches");
                    return Err((inventory.file_of(i), e));
                }
            }
        }

        let mut topology = Topology::default();
        let mut nodes: Vec<Option<NodeId>> = vec![None; devices.len()];
        let mut remarks = inventory.remarks.clone();
        remarks.extend(inventory.renamed());
        let lonely: Vec<&str> = (0..devices.len())
            .filter(|&d| degree[d] == 0 && !excluded[d])
            .map(|d| devices[d].name.as_str())
            .collect();
        if !lonely.is_empty() {
            let named = sample(&lonely);
            remarks.push(format!("{} without links left out: {named}", count(lonely.len() as u64, "device")));
        }
        for kind in [NodeKind::Host, NodeKind::Switch] {
            for device in
                (0..devices.len()).filter(|&d| degree[d] > 0 && is_host[d] == (kind == NodeKind::Host))
            {
                nodes[device] = Some(topology.add(devices[device].name.clone(), kind));
            }
        }
        if topology.nodes.first().is_none_or(|node| node.kind == NodeKind::Switch) {
            let names: Vec<&str> = devices.iter().map(|device| device.name.as_str()).collect();
            let message = format!(
                "none of {} seems to be a host: {}",
                count(names.len() as u64, "device"),
                sample(&names)
            );
            return Err(whole(SpecError::new("file", message, "name the hosts, such as hosts = [\"srv*\"]")));
        }
        let twice =
            |names: &[&str]| names.windows(2).find(|pair| pair[0] == pair[1]).map(|pair| pair[0].to_string());
        let mut names: Vec<&str> = topology.nodes.iter().map(|node| node.name.as_str()).collect();
        names.sort_unstable();
        if let Some(name) = twice(&names) {
            let message = format!(
                "two devices would be called `{name}`, because names have only letters, digits, `.`, `_` and `-`"
            );
            return Err(whole(SpecError::new("file", message, "rename one of them in the file")));
        }
        let mut without_delay = 0;
        for (i, cable) in kept() {
            let [a, b] =
                cable.ends.each_ref().map(|end| nodes[end.device].expect("a device with links is a node"));
            without_delay += u64::from(cable.delay.is_none());
            let Some(rate) = cable.rate.or(self.rate) else {
                let name = |end: &import::End| devices[end.device].name.as_str();
                let message =
                    format!("the link {} - {} has no rate", name(&cable.ends[0]), name(&cable.ends[1]));
                let help = "write rate = \"100Gbps\" for the links without one (--rate 100Gbps of xoff import), or add rates to the file";
                return Err((inventory.file_of(i), fault(cable.line, message, help)));
            };
            let delay = cable.delay.unwrap_or(self.delay);
            let (port, peer) = topology.link(a, b, LinkSpec { rate, delay });
            topology.set_loss(port, cable.loss);
            for (port, end) in [(port, &cable.ends[0]), (peer, &cable.ends[1])] {
                if let Some(name) = &end.port {
                    topology.port_labels.insert(port, name.clone());
                }
            }
            if self.long_delay.is_some_and(|least| delay >= least) {
                topology.set_long(port);
            }
        }
        if without_delay > 0 {
            let links = count(without_delay, "link");
            remarks.push(format!(
                "{links} without a length or delay in the file: {} applies (`delay`)",
                self.delay
            ));
        }
        topology.remarks = remarks;
        Ok(Imported { topology, formats, hosts: Some(found) })
    }

    /// Refuses a pattern that fits no device.
    fn check_patterns(&self, key: &str, patterns: &[String], inventory: &Inventory) -> Result<(), SpecError> {
        for (i, pattern) in patterns.iter().enumerate() {
            if !inventory.devices.iter().any(|device| roles::matches(pattern, &device.name)) {
                let names: Vec<&str> = inventory.devices.iter().map(|device| device.name.as_str()).collect();
                let message = format!("no device is called `{pattern}`");
                return Err(SpecError::new(
                    format!("{key}[{i}]"),
                    message,
                    format!("the devices are {}", sample(&names)),
                ));
            }
        }
        Ok(())
    }
}

/// The device that a file of one switch is from: the name of the file without its ending. SONiC's own name for it,
/// `config_db.json`, says nothing, so that the folder counts then.
fn device_of(file: &str) -> &str {
    let path = Path::new(file);
    let stem = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or("switch");
    match (stem, path.parent().and_then(|folder| folder.file_name()?.to_str())) {
        ("config_db", Some(folder)) => folder,
        _ => stem,
    }
}
