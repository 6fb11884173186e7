//! The whole format of scenario files as data: every table and key with type, limits, default and sentence.
//!
//! Nothing here is written twice: [`sections`] collects what the readers declare. The JSON Schema ([`json()`]), the tables of
//! the manual ([`row`]) and the studio's form are made of it.

use crate::declared::{Absent, Key, Section};
use crate::presets;
use crate::scenario::TOP;
use crate::settings::Salt;
use crate::{WindowSize, estimate, forward, settings, slow, traffic, wiring};
use engine::{Bytes, Kind, Limits, Rate, Raw, Time, Word};
use fabric::Registry;
use fabric::axes::Definition;
use fabric::setup::WindowRule;
use serde_json::{Map, Value as Json, json};
use std::sync::LazyLock;

/// The mechanisms of an axis of `[scheme]`.
struct Axis {
    key: &'static str,
    path: &'static str,
    /// What is chosen where nothing is.
    default: &'static str,
    about: &'static str,
    /// Each with its name, its sentence and its parameters.
    choices: Vec<(&'static str, &'static str, Section)>,
}

/// What a choice has to say of itself.
fn entry(variant: &dyn Definition) -> (&'static str, &'static str, Section) {
    let (name, about) = (variant.name(), variant.about());
    (name, about, Section::of(format!("scheme.{name}"), about, variant))
}

/// The keys that choose: by axis of the registry, the key, where it is, the default and a sentence.
const CHOOSERS: [(&str, &str, &str, &str, &str); 7] = [
    ("flow_control", "flow_control", "scheme.flow_control", "pfc", "What happens between neighbours."),
    ("congestion_control", "congestion_control", "scheme.congestion_control", "none", "How fast a sender goes."),
    ("edge_control", "edge_control", "scheme.edge_control", "none", "What senders do on top of congestion control."),
    ("transport", "transport", "scheme.transport", "go-back-n", "How messages are cut into packets and repaired."),
    (
        "load_balancing",
        "load_balancing",
        "scheme.load_balancing",
        "ecmp",
        "How switches and hosts choose among equally short paths.",
    ),
    ("queueing", "scheduler", "switch.scheduler", "drr", "How an egress port chooses among its queues."),
    ("marking", "marking", "switch.marking", "red", "What switches write on packets."),
];

static AXES: LazyLock<Vec<Axis>> = LazyLock::new(|| {
    let axis = |(name, variants): (&str, Vec<Box<dyn Definition>>)| {
        let (_, key, path, default, about) = CHOOSERS.into_iter().find(|chooser| chooser.0 == name)?;
        Some(Axis { key, path, default, about, choices: variants.iter().map(|variant| entry(&**variant)).collect() })
    };
    Registry::get().definitions().into_iter().filter_map(axis).collect()
});

/// What can be chosen on an axis, as words.
pub(crate) fn words(axis: &str) -> Vec<Word> {
    let words =
        |axis: &Axis| axis.choices.iter().map(|(word, about, _)| Word { word, about: about.to_string() }).collect();
    AXES.iter().find(|it| it.key == axis).map(words).unwrap_or_default()
}

/// The tables `[scheme.NAME]` of the mechanisms that have parameters.
static MECHANISMS: LazyLock<Vec<Section>> = LazyLock::new(|| {
    let tables = AXES.iter().flat_map(|axis| {
        let with = |name| Some((axis.path, name));
        axis.choices.iter().map(move |(name, _, section)| Section { with: with(*name), ..section.clone() })
    });
    tables.filter(|section| !section.keys.is_empty()).collect()
});

/// `[scheme]`.
pub(crate) static SCHEME: LazyLock<Section> = LazyLock::new(|| {
    let word = |word, about: &str| Word { word, about: about.into() };
    let presets = presets::all().iter().map(|preset| word(preset.name, preset.about)).collect();
    let about = "A set of defaults for the keys below and for marking. What is written overrides it.";
    let mut keys = vec![Key::new("preset", Kind::Choice(presets), about)];
    for axis in AXES.iter().filter(|axis| axis.path.starts_with("scheme.")) {
        keys.push(Key::new(axis.key, Kind::Choice(words(axis.key)), axis.about).or(axis.default.to_string()));
    }
    let routing = "The same as load_balancing; what it was called before.";
    keys.extend([
        Key::new("routing", Kind::Choice(words("load_balancing")), routing).otherwise("`load_balancing`"),
        Key::of::<WindowSize>("window", "How much of a flow may be unacknowledged.")
            .otherwise("`\"none\"`; `\"bdp\"` with a congestion control that needs one"),
        Key::of::<WindowRule>("window_rule", "Scaled: the window shrinks in proportion to the flow's rate.")
            .or(WindowRule::Scaled)
            .under(settings::under::WINDOW),
        Key::of::<Salt>("salt", "What switches, and hosts with several links, add to the seeds of their hashes. Zero: hashes are the same whatever the seed.")
            .or(Salt::Fixed(0)),
    ]);
    let mechanisms = AXES.iter().flat_map(|axis| &axis.choices).map(|(name, ..)| *name);
    Section::new("scheme", "Who slows whom, and how.", keys).with_tables(mechanisms.collect())
});

