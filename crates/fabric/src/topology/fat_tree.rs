//! Three tiers of switches with `k` ports each.

use engine::{Rate, Time};

use super::{Graph, Kind, Shape, ShapeError, Size, Wire, at_least, product, sum};

engine::parameters! {
    /// The three-tier fat tree of `k`-port switches: `k` pods of `k/2` edge and `k/2` aggregation switches, and
    /// `(k/2)^2` cores.
    ///
    /// Hosts are numbered first, then edges, aggregations and cores, each pod by pod. In every pod the
    /// aggregation switch `j` is joined with the cores from `j*k/2` on.
    pub struct FatTree {
        /// Ports of an aggregation switch, half of them up, and number of pods; even.
        k: u32 = 8,
        /// Pods, if not all of them are built. Auto: k.
        pods: Option<u32> = None,
        /// Hosts for each uplink of an edge switch, which then has k/2 times as many; 1 gives full bisection.
        oversubscription: u32 = 1,
        /// Rate of the links between hosts and edge switches.
        host_rate: Rate = Rate::from_gbps(100),
        /// Propagation delay of the links between hosts and edge switches.
        host_delay: Time = Time::from_us(1),
        /// Rate of the links between edge and aggregation switches.
        edge_rate: Rate = Rate::from_gbps(100),
        /// Propagation delay of the links between edge and aggregation switches.
        edge_delay: Time = Time::from_us(1),
        /// Rate of the links between aggregation and core switches.
        core_rate: Rate = Rate::from_gbps(100),
        /// Propagation delay of the links between aggregation and core switches.
        core_delay: Time = Time::from_us(1),
    }
}

