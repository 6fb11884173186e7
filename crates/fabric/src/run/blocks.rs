//! A fabric node by node, or block by block, so that what is needed next is near and already in order.
//!
//! In the order of time each event happens far from the one before. But what a node does reaches another no sooner than a link's
//! delay later. So the nodes take turns: all that happens at a node within that time is done before the next node has its
//! turn. What will arrive there in its turn was sent before, and is known: it is put in order at once, and merged with the few events of
//! the node itself. What is sent waits for the other node's next turn. The order of events is a property of the events
//! alone, so that no node can see the difference.
//!
//! Where links are too short for that, a large fabric is cut into *blocks* of a rack or two that take such turns among themselves, each with a
//! queue of events of its own: a fabric of thousands of hosts fits into no cache. A node alone is a block, too.
//!
//! It is the idea of [`super::parallel`] without threads: blocks share one core, so that a packet that changes block stays
//! where it is in memory.
//!
//! Samples and changes of links belong to no block: all blocks come up to them first. Whether the run is over cannot
//! be known block by block, so that all goes back to the order of time as soon as a turn might be the last.

use super::parallel::{cut, one_by_one};
use super::{Class, Core, EVENTS_PER_PORT, Network, REPORT_EVERY};
use crate::axes::flow_control::FlowControl;
use crate::packet::PacketId;
use crate::port::detour;
use engine::{Event, EventQueue, Time};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Range;

/// Ports of a fabric from which on blocks pay.
pub(super) const LARGE: usize = 1_000;
/// Ports of a block: with the packets and flows there they fill a good part of a second-level cache.
const PORTS: usize = 64;
/// Turns shorter than this are not worth the change of place.
const SHORTEST: Time = Time(200_000);
/// How many packets ahead those are asked for that arrive in a turn.
const SOON: usize = 6;

/// A packet on a link from another block.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Flight {
    /// Its arrival; the source is the port.
    event: Event,
    packet: PacketId,
}

struct Block {
    /// What was sent here from other blocks, in no order.
    inbox: Vec<Flight>,
    /// When the first of it arrives that was sent in the turn under way.
    fresh: Time,
    /// When something else happens here next.
    next: Time,
    /// How much of it was sent before the turn under way.
    due: usize,
    events: Box<EventQueue>,
    /// What was sent here and is more than a few turns away.
    distant: BinaryHeap<Reverse<Flight>>,
    /// Ports among which are those of its nodes.
    ports: Range<u32>,
    /// The flows that start in it.
    flows: Vec<u32>,
    next_flow: usize,
}

impl Block {
    fn new(events: EventQueue, ports: Range<u32>, next_flow: usize) -> Block {
        let (inbox, distant, flows) = (Vec::new(), BinaryHeap::new(), Vec::new());
        Block {
            inbox,
            fresh: Time::MAX,
            next: Time::MAX,
            due: 0,
            events: Box::new(events),
            distant,
            ports,
            flows,
            next_flow,
        }
    }
}

impl Block {
    /// A turn begins: what was sent here so far may arrive in it.
    fn settle(&mut self) {
        self.due = self.inbox.len();
        self.next = self.next.min(self.fresh);
        self.fresh = Time::MAX;
    }
}

/// The blocks of a fabric, or of a shard of it.
pub(super) struct Blocks {
    blocks: Vec<Block>,
    /// By node; [`ELSEWHERE`] for nodes of another shard.
    of_node: Vec<u32>,
    /// By port.
    of_port: Vec<u32>,
    /// Counts the turns.
    turn: u64,
    /// Whose it is.
    now: Option<u32>,
    /// The shortest time in which something gets from one to another.
    look_ahead: Time,
    /// The last event that has happened.
    latest: Event,
    /// No flow from this number on has something to send from one block to another.
    witness: usize,
    /// What arrives in the turn under way.
    arrivals: Arrivals,
}

const ELSEWHERE: u32 = u32::MAX;

impl Blocks {
    /// Whether it is the turn of a node.
    pub(super) fn at(&self, node: u32) -> bool {
        self.now.is_none_or(|now| self.of_node[node as usize] == now)
    }

    /// The flows that start in the block whose turn it is.
    pub(super) fn flows(&self) -> Option<&[u32]> {
        Some(&self.blocks[self.now? as usize].flows)
    }

