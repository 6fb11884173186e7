//! `tailwater compare`: a grid of runs, a table, and a folder that says how it came about.

use crate::commands::{BROKEN, printed, say};
use crate::drawing;
use crate::progress::{self, GridProgress};
use clap::Args;
use lab::files;
use lab::grid::{self, Axis, Cell, Done, Failed, Grid, Source, Variant};
use lab::measure::Estimate;
use lab::problem::{Problem, read_text};
use lab::records;
use lab::store::{RESULTS_VERSION, Store};
use report::curves::Curve;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// The files of a comparison's folder.
const COMPARISON: &str = "comparison.json";
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
    #[arg(long, value_name = "N")]
    seeds: Option<String>,
    /// Give a key several values, such as `switch.buffer=4MB,8MB`; with several keys, every combination.
    #[arg(long, value_name = "KEY=VALUE,VALUE")]
    vary: Vec<String>,
    /// Override a key in all runs, as with `run`.
    #[arg(long = "set", value_name = "KEY=VALUE")]
    sets: Vec<String>,
    /// Where the comparison goes [default: results/compare-NAME-OF-THE-FILE].
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,
    /// Where the runs are kept. What is there is not run again.
    #[arg(long, value_name = "FOLDER", default_value = "results/runs")]
    store: PathBuf,
    /// Keep a recording.bin of each run; one that was not recorded is run again.
    #[arg(long)]
    record: bool,
    /// Runs at a time [default: one for each core].
    #[arg(long, value_name = "N")]
    threads: Option<NonZeroUsize>,
    /// Show no progress and print nothing but problems.
    #[arg(long, short)]
    quiet: bool,
    #[command(flatten)]
    telling: progress::Telling,
}

/// `tailwater compare`.
pub fn compare(arguments: &Arguments) -> Result<ExitCode, Problem> {
    arguments.telling.begin();
    let source = Source::load(&arguments.scenario)?;
    let seeds = read_seeds(arguments)?;
    let axes = arguments.vary.iter().map(|text| Axis::parse(text)).collect::<Result<Vec<_>, _>>()?;
    let variants = Variant::schemes(&source, &arguments.sets, &arguments.schemes)?;
    let out = arguments.out.clone().unwrap_or_else(|| Path::new("results").join(format!("compare-{}", source.title)));
    check_out(&out)?;
    let grid = Grid { source, sets: arguments.sets.clone(), variants, axes, seeds };
    let plan = match grid.plan() {
        Ok(plan) => plan,
        Err(problems) => return Ok(tell(&problems)),
    };
    let store = Store::new(&arguments.store).recorded(arguments.record);
    let threads = crate::commands::threads_or_all(arguments.threads);
    let progress = GridProgress::new(arguments.quiet);
    let result = grid::ready(&plan, &store, threads, &progress).and_then(|ready| {
        let failed = |problem| Failed { problems: vec![problem], broken: false, finished: 0, runs: 0 };
        files::make_folder(&out).map_err(failed)?;
        files::sweep(&out);
        ready.run(threads, &progress)
    });
    progress.finish();
    match result {
        Ok(done) => write(arguments, &grid, &plan, &done, &out),
        Err(failed) => {
            let code = tell(&failed.problems);
            if failed.finished > 0 {
                let (finished, runs) = (failed.finished, failed.runs);
                progress::note(&format!("{finished} of {runs} runs are in {}", store.folder().display()));
            }
            Ok(if failed.broken { ExitCode::from(BROKEN) } else { code })
        }
    }
}

fn tell(problems: &[Problem]) -> ExitCode {
    problems.iter().for_each(progress::problem);
    ExitCode::FAILURE
}

/// What `--seeds` says; none for the scenario's own.
fn read_seeds(arguments: &Arguments) -> Result<Vec<u64>, Problem> {
    let Some(text) = &arguments.seeds else { return Ok(Vec::new()) };
    let problem = |message: String| {
        Problem::new("--seeds", message)
            .help("write how many, such as 3, or which, such as 5,9; a single one with --set seed=5")
    };
    if arguments.sets.iter().any(|set| set.split('=').next().is_some_and(|key| key.trim() == "seed")) {
        return Err(problem("the seed is given with --set, too".into()));
    }
    let numbers: Result<Vec<u64>, _> = text.split(',').map(|seed| seed.trim().parse::<u64>()).collect();
    match numbers.as_deref() {
        Err(_) => Err(problem(format!("\"{}\" is not a number, or numbers with commas", text.escape_debug()))),
        Ok([count @ 1..=10_000]) => Ok((1..=*count).collect()),
        Ok([count]) => Err(problem(format!("{count} is not a number of seeds from 1 to 10000"))),
        Ok(seeds) => match seeds.iter().enumerate().find(|(place, seed)| seeds[..*place].contains(seed)) {
            Some((_, seed)) => Err(problem(format!("{seed} is there twice"))),
            None => Ok(seeds.to_vec()),
        },
    }
}

