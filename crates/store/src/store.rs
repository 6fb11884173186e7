//! A store of runs: one folder for each, named by a digest of everything that decides its results.
//!
//! The same input has the same name, so nothing is run twice. Folders appear whole, whatever happens and however many
//! processes share the store, and stay as they are.

use crate::claims::{Claims, LEASE};
use crate::digest::Digest;
use crate::grid::{Cell, Grid, Source};
use files::problem::Problem;
use files::sums::{self, SUMS};
use files::{FILES, Folder, SUMMARY, in_the_way};
use results::recording::RECORDING;
use results::records::{self, FLOWS, FlowRow, Records};
use run::CAPTURE;
use scenario::document::Document;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The keys under which a scenario names files, relative to its own folder. `*` stands for each place of an array. What is
/// not the name of a file there is left alone.
pub const INPUT_FILES: &[&str] = &["topology.path", "traffic.trace", "load.*.sizes"];

/// The file with a run's whole input.
const SCENARIO: &str = "scenario.toml";

/// The digests of files that were looked at before.
pub type Known = BTreeMap<PathBuf, Option<String>>;

/// Everything that decides a run's results: the program's version, the digest of
/// the code that can change a result ([`run::code`]), the scenario in its canonical form, and the SHA-256 of
/// every file that it names. A scenario itself, it is what a run's `scenario.toml` holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Input(String);

impl Input {
    /// Of a scenario whose files are looked for in `base`. A file that cannot be read is left out: running the
    /// scenario reports that.
    pub fn new(document: &Document, base: &Path, known: &mut Known) -> Input {
        Input::by(run::code(), document, base, known)
    }

    /// The same, for a program with that code.
    fn by(code: &str, document: &Document, base: &Path, known: &mut Known) -> Input {
        let mut text = format!("# tailwater {}, code {code}\n", env!("CARGO_PKG_VERSION"));
        for (key, name) in INPUT_FILES.iter().flat_map(|pattern| document.texts(pattern)) {
            let path = base.join(name);
            if let Some(hash) = known.entry(path).or_insert_with_key(|path| hash_file(path)) {
                text += &format!("# {key} has SHA-256 {hash}\n");
            }
        }
        Input(text + "\n" + &document.canonical())
    }

    /// As TOML.
    pub fn text(&self) -> &str {
        &self.0
    }

    /// What names the run.
    pub fn digest(&self) -> Digest {
        Digest::of(&self.0)
    }
}

/// SHA-256 of a file, if it is one.
fn hash_file(path: &Path) -> Option<String> {
    path.is_file().then(|| sums::sha256(path).ok()).flatten()
}

/// What a store has of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found {
    /// Its results, whole.
    Whole(PathBuf),
    /// Nothing.
    Nothing,
    /// A folder that cannot be used, for this reason.
    Damaged(Problem),
}

/// A folder of runs.
#[derive(Clone, Debug)]
pub struct Store {
    folder: PathBuf,
    /// Only a run with a recording is whole.
    recorded: bool,
    /// Every file is checked against its digest, not only the small ones.
    thorough: bool,
    lease: Duration,
}

impl Store {
    /// In that folder, which need not exist.
    pub fn new(folder: impl Into<PathBuf>) -> Store {
        Store { folder: folder.into(), recorded: false, thorough: false, lease: LEASE }
    }

    /// The same, in which every run is to have a recording, or need not. One without is done again, and has the same name.
    pub fn recorded(self, recorded: bool) -> Store {
        Store { recorded, ..self }
    }

    /// The same, in which a run counts as whole only if all of its files have their digests: for those who read its tables. Otherwise
    /// that is checked of the summary and the scenario, and of the others the length.
    pub fn thorough(self, thorough: bool) -> Store {
        Store { thorough, ..self }
    }

    /// The same, in which what this process claims is free for others when it gives no sign of life for so long.
    pub fn lease(self, lease: Duration) -> Store {
        Store { lease, ..self }
    }

    /// Who is at work on what.
    pub fn claims(&self) -> Claims {
        Claims::new(&self.folder, self.lease)
    }

    /// Whether every run is to have a recording.
    pub fn is_recorded(&self) -> bool {
        self.recorded
    }

    /// Where it is.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Where a run is, or would be.
    pub fn path(&self, digest: Digest) -> PathBuf {
        self.folder.join(digest.to_string())
    }

