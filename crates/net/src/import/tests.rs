use super::*;
use crate::builders::{File, Imported};
use crate::topology::{NodeKind, Topology};

fn spec() -> File {
    File::new("links.txt".into())
}

fn imported(spec: &File, text: &str) -> Imported {
    spec.read(text).unwrap_or_else(|e| panic!("{e:?}"))
}

fn read(text: &str) -> Imported {
    imported(&File { rate: Some(Bandwidth(100_000_000_000)), ..spec() }, text)
}

fn refused(text: &str) -> SpecError {
    spec().read(text).err().expect("refused")
}

/// Each link as `A:port B:port rate delay`.
fn links(topology: &Topology) -> Vec<String> {
    let ends = (0..topology.ports.len() as u32).step_by(2);
    let text = |p: u32| {
        let port = &topology.ports[p as usize];
        let (a, b) = (topology.port_name(p), topology.port_name(port.peer));
        format!("{a} {b} {} {}", Bandwidth(port.rate), Span(port.delay))
    };
    ends.map(text).collect()
}

fn names(topology: &Topology, kind: NodeKind) -> String {
    let of = topology.nodes.iter().filter(|node| node.kind == kind);
    of.map(|node| node.name.as_str()).collect::<Vec<_>>().join(" ")
}

#[test]
fn a_table_of_links_keeps_the_names_of_devices_and_ports() {
    let text = "device,port,device,port,rate,length\n\
        srv-1,mlx5_0,leaf-a,Ethernet0,100G,3m\n\
        srv-2,mlx5_0,leaf-b,Ethernet0,100 Gbit/s,10ft\n\
        # the uplinks\n\
        leaf-a,Ethernet16,spine-1,Ethernet4,400Gbps,\"20 m\"\n\
        leaf-b,Ethernet16,spine-1,Ethernet8,400GE,1.5us\n\
        spine-1,Ethernet12,,,,\n";
    let read = imported(&spec(), text);
    assert_eq!(read.formats, [Format::Csv]);
    assert_eq!(names(&read.topology, NodeKind::Host), "srv-1 srv-2");
    assert_eq!(
        links(&read.topology),
        [
            "srv-1:mlx5_0 leaf-a:Ethernet0 100Gbps 15ns",
            "srv-2:mlx5_0 leaf-b:Ethernet0 100Gbps 15240ps",
            "leaf-a:Ethernet16 spine-1:Ethernet4 400Gbps 100ns",
            "leaf-b:Ethernet16 spine-1:Ethernet8 400Gbps 1500ns",
        ]
    );
    assert_eq!(read.topology.remarks, ["1 line left out: a link needs devices at both ends"]);
    assert_eq!(read.hosts.map(|found| found.by_name), Some(2));
}

#[test]
fn what_is_read_otherwise_is_said() {
    let text = "A-End Device,Z-End Device,bw,fibre\nhost 1,leaf 1,100G,2km\n";
    let read = imported(&spec(), text);
    assert_eq!(links(&read.topology), ["host_1:0 leaf_1:0 100Gbps 50ns"]);
    assert_eq!(
        read.topology.remarks,
        [
            "columns that are not used: fibre",
            "2 names changed, because a name has only letters, digits, `.`, `_` and `-`: `host 1` is called host_1",
            "1 link without a length or delay in the file: 50ns applies (`delay`)",
        ]
    );
}

#[test]
fn names_of_columns_are_those_of_the_tools() {
    for (header, row) in [
        // SONiC's lists of links: Mbit/s.
        (
            "StartDevice,StartPort,EndDevice,EndPort,BandWidth,VlanID,VlanMode",
            "h1,Port1.1,tor1,Ethernet0,100000,,Access",
        ),
        // NetBox: its import form, and its table.
        (
            "side_a_device,side_a_type,side_a_name,side_b_device,side_b_type,side_b_name,type,length,length_unit,speed",
            "h1,dcim.interface,Port1.1,tor1,dcim.interface,Ethernet0,cat6,1000,cm,100G",
        ),
        (
            "ID,Label,Device A,Termination A,Device B,Termination B,Status,Length,Rate",
            "7,x,h1,Port1.1,tor1,Ethernet0,Connected,10 m,100Gbps",
        ),
        ("a;a_port;b;b_port;speed_gbps;length_m", "h1;Port1.1;tor1;Ethernet0;100;10"),
        (
            "source\tsource_port\ttarget\ttarget_port\trate\tdelay_ns",
            "h1\tPort1.1\ttor1\tEthernet0\t100Gbps\t50",
        ),
        (
            "local_device,local_interface,remote_device,remote_interface,capacity,distance_km",
            "h1,Port1.1,tor1,Ethernet0,100gbase-x-qsfp28,0.01",
        ),
        ("from,to,from_port,to_port,bandwidth_mbps,delay", "h1,tor1,Port1.1,Ethernet0,100000,50ns"),
    ] {
        let read = imported(&spec(), &format!("{header}\n{row}\n"));
        assert_eq!(links(&read.topology), ["h1:Port1.1 tor1:Ethernet0 100Gbps 50ns"], "{header}");
    }
}

