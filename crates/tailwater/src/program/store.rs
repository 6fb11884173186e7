//! `tailwater store`: a store of runs, checked.

use crate::program::commands::{printed, say, threads_or_all};
use crate::program::progress::GridProgress;
use crate::program::usage;
use clap::Subcommand;
use files::problem::Problem;
use results::recording::RECORDING;
use serde_json::json;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use store::grid::{self, Cell};
use store::{Checked, Store};

/// What is to be done with a store.
#[derive(Subcommand)]
pub enum What {
    /// Read every file of every run and say which are damaged. The exit status is 1 if any is.
    Verify {
        /// The folder of the store, or that of a single run.
        #[arg(default_value = "results/runs")]
        store: PathBuf,
        /// Put damaged runs aside, into the folder `damaged` of the store, and do them again.
        #[arg(long)]
        repair: bool,
        /// With --repair: where files that scenarios name are looked for [default: the working directory].
        #[arg(long, value_name = "FOLDER", requires = "repair")]
        base: Option<PathBuf>,
        /// With --repair: runs at a time [default: one for each core].
        #[arg(long, value_name = "N", requires = "repair", value_parser = crate::program::commands::from_one)]
        threads: Option<NonZeroUsize>,
        /// Answer in JSON, for programs.
        #[arg(long)]
        json: bool,
    },
}

/// `tailwater store`.
pub fn store(what: &What) -> Result<ExitCode, Problem> {
    let What::Verify { store, repair, base, threads, json } = what;
    let (store, names) = asked(store)?;
    let checked: Vec<Checked> = names.iter().map(|name| store.verify(name)).collect();
    let damaged: Vec<&Checked> = checked.iter().filter(|run| run.damage.is_some()).collect();
    let repaired = match repair {
        true => again(&store, &damaged, base.as_deref().unwrap_or(Path::new(".")), threads_or_all(*threads))?,
        false => Vec::new(),
    };
    let older = checked.iter().filter(|run| !run.digests && run.damage.is_none()).count();
    let left = damaged.len() - repaired.iter().filter(|run| run.done).count();
    let text = match json {
        true => {
            let runs = damaged.iter().map(|run| {
                let fixed = repaired.iter().find(|fixed| fixed.name == run.name);
                json!({
                    "run": run.name,
                    "damage": run.damage.as_ref().map(|problem| &problem.message),
                    "aside": fixed.map(|fixed| &fixed.aside),
                    "again": fixed.is_some_and(|fixed| fixed.done),
                })
            });
            let runs: Vec<_> = runs.collect();
            format!("{:#}\n", json!({ "runs": checked.len(), "without_digests": older, "damaged": runs }))
        }
        false => {
            let mut text: String =
                damaged.iter().filter_map(|run| Some(format!("{}\n", run.damage.as_ref()?))).collect();
            for run in &repaired {
                let end = match run.done {
                    true => "done again",
                    false => {
                        "not done again: it is of another program, or a file that it names is not here; repeat the command that asked for it"
                    }
                };
                text += &format!("{}: put aside as {}; {end}\n", run.name, run.aside.display());
            }
            text += &format!("{} runs, {} damaged", checked.len(), damaged.len());
            if older > 0 {
                text += &format!(", {older} without digests (written by an older version: only lengths were checked)");
            }
            if left > 0 && !repair {
                text += "; --repair puts damaged runs aside and does them again";
            }
            text + "\n"
        }
    };
    let code = if left > 0 { ExitCode::FAILURE } else { ExitCode::SUCCESS };
    printed(say(text)).map(|_| code)
}

/// The store of a folder and its runs, or the one run that the folder is.
fn asked(folder: &Path) -> Result<(Store, Vec<String>), Problem> {
    let store = Store::new(folder);
    let names = store.names()?;
    if !names.is_empty() {
        return Ok((store, names));
    }
    if let Some((around, name)) = Store::of_run(folder) {
        return Ok((around, vec![name]));
    }
    match store.may_be_empty() {
        true => Ok((store, names)),
        false => Err(Problem::new(folder.display().to_string(), "is no store of runs, and no folder of a run")
            .help("name the folder of a store, such as results/runs, or that of a run")),
    }
}

/// A damaged run that was put aside.
struct Aside {
    name: String,
    aside: PathBuf,
    /// Whether it is in the store again.
    done: bool,
}

/// Puts damaged runs aside, and does those again that this program would give the same name.
fn again(store: &Store, damaged: &[&Checked], base: &Path, threads: usize) -> Result<Vec<Aside>, Problem> {
    let (mut all, mut plans) = (Vec::new(), [Vec::<Cell>::new(), Vec::new()]);
    for run in damaged {
        let aside = store.put_aside(&run.name)?;
        let cell = store::again(&run.name, &aside, base);
        if let Some(cell) = &cell {
            plans[usize::from(aside.join(RECORDING).exists())].push(cell.clone());
        }
        all.push(Aside { name: run.name.clone(), aside, done: cell.is_some() });
    }
    for (plan, recorded) in plans.iter().zip([false, true]) {
        let progress = GridProgress::new(false);
        let result = grid::run(plan, &store.clone().recorded(recorded), threads, &progress);
        progress.finish();
        if let Err(failed) = result {
            usage::refuse(&failed.problems);
            let path = |run: &Aside| store.folder().join(&run.name);
            all.iter_mut().for_each(|run| run.done &= path(run).exists());
        }
    }
    Ok(all)
}
