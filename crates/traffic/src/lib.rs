//! Flows: what is to be sent, by whom, to whom and when.
//!
//! A [`FlowRequest`] is one message. Explicit lists write them down one by one; a trace file ([`trace`]) holds many in a
//! table; generators draw them: a [`Load`] of [`Sizes`] and [`Arrivals`] between [`Places`], an [`Incast`], [`Long`]-lived
//! flows, or a [`Collective`]. All of them pass the same test, [`FlowRequest::check`], and come together in a [`Traffic`].
//!
//! What is drawn depends on the run's seed and on the generator's place among its kind ([`Origin`]), and on nothing else: not
//! on the scheme, and not on other generators.

use engine::{Bytes, Stream, Time};
use fabric::id::{ClassId, FlowId, NodeId};
use fabric::topology::{self, Graph};
use std::collections::HashMap;
use std::fmt;

mod after;
pub mod arrivals;
pub mod collective;
pub mod goal;
pub mod incast;
pub mod job;
pub mod load;
pub mod long;
pub mod places;
pub mod sizes;
mod text;
pub mod trace;
pub mod weave;

pub use fabric::setup::Task;

pub use arrivals::Arrivals;
pub use collective::{Collective, Messages};
pub use goal::{read_goal, write_goal};
pub use incast::Incast;
pub use job::{Job, Outline};
pub use load::Load;
pub use long::Long;
pub use places::Places;
pub use sizes::Sizes;
pub use text::{FileFault, FileFaults};
pub use trace::{read_trace, write_trace};

/// The digest of the code of this crate.
pub const CODE: &str = env!("TAILWATER_CODE");

/// The most flows of one run.
pub const MAX_FLOWS: u64 = if cfg!(fuzzing) { 4_000 } else { 50_000_000 };
/// The largest message.
pub const MAX_SIZE: Bytes = Bytes(1_000_000_000_000);
/// The latest start of a flow. It leaves room below the end of [`Time`] for everything that happens after.
pub const MAX_START: Time = Time::from_ms(1_000_000_000);
/// The latest start of a flow that waits for others. As much time again, almost, is left for what happens after.
pub const MAX_LATE_START: Time = Time::from_ms(10_000_000_000);

/// The most groups of flows.
pub const MAX_GROUPS: usize = 1 << 16;

/// Whether a group may be called that: a short line that a trace file can hold.
pub fn is_group_name(name: &str) -> bool {
    trace::plain(name) && name.chars().count() <= 64 && !name.chars().any(char::is_control)
}

/// A message that is to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowRequest {
    /// Sending host.
    pub src: NodeId,
    /// Receiving host.
    pub dst: NodeId,
    /// Bytes of message.
    pub size: u64,
    /// When it is handed to the NIC.
    pub start: Time,
    /// Priority class, 0-based.
    pub class: ClassId,
    /// The group it belongs to, a place in [`Traffic::groups`].
    pub group: u16,
    /// When its sender leaves, however much of it is sent by then; [`Time::MAX`] for never.
    pub until: Time,
}

/// A flow that waits for another: it starts no sooner than `gap` after the other has ended where this one starts, that is
/// when it has been received there, or acknowledged there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct After {
    /// The flow that waits, or the [`Task`] (see [`Task::id`]).
    pub flow: FlowId,
    /// The flow, or the task, it waits for. Its source or its destination is the waiting flow's source.
    pub first: FlowId,
    /// Time between the two.
    pub gap: Time,
}

/// Everything that is to be sent in a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// The flows.
    pub flows: Vec<FlowRequest>,
    /// Names of the groups that flows belong to.
    pub groups: Vec<String>,
    /// Which flows and tasks wait for which.
    pub after: Vec<After>,
    /// What hosts do between flows.
    pub tasks: Vec<Task>,
    /// Which flows are a collective's.
    pub collectives: Vec<Messages>,
    /// Which flows and tasks are a job's.
    pub jobs: Vec<Outline>,
}

impl Traffic {
    /// The number of the group of that name, which is added if it is not there.
    pub fn group(&mut self, name: &str) -> u16 {
        let place = self.groups.iter().position(|group| group == name).unwrap_or_else(|| {
            self.groups.push(name.into());
            self.groups.len() - 1
        });
        place as u16
    }

