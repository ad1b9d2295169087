//! Pyrrha where frames are lost, each of which is sent once; and where ports that are no
//! roots stay such.

use crate::common;

use common::{plan, ran, run};
use std::fmt::Write;
use xoff_plan::plan::Plan;
use xoff_schemes::flow_control::pyrrha::Tally;
use xoff_sim::outcome::{DropReason, Outcome, Stop};

const SEEDS: u64 = 40;

/// A host, two switches and a host, the last link at half the rate of the others; frames
/// are lost at `rate` on the named link, in the direction from the named end.
fn line(seed: u64, link: &str, from: &str, rate: f64) -> String {
    format!(
        "[topology]\nkind = \"custom\"\nhosts = [\"A\", \"B\"]\nswitches = [\"S\", \"T\"]\nlinks = [\
         {{a=\"A\", b=\"S\", rate=\"100Gbps\", delay=\"1us\"}}, {{a=\"S\", b=\"T\", rate=\"100Gbps\", delay=\"1us\"}}, \
         {{a=\"T\", b=\"B\", rate=\"50Gbps\", delay=\"1us\"}}]\n\
         [flow_control]\nscheme = \"pyrrha\"\n[switch]\nbuffer = \"64MB\"\n[transport]\nrto = \"200us\"\n\
         [run]\nseed = {seed}\nduration = \"3ms\"\n\
         [[traffic]]\nkind = \"flow\"\nsrc = \"A\"\ndst = \"B\"\nsize = \"3MB\"\n\
         [[loss]]\nlink = \"{link}\"\nfrom = \"{from}\"\nrate = {rate}\n"
    )
}

fn checked(text: &str) -> (Plan, Outcome) {
    let plan = plan(text);
    let outcome = run(&plan);
    assert!(outcome.drops.iter().all(|d| d.reason == DropReason::FrameLost), "{:?}", outcome.drops);
    (plan, outcome)
}

/// Pauses that last until the end.
fn standing(outcome: &Outcome) -> usize {
    outcome.pauses.iter().filter(|p| p.until.is_none()).count()
}

/// ACKs and frames from the first switch to the sender are lost, now and then. A lost PAUSE only makes a
/// queue longer. A lost RESUME stops the flow permanently, because no packet remains that could cause another
/// pause and resume. There is no other case.
#[test]
fn a_lost_resume_stops_its_flows_permanently() {
    let (mut done, mut stuck, mut longer) = (0, 0, 0);
    let peak = |outcome: &Outcome| *outcome.buffer_peaks.iter().max().expect("buffers");
    let (_, lossless) = checked(&line(0, "A-S", "S", 1e-12));
    assert_eq!((lossless.stop, standing(&lossless)), (Stop::AllDone, 0));
    assert!(lossless.pauses.len() > 20, "{} pauses", lossless.pauses.len());
    for seed in 0..SEEDS {
        let (plan, outcome) = checked(&line(seed, "A-S", "S", 0.02));
        longer += u32::from(peak(&outcome) > peak(&lossless));
        let notes = plan.flow_control.notes(&ran(&plan, &outcome));
        if outcome.flows[0].completed.is_some() {
            done += 1;
            assert!(standing(&outcome) == 0 && notes.is_empty(), "seed {seed}: {notes:?}");
            continue;
        }
        stuck += 1;
        assert!(notes[0].text.contains("Pyrrha sends each frame once, and a link can lose it"), "{notes:?}");
        // It is no remark on a pause that holds nobody, nor on a flow that no pause holds.
        let (mut finished, mut free) = (outcome.clone(), outcome.clone());
        finished.flows.iter_mut().for_each(|flow| flow.completed = Some(outcome.end));
        free.pauses.iter_mut().for_each(|pause| pause.until = Some(outcome.end));
        for other in [finished, free] {
            assert_eq!(plan.flow_control.notes(&ran(&plan, &other)), []);
        }
        let pause = outcome.pauses.iter().find(|p| p.until.is_none()).expect("it waits for one");
        assert_eq!(plan.topology.port_name(pause.port), "A:0", "seed {seed}");
        // Timeouts do not help: the queue pair is paused for retransmissions too.
        assert!(outcome.end - pause.from > 1_000_000_000, "seed {seed}: {pause:?}");
        assert!(outcome.deadlock.is_none(), "seed {seed}: nothing waits in a circle");
    }
    println!("{done} done, {stuck} stuck, {longer} with longer queues");
    assert!(done > 0 && stuck > 0 && longer > 0, "{done} {stuck} {longer}");
}

