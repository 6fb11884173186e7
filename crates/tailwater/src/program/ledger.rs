//! The ledger's commands: what is claimed, and whether it holds.

use crate::program::commands::{Output, printed, say};
use crate::program::interrupt;
use crate::program::progress::{self, GridProgress};
use crate::program::reference;
use files::problem::Problem;
use ledger::evidence::Evidence;
use ledger::experiment::{Column, Experiment, Scale};
use ledger::numbers;
use ledger::published::{self, Published, Row};
use report::Page;
use report::pages::Report;
use results::exhibit::{Better, Exhibit};
use results::verdict::{self, Holds, Judged, Verdict, show};
use serde_json::{Value, json};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use store::Store;

/// Where verdicts go by default.
pub const OUT: &str = "results/claims";

/// What `tailwater claims` takes.
#[derive(clap::Args)]
pub struct Claims {
    /// Only those with this in their id or title.
    filter: Option<String>,
    /// Where verdicts of this machine are looked for.
    #[arg(long, value_name = "FOLDER", default_value = OUT)]
    out: PathBuf,
    /// Print JSON: every row with what is published of it and what was run here.
    #[arg(long, group = "output")]
    json: bool,
    /// Print a table in Markdown of what is published: of all rows, or those of a paper, such as bfc.
    #[arg(long, value_name = "PAPER", num_args = 0..=1, group = "output", conflicts_with = "filter")]
    markdown: Option<Option<String>>,
    /// Fail if a published result is of another version of its row, or of none.
    #[arg(long, group = "output", conflicts_with = "filter")]
    check: bool,
    /// Judge what is published in this folder's published/ by the rows as they are now, from the values that were measured. What has other
    /// runs now, or asks for what was not measured, is named and stays as it is.
    #[arg(long, group = "output", conflicts_with = "filter")]
    rejudge: bool,
    /// Bring what is made in README.md and docs/ of this folder up to date: tables of the ledger, and the reference.
    #[arg(long, group = "output", conflicts_with = "filter")]
    write_docs: bool,
}

/// `tailwater claims`: every experiment whose id or title has the filter in it, with what is published of it and its state here.
pub fn claims(arguments: &Claims) -> Result<ExitCode, Problem> {
    let mut rows = published::rows()?;
    if arguments.check {
        let stale = published::stale()?;
        stale.iter().for_each(progress::problem);
        return Ok(if stale.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE });
    }
    if arguments.rejudge {
        return rejudge();
    }
    if let Some(paper) = &arguments.markdown {
        let known: Vec<&str> = rows.iter().filter_map(|row| row.experiment.id.split('/').next()).collect();
        if let Some(paper) = paper.as_deref().filter(|paper| !known.contains(paper)) {
            return Err(Problem::new(paper, "has no rows").help("write the first word of an id, such as bfc"));
        }
        return printed(say(published::markdown(&rows, paper.as_deref(), "")));
    }
    if arguments.write_docs {
        return write_docs(&rows);
    }
    let filter = arguments.filter.as_deref().unwrap_or_default().to_lowercase();
    rows.retain(|row| format!("{} {}", row.experiment.id, row.experiment.title).to_lowercase().contains(&filter));
    if rows.is_empty() {
        return Err(Problem::new(filter, "is in no experiment's id or title").help("`tailwater claims` lists them all"));
    }
    if arguments.json {
        let all: Value = rows.iter().map(|row| row.json(here(&row.experiment, &arguments.out))).collect();
        return printed(say(format!("{all:#}\n")));
    }
    let cells = |row: &Row| {
        let known = match (&row.published, &row.experiment.cost) {
            (Some(published), _) => published.line(),
            (None, Some(cost)) => format!("not published: {cost}"),
            (None, None) => "not published".into(),
        };
        [row.experiment.id.clone(), row.experiment.title.clone(), known, state(&row.experiment, &arguments.out)]
    };
    let cells: Vec<[String; 4]> = rows.iter().map(cells).collect();
    let width = |place: usize| cells.iter().map(|cells| cells[place].chars().count()).max().unwrap_or(0);
    let (ids, titles, known) = (width(0), width(1), width(2));
    let line = |[id, title, published, here]: &[String; 4]| {
        format!("{id:ids$}  {title:titles$}  {published:known$}  here: {here}\n")
    };
    printed(say(cells.iter().map(line).collect()))
}

