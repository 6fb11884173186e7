//! Why things are stopped: what a person worked out by hand of the examples (docs/guides/why.md), and what must hold of any run.

use crate::same::assert_same;
use engine::Time;
use fabric::Outcome;
use fabric::probe::{Lost, Part, Scope, Stop, Waiting};
use fabric::routing::PortMap;
use fabric::topology::Graph;
use results::causes::{Kind, Root};
use scenario::Scenario;
use scenario::resolve::{Resolved, resolve};
use std::collections::BTreeMap;
use std::path::Path;

/// What cannot be otherwise, whatever the scheme: every stop is there, and every chain ends in a root that the stops confirm.
pub fn check(graph: &Graph, outcome: &Outcome) {
    let map = PortMap::new(graph);
    let all = outcome.stops.as_ref().expect("the run was asked why");
    assert!(all.stops.is_sorted_by_key(|stop| (stop.from, stop.port)), "in order of time");
    let mut paused: BTreeMap<u32, Vec<(Time, Time)>> = BTreeMap::new();
    let mut held = vec![Time::ZERO; outcome.flows.len()];
    for (row, stop) in all.stops.iter().enumerate() {
        let until = stop.until.unwrap_or(outcome.end);
        assert!(stop.from <= until && stop.ordered.is_none_or(|ordered| ordered <= stop.from), "{stop:?}");
        match stop.scope {
            Scope::Class(_) | Scope::Queue(_) => paused.entry(stop.port).or_default().push((stop.from, until)),
            Scope::Flow(flow) => held[flow.index()] += until - stop.from,
            Scope::Held(_) => {}
        }
        check_cause(&map, outcome, row, stop);
        check_root(&all.stops, row);
    }
    // The stops of ports are all pauses that were counted, and those of flows all holds.
    for (port, total) in outcome.paused.iter().enumerate() {
        let mut spans = paused.remove(&(port as u32)).unwrap_or_default();
        spans.sort_unstable();
        let (mut sum, mut reached) = (Time::ZERO, Time::ZERO);
        for (from, until) in spans {
            sum += until.saturating_sub(from.max(reached));
            reached = reached.max(until);
        }
        assert_eq!(sum, *total, "port {port}");
    }
    for (flow, (record, held)) in outcome.flows.iter().zip(held).enumerate() {
        assert_eq!(held, record.held, "flow {flow}");
    }
    check_losses(&map, outcome);
    for kept in &all.kept {
        let stop = &all.stops[kept.stop as usize];
        let life = stop.until.unwrap_or(outcome.end) - stop.from;
        assert!(Time::ZERO < kept.time && kept.time <= life, "{kept:?} at {stop:?}");
    }
}

/// Every packet that was dropped or trimmed for want of room has a root: a port of the same node that had taken the room, with who was in it, or the NIC
/// that was full.
fn check_losses(map: &PortMap, outcome: &Outcome) {
    let all = outcome.stops.as_ref().expect("the run was asked why");
    let rooms = || all.losses.iter().filter(|loss| loss.how == Lost::Room);
    let dropped = outcome.counts.dropped_full + outcome.counts.trimmed.0;
    assert_eq!(rooms().map(|loss| loss.packets).sum::<u64>(), dropped, "every drop is there");
    for loss in rooms() {
        let fill = loss.fill.unwrap_or_else(|| panic!("{loss:?} has no root"));
        match fill.waiting {
            Waiting::Receiver => assert_eq!(fill.port, map.peer[loss.port as usize], "{loss:?}"),
            _ => assert_eq!(map.node[fill.port as usize], map.node[loss.port as usize], "{loss:?}"),
        }
        let waits = matches!(fill.waiting, Waiting::Stopped | Waiting::Draining);
        assert_eq!(loss.cause.is_some(), waits, "{loss:?}");
        let filled = all.fillers.iter().any(|filler| filler.port == fill.port && filler.bytes > 0);
        assert!(filled || fill.waiting == Waiting::Receiver || fill.flows == 0, "{loss:?}");
    }
    assert!(all.losses.iter().all(|loss| loss.how == Lost::Room || (loss.fill, loss.cause) == (None, None)));
}

