//! What a scenario sends: single flows and a trace, and what `[[load]]`, `[[incast]]`, `[[long]]`, `[[collective]]` and `[[job]]` draw.

use super::settings::texts;
use super::wiring::{self, NodeRef};
use crate::Beside;
use crate::declared::{Key, Section};
use crate::document::{Document, Item, Table, one_of, quoted, suggest};
use crate::scenario::{Ends, Problems};
use engine::{Bytes, Kind as ValueKind, QuantityError, Time, Value, Word};
use fabric::id::{ClassId, FlowId, NodeId};
use fabric::topology::{Graph, Kind};
use files::problem::{Cause, Problem};
use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::path::Path;
use std::sync::LazyLock;
use traffic::arrivals::MAX_SIGMA;
use traffic::collective::{Cut, Operation, Protocol, Woven};
use traffic::incast::Volume;
use traffic::job::{Dimension, Made, Model, Speed};
use traffic::load::{Extent, Pattern, Process, Timing};
use traffic::sizes::PUBLISHED;
use traffic::{
    After, Arrivals, Collective, Fault, FlowRequest, Incast, Job, Load, Long, MAX_FLOWS, MAX_GROUPS, MAX_SIZE,
    MAX_START, Names, Origin, Places, Sizes, Task, Traffic, is_group_name, read_trace,
};

/// The highest load.
const MAX_LOAD: f64 = 10.0;
/// How a note ends that says that more is asked for than can be carried.
const OVERLOAD: &str = "what waits grows as long as it lasts";

/// Everything that a scenario sends.
#[derive(Default)]
pub(super) struct Requests {
    pub classes: u8,
    pub all: Traffic,
    pub parts: Vec<Part>,
    pub plans: Vec<Plan>,
    /// What is odd, and allowed.
    pub notes: Vec<String>,
}

/// Consecutive flows of one source.
pub(super) struct Part {
    /// The number of the first flow after it.
    pub end: usize,
    /// The table.
    pub path: String,
    pub source: Source,
}

/// Where the flows of a [`Part`] come from.
pub(super) enum Source {
    /// The flows are written down.
    Listed,
    /// The flows are those of a file.
    Trace(String),
    /// The flows are drawn.
    Drawn,
}

/// What a generator is meant to make on average.
pub(super) struct Plan {
    pub group: u16,
    /// Bytes of a message.
    pub mean_size: f64,
    /// `None` where it has no rate: a single event.
    pub bytes_per_second: Option<f64>,
    /// From when to when it sends.
    pub window: (Time, Time),
}

engine::choice! {
    /// What a load is a share of.
    pub enum Of {
        /// The links of the hosts that send.
        Hosts = "hosts",
        /// The links by which racks reach other switches.
        Core = "core",
    }
}

engine::choice! {
    /// How arrivals follow one another.
    pub enum Gaps {
        /// Exponential gaps.
        Poisson = "poisson",
        /// Lognormal gaps.
        Lognormal = "lognormal",
        /// Equal gaps.
        Fixed = "fixed",
        /// Instants drawn uniformly.
        Uniform = "uniform",
    }
}

/// A set of hosts.
fn some_hosts() -> ValueKind {
    const SAID: &str = "\"all\", \"h0\", \"h0..h15\", a switch with hosts, or an array of these";
    let (name, said) = ("hosts", SAID);
    let one = ValueKind::Either { name, said, of: vec![ValueKind::Text, u32::kind()] };
    let many = ValueKind::Array { name, said, of: Box::new(one.clone()), length: (1..).into() };
    ValueKind::Either { name, said, of: vec![one, many] }
}

/// The distributions of sizes by name, or anything else that says sizes.
fn some_sizes() -> ValueKind {
    let word = |published: &traffic::sizes::Published| Word { word: published.name, about: published.about.into() };
    ValueKind::Either {
        name: "text",
        said: "a distribution such as \"websearch\", a size such as \"64KB\", or a file",
        of: vec![ValueKind::Choice(PUBLISHED.iter().map(word).collect()), ValueKind::Text],
    }
}

/// The arrivals of events, which are not drawn uniformly.
fn gaps_of_events() -> ValueKind {
    match Gaps::kind() {
        ValueKind::Choice(words) => {
            ValueKind::Choice(words.into_iter().filter(|word| word.word != "uniform").collect())
        }
        other => other,
    }
}

const WHO_SENDS: &str = "Who sends.";
const ITS_GROUP: &str = "Its group.";
const CLASS: &str = "Priority class, below `traffic.classes`.";

/// What all generators have.
fn origin_keys(name: &'static str) -> [Key; 3] {
    [
        Key::of::<Time>("start", "When it begins.").or(Time::ZERO),
        Key::of::<u8>("class", CLASS).or(0u8),
        Key::of::<String>("name", ITS_GROUP).otherwise(name),
    ]
}

/// What a load is, and of what.
fn load_keys(about: &str, of: &str) -> [Key; 2] {
    [Key::within::<f64>("load", 0.0..=MAX_LOAD, about), Key::of::<Of>("of", of).or(Of::Hosts)]
}

/// `[[flow]]`.
pub(crate) static FLOW: LazyLock<Section> = LazyLock::new(|| {
    let keys = vec![
        Key::of::<wiring::NodeRef>("src", "Sending host.").needed(),
        Key::of::<wiring::NodeRef>("dst", "Receiving host, another one.").needed(),
        Key::of::<Bytes>("size", "Bytes of message, above zero, up to 1000GB.").needed(),
        Key::of::<Time>("start", "When it is handed to the NIC.").or(Time::ZERO),
        Key::of::<u8>("class", CLASS).or(0u8),
        Key::within::<u64>("count", 1.., "That many equal flows.").or(1u64),
        Key::of::<String>("name", ITS_GROUP).or("flows".to_string()),
        Key::of::<Time>(
            "until",
            "When its sender leaves, however much is sent by then; one last packet notifies the receiver.",
        )
        .otherwise("never"),
        Key::of::<String>("id", "A word by which others wait for it; it stands for all of `count`."),
        Key::new(
            "after",
            texts(),
            "The ids of `[[flow]]`s that must have ended first, as its sender sees it: received by it, or acknowledged to it.",
        ),
        Key::within::<Time>("gap", Time::ZERO..=MAX_START, "How long after that it starts, `start` at the earliest.")
            .or(Time::ZERO),
    ];
    Section::many("flow", "One message from a host to another.", keys)
});

/// `[traffic]`.
pub(crate) static TRAFFIC: LazyLock<Section> = LazyLock::new(|| {
    let keys = vec![
        Key::of::<String>(
            "trace",
            "A file of flows, or a schedule in GOAL if its name ends with `.goal`. A relative path is taken from the folder of the scenario file.",
        ),
        Key::within::<u8>(
            "classes",
            1..=8,
            "Priority classes of data, 1 to 8; with `iofd`, which lays out each seven times, 1 to 4.",
        )
        .or(1u8),
    ];
    Section::new("traffic", "Flows from a file, and what holds for all flows.", keys)
});

/// `[[load]]`.
pub(crate) static LOAD: LazyLock<Section> = LazyLock::new(|| {
    let mut keys = vec![
        Key::new(
            "sizes",
            some_sizes(),
            format!(
                "A distribution ({}), one size (`\"64KB\"`), `\"uniform 1KB..100KB\"`, or the path of a file from the \
                 scenario's folder.",
                PUBLISHED.iter().map(|published| format!("`{}`", published.name)).collect::<Vec<_>>().join(", ")
            ),
        )
        .needed(),
    ];
    keys.extend(load_keys(
        "Bytes of message per second, as a share of what `of` says; 0.5 is half of it.",
        "The links of the hosts in `from`; or all links by which racks reach other switches.",
    ));
    keys.extend([
        Key::of::<Time>("duration", "Messages come from `start` on for that long.").otherwise("until `stop`"),
        Key::within::<u64>(
            "flows",
            1..,
            "So many messages, instead of a duration; with a duration and without `load`, so many within it.",
        ),
        Key::of::<Gaps>(
            "arrivals",
            "The gaps between messages. Uniform: instants drawn anywhere in the duration, which is what `flows` without \
             `load` means.",
        )
        .or(Gaps::Poisson),
        Key::within::<f64>(
            "sigma",
            0.0..=MAX_SIGMA,
            "Standard deviation of the logarithm of lognormal gaps, up to 5.",
        )
        .or(SIGMA),
        Key::of::<Process>(
            "process",
            "Each sender has its own arrivals; or all have one process, and the sender is drawn for each message.",
        )
        .or(Process::Host),
        Key::of::<Pattern>(
            "pattern",
            "To any other host; to one partner that no other sender has; within the rack; to other racks.",
        )
        .or(Pattern::AllToAll),
        Key::within::<f64>(
            "inter_site",
            0.0..=1.0,
            "The share of messages, 0 to 1, to another site; the others stay at their own.",
        ),
        Key::new("from", some_hosts(), WHO_SENDS).otherwise("all"),
        Key::new("to", some_hosts(), "Who receives.").otherwise("all"),
    ]);
    keys.extend(origin_keys("`\"load\"`, `\"load2\"`, …"));
    Section::many("load", "Messages of random sizes between random hosts, at an average load.", keys)
});

