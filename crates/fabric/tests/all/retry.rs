//! Links that repeat frames: times by hand, goodput by a formula, and no packet lost or moved.

use engine::{Rate, Time};
use fabric::axes::flow_control::NoFlowControl;
use fabric::id::NodeId;
use fabric::probe::{Part, Place, Span};
use fabric::retry::{Retry, Tally, Unprotected};
use fabric::run::Stall;
use fabric::setup::FlowSpec;
use fabric::topology::{Graph, Kind};
use fabric::{Outcome, Setup};

const FRAME: u64 = 1062;
/// Picoseconds of a byte at 100 Gb/s.
const BYTE: u64 = 80;
/// Of a link.
const DELAY: Time = Time::from_us(1);

/// Hosts around a switch. The first link repeats frames as `retry` has it.
fn star(hosts: u32, retry: Retry) -> Graph {
    let mut graph = Graph::default();
    let hosts: Vec<NodeId> = (0..hosts).map(|i| graph.add(Kind::Host, 0, format!("h{i}"))).collect();
    let switch = graph.add(Kind::Switch, 1, "s");
    hosts.iter().for_each(|&h| graph.connect(h, switch, Rate::from_gbps(100), DELAY));
    graph.links[0].retry = Some(retry);
    graph
}

fn endless() -> Retry {
    Retry { replays: None, ..Retry::default() }
}

fn one_flow(graph: Graph, size: u64) -> Setup {
    let mut setup = Setup::plain(graph, vec![FlowSpec::plain(0, 0, 1, size, Time::ZERO)]);
    setup.measure.why = true;
    setup
}

fn run(setup: Setup) -> Outcome {
    let outcome = crate::run(setup, NoFlowControl);
    assert_eq!(outcome.violations, Vec::<String>::new());
    outcome
}

/// What both ends of the links that repeat have done.
fn tally(outcome: &Outcome) -> Tally {
    let mut all = Tally::default();
    outcome.retries.iter().for_each(|(_, tally)| all.add(tally));
    all
}

#[test]
fn a_link_without_faults_delays_nothing_but_by_its_acks() {
    let run = |retry: Option<Retry>| {
        let mut setup = one_flow(star(2, endless()), 100_000);
        setup.graph.links[0].retry = retry;
        run(setup)
    };
    let (with, without) = (run(Some(endless())), run(None));
    // The first ACK of the receiver is back after 4180.48 ns. From then on the sender acknowledges such ACKs to the switch, with 8 B after every two
    // frames, as 2048 B are less than that: 25 times until the last of 100 frames begins at 8411 ns.
    assert_eq!(with.flows[0].received - without.flows[0].received, Time(25 * 8 * BYTE));
    // And one for every two frames the other way, and ACKs.
    let tally = tally(&with);
    assert!((100..=106).contains(&tally.acks), "{tally:?}");
    assert_eq!(tally, Tally { acks: tally.acks, ..Tally::default() });
    assert_eq!((with.counts.dropped(), with.left), (0, 0));
}

#[test]
fn what_is_under_way_when_a_link_fails_for_a_moment_comes_when_it_is_back() {
    // One packet: it is on the first link from 0 to 84.96 ns + 1 µs. The link is down from 500 ns to 2 µs.
    let mut graph = star(2, Retry { link_lost: Time::from_ms(1), ..endless() });
    graph.links[0].outages = vec![(Time::from_ns(500), Some(Time::from_us(2)))];
    let outcome = run(one_flow(graph, 1000));
    let frame = FRAME * BYTE;
    assert_eq!(outcome.flows[0].received, Time::from_us(2) + Time(frame) + DELAY + Time(frame) + DELAY);
    assert_eq!((outcome.counts.dropped(), outcome.counts.timeouts), (0, 0));
    let late = outcome.parts.iter().flatten().find(|span| span.part.name() == "retry").map(|span| span.time);
    assert_eq!(late, Some(Time::from_us(2)));
    let tally = tally(&outcome);
    assert_eq!((tally.repeated, tally.late), ((1, FRAME), Time::from_us(2).0));
}

