//! Recorded traces: from bytes to runs, against closed forms and the traffic that the trace was written from.

use crate::common;
use crate::gates::check_gates;

use common::run;
use prost::Message;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{Error, Write as _};
use std::path::Path;
use xoff_net::traffic::chakra::{Attribute, Bools, Kind, Metadata, Node, Value, Values};
use xoff_net::traffic::{Pattern, Program, Training, Work};
use xoff_plan::plan::Plan;
use xoff_sim::outcome::{Outcome, Stop};

/// Picoseconds that a byte takes at 100 Gbit/s.
const BYTE: u64 = 80;
const DELAY: u64 = 1_000_000;
const US: u64 = 1_000_000;

/// A node without dependencies.
fn node(id: u64, kind: Kind, attr: &[(&str, Value)]) -> Node {
    let attr =
        attr.iter().map(|(name, value)| Attribute { name: (*name).into(), value: Some(value.clone()) });
    Node { id, name: format!("op{id}"), kind: kind as i32, attr: attr.collect(), ..Node::default() }
}

fn compute(id: u64, micros: u64) -> Node {
    Node { duration_micros: micros, ..node(id, Kind::Comp, &[("is_cpu_op", Value::Bool(false))]) }
}

fn collective(id: u64, kind: i64, size: i64) -> Node {
    node(id, Kind::CommColl, &[("comm_type", Value::Int64(kind)), ("comm_size", Value::Int64(size))])
}

fn send(id: u64, to: i32, size: i64, tag: i32) -> Node {
    let attr =
        [("comm_dst", Value::Int32(to)), ("comm_tag", Value::Int32(tag)), ("comm_size", Value::Int64(size))];
    node(id, Kind::CommSend, &attr)
}

fn receive(id: u64, from: i32, tag: i32) -> Node {
    let attr =
        [("comm_src", Value::Int32(from)), ("comm_tag", Value::Int32(tag)), ("comm_size", Value::Int64(1))];
    node(id, Kind::CommRecv, &attr)
}

/// The same node after others.
fn after(node: Node, deps: &[u64]) -> Node {
    Node { data_deps: deps.into(), ..node }
}

/// The bytes of a trace.
fn encode(nodes: &[Node]) -> Vec<u8> {
    let mut out = Metadata { version: "0.0.4".into() }.encode_length_delimited_to_vec();
    nodes.iter().for_each(|node| out.extend(node.encode_length_delimited_to_vec()));
    out
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    packed.write_all(bytes).unwrap();
    packed.finish().unwrap()
}

/// A switch with a host for each rank.
fn star(hosts: usize) -> String {
    format!(
        "[topology]\nkind = \"line\"\nswitches = 1\nhosts_per_switch = {hosts}\n\
         link = {{ rate = \"100Gbps\", delay = \"1us\" }}\n"
    )
}

fn load(text: &str, files: &BTreeMap<String, Vec<u8>>) -> Result<Plan, String> {
    let read =
        |path: &Path| files.get(path.to_str().unwrap()).cloned().ok_or_else(|| Error::other("no such file"));
    match xoff_plan::load("test.toml", text.as_bytes(), &[], &read) {
        Ok(loaded) => Ok(loaded.plan),
        Err(error) => Err(error.to_string()),
    }
}

fn files(traces: &[Vec<Node>]) -> BTreeMap<String, Vec<u8>> {
    traces.iter().enumerate().map(|(rank, nodes)| (format!("t.{rank}.et"), encode(nodes))).collect()
}

/// A plan of traces on a switch.
fn try_plan(traces: &[Vec<Node>], keys: &str) -> Result<Plan, String> {
    let text =
        format!("{}[[traffic]]\nkind = \"trace\"\nfiles = \"t.{{rank}}.et\"\n{keys}", star(traces.len()));
    load(&text, &files(traces))
}

fn plan(traces: &[Vec<Node>], keys: &str) -> Plan {
    try_plan(traces, keys).unwrap()
}

/// When the traces ended at their last host.
fn end(plan: &Plan, outcome: &Outcome) -> u64 {
    assert_eq!(outcome.stop, Stop::AllDone);
    check_gates(plan, outcome);
    let mut opened = vec![0; plan.gates.len()];
    let mut waits = xoff_plan::plan::Waits::new(&plan.gates);
    waits.begin(&plan.gates, &mut |gate, at| opened[gate as usize] = at);
    for (flow, result) in plan.flows.iter().zip(&outcome.flows) {
        if let Some(gate) = flow.opens {
            waits.count_down(&plan.gates, gate, result.delivered.unwrap(), &mut |gate, at| {
                opened[gate as usize] = at
            });
        }
    }
    plan.jobs[0].iterations.iter().flatten().map(|&gate| opened[gate as usize]).max().unwrap()
}

