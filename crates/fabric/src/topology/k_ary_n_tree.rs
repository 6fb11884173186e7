//! The k-ary n-tree: n stages of switches with 2k ports each.

use engine::{Rate, Time};

use super::{Graph, Kind, Shape, ShapeError, Size, Wire, at_least, product, sum};

engine::parameters! {
    /// The k-ary n-tree: `k^n` hosts under `n` stages of `k^(n-1)` switches, with `k` ports down and `k` up. Those of the last
    /// stage have nothing above them.
    ///
    /// Hosts are numbered first, then the switches stage by stage, from the hosts up. A switch's number within its stage has
    /// the digits `w_(n-2)..w_0` in base `k`. Host `h` is on switch `h / k` of stage 0. A switch of stage `l` is joined with
    /// those of stage `l + 1` that have the same digits but for `w_l`.
    pub struct KAryNTree {
        /// Ports of a switch in each direction, half of them all; 2 or more.
        k: u32 = 4,
        /// Stages of switches.
        n: u32 = 3,
        /// Rate of every link.
        rate: Rate = Rate::from_gbps(100),
        /// Propagation delay of every link.
        delay: Time = Time::from_us(1),
    }
}

impl Shape for KAryNTree {
    fn name(&self) -> &'static str {
        "k-ary-n-tree"
    }

    fn about(&self) -> &'static str {
        "The k-ary n-tree: k^n hosts under n stages of k^(n-1) switches, each with k ports down and k up."
    }

    fn build(&self) -> Result<Graph, ShapeError> {
        let k = at_least(2, "k", self.k)?;
        let stages = at_least(1, "n", self.n)?;
        let wire = Wire::new(("rate", self.rate), ("delay", self.delay))?;
        let per_stage = k.saturating_pow(self.n - 1);
        let hosts = product(&[per_stage, k]);
        let size = Size {
            nodes: sum(&[hosts, product(&[stages, per_stage])]),
            links: product(&[stages, hosts]),
            roots: per_stage,
            ports: if stages == 1 { k } else { 2 * k },
        };
        let mut graph = Graph::sized(size, "k or n")?;
        let hosts = graph.row(Kind::Host, 0, "h", hosts);
        // A base of 2 and the limit on nodes keep the stages far below 255.
        let stages: Vec<_> = (0..self.n)
            .map(|stage| graph.row(Kind::Switch, stage as u8 + 1, &format!("l{stage}s"), per_stage))
            .collect();
        graph.hang(hosts, stages[0].clone(), wire);
        let mut weight = 1;
        for (lower, upper) in stages.iter().zip(&stages[1..]) {
            for place in 0..lower.len() as u32 {
                let rest = place - place / weight % self.k * weight;
                for digit in 0..self.k {
                    graph.wire(lower.start + place, upper.start + rest + digit * weight, wire);
                }
            }
            weight *= self.k;
        }
        Ok(graph)
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{degrees, names, refused};
    use super::*;
    use crate::routing::{PortMap, Routing, Rule, Tuple};

    #[test]
    fn a_4_ary_3_tree_has_48_switches_of_8_ports_and_64_hosts() {
        let graph = KAryNTree::default().build().unwrap();
        assert_eq!((graph.nodes.len(), graph.links.len()), (64 + 48, 3 * 64));
        assert_eq!(degrees(&graph, 0..64), [1; 64]);
        assert_eq!(degrees(&graph, 64..96), [8; 32]);
        // Nothing is above the last stage.
        assert_eq!(degrees(&graph, 96..112), [4; 16]);
        assert_eq!(names(&graph, 63..66), ["h63", "l0s0", "l0s1"]);
        assert_eq!((graph.nodes[64].tier, graph.nodes[96].tier), (1, 3));
    }

    #[test]
    fn a_switch_meets_those_of_the_next_stage_that_differ_in_the_digit_of_its_stage() {
        let graph = KAryNTree { k: 2, ..KAryNTree::default() }.build().unwrap();
        let ports = graph.ports();
        let up = |node: usize| ports[node][2..].iter().map(|&(_, peer)| peer.0).collect::<Vec<_>>();
        // Hosts 0 to 7, stages from 8, 12 and 16.
        assert_eq!([8, 9, 10, 11].map(up), [[12, 13], [12, 13], [14, 15], [14, 15]]);
        assert_eq!([12, 13, 14, 15].map(up), [[16, 18], [17, 19], [16, 18], [17, 19]]);
    }

    #[test]
    fn by_destination_every_link_down_serves_as_many_hosts_as_every_other_of_its_stage() {
        let graph = KAryNTree { k: 3, ..KAryNTree::default() }.build().unwrap();
        let map = PortMap::new(&graph);
        let routing = Routing::new(&graph, &map, &vec![true; graph.links.len()]);
        // For each port, the hosts that are reached by it from anywhere.
        let mut reached = vec![std::collections::BTreeSet::new(); map.count()];
        for (from, to) in (0..27).flat_map(|from| (0..27).map(move |to| (from, to))).filter(|(a, b)| a != b) {
            let mut node = from;
            let mut hops = 0;
            while node != to {
                let port = routing.choose(node, to, Rule::ByDestination, 0, &Tuple::default(), Time::ZERO).unwrap();
                reached[port as usize].insert(to);
                node = map.node[map.peer[port as usize] as usize];
                hops += 1;
            }
            assert!(hops <= 6);
        }
        let tier = |port: usize| graph.nodes[map.node[port] as usize].tier;
        let below = |port: usize| graph.nodes[map.node[map.peer[port] as usize] as usize].tier;
        for port in (0..map.count()).filter(|&port| tier(port) > below(port)) {
            assert_eq!(reached[port].len(), 1, "one path comes down to a host");
        }
    }

    #[test]
    fn a_tree_of_one_stage_is_a_star() {
        let graph = KAryNTree { k: 5, n: 1, ..KAryNTree::default() }.build().unwrap();
        assert_eq!(degrees(&graph, 0..6), [1, 1, 1, 1, 1, 5]);
    }

    #[test]
    fn bad_parameters_are_refused_by_name() {
        refused(&KAryNTree { k: 1, ..KAryNTree::default() }, &["k is 1", "2 or more"]);
        refused(&KAryNTree { n: 0, ..KAryNTree::default() }, &["n is 0", "1 or more"]);
        refused(&KAryNTree { k: 2, n: u32::MAX, ..KAryNTree::default() }, &["1000000 nodes", "k or n"]);
    }
}
