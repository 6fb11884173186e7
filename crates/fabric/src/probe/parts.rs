//! Where the time of each flow went, exactly.
//!
//! The *completing packet* of a flow is the one with which its receiver had all bytes. A flow's time to completion is its time at the
//! sender until that packet's transmission began, and the packet's time on its path. At the sender a flow is in one [state](Part) at
//! each instant, and time is charged to a state when it changes. On the path a packet carries a [`Trail`]: the ports it left by, when,
//! and how long it was stopped there. The rest follows from the links.
//!
//! Nothing here is an event, and all of it is a difference of instants at one node: neither the order of events within an instant nor
//! the number of threads can show.

use super::causes::Freed;
use crate::host::{BY_SCHEME, BY_TRANSPORT, IN_LINE, PerFlow, Sender};
use crate::id::FlowId;
use crate::packet::{Kind, Packet, PacketId, flag};
use crate::port::Port;
use crate::run::Core;
use crate::run::shard::Shard;
use crate::setup::Setup;
use engine::Time;
use std::collections::HashMap;

/// What a flow's time is spent on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Part {
    /// At the sender: an earlier message to the same host goes first.
    Line,
    /// At the sender: flow control holds the flow.
    Hold,
    /// At the sender: the transport waits for a grant.
    Grant,
    /// At the sender: the window is closed.
    Window,
    /// At the sender: all is sent and nothing was sent again after it. Only of flows that did not finish.
    Answer,
    /// At the sender: its class is paused at the NIC's port.
    Pause,
    /// At the sender: the link of the NIC's port is down.
    Down,
    /// At the sender: its rate lets it send later.
    Pacing,
    /// At the sender: it may send, and the NIC sends something else.
    Turn,
    /// At the sender: bytes are on the wire that were on it before, or all was sent and the sender found out that something is missing.
    Retransmission,
    /// Behind frames that a link repeats, or is to hear of before it takes more; or on a link that had to repeat it, or one before it: from its first
    /// arrival to the one that counted.
    Retry,
    /// A packet is being put on a link.
    Serialisation,
    /// Behind other packets in a queue.
    Queueing,
    /// In a queue that a neighbour has paused or the scheme holds.
    Stopped,
    /// On a link, and in the pipeline of the switch behind it.
    Propagation,
    /// In a forwarding host, before it is queued.
    Forwarding,
    /// In the NIC of a slow receiver.
    Receiver,
    /// Between a host and its NIC, at either end.
    Host,
}

impl Part {
    /// All of them, in order.
    pub const ALL: [Part; 18] = [
        Part::Line,
        Part::Hold,
        Part::Grant,
        Part::Window,
        Part::Answer,
        Part::Pause,
        Part::Down,
        Part::Pacing,
        Part::Turn,
        Part::Retransmission,
        Part::Retry,
        Part::Serialisation,
        Part::Queueing,
        Part::Stopped,
        Part::Propagation,
        Part::Forwarding,
        Part::Receiver,
        Part::Host,
    ];

    /// Its name in results.
    pub fn name(self) -> &'static str {
        match self {
            Part::Line => "line",
            Part::Hold => "hold",
            Part::Grant => "grant",
            Part::Window => "window",
            Part::Answer => "answer",
            Part::Pause => "pause",
            Part::Down => "down",
            Part::Pacing => "pacing",
            Part::Turn => "turn",
            Part::Retransmission => "retransmission",
            Part::Serialisation => "serialisation",
            Part::Queueing => "queueing",
            Part::Stopped => "stopped",
            Part::Propagation => "propagation",
            Part::Forwarding => "forwarding",
            Part::Receiver => "receiver",
            Part::Host => "host",
            Part::Retry => "retry",
        }
    }
}

/// How many parts there are at a sender: the first of [`Part::ALL`].
const AT_SENDER: usize = Part::Serialisation as usize + 1;

/// Time at the sender, by part.
type Spent = [u64; AT_SENDER];

/// Where time was spent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// At a node, by its number.
    Node(u32),
    /// At a port, by its number: in the node that it belongs to, or on its link.
    Port(u32),
}

/// Time that a flow spent on one thing in one place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// The flow.
    pub flow: FlowId,
    /// On what.
    pub part: Part,
    /// Whether the flow finished. If not, its spans are those of its sender, to the end of the run.
    pub finished: bool,
    /// Which link of the completing packet's path it is, counted from 0; `None` before that packet was sent, and after it arrived.
    pub hop: Option<u16>,
    /// Where.
    pub place: Place,
    /// How long; never zero.
    pub time: Time,
}

/// A port that a packet left by.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Step {
    /// When it was put on the link.
    start: Time,
    /// How long its queue was stopped while it waited there.
    stopped: u64,
    port: u32,
    /// How long the link took to repeat it.
    late: u64,
}

/// What a data packet carries of its history. Most packets have none: those of which something is kept have one of [`flag::NOTED`],
/// [`flag::FREED`] and [`flag::MOVED`].
#[derive(Debug, Default)]
pub(crate) struct Trail {
    /// How long it was stopped in all queues that it has left, and where it was last: of one that was freed.
    total: u64,
    start: Time,
    port: u32,
    queue: u32,
    /// How much longer it was stopped than its queue, of one that was moved. Wraps.
    moved: u64,
    /// Which way it came, of one that may complete its flow.
    way: Option<Box<Way>>,
}

/// The history of a packet that may complete its flow.
#[derive(Clone, Debug, Default)]
struct Way {
    steps: Vec<Step>,
    /// What its flow had spent at the sender when the packet was sent.
    spent: Spent,
}

