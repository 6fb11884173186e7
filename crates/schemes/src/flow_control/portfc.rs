//! PortFC: lossless flow control for BCube(n, 1) that cannot deadlock.
//!
//! In BCube servers forward, so that PFC's pauses can close a circle whatever the routes. PortFC looks at *egress* queues and
//! sorts packets by where they go after the next hop ([`layout`]). A congested queue stops exactly the queues that feed
//! it: those of the hosts on its switch that send to it themselves, and, for the last hop, the transit queue one switch back of
//! each host that forwards to it; the frame for that is passed on by the host, whose own queue of forwarded packets is never
//! stopped. So every chain of stops ends after at most two hosts: see docs/portfc.md.
//!
//! A NIC makes packets when it sends them, so that the local queues of a host are sets of flows: stopping one holds its flows.

pub mod layout;
mod sizes;
#[cfg(test)]
mod tests;
mod waits;

use super::{Choice, Controls, Fabric, Report, Room, check_frame, run_with};
use engine::{Bytes, Misfit};
use fabric::deadlock::Waits;
use fabric::network::{Core, Wait};
use fabric::packet::Packet;
use fabric::routing::PortMap;
use fabric::scheme::{Counter, FlowControl, Visit};
use fabric::{Outcome, Setup};
use layout::Layout;
use sizes::{Marks, Sizes};

engine::parameters! {
    /// Parameters of PortFC.
    pub struct Params {
        /// A queue longer than this stops what feeds it. Auto: twice what a link carries from a frame to its effect, or as much
        /// less as memory asks for.
        pause: Option<Bytes> = None,
        /// A queue no longer than this lets it go on. Auto: half of that.
        resume: Option<Bytes> = None,
        /// Size of a control frame on the wire.
        frame: Bytes = Bytes(64),
    }
}

impl Choice for Params {
    fn name(&self) -> &'static str {
        "portfc"
    }
    fn about(&self) -> &'static str {
        "PortFC for BCube(n, 1): queues by the egress port after the next hop, stopped from congested egress queues. \
         Lossless, and free of deadlocks."
    }
    fn check(&self) -> Result<(), Misfit> {
        check_frame("frame", self.frame)?;
        if let Some(pause) = self.pause.filter(|pause| pause.0 == 0) {
            return Err(Misfit::new("pause", pause, "write a size above zero, or \"auto\""));
        }
        match (self.pause, self.resume) {
            (Some(pause), Some(resume)) if resume > pause => {
                Err(Misfit::new("resume", resume, format!("write at most \"{pause}\", which is where it pauses")))
            }
            _ => Ok(()),
        }
    }
    fn frame_size(&self) -> u64 {
        self.frame.0
    }
    fn queues(&self) -> Option<u32> {
        // As many as a switch has ports, which `run` knows.
        Some(1)
    }
    fn room(&self, fabric: &Fabric<'_>) -> Result<Option<Room>, Misfit> {
        let layout = Layout::of(fabric.graph).map_err(|message| Misfit {
            parameter: "topology",
            message,
            help: "write kind = \"bcube\" and k = 1 in [topology], or another flow control".into(),
        })?;
        if fabric.graph.fallible() {
            return Err(Misfit {
                parameter: "link",
                message: "PortFC's queues and frames assume that every link works and loses nothing".into(),
                help: "take loss, corruption and down away, or write another flow control".into(),
            });
        }
        Ok(Some(Sizes::new(self, &layout, fabric).room))
    }
    fn waits(&self, setup: &Setup) -> Waits {
        match Layout::of(&setup.graph) {
            Ok(layout) => Waits::Ways(Box::new(waits::Rules(layout))),
            Err(_) => Waits::Classes,
        }
    }
    fn switch_state(&self, ports: u64, classes: u64) -> u64 {
        // By queue: congested, stopped for its own port, and stopped for the last hop after next. There are as many queues as ports.
        (3 * ports * ports * classes).div_ceil(8)
    }
    fn run(&self, setup: Setup, promised: bool, control: &Controls<'_>, report: &mut Report<'_>) -> Outcome {
        run_with(|setup| Portfc::new(self, setup, promised), setup, control, report)
    }
}

/// What a control frame says, with the number of a port of the switch that it is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Say {
    /// A transit queue towards that port's host is congested: from a switch to its hosts.
    Transit,
    /// The last-hop queue towards that port's host is congested: from a switch to its hosts.
    LastHop,
    /// The same, passed on by a host to its other switch.
    PassedOn,
    /// The host's queue of forwarded packets is congested: to the switch that feeds it.
    Remote,
}

/// Packs a frame's word: what, which port, which class.
fn pack(say: Say, port: u32, class: u32) -> u32 {
    say as u32 | class << 2 | port << 6
}

fn unpack(word: u32) -> (Say, u32, u32) {
    let say = match word & 3 {
        0 => Say::Transit,
        1 => Say::LastHop,
        2 => Say::PassedOn,
        _ => Say::Remote,
    };
    (say, word >> 6, word >> 2 & 15)
}

