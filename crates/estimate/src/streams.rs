//! Flows as streams that share links fairly, from one beginning or end of a flow to the next.
//!
//! Only what a change can reach is settled anew: the flows that share a link with the one that began or ended, and with those, and so on. ACKs take
//! their part of the links on their way back; by what they take, a flow slows down one that it shares no link with. A flow alone on its links costs a few
//! steps, however long it is.

use crate::Span;
use engine::Time;
use fabric::id::NodeId;
use fabric::routing::PortMap;
use fabric::setup::{AckPolicy, FlowSpec, Setup, Task};
use scenario::resolve::Paths;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// A fabric, and what flows in it.
pub struct Fabric<'a> {
    setup: &'a Setup,
    paths: Paths<'a>,
    /// By port, bytes per picosecond.
    capacity: Vec<f64>,
    /// Bytes of ACKs for a byte of data packets, as long as packets are full.
    answer: f64,
    /// By flow, and behind the flows by task, who waits for it and for how long: from `first[n]` to `first[n + 1]`.
    followers: Vec<(u32, Time)>,
    first: Vec<u32>,
    waits: Vec<u32>,
}

impl<'a> Fabric<'a> {
    /// That of a run.
    pub fn new(setup: &'a Setup) -> Fabric<'a> {
        let map = PortMap::new(&setup.graph);
        let paths =
            Paths::new(&setup.graph, &map, setup.rule, setup.switch.pipeline, setup.forward.delay).salted(setup.salt);
        let rate = |port: usize| map.rate(&setup.graph, port as u32).0 as f64 / 8e12;
        let packet = (setup.nic.payload + setup.nic.header) as f64;
        let every = match setup.nic.acks {
            AckPolicy::Every(packets) => f64::from(packets.max(1)) * packet,
            AckPolicy::After { interval, .. } => (interval as f64).max(packet),
        };
        let flows = setup.flows.len();
        let places = flows + setup.tasks.len();
        let (mut first, mut waits) = (vec![0u32; places + 1], vec![0u32; places]);
        for after in &setup.after {
            first[Task::place(after.first, flows) + 1] += 1;
            waits[Task::place(after.flow, flows)] += 1;
        }
        (0..places).for_each(|place| first[place + 1] += first[place]);
        let (mut next, mut followers) = (first.clone(), vec![(0, Time::ZERO); setup.after.len()]);
        for after in &setup.after {
            let place = &mut next[Task::place(after.first, flows)];
            followers[*place as usize] = (Task::place(after.flow, flows) as u32, after.gap);
            *place += 1;
        }
        let capacity = (0..map.count()).map(rate).collect();
        Fabric { setup, paths, capacity, answer: f64::from(setup.nic.ack_size) / every, followers, first, waits }
    }

    /// Bytes of the packets of a message.
    pub fn wire(&self, size: u64) -> f64 {
        let (payload, header) = (self.setup.nic.payload as u64, self.setup.nic.header as u64);
        (size + size.div_ceil(payload).max(1) * header) as f64
    }

    /// How long so many bytes of a flow take over the slowest of its links, in picoseconds.
    pub fn alone(&self, spec: &FlowSpec, size: u64) -> u64 {
        let links = self.paths.steps(spec.src, spec.dst, spec.tuple).map(|port| self.capacity[port as usize]);
        (self.wire(size) / links.fold(f64::INFINITY, f64::min)) as u64
    }

    /// When each flow begins and is received; none if that takes more steps than are allowed.
    pub fn flow(&self, how: &How<'_>) -> Option<Flowed> {
        let flows = self.setup.flows.len();
        let starts = self.setup.flows.iter().map(|flow| flow.start);
        let mut run = Run {
            fabric: self,
            how,
            steps: 0,
            looks: Vec::new(),
            shared: vec![false; flows],
            now: 0,
            waits: self.waits.clone(),
            ready: starts.chain(self.setup.tasks.iter().map(|task| task.start)).collect(),
            events: BinaryHeap::new(),
            active: Vec::new(),
            vacant: Vec::new(),
            ports: (0..self.capacity.len()).map(|_| Port::default()).collect(),
            changed: Vec::new(),
            round: 0,
            spans: vec![Span { start: Time::MAX, end: Time::MAX }; flows],
        };
        for task in (0..self.setup.tasks.len()).filter(|task| self.waits[flows + task] == 0) {
            let end = self.setup.tasks[task].start.saturating_add(self.setup.tasks[task].lasts);
            run.release((flows + task) as u32, |_| end);
        }
        run.events.clear();
        for flow in (0..flows).filter(|flow| run.waits[*flow] == 0) {
            run.events.push(Reverse((run.ready[flow].0, BEGINS, flow as u32, 0)));
        }
        if !run.go() {
            return None;
        }
        Some(Flowed { spans: run.spans, looks: run.looks, shared: run.shared, steps: run.steps })
    }
}

/// How flows flow.
#[derive(Clone, Copy)]
pub struct How<'a> {
    /// What a scheme lets flows have of a link, by how many share it: [`crowd`].
    pub usable: [f64; CROWDS],
    /// By flow, how much faster it is than its fair share, as a share of that; none if empty.
    pub faster: &'a [f32],
    /// Instants at which to look at what is under way, in order.
    pub looks: &'a [Time],
    /// The most steps, each of which gives one flow a new rate.
    pub most: u64,
}

