//! ConWeave (Song et al., SIGCOMM 2023): flows leave congested paths at any time, and the last switch puts their packets in order.
//!
//! *At the first switch* (§3.2). The first packet of an epoch is an `RTT_REQUEST`. If the last switch's `RTT_REPLY` is not there when a deadline passes,
//! a little more than the base round trip between the two switches, the path is congested: the next packet, the `TAIL`, is the last one on
//! it, and those behind take another path, marked as rerouted and with the time of the TAIL. No further change happens before the last switch has
//! sent `CLEAR`, so that packets of a flow are on two paths at most. After a timely reply, or after CLEAR, the next packet begins another epoch.
//! The new path is the first of two random ones that was not reported as congested in the last few microseconds.
//!
//! *At the last switch* (§3.3). Rerouted packets that come before the TAIL wait in a reordering queue. The TAIL lets them go behind itself, and CLEAR is sent
//! when they have gone. A packet with a mark makes the last switch report its path (`NOTIFY`).
//!
//! *When a TAIL is lost* the queue must not wait for ever. So a timer lets it go, at the time by which the TAIL should have come: what was
//! sent so long before it came that long ago (§3.3.2, appendix A), and a margin. And a flow that was silent for long begins
//! another epoch whatever is outstanding. Both may break the order. Where flow control promises to lose nothing and no link can fail,
//! neither is needed, and neither is done unless `timers` asks for it: there ConWeave keeps the order of every flow.
//!
//! The defaults are those of the authors' simulator for two tiers (conweave-ns3). As there, reordering queues are a memory of their own
//! and of any number; how many there were at a port, and how much they held, is counted. With more tiers a path is named by every
//! switch on it that has a choice. Flows that begin or end at a host with several links, or at one switch, are hashed.

use engine::Time;
use fabric::axes::load_balancing::{Crossroads, Label, Labeller, Orders, Pass, Route};
use fabric::axes::{Counter, Definition, LoadBalancingDef};
use fabric::id::{FlowId, NodeId};
use fabric::packet::{Kind, Packet, flag};
use fabric::routing::Rule;
use fabric::view::Site;
use std::collections::{BTreeSet, HashMap};

engine::parameters! {
    /// Parameters of ConWeave.
    pub struct Params {
        /// How much longer than the base round trip between two switches a reply may take.
        reply: Time = Time::from_us(4), in Time::from_ns(1)..=Time::from_ms(1000),
        /// For how long a path that was reported as congested is not chosen.
        avoid: Time = Time::from_us(16), in Time::ZERO..=Time::from_ms(1000),
        /// Queues are let go by a timer, and silent flows begin another epoch, also where nothing can be lost, as in the authors' simulator.
        timers: bool = false,
        /// How much later than it should the last packet of a path may come before its queue is let go.
        margin: Time = Time::from_us(16), in Time::ZERO..=Time::from_ms(1000),
        /// How long a queue waits where nothing is known of the old path.
        wait: Time = Time::from_us(200), in Time::from_ns(1)..=Time::from_ms(1000),
        /// A flow that was silent for so long begins another epoch.
        silence: Time = Time::from_us(300), in Time::from_ns(1)..=Time::from_ms(10_000),
    }
}

impl Definition for Params {
    fn name(&self) -> &'static str {
        "conweave"
    }
    fn about(&self) -> &'static str {
        "ConWeave: the first switch moves a flow to another path when replies come late, and the last switch puts its packets in order."
    }
    fn source(&self) -> &'static str {
        "C. H. Song, X. Z. Khooi, R. Joshi, I. Choi, J. Li, M. C. Chan, Network Load Balancing with In-network Reordering Support for RDMA, SIGCOMM \
         2023"
    }
}

impl LoadBalancingDef for Params {
    fn rule(&self) -> Rule {
        Rule::ByPacket
    }
    fn labeller(&self, site: &Site<'_>, lossless: bool) -> Option<Box<dyn Labeller>> {
        let timers = self.timers || !lossless || site.setup.graph.fallible();
        Some(Box::new(ConWeave::new(self, timers)))
    }
    fn names_paths(&self) -> bool {
        true
    }
    fn may_reorder(&self) -> bool {
        self.timers
    }
    fn one_path(&self) -> bool {
        false
    }
    fn sets_aside(&self) -> bool {
        true
    }
}

/// What a packet asks of the last switch.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Ask {
    Nothing,
    /// To reply.
    Request,
    /// The last one on its path: to say when it has come.
    Tail,
}

