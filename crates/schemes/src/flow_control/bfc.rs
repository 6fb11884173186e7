//! Backpressure Flow Control: per-hop, per-flow pauses with few queues and little state.
//!
//! A switch gives every flow that has packets queued a physical queue of its own, as long as there are any (§3.3). A flow whose
//! queue is longer than it needs to be is paused at the upstream neighbour, by a Bloom filter of all paused flows that is sent
//! up every link twice in a hop's round trip (§3.4 to §3.6). The upstream holds every queue whose first packet matches;
//! a NIC, which has a queue per flow, every flow that does. The first packet of a flow goes ahead of everything (§3.7). PFC
//! stays underneath and should never be needed (§3.9).
//!
//! A frame every microsecond on every link would cost more to simulate than the traffic. Frames that say nothing new are not
//! sent as packets; the time they take on a link is charged to the next packet there ([`FlowControl::lag`]).

mod filter;
mod table;
#[cfg(test)]
mod tests;

use super::{Choice, Controls, Report, add_samples, pfc, run_with};
use engine::{Bytes, Misfit, Rate, Time};
use fabric::deadlock::Waits;
use fabric::network::Core;
use fabric::packet::{Kind as PacketKind, Packet, flag};
use fabric::routing::{PortMap, Tuple};
use fabric::scheme::{Counter, FlowControl, Histogram, Visit};
use fabric::topology::Kind;
use fabric::{Outcome, Setup};
use filter::{Counting, MAX_HASHES, Received, Shape};
use pfc::Pfc;
use std::collections::VecDeque;
use table::{EntryId, NO_QUEUE, NONE, State, Table};

engine::choice! {
    /// How a flow gets its physical queue.
    pub enum Assignment {
        /// One that no other flow has, if there is any.
        Dynamic = "dynamic",
        /// By hash, and pauses hold the queue of that hash upstream (the paper's straw proposal, BFC-VFID).
        Hashed = "hashed",
    }
}

engine::choice! {
    /// Which physical queue a flow gets when all have one.
    pub enum Crowded {
        /// Any.
        Random = "random",
        /// The shortest.
        Shortest = "shortest",
        /// Any that is not held by the downstream neighbour.
        Unpaused = "unpaused",
    }
}

engine::choice! {
    /// Which paused flows of a physical queue go on when it is short again.
    pub enum Resume {
        /// One every half hop round trip (§3.5).
        Paced = "paced",
        /// All at once (BFC-BufferOpt).
        All = "all",
    }
}

engine::parameters! {
    /// Parameters of BFC.
    pub struct Params {
        /// Physical queues of every egress port.
        queues: u32 = 32,
        /// Virtual flow IDs: values of the hash of a flow's addresses and ports.
        vfids: u32 = 16_384,
        /// Entries in each bucket of the flow table, which has as many buckets as there are VFIDs.
        bucket: u32 = 4,
        /// Entries of a switch's cache for flows whose bucket is full.
        cache: u32 = 100,
        /// Size of the Bloom filter in a pause frame.
        filter: Bytes = Bytes(128),
        /// Hash functions of the Bloom filter.
        hashes: u32 = 4,
        /// Size of the headers of a pause frame.
        frame_header: Bytes = Bytes(18),
        /// Time from a pause frame to its effect, over one hop and back. Auto: the two delays of the link.
        hop_rtt: Option<Time> = None,
        /// Time between pause frames on a link. Auto: half of hop_rtt, and eight times what a frame takes at least. Never less
        /// than twice that.
        period: Option<Time> = None,
        /// How a flow gets its physical queue.
        assignment: Assignment = Assignment::Dynamic,
        /// Which physical queue a flow gets when every one has a flow.
        crowded: Crowded = Crowded::Random,
        /// Which paused flows of a physical queue go on when it is short again.
        resume: Resume = Resume::Paced,
        /// The first packet of a flow goes into a queue that goes before all others.
        high_priority: bool = true,
    }
}

