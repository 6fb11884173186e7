//! Scenario files: everything about a run, in one TOML text.
//!
//! [`Scenario::load`] reads a file into typed values and points at whatever is wrong with it. [`crate::resolve`] turns
//! the result into the numbers that a fabric runs on.

#[cfg(test)]
mod tests;

use crate::declared::{Key, Section};
use crate::document::{Document, Table, one_of, quoted, suggest};
use crate::estimate::EstimateSettings;
use crate::forward::ForwardSettings;
use crate::kind::FileKind;
use crate::presets;
use crate::settings::{self, MeasureSettings, NicSettings, Salt, SwitchSettings, WindowSize};
use crate::slow;
use crate::traffic::{self, GroupReport, Part, Plan, Requests, Source};
use crate::watch::{self, Watch};
use crate::wiring::{self, Topology};
use ::traffic::{MAX_START, Traffic};
use engine::{Bytes, Misfit, Parameters, Time};
use fabric::Registry;
use fabric::axes::registry::Axis;
use fabric::axes::{
    Chosen, CongestionControlDef, Definition, EdgeControlDef, FlowControlDef, LoadBalancingDef, MarkingDef,
    QueueingDef, TransportDef,
};
use fabric::id::NodeId;
use fabric::setup::WindowRule;
use fabric::topology::{Graph, GraphError, Kind};
use files::problem::{Cause, Problem, read_text};
use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

/// The keys of `[scheme]` that choose a mechanism, each of which may have a table of parameters there. `routing` is what load balancing was
/// called before.
pub(crate) const SCHEME_AXES: [&str; 6] =
    ["flow_control", "congestion_control", "edge_control", "transport", "load_balancing", "routing"];

/// One variant on every axis, with its parameters.
pub struct Choices {
    /// Flow control.
    pub flow_control: Box<dyn FlowControlDef>,
    /// Congestion control, with `edge_control` on top.
    pub congestion_control: Box<dyn CongestionControlDef>,
    /// What senders do on top of it.
    pub edge_control: Box<dyn EdgeControlDef>,
    /// The transport.
    pub transport: Box<dyn TransportDef>,
    /// The choice among equally short paths.
    pub load_balancing: Box<dyn LoadBalancingDef>,
    /// The choice among queues.
    pub queueing: Box<dyn QueueingDef>,
    /// What switches write on packets.
    pub marking: Box<dyn MarkingDef>,
}

impl Choices {
    /// As what runs asks for them.
    pub fn chosen(&self, window: bool) -> Chosen<'_> {
        Chosen {
            flow_control: &*self.flow_control,
            congestion_control: &*self.congestion_control,
            edge_control: &*self.edge_control,
            transport: &*self.transport,
            load_balancing: &*self.load_balancing,
            queueing: &*self.queueing,
            marking: &*self.marking,
            window,
        }
    }
}

/// Where the files are that a scenario names.
#[derive(Clone, Copy, Debug)]
pub enum Beside<'a> {
    /// In this folder, if their paths are relative.
    Folder(&'a Path),
    /// Nowhere yet: these are their names and what is in them.
    Texts(&'a [(&'a str, &'a str)]),
}

impl Beside<'_> {
    /// The path of a file.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        match self {
            Beside::Folder(folder) => folder.join(name),
            Beside::Texts(_) => name.into(),
        }
    }

    /// What is in a file.
    pub(crate) fn read(&self, name: &str) -> Result<String, Problem> {
        match self {
            Beside::Folder(folder) => read_text(&folder.join(name)),
            Beside::Texts(texts) => match texts.iter().find(|(other, _)| *other == name) {
                Some((_, text)) => Ok((*text).into()),
                None => Err(Problem::new(name, "is not there")),
            },
        }
    }
}

