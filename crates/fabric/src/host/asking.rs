//! NICs that ask the transport at every flow they come past, because what it says changes with the asking.

use crate::axes::flow_control::FlowControl;
use crate::id::FlowId;
use crate::run::Network;
use engine::Time;

impl<F: FlowControl> Network<F> {
    /// The flow whose turn it is, or none. Places of flows that are over are not looked at again.
    pub(super) fn ask_flows(&mut self, nic: u32) -> Option<u32> {
        let (hosts, now) = (&mut self.core.hosts, self.core.time.now);
        let n = &mut hosts.nics[nic as usize];
        let (count, paused) = (n.flows.len() as u32, self.core.ports[n.port as usize].paused);
        for place in (1..=count).map(|step| (n.last + step) % count) {
            if n.spent.has(place) {
                continue;
            }
            let flow = n.flows[place as usize];
            let s = &mut hosts.senders[flow as usize];
            let within = s.next.wrapping_sub(s.acked) < s.window && s.held == 0;
            let may = self.transport.passing(FlowId(flow), s, now) && within && s.backlogged();
            n.backlogged.set(place, s.backlogged());
            if !may && s.done() {
                n.finished.set(place, false);
                n.spent.set(place, true);
            }
            if may && paused >> s.class & 1 == 0 && s.due <= now {
                n.last = place;
                return Some(flow);
            }
        }
        None
    }

    /// Nothing can be sent now: look again when the first of the flows that are not due is.
    pub(super) fn ask_for_wake(&mut self, nic: u32) {
        let (hosts, now) = (&mut self.core.hosts, self.core.time.now);
        let n = &mut hosts.nics[nic as usize];
        let mut earliest = Time::MAX;
        for (place, &flow) in (0..).zip(&n.flows) {
            let s = &mut hosts.senders[flow as usize];
            self.transport.passing(FlowId(flow), s, now);
            n.backlogged.set(place, s.backlogged());
            if s.backlogged() && s.due > now {
                earliest = earliest.min(s.due);
            }
        }
        if earliest != Time::MAX && n.wake == Time::MAX {
            self.core.set_wake(nic, earliest);
        }
    }
}
