//! Chakra execution traces (MLCommons), as schedules in GOAL.
//!
//! A trace is a file for each rank: protocol buffers, each after its length, of which the first says the version and the others are nodes (`et_def.proto`). Only a few
//! fields of a node matter here, so that they are read from the wire format as it is: a number and a kind before each field, and whatever is not known
//! is passed over. That keeps the program free of a compiler for protocol buffers.

use crate::htsim::Imported;
use engine::Time;
use fabric::id::{ClassId, FlowId, NodeId};
use fabric::topology::{Graph, Shape, star::Star};
use files::problem::Problem;
use scenario::document::{quote, quoted};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Range;
use traffic::collective::{Cut, Operate, Operation, play};
use traffic::weave::{Party, Weave};
use traffic::{After, FlowRequest, MAX_FLOWS, MAX_SIZE, MAX_START, Names, Origin, Traffic, write_goal};

/// How an imported scenario begins.
pub const FROM: &str = "# From Chakra execution traces";

/// How many problems are told one by one.
const MOST_NAMED: usize = 20;

/// A file's name and content.
#[derive(Clone, Copy, Debug)]
pub struct File<'a> {
    /// What problems call it.
    pub name: &'a str,
    /// What is in it.
    pub bytes: &'a [u8],
}

/// A field of a message.
enum Field<'a> {
    Number(u64),
    Bytes(&'a [u8]),
    /// Of four or eight bytes: nothing that matters here.
    Other,
}

/// What is left of a message.
struct Wire<'a>(&'a [u8]);

impl<'a> Wire<'a> {
    fn varint(&mut self) -> Option<u64> {
        let mut value = 0u64;
        for place in 0..10 {
            let (&byte, rest) = self.0.split_first()?;
            self.0 = rest;
            value |= u64::from(byte & 0x7f).checked_shl(7 * place)?;
            if byte < 0x80 {
                return Some(value);
            }
        }
        None
    }

    fn take(&mut self, count: u64) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(usize::try_from(count).ok()?)?;
        self.0 = rest;
        Some(taken)
    }

    /// The next field and its number; `None` where the message is no message.
    fn field(&mut self) -> Option<(u64, Field<'a>)> {
        let key = self.varint()?;
        let field = match key & 7 {
            0 => Field::Number(self.varint()?),
            1 => self.take(8).map(|_| Field::Other)?,
            2 => {
                let length = self.varint()?;
                Field::Bytes(self.take(length)?)
            }
            5 => self.take(4).map(|_| Field::Other)?,
            _ => return None,
        };
        Some((key >> 3, field))
    }
}

/// What matters of a node.
#[derive(Clone, Debug, Default)]
struct Node {
    id: u64,
    name: String,
    kind: u64,
    deps: Vec<u64>,
    micros: u64,
    numbers: BTreeMap<String, u64>,
    /// The group of a collective, if it has a name.
    group: String,
}

impl Node {
    /// Whether it is the operator at the host that launches a kernel, and not the kernel, which is a node of its own and says what is sent. Converters of traces from
    /// PyTorch give both the same kind (`c10d::broadcast_` and `ncclKernel_Broadcast`).
    fn only_launches(&self) -> bool {
        let told = |name: &str| self.numbers.contains_key(name);
        let says = ["comm_type", "comm_size", "comm_src", "comm_dst"].into_iter().any(told);
        matches!(self.kind, SEND | RECEIVE | COLLECTIVE) && self.numbers.get("is_cpu_op") == Some(&1) && !says
    }
}

/// Numbers that stand one after the other, or one for itself.
fn numbers(field: &Field<'_>, all: &mut Vec<u64>) -> Option<()> {
    match field {
        Field::Number(number) => all.push(*number),
        Field::Bytes(bytes) => {
            let mut wire = Wire(bytes);
            while !wire.0.is_empty() {
                all.push(wire.varint()?);
            }
        }
        Field::Other => return None,
    }
    Some(())
}

