//! Who stopped whom, and why: every pause and hold with the node that ordered it, and what filled that node at the instant of the order.
//!
//! A stop is seen where it takes effect, an order where it is given; the two are joined when the run is over. Both are properties of one
//! node's own events, so that neither threads nor blocks can show. Nothing here changes the run.

use super::Probes;
use crate::id::{ClassId, FlowId, NodeId, PortId, QueueId};
use crate::packet::{NONE, flag};
use crate::routing::Rule;
use crate::run::Core;
use engine::Time;
use std::collections::{HashMap, HashSet};

/// What is stopped at a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scope {
    /// A class, by the neighbour.
    Class(ClassId),
    /// A queue, by the neighbour.
    Queue(QueueId),
    /// A queue, by the scheme at this node.
    Held(QueueId),
    /// A flow that begins at this host.
    Flow(FlowId),
}

impl Scope {
    /// Where a stop is looked up: a flow may have moved to another port since.
    fn at(self, port: u32) -> (u32, Scope) {
        if matches!(self, Scope::Flow(_)) { (NONE, self) } else { (port, self) }
    }
}

/// What an order is about, as the two ends of it agree to call it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Subject(u64);

impl Subject {
    /// A class.
    pub fn class(class: ClassId) -> Subject {
        Subject(class.0 as u64)
    }
    /// A queue of the port that stops.
    pub fn queue(queue: QueueId) -> Subject {
        Subject(1 << 60 | queue.0 as u64)
    }
    /// A flow.
    pub fn flow(flow: FlowId) -> Subject {
        Subject(2 << 60 | flow.0 as u64)
    }
    /// Something that the scheme has a name for.
    pub fn name(name: u32) -> Subject {
        Subject(3 << 60 | name as u64)
    }
    /// What goes to a host in a class.
    pub fn toward(host: NodeId, class: ClassId) -> Subject {
        Subject(4 << 60 | (host.0 as u64) << 8 | class.0 as u64)
    }
}

/// Why a node orders a stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Because {
    /// What came in by the port in that class, or in its second group, takes too much room. At a host that has none of it: the host
    /// takes packets too slowly.
    Account {
        /// The class.
        class: ClassId,
        /// The second of two groups.
        second: bool,
    },
    /// A queue of the node is too long.
    Queue {
        /// Its port.
        port: PortId,
        /// Which of the port's.
        queue: QueueId,
    },
    /// What came in by the port for that host in that class takes too much room.
    Toward {
        /// The host.
        host: NodeId,
        /// The class.
        class: ClassId,
    },
    /// The last link to that host is known to be congested, wherever it is.
    LastHop {
        /// The host.
        host: NodeId,
    },
    /// The neighbour at a port ordered it, and this node passes it on.
    Heard {
        /// The port.
        port: PortId,
        /// What the neighbour's order is about.
        subject: Subject,
    },
}

/// What an egress port was waiting for while it filled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waiting {
    /// For its link, which was sending something else: more came in than the link carries.
    Busy,
    /// For the end of a stop.
    Stopped,
    /// For its link, which was still sending what a stop had left behind.
    Draining,
    /// For its link to come back.
    Down,
    /// It is a host's NIC, and it waited for the host to take packets.
    Receiver,
}

/// What filled the node that ordered a stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fill {
    /// The egress port with most of the bytes; of a slow receiver, its NIC.
    pub port: u32,
    /// The queue with most of these, counted from the port's first.
    pub queue: u32,
    /// Bytes there that count.
    pub bytes: u64,
    /// How many flows had packets at that port in that class; 0 if it was stopped.
    pub flows: u32,
    /// What the port waited for.
    pub waiting: Waiting,
}

