//! The studio over HTTP, as a page or an intruder would use it: the program itself, and plain sockets.

use crate::patience::{Deadline, PATIENCE, lines, status, until};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::RecvTimeoutError;
use std::time::Duration;
use tempfile::TempDir;

/// Over in an instant.
const TINY: &str = "name = \"tiny\"\n[topology]\nkind = \"star\"\nhosts = 3\n[scheme]\npreset = \"pfc\"\n\
                    [[flow]]\nsrc = \"h1\"\ndst = \"h0\"\nsize = \"10KB\"\n[[flow]]\nsrc = \"h2\"\ndst = \"h0\"\nsize = \"20KB\"\n";
/// Over in an hour or so.
const ENDLESS: &str = "name = \"endless\"\n[topology]\nkind = \"star\"\nhosts = 2\n[scheme]\npreset = \"pfc\"\n\
                       [[flow]]\nsrc = \"h1\"\ndst = \"h0\"\nsize = \"900GB\"\n";

/// A studio that runs.
struct Server {
    child: Child,
    host: String,
    token: String,
}

struct Reply {
    status: u16,
    headers: BTreeMap<String, String>,
    body: Vec<u8>,
}

impl Reply {
    fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|e| panic!("{e}: {}", String::from_utf8_lossy(&self.body)))
    }

    /// The message of a refusal with that status.
    fn refused(&self, status: u16) -> String {
        assert_eq!(self.status, status, "{}", String::from_utf8_lossy(&self.body));
        let error = &self.json()["error"];
        assert!(error["help"].is_string(), "{error}");
        error["message"].as_str().unwrap().to_string()
    }

    fn good(&self) -> Value {
        assert!((200..300).contains(&self.status), "{}: {}", self.status, String::from_utf8_lossy(&self.body));
        self.json()
    }
}

/// Takes a reply apart.
fn parse(raw: &[u8]) -> Option<Reply> {
    let end = raw.windows(4).position(|four| four == b"\r\n\r\n")?;
    let head = String::from_utf8_lossy(&raw[..end]).into_owned();
    let mut lines = head.split("\r\n");
    let status = lines.next()?.split(' ').nth(1)?.parse().ok()?;
    let pair = |line: &str| line.split_once(':').map(|(key, value)| (key.to_lowercase(), value.trim().to_string()));
    let headers: BTreeMap<String, String> = lines.filter_map(pair).collect();
    let mut rest = &raw[end + 4..];
    let mut body = Vec::new();
    if headers.get("transfer-encoding").is_some_and(|coding| coding == "chunked") {
        while let Some(line) = rest.windows(2).position(|two| two == b"\r\n") {
            let length = usize::from_str_radix(std::str::from_utf8(&rest[..line]).ok()?, 16).ok()?;
            body.extend_from_slice(rest.get(line + 2..line + 2 + length)?);
            rest = rest.get(line + 4 + length..)?;
        }
    } else {
        body.extend_from_slice(rest);
    }
    Some(Reply { status, headers, body })
}

impl Server {
    fn start(folder: &Path, arguments: &[&str]) -> Server {
        let mut child = Command::new(env!("CARGO_BIN_EXE_tailwater"))
            .args(["studio", folder.to_str().unwrap(), "--port", "0"])
            .args(arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .spawn()
            .unwrap();
        let line = match lines(child.stdout.take().unwrap()).recv_timeout(PATIENCE) {
            Ok(line) => line,
            Err(RecvTimeoutError::Disconnected) => String::new(),
            Err(RecvTimeoutError::Timeout) => {
                child.kill().unwrap();
                panic!("waited {PATIENCE:?} in vain: the studio says where it is");
            }
        };
        let Some(url) = line.strip_prefix("studio at http://") else {
            let mut notes = String::new();
            child.stderr.take().unwrap().read_to_string(&mut notes).unwrap();
            panic!("{notes}");
        };
        let (host, query) = url.trim().split_once('/').unwrap();
        let (host, token) = (host.to_string(), query.strip_prefix("?token=").unwrap_or_default().to_string());
        Server { child, host, token }
    }

    /// Ends it, and gives what it said on standard error.
    fn end(mut self) -> String {
        self.child.kill().unwrap();
        let mut said = String::new();
        self.child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        said
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(&self.host).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream
    }

    /// Sends bytes and takes what comes until the other end closes.
    fn raw(&self, bytes: &[u8]) -> Vec<u8> {
        let mut stream = self.connect();
        // The other end may have heard enough before all is said.
        _ = stream.write_all(bytes);
        rest(stream)
    }

    fn ask(&self, method: &str, path: &str, headers: &[(&str, &str)], body: Option<&[u8]>) -> Reply {
        let mut head = format!("{method} {path} HTTP/1.1\r\nConnection: close\r\n");
        if !headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("host")) {
            head += &format!("Host: {}\r\n", self.host);
        }
        headers.iter().for_each(|(name, value)| head += &format!("{name}: {value}\r\n"));
        if let Some(body) = body {
            head += &format!("Content-Length: {}\r\n", body.len());
        }
        let bytes = [head.as_bytes(), b"\r\n", body.unwrap_or_default()].concat();
        let raw = self.raw(&bytes);
        parse(&raw).unwrap_or_else(|| panic!("{method} {path}: {}", String::from_utf8_lossy(&raw)))
    }

    fn get(&self, path: &str) -> Reply {
        self.ask("GET", path, &[], None)
    }

    fn post(&self, path: &str, body: &Value) -> Reply {
        self.ask("POST", path, &[("Content-Type", "application/json")], Some(body.to_string().as_bytes()))
    }

    fn add(&self, job: Value) -> u64 {
        let reply = self.post("/api/jobs", &job);
        assert_eq!(reply.status, 201, "{}", String::from_utf8_lossy(&reply.body));
        reply.json()["id"].as_u64().unwrap()
    }

    fn job(&self, id: u64) -> Value {
        self.get(&format!("/api/jobs/{id}")).good()
    }

    fn state(&self, id: u64) -> String {
        self.job(id)["state"].as_str().unwrap().to_string()
    }

