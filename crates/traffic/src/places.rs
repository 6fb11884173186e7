//! Where hosts are: their racks, their sites, and what the links around them carry.

use fabric::id::NodeId;
use fabric::topology::{Graph, Kind};

/// The places of a graph's hosts.
///
/// - A host's *rack* is the switch of its first link, with all hosts that share it.
/// - *Sites* are the connected components without the links between switches of the highest tier. Two leaf-spine
///   sites with a gateway each are two; a leaf-spine fabric or a fat-tree is one.
/// - The *core* is all links by which switches with hosts reach other switches. Its rate is the sum over these switches of what each can send
///   out: a link between two of them counts for both.
/// - A link of a host counts for its *rate* unless it ends at a switch that leads to no other while another of its links does: links to a scale-up switch
///   are no part of the network that a load is a share of.
#[derive(Clone, Debug)]
pub struct Places<'a> {
    graph: &'a Graph,
    hosts: Vec<NodeId>,
    /// By node; of hosts only.
    rack: Vec<u32>,
    site: Vec<u32>,
    /// By node: bits per second of a host's links.
    rate: Vec<f64>,
    core: f64,
    sites: u32,
    /// By node: the switches of a host.
    switches: Vec<Vec<u32>>,
}

impl<'a> Places<'a> {
    /// Looks at a graph in which every host has a link.
    pub fn new(graph: &'a Graph) -> Places<'a> {
        let nodes = graph.nodes.len();
        let kind = |node: NodeId| graph[node].kind;
        let ends =
            || graph.links.iter().flat_map(|link| [(link.a, link.b, link.rates[0]), (link.b, link.a, link.rates[1])]);
        let (mut has_hosts, mut leads_on) = (vec![false; nodes], vec![false; nodes]);
        let mut switches: Vec<Vec<u32>> = vec![Vec::new(); nodes];
        for (node, peer, _) in ends().filter(|&(_, peer, _)| kind(peer) == Kind::Switch) {
            match kind(node) {
                Kind::Host => {
                    has_hosts[peer.index()] = true;
                    switches[node.index()].push(peer.0);
                }
                Kind::Switch => leads_on[node.index()] = true,
            }
        }
        // A host without a switch is a rack of its own.
        let rack = (0..nodes as u32).map(|node| switches[node as usize].first().copied().unwrap_or(node)).collect();
        let mut rate = vec![0.0; nodes];
        for (node, peer, speed) in ends().filter(|&(node, ..)| kind(node) == Kind::Host) {
            let aside = kind(peer) == Kind::Switch && !leads_on[peer.index()];
            if !aside || !switches[node.index()].iter().any(|&switch| leads_on[switch as usize]) {
                rate[node.index()] += speed.0 as f64;
            }
        }
        let up = ends().filter(|&(from, to, _)| has_hosts[from.index()] && kind(to) == Kind::Switch);
        let core = up.map(|(_, _, rate)| rate.0 as f64).sum();

        let tier = |node: NodeId| (kind(node) == Kind::Switch).then(|| graph[node].tier);
        let top = (0..nodes as u32).map(NodeId).filter_map(tier).max();
        let mut site: Vec<u32> = (0..nodes as u32).collect();
        for link in graph.links.iter().filter(|link| top.is_none() || tier(link.a) != top || tier(link.b) != top) {
            let (a, b) = (root(&mut site, link.a.0), root(&mut site, link.b.0));
            site[a.max(b) as usize] = a.min(b);
        }
        let hosts: Vec<NodeId> = graph.hosts().collect();
        for node in 0..nodes as u32 {
            site[node as usize] = root(&mut site, node);
        }
        let mut known: Vec<u32> = hosts.iter().map(|host| site[host.index()]).collect();
        known.sort_unstable();
        known.dedup();
        Places { graph, rack, site, rate, core, sites: known.len() as u32, hosts, switches }
    }

    /// All hosts, in order.
    pub fn hosts(&self) -> &[NodeId] {
        &self.hosts
    }

    /// What a host is called.
    pub fn name(&self, host: NodeId) -> &'a str {
        &self.graph[host].name
    }

    /// A number that a host shares with those of its rack.
    pub fn rack(&self, host: NodeId) -> u32 {
        self.rack[host.index()]
    }

    /// Whether what two hosts send each other passes the core: they have no switch in common.
    pub fn apart(&self, one: NodeId, other: NodeId) -> bool {
        let of_other = &self.switches[other.index()];
        !self.switches[one.index()].iter().any(|switch| of_other.contains(switch))
    }

    /// A number that a host shares with those of its site.
    pub fn site(&self, host: NodeId) -> u32 {
        self.site[host.index()]
    }

    /// How many sites have hosts.
    pub fn sites(&self) -> u32 {
        self.sites
    }

