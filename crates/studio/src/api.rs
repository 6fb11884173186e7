//! The interface: what can be asked of the studio over HTTP.

use crate::guard::{Guard, is_json};
use crate::job::{Request, State as JobState};
use crate::jobs::{Event, Jobs, Refusal};
use crate::workspace::file_below;
use crate::{catalog, check, helper, limits, page, results};
use ::results::recording::RECORDING;
use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Path as At, Query, Request as Incoming, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::sse::{self, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use files::problem::Problem;
use futures_util::stream::{self, Stream};
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::{HashMap, VecDeque};
use std::convert::Infallible;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

/// What every handler can reach.
pub struct Studio {
    /// The queue.
    pub jobs: Arc<Jobs>,
    /// Who may ask.
    pub guard: Guard,
    /// A folder with the page, instead of the one that is built in.
    pub page: Option<PathBuf>,
    /// Turns true when the server ends.
    pub closing: watch::Receiver<bool>,
    /// Places for those who listen to events.
    pub listeners: Arc<Semaphore>,
    /// Places for processes that answer questions.
    pub helpers: Semaphore,
}

type Shared = State<Arc<Studio>>;

/// A request that cannot be answered, with the reason in words.
struct Refuse(StatusCode, Value);

type Answer = Result<Response, Refuse>;

impl IntoResponse for Refuse {
    fn into_response(self) -> Response {
        (self.0, json_response(&json!({ "error": self.1 }))).into_response()
    }
}

impl From<Problem> for Refuse {
    fn from(problem: Problem) -> Refuse {
        Refuse(StatusCode::UNPROCESSABLE_ENTITY, problem.json())
    }
}

impl From<Refusal> for Refuse {
    fn from(refusal: Refusal) -> Refuse {
        match refusal {
            Refusal::Unknown => refuse(StatusCode::NOT_FOUND, "there is no such job", "/api/jobs lists them"),
            Refusal::Not(problem) => problem.into(),
            Refusal::Full(problem) => Refuse(StatusCode::TOO_MANY_REQUESTS, problem.json()),
        }
    }
}

fn refuse(status: StatusCode, message: impl Into<String>, help: impl Into<String>) -> Refuse {
    Refuse(status, json!({ "message": message.into(), "help": help.into() }))
}

fn nothing_there() -> Refuse {
    refuse(StatusCode::NOT_FOUND, "there is nothing here", "check the address")
}

fn json_response(value: &Value) -> Response {
    ([(header::CONTENT_TYPE, "application/json")], value.to_string()).into_response()
}

/// Work that waits for the disk or the processor, done where it keeps no other request waiting.
async fn aside<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, Refuse> {
    let failed = |_| refuse(StatusCode::INTERNAL_SERVER_ERROR, "the studio has failed here", "please report it");
    tokio::task::spawn_blocking(work).await.map_err(failed)
}

/// All routes, behind the guard.
pub fn router(studio: Arc<Studio>) -> Router {
    Router::new()
        .route("/api/about", get(about))
        .route("/api/experiments", get(experiments))
        .route("/api/experiments/{*id}", get(experiment))
        .route("/api/ledger/{*path}", get(ledger_file))
        .route("/api/presets", get(async || json_response(&catalog::presets())))
        .route("/api/topologies", get(async || json_response(&catalog::topologies())))
        .route("/api/schema", get(async || json_response(&catalog::schema())))
        .route("/api/examples", get(async || json_response(&catalog::examples())))
        .route("/api/check", post(check_scenario))
        .route("/api/jobs", get(jobs).post(add_job))
        .route("/api/jobs/{id}", get(job).delete(delete_job))
        .route("/api/jobs/{id}/cancel", post(cancel_job))
        .route("/api/jobs/{id}/again", post(again))
        .route("/api/jobs/{id}/files/{*path}", get(job_file))
        .route("/api/jobs/{id}/recording/{run}", get(recording))
        .route("/api/jobs/{id}/flows/{run}", get(flows))
        .route("/api/jobs/{id}/why/{run}", get(why))
        .route("/api/jobs/{id}/stops/{run}", get(stops))
        .route("/api/folders", get(folders))
        .route("/api/folders/{*path}", get(folder_file))
        .route("/api/events", get(events))
        .fallback(get(page_file))
        .layer(middleware::from_fn_with_state(studio.clone(), guarded))
        .with_state(studio)
}

/// What pages may load: themselves and nothing else.
const OWN: &str = "default-src 'self'; img-src 'self' data: blob:; object-src 'none'; base-uri 'none'; form-action 'none'; \
                   frame-ancestors 'none'";
/// What is made of results may run its own scripts, with an opaque origin: it cannot ask for anything here.
const MADE: &str = "sandbox allow-scripts allow-downloads; default-src 'none'; script-src 'unsafe-inline'; \
                    style-src 'unsafe-inline'; img-src data: blob:; font-src data:; frame-ancestors 'self'";

/// Lets good requests through, and gives every answer the headers that it should have.
async fn guarded(State(studio): Shared, request: Incoming, next: Next) -> Response {
    let checked = studio.guard.check(request.method(), request.uri(), request.headers());
    let api = request.uri().path().starts_with("/api");
    let mut response = match checked {
        Ok(()) => next.run(request).await,
        Err((status, message, help)) => refuse(status, message, help).into_response(),
    };
    let status = response.status();
    let is_json = response.headers().get(header::CONTENT_TYPE).is_some_and(|kind| kind == "application/json");
    if (status.is_client_error() || status.is_server_error()) && !is_json {
        // Said by the framework in words of its own.
        let message = status.canonical_reason().unwrap_or("refused").to_lowercase();
        let allow = response.headers_mut().remove(header::ALLOW);
        response = refuse(status, message, "docs/studio.md says what can be asked for").into_response();
        response.headers_mut().extend(allow.map(|allow| (header::ALLOW, allow)));
    }
    let headers = response.headers_mut();
    let mut set = |name: header::HeaderName, value: &'static str| {
        headers.entry(name).or_insert(HeaderValue::from_static(value));
    };
    set(header::CONTENT_SECURITY_POLICY, OWN);
    set(header::X_CONTENT_TYPE_OPTIONS, "nosniff");
    set(header::X_FRAME_OPTIONS, "SAMEORIGIN");
    set(header::REFERRER_POLICY, "no-referrer");
    set(header::HeaderName::from_static("cross-origin-resource-policy"), "same-origin");
    set(header::HeaderName::from_static("cross-origin-opener-policy"), "same-origin");
    set(header::CACHE_CONTROL, if api { "no-store" } else { "no-cache" });
    response
}

