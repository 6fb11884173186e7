//! Hosts that take packets from their NICs more slowly than their links bring them: the tables `[[slow]]`.

use super::settings::{MAX_MEMORY, MAX_RATE, MIN_RATE};
use super::wiring;
use crate::declared::{Key, Section};
use crate::document::Table;
use crate::scenario::Problems;
use engine::{Bytes, Rate, Time, Value};
use fabric::id::NodeId;
use fabric::routing::PortMap;
use fabric::topology::{Graph, Kind};
use files::problem::{Cause, Problem};
use std::sync::LazyLock;
use traffic::{MAX_START, Names};

/// A slow host as its table has it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Slow {
    /// The host.
    pub host: NodeId,
    /// How fast it takes packets.
    pub rate: Rate,
    /// Since when.
    pub from: Time,
    /// Until when.
    pub until: Time,
    /// What its NIC can keep.
    pub buffer: Bytes,
    /// With more than this the NIC pauses its switch; `None` for as late as it can without losing anything.
    pub xoff: Option<Bytes>,
}

/// `[[slow]]`.
pub(crate) static SLOW: LazyLock<Section> = LazyLock::new(|| {
    let keys = vec![
        Key::new("host", wiring::NodeRef::kind(), "The host.").needed(),
        Key::within::<Rate>("rate", MIN_RATE..=MAX_RATE, "How fast it takes packets, headers included.").needed(),
        Key::of::<Time>("from", "Since when.").or(Time::ZERO),
        Key::of::<Time>("until", "Until when; from then on it is as fast as its link.").otherwise("never"),
        Key::within::<Bytes>("buffer", Bytes(1)..=MAX_MEMORY, "What the NIC can keep.").or(BUFFER),
        Key::of::<Option<Bytes>>(
            "xoff",
            "With more than this it pauses its switch, and with two packets less it lets it go on. Auto: as late as it can be \
             without losing anything.",
        )
        .or(None::<Bytes>),
    ];
    Section::many("slow", "A host that takes data packets from its NIC more slowly than its link brings them.", keys)
});

/// What a NIC can keep if nothing is said.
const BUFFER: Bytes = Bytes(1_000_000);

/// Reads all `[[slow]]`.
pub(super) fn read(root: &mut Table<'_>, graph: &Graph) -> Result<Vec<Slow>, Problem> {
    let (names, map) = (Names::new(graph), PortMap::new(graph));
    let (mut all, mut wrong): (Vec<Slow>, _) = (Vec::new(), Problems::default());
    for table in root.tables("slow")? {
        let one = read_one(table, graph, &names, &map, &all);
        all.extend(wrong.keep(one));
    }
    wrong.or(all)
}

/// Reads one of them; `all` are those before it.
fn read_one(
    mut table: Table<'_>,
    graph: &Graph,
    names: &Names<'_>,
    map: &PortMap,
    all: &[Slow],
) -> Result<Slow, Problem> {
    table.takes(&SLOW);
    let mut wrong = Problems::default();
    let host = wrong.keep(read_host(&mut table, graph, names, map, all));
    let rate: Option<Rate> = wrong.keep(table.required("rate"));
    let from: Option<Time> = wrong.keep(table.optional("from")).map(Option::unwrap_or_default);
    let until: Option<Time> = wrong.keep(table.optional("until")).map(|until| until.unwrap_or(MAX_START));
    if let (Some(from), Some(until)) = (from, until)
        && (from >= until || until > MAX_START)
    {
        let help = format!("write a time after from, up to {MAX_START}, or leave it out");
        wrong.keep::<()>(Err(table.problem_at("until", "until is out of range").help(help)));
    }
    let buffer: Option<Bytes> = wrong.keep(table.optional("buffer")).map(|buffer| buffer.unwrap_or(BUFFER));
    let xoff: Option<Bytes> = wrong.keep(table.optional::<Option<Bytes>>("xoff")).flatten().flatten();
    if let Some((xoff, buffer)) = xoff.zip(buffer).filter(|(xoff, buffer)| xoff > buffer) {
        let help = format!("write a size up to buffer, which is \"{buffer}\"");
        wrong.keep::<()>(Err(table.problem_at("xoff", format!("xoff is {xoff}, above buffer")).help(help)));
    }
    let (Some(host), Some(rate), Some(from), Some(until), Some(buffer)) = (host, rate, from, until, buffer) else {
        return wrong.or(()).and(Err(table.problem("cannot be read")));
    };
    wrong.keep(table.finish());
    wrong.or(Slow { host, rate, from, until, buffer, xoff })
}

/// The host of one of them.
fn read_host(
    table: &mut Table<'_>,
    graph: &Graph,
    names: &Names<'_>,
    map: &PortMap,
    all: &[Slow],
) -> Result<NodeId, Problem> {
    let Some(item) = table.item("host") else { return Err(table.missing("host", "a host, such as \"h0\"")) };
    let host = wiring::node(&item, names)?;
    let name = &graph[host].name;
    let unsuited = |message: String| item.problem(message).cause(Cause::Fabric);
    if graph[host].kind != Kind::Host {
        return Err(unsuited(format!("{name} is a switch")).help("name a host, such as \"h0\""));
    }
    if graph.forwarding && map.of(host.0).len() > 1 {
        let problem = unsuited(format!("{name} forwards for others, and a pause of its NIC would stop them too"));
        return Err(problem.help("name a host of a fabric where hosts do not forward"));
    }
    if all.iter().any(|slow| slow.host == host) {
        return Err(item.problem(format!("{name} has a [[slow]] already")).help("write one for each host"));
    }
    Ok(host)
}
