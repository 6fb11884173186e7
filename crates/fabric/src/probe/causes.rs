//! Who stopped whom, and why: every pause and hold with the node that ordered it, and what filled that node at the instant of the order.
//!
//! A stop is seen where it takes effect, an order where it is given; the two are joined when the run is over. Both are properties of one
//! node's own events, so that neither threads nor blocks can show. Nothing here changes the run.

use super::Probes;
use super::crowd::{Crowd, Map};
use crate::axes::flow_control::Visit;
use crate::id::{ClassId, FlowId, NodeId, PortId, QueueId};
use crate::packet::{Kind, NONE, PacketId, flag};
use crate::run::Core;
use engine::Time;

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
    pub(super) fn at(self, port: u32) -> (u32, Scope) {
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
    /// For its link, which was idle until a stopped port before it let go at once of what it had kept.
    Released,
    /// For its link to come back.
    Down,
    /// It is a host's NIC, and it waited for the host to take packets.
    Receiver,
}

/// What filled the node that ordered a stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fill {
    /// The egress port with most of the bytes; of several with at least half as many, each in its turn. Of a slow receiver, its NIC.
    pub port: u32,
    /// The queue with most of these, counted from the port's first.
    pub queue: u32,
    /// Bytes there that count.
    pub bytes: u64,
    /// How many flows had packets at that port; 0 if it was stopped.
    pub flows: u32,
    /// What the port waited for.
    pub waiting: Waiting,
}

/// A stop.
#[derive(Clone, Debug, PartialEq, Eq)]
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
    /// Other ports that held at least half as much, and waited for nothing but their links.
    pub also: Vec<u32>,
    /// By which rule of the scheme, if nothing filled.
    pub rule: Option<&'static str>,
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
    /// Its path leads neither through the root nor through a port that was as much to blame.
    pub victim: bool,
}

/// How a packet was lost that was not dropped for want of room.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Lost {
    /// The link lost or damaged it.
    Fault,
    /// The link went down with it, or was down.
    Down,
    /// There was no path behind the link.
    NoPath,
}

/// The packets that a flow lost on a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Loss {
    /// The port whose link it was.
    pub port: u32,
    /// How.
    pub how: Lost,
    /// The flow.
    pub flow: FlowId,
    /// How many.
    pub packets: u64,
    /// When the first was.
    pub first: Time,
    /// When the last was.
    pub last: Time,
    /// How long the flow was at sending again because of them.
    pub cost: Time,
}

/// All stops of a run, in order of time, and who waited at them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stops {
    /// The stops.
    pub stops: Vec<Stop>,
    /// The flows, by stop and flow.
    pub kept: Vec<Kept>,
    /// What flows lost on links, by port.
    pub losses: Vec<Loss>,
    /// Of the account that came nearest to its threshold: bytes that count, and the threshold then. Only where nothing was stopped.
    pub fullest: Option<(u64, u64)>,
    /// Of the port that came nearest to where marking begins when a packet left it: bytes that were left, and where it begins.
    pub fullest_port: Option<(u64, u64)>,
    /// Whether congestion control sees nothing but marks.
    pub marks_only: bool,
    /// By port, the most bytes that waited there.
    pub queued: Vec<u64>,
    /// Whether the thresholds of accounts follow what is free.
    pub dynamic: bool,
}

/// A stop by its port and its number there.
pub(super) type Key = (u32, u32);

/// What fills a node.
#[derive(Clone, Debug)]
pub(super) struct Found {
    pub(super) fill: Fill,
    /// The stop that it waits for.
    pub(super) stop: Option<Key>,
    /// What let go at once of most that is there, if it was idle before.
    pub(super) burst: Option<Burst>,
    /// Other ports as much to blame.
    pub(super) also: Vec<u32>,
}

/// Where a packet was stopped last on its way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Freed {
    /// The port.
    pub(super) port: u32,
    /// The queue there.
    pub(super) queue: u32,
    /// When it left.
    pub(super) start: Time,
    /// How long it was stopped on all its way.
    pub(super) stopped: Time,
}

