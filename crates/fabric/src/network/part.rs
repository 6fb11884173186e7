//! A part of a fabric: the nodes that one thread runs, and what passes between it and the others.
//!
//! Nodes share nothing, and whatever one does to another takes at least the time of a link. So a fabric can be cut along its
//! links: each part has its own events and packets, and a packet whose link ends in another part is posted there.

use super::Core;
use crate::packet::{Answer, Fifo, Hop, NONE, Packet, PacketId, Pool, flag};
use crate::port::{Flying, detour};
use crate::setup::{FlowSpec, Setup};
use engine::{Rate, Time};
use std::ops::{Index, IndexMut};
use std::sync::Arc;

/// One value for each flow that has an end in this part.
pub(crate) struct PerFlow<T> {
    items: Vec<T>,
    /// By flow, its place among the items, if not its own number: 0 for flows of other parts.
    places: Option<Arc<[u32]>>,
}

impl<T: Clone> PerFlow<T> {
    /// What `make` gives for every flow whose `end` (its source or its destination) is in the part, if there are parts.
    pub(super) fn new(
        setup: &Setup,
        part: &Option<Part>,
        end: fn(&FlowSpec) -> u32,
        make: impl Fn(&FlowSpec) -> T,
    ) -> PerFlow<T> {
        let Some(part) = part else { return PerFlow { items: setup.flows.iter().map(make).collect(), places: None } };
        let mut items = vec![make(&FlowSpec::plain(0, 0, 0, 0, Time::ZERO))];
        let places = setup.flows.iter().map(|flow| {
            if !part.owns(end(flow)) {
                return 0;
            }
            items.push(make(flow));
            items.len() as u32 - 1
        });
        let places = places.collect();
        items.shrink_to_fit();
        PerFlow { items, places: Some(places) }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &T> {
        let count = self.places.as_ref().map_or(self.items.len(), |places| places.len());
        (0..count).map(|flow| &self[flow])
    }

    /// Takes the flows of another part into what were those of one.
    pub(super) fn absorb(&mut self, other: &PerFlow<T>) {
        let (Some(mine), Some(theirs)) = (&self.places, &other.places) else { return };
        let mut places = mine.to_vec();
        for (place, &theirs) in places.iter_mut().zip(&theirs[..]).filter(|(_, theirs)| **theirs != 0) {
            *place = self.items.len() as u32;
            self.items.push(other.items[theirs as usize].clone());
        }
        self.places = Some(places.into());
    }
}

impl<T> Index<usize> for PerFlow<T> {
    type Output = T;
    #[inline]
    fn index(&self, flow: usize) -> &T {
        match &self.places {
            None => &self.items[flow],
            Some(places) => &self.items[places[flow] as usize],
        }
    }
}
impl<T> IndexMut<usize> for PerFlow<T> {
    #[inline]
    fn index_mut(&mut self, flow: usize) -> &mut T {
        match &self.places {
            None => &mut self.items[flow],
            Some(places) => &mut self.items[places[flow] as usize],
        }
    }
}

/// Packets on their way from one part to another.
#[derive(Default)]
pub(crate) struct Mail {
    parcels: Vec<Parcel>,
    /// The first arrival among them.
    first: Time,
    /// In runs with telemetry, what switches have said on each parcel, one after the other.
    telemetry: Vec<Hop>,
    /// In runs whose ACKs say more than their headers hold, that of every parcel.
    answers: Vec<Answer>,
    /// In runs with a census, the share that every parcel carries.
    shares: Vec<Rate>,
    /// What those parcels carry that are frames with a payload, in order.
    payloads: Vec<Box<[u64]>>,
}

struct Parcel {
    /// Where it arrives.
    port: u32,
    rank: u32,
    arrival: Time,
    packet: Packet,
}

impl Mail {
    pub(super) fn is_empty(&self) -> bool {
        self.parcels.is_empty()
    }
    /// How many packets there are, and what they take.
    pub(super) fn size(&self) -> (u64, u64) {
        let hops = size_of_val(self.telemetry.as_slice());
        let rest = size_of_val(self.answers.as_slice()) + size_of_val(self.shares.as_slice());
        let payloads: usize = self.payloads.iter().map(|payload| size_of_val(&**payload)).sum();
        let bytes = size_of_val(self.parcels.as_slice()) + hops + rest + payloads;
        (self.parcels.len() as u64, bytes as u64)
    }
    /// The first arrival, if there is any.
    pub(super) fn first(&self) -> Option<Time> {
        (!self.is_empty()).then_some(self.first)
    }
}

/// Which part of a fabric a core runs.
pub(crate) struct Part {
    pub(super) number: u16,
    /// By node.
    pub(super) owner: Arc<[u16]>,
    /// By part.
    pub(super) outbox: Vec<Mail>,
    /// What the last sample saw, until the next is planned.
    pub(super) pulse: Option<(Time, super::sample::Pulse)>,
    /// The same of the sampling of what is followed closely.
    pub(super) beat: Option<(Time, super::sample::Pulse)>,
}

impl Part {
    pub(super) fn new(number: u16, parts: usize, owner: Arc<[u16]>) -> Part {
        let outbox = (0..parts).map(|_| Mail::default()).collect();
        Part { number, owner, outbox, pulse: None, beat: None }
    }
    pub(super) fn owns(&self, node: u32) -> bool {
        self.owner[node as usize] == self.number
    }
}

impl Core {
    /// Whether a node is run here.
    #[inline]
    pub(super) fn owns(&self, node: u32) -> bool {
        self.part.as_ref().is_none_or(|part| part.owns(node))
            && self.blocks.as_ref().is_none_or(|blocks| blocks.at(node))
    }

