//! Collective communication: messages between all of a group of hosts, each sent when what it carries has been received.
//!
//! An algorithm is a file here and a line in [`play`]. It says who sends how much to whom, and which of the messages that a rank has received or sent
//! must have ended first.

use crate::weave::{Party, Received, Weave, part};
use crate::{After, Fault, FlowRequest, Kind, MAX_SIZE, Origin, Task, beyond};
use engine::{Stream, Time};
use fabric::id::{FlowId, NodeId};

mod chain;
mod exchange;
mod halving;
mod ring;
mod tree;

engine::choice! {
    /// What hosts do together.
    pub enum Operation {
        /// Everybody ends with the sum of all; pieces go round a ring twice.
        RingAllReduce = "ring-all-reduce",
        /// Everybody ends with the sum of all; pairs exchange halves, then quarters and so on, and back again. For 2, 4, 8, …
        /// hosts (Rabenseifner).
        HalvingDoublingAllReduce = "halving-doubling-all-reduce",
        /// Everybody ends with the sum of all; two binary trees, each for half of the data, up to the root and down again. What is a leaf of one is
        /// inside of the other.
        TreeAllReduce = "tree-all-reduce",
        /// Everybody ends with the sum of all; a ring within every domain reduces and scatters, rings across domains reduce each piece, and
        /// a ring within every domain gathers.
        HierarchicalAllReduce = "hierarchical-all-reduce",
        /// Everybody ends with its piece of the sum; once round a ring.
        ReduceScatter = "reduce-scatter",
        /// Everybody ends with the pieces of all; once round a ring.
        AllGather = "all-gather",
        /// Everybody sends a part to everybody else, as a mixture of experts does.
        AllToAll = "all-to-all",
        /// What the first host has goes from host to host along a line, chunk by chunk.
        Broadcast = "broadcast",
        /// Chunks go from the first host to the last and back, as those of a pipeline of layers do.
        Pipeline = "pipeline",
    }
}

engine::choice! {
    /// What a message of a collective carries besides data.
    pub enum Protocol {
        /// Nothing.
        Simple = "simple",
        /// A flag of 4 bytes after every 4 bytes, as NCCL's protocol for low latency has.
        LowLatency = "ll",
        /// A flag of 8 bytes after every 120 bytes, as NCCL's LL128 has.
        LowLatency128 = "ll128",
    }
}

/// How data is cut into messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cut {
    /// Parts that go side by side.
    pub channels: u32,
    /// Parts of each of these that go one after the other.
    pub chunks: u32,
    /// How many of the latter may be under way between two ranks; no limit if not set.
    pub slots: Option<u32>,
    /// What messages carry besides data.
    pub protocol: Protocol,
}

impl Default for Cut {
    fn default() -> Cut {
        Cut { channels: 1, chunks: 1, slots: None, protocol: Protocol::Simple }
    }
}

impl Cut {
    /// Messages in the place of one: chunk by chunk, and by channel within.
    pub fn lines(&self) -> usize {
        self.channels as usize * self.chunks as usize
    }

    /// The key that makes many messages of few; another one, if none does.
    pub(crate) fn key(&self, other: &'static str) -> &'static str {
        match (self.chunks, self.channels) {
            (1, 1) => other,
            (chunks, channels) if chunks >= channels => "chunks",
            _ => "channels",
        }
    }

    /// What one of them has of a piece.
    fn of(&self, piece: u64, line: usize) -> u64 {
        let (chunk, channel) = (line as u64 / self.channels as u64, line as u64 % self.channels as u64);
        part(part(piece, channel, self.channels as u64), chunk, self.chunks as u64)
    }

    /// The message before on the same channel that must have been acknowledged before this one is sent.
    fn slot(&self, line: usize) -> Option<usize> {
        line.checked_sub(self.slots? as usize * self.channels as usize)
    }

    /// Bytes of a message with so much data.
    fn wire(&self, data: u64) -> u64 {
        match self.protocol {
            Protocol::Simple => data,
            Protocol::LowLatency => data.div_ceil(4).saturating_mul(8),
            Protocol::LowLatency128 => data.div_ceil(120).saturating_mul(8).saturating_add(data),
        }
        .min(MAX_SIZE.0)
    }
}

/// What is done in one go by hosts that take part in it.
#[derive(Clone, Copy, Debug)]
pub struct Operate<'a> {
    /// What.
    pub operation: Operation,
    /// Bytes that every host has to reduce, ends with, or sends in all.
    pub bytes: u64,
    /// In which messages.
    pub cut: Cut,
    /// Hosts of a domain.
    pub domain: u32,
    /// By rank, how much of what the others send goes there; the same for all if empty.
    pub weights: &'a [u64],
}

