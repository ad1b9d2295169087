//! `xoff import`: the network of another program's files, as a scenario.

use std::fmt::Write;
use std::{path::PathBuf, process::ExitCode};

use miette::{IntoDiagnostic, WrapErr, miette};
use xoff_net::builders::{File, Imported};
use xoff_net::error::SpecError;
use xoff_net::import::{Format, roles};
use xoff_net::text::{count, sample};
use xoff_net::topology::{NodeKind, PortId, Topology};
use xoff_net::units::{Bandwidth, Span};

use crate::{file, output};

#[derive(clap::Args)]
pub struct ImportArgs {
    /// Files of one network: a CSV of links, SONiC config_db.json or LLDP tables (one per switch), NetBox cables, DOT,
    /// GraphML, containerlab, Mininet or HPCC
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// Format of the files [default: detected from their contents]
    #[arg(long, value_name = "FORMAT", value_parser = format)]
    format: Option<Format>,
    /// Rate of the links without a rate in the file, such as 100Gbps
    #[arg(long, value_name = "RATE")]
    rate: Option<Bandwidth>,
    /// Delay or length of the links without one in the file, such as 20m or 1us [default: 10m]
    #[arg(long, value_name = "DELAY")]
    delay: Option<Span>,
    /// Names of the hosts, with * for any text, such as 'srv-*'; all others are switches [default: by roles, names
    /// and links]
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    hosts: Vec<String>,
    /// Names of devices to leave out, such as 'oob-*'
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    exclude: Vec<String>,
    /// Links with this delay or length or more are long links between sites, such as 1km
    #[arg(long, value_name = "DELAY")]
    long_delay: Option<Span>,
    /// Print no summary
    #[arg(long, short)]
    quiet: bool,
}

fn format(text: &str) -> Result<Format, String> {
    let found = Format::ALL.iter().find(|(_, key, _)| *key == text).map(|(format, ..)| *format);
    let known: Vec<&str> = Format::ALL.iter().map(|(_, key, _)| *key).collect();
    found.ok_or_else(|| format!("expected {}", known.join(", ")))
}

pub fn import(args: &ImportArgs) -> miette::Result<ExitCode> {
    let mut texts = Vec::new();
    for path in &args.files {
        let name = path.display().to_string();
        if path.is_dir() {
            let help = format!("type its files, such as {name}/*.json");
            return Err(miette!(help = help, "{name} is a directory, not a file"));
        }
        let bytes = file::read(path).into_diagnostic().wrap_err_with(|| format!("{name} cannot be read"))?;
        let text = String::from_utf8(bytes).map_err(|_| miette!("{name} is not a text file"))?;
        texts.push((name, text.strip_prefix('\u{feff}').map(str::to_string).unwrap_or(text)));
    }
    let standard = File::new(texts[0].0.clone());
    let spec = File {
        format: args.format,
        rate: args.rate,
        delay: args.delay.unwrap_or(standard.delay),
        hosts: args.hosts.clone(),
        exclude: args.exclude.clone(),
        long_delay: args.long_delay,
        ..standard
    };
    let files: Vec<(&str, &str)> = texts.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
    let imported = spec.read_all(&files).map_err(|(i, e)| refused(&texts[i], e))?;
    let names: Vec<&str> = files.iter().map(|(name, _)| *name).collect();
    output::print(&scenario(&names, &imported))?;
    if !args.quiet {
        output::complain(&summary(&names, &imported));
    }
    Ok(ExitCode::SUCCESS)
}

fn refused((name, text): &(String, String), e: SpecError) -> miette::Report {
    xoff_plan::Error::in_file(name, text, e).into()
}