    /// The first flow from number `from` on whose sender is run here.
    pub(super) fn next_own_flow(&self, from: usize) -> usize {
        if let Some(flows) = self.blocks.as_ref().and_then(|blocks| blocks.flows()) {
            let place = flows.partition_point(|&flow| (flow as usize) < from);
            return flows.get(place).map_or(self.setup.flows.len(), |&flow| flow as usize);
        }
        let Some(part) = &self.part else { return from };
        let later = self.setup.flows[from..].iter().position(|flow| part.owns(flow.src));
        later.map_or(self.setup.flows.len(), |later| from + later)
    }

    /// Whether nothing is under way to another part or block.
    pub(super) fn nothing_posted(&self) -> bool {
        self.part.as_ref().is_none_or(|part| part.outbox.iter().all(Mail::is_empty))
            && self.blocks.as_ref().is_none_or(|blocks| blocks.nothing_posted())
    }

    /// What is to be done with a packet that is put on the link of `port`, besides sending it. True if it was sent.
    #[cold]
    #[inline(never)]
    pub(super) fn detour(&mut self, port: u32, id: PacketId, arrival: Time, rank: u32) -> bool {
        let what = self.ports[port as usize].detour;
        if what & detour::CAPTURED != 0 {
            self.capture(port, id);
        }
        let peer = self.ports[port as usize].peer;
        if what & detour::REMOTE != 0 {
            self.post(peer, id, arrival, rank);
        } else if what & detour::ABROAD != 0 {
            self.send_abroad(peer, id, arrival, rank);
        }
        what & (detour::REMOTE | detour::ABROAD) != 0
    }

    /// Sends a packet to the part where its link ends, at `port`.
    fn post(&mut self, port: u32, id: PacketId, arrival: Time, rank: u32) {
        let packet = self.pool[id];
        let node = self.ports[port as usize].node;
        let Some(part) = &mut self.part else { return };
        let mail = &mut part.outbox[part.owner[node as usize] as usize];
        mail.first = if mail.is_empty() { arrival } else { mail.first.min(arrival) };
        mail.parcels.push(Parcel { port, rank, arrival, packet });
        mail.telemetry.extend_from_slice(self.pool.telemetry(id));
        mail.answers.extend(self.pool.said(id));
        mail.shares.extend(self.census.as_ref().map(|_| self.pool.share(id)));
        if packet.flags & flag::PAYLOAD != 0 {
            mail.payloads.push(self.pool.take_payload(packet.seq as u32));
        }
        self.pool.remove(id);
    }

    /// Takes in what other parts have sent, and leaves the mail empty.
    pub(super) fn accept(&mut self, mail: &mut Mail) {
        let (mut telemetry, mut payloads) = (mail.telemetry.as_slice(), mail.payloads.drain(..));
        let (mut answers, mut shares) = (mail.answers.drain(..), mail.shares.drain(..));
        for Parcel { port, rank, arrival, packet } in mail.parcels.drain(..) {
            let id = self.pool.insert(packet);
            telemetry = self.pool.take_hops(id, telemetry);
            if let Some(answer) = answers.next() {
                *self.pool.answer(id) = answer;
            }
            if let Some(share) = shares.next() {
                self.pool.set_share(id, share);
            }
            if packet.flags & flag::PAYLOAD != 0
                && let Some(payload) = payloads.next()
            {
                self.pool[id].seq = self.pool.store_payload(payload) as u64;
            }
            match self.blocks {
                Some(_) => self.send_abroad(port, id, arrival, rank),
                None => self.fly(port, id, arrival, rank),
            }
        }
        mail.telemetry.clear();
    }

