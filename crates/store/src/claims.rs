//! Claims: who is at work on which run of a store, so that any number of processes on any number of machines fill it together
//! and none does what another is doing. There is no coordinator: a claim is a file in the store.
//!
//! - `claims/DIGEST.1` is made with "only if it is not there", which exactly one process can do, also over NFS. Its text
//!   says who. While the run goes on its owner writes it again and again, with a count that goes up: a *beat*.
//! - A claim without a beat for longer than its *lease* is void. A process that wants the run then makes the file with the next
//!   number, `claims/DIGEST.2`, again only if it is not there. No file is taken from its owner, so two processes that find a
//!   claim void at the same time, however late one of them acts, cannot both get the next: renaming or removing the old
//!   file could not promise that, since the slower one would hit the claim of the quicker one.
//! - Only the clock of the process that waits counts, and that only runs forward: a claim is void when that process has seen the
//!   same file, unchanged, for a lease. What a file says about time, or the file system about the file, is compared with what
//!   it was before, never with a clock. So a claim dated in the future, or in the past, is a claim like any other.
//!   A file is opened before it is read, which is when NFS asks the server.
//! - A process of this machine that is gone has no claims, whenever its last beat was.
//! - While a run is not done its numbers only go up. A claim that is given up is marked as such and stays; only the first one is
//!   removed, by an owner that knows from its own clock that nobody can have found it void. A number that could be used twice
//!   could be taken by a process that looked before the first use ended.
//! - A process that gets a claim looks into the store again before it begins. A process that was suspended and has lost its
//!   claim ends its run all the same: the results are the same bytes and appear whole, so it does no harm.
//!
//! `tests/all/model.rs` explores every order of these steps, with an NFS client's stale entries and lost replies.

use crate::digest::Digest;
use files::MACHINE;
use files::problem::Problem;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// How long a claim holds without a beat, where nothing else is said.
pub const LEASE: Duration = Duration::from_secs(60);

/// Where claims are in a store.
pub const FOLDER: &str = "claims";

/// Beats in a lease.
const BEATS: u32 = 6;

/// The longest lease that a claim is granted, whatever its file says.
const LONGEST: Duration = Duration::from_secs(24 * 3600);

/// What the file system's clock said is good for so long.
const GLANCE: Duration = Duration::from_secs(5);

/// How often another process may be quicker before the run is left to them for now.
const ATTEMPTS: usize = 100;

/// Who has claimed a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Owner {
    /// The name of the machine.
    pub host: String,
    /// The machine since it was started; empty where that is not known.
    machine: String,
    /// The process, by number.
    pub process: u32,
    /// When that process began, as its machine counts: numbers are used again.
    began: u64,
    /// Milliseconds without a beat after which the claim is void.
    lease: u64,
    /// When the run was claimed, in seconds since 1970 by the clock of that machine; for people.
    pub since: u64,
    /// Which claim of that process, so that it knows its own.
    #[serde(default)]
    which: u64,
    /// Given up: the next one may go on.
    #[serde(default)]
    released: bool,
}

impl Owner {
    /// This process.
    fn me(lease: Duration) -> Owner {
        let host = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default().trim().to_string();
        let process = std::process::id();
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        let began = began(process).unwrap_or_default();
        let lease = lease.as_millis() as u64;
        static COUNT: AtomicU64 = AtomicU64::new(1);
        let which = COUNT.fetch_add(1, Ordering::Relaxed);
        Owner { host, machine: MACHINE.clone(), process, began, lease, since, which, released: false }
    }

    /// What a claim's file holds at that beat. All beats are of one length, so that each covers the one before.
    fn text(&self, beat: u64) -> String {
        #[derive(Serialize)]
        struct Beat<'a> {
            #[serde(flatten)]
            owner: &'a Owner,
            beat: String,
        }
        serde_json::to_string(&Beat { owner: self, beat: format!("{beat:012}") }).unwrap_or_default() + "\n"
    }

    /// How long the claim holds without a beat.
    pub fn lease(&self) -> Duration {
        Duration::from_millis(self.lease).min(LONGEST)
    }

    /// Whether it is known to be a process of this machine that is there.
    fn is_here(&self) -> bool {
        !self.machine.is_empty() && self.machine == *MACHINE && began(self.process) == Some(self.began)
    }

    /// Whether it is a process of this machine that is no more.
    fn is_gone(&self) -> bool {
        !self.machine.is_empty() && self.machine == *MACHINE && began(self.process) != Some(self.began)
    }
}

/// When a process of this machine began, if it is there.
fn began(process: u32) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The second field is a name in parentheses that may hold anything. The third is the state; a zombie does nothing more.
    let mut fields = text.rsplit_once(')')?.1.split_whitespace();
    let state = fields.next()?;
    (state != "Z" && state != "X").then(|| fields.nth(18)?.parse().ok()).flatten()
}

/// What a store has of claims on a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    /// None that counts.
    Free,
    /// A process is at work.
    Held(Owner),
    /// A process was, and has ended or renews its claim no more.
    Void(Owner),
}

