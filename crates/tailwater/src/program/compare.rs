//! `tailwater compare`: a grid of runs, a table, and a folder that says how it came about.

use crate::program::answer::{self, Asked, BY_SIZE};
use crate::program::commands::{BROKEN, printed, say};
use crate::program::estimate::{self, Instead};
use crate::program::interrupt;
use crate::program::place::{self, COMPARISON, Kind, Place};
use crate::program::progress::{self, GridProgress};
use crate::program::usage;
use clap::Args;
use files::problem::{Problem, read_text};
use report::curves;
use results::answer::{Answer, Question};
use results::comparison::{Better, Table};
use serde_json::{Map, Value, json};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use store::Store;
use store::grid::{self, Axis, Cell, Done, Failed, Grid, Source, Variant};

/// The files of a comparison's folder.
const TABLE: &str = "table.csv";
const SCENARIO: &str = "scenario.toml";
/// The most runs that are drawn.
const MOST_DRAWN: usize = 300;

/// What is to be compared.
#[derive(Args)]
pub struct Arguments {
    /// The scenario file.
    scenario: PathBuf,
    /// The schemes to compare, by preset as `tailwater schemes` lists them [default: the scenario's own].
    #[arg(long, value_name = "NAME,NAME", value_delimiter = ',')]
    schemes: Vec<String>,
    /// How many seeds to run each with, or which: `3` for 1, 2 and 3; `5,9` for 5 and 9 [default: the scenario's own].
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    seeds: Option<String>,
    /// Give a key several values, such as `switch.buffer=4MB,8MB`; with several keys, every combination.
    #[arg(long, value_name = "KEY=VALUE,VALUE")]
    vary: Vec<String>,
    /// Override a key in all runs, as with `run`.
    #[arg(long = "set", value_name = "KEY=VALUE")]
    sets: Vec<String>,
    #[command(flatten)]
    asked: Asked,
    #[command(flatten)]
    instead: Instead,
    /// Where the comparison goes [default: results/compare-NAME-OF-THE-FILE, or with a number after it if that has another].
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,
    /// Write over another comparison that is in the folder. Its runs stay in the store.
    #[arg(long)]
    replace: bool,
    /// Where the runs are kept. What is there is not run again.
    #[arg(long, value_name = "FOLDER", default_value = crate::program::commands::STORE)]
    store: PathBuf,
    /// Keep a recording.bin of each run; one that was not recorded is run again.
    #[arg(long)]
    record: bool,
    /// Runs at a time [default: one for each core].
    #[arg(long, value_name = "N", value_parser = crate::program::commands::from_one)]
    threads: Option<NonZeroUsize>,
    /// Show no progress and print nothing but problems.
    #[arg(long, short)]
    quiet: bool,
    #[command(flatten)]
    reporting: progress::Reporting,
}

