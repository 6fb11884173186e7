//! Scenarios from text to a run: the examples, every class of error, and what the derived numbers promise.

use super::Scenario;
use crate::Beside;
use crate::resolve::{PauseLoop, Resolved, resolve};
use engine::{Bytes, Parameters, Rate, Time};
use fabric::Outcome;
use fabric::id::NodeId;
use fabric::retry::Retry;
use fabric::setup::{AckLane, Ecn, WindowRule};
use files::problem::{Cause, Problem};
use proptest::prelude::*;
use std::path::{Path, PathBuf};

fn examples() -> Vec<(PathBuf, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut examples: Vec<_> = files
        .filter(|path| path.extension().is_some_and(|end| end == "toml"))
        .map(|path| (path.clone(), std::fs::read_to_string(path).unwrap()))
        .collect();
    examples.sort();
    examples
}

fn read(text: &str, sets: &[&str]) -> Result<Resolved, Problem> {
    let sets: Vec<String> = sets.iter().map(|set| set.to_string()).collect();
    resolve(Scenario::parse("a.toml", text, Path::new("/nowhere"), &sets)?)
}

fn run(resolved: &Resolved) -> Outcome {
    resolved.simulate(&mut |_, _| true)
}

const STAR: &str = "\
[topology]
kind = \"star\"
hosts = 4
[[flow]]
src = \"h1\"
dst = \"h0\"
size = \"1MB\"
";

/// The star, or for a scheme that is made for another fabric that one.
fn home(preset: &str) -> String {
    match preset {
        "portfc" => STAR.replace("kind = \"star\"\nhosts = 4\n", "kind = \"bcube\"\n"),
        _ => STAR.into(),
    }
}

fn star(sets: &[&str]) -> Resolved {
    read(STAR, sets).unwrap_or_else(|problem| panic!("{problem}"))
}

/// The problem must be in one of the lines given, say this and help.
#[track_caller]
fn refused(text: &str, sets: &[&str], place: impl Into<Option<usize>>, message: &str, help: &str) {
    let Err(problem) = read(text, sets) else { panic!("{text} is accepted") };
    assert!(problem.message.contains(message), "\"{message}\" is not in: {problem}");
    let remedy = problem.help.as_deref().unwrap_or(&problem.message);
    assert!(remedy.contains(help), "\"{help}\" is no help in: {problem}");
    assert_eq!(problem.line, place.into(), "{problem}");
}

#[test]
fn every_example_runs_to_its_end() {
    let examples = examples();
    assert!(examples.len() >= 4);
    for (path, _) in examples {
        let scenario = Scenario::load(&path, &[]).unwrap_or_else(|problem| panic!("{problem}"));
        let resolved = resolve(scenario).unwrap_or_else(|problem| panic!("{problem}"));
        let outcome = run(&resolved);
        // One of them shows a deadlock.
        let stuck = path.ends_with("bcube_deadlock.toml");
        assert_eq!(matches!(outcome.stall, Some(fabric::run::Stall::Deadlock(_))), stuck, "{}", path.display());
        assert_eq!(outcome.complete(), !stuck, "{}: {:?}", path.display(), outcome.stall);
        assert_eq!(outcome.violations, Vec::<String>::new(), "{}", path.display());
        let mut received = outcome.flows.iter().filter(|flow| flow.received != Time::MAX);
        assert!(received.all(|flow| flow.received - flow.spec.start >= flow.spec.ideal));
    }
}

#[test]
fn the_manual_has_every_key_with_its_default_and_its_examples_run() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/scenario.md");
    let manual = std::fs::read_to_string(path).unwrap();
    let traffic = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/traffic.md");
    let traffic = std::fs::read_to_string(traffic).unwrap();
    // What stands below a title, up to the next one.
    let below = |title: &str, next: &str| {
        let found = [&manual, &traffic].into_iter().find_map(|text| text.split_once(&format!("\n{title}")));
        let (_, rest) = found.unwrap_or_else(|| panic!("no {title}"));
        rest.split(next).next().unwrap_or_default().to_string()
    };
    for shape in fabric::topology::shapes() {
        assert!(manual.contains(&format!("**`{}`**: {}\n", shape.name(), shape.about())), "{}", shape.name());
    }
    let mut missing = Vec::new();
    // `tailwater schemes` lists the parameters of the mechanisms.
    for section in crate::schema::sections().into_iter().filter(|section| !section.path.starts_with("scheme.")) {
        if section.keys.is_empty() {
            continue;
        }
        let lines = match (section.with, section.path.as_str(), section.many) {
            (Some((_, kind)), ..) => below(&format!("**`{kind}`**"), "\n**`"),
            (None, "", _) => below("## Top level\n", "\n## "),
            (None, "traffic", false) => below("### `[traffic]`\n", "\n### "),
            (None, path, false) => below(&format!("## `[{path}]`\n"), "\n## "),
            (None, path @ ("link" | "slow" | "collective" | "job"), true) => {
                below(&format!("## `[[{path}]]`\n"), "\n## ")
            }
            (None, path, true) => below(&format!("### `[[{path}]]`\n"), "\n### "),
        };
        for key in section.keys.iter().filter(|key| section.path != "topology" || key.name != "kind") {
            let row = crate::schema::row(key);
            if !lines.lines().any(|line| line == row) {
                let which = section.with.map_or("", |(_, kind)| kind);
                missing.push(format!("{}\t{which}\t{row}", section.path));
            }
        }
    }
    assert!(missing.is_empty(), "the manual lacks these rows:\n{}", missing.join("\n"));
    for preset in crate::presets::all() {
        assert!(manual.contains(&format!("| `{}` | {} |", preset.name, preset.about)), "{}", preset.name);
    }
    let mut examples = manual.split("```toml\n").skip(1).map(|rest| rest.split("```").next().unwrap()).peekable();
    assert!(examples.peek().is_some());
    for example in examples {
        let resolved = read(example, &[]).unwrap_or_else(|problem| panic!("{problem}\n{example}"));
        assert!(run(&resolved).complete(), "{example}");
    }
}

#[test]
fn what_is_not_written_has_its_default() {
    let Resolved { setup, choices, promised, notes, .. } = star(&[]);
    let (flow_control, congestion_control) = (choices.flow_control, choices.congestion_control);
    assert_eq!((flow_control.name(), congestion_control.name(), promised), ("pfc", "none", true));
    assert_eq!(notes, []);
    assert_eq!((setup.seed, setup.stop, setup.classes, setup.reroute), (1, Time::MAX, 1, Time::ZERO));
    assert_eq!((setup.nic.payload, setup.nic.header, setup.nic.ack_size), (1000, 62, 66));
    assert_eq!((setup.nic.ack_lane, setup.nic.timeout), (AckLane::Control, None));
    assert_eq!((setup.switch.quantum, setup.switch.egress_alpha, setup.switch.queues), (1062, None, 1));
    assert_eq!(setup.measure.sample, Some(Time::from_us(10)));
    assert!(setup.ports.iter().all(|port| port.ecn.is_none()));
    assert_eq!(setup.ports[4].share.alpha, 8192);
    let flow = setup.flows[0];
    assert_eq!((flow.window, flow.tuple.source, flow.tuple.destination), (0, 0x0b00_0101, 0x0b00_0001));
    assert_eq!((flow.tuple.source_port, flow.tuple.destination_port), (10_000, 4791));
}

#[test]
fn selective_repeat_has_its_own_timeouts_unless_one_is_written() {
    let irn = |sets: &[&str]| {
        let resolved = star(sets);
        let transport = resolved.choices.transport;
        (transport.patience(&resolved.setup), transport.cap(&resolved.setup).map(|(cap, _)| cap))
    };
    let us = Time::from_us;
    let window = star(&["scheme.window=bdp"]).setup.flows[0].window;
    assert_eq!(irn(&["scheme.preset=irn"]), (us(320), Some(window)));
    assert_eq!(irn(&["scheme.preset=hpcc+irn", "nic.timeout=50us"]).0, us(50));
    let own = irn(&["scheme.transport=irn", "nic.timeout=50us", "scheme.irn.rto_high=1ms", "scheme.irn.cap=7KB"]);
    assert_eq!(own, (us(1000), Some(7000)));
    assert_eq!(irn(&["scheme.preset=lossy"]).1, None);
}

#[test]
fn onramp_goes_on_top_of_any_congestion_control_and_is_refused_where_it_is_not_chosen() {
    for preset in ["onramp", "hpcc+onramp", "dcqcn+win+irn+onramp"] {
        let resolved = star(&[&format!("scheme.preset={preset}"), "scheme.onramp.threshold=20us"]);
        assert_eq!(resolved.choices.edge_control.name(), "onramp");
        assert!(resolved.choices.congestion_control.build().needs().delay);
    }
    let text = "[topology]\nkind = \"star\"\n[[flow]]\nsrc = 1\ndst = 0\nsize = \"1KB\"\n";
    let refused = |sets: &[&str]| read(text, sets).map(|_| ()).unwrap_err().to_string();
    assert!(refused(&["scheme.onramp.gain=0.5"]).contains("edge_control = \"onramp\""));
    assert!(refused(&["scheme.preset=onramp", "scheme.onramp.gain=2.0"]).contains("gain cannot be 2"));
    assert!(refused(&["scheme.edge_control=offramp"]).contains("did you mean \"onramp\""));
}

#[test]
fn what_breaks_the_order_of_flows_is_refused_by_what_keeps_it() {
    for balancing in ["spray", "letflow", "drill", "adaptive", "conga", "bitmap", "reps"] {
        for flow_control in ["dvl", "iofd"] {
            let sets = [format!("scheme.flow_control={flow_control}"), format!("scheme.load_balancing={balancing}")];
            let message = format!("{flow_control} keeps the packets of a flow in order, and {balancing} does not");
            refused(STAR, &sets.each_ref().map(String::as_str), None, &message, "\"ecmp\"");
        }
    }
    let conweave = "scheme.load_balancing=conweave";
    refused(STAR, &["scheme.flow_control=dvl", conweave, "scheme.conweave.timers=true"], None, "in order", "\"wcmp\"");
    refused(STAR, &["scheme.flow_control=iofd", conweave], None, "one path at a time", "\"wcmp\"");
    refused(STAR, &["scheme.flow_control=dvl", conweave], None, "one path at a time", "\"wcmp\"");
    for timers in ["scheme.conweave.timers=true", "scheme.conweave.timers=false"] {
        for (flow_control, because) in [("bfc", "have two queues"), ("floodgate", "take up the window")] {
            let set = format!("scheme.flow_control={flow_control}");
            refused(STAR, &[&set, conweave, timers], None, because, "\"pfc\" or \"sfc\"");
        }
        star(&["scheme.flow_control=sfc", conweave, timers]);
    }
    star(&["scheme.flow_control=iofd", "scheme.load_balancing=wcmp"]);
}

