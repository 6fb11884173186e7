//! Packets as plain data in one arena, and the lists that thread through them.
//!
//! A packet is one cache line. It is written once, when it is created, and then only its number moves: queues
//! and links in flight are lists of numbers ([`Fifo`]), so a fabric with a thousand queues per port costs no
//! allocation per packet and no idle memory. The links of the lists lie together, apart from the packets: joining a
//! long queue touches neither its last packet nor any other. Telemetry lies beside the packets and exists
//! only in runs whose congestion control reads it.

use crate::axes::load_balancing::Label;
use crate::message::{Message, Packer, Payload, Sealed, Unpacker};
use crate::prefetch::prefetch;
use crate::probe::Trail;
use crate::routing::Tuple;
use engine::{Rate, Time};

/// The number of a packet in its [`Pool`].
pub type PacketId = u32;
/// No packet.
pub const NONE: PacketId = u32::MAX;

/// In the place of the port by which a packet came in: its link has given up, and does not repeat it.
pub(crate) const BARE: u16 = u16::MAX;

/// What a packet is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// Part of a message.
    Data,
    /// Reports to the sender what has arrived in order.
    Ack,
    /// Like an ACK, and says that something is missing.
    Nack,
    /// A frame between two neighbours that belongs to the flow-control scheme; never forwarded.
    Frame,
    /// A control packet from a switch to a host that belongs to the flow-control scheme; routed like any other.
    Signal,
    /// What a trimming switch left of a data packet that found its queue full.
    Trimmed,
    /// A trimmed packet that found no room either, in flight back to the sender.
    Returned,
    /// Lets a sender send more: a control packet of the transport.
    Grant,
    /// A switch's report to the congestion control of a sender.
    Notice,
    /// A word of load balancing, from the last switch on a flow's path to the first.
    Advice,
}

/// Bits of [`Packet::flags`].
pub mod flag {
    /// A switch found its queue long and said so (ECN congestion experienced); ACKs echo it.
    pub const MARKED: u16 = 1;
    /// The last packet of its message.
    pub const LAST: u16 = 2;
    /// The first packet of its message.
    pub const FIRST: u16 = 4;
    /// A frame that carries a payload.
    pub const PAYLOAD: u16 = 8;
    /// The first packet of its message, and nothing of the message was sent before it.
    pub const FRESH: u16 = 16;
    /// A switch wants to be notified when this packet has reached the last switch on its path.
    pub const ASKS: u16 = 32;
    /// Its sender has more to send than it was allowed to, and asks for a grant or for an answer at once; ACKs and NACKs echo it.
    pub const WANTS: u16 = 64;
    /// In the second account of its ingress port and class at the switch that holds it.
    pub const SECOND: u16 = 128;
    /// Where it has been is kept, in runs that ask where time goes.
    pub(crate) const NOTED: u16 = 256;
    /// It was stopped in a queue on its way, in such runs.
    pub(crate) const FREED: u16 = 512;
    /// It was moved to the queue that it is in from another, in such runs.
    pub(crate) const MOVED: u16 = 1024;
    /// What is noted in such runs, and not on the wire.
    pub(crate) const ASKED: u16 = NOTED | FREED | MOVED;
    /// It lost its payload at the last switch before its receiver; NACKs echo it.
    pub const LAST_HOP: u16 = 2048;
    /// What congestion control and its switch program write on packets, a bit each, as they like; ACKs echo them.
    pub const OWN: u16 = 0xf000;
    /// The lowest of these.
    pub(crate) const OWN_SHIFT: u32 = OWN.trailing_zeros();
}

/// A packet on a link or in a queue.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
pub struct Packet {
    /// Data: offset of the first byte of message. ACK: the next byte expected. Frame or signal: the first half of its message.
    pub seq: u64,
    /// When the sending host put it on its link; ACKs echo it. A transport may number packets here instead: spraying goes by it.
    pub stamp: Time,
    /// On a link: when the packet behind it arrives.
    pub next_arrival: Time,
    /// On a link: the packet behind it.
    pub next: PacketId,
    /// On a link: the rank of that packet's arrival among the events of its instant. In a queue of a switch: a word of the
    /// scheme's own.
    pub next_rank: u32,
    /// The flow it belongs to; for a frame, the place of its payload.
    pub flow: u32,
    /// The node it is addressed to.
    pub dst: u32,
    /// What switches hash; for a frame, the second half of its message.
    pub tuple: Tuple,
    /// The port, of the switch that holds it, by which it came in. On a link that repeats frames, `BARE` of one that was sent without a number.
    pub in_port: u16,
    /// Bytes on the wire.
    pub size: u16,
    /// The scheme's name for its flow; for a frame or signal, the layer that sent it.
    pub tag: u16,
    /// What it is for.
    pub kind: Kind,
    /// Priority class, 0-based, among the run's data classes.
    pub class: u8,
    /// See [`flag`].
    pub flags: u16,
    /// Switches that added telemetry; those past [`MAX_HOPS`] are counted and not kept. ACKs carry it back.
    pub reports: u8,
}