/// Packets that were stopped before they came to a port, which had nothing to send then.
#[derive(Clone, Copy, Debug)]
pub(super) struct Burst {
    /// Where the first of them was.
    pub(super) first: Freed,
    /// Since when something has waited at the port.
    pub(super) since: Time,
}

impl Found {
    pub(super) fn only(fill: Fill) -> Found {
        Found { fill, stop: None, burst: None, also: Vec::new() }
    }
}

/// Bytes that may come at once to a link that is not saturated.
const BURST: u128 = 10_000;

/// A port since it last had nothing to send.
#[derive(Clone, Copy, Debug, Default)]
struct Busy {
    since: Time,
    /// Bytes that joined.
    joined: u64,
    /// Of these, bytes of packets that were stopped before.
    freed: u64,
    /// Where the first of these was.
    first: Option<Freed>,
    /// When the first and the last would have come, had they not been stopped.
    due: (Time, Time),
    /// The most bytes that ever waited there.
    queued: u64,
}

/// Where an order is given: the number of a port, or of a node where it is given to hosts further away.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Place {
    Port(u32),
    Node(u32),
}

/// [`Because`] with the numbers of the whole fabric.
#[derive(Clone, Copy, Debug)]
pub(super) enum Reason {
    Account { port: u32, class: u8, second: bool },
    Queue { port: u32, queue: u32 },
    Toward { port: u32, host: u32, class: u8 },
    LastHop { port: u32 },
    Heard { place: Place, subject: Subject },
}

#[derive(Clone, Debug)]
pub(super) struct Order {
    pub(super) time: Time,
    pub(super) reason: Reason,
    pub(super) found: Option<Found>,
    /// What was found since, and when, if the node was next to empty.
    pub(super) again: Vec<(Time, Found)>,
}

impl Order {
    /// What filled the node, as far as it was found before the stop ended: what came later did not cause it.
    pub(super) fn found(&self, until: Option<Time>) -> Option<Found> {
        let known = self.again.iter().rev().find(|(at, _)| until.is_none_or(|until| *at <= until));
        known.map(|(_, found)| found).or(self.found.as_ref()).cloned()
    }
}

/// By whom a stop was ordered, as far as is known where it takes effect.
#[derive(Clone, Debug)]
pub(super) enum Source {
    /// By the neighbour, if it has.
    Neighbour(Option<Subject>),
    Node(u32, Subject),
    /// By this node itself.
    Own(Option<(Reason, Option<Found>)>),
}

#[derive(Clone, Debug)]
pub(super) struct Seen {
    pub(super) key: Key,
    pub(super) scope: Scope,
    pub(super) from: Time,
    pub(super) until: Option<Time>,
    pub(super) source: Source,
    pub(super) rule: Option<&'static str>,
}

/// What is kept while the run goes on.
#[derive(Default)]
pub(crate) struct Causes {
    pub(super) seen: Vec<Seen>,
    /// Those that have not ended: their places, and what they are known by.
    pub(super) open: Map<(u32, Scope), (usize, Key)>,
    /// The last that ended.
    pub(super) ended: Map<(u32, Scope), (Key, Time)>,
    /// By port, how many there were, and when the last of them ended.
    pub(super) numbers: Map<u32, (u32, Time)>,
    /// By what they are about, in order of time.
    pub(super) orders: Map<(Place, Subject), Vec<Order>>,
    pub(super) kept: Vec<(Key, FlowId, Time)>,
    pub(super) fullest: Option<(u64, u64)>,
    pub(super) fullest_port: Option<(u64, u64)>,
    pub(super) crowd: Crowd,
    /// By port.
    busy: Vec<Busy>,
    /// By port, how many bytes it has been to blame for beyond its turns.
    turns: Map<u32, i64>,
    /// Packets that were lost on links.
    pub(super) losses: Vec<Missing>,
    /// By flow, the ports that its packets left by, in runs whose routes change.
    pub(super) taken: Map<u32, Vec<u32>>,
    /// Accounts that held next to nothing when a stop was ordered because of them, by their numbers.
    watched: Map<usize, Watched>,
    /// Room for looking at ports and at what lies there.
    pub(super) lists: (Vec<(u64, u32)>, Vec<Heap>),
}