impl Operation {
    /// What bus bandwidth is of algorithm bandwidth, as NCCL's tests define them: a number of pieces of so many.
    pub fn bus(self, hosts: u64) -> (u64, u64) {
        match self {
            Operation::RingAllReduce
            | Operation::HalvingDoublingAllReduce
            | Operation::TreeAllReduce
            | Operation::HierarchicalAllReduce => (2 * (hosts - 1), hosts),
            Operation::ReduceScatter | Operation::AllGather | Operation::AllToAll => (hosts - 1, hosts),
            Operation::Broadcast | Operation::Pipeline => (1, 1),
        }
    }

    /// The size that algorithm bandwidth is of, where every host was given so many bytes. What a host keeps in an all-to-all counts in NCCL's tests.
    pub fn counted(self, hosts: u64, bytes: u64) -> f64 {
        match self {
            Operation::AllToAll => bytes as f64 * hosts as f64 / (hosts - 1) as f64,
            _ => bytes as f64,
        }
    }

    /// Messages of so many hosts, each of which is one of a [`Cut`]'s lines.
    pub fn messages(self, hosts: u64, domain: u64) -> u64 {
        let others = hosts.saturating_sub(1);
        match self {
            Operation::RingAllReduce => 2 * hosts * others,
            Operation::HalvingDoublingAllReduce => 2 * hosts * u64::from(hosts.max(1).ilog2()),
            Operation::TreeAllReduce => 4 * others,
            Operation::HierarchicalAllReduce => 2 * hosts * (domain.max(1) - 1 + hosts / domain.max(1) - 1),
            Operation::ReduceScatter | Operation::AllGather | Operation::AllToAll => hosts * others,
            Operation::Broadcast => others,
            Operation::Pipeline => 2 * others,
        }
    }
}

/// Makes the messages of one go, and says which every rank receives last.
pub fn play(weave: &mut Weave, party: &Party<'_>, what: &Operate<'_>) -> Received {
    let (bytes, cut) = (what.bytes, &what.cut);
    match what.operation {
        Operation::RingAllReduce => ring::ring(weave, party, bytes, cut, 2),
        Operation::HalvingDoublingAllReduce => halving::halving_doubling(weave, party, bytes, cut),
        Operation::TreeAllReduce => tree::double_tree(weave, party, bytes, cut),
        Operation::HierarchicalAllReduce => hierarchical(weave, party, bytes, cut, what.domain as usize),
        Operation::ReduceScatter | Operation::AllGather => ring::ring(weave, party, bytes, cut, 1),
        Operation::AllToAll => exchange::all_to_all(weave, party, bytes, cut, what.weights),
        Operation::Broadcast => chain::chain(weave, party, bytes, cut, false),
        Operation::Pipeline => chain::chain(weave, party, bytes, cut, true),
    }
}

