//! Source Flow Control: a congested switch notifies the senders themselves how long to wait.
//!
//! A data packet that is about to join a queue deeper than a threshold makes the switch send a small routed packet
//! (BTS) back to the packet's sender, with the time that the queue needs to drain to a target depth (§3.2, §3.3). The
//! sender pauses that flow for so long. A Bloom filter keeps a switch from repeating itself. The senders' ToRs
//! remember what they forward, and answer later packets to the same congested host themselves, one hop from the
//! sender; they may also guess from the traffic they send towards one host (§3.4). PFC may stay underneath.
//!
//! Nothing lasts unless it is renewed: a BTS that gets lost costs a signal, never a flow.

mod cache;
mod estimator;
mod filter;
mod pause;

use super::{check_frame, max, pfc, samples, sum};
use cache::Cache;
use engine::{Bytes, Misfit, Rate, Time};
use estimator::Estimator;
use fabric::axes::flow_control::{self, FlowControl, FlowControlDef, Headroom, Job, Layout, Over, Visit};
use fabric::axes::{Counter, Definition, Histogram};
use fabric::deadlock::Waits;
use fabric::id::{ClassId, FlowId, NodeId, PortId, QueueId};
use fabric::packet::{Kind as PacketKind, Packet};
use fabric::probe::{Because, Subject};
use fabric::routing::PortMap;
use fabric::topology::{Graph, Kind};
use fabric::view::{NodeView, Site};
use fabric::{Outcome, Setup, message};
use filter::Filter;
use pause::{Bell, Pause};
use pfc::Pfc;
use std::collections::HashMap;
use std::sync::Arc;

engine::choice! {
    /// Which switches take part.
    pub enum Place {
        /// Those with hosts (§5.3).
        Tor = "tor",
        /// All.
        All = "all",
    }
}

engine::choice! {
    /// Where a packet finds out that its queue is too deep.
    pub enum Signal {
        /// Before it joins the queue.
        Ingress = "ingress",
        /// After it has left the queue; every packet notifies, without suppression (Fig. 1's Egress BTS).
        Egress = "egress",
    }
}

engine::choice! {
    /// How a pause reaches the sender's NIC.
    pub enum Deliver {
        /// As a BTS packet, which pauses its flow.
        Bts = "bts",
        /// As a PFC frame, into which the sender's ToR turns the BTS: it pauses the flow's whole class (SFC-P, §4).
        Pfc = "pfc",
    }
}

engine::parameters! {
    /// Parameters of SFC.
    pub struct Params {
        /// Which switches take part.
        at: Place = Place::Tor,
        /// Where a packet finds out that its queue is too deep.
        signal: Signal = Signal::Ingress,
        /// How a pause reaches the sender's NIC.
        deliver: Deliver = Deliver::Bts,
        /// A packet to a queue deeper than this makes a switch notify its sender. Auto: twice rtt times the port's rate.
        trigger: Option<Bytes> = None,
        /// Senders wait until the queue has drained to this. Auto: rtt times the port's rate.
        target: Option<Bytes> = None,
        /// Round-trip time for what is derived from it. Auto: the longest base round trip among the flows.
        rtt: Option<Time> = None,
        /// Time between resets of the filter that keeps a switch from notifying a flow again. Auto: half of rtt.
        reset: Option<Time> = None,
        /// Size of that filter.
        filter: Bytes = Bytes(8192),
        /// Its hash functions.
        hashes: u32 = 3,
        /// ToRs remember the pauses they forward, and answer later packets to the same host themselves.
        cache: bool = true,
        /// Places in the table for that.
        cache_entries: u32 = 32_768, if cache == true,
        /// ToRs estimate remote queues from the traffic that they send to a host.
        estimator: bool = false,
        /// How far the estimator looks back. Auto: rtt.
        window: Option<Time> = None, if estimator == true,
        /// Size of a BTS packet: the headers of a data packet, a UDP header and the pause time.
        packet: Bytes = Bytes(78),
        /// PFC stays underneath. Otherwise what does not fit in a buffer is dropped.
        pfc: bool = true,
    }
}

