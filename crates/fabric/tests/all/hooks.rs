//! What hooks may rely on.

use engine::{Parameter, Parameters, Raw, Time};
use fabric::axes::flow_control::{FlowControl, NoFlowControl, Over, Visit};
use fabric::axes::{Definition, Marking, MarkingDef};
use fabric::bench::{Bench, Builder};
use fabric::id::{PortId, QueueId};
use fabric::setup::{AckLane, Overflow, Trimming};
use fabric::view::{NodeView, Site};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

/// Bytes that have joined and not left: by egress port and queue, and by ingress port.
#[derive(Clone, Debug, Default, PartialEq)]
struct Balance {
    egress: BTreeMap<(u16, u32), i64>,
    ingress: BTreeMap<u16, i64>,
}

impl Balance {
    fn add(&mut self, visit: &Visit, sign: i64) {
        *self.egress.entry((visit.out_port.0, visit.queue.0)).or_default() += sign * visit.size as i64;
        *self.ingress.entry(visit.in_port.0).or_default() += sign * visit.size as i64;
    }
}

/// A flow control that keeps books of its own.
#[derive(Clone)]
struct Books;

impl FlowControl for Books {
    type Node = Balance;
    type Frame = ();
    type Signal = ();
    fn node(&self, _: &Site<'_>) -> Balance {
        Balance::default()
    }
    fn second_group(&self, _: &mut Balance, _: &mut NodeView<'_>, visit: &Visit) -> bool {
        visit.in_port == PortId(1)
    }
    fn enqueued(&self, node: &mut Balance, _: &mut NodeView<'_>, visit: &Visit) {
        node.add(visit, 1);
    }
    fn dequeued(&self, node: &mut Balance, at: &mut NodeView<'_>, visit: &Visit) {
        assert_eq!(at.packet(visit.packet).size, visit.size, "it leaves as it joined");
        node.add(visit, -1);
    }
}

/// A switch program that does the same.
#[derive(Clone, Default)]
struct Program(Arc<Mutex<Balance>>);

impl Parameters for Program {
    fn list(&self) -> Vec<Parameter> {
        Vec::new()
    }
    fn set(&mut self, _: &str, _: &Raw) -> Option<Result<(), engine::ValueError>> {
        None
    }
}
impl Definition for Program {
    fn name(&self) -> &'static str {
        "books"
    }
    fn about(&self) -> &'static str {
        "Counts what joins queues and leaves them."
    }
}
impl MarkingDef for Program {
    fn switch(&self, _: &Site<'_>) -> Option<Box<dyn Marking>> {
        Some(Box::new(self.clone()))
    }
}
impl Marking for Program {
    fn enqueued(&mut self, _: &mut NodeView<'_>, visit: &Visit) {
        self.0.lock().unwrap().add(visit, 1);
    }
    fn dequeued(&mut self, _: &mut NodeView<'_>, visit: &Visit) {
        self.0.lock().unwrap().add(visit, -1);
    }
}

const RECEIVER: PortId = PortId(2);

/// A switch with two senders and a receiver, whose port sends only when it is asked to.
fn bench(program: &Program, overflow: Overflow) -> Bench<Books> {
    let builder = Builder::switch(3, 0).memory(1_000_000, 65_536, 0).marking(program).setup(|setup| {
        setup.switch.overflow = overflow;
        setup.switch.groups = 2;
        setup.nic.ack_lane = AckLane::Control;
    });
    let mut bench = builder.build(Books);
    bench.close(RECEIVER);
    bench
}