/// A run as its file describes it.
pub struct Scenario {
    /// Its title; the file's name where it has none.
    pub name: String,
    /// Seed of all random numbers.
    pub seed: u64,
    /// When to stop; `None` for when all flows are finished and the network is quiet.
    pub stop: Option<Time>,
    /// The wiring, with the faults of its links.
    pub graph: Graph,
    /// Replays in a row of a pause that automatic headroom allows for, on links that repeat.
    pub pause_replays: Option<u32>,
    /// Settings of the switches.
    pub switch: SwitchSettings,
    /// By node, the memory of switches that have another than the rest.
    pub buffers: BTreeMap<NodeId, Bytes>,
    /// Settings of the NICs.
    pub nic: NicSettings,
    /// Hosts that take packets slowly.
    pub slow: Vec<slow::Slow>,
    /// What to record.
    pub measure: MeasureSettings,
    /// What to follow closely.
    pub watch: Watch,
    /// Whether it is simulated or estimated.
    pub estimate: EstimateSettings,
    /// Whether what is steady is skipped.
    pub forward: ForwardSettings,
    /// The choice on every axis, with its parameters.
    pub choices: Choices,
    /// How much a flow may have unacknowledged.
    pub window: WindowSize,
    /// How the window follows the rate.
    pub window_rule: WindowRule,
    /// What switches add to the seeds of their hashes.
    pub salt: Salt,
    /// Priority classes of data.
    pub classes: u8,
    /// What is to be sent: the flows of the file first, then those of the trace, then those of each generator.
    pub traffic: Traffic,
    /// The preset, if one was named.
    pub preset: Option<String>,
    /// The topology as the file says it.
    pub(crate) topology: Topology,
    /// Where the flows come from, in order.
    parts: Vec<Part>,
    /// What the generators are meant to make.
    pub(crate) plans: Vec<Plan>,
    /// What is odd about what is to be sent.
    pub(crate) notes: Vec<String>,
    pub(crate) document: Document,
}

/// What is wrong with a scenario, as far as it has been read.
#[derive(Default)]
pub(crate) struct Problems(Vec<Problem>);

impl Problems {
    /// Keeps the problem, if that is what came out.
    pub(crate) fn keep<T>(&mut self, result: Result<T, Problem>) -> Option<T> {
        result.map_err(|problem| self.0.push(problem)).ok()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether any of them is about one of these keys.
    pub(crate) fn about(&self, keys: &[&str]) -> bool {
        let all = self.0.iter().flat_map(|problem| std::iter::once(problem).chain(&problem.more));
        all.filter_map(|problem| problem.key.as_deref()).any(|key| keys.contains(&key))
    }

    fn of(problems: &[Problem]) -> Problems {
        Problems(problems.to_vec())
    }

    /// Whether all of them are about keys in these tables.
    fn all_in(&self, tables: &[&str]) -> bool {
        let all = self.0.iter().flat_map(|problem| std::iter::once(problem).chain(&problem.more));
        let table =
            |problem: &Problem| problem.key.as_deref().map(|key| key.split('.').next().unwrap_or(key).to_string());
        all.map(table).all(|table| table.is_some_and(|table| tables.contains(&table.as_str())))
    }

    /// Keeps what is wrong, but for what a fabric lacks that is not known.
    fn keep_known<T>(&mut self, result: Result<T, Problem>, fabric: bool) -> Option<T> {
        let known = |problem: &Problem| fabric || problem.cause != Cause::Fabric;
        result.map_err(|problem| self.0.extend(problem.split().into_iter().filter(known))).ok()
    }

    /// A value that was read without a problem, or all problems.
    pub(crate) fn or<T>(self, value: T) -> Result<T, Problem> {
        Problem::all(self.0).map_or(Ok(value), Err)
    }

    /// All of them, and of `others` those that are about other keys.
    fn with_others(self, mut others: Vec<Problem>, name: &str) -> Problem {
        let mut own: Vec<Problem> = self.0.into_iter().flat_map(Problem::split).collect();
        // What stands there without quotes, and is not what its key takes with them either, needs none.
        let slips = own.iter().filter(|problem| problem.cause == Cause::Syntax && problem.help.is_some());
        let slips: Vec<_> = slips.map(|slip| (slip.line, slip.source.clone())).collect();
        let mut needless = Vec::new();
        let mut as_written = |problem: Problem| {
            let slip = slips.iter().find(|(line, _)| line.is_some() && *line == problem.line);
            match slip.filter(|_| problem.cause == Cause::Value && problem.message.contains(": expected ")) {
                Some((line, source)) => {
                    needless.push(*line);
                    problem.showing(source.clone())
                }
                None => problem,
            }
        };
        own = own.into_iter().map(&mut as_written).collect();
        others = others.into_iter().map(as_written).collect();
        own.retain(|problem| problem.cause != Cause::Syntax || !needless.contains(&problem.line));
        let missing = own.iter().chain(&others).filter(|problem| problem.cause == Cause::MissingKey);
        let missing: Vec<Option<String>> = missing.map(|problem| problem.key.clone()).collect();
        others.retain(|other| {
            // A key that is missing because it is misspelt is one mistake.
            let meant = other.key.as_deref().zip(other.meant.as_deref());
            let meant = meant
                .map(|(key, meant)| key.rsplit_once('.').map_or(meant.into(), |(table, _)| format!("{table}.{meant}")));
            let misspelt = other.cause == Cause::UnknownKey && meant.is_some() && missing.contains(&meant);
            !misspelt && own.iter().all(|problem| problem.key != other.key)
        });
        Problem::all(own.into_iter().chain(others)).unwrap_or_else(|| Problem::new(name, "cannot be read"))
    }
}

/// What can be wrong without a consequence for memory, and for what flow control makes of it.
const APART: [&str; 9] = ["name", "seed", "measure", "flow", "load", "incast", "long", "collective", "job"];

/// When a run ends.
#[derive(Clone, Copy)]
pub(crate) enum Ends {
    /// When all is quiet.
    Quiet,
    /// At that instant.
    At(Time),
    /// The file says when, and cannot be understood.
    Unknown,
}

impl Scenario {
    /// Reads a scenario file. `sets` are changes to it, each `key.path=value`.
    pub fn load(path: &Path, sets: &[String]) -> Result<Scenario, Problem> {
        let text = read_text(path)?;
        let base = path.parent().unwrap_or(Path::new(""));
        Scenario::parse(&path.display().to_string(), &text, base, sets)
    }

