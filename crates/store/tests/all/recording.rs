//! Recordings: they say what the results say, leave everything else as it is, and are the same on any number of threads.

use crate::same::assert_same;
use engine::Time;
use fabric::Outcome;
use fabric::probe::{FLOW_COLUMNS, PORT_COLUMNS};
use results::recording::{RECORDING, Recorded};
use run::Finished;
use run::recording::record;
use scenario::Scenario;
use scenario::resolve::{Resolved, resolve};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use store::Store;
use store::grid::{self, Grid, Source, Variant};

const LEAF_SPINE: &str = "\
[topology]
kind = \"leaf-spine\"
leaves = 4
hosts_per_leaf = 4
spines = 2
";

const BCUBE: &str = "\
[topology]
kind = \"bcube\"
n = 4
k = 1
";

const TRAFFIC: &str = "\
[switch]
buffer = \"3MB\"
[[load]]
sizes = \"hadoop\"
load = 0.5
duration = \"60us\"
[[incast]]
degree = 12
size_each = \"100KB\"
every = \"30us\"
arrivals = \"fixed\"
duration = \"60us\"
";

/// A busy fabric under a preset.
fn busy(preset: &str) -> Resolved {
    let fabric = if preset == "portfc" { BCUBE } else { LEAF_SPINE };
    read(&format!("stop = \"150us\"\n{fabric}{TRAFFIC}"), &[&format!("scheme.preset=\"{preset}\"")])
}

fn read(text: &str, sets: &[&str]) -> Resolved {
    let sets: Vec<String> = sets.iter().map(|set| set.to_string()).collect();
    let scenario = Scenario::parse("a.toml", text, Path::new("/nowhere"), &sets);
    scenario.and_then(resolve).unwrap_or_else(|problem| panic!("{problem}\n{text}"))
}

fn simulate(resolved: &Resolved, threads: usize) -> Outcome {
    resolved.simulate_on(threads, &mut |_, _| true)
}

/// By port, the sum over the frames.
fn sums(outcome: &Outcome, name: &str) -> Vec<u64> {
    let column = PORT_COLUMNS.iter().position(|(other, _)| *other == name).unwrap();
    let by_port = outcome.recording.as_ref().unwrap().ports[column].by_place(outcome.sent.len());
    by_port.iter().map(|frames| frames.iter().map(|(_, value)| value).sum()).collect()
}

/// By recorded flow, what was said of it last.
fn last(outcome: &Outcome, name: &str) -> Vec<u64> {
    let column = FLOW_COLUMNS.iter().position(|(other, _)| *other == name).unwrap();
    let recording = outcome.recording.as_ref().unwrap();
    let by_flow = recording.flows[column].by_place(recording.chosen.len());
    by_flow.iter().map(|said| said.last().map_or(0, |(_, value)| *value)).collect()
}

