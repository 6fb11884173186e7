//! The program as people use it: what it prints, what it writes, and how it refuses.

use crate::desk::refusal;
use results::recording::Recorded;
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use tempfile::TempDir;

/// A folder of its own to work in.
struct Desk(TempDir);

impl Desk {
    fn new() -> Desk {
        Desk(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, content: impl AsRef<[u8]>) -> &Desk {
        fs::write(self.path(name), content).unwrap();
        self
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tailwater"));
        command.args(arguments).current_dir(self.0.path());
        command
    }

    fn tailwater(&self, arguments: &[&str]) -> Output {
        let output = self.command(arguments).output().unwrap();
        assert!(!text(&output.stderr).contains("panicked"), "{arguments:?}: {}", text(&output.stderr));
        output
    }

    /// Runs it, and it must work. Gives what it printed.
    #[track_caller]
    fn works(&self, arguments: &[&str]) -> String {
        let output = self.tailwater(arguments);
        assert!(output.status.success(), "{arguments:?}: {}", text(&output.stderr));
        text(&output.stdout)
    }

    /// Runs it, and it must refuse: its status, the place and a remedy, nothing printed and nothing written.
    #[track_caller]
    fn refuses(&self, arguments: &[&str], place: &str) -> String {
        let before = self.listing();
        let output = self.tailwater(arguments);
        let problem = text(&output.stderr);
        assert_eq!(output.status.code(), Some(refusal(&problem)), "{arguments:?}: {problem}");
        assert!(problem.contains(place), "{arguments:?}: no \"{place}\" in {problem}");
        assert!(problem.contains("\n  help: "), "{arguments:?}: no remedy in {problem}");
        assert_eq!(text(&output.stdout), "", "{arguments:?}");
        assert_eq!(self.listing(), before, "{arguments:?} left something behind");
        problem
    }

    /// Every file and folder, hidden ones too.
    fn listing(&self) -> BTreeSet<PathBuf> {
        let mut found = BTreeSet::new();
        let mut open = vec![self.0.path().to_path_buf()];
        while let Some(folder) = open.pop() {
            for entry in fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    open.push(path.clone());
                }
                found.insert(path);
            }
        }
        found
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("what is printed is UTF-8")
}

fn example(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples").join(name);
    path.to_str().unwrap().to_string()
}

const STAR: &str = "\
name = \"two into one\"
[topology]
kind = \"star\"
hosts = 4
rate = \"100Gbps\"
delay = \"1us\"
[scheme]
preset = \"dcqcn+win\"
[[flow]]
src = \"h1\"
dst = \"h0\"
size = \"200KB\"
[[flow]]
src = \"h2\"
dst = \"h0\"
size = \"200KB\"
start = \"1us\"
";

const CONFIG: &str = "\
ENABLE_QCN 1
PACKET_PAYLOAD_SIZE 1000
TOPOLOGY_FILE topology.txt
FLOW_FILE flow.txt
TRACE_FILE trace.txt
FCT_OUTPUT_FILE fct.txt
PFC_OUTPUT_FILE pfc.txt
SIMULATOR_STOP_TIME 2.5
CC_MODE 1
ALPHA_RESUME_INTERVAL 1
RATE_DECREASE_INTERVAL 4
RP_TIMER 300
EWMA_GAIN 0.00390625
FAST_RECOVERY_TIMES 1
RATE_AI 20Mb/s
RATE_HAI 200Mb/s
MIN_RATE 1000Mb/s
L2_ACK_INTERVAL 1
HAS_WIN 1
VAR_WIN 1
ENABLE_TRACE 0
KMAX_MAP 1 100000000000 1600
KMIN_MAP 1 100000000000 400
PMAX_MAP 1 100000000000 0.2
BUFFER_SIZE 12
";

const TOPOLOGY: &str = "\
4 1 3
3
0 3 100Gbps 0.001ms 0
1 3 100Gbps 0.001ms 0
2 3 100Gbps 0.001ms 0
";

const FLOWS: &str = "\
2
0 2 3 100 100000 2.000000000
1 2 3 100 100000 2.000010000
";

/// A desk with the files of a small run of the other simulator's formats.
fn ns3() -> Desk {
    let desk = Desk::new();
    desk.write("config.txt", CONFIG).write("topology.txt", TOPOLOGY).write("flow.txt", FLOWS).write("trace.txt", "0\n");
    desk
}

/// What lies at a dotted path, which must be there.
#[track_caller]
fn at<'a>(value: &'a Value, path: &str) -> &'a Value {
    let found = path.split('.').try_fold(value, |value, key| match key.parse::<usize>() {
        Ok(place) => value.get(place),
        Err(_) => value.get(key),
    });
    found.unwrap_or_else(|| panic!("no {path} in {value:#}"))
}

#[track_caller]
fn number(value: &Value, path: &str) -> f64 {
    at(value, path).as_f64().unwrap_or_else(|| panic!("{path} is no number: {}", at(value, path)))
}

fn summary(desk: &Desk, folder: &str) -> Value {
    serde_json::from_str(&desk.read(&format!("{folder}/summary.json"))).unwrap()
}

#[test]
fn a_run_writes_a_folder_with_everything_promised() {
    let desk = Desk::new();
    desk.write("star.toml", STAR);
    let printed = desk.works(&["run", "star.toml", "--out", "out"]);
    for expected in [
        "two into one: flow control pfc, congestion control dcqcn, seed 1",
        "2 of 2 flows finished",
        "complete",
        "results in out",
    ] {
        assert!(printed.contains(expected), "no \"{expected}\" in {printed}");
    }
    let files: Vec<String> =
        fs::read_dir(desk.path("out")).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    assert_eq!(
        files.iter().map(String::as_str).collect::<BTreeSet<_>>(),
        BTreeSet::from([
            "SHA256SUMS",
            "buffers.parquet",
            "figures",
            "flows.parquet",
            "links.parquet",
            "report.html",
            "scenario.toml",
            "summary.json"
        ])
    );
    assert_eq!(desk.read("out/scenario.toml"), format!("# tailwater run star.toml\n{STAR}"));
    let parquet = fs::read(desk.path("out/flows.parquet")).unwrap();
    assert!(parquet.starts_with(b"PAR1") && parquet.ends_with(b"PAR1"));

    let s = summary(&desk, "out");
    for (path, expected) in [("scenario", "two into one"), ("flow_control", "pfc"), ("ending", "complete")] {
        assert_eq!(at(&s, path), expected);
    }
    assert_eq!(at(&s, "congestion_control"), "dcqcn");
    for (path, expected) in [("flows", 2.0), ("finished", 2.0), ("seed", 1.0), ("left", 0.0)] {
        assert_eq!(number(&s, path), expected, "{path}");
    }
    for (path, packets) in [("injected", 400.0), ("delivered", 400.0), ("retransmitted", 0.0)] {
        assert_eq!(number(&s, &format!("{path}.packets")), packets, "{path}");
        assert_eq!(number(&s, &format!("{path}.bytes")), packets * 1000.0, "{path}");
    }
    for path in ["packets", "wire_bytes", "buffer", "link_fault", "link_down"] {
        assert_eq!(number(&s, &format!("dropped.{path}")), 0.0, "{path}");
    }
    for spread in ["slowdown", "slowdown_by_size.3.slowdown"] {
        assert_eq!(number(&s, &format!("{spread}.count")), 2.0);
        let values = ["p50", "p95", "p99", "p999", "max"].map(|p| number(&s, &format!("{spread}.{p}")));
        assert!(values[0] >= 1.0 && values.is_sorted(), "{values:?}");
        assert!(number(&s, &format!("{spread}.mean")) >= 1.0);
    }
    let bins = at(&s, "slowdown_by_size").as_array().unwrap();
    assert_eq!(bins.iter().map(|bin| number(bin, "slowdown.count")).sum::<f64>(), 2.0);
    assert!(at(&bins[0], "slowdown.p50").is_null(), "a percentile of nothing is null");
    assert!(at(&s, "pause.links").is_array());
    for path in ["pause.pauses", "pause.resumes", "pause.paused_ps", "marked", "timeouts"] {
        number(&s, path);
    }
    let peak = number(&s, "buffer.peak");
    assert!(peak > 0.0);
    assert_eq!(number(&s, "buffer.switches.0.peak"), peak);
    for p in ["p50", "p95", "p99", "p999"] {
        assert!(number(&s, &format!("buffer.sampled.{p}")) <= peak);
        assert!(number(&s, &format!("buffer.switches.0.sampled.{p}")) <= peak);
    }
    // Each of 400 packets and their ACKs crosses two links.
    assert_eq!((number(&s, "packet_hops"), number(&s, "acks")), (1600.0, 400.0));
    assert!(number(&s, "events") >= number(&s, "packet_hops"));
    assert!(number(&s, "end_ps") > 0.0);
    assert!(at(&s, "counters").is_object());
    assert_eq!(at(&s, "violations"), &Value::Array(vec![]));
    assert!(number(&s, "cost.wall_seconds") > 0.0 && number(&s, "cost.packet_hops_per_second") > 0.0);
    let memory = at(&s, "cost.peak_memory_bytes");
    assert!(memory.as_u64().is_some_and(|bytes| bytes > 100_000) || cfg!(not(target_os = "linux")), "{memory}");
}

#[test]
fn pauses_and_losses_are_reported_link_by_link() {
    let desk = Desk::new();
    desk.write("star.toml", STAR);
    let sets = ["--set", "scheme.preset=pfc", "--set", "switch.buffer=200KB", "--set", "switch.alpha=0.02"];
    desk.works(&[&["run", "star.toml", "--out", "out"][..], &sets].concat());
    let s = summary(&desk, "out");
    let links = at(&s, "pause.links").as_array().unwrap();
    let names: BTreeSet<_> =
        links.iter().map(|l| (at(l, "from").as_str().unwrap(), at(l, "to").as_str().unwrap())).collect();
    assert_eq!(names, BTreeSet::from([("h1", "sw0"), ("h2", "sw0")]));
    let total: f64 = links.iter().map(|link| number(link, "paused_ps")).sum();
    assert_eq!(total, number(&s, "pause.paused_ps"));
    assert!(links.iter().all(|link| (0.0..=1.0).contains(&number(link, "share"))));
    assert_eq!(number(&s, "pause.pauses"), number(&s, "pause.resumes"));

    let sets = ["--set", "link=[{between = [\"h1\", \"sw0\"], loss = 0.05}]"];
    desk.works(&[&["run", "star.toml", "--out", "lossy"][..], &sets].concat());
    let s = summary(&desk, "lossy");
    assert!(number(&s, "dropped.link_fault") > 0.0 && number(&s, "retransmitted.packets") > 0.0);
    assert_eq!(number(&s, "dropped.packets"), number(&s, "dropped.link_fault"));
    assert_eq!(number(&s, "finished"), 2.0);
}