/// A stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stop {
    /// The port that stops.
    pub port: u32,
    /// What of it.
    pub scope: Scope,
    /// Since when.
    pub from: Time,
    /// Until when; `None` if it did not end.
    pub until: Option<Time>,
    /// The node that ordered it.
    pub by: u32,
    /// When it was ordered; `None` where no order was found.
    pub ordered: Option<Time>,
    /// What filled the node that ordered it, then; of a stop that did not end, at the end of the run if something still does.
    pub fill: Option<Fill>,
    /// The stop that the filling port waited for, by its place.
    pub cause: Option<u32>,
    /// Where following causes leads, by its place: a stop without one, or the first of a cycle.
    pub root: u32,
}

/// A flow that waited at a stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Kept {
    /// The stop, by its place.
    pub stop: u32,
    /// The flow.
    pub flow: FlowId,
    /// For how long it had something to send that the stop kept from being sent.
    pub time: Time,
    /// Its path does not lead through the root.
    pub victim: bool,
}

/// All stops of a run, in order of time, and who waited at them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stops {
    /// The stops.
    pub stops: Vec<Stop>,
    /// The flows, by stop and flow.
    pub kept: Vec<Kept>,
    /// Of the account that was nearest to its threshold at any sampling instant: bytes that count, and the threshold.
    pub fullest: Option<(u64, u64)>,
    /// Whether congestion control sees nothing but marks.
    pub marks_only: bool,
}

/// A stop by its port and its number there.
type Key = (u32, u32);

/// What fills a node, and the stop that it waits for.
type Found = (Fill, Option<Key>);

/// Where an order is given: the number of a port, or of a node where it is given to hosts further away.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Place {
    Port(u32),
    Node(u32),
}

/// [`Because`] with the numbers of the whole fabric.
#[derive(Clone, Copy)]
enum Reason {
    Account { port: u32, class: u8, second: bool },
    Queue { port: u32, queue: u32 },
    Toward { port: u32, host: u32, class: u8 },
    LastHop { port: u32 },
    Heard { place: Place, subject: Subject },
}

struct Order {
    place: Place,
    subject: Subject,
    time: Time,
    reason: Reason,
    found: Option<Found>,
}

/// By whom a stop was ordered, as far as is known where it takes effect.
#[derive(Clone, Copy)]
enum Source {
    /// By the neighbour, if it has.
    Neighbour(Option<Subject>),
    Node(u32, Subject),
    /// By this node itself.
    Own(Option<(Reason, Option<Found>)>),
}

struct Seen {
    key: Key,
    scope: Scope,
    from: Time,
    until: Option<Time>,
    source: Source,
}

/// What is kept while the run goes on.
#[derive(Default)]
pub(crate) struct Causes {
    seen: Vec<Seen>,
    /// Those that have not ended, by their place.
    open: HashMap<(u32, Scope), usize>,
    /// The last that ended.
    ended: HashMap<(u32, Scope), (Key, Time)>,
    /// By port, how many there were.
    numbers: HashMap<u32, u32>,
    orders: Vec<Order>,
    kept: Vec<(Key, FlowId, Time)>,
    fullest: Option<(u64, u64)>,
}

impl Causes {
    pub(super) fn absorb(&mut self, other: Causes) {
        let first = self.seen.len();
        self.seen.extend(other.seen);
        self.open.extend(other.open.into_iter().map(|(what, place)| (what, place + first)));
        self.ended.extend(other.ended);
        self.numbers.extend(other.numbers);
        self.orders.extend(other.orders);
        self.kept.extend(other.kept);
        other.fullest.into_iter().for_each(|account| self.fill_up(account));
    }

    /// Keeps the fuller of two accounts: bytes and threshold.
    fn fill_up(&mut self, account: (u64, u64)) {
        let fuller = |(bytes, threshold): (u64, u64)| {
            let (new, old) = (account.0 as u128 * threshold as u128, bytes as u128 * account.1 as u128);
            (new, account) > (old, (bytes, threshold))
        };
        if self.fullest.is_none_or(fuller) {
            self.fullest = Some(account);
        }
    }

    /// The last order about something at a place, up to an instant.
    fn order(&self, place: Place, subject: Subject, until: Time) -> Option<&Order> {
        let end = self.orders.partition_point(|o| (o.place, o.subject, o.time) <= (place, subject, until));
        self.orders[..end].last().filter(|o| (o.place, o.subject) == (place, subject))
    }
}