    /// Bits per second of the links of one host into the network.
    pub fn rate(&self, host: NodeId) -> f64 {
        self.rate[host.index()]
    }

    /// Bits per second of the links of hosts.
    pub fn rate_of(&self, hosts: &[NodeId]) -> f64 {
        hosts.iter().map(|&host| self.rate(host)).sum()
    }

    /// Bits per second of the core; 0 where there is none.
    pub fn core(&self) -> f64 {
        self.core
    }
}

/// The representative of a node's set; sets are trees of links to a smaller node.
fn root(parent: &mut [u32], mut node: u32) -> u32 {
    while parent[node as usize] != node {
        parent[node as usize] = parent[parent[node as usize] as usize];
        node = parent[node as usize];
    }
    node
}

#[cfg(test)]
mod tests {
    use super::*;
    use engine::Raw;

    fn graph(shape: &str, parameters: &[(&str, i64)]) -> Graph {
        let mut shape = fabric::topology::shape(shape).unwrap();
        for (name, value) in parameters {
            shape.set(name, &Raw::Integer(*value)).unwrap().unwrap();
        }
        shape.build().unwrap()
    }

    #[test]
    fn racks_are_the_hosts_of_a_switch() {
        let graph = graph("leaf-spine", &[("leaves", 3), ("hosts_per_leaf", 4), ("spines", 2)]);
        let places = Places::new(&graph);
        let racks: Vec<u32> = places.hosts().iter().map(|&host| places.rack(host)).collect();
        assert_eq!(racks, [12, 12, 12, 12, 13, 13, 13, 13, 14, 14, 14, 14]);
        assert_eq!((places.sites(), places.name(NodeId(3))), (1, "h3"));
        assert_eq!(places.rate_of(places.hosts()), 12.0 * 100e9);
        assert_eq!(places.core(), 6.0 * 100e9);
    }

    #[test]
    fn sites_are_what_the_links_between_gateways_join() {
        let graph = graph("two-sites", &[("leaves", 2), ("hosts_per_leaf", 2), ("spines", 3)]);
        let places = Places::new(&graph);
        let sites: Vec<u32> = places.hosts().iter().map(|&host| places.site(host)).collect();
        assert_eq!(sites, [0, 0, 0, 0, 4, 4, 4, 4]);
        assert_eq!(places.sites(), 2);
        assert_eq!(places.core(), 12.0 * 10e9);
    }

    #[test]
    fn every_shape_has_the_sites_and_the_core_that_people_expect() {
        let of = |shape| {
            let graph = graph(shape, &[]);
            let places = Places::new(&graph);
            (places.sites(), places.core() / 100e9, places.rate(NodeId(0)) / 100e9)
        };
        assert_eq!(of("fat-tree"), (1, 128.0, 1.0));
        // Each of two switches has one link out.
        assert_eq!(of("dumbbell"), (2, 2.0, 1.0));
        assert_eq!(of("chain"), (4, 6.0, 1.0));
        assert_eq!(of("star"), (1, 0.0, 1.0));
        assert_eq!(of("bcube"), (1, 0.0, 2.0));
        // Eight rail switches with eight links of 800 Gbps; what a host has to its server's scale-up switch is no part of it.
        assert_eq!(of("rail-optimised"), (1, 512.0, 4.0));
    }

    #[test]
    fn hosts_with_a_switch_in_common_do_without_the_core() {
        let rails = graph("rail-optimised", &[("servers", 2), ("rails", 4), ("spines", 2)]);
        let places = Places::new(&rails);
        // h0 is with h1 to h3 in a server, and with h4 on a rail.
        let apart: Vec<u32> = (1..8).filter(|&host| places.apart(NodeId(0), NodeId(host))).collect();
        assert_eq!(apart, [5, 6, 7]);
        assert_eq!(places.core(), 4.0 * 2.0 * 800e9);
        // Both switches of a rack lead on, and so do the leaves of all planes.
        let tors = graph("dual-tor", &[("racks", 3), ("hosts_per_rack", 4), ("spines", 2)]);
        let places = Places::new(&tors);
        assert_eq!(places.core(), 3.0 * 2.0 * 2.0 * tors.links.last().unwrap().rates[0].0 as f64);
        assert_eq!(places.rate(NodeId(0)), 2.0 * tors.links[0].rates[0].0 as f64);
        assert!(!places.apart(NodeId(0), NodeId(3)) && places.apart(NodeId(0), NodeId(4)));
        let planes = graph("multi-plane", &[("planes", 4), ("leaves", 2), ("hosts_per_leaf", 3), ("spines", 2)]);
        let places = Places::new(&planes);
        assert_eq!(places.core(), 4.0 * 2.0 * 2.0 * planes.links.last().unwrap().rates[0].0 as f64);
    }
}