/// Rings within domains, then across them, then within them.
fn hierarchical(weave: &mut Weave, party: &Party<'_>, bytes: u64, cut: &Cut, domain: usize) -> Received {
    let count = party.count();
    let domains = count / domain;
    let within: Vec<Vec<usize>> = (0..domains).map(|at| (at * domain..(at + 1) * domain).collect()).collect();
    let across: Vec<Vec<usize>> = (0..domain).map(|own| (0..domains).map(|at| at * domain + own).collect()).collect();
    let mut entry = party.entry.to_vec();
    let mut received: Received = Vec::new();
    let mut step = party.step;
    for (phase, groups) in [&within, &across, &within].into_iter().enumerate() {
        if groups[0].len() < 2 {
            continue;
        }
        if !received.is_empty() {
            let came = std::mem::take(&mut received).into_iter().enumerate();
            entry = came.map(|(rank, came)| weave.task(party.hosts[rank], Time::ZERO, party.latency, came)).collect();
        }
        received = vec![Vec::new(); count];
        for (own, ranks) in groups.iter().enumerate() {
            let hosts: Vec<NodeId> = ranks.iter().map(|&rank| party.hosts[rank]).collect();
            let entry: Vec<FlowId> = ranks.iter().filter_map(|&rank| entry.get(rank).copied()).collect();
            let group = Party { hosts: &hosts, entry: &entry, step, ..*party };
            let came = match phase {
                // A ring leaves every rank with the piece after its own.
                1 => ring::ring(weave, &group, part(bytes, (own as u64 + 1) % domain as u64, domain as u64), cut, 2),
                _ => ring::ring(weave, &group, bytes, cut, 1),
            };
            ranks.iter().zip(came).for_each(|(&rank, came)| received[rank] = came);
        }
        step += if phase == 1 { 2 } else { 1 } * (groups[0].len() as u32 - 1);
    }
    received
}

/// How much each of so many ranks is sent where popularity falls as a power of the place in its order, which is drawn.
pub fn skewed(count: usize, skew: f64, random: &mut Stream) -> Vec<u64> {
    if skew == 0.0 {
        return Vec::new();
    }
    let mut weights: Vec<u64> =
        (1..=count).map(|place| (1e12 * libm::exp(-skew * libm::log(place as f64))) as u64 + 1).collect();
    for place in (1..count).rev() {
        weights.swap(place, random.below(place as u64 + 1) as usize);
    }
    weights
}

/// A collective operation, repeated.
#[derive(Clone, Debug)]
pub struct Collective {
    /// What is done.
    pub operation: Operation,
    /// By whom, in the order of their ranks.
    pub hosts: Vec<NodeId>,
    /// Bytes that every host has to reduce, ends with, or sends in all.
    pub size: u64,
    /// How often.
    pub rounds: u64,
    /// When the first round starts.
    pub start: Time,
    /// What a host computes between the end of a round and its part of the next.
    pub gap: Time,
    /// How data is cut into messages.
    pub cut: Cut,
    /// What a host takes from the receipt of a message to sending it on.
    pub latency: Time,
    /// Hosts of a domain, of a hierarchical one.
    pub domain: u32,
    /// How much more some hosts are sent than others in an all-to-all: the exponent of Zipf's law.
    pub skew: f64,
}

/// The messages of a collective among all flows. They follow each other: round by round, and step by step within it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Messages {
    /// What is done.
    pub operation: Operation,
    /// The group of its flows.
    pub group: u16,
    /// How many hosts take part.
    pub hosts: u64,
    /// Bytes that each has to reduce, ends with, or sends in all.
    pub size: u64,
    /// How often it is done.
    pub rounds: u64,
    /// Where each step of a round ends, in messages from the round's first.
    pub ends: Vec<u64>,
    /// The first of its flows.
    pub first: FlowId,
}

impl Messages {
    /// The flows of a step of a round, both counted from 0.
    pub fn step(&self, round: u64, step: u64) -> std::ops::Range<usize> {
        let end = |step: u64| self.ends.get(step as usize).copied().unwrap_or(0);
        let begin = self.first.index() + (round * end(self.steps() - 1)) as usize;
        let before = if step == 0 { 0 } else { end(step - 1) };
        begin + before as usize..begin + end(step) as usize
    }

    /// Steps of a round.
    pub fn steps(&self) -> u64 {
        self.ends.len() as u64
    }
}