#[test]
fn overrides_change_the_run_and_are_written_down() {
    let desk = Desk::new();
    desk.write("star.toml", STAR);
    let sets = ["--set", "scheme.preset=hpcc", "--set", "seed=9", "--set", "flow.0.size=3KB", "--set", "name=changed"];
    desk.works(&[&["run", "star.toml", "--out", "out"][..], &sets].concat());
    let s = summary(&desk, "out");
    assert_eq!((at(&s, "congestion_control"), at(&s, "scenario")), (&"hpcc".into(), &"changed".into()));
    assert_eq!((number(&s, "seed"), number(&s, "injected.bytes")), (9.0, 203_000.0));
    let record = desk.read("out/scenario.toml");
    let sets = "--set scheme.preset=hpcc --set seed=9 --set flow.0.size=3KB --set name=changed";
    assert!(record.starts_with(&format!("# tailwater run star.toml {sets}\n")), "{record}");
    // What was written down is the scenario itself: it gives the same.
    desk.works(&["run", "out/scenario.toml", "--out", "again"]);
    for file in ["flows.parquet", "links.parquet", "buffers.parquet"] {
        let bytes = |folder: &str| fs::read(desk.path(folder).join(file)).unwrap();
        assert!(bytes("out") == bytes("again"), "{file} differs");
    }
    assert_eq!(at(&summary(&desk, "again"), "scenario"), &"changed");
    // The page tells the command that was given.
    let page = desk.read("out/report.html");
    assert!(page.contains(&format!("tailwater run star.toml {sets}")), "the page has another command");
}

#[test]
fn what_a_run_writes_down_has_the_title_of_its_file() {
    let desk = Desk::new();
    desk.write("plain.toml", STAR.replace("name = \"two into one\"\n", ""));
    desk.works(&["run", "plain.toml", "--out", "out"]);
    desk.works(&["run", "out/scenario.toml", "--out", "again"]);
    let title = |folder: &str| at(&summary(&desk, folder), "scenario").clone();
    assert_eq!(title("out"), title("again"));
}

#[test]
fn results_replace_earlier_results_and_are_otherwise_the_same() {
    let desk = Desk::new();
    desk.write("star.toml", STAR);
    let run = |folder: &str| {
        desk.works(&["run", "star.toml", "--out", folder, "--quiet"]);
        let mut s = summary(&desk, folder);
        assert!(s.as_object_mut().unwrap().remove("cost").is_some());
        (s, fs::read(desk.path(&format!("{folder}/flows.parquet"))).unwrap())
    };
    let first = run("out");
    assert!(first == run("out") && first == run("deep/er/out"));
    let expected = ["deep", "deep/er", "deep/er/out", "out", "star.toml"].map(|name| desk.path(name));
    let mut found = desk.listing();
    found.retain(|path| !path.to_str().unwrap().contains("out/"));
    assert_eq!(found, BTreeSet::from(expected), "drafts are left behind");
}

#[test]
fn a_recording_is_written_beside_results_that_are_otherwise_the_same() {
    let desk = Desk::new();
    desk.write("star.toml", STAR);
    let run = |folder: &str, more: &[&str]| {
        desk.works(&[&["run", "star.toml", "--out", folder, "--quiet"], more].concat());
        let mut s = summary(&desk, folder);
        assert!(s.as_object_mut().unwrap().remove("cost").is_some());
        let tables = ["flows.parquet", "buffers.parquet", "links.parquet", "scenario.toml", "report.html"];
        (s, tables.map(|name| fs::read(desk.path(&format!("{folder}/{name}"))).unwrap()))
    };
    let recording = |folder: &str| fs::read(desk.path(&format!("{folder}/recording.bin"))).unwrap();
    let plain = run("plain", &[]);
    assert!(!desk.path("plain/recording.bin").exists());
    assert!(plain == run("recorded", &["--record"]) && plain == run("closely", &["--record-every", "100ns"]));
    let (own, close) =
        (Recorded::read(&recording("recorded")).unwrap(), Recorded::read(&recording("closely")).unwrap());
    assert_eq!((own.header.frames > 10, close.header.every_ps), (true, 100_000));
    assert_eq!((own.header.scenario.as_str(), own.header.flows.len()), ("two into one", 2));
    run("again", &["--record", "--threads", "2"]);
    assert_eq!(recording("again"), recording("recorded"));
    // Earlier results are replaced as a whole.
    run("again", &[]);
    assert!(!desk.path("again/recording.bin").exists());
}

#[test]
fn a_closer_look_has_the_same_frames_as_the_whole_run() {
    let desk = Desk::new();
    desk.write("star.toml", STAR);
    let record = |folder: &str, more: &[&str]| {
        desk.works(&[&["run", "star.toml", "--out", folder, "--quiet", "--no-report"], more].concat());
        Recorded::read(&fs::read(desk.path(&format!("{folder}/recording.bin"))).unwrap()).unwrap()
    };
    let whole = record("whole", &["--record-every", "100ns"]);
    let closer = record("closer", &["--record-from", "10us", "--set", "stop=20us"]);
    let header = &closer.header;
    assert_eq!((header.first_ps, header.every_ps, header.frames), (10_000_000, 100_000, 100));
    let part = |column: &Vec<u64>| -> Vec<u64> {
        column.chunks(whole.header.frames).flat_map(|series| series[100..200].to_vec()).collect()
    };
    let window = |columns: &[Vec<u64>]| columns.iter().map(part).collect::<Vec<_>>();
    assert_eq!((closer.ports, closer.flows), (window(&whole.ports), window(&whole.flows)));
    // Longer frames on request; a run has an end, a window a beginning before it, and not too many frames.
    let longer = record("longer", &["--record-from", "10us", "--record-every", "1us", "--set", "stop=20us"]);
    assert_eq!((longer.header.every_ps, longer.header.frames), (1_000_000, 10));
    desk.refuses(&["run", "star.toml", "--record-from", "30us", "--set", "stop=20us"], "not before the end of the run");
    desk.refuses(&["run", "star.toml", "--record-from", "0us", "--set", "stop=1s"], "4096 is the most");
    desk.refuses(&["run", "star.toml", "--record-from", "0us"], "has no `stop`");
    desk.refuses(&["run", "star.toml", "--record-from", "soon"], "--record-from");
}

#[test]
fn a_recording_that_cannot_be_is_refused_and_nothing_is_written() {
    let desk = Desk::new();
    desk.write("star.toml", STAR).write("thesis.txt", "…");
    for every in ["0", "0us", "5", "-1us", "soon", "", "2000ms"] {
        desk.refuses(&["run", "star.toml", "--record", &format!("--record-every={every}")], "--record-every");
    }
    desk.refuses(&["run", "star.toml", "--record", "--out", "thesis.txt"], "thesis.txt");
    desk.refuses(&["run", "star.toml", "--record", "--out", "thesis.txt/out"], "thesis.txt");
    assert_eq!(desk.read("thesis.txt"), "…");
}

#[test]
fn without_a_folder_results_go_where_the_help_says() {
    let desk = Desk::new();
    desk.write("star.toml", STAR);
    assert_eq!(desk.works(&["run", "star.toml", "-q"]), "");
    assert!(desk.path("results/star/summary.json").is_file());
}

#[test]
fn every_example_is_checked_and_run() {
    let desk = Desk::new();
    for name in ["incast", "leaf_spine", "link_failure", "lossy_link"] {
        let path = example(&format!("{name}.toml"));
        let sheet = desk.works(&["check", &path]);
        assert!(sheet.contains("topology") && sheet.contains("base RTT"), "{sheet}");
        assert!(desk.listing().iter().all(|path| !path.ends_with(name)), "a check writes nothing");
        desk.works(&["run", &path, "--out", name, "--quiet"]);
        let s = summary(&desk, name);
        assert_eq!(number(&s, "flows"), number(&s, "finished"));
        assert_eq!(at(&s, "ending"), "complete");
    }
}

#[test]
fn a_check_says_what_would_run_and_takes_overrides() {
    let desk = Desk::new();
    desk.write("star.toml", STAR);
    let sheet = desk.works(&["check", "star.toml", "--set", "scheme.preset=timely", "--set", "topology.hosts=7"]);
    assert!(sheet.contains("congestion control timely") && sheet.contains("7 hosts, 1 switch"), "{sheet}");
    assert_eq!(desk.listing(), BTreeSet::from([desk.path("star.toml")]));
}

#[test]
fn schemes_topologies_and_keys_are_listed() {
    let desk = Desk::new();
    let schemes = desk.works(&["schemes"]);
    for name in ["pfc", "none", "dcqcn", "hpcc", "timely", "dctcp", "bolt", "dcqcn+win", "lossy", "window"] {
        assert!(schemes.lines().any(|line| line.split_whitespace().next() == Some(name)), "no {name} in {schemes}");
    }
    let topologies = desk.works(&["topologies"]);
    for name in ["star", "dumbbell", "leaf-spine", "fat-tree", "two-sites", "chain", "bcube", "file"] {
        assert!(topologies.lines().any(|line| line.trim() == name), "no {name} in {topologies}");
    }
    let schema: serde_json::Value = serde_json::from_str(&desk.works(&["schema"])).unwrap();
    assert_eq!(schema["properties"]["switch"]["properties"]["buffer"]["default"], "12MB");
    let keys = desk.works(&["ns3", "--keys"]);
    for key in CONFIG.lines().map(|line| line.split(' ').next().unwrap()) {
        assert!(keys.contains(key), "no {key} in {keys}");
    }
}

#[test]
fn the_other_simulators_files_are_run() {
    let desk = ns3();
    let printed = desk.works(&["ns3", "config.txt"]);
    assert!(printed.starts_with("2 of 2 flows finished"), "{printed}");
    let fct = desk.read("fct.txt");
    let rows: Vec<Vec<&str>> = fct.lines().map(|line| line.split(' ').collect()).collect();
    assert_eq!(rows.len(), 2);
    for row in rows {
        assert_eq!((row.len(), row[1], row[3], row[4]), (8, "0b000201", "100", "100000"), "{row:?}");
    }
    assert_eq!(desk.read("pfc.txt"), "");
    assert_eq!(desk.listing().len(), 6, "{:?}", desk.listing());
    assert_eq!(desk.works(&["ns3", "config.txt", "-q"]), "");
}

#[test]
fn the_other_simulators_files_are_run_in_our_own_order_on_several_threads() {
    let desk = ns3();
    let output = desk.tailwater(&["ns3", "config.txt", "--order", "ours", "--threads", "2"]);
    assert!(output.status.success(), "{output:?}");
    assert!(text(&output.stderr).contains("note: config.txt: in our own order of ties"), "{output:?}");
    assert_eq!(desk.read("fct.txt").lines().count(), 2);
    desk.refuses(&["ns3", "config.txt", "--threads", "2"], "--order ours");
    let options = ["ns3", "config.txt", "--order", "ours"];
    desk.write("config.txt", changed(CONFIG, "CC_MODE 1", "CC_MODE 10"));
    desk.refuses(&options, "config.txt:");
    desk.refuses(&options, "leave --order ours out");
}

