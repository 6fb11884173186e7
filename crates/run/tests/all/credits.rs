//! Credit-based flow control as a scenario has it: its sizes, its waits, its cycles.

use engine::Time;
use fabric::run::Stall;
use run::Finished;
use scenario::Scenario;
use scenario::resolve::{Resolved, resolve};
use std::path::Path;

fn read(text: &str, set: &[&str]) -> Resolved {
    let set: Vec<String> = set.iter().map(|set| set.to_string()).collect();
    let scenario = Scenario::parse("credits.toml", text, Path::new("/nowhere"), &set);
    scenario.and_then(resolve).unwrap_or_else(|problem| panic!("{problem}"))
}

fn run(text: &str, set: &[&str]) -> Finished {
    let finished = run::run(read(text, set), &mut |_, _| true);
    assert_eq!(finished.outcome.violations, Vec::<String>::new());
    finished
}

/// Two pairs of hosts on both sides of a link of 100 Gb/s over 10 us.
const DUMBBELL: &str = "\
    [topology]\nkind = \"dumbbell\"\nleft = 2\nright = 2\nhost_rate = \"100Gbps\"\nhost_delay = \"100ns\"\n\
    bottleneck_rate = \"100Gbps\"\nbottleneck_delay = \"10us\"\n[scheme]\npreset = \"cbfc\"\n\
    [[flow]]\nsrc = 0\ndst = 2\nsize = \"5MB\"\n[[flow]]\nsrc = 1\ndst = 3\nsize = \"5MB\"\n";

#[test]
fn a_check_says_how_many_credits_a_link_needs_and_what_fewer_cost() {
    let told = read(DUMBBELL, &[]).describe();
    // Three packets of 1062 B, 6400 B, 72 B, and 20 us at 100 Gb/s: 259 658 B are 245 packets of 9 credits.
    assert!(told.contains("2205 credits at 100Gbps"), "{told}");
    assert!(
        told.contains("promise  no packet is lost for want of room") || told.contains("no packet is lost"),
        "{told}"
    );
    let half = read(DUMBBELL, &["scheme.cbfc.credits=1100"]);
    let note = half.notes.iter().map(|note| note.to_string()).find(|note| note.contains("1100 of the 2205"));
    // 122 packets in the time of 244.5.
    assert!(note.as_ref().is_some_and(|note| note.contains("49.8 %")), "{:?}", half.notes);
    // 3 ports of 2205 and twice 33 credits or so do not fit into 200 KB: they are cut, and still nothing is lost.
    let small = read(DUMBBELL, &["switch.buffer=200KB"]);
    assert!(small.promised && small.notes.iter().any(|note| note.to_string().contains("no memory for more")));
    // Credits that are set are given, and what does not fit is said.
    let large = read(DUMBBELL, &["switch.buffer=200KB", "scheme.cbfc.credits=2205"]);
    assert!(!large.promised && large.notes.iter().any(|note| note.to_string().contains("packets may be lost")));
}

#[test]
fn a_long_link_is_full_with_the_credits_that_are_computed_and_not_with_half_of_them() {
    let took = |set: &[&str]| {
        let outcome = run(DUMBBELL, set).outcome;
        assert!(outcome.complete() && outcome.counts.dropped() == 0);
        outcome.flows.iter().map(|flow| flow.received).max().unwrap()
    };
    // 10 000 packets of 1062 B, and the way: 10.2 us and three packets' time.
    let least = Time(85_000 * 10_000 - 400_000 + 10_200_000);
    let full = took(&[]);
    assert!(full >= least && full.0 < least.0 * 101 / 100, "{full} against {least}");
    // Between what goes with the longest loop of 259 658 B, and with the shortest, without spacing or waits: 251 070 B.
    let half = took(&["scheme.cbfc.credits=1098"]);
    let rate = (least.0 - 10_200_000) as f64 / (half.0 - 10_200_000) as f64;
    let bytes = 122.0 * 1062.0;
    assert!((bytes / 259_658.0 - 0.005..bytes / 251_070.0 + 0.005).contains(&rate), "{rate}");
}

