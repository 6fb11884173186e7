//! What there is to choose from: experiments with their state, presets, topologies, keys of a scenario, examples.

use crate::workspace::{Workspace, file_below, list};
use engine::Parameters;
use ledger::experiment::{Expectation, Experiment, Scale};
use results::verdict::{Overall, VERDICT};
use scenario::presets::{PRESETS, Preset};
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
                "routing": axis("routing").unwrap_or("ecmp"),
                "window": axis("window"),
            },
            "settings": preset.settings.iter().map(|(key, value)| json!([key, value])).collect::<Vec<_>>(),
        })
    };
    PRESETS.iter().map(one).collect()
}

/// The parameters of something.
fn keys(parameters: &dyn Parameters) -> Vec<Value> {
    let one = |p: &engine::Parameter| {
        let choices = p
            .kind
            .strip_prefix("one of ")
            .map(|words| words.split(',').map(|word| word.trim().trim_matches('"').to_string()).collect::<Vec<_>>());
        json!({ "key": p.name, "type": p.kind, "default": p.value.trim_matches('"'), "about": p.about, "choices": choices })
    };
    parameters.list().iter().map(one).collect()
}

/// Every shape of a fabric with its parameters.
pub fn topologies() -> Value {
    let shapes = fabric::topology::shapes();
    shapes.iter().map(|shape| json!({ "kind": shape.name(), "about": shape.about(), "keys": keys(&**shape) })).collect()
}

/// The documentation of scenarios, whose tables list every key.
const SCENARIO: &str = include_str!("../../../docs/scenario.md");

/// Every key of a scenario, as its documentation has it, and every parameter of the mechanisms. The topologies' are apart.
pub fn schema() -> Value {
    let (mut rows, mut section) = (Vec::new(), None);
    for line in SCENARIO.lines() {
        if let Some(title) = line.strip_prefix("## ").or(line.strip_prefix("### ")) {
            section = match title.trim_matches('`') {
                "Top level" => Some(String::new()),
                name if name.starts_with('[') && name != "[topology]" => {
                    Some(name.trim_matches(['[', ']']).to_string())
                }
                _ => None,
            };
            let many = title.contains("[[");
            rows.extend(section.iter().filter(|_| many).map(|section| json!({ "section": section, "many": true })));
        }
        let Some(section) = &section else { continue };
        let cells: Vec<&str> = line.trim_matches('|').split(" | ").map(str::trim).collect();
        let [key, kind, default, about] = cells.as_slice() else { continue };
        let Some(key) = key.strip_prefix('`').and_then(|key| key.strip_suffix('`')) else { continue };
        // Words in quotes are all there is to choose from, unless something else can be written as well.
        let rest: String = kind.split('`').step_by(2).collect();
        let only = rest.split([',', ' ']).all(|word| word.is_empty() || word == "or");
        let words: Vec<&str> = kind.split('`').skip(1).step_by(2).map(|word| word.trim_matches('"')).collect();
        let choices = (only && !words.is_empty()).then_some(words);
        let default = default.trim_matches('`').trim_matches('"');
        rows.push(json!({
            "section": section,
            "key": key,
            "unit": kind.replace('`', ""),
            "default": default,
            "about": about,
            "choices": choices,
        }));
    }
    let mut mechanisms: Vec<(&str, &str, Vec<Value>)> = Vec::new();
    for choice in schemes::flow_control::all() {
        mechanisms.push(("flow_control", choice.name(), keys(&*choice)));
    }
    for choice in schemes::congestion_control::all() {
        mechanisms.push(("congestion_control", choice.name(), keys(&*choice)));
    }
    for choice in schemes::edge_control::all() {
        mechanisms.push(("edge_control", choice.name(), keys(&*choice)));
    }
    for choice in schemes::transport::all() {
        mechanisms.push(("transport", choice.name(), keys(&*choice)));
    }
    for (axis, name, keys) in &mechanisms {
        for key in keys {
            rows.push(json!({
                "section": format!("scheme.{name}"),
                "key": key["key"],
                "unit": key["type"],
                "default": key["default"],
                "about": key["about"],
                "choices": key["choices"],
                "with": { "key": format!("scheme.{axis}"), "value": name },
            }));
        }
    }
    // The words that choose a mechanism.
    for row in &mut rows {
        let axis = row["key"].as_str().unwrap_or_default().to_string();
        if row["section"] == "scheme" {
            let names: Vec<&str> = mechanisms.iter().filter(|(of, ..)| *of == axis).map(|(_, name, _)| *name).collect();
            if !names.is_empty() {
                row["choices"] = json!(names);
            } else if axis == "preset" {
                row["choices"] = json!(PRESETS.iter().map(|preset| preset.name).collect::<Vec<_>>());
            }
        }
    }
    // Repeated tables are told by a mark on their keys.
    let many: Vec<Value> = rows.iter().filter(|row| row["many"] == true).map(|row| row["section"].clone()).collect();
    rows.retain(|row| row["key"].is_string());
    for row in &mut rows {
        row["many"] = json!(many.contains(&row["section"]));
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
    "websearch_incast",
    "slow_receiver",
    "bcube_deadlock",
    "link_failure",
    "lossy_link",
];

/// The examples with their titles.
pub fn examples() -> Value {
    let title = |text: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix("name = "));
        line.map_or(String::new(), |title| title.trim().trim_matches('"').to_string())
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
        assert_eq!(
            (&buffer["default"], &buffer["unit"], &buffer["choices"]),
            (&json!("12MB"), &json!("size"), &Value::Null)
        );
        assert_eq!(find("nic", "ack_lane")["choices"], json!(["control", "data"]));
        assert_eq!(find("", "seed")["default"], "1");
        assert_eq!(find("switch", "headroom")["choices"], Value::Null);
        assert_eq!(find("load", "sizes")["many"], true);
        assert!(find("scheme", "preset")["choices"].as_array().unwrap().len() > 20);
        assert_eq!(find("scheme.hpcc", "eta")["with"], json!({ "key": "scheme.congestion_control", "value": "hpcc" }));
        let own: [(&str, &dyn Parameters); 3] = [
            ("switch", &scenario::SwitchSettings::default()),
            ("nic", &scenario::NicSettings::default()),
            ("measure", &scenario::MeasureSettings::default()),
        ];
        for (section, parameters) in own {
            parameters.list().iter().for_each(|parameter| _ = find(section, parameter.name));
        }
    }

    #[test]
    fn a_path_in_the_ledger_begins_with_an_experiment() {
        assert_eq!(split("bfc/fig4/figures/a.svg"), Some(("bfc/fig4", "figures/a.svg")));
        assert_eq!(split("bfc/fig4"), None);
        assert_eq!(split("nothing/a.svg"), None);
        assert_eq!(EXPERIMENTS.len(), ledger::ids().count(), "one cannot be read");
    }
}
