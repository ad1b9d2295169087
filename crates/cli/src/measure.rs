//! `xoff size --measure`: the least memory of a link under each scheme, searched by simulation.
//!
//! Host `A` sends over switch `M`, the link and switch `N` to host `B`, and `B` sends to `A`, both at line rate, so
//! each control frame meets a packet just begun. The times at which packets begin, and the thresholds, vary.

use miette::miette;
use serde_json::{Value, json};
use xoff_net::human::grouped;
use xoff_net::units::{Bandwidth, Bytes, Length, Span};
use xoff_outcome::Outcome;
use xoff_plan::plan::Plan;
use xoff_plan::size::Question;
use xoff_plan::size::trial::{Case, Trial};
use xoff_results::table::Align::{Left, Right};
use xoff_results::table::{headed, paragraph, wrapped};

/// Packets that one simulation may send each way.
const MOST_PACKETS: u64 = 3_000_000;
/// Delay of the links of the hosts, in picoseconds.
const NEAR: u64 = 10_000;

/// How thorough a search is.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    /// Variations of the times and the threshold.
    pub phases: u64,
    /// The result is exact to this part of the formula.
    pub part: u64,
}

impl Effort {
    /// Of the command.
    pub const WHOLE: Self = Self { phases: 16, part: 1_000_000 };
}

/// What the simulations found about a memory of a scheme, for one priority.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Measured {
    /// Name of the scheme, as in `--scheme`.
    pub scheme: &'static str,
    /// The memory, such as `headroom`.
    pub memory: &'static str,
    /// Bytes by the formula.
    pub formula: u64,
    /// Most bytes in a headroom that is as large as by the formula; of a headroom only.
    pub watermark: Option<u64>,
    /// Fewest bytes with which no simulation lost a packet or waited, by bisection.
    pub least: u64,
    /// Number of simulations of the search.
    pub simulations: u32,
}

/// Searches the memories of a scheme on a link: what was found, or why nothing is searched. `go_on` is asked before
/// each simulation.
///
/// `None` if `go_on` ended the search.
///
/// # Errors
/// The link holds too many packets for a search.
pub fn measure(
    question: &Question,
    scheme: &'static str,
    distance: Length,
    effort: Effort,
    go_on: &mut dyn FnMut() -> bool,
) -> miette::Result<Option<Result<Vec<Measured>, String>>> {
    let trials = match question.trials(scheme, distance) {
        Ok(trials) => trials,
        Err(why) => return Ok(Some(Err(why))),
    };
    let mut found = Vec::new();
    for trial in &trials {
        let link = Link { question, delay: distance.delay(), trial };
        let packets = link.bytes_of(link.end(effort.phases)) / question.mtu.0;
        if packets > MOST_PACKETS {
            return Err(miette!(
                help = "choose a shorter distance, a lower rate or larger packets",
                "--measure would simulate {packets} packets each way for {scheme}; the maximum is {MOST_PACKETS}"
            ));
        }
        let Some(measured) = link.search(scheme, effort, go_on)? else { return Ok(None) };
        found.push(measured);
    }
    Ok(Some(Ok(found)))
}

/// The results in words: those that were found, and the schemes without a search.
pub fn render(found: &[Measured], left_out: &[(&str, String)]) -> String {
    let simulations: u32 = found.iter().map(|m| m.simulations).sum();
    let mut text = String::from("\n");
    if !found.is_empty() {
        text += &paragraph(&format!(
            "Measured in {simulations} simulations of the worst cases: with the least bytes no packet was lost and \
             no sender waited."
        ));
        text += &headed(
            ["scheme", "memory", "formula", "least", "spare", "watermark"],
            [Left, Left, Right, Right, Right, Right],
            found.iter().map(|m| {
                let spare = m.formula.saturating_sub(m.least) as f64 * 100.0 / m.formula.max(1) as f64;
                [
                    m.scheme.to_string(),
                    m.memory.to_string(),
                    format!("{} B", grouped(m.formula)),
                    format!("{} B", grouped(m.least)),
                    format!("{spare:.3}%"),
                    m.watermark.map_or_else(|| "–".to_string(), |bytes| format!("{} B", grouped(bytes))),
                ]
            }),
        );
    }
    for (scheme, why) in left_out {
        text += &wrapped("", "  ", &format!("{scheme} is not measured: {why}."));
    }
    text
}