/// A claim of another process, as this one has seen it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Held {
    /// Whose it is.
    pub owner: Owner,
    /// For how long it has shown no sign of life, by the clock of this process, which has watched it since.
    pub silent: Duration,
    /// Whether this process has seen a sign of life: a beat, or the process itself on this machine.
    pub alive: bool,
}

/// The newest claim on a run, as it was last seen.
struct Sight {
    number: u64,
    text: String,
    /// When the file system says it was written. It is compared with nothing but itself.
    stamp: Option<SystemTime>,
    /// When this process first saw it like that.
    since: Instant,
    /// Whether it has changed before the eyes of this process.
    changed: bool,
}

/// What a look at the newest claim on a run gives.
struct Look {
    number: u64,
    held: Held,
    stamp: Option<SystemTime>,
}

impl Look {
    fn is_void(&self) -> bool {
        let Held { owner, silent, .. } = &self.held;
        owner.released || owner.is_gone() || *silent > owner.lease()
    }
}

/// A claim of this process.
struct Mine {
    owner: Owner,
    beats: u64,
    /// The last beat that was written.
    last: Instant,
    /// Whether a beat came so late that others may have found the claim void.
    late: bool,
}

impl Mine {
    /// Clocks of two machines run at the same pace, more or less.
    fn is_late(&self) -> bool {
        self.late || self.last.elapsed() > self.owner.lease() / 2
    }
}

type Own = Arc<Mutex<BTreeMap<PathBuf, Mine>>>;

/// The claims of a store, as one process sees and makes them.
pub struct Claims {
    folder: PathBuf,
    lease: Duration,
    mine: Own,
    /// Ends the thread that beats when it is dropped.
    beating: Mutex<Option<Sender<()>>>,
    /// What was seen of others, by run.
    seen: Mutex<BTreeMap<PathBuf, Sight>>,
    /// The file system's clock, and when it was read.
    clock: Mutex<Option<(SystemTime, Instant)>>,
}

/// A run that this process alone is to do. It ends when it is dropped.
pub struct Claim {
    path: PathBuf,
    number: u64,
    done: bool,
    mine: Own,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The claim on a run with that number, counted from 1.
fn numbered(path: &Path, number: u64) -> PathBuf {
    path.with_extension(number.to_string())
}

/// Whether a file is not there, or not any more.
fn is_absent(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::NotFound | ErrorKind::NotADirectory | ErrorKind::StaleNetworkFileHandle)
}

impl Claims {
    /// Of the store in `store`, made for `lease`.
    pub fn new(store: &Path, lease: Duration) -> Claims {
        let lease = lease.max(Duration::from_millis(100));
        Claims {
            folder: store.join(FOLDER),
            lease,
            mine: Arc::default(),
            beating: Mutex::default(),
            seen: Mutex::default(),
            clock: Mutex::default(),
        }
    }

    /// Claims a run, or says who has it. A claim of a process elsewhere that has died is void only after this process
    /// has seen it, with every call of this, for a lease.
    pub fn claim(&self, digest: Digest) -> Result<Result<Claim, Held>, Problem> {
        let path = self.folder.join(digest.to_string());
        let owner = Owner::me(self.lease);
        let text = owner.text(0);
        for _ in 0..ATTEMPTS {
            let newest = self.look(&path)?;
            if let Some(look) = newest.as_ref().filter(|look| !look.is_void()) {
                return Ok(Err(look.held.clone()));
            }
            let number = newest.map_or(1, |look| look.number + 1);
            let mine = numbered(&path, number);
            let begin = Instant::now();
            match OpenOptions::new().write(true).create_new(true).open(&mine) {
                Ok(mut file) => {
                    // Without its text it holds all the same, for the lease of the process that looks.
                    _ = file.write_all(text.as_bytes());
                    self.beat(&mine, Mine { owner, beats: 0, last: begin, late: false });
                    locked(&self.seen).remove(&path);
                    return Ok(Ok(Claim { path, number, done: false, mine: self.mine.clone() }));
                }
                // Also of a file that this process has made, where the server's reply was lost: without beats it becomes void.
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                // The folder goes with the last claim in it.
                Err(error) if error.kind() == ErrorKind::NotFound => {
                    fs::create_dir_all(&self.folder).map_err(|e| files::refused(&self.folder, e))?;
                }
                Err(error) => return Err(files::refused(&mine, error)),
            }
        }
        Ok(Err(Held::default()))
    }

    /// How it stands with a run, for people who ask once. Where this process has not watched a claim for long enough, the file
    /// system's clock gives a hint: a claim that is a lease away from it, before or after, is called void. Nothing is taken over for that.
    pub fn state(&self, digest: Digest) -> Result<State, Problem> {
        let Some(look) = self.look(&self.folder.join(digest.to_string()))? else { return Ok(State::Free) };
        let owner = look.held.owner.clone();
        if owner.released {
            return Ok(State::Free);
        }
        let far = |stamp: SystemTime| {
            let now = self.now();
            let distance = now.duration_since(stamp).unwrap_or_else(|ahead| ahead.duration());
            distance > owner.lease()
        };
        match look.is_void() || look.stamp.is_some_and(far) {
            true => Ok(State::Void(owner)),
            false => Ok(State::Held(owner)),
        }
    }