const _: () = assert!(std::mem::size_of::<Packet>() == 64);

impl Packet {
    /// A packet with nothing in it.
    pub const BLANK: Packet = Packet {
        seq: 0,
        stamp: Time::ZERO,
        next_arrival: Time::ZERO,
        next: NONE,
        next_rank: 0,
        flow: NONE,
        dst: NONE,
        tuple: Tuple { source: 0, destination: 0, source_port: 0, destination_port: 0 },
        in_port: 0,
        size: 0,
        tag: 0,
        flags: 0,
        kind: Kind::Data,
        class: 0,
        reports: 0,
    };

    pub(crate) fn set_bits(&mut self, bits: u128) {
        self.seq = bits as u64;
        self.tuple.source = (bits >> 64) as u32;
        self.tuple.destination = (bits >> 96) as u32;
    }

    /// A frame's message as bits.
    pub fn bits(&self) -> u128 {
        self.seq as u128 | (self.tuple.source as u128) << 64 | (self.tuple.destination as u128) << 96
    }

    /// What a frame without a payload says, if it was sent by that layer.
    pub fn message<M: Message>(&self, layer: u8) -> Option<M> {
        (self.tag == layer as u16 && self.flags & flag::PAYLOAD == 0).then(|| Unpacker::read(self.bits(), None))
    }

    /// The layer that sent a frame without a payload, if it is one.
    pub fn layer(&self) -> Option<u8> {
        (self.kind == Kind::Frame && self.flags & flag::PAYLOAD == 0).then_some(self.tag as u8)
    }
}

/// How many switches a packet can collect telemetry from.
pub const MAX_HOPS: usize = 8;

/// What a switch says of the egress port a packet leaves by (in-band network telemetry).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Hop {
    /// When the packet left its queue.
    pub time: Time,
    /// Which port it was, in the upper bits, and the bytes that it had sent before the packet. Eight hops are three cache lines: the
    /// port has to fit in.
    sent: u64,
    /// Bytes left in the port's queues.
    pub queued: u32,
    /// The port's rate in Mbit/s.
    pub mbps: u32,
}

const _: () = assert!(std::mem::size_of::<Hop>() == 24);

impl Hop {
    /// Bits of [`Hop::tx_bytes`]; it starts again after 17 TB.
    const BITS: u32 = 44;

    /// What the port with this number in the whole fabric says.
    #[inline]
    pub fn new(time: Time, port: u32, tx_bytes: u64, queued: u32, mbps: u32) -> Hop {
        Hop { time, sent: (port as u64) << Self::BITS | tx_bytes & ((1 << Self::BITS) - 1), queued, mbps }
    }
    /// Bytes the port had sent before the packet.
    #[inline]
    pub fn tx_bytes(&self) -> u64 {
        self.sent & ((1 << Self::BITS) - 1)
    }
    /// The port's number in the whole fabric. Its lower 20 bits, that is: only a fabric of more than a million ports has two with the same.
    #[inline]
    pub fn port(&self) -> u32 {
        (self.sent >> Self::BITS) as u32
    }
    /// Whether both are of the same port.
    #[inline]
    pub fn is_of_same_port(&self, other: &Hop) -> bool {
        (self.sent ^ other.sent) >> Self::BITS == 0
    }
}

/// What an ACK says beyond its header, in runs that use it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Answer {
    /// The packet that made the receiver answer: offset of its first byte of message.
    pub sack: u64,
    /// How long that packet was in flight.
    pub delay: Time,
    /// What else the transport says, on ACKs and on data.
    pub words: [u64; 2],
}