impl Trail {
    /// What a packet was that has these flags, and what it is with trails that say so.
    pub(crate) const KEPT: u16 = flag::NOTED | flag::FREED | flag::MOVED;

    /// The packet leaves by a link, from that queue if it was in one; `whole`: it may complete its flow. Gives its flags, which were `flags`.
    fn push(&mut self, step: Step, queue: u32, whole: bool, flags: u16) -> u16 {
        if whole {
            self.way.get_or_insert_default().steps.push(step);
        }
        if step.stopped == 0 {
            return flags;
        }
        self.free(step.port, queue, step.start, step.stopped, flags);
        flags | flag::FREED
    }

    /// The packet, which has these flags, leaves a queue where it was stopped for so long.
    #[inline]
    fn free(&mut self, port: u32, queue: u32, now: Time, stopped: u64, flags: u16) {
        let before = if flags & flag::FREED != 0 { self.total } else { 0 };
        (self.total, self.start) = (before + stopped, now);
        (self.port, self.queue) = (port, queue);
    }

    /// How long it was stopped in all, of one that was.
    pub(super) fn stopped(&self) -> Time {
        Time(self.total)
    }

    /// The packet leaves by `port` so much later than `now`.
    fn delay(&mut self, port: u32, now: Time, lag: Time) {
        if (self.port, self.start) == (port, now) {
            self.start += lag;
        }
        let last = self.way.as_mut().and_then(|way| way.steps.last_mut());
        if let Some(step) = last.filter(|step| (step.port, step.start) == (port, now)) {
            step.start += lag;
        }
    }

    /// Where the packet was stopped last on its way, of one that was.
    pub(super) fn freed(&self) -> Freed {
        let &Trail { start, port, queue, .. } = self;
        Freed { port, queue, start }
    }
}

/// What a flow does at its sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// It may not send, for this reason.
    Waits(Part),
    /// It may send when it is due.
    Ready,
}

/// The time of a flow at its sender.
#[derive(Clone, Debug)]
struct Ledger {
    spent: Spent,
    /// Up to when time is charged; [`Time::MAX`] before the flow begins.
    since: Time,
    /// Until then a packet of its own is on the wire.
    sending: Time,
    /// Whether that packet's bytes were sent before.
    again: bool,
    /// The byte behind what was last sent again; [`u64::MAX`] if what was last sent was new.
    resumes: u64,
    state: State,
    due: Time,
    /// What keeps it from sending, if it is not its port.
    held: Option<Part>,
}

impl Ledger {
    const NEW: Ledger = Ledger {
        spent: [0; AT_SENDER],
        since: Time::MAX,
        sending: Time::ZERO,
        again: false,
        resumes: u64::MAX,
        state: State::Ready,
        due: Time::ZERO,
        // That of no flow, so that its beginning is a change.
        held: Some(Part::Host),
    };

    /// Whether nothing keeps it from sending but when it is due.
    #[inline]
    fn is_ready(&self) -> bool {
        self.held.is_none() && self.state == State::Ready
    }

    /// Charges the time up to `now`, at a NIC whose link repeated then, as it is in the place of its port.
    #[inline]
    fn charge(&mut self, now: Time, replays: &[Replays], port: usize) {
        let since = self.since;
        if since >= now {
            return;
        }
        // One packet right behind the other.
        if self.sending >= now {
            self.since = now;
            self.spent[self.own() as usize] += (now - since).0;
            return;
        }
        self.charge_wait(now, replays, port);
    }

    /// What its own packet on the wire is.
    #[inline]
    fn own(&self) -> Part {
        if self.again { Part::Retransmission } else { Part::Serialisation }
    }

    /// The same of time in which none of its packets was on the wire, or not all the while.
    #[inline(never)]
    fn charge_wait(&mut self, now: Time, replays: &[Replays], port: usize) {
        let (since, own) = (self.since, self.own());
        self.since = now;
        let sent = self.sending.max(since);
        self.spent[own as usize] += (sent - since).0;
        match self.state {
            State::Waits(part) => self.spent[part as usize] += (now - sent).0,
            State::Ready => {
                let due = self.due.max(sent).min(now);
                self.spent[Part::Pacing as usize] += (due - sent).0;
                let behind = replays.get(port).map_or(0, |replays| replays.within(due, now));
                self.spent[Part::Retry as usize] += behind;
                self.spent[Part::Turn as usize] += (now - due).0 - behind;
            }
        }
    }
}

/// When a queue was stopped: a clock that goes while it is.
#[derive(Clone, Debug, Default)]
struct Clock {
    /// Since when it has stood; [`Time::MAX`] while it goes. Who joined later was not stopped.
    stands: Time,
    /// When it was set going or stopped, what it showed, and whether it has gone since. What nobody in the queue has seen is forgotten.
    turns: Vec<Turn>,
    /// Two turns, one after the other, between which the last who asked had joined: packets leave in the order in which they joined, or nearly so.
    /// From the first on it showed so much, and went or stood.
    between: (Time, Time),
    from: Turn,
    /// What it shows while it stands.
    shown: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Turn {
    at: Time,
    shown: u64,
    goes: bool,
}

impl Turn {
    fn read(&self, at: Time) -> u64 {
        self.shown + if self.goes { at.saturating_sub(self.at).0 } else { 0 }
    }
}

impl Clock {
    /// What it shows.
    fn read(&self, now: Time) -> u64 {
        self.turns.last().map_or(0, |turn| turn.read(now))
    }