/// An attribute: its name, and its number or text.
fn attribute(bytes: &[u8]) -> Option<(String, Option<u64>, String)> {
    let (mut name, mut number, mut text) = (String::new(), None, String::new());
    let mut wire = Wire(bytes);
    while !wire.0.is_empty() {
        match wire.field()? {
            (1, Field::Bytes(bytes)) => name = String::from_utf8_lossy(bytes).into_owned(),
            // Signed ones as they are.
            (7 | 9 | 11 | 13 | 27, Field::Number(value)) => number = Some(value),
            (15 | 17, Field::Number(value)) => number = Some((value >> 1) ^ (value & 1).wrapping_neg()),
            (29, Field::Bytes(bytes)) => text = String::from_utf8_lossy(bytes).into_owned(),
            _ => {}
        }
    }
    Some((name, number, text))
}

fn node(bytes: &[u8]) -> Option<Node> {
    let mut node = Node::default();
    let mut wire = Wire(bytes);
    while !wire.0.is_empty() {
        match wire.field()? {
            (1, Field::Number(id)) => node.id = id,
            (2, Field::Bytes(name)) => node.name = String::from_utf8_lossy(name).into_owned(),
            (3, Field::Number(kind)) => node.kind = kind,
            // Control dependencies (4) are callers, some of which converters leave out or make wait for themselves. Chakra's feeder does not look at them.
            (5, field) => numbers(&field, &mut node.deps)?,
            (7, Field::Number(micros)) => node.micros = micros,
            (10, Field::Bytes(bytes)) => match attribute(bytes)? {
                (name, _, text) if name == "pg_name" => node.group = text,
                (name, Some(number), _) => _ = node.numbers.insert(name, number),
                _ => {}
            },
            _ => {}
        }
    }
    Some(node)
}

/// The nodes of a file.
fn nodes(file: File<'_>) -> Result<Vec<Node>, Problem> {
    let mut wire = Wire(file.bytes);
    let mut all = Vec::new();
    let bad = |record: usize| {
        Problem::new(file.name, format!("record {record} is no message of a Chakra execution trace"))
            .help("give .et files of the project's own converters, one for each rank; those that are packed with gzip must be unpacked")
    };
    for record in 0.. {
        if wire.0.is_empty() {
            break;
        }
        let message = wire.varint().and_then(|length| wire.take(length)).ok_or_else(|| bad(record))?;
        // The first says the version.
        if record > 0 {
            all.push(node(message).ok_or_else(|| bad(record))?);
        }
    }
    match all.is_empty() {
        true => Err(Problem::new(file.name, "has no nodes").help("give execution traces that have some")),
        false => Ok(all),
    }
}

const SEND: u64 = 5;
const RECEIVE: u64 = 6;
const COLLECTIVE: u64 = 7;

/// What a collective is here, by its number in the traces.
fn operation(number: u64) -> Result<Operation, &'static str> {
    Ok(match number {
        0 => Operation::RingAllReduce,
        2 => Operation::AllGather,
        5 => Operation::Broadcast,
        6 => Operation::AllToAll,
        7 => Operation::ReduceScatter,
        1 => return Err("REDUCE"),
        3 => return Err("GATHER"),
        4 => return Err("SCATTER"),
        9 => return Err("BARRIER"),
        _ => return Err("a collective of another kind"),
    })
}

/// From which rank to which, and the tag.
type Channel = (usize, usize, u64);
/// A rank that takes part in a collective, the place of its node, and what it enters and leaves with.
type Member = (usize, usize, FlowId, FlowId);