    /// Reads a scenario from `text`, which problems call `name`. Files that it names are looked for in `base`.
    pub fn parse(name: &str, text: &str, base: &Path, sets: &[String]) -> Result<Scenario, Problem> {
        Scenario::parse_beside(name, text, Beside::Folder(base), sets)
    }

    /// The same with the files that it names wherever they are.
    pub fn parse_beside(name: &str, text: &str, base: Beside<'_>, sets: &[String]) -> Result<Scenario, Problem> {
        let (mut document, slips) = Document::parse_on(name, text)?;
        document.expect_kind(FileKind::Scenario)?;
        let mut wrong = Problems(slips);
        for set in sets {
            wrong.keep(document.set(set));
        }
        let preset = wrong.keep(apply_preset(&mut document));

        let mut root = document.root();
        root.takes(&TOP);
        let title: Option<String> = wrong.keep(read_title(&mut root)).flatten();
        let seed: Option<u64> = wrong.keep(root.optional("seed")).flatten();
        let stop = wrong.keep(read_stop(&mut root)).flatten();
        let mut wired = wrong.keep(wiring::read_topology(&mut root, base));
        // Where the fabric cannot be, another stands for it, so that what has nothing to do with it is looked at.
        let fabric = wired.is_some();
        let mut pause_replays = None;
        let mut stand_in = if fabric { None } else { Some(wiring::stand_in()) };
        if let Some(graph) = wired.as_mut().map(|(graph, _)| graph).or(stand_in.as_mut()) {
            pause_replays = wrong.keep_known(wiring::read_links(&mut root, graph), fabric).flatten();
        }
        if let Some((graph, _)) = &wired {
            let faulty = |error: GraphError| wiring::remedied(document.problem("topology", error.problem()), &error);
            wrong.keep(graph.check().map_err(faulty));
        }
        let graph = wired.as_ref().map(|(graph, _)| graph).or(stand_in.as_ref());
        let (mut switch, mut nic, mut measure) =
            (SwitchSettings::default(), NicSettings::default(), MeasureSettings::default());
        let buffers = wrong.keep_known(read_switch(&mut root, &mut switch, graph), fabric);
        wrong.keep(fill(&mut root, "nic", &mut nic));
        let mut estimate = EstimateSettings::default();
        wrong.keep(fill(&mut root, "estimate", &mut estimate));
        let mut forward = ForwardSettings::default();
        wrong.keep(fill(&mut root, "fast_forward", &mut forward));
        let slow = graph.and_then(|graph| wrong.keep_known(slow::read(&mut root, graph), fabric));
        let mut measure_table = wrong.keep(root.table("measure")).flatten();
        if let Some(table) = &mut measure_table {
            table.takes(&settings::MEASURE);
            wrong.keep(table.fill(&mut measure));
        }
        if !wrong.about(&["switch.ecn_min", "switch.ecn_max"]) {
            wrong.keep(switch.check().map_err(|Misfit { parameter, message, help }| {
                // Of two values that do not go together, the one that was written is at fault.
                let (own, other) = (format!("switch.{parameter}"), "switch.ecn_min".to_string());
                let at = if document.written(&other) && !document.written(&own) { other } else { own };
                // A value that nobody wrote says where it comes from.
                let from = |key: &str| match (
                    document.written(key),
                    document.value(key),
                    preset.as_ref().and_then(Option::as_ref),
                ) {
                    (true, ..) => String::new(),
                    (_, Some(_), Some(preset)) => format!(" by the preset \"{preset}\""),
                    _ => " by default".into(),
                };
                let message = message.replacen(", below", &format!("{}, below", from("switch.ecn_max")), 1);
                document.problem(&at, message + &from("switch.ecn_min")).help(help)
            }));
        }
        // Without its preset a scheme is another one.
        let scheme = preset.as_ref().and_then(|_| wrong.keep(read_scheme(&mut root, &document, &switch)));
        let ends = if wrong.about(&["stop"]) { Ends::Unknown } else { stop.map_or(Ends::Quiet, Ends::At) };
        let mut traffic = graph.and_then(|graph| {
            let read = traffic::read_traffic(&mut root, graph, base, seed.unwrap_or(1), ends, fabric);
            wrong.keep_known(read, fabric)
        });
        let mut watch = Watch::default();
        if let (Some(mut table), Some(graph)) = (measure_table, graph) {
            let groups = traffic.as_ref().map(|traffic| traffic.all.groups.as_slice());
            let read = watch::read(&mut table, graph, groups);
            watch = wrong.keep_known(read, fabric).unwrap_or_default();
            if traffic.is_some() {
                wrong.keep(table.finish());
            }
        }
        if wrong.is_empty() {
            wrong.keep(root.finish());
        }
        if let (Some(graph), Some(traffic)) = (graph, &mut traffic) {
            wrong.keep_known(traffic.check_after(&document, graph), fabric);
        }
        let fine = wrong.is_empty();
        let others = if fine { Vec::new() } else { document.check(&crate::schema::sections()) };
        // Whether memory and what flow control makes of it can be looked at although something is wrong.
        let apart = wrong.all_in(&APART) && Problems::of(&others).all_in(&APART);
        let ((Some((graph, topology)), Some(preset)), (Some(buffers), Some(slow), Some(scheme)), true) =
            ((wired, preset), (buffers, slow, scheme), fine || apart)
        else {
            return Err(wrong.with_others(others, name));
        };
        let none = || Requests { classes: 1, ..Requests::default() };
        let traffic = traffic.unwrap_or_else(none);
        if !fine {
            (estimate, forward) = Default::default();
        }
        let notes = traffic.notes;
        let scenario = Scenario {
            name: title.unwrap_or_else(|| name.into()),
            seed: seed.unwrap_or(1),
            stop,
            graph,
            pause_replays,
            switch,
            buffers,
            nic,
            slow,
            measure,
            watch,
            estimate,
            forward,
            choices: scheme.choices,
            window: scheme.window,
            window_rule: scheme.window_rule,
            salt: scheme.salt,
            classes: traffic.classes,
            traffic: traffic.all,
            preset,
            topology,
            parts: traffic.parts,
            plans: traffic.plans,
            notes,
            document,
        };
        if fine {
            return Ok(scenario);
        }
        let others = scenario.document.check(&crate::schema::sections());
        wrong.keep(crate::resolve::resolve(scenario));
        Err(wrong.with_others(others, name))
    }