impl Collective {
    /// Whether it can be done. `budget` is the most flows there may be.
    fn check(&self, budget: u64) -> Result<(), Fault> {
        let fault = |field, message: String, help: &str| Err(Fault { field, message, help: help.into() });
        let count = self.hosts.len() as u64;
        if count < 2 {
            return fault("hosts", "a collective of less than two hosts".into(), "name two or more");
        }
        let mut sorted = self.hosts.clone();
        sorted.sort_unstable();
        if sorted.windows(2).any(|pair| pair[0] == pair[1]) {
            return fault("hosts", "a host is there twice".into(), "name every host once");
        }
        if self.operation == Operation::HalvingDoublingAllReduce && !count.is_power_of_two() {
            let message = format!("halving and doubling cannot be done by {count} hosts");
            return fault("hosts", message, "name 2, 4, 8, … hosts, or choose \"ring-all-reduce\"");
        }
        let domain = self.domain as u64;
        if self.operation == Operation::HierarchicalAllReduce && (domain == 0 || !count.is_multiple_of(domain)) {
            let message = format!("{count} hosts are no whole number of domains of {domain}");
            return fault("domain", message, "write how many hosts a domain has, which divides the number of hosts");
        }
        if self.size == 0 || self.size > MAX_SIZE.0 {
            return fault("size", format!("size is {} B", self.size), "write a size above zero");
        }
        if self.rounds == 0 {
            return fault("rounds", "rounds is 0".into(), "write 1 or more");
        }
        let lines = self.cut.lines() as u64;
        let once = self.operation.messages(count, domain.max(1)).saturating_mul(lines);
        if once > budget {
            return Err(beyond(self.cut.key("hosts"), once as f64, budget));
        }
        let flows = once.saturating_mul(self.rounds);
        if flows > budget {
            return Err(beyond("rounds", flows as f64, budget));
        }
        Ok(())
    }

    /// Makes the flows, and says which waits for which. `budget` is the most flows there may be.
    pub fn generate(&self, origin: Origin, budget: u64) -> Result<Woven, Fault> {
        self.check(budget)?;
        let weights = match self.operation {
            Operation::AllToAll => skewed(self.hosts.len(), self.skew, &mut origin.stream(Kind::Collective, 0)),
            _ => Vec::new(),
        };
        let what = Operate {
            operation: self.operation,
            bytes: self.size,
            cut: self.cut,
            domain: self.domain,
            weights: &weights,
        };
        let mut all = Weave::default();
        let (mut entry, mut ends): (Vec<FlowId>, Vec<u64>) = Default::default();
        for round in 0..self.rounds {
            let mut weave = Weave { tasks: std::mem::take(&mut all.tasks), ..Weave::default() };
            let party =
                Party { hosts: &self.hosts, origin, start: self.start, entry: &entry, latency: self.latency, step: 0 };
            let mut received = play(&mut weave, &party, &what);
            ends = weave.in_steps();
            // Now that they are in order, what was received has other numbers: find it by its receiver.
            received.iter_mut().for_each(Vec::clear);
            let rank: std::collections::HashMap<NodeId, usize> =
                self.hosts.iter().enumerate().map(|(rank, &host)| (host, rank)).collect();
            for (number, flow) in (0..).zip(&weave.flows) {
                received[rank[&flow.dst]].push(FlowId(number));
            }
            let shift = all.flows.len() as u32;
            let moved = |id: FlowId| if Task::number(id).is_some() { id } else { FlowId(id.0 + shift) };
            all.flows.append(&mut weave.flows);
            all.tasks = weave.tasks;
            let waits = weave.after.iter();
            all.after.extend(waits.map(|wait| After {
                flow: moved(wait.flow),
                first: moved(wait.first),
                gap: wait.gap,
            }));
            if round + 1 < self.rounds {
                let came = received.into_iter().zip(&self.hosts);
                entry = came
                    .map(|(came, &host)| {
                        all.task(host, Time::ZERO, self.gap, came.into_iter().map(|id| FlowId(id.0 + shift)))
                    })
                    .collect();
            }
        }
        let messages = Messages {
            operation: self.operation,
            group: origin.group,
            hosts: self.hosts.len() as u64,
            size: self.size,
            rounds: self.rounds,
            ends,
            first: FlowId(0),
        };
        Ok(Woven { flows: all.flows, tasks: all.tasks, after: all.after, messages })
    }
}

/// What a collective is made of.
#[derive(Clone, Debug)]
pub struct Woven {
    /// Its flows.
    pub flows: Vec<FlowRequest>,
    /// What hosts do in between.
    pub tasks: Vec<Task>,
    /// Who waits for whom.
    pub after: Vec<After>,
    /// Where its messages are, if the first of its flows is 0.
    pub messages: Messages,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MAX_FLOWS;
    use fabric::id::ClassId;

