//! Flows that wait for others: whether they ever can start.

use crate::{After, Fault, Names, Task, Traffic, too_many};
use engine::Time;
use fabric::id::{FlowId, NodeId};

/// The most flows of a cycle that a message names.
const MOST_NAMED: usize = 8;

impl Traffic {
    /// Whether every flow that waits can start one day. The fault is of the flow with that number, and of its `after`.
    pub fn check_after(&self, nodes: &Names<'_>) -> Result<(), (FlowId, Fault)> {
        let fault = |flow, message, help: &str| Err((flow, Fault { field: "after", message, help: help.into() }));
        let name = |node: NodeId| nodes.graph().nodes.get(node.index()).map_or("?", |node| node.name.as_str());
        // Where something starts or is done, and where its end is seen.
        let ends = |id: FlowId| match Task::number(id) {
            Some(task) => self.tasks.get(task).map(|task| (task.host, task.host)),
            None => self.flows.get(id.index()).map(|flow| (flow.src, flow.dst)),
        };
        let leaves = |id: FlowId| self.flows.get(id.index()).map(|flow| flow.until).filter(|&until| until != Time::MAX);
        for &After { flow, first, .. } in &self.after {
            let (Some((src, _)), Some((from, to))) = (ends(flow), ends(first)) else {
                return fault(flow, "it waits for a flow that is not there".into(), "name one that is");
            };
            if flow == first {
                return fault(flow, "the flow waits for itself".into(), "name another");
            }
            if src != from && src != to {
                let (src, from, to) = (name(src), name(from), name(to));
                let message = format!("{src} cannot know when a flow from {from} to {to} ends");
                return fault(flow, message, "wait for flows that begin or end at the host that sends this one");
            }
            if let Some(until) = leaves(first) {
                let message = format!("the flow it waits for leaves at {until} and may never end");
                return fault(flow, message, "wait for flows without `until`, or write a start");
            }
        }
        match self.cycle() {
            Some(cycle) => {
                let message = match cycle.len() {
                    2 => "two flows wait for each other".into(),
                    count => format!("{count} flows wait for one another in a cycle"),
                };
                let said = |id: &FlowId| match (Task::number(*id), self.flows.get(id.index())) {
                    (None, Some(flow)) => format!("{} to {}", name(flow.src), name(flow.dst)),
                    (task, _) => format!("a task of {}", name(self.tasks[task.unwrap_or(0)].host)),
                };
                let mut named: Vec<String> = cycle.iter().take(MOST_NAMED).map(said).collect();
                named.extend((cycle.len() > MOST_NAMED).then(|| "…".into()));
                named.push(said(&cycle[0]));
                let message = format!("{message}: {}", named.join(", which waits for "));
                fault(cycle[0], message, "let one of them start without waiting")
            }
            None => Ok(()),
        }
    }

    /// The first flow found that would start after `latest` even if nothing but `lasts` and the gaps kept it waiting, and when that
    /// would be. Flows that wait in a cycle are not looked at.
    pub fn starts_late(&self, latest: Time, lasts: impl Fn(FlowId) -> Time) -> Option<(FlowId, Time)> {
        if self.after.is_empty() {
            return None;
        }
        let flows = self.flows.len();
        let mut starts: Vec<Time> = self.flows.iter().map(|flow| flow.start).collect();
        starts.extend(self.tasks.iter().map(|task| task.start));
        let lasts = |id: FlowId| Task::number(id).map_or_else(|| lasts(id), |task| self.tasks[task].lasts);
        let mut late = None;
        release(flows, self.tasks.len(), &self.by_first(), |wait| {
            let start = starts[Task::place(wait.first, flows)].saturating_add(lasts(wait.first));
            let start = start.saturating_add(wait.gap);
            let known = &mut starts[Task::place(wait.flow, flows)];
            *known = start.max(*known);
            if start > latest && late.is_none() && Task::number(wait.flow).is_none() {
                late = Some((wait.flow, start));
            }
        });
        late
    }

    /// Which flow waits for which, in order of the flow that must end.
    fn by_first(&self) -> Vec<After> {
        let mut after = self.after.clone();
        after.sort_unstable_by_key(|wait| (wait.first, wait.flow));
        after
    }

