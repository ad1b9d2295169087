//! NSCC and RCCC together in runs. Where only one of them limits, the run equals one under it alone. Last hops, the fabric,
//! and recorded completion times of uet-htsim.

use crate::common;

use common::{fcts, numbered as flow, plan, run, sum, trimmed};
use xoff_plan::plan::Plan;
use xoff_sim::outcome::Outcome;

const CONTROLS: [&str; 3] = ["nscc+rccc", "rccc", "nscc"];

/// Leaves with `hosts` each and `spines`. Queues of 60 kB trim.
fn clos(leaves: u64, spines: u64, hosts: u64, control: &str, more: &str) -> String {
    let rest = format!(
        "[flow_control]\nscheme = \"trimming\"\n[[priority]]\nid = 3\negress_limit = \"60kB\"\n\
         [transport]\nkind = \"rud\"\ncongestion_control = \"{control}\"\nretries = \"unlimited\"\n{more}\n"
    );
    common::clos(leaves, spines, hosts, "spray") + &rest
}

/// Marks at ports that lead to hosts, and at others.
fn marks(plan: &Plan, outcome: &Outcome) -> [u64; 2] {
    let mut marks = [0; 2];
    for (port, seen) in (0..).zip(&outcome.ports) {
        marks[usize::from(!plan.topology.leads_to_host(port))] += seen.marks;
    }
    marks
}

/// Credit at a part of the link's rate never fills the window: every time is as under RCCC alone, to the picosecond.
#[test]
fn where_credit_limits_it_is_rccc() {
    for rate in [0.1, 0.5, 0.9] {
        for every in [1, 4] {
            let more = format!("ack_every = {every}\n[rccc]\nrate = {rate:?}\n");
            let times = ["nscc+rccc", "rccc"].map(|control| {
                let plan = plan(&(clos(2, 1, 1, control, &more) + &flow(0, 1, "5MB")));
                let outcome = run(&plan);
                (outcome.flows[0].delivered, outcome.flows[0].completed)
            });
            assert_eq!(times[0], times[1], "{rate} {every}");
        }
    }
}

/// A window below one BDP leaves credit unused after the first round trip, so the run is as under NSCC alone. Before, credit
/// comes in frames, and a packet waits for one frame at most.
#[test]
fn where_the_window_limits_it_is_nscc() {
    for wnd in [0.1, 0.3, 0.7] {
        for every in [1, 2] {
            // Nothing changes the window.
            let more = format!(
                "ack_every = {every}\nwindow = \"1.5bdp\"\n[nscc]\nmax_wnd = {wnd:?}\n[rccc]\nrate = 1.0\n"
            );
            let [both, nscc] = ["nscc+rccc", "nscc"].map(|control| {
                let plan = plan(&(clos(2, 1, 1, control, &more) + &flow(0, 1, "5MB")));
                run(&plan).flows[0].delivered.unwrap()
            });
            println!("{wnd} {every}: {both} {nscc}");
            let most = 3_840 * 80;
            assert!(both >= nscc && both - nscc <= most, "{wnd} {every}: {both} {nscc}");
        }
    }
}

/// N flows to one host, whose switch trims: the link carries all bytes at the rate of credit, and all flows end together,
/// as under RCCC alone. The last hop marks nothing, and takes nothing out of a window.
#[test]
fn an_incast_is_the_business_of_credit() {
    for (senders, size, rate) in [(3, 4_000_000, 1.0), (8, 400_000, 0.99), (15, 2_000_000, 0.99)] {
        let more = format!("ack_every = 4\n[rccc]\nrate = {rate:?}\ngrant = \"4kB\"\n");
        let mut text = clos(2, 4, senders + 1, "nscc+rccc", &more);
        (1..=senders).for_each(|i| text += &flow(i as usize, 0, &format!("{size}B")));
        let plan = plan(&text);
        let outcome = run(&plan);
        assert_eq!(marks(&plan, &outcome)[0], 0);
        assert_eq!([sum(&outcome, |f| f.timeouts.into()), sum(&outcome, |f| f.spurious)], [0, 0]);
        let cut = trimmed(&outcome);
        assert_eq!([sum(&outcome, |f| f.retransmitted), sum(&outcome, |f| f.nacks.into())], [cut; 2]);
        let ends: Vec<u64> = outcome.flows.iter().filter_map(|f| f.delivered).collect();
        assert_eq!(ends.len() as u64, senders);
        let (first, last) = (*ends.iter().min().unwrap(), *ends.iter().max().unwrap());
        let least = 2_000_000 + 1_062 * 80 + senders * size / 1_000 * 1_062 * 80;
        let most = least as f64 / rate * 1.01;
        let (of_link, together) = (last as f64 / least as f64, first as f64 / last as f64);
        println!("{senders}: {of_link:.4} of the link, first/last {together:.4}, {cut}");
        assert!(last >= least && (last as f64) < most, "{least} {last} {most}");
        assert!(cut > 10 && together > 0.9, "{cut} {first} {last}");
    }
}

