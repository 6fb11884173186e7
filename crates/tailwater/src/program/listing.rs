//! What exists: schemes, presets, topologies and the keys of the ns-3 configuration.

use crate::program::commands::{Output, say};
use engine::{Kind, Parameters};
use fabric::Registry;
use fabric::axes::registry::Preset;
use files::problem::Problem;
use interop::ns3::config::key::{Effect, Key};
use interop::ns3::forks::FORKS;
use scenario::document::suggest;
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
        let only: String = p.only.iter().map(|only| format!(" ({only})")).collect();
        say(format!("      {:<18} {:<12} {}{more}{only}\n", p.name, p.value, p.about))?;
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

/// `tailwater schemes`: all, or those of one name.
pub fn schemes(name: Option<&str>) -> Result<ExitCode, Problem> {
    let fits = |known: &str| name.is_none_or(|name| name.eq_ignore_ascii_case(known));
    let registry = Registry::get();
    let mechanisms = || registry.definitions().into_iter().flat_map(|(_, variants)| variants);
    let mut known: Vec<&str> = mechanisms().map(|variant| variant.name()).collect();
    known.extend(registry.presets.iter().map(|preset| preset.name));
    if let Some(name) = name.filter(|name| !known.iter().any(|known| known.eq_ignore_ascii_case(name))) {
        let meant = suggest(name, &known).map_or(String::new(), |meant| format!("did you mean \"{meant}\"? "));
        let problem = Problem::new(name, "is no scheme and no preset");
        return Err(problem.help(format!("{meant}`tailwater schemes` lists them all")));
    }
    let print = || -> Output {
        for ((title, key), (_, variants)) in AXES.iter().zip(registry.definitions()) {
            let shown: Vec<_> = variants.iter().filter(|variant| fits(variant.name())).collect();
            if !shown.is_empty() {
                say(format!("{title} ({key})\n\n"))?;
            }
            for variant in shown {
                entry(variant.name(), variant.about(), &**variant)?;
                // The list of papers has more than the scheme's own words.
                let source = ledger::papers::of_scheme(variant.name()).map(|paper| paper.cite());
                let source = source.unwrap_or_else(|| variant.source().into());
                if !source.is_empty() {
                    say(format!("      From {source}.\n\n"))?;
                }
                if name.is_some() {
                    say(more(variant.name(), key))?;
                }
            }
        }
        let shown: Vec<_> = registry.presets.iter().filter(|preset| fits(preset.name)).collect();
        if !shown.is_empty() {
            say("Presets (scheme.preset)\n\n".into())?;
        }
        for preset in shown {
            say(format!("  {:<12} {}\n", preset.name, preset.about))?;
            if name.is_some() {
                let settings = preset.settings.iter().map(|(key, value)| format!("      {key} = {value}\n"));
                say(settings.collect::<String>())?;
                let papers = ledger::papers::of_preset(preset.name, preset.settings);
                say(papers.iter().map(|paper| format!("      From {}.\n", paper.cite())).collect())?;
            }
        }
        Ok(())
    };
    crate::program::commands::printed(print())
}

/// What there is to know of one mechanism besides what it is: the presets that use it, and where its claims are.
fn more(name: &str, key: &str) -> String {
    let key = key.split(',').next().unwrap_or(key);
    let uses = |preset: &&Preset| preset.settings.contains(&(key, name));
    let presets: Vec<&str> = Registry::get().presets.iter().filter(uses).map(|preset| preset.name).collect();
    let mut text = match presets.as_slice() {
        [] => format!("      No preset uses it: write {key} = \"{name}\".\n"),
        presets => format!(
            "      Presets with it: {}. Compare them: tailwater compare FILE --schemes {}\n",
            presets.join(", "),
            presets[..presets.len().min(2)].join(",")
        ),
    };
    let claims = ledger::all().unwrap_or_default();
    if claims.iter().any(|experiment| experiment.id.split('/').next() == Some(name)) {
        text += &format!("      What its paper claims: tailwater claims {name}/\n");
    }
    text + "\n"
}

/// `tailwater topologies`.
pub fn topologies() -> Result<ExitCode, Problem> {
    let print = || -> Output {
        for shape in fabric::topology::shapes() {
            entry(shape.name(), shape.about(), &*shape)?;
        }
        say("  file\n      Any graph, from a TOML file named by `path`; see docs/scenario.md.\n".into())
    };
    crate::program::commands::printed(print())
}

/// `tailwater schema`.
pub fn schema() -> Result<ExitCode, Problem> {
    crate::program::commands::printed(say(format!("{:#}\n", scenario::schema::json())))
}

/// `tailwater ns3 --keys`.
pub fn ns3_keys() -> Result<ExitCode, Problem> {
    let describe = |key: &Key| {
        let effect = match key.effect {
            Effect::Honoured => "honoured".to_string(),
            Effect::NoEffect(why) => format!("no effect: {why}"),
            Effect::Unwritten => "not written; completion times and pauses are".to_string(),
            Effect::Off(lacking) => format!("only {}: {lacking}", key.example),
            Effect::Refused(why) => format!("refused: {why}"),
        };
        let default = key.default.map_or(String::new(), |d| format!(" [default {d}]"));
        say(format!("{:<26} {}{default}\n{:<26} {effect}\n", key.name, key.meaning, ""))
    };
    let print = || -> Output {
        for (number, fork) in FORKS.iter().enumerate() {
            let (gap, besides) = if number == 0 { ("", "") } else { ("\n", ": besides, or otherwise") };
            if !fork.keys.is_empty() {
                say(format!("{gap}# {} ({}){besides}\n", fork.name, fork.home))?;
            }
            fork.keys.iter().try_for_each(describe)?;
        }
        Ok(())
    };
    crate::program::commands::printed(print())
}
