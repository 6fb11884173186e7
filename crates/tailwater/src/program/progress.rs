//! How far runs have come: on a terminal lines that move, elsewhere a line for each that is over. For programs, lines of JSON.

use crate::program::interrupt;
use clap::ValueEnum;
use engine::Time;
use files::problem::{Cause, Problem};
use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use results::comparison::SCHEME;
use run::outcome::Cost;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::{IsTerminal, Read, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::RecvTimeoutError;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use store::claims::Owner;
use store::grid::{Cell, HOPS, Observer, Step, Wait, Work};

/// How progress is reported.
#[derive(Clone, Copy, PartialEq, ValueEnum)]
pub enum Style {
    /// Bars on a terminal, lines elsewhere.
    Text,
    /// One JSON object in each line of standard error, for programs.
    Json,
}

/// How and for how long the program reports.
#[derive(clap::Args)]
pub struct Reporting {
    /// How progress, notes and problems are reported on standard error.
    #[arg(long, value_enum, default_value_t = Style::Text)]
    progress: Style,
    /// End when standard input ends, and so with the program that started this one.
    #[arg(long)]
    leash: bool,
}

/// Whether reports are JSON, for programs.
static JSON: AtomicBool = AtomicBool::new(false);

/// The shortest time between two reports of a run.
const EVERY: Duration = Duration::from_millis(200);

/// The exit status of a process whose standard input has ended, as after an interrupt.
const LET_GO: i32 = 130;

impl Reporting {
    /// Reports like this from now on.
    pub fn begin(&self) {
        JSON.store(self.progress == Style::Json, Ordering::Relaxed);
        if self.leash {
            std::thread::spawn(|| {
                let mut piece = [0; 64];
                while !matches!(std::io::stdin().read(&mut piece), Ok(0) | Err(_)) {}
                std::process::exit(LET_GO);
            });
        }
    }
}

fn for_programs() -> bool {
    JSON.load(Ordering::Relaxed)
}

/// A line for programs. A reader that has gone is no problem.
fn report(line: &Value) {
    _ = std::io::stderr().lock().write_all(format!("{line}\n").as_bytes());
}

/// A line for people on standard error. That may be a file on a disk that is full, or gone: the runs go on.
pub fn complain(line: std::fmt::Arguments<'_>) {
    _ = std::io::stderr().lock().write_all(format!("{line}\n").as_bytes());
}

/// Something worth knowing.
pub fn note(text: &str) {
    match for_programs() {
        true => report(&json!({ "step": "note", "text": text })),
        false => complain(format_args!("note: {text}")),
    }
}

/// What went wrong, with its place: all of it.
pub fn problem(problem: &Problem) {
    for problem in problem.clone().split() {
        if !for_programs() {
            complain(format_args!("error: {problem}"));
            continue;
        }
        let mut line = problem.json();
        line["step"] = json!("problem");
        report(&line);
    }
}

/// From when on something that is under way shows on a terminal.
const MOMENT: Duration = Duration::from_millis(700);

/// Does some work, and shows on a terminal that it goes on if that takes longer than a moment.
pub fn patiently<T>(what: &str, quiet: bool, work: impl FnOnce() -> T) -> T {
    if unseen(quiet) {
        return work();
    }
    let (done, over) = std::sync::mpsc::channel::<()>();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            let (line, begin) = (bar("{spinner} {wide_msg}"), Instant::now());
            while over.recv_timeout(EVERY) == Err(RecvTimeoutError::Timeout) {
                if begin.elapsed() >= MOMENT {
                    line.set_message(format!("{what}: reading, {:.0} s so far", begin.elapsed().as_secs_f64()));
                    line.tick();
                }
            }
            line.finish_and_clear();
        });
        let result = work();
        drop(done);
        result
    })
}

/// A promise that a run did not keep.
pub fn broken(violation: &str) {
    match for_programs() {
        true => {
            let broken = Problem::new("the run", format!("broken promise: {violation}"));
            problem(&broken.cause(Cause::BrokenPromise));
        }
        false => complain(format_args!("broken promise: {violation}")),
    }
}

