//! `[flow_control]` of the PFC watchdog.

use super::super::fabric::{Fabric, first_polls};
use super::super::keys::{Complaint, Keys, OnPfc, Setting, default_keys, time};
use super::super::pfc::keys::PfcKeys;
use super::super::registry::FlowControlParams;
use super::WatchdogParams;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use xoff_kernel::time::{MICROSECOND, MILLISECOND, Time};
use xoff_net::units::Span;

/// The shortest time between two polls: a poll of every queue is an event.
const SHORTEST_POLL: Time = MICROSECOND;

/// The PFC watchdog: keys of its own, and those of PFC.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "PfcWatchdog")]
pub struct WatchdogKeys {
    /// Action in a storm.
    #[serde(default)]
    pub action: Action,
    /// A queue with packets to send is in a storm after an uninterrupted pause of this length.
    /// Default: as in SONiC and in Lv et al. 2025, section VI-E.
    #[serde(default = "watchdog_time")]
    pub detection_time: Span,
    /// A storm ends when no pause frame has arrived for this time.
    #[serde(default = "watchdog_time")]
    pub restoration_time: Span,
    /// What measures the times.
    #[serde(default)]
    pub timers: Timers,
    /// Time between two polls of a device, which begin at a random time; at most `detection_time`
    /// and `restoration_time`. Default: 200 ms as in SONiC, or the shorter of the two if that is
    /// less. Not with `timers = "hardware"`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-default" = format!("`\"{}\"`, at most `detection_time` and `restoration_time`", watchdog_time())))]
    pub poll: Option<Span>,
}

/// Action in a storm.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(rename = "WatchdogAction")]
pub enum Action {
    /// Packets that wait in the queue or arrive for it are dropped.
    #[default]
    Drop,
    /// The queue sends despite the pause; packets for which the peer has no room are lost.
    Forward,
    /// The storm is only reported.
    Alert,
}

/// What measures the times of a watchdog.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(rename = "WatchdogTimers")]
pub enum Timers {
    /// Software polls all queues, as SONiC does.
    #[default]
    Polls,
    /// Each queue has a timer in hardware, which acts exactly after `detection_time` and `restoration_time`.
    Hardware,
}

default_keys!(WatchdogKeys);

impl WatchdogKeys {
    /// 0 with timers in hardware.
    fn poll(&self) -> Span {
        if self.timers == Timers::Hardware {
            return Span(0);
        }
        let least = self.detection_time.0.min(self.restoration_time.0);
        self.poll.unwrap_or(Span(least.min(watchdog_time().0)))
    }
}

/// SONiC's default for all three times on switches of up to 32 ports (`pfcwd`).
fn watchdog_time() -> Span {
    Span(200 * MILLISECOND)
}

impl Keys for OnPfc<WatchdogKeys> {
    fn allows_channels(&self) -> bool {
        true
    }

    fn pfc(&self) -> Option<&PfcKeys> {
        Some(&self.pfc)
    }

    fn check(&self, _: &mut Setting<'_>) -> Result<(), Complaint> {
        let keys = &self.keys;
        let times = [("detection_time", keys.detection_time), ("restoration_time", keys.restoration_time)];
        let polls = (keys.timers == Timers::Polls).then(|| ("poll", keys.poll()));
        if let (None, Some(_)) = (polls, keys.poll) {
            let message = "timers in hardware do not poll";
            return Err(Complaint::of_key("poll", message, "remove the key, or write timers = \"polls\""));
        }
        for (key, value) in times.into_iter().chain(polls) {
            time(key, value)?;
            if value.0 < SHORTEST_POLL {
                let message = format!("{key} = {value} is too short for a watchdog");
                let help = format!("write {} or more, such as \"200ms\"", Span(SHORTEST_POLL));
                return Err(Complaint::of_key(key, message, help));
            }
        }
        let shorter = times.into_iter().find(|(_, value)| keys.poll().0 > value.0);
        let Some((key, value)) = shorter else { return Ok(()) };
        let message = format!("poll = {} is longer than {key} = {value}", keys.poll());
        let help = format!("write poll = \"{value}\" or less, or remove it");
        Err(Complaint::of_key("poll", message, help))
    }

    fn params(&self, cx: &mut Setting<'_>, fabric: Fabric<'_>) -> Result<FlowControlParams, Complaint> {
        let (keys, poll) = (&self.keys, self.keys.poll().0);
        Ok(FlowControlParams::Watchdog(WatchdogParams {
            pfc: self.pfc.params(),
            action: keys.action,
            detection: keys.detection_time.0,
            restoration: keys.restoration_time.0,
            poll,
            first: first_polls(fabric.topology, cx.seed, "watchdog polls", poll.max(1)),
        }))
    }
}
