//! What there is to choose from: experiments with their state, presets, topologies, keys of a scenario, examples.

use crate::workspace::{Workspace, file_below, list};
use engine::Kind;
use ledger::experiment::{Expectation, Experiment, Scale};
use results::verdict::{Overall, VERDICT};
use scenario::declared::{Absent, Key, Section};
use scenario::presets::{self, Preset};
use scenario::schema;
use serde_json::{Value, json};
use std::sync::LazyLock;

/// Every experiment; one that cannot be read (none, as the tests of the ledger see to) is left out.
static EXPERIMENTS: LazyLock<Vec<Experiment>> =
    LazyLock::new(|| ledger::ids().filter_map(|id| ledger::named(id).ok()?.into_iter().next()).collect());

/// The experiments' state in a word, by what a verdict says.
fn state(verdict: &Value) -> &'static str {
    let words = [
        (Overall::Holds, "holds"),
        (Overall::InPart, "partly"),
        (Overall::Fails, "fails"),
        (Overall::CannotTell, "unclear"),
        (Overall::Needs, "needs"),
        (Overall::NotRun, "untold"),
        (Overall::Measured, "measured"),
    ];
    let said = verdict["verdict"].as_str().unwrap_or_default();
    words.iter().find(|(overall, _)| overall.name() == said).map_or("never", |(_, word)| word)
}

/// An experiment in short.
fn short(experiment: &Experiment, workspace: &Workspace) -> Value {
    let folder = workspace.ledger().join(&experiment.id);
    let verdict = file_below(&folder, VERDICT).and_then(|path| std::fs::read_to_string(path).ok());
    let verdict: Value = verdict.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default();
    let mut files = Vec::new();
    list(&folder, "", &mut files);
    let figures: Vec<&String> = files
        .iter()
        .map(|(path, _)| path)
        .filter(|path| path.starts_with("figures/") && path.ends_with(".svg"))
        .collect();
    let size = |scale: Scale| {
        let there = |variant: &str| experiment.missing(variant).is_empty();
        let cells = experiment.cells(scale).iter().filter(|cell| there(&cell.variant)).count() as u64;
        json!({ "runs": cells * experiment.seeds(scale), "seeds": experiment.seeds(scale) })
    };
    let claim = |expect: &Expectation| {
        let range = expect.range;
        json!({
            "paper": expect.paper,
            "expression": expect.text,
            "unit": expect.unit,
            "at_least": range.at_least,
            "at_most": range.at_most,
            "partly": expect.partly,
            "band": expect.band,
            "scale": expect.scale.map(Scale::name),
        })
    };
    json!({
        "id": experiment.id,
        "title": experiment.title,
        "document": experiment.document,
        "place": experiment.place,
        "says": experiment.says,
        "claims": experiment.expectations.iter().map(claim).collect::<Vec<_>>(),
        "scale": { "quick": size(Scale::Quick), "paper": size(Scale::Paper) },
        "variants": experiment.variants.iter().map(|variant| &variant.name).collect::<Vec<_>>(),
        "missing": experiment.needs(),
        "state": state(&verdict),
        "verdict": verdict,
        "figures": figures,
        "page": file_below(&folder, "report.html").map(|_| "report.html"),
    })
}

/// All experiments in short.
pub fn experiments(workspace: &Workspace) -> Value {
    EXPERIMENTS.iter().map(|experiment| short(experiment, workspace)).collect()
}

/// One experiment, whole.
pub fn experiment(id: &str, workspace: &Workspace) -> Option<Value> {
    let experiment = EXPERIMENTS.iter().find(|experiment| experiment.id == id)?;
    let mut json = short(experiment, workspace);
    json["text"] = json!(ledger::text(id));
    json["reading"] = json!(experiment.reading);
    json["scenario"] = json!(experiment.scenario);
    // Those at quick scale, each by itself: what a person may want to watch.
    let cells = experiment.cells(Scale::Quick).into_iter().filter(|cell| experiment.missing(&cell.variant).is_empty());
    json["runs"] = cells.map(|cell| json!({ "name": cell.name(), "sets": cell.sets })).collect();
    // What was measured, beside what is claimed; before a run, the claims alone.
    json["expectations"] = match json["verdict"]["expectations"].is_array() {
        true => json["verdict"]["expectations"].clone(),
        false => json["claims"].clone(),
    };
    Some(json)
}

