//! Recording a run: which frames and which flows, and what is known of them before it.

use crate::outcome::Identity;
use crate::slowdown::slowdown;
use engine::Time;
use fabric::id::{FlowId, NodeId};
use fabric::probe::{Column, FLOW_COLUMNS, PORT_COLUMNS, Recording};
use fabric::routing::PortMap;
use fabric::run::FlowRecord;
use fabric::setup::{FlowSpec, Live, RecordSetup};
use fabric::topology::Kind;
use fabric::{Outcome, Setup};
use files::problem::Problem;
use results::recording::{
    ColumnHeader, Flow, Header, MOST_FLOWS, Node, Port, VERSION, most_frames, write_file, write_series,
};
use scenario::resolve::{Paths, Resolved};
use serde::Serialize;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

/// A run is first cut into about so many frames of its estimated length: no more than there is work for, so that recording costs
/// little.
const FRAMES: std::ops::RangeInclusive<u64> = 400..=4000;
/// Links that a packet and its answer cross, at the least.
const LINKS: u64 = 4;
/// The most flows that are recorded: memory is needed for all of them until the run is over.
const MOST_WATCHED: usize = 4096;
/// The most flows that are in the file because they are slow, and those of one group among them.
const MOST_WORST: usize = MOST_FLOWS / 2;
const MOST_WORST_OF_GROUP: usize = 32;
/// The most frames of all ports together in memory, where only the last are written.
const MOST_PORT_FRAMES_BEFORE: usize = 16 << 20;
/// The shortest frame that is chosen by itself.
const SHORTEST: Time = Time::from_ns(100);

/// Refuses to record a run that skips something.
pub fn check(resolved: &Resolved) -> Result<(), Problem> {
    match resolved.setup.within {
        None => Ok(()),
        Some(_) => Err(Problem::new("--record", "a recording has no frames of what is skipped")
            .help("do not record it, or simulate all of it: leave --within and [fast_forward] out")),
    }
}

/// Has a run recorded, with frames of that length to begin with. Nothing else of the result changes.
pub fn record(mut resolved: Resolved, every: Option<Time>) -> Resolved {
    resolved.setup.measure.record = Some(plan(&resolved.setup, every));
    resolved
}

/// Has a run recorded as closely as that up to its end, of which [what is after an instant](crate::Finished::recorded_from) is to be
/// written: a window that ends with the run. What is before it is in memory until then, and merges frames only where there is very
/// much of it.
pub fn record_from(mut resolved: Resolved, every: Time, from: Time) -> Result<Resolved, Problem> {
    let ports = resolved.setup.graph.links.len() * 2;
    let (most, stop) = (most_frames(ports), resolved.setup.stop);
    let wanted = stop.saturating_sub(from).0.div_ceil(every.0.max(1));
    let problem = |message: String| Problem::new("--record-from", message);
    if from >= stop {
        return Err(
            problem("is not before the end of the run".into()).help("write an earlier instant, or a later `stop`")
        );
    }
    if stop == Time::MAX {
        let help = "write the instant as `stop`, such as --set stop=2ms";
        return Err(problem("needs to know when the run ends, and the scenario has no `stop`".into()).help(help));
    }
    if wanted > most as u64 {
        let message = format!("leaves {wanted} frames until the run stops; {most} is the most");
        let help = "write a later instant, an earlier `stop`, or longer frames with --record-every";
        return Err(problem(message).help(help));
    }
    let frames = (MOST_PORT_FRAMES_BEFORE / ports.max(1)).max(most) / 2 * 2;
    resolved.setup.measure.record = Some(RecordSetup { frames, ..plan(&resolved.setup, Some(every)) });
    Ok(resolved)
}

/// How often a recording under way is written, at the most.
const PULSE: Duration = Duration::from_secs(2);

/// Why a recording under way could not be written, the first time.
pub type Unwritten = Arc<OnceLock<Problem>>;

