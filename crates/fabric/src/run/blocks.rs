//! A large fabric, block by block, so that what is needed next is near.
//!
//! A fabric of thousands of hosts fits into no cache, and in the order of time each event happens far from the one before. But
//! what a node does reaches another no sooner than a link's delay later. So the nodes are grouped into *blocks* small enough
//! for a cache, which take turns: all that happens in a block within that time is done before the next block has its turn. What
//! is sent from one block to another waits for the other's next turn. The order of events is a property of the events
//! alone, so that no node can see the difference.
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
use crate::prefetch::prefetch;
use engine::{Event, EventQueue, Time};

/// Ports of a fabric from which on blocks pay.
const LARGE: usize = 1_000;
/// Ports of a block: with the packets and flows there they fill a good part of a second-level cache.
const PORTS: usize = 64;
/// Turns shorter than this are not worth the change of place.
const SHORTEST: Time = Time(200_000);
/// How many packets ahead those are asked for that come from other blocks.
const SOON: usize = 8;

/// A packet on a link from another block.
struct Flight {
    arrival: Time,
    rank: u32,
    /// Where it arrives.
    port: u32,
    packet: PacketId,
}

struct Block {
    events: EventQueue,
    /// What was sent here from other blocks before the turn `posted_in`.
    due: Vec<Flight>,
    /// What was sent here in that turn.
    posted: Vec<Flight>,
    posted_in: u64,
    /// The first arrival of what was sent in that turn.
    first: Time,
    /// The flows that start in it.
    flows: Vec<u32>,
    next_flow: usize,
}

impl Block {
    fn new(density: f64, horizon: Time, next_flow: usize) -> Block {
        let events = EventQueue::new(density, horizon);
        let (due, posted, flows) = (Vec::new(), Vec::new(), Vec::new());
        Block { events, due, posted, posted_in: 0, first: Time::MAX, flows, next_flow }
    }

    /// What was sent here before `turn` is due.
    #[inline]
    fn close_post(&mut self, turn: u64) {
        if self.posted_in == turn {
            return;
        }
        (self.posted_in, self.first) = (turn, Time::MAX);
        if self.due.is_empty() {
            std::mem::swap(&mut self.due, &mut self.posted);
        } else {
            self.due.append(&mut self.posted);
        }
    }
}

/// The blocks of a fabric, or of a shard of it.
pub(super) struct Blocks {
    /// By node; [`ELSEWHERE`] for nodes of another shard.
    of_node: Vec<u16>,
    /// By port.
    of_port: Vec<u16>,
    blocks: Vec<Block>,
    /// By block: when something happens there next.
    next: Vec<Time>,
    /// Counts the turns.
    turn: u64,
    /// Whose it is.
    now: Option<u16>,
    /// The shortest time in which something gets from one to another.
    look_ahead: Time,
    /// The last event that has happened.
    latest: Event,
    /// No flow from this number on has something to send from one block to another.
    witness: usize,
}

const ELSEWHERE: u16 = u16::MAX;

impl Blocks {
    /// Whether it is the turn of a node.
    pub(super) fn at(&self, node: u32) -> bool {
        self.now.is_none_or(|now| self.of_node[node as usize] == now)
    }

    /// The flows that start in the block whose turn it is.
    pub(super) fn flows(&self) -> Option<&[u32]> {
        Some(&self.blocks[self.now? as usize].flows)
    }

    /// Whether nothing is under way between blocks.
    pub(super) fn nothing_posted(&self) -> bool {
        self.blocks.iter().all(|block| block.due.is_empty() && block.posted.is_empty())
    }
}