/// `[[incast]]`.
pub(crate) static INCAST: LazyLock<Section> = LazyLock::new(|| {
    let mut keys = vec![
        Key::within::<u32>(
            "degree",
            1..,
            "Senders of an event, all different. Where there are fewer hosts, they take turns.",
        )
        .needed(),
        Key::of::<bool>("replacement", "Draw senders with replacement: one host may be several of them.").or(false),
        Key::within::<u32>("flows_per_sender", 1.., "Flows of each sender.").or(1u32),
        Key::within::<Bytes>("size", Bytes(1)..=MAX_SIZE, "Bytes of an event, divided among its flows."),
        Key::within::<Bytes>("size_each", Bytes(1)..=MAX_SIZE, "Bytes of each flow, instead of `size`."),
        Key::of::<Time>("every", "Time between events. Without it and without `load` there is one event."),
    ];
    keys.extend(load_keys(
        "Bytes of message per second as in `[[load]]`, instead of `every`.",
        "What `load` is a share of.",
    ));
    keys.extend([
        Key::new("arrivals", gaps_of_events(), "The gaps between events. Fixed: the first comes at `start`.")
            .or(Gaps::Fixed),
        Key::within::<f64>("sigma", 0.0..=MAX_SIGMA, "Of lognormal gaps.").or(SIGMA),
        Key::of::<Time>("spread", "Every sender starts within that time of its event, uniformly.").or(Time::ZERO),
        Key::of::<Time>("duration", "Events come from `start` on for that long.").otherwise("until `stop`"),
        Key::within::<u64>("count", 1.., "So many events, instead of a duration."),
        Key::new("from", some_hosts(), "Who may send; the receiver never does.").otherwise("all"),
        Key::new("to", some_hosts(), "Who may receive: one is drawn for each event.").otherwise("all"),
    ]);
    keys.extend(origin_keys("`\"incast\"`, `\"incast2\"`, …"));
    Section::many("incast", "Events in which many hosts send to one.", keys)
});

/// `[[long]]`.
pub(crate) static LONG: LazyLock<Section> = LazyLock::new(|| {
    let mut keys = vec![
        Key::new("to", some_hosts(), "Who receives: every one of them.").needed(),
        Key::new("from", some_hosts(), "Who sends, in turns. Drawn: other hosts, different ones as long as there are.")
            .otherwise("drawn"),
        Key::within::<u64>("flows", 1.., "Flows to each receiver.").otherwise("one from each of `from`, or `1`"),
        Key::of::<Time>("stagger", "From the start of one flow to that of the next.").or(Time::ZERO),
        Key::within::<Time>("leave", Time::ZERO..=MAX_START, "When they leave. A run without `stop` needs it.")
            .otherwise("`stop`"),
    ];
    keys.extend(origin_keys("`\"long\"`, `\"long2\"`, …"));
    Section::many("long", "Flows that send all the time until they leave.", keys)
});

/// The most that an all-to-all is skewed.
const MAX_SKEW: f64 = 4.0;
/// The most channels, chunks and slots.
const MAX_LINES: u32 = 4096;

/// How a collective's data is cut into messages.
fn cut_keys() -> [Key; 5] {
    [
        Key::within::<u32>(
            "channels",
            1..=MAX_LINES,
            "Parts of the data that go side by side, each in messages of its own.",
        )
        .or(1u32),
        Key::within::<u32>("chunks", 1..=MAX_LINES, "Parts of each message that go one after the other.").or(1u32),
        Key::within::<u32>(
            "slots",
            1..=MAX_LINES,
            "How many chunks of a channel may be under way between two hosts; the next waits for an acknowledgement.",
        )
        .otherwise("no limit"),
        Key::of::<Protocol>("protocol", "What messages carry besides data.").or(Protocol::Simple),
        Key::within::<Time>(
            "latency",
            Time::ZERO..=MAX_START,
            "What a host takes from the receipt of a message to sending it on.",
        )
        .or(Time::ZERO),
    ]
}

/// `[[collective]]`.
pub(crate) static COLLECTIVE: LazyLock<Section> = LazyLock::new(|| {
    let mut keys = vec![
        Key::of::<Operation>("kind", "What hosts do together.").needed(),
        Key::new("hosts", some_hosts(), "Who takes part, in the order of their ranks.").otherwise("all"),
        Key::of::<Bytes>("size", "What every host has to reduce, ends with, or sends to the others in all.").needed(),
        Key::within::<u64>("rounds", 1.., "How often.").or(1u64),
        Key::within::<Time>(
            "gap",
            Time::ZERO..=MAX_START,
            "What a host computes between the end of a round and its part of the next.",
        )
        .or(Time::ZERO),
    ];
    keys.extend(cut_keys());
    keys.extend([
        Key::within::<u32>("domain", 2.., "Hosts of a scale-up domain: so many that follow each other in `hosts`. A `hierarchical-all-reduce` needs it, and nothing else has it."),
        Key::within::<f64>(
            "skew",
            0.0..=MAX_SKEW,
            "How much more some hosts are sent than others: the exponent of Zipf's law, 0 to 4, over hosts in an order that is drawn. Of an `all-to-all`.",
        )
        .or(0.0),
    ]);
    keys.extend(origin_keys("`\"collective\"`, `\"collective2\"`, …"));
    Section::many(
        "collective",
        "Messages between all of a group of hosts, each sent when what it carries has been received.",
        keys,
    )
});

engine::choice! {
    /// Where the ranks of a job are.
    pub enum Placement {
        /// On hosts in the order of their numbers.
        Packed = "packed",
        /// On hosts that are drawn.
        Random = "random",
        /// Round the racks: on the first host of each, then on the second of each.
        Rail = "rail",
        /// On hosts in the order in which `hosts` names them.
        Listed = "listed",
    }
}

engine::choice! {
    /// What a number of a model is kept in.
    pub enum Precision {
        /// 4 bytes.
        Fp32 = "fp32",
        /// 2 bytes.
        Fp16 = "fp16",
        /// 2 bytes.
        Bf16 = "bf16",
        /// 1 byte.
        Fp8 = "fp8",
    }
}

impl Precision {
    fn bytes(self) -> u64 {
        match self {
            Precision::Fp32 => 4,
            Precision::Fp16 | Precision::Bf16 => 2,
            Precision::Fp8 => 1,
        }
    }
}

/// `[[job]]`.
pub(crate) static JOB: LazyLock<Section> = LazyLock::new(|| {
    let count = |name, default: u32, about| Key::within::<u32>(name, 1..=1_000_000, about).or(default);
    let mut keys = vec![
        Key::within::<u32>("ranks", 2..=1_000_000, "How many hosts it runs on: tensor × pipeline × replicas.")
            .otherwise("all hosts that it may have"),
        Key::new("hosts", some_hosts(), "Where it may run.").otherwise("those that no job before it has"),
        Key::of::<Placement>("placement", "Which rank is on which host. Rank by rank: tensor first, then replicas, then stages.")
            .or(Placement::Packed),
        Key::within::<u64>("iterations", 1.., "How often it goes through a batch.").or(1u64),
        count("tensor", 1, "Ranks that share every layer."),
        count("pipeline", 1, "Stages of layers."),
        count("expert", 1, "Replicas that share the experts."),
        count("layers", 24, "Layers of the model."),
        Key::within::<u64>("hidden", 1..=1_000_000, "Width of a layer.").or(2048u64),
        Key::within::<u64>("sequence", 1..=100_000_000, "Tokens of a sequence.").or(2048u64),
        Key::within::<u64>("batch", 1.., "Sequences of an iteration, of all replicas.").otherwise("one microbatch for each replica and stage"),
        Key::within::<u64>("microbatch", 1..=1_000_000, "Sequences that a replica does at once.").or(1u64),
        Key::within::<u64>("experts", 0..=1_000_000, "Experts of a layer; 0 for a dense model.").or(0u64),
        Key::within::<u64>("top_k", 1..=1_000_000, "Experts that each token goes to, where there are any.").or(2u64),
        Key::of::<Precision>("precision", "What numbers of the model are kept in, and sent in.").or(Precision::Bf16),
        Key::within::<f64>("tflops", 0.000001..=1e6, "How fast a rank computes, in 10¹² operations per second.").or(400.0),
        Key::within::<Time>("layer_time", Time::ZERO..=MAX_START, "What a rank takes for a layer of a microbatch forward, instead of what `tflops` comes to. Backward is twice that.")
            .otherwise("by `tflops`"),
        Key::of::<bool>("overlap", "Send gradients while those of earlier layers are computed.").or(true),
        count("buckets", 4, "In how many parts the gradients of a stage are sent, one after the other; one without `overlap`."),
        Key::within::<f64>("jitter", 0.0..=1.0, "How far compute times are off, as a share of them: each is drawn uniformly to either side.").or(0.0),
        Key::within::<u32>("stragglers", 0..=1_000_000, "Ranks, drawn, that compute more slowly than the others.").or(0u32),
        Key::within::<f64>("slowdown", 1.0..=1000.0, "How many times as long stragglers take.").or(1.5),
        Key::of::<Operation>("all_reduce", "How replicas sum up gradients: one of the all-reduces. Tensor ranks always use a ring.").or(Operation::RingAllReduce),
        Key::within::<u32>("domain", 2.., "Replicas of a domain, of a `hierarchical-all-reduce`."),
        Key::within::<f64>("skew", 0.0..=MAX_SKEW, "How much more some experts are sent than others: the exponent of Zipf's law, 0 to 4.").or(0.0),
    ];
    keys.extend(cut_keys());
    keys.extend(origin_keys("`\"job\"`, `\"job2\"`, …"));
    Section::many("job", "A training job: iterations of compute and communication of ranks that share a model.", keys)
});

