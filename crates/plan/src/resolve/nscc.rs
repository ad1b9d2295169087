//! Parameters of the congestion control NSCC.

use super::congestion::share;
use super::{Context, LONGEST, Routed, transport};
use crate::error::Error;
use crate::scenario::Nscc;
use xoff_kernel::time::Time;
use xoff_net::units::Span;
use xoff_schemes::congestion_control::nscc::NsccParams;

/// The delay of queues that counts as none.
pub(super) fn target(cx: &Context<'_>, base_rtt: Time) -> Result<Time, Error> {
    match cx.scenario.nscc.and_then(|nscc| nscc.target_qdelay) {
        Some(span) => cx.timer("nscc", "target_qdelay", span),
        None if cx.scenario.flow_control.trims() => Ok((base_rtt * 3 / 4).max(1)),
        None => Ok(base_rtt),
    }
}

pub(super) fn params(cx: &Context<'_>, routed: &Routed<'_>) -> Result<NsccParams, Error> {
    let given = cx.scenario.nscc.unwrap_or_default();
    let base_rtt = transport::base_rtt(cx, routed.routes)?;
    let trims = cx.scenario.flow_control.trims();
    let target = target(cx, base_rtt)?;
    // With trimmed packets no delay is too long.
    let by_delay = Span(Nscc::QA_THRESHOLD * if trims { LONGEST } else { target });
    let qa_threshold = given.qa_threshold.unwrap_or(by_delay);
    cx.at_most("nscc.qa_threshold", qa_threshold, Span(Nscc::QA_THRESHOLD * LONGEST))?;
    let qa_gate = given.qa_gate.unwrap_or(Nscc::QA_GATE);
    if qa_gate > 63 {
        return cx.out_of_range("nscc", "qa_gate", qa_gate, "write a whole number up to 63");
    }
    let number = |key: &str, given: Option<f64>, default: f64, least: f64| {
        let value = given.unwrap_or(default);
        if (least..=Nscc::MOST).contains(&value) {
            return Ok(value);
        }
        cx.out_of_range("nscc", key, value, format!("write a number from {least} to {}", Nscc::MOST))
    };
    let part = |key: &str, given: Option<f64>, default: f64| {
        let value = given.unwrap_or(default);
        share(cx, &format!("nscc.{key}"), key, value, &default.to_string())
    };
    Ok(NsccParams {
        base_rtt,
        target,
        max_wnd: number("max_wnd", given.max_wnd, Nscc::MAX_WND, Nscc::LEAST_WND)?,
        alpha: number("alpha", given.alpha, Nscc::ALPHA, 0.0)?,
        fi: number("fi", given.fi, Nscc::FI, 0.0)?,
        fi_scale: number("fi_scale", given.fi_scale, Nscc::FI_SCALE, 0.0)?,
        eta: number("eta", given.eta, Nscc::ETA, 0.0)?,
        gamma: part("gamma", given.gamma, Nscc::GAMMA)?,
        max_md_jump: part("max_md_jump", given.max_md_jump, Nscc::MAX_MD_JUMP)?,
        qa_gate,
        qa_threshold: qa_threshold.0,
        delay_gain: part("delay_gain", given.delay_gain, Nscc::DELAY_GAIN)?,
        last_hop: true,
        mtu: cx.packet.mtu,
    })
}