/// `tailwater compare`.
pub fn compare(arguments: &Arguments) -> Result<ExitCode, Problem> {
    arguments.reporting.begin();
    let source = Source::load(&arguments.scenario)?;
    let mut problems = Vec::new();
    let question = arguments.asked.question().map_err(|wrong| problems.extend(wrong));
    let seeds = grid::seeds(arguments.seeds.as_deref(), &arguments.sets).map_err(|wrong| problems.push(wrong));
    let mut axes = Vec::new();
    for text in &arguments.vary {
        match Axis::parse(text) {
            Ok(axis) => axes.push(axis),
            Err(wrong) => problems.push(wrong),
        }
    }
    // Within quotes blanks may follow commas.
    let schemes: Vec<String> = arguments.schemes.iter().map(|name| name.trim().to_string()).collect();
    let variants = Variant::schemes(&source, &arguments.sets, &schemes).map_err(|wrong| problems.push(wrong));
    let (Ok(question), Ok(seeds), Ok(variants), true) = (question, seeds, variants, problems.is_empty()) else {
        return Ok(usage::refuse(&problems));
    };
    let usual = Path::new("results").join(format!("compare-{}", source.title));
    let sets = arguments.sets.iter().cloned().chain(arguments.instead.sets()).collect();
    let grid = Grid { source, sets, variants, axes, seeds };
    let own = place::identity(&arguments.scenario, &grid);
    let place = Place {
        kind: Kind::Comparison,
        asked: arguments.out.as_deref(),
        usual: &usual,
        own: &own,
        replace: arguments.replace,
        quiet: arguments.quiet,
    };
    let mut out = place.find()?;
    check_out(&out, &arguments.store)?;
    let plan = match grid.plan() {
        Ok(plan) => plan,
        Err(problems) => return Ok(usage::refuse(&explained(arguments, problems))),
    };
    interrupt::heed(interrupt::of_runs(&arguments.store));
    let store = Store::new(&arguments.store).recorded(arguments.record).thorough(true);
    let threads = crate::program::commands::threads_or_all(arguments.threads);
    let progress = GridProgress::new(arguments.quiet);
    let result = grid::ready(&plan, &store, threads, &progress).and_then(|ready| {
        let failed = |problem| Failed { problems: vec![problem], broken: false, finished: 0, runs: 0 };
        let new = !out.exists();
        let claim;
        (out, claim) = place.claim(&out).map_err(failed)?;
        match ready.run(threads, &progress) {
            Ok(done) => Ok((done, claim)),
            Err(failed) => {
                drop(claim);
                // A folder that was made for nothing goes; one with something in it cannot.
                _ = new.then(|| std::fs::remove_dir(&out));
                Err(failed)
            }
        }
    });
    progress.finish();
    match result {
        Ok((done, claim)) => {
            let written = write(arguments, question, &grid, &plan, &done, &out);
            drop(claim);
            if written.is_err() {
                // One that was made for it goes with it.
                _ = std::fs::remove_dir(&out);
            }
            written
        }
        Err(failed) => {
            let code = usage::refuse(&explained(arguments, failed.problems));
            if failed.finished > 0 {
                let (finished, runs) = (failed.finished, failed.runs);
                progress::note(&format!("{finished} of {runs} runs are in {}", store.folder().display()));
            }
            Ok(interrupt::status(if failed.broken { ExitCode::from(BROKEN) } else { code }))
        }
    }
}

/// Problems in the words of the options.
fn explained(arguments: &Arguments, problems: Vec<Problem>) -> Vec<Problem> {
    problems.into_iter().map(|problem| arguments.instead.explain(problem)).collect()
}

/// Refuses a folder that has something else than a comparison. The store may be inside.
fn check_out(out: &Path, store: &Path) -> Result<(), Problem> {
    match files::foreign(out, COMPARISON, &[store]) {
        Some(other) => Err(mixed(out, &other, "a comparison")),
        None => Ok(()),
    }
}

/// The problem that a folder has something that is not of `what`.
pub(crate) fn mixed(out: &Path, other: &Path, what: &str) -> Problem {
    let name = other.file_name().unwrap_or_default().to_string_lossy();
    Problem::new(out.display().to_string(), format!("has a {name} that is not of {what}"))
        .help("choose a folder that is new or empty with --out, or move that one away")
}