impl Probes {
    /// Gives the node that wants a flow held which has just been stopped.
    pub(crate) fn stopped_by(&mut self, port: u32, scope: Scope, now: Time, by: Option<u32>, subject: Subject) {
        self.name_stop(
            port,
            scope,
            now,
            by.map_or(Source::Neighbour(Some(subject)), |node| Source::Node(node, subject)),
        );
    }

    fn name_stop(&mut self, port: u32, scope: Scope, now: Time, source: Source) {
        let Some(causes) = &mut self.causes else { return };
        let Some(seen) = causes.open.get(&scope.at(port)).map(|&place| &mut causes.seen[place]) else { return };
        // What it is stopped for later on is not why it stopped.
        if seen.from == now {
            seen.source = source;
        }
    }
}

impl Core {
    /// Something stops at `port`, or goes on.
    #[cold]
    #[inline(never)]
    pub(crate) fn note_stop(&mut self, port: u32, scope: Scope, stop: bool) {
        let Some(mut causes) = self.probes.causes.take() else { return };
        let now = self.time.now;
        if stop {
            let next = causes.seen.len();
            causes.open.entry(scope.at(port)).or_insert_with(|| {
                let number = causes.numbers.entry(port).or_default();
                *number += 1;
                let source = match scope {
                    Scope::Class(class) => Source::Neighbour(Some(Subject::class(class))),
                    Scope::Queue(queue) => Source::Neighbour(Some(Subject::queue(queue))),
                    Scope::Held(_) => Source::Own(None),
                    Scope::Flow(_) => Source::Neighbour(None),
                };
                causes.seen.push(Seen { key: (port, *number), scope, from: now, until: None, source });
                next
            });
        } else {
            self.end_stop(&mut causes, port, scope);
            // A class that goes on goes on as a whole.
            if let Scope::Class(class) = scope {
                for queue in self.class_queues(class.0) {
                    self.end_stop(&mut causes, port, Scope::Queue(QueueId(queue)));
                }
            }
        }
        self.probes.causes = Some(causes);
    }

    fn end_stop(&self, causes: &mut Causes, port: u32, scope: Scope) {
        let Some(place) = causes.open.remove(&scope.at(port)) else { return };
        let now = self.time.now;
        let seen = &mut causes.seen[place];
        seen.until = Some(now);
        let (key, from) = (seen.key, seen.from);
        causes.ended.insert(scope.at(port), (key, now));
        causes.kept.extend(self.kept_by(port, scope, from, now).into_iter().map(|(flow, time)| (key, flow, time)));
    }

    /// The flows that a stop keeps from sending at `now`, and for how long it has.
    fn kept_by(&self, port: u32, scope: Scope, from: Time, now: Time) -> Vec<(FlowId, Time)> {
        let p = &self.ports[port as usize];
        let mut all: Vec<(FlowId, Time)> = Vec::new();
        let mut keep = |flow: u32, since: Time| {
            if all.last().is_none_or(|(last, first)| last.0 != flow || since < *first) {
                all.push((FlowId(flow), since.max(from)));
            }
        };
        let queues = match scope {
            Scope::Class(class) => self.class_queues(class.0),
            Scope::Queue(queue) | Scope::Held(queue) => queue.0..queue.0 + 1,
            Scope::Flow(_) => 0..0,
        };
        if p.has_queues() {
            for queue in queues {
                let list = &self.switches.queues[(p.first_queue + queue) as usize].packets;
                let packets = list.iter(&self.pool).map(|id| &self.pool[id]).filter(|packet| packet.flow != NONE);
                packets.for_each(|packet| keep(packet.flow, packet.next_arrival));
            }
        }
        let begun = |flow: u32| self.hosts.waiting.begun(flow as usize, self.setup.flows[flow as usize].start);
        match scope {
            Scope::Class(class) if p.host => {
                for &flow in &self.hosts.nics[p.nic as usize].flows {
                    let s = &self.hosts.senders[flow as usize];
                    if s.class == class.0 && s.eligible() {
                        keep(flow, begun(flow));
                    }
                }
            }
            Scope::Flow(flow) if self.hosts.senders[flow.index()].backlogged() => keep(flow.0, begun(flow.0)),
            _ => {}
        }
        all.sort_unstable();
        all.dedup_by_key(|(flow, _)| *flow);
        all.iter_mut().for_each(|(_, time)| *time = now.saturating_sub(*time));
        all.retain(|(_, time)| *time > Time::ZERO);
        all
    }

