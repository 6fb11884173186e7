//! Where the time of flows goes: the parts add up, asking changes nothing, and threads and blocks change no part.

use crate::same::assert_same;
use fabric::Outcome;
use fabric::probe::{Part, Place, Span};
use scenario::Scenario;
use scenario::resolve::{Resolved, resolve};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

fn read(text: &str, sets: &[&str]) -> Resolved {
    let sets: Vec<String> = sets.iter().map(|set| set.to_string()).collect();
    let scenario = Scenario::parse("a.toml", text, Path::new("/nowhere"), &sets);
    scenario.and_then(resolve).unwrap_or_else(|problem| panic!("{problem}\n{text}"))
}

/// The run with its parts, which are those of any number of threads and blocks, and the same run as without.
fn explained(text: &str, sets: &[&str], what: &str) -> Outcome {
    let mut resolved = read(text, sets);
    let without = resolved.simulate_in(1, Some(1), &mut |_, _| true);
    resolved.setup.measure.why = true;
    let with = resolved.simulate_in(1, Some(1), &mut |_, _| true);
    assert_eq!(with.violations, without.violations, "{what}");
    assert_same(&without, &Outcome { parts: None, ..with.clone() }, &format!("{what}, asked and not asked"));
    for (threads, blocks) in [(1, 3), (2, 1), (4, 4)] {
        let other = resolved.simulate_in(threads, Some(blocks), &mut |_, _| true);
        assert_same(&with, &other, &format!("{what} on {threads} threads in {blocks} blocks"));
    }
    add_up(&with, what);
    with
}

fn spans(outcome: &Outcome) -> &[Span] {
    outcome.parts.as_deref().unwrap_or_default()
}

/// The parts of every flow add up to its time, counted by itself and not by the audit of the run.
fn add_up(outcome: &Outcome, what: &str) {
    let mut sums: BTreeMap<usize, u64> = BTreeMap::new();
    for span in spans(outcome) {
        assert!(span.time.0 > 0);
        *sums.entry(span.flow.index()).or_default() += span.time.0;
    }
    for (number, flow) in outcome.flows.iter().enumerate() {
        let sum = sums.get(&number).copied().unwrap_or(0);
        let end = flow.received.min(outcome.end);
        assert_eq!(sum, end.saturating_sub(flow.start).0, "{what}, flow {number}");
        let finished = flow.received != engine::Time::MAX;
        let mut own = spans(outcome).iter().filter(|span| span.flow.index() == number);
        assert!(own.all(|span| span.finished == finished), "{what}, flow {number}");
    }
}

/// How long all flows were at something.
fn total(outcome: &Outcome, part: Part) -> u64 {
    spans(outcome).iter().filter(|span| span.part == part).map(|span| span.time.0).sum()
}

/// The parts of a flow, those of a path with the names of its ports.
fn told(resolved: &Resolved, outcome: &Outcome, flow: usize) -> Vec<(&'static str, String, u64)> {
    let (graph, map) = (&resolved.setup.graph, fabric::routing::PortMap::new(&resolved.setup.graph));
    let name = |node: u32| graph.nodes[node as usize].name.clone();
    let node = |port: u32| name(map.node[port as usize]);
    let place = |place: Place| match place {
        Place::Node(number) => name(number),
        Place::Port(port) => format!("{}->{}", node(port), node(map.peer[port as usize])),
    };
    let own = spans(outcome).iter().filter(|span| span.flow.index() == flow);
    own.map(|span| (span.part.name(), place(span.place), span.time.0)).collect()
}

const LEAF_SPINE: &str = "[topology]\nkind = \"leaf-spine\"\nleaves = 4\nhosts_per_leaf = 4\nspines = 2\n";
const BCUBE: &str = "[topology]\nkind = \"bcube\"\nn = 4\nk = 1\n";
const TRAFFIC: &str = "\
[switch]
buffer = \"1500KB\"
[[load]]
sizes = \"hadoop\"
load = 0.5
duration = \"60us\"
[[incast]]
degree = 10
size_each = \"30KB\"
every = \"25us\"
arrivals = \"fixed\"
duration = \"60us\"
";
const FAULTS: &str = "[[link]]\nbetween = [\"leaf1\", \"spine1\"]\ndown = [[\"20us\", \"60us\"]]\n\
    [[link]]\nbetween = [\"leaf2\", \"h8\"]\ndown = [[\"30us\", \"45us\"]]\n\
    [[link]]\nbetween = [\"leaf0\", \"spine0\"]\nloss = 0.002\n";

#[test]
fn the_parts_of_every_flow_add_up_with_every_preset() {
    let mut seen = BTreeSet::new();
    for preset in scenario::presets::all() {
        let fabric = if preset.name == "portfc" { BCUBE } else { LEAF_SPINE };
        let set = format!("scheme.preset=\"{}\"", preset.name);
        let outcome = explained(&format!("stop = \"300us\"\n{fabric}{TRAFFIC}"), &[&set], preset.name);
        assert!(total(&outcome, Part::Queueing) > 0, "{}", preset.name);
        seen.extend(spans(&outcome).iter().map(|span| span.part));
    }
    for part in [Part::Hold, Part::Grant, Part::Window, Part::Pause, Part::Pacing, Part::Turn, Part::Stopped] {
        assert!(seen.contains(&part), "no preset spends time on {part:?}: {seen:?}");
    }
}

