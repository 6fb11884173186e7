//! Who is about to fill a folder: two commands that started at once see each other.
//!
//! A claim is an empty file, which is whole as soon as it is there, also on a full disk. Its name says whose it is, and for what.

use crate::problem::Problem;
use crate::{MACHINE, draft, hex, is_stale, refused};
use sha2::{Digest, Sha256};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How often one of two who meet looks again whether the other has gone, and how long it waits in between.
const LOOKS: usize = 20;
const PAUSE: Duration = Duration::from_millis(5);

/// How the name of a claim begins.
const CLAIM: &str = "claim-";

/// A folder that is to be filled with something. It ends when it is dropped, or with its process.
#[derive(Debug)]
pub struct Claim {
    path: Option<PathBuf>,
}

impl Claim {
    /// Claims a folder, which is there, for what `text` describes; `None` if a living process has claimed it for something else.
    /// Any number may claim it for the same.
    pub fn lay(folder: &Path, text: &str) -> Result<Option<Claim>, Problem> {
        // Without a way to tell the living from the dead, one that was killed would keep the folder.
        if MACHINE.is_empty() {
            return Ok(Some(Claim { path: None }));
        }
        let name = format!("{CLAIM}{}", hex(&Sha256::digest(text), 8));
        let path = draft(&folder.join(&name));
        for _ in 0..LOOKS {
            // First seen, then looking: of two who do so at once, at least one sees the other.
            let claim = Claim { path: Some(path.clone()) };
            File::create(&path).map_err(|e| refused(folder, e))?;
            let Some(other) = lowest_other(folder, &name) else { return Ok(Some(claim)) };
            drop(claim);
            // If both saw each other, the one with the lower name has its turn.
            if other < path {
                return Ok(None);
            }
            std::thread::sleep(PAUSE);
        }
        Ok(None)
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        self.path.iter().for_each(|path| _ = fs::remove_file(path));
    }
}

/// The lowest claim of a living process for something else.
fn lowest_other(folder: &Path, own: &str) -> Option<PathBuf> {
    let other = |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let is_claim = name.starts_with(&format!(".{CLAIM}")) && name.ends_with(".part");
        is_claim && !name.starts_with(&format!(".{own}.")) && !is_stale(name, None)
    };
    fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).filter(other).min()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_claimed_for_one_thing_at_a_time() {
        if MACHINE.is_empty() {
            return; // The system does not list its processes.
        }
        let dir = tempfile::tempdir().unwrap();
        let lay = |text: &str| Claim::lay(dir.path(), text).unwrap();
        let one = lay("a").unwrap();
        assert!(lay("b").is_none());
        let two = lay("a").unwrap();
        drop(one);
        assert!(lay("b").is_none());
        drop(two);
        assert!(lay("b").is_some());
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0, "nothing is left behind");
    }

    #[test]
    fn of_many_at_once_exactly_one_has_it() {
        if MACHINE.is_empty() {
            return;
        }
        for _ in 0..20 {
            let dir = tempfile::tempdir().unwrap();
            let claims: Vec<Option<Claim>> = std::thread::scope(|scope| {
                let folder = dir.path();
                let lay = |number: usize| scope.spawn(move || Claim::lay(folder, &number.to_string()).unwrap());
                let all: Vec<_> = (0..4).map(lay).collect();
                all.into_iter().map(|one| one.join().unwrap()).collect()
            });
            assert_eq!(claims.iter().flatten().count(), 1);
        }
    }

    #[test]
    fn the_claim_of_a_dead_process_is_none() {
        let dir = tempfile::tempdir().unwrap();
        let mut child = std::process::Command::new("true").spawn().unwrap();
        child.wait().unwrap();
        File::create(dir.path().join(format!(".claim-5eed.{}-{}-1.part", *MACHINE, child.id()))).unwrap();
        assert!(Claim::lay(dir.path(), "b").unwrap().is_some());
    }
}
