//! How fast is it? Whole runs on fabrics of growing size, and the floor under them.
//!
//! The unit is the packet-hop: one packet crossing one link. The floor is a bare forwarding loop on the same event
//! queue (no flows, no buffers, no schemes): what a simulator costs that does nothing but move packets.

pub mod forward;

use crate::outcome::peak_memory;
use engine::{Event, EventQueue, Rate, Stream, Time};
use fabric::id::NodeId;
use fabric::run::Exchange;
use files::problem::Problem;
use scenario::Scenario;
use scenario::resolve::{Resolved, resolve};
use std::collections::VecDeque;
use std::path::Path;
use std::time::{Duration, Instant};
use traffic::FlowRequest;

/// One line of the table.
pub struct Line {
    /// What ran.
    pub name: String,
    /// Hosts of the fabric.
    pub hosts: u32,
    /// Packets that crossed a link.
    pub hops: u64,
    /// Events handled.
    pub events: u64,
    /// Seconds on the clock.
    pub seconds: f64,
    /// Peak resident memory of the process so far.
    pub memory: Option<u64>,
    /// What its shards sent each other.
    pub exchange: Exchange,
    /// Simulated time.
    pub simulated: Time,
}

impl Line {
    /// Millions of packet-hops per second.
    pub fn speed(&self) -> f64 {
        self.hops as f64 / self.seconds.max(1e-9) / 1e6
    }
}

/// Leaf–spine fabrics of sixteen hosts per leaf, 2:1 oversubscribed, as large as wanted.
fn fabric(hosts: u32) -> String {
    let leaves = hosts.div_ceil(16).max(2);
    // A spine with hundreds of ports needs more memory for their headroom than others have.
    let buffer = (leaves * 48).max(12_000);
    format!(
        "[topology]\nkind = \"leaf-spine\"\nleaves = {leaves}\nhosts_per_leaf = 16\nspines = 8\n[switch]\nbuffer = \"{buffer}KB\"\n"
    )
}

/// Messages between random hosts at `load` of their links, most of them small, most bytes in large ones.
fn messages(hosts: u32, load: f64, duration: Time) -> Vec<FlowRequest> {
    const SIZES: [(f64, u64); 5] = [(0.5, 700), (0.2, 7_000), (0.15, 50_000), (0.1, 200_000), (0.05, 1_500_000)];
    let mean: f64 = SIZES.iter().map(|(share, size)| share * *size as f64).sum();
    let per_second = load * hosts as f64 * Rate::from_gbps(100).0 as f64 / 8.0 / mean;
    let mut dice = Stream::new(7, u64::MAX);
    let mut at = 0.0;
    let mut flows = Vec::new();
    loop {
        at += -(1.0 - dice.uniform()).ln() / per_second;
        let start = Time((at * 1e12) as u64);
        if start >= duration {
            return flows;
        }
        let src = dice.below(hosts as u64) as u32;
        let dst = (src + 1 + dice.below(hosts as u64 - 1) as u32) % hosts;
        let mut draw = dice.uniform();
        let size = SIZES.iter().find(|(share, _)| {
            draw -= share;
            draw < 0.0
        });
        flows.push(FlowRequest::new(NodeId(src), NodeId(dst), size.map_or(700, |(_, size)| *size), start));
    }
}

/// What a fabric has to carry, and how it is run.
#[derive(Clone, Copy, Debug)]
pub struct Run {
    /// The share of the host links that the messages take; of those of the core, it is twice that.
    pub load: f64,
    /// During which time messages start.
    pub duration: Time,
    /// The most threads.
    pub threads: usize,
    /// How many blocks the fabric is run in; by default as many as its size needs.
    pub blocks: Option<usize>,
}

/// Runs a preset on a fabric.
pub fn whole_run(hosts: u32, preset: &str, run: Run) -> Result<Line, Problem> {
    let resolved = prepared(hosts, preset, run)?;
    line(hosts, preset, &resolved)
}

/// How long a run would take on as many cores as shards.
pub struct Balance {
    /// How many.
    pub shards: usize,
    /// What one thread takes for the whole, in seconds of processor time.
    pub alone: f64,
    /// What all shards take, one after the other.
    pub work: f64,
    /// What the slowest of each stretch take.
    pub slowest: f64,
    /// What passes between the stretches: shards exchange packets, and nobody else does anything.
    pub between: f64,
    /// What it takes to make the shards, and to put them together at the end.
    pub setup: f64,
}

impl Balance {
    /// The slowest shard over the average one, by time: 1 where all have the same to do in every stretch.
    pub fn imbalance(&self) -> f64 {
        self.slowest * self.shards as f64 / self.work.max(1e-9)
    }

    /// How many times as fast as one thread it would be, if cores did not slow each other down.
    pub fn speed_up(&self) -> f64 {
        self.alone / (self.slowest + self.between + self.setup).max(1e-9)
    }
}