    /// The same without tasks, and otherwise the same run: what waits for a task waits for all that the task waits for, and as long.
    /// The fault is that there would be more waits than `budget`.
    pub fn without_tasks(&self, budget: u64) -> Result<Traffic, Fault> {
        let mut made = Traffic { tasks: Vec::new(), ..self.clone() };
        if self.tasks.is_empty() {
            return Ok(made);
        }
        let by_first = self.by_first();
        made.after.retain(|wait| Task::number(wait.flow).is_none() && Task::number(wait.first).is_none());
        // By task: the flows before it with the time from each one's end to the task's, and when it ends as far as no flow matters.
        let mut before: Vec<Vec<(FlowId, Time)>> = vec![Vec::new(); self.tasks.len()];
        let mut known: Vec<Time> = self.tasks.iter().map(|task| task.start).collect();
        let mut much = made.after.len() as u64;
        let mut closed = vec![false; self.tasks.len()];
        release(self.flows.len(), self.tasks.len(), &by_first, |wait| {
            // All that a task waits for is known when the first of its followers is told.
            let first = match Task::number(wait.first) {
                Some(task) => {
                    if !std::mem::replace(&mut closed[task], true) {
                        before[task].sort_unstable();
                        before[task].dedup_by(|later, earlier| {
                            let same = later.0 == earlier.0;
                            earlier.1 = if same { later.1.max(earlier.1) } else { earlier.1 };
                            same
                        });
                    }
                    let ends = known[task].saturating_add(self.tasks[task].lasts).saturating_add(wait.gap);
                    let after = self.tasks[task].lasts.saturating_add(wait.gap);
                    let flows = before[task].iter().map(|&(flow, gap)| (flow, gap.saturating_add(after)));
                    (flows.collect::<Vec<_>>(), ends)
                }
                None => (vec![(wait.first, wait.gap)], Time::ZERO),
            };
            match Task::number(wait.flow) {
                _ if much > budget => {}
                Some(task) => {
                    much += first.0.len() as u64;
                    before[task].extend(first.0);
                    known[task] = known[task].max(first.1);
                }
                None if Task::number(wait.first).is_none() => {}
                None => {
                    much += first.0.len() as u64;
                    made.flows[wait.flow.index()].start = made.flows[wait.flow.index()].start.max(first.1);
                    made.after.extend(first.0.into_iter().map(|(first, gap)| After { flow: wait.flow, first, gap }));
                }
            }
        });
        if much > budget {
            return Err(too_many("after", budget));
        }
        made.after.sort_by_key(|wait| wait.flow);
        Ok(made)
    }

    /// Flows and tasks that wait for one another, each for the next and the last for the first.
    fn cycle(&self) -> Option<Vec<FlowId>> {
        let mut after = self.by_first();
        if after.is_empty() {
            return None;
        }
        let flows = self.flows.len();
        let waits = release(flows, self.tasks.len(), &after, |_| {});
        let stuck = waits.iter().position(|&waits| waits > 0)?;
        let open = |id: FlowId| waits[Task::place(id, flows)] > 0;
        // Each of them waits for another of them, so following the waits closes a cycle.
        after.retain(|wait| open(wait.flow) && open(wait.first));
        after.sort_unstable_by_key(|wait| (wait.flow, wait.first));
        let mut path = vec![if stuck < flows { FlowId(stuck as u32) } else { Task::id(stuck - flows) }];
        let mut seen = vec![false; waits.len()];
        loop {
            let flow = *path.last()?;
            if std::mem::replace(&mut seen[Task::place(flow, flows)], true) {
                let begin = path.iter().position(|&earlier| earlier == flow)?;
                path.pop();
                return Some(path.split_off(begin));
            }
            path.push(after.get(after.partition_point(|wait| wait.flow < flow))?.first);
        }
    }
}