#[test]
fn every_preset_is_recorded_alike_on_any_number_of_threads_and_runs_as_if_it_were_not() {
    for preset in scenario::presets::all() {
        let name = preset.name;
        let plain = simulate(&busy(name), 1);
        let resolved = record(busy(name), Some(Time::from_ns(700)));
        let one = simulate(&resolved, 1);
        for threads in [2, 3, 5, 8] {
            assert_same(&one, &simulate(&resolved, threads), &format!("{name} on {threads} threads"));
        }
        let recording = one.recording.as_ref().unwrap();
        assert_eq!(recording.frames as u64, (one.end - recording.first).0.div_ceil(700_000), "{name}");
        assert_eq!(sums(&one, "sent"), one.sent, "{name}");
        assert_eq!(sums(&one, "paused"), one.paused.iter().map(|time| time.0).collect::<Vec<_>>(), "{name}");
        let (class, port): (Vec<_>, Vec<_>) = one.stopped.iter().map(|(class, port)| (class.0, port.0)).unzip();
        assert_eq!((sums(&one, "paused_class"), sums(&one, "paused_port")), (class, port), "{name}");
        for (any, (class, port)) in one.paused.iter().zip(&one.stopped) {
            assert!(port <= class && class <= any, "{name}: {port} of {class} of {any}");
        }
        assert_eq!(sums(&one, "marked").iter().sum::<u64>(), one.counts.marked, "{name}");
        assert_eq!(sums(&one, "dropped").iter().sum::<u64>(), one.counts.dropped(), "{name}");
        let obeyed = [("pauses", one.counts.pauses), ("resumes", one.counts.resumes)];
        obeyed.iter().for_each(|(column, all)| assert_eq!(sums(&one, column).iter().sum::<u64>(), *all, "{name}"));
        let flows: Vec<_> = recording.chosen.iter().map(|&flow| one.flows[flow.index()]).collect();
        assert_eq!(last(&one, "received"), flows.iter().map(|flow| flow.delivered).collect::<Vec<_>>(), "{name}");
        // The table also counts until a flow is let go that ended while it was held.
        for (held, flow) in last(&one, "held").into_iter().zip(&flows) {
            let over = flow.acknowledged != Time::MAX;
            assert!(held == flow.held.0 || over && held < flow.held.0, "{name}: {held} of {}", flow.held);
        }
        for (paused, flow) in last(&one, "paused").into_iter().zip(&flows) {
            assert_eq!(paused, flow.paused.0, "{name}");
            // Never longer than it had something to send.
            let sending = flow.injected.min(one.end).saturating_sub(flow.start);
            assert!(flow.paused <= sending, "{name}: {} of {sending}", flow.paused);
        }
        let done = flows.iter().zip(last(&one, "sent").into_iter().zip(last(&one, "acknowledged")));
        for (flow, (sent, acknowledged)) in done.filter(|(flow, _)| flow.acknowledged != Time::MAX) {
            assert_eq!((sent, acknowledged), (flow.size, flow.size), "{name}");
        }
        assert_same(&plain, &Outcome { recording: None, ..one }, name);
    }
}

#[test]
fn schemes_show_what_they_stop_and_who_asked() {
    let recorded = |preset: &str| simulate(&record(busy(preset), Some(Time::from_ns(500))), 1);
    let total = |outcome: &Outcome, name: &str| sums(outcome, name).iter().sum::<u64>();
    let by = |outcome: &Outcome| {
        let column = FLOW_COLUMNS.iter().position(|(name, _)| *name == "by").unwrap();
        let recording = outcome.recording.as_ref().unwrap();
        let said = recording.flows[column].by_place(recording.chosen.len());
        let chosen = recording.chosen.iter().map(|&flow| outcome.flows[flow.index()].spec.src.0);
        let nodes = chosen.zip(said).flat_map(|(src, said)| {
            said.into_iter().filter(|(_, by)| *by > 0).map(move |(_, by)| (src, by as u32 - 1)).collect::<Vec<_>>()
        });
        nodes.collect::<Vec<(u32, u32)>>()
    };
    // Hosts are 0 to 15, leaves 16 to 19, spines 20 and 21.
    let leaf_of = |host: u32| 16 + host / 4;
    let pfc = recorded("pfc");
    assert!(total(&pfc, "paused") > 0 && total(&pfc, "pause_frames") > 0);
    assert_eq!((total(&pfc, "held_queues"), total(&pfc, "held_flows"), total(&pfc, "signals")), (0, 0, 0));
    assert!(by(&pfc).is_empty());
    let bfc = recorded("bfc");
    assert!(total(&bfc, "held_queues") > 0 && total(&bfc, "held_flows") > 0 && total(&bfc, "pause_frames") > 0);
    assert!(!by(&bfc).is_empty() && by(&bfc).iter().all(|&(src, by)| by == leaf_of(src)));
    let sfc = recorded("sfc");
    assert!(total(&sfc, "signals") > 0 && total(&sfc, "held_flows") > 0);
    assert_eq!(total(&sfc, "held_queues"), 0);
    // The switch that is congested asks, mostly not the sender's own.
    assert!(by(&sfc).iter().any(|&(src, by)| by != leaf_of(src)) && by(&sfc).iter().all(|&(_, by)| by >= 16));
    let dvl = recorded("dvl");
    assert!(total(&dvl, "held_queues") > 0 && total(&dvl, "pause_frames") > 0);
    let portfc = recorded("portfc");
    assert!(total(&portfc, "held_queues") > 0 && total(&portfc, "held_flows") > 0);
    let dcqcn = recorded("dcqcn");
    assert!(total(&dcqcn, "marked") > 0);
}

