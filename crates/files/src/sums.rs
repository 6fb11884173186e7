//! Digests of the files of a folder of results, kept beside them: damage that leaves a file its length shows all the same.
//!
//! The list is what `sha256sum` writes, so that `sha256sum -c SHA256SUMS` checks it, too.

use crate::hex;
use crate::problem::Problem;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Read};
use std::path::Path;

/// The list of digests.
pub const SUMS: &str = "SHA256SUMS";

/// What to do about a damaged folder.
const REMEDY: &str =
    "run it again; what is damaged in a store is put aside and run again by `tailwater store verify --repair`";

/// Room for a piece of a file.
const PIECE: usize = 1 << 16;

/// SHA-256 of a file, in hexadecimal digits.
pub fn sha256(path: &Path) -> io::Result<String> {
    sha256_by(path, &mut vec![0; PIECE])
}

/// The same piece by piece.
fn sha256_by(path: &Path, piece: &mut [u8]) -> io::Result<String> {
    let mut file = File::open(path)?;
    let mut hash = Sha256::new();
    loop {
        match file.read(piece) {
            Ok(0) => return Ok(hex(&hash.finalize(), 32)),
            Ok(count) => hash.update(piece.get(..count).unwrap_or_default()),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// Waits until a file is on its disk. Only then does a file system on a network say that the disk is full.
pub(crate) fn settle(path: &Path) -> io::Result<()> {
    match File::open(path)?.sync_all() {
        // Some file systems cannot.
        Err(error) if matches!(error.kind(), ErrorKind::InvalidInput | ErrorKind::Unsupported) => Ok(()),
        result => result,
    }
}

/// The list of what a folder holds now, when that is on its disk.
pub(crate) fn list(folder: &Path) -> io::Result<String> {
    let (mut lines, mut piece) = (BTreeMap::new(), vec![0; PIECE]);
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if entry.file_type()?.is_file() && name != SUMS {
            settle(&entry.path())?;
            lines.insert(name, sha256_by(&entry.path(), &mut piece)?);
        }
    }
    Ok(lines.iter().map(|(name, sum)| format!("{sum}  {name}\n")).collect())
}

/// The digests of a folder's files by name; none of a folder that was written before there were digests.
pub fn read(folder: &Path) -> Result<Option<BTreeMap<String, String>>, Problem> {
    let path = folder.join(SUMS);
    let problem = |message: String| Problem::new(path.display().to_string(), message).help(REMEDY);
    let text = match fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(problem(format!("cannot be read: {error}"))),
    };
    let line = |line: &str| {
        let (sum, name) = line.split_once("  ").filter(|(sum, _)| sum.len() == 64)?;
        Some((name.to_string(), sum.to_string()))
    };
    let sums: Option<BTreeMap<_, _>> = text.lines().map(line).collect();
    match sums.filter(|sums| !sums.is_empty() && text.ends_with('\n')) {
        Some(sums) => Ok(Some(sums)),
        None => Err(problem("is damaged: it is not a list of digests".into())),
    }
}

/// Checks those files of a folder that `wanted` names, and says whether there are digests to check them with.
pub fn check(folder: &Path, wanted: impl Fn(&str) -> bool) -> Result<bool, Problem> {
    let Some(sums) = read(folder)? else { return Ok(false) };
    for (name, sum) in sums.iter().filter(|(name, _)| wanted(name)) {
        let path = folder.join(name);
        let problem = |message: String| Err(Problem::new(path.display().to_string(), message).help(REMEDY));
        match sha256(&path) {
            Ok(found) if found == *sum => {}
            Ok(_) => return problem(format!("cannot be read: it is damaged, its SHA-256 is not the one in {SUMS}")),
            Err(error) if error.kind() == ErrorKind::NotFound => {
                return problem("cannot be read: it is missing".into());
            }
            Err(error) => return problem(format!("cannot be read: {error}")),
        }
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_changed_byte_a_missing_file_and_a_cut_list_are_refused_and_no_list_is_said_so() {
        let dir = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| fs::write(dir.path().join(name), text).unwrap();
        let problem = || check(dir.path(), |_| true).unwrap_err();
        write("a b.txt", "abc");
        write("c.txt", "");
        assert_eq!(check(dir.path(), |_| true), Ok(false));
        let text = list(dir.path()).unwrap();
        assert!(
            text.starts_with("ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad  a b.txt\ne3b0c442")
        );
        write(SUMS, &text);
        assert_eq!(check(dir.path(), |_| true), Ok(true));
        write("a b.txt", "abd");
        assert_eq!(check(dir.path(), |name| name == "c.txt"), Ok(true), "only what is asked for is read");
        assert!(
            problem()
                .to_string()
                .contains("a b.txt: cannot be read: it is damaged, its SHA-256 is not the one in SHA256SUMS")
        );
        assert!(problem().help.is_some());
        fs::remove_file(dir.path().join("a b.txt")).unwrap();
        assert!(problem().message.contains("it is missing"));
        for cut in ["", &text[..70], &text[..text.len() - 1], "what?\n"] {
            write(SUMS, cut);
            assert!(problem().message.contains("not a list of digests"), "{cut}");
        }
    }
}
