//! `tailwater export`: tables of results as CSV.

use crate::program::commands::{printed, say};
use clap::Args;
use files::problem::{Problem, read_text};
use results::tables;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// What is wanted, and whose.
#[derive(Args)]
pub struct Arguments {
    /// Folders of runs, of comparisons or of sweeps: all runs of these.
    #[arg(required = true)]
    folders: Vec<PathBuf>,
    /// Which table: flows, links, buffers, collectives, jobs, or any other that the folder has as NAME.parquet.
    #[arg(long, value_name = "NAME", default_value = "flows")]
    table: String,
    /// Where it goes [default: standard output].
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

/// The folder of a run, and the columns that tell it from others.
struct Run {
    folder: PathBuf,
    before: Vec<(String, String)>,
}

/// `tailwater export`.
pub fn export(arguments: &Arguments) -> Result<ExitCode, Problem> {
    let mut runs: Vec<Run> = Vec::new();
    for folder in &arguments.folders {
        let several = arguments.folders.len() > 1;
        let name = [("folder".to_string(), folder.display().to_string())];
        let of = |run: Run| Run { before: [name.as_slice(), &run.before].concat(), ..run };
        runs.extend(runs_of(folder)?.into_iter().map(|run| if several { of(run) } else { run }));
    }
    let heads = |run: &Run| run.before.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>();
    if let Some(other) = runs.iter().find(|run| heads(run) != heads(&runs[0])) {
        let message = "is told from the others by other values, so that they have no columns in common";
        return Err(Problem::new(other.folder.display().to_string(), message).help("export them one by one"));
    }
    let mut columns: Option<Vec<String>> = None;
    let mut text = String::new();
    for run in &runs {
        let table = read(&run.folder, &arguments.table)?;
        let own: Vec<String> = table.columns().iter().map(|(name, _)| name.clone()).collect();
        if columns.as_ref().is_some_and(|columns| *columns != own) {
            let message = format!("has other columns in {}.parquet than the first", arguments.table);
            return Err(Problem::new(run.folder.display().to_string(), message).help("export them one by one"));
        }
        let part = table.csv(&run.before, columns.is_none());
        columns = Some(own);
        match &arguments.out {
            Some(_) => text += &part,
            None => {
                let said = say(part);
                // A reader that has gone wants no more.
                if said.is_err() {
                    return printed(said);
                }
            }
        }
    }
    if let Some(path) = &arguments.out {
        files::outputs::check_outputs(&[path], &[])?;
        files::write_all(&[(path, &text)])?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The runs of a folder: itself, or those that a comparison or a sweep names.
fn runs_of(folder: &Path) -> Result<Vec<Run>, Problem> {
    if folder.join(files::SUMMARY).is_file() {
        return Ok(vec![Run { folder: folder.to_owned(), before: Vec::new() }]);
    }
    let Some(path) =
        ["comparison.json", "sweep.json"].map(|name| folder.join(name)).into_iter().find(|path| path.is_file())
    else {
        let problem = Problem::new(folder.display().to_string(), "is no folder of a run, a comparison or a sweep");
        return Err(problem.help("`run`, `compare` and `sweep` say at their end where theirs is"));
    };
    let damaged =
        |why: String| Problem::new(path.display().to_string(), why).help("run the command again that has written it");
    let about: Value = serde_json::from_str(&read_text(&path)?).map_err(|e| damaged(format!("is damaged: {e}")))?;
    let run = |cell: &Value| {
        let labels = cell["labels"].as_object()?.iter();
        let labels = labels.map(|(axis, value)| Some((axis.clone(), value.as_str()?.to_string())));
        let seed = ("seed".to_string(), cell["seed"].as_u64()?.to_string());
        let before = labels.chain([Some(seed)]).collect::<Option<Vec<_>>>()?;
        Some(Run { folder: folder.join(cell["folder"].as_str()?), before })
    };
    let cells = about["cells"].as_array().and_then(|cells| cells.iter().map(run).collect::<Option<Vec<_>>>());
    cells.filter(|cells| !cells.is_empty()).ok_or_else(|| damaged("names no runs".into()))
}

/// A table of a run, if it is not damaged.
fn read(folder: &Path, table: &str) -> Result<tables::Table, Problem> {
    let name = format!("{}.parquet", table.trim_end_matches(".parquet"));
    let path = folder.join(&name);
    if path.is_file() && !name.contains(['/', '\\']) {
        files::sums::check(folder, |file| file == name)?;
        return tables::read(&path);
    }
    let inside = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let parquet = inside.filter(|path| path.extension().is_some_and(|end| end == "parquet"));
    let mut known: Vec<String> =
        parquet.filter_map(|path| Some(path.file_stem()?.to_string_lossy().into_owned())).collect();
    known.sort();
    let problem = Problem::new(folder.display().to_string(), format!("has no table {table:?}"));
    Err(problem.help(match known.is_empty() {
        true => "run the command again that has written it".to_string(),
        false => format!("its tables are {}", known.join(", ")),
    }))
}
