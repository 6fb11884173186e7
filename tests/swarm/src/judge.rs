//! What must hold of every scenario that the product accepts.

#[path = "../../../crates/run/tests/all/same.rs"]
#[allow(dead_code)]
mod same;

use crate::draw::read;
use engine::{Stream, Time};
use fabric::Outcome;
use fabric::run::Stall;
use run::Finished;
use run::recording::record;
use run::slowdown::{slowdown, slowdown_acknowledged};
use scenario::Scenario;
use scenario::deadlock::{Scope, analyse};
use scenario::resolve::Resolved;
use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::{LazyLock, Mutex};

/// Reports, each after a quarter of a million events, after which a run is given up. Time on the clock would not do: what fails must
/// fail again.
const REPORTS: u32 = 8;
/// Samples after which it is given up, too: on slow links little happens for a long time.
const SAMPLES: u64 = 100_000;
/// How often as many before it is said to go on for ever.
const PATIENT: u32 = 32;
/// What rounding may add to a share.
const ROUNDING: f64 = 1e-9;

/// What is wrong with a scenario.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// In a few words, the same for all that fail in the same way.
    pub kind: String,
    /// With numbers.
    pub what: String,
}

/// What became of a scenario.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It is refused.
    Refused(String),
    /// All holds; how it ended, and what happened on the way.
    Sound(&'static str, Vec<&'static str>),
    /// It was given up because it takes too long, though it goes on.
    Long,
    /// Something does not hold.
    Failed(Failure),
}

fn failed<T>(kind: impl Into<String>, what: impl Into<String>) -> Result<T, Failure> {
    Err(Failure { kind: kind.into(), what: what.into() })
}

/// Where panics happened, by their messages.
static PANICS: LazyLock<Mutex<HashMap<String, String>>> = LazyLock::new(Mutex::default);

/// Has panics remembered instead of printed. Where a panic ends the program, as in a release build, it is printed.
pub fn quiet() {
    if cfg!(panic = "abort") {
        return;
    }
    std::panic::set_hook(Box::new(|info| {
        let message = said(info.payload());
        let place = info.location().map_or(String::new(), |at| format!("{}:{}", at.file(), at.line()));
        if let Ok(mut panics) = PANICS.lock() {
            panics.insert(message, place);
        }
    }));
}

fn said(payload: &dyn std::any::Any) -> String {
    let text = payload.downcast_ref::<String>().map(String::as_str);
    text.or(payload.downcast_ref::<&str>().copied()).unwrap_or("something").to_string()
}

/// Judges a scenario. Files that it names are in `folder`.
pub fn judge(text: &str, folder: &Path) -> Verdict {
    let whole = || catch_unwind(AssertUnwindSafe(|| checks(text, folder)));
    match whole() {
        Ok(Ok(verdict)) => verdict,
        Ok(Err(failure)) => Verdict::Failed(failure),
        Err(payload) => {
            let what = said(&*payload);
            let place = PANICS.lock().ok().and_then(|panics| panics.get(&what).cloned()).unwrap_or_default();
            Verdict::Failed(Failure { kind: format!("panic at {place}"), what })
        }
    }
}

/// A run on so many threads and in so many blocks, recorded and explained or not.
fn simulate(
    text: &str,
    folder: &Path,
    threads: usize,
    blocks: Option<usize>,
    recorded: bool,
) -> Result<Finished, Failure> {
    let resolved = read(text, folder).or_else(|problem| failed("refused the second time", problem.to_string()))?;
    let mut resolved = if recorded { record(resolved, None) } else { resolved };
    resolved.setup.measure.why = recorded;
    (resolved.setup.threads, resolved.setup.blocks) = (threads, blocks);
    Ok(run_for_long(resolved))
}

fn run_for_long(resolved: Resolved) -> Finished {
    run_for(resolved, REPORTS, SAMPLES)
}

fn run_for(resolved: Resolved, most: u32, samples: u64) -> Finished {
    let mut reports = 0;
    let period = resolved.setup.measure.sample.unwrap_or(Time::MAX);
    let latest = Time(period.0.saturating_mul(samples));
    run::run(resolved, &mut |now, _| {
        reports += 1;
        reports < most && now < latest
    })
}