/// A port that waited for a stop did so when the order was given; one that did not is at the node that gave it.
fn check_cause(map: &PortMap, outcome: &Outcome, row: usize, stop: &Stop) {
    let all = outcome.stops.as_ref().expect("the run was asked why");
    let Some(fill) = stop.fill else {
        return assert_eq!(stop.cause, None, "stop {row}");
    };
    // Of a stop that did not end it is the end of the run that counts, unless the node was empty by then.
    let ordered = stop.ordered.unwrap_or(stop.from);
    let then = [ordered, if stop.until.is_none() { outcome.end } else { ordered }];
    match (fill.waiting, stop.cause.map(|cause| &all.stops[cause as usize])) {
        (Waiting::Stopped, Some(cause)) => {
            assert_eq!(cause.port, fill.port, "stop {row}");
            // What fills a node that was next to empty came while the order was on its way.
            let last = stop.until.unwrap_or(outcome.end);
            let covers = cause.from <= last && cause.until.is_none_or(|until| until >= ordered);
            assert!(covers, "stop {row}: {cause:?} from {ordered} to {last}");
        }
        (Waiting::Draining, Some(cause)) => {
            assert_eq!(cause.port, fill.port, "stop {row}");
            let last = stop.until.unwrap_or(outcome.end);
            assert!(cause.until.is_some_and(|until| until <= last), "stop {row}: {cause:?} at {then:?}");
        }
        // What it kept came to the node that is full, by other links perhaps.
        (Waiting::Released, Some(cause)) => {
            assert_ne!(cause.port, fill.port, "stop {row}");
            let last = stop.until.unwrap_or(outcome.end);
            assert!(cause.until.is_some_and(|until| until <= last), "stop {row}: {cause:?} at {then:?}");
        }
        (Waiting::Busy | Waiting::Down | Waiting::Receiver, None) => {}
        (waiting, cause) => panic!("stop {row}: {waiting:?} with {cause:?}"),
    }
    // A signal may be about a link further on.
    if fill.bytes > 0 {
        assert_eq!(map.node[fill.port as usize], stop.by, "stop {row}: {stop:?}");
    }
    for &also in &stop.also {
        assert_eq!((map.node[also as usize], also == fill.port), (stop.by, false), "stop {row}: {stop:?}");
    }
}

/// Following causes comes to the root that is named, and ends there or goes round.
fn check_root(stops: &[Stop], first: usize) {
    let mut row = first as u32;
    for _ in 0..=stops.len() {
        if row == stops[first].root {
            let mut next = stops[row as usize].cause;
            // It has no cause, or comes back to itself.
            for _ in 0..=stops.len() {
                match next {
                    None => return assert_eq!(stops[row as usize].cause, None),
                    Some(again) if again == row => return,
                    Some(other) => next = stops[other as usize].cause,
                }
            }
            break;
        }
        row = stops[row as usize].cause.unwrap_or_else(|| panic!("stop {first} ends at {row}, not at its root"));
    }
    panic!("stop {first} does not lead to its root");
}

fn example(name: &str, preset: &str, more: &[&str]) -> Resolved {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../examples/{name}.toml"));
    let sets = [format!("scheme.preset={preset}"), "measure.why=true".into()];
    let sets: Vec<String> = sets.into_iter().chain(more.iter().map(|set| set.to_string())).collect();
    Scenario::load(&path, &sets).and_then(resolve).unwrap_or_else(|problem| panic!("{problem}"))
}

/// The roots of an example, after all that must hold of it was checked.
fn roots(name: &str, preset: &str, more: &[&str]) -> Vec<Root> {
    let resolved = example(name, preset, more);
    let graph = resolved.setup.graph.clone();
    let finished = run::run(resolved, &mut |_, _| true);
    check(&graph, &finished.outcome);
    finished.summary.why.expect("the run was asked why").roots
}

#[test]
fn the_hot_spot_is_the_root_and_only_pfc_makes_a_victim_of_the_bystander() {
    for preset in ["pfc", "bfc", "sfc", "dvl"] {
        let roots = roots("hot_spot", preset, &[]);
        let worst = &roots[0];
        assert_eq!((worst.kind, worst.place.as_str(), worst.flows), (Kind::Saturated, "sw1->h5", 4), "{preset}");
        // By way of sw0->sw1, or from the switch to the senders.
        assert_eq!(worst.depth, if preset == "sfc" { 1 } else { 2 }, "{preset}");
        let victims: Vec<u64> = roots.iter().flat_map(|root| &root.worst_victims).map(|victim| victim.flow).collect();
        // Flow 0 is the bystander: it starts first.
        assert_eq!(victims, if preset == "pfc" { vec![0] } else { vec![] }, "{preset}");
    }
}