/// The experiment whose id a path begins with, and the rest of the path.
pub fn split(path: &str) -> Option<(&'static str, &str)> {
    ledger::ids().find_map(|id| Some((id, path.strip_prefix(id)?.strip_prefix('/')?)))
}

/// Every preset with the mechanisms that it chooses.
pub fn presets() -> Value {
    let one = |preset: &Preset| {
        let axis = |key: &str| {
            let path = format!("scheme.{key}");
            preset.settings.iter().find(|(known, _)| *known == path).map(|(_, value)| *value)
        };
        json!({
            "name": preset.name,
            "about": preset.about,
            "axes": {
                "flow_control": axis("flow_control"),
                "congestion_control": axis("congestion_control"),
                "edge_control": axis("edge_control").unwrap_or("none"),
                "transport": axis("transport").unwrap_or("go-back-n"),
                "load_balancing": axis("load_balancing").unwrap_or("ecmp"),
                "window": axis("window"),
            },
            "settings": preset.settings.iter().map(|(key, value)| json!([key, value])).collect::<Vec<_>>(),
        })
    };
    presets::all().iter().map(one).collect()
}

/// A key as a form needs it.
fn field(key: &Key) -> Value {
    let (needed, default, otherwise) = match &key.absent {
        Absent::Needed => (true, Value::Null, None),
        Absent::Value(raw) => (false, json!(raw.plain()), None),
        Absent::Derived(words) => (false, Value::Null, Some(words.replace('`', ""))),
    };
    let (auto, kind) = match &key.kind {
        Kind::Auto(kind) => (true, &**kind),
        kind => (false, kind),
    };
    let words = |kind: &Kind| match kind {
        Kind::Choice(words) => words.iter().map(|word| word.word).collect(),
        Kind::Bool => vec!["true", "false"],
        _ => Vec::new(),
    };
    // Words that are all there is to choose from, and words beside which something else can be written.
    let (mut choices, mut words) = match kind {
        Kind::Either { of, .. } => (Vec::new(), of.iter().flat_map(words).collect()),
        kind => (words(kind), Vec::new()),
    };
    if auto {
        if choices.is_empty() { &mut words } else { &mut choices }.push("auto");
    }
    json!({
        "key": key.name,
        "type": type_of(kind),
        "bare": matches!(kind, Kind::Integer(_) | Kind::Number(_) | Kind::Bool),
        "unit": schema::short(&key.kind).replace('`', ""),
        "limits": key.kind.limits(),
        "needed": needed,
        "default": default,
        "otherwise": otherwise,
        "about": key.about,
        "choices": if choices.is_empty() { Value::Null } else { json!(choices) },
        "words": words,
    })
}

/// A kind in a word.
fn type_of(kind: &Kind) -> &'static str {
    match kind {
        Kind::Time(_) => "time",
        Kind::Rate(_) => "rate",
        Kind::Bytes(_) => "size",
        Kind::Integer(_) => "integer",
        Kind::Number(_) => "number",
        Kind::Bool => "bool",
        Kind::Text => "text",
        Kind::Choice(_) => "choice",
        Kind::Auto(kind) => type_of(kind),
        Kind::Either { .. } => "either",
        Kind::Array { .. } => "array",
    }
}

/// The word that chooses a kind of topology, in whose table the other keys are.
const TOPOLOGY: &str = "topology.kind";

/// Every kind of a fabric with its keys.
pub fn topologies() -> Value {
    let topology = |section: &&Section| {
        let (_, kind) = section.with.filter(|(key, _)| *key == TOPOLOGY)?;
        let keys: Vec<Value> = section.keys.iter().filter(|key| key.name != "kind").map(field).collect();
        Some(json!({ "kind": kind, "about": section.about, "keys": keys }))
    };
    schema::sections().iter().filter_map(topology).collect()
}

/// Every key of a scenario but those of the topologies, which are apart.
pub fn schema() -> Value {
    let mut rows = Vec::new();
    for section in schema::sections() {
        if section.with.is_some_and(|(key, _)| key == TOPOLOGY) {
            continue;
        }
        for key in &section.keys {
            let mut row = field(key);
            row["section"] = json!(section.path);
            row["many"] = json!(section.many);
            row["with"] = section.with.map_or(Value::Null, |(key, value)| json!({ "key": key, "value": value }));
            rows.push(row);
        }
    }
    Value::Array(rows)
}