/// Judges what is published again, without running anything.
fn rejudge() -> Result<ExitCode, Problem> {
    let rows = ledger::all()?;
    let found = published::below(Path::new(published::FOLDER))?;
    if found.is_empty() {
        let problem = Problem::new(published::FOLDER, "has no published result");
        return Err(problem.help("run it in the folder of the repository"));
    }
    let (mut result, mut whole): (Output, bool) = (Ok(()), true);
    for (path, text, old) in found {
        match old.rejudged(&rows) {
            Ok(None) => {}
            Ok(Some(new)) => {
                files::write_all(&[(&path, new.text_over(&text)?)])?;
                let (id, before, now) = (&new.id, old.line(), new.line());
                let line = if before == now { format!("{id}  {now}\n") } else { format!("{id}  {before} → {now}\n") };
                result = result.and_then(|()| say(line));
            }
            Err(problem) => {
                progress::problem(&problem);
                whole = false;
            }
        }
    }
    printed(result).map(|code| if whole { code } else { ExitCode::FAILURE })
}

/// What was run on this machine, as what is published is told; null without anything.
fn here(experiment: &Experiment, out: &Path) -> Value {
    let text = std::fs::read_to_string(out.join(&experiment.id).join(verdict::VERDICT)).ok();
    let Some(found) = text.and_then(|text| serde_json::from_str::<Value>(&text).ok()) else { return Value::Null };
    let expectations = found["expectations"].as_array().cloned().unwrap_or_default();
    let count = |fits: &dyn Fn(&str) -> bool| {
        expectations.iter().filter(|judged| judged["holds"].as_str().is_some_and(fits)).count()
    };
    json!({
        "verdict": found["verdict"],
        "hold": count(&|holds| holds == Holds::Yes.name()),
        "claims": count(&|holds| holds != Holds::Asked.name()),
        "scale": found["scale"],
        "seeds": (1..=found["seeds"].as_u64().unwrap_or(0)).collect::<Vec<u64>>(),
        "runs": found["runs"],
        "version": found["tailwater"],
        "needs": found["needs"],
        "expectations": expectations,
    })
}

/// Brings the tables between markers up to date, and the reference where there is a folder for it.
fn write_docs(rows: &[Row]) -> Result<ExitCode, Problem> {
    let mut pages = vec![(PathBuf::from("README.md"), "")];
    let docs = std::fs::read_dir("docs").map_err(|error| {
        Problem::new("docs", format!("cannot be read: {error}")).help("run it in the folder of the repository")
    })?;
    let mut found: Vec<PathBuf> = docs.filter_map(|entry| Some(entry.ok()?.path())).collect();
    found.retain(|path| path.extension().is_some_and(|ending| ending == "md"));
    found.sort();
    pages.extend(found.into_iter().map(|path| (path, "../")));
    let mut result: Output = Ok(());
    for (path, root) in pages {
        let text = files::problem::read_text(&path)?;
        let fresh = published::refreshed(&text, rows, root)?;
        if fresh != text {
            files::write_all(&[(&path, fresh)])?;
            result = result.and_then(|()| say(format!("{}\n", path.display())));
        }
    }
    let whole: [(&str, Vec<(String, String)>); 2] = [
        (reference::FOLDER, reference::pages().into_iter().map(|(name, text)| (name.into(), text)).collect()),
        (numbers::FOLDER, numbers::pages(rows)),
    ];
    for (folder, pages) in whole.into_iter().filter(|(folder, _)| Path::new(folder).is_dir()) {
        for (name, text) in pages {
            let path = Path::new(folder).join(name);
            if std::fs::read_to_string(&path).unwrap_or_default() != text {
                files::write_all(&[(&path, text)])?;
                result = result.and_then(|()| say(format!("{}\n", path.display())));
            }
        }
    }
    printed(result)
}

fn state(experiment: &Experiment, out: &Path) -> String {
    if let Some(state) = verdict::state(&out.join(&experiment.id)) {
        return state;
    }
    let (needs, variants) = (experiment.needs(), &experiment.variants);
    let runnable = variants.iter().filter(|variant| experiment.missing(&variant.name).is_empty()).count();
    match needs.as_slice() {
        [] => "not run".into(),
        needs if runnable > 0 => {
            format!("not run; {runnable} of {} curves, needs {}", variants.len(), needs.join(", "))
        }
        needs => format!("needs {} (not there yet)", needs.join(", ")),
    }
}

/// Reads `--scale`.
pub fn scale(text: &str) -> Result<Scale, String> {
    [Scale::Quick, Scale::Paper]
        .into_iter()
        .find(|scale| scale.name() == text)
        .ok_or_else(|| "write quick or paper".into())
}

/// How experiments are run, and where what comes out goes.
#[derive(clap::Args)]
pub struct How {
    /// How large: `quick` takes under a minute for each experiment on two cores, `paper` is as published.
    #[arg(long, default_value = "quick", value_parser = scale)]
    scale: Scale,
    /// How many seeds, instead of the experiments' own number.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1000))]
    seeds: Option<u64>,
    /// Where verdicts and pages go.
    #[arg(long, value_name = "FOLDER", default_value = OUT)]
    out: PathBuf,
    /// Where runs are kept.
    #[arg(long, value_name = "FOLDER", default_value = "results/runs")]
    store: PathBuf,
    /// How many threads: runs at a time, or threads of a run where there are fewer [default: as many as there are cores].
    #[arg(long, value_name = "N", value_parser = crate::program::commands::from_one)]
    threads: Option<NonZeroUsize>,
    /// Show no progress and print nothing but problems.
    #[arg(long, short)]
    quiet: bool,
    #[command(flatten)]
    reporting: progress::Reporting,
}

