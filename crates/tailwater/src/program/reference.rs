//! The reference of the manual: pages that are made of declarations, so that they cannot differ from the program.

use clap::{Arg, ArgAction, Command, CommandFactory as _};
use engine::Kind;
use fabric::Registry;
use scenario::declared::{Key, Section};
use scenario::schema;

/// Where the pages are, from the folder of the repository.
pub const FOLDER: &str = "docs/reference";

/// Every page: the name of its file, and its text.
pub fn pages() -> [(&'static str, String); 3] {
    [("keys.md", keys()), ("presets.md", presets()), ("commands.md", commands())]
}

/// The first line of a page that is made.
const MADE: &str =
    "<!-- Made by `tailwater claims --write-docs` of what the program declares; changes belong there. -->\n\n";

/// A text in a cell of a table.
fn cell(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").replace('|', "\\|")
}

/// A sentence with its full stop.
fn sentence(text: &str) -> String {
    let text = text.trim();
    if text.is_empty() || text.ends_with(['.', ':']) { text.into() } else { format!("{text}.") }
}

/// Every key of a scenario.
fn keys() -> String {
    let mut out = MADE.to_string()
        + "# Every key of a scenario\n\nAll tables and keys, with what they take, their limits and their defaults. \
           [Scenario files](../scenario.md) explains how they work together and how values are written; `tailwater schema` prints the \
           same as a JSON Schema for editors. A table in double brackets may be repeated.\n\n";
    let sections: Vec<&Section> =
        schema::sections().into_iter().filter(|section| !section.keys.is_empty() || section.others.is_some()).collect();
    for kind in ["Tables", "Topologies", "Mechanisms"] {
        let of_kind = sections.iter().filter(|section| kind_of(section) == kind);
        let links: Vec<String> = of_kind.map(|section| link(section)).collect();
        out += &format!("- {kind}: {}\n", links.join(" · "));
    }
    out.push('\n');
    sections.iter().for_each(|section| out += &table(section));
    out
}

/// Among which links on top of the page a table has its own.
fn kind_of(section: &Section) -> &'static str {
    match section.path.as_str() {
        "topology" => "Topologies",
        path if path.starts_with("scheme.") => "Mechanisms",
        _ => "Tables",
    }
}

/// A link to a table, within the page.
fn link(section: &Section) -> String {
    let name = match (section.path.as_str(), section.with) {
        ("", _) => "top level".into(),
        ("topology", Some((_, kind))) => format!("`{kind}`"),
        _ => format!("`{}`", title(section)),
    };
    format!("[{name}](#{})", anchor(&title(section)))
}

/// A table as it is written, with what chooses it if there are several of that name.
fn title(section: &Section) -> String {
    match (section.path.as_str(), section.many, section.with) {
        ("", ..) => "Top level".into(),
        ("topology", _, Some((_, kind))) => format!("[topology] kind = \"{kind}\""),
        (path, true, _) => format!("[[{path}]]"),
        (path, false, _) => format!("[{path}]"),
    }
}

/// The anchor that Markdown gives a heading.
fn anchor(title: &str) -> String {
    let letters = title.chars().filter_map(|c| match c {
        ' ' => Some('-'),
        c if c.is_alphanumeric() || c == '-' || c == '_' => Some(c.to_ascii_lowercase()),
        _ => None,
    });
    letters.collect()
}

/// A section of keys.
fn table(section: &Section) -> String {
    let mut out = format!("## `{}`\n\n", title(section)).replace("`Top level`", "Top level");
    out += &format!("{}\n\n", sentence(&section.about));
    if let Some((path, word)) = section.with.filter(|_| section.path != "topology") {
        out += &format!("Read where `{path}` is `\"{word}\"`.\n\n");
    }
    if !section.keys.is_empty() {
        out += "| key | value | default | meaning |\n|---|---|---|---|\n";
        section.keys.iter().for_each(|key| out += &format!("{}\n", schema::row(key)));
        out.push('\n');
    }
    if let Some(kind) = &section.others {
        out += &format!("Keys are names of your own; each takes: {}.\n\n", schema::short(kind));
    }
    section.keys.iter().for_each(|key| out += &words(section, key));
    out
}

