//! Files that a command writes, told from those that it must leave alone.
//!
//! A file is renamed to its place, which would put it over whatever has the name: a device, a pipe, a link, or one of the files
//! that the command itself has read.

use crate::problem::Problem;
use crate::{draft, refused};
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// The most links that are followed, as many as Linux does.
const MOST_LINKS: usize = 40;

/// Whether something is there that is written into as it is: a device, a pipe, what a process has open.
pub(crate) fn is_special(path: &Path) -> bool {
    let Ok(about) = fs::metadata(path) else { return false };
    // What stands for an open file is appended to by the shell that opened it.
    let of_system = |folder: &Path| ["/dev", "/proc"].iter().any(|system| folder.starts_with(system));
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let linked = || fs::canonicalize(folder).is_ok_and(|folder| of_system(&folder));
    !about.is_dir() && (!about.is_file() || linked())
}

/// Writes into something special, behind what a process has written to it. It must be there: nothing is made.
pub(crate) fn write_into(path: &Path, text: &[u8]) -> io::Result<()> {
    let mut file = fs::OpenOptions::new().append(true).open(path)?;
    file.write_all(text)?;
    file.flush()
}

/// What a link leads to, whether that is there or not; any other path itself.
pub fn behind(path: &Path) -> PathBuf {
    // Without a slash at its end, which would lead through the link.
    let mut path: PathBuf = path.components().collect();
    for _ in 0..MOST_LINKS {
        let Ok(target) = fs::read_link(&path) else { break };
        path = path.parent().unwrap_or(Path::new("")).join(target);
    }
    path
}

/// A name that two paths to the same place have in common.
fn place(path: &Path) -> PathBuf {
    let path = behind(path);
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    match (fs::canonicalize(folder), path.file_name()) {
        (Ok(folder), Some(name)) => folder.join(name),
        _ => path,
    }
}

/// Refuses files that are to be written under the same name.
pub(crate) fn check_distinct<'a>(outputs: impl Iterator<Item = &'a Path>) -> Result<(), Problem> {
    let mut places: Vec<PathBuf> = Vec::new();
    for path in outputs.filter(|path| !is_special(path)) {
        let own = place(path);
        if places.contains(&own) {
            return Err(Problem::new(path.display().to_string(), "is to be written twice, with different contents")
                .help("give each output a name of its own"));
        }
        places.push(own);
    }
    Ok(())
}

/// Checks, before a long run, that files can be written in the end: none is a folder, none is there twice, and none is one of
/// those that the command has read.
pub fn check_outputs(outputs: &[&Path], inputs: &[&Path]) -> Result<(), Problem> {
    let read: Vec<PathBuf> = inputs.iter().map(|path| place(path)).collect();
    for path in outputs {
        if read.contains(&place(path)) {
            return Err(Problem::new(path.display().to_string(), "is one of the files that are read")
                .help("give the output another name"));
        }
    }
    check_distinct(outputs.iter().copied())?;
    outputs.iter().try_for_each(|path| check_writable(path))
}

/// Checks that `path` can be written in the end.
fn check_writable(path: &Path) -> Result<(), Problem> {
    if path.is_dir() {
        return Err(Problem::new(path.display().to_string(), "is a folder; a file is to be written there")
            .help("name a file, or move the folder away"));
    }
    // To open a pipe is to wait for its reader.
    if is_special(path) {
        return Ok(());
    }
    let trial = draft(&behind(path));
    fs::write(&trial, b"").map_err(|e| refused(path, e))?;
    fs::remove_file(&trial).map_err(|e| refused(path, e))
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use crate::write_all;
    use std::os::unix::fs::{FileTypeExt, symlink};

    #[test]
    fn what_is_read_is_not_written_by_whatever_name() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        fs::write(path("flow.txt"), "1").unwrap();
        fs::create_dir(path("sub")).unwrap();
        symlink("flow.txt", path("link.txt")).unwrap();
        let input = path("flow.txt");
        for name in ["flow.txt", "./flow.txt", "sub/../flow.txt", "link.txt"] {
            let problem = check_outputs(&[&path(name)], &[&input]).unwrap_err();
            assert!(problem.message.contains("that are read"), "{problem}");
            assert!(problem.help.is_some());
        }
        // The same the other way round: the input is the link.
        assert!(check_outputs(&[&input], &[&path("link.txt")]).is_err());
        check_outputs(&[&path("fct.txt"), &path("sub/flow.txt")], &[&input]).unwrap();
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 3, "nothing is left behind");
    }

    #[test]
    fn two_outputs_have_two_names() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        let (one, same, two) = (path("a.txt"), path("./a.txt"), path("b.txt"));
        assert!(check_outputs(&[&one, &same], &[]).unwrap_err().message.contains("twice"));
        assert!(write_all(&[(&one, "1"), (&same, "2")]).is_err());
        assert!(!one.exists());
        write_all(&[(&one, "1"), (&two, "2")]).unwrap();
    }

    #[test]
    fn a_link_stays_one_and_its_target_is_written() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        fs::create_dir(path("disk")).unwrap();
        fs::write(path("disk/real.txt"), "old").unwrap();
        symlink("disk/real.txt", path("link.txt")).unwrap();
        symlink("disk/new.txt", path("dangling.txt")).unwrap();
        write_all(&[(path("link.txt"), "new"), (path("dangling.txt"), "first")]).unwrap();
        assert_eq!(fs::read_to_string(path("disk/real.txt")).unwrap(), "new");
        assert_eq!(fs::read_to_string(path("disk/new.txt")).unwrap(), "first");
        assert!(path("link.txt").is_symlink() && path("dangling.txt").is_symlink());
    }

    #[test]
    fn pipes_and_devices_are_written_into_and_stay() {
        let dir = tempfile::tempdir().unwrap();
        let pipe = dir.path().join("pipe");
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        check_outputs(&[&pipe], &[]).unwrap();
        let reader = std::thread::spawn({
            let pipe = pipe.clone();
            move || fs::read_to_string(pipe).unwrap()
        });
        write_all(&[(&pipe, "flows")]).unwrap();
        assert_eq!(reader.join().unwrap(), "flows");
        assert!(fs::symlink_metadata(&pipe).unwrap().file_type().is_fifo());
        // By a link, so that nothing of the system is at risk.
        let null = dir.path().join("null");
        symlink("/dev/null", &null).unwrap();
        check_outputs(&[&null], &[]).unwrap();
        write_all(&[(&null, "flows")]).unwrap();
        assert!(null.is_symlink() && fs::metadata("/dev/null").unwrap().file_type().is_char_device());
    }
}
