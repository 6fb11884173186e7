//! Scenarios, sweeps and the files that they name.

use crate::{has_a_place, install, parts};
use engine::Rate;
use fabric::topology::{Graph, Kind, Link};
use jsonschema::Validator;
use scenario::document::{Document, canonical_value};
use scenario::resolve::resolve;
use scenario::{Beside, Scenario};
use serde_json::{Value, json};
use std::path::Path;
use std::sync::LazyLock;
use store::grid::{self, Axis, Source, Variant};
use store::sweep::Sweep;
use toml_edit::{Item, Value as Toml};
use traffic::{Names, Sizes, read_trace, write_trace};

/// The names that a scenario can give its files.
const GRAPH: &str = "a.graph.toml";
const TRACE: &str = "a.csv";
const SIZES: &str = "a.txt";
/// Nowhere, so that no file is found.
const NOWHERE: &str = "/nowhere";

/// Changes as lines.
fn lines(text: &str) -> Vec<String> {
    text.lines().map(String::from).collect()
}

/// A text of TOML, and changes to it.
pub fn document(bytes: &[u8]) {
    let Some([text, sets]) = parts(bytes) else { return };
    let mut document = match Document::parse("a.toml", text) {
        Ok(document) => document,
        Err(problem) => return has_a_place(&problem, &[("a.toml", text)]),
    };
    for set in sets.lines() {
        // A refused change leaves no trace.
        let before = document.canonical();
        if let Err(problem) = document.set(set) {
            has_a_place(&problem, &[]);
            assert_eq!(before, document.canonical(), "{set}");
        }
        _ = canonical_value(set);
    }
    let canonical = document.canonical();
    let again = Document::parse("b.toml", canonical.as_str()).unwrap_or_else(|problem| panic!("{problem}"));
    assert_eq!(again.canonical(), canonical);
    for path in ["scheme", "scheme.preset", "load.*.sizes", "topology.path", "flow.0", "scenario"] {
        _ = (document.value(path), document.part(path), document.tables_in(path), document.texts(path));
        has_a_place(&document.problem(path, "is wrong"), &[("a.toml", text)]);
    }
    let mut root = document.root();
    for (key, item) in root.leaves() {
        _ = (key, item.as_set(), item.items().map(|items| items.len()));
    }
    if let Err(problem) = document.root().finish() {
        has_a_place(&problem, &[("a.toml", text)]);
    }
}

/// A scenario with its changes, a graph, a trace and a table of sizes.
pub fn scenario(bytes: &[u8]) {
    install();
    let Some([text, sets, graph, trace, sizes]) = parts(bytes) else { return };
    let files = [(GRAPH, graph), (TRACE, trace), (SIZES, sizes)];
    let places = [("a.toml", text), files[0], files[1], files[2]];
    let scenario = match Scenario::parse_beside("a.toml", text, Beside::Texts(&files), &lines(sets)) {
        Ok(scenario) => scenario,
        Err(problem) => return has_a_place(&problem, &places),
    };
    assert!(!scenario.describe_traffic().is_empty());
    _ = scenario.describe_groups();
    if let Ok(text) = scenario.trace() {
        let names = Names::new(&scenario.graph);
        let read = read_trace(&text, &names, scenario.classes).unwrap_or_else(|fault| panic!("{fault}\n{text}"));
        assert_eq!(read.flows.len(), scenario.traffic.flows.len());
    }
    _ = interop::ns3::export::flow_file(&scenario);
    match resolve(scenario) {
        Ok(resolved) => assert!(!resolved.describe().is_empty()),
        Err(problem) => has_a_place(&problem, &places),
    }
}

static VALIDATOR: LazyLock<Validator> =
    LazyLock::new(|| jsonschema::draft202012::new(&scenario::schema::json()).expect("a schema"));