/// Has what is recorded so far written to a file now and then while the run goes on, for who watches it. Whether a flow has come to its end
/// is not in it.
pub fn watched(mut resolved: Resolved, path: PathBuf) -> Result<(Resolved, Unwritten), Problem> {
    if path.exists() && !path.is_file() {
        let message = "is no file; what is recorded is written there again and again, each time whole";
        return Err(Problem::new(path.display().to_string(), message).help("name a file that is there or can be made"));
    }
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).map_or(Ok(()), files::make_folder)?;
    files::outputs::check_outputs(&[&path], &[])?;
    let unwritten = Unwritten::default();
    let failed = unwritten.clone();
    let (scene, identity) = (Scene::new(&resolved), Identity::of(&resolved));
    let under_way = |spec: &FlowSpec| FlowRecord {
        spec: *spec,
        delivered: 0,
        start: spec.start,
        size: spec.size,
        injected: Time::MAX,
        received: Time::MAX,
        acknowledged: Time::MAX,
        held: Time::ZERO,
        paused: Time::ZERO,
    };
    let flows: Vec<FlowRecord> = resolved.setup.flows.iter().map(under_way).collect();
    let written = Mutex::new(Instant::now());
    let show = move |whole: &mut dyn FnMut() -> Recording| {
        let Ok(mut last) = written.lock() else { return };
        if last.elapsed() < PULSE {
            return;
        }
        let recording = whole();
        if recording.frames > 0 {
            let end = Time(recording.first.0 + recording.frames as u64 * recording.every.0);
            // The run goes on without; what is recorded is whole at its end.
            if let Err(problem) = files::write_all(&[(&path, scene.file(&identity, &recording, &flows, end))]) {
                _ = failed.set(problem);
            }
        }
        *last = Instant::now();
    };
    resolved.setup.measure.live = Some(Live(Arc::new(show)));
    Ok((resolved, unwritten))
}

/// How a run is recorded, with frames of the given length or of one that suits it.
fn plan(setup: &Setup, every: Option<Time>) -> RecordSetup {
    let flows = chosen(setup);
    RecordSetup {
        every: every.unwrap_or_else(|| suitable(setup, flows.len())),
        frames: most_frames(setup.graph.links.len() * 2),
        flows,
    }
}

/// A frame length for a run: at least as long as flows start, and as its busiest host needs to send or to receive, it will last. No
/// more than one frame of a port or of one of `recorded` flows is wanted for every packet that crosses a link.
fn suitable(setup: &Setup, recorded: usize) -> Time {
    let (Some(first), Some(last)) = (setup.flows.first(), setup.flows.last()) else { return SHORTEST };
    let mut bytes = vec![[0u64; 2]; setup.graph.nodes.len()];
    let mut packets = 0u64;
    for flow in &setup.flows {
        for (host, direction) in [(flow.src, 0), (flow.dst, 1)] {
            let sum = &mut bytes[host.index()][direction];
            *sum = sum.saturating_add(flow.size);
        }
        packets = packets.saturating_add(flow.size.div_ceil(setup.nic.payload.max(1) as u64));
    }
    let busiest = bytes.iter().flatten().copied().max().unwrap_or(0);
    let line = setup.graph.hosts_rate().map_or(Time::ZERO, |rate| rate.time_for(busiest));
    let length = line.max(last.start - first.start).min(setup.stop.saturating_sub(first.start));
    let frames = packets.saturating_mul(LINKS) / (setup.graph.links.len() * 2 + recorded).max(1) as u64;
    round_up(Time(length.0 / frames.clamp(*FRAMES.start(), *FRAMES.end())).max(SHORTEST))
}

/// The next of 1, 2 and 5 times a power of ten.
fn round_up(time: Time) -> Time {
    let mut power = 1u64;
    while power.saturating_mul(10) <= time.0 {
        power *= 10;
    }
    let round = [1, 2, 5, 10].map(|times| power.saturating_mul(times));
    Time(round.into_iter().find(|round| *round >= time.0).unwrap_or(time.0))
}

/// The flows that are recorded: those that the scenario follows, or all; where these are too many, from the smallest to the largest.
/// More than the file has, so that the slowest of them can be chosen when the run is over.
fn chosen(setup: &Setup) -> Vec<FlowId> {
    let followed = setup.measure.series.as_ref().map(|series| &series.flows).filter(|flows| !flows.is_empty());
    let flows = followed.cloned().unwrap_or_else(|| (0..setup.flows.len() as u32).map(FlowId).collect());
    of_all_sizes(flows, MOST_WATCHED, |flow| setup.flows[flow.index()].size)
}

/// At most so many of them, from the smallest to the largest, in order of their numbers.
fn of_all_sizes(mut flows: Vec<FlowId>, most: usize, size: impl Fn(FlowId) -> u64) -> Vec<FlowId> {
    if flows.len() > most {
        flows.sort_by_key(|&flow| (size(flow), flow));
        let last = flows.len() - 1;
        flows = (0..most).map(|place| flows[place * last / (most - 1).max(1)]).collect();
    }
    flows.sort_unstable();
    flows
}