#[test]
fn what_waits_for_a_link_that_fails_for_a_moment_waits_on() {
    // 100 packets, of which half wait at the host when the link goes down. Nothing is lost, and nobody is told.
    let setup = |outages| {
        let mut graph = star(2, Retry { link_lost: Time::from_ns(1501), ..endless() });
        graph.links[0].outages = outages;
        one_flow(graph, 100_000)
    };
    let without = run(setup(vec![])).flows[0].received;
    let outcome = run(setup(vec![(Time::from_ns(3500), Some(Time::from_us(5)))]));
    assert_eq!((outcome.counts.dropped(), outcome.counts.timeouts, outcome.counts.retransmitted.0), (0, 0, 0));
    // What was sent less than a round trip before is sent again.
    let (late, round) = (outcome.flows[0].received - without, Time(2 * DELAY.0 + 3 * FRAME * BYTE));
    assert!(late >= Time::from_ns(1500) && late <= Time::from_ns(1500) + round, "{late}");
}

#[test]
fn a_link_that_is_down_for_too_long_loses_what_it_keeps() {
    let mut graph = star(2, endless());
    graph.links[0].outages = vec![(Time::from_ns(500), Some(Time::from_us(2)))];
    let mut setup = one_flow(graph, 1000);
    setup.nic.timeout = Some(Time::from_us(10));
    let outcome = run(setup);
    assert!(outcome.complete());
    assert_eq!((outcome.counts.dropped_down, outcome.counts.timeouts, outcome.left), (1, 1, 0));
    assert_eq!(tally(&outcome).repeated, (0, 0));
}

#[test]
fn goodput_is_what_go_back_n_leaves_of_it() {
    // A frame that is damaged costs the link from its beginning to that of its repetition: it is sent and arrives, the NACK (8 B) is sent and
    // arrives, and the frame under way is finished. If it comes damaged again nobody asks, and the timer goes off so long after the last of
    // the frames that were sent again: those of a round.
    let frame = FRAME * BYTE;
    let round = 2 * DELAY.0 + frame + 8 * BYTE;
    let slots = round.div_ceil(frame) as f64;
    let timer = 30 * frame;
    for (errors, packets) in [(1e-7, 20_000), (1e-6, 20_000), (5e-6, 20_000)] {
        let mut graph = star(2, Retry { timer: Some(Time(timer)), ..endless() });
        graph.links[0].bit_errors = errors;
        let damaged = graph.links[0].spoils(FRAME as u16);
        let again = (slots * frame as f64 + timer as f64) / frame as f64;
        let cost = 1.0 + damaged * slots + damaged * damaged / (1.0 - damaged) * again;
        let outcome = run(one_flow(graph, packets * 1000));
        let took = (outcome.flows[0].received.0 - 2 * DELAY.0) as f64 / (packets * frame) as f64;
        // Of so many frames, so many are damaged, give or take three standard deviations.
        let spread = 3.0 * (packets as f64 * damaged).sqrt() * slots / packets as f64;
        assert!((took - cost).abs() < spread + 0.01 * cost, "{errors}: {took} for {cost}, {:?}", tally(&outcome));
        assert_eq!((outcome.counts.dropped(), outcome.counts.retransmitted.0), (0, 0));
    }
}

#[test]
fn nothing_is_lost_between_ends_that_never_give_up() {
    for seed in 1..20 {
        let mut graph = star(4, endless());
        for link in &mut graph.links {
            link.retry = Some(Retry { bytes: Some(20_000), ..endless() });
            (link.loss, link.corruption, link.bit_errors) = (0.02, 0.03, 1e-6);
        }
        let flows = (0..4).map(|i| FlowSpec::plain(0, i, (i + 1) % 4, 60_000, Time::ZERO)).collect();
        let mut setup = Setup { seed, ..Setup::plain(graph, flows) };
        setup.measure.why = true;
        let outcome = run(setup);
        assert!(outcome.complete());
        let (c, tally) = (&outcome.counts, tally(&outcome));
        assert_eq!((c.dropped(), c.retransmitted.0, c.out_of_order, c.timeouts, outcome.left), (0, 0, 0, 0, 0));
        assert_eq!(c.injected, (240, 240_000));
        assert!(tally.sets_lost > 0 && tally.timeouts > 0 && tally.replays > 0 && tally.duplicates > 0, "{tally:?}");
    }
}