#[test]
fn a_wrong_table_is_refused_at_its_line_and_column() {
    let at = |text: &str| {
        let e = refused(text);
        (e.line, e.column, e.message)
    };
    let table = |row: &str| format!("device,port,device,port,rate,length\nh1,e0,leaf1,e1,100G,3m\n{row}\n");
    assert_eq!(
        at(&table("h2,e0,leaf1,e2,100,3m")),
        (Some(3), Some(16), "`100` has no unit: write a rate such as 100Gbps (column `rate`)".into())
    );
    assert_eq!(
        at(&table("h2,e0,leaf1,e2,100GB/s,3m")).2,
        "`100GB/s` is in bytes per second: write bits per second, such as 100Gbps (column `rate`)"
    );
    assert_eq!(
        at(&table("h2,e0,leaf1,e2,100GB,3m")).2,
        "`100GB` is a number of bytes: write bits per second, such as 100Gbps (column `rate`)"
    );
    assert_eq!(
        at(&table("h2,\"e,0\",leaf1,e2,100G,3 parsec")),
        (Some(3), Some(24), "`3 parsec` is neither a delay nor a length: write a number with a unit, such as 20m or 100ns (column `length`)".into())
    );
    assert_eq!(at(&table("h2,e0,leaf1,e2,100G")).2, "this line has 5 fields, but the header has 6");
    assert_eq!(
        at(&table("h2,e0,leaf1,e1,100G,3m")),
        (
            Some(3),
            None,
            "port leaf1:e1 has a second link: its first one, h1:e0 - leaf1:e1, is in line 2".into()
        )
    );
    assert_eq!(at(&table("h2,e0,h2,e1,100G,3m")).2, "a link connects `h2` to itself");
    assert_eq!(at(&table("h2,e0,leaf1,e2,,3m")).2, "the link h2 - leaf1 has no rate");
    assert_eq!(
        at(&table("leaf1,e1,h1,e0,25G,3m")).2,
        "the link leaf1:e1 - h1:e0 has two rates: 25Gbps here, and 100Gbps in line 2"
    );
    assert_eq!(
        at("rack,shelf\n1,2\n").2,
        "no column has the first device of a link; the columns are rack, shelf"
    );
    assert!(at("no network at all").2.starts_with("`no network at all` begins no known format"));
    assert_eq!(at("").2, "the file is empty");
    assert_eq!(at("device,device,rate\n").2, "the file has no links");
    assert!(
        at("a,b,rate\nx,y,1G\ny,z,1G\nz,x,1G\n")
            .2
            .starts_with("none of 3 devices seems to be a host: x, y, z")
    );
    let example = refused("rack,shelf\n1,2\n").help;
    let parts: Vec<&str> = example.split('`').collect();
    let works = format!("{}\n{}\n", parts[1], parts[3]);
    let with_host = File { hosts: vec!["leaf*".into()], ..spec() };
    assert_eq!(imported(&with_host, &works).topology.ports.len(), 2, "the example of the error works");
}

