//! From the reference's files to a setup: its model, in our terms.

use super::Inputs;
use super::balancing::{Balancing, LbMode, Paths};
use super::broadcom::{Broadcom, EGRESS_GUARANTEED};
use super::config::{CcMode, Config, Lack};
use super::flows::{FIRST_SPORT, FlowLine};
use super::forks::{self, Ports, conweave};
use super::irn::{Irn, Monitor};
use super::order;
use super::pint::Pint;
use super::rand::Shared;
use super::topology::Topology;
use engine::{Bytes, Time};
use fabric::axes::flow_control::{FlowControlDef, Job, Report};
use fabric::axes::{Chosen, CongestionControlDef, LoadBalancingDef, TransportDef};
use fabric::buffer::{ALPHA_ONE, Share};
use fabric::clock::Clock;
use fabric::id::{ClassId, NodeId};
use fabric::routing::{PortMap, Rule, Tuple};
use fabric::setup::{
    AckLane, AckPolicy, Dice, Ecn, FlowSpec, Habits, Lines, MeasureSetup, NicSetup, NicWake, Overflow, PortSetup,
    QueueMonitor, Setup, Split, SwitchSetup, Ties, WindowRule,
};
use fabric::topology::{Graph, Kind, Link};
use fabric::{Outcome, Setup as FabricSetup};
use files::problem::Problem;
use schemes::congestion_control as cc;
use schemes::flow_control::{floodgate, pfc};
use schemes::transport::go_back_n::GoBackN;
use schemes::{edge_control, load_balancing, marking, queueing};
use std::collections::HashMap;
use std::sync::Arc;

/// Headers of a data packet after the link's: IPv4, UDP, sequence number and priority.
const HEADER: u16 = 20 + 8 + 6;
/// A pause frame on the wire.
const PAUSE_FRAME: u64 = 43;
/// What an acknowledgement holds besides the link's header and telemetry: IPv4 header, ports, flags, priority, sequence number.
const ACK_FIELDS: u16 = 20 + 12;
/// What it holds besides in ConWeave's simulator, with or without IRN.
const IRN_FIELDS: u16 = 6;
const RESERVE: u64 = 4 * 1024;
const RESUME_GAP: u64 = 3 * 1024;
/// Later than any run ends, and still a time.
const MAX_NS: u64 = u64::MAX / 2_000;
const MONITOR_EVERY: Time = Time::from_ns(100);
const MONITOR_KEEP: Time = Time::from_ms(100);

/// A translated run.
pub struct Translated {
    /// What the fabric needs.
    pub setup: FabricSetup,
    congestion_control: Box<dyn CongestionControlDef>,
    transport: Box<dyn TransportDef>,
    /// What that is without `ENABLE_IRN`.
    go_back_n: GoBackN,
    load_balancing: Box<dyn LoadBalancingDef>,
    /// Switches with accounts of their own.
    broadcom: Option<Broadcom>,
    /// Floodgate's windows.
    windows: Option<floodgate::Params>,
    /// The longest round trip, in nanoseconds.
    longest_rtt: u64,
}

impl Translated {
    /// Runs it.
    pub fn run(self, report: &mut Report<'_>) -> Outcome {
        let params = pfc::Params { frame: Bytes(PAUSE_FRAME), ..pfc::Params::default() };
        let flow_control: &dyn FlowControlDef = match &self.windows {
            Some(windows) => windows,
            None => &params,
        };
        let chosen = Chosen {
            flow_control,
            congestion_control: &*self.congestion_control,
            edge_control: &edge_control::None::default(),
            transport: &*self.transport,
            load_balancing: &*self.load_balancing,
            queueing: &queueing::round_robin::Params::default(),
            marking: &marking::red::Params::default(),
            window: true,
        };
        // Its headroom follows a rule of thumb (three times rate × delay), so nothing is promised.
        let job = Job { setup: self.setup, promised: false, chosen, report };
        match (self.broadcom, &self.windows) {
            (Some(broadcom), _) => job.run(broadcom),
            (None, Some(windows)) => windows.run(job),
            // Pauses last for ever.
            (None, None) => job.run(pfc::Pfc::new(&params, None, false)),
        }
    }

