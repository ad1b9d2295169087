//! `--pcap`: the test reads the file's blocks back, parses the bytes, compares the counts with the tables of
//! the same run, and checks the errors. With `tests/read_capture.py`, tshark reads other captures.

use crate::common::{command, root, scratch};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::{Row, RowAccessor};
use xoff_schemes::scheduling::zeropod::frame::{Frame, Holds};
use xoff_wire::pfc::PfcFrame;
use xoff_wire::roce::{Operation, RocePacket, Trimmed};

/// Runs a scenario of `tests/captures` in `dir`.
fn xoff(dir: &Path, scenario: &str, args: &str) -> Output {
    let scenario = root().join("tests/captures").join(scenario);
    command(dir, &["run", scenario.to_str().unwrap()]).args(args.split_whitespace()).output().unwrap()
}

/// Standard error in one line, without the frame that error reports are drawn in.
fn err(output: &Output) -> String {
    let text = String::from_utf8(output.stderr.clone()).unwrap();
    let words = text.split_whitespace().filter(|w| !["│", "×", "╰─▶", "|"].contains(w));
    words.collect::<Vec<_>>().join(" ")
}

/// A packet of a file.
struct Captured {
    interface: usize,
    time: u64,
    flags: u32,
    length: u32,
    bytes: Vec<u8>,
}

const INBOUND: u32 = 1;

/// Names of the interfaces, their snap length, and the packets.
fn read(file: &Path) -> (Vec<String>, u32, Vec<Captured>) {
    let data = fs::read(file).unwrap();
    let word = |at: usize| u32::from_le_bytes(data[at..at + 4].try_into().unwrap());
    let half = |at: usize| u16::from_le_bytes([data[at], data[at + 1]]);
    let option = |mut at: usize, wanted: u16| loop {
        let (code, length) = (half(at), usize::from(half(at + 2)));
        assert_ne!(code, 0, "no option {wanted}");
        if code == wanted {
            break &data[at + 4..at + 4 + length];
        }
        at += 4 + length.next_multiple_of(4);
    };
    let (mut names, mut snap, mut packets, mut at) = (Vec::new(), 0, Vec::new(), 0);
    while at < data.len() {
        let length = word(at + 4) as usize;
        assert_eq!(word(at + length - 4) as usize, length, "a block tells its length twice");
        match word(at) {
            0x0a0d_0d0a => assert_eq!((at, word(8)), (0, 0x1a2b_3c4d)),
            1 => {
                assert_eq!((half(at + 8), option(at + 16, 9)), (1, &[9][..]), "Ethernet, nanoseconds");
                names.push(String::from_utf8(option(at + 16, 2).to_vec()).unwrap());
                snap = word(at + 12);
            }
            4 => assert!(data[at..at + length].windows(3).any(|w| w == b"H0\0"), "hosts have names"),
            6 => {
                let stored = word(at + 20) as usize;
                let behind = at + 28 + stored.next_multiple_of(4);
                packets.push(Captured {
                    interface: word(at + 8) as usize,
                    time: u64::from(word(at + 12)) << 32 | u64::from(word(at + 16)),
                    flags: u32::from_le_bytes(option(behind, 2).try_into().unwrap()),
                    length: word(at + 24),
                    bytes: data[at + 28..at + 28 + stored].to_vec(),
                });
            }
            other => panic!("block {other:#x}"),
        }
        at += length;
    }
    (names, snap, packets)
}

/// A column of `ports.parquet`, by the port's name.
fn by_port<T>(run: &Path, name: &str, value: impl Fn(&Row, usize) -> T) -> BTreeMap<String, T> {
    let file = fs::File::open(run.join("ports.parquet")).unwrap();
    let reader = SerializedFileReader::new(file).unwrap();
    let rows = reader.get_row_iter(None).unwrap().map(Result::unwrap);
    rows.map(|row| (row.get_string(at(&row, "port")).unwrap().clone(), value(&row, at(&row, name)))).collect()
}

