//! Tagger (Hu et al., *Tagger: Practical PFC Deadlock Prevention in Data Center Networks*, CoNEXT 2017): PFC
//! whose packets carry a tag, which is their priority.
//!
//! A device rewrites a packet's tag by its tag of arrival, its ingress and its egress:
//!
//! ```text
//!   tag of arrival ──► ingress account, which the PAUSE to the previous hop names
//!        │
//!        │ rule (tag, ingress, egress)
//!        ▼
//!   new tag ──► egress queue, which the next hop's PAUSE stops
//! ```
//!
//! So a packet waits only for queues of its own tag or of higher ones. If the rule makes the tag grow before
//! a route can close a cycle, no cycle of pauses can form. A packet whose tag would grow beyond the last
//! lossless one continues permanently in a lossy priority: it is dropped, not paused.
//!
//! The rules:
//!
//! - *bounce*: the tag grows where a packet that came down goes up again. Up is away from the hosts: towards
//!   the node whose shortest path to a host is longer, or among equals towards the one with the higher
//!   number. In a Clos network that is Tagger's rule: one bounce needs two lossless priorities. The order of
//!   nodes makes it hold everywhere, as in up*/down* routing: between growths a route goes up, then down.
//! - *hop*: the tag grows at every device but where a switch sends to a host. So it counts the switches that
//!   a packet comes to, whether directly or over a host that relays. Cao et al. (2026) compare with this as
//!   PFC*, and leave the number of priorities open (`portfc.pfc-star`); in an NDC(n, k) it is k + 1: the tag
//!   is 0 before the first relay and 1 behind it.
//!
//! Everything else is [`super::pfc`]: thresholds, headroom and pauses of each tag.

pub mod keys;

use super::pfc::{Pfc, PfcParams};
use super::{FlowControl, LaneRules, Parameters, Seen, Traits};
use xoff_net::human;
use xoff_net::units::Span;
use xoff_outcome::report::{Level, Note, Ran};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaggerParams {
    pub pfc: PfcParams,
    /// How tags grow: to the next one, of the last lossless one and of lossy lanes to a lossy one.
    pub tags: LaneRules,
    /// Lossless tags of a packet, its first one included; at least 1.
    pub lossless: u8,
    /// The number of tags that the routes of the run need; 8 means more than there are.
    pub needed: u8,
    /// As many as all shortest paths between hosts of the intact network need, 8
    /// likewise; `None` where they are too many to look at.
    pub all_routes: Option<u8>,
    /// The lane of packets whose tag has grown beyond the last lossless one.
    pub lossy: u8,
}

impl Parameters for TaggerParams {
    fn traits(&self) -> Traits {
        Traits::of_pfc(&self.pfc)
    }

    fn pfc(&self) -> Option<&PfcParams> {
        Some(&self.pfc)
    }

    fn lane_rules(&self) -> Option<&LaneRules> {
        Some(&self.tags)
    }

    fn describe(&self, seen: &Seen<'_>) -> String {
        let shown = |n: u8| if n < 8 { n.to_string() } else { "8 or more".to_string() };
        format!(
            "(lossless tags of a packet: {}, then lossy priority {}; {} quanta, response time {})\n  \
             lossless tags needed: {} by the routes of this scenario, {} by all shortest paths between hosts",
            self.lossless,
            seen.lanes[usize::from(self.lossy)].priority,
            self.pfc.quanta,
            Span(self.pfc.response_time),
            shown(self.needed),
            self.all_routes.map_or("an unknown number (too many paths)".to_string(), shown)
        )
    }

    fn notes(&self, ran: &Ran<'_>) -> Vec<Note> {
        if self.needed <= self.lossless {
            return Vec::new();
        }
        let (dropped, _) = ran.dropped_if(|d| d.lane == self.lossy && d.reason.for_want_of_room());
        let help = match self.needed {
            8 => "The maximum is 7: shorten the routes, or set flow_control.rule = \"bounce\".".into(),
            n => format!("To keep them lossless, set flow_control.lossless = {n}."),
        };
        let text = format!(
            "Some packets were lossy: the routes need {} lossless tags, and packets have {}. They continued in \
             priority {} ({} dropped there).",
            self.needed,
            self.lossless,
            ran.priorities[usize::from(self.lossy)],
            human::counted(dropped, "packet"),
        );
        vec![Note::new(Level::Warning, text).help(help)]
    }

    fn start(&self, ports: usize, priorities: &[u8]) -> FlowControl {
        FlowControl::Pfc(Pfc::new(self.pfc, ports, priorities))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_grows_from_one_turn_to_another_and_ends_in_a_lossy_lane() {
        // Ports 0 and 1 lead up, 2 down; lanes: two tags and the lossy one.
        let both = LaneRules::IN | LaneRules::OUT;
        let tags = LaneRules { turns: vec![both, both, 0], next: vec![1, 2, 2] };
        let lanes = |ingress, egress| [0, 1, 2].map(|lane| tags.onward(lane, ingress, egress));
        assert_eq!(lanes(0, 1), [1, 2, 2]); // down and up again
        assert_eq!(lanes(1, 0), [1, 2, 2]);
        for straight in [(0, 2), (2, 0), (2, 2)] {
            assert_eq!(lanes(straight.0, straight.1), [0, 1, 2]);
        }
    }
}