impl Shape for FatTree {
    fn name(&self) -> &'static str {
        "fat-tree"
    }

    fn about(&self) -> &'static str {
        "Three tiers of k-port switches: k pods of k/2 edge and k/2 aggregation switches under (k/2)^2 cores."
    }

    fn build(&self) -> Result<Graph, ShapeError> {
        let k = at_least(2, "k", self.k)?;
        if k % 2 == 1 {
            return Err(ShapeError::Odd { parameter: "k", count: self.k, shape: "a fat tree" });
        }
        let pods = at_least(1, "pods", self.pods.unwrap_or(self.k))?;
        if pods > k {
            let why = ("a core switch has", k, "ports");
            return Err(ShapeError::TooMany { parameter: "pods", count: pods, most: k, why, or_raise: "k" });
        }
        let oversubscription = at_least(1, "oversubscription", self.oversubscription)?;
        let host_wire = Wire::new(("host_rate", self.host_rate), ("host_delay", self.host_delay))?;
        let edge_wire = Wire::new(("edge_rate", self.edge_rate), ("edge_delay", self.edge_delay))?;
        let core_wire = Wire::new(("core_rate", self.core_rate), ("core_delay", self.core_delay))?;
        let half = k / 2;
        let per_tier = product(&[pods, half]);
        let cores = product(&[half, half]);
        let hosts = product(&[per_tier, half, oversubscription]);
        let size = Size {
            nodes: sum(&[hosts, per_tier, per_tier, cores]),
            links: sum(&[hosts, product(&[2, per_tier, half])]),
            roots: per_tier,
            // Of an edge switch, which has the most.
            ports: sum(&[product(&[half, oversubscription]), half]),
        };
        let mut graph = Graph::sized(size, "k or oversubscription")?;
        let hosts = graph.row(Kind::Host, 0, "h", hosts);
        let edges = graph.row(Kind::Switch, 1, "edge", per_tier);
        let aggs = graph.row(Kind::Switch, 2, "agg", per_tier);
        let cores = graph.row(Kind::Switch, 3, "core", cores);
        graph.hang(hosts, edges.clone(), host_wire);
        // The size is known to be small by now.
        let half = half as u32;
        for pod in 0..pods as u32 {
            let (edge, agg) = (edges.start + pod * half, aggs.start + pod * half);
            graph.mesh(edge..edge + half, agg..agg + half, 1, edge_wire);
        }
        for agg in aggs.clone() {
            let core = cores.start + (agg - aggs.start) % half * half;
            graph.mesh(agg..agg + 1, core..core + half, 1, core_wire);
        }
        Ok(graph)
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{degrees, ends, names, refused};
    use super::*;
    use crate::id::NodeId;
    use proptest::prelude::*;

    /// The most that one set of hosts can send to another at once, in links: augmenting paths, one link at a time.
    fn max_flow(graph: &Graph, from: &[u32], to: &[u32]) -> usize {
        let ports = graph.ports();
        // Net flow on each link, from `a` to `b`: -1, 0 or 1. A host sends or receives on its only link.
        let mut flow = vec![0i32; graph.links.len()];
        let mut total = 0;
        for &source in from {
            let mut came = vec![None; graph.nodes.len()];
            let mut open = vec![source];
            let mut end = None;
            while let Some(node) = open.pop() {
                if to.contains(&node) {
                    end = Some(node);
                    break;
                }
                for &(link, peer) in &ports[node as usize] {
                    let sign = if graph.links[link as usize].a == NodeId(node) { 1 } else { -1 };
                    if peer != NodeId(source) && came[peer.index()].is_none() && flow[link as usize] * sign < 1 {
                        came[peer.index()] = Some((link, node, sign));
                        open.push(peer.0);
                    }
                }
            }
            if let Some(mut node) = end {
                total += 1;
                while let Some((link, before, sign)) = came[node as usize] {
                    flow[link as usize] += sign;
                    node = before;
                }
            }
        }
        total
    }

    proptest! {
        #[test]
        fn a_fat_tree_has_full_bisection(hosts in Just((0..54).collect::<Vec<u32>>()).prop_shuffle()) {
            let graph = FatTree { k: 6, ..FatTree::default() }.build().unwrap();
            let (from, to) = hosts.split_at(27);
            prop_assert_eq!(max_flow(&graph, from, to), 27);
        }
    }

    #[test]
    fn oversubscription_divides_the_bisection() {
        let graph = FatTree { k: 4, oversubscription: 3, ..FatTree::default() }.build().unwrap();
        let hosts: Vec<u32> = graph.hosts().map(|host| host.0).collect();
        assert_eq!(hosts.len(), 48);
        let (from, to) = hosts.split_at(24);
        assert_eq!(max_flow(&graph, from, to), 8);
    }

    #[test]
    fn a_fat_tree_has_as_many_of_everything_as_its_formulas_say() {
        for (k, oversubscription) in [(2, 1), (4, 1), (4, 2), (6, 1), (8, 4), (10, 1)] {
            let graph = FatTree { k, oversubscription, ..FatTree::default() }.build().unwrap();
            let (k, o) = (k as usize, oversubscription as usize);
            let (hosts, tier, cores) = (k * k * k / 4 * o, k * k / 2, k * k / 4);
            assert_eq!(graph.nodes.len(), hosts + 2 * tier + cores);
            assert_eq!(graph.links.len(), hosts + k * k * k / 2);
            assert_eq!(degrees(&graph, 0..hosts), vec![1; hosts]);
            assert_eq!(degrees(&graph, hosts..hosts + tier), vec![k / 2 * o + k / 2; tier]);
            assert_eq!(degrees(&graph, hosts + tier..hosts + 2 * tier), vec![k; tier]);
            assert_eq!(degrees(&graph, hosts + 2 * tier..graph.nodes.len()), vec![k; cores]);
        }
    }

    #[test]
    fn a_fat_tree_may_have_fewer_pods_than_its_cores_have_ports() {
        // The fabric of HPCC's simulations: 16 core, 20 aggregation and 20 edge switches, 320 hosts.
        let graph = FatTree { k: 8, pods: Some(5), oversubscription: 4, ..FatTree::default() }.build().unwrap();
        assert_eq!((graph.nodes.len(), graph.links.len()), (320 + 20 + 20 + 16, 480));
        assert_eq!(degrees(&graph, 320..340), vec![20; 20]);
        assert_eq!(degrees(&graph, 340..360), vec![8; 20]);
        assert_eq!(degrees(&graph, 360..376), vec![5; 16]);
        let cores: Vec<u32> = graph.ports()[341].iter().map(|&(_, peer)| peer.0).filter(|&peer| peer >= 360).collect();
        assert_eq!(cores, [364, 365, 366, 367]);
        refused(
            &FatTree { pods: Some(9), ..FatTree::default() },
            &["pods is 9, but a core switch has 8 ports; write 8 or fewer, or a larger k"],
        );
        refused(&FatTree { pods: Some(0), ..FatTree::default() }, &["pods is 0"]);
    }

    #[test]
    fn every_core_reaches_every_pod_once() {
        let graph = FatTree { k: 6, ..FatTree::default() }.build().unwrap();
        let (hosts, tier) = (54, 18);
        for core in &graph.ports()[hosts + 2 * tier..] {
            let pods: Vec<_> = core.iter().map(|&(_, agg)| (agg.index() - hosts - tier) / 3).collect();
            assert_eq!(pods, [0, 1, 2, 3, 4, 5]);
        }
    }

    #[test]
    fn a_fat_tree_is_numbered_tier_by_tier_and_pod_by_pod() {
        let shape = FatTree {
            k: 4,
            edge_rate: Rate::from_gbps(200),
            core_rate: Rate::from_gbps(400),
            core_delay: Time::from_us(3),
            ..FatTree::default()
        };
        let graph = shape.build().unwrap();
        assert_eq!(names(&graph, 15..17), ["h15", "edge0"]);
        assert_eq!(names(&graph, 23..25), ["edge7", "agg0"]);
        assert_eq!(names(&graph, 31..36), ["agg7", "core0", "core1", "core2", "core3"]);
        assert_eq!(ends(&graph, 14..20), [(14, 23), (15, 23), (16, 24), (16, 25), (17, 24), (17, 25)]);
        assert_eq!(ends(&graph, 32..38), [(24, 32), (24, 33), (25, 34), (25, 35), (26, 32), (26, 33)]);
        assert_eq!((graph.links[15].rates[0], graph.links[15].delay), (Rate::from_gbps(100), Time::from_us(1)));
        assert_eq!((graph.links[16].rates[0], graph.links[16].delay), (Rate::from_gbps(200), Time::from_us(1)));
        assert_eq!((graph.links[32].rates[0], graph.links[32].delay), (Rate::from_gbps(400), Time::from_us(3)));
    }

    #[test]
    fn an_odd_k_is_refused_with_its_neighbours() {
        refused(&FatTree { k: 5, ..FatTree::default() }, &["k is 5", "write 4 or 6"]);
        refused(&FatTree { k: u32::MAX, ..FatTree::default() }, &["even"]);
        refused(&FatTree { k: 0, ..FatTree::default() }, &["k is 0", "2 or more"]);
        refused(&FatTree { k: 1, ..FatTree::default() }, &["k is 1", "2 or more"]);
        refused(&FatTree { oversubscription: 0, ..FatTree::default() }, &["oversubscription is 0"]);
    }

    #[test]
    fn a_fat_tree_of_more_than_a_million_nodes_is_refused() {
        refused(&FatTree { k: 160, ..FatTree::default() }, &["1000000 nodes", "k or oversubscription"]);
        refused(&FatTree { k: 16, oversubscription: 1000, ..FatTree::default() }, &["1000000 nodes"]);
    }
}
