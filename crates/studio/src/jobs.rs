//! The queue: each job is a process of its own, so that nothing it does can harm the server.

use crate::job::{JOB, Job, LIVE, LOG, Progress, Request, SCENARIO, State, now};
use crate::limits;
use crate::workspace::Workspace;
use files::problem::{Problem, read_text};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};
use tokio::sync::{Notify, broadcast, oneshot};

/// The exit status of a run that broke a promise.
const BROKEN: i32 = 3;

/// A notification to pages.
#[derive(Debug)]
pub struct Event {
    /// `job` or `gone`.
    pub name: &'static str,
    /// JSON.
    pub data: String,
}

/// Why a process is stopped.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Stop {
    /// The user asked for it.
    Cancel,
    /// The server ends; the job goes on with the next one.
    Close,
}

/// Why something cannot be done with a job.
pub enum Refusal {
    /// There is no such job.
    Unknown,
    /// Not as it is now.
    Not(Problem),
    /// There are too many.
    Full(Problem),
}

#[derive(Default)]
struct Inner {
    jobs: BTreeMap<u64, Job>,
    /// How to stop each process.
    running: BTreeMap<u64, oneshot::Sender<Stop>>,
    /// When pages were last notified of each job that runs.
    notified: BTreeMap<u64, Instant>,
    next: u64,
    /// Jobs whose folders are being written.
    coming: usize,
    closing: bool,
}

/// All jobs of a workspace.
pub struct Jobs {
    /// Where they are kept.
    pub workspace: Workspace,
    /// The program whose processes do the work.
    pub program: PathBuf,
    /// What is wrong with the workspace.
    pub notes: Vec<String>,
    at_once: usize,
    inner: Mutex<Inner>,
    /// Held while the folder of a job that has no process is changed, so that none comes back that is being removed.
    folders: Mutex<()>,
    wake: Notify,
    events: broadcast::Sender<Arc<Event>>,
}

impl Jobs {
    /// Those of a workspace, of which so many run at once. What was running when the last server ended waits again.
    pub fn new(workspace: Workspace, program: PathBuf, at_once: usize) -> Result<Jobs, Problem> {
        let (mut inner, mut notes) = (Inner { next: 1, ..Inner::default() }, Vec::new());
        let folder = workspace.jobs();
        files::sweep(&folder);
        files::sweep(&workspace.runs());
        let entries = fs::read_dir(&folder).map_err(|e| Problem::new(folder.display().to_string(), e.to_string()))?;
        for entry in entries.flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            if name.starts_with('.') {
                continue;
            }
            let id = name.parse::<u64>().ok().filter(|id| id.to_string() == name && *id < u64::MAX);
            let (Some(id), true) = (id, entry.path().is_dir()) else {
                notes.push(format!("{} is not a job and is left alone", entry.path().display()));
                continue;
            };
            inner.next = inner.next.max(id + 1);
            files::sweep(&entry.path());
            match Job::read(&entry.path(), id) {
                Err(problem) => notes.push(problem.to_string()),
                Ok(mut job) => {
                    if job.state == State::Running {
                        job.wait_again();
                        job.write(&workspace)?;
                    }
                    inner.jobs.insert(id, job);
                }
            }
        }
        notes.sort();
        let (events, _) = broadcast::channel(1024);
        let inner = Mutex::new(inner);
        Ok(Jobs { workspace, program, notes, at_once, inner, folders: Mutex::default(), wake: Notify::new(), events })
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What happens from now on.
    pub fn listen(&self) -> broadcast::Receiver<Arc<Event>> {
        self.events.subscribe()
    }

    fn notify(&self, job: &Job) {
        // An error means that no page listens.
        _ = self.events.send(Arc::new(Event { name: "job", data: job.json().to_string() }));
    }

    /// All of them, the newest first.
    pub fn list(&self) -> Vec<Job> {
        self.inner().jobs.values().rev().cloned().collect()
    }

