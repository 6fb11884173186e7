//! The commands: thin wrappers around the library.

use crate::program::interrupt;
use crate::program::progress::{self, Progress};
use crate::program::{slurm, usage};
use engine::{Bytes, QuantityError, Time};
use files::problem::Problem;
use interop::ns3::{Options, output};
use results::measure::Spread;
use run::outcome::Summary;
use std::io::Write;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;
use store::grid::Work;

/// What printing gives: an error means that the reader has gone.
pub type Output = std::io::Result<()>;

/// Prints, without falling over when the reader has gone.
pub fn say(text: String) -> Output {
    std::io::stdout().write_all(text.as_bytes())
}

/// A reader that has gone is no problem; anything else is.
pub fn printed(result: Output) -> Result<ExitCode, Problem> {
    match result {
        Err(e) if e.kind() != std::io::ErrorKind::BrokenPipe => Err(Problem::new("standard output", e.to_string())),
        _ => Ok(ExitCode::SUCCESS),
    }
}

/// A run whose promises were broken.
pub const BROKEN: u8 = 3;
/// A run in which flows wait for ever without an excuse.
const STALLED: u8 = 5;

/// Where runs go by themselves, if that is not where `compare` and `sweep` keep theirs.
fn default_folder(scenario: &Path) -> Result<PathBuf, Problem> {
    let stem = scenario.file_stem().map_or("run".into(), |s| s.to_string_lossy().into_owned());
    let folder = Path::new("results").join(stem);
    match folder == Path::new(STORE) {
        true => Err(Problem::new(STORE, "is where compare and sweep keep their runs; this one would be in their way")
            .help("choose another folder with --out")),
        false => Ok(folder),
    }
}

/// Where `compare` and `sweep` keep their runs.
pub const STORE: &str = "results/runs";

/// As many threads as were asked for, or as there are cores.
pub fn threads_or_all(threads: Option<NonZeroUsize>) -> usize {
    threads.or(std::thread::available_parallelism().ok()).map_or(1, NonZeroUsize::get)
}

/// Reads how many threads, or blocks, there are to be.
pub fn from_one(text: &str) -> Result<NonZeroUsize, String> {
    text.parse().map_err(|_| "write a whole number from 1 on, or leave the option out".into())
}

/// How long a frame is where a run is recorded from an instant on.
const CLOSELY: Time = Time::from_ns(100);

/// Whether a run is recorded, and how.
pub struct Record {
    /// `--record`.
    pub wanted: bool,
    /// `--record-every`.
    pub every: Option<String>,
    /// `--record-from`.
    pub from: Option<String>,
    /// `--record-live`.
    pub live: Option<PathBuf>,
}

impl Record {
    /// The length of its frames, where it was given.
    fn every(&self) -> Result<Option<Time>, Problem> {
        let Some(text) = &self.every else { return Ok(None) };
        let remedy = "write a time above zero, such as 1us";
        let every: Time =
            text.parse().map_err(|e: QuantityError| Problem::new("--record-every", e.to_string()).help(remedy))?;
        if !(Time(1)..=Time::from_ms(1_000)).contains(&every) {
            return Err(Problem::new("--record-every", "is nothing, or more than a second").help(remedy));
        }
        Ok(Some(every))
    }

    /// From where on, where that was given.
    fn from(&self) -> Result<Option<Time>, Problem> {
        let wrong = |e: QuantityError| {
            Problem::new("--record-from", e.to_string()).help("write an instant of the run, such as 300us")
        };
        self.from.as_ref().map(|text| text.parse().map_err(wrong)).transpose()
    }
}