fn same(ranks: usize, nodes: &[Node]) -> Vec<Vec<Node>> {
    vec![nodes.to_vec(); ranks]
}

fn sent(plan: &Plan) -> u64 {
    plan.flows.iter().map(|flow| flow.size).sum()
}

/// Whatever order of computation and collective a rank has, it takes the time of the dependencies.
#[test]
fn a_collective_overlaps_a_computation_that_it_does_not_wait_for() {
    // A ring of two: two messages of 500 packets after each other.
    let size = 1_000_000;
    let (all, ring) =
        (plan(&same(2, &[collective(1, 0, size)]), ""), 2 * ((500 + 1) * 1062 * BYTE + 2 * DELAY));
    let alone = end(&all, &run(&all));
    assert!((ring..ring + ring / 15).contains(&alone), "{alone} against {ring}");
    let long = 400;
    assert!(long * US > alone);
    for dependent in [false, true] {
        let deps: &[u64] = if dependent { &[1] } else { &[] };
        let both = plan(&same(2, &[compute(1, long), after(collective(2, 0, size), deps)]), "");
        let took = end(&both, &run(&both));
        assert_eq!(took, if dependent { long * US + alone } else { long * US });
    }
    // A control dependency is one, too.
    let control = Node { ctrl_deps: vec![1], ..collective(2, 0, size) };
    let both = plan(&same(2, &[compute(1, long), control]), "");
    assert_eq!(end(&both, &run(&both)), long * US + alone);
}

/// Computations of a GPU follow each other, also without a dependency, as those of a CPU do; both overlap.
#[test]
fn a_gpu_computes_one_node_at_a_time() {
    let cpu = |id, micros| Node {
        duration_micros: micros,
        ..node(id, Kind::Comp, &[("is_cpu_op", Value::Int32(1))])
    };
    let cases: [(&[Node], u64); 5] = [
        (&[compute(1, 30), compute(2, 40)], 70),
        (&[compute(1, 30), cpu(2, 40)], 40),
        (&[cpu(1, 30), cpu(2, 40), compute(3, 50)], 70),
        // Memory is neither.
        (&[compute(1, 30), Node { duration_micros: 45, ..node(2, Kind::MemLoad, &[]) }], 45),
        // A node that is ready later comes later, whatever its id.
        (&[after(compute(1, 10), &[3]), compute(2, 20), cpu(3, 5)], 30),
    ];
    for (nodes, micros) in cases {
        // A message lets the job have a flow.
        let mut first = nodes.to_vec();
        first.push(send(90, 1, 100, 0));
        let plan = plan(&[first, vec![receive(1, 0, 0)]], "");
        assert_eq!(end(&plan, &run(&plan)), micros * US, "{nodes:?}");
    }
}

/// An order of computations by ids would let this program wait for itself: rank 0 would compute node 2 before 3.
#[test]
fn an_order_of_computations_never_blocks_a_program() {
    let first =
        vec![receive(1, 1, 7), after(compute(2, 10), &[1]), compute(3, 20), after(send(4, 1, 1000, 5), &[3])];
    let second = vec![receive(1, 0, 5), after(send(2, 0, 1000, 7), &[1])];
    let plan = plan(&[first, second], "");
    let packet = 2 * (DELAY + 1062 * BYTE);
    // The second message waits for the ACK of the first one, of 66 B.
    assert_eq!(end(&plan, &run(&plan)), 30 * US + 2 * packet + 66 * BYTE);
}