/// All packets of a shard.
pub struct Pool {
    slots: Vec<Packet>,
    /// The next packet in whatever list a packet is in.
    next: Vec<PacketId>,
    /// What the switches said, first switch first; how many did, the packet knows.
    telemetry: Vec<[Hop; MAX_HOPS]>,
    free: PacketId,
    live: u32,
    with_telemetry: bool,
    answers: Vec<Answer>,
    with_answers: bool,
    /// What frames carry; they know the place.
    payloads: Vec<Payload>,
    free_payloads: Vec<u32>,
    /// Where packets have been, in runs that ask where time goes.
    trails: Vec<Trail>,
    with_trails: bool,
    /// What switches wrote on packets for one another, in runs whose load balancing does.
    labels: Vec<Label>,
    with_labels: bool,
    /// What receivers wrote on ACKs as a flow's share of their link; as long as it must be.
    shares: Vec<Rate>,
}

impl Pool {
    /// An empty pool; `with_telemetry` gives every packet room for it, `with_answers` for an [`Answer`].
    pub fn new(with_telemetry: bool, with_answers: bool) -> Pool {
        Pool {
            slots: Vec::new(),
            next: Vec::new(),
            telemetry: Vec::new(),
            free: NONE,
            live: 0,
            with_telemetry,
            answers: Vec::new(),
            with_answers,
            payloads: Vec::new(),
            free_payloads: Vec::new(),
            trails: Vec::new(),
            with_trails: false,
            labels: Vec::new(),
            with_labels: false,
            shares: Vec::new(),
        }
    }

    /// The same with room for every packet's trail, if `with_trails`.
    pub(crate) fn with_trails(self, with_trails: bool) -> Pool {
        Pool { with_trails, ..self }
    }

    /// The same with room for every packet's label, if `with_labels`.
    pub(crate) fn with_labels(self, with_labels: bool) -> Pool {
        Pool { with_labels, ..self }
    }

    /// A packet with its label; only in runs with labels.
    pub(crate) fn labelled(&mut self, id: PacketId) -> (&Packet, &mut Label) {
        (&self.slots[id as usize], &mut self.labels[id as usize])
    }

    /// The label of a packet, in runs with labels.
    pub(crate) fn label(&mut self, id: PacketId) -> Option<&mut Label> {
        self.labels.get_mut(id as usize)
    }

    /// Whether packets have trails.
    #[inline]
    pub(crate) fn traced(&self) -> bool {
        self.with_trails
    }

    /// Where a packet has been; `None` in runs that do not ask.
    pub(crate) fn trail(&mut self, id: PacketId) -> Option<&mut Trail> {
        self.trails.get_mut(id as usize)
    }

    /// A new frame that says `message`, as `layer` reads it.
    pub(crate) fn insert_frame(&mut self, blank: Packet, layer: u8, message: impl Message) -> PacketId {
        let (bits, payload) = Packer::of(message);
        let mut frame = Packet { tag: layer as u16, kind: Kind::Frame, ..blank };
        frame.set_bits(bits);
        if let Some(payload) = payload {
            frame.flow = self.store_payload(payload);
            frame.flags |= flag::PAYLOAD;
        }
        self.insert(frame)
    }

    /// What an arrived frame says; to be asked once.
    pub(crate) fn open_frame(&mut self, frame: &Packet) -> Sealed {
        let payload = (frame.flags & flag::PAYLOAD != 0).then(|| self.take_payload(frame.flow));
        Sealed { layer: frame.tag as u8, bits: frame.bits(), payload }
    }

    /// What a frame that waits says, if it was sent by that layer.
    pub(crate) fn frame_says<M: Message>(&self, id: PacketId, layer: u8) -> Option<M> {
        let frame = &self[id];
        let payload = || (frame.flags & flag::PAYLOAD != 0).then(|| self.payload(frame.flow).into());
        (frame.kind == Kind::Frame && frame.tag == layer as u16).then(|| Unpacker::read(frame.bits(), payload()))
    }

    /// Makes a frame that waits say something else.
    pub(crate) fn say_instead(&mut self, id: PacketId, message: impl Message) {
        let (bits, payload) = Packer::of(message);
        if self[id].flags & flag::PAYLOAD != 0 {
            let place = self[id].flow;
            self.take_payload(place);
        }
        let place = payload.map(|payload| self.store_payload(payload));
        let frame = &mut self[id];
        frame.set_bits(bits);
        frame.flags &= !flag::PAYLOAD;
        if let Some(place) = place {
            frame.flow = place;
            frame.flags |= flag::PAYLOAD;
        }
    }

    /// Puts what a frame carries in a place, and gives the place.
    pub(crate) fn store_payload(&mut self, payload: Payload) -> u32 {
        match self.free_payloads.pop() {
            Some(place) => {
                self.payloads[place as usize] = payload;
                place
            }
            None => {
                self.payloads.push(payload);
                self.payloads.len() as u32 - 1
            }
        }
    }

