//! Reports in files: a page, and its figures as images beside it.

use crate::pages::{self, Report};
use files::problem::{Problem, read_text};
use results::records::{self, OVERRIDE, Records};
use std::path::{Path, PathBuf};

/// The page.
pub const PAGE: &str = "report.html";
/// The folder of the images.
const FIGURES: &str = "figures";

/// Writes a report into a folder: `report.html`, and every figure in `figures` as SVG and PNG.
pub fn write(report: &Report, out: &Path) -> Result<(), Problem> {
    let folder = out.join(FIGURES);
    files::make_folder(&folder)?;
    let mut written: Vec<(PathBuf, Vec<u8>)> = vec![(out.join(PAGE), report.page.html().into_bytes())];
    for (id, svg) in report.drawings() {
        let name = |ending: &str| folder.join(format!("{id}.{ending}"));
        let image = crate::png(&svg)
            .map_err(|error| Problem::new(name("png").display().to_string(), format!("cannot be drawn: {error}")))?;
        written.push((name("svg"), svg.into_bytes()));
        written.push((name("png"), image));
    }
    let all: Vec<(&Path, &[u8])> = written.iter().map(|(path, bytes)| (path.as_path(), bytes.as_slice())).collect();
    files::write_all(&all)
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
