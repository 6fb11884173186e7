use super::super::{plain_ack, plain_start};
use super::*;
use crate::testing;
use fabric::axes::congestion_control::Trim;
use fabric::axes::flow_control::NoFlowControl;
use fabric::bench::Builder;
use fabric::id::{NodeId, PortId};
use fabric::setup::FlowSpec;
use fabric::topology::{Graph, Kind};
use fabric::{Network, Outcome, Setup};

const LINE: Rate = Rate::from_gbps(100);
const MTU: u64 = 1062;

fn switch(params: Params) -> Switch {
    Switch { params, mtu: MTU, threshold: 2 * MTU, ports: vec![Port::default()], counts: Counts::default() }
}

/// A full packet at a port of 100 Gb/s, whose time for one is 84.96 ns.
fn packet(ns: u64, given: u64, queued: u64, own: u16) -> Arrival {
    Arrival { now: Time::from_ns(ns), rate: LINE, given, queued, own }
}

#[test]
fn only_the_first_congested_switch_notifies_the_sender() {
    let mut switch = switch(Params::default());
    assert_eq!(switch.take(0, packet(0, 3 * MTU, 2 * MTU, INC)), (DEC, true));
    assert_eq!(switch.take(0, packet(0, 4 * MTU, 3 * MTU, DEC)), (DEC, false), "another switch has");
    assert_eq!(switch.take(0, packet(0, 5 * MTU, 2 * MTU, LAST)), (LAST | DEC, true), "and it leaves no token");
    assert_eq!(switch.ports[0].tokens, 0);
    assert_eq!(switch.take(0, packet(0, 6 * MTU, 2 * MTU - 1, 0)), (0, false), "a byte below the threshold");
    assert_eq!(switch.counts, Counts { notified: 2, ..Counts::default() });
}

#[test]
fn a_packet_of_a_last_window_is_the_right_of_one_other_packet() {
    let mut switch = switch(Params { pru_tokens: 2, ..Params::default() });
    // Everything comes at once, so that no bandwidth is spare.
    (1..=3).for_each(|n| assert_eq!(switch.take(0, packet(0, n * MTU, 0, LAST)), (LAST, false)));
    assert_eq!(switch.ports[0].tokens, 2, "no more than a port keeps");
    let flags = [4, 5, 6].map(|n| switch.take(0, packet(0, n * MTU, 0, INC)).0);
    assert_eq!(flags, [INC, INC, 0]);
    assert_eq!(switch.counts, Counts { left: 2, ramped: 2, refused: 1, ..Counts::default() });
    let mut off = self::switch(Params { pru: false, ..Params::default() });
    off.take(0, packet(0, MTU, 0, LAST));
    assert_eq!(off.take(0, packet(0, 2 * MTU, 0, INC)).0, 0);
}

#[test]
fn bandwidth_that_was_not_used_is_a_token_once_it_makes_a_packet() {
    let mut switch = switch(Params::default());
    // A packet every 127.44 ns is two thirds of the link: a third of 1593 B, or half a packet, is spare each time.
    let flags: Vec<u16> = (1..=6)
        .map(|n| {
            let now = Time(127_440 * n);
            switch.take(0, Arrival { now, ..packet(0, n * MTU, 0, INC) }).0
        })
        .collect();
    assert_eq!(flags, [0, INC, 0, INC, 0, INC]);
    // However long nothing comes, one packet is all that is kept; what came at once is owed first.
    let late = |switch: &mut Switch, given| switch.take(0, packet(1_000_000, given, 0, INC)).0;
    assert_eq!((late(&mut switch, 7 * MTU), late(&mut switch, 8 * MTU)), (INC, 0));
    assert_eq!(switch.ports[0].spare, -(MTU as i128) * BYTE);
    let mut off = self::switch(Params { sm: false, ..Params::default() });
    assert_eq!(late(&mut off, MTU), 0);
}

