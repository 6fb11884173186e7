//! The workspace: a folder in which everything stays that the studio knows.

use files::problem::Problem;
use rustix::fs::{FlockOperation, flock};
use std::fs::{self, File};
use std::path::{Component, Path, PathBuf};

/// The file that marks a workspace, and that its studio locks.
const LOCK: &str = "studio.lock";
/// The name of a workspace that shares a folder of results with the command line.
const SHARING: &str = "studio";

/// A folder that belongs to this process.
pub struct Workspace {
    /// Where it is, without links.
    pub folder: PathBuf,
    /// The folder of results that it shares with the command line, if it does.
    pub results: Option<PathBuf>,
    /// Held as long as this is.
    _lock: File,
}

impl Workspace {
    /// Takes a folder for a workspace: a new or empty one, or an earlier workspace that no other studio uses.
    pub fn open(folder: &Path) -> Result<Workspace, Problem> {
        let problem = |message: String, help: &str| Problem::new(folder.display().to_string(), message).help(help);
        let lock = folder.join(LOCK);
        let full = fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_some());
        if full && !lock.is_file() {
            let help = "name a new or empty folder, or one that a studio has made";
            return Err(problem("is not empty and not a studio's workspace".into(), help));
        }
        files::make_folder(folder)?;
        let refused = |error: std::io::Error| {
            problem(format!("cannot be used: {error}"), "choose a folder that you may write to, on a disk with room")
        };
        let file = File::options().create(true).append(true).open(&lock).map_err(refused)?;
        if flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
            let help = "use the one that runs, stop it, or name another folder";
            return Err(problem("is in use by another studio".into(), help));
        }
        let folder = folder.canonicalize().map_err(refused)?;
        let shares = folder.file_name().is_some_and(|name| name == SHARING);
        let results = folder.parent().filter(|_| shares).map(Path::to_owned);
        let workspace = Workspace { folder, results, _lock: file };
        for part in [workspace.jobs(), workspace.runs(), workspace.ledger(), workspace.inputs()] {
            files::make_folder(&part)?;
        }
        Ok(workspace)
    }

    /// A folder for each job.
    pub fn jobs(&self) -> PathBuf {
        self.folder.join("jobs")
    }

    /// The folder of a job.
    pub fn job(&self, id: u64) -> PathBuf {
        self.jobs().join(id.to_string())
    }

    /// The store of runs: that of the command line, if the workspace is beside it.
    pub fn runs(&self) -> PathBuf {
        self.results.as_ref().unwrap_or(&self.folder).join("runs")
    }

    /// The folder of a run. One from before stores were shared is where it was.
    pub fn run(&self, key: &str) -> PathBuf {
        let (shared, own) = (self.runs().join(key), self.folder.join("runs").join(key));
        if !shared.is_dir() && own.is_dir() { own } else { shared }
    }

    /// What reproducing experiments gives, here and on the command line.
    pub fn ledger(&self) -> PathBuf {
        self.results.as_ref().map_or_else(|| self.folder.join("ledger"), |results| results.join("claims"))
    }

    /// The folders of results that the command line has made beside the workspace: name, kind, and title. In order of time, the latest
    /// first.
    pub fn folders(&self) -> Vec<Found> {
        let entries = self.results.iter().filter_map(|results| fs::read_dir(results).ok()).flatten().flatten();
        let found = |entry: fs::DirEntry| {
            let (name, path) = (entry.file_name().into_string().ok()?, entry.path());
            if !is_below(&name) || !entry.file_type().ok()?.is_dir() {
                return None;
            }
            let (kind, file) = made_by(&path)?;
            let meta = fs::metadata(&file).ok()?;
            let since = meta.modified().ok()?.duration_since(std::time::UNIX_EPOCH);
            let title = if meta.len() <= MOST_READ { title(&file)? } else { String::new() };
            let page = file_below(&path, "report.html").is_some();
            Some(Found { name, kind, title, seconds: since.map_or(0, |since| since.as_secs()), page })
        };
        let mut all: Vec<Found> = entries.filter_map(found).collect();
        all.sort_by(|a, b| b.seconds.cmp(&a.seconds).then_with(|| a.name.cmp(&b.name)));
        all
    }

    /// A file of such a folder.
    pub fn folder_file(&self, path: &str) -> Option<PathBuf> {
        let (name, rest) = path.split_once('/')?;
        let folder = self.results.as_ref().filter(|_| is_below(name))?.join(name);
        made_by(&folder)?;
        file_below(&folder, rest)
    }

    /// Files that scenarios may name: the user puts them there.
    pub fn inputs(&self) -> PathBuf {
        self.folder.join("files")
    }
}

/// The largest file that is read for the title in it.
const MOST_READ: u64 = 16 << 20;

/// What made a folder of results, and the file that tells.
fn made_by(folder: &Path) -> Option<(&'static str, PathBuf)> {
    let kinds = [("compare", files::COMPARISON), ("sweep", files::SWEEP), ("run", files::SUMMARY)];
    kinds.into_iter().find_map(|(kind, file)| Some((kind, file_below(folder, file)?)))
}

/// The title in such a file; none if it is damaged.
fn title(file: &Path) -> Option<String> {
    let said: serde_json::Value = serde_json::from_slice(&fs::read(file).ok()?).ok()?;
    Some(said["scenario"].as_str().unwrap_or_default().to_string())
}

/// A folder of results that the command line has made.
pub struct Found {
    /// Its name.
    pub name: String,
    /// What made it: `run`, `compare` or `sweep`.
    pub kind: &'static str,
    /// The title of its scenario.
    pub title: String,
    /// When, in seconds since 1970.
    pub seconds: u64,
    /// Whether it has a page.
    pub page: bool,
}