#[test]
fn a_salt_is_a_number_or_drawn_from_the_seed() {
    assert_eq!(star(&[]).setup.salt, 0);
    assert_eq!(star(&["scheme.salt=17", "seed=5"]).setup.salt, 17);
    let [one, two] = [1, 2].map(|seed| star(&["scheme.salt=seed", &format!("seed={seed}")]).setup.salt);
    assert!(one != two && one != 0 && two != 0);
    refused(STAR, &["scheme.salt=sand"], None, "expected \"seed\" or a whole number", "write seed or a whole number");
    refused(STAR, &["scheme.salt=-1"], None, "-1", "4294967295");
}

#[test]
fn a_preset_gives_way_to_what_is_written() {
    let resolved = star(&["scheme.preset=dctcp"]);
    let ecn = Ecn { min: 300_000, max: 300_000, probability: 1.0, by_port: false };
    assert_eq!(resolved.setup.ports[4].ecn, Some(ecn));
    assert!(resolved.setup.flows[0].window > 0);
    let resolved = star(&["scheme.preset=dctcp", "switch.ecn_max=500KB", "scheme.window=none"]);
    assert_eq!(resolved.setup.ports[4].ecn, Some(Ecn { max: 500_000, ..ecn }));
    assert_eq!(resolved.setup.flows[0].window, 0);
    let resolved = star(&["scheme.preset=lossy"]);
    assert_eq!((resolved.choices.flow_control.name(), resolved.promised), ("none", false));
    assert_eq!(resolved.setup.switch.egress_alpha, Some(65_536));
    assert_eq!(resolved.setup.nic.timeout, Some(Time::from_ms(1)));
    for preset in crate::presets::all() {
        let set = format!("scheme.preset={}", preset.name);
        let resolved = read(&home(preset.name), &[&set]).unwrap_or_else(|problem| panic!("{problem}"));
        assert!(run(&resolved).complete(), "{}", preset.name);
    }
}

#[test]
fn a_controller_that_needs_a_window_has_one() {
    let resolved = star(&["scheme.congestion_control=hpcc"]);
    let rtt = resolved.setup.flows[0].base_rtt;
    assert_eq!(resolved.setup.flows[0].window, Rate::from_gbps(100).bytes_in(rtt));
    assert_eq!(resolved.setup.nic.window, WindowRule::Scaled);
    assert_eq!((resolved.setup.nic.header, resolved.setup.nic.ack_size), (62 + 42, 66 + 28));
    let sets = ["scheme.congestion_control=hpcc", "scheme.window=none"];
    refused(STAR, &sets, None, "hpcc is defined only with a window", "bdp");
}

#[test]
fn a_packet_counting_controller_follows_the_payload_unless_it_is_set() {
    let packet = |sets: &[&str]| {
        let list = star(sets).choices.congestion_control.list();
        list.into_iter().find(|parameter| parameter.name == "packet").map(|parameter| parameter.value)
    };
    assert_eq!(packet(&["scheme.preset=dctcp", "nic.payload=4096B"]).as_deref(), Some("\"auto\""));
    let sets = ["scheme.preset=dctcp", "nic.payload=4096B", "scheme.dctcp.packet=7"];
    assert_eq!(packet(&sets).as_deref(), Some("7"));
    // Set to the same by hand, it does the same.
    let ends = |sets: &[&str]| run(&star(sets)).flows.iter().map(|flow| flow.received).collect::<Vec<_>>();
    let sets = ["scheme.preset=dctcp", "nic.payload=4096B", "scheme.dctcp.packet=4096"];
    assert_eq!(ends(&sets), ends(&sets[..2]));
}

#[test]
fn marks_come_later_on_links_faster_than_the_hosts() {
    let text = "[topology]\nkind = \"leaf-spine\"\nleaves = 2\nhosts_per_leaf = 1\nspines = 1\nuplink_rate = \"400Gbps\"\n\
                [[flow]]\nsrc = \"h0\"\ndst = \"h1\"\nsize = \"1KB\"\n[scheme]\npreset = \"dcqcn\"";
    let marks = |sets: &[&str]| -> Vec<u64> {
        let setup = read(text, sets).unwrap().setup;
        setup.ports[2..].iter().filter_map(|port| port.ecn.map(|ecn| ecn.min)).collect()
    };
    // Each leaf: host, spine. The spine: two leaves.
    assert_eq!(marks(&[]), [100_000, 400_000, 100_000, 400_000, 400_000, 400_000]);
    assert_eq!(marks(&["switch.ecn_scale=false"]), [100_000; 6]);
    assert_eq!(marks(&["switch.ecn=false"]), Vec::<u64>::new());
}

#[test]
fn flows_are_sorted_by_start_and_numbered_per_pair() {
    let text = "[topology]\nkind = \"star\"\n\
                [[flow]]\nsrc = 1\ndst = 0\nsize = \"2KB\"\nstart = \"5us\"\n\
                [[flow]]\nsrc = 1\ndst = 0\nsize = \"1KB\"\ncount = 2\n\
                [[flow]]\nsrc = \"h2\"\ndst = \"h0\"\nsize = \"3KB\"\nstart = \"5us\"\n";
    let flows = read(text, &[]).unwrap().setup.flows;
    let seen: Vec<_> = flows.iter().map(|flow| (flow.src.0, flow.size, flow.tuple.source_port)).collect();
    assert_eq!(seen, [(1, 1000, 10_000), (1, 1000, 10_001), (1, 2000, 10_002), (2, 3000, 10_000)]);
    // With queue pairs, messages of two hosts take them in turn; those of other hosts have their own.
    let ports = |pairs: &str| -> Vec<u16> {
        let flows = read(text, &[&format!("nic.queue_pairs={pairs}")]).unwrap().setup.flows;
        flows.iter().map(|flow| flow.tuple.source_port).collect()
    };
    assert_eq!(ports("1"), [10_000, 10_000, 10_000, 10_000]);
    assert_eq!(ports("2"), [10_000, 10_001, 10_000, 10_000]);
    assert_eq!(ports("auto"), [10_000, 10_001, 10_002, 10_000]);
}

#[test]
fn a_trace_and_a_graph_file_are_found_beside_the_scenario() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    let node = |name: &str, kind: &str| format!("[[node]]\nname = \"{name}\"\nkind = \"{kind}\"\n");
    let link = |a: &str| format!("[[link]]\nbetween = [\"{a}\", \"s\"]\nrate = \"10Gbps\"\ndelay = \"1us\"\n");
    let graph = [node("a", "host"), node("b", "host"), node("s", "switch"), link("a"), link("b")].concat();
    write("net.toml", &graph);
    write("flows.csv", "src,dst,size,start\nb,a,1KB,1us\n");
    let text = "[topology]\nkind = \"file\"\npath = \"net.toml\"\n[traffic]\ntrace = \"flows.csv\"\n\
                [[flow]]\nsrc = \"a\"\ndst = \"b\"\nsize = \"1KB\"\n";
    write("run.toml", text);
    let path = folder.path().join("run.toml");
    let load = |sets: &[String]| Scenario::load(&path, sets).and_then(resolve);
    let resolved = load(&[]).unwrap();
    assert_eq!((resolved.setup.flows.len(), resolved.setup.graph.links.len()), (2, 2));
    assert!(run(&resolved).complete());

    write("flows.csv", "src,dst,size,start\nb,a,1KB,1us\na,c,1KB,0us\n");
    let Err(problem) = load(&[]) else { panic!("host c is not there") };
    assert!(problem.file.ends_with("flows.csv"), "{problem}");
    assert_eq!((problem.line, problem.column), (Some(3), Some(3)));
    assert!(problem.help.as_deref().unwrap().contains("a and b"), "{problem}");

    let Err(problem) = load(&["traffic.trace=lost.csv".into()]) else { panic!("the trace is not there") };
    assert!(problem.to_string().starts_with("--set traffic.trace=lost.csv: trace: "), "{problem}");
    assert!(problem.message.contains("cannot be read"), "{problem}");
    assert!(problem.help.as_deref().unwrap().contains("folder of the scenario"), "{problem}");

    write("net.toml", &graph.replace("\"10Gbps\"", "\"10Gbs\""));
    let Err(problem) = load(&[]) else { panic!("the unit is wrong") };
    assert!(problem.file.ends_with("net.toml") && problem.line == Some(12), "{problem}");
}

#[test]
fn wrong_scenarios_are_refused_with_place_and_remedy() {
    let flow = |text: &str| STAR.replace("size = \"1MB\"", text);
    refused("[[flow]]\nsrc = 0\ndst = 1\nsize = \"1KB\"", &[], None, "no [topology]", "\"leaf-spine\"");
    refused("[topology]\n", &[], 1, "has no kind", "\"star\"");
    refused("[topology]\nkind = \"leafspine\"", &[], 2, "no topology \"leafspine\"", "\"leaf-spine\"?");
    refused("[topology]\nkind = \"star\"\nhosts = 0", &[], 3, "hosts is 0", "1 or more");
    refused(&format!("{STAR}[swich]\n"), &[], 8, "unknown key \"swich\"", "did you mean \"switch\"?");
    refused(&format!("{STAR}[switch]\nbufer = \"1MB\""), &[], 9, "unknown key \"bufer\" in [switch]", "\"buffer\"?");
    refused(&format!("{STAR}[switch]\nbuffer = \"1XB\""), &[], 9, "unknown unit \"XB\"", "a size in quotes");
    refused(&format!("{STAR}[switch]\nbuffer = 4"), &[], 9, "expected a size", "Packet memory");
    refused(&format!("{STAR}[switch]\nalpha = -1"), &[], 9, "alpha is -1", "0 to 128");
    refused(&flow("size = \"-1MB\""), &[], 7, "negative", "a size in quotes");
    refused(&flow("size = \"0B\""), &[], 7, "size is 0", "above zero");
    refused(&flow(""), &[], 4, "has no size", "add size = ");
    refused(&flow("sise = \"1KB\""), &[], 4, "has no size", "write size instead of \"sise\"");
    refused(&flow("size = \"1B\"\nclass = 1"), &[], 8, "class 1", "traffic.classes");
    refused(&flow("size = \"1B\"\ncount = 0"), &[], 8, "count is 0", "1 or more");
    refused(&flow("size = \"1B\"\nstart = \"200000000s\""), &[], 8, "too large", "a time");
    refused(&STAR.replace("\"h1\"", "\"h0\""), &[], 6, "h0 sends to itself", "two different hosts");
    refused(&STAR.replace("\"h1\"", "\"h9\""), &[], 5, "no node \"h9\"", "h0 … h3");
    refused(&STAR.replace("\"h1\"", "9"), &[], 5, "no node 9", "0 to 4");
    refused(&STAR.replace("\"h1\"", "\"sw0\""), &[], 5, "sw0 is a switch", "the hosts are h0, h1 … h3");
    refused("[topology]\nkind = \"star\"", &[], None, "no flows", "[[flow]]");
    refused(STAR, &["scheme.preset=hpc"], None, "no preset \"hpc\"", "\"hpcc\"?");
    refused(STAR, &["scheme.flow_control=pcf"], None, "there is no \"pcf\"", "\"pfc\"?");
    refused(STAR, &["scheme.congestion_control=bbr"], None, "there is no \"bbr\"", "dcqcn, hpcc");
    refused(STAR, &["scheme.hpcc.eta=0.9"], None, "which the scenario does not use", "congestion_control = \"hpcc\"");
    refused(STAR, &["scheme.pfc.frames=1"], None, "unknown key \"frames\" in [scheme.pfc]", "\"frame\"?");
    refused(STAR, &["scheme.pfc.frame=1MB"], None, "frame cannot be 1MB", "2048B");
    let dcqcn = "scheme.preset=dcqcn";
    refused(STAR, &[dcqcn, "scheme.dcqcn.alpha_interval=0ps"], None, "alpha_interval cannot be 0ps", "10ns");
    refused(STAR, &[dcqcn, "scheme.dcqcn.gain=1.5"], None, "gain cannot be 1.5", "0 to 1");
    refused(STAR, &[dcqcn, "scheme.dcqcn.hai=999999Tbps"], None, "hai cannot be", "100Tbps");
    refused(STAR, &["scheme.preset=dctcp", "scheme.dctcp.packet=0"], None, "packet cannot be 0", "1000");
    refused(STAR, &["scheme.preset=hpcc", "scheme.hpcc.eta=0"], None, "eta cannot be 0", "0.95");
    refused(STAR, &["scheme.none.x=1"], None, "unknown key \"none\"", "flow_control");
    refused(STAR, &["scheme.window=some"], None, "expected \"none\"", "bdp or a size");
    refused(STAR, &["stop=0ps"], None, "stop is 0ps", "auto");
    refused(STAR, &["traffic.classes=9"], None, "classes is 9", "1 to 8");
    refused(STAR, &["switch.buffer=4XB"], None, "unknown unit", "a size, such as 12MB");
    refused(STAR, &["topology.kind.x=4"], None, "topology.kind is a value", "--set topology.kind=");
    refused(STAR, &["buffer"], None, "has no \"=\"", "--set switch.buffer=4MB");
    refused(STAR, &["nic.payload=9001B"], None, "payload is 9001B", "1B to 9KB");
}