    /// The same with another congestion control, of the user's own, under what is on top of it.
    pub fn controlled_by(mut self, choice: Box<dyn CongestionControlDef>) -> Result<Scenario, Problem> {
        let name = choice.name();
        if self.window == WindowSize::None && choice.needs_window() {
            if self.wrote("scheme.window") {
                let message = format!("{name} is defined only with a window");
                let help = "write window = \"bdp\", or leave the key out";
                return Err(self.problem("scheme.window", message).help(help));
            }
            self.window = WindowSize::Bdp;
        }
        self.choices.congestion_control = self.choices.edge_control.over(choice);
        match self.choices.chosen(self.window != WindowSize::None).conflicts().into_iter().next() {
            Some(misfit) => Err(self.problem(misfit.parameter, misfit.message).help(misfit.help)),
            None => Ok(self),
        }
    }

    /// Whether a user has written a key, in the file or by `--set`.
    pub(crate) fn written(&self, path: &str) -> bool {
        self.document.written(path)
    }

    /// Whether a key is there, in the file, by `--set` or by the preset.
    pub(crate) fn wrote(&self, path: &str) -> bool {
        self.document.value(path).is_some()
    }

    /// The memory of a switch, or of a host that forwards.
    pub fn buffer(&self, node: NodeId) -> Bytes {
        if self.graph[node].kind == Kind::Host {
            return self.nic.forward_buffer.unwrap_or(self.switch.buffer);
        }
        self.buffers.get(&node).copied().unwrap_or(self.switch.buffer)
    }

