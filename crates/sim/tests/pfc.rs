//! PFC, to the picosecond.

use crate::common;

use common::{plan, run};

/// H0 fills the switch's ingress, for H1 takes a packet in 8.5 ms.
fn filled(more: &str) -> String {
    format!(
        "[topology]\nkind = \"custom\"\nhosts = [\"H0\", \"H1\", \"H2\"]\nswitches = [\"X\"]\n\
         links = [{{a=\"H0\", b=\"X\", rate=\"100Gbps\", delay=\"1us\"}},\n\
         {{a=\"H1\", b=\"X\", rate=\"1Mbps\", delay=\"1us\"}},\n\
         {{a=\"H2\", b=\"X\", rate=\"100Gbps\", delay=\"1us\"}}]\n\
         [transport]\nmtu = \"1000B\"\nheader = \"62B\"\nack_every = 1000000\nrto = \"1s\"\n[run]\nduration = \"100us\"\n\
         [[traffic]]\nkind = \"flow\"\nsrc = \"H0\"\ndst = \"H1\"\nsize = \"1MB\"\n{more}"
    )
}

fn control(more: &str) -> String {
    format!("[flow_control]\nscheme = \"pfc\"\nxoff = \"50kB\"\nxon = \"10kB\"\n{more}")
}

/// The first packet leaves the buffer at once; 48 more make 50 kB. The last of
/// them arrives after 49 serialisations and the cable; the pause takes one
/// frame, the cable and the response time from then on.
const CROSSING: u64 = 49 * 84_960 + 1_000_000;

#[test]
fn a_pause_takes_effect_after_frame_cable_and_response() {
    for response in [0u64, 1, 777, 500_000] {
        let plan = plan(&filled(&control(&format!("response_time = \"{response}ps\"\n"))));
        let outcome = run(&plan);
        assert_eq!(outcome.pauses.len(), 1);
        let pause = &outcome.pauses[0];
        assert_eq!(pause.from, CROSSING + 5_120 + 1_000_000 + response);
        assert_eq!((pause.port, pause.until), (plan.hops[plan.flows[0].path as usize], None));
    }
}

/// A packet on the wire delays the control frame by its remaining time.
#[test]
fn a_pause_waits_for_the_packet_on_the_wire() {
    // Reverse packets towards H0, back to back. The first one begins when it has
    // arrived from H2: one serialisation and 1 us after its start.
    for phase in [1u64, 40_000, 84_959] {
        let begin = CROSSING - phase;
        let reverse = format!(
            "[[traffic]]\nkind = \"flow\"\nsrc = \"H2\"\ndst = \"H0\"\nsize = \"1000B\"\nstart = \"{}ps\"\n",
            begin - 84_960 - 1_000_000
        );
        let plan = plan(&filled(&(reverse + &control(""))));
        let pause = run(&plan).pauses[0];
        assert_eq!(pause.from, begin + 84_960 + 5_120 + 1_000_000, "phase {phase}");
    }
}

/// Frames of other priorities do not delay a pause: one that waits for the wire has the values of all. Here
/// the refreshes of 1 to 7 paused priorities fall due just before another one crosses its XOFF, all after the
/// same packet, and the last priority's headroom is short of its worst case by less than a frame.
#[test]
fn pauses_of_other_priorities_take_no_headroom() {
    // Refreshes of 100 quanta come every 256 ns; each flow begins 100 of them later.
    let apart = 100 * 256_000;
    for others in [0u64, 1, 2, 7] {
        let mut text = String::new();
        for priority in 0..others {
            let start = 5_000_000 + priority * apart - if priority == 0 { 84_960 } else { 0 };
            text += &format!(
                "[[traffic]]\nkind = \"flow\"\nsrc = \"H0\"\ndst = \"H1\"\nsize = \"1MB\"\nstart = \"{start}ps\"\npriority = {priority}\n"
            );
        }
        let start = 5_000_000 + others * apart + 10;
        let begin = start + 48 * 84_960 + 1_000_000 - 20;
        text += &format!(
            "[[traffic]]\nkind = \"flow\"\nsrc = \"H0\"\ndst = \"H1\"\nsize = \"1MB\"\nstart = \"{start}ps\"\npriority = {others}\n\
             [[traffic]]\nkind = \"flow\"\nsrc = \"H2\"\ndst = \"H0\"\nsize = \"1000B\"\nstart = \"{}ps\"\npriority = 0\n\
             [switch]\nbuffer = \"100MB\"\n[host]\nbuffer = \"100MB\"\n",
            begin - 84_960 - 1_000_000
        );
        // `filled` has a flow of its own; this scenario replaces its traffic.
        let fabric = filled("").split("[[traffic]]").next().unwrap_or_default().replace("100us", "300us");
        let plan = plan(&(fabric + &text + &control("quanta = 100\nresponse_time = \"33840ps\"\n")));
        // `run` asserts that nothing was lost.
        let outcome = run(&plan);
        let paused: std::collections::BTreeSet<u8> = outcome.pauses.iter().map(|p| p.lane).collect();
        assert_eq!(paused.len() as u64, others + 1);
    }
}