#[test]
fn a_notification_leaves_by_the_port_of_the_sender_with_the_queue_that_the_packet_found() {
    let params = Params::default();
    let mut bench = Builder::switch(3, 0).marking(&params).build(NoFlowControl);
    let (here, there) = (PortId(0), PortId(2));
    bench.close(there);
    let flow = bench.flow(0, 2, 0);
    (0..4).for_each(|_| bench.arrive_as(here, flow, |packet| packet.flags |= INC));
    bench.advance(Time::from_us(1));
    let notices: Vec<_> =
        bench.sent().into_iter().filter(|sent| sent.packet.kind == fabric::packet::Kind::Notice).collect();
    // The third packet finds two, the fourth three.
    assert_eq!(notices.len(), 2);
    for (sent, before) in notices.iter().zip([2, 3]) {
        assert_eq!((sent.port, sent.packet.size, sent.packet.tag as u64), (here, 78, MTU));
        assert_eq!(sent.packet.seq & u32::MAX as u64, (before + 1) * MTU);
    }
    let flags: Vec<u16> =
        (0..4).filter_map(|_| bench.transmit(there)).map(|sent| sent.packet.flags & (INC | DEC)).collect();
    assert_eq!(flags, [0, 0, DEC, DEC]);
}

fn started(size: u64, window: u64) -> (Box<dyn CongestionControl>, Permit) {
    let mut cc = Params { max_window: Some(Bytes(250_000)), ..Params::default() }.build();
    let permit = cc.start(0, FlowStart { size, window, ..plain_start() });
    (cc, permit)
}
fn ack(us: u64, seq: u64, next: u64, own: u16) -> Ack<'static> {
    Ack { seq, next, own, stamp: Time::from_us(us - 10), ..plain_ack(Time::from_us(us)) }
}
/// A notification that took 4 us, of a queue of so many packets before the one that it is about.
fn notice(ns: u64, packets: u64) -> Notice {
    let (now, queued) = (Time::from_ns(ns), ((packets + 1) * MTU) as u32);
    Notice { now, stamp: Time::from_ns(ns - 4000), queued, rate: LINE, word: MTU as u16 }
}

/// The window of a packet or more that a permit stands for.
fn window(permit: &Permit) -> u64 {
    permit.window - 1 + 1000
}

#[test]
fn the_window_begins_with_a_bdp_and_grows_by_a_packet_in_a_round_trip_and_one_for_every_token() {
    let (mut cc, mut permit) = started(1_000_000, 125_000);
    assert_eq!((window(&permit), permit.own, permit.rate), (125_000, 0, LINE));
    cc.ack(0, &ack(10, 1000, 126_000, 0), &mut permit);
    assert_eq!((window(&permit), permit.own), (126_000, INC), "one for the round trip");
    cc.ack(0, &ack(11, 2000, 127_000, INC), &mut permit);
    assert_eq!(window(&permit), 127_000, "one for the token");
    cc.ack(0, &ack(12, 125_999, 250_000, 0), &mut permit);
    assert_eq!(window(&permit), 127_000);
    cc.ack(0, &ack(20, 126_000, 253_000, INC), &mut permit);
    assert_eq!(window(&permit), 129_000, "and both");
    (0..500).for_each(|_| cc.ack(0, &ack(21, 127_000, 254_000, INC), &mut permit));
    assert_eq!(window(&permit), 250_000, "the most");
    // Unless it is written, the most is the window that the flow begins with.
    let mut auto = Params::default().build();
    let mut permit = auto.start(0, FlowStart { window: 125_000, ..plain_start() });
    (0..10).for_each(|_| auto.ack(0, &ack(21, 127_000, 254_000, INC), &mut permit));
    assert_eq!(window(&permit), 125_000);
    // Without a window of the scenario's, line rate times base round trip.
    assert_eq!(window(&started(1_000_000, 0).1), 125_000);
}