fn json_of(value: &Toml) -> Value {
    match value {
        Toml::String(text) => json!(text.value()),
        Toml::Integer(number) => json!(number.value()),
        Toml::Float(number) => json!(number.value()),
        Toml::Boolean(flag) => json!(flag.value()),
        Toml::Datetime(date) => json!({ "date": date.value().to_string() }),
        Toml::Array(array) => array.iter().map(json_of).collect(),
        Toml::InlineTable(table) => table.iter().map(|(key, value)| (key.to_string(), json_of(value))).collect(),
    }
}

fn json_of_item(item: &Item) -> Value {
    match item {
        Item::None => Value::Null,
        Item::Value(value) => json_of(value),
        Item::Table(table) => table.iter().map(|(key, item)| (key.to_string(), json_of_item(item))).collect(),
        Item::ArrayOfTables(tables) => tables.iter().map(|table| json_of_item(&Item::Table(table.clone()))).collect(),
    }
}

/// What is read is valid: an editor does not complain of a file that runs.
pub fn schema(bytes: &[u8]) {
    install();
    let Some([text, graph, trace, sizes]) = parts(bytes) else { return };
    let files = [(GRAPH, graph), (TRACE, trace), (SIZES, sizes)];
    let Ok(document) = text.parse::<toml_edit::DocumentMut>() else { return };
    let json = json_of_item(document.as_item());
    let valid = VALIDATOR.is_valid(&json);
    if valid {
        // The reader refuses more than the schema can say.
        return;
    }
    let read = Scenario::parse_beside("a.toml", text, Beside::Texts(&files), &[]);
    let faults: Vec<String> =
        VALIDATOR.iter_errors(&json).map(|error| format!("{}: {error}", error.instance_path())).collect();
    assert!(read.is_err(), "{}", faults.join("\n"));
}

/// A graph file, in a scenario that names it.
pub fn graph(bytes: &[u8]) {
    install();
    let Some([graph]) = parts(bytes) else { return };
    let text = "[topology]\nkind = \"file\"\npath = \"a.graph.toml\"\n[[flow]]\nsrc = 0\ndst = 1\nsize = \"1KB\"\n";
    let read = Scenario::parse_beside("a.toml", text, Beside::Texts(&[(GRAPH, graph)]), &[]);
    match read.and_then(resolve) {
        Ok(resolved) => assert!(!resolved.describe().is_empty()),
        Err(problem) => has_a_place(&problem, &[("a.toml", text), (GRAPH, graph)]),
    }
}

/// Four hosts around a switch.
static STAR: LazyLock<Graph> = LazyLock::new(|| {
    let mut graph = Graph::default();
    let switch = graph.add(Kind::Switch, 1, "sw0");
    for host in 0..4 {
        let host = graph.add(Kind::Host, 0, format!("h{host}"));
        graph.links.push(Link::new(host, switch, Rate::from_gbps(100), engine::Time::from_ns(500)));
    }
    graph
});

/// A trace, which is written and read back.
pub fn trace(bytes: &[u8]) {
    let Some([text]) = parts(bytes) else { return };
    let names = Names::new(&STAR);
    match read_trace(text, &names, 2) {
        Err(faults) => faults.list().iter().for_each(|fault| {
            assert!(!fault.message.is_empty() && !fault.help.is_empty(), "{fault}");
            assert!((1..=text.split('\n').count()).contains(&fault.line), "{fault}");
            assert!((1..=fault.source.chars().count() + 1).contains(&fault.column), "{fault}");
        }),
        Ok(traffic) => {
            let mut written = Vec::new();
            write_trace(&mut written, &STAR, &traffic).expect("memory does not refuse, and groups were read");
            let written = String::from_utf8(written).expect("text");
            let read = read_trace(&written, &names, 2).unwrap_or_else(|fault| panic!("{fault}\n{written}"));
            assert_eq!(read, traffic, "{written}");
        }
    }
}

