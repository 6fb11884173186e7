//! Flows that wait for others, and flows that leave before they have sent everything.
//!
//! What a host does between flows ([`Task`]) has no event: once all that it waits for has come, its end is known, and what waits
//! for it at the same host hears of that end at once.

use crate::axes::flow_control::FlowControl;
use crate::id::{FlowId, NodeId};
use crate::run::{Class, Core, Network};
use crate::setup::{After, Setup, Task};
use engine::{Event, Time};

/// Which flow waits for which.
#[derive(Default)]
pub(crate) struct Waiting {
    /// What is waited for, in order of the flow that must end.
    order: Vec<After>,
    /// By flow, and behind the flows by task: for how many it still waits, and the earliest start that those which have ended allow.
    /// Empty if none waits.
    left: Vec<(u32, Time)>,
    /// When each flow began; [`Time::MAX`] if it has not. Empty if none waits.
    begun: Vec<Time>,
    /// Starts on the event queue.
    planned: u32,
    /// Room for the flows that one end sets free.
    free: Vec<(FlowId, Time)>,
}

impl Waiting {
    pub(crate) fn new(setup: &Setup) -> Waiting {
        if setup.after.is_empty() {
            return Waiting::default();
        }
        let mut order = setup.after.clone();
        order.sort_by_key(|after| (after.first, after.flow));
        let flows = setup.flows.len();
        let mut left = vec![(0, Time::ZERO); flows];
        left.extend(setup.tasks.iter().map(|task| (0, task.start)));
        order.iter().for_each(|after| left[Task::place(after.flow, flows)].0 += 1);
        let mut waiting = Waiting { order, left, begun: vec![Time::MAX; flows], planned: 0, free: Vec::new() };
        // Tasks that wait for nothing end at a time that is known.
        let free = |(number, task): (usize, &Task)| {
            (waiting.left[flows + number].0 == 0).then(|| (Task::id(number), task.start.saturating_add(task.lasts)))
        };
        let free: Vec<(FlowId, Time)> = setup.tasks.iter().enumerate().filter_map(free).collect();
        for (task, end) in free {
            waiting.release(setup, task, setup.tasks[Task::number(task).unwrap_or(0)].host, end, |_, _| {});
        }
        waiting
    }

    /// `first` has ended at `host` and at that time. Calls `ready` with every flow of the host that now waits for nothing more, and with
    /// the earliest time at which it may start.
    fn release(&mut self, setup: &Setup, first: FlowId, host: NodeId, at: Time, mut ready: impl FnMut(FlowId, Time)) {
        let mut ended = (first, at);
        // Tasks that have ended, and whose followers are not told yet. Most often there is none.
        let mut more = Vec::new();
        loop {
            let (first, at) = ended;
            let begin = self.order.partition_point(|after| after.first < first);
            for after in self.order[begin..].iter().take_while(|after| after.first == first) {
                let task = Task::number(after.flow).map(|number| setup.tasks[number]);
                if task.map_or_else(|| setup.flows[after.flow.index()].src, |task| task.host) != host {
                    continue;
                }
                let (left, earliest) = &mut self.left[Task::place(after.flow, setup.flows.len())];
                *left -= 1;
                *earliest = (*earliest).max(at.saturating_add(after.gap));
                match task {
                    _ if *left > 0 => {}
                    Some(task) => more.push((after.flow, earliest.saturating_add(task.lasts))),
                    None => ready(after.flow, *earliest),
                }
            }
            match more.pop() {
                Some(next) => ended = next,
                None => return,
            }
        }
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

    /// Shows when each flow began, where some wait.
    pub(crate) fn each_begun(&mut self, show: impl FnMut(&mut Time)) {
        self.begun.iter_mut().for_each(show);
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
        let mut free = std::mem::take(&mut self.hosts.waiting.free);
        let now = self.time.now;
        self.hosts.waiting.release(&self.setup, FlowId(flow), NodeId(host), now, |flow, at| free.push((flow, at)));
        for (flow, at) in free.drain(..) {
            // One whose own time has not come is started when it does.
            if flow < FlowId(self.progress.next_flow as u32) {
                self.plan_start(flow.0, at);
            }
        }
        self.hosts.waiting.free = free;
    }

    /// Notes the beginning of a flow, and plans its leaving.
    pub(crate) fn note_beginning(&mut self, flow: u32) {
        if let Some(begun) = self.hosts.waiting.begun.get_mut(flow as usize) {
            *begun = self.time.now;
        }
        let until = self.setup.flows[flow as usize].until;
        if until != Time::MAX {
            let at = self.time.planned(until).max(self.time.now);
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
