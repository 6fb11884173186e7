use super::*;
use fabric::bench::{Bench, Builder, Timer};
use fabric::message::{Message, Packer, Unpacker};
use fabric::setup::FlowSpec;
use std::collections::hash_map::Entry;

/// `senders` hosts at one switch, `receivers` at another, and between them a wire that is never a bottleneck: a base round trip of 10 us.
fn dumbbell(senders: u32, receivers: u32) -> Graph {
    let mut graph = Graph::default();
    let hosts = senders + receivers;
    (0..hosts).for_each(|i| _ = graph.add(Kind::Host, 0, format!("h{i}")));
    let (left, right) = (graph.add(Kind::Switch, 1, "left"), graph.add(Kind::Switch, 1, "right"));
    for host in 0..hosts {
        let switch = if host < senders { left } else { right };
        graph.connect(NodeId(host), switch, Rate::from_gbps(100), Time::from_us(1));
    }
    graph.connect(left, right, Rate::from_gbps(6400), Time::from_us(3));
    graph
}

fn flow(index: u16, src: u32, dst: u32, size: u64, start: Time) -> FlowSpec {
    FlowSpec { base_rtt: Time::from_us(10), ..FlowSpec::plain(index, src, dst, size, start) }
}

/// Each sender has a message for the one receiver; they start `gap` apart.
fn incast(senders: u16, size: u64, gap: Time) -> Setup {
    let flows = (0..senders).map(|i| flow(i, i as u32, senders as u32, size, Time(gap.0 * i as u64)));
    let mut setup = Setup::plain(dumbbell(senders as u32, 1), flows.collect());
    setup.switch.pool.fill(None);
    setup
}

fn params(change: impl Fn(&mut Params)) -> Params {
    let mut params = Params { pfc: false, ..Params::default() };
    change(&mut params);
    assert_eq!(params.check(), Ok(()));
    params
}

struct Seen {
    outcome: Outcome,
    counters: HashMap<&'static str, u64>,
}

fn run(setup: Setup, params: &Params) -> Seen {
    assert!(!params.pfc);
    let scheme = Sfc::new(params, &setup);
    let outcome = crate::testing::run(setup, scheme);
    assert_eq!(outcome.violations, Vec::<String>::new());
    assert!(outcome.complete(), "{:?}", outcome.stall);
    let counters = counters(&outcome);
    Seen { outcome, counters }
}

fn counters(outcome: &Outcome) -> HashMap<&'static str, u64> {
    outcome.flow_control.iter().map(|counter| (counter.name, counter.value)).collect()
}

impl Seen {
    /// The most that the receivers' switch ever held.
    fn peak(&self) -> u64 {
        self.outcome.peak.last().copied().unwrap_or(0)
    }
    fn sent(&self) -> u64 {
        ["bts_from_queue", "bts_from_cache", "bts_from_estimator"].iter().map(|name| self.counters[name]).sum()
    }
    fn last_received(&self) -> Time {
        self.outcome.flows.iter().map(|flow| flow.received).max().unwrap_or_default()
    }
}

#[test]
fn the_pause_is_what_the_queue_needs_to_drain_to_its_target() {
    let rate = Rate::from_gbps(100);
    assert_eq!(drain(250_000, 125_000, rate), 10);
    assert_eq!(drain(262_499, 125_000, rate), 10, "rounded down");
    assert_eq!(drain(262_500, 125_000, rate), 11);
    assert_eq!(drain(100_000, 125_000, rate), 0);
    assert_eq!(drain(u64::MAX, 0, Rate(1)), u32::MAX);
    let bts = Bts { us: 123_456, cacheable: true, frame: false, from: NodeId(7) };
    assert_eq!(bts.pause(), Time::from_us(123_456));
    for bts in [bts.clone(), Bts { frame: true, ..bts }] {
        assert_eq!(Unpacker::read::<Bts>(Packer::of(bts.clone()).0, None), bts);
    }
    const { assert!(Bts::BITS <= 64) };
}

