//! Puts the files of `experiments/` and `published/` into the program, as lists of ids and texts.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

fn main() -> io::Result<()> {
    let root = Path::new(&env::var("CARGO_MANIFEST_DIR").map_err(io::Error::other)?).join("../..");
    let code = embedded("EXPERIMENTS", "Every experiment: its id and its file.", &root.join("experiments"), "toml")?
        + &embedded("PUBLISHED", "Every published result: its id and its file.", &root.join("published"), "json")?;
    fs::write(Path::new(&env::var("OUT_DIR").map_err(io::Error::other)?).join("embedded.rs"), code)
}

/// The code of a list of the files below a folder that end so.
fn embedded(name: &str, about: &str, folder: &Path, ending: &str) -> io::Result<String> {
    println!("cargo::rerun-if-changed={}", folder.display());
    let mut files = Vec::new();
    list(folder, ending, &mut files)?;
    files.sort_by_key(|file| natural(&file.to_string_lossy()));
    let mut code = format!("/// {about}\nconst {name}: &[(&str, &str)] = &[\n");
    for file in files {
        let inside = file.strip_prefix(folder).map_err(io::Error::other)?.with_extension("");
        let id: Vec<_> = inside.iter().map(|part| part.to_string_lossy()).collect();
        let path = file.canonicalize()?;
        writeln!(code, "    ({:?}, include_str!({:?})),", id.join("/"), path.display().to_string())
            .map_err(io::Error::other)?;
    }
    Ok(code + "];\n")
}

/// A key that puts fig2 before fig10: runs of digits are filled up with zeros.
fn natural(text: &str) -> String {
    let (mut key, mut digits) = (String::new(), String::new());
    for c in text.chars().chain(['/']) {
        if c.is_ascii_digit() {
            digits.push(c);
            continue;
        }
        if !digits.is_empty() {
            key += &format!("{digits:0>9}");
            digits.clear();
        }
        key.push(c);
    }
    key
}

/// All files below a folder that end so.
fn list(folder: &Path, ending: &str, files: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            list(&path, ending, files)?;
        } else if path.extension().is_some_and(|extension| extension == ending) {
            files.push(path);
        }
    }
    Ok(())
}
