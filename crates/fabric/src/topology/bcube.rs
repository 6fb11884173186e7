//! The server-centric BCube: hosts with several ports, and switches that only meet hosts.

use engine::{Rate, Time};

use super::{Graph, Kind, Shape, ShapeError, Size, Wire, at_least, product, sum};

engine::parameters! {
    /// BCube(n, k): `n^(k+1)` hosts with `k+1` ports, and `k+1` levels of `n^k` switches with `n` ports.
    ///
    /// A host's number is its address, the digits `d_k..d_0` in base `n`. At level `i` it is on the switch whose
    /// address is that without `d_i`, at that switch's port `d_i`. Hosts are numbered first, then the switches level
    /// by level. A host's port `i` leads to level `i`. No switch meets another, so hosts must forward.
    pub struct Bcube {
        /// Ports of a switch and base of the addresses; 2 or more.
        n: u32 = 4,
        /// The highest level of switches, counted from 0; a host has one port more than that.
        k: u32 = 1,
        /// Rate of every link.
        rate: Rate = Rate::from_gbps(100),
        /// Propagation delay of every link.
        delay: Time = Time::from_us(1),
    }
}

impl Shape for Bcube {
    fn name(&self) -> &'static str {
        "bcube"
    }

    fn about(&self) -> &'static str {
        "The server-centric BCube(n, k): hosts with k+1 ports, one on each level of n-port switches. \
         Hosts forward for one another."
    }

    fn build(&self) -> Result<Graph, ShapeError> {
        let n = at_least(2, "n", self.n)?;
        let wire = Wire::new(("rate", self.rate), ("delay", self.delay))?;
        let per_level = n.saturating_pow(self.k);
        let hosts = product(&[per_level, n]);
        let levels = u64::from(self.k) + 1;
        let size = Size {
            nodes: sum(&[hosts, product(&[levels, per_level])]),
            links: product(&[levels, hosts]),
            roots: if levels == 1 { 1 } else { hosts },
            ports: n.max(levels),
        };
        let mut graph = Graph::sized(size, "n or k")?;
        let hosts = graph.row(Kind::Host, 0, "h", hosts);
        // A base of 2 and the limit on nodes keep the levels far below 255.
        let mut rows = Vec::new();
        for level in 0..=self.k {
            let row = graph.row(Kind::Switch, level as u8 + 1, &format!("l{level}s"), per_level);
            rows.push((row.start, self.n.pow(level)));
        }
        for host in hosts {
            for &(first, weight) in &rows {
                let (above, below) = (host / weight / self.n, host % weight);
                graph.wire(host, first + above * weight + below, wire);
            }
        }
        graph.forwarding = true;
        Ok(graph)
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{degrees, names, refused};
    use super::*;
    use crate::id::NodeId;
    use proptest::prelude::*;

    fn digits(mut number: usize, base: usize, count: usize) -> Vec<usize> {
        let mut digits = Vec::new();
        for _ in 0..count {
            digits.push(number % base);
            number /= base;
        }
        assert_eq!(number, 0);
        digits
    }

    #[test]
    fn bcube_4_1_is_wired_as_in_its_paper() {
        let graph = Bcube::default().build().unwrap();
        assert_eq!((graph.nodes.len(), graph.links.len()), (16 + 8, 32));
        assert_eq!(names(&graph, 15..24), ["h15", "l0s0", "l0s1", "l0s2", "l0s3", "l1s0", "l1s1", "l1s2", "l1s3"]);
        let peers = |host: usize| graph.ports()[host].iter().map(|&(_, peer)| peer.0).collect::<Vec<_>>();
        assert_eq!(peers(15), [19, 23]);
        assert_eq!(peers(0), [16, 20]);
        assert_eq!(peers(6), [17, 22]);
        assert_eq!(peers(16), [0, 1, 2, 3]);
        assert_eq!(peers(20), [0, 4, 8, 12]);
        assert_eq!((graph.nodes[19].tier, graph.nodes[20].tier), (1, 2));
    }

    #[test]
    fn bcube_of_level_0_is_a_star() {
        let graph = Bcube { n: 5, k: 0, ..Bcube::default() }.build().unwrap();
        assert_eq!(degrees(&graph, 0..6), [1, 1, 1, 1, 1, 5]);
    }

    #[test]
    fn a_bcube_needs_a_base() {
        refused(&Bcube { n: 0, ..Bcube::default() }, &["n is 0", "2 or more"]);
        refused(&Bcube { n: 1, ..Bcube::default() }, &["n is 1", "2 or more"]);
    }

    #[test]
    fn a_huge_bcube_is_refused() {
        refused(&Bcube { n: 2, k: 20, ..Bcube::default() }, &["1000000 nodes", "n or k"]);
        refused(&Bcube { n: 2, k: u32::MAX, ..Bcube::default() }, &["1000000 nodes"]);
        refused(&Bcube { n: u32::MAX, k: u32::MAX, ..Bcube::default() }, &["1000000 nodes"]);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]

        #[test]
        fn a_host_is_on_the_switch_that_lacks_one_of_its_digits((n, k) in (2..6usize, 0..4usize)) {
            let graph = Bcube { n: n as u32, k: k as u32, ..Bcube::default() }.build().unwrap();
            let (per_level, levels) = (n.pow(k as u32), k + 1);
            let hosts = per_level * n;
            prop_assert_eq!(graph.nodes.len(), hosts + levels * per_level);
            prop_assert_eq!(graph.links.len(), hosts * levels);
            prop_assert_eq!(degrees(&graph, 0..hosts), vec![levels; hosts]);
            prop_assert_eq!(degrees(&graph, hosts..graph.nodes.len()), vec![n; levels * per_level]);
            let ports = graph.ports();
            for (host, ports_of_host) in ports[..hosts].iter().enumerate() {
                for (level, &(link, peer)) in ports_of_host.iter().enumerate() {
                    let mut address = digits(host, n, levels);
                    let port = address.remove(level);
                    let switch = peer.index() - hosts;
                    prop_assert_eq!(switch / per_level, level);
                    prop_assert_eq!(digits(switch % per_level, n, k), address);
                    prop_assert_eq!(ports[peer.index()][port], (link, NodeId(host as u32)));
                    prop_assert_eq!(graph[peer].tier as usize, level + 1);
                }
            }
        }
    }
}
