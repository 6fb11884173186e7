//! Writing results so that nothing half-written is ever seen.
//!
//! Everything is prepared under a name of its own beside its final place, a draft, and then renamed. Drafts of processes that
//! were killed are recognised by their names, which say who writes them, and removed.

mod claim;
pub mod outputs;
pub mod problem;
pub mod sums;

pub use claim::Claim;

use crate::outputs::{behind, is_special};
use crate::problem::Problem;
use crate::sums::SUMS;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

/// A problem with writing `path`.
pub fn refused(path: &Path, error: std::io::Error) -> Problem {
    Problem::new(path.display().to_string(), format!("cannot be written: {error}"))
        .help("choose a folder that exists and that you may write to, on a disk with room")
}

/// The problem that there is a file where a folder is to be.
pub fn in_the_way(path: &Path) -> Problem {
    Problem::new(path.display().to_string(), "is a file; a folder is needed there")
        .help("choose another folder, or move the file away")
}

/// Identifies this boot of the machine and its process-id namespace. Empty where the system does not say.
pub static MACHINE: LazyLock<String> = LazyLock::new(|| {
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id");
    let namespace = fs::read_link("/proc/self/ns/pid");
    let (Ok(boot), Ok(namespace)) = (boot, namespace) else { return String::new() };
    hex(&Sha256::digest(format!("{boot}{}", namespace.display())), 4)
});

/// The first `count` bytes in hexadecimal digits.
pub fn hex(bytes: &[u8], count: usize) -> String {
    bytes.iter().take(count).map(|byte| format!("{byte:02x}")).collect()
}

/// A new name under which a file or folder is prepared, beside its final place: whose it is, and which of this process.
pub fn draft(path: &Path) -> PathBuf {
    let number = next();
    let name = path.file_name().map_or("result".into(), |n| n.to_string_lossy());
    path.with_file_name(format!(".{name}.{}-{}-{number}.part", *MACHINE, std::process::id()))
}

/// A draft younger than this is stale only if its process is known to have ended.
const STALE: Duration = Duration::from_secs(24 * 3600);

/// Whether a file of that name in a folder of results is what a killed process left.
fn is_stale(name: &str, age: Option<Duration>) -> bool {
    let Some(draft) = name.strip_prefix('.').and_then(|n| n.strip_suffix(".part").or(n.strip_suffix(".old"))) else {
        return false;
    };
    let mut owner = draft.rsplit('.').next().unwrap_or_default().split('-');
    let (Some(machine), Some(Ok(process)), Some(Ok(_)), None) =
        (owner.next(), owner.next().map(str::parse::<u32>), owner.next().map(str::parse::<u64>), owner.next())
    else {
        return false;
    };
    // Process numbers mean something only on this machine, since its last boot.
    let gone = !machine.is_empty() && machine == *MACHINE && !Path::new("/proc").join(process.to_string()).exists();
    gone || age.is_some_and(|age| age > STALE)
}

/// What an earlier folder was called before it was moved away to make room, if that is what a name says.
fn moved_away(name: &str) -> Option<&str> {
    let (original, owner) = name.strip_prefix('.')?.strip_suffix(".old")?.rsplit_once('.')?;
    (owner.split('-').count() == 3).then_some(original)
}

/// What time the file system has: the machine whose clock it goes by may be another.
fn clock(folder: &Path) -> Option<SystemTime> {
    let trial = draft(&folder.join("clock"));
    let time = fs::write(&trial, b"?").and_then(|()| fs::metadata(&trial)?.modified());
    _ = fs::remove_file(&trial);
    time.ok()
}

/// Removes what killed processes left in a folder. What a living one is writing stays, and an earlier folder that was moved away
/// when its process was killed comes back.
pub fn sweep(folder: &Path) {
    let now = LazyLock::new(|| clock(folder));
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if !name.starts_with('.') {
            continue;
        }
        let time = entry.metadata().and_then(|m| m.modified()).ok();
        let age = time.and_then(|time| now.as_ref()?.duration_since(time).ok());
        if is_stale(&name, age) {
            let path = entry.path();
            if let Some(original) = moved_away(&name).map(|name| folder.join(name))
                && path.join(SUMMARY).is_file()
                && !original.exists()
                && fs::rename(&path, &original).is_ok()
            {
                continue;
            }
            // Another process may sweep at the same time: the later one finds nothing.
            let _ = if path.is_dir() { fs::remove_dir_all(&path) } else { fs::remove_file(&path) };
        }
    }
}