    /// A problem at the value of a dotted path, such as `switch.buffer`, or at what is nearest to it.
    pub fn problem(&self, path: &str, message: impl Into<String>) -> Problem {
        self.document.problem(path, message)
    }

    /// The flows as a trace file, in order of start.
    pub fn trace(&self) -> Result<String, Problem> {
        let mut text = Vec::new();
        let refused = |error: &dyn fmt::Display| self.problem("", format!("its flows cannot be written: {error}"));
        ::traffic::write_trace(&mut text, &self.graph, &self.traffic.in_order()).map_err(|error| refused(&error))?;
        String::from_utf8(text).map_err(|error| refused(&error))
    }

    /// The flows, and what hosts do between them, as a schedule in GOAL.
    pub fn goal(&self) -> Result<String, Problem> {
        let mut text = Vec::new();
        let refused = |error: &dyn fmt::Display| self.problem("", format!("it cannot be written: {error}"));
        ::traffic::write_goal(&mut text, &self.graph, &self.traffic.in_order()).map_err(|error| refused(&error))?;
        String::from_utf8(text).map_err(|error| refused(&error))
    }

    /// What every group of flows came to.
    pub fn groups(&self) -> Vec<GroupReport> {
        traffic::report(&self.graph, &self.traffic, &self.plans)
    }

    /// A problem with one of the flows.
    pub fn flow_problem(&self, flow: usize, message: impl Into<String>) -> Problem {
        let place = self.parts.partition_point(|part| part.end <= flow);
        let before = place.checked_sub(1).map_or(0, |place| self.parts[place].end);
        let (number, message) = (flow - before + 1, message.into());
        let Some(Part { path, source, .. }) = self.parts.get(place) else { return self.problem("", message) };
        match source {
            Source::Listed => self.problem(path, message),
            Source::Trace(file) => self.problem(path, format!("flow {number} of {file}: {message}")),
            Source::Drawn => {
                let name = |node: NodeId| self.graph.nodes.get(node.index()).map_or("?", |node| node.name.as_str());
                let ends = self.traffic.flows.get(flow).map_or(("?", "?"), |flow| (name(flow.src), name(flow.dst)));
                self.problem(path, format!("flow {number} of it, from {} to {}: {message}", ends.0, ends.1))
            }
        }
    }
}

impl fmt::Debug for Scenario {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (fc, cc) = (self.choices.flow_control.name(), self.choices.congestion_control.name());
        f.debug_struct("Scenario").field("name", &self.name).field("scheme", &(fc, cc)).finish_non_exhaustive()
    }
}

/// Gives the document what its preset says, and returns the preset's name.
fn apply_preset(document: &mut Document) -> Result<Option<String>, Problem> {
    let mut root = document.root();
    let Some(mut scheme) = root.table("scheme")? else { return Ok(None) };
    let Some(item) = scheme.item("preset") else { return Ok(None) };
    let name: String = item.read()?;
    let Some(preset) = presets::named(&name) else {
        let known: Vec<&str> = presets::all().iter().map(|preset| preset.name).collect();
        let problem = item.problem(format!("there is no preset {}", quoted(&name))).help(presets::instead_of(&name));
        return Err(problem.meant(suggest(&name, &known)));
    };
    presets::apply(preset, document);
    Ok(Some(name))
}