/// SFC alone at a node of a bench, with a base round trip of 10 us: a target of 125 KB and a trigger of 250 KB.
fn bench(builder: Builder<'_>) -> Bench<Sfc> {
    let builder = builder.setup(|s| s.flows.iter_mut().for_each(|flow| flow.base_rtt = Time::from_us(10)));
    builder.build_with(|setup| Sfc::new(&params(|_| {}), setup))
}

/// What the signals that were sent say, and by which port and for which flow.
fn said(bench: &mut Bench<Sfc>) -> Vec<(PortId, FlowId, u32)> {
    bench.signals().into_iter().map(|(port, signal)| (port, signal.flow, signal.message.us)).collect()
}

#[test]
fn a_packet_into_a_deep_queue_is_answered_with_the_time_that_the_queue_takes_to_its_target() {
    let mut bench = bench(Builder::switch(3, 0));
    let (sender, receiver, flow) = (PortId(0), PortId(2), bench.flow(0, 2, 0));
    bench.close(receiver);
    // Packet 237 finds 236 · 1062 = 250 632 bytes: more than the trigger, and 10.05 us more than the target.
    (0..236).for_each(|_| bench.arrive(sender, flow));
    assert_eq!(said(&mut bench), []);
    bench.arrive(sender, flow);
    let (port, signal) = bench.signals().remove(0);
    assert_eq!((port, signal.flow, signal.tuple), (sender, flow, bench.view().flow(flow).tuple.reversed()));
    assert_eq!(signal.message, Bts { us: 10, cacheable: true, frame: false, from: bench.view().node() });
    // A flow is notified once. Packet 239 finds 10.22 us too many, packet 250 finds 11.15.
    bench.arrive(sender, flow);
    assert_eq!(said(&mut bench), []);
    let (other, third) = (bench.flow(1, 2, 0), bench.flow(1, 2, 1));
    bench.arrive(PortId(1), other);
    assert_eq!(said(&mut bench), [(PortId(1), other, 10)]);
    (0..10).for_each(|_| bench.arrive(PortId(1), other));
    bench.arrive(PortId(1), third);
    // Its signal waits for the one before it to be sent.
    bench.advance(Time::from_us(1));
    assert_eq!(said(&mut bench), [(PortId(1), third, 11)]);
    // The filter forgets after half a round trip.
    bench.advance(Time::from_us(5));
    bench.arrive(sender, flow);
    assert_eq!(said(&mut bench), [(sender, flow, 11)]);
}

#[test]
fn a_flow_sends_nothing_for_as_long_as_a_signal_says_and_then_goes_on() {
    let mut bench = bench(Builder::host(1));
    let (port, flow, other) = (PortId(0), bench.flow(0, 1, 0), bench.flow(0, 1, 1));
    bench.close(port);
    [flow, other].into_iter().for_each(|flow| bench.start(flow, 100_000));
    bench.signal(port, flow, Bts { us: 10, cacheable: true, frame: false, from: NodeId(2) });
    assert_eq!(bench.held_flows(), [flow]);
    assert_eq!(bench.timers(), [(Time::from_us(10), Timer::Flow(flow))]);
    (0..3).for_each(|_| assert_eq!(bench.transmit(port).unwrap().packet.flow, other.0));
    bench.advance_to(Time::from_us(10) - Time(1));
    assert_eq!(bench.held_flows(), [flow]);
    bench.advance(Time(1));
    assert_eq!(bench.held_flows(), []);
    assert_eq!(bench.transmit(port).unwrap().packet.flow, flow.0);
}

#[test]
fn a_switch_remembers_a_pause_that_it_passes_on_for_as_long_as_it_lasts() {
    // Host 0 at port 0, host 1 behind a switch at port 1.
    let mut bench = bench(Builder::switch(1, 1));
    let (near, away) = (PortId(0), PortId(1));
    let [flow, later, last] = [0, 1, 2].map(|nth| bench.flow(0, 1, nth));
    bench.signal(away, flow, Bts { us: 10, cacheable: true, frame: false, from: NodeId(9) });
    assert_eq!(said(&mut bench), [(near, flow, 10)]);
    bench.advance(Time::from_us(4));
    bench.arrive(near, later);
    assert_eq!(said(&mut bench), [(near, later, 6)]);
    bench.advance(Time::from_us(6));
    bench.arrive(near, last);
    assert_eq!(said(&mut bench), []);
}

