//! ConWeave (Song et al., SIGCOMM 2023) as its authors' simulator does it.
//!
//! Their words differ from the paper's: a packet in *phase* 1 is REROUTED, INIT asks for RTT_REPLY, the answer to TAIL is CLEAR. Every packet at
//! its first switch draws three paths, whether it needs one or not; queues are let go by timers alone, by TAIL a nanosecond later;
//! flows that were silent for two milliseconds are forgotten, by each switch when it sweeps.

use super::{Balancing, Ticks, follow};
use engine::Time;
use fabric::axes::Counter;
use fabric::axes::load_balancing::{Crossroads, Label, Labeller, Orders, Pass};
use fabric::id::{FlowId, NodeId};
use fabric::packet::{Kind, flag};
use std::collections::{BTreeMap, HashMap};

/// `CONWEAVE_…`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    /// `CONWEAVE_REPLY_TIMEOUT_EXTRA`.
    pub reply: Time,
    /// `CONWEAVE_PATH_PAUSE_TIME`.
    pub avoid: Time,
    /// `CONWEAVE_TX_EXPIRY_TIME`.
    pub silence: Time,
    /// `CONWEAVE_EXTRA_VOQ_FLUSH_TIME`.
    pub margin: Time,
    /// `CONWEAVE_DEFAULT_VOQ_WAITING_TIME`.
    pub wait: Time,
}

impl Default for Timing {
    fn default() -> Timing {
        let us = Time::from_us;
        Timing { reply: us(4), avoid: us(8), silence: us(1000), margin: us(32), wait: us(500) }
    }
}

/// How often tables are swept of flows that were silent for so long.
const SWEEP: Time = Time::from_ms(2);
/// Places of the table of paths to avoid.
const PLACES: u32 = 65_536;
/// How long a queue waits after TAIL.
const AT_ONCE: Time = Time::from_ns(1);

/// What a packet asks of the last switch.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Ask {
    Nothing,
    Init,
    Tail,
}

/// What a packet carries.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Tag {
    path: u32,
    hops: u32,
    epoch: u32,
    rerouted: bool,
    ask: Ask,
    sent: Time,
    tail: Time,
}

impl Tag {
    fn read(&[where_to, epoch, sent, tail]: &Label) -> Tag {
        Tag {
            path: where_to as u32,
            hops: (where_to >> 32) as u32,
            epoch: epoch as u32,
            rerouted: epoch >> 32 & 1 == 1,
            ask: match epoch >> 33 {
                0 => Ask::Nothing,
                1 => Ask::Init,
                _ => Ask::Tail,
            },
            sent: Time(sent),
            tail: Time(tail),
        }
    }

    fn label(&self) -> Label {
        let epoch = self.epoch as u64 | (self.rerouted as u64) << 32 | (self.ask as u64) << 33;
        [self.path as u64 | (self.hops as u64) << 32, epoch, self.sent.0, self.tail.0]
    }
}

/// What the last switch says to the first; the word is an epoch, or a path.
const REPLY: u16 = 0;
const CLEAR: u16 = 1;
const NOTIFY: u16 = 2;

/// A flow at its first switch.
#[derive(Clone, Copy)]
struct Sending {
    path: u32,
    epoch: u32,
    rerouted: bool,
    /// The next packet begins an epoch.
    settled: bool,
    active: Time,
    /// When a reply is late; [`Time::MAX`] for never.
    deadline: Time,
    tail: Time,
}

/// A flow at its last switch.
#[derive(Clone, Copy)]
struct Receiving {
    epoch: u32,
    rerouted: bool,
    active: Time,
    /// Of the last packet on the old path: when it was sent, and came; and whether there was one in this epoch.
    old: (Time, Time),
    old_known: bool,
    tail: Time,
    /// Packets wait for the TAIL, until the timer with that number lets them go.
    waiting: Option<u64>,
}

#[derive(Default)]
struct Counts {
    replies: u64,
    timely: u64,
    clears: u64,
    timely_clears: u64,
    notifies: u64,
    reroutes: u64,
    reordered: u64,
    flushes: u64,
    by_tail: u64,
}

pub(super) struct ConWeave {
    all: Balancing,
    sweeps: Ticks,
    sending: HashMap<FlowId, Sending>,
    receiving: HashMap<FlowId, Receiving>,
    /// By place: a path, and until when it is avoided. Paths that share a place drive each other out.
    avoided: HashMap<u32, (u32, Time)>,
    /// Timers under way, by when and in which order they were set.
    timers: BTreeMap<(Time, u64), FlowId>,
    set: u64,
    counts: Counts,
}

