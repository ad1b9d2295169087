//! Flows: packets are conserved, no flow is faster than its ideal, critical paths add up.

use xoff_plan::Loaded;
use xoff_plan::balancing::LoadBalancing;
use xoff_plan::plan::Plan;
use xoff_sim::outcome::{Outcome, Part};

use super::{Broken, holds};

/// Every sent packet is delivered, dropped or in flight.
pub fn conserved(loaded: &Loaded, outcome: &Outcome) -> Result<(), Broken> {
    let c = outcome.counters;
    holds(c.sent == c.delivered + c.dropped + c.in_flight, "conservation", || format!("{c:?}"))?;
    // In pods without buffers the totals count cells: one carries the ends of several flows, and a cell in a
    // core is counted as another cell.
    let cells = loaded.plan.pods.is_some();
    let sent: u64 = outcome.flows.iter().map(|f| f.packets_sent).sum();
    holds(sent == c.sent || cells, "conservation by flow", || format!("{sent} packets of flows, {c:?}"))?;
    let dropped: u64 = outcome.flows.iter().map(|f| f.dropped).sum();
    holds(dropped == c.dropped || cells, "drops by flow", || format!("{dropped} drops of flows, {c:?}"))?;
    // Places count ACKs and control frames as well.
    let named: u64 = outcome.drops.iter().map(|d| d.packets).sum();
    holds(named >= c.dropped, "drops have a place", || format!("{named} at places, {c:?}"))?;
    for (i, flow) in outcome.flows.iter().enumerate() {
        let sums = flow.retransmitted <= flow.packets_sent && flow.spurious <= flow.packets_sent;
        holds(sums, "retransmissions are packets sent", || format!("flow {i}: {flow:?}"))?;
    }
    holds(outcome.flows.len() == loaded.plan.flows.len(), "one result for each flow", String::new)
}

/// Whether a flow cannot complete sooner than its ideal says.
fn ideal_is_a_bound(plan: &Plan) -> bool {
    // A detour has more links, and may have faster ones; an ACK for several packets may come sooner than the
    // one that the ideal has for each; and packets that take several paths do not wait for each other on the
    // path, as those of the ideal do.
    let detours = !plan.faults.down.is_empty();
    let spread = plan.labels_packets() || matches!(plan.load_balancing, LoadBalancing::Packets(_));
    let first = &plan.topology.ports[0];
    let uneven = plan.topology.ports.iter().any(|p| (p.rate, p.delay) != (first.rate, first.delay));
    // A sender that reads ACKs slowly reads fewer of them where some are lost.
    let lost = !plan.faults.losses.is_empty() && !plan.receivers.is_empty();
    // The ideal is that of the first of several routes.
    let chosen = plan.ate.is_some() || !matches!(plan.load_balancing, LoadBalancing::Ecmp);
    !(detours || lost || plan.transport.ack_every > 1 || spread || chosen && uneven)
}

/// Bounds of each flow.
pub fn bounded(loaded: &Loaded, outcome: &Outcome) -> Result<(), Broken> {
    let plan = &loaded.plan;
    let bound = ideal_is_a_bound(plan);
    for (i, (flow, seen)) in plan.flows.iter().zip(&outcome.flows).enumerate() {
        let fail =
            |what: &str| Err(Broken::new(what, format!("flow {i}: {flow:?} {seen:?}, end {}", outcome.end)));
        if seen.delivered_bytes > flow.size {
            return fail("delivered at most the size");
        }
        if seen.delivered.is_some() != (seen.delivered_bytes == flow.size) {
            return fail("delivered when all bytes are");
        }
        if seen.started.is_some_and(|s| s < flow.start) {
            return fail("started no sooner than the start");
        }
        let times = [seen.started, seen.first_sent, seen.delivered, seen.completed];
        let known: Vec<u64> = times.into_iter().flatten().collect();
        if !known.is_sorted() || known.last().is_some_and(|&t| t > outcome.end) {
            return fail("the times of a flow are in order");
        }
        if let Some(failed) = seen.failed {
            let retries = loaded.plan.transport.retries;
            let limited = retries.is_some_and(|retries| seen.timeouts > retries.into()) || seen.nacks > 0;
            if seen.completed.is_some() || failed > outcome.end || !limited {
                return fail("only senders with too many retries give up");
            }
        }
        let Some(completed) = seen.completed else { continue };
        let Some(started) = seen.started else { return fail("completed flows have started") };
        if seen.delivered.is_none() {
            return fail("completed flows are delivered");
        }
        if bound && completed - started < flow.ideal {
            return fail("no faster than alone");
        }
    }
    Ok(())
}

/// The parts of a flow's time add up to it.
pub fn paths_add_up(loaded: &Loaded, outcome: &Outcome) -> Result<(), Broken> {
    let Some(shares) = &outcome.paths else {
        return holds(!loaded.plan.measure.explain, "paths where asked for", String::new);
    };
    let mut sums = vec![0; outcome.flows.len()];
    for share in shares {
        let rooted = share.root.is_some() == matches!(share.part, Part::Own | Part::Victim);
        holds(share.time > 0 && rooted, "shares are well formed", || format!("{share:?}"))?;
        sums[share.flow as usize] += share.time;
    }
    for (flow, (seen, sum)) in outcome.flows.iter().zip(sums).enumerate() {
        let until = seen.ended().unwrap_or(outcome.end);
        let whole = seen.started.map_or(0, |started| until - started);
        holds(sum == whole, "critical paths add up", || {
            format!("flow {flow}: {sum} of {whole} ps, {seen:?}")
        })?;
    }
    let place = |s: &xoff_sim::outcome::Share| (s.flow, s.step, s.leg, s.part, s.root, s.named);
    holds(shares.windows(2).all(|w| place(&w[0]) < place(&w[1])), "shares are in order", String::new)
}
