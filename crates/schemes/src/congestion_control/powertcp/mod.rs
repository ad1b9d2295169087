//! PowerTCP (Addanki, Michel and Schmid, *PowerTCP: Pushing the Performance Limits of Datacenter Networks*, NSDI
//! 2022), in its form with telemetry.
//!
//! Packets and ACKs carry telemetry as under [HPCC](super::hpcc): the state of each link by which a device has
//! forwarded the packet. From the last state and the new one the sender computes the *power* of each link: the
//! current λ, at which bytes arrive, times the voltage ν, the bytes that wait and a BDP. With the rate b of a
//! link and the base round-trip time τ:
//!
//! ```text
//!   NormPower(ack):
//!     for each link i:  dt = ack.ts − prev.ts
//!                       q' = (ack.qlen − prev.qlen)/dt,  μ = (ack.txBytes − prev.txBytes)/dt
//!                       λ = q' + μ,  ν = ack.qlen + b·τ,  Γ' = λ·ν/(b²·τ)
//!     Γ = the largest Γ',  Δt = dt of that link
//!     Γ_smooth = (Γ_smooth·(τ − Δt) + Γ·Δt)/τ
//!   NewAck(ack):
//!     cwnd_old = cwnd when the acknowledged packet was sent
//!     cwnd = γ·(cwnd_old/Γ_smooth + β) + (1 − γ)·cwnd
//!     rate = cwnd/τ,  prev = ack
//! ```
//!
//! Here everything is written for the rate, so that cwnd is rate·τ and β is the line rate over N, the expected
//! flows. The paper's text was not available: the algorithm is that of the authors' group's implementation for
//! Linux, except for cwnd_old. That implementation describes it as above, and uses the last cwnd that it remembered,
//! which is up to a round trip too new: with it two flows oscillated here. As there, Γ_smooth begins with the first Γ, Δt is at most τ, the rate begins at the line rate and never
//! exceeds it, and N is 10. One cwnd of each round trip is remembered, that of its first ACK: packets that are sent
//! until the first of them is acknowledged count as sent with it. The minimum rate is that of the other controls here. The first ACK of a flow only fills
//! prev, and so does the first one whose packet took another path.

mod keys;

pub use keys::PowerTcpKeys;