/// A bar of that look.
fn bar(template: &str) -> ProgressBar {
    let style = ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_spinner());
    ProgressBar::new(1000).with_style(style)
}

/// Whether no bars are drawn: asked to be quiet, for programs, or without a terminal.
fn unseen(quiet: bool) -> bool {
    quiet || for_programs() || !std::io::stderr().is_terminal()
}

/// Simulated time and speed.
fn pace(now: Time, hops: u64, seconds: f64) -> String {
    let speed = hops as f64 / seconds.max(1e-9) / 1e6;
    format!("{:.1} us simulated, {speed:.1} M packet-hops/s", now.us_f64())
}

/// Seconds since 1970 as a date and time.
fn utc(seconds: u64) -> String {
    let (days, rest) = (seconds / 86_400, seconds % 86_400);
    // Counted from a first of March, so that the leap day is the last of a year.
    let days = days.saturating_add(719_468);
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let (day, month, year) = (day - (153 * month + 2) / 5 + 1, (month + 2) % 12 + 1, era * 400 + year + month / 10);
    format!("{year:04}-{month:02}-{day:02} {:02}:{:02}:{:02} UTC", rest / 3600, rest / 60 % 60, rest % 60)
}

/// Lines for programs about runs under way.
#[derive(Default)]
struct Pulse {
    reported: Mutex<BTreeMap<usize, Instant>>,
}

impl Pulse {
    fn running(&self, run: usize, label: &str, now: Time, share: f64) {
        if !for_programs() {
            return;
        }
        let mut reported = self.reported.lock().unwrap_or_else(PoisonError::into_inner);
        if reported.get(&run).is_none_or(|last| last.elapsed() >= EVERY) {
            reported.insert(run, Instant::now());
            report(&json!({ "step": "running", "run": run, "label": label, "simulated_ps": now.0, "share": share }));
        }
    }

    fn step(&self, step: &str, run: usize, label: &str) {
        if for_programs() {
            report(&json!({ "step": step, "run": run, "label": label }));
        }
    }

    /// The same of a run of a grid, with its name in the store.
    fn cell(&self, step: &str, run: usize, cell: &Cell) {
        if for_programs() {
            let scheme = cell.labels.iter().find(|(axis, _)| axis == SCHEME).map(|(_, value)| value);
            let (label, key) = (cell.label(), cell.digest.to_string());
            report(&json!({
                "step": step, "run": run, "label": label, "labels": cell.labels, "key": key, "scheme": scheme, "seed": cell.seed,
            }));
        }
    }

    fn planned(&self, runs: usize) {
        if for_programs() {
            report(&json!({ "step": "planned", "runs": runs }));
        }
    }
}

/// Progress of one run.
pub struct Progress {
    bar: ProgressBar,
    start: Instant,
    begin: Time,
    until: Time,
    /// Its name and its work, for programs.
    run: (String, Work),
    pulse: Pulse,
}

impl Progress {
    /// Of a run whose flows start between `begin` and `until`; silent if asked to be, or without a terminal.
    pub fn new(begin: Time, until: Time, quiet: bool) -> Progress {
        let bar = if unseen(quiet) { ProgressBar::hidden() } else { bar("{spinner} {wide_msg}") };
        Progress { bar, start: Instant::now(), begin, until, run: Default::default(), pulse: Pulse::default() }
    }

    /// Says to programs, too, which run it is.
    pub fn of(mut self, label: &str, work: Work) -> Progress {
        self.run = (label.into(), work);
        self.pulse.planned(1);
        self
    }

    /// The run has come to simulated time `now` after so many packet-hops.
    pub fn report(&self, now: Time, hops: u64) {
        let seconds = self.start.elapsed().as_secs_f64();
        let (done, all) = (now.saturating_sub(self.begin).0 as f64, self.until.saturating_sub(self.begin).0 as f64);
        let left = if done > 0.0 && done < all {
            format!(", about {:.0} s until the last flow starts", seconds * (all - done) / done)
        } else {
            String::new()
        };
        self.bar.set_message(format!("{}{left}", pace(now, hops, seconds)));
        self.bar.tick();
        let (label, work) = &self.run;
        self.pulse.running(0, label, now, work.share(now, hops, HOPS));
    }

