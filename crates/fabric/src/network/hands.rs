//! What a scheme sees of the hardware and does to it.

use super::record::Counted;
use super::{Core, PauseEvent, class, transport};
use crate::buffer::{Account, Buffer};
use crate::packet::{Kind, NONE, Packet, PacketId, flag};
use crate::port::{Port, QueueMasks};
use crate::routing::Tuple;
use crate::setup::FlowSpec;
use engine::{Event, Rate, Time};

/// How long flow control has kept a flow from sending.
#[derive(Clone, Copy, Debug)]
pub(super) struct Hold {
    /// Since when it does; [`Time::MAX`] while it does not.
    since: Time,
    /// Ended holds.
    total: Time,
}

impl Hold {
    pub(super) const NEVER: Hold = Hold { since: Time::MAX, total: Time::ZERO };

    fn turn(&mut self, now: Time, hold: bool) {
        self.total = self.until(now);
        self.since = if hold { now } else { Time::MAX };
    }
    /// In all until `now`.
    pub(super) fn until(&self, now: Time) -> Time {
        self.total + now.saturating_sub(self.since)
    }
}

impl Core {
    /// Now.
    #[inline]
    pub fn now(&self) -> Time {
        self.now
    }

    /// Priority classes of data.
    pub fn classes(&self) -> u8 {
        self.classes as u8
    }

    /// The account of packets that came in by `port` in `class`, and the memory it is in.
    #[inline]
    pub fn account(&mut self, port: u32, class: u8) -> (&mut Account, &Buffer) {
        let node = self.ports[port as usize].node;
        (&mut self.accounts[(port * self.classes + class as u32) as usize], &self.buffers[node as usize])
    }

    /// Which account that is, or the one of the second group.
    #[inline]
    pub(super) fn account_number(&self, port: u32, class: u8, second: bool) -> usize {
        let group = if second { self.ports.len() } else { 0 };
        group * self.classes as usize + (port * self.classes + class as u32) as usize
    }

    /// The account of one of two groups of packets, see [`FlowControl::second_group`](crate::scheme::FlowControl::second_group), and the memory it is in.
    #[inline]
    pub fn group_account(&mut self, port: u32, class: u8, second: bool) -> (&mut Account, &Buffer) {
        let node = self.ports[port as usize].node;
        let number = self.account_number(port, class, second);
        (&mut self.accounts[number], &self.buffers[node as usize])
    }

    /// Where a port leads and how fast.
    pub fn port(&self, port: u32) -> &Port {
        &self.ports[port as usize]
    }

    /// The rate of the link at `port`.
    pub fn rate(&self, port: u32) -> Rate {
        self.setup.graph.links[self.map.link[port as usize] as usize].rate
    }

    /// A packet.
    #[inline]
    pub fn packet(&self, id: PacketId) -> &Packet {
        &self.pool[id]
    }

    /// A packet, to be changed.
    #[inline]
    pub fn packet_mut(&mut self, id: PacketId) -> &mut Packet {
        &mut self.pool[id]
    }

    /// The ports of `node` on shortest ways to `host`.
    #[inline]
    pub fn ways(&self, node: u32, host: u32) -> &[u32] {
        self.routing.next_hops(node, host)
    }

    /// The port by which `node` would send a packet on, as routing has it.
    #[inline]
    pub fn routed(&self, node: u32, id: PacketId) -> Option<u32> {
        self.way_out(node, id)
    }

    /// The ports of a node.
    pub fn ports_of(&self, node: u32) -> std::ops::Range<u32> {
        self.map.of(node)
    }

    /// Moves all that waits in a queue of a port to the end of a queue of the same or another port of its switch.
    pub fn shift(&mut self, from: (u32, u32), to: (u32, u32)) {
        let number = |core: &Core, (port, queue): (u32, u32)| (core.ports[port as usize].first_queue + queue) as usize;
        let (source, target) = (number(self, from), number(self, to));
        let bytes = self.queues[source].bytes;
        if bytes == 0 {
            return;
        }
        while let Some(id) = self.queues[source].pop(&self.pool) {
            self.queues[target].push(&mut self.pool, id);
        }
        self.ports[from.0 as usize].queued -= bytes;
        self.ports[to.0 as usize].queued += bytes;
        self.masks.set_filled(from.0, from.1, false);
        self.masks.set_filled(to.0, to.1, true);
        self.kicks.push(to.0);
    }

    /// The word of a queued packet that is the scheme's own.
    #[inline]
    pub fn word(&mut self, id: PacketId) -> &mut u32 {
        &mut self.pool[id].next_rank
    }

