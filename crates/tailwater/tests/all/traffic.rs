//! `tailwater traffic` as people use it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use tempfile::TempDir;

fn desk(tables: &str) -> TempDir {
    let desk = tempfile::tempdir().unwrap();
    let text = format!("[topology]\nkind = \"star\"\nhosts = 4\n{tables}");
    fs::write(desk.path().join("a.toml"), text).unwrap();
    desk
}

fn tailwater(desk: &Path, arguments: &[&str]) -> Output {
    let output = Command::new(env!("CARGO_BIN_EXE_tailwater")).args(arguments).current_dir(desk).output().unwrap();
    assert!(!text(&output.stderr).contains("panicked"), "{}", text(&output.stderr));
    output
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

#[track_caller]
fn works(desk: &Path, arguments: &[&str]) -> String {
    let output = tailwater(desk, arguments);
    assert!(output.status.success(), "{}", text(&output.stderr));
    text(&output.stdout)
}

#[track_caller]
fn refuses(desk: &Path, arguments: &[&str], message: &str) {
    let output = tailwater(desk, arguments);
    let problem = text(&output.stderr);
    assert_eq!(output.status.code(), Some(crate::desk::refusal(&problem)), "{problem}");
    assert!(problem.contains(message) && problem.contains("\n  help: "), "{problem}");
    assert_eq!(text(&output.stdout), "");
}

fn files(desk: &Path) -> Vec<PathBuf> {
    fs::read_dir(desk).unwrap().map(|entry| entry.unwrap().path()).collect()
}

const LOAD: &str = "[[load]]\nsizes = \"hadoop\"\nload = 0.5\nduration = \"200us\"\n";

#[test]
fn flows_are_printed_written_and_run_again() {
    let desk = desk(LOAD);
    let desk = desk.path();
    let printed = works(desk, &["traffic", "a.toml"]);
    assert!(printed.starts_with("src,dst,size_bytes,start_ns,class,group\n") && printed.contains(",load\n"));
    assert!(printed.lines().count() > 10);
    assert_eq!(works(desk, &["traffic", "a.toml", "--out", "flows.csv"]), "");
    assert_eq!(fs::read_to_string(desk.join("flows.csv")).unwrap(), printed);
    assert_eq!(files(desk).len(), 2, "nothing else is left behind");
    assert_ne!(works(desk, &["traffic", "a.toml", "--set", "seed=2"]), printed);
    assert_eq!(works(desk, &["traffic", "a.toml", "--set", "scheme.preset=hpcc"]), printed);

    fs::write(desk.join("b.toml"), "[topology]\nkind = \"star\"\nhosts = 4\n[traffic]\ntrace = \"flows.csv\"\n")
        .unwrap();
    assert_eq!(works(desk, &["traffic", "b.toml"]), printed);
    for name in ["a", "b"] {
        works(desk, &["run", &format!("{name}.toml"), "--out", name, "-q"]);
    }
    let flows = |name: &str| fs::read(desk.join(name).join("flows.parquet")).unwrap();
    assert!(flows("a") == flows("b"), "a run of the trace is the run of the scenario");
}

#[test]
fn the_other_simulators_flow_file_runs() {
    let desk = desk(LOAD);
    let desk = desk.path();
    works(desk, &["traffic", "a.toml", "--format", "ns3", "--out", "flow.txt"]);
    let links: String = (0..4).map(|host| format!("{host} 4 100Gbps 0.001ms 0\n")).collect();
    fs::write(desk.join("topology.txt"), format!("5 1 4\n4\n{links}")).unwrap();
    fs::write(desk.join("trace.txt"), "0\n").unwrap();
    let config = "TOPOLOGY_FILE topology.txt\nFLOW_FILE flow.txt\nTRACE_FILE trace.txt\nFCT_OUTPUT_FILE fct.txt\n\
                  PFC_OUTPUT_FILE pfc.txt\nENABLE_QCN 1\nPACKET_PAYLOAD_SIZE 1000\nSIMULATOR_STOP_TIME 2.5\nCC_MODE 1\n\
                  ALPHA_RESUME_INTERVAL 1\nRATE_DECREASE_INTERVAL 4\nRP_TIMER 300\nEWMA_GAIN 0.00390625\n\
                  FAST_RECOVERY_TIMES 1\nRATE_AI 20Mb/s\nRATE_HAI 200Mb/s\nMIN_RATE 1000Mb/s\nL2_ACK_INTERVAL 1\n\
                  HAS_WIN 1\nVAR_WIN 1\nENABLE_TRACE 0\nKMAX_MAP 1 100000000000 1600\nKMIN_MAP 1 100000000000 400\n\
                  PMAX_MAP 1 100000000000 0.2\nBUFFER_SIZE 12\n";
    fs::write(desk.join("config.txt"), config).unwrap();
    works(desk, &["ns3", "config.txt", "-q"]);
    let flows = fs::read_to_string(desk.join("flow.txt")).unwrap().lines().count() - 1;
    assert_eq!(fs::read_to_string(desk.join("fct.txt")).unwrap().lines().count(), flows);
}

#[test]
fn the_groups_are_described() {
    let desk = desk(&format!("{LOAD}[[long]]\nto = \"h0\"\nleave = \"1ms\"\nname = \"background\"\n"));
    let table = works(desk.path(), &["traffic", "a.toml", "--describe"]);
    let rows: Vec<Vec<&str>> = table.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!((rows[1][0], rows[2][0], rows[2][1], rows[2][2]), ("load", "background", "1", "-"), "{table}");
    assert_eq!(rows[1][4], "120.4KB", "{table}");
    assert_eq!(files(desk.path()).len(), 1);
    works(desk.path(), &["traffic", "a.toml", "--describe", "--out", "flows.csv"]);
    assert_eq!(files(desk.path()).len(), 2);
    let sheet = works(desk.path(), &["check", "a.toml"]);
    assert!(
        sheet.contains("\ngroup           load: ") && sheet.contains("\ngroup           background: 1 flow"),
        "{sheet}"
    );
}

#[test]
fn what_cannot_be_written_is_refused_and_leaves_nothing() {
    let desk = desk(&format!("{LOAD}[[long]]\nto = \"h0\"\nleave = \"1ms\"\n"));
    refuses(desk.path(), &["traffic", "a.toml", "--format", "ns3", "--out", "flow.txt"], "a.toml:8:1");
    refuses(desk.path(), &["traffic", "a.toml", "--out", "nowhere/flow.csv"], "cannot be written");
    refuses(desk.path(), &["traffic", "a.toml", "--set", "load.0.load=0"], "--set load.0.load=0");
    refuses(desk.path(), &["traffic", "b.toml"], "b.toml");
    assert_eq!(files(desk.path()).len(), 1);
}
