//! The parameters of Bifrost and PFC at the ends of long links.

use xoff_plan::load;
use xoff_plan::plan::{Limit, Plan};
use xoff_schemes::flow_control::FlowControlParams;
use xoff_schemes::flow_control::seam::Seen;

/// Host A, switches M and N with 80 km of 100 Gbit/s between them, host B.
fn plan(flow_control: &str) -> (Plan, Vec<String>) {
    let text = format!(
        "[topology]\nkind = \"custom\"\nhosts = [\"A\", \"B\"]\nswitches = [\"M\", \"N\"]\nlinks = [\n\
         {{ a = \"A\", b = \"M\", rate = \"100Gbps\", delay = \"1us\" }},\n\
         {{ a = \"M\", b = \"N\", rate = \"100Gbps\", delay = \"80km\", long = true }},\n\
         {{ a = \"N\", b = \"B\", rate = \"100Gbps\", delay = \"1us\" }},\n]\n\
         [transport]\nmtu = \"1438B\"\nheader = \"62B\"\n[flow_control]\n{flow_control}\n\
         [[traffic]]\nkind = \"flow\"\nsrc = \"A\"\ndst = \"B\"\nsize = \"1MB\"\npriority = 3\n\
         [[traffic]]\nkind = \"flow\"\nsrc = \"B\"\ndst = \"A\"\nsize = \"1MB\"\npriority = 4\n"
    );
    let files = |_: &std::path::Path| Err(std::io::Error::other("no file"));
    let loaded = load("t.toml", text.as_bytes(), &[], &files)
        .unwrap_or_else(|e| panic!("{:?}\n{text}", miette::Report::new(e)));
    (loaded.plan, loaded.warnings.iter().map(|w| format!("{} {}", w.key, w.message)).collect())
}

/// Port of M towards A, and towards N.
const TO_HOST: usize = 1;
const LONG: usize = 2;

#[test]
fn a_round_trip_and_two_slots() {
    let (plan, warnings) = plan("scheme = \"bifrost\"\nslot = \"5us\"\nxoff = \"100kB\"");
    assert_eq!(warnings, [""; 0]);
    let FlowControlParams::Bifrost(params) = &plan.flow_control else { panic!("bifrost") };
    let slots = params.ports[LONG].expect("a long link");
    assert!(params.ports[TO_HOST].is_none());
    // 800 us of cable, 1 us of processing, 64 B, a packet in each direction, each 120 ns.
    assert_eq!(slots.round_trip, 800_000_000 + 1_000_000 + 5_120 + 120_000 + 120_000);
    assert_eq!(slots.bdp(), 10_000_000 + 12_500 + 64 + 3_000);
    assert_eq!((slots.of_slot(), slots.margin, slots.unit), (62_500, 3_000, 1_500));
    assert_eq!(slots.buffer, slots.bdp() + 2 * 62_500 + 3_000 + 1_499);
    // Over where not even an empty link can be granted a packet; beyond H a packet and a late frame.
    let lanes = plan.lanes.len();
    let account = &plan.accounts[LONG * lanes];
    assert_eq!(account.limit, Limit::Static(slots.buffer - 1_500 + 1));
    assert_eq!(account.headroom.as_ref().expect("lossless").total, 3_000);
    assert_eq!(plan.accounts[TO_HOST * lanes].limit, Limit::Static(100_000));
    // Each of two priorities has its own; nothing is shared.
    let host = &plan.accounts[TO_HOST * lanes];
    let each = |a: &xoff_plan::plan::Account, xoff: u64| xoff + a.headroom.as_ref().unwrap().total + 1_500;
    let buffer = plan.buffers[plan.topology.find("M").unwrap() as usize];
    assert_eq!(buffer.total, 2 * (each(account, slots.buffer - 1_499) + each(host, 100_000)));
}

