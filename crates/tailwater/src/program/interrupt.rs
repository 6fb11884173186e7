//! Ctrl-C: the first ends a command in order, so that it says what is kept and how to go on; the second, or a while without an end, at
//! once.

use crate::program::progress;
use files::problem::Problem;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// The exit status of a command that was interrupted.
const INTERRUPTED: u8 = 130;

/// For how long a command may go on after an interrupt.
const PATIENCE: Duration = Duration::from_secs(10);

static STOP: AtomicBool = AtomicBool::new(false);

/// Whether the command was interrupted.
pub fn stopped() -> bool {
    STOP.load(Ordering::Relaxed)
}

/// The status of a command that was interrupted, or else `code`.
pub fn status(code: ExitCode) -> ExitCode {
    if stopped() { ExitCode::from(INTERRUPTED) } else { code }
}

/// From now on an interrupt is heeded by whoever asks whether the command was [`stopped`]. A command that does not end for all that is
/// ended, with `last` as its last word.
pub fn heed(last: Problem) {
    std::thread::spawn(move || {
        let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_all().build() else { return };
        runtime.block_on(async {
            if tokio::signal::ctrl_c().await.is_err() {
                return;
            }
            STOP.store(true, Ordering::Relaxed);
            tokio::select! {
                _ = tokio::signal::ctrl_c() => {}
                () = tokio::time::sleep(PATIENCE) => {}
            }
            progress::problem(&last);
            std::process::exit(INTERRUPTED.into());
        });
    });
}

/// What there is to say of a run that was interrupted.
pub fn of_run() -> Problem {
    Problem::new("the run", "was interrupted; nothing of it is kept")
        .help("the same command begins it again; --set stop=1ms gives the results of its first millisecond")
}

/// What there is to say of runs of a store that were interrupted.
pub fn of_runs(store: &std::path::Path) -> Problem {
    Problem::new("the runs", format!("were interrupted; those that are finished are in {}", store.display()))
        .help("the same command goes on from there")
}
