//! A sweep that was read and planned.

use crate::program::answer::Asked;
use crate::program::compare::mixed;
use crate::program::estimate::{Instead, Method};
use crate::program::forward;
use crate::program::place::{Kind, Place, sweep_identity};
use crate::program::slurm;
use clap::Args;
use files::Claim;
pub use files::SWEEP;
use files::problem::Problem;
use results::answer::Question;
use std::path::{Path, PathBuf};
use store::Store;
use store::grid::Cell;
use store::sweep::{self, Status, Sweep};

/// Its table.
pub const TABLE: &str = "table.csv";
/// Its runs.
pub const RUNS: &str = "runs.parquet";
/// Its file.
pub const SPEC: &str = "sweep.toml";

/// Which sweep, and where it is.
#[derive(Args)]
pub struct Named {
    /// The sweep's file.
    #[arg(required = true)]
    spec: PathBuf,
    /// Where the sweep goes [default: results/sweep-NAME-OF-THE-FILE].
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,
    /// Where the runs are kept. What is there is not run again.
    #[arg(long, value_name = "FOLDER", default_value = crate::program::commands::STORE)]
    store: PathBuf,
    /// Keep a recording.bin of each run; one that was not recorded is run again.
    #[arg(long)]
    record: bool,
    /// Estimate every run instead of simulating it: in seconds, with an error that is measured and stated.
    #[arg(long, value_enum, value_name = "METHOD")]
    estimate: Option<Method>,
    /// With --estimate, the share of each run's traffic that is simulated [default: the scenario's, or 0.1].
    #[arg(long, value_name = "SHARE", requires = "estimate", allow_hyphen_values = true)]
    calibrate: Option<String>,
    /// Skip what is steady, as long as the error that is measured stays within this share, such as `1%`. Every result says so.
    #[arg(long, value_name = "SHARE", allow_hyphen_values = true, value_parser = forward::share, conflicts_with = "estimate")]
    within: Option<forward::Share>,
}

/// A sweep that was read and planned.
pub struct Planned {
    /// Its file.
    pub spec: PathBuf,
    /// What it says.
    pub sweep: Sweep,
    /// The runs.
    pub plan: Vec<Cell>,
    /// Where they are kept.
    pub store: Store,
    /// The sweep's own folder.
    pub out: PathBuf,
    /// The one that was asked for.
    asked_out: Option<PathBuf>,
    /// Whether the runs are estimated.
    pub instead: Instead,
    /// Which flows count.
    pub question: Question,
    /// The options that say so.
    pub asked: Vec<(&'static str, String)>,
    /// Whether completion times are printed.
    pub times: bool,
}

impl Planned {
    /// Reads and plans it.
    pub fn new(named: &Named, asked: &Asked) -> Result<Planned, Vec<Problem>> {
        let stop = |problem| vec![problem];
        let question = asked.question()?;
        let mut sweep = Sweep::load(&named.spec).map_err(stop)?;
        let instead =
            Instead { estimate: named.estimate, calibrate: named.calibrate.clone(), within: named.within.clone() };
        sweep.grid.sets.extend(instead.sets());
        let plan = sweep.plan()?;
        let store = Store::new(&named.store).recorded(named.record);
        let mut planned = Planned {
            spec: named.spec.clone(),
            sweep,
            plan,
            store,
            out: PathBuf::new(),
            asked_out: named.out.clone(),
            instead,
            question,
            asked: asked.options(),
            times: asked.times,
        };
        planned.out = planned.placed(true, |place| place.find()).map_err(stop)?;
        let out = &planned.out;
        // The store may be inside, and what a cluster was asked for is there before the sweep.
        if let Some(other) = files::foreign(out, SWEEP, &[&named.store, &out.join(slurm::FOLDER)]) {
            return Err(vec![mixed(out, &other, "a sweep")]);
        }
        Ok(planned)
    }

    /// Asks where the sweep goes.
    fn placed<T>(&self, quiet: bool, ask: impl FnOnce(&Place<'_>) -> T) -> T {
        let estimate = if self.instead.estimate.is_some() { "-estimate" } else { "" };
        let usual = Path::new("results").join(format!("sweep-{}{estimate}", self.sweep.title));
        let own = sweep_identity(&self.spec, &self.sweep.text);
        let asked = self.asked_out.as_deref();
        ask(&Place { kind: Kind::Sweep, asked, usual: &usual, own: &own, replace: false, quiet })
    }

    /// Makes the sweep's folder, which is another than before if a different sweep has come there meanwhile.
    pub fn claim(&mut self, quiet: bool) -> Result<Claim, Problem> {
        let (out, claim) = self.placed(quiet, |place| place.claim(&place.find()?))?;
        self.out = out;
        Ok(claim)
    }

    /// How far it is.
    pub fn status(&self) -> Result<Status, Problem> {
        sweep::status(&self.plan, &self.store)
    }
}

/// How far a sweep is.
pub fn in_a_line(status: &Status) -> String {
    let lost = if status.lost > 0 { format!(", of which {} were begun and lost", status.lost) } else { String::new() };
    let (running, missing) = (status.running.len(), status.missing.len());
    format!("{} of {} runs are there, {running} under way, {missing} missing{lost}", status.finished, status.runs)
}