/// Whether a path names something below a folder: nothing absolute, no `..`, nothing hidden, no tricks.
pub fn is_below(path: &str) -> bool {
    let plain = |part: &str| !part.is_empty() && !part.starts_with('.') && !part.contains(['\\', '\0', ':']);
    path.split('/').all(plain) && Path::new(path).components().all(|part| matches!(part, Component::Normal(_)))
}

/// The file of that name below a folder, if it is there and is there for real: a link that leads elsewhere is not.
pub fn file_below(folder: &Path, path: &str) -> Option<PathBuf> {
    if !is_below(path) {
        return None;
    }
    let (folder, file) = (folder.canonicalize().ok()?, folder.join(path).canonicalize().ok()?);
    (file.starts_with(folder) && file.is_file()).then_some(file)
}

/// All files below a folder with their sizes, in order; hidden ones and links are left out.
pub fn list(folder: &Path, prefix: &str, found: &mut Vec<(String, u64)>) {
    let mut entries: Vec<_> = fs::read_dir(folder).into_iter().flatten().flatten().collect();
    entries.sort_by_key(|entry| entry.file_name());
    for entry in entries {
        let (Ok(name), Ok(kind)) = (entry.file_name().into_string(), entry.file_type()) else { continue };
        let path = format!("{prefix}{name}");
        if !is_below(&path) {
            continue;
        }
        if kind.is_dir() {
            list(&entry.path(), &format!("{path}/"), found);
        } else if kind.is_file() {
            found.push((path, entry.metadata().map_or(0, |meta| meta.len())));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_files_below_the_folder_are_found() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("root");
        fs::create_dir_all(root.join("a")).unwrap();
        fs::write(root.join("a/b.txt"), "b").unwrap();
        fs::write(root.join(".hidden"), "h").unwrap();
        fs::write(dir.path().join("secret"), "s").unwrap();
        std::os::unix::fs::symlink(dir.path().join("secret"), root.join("link")).unwrap();
        std::os::unix::fs::symlink(dir.path(), root.join("up")).unwrap();
        std::os::unix::fs::symlink("a/b.txt", root.join("inside")).unwrap();
        assert!(file_below(&root, "a/b.txt").is_some() && file_below(&root, "inside").is_some());
        let refused = [
            "",
            ".",
            "..",
            "a",
            "../secret",
            "a/../../secret",
            "/etc/passwd",
            "//etc/passwd",
            "a//b.txt",
            "a/./b.txt",
            "link",
            "up/secret",
            ".hidden",
            "a\\b.txt",
            "..\\secret",
            "a/b.txt\0",
            "a/b.txt/",
            "C:/x",
        ];
        for path in refused {
            assert_eq!(file_below(&root, path), None, "{path:?}");
        }
        let mut found = Vec::new();
        list(&root, "", &mut found);
        assert_eq!(found, [("a/b.txt".to_string(), 1)]);
    }

    #[test]
    fn a_workspace_beside_results_shares_them_with_the_command_line() {
        let dir = tempfile::tempdir().unwrap();
        let results = dir.path().canonicalize().unwrap().join("results");
        for (folder, file, text) in [
            ("incast", "summary.json", r#"{"scenario": "sixteen to one"}"#),
            ("compare-incast", "comparison.json", r#"{"scenario": "two schemes"}"#),
            ("broken", "summary.json", "{"),
            ("mine", "thesis.txt", ""),
        ] {
            fs::create_dir_all(results.join(folder)).unwrap();
            fs::write(results.join(folder).join(file), text).unwrap();
        }
        fs::write(results.join("incast/report.html"), "<p>").unwrap();
        let workspace = Workspace::open(&results.join("studio")).unwrap();
        assert_eq!((workspace.runs(), workspace.ledger()), (results.join("runs"), results.join("claims")));
        let mut found: Vec<_> = workspace.folders().into_iter().map(|f| (f.name, f.kind, f.title, f.page)).collect();
        found.sort();
        let expected = [("compare-incast", "compare", "two schemes", false), ("incast", "run", "sixteen to one", true)];
        assert_eq!(found, expected.map(|(name, kind, title, page)| (name.into(), kind, title.into(), page)));
        assert!(workspace.folder_file("incast/report.html").is_some());
        for path in [
            "incast",
            "mine/thesis.txt",
            "incast/../mine/thesis.txt",
            "../x",
            "studio/studio.lock",
            "runs/a/summary.json",
        ] {
            assert_eq!(workspace.folder_file(path), None, "{path}");
        }
        // A run from before.
        fs::create_dir_all(results.join("studio/runs/ab")).unwrap();
        assert_eq!(workspace.run("ab"), results.join("studio/runs/ab"));
        assert_eq!(workspace.run("cd"), results.join("runs/cd"));
        // A workspace of another name has its own.
        let alone = Workspace::open(&dir.path().join("alone")).unwrap();
        assert_eq!((alone.results.clone(), alone.folders().len()), (None, 0));
        assert!(alone.runs().ends_with("alone/runs"));
    }

    #[test]
    fn a_workspace_belongs_to_one_studio_and_is_never_a_folder_of_something_else() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("work");
        let first = Workspace::open(&path).unwrap();
        assert!(Workspace::open(&path).err().unwrap().message.contains("in use"));
        drop(first);
        Workspace::open(&path).unwrap();
        let foreign = dir.path().join("foreign");
        fs::create_dir(&foreign).unwrap();
        fs::write(foreign.join("thesis.txt"), "…").unwrap();
        assert!(Workspace::open(&foreign).err().unwrap().message.contains("not a studio's"));
        assert!(Workspace::open(&foreign.join("thesis.txt")).is_err());
    }
}