/// Writes everything that a comparison's folder has, and prints the table.
fn write(
    arguments: &Arguments,
    question: Question,
    grid: &Grid,
    plan: &[Cell],
    done: &Done,
    out: &Path,
) -> Result<ExitCode, Problem> {
    let summaries = done.folders.iter().map(|folder| read_summary(folder)).collect::<Result<Vec<_>, _>>()?;
    let table = grid.table(plan, &summaries);
    let answer = answer::answer(question, plan, &done.folders, &summaries)?;
    let mut comparison = comparison(arguments, grid, plan, done, &summaries, &table, out);
    comparison.extend(answer::about(&answer));
    let comparison = Value::from(comparison);
    let comparison = format!("{comparison:#}\n");
    // The file that marks a comparison's folder comes first: an interruption leaves nothing that is refused later.
    let paths = [COMPARISON, TABLE, BY_SIZE, SCENARIO].map(|name| out.join(name));
    let texts = [&comparison, &table.csv(), &answer.csv(), &grid.source.text];
    let texts = texts.map(|text| text.clone().into_bytes());
    let all: Vec<(PathBuf, Vec<u8>)> = paths.into_iter().zip(texts).collect();
    let page = if plan.len() <= MOST_DRAWN {
        draw(arguments, grid, plan, done, &answer, out)
    } else {
        let remedy = "compare fewer, or draw some of them with `tailwater report`";
        progress::note(&format!("{} runs are too many for one page of figures; {remedy}", plan.len()));
        Ok(Vec::new())
    };
    let written = put(out, &all, page);
    let runs = done.ran + done.reused;
    let runs = if runs == 1 { "1 run".into() } else { format!("{runs} runs") };
    let rest = answer::rest(&answer);
    let (title, answer, table, new) =
        (&table.title, answer::text(&answer, &table, arguments.asked.times), table.brief(), done.ran);
    let estimated = estimate::about(&summaries).unwrap_or_default();
    let text = format!("{title}\n\n{answer}\n{rest}{table}\n{estimated}");
    announce(&text, &format!("{runs}, {new} new; comparison in {}\n", out.display()), arguments.quiet, written)
}

/// Files with what is in them.
type Files = Vec<(PathBuf, Vec<u8>)>;

/// Writes the files of a folder with its page, all or none. One that was made for them goes with them. A page that cannot be had is left
/// out, and told about.
pub(crate) fn put(out: &Path, files: &Files, page: Result<Files, Problem>) -> Result<Option<Problem>, Problem> {
    let whole = page.and_then(|page| report::folder::replace(out, &[files.as_slice(), &page].concat()));
    let Err(problem) = whole else { return Ok(None) };
    files::write_deep(files).inspect_err(|_| _ = std::fs::remove_dir(out))?;
    // One from before would be about something else.
    _ = std::fs::remove_file(out.join(report::folder::PAGE));
    let problem = Problem::new(problem.file.as_str(), problem.message.as_str()).cause(problem.cause);
    Ok(Some(problem.help("everything else is in the folder; the same command draws the page once that is mended")))
}

/// Prints what came out, whatever became of its folder, and then says what is wrong with that.
pub(crate) fn announce(
    text: &str,
    place: &str,
    quiet: bool,
    written: Result<Option<Problem>, Problem>,
) -> Result<ExitCode, Problem> {
    if !quiet {
        printed(say(format!("{text}{}", if written.is_ok() { place } else { "" })))?;
    }
    match written? {
        Some(problem) => Ok(usage::refuse(&[problem])),
        None => Ok(ExitCode::SUCCESS),
    }
}

/// Draws the comparison: a page, and its figures as images.
fn draw(
    arguments: &Arguments,
    grid: &Grid,
    plan: &[Cell],
    done: &Done,
    answer: &Answer,
    out: &Path,
) -> Result<Vec<(PathBuf, Vec<u8>)>, Problem> {
    let records = done.folders.iter().map(|folder| store::open(folder)).collect::<Result<Vec<_>, _>>()?;
    let curves =
        curves::of_grid(&grid.source.title, &plan.iter().map(|cell| &cell.labels).collect::<Vec<_>>(), &records);
    let title = records.first().and_then(|run| run.summary["scenario"].as_str()).unwrap_or(&grid.source.title);
    let title = estimate::titled(title, &records.iter().map(|run| &run.summary).collect::<Vec<_>>());
    let report = report::pages::comparison(&title, &curves, Some(answer), &grid.source.text, &command(arguments));
    report::folder::files(&report, out)
}

pub(crate) fn read_summary(folder: &Path) -> Result<Value, Problem> {
    let path = folder.join(files::SUMMARY);
    serde_json::from_str(&read_text(&path)?).map_err(|e| {
        Problem::new(path.display().to_string(), format!("is damaged: {e}")).help("run the same command again")
    })
}

