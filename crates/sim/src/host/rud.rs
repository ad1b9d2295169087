//! The ends of flows under RUD: the state beside the common one of senders, and its timers.

use crate::packet::{Kind, Packet};
use crate::switch::telemetry::Beside;
use crate::{core::Core, host::rccc, host::selective::SelectiveReceiver, kind};
use xoff_kernel::time::Time;
use xoff_kernel::wheel::{Event, Wheel};
use xoff_plan::plan::Plan;
use xoff_schemes::congestion_control::seam::Departure;
use xoff_schemes::congestion_control::{CongestionControlParams, nscc_rccc::wanted, rccc::Source as Credit};
use xoff_schemes::transport::go_back_n::Sender;
use xoff_schemes::transport::rud::{Bitmap, RudParams, Source};

/// The sending end of a flow, beside its numbers.
#[derive(Clone, Debug)]
pub struct RudSender {
    params: RudParams,
    pub source: Source,
    /// Under RCCC, alone or beside a window.
    credit: Option<CreditOf>,
    /// The last NACK was of a packet in flight.
    pub trimmed: bool,
    /// Losses inferred from the last ACK.
    pub inferred: u32,
    /// The probe that leaves now.
    probe: Option<u32>,
    /// Time of the valid event. Others are obsolete.
    timer_at: Time,
}

/// The credit of a flow, and the sizes of its packets.
#[derive(Clone, Copy, Debug)]
struct CreditOf {
    source: Credit,
    full: u64,
    last: u64,
}

impl CreditOf {
    /// The credit_target of the packet that has just left.
    fn target(&self, numbers: &Sender, source: &Source) -> u32 {
        let new = match numbers.total - numbers.highest {
            0 => 0,
            packets => u64::from(packets - 1) * self.full + self.last,
        };
        let most = source.window().map_or(u64::MAX, |cwnd| wanted(cwnd, self.full));
        self.source.target(new, u64::from(source.waiting(numbers)) * self.full, most)
    }
}

impl RudSender {
    pub fn new(plan: &Plan, params: RudParams, flow: usize) -> Self {
        let window = plan.windows[flow].window;
        let credit = plan.congestion_control.rccc().map(|_| {
            let (size, full) = (plan.flows[flow].size, plan.packet.mtu + plan.packet.header);
            let last = plan.packet.wire_size(size, plan.packet.packets(size) - 1).into();
            CreditOf { source: Credit::new(rccc::largest(plan, flow), full), full: full.into(), last }
        });
        let source = match plan.congestion_control {
            CongestionControlParams::Rccc(_) => Source::new(window).without_window(),
            _ => Source::new(window),
        };
        Self { params, source, credit, trimmed: false, inferred: 0, probe: None, timer_at: Time::MAX }
    }

    /// Returns [`Packet::ahead`] of the packet.
    pub fn sent(&mut self, numbers: &mut Sender, wheel: &mut Wheel, now: Time, packet: Departure) -> [u8; 3] {
        let credit = self.credit.as_mut().is_none_or(|credit| {
            credit.source.spend(packet.size);
            credit.source.may_send()
        });
        let asks = self.source.on_sent(&self.params, numbers, (packet.psn, packet.again), credit, now);
        self.arm(numbers, wheel, now, packet.flow);
        let target = self.credit.as_ref().map_or(0, |credit| credit.target(numbers, &self.source));
        Packet::requests(asks, target)
    }

    /// An ACK with this beside it, a NACK, or credit. Returns whether `una` has advanced, or the sender gives up.
    pub fn on_response(
        &mut self,
        numbers: &mut Sender,
        wheel: &mut Wheel,
        now: Time,
        (answer, Beside { bits, credit: granted, .. }): (&Packet, Beside),
    ) -> bool {
        self.trimmed = answer.kind == Kind::Nack && self.source.on_nack(&self.params, numbers, answer.number);
        let progress = match answer.kind {
            Kind::Ack => self.source.on_ack(numbers, answer.number, Bitmap { first: answer.sacked(), bits }),
            Kind::ProbeAck => {
                self.source.on_ack(numbers, answer.number, Bitmap { first: answer.number + 1, bits })
            }
            _ => false,
        };
        self.inferred = match answer.kind {
            Kind::Ack if self.params.infers_losses => self.source.infer_losses(numbers),
            Kind::ProbeAck => {
                let lost = self.source.on_probe_ack(&self.params, numbers, answer.echoed(), now);
                lost + self.source.infer_losses(numbers)
            }
            _ => 0,
        };
        if let Some(probes) = self.params.probes
            && matches!(answer.kind, Kind::Ack | Kind::ProbeAck)
        {
            self.source.await_probe(probes, numbers, now);
        }
        if let Some(credit) = &mut self.credit {
            credit.source.on_answer(now);
            if self.inferred > 0 {
                credit.source.on_inferred_loss();
            }
            let granted = if answer.kind == Kind::Pull { Some(answer.number) } else { granted };
            granted.into_iter().for_each(|number| credit.source.on_credit(number));
            self.source.set_credit(numbers, credit.source.may_send());
        }
        if numbers.complete() {
            self.source.release();
        } else if self.source.gave_up() {
            numbers.give_up();
            return true;
        } else {
            self.arm(numbers, wheel, now, answer.flow);
        }
        progress
    }