/// A packet that was lost on a link.
#[derive(Clone, Copy, Debug)]
pub(super) struct Missing {
    pub(super) flow: FlowId,
    pub(super) at: Time,
    pub(super) port: u32,
    pub(super) how: Lost,
    /// The bytes that it had; none of one without data.
    pub(super) bytes: (u64, u64),
}

/// An order that was given before anything filled: what fills is what comes while it is on its way.
struct Watched {
    place: Place,
    subject: Subject,
    /// What the account held when it was last looked at.
    bytes: u64,
}

impl Causes {
    pub(super) fn absorb(&mut self, other: Causes) {
        let first = self.seen.len();
        self.seen.extend(other.seen);
        self.open.extend(other.open.into_iter().map(|(what, (place, key))| (what, (place + first, key))));
        self.ended.extend(other.ended);
        self.numbers.extend(other.numbers);
        // A place belongs to one shard.
        self.orders.extend(other.orders);
        self.kept.extend(other.kept);
        other.fullest.into_iter().for_each(|account| fill_up(&mut self.fullest, account));
        other.fullest_port.into_iter().for_each(|port| fill_up(&mut self.fullest_port, port));
        // Packets have other numbers now.
        self.crowd = Crowd::default();
        // It is as long as it had to be so far.
        self.busy.resize(self.busy.len().max(other.busy.len()), Busy::default());
        for (mine, theirs) in self.busy.iter_mut().zip(other.busy) {
            if theirs.joined > 0 {
                *mine = theirs;
            }
        }
        // A packet is lost once, where its link ends or begins.
        self.losses.extend(other.losses);
        for (flow, ports) in other.taken {
            self.taken.entry(flow).or_default().extend(ports);
        }
    }

    /// The last order about something at a place, up to an instant.
    pub(super) fn order(&self, place: Place, subject: Subject, until: Time) -> Option<&Order> {
        let orders = self.orders.get(&(place, subject))?;
        orders[..orders.partition_point(|order| order.time <= until)].last()
    }

    /// By port, the most bytes that waited there.
    pub(super) fn queued(&self) -> Vec<u64> {
        self.busy.iter().map(|busy| busy.queued).collect()
    }

    /// What let go at once of most that has come to a port since it was idle, if its link, of so many Mbit/s, could have carried it as it
    /// would have come.
    pub(super) fn burst(&self, port: u32, mbps: u32) -> Option<Burst> {
        let busy = self.busy.get(port as usize)?;
        let first = busy.first.filter(|_| 2 * busy.freed > busy.joined)?;
        let (from, until) = busy.due;
        // Packets of a flow come one by one, so that the time of one more counts, and not quite evenly.
        let carried = (until - from).0 as u128 * mbps as u128 / 8_000_000 * 5 / 4 + BURST;
        (busy.joined as u128 <= carried).then_some(Burst { first, since: busy.since })
    }

    /// Whose turn it is to be blamed, of ports with so many bytes: the place of one of them.
    pub(super) fn next_turn(&mut self, ports: &[Heap]) -> usize {
        let total: u64 = ports.iter().map(|heap| heap.bytes).sum();
        let mut best = (i64::MIN, 0);
        for (place, heap) in ports.iter().enumerate() {
            let turn = self.turns.entry(heap.port).or_default();
            *turn += heap.bytes as i64;
            if *turn > best.0 {
                best = (*turn, place);
            }
        }
        *self.turns.entry(ports[best.1].port).or_default() -= total as i64;
        best.1
    }
}

/// Keeps the fuller of two: bytes and threshold.
#[inline]
fn fill_up(fullest: &mut Option<(u64, u64)>, next: (u64, u64)) {
    // Most are seen to be emptier without multiplying.
    if fullest.is_some_and(|(bytes, threshold)| next.0 < bytes && next.1 >= threshold) {
        return;
    }
    let fuller = |(bytes, threshold): (u64, u64)| {
        let (new, old) = (next.0 as u128 * threshold as u128, bytes as u128 * next.1 as u128);
        (new, next) > (old, (bytes, threshold))
    };
    if fullest.is_none_or(fuller) {
        *fullest = Some(next);
    }
}

/// What of something lies at an egress port.
#[derive(Clone, Copy, Debug)]
pub(super) struct Heap {
    pub(super) bytes: u64,
    pub(super) port: u32,
    /// The queue with most of it.
    pub(super) queue: u32,
}