#[test]
fn roles_come_from_patterns_then_the_file_then_names_then_links() {
    let text = "a,b,rate,role_a\nx1,sw1,1G,server\nx2,sw1,1G,\nsw1,sw2,1G,\nhost-7,sw2,1G,\nhost-7,sw1,1G,\n";
    let read = imported(&spec(), text);
    assert_eq!(names(&read.topology, NodeKind::Host), "x1 x2 host-7");
    assert_eq!(read.hosts, Some(roles::Found { by_pattern: 0, by_role: 1, by_name: 1, by_links: 1 }));
    let named = File { hosts: vec!["x?".into()], exclude: vec!["host*".into()], ..spec() };
    let read = imported(&named, text);
    assert_eq!(
        (names(&read.topology, NodeKind::Host), names(&read.topology, NodeKind::Switch)),
        ("x1 x2".into(), "sw1 sw2".into())
    );
    let wrong = File { hosts: vec!["y*".into()], ..spec() }.read(text).err().unwrap();
    assert_eq!((wrong.key.as_str(), wrong.message.as_str()), ("hosts[0]", "no device is called `y*`"));
    let tiers =
        roles::tiers(&imported(&spec(), "a,b,rate\nh1,leaf,1G\nleaf,spine,1G\nspine,core,1G\n").topology);
    assert_eq!(tiers, [0, 1, 2, 3]);
}

#[test]
fn patterns_have_any_text_and_any_character() {
    for (pattern, name, fits) in [
        ("srv*", "srv", true),
        ("srv*", "srv-12", true),
        ("srv*", "asrv", false),
        ("*-a", "x-b-a", true),
        ("*a*b*", "xxaybz", true),
        ("*a*b*", "xxbya", false),
        ("x?", "x1", true),
        ("x?", "x", false),
        ("", "", true),
        ("*", "", true),
        ("a", "ab", false),
        ("**********************b", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", false),
    ] {
        assert_eq!(roles::matches(pattern, name), fits, "{pattern} {name}");
    }
}

const LEAF: &str = r#"{
    "DEVICE_METADATA": {"localhost": {"hostname": "leaf-01", "type": "ToRRouter"}},
    "PORT": {"Ethernet0": {"speed": "100000", "alias": "etp1"}, "Ethernet16": {"speed": "400000"}},
    "DEVICE_NEIGHBOR": {
        "Ethernet0": {"name": "Servers0", "port": "eth0"},
        "Ethernet16": {"name": "spine-01", "port": "Ethernet4"}
    },
    "DEVICE_NEIGHBOR_METADATA": {"Servers0": {"type": "Server"}, "spine-01": {"type": "SpineRouter"}}
}"#;

#[test]
fn sonic_switches_report_their_neighbours() {
    let spine = LEAF
        .replace("leaf-01", "spine-01")
        .replace(
            "\"Ethernet16\": {\"name\": \"spine-01\", \"port\": \"Ethernet4\"}",
            "\"Ethernet4\": {\"name\": \"leaf-01\", \"port\": \"Ethernet16\"}",
        )
        .replace("\"Ethernet0\": {\"name\": \"Servers0\", \"port\": \"eth0\"},", "")
        .replace("\"ToRRouter\"", "\"SpineRouter\"");
    let expected = [
        "leaf-01:Ethernet0 Servers0:eth0 100Gbps 50ns",
        "leaf-01:Ethernet16 spine-01:Ethernet4 400Gbps 50ns",
    ];
    for files in [vec![("a.json", LEAF)], vec![("a.json", LEAF), ("b.json", spine.as_str())]] {
        let read = spec().read_all(&files).unwrap();
        assert_eq!(read.formats, [Format::Sonic]);
        assert_eq!(links(&read.topology), expected);
        assert_eq!(names(&read.topology, NodeKind::Host), "Servers0");
    }
    let both = format!("{{\"leaf-01\": {LEAF},\n\t\"spine-01\": {spine}}}");
    assert_eq!(links(&imported(&spec(), &both).topology), expected);
    // A switch without metadata has the name of its file or folder.
    let unnamed = LEAF.replace("\"hostname\": \"leaf-01\", ", "");
    for path in ["x/tor7.json", "x/tor7/config_db.json"] {
        let read = spec().read_all(&[(path, &unnamed)]).unwrap();
        assert_eq!(names(&read.topology, NodeKind::Switch), "tor7 spine-01");
    }
    let fast = LEAF.replace("\"400000\"", "\"fast\"");
    let wrong = refused(&fast);
    assert_eq!((wrong.line, wrong.column), (Some(3), Some(89)), "{wrong:?}");
    assert_eq!(refused("{\"a\": 1}").message, "this JSON file has no table DEVICE_NEIGHBOR");
    let cut = refused(&LEAF[..300]);
    assert!(cut.line.is_some_and(|line| line >= 5), "{cut:?}");
}