/// The σ of lognormal gaps if nothing is said: BFC §4.1 has σ = 2.
const SIGMA: f64 = 2.0;

/// Reads everything that is to be sent. Files are looked for in `base`. Where `graph` stands for a `fabric` that is not known, or it is not known when
/// the run ends, nothing is drawn.
pub(super) fn read_traffic(
    root: &mut Table<'_>,
    graph: &Graph,
    base: Beside<'_>,
    seed: u64,
    ends: Ends,
    fabric: bool,
) -> Result<Requests, Problem> {
    let requests = Requests { classes: 1, ..Requests::default() };
    let (names, places) = (Names::new(graph), Places::new(graph));
    let room = crate::memory::flows().map_or(MAX_FLOWS, |flows| flows.min(MAX_FLOWS));
    let mut reader = Reader {
        names,
        places,
        base,
        seed,
        ends,
        fabric,
        room,
        requests,
        waits: Vec::new(),
        tasks: Vec::new(),
        taken: HashSet::new(),
    };
    let mut wrong = Problems::default();
    let mut table = wrong.keep(root.table("traffic")).flatten();
    if let Some(table) = &mut table {
        table.takes(&TRAFFIC);
        // However many were meant, those of flows are among them.
        reader.requests.classes = wrong.keep(table.optional("classes")).map_or(u8::MAX, |classes| classes.unwrap_or(1));
    }
    let flows = root.tables("flow");
    wrong.keep(flows.and_then(|tables| reader.read_flows(tables)));
    if let Some(mut table) = table {
        wrong.keep(reader.read_trace(&mut table).and_then(|()| table.finish()));
    }
    let generators: [(&'static Section, Generator<'_>); 5] = [
        (&LOAD, Reader::read_load),
        (&INCAST, Reader::read_incast),
        (&LONG, Reader::read_long),
        (&COLLECTIVE, Reader::read_collective),
        (&JOB, Reader::read_job),
    ];
    let mut drawn = false;
    for (section, read) in generators {
        let kind = section.path.as_str();
        for (number, mut table) in (0..).zip(wrong.keep(root.tables(kind)).into_iter().flatten()) {
            table.takes(section);
            drawn = true;
            let origin = wrong.keep(reader.origin(&mut table, kind, number));
            let stands = Origin { seed, number, group: 0, class: ClassId(0) };
            let made = read(&mut reader, &mut table, origin.unwrap_or(stands));
            let (Some((flows, plan)), Some(_)) = (wrong.keep(made), origin) else { continue };
            let first = reader.requests.all.flows.len() as u32;
            reader.requests.all.flows.extend(flows);
            let tasks = reader.requests.all.tasks.len();
            reader.requests.all.tasks.append(&mut reader.tasks);
            for wait in reader.waits.drain(..) {
                let later = |id: FlowId| match Task::number(id) {
                    Some(number) => Task::id(tasks + number),
                    None => FlowId(first + id.0),
                };
                let after = After { flow: later(wait.flow), first: later(wait.first), gap: wait.gap };
                reader.requests.all.after.push(after);
            }
            reader.requests.plans.push(plan);
            reader.part(table.path(), Source::Drawn);
            wrong.keep(table.finish());
        }
    }
    wrong.or(())?;
    reader.note_sum();
    if reader.requests.all.flows.is_empty() && reader.draws() {
        return Err(match drawn {
            false => root.problem("the scenario has no flows").help(
                "add [[flow]] with src, dst and size, [[load]], [[incast]], [[long]], [[collective]] or [[job]], or [traffic] with trace = a file",
            ),
            true => root.problem("the scenario has no flows: what it draws is nothing").help("raise a load or a duration"),
        });
    }
    Ok(reader.requests)
}

impl Requests {
    /// Whether every flow that waits can start one day.
    pub(super) fn check_after(&self, document: &Document, graph: &Graph) -> Result<(), Problem> {
        self.all.check_after(&Names::new(graph)).map_err(|(flow, fault)| {
            let part = self.parts.partition_point(|part| part.end <= flow.index());
            let path = self.parts.get(part).map_or("", |part| part.path.as_str());
            document.problem(&format!("{path}.after"), fault.message).help(fault.help)
        })
    }
}

/// What one group of flows came to, and what it was meant to.
#[derive(Clone, Debug, PartialEq)]
pub struct GroupReport {
    /// Its name.
    pub name: String,
    /// Flows.
    pub flows: usize,
    /// Bytes of message. Of flows that leave, what they could send at most.
    pub bytes: u128,
    /// Whether flows of it leave early, so that the bytes they send are not known beforehand.
    pub leaves: bool,
    /// The mean size that its distribution has, in bytes.
    pub expected_size: Option<f64>,
    /// From when to when it sends: what its generators say, or else the first and the last start.
    pub window: (Time, Time),
    /// Bits per second of message in that window, as a share of all hosts' links.
    pub of_hosts: Option<f64>,
    /// As a share of the core.
    pub of_core: Option<f64>,
    /// The same of what passes the core alone.
    pub across_core: Option<f64>,
    /// How much more of it there is than its generators were meant to make: 1.02 is 2 % more.
    pub of_asked: Option<f64>,
}

/// What every group came to.
pub(super) fn report(graph: &Graph, all: &Traffic, plans: &[Plan]) -> Vec<GroupReport> {
    let places = Places::new(graph);
    let mut reports: Vec<GroupReport> = (0u16..)
        .zip(&all.groups)
        .map(|(group, name)| {
            let mine = || plans.iter().filter(move |plan| plan.group == group);
            let begin = mine().map(|plan| plan.window.0).min();
            GroupReport {
                name: name.clone(),
                flows: 0,
                bytes: 0,
                leaves: false,
                expected_size: mine()
                    .next()
                    .map(|plan| plan.mean_size)
                    .filter(|&size| mine().count() == 1 && size > 0.0),
                window: (begin.unwrap_or(Time::MAX), mine().map(|plan| plan.window.1).max().unwrap_or_default()),
                of_hosts: None,
                of_core: None,
                across_core: None,
                of_asked: None,
            }
        })
        .collect();
    let mut across = vec![0u128; reports.len()];
    for flow in &all.flows {
        let Some(report) = reports.get_mut(flow.group as usize) else { continue };
        report.flows += 1;
        if places.apart(flow.src, flow.dst) {
            across[flow.group as usize] += flow.size as u128;
        }
        report.bytes += flow.size as u128;
        report.leaves |= flow.until != Time::MAX;
        report.window = (report.window.0.min(flow.start), report.window.1.max(flow.start));
    }
    for (group, report) in (0u16..).zip(&mut reports) {
        let seconds = report.window.1.saturating_sub(report.window.0).secs_f64();
        if report.leaves || seconds == 0.0 || report.flows == 0 {
            continue;
        }
        let bits = report.bytes as f64 * 8.0;
        report.of_hosts = Some(bits / seconds / places.rate_of(places.hosts()));
        report.of_core = Some(bits / seconds / places.core()).filter(|_| places.core() > 0.0);
        let across = across[group as usize];
        report.across_core = match across == report.bytes {
            true => report.of_core,
            false => report.of_core.map(|of| of * across as f64 / report.bytes as f64),
        };
        let mine = plans.iter().filter(|plan| plan.group == group);
        let asked = |plan: &Plan| plan.bytes_per_second.map(|rate| rate * (plan.window.1 - plan.window.0).secs_f64());
        let asked: Option<f64> = mine.map(asked).sum();
        report.of_asked = asked.filter(|&asked| asked > 0.0).map(|asked| report.bytes as f64 / asked);
    }
    reports
}

/// A flow table that waits for others.
struct Wait<'a> {
    flows: Range<u32>,
    ids: Vec<Item<'a>>,
    gap: Time,
}

/// What a generator made, and what it was meant to make.
type Drawn = (Vec<FlowRequest>, Plan);
type Generator<'a> = fn(&mut Reader<'a>, &mut Table<'_>, Origin) -> Result<Drawn, Problem>;

struct Reader<'a> {
    names: Names<'a>,
    places: Places<'a>,
    base: Beside<'a>,
    seed: u64,
    ends: Ends,
    fabric: bool,
    /// How many flows there may be, and there is memory for.
    room: u64,
    requests: Requests,
    /// Which of the flows of the generator at hand wait for which.
    waits: Vec<After>,
    /// What hosts do between them.
    tasks: Vec<Task>,
    /// Hosts of the jobs so far.
    taken: HashSet<NodeId>,
}

/// A fault of a table's key.
fn at(table: &Table<'_>, fault: Fault) -> Problem {
    table.problem_at(fault.field, fault.message).help(fault.help)
}