impl Choice for Params {
    fn name(&self) -> &'static str {
        "bfc"
    }
    fn about(&self) -> &'static str {
        "Backpressure flow control: switches give flows queues of their own and pause them one by one at the upstream \
         neighbour. PFC stays underneath. Lossless."
    }
    fn needs_headroom(&self) -> bool {
        true
    }
    fn check(&self) -> Result<(), Misfit> {
        let range = |name: &'static str, value: u64, least: u64, most: u64| match (least..=most).contains(&value) {
            true => Ok(()),
            false => Err(Misfit::new(name, value, format!("write {least} to {most}"))),
        };
        range("queues", self.queues as u64, 1, 128)?;
        range("vfids", self.vfids as u64, 1, 65_536)?;
        range("bucket", self.bucket as u64, 1, 1024)?;
        range("cache", self.cache as u64, 0, 1_000_000)?;
        range("hashes", self.hashes as u64, 1, MAX_HASHES as u64)?;
        if !(1..=1024).contains(&self.filter.0) || self.filter.0 * 8 < self.hashes as u64 {
            let help = "write a size from \"1B\" to \"1024B\", with a bit for each hash function at least";
            return Err(Misfit::new("filter", self.filter, help));
        }
        if self.frame_header.0 > 512 {
            return Err(Misfit::new("frame_header", self.frame_header, "write a size up to \"512B\""));
        }
        for (name, time) in [("hop_rtt", self.hop_rtt), ("period", self.period)] {
            if time.is_some_and(|time| !(Time::from_ns(10)..=Time::from_ms(1000)).contains(&time)) {
                return Err(Misfit::new(name, time.unwrap_or_default(), "write \"10ns\" to \"1s\", or \"auto\""));
            }
        }
        Ok(())
    }
    fn frame_size(&self) -> u64 {
        self.filter.0 + self.frame_header.0
    }
    fn queues(&self) -> Option<u32> {
        // The physical queues, the one that goes first and the overflow queue.
        Some(self.queues + 2)
    }
    fn waits(&self, _: &Setup) -> Waits {
        // A held flow holds up the packets behind it in its queue, which may have any flows in it: as PFC underneath does it.
        Waits::Classes
    }
    fn other_frames(&self) -> u64 {
        // The filter that waits, one that is charged to the packet under way, and one that comes due meanwhile.
        3
    }
    fn stops_for_hosts(&self) -> bool {
        true
    }
    fn switch_state(&self, ports: u64, classes: u64) -> u64 {
        // An entry: ingress, egress and queue in a byte each, packets in two, and its state in one.
        const ENTRY: u64 = 6;
        let table = (self.vfids as u64 * self.bucket as u64 + self.cache as u64) * ENTRY;
        // A counter of a byte for every bit that is sent, and the filter that was received.
        let filters = ports * (self.filter.0 * 8 + self.filter.0);
        // By queue: how many flows it has, and who is to be resumed next.
        let queues = ports * classes * self.queues as u64 * 4;
        table + filters + queues + pfc::Params::default().switch_state(ports, classes)
    }
    fn pause_in(&self, frame: &Packet) -> Option<(u8, bool)> {
        Some((frame.flow as u8, frame.seq == 1))
    }
    fn run(&self, setup: Setup, promised: bool, control: &Controls<'_>, report: &mut Report<'_>) -> Outcome {
        run_with(|setup| Bfc::new(self, setup, promised), setup, control, report)
    }
}

/// A switch port as packets come in by it: whom it pauses at the neighbour.
struct Ingress {
    filter: Counting,
    /// How often a filter that says nothing is still sent: once after a change, or as often as makes sure that one arrives.
    repeats: u32,
    /// The next frame is on the event queue.
    ticking: bool,
    /// Time between frames.
    period: Time,
    /// Frames go at this time past every period.
    phase: Time,
    /// How long a frame takes on the link.
    frame_time: Time,
    /// Bytes that the link carries from one frame to the next.
    capacity: u64,
    /// Which row of the thresholds.
    row: usize,
}

/// A port as packets leave by it: whom the neighbour has paused.
#[derive(Clone, Default)]
struct Egress {
    received: Received,
    /// Which column of the thresholds.
    column: usize,
}

/// A physical queue.
#[derive(Clone, Default)]
struct Physical {
    /// Flows that have it.
    flows: u32,
    /// Flows to be resumed, with the turn of their entry.
    list: VecDeque<(EntryId, u32)>,
    /// No flow is resumed before.
    next_resume: Time,
    /// A resume is on the event queue.
    waiting: bool,
}

/// Where the packet at hand goes.
#[derive(Clone, Copy)]
enum Plan {
    /// Ahead of everything, or without an entry in the table.
    Apart,
    /// With its flow, in that queue.
    With(EntryId, u16),
    /// The first of its flow here, in that queue.
    First(u16),
}

