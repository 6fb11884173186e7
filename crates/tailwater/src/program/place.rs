//! Where a comparison or a sweep goes, so that it takes the place of no other.

use crate::program::planned::{SPEC, SWEEP};
use crate::program::progress;
pub use files::COMPARISON;
use files::Claim;
use files::problem::Problem;
use results::comparison::SCHEME;
use serde_json::{Value, json};
use std::path::{Component, Path, PathBuf};
use store::grid::Grid;

/// The most comparisons or sweeps of one name that get a folder by themselves.
const MOST: usize = 1000;

/// What a comparison is known by: its scenario's file, what it varies, and what it changes. Seeds are not part of it: more of them make
/// the same comparison better.
pub fn identity(scenario: &Path, grid: &Grid) -> Value {
    json!({ "file": file(scenario), "axes": axes(grid), "sets": grid.sets })
}

/// The scenario's file, as `comparison.json` names it.
pub fn file(scenario: &Path) -> String {
    scenario.components().filter(|part| *part != Component::CurDir).collect::<PathBuf>().display().to_string()
}

/// What is compared and varied, as `comparison.json` has it.
pub fn axes(grid: &Grid) -> Value {
    let mut axes: Vec<Value> =
        grid.axes.iter().map(|axis| json!({ "name": axis.key, "values": axis.values })).collect();
    if !grid.variants.is_empty() {
        let names: Vec<&String> = grid.variants.iter().map(|variant| &variant.name).collect();
        axes.insert(0, json!({ "name": SCHEME, "values": names }));
    }
    axes.into()
}

/// What is put into a folder of its own.
#[derive(Clone, Copy, PartialEq)]
pub enum Kind {
    /// A comparison, which is known by what [`identity`] says.
    Comparison,
    /// A sweep, which is known by its file, and by what that says.
    Sweep,
}

impl Kind {
    fn word(self) -> &'static str {
        match self {
            Kind::Comparison => "comparison",
            Kind::Sweep => "sweep",
        }
    }

    /// The command that gave another of its kind than `own`, if that is what a folder has.
    fn other(self, folder: &Path, own: &Value) -> Option<String> {
        let mark = if self == Kind::Comparison { COMPARISON } else { SWEEP };
        let text = std::fs::read_to_string(folder.join(mark)).ok()?;
        // One that is damaged is written anew.
        let found: Value = serde_json::from_str(&text).ok()?;
        let differs = |key: &str| !found[key].is_null() && found[key] != own[key];
        let command = || found["command"].as_str().unwrap_or("of another command").to_string();
        let other = match self {
            Kind::Comparison => ["file", "axes", "sets"].into_iter().any(differs),
            // A file that was moved is the same sweep, and so is one that was edited.
            Kind::Sweep => {
                let text = std::fs::read_to_string(folder.join(SPEC)).ok();
                differs("file") && text.as_deref() != own["text"].as_str()
            }
        };
        other.then(command)
    }
}

/// What a sweep is known by.
pub fn sweep_identity(spec: &Path, text: &str) -> Value {
    json!({ "file": file(spec), "text": text })
}

/// Who asks for a folder.
pub struct Place<'a> {
    /// What is to go there.
    pub kind: Kind,
    /// The folder that was asked for.
    pub asked: Option<&'a Path>,
    /// The one to be had without asking, or with a number after it.
    pub usual: &'a Path,
    /// What the comparison or the sweep is known by.
    pub own: &'a Value,
    /// Whether another gives way.
    pub replace: bool,
    /// Whether nothing is said.
    pub quiet: bool,
}