#[test]
fn the_parts_of_every_flow_add_up_on_a_path_of_many_hops() {
    let flow = |src: u32, dst: u32| format!("[[flow]]\nsrc = \"h{src}\"\ndst = \"h{dst}\"\nsize = \"200KB\"\n");
    let text = format!(
        "[topology]\nkind = \"chain\"\nswitches = 12\nhosts_per_switch = 2\n{}{}{}",
        flow(0, 23),
        flow(2, 22),
        flow(13, 21)
    );
    let outcome = explained(&text, &["scheme.preset=\"pfc\""], "chain");
    let hops = spans(&outcome).iter().filter(|span| span.flow.index() == 0).filter_map(|span| span.hop).max();
    assert_eq!(hops, Some(12), "from h0 over twelve switches to h23");
}

#[test]
fn a_message_waits_in_line_for_an_earlier_one_to_the_same_host() {
    let flow = "[[flow]]\nsrc = \"h0\"\ndst = \"h1\"\nsize = \"10KB\"\n";
    let text = format!(
        "[topology]\nkind = \"star\"\nhosts = 2\nrate = \"100Gbps\"\ndelay = \"1us\"\n\
         [nic]\npayload = \"1000B\"\nqueues = \"destination\"\n{flow}{flow}"
    );
    let outcome = explained(&text, &["scheme.preset=\"pfc\""], "line");
    let waits: Vec<_> = spans(&outcome).iter().filter(|span| span.part == Part::Line).collect();
    let wire = 1062 * 80;
    // The second may begin when the last packet of the first begins, and has its turn when that has left.
    assert_eq!(waits.iter().map(|span| (span.flow.0, span.time.0)).collect::<Vec<_>>(), [(1, 9 * wire)]);
    assert_eq!(total(&outcome, Part::Turn), wire);
}

#[test]
fn the_parts_of_every_flow_add_up_where_links_fail_and_lose_packets() {
    let (mut again, mut down) = (0, 0);
    for preset in scenario::presets::all().iter().filter(|preset| preset.name != "portfc") {
        let set = format!("scheme.preset=\"{}\"", preset.name);
        let text = format!("stop = \"3ms\"\n{LEAF_SPINE}{TRAFFIC}{FAULTS}");
        let outcome = explained(&text, &[&set], preset.name);
        again += total(&outcome, Part::Retransmission);
        down += total(&outcome, Part::Down);
    }
    assert!(again > 0 && down > 0, "{again} ps again, {down} ps down");
}

#[test]
fn the_parts_of_every_flow_add_up_where_links_repeat() {
    let (mut at_nics, mut on_paths) = (0, 0);
    for preset in ["lossy", "pfc", "cbfc", "bfc", "irn", "dcqcn+win", "uec"] {
        let set = format!("scheme.preset=\"{preset}\"");
        let text = format!(
            "stop = \"3ms\"\n{LEAF_SPINE}[links]\nbit_error_rate = 2e-6\n[links.retry]\nbytes = \"30KB\"\n{}",
            TRAFFIC.replace("1500KB", "8MB")
        );
        let outcome = explained(&text, &[&set], preset);
        for span in spans(&outcome).iter().filter(|span| span.part == Part::Retry) {
            *(if matches!(span.place, Place::Node(_)) { &mut at_nics } else { &mut on_paths }) += span.time.0;
        }
    }
    assert!(at_nics > 0 && on_paths > 0, "{at_nics} ps at NICs, {on_paths} ps on paths");
}

#[test]
fn the_parts_of_every_flow_add_up_where_hosts_forward_and_paths_are_sprayed() {
    let forward = "[nic]\nforward_delay = \"500ns\"\nforward_rate = \"40Gbps\"\n";
    for preset in ["pfc", "sfc", "dcqcn", "ndp"] {
        let set = format!("scheme.preset=\"{preset}\"");
        let outcome = explained(&format!("stop = \"1ms\"\n{BCUBE}{forward}{TRAFFIC}"), &[&set], preset);
        assert!(total(&outcome, Part::Forwarding) > 0, "{preset}");
    }
    for balancing in ["spray", "letflow"] {
        let sets = [format!("scheme.load_balancing=\"{balancing}\""), "scheme.preset=\"irn\"".into()];
        let sets: Vec<&str> = sets.iter().map(String::as_str).collect();
        explained(&format!("stop = \"1ms\"\n{LEAF_SPINE}{TRAFFIC}"), &sets, balancing);
    }
}