/// A threshold of nothing stops a trunk at the first packet, whoever it is for. What keeps it stopped is what comes while the order is on its way.
#[test]
fn the_hot_spot_is_the_root_and_the_bystander_its_victim_with_no_threshold_too() {
    for key in ["switch.threshold=0B", "switch.alpha=0"] {
        let roots = roots("hot_spot", "pfc", &[key]);
        let worst = &roots[0];
        assert_eq!(
            (worst.kind, worst.place.as_str(), worst.flows),
            (Kind::Saturated, "sw1->h5", 4),
            "{key}: {roots:?}"
        );
        let victims: Vec<u64> = worst.worst_victims.iter().map(|victim| victim.flow).collect();
        assert_eq!(victims, [0], "{key}");
        // Nothing else costs victims as much as a tenth of it.
        let others: u64 = roots[1..].iter().map(|root| root.victim_ps).sum();
        assert!(10 * others < worst.victim_ps, "{key}: {roots:?}");
    }
}

#[test]
fn an_incast_has_one_root_and_no_victims() {
    for preset in ["pfc", "bfc", "sfc", "dvl"] {
        let roots = roots("incast", preset, &[]);
        assert_eq!(roots.len(), 1, "{preset}");
        let root = &roots[0];
        assert_eq!((root.kind, root.place.as_str(), root.flows), (Kind::Saturated, "sw0->h0", 16), "{preset}");
        assert_eq!((root.waiting_flows, root.victims), (16, 0), "{preset}");
        // DVL also holds a queue of the congested port itself, behind what was there before.
        let (depth, ports) = if preset == "dvl" { (2, 17) } else { (1, 16) };
        assert_eq!((root.depth, root.stopped_ports), (depth, ports), "{preset}");
    }
}

#[test]
fn a_deadlock_is_a_root_of_its_own_and_portfc_has_none() {
    let pfc = roots("bcube_deadlock", "pfc", &[]);
    assert_eq!(pfc[0].kind, Kind::Deadlock);
    // The square, in one of its two directions.
    let square = ["h0->l0s0", "l0s0->h1", "h1->l1s1", "l1s1->h5", "h5->l0s1", "l0s1->h4", "h4->l1s0", "l1s0->h0"];
    assert!(pfc.iter().any(|root| root.kind == Kind::Deadlock && root.ports == square), "{pfc:?}");
    assert!(pfc.iter().all(|root| root.kind == Kind::Saturated || root.until_ps.is_none()));
    let portfc = roots("bcube_deadlock", "portfc", &[]);
    for root in &portfc[..8] {
        let (from, to) = root.place.split_once("->").expect("a port");
        assert_eq!((root.kind, &from[..1]), (Kind::Saturated, "l"), "{}", root.place);
        assert!(["h0", "h1", "h4", "h5"].contains(&to), "{}", root.place);
    }
}

#[test]
fn sfc_has_the_deadlock_of_the_pfc_beneath_it_and_bfc_a_cycle_of_queues() {
    let sfc = roots("bcube_deadlock", "sfc", &[]);
    assert_eq!(sfc[0].kind, Kind::Deadlock, "{sfc:?}");
    // Its bitmaps go on, so that the run never comes to rest.
    let bfc = roots("bcube_deadlock", "bfc", &["stop=1ms"]);
    assert!([Kind::Cycle, Kind::Deadlock].contains(&bfc[0].kind), "{bfc:?}");
    assert!(bfc[0].until_ps.is_none() && bfc[0].ports.len() >= 8, "{:?}", bfc[0]);
}

/// BCube(4,1): h0 to h3 are at l0s0.
#[test]
fn on_bcube_only_pfc_makes_a_victim_of_a_flow_to_another_port() {
    let fabric = |preset: &str| {
        format!(
            "[topology]\nkind = \"bcube\"\nn = 4\nk = 1\n[switch]\nbuffer = \"1MB\"\n[scheme]\npreset = \"{preset}\"\n"
        )
    };
    let incast: String = (1..4).map(|src| flow(src, 0, "2MB")).collect();
    for (preset, victims) in [("pfc", vec![3]), ("portfc", vec![])] {
        for (traffic, victims) in [(incast.clone(), vec![]), (incast.clone() + &flow(1, 2, "1MB"), victims)] {
            let (_, roots) = explained(&(fabric(preset) + &traffic));
            assert_eq!(roots.len(), 1, "{preset}: {roots:?}");
            let root = &roots[0];
            assert_eq!((root.kind, root.place.as_str(), root.flows), (Kind::Saturated, "l0s0->h0", 3), "{preset}");
            assert_eq!(root.depth, 1, "{preset}");
            assert_eq!(root.worst_victims.iter().map(|victim| victim.flow).collect::<Vec<_>>(), victims, "{preset}");
        }
    }
}