#[test]
fn packets_of_the_first_window_carry_no_flag_those_of_the_last_carry_last_and_others_ask() {
    let (mut cc, mut permit) = started(300_000, 100_000);
    assert_eq!(permit.own, 0);
    cc.notice(0, &notice(4000, 40), &mut permit);
    assert_eq!(permit.own, 0, "no ACK has come back yet");
    cc.ack(0, &ack(10, 1000, 101_000, 0), &mut permit);
    assert_eq!((window(&permit), permit.own), (100_000, INC));
    cc.ack(0, &ack(11, 2000, 199_000, 0), &mut permit);
    assert_eq!(permit.own, INC);
    cc.ack(0, &ack(12, 3000, 200_000, 0), &mut permit);
    assert_eq!(permit.own, LAST, "100 kB are left");
    cc.notice(0, &notice(13_000, 40), &mut permit);
    assert_eq!((window(&permit), permit.own), (99_000, INC), "and the window is 99 kB");
}

#[test]
fn a_flow_takes_its_share_of_the_queue_off_its_window_in_the_time_that_a_notification_takes() {
    // At half of the port's rate (62.5 kB in 10 us), 16 packets queued are 8 of the flow's: one every 4 us / 8.
    let (mut cc, mut permit) = started(1_000_000, 61_500);
    cc.ack(0, &ack(10, 1000, 62_500, 0), &mut permit);
    assert_eq!(window(&permit), 62_500);
    cc.notice(0, &notice(20_000, 16), &mut permit);
    assert_eq!(window(&permit), 61_500);
    cc.notice(0, &notice(20_499, 16), &mut permit);
    assert_eq!(window(&permit), 61_500, "too soon");
    // The window has shrunk by a packet, and the share with it: 4 us / (8 × 61.5 / 62.5) = 508.1 ns.
    cc.notice(0, &notice(20_508, 16), &mut permit);
    assert_eq!(window(&permit), 61_500, "too soon");
    cc.notice(0, &notice(20_509, 16), &mut permit);
    assert_eq!(window(&permit), 60_500);
    // Before the first ACK the flow counts as one at line rate: 4 us / 16.
    let (mut cc, mut permit) = started(1_000_000, 125_000);
    cc.notice(0, &notice(4000, 16), &mut permit);
    cc.notice(0, &notice(4249, 16), &mut permit);
    assert_eq!(window(&permit), 124_000);
    cc.notice(0, &notice(4250, 16), &mut permit);
    assert_eq!(window(&permit), 123_000);
}

#[test]
fn a_window_below_a_packet_is_halved_by_each_notification_and_paced() {
    let (mut cc, mut permit) = started(1_000_000, 1000);
    cc.notice(0, &notice(4000, 16), &mut permit);
    assert_eq!((permit.window, permit.rate), (1, LINE), "how long to wait is not known before an ACK");
    cc.ack(0, &Ack { seq: 0, ..ack(10, 0, 1000, 0) }, &mut permit);
    assert_eq!((permit.window, permit.rate), (501, LINE), "a packet and a half are one in flight");
    [1000, 500, 250].iter().zip(0..).for_each(|(_, n)| cc.notice(0, &notice(20_000 + n, 2000), &mut permit));
    // Off by a packet, then halved twice: an eighth of a packet in 10 us is a packet of 1062 B in 80 us.
    assert_eq!((permit.window, permit.rate), (1, Rate(106_200_000)));
    assert!(permit.repace);
    (0..20).for_each(|_| cc.notice(0, &notice(30_000, 2000), &mut permit));
    assert_eq!((permit.window, permit.rate), (1, Rate(8_496_000)), "a hundredth of a packet");
}

