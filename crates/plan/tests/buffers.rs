//! Accounts, thresholds, headroom and lanes.

use crate::common::line::{FLOW, LINE, loaded, plan, route, set};
use xoff_net::topology::NodeKind;
use xoff_plan::plan::{Limit, Plan};
use xoff_schemes::flow_control::FlowControlParams;

#[test]
fn static_thresholds_and_the_split_of_the_buffer_add_up() {
    let plan = plan(&[
        LINE,
        "[switch]\nbuffer = \"5MB\"\n[flow_control]\nscheme = \"pfc\"\nxoff = \"6bdp\"\nxon = \"4bdp\"\n",
        FLOW,
    ]);
    // One-hop BDP: 100 Gbit/s for 1 us is 12,500 B. Headroom: both directions of the cable, a pause frame, a
    // packet at each end.
    let headroom = 25_000 + 64 + 2 * 1_062;
    for (account, port) in plan.accounts.iter().zip(&plan.topology.ports) {
        assert_eq!(account.limit, Limit::Static(75_000));
        assert_eq!((account.resume, account.reserve), (50_000, 0));
        assert_eq!(account.headroom.as_ref().unwrap().total, headroom, "{port:?}");
    }
    for (node, buffer) in plan.topology.nodes.iter().zip(&plan.buffers) {
        let total = if node.kind == NodeKind::Switch { 5_000_000 } else { 32_000_000 };
        let ports = node.ports.len() as u64;
        assert_eq!((buffer.total, buffer.shared), (total, total - ports * (headroom + 1_062)));
    }
}

#[test]
fn the_default_is_a_dynamic_threshold() {
    let plan = plan(&[LINE, FLOW]);
    let account = &plan.accounts[0];
    assert_eq!(account.limit, Limit::Dynamic { alpha_q16: 8_192, cap: u64::MAX });
    assert_eq!((account.reserve, account.resume_offset), (4_000, 3_000));
    let switch = plan.topology.find("S0.0").unwrap();
    assert_eq!(plan.buffers[switch as usize].total, 32_000_000);
    assert!(
        matches!(plan.flow_control, FlowControlParams::Pfc(p) if p.quanta == 65_535 && p.response_time == 0)
    );
}

#[test]
fn lanes_are_strict_by_default_and_share_a_tier_by_weight() {
    let flow = |p: u8| format!("{FLOW}priority = {p}\n");
    let text = [flow(1), flow(3), flow(5)].concat();
    let strict = plan(&[LINE, &text, "[transport]\nack_priority = 6\n"]);
    let order: Vec<(u8, u8)> = strict.lanes.iter().map(|l| (l.priority, l.tier)).collect();
    assert_eq!(order, [(6, 0), (5, 1), (3, 2), (1, 3)]);
    assert!(strict.flows.iter().all(|f| f.ack_lane == 0));
    let shared = plan(&[
        LINE,
        "[[priority]]\nid = 1\ntier = 4\nweight = 3\n[[priority]]\nid = 3\n",
        "[flow_control]\npriorities = [3]\n",
        &text,
    ]);
    let lanes: Vec<(u8, u8, u32, bool)> =
        shared.lanes.iter().map(|l| (l.priority, l.tier, l.quantum, l.lossless)).collect();
    assert_eq!(lanes, [(5, 0, 1_062, false), (3, 1, 1_062, true), (1, 1, 3 * 1_062, false)]);
    assert_eq!(shared.lanes[0].egress_limit, Limit::Dynamic { alpha_q16: 65_536, cap: u64::MAX });
    // Only the lossless lane has headroom.
    for account in shared.accounts.chunks(3) {
        let has: Vec<bool> = account.iter().map(|a| a.headroom.is_some()).collect();
        assert_eq!(has, [false, true, false]);
    }
}

#[test]
fn a_scheme_without_reservation_has_no_lossless_priority() {
    let l = loaded(&[
        LINE,
        FLOW,
        "[flow_control]\nscheme = \"bfc\"\n[[priority]]\nid = 3\nlossless = true\nalpha = 0.25\n",
    ]);
    let keys: Vec<&str> = l.warnings.iter().map(|w| w.key.as_str()).collect();
    assert_eq!(keys, ["priority[0].lossless"]);
    assert!(!l.plan.lanes[0].lossless);
    assert_eq!(l.plan.lanes[0].egress_limit, Limit::Dynamic { alpha_q16: 16_384, cap: u64::MAX });
}