/// What a packet carries.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Tag {
    route: Route,
    /// How many switches that had a choice it has passed.
    choices: u32,
    epoch: u32,
    /// On the new path, while the old one may have packets.
    rerouted: bool,
    ask: Ask,
    /// When it left the first switch.
    sent: Time,
    /// When the TAIL of the epoch did.
    tail: Time,
}

impl Tag {
    fn read(&[route, sent, tail, word]: &Label) -> Tag {
        Tag {
            route: Route(route),
            sent: Time(sent),
            tail: Time(tail),
            epoch: word as u32,
            choices: (word >> 32) as u8 as u32,
            rerouted: word >> 40 & 1 == 1,
            ask: match word >> 41 & 3 {
                0 => Ask::Nothing,
                1 => Ask::Request,
                _ => Ask::Tail,
            },
        }
    }
    fn write(&self, label: &mut Label) {
        let word =
            self.epoch as u64 | (self.choices as u64) << 32 | (self.rerouted as u64) << 40 | (self.ask as u64) << 41;
        *label = [self.route.0, self.sent.0, self.tail.0, word];
    }
}

/// What the last switch says to the first; the word is an epoch, or a path.
const REPLY: u16 = 0;
const CLEAR: u16 = 1;
const NOTIFY: u16 = 2;

/// A flow at its first switch.
struct Sending {
    leaf: NodeId,
    route: Route,
    epoch: u32,
    /// It has left its old path, and waits for CLEAR.
    rerouted: bool,
    /// The next packet begins another epoch.
    settled: bool,
    /// When its last packet passed.
    active: Time,
    /// When a reply is late; `None` while none is waited for.
    deadline: Option<Time>,
    tail: Time,
}

/// A flow at its last switch.
#[derive(Default)]
struct Receiving {
    epoch: u32,
    /// The TAIL of the epoch has come, or is no longer waited for.
    rerouted: bool,
    /// Packets wait for the TAIL.
    waiting: bool,
    /// Of the last packet on the old path: when it left the first switch, and came. `None` if there was none in this epoch.
    old: Option<(Time, Time)>,
    tail: Time,
    /// When its queue is let go.
    flush: Option<Time>,
    /// The TAIL that has come, until CLEAR is sent.
    clear: Option<(Packet, u64)>,
    /// Bytes in its queue.
    bytes: u64,
    host: u32,
}

struct ConWeave {
    params: Params,
    timers: bool,
    sending: HashMap<FlowId, Sending>,
    receiving: HashMap<FlowId, Receiving>,
    routes: HashMap<NodeId, Vec<Route>>,
    /// Until when a path to a switch is avoided.
    avoided: HashMap<(NodeId, Route), Time>,
    /// Queues to be let go by a timer.
    flushes: BTreeSet<(Time, FlowId)>,
    /// By host: queues in use at its port.
    queues: HashMap<u32, u64>,
    held: u64,
    counts: Counts,
}

#[derive(Default)]
struct Counts {
    requests: u64,
    replies: u64,
    reroutes: u64,
    clears: u64,
    notifies: u64,
    reordered: u64,
    flushes: u64,
    early: u64,
    queues: u64,
    held: u64,
}

impl ConWeave {
    fn new(params: &Params, timers: bool) -> ConWeave {
        ConWeave {
            params: params.clone(),
            timers,
            sending: HashMap::new(),
            receiving: HashMap::new(),
            routes: HashMap::new(),
            avoided: HashMap::new(),
            flushes: BTreeSet::new(),
            queues: HashMap::new(),
            held: 0,
            counts: Counts::default(),
        }
    }

    /// One of two random paths that is not avoided, and whether there was one.
    fn draw(&mut self, at: &mut Crossroads<'_>, leaf: NodeId) -> (Route, bool) {
        let routes = self.routes.entry(leaf).or_insert_with(|| at.routes());
        if routes.is_empty() {
            return (Route::default(), false);
        }
        let two = [(); 2].map(|()| routes[at.draw(routes.len() as u64) as usize]);
        let usable = |route: &&Route| {
            let avoided = self.avoided.get(&(leaf, **route)).is_some_and(|until| *until > at.now);
            let place = if at.len() == 1 { Some(0) } else { at.place(route.first()) };
            !avoided && place.is_some_and(|place| at.up(place))
        };
        let found = two.iter().find(usable);
        (*found.unwrap_or(&two[0]), found.is_some())
    }