/// Of the flows that were recorded, those that the file has: the slowest of each group, and of the others some of all sizes.
fn kept(recorded: &[FlowId], flows: &[FlowRecord]) -> Vec<FlowId> {
    if recorded.len() <= MOST_FLOWS {
        return recorded.to_vec();
    }
    let mut groups: BTreeMap<u16, Vec<(f64, FlowId)>> = BTreeMap::new();
    for &flow in recorded {
        let record = &flows[flow.index()];
        // One that never came to its end is slower than any.
        let slow = slowdown(record).unwrap_or(f64::INFINITY);
        groups.entry(record.spec.tag).or_default().push((slow, flow));
    }
    let each = (MOST_WORST / groups.len().max(1)).clamp(1, MOST_WORST_OF_GROUP);
    let mut worst = BTreeSet::new();
    for slow in groups.values_mut() {
        slow.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        worst.extend(slow.iter().take(each).map(|(_, flow)| *flow));
    }
    let mut all: Vec<FlowId> = worst.iter().copied().take(MOST_FLOWS).collect();
    let others = recorded.iter().copied().filter(|flow| !worst.contains(flow)).collect();
    all.extend(of_all_sizes(others, MOST_FLOWS - all.len(), |flow| flows[flow.index()].spec.size));
    all.sort_unstable();
    all
}

/// A series from a frame on. What lasts has there what was last said of it.
fn after(series: &[(u32, u64)], before: u32, lasting: bool) -> Vec<(u32, u64)> {
    let next = series.partition_point(|(frame, _)| *frame < before);
    let known = next.checked_sub(1).filter(|_| lasting).map(|last| (0, series[last].1));
    let said = series.get(next).is_some_and(|(frame, _)| *frame == before);
    let rest = series[next..].iter().map(|(frame, value)| (frame - before, *value));
    known.filter(|_| !said).into_iter().chain(rest).collect()
}

/// What of a recording is known before the run.
#[derive(Clone, Debug, Serialize)]
pub struct Scene {
    /// `kind` and what the scenario says of it besides.
    pub topology: Map<String, Value>,
    /// The nodes by number.
    pub nodes: Vec<Node>,
    /// The ports by number.
    pub ports: Vec<Port>,
    /// The groups of flows by number.
    pub groups: Vec<String>,
    #[serde(skip)]
    preset: Option<String>,
    /// Frames that end before this are not written.
    #[serde(skip)]
    pub(crate) from: Time,
    /// The paths of the flows that are recorded.
    #[serde(skip)]
    paths: Vec<Vec<u32>>,
}

impl Scene {
    /// Of a run.
    pub fn new(resolved: &Resolved) -> Scene {
        let Setup { graph, flows, rule, salt, measure, .. } = &resolved.setup;
        let map = PortMap::new(graph);
        let nodes = graph.nodes.iter().zip(&resolved.memory).map(|(node, &buffer)| Node {
            name: node.name.clone(),
            kind: if node.kind == Kind::Host { "host" } else { "switch" }.into(),
            tier: node.tier,
            buffer,
        });
        let ports = (0..map.count()).map(|port| {
            let (link, node) = (&graph.links[map.link[port] as usize], map.node[port]);
            let forwards = graph.forwards(NodeId(node), map.of(node).len());
            let buffer = resolved.setup.buffer(&map, node as usize);
            Port {
                node,
                peer: map.peer[port],
                rate_bps: map.rate(graph, port as u32).0,
                delay_ps: link.delay.0,
                threshold: buffer.alone(resolved.setup.ports[port].share).filter(|_| forwards),
                mark: resolved.setup.ports[port].ecn.map(|ecn| ecn.min).filter(|_| forwards),
            }
        });
        let value = |text: &str| text.parse::<u64>().map_or_else(|_| Value::from(text), Value::from);
        let settings = resolved.topology.settings.iter().map(|(name, text)| (name.to_string(), value(text)));
        let kind = ("kind".to_string(), Value::from(resolved.topology.kind.as_str()));
        let recorded = measure
            .record
            .iter()
            .flat_map(|record| &record.flows)
            .filter(|_| resolved.choices.load_balancing.by_rule());
        let paths = Paths::new(graph, &map, *rule, Time::ZERO, Time::ZERO).salted(*salt);
        let path = |flow: &FlowSpec| paths.steps(flow.src, flow.dst, flow.tuple).collect();
        Scene {
            topology: [kind].into_iter().chain(settings).collect(),
            nodes: nodes.collect(),
            ports: ports.collect(),
            groups: resolved.groups.clone(),
            preset: resolved.preset.clone(),
            from: Time::ZERO,
            paths: recorded.map(|&flow| path(&flows[flow.index()])).collect(),
        }
    }