/// Traces of all ranks, in the order of ranks, as a scenario called `stem` and its schedule.
pub fn import(files: &[File<'_>], stem: &str) -> Result<Imported, Problem> {
    let ranks: Vec<Vec<Node>> = files.iter().map(|&file| nodes(file)).collect::<Result<_, _>>()?;
    let count = ranks.len();
    if count < 2 {
        return Err(Problem::new(files.first().map_or("", |file| file.name), "a single rank sends nothing")
            .help("give the files of all ranks, in their order"));
    }
    let shape = Star { hosts: u32::try_from(count).unwrap_or(u32::MAX), ..Star::default() };
    let graph: Graph = shape.build().map_err(|error| Problem::new("--out", error.problem()).help(error.remedy()))?;
    let mut wrong: Vec<Problem> = Vec::new();
    let mut weave = Weave::default();
    let origin = Origin { seed: 0, number: 0, group: 0, class: ClassId(0) };
    // By rank and id: what it waits with, and what others wait for.
    let mut ids: HashMap<(usize, u64), (FlowId, FlowId)> = HashMap::new();
    // In order, so that what is written is the same every time.
    let mut sent: BTreeMap<Channel, Vec<(FlowId, u64, usize)>> = BTreeMap::new();
    // Channels of sends that were refused: their receives are not to blame.
    let mut refused: BTreeSet<Channel> = BTreeSet::new();
    let mut came: BTreeMap<Channel, Vec<(FlowId, usize, usize)>> = BTreeMap::new();
    let mut together: BTreeMap<(String, usize), Vec<Member>> = BTreeMap::new();
    let at = |rank: usize, place: usize, message: String, help: &str| {
        let node = &ranks[rank][place];
        let what = format!("record {} (node {}, {}): {message}", place + 1, node.id, quoted(&node.name));
        Problem::new(files[rank].name, what).help(help)
    };
    let host = |rank: usize| NodeId(rank as u32);
    let task_of = |weave: &mut Weave, rank: usize, place: usize| {
        let micros = ranks[rank][place].micros;
        let lasts = Time(micros.saturating_mul(1_000_000));
        if lasts > MAX_START {
            return Err(at(rank, place, format!("it lasts {micros} us"), "write a shorter time"));
        }
        let task = weave.task(host(rank), Time::ZERO, lasts, None);
        Ok((task, task))
    };
    for (rank, nodes) in ranks.iter().enumerate() {
        let mut turns: HashMap<&str, usize> = HashMap::new();
        for (place, node) in nodes.iter().enumerate() {
            let number = |name: &str| node.numbers.get(name).copied();
            let missing = |name: &str| at(rank, place, format!("{name} is missing"), "add the attribute");
            let size = || match number("comm_size") {
                Some(size) if size <= MAX_SIZE.0 => Ok(size.max(1)),
                Some(size) => Err(at(rank, place, format!("comm_size is {size}"), "write fewer bytes")),
                None => Err(missing("comm_size")),
            };
            let peer = |name: &str| match number(name) {
                Some(peer) if peer < count as u64 && peer != rank as u64 => Ok(peer as usize),
                Some(peer) => {
                    let message = format!("{name} is {peer}, and there are {count} ranks, of which this is {rank}");
                    Err(at(rank, place, message, "name another rank, and give the files of all"))
                }
                None => Err(missing(name)),
            };
            let made = match node.kind {
                _ if node.only_launches() => task_of(&mut weave, rank, place),
                SEND => peer("comm_dst").and_then(|to| {
                    let channel = (rank, to, number("comm_tag").unwrap_or(0));
                    let size = size().inspect_err(|_| _ = refused.insert(channel))?;
                    let flow = FlowId(weave.flows.len() as u32);
                    weave.flows.push(FlowRequest::new(host(rank), host(to), size, Time::ZERO));
                    weave.steps.push(0);
                    sent.entry(channel).or_default().push((flow, size, place));
                    Ok((flow, flow))
                }),
                RECEIVE => peer("comm_src").map(|from| {
                    let task = weave.task(host(rank), Time::ZERO, Time::ZERO, None);
                    let key = (from, rank, number("comm_tag").unwrap_or(0));
                    came.entry(key).or_default().push((task, rank, place));
                    (task, task)
                }),
                COLLECTIVE => {
                    let enter = weave.task(host(rank), Time::ZERO, Time::ZERO, None);
                    let leave = weave.task(host(rank), Time::ZERO, Time::ZERO, [enter]);
                    let turn = turns.entry(node.group.as_str()).or_default();
                    together.entry((node.group.clone(), *turn)).or_default().push((rank, place, enter, leave));
                    *turn += 1;
                    Ok((enter, leave))
                }
                _ => task_of(&mut weave, rank, place),
            };
            match made {
                Ok(made) if ids.insert((rank, node.id), made).is_some() => {
                    wrong.push(at(rank, place, "its id is there twice".into(), "give every node an id of its own"));
                }
                Ok(_) => {}
                Err(problem) => wrong.push(problem),
            }
        }
    }
    came.retain(|channel, _| !refused.contains(channel));
    sent.retain(|channel, _| !refused.contains(channel));
    for (key, receives) in &came {
        let messages = sent.get(key).map_or(&[][..], Vec::as_slice);
        for (turn, &(task, rank, place)) in receives.iter().enumerate() {
            match messages.get(turn) {
                Some(&(first, size, _)) => {
                    let own = ranks[rank][place].numbers.get("comm_size").copied();
                    if let Some(own) = own.filter(|&own| own != size) {
                        let message = format!("it receives {own} B, and rank {} sends it {size}", key.0);
                        wrong.push(at(rank, place, message, "write the same comm_size"));
                    }
                    weave.after.push(After { flow: task, first, gap: Time::ZERO });
                }
                None => {
                    let message = format!("rank {} sends no message with tag {} that this could receive", key.0, key.2);
                    wrong.push(at(rank, place, message, "add its send"));
                }
            }
        }
    }
    for ((from, to, tag), messages) in &sent {
        let taken = came.get(&(*from, *to, *tag)).map_or(0, Vec::len);
        for &(_, _, place) in messages.iter().skip(taken) {
            let message = format!("rank {to} receives no message with tag {tag} that this could be");
            wrong.push(at(*from, place, message, "add its receive"));
        }
    }
    // The messages of each collective, and the first of its nodes.
    let mut played: Vec<(Range<usize>, usize, usize)> = Vec::new();
    for ((group, turn), members) in &together {
        let (first_rank, first_place, ..) = members[0];
        let first = &ranks[first_rank][first_place];
        let number = |node: &Node, name: &str| node.numbers.get(name).copied();
        let operation = match number(first, "comm_type").map(operation) {
            Some(Ok(operation)) => operation,
            None => {
                let help = "add the attribute; or is_cpu_op, true, and no comm_size if the node only launches a kernel that is a node of its own";
                wrong.push(at(first_rank, first_place, "comm_type is missing".into(), help));
                continue;
            }
            Some(Err(name)) => {
                let help = "all-reduce, all-gather, broadcast, all-to-all and reduce-scatter are known; write others as sends and receives";
                wrong.push(at(first_rank, first_place, format!("{name} is not known"), help));
                continue;
            }
        };
        let Some(size) = number(first, "comm_size").filter(|size| (1..=MAX_SIZE.0).contains(size)) else {
            wrong.push(at(first_rank, first_place, "comm_size is missing, or none".into(), "add the attribute"));
            continue;
        };
        let unlike = members.iter().find(|(rank, place, ..)| {
            let node = &ranks[*rank][*place];
            ["comm_type", "comm_size"].iter().any(|name| number(node, name) != number(first, name))
        });
        if let Some(&(rank, place, ..)) = unlike {
            let message =
                format!("it is collective number {turn} of its group, and another than that of rank {first_rank}");
            wrong.push(at(
                rank,
                place,
                message,
                "let all ranks of a group have the same collectives in the same order",
            ));
            continue;
        }
        if members.len() < 2 || group.is_empty() && members.len() < count {
            let message = format!("{} of {count} ranks take part in it", members.len());
            wrong.push(at(first_rank, first_place, message, "give groups a pg_name, and the files of all ranks"));
            continue;
        }
        if (weave.flows.len() as u64).saturating_add(operation.messages(members.len() as u64, 1)) > MAX_FLOWS {
            wrong.push(at(
                first_rank,
                first_place,
                format!("there are more than {MAX_FLOWS} messages"),
                "cut the traces",
            ));
            break;
        }
        let hosts: Vec<NodeId> = members.iter().map(|(rank, ..)| host(*rank)).collect();
        let entry: Vec<FlowId> = members.iter().map(|(_, _, enter, _)| *enter).collect();
        let party = Party { hosts: &hosts, origin, start: Time::ZERO, entry: &entry, latency: Time::ZERO, step: 0 };
        let bytes = match operation {
            // What a rank keeps is not sent.
            Operation::AllToAll => (size - size / members.len() as u64).max(1),
            _ => size,
        };
        let what = Operate { operation, bytes, cut: Cut::default(), domain: 1, weights: &[] };
        let before = weave.flows.len();
        let received = play(&mut weave, &party, &what);
        played.push((before..weave.flows.len(), first_rank, first_place));
        for ((_, _, _, leave), received) in members.iter().zip(received) {
            let waits = received.into_iter().map(|first| After { flow: *leave, first, gap: Time::ZERO });
            weave.after.extend(waits);
        }
    }
    for (rank, nodes) in ranks.iter().enumerate() {
        for (place, node) in nodes.iter().enumerate() {
            let Some(&(enter, _)) = ids.get(&(rank, node.id)) else { continue };
            let mut deps = node.deps.clone();
            deps.sort_unstable();
            deps.dedup();
            for id in deps {
                match ids.get(&(rank, id)) {
                    Some(&(_, first)) => weave.after.push(After { flow: enter, first, gap: Time::ZERO }),
                    // Said already if the node is there and wrong.
                    None if nodes.iter().any(|node| node.id == id) => {}
                    None => {
                        let message = format!("it depends on node {id}, which is not there");
                        wrong.push(at(rank, place, message, "give the trace whole"));
                    }
                }
            }
        }
    }
    let Weave { flows, tasks, after, .. } = weave;
    let mut traffic = Traffic { flows, tasks, after, ..Traffic::default() };
    traffic.group("chakra");
    if wrong.is_empty() {
        if traffic.flows.is_empty() {
            wrong.push(Problem::new(files[0].name, "the ranks send nothing").help("give traces with messages"));
        } else if let Err((flow, fault)) = traffic.check_after(&Names::new(&graph)) {
            let help = "give traces whose nodes can all be done";
            let of_node = ranks.iter().enumerate().find_map(|(rank, nodes)| {
                let is = |node: &Node| {
                    ids.get(&(rank, node.id)).is_some_and(|&(enter, leave)| [enter, leave].contains(&flow))
                };
                nodes.iter().position(is).map(|place| (rank, place))
            });
            let of_collective =
                || played.iter().find(|(flows, ..)| flows.contains(&flow.index())).map(|one| (one.1, one.2));
            wrong.push(match of_node.or_else(of_collective) {
                Some((rank, place)) => at(rank, place, fault.message, help),
                None => Problem::new(files[0].name, fault.message).help(help),
            });
        }
    }
    match problems(wrong, files[0].name) {
        Some(problem) => Err(problem),
        None => schedule(FROM, &graph, &traffic, stem),
    }
}

/// Problems as one. Of very many, the first are told.
pub(crate) fn problems(mut wrong: Vec<Problem>, file: &str) -> Option<Problem> {
    if wrong.len() > MOST_NAMED {
        let more = wrong.len() - MOST_NAMED;
        wrong.truncate(MOST_NAMED);
        wrong.push(Problem::new(file, format!("and {more} more problems like these")));
    }
    Problem::all(wrong)
}

/// Flows of ranks as a scenario called `stem` on a star, and its schedule.
pub(crate) fn schedule(from: &str, graph: &Graph, traffic: &Traffic, stem: &str) -> Result<Imported, Problem> {
    let mut text = Vec::new();
    let refused = |error: &dyn std::fmt::Display| Problem::new("--out", error.to_string());
    write_goal(&mut text, graph, traffic).map_err(|error| refused(&error))?;
    let name = format!("{stem}.goal");
    let count = graph.hosts().count();
    let scenario = format!(
        "{from} of {count} ranks. Rank n is the n-th host of any fabric you write here.\nname = {}\n\n[topology]\nkind = \"star\"\nhosts = {count}\n\n[nic]\nqueues = \"destination\"\n\n[traffic]\ntrace = {}\n",
        quote(stem),
        quote(&name)
    );
    let flows = String::from_utf8(text).map_err(|error| refused(&error))?;
    Ok(Imported { scenario, flows, graph: None, notes: Vec::new() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn varint(mut value: u64) -> Vec<u8> {
        let mut bytes = Vec::new();
        while value >= 0x80 {
            bytes.push(value as u8 | 0x80);
            value >>= 7;
        }
        bytes.push(value as u8);
        bytes
    }

    fn number(field: u64, value: u64) -> Vec<u8> {
        [varint(field << 3), varint(value)].concat()
    }

    fn block(field: u64, bytes: &[u8]) -> Vec<u8> {
        [varint(field << 3 | 2), varint(bytes.len() as u64), bytes.to_vec()].concat()
    }

    /// A node with a duration and attributes.
    fn node(id: u64, kind: u64, deps: &[u64], micros: u64, attributes: &[(&str, u64)]) -> Vec<u8> {
        let mut bytes = [number(1, id), block(2, format!("n{id}").as_bytes()), number(3, kind)].concat();
        bytes.extend(block(5, &deps.iter().flat_map(|&dep| varint(dep)).collect::<Vec<_>>()));
        bytes.extend(number(7, micros));
        for (name, value) in attributes {
            // Sizes are int64, others int32, or bool; a text that nobody reads stands between.
            let field = match *name {
                "comm_size" => 9,
                "is_cpu_op" => 27,
                _ => 7,
            };
            let value = [block(1, name.as_bytes()), block(2, b"-"), number(field, *value)].concat();
            bytes.extend(block(10, &value));
        }
        bytes
    }

    fn file(nodes: &[Vec<u8>]) -> Vec<u8> {
        let version = block(1, b"0.0.4");
        let all = std::iter::once(&version).chain(nodes);
        all.flat_map(|message| [varint(message.len() as u64), message.clone()].concat()).collect()
    }

    fn imported(files: &[Vec<u8>]) -> Result<Imported, String> {
        let names: Vec<String> = (0..files.len()).map(|rank| format!("t.{rank}.et")).collect();
        let files: Vec<File<'_>> = names.iter().zip(files).map(|(name, bytes)| File { name, bytes }).collect();
        import(&files, "t").map_err(|problem| problem.to_string())
    }

    #[test]
    fn every_node_and_dependency_is_accounted_for() {
        let send = [("comm_size", 4096), ("comm_dst", 1), ("comm_tag", 3)];
        let receive = [("comm_size", 4096), ("comm_src", 0), ("comm_tag", 3)];
        let sum = [("comm_type", 0), ("comm_size", 10_000)];
        let one = file(&[node(1, 4, &[], 5, &[]), node(2, SEND, &[1], 0, &send), node(3, COLLECTIVE, &[2], 0, &sum)]);
        let two =
            file(&[node(7, RECEIVE, &[], 0, &receive), node(8, COLLECTIVE, &[7], 0, &sum), node(9, 4, &[8], 2, &[])]);
        let imported = imported(&[one, two]).unwrap();
        let graph = Star { hosts: 2, ..Star::default() }.build().unwrap();
        let traffic =
            traffic::read_goal(&imported.flows, &Names::new(&graph)).unwrap_or_else(|faults| panic!("{faults}"));
        let flat = traffic.without_tasks(1000).unwrap();
        // The message, and a ring of two in two steps, rank by rank.
        let sizes: Vec<(u32, u64)> = flat.flows.iter().map(|flow| (flow.src.0, flow.size)).collect();
        assert_eq!(sizes, [(0, 4096), (0, 5000), (0, 5000), (1, 5000), (1, 5000)]);
        assert_eq!(flat.flows[0].start, Time::from_us(5));
        let waits: Vec<(u32, u32)> = flat.after.iter().map(|wait| (wait.flow.0, wait.first.0)).collect();
        for pair in [(1, 0), (3, 0), (2, 3), (4, 1)] {
            assert!(waits.contains(&pair), "{pair:?} of {waits:?}");
        }
        let scenario = &imported.scenario;
        assert!(
            scenario.starts_with(FROM) && scenario.contains("hosts = 2") && scenario.contains("t.goal"),
            "{scenario}"
        );
    }

    #[test]
    fn an_operator_that_launches_a_kernel_takes_its_time_and_sends_nothing() {
        let rank = file(&[
            node(1, COLLECTIVE, &[], 85, &[("is_cpu_op", 1)]),
            node(2, COLLECTIVE, &[1], 28, &[("is_cpu_op", 0), ("comm_type", 5), ("comm_size", 500)]),
            node(3, SEND, &[2], 1, &[("is_cpu_op", 1)]),
        ]);
        let made = imported(&[rank.clone(), rank]).unwrap();
        let graph = Star { hosts: 2, ..Star::default() }.build().unwrap();
        let traffic = traffic::read_goal(&made.flows, &Names::new(&graph)).unwrap_or_else(|faults| panic!("{faults}"));
        let flat = traffic.without_tasks(1000).unwrap();
        assert_eq!(flat.flows.len(), 1);
        assert_eq!((flat.flows[0].size, flat.flows[0].start), (500, Time::from_us(85)));
        let says_nothing = file(&[node(1, COLLECTIVE, &[], 0, &[("is_cpu_op", 0)])]);
        let said = imported(&[says_nothing.clone(), says_nothing]).unwrap_err();
        assert!(said.contains("comm_type is missing") && said.contains("only launches a kernel"), "{said}");
    }

    #[test]
    fn callers_are_not_waited_for() {
        let mut bytes = node(1, COLLECTIVE, &[], 0, &[("comm_type", 0), ("comm_size", 10)]);
        bytes.extend(block(4, &[1, 3]));
        let rank = file(&[bytes]);
        assert!(imported(&[rank.clone(), rank]).is_ok());
    }

    #[test]
    fn a_bad_record_is_named() {
        let quiet = || file(&[node(1, 4, &[], 1, &[])]);
        let receives = || file(&[node(1, RECEIVE, &[], 0, &[("comm_src", 0)])]);
        let refused = |nodes: &[Vec<u8>]| imported(&[file(nodes), quiet()]).unwrap_err();
        for (nodes, words) in [
            (
                vec![node(1, SEND, &[], 0, &[("comm_dst", 1)])],
                "t.0.et: record 1 (node 1, \"n1\"): comm_size is missing",
            ),
            (vec![node(1, SEND, &[], 0, &[("comm_size", 5), ("comm_dst", 2)])], "comm_dst is 2, and there are 2 ranks"),
            (
                vec![node(1, SEND, &[], 0, &[("comm_size", 5), ("comm_dst", 1)])],
                "record 1 (node 1, \"n1\"): rank 1 receives no message with tag 0",
            ),
            (vec![node(1, RECEIVE, &[], 0, &[("comm_src", 1)])], "rank 1 sends no message with tag 0"),
            (vec![node(1, 4, &[9], 0, &[])], "it depends on node 9, which is not there"),
            (
                vec![node(1, 4, &[], 0, &[]), node(1, 4, &[], 0, &[])],
                "record 2 (node 1, \"n1\"): its id is there twice",
            ),
            (vec![node(1, COLLECTIVE, &[], 0, &[("comm_type", 9), ("comm_size", 1)])], "BARRIER is not known"),
            (vec![node(1, COLLECTIVE, &[], 0, &[("comm_size", 1)])], "comm_type is missing"),
            (vec![node(1, COLLECTIVE, &[], 0, &[("comm_type", 0), ("comm_size", 1)])], "1 of 2 ranks take part"),
            (vec![node(1, 4, &[], 0, &[])], "the ranks send nothing"),
            ((1..=30).map(|id| node(id, 4, &[99], 0, &[])).collect(), "and 10 more problems"),
        ] {
            let said = refused(&nodes);
            assert!(said.contains(words), "{words} is not in {said}");
        }
        let send = |deps: &[u64]| node(1, SEND, deps, 0, &[("comm_size", 5), ("comm_dst", 1)]);
        let cycle = file(&[send(&[2]), node(2, 4, &[3], 0, &[]), node(3, 4, &[1], 0, &[])]);
        let said = imported(&[cycle, receives()]).unwrap_err();
        assert!(said.contains("t.0.et: record 1 (node 1, \"n1\"): 3 flows wait for one another in a cycle"), "{said}");
        let itself = file(&[send(&[]), node(4, 4, &[4], 0, &[])]);
        let said = imported(&[itself, receives()]).unwrap_err();
        assert!(said.contains("t.0.et: record 2 (node 4, \"n4\"): the flow waits for itself"), "{said}");
        // A receive is not to blame for its send.
        let large = file(&[node(1, SEND, &[], 0, &[("comm_size", 1 << 60), ("comm_dst", 1)])]);
        let said = imported(&[large, receives()]).unwrap_err();
        assert!(said.contains("comm_size is 1152921504606846976") && !said.contains("t.1.et"), "{said}");
        let crossed = [0u64, 1].map(|own| {
            file(&[
                node(1, SEND, &[2], 0, &[("comm_size", 5), ("comm_dst", 1 - own)]),
                node(2, RECEIVE, &[], 0, &[("comm_src", 1 - own)]),
            ])
        });
        let said = imported(&crossed).unwrap_err();
        assert!(said.contains("t.0.et: record 1 (node 1, \"n1\"): 4 flows wait for one another"), "{said}");
        let mut cut = quiet();
        cut.pop();
        assert!(imported(&[quiet(), cut]).unwrap_err().contains("t.1.et: record 1 is no message"));
        assert!(imported(&[quiet()]).unwrap_err().contains("a single rank"));
        assert!(imported(&[vec![0x1f, 0x8b, 8], quiet()]).unwrap_err().contains("record 0"));
    }
}