    fn reason(&self, port: u32, because: Because) -> Reason {
        let base = self.ports[port as usize].base;
        match because {
            Because::Account { class, second } => Reason::Account { port, class: class.0, second },
            Because::Queue { port, queue } => Reason::Queue { port: base + port.0 as u32, queue: queue.0 },
            Because::Toward { host, class } => Reason::Toward { port, host: host.0, class: class.0 },
            Because::LastHop { host } => Reason::LastHop { port: self.map.peer[self.map.of(host.0).start as usize] },
            Because::Heard { port, subject } => {
                Reason::Heard { place: Place::Port(self.map.peer[(base + port.0 as u32) as usize]), subject }
            }
        }
    }

    /// Looks for the account that is nearest to its threshold.
    #[cold]
    #[inline(never)]
    pub(crate) fn sample_accounts(&mut self) {
        let Some(mut causes) = self.probes.causes.take() else { return };
        let ports = (0..self.ports.len() as u32).filter(|&port| self.ports[port as usize].has_queues());
        for port in ports.filter(|&port| self.is_mine(self.ports[port as usize].node)) {
            let buffer = &self.switches.buffers[self.ports[port as usize].node as usize];
            for class in 0..self.switches.classes as u8 {
                let account = &self.switches.accounts[self.account_number(port, class, false)];
                let threshold = buffer.threshold(account.share);
                let bytes = account.bytes.saturating_sub(buffer.reserve);
                if bytes > 0 && threshold > 0 && threshold < u64::MAX {
                    causes.fill_up((bytes, threshold));
                }
            }
        }
        self.probes.causes = Some(causes);
    }

    fn is_mine(&self, node: u32) -> bool {
        self.shard.as_ref().is_none_or(|shard| shard.owns(node))
    }

    /// The node of `port` orders its neighbour there to stop something, or, with a flow, that flow's sender.
    #[cold]
    #[inline(never)]
    pub(crate) fn note_order(&mut self, port: u32, sender: Option<FlowId>, subject: Subject, because: Because) {
        let Some(mut causes) = self.probes.causes.take() else { return };
        let reason = self.reason(port, because);
        let place = match sender {
            None => Place::Port(port),
            Some(_) => Place::Node(self.ports[port as usize].node),
        };
        let found = self.found(&causes, reason);
        causes.orders.push(Order { place, subject, time: self.time.now, reason, found });
        self.probes.causes = Some(causes);
    }

    /// A queue that its node has just held is so because of something at the node itself.
    #[cold]
    #[inline(never)]
    pub(crate) fn note_own(&mut self, port: u32, scope: Scope, because: Because) {
        let Some(causes) = self.probes.causes.take() else { return };
        let reason = self.reason(port, because);
        let found = self.found(&causes, reason);
        self.probes.causes = Some(causes);
        let now = self.time.now;
        self.probes.name_stop(port, scope, now, Source::Own(Some((reason, found))));
    }

