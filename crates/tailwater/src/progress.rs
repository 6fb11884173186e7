//! How far runs have come: on a terminal lines that move, elsewhere a line for each that is over.

use engine::Time;
use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use lab::grid::{Cell, Observer, Step, Work};
use lab::results::Cost;
use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// A bar of that look.
fn bar(template: &str) -> ProgressBar {
    let style = ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_spinner());
    ProgressBar::new(1000).with_style(style)
}

/// Whether nobody watches.
fn unseen(quiet: bool) -> bool {
    quiet || !std::io::stderr().is_terminal()
}

/// Simulated time and speed.
fn pace(now: Time, hops: u64, seconds: f64) -> String {
    let speed = hops as f64 / seconds.max(1e-9) / 1e6;
    format!("{:.1} us simulated, {speed:.1} M packet-hops/s", now.us_f64())
}

/// Progress of one run.
pub struct Progress {
    bar: ProgressBar,
    start: Instant,
    begin: Time,
    until: Time,
}

impl Progress {
    /// Of a run whose flows start between `begin` and `until`; silent if told so, or where nobody watches.
    pub fn new(begin: Time, until: Time, quiet: bool) -> Progress {
        let bar = if unseen(quiet) { ProgressBar::hidden() } else { bar("{spinner} {wide_msg}") };
        Progress { bar, start: Instant::now(), begin, until }
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
    }

    /// The run is over.
    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

/// Packet-hops for each data packet, ACKs included, until a finished run tells: three links there and back.
const HOPS: f64 = 6.0;

/// Progress of a grid: a line for each run under way, and one for all.
pub struct GridProgress {
    quiet: bool,
    lines: MultiProgress,
    overall: ProgressBar,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    start: Option<Instant>,
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
    /// Says nothing if told so.
    pub fn new(quiet: bool) -> GridProgress {
        let target = if unseen(quiet) { ProgressDrawTarget::hidden() } else { ProgressDrawTarget::stderr() };
        let lines = MultiProgress::with_draw_target(target);
        let overall = lines.add(bar("{bar:30} {wide_msg}"));
        GridProgress { quiet, lines, overall, state: Mutex::default() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A line that stays.
    fn say(&self, line: &str) {
        if !self.quiet {
            self.lines.suspend(|| eprintln!("{line}"));
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
    fn note(&self, note: &str) {
        self.say(&format!("note: {note}"));
    }

    fn planned(&self, runs: &[(usize, Work)]) {
        let mut state = self.state();
        state.start = Some(Instant::now());
        state.works = runs.iter().copied().collect();
        state.packets = runs.iter().map(|(_, work)| work.packets).sum();
        self.show(&state);
    }

    fn reused(&self, place: usize, _: &Cell) {
        if self.state().works.contains_key(&place) {
            self.over(place, 0);
        }
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
        let share = match state.works.get(&place) {
            Some(Work { stop: Some(stop), .. }) => step.now.0 as f64 / stop.0.max(1) as f64,
            Some(work) => step.hops as f64 / (work.packets as f64 * each).max(1.0),
            None => 0.0,
        };
        let share = share.min(0.99);
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
        let end = cost.map_or("failed".into(), |cost| {
            format!("{:.2} s, {:.1} M packet-hops/s", cost.wall_seconds, cost.packet_hops_per_second / 1e6)
        });
        if self.lines.is_hidden() {
            self.say(&format!("{over} of {all}: {}: {end}", cell.label()));
        }
    }
}