/// Where a row has a column.
fn at(row: &Row, name: &str) -> usize {
    row.get_column_iter().position(|(n, _)| n == name).expect("a column")
}

/// A column of counts.
fn column(run: &Path, name: &str) -> BTreeMap<String, u64> {
    by_port(run, name, |row, at| row.get_long(at).unwrap() as u64)
}

#[test]
fn a_capture_agrees_with_the_tables() {
    let dir = scratch("counts");
    let done = xoff(&dir, "incast.toml", "--quiet --out run --pcap all");
    assert_eq!(done.status.code(), Some(0), "{}", err(&done));
    let run = dir.join("run");
    let (names, snap, packets) = read(&run.join("capture.pcapng"));
    assert_eq!((names.len(), snap, names[0].as_str()), (20, 0, "H0:0"));
    assert!(packets.is_sorted_by_key(|p| p.time));
    let (mut sent, mut data, mut frames, mut resumes) = (vec![0; 20], vec![0; 20], vec![0; 20], vec![0; 20]);
    let mut payload = 0;
    for packet in &packets {
        assert_eq!(packet.length as usize, packet.bytes.len(), "nothing is cut off");
        let roce = RocePacket::parse(&packet.bytes);
        let pfc = PfcFrame::parse(&packet.bytes);
        assert!(roce.is_ok() != pfc.is_ok(), "{roce:?} {pfc:?}");
        let write = roce.is_ok_and(|r| !matches!(r.operation, Operation::Ack { .. }));
        if packet.flags == INBOUND {
            // Hosts have all they were sent.
            let at_host = names[packet.interface].starts_with('H');
            payload += roce.map_or(0, |r| if at_host { r.payload } else { 0 });
            continue;
        }
        sent[packet.interface] += 1;
        data[packet.interface] += u64::from(write);
        if let Ok(frame) = pfc {
            let pauses = frame.entries().any(|(_, quanta)| quanta > 0);
            if pauses { frames[packet.interface] += 1 } else { resumes[packet.interface] += 1 }
        }
    }
    assert_eq!(payload, 6 * 50_001 + 1 + 1_000 + 1_002);
    assert!(frames.iter().sum::<u64>() > 0 && resumes.iter().sum::<u64>() > 0);
    for (name, counted) in
        [("packets", sent), ("data_packets", data), ("pause_frames", frames), ("resume_frames", resumes)]
    {
        assert_eq!(
            names.iter().cloned().zip(counted).collect::<BTreeMap<_, _>>(),
            column(&run, name),
            "{name}"
        );
    }
    let manifest: serde_json::Value =
        serde_json::from_slice(&fs::read(run.join("manifest.json")).unwrap()).unwrap();
    let listed =
        manifest["files"].as_array().unwrap().iter().find(|f| f["name"] == "capture.pcapng").unwrap();
    assert_eq!(listed["rows"], packets.len());
    assert_eq!(listed["bytes"], fs::metadata(run.join("capture.pcapng")).unwrap().len());
}

