//! Scenario files: everything about a run, in one TOML text.
//!
//! [`Scenario::load`] reads a file into typed values and points at whatever is wrong with it. [`crate::resolve`] turns
//! the result into the numbers that a fabric runs on.

#[cfg(test)]
mod tests;

use crate::declared::{Key, Section};
use crate::document::{Document, Table, one_of, quoted, suggest};
use crate::presets;
use crate::settings::{self, MeasureSettings, NicSettings, SwitchSettings, WindowSize};
use crate::slow;
use crate::traffic::{self, GroupReport, Part, Plan, Source};
use crate::watch::{self, Watch};
use crate::wiring::{self, Topology};
use ::traffic::{MAX_START, Traffic};
use engine::{Bytes, Misfit, Parameters, Raw, Time};
use fabric::setup::{Spread, WindowRule};
use fabric::topology::{Graph, Kind};
use files::problem::{Problem, read_text};
use schemes::{congestion_control, edge_control, flow_control, transport};
use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::sync::LazyLock;

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
    pub buffers: BTreeMap<u32, Bytes>,
    /// Settings of the NICs.
    pub nic: NicSettings,
    /// Hosts that take packets slowly.
    pub slow: Vec<slow::Slow>,
    /// What to record.
    pub measure: MeasureSettings,
    /// What to follow closely.
    pub watch: Watch,
    /// The choice of flow control, with its parameters.
    pub flow_control: Box<dyn flow_control::Choice>,
    /// The choice of congestion control, with its parameters, and with `edge_control` on top.
    pub congestion_control: Box<dyn congestion_control::Choice>,
    /// What senders do on top of it.
    pub edge_control: Box<dyn edge_control::Choice>,
    /// The choice of transport, with its parameters.
    pub transport: Box<dyn transport::Choice>,
    /// The choice among equally short ways.
    pub spread: Spread,
    /// How much a flow may have unacknowledged.
    pub window: WindowSize,
    /// How the window follows the rate.
    pub window_rule: WindowRule,
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
    document: Document,
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
        let mut document = Document::parse(name, text)?;
        for set in sets {
            document.set(set)?;
        }
        let preset = apply_preset(&mut document)?;

        let mut root = document.root();
        root.takes(&TOP);
        let title: Option<String> = root.optional("name")?;
        let seed: Option<u64> = root.optional("seed")?;
        let stop = read_stop(&mut root)?;
        let (mut graph, topology) = wiring::read_topology(&mut root, base)?;
        wiring::read_links(&mut root, &mut graph)?;
        graph.check().map_err(|message| wiring::with_remedy(document.problem("topology", message)))?;
        let (mut switch, mut nic, mut measure) =
            (SwitchSettings::default(), NicSettings::default(), MeasureSettings::default());
        let buffers = read_switch(&mut root, &mut switch, &graph)?;
        fill(&mut root, "nic", &mut nic)?;
        let slow = slow::read(&mut root, &graph)?;
        let mut measure_table = root.table("measure")?;
        if let Some(table) = &mut measure_table {
            table.takes(&settings::MEASURE);
            table.fill(&mut measure)?;
        }
        switch
            .check()
            .map_err(|(key, message, help)| document.problem(&format!("switch.{key}"), message).help(help))?;
        let scheme = read_scheme(&mut root, &nic)?;
        let traffic = traffic::read_traffic(&mut root, &graph, base, seed.unwrap_or(1), stop)?;
        let watch = match measure_table {
            Some(mut table) => {
                let watch = watch::read(&mut table, &graph, &traffic.all.groups)?;
                table.finish()?;
                watch
            }
            None => Watch::default(),
        };
        root.finish()?;
        traffic.check_after(&document, &graph)?;
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
            flow_control: scheme.flow_control,
            congestion_control: scheme.congestion_control,
            edge_control: scheme.edge_control,
            transport: scheme.transport,
            spread: scheme.spread,
            window: scheme.window,
            window_rule: scheme.window_rule,
            classes: traffic.classes,
            traffic: traffic.all,
            preset,
            topology,
            parts: traffic.parts,
            plans: traffic.plans,
            document,
        })
    }

    /// The same with another congestion control, of somebody's own, under what is on top of it.
    pub fn controlled_by(mut self, choice: Box<dyn congestion_control::Choice>) -> Result<Scenario, Problem> {
        let name = choice.name();
        if self.transport.alone() {
            let message = format!("{} is all the control there is: {name} does not go with it", self.transport.name());
            return Err(self.problem("scheme.transport", message).help("choose another transport"));
        }
        if self.window == WindowSize::None && choice.needs_window() {
            if self.wrote("scheme.window") {
                let message = format!("{name} is defined only with a window");
                let help = "write window = \"bdp\", or leave the key out";
                return Err(self.problem("scheme.window", message).help(help));
            }
            self.window = WindowSize::Bdp;
        }
        self.congestion_control = self.edge_control.over(choice);
        Ok(self)
    }

    /// Whether a key is there, in the file, by `--set` or by the preset.
    pub(crate) fn wrote(&self, path: &str) -> bool {
        self.document.value(path).is_some()
    }

    /// The memory of a switch, or of a host that forwards.
    pub fn buffer(&self, node: u32) -> Bytes {
        if self.graph.nodes[node as usize].kind == Kind::Host {
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
                let name = |node: u32| self.graph.nodes.get(node as usize).map_or("?", |node| node.name.as_str());
                let ends = self.traffic.flows.get(flow).map_or(("?", "?"), |flow| (name(flow.src), name(flow.dst)));
                self.problem(path, format!("flow {number} of it, from {} to {}: {message}", ends.0, ends.1))
            }
        }
    }
}

