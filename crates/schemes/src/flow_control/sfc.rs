//! Source Flow Control: a congested switch tells the senders themselves how long to wait.
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

use super::{Choice, Controls, Report, add_samples, check_frame, pfc, run_with};
use cache::Cache;
use engine::{Bytes, Misfit, Rate, Time};
use estimator::Estimator;
use fabric::deadlock::Waits;
use fabric::network::Core;
use fabric::packet::{Kind as PacketKind, Packet};
use fabric::routing::PortMap;
use fabric::scheme::{Counter, FlowControl, Histogram, Visit};
use fabric::topology::Kind;
use fabric::{Outcome, Setup};
use filter::Filter;
use pause::{Bell, Pause};
use pfc::Pfc;

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
        /// After it has left the queue; every packet tells, without suppression (Fig. 1's Egress BTS).
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
        /// A packet to a queue deeper than this makes a switch tell its sender to wait. Auto: twice rtt times the
        /// port's rate.
        trigger: Option<Bytes> = None,
        /// Senders wait until the queue has drained to this. Auto: rtt times the port's rate.
        target: Option<Bytes> = None,
        /// Round-trip time for what is derived from it. Auto: the longest base round trip among the flows.
        rtt: Option<Time> = None,
        /// Time between resets of the filter that keeps a switch from telling a flow again. Auto: half of rtt.
        reset: Option<Time> = None,
        /// Size of that filter.
        filter: Bytes = Bytes(8192),
        /// Its hash functions.
        hashes: u32 = 3,
        /// ToRs remember the pauses they forward, and answer later packets to the same host themselves.
        cache: bool = true,
        /// Places in the table for that.
        cache_entries: u32 = 32_768,
        /// ToRs estimate remote queues from the traffic that they send to a host.
        estimator: bool = false,
        /// How far the estimator looks back. Auto: rtt.
        window: Option<Time> = None,
        /// Size of a BTS packet: the headers of a data packet, a UDP header and the pause time.
        packet: Bytes = Bytes(78),
        /// PFC stays underneath. Otherwise what does not fit in a buffer is dropped.
        pfc: bool = true,
    }
}

impl Choice for Params {
    fn name(&self) -> &'static str {
        "sfc"
    }
    fn about(&self) -> &'static str {
        "Source flow control: a congested switch tells the sender of a packet how long to pause the flow; the senders' ToRs remember \
         it. With PFC underneath, lossless."
    }
    fn needs_headroom(&self) -> bool {
        self.pfc
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
    fn frame_size(&self) -> u64 {
        // A pause may have to wait for a BTS that is being sent.
        self.packet.0.max(pfc::Params::default().frame.0)
    }
    fn waits(&self, setup: &Setup) -> Waits {
        match self.pfc {
            true => pfc::waits(setup),
            false => Waits::Never("senders wait for a time that runs out by itself, and what does not fit is dropped"),
        }
    }
    fn stops_for_hosts(&self) -> bool {
        self.pfc
    }
    fn switch_state(&self, ports: u64, classes: u64) -> u64 {
        // A remembered destination is a time of four bytes, as is the estimator's count for each.
        let cache = if self.cache { self.cache_entries as u64 * 4 } else { 0 };
        let pfc = if self.pfc { pfc::Params::default().switch_state(ports, classes) } else { 0 };
        self.filter.0 + cache + pfc
    }
    fn pause_in(&self, frame: &Packet) -> Option<(u8, bool)> {
        Some((frame.flow as u8, frame.seq == 1))
    }
    fn run(&self, setup: Setup, promised: bool, control: &Controls<'_>, report: &mut Report<'_>) -> Outcome {
        run_with(|setup| Sfc::new(self, setup, promised), setup, control, report)
    }
}

/// The shortest time that a parameter can have.
const LEAST: Time = Time::from_ns(10);

