//! Writing results so that nothing half-written is ever seen.

use crate::problem::Problem;
use std::fs;
use std::path::{Path, PathBuf};

/// A problem with writing `path`.
fn refused(path: &Path, error: std::io::Error) -> Problem {
    Problem::new(path.display().to_string(), format!("cannot be written: {error}"))
        .help("choose a folder that exists and that you may write to, on a disk with room")
}

/// The name under which a file or folder is prepared, beside its final place.
fn draft(path: &Path) -> PathBuf {
    let name = path.file_name().map_or("result".into(), |n| n.to_string_lossy());
    path.with_file_name(format!(".{name}.{}.part", std::process::id()))
}

/// Checks, before a long run, that `path` can be written in the end.
pub fn check_writable(path: &Path) -> Result<(), Problem> {
    if path.is_dir() {
        return Err(Problem::new(path.display().to_string(), "is a folder; a file is to be written there")
            .help("name a file, or move the folder away"));
    }
    let trial = draft(path);
    fs::write(&trial, b"").map_err(|e| refused(path, e))?;
    fs::remove_file(&trial).map_err(|e| refused(path, e))
}

/// Writes a set of files: all of them are complete before the first appears under its name.
pub fn write_all(files: &[(&Path, &str)]) -> Result<(), Problem> {
    let result = files.iter().try_for_each(|(path, text)| fs::write(draft(path), text).map_err(|e| refused(path, e)));
    let result = result.and_then(|()| {
        files.iter().try_for_each(|(path, _)| fs::rename(draft(path), path).map_err(|e| refused(path, e)))
    });
    if result.is_err() {
        files.iter().for_each(|(path, _)| _ = fs::remove_file(draft(path)));
    }
    result
}

/// A folder of results that appears whole or not at all.
pub struct Folder {
    path: PathBuf,
    draft: PathBuf,
}

/// The file that every folder of results has.
pub const SUMMARY: &str = "summary.json";

impl Folder {
    /// Prepares to write `path`. A folder of earlier results is replaced in the end; anything else is left alone.
    pub fn prepare(path: &Path) -> Result<Folder, Problem> {
        let occupied = path.is_file()
            || path.is_dir()
                && !path.join(SUMMARY).is_file()
                && fs::read_dir(path).map_or(true, |mut entries| entries.next().is_some());
        if occupied {
            return Err(Problem::new(path.display().to_string(), "exists and does not hold results of a run")
                .help("choose another folder with --out, or move that one away"));
        }
        if let Some(parent) = path.parent().filter(|p| !p.as_os_str().is_empty()) {
            fs::create_dir_all(parent).map_err(|e| refused(parent, e))?;
        }
        let draft = draft(path);
        let _ = fs::remove_dir_all(&draft);
        fs::create_dir(&draft).map_err(|e| refused(path, e))?;
        Ok(Folder { path: path.to_owned(), draft })
    }

    /// Checks, before a long run, that the folder can be written in the end.
    pub fn check(path: &Path) -> Result<(), Problem> {
        Folder::prepare(path).map(drop)
    }

    /// Where a file of the folder is to be written now.
    pub fn file(&self, name: &str) -> PathBuf {
        self.draft.join(name)
    }

    /// Writes a text file.
    pub fn write(&self, name: &str, text: &str) -> Result<(), Problem> {
        fs::write(self.file(name), text).map_err(|e| refused(&self.path.join(name), e))
    }

    /// Puts the folder in its place.
    pub fn publish(self) -> Result<PathBuf, Problem> {
        let old = self.draft.with_extension("old");
        let _ = fs::remove_dir_all(&old);
        if self.path.exists() {
            fs::rename(&self.path, &old).map_err(|e| refused(&self.path, e))?;
        }
        if let Err(error) = fs::rename(&self.draft, &self.path) {
            let _ = fs::rename(&old, &self.path);
            return Err(refused(&self.path, error));
        }
        let _ = fs::remove_dir_all(&old);
        Ok(self.path.clone())
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.draft);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_appears_whole_and_replaces_only_results() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("deep/run");
        let folder = Folder::prepare(&path).unwrap();
        folder.write(SUMMARY, "{}").unwrap();
        assert!(!path.exists(), "nothing is seen before it is whole");
        folder.publish().unwrap();
        assert!(path.join(SUMMARY).is_file());
        let again = Folder::prepare(&path).unwrap();
        again.write(SUMMARY, "{\"n\": 2}").unwrap();
        again.publish().unwrap();
        assert_eq!(fs::read_to_string(path.join(SUMMARY)).unwrap(), "{\"n\": 2}");
        let mine = dir.path().join("mine");
        fs::create_dir(&mine).unwrap();
        fs::write(mine.join("thesis.txt"), "…").unwrap();
        assert!(Folder::prepare(&mine).err().unwrap().message.contains("does not hold results"));
        let left: Vec<_> = fs::read_dir(dir.path().join("deep")).unwrap().collect();
        assert_eq!(left.len(), 1, "no draft is left behind");
    }

    #[test]
    fn a_run_that_fails_leaves_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let folder = Folder::prepare(&dir.path().join("run")).unwrap();
        folder.write(SUMMARY, "{}").unwrap();
        drop(folder);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
        let (good, bad) = (dir.path().join("a.txt"), dir.path().join("nowhere/b.txt"));
        assert!(write_all(&[(&good, "a"), (&bad, "b")]).is_err());
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
        assert!(check_writable(&bad).is_err() && check_writable(&good).is_ok());
    }
}