    /// Gives a packet another tag for the rest of its way.
    #[inline]
    pub fn set_tag(&mut self, id: PacketId, tag: u16) {
        self.pool[id].tag = tag;
    }

    /// The port by which a switch sends something back to the host that sent a data packet, if any way is left.
    pub fn way_back(&self, node: u32, data: &Packet) -> Option<u32> {
        self.way(node, self.setup.flows[data.flow as usize].src, &data.tuple.reversed(), self.now)
    }

    /// Bytes in a queue of `port`.
    #[inline]
    pub fn queue_bytes(&self, port: u32, queue: u32) -> u64 {
        self.queues[(self.ports[port as usize].first_queue + queue) as usize].bytes
    }

    /// The queues of a class at any port.
    pub fn class_queues(&self, class: u8) -> std::ops::Range<u32> {
        let each = self.setup.switch.queues;
        class as u32 * each..(class as u32 + 1) * each
    }

    /// The first packet in a queue of `port`.
    #[inline]
    pub fn head(&self, port: u32, queue: u32) -> Option<PacketId> {
        let id = self.queues[(self.ports[port as usize].first_queue + queue) as usize].packets.head();
        (id != NONE).then_some(id)
    }

    /// The states of all queues.
    #[inline]
    pub fn queues(&self) -> &QueueMasks {
        &self.masks
    }

    /// Keeps a queue of `port` from sending, or lets it go on.
    #[inline]
    pub fn hold_queue(&mut self, port: u32, queue: u32, hold: bool) {
        if self.masks.is_held(port, queue) != hold {
            self.masks.set_held(port, queue, hold);
            self.note_single();
            if !hold {
                self.kicks.push(port);
            }
        }
    }

    /// The flows that send by a host's `port`; finished ones may be among them.
    pub fn flows_at(&self, port: u32) -> &[u32] {
        &self.nics[self.ports[port as usize].nic as usize].flows
    }

    /// What was asked of a flow.
    #[inline]
    pub fn flow(&self, flow: u32) -> &FlowSpec {
        &self.setup.flows[flow as usize]
    }

    /// The class of a flow.
    pub fn flow_class(&self, flow: u32) -> u8 {
        self.setup.flows[flow as usize].class
    }

    /// Whether the last byte of a flow was acknowledged.
    pub fn flow_done(&self, flow: u32) -> bool {
        self.senders[flow as usize].finished != Time::MAX
    }

    /// The tag of a flow that has started.
    pub fn flow_tag(&self, flow: u32) -> u16 {
        self.senders[flow as usize].tag
    }

    /// Gives a flow that has started another tag, which the packets it sends from now on carry.
    pub fn set_flow_tag(&mut self, flow: u32, tag: u16) {
        self.senders[flow as usize].tag = tag;
    }

    /// Keeps a flow from sending, or lets it go on.
    pub fn hold_flow(&mut self, flow: u32, hold: bool) {
        let sender = &mut self.senders[flow as usize];
        if (sender.held & transport::BY_SCHEME != 0) == hold {
            return;
        }
        sender.held ^= transport::BY_SCHEME;
        self.holds[flow as usize].turn(self.now, hold);
        self.note_held(flow, hold);
        self.note(flow);
        if !hold {
            self.kicks.push(self.nics[self.senders[flow as usize].nic as usize].port);
        }
    }

    /// A random number below `n` of the node at `port`.
    pub fn draw(&mut self, port: u32, n: u64) -> u64 {
        self.streams[self.ports[port as usize].node as usize].below(n)
    }

    /// Sends a frame that carries a payload, as [`Core::send_frame`] does. Its receiver takes it with
    /// [`Core::take_payload`].
    pub fn send_payload(&mut self, port: u32, size: u16, word: u32, payload: Box<[u64]>) {
        if self.ports[port as usize].up {
            let place = self.pool.store_payload(payload);
            let id = self.new_frame(port, size, word, place as u64);
            self.pool[id].flags |= flag::PAYLOAD;
        }
    }

    /// What an arrived frame carries; to be taken once.
    pub fn take_payload(&mut self, frame: &Packet) -> Box<[u64]> {
        self.pool.take_payload(frame.seq as u32)
    }

    /// Sends a frame of `size` bytes to the neighbour at `port`, ahead of everything else. The two words are
    /// the scheme's own.
    pub fn send_frame(&mut self, port: u32, size: u16, word: u32, long: u64) {
        if self.ports[port as usize].up {
            self.new_frame(port, size, word, long);
        }
    }