/// Cuts a run into as many shards as there are to be cores, has one thread run them in turns, and measures each.
pub fn balance(hosts: u32, preset: &str, run: Run, cores: usize) -> Result<Balance, Problem> {
    let mut resolved = prepared(hosts, preset, Run { threads: 1, ..run })?;
    let timed = |resolved: &Resolved| {
        let begun = processor_time();
        let line = line(hosts, preset, resolved)?;
        Ok((line, (processor_time() - begun).as_secs_f64()))
    };
    let (_, alone) = timed(&resolved)?;
    resolved.setup.threads = cores;
    resolved.setup.clocked = Some(processor_time);
    let (line, whole) = timed(&resolved)?;
    let Exchange { shards, work, slowest, whole: stretches, .. } = line.exchange;
    let (work, slowest, stretches) = (work.as_secs_f64(), slowest.as_secs_f64(), stretches.as_secs_f64());
    let (between, setup) = ((stretches - work).max(0.0), (whole - stretches).max(0.0));
    Ok(Balance { shards, alone, work, slowest, between, setup })
}

/// Processor time of this thread: what others do on the machine does not count.
fn processor_time() -> Duration {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(now.tv_sec as u64, now.tv_nsec as u32)
}

fn prepared(hosts: u32, preset: &str, run: Run) -> Result<Resolved, Problem> {
    let Run { load, duration, threads, blocks } = run;
    let text =
        format!("{}\n[scheme]\npreset = \"{preset}\"\n[[flow]]\nsrc = 0\ndst = 1\nsize = \"1B\"\n", fabric(hosts));
    let mut scenario = Scenario::parse("bench", &text, Path::new("."), &[])?;
    scenario.traffic.flows = messages(hosts, load, duration);
    let mut resolved = resolve(scenario)?.on_threads(threads);
    resolved.setup.blocks = blocks;
    Ok(resolved)
}

fn line(hosts: u32, preset: &str, resolved: &Resolved) -> Result<Line, Problem> {
    let start = Instant::now();
    let outcome = resolved.simulate(&mut |_, _| true);
    let seconds = start.elapsed().as_secs_f64();
    if let Some(wrong) = outcome.violations.first() {
        return Err(Problem::new("bench", wrong.clone()));
    }
    let (hops, events) = (outcome.counts.hops, outcome.counts.events);
    let (exchange, simulated) = (outcome.exchange, outcome.end);
    Ok(Line { name: preset.into(), hosts, hops, events, seconds, memory: peak_memory(), exchange, simulated })
}

