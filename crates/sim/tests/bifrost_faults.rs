//! Bifrost and BifrostX where links fail and lose frames, where pauses could close a cycle, on every link of
//! a datacenter, and over several threads.

use crate::common;

use common::{plan, run};
use xoff_schemes::flow_control::bifrost::Report;
use xoff_sim::outcome::Stop;

/// Two sites of two hosts each and a long link; H2 reads slowly, and not at all for a while.
fn sites(scheme: &str, rest: &str) -> String {
    let mut links = String::new();
    for (host, switch) in [("H0", "M"), ("H1", "M"), ("H2", "N"), ("H3", "N")] {
        links += &format!("{{a=\"{host}\", b=\"{switch}\", rate=\"100Gbps\", delay=\"1us\"}},\n");
    }
    links += "{a=\"M\", b=\"N\", rate=\"100Gbps\", delay=\"60us\", long=true},\n";
    let mut text = format!(
        "[topology]\nkind=\"custom\"\nhosts=[\"H0\",\"H1\",\"H2\",\"H3\"]\nswitches=[\"M\",\"N\"]\nlinks=[{links}]\n\
         [transport]\nrto=\"2ms\"\n[flow_control]\nscheme=\"{scheme}\"\nslot=\"5us\"\nxoff=\"100kB\"\n"
    );
    for flow in 0..8 {
        let (src, dst) = if flow % 3 == 2 { (2 + flow % 2, flow % 2) } else { (flow % 2, 2) };
        text += &format!(
            "[[traffic]]\nkind=\"flow\"\nsrc=\"H{src}\"\ndst=\"H{dst}\"\nsize=\"{}kB\"\npriority={}\n",
            500 + 700 * flow,
            3 + flow % 2
        );
    }
    text + "[[slow_receiver]]\nhost=\"H2\"\nrate=\"70Gbps\"\nstall_from=\"200us\"\nstall_until=\"700us\"\n"
        + rest
}

/// A long link fails while its peer is stopped, and recovers: both halves begin afresh,
/// nothing is lost for want of room (`run` asserts that), and every flow ends.
#[test]
fn a_long_link_that_fails_begins_afresh() {
    for scheme in ["bifrost", "bifrostx"] {
        for (from, until) in [(100, 300), (450, 600), (690, 1_400), (1_000, 1_003)] {
            let plan = plan(&sites(
                scheme,
                &format!("[[failure]]\nlink=\"M-N\"\nat=\"{from}us\"\nuntil=\"{until}us\"\n"),
            ));
            let outcome = run(&plan);
            assert_eq!(outcome.stop, Stop::AllDone, "{scheme} {from}");
            assert!(outcome.records.get::<Report>().unwrap().0.iter().all(|g| g.tally.slots > 0));
        }
    }
}

/// Frames that are lost: Bifrost's peer goes on for a slot that F does not count, BifrostX's
/// peer stops for one. Every flow ends all the same.
#[test]
fn lost_frames_stop_no_flow_permanently() {
    for scheme in ["bifrost", "bifrostx"] {
        let loss = "[[loss]]\nlink=\"M-N\"\nrate=0.01\n";
        let plan = plan(&sites(scheme, loss));
        let outcome = xoff_sim::run(&plan, &mut |_| true);
        assert_eq!(outcome.stop, Stop::AllDone, "{scheme}");
        if scheme == "bifrostx" {
            let drops = outcome.drops.iter().filter(|d| d.lossless && d.reason.for_want_of_room());
            assert_eq!(drops.count(), 0, "what is not granted is not sent");
        }
    }
}