    /// One of them.
    pub fn get(&self, id: u64) -> Option<Job> {
        self.inner().jobs.get(&id).cloned()
    }

    /// Puts a job at the end of the queue.
    pub fn add(&self, request: Request) -> Result<u64, Refusal> {
        request.check().map_err(Refusal::Not)?;
        let id = {
            let mut inner = self.inner();
            let waiting = inner.jobs.values().filter(|job| job.state == State::Queued).count() + inner.coming;
            if waiting >= limits::QUEUED {
                let problem = Problem::new("the queue", format!("has {waiting} jobs"));
                return Err(Refusal::Full(problem.help("wait until some are done, or cancel some")));
            }
            let kept = inner.jobs.len() + inner.coming;
            if kept >= limits::KEPT {
                let problem = Problem::new("the workspace", format!("has {kept} jobs"));
                return Err(Refusal::Full(problem.help("delete jobs that are not needed any more")));
            }
            inner.coming += 1;
            inner.next += 1;
            inner.next - 1
        };
        let job = Job::create(&self.workspace, id, request);
        let mut inner = self.inner();
        inner.coming -= 1;
        let job = job.map_err(Refusal::Not)?;
        self.notify(&job);
        inner.jobs.insert(id, job);
        drop(inner);
        self.wake.notify_one();
        Ok(id)
    }

    /// The same job once more, as a new one.
    pub fn again(&self, id: u64) -> Result<u64, Refusal> {
        let job = self.get(id).ok_or(Refusal::Unknown)?;
        let text = match job.request {
            Request::Reproduce { .. } => String::new(),
            _ => read_text(&self.workspace.job(id).join(SCENARIO)).map_err(Refusal::Not)?,
        };
        self.add(job.request.with_text(text))
    }

    /// Stops a job that waits or runs.
    pub fn cancel(&self, id: u64) -> Result<(), Refusal> {
        let _folders = self.folders.lock().unwrap_or_else(PoisonError::into_inner);
        let mut inner = self.inner();
        let job = inner.jobs.get_mut(&id).ok_or(Refusal::Unknown)?;
        match job.state {
            State::Queued => {
                job.end(State::Cancelled);
                let job = job.clone();
                drop(inner);
                self.notify(&job);
                job.write(&self.workspace).map_err(Refusal::Not)
            }
            State::Running => {
                // The task that waits for the process does the rest.
                if let Some(stop) = inner.running.remove(&id) {
                    _ = stop.send(Stop::Cancel);
                }
                Ok(())
            }
            _ => Err(Refusal::Not(Problem::new(format!("job {id}"), "is over").help("there is nothing to cancel"))),
        }
    }

    /// Forgets a job and removes its folder. Runs in the store stay.
    pub fn delete(&self, id: u64) -> Result<(), Refusal> {
        let _folders = self.folders.lock().unwrap_or_else(PoisonError::into_inner);
        let mut inner = self.inner();
        let job = inner.jobs.get(&id).ok_or(Refusal::Unknown)?;
        if job.state == State::Running {
            return Err(Refusal::Not(Problem::new(format!("job {id}"), "is running").help("cancel it first")));
        }
        inner.jobs.remove(&id);
        drop(inner);
        let folder = self.workspace.job(id);
        // Without it the folder is no job any more, whatever happens to the rest.
        _ = fs::remove_file(folder.join(JOB));
        _ = fs::remove_dir_all(&folder);
        _ = self.events.send(Arc::new(Event { name: "gone", data: json!({ "id": id }).to_string() }));
        Ok(())
    }

    /// Does what is in the queue until the server ends.
    pub async fn work(self: Arc<Self>) {
        loop {
            while let Some((job, stop)) = self.take() {
                tokio::spawn(self.clone().perform(job, stop));
            }
            if self.inner().closing {
                return;
            }
            self.wake.notified().await;
        }
    }

