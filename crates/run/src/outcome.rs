//! A folder of results: `summary.json`, tables of flows, buffers, links and time series, and the scenario that gave them.

use crate::collective::{self, Together};
use crate::forward::FastForward;
use crate::job::Trained;
use crate::slowdown::{since, slowdown, slowdown_acknowledged, slowdowns, slowdowns_acknowledged};
use crate::why::{Why, part_columns};
use engine::Time;
use estimate::About;
use fabric::Outcome;
use fabric::retry::Tally;
use fabric::routing::PortMap;
use fabric::run::{FlowRecord, Stall, Wait};
use fabric::topology::{Graph, Kind};
use files::problem::Problem;
use files::{Folder, SUMMARY};
use results::causes::Causes;
use results::measure::{SizeBin, Spread, by_size, jain};
use results::records::{BUFFERS, COLLECTIVES, FLOWS, LINKS, PARTS, PORTS, QUEUED, RATES};
use results::tables::{self, Column, Columns};
use scenario::resolve::Resolved;
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;
use traffic::Messages;

/// What a run was: the part of a summary that its input decides.
#[derive(Clone, Debug, Serialize)]
pub struct Identity {
    /// The scenario's title.
    pub scenario: String,
    /// Flow control by name.
    pub flow_control: String,
    /// Congestion control by name.
    pub congestion_control: String,
    /// What was on top of it, by name.
    pub edge_control: String,
    /// Transport by name.
    pub transport: String,
    /// The choice among equally short paths, by name.
    pub load_balancing: String,
    /// The order of the queues of a port, by name.
    pub queueing: String,
    /// What marks packets, by name.
    pub marking: String,
    /// Bytes of state that flow control keeps in the switch with the most ports.
    pub switch_state_bytes: u64,
    /// The seed.
    pub seed: u64,
}

impl Identity {
    /// That of a run to come.
    pub(crate) fn of(resolved: &Resolved) -> Identity {
        let Resolved { setup, choices, .. } = resolved;
        let map = PortMap::new(&setup.graph);
        let switches = (0..).zip(&setup.graph.nodes).filter(|(_, node)| node.kind == Kind::Switch);
        let ports = switches.map(|(node, _)| map.of(node).len()).max().unwrap_or(0);
        Identity {
            scenario: resolved.name.clone(),
            flow_control: choices.flow_control.name().into(),
            congestion_control: choices.congestion_control.name().into(),
            edge_control: choices.edge_control.name().into(),
            transport: choices.transport.name().into(),
            load_balancing: choices.load_balancing.name().into(),
            queueing: choices.queueing.name().into(),
            marking: choices.marking.name().into(),
            switch_state_bytes: choices.flow_control.switch_state(ports as u64, setup.classes as u64),
            seed: setup.seed,
        }
    }

    /// The scheme in a few words: what is as usual is left out.
    pub fn scheme(&self) -> String {
        let mut text = format!("flow control {}, congestion control {}", self.flow_control, self.congestion_control);
        if self.edge_control != "none" {
            text += &format!(" under {}", self.edge_control);
        }
        for (name, usual) in [
            (&self.transport, "go-back-n"),
            (&self.load_balancing, "ecmp"),
            (&self.queueing, "drr"),
            (&self.marking, "red"),
        ] {
            if name != usual {
                text += &format!(", {name}");
            }
        }
        text
    }
}

/// Packets and bytes of message.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Volume {
    /// Packets.
    pub packets: u64,
    /// Bytes of message.
    pub bytes: u64,
}

impl From<(u64, u64)> for Volume {
    fn from((packets, bytes): (u64, u64)) -> Volume {
        Volume { packets, bytes }
    }
}

/// Packets lost, by cause.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Dropped {
    /// In all.
    pub packets: u64,
    /// Bytes on the wire of all of them.
    pub wire_bytes: u64,
    /// No room in a buffer.
    pub buffer: u64,
    /// Lost or damaged on a link.
    pub link_fault: u64,
    /// Lost with a link that went down, or without a path.
    pub link_down: u64,
    /// Dropped from a queue by the scheme; left out if none was.
    #[serde(skip_serializing_if = "is_zero")]
    pub scheme: u64,
}

/// What links that repeat frames did, at both ends of all of them.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct LinkRetry {
    /// ACKs.
    pub acks: u64,
    /// NACKs.
    pub nacks: u64,
    /// Times that all was repeated because of a NACK.
    pub replays: u64,
    /// The same because nothing was heard.
    pub timeouts: u64,
    /// Frames that were sent again, and their bytes on the wire.
    pub repeated: Volume,
    /// Frames that came damaged or not at all.
    pub damaged: u64,
    /// Frames that came whole behind one that was missing.
    pub discarded: u64,
    /// Frames that came again.
    pub duplicates: u64,
    /// ACKs, NACKs and the like that were damaged or did not come.
    pub sets_lost: u64,
    /// Times that an end gave up.
    pub flushes: u64,
    /// Frames that were lost for good.
    pub lost: u64,
    /// How late frames were in all.
    pub late_ps: u64,
}

