//! Flows that wait for others, and flows that leave before they have sent everything.

use crate::axes::flow_control::FlowControl;
use crate::id::{FlowId, NodeId};
use crate::run::{Class, Core, Network};
use crate::setup::{After, Setup};
use engine::{Event, Time};

/// Which flow waits for which.
#[derive(Default)]
pub(crate) struct Waiting {
    /// What is waited for, in order of the flow that must end.
    order: Vec<After>,
    /// By flow: for how many it still waits, and the earliest start that those which have ended allow. Empty if none waits.
    left: Vec<(u32, Time)>,
    /// When each flow began; [`Time::MAX`] if it has not. Empty if none waits.
    begun: Vec<Time>,
    /// Starts on the event queue.
    planned: u32,
}

impl Waiting {
    pub(crate) fn new(setup: &Setup) -> Waiting {
        if setup.after.is_empty() {
            return Waiting::default();
        }
        let mut order = setup.after.clone();
        order.sort_by_key(|after| (after.first, after.flow));
        let mut left = vec![(0, Time::ZERO); setup.flows.len()];
        order.iter().for_each(|after| left[after.flow.index()].0 += 1);
        Waiting { order, left, begun: vec![Time::MAX; setup.flows.len()], planned: 0 }
    }

    /// Whether a flow is about to start that waited for others.
    pub(crate) fn any_planned(&self) -> bool {
        self.planned > 0
    }

    /// Takes over the flows of another shard.
    pub(crate) fn absorb(&mut self, other: &Waiting, setup: &Setup, mine: impl Fn(u32) -> bool) {
        for (flow, begun) in self.begun.iter_mut().enumerate().filter(|(flow, _)| mine(setup.flows[*flow].src.0)) {
            *begun = other.begun[flow];
        }
        self.planned += other.planned;
    }

    /// When a flow began, given when it was to start at the earliest.
    pub(crate) fn begun(&self, flow: usize, start: Time) -> Time {
        self.begun.get(flow).copied().unwrap_or(start)
    }
}

impl Core {
    /// The time of `flow` has come: true if it may begin at once. Otherwise it begins when all it waits for has ended.
    pub(crate) fn may_begin(&mut self, flow: u32) -> bool {
        match self.hosts.waiting.left.get(flow as usize) {
            None => true,
            Some((0, ready)) if *ready <= self.time.now => true,
            Some((0, ready)) => {
                self.plan_start(flow, *ready);
                false
            }
            Some(_) => false,
        }
    }

    fn plan_start(&mut self, flow: u32, at: Time) {
        let rank = self.rank(at);
        self.hosts.waiting.planned += 1;
        self.time.events.push(Event::new(at, rank, Class::LateStart as u8, flow));
    }

    /// `flow` has ended at `host`: what waits there for it may be free to start.
    #[inline]
    pub(crate) fn ended_at(&mut self, flow: u32, host: u32) {
        if !self.hosts.waiting.order.is_empty() {
            self.release_followers(flow, host);
        }
    }

    fn release_followers(&mut self, flow: u32, host: u32) {
        let first = self.hosts.waiting.order.partition_point(|after| after.first < FlowId(flow));
        for place in first.. {
            let Some(&after) = self.hosts.waiting.order.get(place).filter(|after| after.first == FlowId(flow)) else {
                return;
            };
            if self.setup.flows[after.flow.index()].src != NodeId(host) {
                continue;
            }
            let now = self.time.now;
            let (left, ready) = &mut self.hosts.waiting.left[after.flow.index()];
            *left -= 1;
            *ready = (*ready).max(now.saturating_add(after.gap));
            // One whose own time has not come is started when it does.
            if *left == 0 && after.flow < FlowId(self.progress.next_flow as u32) {
                let at = *ready;
                self.plan_start(after.flow.0, at);
            }
        }
    }

    /// Notes the beginning of a flow, and plans its leaving.
    pub(crate) fn note_beginning(&mut self, flow: u32) {
        if let Some(begun) = self.hosts.waiting.begun.get_mut(flow as usize) {
            *begun = self.time.now;
        }
        let until = self.setup.flows[flow as usize].until;
        if until != Time::MAX {
            let at = until.max(self.time.now);
            let rank = self.rank(at);
            self.time.events.push(Event::new(at, rank, Class::Leave as u8, flow));
        }
    }

    /// The sender of `flow` leaves: the next new packet is its last.
    pub(crate) fn leave(&mut self, flow: u32) {
        let payload = self.setup.nic.payload as u64;
        let s = &mut self.hosts.senders[flow as usize];
        if s.done() {
            return;
        }
        // A packet that says it is the last, so that the receiver need not know by other means.
        s.size = s.size.min(s.high + payload);
        self.note(flow);
        self.kicks.push(self.hosts.nics[self.hosts.senders[flow as usize].nic as usize].port);
    }
}

impl<F: FlowControl> Network<F> {
    /// A flow that waited for others begins.
    pub(crate) fn late_start(&mut self, flow: u32) {
        self.core.hosts.waiting.planned -= 1;
        self.begin(flow);
    }
}