    /// How long it has gone since an instant.
    fn since(&mut self, then: Time, now: Time) -> u64 {
        if !self.knows(then) {
            let next = self.turns.partition_point(|turn| turn.at <= then);
            let from = match next.checked_sub(1) {
                Some(last) => self.turns[last],
                // Before all that is known it stood.
                None => Turn { at: Time::ZERO, shown: self.turns.first().map_or(0, |turn| turn.shown), goes: false },
            };
            let until = self.turns.get(next).map_or(Time::MAX, |turn| turn.at);
            (self.between, self.from) = ((from.at, until), from);
        }
        let shown = if self.stands == Time::MAX { self.read(now) } else { self.shown };
        shown - self.from.read(then)
    }

    /// Whether this is between the two turns.
    #[inline]
    fn knows(&self, then: Time) -> bool {
        self.between.0 <= then && then < self.between.1
    }

    /// Whether it goes from now on. Nobody is in the queue if it is `empty`.
    fn set(&mut self, now: Time, goes: bool, empty: bool) {
        if self.turns.last().is_some_and(|turn| turn.goes) == goes {
            return;
        }
        let shown = self.read(now);
        if empty {
            self.turns.clear();
        }
        self.turns.push(Turn { at: now, shown, goes });
        // There is a turn more, or there are others.
        self.between = Default::default();
        self.shown = shown;
        self.stands = if goes { Time::MAX } else { now };
    }
}

/// When the link of a port repeated frames, or took no new one before it had heard of some.
#[derive(Clone, Debug, Default)]
struct Replays(Vec<Replay>);

#[derive(Clone, Copy, Debug)]
struct Replay {
    from: Time,
    /// [`Time::MAX`] of the last, if it has not ended.
    until: Time,
    /// How long all before it were.
    before: u64,
}

impl Replays {
    /// It does from then on, until then.
    fn begin(&mut self, from: Time, until: Time) {
        match self.0.last_mut() {
            // It does so still.
            Some(last) if last.until >= from => last.until = until,
            last => {
                let before = last.map_or(0, |last| last.before + (last.until - last.from).0);
                self.0.push(Replay { from, until, before });
            }
        }
    }

    /// It does no longer, if it was not known until when it would.
    fn end(&mut self, now: Time) {
        if let Some(last) = self.0.last_mut().filter(|last| last.until == Time::MAX) {
            last.until = now;
            // It never did.
            if now <= last.from {
                self.0.pop();
            }
        }
    }

    /// For how long it did between two instants.
    fn within(&self, from: Time, until: Time) -> u64 {
        let by = |at: Time| {
            let known = self.0.partition_point(|replay| replay.from < at);
            let last = known.checked_sub(1).map(|last| self.0[last]);
            last.map_or(0, |last| last.before + (last.until.min(at) - last.from).0)
        };
        by(until).saturating_sub(by(from))
    }
}

/// From here on a flow sends again what follows a byte.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Repeat {
    pub(super) flow: FlowId,
    pub(super) at: Time,
    /// The byte.
    pub(super) byte: u64,
    /// What the flow had been at sending again before; when the run is over, how long it was because of this byte.
    pub(super) time: u64,
}

/// Where the time of each flow went, flow by flow, what was sent again, and what is wrong.
type Settled = (Option<Vec<Span>>, Vec<Repeat>, Vec<String>);

/// A completing packet that has arrived.
#[derive(Clone, Debug)]
struct Arrived {
    flow: u32,
    at: Time,
    size: u16,
    way: Box<Way>,
}

/// The time of all flows that have an end here.
pub(crate) struct Parts {
    ledgers: PerFlow<Ledger>,
    /// By queue of all ports.
    clocks: Vec<Clock>,
    arrived: Vec<Arrived>,
    repeats: Vec<Repeat>,
    /// By port; empty where no link has repeated.
    replays: Vec<Replays>,
    /// Whether any packet may complete its flow, and not only that with the last byte.
    any: bool,
    /// Whether something is kept of every packet: routes change.
    all: bool,
}

impl Parts {
    pub(crate) fn new(setup: &Setup, shard: &Option<Shard>) -> Parts {
        let ledgers = PerFlow::new(setup, shard, |flow| flow.src.0, |_| Ledger::NEW);
        let (clocks, arrived, repeats, replays) = Default::default();
        Parts { ledgers, clocks, arrived, repeats, replays, any: true, all: false }
    }

    /// Whether a packet may complete its flow. Of others nobody asks which way they came.
    fn completes(&self, packet: &Packet) -> bool {
        self.any || packet.flags & flag::LAST != 0
    }

    /// Receivers take packets in order only, so that the packet with the last byte completes a flow.
    pub(crate) fn last_completes(&mut self) {
        self.any = false;
    }

    /// Routes change, so that it is to be known by which links packets went.
    pub(crate) fn keep_all(&mut self) {
        self.all = true;
    }

    /// Takes over the flows of another shard.
    pub(crate) fn absorb(&mut self, mut other: Parts) {
        self.ledgers.absorb(&other.ledgers);
        self.arrived.append(&mut other.arrived);
        self.repeats.append(&mut other.repeats);
        if self.replays.is_empty() {
            self.replays = other.replays;
        } else {
            // A port belongs to one shard.
            let theirs = other.replays.into_iter().enumerate().filter(|(_, replays)| !replays.0.is_empty());
            theirs.for_each(|(port, replays)| self.replays[port] = replays);
        }
    }
}

