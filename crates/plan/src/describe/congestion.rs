//! The congestion control in words.

use crate::plan::Plan;
use std::fmt::{self, Write};
use xoff_net::units::{Bandwidth, Bytes, Span};
use xoff_schemes::congestion_control::dcqcn::{DcqcnParams, Reaction};
use xoff_schemes::congestion_control::nscc::NsccParams;
use xoff_schemes::congestion_control::rccc::{QUANTUM, RcccParams};
use xoff_schemes::congestion_control::swift::SwiftParams;
use xoff_schemes::congestion_control::{CongestionControlParams, Step};
use xoff_schemes::flow_control::keys::LONGEST;

const HEAD: &str = "congestion control: ";

pub(super) fn describe(out: &mut String, plan: &Plan) -> fmt::Result {
    match &plan.congestion_control {
        CongestionControlParams::None => return Ok(()),
        CongestionControlParams::Dcqcn(p) => dcqcn(out, p)?,
        CongestionControlParams::Timely(p) => {
            let [low, high, unit] = [p.t_low, p.t_high, p.min_rtt].map(Span);
            let [first, later, least] = [p.additive_increase, p.hyper_increase, p.minimum_rate].map(step);
            writeln!(out, "congestion control: timely (measures one round trip at a time)")?;
            writeln!(
                out,
                "  rates increase below {low} and decrease above {high}; between them the gradient per {unit} decides: alpha {}, beta {}",
                p.ewma, p.beta
            )?;
            let after = p.hyper_after;
            writeln!(out, "  increases of {first}, after {after} in a row of {later}; never below {least}")?;
        }
        CongestionControlParams::Hpcc(p) => {
            let (telemetry, hops) = (Bytes(p.telemetry.into()), p.hops);
            writeln!(
                out,
                "congestion control: hpcc ({telemetry} of telemetry in each packet and ACK, for {hops} hops)"
            )?;
            let [increase, least] = [p.additive_increase, p.minimum_rate].map(step);
            let which = if p.fast_reaction { "every ACK" } else { "one ACK per round trip" };
            writeln!(
                out,
                "  eta {}, T {}, increases of {increase}, then by utilisation after {} of them; never below {least}; {which} changes the rate",
                p.eta,
                Span(p.base_rtt),
                p.max_stage
            )?;
        }
        CongestionControlParams::PowerTcp(p) => {
            let (telemetry, hops) = (Bytes(p.telemetry.into()), p.hops);
            writeln!(
                out,
                "congestion control: powertcp ({telemetry} of telemetry in each packet and ACK, for {hops} hops)"
            )?;
            writeln!(
                out,
                "  gamma {}, tau {}, {} expected flows; never below {}",
                p.gamma,
                Span(p.base_rtt),
                p.flows,
                step(p.minimum_rate)
            )?;
        }
        CongestionControlParams::Dctcp(p) => {
            let [increase, least] = [p.additive_increase, p.minimum_rate].map(step);
            writeln!(out, "congestion control: dctcp (ACKs carry marks; g = {})", p.gain)?;
            writeln!(out, "  increases of {increase} per round trip; never below {least}")?;
        }
        CongestionControlParams::Swift(p) => swift(out, p)?,
        CongestionControlParams::Rccc(p) => rccc(out, HEAD, p)?,
        CongestionControlParams::Nscc(p) => nscc(out, HEAD, (plan, p))?,
        CongestionControlParams::NsccRccc(p) => {
            writeln!(out, "{HEAD}nscc+rccc (a sender needs room in its window, and credit)")?;
            nscc(out, "  ", (plan, &p.nscc))?;
            rccc(out, "  ", &p.rccc)?;
        }
    }
    if let Some(round_trip) = plan.transport.variable_window {
        writeln!(out, "  in flight: at most the rate times {}", Span(round_trip))?;
    }
    Ok(())
}

fn step(step: Step) -> String {
    match step {
        Step::Rate(rate) => Bandwidth(rate).to_string(),
        Step::LineShare(divisor) => format!("1/{divisor} of the line rate"),
    }
}