/// Makes a folder whose name no other process has. It may be there all the same: an NFS server says so to a client that asks again
/// because the first reply was lost, and a killed process may have had the same number in a container that is made anew.
fn make_own(path: &Path) -> io::Result<()> {
    match fs::create_dir(path) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
        result => result,
    }
}

/// Makes a folder where there is none, and checks that something can be put in it.
pub fn make_folder(path: &Path) -> Result<(), Problem> {
    if path.exists() && !path.is_dir() {
        return Err(in_the_way(path));
    }
    fs::create_dir_all(path).map_err(|e| refused(path, e))?;
    let trial = draft(&path.join("trial"));
    let removed = |()| match fs::remove_dir(&trial) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        result => result,
    };
    make_own(&trial).and_then(removed).map_err(|e| refused(path, e))
}

/// Something in a folder that a program which writes there does not know: neither one of `known`, relative to the folder, nor a draft. None
/// where the folder has `mark`, the file that says whose it is, or where there is no folder.
pub fn foreign(folder: &Path, mark: &str, known: &[&Path]) -> Option<PathBuf> {
    if folder.join(mark).exists() {
        return None;
    }
    let whole = |path: &Path| path.canonicalize().ok();
    let known: Vec<PathBuf> = known.iter().filter_map(|path| whole(path)).collect();
    let mut found: Vec<PathBuf> =
        fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    found.sort();
    let draft = |path: &Path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with('.') && (name.ends_with(".part") || name.ends_with(".old"))
    };
    // What is known may lie deeper.
    let is_known = |path: &Path| whole(path).is_some_and(|path| known.iter().any(|known| known.starts_with(&path)));
    found.into_iter().find(|path| !draft(path) && !is_known(path))
}

/// A number that no other draft of this process has.
fn next() -> u64 {
    static COUNT: AtomicU64 = AtomicU64::new(1);
    COUNT.fetch_add(1, Ordering::Relaxed)
}

/// Writes a set of files: all of them are complete before the first appears under its name. Where something fails, nothing
/// that is new stays.
pub fn write_all<P: AsRef<Path>, T: AsRef<[u8]>>(files: &[(P, T)]) -> Result<(), Problem> {
    write_together(files, false)
}

/// The same, with folders made where there are none.
pub fn write_deep<P: AsRef<Path>, T: AsRef<[u8]>>(files: &[(P, T)]) -> Result<(), Problem> {
    write_together(files, true)
}

fn write_together<P: AsRef<Path>, T: AsRef<[u8]>>(files: &[(P, T)], deep: bool) -> Result<(), Problem> {
    outputs::check_distinct(files.iter().map(|(path, _)| path.as_ref()))?;
    // A device or a pipe cannot be taken back; it is written when everything else is ready.
    let (special, files): (Vec<_>, Vec<_>) =
        files.iter().map(|(path, text)| (path.as_ref(), text.as_ref())).partition(|(path, _)| is_special(path));
    // A link stays one.
    let files: Vec<(PathBuf, &[u8])> = files.into_iter().map(|(path, text)| (behind(path), text)).collect();
    let drafts: Vec<PathBuf> = files.iter().map(|(path, _)| draft(path)).collect();
    let (mut made, mut placed) = (Vec::new(), Vec::new());
    let mut write = || {
        for ((path, text), draft) in files.iter().zip(&drafts) {
            let folder = path.parent().filter(|folder| deep && !folder.as_os_str().is_empty());
            if let Some(folder) = folder {
                let missing = folder.ancestors().take_while(|f| !f.as_os_str().is_empty() && !f.exists());
                made.extend(missing.map(Path::to_path_buf));
                fs::create_dir_all(folder).map_err(|e| refused(path, e))?;
            }
            fs::write(draft, text).map_err(|e| refused(path, e))?;
        }
        special.iter().try_for_each(|(path, text)| outputs::write_into(path, text).map_err(|e| refused(path, e)))?;
        for ((path, text), draft) in files.iter().zip(&drafts) {
            let new = !path.exists();
            match fs::rename(draft, path) {
                // Done, and the reply was lost: an NFS server that is asked again does not find the draft any more.
                Err(error) if error.kind() == ErrorKind::NotFound && fs::read(path).is_ok_and(|is| is == *text) => {}
                result => result.map_err(|e| refused(path, e))?,
            }
            placed.extend(new.then_some(path));
        }
        Ok(())
    };
    let result = write();
    if result.is_err() {
        drafts.iter().for_each(|draft| _ = fs::remove_file(draft));
        placed.iter().for_each(|path| _ = fs::remove_file(path));
        // The deepest first; one in which there is something else stays.
        made.sort_by_key(|folder| std::cmp::Reverse(folder.components().count()));
        made.iter().for_each(|folder| _ = fs::remove_dir(folder));
    }
    result
}