/// Pauses of 512 ns are repeated every 256 ns and last without a gap, also with the fewest quanta that the
/// plan allows, and after a busy wire.
#[test]
fn refreshes_keep_a_pause_standing() {
    let reverse = "[[traffic]]\nkind = \"flow\"\nsrc = \"H2\"\ndst = \"H0\"\nsize = \"10MB\"\n";
    for (quanta, traffic) in [(100u64, ""), (100, reverse), (36, reverse)] {
        let plan = plan(&filled(&(traffic.to_owned() + &control(&format!("quanta = {quanta}\n")))));
        let outcome = run(&plan);
        let nic = plan.hops[plan.flows[0].path as usize];
        let pauses: Vec<_> = outcome.pauses.iter().filter(|p| p.port == nic).collect();
        assert_eq!(pauses.len(), 1, "one pause without a gap: {pauses:?}");
        let frames = outcome.ports[plan.topology.ports[nic as usize].peer as usize].pause_frames;
        assert_eq!(frames, 1 + (100_000_000 - CROSSING) / (quanta * 5_120 / 2));
    }
}

/// A host that reads slowly pauses its switch, and the switch the sender.
#[test]
fn a_slow_host_pauses_its_switch() {
    let text = "[topology]\nkind = \"line\"\nswitches = 1\nhosts_per_switch = 2\nlink = {rate=\"100Gbps\", delay=\"1us\"}\n\
         [flow_control]\nscheme = \"pfc\"\nxoff = \"50kB\"\nxon = \"20kB\"\n[[slow_receiver]]\nhost = \"H1\"\nrate = \"10Gbps\"\n\
         [[traffic]]\nkind = \"flow\"\nsrc = \"H0\"\ndst = \"H1\"\nsize = \"3MB\"\n";
    let plan = plan(text);
    let outcome = run(&plan);
    let paused: std::collections::BTreeSet<&str> = outcome
        .pauses
        .iter()
        .map(|p| plan.topology.nodes[plan.topology.ports[p.port as usize].node as usize].name.as_str())
        .collect();
    assert_eq!(paused.into_iter().collect::<Vec<_>>(), ["H0", "S0.0"]);
    // It takes as long as the host needs to read it, and a little at both ends.
    let reading = 3_000 * 1_062 * 800;
    let took = outcome.flows[0].completed.expect("completed");
    assert!((reading..reading + 10_000_000).contains(&took), "{took}");
}

/// Two priorities of one tier share a link by their weights, two tiers do not share, and a pause of one
/// priority does not affect the other.
#[test]
fn priorities_share_by_weight_or_not_at_all() {
    let fabric = "[topology]\nkind = \"line\"\nswitches = 1\nhosts_per_switch = 3\nlink = {rate=\"100Gbps\", delay=\"1us\"}\n\
         [run]\nduration = \"2ms\"\n";
    let flows = "[[traffic]]\nkind = \"flow\"\nsrc = \"H0\"\ndst = \"H2\"\nsize = \"1GB\"\npriority = 1\n\
         [[traffic]]\nkind = \"flow\"\nsrc = \"H1\"\ndst = \"H2\"\nsize = \"1GB\"\npriority = 2\n";
    let shares = |priorities: &str| {
        let outcome = run(&plan(&(fabric.to_owned() + priorities + flows)));
        let bytes: Vec<f64> = outcome.flows.iter().map(|f| f.delivered_bytes as f64).collect();
        bytes[0] / (bytes[0] + bytes[1])
    };
    let drr = |a, b| {
        format!(
            "[[priority]]\nid = 1\ntier = 0\nweight = {a}\n[[priority]]\nid = 2\ntier = 0\nweight = {b}\n"
        )
    };
    assert!((shares(&drr(1, 1)) - 0.5).abs() < 0.01);
    assert!((shares(&drr(3, 1)) - 0.75).abs() < 0.01);
    assert!((shares(&drr(1, 4)) - 0.2).abs() < 0.01);
    // Strict: the higher priority takes all, but for the packets before its first.
    assert!(shares("") < 0.001);
}