    /// Waits until a job is no longer in those states.
    fn wait(&self, id: u64, states: &[&str]) -> Value {
        let deadline = Deadline::of(format!("job {id} is no longer {}", states.join(" or ")));
        loop {
            let job = self.job(id);
            if !states.contains(&job["state"].as_str().unwrap()) {
                return job;
            }
            deadline.check();
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn done(&self, id: u64) -> Value {
        let job = self.wait(id, &["queued", "running"]);
        assert_eq!(job["state"], "done", "{job}");
        job
    }

    /// The processes that it has started, without zombies.
    fn children(&self) -> Vec<u32> {
        let stat = |id: u32| {
            let text = fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
            let mut words = text.rsplit(')').next()?.split_whitespace();
            Some((words.next()?.to_string(), words.next()?.parse::<u32>().ok()?))
        };
        let all = fs::read_dir("/proc").unwrap().flatten().filter_map(|e| e.file_name().to_str()?.parse::<u32>().ok());
        all.filter(|&id| stat(id).is_some_and(|(state, parent)| parent == self.child.id() && state != "Z")).collect()
    }

    /// Bytes of memory in use.
    fn memory(&self) -> u64 {
        let text = fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1024
    }

    fn listen(&self) -> BufReader<TcpStream> {
        let mut stream = self.connect();
        write!(stream, "GET /api/events HTTP/1.1\r\nHost: {}\r\n\r\n", self.host).unwrap();
        BufReader::new(stream)
    }

    fn signal(&mut self, name: &str) {
        send(name, self.child.id());
        status("the studio", &mut self.child);
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        _ = self.child.kill();
        _ = self.child.wait();
    }
}

fn send(signal: &str, process: u32) {
    assert!(Command::new("kill").args([format!("-{signal}"), process.to_string()]).status().unwrap().success());
}

/// Whether a process is there and no zombie.
fn lives(process: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    stat.rsplit(')').next().is_some_and(|rest| !rest.is_empty() && !rest.trim_start().starts_with('Z'))
}

/// What comes until the other end closes.
fn rest(mut stream: TcpStream) -> Vec<u8> {
    let deadline = Deadline::of("the studio closes a connection");
    let (mut reply, mut bytes) = (Vec::new(), [0; 1 << 16]);
    loop {
        match stream.read(&mut bytes) {
            Ok(0) => return reply,
            Ok(length) => reply.extend_from_slice(&bytes[..length]),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) if [ErrorKind::WouldBlock, ErrorKind::TimedOut].contains(&error.kind()) => {
                panic!("waited {PATIENCE:?} in vain: the studio says more, or closes a connection");
            }
            // Closed without a word, as where it has not heard all.
            Err(_) => return reply,
        }
        deadline.check();
    }
}

/// The next event: its name and its data.
fn event(stream: &mut BufReader<TcpStream>) -> (String, Value) {
    let (mut name, mut line) = (String::new(), String::new());
    let deadline = Deadline::of("an event, and not only signs of life");
    loop {
        deadline.check();
        line.clear();
        assert!(stream.read_line(&mut line).unwrap() > 0, "the events have ended");
        if let Some(text) = line.strip_prefix("event: ") {
            name = text.trim().into();
        } else if let Some(text) = line.strip_prefix("data: ") {
            return (name, serde_json::from_str(text).unwrap());
        }
    }
}

fn workspace() -> (TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("work");
    (dir, path)
}

fn run(text: &str) -> Value {
    json!({ "kind": "run", "name": "a run", "text": text, "record": true })
}

#[test]
fn what_there_is_to_choose_from_has_the_promised_shape() {
    let (_dir, path) = workspace();
    let server = Server::start(&path, &[]);
    let about = server.get("/api/about").good();
    assert_eq!(about["workspace"], path.canonicalize().unwrap().display().to_string());
    assert!(about["version"].is_string() && about["cores"].is_u64() && about["notes"] == json!([]));
    assert_eq!((&about["limits"]["runs_per_job"], &about["limits"]["scenario_bytes"]), (&json!(100), &json!(262_144)));

    let experiments = server.get("/api/experiments").good();
    let one = experiments.as_array().unwrap().iter().find(|e| e["id"] == "bfc/fig4").unwrap();
    for (key, kind) in
        [("title", "s"), ("document", "s"), ("says", "s"), ("claims", "a"), ("missing", "a"), ("figures", "a")]
    {
        assert!(if kind == "s" { one[key].is_string() } else { one[key].is_array() }, "{key}: {one}");
    }
    assert!(one["scale"]["quick"]["runs"].is_u64() && one["scale"]["paper"]["runs"].is_u64());
    assert_eq!((&one["state"], &one["verdict"]), (&json!("never"), &Value::Null));
    let whole = server.get("/api/experiments/bfc/fig4").good();
    assert!(whole["text"].as_str().unwrap().contains("[[expect]]") && whole["expectations"].is_array());
    assert!(server.get("/api/experiments/bfc/nothing").refused(404).contains("no such experiment"));

    let presets = server.get("/api/presets").good();
    let hpcc = presets.as_array().unwrap().iter().find(|preset| preset["name"] == "hpcc").unwrap();
    assert_eq!((&hpcc["axes"]["flow_control"], &hpcc["axes"]["congestion_control"]), (&json!("pfc"), &json!("hpcc")));
    let topologies = server.get("/api/topologies").good();
    let star = topologies.as_array().unwrap().iter().find(|shape| shape["kind"] == "star").unwrap();
    let hosts = &star["keys"][0];
    assert_eq!(
        [&hosts["key"], &hosts["type"], &hosts["default"], &hosts["about"], &hosts["choices"], &hosts["bare"]],
        [&json!("hosts"), &json!("integer"), &json!("16"), &json!("Hosts."), &Value::Null, &json!(true)]
    );
    assert!(server.get("/api/schema").good().as_array().unwrap().len() > 100);
    let examples = server.get("/api/examples").good();
    let incast = &examples[0];
    assert_eq!((&incast["name"], &incast["title"]), (&json!("incast"), &json!("16-to-1 incast")));
    assert!(incast["text"].as_str().unwrap().contains("[topology]"));
    assert_eq!(server.get("/api/jobs").good(), json!([]));

    let page = server.get("/");
    assert_eq!((page.status, page.headers["content-type"].as_str()), (200, "text/html; charset=utf-8"));
    assert!(page.headers["content-security-policy"].starts_with("default-src 'self';"));
    let api = server.get("/api/about");
    assert_eq!(
        (api.headers["cache-control"].as_str(), api.headers["x-content-type-options"].as_str()),
        ("no-store", "nosniff")
    );
}

#[test]
fn a_scenario_is_checked_as_on_the_command_line_with_line_and_column() {
    let (_dir, path) = workspace();
    let server = Server::start(&path, &[]);
    let check = |body: Value| server.post("/api/check", &body).good();
    let good = check(json!({ "text": TINY, "sets": ["topology.hosts=4"] }));
    assert_eq!(
        (&good["ok"], &good["hosts"], &good["nodes"], &good["flows"]),
        (&json!(true), &json!(4), &json!(5), &json!(2))
    );
    assert!(good["describe"].as_str().unwrap().contains("topology        star: hosts 4") && good["notes"].is_array());
    let scene = &good["scene"];
    assert_eq!((&scene["topology"]["kind"], &scene["nodes"][4]["kind"]), (&json!("star"), &json!("switch")));
    assert_eq!(scene["nodes"][0], json!({ "name": "h0", "kind": "host", "tier": 0, "buffer": null }));
    let (first, ports) = (&scene["ports"][0], scene["ports"].as_array().unwrap());
    assert_eq!(
        (&first["node"], &first["rate_bps"], &first["delay_ps"]),
        (&json!(0), &json!(100_000_000_000_u64), &json!(1_000_000))
    );
    assert_eq!(ports[first["peer"].as_u64().unwrap() as usize]["peer"], 0);

    let bad = check(json!({ "text": TINY.replace("10KB", "-10KB") }));
    assert_eq!(bad["ok"], false);
    let problem = &bad["problems"][0];
    assert_eq!((&problem["line"], &problem["column"]), (&json!(10), &json!(8)), "{problem}");
    assert!(problem["message"].as_str().unwrap().contains("-10KB") && problem["help"].is_string());
    assert_eq!((&problem["key"], &problem["cause"]), (&json!("flow.0.size"), &json!("value")), "{problem}");
    let bad = check(json!({ "text": TINY.replace("size", "sise") }));
    let problem = &bad["problems"][0];
    assert_eq!(problem["cause"], "missing-key", "{problem}");
    let bad = check(json!({ "text": "[topology" }));
    assert!(bad["problems"][0]["message"].as_str().unwrap().contains("is not TOML") && bad["problems"][0]["line"] == 1);
    for name in ["/etc/passwd", "../../etc/passwd", "files/../../x", ".ssh/id"] {
        let answer = check(json!({ "text": format!("[topology]\nkind = \"file\"\npath = \"{name}\"\n") }));
        assert!(answer["problems"][0]["message"].as_str().unwrap().contains("outside of the workspace"), "{answer}");
        let set = format!("traffic.trace={name}");
        let answer = check(json!({ "text": TINY, "sets": [set] }));
        assert!(answer["problems"][0]["message"].as_str().unwrap().contains("outside of the workspace"), "{answer}");
        let job = json!({ "kind": "run", "text": TINY, "sets": [set] });
        assert!(server.post("/api/jobs", &job).refused(422).contains("outside of the workspace"));
    }
    // A file in its place is found by both.
    let graph = "[[node]]\nname = \"a\"\nkind = \"host\"\n[[node]]\nname = \"b\"\nkind = \"host\"\n\
                 [[link]]\nbetween = [\"a\", \"b\"]\nrate = \"100Gbps\"\ndelay = \"1us\"\n";
    fs::write(path.join("files/graph.toml"), graph).unwrap();
    let text =
        "[topology]\nkind = \"file\"\npath = \"graph.toml\"\n[[flow]]\nsrc = \"a\"\ndst = \"b\"\nsize = \"1KB\"\n";
    assert_eq!(check(json!({ "text": text }))["hosts"], 2);
    server.done(server.add(run(text)));
    // One that leads elsewhere is not.
    fs::remove_file(path.join("files/graph.toml")).unwrap();
    fs::write(path.join("../secret.toml"), graph).unwrap();
    std::os::unix::fs::symlink(path.join("../secret.toml"), path.join("files/graph.toml")).unwrap();
    let answer = check(json!({ "text": text }));
    assert!(answer["problems"][0]["message"].as_str().unwrap().contains("leads out of the workspace"), "{answer}");
    assert!(server.post("/api/jobs", &run(text)).refused(422).contains("leads out of the workspace"));
    // A missing one is reported by the reader of the scenario.
    let job = server.wait(server.add(run(&text.replace("graph", "missing"))), &["queued", "running"]);
    assert_eq!((&job["state"], &job["problem"]["line"]), (&json!("failed"), &json!(3)), "{job}");
    // What would need more than there is does not take the server with it.
    let huge = "[topology]\nkind = \"fat-tree\"\nk = 128\n[[load]]\nsizes = \"rpc\"\nload = 0.9\nduration = \"1s\"\n";
    assert_eq!(check(json!({ "text": huge }))["ok"], false);
    server.get("/api/about").good();
}

#[test]
fn a_run_is_followed_to_its_results() {
    let (_dir, path) = workspace();
    let server = Server::start(&path, &[]);
    let mut events = server.listen();
    // The first line says that the server listens from now on.
    let mut line = String::new();
    while !line.starts_with(": tailwater") {
        line.clear();
        assert!(events.read_line(&mut line).unwrap() > 0, "the events have ended");
    }
    let id = server.add(run(TINY));
    let mut states = Vec::new();
    let deadline = Deadline::of("an event says that the job is done");
    while states.last() != Some(&"done".to_string()) {
        deadline.check();
        let (name, job) = event(&mut events);
        assert_eq!((name.as_str(), job["id"].as_u64()), ("job", Some(id)));
        states.push(job["state"].as_str().unwrap().to_string());
    }
    states.dedup();
    assert_eq!(states, ["queued", "running", "done"]);
    let job = server.job(id);
    assert_eq!(
        (&job["kind"], &job["name"], &job["problem"], &job["text"]),
        (&json!("run"), &json!("a run"), &Value::Null, &json!(TINY))
    );
    assert_eq!(
        (&job["progress"]["runs"], &job["progress"]["done"], &job["progress"]["share"]),
        (&json!(1), &json!(1), &json!(1.0))
    );
    assert!(job["created"].as_u64() <= job["started"].as_u64() && job["started"].as_u64() <= job["ended"].as_u64());
    let runs = job["results"]["runs"].as_array().unwrap();
    assert_eq!((runs.len(), &runs[0]["summary"]["finished"], &runs[0]["scheme"]), (1, &json!(2), &json!("pfc")));
    let files = job["results"]["files"].as_array().unwrap();
    assert!(files.iter().any(|file| file["path"] == "figures/fabric.svg"), "{files:?}");
    for file in files {
        let name = file["path"].as_str().unwrap();
        let reply = server.get(&format!("/api/jobs/{id}/files/{name}"));
        assert_eq!((reply.status, reply.body.len() as u64), (200, file["bytes"].as_u64().unwrap()), "{name}");
        let saved = reply.headers.get("content-disposition").is_some_and(|how| how.starts_with("attachment"));
        assert_eq!(saved, name.ends_with(".parquet") || name.ends_with(".bin"), "{name}");
        assert!(reply.headers["content-security-policy"].starts_with("sandbox"), "{name}");
    }

    let flows = |query: &str| server.get(&format!("/api/jobs/{id}/flows/0{query}"));
    let all = flows("?sort=size&desc=1").good();
    assert_eq!((&all["total"], &all["columns"][4]), (&json!(2), &json!("size")));
    assert_eq!((&all["rows"][0][4], &all["rows"][1][4]), (&json!(20_000), &json!(10_000)));
    assert_eq!(flows("?sort=size&limit=1&offset=1").good()["rows"], json!([all["rows"][0]]));
    assert_eq!(flows("?group=nobody").good()["total"], 0);
    assert!(flows("?sort=colour").refused(422).contains("not a column"));
    assert!(flows("?limit=-1").refused(422).contains("whole number"));
    assert!(flows("?desc=banana").refused(422).contains("neither true nor false"));
    assert!(flows("?zzz=1").refused(422).contains("not known"));
    assert!(flows("?sort=size&sort=flow").refused(422).contains("twice"));
    assert!(server.get(&format!("/api/jobs/{id}/flows/1")).refused(404).contains("no such run"));

    fs::write(path.join(format!("jobs/{id}/out/recording.bin")), "TWREC1").unwrap();
    assert_eq!(server.job(id)["results"]["runs"][0]["recording"], true);
    let address = format!("/api/jobs/{id}/recording/0");
    assert_eq!(server.get(&address).body, b"TWREC1");
    let packed = server.ask("GET", &address, &[("Accept-Encoding", "br, gzip")], None);
    assert_eq!((packed.headers["content-encoding"].as_str(), &packed.body[..2]), ("gzip", &[0x1f, 0x8b][..]));

    assert_eq!(
        server.ask("DELETE", &format!("/api/jobs/{id}"), &[("Content-Type", "application/json")], None).status,
        200
    );
    assert_eq!(event(&mut events), ("gone".into(), json!({ "id": id })));
    server.get(&format!("/api/jobs/{id}")).refused(404);
    assert!(!path.join(format!("jobs/{id}")).exists());
}

#[test]
fn a_run_that_was_asked_says_why_and_another_says_how_to() {
    let (_dir, path) = workspace();
    let server = Server::start(&path, &[]);
    // Two hosts send to one, and its port pauses both.
    let text = "[topology]\nkind = \"star\"\nhosts = 3\n[switch]\nbuffer = \"200KB\"\n[scheme]\npreset = \"pfc\"\n\
                [[flow]]\nsrc = \"h1\"\ndst = \"h0\"\nsize = \"300KB\"\n\
                [[flow]]\nsrc = \"h2\"\ndst = \"h0\"\nsize = \"300KB\"\n";
    let mut asked = run(text);
    asked["sets"] = json!(["measure.why=true"]);
    let (plain, id) = (server.add(run(text)), server.add(asked));
    server.done(plain);
    server.done(id);
    let known = |id: u64| server.job(id)["results"]["runs"][0]["why"].clone();
    assert_eq!((known(plain), known(id)), (json!(false), json!(true)));
    for question in ["why", "stops"] {
        let refused = server.get(&format!("/api/jobs/{plain}/{question}/0"));
        assert!(refused.refused(422).contains("not asked why"));
        assert!(refused.json()["error"]["help"].as_str().unwrap().contains("measure.why = true"));
    }

    let why = |query: &str| server.get(&format!("/api/jobs/{id}/why/0{query}"));
    let flow = why("?flow=1").good();
    let root = &flow["causes"][0]["root"];
    assert_eq!((&root["kind"], &root["place"]), (&json!("saturated"), &json!("sw0->h0")));
    assert_eq!(root["clause"], "the link sw0->h0 is saturated by 2 flows");
    assert_eq!((&root["victims"], &root["victim_flows"]), (&json!(0), &json!([])));
    let parts = flow["parts"].as_array().unwrap().iter().map(|part| part["time_ps"].as_u64().unwrap());
    let flows = server.get(&format!("/api/jobs/{id}/flows/0")).good();
    let place = flows["columns"].as_array().unwrap().iter().position(|name| name == "received_ps").unwrap();
    assert_eq!(parts.sum::<u64>(), flows["rows"][1][place].as_u64().unwrap(), "{flow}");
    let waits = flow["waits"].as_array().unwrap();
    assert!(!waits.is_empty() && waits.iter().all(|wait| wait[1].as_u64() < wait[2].as_u64()), "{waits:?}");
    let link = why("?link=H1-%3Esw0").good();
    assert_eq!(link["causes"][0]["root"]["place"], "sw0->h0");
    let root = &why("?link=sw0-%3Eh0").good()["root"][0];
    assert!(root["sentence"].as_str().unwrap().starts_with("The link sw0->h0 is saturated"));
    assert_eq!(root["tree"].as_array().unwrap().len(), 2, "both hosts wait for it: {root}");
    assert_eq!(why("").good()["causes"][0]["root"]["place"], "sw0->h0");
    assert!(why("?at=10000000").good()["sentences"].is_array());
    assert!(why("?flow=2").refused(422).contains("no flow 2"));
    assert!(why("?link=h9-%3Esw0").refused(422).contains("no link"));
    assert!(why("?flow=1&at=3").refused(422).contains("several at once"));
    assert!(why("?colour=1").refused(422).contains("not known"));

    let stops = server.get(&format!("/api/jobs/{id}/stops/0?at=5000000")).good();
    let count = stops["total"].as_u64().unwrap() as usize;
    let columns = ["stop", "port", "scope", "number", "begin", "end", "by", "ordered", "filled", "bytes", "cause"];
    assert!(count > 1 && columns.iter().all(|name| stops[name].as_array().unwrap().len() == count), "{stops}");
    assert_eq!((&stops["scope"][0], &stops["waiting"][0]), (&json!("class"), &json!("busy")));
    assert_eq!(stops["nodes"][stops["by"][0].as_u64().unwrap() as usize], "sw0");

    // A damaged table is no reason to fall.
    fs::write(path.join(format!("jobs/{id}/out/stops.parquet")), "PAR1").unwrap();
    server.get(&format!("/api/jobs/{id}/stops/0")).refused(422);
    assert_eq!(server.get("/api/about").status, 200);
}

#[test]
fn a_closer_look_records_a_window_and_a_claim_says_what_can_be_watched() {
    let (_dir, path) = workspace();
    let server = Server::start(&path, &[]);
    let mut closer = run(TINY);
    closer["sets"] = json!(["stop=3us"]);
    closer["closer"] = json!({ "from": "2us" });
    let id = server.add(closer);
    server.done(id);
    let file = server.get(&format!("/api/jobs/{id}/recording/0")).body;
    let header = results::recording::Recorded::read(&file).unwrap().header;
    assert_eq!((header.first_ps, header.every_ps, header.frames), (2_000_000, 100_000, 10));
    // It is kept, and can be done again.
    assert_eq!(server.job(id)["request"]["closer"], json!({ "from": "2us", "every": "100ns" }));
    let mut wrong = run(TINY);
    wrong["closer"] = json!({ "from": "soon" });
    let failed = server.wait(server.add(wrong), &["queued", "running"]);
    assert_eq!(failed["state"], "failed");
    assert!(failed["problem"]["text"].as_str().unwrap().contains("--record-from"), "{failed}");

    let runs = &server.get("/api/experiments/portfc/holb").good()["runs"];
    assert_eq!((&runs[0]["name"], &runs[1]["name"]), (&json!("PFC"), &json!("PortFC")));
    assert!(runs[0]["sets"].as_array().unwrap().contains(&json!("scheme.preset=pfc")), "{runs}");
}

#[test]
fn a_run_that_goes_on_can_be_watched_as_far_as_it_is() {
    let (_dir, path) = workspace();
    let server = Server::start(&path, &[]);
    let id = server.add(run(&ENDLESS.replace("900GB", "90GB")));
    until("something is recorded", || server.job(id)["results"]["live"] == true);
    let file = server.get(&format!("/api/jobs/{id}/recording/0")).body;
    let recorded = results::recording::Recorded::read(&file).unwrap();
    let sent = recorded.header.columns.iter().position(|column| column.name == "sent").unwrap();
    assert!(recorded.header.frames > 0 && recorded.ports[sent].iter().sum::<u64>() > 0);
    assert_eq!((recorded.header.flows.len(), recorded.header.flows[0].received_ps), (1, None));
    assert_eq!(server.job(id)["results"]["runs"], json!([]), "it is no result yet");
    server.post(&format!("/api/jobs/{id}/cancel"), &json!({})).good();
    assert_eq!(server.wait(id, &["queued", "running"])["results"]["live"], false);
    assert!(!path.join(format!("jobs/{id}/live")).exists());
}

#[test]
fn comparisons_and_experiments_are_done_and_done_again_from_the_store() {
    let (_dir, path) = workspace();
    let server = Server::start(&path, &["--jobs", "2"]);
    let compare = json!({ "kind": "compare", "name": "two", "text": TINY.replace("[scheme]\npreset = \"pfc\"\n", ""),
                          "schemes": ["pfc", "bfc"], "seeds": 2, "vary": ["switch.buffer=2MB,4MB"] });
    let id = server.add(compare);
    let job = server.done(id);
    let results = &job["results"];
    assert_eq!(
        (results["runs"].as_array().unwrap().len(), results["comparison"]["cells"].as_array().unwrap().len()),
        (8, 8)
    );
    assert_eq!((&job["schemes"], &results["runs"][0]["scheme"]), (&json!(["pfc", "bfc"]), &json!("pfc")));
    assert_eq!(results["runs"][0]["folder"].as_str().unwrap().len(), 32);
    assert_eq!(server.get(&format!("/api/jobs/{id}/flows/7")).good()["total"], 2);
    assert_eq!(server.get(&format!("/api/jobs/{id}/files/runs/7/summary.json")).good()["finished"], 2);
    server.get(&format!("/api/jobs/{id}/files/runs/8/summary.json")).refused(404);
    let again = server.post(&format!("/api/jobs/{id}/again"), &json!({})).good()["id"].as_u64().unwrap();
    server.done(again);
    let log = fs::read_to_string(path.join(format!("jobs/{again}/log.jsonl"))).unwrap();
    assert_eq!(log.matches("\"step\":\"reused\"").count(), 8, "{log}");

    // What is finished of a comparison that goes on is there to be looked at.
    let flow = "flow = [{ src = \"h1\", dst = \"h0\", size = \"1KB\" }]\ntopology.kind = \"star\"\n";
    let compare = |sizes: &str| {
        let vary = format!("flow.0.size={sizes}");
        server.add(json!({ "kind": "compare", "text": flow, "vary": [vary], "sets": ["name=b"] }))
    };
    server.done(compare("1KB,2KB"));
    let long = compare("1KB,900GB");
    until("its first run", || server.job(long)["results"]["runs"][0]["summary"]["finished"] == 1);
    let job = server.job(long);
    assert_eq!(
        (&job["state"], &job["results"]["runs"][0]["run"], &job["results"]["complete"]),
        (&json!("running"), &json!(0), &json!(false))
    );
    assert_eq!(server.get(&format!("/api/jobs/{long}/flows/0")).good()["total"], 1);
    server.get(&format!("/api/jobs/{long}/flows/1")).refused(404);
    server.post(&format!("/api/jobs/{long}/cancel"), &json!({})).good();

    let id = server.add(json!({ "kind": "reproduce", "id": "bfc/fig4", "scale": "quick" }));
    let job = server.done(id);
    assert!(job["results"]["verdict"]["verdict"].is_string());
    let experiment = server.get("/api/experiments/bfc/fig4").good();
    assert_ne!(experiment["state"], "never");
    let figure = experiment["figures"][0].as_str().unwrap();
    let reply = server.get(&format!("/api/ledger/bfc/fig4/{figure}"));
    assert_eq!((reply.status, reply.headers["content-type"].as_str()), (200, "image/svg+xml"));
    assert_eq!(server.get(&format!("/api/jobs/{id}/files/report.html")).status, 200);
}

#[test]
fn a_problem_and_a_dead_process_are_reported_in_words_and_harm_no_other_job() {
    let (_dir, path) = workspace();
    let server = Server::start(&path, &[]);
    let bad = server.add(run(&TINY.replace("10KB", "ten")));
    let job = server.wait(bad, &["queued", "running"]);
    assert_eq!(
        (&job["state"], &job["problem"]["line"], &job["problem"]["column"]),
        (&json!("failed"), &json!(10), &json!(8)),
        "{job}"
    );
    assert!(job["problem"]["text"].as_str().unwrap().contains("^"), "{job}");

    let (long, next) = (server.add(run(ENDLESS)), server.add(run(TINY)));
    until("a process", || !server.children().is_empty());
    until("progress", || server.job(long)["progress"]["runs"] == 1);
    server.children().into_iter().for_each(|child| send("KILL", child));
    let job = server.wait(long, &["queued", "running"]);
    assert_eq!(job["state"], "broken");
    assert!(job["problem"]["message"].as_str().unwrap().contains("has died (signal: 9"), "{job}");
    server.done(next);
}

#[test]
fn a_job_that_waits_or_runs_is_cancelled_and_leaves_no_process() {
    let (_dir, path) = workspace();
    let server = Server::start(&path, &[]);
    let (long, waiting) = (server.add(run(ENDLESS)), server.add(run(TINY)));
    until("a process", || server.job(long)["progress"]["runs"] == 1);
    let child = server.children();
    assert_eq!(child.len(), 1);
    let delete =
        |id: u64| server.ask("DELETE", &format!("/api/jobs/{id}"), &[("Content-Type", "application/json")], None);
    assert!(delete(long).refused(422).contains("is running"));
    for id in [waiting, long] {
        server.post(&format!("/api/jobs/{id}/cancel"), &json!({})).good();
        let job = server.wait(id, &["queued", "running"]);
        assert_eq!((&job["state"], &job["problem"]), (&json!("cancelled"), &Value::Null));
        assert!(server.post(&format!("/api/jobs/{id}/cancel"), &json!({})).refused(422).contains("is over"));
    }
    assert!(!lives(child[0]));
    let left: Vec<_> =
        fs::read_dir(path.join(format!("jobs/{long}"))).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert!(left.iter().all(|name| !name.to_string_lossy().starts_with('.')), "{left:?}");
    assert_eq!(delete(long).status, 200);
}

#[test]
fn requests_from_elsewhere_are_refused() {
    let (_dir, path) = workspace();
    let server = Server::start(&path, &[]);
    let port = server.host.rsplit(':').next().unwrap().to_string();
    let with = |headers: &[(&str, &str)]| server.ask("GET", "/api/about", headers, None);
    for host in [format!("localhost:{port}"), format!("[::1]:{port}"), format!("127.0.0.1:{port}")] {
        assert_eq!(with(&[("Host", &host)]).status, 200, "{host}");
        assert_eq!(with(&[("Origin", &format!("http://{host}"))]).status, 200, "{host}");
    }
    for host in [
        "evil.example",
        &format!("evil.example:{port}"),
        "127.0.0.1",
        "localhost",
        &format!("localhost.evil:{port}"),
        "",
    ] {
        assert!(with(&[("Host", host)]).refused(421).contains("another host"), "{host}");
        assert!(server.ask("GET", "/", &[("Host", host)], None).refused(421).contains("another host"), "{host}");
    }
    assert!(with(&[("Host", &server.host), ("Host", "evil.example")]).refused(421).contains("another host"));
    let absolute = format!("http://evil.example:{port}/api/about");
    assert_eq!(server.ask("GET", &absolute, &[], None).status, 421);
    let raw = server.raw(b"GET /api/about HTTP/1.0\r\n\r\n");
    assert!(raw.starts_with(b"HTTP/1.0 421") || raw.starts_with(b"HTTP/1.1 421"), "{}", String::from_utf8_lossy(&raw));
    for origin in [
        "null",
        "http://evil.example",
        "https://127.0.0.1",
        "http://127.0.0.1:1",
        &format!("https://{}", server.host),
        "",
    ] {
        for method in ["GET", "POST", "DELETE", "OPTIONS"] {
            let headers = [("Origin", origin), ("Content-Type", "application/json")];
            let reply = server.ask(method, "/api/jobs", &headers, Some(b"{}"));
            assert!(reply.refused(403).contains("another site"), "{method} {origin}");
            assert!(!reply.headers.contains_key("access-control-allow-origin"));
        }
    }
    assert!(with(&[("Sec-Fetch-Site", "cross-site")]).refused(403).contains("another site"));
    assert_eq!(with(&[("Sec-Fetch-Site", "same-origin")]).status, 200);
    // What a form of another site could send.
    let body = run(TINY).to_string();
    for kind in ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""] {
        let reply = server.ask("POST", "/api/jobs", &[("Content-Type", kind)], Some(body.as_bytes()));
        assert!(reply.refused(415).contains("JSON"), "{kind}");
    }
    assert_eq!(server.ask("POST", "/api/jobs/1/cancel", &[], Some(b"")).status, 415);
    assert_eq!(server.ask("DELETE", "/api/jobs/1", &[], None).status, 415);
    assert_eq!(server.get("/api/jobs").good(), json!([]));
}

