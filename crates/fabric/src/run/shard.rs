//! A shard of a fabric: the nodes that one thread runs, and what passes between it and the others.
//!
//! Nodes share nothing, and whatever one does to another takes at least the time of a link. So a fabric can be cut along its
//! links: each shard has its own events and packets, and a packet whose link ends in another shard is posted there.

use super::{Core, Network, Paths};
use crate::axes::Chosen;
use crate::axes::flow_control::FlowControl;
use crate::axes::load_balancing::Label;
use crate::id::NodeId;
use crate::message::Payload;
use crate::packet::{Answer, Fifo, Hop, NONE, Packet, PacketId, Pool, flag};
use crate::port::{Flying, detour};
use crate::probe::{Pulse, Trail};
use crate::setup::{FlowSpec, Setup};
use engine::{Rate, Time};
use std::ops::{Index, IndexMut};
use std::sync::Arc;

/// One value for each flow that has an end in this shard.
pub struct PerFlow<T> {
    items: Vec<T>,
    /// By flow, its place among the items, if not its own number: 0 for flows of other shards.
    places: Option<Arc<[u32]>>,
}

impl<T: Clone> PerFlow<T> {
    /// What `make` gives for every flow whose `end` (its source or its destination) is in the shard, if there are shards.
    pub(crate) fn new(
        setup: &Setup,
        shard: &Option<Shard>,
        end: fn(&FlowSpec) -> u32,
        make: impl Fn(&FlowSpec) -> T,
    ) -> PerFlow<T> {
        let Some(shard) = shard else { return PerFlow { items: setup.flows.iter().map(make).collect(), places: None } };
        let mut items = vec![make(&FlowSpec::plain(0, 0, 0, 0, Time::ZERO))];
        let places = setup.flows.iter().map(|flow| {
            if !shard.owns(end(flow)) {
                return 0;
            }
            items.push(make(flow));
            items.len() as u32 - 1
        });
        let places = places.collect();
        items.shrink_to_fit();
        PerFlow { items, places: Some(places) }
    }

    /// All of them, by flow.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        let count = self.places.as_ref().map_or(self.items.len(), |places| places.len());
        (0..count).map(|flow| &self[flow])
    }

    /// Takes the flows of another shard into what were those of one.
    pub(crate) fn absorb(&mut self, other: &PerFlow<T>) {
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
    #[inline(always)]
    fn index(&self, flow: usize) -> &T {
        match &self.places {
            None => &self.items[flow],
            Some(places) => &self.items[places[flow] as usize],
        }
    }
}
impl<T> IndexMut<usize> for PerFlow<T> {
    #[inline(always)]
    fn index_mut(&mut self, flow: usize) -> &mut T {
        match &self.places {
            None => &mut self.items[flow],
            Some(places) => &mut self.items[places[flow] as usize],
        }
    }
}

/// Packets in flight from one shard to another.
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
    /// In runs with labels, that of every parcel.
    labels: Vec<Label>,
    /// What those parcels carry that are frames with a payload, in order.
    payloads: Vec<Box<[u64]>>,
    /// In runs that ask where time goes, where the data packets among them have been, in order.
    trails: Vec<Trail>,
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
        let trails = size_of_val(self.trails.as_slice()) + size_of_val(self.labels.as_slice());
        let bytes = size_of_val(self.parcels.as_slice()) + hops + rest + payloads + trails;
        (self.parcels.len() as u64, bytes as u64)
    }
    /// The first arrival, if there is any.
    pub(super) fn first(&self) -> Option<Time> {
        (!self.is_empty()).then_some(self.first)
    }
}

/// A packet that was sent to a node that no thread runs.
pub(crate) struct Posted {
    /// The port that sent it.
    pub(crate) port: u32,
    /// When it would arrive.
    pub(crate) arrival: Time,
    pub(crate) packet: Packet,
    /// What it carries, if it is a frame with a payload.
    pub(crate) payload: Option<Payload>,
    /// What it says beyond its header, in runs whose ACKs do.
    pub(crate) answer: Option<Answer>,
    /// What switches wrote on it, in runs whose load balancing does.
    pub(crate) label: Option<Label>,
}

