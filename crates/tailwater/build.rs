//! The commit that the program is built from, for `tailwater --version`.

use std::path::Path;
use std::process::Command;
use std::{env, io};

/// A commit from outside, for builds from sources that are no repository, such as an archive.
const GIVEN: &str = "TAILWATER_COMMIT";

fn main() -> io::Result<()> {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed={GIVEN}");
    let folder = env::var("CARGO_MANIFEST_DIR").map_err(io::Error::other)?;
    let version = env::var("CARGO_PKG_VERSION").map_err(io::Error::other)?;
    let given = env::var(GIVEN).ok().filter(|commit| !commit.trim().is_empty());
    let commit = given.map(|commit| commit.trim().to_string()).or_else(|| commit(&Path::new(&folder).join("../..")));
    println!("cargo::rustc-env=TAILWATER_VERSION={version}{}", commit.map_or(String::new(), |it| format!(" ({it})")));
    Ok(())
}

/// The commit of the repository in that folder, in short.
fn commit(root: &Path) -> Option<String> {
    let root = root.canonicalize().ok()?;
    let git = |words: &[&str]| {
        let output = Command::new("git").arg("-C").arg(&root).args(words).output().ok()?;
        let text = String::from_utf8(output.stdout).ok()?.trim().to_string();
        (output.status.success() && !text.is_empty()).then_some(text)
    };
    // Sources that were unpacked within another repository are at no commit of that one.
    if Path::new(&git(&["rev-parse", "--show-toplevel"])?).canonicalize().ok()? != root {
        return None;
    }
    // Every commit and checkout adds to the log. A file that is missing would have this run again at each build.
    for name in ["HEAD", "logs/HEAD"] {
        let file = root.join(git(&["rev-parse", "--git-path", name])?);
        if file.exists() {
            println!("cargo::rerun-if-changed={}", file.display());
        }
    }
    git(&["rev-parse", "--short=10", "HEAD"])
}