/// Reads a body of JSON, within its size and time.
async fn body<T: for<'a> Deserialize<'a>>(headers: &HeaderMap, body: Body) -> Result<T, Refuse> {
    if !is_json(headers) {
        let help = "send it with Content-Type: application/json";
        return Err(refuse(StatusCode::UNSUPPORTED_MEDIA_TYPE, "the body is not said to be JSON", help));
    }
    let too_large = || {
        let message = format!("the body is larger than {} bytes", limits::BODY);
        refuse(StatusCode::PAYLOAD_TOO_LARGE, message, "send less")
    };
    let said = headers.get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse::<usize>().ok());
    if said.is_some_and(|length| length > limits::BODY) {
        return Err(too_large());
    }
    let late = |_| refuse(StatusCode::REQUEST_TIMEOUT, "the body did not arrive", "send it at once");
    let whole = async {
        let (mut pieces, mut bytes) = (body.into_data_stream(), Vec::new());
        while let Some(piece) = stream::StreamExt::next(&mut pieces).await {
            let broken = |_| refuse(StatusCode::BAD_REQUEST, "the body broke off", "send it again");
            bytes.extend_from_slice(&piece.map_err(broken)?);
            if bytes.len() > limits::BODY {
                return Err(too_large());
            }
        }
        Ok(bytes)
    };
    let bytes = tokio::time::timeout(limits::ARRIVAL, whole).await.map_err(late)??;
    serde_json::from_slice(&bytes).map_err(|error| {
        let mut problem = json!({
            "message": format!("the body is not what is expected: {error}"),
            "help": "docs/studio.md has the fields",
        });
        if error.is_syntax() || error.is_eof() {
            (problem["line"], problem["column"]) = (json!(error.line()), json!(error.column()));
        }
        Refuse(StatusCode::BAD_REQUEST, problem)
    })
}