/// What stops a host from sending its own packets to a port of its switch.
#[derive(Clone, Copy, Default)]
struct Stops {
    transit: bool,
    last_hop: bool,
}

#[derive(Default)]
struct Counts {
    pauses: u64,
    passed_on: u64,
    transit: u64,
    last_hop: u64,
    remote: u64,
    peak: u64,
}

/// The mechanism.
pub struct Portfc {
    layout: Layout,
    map: PortMap,
    lossless: bool,
    frame: u16,
    /// Of switches and of hosts.
    marks: [Marks; 2],
    classes: u32,
    /// By port and queue: it is congested.
    congested: Vec<bool>,
    /// By port of a switch and class: how many of its transit queues are congested.
    group: Vec<u32>,
    /// By port of a host, class, and port of its switch.
    stops: Vec<Stops>,
    /// By port of a switch and queue: the last hop after next is congested.
    far: Vec<bool>,
    /// By port of a switch and class: its host's queue of forwarded packets is congested.
    remote: Vec<bool>,
    counts: Counts,
}

impl Portfc {
    /// PortFC over the fabric of a setup, whose queues it lays out. The fabric is a BCube(n, 1), as [`Choice::room`] makes sure.
    pub fn new(params: &Params, setup: &mut Setup, promised: bool) -> Portfc {
        let layout = Layout::of(&setup.graph).unwrap_or(Layout { n: 1 });
        setup.switch.queues = layout.n;
        setup.switch.express = None;
        let map = PortMap::new(&setup.graph);
        let sizes = Sizes::new(params, &layout, &Fabric::of(setup));
        let (ports, classes, n) = (map.count(), setup.classes as usize, layout.n as usize);
        Portfc {
            lossless: promised,
            frame: params.frame.0 as u16,
            marks: [sizes.switch, sizes.host],
            classes: classes as u32,
            congested: vec![false; ports * classes * n],
            group: vec![0; ports * classes],
            stops: vec![Stops::default(); ports * classes * n],
            far: vec![false; ports * classes * n],
            remote: vec![false; ports * classes],
            counts: Counts::default(),
            map,
            layout,
        }
    }

    /// The number of something that every port, class and switch port or queue has.
    #[inline]
    fn place(&self, port: u32, class: u32, which: u32) -> usize {
        ((port * self.classes + class) * self.layout.n + which) as usize
    }

    #[inline]
    fn lane(&self, port: u32, class: u32) -> usize {
        (port * self.classes + class) as usize
    }

    /// A port's number at its node.
    #[inline]
    fn local(&self, port: u32) -> u32 {
        port - self.map.base[self.map.node[port as usize] as usize]
    }

    /// The other port of a host.
    fn other(&self, port: u32) -> u32 {
        self.map.base[self.map.node[port as usize] as usize] + 1 - self.local(port)
    }

    fn tell(&mut self, core: &mut Core, port: u32, say: Say, about: u32, class: u32, pause: bool) {
        self.counts.pauses += pause as u64;
        core.send_frame(port, self.frame, pack(say, about, class), pause as u64);
    }

    /// A queue has become congested, or no longer is: tells whoever feeds it.
    fn change(&mut self, core: &mut Core, visit: &Visit, congested: bool) {
        let (out, class) = (visit.out_port, visit.class as u32);
        let queue = visit.queue - class * self.layout.n;
        let place = self.place(out, class, queue);
        self.congested[place] = congested;
        if core.port(out).host {
            self.counts.remote += congested as u64;
            return self.tell(core, visit.in_port, Say::Remote, 0, class, congested);
        }
        let last_hop = queue == self.layout.last_hop();
        let say = if last_hop { Say::LastHop } else { Say::Transit };
        *(if last_hop { &mut self.counts.last_hop } else { &mut self.counts.transit }) += congested as u64;
        if !last_hop {
            // Its hosts have one queue for all transit by way of that port: they hear of the first and of the last.
            let lane = self.lane(out, class);
            let before = self.group[lane];
            self.group[lane] = if congested { before + 1 } else { before - 1 };
            if before + self.group[lane] != 1 {
                return;
            }
        }
        let about = self.local(out);
        for port in self.map.of(self.map.node[out as usize]).filter(|&port| port != out) {
            self.tell(core, port, say, about, class, congested);
        }
    }

    /// Whether a flow that sends by a host's `port` is stopped.
    fn stopped(&self, core: &Core, port: u32, flow: u32) -> bool {
        let (host, dst) = (self.map.node[port as usize], core.flow(flow).dst);
        let level = self.local(port);
        let stops = self.stops[self.place(port, core.flow_class(flow) as u32, self.layout.digit(dst, level))];
        if self.layout.meet(level, host, dst) { stops.last_hop } else { stops.transit }
    }

    /// Holds the flows of a host's `port` that are stopped, and no others.
    fn look(&self, core: &mut Core, port: u32) {
        for place in 0..core.flows_at(port).len() {
            let flow = core.flows_at(port)[place];
            if !core.flow_done(flow) {
                core.hold_flow(flow, self.stopped(core, port, flow));
            }
        }
    }

