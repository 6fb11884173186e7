//! Flows and tasks that wait for one another, as they are made.

use crate::{After, FlowRequest, Origin, Task};
use engine::Time;
use fabric::id::{FlowId, NodeId};

/// What a generator of dependent flows has made so far.
#[derive(Clone, Debug, Default)]
pub struct Weave {
    /// Messages.
    pub flows: Vec<FlowRequest>,
    /// By message: the step of its collective.
    pub steps: Vec<u32>,
    /// What hosts do in between.
    pub tasks: Vec<Task>,
    /// Who waits for whom.
    pub after: Vec<After>,
}

/// Whom messages are between: hosts by rank, where their flows belong, and when the first may start.
#[derive(Clone, Copy)]
pub struct Party<'a> {
    /// Hosts in the order of ranks.
    pub hosts: &'a [NodeId],
    /// Group and class of the flows.
    pub origin: Origin,
    /// The earliest start.
    pub start: Time,
    /// By rank, what must have ended before it takes part: nothing, if this is empty.
    pub entry: &'a [FlowId],
    /// What a rank takes from the receipt of a message to sending it on.
    pub latency: Time,
    /// The number of the first step.
    pub step: u32,
}

/// By rank, the messages that it receives.
pub type Received = Vec<Vec<FlowId>>;

impl Party<'_> {
    /// How many take part.
    pub fn count(&self) -> usize {
        self.hosts.len()
    }
}

impl Weave {
    /// A message between two ranks, in a step counted from the party's first. It waits for what its sender has entered with, and for `firsts`,
    /// each of which its sender received or sent.
    pub fn send(
        &mut self,
        party: &Party<'_>,
        (from, to): (usize, usize),
        bytes: u64,
        step: u32,
        firsts: impl IntoIterator<Item = FlowId>,
    ) -> FlowId {
        let flow = FlowId(self.flows.len() as u32);
        self.flows.push(party.origin.flow(party.hosts[from], party.hosts[to], bytes.max(1), party.start));
        self.steps.push(party.step + step);
        self.after.extend(party.entry.get(from).map(|&first| After { flow, first, gap: Time::ZERO }));
        self.after.extend(firsts.into_iter().map(|first| After { flow, first, gap: party.latency }));
        flow
    }

    /// Something that a host does when all of these have ended there.
    pub fn task(&mut self, host: NodeId, start: Time, lasts: Time, firsts: impl IntoIterator<Item = FlowId>) -> FlowId {
        let flow = Task::id(self.tasks.len());
        self.tasks.push(Task { host, start, lasts });
        self.after.extend(firsts.into_iter().map(|first| After { flow, first, gap: Time::ZERO }));
        flow
    }

    /// Puts the messages in order of their steps, and says where each step ends.
    pub fn in_steps(&mut self) -> Vec<u64> {
        let mut order: Vec<u32> = (0..self.flows.len() as u32).collect();
        order.sort_by_key(|&flow| self.steps[flow as usize]);
        let mut place = vec![0; order.len()];
        (0..).zip(&order).for_each(|(now, &before)| place[before as usize] = now);
        self.flows = order.iter().map(|&flow| self.flows[flow as usize]).collect();
        self.steps = order.iter().map(|&flow| self.steps[flow as usize]).collect();
        for wait in &mut self.after {
            for id in [&mut wait.flow, &mut wait.first] {
                if Task::number(*id).is_none() {
                    *id = FlowId(place[id.index()]);
                }
            }
        }
        self.after.sort_by_key(|wait| wait.flow);
        let last = self.steps.last().copied().unwrap_or(0);
        (0..=last).map(|step| self.steps.partition_point(|&at| at <= step) as u64).collect()
    }
}

/// A part of a whole that is cut into `of` parts as equal as bytes allow.
pub fn part(whole: u64, number: u64, of: u64) -> u64 {
    let until = |number: u64| (whole as u128 * number as u128 / of as u128) as u64;
    until(number + 1) - until(number)
}
