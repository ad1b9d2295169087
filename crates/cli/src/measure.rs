//! `xoff size --measure`: the headroom that pauses of priorities need on a link, searched by simulation. A
//! scenario without `[flow_control]` has that scheme.
//!
//! Host `A` sends at line rate over the link to a switch, and on to host `B`, which stops reading for ever. So the
//! switch pauses `A`, and everything that still arrives must fit the headroom. Host `B` sends to `A` at line rate, so
//! that the pause frame meets a packet just begun. The times at which packets begin, and the XOFF threshold, vary.

use miette::miette;
use xoff_net::human::grouped;
use xoff_net::units::{Bandwidth, Bytes, Length, Span};
use xoff_plan::plan::Plan;
use xoff_plan::size::Question;

/// Packets that one simulation may send each way.
const MOST_PACKETS: u64 = 3_000_000;
/// Variations of the times and the threshold.
const PHASES: u64 = 16;
const XOFF: u64 = 100_000;
/// Simulations of a search: two for each phase, and one for each halving of some megabytes.
pub const ABOUT: u32 = 56;

/// What the simulations found, for one priority.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Measured {
    /// Headroom by the formula, in bytes.
    pub formula: u64,
    /// Most bytes that a headroom as large as by the formula held.
    pub watermark: u64,
    /// Fewest bytes with which no simulation lost a packet, by bisection.
    pub least: u64,
    pub simulations: u32,
}

/// Searches the worst case of a link. `go_on` is asked before each simulation, with its number.
///
/// `None` if `go_on` ended the search.
///
/// # Errors
/// The link holds too many packets for a search.
pub fn measure(
    question: &Question,
    distance: Length,
    go_on: &mut dyn FnMut(u32) -> bool,
) -> miette::Result<Option<Measured>> {
    let link = Link { question, delay: distance.delay() };
    let formula = headroom(&link.plan(0, None)?);
    let packets = (4 * formula + link.bytes_of(link.lead())) / question.mtu.0;
    if packets > MOST_PACKETS {
        return Err(miette!(
            help = "choose a shorter distance, a lower rate or larger packets",
            "--measure would simulate {packets} packets each way; the maximum is {MOST_PACKETS}"
        ));
    }
    let mut simulations = 0;
    let mut stopped = false;
    let mut run = |phase: u64, room: u64| -> miette::Result<(u64, bool)> {
        simulations += 1;
        stopped |= !go_on(simulations);
        if stopped {
            return Ok((0, false));
        }
        let outcome = xoff_sim::run(&link.plan(phase, Some(room))?, &mut |_| true);
        let peak = outcome.accounts.iter().map(|account| account.headroom).max().unwrap_or(0);
        Ok((peak, outcome.drops.iter().any(|drop| drop.lossless)))
    };
    let mut peaks = Vec::new();
    for phase in 0..PHASES {
        let (peak, lost) = run(phase, formula)?;
        if lost {
            return Err(miette!("the headroom by the formula lost a packet, which is a bug in xoff"));
        }
        peaks.push((peak, phase));
    }
    // The worst phase first: the others then mostly need no search.
    peaks.sort_by_key(|&(peak, phase)| (std::cmp::Reverse(peak), phase));
    let watermark = peaks[0].0;
    let mut least = 0;
    for &(_, phase) in &peaks {
        if !run(phase, least)?.1 {
            continue;
        }
        // With `least` this phase loses packets, with `high` it does not.
        let mut high = formula;
        while high - least > 1 {
            let middle = least + (high - least) / 2;
            match run(phase, middle)?.1 {
                true => least = middle,
                false => high = middle,
            }
        }
        least = high;
    }
    Ok((!stopped).then_some(Measured { formula, watermark, least, simulations }))
}

/// The result in words.
pub fn render(found: &Measured) -> String {
    let Measured { formula, watermark, least, simulations } = *found;
    let spare = formula.saturating_sub(least);
    let share = spare as f64 * 100.0 / formula.max(1) as f64;
    format!(
        "\nMeasured in {simulations} simulations: the headroom by the formula is {} B ({share:.3}%) more than the \
         worst case needs, and no packet was lost.\n  {:>14} B  formula\n  {:>14} B  watermark: most bytes in a headroom of \
         that size\n  {:>14} B  least headroom that lost no packet\n",
        grouped(spare),
        grouped(formula),
        grouped(watermark),
        grouped(least)
    )
}

/// The headroom of the account at the far end of the link, by the formula.
fn headroom(plan: &Plan) -> u64 {
    plan.accounts
        .iter()
        .filter_map(|account| account.headroom.as_ref())
        .map(|room| room.total)
        .max()
        .unwrap_or(0)
}