/// The experiments that rank schemes.
const LEAGUE: &str = "league";

/// `tailwater league`: runs the experiments that rank schemes, and puts them on one page.
pub fn league(how: &How) -> Result<ExitCode, Problem> {
    how.reporting.begin();
    interrupt::heed(interrupt::of_runs(&how.store));
    let experiments = ledger::named(LEAGUE)?;
    let (mut result, mut pages): (Output, Vec<(Exhibit, &str, Page)>) = (Ok(()), Vec::new());
    let mut whole = true;
    for experiment in experiments.iter().take_while(|_| !interrupt::stopped()) {
        match one(experiment, None, how) {
            Ok(Reproduced { exhibit, winners, report, problems, .. }) => {
                problems.iter().for_each(progress::problem);
                whole &= problems.is_empty();
                if !how.quiet {
                    result = result.and_then(|()| say(format!("{}  {}\n{winners}\n", experiment.id, experiment.title)));
                }
                let folder = experiment.id.rsplit('/').next().unwrap_or_default();
                pages.push((exhibit, folder, report.page));
            }
            Err(problems) => problems.iter().for_each(progress::problem),
        }
    }
    let done = pages.len() == experiments.len();
    if done {
        let path = how.out.join(LEAGUE).join(report::folder::PAGE);
        let pages: Vec<(&Exhibit, &str, &Page)> =
            pages.iter().map(|(exhibit, folder, page)| (exhibit, *folder, page)).collect();
        files::write_all(&[(&path, &report::claims::league(&pages).html())])?;
        if !how.quiet {
            result = result.and_then(|()| say(format!("{}\n", path.display())));
        }
    }
    printed(result).map(|code| interrupt::status(if done && whole { code } else { ExitCode::FAILURE }))
}

/// `tailwater reproduce`: runs experiments, draws their figures and says whether they hold.
pub fn reproduce(names: &[String], all: bool, publish: Option<&Path>, how: &How) -> Result<ExitCode, Problem> {
    how.reporting.begin();
    let mut experiments: Vec<Experiment> = Vec::new();
    for name in names {
        for experiment in ledger::named(name)? {
            if !experiments.iter().any(|known| known.id == experiment.id) {
                experiments.push(experiment);
            }
        }
    }
    if all {
        experiments = ledger::all()?;
    }
    if experiments.is_empty() {
        let problem = Problem::new("reproduce", "names no experiment");
        return Err(problem.help("write an id, such as bfc/fig4, or --all; `tailwater claims` lists them"));
    }
    interrupt::heed(interrupt::of_runs(&how.store));
    let (mut result, mut verdicts, mut whole): (Output, Vec<Verdict>, bool) = (Ok(()), Vec::new(), true);
    for experiment in experiments.iter().take_while(|_| !interrupt::stopped()) {
        // One that fails does not keep the others from being judged.
        match one(experiment, publish, how) {
            Ok(Reproduced { verdict, winners, path, published, problems, .. }) => {
                if !how.quiet {
                    let published = published.map_or(String::new(), |file| format!("  {}\n", file.display()));
                    let text = format!("{}{winners}  {}\n{published}\n", table(&verdict), path.display());
                    result = result.and_then(|()| say(text));
                }
                problems.iter().for_each(progress::problem);
                whole &= problems.is_empty();
                verdicts.push(verdict);
            }
            Err(problems) => problems.iter().for_each(progress::problem),
        }
    }
    if experiments.len() > 1 {
        let index = how.out.join("index.html");
        files::write_all(&[(&index, report::claims::ledger(&verdicts).html())])?;
        if !how.quiet {
            let width = verdicts.iter().map(|verdict| verdict.id.len()).max().unwrap_or(0);
            let lines: String = verdicts.iter().map(|v| format!("{:width$}  {}\n", v.id, v.line())).collect();
            result = result.and_then(|()| say(format!("{lines}\n{}\n", index.display())));
        }
    }
    let done = verdicts.len() == experiments.len();
    printed(result).map(|code| interrupt::status(if done && whole { code } else { ExitCode::FAILURE }))
}

/// What came out of an experiment.
struct Reproduced {
    verdict: Verdict,
    exhibit: Exhibit,
    /// What is won by whom.
    winners: String,
    report: Report,
    /// Its page.
    path: PathBuf,
    /// What is to be published of it.
    published: Option<PathBuf>,
    /// What could not be written of all that.
    problems: Vec<Problem>,
}

