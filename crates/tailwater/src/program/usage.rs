//! Wrong usage: what a command line that is refused was probably meant to be, and the exit status.

use crate::program::{Arguments, progress};
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory as _, Parser as _};
use files::problem::Problem;
use std::process::ExitCode;

/// Where to read more, below the list of commands.
pub const DOCUMENTATION: &str = "\
Documentation: the folder docs/ of the repository, beginning with docs/start.md; `cargo book --open` shows it as a book. \
`tailwater COMMAND --help` lists the options of a command.";

/// The exit status of a command line that is wrong.
pub const USAGE: u8 = 2;

/// Says all that is wrong. The exit status tells wrong options from wrong input.
pub fn refuse(problems: &[Problem]) -> ExitCode {
    problems.iter().for_each(progress::problem);
    match !problems.is_empty() && problems.iter().all(Problem::is_usage) {
        true => ExitCode::from(USAGE),
        false => ExitCode::FAILURE,
    }
}

/// Reads the command line, or ends the process and says what was meant.
pub fn parse() -> Arguments {
    let words: Vec<String> = std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned()).collect();
    Arguments::try_parse().unwrap_or_else(|mut error| {
        let wrong = match error.get(ContextKind::InvalidArg) {
            Some(ContextValue::String(wrong)) if error.kind() == ErrorKind::UnknownArgument => wrong.clone(),
            _ => error.exit(),
        };
        let similar = error.get(ContextKind::SuggestedArg).is_some();
        if let Some(tip) = tip(&words, &wrong, similar) {
            error.remove(ContextKind::SuggestedArg);
            error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
        }
        error.exit()
    })
}