struct Link<'q> {
    question: &'q Question,
    delay: Span,
}

impl Link<'_> {
    fn bytes_of(&self, time: u64) -> u64 {
        (u128::from(time) * u128::from(self.question.rate.0) / 8_000_000_000_000) as u64
    }

    fn time_of(&self, bytes: u64) -> u64 {
        (u128::from(bytes) * 8_000_000_000_000 / u128::from(self.question.rate.0)) as u64
    }

    /// From the start until the receiver stops reading, in picoseconds: packets fill the link by then.
    fn lead(&self) -> u64 {
        2 * self.delay.0 + self.time_of(20 * self.question.mtu.0) + 1_000_000
    }

    /// The scenario of a phase.
    fn plan(&self, phase: u64, room: Option<u64>) -> miette::Result<Plan> {
        let Question { rate, mtu, response_time, .. } = self.question;
        let packet = self.time_of(mtu.0).max(1);
        let header = 62.min(mtu.0 - 1);
        let xoff = XOFF + phase * mtu.0 / PHASES;
        // Steps that have no common rhythm with the packets.
        let stall = self.lead() + phase * packet * 7 / 16;
        let reverse = phase * packet * 5 / 16;
        let end =
            stall + 2 * self.delay.0 + 2 * response_time.0 + self.time_of(4 * XOFF + 20 * mtu.0) + 1_000_000;
        let size = self.bytes_of(end) + mtu.0;
        let room = room.map_or("\"auto\"".to_string(), |bytes| format!("\"{bytes}B\""));
        let buffer = Bytes(4 * self.bytes_of(2 * self.delay.0 + response_time.0) + 100 * XOFF);
        let (rate, delay, payload) = (Bandwidth(rate.0), self.delay, mtu.0 - header);
        let text = format!(
            "[topology]\nkind = \"custom\"\nhosts = [\"A\", \"B\"]\nswitches = [\"S\"]\nlinks = [\n\
             {{ a = \"A\", b = \"S\", rate = \"{rate}\", delay = \"{delay}\" }},\n\
             {{ a = \"S\", b = \"B\", rate = \"{rate}\", delay = \"0ps\" }},\n]\n\
             [switch]\nbuffer = \"{buffer}\"\n[host]\nbuffer = \"{buffer}\"\n\
             [flow_control]\nxoff = \"{xoff}B\"\nxon = \"1B\"\nheadroom = {room}\nresponse_time = \"{response_time}\"\n\
             [transport]\nmtu = \"{payload}B\"\nheader = \"{header}B\"\nack_priority = 0\n\
             [[traffic]]\nkind = \"flow\"\nsrc = \"A\"\ndst = \"B\"\nsize = \"{size}B\"\n\
             [[traffic]]\nkind = \"flow\"\nsrc = \"B\"\ndst = \"A\"\nsize = \"{size}B\"\nstart = \"{}\"\n\
             [[slow_receiver]]\nhost = \"B\"\nstall_from = \"{}\"\nstall_until = \"{}\"\n\
             [run]\nduration = \"{}\"\n",
            Span(reverse),
            Span(stall),
            Span(end + 1_000_000),
            Span(end)
        );
        let files = |_: &std::path::Path| Err(std::io::Error::other("no files"));
        let loaded = xoff_plan::load("measure.toml", text.as_bytes(), &[], &files)?;
        Ok(loaded.plan)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_search_can_be_ended_and_refused() {
        let question = Question::new(Bandwidth(400_000_000_000));
        assert_eq!(measure(&question, Length(50_000), &mut |n| n < 20).unwrap(), None);
        assert!(measure(&question, Length(2_000_000_000), &mut |_| true).is_err());
    }

    #[test]
    fn the_formula_is_the_worst_case_of_the_simulations() {
        for (rate, metres, response) in
            [(400_000_000_000, 50, 0), (100_000_000_000, 1_000, 1_000_000), (25_000_000_000, 5, 500_000)]
        {
            let question = Question { response_time: Span(response), ..Question::new(Bandwidth(rate)) };
            let found = measure(&question, Length(metres * 1_000), &mut |_| true).unwrap().unwrap();
            let packet = question.mtu.0;
            assert!(found.watermark <= found.formula && found.least <= found.formula, "{found:?}");
            // Nothing is added for safety: the worst case is within one packet of it.
            assert!(found.least + packet >= found.formula, "{found:?}");
            assert!(found.least <= found.watermark + packet, "{found:?}");
        }
    }
}