#[derive(Default)]
struct Counts {
    assignments: u64,
    collisions: u64,
    pauses: u64,
    resumes: u64,
    frames: u64,
    lookups: u64,
    false_positives: u64,
    insertions: u64,
    vfid_collisions: u64,
    /// Bytes of frames that were due, and what their links could have carried from one to the next.
    frame_bytes: u64,
    capacity_bytes: u64,
    overflows: u64,
    express: u64,
    filter_peak: u64,
    /// Sampled: flows with a physical queue, and those of them that share it.
    flows_queued: u64,
    flows_sharing: u64,
    /// Sampled: ports with a physical queue in use, and those with one that is shared.
    ports_busy: u64,
    ports_sharing: u64,
}

/// The mechanism.
pub struct Bfc {
    params: Params,
    shape: Shape,
    pfc: Pfc,
    /// The first timer token that is not PFC's.
    tokens: u32,
    /// The queue that goes first.
    express: u32,
    /// The queue of flows without an entry.
    overflow: u32,
    /// Switches in order, by node.
    switch: Vec<u32>,
    table: Table,
    ingress: Vec<Ingress>,
    egress: Vec<Egress>,
    /// Physical queues that have a flow, by lane: port and class.
    taken: Vec<u128>,
    /// By lane and queue.
    physical: Vec<Physical>,
    classes: u32,
    /// When the next frame is due at each port; [`Time::MAX`] where none ever is.
    due: Vec<Time>,
    /// (HRTT + period) times the egress rate in bytes, by kind of ingress and kind of egress.
    thresholds: Vec<u64>,
    columns: usize,
    plan: Plan,
    /// How often a change is told: once, or more often where links lose frames.
    repeats: u32,
    counts: Counts,
    /// Samples by number of physical queues in use at a port that has any.
    in_use: Vec<u64>,
    /// Samples by kilobytes in a physical queue that has any; and of those at ports to hosts.
    kilobytes: Vec<u64>,
    kilobytes_to_hosts: Vec<u64>,
}

/// How often a filter that has become empty is sent where links lose frames. The protocol never stops sending; that all of
/// these get lost is as good as impossible.
const REPEATS: u32 = 64;

/// The seed of the hash that names flows; unlike any node's.
const VFID_SEED: u32 = 0x0bfc_0bfc;

/// Adds a sample to a histogram.
fn count(counts: &mut Vec<u64>, value: usize) {
    if counts.len() <= value {
        counts.resize(value + 1, 0);
    }
    counts[value] += 1;
}

/// The value that a share `q` of a histogram's samples do not exceed.
fn quantile(counts: &[u64], q: f64) -> u64 {
    let mut left = (counts.iter().sum::<u64>() as f64 * q).ceil() as u64;
    let reached = counts.iter().position(|&count| {
        left = left.saturating_sub(count);
        left == 0
    });
    reached.unwrap_or(0) as u64
}

