//! How a flow's first hop is chosen when it begins.

use crate::{core::Core, host::controls::line_rate};

impl Core<'_> {
    /// A data packet of `size` bytes leaves its source by `port`.
    #[inline(never)]
    pub fn note_sent(&mut self, port: u32, size: u32) {
        let Some(ate) = &self.plan.ate else { return };
        let source = &mut self.hosts.sources[self.egress.ports[port as usize].node as usize];
        if port == source.high {
            source.weight.sent(&ate.params, self.now, size);
            source.report.high_bytes += u64::from(size);
        } else {
            source.report.other_bytes += u64::from(size);
        }
    }

    /// A flow begins, which is in no ring: its source chooses its first hop, if there are two.
    #[cold]
    pub fn choose_first_hop(&mut self, flow: u32) {
        let Some(ate) = &self.plan.ate else { return };
        let f = &self.plan.flows[flow as usize];
        let source = &mut self.hosts.sources[f.src as usize];
        let headers = self.plan.packet.packets(f.size) * u64::from(self.plan.packet.header);
        source.report.offered_bytes += f.size + headers;
        let [high, other] = ate.routes[flow as usize];
        if high == other {
            return;
        }
        let random = source.choices.unit();
        let goes_high = source.weight.choose(&ate.params, self.now, random);
        source.report.chosen[usize::from(!goes_high)] += 1;
        let path = if goes_high { high } else { other };
        self.set_data_route(flow, path);
        self.restart_control(flow, line_rate(self.plan, self.hops[path as usize], f.pace));
    }
}
