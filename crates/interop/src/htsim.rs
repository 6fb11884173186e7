//! Files of the htsim simulator: connection matrices (`.cm`) and fat-tree topologies (`.topo`), as scenarios.
//!
//! A matrix lists connections, one in each line, after a head that counts them:
//!
//! ```text
//! Nodes 16
//! Connections 2
//! Triggers 1
//! 0->15 id 1 start 0 size 2000000 recv_done_trigger 1
//! 15->3 id 2 trigger 1 size 1000000
//! trigger id 1 oneshot
//! ```
//!
//! Sizes are in bytes and starts in picoseconds. A connection with `trigger` starts when that trigger fires: a `oneshot` when the
//! one connection that names it is done, a `barrier` when all `count` are. With `send_done_trigger` that is when the sender knows, with
//! `recv_done_trigger` when the receiver has everything. That is what flows that wait can say, as long as the host that waits is
//! the one that knows; what they cannot say is refused.

pub mod command;
mod matrix;
pub mod plan;
pub mod printed;
mod tree;

pub use matrix::{Flow, Starts};

use engine::Bytes;
use files::problem::Problem;
use matrix::Matrix;
use scenario::document::{quote, quoted};
use scenario::resolve::resolve;
use scenario::{Beside, Scenario, SwitchSettings};
use std::fmt::Write;
use tree::{Tier, Tree, in_ns};

/// The most hosts, which is also more than htsim has room for.
const MOST_HOSTS: u64 = if cfg!(fuzzing) { 400 } else { 1 << 20 };

/// The fastest link of a scenario.
const MOST_GBPS: u64 = 100_000;

/// The longest delay of a link and of a switch, a second.
const MOST_NS: u64 = 1_000_000_000;

/// How often the switches' memory is doubled until it holds what lossless links need.
const DOUBLINGS: u32 = 20;

/// A file's name and text.
#[derive(Clone, Copy, Debug)]
pub struct Text<'a> {
    /// What problems call it.
    pub name: &'a str,
    /// What is in it.
    pub text: &'a str,
}

/// What files of htsim become.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Imported {
    /// The scenario.
    pub scenario: String,
    /// The flows, which the scenario names `NAME.csv`.
    pub flows: String,
    /// The graph, if there is one, which the scenario names `NAME.graph.toml`.
    pub graph: Option<String>,
    /// What was left out, for people.
    pub notes: Vec<String>,
}

/// A line with something in it.
struct Line<'a> {
    file: &'a str,
    number: usize,
    text: &'a str,
}

impl<'a> Line<'a> {
    /// The lines of a file that are neither blank nor comments.
    fn all(file: Text<'a>) -> impl Iterator<Item = Line<'a>> {
        let line = |(at, text)| Line { file: file.name, number: at + 1, text };
        let has_content = |line: &Line<'_>| !line.text.trim().is_empty() && !line.text.trim_start().starts_with('#');
        file.text.lines().enumerate().map(line).filter(has_content)
    }

    fn words(&self) -> Vec<&'a str> {
        self.text.split_whitespace().collect()
    }

    /// A problem at a word of the line, or at its beginning.
    fn problem(&self, word: &str, message: impl Into<String>, help: impl Into<String>) -> Problem {
        let column = self.text.find(word).map_or(1, |at| self.text[..at].chars().count() + 1);
        Problem::new(self.file, message).at(self.number, column, self.text).help(help)
    }

    /// The whole number after a word.
    fn number(&self, word: &str, value: Option<&&str>) -> Result<u64, Problem> {
        let found = value.map_or("nothing".into(), |value| quoted(value));
        let message = format!("{word}: expected a whole number, found {found}");
        let help = format!("write {word} and a number");
        value.and_then(|value| value.parse().ok()).ok_or_else(|| self.problem(value.unwrap_or(&word), message, help))
    }
}

/// How a scenario that comes from here begins.
pub const FROM: &str = "# From htsim's ";

/// Turns a connection matrix, and a topology if there is one, into a scenario whose files begin with `stem`.
///
/// What comes out can be run: it is checked as a scenario here, and what is wrong is put down to a line of these files.
pub fn import(matrix: Text<'_>, topology: Option<Text<'_>>, stem: &str) -> Result<Imported, Problem> {
    import_from(matrix, Starts::Picoseconds, topology, stem)
}