#[test]
fn a_buffer_that_cannot_hold_its_headroom_is_refused_with_one_that_can() {
    let Err(problem) = read(STAR, &["switch.buffer=100KB"]) else { panic!("the buffer is too small") };
    assert!(
        problem.to_string().starts_with("--set switch.buffer=100KB: the buffer of sw0 (100KB) cannot hold"),
        "{problem}"
    );
    let enough = problem.help.as_deref().unwrap().split('"').nth(1).unwrap();
    let resolved = star(&[&format!("switch.buffer={enough}")]);
    assert!(resolved.promised);
    let less = enough.parse::<Bytes>().unwrap().0 - 1000;
    assert!(read(STAR, &[&format!("switch.buffer={less}B")]).is_err());
    // Without an explicit key the place is the table, or the file.
    refused(STAR, &["traffic.classes=8", "switch.reserve=1MB"], None, "cannot hold", "fewer classes");
}

#[test]
fn headroom_in_cells_is_enough_for_packets_of_any_size() {
    let bytes = PauseLoop {
        rate: Rate::from_gbps(100),
        own: Rate::from_gbps(100),
        to_here: Time::from_us(1),
        to_neighbour: Time::from_us(3),
        largest: 1062,
        frame: 64,
        control: 0,
        classes: 1,
        other_frames: 0,
        smallest: 63,
        cell: 1,
        retry: Default::default(),
    };
    let flight = bytes.in_flight();
    assert_eq!(bytes.headroom(), flight + 2 * 1062);
    for cell in [48, 63, 64, 80, 96, 127, 208, 254, 1061, 1062, 1063, 4096] {
        let cells = PauseLoop { cell, ..bytes };
        assert_eq!(cells.headroom() % cell, 0);
        let taken = |size: u64| size.next_multiple_of(cell);
        // As many packets of one size as the link can bring, and the two besides.
        let worst = (63..=1062).map(|size| flight / size * taken(size)).max().unwrap() + 2 * taken(1062);
        assert!(cells.headroom() >= worst, "{cell}: {} {worst}", cells.headroom());
        // No more than what is left over of the last packet.
        assert!(cells.headroom() - worst <= 2 * cell, "{cell}: {} {worst}", cells.headroom());
    }
}

#[test]
fn memory_in_cells_is_whole_cells() {
    let resolved = star(&["switch.cell=208B", "switch.threshold=10000B", "switch.buffer=1000000B"]);
    let switch = &resolved.setup.switch;
    assert_eq!((switch.cell, switch.reserve, switch.resume_gap), (208, 20 * 208, 15 * 208));
    assert!(switch.pool.iter().flatten().all(|pool| pool % 208 == 0));
    assert!(resolved.setup.ports.iter().all(|port| port.share.headroom % 208 == 0));
    assert!(resolved.promised);
    let bytes = star(&["switch.buffer=1000000B"]);
    let most = |resolved: &Resolved| resolved.setup.ports.iter().map(|port| port.share.headroom).max();
    assert!(most(&resolved) > most(&bytes));
    let home = home("portfc");
    refused(&home, &["scheme.preset=portfc", "switch.cell=208B"], None, "byte by byte", "remove cell");
}

#[test]
fn hosts_far_from_their_nics_start_later_and_have_longer_ideal_times() {
    let (near, far) = (star(&[]), star(&["nic.send_latency=2us", "nic.receive_latency=3us"]));
    for (near, far) in near.setup.flows.iter().zip(&far.setup.flows) {
        assert_eq!((far.start - near.start, far.ideal - near.ideal), (Time::from_us(2), Time::from_us(5)));
        assert_eq!(far.base_rtt, near.base_rtt, "it is the NICs'");
    }
    let (near, far) = (run(&near), run(&far));
    for (near, far) in near.flows.iter().zip(&far.flows) {
        assert_eq!((far.start, far.received - near.received), (near.start, Time::from_us(5)));
        assert_eq!(far.acknowledged - near.acknowledged, Time::from_us(5));
    }
}

#[test]
fn notifications_have_an_effect_only_where_there_are_some() {
    let set = ["nic.cnp_interval=50us", "nic.cnp_delay=1us"];
    let idle = |preset: &str| {
        let preset = format!("scheme.preset={preset}");
        let resolved = star(&[&preset, set[0], set[1]]);
        let notes = resolved.notes.iter().filter(|note| note.contains("has no notifications")).count();
        (notes, resolved.setup.nic.notifications.interval)
    };
    assert_eq!(idle("dcqcn"), (0, Time::from_us(50)));
    assert_eq!(idle("hpcc"), (2, Time::ZERO));
}

#[test]
fn more_paths_than_a_switch_knows_are_said() {
    // By each of 33 ports up there are 33 paths to the other pod.
    let text = "[topology]\nkind = \"fat-tree\"\nk = 66\npods = 2\n\
                [[flow]]\nsrc = \"h0\"\ndst = \"h2177\"\nsize = \"1KB\"\n";
    let said = |balancing: &str| {
        let resolved = read(text, &[&format!("scheme.load_balancing={balancing}"), "switch.buffer=1GB"]).unwrap();
        resolved.notes.iter().any(|note| note.contains("knows 1024 of the 1089 paths from edge0 to edge65"))
    };
    assert_eq!(["conga", "conweave", "ecmp", "drill"].map(said), [true, true, false, false]);
}

#[test]
fn less_headroom_than_needed_takes_the_promise_back() {
    let auto = star(&[]);
    let headroom = auto.setup.ports[4].share.headroom as u64;
    let resolved = star(&[&format!("switch.headroom={headroom}B")]);
    assert!(resolved.promised && resolved.notes.is_empty());
    let resolved = star(&[&format!("switch.headroom={}B", headroom - 1)]);
    assert!(!resolved.promised);
    assert!(resolved.notes[0].contains(&format!("4 ports need (up to {headroom} B)")), "{:?}", resolved.notes);
    assert_eq!(resolved.setup.nic.timeout, Some(Time::from_ms(1)));
    let pool = |resolved: &Resolved| resolved.setup.switch.pool[4].unwrap();
    assert_eq!(pool(&auto), 12_000_000 - 4 * (headroom + 4096));
    assert_eq!(pool(&resolved), pool(&auto) + 4);
}

#[test]
fn faults_take_the_promise_back_and_bring_a_timeout() {
    let fault = |text: &str| read(&format!("{STAR}[[link]]\nbetween = [\"h0\", \"sw0\"]\n{text}"), &[]).unwrap();
    for text in ["loss = 0.1", "corruption = 0.1", "down = [[\"1us\", \"2us\"]]"] {
        let resolved = fault(text);
        assert!(!resolved.promised && resolved.notes.len() == 1, "{:?}", resolved.notes);
        assert_eq!(resolved.setup.nic.timeout, Some(Time::from_ms(1)));
    }
    let resolved = star(&["switch.unlimited=true", "scheme.flow_control=none"]);
    assert!(resolved.promised);
    assert_eq!((resolved.setup.switch.pool[4], resolved.setup.nic.timeout), (None, None));
    assert!(!star(&["switch.egress_alpha=0.5"]).promised);
    assert!(star(&["nic.ack_lane=data"]).promised);
    assert!(!star(&["nic.ack_lane=data", "traffic.classes=2"]).promised);
}

#[test]
fn links_repeat_as_the_scenario_says_for_all_and_for_each() {
    let retries = |text: &str| -> Vec<Option<Retry>> {
        let resolved = read(&format!("{STAR}{text}"), &[]).unwrap_or_else(|problem| panic!("{problem}"));
        resolved.setup.graph.links.iter().map(|link| link.retry).collect()
    };
    assert_eq!(retries(""), [None; 4]);
    assert_eq!(retries("[links]\nbit_error_rate = 1e-9\n"), [None; 4]);
    assert_eq!(retries("[links.retry]\n"), [Some(Retry::default()); 4]);
    let one = "[[link]]\nbetween = [\"h1\", \"sw0\"]\nretry = ";
    assert_eq!(retries(&format!("[links.retry]\n{one}false\n"))[..2], [Some(Retry::default()), None]);
    let text = format!("[links.retry]\non = false\nendless = true\nbytes = \"90KB\"\n{one}true\n");
    let own = Retry { replays: None, bytes: Some(90_000), ..Retry::default() };
    assert_eq!(retries(&text)[..2], [None, Some(own)]);
    let errors = read(
        &format!("{STAR}[links]\nbit_error_rate = 1e-9\n[[link]]\nbetween = [\"h1\", \"sw0\"]\nbit_error_rate = 0.0\n"),
        &[],
    );
    let errors: Vec<f64> = errors.unwrap().setup.graph.links.iter().map(|link| link.bit_errors).collect();
    assert_eq!(errors, [1e-9, 0.0, 1e-9, 1e-9]);
    refused(&format!("{STAR}[links.retry]\nbyte = \"9KB\"\n"), &[], 9, "unknown key \"byte\"", "bytes");
}