impl Bfc {
    /// BFC over the fabric of a setup, whose queues it lays out.
    pub fn new(params: &Params, setup: &mut Setup, promised: bool) -> Bfc {
        let (express, overflow) = (params.queues, params.queues + 1);
        setup.switch.queues = express + 2;
        setup.switch.express = Some(express);
        let graph = &setup.graph;
        let map = PortMap::new(graph);
        let is_switch = |node: u32| graph.nodes[node as usize].kind == Kind::Switch;
        let forwards = |node: u32| graph.forwards(node, map.of(node).len());
        let mut switches = 0;
        let switch = (0..graph.nodes.len() as u32).map(|node| {
            switches += forwards(node) as u32;
            switches.saturating_sub(1)
        });
        let switch: Vec<u32> = switch.collect();

        let link = |port: usize| &graph.links[map.link[port] as usize];
        let latency = |port: usize| {
            let far = map.node[map.peer[port] as usize];
            link(port).delay + if is_switch(far) { setup.switch.pipeline } else { Time::ZERO }
        };
        let hop_rtt = |port: usize| {
            params.hop_rtt.unwrap_or(latency(port) + latency(map.peer[port] as usize)).max(Time::from_ns(10))
        };
        let frame_time = |port: usize| setup.clock.duration(params.frame_size(), link(port).rate);
        // A link shorter than its frames must not carry nothing else.
        let period = |port: usize| {
            let frame = frame_time(port).0;
            params.period.map_or((hop_rtt(port).0 / 2).max(8 * frame), |period| period.0.max(2 * frame))
        };
        let period = |port: usize| Time(period(port));
        let mut feedbacks: Vec<Time> = (0..map.count()).map(|port| hop_rtt(port) + period(port)).collect();
        let mut rates: Vec<Rate> = (0..map.count()).map(|port| link(port).rate).collect();
        let (all_feedbacks, all_rates) = (feedbacks.clone(), rates.clone());
        feedbacks.sort_unstable();
        feedbacks.dedup();
        rates.sort_unstable();
        rates.dedup();
        let thresholds = feedbacks.iter().flat_map(|&time| rates.iter().map(move |&rate| rate.bytes_in(time)));

        let shape = Shape::new(params.filter.0 as u32, params.hashes);
        let ingress = (0..map.count()).map(|port| {
            let period = period(port);
            Ingress {
                filter: Counting::new(shape),
                repeats: 0,
                ticking: false,
                period,
                // Links are not in step with one another (§3.3); spread them evenly.
                phase: Time((port as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) % period.0),
                frame_time: frame_time(port),
                capacity: link(port).rate.bytes_in(period),
                row: feedbacks.binary_search(&all_feedbacks[port]).unwrap_or(0),
            }
        });
        let ingress: Vec<Ingress> = ingress.collect();
        let due = |port: usize| if forwards(map.node[port]) { ingress[port].phase } else { Time::MAX };
        let egress = (0..map.count())
            .map(|port| Egress { column: rates.binary_search(&all_rates[port]).unwrap_or(0), ..Egress::default() });
        Bfc {
            params: params.clone(),
            shape,
            pfc: Pfc::new(&pfc::Params::default(), pfc::pause_limit(graph), promised),
            tokens: map.count() as u32 * setup.classes as u32 * 2,
            express,
            overflow,
            table: Table::new(switches as usize, params.vfids, params.bucket, params.cache),
            egress: egress.collect(),
            taken: vec![0; map.count() * setup.classes as usize],
            physical: vec![Physical::default(); map.count() * setup.classes as usize * params.queues as usize],
            classes: setup.classes as u32,
            due: (0..map.count()).map(due).collect(),
            thresholds: thresholds.collect(),
            columns: rates.len(),
            plan: Plan::Apart,
            repeats: if graph.links.iter().any(|link| link.lossy()) { REPEATS } else { 1 },
            counts: Counts::default(),
            in_use: vec![0; params.queues as usize + 1],
            kilobytes: Vec::new(),
            kilobytes_to_hosts: Vec::new(),
            switch,
            ingress,
        }
    }

    /// Its name for a flow in filters: the flow's VFID, or that of its queue.
    #[inline]
    fn name(&self, vfid: u16) -> u16 {
        match self.params.assignment {
            Assignment::Dynamic => vfid,
            Assignment::Hashed => vfid % self.params.queues as u16,
        }
    }

    /// What leaves by a port in a class.
    #[inline]
    fn lane(&self, visit: &Visit) -> u32 {
        visit.out_port * self.classes + visit.class as u32
    }

    /// The port of a lane, and its queue of that number among all of the port's.
    #[inline]
    fn at(&self, lane: u32, queue: u32) -> (u32, u32) {
        (lane / self.classes, lane % self.classes * (self.params.queues + 2) + queue)
    }

    /// A queue's number in its lane.
    #[inline]
    fn local(&self, visit: &Visit) -> u32 {
        visit.queue - visit.class as u32 * (self.params.queues + 2)
    }

    #[inline]
    fn place(&self, lane: u32, queue: u32) -> usize {
        lane as usize * self.params.queues as usize + queue as usize
    }

    /// A physical queue of `lane` for a flow.
    fn assign(&mut self, core: &mut Core, lane: u32, vfid: u16) -> u16 {
        let queues = self.params.queues;
        let (port, first) = self.at(lane, 0);
        if self.params.assignment == Assignment::Hashed {
            return vfid % queues as u16;
        }
        let free = (!self.taken[lane as usize]).trailing_zeros();
        if free < queues {
            return free as u16;
        }
        let queue = match self.params.crowded {
            Crowded::Random => core.draw(port, queues as u64) as u32,
            Crowded::Shortest => {
                let length = |queue: &u32| core.queue_bytes(port, first + *queue);
                (0..queues).min_by_key(|queue| (length(queue), *queue)).unwrap_or(0)
            }
            Crowded::Unpaused => {
                let open: Vec<u32> = (0..queues).filter(|&queue| !core.queues().is_held(port, first + queue)).collect();
                match open.len() as u64 {
                    0 => core.draw(port, queues as u64) as u32,
                    many => open[core.draw(port, many) as usize],
                }
            }
        };
        queue as u16
    }