/// A folder of results that appears whole or not at all.
pub struct Folder {
    /// What it is called.
    path: PathBuf,
    /// Where it is: what `path` leads to, if that is a link.
    target: PathBuf,
    draft: PathBuf,
    /// Says of a folder that is there already whether it is good enough to stay.
    stays: Option<fn(&Path) -> bool>,
}

/// Refuses a folder that holds anything but the results of a run, and a file in its place.
fn check_own(path: &Path) -> Result<(), Problem> {
    let problem = |message: String| {
        Problem::new(path.display().to_string(), message)
            .help("choose another folder with --out, or move that one away")
    };
    if path.exists() && !path.is_dir() {
        return Err(problem("exists and does not hold results of a run".into()));
    }
    // A folder that is not there holds nothing; one that cannot be read is refused when it is written.
    let entries: Vec<String> = fs::read_dir(path)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    if entries.is_empty() {
        return Ok(());
    }
    if !path.join(SUMMARY).is_file() {
        return Err(problem("exists and does not hold results of a run".into()));
    }
    match besides(path, entries) {
        Some(name) => Err(problem(format!("holds {name} besides the results of a run, which would be lost"))),
        None => Ok(()),
    }
}

/// Something in a folder of results that no run has put there.
fn besides(folder: &Path, entries: Vec<String>) -> Option<String> {
    let listed = sums::read(folder).ok().flatten();
    let own = |name: &str| match (&listed, name) {
        (_, SUMMARY | FILES | SUMS | PAGE) => true,
        (Some(listed), name) => listed.contains_key(name),
        // Written before there were digests, or damaged.
        (None, name) => {
            name == "scenario.toml" || [".parquet", ".bin", ".pcapng"].iter().any(|end| name.ends_with(end))
        }
    };
    let drafted = |name: &str| is_stale(name, None);
    let page = fs::read_to_string(folder.join(PAGE)).unwrap_or_default();
    let drawn = |name: &str| {
        let id = name.strip_suffix(".svg").or(name.strip_suffix(".png"));
        id.is_some_and(|id| page.contains(&format!("data-figure=\"{id}\"")))
    };
    for name in entries {
        let path = folder.join(&name);
        let figures = name == FIGURES && path.is_dir() && !path.is_symlink();
        if !figures && (path.is_dir() || !own(&name)) && !drafted(&name) {
            return Some(name);
        }
        for entry in fs::read_dir(&path).into_iter().flatten().flatten().filter(|_| figures) {
            let figure = entry.file_name().to_string_lossy().into_owned();
            if entry.path().is_dir() || !drawn(&figure) && !drafted(&figure) {
                return Some(format!("{name}/{figure}"));
            }
        }
    }
    None
}

/// The page that a run is drawn on, and the folder of its figures, which it names.
const PAGE: &str = "report.html";
const FIGURES: &str = "figures";

/// The file that every folder of results has.
pub const SUMMARY: &str = "summary.json";
/// What tells that a folder is a comparison's.
pub const COMPARISON: &str = "comparison.json";
/// What tells that a folder is a sweep's.
pub const SWEEP: &str = "sweep.json";

/// The list of the other files, with their lengths, that a folder has which is kept for good.
pub const FILES: &str = "files.json";