/// `tailwater run`.
pub fn run(
    scenario: &Path,
    sets: &[String],
    out: Option<PathBuf>,
    record: &Record,
    report: bool,
    threads: Option<NonZeroUsize>,
    quiet: bool,
) -> Result<ExitCode, Problem> {
    let (every, from) = (record.every()?, record.from()?);
    interrupt::heed(interrupt::of_run());
    let name = scenario.display().to_string();
    let mut resolved =
        progress::patiently(&name, quiet, || run::load(scenario, sets))?.on_threads(threads_or_all(threads));
    if let Some(from) = from {
        resolved = run::recording::record_from(resolved, every.unwrap_or(CLOSELY), from)?;
    } else if record.wanted || every.is_some() || record.live.is_some() {
        resolved = run::recording::record(resolved, every);
    }
    if let Some(path) = &record.live {
        resolved = run::recording::watched(resolved, path.clone())?;
    }
    let text = files::problem::read_text(scenario)?;
    let out = out.map_or_else(|| default_folder(scenario), Ok)?;
    files::Folder::check(&out)?;
    if !quiet {
        resolved.notes.iter().for_each(|note| progress::note(note));
    }
    let flows = &resolved.setup.flows;
    let (begin, until) = (flows.first().map(|f| f.start), flows.last().map(|f| f.start));
    let progress = Progress::new(begin.unwrap_or_default(), until.unwrap_or_default(), quiet)
        .of(&resolved.name, Work::of(&resolved));
    let finished = run::run(resolved, &mut |now, hops| {
        progress.report(now, hops);
        !interrupt::stopped()
    });
    let finished = finished.recorded_from(from.unwrap_or_default());
    progress.finish();
    if interrupt::stopped() {
        progress::problem(&interrupt::of_run());
        return Ok(interrupt::status(ExitCode::FAILURE));
    }
    let record = run::with_overrides(&text, sets);
    let written = report::folder::write_whole(&out, report, |folder| finished.write(folder, &record));
    let (path, undrawn) = match written {
        Ok(written) => written,
        // What the run came to is known all the same.
        Err(problem) => {
            if !quiet && finished.summary.violations.is_empty() {
                printed(say(table(&finished)))?;
            }
            return Err(problem);
        }
    };
    let drawn = |code: ExitCode| match &undrawn {
        Some(problem) => {
            progress::problem(problem);
            ExitCode::FAILURE
        }
        None => code,
    };
    if !finished.summary.violations.is_empty() {
        finished.summary.violations.iter().for_each(|violation| progress::broken(violation));
        let place = path.join(files::SUMMARY).display().to_string();
        progress::problem(&Problem::new(place, "says more; this run is not a result"));
        let stalled = finished.summary.ending == run::outcome::STALLED;
        drawn(ExitCode::SUCCESS);
        return Ok(ExitCode::from(if stalled { STALLED } else { BROKEN }));
    }
    if quiet {
        return Ok(drawn(ExitCode::SUCCESS));
    }
    let next = next_step(&finished.summary, &name, sets);
    printed(say(format!("{}results in {}\n{next}", table(&finished), path.display()))).map(drawn)
}

/// What to do about a run that came to a standstill.
fn next_step(s: &Summary, scenario: &str, sets: &[String]) -> String {
    if s.ending != "deadlock" {
        return String::new();
    }
    let sets: String = sets.iter().map(|set| format!(" --set {}", slurm::word(set))).collect();
    format!(
        "next: `tailwater deadlock {}{sets}` says where else links can wait in a cycle;\n  \
         `--set scheme.preset=pfc-watchdog` opens such cycles; docs/guides/stuck.md says more\n",
        slurm::word(scenario)
    )
}

fn spread(name: &str, s: &Spread) -> String {
    let cell = |v: Option<f64>, few: bool| v.map_or("- ".into(), |v| format!("{v:.2}{}", if few { '?' } else { ' ' }));
    let [p95, p99, p999] = few(s);
    let row = format!(
        "{name:<20} {:>8} {:>10}{:>10}{:>10}{:>10}{:>10}",
        s.count,
        cell(s.mean, false),
        cell(s.p50, false),
        cell(s.p95, p95),
        cell(s.p99, p99),
        cell(s.p999, p999)
    );
    format!("{}\n", row.trim_end())
}

/// Whether the 95th, 99th and 99.9th percentile are of so few flows that none lies beyond them.
fn few(s: &Spread) -> [bool; 3] {
    [20, 100, 1000].map(|least| (1..least).contains(&s.count))
}