    /// Whether a flow's queue is longer than what keeps it busy until a resume takes effect:
    /// Th = (HRTT + τ) · μ / N (§3.4).
    #[inline]
    fn over(&self, core: &Core, in_port: u32, lane: u32, queue: u32) -> bool {
        let masks = core.queues();
        let (out_port, queue) = self.at(lane, queue);
        // A held queue computes as if it were not; the high-priority queue does not count.
        let express = |class: u32| masks.is_filled(out_port, class * (self.params.queues + 2) + self.express) as u32;
        let active = masks.active(out_port) + masks.is_held(out_port, queue) as u32
            - (0..self.classes).map(express).sum::<u32>();
        let row = self.ingress[in_port as usize].row;
        let threshold = self.thresholds[row * self.columns + self.egress[out_port as usize].column];
        core.queue_bytes(out_port, queue) * active.max(1) as u64 > threshold
    }

    fn pause(&mut self, core: &mut Core, id: EntryId) {
        let entry = &mut self.table[id];
        let before = std::mem::replace(&mut entry.state, State::Paused);
        if before != State::Running {
            return;
        }
        let (in_port, vfid, lane, queue, turn) =
            (entry.in_port, entry.vfid, entry.lane, entry.queue as u32, entry.turn);
        let name = self.name(vfid);
        self.counts.pauses += 1;
        let ingress = &mut self.ingress[in_port as usize];
        ingress.filter.insert(name);
        ingress.repeats = self.repeats;
        self.counts.filter_peak = self.counts.filter_peak.max(ingress.filter.len() as u64);
        self.tick_later(core, in_port);
        if self.params.resume == Resume::All {
            let place = self.place(lane, queue);
            self.physical[place].list.push_back((id, turn));
        }
    }

    fn resume(&mut self, core: &mut Core, id: EntryId) {
        let entry = &mut self.table[id];
        entry.state = State::Running;
        let (in_port, vfid, packets) = (entry.in_port, entry.vfid, entry.packets);
        let name = self.name(vfid);
        self.counts.resumes += 1;
        let ingress = &mut self.ingress[in_port as usize];
        ingress.filter.remove(name);
        ingress.repeats = self.repeats;
        self.tick_later(core, in_port);
        if packets == 0 {
            let switch = self.switch[core.port(in_port).node as usize];
            self.table.remove(switch, id);
        }
    }

    /// Makes sure that the next frame at `port` is sent.
    fn tick_later(&mut self, core: &mut Core, port: u32) {
        let ingress = &mut self.ingress[port as usize];
        if !ingress.ticking {
            ingress.ticking = true;
            let (period, phase) = (ingress.period.0, ingress.phase.0);
            let next = phase + (core.now().0 + period - phase) / period * period;
            core.set_timer(Time(next), self.tokens + port * 2);
        }
    }

    fn tick(&mut self, core: &mut Core, port: u32) {
        let ingress = &mut self.ingress[port as usize];
        ingress.ticking = false;
        if ingress.repeats > 0 || !ingress.filter.is_empty() {
            ingress.repeats = ingress.repeats.saturating_sub(1);
            self.due[port as usize] = core.now() + ingress.period;
            self.counts.frames += 1;
            self.counts.frame_bytes += self.params.frame_size();
            self.counts.capacity_bytes += ingress.capacity;
            core.send_payload(port, self.params.frame_size() as u16, 0, ingress.filter.snapshot());
            self.tick_later(core, port);
        }
    }

    /// A flow of the queue may be resumed when its turn comes (§3.5).
    fn list(&mut self, core: &mut Core, place: usize, id: EntryId) {
        self.table[id].state = State::Listed;
        let turn = self.table[id].turn;
        self.physical[place].list.push_back((id, turn));
        self.resume_next(core, place);
    }

    /// Resumes the first flow on a queue's list if the queue is short and it is time, and otherwise when it is.
    ///
    /// The paper has flows leave the list whatever the queue has become meanwhile. With many flows on it that would feed the
    /// queue faster than it drains, against the bound of two hop BDPs that §4.3 reports.
    fn resume_next(&mut self, core: &mut Core, place: usize) {
        let (lane, queue) = (place as u32 / self.params.queues, place as u32 % self.params.queues);
        while let Some(&(id, turn)) = self.physical[place].list.front() {
            let stale = self.table[id].turn != turn || self.table[id].state != State::Listed;
            if !stale {
                if self.physical[place].waiting || self.over(core, self.table[id].in_port, lane, queue) {
                    return;
                }
                let physical = &mut self.physical[place];
                if core.now() < physical.next_resume {
                    physical.waiting = true;
                    return core.set_timer(physical.next_resume, self.tokens + place as u32 * 2 + 1);
                }
                physical.next_resume = core.now() + self.ingress[self.table[id].in_port as usize].period;
                self.resume(core, id);
            }
            self.physical[place].list.pop_front();
        }
    }

