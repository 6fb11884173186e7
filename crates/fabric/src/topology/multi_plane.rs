//! Several leaf-spine fabrics side by side, and a NIC of every host on each.

use engine::{Rate, Time};

use super::{Graph, Kind, Shape, ShapeError, Size, Wire, at_least, product, sum};

engine::parameters! {
    /// Planes: equal leaf-spine fabrics that share nothing but the hosts, each of which has a NIC on every plane. A flow stays in the plane that a hash of its
    /// addresses and ports chooses.
    ///
    /// Hosts are numbered first, then the leaves plane by plane, then the spines plane by plane.
    pub struct MultiPlane {
        /// Planes: NICs of a host.
        planes: u32 = 2,
        /// Leaf switches of a plane.
        leaves: u32 = 4,
        /// Hosts on each leaf.
        hosts_per_leaf: u32 = 8,
        /// Spine switches of a plane.
        spines: u32 = 4,
        /// Rate of each link of a host.
        host_rate: Rate = Rate::from_gbps(200),
        /// Propagation delay of the links of hosts.
        host_delay: Time = Time::from_us(1),
        /// Rate of the links between leaves and spines.
        uplink_rate: Rate = Rate::from_gbps(400),
        /// Propagation delay of the links between leaves and spines.
        uplink_delay: Time = Time::from_us(1),
    }
}

impl Shape for MultiPlane {
    fn name(&self) -> &'static str {
        "multi-plane"
    }

    fn about(&self) -> &'static str {
        "Leaf-spine fabrics side by side that share nothing but the hosts, each of which has a link to every plane."
    }

    fn build(&self) -> Result<Graph, ShapeError> {
        let planes = at_least(1, "planes", self.planes)?;
        let leaves = at_least(1, "leaves", self.leaves)?;
        let each = at_least(1, "hosts_per_leaf", self.hosts_per_leaf)?;
        let spines = at_least(1, "spines", self.spines)?;
        let host_wire = Wire::new(("host_rate", self.host_rate), ("host_delay", self.host_delay))?;
        let uplink = Wire::new(("uplink_rate", self.uplink_rate), ("uplink_delay", self.uplink_delay))?;
        let hosts = product(&[leaves, each]);
        let size = Size {
            nodes: sum(&[hosts, product(&[planes, leaves]), product(&[planes, spines])]),
            links: sum(&[product(&[planes, hosts]), product(&[planes, leaves, spines])]),
            roots: if planes > 1 { hosts } else { leaves },
            ports: sum(&[each, spines]).max(leaves).max(planes),
        };
        let mut graph = Graph::sized(size, "planes, leaves, hosts_per_leaf or spines")?;
        let hosts = graph.row(Kind::Host, 0, "h", hosts);
        let leaves = graph.row(Kind::Switch, 1, "leaf", planes * leaves);
        let spines = graph.row(Kind::Switch, 2, "spine", planes * spines);
        let plane = |of: &std::ops::Range<u32>, plane: u32, each: u32| {
            let first = of.start + plane * each;
            first..first + each
        };
        for number in 0..self.planes {
            graph.hang(hosts.clone(), plane(&leaves, number, self.leaves), host_wire);
        }
        for number in 0..self.planes {
            graph.mesh(plane(&leaves, number, self.leaves), plane(&spines, number, self.spines), 1, uplink);
        }
        Ok(graph)
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::degrees;
    use super::*;

    #[test]
    fn planes_meet_at_the_hosts_alone() {
        let graph = MultiPlane { planes: 3, leaves: 2, hosts_per_leaf: 2, spines: 2, ..MultiPlane::default() };
        let graph = graph.build().unwrap();
        assert_eq!(degrees(&graph, 0..4), [3; 4]);
        assert_eq!(degrees(&graph, 4..10), [2 + 2; 6]);
        let ports = graph.ports();
        let peers = |node: usize| ports[node].iter().map(|&(_, peer)| graph[peer].name.as_str()).collect::<Vec<_>>();
        assert_eq!(peers(2), ["leaf1", "leaf3", "leaf5"]);
        assert_eq!(peers(10), ["leaf0", "leaf1"]);
        assert_eq!(peers(15), ["leaf4", "leaf5"]);
    }
}