/// What keeps a flow from sending, if it is not its port.
#[inline]
fn held(s: &Sender) -> Option<Part> {
    match () {
        () if s.eligible() => None,
        // Whatever else keeps it from sending, it has nothing to send.
        () if !s.backlogged() => Some(Part::Answer),
        () if s.held & IN_LINE != 0 => Some(Part::Line),
        () if s.held & BY_SCHEME != 0 => Some(Part::Hold),
        () if s.held & BY_TRANSPORT != 0 => Some(Part::Grant),
        () => Some(Part::Window),
    }
}

/// What a flow does that sends by a port.
#[inline]
fn state(held: Option<Part>, s: &Sender, p: &Port) -> State {
    match held {
        Some(part) => State::Waits(part),
        None if !p.up => State::Waits(Part::Down),
        None if p.paused >> s.class & 1 != 0 => State::Waits(Part::Pause),
        None => State::Ready,
    }
}

/// At the sender.
impl Core {
    /// What a flow does at its sender may have changed.
    #[cold]
    #[inline(never)]
    pub(crate) fn refresh_parts(&mut self, flow: u32) {
        let Some(parts) = &self.probes.parts else { return };
        let (s, ledger) = (&self.hosts.senders[flow as usize], &parts.ledgers[flow as usize]);
        // Mostly nothing has. What its port does is told by that.
        let same = ledger.due == s.due && (ledger.held.is_none() && s.eligible() || ledger.held == held(s));
        if !same {
            self.refresh_flow(flow);
        }
    }

    /// The same of a flow whose NIC, or what that does, may have changed.
    #[inline(never)]
    pub(crate) fn refresh_flow(&mut self, flow: u32) {
        let Some(parts) = &mut self.probes.parts else { return };
        let (s, now) = (&self.hosts.senders[flow as usize], self.time.now);
        let (port, parts) = (self.hosts.nics[s.nic as usize].port as usize, &mut **parts);
        let p = &self.ports[port];
        let ledger = &mut parts.ledgers[flow as usize];
        if ledger.since == Time::MAX {
            ledger.since = now;
        }
        ledger.charge(now, &parts.replays, port);
        ledger.held = held(s);
        (ledger.state, ledger.due) = (state(ledger.held, s, p), s.due);
    }

    /// A host's port was paused or resumed, or its link failed or came back.
    pub(crate) fn refresh_nic(&mut self, port: u32) {
        if self.probes.parts.is_none() || !self.ports[port as usize].host {
            return;
        }
        let nic = self.ports[port as usize].nic as usize;
        for place in 0..self.hosts.nics[nic].flows.len() {
            self.refresh_flow(self.hosts.nics[nic].flows[place]);
        }
    }

    /// Whether a packet that is sent for the first time is more than the next of many.
    #[inline]
    pub(crate) fn stands_out(&self, packet: &Packet) -> bool {
        self.probes.parts.as_ref().is_some_and(|parts| parts.all || parts.completes(packet))
    }

    /// A flow sends a packet now that is more than the next of many.
    #[cold]
    #[inline(never)]
    pub(crate) fn depart(&mut self, flow: u32, id: PacketId, again: bool) {
        let Some(parts) = self.probes.parts.as_deref_mut() else { return };
        let (packet, now) = (&mut self.pool[id], self.time.now);
        let whole = parts.completes(packet);
        let noted = whole || parts.all;
        let ledger = &mut parts.ledgers[flow as usize];
        let port = self.hosts.nics[self.hosts.senders[flow as usize].nic as usize].port;
        let sent = now + self.wire.time(self.ports[port as usize].table, packet.size);
        let payload = packet.size.saturating_sub(self.setup.nic.header) as u64;
        // One packet sent again right behind the other is one transmission.
        let next = ledger.again && ledger.sending == now && ledger.resumes == packet.seq;
        if again && next && !noted && ledger.spent[Part::Answer as usize] == 0 {
            (ledger.resumes, ledger.sending) = (packet.seq + payload, sent);
            return;
        }
        if noted {
            packet.flags |= flag::NOTED;
        }
        ledger.charge(now, &parts.replays, port as usize);
        if again {
            if ledger.resumes != packet.seq {
                let time = ledger.spent[Part::Retransmission as usize];
                parts.repeats.push(Repeat { flow: FlowId(flow), at: now, byte: packet.seq, time });
            }
            let waited = std::mem::take(&mut ledger.spent[Part::Answer as usize]);
            ledger.spent[Part::Retransmission as usize] += waited;
            ledger.resumes = packet.seq + payload;
        } else {
            ledger.resumes = u64::MAX;
        }
        (ledger.sending, ledger.again) = (sent, again);
        if let Some(trail) = self.pool.trail(id).filter(|_| whole) {
            let way = trail.way.get_or_insert_default();
            way.steps.clear();
            way.steps.push(Step { start: now, stopped: 0, port, late: 0 });
            way.spent = ledger.spent;
        }
        if !self.progress.changes.is_empty() {
            self.note_path(port, id);
        }
    }