#[test]
fn a_studio_that_others_can_reach_wants_its_token() {
    let (_dir, path) = workspace();
    let server = Server::start(&path, &["--listen", "0.0.0.0"]);
    assert_eq!(server.token.len(), 48);
    let wrong = server.token.replace(|c: char| c.is_ascii_digit(), "a");
    let (bearer, bad) = (format!("Bearer {}", server.token), format!("Bearer {wrong}"));
    assert_eq!(server.get("/").status, 200, "the page itself is no secret");
    let ask = |path: &str, headers: &[(&str, &str)]| server.ask("GET", path, headers, None);
    assert_eq!(ask("/api/about", &[("Authorization", &bearer)]).status, 200);
    assert_eq!(ask(&format!("/api/about?a=b&token={}", server.token), &[]).status, 200);
    for path in ["/api/about", "/api/events", "/api/jobs/1/files/x", "/api/nothing", "/api"] {
        assert!(ask(path, &[]).refused(401).contains("token"), "{path}");
    }
    for header in [&bad, &server.token, "Bearer ", "Basic x", &format!("{bearer}x")] {
        assert!(ask("/api/about", &[("Authorization", header)]).refused(401).contains("token"), "{header}");
    }
    assert_eq!(ask(&format!("/api/about?token={wrong}"), &[]).status, 401);
    assert_eq!(ask(&format!("/api/about?token={}", server.token), &[("Host", "evil.example")]).status, 421);
    let post = server.ask(
        "POST",
        "/api/jobs",
        &[("Content-Type", "application/json")],
        Some(run(TINY).to_string().as_bytes()),
    );
    assert_eq!(post.status, 401);
}

