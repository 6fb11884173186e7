//! Work in a thread of its own, while the thread that Python called from listens for Ctrl-C and reports progress.

use engine::Time;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use run::outcome::Cost;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use store::grid::{Cell, HOPS, Observer, Step, Work};

/// How often signals are looked for and progress is reported.
const EVERY: Duration = Duration::from_millis(50);
/// What a main thread has, mostly.
const STACK: usize = 8 << 20;

/// How far a thing is: [`of_run`] and [`of_grid`] say what the numbers are.
type Progress = (u64, f64, u64);

/// How far a thing is, and whether it is to stop.
#[derive(Default)]
pub struct Watch {
    stop: AtomicBool,
    /// The first and the last number reported: simulated picoseconds and packet-hops, or runs done and runs in all.
    first: AtomicU64,
    last: AtomicU64,
    /// A share, in its bits.
    share: AtomicU64,
}

impl Watch {
    /// Whether it is to stop.
    pub fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// It is to stop.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// It has come so far.
    pub fn report(&self, first: u64, share: f64, last: u64) {
        self.first.store(first, Ordering::Relaxed);
        self.share.store(share.to_bits(), Ordering::Relaxed);
        self.last.store(last, Ordering::Relaxed);
    }

    fn progress(&self) -> Progress {
        let share = f64::from_bits(self.share.load(Ordering::Relaxed));
        (self.first.load(Ordering::Relaxed), share, self.last.load(Ordering::Relaxed))
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Does the work, and calls `notify` with what [`Watch::report`] said now and then. An exception there, or of a signal, stops the work
/// and is raised when it has stopped. A panic of the work goes on in the caller's thread, where it becomes an exception.
pub fn watched<T: Send>(
    py: Python<'_>,
    watch: &Watch,
    notify: &dyn Fn(Progress) -> PyResult<()>,
    work: impl FnOnce() -> T + Send,
) -> PyResult<T> {
    let (over, bell) = (Mutex::new(false), Condvar::new());
    /// Says that it is over, however that came about.
    struct Ring<'a>(&'a Mutex<bool>, &'a Condvar);
    impl Drop for Ring<'_> {
        fn drop(&mut self) {
            *locked(self.0) = true;
            self.1.notify_all();
        }
    }
    let ring = Ring(&over, &bell);
    std::thread::scope(|scope| {
        let builder = std::thread::Builder::new().name("tailwater".into()).stack_size(STACK);
        let thread = builder.spawn_scoped(scope, move || {
            let _ring = ring;
            work()
        });
        let thread = thread.map_err(|error| PyRuntimeError::new_err(format!("no thread could be started: {error}")))?;
        let mut result = Ok(());
        loop {
            let done = py.detach(|| {
                let waited = bell.wait_timeout_while(locked(&over), EVERY, |over| !*over);
                *waited.unwrap_or_else(PoisonError::into_inner).0
            });
            if done {
                break;
            }
            if result.is_ok() {
                result = py.check_signals().and_then(|()| notify(watch.progress()));
                if result.is_err() {
                    watch.stop();
                }
            }
        }
        let value = py.detach(|| thread.join()).unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        result?;
        notify(watch.progress())?;
        Ok(value)
    })
}

/// Watches a grid.
pub struct GridWatch<'a> {
    watch: &'a Watch,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    works: BTreeMap<usize, Work>,
    packets: f64,
    /// Of those that are over: how many, and their packets.
    over: (u64, f64),
    /// By run under way, how much of it is done.
    running: BTreeMap<usize, f64>,
    notes: Vec<String>,
}

impl<'a> GridWatch<'a> {
    /// Reports to `watch` how it goes on.
    pub fn new(watch: &'a Watch) -> GridWatch<'a> {
        GridWatch { watch, state: Mutex::default() }
    }

    /// What was worth knowing.
    pub fn notes(self) -> Vec<String> {
        self.state.into_inner().unwrap_or_else(PoisonError::into_inner).notes
    }

    fn show(&self, state: &State) {
        let packets = |place: &usize| state.works.get(place).map_or(0, |work| work.packets) as f64;
        let running: f64 = state.running.iter().map(|(place, share)| share * packets(place)).sum();
        let share = ((state.over.1 + running) / state.packets.max(1.0)).min(1.0);
        self.watch.report(state.over.0, share, state.works.len() as u64);
    }

    fn over(&self, place: usize) {
        let mut state = locked(&self.state);
        let Some(packets) = state.works.get(&place).map(|work| work.packets as f64) else { return };
        state.running.remove(&place);
        state.over = (state.over.0 + 1, state.over.1 + packets);
        self.show(&state);
    }
}

impl Observer for GridWatch<'_> {
    fn note(&self, note: &str) {
        locked(&self.state).notes.push(note.into());
    }
    fn planned(&self, runs: &[(usize, Work)]) {
        let mut state = locked(&self.state);
        state.works = runs.iter().copied().collect();
        state.packets = runs.iter().map(|(_, work)| work.packets as f64).sum();
        self.show(&state);
    }
    fn reused(&self, place: usize, _: &Cell) {
        self.over(place);
    }
    fn progress(&self, place: usize, _: &Cell, step: &Step) {
        let mut state = locked(&self.state);
        let share = state.works.get(&place).map_or(0.0, |work| work.share(step.now, step.hops, HOPS));
        state.running.insert(place, share);
        self.show(&state);
    }
    fn finished(&self, place: usize, _: &Cell, _: Option<&Cost>) {
        self.over(place);
    }
    fn stop(&self) -> bool {
        self.watch.stopped()
    }
}

/// Reports a run to a callable, if there is one: simulated seconds, share, packet-hops.
pub fn of_run(progress: Option<&Bound<'_, PyAny>>, (now, share, hops): Progress) -> PyResult<()> {
    progress.map_or(Ok(()), |progress| progress.call1((Time(now).us_f64() / 1e6, share, hops)).map(drop))
}

/// Reports a grid to a callable, if there is one: runs done, share, runs in all.
pub fn of_grid(progress: Option<&Bound<'_, PyAny>>, (done, share, runs): Progress) -> PyResult<()> {
    progress.map_or(Ok(()), |progress| progress.call1((done, share, runs)).map(drop))
}