fn checks(text: &str, folder: &Path) -> Result<Verdict, Failure> {
    let resolved = match read(text, folder) {
        Ok(resolved) => resolved,
        Err(problem) => return Ok(Verdict::Refused(problem.to_string())),
    };
    // What `tailwater check` prints.
    let described = resolved.describe();
    let groups = Scenario::parse("case.toml", text, folder, &[]).map(|scenario| scenario.describe_groups());
    if described.is_empty() || groups.is_err() {
        return failed("check refuses what run accepts", format!("{groups:?}"));
    }
    let first = simulate(text, folder, 1, Some(1), false)?;
    if first.outcome.interrupted {
        return endless(text, folder, &first.outcome);
    }
    if let Some(violation) = first.outcome.violations.first() {
        let words: Vec<&str> =
            violation.split_whitespace().filter(|word| word.chars().all(char::is_alphabetic)).collect();
        return failed(format!("promise: {}", words.join(" ")), first.outcome.violations.join("; "));
    }
    let ending = ending(&resolved, &first)?;
    bounds(&resolved, &first)?;

    let waits = !resolved.setup.after.is_empty();
    let again = simulate(text, folder, 1, Some(1), false)?;
    same(&first.outcome, &again.outcome, waits, "seed", "the same run twice")?;
    let recorded = simulate(text, folder, 1, Some(1), true)?;
    // The audit of a run that is asked adds up the parts of every flow: that they do is among the promises.
    let without = Outcome { recording: None, parts: None, ..recorded.outcome.clone() };
    same(&first.outcome, &without, waits, "recording", "with and without a recording")?;
    let mut stream = Stream::new(first.outcome.counts.hops, resolved.setup.seed);
    let (threads, blocks) = (1 + stream.below(4) as usize, 1 + stream.below(5) as usize);
    let (threads, blocks) = if (threads, blocks) == (1, 1) { (2, 1) } else { (threads, blocks) };
    let several = simulate(text, folder, threads, Some(blocks), true)?;
    if several.outcome.interrupted {
        // Threads report at other instants, so that a run that is just short enough may be given up.
        return Ok(Verdict::Long);
    }
    let how = format!("1 thread, and {threads} threads in {blocks} blocks");
    same(&recorded.outcome, &several.outcome, waits, "threads", &how)?;
    if stream.chance(0.25) {
        files(&recorded, &several, text, &how)?;
    }
    Ok(Verdict::Sound(ending, happened(&resolved, &first.outcome)))
}

/// What a run put to the test.
fn happened(resolved: &Resolved, outcome: &Outcome) -> Vec<&'static str> {
    let (c, setup) = (&outcome.counts, &resolved.setup);
    let all = [
        ("promised to be lossless", resolved.promised),
        ("paused something", c.pauses > 0),
        ("dropped something in a switch or a NIC", c.dropped_full > 0),
        ("lost something on a link", c.dropped_fault + c.dropped_down > 0),
        ("sent something again", c.retransmitted.0 > 0),
        ("had flows that wait for others", !setup.after.is_empty()),
        ("had slow receivers", !setup.slow.is_empty()),
        ("captured something", !outcome.captured.is_empty()),
    ];
    all.into_iter().filter(|(_, did)| *did).map(|(what, _)| what).collect()
}

fn same(one: &Outcome, other: &Outcome, waits: bool, kind: &str, how: &str) -> Result<(), Failure> {
    let differences = same::differences(one, other);
    if differences.is_empty() {
        return Ok(());
    }
    let names: Vec<&str> = differences.iter().map(|(name, _)| *name).collect();
    let values: Vec<String> = differences.iter().map(|(name, values)| format!("{name}: {values}")).collect();
    let waits = if waits { ", where flows wait" } else { "" };
    failed(format!("{kind}: other {}{waits}", names.join(", ")), format!("{how}: {}", values.join("; ")))
}

