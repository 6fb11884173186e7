//! Reports in files: a page, and its figures as images beside it.

use crate::commands::{printed, say};
use lab::files;
use lab::problem::{Problem, read_text};
use lab::records::{self, Records};
use report::curves::Curve;
use report::pages::{self, Report};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// The page.
pub const PAGE: &str = "report.html";
/// The folder of the images.
const FIGURES: &str = "figures";

/// Writes a report into a folder: `report.html`, and every figure in `figures` as SVG and PNG.
pub fn write(report: &Report, out: &Path) -> Result<(), Problem> {
    let folder = out.join(FIGURES);
    files::make_folder(&folder)?;
    let mut written: Vec<(PathBuf, Vec<u8>)> = vec![(out.join(PAGE), report.page.html().into_bytes())];
    let figures = report.figures.iter().map(|figure| (&figure.id, figure.svg()));
    let heats = report.heats.iter().map(|heat| (&heat.id, heat.svg()));
    for (id, svg) in figures.chain(report.pictures.iter().map(|picture| (&picture.id, picture.svg()))).chain(heats) {
        let name = |ending: &str| folder.join(format!("{id}.{ending}"));
        let image = report::png(&svg)
            .map_err(|error| Problem::new(name("png").display().to_string(), format!("cannot be drawn: {error}")))?;
        written.push((name("svg"), svg.into_bytes()));
        written.push((name("png"), image));
    }
    let all: Vec<(&Path, &[u8])> = written.iter().map(|(path, bytes)| (path.as_path(), bytes.as_slice())).collect();
    files::write_all(&all)
}

/// The scenario that gave a folder of results.
fn scenario(folder: &Path) -> Result<String, Problem> {
    read_text(&folder.join("scenario.toml"))
}

/// The report of one folder of results.
fn of_run(folder: &Path, records: &Records) -> Result<Report, Problem> {
    let scenario = scenario(folder)?;
    // What the command line changed stands in comments below the scenario.
    let sets = scenario.lines().filter_map(|line| line.strip_prefix(OVERRIDE));
    let sets: String = sets.map(|set| format!(" --set '{}'", set.replace('\'', "'\\''"))).collect();
    Ok(pages::run(records, &scenario, &format!("tailwater run scenario.toml{sets}")))
}

/// How a folder of results tells of a change by `--set`.
pub const OVERRIDE: &str = "#   --set ";

/// Draws a folder of results into itself.
pub fn write_run(folder: &Path) -> Result<(), Problem> {
    write(&of_run(folder, &records::open(folder)?)?, folder)
}

/// `tailwater report`.
pub fn report(folders: &[PathBuf], out: Option<PathBuf>) -> Result<ExitCode, Problem> {
    let records = folders.iter().map(|folder| records::open(folder)).collect::<Result<Vec<_>, _>>()?;
    let (report, default) = match (folders, records.as_slice()) {
        ([folder], [run]) => (of_run(folder, run)?, folder.clone()),
        _ => (side_by_side(folders, &records)?, PathBuf::from("results/report")),
    };
    let out = out.unwrap_or(default);
    files::make_folder(&out)?;
    write(&report, &out)?;
    printed(say(format!("{}\n", out.join(PAGE).display())))
}

/// Several runs, each a curve of its own unless they differ in their seed only.
fn side_by_side(folders: &[PathBuf], records: &[Records]) -> Result<Report, Problem> {
    let name = |run: &Records| {
        let text = |key: &str| run.summary[key].as_str().unwrap_or_default();
        format!("{}: {} with {}", text("scenario"), text("flow_control"), text("congestion_control"))
    };
    let mut curves: Vec<Curve<'_>> = Vec::new();
    for run in records {
        let name = name(run);
        let seed = |run: &Records| run.summary["seed"].as_u64();
        let known = |curve: &&mut Curve<'_>| curve.name == name && curve.runs.iter().all(|one| seed(one) != seed(run));
        match curves.iter_mut().find(known) {
            Some(curve) => curve.runs.push(run),
            None => curves.push(Curve { name, labels: Vec::new(), runs: vec![run] }),
        }
    }
    let list: Vec<String> = folders.iter().map(|folder| folder.display().to_string()).collect();
    let texts = folders.iter().map(|folder| scenario(folder)).collect::<Result<Vec<_>, _>>()?;
    let command = format!("tailwater report {}", list.join(" "));
    Ok(pages::comparison("Runs side by side", &curves, &texts.join("\n"), &command))
}
