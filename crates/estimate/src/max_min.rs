//! Max-min fairness over all links at once: no flow can have more without one that has no more getting less.
//!
//! Rates are settled anew once in every round trip, the soonest that senders can learn of anything; a flow that begins in between gets what
//! its links would give it, and disturbs nobody until then.

use crate::Span;
use crate::fluid::{Fluid, Stream};
use engine::Time;
use fabric::setup::Task;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

/// When each flow begins and is received.
pub fn completion(fluid: &Fluid) -> Vec<Span> {
    let mut followers: BTreeMap<u32, Vec<(u32, Time)>> = BTreeMap::new();
    let flows = fluid.flows.len();
    let mut waits = vec![0u32; flows + fluid.tasks.len()];
    for after in &fluid.after {
        followers
            .entry(Task::place(after.first, flows) as u32)
            .or_default()
            .push((Task::place(after.flow, flows) as u32, after.gap));
        waits[Task::place(after.flow, flows)] += 1;
    }
    let starts = fluid.flows.iter().map(|flow| flow.start).chain(fluid.tasks.iter().map(|task| task.start));
    let mut run = Run {
        fluid,
        followers,
        waits,
        begins: BinaryHeap::new(),
        active: Vec::new(),
        crowd: vec![0; fluid.capacity.len()],
        spans: vec![Span { start: Time::MAX, end: Time::MAX }; fluid.flows.len()],
        ready: starts.collect(),
    };
    for task in (0..fluid.tasks.len()).filter(|task| run.waits[flows + task] == 0).collect::<Vec<_>>() {
        let end = fluid.tasks[task].start.saturating_add(fluid.tasks[task].lasts);
        run.release((flows + task) as u32, end);
    }
    run.begins.clear();
    for number in (0..flows as u32).filter(|number| run.waits[*number as usize] == 0) {
        run.begins.push(Reverse((run.ready[number as usize], number)));
    }
    run.go();
    run.spans
}

/// A flow under way.
struct Active {
    flow: u32,
    left: f64,
    rate: f64,
}

struct Run<'a> {
    fluid: &'a Fluid,
    /// By flow, who waits for it, and for how long after it.
    followers: BTreeMap<u32, Vec<(u32, Time)>>,
    /// By flow, for how many it still waits.
    waits: Vec<u32>,
    /// By flow, the earliest instant at which it may begin as far as is known.
    ready: Vec<Time>,
    begins: BinaryHeap<Reverse<(Time, u32)>>,
    active: Vec<Active>,
    /// By link, how many flows are under way on it.
    crowd: Vec<u32>,
    spans: Vec<Span>,
}

