//! The retry limits of senders.

use crate::error::Error;
use crate::resolve::Context;
use crate::scenario::{Retries, TransportKind};

/// Most retries.
const MOST: u64 = 100;

fn given(cx: &Context<'_>) -> Retries {
    let t = &cx.scenario.transport;
    let default =
        t.kind.traits().retries.map_or(Retries::Unlimited, |retries| Retries::Limit(retries.into()));
    t.retries.unwrap_or(default)
}

/// `transport.retries`; `None` is no limit.
pub(super) fn limit(cx: &Context<'_>) -> Result<Option<u8>, Error> {
    checked(cx, "retries", given(cx))
}

/// Whether every flow ends, even if no packet arrives.
pub(in crate::resolve) fn end_flows(cx: &Context<'_>) -> bool {
    given(cx) != Retries::Unlimited
}

/// `transport.nack_retries`; `None` is no limit.
pub(super) fn nack_limit(cx: &Context<'_>) -> Result<Option<u8>, Error> {
    checked(cx, "nack_retries", cx.scenario.transport.nack_retries.unwrap_or(Retries::Unlimited))
}

/// Warns of a key that the transport does not use.
pub(super) fn check(cx: &mut Context<'_>) {
    let t = &cx.scenario.transport;
    if t.nack_retries.is_some() && !t.kind.traits().counts_retries {
        let those = TransportKind::any(|traits| traits.counts_retries);
        let message = format!(
            "had no effect: it requires the transport {those}, and this run uses `{}`",
            t.kind.name()
        );
        cx.warn("transport.nack_retries", message);
    }
}

fn checked(cx: &Context<'_>, key: &str, given: Retries) -> Result<Option<u8>, Error> {
    match given {
        Retries::Unlimited => Ok(None),
        Retries::Limit(retries) if retries <= MOST => Ok(Some(retries as u8)),
        Retries::Limit(retries) => {
            let help = format!("write a whole number up to {MOST}, or \"unlimited\"");
            cx.out_of_range("transport", key, retries, help)
        }
    }
}