/// Bytes by their formulas: of n ranks that each have S bytes, an all-reduce sends 2(n − 1)S, an all-gather
/// n(n − 1)S, a reduce-scatter and an all-to-all (n − 1)S.
#[test]
fn collectives_send_the_bytes_of_their_formulas() {
    for n in [2u64, 3, 5, 8] {
        let size = 7 * n * 1000;
        let formulas =
            [(0, 2 * (n - 1) * size), (2, n * (n - 1) * size), (7, (n - 1) * size), (6, (n - 1) * size)];
        for (kind, bytes) in formulas {
            let plan = plan(&same(n as usize, &[collective(4, kind, size as i64)]), "");
            assert_eq!(sent(&plan), bytes, "{n} ranks, type {kind}");
        }
        // All in one trace, and twice.
        let nodes: Vec<Node> =
            (1..).zip(formulas).map(|(id, (kind, _))| collective(id, kind, size as i64)).collect();
        let plan = plan(&same(n as usize, &nodes), "steps = 2\n");
        assert_eq!(sent(&plan), 2 * formulas.iter().map(|f| f.1).sum::<u64>());
        assert_eq!(plan.jobs[0].operations.len(), 8);
        assert_eq!(plan.jobs[0].iterations.len(), 2);
        end(&plan, &run(&plan));
    }
}

/// A ring all-reduce of S bytes over n hosts at one switch takes 2(n − 1) messages of S/n.
#[test]
fn an_all_reduce_takes_the_time_of_its_ring() {
    for n in [2u64, 4, 8] {
        let size = 4_000_000;
        let plan = plan(&same(n as usize, &[collective(0, 0, size as i64)]), "");
        let chunk = ((size / n).div_ceil(1000) + 1) * 1062 * BYTE + 2 * DELAY;
        let (took, ring) = (end(&plan, &run(&plan)), 2 * (n - 1) * chunk);
        // ACKs share the links: 66 B for each packet at most.
        assert!((ring..ring + ring / 15).contains(&took), "{n}: {took} against {ring}");
    }
}

/// The trace of each rank of a program, and the file of its groups.
fn written(program: &Program) -> (Vec<Vec<Node>>, String) {
    let mut groups = String::from("{");
    for (index, group) in program.groups.iter().enumerate() {
        let comma = if index > 0 { "," } else { "" };
        write!(groups, "{comma}\n\"{}\": {:?}", index + 1, group.ranks).unwrap();
    }
    let traces = program.ranks.iter().map(|nodes| {
        let mut last = None;
        let mut out = Vec::new();
        for (id, one) in (0u64..).zip(nodes) {
            let recorded = match one.work {
                Work::Compute(time) => {
                    assert_eq!(time % US, 0, "traces have whole microseconds");
                    compute(id, time / US)
                }
                Work::Send { to, size, tag } => send(id, to as i32, size as i64, tag as i32),
                Work::Receive { from, tag } => receive(id, from as i32, tag as i32),
                Work::Collective { pattern, group, size } => {
                    let members = program.groups[group as usize].ranks.len() as u64;
                    let (kind, size) = match pattern {
                        Pattern::AllReduce => (0, size),
                        Pattern::AllGather => (2, size / members),
                        Pattern::AllToAll => (6, size),
                        Pattern::ReduceScatter => (7, size),
                    };
                    let mut node = collective(id, kind, size as i64);
                    let name = Value::Text((group + 1).to_string());
                    node.attr.push(Attribute { name: "pg_name".into(), value: Some(name) });
                    node
                }
                Work::Iteration(_) => continue,
            };
            // The programs of training steps are chains.
            assert!(one.after.len() <= 1);
            out.push(after(recorded, &last.into_iter().collect::<Vec<u64>>()));
            last = Some(id);
        }
        out
    });
    (traces.collect(), groups + "}")
}

