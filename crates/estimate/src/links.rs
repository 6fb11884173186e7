//! Link by link: each is looked at alone, with the flows that cross it, and what they lose there adds up along their paths.
//!
//! That is Parsimon's decomposition (Zhao et al., Scalable Tail Latency Estimation for Data Center Networks, NSDI 2023, §3), with a fluid in
//! the place of packets on each link: flows share it equally, none gets more than its sender's line. There, a flow's delay is drawn from
//! the distribution of each link's; here it is its own. Links do not act on each other: a flow that one link slows down still competes at the next as
//! if it were not.

use crate::Span;
use crate::fluid::Fluid;
use engine::Time;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// When each flow begins and is received.
///
/// # Panics
/// If flows wait for others: when these end is not known before all links have been looked at.
pub fn completion(fluid: &Fluid) -> Vec<Span> {
    assert!(fluid.after.is_empty(), "flows that wait have no place in a fabric that is taken apart");
    // By link, who crosses it, and from when on.
    let mut crossings: Vec<Vec<(Time, u32)>> = vec![Vec::new(); fluid.capacity.len()];
    for (number, flow) in (0..).zip(&fluid.flows) {
        for &(port, reached) in &flow.path {
            crossings[port as usize].push((flow.start + reached, number));
        }
    }
    let mut lost = vec![0.0; fluid.flows.len()];
    for (port, flows) in crossings.iter_mut().enumerate().filter(|(_, flows)| flows.len() > 1) {
        flows.sort_unstable();
        share(fluid, fluid.capacity[port], flows, &mut lost);
    }
    let span = |(flow, lost): (&crate::fluid::Stream, &f64)| Span {
        start: flow.start,
        end: flow.start.saturating_add(flow.ideal).saturating_add(Time(*lost as u64)),
    };
    fluid.flows.iter().zip(&lost).map(span).collect()
}

/// Adds to what each flow loses what it loses on one link, which the flows there share equally: all of them have received the same since any
/// instant, so that a flow is done when what each has received has grown by its bytes.
fn share(fluid: &Fluid, capacity: f64, flows: &[(Time, u32)], lost: &mut [f64]) {
    let line = |flow: u32| fluid.capacity[fluid.flows[flow as usize].path[0].0 as usize];
    let line = flows.iter().map(|(_, flow)| line(*flow)).fold(0.0, f64::max).min(capacity);
    // What each has received so far, and when that was; and by what will be received then, who is done.
    let (mut received, mut now) = (0.0, 0.0);
    let mut active: BinaryHeap<Reverse<(Ordered, u32, Time)>> = BinaryHeap::new();
    let mut next = flows.iter().peekable();
    loop {
        let each = if active.is_empty() { 0.0 } else { (capacity / active.len() as f64).min(line) };
        let done = active.peek().map(|Reverse((at, ..))| now + (at.0 - received) / each);
        let begin = next.peek().map(|(start, _)| start.0 as f64);
        match (begin, done) {
            (None, None) => return,
            (Some(begin), done) if done.is_none_or(|done| begin < done) => {
                received += each * (begin - now).max(0.0);
                now = begin.max(now);
                if let Some(&(start, flow)) = next.next() {
                    active.push(Reverse((Ordered(received + fluid.flows[flow as usize].bytes), flow, start)));
                }
            }
            (_, done) => {
                let Some(Reverse((at, flow, start))) = active.pop() else { return };
                (received, now) = (at.0, done.unwrap_or(now));
                lost[flow as usize] += (now - start.0 as f64 - fluid.flows[flow as usize].bytes / line).max(0.0);
            }
        }
    }
}

/// A number that is one, with its order.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Ordered(f64);

impl Eq for Ordered {}
impl PartialOrd for Ordered {
    fn partial_cmp(&self, other: &Ordered) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Ordered {
    fn cmp(&self, other: &Ordered) -> std::cmp::Ordering {
        self.0.total_cmp(&other.0)
    }
}
