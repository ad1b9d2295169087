//! The congestion control in words.

use crate::plan::Plan;
use std::fmt::{self, Write};
use xoff_net::units::{Bandwidth, Bytes, Span};
use xoff_schemes::congestion_control::dcqcn::{DcqcnParams, Reaction};
use xoff_schemes::congestion_control::{CongestionControlParams, Step};

pub(super) fn describe(out: &mut String, plan: &Plan) -> fmt::Result {
    match &plan.congestion_control {
        CongestionControlParams::None => return Ok(()),
        CongestionControlParams::Dcqcn(p) => dcqcn(out, p)?,
        CongestionControlParams::Timely(p) => {
            writeln!(out, "congestion control: timely (measures one round trip at a time)")?;
            writeln!(
                out,
                "  rates increase below {} and decrease above {}; between them the gradient per {} decides: alpha {}, beta {}",
                Span(p.t_low),
                Span(p.t_high),
                Span(p.min_rtt),
                p.ewma,
                p.beta
            )?;
            writeln!(
                out,
                "  increases of {}, after {} in a row of {}; never below {}",
                step(p.additive_increase),
                p.hyper_after,
                step(p.hyper_increase),
                step(p.minimum_rate)
            )?;
        }
        CongestionControlParams::Hpcc(p) => {
            writeln!(
                out,
                "congestion control: hpcc ({} of telemetry in each packet and ACK, for {} hops)",
                Bytes(p.telemetry.into()),
                p.hops
            )?;
            writeln!(
                out,
                "  eta {}, T {}, increases of {}, then by utilisation after {} of them; never below {}; {}",
                p.eta,
                Span(p.base_rtt),
                step(p.additive_increase),
                p.max_stage,
                step(p.minimum_rate),
                if p.fast_reaction {
                    "every ACK changes the rate"
                } else {
                    "one ACK per round trip changes the rate"
                }
            )?;
        }
        CongestionControlParams::Dctcp(p) => {
            writeln!(out, "congestion control: dctcp (ACKs carry marks; g = {})", p.gain)?;
            writeln!(
                out,
                "  increases of {} per round trip; never below {}",
                step(p.additive_increase),
                step(p.minimum_rate)
            )?;
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
    writeln!(
        out,
        "  increases every {}{bytes}: {} of fast recovery, then {}, then {}; never below {}; target {}clamped",
        Span(p.increase_timer),
        p.fast_recovery,
        step(p.additive_increase),
        step(p.hyper_increase),
        step(p.minimum_rate),
        if p.clamp_target { "" } else { "not " }
    )
}