#[test]
fn under_dvl_the_root_stays_the_link_to_the_slow_receiver() {
    let roots = roots("slow_receiver", "dvl", &["stop=1ms"]);
    let worst = &roots[0];
    assert_eq!((worst.kind, worst.place.as_str(), worst.flows), (Kind::Saturated, "leaf1->h15", 4), "{roots:?}");
    assert!(roots.iter().all(|root| root.victims == 0), "{roots:?}");
}

#[test]
fn a_slow_receiver_is_the_root_from_the_instant_it_is_slow() {
    for (preset, depth, victims) in [("pfc", 4, 1), ("sfc", 2, 0), ("bfc", 4, 0)] {
        let roots = roots("slow_receiver", preset, &["stop=1ms"]);
        let named = |kind, place: &str| {
            let found = roots.iter().find(|root| root.kind == kind && root.place == place);
            found.unwrap_or_else(|| panic!("{preset}: {place} is no root"))
        };
        let slow = named(Kind::SlowReceiver, "h15");
        assert_eq!((slow.depth, slow.victims), (depth, victims), "{preset}");
        let before = named(Kind::Saturated, "leaf1->h15");
        assert_eq!(before.flows, 4, "{preset}");
        assert!(before.from_ps < 100_000_000 && 100_000_000 < slow.from_ps, "{preset}");
    }
}

#[test]
fn every_preset_gives_the_same_asked_why_or_not_on_any_number_of_threads() {
    const TRAFFIC: &str = "\
        [switch]\nbuffer = \"1500KB\"\n\
        [[load]]\nsizes = \"hadoop\"\nload = 0.5\nduration = \"60us\"\n\
        [[incast]]\ndegree = 8\nsize_each = \"60KB\"\nevery = \"30us\"\narrivals = \"fixed\"\nduration = \"60us\"\n";
    for preset in scenario::presets::all() {
        let fabric = match preset.name {
            "portfc" => "kind = \"bcube\"\nn = 4\nk = 1\n",
            _ => "kind = \"leaf-spine\"\nleaves = 3\nhosts_per_leaf = 4\nspines = 2\n",
        };
        let text = format!("stop = \"150us\"\n[topology]\n{fabric}{TRAFFIC}");
        let read = |why: bool| {
            let sets = [format!("scheme.preset=\"{}\"", preset.name), format!("measure.why={why}")];
            let scenario = Scenario::parse("a.toml", &text, Path::new("/nowhere"), &sets);
            scenario.and_then(resolve).unwrap_or_else(|problem| panic!("{problem}\n{text}"))
        };
        let (plain, asked) = (read(false), read(true));
        let one = asked.simulate_on(1, &mut |_, _| true);
        check(&asked.setup.graph, &one);
        let without = plain.simulate_on(1, &mut |_, _| true);
        assert!(without.stops.is_none());
        assert_same(&one, &without, preset.name);
        for (threads, blocks) in [(2, 1), (3, 3), (1, 4)] {
            let other = asked.simulate_in(threads, Some(blocks), &mut |_, _| true);
            assert!(other.stops.is_some());
            assert_same(&one, &other, &format!("{} on {threads} threads in {blocks} blocks", preset.name));
        }
    }
}

fn read(text: &str) -> Resolved {
    let scenario = Scenario::parse("a.toml", text, Path::new("/nowhere"), &["measure.why=true".to_string()]);
    scenario.and_then(resolve).unwrap_or_else(|problem| panic!("{problem}\n{text}"))
}

/// A scenario that was run, and its roots, after all that must hold of it was checked.
fn explained(text: &str) -> (Outcome, Vec<Root>) {
    let resolved = read(text);
    let graph = resolved.setup.graph.clone();
    let finished = run::run(resolved, &mut |_, _| true);
    check(&graph, &finished.outcome);
    (finished.outcome, finished.summary.why.expect("the run was asked why").roots)
}

fn flow(src: u32, dst: u32, size: &str) -> String {
    format!("[[flow]]\nsrc = \"h{src}\"\ndst = \"h{dst}\"\nsize = \"{size}\"\n")
}

/// Two flows want the link to h15. h1's to h8 has room everywhere, but leaf0->spine0 is stopped with all that is for h15, and when it is let
/// go, what it kept comes to leaf2->h8 four times as fast as that link is.
#[test]
fn what_a_stopped_trunk_lets_go_at_once_is_blamed_on_what_stopped_the_trunk() {
    let text = "\
        [topology]\nkind = \"leaf-spine\"\nleaves = 4\nhosts_per_leaf = 4\nspines = 1\nuplink_rate = \"400Gbps\"\n\
        [switch]\nbuffer = \"2MB\"\nalpha = 0.03\n[scheme]\npreset = \"pfc\"\n"
        .to_string();
    let flows = [(0, 15), (4, 15), (1, 8), (5, 9)].map(|(src, dst)| flow(src, dst, "2MB"));
    let (outcome, roots) = explained(&(text + &flows.concat()));
    let places: Vec<&str> = roots.iter().map(|root| root.place.as_str()).collect();
    assert_eq!(places, ["leaf3->h15"]);
    let stops = &outcome.stops.as_ref().unwrap().stops;
    let released = |stop: &&Stop| stop.fill.is_some_and(|fill| fill.waiting == Waiting::Released);
    assert!(stops.iter().filter(released).count() > 10);
}