use super::seam::{self, Answer, Departure, Parameters};
use super::telemetry::{Hop, same_way};
use super::{Step, gap_at};
use std::fmt::{self, Write};
use xoff_kernel::time::{SECOND, Time};
use xoff_net::units::{Bytes, Span};

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PowerTcpParams {
    /// γ, the weight of the newest window; above 0, at most 1.
    pub gamma: f64,
    /// N: β is the line rate times τ over it.
    pub flows: u32,
    pub minimum_rate: Step,
    /// τ, in picoseconds, above 0.
    pub base_rtt: Time,
    /// Most hops in a packet's telemetry.
    pub hops: u8,
    /// Bytes of telemetry in each data packet and in each ACK; they are part of the packets' sizes.
    pub telemetry: u32,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Sender {
    /// cwnd/τ, in bits per second.
    rate: f64,
    /// cwnd_old/τ, of the packets that are being acknowledged.
    old: f64,
    /// The same of the packets that are being sent.
    new: f64,
    line: f64,
    smooth: Option<f64>,
    last_update: u32,
    /// prev. It takes no memory before the first ACK.
    last: Vec<Hop>,
}

impl Sender {
    /// A flow that starts at its line rate, in bits per second.
    pub fn new(line: u64) -> Self {
        let line = line as f64;
        Self { rate: line, old: line, new: line, line, smooth: None, last_update: 0, last: Vec::new() }
    }

    /// In bits per second.
    pub fn rate(&self) -> f64 {
        self.rate
    }

    /// Picoseconds that the next packet must wait after one of `size` wire bytes; `None` at line rate.
    pub fn on_sent(&self, size: u32) -> Option<Time> {
        (self.rate < self.line).then(|| gap_at(size, self.rate))
    }

    /// An ACK or NACK has arrived: all packets below `acknowledged` are acknowledged, `next` will be sent
    /// next, and its data packet came by `hops`.
    pub fn on_response(&mut self, params: &PowerTcpParams, acknowledged: u32, next: u32, hops: &[Hop]) {
        if !same_way(&self.last, hops) {
            self.last.clear();
            self.last.extend_from_slice(hops);
            self.last_update = next.max(acknowledged);
            return;
        }
        let Some((power, over)) = self.power(params, hops) else { return };
        self.last.copy_from_slice(hops);
        let round = acknowledged > self.last_update;
        if round {
            self.old = self.new;
        }
        let share = over.min(params.base_rtt) as f64 / params.base_rtt as f64;
        let smooth = self.smooth.map_or(power, |old| old * (1.0 - share) + power * share);
        self.smooth = Some(smooth);
        let newest = self.old / smooth + self.line / f64::from(params.flows);
        let least = params.minimum_rate.of(self.line).min(self.line);
        // Without power on the whole path the quotient is infinite.
        self.rate = (params.gamma * newest + (1.0 - params.gamma) * self.rate).clamp(least, self.line);
        if round {
            self.new = self.rate;
            self.last_update = next.max(acknowledged);
        }
    }

    /// Γ and its time; `None` if no time has passed on any link.
    fn power(&self, params: &PowerTcpParams, hops: &[Hop]) -> Option<(f64, Time)> {
        let mut most: Option<(f64, Time)> = None;
        for (new, old) in hops.iter().zip(&self.last) {
            let Some(dt) = new.at.checked_sub(old.at).filter(|&dt| dt > 0) else { continue };
            // Bytes per picosecond.
            let b = new.rate as f64 / (8.0 * SECOND as f64);
            let arrived = new.sent as f64 - old.sent as f64 + new.queued as f64 - old.queued as f64;
            let current = (arrived / dt as f64).max(0.0);
            let bdp = b * params.base_rtt as f64;
            let power = current * (new.queued as f64 + bdp) / (b * bdp);
            if most.is_none_or(|(least, _)| power > least) {
                most = Some((power, dt));
            }
        }
        most
    }

    pub fn release(&mut self) {
        self.last = Vec::new();
    }
}

impl seam::Sender for Sender {
    type Params = PowerTcpParams;

    fn new(_: &PowerTcpParams, line: u64) -> Self {
        Self::new(line)
    }

    fn rate_at(&self, _: &PowerTcpParams, _: Time) -> f64 {
        self.rate()
    }

    #[inline(never)]
    fn on_sent(&mut self, _: &PowerTcpParams, _: Time, packet: Departure) -> Option<Time> {
        Self::on_sent(self, packet.size)
    }

    fn on_answer(&mut self, params: &PowerTcpParams, _: Time, answer: &Answer<'_>) {
        if answer.complete {
            return self.release();
        }
        if let Some(hops) = answer.whole_path() {
            self.on_response(params, answer.una, answer.next, hops);
        }
    }

    fn release(&mut self) {
        self.release();
    }
}

impl Parameters for PowerTcpParams {
    fn hops(&self) -> Option<u8> {
        Some(self.hops)
    }

    fn describe(&self, out: &mut String, head: &str, _: bool) -> fmt::Result {
        let (telemetry, hops) = (Bytes(self.telemetry.into()), self.hops);
        writeln!(out, "{head}powertcp ({telemetry} of telemetry in each packet and ACK, for {hops} hops)")?;
        writeln!(
            out,
            "  gamma {}, tau {}, {} expected flows; never below {}",
            self.gamma,
            Span(self.base_rtt),
            self.flows,
            self.minimum_rate
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const US: Time = 1_000_000;
    const LINE: u64 = 100_000_000_000;

    fn params() -> PowerTcpParams {
        PowerTcpParams {
            gamma: 0.9,
            flows: 10,
            minimum_rate: Step::Rate(1_000_000_000),
            base_rtt: 10 * US,
            hops: 5,
            telemetry: 42,
        }
    }

    /// At 100 Gbit/s a link sends 12,500 B in 1 us, and b·τ is 125,000 B.
    fn hop(port: u32, at: Time, sent: u64, queued: u64) -> Hop {
        Hop { at, sent, queued, rate: LINE, port }
    }

    fn near(a: f64, b: f64) {
        assert!((a - b).abs() < 1e-9 * b.abs().max(1.0), "{a} instead of {b}");
    }

    /// By hand. τ = 10 us, two links, β is 10 Gbit/s.
    ///
    /// - The first ACK fills prev.
    /// - 5 us later link 1 has sent 31,250 B: Γ' = 0.5. Link 2 has sent all of 62,500 B, and its queue has
    ///   grown from 0 to 62,500 B: λ = 2b, ν = 1.5·b·τ, Γ' = 3. Γ_smooth = 3: 0.9·(100/3 + 10) + 0.1·100 = 49.
    /// - 5 us later link 2 sends as fast, its queue stands: Γ' = 1.5. Γ_smooth = (3·5 + 1.5·5)/10 = 2.25. The packet
    ///   was sent at 100: 0.9·(100/2.25 + 10) + 0.1·49 = 53.9. This ACK begins a round trip, of packets sent at 53.9.
    /// - 20 us later the queue is empty, and link 2 has sent 125,000 B: λ = (125,000 − 62,500)/20 us = 0.25·b,
    ///   Γ' = 0.25. Link 1 has sent 100,000 B of 250,000: 0.4. Δt is at most τ: Γ_smooth = 0.4: the rate is the
    ///   line rate.
    #[test]
    fn the_rate_follows_the_algorithm() {
        let p = params();
        let mut s = Sender::new(LINE);
        s.on_response(&p, 1, 100, &[hop(1, 0, 1_000, 0), hop(2, 0, 2_000, 0)]);
        near(s.rate(), 1e11);
        s.on_response(&p, 50, 150, &[hop(1, 5 * US, 32_250, 0), hop(2, 5 * US, 64_500, 62_500)]);
        near(s.smooth.unwrap(), 3.0);
        near(s.rate(), 49e9);
        s.on_response(&p, 101, 200, &[hop(1, 10 * US, 63_500, 0), hop(2, 10 * US, 127_000, 62_500)]);
        near(s.smooth.unwrap(), 2.25);
        near(s.rate(), 53.9e9);
        assert_eq!((s.old, s.new), (1e11, s.rate));
        s.on_response(&p, 150, 230, &[hop(1, 30 * US, 163_500, 0), hop(2, 30 * US, 252_000, 0)]);
        near(s.smooth.unwrap(), 0.4);
        near(s.rate(), 1e11);
        // The next ACK is that of a packet sent at 53.9: 0.9·(53.9/0.4 + 10) + 10 is more than the line.
        s.on_response(&p, 201, 300, &[hop(1, 40 * US, 213_500, 0), hop(2, 40 * US, 302_000, 0)]);
        near(s.smooth.unwrap(), 0.4);
        near(s.old, 53.9e9);
        near(s.new, 1e11);
    }

    /// With a queue of n·β at the one link of n flows, Γ is (n·β + b·τ)/(b·τ), and cwnd = cwnd_old/Γ + β has the
    /// fixed point (n·β + b·τ)/n.
    #[test]
    fn the_queue_of_the_equilibrium_keeps_the_rate() {
        let p = params();
        // Four flows: each has a quarter, and 4·12,500 B wait.
        let mut s = Sender { rate: 35e9, old: 35e9, new: 35e9, ..Sender::new(LINE) };
        s.on_response(&p, 1, 10, &[hop(1, 0, 0, 50_000)]);
        for i in 1..50u64 {
            let at = i * 10 * US;
            s.on_response(&p, i as u32 * 10, i as u32 * 10 + 9, &[hop(1, at, i * 125_000, 50_000)]);
        }
        // rate·τ covers the share of the link and of its queue: (125,000 + 50,000)/4 B.
        near(s.rate(), 35e9);
    }

    /// Another path, an ACK without newer times, and links where nothing arrives.
    #[test]
    fn incomparable_telemetry_changes_nothing() {
        let p = params();
        let mut s = Sender::new(LINE);
        s.on_response(&p, 1, 10, &[hop(1, 0, 0, 500_000)]);
        s.on_response(&p, 2, 11, &[hop(7, 9 * US, 112_500, 500_000)]);
        near(s.rate(), 1e11);
        assert_eq!((s.last[0].port, s.last_update), (7, 11));
        s.on_response(&p, 12, 20, &[hop(7, 9 * US, 112_500, 500_000)]);
        assert_eq!(s.smooth, None);
        s.on_response(&p, 13, 20, &[hop(7, 19 * US, 237_500, 500_000)]);
        near(s.smooth.unwrap(), 5.0);
        near(s.rate(), 0.9 * (1e11 / 5.0 + 1e10) + 0.1 * 1e11);
        assert_eq!(s.on_sent(1_000), Some(gap_at(1_000, s.rate())));
        // Nothing arrives for so long that the power is 0.
        s.on_response(&p, 14, 20, &[hop(7, 99 * US, 237_500, 500_000)]);
        near(s.rate(), 1e11);
        s.release();
        assert_eq!(s.last.capacity(), 0);
    }
}
