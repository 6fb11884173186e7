//! A congestion control and its switch program talk by bits of packets.

use engine::{Parameter, Parameters, Rate, Raw, Time, ValueError};
use fabric::Setup;
use fabric::axes::congestion_control::{Ack, FlowStart, Needs, Permit};
use fabric::axes::flow_control::{NoFlowControl, Visit};
use fabric::axes::{CongestionControl, CongestionControlDef, Definition, Marking, MarkingDef};
use fabric::packet::Kind as Packet;
use fabric::setup::{AckLane, FlowSpec};
use fabric::topology::{Graph, Kind};
use fabric::view::{NodeView, Site};
use std::sync::{Arc, Mutex};

const FIRST: u16 = 0x1000;
const LATER: u16 = 0x2000;
const SWITCH: u16 = 0x8000;

/// What ACKs brought back, and the bits of packets that the switch saw.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<(Vec<u16>, Vec<u16>)>>);

impl Parameters for Log {
    fn list(&self) -> Vec<Parameter> {
        Vec::new()
    }
    fn set(&mut self, _: &str, _: &Raw) -> Option<Result<(), ValueError>> {
        None
    }
}
impl Definition for Log {
    fn name(&self) -> &'static str {
        "log"
    }
    fn about(&self) -> &'static str {
        "Writes down which bits packets and ACKs carry."
    }
}

impl CongestionControlDef for Log {
    fn build(&self) -> Box<dyn CongestionControl> {
        Box::new(self.clone())
    }
    fn switch_half(&self) -> Option<Box<dyn MarkingDef>> {
        Some(Box::new(self.clone()))
    }
}
impl CongestionControl for Log {
    fn needs(&self) -> Needs {
        Needs { every_ack: true, window: true, ..Needs::default() }
    }
    fn start(&mut self, _: u32, flow: FlowStart) -> Permit {
        Permit { own: FIRST, window: 2000, ..Permit::at(flow.line) }
    }
    fn ack(&mut self, _: u32, ack: &Ack<'_>, permit: &mut Permit) {
        self.0.lock().unwrap().0.push(ack.own);
        permit.own = LATER;
    }
}

impl MarkingDef for Log {
    fn switch(&self, _: &Site<'_>) -> Option<Box<dyn Marking>> {
        Some(Box::new(self.clone()))
    }
}
impl Marking for Log {
    fn enqueued(&mut self, at: &mut NodeView<'_>, visit: &Visit) {
        let packet = at.packet_mut(visit.packet);
        assert_eq!(packet.kind, Packet::Data, "a switch program sees data alone");
        self.0.lock().unwrap().1.push(packet.flags & fabric::packet::flag::OWN);
        packet.flags |= SWITCH;
    }
}

#[test]
fn a_controller_writes_bits_on_packets_its_switch_program_adds_to_them_and_acks_bring_them_back() {
    for lane in [AckLane::Control, AckLane::Data(None)] {
        let mut graph = Graph::default();
        let hosts = ["a", "b"].map(|name| graph.add(Kind::Host, 0, name));
        let switch = graph.add(Kind::Switch, 1, "s");
        hosts.iter().for_each(|&host| graph.connect(host, switch, Rate::from_gbps(100), Time::from_us(1)));
        let mut setup = Setup::plain(graph, vec![FlowSpec::plain(0, 0, 1, 5000, Time::ZERO)]);
        setup.nic.ack_lane = lane;
        let log = Log::default();
        let outcome = crate::run_chosen(setup, NoFlowControl, &log, "round-robin");
        assert!(outcome.complete() && outcome.violations.is_empty());
        let (acks, seen) = &*log.0.lock().unwrap();
        // Two packets leave before the first ACK comes back.
        assert_eq!(*seen, [FIRST, FIRST, LATER, LATER, LATER]);
        assert_eq!(*acks, [FIRST, FIRST, LATER, LATER, LATER].map(|bits| bits | SWITCH));
    }
}