#[test]
fn no_path_leads_out_of_the_workspace() {
    let (_dir, path) = workspace();
    let server = Server::start(&path, &[]);
    let id = server.add(run(TINY));
    server.done(id);
    fs::write(path.join("../secret"), "secret").unwrap();
    let out = path.join(format!("jobs/{id}/out"));
    std::os::unix::fs::symlink(path.join("../secret"), out.join("link.txt")).unwrap();
    std::os::unix::fs::symlink("/etc", out.join("folder")).unwrap();
    let files = format!("/api/jobs/{id}/files");
    let tricks = [
        "../job.json",
        "..%2fjob.json",
        "%2e%2e/job.json",
        "%2e%2e%2fjob.json",
        "%252e%252e/job.json",
        "..%5cjob.json",
        "..\\job.json",
        "a/../../job.json",
        "./summary.json",
        "/etc/passwd",
        "%2fetc%2fpasswd",
        "//etc/passwd",
        "link.txt",
        "folder/passwd",
        "summary.json%00",
        "summary.json/",
        "%c0%ae%c0%ae/job.json",
        "%ff",
        "figures",
        "figures/",
        "",
        "..;/job.json",
        "runs/0/summary.json",
        "C:/x",
        "....//job.json",
        "%u002e%u002e/job.json",
    ];
    for trick in tricks {
        for base in [files.as_str(), "/api/ledger/bfc/fig4", "/api/ledger/bfc", ""] {
            let reply = server.ask("GET", &format!("{base}/{trick}"), &[], None);
            // An empty name is the page.
            let page = base.is_empty() && ["", "..", "/"].contains(&trick);
            assert!(page || (400..500).contains(&reply.status), "{base}/{trick}: {}", reply.status);
            assert!(!String::from_utf8_lossy(&reply.body).contains("root:"), "{base}/{trick}");
        }
    }
    for id in ["-1", "+1", "01x", "99999999999999999999999", "0", "1%2f..", "%20", "NaN"] {
        server.get(&format!("/api/jobs/{id}")).refused(404);
        server.get(&format!("/api/jobs/{id}/files/summary.json")).refused(404);
    }
}

