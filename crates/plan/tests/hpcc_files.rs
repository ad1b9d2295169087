//! Topologies and flows from the files of the HPCC simulator.

use crate::common::line::route;
use std::io;
use std::path::Path;
use xoff_plan::load;
use xoff_plan::plan::Hits;

/// As the HPCC simulator's files, with hosts and switches mixed.
fn hpcc_files(path: &Path) -> io::Result<Vec<u8>> {
    match path.to_str() {
        Some("topology.txt") => {
            Ok(b"4 2 3\n0 3\n1 0 100Gbps 1000ns 0\n0 3 100Gbps 5ms 0.001\n3 2 100Gbps 1000ns 0\n".to_vec())
        }
        Some("flow.txt") => Ok(b"3\n1 2 3 100 4000 2\n2 1 5 100 50 1.5\n1 2 3 100 9 9\n".to_vec()),
        _ => Err(io::Error::other("no such file")),
    }
}

const HPCC: &str = "[topology]\nkind = \"hpcc\"\nfile = \"topology.txt\"\nlong_delay = \"1ms\"\n\
                    [[traffic]]\nkind = \"flows\"\nformat = \"hpcc\"\nfile = \"flow.txt\"\n";

#[test]
fn the_files_of_the_hpcc_simulator_give_links_flows_and_priorities() {
    let text = format!("{HPCC}priority = 4\n[switch]\nbuffer = \"1GB\"\n[run]\nduration = \"3s\"\n");
    let l =
        load("test.toml", text.as_bytes(), &[], &hpcc_files).unwrap_or_else(|e| panic!("{}", e.one_line()));
    let lanes: Vec<u8> = l.plan.lanes.iter().map(|l| l.priority).collect();
    assert_eq!(lanes, [5, 3], "those of the file alone");
    let name = |node: u32| l.plan.topology.nodes[node as usize].name.as_str();
    let flows: Vec<_> =
        l.plan.flows.iter().map(|f| (name(f.src), name(f.dst), f.size, f.start, f.lane)).collect();
    assert_eq!(flows, [("H2", "H1", 50, 1_500_000_000_000, 0), ("H1", "H2", 4_000, 2_000_000_000_000, 1)]);
    assert_eq!(l.plan.flows[1].ack_lane, 1);
    assert_eq!(route(&l.plan, l.plan.flows[0].path).0, ["H2:0", "S3:0", "S0:0"]);
    assert_eq!(l.plan.topology.ports.iter().filter(|p| p.long && p.loss == 0.001).count(), 2);
    let losses: Vec<_> =
        l.plan.faults.losses.iter().map(|f| (l.plan.topology.port_name(f.port), f.hits)).collect();
    let hits = Hits::Frames(0.001);
    assert_eq!(losses, [("S0:1".to_string(), hits), ("S3:0".to_string(), hits)]);
    assert!(l.plan.faults.losses.iter().all(|f| !f.corrupts));
    // The flow at 9 s, the table's own priority, and the short timeout.
    let keys: Vec<&str> = l.warnings.iter().map(|w| w.key.as_str()).collect();
    assert_eq!(keys, ["traffic[0].priority", "traffic[0].file", "transport.rto"]);
}

/// As in the files of HPCC's repository.
#[test]
fn lines_that_no_header_announces_are_left_out_with_a_warning() {
    let longer = |path: &Path| {
        let mut text = hpcc_files(path)?;
        text.extend_from_slice(match path.to_str() {
            Some("flow.txt") => b"2 1 3 100 7 1\n1 2 3 100 7 1\n\nsrc dst\n",
            _ => b"0 2 100Gbps 1us 0\n",
        });
        Ok(text)
    };
    let text = format!("{HPCC}[switch]\nbuffer = \"1GB\"\n");
    let l = load("test.toml", text.as_bytes(), &[], &longer).unwrap_or_else(|e| panic!("{}", e.one_line()));
    let said = l.warnings.iter().map(ToString::to_string).filter(|text| text.contains("left out"));
    assert_eq!(
        said.collect::<Vec<_>>(),
        [
            "`topology.file`: the header of `topology.txt` gives 3 links: 1 further line left out, as by HPCC's simulator",
            "`traffic[0].file`: the header of `flow.txt` gives 3 flows: 2 further lines left out, as by HPCC's simulator"
        ]
    );
    assert_eq!((l.plan.flows.len(), l.plan.topology.ports.len()), (3, 6));
}