impl Reader<'_> {
    /// Whether all is known of which flows are drawn.
    fn draws(&self) -> bool {
        self.fabric && !matches!(self.ends, Ends::Unknown)
    }

    /// How many flows there may still be.
    fn budget(&self) -> u64 {
        self.room.saturating_sub(self.requests.all.flows.len() as u64)
    }

    /// A fault of a generator. If there are too many flows for this machine only, that is said.
    fn ungenerated(&self, table: &Table<'_>, fault: Fault) -> Problem {
        match self.room < MAX_FLOWS && fault == traffic::too_many(fault.field, self.budget()) {
            true => self.too_many_here(table, fault.field),
            false => at(table, fault),
        }
    }

    /// The problem that this machine has no memory for so many flows.
    fn too_many_here(&self, table: &Table<'_>, key: &str) -> Problem {
        let message = format!("there is no memory for more than {} flows in all", self.room);
        table.problem_at(key, message).help("write less of it, or run it where there is more memory")
    }

    /// Closes a part: it has all flows so far that belong to no earlier one.
    fn part(&mut self, path: &str, source: Source) {
        self.requests.parts.push(Part { end: self.requests.all.flows.len(), path: path.into(), source });
    }

    /// The group that a table names.
    fn group(&mut self, table: &mut Table<'_>, default: String) -> Result<u16, Problem> {
        let name = match table.optional::<String>("name")? {
            Some(name) if !is_group_name(&name) => {
                let problem = table.problem_at("name", format!("{} is no name for a group", quoted(&name)));
                return Err(problem.help("write up to 64 characters, without commas and quotes"));
            }
            Some(name) => name,
            None => default,
        };
        let groups = &self.requests.all.groups;
        if groups.len() == MAX_GROUPS && !groups.contains(&name) {
            let problem = table.problem(format!("there are more than {MAX_GROUPS} groups"));
            return Err(problem.help("give tables that belong together the same name"));
        }
        Ok(self.requests.all.group(&name))
    }

    fn read_flows(&mut self, tables: Vec<Table<'_>>) -> Result<(), Problem> {
        let mut ids: HashMap<String, Range<u32>> = HashMap::new();
        let (mut waits, mut wrong) = (Vec::new(), Problems::default());
        for table in tables {
            wrong.keep(self.read_flow_table(table, &mut ids, &mut waits));
        }
        for wait in waits {
            wrong.keep(self.read_waits(&ids, wait));
        }
        self.requests.all.after.sort_by_key(|wait| wait.flow);
        wrong.or(())
    }

    /// Reads one `[[flow]]` with what it waits for.
    fn read_flow_table<'a>(
        &mut self,
        mut table: Table<'a>,
        ids: &mut HashMap<String, Range<u32>>,
        waits: &mut Vec<Wait<'a>>,
    ) -> Result<(), Problem> {
        table.takes(&FLOW);
        let mut wrong = Problems::default();
        // One that is wrong can be waited for all the same.
        let read = wrong.keep(self.read_flow(&mut table));
        let flows = read.clone().unwrap_or(0..0);
        if let Some(id) = wrong.keep(table.optional::<String>("id")).flatten()
            && ids.insert(id.clone(), flows.clone()).is_some()
        {
            let problem = table.problem_at("id", format!("the id {} is there twice", quoted(&id)));
            wrong.keep::<()>(Err(problem.help("give every [[flow]] an id of its own")));
        }
        let gap: Option<Time> = wrong.keep(table.optional("gap")).flatten();
        match table.item("after") {
            Some(item) => {
                // To be no array is no problem, and to make one for each flow takes long.
                let ids = if item.is_array() { item.items()? } else { vec![item] };
                if table.item("until").is_some() {
                    let note = "may have passed when the flow it waits for ends: one packet is sent all the same";
                    self.requests.notes.push(format!("{}.until {note}", table.path()));
                }
                waits.push(Wait { flows, ids, gap: gap.unwrap_or_default() });
            }
            None if gap.is_some() => {
                let problem = table.problem_at("gap", "a gap after nothing");
                wrong.keep::<()>(Err(problem.help("add after = the id of a [[flow]]")));
            }
            None => {}
        }
        let path = table.path().to_string();
        if read.is_some() {
            wrong.keep(table.finish());
            self.part(&path, Source::Listed);
        }
        wrong.or(())
    }

    /// Finds the flows that others wait for.
    fn read_waits(&mut self, ids: &HashMap<String, Range<u32>>, wait: Wait<'_>) -> Result<(), Problem> {
        let mut wrong = Problems::default();
        for item in wait.ids {
            let Some(id) = wrong.keep(item.read::<String>()) else { continue };
            let Some(first) = ids.get(&id) else {
                let mut known: Vec<&str> = ids.keys().map(String::as_str).collect();
                known.sort_unstable();
                let meant = suggest(&id, &known);
                let problem = item.problem(format!("there is no flow with the id {}", quoted(&id))).meant(meant);
                wrong.keep::<()>(Err(problem.help(match meant {
                    Some(meant) => format!("did you mean \"{meant}\"?"),
                    None => "write the id of another [[flow]]".into(),
                })));
                continue;
            };
            let pairs = wait.flows.len() as u64 * first.len() as u64;
            if self.requests.all.after.len() as u64 + pairs > self.room {
                let problem = item.problem("too many flows wait for too many others");
                return Err(problem.help("write a smaller count"));
            }
            for flow in wait.flows.clone() {
                let after =
                    first.clone().map(|first| After { flow: FlowId(flow), first: FlowId(first), gap: wait.gap });
                self.requests.all.after.extend(after);
            }
        }
        wrong.or(())
    }

    /// Reads one `[[flow]]`, but for what it waits for, and gives the numbers of its flows.
    fn read_flow(&mut self, table: &mut Table<'_>) -> Result<Range<u32>, Problem> {
        let names = &self.names;
        let mut end = |key: &str| match table.item(key) {
            Some(item) => wiring::node(&item, names),
            None => Err(table.missing(key, "the name of a host, such as \"h0\"")),
        };
        let mut wrong = Problems::default();
        let (src, dst) = (wrong.keep(end("src")), wrong.keep(end("dst")));
        let size: Option<Bytes> = wrong.keep(table.required("size"));
        let start: Option<Time> = wrong.keep(table.optional("start")).map(Option::unwrap_or_default);
        let class: Option<u8> = wrong.keep(table.optional("class")).flatten();
        let until: Option<Time> = wrong.keep(table.optional("until")).map(|until| until.unwrap_or(Time::MAX));
        let count: Option<u64> = wrong.keep(table.optional("count")).map(|count| count.unwrap_or(1));
        let group = wrong.keep(self.group(table, "flows".into()));
        // Of what could not be read, something stands for it that is good whatever the rest is.
        let mut hosts = self.places.hosts().iter().copied().filter(|&host| Some(host) != src && Some(host) != dst);
        let mut any = || hosts.next().unwrap_or(NodeId(0));
        let flow = FlowRequest {
            class: ClassId(class.unwrap_or(0)),
            group: group.unwrap_or(0),
            until: until.filter(|_| start.is_some()).unwrap_or(Time::MAX),
            ..FlowRequest::new(
                src.unwrap_or_else(&mut any),
                dst.unwrap_or_else(&mut any),
                size.map_or(1, |size| size.0),
                start.unwrap_or_default(),
            )
        };
        for fault in flow.faults(&self.names, self.requests.classes) {
            let fabric = ["src", "dst"].contains(&fault.field);
            let stands = (src.is_none() && fault.field == "src") || (dst.is_none() && fault.field == "dst");
            let problem = at(table, fault);
            if !stands {
                wrong.keep::<()>(Err(if fabric { problem.cause(Cause::Fabric) } else { problem }));
            }
        }
        let Some(count) = count else { return wrong.or(0..0) };
        wrong.or(())?;
        if self.room < MAX_FLOWS && (self.budget() + 1..=MAX_FLOWS).contains(&count) {
            return Err(self.too_many_here(table, "count"));
        }
        if !(1..=self.budget()).contains(&count) {
            let help = format!("write 1 or more; {MAX_FLOWS} flows in all is the most");
            return Err(table.problem_at("count", format!("count is {count}")).help(help));
        }
        let flows = &mut self.requests.all.flows;
        let first = flows.len() as u32;
        flows.extend(std::iter::repeat_n(flow, count as usize));
        Ok(first..flows.len() as u32)
    }

    fn read_trace(&mut self, table: &mut Table<'_>) -> Result<(), Problem> {
        let Some(path) = table.optional::<String>("trace")?.filter(|_| self.fabric) else { return Ok(()) };
        let full = self.base.path(&path);
        let text = self.base.read(&path).map_err(|problem| wiring::elsewhere(table, "trace", &problem))?;
        let goal = full.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("goal"));
        let trace = match goal {
            true => traffic::read_goal(&text, &self.names),
            false => read_trace(&text, &self.names, self.requests.classes),
        };
        let trace = trace.map_err(|faults| {
            let problem = |message: &str| Problem::new(full.display().to_string(), message);
            let listed = faults.list().iter().map(|fault| {
                problem(&fault.message).at(fault.line, fault.column, &fault.source).help(fault.help.as_str())
            });
            let more = faults
                .more()
                .map(|more| problem(&format!("and {more}")).help("mend these first; all lines are checked again"));
            Problem::all(listed.chain(more)).unwrap_or_else(|| problem("cannot be read"))
        })?;
        if trace.flows.is_empty() {
            let help = if goal { "add sends, and their receives" } else { "add lines below its header" };
            return Err(Problem::new(full.display().to_string(), "has no flows").help(help));
        }
        if trace.flows.len() as u64 > self.budget() {
            return Err(table.problem_at("trace", format!("there are more than {} flows", self.room)));
        }
        if self.requests.all.groups.len() + trace.groups.len() > MAX_GROUPS {
            return Err(table.problem_at("trace", format!("there are more than {MAX_GROUPS} groups")));
        }
        self.requests.all.append(trace);
        self.part("traffic.trace", Source::Trace(path));
        Ok(())
    }

    /// What all generators have.
    fn origin(&mut self, table: &mut Table<'_>, kind: &str, number: u32) -> Result<Origin, Problem> {
        let default = if number == 0 { kind.into() } else { format!("{kind}{}", number + 1) };
        let mut wrong = Problems::default();
        let group = wrong.keep(self.group(table, default));
        let class = wrong.keep(table.optional("class")).flatten().unwrap_or(0);
        wrong.keep(traffic::check_class(ClassId(class), self.requests.classes).map_err(|fault| at(table, fault)));
        wrong.or(Origin { seed: self.seed, number, group: group.unwrap_or(0), class: ClassId(class) })
    }

    fn read_load(&mut self, table: &mut Table<'_>, origin: Origin) -> Result<Drawn, Problem> {
        let mut wrong = Problems::default();
        let start = wrong.keep(start(table));
        let sizes = wrong.keep(self.sizes(table));
        let (from, to) = (wrong.keep(self.hosts_or_all(table, "from")), wrong.keep(self.hosts_or_all(table, "to")));
        let pattern = wrong.keep(table.optional("pattern")).flatten().unwrap_or(Pattern::AllToAll);
        let inter_site = wrong.keep(self.inter_site(table)).flatten();
        let timing = wrong.keep(self.timing(table, start.unwrap_or_default(), from.as_deref().unwrap_or_default()));
        let (Some(start), Some(sizes), Some(from), Some(to), Some(timing)) = (start, sizes, from, to, timing) else {
            return wrong.or(()).and(Err(table.problem("cannot be read")));
        };
        wrong.or(())?;
        let load = Load { sizes, timing, start, from, to, pattern, inter_site };
        let (mean_size, bytes_per_second) = (load.sizes.mean(), load.bytes_per_second());
        let lasts = match timing {
            Timing::Scattered { duration, .. } | Timing::Offered { extent: Extent::Lasting(duration), .. } => duration,
            Timing::Offered { extent: Extent::Counted(flows), .. } => {
                Time((flows as f64 * mean_size / bytes_per_second * 1e12) as u64)
            }
        };
        let window = (start, start.saturating_add(lasts));
        let plan = Plan { group: origin.group, mean_size, bytes_per_second: Some(bytes_per_second), window };
        if !self.draws() {
            return Ok((Vec::new(), plan));
        }
        Ok((load.generate(origin, &self.places, self.budget()).map_err(|fault| self.ungenerated(table, fault))?, plan))
    }

    /// When the messages of a `[[load]]` come.
    fn timing(&mut self, table: &mut Table<'_>, start: Time, from: &[NodeId]) -> Result<Timing, Problem> {
        let mut wrong = Problems::default();
        let bytes_per_second = wrong.keep(self.bytes_per_second(table, from)).flatten();
        let process: Option<Process> = wrong.keep(table.optional("process")).flatten();
        let gaps: Option<Gaps> = wrong.keep(table.optional("arrivals")).flatten();
        let arrivals = wrong.keep(arrivals(table, gaps, Arrivals::Poisson)).unwrap_or(Arrivals::Poisson);
        let duration = wrong.keep(duration(table, start)).flatten();
        let flows: Option<u64> = wrong.keep(table.optional("flows")).flatten();
        // What goes with what is told of what could be read.
        wrong.or(())?;
        Ok(match (bytes_per_second, flows) {
            (Some(bytes_per_second), _) => {
                if gaps == Some(Gaps::Uniform) {
                    let problem = table.problem_at("arrivals", "instants drawn uniformly are so many in so much time");
                    return Err(problem.help("write flows and duration, and no load"));
                }
                let extent = match (duration, flows) {
                    (Some(_), Some(_)) => {
                        let problem = table.problem_at("flows", "load, duration and flows together say too much");
                        return Err(problem.help("leave out one of the three"));
                    }
                    (None, Some(flows)) => Extent::Counted(flows),
                    (duration, None) => Extent::Lasting(self.or_to_the_end(table, duration, start, ", or flows")?),
                };
                Timing::Offered { bytes_per_second, arrivals, process: process.unwrap_or(Process::Host), extent }
            }
            (None, Some(flows)) => {
                if gaps.is_some_and(|gaps| gaps != Gaps::Uniform) {
                    let problem = table.problem_at("arrivals", "arrivals with gaps between them need a load");
                    return Err(problem.help("add load, or write arrivals = \"uniform\""));
                }
                if process == Some(Process::Host) {
                    let problem = table.problem_at("process", "instants drawn uniformly are of the whole network");
                    return Err(problem.help("leave out process, or add load"));
                }
                Timing::Scattered { flows, duration: self.or_to_the_end(table, duration, start, "")? }
            }
            (None, None) => {
                return Err(table.missing("load", "a share of the links, such as 0.5; or flows and duration"));
            }
        })
    }

    fn read_incast(&mut self, table: &mut Table<'_>, origin: Origin) -> Result<Drawn, Problem> {
        let mut wrong = Problems::default();
        let start = wrong.keep(start(table)).unwrap_or_default();
        let degree: u32 = wrong.keep(table.required("degree")).unwrap_or(1);
        let replacement: bool = wrong.keep(table.optional("replacement")).flatten().unwrap_or(false);
        let flows_per_sender: u32 = wrong.keep(table.optional("flows_per_sender")).flatten().unwrap_or(1);
        let volume = wrong.keep(volume(table)).unwrap_or(Volume::Each(1));
        let (from, to) = (self.hosts_or_all(table, "from"), self.hosts_or_all(table, "to"));
        let (from, to) = (wrong.keep(from).unwrap_or_default(), wrong.keep(to).unwrap_or_default());
        let spread: Time = wrong.keep(table.optional("spread")).flatten().unwrap_or_default();
        let every: Option<Time> = wrong.keep(table.optional("every")).flatten();
        let load = wrong.keep(self.bytes_per_second(table, &from)).flatten();
        let gaps: Option<Gaps> = wrong.keep(table.optional("arrivals")).flatten();
        if gaps == Some(Gaps::Uniform) {
            let problem = table.problem_at("arrivals", "events are not drawn uniformly");
            wrong.keep::<()>(Err(problem.help("write \"fixed\", \"poisson\" or \"lognormal\"")));
        }
        let arrivals = wrong.keep(arrivals(table, gaps, Arrivals::Fixed)).unwrap_or(Arrivals::Fixed);
        let duration = wrong.keep(duration(table, start)).flatten();
        let count: Option<u64> = wrong.keep(table.optional("count")).flatten();
        if duration.is_some() && count.is_some() {
            let problem = table.problem_at("count", "count and duration together say too much");
            wrong.keep::<()>(Err(problem.help("leave out one of the two")));
        }
        // The receiver itself never sends.
        let senders = to.iter().map(|host| from.len() - usize::from(from.binary_search(host).is_ok())).min();
        if let Some(senders) = senders.filter(|&senders| senders > 0 && degree as usize > senders && !replacement) {
            let note = format!("is {degree}, and {senders} hosts can send: some send more than once in an event");
            self.requests.notes.push(format!("{}.degree {note}", table.path()));
        }
        let mut incast = Incast {
            degree,
            replacement,
            flows_per_sender,
            volume,
            period: 1.0,
            arrivals,
            extent: Extent::Counted(1),
            start,
            spread,
            from,
            to,
        };
        if every.is_some() && load.is_some() {
            let problem = table.problem_at("every", "every and load together say too much");
            wrong.keep::<()>(Err(problem.help("leave out one of the two")));
        }
        if every == Some(Time::ZERO) {
            let problem = table.problem_at("every", "every is 0");
            wrong.keep::<()>(Err(problem.help("write a time above zero, such as \"500us\"")));
        }
        wrong.or(())?;
        let repeated = match (every, load) {
            (Some(every), _) => Some(every.0 as f64),
            (None, Some(bytes_per_second)) => Some(incast.bytes() as f64 / bytes_per_second * 1e12),
            // A single event.
            (None, None) if duration.is_none() && count.unwrap_or(1) == 1 && gaps.is_none() => None,
            (None, None) => {
                return Err(table.missing("every", "the time between events, or load = a share of the links"));
            }
        };
        if let Some(period) = repeated {
            incast.period = period;
            incast.extent = match count {
                Some(count) => Extent::Counted(count),
                None => Extent::Lasting(self.or_to_the_end(table, duration, start, ", or count")?),
            };
        }
        let lasts = match incast.extent {
            Extent::Lasting(duration) => duration,
            Extent::Counted(count) => repeated.map_or(spread, |period| Time((count as f64 * period) as u64)),
        };
        let plan = Plan {
            group: origin.group,
            mean_size: incast.bytes() as f64 / (degree as f64 * flows_per_sender as f64),
            bytes_per_second: repeated.map(|period| incast.bytes() as f64 / period * 1e12),
            window: (start, start.saturating_add(lasts)),
        };
        if !self.draws() {
            return Ok((Vec::new(), plan));
        }
        Ok((
            incast.generate(origin, &self.places, self.budget()).map_err(|fault| self.ungenerated(table, fault))?,
            plan,
        ))
    }

    fn read_long(&mut self, table: &mut Table<'_>, origin: Origin) -> Result<Drawn, Problem> {
        let mut wrong = Problems::default();
        let start = wrong.keep(start(table)).unwrap_or_default();
        let to = self
            .hosts(table, "to")
            .and_then(|to| to.ok_or_else(|| table.missing("to", "the hosts that receive, such as \"h0\" or \"all\"")));
        let to = wrong.keep(to).unwrap_or_default();
        let from = wrong.keep(self.hosts(table, "from")).flatten();
        let flows: Option<u64> = wrong.keep(table.optional("flows")).flatten();
        let stagger: Time = wrong.keep(table.optional("stagger")).flatten().unwrap_or_default();
        let until = match (wrong.keep(table.optional("leave")), self.ends) {
            (Some(Some(leave)), _) => leave,
            (_, Ends::At(stop)) => stop,
            (Some(None), Ends::Quiet) => {
                let problem = table.problem("long-lived flows that never leave need an end of the run");
                let help = "add leave = a time, or a stop at the top of the file, such as stop = \"5ms\"";
                wrong.keep::<()>(Err(problem.help(help)));
                MAX_START
            }
            _ => MAX_START,
        };
        wrong.or(())?;
        let long = Long { to, from, flows, start, stagger, until };
        let plan = Plan { group: origin.group, mean_size: 0.0, bytes_per_second: None, window: (start, until) };
        if !self.draws() {
            return Ok((Vec::new(), plan));
        }
        let flows =
            long.generate(origin, &self.places, self.budget()).map_err(|fault| self.ungenerated(table, fault))?;
        Ok((flows, plan))
    }

    fn read_collective(&mut self, table: &mut Table<'_>, origin: Origin) -> Result<Drawn, Problem> {
        let mut wrong = Problems::default();
        let start = wrong.keep(start(table)).unwrap_or_default();
        let operation: Option<Operation> = wrong.keep(table.required("kind"));
        let hosts = wrong.keep(self.ranked(table, "hosts"));
        let size: Option<Bytes> = wrong.keep(table.required("size"));
        let rounds: u64 = wrong.keep(table.optional("rounds")).flatten().unwrap_or(1);
        let gap: Time = wrong.keep(table.optional("gap")).flatten().unwrap_or_default();
        let cut = wrong.keep(cut(table));
        let given: Option<Option<u32>> = wrong.keep(table.optional("domain"));
        let domain = given.flatten();
        let skew: Option<f64> = wrong.keep(table.optional("skew")).flatten();
        let word = operation.map_or("", Operation::word);
        match (operation, domain) {
            (Some(Operation::HierarchicalAllReduce), None) if given.is_some() => {
                wrong.keep::<()>(Err(table.missing("domain", "how many hosts a scale-up domain has")));
            }
            (None | Some(Operation::HierarchicalAllReduce), _) | (_, None) => {}
            (_, Some(_)) => {
                let problem = table.problem_at("domain", format!("{word} has no domains"));
                let help = "leave out domain, or write kind = \"hierarchical-all-reduce\"";
                wrong.keep::<()>(Err(problem.help(help)));
            }
        }
        if skew.is_some() && operation.is_some_and(|operation| operation != Operation::AllToAll) {
            let problem = table.problem_at("skew", format!("{word} sends the same to all"));
            wrong.keep::<()>(Err(problem.help("leave out skew, or write kind = \"all-to-all\"")));
        }
        let (Some(operation), Some(hosts), Some(size), Some((cut, latency))) = (operation, hosts, size, cut) else {
            return wrong.or(()).and(Err(table.problem("cannot be read")));
        };
        wrong.or(())?;
        let plan = Plan { group: origin.group, mean_size: 0.0, bytes_per_second: None, window: (start, start) };
        if !self.draws() {
            return Ok((Vec::new(), plan));
        }
        let (domain, skew) = (domain.unwrap_or(0), skew.unwrap_or(0.0));
        let collective = Collective { operation, hosts, size: size.0, rounds, start, gap, cut, latency, domain, skew };
        let Woven { flows, tasks, after, mut messages } =
            collective.generate(origin, self.budget()).map_err(|fault| self.ungenerated(table, fault))?;
        let pieces = collective.hosts.len() as u64 * cut.lines() as u64;
        if size.0 < pieces {
            let note =
                format!("is less than a byte for each of {pieces} pieces: every message has a byte all the same");
            self.requests.notes.push(format!("{}.size {note}", table.path()));
        }
        (self.waits, self.tasks) = (after, tasks);
        messages.first = FlowId(self.requests.all.flows.len() as u32);
        self.requests.all.collectives.push(messages);
        Ok((flows, plan))
    }

    fn read_job(&mut self, table: &mut Table<'_>, origin: Origin) -> Result<Drawn, Problem> {
        let mut wrong = Problems::default();
        let start = wrong.keep(start(table)).unwrap_or_default();
        let ranks: Option<u32> = wrong.keep(table.optional("ranks")).flatten();
        let placement: Placement = or(table, "placement", Placement::Packed, &mut wrong);
        let hosts = wrong.keep(self.placed(table, origin, placement, ranks)).unwrap_or_default();
        let (tensor, pipeline) = (or(table, "tensor", 1, &mut wrong), or(table, "pipeline", 1, &mut wrong));
        let replicas = hosts.len() as u64 / (tensor as u64 * pipeline as u64).max(1);
        let microbatch: u64 = or(table, "microbatch", 1, &mut wrong);
        let precision = or(table, "precision", Precision::Bf16, &mut wrong);
        let usual = replicas.max(1).saturating_mul(microbatch).saturating_mul(pipeline as u64);
        let model = Model {
            layers: or(table, "layers", 24, &mut wrong),
            hidden: or(table, "hidden", 2048, &mut wrong),
            sequence: or(table, "sequence", 2048, &mut wrong),
            batch: or(table, "batch", usual, &mut wrong),
            microbatch,
            experts: or(table, "experts", 0, &mut wrong),
            top_k: or(table, "top_k", 2, &mut wrong),
            precision: precision.bytes(),
        };
        if model.experts > 0 && model.top_k > model.experts {
            let problem =
                table.problem_at("top_k", format!("each token goes to {} of {} experts", model.top_k, model.experts));
            wrong.keep::<()>(Err(problem.help("write no more than there are experts")));
        }
        let tflops: Option<f64> = wrong.keep(table.optional("tflops")).flatten();
        let speed = match wrong.keep(table.optional::<Time>("layer_time")).flatten() {
            Some(layer) => {
                if tflops.is_some() {
                    let problem = table.problem_at("layer_time", "layer_time and tflops together say too much");
                    wrong.keep::<()>(Err(problem.help("leave out one of the two")));
                }
                Speed::Layer(layer)
            }
            None => Speed::Flops((tflops.unwrap_or(400.0) * 1e12) as u64),
        };
        let all_reduce = or(table, "all_reduce", Operation::RingAllReduce, &mut wrong);
        if !all_reduce.word().ends_with("all-reduce") {
            let problem = table.problem_at("all_reduce", format!("{} is no all-reduce", all_reduce.word()));
            wrong.keep::<()>(Err(problem.help("write \"ring-all-reduce\", \"tree-all-reduce\", \"halving-doubling-all-reduce\" or \"hierarchical-all-reduce\"")));
        }
        let cut = wrong.keep(cut(table));
        let (expert, iterations) = (or(table, "expert", 1, &mut wrong), or(table, "iterations", 1, &mut wrong));
        let (overlap, buckets) = (or(table, "overlap", true, &mut wrong), or(table, "buckets", 4, &mut wrong));
        let (jitter, stragglers) = (or(table, "jitter", 0.0, &mut wrong), or(table, "stragglers", 0, &mut wrong));
        let (slowdown, domain) = (or(table, "slowdown", 1.5, &mut wrong), or(table, "domain", 0, &mut wrong));
        let skew = or(table, "skew", 0.0, &mut wrong);
        let dense = model.experts == 0;
        let alone = format!("{} has no domains", all_reduce.word());
        for (key, idle, message, help) in [
            ("skew", dense, "a dense model sends nothing to experts", "leave out skew, or write experts"),
            ("top_k", dense, "a dense model has no experts", "leave out top_k, or write experts"),
            ("slowdown", stragglers == 0, "there are no stragglers", "leave out slowdown, or write stragglers"),
            (
                "domain",
                all_reduce != Operation::HierarchicalAllReduce,
                alone.as_str(),
                "leave out domain, or write all_reduce = \"hierarchical-all-reduce\"",
            ),
        ] {
            if idle && table.item(key).is_some() {
                wrong.keep::<()>(Err(table.problem_at(key, message).help(help)));
            }
        }
        let Some((cut, latency)) = cut else { return wrong.or(()).and(Err(table.problem("cannot be read"))) };
        wrong.or(())?;
        let plan = Plan { group: origin.group, mean_size: 0.0, bytes_per_second: None, window: (start, start) };
        if !self.draws() {
            return Ok((Vec::new(), plan));
        }
        let job = Job {
            model,
            tensor,
            pipeline,
            expert,
            hosts,
            iterations,
            start,
            speed,
            overlap,
            buckets,
            jitter,
            stragglers,
            slowdown,
            all_reduce,
            domain,
            cut,
            latency,
            skew,
        };
        // There is none where its name was refused and no table before it has a group.
        let name = self.requests.all.groups.get(origin.group as usize).cloned().unwrap_or_default();
        if self.requests.all.jobs.iter().any(|job| job.name == name) {
            let message = format!("there is a job called {} already", quoted(&name));
            return Err(table.problem_at("name", message).help("give every job a name of its own"));
        }
        // Messages of each parallelism are a group of their own.
        let mut origins = [origin; 4];
        let there = [tensor > 1, pipeline > 1, replicas > 1, job.expert > 1 && model.experts > 0];
        let all = &mut self.requests.all;
        if origin.group as usize + 1 == all.groups.len() && !all.flows.iter().any(|flow| flow.group == origin.group) {
            // The name alone stands for nothing that is sent.
            all.groups.pop();
        }
        for ((place, dimension), there) in Dimension::ALL.iter().enumerate().zip(there) {
            if there {
                origins[place].group = self.requests.all.group(&format!("{name}/{}", dimension.word()));
            }
        }
        if !overlap && table.item("buckets").is_some() {
            let note = "buckets has no effect: without overlap, gradients go in one part";
            self.requests.notes.push(format!("{}: {note}", table.path()));
        }
        let Made { flows, tasks, after, outline } =
            job.generate(&name, origins, self.budget()).map_err(|fault| self.ungenerated(table, fault))?;
        if outline.goes.iter().any(|go| go.bytes < u64::from(go.ranks) * cut.lines() as u64) {
            let note = "some messages would have less than a byte, and have a byte all the same: less would be sent with fewer channels or chunks";
            self.requests.notes.push(format!("{}: {note}", table.path()));
        }
        let first = self.requests.all.flows.len() as u32;
        let outline = outline.moved(self.requests.all.tasks.len(), |flow| FlowId(first + flow.0));
        self.requests.all.jobs.push(outline);
        self.taken.extend(&job.hosts);
        (self.waits, self.tasks) = (after, tasks);
        Ok((flows, plan))
    }

    /// The hosts of a job's ranks.
    fn placed(
        &self,
        table: &mut Table<'_>,
        origin: Origin,
        placement: Placement,
        ranks: Option<u32>,
    ) -> Result<Vec<NodeId>, Problem> {
        let named = table.item("hosts").is_some();
        let mut free = self.ranked(table, "hosts")?;
        if placement == Placement::Listed && !named {
            let problem = table.problem_at("placement", "there is no list of hosts");
            return Err(problem.help("write hosts = the hosts in the order of ranks"));
        }
        let mut sorted = free.clone();
        sorted.sort_unstable();
        if sorted.windows(2).any(|pair| pair[0] == pair[1]) {
            return Err(table.problem_at("hosts", "a host is there twice").help("name every host once"));
        }
        if placement != Placement::Listed {
            free = sorted;
        }
        if !named {
            free.retain(|host| !self.taken.contains(host));
        }
        let count = ranks.map_or(free.len(), |ranks| ranks as usize);
        if count > free.len() {
            let message = format!("{count} ranks on {} hosts", free.len());
            let help = if named {
                "name more hosts"
            } else {
                "hosts of a job before are not free: write fewer ranks, or name hosts"
            };
            return Err(table.problem_at("ranks", message).help(help).cause(Cause::Fabric));
        }
        match placement {
            Placement::Packed | Placement::Listed => {}
            Placement::Random => {
                let mut random = origin.job_stream();
                for place in 0..count {
                    let other = place + random.below((free.len() - place) as u64) as usize;
                    free.swap(place, other);
                }
            }
            Placement::Rail => {
                // By its place within its rack, and then by rack.
                let mut seen: HashMap<u32, u32> = HashMap::new();
                let mut places: Vec<(u32, u32, NodeId)> = Vec::with_capacity(free.len());
                for &host in &free {
                    let rack = self.places.rack(host);
                    let place = seen.entry(rack).or_default();
                    places.push((*place, rack, host));
                    *place += 1;
                }
                places.sort_unstable();
                free = places.into_iter().map(|(_, _, host)| host).collect();
            }
        }
        free.truncate(count);
        Ok(free)
    }

    /// A duration, or the time that is left until the run stops.
    fn or_to_the_end(&self, table: &Table<'_>, duration: Option<Time>, start: Time, or: &str) -> Result<Time, Problem> {
        match (duration, self.ends) {
            (Some(duration), _) => Ok(duration),
            (None, Ends::Unknown) => Ok(MAX_START),
            (None, Ends::At(stop)) if stop > start => Ok(stop - start),
            (None, Ends::At(stop)) => {
                let problem = table.problem_at("start", format!("it starts at {start} and the run stops at {stop}"));
                Err(problem.help("start it earlier"))
            }
            (None, Ends::Quiet) => {
                Err(table.missing("duration", &format!("a time, such as \"1ms\"{or}; or give the run a stop")))
            }
        }
    }

    /// The rate that `load` and `of` stand for.
    fn bytes_per_second(&mut self, table: &mut Table<'_>, from: &[NodeId]) -> Result<Option<f64>, Problem> {
        let load: Option<f64> = table.optional("load")?;
        let of: Option<Of> = table.optional("of")?;
        let Some(load) = load else {
            if of.is_some() {
                return Err(table.problem_at("of", "there is no load").help("add load, or leave out of"));
            }
            return Ok(None);
        };
        if load <= 0.0 {
            let help = format!("write a share above 0, up to {MAX_LOAD}; 0.5 is half of the links");
            return Err(table.problem_at("load", format!("load is {load}")).help(help));
        }
        let capacity = match of.unwrap_or(Of::Hosts) {
            Of::Hosts => self.places.rate_of(from),
            Of::Core => self.places.core(),
        };
        if capacity == 0.0 && of == Some(Of::Core) {
            let problem = table.problem_at("of", "the fabric has no core: no switch with hosts has a link to another");
            return Err(problem.help("write of = \"hosts\"").cause(Cause::Fabric));
        }
        if load > 1.0 {
            let (whose, percent) = match of.unwrap_or(Of::Hosts) {
                Of::Hosts => ("the links of the hosts that send carry", load * 100.0),
                Of::Core => ("the core carries", load * 100.0),
            };
            let note = format!("asks for {percent:.0} % of what {whose}: {OVERLOAD}");
            self.requests.notes.push(format!("{}.load {note}", table.path()));
        }
        Ok(Some(load * capacity / 8.0))
    }

    /// Notes generators that ask for more than the hosts can send only together.
    fn note_sum(&mut self) {
        let capacity = self.places.rate_of(self.places.hosts());
        let plans = &self.requests.plans;
        let at = |time: Time| {
            let lasting = plans.iter().filter(move |plan| plan.window.0 <= time && time < plan.window.1);
            let rates: Vec<f64> = lasting.filter_map(|plan| plan.bytes_per_second).collect();
            (rates.iter().sum::<f64>() * 8.0 / capacity, rates.len())
        };
        let most = plans.iter().map(|plan| at(plan.window.0)).max_by(|a, b| a.0.total_cmp(&b.0));
        let said = self.requests.notes.iter().any(|note| note.ends_with(OVERLOAD));
        if let Some((share, 2..)) = most.filter(|(share, _)| *share > 1.0 && !said) {
            let (note, percent) = ("what is drawn asks together for", share * 100.0);
            self.requests.notes.push(format!("{note} {percent:.0} % of the hosts' links: {OVERLOAD}"));
        }
    }

    fn inter_site(&self, table: &mut Table<'_>) -> Result<Option<f64>, Problem> {
        let share: Option<f64> = table.optional("inter_site")?;
        if share.is_some() && self.places.sites() < 2 {
            let problem = table.problem_at("inter_site", "the fabric is a single site");
            let problem = problem.help("leave out inter_site, or use the topology \"two-sites\"");
            return Err(problem.cause(Cause::Fabric));
        }
        Ok(share)
    }

    /// The distribution that `sizes` names.
    fn sizes(&self, table: &mut Table<'_>) -> Result<Sizes, Problem> {
        let Some(item) = table.item("sizes") else { return Err(table.missing("sizes", &some_sizes().to_string())) };
        let text: String = item.read()?;
        if let Some(sizes) = Sizes::published(&text) {
            return Ok(sizes);
        }
        let faulty = |fault: Fault| item.problem(fault.message).help(fault.help);
        if let Some(range) = text.strip_prefix("uniform ") {
            const HELP: &str = "write two sizes, such as \"uniform 1KB..100KB\"";
            let Some((least, most)) = range.split_once("..") else {
                return Err(item.problem(format!("{} is not two sizes", quoted(range.trim()))).help(HELP));
            };
            let bytes =
                |text: &str| text.parse().map_err(|error: QuantityError| item.problem(error.to_string()).help(HELP));
            let (Bytes(least), Bytes(most)) = (bytes(least)?, bytes(most)?);
            return Sizes::uniform(least, most).map_err(faulty);
        }
        let fixed: Result<Bytes, QuantityError> = text.parse();
        if let Ok(Bytes(size)) = fixed {
            return Sizes::fixed(size).map_err(faulty);
        }
        let full = self.base.path(&text);
        if !full.is_file() && !text.contains(['/', '\\']) {
            if let Some(error) = fixed.err().filter(|_| text.starts_with(|c: char| c.is_ascii_digit())) {
                return Err(item.problem(error.to_string()).help(format!("write {}", some_sizes())));
            }
            if Path::new(&text).extension().is_none() {
                let known: Vec<&str> = PUBLISHED.iter().map(|published| published.name).collect();
                let problem = item.problem(format!("there is no distribution {}", quoted(&text)));
                let problem = problem.meant(suggest(&text, &known));
                return Err(problem.help(one_of(&text, &known) + ", a size, or the path of a file"));
            }
        }
        let content = self.base.read(&text).map_err(|problem| wiring::elsewhere(table, "sizes", &problem))?;
        Sizes::read(&content).map_err(|fault| {
            let problem = Problem::new(full.display().to_string(), fault.message);
            problem.at(fault.line, fault.column, &fault.source).help(fault.help)
        })
    }

    /// The hosts of a set, in order; `None` where the key is missing.
    fn hosts(&self, table: &mut Table<'_>, key: &str) -> Result<Option<Vec<NodeId>>, Problem> {
        let Some(item) = table.item(key) else { return Ok(None) };
        let (mut hosts, mut wrong) = (Vec::new(), Problems::default());
        for part in if item.is_array() { item.items()? } else { vec![item.clone()] } {
            wrong.keep(self.add_hosts(&part, &mut hosts));
        }
        wrong.or(())?;
        if hosts.is_empty() {
            return Err(item
                .problem("names no host")
                .help("write \"all\", \"h0\", \"h0..h15\", or a switch with hosts"));
        }
        hosts.sort_unstable();
        hosts.dedup();
        Ok(Some(hosts))
    }

    /// The hosts of a set in the order in which they are written, which is that of ranks; all if the key is missing.
    fn ranked(&self, table: &mut Table<'_>, key: &str) -> Result<Vec<NodeId>, Problem> {
        let Some(item) = table.item(key) else { return Ok(self.places.hosts().to_vec()) };
        let (mut hosts, mut wrong) = (Vec::new(), Problems::default());
        for part in if item.is_array() { item.items()? } else { vec![item.clone()] } {
            wrong.keep(self.add_hosts(&part, &mut hosts));
        }
        wrong.or(())?;
        Ok(hosts)
    }

    fn hosts_or_all(&self, table: &mut Table<'_>, key: &str) -> Result<Vec<NodeId>, Problem> {
        Ok(self.hosts(table, key)?.unwrap_or_else(|| self.places.hosts().to_vec()))
    }

    /// Adds the hosts that one word stands for.
    fn add_hosts(&self, item: &Item<'_>, hosts: &mut Vec<NodeId>) -> Result<(), Problem> {
        let graph = self.names.graph();
        if let NodeRef::Name(name) = item.read()?
            && self.names.find(&name).is_none()
        {
            if name == "all" {
                hosts.extend(self.places.hosts());
                return Ok(());
            }
            if let Some((first, last)) = name.split_once("..") {
                let end = |word: &str| {
                    let word = word.trim();
                    let node = self.names.find(word);
                    let node = node.ok_or_else(|| wiring::unknown_node(item, &quoted(word), word, &self.names))?;
                    match graph[node].kind {
                        Kind::Host => Ok(node),
                        Kind::Switch => {
                            let problem = item.problem(format!("{word} is a switch")).cause(Cause::Fabric);
                            Err(problem.help("let a range begin and end with a host"))
                        }
                    }
                };
                let (first, last) = (end(first)?, end(last)?);
                if first > last {
                    let problem = item.problem(format!("{} goes backwards", quoted(&name)));
                    return Err(problem.help("write the lower host first"));
                }
                let all = self.places.hosts();
                let (begin, end) = (all.partition_point(|&h| h < first), all.partition_point(|&h| h <= last));
                hosts.extend(&all[begin..end]);
                return Ok(());
            }
        }
        let node = wiring::node(item, &self.names)?;
        if graph[node].kind == Kind::Host {
            hosts.push(node);
            return Ok(());
        }
        let attached = graph.links.iter().flat_map(|link| [(link.a, link.b), (link.b, link.a)]);
        let before = hosts.len();
        hosts.extend(
            attached.filter_map(|(switch, host)| (switch == node && graph[host].kind == Kind::Host).then_some(host)),
        );
        if hosts.len() == before {
            let problem = item.problem(format!("{} is a switch without hosts", graph[node].name)).cause(Cause::Fabric);
            return Err(problem.help("name hosts, or a switch that has some"));
        }
        Ok(())
    }
}