/// Flows that each take three of four long links of a ring deadlock under PFC with a shallow threshold at
/// once. A scheme that counts bytes in flight slows its peers before buffers are full, and continues.
#[test]
fn a_ring_that_deadlocks_under_pfc_continues() {
    for scheme in ["pfc", "bifrost", "bifrostx"] {
        let hosts: Vec<String> = (0..4).map(|i| format!("\"H{i}\"")).collect();
        let switches: Vec<String> = (0..4).map(|i| format!("\"S{i}\"")).collect();
        let mut links = String::new();
        for i in 0..4 {
            links += &format!("{{a=\"H{i}\", b=\"S{i}\", rate=\"100Gbps\", delay=\"100ns\"}},\n");
            links += &format!(
                "{{a=\"S{i}\", b=\"S{}\", rate=\"100Gbps\", delay=\"10us\", long=true}},\n",
                (i + 1) % 4
            );
        }
        let mut text = format!(
            "[topology]\nkind=\"custom\"\nhosts=[{}]\nswitches=[{}]\nlinks=[{links}]\n\
             [transport]\nack_priority=6\nrto=\"1s\"\n[run]\nduration=\"20ms\"\n\
             [flow_control]\nscheme=\"{scheme}\"\nslot=\"2us\"\nxoff=\"20kB\"\nxon=\"10kB\"\npriorities=[3]\n",
            hosts.join(", "),
            switches.join(", ")
        );
        for i in 0..4 {
            let way: Vec<String> = (0..4).map(|hop| format!("\"S{}\"", (i + hop) % 4)).collect();
            let dst = (i + 3) % 4;
            text += &format!(
                "[[traffic]]\nkind=\"flow\"\nsrc=\"H{i}\"\ndst=\"H{dst}\"\nsize=\"1GB\"\npath=[\"H{i}\", {}, \"H{dst}\"]\n",
                way.join(", ")
            );
        }
        let plan = plan(&text);
        let outcome = run(&plan);
        assert_eq!(outcome.deadlock.is_some(), scheme == "pfc", "{scheme}");
        let delivered: u64 = outcome.flows.iter().map(|f| f.delivered_bytes).sum();
        assert!(scheme == "pfc" || delivered > 100_000_000, "{scheme}: {delivered} B in 20 ms");
    }
}

/// One priority fills the buffer that two share and stops; the other one drains, and is granted the rest.
/// Both have equal rights to it.
#[test]
fn priorities_share_their_unused_bytes() {
    for leftover in ["pooled", "reserved"] {
        let text = format!(
            "[topology]\nkind=\"custom\"\nhosts=[\"A1\",\"A2\",\"B\"]\nswitches=[\"M\",\"N\"]\nlinks=[\n\
             {{a=\"A1\",b=\"M\",rate=\"100Gbps\",delay=\"1us\"}},\n{{a=\"A2\",b=\"M\",rate=\"100Gbps\",delay=\"1us\"}},\n\
             {{a=\"M\",b=\"N\",rate=\"100Gbps\",delay=\"60us\",long=true}},\n\
             {{a=\"N\",b=\"B\",rate=\"100Gbps\",delay=\"1us\"}},\n]\n\
             [flow_control]\nscheme=\"bifrostx\"\nslot=\"3us\"\nxoff=\"100kB\"\nleftover=\"{leftover}\"\n\
             [transport]\nrto=\"100ms\"\n\
             [[traffic]]\nkind=\"flow\"\nsrc=\"A1\"\ndst=\"B\"\nsize=\"700kB\"\nstart=\"100us\"\npriority=4\n\
             [[traffic]]\nkind=\"flow\"\nsrc=\"A2\"\ndst=\"B\"\nsize=\"5MB\"\nstart=\"100us\"\npriority=3\n\
             [[slow_receiver]]\nhost=\"B\"\nrate=\"20Gbps\"\nstall_from=\"100us\"\nstall_until=\"1ms\"\n"
        );
        let outcome = run(&plan(&text));
        assert!(outcome.flows.iter().all(|f| f.completed.is_some() && f.dropped == 0), "{leftover}");
    }
}

