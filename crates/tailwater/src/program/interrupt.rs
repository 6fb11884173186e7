//! Ctrl-C, and SIGTERM from `kill` or a batch system: the first ends a command in order, so that it says what is kept and how to go on; the
//! second, or a while without an end, at once.

use crate::program::progress;
use files::problem::Problem;
use std::process::ExitCode;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

/// The exit status of a command that was interrupted.
const INTERRUPTED: u8 = 130;

/// The exit status of a command that was told to end.
#[cfg(unix)]
const TERMINATED: u8 = 143;

/// For how long a command may go on after an interrupt.
const PATIENCE: Duration = Duration::from_secs(10);

/// The exit status that it is to end with; 0 as long as it need not.
static STOP: AtomicU8 = AtomicU8::new(0);

/// Whether the command was interrupted.
pub fn stopped() -> bool {
    STOP.load(Ordering::Relaxed) != 0
}

/// The status of a command that was interrupted, or else `code`.
pub fn status(code: ExitCode) -> ExitCode {
    match STOP.load(Ordering::Relaxed) {
        0 => code,
        stop => ExitCode::from(stop),
    }
}

/// From now on an interrupt is heeded by whoever asks whether the command was [`stopped`]. A command that does not end for all that is
/// ended, with `last` as its last word.
pub fn heed(last: Problem) {
    std::thread::spawn(move || {
        let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_all().build() else { return };
        runtime.block_on(async {
            let Some(status) = told().await else { return };
            STOP.store(status, Ordering::Relaxed);
            tokio::select! {
                _ = told() => {}
                () = tokio::time::sleep(PATIENCE) => {}
            }
            progress::problem(&last);
            std::process::exit(status.into());
        });
    });
}

/// Waits until somebody wants the command to end; gives the exit status for that.
#[cfg(unix)]
async fn told() -> Option<u8> {
    let mut terminate = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate()).ok()?;
    tokio::select! {
        heard = tokio::signal::ctrl_c() => heard.ok().map(|()| INTERRUPTED),
        heard = terminate.recv() => heard.map(|()| TERMINATED),
    }
}

/// Waits until somebody wants the command to end; gives the exit status for that.
#[cfg(not(unix))]
async fn told() -> Option<u8> {
    tokio::signal::ctrl_c().await.ok().map(|()| INTERRUPTED)
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