const TWO: &str = "\
    [topology]\nkind = \"dumbbell\"\nleft = 4\nright = 2\nhost_rate = \"40Gbps\"\nbottleneck_rate = \"160Gbps\"\n\
    [switch]\nbuffer = \"600KB\"\n[scheme]\npreset = \"pfc\"\n";

#[test]
fn two_links_that_are_as_saturated_are_both_roots_and_make_no_victims_of_each_others_flows() {
    let flows = [(0, 4), (1, 4), (2, 5), (3, 5)].map(|(src, dst)| flow(src, dst, "1MB"));
    let (_, roots) = explained(&(TWO.to_string() + &flows.concat()));
    let mut told: Vec<_> = roots.iter().map(|root| (root.place.as_str(), root.flows, root.victims)).collect();
    told.sort_unstable();
    assert_eq!(told, [("sw1->h4", 2, 0), ("sw1->h5", 2, 0)]);
    let stops: Vec<usize> = roots.iter().map(|root| root.stops).collect();
    assert!(stops.iter().max() < stops.iter().min().map(|least| 2 * least).as_ref(), "{stops:?}");
}

#[test]
fn flows_of_every_class_are_counted_at_the_link_that_they_share() {
    let class = |src: u32, class: u32| format!("{}class = {class}\n", flow(src, 4, "1MB"));
    let text = TWO.replace("[switch]\n", "[traffic]\nclasses = 2\n[switch]\n");
    let (_, roots) = explained(&(text + &class(0, 0) + &class(1, 0) + &class(2, 1) + &class(3, 1)));
    assert_eq!((roots[0].place.as_str(), roots[0].flows), ("sw1->h4", 4), "{roots:?}");
}

#[test]
fn parallel_links_have_names_of_their_own() {
    let text = TWO.replace("bottleneck_rate = \"160Gbps\"", "bottleneck_rate = \"10Gbps\"\nbottlenecks = 2");
    let flows: Vec<String> = (0..4).map(|src| flow(src, 4 + src % 2, "1MB")).collect();
    let resolved = read(&(text + &flows.concat()));
    let finished = run::run(resolved, &mut |_, _| true);
    let roots = &finished.summary.why.as_ref().expect("the run was asked why").roots;
    let mut places: Vec<&str> = roots.iter().map(|root| root.place.as_str()).collect();
    places.sort_unstable();
    assert_eq!(places, ["sw0->sw1#1", "sw0->sw1#2"]);
    let parts = finished.tables().into_iter().find(|(name, _)| *name == "parts.parquet").unwrap().1;
    let text = format!("{parts:?}");
    assert!(text.contains("sw0->sw1#2") && !text.contains("\"sw0->sw1\""));
}

#[test]
fn a_link_that_loses_packets_and_one_that_fails_are_roots() {
    let lossy = roots("lossy_link", "lossy", &["scheme.congestion_control=dcqcn"]);
    let root = &lossy[0];
    assert_eq!((root.kind, root.place.as_str(), root.waiting_flows), (Kind::LossyLink, "h0->sw0", 1), "{lossy:?}");
    assert!(root.lost > 0 && root.waited_ps > 0 && root.stops == 0);
    let failed = roots("link_failure", "dcqcn+win", &[]);
    let down = |root: &&Root| root.kind == Kind::LinkDown && root.place == "leaf0->spine1";
    assert!(failed.iter().any(|root| down(&root) && root.lost > 0), "{failed:?}");
}

