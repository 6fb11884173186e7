use super::*;
use crate::flow_control::pfc::{self, Pfc};
use crate::load_balancing::tests::{Fabric, leaf_spine};
use fabric::axes::flow_control::NoFlowControl;
use fabric::bench::{Bench, Builder, Sent};
use fabric::id::PortId;

/// Two leaves with a host each and four spines: the flow from one host to the other, at its first and its last switch. Between the two
/// switches and back a packet takes 4 us, so that a reply is late after 8.
struct Pair<F: fabric::axes::FlowControl> {
    near: Bench<F>,
    far: Bench<F>,
    flow: FlowId,
}

/// Switches that promise nothing.
fn lossy(params: &Params) -> Pair<NoFlowControl> {
    let Fabric { setup, hosts, leaves, .. } = leaf_spine(2, 1, 4);
    let (near, far) = (Fabric::bench(&setup, leaves[0], params), Fabric::bench(&setup, leaves[1], params));
    Pair { flow: near.flow(hosts[0].0, hosts[1].0, 0), near, far }
}

/// Switches that promise to lose nothing.
fn lossless(params: &Params) -> Pair<Pfc> {
    let Fabric { setup, hosts, leaves, .. } = leaf_spine(2, 1, 4);
    let bench = |node| {
        let pfc = Pfc::new(&pfc::Params::default(), None, true);
        Builder::of(setup.clone(), node).load_balancing(params).build(pfc)
    };
    let (near, far) = (bench(leaves[0]), bench(leaves[1]));
    Pair { flow: near.flow(hosts[0].0, hosts[1].0, 0), near, far }
}

impl<F: fabric::axes::FlowControl> Pair<F> {
    /// The next packet comes from the host, and leaves for a spine.
    fn send(&mut self) -> (Sent, Tag) {
        self.near.arrive(PortId(0), self.flow);
        self.near.advance(Time::from_us(1));
        let sent = self.near.data().remove(0);
        let tag = Tag::read(&sent.label.unwrap());
        (sent, tag)
    }
    /// It comes to the last switch: what that sends to the host, by the offset of its first byte, and what to the first switch.
    fn pass(&mut self, sent: &Sent) -> (Vec<u64>, Vec<Sent>) {
        self.far.hear(sent.port, sent);
        self.far.advance(Time::from_us(1));
        let data = self.far.data().iter().map(|sent| sent.packet.seq).collect();
        (data, self.far.sent().into_iter().filter(|sent| sent.packet.kind == Kind::Advice).collect())
    }
    /// What the last switch said comes to the first.
    fn answer(&mut self, advice: &[Sent]) {
        advice.iter().for_each(|advice| self.near.hear(advice.port, advice));
    }
    /// Lets time pass at both.
    fn wait(&mut self, us: u64) {
        self.near.advance(Time::from_us(us));
        self.far.advance(Time::from_us(us));
    }
}

fn kinds(advice: &[Sent]) -> Vec<u16> {
    advice.iter().map(|sent| sent.packet.tag).collect()
}

#[test]
fn a_label_is_read_as_it_was_written() {
    for ask in [Ask::Nothing, Ask::Request, Ask::Tail] {
        let (sent, tail) = (Time::from_us(7), Time::from_us(9));
        let tag = Tag { route: Route(77), choices: 3, epoch: u32::MAX, rerouted: true, ask, sent, tail };
        let mut label = Label::default();
        tag.write(&mut label);
        assert_eq!(Tag::read(&label), tag);
    }
}

#[test]
fn a_timely_reply_begins_another_epoch_on_the_same_path() {
    let mut pair = lossless(&Params::default());
    let (first, tag) = pair.send();
    assert_eq!((tag.epoch, tag.ask, tag.rerouted), (1, Ask::Request, false));
    let (data, advice) = pair.pass(&first);
    assert_eq!((data, kinds(&advice)), (vec![0], vec![REPLY]));
    let (second, tag) = pair.send();
    assert_eq!((tag.epoch, tag.ask, second.port), (1, Ask::Nothing, first.port));
    pair.answer(&advice);
    pair.wait(100);
    let (third, tag) = pair.send();
    assert_eq!((tag.epoch, tag.ask, third.port), (2, Ask::Request, first.port));
}

#[test]
fn a_late_reply_makes_a_tail_and_the_next_packets_take_another_path_until_clear() {
    let mut pair = lossless(&Params::default());
    let (first, _) = pair.send();
    pair.pass(&first);
    // The reply does not come back. A packet at the deadline, 8 us after the first, is an ordinary one.
    pair.near.advance(Time::from_us(7));
    assert_eq!(pair.send().1.ask, Ask::Nothing);
    let (tail, tag) = pair.send();
    assert_eq!((tail.port, tag.ask, tag.rerouted, tag.epoch), (first.port, Ask::Tail, false, 1));
    // By a path that is drawn, which may be the same.
    let (moved, tag) = pair.send();
    assert_eq!(
        (tag.ask, tag.rerouted, tag.epoch, tag.tail),
        (Ask::Nothing, true, 1, Tag::read(&tail.label.unwrap()).sent)
    );
    // However long it takes.
    pair.wait(1000);
    let (later, tag) = pair.send();
    assert_eq!((later.port, tag.rerouted, tag.epoch), (moved.port, true, 1));
    let (_, advice) = pair.pass(&tail);
    assert_eq!(kinds(&advice), [CLEAR]);
    pair.answer(&advice);
    let (next, tag) = pair.send();
    assert_eq!((next.port, tag.rerouted, tag.epoch, tag.ask), (moved.port, false, 2, Ask::Request));
}