/// Which shard of a fabric a core runs.
pub(crate) struct Shard {
    pub(super) number: u16,
    /// By node.
    pub(super) owner: Arc<[u16]>,
    /// By shard.
    pub(super) outbox: Vec<Mail>,
    /// What the last sample saw, until the next is planned.
    pub(crate) pulse: Option<(Time, Pulse)>,
    /// The same of the sampling of what is followed closely.
    pub(crate) beat: Option<(Time, Pulse)>,
}

impl Shard {
    pub(super) fn new(number: u16, shards: usize, owner: Arc<[u16]>) -> Shard {
        let outbox = (0..shards).map(|_| Mail::default()).collect();
        Shard { number, owner, outbox, pulse: None, beat: None }
    }
    pub(crate) fn owns(&self, node: u32) -> bool {
        self.owner[node as usize] == self.number
    }
}

impl Core {
    /// Whether a node is run here.
    #[inline]
    pub(crate) fn owns(&self, node: u32) -> bool {
        self.shard.as_ref().is_none_or(|shard| shard.owns(node))
            && self.blocks.as_ref().is_none_or(|blocks| blocks.at(node))
    }

    /// The first flow from number `from` on whose sender is run here.
    pub(crate) fn next_own_flow(&self, from: usize) -> usize {
        if let Some(flows) = self.blocks.as_ref().and_then(|blocks| blocks.flows()) {
            let place = flows.partition_point(|&flow| (flow as usize) < from);
            return flows.get(place).map_or(self.setup.flows.len(), |&flow| flow as usize);
        }
        let Some(shard) = &self.shard else { return from };
        let later = self.setup.flows[from..].iter().position(|flow| shard.owns(flow.src.0));
        later.map_or(self.setup.flows.len(), |later| from + later)
    }

    /// Whether nothing is under way to another shard or block.
    pub(super) fn nothing_posted(&self) -> bool {
        self.shard.as_ref().is_none_or(|shard| shard.outbox.iter().all(Mail::is_empty))
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
        if what & detour::REPEATED != 0 && self.keep_sent(port, id) {
            return true;
        }
        self.hand_over(port, id, arrival, rank)
    }

    /// Sends a packet that is put on the link of `port` to the shard or the block where that ends. False if it ends in this one.
    fn hand_over(&mut self, port: u32, id: PacketId, arrival: Time, rank: u32) -> bool {
        let what = self.ports[port as usize].detour;
        let peer = self.ports[port as usize].peer;
        if what & detour::REMOTE != 0 {
            self.post(peer, id, arrival, rank);
        } else if what & detour::ABROAD != 0 {
            let toward = self.ports[port as usize].toward;
            if let Some(blocks) = &mut self.blocks {
                blocks.send(toward, peer, id, arrival, rank);
            }
        }
        what & (detour::REMOTE | detour::ABROAD) != 0
    }

    /// Lets the link of `port` carry something of its own.
    pub(super) fn carry(&mut self, port: u32, id: PacketId, arrival: Time, rank: u32) {
        if !self.hand_over(port, id, arrival, rank) {
            self.fly(self.ports[port as usize].peer, id, arrival, rank);
        }
    }

    /// Sends a packet to the shard where its link ends, at `port`.
    fn post(&mut self, port: u32, id: PacketId, arrival: Time, rank: u32) {
        let packet = self.pool[id];
        let node = self.ports[port as usize].node;
        let Some(shard) = &mut self.shard else { return };
        let mail = &mut shard.outbox[shard.owner[node as usize] as usize];
        mail.first = if mail.is_empty() { arrival } else { mail.first.min(arrival) };
        mail.parcels.push(Parcel { port, rank, arrival, packet });
        mail.telemetry.extend_from_slice(self.pool.telemetry(id));
        mail.answers.extend(self.pool.said(id));
        mail.labels.extend(self.pool.label(id).copied());
        mail.shares.extend(self.hosts.census.as_ref().map(|_| self.pool.share(id)));
        if packet.flags & flag::PAYLOAD != 0 {
            mail.payloads.push(self.pool.take_payload(packet.flow));
        }
        if packet.flags & Trail::KEPT != 0 {
            mail.trails.extend(self.pool.trail(id).map(std::mem::take));
        }
        self.pool.remove(id);
    }

