//! What the studio is asked.

use crate::outputs::whole;
use crate::{folder, install, parts};
use std::cell::OnceCell;
use std::fs;
use std::path::PathBuf;
use std::sync::LazyLock;
use studio::Unplugged;

thread_local! {
    static STUDIO: OnceCell<Unplugged> = const { OnceCell::new() };
}

fn open(place: &std::path::Path) -> Unplugged {
    Unplugged::new(place).unwrap_or_else(|problem| panic!("{problem}"))
}

/// Asks a studio that has no jobs, or none but this input's.
fn ask(bytes: &[u8]) -> Vec<u8> {
    install();
    STUDIO.with(|studio| {
        // Replays run on several threads, and a workspace belongs to one studio.
        let studio = studio.get_or_init(|| open(&folder(&format!("studio-{:?}", std::thread::current().id()))));
        let said = studio.answer(bytes);
        studio.clear();
        said
    })
}

/// No answer says that the studio itself has failed.
fn judge(said: &[u8]) {
    if !said.is_empty() {
        assert!(said.starts_with(b"HTTP/1."), "{}", String::from_utf8_lossy(said));
        let failed = said.get(9..12) == Some(b"500");
        assert!(!failed, "{}", String::from_utf8_lossy(said));
    }
}

/// Bytes of a connection.
pub fn connection(bytes: &[u8]) {
    judge(&ask(bytes));
}

/// A request with a head as it should be: method and path in the first line, the body in the others.
pub fn request(bytes: &[u8]) {
    let (line, body) = match bytes.iter().position(|byte| *byte == b'\n') {
        Some(end) => (&bytes[..end], &bytes[end + 1..]),
        None => (bytes, &[][..]),
    };
    let head = format!(
        " HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        Unplugged::HOST,
        body.len()
    );
    let said = ask(&[line, head.as_bytes(), body].concat());
    judge(&said);
}

/// A job's file, its comparison and a summary, in a workspace that is opened anew.
pub fn job(bytes: &[u8]) {
    static PLACE: LazyLock<PathBuf> = LazyLock::new(|| folder("workspace"));
    install();
    let Some([job, comparison, summary, verdict]) = parts(bytes) else { return };
    _ = open(&PLACE);
    let own = PLACE.join("jobs/7");
    let texts = [
        (own.join("job.json"), job),
        (own.join("out/comparison.json"), comparison),
        (own.join("out/summary.json"), summary),
        (PLACE.join("runs/5eed/summary.json"), summary),
        (PLACE.join("ledger/bfc/fig4/verdict.json"), verdict),
    ];
    for (path, text) in &texts {
        fs::create_dir_all(path.parent().unwrap_or(&PLACE)).expect("a folder");
        fs::write(path, text).expect("a file");
    }
    let studio = open(&PLACE);
    let paths = ["/api/jobs", "/api/jobs/7", "/api/jobs/7/files/out/a", "/api/jobs/7/files/runs/0/summary.json"];
    for path in paths.into_iter().chain(["/api/jobs/7/recording/0", "/api/experiments/bfc/fig4"]) {
        let asked = format!("GET {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n", Unplugged::HOST);
        judge(&studio.answer(asked.as_bytes()));
    }
    studio.clear();
}

/// A question about a folder of results, as the process that answers it reads it.
pub fn query(bytes: &[u8]) {
    let Some([text]) = parts(bytes) else { return };
    for what in ["why", "stops"] {
        assert!(studio::ask(what, whole(), text).is_object());
    }
    let answer = studio::ask("flows", whole(), text);
    assert!(answer["error"].is_object() || answer["rows"].is_array(), "{answer}");
}