impl Place<'_> {
    /// The folder: the one that was asked for, or one of `usual` and numbers after it that has no other.
    pub fn find(&self) -> Result<PathBuf, Problem> {
        self.find_but(&[])
    }

    /// The same, not one of these.
    fn find_but(&self, busy: &[PathBuf]) -> Result<PathBuf, Problem> {
        let word = self.kind.word();
        let folder = self.asked.unwrap_or(self.usual);
        let other = |folder: &Path| self.kind.other(folder, self.own);
        let command = match other(folder) {
            _ if busy.iter().any(|busy| busy == folder) => "one that is under way".into(),
            Some(command) if !self.replace => command,
            _ => return Ok(folder.into()),
        };
        if self.asked.is_some() || self.replace {
            let problem = Problem::new(folder.display().to_string(), format!("has another {word}: {command}"));
            return Err(problem.help(match self.kind {
                _ if self.replace => "wait for it, or choose another folder with --out",
                Kind::Comparison => "choose another folder with --out, or give it up with --replace",
                Kind::Sweep => "choose another folder with --out, or move that one away",
            }));
        }
        let numbered = |number: usize| PathBuf::from(format!("{}-{number}", self.usual.display()));
        let free = |folder: &PathBuf| other(folder).is_none() && !busy.contains(folder);
        let free = (2..=MOST).map(numbered).find(free).ok_or_else(|| {
            let message = format!("and {MOST} more have other {word}s");
            let problem = Problem::new(self.usual.display().to_string(), message);
            problem.help("choose a folder with --out, or remove some of them")
        })?;
        Ok(free)
    }

    /// Notes that a folder is not the usual one.
    fn note(&self, folder: &Path) {
        if self.quiet || self.asked.is_some() || folder == self.usual {
            return;
        }
        let (usual, folder, word) = (self.usual.display(), folder.display(), self.kind.word());
        let change = if self.kind == Kind::Comparison { "--replace or --out change" } else { "--out changes" };
        progress::note(&format!("{usual} has another {word}; this one goes to {folder} ({change} that)"));
    }

    /// Makes the folder, and keeps others that started at the same time from filling it with something else. `before` is what
    /// [`Place::find`] gave.
    pub fn claim(&self, before: &Path) -> Result<(PathBuf, Claim), Problem> {
        let (mut folder, mut busy) = (before.to_owned(), Vec::new());
        loop {
            files::make_folder(&folder)?;
            files::sweep(&folder);
            let claim = Claim::lay(&folder, &self.own.to_string())?;
            match claim.filter(|_| self.replace || self.kind.other(&folder, self.own).is_none()) {
                Some(claim) => {
                    self.note(&folder);
                    return Ok((folder, claim));
                }
                None => busy.push(folder),
            }
            folder = self.find_but(&busy)?;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use store::grid::{Source, Variant};

    #[test]
    fn a_comparison_takes_the_place_of_none_but_itself() {
        let desk = tempfile::tempdir().unwrap();
        let usual = desk.path().join("compare-a");
        let of_scheme = |file: &str, name: &str| {
            let source = Source { name: "a.toml".into(), title: "a".into(), text: String::new(), base: PathBuf::new() };
            let variants = vec![Variant { name: name.into(), sets: Vec::new() }];
            identity(Path::new(file), &Grid { source, sets: Vec::new(), variants, axes: Vec::new(), seeds: Vec::new() })
        };
        let (one, two) = (of_scheme("./a.toml", "pfc"), of_scheme("a.toml", "hpcc"));
        let keep = |folder: &Path, own: &Value| {
            std::fs::create_dir_all(folder).unwrap();
            let mut own = own.clone();
            own["command"] = json!("tailwater compare a.toml");
            std::fs::write(folder.join(COMPARISON), own.to_string()).unwrap();
        };
        let of = |asked: Option<&Path>, own: &Value, replace: bool| {
            Place { kind: Kind::Comparison, asked, usual: &usual, own, replace, quiet: true }.find()
        };
        let place = |own: &Value| of(None, own, false).unwrap();
        assert_eq!(place(&one), usual);
        keep(&usual, &one);
        assert_eq!(place(&one), usual);
        let second = desk.path().join("compare-a-2");
        assert_eq!(place(&two), second);
        keep(&second, &two);
        assert_eq!((place(&one), place(&two)), (usual.clone(), second.clone()));
        assert_eq!(of(None, &two, true).unwrap(), usual);
        let refused = of(Some(&usual), &two, false).unwrap_err();
        assert!(refused.message.contains("has another comparison: tailwater compare a.toml"), "{refused}");
        assert!(refused.help.as_deref().unwrap().contains("--replace"), "{refused}");
        // What is damaged, and what earlier versions wrote, is no other comparison.
        std::fs::write(second.join(COMPARISON), "{").unwrap();
        assert_eq!(of(Some(&second), &one, false).unwrap(), second);
    }

    #[test]
    fn two_that_start_at_once_get_two_folders() {
        let desk = tempfile::tempdir().unwrap();
        let usual = desk.path().join("sweep-job");
        let (one, two) = (sweep_identity(Path::new("a/job.toml"), "1"), sweep_identity(Path::new("b/job.toml"), "2"));
        let place = |own, asked| Place { kind: Kind::Sweep, asked, usual: &usual, own, replace: false, quiet: true };
        let claim = |own, asked| place(own, asked).claim(&place(own, asked).find().unwrap());
        let (first, held) = claim(&one, None).unwrap();
        let (second, other) = claim(&two, None).unwrap();
        assert_eq!((&first, second), (&usual, desk.path().join("sweep-job-2")));
        let problem = claim(&two, Some(&usual)).unwrap_err();
        assert!(problem.message.contains("another sweep: one that is under way"), "{problem}");
        // The same sweep may be written by several.
        assert_eq!(claim(&one, None).unwrap().0, usual);
        drop((held, other));
        // What was written while the other looked elsewhere stays.
        std::fs::write(usual.join(SWEEP), one.to_string()).unwrap();
        std::fs::write(usual.join(SPEC), "1").unwrap();
        assert_eq!(place(&two, None).claim(&usual).unwrap().0, desk.path().join("sweep-job-2"));
        // One whose file was moved, or edited, is the same.
        for (file, text) in [("c/job.toml", "1"), ("./a/job.toml", "3")] {
            let own = sweep_identity(Path::new(file), text);
            let place = Place { kind: Kind::Sweep, asked: None, usual: &usual, own: &own, replace: false, quiet: true };
            assert_eq!(place.find().unwrap(), usual);
        }
    }
}