/// A host on a long link sends as it is granted by its switch, whose port is of the same kind
/// as its own and grants, while the host's does not; and again when the link has failed.
#[test]
fn hosts_are_granted_too() {
    for (scheme, failures) in [("bifrost", false), ("bifrostx", false), ("bifrost", true), ("bifrostx", true)]
    {
        let failures = match failures {
            true => "[[failure]]\nlink=\"A-M\"\nat=\"300us\"\nuntil=\"301us\"\nevery=\"20us\"\ntimes=5\n",
            false => "",
        };
        let text = format!(
            "[topology]\nkind=\"custom\"\nhosts=[\"A\",\"B\",\"C\"]\nswitches=[\"M\"]\nlinks=[\n\
             {{a=\"A\",b=\"M\",rate=\"100Gbps\",delay=\"4us\",long=true}},\n\
             {{a=\"C\",b=\"M\",rate=\"100Gbps\",delay=\"4us\",long=true}},\n\
             {{a=\"B\",b=\"M\",rate=\"100Gbps\",delay=\"4us\"}}]\n\
             [flow_control]\nscheme=\"{scheme}\"\nlinks=\"all\"\nslot=\"1us\"\nprocessing=\"900ns\"\nxoff=\"4kB\"\n\
             [transport]\nrto=\"300us\"\n\
             [[traffic]]\nkind=\"flow\"\nsrc=\"A\"\ndst=\"B\"\nsize=\"5MB\"\n\
             [[traffic]]\nkind=\"flow\"\nsrc=\"C\"\ndst=\"B\"\nsize=\"5MB\"\n\
             [[slow_receiver]]\nhost=\"B\"\nrate=\"50Gbps\"\nstall_from=\"20us\"\nstall_until=\"900us\"\n{failures}"
        );
        let outcome = run(&plan(&text));
        assert!(outcome.flows.iter().all(|f| f.completed.is_some()), "{scheme}");
    }
}

/// On every link of a leaf-spine with slots of a fraction of its microsecond (section
/// IV-C.3): an incast is held back without a loss.
#[test]
fn it_works_inside_a_datacenter() {
    for scheme in ["bifrost", "bifrostx"] {
        inside_a_datacenter(scheme);
    }
}

fn inside_a_datacenter(scheme: &str) {
    let text = format!(
        "[topology]\nkind=\"leaf-spine\"\nleaves=2\nspines=2\nhosts_per_leaf=4\n\
         host_link={{rate=\"100Gbps\", delay=\"2us\"}}\nfabric_link={{rate=\"100Gbps\", delay=\"2us\"}}\n\
         [flow_control]\nscheme=\"{scheme}\"\nlinks=\"all\"\nslot=\"500ns\"\nprocessing=\"100ns\"\nxoff=\"100kB\"\n\
         [[traffic]]\nkind=\"incast\"\nfan_in=6\nsize=\"300kB\"\nto=\"random\"\nperiod=\"100us\"\n\
         [run]\nduration=\"1ms\"\ndrain=\"2ms\"\n"
    );
    let plan = plan(&text);
    let outcome = run(&plan);
    assert!(outcome.flows.iter().all(|f| f.completed.is_some()), "{scheme}");
    let switches = plan
        .topology
        .ports
        .iter()
        .filter(|p| plan.topology.nodes[p.node as usize].kind == xoff_net::topology::NodeKind::Switch);
    assert_eq!(outcome.records.get::<Report>().unwrap().0.len(), switches.count());
    assert!(
        outcome.records.get::<Report>().unwrap().0.iter().any(|g| g.tally.whole < g.tally.slots),
        "somebody was stopped"
    );
}

#[test]
fn threads_change_nothing() {
    for scheme in ["bifrost", "bifrostx"] {
        let plan = plan(&sites(scheme, "[run]\nduration=\"3ms\"\n"));
        let one = xoff_sim::run_on(&plan, 1, &mut |_| true);
        let two = xoff_sim::run_on(&plan, 2, &mut |_| true);
        assert_eq!(one.flows, two.flows);
        assert_eq!(one.pauses, two.pauses);
        assert_eq!(one.records, two.records);
    }
}