/// Refuses to write over what is not a comparison.
fn check_out(out: &Path) -> Result<(), Problem> {
    let taken = [TABLE, SCENARIO].iter().find(|name| out.join(name).exists() && !out.join(COMPARISON).exists());
    match taken {
        Some(name) => Err(Problem::new(out.display().to_string(), format!("has a {name} that is not of a comparison"))
            .help("choose another folder with --out, or move that one away")),
        None => Ok(()),
    }
}

/// Writes everything that a comparison's folder has, and prints the table.
fn write(arguments: &Arguments, grid: &Grid, plan: &[Cell], done: &Done, out: &Path) -> Result<ExitCode, Problem> {
    let summaries = done.folders.iter().map(|folder| read_summary(folder)).collect::<Result<Vec<_>, _>>()?;
    let table = Table::new(grid, plan, &summaries);
    let comparison = comparison(arguments, grid, plan, done, &summaries, &table, out);
    let comparison = format!("{comparison:#}\n");
    // The one that tells a comparison's folder comes first: an interruption leaves nothing that is refused later.
    let paths = [COMPARISON, TABLE, SCENARIO].map(|name| out.join(name));
    let texts = [&comparison, &table.csv(), &grid.source.text];
    let all: Vec<(&Path, &str)> = paths.iter().zip(texts).map(|(path, text)| (path.as_path(), text.as_str())).collect();
    files::write_all(&all)?;
    if plan.len() <= MOST_DRAWN {
        draw(arguments, grid, plan, done, out)?;
    } else {
        let remedy = "compare fewer, or draw some of them with `tailwater report`";
        progress::note(&format!("{} runs are too many for one page of figures; {remedy}", plan.len()));
    }
    if arguments.quiet {
        return Ok(ExitCode::SUCCESS);
    }
    let runs = done.ran + done.reused;
    let runs = if runs == 1 { "1 run".into() } else { format!("{runs} runs") };
    printed(say(format!("{}\n{runs}, {} new; comparison in {}\n", table.text(), done.ran, out.display())))
}

/// Draws the comparison: a page, and its figures as images.
fn draw(arguments: &Arguments, grid: &Grid, plan: &[Cell], done: &Done, out: &Path) -> Result<(), Problem> {
    let records = done.folders.iter().map(|folder| records::open(folder)).collect::<Result<Vec<_>, _>>()?;
    let mut curves: Vec<Curve<'_>> = Vec::new();
    for (cell, run) in plan.iter().zip(&records) {
        match curves.iter_mut().find(|curve| curve.labels == cell.labels) {
            Some(curve) => curve.runs.push(run),
            None => {
                let values: Vec<&str> = cell.labels.iter().map(|(_, value)| value.as_str()).collect();
                let name = if values.is_empty() { grid.source.title.clone() } else { values.join(", ") };
                curves.push(Curve { name, labels: cell.labels.clone(), runs: vec![run] });
            }
        }
    }
    let title = records.first().and_then(|run| run.summary["scenario"].as_str()).unwrap_or(&grid.source.title);
    let report = report::pages::comparison(title, &curves, &grid.source.text, &command(arguments));
    drawing::write(&report, out)
}