    /// What a data packet carries from its first switch on.
    fn send(&mut self, at: &mut Crossroads<'_>, leaf: NodeId) -> Tag {
        let (flow, now) = (FlowId(at.packet.flow), at.now);
        let known = self.sending.get(&flow);
        let new = known.is_none();
        let expired = new || self.timers && known.is_some_and(|flow| flow.active + self.params.silence < now);
        let late = known.is_some_and(|flow| !flow.settled && flow.deadline.is_some_and(|deadline| deadline < now));
        let late = late && !expired;
        // Paths are drawn only where one may be taken.
        let (drawn, good) = if expired || late { self.draw(at, leaf) } else { (Route::default(), false) };
        let blank = || Sending {
            leaf,
            route: drawn,
            epoch: 0,
            rerouted: false,
            settled: false,
            active: now,
            deadline: None,
            tail: Time::ZERO,
        };
        let s = self.sending.entry(flow).or_insert_with(blank);
        let begins = expired || s.settled;
        (s.settled, s.active) = (false, now);
        if begins {
            s.epoch += 1;
            (s.rerouted, s.tail) = (false, Time::ZERO);
            s.deadline = Some(now + at.leaf_rtt() + self.params.reply);
            self.counts.requests += 1;
        }
        if expired && good {
            self.counts.reroutes += !new as u64;
            s.route = drawn;
        }
        let ask = if begins {
            Ask::Request
        } else if late {
            Ask::Tail
        } else {
            Ask::Nothing
        };
        let mut tag =
            Tag { route: s.route, choices: 0, epoch: s.epoch, rerouted: s.rerouted, ask, sent: now, tail: s.tail };
        if late {
            // This one is still sent by the old path.
            (s.rerouted, s.deadline, s.tail, tag.tail) = (true, None, now, now);
            if good {
                self.counts.reroutes += 1;
                s.route = drawn;
            }
        }
        tag
    }

    /// A data packet has come to its last switch: whether it goes on.
    fn receive(&mut self, at: &Crossroads<'_>, tag: &Tag, orders: &mut Orders<'_>) -> Pass {
        let (flow, now, packet) = (FlowId(at.packet.flow), at.now, at.packet);
        let (siding, tail) = (packet.flow, tag.ask == Ask::Tail);
        let r = self.receiving.entry(flow).or_default();
        r.host = packet.dst;
        // What was let go but found no room yet goes first.
        let mut behind = !r.waiting && orders.waits(siding);
        if tag.epoch < r.epoch {
            return self.let_go(behind, packet);
        }
        if tag.epoch > r.epoch {
            (r.epoch, r.rerouted, r.old) = (tag.epoch, false, None);
            // A flow that was silent does not wait for what is outstanding, so that neither does its queue: it goes before this packet.
            if r.waiting {
                (r.waiting, behind) = (false, true);
                self.counts.flushes += 1;
                self.counts.early += 1;
                orders.release(siding);
            }
        }
        let early = tag.rerouted && !r.rerouted;
        if !tag.rerouted {
            r.old = Some((tag.sent, now));
        }
        if tail || tag.rerouted {
            r.tail = tag.tail;
        }
        if tail && !r.waiting {
            r.rerouted = true;
        }
        // The last packet of the old path comes as long after the last that did as it was sent after that one.
        let due = match r.old {
            Some((sent, came)) => came + r.tail.saturating_sub(sent),
            None => now + self.params.wait,
        };
        let due = now.max(due + self.params.margin);
        let mut flush = None;
        if !tag.rerouted && r.waiting {
            if tail {
                (r.waiting, r.rerouted) = (false, true);
                self.counts.flushes += 1;
                orders.release(siding);
            } else {
                flush = Some(due);
            }
        } else if early && !r.waiting {
            r.waiting = true;
            flush = Some(due);
            if r.bytes == 0 {
                let queues = self.queues.entry(r.host).or_default();
                *queues += 1;
                self.counts.queues = self.counts.queues.max(*queues);
            }
        }
        if let Some(old) = r.flush.filter(|_| flush.is_some() || !r.waiting) {
            self.flushes.remove(&(old, flow));
            r.flush = None;
        }
        if let Some(due) = flush.filter(|_| self.timers) {
            r.flush = Some(due);
            self.flushes.insert((due, flow));
            orders.set_timer(due);
        }
        if packet.flags & flag::MARKED != 0 {
            self.counts.notifies += 1;
            orders.advise(packet, NOTIFY, tag.route.0);
        }
        if tag.ask == Ask::Request {
            self.counts.replies += 1;
            orders.advise(packet, REPLY, tag.epoch as u64);
        }
        if tail {
            if orders.waits(siding) {
                r.clear = Some((*packet, tag.epoch as u64));
            } else {
                self.counts.clears += 1;
                orders.advise(packet, CLEAR, tag.epoch as u64);
            }
        }
        self.let_go(early || behind, packet)
    }

