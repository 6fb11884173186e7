//! Two tiers of switches: every leaf is joined with every spine.

use engine::{Rate, Time};

use super::{Graph, Kind, Shape, ShapeError, Size, Wire, at_least, product, sum};

engine::parameters! {
    /// Two tiers of switches: every leaf is joined with every spine.
    ///
    /// Hosts are numbered first, leaves next, spines last. Links are first those of the hosts, in host order, then
    /// leaf by leaf those to every spine. The field's topology files number them like that. The default is the
    /// T1 fabric of Goyal et al. (NSDI 2022), 128 hosts and oversubscribed 2:1.
    pub struct LeafSpine {
        /// Leaf switches.
        leaves: u32 = 8,
        /// Hosts on each leaf.
        hosts_per_leaf: u32 = 16,
        /// Spine switches.
        spines: u32 = 8,
        /// Parallel links between a leaf and a spine.
        links_per_pair: u32 = 1,
        /// Rate of the links between hosts and leaves.
        host_rate: Rate = Rate::from_gbps(100),
        /// Propagation delay of the links between hosts and leaves.
        host_delay: Time = Time::from_us(1),
        /// Rate of the links between leaves and spines.
        uplink_rate: Rate = Rate::from_gbps(100),
        /// Propagation delay of the links between leaves and spines.
        uplink_delay: Time = Time::from_us(1),
    }
}

impl Shape for LeafSpine {
    fn name(&self) -> &'static str {
        "leaf-spine"
    }

    fn about(&self) -> &'static str {
        "Hosts on leaf switches, and every leaf joined with every spine switch."
    }

    fn build(&self) -> Result<Graph, ShapeError> {
        let leaves = at_least(1, "leaves", self.leaves)?;
        let each = at_least(1, "hosts_per_leaf", self.hosts_per_leaf)?;
        let spines = at_least(1, "spines", self.spines)?;
        let parallel = at_least(1, "links_per_pair", self.links_per_pair)?;
        let host_wire = Wire::new(("host_rate", self.host_rate), ("host_delay", self.host_delay))?;
        let uplink = Wire::new(("uplink_rate", self.uplink_rate), ("uplink_delay", self.uplink_delay))?;
        let hosts = product(&[leaves, each]);
        let size = Size {
            nodes: sum(&[hosts, leaves, spines]),
            links: sum(&[hosts, product(&[leaves, spines, parallel])]),
            roots: leaves,
            ports: sum(&[each, product(&[spines, parallel])]).max(product(&[leaves, parallel])),
        };
        let mut graph = Graph::sized(size, "leaves, hosts_per_leaf, spines or links_per_pair")?;
        let hosts = graph.row(Kind::Host, 0, "h", hosts);
        let leaves = graph.row(Kind::Switch, 1, "leaf", leaves);
        let spines = graph.row(Kind::Switch, 2, "spine", spines);
        graph.hang(hosts, leaves.clone(), host_wire);
        graph.mesh(leaves, spines, self.links_per_pair, uplink);
        Ok(graph)
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{degrees, ends, names, refused};
    use super::*;
    use crate::id::NodeId;

    #[test]
    fn the_default_is_the_128_host_fabric_of_the_field() {
        let graph = LeafSpine::default().build().unwrap();
        assert_eq!((graph.nodes.len(), graph.links.len()), (128 + 8 + 8, 128 + 8 * 8));
        assert_eq!(degrees(&graph, 0..128), [1; 128]);
        assert_eq!(degrees(&graph, 128..136), [16 + 8; 8]);
        assert_eq!(degrees(&graph, 136..144), [8; 8]);
        assert!(graph.links.iter().all(|l| l.rates[0] == Rate::from_gbps(100) && l.delay == Time::from_us(1)));
    }

    #[test]
    fn hosts_come_first_then_leaves_then_spines() {
        let graph = LeafSpine { leaves: 2, hosts_per_leaf: 2, spines: 3, ..LeafSpine::default() }.build().unwrap();
        let expected = ["h0", "h1", "h2", "h3", "leaf0", "leaf1", "spine0", "spine1", "spine2"];
        assert_eq!(names(&graph, 0..9), expected);
        let tiers: Vec<_> = graph.nodes.iter().map(|node| node.tier).collect();
        assert_eq!(tiers, [0, 0, 0, 0, 1, 1, 2, 2, 2]);
        assert_eq!(ends(&graph, 0..4), [(0, 4), (1, 4), (2, 5), (3, 5)]);
        assert_eq!(ends(&graph, 4..10), [(4, 6), (4, 7), (4, 8), (5, 6), (5, 7), (5, 8)]);
    }

    #[test]
    fn parallel_links_are_neighbours() {
        let shape = LeafSpine { leaves: 1, hosts_per_leaf: 1, spines: 2, links_per_pair: 2, ..LeafSpine::default() };
        let graph = shape.build().unwrap();
        assert_eq!(ends(&graph, 0..5), [(0, 1), (1, 2), (1, 2), (1, 3), (1, 3)]);
    }

    #[test]
    fn host_links_and_uplinks_have_their_own_rate_and_delay() {
        let shape = LeafSpine {
            uplink_rate: Rate::from_gbps(400),
            uplink_delay: Time::from_us(2),
            host_rate: Rate::from_gbps(25),
            host_delay: Time::from_ns(600),
            ..LeafSpine::default()
        };
        for link in shape.build().unwrap().links {
            let expected = if link.a < NodeId(128) {
                (shape.host_rate, shape.host_delay)
            } else {
                (shape.uplink_rate, shape.uplink_delay)
            };
            assert_eq!((link.rates[0], link.delay), expected);
        }
    }

    #[test]
    fn a_leaf_spine_needs_some_of_everything() {
        refused(&LeafSpine { leaves: 0, ..LeafSpine::default() }, &["leaves is 0", "1 or more"]);
        refused(&LeafSpine { hosts_per_leaf: 0, ..LeafSpine::default() }, &["hosts_per_leaf is 0"]);
        refused(&LeafSpine { spines: 0, ..LeafSpine::default() }, &["spines is 0"]);
        refused(&LeafSpine { links_per_pair: 0, ..LeafSpine::default() }, &["links_per_pair is 0"]);
    }

    #[test]
    fn a_leaf_spine_with_too_many_links_is_refused() {
        refused(&LeafSpine { leaves: 3000, spines: 3000, ..LeafSpine::default() }, &["4000000 links", "spines"]);
        let most = u32::MAX;
        let all = LeafSpine {
            leaves: most,
            hosts_per_leaf: most,
            spines: most,
            links_per_pair: most,
            ..LeafSpine::default()
        };
        refused(&all, &["1000000 nodes"]);
    }
}