/// How data is cut into messages, and what a host takes to send one on.
fn cut(table: &mut Table<'_>) -> Result<(Cut, Time), Problem> {
    let mut wrong = Problems::default();
    let cut = Cut {
        channels: or(table, "channels", 1, &mut wrong),
        chunks: or(table, "chunks", 1, &mut wrong),
        slots: wrong.keep(table.optional("slots")).flatten(),
        protocol: or(table, "protocol", Protocol::Simple, &mut wrong),
    };
    let latency = or(table, "latency", Time::ZERO, &mut wrong);
    wrong.or(())?;
    if cut.slots.is_some_and(|slots| slots >= cut.chunks) {
        let problem = table.problem_at("slots", format!("there is a slot for each of {} chunks", cut.chunks));
        return Err(problem.help("write fewer slots than chunks, or leave out slots"));
    }
    Ok((cut, latency))
}

/// The value of a key, or the usual one, with what is wrong kept.
fn or<T: Value>(table: &mut Table<'_>, key: &str, usual: T, wrong: &mut Problems) -> T {
    wrong.keep(table.optional(key)).flatten().unwrap_or(usual)
}

/// The bytes of an incast.
fn volume(table: &mut Table<'_>) -> Result<Volume, Problem> {
    let mut wrong = Problems::default();
    let (size, each) = (wrong.keep(table.optional("size")), wrong.keep(table.optional("size_each")));
    wrong.or(())?;
    match (size.flatten(), each.flatten()) {
        (Some(Bytes(bytes)), None) => Ok(Volume::Total(bytes)),
        (None, Some(Bytes(bytes))) => Ok(Volume::Each(bytes)),
        (Some(_), Some(_)) => {
            let problem = table.problem_at("size_each", "size and size_each together say too much");
            Err(problem.help("write size for the bytes of an event, or size_each for those of a flow"))
        }
        (None, None) => Err(table.missing("size", "the bytes of an event, or size_each = those of a flow")),
    }
}