/// The summary for people.
fn table(finished: &run::Finished) -> String {
    let s = &finished.summary;
    let bytes = |n: u64| match n {
        0..10_000 => format!("{n} B"),
        10_000..10_000_000 => format!("{:.1} KB", n as f64 / 1e3),
        _ => format!("{:.1} MB", n as f64 / 1e6),
    };
    let mut out = format!("{}: {}, seed {}\n", s.identity.scenario, s.identity.scheme(), s.identity.seed);
    out += &format!("{} of {} flows finished in {:.3} us: {}\n", s.finished, s.flows, s.end_ps as f64 / 1e6, s.ending);
    if s.finished < s.flows {
        let open = s.flows - s.finished;
        let flows = if open == 1 { "1 flow is".into() } else { format!("{open} flows are") };
        out += &format!("{flows} not acknowledged to the end: slowdowns are of those whose last byte was received\n");
    }
    for port in &s.waiting {
        out += &format!("  waiting: {port}\n");
    }
    out += &format!(
        "\n{:<20} {:>8} {:>9} {:>9} {:>9} {:>9} {:>9}\n",
        if s.finished < s.flows { "of finished flows" } else { "slowdown" },
        "flows",
        "mean",
        "p50",
        "p95",
        "p99",
        "p99.9"
    );
    for bin in s.slowdown_by_size.iter().filter(|b| b.slowdown.count > 0) {
        let name = bin.up_to.map_or(format!("over {}", Bytes(bin.above)), |end| format!("up to {}", Bytes(end)));
        out += &spread(&name, &bin.slowdown);
    }
    out += &spread("all", &s.slowdown);
    if few(&s.slowdown).contains(&true) || s.slowdown_by_size.iter().any(|bin| few(&bin.slowdown).contains(&true)) {
        out += "? too few flows for that percentile\n";
    }
    if let Some(slowest) = finished.slowest() {
        out += &format!("slowest: {slowest}\n");
    }
    for c in &s.collectives {
        let us = |ps: Option<f64>| ps.map_or("-".into(), |ps| format!("{:.3} us", ps / 1e6));
        let (done, mean, longest) = (c.finished, us(c.completion_ps.mean), us(c.completion_ps.max));
        let (name, kind, hosts, rounds) = (&c.name, c.kind, c.hosts, c.rounds);
        out += &match (done, rounds) {
            (1, 1) => format!("\n{name}: {kind} of {hosts} hosts took {mean}\n"),
            _ => format!(
                "\n{name}: {kind} of {hosts} hosts, {done} of {rounds} rounds done: {mean} on average, {longest} at the most\n"
            ),
        };
    }
    out += &format!(
        "\n{} data packets sent, {} again; {} dropped (buffer {}, link {}, down {}); {} marked\n",
        s.injected.packets,
        s.retransmitted.packets,
        s.dropped.packets,
        s.dropped.buffer,
        s.dropped.link_fault,
        s.dropped.link_down,
        s.marked
    );
    out += &format!(
        "{} pauses, {} paused for {:.3} us in all; peak buffer {}\n",
        s.pause.pauses,
        match s.pause.links.len() {
            1 => "1 link".into(),
            links => format!("{links} links"),
        },
        s.pause.paused_ps as f64 / 1e6,
        bytes(s.buffer.peak)
    );
    out += &format!(
        "{} packet-hops in {:.3} s: {:.2} M/s, {:.2} events each{}\n",
        s.packet_hops,
        s.cost.wall_seconds,
        s.cost.packet_hops_per_second / 1e6,
        s.events as f64 / s.packet_hops.max(1) as f64,
        run::outcome::peak_memory()
            .or(s.cost.peak_memory_bytes)
            .map_or(String::new(), |m| format!(", {} of memory", bytes(m)))
    );
    out
}

/// `tailwater check`.
pub fn check(path: &Path, sets: &[String], json: bool) -> Result<ExitCode, Problem> {
    let piped = path == Path::new("-");
    let name = if piped { "scenario".into() } else { path.display().to_string() };
    let text = if piped { std::io::read_to_string(std::io::stdin()) } else { Ok(files::problem::read_text(path)?) };
    let text = text.map_err(|e| Problem::new("standard input", e.to_string()).help("send text in UTF-8"))?;
    let base = path.parent().unwrap_or(Path::new(""));
    if json {
        let answer = progress::patiently(&name, false, || ::studio::check::answer(&name, &text, base, sets));
        let problems = answer["problems"].as_array().map_or(&[][..], Vec::as_slice);
        let option = |problem: &serde_json::Value| problem["file"].as_str().is_some_and(|file| file.starts_with("--"));
        let code = match answer["ok"] == true {
            true => ExitCode::SUCCESS,
            false if !problems.is_empty() && problems.iter().all(option) => ExitCode::from(usage::USAGE),
            false => ExitCode::FAILURE,
        };
        return printed(say(format!("{answer}\n"))).map(|_| code);
    }
    let described = progress::patiently(&name, false, || -> Result<String, Problem> {
        let scenario = scenario::Scenario::parse(&name, &text, base, sets)?;
        let groups = scenario.describe_groups();
        Ok(scenario::resolve::resolve(scenario)?.describe() + &groups)
    })?;
    printed(say(described))
}

/// `tailwater ns3`.
pub fn ns3(config: &Path, options: Options, quiet: bool) -> Result<ExitCode, Problem> {
    let inputs = interop::ns3::read_with(config, options)?;
    if !quiet {
        inputs.notes.iter().for_each(|note| progress::note(&note.to_string()));
    }
    inputs.check_outputs()?;
    let translated = interop::ns3::translate::translate(&inputs)?;
    let graph = translated.setup.graph.clone();
    let flows = &translated.setup.flows;
    let (begin, until) = (flows.first().map(|f| f.start), flows.last().map(|f| f.start));
    let progress = Progress::new(begin.unwrap_or_default(), until.unwrap_or_default(), quiet);
    let start = Instant::now();
    let outcome = translated.run(&mut |now, hops| {
        progress.report(now, hops);
        true
    });
    progress.finish();
    let wall = start.elapsed();
    if !outcome.violations.is_empty() {
        outcome.violations.iter().for_each(|v| progress::broken(v));
        progress::complain(format_args!("error: this run is not a result; nothing is written"));
        return Ok(ExitCode::from(BROKEN));
    }
    inputs.write(&graph, &outcome)?;
    if quiet {
        return Ok(ExitCode::SUCCESS);
    }
    printed(say(format!("{}\n", output::summary(&outcome, wall))))
}