    /// The run is over.
    pub fn finish(&self) {
        self.bar.finish_and_clear();
        self.pulse.step("done", 0, &self.run.0);
    }
}

/// Progress of a grid: a line for each run under way, and one for all.
pub struct GridProgress {
    quiet: bool,
    lines: MultiProgress,
    overall: ProgressBar,
    state: Mutex<State>,
    pulse: Pulse,
}

#[derive(Default)]
struct State {
    start: Option<Instant>,
    /// Runs that were there before.
    reused: usize,
    /// Runs to be done.
    works: BTreeMap<usize, Work>,
    /// Packets of all of them.
    packets: u64,
    /// Runs that are over, their packets and packet-hops.
    over: (usize, u64, u64),
    /// Those under way, and how much of each is done.
    running: BTreeMap<usize, (ProgressBar, f64)>,
}

/// `, about 5 s left` where a share of the work has taken so many seconds; nothing while that says little.
fn left(share: f64, seconds: f64) -> String {
    match seconds * (1.0 - share) / share {
        _ if !(0.02..1.0).contains(&share) => String::new(),
        left @ ..100.0 => format!(", about {left:.0} s left"),
        left @ ..6000.0 => format!(", about {:.0} min left", left / 60.0),
        left => format!(", about {:.1} h left", left / 3600.0),
    }
}