#[test]
fn credits_close_a_cycle_as_pauses_do_and_the_run_names_it() {
    // Seven switches in a ring, and two flows from each to the third one on: whatever is on a link waits for the next.
    let flow = |number: u32| {
        let (from, to) = (number, (number + 6) % 14);
        format!("[[flow]]\nsrc = {from}\ndst = {to}\nsize = \"1MB\"\n")
    };
    let flows: String = (0..14).map(flow).collect();
    let text =
        format!("stop = \"20ms\"\n[topology]\nkind = \"torus\"\nx = 7\ny = 1\nz = 1\nhosts_per_switch = 2\n{flows}");
    for preset in ["pfc", "cbfc"] {
        let finished = run(&text, &[&format!("scheme.preset={preset}")]);
        let Some(Stall::Deadlock(cycle)) = &finished.outcome.stall else {
            panic!("{preset}: {:?}", finished.outcome.stall)
        };
        assert_eq!(cycle.len(), 7, "{preset}: {cycle:?}");
    }
    // Timers that only say what was said before hide it for no longer than it takes to close.
    for (stop, closed) in [("2us", false), ("1ms", true), ("3ms", true)] {
        let finished = run(&text, &["scheme.preset=cbfc", &format!("stop={stop}")]);
        assert_eq!(
            matches!(finished.outcome.stall, Some(Stall::Deadlock(_))),
            closed,
            "{stop}: {:?}",
            finished.outcome.stall
        );
        assert!(!finished.outcome.complete());
    }
    // Credits for more than there is to send end it; so does a switch that keeps nobody waiting for a cycle.
    let finished = run(&text, &["scheme.preset=cbfc", "scheme.cbfc.factor=1000"]);
    assert!(finished.outcome.complete());
}

#[test]
fn what_waits_for_credits_knows_the_queue_that_keeps_them() {
    // Four hosts send to one, and h5 to another: all over the same trunk.
    let text = "[topology]\nkind = \"dumbbell\"\nleft = 5\nright = 2\nhost_rate = \"100Gbps\"\nbottleneck_rate = \"400Gbps\"\n\
                [scheme]\npreset = \"cbfc\"\n[measure]\nwhy = true\n\
                [[flow]]\nsrc = 0\ndst = 5\nsize = \"1MB\"\n[[flow]]\nsrc = 1\ndst = 5\nsize = \"1MB\"\n\
                [[flow]]\nsrc = 2\ndst = 5\nsize = \"1MB\"\n[[flow]]\nsrc = 3\ndst = 5\nsize = \"1MB\"\n\
                [[flow]]\nsrc = 4\ndst = 6\nsize = \"1MB\"\n";
    let resolved = read(text, &[]);
    let graph = resolved.setup.graph.clone();
    let outcome = run::run(resolved, &mut |_, _| true).outcome;
    assert!(outcome.complete(), "{:?}", outcome.stall);
    crate::causes::check(&graph, &outcome);
    let stops = outcome.stops.as_ref().unwrap();
    // What the trunk waits for is what fills the port to h5, and the NICs wait for the trunk: that is the root of most stops. The others are those of a link
    // whose credits are under way.
    let map = fabric::routing::PortMap::new(&graph);
    let hot = graph.nodes.iter().position(|node| node.name == "h5").unwrap();
    let hot = map.peer[map.of(hot as u32).start as usize];
    let root = |stop: &fabric::probe::Stop| stops.stops[stop.root as usize].fill;
    let filled = stops.stops.iter().filter(|stop| root(stop).is_some_and(|fill| fill.port == hot)).count();
    assert!(filled * 2 > stops.stops.len(), "{filled} of {}", stops.stops.len());
    let rule = |stop: &fabric::probe::Stop| stop.rule.is_some_and(|rule| rule.contains("credits of the link"));
    assert!(stops.stops.iter().all(|stop| stop.fill.is_some() || rule(stop)));
    // The victim is one.
    assert!(stops.kept.iter().any(|kept| kept.flow.0 == 4 && kept.victim), "{:?}", stops.kept.len());
}

/// Links that keep one frame carry one in a round trip. CC_Updates that came as often as they are set to would leave nothing for packets; and what could not
/// be sent piled up.
#[test]
fn links_that_are_slow_because_of_what_they_keep_have_room_for_packets_beside_updates() {
    for (interval, frames) in [("1us", 1), ("20us", 1), ("1us", 2)] {
        let text = format!(
            "stop = \"400ms\"\n[topology]\nkind = \"star\"\nhosts = 3\ndelay = \"5us\"\n[links.retry]\nendless = true\nframes = {frames}\n\
             [scheme]\npreset = \"cbfc\"\ncbfc = {{ cc_interval = \"{interval}\" }}\n\
             [[flow]]\nsrc = 0\ndst = 2\nsize = \"50KB\"\n[[flow]]\nsrc = 1\ndst = 2\nsize = \"50KB\"\n"
        );
        let outcome = run(&text, &[]).outcome;
        assert!(outcome.complete(), "{interval}, {frames}: {:?} {:?}", outcome.counts, outcome.flow_control);
        // A packet needs 10 us and a little on its first link, and updates as much.
        assert!(outcome.end < Time::from_ms(5), "{interval}, {frames}: {}", outcome.end);
    }
}