    /// The longest round trip of a pair of hosts, in nanoseconds.
    pub fn longest_rtt(&self) -> u64 {
        self.longest_rtt
    }

    /// The same run in our own order of ties, with random numbers of each node's own, on up to `threads` threads: everything that the
    /// reference decides by the order in which one program does things is left out.
    pub fn in_our_order(mut self, config: &Config, threads: usize) -> Result<Translated, Problem> {
        if config.cc_mode == CcMode::Pint {
            let message = "HPCC-PINT draws from one sequence for all nodes, in the reference's order of events";
            return Err(config.problem("CC_MODE", message).help("leave --order ours out, or choose another CC_MODE"));
        }
        if config.lb_mode != LbMode::Ecmp {
            let message =
                "its load balancers draw from one sequence for all switches, in the reference's order of events";
            return Err(config.problem("LB_MODE", message).help("leave --order ours out, or write LB_MODE 0"));
        }
        if config.enable_irn {
            let message = "its IRN depends on when the reference's monitor looks at all hosts at once";
            return Err(config.problem("ENABLE_IRN", message).help("leave --order ours out, or write ENABLE_IRN 0"));
        }
        let setup = &mut self.setup;
        (setup.ties, setup.dice, setup.habits.relist) = (Ties::Cause, Dice::PerNode, None);
        setup.seed = config.random_seed as u64;
        setup.threads = if fabric::run::worthwhile(setup) { threads } else { 1 };
        self.transport = Box::new(GoBackN { forget: false, ..self.go_back_n });
        Ok(self)
    }
}

/// The address the reference gives a host.
pub fn address(node: u32) -> u32 {
    0x0b00_0001 + ((node / 256) << 16) + ((node % 256) << 8)
}

