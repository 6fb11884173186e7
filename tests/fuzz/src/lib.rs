//! Every reader with any bytes, and what must hold of what it makes of them.
//!
//! A [`Target`] takes bytes, hands them to one reader and panics where a promise is broken: nothing panics, a refusal says
//! something and points at a line that is there, what is accepted is written and read back the same where there is a writer.
//! Nothing is simulated. `tests/fuzz/run.sh` lets libFuzzer choose the bytes; the tests here replay the ones that were kept.
//! An input of several files has lines `%%` between them.

mod foreign;
mod ledgers;
mod outputs;
mod scenarios;
pub mod seeds;
mod web;

use files::problem::Problem;
use std::path::PathBuf;
use std::sync::LazyLock;

/// A reader, and what is asked of it.
#[derive(Debug)]
pub struct Target {
    /// Its name: that of its folder in the corpus.
    pub name: &'static str,
    /// What it reads.
    pub about: &'static str,
    /// Reads. Panics where a promise is broken.
    pub run: fn(&[u8]),
}

const fn target_of(name: &'static str, about: &'static str, run: fn(&[u8])) -> Target {
    Target { name, about, run }
}

/// All of them.
pub const TARGETS: &[Target] = &[
    target_of("document", "TOML and --set: canonical text, values, tables", scenarios::document),
    target_of("scenario", "a scenario, its --set, and the files that it names", scenarios::scenario),
    target_of("schema", "a scenario that is read, against the JSON Schema", scenarios::schema),
    target_of("graph", "a graph file", scenarios::graph),
    target_of("trace", "a trace of flows", scenarios::trace),
    target_of("sizes", "a table of sizes (a CDF)", scenarios::sizes),
    target_of("sweep", "a sweep's file, and its plan", scenarios::sweep),
    target_of("vary", "what follows --vary, --seeds and --schemes", scenarios::vary),
    target_of("experiment", "an experiment of the ledger", ledgers::experiment),
    target_of("expression", "an expression of the ledger", ledgers::expression),
    target_of("published", "a published result", ledgers::published),
    target_of("ns3-config", "ns-3's configuration", foreign::config),
    target_of("ns3-topology", "ns-3's topology", foreign::topology),
    target_of("ns3-flows", "ns-3's flows", foreign::flows),
    target_of("ns3-trace", "ns-3's traced nodes", foreign::trace),
    target_of("ns3", "ns-3's four files together, translated", foreign::ns3),
    target_of("ns3-forks", "the same in the form of its forks", foreign::forks),
    target_of("ns3-sizes", "PowerTCP's and Floodgate's tables of sizes", foreign::sizes),
    target_of("ns3-windows", "Floodgate's switches with windows", foreign::windows),
    target_of("goal", "a schedule in GOAL", foreign::goal),
    target_of("chakra", "Chakra's traces of up to four ranks", foreign::chakra),
    target_of("htsim", "htsim's connection matrix, and its topology", foreign::htsim),
    target_of("htsim-line", "uet-htsim's command line, with both", foreign::htsim_line),
    target_of("simccl", "a list of flows of SimCCL", foreign::simccl),
    target_of("recording", "a recording", outputs::recording),
    target_of("table", "a Parquet table of results, without its digest", outputs::table),
    target_of("figures", "the same, drawn", outputs::figures),
    target_of("summary", "a summary, compared and drawn", outputs::summary),
    target_of("store", "a run's folder in a store, and a claim on it", outputs::store),
    target_of("connection", "what a studio is sent over a connection", web::connection),
    target_of("request", "a request of the studio: method, path and body", web::request),
    target_of("job", "what a studio finds in its workspace", web::job),
    target_of("query", "a query for rows of flows", web::query),
];

/// The target of that name.
pub fn target(name: &str) -> Option<&'static Target> {
    TARGETS.iter().find(|target| target.name == name)
}

/// The names of all targets.
pub fn names() -> Vec<&'static str> {
    TARGETS.iter().map(|target| target.name).collect()
}

/// Makes the schemes known.
fn install() {
    static ONCE: LazyLock<()> = LazyLock::new(schemes::install);
    LazyLock::force(&ONCE);
}

/// What the folders of these processes begin with.
const FOLDER: &str = "tailwater-fuzz-";

/// Where they are: in memory, if there is a file system for that. A process that a fuzzer ends leaves its own behind, so that each removes those
/// of processes that are no more.
static BASE: LazyLock<PathBuf> = LazyLock::new(|| {
    let memory = PathBuf::from("/dev/shm");
    let base = if memory.is_dir() { memory } else { std::env::temp_dir() };
    // Elsewhere than on Linux nobody says which processes there are.
    let known = std::path::Path::new("/proc/self");
    for entry in std::fs::read_dir(&base).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let process = name.strip_prefix(FOLDER).and_then(|rest| rest.split('-').next());
        let gone = |process: &str| known.exists() && !known.with_file_name(process).exists();
        if process.is_some_and(gone) {
            _ = std::fs::remove_dir_all(entry.path());
        }
    }
    base
});