async fn about(State(studio): Shared) -> Response {
    json_response(&json!({
        "version": env!("CARGO_PKG_VERSION"),
        "workspace": studio.jobs.workspace.folder.display().to_string(),
        "cores": std::thread::available_parallelism().map_or(1, usize::from),
        "limits": limits::list(),
        "notes": studio.jobs.notes,
        "address": studio.guard.abroad().map(|address| format!("http://{address}/")),
    }))
}

async fn experiments(State(studio): Shared) -> Answer {
    Ok(json_response(&aside(move || catalog::experiments(&studio.jobs.workspace)).await?))
}

async fn experiment(State(studio): Shared, At(id): At<String>) -> Answer {
    let found = aside(move || catalog::experiment(&id, &studio.jobs.workspace)).await?;
    let help = "/api/experiments lists them";
    Ok(json_response(&found.ok_or_else(|| refuse(StatusCode::NOT_FOUND, "there is no such experiment", help))?))
}

async fn ledger_file(State(studio): Shared, At(path): At<String>) -> Answer {
    let (id, file) = catalog::split(&path).ok_or_else(nothing_there)?;
    let file = file_below(&studio.jobs.workspace.ledger().join(id), file).ok_or_else(nothing_there)?;
    send_file(&file).await
}

async fn folders(State(studio): Shared) -> Answer {
    let found = aside(move || studio.jobs.workspace.folders()).await?;
    let all = found.iter().map(|found| {
        json!({
            "name": found.name,
            "kind": found.kind,
            "title": found.title,
            "time": found.seconds,
            "page": found.page,
        })
    });
    Ok(json_response(&all.collect()))
}

async fn folder_file(State(studio): Shared, At(path): At<String>) -> Answer {
    let file = aside(move || studio.jobs.workspace.folder_file(&path)).await?;
    send_file(&file.ok_or_else(nothing_there)?).await
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Check {
    text: String,
    #[serde(default)]
    sets: Vec<String>,
}

async fn check_scenario(State(studio): Shared, headers: HeaderMap, content: Body) -> Answer {
    let Check { text, sets } = body(&headers, content).await?;
    // Those whose page has gone give their place up.
    let _place = studio.helpers.acquire().await.map_err(|_| nothing_there())?;
    let jobs = &studio.jobs;
    Ok(json_response(&check::aside(&jobs.program, &jobs.workspace.inputs(), &text, &sets).await))
}

async fn jobs(State(studio): Shared) -> Response {
    json_response(&studio.jobs.list().iter().map(|job| job.json()).collect())
}

async fn add_job(State(studio): Shared, headers: HeaderMap, content: Body) -> Answer {
    let request: Request = body(&headers, content).await?;
    let id = aside(move || studio.jobs.add(request)).await??;
    Ok((StatusCode::CREATED, json_response(&json!({ "id": id }))).into_response())
}

/// The number of a job or of a run.
fn number(text: &str) -> Result<u64, Refuse> {
    let plain = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|_| plain).ok_or_else(nothing_there)
}

fn find(studio: &Studio, id: &str) -> Result<crate::job::Job, Refuse> {
    Ok(studio.jobs.get(number(id)?).ok_or(Refusal::Unknown)?)
}

async fn job(State(studio): Shared, At(id): At<String>) -> Answer {
    let job = find(&studio, &id)?;
    Ok(json_response(&aside(move || results::whole(&studio.jobs.workspace, &job)).await?))
}

async fn delete_job(State(studio): Shared, At(id): At<String>) -> Answer {
    let id = number(&id)?;
    aside(move || studio.jobs.delete(id)).await??;
    Ok(json_response(&json!({ "id": id })))
}

async fn cancel_job(State(studio): Shared, At(id): At<String>) -> Answer {
    let id = number(&id)?;
    aside(move || studio.jobs.cancel(id)).await??;
    Ok(json_response(&json!({ "id": id })))
}

async fn again(State(studio): Shared, At(id): At<String>) -> Answer {
    let id = number(&id)?;
    let new = aside(move || studio.jobs.again(id)).await??;
    Ok((StatusCode::CREATED, json_response(&json!({ "id": new }))).into_response())
}