impl LinkRetry {
    fn new(outcome: &Outcome) -> Option<LinkRetry> {
        let mut all = Tally::default();
        outcome.retries.iter().for_each(|(_, tally)| all.add(tally));
        (!outcome.retries.is_empty()).then_some(LinkRetry {
            acks: all.acks,
            nacks: all.nacks,
            replays: all.replays,
            timeouts: all.timeouts,
            repeated: all.repeated.into(),
            damaged: all.damaged,
            discarded: all.discarded,
            duplicates: all.duplicates,
            sets_lost: all.sets_lost,
            flushes: all.flushes,
            lost: all.lost,
            late_ps: all.late,
        })
    }
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// A time in which a link was down.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Outage {
    /// One of its ends.
    pub a: String,
    /// The other.
    pub b: String,
    /// Since when.
    pub from_ps: u64,
    /// Until when; none if it did not come back before the end.
    pub until_ps: Option<u64>,
}

impl Outage {
    /// Those of a fabric that began before the end of a run, in order of time.
    fn all(graph: &Graph, end: Time) -> Vec<Outage> {
        let name = |node| graph[node].name.clone();
        let mut all = Vec::new();
        for link in &graph.links {
            for &(from, until) in link.outages.iter().filter(|(from, _)| *from < end) {
                let until_ps = until.filter(|&until| until < end).map(|until| until.0);
                all.push(Outage { a: name(link.a), b: name(link.b), from_ps: from.0, until_ps });
            }
        }
        all.sort_by_key(|outage| outage.from_ps);
        all
    }
}

/// How long a link was held by pauses, in one direction.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PausedLink {
    /// The sender that had to wait.
    pub from: String,
    /// The receiver that made it wait.
    pub to: String,
    /// Picoseconds, if only of one queue.
    pub paused_ps: u64,
    /// Of these, those in which a whole class was.
    pub class_ps: u64,
    /// Of these, those in which all classes were.
    pub port_ps: u64,
    /// Of the time from the first flow's start to the end, `paused_ps`.
    pub share: f64,
}

/// A queue that waits at the end of a run that came to rest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct WaitingQueue {
    /// The node whose queue it is.
    pub from: String,
    /// The node at the other end of the link.
    pub to: String,
    /// The queue, counted from 0; `None` where the port has a single one or waits as a whole.
    pub queue: Option<u32>,
}

impl fmt::Display for WaitingQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} -> {}", self.from, self.to)?;
        self.queue.map_or(Ok(()), |queue| write!(f, ", queue {queue}"))
    }
}

/// Pauses.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Pauses {
    /// Pause frames obeyed.
    pub pauses: u64,
    /// Resume frames obeyed.
    pub resumes: u64,
    /// Sum over all links and directions, of the time that something was paused: if only a queue.
    pub paused_ps: u64,
    /// Of that, the time that a whole class was.
    pub class_ps: u64,
    /// Of that, the time that all classes were.
    pub port_ps: u64,
    /// The mean over all links and directions, of the time from the first flow's start to the end.
    pub share: f64,
    /// The links that were held at all.
    pub links: Vec<PausedLink>,
}

/// Flows that flow control kept from sending at their NICs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Held {
    /// How many of them.
    pub flows: u64,
    /// For how long in all: the sum of the two that follow.
    pub held_ps: u64,
    /// Held one by one.
    pub flow_ps: u64,
    /// With their class, which was paused.
    pub class_ps: u64,
}

impl Held {
    fn new(outcome: &Outcome) -> Held {
        let sum = |of: fn(&FlowRecord) -> Time| outcome.flows.iter().map(|flow| of(flow).0).sum::<u64>();
        let (flow_ps, class_ps) = (sum(|flow| flow.held), sum(|flow| flow.paused));
        let flows = outcome.flows.iter().filter(|flow| flow.held + flow.paused > Time::ZERO).count() as u64;
        Held { flows, held_ps: flow_ps + class_ps, flow_ps, class_ps }
    }
}

/// A switch's memory.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Occupancy {
    /// The switch.
    pub switch: String,
    /// The most bytes it ever held; exact.
    pub peak: u64,
    /// Bytes held at the sampling instants.
    pub sampled: Spread,
    /// The most held between one sampling instant and the next.
    pub watermarks: Spread,
}

