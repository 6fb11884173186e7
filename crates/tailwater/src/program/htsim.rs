//! `tailwater htsim`.

use crate::program::commands::{BROKEN, Output, from_one, printed, say, threads_or_all};
use crate::program::interrupt;
use crate::program::progress::{self, Progress};

use files::problem::{Problem, read_text};
use interop::htsim::command::{Command, Effect, Key, OPTIONS};
use interop::htsim::{Text, plan, printed as lines};
use std::io::Read;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::process::ExitCode;

/// What the command takes.
#[derive(clap::Args)]
pub struct Arguments {
    /// List its options, what each means and whether it is honoured.
    #[arg(long)]
    pub options: bool,
    /// Write the scenario that it comes to, with its flows and its graph, into this folder, and run nothing.
    #[arg(long, value_name = "FOLDER")]
    scenario: Option<PathBuf>,
    /// How many threads [default: as many as there are cores]. The results are the same.
    #[arg(long, value_name = "N", value_parser = from_one)]
    threads: Option<NonZeroUsize>,
    /// Show no progress and no notes.
    #[arg(long)]
    quiet: bool,
    /// The options of that program, as there, behind those above.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "OPTION")]
    line: Vec<String>,
}

/// `tailwater htsim`.
pub fn htsim(arguments: Arguments) -> Result<ExitCode, Problem> {
    let Arguments { scenario, threads, quiet, line, .. } = arguments;
    let command = Command::read(&line)?;
    let (name, matrix) = match &command.matrix {
        Some(path) => (path.clone(), read_text(path.as_ref())?),
        None => ("standard input".to_string(), from_standard_input()?),
    };
    let topology = command.topology.as_ref();
    let topology = topology.map(|path| Ok((path.clone(), read_text(path.as_ref())?))).transpose()?;
    let topology = topology.as_ref().map(|(name, text)| Text { name, text });
    let planned = plan::plan(&command, Text { name: &name, text: &matrix }, topology)?;
    if !quiet {
        planned.notes.iter().for_each(|note| progress::note(note));
    }
    if let Some(folder) = scenario {
        let mut all = vec![(folder.join("htsim.toml"), planned.scenario.as_str())];
        all.extend(planned.files().map(|(name, text)| (folder.join(name), text)));
        std::fs::create_dir_all(&folder).map_err(|error| {
            Problem::new(folder.display().to_string(), format!("cannot be made: {error}"))
                .help("choose a folder that you may write to")
        })?;
        let paths: Vec<&std::path::Path> = all.iter().map(|(path, _)| path.as_path()).collect();
        let read: Vec<&std::path::Path> =
            [&command.matrix, &command.topology].into_iter().flatten().map(|path| path.as_ref()).collect();
        files::outputs::check_outputs(&paths, &read)?;
        files::write_all(&all.iter().map(|(path, text)| (path.as_path(), *text)).collect::<Vec<_>>())?;
        return printed(say(format!("{}\n", all[0].0.display())));
    }
    interrupt::heed(interrupt::of_run());
    let resolved = planned.resolved()?.on_threads(threads_or_all(threads));
    printed(say(lines::head(&planned)))?;
    let flows = &resolved.setup.flows;
    let (begin, until) = (flows.first().map(|flow| flow.start), flows.last().map(|flow| flow.start));
    let progress = Progress::new(begin.unwrap_or_default(), until.unwrap_or_default(), quiet);
    let outcome = resolved.simulate(&mut |now, hops| {
        progress.report(now, hops);
        !interrupt::stopped()
    });
    progress.finish();
    if interrupt::stopped() {
        progress::problem(&interrupt::of_run());
        return Ok(interrupt::status(ExitCode::FAILURE));
    }
    if !outcome.violations.is_empty() {
        outcome.violations.iter().for_each(|violation| progress::broken(violation));
        progress::complain(format_args!("error: this run is not a result; nothing is printed of it"));
        return Ok(ExitCode::from(BROKEN));
    }
    printed(say(lines::flows(&planned, &outcome)))
}

fn from_standard_input() -> Result<String, Problem> {
    let mut text = String::new();
    std::io::stdin().lock().read_to_string(&mut text).map_err(|error| {
        Problem::new("standard input", format!("cannot be read: {error}")).help("give the matrix with -tm FILE")
    })?;
    Ok(text)
}

/// `tailwater htsim --options`.
pub fn options() -> Result<ExitCode, Problem> {
    let describe = |key: &Key| {
        let effect = match key.effect {
            Effect::Honoured => "honoured".to_string(),
            Effect::NoEffect(why) => format!("no effect: {why}"),
            Effect::Only(only, why) => format!("only {only}: {why}"),
            Effect::Refused(why) => format!("refused: {why}"),
        };
        let default = key.default.map_or(String::new(), |default| format!(" [default {default}]"));
        let name = [&[key.name], key.values].concat().join(" ");
        say(format!("{name:<34} {}{default}\n{:<34} {effect}\n", key.meaning, ""))
    };
    let print = || -> Output { OPTIONS.iter().try_for_each(describe) };
    printed(print())
}