#[test]
fn a_dci_switch_has_headroom_for_its_long_link() {
    let text = "[topology]\nkind = \"dci\"\nk = 4\nlink = { rate = \"100Gbps\", delay = \"1us\" }\n\
                long_link = { rate = \"400Gbps\", length = \"600km\" }\nlong_links = 2\n[switch]\nbuffer = \"1GB\"\n";
    let plan = plan(&[text, "[[traffic]]\nkind = \"flow\"\nsrc = \"H0\"\ndst = \"H16\"\nsize = \"1kB\"\n"]);
    for (port, account) in plan.topology.ports.iter().zip(&plan.accounts) {
        // 400 Gbit/s for 6 ms, a pause frame, a packet at each end.
        let expected = if port.long { 300_000_000 } else { 25_000 } + 64 + 2 * 1_062;
        assert_eq!(account.headroom.as_ref().unwrap().total, expected);
    }
    // Up three tiers, over both DCI switches, down again.
    assert_eq!(route(&plan, plan.flows[0].path).0.len(), 9);
}

/// Accounts charge whole blocks under CBFC, and the room that lossy priorities share is at least a
/// packet's charge.
#[test]
fn lossy_packets_fit_beside_the_buffers_of_cbfc() {
    let text = "[[traffic]]\nkind = \"permutation\"\nsize = \"1MB\"\n[flow_control]\nscheme = \"cbfc\"\n\
                [transport]\nack_priority = 5\n[[priority]]\nid = 3\nlossless = false\n";
    let plan = plan(&[LINE, text]);
    let charge = u64::from(plan.packet.largest()).next_multiple_of(plan.flow_control.traits().cell.into());
    assert!(charge > plan.packet.largest().into(), "blocks of 64 B make a difference");
    assert!(plan.buffers.iter().all(|b| b.shared >= charge), "{:?}", plan.buffers);
}

/// On slow links, default pauses are longer than 100 us: until the port can repeat them after a packet.
#[test]
fn pauses_last_until_they_can_be_repeated() {
    let loss = "[[loss]]\nlink = \"S0.0-S0.1\"\nrate = 1e-4\n";
    let pause_time = |overrides: &[(&str, &str)]| {
        let scheme = ("flow_control.scheme", "per-flow-queue");
        let l = set(&[LINE, FLOW, loss], &[&[scheme], overrides].concat());
        let FlowControlParams::PerFlowQueue(p) = &l.plan.flow_control else { panic!() };
        p.pause_time
    };
    let us = 1_000_000;
    assert_eq!(pause_time(&[]), 100 * us);
    // Twice a packet of 1,062 B and a frame of 64 B, at 0.1 Gbit/s.
    assert_eq!(pause_time(&[("topology.link.rate", "100Mbps")]), 2 * 1_126 * 80 * 1_000);
}

/// A written headroom gets no room for the retries of a link layer, and the warning says how much is missing.
#[test]
fn a_written_headroom_does_not_cover_the_retries_of_a_link_layer() {
    let links = "[link_layer]\nscheme = \"llr\"\n[[loss]]\nlink = \"S0.0-S0.1\"\nber = 1e-9\n";
    let derived = loaded(&[LINE, FLOW, links]);
    assert!(derived.warnings.is_empty(), "{:?}", derived.warnings.iter().map(|w| &w.key).collect::<Vec<_>>());
    let retries = |plan: &Plan| {
        let ports = &plan.link_layer.as_ref().unwrap().ports;
        ports.iter().flatten().map(|limits| limits.headroom).max().unwrap()
    };
    let room = |plan: &Plan| plan.accounts[0].headroom.as_ref().map_or(0, |room| room.total);
    let written = loaded(&[LINE, FLOW, links, "[flow_control]\nheadroom = \"100kB\"\n"]);
    let warning = &written.warnings[0];
    assert_eq!((warning.key.as_str(), room(&written.plan)), ("link_layer.scheme", 100_000));
    assert!(warning.message.contains(&format!("{} B", retries(&written.plan))), "{}", warning.message);
    assert!(room(&derived.plan) > retries(&derived.plan));
}
