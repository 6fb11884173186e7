//! Hosts around one switch.

use engine::{Rate, Time};

use super::{Graph, Kind, Shape, ShapeError, Size, Wire, at_least};

engine::parameters! {
    /// Hosts around one switch. Host `i` is on the switch's port `i`.
    pub struct Star {
        /// Hosts.
        hosts: u32 = 16,
        /// Rate of every link.
        rate: Rate = Rate::from_gbps(100),
        /// Propagation delay of every link.
        delay: Time = Time::from_us(1),
    }
}

impl Shape for Star {
    fn name(&self) -> &'static str {
        "star"
    }

    fn about(&self) -> &'static str {
        "Hosts around one switch."
    }

    fn build(&self) -> Result<Graph, ShapeError> {
        let hosts = at_least(1, "hosts", self.hosts)?;
        let wire = Wire::new(("rate", self.rate), ("delay", self.delay))?;
        let mut graph = Graph::sized(Size { nodes: hosts + 1, links: hosts, roots: 1, ports: hosts }, "hosts")?;
        let hosts = graph.row(Kind::Host, 0, "h", hosts);
        let switch = graph.row(Kind::Switch, 1, "sw", 1);
        graph.hang(hosts, switch, wire);
        Ok(graph)
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{degrees, names, refused};
    use super::*;
    use crate::id::NodeId;

    #[test]
    fn a_star_has_one_switch_in_the_middle() {
        let graph = Star { hosts: 3, ..Star::default() }.build().unwrap();
        assert_eq!(names(&graph, 0..4), ["h0", "h1", "h2", "sw0"]);
        assert_eq!(degrees(&graph, 0..4), [1, 1, 1, 3]);
        assert_eq!(graph.ports()[3], [0, 1, 2].map(|port| (port, NodeId(port))));
    }

    #[test]
    fn a_star_needs_a_host() {
        refused(&Star { hosts: 0, ..Star::default() }, &["hosts is 0", "1 or more"]);
    }
}
