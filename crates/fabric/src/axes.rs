//! Everything that varies: one axis each, with a short trait for what runs and another for what the program knows of it beforehand.
//!
//! | axis | what runs | asks and answers |
//! |---|---|---|
//! | [`flow_control`] | [`FlowControl`] at every node | when does a node stop its neighbours, or a sender? |
//! | [`congestion_control`] | [`CongestionControl`] at every sender | how fast may a flow go? |
//! | [`edge_control`] | around a congestion control | what does a sender do on top of it? |
//! | [`transport`] | [`Transport`] at every host | how are messages cut into packets, acknowledged and repaired? |
//! | [`load_balancing`] | [`LoadBalancer`] or [`Labeller`] at switches, [`PathSelector`] at hosts | which of several paths does a packet take? |
//! | [`queueing`] | [`Queueing`] at every egress port | which queue sends next? |
//! | [`marking`] | [`Marking`] at every switch | what do switches write on packets, or report to senders? |
//!
//! A variant is a file with its parameters, which implement the axis's `…Def`, and its mechanism, which implements the trait that runs.
//! Nothing in the fabric asks which variants exist; a [`Registry`] lists them.

pub mod congestion_control;
pub mod edge_control;
pub mod flow_control;
pub mod load_balancing;
pub mod marking;
pub mod queueing;
pub mod registry;
pub mod transport;

pub use congestion_control::{CongestionControl, CongestionControlDef};
pub use edge_control::EdgeControlDef;
pub use flow_control::{FlowControl, FlowControlDef};
pub use load_balancing::{Labeller, LoadBalancer, LoadBalancingDef, PathSelector};
pub use marking::{Marking, MarkingDef};
pub use queueing::{Queueing, QueueingDef};
pub use registry::Registry;
pub use transport::{Transport, TransportDef};

use crate::topology::Graph;
use engine::{Misfit, Parameters};

/// What the program knows of a variant on any axis, before and around a run.
pub trait Definition: Parameters + Send + Sync {
    /// Its name in scenario files.
    fn name(&self) -> &'static str;
    /// What it does, in a sentence or two.
    fn about(&self) -> &'static str;
    /// The paper or standard it comes from: authors, title, venue and year. Empty for what is common knowledge.
    fn source(&self) -> &'static str {
        ""
    }
    /// Whether it looks at how long flows are. Runs in which flows get shorter on the way ([`crate::run::forward`]) are refused with it.
    fn needs_size(&self) -> bool {
        false
    }
    /// Bytes of the longest control packet that it sends, other than ACKs and the frames of flow control. A pause may have to wait for one.
    fn control_packet(&self) -> u64 {
        0
    }
    /// Whether the parameters make sense.
    fn check(&self) -> Result<(), Misfit> {
        Ok(())
    }
    /// Why it cannot go with what is chosen on the other axes. The parameter of the misfit is the key, from the root of a scenario, that
    /// is at fault.
    fn conflict(&self, _with: &Chosen<'_>) -> Option<Misfit> {
        None
    }
    /// What is odd about it beside what is chosen on the other axes, and allowed. `check` and every run say it.
    fn remark(&self, _with: &Chosen<'_>, _graph: &Graph) -> Option<String> {
        None
    }
}

/// One variant on every axis.
#[derive(Clone, Copy)]
pub struct Chosen<'a> {
    /// Flow control.
    pub flow_control: &'a dyn FlowControlDef,
    /// Congestion control, with edge control on top.
    pub congestion_control: &'a dyn CongestionControlDef,
    /// What is on top of congestion control.
    pub edge_control: &'a dyn EdgeControlDef,
    /// The transport.
    pub transport: &'a dyn TransportDef,
    /// The choice among paths.
    pub load_balancing: &'a dyn LoadBalancingDef,
    /// The choice among queues.
    pub queueing: &'a dyn QueueingDef,
    /// What switches write on packets.
    pub marking: &'a dyn MarkingDef,
    /// Whether flows have a window.
    pub window: bool,
}

impl<'a> Chosen<'a> {
    /// By axis, as scenario files name it.
    pub fn definitions(&self) -> [(&'static str, &'a dyn Definition); 7] {
        [
            ("flow_control", self.flow_control),
            ("congestion_control", self.congestion_control),
            ("edge_control", self.edge_control),
            ("transport", self.transport),
            ("load_balancing", self.load_balancing),
            ("queueing", self.queueing),
            ("marking", self.marking),
        ]
    }

    /// What is odd, by the variant that says so.
    pub fn remarks(&self, graph: &Graph) -> Vec<String> {
        self.definitions().iter().filter_map(|(_, definition)| definition.remark(self, graph)).collect()
    }

    /// Every incompatibility, by the variant that objects.
    pub fn conflicts(&self) -> Vec<Misfit> {
        self.definitions().iter().filter_map(|(_, definition)| definition.conflict(self)).collect()
    }
}

/// How a counter of several nodes, or shards, becomes one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Merge {
    /// They add up.
    Sum,
    /// The largest counts.
    Max,
}

/// A named count that a mechanism keeps, shown in every result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counter {
    /// Its name.
    pub name: &'static str,
    /// How much.
    pub value: u64,
    /// What becomes of several.
    pub merge: Merge,
}

impl Counter {
    /// One that adds up.
    pub fn sum(name: &'static str, value: u64) -> Counter {
        Counter { name, value, merge: Merge::Sum }
    }
    /// One of which the largest counts.
    pub fn max(name: &'static str, value: u64) -> Counter {
        Counter { name, value, merge: Merge::Max }
    }
    /// What several members of one mechanism have counted, as one list.
    pub fn merged(lists: impl IntoIterator<Item = Vec<Counter>>) -> Vec<Counter> {
        let add = |mut all: Vec<Counter>, list: Vec<Counter>| {
            for other in list {
                match all.iter_mut().find(|mine| mine.name == other.name) {
                    Some(mine) if mine.merge == Merge::Sum => mine.value += other.value,
                    Some(mine) => mine.value = mine.value.max(other.value),
                    None => all.push(other),
                }
            }
            all
        };
        lists.into_iter().reduce(add).unwrap_or_default()
    }
}

/// A named histogram that a mechanism keeps: how many samples had the value 0, 1, 2 and so on.
pub type Histogram = (&'static str, Vec<u64>);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_of_several_members_merge_as_they_say() {
        let list = |n: u64| vec![Counter::sum("sent", n), Counter::max("peak", n)];
        let merged = Counter::merged([list(3), list(5), list(4)]);
        assert_eq!(merged, [Counter::sum("sent", 12), Counter::max("peak", 5)]);
        assert!(Counter::merged([]).is_empty());
    }
}