    /// Takes what was sent to other shards, in the order of sending.
    pub(crate) fn take_post(&mut self) -> Vec<Posted> {
        let Some(shard) = &mut self.shard else { return Vec::new() };
        let mut all = Vec::new();
        for mail in &mut shard.outbox {
            let (mut payloads, mut answers) = (mail.payloads.drain(..), mail.answers.drain(..));
            let mut labels = mail.labels.drain(..);
            all.extend(mail.parcels.drain(..).map(|Parcel { port, arrival, packet, .. }| Posted {
                port: self.map.peer[port as usize],
                arrival,
                packet,
                payload: (packet.flags & flag::PAYLOAD != 0).then(|| payloads.next()).flatten(),
                answer: answers.next(),
                label: labels.next(),
            }));
            mail.telemetry.clear();
            mail.shares.clear();
            mail.trails.clear();
        }
        all
    }

    /// Takes in what other shards have sent, and leaves the mail empty.
    pub(super) fn accept(&mut self, mail: &mut Mail) {
        let (mut telemetry, mut payloads) = (mail.telemetry.as_slice(), mail.payloads.drain(..));
        let (mut answers, mut shares) = (mail.answers.drain(..), mail.shares.drain(..));
        let (mut trails, mut labels) = (mail.trails.drain(..), mail.labels.drain(..));
        for Parcel { port, rank, arrival, packet } in mail.parcels.drain(..) {
            let id = self.pool.insert(packet);
            telemetry = self.pool.take_hops(id, telemetry);
            if let Some(answer) = answers.next() {
                *self.pool.answer(id) = answer;
            }
            if let (Some(label), Some(own)) = (labels.next(), self.pool.label(id)) {
                *own = label;
            }
            if let Some(share) = shares.next() {
                self.pool.set_share(id, share);
            }
            if packet.flags & flag::PAYLOAD != 0
                && let Some(payload) = payloads.next()
            {
                self.pool[id].flow = self.pool.store_payload(payload);
            }
            if packet.flags & Trail::KEPT != 0
                && let Some(trail) = self.pool.trail(id)
            {
                *trail = trails.next().unwrap_or_default();
            }
            self.send_from_afar(port, id, arrival, rank);
        }
        mail.telemetry.clear();
    }

    /// Takes over the nodes of another shard at the end of a run, so that what comes out can be looked at as a whole.
    fn absorb(&mut self, mut other: Core) {
        let Some(shard) = &other.shard else { return };
        let (owner, number) = (shard.owner.clone(), shard.number);
        let mine = |node: u32| owner[node as usize] == number;
        let (setup, map, ports) = (self.setup.clone(), self.map.clone(), self.ports.len());
        for port in (0..ports).filter(|&port| mine(map.node[port])) {
            self.absorb_packets(&mut other, port);
            self.switches.absorb_port(&other.switches, port, ports, setup.switch.groups as usize);
        }
        for node in (0..owner.len()).filter(|&node| mine(node as u32)) {
            self.switches.absorb_node(&mut other.switches, node);
        }
        let sidings = other.switches.labels.take_sidings();
        sidings.for_each(|(key, list)| {
            let moved = self.rethread(&mut other.pool, list);
            self.switches.labels.put_siding(key, moved);
        });
        self.switches.absorb_counts(&other.switches);
        self.hosts.absorb_flows(&mut other.hosts, &setup, mine);
        let mut slow = std::mem::take(&mut self.hosts.slow);
        let theirs = std::mem::take(&mut other.hosts.slow);
        slow.absorb(theirs, |port| mine(map.node[port as usize]), |list| self.rethread(&mut other.pool, list));
        self.hosts.slow = slow;
        let mut relay = std::mem::take(&mut self.hosts.relay);
        let theirs = std::mem::take(&mut other.hosts.relay);
        let moved = |list| self.rethread_flying(&mut other.pool, list);
        relay.absorb(theirs, |port| mine(map.node[port]), moved);
        self.hosts.relay = relay;
        let mut reactions = std::mem::take(&mut self.reactions);
        let theirs = std::mem::take(&mut other.reactions);
        let moved = |list| self.rethread_flying(&mut other.pool, list);
        reactions.absorb(theirs, |port| mine(map.node[port]), moved);
        self.reactions = reactions;
        self.hosts.controls.push(other.hosts.control);
        self.probes.absorb(other.probes, &setup, &map, mine);
        self.counts.add(&other.counts);
        self.time.now = self.time.now.max(other.time.now);
        self.progress.absorb(other.progress);
    }