    /// Resumes all paused flows of a queue.
    fn resume_all(&mut self, core: &mut Core, place: usize) {
        for (id, turn) in std::mem::take(&mut self.physical[place].list) {
            if self.table[id].turn == turn && self.table[id].state == State::Paused {
                self.resume(core, id);
            }
        }
    }

    /// Holds a queue whose first packet is of a paused flow, and lets any other go on.
    #[inline]
    fn look(&mut self, core: &mut Core, port: u32, queue: u32) {
        let received = &self.egress[port as usize].received;
        let mut hold = false;
        if received.any()
            && let Some(head) = core.head(port, queue)
        {
            let name = self.name(core.packet(head).tag);
            hold = received.pauses(self.shape, name);
            self.counts.lookups += 1;
            self.counts.false_positives += (hold && !received.really(self.shape, name)) as u64;
        }
        core.hold_queue(port, queue, hold);
    }

    /// Holds the paused ones of a NIC's flows.
    fn look_at_flows(&mut self, core: &mut Core, port: u32) {
        for flow in core.flows_at(port).to_vec() {
            let name = self.name(core.flow_tag(flow));
            let received = &self.egress[port as usize].received;
            let hold = received.pauses(self.shape, name);
            self.counts.lookups += received.any() as u64;
            self.counts.false_positives += (hold && !received.really(self.shape, name)) as u64;
            core.hold_flow(flow, hold);
        }
    }

    fn look_at_all(&mut self, core: &mut Core, port: u32) {
        if core.port(port).host {
            self.look_at_flows(core, port);
        }
        if !core.port(port).has_queues() {
            return;
        }
        let each = self.params.queues + 2;
        let filled: Vec<u32> = core.queues().all_filled(port).filter(|&queue| queue % each != self.express).collect();
        filled.into_iter().for_each(|queue| self.look(core, port, queue));
    }
}

impl FlowControl for Bfc {
    fn lossless(&self) -> bool {
        self.pfc.lossless()
    }

    fn in_order(&self) -> bool {
        // §3.8: a flow that finds room in the table again may overtake its own packets in the overflow queue.
        self.counts.overflows == 0
    }

    fn tag(&self, tuple: &Tuple) -> u16 {
        (tuple.hash(VFID_SEED) % self.params.vfids) as u16
    }

    fn flow_started(&mut self, core: &mut Core, port: u32, flow: u32) {
        let name = self.name(core.flow_tag(flow));
        if self.egress[port as usize].received.pauses(self.shape, name) {
            core.hold_flow(flow, true);
        }
    }

    fn flow_moved(&mut self, core: &mut Core, port: u32, flow: u32) {
        // What the neighbour at the other port said is no longer about this flow.
        let name = self.name(core.flow_tag(flow));
        let hold = self.egress[port as usize].received.pauses(self.shape, name);
        core.hold_flow(flow, hold);
    }

    #[inline]
    fn queue(&mut self, core: &mut Core, visit: &Visit) -> u32 {
        let packet = core.packet(visit.packet);
        let (vfid, first, data) = (packet.tag, packet.flags & flag::FIRST != 0, packet.kind == PacketKind::Data);
        let (in_port, lane, first_queue) = (visit.in_port, self.lane(visit), self.at(visit.class as u32, 0).1);
        self.plan = Plan::Apart;
        // ACKs among the data are nobody's flow.
        if !data {
            return first_queue + self.express;
        }
        let switch = self.switch[core.port(in_port).node as usize];
        let queue = match self.table.find(switch, vfid, in_port, lane) {
            Some(id) => {
                let queue = match self.table[id].queue {
                    NO_QUEUE => self.assign(core, lane, vfid),
                    queue => queue,
                };
                self.plan = Plan::With(id, queue);
                queue as u32
            }
            // Not paused and nothing queued (§3.7).
            None if first && self.params.high_priority => {
                self.counts.express += 1;
                self.express
            }
            None if !self.table.has_room(switch, vfid) => self.overflow,
            None => {
                let queue = self.assign(core, lane, vfid);
                self.plan = Plan::First(queue);
                queue as u32
            }
        };
        first_queue + queue
    }