    /// A flow has just sent a packet by `port`, and waits as its rate has it.
    #[cold]
    #[inline(never)]
    pub(crate) fn refresh_sent(&mut self, flow: u32, port: u32) {
        let Some(parts) = &mut self.probes.parts else { return };
        let (s, p) = (&self.hosts.senders[flow as usize], &self.ports[port as usize]);
        let ledger = &mut parts.ledgers[flow as usize];
        // One packet right behind the other is one transmission. What is more than the next of many was told when it departed.
        let next = ledger.sending == self.time.now && !ledger.again;
        if (next || ledger.sending == p.free_at)
            && ledger.is_ready()
            && s.eligible()
            && p.up
            && p.paused >> s.class & 1 == 0
        {
            (ledger.sending, ledger.due) = (p.free_at, s.due);
            return;
        }
        if ledger.sending != p.free_at {
            return self.refresh_gap(flow, port);
        }
        ledger.held = held(s);
        (ledger.state, ledger.due) = (state(ledger.held, s, p), s.due);
    }

    /// The same of one that is not the next of many, and was not told when it departed.
    #[inline(never)]
    fn refresh_gap(&mut self, flow: u32, port: u32) {
        let Some(parts) = &mut self.probes.parts else { return };
        let (s, p) = (&self.hosts.senders[flow as usize], &self.ports[port as usize]);
        let ledger = &mut parts.ledgers[flow as usize];
        ledger.charge(self.time.now, &parts.replays, port as usize);
        (ledger.sending, ledger.again, ledger.resumes) = (p.free_at, false, u64::MAX);
        ledger.held = held(s);
        (ledger.state, ledger.due) = (state(ledger.held, s, p), s.due);
    }
}

/// On the path.
impl Core {
    /// A packet of which something is kept, or was stopped, is about to be put on the link of `port`.
    #[cold]
    #[inline(never)]
    pub(crate) fn trace(&mut self, port: u32, queue: u32, id: PacketId, stopped: u64) {
        let Some(parts) = &self.probes.parts else { return };
        let (packet, start) = (&self.pool[id], self.time.now);
        if packet.kind != Kind::Data {
            return;
        }
        let (flags, whole) = (packet.flags, packet.flags & flag::NOTED != 0 && parts.completes(packet));
        if let Some(trail) = self.pool.trail(id) {
            let flags = trail.push(Step { start, stopped, port, late: 0 }, queue, whole, flags);
            self.pool[id].flags = flags;
        }
        if !self.progress.changes.is_empty() {
            self.note_path(port, id);
        }
    }

    /// A packet that left by `port` was repeated by its link, which took so long.
    pub(crate) fn trace_late(&mut self, port: u32, id: PacketId, late: Time) {
        if self.pool[id].flags & Trail::KEPT != 0
            && let Some(trail) = self.pool.trail(id)
            && let Some(step) = trail.way.as_mut().and_then(|way| way.steps.last_mut())
            && step.port == port
        {
            step.late += late.0;
        }
    }

    /// The link of `port` sends a frame again.
    pub(crate) fn note_replay(&mut self, port: u32) {
        let (now, end) = (self.time.now, self.ports[port as usize].free_at);
        if let Some(replays) = self.replays_of(port) {
            replays.begin(now, end);
        }
    }

    /// The link of `port` takes new frames, or takes none once what it sends has left.
    pub(crate) fn note_open(&mut self, port: u32, open: bool) {
        let (now, end) = (self.time.now, self.ports[port as usize].free_at);
        match self.replays_of(port) {
            Some(replays) if open => replays.end(now),
            Some(replays) => replays.begin(end.max(now), Time::MAX),
            None => {}
        }
    }

    fn replays_of(&mut self, port: u32) -> Option<&mut Replays> {
        let parts = self.probes.parts.as_deref_mut()?;
        if parts.replays.is_empty() {
            parts.replays.resize(self.ports.len(), Replays::default());
        }
        parts.replays.get_mut(port as usize)
    }

    /// The same of one that was in no queue.
    #[inline]
    pub(crate) fn trace_noted(&mut self, port: u32, id: PacketId) {
        if self.pool[id].flags & flag::NOTED != 0 {
            self.trace(port, 0, id, 0);
        }
    }

    /// The link of `port` is still taken for a while before it takes a packet.
    #[cold]
    #[inline(never)]
    pub(crate) fn delay_trail(&mut self, port: u32, id: PacketId, lag: Time) {
        let now = self.time.now;
        if self.pool[id].flags & Trail::KEPT != 0
            && let Some(trail) = self.pool.trail(id)
        {
            trail.delay(port, now, lag);
        }
    }

    /// A packet, of the second of two groups or not, leaves its queue for the link. What is rare comes last and in functions of its own: so this one
    /// has little to save.
    #[cold]
    #[inline(never)]
    pub(crate) fn mark_leaving(&mut self, port: u32, queue: u32, id: PacketId, second: bool) {
        let Some(parts) = &self.probes.parts else { return };
        let slot = (self.ports[port as usize].first_queue + queue) as usize;
        let packet = &mut self.pool[id];
        let (flags, joined) = (packet.flags, packet.next_arrival);
        if let Some(clock) = parts.clocks.get(slot).filter(|clock| clock.stands > joined) {
            let plain = flags & (flag::NOTED | flag::MOVED) == 0 && packet.kind == Kind::Data;
            if !plain || !clock.knows(joined) || clock.stands == Time::MAX {
                return self.leave_somehow(port, queue, id, second);
            }
            let stopped = clock.shown - clock.from.read(joined);
            if stopped > 0 {
                packet.flags = flags | flag::FREED;
                if let Some(trail) = self.pool.trail(id) {
                    trail.free(port, queue, self.time.now, stopped, flags);
                }
            }
        } else if flags & flag::NOTED != 0 {
            return self.leave_noted(port, queue, id, second);
        }
        self.note_leaving(port, id, second);
    }