/// Two links on the way of one flow lose packets, one of them far more often. What the flow was at sending again is shared out between
/// them, each packet to the link that lost it.
#[test]
fn each_link_is_charged_for_sending_again_what_it_lost() {
    let text = TWO.replace("preset = \"pfc\"", "preset = \"lossy\"")
        + "[nic]\ntimeout = \"100us\"\n\
           [[link]]\nbetween = [\"h0\", \"sw0\"]\nloss = 0.002\n[[link]]\nbetween = [\"sw1\", \"h4\"]\nloss = 0.0002\n";
    let (outcome, roots) = explained(&(text + &flow(0, 4, "20MB")));
    let again: u64 =
        outcome.parts.iter().flatten().filter(|span| span.part == Part::Retransmission).map(|s| s.time.0).sum();
    let losses = &outcome.stops.as_ref().unwrap().losses;
    assert_eq!(
        losses.iter().map(|loss| loss.cost.0).sum::<u64>(),
        again,
        "nothing else makes it send again: {losses:?}"
    );
    let lossy: Vec<(&str, u64, u64)> =
        roots.iter().map(|root| (root.place.as_str(), root.lost, root.waited_ps)).collect();
    let &[(first, many, much), (second, few, little)] = &lossy[..2] else { panic!("{lossy:?}") };
    assert_eq!((first, second), ("h0->sw0", "sw1->h4"));
    assert!(many > 3 * few && few > 0 && much > 3 * little && little > 0, "{lossy:?}");
}

#[test]
fn a_link_that_repeats_is_the_root_of_what_waits_for_it() {
    let text = format!(
        "[topology]\nkind = \"star\"\nhosts = 4\n[links.retry]\n[[link]]\nbetween = [\"sw0\", \"h3\"]\nbit_error_rate = 1e-6\n\
         [scheme]\npreset = \"pfc\"\n[measure]\nwhy = true\n{}{}",
        flow(0, 3, "2MB"),
        flow(1, 3, "2MB")
    );
    let (outcome, roots) = explained(&text);
    assert!(outcome.complete() && outcome.counts.dropped() == 0);
    let root = roots.iter().find(|root| root.kind == Kind::LinkRetry).unwrap_or_else(|| panic!("{roots:?}"));
    assert_eq!((root.place.as_str(), root.lost, root.stops), ("sw0->h3", 0, 0), "{root:?}");
    let parts = outcome.parts.iter().flatten().filter(|span| span.part == Part::Retry);
    assert_eq!(root.waited_ps, parts.map(|span| span.time.0).sum::<u64>());
    let said = root.sentence(&[]);
    assert!(said.starts_with("The link sw0->h3 repeats frames") && said.contains("flows waited for it"), "{said}");
}

#[test]
fn a_nic_whose_link_is_down_is_a_root() {
    let text = "[[link]]\nbetween = [\"h0\", \"sw0\"]\ndown = [[\"10us\", \"60us\"]]\n".to_string()
        + &TWO.replace("preset = \"pfc\"", "preset = \"lossy\"")
        + "[nic]\ntimeout = \"100us\"\n";
    let (_, roots) = explained(&(text + &flow(0, 4, "1MB")));
    assert_eq!((roots[0].kind, roots[0].place.as_str()), (Kind::LinkDown, "h0->sw0"), "{roots:?}");
    assert!(roots[0].waited_ps >= 50_000_000, "{roots:?}");
}

/// h0 sends to h4 by leaf0->spine0 until that link is down, and then by the other spine.
#[test]
fn a_flow_that_was_rerouted_is_no_victim_of_the_link_that_it_took() {
    let text =
        "[topology]\nkind = \"leaf-spine\"\nleaves = 2\nhosts_per_leaf = 4\nspines = 2\nuplink_rate = \"40Gbps\"\n\
         [switch]\nbuffer = \"600KB\"\n[scheme]\npreset = \"pfc\"\n[nic]\ntimeout = \"200us\"\n"
            .to_string();
    let flows = [(0, 4), (1, 5), (2, 6), (3, 7)].map(|(src, dst)| flow(src, dst, "2MB")).concat();
    for spine in ["spine0", "spine1"] {
        let down = format!("[[link]]\nbetween = [\"leaf0\", \"{spine}\"]\ndown = [[\"300us\", \"50ms\"]]\n");
        let (outcome, roots) = explained(&(text.clone() + &down + &flows));
        let link = format!("leaf0->{spine}");
        let before = roots.iter().find(|root| root.kind == Kind::Saturated && root.place == link);
        let Some(before) = before else { continue };
        let all = outcome.stops.as_ref().unwrap();
        let early = all.kept.iter().filter(|kept| all.stops[kept.stop as usize].from < Time::from_us(300));
        assert!(early.clone().count() > 0);
        assert_eq!(before.victims, 0, "{before:?}");
    }
}

