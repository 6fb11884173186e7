//! The program with the schemes of this crate, as people use it.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const PROGRAM: &str = env!("CARGO_BIN_EXE_own-scheme");

fn example(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(name)
}

fn said(output: Output) -> String {
    let said = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    said
}

#[test]
fn a_comparison_has_the_schemes_of_this_crate_beside_others_and_repeats_no_run() {
    let dir = tempfile::tempdir().unwrap();
    let compare = || {
        let mut command = Command::new(PROGRAM);
        command.arg("compare").arg(example("incast.toml")).args(["--schemes", "own,pfc", "--seeds", "1"]);
        said(command.current_dir(dir.path()).output().unwrap())
    };
    let first = compare();
    assert!(
        first.lines().any(|line| line.contains("own")) && first.lines().any(|line| line.contains("pfc")),
        "{first}"
    );
    assert!(first.contains("2 new"), "{first}");
    let again = compare();
    assert!(again.contains("0 new"), "{again}");
}

#[test]
#[cfg(unix)]
fn the_tasks_of_a_slurm_array_are_this_program_and_know_its_schemes() {
    use std::os::unix::fs::PermissionsExt;
    let dir = tempfile::tempdir().unwrap();
    // A cluster of one machine, which does a task as soon as it is submitted.
    for (name, text) in [
        ("sbatch", "#!/bin/sh\nfor script; do :; done\nSLURM_ARRAY_TASK_ID=1 sh \"$script\" >&2 && echo 1\n"),
        ("squeue", "#!/bin/sh\nexit 0\n"),
        ("scontrol", "#!/bin/sh\nexit 1\n"),
    ] {
        let path = dir.path().join(name);
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    let sweep =
        format!("scenario = \"{}\"\nseeds = 1\nschemes = [\"own\", \"pfc\"]\n", example("incast.toml").display());
    std::fs::write(dir.path().join("sweep.toml"), sweep).unwrap();
    let path = format!("{}:{}", dir.path().display(), std::env::var("PATH").unwrap());
    let mut command = Command::new(PROGRAM);
    command.args(["sweep", "sweep.toml", "--store", "runs", "--out", "out", "--on", "slurm", "--tasks", "1"]);
    let said = said(command.env("PATH", path).current_dir(dir.path()).output().unwrap());
    let script = std::fs::read_to_string(dir.path().join("out/slurm/job.sh")).unwrap();
    let program = Path::new(PROGRAM).canonicalize().unwrap();
    assert!(script.contains(&format!("exec {} sweep", program.display())), "{script}");
    let table = std::fs::read_to_string(dir.path().join("out/sweep.json")).unwrap();
    assert!(table.contains("\"own\""), "{said}{table}");
}