/// RED marks nothing below K_min, everything above K_max, and in between the expected share of a constant
/// queue.
#[test]
fn red_marks_by_the_queues_length() {
    let fabric = |ecn: &str| {
        format!(
            "[topology]\nkind = \"line\"\nswitches = 1\nhosts_per_switch = 3\nlink = {{rate=\"100Gbps\", delay=\"1us\"}}\n\
             [host]\nbuffer = \"100MB\"\n[switch]\nbuffer = \"100MB\"\n[ecn]\n{ecn}\n[flow_control]\nscheme = \"pfc\"\nxoff = \"60MB\"\nxon = \"50MB\"\n\
             [[traffic]]\nkind = \"flow\"\nsrc = \"H0\"\ndst = \"H2\"\nsize = \"20MB\"\n\
             [[traffic]]\nkind = \"flow\"\nsrc = \"H1\"\ndst = \"H2\"\nsize = \"20MB\"\n"
        )
    };
    let marked = |ecn: &str| {
        let outcome = run(&plan(&fabric(ecn)));
        let at_receivers: u64 = outcome.flows.iter().map(|f| f.marked).sum();
        assert_eq!(at_receivers, outcome.ports.iter().map(|p| p.marks).sum::<u64>());
        at_receivers as f64 / 40_000.0
    };
    assert_eq!(marked("k_min = \"50MB\"\nk_max = \"60MB\"\np_max = 1.0"), 0.0);
    assert!(marked("k_min = \"0B\"\nk_max = \"1B\"\np_max = 0.0") > 0.99);
    // The queue grows by a packet every packet time, to 20,000 packets (21.2 MB):
    // the mean of a line from 0 to 0.5 at 42.5 MB over that is 0.125.
    let share = marked("k_min = \"0B\"\nk_max = \"42480kB\"\np_max = 0.5");
    assert!((share - 0.125).abs() < 0.006, "{share}");
}

/// Two priorities share a port, and each has half of its bytes. A threshold between the half and the whole marks
/// only if the bytes of the port count.
#[test]
fn red_marks_by_the_bytes_of_the_port() {
    let marked = |at: &str, of: &str| {
        let outcome = run(&plan(&format!(
            "[topology]\nkind = \"line\"\nswitches = 1\nhosts_per_switch = 3\nlink = {{rate=\"100Gbps\", delay=\"1us\"}}\n\
             [host]\nbuffer = \"100MB\"\n[switch]\nbuffer = \"100MB\"\n\
             [ecn]\nk_min = \"12MB\"\nk_max = \"12MB\"\np_max = 1.0\nat = \"{at}\"\n{of}\
             [[priority]]\nid = 3\ntier = 4\n[[priority]]\nid = 4\ntier = 4\n\
             [flow_control]\nscheme = \"pfc\"\nxoff = \"40MB\"\nxon = \"30MB\"\npriorities = [3, 4]\n\
             [[traffic]]\nkind = \"flow\"\nsrc = \"H0\"\ndst = \"H2\"\nsize = \"20MB\"\n\
             [[traffic]]\nkind = \"flow\"\nsrc = \"H1\"\ndst = \"H2\"\nsize = \"20MB\"\npriority = 4\n"
        )));
        let marks: Vec<u64> = outcome.flows.iter().map(|f| f.marked).collect();
        (marks[0].min(marks[1]), marks[0].max(marks[1]))
    };
    for at in ["enqueue", "dequeue"] {
        assert_eq!(marked(at, ""), (0, 0));
        assert_eq!(marked(at, "of = \"priority\"\n"), (0, 0));
        let (least, most) = marked(at, "of = \"port\"\n");
        assert!(least > 5_000 && most < 20_000, "{at}: {least} {most}");
    }
}