#[test]
fn schemes_say_by_which_rule_they_hold_what_no_queue_is_to_blame_for() {
    const TRAFFIC: &str = "\
        stop = \"300us\"\n[topology]\nkind = \"leaf-spine\"\nleaves = 4\nhosts_per_leaf = 4\nspines = 2\n\
        [switch]\nbuffer = \"1500KB\"\n[[load]]\nsizes = \"hadoop\"\nload = 0.6\nduration = \"200us\"\n\
        [[incast]]\ndegree = 8\nsize_each = \"60KB\"\nevery = \"30us\"\narrivals = \"fixed\"\nduration = \"200us\"\n";
    for (preset, rate, more, rule) in [
        // It deflects at switches from which several paths lead on.
        ("iofd", "40Gbps", "", "waits in its pen"),
        ("floodgate", "100Gbps", "", "window toward a destination is used up"),
        ("bfc", "100Gbps", "[scheme.bfc]\nfilter = \"4B\"\n", "false positive"),
    ] {
        let traffic = TRAFFIC.replace("spines = 2\n", &format!("spines = 2\nuplink_rate = \"{rate}\"\n"));
        let (_, roots) = explained(&format!("{traffic}[scheme]\npreset = \"{preset}\"\n{more}"));
        let schemes: Vec<&Root> = roots.iter().filter(|root| root.kind == Kind::Scheme).collect();
        assert!(
            schemes.iter().any(|root| root.rule.as_ref().is_some_and(|text| text.contains(rule))),
            "{preset}: {roots:?}"
        );
        assert!(schemes.iter().all(|root| root.rule.is_some()), "{preset}: {schemes:?}");
    }
}

#[test]
fn a_key_that_is_said_to_have_had_no_effect_has_none() {
    let text = |alpha: f64, ecn_min: &str| {
        format!(
            "[topology]\nkind = \"star\"\nhosts = 4\n[switch]\nalpha = {alpha}\necn_min = \"{ecn_min}\"\n\
             [scheme]\npreset = \"dcqcn\"\n{}{}",
            flow(0, 2, "100KB"),
            flow(1, 2, "20KB")
        )
    };
    let told = |text: &str| {
        let finished = run::run(read(text), &mut |_, _| true);
        let summary = serde_json::to_value(&finished.summary).unwrap();
        (results::explain::deeds(&summary).join(" "), finished.outcome)
    };
    let (said, outcome) = told(&text(0.125, "100KB"));
    assert!(
        said.contains("The key switch.alpha had no effect") && said.contains("The key switch.ecn_min had no effect"),
        "{said}"
    );
    for (alpha, ecn_min) in [(0.25, "100KB"), (128.0, "400KB")] {
        let (_, other) = told(&text(alpha, ecn_min));
        assert_same(&outcome, &Outcome { stops: outcome.stops.clone(), ..other }, "with more");
    }
    // With less, they have.
    let (said, _) = told(&text(0.0001, "1KB"));
    assert!(!said.contains("no effect"), "{said}");
}

/// Sixteen hosts send 100 KB each to h0 at once over a switch with 200 KB of memory, and h17 sends to h18. 1.6 MB come within 8 us, of which the link to h0
/// carries 100 KB meanwhile: its queue takes what it may, which is as much as it leaves free. So there is room for what h17 sends, and all drops are those
/// of the sixteen.
#[test]
fn what_is_dropped_for_want_of_room_is_blamed_on_the_link_that_took_it() {
    let text = "[topology]\nkind = \"star\"\nhosts = 20\n[switch]\nbuffer = \"200KB\"\n[scheme]\npreset = \"lossy\"\n\
                [nic]\ntimeout = \"100us\"\n"
        .to_string();
    let incast: Vec<String> = (1..17).map(|src| flow(src, 0, "100KB")).collect();
    let small = format!("{}start = \"6us\"\n", flow(17, 18, "10KB"));
    let (outcome, roots) = explained(&(text + &incast.concat() + &small));
    assert_eq!(roots.len(), 1, "{roots:?}");
    let root = &roots[0];
    assert_eq!((root.kind, root.place.as_str()), (Kind::Saturated, "sw0->h0"), "{roots:?}");
    assert_eq!((root.flows, root.stops, root.victims, root.lost), (16, 0, 0, outcome.counts.dropped_full), "{root:?}");
    // All of them fill it.
    let fillers = &outcome.stops.as_ref().unwrap().fillers;
    assert_eq!(fillers.iter().map(|filler| filler.flow.0).collect::<Vec<u32>>(), (0..16).collect::<Vec<u32>>());
    let losses = &outcome.stops.as_ref().unwrap().losses;
    assert!(losses.iter().all(|loss| loss.flow.0 < 16), "{losses:?}");
    let again: u64 =
        outcome.parts.iter().flatten().filter(|span| span.part == Part::Retransmission).map(|s| s.time.0).sum();
    assert_eq!(losses.iter().map(|loss| loss.cost.0).sum::<u64>(), again, "nothing else makes them send again");
    assert_eq!(root.lost_ps, again);
}