/// A trace that was written from a training step is this training step: the same flows, at the same times.
#[test]
fn a_training_step_and_its_trace_are_one_job() {
    let training = Training {
        layers: 4,
        hidden: 100,
        sequence: 100,
        micro_batch: 1,
        micro_batches: 3,
        parameters: 8000,
        expert_parameters: 32000,
        element: 2,
        gradient: 4,
        tensor: 2,
        pipeline: 2,
        data: 4,
        expert: 2,
        experts_per_token: 2,
        scale_up: None,
        forward: 100 * US,
        backward: 200 * US,
        steps: 1,
        optimizer: 50 * US,
    };
    let (traces, groups) = written(&training.program().unwrap());
    let fabric = "[topology]\nkind = \"leaf-spine\"\nleaves = 4\nspines = 2\nhosts_per_leaf = 4\n\
         host_link = { rate = \"100Gbps\", delay = \"1us\" }\nfabric_link = { rate = \"100Gbps\", delay = \"1us\" }\n\
         [[traffic]]\nstart = \"3us\"\n";
    let table = "kind = \"training-step\"\nlayers = 4\nhidden = 100\nsequence = 100\nmicro_batches = 3\n\
         parameters = 8000\nexpert_parameters = 32000\ntensor = 2\npipeline = 2\nexpert = 2\nexperts_per_token = 2\n\
         forward = \"100us\"\noptimizer = \"50us\"\n";
    let original = common::plan(&format!("{fabric}{table}"));
    let mut all = files(&traces);
    all.insert("groups.json".into(), groups.into());
    let recorded = "kind = \"trace\"\nfiles = \"t.{rank}.et\"\ngroups = \"groups.json\"\n";
    let replayed = load(&format!("{fabric}{recorded}"), &all).unwrap();
    let flows = |plan: &Plan| -> Vec<(u32, u32, u64, u64)> {
        plan.flows.iter().map(|flow| (flow.src, flow.dst, flow.size, flow.start)).collect()
    };
    assert_eq!(flows(&original), flows(&replayed));
    let (first, second) = (run(&original), run(&replayed));
    assert_eq!(first.flows, second.flows);
    let times = |plan: &Plan, outcome: &Outcome| (outcome.end, end(plan, outcome));
    assert_eq!(times(&original, &first), times(&replayed, &second));
    let bytes = |plan: &Plan| -> Vec<(u32, u64, usize)> {
        plan.jobs[0].operations.iter().map(|o| (o.hosts, o.size, o.flows.len())).collect()
    };
    assert_eq!(bytes(&original), bytes(&replayed));
    // Compressed, and with groups that the traces themselves name, it is the same plan.
    let names = training.program().unwrap().groups;
    let listed: Vec<String> = (1..)
        .zip(&names)
        .map(|(id, group)| format!("{{\"pg_name\": \"{id}\", \"ranks\": {:?}}}", group.ranks))
        .collect();
    let values = Some(Values { values: format!("['[{}]']", listed.join(", ")) });
    let metadata = Node { inputs: values, ..node(9999, Kind::Metadata, &[]) };
    let packed = traces.iter().map(|nodes| [std::slice::from_ref(&metadata), nodes].concat());
    let packed =
        packed.enumerate().map(|(rank, nodes)| (format!("t.{rank}.et"), gzip(&encode(&nodes)))).collect();
    let named =
        load(&format!("{fabric}{}", recorded.replace("groups = \"groups.json\"\n", "")), &packed).unwrap();
    assert_eq!(flows(&named), flows(&replayed));
}

/// Steps follow each other at each rank, and a scale of computations changes nothing else.
#[test]
fn steps_follow_each_other_and_computations_scale() {
    let nodes = [compute(1, 100), after(collective(2, 0, 100_000), &[1]), after(compute(3, 50), &[2])];
    let one = plan(&same(4, &nodes), "");
    let took = end(&one, &run(&one));
    let three = plan(&same(4, &nodes), "steps = 3\n");
    assert_eq!(end(&three, &run(&three)), 3 * took);
    let scaled = plan(&same(4, &nodes), "compute_scale = 0.5\n");
    assert_eq!(end(&scaled, &run(&scaled)), took - 75 * US);
    let none = plan(&same(4, &nodes), "compute_scale = 0.0\nstart = \"1ms\"\n");
    assert_eq!(end(&none, &run(&none)), took - 150 * US + 1000 * US);
}

/// Collectives of a group follow each other in the order of ids, also if ranks come to them in another order.
#[test]
fn collectives_of_a_group_keep_the_order_of_ids() {
    // Rank 0 could begin the larger one first.
    let first = vec![compute(1, 30), after(collective(2, 0, 4000), &[1]), collective(3, 0, 8000)];
    let second = vec![collective(2, 0, 4000), collective(3, 0, 8000)];
    let plan = plan(&[first, second], "");
    let outcome = run(&plan);
    end(&plan, &outcome);
    let operations = &plan.jobs[0].operations;
    let begins =
        |index: usize| operations[index].flows.iter().map(|&f| outcome.flows[f as usize].started.unwrap());
    // A member sends its first chunk when it comes, but nobody has the first result before rank 0 came.
    assert_eq!(begins(0).min(), Some(0));
    assert!(begins(1).min() > Some(30 * US));
    let sizes: Vec<u64> = operations.iter().map(|o| o.size).collect();
    assert_eq!(sizes, [4000, 8000]);
}