fn dcqcn(out: &mut String, p: &DcqcnParams) -> fmt::Result {
    let reaction = match p.reaction {
        Reaction::Periodic => format!("checks for CNPs every {}", Span(p.decrease_interval)),
        Reaction::Immediate => "decreases at each CNP".to_string(),
    };
    let cnp = match p.cnp_interval {
        0 => "ACKs carry marks".to_string(),
        interval => format!("CNPs of {} B, at least {} apart", p.cnp_size, Span(interval)),
    };
    let bytes = match p.byte_counter {
        0 => String::new(),
        bytes => format!(" and every {}", Bytes(bytes)),
    };
    writeln!(out, "congestion control: dcqcn ({cnp}; {reaction})")?;
    writeln!(out, "  alpha every {} with g = {}", Span(p.alpha_timer), p.gain)?;
    let [first, later, least] = [p.additive_increase, p.hyper_increase, p.minimum_rate].map(step);
    let (timer, fast, not) =
        (Span(p.increase_timer), p.fast_recovery, if p.clamp_target { "" } else { "not " });
    writeln!(
        out,
        "  increases every {timer}{bytes}: {fast} of fast recovery, then {first}, then {later}; never below {least}; target {not}clamped"
    )
}

fn packets(n: f64) -> String {
    format!("{n} packet{}", if n == 1.0 { "" } else { "s" })
}

fn swift(out: &mut String, p: &SwiftParams) -> fmt::Result {
    let [base, hop, range, endpoint] =
        [p.base_target, p.per_hop, p.flow_scaling.range, p.endpoint_target].map(Span);
    let [least, most] = p.flow_scaling.cwnd;
    writeln!(out, "congestion control: swift (the delay of each ACK changes the window)")?;
    write!(out, "  target delay {base}, {hop} more per switch")?;
    match p.flow_scaling.range {
        0 => writeln!(out, "; no flow scaling")?,
        _ => writeln!(out, ", up to {range} more for windows from {most} down to {least} packets")?,
    }
    writeln!(
        out,
        "  target delay in the receiver {endpoint}, for an average with weight {}",
        p.endpoint_gain
    )?;
    writeln!(
        out,
        "  adds {} per round trip below the target; one decrease per round trip: beta {}, at most {}",
        packets(p.additive_increase),
        p.beta,
        p.max_mdf
    )?;
    let window = |cwnd: Option<f64>, time| match cwnd {
        Some(cwnd) => packets(cwnd),
        None => format!("line rate × {}", Span(time)),
    };
    let (first, most) = (window(p.initial_cwnd, p.base_rtt), window(p.max_cwnd, p.longest_target));
    writeln!(out, "  window {first} at first, then {} packets to {most}", p.min_cwnd)
}

fn rccc(out: &mut String, head: &str, p: &RcccParams) -> fmt::Result {
    writeln!(out, "{head}rccc (receivers grant credit at {} times the rate of their links)", p.rate)?;
    writeln!(
        out,
        "  frames of {} of credit{}; the first window needs none",
        Bytes(u64::from(p.grant) * QUANTUM),
        if p.in_acks { ", and in each ACK that of the flow" } else { "" }
    )
}

fn nscc(out: &mut String, head: &str, (plan, p): (&Plan, &NsccParams)) -> fmt::Result {
    let [base, target, threshold] = [p.base_rtt, p.target, p.qa_threshold].map(Span);
    let delay = format!("above {threshold} of delay");
    let quick = match plan.flow_control.traits().trims {
        None => delay,
        Some(_) if p.qa_threshold > LONGEST => "after a trimmed packet".to_string(),
        Some(_) => delay + " or after a trimmed packet",
    };
    writeln!(out, "{head}nscc (the mark and the delay of each ACK change the window)")?;
    writeln!(
        out,
        "  window at most {} times line rate × {base}; target queueing delay {target}, for an average with weight {}",
        p.max_wnd, p.delay_gain
    )?;
    writeln!(
        out,
        "  per 150 kB of BDP: proportional increase {}, fair {}, eta {} packets; fast increase {} per byte",
        p.alpha, p.fi, p.eta, p.fi_scale
    )?;
    writeln!(
        out,
        "  one decrease per round trip: gamma {}, at most {}; quick adapt {quick}",
        p.gamma, p.max_md_jump
    )
}
