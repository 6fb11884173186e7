//! DVL's pauses and notifications, explored: see [`crate::flow_control::model`].

use super::*;
use crate::flow_control::model::{Delays, Facts, Model, PACKET, TICK, chain, left};
use fabric::bench::Bench;
use fabric::buffer::Share;
use fabric::setup::Split;

const DELAYS: Delays = Delays { flight: 1, waits: 1, frame: 1 };

/// What decides what DVL does next.
fn keeps(_: &Dvl, node: &Node, now: Time) -> String {
    let lanes = node.lanes.iter().map(|lane| lane.outlook(|at| left(at, now, TICK)));
    let sides = node.sides.iter().map(|side| format!("{:?}", (&side.mail, side.waiting, &side.listed, side.stopped)));
    let (lanes, sides): (Vec<_>, Vec<_>) = (lanes.collect(), sides.collect());
    format!("{lanes:?} {sides:?} {} {:?}", node.used, node.deadlines.outlook(now, TICK))
}

fn facts(bench: &mut Bench<Dvl>, facts: &mut Facts) {
    let (ports, class): (Vec<PortId>, ClassId) = (bench.view().ports().collect(), ClassId(0));
    for port in ports {
        bench.at(|_, node, at| {
            for group in [PLAIN, CONGESTED] {
                if at.group_account(port, class, group == CONGESTED).0.paused {
                    facts.asks.push((port.0, group as u64));
                }
                let obeys = match (at.is_host(), group) {
                    (true, PLAIN) => at.is_paused(port, class),
                    (true, _) => node.side(port).stopped != 0,
                    (false, group) => node.lane(port, class).stopped[group],
                };
                if obeys {
                    facts.obeys.push((port.0, group as u64));
                }
            }
        });
    }
    let node = bench.node();
    facts.rest = node.lanes.iter().all(|lane| !lane.allocated && lane.markings() == 0)
        && node.sides.iter().all(|side| side.listed.is_empty() && side.mail.is_empty());
}

/// Hosts that send through two switches, or through the first alone. A group of an ingress pauses with every packet.
fn model(params: &Params, (hosts, switches, packets): (u32, u32, u64)) -> Model<Dvl> {
    let mut setup = chain(hosts, 1);
    let (first, second) = (hosts + 1, hosts + 2);
    setup.switch.split = Split::Ingress;
    (setup.switch.queues, setup.switch.groups) = (2, 2);
    setup.switch.pool[first as usize] = Some((hosts as u64 + 1) * 2 * PACKET);
    setup.switch.pool[second as usize] = Some(2 * 2 * PACKET);
    setup.switch.resume_gap = PACKET;
    let headroom = DELAYS.after_a_pause() * PACKET as u32;
    setup.ports.iter_mut().for_each(|port| port.share = Share { alpha: 0, headroom });
    let scheme = Dvl::new(params, &setup.graph, true);
    let nodes = (0..hosts).chain(first..first + switches).collect();
    let mut model = Model::new(setup, scheme, nodes, vec![packets; hosts as usize], keeps, facts);
    model.delays = DELAYS;
    // A frame in the mailbox waits for its timer, not for a picosecond.
    model.prepare = |bench| bench.at(|_, node, _| node.sides.iter_mut().for_each(|side| side.frame_time = TICK));
    model
}

/// A queue of a packet is congested, and what is kept apart is accounted apart and told of at once.
fn params() -> Params {
    let one = Some(Bytes(PACKET));
    Params { threshold: one, ingress: Some(Bytes(1)), tell: one, hold: Some(TICK), cft: 4, ..Params::default() }
}

#[test]
fn no_packet_is_lost_no_lane_stays_paused_or_allocated_and_both_ends_agree() {
    for (name, enhanced) in [("dvl", false), ("edvl", true)] {
        let params = Params { enhanced, ..params() };
        model(&params, (1, 2, 3)).holds(&format!("{name}, a host and two switches"));
    }
    model(&params(), (2, 1, 2)).holds("dvl, two hosts and a switch");
    model(&params(), (1, 1, 5)).holds("dvl, a host and a switch");
    let once = Params { messages: Some(1), cft: 1, ..params() };
    model(&once, (1, 1, 5)).holds("dvl, one message and one entry");
}

#[test]
fn mistakes_are_found() {
    // The neighbour is not told that nothing is to be kept apart any more.
    let mut mute = model(&params(), (1, 1, 4));
    mute.twist = Some(|mut sent| {
        let gone = |sent: &fabric::bench::Sent| matches!(sent.message(), Frame::Drop { .. });
        sent.retain(|sent| sent.packet.kind != Kind::Frame || !gone(sent));
        sent
    });
    mute.breaks(2);
    // Nor that its other flows may go on.
    let mut stop = model(&params(), (1, 1, 4));
    stop.twist = Some(|mut sent| {
        let gone = |sent: &fabric::bench::Sent| matches!(sent.message(), Frame::Resume { .. });
        sent.retain(|sent| sent.packet.kind != Kind::Frame || !gone(sent));
        sent
    });
    stop.breaks(3);
    // Headroom for a packet less, where all packets are accounted to one group.
    let mut short = model(&Params { ingress: Some(Bytes(1_000_000)), ..params() }, (1, 1, 5));
    short.setup.ports.iter_mut().for_each(|port| port.share.headroom -= PACKET as u32);
    short.breaks(1);
}