impl Run<'_> {
    fn go(&mut self) {
        let mut now = Time::ZERO;
        loop {
            if self.active.is_empty() {
                let Some(&Reverse((start, _))) = self.begins.peek() else { return };
                now = now.max(start);
            }
            let end = now.saturating_add(self.fluid.reaction);
            while let Some(&Reverse((start, flow))) = self.begins.peek()
                && start <= now
            {
                self.begins.pop();
                let active = self.enter(flow, start);
                self.active.push(active);
            }
            self.settle();
            self.finish(now, end);
            while let Some(&Reverse((start, flow))) = self.begins.peek()
                && start < end
            {
                self.begins.pop();
                self.begin(flow, start, end);
            }
            now = end;
        }
    }

    /// A flow is under way from now on, at what its links would give it.
    fn enter(&mut self, flow: u32, start: Time) -> Active {
        let stream = &self.fluid.flows[flow as usize];
        self.spans[flow as usize].start = start;
        stream.path.iter().for_each(|(port, _)| self.crowd[*port as usize] += 1);
        let share = |port: u32| self.fluid.capacity[port as usize] / f64::from(self.crowd[port as usize]);
        let rate = stream.path.iter().map(|(port, _)| share(*port)).fold(f64::INFINITY, f64::min);
        Active { flow, left: stream.bytes, rate }
    }

    /// A flow begins between two rounds of settling. It may end before the next.
    fn begin(&mut self, flow: u32, start: Time, end: Time) {
        let active = self.enter(flow, start);
        let done = start.0 as f64 + active.left / active.rate;
        if done <= end.0 as f64 {
            return self.end(&active, done);
        }
        let left = active.left - active.rate * (end - start).0 as f64;
        self.active.push(Active { left, ..active });
    }

    /// Lets all flows go on from `now` to `end`; those that are done by then end.
    fn finish(&mut self, now: Time, end: Time) {
        let all = std::mem::take(&mut self.active);
        let length = (end - now).0 as f64;
        for mut active in all {
            let stream = &self.fluid.flows[active.flow as usize];
            let takes = active.left / active.rate;
            if takes <= length {
                self.end(&active, now.0 as f64 + takes);
            } else if stream.until <= end {
                // Its sender leaves: nothing of it is ever complete.
                self.end(&active, f64::INFINITY);
            } else {
                active.left -= active.rate * length;
                self.active.push(active);
            }
        }
    }

    /// A flow's bytes are through the slowest of its links at `done`; those who waited for it may begin.
    fn end(&mut self, active: &Active, done: f64) {
        let stream: &Stream = &self.fluid.flows[active.flow as usize];
        stream.path.iter().for_each(|(port, _)| self.crowd[*port as usize] -= 1);
        if done.is_infinite() {
            return;
        }
        let span = &mut self.spans[active.flow as usize];
        let lost = (done - span.start.0 as f64 - stream.alone).max(0.0);
        span.end = span.start.saturating_add(stream.ideal).saturating_add(Time(lost as u64));
        let received = span.end;
        self.release(active.flow, received);
    }

    /// A flow, or a task behind the flows, has ended: those who waited for it may begin.
    fn release(&mut self, first: u32, at: Time) {
        let mut ended = vec![(first, at)];
        while let Some((first, at)) = ended.pop() {
            for &(flow, gap) in self.followers.get(&first).into_iter().flatten() {
                let ready = &mut self.ready[flow as usize];
                *ready = at.saturating_add(gap).max(*ready);
                self.waits[flow as usize] -= 1;
                match (flow as usize).checked_sub(self.fluid.flows.len()) {
                    _ if self.waits[flow as usize] > 0 => {}
                    Some(task) => ended.push((flow, ready.saturating_add(self.fluid.tasks[task].lasts))),
                    None => self.begins.push(Reverse((*ready, flow))),
                }
            }
        }
    }

    /// Gives the flows under way their fair rates.
    fn settle(&mut self) {
        let paths: Vec<&[(u32, Time)]> =
            self.active.iter().map(|active| self.fluid.flows[active.flow as usize].path.as_slice()).collect();
        let rates = fair_rates(&self.fluid.capacity, &paths);
        self.active.iter_mut().zip(rates).for_each(|(active, rate)| active.rate = rate);
    }
}

/// The max-min fair rates of flows over these links (Bertsekas and Gallager, Data Networks, §6.5.2): the link that has least for each of its
/// flows settles theirs, and so on with what is left of the others.
pub fn fair_rates(capacity: &[f64], paths: &[&[(u32, Time)]]) -> Vec<f64> {
    // Only links that someone takes count: they are numbered as they come.
    let mut number: BTreeMap<u32, u32> = BTreeMap::new();
    let mut links: Vec<(f64, Vec<u32>)> = Vec::new();
    for (flow, path) in (0..).zip(paths) {
        for (port, _) in *path {
            let place = *number.entry(*port).or_insert_with(|| {
                links.push((capacity[*port as usize], Vec::new()));
                links.len() as u32 - 1
            });
            links[place as usize].1.push(flow);
        }
    }
    let mut open: Vec<u32> = links.iter().map(|(_, flows)| flows.len() as u32).collect();
    let mut rates = vec![f64::INFINITY; paths.len()];
    let share = |left: f64, open: u32| (left.max(0.0) / f64::from(open)).to_bits();
    let mut least: BinaryHeap<Reverse<(u64, u32)>> =
        (0..).zip(&links).map(|(link, (left, flows))| Reverse((share(*left, flows.len() as u32), link))).collect();
    while let Some(Reverse((bits, link))) = least.pop() {
        let (left, count) = (links[link as usize].0, open[link as usize]);
        if count == 0 {
            continue;
        }
        // What is left for each grows as others are settled: the place in the queue may be an old one.
        let now = share(left, count);
        if now > bits {
            least.push(Reverse((now, link)));
            continue;
        }
        let rate = f64::from_bits(now);
        for flow in std::mem::take(&mut links[link as usize].1) {
            if rates[flow as usize].is_finite() {
                continue;
            }
            rates[flow as usize] = rate;
            for (port, _) in paths[flow as usize] {
                let place = number[port] as usize;
                links[place].0 -= rate;
                open[place] -= 1;
            }
        }
    }
    rates
}