/// Trimmed packets, NACKs and ACKs with bitmaps of RUD. The bitmaps name packets that arrive, and each NACK a packet
/// that was trimmed before.
#[test]
fn bitmaps_of_acks_are_in_a_capture() {
    let dir = scratch("bitmaps");
    let keys = "--set flow_control.scheme=trimming --set transport.kind=rud --set transport.ack_every=4 \
                --set transport.congestion_control=nscc --set priority=[{id=3,egress_limit=\"8496B\"}]";
    let done = xoff(&dir, "incast.toml", &format!("--quiet --out run --pcap all {keys}"));
    assert_eq!(done.status.code(), Some(0), "{}", err(&done));
    let (names, _, packets) = read(&dir.join("run/capture.pcapng"));
    let (mut trimmed, mut arrived) = (BTreeMap::new(), BTreeSet::new());
    let (mut naks, mut bitmaps, mut named, mut codes) = (0, 0, 0, [0; 2]);
    for packet in packets.iter().filter(|p| names[p.interface].starts_with('H')) {
        let Ok(roce) = RocePacket::parse(&packet.bytes) else {
            let Trimmed { headers, queue_pair: pair, psn, .. } =
                RocePacket::parse_trimmed(&packet.bytes).expect("trimmed");
            // The last bit of the DSCP: the last switch has trimmed it.
            trimmed.insert((pair, psn), 1 + u32::from(headers.dscp & 1));
            continue;
        };
        let pair = roce.queue_pair;
        match roce.operation {
            Operation::Nak { msn } => {
                assert_eq!(trimmed[&(pair, roce.psn)], msn);
                codes[msn as usize - 1] += 1;
                naks += u32::from(packet.flags == INBOUND);
            }
            Operation::Sack { first, bits } => {
                assert_eq!(packet.length as usize, packet.bytes.len());
                assert!(
                    first > roce.psn + 1 || roce.psn == 0xff_ffff && first > 0,
                    "after the expected packet"
                );
                for i in (0..64).filter(|i| bits >> i & 1 == 1) {
                    assert!(arrived.contains(&(pair, first + i)), "{pair} {first} {i}");
                    named += 1;
                }
                bitmaps += 1;
            }
            Operation::Ack { .. } => {}
            _ if packet.flags == INBOUND => drop(arrived.insert((pair, roce.psn))),
            _ => {}
        }
    }
    let summary: serde_json::Value =
        serde_json::from_slice(&fs::read(dir.join("run/summary.json")).unwrap()).unwrap();
    assert_eq!(summary["trimming"]["trimmed_packets"], naks);
    assert!(naks > 10 && bitmaps > 10 && named > bitmaps, "{naks} {bitmaps} {named}");
    assert!(codes[0] > 0 && codes[1] > 0, "{codes:?}");
}

/// Credit of RCCC: of each flow it grows, and data needs it after the first window; with NSCC beside it, too.
#[test]
fn credit_is_in_a_capture() {
    for (control, in_acks) in [("rccc", false), ("rccc", true), ("nscc+rccc", false)] {
        needs_credit(control, in_acks);
    }
}

fn needs_credit(control: &str, in_acks: bool) {
    let dir = scratch("credit");
    let keys = format!(
        "--set flow_control.scheme=trimming --set transport.kind=rud --set transport.window=20kB \
         --set transport.congestion_control={control} --set rccc.in_acks={in_acks} --set priority=[{{id=3,egress_limit=\"8496B\"}}]"
    );
    let done = xoff(&dir, "incast.toml", &format!("--quiet --out run --pcap all {keys}"));
    assert_eq!(done.status.code(), Some(0), "{}", err(&done));
    let (names, _, packets) = read(&dir.join("run/capture.pcapng"));
    // By queue pair, of senders: bytes that were sent, and credit that has come.
    let (mut sent, mut credit) = (BTreeMap::<u32, u64>::new(), BTreeMap::<u32, u32>::new());
    let (mut grants, mut credited) = (0, 0);
    // Credit in the frames that receivers have sent.
    let mut granted = BTreeMap::<u32, u32>::new();
    for packet in packets.iter().filter(|p| names[p.interface].starts_with('H')) {
        let Ok(roce) = RocePacket::parse(&packet.bytes) else { continue };
        match roce.operation {
            Operation::Credit { number } if packet.flags == INBOUND => {
                let last = credit.insert(roce.queue_pair, number).unwrap_or(0);
                assert!(number >= last, "{last} {number}");
                grants += 1;
            }
            Operation::Credit { number } => {
                granted.insert(roce.queue_pair, number);
            }
            Operation::CreditedAck { number, .. } if packet.flags != INBOUND => {
                assert_eq!(number, granted.get(&roce.queue_pair).copied().unwrap_or(0));
                credited += 1;
            }
            Operation::WriteFirst(_)
            | Operation::WriteMiddle
            | Operation::WriteLast
            | Operation::WriteOnly(_)
                if packet.flags != INBOUND =>
            {
                let before = *sent.entry(roce.queue_pair).and_modify(|sent| *sent += 1_062).or_insert(1_062);
                let granted = u64::from(credit.get(&roce.queue_pair).copied().unwrap_or(0)) * 256;
                // The first window, credit, and less than a packet beyond it.
                assert!(before < 21 * 1_062 + granted + 1_062, "{before} {granted}");
            }
            _ => {}
        }
    }
    assert!(grants > 20 && credit.len() >= 6, "{grants} {}", credit.len());
    assert_eq!(credited > 100, in_acks, "{credited}");
}

