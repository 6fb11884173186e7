//! Who stopped whom, and why: every pause and hold with the node that ordered it, and what filled that node at the instant of the order.
//!
//! A stop is seen where it takes effect, an order where it is given; the two are joined when the run is over. Both are properties of one
//! node's own events, so that neither threads nor blocks can show. Nothing here changes the run.

use super::blame::Asked;
use super::crowd::{Crowd, Had, Map};
use super::{Probes, Trail};
use crate::axes::flow_control::Visit;
use crate::buffer::Account;
use crate::id::{ClassId, FlowId, NodeId, PortId, QueueId};
use crate::packet::{Kind, NONE, PacketId, Pool, flag};
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

/// How a packet was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Lost {
    /// The link lost or damaged it.
    Fault,
    /// The link went down with it, or was down.
    Down,
    /// There was no path behind the link.
    NoPath,
    /// There was no room for it: in the queue, in the memory of its switch, or in the NIC of a slow receiver. What a switch trims is lost but for its header.
    Room,
}

/// The packets that a flow lost at a port, or on its link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Loss {
    /// The port whose link it was, or that they were to leave by.
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
    /// Of those for which there was no room, what had taken it when the first was dropped, with the most flows that had at any.
    pub fill: Option<Fill>,
    /// The stop that the filling port waited for then, by its place.
    pub cause: Option<u32>,
    /// The flow's path leads neither through the root of that nor through a port that was as much to blame.
    pub victim: bool,
}

/// What a flow had at a port when packets were dropped because of what was there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Filler {
    /// The port.
    pub port: u32,
    /// The flow.
    pub flow: FlowId,
    /// At how many drops it had something there.
    pub drops: u64,
    /// How many bytes, added up over these.
    pub bytes: u64,
}

/// All stops of a run, in order of time, and who waited at them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stops {
    /// The stops.
    pub stops: Vec<Stop>,
    /// The flows, by stop and flow.
    pub kept: Vec<Kept>,
    /// What flows lost, by port.
    pub losses: Vec<Loss>,
    /// Who filled the ports because of which packets were dropped for want of room, by port and flow.
    pub fillers: Vec<Filler>,
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
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) fill: Fill,
    /// The stop that it waits for.
    pub(super) stop: Option<Key>,
    /// What is rarely there to be said.
    pub(super) more: Option<Box<More>>,
}

/// More of what fills a node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct More {
    /// What let go at once of most that is there, if it was idle before.
    pub(super) burst: Option<Burst>,
    /// Other ports as much to blame.
    pub(super) also: Vec<u32>,
}

/// Where a packet was stopped last on its way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Freed {
    /// The port.
    pub(super) port: u32,
    /// The queue there.
    pub(super) queue: u32,
    /// When it left.
    pub(super) start: Time,
}

/// Packets that were stopped before they came to a port, which had nothing to send then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Burst {
    /// Where the first of them was.
    pub(super) first: Freed,
    /// Since when something has waited at the port.
    pub(super) since: Time,
}

impl Found {
    pub(super) fn only(fill: Fill) -> Found {
        Found { fill, stop: None, more: None }
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
    /// Where the first of these was, if there are any.
    first: Freed,
    /// When the first and the last would have come, had they not been stopped.
    due: (Time, Time),
    /// The most bytes that ever waited there.
    queued: u64,
}

impl Busy {
    /// The port has something to send again.
    #[inline]
    fn begin(&mut self, now: Time) {
        (self.since, self.joined, self.freed, self.due) = (now, 0, 0, (now, Time::ZERO));
    }

    /// A packet has joined, with its trail if it was stopped before.
    #[inline(always)]
    fn join(&mut self, now: Time, size: u64, trail: Option<&Trail>) {
        self.joined += size;
        match trail {
            // No packet before it was due later.
            None => self.due.1 = now,
            Some(trail) => self.add_freed(now, size, trail),
        }
    }