#[test]
fn lldp_tables_of_several_switches_are_one_network() {
    let table = |rows: &str| {
        format!(
            "Capability codes: (R) Router, (B) Bridge, (O) Other\nLocalPort    RemoteDevice    RemotePortID    Capability    RemotePortDescr\n\
             -----------  --------------  --------------  ------------  -----------------\n{rows}\
             --------------------------------------------------\nTotal entries displayed:  2\n"
        )
    };
    let leaf = table(
        "Ethernet0    srv1            eth0            O             eth0\nEthernet16   spine1          Ethernet4       BR            to leaf 1\n",
    );
    let spine = table("Ethernet4    leaf1           Ethernet16      BR\n");
    let with_rate = File { rate: Some(Bandwidth(100_000_000_000)), ..spec() };
    // SONiC's neighbours name their ports in the description, and their aliases as identifiers.
    let aliases = table(
        "Ethernet4    leaf1           etp5            BR            Ethernet16\n\
         eth0         oob             12              B             management\n",
    );
    let read = with_rate.read_all(&[("leaf1.txt", &leaf), ("spine1.txt", &aliases)]).unwrap();
    assert_eq!(read.topology.ports.len(), 4);
    assert!(
        read.topology.remarks[0].starts_with("1 line of `spine1` left out"),
        "{:?}",
        read.topology.remarks
    );
    let conflict = with_rate
        .read_all(&[("leaf1.txt", &leaf), ("spine1.txt", &spine.replace("Ethernet16", "Ethernet20"))]);
    let (file, conflict) = conflict.err().unwrap();
    assert_eq!(
        (file, conflict.message.as_str()),
        (
            1,
            "port spine1:Ethernet4 has a second link: its first one, leaf1:Ethernet16 - spine1:Ethernet4, is in line 5 of leaf1.txt"
        )
    );
    let read = with_rate.read_all(&[("leaf1.txt", &leaf), ("spine1.txt", &spine)]).unwrap();
    assert_eq!(read.formats, [Format::Lldp]);
    assert_eq!(
        links(&read.topology),
        ["leaf1:Ethernet0 srv1:eth0 100Gbps 50ns", "leaf1:Ethernet16 spine1:Ethernet4 100Gbps 50ns"]
    );
}

#[test]
fn cables_of_netbox_have_lengths_and_ports() {
    let end = |device: &str, port: &str| {
        format!(
            r#"[{{"object_type": "dcim.interface", "object": {{"device": {{"name": "{device}"}}, "name": "{port}"}}}}]"#
        )
    };
    let cable = |a: String, b: String| {
        format!(
            r#"{{"id": 1, "a_terminations": {a}, "b_terminations": {b}, "length": 2.5, "length_unit": {{"value": "m", "label": "Meters"}}}}"#
        )
    };
    let text = format!(
        "{{\"count\": 2, \"results\": [\n{},\n{}]}}",
        cable(end("srv1", "eth0"), end("leaf1", "Ethernet1/1")),
        cable(end("leaf1", "console"), "[]".into())
    );
    let read = read(&text);
    assert_eq!(read.formats, [Format::Netbox]);
    assert_eq!(links(&read.topology), ["srv1:eth0 leaf1:Ethernet1/1 100Gbps 12500ps"]);
    assert_eq!(read.topology.remarks, ["1 cable left out: a link needs a port of a device at both ends"]);
}