    const ORIGIN: Origin = Origin { seed: 1, number: 0, group: 3, class: ClassId(0) };

    fn collective(operation: Operation, hosts: u32, size: u64, rounds: u64) -> Collective {
        let hosts = (10..10 + hosts).map(NodeId).collect();
        let (start, gap, latency) = (Time::ZERO, Time::from_us(2), Time::ZERO);
        Collective { operation, hosts, size, rounds, start, gap, cut: Cut::default(), latency, domain: 2, skew: 0.0 }
    }

    fn woven(collective: &Collective) -> Woven {
        collective.generate(ORIGIN, MAX_FLOWS).unwrap_or_else(|fault| panic!("{}", fault.message))
    }

    /// With waits of flows for flows alone.
    fn made(collective: &Collective) -> (Vec<FlowRequest>, Vec<After>) {
        let Woven { flows, tasks, after, .. } = woven(collective);
        let traffic = crate::Traffic { flows, tasks, after, ..Default::default() }.without_tasks(1 << 24).unwrap();
        (traffic.flows, traffic.after)
    }

    const ALL_REDUCES: [Operation; 4] = [
        Operation::RingAllReduce,
        Operation::HalvingDoublingAllReduce,
        Operation::TreeAllReduce,
        Operation::HierarchicalAllReduce,
    ];

    /// What every host has of every other's data, if a message carries all that its sender has when it may start.
    fn reached(flows: &[FlowRequest], after: &[After], hosts: u32) -> Vec<u128> {
        let mut has: Vec<u128> = (0..hosts).map(|host| 1 << host).collect();
        let mut left: Vec<u32> = vec![0; flows.len()];
        after.iter().for_each(|wait| left[wait.flow.index()] += 1);
        let mut ready: Vec<u32> = (0..flows.len() as u32).filter(|&flow| left[flow as usize] == 0).collect();
        let mut sent = 0;
        while !ready.is_empty() {
            // All that can go, go together: each carries what was there before.
            let carried: Vec<(u32, u128)> =
                ready.iter().map(|&flow| (flow, has[(flows[flow as usize].src.0 - 10) as usize])).collect();
            ready.clear();
            for (flow, data) in carried {
                sent += 1;
                has[(flows[flow as usize].dst.0 - 10) as usize] |= data;
                for wait in after.iter().filter(|wait| wait.first == FlowId(flow)) {
                    left[wait.flow.index()] -= 1;
                    if left[wait.flow.index()] == 0 {
                        ready.push(wait.flow.0);
                    }
                }
            }
        }
        assert_eq!(sent, flows.len(), "every message can be sent one day");
        has
    }

    #[test]
    fn messages_are_found_by_round_and_step() {
        for (operation, each) in [
            (Operation::RingAllReduce, vec![4; 6]),
            (Operation::HalvingDoublingAllReduce, vec![4; 4]),
            // Two trees: 0 over 2 over 1 and 3, and the mirror of that.
            (Operation::TreeAllReduce, vec![4, 2, 2, 4]),
            (Operation::HierarchicalAllReduce, vec![4; 4]),
            (Operation::ReduceScatter, vec![4; 3]),
            (Operation::AllGather, vec![4; 3]),
            (Operation::AllToAll, vec![12]),
            (Operation::Broadcast, vec![1; 3]),
            (Operation::Pipeline, vec![1; 6]),
        ] {
            let cut = Cut { channels: 2, chunks: 3, ..Cut::default() };
            for (cut, lines) in [(Cut::default(), 1), (cut, 6)] {
                let collective = Collective { cut, ..collective(operation, 4, 4_000, 3) };
                let Woven { flows, messages, .. } = woven(&collective);
                let name = operation.word();
                let steps = (0..messages.steps()).map(|step| messages.step(1, step).len()).collect::<Vec<_>>();
                assert_eq!(steps, each.iter().map(|each| each * lines).collect::<Vec<_>>(), "{name}");
                assert_eq!(messages.step(0, 0).start, 0);
                assert_eq!(messages.step(2, messages.steps() - 1).end, flows.len(), "{name}");
                assert_eq!(operation.messages(4, 2) as usize * lines * 3, flows.len(), "{name}");
            }
        }
    }