/// Runs one experiment, judges it and writes its folder, and what is published of it.
fn one(experiment: &Experiment, publish: Option<&Path>, how: &How) -> Result<Reproduced, Vec<Problem>> {
    let seeds = how.seeds.unwrap_or(experiment.seeds(how.scale));
    let threads = crate::program::commands::threads_or_all(how.threads);
    let progress = GridProgress::new(how.quiet);
    let gathered =
        Evidence::gather(experiment, how.scale, seeds, &Store::new(&how.store).thorough(true), threads, &progress);
    progress.finish();
    let evidence = gathered.map_err(|failed| failed.problems)?;
    let verdict = ledger::judge(experiment, how.scale, &evidence);
    let exhibit = ledger::exhibit(experiment, &evidence);
    let folder = how.out.join(&experiment.id);
    let stop = |problem| vec![problem];
    let seeds = how.seeds.map_or(String::new(), |seeds| format!(" --seeds {seeds}"));
    // A row's own file gives the row: whoever reads what is published has another folder.
    let row =
        |row: &Experiment| row.id == experiment.id && row.digest(how.scale).ok() == experiment.digest(how.scale).ok();
    let own = experiment.file.as_ref().filter(|_| !ledger::all().is_ok_and(|rows| rows.iter().any(row)));
    let name = own.map_or(experiment.id.clone(), |file| file.display().to_string());
    let command = format!("tailwater reproduce {name} --scale {}{seeds}", how.scale.name());
    let report = report::claims::experiment(&exhibit, &verdict, &command);
    let written = [
        files::make_folder(&folder).map(drop).and_then(|()| verdict.write(&folder).map(drop)),
        report::folder::write(&report, &folder).map(drop),
    ];
    let problems = written.into_iter().filter_map(Result::err).collect();
    let published = match publish {
        Some(folder) => {
            let mut published =
                Published::new(experiment, how.scale, &evidence, &verdict, &command, run::code()).map_err(stop)?;
            let drawings: Vec<String> = report.drawings().map(|(_, drawing)| drawing.svg()).collect();
            Some(published.write(folder, &drawings).map_err(stop)?)
        }
        None => None,
    };
    let winners = winners(experiment, &evidence);
    Ok(Reproduced { verdict, exhibit, winners, report, path: folder.join(report::folder::PAGE), published, problems })
}

/// Who is best by each column of an experiment, and who is worst.
fn winners(experiment: &Experiment, evidence: &Evidence<'_>) -> String {
    let width = experiment.columns.iter().map(|column| column.title.len()).max().unwrap_or(0);
    let line = |column: &Column| {
        let mut known: Vec<(&str, f64)> =
            evidence.column(column).into_iter().filter_map(|(name, value)| Some((name, value.ok()?.value))).collect();
        known.sort_by(|a, b| a.1.total_cmp(&b.1));
        if column.better == Some(Better::High) {
            known.reverse();
        }
        let shown = |(name, value): &(&str, f64)| format!("{name} {}", show(*value, &column.unit));
        let first = known.iter().take_while(|(_, value)| known.first().is_some_and(|best| best.1 == *value)).count();
        match known.as_slice() {
            [best, .., worst] if first > 1 && best.1 != worst.1 => {
                let (value, worst) = (show(best.1, &column.unit), shown(worst));
                format!("  {:width$}  {first} share the first rank with {value}, last {worst}\n", column.title)
            }
            [best, ..] if first > 1 => format!("  {:width$}  all {}\n", column.title, show(best.1, &column.unit)),
            [] => format!("  {:width$}  nothing\n", column.title),
            [best, .., worst] => format!("  {:width$}  {}, last {}\n", column.title, shown(best), shown(worst)),
            [only] => format!("  {:width$}  {}\n", column.title, shown(only)),
        }
    };
    experiment.columns.iter().map(line).collect()
}

/// A verdict for people.
fn table(verdict: &Verdict) -> String {
    let cells = |judged: &Judged| [judged.holds.name().to_string(), judged.measured(), judged.expected()];
    let rows: Vec<[String; 3]> = verdict.expectations.iter().map(cells).collect();
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let (holds, measured, expected) = (width(0), width(1), width(2));
    let mut out = format!("{}  {} ({})\n  {}\n", verdict.id, verdict.title, verdict.source(), verdict.size());
    for (judged, row) in verdict.expectations.iter().zip(&rows) {
        let remarks: String =
            judged.why.clone().into_iter().chain(judged.few()).map(|remark| format!(" [{remark}]")).collect();
        out +=
            &format!("  {:holds$}  {:>measured$}  {:expected$}  {}{remarks}\n", row[0], row[1], row[2], judged.paper);
    }
    out + &format!("  {}\n", verdict.line())
}