#[test]
fn a_link_may_have_a_rate_and_queues_of_its_own_in_each_direction() {
    let with = |link: &str| {
        let text = format!("{STAR}[[flow]]\nsrc = \"h0\"\ndst = \"h1\"\nsize = \"1MB\"\n{link}");
        read(&text, &["scheme.preset=dcqcn"]).unwrap_or_else(|problem| panic!("{problem}"))
    };
    let down = "[[link]]\nbetween = [\"h0\", \"sw0\"]\nrate_back = \"25Gbps\"\n";
    let resolved = with(&format!("{down}queues_back = 0.25\n"));
    let (fast, slow) = (Rate::from_gbps(100), Rate::from_gbps(25));
    let link = &resolved.setup.graph.links[0];
    assert_eq!((link.rates, link.depths), ([fast, slow], [1 << 16, 1 << 14]));
    assert_eq!((link.rate(NodeId(0)), link.rate_to(NodeId(0))), (fast, slow));
    // Only the switch's queue towards h0 is shorter, and marks earlier.
    let marks: Vec<u64> = resolved.setup.ports[4..].iter().map(|port| port.ecn.unwrap().min).collect();
    assert_eq!(marks, [25_000, 100_000, 100_000, 100_000]);
    // Towards h0 1000 packets take 339.84 ns each, but for the first link; from it 84.96 ns, and both ways 1 us and the pipeline of each link.
    let ideal = |dst: u32| resolved.setup.flows.iter().find(|flow| flow.dst == NodeId(dst)).unwrap().ideal;
    let usual = with("").setup.flows[0].ideal;
    assert_eq!(usual, ideal(1));
    assert_eq!(ideal(0).0 - usual.0, 1000 * (339_840 - 84_960));
    // Pauses to h0 take longer to be sent, while it sends as fast as others: the largest packet and three frames.
    let headroom = |resolved: &Resolved, port: usize| resolved.setup.ports[port].share.headroom as u64;
    let (own, others) = (headroom(&resolved, 4), headroom(&resolved, 5));
    assert_eq!(others, headroom(&with(""), 4));
    assert_eq!(own - others, 3 * (1062 + 3 * 64));
    // The ends may be written the other way round, and what is written later of both directions counts.
    let up = "[[link]]\nbetween = [\"sw0\", \"h0\"]\nrate = \"25Gbps\"\nrate_back = \"100Gbps\"\n";
    assert_eq!(with(up).setup.graph.links[0].rates, [fast, slow]);
    let both = "[[link]]\nbetween = [\"h0\", \"sw0\"]\nrate = \"40Gbps\"\n";
    assert_eq!(with(&format!("{down}{both}")).setup.graph.links[0].rates, [Rate::from_gbps(40); 2]);
    let said = resolved.describe();
    for expected in [
        "1 between tier 0 and tier 1: 100Gbps up and 25Gbps down, 1us, queues of 1 up and 0.25 down of their length",
        "at 100Gbps (25Gbps to the neighbour)",
    ] {
        assert!(said.contains(expected), "{expected}:\n{said}");
    }
    refused(&format!("{STAR}{down}queues = 0.0\n"), &[], 11, "queues is 0", "0.01");
    let plain = read(&format!("{STAR}{down}queues = 0.5\n"), &["scheme.preset=pfc"]).unwrap();
    assert!(plain.notes.iter().any(|note| note.contains("queues of links are given")), "{:?}", plain.notes);
}

#[test]
fn what_repeats_for_ever_is_promised_to_lose_nothing_with_headroom_for_it() {
    let with = |text: &str| read(&format!("{STAR}[links]\n{text}"), &["switch.buffer=32MB"]).unwrap();
    let headroom = |resolved: &Resolved| resolved.setup.ports[4].share.headroom as u64;
    let plain = with("");
    assert!(plain.promised && plain.setup.nic.timeout.is_none());
    // 100 Gb/s is 12.5 B a nanosecond. The port keeps up to two rounds, and as much may come once the pause is heard of.
    let endless = "[links.retry]\nendless = true\n";
    let retry = with(endless);
    let link = &retry.setup.graph.links[0];
    let limits = link.retry.unwrap().limits((link.rates[0], link.rates[1]), link.delay, link.delay, 1062);
    assert!(
        retry.promised && retry.setup.nic.timeout.is_none() && headroom(&retry) > headroom(&plain) + limits.bytes / 2
    );
    // Errors make pauses late, and headroom larger, as often as is worth it.
    let few = with(&format!("bit_error_rate = 1e-10\n{endless}"));
    let more = with(&format!("bit_error_rate = 1e-8\n{endless}"));
    assert!(few.promised && more.promised, "{:?}", more.notes);
    assert!(headroom(&retry) < headroom(&few) && headroom(&few) < headroom(&more));
    assert!(headroom(&few) - headroom(&retry) >= limits.bytes + link.rates[0].bytes_over(limits.round) - 2);
    let noted = |resolved: &Resolved, expected: &str| {
        assert!(
            !resolved.promised && resolved.notes.iter().any(|note| note.contains(expected)),
            "{:?}",
            resolved.notes
        );
    };
    noted(
        &with(&format!("bit_error_rate = 1e-8\n{endless}pause_replays = 0\n")),
        "more often than headroom allows for",
    );
    noted(&with("bit_error_rate = 1e-8\n[links.retry]\n"), "links may give up repeating, unless they are endless");
    noted(&with("bit_error_rate = 1e-8\n"), "lose pause and resume frames too");
}

#[test]
fn a_run_that_could_never_end_needs_a_stop() {
    let fault = |text: &str| format!("{STAR}[[link]]\nbetween = [\"h0\", \"sw0\"]\n{text}");
    refused(&fault("loss = 1"), &[], 8, "nothing passes the link h0 to sw0", "stop");
    refused(&fault("down = [[\"1ms\"]]"), &[], 4, "fail for good", "stop");
    assert!(read(&fault("down = [[\"1ms\"]]"), &["stop=2ms"]).is_ok());
    assert!(read(&fault("down = [[\"1ms\"]]").replace("\"h0\", ", "\"h3\", "), &[]).is_ok());
}

#[test]
fn a_receiver_that_would_wait_for_ever_is_refused() {
    refused(STAR, &["nic.ack_every=9", "scheme.window=8KB"], None, "fewer than ack_every = 9", "ack_every = 1");
    let sets = ["nic.ack_every=2", "scheme.preset=dcqcn+win"];
    refused(STAR, &sets, None, "shrinks with the rate", "ack_every = 1");
    refused(STAR, &["nic.ack_every=2", "scheme.preset=swift"], None, "swift sets windows", "ack_every = 1");
    refused(
        STAR,
        &["scheme.window=8KB", "scheme.preset=swift"],
        None,
        "sets the window by itself",
        "window = \"none\"",
    );
    for sets in [vec!["nic.ack_every=9"], vec!["nic.ack_every=8", "scheme.window=8KB"]] {
        assert!(run(&star(&sets)).complete());
    }
}

#[test]
fn hosts_that_no_switch_connects_cannot_talk() {
    let text = "[topology]\nkind = \"bcube\"\n[[flow]]\nsrc = 0\ndst = 5\nsize = \"1KB\"\n";
    // In a BCube hosts forward; in a graph file they do if it says so.
    assert!(run(&read(text, &[]).unwrap()).complete());
    let folder = tempfile::tempdir().unwrap();
    let link =
        |a: &str, b: &str| format!("[[link]]\nbetween = [\"{a}\", \"{b}\"]\nrate = \"10Gbps\"\ndelay = \"1us\"\n");
    let node = |name: &str, kind: &str| format!("[[node]]\nname = \"{name}\"\nkind = \"{kind}\"\n");
    let nodes = ["a", "b", "c"].map(|name| node(name, "host")).concat() + &node("s", "switch") + &node("t", "switch");
    let links = [("a", "s"), ("b", "s"), ("b", "t"), ("c", "t")].map(|(a, b)| link(a, b)).concat();
    let text = "[topology]\nkind = \"file\"\npath = \"net.toml\"\n[[flow]]\nsrc = \"a\"\ndst = \"c\"\nsize = \"1KB\"\n";
    let load = |head: &str| {
        std::fs::write(folder.path().join("net.toml"), format!("{head}{nodes}{links}")).unwrap();
        Scenario::parse("a.toml", text, folder.path(), &[]).and_then(resolve)
    };
    let problem = load("").unwrap_err();
    assert!(problem.message.contains("no path from a to c"), "{problem}");
    assert!(problem.help.as_deref().unwrap().contains("hosts do not forward"), "{problem}");
    assert!(run(&load("hosts_forward = true\n").unwrap()).complete());
}

#[test]
fn a_fabric_that_is_too_large_is_refused_before_its_traffic_is_drawn() {
    // The traffic would be refused, too, but only after some work.
    let load = "[[load]]\nsizes = \"hadoop\"\nload = 0.5\nduration = \"1s\"\n";
    for (topology, message) in [
        ("kind = \"star\"\nhosts = 65536", "more than 65535 ports at one switch"),
        (
            "kind = \"leaf-spine\"\nleaves = 2\nhosts_per_leaf = 65535\nspines = 1",
            "more than 65535 ports at one switch",
        ),
        ("kind = \"fat-tree\"\nk = 74", "routing tables"),
        ("kind = \"leaf-spine\"\nleaves = 900\nhosts_per_leaf = 1000", "routing tables"),
        ("kind = \"bcube\"\nn = 256\nk = 1", "routing tables"),
    ] {
        let problem = read(&format!("[topology]\n{topology}\n{load}"), &[]).unwrap_err();
        assert!(problem.message.contains(message), "{problem}");
        assert!(problem.help.as_deref().unwrap().contains("lower "), "{problem}");
    }
}

#[test]
fn memory_that_holds_no_packet_is_refused_before_paths_are_looked_for() {
    // No path joins the hosts, either, which takes longest to find out.
    let folder = tempfile::tempdir().unwrap();
    let node = |name: &str, kind: &str| format!("[[node]]\nname = \"{name}\"\nkind = \"{kind}\"\n");
    let link =
        |a: &str, b: &str| format!("[[link]]\nbetween = [\"{a}\", \"{b}\"]\nrate = \"10Gbps\"\ndelay = \"1us\"\n");
    let nodes = [("a", "host"), ("b", "host"), ("c", "host"), ("s", "switch")].map(|(name, kind)| node(name, kind));
    let links = [("a", "s"), ("s", "b"), ("b", "c")].map(|(a, b)| link(a, b));
    std::fs::write(folder.path().join("net.toml"), nodes.concat() + &links.concat()).unwrap();
    let text = "[topology]\nkind = \"file\"\npath = \"net.toml\"\n[[flow]]\nsrc = \"a\"\ndst = \"c\"\nsize = \"1KB\"\n";
    let sets = ["scheme.flow_control=none", "switch.egress_alpha=0", "switch.reserve=0B"].map(String::from);
    let problem = Scenario::parse("a.toml", text, folder.path(), &sets).and_then(resolve).unwrap_err();
    assert!(problem.message.contains("a queue may never hold even one packet"), "{problem}");
}

