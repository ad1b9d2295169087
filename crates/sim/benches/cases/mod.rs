//! The runs that are measured.

use xoff_plan::plan::Plan;

/// A run: its name, its scenario, and whether it lasts until every flow is complete.
pub struct Case {
    pub name: &'static str,
    scenario: String,
    whole: bool,
}

impl Case {
    /// Its plan, without samples.
    pub fn plan(&self) -> Plan {
        let files = |_: &std::path::Path| Err(std::io::Error::other("no files"));
        let mut plan =
            xoff_plan::load("bench.toml", self.scenario.as_bytes(), &[], &files).expect("it loads").plan;
        if self.whole {
            plan.end = None;
        }
        plan.measure = xoff_plan::plan::Measure::default();
        plan
    }
}

/// 160 hosts under ten leaves and four spines.
const LEAF_SPINE: &str = r#"
[topology]
kind = "leaf-spine"
leaves = 10
spines = 4
hosts_per_leaf = 16
host_link = { rate = "100Gbps", delay = "1us" }
fabric_link = { rate = "400Gbps", delay = "1us" }
"#;

/// 144 hosts that relay, between two layers of 24 switches.
const NDC: &str = r#"
[topology]
kind = "ndc"
n = 12
k = 1
link = { rate = "100Gbps", delay = "1us" }
"#;

/// A fat-tree of `k` ports per switch in which each host sends `size` to another at once.
fn fat_tree(name: &'static str, k: u32, size: &str) -> Case {
    let scenario = format!(
        "[topology]\nkind = \"fat-tree\"\nk = {k}\nlink = {{ rate = \"100Gbps\", delay = \"1us\" }}\n\
        [flow_control]\nscheme = \"pfc\"\n[[traffic]]\nkind = \"permutation\"\nsize = \"{size}\"\n"
    );
    Case { name, scenario, whole: false }
}

/// Web search at `load` of a fabric's capacity, for `time`.
fn websearch(name: &'static str, topology: &str, scheme: &str, load: f64, time: &str) -> Case {
    let scenario = format!(
        "{topology}[flow_control]\nscheme = \"{scheme}\"\n[switch]\nbuffer = \"20MB\"\n\
        [[traffic]]\nkind = \"poisson\"\nsizes = \"websearch\"\nload = {load}\n[run]\nduration = \"{time}\"\n"
    );
    Case { name, scenario, whole: false }
}

/// All cases; the traffic of web search lasts for `time`.
pub fn all(time: &str) -> Vec<Case> {
    let mut light = websearch("leaf-spine 160, websearch 0.5, PFC", LEAF_SPINE, "pfc", 0.5, time);
    light.whole = true;
    vec![
        light,
        fat_tree("fat-tree 1,024, permutation of 2 MB, PFC", 16, "2MB"),
        websearch("leaf-spine 160, websearch 0.8, PFC", LEAF_SPINE, "pfc", 0.8, time),
        websearch("the same, Pyrrha", LEAF_SPINE, "pyrrha", 0.8, time),
        websearch("the same, BFC", LEAF_SPINE, "bfc", 0.8, time),
        websearch("the same, per-flow queues", LEAF_SPINE, "per-flow-queue", 0.8, time),
        websearch("the same, Bifrost", LEAF_SPINE, "bifrost", 0.8, time),
        websearch("the same, Roundabout", LEAF_SPINE, "roundabout", 0.8, time),
        websearch("NDC 144, websearch 0.8, PFC", NDC, "pfc", 0.8, time),
        websearch("the same, PortFC", NDC, "portfc", 0.8, time),
    ]
}

/// 27,648 hosts.
#[allow(dead_code, reason = "only one of the programs measures it")]
pub fn largest() -> Case {
    fat_tree("fat-tree 27,648, permutation of 200 kB, PFC", 48, "200kB")
}

/// A pod without buffers, at 0.8 of the capacity of the hosts' links.
#[allow(dead_code, reason = "only one of the programs measures it")]
pub fn pod() -> Case {
    let scenario = r#"
[topology]
kind = "zeropod"
racks = 16
hosts_per_rack = 16
aggs = 16
link = { rate = "100Gbps", delay = "1us" }
[[traffic]]
kind = "poisson"
sizes = "websearch"
load = 0.8
load_of = "host-links"
[run]
duration = "5ms"
"#
    .to_owned();
    Case { name: "Zeropod's pod 256, websearch 0.8", scenario, whole: false }
}
