//! Scenario files: everything about a run, in one TOML text.
//!
//! [`Scenario::load`] reads a file into typed values and points at whatever is wrong with it. [`crate::resolve`] turns
//! the result into the numbers that a fabric runs on.

#[cfg(test)]
mod tests;

use crate::declared::{Key, Section};
use crate::document::{Document, Table, one_of, quoted, suggest};
use crate::estimate::EstimateSettings;
use crate::presets;
use crate::settings::{self, MeasureSettings, NicSettings, Salt, SwitchSettings, WindowSize};
use crate::slow;
use crate::traffic::{self, GroupReport, Part, Plan, Source};
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

    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// A value that was read without a problem, or all problems.
    pub(crate) fn or<T>(self, value: T) -> Result<T, Problem> {
        Problem::all(self.0).map_or(Ok(value), Err)
    }

    /// All of them, and of `others` those that are about other keys.
    fn with_others(self, mut others: Vec<Problem>, name: &str) -> Problem {
        let own: Vec<Problem> = self.0.into_iter().flat_map(Problem::split).collect();
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
        let mut document = Document::parse(name, text)?;
        let mut wrong = Problems::default();
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
        if let Some((graph, _)) = &mut wired {
            wrong.keep(wiring::read_links(&mut root, graph));
            let faulty = |error: GraphError| wiring::remedied(document.problem("topology", error.problem()), &error);
            wrong.keep(graph.check().map_err(faulty));
        }
        let graph = wired.as_ref().map(|(graph, _)| graph);
        let (mut switch, mut nic, mut measure) =
            (SwitchSettings::default(), NicSettings::default(), MeasureSettings::default());
        let buffers = wrong.keep(read_switch(&mut root, &mut switch, graph));
        wrong.keep(fill(&mut root, "nic", &mut nic));
        let mut estimate = EstimateSettings::default();
        wrong.keep(fill(&mut root, "estimate", &mut estimate));
        let slow = graph.and_then(|graph| wrong.keep(slow::read(&mut root, graph)));
        let mut measure_table = wrong.keep(root.table("measure")).flatten();
        if let Some(table) = &mut measure_table {
            table.takes(&settings::MEASURE);
            wrong.keep(table.fill(&mut measure));
        }
        if buffers.is_some() {
            wrong.keep(switch.check().map_err(|Misfit { parameter, message, help }| {
                // Of two values that do not go together, the one that was written is at fault.
                let (own, other) = (format!("switch.{parameter}"), "switch.ecn_min".to_string());
                let at = if document.written(&other) && !document.written(&own) { other } else { own };
                document.problem(&at, message).help(help)
            }));
        }
        // Without its preset a scheme is another one.
        let scheme = preset.as_ref().and_then(|_| wrong.keep(read_scheme(&mut root, &document, &switch)));
        let mut traffic =
            graph.and_then(|graph| wrong.keep(traffic::read_traffic(&mut root, graph, base, seed.unwrap_or(1), stop)));
        let mut watch = Watch::default();
        if let (Some(mut table), Some(graph), Some(traffic)) = (measure_table, graph, &traffic) {
            let read = watch::read(&mut table, graph, &traffic.all.groups);
            watch = wrong.keep(read.and_then(|watch| table.finish().map(|()| watch))).unwrap_or_default();
        }
        if wrong.is_empty() {
            wrong.keep(root.finish());
        }
        if let (Some(graph), Some(traffic)) = (graph, &mut traffic) {
            wrong.keep(traffic.check_after(&document, graph));
        }
        let ((Some((graph, topology)), Some(preset)), (Some(buffers), Some(slow)), (Some(scheme), Some(traffic)), true) =
            ((wired, preset), (buffers, slow), (scheme, traffic), wrong.is_empty())
        else {
            return Err(wrong.with_others(document.check(&crate::schema::sections()), name));
        };
        let notes = traffic.notes;
        Ok(Scenario {
            name: title.unwrap_or_else(|| name.into()),
            seed: seed.unwrap_or(1),
            stop,
            graph,
            switch,
            buffers,
            nic,
            slow,
            measure,
            watch,
            estimate,
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
        })
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
        let problem = item.problem(format!("there is no preset {}", quoted(&name))).help(one_of(&name, &known));
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
        "measure",
        "estimate",
    ];
    Section::new("", "Everything about a run.", keys).with_tables(tables.to_vec())
});

fn fill(root: &mut Table<'_>, key: &str, parameters: &mut dyn Parameters) -> Result<(), Problem> {
    let Some(mut table) = root.table(key)? else { return Ok(()) };
    table.fill(parameters)?;
    table.finish()
}