impl Definition for Params {
    fn name(&self) -> &'static str {
        "sfc"
    }
    fn about(&self) -> &'static str {
        "Source flow control: a congested switch notifies the sender of a packet how long to pause the flow; the senders' ToRs remember \
         it. With PFC underneath, lossless."
    }
    fn source(&self) -> &'static str {
        "Y. Le et al., SFC: Near-Source Congestion Signaling and Flow Control, arXiv:2305.00538, 2023"
    }
    fn control_packet(&self) -> u64 {
        self.packet.0
    }
    fn check(&self) -> Result<(), Misfit> {
        check_frame("packet", self.packet)?;
        if !(1..=8).contains(&self.hashes) {
            return Err(Misfit::new("hashes", self.hashes, "write 1 to 8"));
        }
        if !(1..=1 << 20).contains(&self.filter.0) || self.filter.0 * 8 < self.hashes as u64 {
            let help = "write a size from \"1B\" to \"1048576B\", with a bit for each hash function at least";
            return Err(Misfit::new("filter", self.filter, help));
        }
        if !(1..=1 << 20).contains(&self.cache_entries) {
            return Err(Misfit::new("cache_entries", self.cache_entries, "write 1 to 1048576"));
        }
        if let (Some(trigger), Some(target)) = (self.trigger, self.target)
            && target > trigger
        {
            return Err(Misfit::new("target", target, format!("write a size up to trigger, which is \"{trigger}\"")));
        }
        for (name, time) in [("rtt", self.rtt), ("reset", self.reset), ("window", self.window)] {
            if time.is_some_and(|time| !(LEAST..=Time::from_ms(10_000)).contains(&time)) {
                return Err(Misfit::new(name, time.unwrap_or_default(), "write \"10ns\" to \"10s\", or \"auto\""));
            }
        }
        Ok(())
    }
}

impl FlowControlDef for Params {
    fn layout(&self, _: &Graph) -> Result<Layout, Misfit> {
        Ok(Layout {
            headroom: self.pfc.then(Headroom::default),
            // A pause may have to wait for a BTS that is being sent.
            frame: self.packet.0.max(pfc::Params::default().frame.0),
            stops_for_hosts: self.pfc,
            ..Layout::default()
        })
    }
    fn waits(&self, setup: &Setup) -> Waits {
        match self.pfc {
            true => pfc::waits(setup),
            false => Waits::Never("senders wait for a time that runs out by itself, and what does not fit is dropped"),
        }
    }
    fn switch_state(&self, ports: u64, classes: u64) -> u64 {
        // A remembered destination is a time of four bytes, as is the estimator's count for each.
        let cache = if self.cache { self.cache_entries as u64 * 4 } else { 0 };
        let pfc = if self.pfc { pfc::Params::default().switch_state(ports, classes) } else { 0 };
        self.filter.0 + cache + pfc
    }
    fn pause_in(&self, frame: &Packet) -> Option<(u8, bool)> {
        pfc::pause_beneath(frame)
    }
    fn run(&self, job: Job<'_>) -> Outcome {
        let upper = Sfc::new(self, &job.setup);
        match self.pfc {
            true => {
                let lower = Pfc::beneath(&job.setup.graph, job.promised);
                job.run(Over { upper, lower })
            }
            false => job.run(upper),
        }
    }
}

/// The shortest time that a parameter can have.
const LEAST: Time = Time::from_ns(10);

message! {
    /// What a BTS says.
    pub struct Bts {
        /// The pause in microseconds (§3.3).
        us: u32,
        /// The congested queue faces a host, so that all traffic to that host passes it (§3.4).
        cacheable: bool,
        /// It has become a PFC frame for the NIC.
        frame: bool,
        /// The switch that sent it.
        from: NodeId,
    }
}