/// How many kinds of crowds there are on a link.
pub const CROWDS: usize = 5;

/// Which kind of a crowd so many flows are.
pub fn crowd(flows: u32) -> usize {
    match flows {
        0 | 1 => 0,
        2 => 1,
        3..=4 => 2,
        5..=8 => 3,
        _ => 4,
    }
}

/// A flow under way.
#[derive(Clone, Copy, Debug)]
pub struct Seen {
    /// Which.
    pub flow: u32,
    /// Bytes of its packets that are still to be sent.
    pub left: f64,
    /// The crowd on the link that holds it up.
    pub crowd: u8,
}

/// What became of the flows.
pub struct Flowed {
    /// By flow.
    pub spans: Vec<Span>,
    /// What was under way at the instants that were asked for.
    pub looks: Vec<Vec<Seen>>,
    /// By flow, whether it met flows of other hosts on a link between or behind switches.
    pub shared: Vec<bool>,
    /// How often a flow was given a rate.
    pub steps: u64,
}

/// Kinds of events, in the order in which they come at one instant.
const ENDS: u8 = 0;
const BEGINS: u8 = 1;
/// A change of a rate by less than this share changes nothing else.
const SLIGHT: f64 = 1e-4;

/// A flow under way.
#[derive(Default)]
struct Active {
    flow: u32,
    /// Bytes of its packets that are still to be sent, at `since`.
    left: f64,
    since: u64,
    rate: f64,
    /// Which of its planned ends counts.
    version: u32,
    /// The ports that send its packets, and after them those that send its ACKs.
    ports: Vec<u32>,
    data: usize,
    round: u32,
    settled: bool,
    /// That on the link that holds it up.
    crowd: u8,
}

/// A link in one direction.
#[derive(Default)]
struct Port {
    active: Vec<u32>,
    /// What ACKs take of it, and what they took when flows were last settled.
    answers: f64,
    allowed: f64,
    changed: bool,
    /// While flows are settled: what is left for those that are not, and how many these are.
    left: f64,
    open: u32,
    round: u32,
}

struct Run<'a> {
    fabric: &'a Fabric<'a>,
    how: &'a How<'a>,
    steps: u64,
    looks: Vec<Vec<Seen>>,
    shared: Vec<bool>,
    now: u64,
    waits: Vec<u32>,
    ready: Vec<Time>,
    events: BinaryHeap<Reverse<(u64, u8, u32, u32)>>,
    active: Vec<Active>,
    vacant: Vec<u32>,
    ports: Vec<Port>,
    changed: Vec<u32>,
    round: u32,
    spans: Vec<Span>,
}

