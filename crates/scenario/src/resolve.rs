//! From a scenario to the numbers that a fabric runs on.
//!
//! What a scenario leaves to be derived is derived here: headroom, windows, round-trip times, the ideal completion time
//! of every flow, whether losing nothing can be promised.

pub use crate::paths::{Framing, Leg, Paths, alone, ideal_time, round_trip};

use crate::estimate::EstimateSettings;
use crate::notes::{Known, Note};
use crate::scenario::Problems;
use crate::settings::SwitchSettings;
use crate::slow::Slow;
use crate::{Choices, Lane, Scenario, Sharing, Topology, WindowSize};
use engine::{Bytes, Event, Rate, Time};
use fabric::axes::flow_control::{Fabric, Headroom, Job, Layout, Report, Room};
use fabric::axes::load_balancing::MOST_ROUTES;
use fabric::axes::queueing::Discipline;
use fabric::buffer::{ALPHA_ONE, Share};
use fabric::clock::Clock;
use fabric::id::{FlowId, NodeId};
use fabric::packet::MAX_HOPS;
use fabric::retry::{self, Limits};
use fabric::routing::{PortMap, Routing, Tuple};
use fabric::run::worthwhile;
use fabric::setup::{
    AckLane, AckPolicy, After, CaptureSetup, Ecn, FlowSpec, MeasureSetup, NicSetup, NicWake, Notifications, Overflow,
    PortSetup, SeriesSetup, SlowReceiver, Split, SwitchSetup, Task, WindowRule,
};
use fabric::topology::{Kind, Link, WHOLE};
use fabric::{Outcome, Setup};
use files::problem::Problem;
use std::collections::{BTreeMap, HashSet};
use std::fmt;
use traffic::{FlowRequest, MAX_LATE_START, MAX_START, Messages, Names, Outline};

/// Where the addresses of hosts begin: 11.0.0.1.
const FIRST_ADDRESS: u32 = 0x0b00_0001;
/// The source port of the first flow between two hosts.
const FIRST_PORT: u16 = 10_000;
/// The destination port of RoCEv2.
const ROCE_PORT: u16 = 4791;
/// The sampling period that "auto" stands for.
const SAMPLE: Time = Time::from_us(10);
/// The same of what is followed closely.
const SERIES: Time = Time::from_us(1);
/// The retransmission timeout that "auto" stands for where packets can be lost, if twice the longest round trip is no longer.
const TIMEOUT: Time = Time::from_ms(1);
/// The most egress queues of the whole fabric.
const MAX_QUEUES: u64 = 1 << 27;

/// The share of the core's rate above which messages leave no room for their headers and ACKs.
const CORE_FULL: f64 = 0.95;

/// The most classes that a port can tell apart.
const MAX_LANES: u8 = 32;

/// A run, ready to go.
pub struct Resolved {
    /// The scenario's title.
    pub name: String,
    /// What the fabric is built from.
    pub setup: Setup,
    /// What runs on every axis.
    pub choices: Choices,
    /// What flow control needs of every switch.
    pub layout: Layout,
    /// Whether the switches have the room to lose nothing. A run that loses something all the same has failed.
    pub promised: bool,
    /// What the user should know.
    pub notes: Vec<Note>,
    /// Names of the groups of flows, by their tags.
    pub groups: Vec<String>,
    /// The collectives among them.
    pub collectives: Vec<Messages>,
    /// The jobs.
    pub jobs: Vec<Outline>,
    /// By node, the memory for packets; `None` for a host that does not forward, or for no limit.
    pub memory: Vec<Option<u64>>,
    /// What the scenario says of its wiring.
    pub topology: Topology,
    /// The preset, if one was named.
    pub preset: Option<String>,
    /// Whether it is simulated or estimated.
    pub estimate: EstimateSettings,
    /// Whether a run that may skip may do so where packets are simulated, and not only where flows are streams.
    pub repeats: bool,
    pub(crate) buffer: Option<Bytes>,
    /// The loops of pauses, and the least headroom that a port has for each.
    pub(crate) loops: BTreeMap<PauseLoop, u64>,
    /// What flow control says of its sizes, as lines under a name.
    pub(crate) explained: Option<(&'static str, Vec<String>)>,
    pub(crate) window: WindowSize,
}

impl fmt::Debug for Resolved {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (fc, cc) = (self.choices.flow_control.name(), self.choices.congestion_control.name());
        f.debug_struct("Resolved").field("name", &self.name).field("scheme", &(fc, cc)).finish_non_exhaustive()
    }
}

impl Resolved {
    /// Lets it run on several threads, if it is long enough for that. The result is the same.
    pub fn on_threads(mut self, threads: usize) -> Resolved {
        self.setup.threads = if worthwhile(&self.setup) { threads } else { 1 };
        self
    }

    /// Runs the fabric. `report` is called now and then with the simulated time and the packet-hops so far, and ends the run by
    /// returning false.
    pub fn simulate(&self, report: &mut Report<'_>) -> Outcome {
        self.simulate_on(self.setup.threads, report)
    }

    /// The same on so many threads, whether that pays or not.
    pub fn simulate_on(&self, threads: usize, report: &mut Report<'_>) -> Outcome {
        self.simulate_in(threads, self.setup.blocks, report)
    }

    /// The same on so many threads, each of them in blocks, as many as the whole fabric has, whether that pays or not.
    pub fn simulate_in(&self, threads: usize, blocks: Option<usize>, report: &mut Report<'_>) -> Outcome {
        self.simulate_setup(Setup { threads, blocks, ..self.setup.clone() }, report)
    }

    /// The same with nothing skipped, whatever the scenario says.
    pub fn simulate_exactly(&self, report: &mut Report<'_>) -> Outcome {
        self.simulate_setup(Setup { within: None, ..self.setup.clone() }, report)
    }

    /// The same of the first so many flows only. None of them may wait for another.
    pub fn simulate_first(&self, flows: usize, report: &mut Report<'_>) -> Outcome {
        let mut setup = self.setup.clone();
        setup.flows.truncate(flows);
        self.simulate_setup(setup, report)
    }

    /// A run of these flows instead, up to an instant, each of which begins at its own time; nothing but what becomes of them is measured, and nothing skipped.
    pub fn part(&self, flows: &[FlowSpec], stop: Time) -> Setup {
        let whole = &self.setup;
        // Field by field: a run may have millions of flows.
        Setup {
            graph: whole.graph.clone(),
            clock: whole.clock,
            ties: whole.ties,
            dice: whole.dice,
            seed: whole.seed,
            classes: whole.classes,
            habits: whole.habits,
            rule: whole.rule,
            salt: whole.salt,
            ports: whole.ports.clone(),
            switch: whole.switch.clone(),
            nic: whole.nic,
            forward: whole.forward,
            flows: flows.to_vec(),
            after: Vec::new(),
            tasks: Vec::new(),
            slow: whole.slow.clone(),
            measure: MeasureSetup::default(),
            stop,
            reroute: whole.reroute,
            threads: 1,
            clocked: None,
            blocks: None,
            within: None,
        }
    }

    /// Simulates what was made of [`Resolved::part`].
    pub fn simulate_part(&self, part: Setup, report: &mut Report<'_>) -> Outcome {
        self.simulate_setup(part, report)
    }

