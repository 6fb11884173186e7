//! The paths between leaves, as ConWeave's simulator numbers them: a byte for the port of each switch on a path, the first in the lowest.

use engine::Time;
use fabric::id::NodeId;
use fabric::routing::{PortMap, Routing};
use fabric::topology::{Graph, Kind};
use std::collections::{BTreeMap, HashMap};

/// Most switches on a path before the last.
const MOST_HOPS: u32 = 4;

/// The paths of a fabric.
#[derive(Clone, Debug, Default)]
pub struct Paths {
    between: HashMap<(NodeId, NodeId), Vec<u32>>,
    round_trips: HashMap<(NodeId, NodeId), Time>,
}

impl Paths {
    /// All paths of a fabric that never changes; or why it has none that can be numbered.
    pub fn new(graph: &Graph, map: &PortMap) -> Result<Paths, String> {
        let up: Vec<bool> = graph.links.iter().map(|link| link.outages.is_empty()).collect();
        let routing = Routing::new(graph, map, &up);
        let mut leaves: BTreeMap<NodeId, NodeId> = BTreeMap::new();
        for host in graph.hosts() {
            let mut links = map.of(host.0).filter(|&port| up[map.link[port as usize] as usize]);
            let (Some(port), None) = (links.next(), links.next()) else {
                return Err(format!("host {host} has several links"));
            };
            let leaf = NodeId(map.node[map.peer[port as usize] as usize]);
            if graph.nodes[leaf.index()].kind == Kind::Host {
                return Err(format!("host {host} is joined to a host"));
            }
            leaves.entry(leaf).or_insert(host);
        }
        let mut paths = Paths::default();
        for (&last, &host) in &leaves {
            for &first in leaves.keys().filter(|&&first| first != last) {
                let mut walk = Walk { map, routing: &routing, leaves: &leaves, last, host, found: Vec::new() };
                walk.from(first, 0, 0)?;
                walk.found.sort_unstable();
                walk.found.dedup();
                if walk.found.is_empty() {
                    return Err(format!("there is no path from switch {first} to switch {last}"));
                }
                paths.between.insert((first, last), walk.found);
                let link = |port: u32| &graph.links[map.link[port as usize] as usize];
                let (mut node, mut time) = (first, Time::ZERO);
                while node != last
                    && let Some(&port) = routing.next_hops(node.0, host.0).first()
                {
                    time += link(port).delay + link(port).delay;
                    node = NodeId(map.node[map.peer[port as usize] as usize]);
                }
                paths.round_trips.insert((first, last), time);
            }
        }
        Ok(paths)
    }

    /// Those from one leaf to another, in ascending order.
    pub fn between(&self, first: NodeId, last: NodeId) -> &[u32] {
        self.between.get(&(first, last)).map_or(&[0], |paths| paths)
    }

    /// How long light takes from one leaf to another and back.
    pub fn round_trip(&self, first: NodeId, last: NodeId) -> Time {
        self.round_trips.get(&(first, last)).copied().unwrap_or_default()
    }
}

struct Walk<'a> {
    map: &'a PortMap,
    routing: &'a Routing,
    leaves: &'a BTreeMap<NodeId, NodeId>,
    last: NodeId,
    host: NodeId,
    found: Vec<u32>,
}

impl Walk<'_> {
    fn from(&mut self, node: NodeId, path: u32, hop: u32) -> Result<(), String> {
        let last = self.last;
        if hop == MOST_HOPS {
            return Err(format!("switch {last} is more than {MOST_HOPS} hops from another with hosts"));
        }
        let routing = self.routing;
        for &port in routing.next_hops(node.0, self.host.0) {
            let local = port - self.map.base[node.index()] + 1;
            if local > 255 {
                return Err(format!("switch {node} has more than 255 ports"));
            }
            let (next, path) =
                (NodeId(self.map.node[self.map.peer[port as usize] as usize]), path | local << (8 * hop));
            match next == last {
                true if hop == 0 => return Err(format!("switches {node} and {last} both have hosts and are joined")),
                true => self.found.push(path),
                false if self.leaves.contains_key(&next) => {
                    return Err(format!("switch {next} has hosts and lies between others that have"));
                }
                false => self.from(next, path, hop + 1)?,
            }
        }
        Ok(())
    }
}