    /// Adds what `other` has. Groups of the same name become one.
    pub fn append(&mut self, other: Traffic) {
        let groups: Vec<u16> = other.groups.iter().map(|name| self.group(name)).collect();
        let (first, tasks) = (self.flows.len() as u32, self.tasks.len());
        let later = |id: FlowId| match Task::number(id) {
            Some(number) => Task::id(tasks + number),
            None => FlowId(first + id.0),
        };
        let group = |flow: &FlowRequest| groups.get(flow.group as usize).copied().unwrap_or(flow.group);
        self.flows.extend(other.flows.iter().map(|flow| FlowRequest { group: group(flow), ..*flow }));
        let after = |after: &After| After { flow: later(after.flow), first: later(after.first), gap: after.gap };
        self.after.extend(other.after.iter().map(after));
        self.tasks.extend(&other.tasks);
        self.collectives.extend(other.collectives.iter().map(|messages| Messages {
            first: FlowId(first + messages.first.0),
            group: groups.get(messages.group as usize).copied().unwrap_or(messages.group),
            ..messages.clone()
        }));
        self.jobs.extend(other.jobs.iter().map(|job| job.moved(tasks, |flow| FlowId(first + flow.0))));
    }

    /// The same in order of start. Flows that start together keep their order.
    pub fn in_order(&self) -> Traffic {
        let mut order: Vec<u32> = (0..self.flows.len() as u32).collect();
        order.sort_by_key(|&flow| self.flows[flow as usize].start);
        let flows = order.iter().map(|&flow| self.flows[flow as usize]).collect();
        let (mut after, mut collectives) = (self.after.clone(), self.collectives.clone());
        let mut jobs = self.jobs.clone();
        if !after.is_empty() || !collectives.is_empty() {
            let mut place = vec![FlowId(0); order.len()];
            (0..).map(FlowId).zip(&order).for_each(|(new, &old)| place[old as usize] = new);
            for wait in &mut after {
                let moved = |id: FlowId| if Task::number(id).is_some() { id } else { place[id.index()] };
                (wait.flow, wait.first) = (moved(wait.flow), moved(wait.first));
            }
            after.sort_by_key(|wait| wait.flow);
            // All of a collective start together and stay together.
            collectives.iter_mut().for_each(|messages| messages.first = place[messages.first.index()]);
            jobs.iter_mut().for_each(|job| *job = job.moved(0, |flow| place[flow.index()]));
        }
        Traffic { flows, groups: self.groups.clone(), after, tasks: self.tasks.clone(), collectives, jobs }
    }
}

/// Where a generator's flows come from and go to.
#[derive(Clone, Copy, Debug)]
pub struct Origin {
    /// The run's seed.
    pub seed: u64,
    /// The generator's place among those of its kind.
    pub number: u32,
    /// The group of its flows.
    pub group: u16,
    /// The class of its flows.
    pub class: ClassId,
}

/// Kinds of generators.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Kind {
    Load = 1,
    Incast = 2,
    Long = 3,
    Collective = 4,
    Job = 5,
}

impl Origin {
    /// The random numbers of a generator, or of a part of one. Nodes have those of owners below 2^32.
    pub(crate) fn stream(self, kind: Kind, part: u32) -> Stream {
        let number = self.number as u64 & 0x0fff_ffff;
        Stream::new(self.seed, (kind as u64) << 60 | number << 32 | part as u64)
    }

    /// The random numbers that say where a job runs.
    pub fn job_stream(self) -> Stream {
        self.stream(Kind::Job, 0)
    }

    /// A flow of its group and class.
    pub(crate) fn flow(self, src: NodeId, dst: NodeId, size: u64, start: Time) -> FlowRequest {
        FlowRequest { class: self.class, group: self.group, ..FlowRequest::new(src, dst, size, start) }
    }
}

/// Refuses a set of hosts without a host.
pub(crate) fn not_empty(field: &'static str, hosts: &[NodeId]) -> Result<(), Fault> {
    match hosts {
        [] => Err(Fault { field, message: format!("{field} has no host"), help: "name at least one".into() }),
        _ => Ok(()),
    }
}

/// The fault that there would be more flows than a run may have.
pub fn too_many(field: &'static str, budget: u64) -> Fault {
    Fault {
        field,
        message: format!("there would be more than {budget} flows, the most that are left of {MAX_FLOWS}"),
        help: "make it shorter, or less of it".into(),
    }
}

/// The same where the number is known, at least on average: it may be too many for this budget only, or for any.
pub(crate) fn beyond(field: &'static str, flows: f64, budget: u64) -> Fault {
    too_many(field, if flows <= MAX_FLOWS as f64 { budget } else { budget.max(MAX_FLOWS) })
}