/// Incasts of eight hosts, one after another, over one link between two switches; frames
/// on it towards the receiver are lost at `rate`.
fn incasts(seed: u64, rate: f64) -> String {
    let hosts: Vec<String> = (0..8).map(|i| format!("\"A{i}\"")).collect();
    let links: Vec<String> = hosts
        .iter()
        .map(|host| format!("{{a={host}, b=\"S\", rate=\"100Gbps\", delay=\"1us\"}}"))
        .chain(["S", "B"].map(|end| format!("{{a=\"{end}\", b=\"T\", rate=\"100Gbps\", delay=\"1us\"}}")))
        .collect();
    // Faster than the traffic from T to B, so T's port is the root.
    let links = links.join(", ").replacen("a=\"S\", b=\"T\", rate=\"100", "a=\"S\", b=\"T\", rate=\"400", 1);
    format!(
        "[topology]\nkind = \"custom\"\nhosts = [{}, \"B\"]\nswitches = [\"S\", \"T\"]\nlinks = [{links}]\n\
         [flow_control]\nscheme = \"pyrrha\"\n[switch]\nbuffer = \"64MB\"\n[transport]\nkind = \"irn\"\n\
         [run]\nseed = {seed}\nduration = \"20ms\"\n\
         [[traffic]]\nkind = \"incast\"\nfan_in = 8\nsize = \"60kB\"\nto = \"B\"\nperiod = \"300us\"\nstop = \"3ms\"\n\
         [[loss]]\nlink = \"S-T\"\nfrom = \"S\"\nrate = {rate}\n",
        hosts.join(", ")
    )
}

/// Data and RELEASEs from the first switch to the second are lost. Data is repeated. The
/// root waits for a RELEASE that does not come, and stays one: nothing waits for that.
#[test]
fn a_lost_release_stops_nothing() {
    let (mut claims, mut roots) = ([0; 2], 0);
    for seed in 0..SEEDS {
        for (i, rate) in [1e-12, 0.1].into_iter().enumerate() {
            let (_, outcome) = checked(&incasts(seed, rate));
            let what = format!("seed {seed}, rate {rate}: {:?}", outcome.waiting);
            assert_eq!((outcome.stop, standing(&outcome)), (Stop::AllDone, 0), "{what}");
            claims[i] += outcome.records.get::<Tally>().expect("it ran").claims;
            roots += usize::from(i == 1 && outcome.roots.iter().any(|r| r.is_root));
            assert!(i == 1 || outcome.roots.iter().all(|r| !r.is_root), "{what}");
        }
    }
    println!("{claims:?} claims, {roots} runs end with a root");
    // A root does not claim to be one again.
    assert!(claims[0] > SEEDS && claims[1] > SEEDS && roots > 0, "{claims:?} {roots}");
}

/// A fabric with false roots: two incasts over shared links, and flows beside them.
fn false_roots(seed: u64, merging: &str) -> String {
    let mut text = format!(
        "[topology]\nkind = \"leaf-spine\"\nleaves = 4\nspines = 2\nhosts_per_leaf = 4\n\
         host_link = {{rate=\"100Gbps\", delay=\"1us\"}}\nfabric_link = {{rate=\"100Gbps\", delay=\"1us\"}}\n\
         [switch]\nbuffer = \"64MB\"\n[flow_control]\nscheme = \"pyrrha\"\nmerging = \"{merging}\"\n\
         [transport]\nkind = \"irn\"\n[measure]\nblocking = true\n[run]\nseed = {seed}\nduration = \"5ms\"\n"
    );
    for to in [0, 1] {
        let _ = writeln!(
            text,
            "[[traffic]]\nkind = \"incast\"\nfan_in = 10\nsize = \"300kB\"\nto = \"H{to}\"\nstart = \"{}us\"",
            10 * to
        );
    }
    text + "[[traffic]]\nkind = \"permutation\"\nsize = \"200kB\"\n"
}

/// Without merging false roots persist, and delay victims of the congestion after them. By the root that
/// frames name there are no victims, because frames name the port that delays the packet. (Merging does not
/// reduce the former here: released packets wait for the same links nevertheless, and in these fabrics for
/// longer.)
#[test]
fn roots_that_are_none_hold_victims_where_they_stay() {
    let mut sums = [[0u64; 4]; 2];
    for seed in 0..12 {
        for (sum, merging) in sums.iter_mut().zip(["soft", "off"]) {
            let outcome = run(&plan(&false_roots(seed, merging)));
            let blocking = outcome.blocking.as_ref().expect("the oracle watched");
            let tally = outcome.records.get::<Tally>().expect("it ran");
            let victim: u64 = blocking.flows.iter().map(|f| f.victim + f.source_victim).sum();
            assert_eq!(blocking.named.1, 0, "{merging}, seed {seed}: by the root that is named");
            sum[0] += victim;
            sum[1] += tally.abdications;
            sum[2] += tally.merges;
            sum[3] += blocking.named.0;
        }
    }
    println!("victim time, abdications, merges, waits: soft {:?}, off {:?}", sums[0], sums[1]);
    assert!(sums.iter().all(|sum| sum[0] > 0 && sum[3] > 1_000), "{sums:?}");
    assert!(sums[0][1] > 0 && sums[0][2] > 0 && sums[1][1..3] == [0, 0], "{sums:?}");
}
