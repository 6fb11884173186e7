//! Pods of leaves and spines under a core, with as much oversubscription at each tier as its counts and rates say.

use engine::{Rate, Time};

use super::{Graph, Kind, Shape, ShapeError, Size, Wire, at_least, product, sum};

engine::parameters! {
    /// Three tiers. In every pod each leaf is joined with each spine; the first spines of all pods share the first core switches, the second ones the second,
    /// and so on. A tier is oversubscribed as far as its switches have more below than above: `hosts_per_leaf × host_rate` to `spines × uplink_rate`, and
    /// `leaves × uplink_rate` to `cores_per_spine × core_rate`.
    ///
    /// Hosts are numbered first, then leaves and spines pod by pod, then core switches.
    pub struct ThreeTier {
        /// Pods.
        pods: u32 = 4,
        /// Leaf switches of a pod.
        leaves: u32 = 4,
        /// Hosts on each leaf.
        hosts_per_leaf: u32 = 8,
        /// Spine switches of a pod.
        spines: u32 = 4,
        /// Core switches that each spine is joined with.
        cores_per_spine: u32 = 2,
        /// Rate of the links between hosts and leaves.
        host_rate: Rate = Rate::from_gbps(100),
        /// Propagation delay of the links between hosts and leaves.
        host_delay: Time = Time::from_us(1),
        /// Rate of the links between leaves and spines.
        uplink_rate: Rate = Rate::from_gbps(100),
        /// Propagation delay of the links between leaves and spines.
        uplink_delay: Time = Time::from_us(1),
        /// Rate of the links between spines and core switches.
        core_rate: Rate = Rate::from_gbps(100),
        /// Propagation delay of the links between spines and core switches.
        core_delay: Time = Time::from_us(1),
    }
}

impl Shape for ThreeTier {
    fn name(&self) -> &'static str {
        "three-tier"
    }

    fn about(&self) -> &'static str {
        "Pods in which every leaf is joined with every spine, and core switches above them; each tier is oversubscribed as its counts and rates say."
    }

    fn build(&self) -> Result<Graph, ShapeError> {
        let pods = at_least(1, "pods", self.pods)?;
        let leaves = at_least(1, "leaves", self.leaves)?;
        let each = at_least(1, "hosts_per_leaf", self.hosts_per_leaf)?;
        let spines = at_least(1, "spines", self.spines)?;
        let up = at_least(1, "cores_per_spine", self.cores_per_spine)?;
        let host_wire = Wire::new(("host_rate", self.host_rate), ("host_delay", self.host_delay))?;
        let uplink = Wire::new(("uplink_rate", self.uplink_rate), ("uplink_delay", self.uplink_delay))?;
        let core_wire = Wire::new(("core_rate", self.core_rate), ("core_delay", self.core_delay))?;
        let hosts = product(&[pods, leaves, each]);
        let size = Size {
            nodes: sum(&[hosts, product(&[pods, leaves]), product(&[pods, spines]), product(&[spines, up])]),
            links: sum(&[hosts, product(&[pods, leaves, spines]), product(&[pods, spines, up])]),
            roots: product(&[pods, leaves]),
            ports: sum(&[each, spines]).max(sum(&[leaves, up])).max(pods),
        };
        let mut graph = Graph::sized(size, "pods, leaves, hosts_per_leaf, spines or cores_per_spine")?;
        let hosts = graph.row(Kind::Host, 0, "h", hosts);
        let leaves = graph.row(Kind::Switch, 1, "leaf", pods * leaves);
        let above = graph.row(Kind::Switch, 2, "spine", pods * spines);
        let cores = graph.row(Kind::Switch, 3, "core", spines * up);
        graph.hang(hosts, leaves.clone(), host_wire);
        for pod in 0..self.pods {
            let lower = leaves.start + pod * self.leaves;
            let upper = above.start + pod * self.spines;
            graph.mesh(lower..lower + self.leaves, upper..upper + self.spines, 1, uplink);
        }
        for spine in above.clone() {
            let first = cores.start + (spine - above.start) % self.spines * self.cores_per_spine;
            (first..first + self.cores_per_spine).for_each(|core| graph.wire(spine, core, core_wire));
        }
        Ok(graph)
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{degrees, names};
    use super::*;

    #[test]
    fn the_same_spine_of_every_pod_shares_its_cores() {
        let shape =
            ThreeTier { pods: 2, leaves: 3, hosts_per_leaf: 1, spines: 2, cores_per_spine: 2, ..ThreeTier::default() };
        let graph = shape.build().unwrap();
        assert_eq!(graph.nodes.len(), 6 + 6 + 4 + 4);
        assert_eq!(names(&graph, 16..20), ["core0", "core1", "core2", "core3"]);
        assert_eq!(degrees(&graph, 6..20), [vec![3; 6], vec![5; 4], vec![2; 4]].concat());
        let ports = graph.ports();
        let peers = |node: usize| ports[node].iter().map(|&(_, peer)| graph[peer].name.as_str()).collect::<Vec<_>>();
        assert_eq!(peers(16), ["spine0", "spine2"]);
        assert_eq!(peers(19), ["spine1", "spine3"]);
    }
}
