//! Reports in files: a page, and its figures as images beside it.

use crate::pages::{self, Report};
use crate::{Drawing, collectives};
use files::Folder;
use files::problem::{Problem, read_text};
use results::causes::Causes;
use results::explain::{self, Share};
use results::parts;
use results::records::{self, COMMANDS, Records};
use std::path::{Path, PathBuf};

/// The page.
pub const PAGE: &str = "report.html";
/// The folder of the images.
const FIGURES: &str = "figures";
/// How the page names the files of a figure.
pub(crate) const NAMED: &str = "data-figure=\"";

/// The files of a report in a folder: `report.html`, and every figure in `figures` as SVG and PNG.
pub fn files(report: &Report, out: &Path) -> Result<Vec<(PathBuf, Vec<u8>)>, Problem> {
    let mut written = drawn(report, out);
    for (id, drawing) in report.drawings() {
        let path = out.join(FIGURES).join(format!("{id}.png"));
        let image = (drawing.png())
            .map_err(|error| Problem::new(path.display().to_string(), format!("cannot be drawn: {error}")))?;
        written.push((path, image));
    }
    Ok(written)
}

/// The same without the images that are made of pixels, which cost fifty times as much as all the rest.
fn drawn(report: &Report, out: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let page = (out.join(PAGE), report.page.html().into_bytes());
    let figure =
        |(id, drawing): (&str, Drawing)| (out.join(FIGURES).join(format!("{id}.svg")), drawing.svg().into_bytes());
    std::iter::once(page).chain(report.drawings().map(figure)).collect()
}

/// Writes a report into a folder, all of it or nothing. Figures of an earlier one are gone then.
pub fn write(report: &Report, out: &Path) -> Result<(), Problem> {
    replace(out, &files(report, out)?)
}

/// Writes files, a report's among them, all or none. Figures that the page of an earlier report in the folder names, and no longer
/// are, go; nothing else does, as the folder may be somebody's own.
pub fn replace(out: &Path, files: &[(PathBuf, Vec<u8>)]) -> Result<(), Problem> {
    let page = out.join(PAGE);
    let drawn = files.iter().any(|(path, _)| *path == page);
    let earlier = if drawn { std::fs::read_to_string(&page).unwrap_or_default() } else { String::new() };
    files::write_deep(files)?;
    let names = earlier.split(NAMED).skip(1).filter_map(|rest| rest.split('"').next());
    let plain = |name: &&str| name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '.' || c == '_');
    for path in names.filter(plain).flat_map(|name| ["svg", "png"].map(|ending| format!("{name}.{ending}"))) {
        let path = out.join(FIGURES).join(path);
        if files.iter().all(|(kept, _)| *kept != path) {
            let _ = std::fs::remove_file(path);
        }
    }
    Ok(())
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
    // The first line is the command, if it was run by one.
    let command = scenario.lines().next().filter(|line| COMMANDS.iter().any(|command| line.starts_with(command)));
    let command = command.map_or("tailwater run scenario.toml", |line| &line[2..]);
    let table = parts::open(folder)?;
    let parts = table.as_ref().map_or(Ok(Vec::new()), parts::rows)?;
    let said = match Causes::open(records)? {
        None => Vec::new(),
        Some(causes) => {
            let shares = explain::shares(records, &causes, &parts);
            explain::deeds(&records.summary).into_iter().chain(shares.iter().map(Share::sentence)).collect()
        }
    };
    let steps = collectives::open(folder)?;
    Ok(pages::run(records, &parts, &said, &steps, &scenario, command))
}

/// Draws a folder of results into itself: the page, and its figures as SVG. `tailwater report` adds them as PNG.
fn write_run(folder: &Path) -> Result<(), Problem> {
    replace(folder, &drawn(&of_run(folder, &records::open(folder)?)?, folder))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Axis, Figure, Page, Palette, Section, Style};

    fn report(id: &str) -> Report {
        let mut figure = Figure::new(id, id, Axis::linear("x"), Axis::linear("y"));
        figure.series.push(Palette::default().series("one", Style::Line, [(0.0, 0.0), (1.0, 1.0)]));
        let mut section = Section::new("Figures");
        section.push(figure.clone());
        let page = Page { sections: vec![section], ..Page::new("A page", "") };
        Report { page, figures: vec![figure], pictures: Vec::new(), heats: Vec::new(), spans: Vec::new() }
    }

    #[test]
    fn figures_of_an_earlier_report_go_and_those_of_others_stay() {
        let folder = tempfile::tempdir().unwrap();
        let figures = folder.path().join(FIGURES);
        let names = || {
            let entries = std::fs::read_dir(&figures).unwrap();
            let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
            names.sort();
            names
        };
        write(&report("first"), folder.path()).unwrap();
        std::fs::write(figures.join("mine.svg"), "<svg/>").unwrap();
        assert_eq!(names(), ["first.png", "first.svg", "mine.svg"]);
        write(&report("second"), folder.path()).unwrap();
        assert_eq!(names(), ["mine.svg", "second.png", "second.svg"]);
        write(&report("second"), folder.path()).unwrap();
        assert_eq!(names(), ["mine.svg", "second.png", "second.svg"]);
    }
}