    /// The file.
    pub(crate) fn write(&self, identity: &Identity, outcome: &Outcome) -> Vec<u8> {
        let none = Recording::default();
        self.file(identity, outcome.recording.as_ref().unwrap_or(&none), &outcome.flows, outcome.end)
    }

    /// The file of what is recorded up to an instant.
    fn file(&self, identity: &Identity, recording: &Recording, records: &[FlowRecord], end: Time) -> Vec<u8> {
        let kept: BTreeSet<FlowId> = kept(&recording.chosen, records).into_iter().collect();
        let flows: Vec<bool> = recording.chosen.iter().map(|flow| kept.contains(flow)).collect();
        let ports = vec![true; self.ports.len()];
        // The last frame is always written.
        let before = self.from.saturating_sub(recording.first).0 / recording.every.0.max(1);
        let before = before.min(recording.frames.saturating_sub(1) as u64) as u32;
        let frames = recording.frames - before as usize;
        let mut columns = Vec::new();
        let mut write = |all: &[Column], names: &[(&str, &str)], places: &[bool], lasting: bool| {
            let headers = all.iter().zip(names).map(|(column, (name, unit))| {
                let begin = columns.len();
                for (series, _) in column.by_place(places.len()).iter().zip(places).filter(|(_, kept)| **kept) {
                    write_series(&mut columns, frames, &after(series, before, lasting), lasting);
                }
                ColumnHeader { name: name.to_string(), unit: unit.to_string(), bytes: columns.len() - begin }
            });
            headers.collect()
        };
        let header = Header {
            version: VERSION,
            scenario: identity.scenario.clone(),
            preset: self.preset.clone(),
            scheme: identity.scheme(),
            seed: identity.seed,
            topology: self.topology.clone(),
            first_ps: recording.first.0 + before as u64 * recording.every.0,
            every_ps: recording.every.0,
            frames,
            end_ps: end.0,
            nodes: self.nodes.clone(),
            ports: self.ports.clone(),
            groups: self.groups.clone(),
            flows: recording
                .chosen
                .iter()
                .enumerate()
                .filter(|(_, flow)| kept.contains(flow))
                .map(|(place, &flow)| self.flow(place, flow.0, &records[flow.index()]))
                .collect(),
            columns: write(&recording.ports, &PORT_COLUMNS, &ports, false),
            flow_columns: write(&recording.flows, &FLOW_COLUMNS, &flows, true),
        };
        write_file(&header, &columns)
    }