    #[inline(always)]
    fn add_freed(&mut self, now: Time, size: u64, trail: &Trail) {
        if self.freed == 0 {
            self.first = trail.freed();
        }
        let due = now.saturating_sub(trail.stopped());
        self.freed += size;
        self.due = (self.due.0.min(due), self.due.1.max(due));
    }
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
    Account {
        port: u32,
        class: u8,
        second: bool,
    },
    Queue {
        port: u32,
        queue: u32,
    },
    Toward {
        port: u32,
        host: u32,
        class: u8,
    },
    /// All the memory of the port's node.
    Memory {
        port: u32,
    },
    LastHop {
        port: u32,
    },
    Heard {
        place: Place,
        subject: Subject,
    },
}

#[derive(Clone, Debug)]
pub(super) struct Order {
    pub(super) time: Time,
    pub(super) reason: Reason,
    pub(super) found: Option<Found>,
    /// What was found since, and when, if the node was next to empty.
    pub(super) again: Option<Box<Again>>,
}

/// What was found, and when.
#[derive(Clone, Debug, Default)]
pub(super) struct Again(Vec<(Time, Found)>);

impl Order {
    /// What filled the node, as far as it was found before the stop ended: what came later did not cause it.
    pub(super) fn found(&self, until: Option<Time>) -> Option<Found> {
        let again = self.again.iter().flat_map(|again| again.0.iter().rev());
        let known = again.into_iter().find(|(at, _)| until.is_none_or(|until| *at <= until));
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
    Own(Option<Box<(Reason, Option<Found>)>>),
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

/// The last stops of one thing.
#[derive(Clone, Copy, Debug)]
pub(super) struct Last {
    /// The place of the last one, if it has not ended.
    place: Option<u32>,
    key: Key,
    /// The last that ended, and when.
    pub(super) ended: Option<(Key, Time)>,
}

impl Last {
    /// The one that has not ended.
    pub(super) fn open(&self) -> Option<Key> {
        self.place.map(|_| self.key)
    }
}

/// What is kept while the run goes on.
#[derive(Default)]
pub(crate) struct Causes {
    pub(super) seen: Vec<Seen>,
    /// By what they stop, the last of them.
    pub(super) last: Map<(u32, Scope), Last>,
    /// By port, how many there were, and when the last of them ended.
    pub(super) numbers: Vec<(u32, Time)>,
    /// By what they are about, in order of time.
    pub(super) orders: Map<(Place, Subject), Vec<Order>>,
    /// Who waited at stops that have ended, and for how long: those of a stop together, by flow.
    pub(super) kept: Vec<(FlowId, Time)>,
    /// The stops that somebody waited at, and how many did.
    pub(super) kept_at: Vec<(Key, u32)>,
    pub(super) fullest: Option<(u64, u64)>,
    pub(super) fullest_port: Option<(u64, u64)>,
    pub(super) crowd: Crowd,
    /// By port.
    busy: Vec<Busy>,
    /// By port, how many bytes it has been to blame for beyond its turns.
    turns: Vec<i64>,
    /// By flow, packets that were lost.
    pub(super) losses: Vec<Vec<Missing>>,
    /// By port and flow, what the flow had there when packets were dropped because of that, as far as the crowd was told before it was another.
    pub(super) fillers: Map<(u32, u32), Had>,
    /// What had taken the room for which packets were dropped. What one after the other finds is here once.
    pub(super) rooms: Vec<Found>,
    /// The place of what has taken the room for which a packet was last dropped.
    room: u32,
    /// By flow, the ports that its packets left by, in runs whose routes change.
    pub(super) taken: Map<u32, Vec<u32>>,
    /// Accounts that held next to nothing when a stop was ordered because of them, by their numbers.
    watched: Map<usize, Watched>,
    /// Whether somebody may ask for accounts: nothing was stopped yet, or some of them are watched.
    looks: bool,
    /// Whether somebody may ask how near ports came to where marking begins: some mark, and none has come there.
    marks: bool,
    /// Whether packets may go by the quick paths when no account is watched.
    quick: Quick,
    /// Whether all packets join a queue on the long way, and not only those that come as the one before has just been sent.
    joins: bool,
    /// Room for looking at ports and at what lies there.
    pub(super) lists: (Vec<(u64, u32)>, Vec<Heap>),
    /// And for who waits.
    pub(super) waiting: Vec<(FlowId, Time)>,
}

/// Which quick paths packets may go by: [`Core::quick`], and what [`Switches`](crate::switch::Switches) says of data and of ACKs among it.
type Quick = (bool, bool, bool);

/// A packet that was lost.
#[derive(Clone, Copy, Debug)]
pub(super) struct Missing {
    pub(super) at: Time,
    /// The first byte that it had, and how many; none of one without data.
    pub(super) byte: u64,
    pub(super) bytes: u16,
    pub(super) how: Lost,
    pub(super) port: u32,
    /// What had taken the room for it, by its place, or [`NONE`].
    pub(super) room: u32,
}

/// An order that was given before anything filled: what fills is what comes while it is on its way.
struct Watched {
    place: Place,
    subject: Subject,
    /// What the account held when it was last looked at.
    bytes: u64,
}

impl Causes {
    /// For so many ports. `marks`: some of them mark packets.
    pub(super) fn new(ports: usize, marks: bool) -> Causes {
        let (busy, numbers, turns) = (vec![Busy::default(); ports], vec![(0, Time::ZERO); ports], vec![0; ports]);
        Causes { busy, numbers, turns, room: NONE, looks: true, marks, ..Causes::default() }
    }

    pub(super) fn absorb(&mut self, other: Causes) {
        let first = self.seen.len() as u32;
        self.seen.extend(other.seen);
        let moved = |last: Last| Last { place: last.place.map(|place| place + first), ..last };
        self.last.extend(other.last.into_iter().map(|(what, last)| (what, moved(last))));
        for (mine, theirs) in self.numbers.iter_mut().zip(other.numbers).filter(|(_, theirs)| theirs.0 > 0) {
            *mine = theirs;
        }
        // A place belongs to one shard.
        self.orders.extend(other.orders);
        self.kept.extend(other.kept);
        self.kept_at.extend(other.kept_at);
        other.fullest.into_iter().for_each(|account| fill_up(&mut self.fullest, account));
        other.fullest_port.into_iter().for_each(|port| fill_up(&mut self.fullest_port, port));
        // Packets have other numbers now.
        let mut theirs = other.crowd;
        for (who, had) in theirs.fillers().into_iter().chain(other.fillers) {
            self.fillers.entry(who).or_default().add(had);
        }
        for (who, had) in self.crowd.fillers() {
            self.fillers.entry(who).or_default().add(had);
        }
        self.crowd = Crowd::default();
        for (mine, theirs) in self.busy.iter_mut().zip(other.busy) {
            if theirs.joined > 0 {
                *mine = theirs;
            }
        }
        // A packet is lost once, where its link ends or begins.
        let rooms = self.rooms.len() as u32;
        let moved = |lost: Missing| Missing { room: if lost.room == NONE { NONE } else { lost.room + rooms }, ..lost };
        if self.losses.len() < other.losses.len() {
            self.losses.resize(other.losses.len(), Vec::new());
        }
        for (mine, theirs) in self.losses.iter_mut().zip(other.losses) {
            mine.extend(theirs.into_iter().map(moved));
        }
        self.rooms.extend(other.rooms);
        for (flow, ports) in other.taken {
            self.taken.entry(flow).or_default().extend(ports);
        }
    }

    /// All packets join a queue on the long way.
    pub(crate) fn all_join(&mut self) {
        self.joins = true;
    }

    /// Whether packets that find their port idle may go by the quick path though an account is watched.
    pub(crate) fn idle_passes(&self) -> bool {
        !self.joins && !self.watched.is_empty() && self.quick.0
    }

    /// The last order about something at a place, up to an instant.
    pub(super) fn order(&self, place: Place, subject: Subject, until: Time) -> Option<&Order> {
        let orders = self.orders.get(&(place, subject))?;
        orders[..orders.partition_point(|order| order.time <= until)].last()
    }

    /// Watches an account, or no longer. Gives by which quick paths packets may go from now on, which were `quick`: while any is watched, what joins a
    /// queue on the long way has to go it.
    fn watch(&mut self, account: usize, what: Option<Watched>, quick: Quick) -> Quick {
        let before = self.watched.is_empty();
        if before && what.is_none() {
            return quick;
        }
        match what {
            Some(watched) => _ = self.watched.insert(account, watched),
            None => _ = self.watched.remove(&account),
        }
        match (before, self.watched.is_empty()) {
            (true, false) => {
                (self.quick, self.looks) = (quick, true);
                (false, quick.1 && !self.joins, quick.2 && !self.joins)
            }
            (false, true) => {
                self.looks = self.seen.is_empty();
                self.quick
            }
            _ => quick,
        }
    }

    /// An account has so many bytes that count, and that threshold.
    #[inline]
    fn fill_account(&mut self, (bytes, threshold): (u64, u64)) {
        if bytes > 0 && threshold > 0 && threshold < u64::MAX {
            fill_up(&mut self.fullest, (bytes, threshold));
        }
    }

    /// A packet leaves so many bytes behind at a port where marking begins above so many.
    #[inline]
    fn mark_fill(&mut self, queued: u64, begins: u32) {
        if begins < u32::MAX && begins > 0 {
            fill_up(&mut self.fullest_port, (queued, begins as u64));
            // Once it has begun somewhere nobody asks how near it was elsewhere.
            self.marks = self.fullest_port.is_none_or(|(bytes, begins)| bytes <= begins);
        }
    }

    /// A packet is in a queue of an empty port for no time. There, marking begins above so many bytes.
    fn note_moment(&mut self, port: u32, begins: u32, now: Time, pool: &mut Pool, id: PacketId) {
        let size = pool[id].size as u64;
        let busy = &mut self.busy[port as usize];
        busy.begin(now);
        busy.queued = busy.queued.max(size);
        busy.joined = size;
        match freed(pool, id) {
            None => busy.due.1 = now,
            Some(trail) => busy.add_freed(now, size, trail),
        }
        if self.marks {
            self.mark_fill(0, begins);
        }
    }

    /// These waited at a stop.
    pub(super) fn keep(&mut self, stop: Key, waited: &[(FlowId, Time)]) {
        if !waited.is_empty() {
            make_room(&mut self.kept);
            self.kept.extend_from_slice(waited);
            self.kept_at.push((stop, waited.len() as u32));
        }
    }

    /// By port, the most bytes that waited there.
    pub(super) fn queued(&self) -> Vec<u64> {
        self.busy.iter().map(|busy| busy.queued).collect()
    }

    /// What let go at once of most that has come to a port since it was idle, if its link, of so many Mbit/s, could have carried it as it
    /// would have come.
    pub(super) fn burst(&self, port: u32, mbps: u32) -> Option<Burst> {
        let busy = self.busy.get(port as usize)?;
        let first = (2 * busy.freed > busy.joined).then_some(busy.first)?;
        let (from, until) = busy.due;
        // Packets of a flow come one by one, so that the time of one more counts, and not quite evenly.
        let carried = (until - from).0 as u128 * mbps as u128 / 8_000_000 * 5 / 4 + BURST;
        (busy.joined as u128 <= carried).then_some(Burst { first, since: busy.since })
    }

    /// A packet is being dropped for want of room, because of that.
    #[inline]
    fn set_room(&mut self, found: Found) {
        if self.rooms.last() != Some(&found) {
            make_room(&mut self.rooms);
            self.rooms.push(found);
        }
        self.room = self.rooms.len() as u32 - 1;
    }

    /// Whose turn it is to be blamed, of ports with so many bytes: the place of one of them.
    pub(super) fn next_turn(&mut self, ports: &[Heap]) -> usize {
        let total: u64 = ports.iter().map(|heap| heap.bytes).sum();
        let mut best = (i64::MIN, 0);
        for (place, heap) in ports.iter().enumerate() {
            let turn = &mut self.turns[heap.port as usize];
            *turn += heap.bytes as i64;
            if *turn > best.0 {
                best = (*turn, place);
            }
        }
        self.turns[ports[best.1].port as usize] -= total as i64;
        best.1
    }
}

/// Lets a list that is full grow fourfold, so that less is moved, as long as it is short.
pub(super) fn make_room<T>(list: &mut Vec<T>) {
    if list.len() == list.capacity() && list.len() < 1 << 14 {
        list.reserve(3 * list.len() + 16);
    }
}

/// Keeps the fuller of two: bytes and threshold.
#[inline(always)]
fn fill_up(fullest: &mut Option<(u64, u64)>, next: (u64, u64)) {
    // Most are seen to be emptier, or fuller, without multiplying.
    if let Some((bytes, threshold)) = *fullest {
        if next.0 < bytes && next.1 >= threshold {
            return;
        }
        if next.0 > bytes && next.1 <= threshold && threshold > 0 {
            *fullest = Some(next);
            return;
        }
    }
    fill_up_exactly(fullest, next);
}

#[inline(never)]
fn fill_up_exactly(fullest: &mut Option<(u64, u64)>, next: (u64, u64)) {
    let fuller = |(bytes, threshold): (u64, u64)| {
        let (new, old) = (next.0 as u128 * threshold as u128, bytes as u128 * next.1 as u128);
        (new, next) > (old, (bytes, threshold))
    };
    if fullest.is_none_or(fuller) {
        *fullest = Some(next);
    }
}

/// The trail of a packet that was stopped on its way.
#[inline]
fn freed(pool: &mut Pool, id: PacketId) -> Option<&Trail> {
    let packet = &pool[id];
    if packet.flags & flag::FREED != 0 && packet.kind == Kind::Data {
        pool.trail(id).map(|trail| &*trail)
    } else {
        None
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
        let Some(place) = causes.last.get(&scope.at(port)).and_then(|last| last.place) else { return };
        let seen = &mut causes.seen[place as usize];
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
            let causes = &mut *causes;
            let next = causes.seen.len() as u32;
            let none = Last { place: None, key: (port, 0), ended: None };
            let last = causes.last.entry(scope.at(port)).or_insert(none);
            if last.place.is_none() {
                let (number, _) = &mut causes.numbers[port as usize];
                *number += 1;
                let source = match scope {
                    Scope::Class(class) => Source::Neighbour(Some(Subject::class(class))),
                    Scope::Queue(queue) => Source::Neighbour(Some(Subject::queue(queue))),
                    Scope::Held(_) => Source::Own(None),
                    Scope::Flow(_) => Source::Neighbour(None),
                };
                let key = (port, *number);
                make_room(&mut causes.seen);
                causes.seen.push(Seen { key, scope, from: now, until: None, source, rule: None });
                causes.looks = !causes.watched.is_empty();
                (last.place, last.key) = (Some(next), key);
            }
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
        let now = self.time.now;
        let Some(last) = causes.last.get_mut(&scope.at(port)) else { return };
        let Some(place) = last.place.take() else { return };
        let key = last.key;
        last.ended = Some((key, now));
        let seen = &mut causes.seen[place as usize];
        seen.until = Some(now);
        let from = seen.from;
        causes.numbers[port as usize].1 = now;
        let mut kept = std::mem::take(&mut causes.waiting);
        self.kept_by(&mut kept, &mut causes.crowd, port, scope, from, now);
        causes.keep(key, &kept);
        causes.waiting = kept;
    }

    /// The flows that a stop keeps from sending at `now`, and for how long it has, in place of what is in `all`.
    pub(super) fn kept_by(
        &self,
        all: &mut Vec<(FlowId, Time)>,
        crowd: &mut Crowd,
        port: u32,
        scope: Scope,
        from: Time,
        now: Time,
    ) {
        let p = &self.ports[port as usize];
        all.clear();
        let mut keep = |flow: u32, since: Time| all.push((FlowId(flow), since.max(from)));
        let queues = match scope {
            Scope::Class(class) => self.class_queues(class.0),
            Scope::Queue(queue) | Scope::Held(queue) => queue.0..queue.0 + 1,
            Scope::Flow(_) => 0..0,
        };
        if p.has_queues() {
            for queue in queues.filter(|&queue| self.switches.masks.is_filled(port, queue)) {
                let slot = (p.first_queue + queue) as usize;
                let guests = crowd.of(slot, &self.switches.queues, &self.pool);
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

    /// A packet has joined a queue of `port`. What is rare comes last and in functions of its own: so this one has nothing to save.
    #[cold]
    #[inline(never)]
    pub(crate) fn note_joining(&mut self, port: u32, visit: &Visit) {
        let Some(causes) = &mut self.probes.causes else { return };
        let (p, size) = (&self.ports[port as usize], visit.size as u64);
        let busy = &mut causes.busy[port as usize];
        busy.queued = busy.queued.max(p.queued);
        if self.switches.queues[(p.first_queue + visit.queue.0) as usize].bytes == size {
            return self.note_first(port, visit);
        }
        busy.join(self.time.now, size, freed(&mut self.pool, visit.packet));
        if causes.looks {
            // Where a stop takes effect may be another shard's business: orders are looked at again all the same.
            if !causes.watched.is_empty() {
                return self.look_at_watched(port, visit);
            }
            self.note_account(port, visit);
        }
    }

    /// The same of the first packet of a queue.
    #[inline(never)]
    fn note_first(&mut self, port: u32, visit: &Visit) {
        let Some(causes) = &mut self.probes.causes else { return };
        let (queued, size) = (self.ports[port as usize].queued, visit.size as u64);
        let busy = &mut causes.busy[port as usize];
        // What the port has besides data counts as well.
        if queued == size || self.switches.masks.is_only_filled(port, visit.queue.0) {
            busy.begin(self.time.now);
        }
        busy.join(self.time.now, size, freed(&mut self.pool, visit.packet));
        if causes.looks {
            self.look_at_account(port, visit);
        }
    }

    /// A packet passes through a port as if it had been in a queue for no time, and moves nothing in the books of its switch. `joins`: on the long
    /// way it would have joined the queue.
    #[inline]
    pub(crate) fn note_through(&mut self, in_port: u32, out: u32, id: PacketId, joins: bool) {
        let Some(causes) = &mut self.probes.causes else { return };
        let (p, now) = (&self.ports[out as usize], self.time.now);
        // The packet before it has been sent at this very instant: it comes to wait for that.
        if joins || p.free_at == now {
            causes.note_moment(out, p.ecn_min, now, &mut self.pool, id);
        }
        // Once something was stopped nobody asks.
        if causes.looks {
            let (packet, size) = (&self.pool[id], self.pool[id].size as u64);
            let account = &self.switches.accounts[(in_port * self.switches.classes) as usize + packet.class as usize];
            causes.fill_account(self.switches.buffers[p.node as usize].with(account, size));
        }
    }

    /// A packet that was admitted passes through a port as if it had been in a queue for no time.
    #[cold]
    #[inline(never)]
    pub(crate) fn note_passing_by(&mut self, out: u32, visit: &Visit) {
        let Some(causes) = &mut self.probes.causes else { return };
        let (p, now) = (&self.ports[out as usize], self.time.now);
        if p.free_at == now {
            causes.note_moment(out, p.ecn_min, now, &mut self.pool, visit.packet);
        }
        self.note_account(out, visit);
    }

    /// Looks at the account of a packet that has just joined a queue, if somebody may ask.
    #[inline(never)]
    fn look_at_account(&mut self, port: u32, visit: &Visit) {
        if self.probes.causes.as_ref().is_some_and(|causes| !causes.watched.is_empty()) {
            return self.look_at_watched(port, visit);
        }
        self.note_account(port, visit);
    }

    #[cold]
    #[inline(never)]
    fn look_at_watched(&mut self, port: u32, visit: &Visit) {
        self.note_account(port, visit);
        self.find_again(port, visit);
    }

    /// Looks at the account of a packet that has just been admitted: it may be nearer to its threshold than any before.
    #[inline(always)]
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
        let bytes = account.bytes.saturating_sub(buffer.reserve);
        if bytes > 0 {
            causes.fill_account((bytes, buffer.threshold(account.share)));
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
            let found = self.found(&mut causes, reason, Asked::Again);
            if let Some(order) = causes.orders.get_mut(&(place, subject)).and_then(|orders| orders.last_mut()) {
                order.again.get_or_insert_default().0.extend(found.map(|found| (self.time.now, found)));
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
            let quick =
                causes.watch(number, None, (self.quick, self.switches.data_passes, self.switches.answers_queue));
            (self.quick, self.switches.data_passes, self.switches.answers_queue) = quick;
        }
    }

    /// A packet has left a queue of `port`, of whose second group it was or not.
    #[inline]
    pub(super) fn note_leaving(&mut self, port: u32, id: PacketId, second: bool) {
        if self.probes.causes.as_ref().is_some_and(|causes| causes.marks || !causes.watched.is_empty()) {
            self.look_at_what_is_left(port, id, second);
        }
    }

    #[inline(never)]
    fn look_at_what_is_left(&mut self, port: u32, id: PacketId, second: bool) {
        let Some(causes) = &mut self.probes.causes else { return };
        if causes.marks {
            let p = &self.ports[port as usize];
            causes.mark_fill(p.queued, p.ecn_min);
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

    /// A packet is lost on the link of `port`, or at its end, or finds no room at `port`.
    #[cold]
    #[inline(never)]
    pub(crate) fn note_loss(&mut self, port: u32, id: PacketId, how: Lost) {
        let Some(causes) = &mut self.probes.causes else { return };
        let packet = &self.pool[id];
        // A frame belongs to no flow; the number in its place is of something else.
        if packet.flow == NONE || packet.kind == Kind::Frame {
            return;
        }
        let payload = packet.size.saturating_sub(self.setup.nic.header);
        let (byte, bytes) = if packet.kind == Kind::Data { (packet.seq, payload) } else { (0, 0) };
        let room = if how == Lost::Room { causes.room } else { NONE };
        if causes.losses.is_empty() {
            causes.losses.resize(self.setup.flows.len(), Vec::new());
        }
        let own = &mut causes.losses[packet.flow as usize];
        make_room(own);
        own.push(Missing { at: self.time.now, byte, bytes, how, port, room });
    }

    /// A packet that came in by `in_port` finds no room: what has taken it? The queue, if that has a limit or the scheme lets no more in; its account, if
    /// that is more than it could have with the memory to itself; else the memory as a whole.
    #[cold]
    #[inline(never)]
    pub(crate) fn note_no_room(&mut self, in_port: u32, out: u32, visit: &Visit, second: bool) {
        // Mostly it is a queue with a limit.
        if self.queue_admits(out, visit) || !self.switches.masks.is_only_filled(out, visit.queue.0) {
            return self.find_no_room(in_port, out, visit, second);
        }
        let Some(mut causes) = self.probes.causes.take() else { return };
        let found = self.fill_alone(&mut causes, out, visit.queue.0);
        causes.set_room(found);
        self.probes.causes = Some(causes);
    }

    #[inline(never)]
    fn find_no_room(&mut self, in_port: u32, out: u32, visit: &Visit, second: bool) {
        let Some(mut causes) = self.probes.causes.take() else { return };
        let (node, size) = (self.ports[out as usize].node, visit.size as u64);
        let account = &self.switches.accounts[self.account_number(in_port, visit.class.0, second)];
        let buffer = &self.switches.buffers[node as usize];
        let admits = |account: &Account| buffer.clone().admit(&mut account.clone(), size);
        let reason = if self.queue_admits(out, visit) && !admits(account) {
            let alone = buffer.alone(account.share).unwrap_or(u64::MAX);
            match account.total() + buffer.charge(size) > alone {
                true => Reason::Account { port: in_port, class: visit.class.0, second },
                false => Reason::Memory { port: out },
            }
        } else {
            Reason::Queue { port: out, queue: visit.queue.0 }
        };
        let found = self.found(&mut causes, reason, Asked::Drop);
        let own = || Found::only(Fill { port: out, queue: visit.queue.0, bytes: 0, flows: 0, waiting: Waiting::Busy });
        self.note_room(&mut causes, found.unwrap_or_else(own));
        self.probes.causes = Some(causes);
    }

    /// Control packets have taken all the room that there is for them at `port`.
    #[cold]
    #[inline(never)]
    pub(crate) fn note_no_room_ahead(&mut self, port: u32, bytes: u64) {
        let Some(mut causes) = self.probes.causes.take() else { return };
        let flows = self.flows_at(&mut causes.crowd, port);
        let fill = Fill { port, queue: 0, bytes, flows, waiting: Waiting::Busy };
        self.note_room(&mut causes, Found::only(fill));
        self.probes.causes = Some(causes);
    }

    /// The NIC of a slow receiver, at `port`, is full.
    #[cold]
    #[inline(never)]
    pub(crate) fn note_full_receiver(&mut self, port: u32, bytes: u64) {
        if let Some(causes) = &mut self.probes.causes {
            causes.set_room(Found::only(Fill { port, queue: 0, bytes, flows: 0, waiting: Waiting::Receiver }));
        }
    }

    /// That has taken the room for a packet that is to be dropped.
    fn note_room(&self, causes: &mut Causes, found: Found) {
        let port = found.fill.port;
        let first = self.ports[port as usize].first_queue;
        for queue in self.switches.masks.all_filled(port) {
            causes.crowd.note_drop((first + queue) as usize, port, &self.switches.queues, &self.pool);
        }
        causes.set_room(found);
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
        let found = self.found(&mut causes, reason, Asked::Order);
        if let Reason::Account { port, class, second } = reason
            && found.as_ref().is_none_or(|found| found.fill.waiting != Waiting::Receiver)
        {
            let number = self.account_number(port, class, second);
            let bytes = self.switches.accounts[number].total();
            let watched = (bytes as u128) < BURST;
            let what = watched.then_some(Watched { place, subject, bytes });
            let quick =
                causes.watch(number, what, (self.quick, self.switches.data_passes, self.switches.answers_queue));
            (self.quick, self.switches.data_passes, self.switches.answers_queue) = quick;
        }
        let orders = causes.orders.entry((place, subject)).or_default();
        make_room(orders);
        orders.push(Order { time: self.time.now, reason, found, again: None });
        self.probes.causes = Some(causes);
    }

    /// A queue that its node has just held is so because of something at the node itself.
    #[cold]
    #[inline(never)]
    pub(crate) fn note_own(&mut self, port: u32, scope: Scope, because: Because) {
        let Some(mut causes) = self.probes.causes.take() else { return };
        let now = self.time.now;
        // It may have been held for long.
        let open = causes.last.get(&scope.at(port)).and_then(|last| last.place);
        let fresh = open.is_some_and(|place| causes.seen[place as usize].from == now);
        let reason = self.reason(port, because);
        let found = if fresh { self.found(&mut causes, reason, Asked::Order) } else { None };
        self.probes.causes = Some(causes);
        if fresh {
            let own = Some(Box::new((reason, found)));
            self.probes.name_stop(port, scope, now, |seen| seen.source = Source::Own(own));
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
            let order = Order { time: Time(time), reason: Reason::LastHop { port: 0 }, found: None, again: None };
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
        let mut causes = Causes::new(9, false);
        let heaps = [(300, 7), (200, 8)].map(|(bytes, port)| Heap { bytes, port, queue: 0 });
        let turns: Vec<usize> = (0..10).map(|_| causes.next_turn(&heaps)).collect();
        assert_eq!(turns, [0, 1, 0, 1, 0, 0, 1, 0, 1, 0]);
    }
}