    /// Puts a packet on a link that ends at `port`, in the block with the number `toward`.
    #[inline(always)]
    pub(super) fn send(&mut self, toward: u32, port: u32, packet: PacketId, arrival: Time, rank: u32) {
        let block = &mut self.blocks[toward as usize];
        block.inbox.push(Flight { event: Event::new(arrival, rank, Class::Arrival as u8, port), packet });
        block.fresh = arrival.min(block.fresh);
    }

    /// What is under way between blocks: arrivals, in no order, and the packets.
    pub(super) fn under_way(&self) -> impl Iterator<Item = (Event, PacketId)> {
        let near = self.blocks.iter().flat_map(|block| block.inbox.iter());
        let far = self.blocks.iter().flat_map(|block| block.distant.iter().map(|Reverse(flight)| flight));
        near.chain(far).map(|flight| (flight.event, flight.packet))
    }

    /// Whether nothing is under way between blocks.
    pub(super) fn nothing_posted(&self) -> bool {
        self.blocks.iter().all(|block| block.inbox.is_empty() && block.distant.is_empty())
    }
}

/// What arrives at a block in its turn.
#[derive(Default)]
struct Arrivals {
    /// What had been sent to it; behind that, what lay ready since longer. The last is no packet: it has the end of the turn.
    flights: Vec<Flight>,
    /// The order in which they arrive, each as a word: the time since the turn began, and in the lower bits its place among the flights.
    order: Vec<u64>,
    /// The same before they are put in order.
    unsorted: Vec<u64>,
}

/// Bits of the place in a word of [`Arrivals::order`]: enough for more than fits into memory.
const PLACE_BITS: u32 = 28;
/// Turns are shorter than this, so that the times in them fit into the other bits.
const LONGEST: Time = Time(1 << (u64::BITS - PLACE_BITS));

/// The place in a word of [`Arrivals::order`].
#[inline(always)]
fn place(word: u64) -> usize {
    (word & ((1 << PLACE_BITS) - 1)) as usize
}

impl Arrivals {
    /// Takes from a block what arrives before `limit`, all of it from `start` on. What arrives after `near` need not be looked at for a while.
    fn take(&mut self, block: &mut Block, start: Time, limit: Event, near: Time) {
        self.flights.clear();
        std::mem::swap(&mut self.flights, &mut block.inbox);
        block.next = Time::MAX;
        if block.ports.len() == 1 {
            return self.take_first(block, limit);
        }
        match block.due {
            0 => self.order.clear(),
            1..=40 => self.scatter::<16>(block, start, limit, near),
            41..=200 => self.scatter::<64>(block, start, limit, near),
            _ => self.scatter::<256>(block, start, limit, near),
        }
        block.inbox.extend_from_slice(&self.flights[block.due..]);
        self.flights.truncate(block.due);
        while let Some(&Reverse(flight)) = block.distant.peek() {
            if flight.event >= limit {
                block.next = block.next.min(flight.event.time());
                break;
            }
            block.distant.pop();
            let after = flight.event.time().0.saturating_sub(start.0);
            self.order.push(after << PLACE_BITS | self.flights.len() as u64);
            self.flights.push(flight);
        }
        self.settle();
        self.order.push(self.flights.len() as u64);
        self.flights.push(Flight { event: limit, packet: PacketId::MAX });
    }

    /// The same of a block that is reached by one link: what it delivers is in order, and needs no other.
    fn take_first(&mut self, block: &mut Block, limit: Event) {
        let due = &self.flights[..block.due];
        let count = due.iter().position(|flight| flight.event >= limit).unwrap_or(due.len());
        block.next = due.get(count).map_or(Time::MAX, |flight| flight.event.time());
        block.inbox.extend_from_slice(&self.flights[count..]);
        self.flights.truncate(count);
    }