    /// The same of one of which something is kept, and that was not stopped there.
    #[inline(never)]
    fn leave_noted(&mut self, port: u32, queue: u32, id: PacketId, second: bool) {
        let plain = self.progress.changes.is_empty() && self.pool[id].kind == Kind::Data;
        if plain && self.probes.parts.as_ref().is_some_and(|parts| parts.completes(&self.pool[id])) {
            let step = Step { start: self.time.now, stopped: 0, port, late: 0 };
            if let Some(trail) = self.pool.trail(id) {
                trail.way.get_or_insert_default().steps.push(step);
            }
        } else {
            self.trace(port, queue, id, 0);
        }
        self.note_leaving(port, id, second);
    }

    /// The same of any packet that may have been stopped.
    #[inline(never)]
    fn leave_somehow(&mut self, port: u32, queue: u32, id: PacketId, second: bool) {
        let slot = (self.ports[port as usize].first_queue + queue) as usize;
        let Some(clock) = self.probes.parts.as_mut().and_then(|parts| parts.clocks.get_mut(slot)) else { return };
        let packet = &mut self.pool[id];
        let mut stopped = clock.since(packet.next_arrival, self.time.now);
        if packet.flags & flag::MOVED != 0 {
            packet.flags &= !flag::MOVED;
            stopped = stopped.wrapping_add(self.pool.trail(id).map_or(0, |trail| trail.moved));
        }
        if stopped > 0 || self.pool[id].flags & flag::NOTED != 0 {
            self.trace(port, queue, id, stopped);
        }
        self.note_leaving(port, id, second);
    }

    /// A packet is moved from one queue to another: it keeps what it has waited.
    pub(crate) fn mark_moving(&mut self, from: usize, to: usize, id: PacketId) {
        let Some(parts) = self.probes.parts.as_mut().filter(|_| from != to) else { return };
        let (joined, now) = (self.pool[id].next_arrival, self.time.now);
        if parts.clocks.len() <= from.max(to) {
            parts.clocks.resize(self.switches.queues.len(), Clock::default());
        }
        let mut stopped = |slot: usize| parts.clocks[slot].since(joined, now);
        let more = stopped(from).wrapping_sub(stopped(to));
        let to = &mut parts.clocks[to];
        to.stands = to.stands.max(now);
        let before = self.pool[id].flags & flag::MOVED != 0;
        self.pool[id].flags |= flag::MOVED;
        if let Some(trail) = self.pool.trail(id) {
            trail.moved = if before { trail.moved } else { 0 }.wrapping_add(more);
        }
    }

    /// A queue of a port may have been stopped or let go.
    pub(crate) fn refresh_queue(&mut self, port: u32, queue: u32) {
        let Some(parts) = &mut self.probes.parts else { return };
        let masks = &self.switches.masks;
        let stopped = masks.is_paused(port, queue) || masks.is_held(port, queue);
        let slot = (self.ports[port as usize].first_queue + queue) as usize;
        if parts.clocks.len() <= slot {
            parts.clocks.resize(self.switches.queues.len(), Clock::default());
        }
        parts.clocks[slot].set(self.time.now, stopped, self.switches.queues[slot].bytes == 0);
    }

    /// The receiver of a flow has all of it with this packet.
    #[cold]
    #[inline(never)]
    pub(crate) fn complete_parts(&mut self, flow: u32, id: PacketId) {
        let Some(parts) = &mut self.probes.parts else { return };
        let packet = &self.pool[id];
        let (at, size, whole) = (self.time.now, packet.size, parts.completes(packet));
        if let Some(way) = self.pool.trail(id).filter(|_| whole).and_then(|trail| trail.way.take()) {
            parts.arrived.push(Arrived { flow, at, size, way });
        }
    }
}

/// At the end.
impl Core {
    /// Adds up the time of each flow.
    pub(crate) fn settle_parts(&mut self) -> Settled {
        let Some(mut parts) = self.probes.parts.take() else { return Settled::default() };
        let mut repeats = std::mem::take(&mut parts.repeats);
        repeats.sort_by_key(|repeat| (repeat.flow, repeat.at));
        // Of several for a flow the last counts, as it does for the time that the receiver noted.
        parts.arrived.sort_by_key(|arrived| (arrived.flow, arrived.at));
        let mut spans = Vec::new();
        let (mut wrong, mut first) = (0u64, None);
        let bus = self.setup.nic.bus;
        let in_host = |spans: &mut Vec<Span>, flow: usize, node: u32, time: Time, finished: bool| {
            let (flow, place) = (FlowId(flow as u32), Place::Node(node));
            add(spans, Span { flow, part: Part::Host, finished, hop: None, place, time });
        };
        for (flow, spec) in self.setup.flows.iter().enumerate() {
            let (start, received) = (self.hosts.waiting.begun(flow, spec.start), self.hosts.receivers[flow].finished);
            if received != Time::MAX || parts.ledgers[flow].since != Time::MAX {
                in_host(&mut spans, flow, spec.src.0, bus.send, received != Time::MAX);
            }
            let begin = spans.len();
            let end = if received != Time::MAX {
                let place = parts.arrived.partition_point(|arrived| arrived.flow as usize <= flow);
                let arrived = place.checked_sub(1).map(|last| &parts.arrived[last]);
                match arrived.filter(|arrived| arrived.flow as usize == flow) {
                    Some(arrived) => {
                        let broken = self.follow_trail(&mut spans, arrived, &parts.replays);
                        wrong += broken.is_some() as u64;
                        first = first.or(broken);
                    }
                    None => {
                        wrong += 1;
                        first = first.or_else(|| Some(format!("flow {flow} ended without a packet that completes it")));
                    }
                }
                received
            } else {
                let ledger = &mut parts.ledgers[flow];
                if ledger.since == Time::MAX {
                    continue;
                }
                let nic = self.hosts.senders[flow].nic as usize;
                ledger.charge(self.time.now, &parts.replays, self.hosts.nics[nic].port as usize);
                at_sender(&mut spans, FlowId(flow as u32), spec.src.0, &ledger.spent, false);
                self.time.now
            };
            let (sum, whole) = (spans[begin..].iter().map(|span| span.time.0).sum::<u64>(), end.saturating_sub(start));
            if sum != whole.0 {
                wrong += 1;
                let text = || format!("the parts of flow {flow} add up to {}, and it took {whole}", Time(sum));
                first = first.or_else(|| Some(text()));
            }
            if received != Time::MAX {
                in_host(&mut spans, flow, spec.dst.0, bus.receive, true);
            }
        }
        share_out(&mut repeats, &spans);
        let wrong = first.map(|first| match wrong {
            1 => first,
            many => format!("{first}; {} more like it", many - 1),
        });
        (Some(spans), repeats, wrong.into_iter().collect())
    }