/// Memory of all switches.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Buffers {
    /// The most that any switch ever held.
    pub peak: u64,
    /// Samples of all switches together.
    pub sampled: Spread,
    /// The most held between one sampling instant and the next, of all switches together.
    pub watermarks: Spread,
    /// Switch by switch.
    pub switches: Vec<Occupancy>,
}

/// Flows that belong together.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Group {
    /// Its name.
    pub name: String,
    /// Flows in it.
    pub flows: usize,
    /// Flows acknowledged to the end.
    pub finished: usize,
    /// Bytes of message received in order.
    pub received_bytes: u64,
    /// Slowdown of finished flows.
    pub slowdown: Spread,
    /// The same by size.
    pub slowdown_by_size: Vec<SizeBin>,
    /// Slowdown to the acknowledgement.
    pub slowdown_acknowledged: Spread,
    /// Bits received in order per second of every flow's life, in Gbit/s.
    pub throughput_gbps: Spread,
    /// Jain's index of these.
    pub fairness: Option<f64>,
}

/// How much the links carried, as shares of their rates from the first flow's start to the end.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Utilisation {
    /// Links from hosts.
    pub from_hosts: Spread,
    /// Links to hosts.
    pub to_hosts: Spread,
    /// Links between switches.
    pub between_switches: Spread,
    /// Bits per second that arrived at each host, all packets, in Gbit/s.
    pub receivers_gbps: Spread,
}

/// What the run cost; the only part of a summary that differs from one run to the next.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Cost {
    /// Seconds on the clock, from the built fabric to the last event.
    pub wall_seconds: f64,
    /// Packet-hops per second of it.
    pub packet_hops_per_second: f64,
    /// Peak resident memory of the process, where the system reports it.
    pub peak_memory_bytes: Option<u64>,
}

/// `summary.json`.
#[derive(Clone, Debug, Serialize)]
pub struct Summary {
    /// Version of the program.
    pub tailwater: &'static str,
    /// The digest of the code that ran, see [`crate::code`].
    pub code: &'static str,
    /// What ran.
    #[serde(flatten)]
    pub identity: Identity,
    /// Flows in the scenario.
    pub flows: usize,
    /// Flows acknowledged to the end.
    pub finished: usize,
    /// Simulated picoseconds.
    pub end_ps: u64,
    /// How the run ended: `complete`, `stopped`, `interrupted`, `deadlock`, `blocked` or `lost`.
    pub ending: &'static str,
    /// The queues of a deadlock's cycle, or all ports that are blocked, as `from -> to`. A queue other than a port's only one is
    /// named with its number, counted from 0.
    pub waiting: Vec<String>,
    /// The same for programs; left out where nothing waits.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub waits: Vec<WaitingQueue>,
    /// Handed to links by senders, retransmissions included.
    pub injected: Volume,
    /// Reached their receivers, duplicates included.
    pub delivered: Volume,
    /// Sent again.
    pub retransmitted: Volume,
    /// Lost.
    pub dropped: Dropped,
    /// What links did that repeat frames, if any do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub link_retry: Option<LinkRetry>,
    /// Packets queued or in flight at the end.
    pub left: u64,
    /// Data packets marked by switches.
    pub marked: u64,
    /// Those marked before the link to a host.
    pub marked_receiver: u64,
    /// Those marked inside the network.
    pub marked_network: u64,
    /// Data packets that arrived after one of their flow that was sent later.
    pub overtaken: u64,
    /// ACKs and NACKs sent.
    pub acks: u64,
    /// Senders that started over after a timeout.
    pub timeouts: u64,
    /// Slowdown of finished flows.
    pub slowdown: Spread,
    /// The same by size.
    pub slowdown_by_size: Vec<SizeBin>,
    /// Slowdown to the acknowledgement.
    pub slowdown_acknowledged: Spread,
    /// Group by group.
    pub groups: Vec<Group>,
    /// Collective by collective; left out where there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub collectives: Vec<Together>,
    /// Job by job; left out where there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub jobs: Vec<Trained>,
    /// How busy the links were.
    pub utilisation: Utilisation,
    /// Pauses.
    pub pause: Pauses,
    /// Flows that were kept from sending.
    pub held: Held,
    /// Switch memory.
    pub buffer: Buffers,
    /// When links were down; left out if none was.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub outages: Vec<Outage>,
    /// What the schemes counted.
    pub counters: BTreeMap<String, u64>,
    /// What flow control saw at the sampling instants: how many samples had the value 0, 1, 2 and so on.
    pub histograms: BTreeMap<String, Vec<u64>>,
    /// Bytes of frames and signals that flow control made.
    pub control_bytes: u64,
    /// Events handled.
    pub events: u64,
    /// Packets that crossed a link.
    pub packet_hops: u64,
    /// How it was estimated, and how far off that is; left out of a run that was simulated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub estimate: Option<About>,
    /// What was skipped, and how far off the result is by that; left out of a run that skips nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fast_forward: Option<FastForward>,
    /// What is odd about the scenario, and allowed; left out where nothing is.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// What explains the run; left out if that was not asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<Why>,
    /// Promises that were broken; empty in every result that can be believed.
    pub violations: Vec<String>,
    /// Time and memory.
    pub cost: Cost,
}