fn start(table: &mut Table<'_>) -> Result<Time, Problem> {
    let start = table.optional("start")?.unwrap_or_default();
    traffic::check_start(start).map_err(|fault| at(table, fault))?;
    Ok(start)
}

fn duration(table: &mut Table<'_>, start: Time) -> Result<Option<Time>, Problem> {
    let duration: Option<Time> = table.optional("duration")?;
    if let Some(duration) = duration
        && (duration == Time::ZERO || duration > MAX_START.saturating_sub(start))
    {
        let problem = table.problem_at("duration", format!("duration is {duration}"));
        return Err(problem.help(format!("write a time above zero that ends by {MAX_START}")));
    }
    Ok(duration)
}

/// The arrival process that `arrivals` and `sigma` describe. Uniform instants have none: `default` stands for it.
fn arrivals(table: &mut Table<'_>, gaps: Option<Gaps>, default: Arrivals) -> Result<Arrivals, Problem> {
    let sigma: Option<f64> = table.optional("sigma")?;
    if let Some(sigma) = sigma {
        if gaps != Some(Gaps::Lognormal) {
            let problem = table.problem_at("sigma", "only lognormal arrivals have a sigma");
            return Err(problem.help("write arrivals = \"lognormal\", or leave out sigma"));
        }
        if sigma <= 0.0 {
            let problem = table.problem_at("sigma", format!("sigma is {sigma}"));
            return Err(problem.help(format!("write a number above 0, up to {MAX_SIGMA}")));
        }
    }
    Ok(match gaps {
        Some(Gaps::Poisson) => Arrivals::Poisson,
        Some(Gaps::Lognormal) => Arrivals::Lognormal(sigma.unwrap_or(SIGMA)),
        Some(Gaps::Fixed) => Arrivals::Fixed,
        Some(Gaps::Uniform) | None => default,
    })
}