/// What a BTS says, in the word of its packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Bts {
    /// The pause in microseconds (§3.3).
    us: u32,
    /// The congested queue faces a host, so that all traffic to that host passes it (§3.4).
    cacheable: bool,
    /// It has become a PFC frame for the NIC.
    frame: bool,
}

impl Bts {
    fn word(self) -> u64 {
        self.us as u64 | (self.cacheable as u64) << 32 | (self.frame as u64) << 33
    }
    fn read(word: u64) -> Bts {
        Bts { us: word as u32, cacheable: word >> 32 & 1 == 1, frame: word >> 33 & 1 == 1 }
    }
    fn pause(self) -> Time {
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
struct Egress {
    rate: Rate,
    trigger: u64,
    target: u64,
    to_host: bool,
}

/// A switch that takes part.
struct Switch {
    told: Filter,
    cache: Cache,
    estimator: Estimator,
}

/// A class of a NIC under SFC-P.
#[derive(Clone, Default)]
struct Lane {
    pause: Pause,
    /// The flows that it stops.
    flows: Vec<u32>,
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

/// The mechanism.
pub struct Sfc {
    params: Params,
    pfc: Option<Pfc>,
    /// The first timer token that is not PFC's; those of flows come first, those of lanes after them.
    tokens: u32,
    classes: u32,
    ports: Vec<Egress>,
    /// The switch port that a host's first link leads to, by node.
    facing: Vec<u32>,
    /// By node: the place among the switches that take part, or [`NOBODY`].
    place: Vec<u32>,
    switches: Vec<Switch>,
    window: Time,
    flows: Vec<Pause>,
    lanes: Vec<Lane>,
    counts: Counts,
    /// BTS packets by microseconds of pause, up to a millisecond.
    pauses_us: Vec<u64>,
}

const NOBODY: u32 = u32::MAX;

impl Sfc {
    /// SFC over the fabric of a setup.
    pub fn new(params: &Params, setup: &Setup, promised: bool) -> Sfc {
        let graph = &setup.graph;
        let map = PortMap::new(graph);
        let is_host = |node: u32| graph.nodes[node as usize].kind == Kind::Host;
        let to_host = |port: u32| is_host(map.node[map.peer[port as usize] as usize]);
        let longest = setup.flows.iter().map(|flow| flow.base_rtt).max().unwrap_or_default();
        let rtt = params.rtt.unwrap_or(longest).max(LEAST);
        let reset = params.reset.unwrap_or(Time(rtt.0 / 2)).max(LEAST);
        let window = params.window.unwrap_or(rtt);
        let ports = (0..map.count() as u32).map(|port| {
            let rate = graph.links[map.link[port as usize] as usize].rate;
            let bdp = rate.bytes_in(rtt);
            let target = params.target.map_or(bdp, |target| target.0);
            let trigger = params.trigger.map_or((2 * bdp).max(target), |trigger| trigger.0);
            Egress { rate, trigger, target: target.min(trigger), to_host: to_host(port) }
        });
        let takes_part = |node: u32| !is_host(node) && (params.at == Place::All || map.of(node).any(to_host));
        let mut switches = Vec::new();
        let place = (0..graph.nodes.len() as u32).map(|node| {
            if !takes_part(node) {
                return NOBODY;
            }
            switches.push(Switch {
                told: Filter::new(params.filter.0, params.hashes, reset),
                cache: Cache::new(params.cache_entries),
                estimator: Estimator::new(window),
            });
            switches.len() as u32 - 1
        });
        let place = place.collect();
        let lanes = map.count() * setup.classes as usize;
        let facing = (0..graph.nodes.len() as u32).map(|node| match map.of(node).next() {
            Some(port) => map.peer[port as usize],
            None => NOBODY,
        });
        Sfc {
            params: params.clone(),
            pfc: params.pfc.then(|| Pfc::new(&pfc::Params::default(), pfc::pause_limit(graph), promised)),
            tokens: lanes as u32 * 2,
            classes: setup.classes as u32,
            ports: ports.collect(),
            facing: facing.collect(),
            place,
            switches,
            window,
            flows: vec![Pause::default(); setup.flows.len()],
            lanes: vec![Lane::default(); if params.deliver == Deliver::Pfc { lanes } else { 0 }],
            counts: Counts::default(),
            pauses_us: Vec::new(),
        }
    }

    /// Whether the traffic that comes in to `host` through this packet's switch makes a queue far away that is too
    /// deep, and what pause that queue asks for (§3.4).
    fn estimate(&mut self, place: u32, packet: &Packet, now: Time) -> u32 {
        let switch = &mut self.switches[place as usize];
        let bytes = switch.estimator.add(packet.dst, packet.class, packet.size as u64, now);
        let Some(far) = self.ports.get(self.facing[packet.dst as usize] as usize) else { return 0 };
        let depth = bytes.saturating_sub(far.rate.bytes_in(self.window));
        if depth > far.trigger { drain(depth, far.target, far.rate) } else { 0 }
    }

    /// A data packet is about to join `queue` (Algorithm 1, SfcIngress).
    #[inline]
    fn arriving(&mut self, core: &mut Core, visit: &Visit, queue: u32) {
        let node = core.port(visit.out_port).node;
        let place = self.place[node as usize];
        if place == NOBODY || core.packet(visit.packet).kind != PacketKind::Data {
            return;
        }
        let depth = core.queue_bytes(visit.out_port, queue);
        let deep = depth > self.ports[visit.out_port as usize].trigger && self.params.signal == Signal::Ingress;
        let packet = core.packet(visit.packet);
        let mut cached = 0;
        if self.params.cache {
            let left = self.switches[place as usize].cache.left(packet.tuple.destination, visit.class, core.now());
            cached = (left.0 / MICROSECOND).min(u32::MAX as u64) as u32;
        }
        let mut estimated = 0;
        // Only traffic of this switch's own hosts, on its way to other switches.
        if self.params.estimator
            && self.ports[visit.in_port as usize].to_host
            && !self.ports[visit.out_port as usize].to_host
        {
            let packet = *packet;
            estimated = self.estimate(place, &packet, core.now());
        }
        if deep || cached > 0 || estimated > 0 {
            self.trigger(core, visit, depth, cached, estimated);
        }
    }

    /// A packet has found congestion here or is known to meet it: tell its sender, unless that was told lately.
    fn trigger(&mut self, core: &mut Core, visit: &Visit, depth: u64, cached: u32, estimated: u32) {
        let egress = &self.ports[visit.out_port as usize];
        let here = drain(depth, egress.target, egress.rate);
        let reasons = [(here, Cause::Queue), (cached, Cause::Cache), (estimated, Cause::Estimator)];
        let (us, cause) = reasons.into_iter().max().unwrap_or((0, Cause::Queue));
        // A pause that rounds to nothing says nothing.
        if us == 0 {
            return;
        }
        self.counts.cache_hits += (cached > 0) as u64;
        let packet = *core.packet(visit.packet);
        let place = self.place[core.port(visit.out_port).node as usize];
        if self.switches[place as usize].told.insert(&packet.tuple, core.now()) {
            self.counts.suppressed += 1;
            return;
        }
        self.send(core, visit.out_port, &packet, us, cause);
    }

    /// Builds a BTS for the sender of a packet that leaves by `out_port`, and sends it on its way (Algorithm 1,
    /// SfcEgress).
    fn send(&mut self, core: &mut Core, out_port: u32, packet: &Packet, us: u32, cause: Cause) {
        let Some(back) = core.way_back(core.port(out_port).node, packet) else { return };
        self.counts.sent[cause as usize] += 1;
        let bin = us.min(1000) as usize;
        if self.pauses_us.len() <= bin {
            self.pauses_us.resize(bin + 1, 0);
        }
        self.pauses_us[bin] += 1;
        let (size, frame) = self.form(back);
        let bts = Bts { us, cacheable: self.ports[out_port as usize].to_host, frame };
        core.send_signal(back, packet, size, bts.word());
    }

    /// The size of a BTS that leaves by `port`, and whether it is a PFC frame there.
    fn form(&self, port: u32) -> (u16, bool) {
        match self.params.deliver == Deliver::Pfc && self.ports[port as usize].to_host {
            true => (pfc::Params::default().frame.0 as u16, true),
            false => (self.params.packet.0 as u16, false),
        }
    }

    /// A NIC is told to stop a class (SFC-P).
    fn stop_class(&mut self, core: &mut Core, port: u32, class: u8, end: Time) {
        let number = port * self.classes + class as u32;
        let lane = &mut self.lanes[number as usize];
        if lane.pause.holds() {
            self.counts.replaced += 1;
        } else {
            self.counts.pauses += 1;
            lane.flows.extend(core.flows_at(port).iter().filter(|&&flow| core.flow_class(flow) == class));
            lane.flows.iter().for_each(|&flow| core.hold_flow(flow, true));
        }
        if let Some(at) = lane.pause.set(core.now(), end) {
            core.set_timer(at, self.tokens + self.flows.len() as u32 + number);
        }
    }

    /// A sender is told to stop a flow.
    fn stop_flow(&mut self, core: &mut Core, flow: u32, end: Time) {
        if core.flow_done(flow) {
            return;
        }
        let pause = &mut self.flows[flow as usize];
        if pause.holds() {
            self.counts.replaced += 1;
        } else {
            self.counts.pauses += 1;
            core.hold_flow(flow, true);
        }
        if let Some(at) = pause.set(core.now(), end) {
            core.set_timer(at, self.tokens + flow);
        }
    }
}

impl FlowControl for Sfc {
    fn lossless(&self) -> bool {
        self.pfc.as_ref().is_some_and(Pfc::lossless)
    }

    fn flow_started(&mut self, core: &mut Core, port: u32, flow: u32) {
        let number = port * self.classes + core.flow_class(flow) as u32;
        if let Some(lane) = self.lanes.get_mut(number as usize)
            && lane.pause.holds()
        {
            lane.flows.push(flow);
            core.hold_flow(flow, true);
        }
    }

    #[inline]
    fn queue(&mut self, core: &mut Core, visit: &Visit) -> u32 {
        let queue = core.hashed_queue(visit.packet);
        self.arriving(core, visit, queue);
        queue
    }

    #[inline]
    fn enqueued(&mut self, core: &mut Core, visit: &Visit) {
        if let Some(pfc) = &mut self.pfc {
            pfc.enqueued(core, visit);
        }
    }

    #[inline]
    fn dequeued(&mut self, core: &mut Core, visit: &Visit) {
        if let Some(pfc) = &mut self.pfc {
            pfc.dequeued(core, visit);
        }
        if self.params.signal != Signal::Egress || self.place[core.port(visit.out_port).node as usize] == NOBODY {
            return;
        }
        let egress = &self.ports[visit.out_port as usize];
        let depth = core.queue_bytes(visit.out_port, visit.queue);
        let us = drain(depth, egress.target, egress.rate);
        let packet = *core.packet(visit.packet);
        if depth > egress.trigger && us > 0 && packet.kind == PacketKind::Data && core.port(visit.out_port).up {
            self.send(core, visit.out_port, &packet, us, Cause::Queue);
        }
    }

    fn frame(&mut self, core: &mut Core, port: u32, frame: &Packet) {
        if let Some(pfc) = &mut self.pfc {
            pfc.frame(core, port, frame);
        }
    }

    fn receiver_full(&mut self, core: &mut Core, port: u32, full: bool) {
        if let Some(pfc) = &mut self.pfc {
            pfc.receiver_full(core, port, full);
        }
    }

    fn passing(&mut self, core: &mut Core, in_port: u32, out_port: u32, signal: &mut Packet) {
        let place = self.place[core.port(in_port).node as usize];
        if place == NOBODY {
            return;
        }
        let bts = Bts::read(signal.seq);
        if bts.cacheable && self.params.cache {
            // Its source is the congested host.
            let end = core.now() + bts.pause();
            self.counts.cached += 1;
            self.switches[place as usize].cache.store(signal.tuple.source, signal.class, core.now(), end);
        }
        let frame;
        (signal.size, frame) = self.form(out_port);
        signal.seq = Bts { frame, ..bts }.word();
    }

    fn signal(&mut self, core: &mut Core, port: u32, signal: &Packet) {
        let bts = Bts::read(signal.seq);
        let end = core.now() + bts.pause();
        if bts.frame {
            self.stop_class(core, port, signal.class, end);
        } else {
            self.stop_flow(core, signal.flow, end);
            core.held_by(signal.flow, core.port(signal.in_port).node);
        }
    }

    fn timer(&mut self, core: &mut Core, token: u32) {
        let Some(number) = token.checked_sub(self.tokens) else {
            if let Some(pfc) = &mut self.pfc {
                pfc.timer(core, token);
            }
            return;
        };
        let lane = (number as usize).checked_sub(self.flows.len());
        let pause = match lane {
            None => &mut self.flows[number as usize],
            Some(lane) => &mut self.lanes[lane].pause,
        };
        match pause.ring(core.now()) {
            Bell::Stale => {}
            Bell::Later(at) => core.set_timer(at, token),
            Bell::Over(after) => {
                self.counts.paused += after;
                match lane {
                    None => core.hold_flow(number, false),
                    Some(lane) => self.lanes[lane].flows.drain(..).for_each(|flow| core.hold_flow(flow, false)),
                }
            }
        }
    }

    fn link_lost(&mut self, core: &mut Core, port: u32) {
        if let Some(pfc) = &mut self.pfc {
            pfc.link_lost(core, port);
        }
    }

    fn merge(&mut self, other: Sfc) {
        let (c, o) = (&mut self.counts, &other.counts);
        c.sent.iter_mut().zip(o.sent).for_each(|(sent, other)| *sent += other);
        c.suppressed += o.suppressed;
        c.cache_hits += o.cache_hits;
        c.cached += o.cached;
        c.pauses += o.pauses;
        c.replaced += o.replaced;
        c.paused += o.paused;
        add_samples(&mut self.pauses_us, &other.pauses_us);
        for (mine, theirs) in self.switches.iter_mut().zip(other.switches) {
            mine.cache.peak = mine.cache.peak.max(theirs.cache.peak);
            mine.told.peak = mine.told.peak.max(theirs.told.peak);
        }
        if let (Some(mine), Some(theirs)) = (&mut self.pfc, other.pfc) {
            mine.merge(theirs);
        }
    }

    fn counters(&self) -> Vec<Counter> {
        let c = &self.counts;
        let peak = |of: fn(&Switch) -> u64| self.switches.iter().map(of).max().unwrap_or(0);
        let mut counters = vec![
            ("bts_from_queue", c.sent[Cause::Queue as usize]),
            ("bts_from_cache", c.sent[Cause::Cache as usize]),
            ("bts_from_estimator", c.sent[Cause::Estimator as usize]),
            ("bts_suppressed", c.suppressed),
            ("bts_cached", c.cached),
            ("cache_hits", c.cache_hits),
            ("cache_peak", peak(|switch| switch.cache.peak)),
            ("filter_peak", peak(|switch| switch.told.peak)),
            ("sender_pauses", c.pauses),
            ("sender_pauses_replaced", c.replaced),
            ("sender_paused_us", c.paused.0 / MICROSECOND),
        ];
        counters.extend(self.pfc.iter().flat_map(Pfc::counters));
        counters
    }

    fn histograms(&self) -> Vec<Histogram> {
        vec![("bts_pause_us", self.pauses_us.clone())]
    }
}

#[cfg(test)]
mod tests;