    /// Takes them in the order of `SLOTS` equal slots of time.
    #[inline(never)]
    fn scatter<const SLOTS: usize>(&mut self, block: &mut Block, start: Time, limit: Event, near: Time) {
        let span = limit.time().saturating_sub(start).0;
        debug_assert!(span < LONGEST.0 && self.flights.len() < 1 << PLACE_BITS);
        let shift = (u64::BITS - span.leading_zeros()).saturating_sub(SLOTS.trailing_zeros());
        let slot = |after: u64| (after >> shift) as usize % SLOTS;
        let mut places = [0u32; SLOTS];
        let due = &self.flights[..block.due];
        self.unsorted.resize(due.len().max(self.unsorted.len()), 0);
        let unsorted = &mut self.unsorted[..due.len()];
        let mut count = 0;
        for (place, flight) in (0u64..).zip(due) {
            let after = flight.event.time().0.wrapping_sub(start.0);
            if after < span || after == span && flight.event < limit {
                places[slot(after)] += 1;
                unsorted[count] = after << PLACE_BITS | place;
                count += 1;
            } else if flight.event.time() < near {
                block.next = block.next.min(flight.event.time());
                block.inbox.push(*flight);
            } else {
                block.distant.push(Reverse(*flight));
            }
        }
        let mut before = 0;
        for place in &mut places {
            before += std::mem::replace(place, before);
        }
        if self.order.len() < count {
            self.order.resize(count, 0);
        }
        self.order.truncate(count);
        for &word in &unsorted[..count] {
            let place = &mut places[slot(word >> PLACE_BITS)];
            self.order[*place as usize] = word;
            *place += 1;
        }
    }

    /// Puts them in order where they are not: the slots are, in each there are few, and most of them are in order, too.
    fn settle(&mut self) {
        let (order, flights) = (self.order.as_mut_slice(), self.flights.as_slice());
        let Some(&(mut last)) = order.first() else { return };
        for at in 1..order.len() {
            let word = order[at];
            if last >> PLACE_BITS < word >> PLACE_BITS {
                last = word;
                continue;
            }
            let event = flights[place(word)].event;
            let mut to = at;
            while to > 0 && flights[place(order[to - 1])].event > event {
                order[to] = order[to - 1];
                to -= 1;
            }
            order[to] = word;
            last = order[at];
        }
    }
}

impl Core {
    /// Cuts what is run here into blocks, if that pays. Nothing has happened yet.
    pub(super) fn cut_into_blocks(&mut self) {
        let setup = self.setup.clone();
        if setup.blocks == Some(1) || self.sequential || one_by_one(&setup) {
            return;
        }
        let (all, nodes) = (self.map.count(), setup.graph.nodes.len());
        let owned: Vec<bool> = (0..nodes as u32).map(|node| self.owns(node)).collect();
        let own: Vec<usize> = (0..all).filter(|&port| owned[self.map.node[port] as usize]).collect();
        let shortest = own.iter().map(|&port| self.ports[port].latency).min().unwrap_or_default();
        let single = setup.blocks.is_none() && shortest >= SHORTEST;
        let plan: Option<(Vec<u32>, usize)> = match setup.blocks {
            None if single => Some(((0..nodes as u32).collect(), nodes)),
            None if all < LARGE => None,
            count => cut(&setup.graph, count.unwrap_or(all / PORTS))
                .map(|plan| (plan.owner.into_iter().map(u32::from).collect(), plan.shards)),
        };
        let Some((owner, shards)) = plan else { return };
        // Only those with nodes of this shard, renumbered.
        let mut numbers = vec![ELSEWHERE; shards];
        let mut used = 0;
        let number = |(owner, own): (u32, bool)| {
            if !own {
                return ELSEWHERE;
            }
            let number = &mut numbers[owner as usize];
            if *number == ELSEWHERE {
                *number = used;
                used += 1;
            }
            *number
        };
        let of_node: Vec<u32> = owner.into_iter().zip(owned).map(number).collect();
        let of_port: Vec<u32> = self.map.node.iter().map(|&node| of_node[node as usize]).collect();
        let abroad = |port: usize| {
            let far = of_port[self.map.peer[port] as usize];
            far != ELSEWHERE && far != of_port[port]
        };
        let crossing: Vec<usize> = own.iter().copied().filter(|&port| abroad(port)).collect();
        let look_ahead = crossing.iter().map(|&port| self.ports[port].latency).min().unwrap_or(Time::MAX);
        // Blocks that were asked for are used, however short the turns.
        let shortest = if setup.blocks.is_some() { Time(1) } else { SHORTEST };
        if used < 2 || look_ahead < shortest {
            return;
        }
        let look_ahead = look_ahead.min(LONGEST - Time(1));
        for port in crossing {
            self.ports[port].detour |= detour::ABROAD;
            self.ports[port].toward = of_port[self.map.peer[port] as usize];
        }
        let density = own.len() as f64 / used as f64 * EVENTS_PER_PORT;
        let events = || if single { EventQueue::small() } else { EventQueue::new(density, self.time.horizon) };
        let mut blocks: Vec<Block> =
            (0..used).map(|_| Block::new(events(), 0..all as u32, setup.flows.len())).collect();
        if single {
            for (node, &number) in (0..).zip(&of_node).filter(|(_, number)| **number != ELSEWHERE) {
                blocks[number as usize].ports = self.map.of(node);
            }
        }
        for (number, flow) in (0..).zip(&setup.flows) {
            if let Some(block) = blocks.get_mut(of_node[flow.src.index()] as usize) {
                block.flows.push(number);
            }
        }
        for block in &mut blocks {
            let Some(&first) = block.flows.first() else { continue };
            (block.next, block.next_flow) = (setup.flows[first as usize].start, first as usize);
            block.events.push(Event::new(block.next, Event::LAST, Class::FlowStart as u8, 0));
        }
        // What happens to all stays where it is.
        for event in self.time.events.drain() {
            debug_assert!(!Class::of(event).at_a_node());
            if Class::of(event) != Class::FlowStart {
                self.time.events.push(event);
            }
        }
        self.time.far_apart = false;
        self.blocks = Some(Box::new(Blocks {
            blocks,
            of_node,
            of_port,
            turn: 0,
            now: None,
            look_ahead,
            latest: Event::first_at(Time::ZERO),
            witness: setup.flows.len(),
            arrivals: Arrivals::default(),
        }));
    }