    #[test]
    fn an_all_reduce_brings_everything_to_everybody() {
        for (operation, hosts) in ALL_REDUCES.iter().flat_map(|&all| [(all, 2), (all, 4), (all, 8), (all, 16)]) {
            let (flows, after) = made(&collective(operation, hosts, 8_000, 1));
            assert!(reached(&flows, &after, hosts).iter().all(|&has| has == (1 << hosts) - 1), "{operation:?}");
            // A flow waits only for messages that its sender receives.
            let at_home = |wait: &After| flows[wait.first.index()].dst == flows[wait.flow.index()].src;
            assert!(after.iter().all(at_home));
        }
        for hosts in [3, 5, 6, 7, 12] {
            let (flows, after) = made(&collective(Operation::TreeAllReduce, hosts, 8_000, 1));
            assert!(reached(&flows, &after, hosts).iter().all(|&has| has == (1 << hosts) - 1), "{hosts}");
        }
    }

    /// Bytes that each host sends.
    fn sent(flows: &[FlowRequest], hosts: u32) -> Vec<u64> {
        let of = |host| flows.iter().filter(|flow| flow.src == NodeId(host)).map(|flow| flow.size).sum();
        (10..10 + hosts).map(of).collect()
    }

    #[test]
    fn every_host_sends_what_its_algorithm_says() {
        let size = 48_000;
        for channels in [1, 2] {
            for chunks in [1, 3] {
                let volumes = |operation, hosts| {
                    let cut = Cut { channels, chunks, ..Cut::default() };
                    sent(&made(&Collective { cut, ..collective(operation, hosts, size, 1) }).0, hosts)
                };
                // 2 (n − 1)/n of the data, which no all-reduce can undercut.
                for operation in [Operation::RingAllReduce, Operation::HalvingDoublingAllReduce] {
                    assert_eq!(volumes(operation, 8), [2 * size * 7 / 8; 8], "{operation:?}");
                }
                // 2 (d − 1)/d within a domain, and 2 (n/d − 1)/(n/d) of a part of 1/d across.
                assert_eq!(volumes(Operation::HierarchicalAllReduce, 8), [2 * size / 2 + 2 * size / 2 * 3 / 4; 8]);
                for operation in [Operation::ReduceScatter, Operation::AllGather] {
                    assert_eq!(volumes(operation, 8), [size * 7 / 8; 8], "{operation:?}");
                }
                // Every edge of two trees carries half of the data up and half down.
                let tree = volumes(Operation::TreeAllReduce, 8);
                assert_eq!(tree.iter().sum::<u64>(), 2 * 7 * size);
                assert!(tree.iter().all(|&sent| sent <= 2 * size), "{tree:?}");
                assert_eq!(volumes(Operation::Broadcast, 4), [size, size, size, 0]);
                assert_eq!(volumes(Operation::Pipeline, 4), [size, 2 * size, 2 * size, size]);
                assert_eq!(volumes(Operation::AllToAll, 4), [size; 4]);
            }
        }
    }

    #[test]
    fn flags_make_messages_longer_as_their_protocols_say() {
        let volume = |protocol| {
            let cut = Cut { protocol, ..Cut::default() };
            sent(&made(&Collective { cut, ..collective(Operation::Broadcast, 2, 12_000, 1) }).0, 2)[0]
        };
        assert_eq!(volume(Protocol::LowLatency), 24_000);
        assert_eq!(volume(Protocol::LowLatency128), 12_800);
    }

    #[test]
    fn slots_let_so_many_chunks_be_under_way() {
        let cut = Cut { chunks: 4, slots: Some(2), ..Cut::default() };
        let (flows, after) = made(&Collective { cut, ..collective(Operation::Broadcast, 2, 4_000, 1) });
        assert_eq!(flows.len(), 4);
        let pairs: Vec<(u32, u32)> = after.iter().map(|wait| (wait.flow.0, wait.first.0)).collect();
        assert_eq!(pairs, [(2, 0), (3, 1)]);
    }