    /// The claim with the highest number, and for how long it has not changed.
    fn look(&self, path: &Path) -> Result<Option<Look>, Problem> {
        let mut newest = None;
        for number in 1.. {
            let path = numbered(path, number);
            match File::open(&path) {
                Ok(file) => newest = Some((number, file)),
                Err(error) if is_absent(error.kind()) => break,
                Err(error) => {
                    return Err(Problem::new(path.display().to_string(), format!("cannot be read: {error}"))
                        .help("give everyone who works on the store permission to read and write it"));
                }
            }
        }
        let mut seen = locked(&self.seen);
        let Some((number, mut file)) = newest else {
            seen.remove(path);
            return Ok(None);
        };
        let mut text = String::new();
        _ = file.read_to_string(&mut text);
        let stamp = file.metadata().and_then(|metadata| metadata.modified()).ok();
        let owner: Owner = serde_json::from_str(&text)
            .unwrap_or_else(|_| Owner { lease: self.lease.as_millis() as u64, ..Owner::default() });
        let before = seen.get(path).filter(|sight| sight.number == number);
        let sight = match before {
            Some(Sight { text: t, stamp: s, since, changed, .. }) if *t == text && *s == stamp => {
                Sight { number, text, stamp, since: *since, changed: *changed }
            }
            _ => Sight { number, text, stamp, since: Instant::now(), changed: before.is_some() },
        };
        let (silent, alive) = (sight.since.elapsed(), sight.changed || owner.is_here());
        seen.insert(path.into(), sight);
        Ok(Some(Look { number, held: Held { owner, silent, alive }, stamp }))
    }

    /// The file system's clock, for [`Claims::state`].
    fn now(&self) -> SystemTime {
        let mut clock = locked(&self.clock);
        if let Some((time, read)) = *clock
            && read.elapsed() < GLANCE
        {
            return time + read.elapsed();
        }
        let path = files::draft(&self.folder.join("clock"));
        let written = || {
            let mut file = File::create_new(&path)?;
            file.write_all(b"?")?;
            // Until then an NFS client may report its own time.
            file.sync_all()?;
            file.metadata()?.modified()
        };
        let time = written();
        _ = fs::remove_file(&path);
        // A store that may only be read: its claims are only looked at.
        let time = time.unwrap_or_else(|_| SystemTime::now());
        *clock = Some((time, Instant::now()));
        time
    }

    /// Sees to it that a claim of this process is kept up.
    fn beat(&self, path: &Path, claim: Mine) {
        locked(&self.mine).insert(path.into(), claim);
        locked(&self.beating).get_or_insert_with(|| {
            let (stop, stopped) = channel();
            let (mine, period) = (self.mine.clone(), self.lease / BEATS);
            std::thread::spawn(move || {
                while let Err(RecvTimeoutError::Timeout) = stopped.recv_timeout(period) {
                    // The lock is held, so that no claim is written after it has ended.
                    for (path, claim) in &mut *locked(&mine) {
                        claim.beats += 1;
                        let text = claim.owner.text(claim.beats);
                        let file = OpenOptions::new().write(true).open(path);
                        if file.and_then(|mut file| file.write_all(text.as_bytes())).is_ok() {
                            claim.late = claim.is_late();
                            claim.last = Instant::now();
                        }
                    }
                }
            });
            stop
        });
    }

    /// Removes claims on runs that are done, and the folder if it is then empty.
    pub fn tidy(&self, is_done: impl Fn(&str) -> bool) {
        files::sweep(&self.folder);
        for entry in fs::read_dir(&self.folder).into_iter().flatten().flatten() {
            let name = entry.file_name();
            if name.to_string_lossy().split_once('.').is_some_and(|(digest, _)| is_done(digest)) {
                _ = fs::remove_file(entry.path());
            }
        }
        _ = fs::remove_dir(&self.folder);
    }
}

impl Claim {
    /// Ends the claim on a run whose results are in the store: nothing is left of it, nor of those before it.
    pub fn done(mut self) {
        self.done = true;
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        let path = |number| numbered(&self.path, number);
        let own = path(self.number);
        let Some(claim) = locked(&self.mine).remove(&own) else { return };
        // Others may have done the run meanwhile, cleared up, and begun anew.
        let Ok(text) = fs::read_to_string(&own) else { return };
        if !serde_json::from_str(&text).map_or(text.is_empty(), |owner: Owner| owner == claim.owner) {
            return;
        }
        if self.done {
            // The process that has taken over clears up. From the highest number down, so that none is missing below one that holds.
            if !path(self.number + 1).exists() {
                (1..=self.number).rev().for_each(|number| _ = fs::remove_file(path(number)));
            }
        } else if self.number == 1 && !claim.is_late() && !path(2).exists() {
            _ = fs::remove_file(own);
        } else {
            let text = Owner { released: true, ..claim.owner }.text(claim.beats + 1);
            let file = OpenOptions::new().write(true).truncate(true).open(own);
            _ = file.and_then(|mut file| file.write_all(text.as_bytes()));
        }
    }
}