#[test]
fn graphs_of_graphviz_have_ports_attributes_and_groups() {
    let text = r#"graph "fabric" {
        rankdir=TB; node [shape=box]
        edge [speed="100G"];            // for all
        "srv1" [function="server"]; srv2 [function=server]
        "leaf1":"swp1" -- "srv1":"eth0" [length="3m"]
        leaf1:swp2 -- srv2:eth0
        subgraph spines { "spine-1" "spine-2" }
        leaf1 -- { "spine-1" "spine-2" } [speed="400G", delay="1us"] /* two links */
    }"#;
    let read = imported(&spec(), text);
    assert_eq!(read.formats, [Format::Dot]);
    assert_eq!(
        links(&read.topology),
        [
            "leaf1:swp1 srv1:eth0 100Gbps 15ns",
            "leaf1:swp2 srv2:eth0 100Gbps 50ns",
            "leaf1:2 spine-1:0 400Gbps 1us",
            "leaf1:3 spine-2:0 400Gbps 1us",
        ]
    );
    let directed = "digraph { h1 -> s1 [rate=10G]; s1 -> h1 [rate=10G]; h2 -> s1 [rate=10G] }";
    assert_eq!(imported(&spec(), directed).topology.ports.len(), 4);
    let wrong = refused("graph {\n  a -- b [speed 5]\n}");
    assert_eq!((wrong.line, wrong.column), (Some(2), Some(17)), "{wrong:?}");
    assert!(refused("graph { a -- b").message.contains("brace"));
    assert!(refused("graph { \"a -- b }").message.contains("quote"));
}

#[test]
fn graphml_names_nodes_by_their_labels() {
    let text = r#"<?xml version="1.0"?>
<graphml xmlns="http://graphml.graphdrawing.org/xmlns">
  <key attr.name="LinkSpeedRaw" attr.type="double" for="edge" id="d1"/>
  <key attr.name="label" attr.type="string" for="node" id="d2"/>
  <key attr.name="length" attr.type="string" for="edge" id="d3"/>
  <graph edgedefault="undirected">
    <node id="0"><data key="d2">New York</data></node>
    <node id="1"><data key="d2">host Paris</data></node>
    <node id="2"/>
    <edge source="0" target="1" sourceport="e0"><data key="d1">10000000000</data><data key="d3">80km</data></edge>
    <edge source="0" target="2"><data key="d1">10000000000</data></edge>
  </graph>
</graphml>"#;
    let read = imported(&spec(), text);
    assert_eq!(read.formats, [Format::Graphml]);
    assert_eq!(
        links(&read.topology),
        ["New_York:e0 host_Paris:0 10Gbps 400us", "New_York:1 N2:0 10Gbps 50ns"]
    );
    let wrong = refused(&text.replace("target=\"2\"", "target=\"9\""));
    assert_eq!(
        (wrong.line, wrong.column, wrong.message.as_str()),
        (Some(11), Some(5), "no node has the id `9`")
    );
    assert_eq!(refused("<graphml><graph></graphml>").line, Some(1));
}

#[test]
fn topologies_of_containerlab_have_hosts_of_kind_linux() {
    let text = "name: clos\ntopology:\n  nodes:\n    leaf1:\n      kind: nokia_srlinux\n    spine1:\n      kind: nokia_srlinux\n    client1:\n      kind: linux\n    client2: {kind: linux}\n  links:\n    - endpoints: [\"leaf1:e1-1\", \"spine1:e1-1\"]\n    - endpoints: [\"leaf1:e1-2\", \"client1:eth1\"]\n    - type: veth\n      rate: 25Gbps\n      endpoints:\n        - node: leaf1\n          interface: e1-3\n        - {node: client2, interface: eth1}\n";
    let read = read(text);
    assert_eq!(read.formats, [Format::Containerlab]);
    assert_eq!(
        links(&read.topology),
        [
            "leaf1:e1-1 spine1:e1-1 100Gbps 50ns",
            "leaf1:e1-2 client1:eth1 100Gbps 50ns",
            "leaf1:e1-3 client2:eth1 25Gbps 50ns"
        ]
    );
    let wrong = refused(&text.replace("\"leaf1:e1-2\"", "\"leaf1\""));
    assert_eq!((wrong.line, wrong.column), (Some(13), Some(19)), "{wrong:?}");
    assert!(refused("topology:\n  nodes:\n   a: {}\n  b: }").line.is_some());
}

