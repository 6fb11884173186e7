//! Looking ahead: what events to come will need is asked for before they happen, while others are handled.
//!
//! A large fabric does not fit into a cache, and whatever is touched once in a microsecond is far away when it is touched again.
//! An event names its port, the port its next packet, the packet its flow and its way: each has to be near before the next
//! can be asked for. So it is done step by step: ports two slots of the event queue ahead of their events, packets one slot
//! ahead, flows and ways a few events ahead. It changes nothing but time.

use super::{Core, class};
use crate::near::prefetch;
use crate::packet::{Kind, NONE};
use engine::{Event, Time};

/// How many events ahead of its turn an event's packet is looked into.
const SOON: usize = 4;
/// Ports from which on it pays.
pub(super) const LARGE: usize = 3000;

impl Core {
    /// Takes the next event if it comes before `limit`; in a large fabric (`AHEAD`) looking ahead.
    #[inline]
    pub(super) fn next_event<const AHEAD: bool>(&mut self, limit: Time) -> Option<Event> {
        loop {
            if let Some(event) = self.events.pop_here(limit) {
                if AHEAD && let Some(&soon) = self.events.here().get(SOON) {
                    self.fetch_way(soon);
                }
                return Some(event);
            }
            if !self.events.open() {
                return None;
            }
            if AHEAD {
                self.fetch_slots();
            }
        }
    }

    /// A slot has been opened: asks for what those behind it will need.
    #[inline(never)]
    fn fetch_slots(&self) {
        let events = &self.events;
        let Some(next) = events.slot_after(events.slot()) else { return };
        events.of_slot(next).for_each(|event| self.fetch_packet(event));
        let Some(second) = events.slot_after(next) else { return };
        events.of_slot(second).for_each(|event| self.fetch_port(event));
    }

    #[inline]
    fn fetch_port(&self, event: Event) {
        if event.class() == class::ARRIVAL || event.class() == class::TX_END {
            let port = &self.ports[event.source() as usize];
            prefetch(port);
            prefetch(&port.free_at);
        }
    }

    /// The port is near.
    #[inline]
    fn fetch_packet(&self, event: Event) {
        let source = event.source();
        if event.class() == class::ARRIVAL {
            self.pool.fetch(self.ports[source as usize].flying.head());
        } else if event.class() == class::TX_END {
            let port = &self.ports[source as usize];
            prefetch(&self.ports[port.peer as usize]);
            if port.host {
                prefetch(&self.nics[port.nic as usize]);
            } else {
                self.masks.fetch(source);
                if let Some(queue) = self.queues.get(port.first_queue as usize) {
                    prefetch(queue);
                }
            }
        }
    }

    /// The packet is near.
    #[inline]
    fn fetch_way(&self, event: Event) {
        let source = event.source();
        let port = match event.class() {
            class::ARRIVAL => &self.ports[source as usize],
            class::TX_END if !self.ports[source as usize].host => return self.fetch_next(source),
            _ => return,
        };
        let id = port.flying.head();
        if id == NONE {
            return;
        }
        let packet = &self.pool[id];
        match packet.kind {
            // Belongs to no flow, and stays here.
            Kind::Frame => (),
            _ if !port.host => {
                let Some(out) = self.way_out(port.node, id) else { return };
                prefetch(&self.ports[out as usize].free_at);
                prefetch(&self.ports[self.map.peer[out as usize] as usize]);
                prefetch(&self.accounts[self.account_number(source, packet.class, false)]);
            }
            Kind::Data => self.receivers.fetch(packet.flow as usize),
            Kind::Signal => (),
            _ => self.senders.fetch(packet.flow as usize),
        }
    }
}