/// The place of a path in a switch's table: MurmurHash3 (x86, 32 bit) of its four bytes.
fn place(path: u32, switch: NodeId) -> u32 {
    let k = path.wrapping_mul(0xcc9e_2d51).rotate_left(15).wrapping_mul(0x1b87_3593);
    let mut h = (switch.0 ^ k).rotate_left(13).wrapping_mul(5).wrapping_add(0xe654_6b64) ^ 4;
    h = (h ^ (h >> 16)).wrapping_mul(0x85eb_ca6b);
    h = (h ^ (h >> 13)).wrapping_mul(0xc2b2_ae35);
    (h ^ (h >> 16)) % PLACES
}

impl ConWeave {
    pub(super) fn new(all: &Balancing) -> ConWeave {
        ConWeave {
            all: all.clone(),
            sweeps: Ticks::new(SWEEP),
            sending: HashMap::new(),
            receiving: HashMap::new(),
            avoided: HashMap::new(),
            timers: BTreeMap::new(),
            set: 0,
            counts: Counts::default(),
        }
    }

    /// A path to a leaf, and whether it is a good one.
    fn draw(&self, at: &Crossroads<'_>, last: NodeId) -> (u32, bool) {
        let paths = self.all.paths.between(at.node(), last);
        // The first of three is not used.
        let [_, one, other] = [(); 3].map(|()| paths[self.all.dice.below(paths.len())]);
        let good = |path: u32| {
            let avoided = self.avoided.get(&place(path, at.node()));
            !avoided.is_some_and(|&(which, until)| which == path && until > at.now)
        };
        match good(one) {
            false if good(other) => (other, true),
            found => (one, found),
        }
    }

    /// What a packet carries from its first switch on.
    fn send(&mut self, at: &Crossroads<'_>, last: NodeId) -> Tag {
        let (flow, now) = (FlowId(at.packet.flow), at.now);
        let (drawn, good) = self.draw(at, last);
        let known = self.sending.get(&flow).filter(|s| !self.sweeps.swept(now, s.active)).copied();
        let new = known.is_none();
        let blank = Sending {
            path: drawn,
            epoch: 0,
            rerouted: false,
            settled: true,
            active: Time::ZERO,
            deadline: Time::ZERO,
            tail: Time::ZERO,
        };
        let mut s = known.unwrap_or(blank);
        let expired = s.active + self.all.timing.silence < now;
        let begins = expired || s.settled;
        let late = !begins && s.deadline < now;
        (s.settled, s.active) = (false, now);
        let mut tag =
            Tag { path: s.path, hops: 0, epoch: 0, rerouted: s.rerouted, ask: Ask::Nothing, sent: now, tail: s.tail };
        if begins {
            s.deadline = now + self.all.paths.round_trip(at.node(), last) + self.all.timing.reply;
            s.epoch += 1;
            (s.rerouted, s.tail) = (false, Time::ZERO);
            (tag.rerouted, tag.tail, tag.ask) = (false, Time::ZERO, Ask::Init);
        } else if late {
            // This one still goes by the old path.
            (s.deadline, s.rerouted, s.tail) = (Time::MAX, true, now);
            (tag.rerouted, tag.tail, tag.ask) = (false, now, Ask::Tail);
        }
        if good && (expired || late) {
            self.counts.reroutes += !new as u64;
            s.path = drawn;
        }
        if expired {
            tag.path = s.path;
        }
        tag.epoch = s.epoch;
        self.sending.insert(flow, s);
        tag
    }

    /// Lets a flow's queue go at an instant, and not when it was to be.
    fn plan(&mut self, flow: FlowId, due: Time, orders: &mut Orders<'_>) -> u64 {
        self.set += 1;
        self.timers.insert((due, self.set), flow);
        orders.set_timer(due);
        self.set
    }