/// The same of a matrix whose starts are counted so.
pub fn import_from(
    matrix: Text<'_>,
    starts: Starts,
    topology: Option<Text<'_>>,
    stem: &str,
) -> Result<Imported, Problem> {
    let read = Matrix::read(matrix, starts)?;
    let mut notes = read.notes(matrix.name);
    let (mut fabric, mut pipeline, mut graph) = (String::new(), None, None);
    let mut source = format!("{FROM}{}", quoted(matrix.name));
    let as_graph = |tree: Tree| {
        let path = quote(&format!("{stem}.graph.toml"));
        (format!("[topology]\nkind = \"file\"\npath = {path}\n"), Some(tree.graph()))
    };
    match topology {
        Some(file) => {
            let mut tree = Tree::read(file)?;
            if read.nodes > tree.nodes {
                let message = format!("has {} nodes, but {} has {}", read.nodes, file.name, tree.nodes);
                return Err(Problem::new(matrix.name, message).help("give the topology that the matrix was made for"));
            }
            read.fail(&mut tree)?;
            let _ = write!(source, " and {}", quoted(file.name));
            pipeline = Some(tree.tiers[0].switch_latency).filter(|latency| *latency > 0);
            if tree.queues {
                notes.push(format!(
                    "{}: Queue_Up and Queue_Down are left out: switches here share one memory; set switch.buffer",
                    file.name
                ));
            }
            match tree.tiers.len() {
                2 => fabric = tree.leaf_spine(),
                _ => (fabric, graph) = as_graph(tree),
            }
        }
        None => {
            let k = (1..=160u64).map(|half| 2 * half).find(|k| k * k * k / 4 == read.nodes);
            let Some(k) = k else {
                let message = format!("{} nodes are not a fat tree of k-port switches, which has k³/4", read.nodes);
                return Err(Problem::new(matrix.name, message).help("give the topology, too, with --topo"));
            };
            notes.push(format!("no topology was given: a fat tree of {k}-port switches with 100Gbps and 1us links"));
            if read.failures.is_empty() {
                let _ = writeln!(fabric, "[topology]\nkind = \"fat-tree\"\nk = {k}");
            } else {
                let tree = Tree::regular(read.nodes, 3, Tier::of(100_000, 1_000_000, 0));
                let mut tree = tree.map_err(|(message, help)| Problem::new(matrix.name, message).help(help))?;
                read.fail(&mut tree)?;
                (fabric, graph) = as_graph(tree);
            }
        }
    }
    let messages = read.connections.iter().any(|connection| connection.message);
    if messages {
        notes.push(
            "messages to the same host go one after the other (nic.queues), each with a window of its own".into(),
        );
    }
    let trace = format!("{stem}.csv");
    let scenario = |buffer: Option<Bytes>| {
        let mut text = format!("{source}.\nname = {}\n\n{fabric}", quote(stem));
        if pipeline.is_some() || buffer.is_some() {
            text += "\n[switch]\n";
        }
        let _ = pipeline.map_or(Ok(()), |latency| writeln!(text, "pipeline = \"{}\"", in_ns(latency)));
        let _ = buffer.map_or(Ok(()), |buffer| writeln!(text, "buffer = \"{buffer}\""));
        text += if messages { "\n[nic]\nqueues = \"destination\"\n" } else { "" };
        // A matrix says which flows there are: the seed is left to say which paths they take.
        text += "\n[scheme]\nsalt = \"seed\"\n";
        let _ = writeln!(text, "\n[traffic]\ntrace = {}", quote(&trace));
        text
    };
    let flows = read.flows(false)?;
    let (list, flows) = (&flows, matrix::trace(&flows));
    let graph_name = format!("{stem}.graph.toml");
    let mut files = vec![(trace.as_str(), flows.as_str())];
    files.extend(graph.as_ref().map(|graph| (graph_name.as_str(), graph.as_str())));
    let check = |text: &str| Scenario::parse_beside(stem, text, Beside::Texts(&files), &[]).and_then(resolve).map(drop);

    let mut text = scenario(None);
    let mut found = check(&text);
    let usual = SwitchSettings::default().buffer;
    for doubling in 1..=DOUBLINGS {
        // The files say nothing of a shared memory, so it is made as large as it must be.
        if !found.as_ref().is_err_and(|problem| problem.key.as_deref() == Some("switch.buffer")) {
            break;
        }
        let buffer = Bytes(usual.0 << doubling);
        text = scenario(Some(buffer));
        found = check(&text);
        if found.is_ok() {
            notes.push(format!("switch.buffer is {buffer}: {usual} would not hold the headroom of lossless links"));
        }
    }
    found.map_err(|problem| read.blame(&problem, list, &trace, topology.unwrap_or(matrix).name))?;
    Ok(Imported { scenario: text, flows, graph, notes })
}