/// Turns the reference's inputs into a setup.
pub fn translate(inputs: &Inputs) -> Result<Translated, Problem> {
    let Inputs { config, topology, flows, .. } = inputs;
    if let Some(down) = config.link_down
        && topology.link(down.a, down.b).is_none()
    {
        let problem = config.problem("LINK_DOWN", format!("there is no link between {} and {}", down.a, down.b));
        return Err(problem.help("name the two ends of a link of the topology file, or write LINK_DOWN 0 0 0"));
    }
    let graph = graph(config, topology);
    let map = PortMap::new(&graph);
    let of_conweave = *config.fork == conweave::FORK;
    let (ports, pool) = memory(inputs, &graph, &map)?;

    let mut priorities: Vec<u8> = flows.iter().map(|f| f.priority).collect();
    priorities.sort_unstable();
    priorities.dedup();
    let class = |priority: u8| priorities.binary_search(&priority).ok().map(|c| c as u8);

    let pairs = Pairs::new(inputs, &graph, &map);
    let mut next_port: HashMap<(u32, u32), u16> = HashMap::new();
    let mut next_dport: HashMap<u32, u16> = HashMap::new();
    let mut by_place: Vec<&FlowLine> = flows.iter().collect();
    by_place.sort_by_key(|f| f.place);
    let mut numbers: HashMap<u32, (u16, u16)> = HashMap::new();
    for f in by_place {
        let to = if config.fork.ports == Ports::PerPair { f.dst } else { 0 };
        let source_port = next_port.entry((f.src, to)).or_insert(FIRST_SPORT);
        let dport = next_dport.entry(f.dst).or_insert(f.dport);
        let destination_port = if config.fork.ports == Ports::PerHost { *dport } else { f.dport };
        numbers.insert(f.place, (f.sport.unwrap_or(*source_port), destination_port));
        *source_port = source_port.wrapping_add(1);
        *dport = dport.wrapping_add(1);
    }
    let ways =
        (*config.fork == forks::floodgate::FORK).then(|| forks::floodgate::results::Ways::new(config, topology, flows));
    let header = config.fork.link_header + HEADER;
    let specs = flows.iter().map(|f| {
        let (source_port, destination_port) = numbers.get(&f.place).copied().unwrap_or_default();
        let (source, destination) = (address(f.src), address(f.dst));
        let tuple = Tuple { source, destination, source_port, destination_port };
        let pair = pairs.of[&(f.src, f.dst)];
        let (rtt, window) = if config.global_t { (pairs.max_rtt, pairs.max_bdp) } else { (pair.rtt, pair.bdp()) };
        let packets = (f.size - 1) / config.packet_payload_size as u64 + 1;
        let bytes = f.size + packets * header as u64;
        let ideal = match &ways {
            Some(ways) => ways.ideal(f).acknowledged,
            None => pair.rtt + (bytes as u128 * 8_000_000_000 / pair.rate as u128) as u64,
        };
        FlowSpec {
            src: NodeId(f.src),
            dst: NodeId(f.dst),
            size: f.size,
            start: f.start(),
            class: ClassId(class(f.priority).unwrap_or(0)),
            tuple,
            window: if config.has_win { window } else { 0 },
            base_rtt: Time::from_ns(rtt),
            ideal: Time::from_ns(ideal),
            ideal_acknowledged: Time::from_ns(ideal),
            until: Time::MAX,
            hops: 0,
            // What the reference's map of queue pairs goes by.
            tag: f.priority as u16,
        }
    });
    let specs = specs.collect();

    let telemetry = match config.cc_mode {
        CcMode::Hpcc | CcMode::PowerTcp => 42,
        CcMode::Pint => 2,
        CcMode::Timely | CcMode::ThetaPowerTcp => 8,
        _ => 0,
    };
    let stop = Time::from_ns(fabric::clock::whole_ns(config.simulator_stop_time_s));
    let monitor = config.qlen_mon_file.as_ref().map(|_| QueueMonitor {
        from: Time::from_ns(config.qlen_mon_start_ns.min(MAX_NS)),
        to: Time::from_ns(config.qlen_mon_end_ns.min(MAX_NS)),
        every: MONITOR_EVERY,
        keep: MONITOR_KEEP,
    });
    let windows = forks::floodgate::windows::params(config, topology)?;
    let of_floodgate = *config.fork == forks::floodgate::FORK;
    let timeout_us = if of_floodgate { config.floodgate.rto_us } else { 0 };
    let setup = Setup {
        rule: Rule::ByFlow,
        salt: 0,
        threads: 1,
        clocked: None,
        within: None,
        blocks: None,
        clock: Clock::Nanoseconds,
        ties: Ties::Sequence,
        dice: match of_conweave {
            true => Dice::Alike { stream: 0, seed: config.random_seed },
            false => Dice::Shared { first: own_streams(topology) + forks::floodgate::traffic::streams(config) },
        },
        seed: 1,
        classes: priorities.len().max(1) as u8,
        habits: Habits {
            shifts: true,
            control_class: class(0).map(ClassId),
            keeps_finished: of_conweave,
            draws_twice: of_conweave,
            frames_in_turn: true,
            leaks: true,
            relist: config
                .link_down
                .map(|_| if of_conweave { order::listed_by_both_ports } else { order::listed } as _),
        },
        ports,
        switch: SwitchSetup {
            pool,
            split: Split::Dynamic,
            reserve: RESERVE,
            groups: 1,
            global_headroom: 0,
            resume_gap: RESUME_GAP,
            egress_alpha: None,
            pipeline: Time::ZERO,
            reaction: Time::ZERO,
            cell: 1,
            queues: windows.as_ref().map_or(1, |windows| windows.voqs + 1),
            express: None,
            quantum: 0,
            overflow: Overflow::Drop,
        },
        nic: NicSetup {
            payload: config.packet_payload_size as u16,
            header: header + telemetry,
            ack_size: config
                .fork
                .ack_size
                .max(config.fork.link_header + ACK_FIELDS + telemetry + if of_conweave { IRN_FIELDS } else { 0 }),
            acks: AckPolicy::After { interval: config.l2_ack_interval as u64, chunk: config.l2_chunk_size as u64 },
            ack_lane: match (of_conweave, config.ack_high_prio) {
                (true, _) => AckLane::Control,
                (false, true) => AckLane::Data(None),
                (false, false) => AckLane::Data(class(3)),
            },
            timeout: match timeout_us {
                0 => of_conweave.then_some(Time::from_ms(4)),
                us => Some(Time::from_us(us as u64)),
            },
            nack_interval: Time::from_us(if of_conweave { 4 } else { 500 }),
            paced: config.rate_bound,
            wake: if of_conweave { NicWake::Later } else { NicWake::Earliest },
            window: if config.var_win { WindowRule::Scaled } else { WindowRule::Fixed },
            lines: Lines::Flow,
            notifications: Default::default(),
            bus: Default::default(),
        },
        flows: specs,
        slow: Vec::new(),
        forward: Default::default(),
        measure: MeasureSetup {
            pause_log: true,
            queue_monitor: monitor.filter(|m| m.from < stop),
            series: forks::powertcp::printed::series(inputs, &map, (pairs.min_rtt, pairs.max_rtt)),
            ..MeasureSetup::default()
        },
        after: Vec::new(),
        tasks: Vec::new(),
        stop,
        reroute: Time::ZERO,
        graph,
    };
    let load_balancing = balancing(config, &setup.graph, &map, &priorities)?;
    let chunk = if config.l2_back_to_zero { config.l2_chunk_size as u64 } else { 0 };
    let go_back_n = GoBackN {
        chunk,
        ack_duplicates: of_conweave,
        rounds: false,
        backoff: false,
        deaf: config.l2_ack_interval == 0,
        lags: !of_conweave,
        restarts: of_conweave,
        marks: of_conweave,
        overlaps: of_conweave,
        forget: true,
    };
    let transport: Box<dyn TransportDef> = match config.enable_irn {
        false => Box::new(go_back_n),
        true => Box::new(Irn {
            cap: pairs.max_bdp as u32,
            pauses: config.enable_pfc,
            chunk,
            deaf: go_back_n.deaf,
            monitor: Monitor {
                from: Time::from_ns(fabric::clock::whole_ns(config.flows_begin_s)),
                to: Time::from_ns(fabric::clock::whole_ns(config.simulator_stop_time_s - 10.0 + 0.05)),
                every: Time::from_ns(config.monitor_every_ns),
            },
        }),
    };
    let broadcom = of_conweave.then(|| Broadcom {
        memory: config.buffer_size_mib as i64 * 1024 * 1024,
        pauses: config.enable_pfc,
        pause: Time::from_us(config.pause_time_us as u64),
        second_pool: priorities.iter().map(|&priority| priority == 1).collect(),
    });
    let congestion_control = congestion_control(config, pairs.max_rtt)?;
    let longest_rtt = pairs.max_rtt;
    Ok(Translated { setup, congestion_control, transport, go_back_n, load_balancing, broadcom, windows, longest_rtt })
}

