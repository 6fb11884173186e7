//! Floodgate's credits, explored: see [`crate::flow_control::model`].

use super::*;
use crate::flow_control::model::{Facts, Model, PACKET, TICK, chain, left};
use fabric::bench::Bench;

/// What decides what Floodgate does next.
fn keeps(scheme: &Floodgate, node: &Node, now: Time) -> String {
    let toward = |(key, t): (&Key, &Toward)| {
        let outs = t.outs.iter().map(|out| {
            let heard = left(out.heard + scheme.params.syn_timeout, now, TICK);
            format!("{:?}", (out.port, out.passed, out.sent, out.credited, out.ahead, out.waiting, heard))
        });
        let ins = t.ins.iter().map(|from| {
            let In { port, received, left, said, asked, here, paused } = *from;
            format!("{:?}", (port, received, left, said, asked, here, paused))
        });
        let (outs, ins): (Vec<_>, Vec<_>) = (outs.collect(), ins.collect());
        format!("{key} {:?} {outs:?} {ins:?}", (t.window, t.used, t.waiting, if t.waiting > 0 { t.voq } else { 0 }))
    };
    let line = |line: &Line| {
        let flags = (line.collecting, line.expecting);
        format!("{:?}", (line.losses, &line.owed, line.ready, flags, line.waiting, &line.stopped))
    };
    let towards: Vec<String> = node.towards.iter().map(toward).collect();
    let lines: Vec<String> = node.lines.iter().map(line).collect();
    format!("{towards:?} {lines:?} {:?} {:?}", node.takers, node.deadlines.outlook(now, TICK))
}

fn facts(bench: &mut Bench<Floodgate>, facts: &mut Facts) {
    let node = bench.node();
    for (&key, toward) in &node.towards {
        let missing: u64 = toward.outs.iter().map(|out| out.missing() as u64).sum();
        if toward.used != missing {
            facts.wrong = Some(format!("{} B of a window are taken, {missing} B are missing", toward.used));
        }
        if toward.used > toward.window.max(PACKET) {
            facts.wrong = Some(format!("{} B are taken of a window of {} B", toward.used, toward.window));
        }
        facts.rest &= toward.used == 0 && toward.waiting == 0;
        for out in toward.outs.iter().filter(|out| out.sent > 0) {
            let owed = out.sent.wrapping_sub(out.credited) as u64;
            facts.counts.push((out.port.0, vec![key as u64, out.sent as u64, owed]));
        }
        for from in toward.ins.iter().filter(|from| from.received > 0) {
            let owed = from.received.wrapping_sub(from.said) as u64;
            if !node.lines[from.port.index()].to_host {
                facts.counts.push((from.port.0, vec![key as u64, from.received as u64, owed]));
            } else if from.paused {
                facts.asks.push((from.port.0, key as u64));
            }
        }
    }
    for (port, line) in (0..).zip(&node.lines) {
        facts.obeys.extend(line.stopped.iter().map(|&key| (port, key as u64)));
        facts.rest &= line.owed.is_empty() && line.ready == 0;
    }
}

/// A host that sends through two switches, or three. The window of the first is of two packets, that of a second of one, so that packets
/// wait there.
fn model(params: &Params, switches: u32, packets: u64) -> Model<Floodgate> {
    let mut setup = chain(1, 1);
    let mut nodes = vec![0, 2, 3];
    if switches == 3 {
        let between = setup.graph.add(topology::Kind::Switch, 2, "between");
        let link = setup.graph.links.iter_mut().find(|link| (link.a.0, link.b.0) == (2, 3)).unwrap();
        let (rate, delay) = (link.rates[0], link.delay);
        link.b = between;
        setup.graph.connect(between, NodeId(3), rate, delay);
        setup = Setup::plain(setup.graph, setup.flows);
        nodes.push(between.0);
    }
    setup.switch.queues = params.voqs + 1;
    let scheme = Floodgate { params: params.clone(), by_hop: params.windows == Some(Windows::NextHop) };
    let mut model = Model::new(setup, scheme, nodes, vec![packets], keeps, facts);
    model.next = Some(|node| node.deadlines.next());
    model.prepare = |bench| {
        bench.at(|_, node, at| {
            let first = at.node().0 == 2;
            for line in &mut node.lines {
                (line.window, line.pause_at) = (if first { 2 * PACKET } else { PACKET }, PACKET);
            }
            node.withhold = 0;
        });
    };
    model
}

/// One VOQ, credits at once, and a SYN after a tick.
fn ideal() -> Params {
    Params { voqs: 1, interval: Time::ZERO, resume_gap: Bytes(PACKET), syn_timeout: TICK, ..Params::default() }
}

#[test]
fn no_credit_is_lost_or_made_and_all_come_back() {
    model(&ideal(), 3, 2).holds("floodgate, credits at once");
    let batched = Params { interval: TICK, batch: Bytes(2 * PACKET), ..ideal() };
    model(&batched, 3, 2).holds("floodgate, credits in batches");
    let by_hop = Params { windows: Some(Windows::NextHop), ..ideal() };
    model(&by_hop, 2, 4).holds("floodgate, windows of next hops");
    let stops = Params { dst_pause: true, ..ideal() };
    model(&stops, 2, 3).holds("floodgate, hosts stopped by destination");
}

fn losing(losses: u8, loses_data: bool) -> Model<Floodgate> {
    let mut model = model(&ideal(), 2, 3);
    (model.losses, model.loses_data) = (losses, loses_data);
    model
}

#[test]
fn what_is_lost_on_a_link_is_given_back_after_a_syn() {
    losing(2, false).holds("floodgate, two frames lost");
    losing(1, true).holds("floodgate, a packet or a frame lost");
}

#[test]
fn mistakes_are_found() {
    // Nobody asks for credits that were lost.
    let mut deaf = losing(1, false);
    deaf.twist = Some(|mut sent| {
        sent.retain(|sent| sent.payload().is_none() || !matches!(sent.message(), Frame::Syn { .. }));
        sent
    });
    deaf.breaks(2);
    // The credit for the second packet is never sent.
    let mut stingy = model(&ideal(), 2, 2);
    stingy.twist = Some(|mut sent| {
        sent.retain(|sent| sent.payload().is_none_or(|list| read_entry(list[0]).1 as u64 != 2 * PACKET));
        sent
    });
    stingy.breaks(3);
}