/// `tailwater bench`.
pub fn bench(
    hosts: &[u32],
    presets: &[String],
    duration: &str,
    load: f64,
    (threads, blocks): (usize, Option<usize>),
    exchange: bool,
) -> Result<ExitCode, Problem> {
    let remedy = "write a time above zero, such as 1ms";
    let duration: Time =
        duration.parse().map_err(|e: QuantityError| Problem::new("--duration", e.to_string()).help(remedy))?;
    if !(Time(1)..=Time::from_ms(10_000)).contains(&duration) {
        return Err(Problem::new("--duration", "is nothing, or more than ten seconds").help(remedy));
    }
    if !(load > 0.0 && load <= 1.0) {
        return Err(
            Problem::new("--load", format!("{load} is not above 0 and at most 1")).help("write a share, such as 0.5")
        );
    }
    if let Some(few) = hosts.iter().find(|&&h| h < 32 || h % 16 != 0) {
        return Err(Problem::new("--hosts", format!("{few} hosts do not fill two racks or more"))
            .help("write multiples of 16, from 32 on"));
    }
    for preset in presets {
        if scenario::presets::named(preset).is_none() {
            return Err(Problem::new("--presets", format!("there is no preset \"{preset}\""))
                .help("`tailwater schemes` lists them"));
        }
    }
    let run = run::bench::Run { load, duration, threads, blocks };
    if exchange {
        return print_exchange(hosts, presets, run);
    }
    let head = format!(
        "{:<12} {:>6} {:>12} {:>8} {:>10} {:>10} {:>9} {:>9}\n",
        "run", "hosts", "packet-hops", "seconds", "M hops/s", "of floor", "events", "memory"
    );
    if say(head).is_err() {
        return Ok(ExitCode::SUCCESS);
    }
    let floor = run::bench::floor(20_000_000);
    let speed = floor.speed();
    let print = |line: &run::bench::Line| {
        let memory = line.memory.map_or("-".into(), |m| format!("{:.0} MB", m as f64 / 1e6));
        say(format!(
            "{:<12} {:>6} {:>12} {:>8.2} {:>10.2} {:>10.2} {:>9.2} {memory:>9}\n",
            line.name,
            line.hosts,
            line.hops,
            line.seconds,
            line.speed(),
            line.speed() / speed,
            line.events as f64 / line.hops.max(1) as f64
        ))
    };
    let mut result = print(&floor);
    for &count in hosts {
        for preset in presets {
            let line = run::bench::whole_run(count, preset, run)?;
            result = result.and_then(|()| print(&line));
        }
    }
    printed(result)
}

/// What the shards of runs on several threads exchange, and how often.
fn print_exchange(hosts: &[u32], presets: &[String], run: run::bench::Run) -> Result<ExitCode, Problem> {
    let head = format!(
        "{:<12} {:>6} {:>5} {:>10} {:>9} {:>9} {:>12} {:>9} {:>11} {:>12} {:>12}\n",
        "run",
        "hosts",
        "shards",
        "look-ahead",
        "stretches",
        "together",
        "hops/stretch",
        "crossing",
        "KB/stretch",
        "stretches/s",
        "MB/s crossing"
    );
    let mut result = say(head);
    for &count in hosts {
        for preset in presets {
            let line = run::bench::whole_run(count, preset, run)?;
            let exchange = line.exchange;
            let each = |total: f64| total / exchange.stretches.max(1) as f64;
            result = result.and_then(|()| {
                say(format!(
                    "{:<12} {:>6} {:>5} {:>8.2}us {:>9} {:>8.0}% {:>12.0} {:>8.1}% {:>11.1} {:>12.0} {:>12.1}\n",
                    line.name,
                    line.hosts,
                    exchange.shards,
                    exchange.look_ahead.us_f64(),
                    exchange.stretches,
                    100.0 * each(exchange.together as f64),
                    each(line.hops as f64),
                    100.0 * exchange.packets as f64 / line.hops.max(1) as f64,
                    each(exchange.bytes as f64) / 1e3,
                    exchange.stretches as f64 / line.seconds,
                    exchange.bytes as f64 / line.seconds / 1e6,
                ))
            });
        }
    }
    printed(result)
}