/// The keys at the top of a scenario.
pub(crate) static TOP: LazyLock<Section> = LazyLock::new(|| {
    let stop = "Nothing happens from this instant on. Auto: the run ends when all flows are finished and the network is quiet.";
    let seed = "Seed of all random numbers: traffic, losses and marks. The same seed gives the same run.";
    let keys = vec![
        Key::of::<String>("name", "Title of the run.").otherwise("the file's name"),
        Key::of::<u64>("seed", seed).or(1u64),
        Key::within::<Option<Time>>("stop", Time(1)..=MAX_START, stop).or(None::<Time>),
    ];
    let tables = [
        "topology",
        "links",
        "link",
        "switch",
        "nic",
        "slow",
        "scheme",
        "traffic",
        "flow",
        "load",
        "incast",
        "long",
        "collective",
        "job",
        "measure",
        "estimate",
        "fast_forward",
    ];
    Section::new("", "Everything about a run.", keys).with_tables(tables.to_vec())
});

fn fill(root: &mut Table<'_>, key: &str, parameters: &mut dyn Parameters) -> Result<(), Problem> {
    let Some(mut table) = root.table(key)? else { return Ok(()) };
    let mut wrong = Problems::default();
    wrong.keep(table.fill(parameters));
    wrong.keep(table.finish());
    wrong.or(())
}

/// Reads `[switch]`, and gives the memory of the switches that `[switch.buffers]` names.
fn read_switch(
    root: &mut Table<'_>,
    settings: &mut SwitchSettings,
    graph: Option<&Graph>,
) -> Result<BTreeMap<NodeId, Bytes>, Problem> {
    let (mut buffers, mut wrong) = (BTreeMap::new(), Problems::default());
    let Some(mut table) = root.table("switch")? else { return Ok(buffers) };
    table.takes(&settings::SWITCH);
    wrong.keep(table.fill(settings));
    let buffers_of = wrong.keep(table.table("buffers")).flatten();
    if let (Some(mut named), Some(graph)) = (buffers_of, graph) {
        for pattern in named.rest() {
            let Some(item) = named.item(&pattern) else { continue };
            let Some(bytes) = wrong.keep(item.read::<Bytes>()) else { continue };
            if bytes == Bytes(0) || bytes > settings::MAX_MEMORY {
                let help = format!("write a size above zero, up to {}", settings::MAX_MEMORY);
                wrong.keep::<()>(Err(item.problem(format!("is {bytes}")).help(help)));
                continue;
            }
            let switches = (0..).map(NodeId).zip(&graph.nodes).filter(|(_, node)| node.kind == Kind::Switch);
            let matching: Vec<NodeId> =
                switches.filter(|(_, node)| watch::like(&node.name, &pattern)).map(|(number, _)| number).collect();
            if matching.is_empty() {
                let problem = item.problem(format!("no switch is called {}", quoted(&pattern))).cause(Cause::Fabric);
                wrong.keep::<()>(Err(problem.help("write the name of a switch, such as leaf0; * stands for any text")));
            }
            matching.into_iter().for_each(|node| _ = buffers.insert(node, bytes));
        }
        wrong.keep(named.finish());
    }
    wrong.keep(table.finish());
    wrong.or(buffers)
}

/// Turns a mechanism's objection to its parameters into a problem at the parameter.
fn suits(root: &mut Table<'_>, key: &str, result: Result<(), Misfit>) -> Result<(), Problem> {
    let Err(misfit) = result else { return Ok(()) };
    let problem = match root.table(key)? {
        Some(table) => table.problem_at(misfit.parameter, misfit.message),
        None => root.problem(misfit.message),
    };
    Err(problem.help(misfit.help))
}

fn read_title(root: &mut Table<'_>) -> Result<Option<String>, Problem> {
    let title: Option<String> = root.optional("name")?;
    // It goes to terminals, on which such characters act.
    match title.filter(|title| title.chars().any(char::is_control)) {
        Some(title) => {
            let problem = root.problem_at("name", format!("{} has characters that cannot be seen", quoted(&title)));
            Err(problem.help("write a title in one line"))
        }
        None => root.optional("name"),
    }
}