#[test]
fn only_a_queue_deeper_than_the_trigger_makes_anybody_wait() {
    // Two senders leave half of what they send in the queue.
    let setup = || incast(2, 400_000, Time::ZERO);
    let alone = run(setup(), &params(|p| p.trigger = Some(Bytes(1_000_000))));
    let depth = alone.peak();
    assert_eq!((alone.sent(), alone.counters["sender_pauses"]), (0, 0));
    // The packet that makes the queue deepest has seen less than that.
    let edge = run(setup(), &params(|p| (p.trigger, p.target) = (Some(Bytes(depth - 1062)), Some(Bytes(0)))));
    assert_eq!(edge.sent(), 0);
    let over = run(setup(), &params(|p| (p.trigger, p.target) = (Some(Bytes(depth - 2 * 1062)), Some(Bytes(0)))));
    assert!(over.counters["bts_from_queue"] > 0);
    // Two BDP is 250 KB: deeper than what one sender can leave.
    assert_eq!(run(incast(1, 4_000_000, Time::ZERO), &params(|_| {})).sent(), 0);
}

#[test]
fn an_incast_is_held_near_what_the_feedback_loop_lets_through() {
    let bare = run(incast(16, 1_000_000, Time::ZERO), &params(|p| p.trigger = Some(Bytes(1 << 40))));
    let sfc = run(incast(16, 1_000_000, Time::ZERO), &params(|_| {}));
    assert!(bare.peak() > 14_000_000);
    // N·R·T_F (appendix C.2), T_F being 8 us, and the trigger.
    let bound = 16 * 100_000 + 250_000;
    assert!(sfc.peak() < bound * 5 / 4, "{}", sfc.peak());
    assert!(sfc.counters["bts_suppressed"] > sfc.sent());
    assert!(sfc.counters["sender_paused_us"] > 1_000);
    // What each flow was held, but for a pause that its last byte's acknowledgement ends.
    let held: u64 = sfc.outcome.flows.iter().map(|flow| flow.held.0).sum();
    assert!(held / 1_000_000 <= sfc.counters["sender_paused_us"]);
    assert!(held > sfc.counters["sender_paused_us"] * 900_000, "{held}");
    assert!(bare.outcome.flows.iter().all(|flow| flow.held == Time::ZERO));
}

#[test]
fn a_congested_link_stays_busy_while_its_senders_wait() {
    // §3.3: a target of T_F·R or more lets new packets arrive before the last old one has left.
    for senders in [2, 8] {
        let seen = run(incast(senders, 4_000_000, Time::ZERO), &params(|p| p.cache = false));
        assert!(seen.sent() > 0);
        let bytes = senders as u64 * 4_000 * 1062;
        let least = Rate::from_gbps(100).time_for(bytes) + Time::from_us(5);
        let utilisation = least.0 as f64 / seen.last_received().0 as f64;
        assert!(utilisation > 0.99, "{senders} senders: {utilisation}");
    }
}

#[test]
fn the_least_target_that_the_paper_allows_keeps_the_link_busy_and_a_smaller_one_does_not() {
    // T_F: 4 us to the congested switch and back, and a packet's time. §3.3 asks for a target of T_F·R.
    let rate = Rate::from_gbps(100);
    let target = rate.bytes_in(Time::from_us(8) + Time(2 * 1062 * 80));
    let busy = |senders: u16, cache: bool, target: u64| {
        let trigger = Some(Bytes(2 * target.max(4_000)));
        let seen = run(
            incast(senders, 4_000_000, Time::ZERO),
            &params(|p| (p.cache, p.trigger, p.target) = (cache, trigger, Some(Bytes(target)))),
        );
        assert!(seen.counters["sender_pauses"] > 0);
        let least = rate.time_for(senders as u64 * 4_000 * 1062) + Time::from_us(5);
        least.0 as f64 / seen.last_received().0 as f64
    };
    for senders in [2, 3, 16] {
        for cache in [false, true] {
            let utilisation = busy(senders, cache, target);
            assert!(utilisation >= 0.99, "{senders} senders, cache {cache}: {utilisation}");
        }
    }
    // Two senders that wait until nothing is left start again too late.
    let utilisation = busy(2, false, 0);
    assert!(utilisation < 0.97, "{utilisation}");
}