/// Hosts of two leaves send to one, and one to another: the victim of whoever stops its leaf's only link up.
const VICTIM: &str = "\
stop = \"600us\"
topology.kind = \"leaf-spine\"
topology.leaves = 2
topology.hosts_per_leaf = 4
topology.spines = 1
switch.buffer = \"1MB\"
flow = [
    { src = \"h2\", dst = \"h0\", size = \"2MB\" },
    { src = \"h3\", dst = \"h0\", size = \"2MB\" },
    { src = \"h4\", dst = \"h0\", size = \"2MB\" },
    { src = \"h7\", dst = \"h1\", size = \"1MB\" },
]
";

#[test]
fn a_pause_of_one_queue_is_not_a_pause_of_the_link() {
    let recorded = |preset: &str| {
        simulate(&record(read(VICTIM, &[&format!("scheme.preset=\"{preset}\"")]), Some(Time::from_us(1))), 1)
    };
    // Hosts are 0 to 7 with a port each, then those of leaf0: four hosts and the spine; of leaf1: 13 to 17.
    let up = 17;
    let pfc = recorded("pfc");
    assert!(pfc.paused[up] > Time::from_us(50), "{}", pfc.paused[up]);
    assert_eq!(pfc.stopped[up], (pfc.paused[up], pfc.paused[up]));
    let dvl = recorded("dvl");
    let (class, _) = dvl.stopped[up];
    assert!(dvl.paused[up] > Time::from_us(50), "{}", dvl.paused[up]);
    assert!(class.0 * 10 < dvl.paused[up].0, "{class} of {}", dvl.paused[up]);
    assert_eq!(sums(&dvl, "paused_class")[up], class.0);
}

#[test]
fn a_flow_whose_class_is_paused_at_its_nic_is_said_to_wait_for_that() {
    let resolved = record(read(VICTIM, &["scheme.preset=\"pfc\""]), Some(Time::from_us(1)));
    let outcome = simulate(&resolved, 1);
    let (nic, victim) = (7, &outcome.flows[3]);
    assert!(victim.held == Time::ZERO && victim.paused > Time::from_us(20), "{}", victim.paused);
    // It sends from the beginning, so that it stands still as long as its NIC does until its last byte is gone.
    assert!(victim.paused <= outcome.paused[nic]);
    let last = last(&outcome, "paused")[3];
    assert_eq!(last, victim.paused.0);
    assert_same(&outcome, &simulate(&resolved, 3), "on 3 threads");
}

#[test]
fn drops_on_links_and_in_outages_are_recorded_where_they_happen() {
    let text = format!(
        "stop = \"300us\"\n{LEAF_SPINE}{TRAFFIC}[[link]]\nbetween = [\"leaf0\", \"h1\"]\nloss = 0.01\n\
         [[link]]\nbetween = [\"leaf1\", \"spine0\"]\ndown = [[\"20us\", \"60us\"]]\n"
    );
    let resolved = record(read(&text, &["scheme.preset=\"dcqcn\""]), Some(Time::from_us(1)));
    let one = simulate(&resolved, 1);
    assert!(one.counts.dropped_fault > 0 && one.counts.dropped_down > 0);
    assert_eq!(sums(&one, "dropped").iter().sum::<u64>(), one.counts.dropped());
    assert_same(&one, &simulate(&resolved, 3), "on 3 threads");
}

#[test]
fn a_long_run_has_a_bounded_recording() {
    let text = "topology.kind = \"star\"\ntopology.hosts = 3\nstop = \"40ms\"\n\
                flow = [{ src = \"h1\", dst = \"h0\", size = \"1KB\" }, \
                { src = \"h2\", dst = \"h0\", size = \"100MB\", start = \"20ms\" }]";
    let resolved = record(read(text, &["scheme.preset=\"pfc\""]), Some(Time(1)));
    let outcome = simulate(&resolved, 1);
    let recording = outcome.recording.as_ref().unwrap();
    assert!((2048..4096).contains(&recording.frames), "{}", recording.frames);
    // Doubled again and again.
    assert!(recording.every.0.is_power_of_two());
    assert_eq!(recording.frames as u64, (outcome.end - recording.first).0.div_ceil(recording.every.0));
    assert_eq!(sums(&outcome, "sent"), outcome.sent);
    let whole = run::run(resolved, &mut |_, _| true);
    let dir = tempfile::tempdir().unwrap();
    let folder = whole.write(&dir.path().join("long"), text).unwrap();
    assert!(fs::metadata(folder.join(RECORDING)).unwrap().len() < 200_000);
}

/// The files of a folder.
fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let entry = |entry: fs::DirEntry| (entry.file_name().into_string().unwrap(), fs::read(entry.path()).unwrap());
    fs::read_dir(folder).unwrap().map(|found| entry(found.unwrap())).collect()
}

/// The same without what a run cost, and without the lists of the files.
fn comparable(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut files = files(folder);
    let mut summary: Value = serde_json::from_slice(&files["summary.json"]).unwrap();
    summary["cost"] = Value::Null;
    files.insert("summary.json".into(), summary.to_string().into_bytes());
    files.remove("files.json");
    files.remove("SHA256SUMS");
    files
}

fn finish(resolved: Resolved) -> Finished {
    run::run(resolved, &mut |_, _| true)
}

fn links(folder: &Path, column: &str) -> Vec<u64> {
    results::tables::read(&folder.join("links.parquet")).unwrap().counts(column).unwrap()
}

#[test]
fn a_folder_with_a_recording_is_otherwise_the_same_and_the_file_says_what_the_tables_say() {
    let dir = tempfile::tempdir().unwrap();
    let plain = finish(busy("sfc")).write(&dir.path().join("plain"), "").unwrap();
    let folder = finish(record(busy("sfc"), None)).write(&dir.path().join("recorded"), "").unwrap();
    let mut with = comparable(&folder);
    let file = with.remove(RECORDING).unwrap();
    assert_eq!(with, comparable(&plain));

    let recorded = Recorded::read(&file).unwrap();
    let header = &recorded.header;
    let kind =
        |node: usize| (header.nodes[node].name.as_str(), header.nodes[node].kind.as_str(), header.nodes[node].tier);
    assert_eq!((kind(0), kind(16), kind(21)), (("h0", "host", 0), ("leaf0", "switch", 1), ("spine1", "switch", 2)));
    assert_eq!((header.nodes[0].buffer, header.nodes[16].buffer), (None, Some(3_000_000)));
    assert_eq!((header.topology["kind"].as_str(), header.topology["leaves"].as_u64()), (Some("leaf-spine"), Some(4)));
    assert_eq!((header.preset.as_deref(), header.seed), (Some("sfc"), 1));
    assert_eq!(header.groups, ["load", "incast"]);
    let sum = |column: &str, port: usize| recorded.port(column, port).unwrap().iter().sum::<u64>();
    for (column, table) in [("sent", "sent_bytes"), ("paused", "paused_ps")] {
        let expected = links(&folder, table);
        assert_eq!((0..header.ports.len()).map(|port| sum(column, port)).collect::<Vec<_>>(), expected, "{table}");
    }
    let most = |port: usize| header.ports[port].rate_bps as u128 * header.every_ps as u128 / 8_000_000_000_000;
    for port in 0..header.ports.len() {
        let Some(fastest) = recorded.port("sent", port).unwrap().iter().max() else { continue };
        assert!(*fastest as u128 <= most(port) + 1, "port {port} sends {fastest} B in a frame");
        assert!(recorded.port("paused", port).unwrap().iter().all(|paused| *paused <= header.every_ps));
        let Some(peer) = header.ports.get(header.ports[port].peer as usize) else {
            panic!("port {port} leads nowhere")
        };
        assert_eq!(peer.peer as usize, port);
    }
    assert!(!header.flows.is_empty() && header.flows.len() <= 256);
    for (place, flow) in header.flows.iter().enumerate() {
        // The path begins at the sender, goes from port to port, and ends at the receiver.
        let mut node = flow.src;
        for &port in &flow.path {
            assert_eq!(header.ports[port as usize].node, node);
            node = header.ports[header.ports[port as usize].peer as usize].node;
        }
        assert_eq!(node, flow.dst);
        for column in ["sent", "received", "acknowledged", "held"] {
            assert!(recorded.flow(column, place).unwrap().is_sorted(), "{column} of flow {}", flow.flow);
        }
        if let Some(received) = flow.received_ps {
            // All is there in the frame in which the last byte arrived, and not before.
            let frame = ((received - header.first_ps).div_ceil(header.every_ps) - 1) as usize;
            let series = recorded.flow("received", place).unwrap();
            assert_eq!(series.iter().position(|bytes| *bytes == flow.size), Some(frame), "flow {}", flow.flow);
        }
    }
    // Cut or bent, it is refused, and nothing falls over.
    for cut in (0..file.len()).step_by(97) {
        assert!(Recorded::read(&file[..cut]).is_err());
    }
    for at in (0..file.len()).step_by(61) {
        let mut bent = file.clone();
        bent[at] ^= 0x55;
        _ = Recorded::read(&bent);
    }
}

fn grid(base: &Path) -> Grid {
    let text = format!("stop = \"60us\"\n{LEAF_SPINE}{TRAFFIC}");
    let source = Source { name: "a.toml".into(), title: "a".into(), text, base: PathBuf::from(base) };
    let variants = Variant::schemes(&source, &[], &["pfc".into(), "bfc".into()]).unwrap();
    Grid { source, sets: vec![], variants, axes: vec![], seeds: vec![1] }
}

#[test]
fn a_stored_run_without_a_recording_is_done_again_when_one_is_asked_for_and_only_then() {
    let dir = tempfile::tempdir().unwrap();
    let plan = grid(dir.path()).plan().unwrap();
    let (plain, recorded) = (Store::new(dir.path()), Store::new(dir.path()).recorded(true));
    let first = grid::run(&plan, &plain, 2, &()).unwrap();
    let before: Vec<_> = first.folders.iter().map(|folder| comparable(folder)).collect();
    assert!(before.iter().all(|files| !files.contains_key(RECORDING)));
    let again = grid::run(&plan, &recorded, 2, &()).unwrap();
    assert_eq!((again.ran, again.reused, &again.folders), (2, 0, &first.folders));
    let mut recordings = Vec::new();
    for (folder, before) in again.folders.iter().zip(&before) {
        let mut now = comparable(folder);
        recordings.push(now.remove(RECORDING).unwrap());
        assert_eq!(now, *before);
        let list: Value = serde_json::from_slice(&files(folder)["files.json"]).unwrap();
        assert_eq!(list[RECORDING].as_u64(), Some(recordings[recordings.len() - 1].len() as u64));
    }
    assert_ne!(recordings[0], recordings[1]);
    for store in [&plain, &recorded] {
        let done = grid::run(&plan, store, 2, &()).unwrap();
        assert_eq!((done.ran, done.reused), (0, 2));
    }
    // One that is cut off is damage like any other.
    fs::write(first.folders[0].join(RECORDING), "TWREC1").unwrap();
    assert_eq!(grid::run(&plan, &recorded, 2, &()).unwrap().ran, 1);
    assert_eq!(fs::read(first.folders[0].join(RECORDING)).unwrap(), recordings[0]);
}