    fn flow(&self, place: usize, flow: u32, record: &FlowRecord) -> Flow {
        let at = |time: Time| (time != Time::MAX).then_some(time.0);
        Flow {
            flow,
            group: record.spec.tag,
            src: record.spec.src.0,
            dst: record.spec.dst.0,
            size: record.size,
            start_ps: at(record.start),
            received_ps: at(record.received),
            acknowledged_ps: at(record.acknowledged),
            ideal_ps: (record.size == record.spec.size).then_some(record.spec.ideal.0),
            path: self.paths.get(place).cloned().unwrap_or_default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn frames_are_long_for_people(time in 1u64..1 << 62) {
            let round = round_up(Time(time)).0;
            let digits = round.to_string();
            prop_assert!(round >= time && round <= time.saturating_mul(5) / 2 + 1, "{time} {round}");
            prop_assert!(["1", "2", "5"].contains(&digits.trim_end_matches('0')), "{round}");
        }
    }

    #[test]
    fn a_series_from_a_frame_on_has_what_was_said_of_what_lasts() {
        let series = [(1, 10), (4, 40), (6, 60)];
        assert_eq!(after(&series, 0, true), series);
        assert_eq!(after(&series, 3, false), [(1, 40), (3, 60)]);
        assert_eq!(after(&series, 3, true), [(0, 10), (1, 40), (3, 60)]);
        assert_eq!(after(&series, 4, true), [(0, 40), (2, 60)]);
        assert_eq!(after(&series, 9, true), [(0, 60)]);
        assert_eq!(after(&series, 9, false), []);
    }

    #[test]
    fn what_is_offered_of_a_run_that_goes_on_is_the_beginning_of_what_it_becomes() {
        let mut text = "topology = { kind = \"leaf-spine\", leaves = 4, hosts_per_leaf = 4, spines = 2 }\n\
                        scheme = { preset = \"pfc\" }\n"
            .to_string();
        for host in 0..16 {
            let dst = (host + 5) % 16;
            text += &format!("[[flow]]\nsrc = \"h{host}\"\ndst = \"h{dst}\"\nsize = \"6MB\"\n");
        }
        let mut recordings = Vec::new();
        for threads in [1, 4] {
            let scenario = scenario::Scenario::parse("a.toml", &text, std::path::Path::new(""), &[]).unwrap();
            let resolved = scenario::resolve::resolve(scenario).unwrap().on_threads(threads);
            let mut resolved = record(resolved, Some(Time::from_us(1)));
            let ports = resolved.setup.graph.links.len() * 2;
            let offered = Arc::new(Mutex::new(Vec::new()));
            let kept = offered.clone();
            resolved.setup.measure.live = Some(Live(Arc::new(move |whole| kept.lock().unwrap().push(whole()))));
            let whole = crate::run(resolved, &mut |_, _| true).outcome.recording.unwrap();
            let offered = offered.lock().unwrap();
            assert!(offered.len() > 1, "{threads} threads");
            for part in offered.iter() {
                assert!(part.frames > 0 && part.frames < whole.frames && part.every == whole.every);
                for (column, all) in part.ports.iter().zip(&whole.ports) {
                    let mut begin = all.by_place(ports);
                    begin.iter_mut().for_each(|series| series.retain(|(frame, _)| (*frame as usize) < part.frames));
                    assert_eq!(column.by_place(ports), begin, "{threads} threads");
                }
            }
            recordings.push(whole);
        }
        assert!(recordings[0] == recordings[1]);
    }

    #[test]
    fn of_many_flows_the_smallest_the_largest_and_some_between_are_recorded() {
        let graph = fabric::topology::shape("star").unwrap().build().unwrap();
        let flow = |n: u64| FlowSpec::plain(n as u16, 0, 1, (n * 7919) % 1009 + 1, Time(n));
        let mut setup = Setup::plain(graph, (0..5000).map(flow).collect());
        let flows = chosen(&setup);
        assert_eq!(flows.len(), MOST_WATCHED);
        assert!(flows.is_sorted_by(|a, b| a < b));
        let sizes = || setup.flows.iter().map(|flow| flow.size);
        let (least, most) = (sizes().min().unwrap(), sizes().max().unwrap());
        let has = |size: u64| flows.iter().any(|&flow| setup.flows[flow.index()].size == size);
        assert!(has(least) && has(most));
        setup.flows.truncate(5);
        assert_eq!(chosen(&setup), [0, 1, 2, 3, 4].map(FlowId));
    }

    #[test]
    fn of_many_flows_the_slowest_of_each_group_are_in_the_file() {
        let record = |n: u64| {
            let mut spec = FlowSpec::plain(n as u16, 0, 1, (n * 7919) % 1009 + 1, Time(0));
            // A small group among a large one, of which one flow never ends.
            (spec.tag, spec.ideal) = (n.is_multiple_of(50) as u16, Time(1000));
            let received = if n == 77 { Time::MAX } else { Time(1000 + (n * 31) % 997 * 100) };
            let (start, acknowledged) = (Time(0), received);
            let (held, paused) = (Time::ZERO, Time::ZERO);
            FlowRecord {
                spec,
                delivered: 0,
                start,
                size: spec.size,
                injected: start,
                received,
                acknowledged,
                held,
                paused,
            }
        };
        let flows: Vec<FlowRecord> = (0..1000).map(record).collect();
        let all: Vec<FlowId> = (0..1000).map(FlowId).collect();
        let kept = kept(&all, &flows);
        assert_eq!(kept.len(), MOST_FLOWS);
        assert!(kept.is_sorted_by(|a, b| a < b));
        assert!(kept.contains(&FlowId(77)));
        for group in [0, 1] {
            let mut slow: Vec<(f64, FlowId)> = all
                .iter()
                .filter(|flow| flows[flow.index()].spec.tag == group)
                .filter_map(|&flow| Some((slowdown(&flows[flow.index()])?, flow)))
                .collect();
            slow.sort_by(|a, b| b.0.total_cmp(&a.0));
            assert!(slow[..20].iter().all(|(_, flow)| kept.contains(flow)), "group {group}");
        }
        assert_eq!(super::kept(&all[..5], &flows), all[..5]);
    }
}
