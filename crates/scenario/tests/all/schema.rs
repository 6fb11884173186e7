//! The JSON Schema of scenarios against scenarios.

use jsonschema::Validator;
use scenario::Scenario;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use toml_edit::{Item, Value as Toml};

fn validator() -> Validator {
    jsonschema::draft202012::new(&scenario::schema::json()).expect("a schema")
}

fn from_value(value: &Toml) -> Value {
    match value {
        Toml::String(text) => json!(text.value()),
        Toml::Integer(number) => json!(number.value()),
        Toml::Float(number) => json!(number.value()),
        Toml::Boolean(flag) => json!(flag.value()),
        Toml::Datetime(date) => json!({ "date": date.value().to_string() }),
        Toml::Array(array) => array.iter().map(from_value).collect(),
        Toml::InlineTable(table) => table.iter().map(|(key, value)| (key.to_string(), from_value(value))).collect(),
    }
}

fn from_item(item: &Item) -> Value {
    match item {
        Item::None => Value::Null,
        Item::Value(value) => from_value(value),
        Item::Table(table) => table.iter().map(|(key, item)| (key.to_string(), from_item(item))).collect(),
        Item::ArrayOfTables(tables) => {
            let table = |table: &toml_edit::Table| from_item(&Item::Table(table.clone()));
            tables.iter().map(table).collect()
        }
    }
}

/// A TOML text as JSON.
fn json_of(text: &str) -> Value {
    from_item(text.parse::<toml_edit::DocumentMut>().expect("TOML").as_item())
}

fn faults(validator: &Validator, json: &Value) -> Vec<String> {
    validator.iter_errors(json).map(|error| format!("{}: {error}", error.instance_path())).collect()
}

/// The TOML files below a folder.
fn files(folder: &Path, into: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files(&path, into);
        } else if path.extension().is_some_and(|end| end == "toml") {
            into.push(path);
        }
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

#[test]
fn every_example_and_every_scenario_of_an_experiment_is_valid() {
    let (validator, mut examples, mut experiments) = (validator(), Vec::new(), Vec::new());
    files(&root().join("examples"), &mut examples);
    examples.retain(|path| !path.iter().any(|part| ["sweeps", "own-scheme", "why"].iter().any(|other| part == *other)));
    files(&root().join("experiments"), &mut experiments);
    files(&root().join("examples/why"), &mut experiments);
    assert!(examples.len() >= 8 && experiments.len() >= 50);
    for path in examples.iter().chain(&experiments) {
        let mut json = json_of(&std::fs::read_to_string(path).unwrap());
        if experiments.contains(path) {
            json = json["scenario"].clone();
            // An experiment without runs, or with a fabric that only its variants name.
            if json["topology"].is_null() {
                continue;
            }
        }
        assert_eq!(faults(&validator, &json), Vec::<String>::new(), "{}", path.display());
    }
}

const STAR: &str = "[topology]\nkind = \"star\"\n[[flow]]\nsrc = \"h1\"\ndst = 0\nsize = \"1MB\"\n";

#[test]
fn what_the_schema_refuses_the_reader_refuses_at_the_same_key() {
    let validator = validator();
    let read = |text: &str| Scenario::parse("a.toml", text, Path::new(""), &[]);
    let good = [
        "",
        "[switch]\nbuffer = \"1.5 MB\"\nheadroom = \"auto\"\necn = true\n[switch.buffers]\n\"sw*\" = \"1MB\"\n",
        "[scheme]\npreset = \"hpcc\"\nwindow = \"64KB\"\n[scheme.hpcc]\neta = 0.9\n",
        "[[link]]\nbetween = [\"h0\", 16]\ndown = [[\"1ms\", \"2ms\"], [\"5ms\"]]\n",
        "[[load]]\nsizes = \"64KB\"\nload = 1\nduration = \"1us\"\nfrom = [\"h0..h3\", 5]\n",
        "[measure]\nports = \"hosts\"\nsample = \"1us\"\n",
    ];
    for more in good {
        let text = format!("{STAR}{more}");
        assert_eq!(faults(&validator, &json_of(&text)), Vec::<String>::new(), "{text}");
        read(&text).unwrap_or_else(|problem| panic!("{problem}"));
    }
    let wrong = [
        ("[switch]\nbuffer = 12\n", "switch.buffer"),
        ("[switch]\nbuffer = \"12 apples\"\n", "switch.buffer"),
        ("[switch]\nbufer = \"12MB\"\n", "switch.bufer"),
        ("[switch]\nalpha = 129\n", "switch.alpha"),
        ("[switch]\nqueues = 0\n", "switch.queues"),
        ("[switch]\nscheduler = \"round robin\"\n", "switch.scheduler"),
        ("[nic]\nack_every = -1\n", "nic.ack_every"),
        ("[scheme]\npreset = \"hpc\"\n", "scheme.preset"),
        ("[scheme]\nflow_control = \"pfd\"\n", "scheme.flow_control"),
        ("[[flow]]\nsrc = \"h1\"\ndst = \"h0\"\n", "flow.1.size"),
        ("[[link]]\nbetween = [\"h0\"]\n", "link.0.between"),
        ("[[incast]]\ndegree = 0\nsize = \"1KB\"\n", "incast.0.degree"),
        ("[[collective]]\nkind = \"all-reduce\"\nsize = \"1MB\"\n", "collective.0.kind"),
        ("[traffic]\nclasses = 9\n", "traffic.classes"),
        ("[[slow]]\nhost = 0\nrate = 5\n", "slow.0.rate"),
        ("[color]\n", "color"),
    ];
    for (more, key) in wrong {
        let text = format!("{STAR}{more}");
        assert!(!faults(&validator, &json_of(&text)).is_empty(), "{text}");
        let problem = read(&text).expect_err("a problem");
        assert_eq!(problem.key.as_deref(), Some(key), "{problem}");
        assert!(problem.help.is_some(), "{problem}");
    }
    for text in
        ["[topology]\nkind = \"hypercube\"\n", "[topology]\nkind = \"star\"\nleaves = 2\n", "name = \"empty\"\n"]
    {
        assert!(!faults(&validator, &json_of(text)).is_empty(), "{text}");
        assert!(read(text).is_err());
    }
}

#[test]
fn every_default_is_valid() {
    for section in scenario::schema::sections() {
        for key in &section.keys {
            if let scenario::declared::Absent::Value(raw) = &key.absent {
                assert_eq!(key.kind.check(raw), Ok(()), "[{}] {}", section.path, key.name);
            }
            assert!(key.about.ends_with(['.', ')']), "[{}] {}: {}", section.path, key.name, key.about);
        }
    }
}