impl Probes {
    /// Gives the node that wants a flow held which has just been stopped.
    pub(crate) fn stopped_by(&mut self, port: u32, scope: Scope, now: Time, by: Option<u32>, subject: Subject) {
        let source = by.map_or(Source::Neighbour(Some(subject)), |node| Source::Node(node, subject));
        self.name_stop(port, scope, now, |seen| seen.source = source);
    }

    /// Gives the rule by which something has just been stopped.
    pub(crate) fn stopped_by_rule(&mut self, port: u32, scope: Scope, now: Time, rule: &'static str) {
        self.name_stop(port, scope, now, |seen| seen.rule = Some(rule));
    }

    fn name_stop(&mut self, port: u32, scope: Scope, now: Time, name: impl FnOnce(&mut Seen)) {
        let Some(causes) = &mut self.causes else { return };
        let Some(seen) = causes.open.get(&scope.at(port)).map(|&(place, _)| &mut causes.seen[place]) else { return };
        // What it is stopped for later on is not why it stopped.
        if seen.from == now {
            name(seen);
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
                let (number, _) = causes.numbers.entry(port).or_default();
                *number += 1;
                let source = match scope {
                    Scope::Class(class) => Source::Neighbour(Some(Subject::class(class))),
                    Scope::Queue(queue) => Source::Neighbour(Some(Subject::queue(queue))),
                    Scope::Held(_) => Source::Own(None),
                    Scope::Flow(_) => Source::Neighbour(None),
                };
                let key = (port, *number);
                causes.seen.push(Seen { key, scope, from: now, until: None, source, rule: None });
                (next, key)
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
        let Some((place, key)) = causes.open.remove(&scope.at(port)) else { return };
        let now = self.time.now;
        let seen = &mut causes.seen[place];
        seen.until = Some(now);
        let from = seen.from;
        causes.ended.insert(scope.at(port), (key, now));
        causes.numbers.entry(port).or_default().1 = now;
        let kept = self.kept_by(&mut causes.crowd, port, scope, from, now);
        causes.kept.extend(kept.into_iter().map(|(flow, time)| (key, flow, time)));
    }

    /// The flows that a stop keeps from sending at `now`, and for how long it has.
    pub(super) fn kept_by(
        &self,
        crowd: &mut Crowd,
        port: u32,
        scope: Scope,
        from: Time,
        now: Time,
    ) -> Vec<(FlowId, Time)> {
        let p = &self.ports[port as usize];
        let mut all: Vec<(FlowId, Time)> = Vec::new();
        let mut keep = |flow: u32, since: Time| all.push((FlowId(flow), since.max(from)));
        let queues = match scope {
            Scope::Class(class) => self.class_queues(class.0),
            Scope::Queue(queue) | Scope::Held(queue) => queue.0..queue.0 + 1,
            Scope::Flow(_) => 0..0,
        };
        if p.has_queues() {
            for queue in queues.filter(|&queue| self.switches.masks.is_filled(port, queue)) {
                let slot = (p.first_queue + queue) as usize;
                let guests = crowd.of(slot, &self.switches.queues[slot].packets, &self.pool);
                guests.flows().for_each(|guest| keep(guest.flow, guest.since));
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

    /// A packet has joined a queue of `port`, which may have been stopped before.
    pub(super) fn note_joining(&mut self, port: u32, visit: &Visit, freed: Option<Freed>) {
        let Some(causes) = &mut self.probes.causes else { return };
        let (p, now) = (&self.ports[port as usize], self.time.now);
        let slot = (p.first_queue + visit.queue.0) as usize;
        let size = visit.size as u64;
        if causes.busy.len() <= port as usize {
            causes.busy.resize(self.ports.len(), Busy::default());
        }
        let busy = &mut causes.busy[port as usize];
        let first = self.switches.queues[slot].bytes == size;
        if first && self.switches.masks.is_only_filled(port, visit.queue.0) {
            *busy = Busy { since: now, due: (now, Time::ZERO), queued: busy.queued, ..Busy::default() };
        }
        busy.queued = busy.queued.max(p.queued);
        busy.joined += size;
        match freed {
            // No packet before it was due later.
            None => busy.due.1 = now,
            Some(freed) => {
                let due = now.saturating_sub(freed.stopped);
                busy.freed += size;
                busy.first.get_or_insert(freed);
                busy.due = (busy.due.0.min(due), busy.due.1.max(due));
            }
        }
        causes.crowd.join(slot, &self.pool[visit.packet]);
        // Once something was stopped nobody asks. Where a stop takes effect may be another shard's business: orders are looked at again all
        // the same.
        let (asked, watched) = (causes.seen.is_empty(), !causes.watched.is_empty());
        if asked {
            self.note_account(port, visit);
        }
        if watched {
            self.find_again(port, visit);
        }
    }

    /// Looks at the account of a packet that has just been admitted: it may be nearer to its threshold than any before.
    pub(crate) fn note_account(&mut self, out: u32, visit: &Visit) {
        let Some(causes) = &mut self.probes.causes else { return };
        // Once something was stopped nobody asks.
        if !causes.seen.is_empty() {
            return;
        }
        let p = &self.ports[out as usize];
        let port = p.base + visit.in_port.0 as u32;
        let account = &self.switches.accounts[(port * self.switches.classes) as usize + visit.class.0 as usize];
        let buffer = &self.switches.buffers[p.node as usize];
        let (bytes, threshold) = (account.bytes.saturating_sub(buffer.reserve), buffer.threshold(account.share));
        if bytes > 0 && threshold > 0 && threshold < u64::MAX {
            fill_up(&mut causes.fullest, (bytes, threshold));
        }
    }

    /// Looks again at what fills a node that ordered a stop when it was next to empty, as often as that has doubled.
    #[cold]
    #[inline(never)]
    fn find_again(&mut self, out: u32, visit: &Visit) {
        let Some(mut causes) = self.probes.causes.take() else { return };
        let second = self.pool[visit.packet].flags & flag::SECOND != 0;
        let port = self.ports[out as usize].base + visit.in_port.0 as u32;
        let number = self.account_number(port, visit.class.0, second);
        let bytes = self.switches.accounts[number].total();
        if let Some(watched) = causes.watched.get_mut(&number).filter(|watched| bytes >= 2 * watched.bytes) {
            let &mut Watched { place, subject, .. } = watched;
            watched.bytes = bytes;
            let reason = Reason::Account { port, class: visit.class.0, second };
            let found = self.found(&mut causes, reason, true);
            if let Some(order) = causes.orders.get_mut(&(place, subject)).and_then(|orders| orders.last_mut()) {
                order.again.extend(found.map(|found| (self.time.now, found)));
            }
        }
        self.probes.causes = Some(causes);
    }

    /// What such a node ordered is over: it is empty.
    #[cold]
    #[inline(never)]
    fn forget_empty(&mut self, out: u32, id: PacketId, second: bool) {
        let packet = &self.pool[id];
        let number = self.account_number(self.ports[out as usize].base + packet.in_port as u32, packet.class, second);
        if self.switches.accounts[number].total() == 0
            && let Some(causes) = &mut self.probes.causes
        {
            causes.watched.remove(&number);
        }
    }

    /// A packet has left a queue of `port`, of whose second group it was or not.
    #[inline]
    pub(super) fn note_leaving(&mut self, port: u32, slot: usize, id: PacketId, second: bool) {
        let Some(causes) = &mut self.probes.causes else { return };
        causes.crowd.leave(slot, &self.pool[id], second, self.switches.queues[slot].bytes == 0);
        let p = &self.ports[port as usize];
        let begins = p.ecn_min as u64;
        // Once it has begun somewhere nobody asks how near it was elsewhere.
        if p.ecn_min < u32::MAX && begins > 0 && causes.fullest_port.is_none_or(|(bytes, begins)| bytes <= begins) {
            fill_up(&mut causes.fullest_port, (p.queued, begins));
        }
        if !causes.watched.is_empty() {
            self.forget_empty(port, id, second);
        }
    }

    /// A queue changes in another way than by packets that join and leave.
    pub(crate) fn note_rearranged(&mut self, slot: usize) {
        if let Some(causes) = &mut self.probes.causes {
            causes.crowd.forget(slot);
        }
    }

    /// A packet is lost on the link of `port`, or at its end.
    #[cold]
    #[inline(never)]
    pub(crate) fn note_loss(&mut self, port: u32, id: PacketId, how: Lost) {
        let Some(causes) = &mut self.probes.causes else { return };
        let packet = &self.pool[id];
        // A frame belongs to no flow; the number in its place is of something else.
        if packet.flow == NONE || packet.kind == Kind::Frame {
            return;
        }
        let payload = packet.size.saturating_sub(self.setup.nic.header) as u64;
        let bytes = if packet.kind == Kind::Data { (packet.seq, packet.seq + payload) } else { (0, 0) };
        causes.losses.push(Missing { flow: FlowId(packet.flow), at: self.time.now, port, how, bytes });
    }

    /// A packet of a flow leaves by `port`, in a run whose routes change.
    pub(super) fn note_path(&mut self, port: u32, id: PacketId) {
        if let Some(causes) = &mut self.probes.causes {
            let ports = causes.taken.entry(self.pool[id].flow).or_default();
            if !ports.contains(&port) {
                ports.push(port);
            }
        }
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
        let found = self.found(&mut causes, reason, false);
        if let Reason::Account { port, class, second } = reason
            && found.as_ref().is_none_or(|found| found.fill.waiting != Waiting::Receiver)
        {
            let number = self.account_number(port, class, second);
            let bytes = self.switches.accounts[number].total();
            match (bytes as u128) < BURST {
                true => _ = causes.watched.insert(number, Watched { place, subject, bytes }),
                false => _ = causes.watched.remove(&number),
            }
        }
        causes.orders.entry((place, subject)).or_default().push(Order {
            time: self.time.now,
            reason,
            found,
            again: Vec::new(),
        });
        self.probes.causes = Some(causes);
    }

    /// A queue that its node has just held is so because of something at the node itself.
    #[cold]
    #[inline(never)]
    pub(crate) fn note_own(&mut self, port: u32, scope: Scope, because: Because) {
        let Some(mut causes) = self.probes.causes.take() else { return };
        let now = self.time.now;
        // It may have been held for long.
        let fresh = causes.open.get(&scope.at(port)).is_some_and(|&(place, _)| causes.seen[place].from == now);
        let reason = self.reason(port, because);
        let found = if fresh { self.found(&mut causes, reason, false) } else { None };
        self.probes.causes = Some(causes);
        if fresh {
            self.probes.name_stop(port, scope, now, |seen| seen.source = Source::Own(Some((reason, found))));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stop_is_joined_with_the_last_order_that_could_have_come() {
        let (class, flow) = (Subject::class(ClassId(0)), Subject::flow(FlowId(0)));
        let mut causes = Causes::default();
        for (place, subject, time) in [
            (Place::Node(1), flow, 4),
            (Place::Port(1), class, 5),
            (Place::Port(1), class, 9),
            (Place::Port(2), class, 6),
        ] {
            let order = Order { time: Time(time), reason: Reason::LastHop { port: 0 }, found: None, again: Vec::new() };
            causes.orders.entry((place, subject)).or_default().push(order);
        }
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
            let mut fullest = None;
            (0..accounts.len()).for_each(|next| fill_up(&mut fullest, accounts[(first + next) % accounts.len()]));
            assert_eq!(fullest, Some((610, 1000)));
        }
        let empty = [(0, 100), (0, 250), (0, 50)];
        for first in 0..empty.len() {
            let mut fullest = None;
            (0..empty.len()).for_each(|next| fill_up(&mut fullest, empty[(first + next) % empty.len()]));
            assert_eq!(fullest, Some((0, 250)));
        }
    }

    #[test]
    fn ports_are_blamed_as_often_as_they_hold_bytes() {
        let mut causes = Causes::default();
        let heaps = [(300, 7), (200, 8)].map(|(bytes, port)| Heap { bytes, port, queue: 0 });
        let turns: Vec<usize> = (0..10).map(|_| causes.next_turn(&heaps)).collect();
        assert_eq!(turns, [0, 1, 0, 1, 0, 0, 1, 0, 1, 0]);
    }
}
