//! Flows that wait for others: whether they ever can start.

use crate::{After, Fault, Names, Traffic};
use engine::Time;
use fabric::id::{FlowId, NodeId};

impl Traffic {
    /// Whether every flow that waits can start one day. The fault is of the flow with that number, and of its `after`.
    pub fn check_after(&self, nodes: &Names<'_>) -> Result<(), (FlowId, Fault)> {
        let fault = |flow, message, help: &str| Err((flow, Fault { field: "after", message, help: help.into() }));
        let name = |node: NodeId| nodes.graph().nodes.get(node.index()).map_or("?", |node| node.name.as_str());
        for &After { flow, first, .. } in &self.after {
            let (Some(waits), Some(ends)) = (self.flows.get(flow.index()), self.flows.get(first.index())) else {
                return fault(flow, "it waits for a flow that is not there".into(), "name one that is");
            };
            if flow == first {
                return fault(flow, "the flow waits for itself".into(), "name another");
            }
            if waits.src != ends.src && waits.src != ends.dst {
                let (src, from, to) = (name(waits.src), name(ends.src), name(ends.dst));
                let message = format!("{src} cannot know when a flow from {from} to {to} ends");
                return fault(flow, message, "wait for flows that begin or end at the host that sends this one");
            }
            if ends.until != Time::MAX {
                let message = format!("the flow it waits for leaves at {} and may never end", ends.until);
                return fault(flow, message, "wait for flows without `until`, or write a start");
            }
        }
        match self.cycle() {
            Some(cycle) => {
                let message = match cycle.len() {
                    2 => "two flows wait for each other".into(),
                    count => format!("{count} flows wait for one another in a cycle"),
                };
                fault(FlowId(cycle[0]), message, "let one of them start without waiting")
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
        let mut starts: Vec<Time> = self.flows.iter().map(|flow| flow.start).collect();
        let mut late = None;
        release(self.flows.len(), &self.by_first(), |wait| {
            let start = starts[wait.first.index()].saturating_add(lasts(wait.first)).saturating_add(wait.gap);
            starts[wait.flow.index()] = starts[wait.flow.index()].max(start);
            if start > latest && late.is_none() {
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

    /// Flows that wait for one another, each for the next and the last for the first.
    fn cycle(&self) -> Option<Vec<u32>> {
        let mut after = self.by_first();
        let waits = release(if after.is_empty() { 0 } else { self.flows.len() }, &after, |_| {});
        let stuck = waits.iter().position(|&waits| waits > 0)? as u32;
        // Each of them waits for another of them, so following the waits closes a cycle.
        after.retain(|wait| waits[wait.flow.index()] > 0 && waits[wait.first.index()] > 0);
        after.sort_unstable_by_key(|wait| (wait.flow, wait.first));
        let mut path = vec![stuck];
        let mut seen = vec![false; waits.len()];
        loop {
            let flow = *path.last()?;
            if std::mem::replace(&mut seen[flow as usize], true) {
                let begin = path.iter().position(|&earlier| earlier == flow)?;
                path.pop();
                return Some(path.split_off(begin));
            }
            path.push(after.get(after.partition_point(|wait| wait.flow < FlowId(flow)))?.first.0);
        }
    }
}

/// Removes flows that wait for no other, repeatedly, and calls `each` for every wait that this ends: a flow's own waits before those
/// of its followers. Returns for how many each flow waits in the end; those that still do wait for ever.
fn release(flows: usize, by_first: &[After], mut each: impl FnMut(&After)) -> Vec<u32> {
    let mut waits = vec![0u32; flows];
    by_first.iter().for_each(|wait| waits[wait.flow.index()] += 1);
    let mut free: Vec<u32> = (0..flows as u32).filter(|&flow| waits[flow as usize] == 0).collect();
    while let Some(first) = free.pop() {
        let begin = by_first.partition_point(|wait| wait.first < FlowId(first));
        for wait in by_first[begin..].iter().take_while(|wait| wait.first == FlowId(first)) {
            each(wait);
            waits[wait.flow.index()] -= 1;
            if waits[wait.flow.index()] == 0 {
                free.push(wait.flow.0);
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
        assert_eq!(message(&[(0, 1), (1, 0)], &[(0, 1), (1, 0)]).1, "two flows wait for each other");
        // A flow that waits for the cycle, and one that the cycle waits for, are not of it.
        let (flow, text) =
            message(&[(0, 1), (0, 1), (1, 2), (2, 0), (1, 0)], &[(0, 1), (1, 3), (3, 2), (2, 1), (1, 4)]);
        assert_eq!(text, "3 flows wait for one another in a cycle");
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
