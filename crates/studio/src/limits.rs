//! How much of everything there may be. docs/studio.md lists them.

use serde_json::{Value, json};
use std::time::Duration;

/// Bytes of a request's body.
pub const BODY: usize = 1 << 20;
/// Bytes of a scenario.
pub const SCENARIO: usize = 256 << 10;
/// Bytes of a file that a scenario names.
pub const INPUT: u64 = 64 << 20;
/// Jobs that wait.
pub const QUEUED: usize = 200;
/// Jobs that are kept.
pub const KEPT: usize = 1000;
/// Runs of a job.
pub const RUNS: usize = 100;
/// Changes to a scenario, and varied keys, of a job.
pub const SETS: usize = 100;
/// Characters of a job's name.
pub const NAME: usize = 200;
/// Time of a job on the clock.
pub const WALL: Duration = Duration::from_secs(3600);
/// Bytes of address space of a job's process.
pub const MEMORY: u64 = 16 << 30;
/// Bytes of address space of a process that answers a question.
pub const HELPER_MEMORY: u64 = 4 << 30;
/// Time for answering it.
pub const HELPER: Duration = Duration::from_secs(10);
/// Such processes at once.
pub const HELPERS: usize = 4;
/// Pages that listen to events at once.
pub const LISTENERS: usize = 100;
/// Connections at once.
pub const CONNECTIONS: usize = 400;
/// Connections that wait to be taken.
pub const WAITING: u32 = 1024;
/// Time for sending the head of a request, from the connection or the request before.
pub const HEAD: Duration = Duration::from_secs(15);
/// Time for sending the body of a request.
pub const ARRIVAL: Duration = Duration::from_secs(15);
/// Time during which a reader takes nothing, before it is let go.
pub const STALLED: Duration = Duration::from_secs(60);
/// Rows of flows in an answer.
pub const ROWS: usize = 1000;
/// Stops in an answer, besides those that caused them or last.
pub const STOPS: usize = 60_000;
/// Bytes of a job's log.
pub const LOG: usize = 1 << 20;
/// Between two messages about one job that goes on.
pub const PULSE: Duration = Duration::from_millis(200);

/// Those that a page may want to know.
pub fn list() -> Value {
    json!({
        "body_bytes": BODY,
        "scenario_bytes": SCENARIO,
        "input_bytes": INPUT,
        "queued_jobs": QUEUED,
        "kept_jobs": KEPT,
        "runs_per_job": RUNS,
        "wall_seconds": WALL.as_secs(),
        "memory_bytes": MEMORY,
        "listeners": LISTENERS,
        "rows": ROWS,
    })
}