#[test]
fn what_waits_while_a_link_repeats_is_told_so() {
    let of = |outcome: &Outcome, part: Part, place: Place| -> u64 {
        let own = |span: &&Span| span.part == part && span.place == place;
        outcome.parts.iter().flatten().filter(own).map(|span| span.time.0).sum()
    };
    // At the NIC: a flow alone has its turn whenever the link has nothing to say itself.
    let mut graph = star(2, endless());
    graph.links[0].corruption = 0.02;
    let outcome = run(one_flow(graph, 200_000));
    let (retry, turn) = (of(&outcome, Part::Retry, Place::Node(0)), of(&outcome, Part::Turn, Place::Node(0)));
    let tally = tally(&outcome);
    assert!(tally.repeated.0 > 0 && retry > FRAME * BYTE, "{retry} {tally:?}");
    assert!(turn <= (tally.acks + tally.nacks) * 8 * BYTE, "{turn} {tally:?}");

    // At a switch: two hosts fill the link to a third, which repeats.
    let three = |corruption: f64| {
        let mut graph = star(3, endless());
        graph.links[0].retry = None;
        (graph.links[2].retry, graph.links[2].corruption) = (Some(endless()), corruption);
        let flows = (0..2).map(|src| FlowSpec::plain(0, src, 2, 100_000, Time::ZERO)).collect();
        let mut setup = Setup::plain(graph, flows);
        setup.measure.why = true;
        run(setup)
    };
    let (clean, faulty) = (three(0.0), three(0.05));
    let port = faulty.retries.iter().map(|(port, _)| *port).max().unwrap();
    let at = |outcome: &Outcome, part: Part| of(outcome, part, Place::Port(port));
    assert_eq!(at(&clean, Part::Retry), 0, "nothing is repeated");
    assert!(at(&faulty, Part::Retry) > 0 && at(&clean, Part::Queueing) > 0);
    let both = |outcome: &Outcome| at(outcome, Part::Retry) + at(outcome, Part::Queueing);
    assert!(both(&faulty) > both(&clean));
}

#[test]
fn an_end_that_gives_up_does_as_it_is_told() {
    for (then, restart) in [
        (Unprotected::BestEffort, false),
        (Unprotected::BestEffort, true),
        (Unprotected::Block, true),
        (Unprotected::Discard, true),
    ] {
        for seed in 1..10 {
            let mut graph = star(2, Retry { then, restart, ..Retry::default() });
            graph.links[0].corruption = 0.2;
            let mut setup = Setup { seed, ..one_flow(graph, 200_000) };
            setup.nic.timeout = Some(Time::from_us(30));
            let outcome = run(setup);
            let tally = tally(&outcome);
            assert!(outcome.complete(), "{then:?} {restart} {seed}: {:?} {tally:?}", outcome.stall);
            assert!(tally.flushes > 0 && tally.lost > 0);
            assert_eq!(outcome.counts.dropped_fault, tally.lost);
            if !restart {
                assert!(tally.flushes <= 2, "{tally:?}");
            }
        }
    }
}

#[test]
fn an_end_that_blocks_for_good_is_told_from_one_that_moves() {
    let mut graph = star(2, Retry { then: Unprotected::Block, ..Retry::default() });
    graph.links[0].corruption = 0.5;
    let outcome = run(one_flow(graph, 200_000));
    assert!(!outcome.complete() && matches!(outcome.stall, Some(Stall::Blocked(_))), "{:?}", outcome.stall);
}