/// What chooses among paths.
fn balancing(
    config: &Config,
    graph: &Graph,
    map: &PortMap,
    priorities: &[u8],
) -> Result<Box<dyn LoadBalancingDef>, Problem> {
    let mode = config.lb_mode;
    if mode == LbMode::Ecmp {
        return Ok(Box::new(load_balancing::ecmp::Params::default()));
    }
    let scenario = "a scenario has it on any fabric, by its key scheme.load_balancing";
    if config.link_down.is_some() {
        let message =
            "LINK_DOWN needs LB_MODE 0: with others the reference goes on sending into the link that failed, or stops";
        return Err(config.problem("LB_MODE", message).help(format!("write LB_MODE 0 or LINK_DOWN 0 0 0; {scenario}")));
    }
    if mode == LbMode::ConWeave && config.cc_mode != CcMode::Dcqcn {
        let message =
            format!("LB_MODE 9 needs CC_MODE 1, and it is {}: the reference ends at once", config.cc_mode.number());
        return Err(config
            .problem("LB_MODE", message)
            .help(format!("write CC_MODE 1; {scenario} over any congestion control")));
    }
    let paths = match mode.by_path() {
        false => Paths::default(),
        true => Paths::new(graph, map).map_err(|why| {
            let message = format!("LB_MODE needs leaves with hosts and other switches between them, and {why}");
            config.problem("LB_MODE", message).help(format!("write LB_MODE 0; {scenario}"))
        })?,
    };
    Ok(Box::new(Balancing {
        mode,
        dice: Shared::seeded(config.random_seed),
        paths: Arc::new(paths),
        priorities: priorities.to_vec(),
        timing: config.conweave,
    }))
}