/// The books of flow control and of the program are those of the switch. Gives the bytes that are in the queue.
fn agree(bench: &mut Bench<Books>, program: &Program) -> i64 {
    let (queue, in_ports) = (QueueId(0), [PortId(0), PortId(1)]);
    let class = fabric::id::ClassId(0);
    let mut view = bench.view();
    let bytes = view.queue_bytes(RECEIVER, queue) as i64;
    let held = in_ports.map(|port| view.group_account(port, class, port == PortId(1)).0.total() as i64);
    let node = bench.node();
    assert_eq!(node.egress.get(&(RECEIVER.0, 0)).copied().unwrap_or(0), bytes);
    assert_eq!(in_ports.map(|port| node.ingress.get(&port.0).copied().unwrap_or(0)), held);
    assert_eq!(*node, *program.0.lock().unwrap());
    bytes
}

#[test]
fn flow_control_and_marking_hear_of_packets_that_trimming_takes_out_of_a_queue_and_of_those_that_take_their_place() {
    let program = Program::default();
    let trimming = Trimming { queue: 4, headers: 100_000, header: 64, ratio: 10, returns: true };
    let mut bench = bench(&program, Overflow::Trim(trimming));
    let flows = [bench.flow(0, 2, 0), bench.flow(1, 2, 0)];
    for round in 0..40 {
        for (port, flow) in [PortId(0), PortId(1)].into_iter().zip(flows) {
            bench.arrive(port, flow);
            agree(&mut bench, &program);
        }
        if round % 4 == 0 {
            bench.transmit(RECEIVER);
            agree(&mut bench, &program);
        }
    }
    assert!(bench.counts().trimmed.0 > 20, "{:?}", bench.counts().trimmed);
    while bench.transmit(RECEIVER).is_some() {}
    assert_eq!(agree(&mut bench, &program), 0);
}

#[test]
fn marking_hears_of_packets_that_are_dropped_from_their_queue() {
    let program = Program::default();
    let mut bench = bench(&program, Overflow::Drop);
    let flow = bench.flow(0, 2, 0);
    (0..5).for_each(|_| bench.arrive(PortId(0), flow));
    assert!(agree(&mut bench, &program) > 0);
    bench.at(|scheme, node, at| {
        for visit in at.empty_queue(RECEIVER, QueueId(0)) {
            scheme.dequeued(node, at, &visit);
            at.drop_packet(visit.packet);
        }
    });
    assert_eq!(agree(&mut bench, &program), 0);
}

#[test]
#[should_panic(expected = "the other would not hear of it")]
fn one_of_two_flow_controls_cannot_empty_a_queue() {
    let stack = Over { upper: Books, lower: NoFlowControl };
    Bench::switch(stack, 3).view().empty_queue(RECEIVER, QueueId(0));
}

/// Counts how often it is asked to observe.
#[derive(Clone)]
struct Observer;

impl FlowControl for Observer {
    type Node = u64;
    type Frame = ();
    type Signal = ();
    fn node(&self, _: &Site<'_>) -> u64 {
        0
    }
    fn observe(&self, node: &mut u64, _: &NodeView<'_>) {
        *node += 1;
    }
    fn counters(&self, nodes: &[&u64]) -> Vec<fabric::axes::Counter> {
        vec![fabric::axes::Counter::sum("observed", nodes.iter().copied().sum())]
    }
}

#[test]
fn a_flow_control_that_observes_is_asked_to_with_every_sample() {
    use fabric::topology::{Graph, Kind};
    let mut graph = Graph::default();
    let hosts = ["a", "b"].map(|name| graph.add(Kind::Host, 0, name));
    let switch = graph.add(Kind::Switch, 1, "s");
    hosts.iter().for_each(|&host| graph.connect(host, switch, engine::Rate::from_gbps(100), Time::from_us(1)));
    let flow = fabric::setup::FlowSpec::plain(0, 0, 1, 100_000, Time::ZERO);
    let mut setup = fabric::Setup::plain(graph, vec![flow]);
    setup.measure.sample = Some(Time::from_us(1));
    let outcome = crate::run(setup, Observer);
    let observed = outcome.flow_control[0].value;
    // 100 packets take 8.5 us, and every sample is of three nodes.
    assert!(observed > 3 * 8 && observed.is_multiple_of(3), "{observed}");
}