impl Bts {
    fn pause(&self) -> Time {
        Time(self.us as u64 * MICROSECOND)
    }
}

const MICROSECOND: u64 = 1_000_000;

/// T = (depth − target) / R in whole microseconds (§3.3), rounded down: longer than that, and the link could run dry.
fn drain(depth: u64, target: u64, rate: Rate) -> u32 {
    let bits = depth.saturating_sub(target) as u128 * 8;
    u32::try_from(bits * 1_000_000 / rate.0.max(1) as u128).unwrap_or(u32::MAX)
}

/// An egress port.
#[derive(Clone, Copy)]
struct Egress {
    rate: Rate,
    trigger: u64,
    target: u64,
    to_host: bool,
}

/// A switch that takes part.
struct Switch {
    ports: Vec<Egress>,
    notified: Filter,
    cache: Cache,
    estimator: Estimator,
}

/// A class of a NIC under SFC-P.
#[derive(Clone, Default)]
struct Lane {
    pause: Pause,
    /// The flows that it stops.
    flows: Vec<FlowId>,
}

/// What a BTS was sent for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Cause {
    Estimator,
    Cache,
    Queue,
}

#[derive(Default)]
struct Counts {
    /// BTS packets by cause.
    sent: [u64; 3],
    suppressed: u64,
    /// Packets to a host that is remembered as congested.
    cache_hits: u64,
    cached: u64,
    pauses: u64,
    replaced: u64,
    paused: Time,
}

/// The mechanism: what all nodes share.
#[derive(Clone)]
pub struct Sfc {
    params: Params,
    rtt: Time,
    /// By host: the switch port that its first link leads to, of which the estimator knows the thresholds.
    facing: Arc<[Option<Egress>]>,
}

/// What a node keeps.
pub struct Node {
    /// At a switch that takes part.
    switch: Option<Switch>,
    /// At a host: its flows that are stopped.
    flows: HashMap<FlowId, Pause>,
    /// At a host, under SFC-P: by port and class.
    lanes: Vec<Lane>,
    counts: Counts,
    /// BTS packets by microseconds of pause, up to a millisecond.
    pauses_us: Vec<u64>,
}

impl Sfc {
    /// SFC over the fabric of a setup.
    pub fn new(params: &Params, setup: &Setup) -> Sfc {
        let graph = &setup.graph;
        let map = PortMap::new(graph);
        let longest = setup.flows.iter().map(|flow| flow.base_rtt).max().unwrap_or_default();
        let rtt = params.rtt.unwrap_or(longest).max(LEAST);
        let facing = (0..graph.nodes.len() as u32).map(|node| {
            let port = map.of(node).next().filter(|_| graph.nodes[node as usize].kind == Kind::Host)?;
            Some(egress(params, rtt, map.rate(graph, map.peer[port as usize]), true))
        });
        Sfc { params: params.clone(), rtt, facing: facing.collect() }
    }

    fn window(&self) -> Time {
        self.params.window.unwrap_or(self.rtt)
    }

    fn switch(&self, site: &Site<'_>) -> Switch {
        let reset = self.params.reset.unwrap_or(Time(self.rtt.0 / 2)).max(LEAST);
        let egress = |port| egress(&self.params, self.rtt, site.rate(port), site.faces_host(port));
        Switch {
            ports: site.ports().map(egress).collect(),
            notified: Filter::new(self.params.filter.0, self.params.hashes, reset),
            cache: Cache::new(self.params.cache_entries),
            estimator: Estimator::new(self.window()),
        }
    }

    /// Whether the traffic that comes in to a packet's destination through this switch makes a queue far away that is
    /// too deep, and what pause that queue asks for (§3.4).
    fn estimate(&self, estimator: &mut Estimator, packet: &Packet, now: Time) -> u32 {
        let bytes = estimator.add(packet.dst, packet.class, packet.size as u64, now);
        let Some(far) = &self.facing[packet.dst as usize] else { return 0 };
        let depth = bytes.saturating_sub(far.rate.bytes_in(self.window()));
        if depth > far.trigger { drain(depth, far.target, far.rate) } else { 0 }
    }

