//! Random scenarios for a while, and what must hold of every one of them. See docs/trust.md.

mod draw;
mod judge;
mod shrink;
mod text;

use clap::Parser;
use judge::{Failure, Verdict, judge, quiet};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use text::Text;

/// How long one finding is made shorter.
const SHRINKING: Duration = Duration::from_secs(20);
/// How long one run of a scenario may take before its thread is given up.
const HANGS: Duration = Duration::from_secs(180);

/// Random scenarios over everything that there is, and what must hold of every one of them.
#[derive(Parser)]
#[command(version)]
struct Arguments {
    /// How long scenarios are drawn.
    #[arg(long, default_value_t = 60)]
    seconds: u64,
    /// How many scenarios are drawn at most.
    #[arg(long, default_value_t = u64::MAX, hide_default_value = true)]
    cases: u64,
    /// What is drawn: the same scenarios for the same seed.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// The number of the first scenario.
    #[arg(long, default_value_t = 0)]
    first: u64,
    /// Scenarios at a time; as many as there are cores if it is not given.
    #[arg(long)]
    threads: Option<usize>,
    /// Judges this scenario instead of drawing any.
    #[arg(long, value_name = "FILE")]
    case: Option<PathBuf>,
    /// Makes the scenario of `--case` as short as it can be, and prints it.
    #[arg(long, requires = "case")]
    shrink: bool,
    /// Prints the scenario `--first` instead of judging any.
    #[arg(long, conflicts_with = "case")]
    print: bool,
    /// Where findings go.
    #[arg(long, value_name = "FOLDER", default_value = "target/swarm")]
    out: PathBuf,
}

/// What all threads share.
struct Swarm {
    seed: u64,
    until: Instant,
    last: u64,
    next: AtomicU64,
    out: PathBuf,
    counts: Mutex<BTreeMap<String, u64>>,
    /// By kind: how many.
    findings: Mutex<BTreeMap<String, u64>>,
    /// Scenarios whose graph files stay.
    kept: Mutex<BTreeSet<u64>>,
}