    #[inline]
    fn enqueued(&mut self, core: &mut Core, visit: &Visit) {
        self.pfc.enqueued(core, visit);
        let &Visit { packet, in_port, out_port, queue: number, .. } = visit;
        let lane = self.lane(visit);
        let alone = core.head(out_port, number) == Some(packet);
        *core.word(packet) = NONE;
        let (id, queue) = match self.plan {
            Plan::Apart if self.local(visit) == self.overflow => {
                self.counts.overflows += 1;
                if alone {
                    self.look(core, out_port, number);
                }
                return;
            }
            Plan::Apart => return,
            Plan::With(id, queue) => (id, queue),
            Plan::First(queue) => {
                let switch = self.switch[core.port(in_port).node as usize];
                self.counts.insertions += 1;
                let flow = core.packet(packet).flow;
                (self.table.insert(switch, core.packet(packet).tag, in_port, lane, flow), queue)
            }
        };
        *core.word(packet) = id;
        let flow = core.packet(packet).flow;
        let entry = &mut self.table[id];
        entry.packets += 1;
        // Two flows with the same VFID and way are one to this switch.
        self.counts.vfid_collisions += (std::mem::replace(&mut entry.flow, flow) != flow) as u64;
        if entry.queue == NO_QUEUE {
            entry.queue = queue;
            let place = self.place(lane, queue as u32);
            self.physical[place].flows += 1;
            self.taken[lane as usize] |= 1 << queue;
            self.counts.assignments += 1;
            self.counts.collisions += (self.physical[place].flows > 1) as u64;
        }
        if alone {
            self.look(core, out_port, number);
        }
        if self.table[id].state != State::Paused && self.over(core, in_port, lane, queue as u32) {
            self.pause(core, id);
        }
    }

    #[inline]
    fn dequeued(&mut self, core: &mut Core, visit: &Visit) {
        self.pfc.dequeued(core, visit);
        let &Visit { packet, in_port, out_port, queue: number, .. } = visit;
        let (lane, queue) = (self.lane(visit), self.local(visit));
        if queue == self.express {
            return;
        }
        // The next packet may be of another flow.
        if self.egress[out_port as usize].received.any() || core.queues().is_held(out_port, number) {
            self.look(core, out_port, number);
        }
        let id = *core.word(packet);
        if id == NONE {
            return;
        }
        let place = self.place(lane, queue);
        let entry = &mut self.table[id];
        entry.packets -= 1;
        let (last, state) = (entry.packets == 0, entry.state);
        if last {
            entry.queue = NO_QUEUE;
            self.physical[place].flows -= 1;
            if self.physical[place].flows == 0 {
                self.taken[lane as usize] &= !(1 << queue);
            }
            if state == State::Running {
                let switch = self.switch[core.port(in_port).node as usize];
                self.table.remove(switch, id);
            }
        }
        match self.params.resume {
            // A flow with nothing queued will not ask again here whether its queue is short: it waits on the list for that.
            Resume::Paced if state == State::Paused && (last || !self.over(core, in_port, lane, queue)) => {
                self.list(core, place, id);
            }
            Resume::Paced if !self.physical[place].list.is_empty() => self.resume_next(core, place),
            Resume::All if !self.physical[place].list.is_empty() && !self.over(core, in_port, lane, queue) => {
                self.resume_all(core, place);
            }
            _ => {}
        }
    }

    fn frame(&mut self, core: &mut Core, port: u32, frame: &Packet) {
        if frame.flags & flag::PAYLOAD == 0 {
            return self.pfc.frame(core, port, frame);
        }
        let content = core.take_payload(frame);
        self.egress[port as usize].received = Received::new(content, self.shape);
        self.look_at_all(core, port);
    }

    fn receiver_full(&mut self, core: &mut Core, port: u32, full: bool) {
        self.pfc.receiver_full(core, port, full);
    }

    fn timer(&mut self, core: &mut Core, token: u32) {
        let Some(own) = token.checked_sub(self.tokens) else { return self.pfc.timer(core, token) };
        if own.is_multiple_of(2) {
            return self.tick(core, own / 2);
        }
        self.physical[own as usize / 2].waiting = false;
        self.resume_next(core, own as usize / 2);
    }

    fn link_lost(&mut self, core: &mut Core, port: u32) {
        self.pfc.link_lost(core, port);
        self.egress[port as usize].received = Received::default();
        self.look_at_all(core, port);
    }