    /// Adds the spans of a flow that finished. Gives what is wrong with them.
    fn follow_trail(&self, spans: &mut Vec<Span>, arrived: &Arrived, replays: &[Replays]) -> Option<String> {
        let &Arrived { flow, at, size, ref way } = arrived;
        let spec = &self.setup.flows[flow as usize];
        let number = FlowId(flow);
        at_sender(spans, number, spec.src.0, &way.spent, true);
        // Where the packet is, and since when.
        let (mut node, mut since) = (spec.src.0, None);
        let mut broken = None;
        for (hop, step) in (0u16..).zip(&way.steps) {
            let p = &self.ports[step.port as usize];
            let mut add = |part: Part, time: u64| {
                add(
                    spans,
                    Span {
                        flow: number,
                        part,
                        finished: true,
                        hop: Some(hop),
                        place: Place::Port(step.port),
                        time: Time(time),
                    },
                )
            };
            let ready = since.map_or(step.start, |since| {
                let delay = if p.host { self.setup.forward.delay } else { Time::ZERO };
                add(Part::Forwarding, delay.0);
                since + delay
            });
            let waited = step.start.0.checked_sub(ready.0).and_then(|waited| waited.checked_sub(step.stopped));
            if p.node != node || waited.is_none() {
                let name = &self.setup.graph.nodes[p.node as usize].name;
                broken = Some(format!("the path of flow {flow} does not fit together at {name}, hop {hop}"));
            }
            let serialisation = self.wire.time(p.table, size);
            let waited = waited.unwrap_or(0);
            let behind = replays.get(step.port as usize).map_or(0, |replays| replays.within(ready, step.start));
            // It may have been stopped meanwhile.
            let behind = behind.min(waited);
            add(Part::Stopped, step.stopped);
            add(Part::Queueing, waited - behind);
            add(Part::Serialisation, serialisation.0);
            add(Part::Propagation, p.latency.0);
            add(Part::Retry, behind + step.late);
            node = self.ports[p.peer as usize].node;
            since = Some(step.start + serialisation + p.latency + Time(step.late));
        }
        let waited = since.and_then(|since| at.0.checked_sub(since.0)).map(Time);
        if node != spec.dst.0 || waited.is_none_or(|waited| waited > Time::ZERO && self.hosts.slow.is_empty()) {
            broken = broken.or_else(|| Some(format!("the path of flow {flow} does not end where the flow does")));
        }
        let place = Place::Node(spec.dst.0);
        let time = waited.unwrap_or_default();
        add(spans, Span { flow: number, part: Part::Receiver, finished: true, hop: None, place, time });
        broken
    }
}

/// Gives each time that a flow went back its share of the time that the flow was at sending again: what came before the next.
fn share_out(repeats: &mut [Repeat], spans: &[Span]) {
    if repeats.is_empty() {
        return;
    }
    let again = spans.iter().filter(|span| span.part == Part::Retransmission).map(|span| (span.flow, span.time.0));
    let totals: HashMap<FlowId, u64> = again.collect();
    for own in repeats.chunk_by_mut(|a, b| a.flow == b.flow) {
        let mut end = totals.get(&own[0].flow).copied().unwrap_or(0);
        // What was sent again after the packet that completed the flow cost it nothing.
        for repeat in own.iter_mut().rev() {
            let begin = repeat.time.min(end);
            (repeat.time, end) = (end - begin, begin);
        }
    }
}

fn add(spans: &mut Vec<Span>, span: Span) {
    if span.time > Time::ZERO {
        spans.push(span);
    }
}

