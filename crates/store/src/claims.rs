//! Claims: who is at work on which run of a store, so that any number of processes on any number of machines fill it together
//! and none does what another is doing. There is no coordinator: a claim is a file in the store.
//!
//! - `claims/DIGEST.1` is made with "only if it is not there", which exactly one process can do, also over NFS. Its text
//!   says who. While the run goes on its owner writes it again and again: a *beat*.
//! - A claim without a beat for longer than its *lease* is void. A process that wants the run then makes the file with the next
//!   number, `claims/DIGEST.2`, again only if it is not there. No file is taken from its owner, so two processes that find a
//!   claim void at the same time, however late one of them acts, cannot both get the next: renaming or removing the old
//!   file could not promise that, since the slower one would hit the claim of the quicker one.
//! - Time is that of the file system: a beat's time is compared with that of a file written just now in the same folder.
//!   The clocks of the machines do not matter. A file is opened before its time is read, which is when NFS asks the server.
//! - A process of this machine that is gone has no claims, whenever its last beat was.
//! - A process that gets a claim looks into the store again before it begins. A process that was suspended and has lost its
//!   claim ends its run all the same: the results are the same bytes and appear whole, so it does no harm.

use crate::digest::Digest;
use files::MACHINE;
use files::problem::Problem;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// How long a claim holds without a beat, where nothing else is said.
pub const LEASE: Duration = Duration::from_secs(60);

/// Where claims are in a store.
pub const FOLDER: &str = "claims";

/// Beats in a lease.
const BEATS: u32 = 6;

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
}

impl Owner {
    /// This process.
    fn me(lease: Duration) -> Owner {
        let host = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default().trim().to_string();
        let process = std::process::id();
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        let began = began(process).unwrap_or_default();
        Owner { host, machine: MACHINE.clone(), process, began, lease: lease.as_millis() as u64, since }
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

/// The claims of a store, as one process sees and makes them.
pub struct Claims {
    folder: PathBuf,
    lease: Duration,
    mine: Arc<Mutex<BTreeMap<PathBuf, String>>>,
    /// Ends the thread that beats when it is dropped.
    beating: Mutex<Option<Sender<()>>>,
    /// The file system's clock, and when it was read.
    clock: Mutex<Option<(SystemTime, Instant)>>,
}

/// A run that this process alone is to do. It ends when it is dropped.
pub struct Claim {
    path: PathBuf,
    number: u64,
    mine: Arc<Mutex<BTreeMap<PathBuf, String>>>,
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
            clock: Mutex::default(),
        }
    }

    /// Claims a run, or says who has it.
    pub fn claim(&self, digest: Digest) -> Result<Result<Claim, Owner>, Problem> {
        let path = self.folder.join(digest.to_string());
        let owner = Owner::me(self.lease);
        let text = serde_json::to_string(&owner).unwrap_or_default() + "\n";
        for _ in 0..ATTEMPTS {
            let newest = self.newest(&path)?;
            if let Some((_, State::Held(owner))) = newest {
                return Ok(Err(owner));
            }
            let number = newest.map_or(1, |(number, _)| number + 1);
            let mine = numbered(&path, number);
            match OpenOptions::new().write(true).create_new(true).open(&mine) {
                Ok(mut file) => {
                    // Without its text it holds all the same, for the lease of the process that looks.
                    _ = file.write_all(text.as_bytes());
                    self.beat(&mine, &text);
                    return Ok(Ok(Claim { path, number, mine: self.mine.clone() }));
                }
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                // The folder goes with the last claim in it.
                Err(error) if error.kind() == ErrorKind::NotFound => {
                    fs::create_dir_all(&self.folder).map_err(|e| files::refused(&self.folder, e))?;
                }
                Err(error) => return Err(files::refused(&mine, error)),
            }
        }
        Ok(Err(Owner::default()))
    }

    /// How it stands with a run.
    pub fn state(&self, digest: Digest) -> Result<State, Problem> {
        Ok(self.newest(&self.folder.join(digest.to_string()))?.map_or(State::Free, |(_, state)| state))
    }

    /// The claim with the highest number.
    fn newest(&self, path: &Path) -> Result<Option<(u64, State)>, Problem> {
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
        let Some((number, mut file)) = newest else { return Ok(None) };
        let mut text = String::new();
        _ = file.read_to_string(&mut text);
        let owner: Owner = serde_json::from_str(&text)
            .unwrap_or_else(|_| Owner { lease: self.lease.as_millis() as u64, ..Owner::default() });
        let beat = file.metadata().and_then(|metadata| metadata.modified());
        let void = owner.is_gone()
            || beat.is_ok_and(|beat| {
                self.now().duration_since(beat).is_ok_and(|silence| silence.as_millis() as u64 > owner.lease)
            });
        Ok(Some((number, if void { State::Void(owner) } else { State::Held(owner) })))
    }

    /// The file system's clock.
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
    fn beat(&self, path: &Path, text: &str) {
        locked(&self.mine).insert(path.into(), text.into());
        locked(&self.beating).get_or_insert_with(|| {
            let (stop, stopped) = channel();
            let (mine, period) = (self.mine.clone(), self.lease / BEATS);
            std::thread::spawn(move || {
                while let Err(RecvTimeoutError::Timeout) = stopped.recv_timeout(period) {
                    // The lock is held, so that no claim is written after it has ended.
                    for (path, text) in &*locked(&mine) {
                        let file = OpenOptions::new().write(true).open(path);
                        _ = file.and_then(|mut file| file.write_all(text.as_bytes()));
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

impl Drop for Claim {
    fn drop(&mut self) {
        let path = |number| numbered(&self.path, number);
        locked(&self.mine).remove(&path(self.number));
        // The process that has taken over clears up. From the highest number down, so that none is missing below one that holds.
        if !path(self.number + 1).exists() {
            (1..=self.number).rev().for_each(|number| _ = fs::remove_file(path(number)));
        }
    }
}