#[test]
fn scripts_and_links_of_mininet() {
    let script = "class T(Topo):\n  def build(self):\n    a = self.addHost('h1')\n    b = self.addHost( \"h2\" )\n    s = self.addSwitch('s1')\n    self.addLink(a, s, bw=1000, delay='5us', loss=1)\n    self.addLink('h2', 's1', port1=0, port2=3, bw=1000)\n";
    let read = imported(&spec(), script);
    assert_eq!(read.formats, [Format::Mininet]);
    assert_eq!(links(&read.topology), ["h1:0 s1:0 1Gbps 5us", "h2:h2-eth0 s1:s1-eth3 1Gbps 50ns"]);
    assert_eq!(read.topology.ports[0].loss, 0.01);
    let output = "h1-eth0<->s1-eth1 (OK OK)\nh2-eth0<->s1-eth2 (OK OK)\n";
    assert_eq!(
        links(&super::tests::read(output).topology),
        ["h1:h1-eth0 s1:s1-eth1 100Gbps 50ns", "h2:h2-eth0 s1:s1-eth2 100Gbps 50ns"]
    );
    let looped = refused("for i in range(4):\n    self.addLink(hosts[i], s)\n");
    assert_eq!(
        (looped.line, looped.message.as_str()),
        (Some(2), "the ends of `self.addLink(hosts[i], s)` are not written out")
    );
}

#[test]
fn files_of_hpcc_are_read_as_such() {
    let read = imported(&spec(), "3 1 2\n2\n0 2 100Gbps 1us 0\n1 2 100Gbps 1us 0\n");
    assert_eq!(read.formats, [Format::Hpcc]);
    assert_eq!(names(&read.topology, NodeKind::Switch), "S2");
}

proptest::proptest! {
    /// Damaged files are refused, and no reader panics.
    #[test]
    fn damaged_files_are_refused(which in 0usize..7, cuts in proptest::collection::vec((0usize..2000, ".{0,4}"), 1..6)) {
        let csv = "device,port,device,port,rate,length\nh1,e0,s1,e1,100G,3m\nh2,\"e,0\",s1,e2,100G,3m\n";
        let dot = "graph { edge [speed=\"1G\"]; \"h1\":a -- s1:b [length=\"3m\"]; s1 -- { h2 h3 } }";
        let graphml = "<graphml><key id=\"d\" attr.name=\"speed\"/><graph><node id=\"h1\"/><node id=\"s1\"/>\
            <edge source=\"h1\" target=\"s1\"><data key=\"d\">1G</data></edge></graph></graphml>";
        let lab = "topology:\n  nodes:\n    h1: {kind: linux}\n  links:\n    - endpoints: [\"h1:e\", \"s1:e\"]\n";
        let mininet = "h1 = self.addHost('h1')\nself.addLink(h1, 's1', bw=10, delay='1ms', loss=1)\n";
        let lldp = "LocalPort RemoteDevice RemotePortID\n--- --- ---\nEthernet0 h1 eth0\n";
        let mut text = [csv, dot, graphml, lab, mininet, lldp, LEAF][which].to_string();
        for (at, new) in cuts {
            let at = text.floor_char_boundary(at % (text.len() + 1));
            let end = text.ceil_char_boundary((at + new.len()).min(text.len()));
            text.replace_range(at..end, &new);
        }
        let with_rate = File { rate: Some(Bandwidth(1_000_000_000)), ..spec() };
        if let Err(e) = with_rate.read(&text) {
            proptest::prop_assert!(!e.message.is_empty() && !e.help.is_empty(), "{:?}", e);
        }
        for (format, ..) in Format::ALL {
            let _ = File { format: Some(format), ..with_rate.clone() }.read(&text);
        }
    }
}

/// Cables of a directed graph are joined, and those of earlier files stay known by their ports.
#[test]
fn a_directed_graph_joins_only_its_own_links() {
    let csv = "device,port,device,port,rate\nh1,,s1,,1G\ns1,,h1,,1G\nh2,e0,s1,e2,1G\n";
    let graph = "digraph { s1 -> s2 [rate=\"1G\"]; s2 -> s1 [rate=\"1G\"]; h3 -> s2 [rate=\"1G\"] }";
    let again = "device,port,device,port,rate\ns1,e2,h2,e0,1G\n";
    let read = spec().read_all(&[("a.csv", csv), ("b.dot", graph), ("c.csv", again)]).unwrap();
    // Two parallel links of h1, and one each of the others.
    assert_eq!(read.topology.ports.len() / 2, 5);
    // An error is in the file of its link.
    let unrated = "a,b\nh9,s1\n";
    let (file, e) = spec().read_all(&[("a.csv", csv), ("b.csv", unrated)]).err().unwrap();
    assert_eq!((file, e.line, e.message.as_str()), (1, Some(2), "the link h9 - s1 has no rate"));
}