/// The files of two runs are the same, but for what the runs cost.
fn files(one: &Finished, other: &Finished, text: &str, how: &str) -> Result<(), Failure> {
    let folder = tempfile::tempdir().or_else(|e| failed("no folder for results", e.to_string()))?;
    let write = |finished: &Finished, name: &str| {
        finished.write(&folder.path().join(name), text).or_else(|problem| failed("not written", problem.to_string()))
    };
    let (one, other) = (write(one, "one")?, write(other, "other")?);
    let entries = std::fs::read_dir(&one).or_else(|e| failed("no results", e.to_string()))?;
    // The digests are of files that say what the run cost, too.
    let names = entries.flatten().map(|entry| entry.file_name()).filter(|name| name != files::sums::SUMS);
    for name in names {
        let mut contents = [&one, &other].map(|folder| std::fs::read(folder.join(&name)).unwrap_or_default());
        if name == files::SUMMARY {
            contents = contents.map(|bytes| {
                let mut json: serde_json::Value = serde_json::from_slice(&bytes).unwrap_or_default();
                json["cost"].take();
                json.to_string().into_bytes()
            });
        }
        if contents[0] != contents[1] || contents[0].is_empty() {
            return failed(format!("threads: other bytes in {}", name.display()), how);
        }
    }
    Ok(())
}

/// A run that was given up: whether it still got anywhere.
fn endless(text: &str, folder: &Path, given_up: &Outcome) -> Result<Verdict, Failure> {
    let mut resolved = read(text, folder).or_else(|problem| failed("refused the second time", problem.to_string()))?;
    let longest = resolved.setup.flows.iter().map(|flow| flow.base_rtt).max().unwrap_or_default();
    // Senders that repeat themselves before an answer can be there may fill a slow link for good, and the run's notes say so.
    if resolved.setup.nic.timeout.is_some_and(|timeout| timeout < longest) {
        return Ok(Verdict::Long);
    }
    // So may the headers of what is trimmed, where nothing slows down for them (docs/uec.md).
    let trimmed = given_up.counts.trimmed.0 > given_up.counts.injected.0 / 2;
    if trimmed && !resolved.choices.congestion_control.hears_of_trims() {
        return Ok(Verdict::Long);
    }
    resolved.setup.stop = Time(given_up.end.0 / 2);
    let half = run_for_long(resolved);
    let received = |outcome: &Outcome| outcome.flows.iter().map(|flow| flow.delivered).sum::<u64>();
    let begun = |outcome: &Outcome| outcome.flows.iter().filter(|flow| flow.start < outcome.end).count();
    let waiting = begun(&half.outcome) > half.outcome.finished.len();
    if waiting && received(&half.outcome) == received(given_up) && begun(&half.outcome) == begun(given_up) {
        let finished = format!("{} of {} flows", given_up.finished.len(), given_up.flows.len());
        let what =
            format!("{finished}, {} B received at {} and at {}", received(given_up), half.outcome.end, given_up.end);
        // Where a thousand packets are sent for each that gets through, half of the time is no measure.
        let again = read(text, folder).or_else(|problem| failed("refused the third time", problem.to_string()))?;
        if !run_for(again, PATIENT * REPORTS, u64::MAX).outcome.interrupted {
            return Ok(Verdict::Long);
        }
        return failed("goes on for ever without progress", what);
    }
    Ok(Verdict::Long)
}

/// Every flow ends, or there is a reason why not.
fn ending(resolved: &Resolved, finished: &Finished) -> Result<&'static str, Failure> {
    let (outcome, ending) = (&finished.outcome, finished.summary.ending);
    let stopped = resolved.setup.stop != Time::MAX;
    let links = &resolved.setup.graph.links;
    let cut =
        links.iter().any(|link| link.loss + link.corruption >= 0.5 || link.outages.iter().any(|(_, up)| up.is_none()));
    let of = format!("{} of {} flows finished at {}", outcome.finished.len(), outcome.flows.len(), outcome.end);
    match &outcome.stall {
        _ if outcome.complete() && outcome.stall.is_some() => failed("complete and yet stalled", of),
        None if outcome.complete() => match outcome.left {
            left if left > 0 && !stopped => failed("packets left behind", format!("{left} packets, {of}")),
            _ => Ok(ending),
        },
        None if stopped && outcome.end <= resolved.setup.stop => Ok(ending),
        Some(Stall::Deadlock(cycle)) => match analyse(resolved, &[Scope::Flows]) {
            Ok(answer) if answer.free() => {
                failed("a deadlock where the analysis sees none", format!("{of}, {} queues wait", cycle.len()))
            }
            _ => Ok(ending),
        },
        Some(Stall::Lost | Stall::Blocked(_)) if stopped && cut => Ok(ending),
        _ => failed(format!("unfinished without a reason: {ending}"), of),
    }
}