    /// What fills a node now, for that reason, and the stop that it waits for.
    fn found(&self, causes: &Causes, reason: Reason) -> Option<Found> {
        match reason {
            Reason::Queue { port, queue } => {
                let bytes = self.switches.queues[(self.ports[port as usize].first_queue + queue) as usize].bytes;
                Some(self.fill(causes, port, queue, bytes))
            }
            Reason::Account { port, class, second } => {
                let total = self.switches.accounts[self.account_number(port, class, second)].total();
                if total == 0 && self.ports[port as usize].host {
                    return Some((Fill { port, queue: 0, bytes: 0, flows: 0, waiting: Waiting::Receiver }, None));
                }
                let local = self.ports[port as usize].local;
                self.fullest(causes, port, class, total, |packet| {
                    packet.in_port == local && (packet.flags & flag::SECOND != 0) == second
                })
            }
            Reason::Toward { port, host, class } => {
                let local = self.ports[port as usize].local;
                self.fullest(causes, port, class, u64::MAX, |packet| packet.in_port == local && packet.dst == host)
            }
            // What it waits for is known when the run is over: it may be run by another thread.
            Reason::LastHop { port } => {
                Some((Fill { port, queue: 0, bytes: 0, flows: 0, waiting: Waiting::Busy }, None))
            }
            Reason::Heard { .. } => None,
        }
    }

    /// The egress queue, of the node of `port`, with most bytes of the packets that `which` picks, which are `total` in all.
    fn fullest(
        &self,
        causes: &Causes,
        port: u32,
        class: u8,
        total: u64,
        which: impl Fn(&crate::packet::Packet) -> bool,
    ) -> Option<Found> {
        let queues = |out: u32| {
            let first = self.ports[out as usize].first_queue;
            self.class_queues(class).map(move |queue| (queue, (first + queue) as usize))
        };
        let outs = self.map.of(self.ports[port as usize].node).filter(|&out| self.ports[out as usize].has_queues());
        let bytes = |out: u32| queues(out).map(|(_, slot)| self.switches.queues[slot].bytes).sum::<u64>();
        let mut outs: Vec<(u64, u32)> = outs.map(|out| (bytes(out), out)).filter(|(bytes, _)| *bytes > 0).collect();
        outs.sort_unstable_by_key(|&(bytes, out)| (std::cmp::Reverse(bytes), out));
        let mut best = (0, 0, 0);
        for (most, out) in outs {
            // No other port can have more.
            if best.0 >= most || best.0 > total / 2 {
                break;
            }
            let (mut sum, mut deepest) = (0, (0, 0));
            for (queue, slot) in queues(out).filter(|(_, slot)| self.switches.queues[*slot].bytes > 0) {
                let packets = self.switches.queues[slot].packets.iter(&self.pool).map(|id| &self.pool[id]);
                let here: u64 = packets.filter(|packet| which(packet)).map(|packet| packet.size as u64).sum();
                sum += here;
                if here > deepest.0 {
                    deepest = (here, queue);
                }
            }
            if sum > best.0 {
                best = (sum, out, deepest.1);
            }
        }
        (best.0 > 0).then(|| self.fill(causes, best.1, best.2, best.0))
    }

    /// What a queue with so many bytes that count waits for.
    fn fill(&self, causes: &Causes, port: u32, queue: u32, bytes: u64) -> (Fill, Option<Key>) {
        let (waiting, stop) = self.waits_for(causes, port, queue);
        let flows = if stop.is_some() { 0 } else { self.flows_in(port, (queue / self.setup.switch.queues) as u8) };
        (Fill { port, queue, bytes, flows, waiting }, stop)
    }

    fn waits_for(&self, causes: &Causes, port: u32, queue: u32) -> (Waiting, Option<Key>) {
        let class = ClassId((queue / self.setup.switch.queues) as u8);
        let scopes = [Scope::Class(class), Scope::Queue(QueueId(queue)), Scope::Held(QueueId(queue))];
        if let Some(&place) = scopes.iter().find_map(|&scope| causes.open.get(&(port, scope))) {
            return (Waiting::Stopped, Some(causes.seen[place].key));
        }
        let p = &self.ports[port as usize];
        let head = self.switches.queues[(p.first_queue + queue) as usize].packets.head();
        if head != NONE {
            // Its first packet was there before the last stop ended.
            let joined = self.pool[head].next_arrival;
            let ended = scopes.iter().filter_map(|&scope| causes.ended.get(&(port, scope)));
            if let Some((key, _)) = ended.filter(|(_, end)| joined < *end).max_by_key(|(key, end)| (*end, *key)) {
                return (Waiting::Draining, Some(*key));
            }
        }
        (if p.up { Waiting::Busy } else { Waiting::Down }, None)
    }

