//! `tailwater report`: folders of results drawn, alone or side by side.

use crate::program::commands::{printed, say};
use files::problem::Problem;
use report::curves::Curve;
use report::folder::{PAGE, of_run, scenario, write};
use report::pages::{self, Report};
use results::records::Records;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// `tailwater report`.
pub fn report(folders: &[PathBuf], out: Option<PathBuf>) -> Result<ExitCode, Problem> {
    let records = folders.iter().map(|folder| store::open(folder)).collect::<Result<Vec<_>, _>>()?;
    let (report, default) = match (folders, records.as_slice()) {
        ([folder], [run]) => (of_run(folder, run)?, folder.clone()),
        _ => (side_by_side(folders, &records)?, PathBuf::from("results/report")),
    };
    let out = out.unwrap_or(default);
    check_page(&out)?;
    write(&report, &out)?;
    printed(say(format!("{}\n", out.join(PAGE).display())))
}

/// What every page has near its beginning.
const OURS: &str =
    "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; script-src 'unsafe-inline'";

/// Refuses to write over a page that is not one of ours.
fn check_page(out: &Path) -> Result<(), Problem> {
    let page = out.join(PAGE);
    let foreign = page.exists() && !std::fs::read_to_string(&page).is_ok_and(|text| text.contains(OURS));
    match foreign {
        true => Err(Problem::new(page.display().to_string(), "is there already, and was not drawn by tailwater")
            .help("choose another folder with --out, or move the file away")),
        false => Ok(()),
    }
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
    Ok(pages::comparison("Runs side by side", &curves, None, &texts.join("\n"), &command))
}
