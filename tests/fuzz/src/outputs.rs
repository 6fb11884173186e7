//! What runs have written, read back.

use crate::{folder, has_a_place, install, parts};
use report::curves::Curve;
use results::comparison::Table;
use results::recording::Recorded;
use results::records::{self, BUFFERS, FLOWS, LINKS, PORTS, RATES, Records};
use results::tables;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use store::{Digest, Store};

/// A recording, of which every series can be asked for.
pub fn recording(bytes: &[u8]) {
    match Recorded::read(bytes) {
        Err(error) => assert!(!error.to_string().is_empty()),
        Ok(recorded) => {
            let header = &recorded.header;
            for column in &header.columns {
                for port in 0..header.ports.len() {
                    assert_eq!(recorded.port(&column.name, port).map(<[u64]>::len), Some(header.frames));
                }
            }
            for column in &header.flow_columns {
                for flow in 0..header.flows.len() {
                    assert_eq!(recorded.flow(&column.name, flow).map(<[u64]>::len), Some(header.frames));
                }
            }
            assert_eq!(recorded.port("nothing", 0), None);
        }
    }
}

/// A run that watches a port and a flow, so that it has every table.
pub(crate) const SMALL: &str = "\
name = \"small\"
stop = \"40us\"
[topology]
kind = \"star\"
hosts = 3
[measure]
sample = \"20us\"
ports = [\"sw0->h0\"]
flows = [\"incast\"]
[[incast]]
degree = 2
size = \"4KB\"
count = 1
to = \"h0\"
";

/// The folder of a run, whole.
static WHOLE: LazyLock<PathBuf> = LazyLock::new(|| {
    install();
    let place = folder("whole");
    let scenario = place.join("small.toml");
    fs::write(&scenario, SMALL).expect("a file");
    let resolved = run::load(&scenario, &[]).unwrap_or_else(|problem| panic!("{problem}"));
    let finished = run::run(resolved, &mut |_, _| true);
    finished.write(&place.join("out"), SMALL).unwrap_or_else(|problem| panic!("{problem}"))
});

/// The tables of a folder of results.
pub(crate) const TABLES: [&str; 5] = [FLOWS, BUFFERS, LINKS, PORTS, RATES];

/// That folder.
pub(crate) fn whole() -> &'static Path {
    &WHOLE
}

/// Another one with the same files, to be damaged.
fn copy(name: &str) -> PathBuf {
    let place = folder(name);
    for entry in fs::read_dir(whole()).expect("a folder") {
        let path = entry.expect("a file").path();
        fs::copy(&path, place.join(path.file_name().unwrap_or_default())).expect("a copy");
    }
    place
}

/// Reads a folder in which one table is another: the first byte says which. Digests would refuse it, and are not asked.
fn with_table(bytes: &[u8], place: &Path) -> Option<Records> {
    let (which, bytes) = bytes.split_first()?;
    let name = TABLES[*which as usize % TABLES.len()];
    let path = place.join(name);
    fs::write(&path, bytes).expect("a file");
    // What is no table at all need not be looked for in its folder, which takes longer.
    let read = tables::read(&path).map(drop);
    let read = read.and_then(|()| if name == FLOWS { records::open_flows(place).map(drop) } else { Ok(()) });
    let read = read.and_then(|()| records::open(place));
    fs::copy(whole().join(name), path).expect("a copy");
    read.inspect_err(|problem| has_a_place(problem, &[])).ok()
}

/// A table of results.
pub fn table(bytes: &[u8]) {
    static DAMAGED: LazyLock<PathBuf> = LazyLock::new(|| copy("damaged"));
    with_table(bytes, &DAMAGED);
}

/// A table of results, with whatever numbers, drawn.
pub fn figures(bytes: &[u8]) {
    static DAMAGED: LazyLock<PathBuf> = LazyLock::new(|| copy("drawn"));
    if let Some(records) = with_table(bytes, &DAMAGED) {
        let report = report::pages::run(&records, &[], &[], &[], "", "");
        // A coordinate that is no number is shown nowhere: behind a letter of a path, a bracket, a blank, a comma or a quotation mark.
        let odd = |svg: &str, word: &str| {
            svg.match_indices(word)
                .any(|(at, _)| svg[..at].ends_with(|c: char| "MLHVQACZ( ,\"-".contains(c)) && in_tag(svg, at))
        };
        let drawn = |svg: &str| svg.starts_with("<svg") && !odd(svg, "NaN") && !odd(svg, "inf");
        report.drawings().for_each(|(id, drawing)| assert!(drawn(&drawing.svg()), "{id}"));
    }
}

/// Whether a place of an SVG is in an attribute, and not in a text.
fn in_tag(svg: &str, at: usize) -> bool {
    svg[..at].rfind('<') > svg[..at].rfind('>')
}

/// A summary, in a table beside itself, and on a page.
pub fn summary(bytes: &[u8]) {
    static RECORDS: LazyLock<Records> =
        LazyLock::new(|| records::open(whole()).unwrap_or_else(|problem| panic!("{problem}")));
    let Some([text]) = parts(bytes) else { return };
    let Ok(summary) = serde_json::from_str::<Value>(text) else { return };
    let labels = [vec![("scheme".to_string(), "pfc".to_string())], vec![("scheme".to_string(), "hpcc".to_string())]];
    let table = Table::new(
        vec!["scheme".into()],
        &[&labels[0], &labels[0], &labels[1]],
        &[summary.clone(), summary.clone(), summary.clone()],
    );
    _ = (table.text(), table.csv());
    let records = Records { summary, ..RECORDS.clone() };
    let page = report::pages::run(&records, &[], &[], &[], "", "");
    let curve = |name: &str| Curve { name: name.into(), labels: Vec::new(), runs: vec![&records] };
    let both = report::pages::comparison("title", &[curve("a"), curve("b")], None, "", "");
    // Without the figures' scripts, which are most of a page and always the same.
    _ = (page.page.sections.len(), both.page.sections.len());
}

/// A run's folder in a store: the list of files, the digests, the summary, the scenario; and a claim on it.
pub fn store(bytes: &[u8]) {
    static PLACE: LazyLock<PathBuf> = LazyLock::new(|| folder("store"));
    install();
    let Some([list, sums, summary, scenario, claim]) = parts(bytes) else { return };
    let digest = Digest::of(scenario);
    let run = PLACE.join(digest.to_string());
    let claims = PLACE.join("claims");
    let made = [fs::create_dir_all(&run), fs::create_dir_all(&claims)];
    assert!(made.iter().all(Result::is_ok));
    let write = |path: PathBuf, text: &str| fs::write(path, text).expect("a file");
    write(run.join(files::FILES), list);
    if !sums.is_empty() {
        write(run.join(files::sums::SUMS), sums);
    }
    write(run.join(files::SUMMARY), summary);
    write(run.join("scenario.toml"), scenario);
    write(claims.join(format!("{digest}.1")), claim);
    let store = Store::new(PLACE.as_path());
    let checked = store.verify(&digest.to_string());
    if checked.damage.is_none() {
        assert!(matches!(store.lookup(digest), Ok(store::Found::Whole(_))));
    }
    _ = store.claims().state(digest);
    _ = store::again(&digest.to_string(), &run, Path::new("/nowhere"));
    _ = fs::remove_dir_all(&run);
    _ = fs::remove_file(claims.join(format!("{digest}.1")));
}
