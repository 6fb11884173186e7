//! Reports in files: a page, and its figures as images beside it.

use crate::pages::{self, Report};
use files::Folder;
use files::problem::{Problem, read_text};
use results::records::{self, OVERRIDE, Records};
use std::path::{Path, PathBuf};

/// The page.
pub const PAGE: &str = "report.html";
/// The folder of the images.
const FIGURES: &str = "figures";

/// The files of a report in a folder: `report.html`, and every figure in `figures` as SVG and PNG.
pub fn files(report: &Report, out: &Path) -> Result<Vec<(PathBuf, Vec<u8>)>, Problem> {
    let folder = out.join(FIGURES);
    let mut written: Vec<(PathBuf, Vec<u8>)> = vec![(out.join(PAGE), report.page.html().into_bytes())];
    for (id, drawing) in report.drawings() {
        let name = |ending: &str| folder.join(format!("{id}.{ending}"));
        let image = (drawing.png())
            .map_err(|error| Problem::new(name("png").display().to_string(), format!("cannot be drawn: {error}")))?;
        written.push((name("svg"), drawing.svg().into_bytes()));
        written.push((name("png"), image));
    }
    Ok(written)
}

/// Writes a report into a folder, all of it or nothing.
pub fn write(report: &Report, out: &Path) -> Result<(), Problem> {
    files::write_deep(&files(report, out)?)
}

/// Writes a folder of results, with its report or without, that appears whole or not at all: `results` writes the results into the folder
/// that it is given. A report that cannot be had is left out, and the problem with it is told.
pub fn write_whole(
    out: &Path,
    report: bool,
    results: impl FnOnce(&Path) -> Result<PathBuf, Problem>,
) -> Result<(PathBuf, Option<Problem>), Problem> {
    let folder = Folder::prepare(out)?;
    // What cannot be written is named as it would have been called.
    let named = |problem: Problem, remedy: &str| {
        let path = Path::new(&problem.file);
        let name = path.strip_prefix(folder.place()).ok().or(path.file_name().map(Path::new));
        let place = out.join(name.unwrap_or(Path::new(""))).display().to_string();
        Problem::new(place, problem.message.as_str()).help(remedy).cause(problem.cause)
    };
    let remedy = "choose a folder with --out on a disk with room; nothing was written";
    let path = results(folder.place()).map_err(|problem| named(problem, remedy))?;
    let drawn = if report { write_run(&path) } else { Ok(()) };
    let remedy =
        format!("the results are there; `tailwater report {}` draws the page once that is mended", out.display());
    let undrawn = drawn.err().map(|problem| named(problem, &remedy));
    Ok((folder.publish()?, undrawn))
}

/// The scenario that gave a folder of results.
pub fn scenario(folder: &Path) -> Result<String, Problem> {
    read_text(&folder.join("scenario.toml"))
}

/// The report of one folder of results.
pub fn of_run(folder: &Path, records: &Records) -> Result<Report, Problem> {
    let scenario = scenario(folder)?;
    // What the command line changed stands in comments below the scenario.
    let sets = scenario.lines().filter_map(|line| line.strip_prefix(OVERRIDE));
    let sets: String = sets.map(|set| format!(" --set '{}'", set.replace('\'', "'\\''"))).collect();
    Ok(pages::run(records, &scenario, &format!("tailwater run scenario.toml{sets}")))
}

/// Draws a folder of results into itself.
pub fn write_run(folder: &Path) -> Result<(), Problem> {
    write(&of_run(folder, &records::open(folder)?)?, folder)
}