impl Folder {
    /// Prepares to write `path`. A folder of earlier results is replaced in the end; anything else is left alone, and so is a folder
    /// that holds anything else besides.
    pub fn prepare(path: &Path) -> Result<Folder, Problem> {
        let place = behind(path);
        let parent = place.parent().filter(|parent| !parent.as_os_str().is_empty());
        sweep(parent.unwrap_or(Path::new(".")));
        check_own(path)?;
        Folder::begin(path, None)
    }

    /// Prepares to write `path` for good: where another process has put its folder there in the meantime and `stays`
    /// approves of it, that one stays. A list of the files, [`FILES`], is added.
    pub fn keep(path: &Path, stays: fn(&Path) -> bool) -> Result<Folder, Problem> {
        Folder::begin(path, Some(stays))
    }

    fn begin(path: &Path, stays: Option<fn(&Path) -> bool>) -> Result<Folder, Problem> {
        let target = behind(path);
        if let Some(parent) = target.parent().filter(|p| !p.as_os_str().is_empty()) {
            fs::create_dir_all(parent).map_err(|e| refused(parent, e))?;
        }
        let draft = draft(&target);
        let _ = fs::remove_dir_all(&draft);
        make_own(&draft).map_err(|e| refused(path, e))?;
        Ok(Folder { path: path.to_owned(), target, draft, stays })
    }

    /// Checks, before a long run, that the folder can be written in the end.
    pub fn check(path: &Path) -> Result<(), Problem> {
        Folder::prepare(path).map(drop)
    }

    /// The folder as long as it is written, for those who write into folders themselves.
    pub fn place(&self) -> &Path {
        &self.draft
    }

    /// Where a file of the folder is to be written now.
    pub fn file(&self, name: &str) -> PathBuf {
        self.draft.join(name)
    }

    /// Writes a text file.
    pub fn write(&self, name: &str, text: impl AsRef<[u8]>) -> Result<(), Problem> {
        fs::write(self.file(name), text).map_err(|e| refused(&self.path.join(name), e))
    }

    /// Puts the folder in its place, with the digests of its files ([`sums`]) if it has none.
    pub fn publish(self) -> Result<PathBuf, Problem> {
        if self.stays.is_some() {
            self.list()?;
        }
        if !self.file(SUMS).exists() {
            let text = sums::list(&self.draft).map_err(|e| refused(&self.path.join(SUMS), e))?;
            self.write(SUMS, text)?;
            sums::settle(&self.file(SUMS)).map_err(|e| refused(&self.path.join(SUMS), e))?;
        }
        if let Some(stays) = self.stays {
            // Nothing there, as almost always: no moment without the folder for others to see.
            if fs::rename(&self.draft, &self.target).is_ok() || stays(&self.target) {
                return Ok(self.path.clone());
            }
        } else {
            // Something may have come to it while the run took its time.
            check_own(&self.path)?;
        }
        if self.target.exists() && !self.target.is_dir() {
            return Err(in_the_way(&self.path));
        }
        let old = self.draft.with_extension("old");
        let _ = fs::remove_dir_all(&old);
        if self.target.exists() {
            fs::rename(&self.target, &old).map_err(|e| refused(&self.path, e))?;
        }
        if let Err(error) = fs::rename(&self.draft, &self.target) {
            let _ = fs::rename(&old, &self.target);
            return Err(refused(&self.path, error));
        }
        let _ = fs::remove_dir_all(&old);
        Ok(self.path.clone())
    }