/// Every table of a scenario, in the order of the manual; `[topology]` once for each kind.
pub fn sections() -> Vec<&'static Section> {
    let mut all: Vec<&'static Section> = vec![&TOP];
    all.extend(wiring::TOPOLOGIES.iter());
    all.extend([
        &*wiring::LINKS,
        &wiring::RETRY,
        &wiring::LINK,
        &settings::SWITCH,
        &settings::BUFFERS,
        &settings::NIC,
        &slow::SLOW,
        &SCHEME,
    ]);
    all.extend(MECHANISMS.iter());
    all.extend([&*traffic::FLOW, &traffic::TRAFFIC, &traffic::LOAD, &traffic::INCAST]);
    all.extend([
        &*traffic::LONG,
        &traffic::COLLECTIVE,
        &traffic::JOB,
        &settings::MEASURE,
        &estimate::ESTIMATE,
        &forward::FAST_FORWARD,
    ]);
    all
}

/// A kind in a few words, as in the manual.
pub fn short(kind: &Kind) -> String {
    match kind {
        Kind::Time(_) => "time".into(),
        Kind::Rate(_) => "rate".into(),
        Kind::Bytes(_) => "size".into(),
        Kind::Integer(_) => "whole number".into(),
        Kind::Number(_) => "number".into(),
        Kind::Bool => "true or false".into(),
        Kind::Text => "text".into(),
        Kind::Choice(words) => {
            let words: Vec<String> = words.iter().map(|word| format!("`\"{}\"`", word.word)).collect();
            match words.as_slice() {
                [all @ .., last] if !all.is_empty() => format!("{} or {last}", all.join(", ")),
                _ => words.concat(),
            }
        }
        Kind::Auto(kind) if **kind == Kind::Bool => "true, false or `\"auto\"`".into(),
        Kind::Auto(kind) => format!("{} or `\"auto\"`", short(kind)),
        Kind::Either { name, .. } | Kind::Array { name, .. } => name.to_string(),
    }
}

/// The words that a key takes; nothing where it takes anything else besides.
pub fn choices(kind: &Kind) -> Option<&[Word]> {
    match kind {
        Kind::Choice(words) => Some(words),
        _ => None,
    }
}

/// A choice among more words than this is not listed in a row.
const MANY: usize = 16;

/// A key as a row of the manual.
pub fn row(key: &Key) -> String {
    let absent = match &key.absent {
        Absent::Needed => "needed".into(),
        Absent::Value(raw) => format!("`{}`", raw.describe()),
        Absent::Derived(words) => words.to_string(),
    };
    let kind = match (&key.kind, key.kind.limits()) {
        // So many words are in a table of their own.
        (Kind::Choice(words), _) if words.len() > MANY => "text".into(),
        (Kind::Auto(kind), Some(limits)) => format!("{}, {}", short(kind), as_code(&limits)),
        (kind, Some(limits)) => format!("{}, {}", short(kind), as_code(&limits)),
        (kind, None) => short(kind),
    };
    format!("| `{}` | {kind} | {absent} | {} |", key.name, key.about)
}

/// A text with what is in quotes as code.
fn as_code(text: &str) -> String {
    let pieces = text.split('"').enumerate();
    pieces.map(|(place, piece)| if place % 2 == 1 { format!("`\"{piece}\"`") } else { piece.into() }).collect()
}

/// A plain value in JSON.
pub fn value(raw: &Raw) -> Json {
    match raw {
        Raw::Text(text) => json!(text),
        Raw::Integer(number) => json!(number),
        Raw::Float(number) => json!(number),
        Raw::Bool(flag) => json!(flag),
    }
}