/// Trimmed packets, NACKs and PULLs, each as often as the results say.
#[test]
fn trimmed_packets_and_pulls_are_in_a_capture() {
    let dir = scratch("trimmed");
    let keys = "--set flow_control.scheme=trimming --set transport.kind=ndp \
                --set priority=[{id=3,egress_limit=\"8496B\"}] --set ndp.initial_window=20kB";
    let done = xoff(&dir, "incast.toml", &format!("--quiet --out run --pcap all {keys}"));
    assert_eq!(done.status.code(), Some(0), "{}", err(&done));
    let (names, _, packets) = read(&dir.join("run/capture.pcapng"));
    let at_host = |p: &&Captured| p.flags == INBOUND && names[p.interface].starts_with('H');
    let (mut headers, mut naks, mut pulls, mut acks, mut writes) = (0, 0, BTreeMap::new(), 0, 0);
    for packet in packets.iter().filter(at_host) {
        let Ok(roce) = RocePacket::parse(&packet.bytes) else {
            let Trimmed { headers: headers_of, psn, .. } =
                RocePacket::parse_trimmed(&packet.bytes).expect("trimmed");
            assert_eq!((packet.length, headers_of.dscp & !1), (60, 7 << 3));
            assert!(psn < 51);
            headers += 1;
            continue;
        };
        match roce.operation {
            Operation::Nak { .. } => naks += 1,
            Operation::Ack { .. } => acks += 1,
            Operation::Pull { count } => {
                // Of each flow one after the other.
                let last: u32 = pulls.insert(roce.queue_pair, count).unwrap_or(0);
                assert_eq!(count, last + 1);
            }
            _ => writes += 1,
        }
    }
    let summary: serde_json::Value =
        serde_json::from_slice(&fs::read(dir.join("run/summary.json")).unwrap()).unwrap();
    assert_eq!(summary["trimming"]["trimmed_packets"], headers);
    assert_eq!(summary["trimming"]["lost_headers"], 0);
    assert_eq!(summary["counters"]["delivered"], writes);
    // A receiver also requests the second packet of two, as long as it does not know that it is the last.
    assert_eq!((naks, acks, pulls.len()), (headers, 6 * 51 + 1 + 1 + 2, 6 + 1));
    assert!(headers > 30);
}

#[test]
fn a_capture_changes_nothing_and_threads_do_not_change_it() {
    let dir = scratch("same");
    for (out, args) in [("none", ""), ("one", "--pcap S0.0,H3:0"), ("two", "--pcap S0.0,H3:0 --threads 2")] {
        let done = xoff(&dir, "lossy.toml", &format!("--quiet --out {out} {args}"));
        assert_eq!(done.status.code(), Some(0), "{}", err(&done));
    }
    let file = |run: &str, name: &str| fs::read(dir.join(run).join(name)).unwrap();
    assert!(file("one", "capture.pcapng").len() > 100_000);
    for name in ["capture.pcapng", "flows.parquet", "ports.parquet", "summary.json"] {
        assert!(file("one", name) == file("two", name), "{name}");
        assert!(name == "capture.pcapng" || file("none", name) == file("one", name), "{name}");
    }
    for (out, args) in [("pods", ""), ("tapped", "--pcap switches")] {
        let done = xoff(&dir, "pods.toml", &format!("--quiet --out {out} {args}"));
        assert_eq!(done.status.code(), Some(0), "{}", err(&done));
    }
    for name in ["flows.parquet", "ports.parquet", "series.parquet", "summary.json"] {
        assert!(file("pods", name) == file("tapped", name), "{name}");
    }
    // A run without one takes its place, and nothing of it stays.
    let done = xoff(&dir, "lossy.toml", "--quiet --overwrite --out one");
    assert_eq!(done.status.code(), Some(0), "{}", err(&done));
    assert!(!dir.join("one/capture.pcapng").exists());
    assert_eq!(fs::read_dir(&dir).unwrap().count(), 5, "no temporary file is left");
}

