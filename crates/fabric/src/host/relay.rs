//! Hosts that forward for others, as in BCube: a delay before the egress queue, and turns with the host's own traffic after it.
//!
//! A forwarding host has the queues, the memory and the accounts of a switch. What it forwards goes by the same code; here is
//! only what a switch does not have.

use crate::axes::flow_control::FlowControl;
use crate::packet::PacketId;
use crate::port::Flying;
use crate::run::{Class, Core, Network};
use crate::setup::Setup;
use engine::{Event, Time};

/// What forwarding hosts are about to queue or to send; empty where forwarding costs nothing.
#[derive(Default)]
pub(crate) struct Relay {
    /// By port: what came in by it and will be queued.
    delayed: Vec<Flying>,
    /// By port: forwarded data may be sent again from this instant on, and whether it is on the event queue.
    free: Vec<(Time, bool)>,
}

impl Relay {
    pub(crate) fn new(setup: &Setup, ports: usize) -> Relay {
        let (forwarding, forward) = (setup.graph.forwarding, setup.forward);
        let count = |used: bool| if forwarding && used { ports } else { 0 };
        Relay {
            delayed: vec![Flying::default(); count(forward.delay > Time::ZERO)],
            free: vec![(Time::ZERO, false); count(forward.rate.is_some())],
        }
    }

    /// Takes over the ports that `mine` picks, their packets moved by `moved`.
    pub(crate) fn absorb(
        &mut self,
        other: Relay,
        mine: impl Fn(usize) -> bool,
        mut moved: impl FnMut(Flying) -> Flying,
    ) {
        for (port, list) in other.delayed.into_iter().enumerate().filter(|(port, _)| mine(*port)) {
            self.delayed[port] = moved(list);
        }
        for (port, free) in other.free.into_iter().enumerate().filter(|(port, _)| mine(*port)) {
            self.free[port] = free;
        }
    }

    /// Packets that are neither on a link nor in a queue.
    pub(crate) fn delayed(&self) -> &[Flying] {
        &self.delayed
    }

    /// Whether something will be queued or sent.
    pub(crate) fn moving(&self) -> bool {
        self.delayed.iter().any(|list| !list.is_empty()) || self.free.iter().any(|(_, planned)| *planned)
    }
}

impl Core {
    /// Whether the end of a transmission should look for something to forward.
    pub(crate) fn may_relay(&self, port: u32) -> bool {
        !self.ports[port as usize].control.is_empty() || self.switches.masks.any_ready(port)
    }

    /// Whether forwarded data may be sent now; otherwise the port looks again when it may.
    fn relay_free(&mut self, port: u32) -> bool {
        let Some(&(free, planned)) = self.hosts.relay.free.get(port as usize) else { return true };
        if free <= self.time.now {
            return true;
        }
        if !planned && self.switches.masks.any_ready(port) {
            self.hosts.relay.free[port as usize].1 = true;
            let rank = self.rank(free);
            self.time.events.push(Event::new(free, rank, Class::Relay as u8, port * 2 + 1));
        }
        false
    }
}

impl<F: FlowControl> Network<F> {
    /// A packet for another host has come in.
    pub(crate) fn relay_receive(&mut self, port: u32, id: PacketId) {
        let core = &mut self.core;
        if core.hosts.relay.delayed.is_empty() {
            return self.switch_receive(port, id, Event::ZERO);
        }
        let at = core.time.now + core.setup.forward.delay;
        let rank = core.rank(at);
        if core.hosts.relay.delayed[port as usize].push(&mut core.pool, id, at, rank) {
            core.time.events.push(Event::new(at, rank, Class::Relay as u8, port * 2));
        }
    }

    /// A delayed packet is to be queued, or a port may forward again.
    pub(crate) fn relay_event(&mut self, source: u32) {
        let (core, port) = (&mut self.core, source / 2);
        if source % 2 == 1 {
            core.hosts.relay.free[port as usize].1 = false;
            return self.kick(port);
        }
        let Some((id, next)) = core.hosts.relay.delayed[port as usize].pop(&core.pool) else { return };
        if let Some((at, rank)) = next {
            core.time.events.push(Event::new(at, rank, Class::Relay as u8, port * 2));
        }
        self.switch_receive(port, id, Event::ZERO);
    }

    /// Sends the next packet of a forwarding host's port; false if there is none. Control packets and ACKs go first; then
    /// the host's own data and that of others take turns, packet by packet, or that of others goes before its own.
    pub(crate) fn relay_transmit(&mut self, port: u32) -> bool {
        let core = &mut self.core;
        let nic = core.ports[port as usize].nic as usize;
        if !core.ports[port as usize].control.is_empty()
            && let Some(id) = core.next_control(port)
        {
            let lag = self.lag(port);
            self.core.start(port, id, lag);
            return true;
        }
        if self.next_ack(port) {
            return true;
        }
        let core = &mut self.core;
        let own_turn = core.hosts.nics[nic].relayed && !core.setup.forward.first;
        if own_turn && self.send_own(port) {
            self.core.hosts.nics[nic].relayed = false;
            return true;
        }
        let before = self.core.ports[port as usize].tx_bytes;
        if self.core.relay_free(port) && self.switch_transmit(port) {
            let core = &mut self.core;
            let size = core.ports[port as usize].tx_bytes - before;
            core.hosts.nics[nic].relayed = true;
            if let (Some(free), Some(rate)) = (core.hosts.relay.free.get_mut(port as usize), core.setup.forward.rate) {
                free.0 = core.time.now + core.setup.clock.duration(size, rate);
            }
            return true;
        }
        !own_turn && self.send_own(port)
    }
}
