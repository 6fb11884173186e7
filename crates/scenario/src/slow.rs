//! Hosts that take packets from their NICs more slowly than their links bring them: the tables `[[slow]]`.

use super::settings::MAX_MEMORY;
use super::wiring;
use crate::document::Table;
use engine::{Bytes, Rate, Time};
use fabric::routing::PortMap;
use fabric::topology::{Graph, Kind};
use files::problem::Problem;
use traffic::{MAX_START, Names};

/// A slow host as its table has it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Slow {
    /// The host.
    pub host: u32,
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

/// Reads all `[[slow]]`.
pub(super) fn read(root: &mut Table<'_>, graph: &Graph) -> Result<Vec<Slow>, Problem> {
    let (names, map) = (Names::new(graph), PortMap::new(graph));
    let mut all: Vec<Slow> = Vec::new();
    for mut table in root.tables("slow")? {
        let Some(item) = table.item("host") else { return Err(table.missing("host", "a host, such as \"h0\"")) };
        let host = wiring::node(&item, &names)?;
        let name = &graph.nodes[host as usize].name;
        if graph.nodes[host as usize].kind != Kind::Host {
            return Err(item.problem(format!("{name} is a switch")).help("name a host, such as \"h0\""));
        }
        if graph.forwarding && map.of(host).len() > 1 {
            let problem =
                item.problem(format!("{name} forwards for others, and a pause of its NIC would stop them too"));
            return Err(problem.help("name a host of a fabric where hosts do not forward"));
        }
        if all.iter().any(|slow| slow.host == host) {
            return Err(item.problem(format!("{name} has a [[slow]] already")).help("write one for each host"));
        }
        let rate: Rate = table.required("rate")?;
        if !(Rate::from_mbps(1)..=Rate::from_gbps(100_000)).contains(&rate) {
            return Err(table.problem_at("rate", format!("rate is {rate}")).help("write \"1Mbps\" to \"100Tbps\""));
        }
        let from: Time = table.optional("from")?.unwrap_or_default();
        let until: Time = table.optional("until")?.unwrap_or(MAX_START);
        if from >= until || until > MAX_START {
            let help = format!("write a time after from, up to {MAX_START}, or leave it out");
            return Err(table.problem_at("until", "until is out of range").help(help));
        }
        let buffer = table.optional("buffer")?.unwrap_or(Bytes(1_000_000));
        if !(Bytes(1)..=MAX_MEMORY).contains(&buffer) {
            let help = format!("write a size above zero, up to {MAX_MEMORY}");
            return Err(table.problem_at("buffer", format!("buffer is {buffer}")).help(help));
        }
        let xoff: Option<Bytes> = table.optional("xoff")?.flatten();
        if xoff.is_some_and(|xoff| xoff > buffer) {
            let help = format!("write a size up to buffer, which is \"{buffer}\"");
            return Err(table.problem_at("xoff", "xoff is above buffer").help(help));
        }
        table.finish()?;
        all.push(Slow { host, rate, from, until, buffer, xoff });
    }
    Ok(all)
}