#[test]
fn a_flow_is_notified_at_most_once_in_half_a_round_trip() {
    let seen = run(incast(8, 500_000, Time::ZERO), &params(|p| p.cache = false));
    let resets = seen.outcome.end.0.div_ceil(Time::from_us(5).0);
    assert!(seen.sent() <= 8 * resets && seen.sent() > 8);
    let often = run(incast(8, 500_000, Time::ZERO), &params(|p| (p.cache, p.reset) = (false, Some(LEAST))));
    assert!(often.sent() > 2 * seen.sent());
    assert_eq!(seen.counters["filter_peak"], 8);
}

#[test]
fn a_tor_that_forwarded_a_pause_answers_later_senders_itself() {
    let setup = || incast(32, 500_000, Time::from_us(2));
    let without = run(setup(), &params(|p| p.cache = false));
    let with = run(setup(), &params(|_| {}));
    assert_eq!((without.counters["bts_from_cache"], without.counters["cache_peak"]), (0, 0));
    assert!(with.counters["bts_from_cache"] > 0 && with.counters["cache_hits"] > 0);
    assert_eq!(with.counters["cache_peak"], 1, "one congested host");
    assert!(with.peak() < without.peak(), "{} against {}", with.peak(), without.peak());
}

#[test]
fn only_pauses_for_a_queue_before_a_host_are_remembered() {
    // The wire between the switches is what is congested, and it faces no host.
    let flows = (0..8).map(|i| flow(i, i as u32, 8 + i as u32, 500_000, Time::ZERO)).collect();
    let mut graph = dumbbell(8, 8);
    graph.links.last_mut().unwrap().rates = [Rate::from_gbps(100); 2];
    let mut setup = Setup::plain(graph, flows);
    setup.switch.pool.fill(None);
    let seen = run(setup, &params(|_| {}));
    assert!(seen.counters["bts_from_queue"] > 0);
    assert_eq!((seen.counters["bts_cached"], seen.counters["bts_from_cache"]), (0, 0));
}

#[test]
fn switches_without_hosts_take_part_only_if_all_do() {
    // The middle one of three switches in a row has the slow link.
    let mut graph = Graph::default();
    (0..8).for_each(|i| _ = graph.add(Kind::Host, 0, format!("h{i}")));
    let s: Vec<NodeId> = (0..3).map(|i| graph.add(Kind::Switch, 1, format!("s{i}"))).collect();
    (0..4).for_each(|h| graph.connect(NodeId(h), NodeId(s[0].0), Rate::from_gbps(100), Time::from_us(1)));
    (4..8).for_each(|h| graph.connect(NodeId(h), NodeId(s[2].0), Rate::from_gbps(100), Time::from_us(1)));
    graph.connect(NodeId(s[0].0), NodeId(s[1].0), Rate::from_gbps(400), Time::from_us(1));
    graph.connect(NodeId(s[1].0), NodeId(s[2].0), Rate::from_gbps(100), Time::from_us(1));
    let flows = (0..4).map(|i| flow(i, i as u32, 4 + i as u32, 1_000_000, Time::ZERO)).collect();
    let mut setup = Setup::plain(graph, flows);
    setup.switch.pool.fill(None);
    assert_eq!(run(setup.clone(), &params(|_| {})).sent(), 0);
    assert!(run(setup, &params(|p| p.at = Place::All)).sent() > 0);
}