    fn simulate_setup(&self, setup: Setup, report: &mut Report<'_>) -> Outcome {
        let chosen = self.choices.chosen(self.window != WindowSize::None);
        let mut report = |now: Time, hops: u64| report(now, hops);
        self.choices.flow_control.run(Job { setup, promised: self.promised, chosen, report: &mut report })
    }
}

/// Turns a scenario into a run. A problem says where it is and what to do.
pub fn resolve(mut scenario: Scenario) -> Result<Resolved, Problem> {
    let hasty = crate::notes::hasty(&scenario);
    for (link, hasty) in scenario.graph.links.iter_mut().zip(hasty) {
        link.retry.iter_mut().for_each(|retry| retry.hasty = hasty);
    }
    let layout = scenario.choices.flow_control.layout(&scenario.graph);
    let layout = layout.map_err(|misfit| scenario.problem(misfit.parameter, misfit.message).help(misfit.help))?;
    check_sizes(&scenario, &layout)?;
    let map = PortMap::new(&scenario.graph);
    let wire = Wire::new(&scenario, &layout);
    let mut notes = Vec::new();
    let mut memory = Memory::new(&scenario, &layout, &map, &wire, &mut notes)?;
    let own_room = own_room(&scenario, &layout, &wire, &mut memory, &mut notes);
    let mut wrong = Problems::default();
    if own_room && !layout.grants && scenario.switch.cell.0 > 1 {
        let message = format!("{} divides memory by its own means, byte by byte", scenario.choices.flow_control.name());
        let help = "remove cell, or choose a flow control that has thresholds, such as pfc";
        wrong.keep::<()>(Err(scenario.problem("switch.cell", message).help(help)));
    }
    for (place, slow) in scenario.slow.iter().enumerate().filter(|(_, slow)| slow.buffer.0 < wire.largest) {
        let (name, largest) = (&scenario.graph[slow.host].name, wire.largest);
        let message = format!("the NIC of {name} keeps {}, less than one packet of {largest} B", slow.buffer);
        let help = format!("write buffer = \"{largest}B\" or more");
        wrong.keep::<()>(Err(scenario.problem(&format!("slow.{place}.buffer"), message).help(help)));
    }
    let slow = slow_receivers(&scenario, &layout, &map, &wire, &mut memory.promised, &mut notes);
    let transport = &scenario.choices.transport;
    if !slow.is_empty() && !transport.slow_receivers() {
        let message = format!("{} pulls no more than it can take: its receivers are not slow", transport.name());
        wrong.keep::<()>(Err(scenario.problem("slow", message).help("remove [[slow]], or choose another transport")));
    }
    if transport.drops() {
        memory.promised = false;
    }
    let (switch, nic) = (&scenario.switch, &scenario.nic);
    let egress_alpha = switch.egress_alpha.or((layout.headroom.is_none() && !own_room).then_some(1.0));
    if let Some(alpha) = egress_alpha {
        let room = |pool: u64| ((pool as u128 * fixed_point(alpha) as u128) >> 16) + switch.reserve.0 as u128;
        if memory.pool.iter().flatten().any(|&pool| room(pool) < wire.largest as u128) {
            let message = format!("a queue may never hold even one packet of {} B", wire.largest);
            let help = "write a larger egress_alpha, or give a larger buffer or reserve";
            wrong.keep::<()>(Err(scenario.problem("switch.egress_alpha", message).help(help)));
        }
    }
    // Without flow control every queue has a part of its own.
    let apart = switch.sharing == Sharing::Static && layout.headroom.is_none() && !transport.drops();
    let queues = lanes(&scenario, &layout) as u64 * layout.queues.unwrap_or(switch.queues) as u64;
    for (node, pool) in (0..).zip(&memory.pool).filter(|_| apart) {
        let parts = map.of(node).len() as u64 * queues;
        if let Some(pool) = pool.filter(|pool| pool / parts.max(1) < wire.largest) {
            let name = &scenario.graph.nodes[node as usize].name;
            let message =
                format!("each of the {parts} queues of {name} has {} B, less than one packet", pool / parts.max(1));
            let help = "give a larger buffer, fewer queues, or sharing = \"dynamic\"";
            wrong.keep::<()>(Err(scenario.problem("switch.sharing", message).help(help)));
            // The others are like it.
            break;
        }
    }
    let largest = transport.most_packets().saturating_mul(nic.payload.0);
    if let Some(flow) = scenario.traffic.flows.iter().position(|flow| flow.size > largest) {
        let message = format!("{} cannot number the packets of this flow", transport.name());
        let help = "make it smaller, or write a larger payload in [nic]";
        wrong.keep::<()>(Err(scenario.flow_problem(flow, message).help(help)));
    }
    wrong.or(())?;
    // Paths take the longest: whatever can be refused without them has been.
    let mut wrong = Problems::default();
    let found = wrong.keep(flows(&scenario, &map, &wire, &mut notes));
    wrong.keep(check_end(&scenario, &map));
    let (flows, after, collectives, jobs) = wrong.or(found)?.unwrap_or_default();

    // A receiver that takes packets in order only discards those that overtake, and may ask for them only once.
    let discards = transport.in_order() && scenario.choices.load_balancing.may_reorder();
    let lossy = (scenario.graph.fallible() || !memory.promised || discards) && !transport.own_timeout();
    let longest = flows.iter().map(|flow| flow.base_rtt).max().unwrap_or_default();
    let timeout = nic.timeout.or(transport.timeout()).or(lossy.then_some(TIMEOUT.max(Time(2 * longest.0))));
    if discards {
        notes.push(format!(
            "packets that {} lets overtake each other are discarded by {}'s receivers and sent again: choose a transport that takes \
             them in any order, such as irn, or a balancing that keeps order",
            scenario.choices.load_balancing.name(),
            transport.name()
        ));
    }
    if timeout.is_some_and(|timeout| timeout <= longest) {
        notes.push(format!(
            "the timeout is not longer than the longest base RTT ({longest}): senders repeat themselves"
        ));
    }
    let window = flows.iter().map(|flow| flow.window).min().unwrap_or(0);
    let known = Known { scenario: &scenario, layout: &layout, own_room, window };
    notes.extend(known.odd_values());
    // Of what arrives at a rate; a burst may be any share of a short time.
    let groups = scenario.groups();
    let lasting = || groups.iter().filter(|group| group.of_asked.is_some());
    let at = |time: Time| {
        let then = lasting().filter(|group| group.window.0 <= time && time < group.window.1);
        then.filter_map(|group| group.across_core).sum::<f64>()
    };
    let across = lasting().map(|group| at(group.window.0)).fold(0.0, f64::max);
    if across > CORE_FULL {
        let percent = across * 100.0;
        notes.push(format!(
            "what passes the core is {percent:.0} % of what it carries, before headers and ACKs: what waits grows as long as it lasts"
        ));
    }
    let mut notes: Vec<Note> = notes.into_iter().map(Note::from).chain(known.idle_keys()).collect();
    let room = |node: NodeId| scenario.graph.forwards(node, map.of(node.0).len()).then(|| scenario.buffer(node).0);
    let room = |node: NodeId| room(node).filter(|_| !switch.unlimited);
    let room = (0..scenario.graph.nodes.len() as u32).map(NodeId).map(room).collect();
    let series = series(&scenario, &flows);
    let classes = lanes(&scenario, &layout);
    let ports = port_setups(&scenario, &layout, &map, &memory.headroom);
    let plain = Setup::plain(scenario.graph.clone(), flows);
    let mut setup = Setup {
        rule: scenario.choices.load_balancing.rule(),
        salt: scenario.salt.number(scenario.seed),
        clock: Clock::Exact,
        seed: scenario.seed,
        classes,
        ports,
        switch: SwitchSetup {
            pool: memory.pool,
            split: match (switch.sharing, layout.headroom.is_some()) {
                (Sharing::Dynamic, true) if !own_room => {
                    switch.threshold.map_or(Split::Dynamic, |threshold| Split::Absolute(threshold.0))
                }
                (Sharing::Dynamic, _) => Split::Dynamic,
                (Sharing::Static, false) if own_room => Split::Dynamic,
                (Sharing::Static, true) => Split::Ingress,
                (Sharing::Static, false) => Split::Egress,
            },
            reserve: whole(switch.reserve, switch),
            groups: layout.groups,
            global_headroom: whole(switch.global_headroom, switch),
            resume_gap: whole(switch.resume_gap, switch),
            cell: switch.cell.0 as u32,
            egress_alpha: egress_alpha.map(fixed_point),
            pipeline: switch.pipeline,
            reaction: switch.reaction,
            queues: layout.queues.unwrap_or(switch.queues),
            express: layout.express,
            quantum: switch.quantum.map_or(wire.largest, |quantum| quantum.0) as u32,
            overflow: Overflow::Drop,
        },
        nic: NicSetup {
            payload: wire.framing.payload as u16,
            header: wire.framing.header as u16,
            ack_size: wire.ack as u16,
            acks: AckPolicy::Every(nic.ack_every),
            ack_lane: match nic.ack_lane {
                Lane::Control => AckLane::Control,
                Lane::Data => AckLane::Data(Some(0)),
            },
            timeout,
            nack_interval: nic.nack_interval,
            paced: nic.pacing,
            wake: NicWake::Due,
            window: scenario.window_rule,
            lines: nic.queues,
            notifications: match scenario.choices.congestion_control.notified() {
                true => Notifications { interval: nic.cnp_interval, delay: nic.cnp_delay },
                false => Notifications::default(),
            },
            bus: nic.bus(),
        },
        forward: nic.forward(),
        measure: MeasureSetup {
            sample: Some(scenario.measure.sample.unwrap_or(SAMPLE)),
            series,
            capture: (!scenario.watch.capture.is_empty()).then(|| CaptureSetup {
                ports: scenario.watch.capture.clone(),
                limit: scenario.measure.capture_packets,
            }),
            why: scenario.measure.why,
            ..MeasureSetup::default()
        },
        after,
        tasks: scenario.traffic.tasks.clone(),
        slow,
        stop: scenario.stop.unwrap_or(Time::MAX),
        reroute: Time::ZERO,
        within: scenario.forward.share(),
        ..plain
    };
    transport.adjust(&mut setup);
    if let Some((cap, name)) = transport.cap(&setup)
        && cap.div_ceil(nic.payload.0) < nic.ack_every as u64
    {
        let message = format!("{name} of {cap} B holds fewer than ack_every = {} packets", nic.ack_every);
        return Err(scenario.problem("nic.ack_every", message).help("write ack_every = 1 in [nic], or a larger cap"));
    }
    let limited = setup.switch.egress_alpha.is_some()
        || setup.switch.split == Split::Egress
        || setup.switch.overflow != Overflow::Drop;
    let other = |depths: &[u32]| depths.iter().any(|depth| *depth != WHOLE);
    let felt = setup.ports.iter().any(|port| other(&[port.depth]) && (limited || port.ecn.is_some()));
    if !felt && setup.graph.links.iter().any(|link| other(&link.depths)) {
        notes.push("queues of links are given, and change nothing: those queues have no limit of their own, and nobody marks there".to_string().into());
    }
    crate::estimate::check(&scenario, &layout, &setup)?;
    let repeats = crate::forward::repeats(&scenario, &setup);
    crate::forward::check(&scenario, &setup)?;
    Ok(Resolved {
        estimate: scenario.estimate,
        repeats,
        name: scenario.name,
        setup,
        choices: scenario.choices,
        layout,
        promised: memory.promised,
        notes,
        groups: scenario.traffic.groups,
        collectives,
        jobs,
        memory: room,
        topology: scenario.topology,
        preset: scenario.preset,
        buffer: (!scenario.switch.unlimited).then_some(scenario.switch.buffer),
        loops: memory.loops,
        explained: memory.explained,
        window: scenario.window,
    })
}

