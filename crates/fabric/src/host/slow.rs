//! Receivers that take packets from their NIC more slowly than the link brings them: the NIC's own memory fills, and with a flow
//! control that pauses neighbours the NIC pauses its switch.

use crate::axes::Counter;
use crate::axes::flow_control::FlowControl;
use crate::packet::{Fifo, PacketId};
use crate::probe::{Counted, Lost};
use crate::run::{Class, Core, Network, hook};
use crate::setup::SlowReceiver;
use engine::{Event, Rate};

/// The memory of one NIC.
struct Memory {
    setup: SlowReceiver,
    line: Rate,
    packets: Fifo,
    bytes: u64,
    /// The first packet is in flight to the host.
    busy: bool,
}

/// All slow NICs of a run.
#[derive(Default)]
pub(crate) struct State {
    nics: Vec<Memory>,
    peak: u64,
    dropped: u64,
}

impl State {
    pub(crate) fn new(setup: &[SlowReceiver], line: impl Fn(u32) -> Rate) -> State {
        let nic = |s: &SlowReceiver| Memory {
            setup: *s,
            line: line(s.port),
            packets: Fifo::default(),
            bytes: 0,
            busy: false,
        };
        State { nics: setup.iter().map(nic).collect(), peak: 0, dropped: 0 }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.nics.is_empty()
    }

    /// Takes over the NICs that `mine` picks by their ports, their packets moved by `moved`, and adds what was counted.
    pub(crate) fn absorb(&mut self, other: State, mine: impl Fn(u32) -> bool, mut moved: impl FnMut(Fifo) -> Fifo) {
        for (nic, mut theirs) in self.nics.iter_mut().zip(other.nics).filter(|(nic, _)| mine(nic.setup.port)) {
            theirs.packets = moved(theirs.packets);
            *nic = theirs;
        }
        self.peak = self.peak.max(other.peak);
        self.dropped += other.dropped;
    }

    /// What waits in them.
    pub(crate) fn packets(&self) -> impl Iterator<Item = &Fifo> {
        self.nics.iter().map(|nic| &nic.packets)
    }

    pub(crate) fn counters(&self) -> Vec<Counter> {
        if self.is_empty() {
            return Vec::new();
        }
        vec![Counter::max("receiver_buffer_peak", self.peak), Counter::sum("receiver_dropped", self.dropped)]
    }
}

impl Core {
    /// Sends the first packet of a NIC's memory to the host.
    fn fetch_slowly(&mut self, place: usize) {
        let nic = &mut self.hosts.slow.nics[place];
        nic.busy = !nic.packets.is_empty();
        if nic.busy {
            let slow = (nic.setup.from..nic.setup.until).contains(&self.time.now);
            let rate = if slow { nic.setup.rate } else { nic.line };
            let at = self.time.now + rate.time_for(self.pool[nic.packets.head()].size as u64);
            self.time.events.push(Event::new(at, Event::LAST, Class::Receive as u8, place as u32));
        }
    }
}

impl<F: FlowControl> Network<F> {
    /// A data packet has come in at a host, of a run with slow receivers.
    pub(crate) fn receive_slowly(&mut self, port: u32, id: PacketId) {
        let core = &mut self.core;
        let Some(place) = core.hosts.slow.nics.iter().position(|nic| nic.setup.port == port) else {
            return self.receive_data(port, id);
        };
        let (now, size) = (core.time.now, core.pool[id].size as u64);
        let nic = &mut core.hosts.slow.nics[place];
        if !nic.busy && !(nic.setup.from..nic.setup.until).contains(&now) {
            return self.receive_data(port, id);
        }
        if nic.bytes + size > nic.setup.buffer {
            core.hosts.slow.dropped += 1;
            core.counts.dropped_full += 1;
            core.probes.count_at(port, Counted::Drop, 1);
            let held = core.hosts.slow.nics[place].bytes;
            core.note_full_receiver(port, held);
            core.note_loss(core.ports[port as usize].peer, id, Lost::Room);
            self.count_gone(port, id);
            return self.core.discard(id);
        }
        nic.bytes += size;
        nic.packets.push(&mut core.pool, id);
        let full = nic.bytes > nic.setup.xoff;
        core.hosts.slow.peak = core.hosts.slow.peak.max(nic.bytes);
        if !nic.busy {
            core.fetch_slowly(place);
        }
        if full {
            hook!(self, port, |scheme, node, at, local| scheme.receiver_full(node, at, local, true));
        }
    }

    /// A host has taken a packet from its NIC.
    pub(crate) fn received(&mut self, place: u32) {
        let core = &mut self.core;
        let nic = &mut core.hosts.slow.nics[place as usize];
        let Some(id) = nic.packets.pop(&core.pool) else { return };
        nic.bytes -= core.pool[id].size as u64;
        let (port, low) = (nic.setup.port, nic.bytes <= nic.setup.xon);
        core.fetch_slowly(place as usize);
        self.receive_data(port, id);
        if low {
            hook!(self, port, |scheme, node, at, local| scheme.receiver_full(node, at, local, false));
        }
    }
}