/// As JSON; docs/SIZE.md has its keys.
pub fn json(found: &Measured) -> Value {
    json!({
        "scheme": found.scheme,
        "memory": found.memory,
        "formula_bytes": found.formula,
        "least_bytes": found.least,
        "watermark_bytes": found.watermark,
        "simulations": found.simulations,
    })
}

/// A link, and a memory of it.
struct Link<'q> {
    question: &'q Question,
    delay: Span,
    trial: &'q Trial,
}

impl Link<'_> {
    fn bytes_of(&self, time: u64) -> u64 {
        (u128::from(time) * u128::from(self.question.rate.0) / 8_000_000_000_000) as u64
    }

    fn time_of(&self, bytes: u64) -> u64 {
        (u128::from(bytes) * 8_000_000_000_000 / u128::from(self.question.rate.0)) as u64
    }

    /// A time in which the memory of the hosts' links fills.
    fn slack(&self) -> u64 {
        self.time_of(40 * self.question.mtu.0) + 1_000_000 + 2 * self.question.response_time.0
    }

    /// From the start until the receiver stops, or reads again: packets fill the link, and all memory, by then.
    fn lead(&self, phase: u64) -> u64 {
        let Self { delay, trial, .. } = *self;
        let packet = self.time_of(self.question.mtu.0).max(1);
        // Steps that have no common rhythm with the packets.
        let moved = phase * packet * 7 / 16;
        moved
            + match trial.case {
                Case::Stops => 2 * delay.0 + trial.period + self.slack(),
                Case::Runs => 0,
                Case::Resumes => 5 * delay.0 + trial.period + 3 * self.slack(),
            }
    }

    /// The end of the simulation.
    fn end(&self, phase: u64) -> u64 {
        let Self { delay, trial, .. } = *self;
        self.lead(phase)
            + self.slack()
            + match trial.case {
                Case::Stops => 5 * delay.0 + 3 * trial.period,
                Case::Runs => 8 * delay.0 + 6 * trial.period + 4 * self.slack(),
                Case::Resumes => 5 * delay.0 + trial.period,
            }
    }

    /// The scenario of a phase.
    fn plan(&self, phase: u64, bytes: u64) -> miette::Result<Plan> {
        let Question { rate, mtu, .. } = *self.question;
        let packet = self.time_of(mtu.0).max(1);
        let header = 62.min(mtu.0 - 1);
        let (end, lead) = (self.end(phase), self.lead(phase));
        let size = self.bytes_of(end) + mtu.0;
        let buffer = Bytes(8 * self.bytes_of(2 * self.delay.0) + 16 * self.trial.formula + 400 * mtu.0);
        let (rate, payload) = (Bandwidth(rate.0), mtu.0 - header);
        let (from, until) = match self.trial.case {
            Case::Stops => (lead, end + 1_000_000),
            Case::Runs => (0, 0),
            Case::Resumes => (0, lead),
        };
        let stall = match self.trial.case {
            Case::Runs => String::new(),
            _ => format!(
                "[[slow_receiver]]\nhost = \"B\"\nstall_from = \"{from}ps\"\nstall_until = \"{until}ps\"\n"
            ),
        };
        let text = format!(
            "[topology]\nkind = \"custom\"\nhosts = [\"A\", \"B\"]\nswitches = [\"M\", \"N\"]\nlinks = [\n\
             {{ a = \"A\", b = \"M\", rate = \"{rate}\", delay = \"{NEAR}ps\" }},\n\
             {{ a = \"M\", b = \"N\", rate = \"{rate}\", delay = \"{}ps\", long = true }},\n\
             {{ a = \"N\", b = \"B\", rate = \"{rate}\", delay = \"{NEAR}ps\" }},\n]\n\
             [switch]\nbuffer = \"{buffer}\"\n[host]\nbuffer = \"{buffer}\"\n\
             [transport]\nmtu = \"{payload}B\"\nheader = \"{header}B\"\nack_every = 1000000000\nrto = \"100s\"\n\
             [[traffic]]\nkind = \"flow\"\nsrc = \"A\"\ndst = \"B\"\nsize = \"{size}B\"\n\
             [[traffic]]\nkind = \"flow\"\nsrc = \"B\"\ndst = \"A\"\nsize = \"{size}B\"\nstart = \"{}ps\"\n\
             {stall}[run]\nduration = \"{end}ps\"\n{}",
            self.delay.0,
            phase * packet * 5 / 16,
            (self.trial.tables)(bytes, phase * mtu.0 / 16)
        );
        let files = |_: &std::path::Path| Err(std::io::Error::other("no files"));
        let loaded = xoff_plan::load("measure.toml", text.as_bytes(), &[], &files)?;
        Ok(loaded.plan)
    }

    /// Finds the least memory.
    fn search(
        &self,
        scheme: &'static str,
        effort: Effort,
        go_on: &mut dyn FnMut() -> bool,
    ) -> miette::Result<Option<Measured>> {
        let Trial { memory, case, formula, unit, .. } = *self.trial;
        let mut simulations = 0;
        let mut stopped = false;
        let mut run = |phase: u64, bytes: u64| -> miette::Result<(Outcome, u64)> {
            simulations += 1;
            stopped |= !go_on();
            let plan = self.plan(phase, bytes)?;
            let outcome = xoff_sim::run(&plan, &mut |_| !stopped);
            // What the hosts' memory holds does not hide that switch `N` waited.
            let last = plan.topology.ports.iter().position(|port| {
                let name = |node: u32| plan.topology.nodes[node as usize].name.as_str();
                name(port.node) == "N" && name(plan.topology.ports[port.peer as usize].node) == "B"
            });
            let packets = outcome.ports[last.expect("the scenario has this link")].data_packets;
            Ok((outcome, packets))
        };
        // Of each phase: bytes in a headroom, and packets that arrive with more than enough.
        let mut phases = Vec::new();
        for phase in 0..effort.phases {
            let (outcome, packets) = run(phase, if case == Case::Stops { formula } else { 2 * formula })?;
            let headroom = outcome.accounts.iter().map(|account| account.headroom).max().unwrap_or(0);
            phases.push((phase, headroom, packets));
        }
        // The worst phase first: the others then mostly need no search.
        phases.sort_by_key(|&(phase, headroom, _)| (std::cmp::Reverse(headroom), phase));
        let watermark = phases.first().map(|phase| phase.1).filter(|_| case == Case::Stops);
        let mut enough = |&(phase, _, ideal): &(u64, u64, u64), bytes: u64| -> miette::Result<bool> {
            let (outcome, packets) = run(phase, bytes)?;
            Ok(match case {
                Case::Stops => !outcome.drops.iter().any(|drop| drop.lossless),
                // The last packet may be just ending.
                Case::Runs | Case::Resumes => packets + 1 >= ideal,
            })
        };
        // In units.
        let mut least = self.trial.least.min(formula) / unit;
        for phase in &phases {
            if !enough(phase, formula)? {
                return Err(miette!(
                    "{memory} of {scheme} by the formula was too small, which is a bug in xoff"
                ));
            }
            if enough(phase, least * unit)? {
                continue;
            }
            // With `least` this phase loses packets or waits, with `high` it does not.
            let mut high = formula / unit;
            while high - least > (formula / effort.part / unit).max(1) {
                let middle = least.midpoint(high);
                if enough(phase, middle * unit)? { high = middle } else { least = middle }
            }
            least = high;
        }
        let least = least * unit;
        Ok((!stopped).then_some(Measured { scheme, memory, formula, watermark, least, simulations }))
    }
}