#[test]
fn a_snap_length_cuts_packets_off_and_keeps_their_lengths() {
    let dir = scratch("snap");
    let done = xoff(&dir, "incast.toml", "--out run --pcap H0:0 --pcap-snaplen 64");
    assert_eq!(done.status.code(), Some(0), "{}", err(&done));
    assert!(err(&done).contains("at 1 port"), "{}", err(&done));
    let (names, snap, packets) = read(&dir.join("run/capture.pcapng"));
    assert_eq!((names, snap), (vec!["H0:0".to_string()], 64));
    assert!(packets.iter().all(|p| p.bytes.len() == p.length.min(64) as usize));
    assert!(packets.iter().any(|p| p.length > 1_000) && packets.iter().any(|p| p.length < 64));
}

#[test]
fn invalid_captures_are_refused() {
    let dir = scratch("refused");
    for (args, status, said) in [
        ("--pcap S0.9:0", 1, "no node is called `S0.9` help: did you mean `S0.0`?"),
        ("--pcap S0.0:9", 1, "S0.0 has no port `9` help: its ports are 0 to 4"),
        ("--pcap S0.0:0,leaf", 1, "--pcap: no node is called `leaf` help: the hosts are H0 to H7"),
        (r#"--pcap H0:1 --set slow_receiver=[{host="H0",rate="9Gbps"}]"#, 1, "inside the slow receiver"),
        (
            "--pcap all --set transport.mtu=65535B",
            1,
            "transport.mtu = 65535B does not fit into an IPv4 packet help: lower transport.mtu to 65472B or less",
        ),
        ("--pcap all --no-out", 2, "cannot be used with"),
        ("--pcap all --seeds 1..2", 2, "cannot be used with"),
        ("--pcap-snaplen 100", 2, "--pcap <PORT,...>"),
        ("--pcap all --pcap-snaplen 13", 2, "expected a whole number from 14 to 65535"),
    ] {
        let done = xoff(&dir, "incast.toml", args);
        assert_eq!(done.status.code(), Some(status), "{args}: {}", err(&done));
        assert!(err(&done).contains(said), "{args}: {}", err(&done));
        assert!(done.stdout.is_empty());
    }
    assert_eq!(fs::read_dir(&dir).unwrap().count(), 0);
}

/// Pods in captures: two scheduled cells never meet on a wire. Each cell crosses the next hop, unless a link
/// is down or something was on its path. Every byte of every flow arrives, and the tables have the same
/// counts.
#[test]
fn cells_of_pods_cross_one_after_the_other() {
    // In nanoseconds, rounded down as times are: a cell is 44.16 long, an RTS or SCHD 3.2.
    const HOP: u64 = 300;
    let dir = scratch("pods");
    let done = xoff(&dir, "pods.toml", "--quiet --out run --pcap all");
    assert_eq!(done.status.code(), Some(0), "{}", err(&done));
    let run = dir.join("run");
    let (names, _, packets) = read(&run.join("capture.pcapng"));
    assert!(packets.is_sorted_by_key(|p| p.time));
    let peers = by_port(&run, "peer", |row, at| row.get_string(at).unwrap().clone());
    let long = |frame: &Frame| if matches!(frame, Frame::Cell(_)) { 44 } else { 3 };
    // Cells in flight, by destination; the time for which each wire is busy; the bytes of flows that arrived.
    let mut flying: BTreeMap<(String, u64), Vec<Frame>> = BTreeMap::new();
    let mut taken = vec![0; names.len()];
    let mut arrived: BTreeMap<u32, Vec<(u64, u64)>> = BTreeMap::new();
    let (mut sent, mut cells) = (vec![0; names.len()], vec![0; names.len()]);
    let (mut optimistic, mut cut, mut requests, mut grants, mut acks) = (0, 0, 0, 0, 0);
    for packet in &packets {
        let frame = Frame::parse(&packet.bytes).unwrap();
        let name = &names[packet.interface];
        let unasked = matches!(&frame, Frame::Cell(cell) if cell.optimistic);
        if packet.flags & INBOUND == INBOUND {
            let there = [packet.time, packet.time - 1].into_iter().find_map(|time| {
                let all = flying.get_mut(&(name.clone(), time))?;
                let at = all.iter().position(|sent| *sent == frame)?;
                Some(all.swap_remove(at))
            });
            let damaged = packet.flags >> 24 & 1 == 1;
            // A cell that was cut ends earlier than it would have.
            assert!(there.is_some() || (unasked && damaged), "{name}: {frame:?} was not sent");
            cut += u32::from(damaged);
            if let (Frame::Cell(cell), true, false) = (frame, name.starts_with('H'), damaged) {
                assert_eq!(*name, format!("H{}:0", cell.destination));
                for part in cell.parts {
                    match part.holds {
                        Holds::Data(at) => {
                            arrived.entry(part.flow).or_default().push((at, at + u64::from(part.bytes)));
                        }
                        Holds::Ack(_) => acks += 1,
                    }
                }
            }
            continue;
        }
        sent[packet.interface] += 1;
        match &frame {
            Frame::Cell(_) => cells[packet.interface] += 1,
            Frame::Rts(_) => requests += 1,
            Frame::Schd(_) => grants += 1,
        }
        let end = packet.time + long(&frame);
        if unasked {
            optimistic += 1;
        } else {
            assert!(taken[packet.interface] <= packet.time, "{name}: {frame:?} meets what was there");
            taken[packet.interface] = end;
        }
        flying.entry((peers[name].clone(), end + HOP)).or_default().push(frame);
    }
    assert!(optimistic > 0 && cut > 0 && requests > 0 && grants > 0 && acks > 0);
    let column = |name: &str| column(&run, name);
    let (counted, data) = (column("packets"), column("data_packets"));
    for (i, name) in names.iter().enumerate() {
        assert_eq!(cells[i], data[name], "{name}");
        // RTS and SCHD that say nothing are counted, and not captured.
        assert!(sent[i] <= counted[name], "{name}");
    }
    let flows = SerializedFileReader::new(fs::File::open(run.join("flows.parquet")).unwrap()).unwrap();
    for row in flows.get_row_iter(None).unwrap().map(Result::unwrap) {
        let count = |name: &str| row.get_long(at(&row, name)).unwrap() as u64;
        let (flow, size) = (count("id") as u32, count("size"));
        let mut parts = arrived.remove(&flow).unwrap_or_default();
        parts.sort_unstable();
        let there =
            parts.iter().fold(0, |there, &(from, to)| if from <= there { there.max(to) } else { there });
        assert_eq!(there, size, "flow {flow}");
    }
}

/// A limit on the sizes of files replaces a full disk.
#[cfg(unix)]
#[test]
fn a_full_disk_ends_the_run_and_leaves_nothing() {
    let dir = scratch("full");
    let (program, scenario) = (env!("CARGO_BIN_EXE_xoff"), root().join("tests/captures/incast.toml"));
    let run = format!("{program} run {} --quiet --out run --pcap all", scenario.display());
    let script = format!("trap '' XFSZ; ulimit -f 1000; exec {run}");
    let done = Command::new("sh").current_dir(&dir).args(["-c", &script]).output().unwrap();
    assert_eq!(done.status.code(), Some(1), "{}", err(&done));
    assert!(err(&done).contains("capture.pcapng cannot be written"), "{}", err(&done));
    assert_eq!(fs::read_dir(&dir).unwrap().count(), 0, "nothing is left");
}