/// Packets up to the TAIL and three behind it, by another path.
fn rerouted<F: fabric::axes::FlowControl>(pair: &mut Pair<F>) -> (Sent, Vec<Sent>) {
    let (first, _) = pair.send();
    pair.pass(&first);
    pair.wait(8);
    let (tail, tag) = pair.send();
    assert_eq!(tag.ask, Ask::Tail);
    (tail, (0..3).map(|_| pair.send().0).collect())
}

#[test]
fn packets_that_come_before_the_tail_wait_for_it_and_clear_follows_them() {
    let mut pair = lossless(&Params::default());
    let (tail, moved) = rerouted(&mut pair);
    let mut advice = Vec::new();
    for sent in &moved[..2] {
        let (data, said) = pair.pass(sent);
        assert_eq!(data, []);
        advice.extend(said);
    }
    // Nothing lets them go but the TAIL.
    pair.far.advance(Time::from_ms(100));
    assert!(pair.far.data().is_empty() && advice.is_empty());
    let (data, advice) = pair.pass(&tail);
    assert_eq!(data, [1000, 2000, 3000]);
    assert_eq!(kinds(&advice), [CLEAR]);
    // What comes later does not wait.
    assert_eq!(pair.pass(&moved[2]).0, [4000]);
    let counters = pair.far.switch_counters();
    let count = |name: &str| counters.iter().find(|counter| counter.name == name).unwrap().value;
    assert_eq!(
        ["conweave_reordered", "conweave_flushes", "conweave_early", "conweave_queues"].map(count),
        [2, 1, 0, 1]
    );
    assert_eq!(count("conweave_held"), 2 * 1062);
}

#[test]
fn where_packets_can_be_lost_a_timer_lets_a_queue_go_when_the_tail_should_have_come() {
    let mut pair = lossy(&Params::default());
    let (_, moved) = rerouted(&mut pair);
    // The first packet left its switch at 0 and came at 0, the TAIL left at 9 us: it is due then, and no longer expected 16 us later.
    assert_eq!(pair.pass(&moved[0]).0, []);
    pair.far.advance_to(Time::from_us(24));
    assert!(pair.far.data().is_empty());
    pair.far.advance_to(Time::from_us(26));
    assert_eq!(pair.far.data().iter().map(|sent| sent.packet.seq).collect::<Vec<_>>(), [2000]);
    assert_eq!(pair.pass(&moved[1]).0, [3000], "it is no longer waited for");
}

#[test]
fn a_silent_flow_that_goes_on_lets_its_queue_go_before_its_packets() {
    // A queue that would wait for much longer than a flow is silent.
    let ms = Time::from_ms(100);
    let mut pair = lossy(&Params { wait: ms, margin: ms, ..Params::default() });
    let (_, moved) = rerouted(&mut pair);
    // The TAIL is lost. What was sent after it waits.
    assert_eq!(pair.pass(&moved[0]).0, []);
    assert_eq!(pair.pass(&moved[1]).0, []);
    let seqs = moved.iter().map(|sent| sent.packet.seq).collect::<Vec<_>>();
    pair.wait(1000);
    let (next, tag) = pair.send();
    assert_eq!((tag.ask, tag.rerouted), (Ask::Request, false));
    let (data, _) = pair.pass(&next);
    assert_eq!(data, [&seqs[..2], &[next.packet.seq]].concat());
    // Nothing is left behind, and the next packet of the epoch passes.
    let (last, _) = pair.send();
    assert_eq!(pair.pass(&last).0, [last.packet.seq]);
}

#[test]
fn a_marked_packet_has_its_path_avoided_for_a_while() {
    let params = Params { avoid: Time::from_us(500), ..Params::default() };
    for avoided in [false, true] {
        let mut pair = lossless(&params);
        let (mut first, tag) = pair.send();
        first.packet.flags |= flag::MARKED;
        let (_, advice) = pair.pass(&first);
        assert_eq!(kinds(&advice), [NOTIFY, REPLY]);
        assert_eq!(advice[0].packet.seq, tag.route.0);
        if avoided {
            pair.answer(&advice[..1]);
        }
        // Many changes of path, for each of which the last switch says CLEAR. The first may find no other: both that are drawn are avoided.
        let mut taken = BTreeSet::new();
        for change in 0..25 {
            pair.wait(9);
            let (tail, tag) = pair.send();
            assert_eq!(tag.ask, Ask::Tail);
            let (_, advice) = pair.pass(&tail);
            pair.answer(&advice);
            let port = pair.send().0.port;
            if change > 3 {
                taken.insert(port);
            }
        }
        assert_eq!(taken.contains(&first.port), !avoided, "{taken:?}");
    }
}

#[test]
fn a_flow_within_one_switch_is_left_alone() {
    let Fabric { setup, hosts, leaves, .. } = leaf_spine(2, 2, 2);
    let mut bench = Fabric::bench(&setup, leaves[0], &Params::default());
    let flow = bench.flow(hosts[0].0, hosts[1].0, 0);
    bench.arrive(PortId(0), flow);
    bench.advance(Time::from_us(1));
    assert_eq!(bench.sent().iter().map(|sent| sent.port).collect::<Vec<_>>(), [PortId(1)]);
}