/// As many bytes in whole cells, at least.
fn whole(bytes: Bytes, switch: &SwitchSettings) -> u64 {
    bytes.0.next_multiple_of(switch.cell.0)
}

/// A fraction in units of 1/65536.
fn fixed_point(fraction: f64) -> u64 {
    (fraction * ALPHA_ONE as f64).round() as u64
}

/// Priority classes that links know: those of the scenario, as often as flow control lays them out.
fn lanes(scenario: &Scenario, layout: &Layout) -> u8 {
    scenario.classes.saturating_mul(layout.channels)
}

/// Refuses what would not fit in memory.
fn check_sizes(scenario: &Scenario, layout: &Layout) -> Result<(), Problem> {
    let (graph, switch) = (&scenario.graph, &scenario.switch);
    if lanes(scenario, layout) > MAX_LANES {
        let (name, channels) = (scenario.choices.flow_control.name(), layout.channels);
        let message = format!("{name} lays out each of {} classes {channels} times", scenario.classes);
        let help = format!("write at most {} classes", MAX_LANES / channels);
        return Err(scenario.problem("traffic.classes", message).help(help));
    }
    let each = layout.queues.unwrap_or(switch.queues) as u64;
    let queues = graph.links.len() as u64 * 2 * lanes(scenario, layout) as u64 * each;
    if queues > MAX_QUEUES {
        let message = format!("the fabric would have {queues} queues; {MAX_QUEUES} is the most");
        let (key, help) = match layout.queues {
            None => ("switch.queues", "lower switch.queues or make the fabric smaller"),
            Some(_) => ("scheme", "have flow control lay out fewer queues, or make the fabric smaller"),
        };
        return Err(scenario.problem(key, message).help(help));
    }
    // Timers of flow control: some for every queue, class and group of a port.
    let timers = each + 8 * layout.groups as u64;
    let timers = graph.links.len() as u64 * 2 * lanes(scenario, layout) as u64 * timers;
    if timers > Event::MAX_SOURCE as u64 {
        let message = format!("{} links with {} classes are too many", graph.links.len(), lanes(scenario, layout));
        return Err(scenario.problem("topology", message).help("make the fabric smaller, or use fewer classes"));
    }
    if scenario.traffic.flows.len() > Event::MAX_SOURCE as usize {
        let message = format!("{} flows are too many; {} is the most", scenario.traffic.flows.len(), Event::MAX_SOURCE);
        return Err(scenario.problem("", message).help("split the traffic over several runs"));
    }
    Ok(())
}