#[test]
fn files_of_a_descendant_are_run_and_whose_they_are_is_said() {
    // ConWeave's: five columns, hosts by number in the results.
    let desk = ns3();
    desk.write("config.txt", format!("{CONFIG}LB_MODE 0\nENABLE_IRN 0\nENABLE_PFC 1\n"));
    desk.write("flow.txt", "1\n0 2 3 100000 2.0\n");
    let output = desk.tailwater(&["ns3", "config.txt"]);
    assert!(text(&output.stderr).contains("note: config.txt: read as ConWeave's simulator"), "{output:?}");
    assert!(desk.read("fct.txt").starts_with("0 2 10000 100 100000 2000000000 "), "{}", desk.read("fct.txt"));
    // PowerTCP's: four counts, rates in bits per second, and options.
    let desk = ns3();
    desk.write("config.txt", changed(CONFIG, "CC_MODE 1", "CC_MODE 3"));
    desk.write("topology.txt", TOPOLOGY.replace("4 1 3", "4 1 1 3").replace("100Gbps", "100000000000.0"));
    let run = |options: &[&str]| {
        let output = desk.tailwater(&[&["ns3", "config.txt"], options].concat());
        let notes = text(&output.stderr);
        assert!(output.status.success() && notes.contains("read as ns3-datacenter"), "{output:?}");
        assert!(notes.contains("not the same to the byte"), "{notes}");
        desk.read("fct.txt")
    };
    let (powertcp, theta, hpcc) = (run(&[]), run(&["--delayWien"]), run(&["--wien=false"]));
    assert_eq!(powertcp, run(&["--wien=true"]));
    assert!(powertcp != hpcc && theta != hpcc && powertcp != theta, "{powertcp}{theta}{hpcc}");
    let desk = ns3();
    desk.refuses(&["ns3", "config.txt", "--wien=true"], "are options of ns3-datacenter");
}

/// Two racks of two hosts at 100 Gb/s, one switch between them at 400 Gb/s, 600 ns a link, in Floodgate's form.
const RACKS: &str = "\
7 3 2 2 1 6
4 5 6
0 4 100 600
1 4 100 600
2 5 100 600
3 5 100 600
4 6 400 600
5 6 400 600
";

/// Floodgate's files: `more` are keys of its own.
fn floodgate(more: &str) -> Desk {
    let desk = ns3();
    let config = changed(CONFIG, "PACKET_PAYLOAD_SIZE 1000", "PACKET_PAYLOAD_SIZE 1460");
    let both = |key: &str, value: &str| format!("{key}_MAP 2 100000000000 {value} 400000000000 {value}");
    let config = changed(&config, "KMAX_MAP 1 100000000000 1600", &both("KMAX", "1600"));
    let config = changed(&config, "KMIN_MAP 1 100000000000 400", &both("KMIN", "400"));
    let config = changed(&config, "PMAX_MAP 1 100000000000 0.2", &both("PMAX", "0.2"));
    desk.write("config.txt", format!("{config}SRCTOR_DST_PFC 0\nRTO_us 0\n{more}"));
    desk.write("topology.txt", RACKS).write("flow.txt", "1 0\n0 2 1460 2.0\n");
    desk.write("gate.cfg", "3 0 100 1\n4\n5\n6\n");
    fs::create_dir(desk.path("distribution")).unwrap();
    desk.write("distribution/Facebook_HadoopDist_All.txt", "5000\n1000 0.5\n9000 1\n");
    desk
}

/// Its windows.
const WINDOWS: &str = "\
USE_FLOODGATE 1
SWTICH_ACK_MODE 2
SWTICH_BYTE_COUNTER 10240
SWTICH_CREDIT_INTERVAL 10
SWITCH_ACK_TH_M 1.5
FLOODGATE_CONFIG_FILE gate.cfg
";

#[test]
fn floodgates_files_are_run_with_its_windows_and_its_results() {
    // 1460 bytes and 72 of headers take 122 + 30 + 30 + 122 ns on the links, which are 2400 ns long; the ACK of 84 bytes takes
    // 6 + 1 + 1 + 6. Alone, by its formula for packets of 1538 bytes: 2707.6 ns and 6.24 for the headers, and 2416.8 back.
    let expected = "rcv 0\t2\t1460\t2000000000\t0\t0\t2.704000\t2.713000\t0.996683 \n\
                    0\t2\t1460\t2000000000\t0\t0\t5.118000\t5.130000\t0.997661 \n";
    for keys in [String::new(), WINDOWS.into(), WINDOWS.replace("10240", "1").replace("MODE 2", "MODE 1")] {
        let desk = floodgate(&format!("FLOW_FROM_FILE 1\n{keys}"));
        let output = desk.tailwater(&["ns3", "config.txt"]);
        assert!(text(&output.stderr).contains("read as Floodgate's simulator"), "{output:?}");
        assert_eq!(desk.read("fct.txt"), expected, "{keys}");
    }
    // Flows in any order, with their queue pairs.
    let desk = floodgate("FLOW_FROM_FILE 1\n");
    desk.write("flow.txt", "2 1\n1 2 1460 2.1 7 1\n0 2 1460 2.0 3 0\n");
    desk.works(&["ns3", "config.txt", "-q"]);
    let lines: Vec<String> = desk.read("fct.txt").lines().map(str::to_owned).collect();
    assert_eq!((lines.len(), &lines[1]), (4, &expected.lines().nth(1).unwrap().replace("\t0\t0\t", "\t3\t0\t")));
    assert!(lines[3].starts_with("1\t2\t1460\t2100000000\t7\t1\t"), "{}", lines[3]);
    // What is missing is refused by name.
    for (keys, place) in [
        (WINDOWS.replace("MODE 2", "MODE 0"), "SWTICH_ACK_MODE 0 cannot be run"),
        (WINDOWS.replace("MODE 2", "MODE 1"), "SWTICH_ACK_MODE 1 with SWTICH_BYTE_COUNTER above 1"),
        (WINDOWS.replace("INTERVAL 10", "INTERVAL 0"), "SWTICH_CREDIT_INTERVAL 0"),
        (WINDOWS.replace("FLOODGATE_CONFIG_FILE gate.cfg", ""), "FLOODGATE_CONFIG_FILE is missing"),
        (format!("{WINDOWS}RESET_ONLY_TOR_SWITCH_WIN 1\n"), "RESET_ONLY_TOR_SWITCH_WIN 1"),
        ("ROUTING_MODE 1\n".into(), "ROUTING_MODE \"1\" cannot be run"),
        ("QP_MODE 1\n".into(), "QP_MODE \"1\" cannot be run"),
    ] {
        floodgate(&format!("FLOW_FROM_FILE 1\n{keys}")).refuses(&["ns3", "config.txt"], place);
    }
}

#[test]
fn floodgates_flows_are_drawn() {
    let drawn = "FLOW_FROM_FILE 0\nFLOW_NUM 400\nLOAD 0.5\nFLOW_CDF 7\n";
    let run = |more: &str| {
        let desk = floodgate(&format!("{drawn}{more}"));
        desk.works(&["ns3", "config.txt", "-q"]);
        let all = desk.read("fct.txt");
        let sent = all.lines().filter(|line| !line.starts_with("rcv"));
        sent.map(|line| line.split('\t').take(4).map(|word| word.parse().unwrap()).collect()).collect::<Vec<Vec<u64>>>()
    };
    let poisson = run("");
    assert_eq!(poisson.len(), 400);
    assert!(poisson.iter().all(|flow| flow[0] / 2 != flow[1] / 2 && (1000..=9000).contains(&flow[2])));
    // Half are of 1000 bytes, the others evenly up to 9000: 3000 on average.
    let mean = poisson.iter().map(|flow| flow[2]).sum::<u64>() as f64 / 400.0;
    assert!((2500.0..3500.0).contains(&mean), "{mean}");
    // Half of 12.5 GB/s in flows of 5000 bytes, which the file has for its mean: 1.25 in a microsecond for each of four hosts. 400 take 80 us.
    let last = poisson.iter().map(|flow| flow[3]).max().unwrap() - 2_000_000_000;
    assert!((65_000..95_000).contains(&last), "{last}");
    assert_eq!(run(WINDOWS).len(), 400);
    // Incasts beside them: of 5 flows of 30 to 40 packets for the first host of one rack after the other, which have nothing else.
    let mixed = run("INCAST_MIX 5\nINCAST_LOAD 0.5\nINCAST_CDF 9\n");
    let (incast, others): (Vec<_>, Vec<_>) = mixed.iter().partition(|flow| flow[2] >= 30 * 1460);
    assert!(incast.len() >= 5 && incast.len() % 5 == 0, "{}", incast.len());
    assert!(incast.iter().all(|flow| flow[1] % 2 == 0 && flow[2] % 1460 == 0 && flow[2] <= 40 * 1460));
    assert!(others.iter().all(|flow| flow[0] % 2 == 1 && flow[1] % 2 == 1));
    assert!(!others.is_empty());
    // Incasts alone: two of 20 flows to host 0, 30 us apart.
    let desk =
        floodgate("FLOW_FROM_FILE 0\nFLOW_NUM 20\nFLOW_CDF 99\nINCAST_TIME 2\nINCAST_INTERVAL 30\nINCAST_CDF 0\n");
    desk.works(&["ns3", "config.txt", "-q"]);
    let all = desk.read("fct.txt");
    let starts = all.lines().filter(|line| line.starts_with("rcv ")).map(|line| line.split('\t').nth(3).unwrap());
    let first = starts.clone().filter(|start| start.parse::<u64>().unwrap() < 2_000_001_000).count();
    assert_eq!((first, starts.count()), (20, 40));
    for (keys, place) in [
        ("FLOW_CDF 2\n", "FLOW_CDF 2 asks for"),
        ("FLOW_CDF 99\n", "FLOW_CDF 99 with INCAST_CDF 9"),
        ("AVG_MESSAGE_PER_QP 0\n", "AVG_MESSAGE_PER_QP 0"),
        ("INCAST_MIX 5\nINCAST_LOAD 0\n", "INCAST_LOAD 0"),
        ("FLOW_CDF 13\n", "Facebook_WebServerDist_IntraCluster.txt"),
    ] {
        floodgate(&format!("FLOW_FROM_FILE 0\nFLOW_NUM 10\n{keys}")).refuses(&["ns3", "config.txt"], place);
    }
}

#[test]
fn simais_topology_is_given_on_the_command_line_and_nvswitches_mark_nothing() {
    let desk = ns3();
    let config = changed(CONFIG, "TOPOLOGY_FILE topology.txt\n", "");
    let config = changed(&config, "FLOW_FILE flow.txt", "FLOW_FILE /nowhere/flow1.txt");
    desk.write("SimAI.conf", format!("{config}RATE_MON_FILE rate.txt\nMON_START 0\n"));
    // Two GPUs of a server, by an NVSwitch at a rate that no map has, and on two rails.
    let rails = "0 3 100Gbps 1us 0\n1 4 100Gbps 1us 0\n3 5 100Gbps 1us 0\n4 5 100Gbps 1us 0\n";
    let topology = format!("6 2 1 3 6 H100\n2 3 4 5\n0 2 2880Gbps 25ns 0\n1 2 2880Gbps 25ns 0\n{rails}");
    desk.write("topo", &topology).write("flow.txt", "1\n0 1 3 100 1000 2.0\n");
    desk.refuses(&["ns3", "SimAI.conf"], "TOPOLOGY_FILE is missing: SimAI is given the topology on its command line");
    desk.refuses(&["ns3", "SimAI.conf", "-n", "topo"], "name the file with --flows FILE");
    desk.works(&["ns3", "SimAI.conf", "-n", "topo", "--flows", "flow.txt", "-q"]);
    // Two links of 25 ns there and back; 1048 bytes take 2 ns on each, an ACK of 60 less than one. The ideal counts them once more.
    assert!(desk.read("fct.txt").ends_with(" 1000 2000000000 104 106\n"), "{}", desk.read("fct.txt"));
    // Its results may be for a folder of a container that is not there.
    desk.write("SimAI.conf", changed(&desk.read("SimAI.conf"), "FCT_OUTPUT_FILE ", "FCT_OUTPUT_FILE /nowhere/"));
    let run = ["ns3", "SimAI.conf", "-n", "topo", "--flows", "flow.txt", "-q"];
    desk.refuses(&run, "/nowhere/fct.txt: cannot be written");
    desk.works(&[&run[..], &["--out", "results/here"]].concat());
    assert_eq!(desk.read("results/here/fct.txt"), desk.read("fct.txt"));
}