#[test]
fn requests_that_make_no_sense_are_refused_in_words() {
    let (_dir, path) = workspace();
    let server = Server::start(&path, &[]);
    for (method, path) in
        [("PUT", "/api/jobs"), ("GET", "/api/check"), ("POST", "/api/about"), ("DELETE", "/api/jobs"), ("POST", "/")]
    {
        let reply = server.ask(method, path, &[("Content-Type", "application/json")], Some(b"{}"));
        reply.refused(405);
        assert!(reply.headers.contains_key("allow"), "{method} {path}");
    }
    assert!(server.get("/api/nothing").refused(404).contains("nothing here"));
    server.get("/nothing.js").refused(404);
    let post = |body: &[u8]| {
        server.ask("POST", "/api/jobs", &[("Content-Type", "application/json; charset=utf-8")], Some(body))
    };
    for body in [&b""[..], b"{", b"[1", b"\xff\xfe", b"nonsense", b"{\"kind\": }"] {
        assert!(post(body).refused(400).contains("not what is expected"), "{}", String::from_utf8_lossy(body));
    }
    let deep = [b"{\"kind\": \"run\", \"text\": ".to_vec(), b"[".repeat(100_000), b"]".repeat(100_000), b"}".to_vec()]
        .concat();
    assert!(post(&deep).refused(400).contains("recursion"));
    let reply = post(b"{\n  \"kind\": \"run\",,\n}");
    reply.refused(400);
    assert_eq!(reply.json()["error"]["line"], 2);
    for (job, word) in [
        (json!({}), "kind"),
        (json!({ "kind": "walk" }), "walk"),
        (json!({ "kind": "run", "text": 5 }), "string"),
        (json!({ "kind": "run", "text": TINY, "surprise": 1 }), "surprise"),
        (json!([]), "not what is expected"),
    ] {
        let message = server.post("/api/jobs", &job).refused(400);
        assert!(message.contains(word), "{message}");
    }
    for (job, word) in [
        (json!({ "kind": "run", "text": "a".repeat(256 * 1024 + 1) }), "bytes"),
        (json!({ "kind": "run", "text": TINY, "name": "n".repeat(201) }), "too long"),
        (json!({ "kind": "run", "text": TINY, "sets": ["x"] }), "\"=\""),
        (json!({ "kind": "run", "text": TINY, "sets": vec!["seed=1"; 101] }), "too many"),
        (json!({ "kind": "compare", "text": TINY, "schemes": ["quic"] }), "quic"),
        (json!({ "kind": "compare", "text": TINY, "schemes": ["pfc"], "seeds": 101 }), "101 runs"),
        (json!({ "kind": "compare", "text": TINY, "vary": ["switch.buffer"] }), "\"=\""),
        (json!({ "kind": "reproduce", "id": "../../etc" }), "no experiment"),
        (json!({ "kind": "reproduce", "id": "bfc/fig4", "scale": "huge" }), "no scale"),
    ] {
        let message = server.post("/api/jobs", &job).refused(422);
        assert!(message.contains(word), "{message}");
    }
    // Larger than anything that is read: announced, or found out.
    let large = vec![b' '; (1 << 20) + 1];
    assert!(post(&large).refused(413).contains("larger"));
    let chunks =
        large.chunks(1 << 16).map(|piece| [format!("{:x}\r\n", piece.len()).as_bytes(), piece, b"\r\n"].concat());
    let head = format!(
        "POST /api/jobs HTTP/1.1\r\nHost: {}\r\nConnection: close\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n",
        server.host
    );
    let raw = server.raw(&[head.as_bytes(), &chunks.collect::<Vec<_>>().concat(), b"0\r\n\r\n"].concat());
    assert_eq!(parse(&raw).unwrap().refused(413), "the body is larger than 1048576 bytes");
    let raw =
        server.raw(format!("GET / HTTP/1.1\r\nHost: {}\r\nX: {}\r\n\r\n", server.host, "x".repeat(200_000)).as_bytes());
    assert!(raw.starts_with(b"HTTP/1.1 431"), "{}", String::from_utf8_lossy(&raw));
    for garbage in [
        &b"\r\n\r\n"[..],
        b"GET\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00",
        b"GET / HTTP/1.1\r\nA b\r\n\r\n",
    ] {
        let mut stream = server.connect();
        stream.write_all(garbage).unwrap();
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        let reply = rest(stream);
        assert!(reply.is_empty() || reply.starts_with(b"HTTP/1.1 400"), "{}", String::from_utf8_lossy(&reply));
    }
    assert_eq!(server.get("/api/jobs").good(), json!([]), "nothing of that became a job");
}