/// Adds what a flow spent at its sender.
fn at_sender(spans: &mut Vec<Span>, flow: FlowId, src: u32, spent: &Spent, finished: bool) {
    for (part, &time) in Part::ALL.into_iter().zip(spent) {
        add(spans, Span { flow, part, finished, hop: None, place: Place::Node(src), time: Time(time) });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn spent(ledger: &Ledger) -> Vec<(Part, u64)> {
        Part::ALL.into_iter().zip(ledger.spent).filter(|(_, time)| *time > 0).collect()
    }

    #[test]
    fn a_flow_is_on_the_wire_then_paced_then_waits_its_turn() {
        let mut ledger = Ledger { since: Time(100), sending: Time(130), due: Time(150), ..Ledger::NEW };
        ledger.charge(Time(190), &[], 0);
        assert_eq!(spent(&ledger), [(Part::Pacing, 20), (Part::Turn, 40), (Part::Serialisation, 30)]);
        ledger.state = State::Waits(Part::Window);
        ledger.charge(Time(200), &[], 0);
        assert_eq!(ledger.spent[Part::Window as usize], 10);
    }

    #[test]
    fn a_flow_that_is_due_before_its_packet_has_left_waits_its_turn_after_it() {
        let mut ledger = Ledger { since: Time(0), sending: Time(50), again: true, due: Time(20), ..Ledger::NEW };
        ledger.charge(Time(60), &[], 0);
        assert_eq!(spent(&ledger), [(Part::Turn, 10), (Part::Retransmission, 50)]);
    }

    #[test]
    fn a_flow_that_is_due_waits_behind_what_its_link_repeats() {
        let mut replays = Replays::default();
        // A frame, and the next right behind it; then nothing new until something is heard.
        [(10, 30), (30, 50)].into_iter().for_each(|(from, until)| replays.begin(Time(from), Time(until)));
        replays.begin(Time(70), Time::MAX);
        assert_eq!(replays.within(Time(0), Time(80)), 50);
        replays.end(Time(90));
        replays.end(Time(95));
        for (from, until, expected) in [(0, 10, 0), (0, 20, 10), (40, 75, 15), (60, 200, 20), (95, 96, 0), (20, 20, 0)]
        {
            assert_eq!(replays.within(Time(from), Time(until)), expected, "{from} {until}");
        }
        assert_eq!(replays.0.len(), 2);
        let mut ledger = Ledger { since: Time(0), due: Time(20), ..Ledger::NEW };
        ledger.charge(Time(100), &[Replays::default(), replays], 1);
        assert_eq!(spent(&ledger), [(Part::Pacing, 20), (Part::Turn, 30), (Part::Retry, 50)]);
    }

    #[test]
    fn a_flow_that_has_not_begun_spends_nothing() {
        let mut ledger = Ledger::NEW;
        ledger.charge(Time(60), &[], 0);
        assert_eq!(spent(&ledger), []);
    }

    #[test]
    fn a_packet_knows_where_it_was_stopped_last_and_one_that_may_complete_its_flow_the_way_that_it_came() {
        let step = |port: u32| Step { start: Time(port as u64), stopped: port as u64 % 2, port, late: 0 };
        for whole in [true, false] {
            // What another packet has left behind does not count.
            let mut trail = Trail { total: 99, ..Trail::default() };
            let mut flags = 0;
            for port in 0..20 {
                flags = trail.push(step(port), 3, whole, flags);
                let freed = trail.freed();
                let freed = (freed.port, freed.queue, freed.start, trail.stopped());
                let odd = port.div_ceil(2) * 2;
                let last = odd.checked_sub(1).map(|last| (last, 3, Time(last as u64), Time(odd as u64 / 2)));
                assert_eq!((flags & flag::FREED != 0).then_some(freed), last);
            }
            let way = trail.way.map(|way| way.steps).unwrap_or_default();
            assert!(way.into_iter().eq((0..if whole { 20 } else { 0 }).map(step)));
        }
    }

    #[test]
    fn a_clock_goes_while_its_queue_is_stopped() {
        let mut clock = Clock::default();
        for (now, goes, shows) in [(10, true, 0), (25, true, 15), (30, false, 20), (40, false, 20), (50, true, 20)] {
            clock.set(Time(now), goes, false);
            assert_eq!(clock.read(Time(now)), shows);
        }
        assert_eq!(clock.read(Time(57)), 27);
        // In whatever order.
        for thens in [[5, 10, 12, 30, 35, 50, 57], [57, 50, 35, 30, 12, 10, 5], [30, 5, 57, 12, 50, 10, 35]] {
            let expected = thens.map(|then: u64| match then {
                50.. => 57 - then,
                30.. => 7,
                10.. => 37 - then,
                _ => 27,
            });
            assert_eq!(thens.map(|then| clock.since(Time(then), Time(57))), expected);
        }
        // Who joins later need not know.
        clock.set(Time(60), false, true);
        assert_eq!((clock.turns.len(), clock.stands, clock.since(Time(60), Time(80))), (1, Time(60), 0));
        clock.set(Time(90), true, false);
        assert_eq!((clock.stands, clock.since(Time(70), Time(95))), (Time::MAX, 5));
    }

    proptest! {
        /// However often it is looked at, and whatever it does meanwhile.
        #[test]
        fn the_time_of_a_flow_is_charged_once(
            looks in prop::collection::vec((0u64..100, 0usize..9, 0u64..300, 0u64..300, any::<bool>()), 1..20),
        ) {
            let mut ledger = Ledger { since: Time(7), ..Ledger::NEW };
            let mut now = 7;
            for (wait, state, due, sending, again) in looks {
                now += wait;
                ledger.charge(Time(now), &[], 0);
                prop_assert_eq!(ledger.spent.iter().sum::<u64>(), now - 7);
                ledger.state = if state == 8 { State::Ready } else { State::Waits(Part::ALL[state]) };
                (ledger.due, ledger.sending, ledger.again) = (Time(now + due), Time(now + sending), again);
            }
        }
    }
}