/// The NIC of a slow receiver drops what it has no room for, if nobody is paused.
#[test]
fn what_a_slow_receiver_drops_is_blamed_on_it() {
    let slow = ["scheme.flow_control=none", "scheme.transport=go-back-n", "nic.timeout=100us", "stop=1ms"];
    let roots = roots("slow_receiver", "lossy", &slow);
    let host = roots.iter().find(|root| root.kind == Kind::SlowReceiver).unwrap_or_else(|| panic!("{roots:?}"));
    assert!(host.place == "h15" && host.lost > 0 && host.victims == 0, "{roots:?}");
}

/// In a deadlock ports are paused for ever. A host hears of the last packet only after all else is at rest: up to then they are paused, too.
#[test]
fn a_port_that_is_paused_when_the_run_ends_is_so_to_its_end() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/bcube_deadlock.toml");
    let text = std::fs::read_to_string(path).unwrap() + &flow(14, 15, "1KB");
    let resolved = read(&text.replace("[nic]\n", "[nic]\nreceive_latency = \"300us\"\n"));
    let graph = resolved.setup.graph.clone();
    let outcome = run::run(resolved, &mut |_, _| true).outcome;
    assert!(outcome.end > Time::from_us(300), "the end is when that host hears of it");
    assert!(outcome.stops.as_ref().unwrap().stops.iter().any(|stop| stop.until.is_none()));
    check(&graph, &outcome);
}

/// h1 and h2 send 150 packets each to h0, half a packet's time apart, over a switch with 100 KB of memory of which no port has any to itself, and a queue
/// may have nearly all. Two packets come in the time in which one leaves, so that after 94 of these times, at 9 us, all is taken: 94 packets of 1062 B leave
/// 172 B free. From then on h2 takes what is let go of, half a packet's time after h1 found no room. So it stays until the two have sent all, at 13.8 us.
/// h3's two packets to h4 come at 11 us, and h5's two to h0, in the half of a packet's time in which all is taken: there is no room for any of the four.
/// The root of all is sw0->h0, and h1 and h2 alone fill it. h3's flow does not pass through it: the one victim. h5's does. Nobody tells these two, so
/// that they lose the timeout, 100 us, and find room when they send again: by then what was in the memory has long been sent.
#[test]
fn who_finds_no_room_in_a_memory_that_others_filled_is_their_victim() {
    let text =
        "[topology]\nkind = \"star\"\nhosts = 6\n[switch]\nbuffer = \"100KB\"\nreserve = \"0B\"\negress_alpha = 128\n\
                [scheme]\npreset = \"lossy\"\n[nic]\ntimeout = \"100us\"\n"
            .to_string();
    let second = format!("{}start = \"40ns\"\n", flow(2, 0, "150KB"));
    let late = |src, dst| format!("{}start = \"10us\"\n", flow(src, dst, "2KB"));
    let (outcome, roots) = explained(&(text + &flow(1, 0, "150KB") + &second + &late(3, 4) + &late(5, 0)));
    assert_eq!(roots.len(), 1, "{roots:?}");
    let root = &roots[0];
    assert_eq!((root.kind, root.place.as_str(), root.flows), (Kind::Saturated, "sw0->h0", 2), "{root:?}");
    let stops = outcome.stops.as_ref().unwrap();
    assert_eq!(stops.fillers.iter().map(|filler| filler.flow.0).collect::<Vec<u32>>(), [0, 1]);
    let again = |flow: u32| -> u64 {
        let own = outcome.parts.iter().flatten().filter(|span| span.flow.0 == flow);
        own.filter(|span| span.part == Part::Retransmission).map(|span| span.time.0).sum()
    };
    for (flow, victim) in [(2, true), (3, false)] {
        let own: Vec<_> = stops.losses.iter().filter(|loss| loss.flow.0 == flow).collect();
        let [loss] = own[..] else { panic!("{own:?}") };
        assert_eq!((loss.packets, loss.victim, loss.cost.0), (2, victim, again(flow)), "{loss:?}");
        // All but the time to send a packet, at most.
        assert!(loss.cost.0.abs_diff(Time::from_us(100).0) < 100_000, "{loss:?}");
    }
    let victims: Vec<(u64, u64)> = root.worst_victims.iter().map(|victim| (victim.flow, victim.waited_ps)).collect();
    assert_eq!((root.victims, root.victim_ps, victims), (1, again(2), vec![(2, again(2))]), "{root:?}");
}