fn notes(text: &str, set: &[&str]) -> Vec<String> {
    read(text, set).notes.iter().map(|note| note.to_string()).collect()
}

#[test]
fn a_check_notes_settings_of_credits_that_make_no_sense() {
    let odd = |set: &[&str], expected: &str| {
        let set: Vec<String> = set.iter().map(|set| format!("scheme.cbfc.{set}")).collect();
        let set: Vec<&str> = set.iter().map(String::as_str).chain(["traffic.classes=2"]).collect();
        let notes = notes(DUMBBELL, &set);
        assert_eq!(notes.iter().filter(|note| note.contains(expected)).count(), 1, "{expected}: {notes:?}");
    };
    assert_eq!(notes(DUMBBELL, &[]), Vec::<String>::new());
    odd(&["credits=3000", "factor=2.0"], "factor has no effect: scheme.cbfc.credits is set");
    odd(&["credits=3000", "packet=500B"], "packet has no effect: scheme.cbfc.credits is set");
    odd(&["packet=4KB"], "packet has no effect: no packet is that large");
    odd(&["reserve=30"], "reserve has no effect: scheme.cbfc.sharing is reserved");
    odd(&["cf_longest=16384B"], "cf_longest has no effect: no link loses frames");
    odd(&["credit=4096B"], "a packet of 1062 B takes a credit of 4096 B");
    // A packet takes nine credits of 128 B.
    odd(&["sharing=static", "most=8"], "a VC may have 8 of the");
    odd(&["sharing=dynamic", "alpha=0.0078125", "credits=200"], "it never has any of them");
    odd(&["sharing=static", "credits=40", "reserve=20"], "nothing is shared");
    let slow = notes(DUMBBELL, &["scheme.cbfc.cc_interval=1us", "topology.host_rate=1Gbps"]);
    assert!(slow[0].contains("CC_Updates take 51.2 % of a link of 1Gbps"), "{slow:?}");
    assert!(notes(DUMBBELL, &["scheme.cbfc.sharing=dynamic"])[0].contains("there is one VC"));
}

#[test]
fn a_check_notes_settings_of_links_that_repeat_which_make_no_sense() {
    let text = "[topology]\nkind = \"star\"\nhosts = 2\n[links]\nbit_error_rate = 1e-9\n[links.retry]\n\
                [[flow]]\nsrc = 0\ndst = 1\nsize = \"1MB\"\n";
    let odd = |set: &[&str], expected: &str| {
        let set: Vec<String> = set.iter().map(|set| format!("links.retry.{set}")).collect();
        let set: Vec<&str> = set.iter().map(String::as_str).chain(["scheme.preset=cbfc"]).collect();
        let notes = notes(text, &set);
        assert_eq!(notes.iter().filter(|note| note.contains(expected)).count(), 1, "{expected}: {notes:?}");
    };
    let retry = |notes: Vec<String>| notes.into_iter().filter(|note| note.contains("links.retry")).collect::<Vec<_>>();
    assert_eq!(retry(notes(text, &["scheme.preset=cbfc"])), Vec::<String>::new());
    // Two frames of 1062 B, two sets, 2048 B and 2 us: 2.335 us.
    odd(&["timer=2.3us", "endless=true"], "it repeats frames that have come");
    odd(&["timer=2.3us"], "it repeats frames that have come, and gives up without any error");
    odd(&["data_age=2.3us"], "it gives up without any error");
    odd(&["data_age=4us"], "before links.retry.timer repeats anything, after 4670080ps");
    odd(&["after=block"], "what is to go from h0 to sw0 then waits for ever");
    odd(&["after=discard"], "what is to go from h0 to sw0 then is dropped");
    odd(&["link_lost=1us"], "link_lost has no effect");
    odd(&["pause_replays=2"], "pause_replays has no effect: flow control cbfc");
    odd(&["bytes=20KB"], "stands still without any error");
    // A switch's pipeline is part of the way: 2 us more there and back, and so 4.335 us.
    let longer = notes(text, &["scheme.preset=cbfc", "links.retry.timer=4us", "switch.pipeline=2us"]);
    assert!(longer.iter().any(|note| note.contains("after 4335040ps")), "{longer:?}");
    for fine in ["timer=2.4us", "data_age=5us"] {
        assert_eq!(retry(notes(text, &["scheme.preset=cbfc", &format!("links.retry.{fine}")])), Vec::<String>::new());
    }
}
