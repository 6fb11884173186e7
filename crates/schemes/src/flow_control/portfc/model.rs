//! PortFC's frames, explored: see [`crate::flow_control::model`].

use super::*;
use crate::flow_control::model::{Facts, Model, PACKET};
use engine::{Rate, Time};
use fabric::bench::Bench;
use fabric::setup::FlowSpec;
use fabric::topology::{Shape, bcube::Bcube};

/// What decides what PortFC does next.
fn keeps(_: &Portfc, node: &Node, _: Time) -> String {
    let stops = node.stops.iter().map(|stops| (stops.transit, stops.last_hop));
    format!("{:?}", (&node.congested, &node.group, stops.collect::<Vec<_>>(), &node.far, &node.remote))
}

/// A name for what a frame is about. With two ports to a switch, a host passes on what is about one port only.
fn name(about: About) -> u64 {
    match about {
        About::Transit { port } => 10 + port.0 as u64,
        About::LastHop { port } => 20 + port.0 as u64,
        About::PassedOn { .. } => 30,
        About::Remote => 40,
    }
}

fn facts(bench: &mut Bench<Portfc>, facts: &mut Facts) {
    let (ports, class): (Vec<PortId>, ClassId) = (bench.view().ports().collect(), ClassId(0));
    let host = bench.view().is_host();
    bench.at(|scheme, node, _| {
        for &port in &ports {
            let others = ports.iter().filter(|&&other| other != port);
            for &other in others {
                let asks = |about: About, asks: bool| asks.then_some((other.0, name(about)));
                let known = |far: u32| node.stops[scheme.place(port, class, far)];
                let all = if host {
                    let far = |far: u32| asks(About::PassedOn { port: PortId(0) }, known(far).last_hop);
                    vec![far(0).or(far(1)), asks(About::Remote, node.congested[scheme.place(port, class, 0)])]
                } else {
                    let last = node.congested[scheme.place(port, class, scheme.layout.last_hop())];
                    let transit = node.group[scheme.lane(port, class)] > 0;
                    vec![asks(About::LastHop { port }, last), asks(About::Transit { port }, transit)]
                };
                facts.asks.extend(all.into_iter().flatten());
            }
            for far in (0..2).filter(|_| host) {
                let stops = node.stops[scheme.place(port, class, far)];
                let far = PortId(far as u16);
                facts.obeys.extend(stops.transit.then_some((port.0, name(About::Transit { port: far }))));
                facts.obeys.extend(stops.last_hop.then_some((port.0, name(About::LastHop { port: far }))));
            }
            if !host {
                let passed = node.far[scheme.place(port, class, 0)];
                facts.obeys.extend(passed.then_some((port.0, name(About::PassedOn { port }))));
                facts.obeys.extend(node.remote[scheme.lane(port, class)].then_some((port.0, name(About::Remote))));
            }
        }
    });
}

/// BCube(2, 1), where host 0 sends to host 3 by way of another, and that one as well or the third. A queue of more than a packet is
/// congested, an empty one no longer.
fn model(packets: [u64; 3]) -> Model<Portfc> {
    let graph = Bcube { n: 2, rate: Rate(1_000_000_000_000_000), ..Bcube::default() }.build().unwrap();
    let flows = (0..3).map(|host| FlowSpec::plain(host as u16, host, 3, 1_000_000, Time::ZERO));
    let mut setup = Setup::plain(graph, flows.collect());
    setup.switch.queues = 2;
    // Otherwise what a host forwards may have to wait for what it has not sent of its own.
    setup.forward.first = true;
    let mut scheme = Portfc::new(&Params::default(), &fabric_of(&setup), true);
    scheme.marks = [Marks { pause: PACKET, resume: 0 }; 2];
    Model::new(setup, scheme, vec![0, 1, 2, 4, 5, 6, 7], packets.to_vec(), keeps, facts)
}

#[test]
fn no_queue_stays_stopped_and_all_nodes_agree() {
    let [a, b] = [2, 2];
    model([a, b, 0]).holds("portfc, with host 1");
    model([a, 0, b]).holds("portfc, with host 2");
}

#[test]
fn mistakes_are_found() {
    // A host does not pass on that the last hop is free again.
    let mut mute = model([3, 1, 1]);
    mute.twist = Some(|mut sent| {
        let gone = |frame: Frame| matches!(frame, Frame { about: About::PassedOn { .. }, pause: false, .. });
        sent.retain(|sent| sent.packet.layer().is_none() || !gone(sent.message()));
        sent
    });
    mute.breaks(3);
}