impl GridProgress {
    /// Says nothing if asked to be quiet.
    pub fn new(quiet: bool) -> GridProgress {
        let target = if unseen(quiet) { ProgressDrawTarget::hidden() } else { ProgressDrawTarget::stderr() };
        let lines = MultiProgress::with_draw_target(target);
        let overall = lines.add(bar("{bar:30} {wide_msg}"));
        GridProgress { quiet, lines, overall, state: Mutex::default(), pulse: Pulse::default() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A line that stays.
    fn say(&self, line: &str) {
        if !self.quiet {
            self.lines.suspend(|| complain(format_args!("{line}")));
        }
    }

    /// Everything is over.
    pub fn finish(&self) {
        self.overall.finish_and_clear();
    }

    fn show(&self, state: &State) {
        let packets = |place: &usize| state.works.get(place).map_or(0, |work| work.packets) as f64;
        let running: f64 = state.running.iter().map(|(place, (_, share))| share * packets(place)).sum();
        let share = (state.over.1 as f64 + running) / state.packets.max(1) as f64;
        let seconds = state.start.map_or(0.0, |start| start.elapsed().as_secs_f64());
        self.overall.set_position((share * 1000.0) as u64);
        let (over, all) = (state.over.0, state.works.len());
        self.overall.set_message(format!("{over} of {all} runs{}", left(share, seconds)));
    }

    /// A run needs no more attention.
    fn over(&self, place: usize, hops: u64) -> (usize, usize) {
        let mut state = self.state();
        if let Some((line, _)) = state.running.remove(&place) {
            line.finish_and_clear();
            self.lines.remove(&line);
        }
        let packets = state.works.get(&place).map_or(0, |work| work.packets);
        let (runs, all, sum) = state.over;
        state.over = (runs + 1, all + packets, sum + hops);
        self.show(&state);
        (state.over.0, state.works.len())
    }
}

impl Observer for GridProgress {
    fn note(&self, text: &str) {
        if !self.quiet {
            self.lines.suspend(|| note(text));
        }
    }

    fn checked(&self, runs: usize, of: usize) {
        self.overall.set_position((runs * 1000 / of.max(1)) as u64);
        self.overall.set_message(format!("{runs} of {of} runs checked"));
    }

    fn stop(&self) -> bool {
        interrupt::stopped()
    }

    fn planned(&self, runs: &[(usize, Work)]) {
        let mut state = self.state();
        state.start = Some(Instant::now());
        state.works = runs.iter().copied().collect();
        state.packets = runs.iter().map(|(_, work)| work.packets).sum();
        self.pulse.planned(state.reused + runs.len());
        self.show(&state);
    }

    fn reused(&self, place: usize, cell: &Cell) {
        self.state().reused += 1;
        self.pulse.cell("reused", place, cell);
        if self.state().works.contains_key(&place) {
            self.over(place, 0);
        }
    }

    fn elsewhere(&self, place: usize, cell: &Cell, _: &Owner) {
        self.pulse.cell("elsewhere", place, cell);
    }

    fn waiting(&self, runs: &[Wait<'_>]) {
        if for_programs() {
            return runs.iter().for_each(|Wait { place, cell, held, waited }| {
                let owner = &held.owner;
                report(&json!({
                    "step": "waiting", "run": place, "label": cell.label(), "key": cell.digest.to_string(),
                    "host": owner.host, "process": owner.process, "since": owner.since,
                    "waited_s": waited.as_secs(), "silent_s": held.silent.as_secs(), "lease_s": owner.lease().as_secs(),
                }));
            });
        }
        let Some(first) = runs.iter().max_by_key(|run| run.held.silent) else { return };
        let (owner, silent) = (&first.held.owner, first.held.silent.as_secs());
        let who = match owner.host.as_str() {
            "" => "a process that has not said its name".into(),
            host => format!("process {} of {host}, at it since {} by its clock", owner.process, utc(owner.since)),
        };
        let lease = owner.lease().as_secs();
        let others =
            if runs.len() > 1 { format!(" and {} more runs of others", runs.len() - 1) } else { String::new() };
        self.say(&format!(
            "waiting for {}: {who}; no sign of life for {silent} s, taken over after {lease} s{others}",
            first.cell.label()
        ));
    }

    fn started(&self, place: usize, cell: &Cell) {
        let line = self.lines.insert_before(&self.overall, bar("{wide_msg}"));
        line.set_message(format!("{}: reading", cell.label()));
        self.state().running.insert(place, (line, 0.0));
    }

    fn progress(&self, place: usize, cell: &Cell, step: &Step) {
        let mut state = self.state();
        let (_, packets, hops) = state.over;
        let each = if packets > 0 && hops > 0 { hops as f64 / packets as f64 } else { HOPS };
        let share = state.works.get(&place).map_or(0.0, |work| work.share(step.now, step.hops, each));
        self.pulse.running(place, &cell.label(), step.now, share);
        let seconds = step.elapsed.as_secs_f64();
        if let Some((line, done)) = state.running.get_mut(&place) {
            *done = share;
            line.set_message(format!(
                "{}: {}{}",
                cell.label(),
                pace(step.now, step.hops, seconds),
                left(share, seconds)
            ));
        }
        self.show(&state);
    }

    fn finished(&self, place: usize, cell: &Cell, cost: Option<&Cost>) {
        let hops = cost.map_or(0.0, |cost| cost.packet_hops_per_second * cost.wall_seconds);
        let (over, all) = self.over(place, hops as u64);
        self.pulse.cell(if cost.is_some() { "done" } else { "failed" }, place, cell);
        let without = if interrupt::stopped() { "stopped" } else { "failed" };
        let end = cost.map_or(without.into(), |cost| {
            format!("{:.2} s, {:.1} M packet-hops/s", cost.wall_seconds, cost.packet_hops_per_second / 1e6)
        });
        if self.lines.is_hidden() && !for_programs() {
            self.say(&format!("{over} of {all}: {}: {end}", cell.label()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::utc;

    #[test]
    fn seconds_are_dates() {
        assert_eq!(utc(0), "1970-01-01 00:00:00 UTC");
        assert_eq!(utc(951_782_399), "2000-02-28 23:59:59 UTC");
        assert_eq!(utc(951_868_800), "2000-03-01 00:00:00 UTC");
        assert_eq!(utc(4_102_444_799), "2099-12-31 23:59:59 UTC");
        utc(u64::MAX);
    }
}