/// Bytes of packets on a link.
struct Wire {
    framing: Framing,
    ack: u64,
    frame: u64,
    /// The largest packet that is not a frame.
    largest: u64,
    /// The longest control packet of a scheme.
    control: u64,
    /// The smallest packet among the data.
    smallest: u64,
}

impl Wire {
    fn new(scenario: &Scenario, layout: &Layout) -> Wire {
        let (nic, frame) = (&scenario.nic, layout.frame);
        let (data_extra, ack_extra) = scenario.choices.congestion_control.header();
        let framing = Framing { payload: nic.payload.0, header: nic.header.0 + data_extra as u64 };
        let ack = nic.ack_size.0 + ack_extra as u64;
        let smallest = framing.header + 1;
        let smallest = if nic.ack_lane == Lane::Data { smallest.min(ack) } else { smallest };
        let choices = &scenario.choices;
        let control = [
            choices.flow_control.control_packet(),
            choices.congestion_control.control_packet(),
            choices.edge_control.control_packet(),
            choices.transport.control_packet(),
        ];
        let control = control.into_iter().max().unwrap_or(0);
        Wire { framing, ack, frame, largest: (framing.payload + framing.header).max(ack), control, smallest }
    }
}

/// One end of a link with a switch: what decides how much may still come after it asked its neighbour to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PauseLoop {
    /// Bits per second of what comes from the neighbour.
    pub rate: Rate,
    /// Bits per second of what goes to it.
    pub own: Rate,
    /// From the end of a transmission at the neighbour to its arrival here: delay and pipeline.
    pub to_here: Time,
    /// The same in the other direction, until a pause has taken effect.
    pub to_neighbour: Time,
    /// Bytes of the largest packet.
    pub largest: u64,
    /// Bytes of a pause frame.
    pub frame: u64,
    /// Bytes of the longest control packet of a scheme.
    pub control: u64,
    /// Priority classes.
    pub classes: u8,
    /// Frames that may go ahead of a pause besides those of the classes.
    pub other_frames: u64,
    /// Bytes of the smallest packet that memory holds.
    pub smallest: u64,
    /// Bytes of a cell of memory; 1 for bytes.
    pub cell: u64,
    /// What the link adds by repeating, if it does.
    pub retry: PauseRetry,
}

/// What a link that repeats frames adds to the loop of a pause; nothing by default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct PauseRetry {
    /// Bytes that the neighbour keeps at most because they may have to be repeated.
    pub kept: u64,
    /// How much later a pause may come that has to be repeated, or waits for what is.
    pub late: Time,
    /// Bytes of ordered sets that may go ahead of a pause.
    pub sets: u64,
}

/// The most replays in a row of a pause that headroom allows for by itself.
const PAUSE_REPLAYS: u32 = 4;
/// How likely a pause may need more, so that losing nothing is promised.
const TOO_LATE: f64 = 1e-9;

impl PauseRetry {
    /// Of a link, with the rate of what goes to the neighbour: `to_here` and `to_neighbour` are what the sending ends of the neighbour and of this port may keep, `replays` the replays in a row
    /// that are allowed for, if they are not derived, and `frames` the bytes of frames that may go ahead of a pause. Also gives how likely a pause needs more replays than that.
    fn new(
        (link, rate): (&Link, Rate),
        to_here: Limits,
        to_neighbour: Limits,
        replays: Option<u32>,
        frames: u64,
    ) -> (PauseRetry, f64) {
        // A try fails where the pause is damaged, or what was sent in the round before it.
        let ahead = rate.bytes_over(to_neighbour.round);
        let largest = to_neighbour.largest.clamp(1, u16::MAX as u64) as u16;
        let each = (1.0 - link.loss) * (1.0 - link.corruption) * (1.0 - link.spoils(largest));
        let fails = 1.0 - each.powi((ahead / largest as u64) as i32 + 1);
        let chance = |replays: u32| fails.powi(replays as i32 + 1);
        let replays =
            replays.unwrap_or_else(|| (0..PAUSE_REPLAYS).find(|n| chance(*n) <= TOO_LATE).unwrap_or(PAUSE_REPLAYS));
        // The first is asked for, after a round at most; the others the timer brings. Each time all that is kept may be sent before the pause.
        let all = Clock::Exact.duration(to_neighbour.bytes, rate).0;
        let late = match replays {
            0 => 0,
            more => to_neighbour.round.0 + all + (more as u64 - 1) * (to_neighbour.timer.0 + all),
        };
        // An ACK and a NACK, and ACKs between the frames.
        let spacing = rate.bytes_over(to_neighbour.spacing).max(1);
        let sets = (3 + frames / spacing) * retry::SET as u64;
        (PauseRetry { kept: to_here.bytes + to_here.largest, late: Time(late), sets }, chance(replays))
    }
}

impl PauseLoop {
    /// How long the pause waits and is sent, and until it has taken effect at the neighbour.
    pub fn hears(&self) -> Time {
        let time = |bytes: u64| Clock::Exact.duration(bytes, self.own).0;
        let frames = 2 * self.classes as u64 + 1 + self.other_frames;
        let waits = time(self.largest.max(self.frame).max(self.control)) + frames * time(self.frame);
        Time(waits + time(self.retry.sets) + self.to_neighbour.0 + self.retry.late.0)
    }

    /// Bytes that the neighbour may send before it has.
    pub fn in_flight(&self) -> u64 {
        if self.retry.kept > 0 {
            // What comes before the neighbour hears of the pause is no more than the link carries. What comes later was sent before that and is not
            // acknowledged: the neighbour keeps it, however often it has to repeat it.
            let kept = self.retry.kept.max(self.rate.bytes_over(self.to_here));
            return self.rate.bytes_over(self.hears()).saturating_add(kept);
        }
        self.rate.bytes_over(Time(self.to_here.0 + self.hears().0))
    }

    /// The size of packets that waste the most of their cells, and how many each takes. A byte more than whole cells takes one more for it; the
    /// fewer there are, the more it weighs. Or the smallest packet leaves even more of its cells empty.
    pub fn worst(&self) -> (u64, u64) {
        let cells = |size: u64| size.div_ceil(self.cell);
        let over = self.smallest.next_multiple_of(self.cell) + 1;
        let over = if over <= self.largest { over } else { self.smallest };
        // As fractions of cells over bytes.
        match cells(over) as u128 * self.smallest as u128 > cells(self.smallest) as u128 * over as u128 {
            true => (over, cells(over)),
            false => (self.smallest, cells(self.smallest)),
        }
    }

    /// Bytes of headroom that one class needs so that nothing is lost.
    pub fn headroom(&self) -> u64 {
        // A packet arrives at time 0, crosses the threshold and so goes into headroom itself: one largest packet.
        //
        // The pause frame then waits for the transmission under way in the other direction (at most the largest packet,
        // or a control packet) and for the frames queued before it (a pause and a resume of every class), is sent, and travels. Let the
        // neighbour hear of it at time T.
        //
        // The packet of time 0 was sent by -to_here, and the link is serial, so whatever comes in later began after that. The
        // neighbour sends at most at full rate until T and finishes what it began: rate × (to_here + T) and one more
        // largest packet.
        let flight = self.in_flight();
        if self.cell == 1 {
            return flight.saturating_add(2 * self.largest);
        }
        // All of these may be of the size that wastes the most.
        let (size, cells) = self.worst();
        let flight = flight as u128 * cells as u128 / size as u128;
        let cells = flight + 2 * self.largest.div_ceil(self.cell) as u128;
        u64::try_from(cells * self.cell as u128).unwrap_or(u64::MAX)
    }
}