/// What was meant by the words of a command line, of which `wrong` is one too many or none that the command knows. `similar`: clap has a
/// suggestion of its own.
fn tip(words: &[String], wrong: &str, similar: bool) -> Option<String> {
    let command = words.first()?.as_str();
    let begins = |word: &String| word == wrong || word.starts_with(&format!("{wrong}="));
    let place = words.iter().position(begins)?;
    if !wrong.starts_with("--") {
        let before = words.get(place.checked_sub(1)?)?;
        let option = words[..place].iter().rposition(|word| word.starts_with("--"))?;
        // Names one after the other, without commas.
        let listed = ["--schemes", "--seeds", "--bins"]
            .iter()
            .any(|list| words[option] == *list || words[option].starts_with(&format!("{list}=")));
        let plain = |word: &&String| !word.starts_with('-') && !word.ends_with(".toml");
        if listed
            && words[option + 1..].iter().take_while(plain).all(|word| !word.contains(','))
            && plain(&&words[place])
        {
            let (name, first) = words[option].split_once('=').unwrap_or((&words[option], ""));
            let rest = words[option + 1..].iter().take_while(plain).map(String::as_str);
            let names: Vec<&str> = Some(first).filter(|first| !first.is_empty()).into_iter().chain(rest).collect();
            return Some(format!("write commas between them: {name} {}", names.join(",")));
        }
        let split = before.ends_with(',') || wrong.starts_with(',');
        let value = words[option + 1..].iter().take_while(|word| !word.starts_with("--")).cloned().collect::<String>();
        let joined = if words[option].contains('=') { value } else { format!(" {value}") };
        return split
            .then(|| format!("a blank ends a value: write {}{joined}, or put the value in quotes", words[option]));
    }
    let value = words[place].split_once('=').map(|(_, value)| value);
    let value = value.or_else(|| words.get(place + 1).map(String::as_str).filter(|next| !next.starts_with('-')));
    let one = |or: &'static str| value.filter(|value| !value.contains(',')).unwrap_or(or).to_string();
    let all = |or: &'static str| value.unwrap_or(or).to_string();
    let one_run = ["run", "check", "traffic", "deadlock"].contains(&command);
    let several = "`tailwater compare` runs several";
    Some(match (wrong, command) {
        ("--scheme" | "--schemes" | "--preset", _) if one_run => {
            format!("write --set scheme.preset={}; {several}, with --schemes {}", one("hpcc"), all("hpcc,bfc"))
        }
        ("--scheme" | "--preset", "compare") => format!("write --schemes {}", all("hpcc,bfc")),
        ("--scheme" | "--schemes" | "--preset", "sweep") => "the sweep's file says which: schemes = [\"hpcc\"]".into(),
        ("--seed" | "--seeds", _) if one_run => {
            format!("write --set seed={}; {several}, with --seeds {}", one("3"), all("3"))
        }
        ("--seed", "compare") => {
            let (one, all) = (one("3"), all("3"));
            format!(
                "write --set seed={one} for that seed, or --seeds {all} for as many, or for several with commas between"
            )
        }
        ("--seed" | "--seeds", "sweep") => "the sweep's file says how many: seeds = 3".into(),
        ("--vary", _) if one_run => {
            format!("a single value is --set KEY=VALUE; {several}, with --vary {}", all("KEY=VALUE,VALUE"))
        }
        ("--vary" | "--set", "sweep") => {
            "the sweep's file says it: a table [grid] of keys with their values, or set = [\"KEY=VALUE\"]".into()
        }
        _ if similar => return None,
        _ => {
            let all = Arguments::command();
            let has = |known: &&clap::Command| {
                known
                    .get_arguments()
                    .any(|argument| argument.get_long().is_some_and(|long| wrong == format!("--{long}")))
            };
            let known: Vec<String> =
                all.get_subcommands().filter(has).map(|known| format!("`tailwater {}`", known.get_name())).collect();
            match known.as_slice() {
                [] => return None,
                known => format!("{wrong} is an option of {}", known.join(", ")),
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::tip;

    fn of(line: &str, wrong: &str) -> String {
        let words: Vec<String> = line.split(' ').map(String::from).collect();
        tip(&words, wrong, false).unwrap_or_default()
    }

    #[test]
    fn a_blank_after_a_comma_is_recognised() {
        let whole = "write --schemes hpcc,bfc,pfc, or put";
        assert!(of("compare a.toml --schemes hpcc, bfc, pfc", "bfc,").contains(whole));
        assert!(of("compare a.toml --schemes hpcc ,bfc,pfc --quiet", ",bfc,pfc").contains(whole));
        assert!(of("compare a.toml --vary=x.y=1, 2", "2").contains("write --vary=x.y=1,2, or put"));
        assert_eq!(of("compare a.toml b.toml", "b.toml"), "");
        assert_eq!(of("compare --schemes pfc a.toml b.toml", "b.toml"), "");
    }

    #[test]
    fn names_without_commas_get_them() {
        let whole = "write commas between them: --schemes pfc,bfc,hpcc";
        assert_eq!(of("compare a.toml --schemes pfc bfc hpcc", "bfc"), whole);
        assert_eq!(of("compare a.toml --schemes=pfc bfc hpcc --quiet", "bfc"), whole);
        assert_eq!(of("compare --schemes pfc bfc a.toml", "bfc"), "write commas between them: --schemes pfc,bfc");
    }

    #[test]
    fn options_of_other_commands_are_answered_with_what_does_the_same() {
        assert!(of("run a.toml --schemes hpcc", "--schemes").contains("--set scheme.preset=hpcc;"));
        assert!(of("run a.toml --scheme=hpcc,bfc", "--scheme").contains("with --schemes hpcc,bfc"));
        assert!(of("run a.toml --seed 7", "--seed").contains("--set seed=7;"));
        assert!(of("compare a.toml --seed 7", "--seed").contains("--set seed=7 for that seed"));
        assert!(of("sweep a.toml --seeds 7", "--seeds").contains("seeds = 3"));
        assert!(of("check a.toml --shard 1/2", "--shard").contains("`tailwater sweep`"));
        assert_eq!(of("run a.toml --nonsense", "--nonsense"), "");
    }
}