    /// Holds the transit queues of a switch port that are stopped, and no others.
    fn look_at_queues(&self, core: &mut Core, port: u32, class: u32) {
        for queue in 0..self.layout.last_hop() {
            let stopped = self.far[self.place(port, class, queue)] || self.remote[self.lane(port, class)];
            core.hold_queue(port, class * self.layout.n + queue, stopped);
        }
    }
}

impl FlowControl for Portfc {
    fn lossless(&self) -> bool {
        self.lossless
    }

    fn flow_started(&mut self, core: &mut Core, port: u32, flow: u32) {
        core.hold_flow(flow, self.stopped(core, port, flow));
    }

    fn flow_moved(&mut self, core: &mut Core, port: u32, flow: u32) {
        self.flow_started(core, port, flow);
    }

    #[inline]
    fn queue(&mut self, core: &mut Core, visit: &Visit) -> u32 {
        let out = visit.out_port;
        let first = visit.class as u32 * self.layout.n;
        if core.port(out).host {
            return first;
        }
        let host = self.map.node[self.map.peer[out as usize] as usize];
        let level = self.local(self.map.peer[out as usize]);
        first + self.layout.switch_queue(level, host, core.packet(visit.packet).dst)
    }

    #[inline]
    fn enqueued(&mut self, core: &mut Core, visit: &Visit) {
        let bytes = core.queue_bytes(visit.out_port, visit.queue);
        self.counts.peak = self.counts.peak.max(bytes);
        let host = core.port(visit.out_port).host;
        let place = (visit.out_port * self.classes * self.layout.n + visit.queue) as usize;
        if bytes > self.marks[host as usize].pause && !self.congested[place] {
            self.change(core, visit, true);
        }
    }

    #[inline]
    fn dequeued(&mut self, core: &mut Core, visit: &Visit) {
        let place = (visit.out_port * self.classes * self.layout.n + visit.queue) as usize;
        if self.congested[place] {
            let host = core.port(visit.out_port).host;
            if core.queue_bytes(visit.out_port, visit.queue) <= self.marks[host as usize].resume {
                self.change(core, visit, false);
            }
        }
    }

    fn frame(&mut self, core: &mut Core, port: u32, frame: &Packet) {
        let ((say, about, class), pause) = (unpack(frame.flow), frame.seq == 1);
        match say {
            Say::Transit | Say::LastHop => {
                let place = self.place(port, class, about);
                let stops = &mut self.stops[place];
                *(if say == Say::Transit { &mut stops.transit } else { &mut stops.last_hop }) = pause;
                self.look(core, port);
                if say == Say::LastHop {
                    self.counts.passed_on += pause as u64;
                    let other = self.other(port);
                    self.tell(core, other, Say::PassedOn, about, class, pause);
                }
            }
            Say::PassedOn => {
                // The host at this port, as the far switch numbers it, is not among the transit queues.
                let host = self.map.node[self.map.peer[port as usize] as usize];
                let level = self.local(self.map.peer[port as usize]);
                let queue = self.layout.rank(about, self.layout.digit(host, 1 - level));
                let place = self.place(port, class, queue);
                self.far[place] = pause;
                self.look_at_queues(core, port, class);
            }
            Say::Remote => {
                let lane = self.lane(port, class);
                self.remote[lane] = pause;
                self.look_at_queues(core, port, class);
            }
        }
    }

    fn holder(&self, _: &Core, port: u32, queue: u32) -> Option<Vec<Wait>> {
        let (class, queue) = (queue / self.layout.n, queue % self.layout.n);
        let far = self.other(self.map.peer[port as usize]);
        let first = class * self.layout.n;
        let mut waits = Vec::new();
        if self.remote[self.lane(port, class)] {
            waits.push(Wait { port: far, queue: first });
        }
        if self.far[self.place(port, class, queue)] {
            let host = self.map.node[far as usize];
            let digit = self.layout.unrank(queue, self.layout.digit(host, self.local(far)));
            let switch = self.map.node[self.map.peer[far as usize] as usize];
            waits.push(Wait { port: self.map.base[switch as usize] + digit, queue: first + self.layout.last_hop() });
        }
        Some(waits)
    }

    fn merge(&mut self, other: Portfc) {
        let (c, o) = (&mut self.counts, other.counts);
        c.pauses += o.pauses;
        c.passed_on += o.passed_on;
        c.transit += o.transit;
        c.last_hop += o.last_hop;
        c.remote += o.remote;
        c.peak = c.peak.max(o.peak);
        // Each knows only of its own ports.
        self.far.iter_mut().zip(other.far).for_each(|(mine, theirs)| *mine |= theirs);
        self.remote.iter_mut().zip(other.remote).for_each(|(mine, theirs)| *mine |= theirs);
    }

    fn counters(&self) -> Vec<Counter> {
        let c = &self.counts;
        vec![
            ("pause_frames", c.pauses),
            ("frames_passed_on", c.passed_on),
            ("transit_congested", c.transit),
            ("last_hop_congested", c.last_hop),
            ("remote_congested", c.remote),
            ("queue_peak_bytes", c.peak),
            ("pause_threshold_bytes", self.marks[0].pause),
        ]
    }
}