async fn job_file(State(studio): Shared, At((id, path)): At<(String, String)>) -> Answer {
    let job = find(&studio, &id)?;
    let file = aside(move || results::file(&studio.jobs.workspace, &job, &path)).await?;
    send_file(&file.ok_or_else(nothing_there)?).await
}

/// The folder of a run of a job.
async fn run_folder(studio: Arc<Studio>, id: &str, run: &str) -> Result<PathBuf, Refuse> {
    let (job, run) = (find(&studio, id)?, number(run)?);
    let waits = [JobState::Queued, JobState::Running].contains(&job.state);
    let found = aside(move || results::run_folder(&studio.jobs.workspace, &job, run)).await?;
    found.ok_or_else(|| match waits {
        true => refuse(StatusCode::NOT_FOUND, "the job is not done yet", "wait for it"),
        false => refuse(StatusCode::NOT_FOUND, "there is no such run", "/api/jobs/N lists those of a job"),
    })
}

async fn recording(State(studio): Shared, At((id, run)): At<(String, String)>, headers: HeaderMap) -> Answer {
    let folder = run_folder(studio, &id, &run).await?;
    let help = "run it again with \"record\": true";
    let file = file_below(&folder, RECORDING)
        .ok_or_else(|| refuse(StatusCode::NOT_FOUND, "this run was not recorded", help))?;
    let accepts = headers.get(header::ACCEPT_ENCODING).and_then(|value| value.to_str().ok()).unwrap_or_default();
    if !accepts.split(',').any(|coding| coding.trim() == "gzip") {
        return send_file(&file).await;
    }
    let source = std::fs::File::open(file).map_err(|_| nothing_there())?;
    let packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    // Piece by piece, at the pace of the reader: a recording may be large, and many may be asked for at once.
    let pieces = stream::try_unfold(Some((source, packer)), async |packing| {
        let Some((mut source, mut packer)) = packing else { return Ok(None) };
        let pack = move || -> std::io::Result<_> {
            let mut piece = vec![0; 1 << 18];
            // Small pieces stay in the packer.
            while packer.get_ref().is_empty() {
                match source.read(&mut piece)? {
                    0 => return Ok((packer.finish()?, None)),
                    count => packer.write_all(&piece[..count])?,
                }
            }
            Ok((std::mem::take(packer.get_mut()), Some((source, packer))))
        };
        tokio::task::spawn_blocking(pack).await.map_err(std::io::Error::other)?.map(Some)
    });
    let headers = [
        (header::CONTENT_TYPE, "application/octet-stream"),
        (header::CONTENT_ENCODING, "gzip"),
        (header::VARY, "accept-encoding"),
    ];
    Ok((headers, Body::from_stream(pieces)).into_response())
}

type Words = Query<Vec<(String, String)>>;

async fn flows(State(studio): Shared, At((id, run)): At<(String, String)>, Query(words): Words) -> Answer {
    question(studio, "flows", &id, &run, &words).await
}

async fn why(State(studio): Shared, At((id, run)): At<(String, String)>, Query(words): Words) -> Answer {
    question(studio, "why", &id, &run, &words).await
}

async fn stops(State(studio): Shared, At((id, run)): At<(String, String)>, Query(words): Words) -> Answer {
    question(studio, "stops", &id, &run, &words).await
}

/// A question about a run, which a process of its own answers.
async fn question(studio: Arc<Studio>, what: &str, id: &str, run: &str, words: &[(String, String)]) -> Answer {
    let query: HashMap<&String, &String> = words.iter().map(|(key, value)| (key, value)).collect();
    if query.len() < words.len() {
        return Err(Problem::new("the query", "has a word twice").help("write each once").into());
    }
    let folder = run_folder(studio.clone(), id, run).await?;
    let _place = studio.helpers.acquire().await.map_err(|_| nothing_there())?;
    let arguments = ["ask", what, ".", &json!(query).to_string()].map(String::from);
    let answer = helper::ask(&studio.jobs.program, &folder, &arguments, "").await?;
    match &answer["error"] {
        Value::Null => Ok(json_response(&answer)),
        error => Err(Refuse(StatusCode::UNPROCESSABLE_ENTITY, error.clone())),
    }
}