    /// What is there of a run. Refuses a file where its folder would be.
    pub fn lookup(&self, digest: Digest) -> Result<Found, Problem> {
        let path = self.path(digest);
        // Opening a folder clears an NFS client's cache of missing entries.
        if !path.exists() && (fs::read_dir(&self.folder).is_err() || !path.exists()) {
            return Ok(Found::Nothing);
        }
        if !path.is_dir() {
            return Err(in_the_way(&path));
        }
        Ok(match damage(&path, self.thorough) {
            None if self.recorded && !path.join(RECORDING).is_file() => Found::Nothing,
            None => Found::Whole(path),
            Some(damage) => Found::Damaged(Problem::new(path.display().to_string(), damage)),
        })
    }

    /// Makes the store ready to be written: the folder is there, and something can be put in it.
    pub fn prepare(&self) -> Result<(), Problem> {
        if self.folder.join(SUMMARY).exists() {
            let problem = Problem::new(
                self.folder.display().to_string(),
                "has the results of a run; a store is a folder of its own",
            );
            return Err(problem.help("choose another folder with --store, or move that one away"));
        }
        let remedy = "choose another place for the store, one that you may write to";
        files::make_folder(&self.folder).map_err(|problem| problem.help(remedy))
    }

    /// A draft of a run's folder. Publishing it replaces a damaged folder, or one without the recording that it should have, and
    /// leaves a whole one.
    pub fn draft(&self, digest: Digest) -> Result<Folder, Problem> {
        let stays: fn(&Path) -> bool = match self.recorded {
            true => |path| damage(path, true).is_none() && path.join(RECORDING).is_file(),
            false => |path| damage(path, true).is_none(),
        };
        Folder::keep(&self.path(digest), stays)
    }

    /// A draft of the folder for a run that broke its promises. It is not a result: [`Store::lookup`] does not find it.
    pub fn broken(&self, digest: Digest) -> Result<Folder, Problem> {
        Folder::prepare(&self.folder.join(format!("broken-{digest}")))
    }
}

/// Whether that is the name of a run of a store.
fn is_digest(name: &str) -> bool {
    name.len() == 32 && name.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
}

/// What is wrong with a run's folder, if anything is. Of files other than the summary and the scenario only the length is looked
/// at, unless all are to be read.
fn damage(path: &Path, all: bool) -> Option<String> {
    let read = |name: &str| fs::read_to_string(path.join(name)).map_err(|e| format!("is damaged: {name}: {e}"));
    let name = path.file_name().map(|name| name.to_string_lossy());
    // A folder that `run` has written has no list, and a name of its own.
    let stored = name.as_deref().is_some_and(is_digest) || path.join(FILES).is_file();
    let check = || -> Result<(), String> {
        let list: BTreeMap<String, u64> = match stored {
            true => serde_json::from_str(&read(FILES)?).map_err(|e| format!("is damaged: {FILES}: {e}"))?,
            false => BTreeMap::new(),
        };
        for (name, length) in list {
            let found = fs::metadata(path.join(&name)).map_err(|e| format!("is damaged: {name}: {e}"))?.len();
            if found != length {
                return Err(format!("is damaged: {name} has {found} of {length} bytes"));
            }
        }
        serde_json::from_str::<Value>(&read(SUMMARY)?).map_err(|e| format!("is damaged: {SUMMARY}: {e}"))?;
        let named = |name: &str| name == Digest::of(&read(SCENARIO).unwrap_or_default()).to_string();
        if stored && !name.as_deref().is_some_and(named) {
            return Err(format!("is damaged: {SCENARIO} is not what the folder is named after"));
        }
        let Some(sums) = sums::read(path).map_err(|problem| format!("is damaged: {SUMS}: {}", problem.message))? else {
            return Ok(());
        };
        let small = if stored { &[SUMMARY, SCENARIO, FILES][..] } else { &[SUMMARY, SCENARIO] };
        if let Some(name) = small.iter().find(|name| !sums.contains_key(**name)) {
            return Err(format!("is damaged: {SUMS} has no {name}"));
        }
        for (name, sum) in sums.iter().filter(|(name, _)| all || small.contains(&name.as_str())) {
            let found = sums::sha256(&path.join(name)).map_err(|e| format!("is damaged: {name}: {e}"))?;
            if found != *sum {
                return Err(format!("is damaged: {name} has another SHA-256 than {SUMS} says"));
            }
        }
        Ok(())
    };
    check().err()
}

/// A run of a store, checked file by file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checked {
    /// Its name, a digest.
    pub name: String,
    /// Where it is.
    pub path: PathBuf,
    /// Whether there are digests of its files. Without, only lengths can be checked.
    pub digests: bool,
    /// What is wrong with it, if anything is.
    pub damage: Option<Problem>,
}

/// The folder of a store in which damaged runs are put aside.
pub const DAMAGED: &str = "damaged";