/// Reads `[switch]`, and gives the memory of the switches that `[switch.buffers]` names.
fn read_switch(
    root: &mut Table<'_>,
    settings: &mut SwitchSettings,
    graph: Option<&Graph>,
) -> Result<BTreeMap<NodeId, Bytes>, Problem> {
    let mut buffers = BTreeMap::new();
    let Some(mut table) = root.table("switch")? else { return Ok(buffers) };
    table.takes(&settings::SWITCH);
    table.fill(settings)?;
    let buffers_of = table.table("buffers")?;
    if let (Some(mut named), Some(graph)) = (buffers_of, graph) {
        for pattern in named.rest() {
            let Some(item) = named.item(&pattern) else { continue };
            let bytes: Bytes = item.read()?;
            if bytes == Bytes(0) || bytes > settings::MAX_MEMORY {
                let help = format!("write a size above zero, up to {}", settings::MAX_MEMORY);
                return Err(item.problem(format!("is {bytes}")).help(help));
            }
            let switches = (0..).map(NodeId).zip(&graph.nodes).filter(|(_, node)| node.kind == Kind::Switch);
            let matching: Vec<NodeId> =
                switches.filter(|(_, node)| watch::like(&node.name, &pattern)).map(|(number, _)| number).collect();
            if matching.is_empty() {
                let problem = item.problem(format!("no switch is called {}", quoted(&pattern)));
                return Err(problem.help("write the name of a switch, such as leaf0; * stands for any text"));
            }
            matching.into_iter().for_each(|node| _ = buffers.insert(node, bytes));
        }
        named.finish()?;
    }
    table.finish()?;
    Ok(buffers)
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
    // One without parameters has no table, so that a table of that name is as unknown as any other.
    if !choice.list().is_empty() {
        fill(table, name, choice)?;
    }
    suits(table, name, choice.check())
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
    let queueing = registry.queueing.named(&switch.scheduler);
    let marking = registry.marking.named(&switch.marking);
    let mut choices = Choices {
        flow_control: choose(&mut table, "flow_control", "pfc", &registry.flow_control)?,
        congestion_control: choose(&mut table, "congestion_control", "none", &registry.congestion_control)?,
        transport: choose(&mut table, "transport", "go-back-n", &registry.transport)?,
        edge_control: choose(&mut table, "edge_control", "none", &registry.edge_control)?,
        load_balancing: choose(&mut table, balancing, "ecmp", &registry.load_balancing)?,
        queueing: queueing
            .ok_or_else(|| by_switch(root, "scheduler", &switch.scheduler, &registry.queueing.names()))?,
        marking: marking.ok_or_else(|| by_switch(root, "marking", &switch.marking, &registry.marking.names()))?,
    };
    let (fc, cc) = (choices.flow_control.name(), choices.congestion_control.name());

    let needs_window = choices.congestion_control.needs_window();
    let mut window = if needs_window { WindowSize::Bdp } else { WindowSize::None };
    if let Some(item) = table.item("window") {
        let size: WindowSize = item.read()?;
        if let WindowSize::Fixed(bytes) = size
            && !(Bytes(1)..=::traffic::MAX_SIZE).contains(&bytes)
        {
            return Err(item.problem(format!("is {bytes}")).help("write a size above zero, \"bdp\" or \"none\""));
        }
        if size == WindowSize::None && needs_window {
            let message = format!("{cc} is defined only with a window");
            let or = if document.written("scheme.window") { ", or leave the key out" } else { "" };
            return Err(item.problem(message).help(format!("write window = \"bdp\"{or}")));
        }
        window = size;
    }
    let window_rule = table.optional("window_rule")?.unwrap_or(WindowRule::Scaled);
    let salt = table.optional("salt")?.unwrap_or(Salt::Fixed(0));

    let chosen = choices.chosen(window != WindowSize::None);
    let used: Vec<&str> = chosen.definitions().iter().map(|(_, definition)| definition.name()).collect();
    for (axis, variants) in registry.definitions() {
        let other = |variant: &&dyn Definition| {
            !variant.list().is_empty() && !used.contains(&variant.name()) && table.has(variant.name())
        };
        if let Some(variant) = variants.iter().map(|variant| &**variant).find(other) {
            let name = variant.name();
            let message = format!("[scheme.{name}] sets parameters of {name}, which the scenario does not use");
            let help =
                format!("remove the table, or write {axis} = \"{name}\" in [scheme]; chosen are \"{fc}\" and \"{cc}\"");
            return Err(table.problem_at(name, message).help(help));
        }
    }
    parameters(&mut table, &mut choices.flow_control)?;
    parameters(&mut table, &mut choices.congestion_control)?;
    parameters(&mut table, &mut choices.transport)?;
    parameters(&mut table, &mut choices.edge_control)?;
    parameters(&mut table, &mut choices.load_balancing)?;
    parameters(&mut table, &mut choices.queueing)?;
    parameters(&mut table, &mut choices.marking)?;
    if let Some(misfit) = choices.chosen(window != WindowSize::None).conflicts().into_iter().next() {
        let key = misfit.parameter.strip_prefix("scheme.").unwrap_or(misfit.parameter);
        return Err(table.problem_at(key, misfit.message).help(misfit.help));
    }
    table.finish()?;
    choices.congestion_control = choices.edge_control.over(choices.congestion_control);
    Ok(Scheme { choices, window, window_rule, salt })
}