/// What the words mean that a key takes, where they say it and no page of their own does.
fn words(section: &Section, key: &Key) -> String {
    let Kind::Choice(words) = &key.kind else { return String::new() };
    if section.path == "scheme" || section.path == "topology" || words.iter().all(|word| word.about.is_empty()) {
        return String::new();
    }
    let line = |word: &engine::Word| format!("- `\"{}\"`: {}\n", word.word, sentence(&word.about));
    format!("`{}`:\n\n{}\n", key.name, words.iter().map(line).collect::<String>())
}

/// What each axis is called and which key chooses on it.
const AXES: [(&str, &str, &str); 7] = [
    ("flow_control", "Flow control", "scheme.flow_control"),
    ("congestion_control", "Congestion control", "scheme.congestion_control"),
    ("edge_control", "Edge control", "scheme.edge_control"),
    ("transport", "Transport", "scheme.transport"),
    ("load_balancing", "Load balancing", "scheme.load_balancing"),
    ("queueing", "Queueing", "switch.scheduler"),
    ("marking", "Marking", "switch.marking"),
];

/// Mechanisms and presets.
fn presets() -> String {
    let registry = Registry::get();
    let mut out = MADE.to_string()
        + "# Presets and mechanisms\n\nA scheme makes one choice on each of seven axes. A *preset* is a named set of choices: \
           `scheme.preset` in a scenario, `--schemes` of `compare`. What a scenario writes besides overrides it. \
           [Schemes](../schemes.md) says how we read each paper; `tailwater schemes NAME` prints what is known of one.\n\n\
           ## Presets\n\n| preset | what it is | what it sets |\n|---|---|---|\n";
    for preset in &registry.presets {
        let sets: Vec<String> = preset.settings.iter().map(|(key, value)| format!("`{key}={value}`")).collect();
        out += &format!("| `{}` | {} | {} |\n", preset.name, cell(preset.about), sets.join(", "));
    }
    for (axis, variants) in registry.definitions() {
        let (_, title, key) = AXES.into_iter().find(|known| known.0 == axis).unwrap_or((axis, axis, axis));
        out += &format!(
            "\n## {title}\n\nChosen by `{key}`.\n\n| name | what it does | from | parameters |\n|---|---|---|---|\n"
        );
        for variant in variants {
            let name = variant.name();
            let source = ledger::papers::of_scheme(name).map(|paper| paper.cite());
            let source = source.unwrap_or_else(|| variant.source().into());
            let count = variant.list().len();
            let parameters = match count {
                0 => "none".into(),
                _ => format!("[{count}](keys.md#{})", anchor(&format!("[scheme.{name}]"))),
            };
            out += &format!("| `{name}` | {} | {} | {parameters} |\n", cell(variant.about()), cell(&source));
        }
    }
    out
}

/// Every command with its options.
fn commands() -> String {
    let mut program = super::Arguments::command().term_width(0);
    program.build();
    let mut out = MADE.to_string()
        + "# Every command\n\n`tailwater COMMAND --help` prints the same. `tailwater completions SHELL` makes your shell complete them, \
           `tailwater man FOLDER` writes manual pages. [Exit statuses](../exit.md) are the same for all.\n\n\
           | command | what it does |\n|---|---|\n";
    for command in shown(&program) {
        let name = format!("tailwater {}", command.get_name());
        let about = command.get_about().map(ToString::to_string).unwrap_or_default();
        out += &format!("| [`{name}`](#{}) | {} |\n", anchor(&name), cell(&sentence(&about)));
    }
    out.push('\n');
    for command in shown(&program) {
        describe(command, "tailwater", 2, &mut out);
    }
    out.truncate(out.trim_end().len());
    out + "\n"
}

/// The commands that people are meant to see.
fn shown(command: &Command) -> impl Iterator<Item = &Command> {
    command.get_subcommands().filter(|command| !command.is_hide_set() && command.get_name() != "help")
}