#[test]
fn the_plan_names_the_grants_of_links() {
    let (plan, _) = plan("scheme = \"bifrost\"\nslot = \"5us\"\nxoff = \"100kB\"");
    let seen = Seen { links: plan.topology.ports.len(), lanes: &plan.lanes, detours: 0 };
    // Both ends of the long link grant with the same parameters, which are reported once.
    assert_eq!(
        plan.flow_control.describe(&seen),
        "(processing 1us, jitter 0ps, response time 0ps; pfc with 65535 quanta on other links)\n  \
         links of 100Gbps: slot 5us, round trip 801245120ps, H 10145063 B (10015564 B for one round trip), \
         margin 3000 B"
    );
}

#[test]
fn one_buffer_for_all_priorities() {
    let (plan, _) = plan("scheme = \"bifrostx\"\nslot = \"5us\"\nxoff = \"100kB\"");
    let FlowControlParams::Bifrost(params) = &plan.flow_control else { panic!("bifrostx") };
    let slots = params.ports[LONG].expect("a long link");
    assert!(slots.counted && slots.unit == 1);
    let lanes = plan.lanes.len();
    let pool = plan.accounts[LONG * lanes].pool.expect("a pool");
    assert_eq!(plan.accounts[LONG * lanes + 1].pool, Some(pool));
    assert!(plan.accounts[TO_HOST * lanes].pool.is_none());
    assert_eq!(plan.buffers.len(), plan.topology.nodes.len() + 2, "one for each end of the link");
    // H, a packet just begun, a late frame, and the packet that begins with the last token.
    assert_eq!(plan.buffers[pool as usize].total, slots.buffer + 3 * 1_500);
}

#[test]
fn thresholds_at_the_ends_of_long_links() {
    let of = |keys: &str| {
        let (plan, warnings) = plan(keys);
        let lanes = plan.lanes.len();
        let account = |port: usize| plan.accounts[port * lanes].clone();
        (account(TO_HOST), account(LONG), warnings)
    };
    let all = "scheme = \"pfc\"\nxoff = \"80kB\"\nxon = \"70kB\"";
    let (host, long, _) = of(&format!("{all}\nlong = {{ xoff = \"1MiB\", xon = \"1MiB\" }}"));
    assert_eq!((host.limit, host.resume), (Limit::Static(80_000), 70_000));
    assert_eq!((long.limit, long.resume), (Limit::Static(1 << 20), 1 << 20));
    assert_eq!(long.headroom.unwrap().total, 10_000_000 + 64 + 3_000);
    // A threshold of its own has its own resume level.
    let (host, long, _) = of(&format!("{all}\ngateway = {{ xoff = \"50kB\" }}"));
    assert_eq!((host.limit, host.resume), (Limit::Static(50_000), 47_000));
    assert_eq!((long.limit, long.resume), (Limit::Static(80_000), 70_000));
    // A reserve is the memory of a device without a pool; its default is a round trip.
    let (host, _, _) = of("scheme = \"pfc\"\nalpha = 4\nreserve = \"288KiB\"\nlong = { xoff = \"2bdp\" }");
    assert_eq!((host.limit, host.resume), (Limit::Static(288 << 10), 288 << 10));
    let (host, long, _) = of("scheme = \"bifrost\"");
    assert_eq!((host.limit, host.resume), (Limit::Static(25_000), 22_000));
    assert!(matches!(long.limit, Limit::Static(b) if b > 10_000_000));
    let (_, _, warnings) =
        of(&format!("scheme = \"bifrost\"\n{}\nleftover = \"pooled\"", "long = { xoff = \"1MB\" }"));
    assert!(warnings.iter().any(|w| w.starts_with("flow_control.long had no effect")), "{warnings:?}");
    assert!(warnings.iter().any(|w| w.starts_with("flow_control.leftover had no effect")), "{warnings:?}");
    let (_, _, warnings) = of("scheme = \"bifrost\"\nundersized = true");
    assert!(warnings.iter().any(|w| w.starts_with("flow_control.undersized had no effect")), "{warnings:?}");
}