/// `from -> to` of a port.
fn port_name(graph: &Graph, map: &PortMap, port: u32) -> (String, String) {
    let name = |p: u32| graph.nodes[map.node[p as usize] as usize].name.clone();
    (name(port), name(map.peer[port as usize]))
}

/// The ending of a run that came to rest with flows unfinished, for which there is no excuse: no deadlock, no stop, no link that
/// fails. It breaks the promise that every flow ends.
pub const STALLED: &str = "stalled";

impl Summary {
    /// Sums up a run.
    pub fn new(
        identity: Identity,
        graph: &Graph,
        groups: &[String],
        collectives: &[Messages],
        outcome: &Outcome,
        causes: Option<&Causes>,
        wall: Duration,
    ) -> Summary {
        let map = PortMap::new(graph);
        let c = &outcome.counts;
        let begin = outcome.flows.first().map_or(Time::ZERO, |f| f.spec.start);
        let span = outcome.end.saturating_sub(begin).0.max(1) as f64;
        let port = |port: u32, queue: Option<u32>| {
            let (from, to) = port_name(graph, &map, port);
            WaitingQueue { from, to, queue }
        };
        let queue = |wait: &Wait| port(wait.port, (outcome.queues > 1).then_some(wait.queue));
        // Where no link can fail there is no excuse for a flow that waits for ever outside of a deadlock.
        let fault = graph.fallible();
        let (ending, waits) = match &outcome.stall {
            _ if outcome.interrupted => ("interrupted", Vec::new()),
            Some(Stall::Deadlock(cycle)) => ("deadlock", cycle.iter().map(queue).collect()),
            Some(Stall::Blocked(ports)) => {
                (if fault { "blocked" } else { STALLED }, ports.iter().map(|&p| port(p, None)).collect())
            }
            Some(Stall::Lost) => (if fault { "lost" } else { STALLED }, Vec::new()),
            None if outcome.complete() => ("complete", Vec::new()),
            None => ("stopped", Vec::new()),
        };
        let unfinished = outcome.flows.len() - outcome.finished.len();
        let stalled = (ending == STALLED).then(|| {
            let flows = if unfinished == 1 { "1 flow waits".into() } else { format!("{unfinished} flows wait") };
            format!("{flows} for ever, without a deadlock, a stop or a link that fails")
        });
        let slowdowns = slowdowns(outcome.flows.iter(), outcome.end);
        let whole = Slowdowns {
            all: Spread::of_slowdowns(slowdowns.iter().map(|(_, s)| *s).collect()),
            by_size: by_size(&slowdowns),
            acknowledged: Spread::of_slowdowns(slowdowns_acknowledged(outcome.flows.iter(), outcome.end)),
        };
        // A single group is everything: sorting it once more would tell nothing new.
        let single = outcome.flows.iter().all(|flow| flow.spec.tag == 0);
        let group = |(tag, name): (u16, &String)| match tag == 0 && single {
            true => Group::with(name, tag, outcome, whole.clone()),
            false => Group::new(name, tag, outcome),
        };
        let groups_known: Vec<Group> = (0..).zip(groups).map(group).collect();
        let switches = graph.nodes.iter().enumerate().filter(|(_, n)| n.kind == Kind::Switch);
        let to_f64 = |samples: &[u32]| samples.iter().map(|&s| s as f64).collect::<Vec<_>>();
        let all = |samples: &[Vec<u32>]| Spread::of(samples.iter().flat_map(|s| to_f64(s)).collect());
        let links = outcome.paused.iter().enumerate().filter(|(_, t)| **t > Time::ZERO).map(|(port, t)| {
            let (from, to) = port_name(graph, &map, port as u32);
            let (class, whole) = outcome.stopped[port];
            PausedLink { from, to, paused_ps: t.0, class_ps: class.0, port_ps: whole.0, share: t.0 as f64 / span }
        });
        let wall_seconds = wall.as_secs_f64();
        Summary {
            tailwater: env!("CARGO_PKG_VERSION"),
            code: crate::code(),
            identity,
            flows: outcome.flows.len(),
            finished: outcome.finished.len(),
            end_ps: outcome.end.0,
            ending,
            waiting: waits.iter().map(WaitingQueue::to_string).collect(),
            waits,
            injected: c.injected.into(),
            delivered: c.delivered.into(),
            retransmitted: c.retransmitted.into(),
            dropped: Dropped {
                packets: c.dropped(),
                wire_bytes: c.dropped_bytes,
                buffer: c.dropped_full,
                link_fault: c.dropped_fault,
                link_down: c.dropped_down,
                scheme: c.dropped_scheme,
            },
            link_retry: LinkRetry::new(outcome),
            left: outcome.left,
            marked: c.marked,
            marked_receiver: c.marked_receiver,
            marked_network: c.marked - c.marked_receiver,
            overtaken: c.overtaken,
            acks: c.acks,
            timeouts: c.timeouts,
            slowdown: whole.all,
            slowdown_by_size: whole.by_size,
            slowdown_acknowledged: whole.acknowledged,
            groups: groups_known,
            collectives: collectives.iter().map(|messages| Together::new(groups, messages, outcome)).collect(),
            jobs: Vec::new(),
            utilisation: Utilisation::new(graph, &map, outcome, span),
            pause: Pauses {
                pauses: c.pauses,
                resumes: c.resumes,
                paused_ps: outcome.paused.iter().map(|t| t.0).sum(),
                class_ps: outcome.stopped.iter().map(|(class, _)| class.0).sum(),
                port_ps: outcome.stopped.iter().map(|(_, port)| port.0).sum(),
                share: outcome.paused.iter().map(|t| t.0 as f64 / span).sum::<f64>()
                    / outcome.paused.len().max(1) as f64,
                links: links.collect(),
            },
            held: Held::new(outcome),
            buffer: Buffers {
                peak: outcome.peak.iter().copied().max().unwrap_or(0),
                sampled: all(&outcome.samples.used),
                watermarks: all(&outcome.samples.watermarks),
                switches: switches
                    .map(|(node, n)| Occupancy {
                        switch: n.name.clone(),
                        peak: outcome.peak[node],
                        sampled: Spread::of(to_f64(&outcome.samples.used[node])),
                        watermarks: Spread::of(to_f64(&outcome.samples.watermarks[node])),
                    })
                    .collect(),
            },
            outages: Outage::all(graph, outcome.end),
            counters: outcome
                .flow_control
                .iter()
                .chain(&outcome.congestion_control)
                .chain(&outcome.transport)
                .chain(&outcome.switches)
                .map(|counter| (counter.name.to_string(), counter.value))
                .chain([("out_of_order".to_string(), c.out_of_order)])
                .collect(),
            histograms: outcome.histograms.iter().map(|(name, counts)| (name.to_string(), counts.clone())).collect(),
            control_bytes: c.control_bytes,
            events: c.events,
            packet_hops: c.hops,
            estimate: None,
            fast_forward: None,
            notes: Vec::new(),
            why: Why::new(groups, causes, outcome),
            violations: outcome.violations.iter().cloned().chain(stalled).collect(),
            cost: Cost {
                wall_seconds,
                packet_hops_per_second: c.hops as f64 / wall_seconds.max(1e-9),
                peak_memory_bytes: peak_memory(),
            },
        }
    }
}

