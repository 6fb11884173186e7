//! BFC's loop, explored: see [`crate::flow_control::model`].

use super::*;
use crate::flow_control::model::{Facts, Model, PACKET, TICK, chain, left};
use fabric::bench::Bench;
use fabric::id::NodeId;

const GRAIN: Time = Time::from_ns(1);

/// What decides what BFC does next.
fn keeps(_: &Bfc, node: &Node, now: Time) -> String {
    // Of a note of an entry only counts whether the entry is still the same.
    let notes = |list: &mut dyn Iterator<Item = (EntryId, u32)>| -> Vec<(EntryId, bool)> {
        list.map(|(id, turn)| (id, node.table[id].turn == turn)).collect()
    };
    let physical = node.physical.iter().map(|p| {
        let (list, emptied) = (notes(&mut p.list.iter().copied()), notes(&mut p.emptied.iter().copied()));
        (p.flows, list, emptied, left(p.next_resume, now, GRAIN), p.waiting)
    });
    let ingress = node.ingress.iter().map(|port| {
        let waiting = port.waiting.iter().map(|spot| (spot.port, spot.class, spot.queue));
        (port.filter.snapshot(), &port.marks, port.repeats, port.ticking, waiting.collect::<Vec<_>>())
    });
    let received = node.egress.iter().map(|port| format!("{:?}", port.received));
    let (physical, ingress, received): (Vec<_>, Vec<_>, Vec<_>) =
        (physical.collect(), ingress.collect(), received.collect());
    format!("{} {:?} {physical:?} {ingress:?} {received:?}", node.table.outlook(), node.taken)
}

fn facts(bench: &mut Bench<Bfc>, facts: &mut Facts) {
    let ports: Vec<PortId> = bench.view().ports().collect();
    for port in ports {
        bench.at(|scheme, node, _| {
            if let Some(ingress) = node.ingress.get(port.index()) {
                let words = scheme.shape.words();
                facts.asks.extend(ingress.filter.snapshot()[words..].iter().map(|&name| (port.0, name)));
                // A change is said with the next frame.
                if ingress.repeats > 0 {
                    facts.pending.push(port.0);
                }
            }
            let received = &node.egress[port.index()].received;
            // VFIDs, and queues.
            let names = (0..64).chain(u16::MAX - 64..=u16::MAX);
            let names = names.filter(|&name| received.any() && received.really(scheme.shape, name));
            facts.obeys.extend(names.map(|name| (port.0, name as u64)));
        });
    }
    facts.rest = bench.node().table.len() == 0 && bench.node().taken.iter().all(|&taken| taken == 0);
}

/// A host with two flows to one receiver, and one switch or two. A queue with more than a packet is too long.
fn model(params: &Params, switches: u32, packets: [u64; 2]) -> Model<Bfc> {
    let mut setup = chain(2, 1);
    setup.flows[1].src = NodeId(0);
    setup.switch.queues = params.all_queues();
    setup.switch.express = Some(params.queues);
    let scheme = Bfc::new(params, &setup);
    let nodes = [0].into_iter().chain(3..3 + switches).collect();
    let mut model = Model::new(setup, scheme, nodes, packets.to_vec(), keeps, facts);
    model.grain = GRAIN;
    model.prepare = |bench| bench.at(|_, node, _| node.thresholds.fill(PACKET));
    model
}

/// Two physical queues, whose choice needs no dice, and a filter of two bytes.
fn params(resume: Resume) -> Params {
    Params {
        queues: 2,
        vfids: 64,
        cache: 0,
        filter: Bytes(2),
        hashes: 1,
        frame_header: Bytes(0),
        hop_rtt: Some(TICK),
        period: Some(TICK),
        crowded: Crowded::Shortest,
        high_priority: false,
        resume,
        ..Params::default()
    }
}

#[test]
fn no_flow_stays_paused_and_both_ends_agree_under_each_rule_of_resuming() {
    let both = [3, 2];
    for (name, resume, far) in [
        ("paced", Resume::Paced, 3),
        ("checked", Resume::Checked, 2),
        ("all", Resume::All, 2),
        ("marked", Resume::Marked, 3),
    ] {
        let small = params(resume);
        model(&small, 1, both).holds(&format!("bfc, {name}"));
        model(&small, 2, [far, 0]).holds(&format!("bfc, {name}, two switches"));
        let shared = Params { queues: 1, ..small.clone() };
        model(&shared, 1, both).holds(&format!("bfc, {name}, one queue for both flows"));
        let alike = Params { vfids: 1, ..small };
        model(&alike, 1, both).holds(&format!("bfc, {name}, one VFID for both flows"));
    }
    let listed = Params { queues: 1, emptied: Emptied::Listed, ..params(Resume::Paced) };
    model(&listed, 1, both).holds("bfc, paced, listed when emptied");
    let ahead = Params { queues: 1, high_priority: true, ..params(Resume::Paced) };
    model(&ahead, 1, [4, 3]).holds("bfc, paced, first packets ahead");
    let queues = Params { queues: 1, pauses: Pauses::Queues, ..params(Resume::Marked) };
    model(&queues, 2, [2, 1]).holds("bfc, marked, pauses name queues");
}

/// Links that lose so many frames, when a change is said so often.
fn losing(losses: u8, repeats: u32) -> Model<Bfc> {
    let mut model = model(&params(Resume::Paced), 1, [3, 0]);
    (model.losses, model.scheme.repeats) = (losses, repeats);
    model
}

#[test]
fn a_lost_frame_is_made_good_by_the_next() {
    losing(1, 2).holds("bfc, a frame lost of two");
    losing(2, 3).holds("bfc, two frames lost of three");
}

#[test]
fn mistakes_are_found() {
    // The last word gets lost.
    losing(1, 1).breaks(2);
    losing(2, 2).breaks(2);
    // Nobody says that nothing is paused any more.
    let mut mute = model(&params(Resume::Checked), 1, [3, 0]);
    mute.twist = Some(|mut sent| {
        sent.retain(|sent| sent.payload().is_none_or(|filter| filter[0] != 0));
        sent
    });
    mute.breaks(3);
}