    /// The next job, if one may be started.
    fn take(&self) -> Option<(Job, oneshot::Receiver<Stop>)> {
        let mut inner = self.inner();
        if inner.closing || inner.jobs.values().filter(|job| job.state == State::Running).count() >= self.at_once {
            return None;
        }
        let job = inner.jobs.values_mut().find(|job| job.state == State::Queued)?;
        job.state = State::Running;
        job.started = Some(now());
        job.progress = Progress::default();
        let job = job.clone();
        let (sender, receiver) = oneshot::channel();
        inner.running.insert(job.id, sender);
        drop(inner);
        self.notify(&job);
        Some((job, receiver))
    }

    /// Starts a job's process.
    fn spawn(&self, job: &Job) -> std::io::Result<Child> {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let child = Command::new(&self.program)
            .args(job.request.arguments(&self.workspace, job.id, (cores / self.at_once).max(1)))
            .current_dir(&self.workspace.folder)
            // It ends when this end of the pipe is closed, whatever closes it.
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            // An interrupt from the keyboard is for the studio, which then sees to its processes.
            .process_group(0)
            .kill_on_drop(true)
            .spawn()?;
        bound_memory(&child, limits::MEMORY);
        Ok(child)
    }

    async fn perform(self: Arc<Self>, job: Job, stop: oneshot::Receiver<Stop>) {
        let id = job.id;
        let started = job.write(&self.workspace).map_err(|problem| problem.json());
        let child = started.and_then(|()| {
            self.spawn(&job).map_err(|error| json!({ "message": format!("no process can be started: {error}") }))
        });
        let outcome = match child {
            Ok(child) => self.watch(id, child, stop).await,
            Err(problem) => (State::Failed, Some(problem)),
        };
        self.over(id, outcome);
        self.wake.notify_one();
    }

    /// Listens to a process until it is over, and says how it ended.
    async fn watch(&self, id: u64, mut child: Child, mut stop: oneshot::Receiver<Stop>) -> (State, Option<Value>) {
        let log = fs::File::create(self.workspace.job(id).join(LOG));
        let mut log = log.ok().map(|file| (file, 0));
        let stdin = child.stdin.take();
        let mut last_words: Vec<String> = Vec::new();
        let deadline = tokio::time::sleep(limits::WALL);
        tokio::pin!(deadline);
        let mut why = None;
        if let Some(pipe) = child.stderr.take() {
            let mut lines = BufReader::new(pipe).split(b'\n');
            loop {
                tokio::select! {
                    line = lines.next_segment() => match line {
                        Ok(Some(line)) => self.hear(id, &String::from_utf8_lossy(&line), &mut log, &mut last_words),
                        _ => break,
                    },
                    asked = &mut stop => {
                        why = Some(asked.unwrap_or(Stop::Close));
                        break;
                    }
                    () = &mut deadline => break,
                }
            }
        }
        let late = deadline.is_elapsed();
        if why.is_some() || late {
            _ = child.start_kill();
        }
        let status = tokio::select! {
            status = child.wait() => status,
            // It has closed its standard error and goes on: no process of ours does that.
            () = tokio::time::sleep(limits::STALLED) => {
                _ = child.start_kill();
                child.wait().await
            }
        };
        drop(stdin);
        files::sweep(&self.workspace.job(id));
        match why {
            Some(Stop::Cancel) => (State::Cancelled, None),
            Some(Stop::Close) => (State::Queued, None),
            None if late => {
                let message = format!("took longer than {} s and was ended", limits::WALL.as_secs());
                let help =
                    "what is finished is in the store: run it again to go on, make it smaller, or use the command line";
                (State::Failed, Some(json!({ "message": message, "help": help })))
            }
            None => self.judge(id, status, &last_words),
        }
    }