    /// Returns the number of packets that are lost, or 1 if the sender had no answer.
    pub fn timeout(&mut self, numbers: &mut Sender, wheel: &mut Wheel, now: Time, flow: u32) -> u32 {
        if now != self.timer_at || numbers.complete() {
            return 0;
        }
        self.timer_at = Time::MAX;
        self.probe = self.params.probes.and_then(|probes| self.source.take_probe(probes, now));
        let mut lost = self.source.on_time(&self.params, numbers, now);
        if self.source.gave_up() {
            return lost;
        }
        let silent = self.silence().is_some_and(|at| at <= now);
        if let Some(credit) = &mut self.credit
            && (silent || lost > 0)
        {
            credit.source.on_timeout(now);
            self.source.set_credit(numbers, credit.source.may_send());
            lost = lost.max(1);
        }
        self.arm(numbers, wheel, now, flow);
        lost
    }

    /// The probe that leaves now, after [`RudSender::timeout`].
    pub fn take_probe(&mut self) -> Option<u32> {
        self.probe.take()
    }

    /// When a sender without credit, and with nothing in flight, has waited too long.
    fn silence(&self) -> Option<Time> {
        let credit = self.credit.as_ref().filter(|_| self.source.in_flight() == 0)?;
        credit.source.deadline(|times| self.params.timeout(times))
    }

    /// Sees to it that an event comes at the deadline or before.
    fn arm(&mut self, numbers: &Sender, wheel: &mut Wheel, now: Time, flow: u32) {
        let probe = self.source.probe_due().map(|due| due.max(now));
        let deadlines = [self.source.deadline(numbers), self.silence(), probe];
        if let Some(deadline) = deadlines.into_iter().flatten().min()
            && deadline < self.timer_at
        {
            self.timer_at = deadline;
            wheel.push(Event::new(deadline, kind::TIMEOUT, flow, 0));
        }
    }
}

impl Core<'_> {
    /// The sender sends a probe. Returns the port to kick.
    #[cold]
    pub fn send_probe(&mut self, flow: u32, number: u32) -> u32 {
        let sender = &self.hosts.senders[flow as usize];
        let (path, lane, port) = (sender.path, sender.lane, sender.port);
        let id =
            self.packets.insert(Packet::new(Kind::Probe, flow, number, self.plan.packet.ack, lane, path));
        self.telemetry.begin(id, self.now);
        self.enqueue_own(port, lane, id);
        port
    }

    /// A probe has reached its receiver, which acknowledges it. Returns the port to kick.
    #[inline(never)]
    pub fn receive_probe(&mut self, id: u32) -> u32 {
        let probe = self.packets[id];
        let ends = &self.hosts.receivers[probe.flow as usize];
        let (path, lane) = (ends.ack_path, ends.ack_lane);
        let SelectiveReceiver::Rud(receiver) = &self.hosts.selective_receivers[probe.flow as usize] else {
            unreachable!("only RUD probes")
        };
        let (expected, bits) = (receiver.expected, receiver.names(receiver.expected).bits);
        let mut ack = Packet::new(Kind::ProbeAck, probe.flow, expected, self.plan.packet.ack, lane, path);
        ack.ahead = Packet::three_bytes(probe.number);
        self.packets[id] = ack;
        self.telemetry.keep_bits(id, bits);
        let port = self.hops[path as usize];
        self.enqueue_own(port, lane, id);
        port
    }
}