    /// A packet has come to its last switch.
    fn receive(&mut self, at: &Crossroads<'_>, tag: &Tag, orders: &mut Orders<'_>) -> Pass {
        let (flow, now, timing) = (FlowId(at.packet.flow), at.now, self.all.timing);
        let tail = tag.ask == Ask::Tail;
        let known = self.receiving.get(&flow).filter(|r| !self.sweeps.swept(now, r.active)).copied();
        let blank = Receiving {
            epoch: 1,
            rerouted: false,
            active: now,
            old: (Time::ZERO, Time::ZERO),
            old_known: false,
            tail: Time::ZERO,
            waiting: None,
        };
        let mut r = known.unwrap_or(blank);
        r.active = now;
        if tag.epoch < r.epoch {
            self.receiving.insert(flow, r);
            return Pass::By(0);
        }
        if !tag.rerouted {
            r.old = (tag.sent, now);
        }
        let early;
        if tag.epoch > r.epoch {
            (r.epoch, r.rerouted, r.old_known) = (tag.epoch, tail, !tag.rerouted);
            early = tag.rerouted && !r.rerouted;
        } else {
            early = !tail && tag.rerouted && !r.rerouted;
            r.rerouted |= tail && r.waiting.is_none();
            r.old_known |= !tag.rerouted;
        }
        if tail || tag.rerouted {
            r.tail = tag.tail;
        }
        // The last packet of the old path comes as long after the last that did as it was sent after that one.
        let gap = if r.old_known { r.tail.saturating_sub(r.old.0) } else { timing.wait };
        if !tag.rerouted && r.waiting.is_some() {
            self.counts.by_tail += tail as u64;
            let due = if tail { now + AT_ONCE } else { now + gap + timing.margin };
            r.waiting = Some(self.plan(flow, due, orders));
        } else if early && r.waiting.is_none() {
            let since = if r.old_known { r.old.1 } else { now };
            let due = now.max(since + gap + timing.margin);
            r.waiting = Some(self.plan(flow, due, orders));
        }
        self.receiving.insert(flow, r);
        if at.packet.flags & flag::MARKED != 0 {
            self.counts.notifies += 1;
            orders.advise_ahead(at.packet, NOTIFY, tag.path as u64);
        }
        match tag.ask {
            Ask::Nothing => {}
            Ask::Init => {
                self.counts.replies += 1;
                orders.advise_ahead(at.packet, REPLY, tag.epoch as u64);
            }
            Ask::Tail => {
                self.counts.clears += 1;
                orders.advise_ahead(at.packet, CLEAR, tag.epoch as u64);
            }
        }
        if early {
            self.counts.reordered += 1;
            return Pass::Wait(flow.0);
        }
        Pass::By(0)
    }
}

impl Labeller for ConWeave {
    fn pass(&mut self, at: &mut Crossroads<'_>, label: &mut Label, orders: &mut Orders<'_>) -> Pass {
        self.sweeps.begin(at.now);
        let leaves = at.leaves().filter(|_| at.packet.kind == Kind::Data);
        let Some((first, last)) = leaves else { return Pass::By(at.hashed()) };
        if at.node() == last {
            return self.receive(at, &Tag::read(label), orders);
        }
        let tag = match at.node() == first {
            true => self.send(at, last),
            false => {
                let tag = Tag::read(label);
                Tag { hops: tag.hops + 1, ..tag }
            }
        };
        *label = tag.label();
        Pass::By(follow(at, tag.path, tag.hops))
    }

    fn advised(&mut self, flow: FlowId, kind: u16, word: u64, orders: &mut Orders<'_>) {
        let now = orders.now;
        self.sweeps.begin(now);
        if kind == NOTIFY {
            let path = word as u32;
            self.avoided.insert(place(path, orders.node()), (path, now + self.all.timing.avoid));
            return;
        }
        let known = self.sending.get_mut(&flow).filter(|s| !self.sweeps.swept(now, s.active));
        let Some(s) = known.filter(|s| s.epoch as u64 == word && s.rerouted == (kind == CLEAR)) else { return };
        if kind == CLEAR {
            self.counts.timely_clears += 1;
        } else if now < s.deadline && s.deadline != Time::MAX {
            self.counts.timely += 1;
        } else {
            return;
        }
        (s.settled, s.deadline) = (true, Time::MAX);
    }

    fn timer(&mut self, orders: &mut Orders<'_>) {
        // One timer has gone off, the first of those that were set for now; it may have been put off since.
        let Some(((_, number), flow)) = self.timers.pop_first() else { return };
        let waiting = self.receiving.get_mut(&flow).filter(|r| r.waiting == Some(number));
        if let Some(r) = waiting {
            (r.waiting, r.rerouted) = (None, true);
            self.counts.flushes += 1;
            orders.release(flow.0);
        }
    }

    fn counters(&self) -> Vec<Counter> {
        let c = &self.counts;
        vec![
            Counter::sum("conweave_replies", c.replies),
            Counter::sum("conweave_timely_replies", c.timely),
            Counter::sum("conweave_clears", c.clears),
            Counter::sum("conweave_timely_clears", c.timely_clears),
            Counter::sum("conweave_notifies", c.notifies),
            Counter::sum("conweave_reroutes", c.reroutes),
            Counter::sum("conweave_reordered", c.reordered),
            Counter::sum("conweave_flushes", c.flushes),
            Counter::sum("conweave_flushes_by_tail", c.by_tail),
        ]
    }
}