/// How the switches' memory is divided.
struct Memory {
    /// By port.
    headroom: Vec<u64>,
    /// The loops of pauses, each once, and the least headroom that a port has for it.
    loops: BTreeMap<PauseLoop, u64>,
    /// What flow control says of its sizes.
    explained: Option<(&'static str, Vec<String>)>,
    /// By node.
    pool: Vec<Option<u64>>,
    promised: bool,
}

impl Memory {
    fn new(
        scenario: &Scenario,
        layout: &Layout,
        map: &PortMap,
        wire: &Wire,
        notes: &mut Vec<String>,
    ) -> Result<Memory, Problem> {
        let (graph, switch) = (&scenario.graph, &scenario.switch);
        let lossless = layout.headroom.is_some();
        let mut memory = Memory {
            headroom: vec![0; map.count()],
            loops: BTreeMap::new(),
            explained: None,
            pool: vec![None; graph.nodes.len()],
            promised: true,
        };
        if switch.unlimited {
            return Ok(memory);
        }
        memory.promised = lossless;
        let mut too_late = 0.0f64;
        let mut short = 0;
        let mut most_needed = 0;
        // Hosts that forward have memory for it, and need headroom like switches.
        let switches = || (0..graph.nodes.len() as u32).filter(|&n| graph.forwards(NodeId(n), map.of(n).len()));
        for port in switches().flat_map(|node| map.of(node)) {
            let pause = lossless.then(|| pause_loop(scenario, layout, map, wire, port));
            let (pause, chance) = pause.map_or((None, 0.0), |(pause, chance)| (Some(pause), chance));
            too_late = chance.max(too_late);
            let needed = pause.map_or(0, |pause| pause.headroom());
            let given = switch.headroom.map_or(needed, |headroom| whole(headroom, switch));
            // The fabric counts headroom in 32 bits.
            let most = u32::MAX as u64;
            let given = given.min(most - most % switch.cell.0);
            memory.headroom[port as usize] = given;
            if let Some(pause) = pause {
                memory.loops.entry(pause).and_modify(|least| *least = given.min(*least)).or_insert(given);
            }
            if given < needed {
                short += 1;
                most_needed = needed.max(most_needed);
            }
        }
        if short > 0 {
            memory.promised = false;
            notes
                .push(format!("headroom is less than {short} ports need (up to {most_needed} B): packets may be lost"));
        }
        if too_late > TOO_LATE && !graph.links.iter().any(Link::lossy) {
            memory.promised = false;
            notes.push(format!(
                "a pause may have to be repeated more often than headroom allows for (one in {:.0}): losing nothing is not promised; write a larger \
                 pause_replays in [links.retry]",
                1.0 / too_late
            ));
        }
        if lossless {
            memory.break_promises(scenario, layout, notes);
        }

        // Accounts of a port, as far as memory goes.
        let (reserve, global) = (whole(switch.reserve, switch), whole(switch.global_headroom, switch));
        let largest = scenario.choices.flow_control.least(wire.largest, switch.cell.0);
        let classes = lanes(scenario, layout) as u128 * layout.groups as u128;
        let mut worst: Option<(u128, u32)> = None;
        for node in switches() {
            let ports = map.of(node).len() as u128;
            let headroom: u128 = map.of(node).map(|port| memory.headroom[port as usize] as u128).sum();
            let set_aside = (headroom + ports * reserve as u128) * classes + global as u128;
            // With less than a packet for each, ports would starve one another.
            let needed = set_aside + ports * classes * largest as u128;
            let buffer = scenario.buffer(NodeId(node)).0;
            let buffer = buffer - buffer % switch.cell.0;
            if needed > buffer as u128 {
                worst = worst.max(Some((needed, node)));
            } else {
                memory.pool[node as usize] = Some(buffer - set_aside as u64);
            }
        }
        // With α, reserve and headroom all too small for a packet, senders would repeat themselves for ever.
        let never = |node: u32, port: u32| {
            let pool = memory.pool[node as usize].unwrap_or(0) as u128;
            let threshold = match (switch.sharing, switch.threshold) {
                (Sharing::Dynamic, Some(threshold)) => (threshold.0 as u128).min(pool),
                (Sharing::Dynamic, None) => (pool * fixed_point(switch.alpha) as u128) >> 16,
                (Sharing::Static, _) => pool / (map.of(node).len() as u128 * classes),
            };
            let threshold = threshold - threshold % switch.cell.0 as u128;
            threshold.max(reserve as u128).max(memory.headroom[port as usize] as u128) < largest as u128
        };
        if lossless
            && worst.is_none()
            && let Some(node) = switches().find(|&node| map.of(node).any(|port| never(node, port)))
        {
            let name = &graph.nodes[node as usize].name;
            let message = format!("{name} can never take in a packet of {} B", wire.largest);
            let help = match switch.threshold {
                None => "write a larger alpha, reserve or headroom in [switch]",
                Some(_) => "write a larger threshold, reserve or headroom in [switch]",
            };
            let key = if switch.threshold.is_some() { "switch.threshold" } else { "switch.alpha" };
            return Err(scenario.problem(key, message).help(help));
        }
        if let Some((needed, node)) = worst {
            let ports = map.of(node).len();
            let headroom: u128 = map.of(node).map(|port| memory.headroom[port as usize] as u128).sum();
            let each = match (lanes(scenario, layout), layout.groups) {
                (1, 1) => format!("{ports} ports"),
                (classes, 1) => format!("{ports} ports and {classes} classes"),
                (1, groups) => format!("{ports} ports and {groups} groups"),
                (classes, groups) => format!("{ports} ports, {classes} classes and {groups} groups"),
            };
            let message = format!(
                "the buffer of {} ({}) cannot hold {} B of headroom, {} B of reserve and one packet for each of {each}",
                graph.nodes[node as usize].name,
                scenario.buffer(NodeId(node)),
                headroom * classes + global as u128,
                ports as u128 * classes * reserve as u128,
            );
            let help = match needed.div_ceil(1000) {
                kilobytes if kilobytes <= 1_000_000_000 => {
                    format!("write buffer = \"{}\" or more in [switch]", Bytes(kilobytes as u64 * 1000))
                }
                _ => "no memory is that large".into(),
            };
            let help = format!("{help}, set less headroom and reserve, or use fewer classes");
            let own = scenario.buffers.contains_key(&NodeId(node));
            let host = graph.nodes[node as usize].kind == Kind::Host;
            let (place, help) = match own {
                _ if host => {
                    ("nic.forward_buffer", help.replace("buffer =", "forward_buffer =").replace("[switch]", "[nic]"))
                }
                true => {
                    ("switch.buffers", help.replace("in [switch]", "in [switch.buffers]").replace("buffer =", "for it"))
                }
                false => ("switch.buffer", help),
            };
            return Err(scenario.problem(place, message).help(help));
        }
        Ok(memory)
    }