#[test]
fn an_estimate_at_the_senders_switch_comes_before_the_queue_is_deep() {
    let setup = || incast(32, 500_000, Time::ZERO);
    let without = run(setup(), &params(|_| {}));
    let with = run(setup(), &params(|p| p.estimator = true));
    assert_eq!(without.counters["bts_from_estimator"], 0);
    assert!(with.counters["bts_from_estimator"] > 0);
    assert!(with.peak() < without.peak() * 2 / 3, "{} against {}", with.peak(), without.peak());
    // One sender never makes more than its link carries.
    assert_eq!(run(incast(1, 4_000_000, Time::ZERO), &params(|p| p.estimator = true)).sent(), 0);
}

#[test]
fn senders_that_are_notified_after_queueing_hear_too_late() {
    let setup = || incast(32, 1_000_000, Time::from_us(1));
    let ingress = run(setup(), &params(|p| p.cache = false));
    let egress = run(setup(), &params(|p| (p.cache, p.signal) = (false, Signal::Egress)));
    assert_eq!(egress.counters["bts_suppressed"], 0, "every packet notifies");
    assert!(egress.peak() > ingress.peak() * 3 / 2, "{} against {}", egress.peak(), ingress.peak());
}

#[test]
fn a_pause_frame_stops_the_whole_class_of_a_nic_and_a_bts_only_its_flow() {
    // Seven senders crowd one receiver; the first has a message for the other one, too.
    let run_with = |deliver: Deliver| {
        let mut flows: Vec<FlowSpec> = (0..8).map(|i| flow(i, i as u32, 8, 1_000_000, Time::ZERO)).collect();
        flows.push(flow(8, 0, 9, 1_000_000, Time::from_us(20)));
        // It starts while its NIC is stopped.
        flows.push(flow(9, 0, 9, 1_000, Time::from_us(40)));
        let mut setup = Setup::plain(dumbbell(8, 2), flows);
        setup.switch.pool.fill(None);
        run(setup, &params(|p| p.deliver = deliver))
    };
    let (bts, pfc) = (run_with(Deliver::Bts), run_with(Deliver::Pfc));
    assert!(bts.outcome.flows[8].received < Time::from_us(200), "{:?}", bts.outcome.flows[8]);
    assert!(pfc.outcome.flows[8].received > Time::from_us(300), "{:?}", pfc.outcome.flows[8]);
    assert!(pfc.outcome.flows[9].received > bts.outcome.flows[9].received);
    // Both keep the queue down.
    assert!(pfc.peak() < 1_500_000, "{}", pfc.peak());
}

/// SFC whose senders hear only the first signal for each flow; all others are lost.
#[derive(Clone)]
struct Deaf(Sfc);

struct DeafNode {
    sfc: Node,
    /// The pause that each flow of this host heard of.
    heard: HashMap<FlowId, u64>,
    lost: u64,
}

impl FlowControl for Deaf {
    type Node = DeafNode;
    type Frame = ();
    type Signal = Bts;

    fn node(&self, site: &Site<'_>) -> DeafNode {
        DeafNode { sfc: self.0.node(site), heard: HashMap::new(), lost: 0 }
    }
    fn queue(&self, node: &mut DeafNode, at: &mut NodeView<'_>, visit: &Visit) -> QueueId {
        self.0.queue(&mut node.sfc, at, visit)
    }
    fn passing(
        &self,
        node: &mut DeafNode,
        at: &mut NodeView<'_>,
        in_port: PortId,
        out_port: PortId,
        signal: &mut flow_control::Signal<Bts>,
    ) {
        self.0.passing(&mut node.sfc, at, in_port, out_port, signal);
    }
    fn signal(&self, node: &mut DeafNode, at: &mut NodeView<'_>, port: PortId, signal: flow_control::Signal<Bts>) {
        match node.heard.entry(signal.flow) {
            Entry::Occupied(_) => node.lost += 1,
            Entry::Vacant(first) => {
                first.insert(signal.message.us as u64);
                self.0.signal(&mut node.sfc, at, port, signal);
            }
        }
    }
    fn flow_timer(&self, node: &mut DeafNode, at: &mut NodeView<'_>, flow: FlowId) {
        self.0.flow_timer(&mut node.sfc, at, flow);
    }
    fn counters(&self, nodes: &[&DeafNode]) -> Vec<Counter> {
        let mut all = self.0.counters(&nodes.iter().map(|node| &node.sfc).collect::<Vec<_>>());
        all.push(sum("flows_heard", nodes, |node| node.heard.len() as u64));
        all.push(sum("us_heard", nodes, |node| node.heard.values().sum()));
        all.push(sum("signals_lost", nodes, |node| node.lost));
        all
    }
}

