//! Collective communication: messages between all of a group of hosts, each sent when what it carries has been received.

use crate::{After, Fault, FlowRequest, MAX_SIZE, Origin, beyond};
use engine::Time;
use fabric::id::{FlowId, NodeId};

engine::choice! {
    /// What hosts do together.
    pub enum Operation {
        /// Everybody ends with the sum of all; pieces go round a ring twice.
        RingAllReduce = "ring-all-reduce",
        /// Everybody ends with the sum of all; pairs exchange halves, then quarters and so on, and back again. For 2, 4, 8, …
        /// hosts (Rabenseifner).
        HalvingDoublingAllReduce = "halving-doubling-all-reduce",
        /// Everybody sends a part to everybody else, as a mixture of experts does.
        AllToAll = "all-to-all",
    }
}

/// A collective operation, repeated.
#[derive(Clone, Debug)]
pub struct Collective {
    /// What is done.
    pub operation: Operation,
    /// By whom, in the order of their ranks.
    pub hosts: Vec<NodeId>,
    /// Bytes that every host has to reduce, or to send in all.
    pub size: u64,
    /// How often.
    pub rounds: u64,
    /// When the first round starts.
    pub start: Time,
    /// What a host computes between the end of a round and its part of the next.
    pub gap: Time,
}

/// The messages of a collective among all flows. They follow each other: round by round, and step by step within it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Messages {
    /// What is done.
    pub operation: Operation,
    /// The group of its flows.
    pub group: u16,
    /// How many hosts take part.
    pub hosts: u64,
    /// How often it is done.
    pub rounds: u64,
    /// Steps of a round.
    pub steps: u64,
    /// Messages of a step.
    pub each: u64,
    /// The first of its flows.
    pub first: FlowId,
}

impl Messages {
    /// The flows of a step of a round, both counted from 0.
    pub fn step(&self, round: u64, step: u64) -> std::ops::Range<usize> {
        let begin = self.first.index() + ((round * self.steps + step) * self.each) as usize;
        begin..begin + self.each as usize
    }
}

impl Collective {
    /// Where its messages are, if the first of its flows is this one.
    pub fn messages(&self, group: u16, first: FlowId) -> Messages {
        let hosts = self.hosts.len() as u64;
        let (steps, each) = match self.operation {
            // All messages are sent at once.
            Operation::AllToAll => (1, hosts * self.sends()),
            _ => (self.sends(), hosts),
        };
        Messages { operation: self.operation, group, hosts, rounds: self.rounds, steps, each, first }
    }

    /// Messages that every host sends in a round.
    fn sends(&self) -> u64 {
        let hosts = self.hosts.len() as u64;
        match self.operation {
            Operation::RingAllReduce => 2 * (hosts - 1),
            Operation::HalvingDoublingAllReduce => 2 * u64::from(hosts.ilog2()),
            Operation::AllToAll => hosts - 1,
        }
    }

    /// Makes the flows, and says which waits for which. `budget` is the most flows there may be.
    pub fn generate(&self, origin: Origin, budget: u64) -> Result<(Vec<FlowRequest>, Vec<After>), Fault> {
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
        if self.size == 0 || self.size > MAX_SIZE.0 {
            return fault("size", format!("size is {} B", self.size), "write a size above zero");
        }
        if self.rounds == 0 {
            return fault("rounds", "rounds is 0".into(), "write 1 or more");
        }
        let steps = self.sends();
        let flows = (count * steps).saturating_mul(self.rounds);
        let waits = match self.operation {
            Operation::AllToAll => flows.saturating_mul(steps),
            _ => flows,
        };
        if flows > budget {
            return Err(beyond("rounds", flows as f64, budget));
        }
        if self.rounds > 1 && waits > budget {
            let message = format!("there would be {waits} messages to wait for");
            return fault("rounds", message, "write fewer rounds or name fewer hosts");
        }
        Ok(match self.operation {
            Operation::AllToAll => self.exchange(origin),
            _ => self.in_steps(origin, steps),
        })
    }

