//! The ends of all flows, and their rates.

use crate::host::controls::{self, Windows, notification_points};
use crate::host::flow::{ReceiverState, SenderState};
use crate::host::ndp::pull_queues;
use crate::host::rccc::Credits;
use crate::host::selective::{self, SelectiveReceiver, SelectiveSender};
use crate::host::sources::{Source, sources};
use crate::switch::balancing::Labelled;
use crate::{features::Features, indices::table, switch::arbiter::Arbiter};
use xoff_kernel::table::Table;
use xoff_plan::plan::{Plan, Waits};
use xoff_schemes::congestion_control::Controls;
use xoff_schemes::congestion_control::notification::NotificationPoint;
use xoff_schemes::transport::ndp::PullQueue;
use xoff_schemes::transport::{TransportKind, retries::Attempts};

pub struct Hosts {
    pub senders: Table<Vec<SenderState>>,
    pub receivers: Table<Vec<ReceiverState>>,
    /// Decides which of the senders may send, if there is one.
    pub arbiter: Option<Arbiter>,
    /// By flow; empty under go-back-N.
    pub selective_senders: Vec<SelectiveSender>,
    pub selective_receivers: Vec<SelectiveReceiver>,
    /// By flow: timeouts without progress. Empty without a limit, and under RUD, which counts by itself.
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
        let counts =
            plan.transport.retries.is_some() && !matches!(plan.transport.kind, TransportKind::Rud(_));
        let mut hosts = Self {
            senders: table((0..plan.flows.len()).map(|f| SenderState::new(plan, f)).collect()),
            receivers: table(plan.flows.iter().map(|f| ReceiverState::new(plan, f)).collect()),
            arbiter: Arbiter::new(plan),
            selective_senders: selective::senders(plan),
            selective_receivers: selective::receivers(plan),
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

    /// Whether the transport of the flow has found by itself that its sender must give up.
    pub fn gave_up(&self, flow: u32) -> bool {
        self.selective_senders.get(flow as usize).is_some_and(SelectiveSender::gave_up)
    }

    /// Whether packets are more than sent, received in order and acknowledged.
    fn finds_extras(&self) -> bool {
        let none = self.selective_senders.is_empty() && self.sources.is_empty() && !self.labelled.used();
        self.arbiter.is_some() || !none
    }

    /// The same, known at its beginning. Only packet-hops by flow without [`Features::EXTRAS`] have no code for it.
    #[inline(always)]
    pub fn has_extras<F: Features>(&self) -> bool {
        (F::EXTRAS || !F::BY_FLOW) && self.extras
    }
}