#[test]
fn a_flow_waits_as_long_as_it_was_notified_whatever_later_signals_are_lost() {
    let setup = incast(8, 1_000_000, Time::ZERO);
    let scheme = Deaf(Sfc::new(&params(|_| {}), &setup));
    let outcome = crate::testing::run(setup, scheme);
    assert!(outcome.complete() && outcome.violations.is_empty());
    let counters = counters(&outcome);
    assert!(counters["flows_heard"] == 8 && counters["signals_lost"] > 0);
    assert_eq!(counters["sender_paused_us"], counters["us_heard"]);
    assert_eq!((counters["sender_pauses"], counters["sender_pauses_replaced"]), (8, 0));
}

/// SFC whose signals lie about for a while at the sender's host, each for a time of its own, so that they overtake
/// each other.
#[derive(Clone)]
struct Late(Sfc);

struct LateNode {
    sfc: Node,
    /// When each signal is heard.
    waiting: Vec<(Time, flow_control::Signal<Bts>)>,
    /// By flow: when the last pause it heard of is over, whichever was the longest.
    over: HashMap<FlowId, Time>,
    stated: u64,
    stalled: u64,
}

impl FlowControl for Late {
    type Node = LateNode;
    type Frame = ();
    type Signal = Bts;

    fn node(&self, site: &Site<'_>) -> LateNode {
        LateNode { sfc: self.0.node(site), waiting: Vec::new(), over: HashMap::new(), stated: 0, stalled: 0 }
    }
    fn timers(&self, _: u8) -> u32 {
        1
    }
    fn queue(&self, node: &mut LateNode, at: &mut NodeView<'_>, visit: &Visit) -> QueueId {
        self.0.queue(&mut node.sfc, at, visit)
    }
    fn passing(
        &self,
        node: &mut LateNode,
        at: &mut NodeView<'_>,
        in_port: PortId,
        out_port: PortId,
        signal: &mut flow_control::Signal<Bts>,
    ) {
        self.0.passing(&mut node.sfc, at, in_port, out_port, signal);
    }
    fn signal(&self, node: &mut LateNode, at: &mut NodeView<'_>, port: PortId, signal: flow_control::Signal<Bts>) {
        let heard = at.now() + Time::from_us(at.draw(200));
        at.set_timer(port, 0, heard);
        node.waiting.push((heard, signal));
    }
    fn timer(&self, node: &mut LateNode, at: &mut NodeView<'_>, port: PortId, _: u32) {
        let first =
            node.waiting.iter().position(|(heard, _)| *heard == at.now()).expect("the timer was set for a signal");
        let (_, signal) = node.waiting.remove(first);
        node.stated += signal.message.us as u64;
        let over = node.over.entry(signal.flow).or_default();
        *over = (*over).max(at.now() + signal.message.pause());
        self.0.signal(&mut node.sfc, at, port, signal);
    }
    fn flow_timer(&self, node: &mut LateNode, at: &mut NodeView<'_>, flow: FlowId) {
        self.0.flow_timer(&mut node.sfc, at, flow);
        // A flow whose pauses are all over must be free: nothing else holds it.
        let over = node.over.get(&flow).copied().unwrap_or_default();
        node.stalled += (over <= at.now() && node.sfc.flows.get(&flow).is_some_and(Pause::holds)) as u64;
    }
    fn counters(&self, nodes: &[&LateNode]) -> Vec<Counter> {
        let mut all = self.0.counters(&nodes.iter().map(|node| &node.sfc).collect::<Vec<_>>());
        all.push(sum("us_stated", nodes, |node| node.stated));
        all.push(sum("flows_stalled", nodes, |node| node.stalled));
        all
    }
}