/// What was read, in words.
fn summary(names: &[&str], imported: &Imported) -> String {
    let topology = &imported.topology;
    let (hosts, switches) = (of_kind(topology, NodeKind::Host), of_kind(topology, NodeKind::Switch));
    let links = count(topology.ports.len() as u64 / 2, "link");
    let formats: Vec<&str> = imported.formats.iter().map(|format| format.words()).collect();
    let mut out = format!("{}: {}, {links}\n", sample(names), formats.join(" and "));
    let how = imported.hosts.map_or(String::new(), |found| {
        let ways = [
            (found.by_pattern, "as --hosts names them"),
            (found.by_role, "by the role in the file"),
            (found.by_name, "by the name"),
            (found.by_links, "by having one neighbour"),
        ];
        let ways: Vec<String> =
            ways.iter().filter(|(n, _)| *n > 0).map(|(n, how)| format!("{n} {how}")).collect();
        format!(" ({})", ways.join(", "))
    });
    let _ = writeln!(out, "  {}{how}: {}", count(hosts.len() as u64, "host"), sample(&hosts));
    let tiers = roles::tiers(topology);
    let highest = tiers.iter().copied().max().unwrap_or(0);
    for tier in 1..=highest {
        let on = |(node, _): &(&&str, u32)| tiers[topology.find(node).unwrap_or(0) as usize] == tier;
        let names: Vec<&str> = switches.iter().zip(0u32..).filter(on).map(|(name, _)| *name).collect();
        if !names.is_empty() {
            let role = match highest {
                1 => String::new(),
                _ => format!(
                    " ({}: {} from the nearest host)",
                    roles::tier_name(tier),
                    count(tier.into(), "link")
                ),
            };
            let _ = writeln!(out, "  {}{role}: {}", count(names.len() as u64, "switch"), sample(&names));
        }
    }
    topology.remarks.iter().for_each(|remark| {
        let _ = writeln!(out, "note: {remark}");
    });
    out.trim_end().to_string()
}

fn of_kind(topology: &Topology, kind: NodeKind) -> Vec<&str> {
    topology.nodes.iter().filter(|node| node.kind == kind).map(|node| node.name.as_str()).collect()
}

/// The network as a scenario: a topology of kind `custom`.
fn scenario(names: &[&str], imported: &Imported) -> String {
    let topology = &imported.topology;
    let quoted = |text: &str| format!("\"{text}\"");
    let mut out =
        format!("# The network of {}, by xoff import.\n\n[topology]\nkind = \"custom\"\n", names.join(", "));
    for (key, kind) in [("hosts", NodeKind::Host), ("switches", NodeKind::Switch)] {
        let _ = writeln!(out, "{key} = [");
        for names in of_kind(topology, kind).chunks(8) {
            let names: Vec<String> = names.iter().map(|name| quoted(name)).collect();
            let _ = writeln!(out, "    {},", names.join(", "));
        }
        out.push_str("]\n");
    }
    out.push_str("links = [\n");
    let mut losses = String::new();
    for a in (0..topology.ports.len() as PortId).step_by(2) {
        let (port, b) = (&topology.ports[a as usize], topology.ports[a as usize].peer);
        let node = |p: PortId| quoted(&topology.nodes[topology.ports[p as usize].node as usize].name);
        let label = |key: &str, p: PortId| {
            topology.port_labels.get(&p).map_or(String::new(), |label| format!(", {key} = {}", quoted(label)))
        };
        let long = if port.long { ", long = true" } else { "" };
        let _ = writeln!(
            out,
            "    {{ a = {}{}, b = {}{}, rate = \"{}\", delay = \"{}\"{long} }},",
            node(a),
            label("a_port", a),
            node(b),
            label("b_port", b),
            Bandwidth(port.rate),
            Span(port.delay)
        );
        if port.loss > 0.0 {
            let name = topology.port_name(a);
            let _ = writeln!(losses, "\n[[loss]]\nlink = {}\nrate = {}", quoted(&name), port.loss);
        }
    }
    out.push_str("]\n");
    out.push_str(&losses);
    let hosts = of_kind(topology, NodeKind::Host);
    if let [first, .., last] = hosts[..] {
        let _ = write!(
            out,
            "\n# `xoff check` and `xoff topo` need no traffic. For `xoff run`, add some, such as:\n#\n# [[traffic]]\n# \
             kind = \"flow\"\n# src = \"{first}\"\n# dst = \"{last}\"\n# size = \"10MB\"\n"
        );
    }
    out
}
