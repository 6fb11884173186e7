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
    folders.iter().try_for_each(|folder| check_folder(folder))?;
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

/// Refuses a folder that no run has written, and says which would do.
fn check_folder(folder: &Path) -> Result<(), Problem> {
    let summary = folder.join(files::SUMMARY);
    if summary.is_file() {
        return Ok(());
    }
    let inside = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut runs: Vec<PathBuf> = inside.filter(|path| path.join(files::SUMMARY).is_file()).collect();
    runs.sort();
    let remedy = match (folder.join(PAGE).is_file(), runs.first()) {
        (true, _) => {
            format!("{} is drawn already; what can be drawn is the folder of a run", folder.join(PAGE).display())
        }
        (_, Some(run)) => format!("name the folder of a run, such as {}", run.display()),
        _ => "name the folder of a run: `tailwater run` says at its end where it is".into(),
    };
    Err(Problem::new(summary.display().to_string(), "is not there, so that this is no folder of a run").help(remedy))
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
        let scenario = run.summary["scenario"].as_str().unwrap_or_default();
        format!("{scenario}: {}", pages::scheme_name(&run.summary))
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