    /// A data packet is about to join `queue` (Algorithm 1, SfcIngress).
    #[inline]
    fn arriving(&self, node: &mut Node, at: &mut NodeView<'_>, visit: &Visit, queue: QueueId) {
        let Some(switch) = &mut node.switch else { return };
        let packet = at.packet(visit.packet);
        if packet.kind != PacketKind::Data {
            return;
        }
        let egress = switch.ports[visit.out_port.index()];
        let depth = at.queue_bytes(visit.out_port, queue);
        let deep = depth > egress.trigger && self.params.signal == Signal::Ingress;
        let mut cached = 0;
        if self.params.cache {
            let left = switch.cache.left(packet.tuple.destination, visit.class.0, at.now());
            cached = (left.0 / MICROSECOND).min(u32::MAX as u64) as u32;
        }
        let mut estimated = 0;
        // Only traffic of this switch's own hosts, bound for other switches.
        if self.params.estimator && switch.ports[visit.in_port.index()].to_host && !egress.to_host {
            estimated = self.estimate(&mut switch.estimator, packet, at.now());
        }
        if deep || cached > 0 || estimated > 0 {
            self.trigger(node, at, visit, depth, cached, estimated);
        }
    }

    /// A packet has found congestion here or is known to meet it: notify its sender, unless that was done lately.
    fn trigger(&self, node: &mut Node, at: &mut NodeView<'_>, visit: &Visit, depth: u64, cached: u32, estimated: u32) {
        let Some(switch) = &mut node.switch else { return };
        let egress = switch.ports[visit.out_port.index()];
        let here = drain(depth, egress.target, egress.rate);
        let reasons = [(here, Cause::Queue), (cached, Cause::Cache), (estimated, Cause::Estimator)];
        let (us, cause) = reasons.into_iter().max().unwrap_or((0, Cause::Queue));
        // A pause that rounds to nothing says nothing.
        if us == 0 {
            return;
        }
        node.counts.cache_hits += (cached > 0) as u64;
        let packet = *at.packet(visit.packet);
        if switch.notified.insert(&packet.tuple, at.now()) {
            node.counts.suppressed += 1;
            return;
        }
        let because = match cause {
            Cause::Queue => Because::Queue { port: visit.out_port, queue: visit.queue },
            // It is known of the link to the receiver, or of one before it.
            Cause::Cache | Cause::Estimator => Because::LastHop { host: NodeId(packet.dst) },
        };
        at.orders_sender(FlowId(packet.flow), because);
        self.send(node, at, egress, &packet, us, cause);
    }

    /// Builds a BTS for the sender of a packet that leaves by `egress`, and sends it (Algorithm 1,
    /// SfcEgress).
    fn send(&self, node: &mut Node, at: &mut NodeView<'_>, egress: Egress, packet: &Packet, us: u32, cause: Cause) {
        let Some(back) = at.path_back(packet) else { return };
        node.counts.sent[cause as usize] += 1;
        let bin = us.min(1000) as usize;
        if node.pauses_us.len() <= bin {
            node.pauses_us.resize(bin + 1, 0);
        }
        node.pauses_us[bin] += 1;
        let (size, frame) = self.form(at.faces_host(back));
        let bts = Bts { us, cacheable: egress.to_host, frame, from: at.node() };
        at.send_signal(back, packet, size, bts);
    }

    /// The size of a BTS that leaves to a host or to a switch, and whether it is a PFC frame there.
    fn form(&self, to_host: bool) -> (u16, bool) {
        match self.params.deliver == Deliver::Pfc && to_host {
            true => (pfc::Params::default().frame.0 as u16, true),
            false => (self.params.packet.0 as u16, false),
        }
    }
}

