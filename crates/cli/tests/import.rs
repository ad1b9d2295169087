//! `xoff import` from outside, and networks of files in scenarios.

use crate::common::{scratch, xoff};
use std::fs;
use std::path::Path;
use std::process::Output;

fn network(name: &str) -> String {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join(format!("../../examples/networks/{name}"))
        .display()
        .to_string()
}

fn out(output: &Output) -> String {
    assert_eq!(output.status.code(), Some(0), "{}", said(output));
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn said(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

const FLOW: &str = "[[traffic]]\nkind = \"flow\"\nsrc = \"gpu000.rack1\"\ndst = \"gpu127.rack8\"\nsize = \"1MB\"\n\
    [measure]\nports = [\"ra08-tor-a:Ethernet60\"]\ninterval = \"1us\"\n";

/// The printed scenario and the topology of kind `file` are the same network, with the same results.
#[test]
fn an_imported_network_is_that_of_the_file() {
    let dir = scratch("import-same");
    let imported = xoff(&dir, &["import", &network("clos.json")]);
    let summary = said(&imported);
    assert!(summary.contains("SONiC config_db.json, 160 links"), "{summary}");
    assert!(summary.contains("128 hosts (128 by the role in the file): gpu000.rack1"), "{summary}");
    assert!(summary.contains("160 links without a length or delay in the file: 50ns applies"), "{summary}");
    fs::write(dir.join("printed.toml"), out(&imported) + FLOW).unwrap();
    fs::copy(network("clos.json"), dir.join("clos.json")).unwrap();
    fs::write(dir.join("read.toml"), format!("[topology]\nkind = \"file\"\nfile = \"clos.json\"\n{FLOW}"))
        .unwrap();
    let [printed, read] = ["printed", "read"].map(|name| {
        let run = out(&xoff(&dir, &["run", &format!("{name}.toml"), "--quiet", "--out", name]));
        assert!(run.contains(":Ethernet"), "{run}");
        out(&xoff(&dir, &["topo", &format!("{name}.toml")]))
    });
    assert_eq!(printed, read);
    for file in ["flows.parquet", "ports.parquet"] {
        let [a, b] = ["printed", "read"].map(|name| fs::read(dir.join(name).join(file)).unwrap());
        assert_eq!(a, b, "{file}");
    }
}

#[test]
fn files_of_networks_are_not_scenarios() {
    let dir = scratch("import-usage");
    for verb in ["topo", "run", "check"] {
        let refused = xoff(&dir, &[verb, &network("sites.csv")]);
        assert_eq!(refused.status.code(), Some(1));
        let said = said(&refused);
        assert!(said.contains("is a network (CSV of links), not a scenario"), "{said}");
        assert!(said.contains("type `xoff import "), "{said}");
    }
    fs::write(dir.join("net.toml"), out(&xoff(&dir, &["import", &network("sites.csv")]))).unwrap();
    let refused = xoff(&dir, &["run", "net.toml"]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(said(&refused).contains("the table [[traffic]] is missing"), "{}", said(&refused));
    fs::write(dir.join("no.csv"), "device,port,device,port\nh1,a,s1,b\n").unwrap();
    let refused = xoff(&dir, &["import", "no.csv"]);
    assert!(said(&refused).contains("the link h1 - s1 has no rate"), "{}", said(&refused));
    assert!(out(&xoff(&dir, &["import", "no.csv", "--rate", "10Gbps"])).contains("rate = \"10Gbps\""));
    assert_eq!(xoff(&dir, &["import", "no.csv", "--format", "cvs"]).status.code(), Some(2));
    assert_eq!(xoff(&dir, &["import", "absent.csv"]).status.code(), Some(1));
    let folder = xoff(&dir, &["import", "."]);
    assert!(said(&folder).contains("type its files, such as ./*.json"), "{}", said(&folder));
}

/// Each SONiC switch has one file.
#[test]
fn several_files_are_one_network() {
    let dir = scratch("import-several");
    let all: serde_json::Value =
        serde_json::from_str(&fs::read_to_string(network("clos.json")).unwrap()).unwrap();
    let mut files = Vec::new();
    for (i, (_, config)) in all.as_object().unwrap().iter().enumerate() {
        fs::write(dir.join(format!("{i}.json")), config.to_string()).unwrap();
        files.push(format!("{i}.json"));
    }
    let mut args: Vec<&str> = vec!["import"];
    args.extend(files.iter().map(String::as_str));
    let [one, many] =
        [xoff(&dir, &["import", &network("clos.json")]), xoff(&dir, &args)].map(|done| out(&done));
    let sorted = |text: &str| {
        let mut lines: Vec<String> =
            text.lines().filter(|l| l.contains("rate =")).map(String::from).collect();
        lines.sort_unstable();
        lines
    };
    assert_eq!(sorted(&one).len(), 160);
    assert_eq!(sorted(&one), sorted(&many));

    // Files of two formats.
    fs::write(dir.join("more.csv"), "a,b,rate\nra01-tor-b,extra,100Gbps\n").unwrap();
    let both = xoff(&dir, &["import", &network("clos.json"), "more.csv"]);
    let summary = String::from_utf8(both.stderr.clone()).unwrap();
    assert!(summary.contains("SONiC config_db.json and CSV of links, 161 links"), "{summary}");
}