/// A command and those below it.
fn describe(command: &Command, above: &str, level: usize, out: &mut String) {
    let name = format!("{above} {}", command.get_name());
    let about = command.get_long_about().or(command.get_about()).map(ToString::to_string).unwrap_or_default();
    let usage = command.clone().render_usage().to_string();
    *out += &format!("{} `{name}`\n\n{}\n\n", "#".repeat(level), sentence(&about));
    *out += &format!("```text\n{}\n```\n\n", usage.trim_start_matches("Usage: "));
    let arguments: Vec<&Arg> = command
        .get_arguments()
        .filter(|arg| !arg.is_hide_set() && !["help", "version"].contains(&arg.get_id().as_str()))
        .collect();
    if !arguments.is_empty() {
        *out += "| argument | meaning | default |\n|---|---|---|\n";
        arguments.iter().for_each(|arg| *out += &argument(arg));
        out.push('\n');
    }
    for below in shown(command) {
        describe(below, &name, level + 1, out);
    }
}

/// A row for an argument.
fn argument(arg: &Arg) -> String {
    let names = arg.get_value_names().unwrap_or_default().iter().map(ToString::to_string).collect::<Vec<_>>().join(" ");
    let takes = matches!(arg.get_action(), ArgAction::Set | ArgAction::Append);
    let optional = arg.get_num_args().is_some_and(|count| count.min_values() == 0);
    let value = match (takes, optional) {
        (false, _) => String::new(),
        (true, false) => format!(" {names}"),
        (true, true) if arg.is_require_equals_set() => format!("[={names}]"),
        (true, true) => format!(" [{names}]"),
    };
    let option = match (arg.get_short(), arg.get_long()) {
        (Some(short), Some(long)) => format!("-{short}, --{long}"),
        (None, Some(long)) => format!("--{long}"),
        (Some(short), None) => format!("-{short}"),
        (None, None) => String::new(),
    };
    let name = format!("{option}{value}").trim_start().to_string();
    let help = arg.get_help().map(ToString::to_string).unwrap_or_default();
    let words: Vec<String> = match takes {
        true => arg.get_possible_values().iter().map(|word| format!("`{}`", word.get_name())).collect(),
        false => Vec::new(),
    };
    let words = if words.is_empty() { String::new() } else { format!(" One of {}.", words.join(", ")) };
    // A default in words is part of the sentence.
    let (help, told) = match help.split_once("[default: ") {
        Some((before, after)) => {
            let (default, rest) = after.split_once(']').unwrap_or((after, ""));
            (format!("{}{rest}", before.trim_end()), default.to_string())
        }
        None => (help, String::new()),
    };
    let defaults: Vec<String> = if takes {
        arg.get_default_values().iter().map(|value| format!("`{}`", value.to_string_lossy())).collect()
    } else {
        Vec::new()
    };
    let default = if defaults.is_empty() { told } else { defaults.join(", ") };
    format!("| `{name}` | {}{words} | {} |\n", cell(&sentence(&help)), cell(&default))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn the_reference_in_the_manual_is_what_the_program_declares() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(FOLDER);
        for (name, text) in pages() {
            let found = std::fs::read_to_string(folder.join(name)).unwrap_or_default();
            assert!(found == text, "{FOLDER}/{name} is out of date: `tailwater claims --write-docs` writes it");
        }
    }

    #[test]
    fn the_reference_has_every_table_command_and_preset() {
        let [(_, keys), (_, presets), (_, commands)] = pages();
        for part in
            ["## `[[collective]]`\n", "| `kind` | `\"ring-all-reduce\"`", "## `[scheme.dcqcn]`\n", "## Top level\n"]
        {
            assert!(keys.contains(part), "{part}");
        }
        for part in ["| `hpcc` |", "## Load balancing\n", "keys.md#schemebfc"] {
            assert!(presets.contains(part), "{part}");
        }
        for part in
            ["## `tailwater run`\n", "### `tailwater store verify`\n", "| `--set KEY=VALUE` |", "| `-q, --quiet` |"]
        {
            assert!(commands.contains(part), "{part}");
        }
        // What only programs use is not shown.
        assert!(!commands.contains("tailwater flows"));
    }

    #[test]
    fn an_anchor_is_made_as_readers_of_markdown_make_it() {
        assert_eq!(anchor("[[load]]"), "load");
        assert_eq!(anchor("[topology] kind = \"leaf-spine\""), "topology-kind--leaf-spine");
        assert_eq!(anchor("[scheme.go-back-n]"), "schemego-back-n");
    }
}