    #[inline]
    fn lag(&mut self, core: &Core, port: u32) -> Time {
        let (now, due) = (core.now(), self.due[port as usize]);
        if now < due {
            return Time::ZERO;
        }
        // The latest frame that was due; it went as soon as the link was free.
        let ingress = &self.ingress[port as usize];
        let frames = (now.0 - due.0) / ingress.period.0 + 1;
        self.counts.frame_bytes += frames * self.params.frame_size();
        self.counts.capacity_bytes += frames * ingress.capacity;
        let due = Time(now.0 - (now.0 - due.0) % ingress.period.0);
        self.due[port as usize] = due + ingress.period;
        (due.max(core.port(port).free_at) + ingress.frame_time).saturating_sub(now)
    }

    fn observe(&mut self, core: &Core) {
        for (lane, taken) in (0..).zip(&self.taken).filter(|(_, taken)| **taken != 0) {
            self.in_use[taken.count_ones() as usize] += 1;
            let shared = |queue: u32| self.physical[self.place(lane, queue)].flows > 1;
            self.counts.ports_sharing += (0..self.params.queues).any(shared) as u64;
            self.counts.ports_busy += 1;
            for queue in (0..self.params.queues).filter(|queue| taken >> queue & 1 == 1) {
                let flows = self.physical[self.place(lane, queue)].flows as u64;
                self.counts.flows_queued += flows;
                self.counts.flows_sharing += if flows > 1 { flows } else { 0 };
                let (port, queue) = self.at(lane, queue);
                let kilobytes = core.queue_bytes(port, queue).div_ceil(1000) as usize;
                count(&mut self.kilobytes, kilobytes);
                if core.port(core.port(port).peer).host {
                    count(&mut self.kilobytes_to_hosts, kilobytes);
                }
            }
        }
    }

    fn merge(&mut self, other: Bfc) {
        let (c, o) = (&mut self.counts, &other.counts);
        c.assignments += o.assignments;
        c.collisions += o.collisions;
        c.pauses += o.pauses;
        c.resumes += o.resumes;
        c.frames += o.frames;
        c.lookups += o.lookups;
        c.false_positives += o.false_positives;
        c.insertions += o.insertions;
        c.vfid_collisions += o.vfid_collisions;
        c.frame_bytes += o.frame_bytes;
        c.capacity_bytes += o.capacity_bytes;
        c.overflows += o.overflows;
        c.express += o.express;
        c.filter_peak = c.filter_peak.max(o.filter_peak);
        c.flows_queued += o.flows_queued;
        c.flows_sharing += o.flows_sharing;
        c.ports_busy += o.ports_busy;
        c.ports_sharing += o.ports_sharing;
        self.table.merge(&other.table);
        add_samples(&mut self.in_use, &other.in_use);
        add_samples(&mut self.kilobytes, &other.kilobytes);
        add_samples(&mut self.kilobytes_to_hosts, &other.kilobytes_to_hosts);
        self.pfc.merge(other.pfc);
    }

    fn counters(&self) -> Vec<Counter> {
        let c = &self.counts;
        let mut all = vec![
            ("queue_assignments", c.assignments),
            ("queue_collisions", c.collisions),
            ("flows_queued", c.flows_queued),
            ("flows_sharing", c.flows_sharing),
            ("ports_busy", c.ports_busy),
            ("ports_sharing", c.ports_sharing),
            ("flows_paused", c.pauses),
            ("flows_resumed", c.resumes),
            ("filter_frames", c.frames),
            ("filter_peak", c.filter_peak),
            ("filter_lookups", c.lookups),
            ("filter_false_positives", c.false_positives),
            ("pause_frame_bytes", c.frame_bytes),
            ("pause_frame_capacity_bytes", c.capacity_bytes),
            ("table_insertions", c.insertions),
            ("table_peak", self.table.peak as u64),
            ("table_cache_uses", self.table.cache_uses),
            ("vfid_collisions", c.vfid_collisions),
            ("physical_queues_in_use_p99", quantile(&self.in_use, 0.99)),
            ("physical_queue_p99_bytes", quantile(&self.kilobytes, 0.99) * 1000),
            ("physical_queue_to_hosts_p99_bytes", quantile(&self.kilobytes_to_hosts, 0.99) * 1000),
            ("overflow_packets", c.overflows),
            ("high_priority_packets", c.express),
        ];
        all.extend(self.pfc.counters());
        all
    }

    fn histograms(&self) -> Vec<Histogram> {
        vec![
            ("queues_in_use", self.in_use.clone()),
            ("physical_queue_kb", self.kilobytes.clone()),
            ("physical_queue_to_hosts_kb", self.kilobytes_to_hosts.clone()),
        ]
    }
}