/// Eight flows from one rack to eight hosts over one uplink. Each receiver grants the whole rate of its link, so RCCC
/// alone trims about seven of eight packets for ever. NSCC beside it finds the uplink, and trims no more than alone.
#[test]
fn the_fabric_is_the_business_of_the_window() {
    let cut = CONTROLS.map(|control| {
        let mut text = clos(2, 1, 8, control, "ack_every = 4\nwindow = \"1.5bdp\"\n");
        (0..8).for_each(|i| text += &flow(i, 8 + i, "2MB"));
        let plan = plan(&text);
        let outcome = run(&plan);
        let last = fcts(&plan, &outcome).into_iter().max().unwrap();
        let [at_hosts, inside] = marks(&plan, &outcome);
        println!("{control}: {} trimmed, {at_hosts} and {inside} marks, {last}", trimmed(&outcome));
        assert_eq!((at_hosts, inside > 0), (0, control != "rccc"));
        // The bytes of all flows on the uplink.
        assert!(last >= 16_000 * 1_062 * 80);
        trimmed(&outcome)
    });
    assert!(cut[0] * 5 < cut[1] && cut[0] * 4 < cut[2] * 5, "{cut:?}");
}

/// `ecn.last_hop` decides about the marks of the last hop; without it the default of the congestion control.
#[test]
fn last_hops_mark_if_they_should() {
    let ecn = |last: bool| {
        format!(
            "[ecn]\nk_min = \"12kB\"\nk_max = \"48kB\"\np_max = 1.0\nat = \"dequeue\"\nlast_hop = {last}\n"
        )
    };
    for control in ["nscc", "nscc+rccc"] {
        for (more, marked) in [(String::new(), control == "nscc"), (ecn(true), true), (ecn(false), false)] {
            for at in ["dequeue", "enqueue"] {
                let mut text = clos(2, 8, 8, control, "") + &more.replace("dequeue", at);
                (1..8).for_each(|i| text += &flow(i, 0, "500kB"));
                let plan = plan(&text);
                let outcome = run(&plan);
                assert_eq!(marks(&plan, &outcome)[0] > 0, marked, "{control} {more} {at}");
            }
        }
    }
}

/// The network of uet-htsim's recorded runs, with `-sender_cc -receiver_cc` (`validate_uec_both.out`): a fat tree of 16
/// hosts, 100 Gbit/s and 1 us, packets of 4,086 and 64 B, queues of one BDP that trim.
fn recorded(flows: &str) -> Vec<u64> {
    let text = format!(
        "[topology]\nkind = \"fat-tree\"\nk = 4\nlink = {{ rate = \"100Gbps\", delay = \"1us\" }}\n\
         [routing]\nload_balancing = \"spray\"\n\
         [flow_control]\nscheme = \"trimming\"\ntrims = \"arriving-or-last\"\n\
         [[priority]]\nid = 3\negress_limit = \"175284B\"\n[[priority]]\nid = 7\negress_limit = \"350568B\"\n\
         [transport]\nkind = \"rud\"\ncongestion_control = \"nscc+rccc\"\nmtu = \"4086B\"\nheader = \"64B\"\n\
         ack = \"64B\"\nack_every = 4\nack_priority = 7\nrto = \"99us\"\nwindow = \"257418B\"\n\
         [nscc]\ntarget_qdelay = \"10515ns\"\n[rccc]\ngrant = \"16384B\"\n\
         [ecn]\nk_min = \"35057B\"\nk_max = \"140227B\"\np_max = 1.0\nat = \"dequeue\"\nlast_hop = false\n{flows}"
    );
    let plan = plan(&text);
    fcts(&plan, &run(&plan))
}

/// A lone flow takes 177.4 us there, and the flows of an incast of 15 take 2,388 to 2,463 us.
#[test]
fn flows_take_the_recorded_times() {
    let near = |ps: u64, us: f64, share: f64| {
        let took = ps as f64 / 1e6;
        println!("{took:.1} us, recorded {us} us");
        assert!((took / us - 1.0).abs() < share, "{took} {us}");
    };
    near(recorded(&flow(0, 13, "2MB"))[0], 177.368, 0.01);
    let mut fcts = recorded(&(0..15).map(|i| flow(i, 15, "2MB")).collect::<String>());
    fcts.sort_unstable();
    near(fcts[0], 2_387.91, 0.02);
    near(fcts[14], 2_462.92, 0.01);
}