    /// Lets a packet go on, or wait in its flow's queue.
    fn let_go(&mut self, wait: bool, packet: &Packet) -> Pass {
        if !wait {
            return Pass::By(0);
        }
        if let Some(r) = self.receiving.get_mut(&FlowId(packet.flow)) {
            r.bytes += packet.size as u64;
        }
        self.held += packet.size as u64;
        self.counts.reordered += 1;
        self.counts.held = self.counts.held.max(self.held);
        Pass::Wait(packet.flow)
    }
}

impl Labeller for ConWeave {
    fn pass(&mut self, at: &mut Crossroads<'_>, label: &mut Label, orders: &mut Orders<'_>) -> Pass {
        // ACKs and the switches' own packets are hashed.
        let leaves = at.leaves().filter(|_| at.packet.kind == Kind::Data);
        let Some((first, last)) = leaves else { return Pass::By(at.hashed()) };
        if at.node() == last {
            return self.receive(at, &Tag::read(label), orders);
        }
        let mut tag = if at.node() == first { self.send(at, last) } else { Tag::read(label) };
        let place = at.follow(tag.route, &mut tag.choices);
        tag.write(label);
        Pass::By(place)
    }

    fn advised(&mut self, flow: FlowId, kind: u16, word: u64, orders: &mut Orders<'_>) {
        let Some(s) = self.sending.get_mut(&flow) else { return };
        match kind {
            NOTIFY => _ = self.avoided.insert((s.leaf, Route(word)), orders.now + self.params.avoid),
            // What is about another epoch, or late, changes nothing.
            _ if word != s.epoch as u64 => {}
            REPLY if !s.rerouted && s.deadline.is_some_and(|deadline| orders.now < deadline) => {
                (s.settled, s.deadline) = (true, None);
            }
            CLEAR if s.rerouted => (s.settled, s.deadline) = (true, None),
            _ => {}
        }
    }

    fn timer(&mut self, orders: &mut Orders<'_>) {
        while let Some(&(due, flow)) = self.flushes.first().filter(|(due, _)| *due <= orders.now) {
            self.flushes.remove(&(due, flow));
            if let Some(r) = self.receiving.get_mut(&flow).filter(|r| r.waiting) {
                (r.waiting, r.rerouted, r.flush) = (false, true, None);
                self.counts.flushes += 1;
                self.counts.early += 1;
                orders.release(flow.0);
            }
        }
    }

    fn drained(&mut self, siding: u32, orders: &mut Orders<'_>) {
        let Some(r) = self.receiving.get_mut(&FlowId(siding)) else { return };
        self.held -= std::mem::take(&mut r.bytes);
        if let Some(queues) = self.queues.get_mut(&r.host) {
            *queues = queues.saturating_sub(1);
        }
        if let Some((tail, epoch)) = r.clear.take() {
            self.counts.clears += 1;
            orders.advise(&tail, CLEAR, epoch);
        }
    }

    fn rerouted(&mut self) {
        self.routes.clear();
    }

    fn in_order(&self) -> bool {
        !self.timers || self.counts.early == 0 && self.counts.reroutes == 0
    }

    fn counters(&self) -> Vec<Counter> {
        let c = &self.counts;
        vec![
            Counter::sum("conweave_requests", c.requests),
            Counter::sum("conweave_replies", c.replies),
            Counter::sum("conweave_reroutes", c.reroutes),
            Counter::sum("conweave_clears", c.clears),
            Counter::sum("conweave_notifies", c.notifies),
            Counter::sum("conweave_reordered", c.reordered),
            Counter::sum("conweave_flushes", c.flushes),
            Counter::sum("conweave_early", c.early),
            Counter::max("conweave_queues", c.queues),
            Counter::max("conweave_held", c.held),
        ]
    }
}

#[cfg(test)]
mod tests;