/// The floor: 128 hosts in a leaf–spine fabric keep sixty packets each in flight, every one acknowledged; ports
/// are queues and a wire, and nothing else.
pub fn floor(limit: u64) -> Line {
    const HOSTS: usize = 128;
    const LEAVES: usize = 8;
    const SPINES: usize = 8;
    const PER_LEAF: usize = HOSTS / LEAVES;
    struct Port {
        peer: usize,
        node: usize,
        busy: bool,
        data: VecDeque<u32>,
        acks: VecDeque<u32>,
        flying: VecDeque<(Time, u32)>,
    }
    #[derive(Clone, Copy)]
    #[repr(align(64))]
    struct Packet {
        src: u16,
        dst: u16,
        bytes: u16,
        ack: bool,
        flow: u32,
    }
    let leaf_port = |leaf: usize, i: usize| HOSTS + leaf * (PER_LEAF + SPINES) + i;
    let spine_port = |spine: usize, leaf: usize| HOSTS + LEAVES * (PER_LEAF + SPINES) + spine * LEAVES + leaf;
    let count = spine_port(SPINES, 0);
    let mut ports: Vec<Port> = (0..count)
        .map(|_| Port {
            peer: 0,
            node: 0,
            busy: false,
            data: VecDeque::new(),
            acks: VecDeque::new(),
            flying: VecDeque::new(),
        })
        .collect();
    let mut wire = |a: usize, node_a: usize, b: usize, node_b: usize| {
        (ports[a].peer, ports[a].node, ports[b].peer, ports[b].node) = (b, node_a, a, node_b);
    };
    for h in 0..HOSTS {
        wire(h, h, leaf_port(h / PER_LEAF, h % PER_LEAF), HOSTS + h / PER_LEAF);
    }
    for leaf in 0..LEAVES {
        for spine in 0..SPINES {
            wire(leaf_port(leaf, PER_LEAF + spine), HOSTS + leaf, spine_port(spine, leaf), HOSTS + LEAVES + spine);
        }
    }
    let mut packets: Vec<Packet> = Vec::new();
    let mut events = EventQueue::new(6.0, Time::from_ns(1100));
    let mut dice = Stream::new(1, 1);
    let (mut hops, mut handled) = (0, 0);

    fn send(ports: &mut [Port], packets: &[Packet], events: &mut EventQueue, now: Time, port: usize) {
        let p = &mut ports[port];
        if p.busy {
            return;
        }
        let Some(id) = p.acks.pop_front().or_else(|| p.data.pop_front()) else { return };
        p.busy = true;
        let end = now + Time(packets[id as usize].bytes as u64 * 80);
        let arrival = end + Time::from_us(1);
        let peer = p.peer;
        events.push(Event::new(end, Event::rank_of(end, now), 1, port as u32));
        let far = &mut ports[peer];
        if far.flying.is_empty() {
            events.push(Event::new(arrival, Event::rank_of(arrival, now), 0, peer as u32));
        }
        far.flying.push_back((arrival, id));
    }
    let mut fresh = |src: usize| {
        let dst = (src + 1 + dice.below(HOSTS as u64 - 1) as usize) % HOSTS;
        Packet { src: src as u16, dst: dst as u16, bytes: 1048, ack: false, flow: dice.bits() as u32 }
    };
    let start = Instant::now();
    for src in 0..HOSTS {
        for _ in 0..60 {
            packets.push(fresh(src));
            ports[src].data.push_back(packets.len() as u32 - 1);
        }
        send(&mut ports, &packets, &mut events, Time::ZERO, src);
    }
    while let Some(event) = events.pop() {
        let (now, at) = (event.time(), event.source() as usize);
        handled += 1;
        if event.class() == 1 {
            ports[at].busy = false;
            send(&mut ports, &packets, &mut events, now, at);
            continue;
        }
        let Some((_, id)) = ports[at].flying.pop_front() else { continue };
        if let Some(&(arrival, _)) = ports[at].flying.front() {
            events.push(Event::new(arrival, Event::rank_of(arrival, now), 0, at as u32));
        }
        hops += 1;
        let (node, packet) = (ports[at].node, packets[id as usize]);
        let out = if node < HOSTS {
            packets[id as usize] = if packet.ack {
                fresh(node)
            } else {
                Packet { src: packet.dst, dst: packet.src, bytes: 60, ack: true, flow: packet.flow }
            };
            node
        } else if node < HOSTS + LEAVES {
            let (leaf, dst) = (node - HOSTS, packet.dst as usize);
            let up = PER_LEAF + packet.flow as usize % SPINES;
            leaf_port(leaf, if dst / PER_LEAF == leaf { dst % PER_LEAF } else { up })
        } else {
            spine_port(node - HOSTS - LEAVES, packet.dst as usize / PER_LEAF)
        };
        if packets[id as usize].ack {
            ports[out].acks.push_back(id);
        } else {
            ports[out].data.push_back(id);
        }
        send(&mut ports, &packets, &mut events, now, out);
        if hops >= limit {
            break;
        }
    }
    let seconds = start.elapsed().as_secs_f64();
    let (name, hosts, memory) = ("floor".into(), HOSTS as u32, peak_memory());
    let (exchange, simulated) = (Exchange::default(), Time::ZERO);
    Line { name, hosts, hops, events: handled, seconds, memory, exchange, simulated }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_benchmark_offers_the_load_it_says() {
        let duration = Time::from_ms(5);
        let bytes: u64 = messages(64, 0.3, duration).iter().map(|f| f.size).sum();
        let offered = bytes as f64 * 8.0 / duration.secs_f64() / (64.0 * 100e9);
        assert!((offered - 0.3).abs() < 0.03, "{offered}");
    }

    #[test]
    fn the_floor_moves_packets() {
        let line = floor(50_000);
        assert_eq!(line.hops, 50_000);
        assert!(line.events > line.hops);
    }

    #[test]
    fn shards_are_measured_one_by_one_and_their_times_add_up() {
        let run = Run { load: 0.3, duration: Time::from_us(100), threads: 1, blocks: None };
        let balance = balance(128, "hpcc", run, 4).unwrap();
        assert_eq!(balance.shards, 4);
        assert!(balance.slowest <= balance.work && balance.work <= 4.0 * balance.slowest, "{}", balance.work);
        assert!(balance.imbalance() >= 1.0 && balance.speed_up() > 0.0);
    }

    #[test]
    fn shards_exchange_packets_and_one_thread_exchanges_none() {
        let run = Run { load: 0.3, duration: Time::from_ms(1), threads: 1, blocks: None };
        let alone = whole_run(128, "hpcc", run).unwrap();
        assert_eq!(alone.exchange, Exchange::default());
        let both = whole_run(128, "hpcc", Run { threads: 2, ..run }).unwrap();
        assert_eq!(both.hops, alone.hops);
        let Exchange { shards, look_ahead, stretches, together, mails, packets, bytes, .. } = both.exchange;
        assert_eq!((shards, look_ahead), (2, Time::from_us(1)));
        // Half of what goes over the core crosses, and that is half of all hops.
        assert!((both.hops / 8..both.hops / 2).contains(&packets), "{packets} of {}", both.hops);
        assert!(bytes > 80 * packets && mails <= 2 * stretches && together <= stretches && stretches > 100);
    }
}