#[test]
fn losses_halve_the_window_once_in_a_round_trip() {
    let (mut cc, mut permit) = started(1_000_000, 99_000);
    cc.ack(0, &ack(10, 1000, 100_000, 0), &mut permit);
    for (us, left) in [(12, 50_000), (13, 50_000), (21, 50_000), (22, 25_000)] {
        cc.incident(0, Time::from_us(us), Incident::Lost, &mut permit);
        assert_eq!(window(&permit), left, "at {us} us");
    }
    cc.incident(0, Time::from_us(90), Incident::Trimmed(Trim::default()), &mut permit);
    assert_eq!(window(&permit), 25_000);
}

/// Senders 1 us from a switch, and a receiver 5 us behind it: a base round trip of 12 us, a BDP of 150 kB.
fn run(params: &dyn CongestionControlDef, flows: &[(u64, Time)]) -> Outcome {
    let mut graph = Graph::default();
    let (line, us) = (LINE, Time::from_us);
    let receiver = graph.add(Kind::Host, 0, "r");
    let senders: Vec<NodeId> = (0..flows.len()).map(|i| graph.add(Kind::Host, 0, format!("s{i}"))).collect();
    let switch = graph.add(Kind::Switch, 1, "switch");
    graph.connect(receiver, switch, line, us(5));
    senders.iter().for_each(|&sender| graph.connect(sender, switch, line, us(1)));
    let flow = |(i, (&(size, start), &sender)): (u16, (&(u64, Time), &NodeId))| FlowSpec {
        base_rtt: us(12),
        window: 150_000,
        ..FlowSpec::plain(i, sender.0, receiver.0, size, start)
    };
    let mut setup = Setup::plain(graph, (0..).zip(flows.iter().zip(&senders)).map(flow).collect());
    setup.switch.pool.fill(None);
    let transport = crate::transport::go_back_n::GoBackN::default();
    let outcome =
        testing::chosen(params, &transport, |chosen| Network::new(setup, NoFlowControl, chosen).run(|_, _| true));
    assert_eq!(outcome.violations, Vec::<String>::new());
    assert!(outcome.complete(), "{:?}", outcome.stall);
    outcome
}

fn count(outcome: &Outcome, name: &str) -> u64 {
    let all = outcome.switches.iter().chain(&outcome.congestion_control);
    all.filter(|counter| counter.name == name).map(|counter| counter.value).sum()
}

#[test]
fn a_flow_alone_is_never_notified_and_takes_no_longer_than_without_control() {
    let flows = [(2_000_000, Time::ZERO)];
    let (alone, free) = (run(&Params::default(), &flows), run(&super::super::None::default(), &flows));
    assert_eq!(count(&alone, "bolt_src_sent"), 0);
    assert_eq!(alone.flows[0].received, free.flows[0].received);
}

#[test]
fn senders_hear_of_an_incast_before_their_first_window_is_out() {
    let flows = [(1_000_000, Time::ZERO); 16];
    let peak = |outcome: &Outcome| outcome.peak.iter().max().copied().unwrap_or(0);
    let (seen, window) = (run(&Params::default(), &flows), run(&super::super::None::default(), &flows));
    // A window of 150 packets alone: all of them, but for what leaves in the round trip that it takes to send them.
    assert!(peak(&window) > 15 * 150 * MTU, "{}", peak(&window));
    // The first notification is there after 2 us and a packet's time, with 25 packets out. From then on each packet sent is one more
    // out and each notification one less allowed: they meet at 87. Of 16 times 87, 87 leave meanwhile.
    let expected = (15 * 87 * MTU) as f64;
    assert!((peak(&seen) as f64 / expected - 1.0).abs() < 0.05, "{} {expected}", peak(&seen));
    // The link is busy all the same: 16000 packets of 84.96 ns, and a flow's share is fair.
    let received = |outcome: &Outcome| outcome.flows.iter().map(|flow| flow.received.us_f64()).collect::<Vec<_>>();
    let (first, last) = received(&seen).iter().fold((f64::MAX, 0.0f64), |(a, b), &us| (a.min(us), b.max(us)));
    assert!(last < 1.05 * 16_000.0 * 0.08496, "{last}");
    assert!(first > 0.8 * last, "{first} {last}");
}