    /// To whom a rank sends in a step, and how much. It has received from one rank in the step before, and sends that on.
    fn message(&self, rank: u64, step: u64) -> (u64, u64) {
        let count = self.hosts.len() as u64;
        let piece = |number: u64| {
            let until = |number: u64| (self.size as u128 * number as u128 / count as u128) as u64;
            until(number + 1) - until(number)
        };
        let (to, size) = match self.operation {
            Operation::HalvingDoublingAllReduce => {
                let halvings = count.ilog2() as u64;
                // The distance is halved while pieces are, and doubled with them.
                let distance = if step < halvings { count >> (step + 1) } else { 1 << (step - halvings) };
                (rank ^ distance, (self.size as u128 * distance as u128 / count as u128) as u64)
            }
            _ => ((rank + 1) % count, piece((rank + 2 * count - step) % count)),
        };
        (to, size.max(1))
    }

    /// Every host sends one message in every step.
    fn in_steps(&self, origin: Origin, steps: u64) -> (Vec<FlowRequest>, Vec<After>) {
        let count = self.hosts.len() as u64;
        let (mut flows, mut after) = (Vec::new(), Vec::new());
        // By rank: the message that it waits for.
        let mut received: Vec<Option<u32>> = vec![None; count as usize];
        for round in 0..self.rounds {
            for step in 0..steps {
                let before = std::mem::replace(&mut received, vec![None; count as usize]);
                for rank in 0..count {
                    let flow = flows.len() as u32;
                    let (to, size) = self.message(rank, step);
                    let (src, dst) = (self.hosts[rank as usize], self.hosts[to as usize]);
                    flows.push(origin.flow(src, dst, size, self.start));
                    received[to as usize] = Some(flow);
                    let gap = if round > 0 && step == 0 { self.gap } else { Time::ZERO };
                    after.extend(before[rank as usize].map(|first| After {
                        flow: FlowId(flow),
                        first: FlowId(first),
                        gap,
                    }));
                }
            }
        }
        (flows, after)
    }

    /// Every host sends to all others at once, beginning with the next, when all of the round before has come.
    fn exchange(&self, origin: Origin) -> (Vec<FlowRequest>, Vec<After>) {
        let count = self.hosts.len();
        let size = (self.size / (count as u64 - 1)).max(1);
        let (mut flows, mut after) = (Vec::new(), Vec::new());
        let number = |round: u64, from: usize, step: usize| {
            (round * (count * (count - 1)) as u64) as u32 + (from * (count - 1) + step - 1) as u32
        };
        for round in 0..self.rounds {
            for rank in 0..count {
                for step in 1..count {
                    let flow = flows.len() as u32;
                    let to = self.hosts[(rank + step) % count];
                    flows.push(origin.flow(self.hosts[rank], to, size, self.start));
                    if round > 0 {
                        let first = |step: usize| number(round - 1, (rank + count - step) % count, step);
                        after.extend((1..count).map(|step| After {
                            flow: FlowId(flow),
                            first: FlowId(first(step)),
                            gap: self.gap,
                        }));
                    }
                }
            }
        }
        (flows, after)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MAX_FLOWS;
    use fabric::id::ClassId;

    const ORIGIN: Origin = Origin { seed: 1, number: 0, group: 3, class: ClassId(0) };

    fn made(operation: Operation, hosts: u32, size: u64, rounds: u64) -> (Vec<FlowRequest>, Vec<After>) {
        let hosts = (10..10 + hosts).map(NodeId).collect();
        let gap = Time::from_us(2);
        let collective = Collective { operation, hosts, size, rounds, start: Time::ZERO, gap };
        collective.generate(ORIGIN, MAX_FLOWS).unwrap_or_else(|fault| panic!("{}", fault.message))
    }

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
        for (operation, steps, each) in [
            (Operation::RingAllReduce, 6, 4),
            (Operation::HalvingDoublingAllReduce, 4, 4),
            (Operation::AllToAll, 1, 12),
        ] {
            let hosts = (10..14).map(NodeId).collect();
            let collective =
                Collective { operation, hosts, size: 4_000, rounds: 3, start: Time::ZERO, gap: Time::ZERO };
            let messages = collective.messages(3, FlowId(5));
            assert_eq!((messages.steps, messages.each), (steps, each), "{}", operation.word());
            let (flows, _) = collective.generate(ORIGIN, MAX_FLOWS).unwrap_or_else(|fault| panic!("{}", fault.message));
            assert_eq!(messages.step(0, 0).start, 5);
            assert_eq!(messages.step(2, steps - 1).end, 5 + flows.len(), "{}", operation.word());
        }
    }