impl Summary {
    /// Whether nothing is known but when flows begin and end.
    pub fn flows_alone(&self) -> bool {
        self.estimate.is_some() || self.fast_forward.as_ref().is_some_and(FastForward::flows_alone)
    }

    /// As `summary.json` has it. What is about packets, ports and memory is not in that of an estimate, which knows nothing of it.
    pub fn json(&self) -> serde_json::Result<String> {
        if !self.flows_alone() {
            return serde_json::to_string_pretty(self);
        }
        let mut known = serde_json::to_value(self)?;
        if let Some(all) = known.as_object_mut() {
            all.retain(|key, _| !UNKNOWN.contains(&key.as_str()));
            if let Some(cost) = all.get_mut("cost").and_then(Value::as_object_mut) {
                cost.remove("packet_hops_per_second");
            }
        }
        serde_json::to_string_pretty(&known)
    }
}

/// Peak resident memory of this process, where the system reports it.
pub fn peak_memory() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|l| l.starts_with("VmHWM:"))?;
    line.split_whitespace().nth(1)?.parse::<u64>().ok().map(|kb| kb * 1024)
}

/// Slowdowns in a few numbers.
#[derive(Clone)]
struct Slowdowns {
    all: Spread,
    by_size: Vec<SizeBin>,
    acknowledged: Spread,
}