    /// Puts a packet that comes from another shard on its link, which ends at `port`.
    pub(super) fn send_from_afar(&mut self, port: u32, packet: PacketId, arrival: Time, rank: u32) {
        match &mut self.blocks {
            Some(blocks) => blocks.send(blocks.of_port[port as usize], port, packet, arrival, rank),
            None => self.fly(port, packet, arrival, rank),
        }
    }

    /// The ports among which are all of those whose turn it is.
    pub(super) fn ports_at_hand(&self) -> Range<u32> {
        let at_hand = self.blocks.as_ref().and_then(|blocks| Some(blocks.blocks[blocks.now? as usize].ports.clone()));
        at_hand.unwrap_or(0..self.ports.len() as u32)
    }

    /// The flows that have begun at the nodes whose turn it is.
    pub(crate) fn begun_at_hand(&self) -> Vec<u32> {
        let begun = self.progress.next_flow as u32;
        match self.blocks.as_ref().and_then(|blocks| blocks.flows()) {
            Some(flows) => flows.iter().copied().take_while(|flow| *flow < begun).collect(),
            None => (0..begun).collect(),
        }
    }

    /// Whether the run cannot be over before the blocks have had a turn: something is still to be sent from one of them to another.
    pub(super) fn goes_on(&mut self) -> bool {
        let Some(blocks) = &mut self.blocks else { return false };
        while let Some(flow) = blocks.witness.checked_sub(1) {
            let spec = &self.setup.flows[flow];
            let (from, to) = (blocks.of_node[spec.src.index()], blocks.of_node[spec.dst.index()]);
            let sender = &self.hosts.senders[flow];
            // What was sent before may have arrived, even if the sender is about to repeat it; and a sender that leaves early may be
            // done without another packet.
            let unsent = !sender.started() || sender.high < sender.size;
            if from != ELSEWHERE && from != to && unsent && spec.until == Time::MAX {
                return true;
            }
            blocks.witness = flow;
        }
        false
    }

    /// Whether nothing is left to happen but a look at it, which is dropped then.
    fn drop_last_look(&mut self) -> bool {
        let Some(look) = self.time.events.next_event().filter(|event| Class::of(*event) == Class::Forward) else {
            return false;
        };
        let blocks = self.blocks.iter().flat_map(|blocks| &blocks.blocks);
        if blocks.map(|block| block.next.min(block.fresh)).any(|next| next < Time::MAX) {
            return false;
        }
        self.time.events.pop();
        let last = self.time.events.is_empty();
        if !last {
            self.time.events.push(look);
        }
        last
    }