    /// How many flows have packets at a port in a class.
    fn flows_in(&self, port: u32, class: u8) -> u32 {
        let first = self.ports[port as usize].first_queue;
        let lists = self.class_queues(class).map(|queue| &self.switches.queues[(first + queue) as usize].packets);
        let mut flows: Vec<u32> = Vec::new();
        for id in lists.flat_map(|list| list.iter(&self.pool)) {
            // Packets of a flow often lie side by side.
            let flow = self.pool[id].flow;
            if flow != NONE && flows.last() != Some(&flow) {
                flows.push(flow);
            }
        }
        flows.sort_unstable();
        flows.dedup();
        flows.len() as u32
    }

    /// Joins stops and orders, at the end of the run.
    pub(crate) fn end_causes(&mut self) -> Option<Stops> {
        let mut causes = self.probes.causes.take()?;
        causes.orders.sort_by_key(|order| (order.place, order.subject, order.time));
        let now = self.time.now;
        let mut kept = std::mem::take(&mut causes.kept);
        for seen in causes.seen.iter_mut().filter(|seen| seen.until.is_none()) {
            // A flow that is done is no longer stopped.
            let done = match seen.scope {
                Scope::Flow(flow) => Some(self.hosts.senders[flow.index()].finished).filter(|end| *end != Time::MAX),
                _ => None,
            };
            seen.until = done.map(|end| end.max(seen.from));
            if seen.until.is_none() {
                let all = self.kept_by(seen.key.0, seen.scope, seen.from, now);
                kept.extend(all.into_iter().map(|(flow, time)| (seen.key, flow, time)));
            }
        }
        let mut order: Vec<usize> = (0..causes.seen.len()).collect();
        order.sort_by_key(|&place| (causes.seen[place].from, causes.seen[place].key));
        let rows: HashMap<Key, u32> = (0..).zip(&order).map(|(row, &place)| (causes.seen[place].key, row)).collect();
        let mut stops: Vec<Stop> = order
            .iter()
            .map(|&place| {
                let seen = &causes.seen[place];
                let (by, ordered, found) = self.ordered(&causes, seen);
                let cause = found.and_then(|(_, key)| key).and_then(|key| rows.get(&key).copied());
                let Seen { key: (port, _), scope, from, until, .. } = *seen;
                Stop { port, scope, from, until, by, ordered, fill: found.map(|(fill, _)| fill), cause, root: NONE }
            })
            .collect();
        find_last_hops(&causes, &order, &mut stops);
        find_roots(&mut stops);
        let mut kept = self.find_victims(&stops, kept.into_iter().map(|(key, flow, time)| (rows[&key], flow, time)));
        kept.sort_unstable();
        let needs = &self.hosts.needs;
        let marks_only = !(needs.every_ack || needs.telemetry || needs.delay || needs.incidents);
        Some(Stops { stops, kept, fullest: causes.fullest, marks_only })
    }

    /// Who ordered a stop and when, and what filled it.
    fn ordered(&self, causes: &Causes, seen: &Seen) -> (u32, Option<Time>, Option<Found>) {
        let port = seen.key.0;
        let peer = self.map.peer[port as usize];
        let (place, subject, until) = match seen.source {
            Source::Own(own) => {
                let now = |reason| if seen.until.is_none() { self.found(causes, reason) } else { None };
                let found = own.and_then(|(reason, found)| now(reason).or(found));
                return (self.map.node[port as usize], own.map(|_| seen.from), found);
            }
            Source::Neighbour(None) => return (self.map.node[peer as usize], None, None),
            Source::Neighbour(Some(subject)) => {
                // What the neighbour decided while its word was under way is another order.
                let under_way = self.ports[peer as usize].latency + self.setup.switch.reaction;
                let sent = seen.from.saturating_sub(under_way);
                (Place::Port(peer), subject, sent)
            }
            Source::Node(node, subject) => (Place::Node(node), subject, seen.from),
        };
        let mut order = causes.order(place, subject, until);
        while let Some(&Order { reason: Reason::Heard { place, subject }, time, .. }) = order {
            order = causes.order(place, subject, time);
        }
        let by = |place: Place| match place {
            Place::Port(port) => self.map.node[port as usize],
            Place::Node(node) => node,
        };
        let Some(order) = order else { return (by(place), None, None) };
        let now = if seen.until.is_none() { self.found(causes, order.reason) } else { None };
        (by(order.place), Some(order.time), now.or(order.found))
    }