    /// Sends a frame as [`Core::send_frame`] does, but by a switch's control queue, so that it delays no other frame.
    pub fn send_note(&mut self, port: u32, size: u16, word: u32, long: u64) {
        if self.ports[port as usize].up {
            let id = self.make_frame(port, size, word, long);
            let p = &mut self.ports[port as usize];
            p.queued += size as u64;
            p.control.push(&mut self.pool, id);
            self.kicks.push(port);
        }
    }

    fn new_frame(&mut self, port: u32, size: u16, word: u32, long: u64) -> PacketId {
        let id = self.make_frame(port, size, word, long);
        let p = &mut self.ports[port as usize];
        p.queued += size as u64;
        p.frames.push(&mut self.pool, id);
        p.urgent = true;
        self.kicks.push(port);
        id
    }

    fn make_frame(&mut self, port: u32, size: u16, word: u32, long: u64) -> PacketId {
        self.count_at(port, Counted::Frame, 1);
        self.counts.created += 1;
        self.counts.control_bytes += size as u64;
        if let Some(dice) = &mut self.shared {
            dice.pass(); // its identification
        }
        self.pool.insert(Packet {
            flow: word,
            seq: long,
            stamp: self.now,
            next_arrival: self.now,
            next: NONE,
            next_rank: 0,
            tuple: Tuple::default(),
            dst: u32::MAX,
            in_port: NONE,
            size,
            tag: 0,
            kind: Kind::Frame,
            class: 0,
            flags: 0,
            reports: 0,
        })
    }

    /// Sends a control packet of `size` bytes by `port` of a switch to the host that sent the data packet `data`, in
    /// the control queue of every port on its way: never paused, never short of room. It carries the data packet's
    /// flow, class and tag, its addresses swapped, `port` as its ingress port, and a word of the scheme's own.
    pub fn send_signal(&mut self, port: u32, data: &Packet, size: u16, word: u64) {
        if !self.ports[port as usize].up {
            return;
        }
        self.count_at(port, Counted::Signal, 1);
        self.counts.created += 1;
        self.counts.control_bytes += size as u64;
        let id = self.pool.insert(Packet {
            seq: word,
            in_port: port,
            stamp: self.now,
            dst: self.setup.flows[data.flow as usize].src,
            tuple: data.tuple.reversed(),
            size,
            kind: Kind::Signal,
            flags: 0,
            reports: 0,
            ..*data
        });
        let p = &mut self.ports[port as usize];
        p.queued += size as u64;
        p.control.push(&mut self.pool, id);
        self.kicks.push(port);
    }

    /// Stops or resumes one class of everything that `port` sends.
    pub fn pause_class(&mut self, port: u32, class: u8, pause: bool) {
        self.note_pause(port, class, pause, pause);
        self.note_whole(port, class, pause);
        if self.ports[port as usize].has_queues() {
            self.class_queues(class).for_each(|q| self.masks.set_paused(port, q, pause));
        }
    }

    /// Stops or resumes one queue of a switch's `port`, unless it is so already. The port counts as paused while any of
    /// its queues is.
    pub fn pause_queue(&mut self, port: u32, queue: u32, pause: bool) {
        if self.masks.is_paused(port, queue) == pause {
            return;
        }
        self.masks.set_paused(port, queue, pause);
        self.note_single();
        let class = (queue / self.setup.switch.queues) as u8;
        let paused = self.class_queues(class).any(|q| self.masks.is_paused(port, q));
        self.note_pause(port, class, pause, paused);
    }

    /// A pause or resume of something in a class has come, of which something is `paused` now.
    fn note_pause(&mut self, port: u32, class: u8, pause: bool, paused: bool) {
        let p = &mut self.ports[port as usize];
        let before = p.paused;
        p.paused = if paused { before | 1 << class } else { before & !(1 << class) };
        match (before != 0, p.paused != 0) {
            (false, true) => p.pause_start = self.now,
            (true, false) => p.pause_total += self.now - p.pause_start,
            _ => {}
        }
        *(if pause { &mut self.counts.pauses } else { &mut self.counts.resumes }) += 1;
        if self.setup.measure.pause_log {
            self.pause_log.push(PauseEvent { time: self.now, port, pause });
        }
        if !pause {
            self.kicks.push(port);
        }
    }

    /// Calls the scheme's timer hook at `at` with a token of the scheme's own.
    pub fn set_timer(&mut self, at: Time, token: u32) {
        let rank = self.rank(at);
        self.timers += 1;
        self.events.push(Event::new(at, rank, class::SCHEME_TIMER, token));
    }
}