#[test]
fn a_fabric_beyond_all_memory_is_refused() {
    let text = "[topology]\nkind = \"leaf-spine\"\nleaves = 30000\nhosts_per_leaf = 1\nspines = 1\n\
                [[flow]]\nsrc = 0\ndst = 1\nsize = \"1KB\"\n";
    refused(text, &[], 1, "routing tables", "smaller");
    refused(
        STAR,
        &["switch.queues=8192", "traffic.classes=8", "topology.hosts=5000"],
        None,
        "queues",
        "lower switch.queues",
    );
}

#[test]
fn the_sheet_says_what_will_run() {
    let text = star(&["scheme.preset=dcqcn+win", "name=a test", "switch.headroom=1KB"]).describe();
    let expected = [
        "scenario        a test\n",
        "topology        star: hosts 4, rate 100Gbps, delay 1us\n",
        "nodes           4 hosts, 1 switch\n",
        "links           4 between tier 0 and tier 1: 100Gbps, 1us\n",
        "buffer          sw0, 4 ports: 12MB, of which 11.98MB shared; per port and class 1KB headroom, 4.096KB reserve\n",
        "scheme          flow control pfc, congestion control dcqcn (preset dcqcn+win)\n",
        "  pfc           frame = \"64B\", pause = \"auto\", watchdog = false, detection = \"200us\", restoration = \"200us\"\n",
        "window          52.26KB (one BDP), scaled\n",
        "promise         none; see the notes\n",
        "flows           1 flow, 1MB in all, sizes 1MB, starts 0ps\n",
        "base RTT        4.18us\n",
        "stop            when all flows are finished\n",
        "note            headroom is less than",
    ];
    for line in expected {
        assert!(text.contains(line), "{line} is not in:\n{text}");
    }
    for (path, _) in examples() {
        let text = resolve(Scenario::load(&path, &[]).unwrap()).unwrap().describe();
        assert!(text.lines().all(|line| line.len() == line.trim_end().len()), "{text}");
    }
}

/// Twenty flows between two hosts, one after the other: each takes the path that was predicted for it.
#[track_caller]
fn paths_are_predicted(topology: &str, base: &Path) {
    let mut text = topology.to_string();
    for number in 0..20 {
        text += &format!("[[flow]]\nsrc = 0\ndst = 1\nsize = \"7KB\"\nstart = \"{number}ms\"\n");
    }
    let resolved = resolve(Scenario::parse("a.toml", &text, base, &[]).unwrap()).unwrap();
    let outcome = run(&resolved);
    let mut ideals: Vec<Time> = Vec::new();
    for flow in &outcome.flows {
        assert_eq!(flow.received - flow.spec.start, flow.spec.ideal);
        ideals.push(flow.spec.ideal);
    }
    ideals.sort();
    ideals.dedup();
    assert_eq!(ideals.len(), 2, "both paths are taken");
}

#[test]
fn the_path_of_a_flow_is_the_one_the_fabric_takes() {
    let slow =
        |a: &str, b: &str| format!("[[link]]\nbetween = [\"{a}\", \"{b}\"]\ndelay = \"5us\"\nrate = \"10Gbps\"\n");
    let leaf_spine = "[topology]\nkind = \"leaf-spine\"\nleaves = 2\nhosts_per_leaf = 1\nspines = 2\n";
    paths_are_predicted(&format!("{leaf_spine}{}", slow("leaf0", "spine1")), Path::new("/nowhere"));

    // Two hosts with a link to each of two switches: the host chooses.
    let folder = tempfile::tempdir().unwrap();
    let node = |name: &str, kind: &str| format!("[[node]]\nname = \"{name}\"\nkind = \"{kind}\"\n");
    let fast = |a: &str, b: &str| slow(a, b).replace("5us", "1us");
    let nodes = [node("a", "host"), node("b", "host"), node("s", "switch"), node("t", "switch")].concat();
    let links = [fast("a", "s"), fast("b", "s"), slow("a", "t"), slow("b", "t")].concat();
    std::fs::write(folder.path().join("net.toml"), nodes + &links).unwrap();
    paths_are_predicted("[topology]\nkind = \"file\"\npath = \"net.toml\"\n", folder.path());
}

/// A fabric of its own with one flow, or several to the same host.
fn fabric(kind: &str, rates: (u64, u64), delay: u64, pipeline: u64, payload: u64) -> String {
    let (host, other) = rates;
    let topology = match kind {
        "star" => format!("hosts = 6\nrate = \"{host}Gbps\"\ndelay = \"{delay}ns\""),
        "dumbbell" => format!(
            "left = 5\nright = 1\nhost_rate = \"{host}Gbps\"\nhost_delay = \"{delay}ns\"\nbottleneck_rate = \"{other}Gbps\""
        ),
        _ => format!(
            "leaves = 3\nhosts_per_leaf = 2\nspines = 2\nhost_rate = \"{host}Gbps\"\nuplink_delay = \"{delay}ns\"\nuplink_rate = \"{other}Gbps\""
        ),
    };
    format!(
        "[topology]\nkind = \"{kind}\"\n{topology}\n[switch]\npipeline = \"{pipeline}ns\"\n[nic]\npayload = \"{payload}B\"\n"
    )
}

fn flow(src: u32, dst: u32, size: u64, class: u32) -> String {
    format!("[[flow]]\nsrc = {src}\ndst = {dst}\nsize = \"{size}B\"\nclass = {class}\n")
}

#[test]
fn the_ideal_to_the_last_ack_is_that_of_the_bfc_authors_and_headers() {
    let fabric = "[topology]\nkind = \"leaf-spine\"\n";
    for packets in [1, 10, 100, 1000] {
        // Round trip, and packets of 80 ns that are stored and forwarded on the path: within a rack, and to another.
        for (dst, theirs) in [(1, 4_000 + 80 * (packets + 1)), (16, 8_000 + 80 * (packets + 3))] {
            let resolved = read(&format!("{fabric}{}", flow(0, dst, packets * 1000, 0)), &[]).unwrap();
            let ratio = resolved.setup.flows[0].ideal_acknowledged.0 as f64 / (theirs * 1000) as f64;
            assert!((1.0..1.07).contains(&ratio), "{packets} packets to h{dst}: {ratio}");
        }
    }
}

fn kinds() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec!["star", "dumbbell", "leaf-spine"])
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_flow_alone_takes_its_ideal_time_and_its_base_round_trip(
        kind in kinds(),
        rates in (1u64..400, 1u64..400),
        delay in 1u64..3000,
        pipeline in 0u64..500,
        payload in 1u64..4000,
        packets in 1u64..40,
        last in 0u64..4000,
        preset in prop::sample::select(vec!["pfc", "hpcc", "timely"]),
    ) {
        let size = packets * payload - last % payload;
        let text = fabric(kind, rates, delay, pipeline, payload);
        // Without end, because a slow link after a fast one fills any memory and PFC would slow the flow down.
        let sets = ["switch.unlimited=true", &format!("scheme.preset={preset}"), "scheme.window=1GB"];
        let one = read(&format!("{text}{}", flow(0, 5, size, 0)), &sets[..]).unwrap();
        let outcome = run(&one);
        // A controller may slow a flow down that meets no other, if its first link is the faster one.
        if preset == "pfc" || packets == 1 {
            prop_assert_eq!(outcome.flows[0].received, one.setup.flows[0].ideal);
        }
        prop_assert!(outcome.flows[0].received >= one.setup.flows[0].ideal);
        let full = read(&format!("{text}{}", flow(0, 5, payload, 0)), &sets[..]).unwrap();
        prop_assert_eq!(run(&full).flows[0].acknowledged, full.setup.flows[0].base_rtt);
    }

    #[test]
    fn the_headroom_derived_is_enough_to_lose_nothing(
        kind in kinds(),
        rates in (1u64..400, 1u64..400),
        delay in 1u64..3000,
        pipeline in 0u64..500,
        payload in 200u64..4000,
        sizes in prop::collection::vec(1u64..60_000, 12),
        classes in 1u32..4,
        slow in 1u64..100,
        alpha in prop::sample::select(vec![0.0, 0.01, 0.125, 1.0, 16.0]),
        reserve in prop::sample::select(vec![0, 1000, 4096]),
        resume_gap in prop::sample::select(vec![0, 3072]),
    ) {
        let mut text = fabric(kind, rates, delay, pipeline, payload);
        text += &format!("[traffic]\nclasses = {classes}\n");
        // A slow receiver, and traffic in the other direction that the pauses have to wait for.
        let last = if kind == "star" { "sw0" } else if kind == "dumbbell" { "sw1" } else { "leaf2" };
        text += &format!("[[link]]\nbetween = [5, \"{last}\"]\nrate = \"{slow}Gbps\"\n");
        for (number, size) in (0u32..).zip(&sizes) {
            text += &flow(number % 5, 5, *size, number % classes);
            text += &flow((number + 1) % 5, number % 5, *size, number % classes);
        }
        let sets = [
            format!("switch.alpha={alpha}"),
            format!("switch.reserve={reserve}B"),
            format!("switch.resume_gap={resume_gap}B"),
        ];
        let sets: Vec<&str> = sets.iter().map(String::as_str).collect();
        // The smallest memory that is accepted, so that every port is paused again and again.
        let small = [sets.as_slice(), &["switch.buffer=1B"]].concat();
        let Err(problem) = read(&text, &small) else { panic!("one byte is not enough") };
        let buffer = format!("switch.buffer={}", problem.help.as_deref().unwrap().split('"').nth(1).unwrap());
        let resolved = read(&text, &[sets.as_slice(), &[&buffer]].concat()).unwrap();
        prop_assert!(resolved.promised);
        let outcome = run(&resolved);
        prop_assert_eq!(&outcome.violations, &Vec::<String>::new());
        prop_assert_eq!(outcome.counts.dropped_full, 0);
        prop_assert!(outcome.complete(), "{:?}", outcome.stall);
    }
}