impl Group {
    fn new(name: &str, tag: u16, outcome: &Outcome) -> Group {
        let flows = || outcome.flows.iter().filter(|flow| flow.spec.tag == tag);
        let slowdowns = slowdowns(flows(), outcome.end);
        let known = Slowdowns {
            all: Spread::of_slowdowns(slowdowns.iter().map(|(_, s)| *s).collect()),
            by_size: by_size(&slowdowns),
            acknowledged: Spread::of_slowdowns(slowdowns_acknowledged(flows(), outcome.end)),
        };
        Group::with(name, tag, outcome, known)
    }

    fn with(name: &str, tag: u16, outcome: &Outcome, slowdowns: Slowdowns) -> Group {
        let flows = || outcome.flows.iter().filter(|flow| flow.spec.tag == tag);
        let throughputs: Vec<f64> = flows().filter_map(|flow| throughput_gbps(flow, outcome.end)).collect();
        Group {
            name: name.into(),
            flows: flows().count(),
            finished: flows().filter(|flow| flow.acknowledged != Time::MAX).count(),
            received_bytes: flows().map(|flow| flow.delivered).sum(),
            slowdown: slowdowns.all,
            slowdown_by_size: slowdowns.by_size,
            slowdown_acknowledged: slowdowns.acknowledged,
            fairness: jain(&throughputs),
            throughput_gbps: Spread::of(throughputs),
        }
    }
}

/// Bits received in order per second of a flow's life, to the last byte or to the end of the run, in Gbit/s.
fn throughput_gbps(flow: &FlowRecord, end: Time) -> Option<f64> {
    let life = since(flow, flow.received.min(end)).filter(|&life| life > 0)?;
    Some(flow.delivered as f64 * 8000.0 / life as f64)
}

impl Utilisation {
    fn new(graph: &Graph, map: &PortMap, outcome: &Outcome, span: f64) -> Utilisation {
        let host = |port: usize| graph.nodes[map.node[port] as usize].kind == Kind::Host;
        let gbps = |port: usize| outcome.sent[port] as f64 * 8000.0 / span;
        let rate = |port: usize| map.rate(graph, port as u32).0 as f64 / 1e9;
        let of = |from: bool, to: bool, value: &dyn Fn(usize) -> f64| {
            let ports = (0..map.count()).filter(|&p| host(p) == from && host(map.peer[p] as usize) == to);
            Spread::of(ports.map(value).collect())
        };
        let share = |port: usize| gbps(port) / rate(port);
        Utilisation {
            from_hosts: of(true, false, &share),
            to_hosts: of(false, true, &share),
            between_switches: of(false, false, &share),
            receivers_gbps: of(false, true, &gbps),
        }
    }
}

