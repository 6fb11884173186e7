//! Receivers that take packets from their NIC more slowly than the link brings them: the NIC's own memory fills, and with a flow
//! control that pauses neighbours the NIC pauses its switch.

use super::record::Counted;
use super::{Core, Network, class};
use crate::packet::{Fifo, PacketId};
use crate::scheme::{Counter, FlowControl};
use crate::setup::SlowReceiver;
use engine::{Event, Rate};

/// The memory of one NIC.
struct Memory {
    setup: SlowReceiver,
    line: Rate,
    packets: Fifo,
    bytes: u64,
    /// The first packet is on its way to the host.
    busy: bool,
}

/// All slow NICs of a run.
#[derive(Default)]
pub(super) struct State {
    nics: Vec<Memory>,
    peak: u64,
    dropped: u64,
}

impl State {
    pub(super) fn new(setup: &[SlowReceiver], line: impl Fn(u32) -> Rate) -> State {
        let nic = |s: &SlowReceiver| Memory {
            setup: *s,
            line: line(s.port),
            packets: Fifo::default(),
            bytes: 0,
            busy: false,
        };
        State { nics: setup.iter().map(nic).collect(), peak: 0, dropped: 0 }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.nics.is_empty()
    }

    /// Takes over the NICs that `mine` picks by their ports, their packets moved by `moved`, and adds what was counted.
    pub(super) fn absorb(&mut self, other: State, mine: impl Fn(u32) -> bool, mut moved: impl FnMut(Fifo) -> Fifo) {
        for (nic, mut theirs) in self.nics.iter_mut().zip(other.nics).filter(|(nic, _)| mine(nic.setup.port)) {
            theirs.packets = moved(theirs.packets);
            *nic = theirs;
        }
        self.peak = self.peak.max(other.peak);
        self.dropped += other.dropped;
    }

    /// What waits in them.
    pub(super) fn packets(&self) -> impl Iterator<Item = &Fifo> {
        self.nics.iter().map(|nic| &nic.packets)
    }

    pub(super) fn counters(&self) -> Vec<Counter> {
        if self.is_empty() {
            return Vec::new();
        }
        vec![("receiver_buffer_peak", self.peak), ("receiver_dropped", self.dropped)]
    }
}

impl Core {
    /// Sends the first packet of a NIC's memory on its way to the host.
    fn fetch_slowly(&mut self, place: usize) {
        let nic = &mut self.slow.nics[place];
        nic.busy = !nic.packets.is_empty();
        if nic.busy {
            let slow = (nic.setup.from..nic.setup.until).contains(&self.now);
            let rate = if slow { nic.setup.rate } else { nic.line };
            let at = self.now + rate.time_for(self.pool[nic.packets.head()].size as u64);
            self.events.push(Event::new(at, Event::LAST, class::RECEIVE, place as u32));
        }
    }
}

impl<F: FlowControl> Network<F> {
    /// A data packet has come in at a host, of a run with slow receivers.
    pub(super) fn receive_slowly(&mut self, port: u32, id: PacketId) {
        let core = &mut self.core;
        let Some(place) = core.slow.nics.iter().position(|nic| nic.setup.port == port) else {
            return core.receive_data(port, id);
        };
        let (now, size) = (core.now, core.pool[id].size as u64);
        let nic = &mut core.slow.nics[place];
        if !nic.busy && !(nic.setup.from..nic.setup.until).contains(&now) {
            return core.receive_data(port, id);
        }
        if nic.bytes + size > nic.setup.buffer {
            core.slow.dropped += 1;
            core.counts.dropped_full += 1;
            core.count_at(port, Counted::Drop, 1);
            return core.discard(id);
        }
        nic.bytes += size;
        nic.packets.push(&mut core.pool, id);
        let full = nic.bytes > nic.setup.xoff;
        core.slow.peak = core.slow.peak.max(nic.bytes);
        if !nic.busy {
            core.fetch_slowly(place);
        }
        if full {
            self.scheme.receiver_full(&mut self.core, port, true);
        }
    }

    /// A host has taken a packet from its NIC.
    pub(super) fn received(&mut self, place: u32) {
        let core = &mut self.core;
        let nic = &mut core.slow.nics[place as usize];
        let Some(id) = nic.packets.pop(&core.pool) else { return };
        nic.bytes -= core.pool[id].size as u64;
        let (port, low) = (nic.setup.port, nic.bytes <= nic.setup.xon);
        core.fetch_slowly(place as usize);
        core.receive_data(port, id);
        if low {
            self.scheme.receiver_full(&mut self.core, port, false);
        }
    }
}