/// A folder of this process.
fn folder(name: &str) -> PathBuf {
    let folder = BASE.join(format!("{FOLDER}{}-{name}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    folder
}

/// The bytes as so many texts. Readers of files refuse what is not UTF-8 before anything else.
fn parts<const N: usize>(bytes: &[u8]) -> Option<[&str; N]> {
    let mut rest = Some(std::str::from_utf8(bytes).ok()?);
    let mut part = || {
        let text = rest.unwrap_or_default();
        let (first, left) = match text.strip_prefix("%%\n") {
            Some(left) => ("", Some(left)),
            None => text.split_once("\n%%\n").map_or((text, None), |(first, left)| (first, Some(left))),
        };
        rest = left;
        first
    };
    Some(std::array::from_fn(|_| part()))
}

/// The bytes as so many files, which need not be texts.
fn pieces(bytes: &[u8], most: usize) -> Vec<&[u8]> {
    const BETWEEN: &[u8] = b"\n%%\n";
    let mut found = Vec::new();
    let mut rest = bytes;
    while found.len() + 1 < most
        && let Some(at) = rest.windows(BETWEEN.len()).position(|window| window == BETWEEN)
    {
        found.push(&rest[..at]);
        rest = &rest[at + BETWEEN.len()..];
    }
    found.push(rest);
    found
}

/// A refusal says something, and points at a character that is there. `texts` are the files by name.
fn has_a_place(problem: &Problem, texts: &[(&str, &str)]) {
    assert!(!problem.message.is_empty(), "{problem}");
    let shown = problem.to_string();
    assert!(shown.contains(&problem.message), "{shown}");
    let Some((_, text)) = texts.iter().find(|(name, _)| *name == problem.file) else { return };
    assert!(shown.starts_with(&problem.file), "{shown}");
    let Some(line) = problem.line else { return };
    let lines: Vec<&str> = text.split('\n').collect();
    assert!((1..=lines.len()).contains(&line), "{} lines: {shown}", lines.len());
    let length = lines[line - 1].chars().count();
    assert!(problem.column.is_none_or(|column| (1..=length + 1).contains(&column)), "{length} characters: {shown}");
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;
    use std::sync::Mutex;
    use std::time::{Duration, Instant};

    /// Targets share folders: those who run them take turns.
    static TURN: Mutex<()> = Mutex::new(());

    fn corpus() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus")
    }

    #[test]
    fn what_was_kept_of_every_target_is_still_read_or_refused() {
        let _turn = TURN.lock();
        for target in TARGETS {
            let folder = corpus().join(target.name);
            let mut paths: Vec<PathBuf> = std::fs::read_dir(&folder)
                .unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
                .map(|entry| entry.unwrap().path())
                .collect();
            paths.sort();
            assert!(!paths.is_empty(), "nothing was kept of {}", target.name);
            for path in paths {
                let begin = Instant::now();
                let bytes = std::fs::read(&path).unwrap();
                let read = std::panic::catch_unwind(|| (target.run)(&bytes));
                assert!(read.is_ok(), "{}: see above", path.display());
                assert!(begin.elapsed() < Duration::from_secs(10), "{} took {:?}", path.display(), begin.elapsed());
            }
        }
    }

    #[test]
    fn what_a_fuzzer_begins_with_is_read_or_refused() {
        let _turn = TURN.lock();
        for target in TARGETS {
            let seeds = seeds::seeds(target.name);
            assert!(!seeds.is_empty() && seeds.iter().all(|seed| !seed.is_empty()), "{}", target.name);
            for (number, seed) in seeds.iter().enumerate() {
                let read = std::panic::catch_unwind(|| (target.run)(seed));
                assert!(read.is_ok(), "seed {number} of {}: see above", target.name);
            }
            assert!(seeds::words(target.name).len() > 5, "{}", target.name);
        }
    }

    #[test]
    fn every_folder_of_the_corpus_belongs_to_a_target() {
        for entry in std::fs::read_dir(corpus()).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            assert!(target(&name).is_some(), "there is no target {name}");
        }
    }

    #[test]
    fn an_input_of_several_files_has_lines_of_two_percent_signs_between_them() {
        assert_eq!(parts(b"a\nb\n%%\nc"), Some(["a\nb", "c"]));
        assert_eq!(parts(b"%%\n%%\nc"), Some(["", "", "c"]));
        assert_eq!(parts(b"a%%"), Some(["a%%", ""]));
        assert_eq!(parts::<2>(b"\xff"), None);
        assert_eq!(pieces(b"\xff\n%%\n\n%%\nc\n%%\n", 3), [b"\xff".as_slice(), b"", b"c\n%%\n"]);
    }
}
