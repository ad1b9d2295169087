//! Chakra execution traces: small random jobs, one file for each rank.
//!
//! A job is a list of operations in one order. Each rank has the nodes of the operations that it takes part in, and
//! a node waits only for nodes of earlier operations of its rank. So every job comes to its end.

use prost::Message;
use toml::Table;
use xoff_net::traffic::chakra::{Attribute, Kind, Metadata, Node, Value, Values};

use super::place::Place;
use super::traffic::Share;
use super::{Put, Sketch};
use crate::draw::{int, texts};

/// Values of `comm_type`.
const ALL_REDUCE: i64 = 0;
const BROADCAST: i64 = 5;
const BARRIER: i64 = 9;
const KNOWN: [i64; 5] = [ALL_REDUCE, 2, 6, 7, BARRIER];

/// Sets the keys, and adds the files.
pub fn draw(sketch: &mut Sketch, place: &Place, share: &Share, t: &mut Table) {
    let most = place.hosts.len().min(6) as u64;
    let hosts = sketch.draw.few(&place.hosts, 2, most);
    let ranks = hosts.len() as u64;
    // All hosts, where there are few.
    if ranks < place.hosts.len() as u64 || sketch.draw.one_in(2) {
        t.put("hosts", texts(&hosts));
    }
    let steps = if sketch.draw.one_in(3) { sketch.draw.between(1, 3) } else { 1 };
    if steps > 1 || sketch.draw.one_in(8) {
        t.put("steps", int(steps));
    }
    sketch.maybe(t, 4, "compute_scale", |s| s.draw.real(0.0, 3.0));
    let others = sketch.draw.one_in(3);
    if others || sketch.draw.one_in(8) {
        t.put("other_collectives", if others { "recorded-time" } else { "refuse" });
    }
    // A group by name, of the file of groups or of metadata nodes.
    let members: Vec<u64> = sketch.draw.few(&(0..ranks).collect::<Vec<_>>(), 1, ranks);
    let group = Group { members, in_file: sketch.draw.one_in(2) };
    let number = sketch.files.len();
    if group.in_file {
        let name = format!("groups-{number}.json");
        sketch.files.insert(name.clone(), format!("{{\"7\": {:?}}}", group.members).into_bytes());
        t.put("groups", name);
    }
    let mut job = Job { group, others, nodes: vec![Vec::new(); ranks as usize] };
    let operations = sketch.draw.between(1, 12);
    let each = share.size(sketch, operations * ranks * ranks * steps).max(1);
    for tag in 0..operations {
        job.operation(sketch, place, tag, each);
    }
    for (rank, nodes) in job.nodes.iter().enumerate() {
        sketch.files.insert(format!("trace-{number}.{rank}.et"), job.encode(nodes));
    }
    t.put("files", format!("trace-{number}.{{rank}}.et"));
}

struct Group {
    members: Vec<u64>,
    in_file: bool,
}

struct Job {
    group: Group,
    /// Collectives without a pattern are allowed.
    others: bool,
    /// By rank.
    nodes: Vec<Vec<Node>>,
}

fn number(name: &str, value: u64) -> Attribute {
    // Generators differ in the variant.
    let value = match value % 3 {
        0 => Value::Int64(value as i64),
        1 => Value::Uint64(value),
        _ => Value::Int32(value as i32),
    };
    Attribute { name: name.into(), value: Some(value) }
}

fn is_cpu(cpu: bool) -> Attribute {
    Attribute { name: "is_cpu_op".into(), value: Some(Value::Bool(cpu)) }
}

impl Job {
    fn operation(&mut self, sketch: &mut Sketch, place: &Place, tag: u64, size: u64) {
        let ranks = self.nodes.len() as u64;
        match sketch.draw.between(0, 5) {
            0 | 1 => {
                let cpu = sketch.draw.one_in(4);
                let kind = if sketch.draw.one_in(5) { Kind::MemLoad } else { Kind::Comp };
                for rank in 0..ranks {
                    let time = sketch.draw.between(0, 1 + 5 * place.tick / 1_000_000);
                    self.add(sketch, rank, kind, time, vec![is_cpu(cpu)]);
                }
            }
            2 => {
                let pair = sketch.draw.some(&(0..ranks).collect::<Vec<_>>(), 2);
                let (from, to) = (pair[0], pair[1]);
                let sent = vec![number("comm_dst", to), number("comm_tag", tag), number("comm_size", size)];
                self.add(sketch, from, Kind::CommSend, 0, sent);
                let received =
                    vec![number("comm_src", from), number("comm_tag", tag), number("comm_size", size)];
                self.add(sketch, to, Kind::CommRecv, 0, received);
            }
            3 if self.others => {
                let attributes =
                    [is_cpu(false), number("comm_type", BROADCAST as u64), number("comm_size", size)];
                for rank in 0..ranks {
                    self.add(sketch, rank, Kind::CommColl, 3, attributes.to_vec());
                }
            }
            _ => {
                let kind = *sketch.draw.pick(&KNOWN);
                let named = sketch.draw.one_in(3);
                let members = if named { self.group.members.clone() } else { (0..ranks).collect() };
                let mut attributes = vec![is_cpu(false), number("comm_type", kind as u64)];
                if kind != BARRIER {
                    attributes.push(number("comm_size", size));
                }
                if named {
                    let name = Some(Value::Text("7".into()));
                    attributes.push(Attribute { name: "pg_name".into(), value: name });
                }
                for rank in members {
                    self.add(sketch, rank, Kind::CommColl, 9, attributes.clone());
                }
            }
        }
    }

    /// Adds a node, which waits for some of its rank.
    fn add(&mut self, sketch: &mut Sketch, rank: u64, kind: Kind, time: u64, attr: Vec<Attribute>) {
        let nodes = &mut self.nodes[rank as usize];
        let ids: Vec<u64> = nodes.iter().map(|node| node.id).collect();
        let mut deps = sketch.draw.few(&ids, 0, 2.min(ids.len() as u64));
        let ctrl_deps = if sketch.draw.one_in(3) { std::mem::take(&mut deps) } else { Vec::new() };
        nodes.push(Node {
            id: 2 * ids.len() as u64,
            name: format!("op {}", ids.len()),
            kind: kind as i32,
            ctrl_deps,
            data_deps: deps,
            duration_micros: time,
            attr,
            ..Node::default()
        });
    }

    /// The bytes of a trace.
    fn encode(&self, nodes: &[Node]) -> Vec<u8> {
        let mut bytes = Metadata { version: "0.0.4".into() }.encode_length_delimited_to_vec();
        if !self.group.in_file {
            let groups = format!("[{{\"pg_name\": \"7\", \"ranks\": {:?}}}]", self.group.members);
            let node = Node {
                id: 1,
                kind: Kind::Metadata as i32,
                inputs: Some(Values { values: format!("['{groups}']") }),
                ..Node::default()
            };
            bytes.extend(node.encode_length_delimited_to_vec());
        }
        nodes.iter().for_each(|node| bytes.extend(node.encode_length_delimited_to_vec()));
        bytes
    }
}