impl Core {
    /// Cuts what is run here into blocks, if it is large enough for that. Nothing has happened yet.
    pub(super) fn cut_into_blocks(&mut self) {
        let setup = self.setup.clone();
        let all = self.map.count();
        let owned: Vec<bool> = (0..setup.graph.nodes.len() as u32).map(|node| self.owns(node)).collect();
        let own: Vec<usize> = (0..all).filter(|&port| owned[self.map.node[port] as usize]).collect();
        let count = setup.blocks.unwrap_or(if all >= LARGE { all / PORTS } else { 1 });
        if count < 2 || self.sequential || one_by_one(&setup) {
            return;
        }
        let Some(plan) = cut(&setup.graph, count) else { return };
        // Only those with nodes of this shard, renumbered.
        let mut numbers = vec![ELSEWHERE; plan.shards];
        let mut used = 0;
        let number = |(owner, own): (u16, bool)| {
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
        let of_node: Vec<u16> = plan.owner.into_iter().zip(owned).map(number).collect();
        let of_port: Vec<u16> = self.map.node.iter().map(|&node| of_node[node as usize]).collect();
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
        crossing.into_iter().for_each(|port| self.ports[port].detour |= detour::ABROAD);
        let density = own.len() as f64 / used as f64 * EVENTS_PER_PORT;
        let mut blocks: Vec<Block> =
            (0..used).map(|_| Block::new(density, self.time.horizon, setup.flows.len())).collect();
        for (number, flow) in (0..).zip(&setup.flows) {
            if let Some(block) = blocks.get_mut(of_node[flow.src.index()] as usize) {
                block.flows.push(number);
            }
        }
        let begin = |block: &mut Block| {
            let Some(&first) = block.flows.first() else { return Time::MAX };
            let start = setup.flows[first as usize].start;
            block.next_flow = first as usize;
            block.events.push(Event::new(start, Event::LAST, Class::FlowStart as u8, 0));
            start
        };
        let next = blocks.iter_mut().map(begin).collect();
        // What happens to all stays where it is.
        for event in self.time.events.drain() {
            debug_assert!(!Class::of(event).at_a_node());
            if Class::of(event) != Class::FlowStart {
                self.time.events.push(event);
            }
        }
        self.blocks = Some(Box::new(Blocks {
            of_node,
            of_port,
            blocks,
            next,
            turn: 0,
            now: None,
            look_ahead,
            latest: Event::first_at(Time::ZERO),
            witness: setup.flows.len(),
        }));
    }

    /// Puts a packet on a link that ends in another block.
    #[inline]
    pub(super) fn send_abroad(&mut self, port: u32, packet: PacketId, arrival: Time, rank: u32) {
        let Some(blocks) = &mut self.blocks else { return };
        let number = blocks.of_port[port as usize] as usize;
        let block = &mut blocks.blocks[number];
        block.close_post(blocks.turn);
        block.posted.push(Flight { arrival, rank, port, packet });
        block.first = arrival.min(block.first);
        blocks.next[number] = arrival.min(blocks.next[number]);
    }

    /// Takes over what was sent here from other blocks.
    fn take_in(&mut self, flights: &mut Vec<Flight>) {
        for (place, flight) in flights.iter().enumerate() {
            if let Some(soon) = flights.get(place + SOON) {
                prefetch(&self.ports[soon.port as usize]);
                self.pool.fetch(soon.packet);
            }
            self.fly(flight.port, flight.packet, flight.arrival, flight.rank);
        }
        flights.clear();
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

    /// When something happens here next.
    pub(super) fn next_time(&mut self) -> Option<Time> {
        let next = self.blocks.iter().flat_map(|blocks| &blocks.next).min().filter(|next| **next < Time::MAX);
        next.copied().into_iter().chain(self.time.events.next_time()).min()
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

    /// The turn of a block begins: its events are those that happen, and what was sent there before is taken in.
    fn begin_turn(&mut self, number: usize) {
        self.change_places(number);
        let Some(blocks) = &mut self.blocks else { return };
        blocks.now = Some(number as u16);
        let block = &mut blocks.blocks[number];
        block.close_post(blocks.turn);
        let mut due = std::mem::take(&mut block.due);
        self.take_in(&mut due);
        if let Some(blocks) = &mut self.blocks {
            // Empty, and to be filled again without growing.
            blocks.blocks[number].due = due;
        }
    }

    fn end_turn(&mut self, number: usize) {
        self.change_places(number);
        let Some(blocks) = &mut self.blocks else { return };
        let block = &mut blocks.blocks[number];
        blocks.next[number] = block.events.next_time().map_or(block.first, |next| next.min(block.first));
        blocks.latest = blocks.latest.max(self.time.current);
        blocks.now = None;
    }

    fn change_places(&mut self, number: usize) {
        let Some(blocks) = &mut self.blocks else { return };
        let block = &mut blocks.blocks[number];
        std::mem::swap(&mut self.time.events, &mut block.events);
        std::mem::swap(&mut self.progress.next_flow, &mut block.next_flow);
    }

    /// Goes back to one order for all. Gives the last event that has happened.
    pub(super) fn leave_blocks(&mut self) -> Option<Event> {
        self.progress.next_flow = self.first_to_start();
        let blocks = self.blocks.take()?;
        for port in &mut self.ports {
            port.detour &= !detour::ABROAD;
        }
        for mut block in blocks.blocks {
            for event in block.events.drain().into_iter().filter(|event| Class::of(*event) != Class::FlowStart) {
                self.time.events.push(event);
            }
            self.take_in(&mut block.due);
            self.take_in(&mut block.posted);
        }
        if let Some(flow) = self.setup.flows.get(self.progress.next_flow) {
            self.time.events.push(Event::new(flow.start, Event::LAST, Class::FlowStart as u8, 0));
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
        let stop = self.core.setup.stop;
        let (mut reported, mut interrupted) = (0, false);
        while !interrupted && !self.core.progress.stuck && self.core.goes_on() {
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
        let mut quiet = true;
        for number in 0..blocks.blocks.len() {
            quiet &= !self.turn_of(number, limit);
        }
        if quiet && let Some(event) = self.core.time.events.pop() {
            assert!(event.time() == next, "an event of a block was overlooked");
            self.happen_to_all(event);
        }
    }

    /// The turn of a block. True if something happened.
    fn turn_of(&mut self, number: usize, limit: Event) -> bool {
        if self.core.blocks.as_ref().is_none_or(|blocks| blocks.next[number] > limit.time()) {
            return false;
        }
        self.core.begin_turn(number);
        let mut happened = false;
        while let Some(event) = self.core.time.events.pop_before(limit) {
            self.step(event);
            happened = true;
        }
        self.core.end_turn(number);
        happened
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
