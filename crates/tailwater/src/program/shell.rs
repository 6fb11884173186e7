//! What belongs to the shell: completions, manual pages, the version.

use crate::program::Arguments;
use crate::program::commands::{printed, say};
use clap::CommandFactory as _;
use files::problem::Problem;
use std::path::Path;
use std::process::ExitCode;
use std::sync::LazyLock;

/// The version with the commit, and the digest of all code that can change a result: stored results are known by it.
pub fn version() -> &'static str {
    static VERSION: LazyLock<String> =
        LazyLock::new(|| format!("{}\nresults of code {}", env!("TAILWATER_VERSION"), run::code()));
    &VERSION
}

/// `tailwater completions`.
pub fn completions(shell: clap_complete::Shell) -> Result<ExitCode, Problem> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Arguments::command(), "tailwater", &mut script);
    printed(say(String::from_utf8_lossy(&script).into_owned()))
}

/// `tailwater man`: `tailwater.1`, `tailwater-run.1` and so on.
pub fn man(folder: &Path) -> Result<ExitCode, Problem> {
    files::make_folder(folder)?;
    let made = clap_mangen::generate_to(Arguments::command(), folder);
    made.map_err(|error| Problem::new(folder.display().to_string(), format!("cannot be written: {error}")))?;
    printed(say(format!("{}\n", folder.join("tailwater.1").display())))
}