/// Reads and, where the fabric is small, resolves. Nothing may panic.
fn exercise(text: &str, sets: &[String]) {
    // A digit too many makes a fabric or a number of flows that is allowed and slow.
    let digits = |text: &str| text.split(|c: char| !c.is_ascii_digit()).any(|run| run.len() > 4);
    if digits(text) || sets.iter().any(|set| digits(set)) {
        return;
    }
    if let Ok(scenario) = Scenario::parse("a", text, Path::new("/nowhere"), sets)
        && scenario.graph.nodes.len() < 2_000
        && scenario.traffic.flows.len() < 10_000
        && let Ok(resolved) = resolve(scenario)
    {
        _ = resolved.describe();
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn no_text_makes_reading_or_resolving_panic(
        text in "\\PC*",
        which in 0usize..64,
        edits in prop::collection::vec((any::<prop::sample::Index>(), 0usize..6, "[a-z0-9\"=\\[\\]. _\n-]{0,3}"), 1..4),
        set in "(switch|nic|scheme|topology|flow.0|link.0|traffic|measure)\\.[a-z_]{1,12}=[a-zA-Z0-9.\"\\[\\]-]{1,8}",
    ) {
        exercise(&text, &[]);
        let examples = examples();
        let mut changed: Vec<char> = examples[which % examples.len()].1.chars().collect();
        for (place, cut, piece) in edits {
            let from = place.index(changed.len());
            let to = (from + cut).min(changed.len());
            changed.splice(from..to, piece.chars());
        }
        let changed: String = changed.into_iter().collect();
        exercise(&changed, &[]);
        exercise(&changed, std::slice::from_ref(&set));
        exercise(STAR, &[set]);
    }

    #[test]
    fn no_value_of_any_key_makes_resolving_panic(
        which in any::<prop::sample::Index>(),
        preset in prop::sample::select(crate::presets::all().iter().map(|preset| preset.name).collect::<Vec<_>>()),
        value in prop::sample::select(vec![
            "0", "1", "-1", "2.5", "nan", "1e300", "9223372036854775807", "true", "auto", "0B", "1B", "1GB", "1000GB", "18446744073709551615B",
            "0ps", "1ps", "1s", "1000000s", "18446744073709551615ps", "0bps", "1bps", "100Tbps", "18446744073709551615bps", "none", "bdp", "[]", "[1]",
        ]),
    ) {
        let text = home(preset);
        let resolved = read(&text, &[&format!("scheme.preset={preset}")]).unwrap_or_else(|problem| panic!("{problem}"));
        let own_flow_control = format!("scheme.{}", resolved.choices.flow_control.name());
        let tables: Vec<(&str, Vec<engine::Parameter>)> = vec![
            ("switch", super::SwitchSettings::default().list()),
            ("nic", super::NicSettings::default().list()),
            ("measure", super::MeasureSettings::default().list()),
            (&own_flow_control, resolved.choices.flow_control.list()),
            ("topology", fabric::topology::shape("star").unwrap().list()),
        ];
        let own = format!("scheme.{}", resolved.choices.congestion_control.name());
        let mut keys: Vec<String> = tables.iter().flat_map(|(table, list)| list.iter().map(move |p| format!("{table}.{}", p.name))).collect();
        keys.extend(resolved.choices.congestion_control.list().iter().map(|parameter| format!("{own}.{}", parameter.name)));
        keys.extend(["seed", "stop", "flow.0.size", "flow.0.start", "flow.0.class", "scheme.window", "traffic.classes"].map(String::from));
        let set = format!("{}={value}", keys[which.index(keys.len())]);
        if let Ok(resolved) = read(&text, &[&format!("scheme.preset={preset}"), &set]) {
            _ = resolved.describe();
        }
    }
}

#[test]
fn a_switch_that_can_never_take_in_a_packet_is_refused() {
    let sets = ["switch.alpha=0", "switch.headroom=0B", "switch.reserve=0B"];
    refused(STAR, &sets, None, "can never take in a packet", "alpha");
    let sets = ["switch.alpha=0", "switch.headroom=0B", "switch.reserve=2KB"];
    assert!(run(&star(&sets)).complete());
}

#[test]
fn ndp_goes_with_no_other_control_and_says_what_it_ignores() {
    let ndp = ["scheme.transport=ndp", "scheme.flow_control=none"];
    refused(STAR, &ndp[..1], None, "pfc does not go with it", "write flow_control = \"none\"");
    let with = |set: &'static str| [&ndp[..], &[set]].concat();
    refused(STAR, &with("scheme.congestion_control=dcqcn"), None, "dcqcn does not go", "congestion_control = \"none\"");
    refused(STAR, &with("scheme.window=10KB"), None, "a window does not go", "window = \"none\"");
    refused(STAR, &with("scheme.ndp.queue=0"), None, "queue cannot be 0", "1 to 1000000");
    refused(STAR, &["scheme.ndp.queue=4"], None, "which the scenario does not use", "transport = \"ndp\"");
    let resolved = star(&with("nic.ack_every=4"));
    assert!(resolved.notes.iter().any(|note| note.contains("nic.ack_every has no effect")), "{:?}", resolved.notes);
    let outcome = run(&resolved);
    assert!(outcome.complete() && outcome.counts.acks == 1000);
    // Alone in the network it takes the ideal time, with the window that is derived.
    let flow = &outcome.flows[0];
    assert_eq!(flow.received - flow.spec.start, flow.spec.ideal);
    assert_eq!(resolved.setup.nic.timeout, Some(Time::from_ms(50)));
    let own = star(&with("nic.timeout=2ms"));
    assert_eq!(own.setup.nic.timeout, Some(Time::from_ms(2)));
    refused(
        STAR,
        &[&ndp[..], &["nic.payload=1B", "flow.0.size=5GB"]].concat(),
        4,
        "cannot number the packets",
        "larger payload",
    );
}

/// The notes of the star with these changes.
#[track_caller]
fn notes(sets: &[&str]) -> Vec<String> {
    star(sets).notes.iter().map(ToString::to_string).collect()
}

#[test]
fn a_key_without_effect_is_noted_with_the_reason() {
    let noted = |sets: &[&str], key: &str, why: &str| {
        let notes = notes(sets);
        let expected = format!("{key} has no effect: {why}");
        assert!(notes.iter().any(|note| note.contains(&expected)), "no \"{expected}\" in {notes:?}");
        let keys = star(sets).notes.into_iter().filter_map(|note| note.idle).collect::<Vec<_>>();
        assert_eq!(keys, [key], "{sets:?}");
    };
    noted(&["switch.unlimited=true", "switch.buffer=4MB"], "switch.buffer", "memory is unlimited");
    noted(&["scheme.flow_control=none", "switch.alpha=1"], "switch.alpha", "flow control none pauses no neighbour");
    noted(&["scheme.flow_control=none", "switch.resume_gap=1KB"], "switch.resume_gap", "flow control none pauses");
    noted(&["switch.sharing=static", "switch.alpha=1"], "switch.alpha", "switch.sharing is \"static\"");
    noted(&["scheme.pfc.detection=1ms"], "scheme.pfc.detection", "scheme.pfc.watchdog is false");
    noted(
        &["switch.scheduler=round-robin", "switch.quantum=2KB"],
        "switch.quantum",
        "switch.scheduler is \"round-robin\"",
    );
    noted(&["switch.ecn_max=500KB"], "switch.ecn_max", "nobody marks for congestion control none");
    noted(
        &["scheme.preset=dcqcn", "switch.ecn=false", "switch.ecn_max=500KB"],
        "switch.ecn_max",
        "switch.ecn is false",
    );
    noted(&["scheme.window_rule=fixed"], "scheme.window_rule", "flows have no window");
    noted(&["measure.series=2us"], "measure.series", "measure.ports and measure.flows name nothing");
    noted(&["measure.capture_packets=5"], "measure.capture_packets", "measure.capture names no port");
    noted(&["scheme.preset=bfc", "switch.queues=4"], "switch.queues", "bfc lays out its own");
    noted(&["nic.forward_rate=1Gbps"], "nic.forward_rate", "no host of this fabric forwards");
}

#[test]
fn a_key_with_effect_is_not_noted_and_neither_is_one_of_the_preset() {
    for sets in [
        &["switch.buffer=4MB", "switch.alpha=1", "switch.resume_gap=1KB", "switch.headroom=40KB"][..],
        &["scheme.pfc.watchdog=true", "scheme.pfc.detection=1ms"],
        &["scheme.preset=dcqcn", "switch.ecn_max=500KB"],
        &["switch.ecn=true", "switch.ecn_max=500KB", "switch.quantum=2KB"],
        &["measure.ports=hosts", "measure.series=2us"],
        &["scheme.window=bdp", "scheme.window_rule=fixed"],
    ] {
        let idle: Vec<_> = star(sets).notes.into_iter().filter_map(|note| note.idle).collect();
        assert_eq!(idle, Vec::<String>::new(), "{sets:?}");
    }
    for preset in crate::presets::all() {
        let set = format!("scheme.preset={}", preset.name);
        let resolved = read(&home(preset.name), &[&set]).unwrap_or_else(|problem| panic!("{problem}"));
        let idle: Vec<_> = resolved.notes.into_iter().filter_map(|note| note.idle).collect();
        assert_eq!(idle, Vec::<String>::new(), "{set}");
    }
}

#[test]
fn every_condition_of_a_key_is_one_that_can_be_told() {
    use crate::settings::under::*;
    let known = [MEMORY, THRESHOLDS, FOLLOWING, PAUSES, QUEUES, MARKS, NOTIFIED, FORWARDING, WINDOW, SERIES, CAPTURE];
    for section in crate::schema::sections() {
        for key in &section.keys {
            for only in &key.only {
                match only {
                    engine::Only::Under(words) => assert!(known.contains(words), "{words}"),
                    engine::Only::Beside { key, value } => {
                        let other = section.key(key).unwrap_or_else(|| panic!("{} has no {key}", section.path));
                        assert!(!value.is_empty() && !section.many, "{other:?}");
                    }
                }
            }
        }
    }
}

#[test]
fn a_load_on_rails_is_a_share_of_what_hosts_can_send_into_the_network() {
    // 16 accelerators with 400 Gbps each, and 4 rail switches with 2 links of 800 Gbps: 6.4 Tbps of both. Of 15 others, 3 are in the server and 3 on the rail.
    let rails = "[topology]\nkind = \"rail-optimised\"\nservers = 4\nrails = 4\nspines = 2\n";
    let text = |load: f64| {
        format!("{rails}[[load]]\nsizes = \"20KB\"\nload = {load}\narrivals = \"fixed\"\nduration = \"1ms\"\n")
    };
    let read = |text: &str| resolve(Scenario::parse("a.toml", text, Path::new("/nowhere"), &[]).unwrap()).unwrap();
    let groups = Scenario::parse("a.toml", &text(0.3), Path::new("/nowhere"), &[]).unwrap().groups();
    let near = |found: Option<f64>, expected: f64| {
        assert!((found.unwrap() / expected - 1.0).abs() < 0.02, "{found:?}, not {expected}");
    };
    near(groups[0].of_hosts, 0.3);
    near(groups[0].of_core, 0.3);
    near(groups[0].across_core, 0.3 * 9.0 / 15.0);
    assert!(read(&text(0.3)).notes.iter().all(|note| !note.contains("passes the core")));
    // With a quarter of the links above rails, 0.3 of the hosts' is 0.72 of the core, and 0.45 is more than it carries.
    let narrow = |load: f64| text(load).replace("spines = 2", "spines = 2\nuplink_rate = \"200Gbps\"");
    assert!(read(&narrow(0.3)).notes.iter().all(|note| !note.contains("passes the core")));
    let notes = read(&narrow(0.45)).notes;
    assert!(notes.iter().any(|note| note.contains("what passes the core is 10")), "{notes:?}");
}

#[test]
fn a_link_that_is_too_hasty_may_lose_something_and_one_that_is_down_for_a_moment_does_not_fail() {
    let fallible = |retry: &str| {
        let resolved =
            read(&format!("{STAR}[links.retry]\n{retry}"), &[]).unwrap_or_else(|problem| panic!("{problem}"));
        assert_eq!(resolved.promised, !resolved.setup.graph.fallible() && !retry.contains("down"), "{retry}");
        resolved.setup.graph.fallible()
    };
    assert!(!fallible("") && !fallible("timer = \"1ms\"\n") && !fallible("data_age = \"1ms\"\n"));
    assert!(fallible("data_age = \"1us\"\n") && fallible("timer = \"1us\"\n"));
    assert!(!fallible("data_age = \"1us\"\ntimer = \"1us\"\nendless = true\n"));
    let down = "[[link]]\nbetween = [\"h0\", \"sw0\"]\ndown = [[\"1us\", \"3us\"]]\n";
    assert!(fallible(down) && fallible(&format!("link_lost = \"2us\"\n{down}")));
    assert!(!fallible(&format!("link_lost = \"2001ns\"\n{down}")));
}

#[test]
fn what_is_odd_but_legal_is_noted() {
    let noted = |text: &str, sets: &[&str], expected: &str| {
        let notes = read(text, sets).unwrap_or_else(|problem| panic!("{problem}")).notes;
        let found = notes.iter().filter(|note| note.contains(expected)).count();
        assert_eq!(found, 1, "\"{expected}\" in {notes:?}");
    };
    let with = |tables: &str| format!("{STAR}{tables}");
    let load = |load: f64| format!("[[load]]\nsizes = \"10KB\"\nload = {load}\nduration = \"20us\"\n");
    noted(&with(&load(1.2)), &[], "load.0.load asks for 120 % of what the links of the hosts that send carry");
    noted(&with(&load(0.6).repeat(2)), &[], "what is drawn asks together for 120 % of the hosts' links");
    let incast = "[[incast]]\ndegree = 8\nsize = \"80KB\"\nto = \"h0\"\n";
    noted(&with(incast), &[], "incast.0.degree is 8, and 3 hosts can send");
    noted(
        &with("[[slow]]\nhost = \"h0\"\nrate = \"200Gbps\"\n"),
        &[],
        "slow.0.rate is 200Gbps: the link of h0 brings 100Gbps",
    );
    noted(STAR, &["scheme.window=500B"], "a window of 500 B is less than a packet of 1000 B");
    noted(STAR, &["switch.alpha=0"], "switch.alpha is 0");
    noted(STAR, &["scheme.preset=dcqcn", "switch.ecn=false"], "switch.ecn is false: dcqcn gets no marks");
    noted(STAR, &["scheme.load_balancing=spray"], "overtake each other");
    let storm = ["scheme.preset=uec-nscc", "scheme.congestion_control=timely"];
    noted(STAR, &storm, "timely does not slow down for packets that are trimmed");
    let narrow =
        "[topology]\nkind = \"dumbbell\"\nbottleneck_rate = \"10Gbps\"\n[[flow]]\nsrc = 0\ndst = 1\nsize = \"1KB\"\n";
    noted(narrow, &["scheme.preset=uec-rccc"], "scheme.rccc.oversubscribed = true");
    for (text, sets) in [
        (with(&load(0.6)), &[][..]),
        (with(&incast.replace('8', "3")), &[]),
        (with(&format!("{incast}replacement = true\n")), &[]),
        (STAR.into(), &["scheme.window=1000B"]),
        (STAR.into(), &["scheme.preset=uec-rccc"]),
        (narrow.into(), &["scheme.preset=uec"]),
        (narrow.into(), &["scheme.preset=uec-rccc", "scheme.rccc.oversubscribed=true"]),
    ] {
        let notes = read(&text, sets).unwrap_or_else(|problem| panic!("{problem}")).notes;
        assert_eq!(notes, [], "{text}");
    }
}

#[test]
fn all_problems_of_a_file_are_found_at_once() {
    let text = "\
seed = \"a\"
colour = 1
[topology]
kind = \"star\"
hosts = 4
[switch]
buffer = \"lots\"
alpha = 1000
hue = 1
[nic]
payload = 5
[[link]]
between = [\"h0\", \"h1\"]
[[flow]]
src = \"h0\"
dst = \"h99\"
size = \"1KB\"
[[flow]]
src = 0
dst = 1
sise = \"1KB\"
[[load]]
load = \"half\"
[scheme]
congestion_control = \"dcqnc\"
";
    let Err(problem) = read(text, &["stop=5"]) else { panic!("it is accepted") };
    let problems = problem.split();
    let lines: Vec<Option<usize>> = problems.iter().map(|problem| problem.line).collect();
    let expected = [1, 2, 7, 8, 9, 11, 13, 16, 18, 22, 23, 25].map(Some);
    assert_eq!(lines, [&expected[..], &[None]].concat(), "{problems:#?}");
    assert!(problems.iter().all(|problem| problem.help.is_some()), "{problems:#?}");
    assert!(problems[8].message.contains("has no size"), "{}", problems[8]);
    assert_eq!(problems[12].file, "--set stop=5");
}

/// What is wrong with a text: by line, the beginning of what is said.
#[track_caller]
fn wrong_with(text: &str, expected: &[(usize, &str)]) {
    let Err(problem) = read(text, &[]) else { panic!("it is accepted") };
    let problems = problem.split();
    let said = |problem: &Problem| format!("{} {}", problem.line.unwrap_or(0), problem.message);
    let shown: Vec<String> = problems.iter().map(said).collect();
    for (problem, said) in problems.iter().zip(&shown) {
        assert!(problem.help.is_some(), "{problem}");
        let known = expected.iter().any(|(line, message)| said.starts_with(&format!("{line} {message}")));
        assert!(known, "{said} is nonsense, or not expected, among {shown:#?}");
    }
    for (line, message) in expected {
        let there = shown.iter().filter(|said| said.starts_with(&format!("{line} {message}"))).count();
        assert_eq!(there, 1, "\"{line} {message}\" in {shown:#?}");
    }
}

#[test]
fn a_dozen_faults_of_different_kinds_are_said_at_once() {
    let text = "\
name = \"a\\u0007\"
[topology]
kind = \"star\"
hosts = 4
[switch]
ecn_min = \"1MB\"
ecn_max = \"10KB\"
alpha = \"much\"
hue = 1
[switch.buffers]
\"leaf*\" = \"1MB\"
sw0 = \"lots\"
[nic]
payload = \"20KB\"
[scheme]
flow_control = \"pfcc\"
congestion_control = \"dcqcn\"
edge_control = \"onrmap\"
window = \"wide\"
[scheme.dcqcn]
gain = 7
[[flow]]
src = \"h7\"
dst = \"h8\"
size = \"1KB\"
[[flow]]
src = \"h1\"
dst = \"h1\"
size = \"0B\"
until = \"2us\"
start = \"3us\"
[[load]]
sizes = \"hadop\"
from = \"h9\"
load = -1
sigma = 2
duration = \"0us\"
[[load]]
sizes = \"hadoop\"
load = 0.5
flows = 7
duration = \"1us\"
to = [\"h9\", \"h10\"]
[[incast]]
degree = 2
size = \"1KB\"
size_each = \"1KB\"
every = \"1us\"
load = 0.1
count = 1
duration = \"1us\"
[[long]]
to = \"h0\"
[[slow]]
host = \"h17\"
rate = \"slow\"
[measure]
ports = [\"nobody\", \"none->x\"]
";
    let expected = [
        (1, "\"a\\u{7}\" has characters"),
        (7, "ecn_max is 10KB, below ecn_min"),
        (8, "alpha: expected a number"),
        (9, "unknown key \"hue\""),
        (11, "leaf*: no switch is called"),
        (12, "sw0: "),
        (14, "payload is 20KB"),
        (16, "flow_control: there is no \"pfcc\""),
        (18, "edge_control: there is no \"onrmap\""),
        (19, "window: "),
        (21, "gain cannot be 7"),
        (23, "src: there is no node \"h7\""),
        (24, "dst: there is no node \"h8\""),
        (28, "h1 sends to itself"),
        (29, "size is 0"),
        (30, "it leaves at 2us"),
        (33, "sizes: there is no distribution \"hadop\""),
        (34, "from: there is no node \"h9\""),
        (35, "load is -1"),
        (36, "only lognormal"),
        (37, "duration is 0ps"),
        (41, "load, duration and flows together say too much"),
        (43, "to: there is no node \"h9\""),
        (43, "to: there is no node \"h10\""),
        (47, "size and size_each together"),
        (48, "every and load together"),
        (50, "count and duration together"),
        (52, "long-lived flows that never leave"),
        (55, "host: there is no node \"h17\""),
        (56, "rate: "),
        (58, "ports: no port is \"nobody\""),
        (58, "ports: no port is \"none->x\""),
    ];
    wrong_with(text, &expected);
}

#[test]
fn a_fabric_that_cannot_be_does_not_hide_what_has_nothing_to_do_with_it() {
    let text = "\
stop = \"5 parsecs\"
[topology]
kind = \"leaf-spine\"
spines = 0
host_rate = \"400G\"
[traffic]
classes = 12
[[link]]
between = [\"leaf0\", \"spine7\"]
rate = \"fast\"
down = [[\"2us\", \"1us\"]]
[[flow]]
src = \"h0\"
dst = \"h999\"
size = \"0B\"
class = 4
[[load]]
sizes = \"hadop\"
from = \"leaf7\"
load = 0.5
[[load]]
sizes = \"hadoop\"
load = 0.5
flows = 7
duration = \"1us\"
inter_site = 0.5
[[job]]
ranks = 5000
top_k = 9
experts = 8
[[slow]]
host = \"leaf0\"
rate = \"10Gbps\"
from = \"2us\"
until = \"1us\"
[measure]
ports = \"leaf9->h0\"
";
    let expected = [
        (1, "stop: "),
        (4, "spines is 0"),
        (5, "host_rate: "),
        (7, "classes is 12"),
        (10, "rate: "),
        (11, "down: the outage ends before it begins"),
        (15, "size is 0"),
        (18, "sizes: there is no distribution"),
        (24, "load, duration and flows together"),
        (29, "each token goes to 9 of 8 experts"),
        (35, "until is out of range"),
    ];
    wrong_with(text, &expected);
}

#[test]
fn memory_is_looked_at_although_the_traffic_is_wrong() {
    let text = STAR.replace("\"h0\"", "\"h9\"")
        + "[switch]\nbuffer = \"1KB\"\n[[slow]]\nhost = \"h1\"\nrate = \"1Gbps\"\nbuffer = \"9B\"\n";
    let Err(problem) = read(&text, &[]) else { panic!("too little memory") };
    let said = problem.to_string();
    assert!(said.contains("there is no node \"h9\"") && said.contains("a.toml:9:"), "{said}");
    // Without traffic alone there is nothing else to say.
    let Err(problem) = read(&STAR.replace("\"h0\"", "\"h9\""), &[]) else { panic!("no such host") };
    assert_eq!(problem.clone().split().len(), 1, "{problem}");
    let text = STAR.to_string()
        + "[switch]\negress_alpha = 0.0\nreserve = \"0B\"\n[[slow]]\nhost = \"h1\"\nrate = \"1Gbps\"\nbuffer = \"9B\"\n";
    let Err(problem) = read(&text, &[]) else { panic!("too little memory") };
    let lines: Vec<Option<usize>> = problem.split().iter().map(|problem| problem.line).collect();
    assert_eq!(lines, [Some(9), Some(14)]);
}

#[test]
fn what_is_not_in_quotes_is_said_everywhere_and_the_rest_is_looked_at() {
    let text = "\
[topology]
kind = star
hosts = 4
rate = 400Gbps
delay = 1us # as usual
hosts = 5
[switch]
bufer = \"1MB\"
[[flow]]
src = \"h1\"
dst = \"h9\"
size = 1MB
";
    let expected = [
        (2, "is not TOML"),
        (4, "is not TOML"),
        (5, "is not TOML"),
        (6, "hosts is there twice"),
        (8, "unknown key \"bufer\""),
        (11, "dst: there is no node \"h9\""),
        (12, "is not TOML"),
    ];
    wrong_with(text, &expected);
    let Err(problem) = read(text, &[]) else { panic!("no quotes") };
    assert_eq!(problem.help.as_deref(), Some("put text in quotes: \"star\""));
    assert_eq!(problem.more[0].help.as_deref(), Some("put quantities in quotes: \"400Gbps\""));
    // What is wrong with the value itself is said, too.
    wrong_with(
        &format!("{STAR}[[link]]\nbetween = [\"h0\", \"sw0\"]\nrate = 400G\n"),
        &[(10, "is not TOML"), (10, "rate: ")],
    );
    // Quotes would not make a number of it.
    let text = STAR.replace("hosts = 4", "hosts = 4x");
    assert_ne!(text, STAR);
    wrong_with(&text, &[(3, "hosts: expected a whole number")]);
    let Err(problem) = read(&text, &[]) else { panic!("no number") };
    assert_eq!(problem.source.as_deref(), Some("hosts = 4x"));
    assert!(problem.help.as_deref().is_some_and(|help| !help.contains("quotes")), "{:?}", problem.help);
    // What cannot be guessed ends the reading.
    let Err(problem) = read("[topology]\nkind = star\n[switch\nbuffer = 1\n", &[]) else { panic!("no bracket") };
    assert!(problem.split().iter().all(|problem| problem.cause == Cause::Syntax));
}

#[test]
fn a_misspelt_key_that_is_missing_is_one_mistake_also_where_nothing_is_read() {
    let text = STAR.replace("kind", "knid").replace("size", "sise") + "[[flow]]\nsrc = 0\ndst = 1\n";
    let Err(problem) = read(&text, &[]) else { panic!("no kind") };
    let said: Vec<String> = problem.split().into_iter().map(|problem| problem.message.clone()).collect();
    assert_eq!(said, ["[topology] has no kind", "[flow.0] has no size", "[flow.1] has no size"]);
}

#[test]
fn a_problem_with_the_fabric_brings_no_others_with_it() {
    let text = STAR.replace("hosts = 4", "hosts = 2.5");
    let Err(problem) = read(&text, &[]) else { panic!("half a host") };
    assert_eq!(problem.clone().split().len(), 1, "{problem}");
    assert_eq!(problem.help.as_deref(), Some("write 2 or 3. Hosts."));
    let Err(problem) = read(STAR, &["scheme.preset=nonsense", "scheme.hpcc.eta=0.9"]) else { panic!("no such preset") };
    assert_eq!(problem.clone().split().len(), 1, "{problem}");
}

#[test]
fn of_two_marking_thresholds_the_one_that_was_written_is_at_fault() {
    let Err(problem) = read(&format!("{STAR}[switch]\necn_min = \"1MB\"\n"), &[]) else { panic!("ecn_max is below") };
    assert_eq!(problem.message, "ecn_max is 400KB by default, below ecn_min, which is 1MB");
    assert_eq!((problem.line, problem.key.as_deref()), (Some(9), Some("switch.ecn_min")));
    let Err(problem) = read(STAR, &["switch.ecn_max=10KB"]) else { panic!("ecn_max is below") };
    assert_eq!(problem.key.as_deref(), Some("switch.ecn_max"));
}

#[test]
fn a_setting_of_a_preset_is_not_blamed_on_the_user() {
    let sets = ["scheme.preset=dcqcn", "scheme.congestion_control=hpcc"];
    let Err(problem) = read(STAR, &sets) else { panic!("hpcc has no window") };
    assert!(problem.file.starts_with("preset \"dcqcn\", scheme.window = none"), "{problem}");
    let help = problem.help.as_deref().unwrap();
    assert!(help.starts_with("write window = \"bdp\"; the preset \"dcqcn\" has set this"), "{problem}");
    assert!(help.ends_with("a scheme.window of your own overrides it"), "{problem}");
    let own = [&sets[..], &["scheme.window=none"]].concat();
    let Err(problem) = read(STAR, &own) else { panic!("hpcc has no window") };
    assert_eq!(problem.help.as_deref(), Some("write window = \"bdp\", or leave the key out"));
}

#[test]
fn a_key_that_is_there_twice_is_named_with_its_first_place() {
    refused(
        "[topology]\nkind = \"star\"\nhosts = 4\nkind = \"chain\"",
        &[],
        4,
        "kind is there twice: first in line 2",
        "remove one",
    );
    let text = format!("{STAR}[switch]\nalpha = 1\n[nic]\n[switch]\nqueues = 2");
    refused(&text, &[], 11, "the table [switch] is there twice: first in line 8", "under one of them");
}

#[test]
fn a_value_after_set_is_explained_without_quotes() {
    refused(
        STAR,
        &["switch.buffer=lots"],
        None,
        "found \"lots\"",
        "write a size, such as 12MB (1B to 1000GB). Packet memory",
    );
    refused(STAR, &["topology.rate=400G"], None, "did you mean \"400Gbps\"?", "a rate, such as 100Gbps");
    refused(
        &format!("{STAR}[switch]\nbuffer = \"lots\""),
        &[],
        9,
        "found \"lots\"",
        "a size in quotes, such as \"12MB\"",
    );
}

#[test]
fn gaps_that_add_up_beyond_the_end_of_time_are_refused() {
    let chain = |count: usize| {
        let flow = |number: usize| {
            let first = format!("after = \"f{}\"\ngap = \"1000000s\"\n", number.wrapping_sub(1));
            let first = if number > 0 { first.as_str() } else { "" };
            format!("[[flow]]\nid = \"f{number}\"\nsrc = \"h0\"\ndst = \"h1\"\nsize = \"1KB\"\n{first}")
        };
        let flows: String = (0..count).map(flow).collect();
        format!("[topology]\nkind = \"star\"\nhosts = 3\n{flows}")
    };
    read(&chain(10), &[]).unwrap_or_else(|problem| panic!("{problem}"));
    // The eleventh, in whose table the problem is.
    refused(&chain(12), &[], 72, "it would start after 10000000 s, the latest", "shorter gaps");
    read(&chain(12), &["stop=1ms"]).unwrap_or_else(|problem| panic!("{problem}"));
    let rounds = "[topology]\nkind = \"star\"\nhosts = 3\n[[collective]]\nkind = \"ring-all-reduce\"\nsize = \"3KB\"\n\
                  rounds = 40\ngap = \"1000000s\"\nstart = \"1000000s\"\n";
    refused(rounds, &[], 4, "it would start after", "rounds");
    read(rounds, &["collective.0.gap=1s"]).unwrap_or_else(|problem| panic!("{problem}"));
}

#[test]
fn a_title_that_acts_on_terminals_is_refused() {
    for name in ["a\\u0000b", "\\u001b[31mred", "two\\nlines"] {
        refused(&format!("name = \"{name}\"\n{STAR}"), &[], 1, "characters that cannot be seen", "one line");
    }
}

#[test]
fn a_number_that_toml_cannot_hold_is_refused_as_such() {
    refused(STAR, &["seed=9223372036854775808"], None, "is above 9223372036854775807", "write a smaller one");
    refused(STAR, &["seed=-1"], None, "-1 is out of range (0 to 9223372036854775807)", "");
    star(&["seed=9223372036854775807"]);
}

#[test]
fn a_collective_of_less_than_a_byte_each_is_noted() {
    let text = "[topology]\nkind = \"star\"\nhosts = 3\n[[collective]]\nkind = \"ring-all-reduce\"\nsize = \"1B\"\n";
    let notes = read(text, &[]).unwrap_or_else(|problem| panic!("{problem}")).notes;
    assert!(notes.iter().any(|note| note.to_string().contains("every message has a byte")), "{notes:?}");
}

#[test]
fn many_flows_that_wait_are_read_in_a_moment() {
    let flow = |number: usize| {
        let after = if number > 0 { format!("after = \"i{}\"\n", number - 1) } else { String::new() };
        format!("[[flow]]\nsrc = \"h0\"\ndst = \"h1\"\nsize = \"1B\"\nid = \"i{number}\"\n{after}")
    };
    let time = |count: usize| {
        let text = format!("[topology]\nkind = \"star\"\nhosts = 2\n{}", (0..count).map(flow).collect::<String>());
        let start = std::time::Instant::now();
        read(&text, &[]).unwrap_or_else(|problem| panic!("{problem}"));
        start.elapsed()
    };
    time(100);
    // Quadratic it would be a hundred times as long.
    let few = [time(1_000), time(1_000), time(1_000)].into_iter().max().unwrap_or_default();
    let many = time(10_000);
    assert!(many < 40 * few, "{few:?} and {many:?}");
}

#[test]
fn an_empty_trace_is_named() {
    let text = "[topology]\nkind = \"star\"\nhosts = 3\n[traffic]\ntrace = \"empty.csv\"\n";
    let files = [("empty.csv", "src,dst,size,start\n")];
    let problem = Scenario::parse_beside("a.toml", text, Beside::Texts(&files), &[]).unwrap_err();
    assert!(problem.file.ends_with("empty.csv") && problem.message == "has no flows", "{problem}");
}