/// A port of a switch with its thresholds.
fn egress(params: &Params, rtt: Time, rate: Rate, to_host: bool) -> Egress {
    let bdp = rate.bytes_in(rtt);
    let target = params.target.map_or(bdp, |target| target.0);
    let trigger = params.trigger.map_or((2 * bdp).max(target), |trigger| trigger.0);
    Egress { rate, trigger, target: target.min(trigger), to_host }
}

impl Node {
    /// A class of a NIC, under SFC-P.
    fn lane(&mut self, at: &NodeView<'_>, port: PortId, class: ClassId) -> Option<&mut Lane> {
        self.lanes.get_mut(port.index() * at.classes() as usize + class.index())
    }

    /// A NIC is to stop a class (SFC-P).
    fn stop_class(&mut self, at: &mut NodeView<'_>, port: PortId, class: ClassId, end: Time) {
        let Some(lane) = self.lane(at, port, class) else { return };
        let held = lane.pause.holds();
        if !held {
            lane.flows.extend(at.flows_at(port).filter(|&flow| at.flow_class(flow) == class));
            lane.flows.iter().for_each(|&flow| at.hold_flow(flow, true));
        }
        if let Some(time) = lane.pause.set(at.now(), end) {
            at.set_timer(port, class.0 as u32, time);
        }
        self.count_pause(held);
    }

    /// A sender is to stop a flow.
    fn stop_flow(&mut self, at: &mut NodeView<'_>, flow: FlowId, end: Time) {
        if at.flow_done(flow) {
            return;
        }
        let pause = self.flows.entry(flow).or_default();
        let held = pause.holds();
        if !held {
            at.hold_flow(flow, true);
        }
        if let Some(time) = pause.set(at.now(), end) {
            at.set_flow_timer(flow, time);
        }
        self.count_pause(held);
    }

    fn count_pause(&mut self, held: bool) {
        if held {
            self.counts.replaced += 1;
        } else {
            self.counts.pauses += 1;
        }
    }
}

impl FlowControl for Sfc {
    type Node = Node;
    type Frame = ();
    type Signal = Bts;

    fn node(&self, site: &Site<'_>) -> Node {
        let takes_part =
            !site.is_host() && (self.params.at == Place::All || site.ports().any(|port| site.faces_host(port)));
        let lanes = site.ports().len() * self.timers(site.setup.classes) as usize;
        Node {
            switch: takes_part.then(|| self.switch(site)),
            flows: HashMap::new(),
            lanes: vec![Lane::default(); if site.is_host() { lanes } else { 0 }],
            counts: Counts::default(),
            pauses_us: Vec::new(),
        }
    }

    /// One for each class of a NIC under SFC-P.
    fn timers(&self, classes: u8) -> u32 {
        if self.params.deliver == Deliver::Pfc { classes as u32 } else { 0 }
    }

    fn flow_started(&self, node: &mut Node, at: &mut NodeView<'_>, port: PortId, flow: FlowId) {
        let class = at.flow_class(flow);
        if let Some(lane) = node.lane(at, port, class)
            && lane.pause.holds()
        {
            lane.flows.push(flow);
            at.hold_flow(flow, true);
        }
    }

    #[inline]
    fn queue(&self, node: &mut Node, at: &mut NodeView<'_>, visit: &Visit) -> QueueId {
        let queue = at.hashed_queue(visit.packet);
        self.arriving(node, at, visit, queue);
        queue
    }

    #[inline]
    fn dequeued(&self, node: &mut Node, at: &mut NodeView<'_>, visit: &Visit) {
        if self.params.signal != Signal::Egress {
            return;
        }
        let Some(switch) = &node.switch else { return };
        let egress = switch.ports[visit.out_port.index()];
        let depth = at.queue_bytes(visit.out_port, visit.queue);
        let us = drain(depth, egress.target, egress.rate);
        let packet = *at.packet(visit.packet);
        if depth > egress.trigger && us > 0 && packet.kind == PacketKind::Data && at.is_up(visit.out_port) {
            at.orders_sender(FlowId(packet.flow), Because::Queue { port: visit.out_port, queue: visit.queue });
            self.send(node, at, egress, &packet, us, Cause::Queue);
        }
    }