    /// When something happens here next.
    pub(super) fn next_time(&mut self) -> Option<Time> {
        let blocks = self.blocks.iter().flat_map(|blocks| &blocks.blocks).map(|block| block.next.min(block.fresh));
        blocks.min().filter(|next| *next < Time::MAX).into_iter().chain(self.time.events.next_time()).min()
    }

    /// The first flow that starts here and has not.
    pub(super) fn first_to_start(&self) -> usize {
        match &self.blocks {
            Some(blocks) => {
                blocks.blocks.iter().fold(self.setup.flows.len(), |first, block| first.min(block.next_flow))
            }
            None => self.progress.next_flow,
        }
    }

    /// Whether no other block is asked before this one.
    pub(super) fn is_first(&self) -> bool {
        self.blocks.as_ref().and_then(|blocks| blocks.now).is_none_or(|now| now == 0)
    }

    /// The turn of a block begins: its events are those that happen.
    fn begin_turn(&mut self, number: usize) {
        self.change_places(number);
        if let Some(blocks) = &mut self.blocks {
            blocks.now = Some(number as u32);
        }
    }

    fn end_turn(&mut self, number: usize) {
        self.change_places(number);
        let Some(blocks) = &mut self.blocks else { return };
        let block = &mut blocks.blocks[number];
        if let Some(next) = block.events.next_time() {
            block.next = next.min(block.next);
        }
        blocks.latest = blocks.latest.max(self.time.current);
        blocks.now = None;
    }

    fn change_places(&mut self, number: usize) {
        let Some(blocks) = &mut self.blocks else { return };
        let block = &mut blocks.blocks[number];
        std::mem::swap(&mut self.time.events, &mut block.events);
        std::mem::swap(&mut self.progress.next_flow, &mut block.next_flow);
    }

    /// Plans the starts of flows anew, because they come sooner than they did.
    pub(super) fn replan_starts(&mut self) {
        let (flows, time) = (&self.setup.flows, &mut self.time);
        let start = |skipped: Time, flow: usize| {
            let start = flows.get(flow)?.start.saturating_sub(skipped);
            Some(Event::new(start, Event::LAST, Class::FlowStart as u8, 0))
        };
        let Some(blocks) = &mut self.blocks else {
            start(time.skipped, self.progress.next_flow).into_iter().for_each(|event| time.events.push(event));
            return;
        };
        for block in &mut blocks.blocks {
            if let Some(event) = start(time.skipped, block.next_flow) {
                block.next = block.next.min(event.time());
                block.events.push(event);
            }
        }
    }

    /// Goes back to one order for all. Gives the last event that has happened.
    pub(super) fn leave_blocks(&mut self) -> Option<Event> {
        self.progress.next_flow = self.first_to_start();
        let blocks = self.blocks.take()?;
        self.time.far_apart = true;
        for port in &mut self.ports {
            port.detour &= !detour::ABROAD;
        }
        for mut block in blocks.blocks {
            for event in block.events.drain().into_iter().filter(|event| Class::of(*event) != Class::FlowStart) {
                self.time.events.push(event);
            }
            let mut flights = block.inbox;
            flights.extend(block.distant.into_iter().map(|Reverse(flight)| flight));
            flights.sort_unstable();
            for Flight { event, packet } in flights {
                self.fly(event.source(), packet, event.time(), event.rank());
            }
        }
        if let Some(flow) = self.setup.flows.get(self.progress.next_flow) {
            let start = self.time.planned(flow.start);
            self.time.events.push(Event::new(start, Event::LAST, Class::FlowStart as u8, 0));
        }
        self.time.now = self.time.now.max(blocks.latest.time());
        self.progress.turns = blocks.turn;
        self.progress.finished.sort_by_key(|(event, _)| *event);
        Some(blocks.latest)
    }
}