    /// Takes in a line of a process.
    fn hear(&self, id: u64, line: &str, log: &mut Option<(fs::File, usize)>, last_words: &mut Vec<String>) {
        let said = serde_json::from_str::<Value>(line).ok().filter(|said| said["step"].is_string());
        let said = said.unwrap_or_else(|| {
            last_words.push(line.chars().take(500).collect());
            if last_words.len() > 10 {
                last_words.remove(0);
            }
            json!({ "step": "text", "text": line })
        });
        let mut inner = self.inner();
        let Some(job) = inner.jobs.get_mut(&id) else { return };
        let keep = job.hear(&said);
        let job = job.clone();
        let due = inner.notified.get(&id).is_none_or(|last| last.elapsed() >= limits::PULSE);
        if due {
            inner.notified.insert(id, Instant::now());
        }
        drop(inner);
        if due {
            self.notify(&job);
        }
        if let Some((file, written)) = log.as_mut().filter(|(_, written)| keep && *written < limits::LOG) {
            let text = format!("{said}\n");
            *written += text.len();
            _ = file.write_all(text.as_bytes());
        }
    }

    /// What an exit status means.
    fn judge(&self, id: u64, status: std::io::Result<ExitStatus>, last_words: &[String]) -> (State, Option<Value>) {
        let known = self.get(id).and_then(|job| job.problem);
        let code = status.as_ref().ok().and_then(ExitStatus::code);
        match code {
            Some(0) => (State::Done, None),
            Some(BROKEN) => (State::Broken, known),
            Some(1 | 2) if known.is_some() => (State::Failed, known),
            _ => {
                let how = status.map_or_else(|error| error.to_string(), |status| status.to_string());
                let words = last_words.join("\n");
                let message = format!("the process of this job has died ({how})");
                let help = "the other jobs go on; run this one again, or with the command line to see more";
                (State::Broken, Some(json!({ "message": message, "help": help, "text": words })))
            }
        }
    }

    /// A process is over.
    fn over(&self, id: u64, (state, problem): (State, Option<Value>)) {
        // Until the end nobody else changes a job that runs. It runs until its file says otherwise: deleted before that, it would come back.
        let Some(mut job) = self.get(id) else { return };
        match state {
            State::Queued => job.wait_again(),
            state => job.end(state),
        }
        job.problem = problem;
        // The results have all of it, if there are any.
        _ = fs::remove_dir_all(self.workspace.job(id).join(LIVE));
        if let Err(problem) = job.write(&self.workspace) {
            // It is done all the same; after a restart it is done again.
            job.notes.push(problem.to_string());
        }
        let mut inner = self.inner();
        inner.running.remove(&id);
        inner.notified.remove(&id);
        // Before anybody can delete it: pages hear of a job last that it is gone.
        self.notify(&job);
        inner.jobs.insert(id, job);
    }

    /// Stops every process. Its job waits for the next server.
    pub async fn close(&self) {
        {
            let mut inner = self.inner();
            inner.closing = true;
            std::mem::take(&mut inner.running).into_values().for_each(|stop| _ = stop.send(Stop::Close));
        }
        self.wake.notify_one();
        for _ in 0..500 {
            if self.inner().jobs.values().all(|job| job.state != State::Running) {
                return;
            }
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
    }
}

impl Job {
    fn wait_again(&mut self) {
        (self.state, self.started, self.progress) = (State::Queued, None, Progress::default());
        (self.problem, self.notes, self.stored) = (None, Vec::new(), Vec::new());
    }

    fn end(&mut self, state: State) {
        (self.state, self.ended) = (state, Some(now()));
        self.progress.running.clear();
        if state == State::Done {
            self.progress.share = 1.0;
        }
    }
}

/// Bounds the address space of a process, where the system can.
#[cfg(target_os = "linux")]
pub fn bound_memory(child: &Child, bytes: u64) {
    use rustix::process::{Pid, Resource, Rlimit, prlimit};
    if let Some(pid) = child.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?)) {
        // A process that has ended already needs none.
        _ = prlimit(Some(pid), Resource::As, Rlimit { current: Some(bytes), maximum: Some(bytes) });
    }
}

/// Bounds the address space of a process, where the system can.
#[cfg(not(target_os = "linux"))]
pub fn bound_memory(_: &Child, _: u64) {}