/// A table of sizes, from which sizes are drawn.
pub fn sizes(bytes: &[u8]) {
    let Some([text]) = parts(bytes) else { return };
    let sizes = match Sizes::read(text) {
        Ok(sizes) => sizes,
        Err(fault) => {
            assert!(!fault.message.is_empty() && !fault.help.is_empty(), "{fault}");
            assert!((1..=text.split('\n').count()).contains(&fault.line), "{fault}");
            return;
        }
    };
    let (least, most) = (sizes.min(), sizes.max());
    assert!(least >= 1 && least <= most, "{least} to {most}");
    let mean = sizes.mean();
    assert!(mean >= least as f64 * (1.0 - 1e-9) && mean <= most as f64 * (1.0 + 1e-9), "{mean}");
    let mut before = 0;
    for step in 0..64 {
        let quantile = if step == 63 { 1.0 - f64::EPSILON / 2.0 } else { step as f64 / 63.0 };
        let size = sizes.at(quantile);
        assert!((least..=most).contains(&size) && size >= before, "{size} at {quantile}");
        before = size;
        let (share, bytes) = (sizes.cdf(size), sizes.bytes_share(size));
        assert!((0.0..=1.0).contains(&share) && (0.0..=1.0 + 1e-9).contains(&bytes), "{share} and {bytes} at {size}");
        assert!(share >= quantile - 1e-9, "{share} at {quantile}");
    }
    assert!((sizes.bytes_share(most) - 1.0).abs() < 1e-9);
}

/// So many runs are planned.
const PLANNED: usize = 64;

/// A sweep's file. Its plan is made if it is short, and its first run is read.
pub fn sweep(bytes: &[u8]) {
    install();
    let Some([text]) = parts(bytes) else { return };
    let sweep = match Sweep::parse("a.toml", text, Path::new(NOWHERE)) {
        Ok(sweep) => sweep,
        Err(problem) => return has_a_place(&problem, &[("a.toml", text)]),
    };
    let grid = &sweep.grid;
    let sizes = grid.axes.iter().map(|axis| axis.values.len()).chain([grid.variants.len(), grid.seeds.len()]);
    if sizes.fold(1_usize, |all, size| all.saturating_mul(size.max(1))) > PLANNED {
        return;
    }
    match sweep.plan() {
        Err(problems) => {
            assert!(!problems.is_empty());
            problems.iter().for_each(|problem| has_a_place(problem, &[("a.toml", text)]));
        }
        Ok(plan) => {
            assert!(!plan.is_empty());
            let cell = &plan[0];
            assert!(!cell.label().is_empty());
            // A plan has read every change already.
            let input = cell.input().unwrap_or_else(|problem| panic!("{problem}"));
            assert_eq!(input.digest(), cell.digest);
            if let Err(problem) = cell.load() {
                has_a_place(&sweep.explain(problem), &[("a.toml", text)]);
            }
        }
    }
}

/// What follows `--vary`, `--seeds` and `--schemes`.
pub fn vary(bytes: &[u8]) {
    install();
    let Some([vary, seeds, schemes, sets]) = parts(bytes) else { return };
    match Axis::parse(vary) {
        Err(problem) => has_a_place(&problem, &[]),
        Ok(axis) => {
            assert!(!axis.values.is_empty());
            for value in &axis.values {
                let mut document = Document::parse("a.toml", "").expect("nothing");
                if let Err(problem) = document.set(&format!("{}={value}", axis.key)) {
                    has_a_place(&problem, &[]);
                }
            }
        }
    }
    let sets = lines(sets);
    if let Err(problem) = grid::seeds(Some(seeds), &sets) {
        has_a_place(&problem, &[]);
    }
    let names: Vec<String> = schemes.split(',').map(String::from).collect();
    let source = Source { name: "a.toml".into(), title: String::new(), text: String::new(), base: NOWHERE.into() };
    if let Err(problem) = Variant::schemes(&source, &sets, &names) {
        has_a_place(&problem, &[]);
    }
}
