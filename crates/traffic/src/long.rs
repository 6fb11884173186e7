//! Long-lived flows: they send all the time until they leave.

use crate::places::Places;
use crate::{Fault, FlowRequest, Kind, MAX_SIZE, MAX_START, Origin, beyond, not_empty};
use engine::Time;
use fabric::id::NodeId;

/// Flows that last, to each of some receivers.
#[derive(Clone, Debug)]
pub struct Long {
    /// The receivers, in order: every one has flows.
    pub to: Vec<NodeId>,
    /// The senders, which take turns; `None`: drawn for each receiver, as different as there are hosts.
    pub from: Option<Vec<NodeId>>,
    /// Flows to each receiver; `None`: one from each of `from`, or one.
    pub flows: Option<u64>,
    /// When the first starts.
    pub start: Time,
    /// From the start of one flow to that of the next.
    pub stagger: Time,
    /// When they leave.
    pub until: Time,
}

impl Long {
    /// Makes the flows, receiver by receiver. `budget` is the most there may be.
    pub fn generate(&self, origin: Origin, places: &Places<'_>, budget: u64) -> Result<Vec<FlowRequest>, Fault> {
        let fault = |field, message: String, help: &str| Err(Fault { field, message, help: help.into() });
        not_empty("to", &self.to)?;
        let everybody = self.from.as_deref().unwrap_or(places.hosts());
        let mut random = origin.stream(Kind::Long, 0);
        let mut hosts = Vec::with_capacity(everybody.len());
        let mut flows: Vec<FlowRequest> = Vec::new();
        let mut start = self.start;
        for &dst in &self.to {
            hosts.clear();
            hosts.extend(everybody.iter().copied().filter(|&host| host != dst));
            if hosts.is_empty() {
                let message = format!("{} has no host to receive from", places.name(dst));
                return fault("from", message, "choose another host for `from`");
            }
            let count = self.flows.unwrap_or(if self.from.is_some() { hosts.len() as u64 } else { 1 });
            if count == 0 {
                return fault("flows", "flows is 0".into(), "write 1 or more");
            }
            if flows.len() as u64 + count > budget {
                return Err(beyond("flows", flows.len() as f64 + count as f64, budget));
            }
            for turn in 0..count {
                let place = (turn % hosts.len() as u64) as usize;
                if self.from.is_none() {
                    let drawn = place + random.below((hosts.len() - place) as u64) as usize;
                    hosts.swap(place, drawn);
                }
                if start >= self.until || start > MAX_START {
                    let message = format!("a flow that leaves at {} would start at {start}", self.until);
                    return fault("leave", message, "let it leave later, or start earlier");
                }
                let src = hosts[place];
                let size = endless(places.rate(src), self.until - start);
                flows.push(FlowRequest { until: self.until, ..origin.flow(src, dst, size, start) });
                start = start.saturating_add(self.stagger);
            }
        }
        Ok(flows)
    }
}

/// A size that no sender can finish: more than its link carries in that time.
fn endless(rate: f64, time: Time) -> u64 {
    ((rate / 8.0 * time.secs_f64()) as u64).saturating_add(1).min(MAX_SIZE.0)
}