    #[test]
    fn an_all_to_all_has_every_pair_once_and_waits_for_all_of_the_round_before() {
        let (flows, after) = made(&collective(Operation::AllToAll, 4, 3_000, 2));
        assert_eq!((flows.len(), after.len()), (24, 12 * 3));
        let mut pairs: Vec<_> = flows[..12].iter().map(|flow| (flow.src, flow.dst)).collect();
        pairs.sort_unstable();
        pairs.dedup();
        assert!(pairs.len() == 12 && pairs.iter().all(|(src, dst)| src != dst));
        assert!(flows.iter().all(|flow| flow.size == 1_000 && flow.group == 3));
        for wait in &after {
            assert!(wait.flow >= FlowId(12) && wait.first < FlowId(12) && wait.gap == Time::from_us(2));
            assert_eq!(flows[wait.first.index()].dst, flows[wait.flow.index()].src);
        }
    }

    #[test]
    fn a_skewed_all_to_all_sends_the_same_in_all_and_more_to_some() {
        let skewed = Collective { skew: 1.0, ..collective(Operation::AllToAll, 4, 60_000, 1) };
        let (flows, _) = made(&skewed);
        let near = |bytes: u64, of: u64| bytes <= of && bytes + 4 > of;
        assert!(sent(&flows, 4).iter().all(|&sent| near(sent, 60_000)));
        let mut got: Vec<u64> =
            (10..14).map(|to| flows.iter().filter(|flow| flow.dst == NodeId(to)).map(|flow| flow.size).sum()).collect();
        got.sort_unstable();
        // Weights 1, 1/2, 1/3 and 1/4: the most popular has 1/(1 + 1/3 + 1/4) of one, 1/(1 + 1/2 + 1/4) of another and so on.
        let shares = |own: f64| [1.0, 1.0 / 2.0, 1.0 / 3.0, 1.0 / 4.0].iter().sum::<f64>() - own;
        let most = 60_000.0 * (1.0 / shares(0.5) + 1.0 / shares(1.0 / 3.0) + 1.0 / shares(0.25));
        assert!((got[3] as f64 - most).abs() < 4.0, "{got:?} {most}");
    }

    #[test]
    fn rounds_follow_one_another_after_the_gap() {
        let Woven { flows, tasks, .. } = woven(&collective(Operation::RingAllReduce, 3, 3_000, 2));
        assert_eq!((flows.len(), tasks.len()), (24, 3));
        assert!(tasks.iter().all(|task| task.lasts == Time::from_us(2)));
    }

    #[test]
    fn what_cannot_be_done_is_refused_by_name() {
        let refused = |operation, hosts: Vec<u32>, size, rounds| {
            let hosts = hosts.into_iter().map(NodeId).collect();
            let collective = Collective { hosts, ..collective(operation, 2, size, rounds) };
            collective.generate(ORIGIN, 1_000).map(|_| ()).map_err(|fault| fault.field)
        };
        assert_eq!(refused(Operation::HalvingDoublingAllReduce, vec![0, 1, 2], 10, 1), Err("hosts"));
        assert_eq!(refused(Operation::HierarchicalAllReduce, vec![0, 1, 2], 10, 1), Err("domain"));
        assert_eq!(refused(Operation::RingAllReduce, vec![0], 10, 1), Err("hosts"));
        assert_eq!(refused(Operation::RingAllReduce, vec![0, 1, 0], 10, 1), Err("hosts"));
        assert_eq!(refused(Operation::RingAllReduce, vec![0, 1], 0, 1), Err("size"));
        assert_eq!(refused(Operation::RingAllReduce, vec![0, 1], 10, 0), Err("rounds"));
        assert_eq!(refused(Operation::AllToAll, (0..20).collect(), 10, 30), Err("rounds"));
        assert_eq!(refused(Operation::AllToAll, (0..20).collect(), 10, u64::MAX), Err("rounds"));
        assert_eq!(refused(Operation::AllToAll, (0..50).collect(), 10, 1), Err("hosts"));
        assert_eq!(refused(Operation::AllToAll, (0..20).collect(), 10, 1), Ok(()));
    }
}