/// What physics allows.
fn bounds(resolved: &Resolved, finished: &Finished) -> Result<(), Failure> {
    let (outcome, summary, graph) = (&finished.outcome, &finished.summary, &resolved.setup.graph);
    let used = [&summary.utilisation.from_hosts, &summary.utilisation.to_hosts, &summary.utilisation.between_switches];
    if let Some(most) =
        used.iter().filter_map(|spread| spread.max).find(|&most| !(0.0..=1.0 + ROUNDING).contains(&most))
    {
        let early = if resolved.setup.stop == outcome.end { ", stopped" } else { "" };
        return failed(format!("bound: a link is used more than fully{early}"), format!("{most}, end {}", outcome.end));
    }
    let shares = summary.pause.links.iter().map(|link| link.share).chain([summary.pause.share]);
    if let Some(most) = shares.into_iter().find(|share| !(0.0..=1.0 + ROUNDING).contains(share)) {
        return failed("bound: a link is paused for longer than the run", format!("{most}, end {}", outcome.end));
    }
    for group in &summary.groups {
        if group.fairness.is_some_and(|fairness| !(0.0..=1.0 + ROUNDING).contains(&fairness)) {
            return failed("bound: fairness above one", format!("{:?}", group.fairness));
        }
    }
    // A flow that may take several paths may be faster than alone on one; IOFD deflects flows to other paths, too.
    let moved = !resolved.choices.load_balancing.by_rule() || resolved.choices.flow_control.name() == "iofd";
    let steady = !moved && graph.links.iter().all(|link| link.outages.is_empty());
    for (number, flow) in outcome.flows.iter().enumerate() {
        let spec = &flow.spec;
        if steady && slowdown(flow).is_some_and(|slowdown| slowdown < 1.0) {
            return failed("bound: slowdown below one", format!("flow {number}: {:?}", slowdown(flow)));
        }
        if steady && slowdown_acknowledged(flow).is_some_and(|slowdown| slowdown < 1.0) {
            let what = format!("flow {number}: {:?}", slowdown_acknowledged(flow));
            return failed("bound: slowdown to the acknowledgement below one", what);
        }
        if flow.delivered > flow.size {
            return failed(
                "bound: more received than sent",
                format!("flow {number}: {} of {} B", flow.delivered, flow.size),
            );
        }
        let begun = flow.start != Time::MAX && flow.start < outcome.end;
        // A NIC sees it later than its host.
        let requested = spec.start.saturating_sub(resolved.setup.nic.bus.send);
        let order = [flow.start, flow.injected, flow.received, flow.acknowledged];
        if begun && !order.is_sorted() || flow.start < requested {
            return failed("bound: a flow ends before it begins", format!("flow {number}: {order:?}"));
        }
        let rate: u64 = graph
            .links
            .iter()
            .filter(|link| [link.a, link.b].contains(&spec.src))
            .map(|link| link.rate(spec.src).0)
            .sum();
        let life = flow.received.min(outcome.end).saturating_sub(flow.start);
        if begun && flow.delivered as f64 * 8e12 > rate as f64 * life.0 as f64 * (1.0 + ROUNDING) {
            return failed(
                "bound: goodput above the line rate",
                format!("flow {number}: {} B in {life}", flow.delivered),
            );
        }
    }
    for (node, &peak) in outcome.peak.iter().enumerate() {
        if resolved.memory[node].is_some_and(|memory| peak > memory) {
            return failed("bound: a buffer holds more than its size", format!("{}: {peak} B", graph.nodes[node].name));
        }
    }
    Ok(())
}