/// The fault that flows would start when no flow may.
pub(crate) fn too_late(field: &'static str) -> Fault {
    Fault {
        field,
        message: format!("the last flow would start after {MAX_START}"),
        help: "make it shorter, or more of it in less time".into(),
    }
}

/// Refuses flows, given in order of start, that start when no flow may.
pub(crate) fn in_time(field: &'static str, flows: Vec<FlowRequest>) -> Result<Vec<FlowRequest>, Fault> {
    match flows.last() {
        Some(last) if last.start > MAX_START => Err(too_late(field)),
        _ => Ok(flows),
    }
}

/// What is wrong with one field of a [`FlowRequest`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The field: `src`, `dst`, `size`, `start`, `class` or `until`; of a generator, the key of its table.
    pub field: &'static str,
    /// What is wrong.
    pub message: String,
    /// What to do about it.
    pub help: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; {}", self.message, self.help)
    }
}

impl std::error::Error for Fault {}

impl FlowRequest {
    /// A flow of class 0 and the first group that sends all it has.
    pub fn new(src: NodeId, dst: NodeId, size: u64, start: Time) -> FlowRequest {
        FlowRequest { src, dst, size, start, class: ClassId(0), group: 0, until: Time::MAX }
    }

    /// Whether it can be sent in this fabric with that many classes.
    pub fn check(&self, nodes: &Names<'_>, classes: u8) -> Result<(), Fault> {
        // There are many flows, and most are good.
        let end =
            |node: NodeId| nodes.graph.nodes.get(node.index()).is_some_and(|node| node.kind == topology::Kind::Host);
        let good = end(self.src) && end(self.dst) && self.src != self.dst && (1..=MAX_SIZE.0).contains(&self.size);
        let in_time = self.start <= MAX_START && self.until > self.start;
        if good && in_time && check_class(self.class, classes).is_ok() {
            return Ok(());
        }
        self.faults(nodes, classes).into_iter().next().map_or(Ok(()), Err)
    }

    /// Everything that keeps it from being sent.
    pub fn faults(&self, nodes: &Names<'_>, classes: u8) -> Vec<Fault> {
        let mut faults = Vec::new();
        let fault = |field, message, help| Fault { field, message, help };
        for (field, node) in [("src", self.src), ("dst", self.dst)] {
            match nodes.graph.nodes.get(node.index()) {
                None => faults.push(fault(field, format!("there is no node {node}"), nodes.hint())),
                Some(node) if node.kind != topology::Kind::Host => {
                    let message = format!("{} is a switch; messages go between hosts", node.name);
                    faults.push(fault(field, message, nodes.hint()));
                }
                Some(node) if field == "dst" && self.src == self.dst => {
                    let message = format!("{} sends to itself", node.name);
                    faults.push(fault("dst", message, "name two different hosts".into()));
                }
                Some(_) => {}
            }
        }
        if self.size == 0 {
            faults.push(fault("size", "size is 0".into(), "write a size above zero, such as \"1MB\"".into()));
        }
        if self.size > MAX_SIZE.0 {
            let help = format!("write a size up to {MAX_SIZE}, or split the message");
            faults.push(fault("size", format!("size is {}", Bytes(self.size)), help));
        }
        faults.extend(check_start(self.start).err());
        faults.extend(check_class(self.class, classes).err());
        if self.until <= self.start {
            let message = format!("it leaves at {} and starts at {}", self.until, self.start);
            faults.push(fault("until", message, "let it leave after its start".into()));
        }
        faults
    }
}

/// Whether a flow may start then.
pub fn check_start(start: Time) -> Result<(), Fault> {
    if start > MAX_START {
        let (message, help) = (format!("start is {start}"), format!("start it at {MAX_START} or before"));
        return Err(Fault { field: "start", message, help });
    }
    Ok(())
}

/// Whether a flow may be of that class where there are so many.
pub fn check_class(class: ClassId, classes: u8) -> Result<(), Fault> {
    if class.0 >= classes {
        let help = match classes {
            1 => "write 0, or give the scenario more classes with traffic.classes".into(),
            _ => format!("write 0 to {}, or raise traffic.classes", classes - 1),
        };
        let message = format!("class {class} is not there: the scenario has {classes}");
        return Err(Fault { field: "class", message, help });
    }
    Ok(())
}