    /// Writes the list of the files. The summary is not in it: its length depends on what the run cost.
    fn list(&self) -> Result<(), Problem> {
        let problem = |e: std::io::Error| refused(&self.path.join(FILES), e);
        let mut lengths = BTreeMap::new();
        for entry in fs::read_dir(&self.draft).map_err(problem)? {
            let entry = entry.map_err(problem)?;
            lengths.insert(entry.file_name().to_string_lossy().into_owned(), entry.metadata().map_err(problem)?.len());
        }
        lengths.remove(SUMMARY);
        let text = serde_json::to_string_pretty(&lengths).map_err(|e| problem(e.into()))?;
        self.write(FILES, text + "\n")
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
    fn a_folder_with_anything_else_in_it_is_not_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("run");
        let put = || {
            let folder = Folder::prepare(&path)?;
            folder.write(SUMMARY, "{}")?;
            folder.write("flows.parquet", "…")?;
            let path = folder.publish()?;
            // Drawn when the results are there.
            fs::create_dir_all(path.join(FIGURES)).unwrap();
            fs::write(path.join(PAGE), "<figure data-figure=\"loads\">").unwrap();
            fs::write(path.join("figures/loads.svg"), "<svg/>").unwrap();
            Ok::<_, Problem>(())
        };
        put().unwrap();
        put().unwrap();
        for name in ["notes.md", "figures/mine.svg", "0123abc/summary.json", "figures/deep/loads.svg"] {
            let own = path.join(name);
            fs::create_dir_all(own.parent().unwrap()).unwrap();
            fs::write(&own, "mine").unwrap();
            let problem = put().unwrap_err();
            assert!(problem.message.contains("besides the results of a run"), "{problem}");
            assert_eq!(fs::read_to_string(&own).unwrap(), "mine");
            let whole = own.parent().filter(|parent| *parent != path && !parent.ends_with(FIGURES));
            whole.map_or_else(|| fs::remove_file(&own), fs::remove_dir_all).unwrap();
        }
        put().unwrap();
        // What comes while the run takes its time stays, too.
        let folder = Folder::prepare(&path).unwrap();
        folder.write(SUMMARY, "{}").unwrap();
        fs::write(path.join("notes.md"), "mine").unwrap();
        assert!(folder.publish().is_err());
        assert_eq!(fs::read_to_string(path.join("notes.md")).unwrap(), "mine");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "no draft is left behind");
    }

    #[test]
    #[cfg(unix)]
    fn a_link_to_a_folder_stays_one() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        fs::create_dir_all(path("disk/empty")).unwrap();
        std::os::unix::fs::symlink("disk/empty", path("link")).unwrap();
        std::os::unix::fs::symlink("disk/new", path("dangling")).unwrap();
        for (link, target) in [("link", "disk/empty"), ("link/", "disk/empty"), ("dangling", "disk/new")] {
            let folder = Folder::prepare(&path(link)).unwrap();
            folder.write(SUMMARY, "{}").unwrap();
            assert_eq!(folder.publish().unwrap(), path(link));
            assert!(path(link.trim_end_matches('/')).is_symlink() && path(target).join(SUMMARY).is_file());
        }
        assert_eq!(fs::read_dir(path("disk")).unwrap().count(), 2, "no draft is left behind");
    }

    #[test]
    fn what_is_foreign_in_a_folder_is_found() {
        let dir = tempfile::tempdir().unwrap();
        let (folder, store) = (dir.path().join("out"), dir.path().join("out/deep/runs"));
        assert_eq!(foreign(&folder, "mark.json", &[]), None);
        fs::create_dir_all(&store).unwrap();
        fs::write(folder.join(".a.1-2-3.part"), "").unwrap();
        assert_eq!(foreign(&folder, "mark.json", &[&store]), None);
        assert_eq!(foreign(&folder, "mark.json", &[]), Some(folder.join("deep")));
        fs::write(folder.join("thesis.txt"), "").unwrap();
        assert_eq!(foreign(&folder, "mark.json", &[&store]), Some(folder.join("thesis.txt")));
        fs::write(folder.join("mark.json"), "").unwrap();
        assert_eq!(foreign(&folder, "mark.json", &[]), None);
    }

    #[test]
    fn a_folder_that_is_kept_lists_its_files_and_yields_to_a_good_one_only() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("run");
        let put = |summary: &str, stays: fn(&Path) -> bool| {
            let folder = Folder::keep(&path, stays).unwrap();
            folder.write("a.txt", "abc").unwrap();
            folder.write(SUMMARY, summary).unwrap();
            folder.publish().unwrap();
            assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "no draft is left behind");
            fs::read_to_string(path.join(SUMMARY)).unwrap()
        };
        assert_eq!(put("1", |_| unreachable!()), "1");
        assert_eq!(fs::read_to_string(path.join(FILES)).unwrap(), "{\n  \"a.txt\": 3\n}\n");
        let sums = sums::read(&path).unwrap().unwrap();
        assert_eq!(sums.keys().collect::<Vec<_>>(), ["a.txt", FILES, SUMMARY]);
        assert_eq!(sums::check(&path, |_| true), Ok(true));
        assert_eq!(put("2", |_| true), "1");
        assert_eq!(put("3", |_| false), "3");
    }

    #[test]
    fn only_drafts_of_the_dead_and_very_old_ones_are_swept() {
        let dir = tempfile::tempdir().unwrap();
        let gone = {
            let mut child = std::process::Command::new("true").spawn().unwrap();
            child.wait().unwrap();
            child.id()
        };
        let me = std::process::id();
        let dead = [format!(".a.b.{}-{gone}-1.part", *MACHINE), format!(".b.{}-{gone}-2.old", *MACHINE)];
        let stay = [
            format!(".a.{}-{me}-1.part", *MACHINE),
            format!(".a.elsewhere-{gone}-1.part"),
            format!("a.{}-{gone}-1.part", *MACHINE),
            format!(".a.{}-{gone}-1.txt", *MACHINE),
            ".a.part".into(),
            ".a.1-2-3-4.part".into(),
        ];
        dead.iter().chain(&stay).for_each(|name| fs::create_dir(dir.path().join(name)).unwrap());
        sweep(dir.path());
        let mut left: Vec<String> =
            fs::read_dir(dir.path()).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        left.sort();
        let mut expected: Vec<String> = stay.into();
        if MACHINE.is_empty() {
            expected.extend(dead);
        }
        expected.sort();
        assert_eq!(left, expected);
        let day = Duration::from_secs(25 * 3600);
        assert!(is_stale(".a.elsewhere-1-1.part", Some(day)) && !is_stale(".mine.part", Some(day)));
    }

    #[test]
    fn what_a_process_of_the_same_number_left_is_in_nobodys_way() {
        let dir = tempfile::tempdir().unwrap();
        let me = std::process::id();
        // As in a container that is made anew: the first process has the same number, and counts from one.
        for (name, number) in ["trial", "run"].into_iter().flat_map(|name| (1..500).map(move |number| (name, number))) {
            fs::create_dir(dir.path().join(format!(".{name}.{}-{me}-{number}.part", *MACHINE))).unwrap();
        }
        make_folder(dir.path()).unwrap();
        let folder = Folder::prepare(&dir.path().join("run")).unwrap();
        folder.write(SUMMARY, "{}").unwrap();
        folder.publish().unwrap();
        assert!(dir.path().join("run").join(SUMMARY).is_file());
    }

    #[test]
    fn an_earlier_folder_that_was_moved_away_by_a_killed_process_comes_back() {
        let dir = tempfile::tempdir().unwrap();
        let gone = {
            let mut child = std::process::Command::new("true").spawn().unwrap();
            child.wait().unwrap();
            child.id()
        };
        if MACHINE.is_empty() {
            return; // The system does not list its processes.
        }
        let away = |name: &str| dir.path().join(format!(".{name}.{}-{gone}-2.old", *MACHINE));
        for name in ["run", "a.b"] {
            fs::create_dir(away(name)).unwrap();
            fs::write(away(name).join(SUMMARY), "1").unwrap();
        }
        fs::create_dir(dir.path().join("run")).unwrap();
        sweep(dir.path());
        assert!(!dir.path().join("run").join(SUMMARY).exists(), "a new one stays");
        assert_eq!(fs::read_to_string(dir.path().join("a.b").join(SUMMARY)).unwrap(), "1");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 2);
    }

    #[test]
    fn files_that_are_written_together_are_all_there_or_none() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        fs::write(path("old.txt"), "old").unwrap();
        fs::create_dir(path("taken")).unwrap();
        fs::write(path("taken/x"), "").unwrap();
        // The last cannot be put in its place: there is a folder.
        let all = ["old.txt", "deep/er/a.txt", "taken"].map(|name| (path(name), "new"));
        assert!(write_deep(&all).is_err());
        assert!(!path("deep").exists() && path("taken/x").exists());
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 2);
        write_deep(&all[..2]).unwrap();
        assert_eq!(fs::read_to_string(path("old.txt")).unwrap(), "new");
        assert_eq!(fs::read_to_string(path("deep/er/a.txt")).unwrap(), "new");
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
        let check = |path: &Path| outputs::check_outputs(&[path], &[]);
        assert!(check(&bad).is_err() && check(&good).is_ok());
    }
}