    /// What a frame carries.
    pub(crate) fn payload(&self, place: u32) -> &[u64] {
        &self.payloads[place as usize]
    }

    /// Takes what a frame carries out of its place.
    pub(crate) fn take_payload(&mut self, place: u32) -> Payload {
        self.free_payloads.push(place);
        std::mem::take(&mut self.payloads[place as usize])
    }

    /// Writes a flow's share of its receiver's link on an ACK.
    pub(crate) fn set_share(&mut self, id: PacketId, share: Rate) {
        if self.shares.len() <= id as usize {
            self.shares.resize(self.slots.len(), Rate(0));
        }
        self.shares[id as usize] = share;
    }

    /// What the receiver wrote on an ACK; zero in runs without.
    pub(crate) fn share(&self, id: PacketId) -> Rate {
        self.shares.get(id as usize).copied().unwrap_or_default()
    }

    /// The packet behind one in a list, or [`NONE`].
    #[inline]
    pub(crate) fn after(&self, id: PacketId) -> PacketId {
        self.next[id as usize]
    }

    /// Takes in a packet and numbers it. Its telemetry is empty.
    #[inline]
    pub fn insert(&mut self, packet: Packet) -> PacketId {
        self.live += 1;
        let id = self.free;
        if id != NONE {
            self.free = self.next[id as usize];
            self.slots[id as usize] = packet;
            return id;
        }
        self.grow(packet)
    }

    /// Takes in a packet where there was no room for one.
    #[cold]
    #[inline(never)]
    fn grow(&mut self, packet: Packet) -> PacketId {
        self.slots.push(packet);
        self.next.push(NONE);
        if self.with_telemetry {
            self.telemetry.push([Hop::default(); MAX_HOPS]);
        }
        if self.with_answers {
            self.answers.push(Answer::default());
        }
        if self.with_trails {
            self.trails.push(Trail::default());
        }
        if self.with_labels {
            self.labels.push(Label::default());
        }
        (self.slots.len() - 1) as PacketId
    }

    /// Forgets a packet.
    #[inline]
    pub fn remove(&mut self, id: PacketId) {
        self.next[id as usize] = self.free;
        self.free = id;
        self.live -= 1;
    }

    /// Asks for a packet that will be needed soon.
    #[inline]
    pub fn fetch(&self, id: PacketId) {
        if let Some(packet) = self.slots.get(id as usize) {
            prefetch(packet);
        }
        if let Some(hops) = self.telemetry.get(id as usize) {
            prefetch(hops);
        }
    }

    /// Packets held now.
    pub fn live(&self) -> u64 {
        self.live as u64
    }

    /// The telemetry of a packet; empty in runs without.
    #[inline]
    pub fn telemetry(&self, id: PacketId) -> &[Hop] {
        match self.telemetry.get(id as usize) {
            Some(hops) => &hops[..(self[id].reports as usize).min(MAX_HOPS)],
            None => &[],
        }
    }

    /// Gives a packet what switches have said, in runs with telemetry: the first of `hops`, as many as it knows of. Gives
    /// the rest.
    pub(crate) fn take_hops<'h>(&mut self, id: PacketId, hops: &'h [Hop]) -> &'h [Hop] {
        let count = (self[id].reports as usize).min(MAX_HOPS);
        let Some(own) = self.telemetry.get_mut(id as usize) else { return hops };
        let (its, rest) = hops.split_at(count.min(hops.len()));
        own[..its.len()].copy_from_slice(its);
        rest
    }

    /// The same, if there is room for it.
    pub(crate) fn said(&self, id: PacketId) -> Option<Answer> {
        self.answers.get(id as usize).copied()
    }

    /// What an ACK says beyond its header; only in runs with room for it.
    #[inline]
    pub fn answer(&mut self, id: PacketId) -> &mut Answer {
        &mut self.answers[id as usize]
    }

    /// Adds what a switch says of itself.
    #[inline(always)]
    pub fn push_hop(&mut self, id: PacketId, hop: Hop) {
        let packet = &mut self.slots[id as usize];
        if let Some(entry) = self.telemetry[id as usize].get_mut(packet.reports as usize) {
            *entry = hop;
        }
        packet.reports = packet.reports.saturating_add(1);
    }
}

