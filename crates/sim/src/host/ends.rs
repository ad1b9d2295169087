//! The ends of all flows, and their rates.

use crate::host::answers::starts;
use crate::host::controls::{self, Windows, notification_points};
use crate::host::flow::{ReceiverState, SenderState};
use crate::host::pulls::{PullQueue, pull_queues};
use crate::host::rccc::Credits;
use crate::host::sources::{Source, sources};
use crate::switch::balancing::Labelled;
use crate::{features::Features, indices::table, switch::arbiter::Arbiter};
use xoff_kernel::table::Table;
use xoff_plan::plan::{Plan, Waits};
use xoff_schemes::congestion_control::Controls;
use xoff_schemes::congestion_control::notification::NotificationPoint;
use xoff_schemes::transport::{Receivers, Senders, retries::Attempts};

pub struct Hosts {
    pub senders: Table<Vec<SenderState>>,
    pub receivers: Table<Vec<ReceiverState>>,
    /// Decides which of the senders may send, if there is one.
    pub arbiter: Option<Arbiter>,
    /// The transport's own, beside the numbers of the above.
    pub own_senders: Senders,
    pub own_receivers: Receivers,
    /// By flow: timeouts without progress. Empty without a limit, and where the transport counts by itself.
    pub attempts: Vec<Attempts>,
    /// By port: the packets that receivers request. Empty unless they do.
    pub pulls: Vec<PullQueue>,
    /// The credit of flows at their receivers.
    pub credits: Credits,
    pub controls: Controls,
    /// Whether the controls get every ACK and NACK.
    pub wants_acks: bool,
    pub windows: Windows,
    /// By flow; empty unless receivers report marks.
    pub notifications: Vec<NotificationPoint>,
    /// By host; empty unless they choose the first hops of their flows.
    pub sources: Vec<Source>,
    /// By flow; empty unless senders change the labels of their flows.
    pub labelled: Labelled,
    /// By flow: marked data packets since the last ACK or NACK that reported them; empty unless they are counted.
    pub echoes: Vec<u32>,
    pub gates: Waits,
    /// See [`Hosts::finds_extras`].
    pub extras: bool,
}

impl Hosts {
    pub fn new(plan: &Plan) -> Self {
        let labelled = Labelled::new(plan);
        let kind = &plan.transport.kind;
        let counts = plan.transport.retries.is_some() && !kind.traits().counts_retries;
        let mut hosts = Self {
            senders: table((0..plan.flows.len()).map(|f| SenderState::new(plan, f)).collect()),
            receivers: table(plan.flows.iter().map(|f| ReceiverState::new(plan, f)).collect()),
            arbiter: Arbiter::new(plan),
            own_senders: Senders::new(kind, &plan.congestion_control, starts(plan)),
            own_receivers: Receivers::new(kind, starts(plan)),
            attempts: vec![Attempts::default(); if counts { plan.flows.len() } else { 0 }],
            pulls: pull_queues(plan),
            credits: Credits::new(plan),
            controls: controls::new(plan),
            wants_acks: false,
            windows: Windows::default(),
            notifications: notification_points(plan),
            sources: sources(plan),
            echoes: vec![0; if labelled.counts_marks() { plan.flows.len() } else { 0 }],
            labelled,
            gates: Waits::new(&plan.gates),
            extras: false,
        };
        hosts.extras = hosts.finds_extras();
        hosts
    }

    /// Whether packets are more than sent, received in order and acknowledged.
    fn finds_extras(&self) -> bool {
        let none = !self.own_senders.used() && self.sources.is_empty() && !self.labelled.used();
        self.arbiter.is_some() || !none
    }

    /// The same, known at its beginning. Only packet-hops by flow without [`Features::EXTRAS`] have no code for it.
    #[inline(always)]
    pub fn has_extras<F: Features>(&self) -> bool {
        (F::EXTRAS || !F::BY_FLOW) && self.extras
    }
}