/// Sends a file piece by piece.
async fn send_file(path: &Path) -> Answer {
    let gone = |_| nothing_there();
    let file = tokio::fs::File::open(path).await.map_err(gone)?;
    let length = file.metadata().await.map_err(gone)?.len();
    let name = path.file_name().map_or("file".into(), |name| name.to_string_lossy().into_owned());
    let kind = page::media_type(&name);
    // No more than was announced, whatever happens to the file in the meantime.
    let pieces = stream::unfold((file, length), async |(mut file, left)| {
        let mut piece = vec![0; left.min(1 << 16) as usize];
        match tokio::io::AsyncReadExt::read(&mut file, &mut piece).await {
            Ok(0) => None,
            Ok(count) => {
                piece.truncate(count);
                Some((Ok(piece), (file, left - count as u64)))
            }
            Err(error) => Some((Err(error), (file, 0))),
        }
    });
    let mut response = Body::from_stream(pieces).into_response();
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    headers.insert(header::CONTENT_LENGTH, HeaderValue::from(length));
    headers.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(MADE));
    let saved = ["parquet", "csv", "pcapng", "bin"].iter().any(|end| name.ends_with(&format!(".{end}")));
    let plain = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-+".contains(&byte));
    if saved
        && plain
        && let Ok(value) = HeaderValue::from_str(&format!("attachment; filename=\"{name}\""))
    {
        headers.insert(header::CONTENT_DISPOSITION, value);
    }
    Ok(response)
}

async fn page_file(State(studio): Shared, request: Incoming) -> Answer {
    let name = request.uri().path().trim_start_matches('/');
    if name == "api" || name.starts_with("api/") {
        return Err(nothing_there());
    }
    let kind = page::media_type(if name.is_empty() { "index.html" } else { name });
    let bytes = match &studio.page {
        None => Bytes::from_static(page::find(name).ok_or_else(nothing_there)?),
        Some(folder) => {
            let file =
                file_below(folder, if name.is_empty() { "index.html" } else { name }).ok_or_else(nothing_there)?;
            tokio::fs::read(file).await.map_err(|_| nothing_there())?.into()
        }
    };
    Ok(([(header::CONTENT_TYPE, kind)], bytes).into_response())
}

async fn events(State(studio): Shared) -> Result<Sse<impl Stream<Item = Result<sse::Event, Infallible>>>, Refuse> {
    let full = |_| refuse(StatusCode::TOO_MANY_REQUESTS, "too many pages listen", "close some");
    let place = studio.listeners.clone().try_acquire_owned().map_err(full)?;
    let listener = Listener {
        heard: studio.jobs.listen(),
        late: VecDeque::new(),
        closing: studio.closing.clone(),
        _place: place,
        jobs: studio.jobs.clone(),
    };
    let hello = stream::iter([Ok(sse::Event::default().comment("tailwater studio"))]);
    let events = stream::unfold(listener, async |mut listener| {
        let event = listener.next().await?;
        Some((Ok(sse::Event::default().event(event.name).data(&event.data)), listener))
    });
    let keep = KeepAlive::new().interval(Duration::from_secs(15));
    Ok(Sse::new(stream::StreamExt::chain(hello, events)).keep_alive(keep))
}

/// A page that listens to events.
struct Listener {
    heard: tokio::sync::broadcast::Receiver<Arc<Event>>,
    /// What is sent to a page that has missed events: all jobs as they are.
    late: VecDeque<Arc<Event>>,
    closing: watch::Receiver<bool>,
    jobs: Arc<Jobs>,
    _place: OwnedSemaphorePermit,
}

impl Listener {
    async fn next(&mut self) -> Option<Arc<Event>> {
        loop {
            if let Some(event) = self.late.pop_front() {
                return Some(event);
            }
            tokio::select! {
                _ = self.closing.wait_for(|closing| *closing) => return None,
                heard = self.heard.recv() => match heard {
                    Ok(event) => return Some(event),
                    Err(RecvError::Closed) => return None,
                    Err(RecvError::Lagged(_)) => {
                        let event = |job: &crate::job::Job| Arc::new(Event { name: "job", data: job.json().to_string() });
                        self.late = self.jobs.list().iter().map(event).collect();
                    }
                },
            }
        }
    }
}
