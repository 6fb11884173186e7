//! Where a fuzzer begins: files of the repository and of a small run, and the words that readers know.

use crate::outputs::{SMALL, TABLES, whole};
use crate::{foreign, install};
use scenario::schema;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Longer files are left out: a fuzzer is slow with them.
const LONGEST: u64 = 6000;

/// The files with that ending below a folder of the repository, if they are not long.
fn texts(folder: &str, ending: &str) -> Vec<String> {
    fn below(folder: &Path, ending: &str, found: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                below(&path, ending, found);
            } else if path.extension().is_some_and(|end| end == ending)
                && entry.metadata().is_ok_and(|m| m.len() < LONGEST)
            {
                found.push(path);
            }
        }
    }
    let mut found = Vec::new();
    below(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(folder), ending, &mut found);
    found.sort();
    found.iter().filter_map(|path| fs::read_to_string(path).ok()).collect()
}

fn examples() -> Vec<String> {
    let mut texts = texts("examples", "toml");
    texts.retain(|text| text.contains("[topology]") && !text.contains("[scenario]"));
    texts
}

const GRAPH: &str = "\
[[node]]
name = \"h0\"
kind = \"host\"
[[node]]
name = \"h1\"
kind = \"host\"
[[node]]
name = \"s0\"
kind = \"switch\"
tier = 1
[[link]]
between = [\"h0\", \"s0\"]
rate = \"100Gbps\"
delay = \"1us\"
[[link]]
between = [\"s0\", \"h1\"]
rate = \"25Gbps\"
delay = \"500ns\"
loss = 0.01
down = [[\"1ms\", \"2ms\"], [\"5ms\"]]
";

const TRACE: &str = "\
# an answer
src,dst,size,start,id,after,gap,class,group,until
h1,h0,1MB,0us,one,,,0,a,
h2,h0,64KB,1.5us,two,,,1,b,3ms
h0,h1,1KB,0us,,one;two,1us;2us,0,a,
";

const TRACE_OF_NUMBERS: &str = "size_bytes,start_ns,dst,src\n1000,1.5,0,1\n7,1e3,h3,h2\n";

const SIZES: &str = "# bytes, share\n100 0\n1000, 0.5\n1e6 1\n";

const SWEEP: &str = "\
schemes = [\"dcqcn\", \"hpcc\"]
seeds = [1, 5]
set = [\"switch.buffer=8MB\"]
[scenario]
stop = \"1ms\"
[scenario.topology]
kind = \"star\"
hosts = 4
[[scenario.flow]]
src = 0
dst = 1
size = \"1KB\"
[grid]
\"nic.payload\" = [\"1000B\", \"1500B\"]
[[list]]
\"topology.hosts\" = 3
[[list]]
\"topology.hosts\" = 5
";

const EXPERIMENT: &str = include_str!("../../samples/experiment.toml");

const EXPRESSIONS: [&str; 8] = [
    "p99(slowdown, variant='A', rate='10Gbps')",
    "increasing(p99(slowdown, variant='A', group='back*|incast', size='1KB..') over rate)",
    "average(increasing(p99(slowdown, variant='B') over rate) over size)",
    "smallest(drops(rate='10Gbps') over variant in 'A', 'B')",
    "fairness(variant='A', rate=10Gbps, during='1ms..2ms', seed=1)",
    "-(1 + 2.5e3) * 4KB / 10us - 50%",
    "buffer(switch='leaf*')",
    "1KB..10KB\n%%\nleaf0->h1",
];

const CONFIG: &str = include_str!("../../samples/ns3/config.txt");

const FLOWS: &str = include_str!("../../samples/ns3/flow.txt");

/// Two collectives on a ring of three.
const SIMCCL: &str = include_str!("../../samples/simccl/ring.csv");

const MATRIX: &str = include_str!("../../samples/htsim/triggers.cm");

const MESSAGES: &str = include_str!("../../samples/htsim/messages.cm");

const TREE: &str = include_str!("../../samples/htsim/three-tiers.topo");

const LEAVES: &str = include_str!("../../samples/htsim/two-tiers.topo");

const JOB: &str = r#"{"id":7,"request":{"kind":"compare","name":"a","schemes":["pfc"],"seeds":2,"vary":["switch.buffer=1MB,2MB"],"sets":[],"record":true},"state":"done","created":1,"started":2,"ended":3,"progress":{"runs":2,"done":2,"share":1.0,"label":"x"},"problem":null,"notes":["n"],"stored":[{"run":0,"label":"a","labels":[["scheme","pfc"]],"scheme":"pfc","seed":1,"key":"5eed"}]}
%%
{"cells":[{"labels":{"scheme":"pfc","switch.buffer":"1MB"},"seed":1,"digest":"5eed"}]}
%%
{"seed":1,"flow_control":"pfc","congestion_control":"none"}
%%
{"verdict":"holds","scale":"quick","expectations":[{"holds":"yes"}]}"#;

const RUN_JOB: &str = r#"{"id":7,"request":{"kind":"run","name":"a"},"state":"queued","created":1,"progress":{"runs":0,"done":0,"share":0,"label":""}}"#;

const REQUESTS: [&str; 16] = [
    "POST /api/jobs\n{\"kind\":\"run\",\"name\":\"a\",\"text\":\"[topology]\\nkind = \\\"star\\\"\\n\",\"sets\":[\"seed=2\"],\"record\":true}",
    "POST /api/jobs\n{\"kind\":\"compare\",\"text\":\"\",\"schemes\":[\"pfc\"],\"seeds\":2,\"vary\":[\"a=1,2\"]}",
    "POST /api/jobs\n{\"kind\":\"compare\",\"text\":\"[topology]\\nkind=\\\"file\\\"\\npath=\\\"a.toml\\\"\",\"vary\":[\"traffic.trace=a,b\"],\"sets\":[\"-scheme\"]}",
    "POST /api/jobs\n{\"kind\":\"reproduce\",\"id\":\"bfc/fig4\",\"scale\":\"paper\"}",
    "POST /api/check\n{\"text\":\"x = 1\",\"sets\":[\"a=1\"]}",
    "POST /api/jobs/1/cancel\n{}",
    "POST /api/jobs/1/again\n{}",
    "DELETE /api/jobs/1",
    "GET /api/jobs",
    "GET /api/jobs/1/files/out/a%20b?x=1",
    "GET /api/jobs/1/flows/0?sort=size&desc=1&offset=0&limit=5&group=a",
    "GET /api/ledger/bfc/fig4/figures/1.svg",
    "GET /api/folders",
    "GET /api/folders/compare-a/report.html",
    "GET /api/events",
    "GET /style.css",
];

const GOAL: &str = "\
num_ranks 3
rank 0 { // a ping
l1: calc 10 cpu 1; l2: send 100b to 1 tag 5 cpu 0 nic 0
l2 requires l1
l3: recv 200 b from 1 tag 6 /* the
 answer */
l4: calc 7
l4 irequires l3
}
rank 1 { l1: recv 100b from 0 tag 5
l2: send 200b to 0 tag 6
l2 requires l1 }
rank 2 {
calc 0
}
";

/// Files of the family, each in the form of its simulator, as they run there.
fn forks() -> Vec<Vec<u8>> {
    let config = CONFIG.replace("LINK_DOWN 30 3 4\n", "");
    let balanced = config.replace("CC_MODE 3", "CC_MODE 1");
    let ring = foreign::TOPOLOGY.split_once("3 4 5\n").map_or("", |(_, links)| links);
    let bits = ring.replace("Gbps", "000000000");
    // Without units, and without an error rate.
    let plain = ring.replace("Gbps", "").replace("0.001ms", "1000").replace("0.002ms", "2000");
    let plain = plain.lines().filter_map(|link| Some(format!("{}\n", link.rsplit_once(' ')?.0)));
    let plain: String = plain.collect();
    let leaves = "6 3 5\n3 4 5\n0 3 25Gbps 0.001ms 0\n1 3 25Gbps 0.001ms 0\n2 4 25Gbps 0.001ms 0\n\
                  3 5 25Gbps 0.001ms 0\n4 5 25Gbps 0.001ms 0\n";
    let flows = ["3\n0 1 3 50000 2.0\n2 0 3 80000 2.00002\n1 2 3 999 2\n", "2 0\n0 1 50000 2.0\n2 0 80000 2.00002\n"];
    let windows = "USE_FLOODGATE 1\nFLOODGATE_CONFIG_FILE f.cfg\nSRCTOR_DST_PFC 0\n";
    vec![
        joined(&[&format!("{balanced}LB_MODE 9\nENABLE_PFC 1\nENABLE_IRN 0\n"), leaves, flows[0], "0\n"]),
        joined(&[&format!("{balanced}LB_MODE 3\nENABLE_PFC 0\nENABLE_IRN 1\n"), leaves, flows[0], "0\n"]),
        joined(&[&format!("{config}{windows}"), &format!("6 3 1 3 0 6\n3 4 5\n{plain}"), flows[1], "0\n"]),
        joined(&[&config, &format!("6 3 2 6\n3 4 5\n{bits}"), FLOWS, "0\n"]),
        joined(&[&format!("{config}BW_MON_FILE a.txt\n"), &format!("6 1 0 3 6 H100\n3 4 5\n{ring}"), FLOWS, "0\n"]),
    ]
}

/// Chakra's wire format, as far as it is read.
mod trace {
    fn varint(mut value: u64) -> Vec<u8> {
        let mut bytes = Vec::new();
        while value >= 0x80 {
            bytes.push(value as u8 | 0x80);
            value >>= 7;
        }
        bytes.push(value as u8);
        bytes
    }

    fn number(field: u64, value: u64) -> Vec<u8> {
        [varint(field << 3), varint(value)].concat()
    }

    fn block(field: u64, bytes: &[u8]) -> Vec<u8> {
        [varint(field << 3 | 2), varint(bytes.len() as u64), bytes.to_vec()].concat()
    }

    /// A node: what it is, what it waits for, and its attributes.
    pub fn node(id: u64, kind: u64, deps: &[u64], micros: u64, attributes: &[(&str, u64)]) -> Vec<u8> {
        let mut bytes = [number(1, id), block(2, b"n"), number(3, kind)].concat();
        bytes.extend(block(5, &deps.iter().flat_map(|&dep| varint(dep)).collect::<Vec<_>>()));
        bytes.extend(number(7, micros));
        for (name, value) in attributes {
            bytes.extend(block(10, &[block(1, name.as_bytes()), number(9, *value)].concat()));
        }
        bytes
    }

    /// A rank's file.
    pub fn file(nodes: &[Vec<u8>]) -> Vec<u8> {
        let version = block(1, b"0.0.4");
        let all = std::iter::once(&version).chain(nodes);
        all.flat_map(|message| [varint(message.len() as u64), message.clone()].concat()).collect()
    }
}

/// Traces of two and of three ranks: a message, and each kind of collective.
fn traces() -> Vec<Vec<u8>> {
    let apart = b"\n%%\n".as_slice();
    let send = [("comm_size", 4096), ("comm_dst", 1), ("comm_tag", 3)];
    let receive = [("comm_size", 4096), ("comm_src", 0), ("comm_tag", 3)];
    let sum = [("comm_type", 0), ("comm_size", 10_000)];
    let node = trace::node;
    let one = trace::file(&[node(1, 4, &[], 5, &[]), node(2, 5, &[1], 0, &send), node(3, 7, &[2], 0, &sum)]);
    let two = trace::file(&[node(7, 6, &[], 0, &receive), node(8, 7, &[7], 0, &sum), node(9, 4, &[8], 2, &[])]);
    let mut all = vec![[one.as_slice(), apart, &two].concat()];
    all.extend([0, 2, 5, 6, 7].map(|kind| {
        let what = [("comm_type", kind), ("comm_size", 999), ("root", 1)];
        [trace::file(&[node(1, 7, &[], 0, &what)]), trace::file(&[node(1, 7, &[], 0, &what)])].join(apart)
    }));
    all
}

fn joined(parts: &[&str]) -> Vec<u8> {
    parts.join("\n%%\n").into_bytes()
}

/// The tables that say what a studio's connection carries.
fn connections() -> Vec<Vec<u8>> {
    let host = studio::Unplugged::HOST;
    let with = |line: &str, more: &str| format!("{line} HTTP/1.1\r\nHost: {host}\r\n{more}\r\n").into_bytes();
    let json = "Content-Type: application/json\r\n";
    vec![
        with("GET /api/about", ""),
        with("GET /", "Origin: http://127.0.0.1:4774\r\nSec-Fetch-Site: same-origin\r\nAccept-Encoding: gzip\r\n"),
        with("GET /api/jobs/1/recording/0", "Authorization: Bearer abc\r\nAccept-Encoding: gzip, br\r\n"),
        with("HEAD /api/presets?token=abc", "Sec-Fetch-Site: cross-site\r\n"),
        [
            with("POST /api/jobs", &format!("{json}Content-Length: 36\r\n")),
            br#"{"kind":"reproduce","id":"bfc/fig4"}"#.to_vec(),
        ]
        .concat(),
        [
            with("POST /api/check", &format!("{json}Transfer-Encoding: chunked\r\n")),
            b"b\r\n{\"text\":\"\"}\r\n0\r\n\r\n".to_vec(),
        ]
        .concat(),
        [with("DELETE /api/jobs/1", json), with("OPTIONS /api/jobs", "Expect: 100-continue\r\n")].concat(),
    ]
}

/// Files of the run that `table` and others are about, by name.
fn of_run(name: &str) -> Vec<u8> {
    fs::read(whole().join(name)).unwrap_or_default()
}

/// A recording of a small run.
fn recorded() -> Vec<u8> {
    let path = whole().with_file_name("recorded.toml");
    _ = fs::write(&path, SMALL.replace("hosts = 3", "hosts = 2").replace("degree = 2", "degree = 1"));
    let Ok(resolved) = run::load(&path, &[]) else { return Vec::new() };
    let finished = run::run(run::recording::record(resolved, None), &mut |_, _| true);
    let out = finished.write(&whole().with_file_name("recorded"), "");
    out.ok().and_then(|out| fs::read(out.join(results::recording::RECORDING)).ok()).unwrap_or_default()
}

/// Inputs that a target takes, or nearly.
pub fn seeds(target: &str) -> Vec<Vec<u8>> {
    install();
    let texts_of = |texts: Vec<String>| texts.into_iter().map(String::into_bytes).collect::<Vec<_>>();
    let all = |texts: &[&str]| texts.iter().map(|text| text.as_bytes().to_vec()).collect::<Vec<_>>();
    let file = "[topology]\nkind = \"file\"\npath = \"a.graph.toml\"\n[traffic]\ntrace = \"a.csv\"\nclasses = 2\n";
    let load = "[topology]\nkind = \"star\"\nhosts = 4\n[[load]]\nsizes = \"a.txt\"\nload = 0.1\nflows = 5\n";
    let small_trace = "src,dst,size,start\nh1,h0,1KB,0us\n";
    match target {
        "document" => {
            let mut found = texts_of(examples());
            found.push(joined(&["a.b = [1, { c = 2 }]\n[[x]]\ny = 1979-05-27", "x.0.y=3\n-a.b\nq='z'\na.b.0=[\"s\"]"]));
            found
        }
        "scenario" => {
            let mut found = texts_of(examples());
            found.push(joined(&[file, "seed=3", GRAPH, small_trace, ""]));
            found.push(joined(&[load, "switch.buffer=8MB\n-scheme", "", "", SIZES]));
            found.push(SMALL.as_bytes().to_vec());
            let star = "[topology]\nkind = \"star\"\nhosts = 4\n[[flow]]\nsrc = 0\ndst = 1\nsize = \"1KB\"\n";
            let presets = scenario::presets::all().iter();
            found.extend(presets.map(|preset| format!("{star}[scheme]\npreset = \"{}\"\n", preset.name).into_bytes()));
            let shapes = fabric::topology::shapes();
            found.extend(shapes.iter().map(|shape| {
                let list: String = shape.list().iter().map(|p| format!("{} = {}\n", p.name, p.value)).collect();
                format!(
                    "[topology]\nkind = \"{}\"\n{list}[[collective]]\nkind = \"ring\"\nsize = \"1MB\"\n",
                    shape.name()
                )
                .into_bytes()
            }));
            found
        }
        "schema" => {
            let mut found = texts_of(examples());
            found.push(joined(&[file, GRAPH, small_trace, ""]));
            found.push(joined(&[load, "", "", SIZES]));
            found.push(SMALL.as_bytes().to_vec());
            found
        }
        "graph" => all(&[GRAPH]),
        "trace" => all(&[TRACE, TRACE_OF_NUMBERS]),
        "sizes" => all(&[SIZES, "1 10\n2 100", "5\t1"]),
        "sweep" => {
            let mut found = texts_of(texts("examples/sweeps", "toml"));
            found.push(SWEEP.into());
            found
        }
        "vary" => vec![
            joined(&["switch.buffer=4MB,8MB", "3", "dcqcn,hpcc", "a=1"]),
            joined(&["x=[1,2],{a='b,c'},\"d\"", "1,2,9", "pfc", "-scheme"]),
        ],
        "experiment" => {
            let mut found = texts_of(texts("experiments", "toml"));
            found.retain(|text| text.len() < 3500);
            found.push(EXPERIMENT.into());
            found
        }
        "expression" => all(&EXPRESSIONS),
        "published" => {
            let mut found = texts_of(texts("published", "json"));
            found.sort_by_key(Vec::len);
            found.truncate(8);
            found
        }
        "ns3-config" => all(&[CONFIG]),
        "ns3-topology" => all(&[foreign::TOPOLOGY]),
        "ns3-flows" => all(&[FLOWS]),
        "ns3-trace" => all(&["2\n0 3\n"]),
        "ns3" => [0, 1, 3, 7, 8]
            .map(|mode| {
                let config = CONFIG.replace("CC_MODE 3", &format!("CC_MODE {mode}"));
                joined(&[&config, foreign::TOPOLOGY, FLOWS, "0\n"])
            })
            .to_vec(),
        "simccl" => vec![SIMCCL.into()],
        "ns3-forks" => forks(),
        "ns3-sizes" => all(&["0 0\n1000 0.5\n3000 1\n", "1000\n10 0.1\n2000 1\n"]),
        "ns3-windows" => all(&["3 0 100 1\n3\n4\n5\n", "3 0 0 0\n3 4 5\n"]),
        "goal" => all(&[
            GOAL,
            "num_ranks 1\nrank 0 {\na requires b\n}\n",
            "num_ranks 2\nrank 0 {\na: send 1b to 1\n}\nrank 1 {\nb: recv 1b from 0\n}\n",
        ]),
        "chakra" => traces(),
        "htsim" => vec![joined(&[MATRIX, TREE]), joined(&[MATRIX, LEAVES]), MATRIX.into(), joined(&[MESSAGES, TREE])],
        "htsim-line" => vec![
            joined(&["-sender_cc_only -end 500 -paths 16 -load_balancing_algo reps -failed 1", MATRIX, ""]),
            joined(&["-receiver_cc_only -conn_reuse -q 50 -ecn 5 40 -cwnd 9 -tiers 3 -seed 2", MESSAGES, ""]),
            joined(&["-linkspeed 100000 -disable_trim -target_q_delay 2.5 -qa_gate 2 -nodes 16", MATRIX, LEAVES]),
        ],
        "recording" => vec![recorded()],
        "table" | "figures" => {
            let table = |(which, name): (u8, &str)| [vec![which], of_run(name)].concat();
            (0..).zip(TABLES).map(table).collect()
        }
        "summary" => vec![of_run(files::SUMMARY)],
        "store" => {
            let texts = [files::FILES, files::sums::SUMS, files::SUMMARY, "scenario.toml"].map(of_run);
            let claim = r#"{"host":"a","machine":"b","process":1,"began":2,"lease":60000,"since":3,"which":1,"released":false,"beat":"000000000001"}"#;
            let texts: Vec<&str> = texts.iter().filter_map(|text| std::str::from_utf8(text).ok()).collect();
            vec![joined(&[texts.as_slice(), &[claim]].concat()), joined(&["{}", "", "{}", SMALL, "{}"])]
        }
        "connection" => connections(),
        "request" => all(&REQUESTS),
        "job" => all(&[JOB, RUN_JOB]),
        "query" => all(&[
            r#"{"sort":"size","desc":"1","offset":"0","limit":"5","group":"incast"}"#,
            r#"{"sort":"slowdown_acknowledged","desc":"true"}"#,
        ]),
        _ => Vec::new(),
    }
}

/// Words of a language without the characters between them.
fn split(text: &str, into: &mut BTreeSet<String>) {
    let word = |c: char| c.is_alphanumeric() || "_-+/".contains(c);
    into.extend(text.split(|c| !word(c)).filter(|word| word.len() > 1 && word.len() < 32).map(String::from));
}

/// The words that the reader of a target knows, for a fuzzer's dictionary.
pub fn words(target: &str) -> BTreeSet<String> {
    install();
    let mut words = BTreeSet::new();
    let numbers =
        ["0", "-1", "1e308", "nan", "inf", "-inf", "4294967296", "9223372036854775807", "18446744073709551615"];
    words.extend(numbers.map(String::from));
    words.insert("\n%%\n".into());
    let mut scenario = || {
        for section in schema::sections() {
            words.extend(section.path.split('.').filter(|word| !word.is_empty()).map(String::from));
            words.extend(section.keys.iter().map(|key| format!("{} = ", key.name)));
        }
        words.extend(scenario::presets::all().iter().map(|preset| format!("{:?}", preset.name)));
        words.extend(
            ["100Gbps", "1us", "1ms", "64KB", "\"none\"", "\"auto\"", "true", "false", "\n[[", "]]\n"]
                .map(String::from),
        );
    };
    match target {
        "chakra" => words.extend(
            ["comm_size", "comm_src", "comm_dst", "comm_tag", "comm_type", "pg_name", "root"].map(String::from),
        ),
        "ns3-config" | "ns3-forks" => {
            let keys = interop::ns3::forks::FORKS.iter().flat_map(|fork| fork.keys);
            words.extend(keys.map(|key| format!("{} {}", key.name, key.example)).filter(|word| word.len() < 32));
        }
        "ns3-sizes" | "ns3-windows" => words.extend(["0.5", "1", "100"].map(String::from)),
        "document" | "scenario" | "schema" | "graph" | "sweep" | "vary" | "experiment" | "store" => scenario(),
        _ => {}
    }
    for seed in seeds(target) {
        if !["table", "figures"].contains(&target)
            && !["recording", "chakra"].contains(&target)
            && let Ok(text) = std::str::from_utf8(&seed)
        {
            split(text, &mut words);
        }
    }
    words
}
