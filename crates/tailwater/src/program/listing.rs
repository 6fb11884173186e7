//! What exists: schemes, presets, topologies and the keys of the ns-3 configuration.

use crate::program::commands::{Output, say};
use engine::{Kind, Parameters};
use fabric::Registry;
use interop::ns3::config::{Effect, KEYS};
use std::process::ExitCode;

fn entry(name: &str, about: &str, parameters: &dyn Parameters) -> Output {
    say(format!("  {name}\n      {about}\n"))?;
    for p in parameters.list() {
        // A choice among words says which, and a number how large it may be.
        let kind = match &p.kind {
            Kind::Auto(kind) => kind,
            kind => kind,
        };
        let more = match kind {
            Kind::Choice(words) => {
                let words: Vec<String> = words.iter().map(|word| format!("\"{}\"", word.word)).collect();
                format!(" One of {}.", words.join(", "))
            }
            _ => p.kind.limits().map_or(String::new(), |limits| format!(" {limits}.")),
        };
        say(format!("      {:<18} {:<12} {}{more}\n", p.name, p.value, p.about))?;
    }
    say("\n".into())
}

/// The axes in the order of the registry: what each is called, and the key that chooses on it.
const AXES: [(&str, &str); 7] = [
    ("Flow control", "scheme.flow_control"),
    ("Congestion control", "scheme.congestion_control"),
    ("On top of congestion control", "scheme.edge_control"),
    ("Transport", "scheme.transport"),
    ("Load balancing", "scheme.load_balancing, or scheme.routing"),
    ("Queueing", "switch.scheduler"),
    ("Marking", "switch.marking"),
];

/// `tailwater schemes`.
pub fn schemes() -> Result<ExitCode, files::problem::Problem> {
    let print = || -> Output {
        for ((title, key), (_, variants)) in AXES.iter().zip(Registry::get().definitions()) {
            say(format!("{title} ({key})\n\n"))?;
            for variant in variants {
                entry(variant.name(), variant.about(), &*variant)?;
                if !variant.source().is_empty() {
                    say(format!("      From {}.\n\n", variant.source()))?;
                }
            }
        }
        say("Presets (scheme.preset)\n\n".into())?;
        for preset in &Registry::get().presets {
            say(format!("  {:<12} {}\n", preset.name, preset.about))?;
        }
        Ok(())
    };
    crate::program::commands::printed(print())
}

/// `tailwater topologies`.
pub fn topologies() -> Result<ExitCode, files::problem::Problem> {
    let print = || -> Output {
        for shape in fabric::topology::shapes() {
            entry(shape.name(), shape.about(), &*shape)?;
        }
        say("  file\n      Any graph, from a TOML file named by `path`; see docs/scenario.md.\n".into())
    };
    crate::program::commands::printed(print())
}

/// `tailwater schema`.
pub fn schema() -> Result<ExitCode, files::problem::Problem> {
    crate::program::commands::printed(say(format!("{:#}\n", scenario::schema::json())))
}

/// `tailwater ns3 --keys`.
pub fn ns3_keys() -> Result<ExitCode, files::problem::Problem> {
    let print = || -> Output {
        for key in KEYS {
            let effect = match key.effect {
                Effect::Honoured => "honoured".to_string(),
                Effect::NoEffect(why) => format!("no effect: {why}"),
                Effect::Refused(why) => format!("refused: {why}"),
            };
            let default = key.default.map_or(String::new(), |d| format!(" [default {d}]"));
            say(format!("{:<26} {}{default}\n{:<26} {effect}\n", key.name, key.meaning, ""))?;
        }
        Ok(())
    };
    crate::program::commands::printed(print())
}
