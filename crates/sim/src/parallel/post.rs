//! Packets that go to another part of the run, and come from there.

use crate::parallel::outbox::{Outbox, RemoteEvent};
use crate::{core::Core, packet::Kind};
use xoff_kernel::time::Time;
use xoff_kernel::wheel::prefetch_to_write;

/// Events that are sent while the memory for another one comes from the other part's processor.
const AHEAD: usize = 8;

impl Core<'_> {
    /// A packet leaves for `port`, which another part may run.
    #[inline(never)]
    pub fn send_over(&mut self, time: Time, kind: u8, port: u32, id: u32) {
        let part = self.partition.of(self.egress.ports[port as usize].node);
        if part == self.part {
            return self.post(time, kind, port, id);
        }
        self.send_away(part, time, kind, port, id);
    }

    /// A packet leaves for `port`, which another part runs.
    #[inline]
    pub fn send_away(&mut self, part: usize, time: Time, kind: u8, port: u32, id: u32) {
        let mut packet = self.packets[id];
        if packet.kind == Kind::Control {
            let roots = self.blocking.as_ref().map(|oracle| oracle.roots_of(packet.number));
            let frame = self.take_frame(id);
            packet.number = self.outbox[part].frames.len() as u32;
            self.outbox[part].frames.push((frame, roots));
        } else if packet.kind.of_link() {
            self.packets.remove(id);
        } else {
            if self.telemetry.travels() {
                self.telemetry.pack(id, &mut self.outbox[part].telemetry);
            }
            if let Some(critical) = self.blocking.as_mut().and_then(|oracle| oracle.critical.as_mut()) {
                self.outbox[part].records.push(critical.take(id));
            }
            self.packets.remove(id);
        }
        let events = &mut self.outbox[part].events;
        events.push(RemoteEvent { time, kind, port, packet });
        // Two windows ago the other part read this memory.
        prefetch_to_write(events, events.len() + AHEAD);
    }

    pub fn receive(&mut self, post: &mut Outbox) {
        let mut records = post.records.drain(..);
        for letter in post.events.drain(..) {
            let mut packet = letter.packet;
            if packet.kind == Kind::Control {
                let (frame, roots) = post.frames[packet.number as usize];
                packet.number = self.frames.keep(frame);
                if let (Some(oracle), Some(roots)) = (&mut self.blocking, roots) {
                    oracle.keep(packet.number, roots);
                }
            }
            let id = self.packets.insert(packet);
            let bare = packet.kind == Kind::Control || packet.kind.of_link();
            if self.telemetry.travels() && !bare {
                self.telemetry.unpack(id, &mut post.telemetry);
            }
            if !bare
                && let Some(critical) = self.blocking.as_mut().and_then(|oracle| oracle.critical.as_mut())
            {
                critical.keep(id, records.next().flatten());
            }
            self.post(letter.time, letter.kind, letter.port, id);
        }
        post.frames.clear();
        post.telemetry.clear();
    }
}
