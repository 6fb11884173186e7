//! A folder to work in, as people do.

use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::SystemTime;
use tempfile::TempDir;

/// Two flows into one host.
pub const STAR: &str = "\
[topology]
kind = \"star\"
hosts = 4
[[flow]]
src = \"h1\"
dst = \"h0\"
size = \"100KB\"
[[flow]]
src = \"h2\"
dst = \"h0\"
size = \"100KB\"
";

/// A folder of its own.
pub struct Desk(TempDir);

impl Desk {
    /// One with these files.
    pub fn with(files: &[(&str, &str)]) -> Desk {
        let desk = Desk(tempfile::tempdir().unwrap());
        files.iter().for_each(|(name, text)| fs::write(desk.path(name), text).unwrap());
        desk
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    pub fn command(&self, arguments: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tailwater"));
        command.args(arguments.split_whitespace()).current_dir(self.0.path());
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    fn tailwater(&self, arguments: &str) -> (Option<i32>, String, String) {
        answer(self.command(arguments).output().unwrap())
    }

    /// Runs it, and it must work. Gives what it printed, and said besides.
    #[track_caller]
    pub fn works(&self, arguments: &str) -> (String, String) {
        let (status, printed, said) = self.tailwater(arguments);
        assert_eq!(status, Some(0), "{arguments}: {said}");
        (printed, said)
    }

    /// Runs it, and it must refuse with a place and a remedy, and with the status that belongs to it.
    #[track_caller]
    pub fn refuses(&self, arguments: &str, place: &str) -> String {
        let (status, printed, said) = self.tailwater(arguments);
        assert_eq!((status, printed.as_str()), (Some(refusal(&said)), ""), "{arguments}: {said}");
        assert!(said.contains(&format!("error: {place}")), "{arguments}: no \"{place}\" in {said}");
        assert!(said.contains("\n  help: "), "{arguments}: no remedy in {said}");
        said
    }

    /// What is below a folder.
    pub fn bytes(&self, folder: &str) -> BTreeMap<PathBuf, Vec<u8>> {
        contents(&self.path(folder)).into_iter().map(|(path, (bytes, _))| (path, bytes)).collect()
    }
}

/// The status of a refusal: 2 where nothing but options is at fault, and otherwise 1.
pub fn refusal(said: &str) -> i32 {
    let errors = || said.lines().filter_map(|line| line.strip_prefix("error: "));
    if errors().count() > 0 && errors().all(|error| error.starts_with('-')) { 2 } else { 1 }
}

/// What a process answered, printed, and said besides.
pub fn answer(output: Output) -> (Option<i32>, String, String) {
    let text = |bytes| String::from_utf8(bytes).expect("what is printed is UTF-8");
    let said = text(output.stderr);
    assert!(!said.contains("panicked"), "{said}");
    (output.status.code(), text(output.stdout), said)
}

/// Every file below a folder with its content, what runs cost and its digest left out, and when it was written.
pub fn contents(folder: &Path) -> BTreeMap<PathBuf, (Vec<u8>, SystemTime)> {
    let mut found = BTreeMap::new();
    let mut open = vec![folder.to_path_buf()];
    while let Some(next) = open.pop() {
        for entry in fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path.clone());
            }
            let mut bytes = fs::read(&path).unwrap_or_default();
            if path.ends_with("summary.json") {
                let mut summary: Value = serde_json::from_slice(&bytes).unwrap();
                assert!(summary["cost"].take().is_object());
                bytes = summary.to_string().into_bytes();
            }
            if path.ends_with("SHA256SUMS") {
                let text = String::from_utf8(bytes).unwrap();
                bytes = text.lines().filter(|line| !line.ends_with("  summary.json")).collect::<String>().into_bytes();
            }
            let written = fs::metadata(&path).unwrap().modified().unwrap();
            found.insert(path.strip_prefix(folder).unwrap().to_path_buf(), (bytes, written));
        }
    }
    found
}