/// Removes flows and tasks that wait for no other, repeatedly, and calls `each` for every wait that this ends: one's own waits before those
/// of its followers. Returns for how many each waits in the end, tasks behind flows; those that still do wait for ever.
fn release(flows: usize, tasks: usize, by_first: &[After], mut each: impl FnMut(&After)) -> Vec<u32> {
    let mut waits = vec![0u32; flows + tasks];
    by_first.iter().for_each(|wait| waits[Task::place(wait.flow, flows)] += 1);
    let id = |place: usize| if place < flows { FlowId(place as u32) } else { Task::id(place - flows) };
    let mut free: Vec<FlowId> = (0..flows + tasks).filter(|&place| waits[place] == 0).map(id).collect();
    while let Some(first) = free.pop() {
        let begin = by_first.partition_point(|wait| wait.first < first);
        for wait in by_first[begin..].iter().take_while(|wait| wait.first == first) {
            each(wait);
            let left = &mut waits[Task::place(wait.flow, flows)];
            *left -= 1;
            if *left == 0 {
                free.push(wait.flow);
            }
        }
    }
    waits
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::FlowRequest;
    use crate::tests::star;

    /// Flows between the hosts of a star, and which waits for which.
    fn check(ends: &[(u32, u32)], after: &[(u32, u32)]) -> Result<(), (u32, String)> {
        let graph = star();
        let flows = ends.iter().map(|&(src, dst)| FlowRequest::new(NodeId(src), NodeId(dst), 1, Time::ZERO)).collect();
        let after = after
            .iter()
            .map(|&(flow, first)| After { flow: FlowId(flow), first: FlowId(first), gap: Time::ZERO })
            .collect();
        let traffic = Traffic { flows, after, ..Traffic::default() };
        traffic.check_after(&Names::new(&graph)).map_err(|(flow, fault)| (flow.0, fault.message))
    }

    #[test]
    fn a_chain_and_a_diamond_can_start() {
        assert_eq!(check(&[(0, 1), (1, 2), (2, 0)], &[(1, 0), (2, 1)]), Ok(()));
        assert_eq!(check(&[(0, 1), (1, 0), (1, 2), (1, 0)], &[(1, 0), (2, 0), (3, 1), (3, 2)]), Ok(()));
        // The sender knows when its own flow is acknowledged.
        assert_eq!(check(&[(0, 1), (0, 2)], &[(1, 0)]), Ok(()));
        assert_eq!(check(&[(0, 1)], &[]), Ok(()));
    }

    #[test]
    fn a_cycle_is_found_wherever_it_is() {
        let message = |flows: &[(u32, u32)], after: &[(u32, u32)]| check(flows, after).unwrap_err();
        assert_eq!(message(&[(0, 1)], &[(0, 0)]).1, "the flow waits for itself");
        let two = "two flows wait for each other: h0 to h1, which waits for h1 to h0, which waits for h0 to h1";
        assert_eq!(message(&[(0, 1), (1, 0)], &[(0, 1), (1, 0)]).1, two);
        // A flow that waits for the cycle, and one that the cycle waits for, are not of it.
        let (flow, text) =
            message(&[(0, 1), (0, 1), (1, 2), (2, 0), (1, 0)], &[(0, 1), (1, 3), (3, 2), (2, 1), (1, 4)]);
        assert!(text.starts_with("3 flows wait for one another in a cycle: "), "{text}");
        assert!([1, 2, 3].contains(&flow));
    }

    #[test]
    fn a_host_waits_only_for_what_it_sees() {
        let (flow, message) = check(&[(0, 1), (2, 1)], &[(1, 0)]).unwrap_err();
        assert_eq!((flow, message.as_str()), (1, "h2 cannot know when a flow from h0 to h1 ends"));
        assert!(check(&[(0, 1)], &[(0, 7)]).unwrap_err().1.contains("not there"));
    }

    #[test]
    fn no_flow_may_wait_for_one_that_leaves() {
        let graph = star();
        let leaving = FlowRequest { until: Time(5), ..FlowRequest::new(NodeId(0), NodeId(1), 1, Time::ZERO) };
        let flows = vec![leaving, FlowRequest::new(NodeId(1), NodeId(0), 1, Time::ZERO)];
        let after = vec![After { flow: FlowId(1), first: FlowId(0), gap: Time::ZERO }];
        let fault = Traffic { flows, after, ..Traffic::default() }.check_after(&Names::new(&graph)).unwrap_err();
        assert!(fault.1.message.contains("leaves at 5ps"), "{fault:?}");
    }

    #[test]
    fn a_start_is_as_late_as_the_longest_chain_of_gaps_before_it() {
        let flows = (0..4).map(|_| FlowRequest::new(NodeId(0), NodeId(1), 1, Time(5))).collect();
        let wait = |flow, first, gap| After { flow: FlowId(flow), first: FlowId(first), gap: Time(gap) };
        let after = vec![wait(1, 0, 10), wait(2, 1, 10), wait(2, 0, 1), wait(3, 2, u64::MAX)];
        let traffic = Traffic { flows, after, ..Traffic::default() };
        let late = |latest| traffic.starts_late(Time(latest), |_| Time(3));
        assert_eq!(late(17), Some((FlowId(1), Time(18))));
        assert_eq!(late(30), Some((FlowId(2), Time(31))));
        assert_eq!(late(31), Some((FlowId(3), Time::MAX)));
        assert_eq!(Traffic { after: Vec::new(), ..traffic.clone() }.starts_late(Time(0), |_| Time(3)), None);
    }
}