#[test]
fn whatever_is_sent_the_server_neither_falls_nor_blames_itself() {
    let (_dir, path) = workspace();
    let server = Server::start(&path, &[]);
    server.done(server.add(run(TINY)));
    let word = prop::sample::select(vec![
        "api",
        "jobs",
        "1",
        "0",
        "files",
        "flows",
        "why",
        "stops",
        "flow=0",
        "recording",
        "experiments",
        "ledger",
        "bfc",
        "fig4",
        "events.",
        "check",
        "..",
        "%2e",
        "%",
        "%ff",
        "%00",
        "\u{e9}",
        "summary.json",
        "cancel",
        "again",
        "-1",
        "?",
        "&",
        "token=",
        "sort=size",
        "limit=9e9",
        "",
        "*",
        "{id}",
        "about",
    ]);
    let path_of = prop::collection::vec(word, 0..6).prop_map(|words| format!("/{}", words.join("/")));
    let method =
        prop::sample::select(vec!["GET", "HEAD", "POST", "DELETE", "PUT", "OPTIONS", "PATCH", "TRACE", "get", "X"]);
    let header = prop::sample::select(vec![
        "Content-Type: application/json",
        "Content-Type: text/plain",
        "Origin: null",
        "Accept-Encoding: gzip",
        "Expect: 100-continue",
        "Authorization: Bearer x",
        "Range: bytes=0-1",
        "Content-Length: 5",
        "Transfer-Encoding: chunked",
        "Upgrade: h2c",
        "Cookie: \u{fe}",
    ]);
    let body = prop_oneof![
        prop::collection::vec(any::<u8>(), 0..200),
        "\\{\"(kind|text|sets)\":(\"(run|compare|reproduce|\\[topology\\])\"|[0-9]|null|\\[\\])\\}"
            .prop_map(String::into_bytes),
    ];
    let shaped = (method, path_of, prop::collection::vec(header, 0..4), body.clone()).prop_map(
        |(method, path, headers, body)| {
            let lines: String = headers.iter().map(|line| format!("{line}\r\n")).collect();
            let length = if lines.contains("Content-Length") {
                String::new()
            } else {
                format!("Content-Length: {}\r\n", body.len())
            };
            [
                format!("{method} {path} HTTP/1.1\r\nHost: HERE\r\nConnection: close\r\n{lines}{length}\r\n")
                    .into_bytes(),
                body,
            ]
            .concat()
        },
    );
    let bytes = prop_oneof![4 => shaped, 1 => prop::collection::vec(any::<u8>(), 0..300)];
    let cases = std::env::var("STUDIO_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(300);
    let mut runner = TestRunner::new(Config { cases, ..Config::with_source_file(file!()) });
    let result = runner.run(&bytes, |bytes| {
        let place = bytes.windows(4).position(|four| four == b"HERE");
        let bytes = place.map_or(bytes.clone(), |at| [&bytes[..at], server.host.as_bytes(), &bytes[at + 4..]].concat());
        let mut stream = server.connect();
        _ = stream.write_all(&bytes);
        // A request that is not whole ends here.
        _ = stream.shutdown(std::net::Shutdown::Write);
        let reply = rest(stream);
        let status = parse(&reply).map(|reply| reply.status);
        prop_assert!(status.is_none_or(|status| status < 500), "{}", String::from_utf8_lossy(&reply));
        Ok(())
    });
    result.unwrap();
    server.get("/api/about").good();
    assert!(server.state(1) == "done");
}

#[test]
fn a_full_house_is_said_to_be_full() {
    let (_dir, path) = workspace();
    let server = Server::start(&path, &[]);
    let pages: Vec<TcpStream> = (0..100)
        .map(|_| {
            let mut page = server.listen();
            let mut line = String::new();
            page.read_line(&mut line).unwrap();
            assert!(line.starts_with("HTTP/1.1 200"));
            page.into_inner()
        })
        .collect();
    assert!(server.get("/api/events").refused(429).contains("too many pages"));
    drop(pages);
    until("a free place", || {
        let mut line = String::new();
        server.listen().read_line(&mut line).unwrap();
        line.starts_with("HTTP/1.1 200")
    });
    let long = server.add(run(ENDLESS));
    until("a process", || server.state(long) == "running");
    (0..200).for_each(|_| _ = server.add(run(TINY)));
    assert!(server.post("/api/jobs", &run(TINY)).refused(429).contains("has 200 jobs"));
}

#[test]
fn a_studio_that_is_asked_to_end_stops_its_processes_and_keeps_its_queue() {
    for signal in ["TERM", "INT"] {
        let (_dir, path) = workspace();
        let mut server = Server::start(&path, &[]);
        let (long, next) = (server.add(run(ENDLESS)), server.add(run(TINY)));
        until("a process", || server.job(long)["progress"]["runs"] == 1);
        let child = server.children();
        let mut events = server.listen();
        let mut line = String::new();
        events.read_line(&mut line).unwrap();
        // As from the keyboard: to every process in the group.
        let group = format!("-{}", server.child.id());
        assert!(Command::new("kill").args([&format!("-{signal}"), "--", &group]).status().unwrap().success());
        assert!(status("the studio", &mut server.child).success(), "it ends in good order");
        assert!(child.iter().all(|child| !lives(*child)), "a process is left");
        let kept: Value =
            serde_json::from_str(&fs::read_to_string(path.join(format!("jobs/{long}/job.json"))).unwrap()).unwrap();
        assert_eq!(kept["state"], "queued");
        let server = Server::start(&path, &[]);
        until("the job goes on", || server.state(long) == "running");
        server.post(&format!("/api/jobs/{long}/cancel"), &json!({})).good();
        server.done(next);
    }
}

#[test]
fn a_workspace_has_one_studio_and_foreign_or_damaged_files_are_reported() {
    let (dir, path) = workspace();
    let server = Server::start(&path, &[]);
    let id = server.add(run(TINY));
    server.done(id);
    let second = Command::new(env!("CARGO_BIN_EXE_tailwater"))
        .args(["studio", path.to_str().unwrap(), "--port", "0"])
        .output()
        .unwrap();
    assert!(!second.status.success() && String::from_utf8_lossy(&second.stderr).contains("in use by another studio"));
    drop(server);

    let jobs = path.join("jobs");
    let whole = fs::read_to_string(jobs.join(format!("{id}/job.json"))).unwrap();
    let put = |name: &str, text: &[u8]| {
        fs::create_dir_all(jobs.join(name)).unwrap();
        fs::write(jobs.join(name).join("job.json"), text).unwrap();
    };
    put("7", b"{ half");
    put("8", whole.as_bytes());
    put("9", &vec![b' '; 2 << 20]);
    put("10", b"\xff\xfe");
    put("11", whole.replace(&format!("\"id\": {id}"), "\"id\": 11").replace("\"run\"", "\"fly\"").as_bytes());
    fs::create_dir(jobs.join("12")).unwrap();
    fs::create_dir(jobs.join("notes")).unwrap();
    fs::write(jobs.join("007"), "").unwrap();
    fs::write(path.join("mine.txt"), "").unwrap();
    let server = Server::start(&path, &[]);
    let notes = server.get("/api/about").good()["notes"].as_array().unwrap().len();
    assert_eq!(notes, 8);
    assert_eq!(server.get("/api/jobs").good().as_array().unwrap().len(), 1);
    assert_eq!(server.state(id), "done");
    assert_eq!(server.add(run(TINY)), 13, "no folder that is there is used again");
    server.done(13);
    assert!(jobs.join("7/job.json").exists() && jobs.join("notes").exists());

    // Damaged results.
    fs::write(jobs.join(format!("{id}/out/summary.json")), "{").unwrap();
    fs::write(jobs.join(format!("{id}/out/flows.parquet")), "nonsense").unwrap();
    assert_eq!(server.job(id)["results"]["runs"][0]["summary"], Value::Null);
    assert!(server.get(&format!("/api/jobs/{id}/flows/0")).refused(422).contains("cannot be read"));
    // The reader of tables falls over some of these. It does so alone.
    let table = jobs.join("13/out/flows.parquet");
    let whole = fs::read(&table).unwrap();
    for at in (0..whole.len()).rev().step_by(37).take(60) {
        let mut bytes = whole.clone();
        bytes[at] = 49;
        fs::write(&table, bytes).unwrap();
        let status = server.get("/api/jobs/13/flows/0").status;
        assert!(status == 200 || status == 422, "{at}: {status}");
    }
    fs::write(&table, whole).unwrap();
    assert_eq!(server.get("/api/jobs/13/flows/0").good()["total"], 2);
    let said = server.end();
    assert!(said.contains("7/job.json: is damaged") && said.contains("jobs/notes is not a job"), "{said}");

    let foreign = dir.path().join("foreign");
    fs::create_dir(&foreign).unwrap();
    fs::write(foreign.join("thesis.txt"), "…").unwrap();
    let refused =
        Command::new(env!("CARGO_BIN_EXE_tailwater")).args(["studio", foreign.to_str().unwrap()]).output().unwrap();
    assert!(String::from_utf8_lossy(&refused.stderr).contains("not a studio's workspace"));
}

#[test]
fn the_page_may_come_from_a_folder_and_nothing_else_comes_from_it() {
    let (dir, path) = workspace();
    let page = dir.path().join("page");
    fs::create_dir(&page).unwrap();
    let refused = Command::new(env!("CARGO_BIN_EXE_tailwater"))
        .args(["studio", path.to_str().unwrap(), "--port", "0", "--page", page.to_str().unwrap()])
        .output()
        .unwrap();
    assert!(String::from_utf8_lossy(&refused.stderr).contains("has no index.html"));
    fs::write(page.join("index.html"), "mine").unwrap();
    fs::write(page.join("a.js"), "1").unwrap();
    std::os::unix::fs::symlink("/etc/passwd", page.join("b.js")).unwrap();
    let server = Server::start(&path, &["--page", page.to_str().unwrap()]);
    assert_eq!(server.get("/").body, b"mine");
    assert_eq!(server.get("/a.js?v=1").headers["content-type"], "text/javascript; charset=utf-8");
    for path in ["/b.js", "/../work/studio.lock", "/%2e%2e/work/studio.lock", "/.hidden", "/a.js/"] {
        server.get(path).refused(404);
    }
}

/// Fifty runs are queued and twenty pages listen; the server is killed in the middle, and the next one goes on. `STUDIO_SOAK`
/// gives another number of runs.
#[test]
fn a_long_queue_with_many_pages_survives_a_kill_within_bounded_memory() {
    let runs: u64 = std::env::var("STUDIO_SOAK").ok().and_then(|runs| runs.parse().ok()).unwrap_or(50);
    let (_dir, path) = workspace();
    let mut server = Server::start(&path, &["--jobs", "2"]);
    let mut listeners: Vec<_> = (0..20).map(|_| server.listen()).collect();
    let ids: Vec<u64> = (0..runs).map(|seed| server.add(run(&format!("seed = {}\n{TINY}", seed + 1)))).collect();
    assert_eq!(ids, (1..=runs).collect::<Vec<_>>());
    let count = |server: &Server, state: &str| {
        server.get("/api/jobs").good().as_array().unwrap().iter().filter(|job| job["state"] == state).count() as u64
    };
    let long = |what: &str| Deadline::within(PATIENCE + Duration::from_secs(5 * runs), what);
    long("a third of the jobs is done").until(|| count(&server, "done") >= runs / 3);
    let children = server.children();
    let first = server.memory();
    // Every page was notified of everything up to here, in order.
    for listener in &mut listeners {
        let mut done = 0;
        let deadline = long("a page is notified of a third of the jobs");
        while done < runs / 3 {
            deadline.check();
            let (_, job) = event(listener);
            done += u64::from(job["state"] == "done");
        }
    }
    server.signal("KILL");
    until("no process is left", || children.iter().all(|child| !lives(*child)));
    let kept = fs::read_dir(path.join("jobs")).unwrap().count() as u64;
    assert_eq!(kept, runs);

    let server = Server::start(&path, &["--jobs", "2"]);
    assert!(count(&server, "done") >= runs / 3, "what was done stays done");
    let listeners: Vec<_> = (0..20).map(|_| server.listen()).collect();
    long("all jobs are done").until(|| count(&server, "done") == runs);
    for (id, seed) in ids.iter().zip(1..) {
        let job = server.job(*id);
        assert_eq!(
            (&job["results"]["runs"][0]["summary"]["seed"], &job["results"]["runs"][0]["summary"]["finished"]),
            (&json!(seed), &json!(2))
        );
    }
    let last = server.memory();
    println!("memory: {first} B after a third, {last} B in the end");
    assert!(first.max(last) < 100 << 20, "{first} {last}");
    drop(listeners);
}

#[test]
fn connections_that_bring_no_request_keep_nobody_out() {
    let (_dir, path) = workspace();
    let server = Server::start(&path, &[]);
    let mut page = server.listen();
    let mut line = String::new();
    page.read_line(&mut line).unwrap();
    // Twice as many as are served at once; some have sent half a head.
    let silent: Vec<TcpStream> = (0..800)
        .map(|number| {
            let mut stream = server.connect();
            if number % 2 == 0 {
                // It may be closed already.
                _ = stream.write_all(b"GET /api/about HT");
            }
            stream
        })
        .collect();
    let begin = std::time::Instant::now();
    server.get("/api/about").good();
    // Their time for sending a head is 15 s.
    assert!(begin.elapsed() < Duration::from_secs(8), "{:?}", begin.elapsed());
    let id = server.add(run(TINY));
    assert_eq!(event(&mut page).1["id"], id, "a page that listens is not idle");
    drop(silent);
}

#[test]
fn readers_that_take_nothing_keep_no_recording_in_memory() {
    let (_dir, path) = workspace();
    let server = Server::start(&path, &[]);
    let id = server.add(run(TINY));
    server.done(id);
    // One that cannot be packed and fits into no buffer of the system.
    let mut state = 1_u64;
    let mut draw = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        state.to_be_bytes()
    };
    let bytes: Vec<u8> = (0..5 << 20).flat_map(|_| draw()).collect();
    fs::write(path.join(format!("jobs/{id}/out/recording.bin")), bytes).unwrap();
    let readers: Vec<TcpStream> = (0..8)
        .map(|_| {
            let mut reader = server.connect();
            let head = format!("GET /api/jobs/{id}/recording/0 HTTP/1.1\r\nHost: {}\r\n", server.host);
            write!(reader, "{head}Accept-Encoding: gzip\r\n\r\n").unwrap();
            reader
        })
        .collect();
    for mut reader in &readers {
        reader.read_exact(&mut [0; 1000]).unwrap();
    }
    let before = server.memory();
    std::thread::sleep(Duration::from_secs(1));
    let memory = server.memory();
    assert!(before.max(memory) < 100 << 20, "{before} {memory}");
    server.get("/api/about").good();
}
