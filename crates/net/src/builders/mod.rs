//! Topologies that a scenario can ask for: one plain struct per kind, each a
//! `[topology]` table, and [`TopologySpec::build`].
//!
//! Hosts are nodes `0..H` in order, named `H<i>`; switches follow tier by tier, named `S<tier>.<index>`.

mod chain;
mod clos;
mod cube;
mod custom;
mod dci;
mod direct;
mod dragonfly;
mod file;
mod hpcc;
mod pods;
mod rail;
#[cfg(test)]
mod tests;

pub use chain::{Dumbbell, Line, Ring};
pub use clos::{FatTree, LeafSpine};
pub use cube::Ndc;
pub use custom::{Custom, CustomLink};
pub use dci::{Dci, LongLink};
pub use direct::{FullMesh, Torus2d};
pub use dragonfly::Dragonfly;
pub use file::{File, Imported};
pub use hpcc::{Hpcc, host_name};
pub(crate) use hpcc::{fault, is_row, left_out};
pub use pods::Pods;
pub use rail::{RailOnly, RailOptimized};

use crate::error::SpecError;
use crate::topology::{NodeId, NodeKind, Topology};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

pub const MAX_HOSTS: u64 = 2_000_000;
/// Most ports (two per link) that a topology may have.
pub const MAX_PORTS: u64 = 20_000_000;
pub const MAX_RADIX: u64 = 65_536;

/// The keys of a table beside `kind`, wherever it is read from.
pub trait Table {
    /// Why they cannot be read.
    type Error;

    fn read<T: DeserializeOwned + JsonSchema>(&self) -> Result<T, Self::Error>;
}