/// The JSON Schema (draft 2020-12) of a scenario.
pub fn json() -> Json {
    let mut root = Json::Null;
    let mut topologies: Vec<Json> = Vec::new();
    for section in sections() {
        let mut table = object(section);
        if let Some(("topology.kind", kind)) = section.with {
            table["properties"]["kind"]["const"] = json!(kind);
            topologies.push(table);
            continue;
        }
        if section.path.is_empty() {
            table["$schema"] = json!("https://json-schema.org/draft/2020-12/schema");
            table["title"] = json!("A scenario of Tailwater");
            table["required"] = json!(["topology"]);
            root = table;
            continue;
        }
        let mut place = &mut root;
        for key in section.path.split('.') {
            place = &mut place["properties"][key];
        }
        *place = match section.many {
            true => json!({ "type": "array", "description": section.about, "items": table }),
            false => table,
        };
    }
    let kinds: Vec<&Json> = topologies.iter().map(|table| &table["properties"]["kind"]["const"]).collect();
    root["properties"]["topology"] = json!({
        "type": "object",
        "description": "The fabric: a shape with its parameters, or a graph file.",
        "required": ["kind"],
        "properties": { "kind": { "type": "string", "enum": kinds } },
        "oneOf": topologies,
    });
    root
}

/// The schema of one table.
fn object(section: &Section) -> Json {
    let property = |key: &Key| {
        let mut json = of_kind(&key.kind);
        let limits = key.kind.limits().map_or(String::new(), |limits| format!(" {limits}."));
        json["description"] = json!(format!("{}{limits}", key.about));
        if let Absent::Value(raw) = &key.absent {
            json["default"] = value(raw);
        }
        (key.name.to_string(), json)
    };
    let mut json = json!({
        "type": "object",
        "description": section.about,
        "properties": section.keys.iter().map(property).collect::<Map<_, _>>(),
        "additionalProperties": section.others.as_ref().map_or(json!(false), of_kind),
    });
    let needed: Vec<&str> =
        section.keys.iter().filter(|key| key.absent == Absent::Needed).map(|key| key.name).collect();
    if !needed.is_empty() {
        json["required"] = json!(needed);
    }
    json
}

/// The schema of a value.
fn of_kind(kind: &Kind) -> Json {
    match kind {
        Kind::Time(_) => quantity(Time::units()),
        Kind::Rate(_) => quantity(Rate::units()),
        Kind::Bytes(_) => quantity(Bytes::units()),
        Kind::Integer(limits) => {
            let Limits { least, most } = limits.unwrap_or(Limits { least: 0, most: None });
            bounded("integer", json!(least), most.map(|most| json!(most)))
        }
        Kind::Number(None) => json!({ "type": "number" }),
        Kind::Number(Some(Limits { least, most })) => bounded("number", json!(least), most.map(|most| json!(most))),
        Kind::Bool => json!({ "type": "boolean" }),
        Kind::Text => json!({ "type": "string" }),
        Kind::Choice(words) => json!({
            "type": "string",
            "enum": words.iter().map(|word| word.word).collect::<Vec<_>>(),
            // What editors show beside each word.
            "x-taplo": { "docs": { "enumValues": words.iter().map(|word| &word.about).collect::<Vec<_>>() } },
        }),
        Kind::Auto(kind) => json!({ "anyOf": [{ "const": "auto" }, of_kind(kind)] }),
        Kind::Either { of, .. } => json!({ "anyOf": of.iter().map(of_kind).collect::<Vec<_>>() }),
        Kind::Array { of, length, .. } => {
            let mut json = json!({ "type": "array", "items": of_kind(of), "minItems": length.least });
            if let Some(most) = length.most {
                json["maxItems"] = json!(most);
            }
            json
        }
    }
}

fn bounded(kind: &str, least: Json, most: Option<Json>) -> Json {
    let mut json = json!({ "type": kind, "minimum": least });
    if let Some(most) = most {
        json["maximum"] = most;
    }
    json
}

/// A decimal number with one of these units.
fn quantity(units: impl Iterator<Item = &'static str>) -> Json {
    let units: Vec<&str> = units.collect();
    let pattern = format!(r"^\s*([0-9][0-9_]*(\.[0-9_]*)?|\.[0-9][0-9_]*)\s*({})\s*$", units.join("|"));
    json!({ "type": "string", "pattern": pattern })
}