    /// Takes over the nodes of another part at the end of a run, so that what comes out can be looked at as a whole.
    pub(super) fn absorb(&mut self, mut other: Core) {
        let Some(part) = &other.part else { return };
        let (owner, number) = (part.owner.clone(), part.number);
        for port in 0..self.ports.len() {
            let node = self.ports[port].node as usize;
            if owner[node] != number {
                continue;
            }
            self.ports[port] = other.ports[port].clone();
            self.ports[port].frames = self.rethread(&mut other.pool, other.ports[port].frames);
            self.ports[port].control = self.rethread(&mut other.pool, other.ports[port].control);
            self.ports[port].flying = self.rethread_flying(&mut other.pool, other.ports[port].flying);
            if self.ports[port].host {
                let nic = self.ports[port].nic as usize;
                std::mem::swap(&mut self.nics[nic], &mut other.nics[nic]);
                let acks = self.rethread(&mut other.pool, *self.nics[nic].acks());
                self.nics[nic].acks = acks;
            }
            if self.ports[port].has_queues() {
                let first = self.ports[port].first_queue as usize;
                for queue in first..first + self.per_port as usize {
                    self.queues[queue] = other.queues[queue];
                    self.queues[queue].packets = self.rethread(&mut other.pool, other.queues[queue].packets);
                }
            }
            self.masks.copy(&other.masks, port as u32);
            for group in 0..self.setup.switch.groups as usize {
                let first = (group * self.ports.len() + port) * self.classes as usize;
                let accounts = first..first + self.classes as usize;
                self.accounts[accounts.clone()].copy_from_slice(&other.accounts[accounts]);
            }
        }
        for node in (0..owner.len()).filter(|&node| owner[node] == number) {
            self.buffers[node] = other.buffers[node].clone();
            self.samples.used[node] = std::mem::take(&mut other.samples.used[node]);
            self.samples.watermarks[node] = std::mem::take(&mut other.samples.watermarks[node]);
        }
        self.senders.absorb(&other.senders);
        self.receivers.absorb(&other.receivers);
        self.injected.absorb(&other.injected);
        let mine = |node: u32| owner[node as usize] == number;
        let setup = self.setup.clone();
        self.waiting.absorb(&other.waiting, &setup, mine);
        if let Some(series) = &setup.measure.series {
            let port = |port: u32| mine(self.map.node[port as usize]);
            let flow = |flow: u32| mine(setup.flows[flow as usize].dst);
            self.series.absorb(&other.series, series, port, flow);
        }
        if let (Some(ndp), Some(theirs)) = (&mut self.ndp, &other.ndp) {
            ndp.absorb(theirs, |port| mine(self.map.node[port]));
        }
        if let (Some(irn), Some(theirs)) = (&mut self.irn, &other.irn) {
            irn.absorb(theirs);
        }
        let mut slow = std::mem::take(&mut self.slow);
        let map = self.map.clone();
        slow.absorb(other.slow, |port| mine(map.node[port as usize]), |list| self.rethread(&mut other.pool, list));
        self.slow = slow;
        let mut relay = std::mem::take(&mut self.relay);
        let moved = |list| self.rethread_flying(&mut other.pool, list);
        relay.absorb(other.relay, |port| mine(map.node[port]), moved);
        self.relay = relay;
        self.counts.add(&other.counts);
        self.active += other.active;
        self.timers += other.timers;
        self.turns += other.turns;
        self.next_flow = self.next_flow.max(other.next_flow);
        self.now = self.now.max(other.now);
        self.finished.append(&mut other.finished);
        self.captured.append(&mut other.captured);
        self.holds.absorb(&other.holds);
        if let (Some(recorder), Some(theirs)) = (&mut self.recorder, other.recorder) {
            recorder.recording.absorb(theirs.recording);
        }
        self.controls.push(other.control);
    }

    /// The shortest time in which something can pass from here to another part, or from block to block.
    pub(super) fn look_ahead(&self) -> Time {
        let across = self.ports.iter().filter(|port| port.detour & (detour::REMOTE | detour::ABROAD) != 0);
        across.map(|port| port.latency).min().unwrap_or(Time::MAX)
    }

    fn move_in(&mut self, from: &mut Pool, id: PacketId) -> PacketId {
        let packet = from[id];
        let moved = self.pool.insert(packet);
        if packet.flags & flag::PAYLOAD != 0 {
            self.pool[moved].seq = self.pool.store_payload(from.take_payload(packet.seq as u32)) as u64;
        }
        moved
    }

    fn rethread_flying(&mut self, from: &mut Pool, mut list: Flying) -> Flying {
        let mut moved = Flying::default();
        while let Some((id, _)) = list.pop(from) {
            let id = self.move_in(from, id);
            moved.push(&mut self.pool, id, Time::ZERO, 0);
        }
        moved
    }

    fn rethread(&mut self, from: &mut Pool, mut list: Fifo) -> Fifo {
        let mut moved = Fifo::default();
        while let Some(id) = list.pop(from) {
            debug_assert!(id != NONE);
            let id = self.move_in(from, id);
            moved.push(&mut self.pool, id);
        }
        moved
    }
}
