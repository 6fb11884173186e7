//! The book: commands that its pages show are run, and print what the pages say.
//!
//! A block of code that is called `console` has commands after `$ `, each with what it prints below. `$ ` commands of a page are run one after the other
//! in a folder with the examples, and with the files that the page shows in blocks called `toml,file=NAME` or the like. With `REWRITE_GOLDEN=1` the pages get what the
//! commands print now.

use crate::patience;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The part of a line that is the same on every machine: all, but for how long a run took.
fn same_everywhere(line: &str) -> &str {
    line.split_once(" packet-hops in ").map_or(line, |(before, _)| before).trim_end()
}

/// A page's folder, with everything that its commands need.
fn folder(root: &Path) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir_all(folder.path().join("examples/sweeps")).unwrap();
    for part in ["examples", "examples/sweeps"] {
        for entry in fs::read_dir(root.join(part)).unwrap() {
            let path = entry.unwrap().path();
            if path.is_file() {
                fs::copy(&path, folder.path().join(part).join(path.file_name().unwrap())).unwrap();
            }
        }
    }
    folder
}

/// What a command prints, as in a shell.
fn printed(command: &str, folder: &Path) -> String {
    let program = Path::new(env!("CARGO_BIN_EXE_tailwater")).parent().unwrap();
    let path = format!("{}:{}", program.display(), std::env::var("PATH").unwrap_or_default());
    let mut shell = Command::new("sh");
    shell.args(["-c", command]).current_dir(folder).env("PATH", path).envs([("COLUMNS", "100"), ("LC_ALL", "C")]);
    let child = shell.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let output = patience::output(command, child);
    // What goes on while a command works is not shown; what it refuses is.
    let (out, said) = (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
    let said = if output.status.success() { String::new() } else { said };
    assert!(!said.contains("panicked"), "{command}: {said}");
    format!("{out}{said}")
}

/// A page with what its commands print now.
fn refreshed(page: &str, folder: &Path) -> String {
    let (mut out, mut lines) = (String::new(), page.lines().peekable());
    while let Some(line) = lines.next() {
        out += &format!("{line}\n");
        if let Some((_, name)) = line.split_once(",file=").filter(|(before, _)| before.starts_with("```")) {
            let mut text = String::new();
            while let Some(line) = lines.next_if(|line| *line != "```") {
                text += &format!("{line}\n");
            }
            fs::write(folder.join(name), &text).unwrap();
            out += &text;
        }
        if line == "```console" {
            while let Some(line) = lines.next_if(|line| *line != "```") {
                out += &format!("{line}\n");
                let Some(command) = line.strip_prefix("$ ") else { continue };
                let mut command = command.to_string();
                while command.ends_with('\\') {
                    let more = lines.next().unwrap_or_default();
                    out += &format!("{more}\n");
                    command = format!("{}{more}", command.trim_end_matches('\\'));
                }
                let mut shown = Vec::new();
                while let Some(line) = lines.next_if(|line| *line != "```" && !line.starts_with("$ ")) {
                    shown.push(line);
                }
                let now = printed(&command, folder);
                let now: Vec<&str> = now.trim_end().lines().map(str::trim_end).collect();
                let alike = |a: &[&str], b: &[&str]| {
                    a.iter().map(|line| same_everywhere(line)).eq(b.iter().map(|line| same_everywhere(line)))
                };
                // Lines that differ only by how long something took stay as they are.
                let kept = if alike(&shown, &now) { shown } else { now };
                kept.iter().for_each(|line| out += &format!("{line}\n"));
            }
        }
    }
    out
}

#[test]
fn commands_that_pages_show_print_what_the_pages_say() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut pages: Vec<PathBuf> = vec![root.join("docs/start.md"), root.join("docs/hardware.md")];
    pages.extend(fs::read_dir(root.join("docs/guides")).unwrap().map(|entry| entry.unwrap().path()));
    pages.sort();
    let mut commands = 0;
    for page in pages {
        let text = fs::read_to_string(&page).unwrap();
        commands += text.lines().filter(|line| line.starts_with("$ ")).count();
        let fresh = refreshed(&text, folder(&root).path());
        if std::env::var_os("REWRITE_GOLDEN").is_some() {
            fs::write(&page, &fresh).unwrap();
        } else if let Some((place, (now, shown))) =
            fresh.lines().zip(text.lines()).enumerate().find(|(_, (a, b))| a != b)
        {
            let (name, line) = (page.display(), place + 1);
            panic!(
                "{name}:{line}:\n  the page says {shown}\n  it is         {now}\nif that is meant: REWRITE_GOLDEN=1 cargo test -p tailwater --test all book::"
            );
        } else {
            assert_eq!(fresh, text, "{}", page.display());
        }
    }
    assert!(commands >= 20, "{commands} commands");
}
