//! Where a comparison goes, so that it takes the place of no other.

pub use files::COMPARISON;
use files::problem::Problem;
use results::comparison::SCHEME;
use serde_json::{Value, json};
use std::path::{Component, Path, PathBuf};
use store::grid::Grid;

/// The most comparisons of one scenario that get a folder by themselves.
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

/// The command that gave another comparison than `own`, if that is what a folder has.
fn other(folder: &Path, own: &Value) -> Option<String> {
    let text = std::fs::read_to_string(folder.join(COMPARISON)).ok()?;
    // One that is damaged is written anew.
    let found: Value = serde_json::from_str(&text).ok()?;
    let differs = |key: &str| !found[key].is_null() && found[key] != own[key];
    let command = || found["command"].as_str().unwrap_or("of another command").to_string();
    ["file", "axes", "sets"].into_iter().any(differs).then(command)
}

/// The folder of a comparison: the one that was asked for, or one of `usual` and numbers after it that has no other comparison. With a note where
/// it is not the usual one.
pub fn of(
    asked: Option<&Path>,
    usual: &Path,
    own: &Value,
    replace: bool,
) -> Result<(PathBuf, Option<String>), Problem> {
    let folder = asked.unwrap_or(usual);
    let Some(command) = other(folder, own).filter(|_| !replace) else { return Ok((folder.into(), None)) };
    if asked.is_some() {
        let problem = Problem::new(folder.display().to_string(), format!("has another comparison: {command}"));
        return Err(problem.help("choose another folder with --out, or give it up with --replace"));
    }
    let numbered = |number: usize| PathBuf::from(format!("{}-{number}", usual.display()));
    let free = (2..=MOST).map(numbered).find(|folder| other(folder, own).is_none()).ok_or_else(|| {
        let problem = Problem::new(usual.display().to_string(), format!("and {MOST} more have other comparisons"));
        problem.help("choose a folder with --out, or remove some of them")
    })?;
    let (from, to) = (usual.display(), free.display());
    let note = format!("{from} has another comparison; this one goes to {to} (--replace or --out change that)");
    Ok((free, Some(note)))
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
        let place = |own: &Value| of(None, &usual, own, false).unwrap().0;
        assert_eq!(place(&one), usual);
        keep(&usual, &one);
        assert_eq!(place(&one), usual);
        let second = desk.path().join("compare-a-2");
        assert_eq!(place(&two), second);
        keep(&second, &two);
        assert_eq!((place(&one), place(&two)), (usual.clone(), second.clone()));
        assert_eq!(of(None, &usual, &two, true).unwrap().0, usual);
        let refused = of(Some(&usual), &usual, &two, false).unwrap_err();
        assert!(refused.message.contains("has another comparison: tailwater compare a.toml"), "{refused}");
        assert!(refused.help.as_deref().unwrap().contains("--replace"), "{refused}");
        // What is damaged, and what earlier versions wrote, is no other comparison.
        std::fs::write(second.join(COMPARISON), "{").unwrap();
        assert_eq!(of(Some(&second), &usual, &one, false).unwrap().0, second);
    }
}
