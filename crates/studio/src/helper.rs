//! Questions that are answered by a process of their own, because what is read may be too much, or damaged beyond reading:
//! whatever happens there, the server goes on.

use crate::jobs::bound_memory;
use crate::limits;
use files::problem::Problem;
use serde_json::Value;
use std::path::Path;
use std::process::Stdio;
use tokio::io::AsyncWriteExt;
use tokio::process::Command;

/// Asks the program, which finds itself in `folder` and `input` on its standard input, and answers in JSON.
pub async fn ask(program: &Path, folder: &Path, arguments: &[String], input: &str) -> Result<Value, Problem> {
    let what = arguments.first().map_or("", String::as_str);
    let failed = |message: String| Problem::new(what, message).help("make it smaller, or try again");
    let mut child = Command::new(program)
        .args(arguments)
        .current_dir(folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        // One whose asker has gone need not answer.
        .kill_on_drop(true)
        .spawn()
        .map_err(|error| failed(format!("no process can be started: {error}")))?;
    bound_memory(&child, limits::HELPER_MEMORY);
    let work = async {
        if let Some(mut stdin) = child.stdin.take() {
            // A process that has died says so by its answer.
            _ = stdin.write_all(input.as_bytes()).await;
        }
        child.wait_with_output().await
    };
    let late = |_| failed(format!("takes longer than {} s", limits::HELPER.as_secs()));
    let output = tokio::time::timeout(limits::HELPER, work).await.map_err(late)?;
    let output = output.map_err(|error| failed(format!("cannot be done: {error}")))?;
    let died = |_| failed(format!("is too much, or damaged: the process that read it has died ({})", output.status));
    serde_json::from_slice(&output.stdout).map_err(died)
}