#[test]
fn a_slow_receiver_is_a_part_of_its_own() {
    let slow = "[[slow]]\nhost = \"h3\"\nrate = \"10Gbps\"\nbuffer = \"150KB\"\n";
    let flows = "[[flow]]\nsrc = \"h0\"\ndst = \"h3\"\nsize = \"300KB\"\n[[flow]]\nsrc = \"h1\"\ndst = \"h2\"\nsize = \"300KB\"\n";
    let outcome = explained(&format!("[topology]\nkind = \"star\"\nhosts = 4\n{slow}{flows}"), &[], "slow");
    let receiver: Vec<_> = spans(&outcome).iter().filter(|span| span.part == Part::Receiver).collect();
    assert!(receiver.len() == 1 && receiver[0].flow.index() == 0 && receiver[0].time.0 > 1_000_000, "{receiver:?}");
    assert!(total(&outcome, Part::Stopped) > 0, "its NIC pauses the switch");
}

/// Worked out by hand: 100 Gbit/s, 1000 B of payload and 62 B of headers, a link of 1 µs.
#[test]
fn the_time_of_a_message_alone_is_wire_and_distance() {
    let text = "[topology]\nkind = \"star\"\nhosts = 2\nrate = \"100Gbps\"\ndelay = \"1us\"\n\
        [nic]\npayload = \"1000B\"\n[[flow]]\nsrc = \"h0\"\ndst = \"h1\"\nsize = \"3000B\"\n";
    let resolved = read(text, &["measure.why=true", "scheme.preset=\"pfc\""]);
    let outcome = resolved.simulate(&mut |_, _| true);
    let wire = (resolved.setup.nic.payload + resolved.setup.nic.header) as u64 * 80;
    let pipeline = resolved.setup.switch.pipeline.0;
    let (up, down) = ("h0->sw0".to_string(), "sw0->h1".to_string());
    assert_eq!(
        told(&resolved, &outcome, 0),
        [
            ("serialisation", "h0".to_string(), 2 * wire),
            ("serialisation", up.clone(), wire),
            ("propagation", up, 1_000_000 + pipeline),
            ("serialisation", down.clone(), wire),
            ("propagation", down, 1_000_000),
        ]
    );
}

/// Worked out by hand: three packets take 254.88 ns, and the run stops before the first arrives.
#[test]
fn a_flow_that_does_not_finish_has_the_parts_of_its_sender() {
    let text = "stop = \"500ns\"\n[topology]\nkind = \"star\"\nhosts = 2\nrate = \"100Gbps\"\ndelay = \"1us\"\n\
        [nic]\npayload = \"1000B\"\n[[flow]]\nsrc = \"h0\"\ndst = \"h1\"\nsize = \"3000B\"\n";
    let resolved = read(text, &["measure.why=true", "scheme.preset=\"pfc\""]);
    let outcome = resolved.simulate(&mut |_, _| true);
    add_up(&outcome, "stopped");
    let parts = told(&resolved, &outcome, 0);
    assert_eq!(parts, [("answer", "h0".to_string(), 245_120), ("serialisation", "h0".to_string(), 254_880)]);
    assert!(spans(&outcome).iter().all(|span| !span.finished));
}

/// Worked out by hand: two messages of one packet each meet at the switch; the second waits for the first.
#[test]
fn a_message_that_meets_another_waits_behind_it() {
    let text = "[topology]\nkind = \"star\"\nhosts = 3\nrate = \"100Gbps\"\ndelay = \"1us\"\n\
        [[flow]]\nsrc = \"h0\"\ndst = \"h2\"\nsize = \"1000B\"\n[[flow]]\nsrc = \"h1\"\ndst = \"h2\"\nsize = \"1000B\"\n";
    let resolved = read(text, &["measure.why=true", "scheme.preset=\"pfc\""]);
    let outcome = resolved.simulate(&mut |_, _| true);
    let wire = (1000 + resolved.setup.nic.header) as u64 * 80;
    let queued = |flow: usize| {
        let parts = told(&resolved, &outcome, flow);
        parts
            .into_iter()
            .filter(|(part, ..)| *part == "queueing")
            .map(|(_, place, time)| (place, time))
            .collect::<Vec<_>>()
    };
    assert_eq!(queued(0), []);
    assert_eq!(queued(1), [("sw0->h2".to_string(), wire)]);
}

/// Two messages of one host take turns: each packet of one is a turn that the other waits.
#[test]
fn messages_of_one_host_wait_for_their_turn() {
    let flow = "[[flow]]\nsrc = \"h0\"\ndst = \"h1\"\nsize = \"10KB\"\n";
    let text = format!(
        "[topology]\nkind = \"star\"\nhosts = 2\nrate = \"100Gbps\"\ndelay = \"1us\"\n[nic]\npayload = \"1000B\"\n{flow}{flow}"
    );
    let resolved = read(&text, &["measure.why=true", "scheme.preset=\"pfc\""]);
    let outcome = resolved.simulate(&mut |_, _| true);
    let wire = (1000 + resolved.setup.nic.header) as u64 * 80;
    let turns: Vec<u64> = (0..2)
        .map(|flow| told(&resolved, &outcome, flow).iter().filter(|(part, ..)| *part == "turn").map(|t| t.2).sum())
        .collect();
    assert_eq!(turns, [9 * wire, 10 * wire]);
}