impl Run<'_> {
    /// False if it takes too many steps.
    fn go(&mut self) -> bool {
        while let Some(Reverse((at, class, number, version))) = self.events.pop() {
            while let Some(look) = self.how.looks.get(self.looks.len()).filter(|look| look.0 <= at) {
                let seen = self.look(look.0);
                self.looks.push(seen);
            }
            self.now = at;
            match class {
                BEGINS => self.begin(number),
                _ if self.active[number as usize].version == version => self.end(number),
                _ => continue,
            }
            if self.events.peek().is_none_or(|Reverse((next, ..))| *next > at) {
                self.settle();
                if self.steps > self.how.most {
                    return false;
                }
            }
        }
        self.looks.resize(self.how.looks.len(), Vec::new());
        true
    }

    /// What is under way, flow by flow.
    fn look(&self, at: u64) -> Vec<Seen> {
        let under_way = self.active.iter().filter(|active| active.rate > 0.0);
        let seen = |active: &Active| {
            let left = active.left - active.rate * (at - active.since) as f64;
            Seen { flow: active.flow, left, crowd: active.crowd }
        };
        let mut all: Vec<Seen> = under_way.map(seen).filter(|seen| seen.left > 0.0).collect();
        all.sort_unstable_by_key(|seen| seen.flow);
        all
    }

    fn begin(&mut self, flow: u32) {
        let spec = &self.fabric.setup.flows[flow as usize];
        self.spans[flow as usize].start = Time(self.now);
        let place = self.vacant.pop().unwrap_or_else(|| {
            self.active.push(Active::default());
            self.active.len() as u32 - 1
        });
        let active = &mut self.active[place as usize];
        (active.flow, active.left, active.since, active.rate) = (flow, self.fabric.wire(spec.size), self.now, 0.0);
        active.ports.clear();
        active.ports.extend(self.fabric.paths.steps(spec.src, spec.dst, spec.tuple));
        active.data = active.ports.len();
        active.ports.extend(self.fabric.paths.steps(spec.dst, spec.src, spec.tuple.reversed()));
        for &port in &active.ports[..active.data] {
            self.ports[port as usize].active.push(place);
            change(&mut self.ports, &mut self.changed, port);
        }
    }

    /// The last of a flow's bytes is through the slowest of its links.
    fn end(&mut self, place: u32) {
        let mut active = std::mem::take(&mut self.active[place as usize]);
        active.version += 1;
        for &port in &active.ports[..active.data] {
            let on = &mut self.ports[port as usize].active;
            if let Some(at) = on.iter().position(|other| *other == place) {
                on.swap_remove(at);
            }
            change(&mut self.ports, &mut self.changed, port);
        }
        self.answers(&active, -active.rate);
        let spec = &self.fabric.setup.flows[active.flow as usize];
        let slowest = active.ports[..active.data].iter().map(|port| self.fabric.capacity[*port as usize]);
        let alone = self.fabric.wire(spec.size) / slowest.fold(f64::INFINITY, f64::min);
        let span = &mut self.spans[active.flow as usize];
        let lost = ((self.now - span.start.0) as f64 - alone).max(0.0);
        span.end = span.start.saturating_add(spec.ideal).saturating_add(Time(lost as u64));
        let (flow, at) = (active.flow, span.end);
        active.rate = 0.0;
        self.active[place as usize] = active;
        self.vacant.push(place);
        let acknowledged = at.saturating_add(spec.ideal_acknowledged.saturating_sub(spec.ideal));
        self.release(flow, |host| if host == spec.dst { at } else { acknowledged });
    }

    /// A flow's ACKs take more of the links on their way.
    fn answers(&mut self, active: &Active, more: f64) {
        for &port in &active.ports[active.data..] {
            let p = &mut self.ports[port as usize];
            p.answers = (p.answers + more * self.fabric.answer).max(0.0);
            if (p.answers - p.allowed).abs() > SLIGHT * self.fabric.capacity[port as usize] && !p.active.is_empty() {
                change(&mut self.ports, &mut self.changed, port);
            }
        }
    }

    /// A flow, or a task behind the flows, has ended: those who waited for it may begin.
    fn release(&mut self, first: u32, at: impl Fn(NodeId) -> Time) {
        let (fabric, setup, flows) = (self.fabric, self.fabric.setup, self.fabric.setup.flows.len());
        let mut ended = vec![(first, None)];
        while let Some((first, known)) = ended.pop() {
            let range = fabric.first[first as usize] as usize..fabric.first[first as usize + 1] as usize;
            for &(follower, gap) in &fabric.followers[range] {
                let task = (follower as usize).checked_sub(flows);
                let host = task.map_or_else(|| setup.flows[follower as usize].src, |task| setup.tasks[task].host);
                let ready = &mut self.ready[follower as usize];
                *ready = known.unwrap_or_else(|| at(host)).saturating_add(gap).max(*ready);
                self.waits[follower as usize] -= 1;
                match task {
                    _ if self.waits[follower as usize] > 0 => {}
                    Some(task) => ended.push((follower, Some(ready.saturating_add(setup.tasks[task].lasts)))),
                    None => self.events.push(Reverse((ready.0, BEGINS, follower, 0))),
                }
            }
        }
    }

    /// Gives new rates to the flows that changes can reach.
    fn settle(&mut self) {
        for _ in 0..MOST_ROUNDS {
            if self.changed.is_empty() {
                return;
            }
            let reached = self.reached();
            self.share(&reached);
            self.apply(&reached);
        }
        self.changed.drain(..).for_each(|port| self.ports[port as usize].changed = false);
    }

    /// The flows that share links with changed ones, and with those, and so on.
    fn reached(&mut self) -> Vec<u32> {
        self.round += 1;
        let (round, mut reached) = (self.round, Vec::<u32>::new());
        let mut links = std::mem::take(&mut self.changed);
        for &port in &links {
            self.ports[port as usize].changed = false;
        }
        while let Some(port) = links.pop() {
            let p = &mut self.ports[port as usize];
            if p.round == round || p.active.is_empty() {
                continue;
            }
            let capacity = self.fabric.capacity[port as usize];
            (p.round, p.open, p.allowed) = (round, p.active.len() as u32, p.answers);
            p.left = (self.how.usable[crowd(p.open)] * capacity - p.answers).max(LEAST * capacity);
            let from = |place: &u32| self.active[*place as usize].ports.first();
            let mixed = p.active.len() > 1 && p.active.iter().any(|place| from(place) != from(&p.active[0]));
            for &place in &p.active {
                let active = &mut self.active[place as usize];
                if mixed {
                    self.shared[active.flow as usize] = true;
                }
                if active.round != round {
                    (active.round, active.settled) = (round, false);
                    reached.push(place);
                    links.extend_from_slice(&active.ports[..active.data]);
                }
            }
        }
        self.changed = links;
        reached
    }

    /// Max-min fair rates (Bertsekas and Gallager, Data Networks, §6.5.2), negative until they are applied.
    fn share(&mut self, reached: &[u32]) {
        if let [place] = reached {
            let active = &mut self.active[*place as usize];
            let left = active.ports[..active.data].iter().map(|port| self.ports[*port as usize].left);
            active.left -= active.rate * (self.now - active.since) as f64;
            active.since = self.now;
            let rate = left.fold(f64::INFINITY, f64::min);
            active.crowd = 0;
            self.steps += 1;
            self.renew(*place, rate);
            return;
        }
        self.steps += reached.len() as u64;
        let mut least: BinaryHeap<Reverse<(u64, u32)>> = BinaryHeap::new();
        let share = |p: &Port| (p.left.max(0.0) / f64::from(p.open)).to_bits();
        for place in reached {
            let active = &self.active[*place as usize];
            for &port in &active.ports[..active.data] {
                let p = &mut self.ports[port as usize];
                // Once each.
                if !p.changed {
                    p.changed = true;
                    least.push(Reverse((share(p), port)));
                }
            }
        }
        while let Some(Reverse((bits, port))) = least.pop() {
            let p = &self.ports[port as usize];
            if p.open == 0 {
                continue;
            }
            let now = share(p);
            if now > bits {
                least.push(Reverse((now, port)));
                continue;
            }
            let rate = f64::from_bits(now);
            let kind = crowd(self.ports[port as usize].active.len() as u32) as u8;
            for at in 0..self.ports[port as usize].active.len() {
                let place = self.ports[port as usize].active[at];
                let active = &mut self.active[place as usize];
                if std::mem::replace(&mut active.settled, true) {
                    continue;
                }
                for &port in &active.ports[..active.data] {
                    let p = &mut self.ports[port as usize];
                    p.left -= rate;
                    p.open -= 1;
                }
                active.left -= active.rate * (self.now - active.since) as f64;
                active.since = self.now;
                active.crowd = kind;
                self.renew(place, rate);
            }
        }
    }

    /// A flow has a new rate from now on.
    fn renew(&mut self, place: u32, rate: f64) {
        let active = &mut self.active[place as usize];
        let faster = self.how.faster.get(active.flow as usize).map_or(0.0, |faster| f64::from(*faster));
        let rate = (rate * (1.0 + faster)).max(f64::MIN_POSITIVE);
        if (rate - active.rate).abs() <= SLIGHT * active.rate {
            return;
        }
        let more = rate - active.rate;
        active.rate = rate;
        active.version += 1;
        let end = self.now.saturating_add((active.left.max(0.0) / rate) as u64 + 1);
        self.events.push(Reverse((end, ENDS, place, active.version)));
        let active = std::mem::take(&mut self.active[place as usize]);
        for &port in &active.ports[active.data..] {
            self.ports[port as usize].answers += more * self.fabric.answer;
        }
        self.active[place as usize] = active;
    }

    /// Notes which links have changed by what ACKs take now.
    fn apply(&mut self, reached: &[u32]) {
        for place in reached {
            let active = &self.active[*place as usize];
            active.ports[..active.data].iter().for_each(|port| self.ports[*port as usize].changed = false);
        }
        for place in reached {
            let active = &self.active[*place as usize];
            for &port in &active.ports[active.data..] {
                let p = &mut self.ports[port as usize];
                let moved = (p.answers - p.allowed).abs() > SLIGHT * self.fabric.capacity[port as usize];
                if moved && !p.active.is_empty() && !p.changed {
                    p.changed = true;
                    self.changed.push(port);
                }
            }
        }
    }
}

/// A link has other flows than before, or less room for them.
fn change(ports: &mut [Port], changed: &mut Vec<u32>, port: u32) {
    if !std::mem::replace(&mut ports[port as usize].changed, true) {
        changed.push(port);
    }
}

/// By ACKs, a change goes on by a small part of itself; after so many steps nothing is left of it.
const MOST_ROUNDS: u32 = 24;
/// The share of a link that ACKs leave to data at the least.
const LEAST: f64 = 0.05;