/// What one thread is at, and since when.
#[derive(Default)]
struct Desk {
    at: Mutex<Option<(u64, String, Instant)>>,
    left: AtomicBool,
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Swarm {
    fn count(&self, what: impl Into<String>) {
        *lock(&self.counts).entry(what.into()).or_default() += 1;
    }

    fn work(&self, desk: &Desk) {
        while Instant::now() < self.until {
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            if number >= self.last {
                break;
            }
            self.count("drawn");
            let text = match draw::draw(self.seed, number, &self.out) {
                Ok(text) => text,
                Err(why) => {
                    self.count(format!("not run: {why}"));
                    self.forget(number);
                    continue;
                }
            };
            match self.judge(desk, number, &text) {
                Verdict::Refused(_) => self.count("refused"),
                Verdict::Sound(ending, happened) => {
                    self.count(format!("sound: {ending}"));
                    happened.iter().for_each(|what| self.count(format!("sound, and {what}")));
                }
                Verdict::Long => self.count("given up: too long"),
                Verdict::Failed(failure) => self.fail(desk, number, text, failure),
            }
            self.forget(number);
        }
        desk.left.store(true, Ordering::Relaxed);
    }

    /// Takes away the graph file of a scenario that is not a finding.
    fn forget(&self, number: u64) {
        if !lock(&self.kept).contains(&number) {
            // Most have none.
            _ = std::fs::remove_file(self.out.join(format!("graph-{number}.toml")));
        }
    }

    fn judge(&self, desk: &Desk, number: u64, text: &Text) -> Verdict {
        let text = text.to_string();
        *lock(&desk.at) = Some((number, text.clone(), Instant::now()));
        let verdict = judge(&text, &self.out);
        *lock(&desk.at) = None;
        verdict
    }

    /// Makes what fails shorter, unless it fails like something before.
    fn fail(&self, desk: &Desk, number: u64, text: Text, failure: Failure) {
        self.count("failed");
        {
            let mut findings = lock(&self.findings);
            let known = findings.entry(failure.kind.clone()).or_default();
            *known += 1;
            if *known > 1 {
                return;
            }
        }
        let end = Instant::now() + SHRINKING;
        let mut last = failure.clone();
        let spelled = |text: &Text| draw::spelled_out(text, &self.out);
        let text = shrink::shrink(text, spelled, |shorter| match self.judge(desk, number, shorter) {
            Verdict::Failed(same) if Instant::now() < end && same.kind == failure.kind => {
                last = same;
                true
            }
            _ => false,
        });
        self.found(number, &text, &last);
    }

    fn found(&self, number: u64, text: &Text, failure: &Failure) {
        let Failure { kind, what } = failure;
        let words = kind.replace(|c: char| !c.is_ascii_alphanumeric(), "-");
        let words: Vec<&str> = words.split('-').filter(|word| !word.is_empty()).collect();
        let mut name = words.join("-");
        name.truncate(60);
        let path = self.out.join(format!("{number}-{name}.toml"));
        let mut what: String = what.chars().take(2000).collect();
        what = what.replace('\n', " ");
        let file = format!("# {kind}\n# {what}\n# seed {}, scenario {number}\n\n{text}", self.seed);
        println!("finding: {kind}\n  {}\n  {what}", path.display());
        if let Err(e) = std::fs::write(&path, file) {
            eprintln!("{}: {e}", path.display());
        }
        lock(&self.findings).entry(kind.clone()).or_insert(1);
        lock(&self.kept).insert(number);
    }
}

/// Judges one file.
fn replay(path: &Path, shorten: bool) -> Result<ExitCode, std::io::Error> {
    let text = std::fs::read_to_string(path)?;
    let folder = path.parent().unwrap_or(Path::new(""));
    let verdict = judge(&text, folder);
    match &verdict {
        Verdict::Failed(Failure { kind, what }) => println!("failed: {kind}\n  {what}"),
        Verdict::Sound(ending, happened) => println!("sound: {ending}; {}", happened.join(", ")),
        Verdict::Refused(why) => println!("refused: {why}"),
        Verdict::Long => println!("given up: too long"),
    }
    let Verdict::Failed(failure) = verdict else { return Ok(ExitCode::SUCCESS) };
    if shorten {
        let fails =
            |text: &Text| matches!(judge(&text.to_string(), folder), Verdict::Failed(f) if f.kind == failure.kind);
        println!("\n{}", shrink::shrink(Text::parse(&text), |text| draw::spelled_out(text, folder), fails));
    }
    Ok(ExitCode::FAILURE)
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    schemes::install();
    quiet();
    let done = match &arguments.case {
        Some(path) => replay(path, arguments.shrink),
        None if arguments.print => print(&arguments),
        None => swarm(&arguments),
    };
    done.unwrap_or_else(|e| {
        eprintln!("error: {e}");
        ExitCode::FAILURE
    })
}

/// Prints one scenario.
fn print(arguments: &Arguments) -> Result<ExitCode, std::io::Error> {
    std::fs::create_dir_all(&arguments.out)?;
    match draw::draw(arguments.seed, arguments.first, &arguments.out) {
        Ok(text) => println!("{text}"),
        Err(why) => println!("# not run: {why}"),
    }
    Ok(ExitCode::SUCCESS)
}

fn swarm(arguments: &Arguments) -> Result<ExitCode, std::io::Error> {
    std::fs::create_dir_all(&arguments.out)?;
    let swarm = Arc::new(Swarm {
        seed: arguments.seed,
        until: Instant::now() + Duration::from_secs(arguments.seconds),
        last: arguments.first.saturating_add(arguments.cases),
        next: AtomicU64::new(arguments.first),
        out: arguments.out.clone(),
        counts: Mutex::default(),
        findings: Mutex::default(),
        kept: Mutex::default(),
    });
    let spawn = || {
        let (desk, swarm) = (Arc::new(Desk::default()), swarm.clone());
        let own = desk.clone();
        // A thread that hangs is left behind, so none is joined.
        std::thread::spawn(move || swarm.work(&own));
        desk
    };
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let mut desks: Vec<_> = (0..arguments.threads.unwrap_or(cores).max(1)).map(|_| spawn()).collect();
    while desks.iter().any(|desk| !desk.left.load(Ordering::Relaxed)) {
        std::thread::sleep(Duration::from_millis(50));
        for desk in &mut desks {
            let hung = lock(&desk.at).as_ref().filter(|(_, _, since)| since.elapsed() > HANGS).cloned();
            if let Some((number, text, _)) = hung {
                let what = format!("no end after {} s", HANGS.as_secs());
                swarm.found(number, &Text::parse(&text), &Failure { kind: "hangs".into(), what });
                *desk = spawn();
            }
        }
    }
    let counts = lock(&swarm.counts);
    counts.iter().for_each(|(what, count)| println!("{count:>8} {what}"));
    let findings = lock(&swarm.findings);
    println!("{:>8} kinds of findings with seed {}", findings.len(), swarm.seed);
    findings.iter().for_each(|(kind, count)| println!("{count:>8} {kind}"));
    Ok(if findings.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
