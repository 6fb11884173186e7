//! `tailwater studio`: the page on this machine.

use crate::program::commands::say;
use crate::program::progress;
use files::problem::Problem;
use std::net::{IpAddr, Ipv4Addr};
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};

/// Where the studio works and listens.
#[derive(clap::Args)]
pub struct Arguments {
    /// The workspace: where jobs, runs and verdicts are kept.
    #[arg(default_value = "results/studio")]
    folder: PathBuf,
    /// The port; 0 for any that is free.
    #[arg(long, value_name = "N", default_value_t = 4774)]
    port: u16,
    /// The address to listen at. With any but this machine's own, a token is needed, which is part of the address printed.
    #[arg(long, value_name = "ADDRESS", default_value_t = IpAddr::V4(Ipv4Addr::LOCALHOST))]
    listen: IpAddr,
    /// Open the page in the browser.
    #[arg(long)]
    open: bool,
    /// Jobs that run at once.
    #[arg(long, value_name = "N", default_value = "1")]
    jobs: NonZeroUsize,
    /// Take the page from this folder instead of the program, for those who work on it.
    #[arg(long, value_name = "FOLDER")]
    page: Option<PathBuf>,
}

/// `tailwater studio`.
pub fn studio(arguments: Arguments) -> Result<ExitCode, Problem> {
    let Arguments { folder, port, listen, open, jobs, page } = arguments;
    let program = std::env::current_exe().map_err(|error| {
        Problem::new("tailwater", format!("does not find itself: {error}")).help("start it by its path")
    })?;
    ::studio::serve(::studio::Options { folder, listen, port, jobs, page, program }, |url, notes| {
        notes.iter().for_each(|note| crate::program::progress::note(note));
        // It need not be read.
        _ = say(format!("studio at {url}\n"));
        if open {
            browse(url);
        }
    })?;
    Ok(ExitCode::SUCCESS)
}

/// Opens an address in the browser. Where that cannot be done the address is on the screen.
fn browse(url: &str) {
    let opener = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
    let quiet = || Stdio::null();
    if Command::new(opener).arg(url).stdin(quiet()).stdout(quiet()).stderr(quiet()).spawn().is_err() {
        progress::note(&format!("there is no {opener} to open a browser with; open the address yourself"));
    }
}
