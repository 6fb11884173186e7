//! Two leaf-spine sites joined by one long link.

use engine::{Rate, Time};

use super::{Graph, Kind, Shape, ShapeError, Size, Wire, at_least, product, sum};

engine::parameters! {
    /// Two equal leaf-spine sites. Each has a gateway that is joined with all its spines, and one long link joins
    /// the gateways.
    ///
    /// Hosts are numbered first, then leaves, spines and gateways, each the first site's before the second's. Links
    /// are in the same order, and the long one is last. The default is the cross-data-centre fabric of
    /// Goyal et al. (NSDI 2022), two sites of 64 hosts.
    pub struct TwoSites {
        /// Leaf switches of each site.
        leaves: u32 = 4,
        /// Hosts on each leaf.
        hosts_per_leaf: u32 = 16,
        /// Spine switches of each site.
        spines: u32 = 8,
        /// Rate of the links between hosts and leaves.
        host_rate: Rate = Rate::from_gbps(10),
        /// Propagation delay of the links between hosts and leaves.
        host_delay: Time = Time::from_us(1),
        /// Rate of the links between leaves and spines.
        uplink_rate: Rate = Rate::from_gbps(10),
        /// Propagation delay of the links between leaves and spines.
        uplink_delay: Time = Time::from_us(1),
        /// Rate of the links between spines and their gateway.
        gateway_rate: Rate = Rate::from_gbps(100),
        /// Propagation delay of the links between spines and their gateway.
        gateway_delay: Time = Time::from_us(1),
        /// Rate of the link between the gateways.
        long_rate: Rate = Rate::from_gbps(100),
        /// Propagation delay of the link between the gateways.
        long_delay: Time = Time::from_us(200),
    }
}

impl Shape for TwoSites {
    fn name(&self) -> &'static str {
        "two-sites"
    }

    fn about(&self) -> &'static str {
        "Two equal leaf-spine sites, each with a gateway above its spines, and one long link between the gateways."
    }

    fn build(&self) -> Result<Graph, ShapeError> {
        let leaves = at_least(1, "leaves", self.leaves)?;
        let each = at_least(1, "hosts_per_leaf", self.hosts_per_leaf)?;
        let spines = at_least(1, "spines", self.spines)?;
        let host_wire = Wire::new(("host_rate", self.host_rate), ("host_delay", self.host_delay))?;
        let uplink = Wire::new(("uplink_rate", self.uplink_rate), ("uplink_delay", self.uplink_delay))?;
        let gateway_wire = Wire::new(("gateway_rate", self.gateway_rate), ("gateway_delay", self.gateway_delay))?;
        let long = Wire::new(("long_rate", self.long_rate), ("long_delay", self.long_delay))?;
        let hosts = product(&[2, leaves, each]);
        let size = Size {
            nodes: sum(&[hosts, 2 * leaves, 2 * spines, 2]),
            links: sum(&[hosts, product(&[2, leaves, spines]), 2 * spines, 1]),
            roots: 2 * leaves,
            ports: (each + spines).max(leaves + 1).max(spines + 1),
        };
        let mut graph = Graph::sized(size, "leaves, hosts_per_leaf or spines")?;
        let hosts = graph.row(Kind::Host, 0, "h", hosts);
        let leaves = graph.row(Kind::Switch, 1, "leaf", 2 * leaves);
        let spines = graph.row(Kind::Switch, 2, "spine", 2 * spines);
        let gateways = graph.row(Kind::Switch, 3, "gw", 2);
        graph.hang(hosts, leaves.clone(), host_wire);
        let site = |of: &std::ops::Range<u32>, site: u32, each: u32| {
            let first = of.start + site * each;
            first..first + each
        };
        for half in 0..2 {
            let (lower, upper) = (site(&leaves, half, self.leaves), site(&spines, half, self.spines));
            graph.mesh(lower, upper, 1, uplink);
        }
        for half in 0..2 {
            graph.mesh(site(&spines, half, self.spines), site(&gateways, half, 1), 1, gateway_wire);
        }
        graph.wire(gateways.start, gateways.start + 1, long);
        Ok(graph)
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{degrees, ends, names, refused};
    use super::*;

    #[test]
    fn the_default_is_two_sites_of_64_hosts() {
        let graph = TwoSites::default().build().unwrap();
        assert_eq!(graph.nodes.len(), 2 * (64 + 4 + 8 + 1));
        assert_eq!(graph.links.len(), 2 * (64 + 4 * 8 + 8) + 1);
        assert_eq!(degrees(&graph, 0..128), [1; 128]);
        assert_eq!(degrees(&graph, 128..136), [16 + 8; 8]);
        assert_eq!(degrees(&graph, 136..152), [4 + 1; 16]);
        assert_eq!(degrees(&graph, 152..154), [8 + 1; 2]);
        let long = graph.links.last().unwrap();
        assert_eq!(
            (long.a.0, long.b.0, long.rates[0], long.delay),
            (152, 153, Rate::from_gbps(100), Time::from_us(200))
        );
        assert!(graph.links[..192].iter().all(|link| link.rates[0] == Rate::from_gbps(10)));
    }

    #[test]
    fn the_sites_meet_only_at_the_gateways() {
        let graph = TwoSites { leaves: 2, hosts_per_leaf: 1, spines: 2, ..TwoSites::default() }.build().unwrap();
        let expected =
            ["h0", "h1", "h2", "h3", "leaf0", "leaf1", "leaf2", "leaf3", "spine0", "spine1", "spine2", "spine3"];
        assert_eq!(names(&graph, 0..12), expected);
        assert_eq!(names(&graph, 12..14), ["gw0", "gw1"]);
        assert_eq!(ends(&graph, 0..4), [(0, 4), (1, 5), (2, 6), (3, 7)]);
        assert_eq!(ends(&graph, 4..8), [(4, 8), (4, 9), (5, 8), (5, 9)]);
        assert_eq!(ends(&graph, 8..12), [(6, 10), (6, 11), (7, 10), (7, 11)]);
        assert_eq!(ends(&graph, 12..17), [(8, 12), (9, 12), (10, 13), (11, 13), (12, 13)]);
        assert_eq!((graph.nodes[12].tier, graph.nodes[13].tier), (3, 3));

        let mut cut = graph;
        cut.links.pop();
        assert!(cut.check().unwrap_err().to_string().contains("h2"));
    }

    #[test]
    fn a_site_needs_some_of_everything() {
        refused(&TwoSites { leaves: 0, ..TwoSites::default() }, &["leaves is 0", "1 or more"]);
        refused(&TwoSites { hosts_per_leaf: 0, ..TwoSites::default() }, &["hosts_per_leaf is 0"]);
        refused(&TwoSites { spines: 0, ..TwoSites::default() }, &["spines is 0"]);
    }
}