    #[test]
    fn an_all_reduce_brings_everything_to_everybody_with_the_least_bytes() {
        for (operation, hosts) in [
            (Operation::RingAllReduce, 2),
            (Operation::RingAllReduce, 5),
            (Operation::HalvingDoublingAllReduce, 2),
            (Operation::HalvingDoublingAllReduce, 8),
        ] {
            let size = 8_000;
            let (flows, after) = made(operation, hosts, size, 1);
            assert!(reached(&flows, &after, hosts).iter().all(|&has| has == (1 << hosts) - 1), "{operation:?}");
            for host in 10..10 + hosts {
                let sent: u64 = flows.iter().filter(|flow| flow.src == NodeId(host)).map(|flow| flow.size).sum();
                // 2 (n − 1)/n of the data, which no all-reduce can undercut.
                assert_eq!(sent, 2 * size * (hosts as u64 - 1) / hosts as u64, "{operation:?} with {hosts}");
            }
            // A flow waits only for messages that its sender receives.
            let at_home = |wait: &After| flows[wait.first.index()].dst == flows[wait.flow.index()].src;
            assert!(after.iter().all(at_home));
        }
    }

    #[test]
    fn an_all_to_all_has_every_pair_once_and_waits_for_all_of_the_round_before() {
        let (flows, after) = made(Operation::AllToAll, 4, 3_000, 2);
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
    fn rounds_follow_one_another_after_the_gap() {
        let (flows, after) = made(Operation::RingAllReduce, 3, 3_000, 2);
        assert_eq!((flows.len(), after.len()), (24, 21));
        assert_eq!(after.iter().filter(|wait| wait.gap == Time::from_us(2)).count(), 3);
    }

    #[test]
    fn what_cannot_be_done_is_refused_by_name() {
        let collective = |operation, hosts: Vec<NodeId>, size, rounds| {
            let collective = Collective { operation, hosts, size, rounds, start: Time::ZERO, gap: Time::ZERO };
            collective.generate(ORIGIN, 1_000).map(|_| ()).map_err(|fault| fault.field)
        };
        assert_eq!(
            collective(Operation::HalvingDoublingAllReduce, vec![NodeId(0), NodeId(1), NodeId(2)], 10, 1),
            Err("hosts")
        );
        assert_eq!(collective(Operation::RingAllReduce, vec![NodeId(0)], 10, 1), Err("hosts"));
        assert_eq!(collective(Operation::RingAllReduce, vec![NodeId(0), NodeId(1), NodeId(0)], 10, 1), Err("hosts"));
        assert_eq!(collective(Operation::RingAllReduce, vec![NodeId(0), NodeId(1)], 0, 1), Err("size"));
        assert_eq!(collective(Operation::RingAllReduce, vec![NodeId(0), NodeId(1)], 10, 0), Err("rounds"));
        assert_eq!(collective(Operation::AllToAll, (0..20).map(NodeId).collect(), 10, 30), Err("rounds"));
        assert_eq!(collective(Operation::AllToAll, (0..20).map(NodeId).collect(), 10, 1), Ok(()));
    }
}