impl Store {
    /// The runs that are there, whole or not, by name.
    pub fn names(&self) -> Result<Vec<String>, Problem> {
        let remedy = "name the folder of a store, such as results/runs";
        let problem = |e| Problem::new(self.folder.display().to_string(), format!("cannot be read: {e}")).help(remedy);
        let mut names = Vec::new();
        for entry in fs::read_dir(&self.folder).map_err(problem)? {
            let name = entry.map_err(problem)?.file_name().to_string_lossy().into_owned();
            if is_digest(&name) {
                names.push(name);
            }
        }
        names.sort();
        Ok(names)
    }

    /// The run that a folder is, with a store around it that knows no other: what is left of its files says so, if it is damaged.
    pub fn of_run(folder: &Path) -> Option<(Store, String)> {
        let own = [SUMS, FILES, SUMMARY, SCENARIO].iter().filter(|name| folder.join(name).is_file()).count();
        // A folder of a sweep, or of anything else, may have one of these names.
        if own < 2 {
            return None;
        }
        let folder = folder.canonicalize().ok()?;
        let name = folder.file_name()?.to_str()?.to_string();
        Some((Store::new(folder.parent()?), name))
    }

    /// Whether a folder in which there are no runs may be a store all the same: it has nothing but what a store has.
    pub fn may_be_empty(&self) -> bool {
        let known = |name: &str| name.starts_with('.') || [crate::claims::FOLDER, DAMAGED].contains(&name);
        let mut entries = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        entries.all(|entry| known(&entry.file_name().to_string_lossy()))
    }

    /// Reads every file of a run and checks it.
    pub fn verify(&self, name: &str) -> Checked {
        let path = self.folder.join(name);
        let problem = |damage| Problem::new(path.display().to_string(), damage);
        let damage = damage(&path, true).map(problem);
        Checked { name: name.into(), digests: path.join(SUMS).exists(), damage, path }
    }

    /// Moves a run's folder away, so that the run is done again; says where it is now.
    pub fn put_aside(&self, name: &str) -> Result<PathBuf, Problem> {
        let aside = self.folder.join(DAMAGED);
        fs::create_dir_all(&aside).map_err(|e| files::refused(&aside, e))?;
        let places = (1..).map(|count| match count {
            1 => aside.join(name),
            _ => aside.join(format!("{name}.{count}")),
        });
        let place = places.into_iter().find(|place| !place.exists()).unwrap_or_default();
        fs::rename(self.folder.join(name), &place).map_err(|e| files::refused(&place, e))?;
        Ok(place)
    }
}

/// Reads a folder of results back, if it is not damaged.
pub fn open(folder: &Path) -> Result<Records, Problem> {
    sums::check(folder, |name| name != RECORDING && name != CAPTURE)?;
    records::open(folder)
}

/// Reads only the flows of a folder of results, if they are not damaged.
pub fn open_flows(folder: &Path) -> Result<Vec<FlowRow>, Problem> {
    sums::check(folder, |name| name == FLOWS)?;
    records::open_flows(folder)
}

/// The run whose input a folder holds, if this program gives it that name: the same code, and in `base` the same files
/// that the scenario names.
pub fn again(name: &str, folder: &Path, base: &Path) -> Option<Cell> {
    let path = folder.join(SCENARIO);
    let text = fs::read_to_string(&path).ok()?;
    let source = Source { name: path.display().to_string(), title: String::new(), text, base: base.into() };
    let grid = Grid { source, sets: vec![], variants: vec![], axes: vec![], seeds: vec![] };
    grid.plan().ok()?.into_iter().find(|cell| cell.digest.to_string() == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_code_has_another_digest_so_that_the_run_is_done_again() {
        let document = Document::parse("a", "topology.kind = \"star\"").unwrap();
        let by = |code: &str| Input::by(code, &document, Path::new("/nowhere"), &mut Known::new());
        assert_eq!(by("1"), by("1"));
        assert_eq!(by(run::code()), Input::new(&document, Path::new("/nowhere"), &mut Known::new()));
        assert_ne!(by("1").digest(), by("2").digest());
        let dir = tempfile::tempdir().unwrap();
        let store = Store::new(dir.path());
        let draft = store.draft(by("1").digest()).unwrap();
        draft.write(SCENARIO, by("1").text()).unwrap();
        draft.write(SUMMARY, "{}").unwrap();
        draft.publish().unwrap();
        assert!(matches!(store.lookup(by("1").digest()), Ok(Found::Whole(_))));
        assert_eq!(store.lookup(by("2").digest()), Ok(Found::Nothing));
    }
}