fn read_summary(folder: &Path) -> Result<Value, Problem> {
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
) -> Value {
    let mut axes: Vec<Value> =
        grid.axes.iter().map(|axis| json!({ "name": axis.key, "values": axis.values })).collect();
    if !grid.variants.is_empty() {
        let names: Vec<&String> = grid.variants.iter().map(|variant| &variant.name).collect();
        axes.insert(0, json!({ "name": grid::SCHEME, "values": names }));
    }
    let mut seeds: Vec<u64> = plan.iter().map(|cell| cell.seed).collect();
    seeds.sort_unstable();
    seeds.dedup();
    let cells = plan.iter().zip(&done.folders).map(|(cell, folder)| {
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
    json!({
        "tailwater": env!("CARGO_PKG_VERSION"),
        "results_version": RESULTS_VERSION,
        "scenario": summaries.first().map(|summary| summary["scenario"].clone()),
        "command": command(arguments),
        "sets": grid.sets,
        "axes": axes,
        "seeds": seeds,
        "cells": cells.collect::<Vec<_>>(),
        "rows": rows.collect::<Vec<_>>(),
    })
}

fn labels(labels: &[(String, String)]) -> Map<String, Value> {
    labels.iter().map(|(axis, value)| (axis.clone(), json!(value))).collect()
}

/// The way from one folder to another, with slashes.
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
        option("schemes", arguments.schemes.join(","));
    }
    arguments.seeds.iter().for_each(|seeds| option("seeds", seeds.clone()));
    arguments.vary.iter().for_each(|axis| option("vary", axis.clone()));
    arguments.sets.iter().for_each(|set| option("set", set.clone()));
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

/// A number that each run has.
struct Measure {
    /// In files.
    key: String,
    /// For people.
    head: String,
    /// What people read it in.
    unit: Unit,
    /// Where it is in a summary.
    at: String,
}

#[derive(Clone, Copy, PartialEq)]
enum Unit {
    Count,
    Ratio,
    /// From bytes.
    Kilobytes,
    /// From picoseconds.
    Microseconds,
}

/// Runs that differ only in their seed.
struct Row {
    labels: Vec<(String, String)>,
    values: Vec<Estimate>,
    endings: BTreeMap<String, usize>,
}

struct Table {
    title: String,
    axes: Vec<String>,
    measures: Vec<Measure>,
    rows: Vec<Row>,
}

/// A mean for people, in that unit.
fn in_words(estimate: &Estimate, unit: Unit) -> String {
    let scale = match unit {
        Unit::Count | Unit::Ratio => 1.0,
        Unit::Kilobytes => 1e3,
        Unit::Microseconds => 1e6,
    };
    let Some(mean) = estimate.mean.map(|mean| mean / scale) else { return "-".into() };
    let half = estimate.half.map(|half| half / scale).filter(|half| *half > 0.0);
    let digits = match mean.abs() {
        _ if unit == Unit::Count && half.is_none() => 0,
        0.0 => 0,
        ..10.0 => 2,
        ..100.0 => 1,
        _ => 0,
    };
    format!("{mean:.digits$}{}", half.map_or(String::new(), |half| format!(" ±{half:.digits$}")))
}

/// An end of a bin of sizes.
fn size(bytes: u64) -> String {
    match bytes {
        0..1_000 => format!("{bytes}B"),
        1_000..1_000_000 => format!("{}KB", bytes as f64 / 1e3),
        _ => format!("{}MB", bytes as f64 / 1e6),
    }
}

/// The numbers that are compared. Of the bins of sizes, the smallest and the largest with flows in any run.
fn measures(summaries: &[Value]) -> Vec<Measure> {
    let measure = |key: &str, head: &str, unit: Unit, at: &str| Measure {
        key: key.into(),
        head: head.into(),
        unit,
        at: at.into(),
    };
    let mut all = vec![
        measure("flows", "flows", Unit::Count, "/flows"),
        measure("finished", "finished", Unit::Count, "/finished"),
    ];
    // All runs are of one scenario and have the same groups. Several are not pooled: an incast would drown the rest.
    let groups = summaries.first().and_then(|summary| summary["groups"].as_array()).cloned().unwrap_or_default();
    let with_flows: Vec<(usize, &str)> = groups
        .iter()
        .enumerate()
        .filter(|(_, group)| group["slowdown"]["count"].as_u64().is_some_and(|count| count > 0))
        .map(|(place, group)| (place, group["name"].as_str().unwrap_or_default()))
        .collect();
    match with_flows.as_slice() {
        [] | [_] => all.extend([
            measure("slowdown_p50", "slowdown p50", Unit::Ratio, "/slowdown/p50"),
            measure("slowdown_p95", "p95", Unit::Ratio, "/slowdown/p95"),
            measure("slowdown_p99", "p99", Unit::Ratio, "/slowdown/p99"),
        ]),
        several => {
            for (place, name) in several {
                for q in ["p50", "p99"] {
                    let (key, at) = (format!("slowdown_{q}_{name}"), format!("/groups/{place}/slowdown/{q}"));
                    all.push(measure(&key, &format!("{name} {q}"), Unit::Ratio, &at));
                }
            }
        }
    }
    let bins = |summary: &Value| summary["slowdown_by_size"].as_array().cloned().unwrap_or_default();
    let filled = |bin: &Value| bin["slowdown"]["count"].as_u64().is_some_and(|count| count > 0);
    let places = |summary| bins(summary).iter().enumerate().filter(|(_, bin)| filled(bin)).map(|(i, _)| i).collect();
    let places: Vec<usize> = summaries.iter().flat_map(|summary| -> Vec<usize> { places(summary) }).collect();
    let ends = (places.iter().min(), places.iter().max());
    let one_group = with_flows.len() < 2;
    if let ((Some(&low), Some(&high)), Some(summary)) = (ends, summaries.first())
        && low != high
        && one_group
    {
        let bins = bins(summary);
        let end = |place: usize, end: &str| bins.get(place).and_then(|bin| bin[end].as_u64());
        if let Some(top) = end(low, "up_to") {
            let at = format!("/slowdown_by_size/{low}/slowdown/p99");
            all.push(measure("slowdown_p99_small", &format!("p99 ≤{}", size(top)), Unit::Ratio, &at));
        }
        if let Some(bottom) = end(high, "above") {
            let at = format!("/slowdown_by_size/{high}/slowdown/p99");
            all.push(measure("slowdown_p99_large", &format!("p99 >{}", size(bottom)), Unit::Ratio, &at));
        }
    }
    all.extend([
        measure("peak_buffer_bytes", "peak buffer KB", Unit::Kilobytes, "/buffer/peak"),
        measure("paused_ps", "paused us", Unit::Microseconds, "/pause/paused_ps"),
        measure("dropped_packets", "drops", Unit::Count, "/dropped/packets"),
    ]);
    all
}

impl Table {
    fn new(grid: &Grid, plan: &[Cell], summaries: &[Value]) -> Table {
        let measures = measures(summaries);
        let mut rows: Vec<Row> = Vec::new();
        let cells: Vec<(&Cell, &Value)> = plan.iter().zip(summaries).collect();
        for runs in cells.chunk_by(|a, b| a.0.labels == b.0.labels) {
            let values = |measure: &Measure| {
                let values = runs.iter().filter_map(|(_, summary)| summary.pointer(&measure.at)?.as_f64());
                Estimate::of(&values.collect::<Vec<_>>())
            };
            let mut endings = BTreeMap::new();
            for (_, summary) in runs {
                *endings.entry(summary["ending"].as_str().unwrap_or("unknown").to_string()).or_default() += 1;
            }
            let labels = runs.first().map(|(cell, _)| cell.labels.clone()).unwrap_or_default();
            rows.push(Row { labels, values: measures.iter().map(values).collect(), endings });
        }
        let scheme = (!grid.variants.is_empty()).then(|| grid::SCHEME.to_string());
        Table {
            title: summaries.first().and_then(|s| s["scenario"].as_str()).unwrap_or_default().to_string(),
            axes: scheme.into_iter().chain(grid.axes.iter().map(|axis| axis.key.clone())).collect(),
            measures,
            rows,
        }
    }

    /// For people: a column for each axis and measure, as wide as it must be.
    fn text(&self) -> String {
        let ending = |row: &Row| match row.endings.iter().collect::<Vec<_>>().as_slice() {
            [(ending, _)] => ending.to_string(),
            several => several.iter().map(|(ending, n)| format!("{n} {ending}")).collect::<Vec<_>>().join(", "),
        };
        let heads =
            self.axes.iter().cloned().chain(self.measures.iter().map(|m| m.head.clone())).chain(["ending".into()]);
        let mut lines: Vec<Vec<String>> = vec![heads.collect()];
        for row in &self.rows {
            let values = self.measures.iter().zip(&row.values).map(|(measure, value)| in_words(value, measure.unit));
            lines.push(row.labels.iter().map(|(_, value)| value.clone()).chain(values).chain([ending(row)]).collect());
        }
        let width = |column: usize| lines.iter().filter_map(|l| l.get(column)).map(|c| c.chars().count()).max();
        let widths: Vec<usize> = (0..).map_while(width).collect();
        let mut text = format!("{}\n\n", self.title);
        for line in &lines {
            let cells = line.iter().zip(&widths).enumerate().map(|(column, (cell, &width))| {
                let left = column < self.axes.len() || column + 1 == widths.len();
                if left { format!("{cell:<width$}") } else { format!("{cell:>width$}") }
            });
            text += &format!("{}\n", cells.collect::<Vec<_>>().join("  ").trim_end());
        }
        text
    }

    /// For programs: every number in full.
    fn csv(&self) -> String {
        let field = |text: &str| match text.contains([',', '"', '\n', '\r']) {
            true => format!("\"{}\"", text.replace('"', "\"\"")),
            false => text.into(),
        };
        let number = |value: Option<f64>| value.map_or(String::new(), |value| value.to_string());
        let heads = self.measures.iter().flat_map(|m| [m.key.clone(), format!("{}_ci95", m.key)]);
        let heads =
            self.axes.iter().map(|axis| field(axis)).chain(["runs".into()]).chain(heads).chain(["endings".into()]);
        let mut text = heads.collect::<Vec<String>>().join(",") + "\n";
        for row in &self.rows {
            let runs: usize = row.endings.values().sum();
            let values = row.values.iter().flat_map(|value| [number(value.mean), number(value.half)]);
            let endings: Vec<String> = row.endings.iter().map(|(ending, count)| format!("{ending}:{count}")).collect();
            let labels = row.labels.iter().map(|(_, value)| field(value));
            let fields = labels.chain([runs.to_string()]).chain(values).chain([endings.join(" ")]);
            text += &(fields.collect::<Vec<String>>().join(",") + "\n");
        }
        text
    }
}