impl<F: FlowControl> Network<F> {
    /// Runs block by block for as long as the run cannot end. True if the report ended it.
    pub(super) fn run_blocks(&mut self, report: &mut impl FnMut(Time, u64) -> bool) -> bool {
        let (mut reported, mut interrupted) = (0, false);
        while !interrupted && !self.core.progress.stuck && self.core.goes_on() && !self.core.drop_last_look() {
            let stop = self.core.time.planned(self.core.setup.stop);
            let Some(next) = self.core.next_time().filter(|next| *next < stop) else { break };
            self.core.record_until(next);
            self.turn(next, self.core.frame_edge(stop));
            if self.core.counts.events - reported >= REPORT_EVERY as u64 {
                reported = self.core.counts.events;
                interrupted = !report(next, self.core.counts.hops);
                self.core.offer_recording(&[]);
            }
        }
        self.core.leave_blocks();
        interrupted
    }

    /// From `next`, when something happens, a turn of each block; nothing from `limit` on. Or what happens to all, if it is its time.
    pub(super) fn turn(&mut self, next: Time, limit: Time) {
        let for_all = self.core.time.events.next_event();
        let Some(blocks) = &mut self.core.blocks else { return };
        let limit = Event::first_at(next.saturating_add(blocks.look_ahead).min(limit));
        let limit = for_all.map_or(limit, |event| event.min(limit));
        blocks.turn += 1;
        blocks.blocks.iter_mut().for_each(Block::settle);
        let mut quiet = true;
        for number in 0..blocks.blocks.len() {
            quiet &= !self.turn_of(number, next, limit);
        }
        if quiet && let Some(event) = self.core.time.events.pop() {
            assert!(event.time() == next, "an event of a block was overlooked");
            self.happen_to_all(event);
        }
    }

    /// The turn of a block, from `start` on. True if something happened.
    fn turn_of(&mut self, number: usize, start: Time, limit: Event) -> bool {
        let Some(blocks) = &mut self.core.blocks else { return false };
        let block = &mut blocks.blocks[number];
        if block.next > limit.time() {
            return false;
        }
        let near = limit.time().saturating_add(Time(blocks.look_ahead.0.saturating_mul(2)));
        blocks.arrivals.take(block, start, limit, near);
        let one_link = block.ports.len() == 1;
        let arrivals = std::mem::take(&mut blocks.arrivals);
        self.core.begin_turn(number);
        self.core.time.events.open(limit.time());
        let (count, own) = if one_link { self.take_all(&arrivals, limit) } else { self.take_in_order(&arrivals) };
        let own = own + self.step_before(limit);
        self.core.counts.hops += count as u64;
        self.core.counts.events += count as u64;
        self.core.end_turn(number);
        if let Some(blocks) = &mut self.core.blocks {
            // To be filled again without growing.
            blocks.arrivals = arrivals;
        }
        count + own > 0
    }

    /// Makes what arrives at a block with several ports happen, and before each of it what the block itself has planned. Gives how many of both there were.
    #[inline(never)]
    fn take_in_order(&mut self, arrivals: &Arrivals) -> (usize, usize) {
        let Arrivals { flights, order, .. } = arrivals;
        let (mut own, mut words) = (0, order.iter());
        let Some(&first) = words.next() else { return (0, 0) };
        let mut flight = flights[place(first)];
        for (soon, &word) in words.enumerate() {
            let next = flights[place(word)];
            if self.core.time.events.may_have_before(flight.event.time()) {
                own += self.step_before(flight.event);
            }
            if self.core.large
                && let Some(&word) = order.get(soon + SOON)
            {
                self.core.pool.fetch(flights[place(word)].packet);
            }
            self.step_arrival(flight.event, flight.packet, next.event);
            flight = next;
        }
        (order.len() - 1, own)
    }

    /// The same of a block with one port, where all that arrives is in order.
    #[inline(never)]
    fn take_all(&mut self, arrivals: &Arrivals, limit: Event) -> (usize, usize) {
        let (flights, mut own) = (&arrivals.flights, 0);
        for (place, flight) in flights.iter().enumerate() {
            if self.core.time.events.may_have_before(flight.event.time()) {
                own += self.step_before(flight.event);
            }
            if self.core.large
                && let Some(soon) = flights.get(place + SOON)
            {
                self.core.pool.fetch(soon.packet);
            }
            let next = flights.get(place + 1).map_or(limit, |next| next.event);
            (self.core.time.now, self.core.time.current) = (flight.event.time(), flight.event);
            self.receive_here(flight.event.source(), flight.packet, next);
            // Most have one port to give its chance, which is this one.
            if let Some(port) = self.core.kicks.pop() {
                self.kick(port);
                self.drain_kicks();
            }
        }
        (flights.len(), own)
    }