/// How many random variables the reference has made before its first packet: six in the protocol stack of every node,
/// two for the common error model and two for each link with its own.
pub fn own_streams(topology: &Topology) -> u64 {
    let own = topology.links.iter().filter(|l| l.error_rate > 0.0).count() as u64;
    topology.nodes() as u64 * 6 + 2 + own * 2
}

fn graph(config: &Config, topology: &Topology) -> Graph {
    // The order of addresses in memory, as far as we have seen it.
    let mut graph = Graph { ascending: *config.fork == conweave::FORK, ..Graph::default() };
    for (node, &switch) in topology.is_switch.iter().enumerate() {
        let (kind, tier, letter) = if switch { (Kind::Switch, 1, 's') } else { (Kind::Host, 0, 'h') };
        graph.add(kind, tier, format!("{letter}{node}"));
    }
    for (number, line) in topology.links.iter().enumerate() {
        let mut link = Link::new(NodeId(line.a), NodeId(line.b), line.rate, line.delay);
        link.own_dice = line.error_rate > 0.0;
        link.loss = if link.own_dice { line.error_rate } else { config.error_rate_per_link };
        if !topology.is_used(number) {
            link.outages.push((Time::ZERO, None));
        } else if let Some(down) = config.link_down
            && [(line.a, line.b), (line.b, line.a)].contains(&(down.a, down.b))
        {
            let begin = Time::from_ns(fabric::clock::whole_ns(config.flows_begin_s));
            link.outages.push((begin + Time::from_us(down.time_us), None));
        }
        graph.links.push(link);
    }
    graph
}

/// Thresholds of every port, and the shared pool of every switch.
fn memory(inputs: &Inputs, graph: &Graph, map: &PortMap) -> Result<(Vec<PortSetup>, Vec<Option<u64>>), Problem> {
    let Inputs { config, topology, topology_file, .. } = inputs;
    let of_conweave = *config.fork == conweave::FORK;
    // Its switches count egress queues from their guarantee on.
    let spared = if of_conweave { EGRESS_GUARANTEED as u64 } else { 0 };
    let mut ports = vec![PortSetup::default(); map.count()];
    let mut pool = vec![None; graph.nodes.len()];
    let nic_rate = graph.hosts().next().map(|h| map.rate(graph, map.of(h.0).start).0).unwrap_or(0);
    for node in 0..graph.nodes.len() as u32 {
        if graph.nodes[node as usize].kind == Kind::Host {
            continue;
        }
        let mut set_aside = 0;
        for port in map.of(node) {
            let link = link_of(graph, map, port);
            let line = topology.links[map.link[port as usize] as usize].line;
            // NVSwitches mark nothing.
            let marks = !topology.nvswitches.contains(&node);
            let thresholds = marks.then(|| config.ecn_for(link.rates[0].0)).transpose().map_err(|lacking| {
                let all = |of: fn(&Lack) -> &str| lacking.iter().map(of).collect::<Vec<_>>().join("; ");
                let message = all(|lack| &lack.message);
                Problem::new(topology_file.clone(), message).at_line(line).help(all(|lack| &lack.help))
            })?;
            let ecn = thresholds.map(|(min, max, probability)| Ecn {
                min: min as u64 * 1000 + spared,
                max: max as u64 * 1000 + spared,
                probability,
                by_port: false,
            });
            let product = (link.rates[0].0 as u128 * link.delay.ns() as u128 / 8 / 1_000_000_000) as u64;
            let headroom = product * config.fork.headroom;
            // By default one eighth of what is free; twice as much for each doubling of the rate over the hosts'.
            let (mut alpha, mut rate) = (ALPHA_ONE >> config.fork.shift, link.rates[0].0);
            while rate > nic_rate && alpha < ALPHA_ONE {
                alpha *= 2;
                rate /= 2;
            }
            ports[port as usize] = PortSetup {
                share: Share { alpha, headroom: headroom.min(u32::MAX as u64) as u32 },
                ecn: ecn.filter(|_| config.enable_qcn),
                ..PortSetup::default()
            };
            set_aside += headroom + RESERVE;
        }
        if of_conweave {
            // The accounts are the switch's own.
            continue;
        }
        let buffer = config.buffer_size_mib as u64 * 1024 * 1024;
        pool[node as usize] = Some(buffer.checked_sub(set_aside).ok_or_else(|| {
            let message = format!(
                "BUFFER_SIZE {} MiB is less than the {set_aside} B that switch {node} sets aside for headroom and reserve",
                config.buffer_size_mib
            );
            let least = set_aside.div_ceil(1024 * 1024);
            let wraps = "the reference's arithmetic wraps around here and it runs as if memory were endless";
            let longest = map.of(node).map(|port| link_of(graph, map, port).delay).max().unwrap_or_default();
            config.problem("BUFFER_SIZE", message).help(match least {
                ..=4095 => format!("write at least BUFFER_SIZE {least}; {wraps}"),
                _ => format!("no BUFFER_SIZE is enough for links of {longest}: write shorter delays; {wraps}"),
            })
        })?);
    }
    Ok((ports, pool))
}

