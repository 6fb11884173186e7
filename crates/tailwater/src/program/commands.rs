//! The commands: thin wrappers around the library.

use crate::program::interrupt;
use crate::program::progress::{self, Progress};
use crate::program::{slurm, usage};
use engine::{Bytes, QuantityError, Time};
use files::problem::Problem;
use results::measure::{SizeBin, Spread};
use run::outcome::{Group, Summary};
use scenario::estimate::Method;
use std::io::Write;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
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

/// The command that gives the same as that with these options and changes.
pub fn command(name: &str, scenario: &Path, options: &[(&str, String)], sets: &[String]) -> String {
    let options = options.iter().map(|(option, value)| format!(" --{option} {}", slurm::word(value)));
    let sets = sets.iter().map(|set| format!(" --set {}", slurm::word(set)));
    let scenario = slurm::word(&scenario.display().to_string());
    format!("tailwater {name} {scenario}{}", options.chain(sets).collect::<String>())
}

/// `tailwater run`. `command` is what gives the same.
#[allow(clippy::too_many_arguments)]
pub fn run(
    scenario: &Path,
    sets: &[String],
    out: Option<PathBuf>,
    record: &Record,
    report: bool,
    threads: Option<NonZeroUsize>,
    quiet: bool,
    command: &str,
) -> Result<ExitCode, Problem> {
    let (every, from) = (record.every()?, record.from()?);
    interrupt::heed(interrupt::of_run());
    let name = scenario.display().to_string();
    let mut resolved =
        progress::patiently(&name, quiet, || run::load(scenario, sets))?.on_threads(threads_or_all(threads));
    let recorded = record.wanted || every.is_some() || from.is_some() || record.live.is_some();
    if recorded && resolved.estimate.method != Method::None {
        return Err(Problem::new("--record", "an estimate has no packets that could be recorded")
            .help("leave the option out, or simulate the scenario: leave [estimate] out"));
    }
    if recorded {
        run::recording::check(&resolved)?;
    }
    if let Some(from) = from {
        resolved = run::recording::record_from(resolved, every.unwrap_or(CLOSELY), from)?;
    } else if record.wanted || every.is_some() || record.live.is_some() {
        resolved = run::recording::record(resolved, every);
    }
    let mut unwritten = None;
    if let Some(path) = &record.live {
        let (watched, problem) = run::recording::watched(resolved, path.clone())?;
        (resolved, unwritten) = (watched, Some(problem));
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
    let record = run::as_run(&scenario.display().to_string(), &text, sets, Some(command))?;
    let written = report::folder::write_whole(&out, report, |folder| finished.write(folder, &record));
    let (path, undrawn) = match written {
        Ok(written) => written,
        // What the run came to is known all the same.
        Err(problem) => {
            if !quiet && finished.summary.violations.is_empty() {
                printed(say(table(&finished, None)))?;
            }
            return Err(problem);
        }
    };
    let unshown = unwritten.as_ref().and_then(|problem| problem.get());
    let drawn = |code: ExitCode| {
        let problems: Vec<&Problem> = undrawn.iter().chain(unshown).collect();
        problems.iter().for_each(|problem| progress::problem(problem));
        if problems.is_empty() { code } else { ExitCode::FAILURE }
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
    let text = table(&finished, Some(&path));
    printed(say(format!("{text}results in {}\n{next}", path.display()))).map(drawn)
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

fn spread(name: &str, width: usize, s: &Spread) -> String {
    let cell = |v: Option<f64>, few: bool| v.map_or("- ".into(), |v| format!("{v:.2}{}", if few { '?' } else { ' ' }));
    let [p95, p99, p999] = few(s);
    let row = format!(
        "{name:<width$} {:>8} {:>10}{:>10}{:>10}{:>10}{:>10}",
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

/// More groups of flows than that are not told apart on a terminal.
const MOST_GROUPS: usize = 8;

/// The rows of the table of slowdowns: by size, and by group where there are several. A size that two groups have says little of either.
fn slowdowns(s: &Summary) -> Vec<(String, &Spread)> {
    let size = |bin: &SizeBin| {
        bin.up_to.map_or_else(|| format!("over {}", Bytes(bin.above)), |end| format!("up to {}", Bytes(end)))
    };
    let groups: Vec<&Group> = s.groups.iter().filter(|group| group.slowdown.count > 0).collect();
    let mut rows: Vec<(String, &Spread)> = Vec::new();
    let several = (2..=MOST_GROUPS).contains(&groups.len());
    for group in groups.iter().filter(|_| several) {
        let bins: Vec<&SizeBin> = group.slowdown_by_size.iter().filter(|bin| bin.slowdown.count > 0).collect();
        rows.extend(bins.iter().map(|bin| (format!("{}, {}", group.name, size(bin)), &bin.slowdown)));
        // Of one size, that is all.
        if bins.len() > 1 {
            rows.push((format!("{}, all", group.name), &group.slowdown));
        }
    }
    if !several {
        let bins = s.slowdown_by_size.iter().filter(|bin| bin.slowdown.count > 0);
        rows.extend(bins.map(|bin| (size(bin), &bin.slowdown)));
    }
    rows.push(("all".into(), &s.slowdown));
    rows
}

/// The summary for people. `folder` has the results, if they are written.
fn table(finished: &run::Finished, folder: Option<&Path>) -> String {
    let s = &finished.summary;
    let bytes = |n: u64| match n {
        0..10_000 => format!("{n} B"),
        10_000..10_000_000 => format!("{:.1} KB", n as f64 / 1e3),
        _ => format!("{:.1} MB", n as f64 / 1e6),
    };
    let memory = run::outcome::peak_memory().or(s.cost.peak_memory_bytes);
    let memory = memory.map_or(String::new(), |m| format!(", {} of memory", bytes(m)));
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
    let rows = slowdowns(s);
    let head = if s.finished < s.flows { "of finished flows" } else { "slowdown" };
    let width = rows.iter().map(|(name, _)| name.chars().count()).chain([20]).max().unwrap_or(20);
    out += &format!(
        "\n{head:<width$} {:>8} {:>9} {:>9} {:>9} {:>9} {:>9}\n",
        "flows", "mean", "p50", "p95", "p99", "p99.9"
    );
    rows.iter().for_each(|(name, slowdown)| out += &spread(name, width, slowdown));
    if rows.iter().any(|(_, slowdown)| few(slowdown).contains(&true)) {
        out += "? too few flows for that percentile\n";
    }
    if let Some(slowest) = finished.slowest() {
        out += &format!("slowest: {slowest}\n");
    }
    let steps = match folder {
        Some(folder) if !s.collectives.is_empty() => report::collectives::open(folder).unwrap_or_default(),
        _ => Vec::new(),
    };
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
        if let Some(((_, quickest), (slowest, longest))) = report::collectives::ends(&steps, name) {
            let (step, round) = (slowest.step.unwrap_or(0), slowest.round);
            let of = if rounds > 1 { format!(" of round {round}") } else { String::new() };
            let (least, most) = (us(Some(quickest as f64)), us(Some(longest as f64)));
            out += &format!("  {} steps, {least} to {most} each; the longest is step {step}{of}\n", c.steps);
        }
        if let (Some(algorithm), Some(bus)) = (c.algorithm_bps, c.bus_bps) {
            out += &format!("  algorithm bandwidth {:.2} Gbps, bus bandwidth {:.2} Gbps\n", algorithm / 1e9, bus / 1e9);
        }
    }
    s.jobs.iter().for_each(|job| out += &trained(job));
    if let Some(forward) = &s.fast_forward {
        out += &format!("\n{}\n", forward.sentence());
    }
    if let Some(estimate) = &s.estimate {
        out += &format!("\n{}\n", estimate.sentence());
    }
    if s.flows_alone() {
        out += &format!("{:.3} s{}\n", s.cost.wall_seconds, memory);
        return out;
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
        memory
    );
    out
}

/// A job for people: how long its iterations took, what bounds them, and what it sent.
fn trained(job: &run::job::Trained) -> String {
    let us = |ps: Option<f64>| ps.map_or("-".into(), |ps| format!("{:.3} us", ps / 1e6));
    let dimensions = [("tensor", job.tensor), ("pipeline", job.pipeline), ("data", job.data), ("expert", job.expert)];
    let shape: Vec<String> = (dimensions.iter().filter(|(name, size)| *name != "expert" || *size > 1))
        .map(|(name, size)| format!("{name} {size}"))
        .collect();
    let mut out = format!(
        "\n{}: {} ranks ({}), {} of {} iterations done: {} on average, p99 {}\n",
        job.name,
        job.ranks,
        shape.join(", "),
        job.finished,
        job.iterations,
        us(job.iteration_ps.mean),
        us(job.iteration_ps.p99)
    );
    if let (Some(mean), Some(compute), Some(alone), Some(bound)) =
        (job.iteration_ps.mean, job.compute_ps, job.alone_ps, job.bound)
    {
        // Packets that take a nearer path than routing's rule are sooner than that says of them alone.
        let alone = alone.min(mean).max(compute);
        let percent = |part: f64| format!("{:.1} %", 100.0 * part / mean.max(1.0));
        let adds = |one: &&run::job::Shared| one.adds_ps.unwrap_or(0.0);
        let most =
            (job.collectives.len() > 1).then(|| job.collectives.iter().max_by(|a, b| adds(a).total_cmp(&adds(b))));
        let most = most.flatten().map_or(String::new(), |one| format!(" most by {} parallelism,", one.name));
        let bound = match bound {
            "messages" => format!("the network,{most} even if every message had it to itself"),
            "contention" => "messages that share links and queues".into(),
            other => other.into(),
        };
        out += &format!(
            "  compute {} ({}), messages alone add {} ({}), contention adds {} ({}): bound by {bound}\n",
            us(Some(compute)),
            percent(compute),
            us(Some(alone - compute)),
            percent(alone - compute),
            us(Some(mean - alone)),
            percent(mean - alone)
        );
    }
    if !job.collectives.is_empty() {
        out += &format!(
            "  {:<9} {:<28} {:>7} {:>6} {:>10} {:>12} {:>12} {:>12} {:>11} {:>10}\n",
            "", "collective", "count", "ranks", "KB each", "mean us", "p99 us", "adds us", "alg Gbps", "bus Gbps"
        );
    }
    for one in &job.collectives {
        let number = |value: Option<f64>, by: f64| value.map_or("-".into(), |value| format!("{:.3}", value / by));
        out += &format!(
            "  {:<9} {:<28} {:>7} {:>6} {:>10.1} {:>12} {:>12} {:>12} {:>11} {:>10}\n",
            one.name,
            one.kind,
            one.count,
            one.ranks,
            one.bytes / 1e3,
            number(one.completion_ps.mean, 1e6),
            number(one.completion_ps.p99, 1e6),
            number(one.adds_ps, 1e6),
            number(one.algorithm_bps, 1e9),
            number(one.bus_bps, 1e9)
        );
    }
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

/// `tailwater bench`.
pub fn bench(
    hosts: &[u32],
    presets: &[String],
    duration: &str,
    load: f64,
    (threads, blocks): (usize, Option<usize>),
    (exchange, cores): (bool, &[usize]),
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
        return print_exchange(hosts, presets, run, cores);
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
fn print_exchange(
    hosts: &[u32],
    presets: &[String],
    run: run::bench::Run,
    cores: &[usize],
) -> Result<ExitCode, Problem> {
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
    if cores.is_empty() {
        return printed(result);
    }
    let head = format!(
        "\n{:<12} {:>6} {:>6} {:>12} {:>12} {:>12} {:>12} {:>12} {:>10} {:>9}\n",
        "run", "hosts", "cores", "one thread", "all shards", "slowest", "between", "set-up", "imbalance", "speed-up"
    );
    let mut result = result.and_then(|()| say(head));
    for (&count, preset) in hosts.iter().flat_map(|count| presets.iter().map(move |preset| (count, preset))) {
        for &cores in cores {
            let balance = run::bench::balance(count, preset, run, cores)?;
            let run::bench::Balance { shards, alone, work, slowest, between, setup } = balance;
            let (imbalance, speed_up) = (balance.imbalance(), balance.speed_up());
            result = result.and_then(|()| {
                say(format!(
                    "{preset:<12} {count:>6} {shards:>6} {alone:>10.3} s {work:>10.3} s {slowest:>10.3} s {between:>10.3} s \
                     {setup:>10.3} s {imbalance:>10.2} {speed_up:>9.1}\n"
                ))
            });
        }
    }
    printed(result)
}