/// `comparison.json`.
fn comparison(
    arguments: &Arguments,
    grid: &Grid,
    plan: &[Cell],
    done: &Done,
    summaries: &[Value],
    table: &Table,
    out: &Path,
) -> Map<String, Value> {
    let mut about = about_runs(plan, &done.folders, table, out);
    about.extend([
        ("scenario".into(), json!(summaries.first().map(|summary| summary["scenario"].clone()))),
        ("command".into(), command(arguments).into()),
        ("sets".into(), json!(grid.sets)),
        ("axes".into(), place::axes(grid)),
        ("file".into(), place::file(&arguments.scenario).into()),
    ]);
    about.extend(estimate::about(summaries).map(|said| ("estimate".into(), said.trim_end().into())));
    about
}

/// What `comparison.json` and `sweep.json` say alike: the program, every run, and the table.
pub(crate) fn about_runs(plan: &[Cell], folders: &[PathBuf], table: &Table, out: &Path) -> Map<String, Value> {
    let mut seeds: Vec<u64> = plan.iter().map(|cell| cell.seed).collect();
    seeds.sort_unstable();
    seeds.dedup();
    let cells = plan.iter().zip(folders).map(|(cell, folder)| {
        json!({
            "labels": labels(&cell.labels),
            "seed": cell.seed,
            "digest": cell.digest.to_string(),
            "folder": relative(folder, out),
        })
    });
    let rows = table.rows.iter().map(|row| {
        let measures = table.measures.iter().zip(&row.values).map(|(measure, value)| {
            (measure.key.clone(), json!({ "mean": value.mean, "ci95": value.half, "runs": value.count }))
        });
        json!({ "labels": labels(&row.labels), "measures": measures.collect::<Map<_, _>>(), "endings": row.endings })
    });
    let measures = table.measures.iter().map(|measure| {
        json!({
            "key": measure.key,
            "label": measure.label,
            "unit": measure.unit.name(),
            "better": measure.better.map(Better::name),
        })
    });
    Map::from_iter([
        ("tailwater".into(), env!("CARGO_PKG_VERSION").into()),
        ("code".into(), run::code().into()),
        ("seeds".into(), seeds.into()),
        ("cells".into(), cells.collect()),
        ("measures".into(), measures.collect()),
        ("rows".into(), rows.collect()),
    ])
}

pub(crate) fn labels(labels: &[(String, String)]) -> Map<String, Value> {
    labels.iter().map(|(axis, value)| (axis.clone(), json!(value))).collect()
}

/// The relative path from one folder to another, with slashes.
fn relative(to: &Path, from: &Path) -> String {
    let whole = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let (to, from) = (whole(to), whole(from));
    let common = to.components().zip(from.components()).take_while(|(a, b)| a == b).count();
    let up = from.components().skip(common).map(|_| "..".to_string());
    let down = to.components().skip(common).map(|part| part.as_os_str().to_string_lossy().into_owned());
    up.chain(down).collect::<Vec<_>>().join("/")
}

/// The command that gives the same comparison.
fn command(arguments: &Arguments) -> String {
    let mut words = vec!["tailwater".into(), "compare".into(), arguments.scenario.display().to_string()];
    let mut option = |name: &str, value: String| words.extend([format!("--{name}"), value]);
    if !arguments.schemes.is_empty() {
        let names: Vec<&str> = arguments.schemes.iter().map(|name| name.trim()).collect();
        option("schemes", names.join(","));
    }
    arguments.seeds.iter().for_each(|seeds| option("seeds", seeds.clone()));
    arguments.vary.iter().for_each(|axis| option("vary", axis.clone()));
    arguments.sets.iter().for_each(|set| option("set", set.clone()));
    arguments.asked.options().into_iter().for_each(|(name, value)| option(name, value));
    arguments.instead.options().into_iter().for_each(|(name, value)| option(name, value));
    if arguments.record {
        words.push("--record".into());
    }
    let plain = |c: char| c.is_alphanumeric() || "-_./=,+:%@".contains(c);
    let word = |word: &String| match !word.is_empty() && word.chars().all(plain) {
        true => word.clone(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    };
    words.iter().map(word).collect::<Vec<_>>().join(" ")
}