/// Collectives without a pattern take their recorded time, if the scenario says so.
#[test]
fn other_collectives_can_take_their_recorded_time() {
    let broadcast = Node { duration_micros: 70, ..collective(1, 5, 1000) };
    let launch = Node {
        duration_micros: 30,
        ..node(2, Kind::CommColl, &[("is_cpu_op", Value::Bool(true)), ("comm_type", Value::Int64(0))])
    };
    let nodes = [broadcast, after(launch, &[1]), after(collective(3, 0, 8000), &[2])];
    let refused = try_plan(&same(2, &nodes), "").unwrap_err();
    assert!(refused.contains("is a collective of the type BROADCAST"), "{refused}");
    let refused = try_plan(&same(2, &nodes[1..]), "").unwrap_err();
    assert!(refused.contains("node 2 (`op2`) of `t.0.et` is a collective of a CPU"), "{refused}");
    let taken = plan(&same(2, &nodes), "other_collectives = \"recorded-time\"\n");
    assert_eq!(sent(&taken), 2 * 8000);
    let alone = plan(&same(2, &[collective(3, 0, 8000)]), "");
    assert_eq!(end(&taken, &run(&taken)), 100 * US + end(&alone, &run(&alone)));
}

/// Each fault of a trace is one error, with the file, the node and what is allowed.
#[test]
fn a_wrong_trace_is_refused_with_its_node() {
    let pair = |nodes: &[Node]| vec![nodes.to_vec(), vec![]];
    let pg = |name: &str| {
        let mut node = collective(1, 0, 10);
        node.attr.push(Attribute { name: "pg_name".into(), value: Some(Value::Text(name.into())) });
        node
    };
    let dims = |all: &[bool]| {
        let mut node = collective(1, 0, 10);
        let value = Some(Value::Bools(Bools { values: all.to_vec() }));
        node.attr.push(Attribute { name: "involved_dim".into(), value });
        node
    };
    assert!(try_plan(&same(2, &[dims(&[true, true])]), "").is_ok());
    let cases: Vec<(Vec<Vec<Node>>, &str)> = vec![
        (pair(&[compute(1, 1), compute(1, 1)]), "node 1 (`op1`) of `t.0.et` has the id of another node"),
        (
            pair(&[after(compute(1, 1), &[5])]),
            "node 1 (`op1`) of `t.0.et` waits for node 5, which does not exist",
        ),
        (
            pair(&[after(compute(1, 1), &[2]), after(compute(2, 1), &[1]), after(compute(0, 1), &[1])]),
            "waits for itself",
        ),
        (
            pair(&[receive(3, 1, 9)]),
            "node 3 (`op3`) of `t.0.et` waits for a message of tag 9 from rank 1, which never sends it",
        ),
        (
            pair(&[collective(4, 0, 10)]),
            "node 4 (`op4`) of `t.0.et` never begins: rank 1 does not come to collective 1 of all ranks",
        ),
        (
            vec![vec![collective(1, 0, 10)], vec![collective(1, 0, 11)]],
            "of `t.1.et` is all-reduce of 11 B; for another member, collective 1 of all ranks is all-reduce of 10 B",
        ),
        (
            vec![
                vec![receive(1, 1, 0), after(send(2, 1, 1, 0), &[1])],
                vec![receive(1, 0, 0), after(send(2, 0, 1, 0), &[1])],
            ],
            "waits for a message of tag 0",
        ),
        (pair(&[send(1, 2, 10, 0)]), "node 1 (`op1`) of `t.0.et` has comm_dst = 2, which is out of range"),
        (pair(&[send(1, 0, 10, 0)]), "has comm_dst = 0, which is out of range"),
        (pair(&[send(1, 1, -10, 0)]), "has -10 B"),
        (pair(&[node(1, Kind::CommSend, &[("comm_size", Value::Int64(1))])]), "has no `comm_dst`"),
        (pair(&[node(1, Kind::CommSend, &[("comm_dst", Value::Int32(1))])]), "has no `comm_size`"),
        (pair(&[node(1, Kind::CommColl, &[])]), "has no `comm_type`"),
        (pair(&[collective(1, 5, 10)]), "is a collective of the type BROADCAST"),
        (pair(&[collective(1, 77, 10)]), "has the unknown comm_type = 77"),
        (pair(&[pg("tp")]), "names the group `tp`, which is unknown"),
        (pair(&[pg("2")]), "of group pg 2, and rank 0 is not a member"),
        (pair(&[dims(&[true, false])]), "has an `involved_dim` without all dimensions"),
        (pair(&[Node { kind: 9, ..compute(1, 1) }]), "has the unknown type 9"),
        (pair(&[Node { duration_micros: u64::MAX, ..compute(1, 1) }]), "`t.0.et` computes for"),
    ];
    for (traces, expected) in cases {
        let mut all = files(&traces);
        all.insert("g.json".into(), "{\"2\": [1]}".into());
        let keys = "kind = \"trace\"\nfiles = \"t.{rank}.et\"\ngroups = \"g.json\"\n";
        let error = load(&format!("{}[[traffic]]\n{keys}", star(2)), &all).expect_err(expected);
        assert!(error.contains(expected), "expected {expected}\nfound {error}");
    }
}