impl fmt::Debug for Scenario {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (fc, cc) = (self.flow_control.name(), self.congestion_control.name());
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
        let known: Vec<&str> = presets::PRESETS.iter().map(|preset| preset.name).collect();
        let problem = item.problem(format!("there is no preset {}", quoted(&name))).help(one_of(&name, &known));
        return Err(problem.meant(suggest(&name, &known)));
    };
    preset.apply(document);
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
    graph: &Graph,
) -> Result<BTreeMap<u32, Bytes>, Problem> {
    let mut buffers = BTreeMap::new();
    let Some(mut table) = root.table("switch")? else { return Ok(buffers) };
    table.takes(&settings::SWITCH);
    table.fill(settings)?;
    if let Some(mut named) = table.table("buffers")? {
        for pattern in named.rest() {
            let Some(item) = named.item(&pattern) else { continue };
            let bytes: Bytes = item.read()?;
            if bytes == Bytes(0) || bytes > settings::MAX_MEMORY {
                let help = format!("write a size above zero, up to {}", settings::MAX_MEMORY);
                return Err(item.problem(format!("is {bytes}")).help(help));
            }
            let switches = (0..).zip(&graph.nodes).filter(|(_, node)| node.kind == Kind::Switch);
            let matching: Vec<u32> =
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

fn read_stop(root: &mut Table<'_>) -> Result<Option<Time>, Problem> {
    Ok(root.optional("stop")?.flatten())
}

/// What `[scheme]` says.
struct Scheme {
    flow_control: Box<dyn flow_control::Choice>,
    congestion_control: Box<dyn congestion_control::Choice>,
    edge_control: Box<dyn edge_control::Choice>,
    transport: Box<dyn transport::Choice>,
    spread: Spread,
    window: WindowSize,
    window_rule: WindowRule,
}

/// The mechanism that a key names, or the default one.
fn choose<T: ?Sized>(
    table: &mut Table<'_>,
    key: &str,
    default: &str,
    named: fn(&str) -> Option<Box<T>>,
    known: &[&str],
) -> Result<Box<T>, Problem> {
    let Some(item) = table.item(key) else {
        return named(default).ok_or_else(|| table.missing(key, &one_of("", known)));
    };
    let name: String = item.read()?;
    named(&name).ok_or_else(|| {
        let problem = item.problem(format!("there is no {}", quoted(&name))).help(one_of(&name, known));
        problem.meant(suggest(&name, known))
    })
}

fn read_scheme(root: &mut Table<'_>, nic: &NicSettings) -> Result<Scheme, Problem> {
    let flow_controls: Vec<&str> = flow_control::all().iter().map(|choice| choice.name()).collect();
    let congestion_controls: Vec<&str> = congestion_control::all().iter().map(|choice| choice.name()).collect();
    let transports: Vec<&str> = transport::all().iter().map(|choice| choice.name()).collect();
    let nothing = Document::parse("", "")?;
    let mut table = root.table("scheme")?.unwrap_or_else(|| nothing.root());
    table.takes(&crate::schema::SCHEME);
    // Its values are in the table already.
    _ = table.item("preset");
    let mut flow_control = choose(&mut table, "flow_control", "pfc", flow_control::named, &flow_controls)?;
    let mut congestion_control =
        choose(&mut table, "congestion_control", "none", congestion_control::named, &congestion_controls)?;
    let mut transport = choose(&mut table, "transport", "go-back-n", transport::named, &transports)?;
    let edges: Vec<&str> = edge_control::all().iter().map(|choice| choice.name()).collect();
    let mut edge_control = choose(&mut table, "edge_control", "none", edge_control::named, &edges)?;
    let spread = table.optional("routing")?.unwrap_or(Spread::Flow);
    let (fc, cc, tp) = (flow_control.name(), congestion_control.name(), transport.name());
    let ec = edge_control.name();

    let mut window = if congestion_control.needs_window() { WindowSize::Bdp } else { WindowSize::None };
    if let Some(item) = table.item("window") {
        let size: WindowSize = item.read()?;
        if let WindowSize::Fixed(bytes) = size
            && !(Bytes(1)..=::traffic::MAX_SIZE).contains(&bytes)
        {
            return Err(item.problem(format!("is {bytes}")).help("write a size above zero, \"bdp\" or \"none\""));
        }
        if size == WindowSize::None && congestion_control.needs_window() {
            let message = format!("{cc} is defined only with a window");
            return Err(item.problem(message).help("write window = \"bdp\", or leave the key out"));
        }
        window = size;
    }
    let window_rule = table.optional("window_rule")?.unwrap_or(WindowRule::Scaled);

    if transport.alone() {
        let others = [("flow_control", fc), ("congestion_control", cc), ("edge_control", ec)];
        let other = others.into_iter().find(|(_, name)| *name != "none");
        let other = other.or((window != WindowSize::None).then_some(("window", "a window")));
        if let Some((axis, name)) = other {
            let message = format!("{tp} is all the control there is: {name} does not go with it");
            let help = format!("write {axis} = \"none\" in [scheme], or choose another transport");
            return Err(table.problem_at(axis, message).help(help));
        }
    }

    // "none" and the plain transport have nothing to set, so that a table of that name is as unknown as any other.
    let plain = |name: &str| ["none", "go-back-n"].contains(&name);
    let axes = [
        ("flow_control", &flow_controls, fc),
        ("congestion_control", &congestion_controls, cc),
        ("transport", &transports, tp),
        ("edge_control", &edges, edge_control.name()),
    ];
    for (axis, names, chosen) in axes {
        if let Some(name) = names.iter().find(|name| !plain(name) && **name != chosen && table.has(name)) {
            let message = format!("[scheme.{name}] sets parameters of {name}, which the scenario does not use");
            let help =
                format!("remove the table, or write {axis} = \"{name}\" in [scheme]; chosen are \"{fc}\" and \"{cc}\"");
            return Err(table.problem_at(name, message).help(help));
        }
    }
    if fc != "none" {
        fill(&mut table, fc, &mut *flow_control)?;
        suits(&mut table, fc, flow_control.check())?;
    }
    // A controller that counts packets from bytes must know their size: it follows the NIC's unless it was set.
    _ = congestion_control.set("packet", &Raw::Integer(nic.payload.0 as i64));
    if cc != "none" {
        fill(&mut table, cc, &mut *congestion_control)?;
        suits(&mut table, cc, congestion_control.check())?;
    }
    if !plain(tp) {
        fill(&mut table, tp, &mut *transport)?;
        suits(&mut table, tp, transport.check())?;
    }
    let edge = edge_control.name();
    if !plain(edge) {
        fill(&mut table, edge, &mut *edge_control)?;
        suits(&mut table, edge, edge_control.check())?;
    }
    table.finish()?;
    let congestion_control = edge_control.over(congestion_control);
    Ok(Scheme { flow_control, congestion_control, edge_control, transport, spread, window, window_rule })
}