fn link_of<'a>(graph: &'a Graph, map: &PortMap, port: u32) -> &'a Link {
    &graph.links[map.link[port as usize] as usize]
}

/// What the reference knows of a pair of hosts, from a breadth-first search that takes neighbours from the highest
/// number down and keeps the first path found.
#[derive(Clone, Copy)]
struct Pair {
    /// Nanoseconds: propagation in both directions, and a payload's time on every link.
    rtt: u64,
    /// The slowest link.
    rate: u64,
}

impl Pair {
    fn bdp(self) -> u64 {
        (self.rtt as u128 * self.rate as u128 / 1_000_000_000 / 8) as u64
    }
}

struct Pairs {
    of: HashMap<(u32, u32), Pair>,
    max_rtt: u64,
    min_rtt: u64,
    max_bdp: u64,
}

impl Pairs {
    fn new(inputs: &Inputs, graph: &Graph, map: &PortMap) -> Pairs {
        let payload = inputs.config.packet_payload_size as u64;
        let mut wanted: HashMap<u32, Vec<u32>> = HashMap::new();
        inputs.flows.iter().for_each(|f| wanted.entry(f.dst).or_default().push(f.src));
        let mut pairs = Pairs { of: HashMap::new(), max_rtt: 0, min_rtt: u64::MAX, max_bdp: 0 };
        let neighbours: Vec<Vec<u32>> = (0..graph.nodes.len() as u32)
            .map(|n| {
                let used = |port: &u32| inputs.topology.is_used(map.link[*port as usize] as usize);
                let mut ports: Vec<u32> = map.of(n).filter(used).collect();
                ports.sort_by_key(|&p| map.node[map.peer[p as usize] as usize]);
                if !graph.ascending {
                    ports.reverse();
                }
                ports
            })
            .collect();
        let mut found: Vec<Option<(u64, u64, u64)>> = vec![None; graph.nodes.len()];
        for host in graph.hosts() {
            found.fill(None);
            found[host.index()] = Some((0, 0, u64::MAX));
            let mut order = vec![host];
            let mut at = 0;
            while at < order.len() {
                let now = order[at];
                at += 1;
                let Some((delay, sending, rate)) = found[now.index()] else { continue };
                for &port in &neighbours[now.index()] {
                    let next = map.node[map.peer[port as usize] as usize];
                    if found[next as usize].is_some() {
                        continue;
                    }
                    let link = link_of(graph, map, port);
                    let on_link = payload * 8_000_000_000 / link.rates[0].0;
                    found[next as usize] =
                        Some((delay + link.delay.ns(), sending + on_link, rate.min(link.rates[0].0)));
                    if graph.nodes[next as usize].kind == Kind::Switch {
                        order.push(NodeId(next));
                    }
                }
            }
            let pair = |from: u32| {
                let (delay, sending, rate) = found[from as usize]?;
                Some(Pair { rtt: delay * 2 + sending, rate })
            };
            for from in graph.hosts().filter(|&h| h != host) {
                if let Some(pair) = pair(from.0) {
                    pairs.max_rtt = pairs.max_rtt.max(pair.rtt);
                    pairs.min_rtt = pairs.min_rtt.min(pair.rtt);
                    pairs.max_bdp = pairs.max_bdp.max(pair.bdp());
                }
            }
            for &from in wanted.get(&host.0).into_iter().flatten() {
                pairs.of.extend(pair(from).map(|pair| ((from, host.0), pair)));
            }
        }
        pairs
    }
}