    /// Who of those that waited does not go through the root.
    fn find_victims(&self, stops: &[Stop], kept: impl Iterator<Item = (u32, FlowId, Time)>) -> Vec<Kept> {
        let mut roots: HashMap<u32, Vec<u32>> = HashMap::new();
        let mut known: HashMap<(u32, FlowId), bool> = HashMap::new();
        let victim = |stop: u32, flow: FlowId| {
            let root = stops[stop as usize].root;
            let ports = roots.entry(root).or_insert_with(|| root_ports(stops, root));
            match stops[root as usize].fill {
                // What is not known is not blamed.
                None => false,
                Some(Fill { port, waiting: Waiting::Receiver, .. }) => {
                    self.setup.flows[flow.index()].dst.0 != self.map.node[port as usize]
                }
                Some(_) => {
                    let name = ports.iter().copied().min().unwrap_or(NONE);
                    !*known.entry((name, flow)).or_insert_with(|| self.passes(flow, ports))
                }
            }
        };
        let mut victim = victim;
        kept.map(|(stop, flow, time)| Kept { stop, flow, time, victim: victim(stop, flow) }).collect()
    }

    /// Whether the path of a flow, or one that its packets may take, leads through one of these ports.
    fn passes(&self, flow: FlowId, ports: &[u32]) -> bool {
        let spec = &self.setup.flows[flow.index()];
        let nic = self.nic_of(spec.src.0, flow.0, false);
        let first = self.hosts.nics[nic as usize].port;
        let several = self.setup.rule == Rule::ByPacket || self.switches.balances();
        let (mut todo, mut seen) = (vec![first], HashSet::new());
        while let Some(port) = todo.pop() {
            if ports.contains(&port) {
                return true;
            }
            let node = self.map.node[self.map.peer[port as usize] as usize];
            if node == spec.dst.0 || !seen.insert(node) {
                continue;
            }
            match several {
                true => todo.extend(self.routing.next_hops(node, spec.dst.0)),
                false => todo.extend(self.path(node, spec.dst.0, &spec.tuple, spec.start)),
            }
        }
        false
    }
}

/// What the last links wait for that orders were about: a stop there at that instant.
fn find_last_hops(causes: &Causes, order: &[usize], stops: &mut [Stop]) {
    let far = |stop: &Stop, place: usize| {
        let Source::Node(node, subject) = causes.seen[place].source else { return None };
        let order = causes.order(Place::Node(node), subject, stop.from)?;
        let Reason::LastHop { port } = order.reason else { return None };
        Some((port, order.time))
    };
    let asked: Vec<(usize, u32, Time)> = order
        .iter()
        .enumerate()
        .filter_map(|(row, &place)| far(&stops[row], place).map(|(port, time)| (row, port, time)))
        .collect();
    if asked.is_empty() {
        return;
    }
    let mut by_port: HashMap<u32, Vec<u32>> = HashMap::new();
    for (row, stop) in (0..).zip(stops.iter()).filter(|(_, stop)| !matches!(stop.scope, Scope::Flow(_))) {
        by_port.entry(stop.port).or_default().push(row);
    }
    for (row, port, time) in asked {
        let covers = |other: &&u32| {
            let stop = &stops[**other as usize];
            stop.from <= time && stop.until.is_none_or(|until| until > time)
        };
        let cause = by_port.get(&port).and_then(|rows| rows.iter().rev().find(covers)).copied();
        stops[row].cause = cause;
        if let Some(fill) = stops[row].fill.as_mut().filter(|_| cause.is_some()) {
            fill.waiting = Waiting::Stopped;
        }
    }
}