#[test]
fn signals_that_are_late_hold_a_flow_no_longer_than_they_say() {
    let setup = incast(8, 1_000_000, Time::ZERO);
    let scheme = Late(Sfc::new(&params(|_| {}), &setup));
    let mut network = crate::testing::network(setup, scheme);
    let outcome = network.run(|_, _| true);
    assert!(outcome.complete() && outcome.violations.is_empty(), "{:?}", outcome.stall);
    let mut over = HashMap::new();
    for host in 0..8 {
        over.extend(network.node(NodeId(host)).over.clone());
    }
    let counters = counters(&outcome);
    assert!(over.len() == 8 && counters["sender_pauses"] > 8);
    assert_eq!(counters["flows_stalled"], 0);
    assert!(counters["sender_paused_us"] <= counters["us_stated"]);
    // No flow has sent its last packet later than what it heard, and its own time on the shared link, account for.
    let shared = Rate::from_gbps(100).time_for(8 * 1_000 * 1062);
    for (number, flow) in (0..).map(FlowId).zip(&outcome.flows) {
        assert!(flow.injected <= over[&number] + shared, "{number}");
    }
}

#[test]
fn links_that_lose_signals_hold_nobody_back_for_ever() {
    // Every link loses: data, ACKs and signals alike.
    for deliver in [Deliver::Bts, Deliver::Pfc] {
        let mut setup = incast(8, 500_000, Time::ZERO);
        setup.graph.links.iter_mut().for_each(|link| link.loss = 0.01);
        setup.nic.timeout = Some(Time::from_us(500));
        let seen = run(setup, &params(|p| p.deliver = deliver));
        let heard = seen.counters["sender_pauses"] + seen.counters["sender_pauses_replaced"];
        assert!(heard > 0 && heard < seen.sent(), "{heard} of {}", seen.sent());
    }
}

#[test]
fn with_pfc_underneath_nothing_is_lost_and_without_it_drops_are_repaired() {
    for deliver in [Deliver::Bts, Deliver::Pfc] {
        let mut setup = incast(8, 500_000, Time::ZERO);
        setup.switch.pool.fill(Some(400_000));
        setup.switch.resume_gap = 3_000;
        setup.nic.timeout = Some(Time::from_us(500));
        let dry = run(setup.clone(), &params(|p| p.deliver = deliver));
        assert!(dry.outcome.counts.dropped_full > 0);
        let share = fabric::buffer::Share { alpha: fabric::buffer::ALPHA_ONE / 8, headroom: 2_000_000 };
        setup.ports.iter_mut().for_each(|port| port.share = share);
        let params = params(|p| (p.pfc, p.deliver) = (true, deliver));
        let scheme = Over { upper: Sfc::new(&params, &setup), lower: Pfc::beneath(&setup.graph, true) };
        let outcome = crate::testing::run(setup, scheme);
        assert!(outcome.complete() && outcome.violations.is_empty(), "{:?}", outcome.violations);
        assert!(outcome.counts.pauses > 0);
    }
}

#[test]
fn parameters_that_cannot_be_are_refused() {
    let refused = |change: &dyn Fn(&mut Params)| {
        let mut params = Params::default();
        change(&mut params);
        params.check().unwrap_err().parameter
    };
    assert_eq!(refused(&|p| p.packet = Bytes(0)), "packet");
    assert_eq!(refused(&|p| p.hashes = 0), "hashes");
    assert_eq!(refused(&|p| p.filter = Bytes(0)), "filter");
    assert_eq!(refused(&|p| p.cache_entries = 0), "cache_entries");
    assert_eq!(refused(&|p| (p.trigger, p.target) = (Some(Bytes(1)), Some(Bytes(2)))), "target");
    assert_eq!(refused(&|p| p.rtt = Some(Time::ZERO)), "rtt");
    assert_eq!(refused(&|p| p.reset = Some(Time::ZERO)), "reset");
}