    /// Takes the promise back where something else than want of headroom can make a switch drop packets.
    fn break_promises(&mut self, scenario: &Scenario, layout: &Layout, notes: &mut Vec<String>) {
        let links = &scenario.graph.links;
        let mut broken = |because: &str| {
            self.promised = false;
            notes.push(format!("{because}: losing nothing is not promised"));
        };
        if !layout.grants && links.iter().any(|link| link.lossy() && link.retry.is_some()) {
            broken("links may give up repeating, unless they are endless in [links.retry]");
        }
        if !layout.grants && links.iter().any(|link| link.lossy() && link.retry.is_none()) {
            broken("links with loss or corruption lose pause and resume frames too");
        }
        if !layout.grants && links.iter().any(|link| link.failures().any(|(_, up)| up.is_some())) {
            broken("a link that comes back may find headroom in use that it filled before");
        } else if !layout.grants && links.iter().any(|link| !link.never() && !link.outages.is_empty()) {
            broken(
                "a link that was down for a moment repeats what it kept before a pause, for which headroom does not allow",
            );
        }
        if let Some(because) = layout.may_drop {
            broken(because);
        }
        if scenario.switch.egress_alpha.is_some() {
            broken("switch.egress_alpha drops what a queue may not hold");
        }
        if scenario.nic.ack_lane == Lane::Data && scenario.classes > 1 {
            broken("ACKs in the data lane heed only pauses of class 0");
        }
    }
}

/// The NICs of hosts that take packets slowly. One without room for what comes after its pause may lose something.
fn slow_receivers(
    scenario: &Scenario,
    layout: &Layout,
    map: &PortMap,
    wire: &Wire,
    promised: &mut bool,
    notes: &mut Vec<String>,
) -> Vec<SlowReceiver> {
    let mut all = Vec::new();
    if !scenario.slow.is_empty() && !layout.stops_for_hosts {
        *promised = false;
        let name = scenario.choices.flow_control.name();
        notes
            .push(format!("with flow control {name} a NIC that is full drops packets: losing nothing is not promised"));
    }
    // Where switches have memory for everything, only these NICs can be too full for what comes after a pause that was lost.
    if *promised
        && !scenario.slow.is_empty()
        && scenario.switch.unlimited
        && !layout.grants
        && scenario.graph.fallible()
    {
        *promised = false;
        notes.push(
            "links that fail or lose packets lose pause frames of slow NICs too: losing nothing is not promised".into(),
        );
    }
    for slow in &scenario.slow {
        for port in map.of(slow.host.0) {
            if layout.grants {
                all.push(SlowReceiver {
                    port,
                    rate: slow.rate,
                    from: slow.from,
                    until: slow.until,
                    buffer: slow.buffer.0,
                    xoff: u64::MAX,
                    xon: 0,
                });
                continue;
            }
            // A NIC's memory counts bytes.
            let needed = PauseLoop { cell: 1, ..pause_loop(scenario, layout, map, wire, port).0 }.headroom();
            let xoff = slow.xoff.map_or(slow.buffer.0.saturating_sub(needed), |xoff| xoff.0);
            if *promised && xoff.saturating_add(needed) > slow.buffer.0 {
                *promised = false;
                let name = &scenario.graph[slow.host].name;
                notes.push(format!("the NIC of {name} needs {needed} B above its xoff: packets may be lost"));
            }
            let xon = xoff.saturating_sub(2 * wire.largest);
            let Slow { rate, from, until, .. } = *slow;
            all.push(SlowReceiver { port, rate, from, until, buffer: slow.buffer.0, xoff, xon });
        }
    }
    all
}

/// Asks a scheme that keeps within memory by its own means whether it can; true if it is one.
fn own_room(scenario: &Scenario, layout: &Layout, wire: &Wire, memory: &mut Memory, notes: &mut Vec<String>) -> bool {
    let fabric = Fabric {
        graph: &scenario.graph,
        pool: &memory.pool,
        largest: wire.largest,
        classes: scenario.classes,
        pipeline: scenario.switch.pipeline,
        reaction: scenario.switch.reaction,
        forward: scenario.nic.forward(),
        unfair: !matches!(scenario.choices.queueing.build(), Discipline::Bytes),
        cell: scenario.switch.cell.0,
        nics: scenario.slow.iter().map(|slow| (slow.host, slow.buffer.0)).collect(),
    };
    match scenario.choices.flow_control.room(&fabric) {
        None => return false,
        Some(Room::Enough) => memory.promised = true,
        Some(Room::Short(note)) => notes.push(note),
    }
    notes.extend(scenario.choices.flow_control.notes(&fabric));
    memory.explained = scenario.choices.flow_control.explain(&fabric);
    if memory.promised {
        memory.break_promises(scenario, layout, notes);
    }
    if memory.promised && !layout.grants && scenario.nic.ack_lane == Lane::Data {
        memory.promised = false;
        notes.push("ACKs in the data lane are not held back: losing nothing is not promised".into());
    }
    true
}

/// The loop of a pause that the node at `port` sends, and how likely one comes later than that.
fn pause_loop(scenario: &Scenario, layout: &Layout, map: &PortMap, wire: &Wire, port: u32) -> (PauseLoop, f64) {
    let graph = &scenario.graph;
    let link = &graph.links[map.link[port as usize] as usize];
    let (own_rate, rate) = (map.rate(graph, port), map.rate(graph, map.peer[port as usize]));
    let kind = |node: u32| graph.nodes[node as usize].kind;
    // A frame is handled by a host at once; what it forwards it queues after a while.
    let own = match kind(map.node[port as usize]) {
        Kind::Switch => scenario.switch.pipeline,
        Kind::Host => scenario.nic.forward_delay,
    };
    let far = match kind(map.node[map.peer[port as usize] as usize]) {
        Kind::Switch => scenario.switch.pipeline,
        Kind::Host => Time::ZERO,
    };
    let classes = lanes(scenario, layout) * layout.groups as u8;
    let other_frames = layout.headroom.map_or(0, |Headroom { other_frames }| other_frames);
    let retry = link.retry.map(|retry| {
        let (here, there) = (link.delay + own, link.delay + far);
        let to_here = retry.limits((rate, own_rate), here, there, wire.largest);
        let to_neighbour = retry.limits((own_rate, rate), there, here, wire.largest);
        let frames = (2 * classes as u64 + 1 + other_frames) * wire.frame;
        PauseRetry::new((link, own_rate), to_here, to_neighbour, scenario.pause_replays, frames)
    });
    let (retry, chance) = retry.unwrap_or_default();
    let pause = PauseLoop {
        rate,
        own: own_rate,
        to_here: link.delay + own,
        to_neighbour: link.delay + far + scenario.switch.reaction,
        largest: wire.largest,
        frame: wire.frame,
        control: wire.control,
        classes,
        other_frames,
        smallest: wire.smallest,
        cell: scenario.switch.cell.0,
        retry,
    };
    (pause, chance)
}

/// Shares and marking of every port.
fn port_setups(scenario: &Scenario, layout: &Layout, map: &PortMap, headroom: &[u64]) -> Vec<PortSetup> {
    let (graph, switch) = (&scenario.graph, &scenario.switch);
    let marks = switch.ecn.unwrap_or(scenario.choices.congestion_control.uses_marks());
    let before_hosts = scenario.choices.congestion_control.marks_before_hosts();
    let hosts_rate = graph.hosts_rate().unwrap_or(Rate(1));
    let port = |port: usize| {
        let node = map.node[port];
        if !graph.forwards(NodeId(node), map.of(node).len()) {
            return PortSetup::default();
        }
        let link = &graph.links[map.link[port] as usize];
        let (rate, depth) = (link.rate(NodeId(node)), link.depths[link.direction(NodeId(node))]);
        let to_host = graph.nodes[map.node[map.peer[port] as usize] as usize].kind == Kind::Host;
        let scaled = |bytes: Bytes| match switch.ecn_scale && rate > hosts_rate {
            true => (bytes.0 as u128 * rate.0 as u128 / hosts_rate.0 as u128) as u64,
            false => bytes.0,
        };
        let mut setup = PortSetup {
            share: Share {
                // The ingress threshold exists to pause in time; without pauses the egress limit is the policy.
                alpha: match layout.headroom.is_some() {
                    true => fixed_point(switch.alpha).min(u32::MAX as u64) as u32,
                    false => u32::MAX,
                },
                headroom: headroom[port] as u32,
            },
            ecn: (marks && (before_hosts || !to_host)).then(|| Ecn {
                min: scaled(switch.ecn_min),
                max: scaled(switch.ecn_max),
                probability: switch.ecn_probability,
                by_port: false,
            }),
            depth,
        };
        scenario.choices.marking.port(&mut setup);
        setup.ecn = setup.ecn.map(|ecn| Ecn { min: setup.part(ecn.min), max: setup.part(ecn.max), ..ecn });
        setup
    };
    (0..map.count()).map(port).collect()
}

/// The ports and flows to follow closely, if there are any.
fn series(scenario: &Scenario, flows: &[FlowSpec]) -> Option<SeriesSetup> {
    let watch = &scenario.watch;
    let followed = |flow: &FlowSpec| watch.groups.binary_search(&flow.tag).is_ok();
    let flows: Vec<FlowId> =
        (0..).map(FlowId).zip(flows).filter(|(_, flow)| followed(flow)).map(|(number, _)| number).collect();
    if watch.ports.is_empty() && flows.is_empty() {
        return None;
    }
    Some(SeriesSetup { every: scenario.measure.series.unwrap_or(SERIES), ports: watch.ports.clone(), flows })
}

/// Flows, which of them wait for which, and which are a collective's or a job's.
type Flows = (Vec<FlowSpec>, Vec<After>, Vec<Messages>, Vec<Outline>);

/// The flows in order of start, with their paths through the idle network timed, which of them wait for which, and which are a
/// collective's.
fn flows(scenario: &Scenario, map: &PortMap, wire: &Wire, notes: &mut Vec<String>) -> Result<Flows, Problem> {
    let (graph, bus) = (&scenario.graph, scenario.nic.bus());
    // What a message takes between hosts and NICs; one that waits for another begins when that has passed both.
    let around = bus.send + bus.receive;
    let names = Names::new(graph);
    let paths = Paths::new(
        graph,
        map,
        scenario.choices.load_balancing.rule(),
        scenario.switch.pipeline,
        scenario.nic.forward_delay,
    )
    .salted(scenario.salt.number(scenario.seed));
    let mut order: Vec<u32> = (0..scenario.traffic.flows.len() as u32).collect();
    order.sort_by_key(|&flow| scenario.traffic.flows[flow as usize].start);
    let source_ports = source_ports(&scenario.traffic.flows, &order, graph.nodes.len(), scenario.nic.queue_pairs);
    let mut shapes: Vec<Shape> = Vec::new();
    let (mut forth, mut back) = (Vec::new(), Vec::new());
    let mut lines: Vec<Rate> = Vec::with_capacity(order.len());
    let mut most_switches = 0;
    let mut flows = Vec::with_capacity(order.len());
    for (&number, source_port) in order.iter().zip(source_ports) {
        let request = scenario.traffic.flows[number as usize];
        request
            .check(&names, scenario.classes)
            .map_err(|fault| scenario.flow_problem(number as usize, fault.message).help(fault.help))?;
        let tuple = Tuple {
            source: address(request.src),
            destination: address(request.dst),
            source_port,
            destination_port: ROCE_PORT,
        };
        let found = paths.walk(request.src, request.dst, tuple, &mut forth)
            && paths.walk(request.dst, request.src, tuple.reversed(), &mut back);
        if !found {
            let name = |node: NodeId| &graph[node].name;
            let message =
                format!("there is no path from {} to {} through switches", name(request.src), name(request.dst));
            return Err(scenario
                .flow_problem(number as usize, message)
                .help("hosts do not forward here; name two hosts that switches connect"));
        }
        let ideal = ideal_time(Clock::Exact, &forth, wire.framing, request.size);
        if request.until == Time::MAX && ideal > MAX_START {
            let message = format!("the flow would take {} s even alone in the network", ideal.secs_f64());
            return Err(scenario.flow_problem(number as usize, message).help("make it smaller or the links faster"));
        }
        let known = shapes.iter().find(|shape| shape.forth == forth && shape.back == back);
        let (base_rtt, back_alone) = known.map_or_else(
            || {
                let base_rtt = round_trip(Clock::Exact, &forth, &back, wire.framing, wire.ack);
                (base_rtt, alone(Clock::Exact, &back, wire.ack))
            },
            |shape| (shape.round_trip, shape.back_alone),
        );
        if known.is_none() && shapes.len() < SHAPES {
            let (forth, back) = (forth.clone(), back.clone());
            shapes.push(Shape { forth, back, round_trip: base_rtt, back_alone });
        }
        most_switches = most_switches.max(forth.len() - 1);
        lines.push(forth[0].rate);
        flows.push(FlowSpec {
            src: request.src,
            dst: request.dst,
            size: request.size,
            start: request.start + bus.send,
            class: request.class,
            tuple,
            window: 0,
            base_rtt,
            ideal: ideal + around,
            ideal_acknowledged: ideal + around + back_alone,
            until: request.until,
            hops: (forth.len() - 1).min(u8::MAX as usize) as u8,
            tag: request.group,
        });
    }
    notes.extend(unnamed_paths(scenario, &paths, &flows));
    if most_switches > MAX_HOPS && scenario.choices.congestion_control.build().needs().telemetry {
        notes.push(format!("a path has {most_switches} switches; telemetry covers the first {MAX_HOPS}"));
    }
    let longest = flows.iter().map(|flow| flow.base_rtt).max().unwrap_or_default();
    for (flow, line) in flows.iter_mut().zip(lines) {
        flow.window = match scenario.window {
            WindowSize::None => 0,
            WindowSize::Bdp => line.bytes_over(longest).min(traffic::MAX_SIZE.0),
            WindowSize::Fixed(bytes) => bytes.0,
        };
    }
    let smallest = flows.iter().map(|flow| flow.window).min().unwrap_or(0);
    check_acks(scenario, smallest)?;
    let mut place = vec![0; order.len()];
    (0..).zip(&order).for_each(|(now, &before)| place[before as usize] = now);
    check_gaps(scenario, |flow| flows[place[flow.index()] as usize].ideal)?;
    let moved = |id: FlowId| Task::number(id).map_or_else(|| FlowId(place[id.index()]), |_| id);
    // A task begins at a host when the NIC has passed up what it waits for; a flow begins at the NIC.
    let passed = |flow: FlowId, first: FlowId| match (Task::number(flow), Task::number(first)) {
        (None, None) => around,
        (Some(_), None) => bus.receive,
        (None, Some(_)) => bus.send,
        (Some(_), Some(_)) => Time::ZERO,
    };
    let after = scenario.traffic.after.iter().map(|after| After {
        flow: moved(after.flow),
        first: moved(after.first),
        gap: after.gap + passed(after.flow, after.first),
    });
    // All of a collective start together: they stay together, in their order.
    let moved = |messages: &Messages| Messages { first: FlowId(place[messages.first.index()]), ..messages.clone() };
    let collectives = scenario.traffic.collectives.iter().map(moved).collect();
    let jobs = scenario.traffic.jobs.iter().map(|job| job.moved(0, |flow| FlowId(place[flow.index()]))).collect();
    Ok((flows, after.collect(), collectives, jobs))
}

/// What is said where load balancing knows paths by name, and there are more than it knows. A few destinations are looked at.
fn unnamed_paths(scenario: &Scenario, paths: &Paths<'_>, flows: &[FlowSpec]) -> Option<String> {
    const DESTINATIONS: usize = 64;
    let balancing = &scenario.choices.load_balancing;
    if !balancing.names_paths() {
        return None;
    }
    let mut seen = HashSet::new();
    let apart = |flow: &&FlowSpec| paths.home(flow.src) != paths.home(flow.dst) && seen.insert(paths.home(flow.dst));
    let counts = flows.iter().filter(apart).take(DESTINATIONS).map(|flow| (paths.count(flow.src, flow.dst), flow));
    let (count, flow) = counts.max_by_key(|(count, _)| *count).filter(|(count, _)| *count > MOST_ROUTES as u64)?;
    let name = |host: NodeId| paths.home(host).map_or("", |home| scenario.graph[home].name.as_str());
    let (first, last) = (name(flow.src), name(flow.dst));
    Some(format!("{} knows {MOST_ROUTES} of the {count} paths from {first} to {last}, spread evenly", balancing.name()))
}

/// The source ports of flows in their order of start: those between the same two hosts are numbered, or take so many queue pairs in turn.
fn source_ports(flows: &[FlowRequest], order: &[u32], nodes: usize, pairs: Option<u32>) -> Vec<u16> {
    // A map of a million pairs costs several times as much.
    let mut by_source: Vec<Vec<(NodeId, u32)>> = vec![Vec::new(); nodes];
    for (place, &flow) in (0..).zip(order) {
        let flow = &flows[flow as usize];
        // Flows are checked later.
        if let Some(own) = by_source.get_mut(flow.src.index()) {
            own.push((flow.dst, place));
        }
    }
    let mut ports = vec![FIRST_PORT; order.len()];
    for own in &mut by_source {
        own.sort_unstable();
        for same in own.chunk_by(|a, b| a.0 == b.0) {
            for (turn, &(_, place)) in (0u32..).zip(same) {
                ports[place as usize] = FIRST_PORT.wrapping_add(pairs.map_or(turn, |pairs| turn % pairs) as u16);
            }
        }
    }
    ports
}

/// What paths have in common whose links are alike.
struct Shape {
    forth: Vec<Leg>,
    back: Vec<Leg>,
    round_trip: Time,
    /// What an ACK takes back.
    back_alone: Time,
}

/// As many as are worth looking through.
const SHAPES: usize = 16;

/// Refuses flows that wait for so many others, or with such gaps, that time itself would run out before they start.
fn check_gaps(scenario: &Scenario, ideal: impl Fn(FlowId) -> Time) -> Result<(), Problem> {
    // A run that stops before does not get there.
    if scenario.stop.is_some() {
        return Ok(());
    }
    let Some((flow, _)) = scenario.traffic.starts_late(MAX_LATE_START, ideal) else { return Ok(()) };
    let seconds = MAX_LATE_START.secs_f64();
    let message = format!("with what it waits for and the gaps between, it would start after {seconds} s, the latest");
    Err(scenario
        .flow_problem(flow.index(), message)
        .help("write shorter gaps, fewer flows in a row or rounds, or a stop"))
}

/// A host's address.
fn address(node: NodeId) -> u32 {
    FIRST_ADDRESS.wrapping_add(node.0 << 8)
}

/// A receiver that waits for more packets than the window lets go would wait for ever.
fn check_acks(scenario: &Scenario, window: u64) -> Result<(), Problem> {
    let (every, payload) = (scenario.nic.ack_every as u64, scenario.nic.payload.0);
    if every == 1 {
        return Ok(());
    }
    let problem =
        |message: String| Err(scenario.problem("nic.ack_every", message).help("write ack_every = 1 in [nic]"));
    let control = &scenario.choices.congestion_control;
    if control.build().needs().window {
        let name = control.name();
        return problem(format!("{name} sets windows, which may hold fewer than ack_every = {every} packets"));
    }
    if window == 0 {
        return Ok(());
    }
    if window.div_ceil(payload) < every {
        return problem(format!("the window of {window} B holds fewer than ack_every = {every} packets"));
    }
    if scenario.window_rule == WindowRule::Scaled && control.name() != "none" {
        return problem(format!("a window that shrinks with the rate may hold fewer than ack_every = {every} packets"));
    }
    Ok(())
}

/// Refuses a run without a stop that would send the same packets again for ever.
fn check_end(scenario: &Scenario, map: &PortMap) -> Result<(), Problem> {
    let graph = &scenario.graph;
    if scenario.stop.is_some() {
        return Ok(());
    }
    const HELP: &str = "write a stop, such as stop = \"20ms\"";
    if let Some(link) =
        graph.links.iter().find(|link| link.loss >= 1.0 || link.corruption >= 1.0 || link.bit_errors >= 1.0)
    {
        let name = |node: NodeId| &graph[node].name;
        let message = format!("nothing passes the link {} to {}: the run might never end", name(link.a), name(link.b));
        return Err(scenario.problem("link", message).help(HELP));
    }
    let up: Vec<bool> = graph.links.iter().map(|link| link.outages.iter().all(|(_, up)| up.is_some())).collect();
    if up.iter().all(|&up| up) {
        return Ok(());
    }
    let routing = Routing::new(graph, map, &up);
    // Any next hop lies on a shortest path. A host with one link names it whether it works or not.
    let connected = |from: NodeId, to: NodeId| {
        let mut node = from;
        while node != to {
            match routing.next_hops(node.0, to.0).first() {
                Some(&port) if up[map.link[port as usize] as usize] => {
                    node = NodeId(map.node[map.peer[port as usize] as usize])
                }
                _ => return false,
            }
        }
        true
    };
    let cut = |flow: &FlowRequest| !connected(flow.src, flow.dst) || !connected(flow.dst, flow.src);
    match scenario.traffic.flows.iter().position(cut) {
        Some(number) => {
            let message = "links that fail for good cut the path of this flow: the run might never end";
            Err(scenario.flow_problem(number, message).help(HELP))
        }
        None => Ok(()),
    }
}