/// Follows causes from every stop.
fn find_roots(stops: &mut [Stop]) {
    for first in 0..stops.len() as u32 {
        let mut path = vec![first];
        let root = loop {
            let last = path[path.len() - 1];
            let stop = &stops[last as usize];
            if stop.root != NONE {
                break stop.root;
            }
            match stop.cause {
                None => break last,
                Some(next) => match path.iter().position(|&row| row == next) {
                    Some(begin) => break path[begin..].iter().copied().min().unwrap_or(last),
                    None => path.push(next),
                },
            }
        };
        path.into_iter().for_each(|row| stops[row as usize].root = root);
    }
}

/// The ports that a root is: the one that filled, or those of a cycle.
fn root_ports(stops: &[Stop], root: u32) -> Vec<u32> {
    let mut ports = Vec::new();
    let mut row = root;
    while let Some(next) = stops[row as usize].cause {
        ports.push(stops[row as usize].port);
        row = next;
        if row == root {
            return ports;
        }
    }
    stops[root as usize].fill.iter().map(|fill| fill.port).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stop(port: u32, cause: Option<u32>) -> Stop {
        let fill = Fill { port: port + 100, queue: 0, bytes: 1, flows: 0, waiting: Waiting::Busy };
        let scope = Scope::Class(ClassId(0));
        Stop { port, scope, from: Time(1), until: None, by: 0, ordered: None, fill: Some(fill), cause, root: NONE }
    }

    #[test]
    fn causes_lead_to_a_stop_without_one_or_round_in_a_cycle() {
        let causes = [None, Some(0), Some(1), Some(5), Some(3), Some(4), Some(4)];
        let mut stops: Vec<Stop> = (0..).zip(causes).map(|(port, cause)| stop(port, cause)).collect();
        find_roots(&mut stops);
        assert_eq!(stops.iter().map(|stop| stop.root).collect::<Vec<_>>(), [0, 0, 0, 3, 3, 3, 3]);
        assert_eq!(root_ports(&stops, 0), [100], "what filled");
        assert_eq!(root_ports(&stops, 3), [3, 5, 4], "the cycle");
    }

    #[test]
    fn a_stop_is_joined_with_the_last_order_that_could_have_come() {
        let order = |place, subject, time| Order {
            place,
            subject,
            time: Time(time),
            reason: Reason::LastHop { port: 0 },
            found: None,
        };
        let (class, flow) = (Subject::class(ClassId(0)), Subject::flow(FlowId(0)));
        let mut causes = Causes::default();
        for (place, subject, time) in [
            (Place::Node(1), flow, 4),
            (Place::Port(1), class, 9),
            (Place::Port(1), class, 5),
            (Place::Port(2), class, 6),
        ] {
            causes.orders.push(order(place, subject, time));
        }
        causes.orders.sort_by_key(|order| (order.place, order.subject, order.time));
        let last = |place, subject, until| causes.order(place, subject, Time(until)).map(|order| order.time.0);
        assert_eq!(last(Place::Port(1), class, 8), Some(5));
        assert_eq!(last(Place::Port(1), class, 9), Some(9));
        assert_eq!(last(Place::Port(1), class, 4), None);
        assert_eq!(last(Place::Port(1), flow, 9), None);
        assert_eq!(last(Place::Node(1), flow, 9), Some(4));
    }

    #[test]
    fn the_fuller_account_is_kept_in_whatever_order_they_come() {
        let accounts = [(50, 100), (61, 100), (610, 1000), (1, 1000)];
        for first in 0..accounts.len() {
            let mut causes = Causes::default();
            (0..accounts.len()).for_each(|next| causes.fill_up(accounts[(first + next) % accounts.len()]));
            assert_eq!(causes.fullest, Some((610, 1000)));
        }
    }
}