fn read_stop(root: &mut Table<'_>) -> Result<Option<Time>, Problem> {
    Ok(root.optional("stop")?.flatten())
}

/// What `[scheme]` says.
struct Scheme {
    choices: Choices,
    window: WindowSize,
    window_rule: WindowRule,
    salt: Salt,
}

/// The mechanism that a key names, or the default one.
fn choose<T: ?Sized + Definition>(
    table: &mut Table<'_>,
    key: &str,
    default: &str,
    axis: &Axis<T>,
) -> Result<Box<T>, Problem> {
    let known = axis.names();
    let Some(item) = table.item(key) else {
        return axis.named(default).ok_or_else(|| table.missing(key, &one_of("", &known)));
    };
    let name: String = item.read()?;
    axis.named(&name).ok_or_else(|| {
        let problem = item.problem(format!("there is no {}", quoted(&name))).help(one_of(&name, &known));
        problem.meant(suggest(&name, &known))
    })
}

/// Reads the table of a mechanism's own parameters, if it has any.
fn parameters<T: ?Sized + Definition>(table: &mut Table<'_>, choice: &mut Box<T>) -> Result<(), Problem> {
    let name = choice.name();
    let mut wrong = Problems::default();
    // One without parameters has no table, so that a table of that name is as unknown as any other.
    if !choice.list().is_empty() {
        wrong.keep(fill(table, name, choice));
    }
    // What it says of two values is not said where one of them could not be read.
    let list = choice.list();
    let path = |key: &str| match table.path() {
        "" => format!("{name}.{key}"),
        above => format!("{above}.{name}.{key}"),
    };
    let unread = |key: &str| wrong.about(&[&path(key)]);
    let suitable = choice.check().or_else(|misfit| {
        let named = |key: &str| {
            misfit.parameter == key
                || misfit.message.split(|c: char| !c.is_alphanumeric() && c != '_').any(|word| word == key)
        };
        let told = list.iter().any(|parameter| unread(parameter.name) && named(parameter.name));
        if told { Ok(()) } else { Err(misfit) }
    });
    wrong.keep(suits(table, name, suitable));
    wrong.or(())
}

/// The same of one that may not be there, with what is wrong kept.
fn keep_parameters<T: ?Sized + Definition>(table: &mut Table<'_>, choice: &mut Option<Box<T>>, wrong: &mut Problems) {
    if let Some(choice) = choice {
        wrong.keep(parameters(table, choice));
    }
}

/// The window, which some congestion controls need.
fn read_window(
    table: &mut Table<'_>,
    document: &Document,
    control: Option<&dyn CongestionControlDef>,
) -> Result<WindowSize, Problem> {
    let needed = control.filter(|control| control.needs_window());
    let Some(item) = table.item("window") else {
        return Ok(needed.map_or(WindowSize::None, |_| WindowSize::Bdp));
    };
    let size: WindowSize = item.read()?;
    if let WindowSize::Fixed(bytes) = size
        && !(Bytes(1)..=::traffic::MAX_SIZE).contains(&bytes)
    {
        return Err(item.problem(format!("is {bytes}")).help("write a size above zero, \"bdp\" or \"none\""));
    }
    if let (WindowSize::None, Some(control)) = (size, needed) {
        let message = format!("{} is defined only with a window", control.name());
        let or = if document.written("scheme.window") { ", or leave the key out" } else { "" };
        return Err(item.problem(message).help(format!("write window = \"bdp\"{or}")));
    }
    Ok(size)
}