/// Damage anywhere is an error, or another trace, but never a panic; a whole file that is cut is always an error.
#[test]
fn a_damaged_file_is_refused() {
    let nodes = [compute(1, 20), after(collective(2, 0, 4000), &[1])];
    let good = encode(&nodes);
    let text = format!("{}[[traffic]]\nkind = \"trace\"\nfiles = \"t.{{rank}}.et\"\n", star(2));
    let with = |bytes: Vec<u8>| {
        load(&text, &BTreeMap::from([("t.0.et".into(), bytes), ("t.1.et".into(), good.clone())]))
    };
    assert!(with(good.clone()).is_ok());
    assert!(with(gzip(&good)).is_ok());
    let ends: Vec<usize> = (0..=nodes.len()).map(|n| encode(&nodes[..n]).len()).collect();
    for cut in (0..good.len()).filter(|cut| !ends.contains(cut)) {
        let error = with(good[..cut].to_vec()).expect_err("it is cut");
        assert!(error.contains("`t.0.et` ends within a message at byte"), "{cut}: {error}");
    }
    let packed = gzip(&good);
    for cut in 2..packed.len() {
        assert!(with(packed[..cut].to_vec()).is_err());
    }
    for at in 0..good.len() {
        for bit in 0..8 {
            let mut bytes = good.clone();
            bytes[at] ^= 1 << bit;
            drop(with(bytes));
        }
    }
    for (bytes, expected) in [
        (b"{\"workload_graph\": []}".to_vec(), "`t.0.et` ends within a message at byte 0"),
        // A length of 2^63.
        (vec![0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f], "ends within a message"),
        (encode(&nodes)[ends[0]..].to_vec(), "does not begin with its metadata"),
    ] {
        let error = with(bytes).expect_err(expected);
        assert!(error.contains(expected), "{error}");
    }
}

/// As many hosts as traces, and a name for each.
#[test]
fn each_rank_has_a_file_and_each_file_a_rank() {
    let text = |hosts: usize, keys: &str| format!("{}[[traffic]]\nkind = \"trace\"\n{keys}", star(hosts));
    let all = files(&same(4, &[collective(1, 0, 4000)]));
    let keys = "files = \"t.{rank}.et\"\n";
    assert!(load(&text(4, keys), &all).is_ok());
    assert!(load(&text(5, keys), &all).unwrap_err().contains("cannot read `t.4.et`"));
    let more = load(&text(3, keys), &all).unwrap_err();
    assert!(more.contains("there are 3 hosts, but also the trace `t.3.et`"), "{more}");
    let none = load(&text(4, "files = \"t.0.et\"\n"), &all).unwrap_err();
    assert!(none.contains("does not name a file for each rank"), "{none}");
    // Rank r is the r-th host of the list.
    let turned = load(&text(8, &format!("{keys}hosts = [\"H6\", \"H2\", \"H7\", \"H3\"]\n")), &all).unwrap();
    let name = |node: u32| turned.topology.nodes[node as usize].name.as_str();
    let pairs: std::collections::BTreeSet<_> =
        turned.flows.iter().map(|f| (name(f.src), name(f.dst))).collect();
    assert_eq!(pairs, [("H6", "H2"), ("H2", "H7"), ("H7", "H3"), ("H3", "H6")].into());
}

/// Sizes and counts that no memory holds are refused before they are made.
#[test]
fn absurd_traces_are_refused() {
    let steps = try_plan(&same(2, &[collective(1, 0, 4000)]), "steps = 4_000_000_000\n").unwrap_err();
    assert!(steps.contains("flows would need"), "{steps}");
    let size = try_plan(&same(2, &[collective(1, 0, i64::MAX)]), "").unwrap_err();
    assert!(!size.is_empty());
}
