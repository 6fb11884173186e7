//! SFC's pauses, explored: see [`crate::flow_control::model`].

use super::*;
use crate::flow_control::model::{Clocks, Facts, Model, PACKET, TICK, chain, left};
use fabric::bench::Bench;

/// A packet takes a tick at this rate, as far as pauses are computed with it.
const SLOW: Rate = Rate(PACKET * 8 * 100_000);

/// What decides what SFC does next.
fn keeps(_: &Sfc, node: &Node, now: Time) -> String {
    let outlook = |pause: &Pause| pause.outlook(|at| left(at, now, TICK));
    let mut flows: Vec<_> = node.flows.iter().map(|(flow, pause)| (*flow, outlook(pause))).collect();
    flows.sort_unstable();
    let lanes: Vec<_> = node.lanes.iter().map(|lane| (outlook(&lane.pause), &lane.flows)).collect();
    let switch = node.switch.as_ref().map(|switch| {
        let flow = |src: u32| fabric::setup::FlowSpec::plain(src as u16, src, 2, 1, Time::ZERO).tuple;
        let flows = [flow(0), flow(1)].map(|tuple| switch.notified.has(&tuple, now));
        // Whatever happens next happens later.
        (flows, switch.cache.left(flow(0).destination, 0, now + Time(1)).0 / MICROSECOND)
    });
    format!("{flows:?} {lanes:?} {switch:?}")
}

fn facts(bench: &mut Bench<Sfc>, facts: &mut Facts) {
    let node = bench.node();
    facts.rest = node.flows.is_empty() && node.lanes.iter().all(|lane| !lane.pause.holds() && lane.flows.is_empty());
}

fn next(node: &Node) -> Option<Time> {
    let lanes = node.lanes.iter().map(|lane| &lane.pause);
    node.flows.values().chain(lanes).filter_map(Pause::next).min()
}

/// Two hosts that send through two switches to a third. A packet that finds another waiting is one too many.
fn model(deliver: Deliver, packets: [u64; 2]) -> Model<Sfc> {
    let setup = chain(2, 1);
    let params = Params {
        deliver,
        reset: Some(TICK),
        rtt: Some(TICK),
        filter: Bytes(1024),
        cache_entries: 64,
        pfc: false,
        ..Params::default()
    };
    let scheme = Sfc::new(&params, &setup);
    let mut model = Model::new(setup, scheme, vec![0, 1, 3, 4], packets.to_vec(), keeps, facts);
    model.clocks = Clocks::Common;
    model.next = Some(next);
    model.prepare = |bench| {
        bench.at(|_, node, _| {
            for port in node.switch.iter_mut().flat_map(|switch| &mut switch.ports) {
                *port = Egress { rate: SLOW, trigger: 0, target: 0, ..*port };
            }
        });
    };
    model
}

#[test]
fn no_sender_waits_for_ever() {
    let both = [2, 1];
    model(Deliver::Bts, both).holds("sfc");
    model(Deliver::Pfc, both).holds("sfc-p");
    let mut losing = model(Deliver::Bts, [2, 1]);
    losing.losses = 1;
    losing.holds("sfc, a signal lost");
}

#[test]
fn mistakes_are_found() {
    // Nobody's timer goes off.
    let mut asleep = model(Deliver::Bts, [2, 0]);
    asleep.next = Some(|_| None);
    asleep.breaks(2);
}
