use super::*;
use crate::testing::{incast, network, run};
use engine::Rate;
use fabric::bench::{Bench, Builder};
use fabric::id::NodeId;

const VC: ClassId = ClassId(0);
const SENDER: PortId = PortId(0);
const RECEIVER: PortId = PortId(2);

/// A switch with three hosts and so many credits of 128 B for each VC. A packet of 1062 B takes 9. Ports send when they are asked to.
fn bench_of(
    params: Params,
    change: impl FnOnce(&mut Cbfc),
    more: impl FnOnce(Builder<'static>) -> Builder<'static>,
) -> Bench<Cbfc> {
    let builder = more(Builder::switch(3, 0).memory(1_000_000, u32::MAX, 0));
    let mut bench = builder.build_with(|setup| {
        let mut scheme = Cbfc::new(&params, setup, true);
        change(&mut scheme);
        scheme
    });
    [SENDER, RECEIVER].into_iter().for_each(|port| bench.close(port));
    bench
}

fn bench(credits: u32) -> Bench<Cbfc> {
    bench_of(Params { credits: Some(credits), ..Params::default() }, |_| {}, |builder| builder)
}

fn fill(bench: &mut Bench<Cbfc>, packets: u32) {
    let flow = bench.flow(0, 2, 0);
    (0..packets).for_each(|_| bench.arrive(SENDER, flow));
}

/// Sequence numbers of the data that a port sends until it stops.
fn drain(bench: &mut Bench<Cbfc>, port: PortId) -> usize {
    std::iter::from_fn(|| bench.transmit(port)).filter(|sent| sent.packet.kind == fabric::packet::Kind::Data).count()
}

fn freed(packets: u32) -> Frame {
    Frame::Freed { vc: VC, freed: 9 * packets }
}

#[test]
fn a_packet_takes_whole_credits_with_its_overhead() {
    let sizes = |params: Params| Sizes::new(&params, &fabric_of(&incast(2, 1000)));
    let plain = sizes(Params::default());
    assert_eq!([1, 128, 129, 1062].map(|size| plain.cost(size)), [1, 1, 2, 9]);
    let more = sizes(Params { overhead: 90.0, ..Params::default() });
    assert_eq!([38, 39, 1062].map(|size| more.cost(size)), [1, 2, 9]);
    let less = sizes(Params { overhead: -16.0, ..Params::default() });
    assert_eq!([1, 16, 144, 145].map(|size| less.cost(size)), [1, 1, 1, 2]);
    // Credits follow cells: the largest power of two that fits into one.
    let mut setup = incast(2, 1000);
    setup.switch.cell = 200;
    assert_eq!(Sizes::new(&Params::default(), &fabric_of(&setup)).cost(257), 3);
    setup.switch.cell = 256;
    assert_eq!(Sizes::new(&Params::default(), &fabric_of(&setup)).cost(257), 2);
}

#[test]
fn a_sender_stops_when_the_next_packet_has_no_credits_and_goes_on_with_what_comes_back() {
    // Thirty credits are three packets and three credits.
    let mut bench = bench(30);
    fill(&mut bench, 8);
    assert_eq!(drain(&mut bench, RECEIVER), 3);
    assert_eq!(bench.paused_classes(RECEIVER), [VC]);
    // One is back: one goes.
    bench.frame(RECEIVER, freed(1));
    assert_eq!(bench.paused_classes(RECEIVER), []);
    assert_eq!(drain(&mut bench, RECEIVER), 1);
    // What is said again changes nothing, nor does a number from before.
    bench.frame(RECEIVER, freed(1));
    bench.frame(RECEIVER, freed(0));
    assert_eq!(drain(&mut bench, RECEIVER), 0);
    bench.frame(RECEIVER, freed(4));
    assert_eq!(drain(&mut bench, RECEIVER), 3);
    let line = &bench.node().lines[RECEIVER.index()];
    assert_eq!((line.vcs[0].consumed, line.vcs[0].freed, line.vcs[0].in_use()), (63, 36, 27));
}

#[test]
fn a_small_packet_goes_where_a_large_one_would_not() {
    let mut bench = bench(30);
    fill(&mut bench, 3);
    let flow = bench.flow(0, 2, 1);
    // Three credits are left, enough for 384 B.
    for size in [384, 385] {
        bench.arrive_as(SENDER, flow, |packet| packet.size = size);
    }
    assert_eq!(drain(&mut bench, RECEIVER), 4);
    assert_eq!(bench.node().lines[RECEIVER.index()].vcs[0].in_use(), 30);
}

#[test]
fn what_leaves_is_said_at_once_and_then_after_the_spacing_and_at_last() {
    let mut bench = bench(1000);
    fill(&mut bench, 5);
    bench.open(SENDER);
    assert_eq!(bench.frames(), []);
    // 6400 B are 512 ns at 100 Gb/s, a packet is 85 ns. The first is said at once.
    bench.transmit(RECEIVER).unwrap();
    assert_eq!(bench.frames(), [(SENDER, freed(1))]);
    (0..4).for_each(|_| _ = bench.transmit(RECEIVER).unwrap());
    assert_eq!(bench.frames(), []);
    bench.advance(Time::from_ns(600));
    // Nothing is held back when the link goes idle.
    assert_eq!(bench.frames(), [(SENDER, freed(5))]);
    bench.advance(Time::from_ms(10));
    let again: Vec<PortId> = bench.frames().into_iter().map(|(port, _)| port).filter(|&port| port == SENDER).collect();
    assert_eq!(again, [], "nothing is said again where nothing gets lost");
}

#[test]
fn vcs_take_turns_among_the_updates() {
    let params = Params { credits: Some(1000), ..Params::default() };
    let mut bench = bench_of(params, |_| {}, |builder| builder.classes(3));
    let flow = bench.flow(0, 2, 0);
    for class in [2, 0, 1, 1] {
        bench.arrive_as(SENDER, flow, |packet| packet.class = class);
    }
    bench.open(SENDER);
    (0..4).for_each(|_| _ = bench.transmit(RECEIVER).unwrap());
    bench.advance(Time::from_us(5));
    let said: Vec<(u8, u32)> = bench
        .frames()
        .into_iter()
        .filter_map(|(_, frame)| match frame {
            Frame::Freed { vc, freed } => Some((vc.0, freed)),
            Frame::Consumed { .. } => None,
        })
        .collect();
    // The queue of VC 1 sends first. By the time of the next update, all have something to say.
    assert_eq!(said, [(1, 9), (2, 9), (0, 9), (1, 18)]);
}

#[test]
fn what_is_lost_is_found_by_the_next_cc_update_and_counters_wrap() {
    // Seven credits before the counters begin anew.
    let params = Params { credits: Some(100), ..Params::default() };
    let mut bench = bench_of(params, |scheme| scheme.first = (1 << BITS) - 7, |builder| builder);
    bench.open(SENDER);
    let first = (1u32 << BITS) - 7;
    let at = |credits: u32| (first + credits) % (1 << BITS);
    fill(&mut bench, 2);
    (0..2).for_each(|_| _ = bench.transmit(RECEIVER).unwrap());
    bench.advance(Time::from_us(1));
    assert_eq!(bench.frames().last(), Some(&(SENDER, Frame::Freed { vc: VC, freed: at(18) })));
    // The neighbour has sent three, of which one was lost.
    bench.frame(SENDER, Frame::Consumed { counters: Box::new([at(27) as u64]) });
    bench.advance(Time::from_us(1));
    assert_eq!(bench.frames(), [(SENDER, Frame::Freed { vc: VC, freed: at(27) })]);
    let (came, left) = (bench.node().lines[0].vcs[0].came, bench.node().lines[0].vcs[0].left);
    assert_eq!((came, left, bench.node().counts.recovered), (20, 20, 9));
    // A number that is older than what has come is no loss, and is answered.
    bench.frame(SENDER, Frame::Consumed { counters: Box::new([at(18) as u64]) });
    bench.advance(Time::from_us(1));
    assert_eq!(bench.frames(), [(SENDER, Frame::Freed { vc: VC, freed: at(27) })]);
    assert_eq!(bench.node().counts.recovered, 9);
}

#[test]
fn a_sender_with_credits_in_use_says_what_it_has_sent_every_256_us_until_all_are_back() {
    let mut bench = bench(100);
    fill(&mut bench, 2);
    bench.open(RECEIVER);
    bench.advance(Time::from_us(600));
    let said = |bench: &mut Bench<Cbfc>| -> Vec<Frame> {
        bench.frames().into_iter().filter(|(port, _)| *port == RECEIVER).map(|(_, frame)| frame).collect()
    };
    let consumed = Frame::Consumed { counters: Box::new([18]) };
    assert_eq!(said(&mut bench), [consumed.clone(), consumed]);
    bench.frame(RECEIVER, freed(2));
    bench.advance(Time::from_ms(2));
    assert_eq!(said(&mut bench), []);
    assert_eq!(bench.timers(), []);
}

#[test]
fn updates_that_wait_do_not_pile_up_and_say_what_is_true_when_they_go() {
    let mut bench = bench(1000);
    fill(&mut bench, 5);
    // Nothing of what is to be said to either neighbour can be sent.
    for _ in 0..5 {
        bench.transmit(RECEIVER).unwrap();
        bench.advance(Time::from_us(1));
    }
    bench.advance(Time::from_ms(100));
    assert_eq!((bench.waiting(SENDER).0, bench.waiting(RECEIVER).0), (1, 1));
    // At first once in 256 us, and then after twice as long each time.
    assert!(bench.node().lines[RECEIVER.index()].paces[SYNC as usize].now > Time::from_ms(50));
    bench.open(SENDER);
    bench.open(RECEIVER);
    bench.advance(Time(1));
    let consumed = Frame::Consumed { counters: Box::new([45]) };
    assert_eq!(bench.frames(), [(SENDER, freed(5)), (RECEIVER, consumed.clone())]);
    // A packet goes, and there is something new to say.
    fill(&mut bench, 1);
    bench.advance(Time::from_us(300));
    let said = bench.frames();
    assert!(said.contains(&(RECEIVER, Frame::Consumed { counters: Box::new([54]) })), "{said:?}");
}

#[test]
fn where_frames_get_lost_the_last_update_is_said_again_after_the_longest_spacing() {
    let lossy = |setup: &mut Setup| setup.graph.links.iter_mut().for_each(|link| link.loss = 1e-9);
    let params = Params { credits: Some(100), ..Params::default() };
    let mut bench = bench_of(params, |_| {}, |builder| builder.setup(lossy));
    fill(&mut bench, 1);
    bench.open(SENDER);
    bench.transmit(RECEIVER).unwrap();
    // 262 144 B are 20.97 us at 100 Gb/s: once at once, and twelve times until a CC_Update must have come.
    bench.advance(Time::from_ms(5));
    let said = bench.frames();
    assert!(said.iter().all(|said| *said == (SENDER, freed(1))), "{said:?}");
    assert_eq!(said.len(), 13);
}

#[test]
fn a_nic_stops_a_class_that_has_no_room_for_a_full_packet() {
    let params = Params { credits: Some(20), ..Params::default() };
    let mut bench = Builder::host(2).build_with(|setup| Cbfc::new(&params, setup, true));
    let flow = bench.flow(0, 1, 0);
    bench.start(flow, 10_000);
    bench.advance(Time::from_us(10));
    // Two packets take 18 of the 20 credits.
    assert_eq!(bench.data().len(), 2);
    assert_eq!(bench.paused_classes(PortId(0)), [VC]);
    bench.frame(PortId(0), freed(1));
    bench.advance(Time::from_us(10));
    assert_eq!(bench.data().len(), 1);
    // What comes in is taken at once and freed.
    let other = bench.flow(1, 0, 0);
    bench.arrive(PortId(0), other);
    bench.advance(Time::from_us(1));
    assert!(bench.frames().contains(&(PortId(0), freed(1))));
}

#[test]
fn a_nic_that_takes_packets_slowly_frees_credits_when_it_has_taken_them_and_is_never_overrun() {
    let params = Params::default();
    let builder = Builder::host(1).slow(Rate::from_gbps(1), 10_000, 5_000);
    let mut bench = builder.build_with(|setup| Cbfc::new(&params, setup, true));
    // Its memory holds 78 credits, and no more are granted.
    assert_eq!(bench.node().lines[0].own.reserved, 78);
    let flow = bench.flow(1, 0, 0);
    (0..8).for_each(|_| bench.arrive(PortId(0), flow));
    assert_eq!(bench.node().lines[0].vcs[0].held(), 72);
    // 1062 B take 8.5 us.
    bench.advance(Time::from_us(9));
    assert_eq!(bench.node().lines[0].vcs[0].held(), 63);
    assert_eq!(bench.counts().dropped_full, 0);
}

#[test]
fn a_switch_stops_flows_toward_a_full_host_and_loses_nothing_in_the_memory_that_credits_take() {
    let mut setup = incast(4, 300_000);
    setup.nic.timeout = None;
    let sizes = Sizes::new(&Params::default(), &fabric_of(&setup));
    let each = memory_of(&sizes);
    // Exactly what all ports have granted.
    setup.switch.pool.fill(Some(5 * each));
    setup.ports.iter_mut().for_each(|port| port.share.alpha = u32::MAX);
    let params = Params::default();
    let scheme = Cbfc::new(&params, &setup, true);
    let outcome = run(setup, scheme);
    assert!(outcome.complete() && outcome.violations.is_empty(), "{:?}", outcome.violations);
    assert_eq!(outcome.counts.dropped_full, 0);
    // 1.2 MB at 100 Gb/s, and the way there.
    let least = Rate::from_gbps(100).time_for(1200 * 1062);
    assert!(outcome.end > least && outcome.end < least + Time::from_us(12), "{}", outcome.end);
}

fn memory_of(sizes: &Sizes) -> u64 {
    sizes.grants[0].reserved as u64 * 128
}

#[test]
fn credits_computed_for_a_link_carry_its_full_rate_and_half_of_them_about_half() {
    let end = |credits: Option<u32>| {
        let mut setup = incast(1, 1_000_000);
        setup.nic.timeout = None;
        let scheme = Cbfc::new(&Params { credits, ..Params::default() }, &setup, true);
        let outcome = run(setup, scheme);
        assert!(outcome.complete() && outcome.violations.is_empty(), "{:?}", outcome.violations);
        outcome.flows[0].received
    };
    // Two links of 1 us each: 85 ns on each for the last packet, and a thousand packets.
    let line = Rate::from_gbps(100);
    let alone = Time(line.time_for(1062).0 * 1001 + 2_000_000);
    assert_eq!(end(Option::None), alone);
    let setup = incast(1, 1_000_000);
    let sizes = Sizes::new(&Params::default(), &fabric_of(&setup));
    // Bytes of the loop: three packets, the spacing, 72 B; 1 us each way at 100 Gb/s is 12 500 B.
    let packets = (3 * 1062 + 6400 + 72 + 2 * 12_500u64).div_ceil(1062);
    assert_eq!(packets, 33);
    assert_eq!(sizes.grants[0].reserved as u64, packets * 9);
    // With half of them at least half of the rate, and less than all of it.
    let half = end(Some(packets as u32 * 9 / 2));
    let rate = alone.0 as f64 / half.0 as f64;
    assert!((16.0 / 33.0..0.9).contains(&rate), "{rate}");
}

#[test]
fn all_credits_are_back_at_the_end() {
    let setup = incast(3, 100_000);
    let scheme = Cbfc::new(&Params::default(), &setup, true);
    let mut network = network(setup, scheme);
    let outcome = network.run(|_, _| true);
    assert!(outcome.complete());
    for node in 0..5 {
        for line in &network.node(NodeId(node)).lines {
            assert!(line.vcs.iter().all(|vc| vc.held() == 0), "node {node}");
        }
    }
}

#[test]
fn vcs_share_what_is_beyond_their_reserve() {
    // Of 100 credits, 18 are each VC's own and 64 are shared.
    let shared = |sharing, most, alpha| {
        let params = Params { credits: Some(100), sharing, most, alpha, reserve: Some(18), ..Params::default() };
        let mut bench = bench_of(params, |_| {}, |builder| builder.classes(2));
        let flow = bench.flow(0, 2, 0);
        (0..12).for_each(|_| bench.arrive_as(SENDER, flow, |packet| packet.class = 0));
        let first = drain(&mut bench, RECEIVER);
        (0..12).for_each(|_| bench.arrive_as(SENDER, flow, |packet| packet.class = 1));
        let second = drain(&mut bench, RECEIVER);
        // All that the first has is back: the second gets the shared part.
        bench.frame(RECEIVER, Frame::Freed { vc: ClassId(0), freed: 9 * first as u32 });
        (first, second, drain(&mut bench, RECEIVER))
    };
    // Alone it takes all that is shared: 2 + 7 packets. The other has its own two, and one credit is left over.
    assert_eq!(shared(Sharing::Static, 0, 1.0).0, 9);
    assert_eq!(shared(Sharing::Static, 0, 1.0).1, 2);
    // A limit of 36 are four packets more; then 28 are left, and with all of the first's back the second takes its last and the first 18 + 27.
    assert_eq!(shared(Sharing::Static, 36, 1.0), (6, 5, 1 + 5));
    // As much as is free: 9 of 64, 18 of 55, 27 of 46, and then 36 of 37.
    assert_eq!(shared(Sharing::Dynamic, 0, 1.0).0, 6);
    // A quarter: 9 of 64 / 4 = 16, but not 18 of 13.
    assert_eq!(shared(Sharing::Dynamic, 0, 0.25).0, 3);
    // Nothing may leave a VC without a full packet of its own.
    let params = Params { credits: Some(1), sharing: Sharing::Static, reserve: Some(1), ..Params::default() };
    let bench = bench_of(params, |_| {}, |builder| builder.classes(2));
    assert_eq!(bench.node().lines[0].own.reserved, 9);
}

/// Hosts behind two switches, over links that lose packets and frames.
fn lossy(loss: f64, first: u32) -> (Setup, Cbfc) {
    let mut setup = incast(4, 200_000);
    setup.graph.links.iter_mut().for_each(|link| link.loss = loss);
    setup.nic.timeout = Some(Time::from_us(200));
    // Long after the others, when whatever was lost has been found.
    let late = fabric::setup::FlowSpec::plain(4, 0, 4, 1000, Time::from_ms(40));
    setup.flows.push(late);
    let params = Params { credits: Some(60), ..Params::default() };
    let scheme = Cbfc { first, ..Cbfc::new(&params, &setup, true) };
    (setup, scheme)
}

#[test]
fn no_credit_stays_lost_on_links_that_lose_packets_and_updates() {
    for (loss, first) in [(0.01, 0), (0.05, (1 << BITS) - 100), (0.2, (1 << BITS) - 1)] {
        let (mut setup, scheme) = lossy(loss, first);
        setup.seed = first as u64 + 7;
        let mut network = network(setup, scheme);
        let outcome = network.run(|_, _| true);
        assert!(outcome.complete() && outcome.violations.is_empty(), "{loss}: {:?}", outcome.violations);
        assert_eq!(outcome.counts.dropped_full, 0);
        let recovered = outcome.flow_control.iter().find(|counter| counter.name == "credits_recovered").unwrap().value;
        assert!(outcome.counts.dropped_fault > 0 && recovered > 0, "{loss}: {recovered}");
        // The senders but the last: all that they have ever taken is back.
        for host in 1..4 {
            let line = &network.node(NodeId(host)).lines[0];
            assert_eq!(line.vcs[0].in_use(), 0, "{loss}: host {host}");
            let other = &network.node(NodeId(5)).lines[host as usize];
            assert_eq!((other.vcs[0].came, other.vcs[0].left), (line.vcs[0].consumed, line.vcs[0].consumed));
        }
    }
}

#[test]
fn a_link_that_comes_back_goes_on_with_the_credits_it_had_and_what_was_lost_with_it_is_found() {
    let mut setup = incast(2, 500_000);
    setup.nic.timeout = Some(Time::from_us(300));
    // The first sender's link and the receiver's, one after the other.
    setup.graph.links[0].outages.push((Time::from_us(10), Some(Time::from_us(60))));
    setup.graph.links[2].outages.push((Time::from_us(30), Some(Time::from_us(90))));
    let late = fabric::setup::FlowSpec::plain(2, 1, 2, 1000, Time::from_ms(40));
    setup.flows.push(late);
    let scheme = Cbfc::new(&Params::default(), &setup, true);
    let mut network = network(setup, scheme);
    let outcome = network.run(|_, _| true);
    assert!(outcome.complete() && outcome.violations.is_empty(), "{:?}", outcome.violations);
    assert!(outcome.counts.dropped_down > 0);
    assert_eq!(outcome.counts.dropped_full, 0);
    assert_eq!(network.node(NodeId(0)).lines[0].vcs[0].in_use(), 0);
}