    /// Makes the events of the block whose turn it is happen that come before `limit`. Gives how many there were.
    #[inline(never)]
    fn step_before(&mut self, limit: Event) -> usize {
        let mut count = 0;
        while self.core.time.events.may_have_before(limit.time())
            && let Some(event) = self.core.time.events.pop_before(limit)
        {
            if event.class() == Class::TxEnd as u8 {
                self.end_transmission(event);
            } else {
                self.step(event);
            }
            count += 1;
        }
        count
    }

    /// Lets something happen at a node while no block has its turn.
    pub(super) fn meanwhile(&mut self, node: u32, act: impl FnOnce(&mut Network<F>)) {
        let number = self.core.blocks.as_ref().map(|blocks| blocks.of_node[node as usize] as usize);
        number.into_iter().for_each(|number| self.core.begin_turn(number));
        act(self);
        self.drain_kicks();
        number.into_iter().for_each(|number| self.core.end_turn(number));
    }

    /// Something happens to the fabric as a whole. Links change block by block.
    fn happen_to_all(&mut self, event: Event) {
        self.core.progress.next_flow = self.core.first_to_start();
        let Some(blocks) = &mut self.core.blocks else { return };
        blocks.latest = blocks.latest.max(event);
        if Class::of(event) != Class::LinkChange {
            return self.step(event);
        }
        for number in 0..blocks.blocks.len() {
            self.core.begin_turn(number);
            self.step(event);
            self.core.end_turn(number);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// A model check against sorting: what is sent to a block in one turn arrives in later ones, each in order and all of it.
        #[test]
        fn what_was_sent_arrives_in_its_turn_and_in_order(
            ports in 1u32..5,
            turns in prop::collection::vec((prop::collection::vec((0u64..6_000, 0u32..4, 0u32..5), 0..90), 1u64..1_500, 0u64..3_000), 1..20),
        ) {
            const AHEAD: u64 = 1_000;
            let mut block = Block::new(EventQueue::small(), 0..ports, 0);
            let mut arrivals = Arrivals::default();
            let mut model: Vec<Flight> = Vec::new();
            // By port, when the last packet arrives: a link delivers in order.
            let mut last = vec![Time::ZERO; ports as usize];
            let (mut start, mut packet) = (Time::ZERO, 0);
            for (sent, long, idle) in turns {
                block.settle();
                let limit = Event::first_at(start + Time(long.min(AHEAD)));
                // Some is sent before the block has its turn, and some after.
                let (before, after) = sent.split_at(sent.len() / 2);
                let mut send = |block: &mut Block, all: &[(u64, u32, u32)]| {
                    for &(late, rank, port) in all {
                        let port = port % ports;
                        let arrival = (limit.time() + Time(late)).max(last[port as usize] + Time(1));
                        last[port as usize] = arrival;
                        let flight = Flight { event: Event::new(arrival, rank, Class::Arrival as u8, port), packet };
                        packet += 1;
                        block.inbox.push(flight);
                        block.fresh = block.fresh.min(arrival);
                        model.push(flight);
                    }
                };
                send(&mut block, before);
                arrivals.take(&mut block, start, limit, limit.time() + Time(2 * AHEAD));
                send(&mut block, after);
                model.sort_unstable();
                let (due, left) = model.split_at(model.partition_point(|flight| flight.event < limit));
                let taken: Vec<Flight> = match ports {
                    1 => arrivals.flights.clone(),
                    _ => arrivals.order.iter().map(|word| arrivals.flights[place(*word)]).collect(),
                };
                let count = due.len();
                prop_assert!(taken[..count] == *due);
                prop_assert!(taken[count..].iter().all(|end| end.event == limit) && taken.len() - count == (ports > 1) as usize);
                let next = left.first().map_or(Time::MAX, |flight| flight.event.time());
                prop_assert_eq!(block.next.min(block.fresh), next);
                model = left.to_vec();
                start = (limit.time() + Time(idle)).min(next);
            }
        }
    }
}