/// Intervals are whole microseconds in the reference, whatever the file says.
fn interval(config: &Config, key: &'static str, us: f64) -> Result<Time, Problem> {
    if us < 1.0 {
        let problem =
            config.problem(key, format!("{us} us is cut to nothing: the reference counts whole microseconds"));
        return Err(problem.help("write 1 or more"));
    }
    Ok(Time::from_us(us as u64))
}

fn congestion_control(config: &Config, longest_rtt: u64) -> Result<Box<dyn CongestionControlDef>, Problem> {
    Ok(match config.cc_mode {
        CcMode::None => Box::new(cc::None::default()),
        CcMode::Dcqcn => Box::new(cc::dcqcn::Params {
            alpha_interval: interval(config, "ALPHA_RESUME_INTERVAL", config.alpha_resume_interval_us)?,
            decrease_interval: interval(config, "RATE_DECREASE_INTERVAL", config.rate_decrease_interval_us)?,
            increase_timer: interval(config, "RP_TIMER", config.rp_timer_us)?,
            gain: config.ewma_gain,
            recovery_stages: config.fast_recovery_times,
            ai: config.rate_ai,
            hai: config.rate_hai,
            min_rate: config.min_rate,
            clamp_target: config.clamp_target_rate,
        }),
        CcMode::Hpcc => Box::new(cc::hpcc::Params {
            eta: config.u_target,
            max_stage: config.mi_thresh,
            ai: config.rate_ai,
            min_rate: config.min_rate,
            per_ack: config.fast_react,
            per_hop: config.multi_rate,
            skip_empty: config.sample_feedback,
            header_units: config.int_multi,
            header_40g: *config.fork == conweave::FORK,
        }),
        CcMode::Pint => Box::new(Pint {
            eta: config.u_target,
            max_stage: config.mi_thresh,
            ai: config.rate_ai,
            min_rate: config.min_rate,
            log_base: config.pint_log_base,
            share: config.pint_prob,
            longest_rtt: longest_rtt as u32,
            dice: Shared::default(),
        }),
        CcMode::PowerTcp | CcMode::ThetaPowerTcp => Box::new(cc::powertcp::Params {
            feedback: match config.cc_mode {
                CcMode::ThetaPowerTcp => cc::powertcp::Feedback::Delay,
                _ => cc::powertcp::Feedback::Telemetry,
            },
            min_rate: config.min_rate,
            base_rtt: Some(Time::from_ns(longest_rtt)),
            ..cc::powertcp::Params::default()
        }),
        CcMode::Timely => Box::new(cc::timely::Params {
            ai: config.rate_ai,
            hai: config.rate_hai,
            min_rate: config.min_rate,
            ..cc::timely::Params::default()
        }),
        CcMode::Dctcp => Box::new(cc::dctcp::Params {
            gain: config.ewma_gain,
            ai: config.dctcp_rate_ai,
            min_rate: config.min_rate,
            packet: Some(config.packet_payload_size),
        }),
    })
}