#[test]
fn powertcps_programs_print_what_its_scripts_look_for() {
    let desk = ns3();
    desk.write("config.txt", changed(CONFIG, "CC_MODE 1", "CC_MODE 3"));
    desk.write("topology.txt", TOPOLOGY.replace("4 1 3", "4 1 1 3").replace("100Gbps", "100000000000.0"));
    desk.write("flow.txt", "2\n0 2 3 100 1000000 0.0\n1 2 3 101 1000000 0.0\n");
    let of = |options: &[&str]| desk.works(&[&["ns3", "config.txt"], options].concat());
    let words = |line: &str, at: usize| line.split(' ').nth(at).unwrap().parse::<f64>().unwrap();
    let burst = of(&["--program=burst", "--wien=true", "--algorithm=3", "--windowCheck=1"]);
    let receiver: Vec<&str> = burst.lines().filter(|line| line.starts_with("ToR 0 Port 2 throughput")).collect();
    // 1.5 round trips of 4160 ns each; the receiver's link carries 2 MB and headers in about 170 us.
    let times: Vec<f64> = receiver.iter().map(|line| words(line, 11)).collect();
    assert!((times[1] - times[0] - 6.24e-6).abs() < 2e-6 && receiver.len() > 20, "{burst}");
    let sent: f64 = receiver.iter().map(|line| words(line, 7)).sum();
    assert!((2.0e6..2.3e6).contains(&sent), "{sent}");
    assert!(receiver.iter().any(|line| (0.95e11..1.02e11).contains(&words(line, 5))), "{burst}");
    let fairness = of(&["--program=fairness", "--algorithm", "7", "--windowCheck=0"]);
    assert!(fairness.lines().any(|line| line.starts_with("Src 1 Total 0 throughput ")), "{fairness}");
    assert!(!fairness.contains("Src 2"), "{fairness}");
    // Flows are drawn, and the flow file is not looked at.
    desk.write("sizes.txt", "0 0\n1000 0.5\n3000 1\n");
    fs::remove_file(desk.path("flow.txt")).unwrap();
    let times = ["--START_TIME=2", "--FLOW_LAUNCH_END_TIME=2.0001", "--END_TIME=2.5", "--load=0.5", "--request=0"];
    let fabric = ["--SERVER_COUNT=3", "--LEAF_COUNT=1", "--SPINE_COUNT=1", "--cdfFileName=sizes.txt"];
    let workload = of(&[&["--program=workload"], &times[..], &fabric[..]].concat());
    let lines = workload.lines().filter(|line| line.starts_with("FCT ") && line.contains(" baseFCT "));
    assert_eq!(lines.count(), desk.read("fct.txt").lines().count());
    // Half of 100 Gb/s in 100 us: 500 flows of 1250 bytes.
    let count = desk.read("fct.txt").lines().count();
    assert!((400..600).contains(&count), "{count}");
    desk.refuses(&["ns3", "config.txt", "--program=workload"], "--cdfFileName");
    desk.refuses(&["ns3", "config.txt", "--load=0.5"], "--program");
    desk.refuses(&["ns3", "config.txt", "--algorithm=5"], "--algorithm");
    desk.refuses(&["ns3", "config.txt", "--windowCheck=0"], "--windowCheck");
}

#[test]
fn the_benchmark_has_a_line_for_the_floor_and_one_for_each_run() {
    let desk = Desk::new();
    let table = desk.works(&["bench", "--hosts", "32", "--duration", "20us"]);
    let rows: Vec<Vec<&str>> = table.lines().map(|line| line.split_whitespace().collect()).collect();
    let names: Vec<&str> = rows.iter().map(|row| row[0]).collect();
    assert_eq!(names, ["run", "floor", "dcqcn+win", "hpcc"], "{table}");
    for row in &rows[1..] {
        assert!(row[2].parse::<u64>().unwrap() > 1000 && row[4].parse::<f64>().unwrap() > 0.0, "{row:?}");
    }
    desk.refuses(&["bench", "--hosts", "33"], "--hosts: 33");
    desk.refuses(&["bench", "--hosts", "16"], "--hosts: 16");
    desk.refuses(&["bench", "--presets", "hpc"], "--presets: there is no preset \"hpc\"");
    for load in ["0", "-1", "1.5", "NaN"] {
        desk.refuses(&["bench", &format!("--load={load}")], "--load");
    }
}

#[test]
fn a_benchmark_of_no_duration_is_refused() {
    let desk = Desk::new();
    for duration in ["5", "5 parsecs", "-5us", "0us", ""] {
        desk.refuses(&["bench", "--hosts", "32", &format!("--duration={duration}")], "--duration");
    }
}