impl std::ops::Index<PacketId> for Pool {
    type Output = Packet;
    #[inline]
    fn index(&self, id: PacketId) -> &Packet {
        &self.slots[id as usize]
    }
}
impl std::ops::IndexMut<PacketId> for Pool {
    #[inline]
    fn index_mut(&mut self, id: PacketId) -> &mut Packet {
        &mut self.slots[id as usize]
    }
}

/// A first-in-first-out list of packets, threaded through the pool.
#[derive(Clone, Copy, Debug)]
pub struct Fifo {
    head: PacketId,
    tail: PacketId,
}

impl Default for Fifo {
    fn default() -> Fifo {
        Fifo { head: NONE, tail: NONE }
    }
}

impl Fifo {
    /// Whether nothing is in it.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.head == NONE
    }
    /// The packet that has waited longest, or [`NONE`].
    #[inline]
    pub fn head(&self) -> PacketId {
        self.head
    }
    /// Appends.
    #[inline]
    pub fn push(&mut self, pool: &mut Pool, id: PacketId) {
        pool.next[id as usize] = NONE;
        if self.head == NONE {
            self.head = id;
        } else {
            pool.next[self.tail as usize] = id;
        }
        self.tail = id;
    }
    /// Takes the packet that has waited longest.
    #[inline]
    pub fn pop(&mut self, pool: &Pool) -> Option<PacketId> {
        let id = self.head;
        if id == NONE {
            return None;
        }
        self.head = pool.next[id as usize];
        Some(id)
    }
    /// Takes the packet that has waited least, by walking to it.
    pub fn pop_last(&mut self, pool: &mut Pool) -> Option<PacketId> {
        let last = (self.head != NONE).then_some(self.tail)?;
        match self.iter(pool).take_while(|&id| id != last).last() {
            Some(before) => {
                pool.next[before as usize] = NONE;
                self.tail = before;
            }
            None => self.head = NONE,
        }
        Some(last)
    }
    /// Walks through it, first to last.
    pub fn iter<'a>(&self, pool: &'a Pool) -> impl Iterator<Item = PacketId> + 'a {
        let mut id = self.head;
        std::iter::from_fn(move || {
            let this = id;
            (this != NONE).then(|| {
                id = pool.next[this as usize];
                this
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn blank() -> Packet {
        Packet { size: 100, ..Packet::BLANK }
    }

    #[test]
    fn a_list_keeps_its_order_while_packets_come_and_go() {
        let mut pool = Pool::new(true, false);
        let mut list = Fifo::default();
        let ids: Vec<_> = (0..5).map(|seq| pool.insert(Packet { seq, ..blank() })).collect();
        ids.iter().for_each(|&id| list.push(&mut pool, id));
        assert_eq!(list.pop(&pool), Some(ids[0]));
        pool.remove(ids[0]);
        let reused = pool.insert(Packet { seq: 9, ..blank() });
        assert_eq!(reused, ids[0]);
        list.push(&mut pool, reused);
        let order: Vec<_> = list.iter(&pool).map(|id| pool[id].seq).collect();
        assert_eq!(order, [1, 2, 3, 4, 9]);
        assert_eq!(pool.live(), 5);
    }

    #[test]
    fn a_list_gives_its_last_packet_and_goes_on() {
        let mut pool = Pool::new(false, false);
        let mut list = Fifo::default();
        let ids: Vec<_> = (0..3).map(|seq| pool.insert(Packet { seq, ..blank() })).collect();
        ids.iter().for_each(|&id| list.push(&mut pool, id));
        assert_eq!(list.pop_last(&mut pool), Some(ids[2]));
        list.push(&mut pool, ids[2]);
        assert_eq!(list.iter(&pool).collect::<Vec<_>>(), ids);
        let back: Vec<_> = std::iter::from_fn(|| list.pop_last(&mut pool)).collect();
        assert_eq!(back, [ids[2], ids[1], ids[0]]);
        assert!(list.is_empty());
        list.push(&mut pool, ids[1]);
        assert_eq!(list.pop(&pool), Some(ids[1]));
    }

    #[test]
    fn telemetry_is_fresh_for_each_packet_and_counts_past_its_room() {
        let mut pool = Pool::new(true, false);
        let id = pool.insert(blank());
        (0..MAX_HOPS + 2).for_each(|_| pool.push_hop(id, Hop::default()));
        assert_eq!(pool.telemetry(id).len(), MAX_HOPS);
        pool.remove(id);
        let id = pool.insert(blank());
        assert!(pool.telemetry(id).is_empty());
    }
}