/// The scenarios that come with the program.
macro_rules! examples {
    ($($name:literal),* $(,)?) => {
        &[$(($name, include_str!(concat!("../../../examples/", $name, ".toml")))),*]
    };
}

/// Those that need no other file, the plainest first.
const EXAMPLES: &[(&str, &str)] = examples![
    "incast",
    "hot_spot",
    "leaf_spine",
    "asymmetric",
    "hadoop_incast",
    "websearch_incast",
    "slow_receiver",
    "bcube_deadlock",
    "link_failure",
    "lossy_link",
];

/// The examples with their titles.
pub fn examples() -> Value {
    let title = |text: &str| {
        let document = scenario::document::Document::parse("", text).ok();
        document.and_then(|document| Some(document.texts("name").first()?.1.to_string())).unwrap_or_default()
    };
    EXAMPLES.iter().map(|(name, text)| json!({ "name": name, "title": title(text), "text": text })).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn every_example_is_there_and_can_be_run() {
        for (name, text) in EXAMPLES {
            let answer = crate::check::answer(name, text, Path::new(""), &[]);
            assert_eq!(answer["ok"], true, "{name}: {answer}");
        }
        let files = std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples")).unwrap();
        let names = files.map(|file| file.unwrap().path());
        let mut names: Vec<_> = names.filter(|path| path.extension().is_some_and(|end| end == "toml")).collect();
        names.retain(|path| !EXAMPLES.iter().any(|(name, _)| path.file_stem().unwrap() == *name));
        assert!(names.is_empty(), "not in the list: {names:?}");
        assert!(examples().as_array().unwrap().iter().all(|example| example["title"] != ""));
    }

    #[test]
    fn the_keys_of_a_scenario_are_all_there() {
        let schema = schema();
        let rows = schema.as_array().unwrap();
        let find = |section: &str, key: &str| {
            let found = rows.iter().find(|row| row["section"] == section && row["key"] == key);
            found.unwrap_or_else(|| panic!("{section}.{key}")).clone()
        };
        let buffer = find("switch", "buffer");
        let said = [&buffer["default"], &buffer["type"], &buffer["choices"], &buffer["limits"]];
        assert_eq!(said, [&json!("12MB"), &json!("size"), &Value::Null, &json!("\"1B\" to \"1000GB\"")]);
        assert_eq!(find("nic", "ack_lane")["choices"], json!(["control", "data"]));
        let seed = find("", "seed");
        assert_eq!((&seed["default"], &seed["bare"]), (&json!("1"), &json!(true)));
        let headroom = find("switch", "headroom");
        assert_eq!((&headroom["choices"], &headroom["words"]), (&Value::Null, &json!(["auto"])));
        assert_eq!(find("switch", "ecn")["choices"], json!(["true", "false", "auto"]));
        assert_eq!(find("load", "sizes")["many"], true);
        assert_eq!(find("load", "sizes")["needed"], true);
        assert_eq!(find("link", "down")["otherwise"], "never");
        let operations = find("collective", "kind")["choices"].as_array().unwrap().len();
        assert_eq!(operations, 9);
        assert!(find("scheme", "preset")["choices"].as_array().unwrap().len() > 20);
        assert_eq!(find("scheme.hpcc", "eta")["with"], json!({ "key": "scheme.congestion_control", "value": "hpcc" }));
        assert!(rows.iter().all(|row| row["about"].as_str().is_some_and(|about| about.ends_with(['.', ')']))));
    }

    #[test]
    fn every_word_of_a_choice_is_an_item_of_its_own() {
        let (schema, topologies) = (schema(), topologies());
        let of_topologies = topologies.as_array().unwrap().iter().flat_map(|one| one["keys"].as_array().unwrap());
        let words = schema.as_array().unwrap().iter().chain(of_topologies);
        let words = words.flat_map(|row| row["choices"].as_array().into_iter().flatten());
        let mut count = 0;
        for word in words.map(|word| word.as_str().unwrap()) {
            assert!(!word.contains([' ', ',', '"']), "{word}");
            count += 1;
        }
        assert!(count > 100);
    }

    #[test]
    fn a_path_in_the_ledger_begins_with_an_experiment() {
        assert_eq!(split("bfc/fig4/figures/a.svg"), Some(("bfc/fig4", "figures/a.svg")));
        assert_eq!(split("bfc/fig4"), None);
        assert_eq!(split("nothing/a.svg"), None);
        assert_eq!(EXPERIMENTS.len(), ledger::ids().count(), "one cannot be read");
    }
}