/// From a line for each kind of a table: the enum of the kinds, their names, and their readers.
#[macro_export]
macro_rules! kinds {
    ($(#[$about:meta])* pub enum $table:ident { $($(#[$doc:meta])* $kind:ident($keys:ty) = $name:literal,)* }) => {
        $(#[$about])*
        #[serde(tag = "kind")]
        pub enum $table { $($(#[$doc])* #[serde(rename = $name)] $kind($keys),)* }

        impl $table {
            /// The values of the key `kind`.
            pub const KINDS: &[&str] = &[$($name),*];

            /// The value of the key `kind`.
            pub fn kind(&self) -> &'static str {
                match self { $(Self::$kind(_) => $name,)* }
            }

            /// Reads a table of this kind, one of [`Self::KINDS`].
            pub fn read<T: $crate::builders::Table>(kind: &str, table: &T) -> Result<Self, T::Error> {
                Ok(match kind {
                    $($name => Self::$kind(table.read()?),)*
                    other => unreachable!("`{other}` is not one of the kinds"),
                })
            }
        }
    };
}

kinds! {
/// The `[topology]` table of a scenario.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub enum TopologySpec {
    /// NDC(n, k), also known as BCube: hosts that relay, layers of small switches.
    Ndc(Ndc) = "ndc",
    /// Two tiers, every leaf linked to every spine.
    LeafSpine(LeafSpine) = "leaf-spine",
    /// A folded Clos network of k-port switches, in two or three tiers.
    FatTree(FatTree) = "fat-tree",
    /// Two switches with one link between them.
    Dumbbell(Dumbbell) = "dumbbell",
    /// Switches in a row.
    Line(Line) = "line",
    /// Switches in a ring.
    Ring(Ring) = "ring",
    /// High-bandwidth domains joined by rails.
    RailOnly(RailOnly) = "rail-only",
    /// Rail-only segments under aggregation switches.
    RailOptimized(RailOptimized) = "rail-optimized",
    /// Switches, each with a link to every other.
    FullMesh(FullMesh) = "full-mesh",
    /// Switches in a grid that closes on itself in both directions.
    Torus2d(Torus2d) = "torus-2d",
    /// Groups of switches, with links between all switches of a group and between all pairs of groups.
    Dragonfly(Dragonfly) = "dragonfly",
    /// Two fat-trees with long links between them.
    Dci(Dci) = "dci",
    /// Pods of two tiers, and cores between them.
    Pods(Pods) = "pods",
    /// The same without buffers in the pods: schedulers grant every transmission (Zeropod).
    Bufferless(Pods) = "zeropod",
    /// A topology file of the HPCC simulator and its descendants.
    Hpcc(Hpcc) = "hpcc",
    /// A file that describes the network for another program.
    File(File) = "file",
    /// A list of nodes and links.
    Custom(Custom) = "custom",
}
}

impl TopologySpec {
    /// Whether its switches hold no packets.
    pub fn is_bufferless(&self) -> bool {
        matches!(self, Self::Bufferless(_))
    }

    /// The file that the topology is read from, where it is not written out.
    pub fn file(&self) -> Option<&str> {
        match self {
            TopologySpec::Hpcc(spec) => Some(&spec.file),
            TopologySpec::File(spec) => Some(&spec.file),
            _ => None,
        }
    }

    /// Builds the topology. `text` is the content of [`Self::file`]; without a file it is not used.
    /// Refuses more than [`MAX_HOSTS`] or [`MAX_PORTS`] before anything is allocated.
    pub fn build(&self, text: &str) -> Result<Topology, SpecError> {
        match self {
            TopologySpec::Ndc(spec) => spec.build(),
            TopologySpec::LeafSpine(spec) => spec.build(),
            TopologySpec::FatTree(spec) => spec.build(),
            TopologySpec::Dumbbell(spec) => spec.build(),
            TopologySpec::Line(spec) => spec.build(),
            TopologySpec::Ring(spec) => spec.build(),
            TopologySpec::RailOnly(spec) => spec.build(),
            TopologySpec::RailOptimized(spec) => spec.build(),
            TopologySpec::FullMesh(spec) => spec.build(),
            TopologySpec::Torus2d(spec) => spec.build(),
            TopologySpec::Dragonfly(spec) => spec.build(),
            TopologySpec::Dci(spec) => spec.build(),
            TopologySpec::Pods(spec) | TopologySpec::Bufferless(spec) => spec.build(),
            TopologySpec::Hpcc(spec) => spec.build(text),
            TopologySpec::File(spec) => spec.read(text).map(|imported| imported.topology),
            TopologySpec::Custom(spec) => spec.build(),
        }
    }
}

fn at_least(key: &str, value: u32, least: u32) -> Result<(), SpecError> {
    if value >= least {
        return Ok(());
    }
    let help = format!("write a whole number, {least} or more; a network has at most {MAX_HOSTS} hosts");
    Err(SpecError::new(key, format!("{value} is too small"), help))
}

/// The size of a topology, computed before it is built. It saturates: a number beyond 64 bits is too large
/// anyway.
struct Estimate {
    key: &'static str,
    hosts: u64,
    /// Links, each with two ports.
    links: u64,
    /// Ports of the device that has the most.
    radix: u64,
}

impl Estimate {
    fn admit(&self) -> Result<(), SpecError> {
        let ports = self.links.saturating_mul(2);
        for (what, count, most) in [
            ("hosts", self.hosts, MAX_HOSTS),
            ("ports", ports, MAX_PORTS),
            ("ports on one device", self.radix, MAX_RADIX),
        ] {
            if count > most {
                let count = if count == u64::MAX { format!("more than {count}") } else { count.to_string() };
                let message = format!("this network is too large: it would have {count} {what}");
                let help = format!("the maximum is {most} {what}: choose a smaller `{}`", self.key);
                return Err(SpecError::new(self.key, message, help));
            }
        }
        Ok(())
    }
}

/// A topology of `count` hosts without links.
fn with_hosts(count: u32) -> Topology {
    let mut topology = Topology::default();
    for i in 0..count {
        topology.add(format!("H{i}"), NodeKind::Host);
    }
    topology
}

/// Adds `count` switches of one tier; returns the first.
fn add_tier(topology: &mut Topology, tier: u32, count: u32) -> NodeId {
    let first = topology.nodes.len() as NodeId;
    for i in 0..count {
        topology.add(format!("S{tier}.{i}"), NodeKind::Switch);
    }
    first
}