/// Writes a folder of results and gives its path.
pub fn write(
    folder: Folder,
    summary: &Summary,
    scenario: &str,
    tables: Vec<(&'static str, Columns)>,
) -> Result<PathBuf, Problem> {
    for (name, columns) in tables {
        tables::write(&folder.file(name), &columns)?;
    }
    folder.write("scenario.toml", scenario)?;
    // What the tables took counts, too.
    let mut summary = summary.clone();
    summary.cost.peak_memory_bytes = peak_memory();
    let text = summary.json().map_err(|e| Problem::new(SUMMARY, format!("cannot be written: {e}")))?;
    folder.write(SUMMARY, text + "\n")?;
    folder.publish()
}

/// What an estimate knows nothing of.
const UNKNOWN: [&str; 21] = [
    "injected",
    "delivered",
    "retransmitted",
    "dropped",
    "left",
    "marked",
    "marked_receiver",
    "marked_network",
    "overtaken",
    "acks",
    "timeouts",
    "utilisation",
    "pause",
    "held",
    "buffer",
    "counters",
    "histograms",
    "control_bytes",
    "events",
    "packet_hops",
    "waiting",
];

/// The tables of an estimate: what it does not know has no column, and tables of which it knows nothing have no row.
pub(crate) fn estimated_columns(
    graph: &Graph,
    groups: &[String],
    collectives: &[Messages],
    outcome: &Outcome,
) -> Vec<(&'static str, Columns)> {
    let mut flows = flow_columns(graph, groups, outcome);
    flows.retain(|(name, _)| !["held_ps", "paused_ps"].contains(name));
    let none = Graph::default();
    let nothing = Outcome::of_flows(&none, Time::ZERO, Vec::new(), Vec::new());
    let mut all = vec![
        (FLOWS, flows),
        (BUFFERS, buffer_columns(&none, &nothing)),
        (LINKS, link_columns(&none, &PortMap::new(&none), &nothing)),
    ];
    if !collectives.is_empty() {
        all.push((COLLECTIVES, collective::columns(groups, collectives, outcome)));
    }
    all
}

/// The tables of a run by the names of their files; those of ports and flows over time only if some were chosen, that of collectives
/// if there are any, that of parts if it was asked where time goes.
pub fn all_columns(
    graph: &Graph,
    groups: &[String],
    collectives: &[Messages],
    outcome: &Outcome,
    causes: Option<&Causes>,
) -> Vec<(&'static str, Columns)> {
    let (map, series) = (PortMap::new(graph), &outcome.series);
    let mut all = vec![
        (FLOWS, flow_columns(graph, groups, outcome)),
        (BUFFERS, buffer_columns(graph, outcome)),
        (LINKS, link_columns(graph, &map, outcome)),
    ];
    if !series.ports.is_empty() {
        all.push((PORTS, port_columns(graph, &map, outcome)));
    }
    if !series.flows.is_empty() {
        all.push((RATES, rate_columns(groups, outcome)));
    }
    all.extend(causes.into_iter().flat_map(Causes::columns));
    if !collectives.is_empty() {
        all.push((COLLECTIVES, collective::columns(groups, collectives, outcome)));
    }
    if let (Some(spans), Some(causes)) = (&outcome.parts, causes) {
        all.push((PARTS, part_columns(graph, &causes.names, spans)));
    }
    all
}

fn group_name(groups: &[String], tag: u16) -> &str {
    groups.get(tag as usize).map_or("", String::as_str)
}

fn flow_columns(graph: &Graph, groups: &[String], outcome: &Outcome) -> Columns {
    let rows = &outcome.flows;
    let nodes: Vec<&str> = graph.nodes.iter().map(|node| node.name.as_str()).collect();
    // Flows without a group have none in the list.
    let named: Vec<&str> = groups.iter().map(String::as_str).chain([""]).collect();
    let fct = |then: fn(&FlowRecord) -> Time| Column::maybe_counts(rows.iter().map(|f| since(f, then(f))));
    let ratio = |of: fn(&FlowRecord) -> Option<f64>| Column::numbers(rows.iter().map(of));
    let start = |f: &FlowRecord| (f.start != Time::MAX).then_some(f.start.0);
    // One that is to leave has no ideal unless it was done before.
    let open = |f: &FlowRecord| f.spec.until != Time::MAX && f.received == Time::MAX;
    let whole = |f: &FlowRecord| f.size == f.spec.size && !open(f);
    let ideal = |of: fn(&FlowRecord) -> Time| Column::maybe_counts(rows.iter().map(|f| whole(f).then(|| of(f).0)));
    vec![
        ("flow", Column::counts(0..rows.len() as u64)),
        ("group", Column::named(&named, rows.iter().map(|f| (f.spec.tag as usize).min(groups.len())))),
        ("src", Column::named(&nodes, rows.iter().map(|f| f.spec.src.index()))),
        ("dst", Column::named(&nodes, rows.iter().map(|f| f.spec.dst.index()))),
        ("class", Column::small(rows.iter().map(|f| f.spec.class.0))),
        ("size_bytes", Column::counts(rows.iter().map(|f| f.size))),
        ("delivered_bytes", Column::counts(rows.iter().map(|f| f.delivered))),
        ("start_ps", Column::maybe_counts(rows.iter().map(start))),
        ("injected_ps", fct(|f| f.injected)),
        ("received_ps", fct(|f| f.received)),
        ("acknowledged_ps", fct(|f| f.acknowledged)),
        ("held_ps", Column::counts(rows.iter().map(|f| f.held.0))),
        ("paused_ps", Column::counts(rows.iter().map(|f| f.paused.0))),
        ("ideal_ps", ideal(|f| f.spec.ideal)),
        ("ideal_acknowledged_ps", ideal(|f| f.spec.ideal_acknowledged)),
        ("slowdown", ratio(slowdown)),
        ("slowdown_acknowledged", ratio(slowdown_acknowledged)),
    ]
}

fn buffer_columns(graph: &Graph, outcome: &Outcome) -> Columns {
    let samples = &outcome.samples;
    let switches: Vec<usize> = (0..graph.nodes.len()).filter(|&n| graph.nodes[n].kind == Kind::Switch).collect();
    let column = |of: &[Vec<u32>]| Column::counts(switches.iter().flat_map(|&n| of[n].clone()).map(u64::from));
    let names = switches.iter().flat_map(|&n| samples.used[n].iter().map(move |_| graph.nodes[n].name.as_str()));
    vec![
        ("switch", Column::texts(names)),
        ("time_ps", Column::counts(switches.iter().flat_map(|_| samples.times.iter().map(|t| t.0)))),
        ("bytes", column(&samples.used)),
        ("peak_bytes", column(&samples.watermarks)),
    ]
}

fn link_columns(graph: &Graph, map: &PortMap, outcome: &Outcome) -> Columns {
    let ports = || 0..map.count();
    let names: Vec<&str> = graph.nodes.iter().map(|node| node.name.as_str()).collect();
    let near = |port: usize| &graph.nodes[map.node[port] as usize];
    let far = |port: usize| near(map.peer[port] as usize);
    let kind = |kind: Kind| if kind == Kind::Host { "host" } else { "switch" };
    let mut columns = vec![
        ("port", Column::counts(ports().map(|p| p as u64))),
        ("from", Column::named(&names, ports().map(|p| map.node[p] as usize))),
        ("to", Column::named(&names, ports().map(|p| map.node[map.peer[p] as usize] as usize))),
        ("from_kind", Column::texts(ports().map(|p| kind(near(p).kind)))),
        ("to_kind", Column::texts(ports().map(|p| kind(far(p).kind)))),
        ("rate_bps", Column::counts(ports().map(|p| map.rate(graph, p as u32).0))),
        ("sent_bytes", Column::counts(outcome.sent.iter().copied())),
        ("paused_ps", Column::counts(outcome.paused.iter().map(|t| t.0))),
        ("paused_class_ps", Column::counts(outcome.stopped.iter().map(|(class, _)| class.0))),
        ("paused_port_ps", Column::counts(outcome.stopped.iter().map(|(_, port)| port.0))),
    ];
    if let Some(stops) = &outcome.stops {
        columns.push((QUEUED, Column::counts(stops.queued.iter().copied())));
    }
    if !outcome.retries.is_empty() {
        let mut tallies = vec![Tally::default(); map.count()];
        outcome.retries.iter().for_each(|&(port, tally)| tallies[port as usize] = tally);
        let of = |what: fn(&Tally) -> u64| Column::counts(tallies.iter().map(what));
        columns.extend([
            ("retry_acks", of(|tally| tally.acks)),
            ("retry_nacks", of(|tally| tally.nacks)),
            ("retry_replays", of(|tally| tally.replays)),
            ("retry_timeouts", of(|tally| tally.timeouts)),
            ("retry_frames", of(|tally| tally.repeated.0)),
            ("retry_bytes", of(|tally| tally.repeated.1)),
            ("retry_damaged", of(|tally| tally.damaged)),
            ("retry_discarded", of(|tally| tally.discarded)),
            ("retry_duplicates", of(|tally| tally.duplicates)),
            ("retry_flushes", of(|tally| tally.flushes)),
            ("retry_lost", of(|tally| tally.lost)),
            ("retry_late_ps", of(|tally| tally.late)),
        ]);
    }
    columns
}

fn port_columns(graph: &Graph, map: &PortMap, outcome: &Outcome) -> Columns {
    let (series, watched) = (&outcome.series, &outcome.watched.0);
    let rows = || {
        let times = 0..series.times.len();
        (0..watched.len()).flat_map(move |place| times.clone().map(move |time| (place, time)))
    };
    let value = |place: usize, time: usize| series.ports[time * watched.len() + place];
    let name = |port: u32| graph.nodes[map.node[port as usize] as usize].name.as_str();
    vec![
        ("port", Column::counts(rows().map(|(place, _)| watched[place] as u64))),
        ("from", Column::texts(rows().map(|(place, _)| name(watched[place])))),
        ("to", Column::texts(rows().map(|(place, _)| name(map.peer[watched[place] as usize])))),
        ("time_ps", Column::counts(rows().map(|(_, time)| series.times[time].0))),
        ("queue_bytes", Column::counts(rows().map(|(place, time)| value(place, time).0))),
        ("sent_bytes", Column::counts(rows().map(|(place, time)| value(place, time).1))),
    ]
}

fn rate_columns(groups: &[String], outcome: &Outcome) -> Columns {
    let (series, watched) = (&outcome.series, &outcome.watched.1);
    let rows = || {
        let times = 0..series.times.len();
        (0..watched.len()).flat_map(move |place| times.clone().map(move |time| (place, time)))
    };
    let group = |flow: u32| group_name(groups, outcome.flows[flow as usize].spec.tag);
    vec![
        ("flow", Column::counts(rows().map(|(place, _)| watched[place].0 as u64))),
        ("group", Column::texts(rows().map(|(place, _)| group(watched[place].0)))),
        ("time_ps", Column::counts(rows().map(|(_, time)| series.times[time].0))),
        ("received_bytes", Column::counts(rows().map(|(place, time)| series.flows[time * watched.len() + place]))),
    ]
}
