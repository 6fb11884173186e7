//! Waiting that comes to an end. A test that hangs does not say why; one that gives up says what it waited for.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, ExitStatus, Output};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

/// Far longer than anything takes on a slow and busy machine.
pub const PATIENCE: Duration = Duration::from_secs(300);

/// When waiting for something is given up.
pub struct Deadline {
    what: String,
    begin: Instant,
    patience: Duration,
}

impl Deadline {
    pub fn of(what: impl Into<String>) -> Deadline {
        Deadline::within(PATIENCE, what)
    }

    pub fn within(patience: Duration, what: impl Into<String>) -> Deadline {
        Deadline { what: what.into(), begin: Instant::now(), patience }
    }

    /// Fails the test if the time is over.
    #[track_caller]
    pub fn check(&self) {
        assert!(!self.is_over(), "waited {:?} in vain: {}", self.patience, self.what);
    }

    /// Waits until something holds.
    #[track_caller]
    pub fn until(&self, mut holds: impl FnMut() -> bool) {
        while !holds() {
            self.check();
            thread::sleep(Duration::from_millis(10));
        }
    }

    fn is_over(&self) -> bool {
        self.begin.elapsed() > self.patience
    }
}

/// Waits until something holds, which the message names if it never does.
#[track_caller]
pub fn until(what: &str, holds: impl FnMut() -> bool) {
    Deadline::of(what).until(holds);
}

/// How a process ended. One that does not end is killed.
#[track_caller]
pub fn status(what: &str, child: &mut Child) -> ExitStatus {
    let deadline = Deadline::of(format!("{what} ends"));
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status;
        }
        if deadline.is_over() {
            child.kill().unwrap();
        }
        deadline.check();
        thread::sleep(Duration::from_millis(10));
    }
}

/// How a process ended and what it said. One that does not end is killed.
#[track_caller]
pub fn output(what: &str, child: Child) -> Output {
    let process = child.id();
    let (send, ended) = channel();
    thread::spawn(move || send.send(child.wait_with_output()));
    let Ok(output) = ended.recv_timeout(PATIENCE) else {
        _ = Command::new("kill").args(["-KILL", &process.to_string()]).status();
        panic!("waited {PATIENCE:?} in vain: {what} ends");
    };
    output.unwrap()
}

/// The lines of a process, as they come; the channel closes with the pipe.
pub fn lines(pipe: impl Read + Send + 'static) -> Receiver<String> {
    let (send, lines) = channel();
    // Reads on even without a listener: a process that writes into a closed pipe fails.
    thread::spawn(move || BufReader::new(pipe).lines().map_while(Result::ok).for_each(|line| _ = send.send(line)));
    lines
}