/// The nodes of a graph by name.
#[derive(Clone, Debug)]
pub struct Names<'a> {
    graph: &'a Graph,
    by_name: HashMap<&'a str, NodeId>,
}

impl<'a> Names<'a> {
    /// Looks at every node once.
    pub fn new(graph: &'a Graph) -> Names<'a> {
        let by_name = (0..).map(NodeId).zip(&graph.nodes).map(|(number, node)| (node.name.as_str(), number)).collect();
        Names { graph, by_name }
    }

    /// The graph.
    pub fn graph(&self) -> &'a Graph {
        self.graph
    }

    /// The node of that name.
    pub fn named(&self, name: &str) -> Option<NodeId> {
        self.by_name.get(name).copied()
    }

    /// The node of that name, or else of that number.
    pub fn find(&self, text: &str) -> Option<NodeId> {
        let numbered = || text.parse().ok().map(NodeId).filter(|node| node.index() < self.graph.nodes.len());
        self.named(text).or_else(numbered)
    }

    /// A sentence on what the nodes are called.
    pub fn hint(&self) -> String {
        let hosts: Vec<NodeId> = self.graph.hosts().take(2).collect();
        let last = self.graph.hosts().next_back();
        let name = |node: &NodeId| self.graph[*node].name.as_str();
        match (hosts.as_slice(), last.as_ref()) {
            ([one], _) => format!("the only host is {}", name(one)),
            ([one, two], Some(last)) if two == last => format!("the hosts are {} and {}", name(one), name(two)),
            ([one, two], Some(last)) => format!("the hosts are {}, {} … {}", name(one), name(two), name(last)),
            _ => "the fabric has no hosts".into(),
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use engine::Rate;
    use fabric::topology::Kind;

    /// Three hosts and a switch.
    pub(crate) fn star() -> Graph {
        star_of(3)
    }

    /// So many hosts and a switch.
    pub(crate) fn star_of(hosts: u32) -> Graph {
        let mut graph = Graph::default();
        let hosts: Vec<NodeId> = (0..hosts).map(|i| graph.add(Kind::Host, 0, format!("h{i}"))).collect();
        let switch = graph.add(Kind::Switch, 1, "sw0");
        hosts.into_iter().for_each(|host| graph.connect(host, switch, Rate::from_gbps(100), Time::from_us(1)));
        graph
    }

    const GOOD: FlowRequest = FlowRequest {
        src: NodeId(0),
        dst: NodeId(1),
        size: 1000,
        start: Time::ZERO,
        class: ClassId(0),
        group: 0,
        until: Time::MAX,
    };

    #[test]
    fn a_flow_between_two_hosts_passes() {
        let graph = star();
        assert_eq!(GOOD.check(&Names::new(&graph), 1), Ok(()));
    }

    #[test]
    fn every_fault_names_its_field_and_a_remedy() {
        let graph = star();
        let names = Names::new(&graph);
        let fault = |flow: FlowRequest| flow.check(&names, 2).unwrap_err();
        let cases = [
            (FlowRequest { src: NodeId(9), ..GOOD }, "src", "no node 9"),
            (FlowRequest { dst: NodeId(3), ..GOOD }, "dst", "sw0 is a switch"),
            (FlowRequest { dst: NodeId(0), ..GOOD }, "dst", "h0 sends to itself"),
            (FlowRequest { size: 0, ..GOOD }, "size", "size is 0"),
            (FlowRequest { size: u64::MAX, ..GOOD }, "size", "size is"),
            (FlowRequest { start: Time::MAX, ..GOOD }, "start", "start is"),
            (FlowRequest { class: ClassId(2), ..GOOD }, "class", "class 2"),
            (FlowRequest { until: Time::ZERO, ..GOOD }, "until", "leaves at"),
        ];
        for (flow, field, message) in cases {
            let fault = fault(flow);
            assert_eq!(fault.field, field);
            assert!(fault.message.contains(message), "{fault:?}");
            assert!(!fault.help.is_empty());
        }
    }

    #[test]
    fn a_node_is_found_by_name_and_by_number() {
        let graph = star();
        let names = Names::new(&graph);
        assert_eq!(
            (names.find("h2"), names.find("2"), names.find("sw0")),
            (Some(NodeId(2)), Some(NodeId(2)), Some(NodeId(3)))
        );
        assert_eq!((names.find("4"), names.find("-1"), names.find("host"), names.named("2")), (None, None, None, None));
        assert_eq!(names.hint(), "the hosts are h0, h1 … h2");
    }
}