#[test]
fn flows_that_share_a_nic_alone_are_neither_notified_nor_refused() {
    // Eight flows of one host to eight others: each has an eighth of the host's link, and switches have bandwidth to spare. That the NIC has
    // none is heard by nobody (docs/schemes.md).
    let mut graph = Graph::default();
    let hosts: Vec<_> = (0..9).map(|i| graph.add(Kind::Host, 0, format!("h{i}"))).collect();
    let switch = graph.add(Kind::Switch, 1, "switch");
    hosts.iter().for_each(|&host| graph.connect(host, switch, LINE, Time::from_us(1)));
    let flow = |i: u16| FlowSpec {
        base_rtt: Time::from_us(4),
        window: 50_000,
        ..FlowSpec::plain(i, hosts[0].0, hosts[i as usize + 1].0, 500_000, Time::ZERO)
    };
    let setup = Setup::plain(graph, (0..8).map(flow).collect());
    let outcome = testing::run_with(setup, NoFlowControl, &Params::default());
    assert!(outcome.complete() && outcome.violations.is_empty());
    let none = ["bolt_src_sent", "bolt_steps_down", "bolt_inc_refused"];
    assert_eq!(none.map(|name| count(&outcome, name)), [0; 3]);
    assert!(count(&outcome, "bolt_raises") > 0);
}

#[test]
fn what_flows_leave_is_taken_by_another_at_once_with_tokens_and_slowly_without() {
    // Ten share the link; nine of them end after about 280 us, and the tenth has most of its 3 MB to go.
    let flows: Vec<(u64, Time)> = (0..10).map(|i| (if i == 0 { 3_000_000 } else { 300_000 }, Time::ZERO)).collect();
    let took = |pru, sm| run(&Params { pru, sm, ..Params::default() }, &flows).flows[0].received.us_f64();
    let (both, pru, sm, neither) = (took(true, true), took(true, false), took(false, true), took(false, false));
    // A link that is never idle carries the 5700 packets in 484 us.
    assert!(both < 1.15 * 484.0, "{both}");
    assert!(both < pru.min(sm) && pru.max(sm) < 0.7 * neither, "{both} {pru} {sm} {neither}");
}

#[test]
fn the_counters_of_both_halves_tell_what_happened() {
    let seen = run(&Params::default(), &[(1_000_000, Time::ZERO); 4]);
    let all = ["bolt_src_sent", "bolt_steps_down", "bolt_pru_left", "bolt_inc_refused"];
    all.iter().for_each(|name| assert!(count(&seen, name) > 0, "{name}"));
    // One switch: whatever it grants comes back, and whatever it sends arrives.
    assert_eq!(count(&seen, "bolt_raises"), count(&seen, "bolt_pru_taken") + count(&seen, "bolt_sm_taken"));
    // Where no switch notifies, no window shrinks, and all that the windows allow waits at the port.
    let deaf = run(&Params { threshold: Some(Bytes(1 << 40)), ..Params::default() }, &[(1_000_000, Time::ZERO); 4]);
    let down = ["bolt_src_sent", "bolt_steps_down", "bolt_cuts"];
    assert_eq!(down.map(|name| count(&deaf, name)), [0; 3]);
    let peak = |outcome: &Outcome| outcome.peak.iter().max().copied().unwrap_or(0) as f64;
    assert!(peak(&deaf) > 1.5 * peak(&seen), "{} {}", peak(&deaf), peak(&seen));
}

#[test]
fn a_notification_longer_than_any_frame_is_refused() {
    let sized = |bytes| Params { packet: Bytes(bytes), ..Params::default() }.check();
    assert!(sized(2048).is_ok());
    let misfit = sized(2049).expect_err("no switch can send it");
    assert!(format!("{misfit:?}").contains("2048B"), "{misfit:?}");
}