fn read_scheme(root: &mut Table<'_>, document: &Document, switch: &SwitchSettings) -> Result<Scheme, Problem> {
    let registry = Registry::get();
    let nothing = Document::parse("", "")?;
    let mut table = root.table("scheme")?.unwrap_or_else(|| nothing.root());
    table.takes(&crate::schema::SCHEME);
    // Its values are in the table already.
    _ = table.item("preset");
    let balancing = match (table.has("load_balancing"), table.has("routing")) {
        (true, true) => {
            let problem = table.problem_at("routing", "load_balancing and routing are the same choice");
            return Err(problem.help("remove routing"));
        }
        (true, false) => "load_balancing",
        _ => "routing",
    };
    // The other name is known as well.
    _ = table.item(if balancing == "routing" { "load_balancing" } else { "routing" });
    let by_switch = |root: &mut Table<'_>, key: &str, name: &str, known: &[&str]| {
        let message = format!("there is no {}", quoted(name));
        match root.table("switch") {
            Ok(Some(table)) => table.problem_at(key, message).help(one_of(name, known)),
            _ => root.problem(message).help(one_of(name, known)),
        }
    };
    let mut wrong = Problems::default();
    let mut flow_control = wrong.keep(choose(&mut table, "flow_control", "pfc", &registry.flow_control));
    let control = &registry.congestion_control;
    let mut congestion_control = wrong.keep(choose(&mut table, "congestion_control", "none", control));
    let mut transport = wrong.keep(choose(&mut table, "transport", "go-back-n", &registry.transport));
    let mut edge_control = wrong.keep(choose(&mut table, "edge_control", "none", &registry.edge_control));
    let mut load_balancing = wrong.keep(choose(&mut table, balancing, "ecmp", &registry.load_balancing));
    let queueing = registry.queueing.named(&switch.scheduler);
    let mut queueing =
        wrong.keep(queueing.ok_or_else(|| by_switch(root, "scheduler", &switch.scheduler, &registry.queueing.names())));
    let marking = registry.marking.named(&switch.marking);
    let mut marking =
        wrong.keep(marking.ok_or_else(|| by_switch(root, "marking", &switch.marking, &registry.marking.names())));

    let window = read_window(&mut table, document, congestion_control.as_deref());
    let window = wrong.keep(window);
    let window_rule = wrong.keep(table.optional("window_rule")).flatten().unwrap_or(WindowRule::Scaled);
    let salt = wrong.keep(table.optional("salt")).flatten().unwrap_or(Salt::Fixed(0));
    keep_parameters(&mut table, &mut flow_control, &mut wrong);
    keep_parameters(&mut table, &mut congestion_control, &mut wrong);
    keep_parameters(&mut table, &mut transport, &mut wrong);
    keep_parameters(&mut table, &mut edge_control, &mut wrong);
    keep_parameters(&mut table, &mut load_balancing, &mut wrong);
    keep_parameters(&mut table, &mut queueing, &mut wrong);
    keep_parameters(&mut table, &mut marking, &mut wrong);
    let (
        (Some(flow_control), Some(congestion_control), Some(transport), Some(edge_control)),
        (Some(load_balancing), Some(queueing), Some(marking), Some(window)),
    ) = ((flow_control, congestion_control, transport, edge_control), (load_balancing, queueing, marking, window))
    else {
        return Err(Problem::all(wrong.0).unwrap_or_else(|| table.problem("cannot be read")));
    };
    let mut choices =
        Choices { flow_control, congestion_control, edge_control, transport, load_balancing, queueing, marking };
    let (fc, cc) = (choices.flow_control.name(), choices.congestion_control.name());

    let chosen = choices.chosen(window != WindowSize::None);
    let used: Vec<&str> = chosen.definitions().iter().map(|(_, definition)| definition.name()).collect();
    for (axis, variants) in registry.definitions() {
        let other = |variant: &&dyn Definition| {
            !variant.list().is_empty() && !used.contains(&variant.name()) && table.has(variant.name())
        };
        let others = variants.iter().map(|variant| &**variant).filter(other);
        for name in others.map(|variant| variant.name()).collect::<Vec<_>>() {
            let message = format!("[scheme.{name}] sets parameters of {name}, which the scenario does not use");
            let help =
                format!("remove the table, or write {axis} = \"{name}\" in [scheme]; chosen are \"{fc}\" and \"{cc}\"");
            wrong.keep::<()>(Err(table.problem_at(name, message).help(help)));
            // Its keys are not looked at.
            _ = table.item(name);
        }
    }
    for misfit in choices.chosen(window != WindowSize::None).conflicts() {
        let key = misfit.parameter.strip_prefix("scheme.").unwrap_or(misfit.parameter);
        wrong.keep::<()>(Err(table.problem_at(key, misfit.message).help(misfit.help)));
    }
    wrong.keep(table.finish());
    wrong.or(())?;
    choices.congestion_control = choices.edge_control.over(choices.congestion_control);
    Ok(Scheme { choices, window, window_rule, salt })
}
