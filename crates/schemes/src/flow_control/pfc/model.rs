//! PFC's loop, explored: see [`crate::flow_control::model`].

use super::*;
use crate::flow_control::model::{Clocks, Delays, Facts, Model, PACKET, TICK, chain};
use fabric::bench::{Bench, Sent};
use fabric::buffer::Share;
use fabric::setup::Split;

/// What decides what PFC does next, besides its accounts.
fn keeps(_: &Pfc, node: &Node, now: Time) -> String {
    let watched = node.watched.iter().map(|watched| (watched.ordered, watched.ignoring));
    format!("{:?} {:?}", node.deadlines.outlook(now, TICK), watched.collect::<Vec<_>>())
}

/// What it asks for and obeys, at any bench.
fn facts<F: FlowControl>(bench: &mut Bench<F>, facts: &mut Facts) {
    let ports: Vec<PortId> = bench.view().ports().collect();
    for port in ports {
        for class in (0..bench.view().classes()).map(ClassId) {
            let mut view = bench.view();
            if view.account(port, class).0.paused {
                facts.asks.push((port.0, class.0 as u64));
            }
            if view.is_paused(port, class) {
                facts.obeys.push((port.0, class.0 as u64));
            }
        }
    }
}

/// Hosts, switches, packets of each host, and packets that an ingress may hold before it pauses.
type Size = (u32, u32, u64, u64);

/// Hosts that send through two switches, or through the first alone. The headroom of an ingress is for what comes after a pause.
fn model<F: FlowControl>(
    scheme: F,
    keeps: fn(&F, &F::Node, Time) -> String,
    (hosts, switches, packets, threshold): Size,
) -> Model<F> {
    let mut setup = chain(hosts, 1);
    let (first, second) = (hosts + 1, hosts + 2);
    setup.switch.split = Split::Ingress;
    setup.switch.pool[first as usize] = Some((hosts as u64 + 1) * threshold * PACKET);
    setup.switch.pool[second as usize] = Some(2 * threshold * PACKET);
    setup.switch.resume_gap = PACKET;
    let nodes = (0..hosts).chain(first..first + switches).collect();
    let model = Model::new(setup, scheme, nodes, vec![packets; hosts as usize], keeps, facts);
    // One frame of a class waits, which is what headroom is computed with.
    delayed(Model { frames: 1, ..model }, Delays { flight: 1, waits: 1, frame: 1 })
}

/// The same with other delays, and headroom for them.
fn delayed<F: FlowControl>(mut model: Model<F>, delays: Delays) -> Model<F> {
    model.delays = delays;
    let headroom = delays.after_a_pause() * PACKET as u32;
    model.setup.ports.iter_mut().for_each(|port| port.share = Share { alpha: 0, headroom });
    model
}

fn pfc(pause: Option<Time>, size: Size) -> Model<Pfc> {
    let model = model(Pfc::new(&Params::default(), pause, true), keeps, size);
    Model { next: Some(|node| node.deadlines.next()), ..model }
}

/// A host and two switches that pause with every packet.
const SMALL: Size = (1, 2, 4, 1);

#[test]
fn no_packet_is_lost_no_class_stays_paused_and_both_ends_agree() {
    pfc(None, (2, 1, 3, 2)).holds("pfc, two hosts and a switch");
    pfc(None, (1, 2, 4, 1)).holds("pfc, a host and two switches");
    // One hop, with more under way on it.
    let far = Delays { flight: 2, waits: 1, frame: 2 };
    delayed(pfc(None, (1, 1, 7, 2)), far).holds("pfc, a long link");
}

#[test]
fn two_classes_do_not_disturb_each_other() {
    let mut model = pfc(None, (2, 1, 4, 2));
    model.setup.classes = 2;
    model.setup.flows[1].src = fabric::id::NodeId(0);
    model.setup.flows[1].class = ClassId(1);
    model.setup.switch.pool[3] = Some(2 * 3 * 2 * PACKET);
    model.nodes = vec![0, 3];
    model.frames = 2;
    model.holds("pfc, two classes");
}

/// Pauses that run out, and are renewed twice meanwhile.
fn running_out(losses: u8, size: Size) -> Model<Pfc> {
    let mut model = pfc(Some(Time(2 * TICK.0)), size);
    (model.clocks, model.losses, model.lossless) = (Clocks::Common, losses, losses == 0);
    model
}

#[test]
fn a_pause_that_is_renewed_does_not_run_out_and_one_that_is_not_does() {
    running_out(0, (1, 2, 3, 1)).holds("pfc, pauses that run out");
    running_out(2, (1, 1, 5, 2)).holds("pfc, pauses that run out, two frames lost");
}

#[test]
fn mistakes_are_found() {
    // Headroom for a packet less.
    let mut short = pfc(None, SMALL);
    short.setup.ports.iter_mut().for_each(|port| port.share.headroom -= PACKET as u32);
    short.breaks(1);
    // A resume at the threshold itself.
    let mut eager = delayed(pfc(None, (1, 1, 8, 2)), Delays { flight: 1, waits: 0, frame: 1 });
    eager.setup.switch.resume_gap = 0;
    eager.breaks(1);
    // A resume that is lost, where pauses last for ever.
    let mut lost = pfc(None, (1, 1, 4, 2));
    (lost.losses, lost.lossless) = (1, false);
    lost.breaks(2);
    // A resume that is never sent.
    let mut mute = pfc(None, SMALL);
    mute.twist = Some(|mut sent| {
        let resume = |sent: &Sent| matches!(sent.message(), Frame::Resume { .. });
        sent.retain(|sent| sent.packet.layer().is_none() || !resume(sent));
        sent
    });
    mute.breaks(3);
    // Each change of mind in a frame of its own.
    model(Mutant { each: true }, |_, _, _| String::new(), SMALL).breaks(4);
    // A frame that finds another waiting is not sent.
    model(Mutant { each: false }, |_, _, _| String::new(), SMALL).breaks(3);
}

/// PFC as one might have written it.
#[derive(Clone)]
struct Mutant {
    /// Every frame is sent. Otherwise one that finds another waiting is not.
    each: bool,
}

impl Mutant {
    fn say(&self, at: &mut NodeView<'_>, port: PortId, frame: Frame) {
        if self.each || !at.has_frames(port) {
            at.send_frame(port, 64, frame);
        }
    }
}

impl FlowControl for Mutant {
    type Node = ();
    type Frame = Frame;
    type Signal = ();
    fn node(&self, _: &Site<'_>) {}
    fn enqueued(&self, _: &mut (), at: &mut NodeView<'_>, visit: &Visit) {
        let (account, buffer) = at.account(visit.in_port, visit.class);
        if !account.paused && buffer.over(account) {
            account.paused = true;
            self.say(at, visit.in_port, Frame::Pause { class: visit.class });
        }
    }
    fn dequeued(&self, _: &mut (), at: &mut NodeView<'_>, visit: &Visit) {
        let (account, buffer) = at.account(visit.in_port, visit.class);
        if account.paused && buffer.under(account) {
            account.paused = false;
            self.say(at, visit.in_port, Frame::Resume { class: visit.class });
        }
    }
    fn frame(&self, _: &mut (), at: &mut NodeView<'_>, port: PortId, frame: Frame) {
        let (class, pause) = frame.class();
        at.pause_class(port, ClassId(class), pause);
    }
}