#[test]
fn a_wrong_command_line_is_explained() {
    let desk = Desk::new();
    for arguments in [&["fly"][..], &[], &["run"], &["ns3"], &["run", "a.toml", "--out"], &["run", "a.toml", "--speed"]]
    {
        let output = desk.tailwater(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(text(&output.stderr).contains("--help"), "{arguments:?}: {}", text(&output.stderr));
        assert_eq!(desk.listing().len(), 0);
    }
    let help = desk.works(&["--help"]);
    assert!(help.contains("Usage") && help.contains("docs/start.md") && help.contains("cargo book --open"), "{help}");
    assert!(desk.works(&["--version"]).starts_with("tailwater "));
}

#[test]
fn a_command_line_that_means_something_else_is_answered_with_it() {
    let desk = Desk::new();
    desk.write("star.toml", STAR);
    for (line, tip) in [
        ("compare star.toml --schemes hpcc, bfc", "write --schemes hpcc,bfc, or put the value in quotes"),
        ("run star.toml --schemes hpcc", "write --set scheme.preset=hpcc; `tailwater compare` runs several"),
        ("run star.toml --seed 3", "write --set seed=3; `tailwater compare` runs several"),
        ("check star.toml --replace", "--replace is an option of `tailwater compare`"),
    ] {
        let output = desk.tailwater(&line.split(' ').collect::<Vec<_>>());
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{line}: {said}");
        assert!(said.contains(tip), "{line}: no \"{tip}\" in {said}");
    }
    let said = desk.refuses(&["run", "star.toml", "--set", "scheme=hpcc"], "--set scheme=hpcc: scheme is a table");
    assert!(said.contains("write --set scheme.preset=hpcc"), "{said}");
    desk.write("load.toml", format!("{STAR}[[load]]\nsizes = \"rpc\"\nload = \"60%\"\nduration = \"1us\"\n"));
    let said = desk.refuses(&["check", "load.toml"], "load.toml:20:8: load: expected a number");
    assert!(said.contains("write 0.6"), "{said}");
    let json = desk.tailwater(&["check", "star.toml", "--json", "--set", "seed=x"]);
    assert_eq!(json.status.code(), Some(2));
}

#[test]
fn every_bad_line_of_a_trace_is_named_at_once() {
    let desk = Desk::new();
    desk.write("t.toml", "topology = { kind = \"star\", hosts = 4 }\ntraffic.trace = \"t.csv\"\n");
    desk.write("t.csv", format!("src,dst,size_bytes,start_us\n{}", "h0,h9,1,0\n".repeat(22)));
    let said = desk.refuses(&["run", "t.toml"], "t.csv:2:4: there is no node");
    assert!(said.contains("t.csv:11:4: ") && said.contains("error: t.csv: and 12 more"), "{said}");
    desk.write("t.csv", "src;dst;size_bytes;start_us\nh0;h1;1;0\n");
    desk.refuses(&["run", "t.toml"], "t.csv:1:4: semicolons are between the columns");
    desk.write("t.csv", "h0,h1,1,0\n");
    desk.refuses(&["run", "t.toml"], "t.csv:1:1: the columns have no names");
}

#[test]
fn a_deadlock_comes_with_what_to_do_next() {
    let desk = Desk::new();
    let example = example("bcube_deadlock.toml");
    let printed = desk.works(&["run", &example, "--no-report", "--set", "seed=2"]);
    let command = format!("next: `tailwater deadlock {example} --set seed=2` ");
    for part in [command.as_str(), "pfc-watchdog", "docs/guides/stuck.md"] {
        assert!(printed.contains(part), "no {part} in {printed}");
    }
}

#[test]
fn the_version_has_the_code_that_decides_results_and_is_short_if_asked_so() {
    let desk = Desk::new();
    let (long, short) = (desk.works(&["--version"]), desk.works(&["-V"]));
    let (first, rest) = long.split_once('\n').unwrap();
    assert_eq!(first, short.trim_end());
    assert!(first.starts_with(concat!("tailwater ", env!("CARGO_PKG_VERSION"))), "{first}");
    let code = rest.trim_end().strip_prefix("results of code ").unwrap_or_default();
    assert!(code.len() == 16 && code.chars().all(|c| c.is_ascii_hexdigit()), "{rest}");
}

#[test]
fn completions_and_manual_pages_know_the_commands() {
    let desk = Desk::new();
    for shell in ["bash", "zsh", "fish"] {
        let script = desk.works(&["completions", shell]);
        assert!(script.contains("reproduce") && script.contains("vary"), "{shell}");
    }
    assert_eq!(desk.tailwater(&["completions", "abacus"]).status.code(), Some(2));
    assert_eq!(desk.works(&["man", "pages"]), "pages/tailwater.1\n");
    let run = desk.read("pages/tailwater-run.1");
    assert!(run.contains("Override a key") && run.contains(".TH"), "{run}");
}

/// The scenario with one part replaced, which must be there.
#[track_caller]
fn changed(text: &str, from: &str, to: &str) -> String {
    assert!(text.contains(from), "no {from}");
    text.replacen(from, to, 1)
}

#[test]
fn a_scenario_that_cannot_be_read_is_refused() {
    let desk = Desk::new();
    fs::create_dir(desk.path("folder.toml")).unwrap();
    let junk: Vec<u8> = (0..2000u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    desk.write("junk.toml", &junk).write("zeros.toml", [0u8; 300]).write("empty.toml", "");
    for command in ["run", "check"] {
        desk.refuses(&[command, "missing.toml"], "missing.toml: cannot be read");
        desk.refuses(&[command, "folder.toml"], "folder.toml: is a directory");
        desk.refuses(&[command, "junk.toml"], "junk.toml:1");
        desk.refuses(&[command, "zeros.toml"], "zeros.toml:1");
        desk.refuses(&[command, "empty.toml"], "empty.toml");
        desk.refuses(&[command, "missing.toml/below"], "missing.toml/below");
        desk.refuses(&[command, "empty.toml/below"], "empty.toml/below");
    }
}

#[test]
fn a_scenario_cut_short_anywhere_is_refused_or_runs() {
    // Cut after a whole flow it is still a scenario; anywhere else it must be refused, and with the right line.
    let desk = Desk::new();
    let mut refused = 0;
    for end in (0..STAR.len()).step_by(7) {
        desk.write("cut.toml", &STAR[..end]);
        let output = desk.tailwater(&["check", "cut.toml"]);
        if !output.status.success() {
            let problem = desk.refuses(&["run", "cut.toml"], "cut.toml");
            let line = problem.split("cut.toml:").nth(1).and_then(|rest| rest.split(':').next()?.parse::<usize>().ok());
            let lines = STAR[..end].lines().count();
            assert!(line.is_none_or(|line| (1..=lines.max(1) + 1).contains(&line)), "{lines} lines, and {problem}");
            refused += 1;
        }
    }
    assert!(refused > 20, "{refused}");
}

#[test]
fn a_wrong_scenario_is_refused_at_its_line() {
    let desk = Desk::new();
    let cases = [
        ("hosts = 4", "host = 4", 4, "unknown key \"host\""),
        ("[scheme]", "[schema]", 7, "unknown key \"schema\""),
        ("rate = \"100Gbps\"", "rate = \"100Gbs\"", 5, "unit"),
        ("rate = \"100Gbps\"", "rate = \"100\"", 5, "unit"),
        ("rate = \"100Gbps\"", "rate = 100", 5, "a rate"),
        ("rate = \"100Gbps\"", "rate = \"0Gbps\"", 5, "rate is 0"),
        ("rate = \"100Gbps\"", "rate = \"-1Gbps\"", 5, "negative"),
        ("rate = \"100Gbps\"", "rate = \"99999999999999999999999Gbps\"", 5, "too large"),
        ("delay = \"1us\"", "delay = \"0us\"", 6, "delay is 0"),
        ("delay = \"1us\"", "delay = \"-1us\"", 6, "negative"),
        ("delay = \"1us\"", "delay = \"99999999999s\"", 6, "too large"),
        ("delay = \"1us\"", "delay = \"0.5ps\"", 6, "0.5ps"),
        ("hosts = 4", "hosts = 0", 4, "hosts is 0"),
        ("hosts = 4", "hosts = -4", 4, "-4"),
        ("hosts = 4", "hosts = 4.5", 4, "a whole number"),
        ("hosts = 4", "hosts = 4294967295", 3, "more than"),
        ("hosts = 4", "hosts = 99999999999999999999", 4, ""),
        ("hosts = 4", "hosts = nan", 4, "a whole number"),
        ("\"star\"", "\"ring\"", 3, "no topology \"ring\""),
        ("\"dcqcn+win\"", "\"no-such\"", 8, "no preset \"no-such\""),
        ("src = \"h1\"", "src = \"h0\"", 11, "h0 sends to itself"),
        ("src = \"h1\"", "src = \"h4\"", 10, "no node \"h4\""),
        ("src = \"h1\"", "src = 99", 10, "no node 99"),
        ("src = \"h1\"", "src = -1", 10, "-1"),
        ("src = \"h1\"", "src = \"sw0\"", 10, "sw0 is a switch"),
        ("size = \"200KB\"", "size = \"0B\"", 12, "size is 0"),
        ("size = \"200KB\"", "size = \"-5B\"", 12, "negative"),
        ("size = \"200KB\"", "size = \"200Kb\"", 12, "unit"),
        ("size = \"200KB\"", "size = \"9999999999GB\"", 12, "size is"),
        ("size = \"200KB\"", "size = \"200KB\"\nclass = 1", 13, "class 1"),
        ("size = \"200KB\"", "size = \"200KB\"\ncount = 0", 13, "count is 0"),
        ("size = \"200KB\"", "size = \"200KB\"\ncount = 99999999999", 13, "count is"),
        ("start = \"1us\"", "start = \"1us\"\n[switch]\nbuffer = \"1KB\"", 19, "cannot hold"),
        ("start = \"1us\"", "start = \"1us\"\n[switch]\nalpha = nan", 19, "alpha"),
        ("start = \"1us\"", "start = 1us", 17, "not TOML"),
        ("[scheme]", "[scheme", 7, "not TOML"),
        ("name = \"two into one\"", "name = \"two into one", 1, "not TOML"),
        ("kind = \"star\"", "kind = \"star\"\nkind = \"star\"", 4, ""),
    ];
    for (from, to, line, message) in cases {
        desk.write("wrong.toml", changed(STAR, from, to));
        let problem = desk.refuses(&["run", "wrong.toml"], &format!("wrong.toml:{line}:"));
        assert!(problem.contains(message), "no \"{message}\" in {problem}");
        desk.refuses(&["check", "wrong.toml"], &format!("wrong.toml:{line}:"));
    }
}

#[test]
fn a_value_of_the_wrong_kind_is_refused_with_what_to_write() {
    let desk = Desk::new();
    let flow = "[[flow]]\nsrc = 1\ndst = 0\nsize = \"1KB\"\n";
    // What stands above the wrong lines, and the wrong lines one by one.
    let cases: [(&str, &[&str]); 12] = [
        ("", &["hosts = \"many\"", "rate = 5"]),
        (flow, &["start = 1", "start = true", "class = \"high\"", "count = \"two\""]),
        ("[[flow]]\ndst = 0\nsize = \"1KB\"\n", &["src = 1.5"]),
        ("[[flow]]\nsrc = 1\ndst = 0\n", &["size = 5"]),
        ("[[link]]\nbetween = [\"h1\", \"sw0\"]\n", &["loss = \"much\"", "rate = 5", "delay = 5", "down = 5"]),
        ("[[link]]\n", &["between = 5"]),
        ("[traffic]\n", &["classes = \"two\"", "trace = 5"]),
        ("[switch]\n", &["buffer = 5", "queues = \"many\""]),
        ("[nic]\n", &["timeout = 5"]),
        ("[measure]\n", &["sample = 5"]),
        ("[scheme]\n", &["preset = 5", "window = 5", "window_rule = 5", "flow_control = 5"]),
        ("[scheme]\ncongestion_control = \"dcqcn\"\n[scheme.dcqcn]\n", &["ai = 5"]),
    ];
    let mut without = Vec::new();
    for (above, lines) in cases {
        for wrong in lines {
            let above = format!("[topology]\nkind = \"star\"\n{above}");
            desk.write("wrong.toml", format!("{above}{wrong}\n{flow}"));
            let output = desk.tailwater(&["check", "wrong.toml"]);
            let (problem, line) = (text(&output.stderr), above.lines().count() + 1);
            assert_eq!(output.status.code(), Some(1), "{wrong}");
            assert!(problem.contains(&format!("wrong.toml:{line}:")), "{wrong}: {problem}");
            if !problem.contains("\n  help: ") {
                without.push(*wrong);
            }
        }
    }
    assert!(without.is_empty(), "no remedy is given for {without:?}");
}

#[test]
fn a_wrong_override_is_refused_by_its_own_text() {
    let desk = Desk::new();
    desk.write("star.toml", STAR);
    for set in [
        "switch.buffer",
        "switch.buffer=",
        "=4MB",
        "switch..buffer=4MB",
        "switch.bufer=4MB",
        "switch.buffer=4XB",
        "switch.buffer=-4MB",
        "topology.rate=0bps",
        "topology.hosts=99999999999999999999",
        "flow.0.src=h9",
        "flow.9.src=h1",
        "stop=0ps",
        "seed=-1",
    ] {
        desk.refuses(&["run", "star.toml", "--set", set], &format!("--set {set}"));
    }
}

#[test]
fn files_that_a_scenario_names_are_refused_by_their_own_name() {
    let desk = Desk::new();
    let node = |name: &str, kind: &str| format!("[[node]]\nname = \"{name}\"\nkind = \"{kind}\"\n");
    let link = |a: &str| format!("[[link]]\nbetween = [\"{a}\", \"s\"]\nrate = \"10Gbps\"\ndelay = \"1us\"\n");
    let nodes = [node("a", "host"), node("b", "host"), node("c", "host"), node("s", "switch")].concat();
    let graph = [nodes.as_str(), &link("a"), &link("b"), &link("c")].concat();
    let scenario = "[topology]\nkind = \"file\"\npath = \"net.toml\"\n[traffic]\ntrace = \"flows.csv\"\n";
    desk.write("run.toml", scenario).write("net.toml", &graph).write("flows.csv", "src,dst,size,start\na,b,1KB,0us\n");
    desk.works(&["check", "run.toml"]);

    desk.write("net.toml", [nodes.as_str(), &link("a"), &link("b")].concat());
    let problem = desk.refuses(&["run", "run.toml"], "net.toml");
    assert!(problem.contains("has no link"), "{problem}");
    // Two islands: every host has a link, and some cannot reach the others.
    let islands =
        [nodes.as_str(), &node("t", "switch"), &link("a"), &link("b"), &link("c").replace("\"s\"", "\"t\"")].concat();
    desk.write("net.toml", islands);
    let problem = desk.refuses(&["run", "run.toml"], "net.toml");
    assert!(problem.contains("cannot be reached"), "{problem}");
    desk.write("net.toml", changed(&graph, "10Gbps", "0Gbps"));
    desk.refuses(&["run", "run.toml"], "net.toml:15:");
    desk.write("net.toml", [0xffu8; 40]);
    desk.refuses(&["run", "run.toml"], "net.toml");
    desk.write("net.toml", &graph[..graph.len() / 2]);
    desk.refuses(&["run", "run.toml"], "net.toml");
    desk.write("net.toml", &graph);

    for (row, message) in [
        ("a,a,1KB,0us", "a sends to itself"),
        ("a,x,1KB,0us", "no node"),
        ("a,b,1,0us", "unit"),
        ("a,b,0B,0us", "size is 0"),
        ("a,b,-1B,0us", "negative"),
        ("a,b,1KB", "3 fields"),
        ("a,b,1KB,0us,9", ""),
        ("\u{0}\u{1}", ""),
    ] {
        desk.write("flows.csv", format!("src,dst,size,start\na,b,1KB,0us\n{row}\n"));
        let problem = desk.refuses(&["run", "run.toml"], "flows.csv:3:");
        assert!(problem.contains(message), "no \"{message}\" in {problem}");
    }
    fs::remove_file(desk.path("flows.csv")).unwrap();
    desk.refuses(&["run", "run.toml"], "flows.csv");
    fs::create_dir(desk.path("flows.csv")).unwrap();
    desk.refuses(&["run", "run.toml"], "flows.csv");
}

#[test]
fn a_folder_that_cannot_be_written_is_refused_before_the_run() {
    let desk = Desk::new();
    desk.write("star.toml", STAR).write("thesis.txt", "…");
    fs::create_dir(desk.path("mine")).unwrap();
    desk.write("mine/thesis.txt", "…");
    // The message names the folder, or the part of its path that is in the way.
    desk.refuses(&["run", "star.toml", "--out", "thesis.txt"], "thesis.txt");
    desk.refuses(&["run", "star.toml", "--out", "thesis.txt/out"], "thesis.txt");
    desk.refuses(&["run", "star.toml", "--out", "thesis.txt/deep/out"], "thesis.txt");
    desk.refuses(&["run", "star.toml", "--out", "mine"], "mine: exists and does not hold results");
    assert_eq!(desk.read("mine/thesis.txt"), "…");
    assert_eq!(desk.read("thesis.txt"), "…");
    // An empty folder may be used.
    fs::create_dir(desk.path("empty")).unwrap();
    desk.works(&["run", "star.toml", "--out", "empty", "-q"]);
}

#[test]
fn the_other_simulators_files_are_refused_where_they_cannot_be_read() {
    let junk: Vec<u8> = (0..2000u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    for name in ["config.txt", "topology.txt", "flow.txt", "trace.txt"] {
        let desk = ns3();
        desk.write(name, &junk);
        desk.refuses(&["ns3", "config.txt"], &format!("{name}:1"));
        desk.write(name, "");
        desk.refuses(&["ns3", "config.txt"], name);
        fs::remove_file(desk.path(name)).unwrap();
        let said = desk.refuses(&["ns3", "config.txt"], &format!("{name}: cannot be read"));
        assert!(name == "config.txt" || said.contains("_FILE names it, in line "), "{said}");
        fs::create_dir(desk.path(name)).unwrap();
        desk.refuses(&["ns3", "config.txt"], &format!("{name}: is a directory"));
    }
}

#[test]
fn all_files_that_a_configuration_names_and_that_are_not_there_are_told_at_once() {
    let desk = ns3();
    for name in ["topology.txt", "flow.txt", "trace.txt"] {
        fs::remove_file(desk.path(name)).unwrap();
    }
    let said = desk.refuses(&["ns3", "config.txt"], "topology.txt: cannot be read");
    assert!(said.contains("FLOW_FILE names it") && said.contains("TRACE_FILE names it"), "{said}");
}

#[test]
fn the_other_simulators_files_cut_short_anywhere_are_refused_or_run() {
    for (name, whole) in [("config.txt", CONFIG), ("topology.txt", TOPOLOGY), ("flow.txt", FLOWS)] {
        let desk = ns3();
        let mut refused = 0;
        for end in (0..whole.len()).step_by(11) {
            desk.write(name, &whole[..end]);
            let output = desk.tailwater(&["ns3", "config.txt", "-q"]);
            if output.status.success() {
                fs::remove_file(desk.path("fct.txt")).unwrap();
                fs::remove_file(desk.path("pfc.txt")).unwrap();
            } else {
                desk.refuses(&["ns3", "config.txt"], ".txt");
                refused += 1;
            }
        }
        assert!(refused > 2, "{name}: {refused}");
    }
}

#[test]
fn the_other_simulators_files_are_refused_at_the_wrong_line() {
    let cases: &[(&str, &str, &str, &str)] = &[
        ("config.txt", "ENABLE_QCN 1", "ENABLE_QNC 1", "config.txt:1:1: "),
        ("config.txt", "ENABLE_QCN 1", "ENABLE_QCN yes", "config.txt:1:12: "),
        ("config.txt", "SIZE 1000", "SIZE 0", "config.txt:2:21: "),
        ("config.txt", "SIZE 1000", "SIZE -1000", "config.txt:2:21: "),
        ("config.txt", "SIZE 1000", "SIZE 99999999999999999999", "config.txt:2:21: "),
        ("config.txt", "STOP_TIME 2.5", "STOP_TIME -2.5", "config.txt:8:21: "),
        ("config.txt", "STOP_TIME 2.5", "STOP_TIME nan", "config.txt:8:21: "),
        ("config.txt", "STOP_TIME 2.5", "STOP_TIME 1e300", "config.txt:8:21: "),
        ("config.txt", "CC_MODE 1", "CC_MODE 11", "config.txt:9:9: "),
        ("config.txt", "CC_MODE 1", "CC_MODE 2", "config.txt:9:9: "),
        ("config.txt", "20Mb/s", "20Mb/h", "config.txt:15:9: "),
        ("config.txt", "20Mb/s", "-20Mb/s", "config.txt:15:9: "),
        ("config.txt", "MIN_RATE 1000Mb/s", "MIN_RATE 0Mb/s", "config.txt:17:10: "),
        ("config.txt", "INTERVAL 1\nHAS", "INTERVAL -1\nHAS", "config.txt:18:17: "),
        ("config.txt", "KMIN_MAP 1 ", "KMIN_MAP 2 ", "config.txt:23:"),
        ("config.txt", "400\n", "-400\n", "config.txt:23:"),
        ("config.txt", "0.2", "1.2", "config.txt:24:"),
        ("config.txt", "BUFFER_SIZE 12", "BUFFER_SIZE 0", "config.txt:25:"),
        ("config.txt", "BUFFER_SIZE 12", "BUFFER_SIZE 12\nLINK_DOWN 5 0 1", "config.txt:26:"),
        ("config.txt", "TOPOLOGY_FILE topology.txt\n", "", "config.txt"),
        ("config.txt", "FLOW_FILE flow.txt\n", "", "config.txt"),
        ("topology.txt", "0 3 100Gbps", "0 3 100Gbs", "topology.txt:3:5: "),
        ("topology.txt", "0 3 100Gbps", "0 3 0Gbps", "topology.txt:3:5: "),
        ("topology.txt", "0 3 100Gbps", "0 3 -1Gbps", "topology.txt:3:5: "),
        ("topology.txt", "0 3 100Gbps", "0 9 100Gbps", "topology.txt:3:3: "),
        ("topology.txt", "0 3 100Gbps", "3 3 100Gbps", "topology.txt:3:"),
        ("topology.txt", "0.001ms 0\n1", "0.001m 0\n1", "topology.txt:3:13: "),
        ("topology.txt", "0.001ms 0\n1", "-0.001ms 0\n1", "topology.txt:3:13: "),
        ("topology.txt", "0.001ms 0\n1", "0.001ms 2\n1", "topology.txt:3:21: "),
        ("topology.txt", "4 1 3", "99999999999999999999 1 3", "topology.txt:1:1: "),
        ("topology.txt", "4 1 3", "4 1 4", "topology.txt:"),
        ("topology.txt", "4 1 3\n", "5 1 3\n", "topology.txt"),
        ("flow.txt", "0 2 3 100 100000", "2 2 3 100 100000", "flow.txt:2:3: "),
        ("flow.txt", "0 2 3 100 100000", "0 7 3 100 100000", "flow.txt:2:3: "),
        ("flow.txt", "0 2 3 100 100000", "0 3 3 100 100000", "flow.txt:2:3: "),
        ("flow.txt", "0 2 3 100 100000", "0 2 -1 100 100000", "flow.txt:2:5: "),
        ("flow.txt", "0 2 3 100 100000", "0 2 3 100 0", "flow.txt:2:11: "),
        ("flow.txt", "0 2 3 100 100000", "0 2 3 100 -1", "flow.txt:2:11: "),
        ("flow.txt", "0 2 3 100 100000", "0 2 3 100 99999999999999999999", "flow.txt:2:11: "),
        ("flow.txt", "2.000000000", "2.1", "flow.txt:3:18: "),
        ("flow.txt", "2.000000000", "-2", "flow.txt:2:18: "),
        ("flow.txt", "2.000000000", "inf", "flow.txt:2:18: "),
        ("flow.txt", "2\n0", "3\n0", "flow.txt:3"),
    ];
    for (name, from, to, place) in cases {
        let desk = ns3();
        let whole = desk.read(name);
        desk.write(name, changed(&whole, from, to));
        desk.refuses(&["ns3", "config.txt"], place);
    }
}

#[test]
fn more_lines_than_a_file_announces_are_left_out_and_noted() {
    // The other simulator's own examples announce fewer flows than they list.
    let desk = ns3();
    desk.write("flow.txt", changed(FLOWS, "2\n0", "1\n0")).write("trace.txt", "1\n0 1\n");
    let output = desk.tailwater(&["ns3", "config.txt"]);
    assert_eq!(output.status.code(), Some(0));
    let notes = text(&output.stderr);
    assert!(notes.contains("note: flow.txt:3:1: ") && notes.contains("note: trace.txt:2:3: "), "{notes}");
    assert!(text(&output.stdout).starts_with("1 of 1 flows finished"));
    assert_eq!(desk.read("fct.txt").lines().count(), 1);
    assert_eq!(text(&desk.tailwater(&["ns3", "config.txt", "-q"]).stderr), "");
}

#[test]
fn files_without_their_counts_are_refused_and_nothing_runs() {
    for (name, contents, message) in [
        ("flow.txt", changed(FLOWS, "2\n0", "0"), "the file begins with a flow, and not with the number of flows"),
        ("flow.txt", changed(FLOWS, "2\n0", "3\n0"), "the file ends after 2 of the 3 flows"),
        ("topology.txt", changed(TOPOLOGY, "4 1 3\n3\n", ""), "the first link comes before the numbers of nodes"),
    ] {
        let desk = ns3();
        desk.write(name, contents);
        let problem = desk.refuses(&["ns3", "config.txt"], name);
        assert!(problem.contains(message) && problem.contains("help: "), "{problem}");
        assert!(!desk.path("fct.txt").exists());
    }
}

#[test]
fn what_is_imported_passes_the_check_and_what_would_not_is_not_written() {
    let matrix = "Nodes 16\nConnections 1\n0->15 start 0 size 2000000\n";
    // Links of 40 ms need more memory than switches have if nothing is said.
    let tier = |number: u32, rest: &str| {
        format!("Tier {number}\nDownlink_speed_Gbps 100\nDownlink_Latency_ns 40000000\nRadix_Down 4\n{rest}")
    };
    let topology = format!("Nodes 16\nTiers 2\nPodsize 16\n{}{}", tier(0, "Radix_Up 4\n"), tier(1, ""));
    let desk = Desk::new();
    desk.write("a.cm", matrix).write("a.topo", topology);
    let output = desk.tailwater(&["import", "htsim", "--cm", "a.cm", "--topo", "a.topo", "--out", "a.toml"]);
    assert!(output.status.success() && text(&output.stderr).contains("note: switch.buffer is "), "{output:?}");
    desk.works(&["check", "a.toml"]);
    for (from, to, place) in [
        ("start 0", "start 2000000000000000000", "b.cm:3:13"),
        ("size 2000000", "size 2000000000000", "b.cm:3:20"),
        ("Connections 1\n0->15 start 0 size 2000000\n", "Connections 0\n", "b.cm: has no connections"),
    ] {
        desk.write("b.cm", changed(matrix, from, to));
        desk.refuses(&["import", "htsim", "--cm", "b.cm", "--topo", "a.topo", "--out", "b.toml"], place);
    }
}

#[test]
fn a_rate_without_marking_thresholds_is_refused_with_what_to_write() {
    // The configuration has thresholds for a rate that no link has; the line shown is that of a link without.
    for key in ["KMIN_MAP", "KMAX_MAP", "PMAX_MAP"] {
        let desk = ns3();
        let (from, to) = (format!("{key} 1 100000000000"), format!("{key} 1 40000000000"));
        desk.write("config.txt", changed(CONFIG, &from, &to));
        let problem = desk.refuses(&["ns3", "config.txt"], "topology.txt:3");
        assert!(problem.contains(&format!("{key} has no entry for 100000000000")), "{problem}");
        assert!(problem.contains(&format!("{key} 2 ")), "{problem}");
    }
}

#[test]
fn output_of_the_other_simulators_formats_that_cannot_be_written_is_refused_before_the_run() {
    for (from, to, place) in [
        ("FCT_OUTPUT_FILE fct.txt", "FCT_OUTPUT_FILE flow.txt/fct.txt", "flow.txt/fct.txt"),
        ("PFC_OUTPUT_FILE pfc.txt", "PFC_OUTPUT_FILE nowhere/pfc.txt", "nowhere/pfc.txt"),
        ("PFC_OUTPUT_FILE pfc.txt", "PFC_OUTPUT_FILE folder", "folder: is a folder"),
        ("BUFFER_SIZE 12", "BUFFER_SIZE 12\nQLEN_MON_FILE flow.txt/q.txt", "flow.txt/q.txt"),
    ] {
        let desk = ns3();
        fs::create_dir(desk.path("folder")).unwrap();
        desk.write("config.txt", changed(CONFIG, from, to));
        desk.refuses(&["ns3", "config.txt"], place);
    }
}

#[test]
fn a_reader_that_goes_away_is_no_reason_to_fall_over() {
    let desk = ns3();
    desk.write("star.toml", STAR);
    let commands: [&[&str]; 6] = [
        &["schemes"],
        &["topologies"],
        &["ns3", "--keys"],
        &["check", "star.toml"],
        &["run", "star.toml", "--out", "out"],
        &["ns3", "config.txt"],
    ];
    for arguments in commands {
        let mut child = desk.command(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{arguments:?}: {}", text(&output.stderr));
        assert!(!text(&output.stderr).contains("panicked"), "{arguments:?}: {}", text(&output.stderr));
    }
    assert!(desk.path("out/summary.json").is_file() && desk.path("fct.txt").is_file(), "the work is done all the same");
}

#[test]
fn a_deadlock_is_reported_and_is_no_failure_of_the_program() {
    let desk = Desk::new();
    let mut graph = String::new();
    for (kind, letter) in [("host", 'h'), ("switch", 's')] {
        (0..5).for_each(|i| graph += &format!("[[node]]\nname = \"{letter}{i}\"\nkind = \"{kind}\"\n"));
    }
    for i in 0..5 {
        for (a, b) in [(format!("h{i}"), format!("s{i}")), (format!("s{i}"), format!("s{}", (i + 1) % 5))] {
            graph += &format!("[[link]]\nbetween = [\"{a}\", \"{b}\"]\nrate = \"100Gbps\"\ndelay = \"1us\"\n");
        }
    }
    let mut scenario = "[topology]\nkind = \"file\"\npath = \"ring.toml\"\n[switch]\nbuffer = \"150KB\"\n".to_string();
    for i in 0..5 {
        scenario += &format!("[[flow]]\nsrc = \"h{i}\"\ndst = \"h{}\"\nsize = \"10MB\"\n", (i + 2) % 5);
    }
    desk.write("ring.toml", graph).write("run.toml", scenario);
    let printed = desk.works(&["run", "run.toml", "--out", "out"]);
    assert!(printed.contains(": deadlock\n") && printed.contains("  waiting: s0 -> s1\n"), "{printed}");
    let s = summary(&desk, "out");
    assert_eq!((at(&s, "ending"), at(&s, "waiting").as_array().unwrap().len()), (&"deadlock".into(), 5));
    let waits = at(&s, "waits").as_array().unwrap();
    assert!(
        waits.len() == 5 && waits.contains(&serde_json::json!({ "from": "s0", "to": "s1", "queue": null })),
        "{waits:?}"
    );
    assert!(number(&s, "finished") < 5.0 && number(&s, "left") > 0.0);
}

#[test]
fn the_worked_example_of_a_theory_is_the_default() {
    let desk = Desk::new();
    let printed = desk.works(&["theory", "sfc"]);
    for line in
        ["B_ack, notice by ACKs of 26 packets (1)        333KB", "B_bts, notice by BTS (2)                       204KB"]
    {
        assert!(printed.contains(line), "{printed}");
    }
    assert!(printed.contains("129KB (38.7 %)"), "{printed}");
}

/// A ring of switches with a host on each, and flows around it.
fn ring(desk: &Desk, switches: u32) {
    let mut graph = String::new();
    for (kind, letter) in [("host", 'h'), ("switch", 's')] {
        (0..switches).for_each(|i| graph += &format!("[[node]]\nname = \"{letter}{i}\"\nkind = \"{kind}\"\n"));
    }
    for i in 0..switches {
        for (a, b) in [(format!("h{i}"), format!("s{i}")), (format!("s{i}"), format!("s{}", (i + 1) % switches))] {
            graph += &format!("[[link]]\nbetween = [\"{a}\", \"{b}\"]\nrate = \"100Gbps\"\ndelay = \"1us\"\n");
        }
    }
    let flow = |i: u32| format!("[[flow]]\nsrc = \"h{i}\"\ndst = \"h{}\"\nsize = \"10MB\"\n", (i + 2) % switches);
    let flows: String = (0..switches).map(flow).collect();
    let head = "name = \"round\"\n[topology]\nkind = \"file\"\npath = \"graph.toml\"\n[scheme]\npreset = \"pfc\"\n";
    desk.write("graph.toml", graph).write("ring.toml", head.to_string() + &flows);
}

#[test]
fn deadlock_distinguishes_free_from_not_and_fails_only_when_asked_to() {
    let desk = Desk::new();
    ring(&desk, 5);
    let said = desk.works(&["deadlock", "ring.toml"]);
    assert!(said.contains("any traffic: can deadlock: 5 links"), "{said}");
    assert!(
        said.contains("the scenario's flows: can deadlock") && said.contains("s0 -> s1  waits for  s1 -> s2"),
        "{said}"
    );
    assert_eq!(desk.tailwater(&["deadlock", "ring.toml", "--fail"]).status.code(), Some(4));
    let free = desk.works(&["deadlock", "ring.toml", "--fail", "--set", "scheme.preset=lossy"]);
    assert!(free.contains("free of deadlock: what does not fit in a buffer is dropped"), "{free}");
    desk.write("star.toml", STAR);
    assert!(desk.works(&["deadlock", "star.toml", "--fail"]).contains("free of deadlock"));
    let json: Value = serde_json::from_str(&desk.works(&["deadlock", "ring.toml", "--json", "--flows"])).unwrap();
    assert_eq!(json["cases"].as_array().map(Vec::len), Some(1));
    assert_eq!(json["cases"][0]["cycle"][0]["from"], "s0");
    desk.refuses(&["deadlock", "nothing.toml"], "nothing.toml");
    desk.refuses(&["deadlock", "ring.toml", "--set", "scheme.preset=pcf"], "scheme.preset");
    desk.refuses(&["deadlock", "ring.toml", "--svg", "no/such/folder.svg"], "no/such");
}

#[test]
fn a_cycle_is_drawn_by_the_analysis_and_by_the_report_of_the_run_that_met_it() {
    let desk = Desk::new();
    ring(&desk, 5);
    desk.works(&["deadlock", "ring.toml", "--svg", "cycle.svg"]);
    let svg = desk.read("cycle.svg");
    assert!(svg.starts_with("<svg") && svg.contains("5. s4 → s0 (h4 to h1) waits for 1"), "{svg}");
    desk.works(&["deadlock", "ring.toml", "--svg", "cycle.png"]);
    assert!(fs::read(desk.path("cycle.png")).unwrap().starts_with(b"\x89PNG"));
    desk.works(&["run", "ring.toml", "--set", "switch.buffer=1600KB", "--out", "out"]);
    let page = desk.read("out/report.html");
    assert!(page.contains("ended in a deadlock of 5 links") && page.contains("<figure class=\"picture\""));
    assert!(desk.read("out/figures/fabric.svg").contains("waits for"));
}

#[test]
fn all_problems_of_a_scenario_are_reported_at_once() {
    let desk = Desk::new();
    desk.write(
        "bad.toml",
        "[topology]\nkind = \"star\"\nhosts = 2.5\n[switch]\nbuffer = \"400G\"\nhue = 1\n[nic]\npacing = \"true\"\n",
    );
    let said = desk.refuses(&["check", "bad.toml"], "error: bad.toml:3:9: hosts: expected a whole number, found 2.5");
    assert_eq!(said.matches("error: bad.toml:").count(), 4, "{said}");
    for part in ["write 2 or 3", "did you mean \"400GB\"?", "unknown key \"hue\"", "write true, without quotes"] {
        assert!(said.contains(part), "no {part} in {said}");
    }
    let answer: Value = serde_json::from_slice(&desk.tailwater(&["check", "bad.toml", "--json"]).stdout).unwrap();
    assert_eq!(answer["problems"].as_array().unwrap().len(), 4, "{answer}");
    let said = desk.refuses(&["compare", "bad.toml", "--schemes", "pfc,hpcc"], "error: bad.toml:3:9: ");
    assert_eq!(said.matches("error: bad.toml:").count(), 4, "each once: {said}");
}

#[test]
fn no_threads_are_refused_with_what_to_write() {
    let desk = Desk::new();
    for command in ["run", "compare", "sweep"] {
        let output = desk.tailwater(&[command, "s.toml", "--threads", "0"]);
        assert_eq!(output.status.code(), Some(2));
        let said = text(&output.stderr);
        assert!(said.contains("write a whole number from 1 on, or leave the option out"), "{said}");
    }
}

#[test]
fn a_scheme_is_told_about_with_its_paper_its_presets_and_its_conditions() {
    let desk = Desk::new();
    let told = desk.works(&["schemes", "BFC"]);
    for part in [
        "Backpressure flow control",
        "arXiv:1909.09923",
        "vfids ",
        "16384",
        "Presets with it: bfc",
        "tailwater claims bfc",
        "scheme.flow_control = bfc",
        "(only with resume = \"paced\")",
    ] {
        assert!(told.contains(part), "no {part} in {told}");
    }
    desk.refuses(&["schemes", "bcf"], "did you mean \"bfc\"?");
}

const ODD: &str = "\
topology.kind = \"star\"
switch.unlimited = true
switch.buffer = \"1MB\"
[[flow]]
src = \"h1\"
dst = \"h0\"
size = \"10KB\"
";

#[test]
fn what_is_odd_is_noted_by_check_run_and_compare_and_in_the_summary() {
    let desk = Desk::new();
    desk.write("odd.toml", ODD);
    let note = "switch.buffer has no effect: memory is unlimited";
    assert!(desk.works(&["check", "odd.toml"]).contains(note));
    let output = desk.tailwater(&["run", "odd.toml", "--no-report"]);
    assert!(text(&output.stderr).contains(&format!("note: {note}")), "{}", text(&output.stderr));
    let summary: Value = serde_json::from_str(&desk.read("results/odd/summary.json")).unwrap();
    assert_eq!(summary["notes"], serde_json::json!([note]));
    let output = desk.tailwater(&["compare", "odd.toml", "--seeds", "3"]);
    assert_eq!(text(&output.stderr).matches(note).count(), 1, "{}", text(&output.stderr));
    // What one scheme has no use for is there for the other.
    let both = [
        "compare",
        "odd.toml",
        "--schemes",
        "pfc,dcqcn",
        "--set",
        "switch.unlimited=false",
        "--set",
        "switch.ecn_max=500KB",
    ];
    let output = desk.tailwater(&both);
    assert!(output.status.success() && !text(&output.stderr).contains("has no effect"), "{}", text(&output.stderr));
}

#[cfg(unix)]
#[test]
fn a_page_that_cannot_be_written_loses_neither_results_nor_the_printed_summary() {
    let desk = Desk::new();
    // Several flows: the page of one has no figures, and is short.
    desk.write("odd.toml", format!("{ODD}count = 4\n"));
    let limited = |arguments: &str| {
        let program = env!("CARGO_BIN_EXE_tailwater");
        let line = format!("trap '' XFSZ; ulimit -f 64; exec {program} {arguments}");
        Command::new("sh").args(["-c", &line]).current_dir(desk.path("")).output().unwrap()
    };
    let output = limited("run odd.toml");
    let (printed, said) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(printed.contains("4 of 4 flows finished") && printed.contains("results in results/odd"), "{printed}");
    assert!(said.contains("error: results/odd/") && said.contains("tailwater report results/odd"), "{said}");
    assert!(desk.path("results/odd/flows.parquet").is_file() && !desk.path("results/odd/report.html").exists());
    desk.works(&["report", "results/odd"]);
    assert!(desk.path("results/odd/report.html").is_file());

    let output = limited("compare odd.toml --schemes pfc,hpcc");
    let (printed, said) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(printed.contains("hpcc") && printed.contains("comparison in results/compare-odd"), "{printed}");
    assert!(said.contains("error: results/compare-odd/") && said.contains("\n  help: "), "{said}");
    assert!(desk.path("results/compare-odd/table.csv").is_file());
}

#[cfg(unix)]
#[test]
fn an_interrupted_run_says_that_nothing_is_kept_and_how_to_go_on() {
    let desk = Desk::new();
    desk.write("long.toml", ODD.replace("10KB", "100GB"));
    let ended_by = |signal: &str, arguments: &[&str]| {
        let mut child = desk.command(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        // A run says nothing when it begins; this is far longer than reading takes.
        std::thread::sleep(std::time::Duration::from_secs(3));
        Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap();
        crate::patience::status("an interrupted run", &mut child);
        child.wait_with_output().unwrap()
    };
    for (signal, status) in [("-INT", 130), ("-TERM", 143)] {
        let output = ended_by(signal, &["run", "long.toml"]);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(status), "{said}");
        assert!(said.contains("the run: was interrupted; nothing of it is kept"), "{said}");
        assert!(said.contains("help: the same command begins it again"), "{said}");
        assert!(!desk.path("results/long").exists());
    }
    let output = ended_by("-INT", &["compare", "long.toml", "--vary", "flow.0.size=10KB,100GB"]);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(130), "{said}");
    assert!(said.contains("what is finished stays; the same command goes on from there"), "{said}");
    assert!(said.contains("1 of 2 runs are in results/runs"), "{said}");
    assert!(!desk.path("results/compare-long").exists(), "a folder with nothing in it goes");
}

#[test]
fn a_run_that_was_asked_why_explains_its_flows_links_and_instants() {
    let desk = Desk::new();
    desk.write(
        "hot.toml",
        "[topology]\nkind = \"dumbbell\"\nleft = 4\nright = 2\nhost_rate = \"40Gbps\"\nbottleneck_rate = \"160Gbps\"\n\
         [switch]\nbuffer = \"600KB\"\n[scheme]\npreset = \"pfc\"\n\
         [[flow]]\nname = \"hot\"\nsrc = \"h0\"\ndst = \"h4\"\nsize = \"1MB\"\n\
         [[flow]]\nname = \"hot\"\nsrc = \"h1\"\ndst = \"h4\"\nsize = \"1MB\"\n\
         [[flow]]\nname = \"hot\"\nsrc = \"h2\"\ndst = \"h4\"\nsize = \"1MB\"\n\
         [[flow]]\nname = \"victim\"\nsrc = \"h3\"\ndst = \"h5\"\nsize = \"1MB\"\n",
    );
    desk.works(&["run", "hot.toml", "--quiet", "--out", "plain"]);
    for path in ["plain", "plain/summary.json"] {
        let refused = desk.refuses(&["explain", path], "this run was not asked why");
        assert!(refused.contains("--set measure.why=true") && refused.contains("why = true"), "{refused}");
    }

    desk.works(&["run", "hot.toml", "--set", "measure.why=true", "--quiet", "--out", "asked"]);
    let said = desk.works(&["explain", "asked"]);
    assert!(said.starts_with("1. The link sw1->h4 is saturated by 3 flows."), "{said}");
    assert!(
        said.contains("1 of them does not pass through it") && said.contains("(h3 to h5, group \"victim\")"),
        "{said}"
    );
    let said = desk.works(&["explain", "asked", "--flow", "3"]);
    assert!(said.contains("The root: the link sw1->h4 is saturated by 3 flows."), "{said}");
    let said = desk.works(&["explain", "asked", "--link", "sw0 -> sw1"]);
    assert!(said.contains("by order of sw1, because of sw1->h4"), "{said}");
    assert!(desk.works(&["explain", "asked", "--at", "0us"]).contains("nothing was stopped"));
    let all: Value = serde_json::from_str(&desk.works(&["explain", "asked", "--json"])).unwrap();
    let summary: Value = serde_json::from_str(&desk.read("asked/summary.json")).unwrap();
    assert_eq!(all["roots"], summary["why"]["roots"]);
    assert!(desk.read("asked/report.html").contains("Why flows waited"));

    assert_eq!(desk.works(&["explain", "asked/summary.json", "--json"]), desk.works(&["explain", "asked", "--json"]));
    assert!(all["shares"].as_array().is_some_and(|all| !all.is_empty()), "{all}");
    desk.refuses(&["explain", "asked", "--flow", "4"], "there is no flow 4");
    desk.refuses(&["explain", "asked", "--flow", "one"], "not the number of a flow");
    desk.refuses(&["explain", "asked", "--link", "sw0->h5"], "there is no link sw0->h5");
    desk.refuses(&["explain", "asked", "--at", "1s"], "after the end of the run");
    desk.refuses(&["explain", "asked", "--at", "soon"], "--at");
    desk.refuses(&["explain", "nowhere"], "nowhere: there is no such folder");

    let refused = desk.refuses(&["explain", "asked/flows.parquet"], "asked/flows.parquet: is a file");
    assert!(refused.contains("its summary.json"), "{refused}");
    let refused = desk.refuses(&["explain", "."], "is no folder of results");
    assert!(refused.contains("name one of the folders inside: ./asked, ./plain"), "{refused}");
}

/// h1 and h2 fill the memory of the switch for h0, and h3's two packets to h4 find no room (crates/run/tests/all/causes.rs works it out).
#[test]
fn a_victim_of_drops_is_told_who_took_the_room() {
    let desk = Desk::new();
    let flow = |src: u32, dst: u32, size: &str, start: &str| {
        format!("[[flow]]\nsrc = \"h{src}\"\ndst = \"h{dst}\"\nsize = \"{size}\"\nstart = \"{start}\"\n")
    };
    let flows = [flow(1, 0, "150KB", "0us"), flow(2, 0, "150KB", "40ns"), flow(3, 4, "2KB", "10us")].concat();
    let fabric = "[topology]\nkind = \"star\"\nhosts = 5\n[switch]\nbuffer = \"100KB\"\nreserve = \"0B\"\negress_alpha = 128\n\
                  [scheme]\npreset = \"lossy\"\n[nic]\ntimeout = \"100us\"\n[measure]\nwhy = true\n";
    desk.write("filled.toml", &(fabric.to_string() + &flows));
    desk.works(&["run", "filled.toml", "--quiet", "--no-report", "--out", "filled"]);
    let sentence = "99.9 us of sending again because there was no room for 2 packets at sw0->h4, as the link sw0->h0 is saturated by 2 flows, \
                    through which it does not pass.";
    let said = desk.works(&["explain", "filled", "--flow", "2"]);
    assert!(said.contains("Its time: 99.9 us retransmission at h3") && said.contains(sentence), "{said}");
    let told: Value = serde_json::from_str(&desk.works(&["explain", "filled", "--flow", "2", "--json"])).unwrap();
    let loss = &told["losses"][0];
    assert_eq!(
        (&loss["victim"], &loss["port"], &loss["sentence"]),
        (&true.into(), &"sw0->h4".into(), &sentence.into())
    );
    assert_eq!((&loss["root"]["place"], &loss["root"]["victims"]), (&"sw0->h0".into(), &1.into()), "{loss}");
    let fillers: Vec<u64> =
        loss["root"]["fillers"].as_array().unwrap().iter().filter_map(|filler| filler["flow"].as_u64()).collect();
    assert_eq!(fillers, [1, 0], "h2 takes what is let go of");
    let said = desk.works(&["explain", "filled"]);
    assert!(said.contains("1 of them does not pass through it and spent 99.9 us: flow 2 (h3 to h4"), "{said}");
}

#[test]
fn the_folder_of_a_comparison_is_not_explained_but_says_which_is() {
    let desk = Desk::new();
    desk.write("star.toml", STAR);
    let compare = ["compare", "star.toml", "--schemes", "pfc,bfc", "--quiet"];
    desk.works(&[&compare[..], &["--out", "plain"]].concat());
    let refused = desk.refuses(&["explain", "plain"], "plain: is a comparison of 2 runs");
    assert!(refused.contains("compare again with `--set measure.why=true`"), "{refused}");
    desk.works(&[&compare[..], &["--out", "asked", "--set", "measure.why=true"]].concat());
    let refused = desk.refuses(&["explain", "asked"], "asked: is a comparison of 2 runs");
    let (_, named) = refused.split_once("name the folder of one of them: ").expect("the runs");
    assert!(named.contains("(scheme pfc, seed 1), ") && named.contains("(scheme bfc, seed 1)"), "{refused}");
    let folder = named.split(' ').next().expect("a folder");
    assert!(folder.starts_with("results/runs/"), "{refused}");
    desk.works(&["explain", folder]);
}

#[test]
fn outputs_of_the_other_simulator_are_neither_its_inputs_nor_one_another() {
    for (key, name) in [
        ("FCT_OUTPUT_FILE", "flow.txt"),
        ("FCT_OUTPUT_FILE", "./flow.txt"),
        ("PFC_OUTPUT_FILE", "topology.txt"),
        ("PFC_OUTPUT_FILE", "config.txt"),
    ] {
        let desk = ns3();
        let line = CONFIG.lines().find(|line| line.starts_with(key)).expect(key);
        desk.write("config.txt", changed(CONFIG, line, &format!("{key} {name}")));
        desk.refuses(&["ns3", "config.txt"], &format!("{name}: is one of the files that are read"));
        assert_eq!((desk.read("flow.txt"), desk.read("topology.txt")), (FLOWS.into(), TOPOLOGY.into()));
    }
    let desk = ns3();
    let lines =
        ["FCT_OUTPUT_FILE", "PFC_OUTPUT_FILE"].map(|key| CONFIG.lines().find(|line| line.starts_with(key)).expect(key));
    let config = changed(CONFIG, lines[0], "FCT_OUTPUT_FILE both.txt");
    desk.write("config.txt", changed(&config, lines[1], "PFC_OUTPUT_FILE ./both.txt"));
    desk.refuses(&["ns3", "config.txt"], "./both.txt: is to be written twice");
}
