//! What switches note on packets that leave without having been in a queue of data, and the programs that mark.

use crate::axes::Marking;
use crate::axes::flow_control::Visit;
use crate::id::{ClassId, PortId, QueueId};
use crate::packet::{Hop, Kind, Packet, PacketId};
use crate::run::Core;
use crate::view::NodeView;

impl Core {
    /// A packet leaves the control queue of a port with queues, or passes it: what switches note on packets, and their programs.
    #[inline]
    pub(crate) fn leave_control(&mut self, port: u32, id: PacketId) {
        if self.switches.noted && self.pool.traced() {
            self.trace_noted(port, id);
        }
        if self.switches.noted && self.hosts.needs.telemetry && self.pool[id].kind == Kind::Data {
            let p = &self.ports[port as usize];
            let (sent, queued, mbps) = (p.tx_bytes, p.queued, self.wire.mbps[p.table as usize]);
            let hop = Hop::new(self.time.now, port, sent, queued.min(u32::MAX as u64) as u32, mbps);
            self.pool.push_hop(id, hop);
        }
        if !self.switches.markings.is_empty() {
            self.show_passing(port, id);
        }
    }

    /// A packet that came in by `in_port` goes on by `out` as if it had been in a queue for no time, and moves nothing in the books. `joins`: on
    /// the long way it would have joined the queue.
    #[cold]
    #[inline(never)]
    pub(crate) fn note_passing(&mut self, in_port: u32, out: u32, id: PacketId, joins: bool) {
        if self.pool.traced() {
            self.note_through(in_port, out, id, joins);
            self.trace_noted(out, id);
        }
        if self.hosts.needs.telemetry && self.pool[id].kind == Kind::Data {
            let p = &self.ports[out as usize];
            let hop = Hop::new(self.time.now, out, p.tx_bytes, 0, self.wire.mbps[p.table as usize]);
            self.pool.push_hop(id, hop);
        }
    }

    /// Shows a marking program what leaves by a port without having been in a queue of data.
    #[inline(never)]
    fn show_passing(&mut self, port: u32, id: PacketId) {
        let p = &self.ports[port as usize];
        let (node, base, out_port) = (p.node, p.base, PortId(p.local));
        let Packet { kind, in_port, class, size, .. } = self.pool[id];
        let (in_port, class) = (PortId(in_port), ClassId(class));
        let visit = Visit { packet: id, in_port, out_port, queue: QueueId(0), class, size };
        self.run_marking(node, base, |marking, at| match kind {
            Kind::Data => marking.dequeued(at, &visit),
            _ => marking.passed(at, out_port, size),
        });
    }

    /// Runs the marking program of a switch.
    #[inline(never)]
    pub(super) fn run_marking(&mut self, node: u32, base: u32, run: impl FnOnce(&mut dyn Marking, &mut NodeView<'_>)) {
        let Some(mut marking) = self.switches.markings.get_mut(node as usize).and_then(Option::take) else { return };
        run(&mut *marking, &mut NodeView::new(self, node, base));
        self.switches.markings[node as usize] = Some(marking);
    }
}