    /// Takes over a port, with what waits and flies there.
    fn absorb_packets(&mut self, other: &mut Core, port: usize) {
        self.ports[port] = other.ports[port].clone();
        self.ports[port].frames = self.rethread(&mut other.pool, other.ports[port].frames);
        self.ports[port].control = self.rethread(&mut other.pool, other.ports[port].control);
        self.ports[port].flying = self.rethread_flying(&mut other.pool, other.ports[port].flying);
        let (mut retry, mut theirs) = (std::mem::take(&mut self.retry), std::mem::take(&mut other.retry));
        retry.absorb_port(&mut theirs, port, |list| self.rethread(&mut other.pool, list));
        (self.retry, other.retry) = (retry, theirs);
        if self.ports[port].host {
            let nic = self.ports[port].nic as usize;
            std::mem::swap(&mut self.hosts.nics[nic], &mut other.hosts.nics[nic]);
            let acks = self.rethread(&mut other.pool, *self.hosts.nics[nic].acks());
            self.hosts.nics[nic].acks = acks;
        }
        if self.ports[port].has_queues() {
            let first = self.ports[port].first_queue as usize;
            for queue in first..first + self.switches.per_port as usize {
                self.switches.queues[queue] = other.switches.queues[queue];
                self.switches.queues[queue].packets =
                    self.rethread(&mut other.pool, other.switches.queues[queue].packets);
            }
        }
    }

    /// The shortest time in which something can pass from here to another shard, or from block to block.
    pub(super) fn look_ahead(&self) -> Time {
        let across = self.ports.iter().filter(|port| port.detour & (detour::REMOTE | detour::ABROAD) != 0);
        across.map(|port| port.latency).min().unwrap_or(Time::MAX)
    }

    fn move_in(&mut self, from: &mut Pool, id: PacketId) -> PacketId {
        let packet = from[id];
        let moved = self.pool.insert(packet);
        if packet.flags & flag::PAYLOAD != 0 {
            self.pool[moved].flow = self.pool.store_payload(from.take_payload(packet.flow));
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

impl<F: FlowControl> Network<F> {
    /// One node of a fabric, as a shard of its own. The rest is a shard that no thread runs: what is sent there is posted. No flow starts by
    /// itself.
    pub(crate) fn alone(setup: Setup, node: NodeId, scheme: F, chosen: &Chosen<'_>) -> Network<F> {
        let paths = Paths::new(&setup);
        let owner = (0..setup.graph.nodes.len() as u32).map(|other| (other != node.0) as u16).collect();
        let mut network = Network::shard(Arc::new(setup), paths, scheme, chosen, Some(Shard::new(0, 2, owner)));
        network.core.time.events.drain();
        network.core.progress.next_flow = network.core.setup.flows.len();
        // What happens next at this instant is up to who holds the bench.
        (network.core.unwatched, network.core.quick) = (false, false);
        network
    }

    /// Takes over what another shard has run.
    pub(super) fn absorb(&mut self, mut other: Network<F>) {
        if let Some(shard) = &other.core.shard {
            for node in (0..self.nodes.len()).filter(|&node| shard.owns(node as u32)) {
                std::mem::swap(&mut self.nodes[node], &mut other.nodes[node]);
            }
        }
        self.transports.push(other.transport);
        self.core.absorb(other.core);
    }
}