    fn passing(
        &self,
        node: &mut Node,
        at: &mut NodeView<'_>,
        _: PortId,
        out_port: PortId,
        signal: &mut flow_control::Signal<Bts>,
    ) {
        let Some(switch) = &mut node.switch else { return };
        if signal.message.cacheable && self.params.cache {
            // Its source is the congested host.
            let end = at.now() + signal.message.pause();
            node.counts.cached += 1;
            switch.cache.store(signal.tuple.source, signal.class.0, at.now(), end);
        }
        (signal.size, signal.message.frame) = self.form(switch.ports[out_port.index()].to_host);
    }

    fn signal(&self, node: &mut Node, at: &mut NodeView<'_>, port: PortId, signal: flow_control::Signal<Bts>) {
        let end = at.now() + signal.message.pause();
        if signal.message.frame {
            node.stop_class(at, port, signal.class, end);
            if let Some(lane) = node.lane(at, port, signal.class) {
                let subject = Subject::flow(signal.flow);
                lane.flows.iter().for_each(|&flow| at.held_for(flow, Some(signal.message.from), subject));
            }
        } else {
            node.stop_flow(at, signal.flow, end);
            at.held_by(signal.flow, signal.message.from);
        }
    }

    fn flow_timer(&self, node: &mut Node, at: &mut NodeView<'_>, flow: FlowId) {
        // Without a pause the timer is of one that was brought forward and is over.
        let Some(pause) = node.flows.get_mut(&flow) else { return };
        match pause.ring(at.now()) {
            Bell::Stale => {}
            Bell::Later(time) => at.set_flow_timer(flow, time),
            Bell::Over(after) => {
                node.flows.remove(&flow);
                node.counts.paused += after;
                at.hold_flow(flow, false);
            }
        }
    }

    fn timer(&self, node: &mut Node, at: &mut NodeView<'_>, port: PortId, timer: u32) {
        let Some(lane) = node.lane(at, port, ClassId(timer as u8)) else { return };
        match lane.pause.ring(at.now()) {
            Bell::Stale => {}
            Bell::Later(time) => at.set_timer(port, timer, time),
            Bell::Over(after) => {
                lane.flows.drain(..).for_each(|flow| at.hold_flow(flow, false));
                node.counts.paused += after;
            }
        }
    }

    fn counters(&self, nodes: &[&Node]) -> Vec<Counter> {
        let sent = |name, cause: Cause| sum(name, nodes, |node| node.counts.sent[cause as usize]);
        let peak = |name, of: fn(&Switch) -> u64| max(name, nodes, |node| node.switch.as_ref().map_or(0, of));
        let paused: u64 = nodes.iter().map(|node| node.counts.paused.0).sum();
        vec![
            sent("bts_from_queue", Cause::Queue),
            sent("bts_from_cache", Cause::Cache),
            sent("bts_from_estimator", Cause::Estimator),
            sum("bts_suppressed", nodes, |node| node.counts.suppressed),
            sum("bts_cached", nodes, |node| node.counts.cached),
            sum("cache_hits", nodes, |node| node.counts.cache_hits),
            peak("cache_peak", |switch| switch.cache.peak),
            peak("filter_peak", |switch| switch.notified.peak),
            sum("sender_pauses", nodes, |node| node.counts.pauses),
            sum("sender_pauses_replaced", nodes, |node| node.counts.replaced),
            // Rounded once, not at every host.
            Counter::sum("sender_paused_us", paused / MICROSECOND),
        ]
    }

    fn histograms(&self, nodes: &[&Node]) -> Vec<Histogram> {
        vec![("bts_pause_us", samples(nodes, |node| &node.pauses_us))]
    }
}

#[cfg(test)]
mod model;
#[cfg(test)]
mod tests;
